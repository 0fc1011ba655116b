"""Batch files: requests out, results in, nothing asked twice, everything labelled or failed with a reason."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.labels import batch as batch_forms
from agentsignals.labels.answers import MOST_GROWTH
from agentsignals.labels.batch import FORMS, result, take, write
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.run import Summary
from agentsignals.labels.tasks import task
from agentsignals.labels.units import Selection
from agentsignals.redaction import Redactor
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from tests.labels.server import label, material, section
from tests.labels.stores import store_of
from tests.labels.test_run import sessions_judge
from tests.verbs import printed, printed_json

NOWHERE = "http://127.0.0.1:9/v1"
"""Nobody answers there: whoever asks fails."""
Answer = Callable[[str], dict[str, Any]]


def by(model: str = "tiny") -> ChatServer:
    return ChatServer(f"{model}@{NOWHERE}")


def silent(*_: object) -> None:
    """Says nothing."""


def sent(
    store: Store, path: Path, judged: str = "sentiment", *, model: str = "tiny", limit: int | None = None, **how: Any
) -> Summary:
    return write(store, task(judged), by(model), Selection(limit=limit), silent, path, **how)


def took(store: Store, *paths: Path, judged: str = "sentiment", **how: Any) -> Summary:
    return take(store, task(judged), by(), Selection(), silent, paths, **how)


def batch(folder: Path, *sessions: list[str]) -> tuple[Store, list[dict[str, Any]]]:
    """A store of these messages, and the requests of a batch about them."""
    store = store_of(folder, *sessions)
    sent(store, folder / "batch.jsonl")
    return store, requests_in(folder / "batch.jsonl")


def requests_in(path: Path) -> list[dict[str, Any]]:
    text = path.read_text("utf-8")
    found: list[dict[str, Any]] = (
        json.loads(text)["requests"]
        if text.startswith('{"requests"')
        else [json.loads(line) for line in text.splitlines()]
    )
    return found


def body_of(request: dict[str, Any]) -> dict[str, Any]:
    """As a chat server would get it."""
    if "body" in request:
        return dict(request["body"])
    asked = request["params"]
    return {"messages": [{"role": "system", "content": asked["system"]}, *asked["messages"]]}


def openai_line(request: dict[str, Any], text: str, **more: Any) -> dict[str, Any]:
    completion = {
        "id": "c", "object": "chat.completion", "model": "tiny-2026-11-01", "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": None}, "logprobs": None,
                     "finish_reason": "stop"} | more],
        "usage": {"prompt_tokens": 70, "completion_tokens": 9, "total_tokens": 79},
    }  # fmt: skip
    response = {"status_code": 200, "request_id": "r", "body": completion}
    return {"id": "batch_req_1", "custom_id": request["custom_id"], "response": response, "error": None}


def anthropic_line(request: dict[str, Any], text: str, stop_reason: str = "end_turn") -> dict[str, Any]:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-small-2026",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
        "stop_reason": stop_reason, "stop_sequence": None,
        "usage": {"input_tokens": 50, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 20,
                  "output_tokens": 9},
    }  # fmt: skip
    return {"custom_id": request["custom_id"], "result": {"type": "succeeded", "message": message}}


LINES = {"openai": openai_line, "anthropic": anthropic_line}


def results(folder: Path, lines: Sequence[dict[str, Any] | str], name: str = "results.jsonl") -> Path:
    """In any order, as providers give them."""
    path, shuffled = folder / name, list(lines)
    random.Random(1).shuffle(shuffled)  # noqa: S311  (no secret)
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in shuffled), "utf-8")
    return path


def by_words(request: dict[str, Any]) -> str:
    text = material(body_of(request))
    return label("NEGATIVE" if "bad" in text else "POSITIVE" if "good" in text else "NEUTRAL")


def values(store: Store) -> dict[tuple[str, int], str]:
    found = rows(store, "SELECT session_id, turn, value FROM labels ORDER BY ALL")[1]
    return {(session[-1], turn): value for session, turn, value in found}


@pytest.mark.parametrize("form", list(FORMS))
def test_a_batch_goes_out_and_its_results_are_labels(tmp_path: Path, form: str) -> None:
    store = store_of(tmp_path, ["do it", "that is bad", "do it"], ["good work"])
    path = tmp_path / "batch.jsonl"
    written = sent(store, path, form=form)
    asked = requests_in(path)
    assert written.run_figures == {"files": [str(path)], "requests": 3, "waiting": 0}
    assert (written.labelled, written.unanswered, written.calls, written.failed) == (0, 4, 0, {})
    assert {material(body_of(request)) for request in asked} == {"do it", "that is bad", "good work"}
    assert {len(request["custom_id"]) for request in asked} == {64}, "Anthropic takes no longer one"
    taken = took(store, results(tmp_path, [LINES[form](r, by_words(r)) for r in asked]))
    assert values(store) == {("0", 0): "NEUTRAL", ("0", 1): "NEGATIVE", ("0", 2): "NEUTRAL", ("1", 0): "POSITIVE"}
    assert taken.run_figures == {"taken": 3} and (taken.labelled, taken.unanswered, taken.calls) == (4, 0, 3)
    assert (taken.input_tokens, taken.output_tokens) == (210, 27)
    (row, *_) = sidecars.labels_of(store.folder, "sentiment", "openai:tiny")
    assert row.label.served_model == {"openai": "tiny-2026-11-01 (fp_1)", "anthropic": "claude-small-2026"}[form]


def test_a_request_is_the_call_that_would_have_been_made(tmp_path: Path) -> None:
    store = store_of(tmp_path, ["do it"])
    path = tmp_path / "batch.jsonl"
    sent(store, path, "session_success")
    (request,) = requests_in(path)
    assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
    held_to = request["body"]["response_format"]["json_schema"]
    assert held_to == {"name": "session_success", "strict": True, "schema": task("session_success").schema}
    assert request["body"]["max_tokens"] == task("session_success").answer_tokens * MOST_GROWTH, "it can't grow later"


def test_claude_gets_a_schema_without_bounds_and_no_temperature(tmp_path: Path) -> None:
    store = store_of(tmp_path, ["do it"])
    path = tmp_path / "batch.json"
    sent(store, path, "session_success", model="claude-small")
    (request,) = requests_in(path)
    asked = request["params"]
    assert asked["model"] == "claude-small" and "temperature" not in asked
    schema = asked["output_config"]["format"]["schema"]
    assert schema["properties"]["score"] == {"type": "integer"} and schema["additionalProperties"] is False
    assert task("session_success").schema["properties"]["score"]["maximum"] == 100


def test_nothing_is_written_twice_until_its_result_is_there(tmp_path: Path) -> None:
    store = store_of(tmp_path, ["one", "two", "three"])
    first, second, third = (tmp_path / f"{n}.jsonl" for n in range(3))
    sent(store, first, limit=2)
    again = sent(store, second)
    assert {material(body_of(r)) for r in requests_in(second)} == {"three"}
    assert again.run_figures["waiting"] == 2 and again.unanswered == 3
    one, two = requests_in(first)
    failed = {"id": "b", "custom_id": two["custom_id"], "response": None,
              "error": {"code": "batch_expired", "message": "not in time"}}  # fmt: skip
    summary = took(store, results(tmp_path, [openai_line(one, label("NEUTRAL")), failed]))
    assert (summary.labelled, summary.failed, summary.unanswered) == (1, {"expired": 1}, 1)
    sent(store, third)
    assert [r["custom_id"] for r in requests_in(third)] == [two["custom_id"]], "what expired is written anew"
    nothing = sent(store, tmp_path / "4.jsonl")
    assert nothing.run_figures == {"files": [], "requests": 0, "waiting": 2} and not (tmp_path / "4.jsonl").exists()
    lost = sent(store, tmp_path / "5.jsonl", again=True)
    assert lost.run_figures["requests"] == 2


def test_results_taken_twice_are_taken_once(tmp_path: Path) -> None:
    store, asked = batch(tmp_path, ["one", "two"])
    first = results(tmp_path, [openai_line(r, label("NEUTRAL")) for r in asked] * 2)
    took(store, first, first)
    other = results(tmp_path, [openai_line(r, label("NEGATIVE")) for r in asked], "other.jsonl")
    summary = took(store, other)
    assert set(values(store).values()) == {"NEUTRAL"}
    assert summary.run_figures == {"answered_before": 2} and (summary.calls, summary.kept) == (0, 2)


def test_of_several_results_the_one_with_an_answer_counts(tmp_path: Path) -> None:
    store, asked = batch(tmp_path, ["one"])
    (request,) = asked
    error = {"custom_id": request["custom_id"], "result": {"type": "canceled"}}
    files = [
        results(tmp_path, [error], "a.jsonl"),
        results(tmp_path, [openai_line(request, label("NEUTRAL"))], "b.jsonl"),
    ]
    for order in (files, files[::-1]):
        assert took(store, *order).labelled == 1


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        (lambda r: openai_line(r, "no json"), "invalid_json"),
        (lambda r: openai_line(r, label("SAD")), "invalid_answer"),
        (lambda r: openai_line(r, '{"reason": "x', finish_reason="length"), "cut_short"),
        (lambda r: openai_line(r, "", message={"content": None, "refusal": "no"}), "refusal"),
        (lambda r: openai_line(r, "", finish_reason="content_filter"), "content_filter"),
        (lambda r: {"custom_id": r["custom_id"], "response": {"status_code": 400, "body": {"error": {"message": "m"}}}},
         "errored"),
        (lambda r: {"custom_id": r["custom_id"], "response": {"status_code": 200, "body": {"choices": []}}}, "errored"),
        (lambda r: {"custom_id": r["custom_id"], "response": None, "error": None}, "errored"),
        (lambda r: anthropic_line(r, '{"reason": "x', "max_tokens"), "cut_short"),
        (lambda r: anthropic_line(r, "", "refusal"), "refusal"),
        (lambda r: {"custom_id": r["custom_id"], "result": {"type": "expired"}}, "expired"),
        (lambda r: {"custom_id": r["custom_id"], "result": {"type": "errored", "error": {"type": "error", "error": {
            "type": "invalid_request_error", "message": "temperature"}}}}, "errored"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_failure_with_its_reason(tmp_path: Path, line: Any, failure: str) -> None:
    store, asked = batch(tmp_path, ["one", "two"])
    bad, good = asked
    summary = took(store, results(tmp_path, [line(bad), openai_line(good, label("NEUTRAL"))]))
    assert (summary.labelled, summary.failed) == (1, {failure: 1})
    assert summary.failures[0]["detail"]


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "null", '"x"', "{}", '{"custom_id": 5}', '{"custom_id": "x", "result": 5}', "\x00" * 9,
             '{"custom_id": "x", "response": {"status_code": 200, "body": 5}}', "[" * 10_000]
)  # fmt: skip
def test_lines_that_are_no_result_cost_nothing_else(tmp_path: Path, line: str) -> None:
    assert result(line.encode()) is None
    store, asked = batch(tmp_path, ["one"])
    lines = [line, *(openai_line(r, label("NEUTRAL")) for r in asked)]
    assert took(store, results(tmp_path, lines)).labelled == 1


def test_secrets_are_masked_even_for_a_server_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is carried elsewhere. What is masked is masked alike when results come in."""
    secret = "hf_" + "aB3" * 12
    store = store_of(tmp_path, [f"use {secret} for it", "mail jane.roe@example.org"])
    path = tmp_path / "batch.jsonl"
    words = ["label", "sentiment", "--by", f"openai:tiny@{NOWHERE}", "--store", str(store.folder)]
    assert "2 requests in" in printed(capsys, *words, "--export-batch", path)
    text = path.read_text("utf-8")
    assert secret not in text and "jane.roe" not in text and "[key]" in text
    file = results(tmp_path, [openai_line(r, label("NEUTRAL")) for r in requests_in(path)])
    assert printed_json(capsys, *words, "--import-batch", file)["labelled"] == 2
    assert main([*words, "--import-batch", str(file), "--no-redact"]) == 1, "these would be other questions"


