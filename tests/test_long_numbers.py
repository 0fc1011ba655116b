"""A number of more digits than any decoder takes: its record is read; it alone is absent, and counted, anywhere."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentsignals.formats import Input, Reading, formats
from agentsignals.formats.records import lines
from agentsignals.model import Artifact

SAMPLES = Path(__file__).parent / "formats"
MOST_BYTES = 20_000
PLACES = 4


def read(name: str, data: bytes, path: str) -> tuple[Reading, Artifact]:
    artifact = Artifact(artifact_id="a", source="s", path=path, format=name, sha256="0" * 64, bytes=len(data))
    return formats()[name].read([Input(data, artifact)]), artifact


def records_of(data: bytes) -> list[Any]:
    try:
        return [json.loads(data)]
    except ValueError:
        return [json.loads(line) for line in data.split(b"\n") if line.strip()]


def sample(name: str) -> tuple[str, list[Any]] | None:
    for path in sorted((SAMPLES / name).rglob("*.json*")):
        if "expected" not in path.name and path.stat().st_size < MOST_BYTES:
            try:
                return path.name, records_of(path.read_bytes())
            except ValueError:
                continue
    return None


def objects(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of the objects in a record, the deepest first."""
    held = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in held:
        yield from objects(inner, (*at, key))
    if isinstance(value, dict):
        yield at


def written(records: list[Any], at: tuple[Any, ...], number: str) -> bytes:
    spoilt = holder = copy.deepcopy(records)
    for key in at:
        holder = holder[key]
    holder["a number"] = "@"  # type: ignore[call-overload]
    return "\n".join(json.dumps(record).replace('"@"', number) for record in spoilt).encode()


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if sample(path.name)))
def test_a_long_number_costs_itself_in_every_format(name: str) -> None:
    path, records = sample(name) or ("", [])
    for at in list(objects(records))[:: max(1, sum(1 for _ in objects(records)) // PLACES)]:
        long, artifact = read(name, written(records, at, "9" * 4301), path)
        absent, beside = read(name, written(records, at, "null"), path)
        if not beside.records:
            continue  # a format of another kind than JSON
        assert artifact.skipped_reasons.get("impossible_number", 0) == 1, at
        assert msgspec.json.encode(long.sessions) == msgspec.json.encode(absent.sessions), at
        assert (artifact.records, artifact.skipped) == (beside.records, beside.skipped)


@pytest.mark.parametrize(
    ("number", "counted"),
    [("9" * 4301, 1), ("-" + "9" * 4301, 1), ("9" * 3_000_000, 1), ("9" * 20, 0), ('"' + "9" * 5000 + '"', 0)],
)
@pytest.mark.parametrize("before", range(0, 512, 73))
def test_a_number_is_long_from_4301_digits(number: str, counted: int, before: int) -> None:
    artifact = Artifact(artifact_id="a", source="s", path="a.jsonl", format=None, sha256="", bytes=0)
    data = f'{{"before": "{"x" * before}", "n": {number}, "after": "{"1f" * 600}"}}\n{{}}\n'.encode()
    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    read = list(lines(data, artifact, decode))
    assert len(read) == artifact.records == 2
    assert artifact.skipped_reasons == ({"impossible_number": 1} if counted else {})
