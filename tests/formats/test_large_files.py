"""A large file of JSON Lines is read as a small one, with less of it in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from agentsignals.formats import Input, by_name, records
from agentsignals.model import Artifact
from agentsignals.store import shards
from tests.build import call, say, session, user

SAMPLES = Path(__file__).parent
LATER = ("claude-code", "codex", "pi", "gemini-cli", "opencode", "amp", "continue", "goose")
"""Formats whose large files are not held decoded."""
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
    def read() -> tuple[object, Artifact]:
        of = artifact(str(path))
        reading = by_name(name).read([Input(path.read_bytes(), of)])
        return [msgspec.to_builtins(s) for s in reading.sessions], of

    small = read()
    monkeypatch.setattr(records, "LARGE_BYTES", 0)
    monkeypatch.setattr(records, "_BLOCK_BYTES", 2_000)
    assert read() == small


def test_a_session_of_many_rows_is_written_in_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sessions = [session(user("hello"), call("Bash", command="ls"), say("done")) for _ in range(2)]
    sessions[1].session_id = "other"
    whole = shards.shard_rows(sessions, [], []).tables
    monkeypatch.setattr(shards, "_AT_ONCE", 1)
    monkeypatch.setattr(shards, "_PIECE_ROWS", 2)
    made = shards.shard_rows(sessions, [], [])
    pieces: dict[str, list[pa.Table]] = {}
    for name, piece in made.pieces:
        pieces.setdefault(name, []).append(piece)
    assert {**made.tables, **{name: pa.concat_tables(held) for name, held in pieces.items()}} == whole
    assert len(pieces["events"]) > len(sessions)