def test_what_would_hold_a_key_all_the_same_is_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hf_" + "aB3" * 12
    store = store_of(tmp_path, [f"use {secret} for it", "go on"])
    path = tmp_path / "batch.jsonl"
    monkeypatch.setattr(Redactor, "text", lambda _, text, times=1: text)
    summary = write(store, task("sentiment"), by(), Selection(redact=True), silent, path)
    assert summary.failed == {"held_back": 1} and secret not in path.read_text("utf-8")


def test_a_batch_too_large_for_one_file_is_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMS, "openai", FORMS["openai"]._replace(most_requests=2))
    store = store_of(tmp_path, [f"message {n}" for n in range(5)])
    summary = sent(store, tmp_path / "b.jsonl")
    files = [tmp_path / name for name in ("b.jsonl", "b-2.jsonl", "b-3.jsonl")]
    assert summary.run_figures["files"] == [str(path) for path in files]
    assert [len(requests_in(path)) for path in files] == [2, 2, 1]
    size = len(files[0].read_bytes()) // 2
    monkeypatch.setitem(FORMS, "openai", FORMS["openai"]._replace(most_requests=9, most_bytes=3 * size + 9))
    sent(store, tmp_path / "c.jsonl", again=True)
    assert [len(requests_in(tmp_path / name)) for name in ("c.jsonl", "c-2.jsonl")] == [3, 2]


