"""The traps of Inspect logs (design/formats.md#inspect). Small ones are samples in `inspect/_cases`."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from agentsignals.formats import Reading, identify, zip_members
from agentsignals.formats.inspect import FORMAT
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.model import Session
from tests.formats.reading import given
from tests.inspect_logs import archive, header, model, sample, say, span, tool, usage, user


def read(*logs: bytes) -> Reading:
    return FORMAT.read([given(data, "inspect", f"{n}.eval") for n, data in enumerate(logs)])


def session_of(*events: dict[str, Any], **facts: Any) -> Session:
    (session,) = read(archive(sample(events=list(events), **facts))).sessions
    return session


def test_a_log_is_claimed_by_its_first_member_and_keyed_by_its_task() -> None:
    data = archive(sample())
    found = identify(Head(data[:HEAD_BYTES], "x.bin", False))
    assert found is not None
    assert (found[0].name, found[1].keys) == ("inspect", ["inspect:T1"])


@pytest.mark.parametrize(
    "members",
    [{"a.txt": b"x"}, {"samples/../etc": b"x"}, {"word/document.xml": b"x"}],
    ids=["text", "samples", "office"],
)
def test_another_archive_is_not(members: dict[str, bytes]) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)
    assert identify(Head(out.getvalue(), "x.eval", True)) is None


@pytest.mark.parametrize("spec", [b"[]", b'{"eval": 7}', b'{"eval": {"task_id": 7}}', b"\xff", b'{"eval": {"task_id"'])
def test_an_odd_specification_names_no_task(spec: bytes) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("header.json", spec)
    claim = FORMAT.claims(Head(out.getvalue(), "x.eval", True))
    assert claim is not None
    assert claim.keys == []


def test_an_attachment_named_too_often_stays_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsignals.formats.inspect.records.MAX_ATTACHED_CHARS", 10)
    name = f"attachment://{'0a' * 16}"
    session = session_of(model(1, [user(name * 3, "1")], say("x")), attachments={"0a" * 16: "12345678"})
    assert session.turns[0].text == "12345678" + 2 * name


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_members, "MAX_DOCUMENT_BYTES", 100_000)
    bomb = json.dumps(sample(2, input="0" * 2_000_000)).encode()
    one = given(archive(sample(1), members={"samples/2_epoch_1.json": bomb}), "inspect", "a.eval")
    assert len(FORMAT.read([one]).sessions) == 1
    assert one.artifact.skipped_reasons == {"member_too_large": 1}


def test_many_members_together_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [sample(n, input="0" * 10_000) for n in range(5)]
    monkeypatch.setattr(zip_members, "MAX_ARCHIVE_BYTES", 25_000)
    one = given(archive(*several), "inspect", "a.eval")
    assert len(FORMAT.read([one]).sessions) == 2
    assert one.artifact.skipped_reasons == {"member_too_large": 3}
    monkeypatch.setattr(zip_members, "MAX_ARCHIVE_BYTES", 0)
    one = given(archive(*several), "inspect", "a.eval")
    assert FORMAT.read([one]).sessions == []
    assert one.artifact.skipped_reasons == {"archive_too_large": 7}


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_nests_are_no_trouble(depth: int) -> None:
    deep = ('{"a":' * depth + "1" + "}" * depth).encode()
    text = json.dumps(sample(1, events=[tool(1, "c", "bash", "XX"), tool(2, "d", "bash", "fine")]))
    data = archive(sample(2), members={"samples/1_epoch_1.json": text.encode().replace(b'"XX"', deep)})
    assert {s.session_id for s in read(data).sessions} >= {"T1/2_epoch_1"}


def test_an_errored_sample_that_was_scored_all_the_same_counts() -> None:
    error = {"message": "ToolError('x')", "traceback": ""}
    (scored,) = read(archive(sample(error=error, scores={"s": {"value": "C"}}))).attempts
    (alone,) = read(archive(sample(error=error))).attempts
    assert (scored.reward, scored.reward_counts, scored.ending) == (1.0, True, "infrastructure")
    assert (alone.reward, alone.reward_counts) == (None, None)


def test_runs_of_a_sample_that_were_thrown_away_are_in_the_bill_by_themselves() -> None:
    thrown = {
        "message": "x",
        "traceback": "",
        "events": [called(1, "openai/gpt-x", used=usage(300, 30, total_cost=0.5))],
    }
    used = usage(20, 5, total_cost=0.25)
    one = sample(
        events=[called(2, "openai/gpt-x", used=used)], model_usage={"openai/gpt-x": used}, error_retries=[thrown]
    )
    (part,) = read(archive(one)).attempts
    assert (part.input_tokens, part.cost_usd) == (20, 0.25)
    assert (part.other_input_tokens, part.other_output_tokens, part.other_cost_usd) == (300, 30, 0.5)


def test_a_call_that_fell_back_is_of_the_model_that_answered() -> None:
    event = called(1, "openai/gpt-x")
    event["output"]["fallback"] = {"model": "openai/gpt-x", "fallback_model": "openai/gpt-y"}
    (session,) = read(archive(sample(events=[event]))).sessions
    assert [step.model for step in session.steps] == ["openai/gpt-y"]


@pytest.mark.parametrize(("used", "n"), [(usage(30, 4), 1), (usage(0, 0), 0), (None, 0)])
def test_a_call_that_was_paid_for_and_has_no_answer_is_billed(used: dict[str, Any] | None, n: int) -> None:
    event = model(1, [user("Do it", "1")], None, used=used, error="content filter")
    (session,) = read(archive(sample(events=[event]))).sessions
    assert [(step.input_tokens, step.output_tokens) for step in session.steps] == [(30, 4)] * n
    assert [e.kind for e in session.events if e.kind == "api_error"] == ["api_error"]


ROLES = {"target": {"model": "acme/under-test"}, "judge": {"model": "other/judge"}}


def called(second: int, by: str, **more: Any) -> dict[str, Any]:
    return model(second, [user("Do it", "1")], say("Done", f"a{second}"), **more) | {"model": by}


@pytest.mark.parametrize(
    ("named", "roles", "calls", "tried"),
    [
        ("none/none", ROLES, ["acme/under-test"], "acme/under-test"),
        ("none/none", ROLES, ["other/auditor", "other/auditor", "acme/under-test"], "acme/under-test"),
        ("none/none", {"writer": {"model": "acme/w"}}, ["acme/w"], "acme/w"),
        ("openai/gpt-x", ROLES, ["openai/gpt-x", "acme/under-test"], "openai/gpt-x"),
        ("openai/gpt-x", None, ["acme/served"], "acme/served"),
        ("openai/gpt-5.2", None, ["gpt-5.2"], "openai/gpt-5.2"),
        ("openai/gpt-x", ROLES, [], "openai/gpt-x"),
    ],
    ids=[
        "roles alone",
        "an auditor and its target",
        "one role",
        "named and used",
        "another one served",
        "another spelling",
        "no calls",
    ],
)
def test_an_attempt_is_of_the_model_that_served_it(
    named: str, roles: dict[str, Any] | None, calls: list[str], tried: str
) -> None:
    events = [called(n, by) for n, by in enumerate(calls)]
    found = read(archive(sample(events=events), head=header(model=named, model_roles=roles)))
    (session,), (part,) = found.sessions, found.attempts
    assert (session.model, part.knobs["model_id"]) == (tried, tried)
    assert [k for k in part.knobs if k.startswith("model_roles.")] == [f"model_roles.{r}" for r in roles or ()]


@pytest.mark.parametrize(
    ("used", "whole", "uncached", "read_back", "out"),
    [
        (usage(20, 5, 105, input_tokens_cache_read=80), 100, 20, 80, 5),
        (usage(100, 5, 105, input_tokens_cache_read=80), 100, 20, 80, 5),
        (usage(10, 5, 105, input_tokens_cache_read=80, input_tokens_cache_write=10), 100, 10, 80, 5),
        (usage(100, 5, 135, input_tokens_cache_read=80, reasoning_tokens=30), 100, 20, 80, 35),
        (usage(20, 35, 135, input_tokens_cache_read=80, reasoning_tokens=30), 100, 20, 80, 35),
    ],
    ids=["apart", "older: within", "written", "older: reasoning in the total alone", "reasoning within"],
)
def test_input_of_a_harness_includes_what_was_cached_and_a_session_s_does_not(
    used: dict[str, Any], whole: int, uncached: int, read_back: int, out: int
) -> None:
    one = sample(events=[called(1, "openai/gpt-x", used=used)], model_usage={"openai/gpt-x": used})
    found = read(archive(one))
    (step,), (part,) = found.sessions[0].steps, found.attempts
    assert (part.input_tokens, part.cache_read_tokens, part.output_tokens) == (whole, read_back, out)
    assert (step.input_tokens, step.cache_read_tokens, step.output_tokens) == (uncached, read_back, out)


def test_graders_are_in_the_bill_by_themselves() -> None:
    graded = called(2, "other/judge", used=usage(900, 90, total_cost=0.5), span_id="g")
    one = sample(
        events=[called(1, "openai/gpt-x", used=usage(20, 5, total_cost=0.25)), span("g", "scorer", "judge"), graded],
        model_usage={"openai/gpt-x": usage(20, 5, total_cost=0.25), "other/judge": usage(900, 90, total_cost=0.5)},
    )
    (part,) = read(archive(one)).attempts
    assert (part.input_tokens, part.output_tokens, part.cost_usd) == (20, 5, 0.25)
    assert (part.other_input_tokens, part.other_output_tokens, part.other_cost_usd) == (900, 90, 0.5)
