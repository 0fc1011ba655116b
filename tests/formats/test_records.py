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
from agentsignals.formats.records import HEAD_BYTES, lines
from agentsignals.ingest import pipeline
from agentsignals.model import Artifact
from tests.formats.reading import given
from tests.fuzz.checking import Rows, failures, rows_alone
from tests.golden import SAMPLES, folders
from tests.quick import each_row, some

MOST_BYTES = 20_000
PLACES = 4


def read(name: str, data: bytes, path: str) -> tuple[Reading, Artifact]:
    file = given(data, name, path)
    return formats()[name].read([file]), file.artifact


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


@each_row("name", [folder.name for folder in folders() if sample(folder.name)])
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


@each_row(
    ("number", "counted"),
    [("9" * 4301, 1), ("-" + "9" * 4301, 1), ("9" * 3_000_000, 1), ("9" * 20, 0), ('"' + "9" * 5000 + '"', 0)],
)
@each_row("before", range(0, 512, 73))
def test_a_number_is_long_from_4301_digits(number: str, counted: int, before: int) -> None:
    artifact = Artifact(artifact_id="a", source="s", path="a.jsonl", format=None, sha256="", bytes=0)
    data = f'{{"before": "{"x" * before}", "n": {number}, "after": "{"1f" * 600}"}}\n{{}}\n'.encode()
    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    read = list(lines(data, artifact, decode))
    assert len(read) == artifact.records == 2
    assert artifact.skipped_reasons == ({"impossible_number": 1} if counted else {})


FEW = ("claude-code", "codex", "gemini-cli", "pi")
EXACT = ("cursor-agent",)
"""Whose records are recognised by having no other key."""


def samples() -> list[object]:
    """The first sample of JSON Lines of each format; but for a few they are slow together.

    None of `_cases`: some of those are known by their path.
    """
    lines = sorted((p for p in SAMPLES.rglob("*.jsonl") if "_cases" not in p.parts), reverse=True)
    first = {path.relative_to(SAMPLES).parts[0]: path for path in lines}
    slow = [pytest.mark.slow]
    return [pytest.param(first[name], id=name, marks=[] if name in FEW else slow) for name in sorted(first)]


def figures(file: Path, store: Path) -> tuple[object, ...]:
    made = pipeline.ingest([str(file)], store, jobs=1)
    return made.formats, made.sessions, made.prompts, made.tool_calls, made.input_tokens, made.output_tokens


@pytest.mark.parametrize("sample", samples())
@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
def test_a_long_record_hides_no_session(sample: Path, which: int, tmp_path: Path) -> None:
    lines = sample.read_bytes().split(b"\n")
    try:
        record = json.loads(lines[which])
    except (IndexError, ValueError):
        record = None
    if not isinstance(record, dict) or sample.relative_to(SAMPLES).parts[0] in EXACT:
        pytest.skip("no such record, or one that may have no other key")
    expected = figures(sample, tmp_path / "as-it-is")
    lines[which] = json.dumps({**record, "padding": "x" * (HEAD_BYTES + 1)}).encode()
    (tmp_path / sample.name).write_bytes(b"\n".join(lines))
    assert figures(tmp_path / sample.name, tmp_path / "longer") == expected


@pytest.mark.slow
@pytest.mark.parametrize(("megabytes", "formats"), [(15, {"pi": 1}), (17, {})])
def test_so_long_a_first_record_is_looked_for(megabytes: int, formats: dict[str, int], tmp_path: Path) -> None:
    """Beyond, the file is counted as one that no format claims."""
    first, *others = sorted((SAMPLES / "pi").rglob("*.jsonl"))[0].read_text("utf-8").split("\n")
    padded = json.dumps({**json.loads(first), "padding": "x" * (megabytes << 20)})
    (tmp_path / "a.jsonl").write_text("\n".join((padded, *others)))
    made = pipeline.ingest([str(tmp_path / "a.jsonl")], tmp_path / "s", jobs=1)
    assert (made.formats, "unrecognised" in made.skipped) == (formats, not formats)


FIRST = ('{"id":"g2","timestamp":"2026-05', "warning: slow disk", "{", "{}", "[1, 2]", '[{"a": 1}]')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torn")


@pytest.fixture(scope="module")
def alone(folder: Path) -> Rows:
    return rows_alone(folder)


@pytest.mark.parametrize("first", some(FIRST, 6))
def test_a_first_line_that_is_no_record_costs_itself_alone(first: str, folder: Path, alone: Rows) -> None:
    samples = sorted(p for p in SAMPLES.rglob("*.jsonl") if p.is_file() and "_cases" not in p.parts)
    spoilt = {
        f"{n:03}/{sample.relative_to(SAMPLES)}": b"\n".join((first.encode(), sample.read_bytes()))
        for n, sample in enumerate(samples)
    }
    assert failures(spoilt, alone, folder) == []


def test_half_a_surrogate_pair_beside_an_odd_value_costs_no_record() -> None:
    said = b'"message":{"role":"user","content":"a \\ud800 b"}'
    line = b'{"type":"user","uuid":"u","sessionId":"s","timestamp":1767323040000,' + said + b"}"
    artifact = Artifact(artifact_id="a", source="", path="a.jsonl", format="claude-code", sha256="", bytes=1)
    (session,) = formats()["claude-code"].read([Input(line, artifact)]).sessions
    assert [turn.text for turn in session.turns] == ["a ? b"]
