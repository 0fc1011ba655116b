"""The traps of Inspect logs, one test each (design/formats.md#inspect)."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agentsignals.formats import Input, Reading, identify, zip_members
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.inspect import FORMAT
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.model import Artifact, Attempt, Session
from tests import inspect_logs as log
from tests.inspect_logs import archive, at, call, header, model, sample, say, span, tool, usage, user

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval" / "inspect"


def given(data: bytes, name: str = "a.eval") -> Input:
    return Input(data, Artifact(artifact_id=name, source="t", path=name, format="inspect", sha256="", bytes=len(data)))


def read(*logs: bytes) -> Reading:
    return FORMAT.read([given(data, f"{n}.eval") for n, data in enumerate(logs)])


def session_of(*events: dict[str, Any], **facts: Any) -> Session:
    (session,) = read(archive(sample(events=list(events), **facts))).sessions
    return session


def attempt_of(head: dict[str, Any] | None = None, **facts: Any) -> Attempt:
    (part,) = read(archive(sample(**facts), head=head)).attempts
    return part


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


def test_epochs_are_trials_of_their_own() -> None:
    reading = read(archive(sample("a", 1), sample("a", 2)))
    sessions = attach_attempts(reading.sessions, reading.attempts, {})
    assert [(s.session_id, s.context) for s in sessions] == [("T1/a_epoch_1", "eval"), ("T1/a_epoch_2", "eval")]
    attempts = [s.attempt for s in sessions if s.attempt is not None]
    assert [(a.trial_id, a.attempt_index, a.task_id) for a in attempts] == [
        ("T1/a_epoch_1", 0, "acme/mend/a"),
        ("T1/a_epoch_2", 0, "acme/mend/a"),
    ]
    assert all(a.has_transcript for a in attempts)


def test_a_sample_run_again_by_a_retry_is_the_next_attempt_and_one_it_kept_counts_once() -> None:
    kept = sample("b", uuid="B", started_at=log.WHEN.format(1))
    failed = sample("a", uuid="A1", started_at=log.WHEN.format(2), error={"message": "RuntimeError('x')"})
    again = sample("a", uuid="A2", started_at=log.WHEN.format(30), scores={"s": {"value": "C"}})
    reading = read(archive(kept, failed), archive(kept, again))
    sessions = attach_attempts(reading.sessions, reading.attempts, {})
    told = [(s.session_id, s.attempt.attempt_index, s.attempt.is_last) for s in sessions if s.attempt is not None]
    assert told == [("A1", 0, False), ("A2", 1, True), ("B", 0, True)]


@pytest.mark.parametrize(
    ("value", "reward"),
    [("C", 1.0), ("I", 0.0), ("P", 0.5), ("N", 0.0), (0.25, 0.25), (True, 1.0), ("Yes", 1.0), ("0.75", 0.75),
     ("c", None), ("good", None), (None, None), ([1], None), ("nan", None), ("1" * 400, None)],
)  # fmt: skip
def test_a_grade_becomes_a_reward_and_a_word_that_is_none_does_not(value: Any, reward: float | None) -> None:
    assert attempt_of(scores={"match": {"value": value}}).reward == reward


def test_of_several_scores_none_is_the_reward() -> None:
    part = attempt_of(scores={"match": {"value": "C"}, "judge": {"value": {"tone": 3, "style": "odd"}}})
    assert (part.reward, part.rewards) == (None, {"match": 1.0, "judge.tone": 3.0})
    assert part.ratings == {"match": "C", "judge": {"tone": 3, "style": "odd"}}


def test_a_number_that_is_none_costs_only_itself() -> None:
    data = archive(sample(scores={"a": {"value": float("nan")}, "b": {"value": 2}}))
    (part,) = read(data).attempts
    assert part.rewards == {"b": 2.0}


@pytest.mark.parametrize(
    ("facts", "status", "timed_out", "exception"),
    [
        ({"limit": {"type": "time", "limit": 600}}, "limit:time", True, None),
        ({"limit": {"type": "message", "limit": 40}}, "limit:message", False, None),
        ({"error": {"message": "RuntimeError('no docker')"}}, "error", None, "RuntimeError"),
        ({"error": {"message": "Traceback (most recent call last):\n x\nasyncio.TimeoutError: y"}}, "error", None,
         "TimeoutError"),
        ({"completed_at": log.WHEN.format(9)}, "completed", False, None),
        ({}, None, None, None),
    ],
)  # fmt: skip
def test_how_a_sample_ended(facts: Any, status: str | None, timed_out: bool | None, exception: str | None) -> None:
    part = attempt_of(**facts)
    assert (part.exit_status, part.timed_out, part.exception) == (status, timed_out, exception)


def test_the_treatment_is_what_the_header_says_and_what_is_null_was_not_said() -> None:
    found = attempt_of().knobs
    assert found["model_id"] == "openai/gpt-x"
    assert (found["agent_type"], found["dataset"], found["timeout_s"], found["concurrency"]) == (
        "react",
        "acme-tasks",
        600,
        8,
    )
    assert (found["temperature"], found["max_tokens"], found["task_args.hints"]) == (0.5, 512, False)
    assert "token_limit" not in found
    assert attempt_of(header(solver="my_agent")).knobs["agent_type"] == "my_agent"


def test_a_header_may_count_more_samples_than_the_log_holds() -> None:
    reading = read(archive(sample(1), sample(2)))
    assert len(reading.sessions) == 2, "the header's dataset has 790"


def test_a_log_without_samples_is_accounted_for() -> None:
    one = given(archive(head=header("error")))
    assert FORMAT.read([one]) == Reading()
    assert one.artifact.note == "status error, 0 samples"
    assert (one.artifact.records, one.artifact.skipped) == (3, 0)


def test_a_run_that_was_killed_has_no_header_and_keeps_its_samples() -> None:
    one = given(archive(sample(), ended=False))
    reading = FORMAT.read([one])
    assert [p.knobs["model_id"] for p in reading.attempts] == ["openai/gpt-x"]
    assert one.artifact.note == "no header, the run did not end, 1 samples"


def test_long_texts_are_put_where_they_are_named() -> None:
    a, b = "0a" * 16, "0b" * 16
    answer = say(f"attachment://{a}", "2", tool_calls=[call("c", "bash", cmd=f"attachment://{b}")])
    session = session_of(
        model(1, [user(f"tc://{a}", "1")], answer), tool(2, "c", "bash", f"<attachment://{b}> attachment://{'9' * 32}"),
        attachments={a: "a long text", b: 'make "test"'},
    )  # fmt: skip
    assert session.turns[0].text == "a long text"
    assert [e.text for e in session.events if e.kind in ("text", "tool_result")] == [
        "a long text", f'<make "test"> attachment://{"9" * 32}'
    ]  # fmt: skip
    assert session.tool_calls[0].command == 'make "test"'


def test_an_attachment_named_too_often_stays_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsignals.formats.inspect.records.MAX_ATTACHED_CHARS", 10)
    name = f"attachment://{'0a' * 16}"
    session = session_of(model(1, [user(name * 3, "1")], say("x")), attachments={"0a" * 16: "12345678"})
    assert session.turns[0].text == "12345678" + 2 * name


@pytest.mark.parametrize("place", ["message_pool", "events_data"])
def test_the_input_of_a_model_event_may_point_into_a_pool(place: str) -> None:
    pool = [user("go", "1"), say("one", "2"), user("on", "3", None), {"role": "tool"}]
    facts = {"message_pool": pool} if place == "message_pool" else {"events_data": {"messages": pool, "calls": []}}
    session = session_of(
        model(1, [], pool[1], input_refs=[[0, 1]]), model(2, [], say("two", "4"), input_refs=[[0, 2], [2, 3], [9, 99]]),
        model(3, [], say("three", "5"), input_refs="x"), model(4, [], say("four", "6"), input_refs=[[-1, 2], [1], 3]),
        **facts,
    )  # fmt: skip
    assert [(e.kind, e.text) for e in session.events] == [
        ("human_turn", "go"), ("text", "one"), ("meta", "on"), ("text", "two"), ("text", "three"), ("text", "four"),
    ]  # fmt: skip


def test_messages_without_ids_count_once_and_repeated_words_each_time() -> None:
    ask, on, ok = user("go"), user("go on", source=None), say("ok")
    session = session_of(
        model(1, [ask], ok), model(2, [ask, ok, on], ok), model(3, [ask, ok, on, ok, on], ok),
        messages=[ask, ok, on, ok, on, ok],
    )  # fmt: skip
    assert [e.text for e in session.events] == ["go", "ok", "go on", "ok", "go on", "ok"]
    assert [t.text for t in session.turns] == ["go"], "what the scaffold says is no person's turn"


def test_a_shortened_conversation_repeats_nothing() -> None:
    a, b, c = user("go"), say("one"), user("next", source=None)
    session = session_of(model(1, [a], b), model(2, [a, b, c], say("two")), model(3, [a, c], say("three")))
    assert [e.text for e in session.events] == ["go", "one", "next", "two", "three"]


@pytest.mark.parametrize(
    "scope",
    [
        [span("g", "scorers", "s"), span("h", "scorer", "s", "g")],
        [{"event": "step", "type": "scorer", "action": "begin"}],
    ],
)
def test_what_a_scorer_asks_its_model_is_no_step(scope: list[dict[str, Any]]) -> None:
    where = {"span_id": "h"} if len(scope) == 2 else {}
    done = [] if where else [{"event": "step", "type": "scorer", "action": "end"}]
    session = session_of(
        model(1, [user("go")], say("ok"), used=usage(5, 1)), *scope,
        model(2, [user("grade")], say("C"), **where), *done,
        model(3, [user("go"), say("ok")], say("late"), used=usage(7, 2)),
    )  # fmt: skip
    assert [s.input_tokens for s in session.steps] == [5, 7]
    assert [t.text for t in session.turns] == ["go"]


def test_an_agent_that_a_tool_runs_is_a_thread_and_its_solver_s_agent_is_not() -> None:
    session = session_of(
        span("s", "solver", "main"), span("a", "agent", "react", "s"),
        model(1, [user("go")], say("delegating", tool_calls=[call("c", "researcher", q="x")]), span_id="a"),
        span("t", "tool", "researcher", "a"), span("b", "agent", "researcher", "t"), span("i", "agent", "inner", "b"),
        model(2, [user("x", source=None)], say("found", tool_calls=[call("d", "bash", cmd="ls")]), span_id="i"),
        tool(3, "d", "bash", "a.py", span_id="i"), tool(4, "c", "researcher", "found", span_id="a"),
    )  # fmt: skip
    assert [(s.thread, s.model) for s in session.steps] == [("main", "openai/gpt-x"), ("b", "openai/gpt-x")]
    assert [(c.name, c.thread, c.status) for c in session.tool_calls] == [
        ("researcher", "main", "ok"),
        ("bash", "b", "ok"),
    ]
    assert len(session.turns) == 1


def test_events_that_old_logs_nest_in_a_tool_are_its_thread() -> None:
    inner = [model(2, [user("x", source=None)], say("found"))]
    nested = tool(2, "c", "researcher", "found", events=inner)
    session = session_of(model(1, [user("go")], say("", tool_calls=[call("c", "researcher")])), nested)
    assert [s.thread for s in session.steps] == ["main", "c"]


@pytest.mark.parametrize(
    ("error", "status", "class_"),
    [
        ({"type": "timeout", "message": "Command timed out"}, "error", "timeout"),
        ({"type": "permission", "message": "no"}, "error", "permission"),
        ({"type": "file_not_found", "message": "no"}, "error", "not_found"),
        ({"type": "approval", "message": "not approved"}, "rejected", None),
        ({"type": "cancelled", "message": "stop"}, "cancelled", None),
        ({"type": "parsing", "message": "bad"}, "error", "other"),
    ],
)
def test_what_became_of_a_call(error: dict[str, str], status: str, class_: str | None) -> None:
    session = session_of(
        model(1, [user("go")], say("", tool_calls=[call("c", "bash")])), tool(2, "c", "bash", error=error)
    )
    (found,) = session.tool_calls
    assert (found.status, found.error_class) == (status, class_)
    assert session.events[found.result_seq or 0].text == error["message"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, ""), (7, "7"), ({"a": 1}, '{"a": 1}'), ("plain", "plain"),
        ([{"type": "text", "text": "x"}, {"type": "image", "image": "data:"}, 3, {"text": 5}], "x"),
    ],
)  # fmt: skip
def test_a_result_is_text_as_the_model_saw_it(result: Any, text: str) -> None:
    session = session_of(model(1, [user("go")], say("", tool_calls=[call("c", "bash")])), tool(2, "c", "bash", result))
    assert session.events[session.tool_calls[0].result_seq or 0].text == text


def test_only_the_text_of_a_message_is_its_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image", "text": "b"}, {"type": "text"}]
    assert [e.text for e in session_of(model(1, [user("go")], say(parts))).events] == ["go", "a"]


def test_the_harness_s_own_sums_are_kept_beside() -> None:
    used = {"a/x": usage(5, 1, total_cost=0.5), "b/y": usage(7, 2, total_cost=0.25, input_tokens_cache_read=3)}
    part = attempt_of(model_usage=used, total_time=3.5)
    assert (part.input_tokens, part.output_tokens, part.cache_read_tokens, part.cost_usd) == (9, 3, 3, 0.75)
    assert [s.text for s in part.saying("wall_time_s")] == ["took 3.5 s"]
    assert attempt_of(model_usage={**used, "c": usage(1, 1)}).cost_usd is None


def test_a_sample_s_own_times_are_its_session_s() -> None:
    events = [model(1, [user("go")], say("ok"))]
    (own,) = read(
        archive(sample(events=events, started_at=log.WHEN.format(0), completed_at=log.WHEN.format(9)))
    ).sessions
    (events_only,) = read(archive(sample(events=events))).sessions
    assert (own.ended_at or 0) - (own.started_at or 0) == 9_000_000
    assert events_only.started_at == events_only.ended_at == (own.started_at or 0) + 1_000_000


def test_a_log_of_one_document_is_read_too() -> None:
    document = json.dumps({**header(), "samples": [sample("a"), 7, sample("b")]}).encode()
    found = identify(Head(document, "x", True))
    assert found is not None
    assert (found[0].name, found[1].keys) == ("inspect-json", ["inspect:T1"])
    one = given(document)
    assert [s.session_id for s in found[0].read([one]).sessions] == ["T1/a_epoch_1", "T1/b_epoch_1"]
    assert one.artifact.skipped_reasons == {"bad_shape": 1}
    cut = given(document[: document.index(b'"id": "b"')])
    assert len(found[0].read([cut]).sessions) == 1


def test_a_result_no_event_tells_of_is_taken_from_the_message() -> None:
    answer = {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "out"}], "error": None}
    asked = say("", tool_calls=[call("c", "bash", cmd="ls")])
    session = session_of(model(1, [user("go")], asked), model(2, [user("go"), asked, answer], say("done")))
    assert [(c.status, session.events[c.result_seq or 0].text) for c in session.tool_calls] == [("ok", "out")]


def test_a_conversation_without_events_is_read_from_its_messages() -> None:
    session = session_of(messages=[{"role": "system", "content": "s"}, user("go"), say("ok")])
    assert [e.kind for e in session.events] == ["meta", "human_turn", "text"]
    assert [(s.model, s.input_tokens) for s in session.steps] == [(None, None)]
    assert session.model == "openai/gpt-x"


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (usage(150, 20, 170, input_tokens_cache_read=100), 50),
        (usage(50, 20, 170, input_tokens_cache_read=100), 50),
        (usage(50, 20, 70), 50),
        ({"input_tokens": 50}, 50),
        ({"input_tokens": 50, "input_tokens_cache_read": 10}, 50),
        ({}, None),
    ],
    ids=["counted in", "counted beside", "none cached", "alone", "no total", "nothing"],
)
def test_the_total_tells_whether_cached_tokens_are_counted_in(used: dict[str, int], expected: int | None) -> None:
    session = session_of(model(1, [user("go")], say("ok"), used=used))
    assert [s.input_tokens for s in session.steps] == [expected]


def test_an_answer_out_of_the_log_s_own_cache_used_nothing() -> None:
    session = session_of(model(1, [user("go")], say("ok"), used=usage(50, 20), cache="read"))
    assert [(s.input_tokens, s.output_tokens) for s in session.steps] == [(0, 0)]


def test_a_model_call_that_failed_is_no_step() -> None:
    session = session_of(model(1, [user("go")], None, error="429 too many"), model(2, [user("go")], say("ok")))
    assert [(e.kind, e.text) for e in session.events] == [
        ("human_turn", "go"),
        ("api_error", "429 too many"),
        ("text", "ok"),
    ]
    assert len(session.steps) == 1


def test_the_time_of_a_step_is_when_its_answer_came() -> None:
    session = session_of(model(1, [user("go")], say("ok"), completed=log.WHEN.format(5)))
    assert (session.steps[0].timestamp or 0) - (session.turns[0].timestamp or 0) == 4_000_000


def test_reasoning_that_is_kept_back_is_empty() -> None:
    parts = [{"type": "reasoning", "reasoning": "c2VjcmV0", "redacted": True}, {"type": "text", "text": "ok"}]
    session = session_of(model(1, [user("go")], say(parts)))
    assert [(e.kind, e.text) for e in session.events[1:]] == [("thinking", ""), ("text", "ok")]


def test_compactions_interrupts_limits_and_the_unknown_are_told() -> None:
    session = session_of(
        {"event": "compaction", **at(1)}, {"event": "interrupt", **at(2)},
        {"event": "sample_limit", "message": "too long"},
        {"event": "info", "data": {"a": 1}}, {"event": "hologram", "x": "y"}, {"event": "state", "changes": []},
    )  # fmt: skip
    assert [(e.kind, e.text) for e in session.events] == [
        ("compaction", ""), ("interrupt", ""), ("harness", "too long"), ("meta", '{"a": 1}'),
        ("unknown", '{"event": "hologram", "x": "y"}'),
    ]  # fmt: skip


EDITS: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"command": "create", "file_text": "a\nb\n"}, ("edit", "create", 1, 2, 2, 0)),
    ({"command": "insert", "insert_line": 4, "insert_text": "x\ny"}, ("edit", "modify", 5, 6, 2, 0)),
    ({"command": "str_replace", "old_str": "a", "new_str": "b"}, ("edit", "modify", None, None, 1, 1)),
    ({"command": "undo_edit"}, ("edit", "modify", None, None, None, None)),
]


@pytest.mark.parametrize(("arguments", "expected"), EDITS)
def test_what_the_text_editor_changed(arguments: dict[str, Any], expected: tuple[Any, ...]) -> None:
    asked = say("", tool_calls=[call("c", "text_editor", path="a.py", **arguments)])
    session = session_of(model(1, [user("go")], asked), tool(2, "c", "text_editor", "ok"))
    (edit,), (made,) = session.edits, session.tool_calls
    assert (made.class_, edit.op, edit.start_line, edit.end_line, edit.added, edit.removed) == expected


def test_the_text_editor_reads_too() -> None:
    asked = say("", tool_calls=[call("c", "text_editor", path="a.py", command="view")])
    session = session_of(model(1, [user("go")], asked), tool(2, "c", "text_editor", "ok"))
    assert [(c.class_, c.path) for c in session.tool_calls] == [("read", "a.py")]
    assert session.edits == []


def test_bad_samples_cost_only_themselves() -> None:
    whole = archive(
        sample(1), sample(2),
        members={"samples/3_epoch_1.json": b"[]", "samples/../../4_epoch_1.json": json.dumps(sample(4)).encode()},
    )  # fmt: skip
    garbled = bytearray(whole)
    second = whole.index(b"samples/2_epoch_1.json") + len("samples/2_epoch_1.json")
    garbled[second : second + 12] = b"\xff" * 12
    one = given(bytes(garbled))
    assert [s.session_id for s in FORMAT.read([one]).sessions] == ["T1/1_epoch_1", "T1/4_epoch_1"]
    assert one.artifact.skipped_reasons == {"bad_compression": 1, "bad_shape": 1}


def test_an_archive_without_its_directory_gives_what_is_whole() -> None:
    whole = archive(sample(1), sample(2), sample(3))
    cut = whole[: whole.index(b"samples/3_epoch_1.json") + 40]
    one = given(cut)
    assert [s.session_id for s in FORMAT.read([one]).sessions] == ["T1/1_epoch_1", "T1/2_epoch_1"]
    assert one.artifact.skipped_reasons == {"cut_member": 1}


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_members, "MAX_DOCUMENT_BYTES", 100_000)
    bomb = json.dumps(sample(2, input="0" * 50_000_000)).encode()
    one = given(archive(sample(1), members={"samples/2_epoch_1.json": bomb}))
    assert len(FORMAT.read([one]).sessions) == 1
    assert one.artifact.skipped_reasons == {"member_too_large": 1}


def test_many_members_together_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [sample(n, input="0" * 10_000) for n in range(5)]
    monkeypatch.setattr(zip_members, "MAX_ARCHIVE_BYTES", 25_000)
    one = given(archive(*several))
    assert len(FORMAT.read([one]).sessions) == 2
    assert one.artifact.skipped_reasons == {"member_too_large": 3}
    monkeypatch.setattr(zip_members, "MAX_ARCHIVE_BYTES", 0)
    one = given(archive(*several))
    assert FORMAT.read([one]).sessions == []
    assert one.artifact.skipped_reasons == {"archive_too_large": 7}


def test_a_sample_in_chunks_says_what_it_says_whole() -> None:
    whole, in_chunks = read(archive(log.agentic())), read(archive(members=log.chunked(log.agentic())))
    assert in_chunks.sessions == whole.sessions
    (part,), (same,) = in_chunks.attempts, whole.attempts
    assert (part.rewards, part.trial_id, part.input_tokens) == (same.rewards, same.trial_id, same.input_tokens)


@pytest.mark.parametrize(
    ("chunk", "data", "reason", "left"),
    [
        ("messages/0", b'[{"role": ', "bad_shape", (0, 3, 4)),
        ("events/6", b"7", "bad_shape", (1, 2, 4)),
        ("attachments/0", b"[1]", "bad_shape", (1, 3, 4)),
        ("sample", b"[]", "bad_shape", (0, 0, 0)),
        ("messages/99999999", b"[{}]", "bad_shape", (1, 3, 4)),
        ("events/3", b" " * 200_001, "document_too_large", (1, 3, 4)),
    ],
)
def test_a_chunk_that_cannot_be_read_costs_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, chunk: str, data: bytes, reason: str, left: tuple[int, int, int]
) -> None:
    monkeypatch.setattr("agentsignals.formats.inspect.records.MAX_DOCUMENT_BYTES", 200_000)
    pooled = log.agentic()
    for event in pooled["events"]:
        if event["event"] == "model" and event["input"][-1] in pooled["messages"]:
            event["input_refs"] = [[0, pooled["messages"].index(event.pop("input")[-1]) + 1]]
    one = given(archive(members=log.chunked(pooled) | {f"samples/fix-7_epoch_1/{chunk}.json": data}))
    sessions = FORMAT.read([one]).sessions
    assert one.artifact.skipped_reasons == {reason: 1}
    (session,) = sessions or [None]
    figures = (len(session.turns), len(session.steps), len(session.tool_calls)) if session is not None else (0, 0, 0)
    assert figures == left


def test_a_shard_and_the_log_it_was_merged_into_count_once() -> None:
    shards = [archive(sample(n, uuid=f"U{n}"), head=header(task_id=f"K{n}")) for n in (1, 2)]
    merged = archive(sample(1, uuid="U1"), sample(2, uuid="U2"))
    assert sorted(s.session_id for s in read(merged, *shards).sessions) == ["U1", "U2"]


def test_a_member_whose_place_is_no_member_is_counted() -> None:
    whole = bytearray(archive(sample(1), sample(2)))
    at_second = whole.index(b"samples/2_epoch_1.json") - 30
    whole[at_second : at_second + 4] = b"XXXX"
    one = given(bytes(whole))
    assert [s.session_id for s in FORMAT.read([one]).sessions] == ["T1/1_epoch_1"]
    assert one.artifact.skipped_reasons == {"cut_member": 1}


def test_members_packed_with_zstd_are_read_and_unknown_packing_is_counted() -> None:
    plain = json.dumps(sample(1, uuid="Z")).encode()
    packed = pa.compress(plain[:100], "zstd", asbytes=True) + pa.compress(plain[100:], "zstd", asbytes=True)
    names = ("samples/1_epoch_1.json", "samples/2_epoch_1.json")
    data = archive(stored=dict.fromkeys(names, packed))
    for name, method in zip(names, (93, 14), strict=True):
        data = _as_if_packed(data, name, method, zlib.crc32(plain))
    one = given(data)
    assert [s.session_id for s in FORMAT.read([one]).sessions] == ["Z"]
    assert one.artifact.skipped_reasons == {"unknown_compression": 1}


def _as_if_packed(data: bytes, name: str, method: int, crc: int) -> bytes:
    """The archive with another packing method and checksum written into both headers of a member."""
    raw = bytearray(data)
    for mark, at_method, at_crc, at_name in ((b"PK\x03\x04", 8, 14, 30), (b"PK\x01\x02", 10, 16, 46)):
        places = [n for n in range(len(raw)) if raw[n : n + 4] == mark and raw[n + at_name :].startswith(name.encode())]
        for place in places:
            raw[place + at_method : place + at_method + 2] = method.to_bytes(2, "little")
            raw[place + at_crc : place + at_crc + 4] = crc.to_bytes(4, "little")
    return bytes(raw)


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_nests_are_no_trouble(depth: int) -> None:
    deep = ('{"a":' * depth + "1" + "}" * depth).encode()
    text = json.dumps(sample(1, events=[tool(1, "c", "bash", "XX"), tool(2, "d", "bash", "fine")]))
    data = archive(sample(2), members={"samples/1_epoch_1.json": text.encode().replace(b'"XX"', deep)})
    assert {s.session_id for s in read(data).sessions} >= {"T1/2_epoch_1"}


def test_spans_that_go_in_circles_are_no_trouble() -> None:
    session = session_of(
        span("a", "agent", "x", "b"), span("b", "agent", "y", "a"), model(1, [user("go")], say("ok"), span_id="a")
    )
    assert len(session.steps) == 1


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus")
def test_the_corpus_says_what_inspect_s_own_reader_says() -> None:
    """Figures of `inspect_ai` 0.3.285 reading the 13 different logs (17 files)."""
    inputs: dict[str, list[Input]] = {}
    for path in sorted(CORPUS.rglob("*.eval")):
        data = path.read_bytes()
        found = identify(Head(data[:HEAD_BYTES], path.as_posix(), False))
        assert found is not None
        assert found[0].name == "inspect"
        inputs.setdefault(found[1].keys[0], []).append(given(data, path.as_posix()))
    readings = [FORMAT.read(group) for group in inputs.values()]
    sessions = [s for r in readings for s in r.sessions]
    parts = [p for r in readings for p in r.attempts]
    assert (sum(len(g) for g in inputs.values()), len(inputs), len(sessions)) == (17, 13, 247)
    assert sum(len(s.steps) for s in sessions) == 252, "and 117 calls of graders that are no steps"
    assert [len(t) for s in sessions for t in [s.tool_calls] if t] == [5]
    assert sum(len(s.turns) for s in sessions) == 247
    assert sum(p.reward or 0 for p in parts) == 171
    assert sum(p.reward is None for p in parts) == 10, "a log without a scorer"
    assert sum(p.input_tokens or 0 for p in parts) == 78_564
    assert not any(i.artifact.skipped for g in inputs.values() for i in g)


def test_a_sample_with_another_s_id_is_counted() -> None:
    source = given(archive(sample(1, uuid="u"), sample(2, uuid="u")))
    assert len(FORMAT.read([source]).sessions) == 1
    assert source.artifact.skipped_reasons == {"session_id_of_another": 1}