def test_a_run_that_fails_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    store = store_of(tmp_path, ["one", "two"])

    def interrupts(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "batch.jsonl"
    with pytest.raises(KeyboardInterrupt):
        write(store, task("pushback"), by(), Selection(), interrupts, path)
    assert [one.name for one in tmp_path.iterdir() if "batch" in one.name] == []
    assert sent(store, path, "pushback").run_figures["requests"] == 1


def test_long_sessions_take_a_batch_of_notes_first(tmp_path: Path) -> None:
    store = store_of(tmp_path, [f"request number {n}: {'word ' * 600}" for n in range(12)])
    judged, first, second = "session_success", tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    summary = sent(store, first, judged, window=12_000)
    notes = requests_in(first)
    assert (summary.unanswered, summary.failed) == (1, {}) and len(notes) > 1
    file = results(tmp_path, [openai_line(r, sessions_judge(body_of(r))) for r in notes])
    assert took(store, file, judged=judged, window=12_000).unanswered == 1
    sent(store, second, judged, window=12_000)
    (last,) = requests_in(second)
    assert section(material(body_of(last)), f"notes-on-part-1-of-{len(notes) + 1}")
    file = results(tmp_path, [openai_line(last, sessions_judge(body_of(last)))], "last.jsonl")
    assert took(store, file, judged=judged, window=12_000).labelled == 1


def test_results_of_something_else_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, asked = batch(tmp_path, ["one", "two"])
    lines = [openai_line(r, label("NEUTRAL")) for r in asked]
    strange = [*lines, openai_line({"custom_id": "request-1"}, label("NEUTRAL")), "no line"]
    summary = took(store, results(tmp_path, strange))
    assert summary.run_figures == {"taken": 2, "unreadable": 1, "of_no_question": 1}
    words = ["label", "prompt_intent", "--by", f"openai:tiny@{NOWHERE}", "--store", str(store.folder)]
    assert main([*words, "--import-batch", str(results(tmp_path, lines))]) == 1
    assert "None of 2 results belongs to the task prompt_intent" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--export-batch", "a", "--import-batch", "b"],
        ["--export-batch", "there.jsonl"],
        ["--export-batch", "a", "--dry-run"],
        ["--import-batch", "a", "--from", "b", "--labeller", "c"],
        ["--batch-form", "openai"],
        ["--import-batch", "a", "--again"],
        ["--by", "rules", "--export-batch", "a"],
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.jsonl").write_text("somebody's")
    named = [] if "--by" in arguments or "--from" in arguments else ["--by", f"openai:tiny@{NOWHERE}"]
    assert main(["label", "sentiment", *named, *arguments, "--store", str(store_of(tmp_path, ["a"]).folder)]) == 2
    assert (tmp_path / "there.jsonl").read_text() == "somebody's" and not (tmp_path / "a").exists()


def test_no_file_of_results_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["label", "sentiment", "--by", f"openai:tiny@{NOWHERE}", "--store", str(store_of(tmp_path, ["a"]).folder)]
    assert main([*words, "--import-batch", str(tmp_path / "none.jsonl")]) == 1
    assert "can't be read" in capsys.readouterr().err


def test_the_limits_are_the_providers() -> None:
    assert (FORMS["openai"].most_requests, FORMS["openai"].most_bytes) == (50_000, 200_000_000)
    assert (FORMS["anthropic"].most_requests, FORMS["anthropic"].most_bytes) == (100_000, 256_000_000)
    assert batch_forms.result(b"") is None
