"""One odd value costs that value: its record, the records around it and the session stay.

The rule: with one value of another type anywhere in a sample, the file is still claimed, it gives as many sessions, and
no record more is skipped. Exempt are values that a format is recognised by: without them the file is another one's.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input, formats, identify, unread_file
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact
from tests.golden import SAMPLES, folders

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 13.0, 1e3, 10**30, -(10**30), 1_780_000_000, 1_780_000_000_123, "", "13", "13.0", "1e3",
    "1780000000", "2026-06-01 10:00:00 +0200", "x", [], ["x"], [[1]], {}, {"a": 1},
)  # fmt: skip
TRIES = 40
"""Changes of each file, always the same ones."""
Path_ = tuple[Any, ...]


def sample_files() -> list[Path]:
    found = []
    for folder in folders():
        paths = (p for p in sorted(folder.rglob("*")) if p.is_file() and ".expected." not in p.name)
        whole = [p for p in paths if "broken" not in str(p) and "torn" not in p.name and p.stat().st_size < 60_000]
        found += random.Random(folder.name).sample(whole, min(4, len(whole)))
    return found


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if path:
        yield path
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def changed(records: list[Any], path: Path_, odd: Any) -> list[Any]:
    made = copy.deepcopy(records)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = odd
    return made


def parsed(data: bytes) -> tuple[list[Any], bool] | None:
    """Return the records of a file, and whether it is one document."""
    try:
        return [json.loads(data)], True
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in data.splitlines()], False
    except ValueError:
        return None


def read(path: Path, data: bytes) -> tuple[str, int, Artifact] | None:
    """Return the format of a file, the number of its sessions, and its account. None if no format claims it."""
    name = path.relative_to(SAMPLES).as_posix()
    found = identify(Head(data[:HEAD_BYTES], name, len(data) <= HEAD_BYTES))
    if found is None:
        return None
    artifact = Artifact(artifact_id=name, source="t", path=name, format=found[0].name, sha256="", bytes=len(data))
    reading = found[0].read([Input(data, artifact)])
    return found[0].name, len(reading.sessions), artifact


@pytest.mark.parametrize("path", sample_files(), ids=lambda p: p.relative_to(SAMPLES).as_posix())
def test_an_odd_value_costs_that_value(path: Path) -> None:
    data = path.read_bytes()
    content = parsed(data)
    before = read(path, data)
    if content is None or before is None:
        return  # no JSON, or read with its neighbours alone
    records, is_document = content
    chance = random.Random(path.name)
    places = list(leaves(records))
    wrong = []
    for place in chance.sample(places, min(TRIES, len(places))):
        if len(place) < 2:
            continue  # the record itself
        odd = chance.choice(ODD)
        made = changed(records, place, odd)
        text = json.dumps(made[0]) if is_document else "".join(json.dumps(r) + "\n" for r in made)
        try:
            after = read(path, text.encode())
        except Exception as problem:  # noqa: BLE001  (each is told with its place)
            wrong.append(f"{place} = {odd!r}: {type(problem).__name__}: {problem}")
            continue
        if after is None or after[0] != before[0]:
            continue
        if after[1] < before[1] or after[2].skipped > before[2].skipped:
            wrong.append(f"{place} = {odd!r}: {before[1]} sessions, now {after[1]}; {after[2].skipped_reasons}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(formats()))
def test_no_recogniser_raises(name: str) -> None:
    """Every field of the first records of its samples, with each type of value, through every recogniser."""
    for path in [p for p in sample_files() if p.parts[len(SAMPLES.parts)] == name]:
        content = parsed(path.read_bytes()[:HEAD_BYTES])
        if content is None:
            continue
        records, is_document = content[0][:2], content[1]
        places = [p for p in leaves(records) if 1 < len(p) < 5]
        for place in random.Random(name).sample(places, min(30, len(places))):
            for odd in ([["x"]], {"a": {}}, 1.5, None, "x"):
                made = changed(records, place, odd)
                text = json.dumps(made[0]) if is_document else "".join(json.dumps(r) + "\n" for r in made)
                head = Head(text.encode(), path.name, True)
                for trace_format in formats().values():
                    trace_format.claims(head)
                unread_file(head)
