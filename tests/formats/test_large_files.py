"""A large file of JSON Lines is read as a small one, with less of it in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from agentsignals.formats import Input, by_name, records
from agentsignals.model import Artifact

SAMPLES = Path(__file__).parents[1] / "formats" / "claude-code"
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
    "path",
    sorted(p for p in SAMPLES.rglob("*.jsonl") if "_cases" not in p.parts),
    ids=lambda p: f"{p.parent.name}/{p.name}",
)
def test_a_large_file_gives_the_same_session(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> tuple[object, Artifact]:
        of = artifact(str(path))
        reading = by_name("claude-code").read([Input(path.read_bytes(), of)])
        return [msgspec.to_builtins(s) for s in reading.sessions], of

    small = read()
    monkeypatch.setattr(records, "LARGE_BYTES", 0)
    monkeypatch.setattr(records, "_BLOCK_BYTES", 2_000)
    assert read() == small
