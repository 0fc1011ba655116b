"""A large file of JSON Lines is read as a small one, with less of it in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from benchmarks import bounds

from agentsignals.formats import Input, by_name, documents, records
from agentsignals.model import Artifact, Session, Step, columnar
from agentsignals.store import shards
from tests.build import call, say, session, user

SAMPLES = Path(__file__).parent
LATER = (
    "claude-code", "codex", "pi", "gemini-cli", "opencode", "amp", "continue", "goose", "qwen-code", "copilot-cli",
    "atif", "mini-swe-agent", "cline",
)  # fmt: skip
"""Formats whose large files are not held decoded."""
ROWS = ("turns", "steps", "events", "tool_calls", "edits")
ODD = b"\n".join((
    b'{"a":1}{"a":2}', b"", b"no json", b'{"a":"3"}', b"[]", b'{"a":NaN}', b'{"a":7,"b":"' + b"x" * 300_000 + b'"}',
    b'{"a":8}', b'{"a":',
))  # fmt: skip


class Row(msgspec.Struct):
    a: int | None = None


def artifact(path: str = "f.jsonl") -> Artifact:
    return Artifact(artifact_id="f", source="s", path=path, format="claude-code", sha256="x", bytes=1, mtime_ns=0)


def test_records_are_decoded_when_asked_for_and_counted_as_in_a_small_file() -> None:
    looked: list[Row] = []
    whole, apart = artifact(), artifact()
    expected = list(records.lines(ODD, whole, records.decoder(Row).decode))
    found = records.Records(ODD, apart, records.decoder(Row).decode, looked.extend)
    assert list(zip(found.numbers, found, strict=True)) == expected
    assert looked == [row for _, row in expected] == [found[n] for n in range(len(found))] == found[:]
    assert (apart.records, apart.skipped_reasons) == (whole.records, whole.skipped_reasons)
    part: Sequence[Row] = found.part([3, 1])
    assert list(part) == [expected[3][1], expected[1][1]]


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, p) for name in LATER for p in sorted((SAMPLES / name).rglob("*.json*")) if "_cases" not in p.parts],
    ids=lambda told: f"{told.parent.name}/{told.name}" if isinstance(told, Path) else told,
)
def test_a_large_file_gives_the_same_session(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> tuple[object, list[Artifact]]:
        files = sorted(path.parent.glob("*.json")) if name == "cline" else [path]  # the files of a task together
        inputs = [Input(file.read_bytes(), artifact(str(file))) for file in files]
        reading = by_name(name).read(inputs)
        return [plain(s) for s in reading.sessions], [source.artifact for source in inputs]

    small = read()
    monkeypatch.setattr(records, "LARGE_BYTES", 0)
    monkeypatch.setattr(records, "_BLOCK_BYTES", 2_000)
    monkeypatch.setattr(columnar, "LARGE_BYTES", 0)
    assert read() == small


def plain(of: Session) -> list[object]:
    """A session's facts, and the values of its rows."""
    rows = {name: [attrgetter(*row.__class__.__struct_fields__)(row) for row in getattr(of, name)] for name in ROWS}
    return [msgspec.to_builtins(msgspec.structs.replace(of, **{name: [] for name in ROWS})), rows]


def test_rows_of_a_large_session_are_held_as_columns() -> None:
    step = Step(step=0, turn=None, thread="main", seq=0, message_id="m", model=None, timestamp=None)
    of = session()
    with columnar.held(columnar.LARGE_BYTES + 1):
        columnar.hold(of)
    for n in range(3):
        of.steps.append(msgspec.structs.replace(step, step=n, seq=n))
    first, second, third = of.steps
    assert isinstance(first, Step)
    assert bool(first)
    assert first is of.steps[0]
    assert first != second
    second.input_tokens, second.cost_usd, second.message_id = 2**31, 0.5, "\ud800 long"
    third.input_tokens, third.model = 2**80, "m-1"
    told = attrgetter("seq", "input_tokens", "cost_usd", "message_id", "model")
    assert [told(row) for row in of.steps] == [
        (0, None, None, "m", None), (1, 2**31, 0.5, "\ud800 long", None), (2, 2**80, None, "m", "m-1"),
    ]  # fmt: skip
    second.input_tokens = second.message_id = None
    assert (second.input_tokens, second.message_id) == (None, None)


def test_from_which_size_on_a_file_is_held_otherwise() -> None:
    for n_bytes, is_large in ((columnar.LARGE_BYTES, False), (columnar.LARGE_BYTES + 1, True)):
        of = session()
        with columnar.held(n_bytes):
            columnar.hold(of)
        assert (type(of.events) is not list) is is_large
    data = b" " * records.LARGE_BYTES
    for held, is_large in ((data, False), (data + b" ", True)):
        assert isinstance(documents.messages_of(held, [], lambda raw, _: raw, artifact()), documents.Later) is is_large


def test_a_document_that_was_repaired_is_held_by_itself() -> None:
    raws = [msgspec.Raw(b'{"a":1}'), msgspec.Raw(b'{"a":2}'), msgspec.Raw(b"[]")]
    held = documents.Later(b'{"a":1, "a":2}', raws, lambda raw, _: records.decoder(Row).decode(raw), artifact())
    assert [row and row.a for row in held] == [1, 2, None]
    assert held[1] == held[0:2][1] == Row(2)
    held[0] = None
    assert (len(held), held[0], held[-1], raws) == (3, None, None, [])


def test_a_session_of_many_rows_takes_less_memory_than_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds.make("claude-short", tmp_path, 250_000)
    data = next(tmp_path.iterdir()).read_bytes()
    monkeypatch.setattr(records, "LARGE_BYTES", 0)
    monkeypatch.setattr(columnar, "LARGE_BYTES", 0)
    monkeypatch.setattr(columnar, "_READ_BYTES", 2_000)
    monkeypatch.setattr(columnar, "_WRITTEN_BYTES", 2_000)
    read = partial(by_name("claude-code").read, [Input(data, artifact())])
    read()  # what it keeps of the words of commands
    tracemalloc.start()
    reading = read()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(reading.sessions[0].events) > 400
    assert held < 0.85 * len(data), f"{held / len(data):.2f} bytes of memory for a byte of the file"


def test_a_session_of_many_rows_is_written_in_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sessions = [session(user("hello"), call("Bash", command="ls"), say("done")) for _ in range(2)]
    sessions[1].session_id = "other"
    whole = shards.shard_rows(sessions, [], []).tables
    monkeypatch.setattr(shards, "AT_ONCE", 1)
    monkeypatch.setattr(shards, "_PIECE_ROWS", 2)
    made = shards.shard_rows(sessions, [], [])
    pieces: dict[str, list[pa.Table]] = {}
    for name, piece in made.pieces:
        pieces.setdefault(name, []).append(piece)
    assert {**made.tables, **{name: pa.concat_tables(held) for name, held in pieces.items()}} == whole
    assert len(pieces["events"]) > len(sessions)
