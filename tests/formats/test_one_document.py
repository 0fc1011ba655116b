"""One document a session: snapshots, breaks, odd records, for every format of that kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Reading, by_name, identify
from agentsignals.formats.records import HEAD_BYTES, Head, head_of
from agentsignals.model import Artifact
from tests.formats import reading
from tests.golden import SAMPLES, samples
from tests.quick import each_row

NAMES = ("opencode", "gemini-cli", "kiro")


def document(name: str, prompts: list[Any]) -> dict[str, Any]:
    """A session of so many prompts; a prompt that is no text stands in the place of its message as it is."""
    if name == "opencode":
        messages = [_opencode(n, p) if isinstance(p, str) else p for n, p in enumerate(prompts)]
        return {"info": {"id": "ses_1", "projectID": "p", "directory": "/w", "version": "1.2.20"}, "messages": messages}
    if name == "gemini-cli":
        messages = [{"type": "user", "content": p} if isinstance(p, str) else p for p in prompts]
        return {"sessionId": "s-1", "projectHash": "h", "messages": messages}
    history = [
        {"user": {"content": {"Prompt": {"prompt": p}}}, "assistant": None} if isinstance(p, str) else p
        for p in prompts
    ]
    return {"conversation_id": "c-1", "history": history}


def _opencode(n: int, prompt: str) -> dict[str, Any]:
    info = {"role": "user", "id": f"msg_{n}", "time": {"created": 1_775_000_000_000 + 60_000 * n}}
    return {"info": info, "parts": [{"type": "text", "text": prompt}]}


def read(name: str, *contents: bytes) -> tuple[list[Artifact], Reading]:
    sources = [reading.given(content, name, f"a{n}") for n, content in enumerate(contents)]
    return [source.artifact for source in sources], by_name(name).read(sources)


def prompts(reading: Reading) -> list[str]:
    return [turn.text for session in reading.sessions for turn in session.turns]


@pytest.mark.parametrize("name", NAMES)
def test_the_fullest_snapshot_of_a_session_is_kept_whatever_the_order(name: str) -> None:
    short, long = (json.dumps(document(name, p)).encode() for p in (["one"], ["one", "two"]))
    for contents, kept in (((short, long), "a1"), ((long, short), "a0")):
        artifacts, reading = read(name, *contents)
        assert prompts(reading) == ["one", "two"]
        notes = {a.artifact_id: a.note for a in artifacts}
        assert notes.pop(kept) is None
        assert list(notes.values()) == [f"superseded by {kept}"]
        assert [s.artifact_id for s in reading.sessions] == [kept]


@pytest.mark.parametrize("name", NAMES)
def test_of_two_snapshots_with_as_many_messages_the_longer_file_counts(name: str) -> None:
    artifacts, reading = read(name, *(json.dumps(document(name, [p])).encode() for p in ("a longer text", "short")))
    assert prompts(reading) == ["a longer text"]
    assert artifacts[1].note == "superseded by a0"
    assert artifacts[1].record_kinds["repeated"] == artifacts[1].records
    assert "repeated" not in artifacts[0].record_kinds


@pytest.mark.parametrize("name", NAMES)
def test_more_messages_count_for_more_than_a_longer_file(name: str) -> None:
    _, reading = read(name, *(json.dumps(document(name, p)).encode() for p in (["x" * 5_000], ["one", "two"])))
    assert prompts(reading) == ["one", "two"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_that_breaks_off_gives_the_messages_before_the_break(name: str, indent: int | None) -> None:
    data = json.dumps(document(name, ["one", "two", "three"]), indent=indent).encode()
    cut = data[: data.index(b"three") + 2]
    (artifact,), reading = read(name, cut)
    assert prompts(reading) == ["one", "two"]
    assert artifact.skipped_reasons == {"cut_document": 1}
    assert sum(artifact.record_kinds.values()) + artifact.skipped == artifact.records


@pytest.mark.parametrize("name", NAMES)
def test_a_file_without_its_messages_is_no_session_and_is_counted(name: str) -> None:
    for content, reason in ((b'{"info": {', "cut_document"), (b'{"messages": 3, "history": 3}', "bad_shape")):
        (artifact,), reading = read(name, content)
        assert reading.sessions == []
        assert artifact.skipped_reasons in ({reason: 1}, {"odd_value": 1})


@pytest.mark.parametrize("name", NAMES)
def test_lone_surrogates_and_byte_order_marks_are_read(name: str) -> None:
    marked = b"\xef\xbb\xbf" + json.dumps(document(name, ["half a \ud83d face"])).encode()
    _, reading = read(name, marked)
    assert prompts(reading) == ["half a ? face"]


def _documents() -> list[Path]:
    """Samples that are one JSON object, printed in any way."""
    files = [
        f for s in samples() for f in ([s] if s.is_file() else sorted(s.rglob("*"))) if f.suffix in (".json", ".traj")
    ]
    return [
        f
        for f in files
        if not any(part.startswith("broken") for part in f.parts) and f.read_bytes().lstrip()[:1] == b"{"
    ]


KEYS_ARE_DATA = (
    "swe-bench/preds.json", "swe-bench/trial/report.json", "conversation-table/rows.json",
    "swe-bench-pro/acme-one/eval_results.json",
)  # fmt: skip
NO_OTHER_KEY = ("cline/task/1780000000000/task_metadata.json",)


@each_row("path", _documents())
def test_a_document_is_recognised_in_whatever_order_its_keys_come(path: Path) -> None:
    """And however long the values before the one by which it is known, printed over many lines or on one."""
    name, data = path.relative_to(SAMPLES).as_posix(), path.read_bytes()
    recognised = identify(Head(data, name, True))
    if name in KEYS_ARE_DATA + NO_OTHER_KEY or recognised is None:
        pytest.skip("it has other keys, or is recognised by none")
    fields, long = json.loads(data), {"0": "x" * HEAD_BYTES}
    for ordered in (
        {**long, **fields},
        dict(sorted({**fields, **long}.items())),
        dict(reversed({**fields, **long}.items())),
    ):
        for indent in (None, 1):
            found = identify(head_of(json.dumps(ordered, indent=indent).encode(), name))
            assert found is not None
            assert (found[0].name, found[1].keys) == (recognised[0].name, recognised[1].keys)


@pytest.mark.parametrize("cut", [0.5, 0.99])
def test_of_a_document_that_breaks_off_the_beginning_is_looked_at(cut: float) -> None:
    whole = json.dumps(document("gemini-cli", ["x" * HEAD_BYTES]), indent=1).encode()
    found = identify(head_of(whole[: int(len(whole) * cut)]))
    assert found is not None and found[0].name == "gemini-cli"
