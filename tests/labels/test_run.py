"""Runs over a store: nothing is asked twice, nothing finished is lost, nothing is left out in silence."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli.output import Bar
from agentsignals.errors import LabelError, StoreError
from agentsignals.ingest import pipeline
from agentsignals.labels import answers
from agentsignals.labels import run as running
from agentsignals.labels.labellers import labeller
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.matching import between
from agentsignals.labels.run import SILENT_S, Meter, Summary, estimate
from agentsignals.labels.tasks import task
from agentsignals.labels.units import Selection
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from tests.golden import SAMPLES
from tests.labels.server import Server, label, material, section
from tests.labels.stores import judge, session_id, store_of


def silent(stage: str, done: int, total: int | None, detail: str) -> None:
    """Says nothing."""


def values(store: Store, name: str = "sentiment") -> dict[tuple[str, int | None], str]:
    asked = f"SELECT session_id, turn, value FROM labels WHERE task = '{name}' ORDER BY ALL"
    return {(session[-1], turn): value for session, turn, value in rows(store, asked)[1]}


def by_words(body: dict[str, Any]) -> str:
    """A judge that one can follow."""
    text = material(body)
    return label("NEGATIVE" if "bad" in text else "POSITIVE" if "good" in text else "NEUTRAL")


def test_labels_land_in_the_store_with_who_and_why(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["do it", "that is bad"], ["good work"])
    server.answers = by_words
    summary = judge(store, server)
    assert values(store) == {("0", 0): "NEUTRAL", ("0", 1): "NEGATIVE", ("1", 0): "POSITIVE"}
    (row,) = [r for r in sidecars.labels_of(store.folder, "sentiment", "openai:tiny") if r.label.value == "NEGATIVE"]
    one = row.label
    assert (one.reason, one.model, one.prompt_hash) == ("because", "tiny", task("sentiment").prompt_hash)
    assert one.created_at is not None
    assert (summary.labelled, summary.sessions, summary.calls) == (3, 2, 3)
    assert (summary.input_tokens, summary.output_tokens) == (300, 30)
    assert summary.file.endswith(".parquet") and summary.failed == {}


def test_the_same_message_is_asked_once(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["do it", "do it", "now"], ["do it"])
    summary = judge(store, server)
    assert summary.labelled == 4 and summary.calls == 2 and summary.repeated + summary.kept == 2
    assert server.answered == {"do it": 1, "now": 1}


def test_a_second_run_asks_only_what_is_new(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "two"], ["three"])
    judge(store, server, selection=Selection(f"session_id = '{session_id(1)}'"))
    assert set(server.answered) == {"three"}
    summary = judge(store, server)
    assert server.answered == {"one": 1, "two": 1, "three": 1}
    assert (summary.labelled, summary.kept, summary.calls) == (3, 1, 2)
    assert judge(store, server).calls == 0


def test_labels_of_messages_outside_a_run_stay(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one"], ["two"])
    judge(store, server)
    server.answers = lambda _: label("NEGATIVE")
    summary = judge(store, server, selection=Selection(f"session_id = '{session_id(0)}'"))
    assert summary.labelled == 1 and set(values(store)) == {("0", 0), ("1", 0)}


def test_failures_are_kept_with_their_reason_and_asked_again_by_the_next_run(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["fine", "broken", "broken"])
    server.answers = lambda body: "no json" if "broken" in material(body) else label("NEUTRAL")
    summary = judge(store, server)
    assert summary.failed == {"invalid_json": 2} and summary.labelled == 1
    assert {(f["turn"], f["reason"]) for f in summary.failures} == {(1, "invalid_json"), (2, "invalid_json")}
    assert server.answered["broken"] == 3, "three answers to one question, though two messages say it"
    assert values(store) == {("0", 0): "NEUTRAL"}, "no label is made of a failure"
    server.answers = lambda _: label("NEGATIVE")
    again = judge(store, server)
    assert again.labelled == 3 and again.failed == {} and again.calls == 1
    assert server.answered["fine"] == 1


def test_another_model_prompt_or_schema_asks_anew(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(tmp_path, ["one"], ["two"])
    judge(store, server)
    running.run(store, task("sentiment"), ChatServer(f"big@{server.url}"), Selection(), silent)
    assert server.answered == {"one": 2, "two": 2}
    monkeypatch.setitem(task("sentiment").__dict__, "prompt", "Another prompt.")
    monkeypatch.setitem(task("sentiment").__dict__, "prompt_hash", "another")
    summary = judge(store, server, selection=Selection(limit=1))
    assert sum(server.answered.values()) == 5
    assert summary.of_earlier_prompts == 1, "the other label is still of the first prompt, and the run says so"


def test_what_is_not_asked_about_is_counted(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["start with this", "no, wrong"], ["only one"])
    assert judge(store, server, "pushback").failed == {"invalid_answer": 1}
    server.answers = lambda _: label("correction")
    summary = judge(store, server, "pushback")
    assert summary.labelled == 1 and summary.not_asked == {"first_turn": 2}
    assert section(next(iter(server.answered)), "last-request") == "start with this"


def test_an_answer_that_nothing_is_to_be_said_is_counted_and_no_label(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["rename `load` in src/a.py to `read`; it should return None for a missing file"])
    server.answers = lambda _: json.dumps({"restated": False, "score": 0, "reason": "acts at once"})
    summary = judge(store, server, "task_paraphrase_accuracy")
    assert summary.no_verdict == {"no_restatement": 1} and summary.labelled == 0
    assert judge(store, server, "task_paraphrase_accuracy").calls == 0


SUCCESS = {"goal_completion": 9, "final_state": 8, "agent_efficiency": 7, "code_quality": 6, "user_experience": 5}


def sessions_judge(body: dict[str, Any]) -> str:
    if body["response_format"]["json_schema"]["name"] == "notes":
        return json.dumps({"notes": f"notes on: {material(body)[-40:]}"})
    return json.dumps({**SUCCESS, "score": 70, "reason": "r"})


@pytest.mark.slow
def test_a_long_session_is_judged_by_notes_and_its_last_part(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, [f"request number {n}: {'word ' * 600}" for n in range(12)], ["short one"])
    server.answers = sessions_judge
    summary = judge(store, server, "session_success", window=12_000)
    names = [r["response_format"]["json_schema"]["name"] for r in server.requests]
    assert names.count("session_success") == 2 and names.count("notes") >= 2
    final = next(material(r) for r in server.requests if "<notes-on-part-1-of-" in material(r))
    assert final.count("<notes-on-part-") == names.count("notes")
    n = names.count("notes") + 1
    assert "request number 11" in section(final, f"part-{n}-of-{n}")
    shown = "".join(material(r) for r in server.requests)
    assert all(f"request number {n}:" in shown for n in range(12)), "every part is read by somebody"
    found = {r.session_id[-1]: r.label for r in sidecars.labels_of(store.folder, "session_success", "openai:tiny")}
    assert summary.labelled == 2 and found["0"].number == 70.0
    assert json.loads(found["0"].detail or "")["parts"] == names.count("notes") + 1
    assert "parts" not in json.loads(found["1"].detail or "")
    before = len(server.requests)
    assert judge(store, server, "session_success", window=12_000).kept == 2 and len(server.requests) == before


def test_a_session_whose_notes_failed_is_a_failure_that_says_so(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, [f"request number {n}: {'word ' * 600}" for n in range(12)])
    server.answers = lambda body: "no" if '"notes"' in body["messages"][0]["content"] else sessions_judge(body)
    assert judge(store, server, "session_success", window=12_000).failed == {"notes_invalid_json": 1}
    server.answers = sessions_judge
    assert judge(store, server, "session_success", window=12_000).labelled == 1


@pytest.mark.slow
def test_a_session_too_long_even_for_notes_is_a_failure_not_a_cut(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, [f"request number {n}: {'word ' * 800}" for n in range(40)])
    server.answers = lambda body: (
        json.dumps({"notes": " ".join(map(str, range(400)))})
        if '"notes"' in body["messages"][0]["content"]
        else sessions_judge(body)
    )
    summary = judge(store, server, "session_success", window=7_000)
    assert summary.failed == {"too_long": 1} and summary.labelled == 0


def test_what_leaves_the_machine_is_masked_and_counted(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "a1B2" * 8
    store = store_of(tmp_path, [f"use {secret} and mail jo@example.org", "in /home/jo/shop"])
    judge(store, server)
    assert secret in "".join(server.answered), "a server on this machine sees texts as they are"
    server.answered.clear()
    summary = judge(store, server, selection=Selection(redact=True))
    told = "".join(server.answered)
    assert secret not in told and "jo@example.org" not in told and "/home/jo/" not in told and "use [" in told
    assert sum(summary.redacted.values()) >= 3


def test_finished_labels_are_written_when_the_server_gives_up(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, [f"message {n}" for n in range(30)])
    server.fault = lambda _: 401 if len(server.answered) >= 5 else None
    with pytest.raises(LabelError):
        judge(store, server, concurrency=2)
    done = values(store)
    assert 5 <= len(done) <= 7
    server.fault = lambda _: None
    assert judge(store, server).labelled == 30
    assert set(server.answered.values()) == {1}, "nothing that was answered is asked again"


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, [f"message {n}" for n in range(40)])

    def interrupts(stage: str, done: int, total: int | None, _: str) -> None:
        assert (stage, total) == ("labelling", 40)
        if done == 10:
            raise KeyboardInterrupt

    by = ChatServer(f"tiny@{server.url}", concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        running.run(store, task("sentiment"), by, Selection(), interrupts)
    assert 10 <= len(values(store)) < 40
    assert judge(store, server).labelled == 40
    assert set(server.answered.values()) == {1}


def test_labels_say_which_model_gave_them_and_agreement_warns_of_several(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "two"], ["three"])
    server.served = {"model": "tiny-1"}
    judge(store, server, selection=Selection(limit=2))
    server.served = {"model": "tiny-2"}
    summary = judge(store, server)
    assert summary.served_models == {"tiny-1": 2, "tiny-2": 1}
    asked = "SELECT DISTINCT model, served_model FROM labels ORDER BY ALL"
    assert rows(store, asked)[1] == [("tiny", "tiny-1"), ("tiny", "tiny-2")]
    running.run(store, task("sentiment"), labeller("rules"), Selection(), silent)
    assert any(
        "by 2 models" in warning for warning in between(store, task("sentiment"), "openai:tiny", "rules").warnings
    )


def test_paid_answers_of_an_older_program_are_kept(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one"])
    judge(store, server)
    with closing(sqlite3.connect(store.folder / "labels" / "answers.sqlite")) as db, db:
        for column in ("model", "cut_chars"):
            db.execute(f"ALTER TABLE answers DROP COLUMN {column}")
    assert (judge(store, server).kept, sum(server.answered.values())) == (1, 1)


def test_rules_and_models_stand_side_by_side(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["this is ridiculous", "do it"])
    judge(store, server)
    summary = running.run(store, task("sentiment"), labeller("rules"), Selection(), silent)
    assert summary.calls == 0 and summary.cost_usd is None and "kappa 0.50" in summary.measured
    found = rows(store, "SELECT labeller, turn, value FROM labels ORDER BY ALL")[1]
    assert found == [("openai:tiny", 0, "NEUTRAL"), ("openai:tiny", 1, "NEUTRAL"), ("rules", 0, "NEGATIVE"),
                     ("rules", 1, "NEUTRAL")]  # fmt: skip


def test_an_estimate_asks_nothing_and_says_what_is_left_to_ask(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "two", "two"], ["three"])
    by = ChatServer(f"gpt-4o-mini@{server.url}")
    found = estimate(store, task("sentiment"), by, Selection(), 8_000)
    assert (found.units, found.calls, found.repeated, found.kept) == (4, 3, 1, 0)
    assert found.cost_usd is not None and found.cost_usd > 0
    assert not (store.folder / sidecars.LABELS_FOLDER).exists(), "nothing is written either"
    running.run(store, task("sentiment"), by, Selection(f"session_id = '{session_id(1)}'"), silent)
    found = estimate(store, task("sentiment"), by, Selection(), 8_000)
    assert (found.calls, found.kept) == (2, 1)
    before = len(server.requests)
    real = running.run(store, task("sentiment"), by, Selection(), silent)
    assert real.calls == found.calls and len(server.requests) == before + 2
    unknown = estimate(store, task("sentiment"), ChatServer(f"tiny@{server.url}"), Selection(), 8_000)
    assert unknown.cost_usd is None, "a price nobody knows is not zero"


def test_an_estimate_counts_the_notes_of_long_sessions(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, [f"request number {n}: {'word ' * 600}" for n in range(12)])
    server.answers = sessions_judge
    found = estimate(store, task("session_success"), ChatServer(f"tiny@{server.url}"), Selection(), 12_000)
    real = judge(store, server, "session_success", window=12_000)
    assert found.long == 1 and found.calls == real.calls > 2


def test_every_run_leaves_what_it_was(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one"])
    judge(store, server)
    db = sqlite3.connect(store.folder / sidecars.LABELS_FOLDER / answers.NAME)
    ((started, ended, told),) = db.execute("SELECT * FROM runs").fetchall()
    kept = " ".join(str(cell) for row in db.execute("SELECT * FROM answers") for cell in row)
    db.close()
    assert started <= ended
    found = json.loads(told)
    assert (found["labeller"], found["prompt_hash"], found["calls"]) == (
        "openai:tiny",
        task("sentiment").prompt_hash,
        1,
    )
    assert found["told"]["url"] == server.url and found["schema"]
    assert "one" not in kept.split(), "no text of a session lies with the answers"


def test_a_damaged_file_of_answers_is_not_thrown_away(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one"])
    path = store.folder / sidecars.LABELS_FOLDER / answers.NAME
    path.parent.mkdir()
    path.write_bytes(b"no database at all " * 100)
    with pytest.raises(StoreError):
        judge(store, server)
    assert path.read_bytes().startswith(b"no database")


def test_eval_runs_are_not_asked_about(tmp_path: Path, server: Server) -> None:
    pipeline.analyze([str(SAMPLES / "harbor")], tmp_path / "store", jobs=1)
    store = Store(tmp_path / "store")
    summary = judge(store, server)
    assert set(summary.not_asked) == {"eval_session"} and not server.requests


# -- what a person sees of a run while it goes on ----------------------------------------------------------------------


Step = tuple[int, int | None, str]


def steps_of(store: Store, server: Server, name: str, selection: Selection, model: str = "tiny") -> list[Step]:
    steps: list[Step] = []
    by = ChatServer(f"{model}@{server.url}", wait=lambda _: None, concurrency=2)
    running.run(store, task(name), by, selection, lambda _, done, total, detail: steps.append((done, total, detail)))
    return steps


@pytest.mark.parametrize("limit", [None, 1, 3, 100])
@pytest.mark.parametrize("name", ["sentiment", "pushback"])
def test_never_more_is_done_than_there_is(tmp_path: Path, server: Server, name: str, limit: int | None) -> None:
    """With first turns that are not asked about, repeats, failures and a run that goes on where another stopped."""
    store = store_of(tmp_path, ["one", "two", "one"], ["three"], ["four", "bad"], ["five", "bad", "six"])
    server.answers = lambda body: "none" if "bad" in material(body) else label(task(name).values[0])
    for _ in range(2):
        steps = steps_of(store, server, name, Selection(limit=limit))
        # Where counting them takes five seconds, a sign of life comes before it is known how many there are.
        assert all(done == 0 if total is None else done <= total for done, total, _ in steps) and steps[-1][1]
        assert steps[-1][0] == steps[-1][1] or limit == 100, "it ends where it said it would"
        assert [done for done, *_ in steps] == sorted(done for done, *_ in steps)


def test_calls_failures_tokens_and_money_are_shown(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "bad"])
    server.answers = lambda body: "none" if "bad" in material(body) else label("NEUTRAL")
    last = steps_of(store, server, "sentiment", Selection(), model="gpt-4o-mini")[-1][2]
    assert last.startswith("4 calls (") and "1 failed, 400 tokens in, 40 out, $0.00" in last
    assert "$" not in steps_of(store, server, "sentiment", Selection())[-1][2], "a price nobody knows is not zero"


def figures(clock: Callable[[], float]) -> tuple[Meter, Summary]:
    spent = Summary(task="t", labeller="l", model="gpt-4o-mini", prompt_hash="p", calls=30)
    spent.input_tokens = spent.output_tokens = 2_000_000
    return Meter(clock), spent


def test_the_rate_is_by_the_clock_and_the_cost_by_the_price_table() -> None:
    now = 0.0
    meter, spent = figures(lambda: now)
    now = 20.0
    meter.answered()
    assert meter.words(spent, 0) == "30 calls (90 a minute), 2,000,000 tokens in, 2,000,000 out, $1.50"


@pytest.mark.parametrize(
    ("seconds", "waiting", "said"), [(SILENT_S - 0.1, 2, False), (SILENT_S, 2, True), (9, 0, False)]
)
def test_silence_is_said_after_a_while(seconds: float, waiting: int, said: bool) -> None:
    now = 100.0
    meter, spent = figures(lambda: now)
    meter.answered()
    now += seconds
    assert ("no answer for" in meter.words(spent, waiting)) == said


@pytest.mark.slow
def test_a_person_hears_of_a_server_that_hangs_within_seconds(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "two"])
    server.fault = lambda _: "hang"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI")}
    words = [sys.executable, "-m", "agentsignals", "label", "sentiment", "--by", f"openai:m@{server.url}"]
    began = time.monotonic()
    with subprocess.Popen(
        [*words, "--store", str(store.folder)], stderr=subprocess.PIPE, text=True, env=clean
    ) as asking:
        assert asking.stderr is not None
        first = next(line for line in asking.stderr if "no answer" in line)
        took_s = time.monotonic() - began
        asking.send_signal(signal.SIGKILL)
    assert "labelling: 0 of 2; no answer for" in first and "2 waiting" in first and took_s < 3 * Bar.EVERY_S


def test_a_run_that_ends_for_a_hanging_server_keeps_what_it_has(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "two", "three", "four"])
    server.fault = lambda body: None if material(body) == "one" else "hang"
    by = ChatServer(f"tiny@{server.url}", wait=lambda _: None, concurrency=1, timeout_s=0.2)
    with pytest.raises(LabelError, match="did not answer"):
        running.run(store, task("sentiment"), by, Selection(), lambda *_: None)
    server.fault = lambda _: None
    steps_of(store, server, "sentiment", Selection())
    assert dict(server.answered) == {"one": 1, "two": 1, "three": 1, "four": 1}
