"""The traps of Inspect logs (design/formats.md#inspect). Small ones are samples in `inspect/_cases`."""

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
from tests.inspect_logs import archive, call, header, model, sample, say, tool, usage, user

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


@pytest.mark.parametrize(
    ("declared", "reward"),
    [
        ({"headline": {"scorer": "tests", "score": "tests", "metric": "accuracy"}}, 1.0),
        ({"headline": {"scorer": "style"}}, 0.2),
        ({"headline": {"score": "elsewhere"}}, None),
        ({"headline": "tests"}, None),
        (None, None),
    ],
)
def test_of_several_scores_the_declared_headline_is_the_reward(declared: Any, reward: float | None) -> None:
    scores = {"tests": {"value": "C"}, "style": {"value": 0.2}}
    assert attempt_of(header() | {"results": declared}, scores=scores).reward == reward


@pytest.mark.parametrize("invalidation", [{"reason": "it saw the answer"}, {}, True])
def test_an_invalidated_sample_is_no_result(invalidation: Any) -> None:
    part = attempt_of(scores={"s": {"value": "C"}}, invalidation=invalidation)
    assert (part.reward, part.reward_counts) == (1.0, False) and part.saying("reward_counts")


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


def test_an_attachment_named_too_often_stays_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsignals.formats.inspect.records.MAX_ATTACHED_CHARS", 10)
    name = f"attachment://{'0a' * 16}"
    session = session_of(model(1, [user(name * 3, "1")], say("x")), attachments={"0a" * 16: "12345678"})
    assert session.turns[0].text == "12345678" + 2 * name


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


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_members, "MAX_DOCUMENT_BYTES", 100_000)
    bomb = json.dumps(sample(2, input="0" * 2_000_000)).encode()
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
