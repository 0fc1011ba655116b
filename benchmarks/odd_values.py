"""What one odd value costs: each of sixty takes the place of one value in a sample of each format, drawn by a seed.

    python -m benchmarks.odd_values [--times 1] [--seed 60]

Places that tell what a record is (types, ids, roles) are left out. A line a format: how often the numbers of events,
turns, model calls and tool calls are as before, and where a model call, a tool call or several events are gone. Exit
code 1 if a reader raised or lost a session.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden import SAMPLES

from agentsignals.formats import Input, by_name, formats
from agentsignals.model import Artifact

ODD = (
    *('"13"', '"13.0"', "13.0", "-1", "0", "1e3", "1e308", "1e400", "-0.0", "NaN", "Infinity", "-Infinity", "null"),
    *("true", "false", '""', '" "', '"null"', '"NaN"', '"1,234"', '"12 tokens"', "[]", "{}", "[13]", '["13"]'),
    *('{"value":13}', "[[]]", "[null]", '{"a":{"b":{"c":1}}}', "9223372036854775808", "-9223372036854775809"),
    *("123456789012345678901234567890", "0.1", "3.5", '"2026-01-01"', '"2026-01-01T00:00:00Z"'),
    *('"2026-13-45T99:99:99Z"', "1767225600", "1767225600000", "1767225600.123", '"1767225600000"', '"\\ud800"'),
    *('"\\u0000"', '"\\u202e"', f'"{"x" * 100_000}"', '["a","b"]', '{"text":"a"}', '[{"type":"text","text":"a"}]'),
    *('"yes"', '"0x1F"', '"\\u0661\\u0662"', "1E5", "[1,2,3]", '{"$numberLong":"13"}', '{"seconds":1767225600}'),
    *('"<script>"', '"/etc/passwd"', '"C:\\\\x"', "[true]", '"\\ud83d\\ude42"'),
)
_TELLING = frozenset(("type", "role", "kind", "event", "source", "method", "tool", "name", "op", "state", "status",
                      "action", "observation", "agent", "format", "version", "say", "ask", "i", "k", "sessionUpdate",
                      "schema_version", "trajectory_format"))  # fmt: skip
_MARK = '"@@ODD@@"'


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value that is no list and no object, but those that tell what a record is."""
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(held, dict | list):
            yield from places(held, (*path, key))
        elif key not in _TELLING and not str(key).lower().endswith(("id", "uuid")):
            yield (*path, key)


def counts(name: str, path: Path, data: bytes) -> list[tuple[int, int, int, int]]:
    of = Artifact(artifact_id="a", source="s", path=str(path), format=name, sha256="x", bytes=len(data), mtime_ns=0)
    sessions = by_name(name).read([Input(data, of)]).sessions
    return sorted((len(s.events), len(s.turns), len(s.steps), len(s.tool_calls)) for s in sessions)


def sample(name: str) -> tuple[Path, list[str], list[tuple[int, Any, tuple[Any, ...]]]] | None:
    """Return the first sample of a format that gives a session, its lines, and the places in them."""
    for path in sorted(p for p in (SAMPLES / name).rglob("*.json*") if "expected" not in p.name and p.is_file()):
        text = path.read_text("utf-8", "replace")
        lines = text.split("\n") if path.suffix == ".jsonl" else [text]
        try:
            records = [(n, json.loads(line)) for n, line in enumerate(lines) if line.strip()]
            found = [(n, r, place) for n, r in records if isinstance(r, dict | list) for place in places(r)]
        except ValueError:
            continue
        if found and any(events > 2 for events, *_ in counts(name, path, text.encode())):
            return path, lines, found
    return None


def changed(lines: list[str], n: int, record: Any, place: tuple[Any, ...], odd: str) -> bytes:
    """Return the file with an odd value at one place of its record `n`."""
    whole = at = copy.deepcopy(record)
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = json.loads(_MARK)
    line = json.dumps(whole, ensure_ascii=False).replace(_MARK, odd)
    return "\n".join([*lines[:n], line, *lines[n + 1 :]]).encode("utf-8", "replace")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--seed", type=int, default=60)
    options = parser.parse_args()
    draw, tried, same, failed = random.Random(options.seed), 0, 0, 0  # noqa: S311
    for name in sorted(formats()):
        if (chosen := sample(name)) is None:
            continue
        path, lines, found = chosen
        before = counts(name, path, "\n".join(lines).encode())
        for odd in ODD * options.times:
            n, record, place = draw.choice(found)
            data = changed(lines, n, record, place, odd)
            tried += 1
            try:
                after = counts(name, path, data)
            except Exception as problem:  # noqa: BLE001  (told: no reader may raise)
                failed += 1
                print(f"{name}: {'.'.join(map(str, place))} = {odd[:40]} raised {problem!r}")
                continue
            same += after == before
            events, _, steps, calls = (
                sum(row[of] for row in before) - sum(row[of] for row in after) for of in range(4)
            )
            failed += len(after) < len(before)
            if len(after) < len(before) or events > 1 or steps > 0 or calls > 0:
                print(f"{name}: {'.'.join(map(str, place))} = {odd[:40]}: {before} became {after}")
    print(f"{tried:,} odd values: {same:,} leave all rows as they are; {failed} raised or lost a session")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
