"""One odd value costs that value: its record, the records around it and the session stay.

The rule: with one value of another type anywhere in a sample, the file is still claimed, it gives as many sessions, and
no record more is skipped. A list or an object may take with it what it held. Exempt are values that a format is
recognised by: without them the file is another one's.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agentsignals.formats import formats, identify, unread_file
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.model import IMPOSSIBLE, Artifact, logged_iso, logged_ms, logged_seconds, logged_time
from tests.claude import Log
from tests.formats.reading import given, lines
from tests.golden import SAMPLES, folders
from tests.quick import each_row

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 13.0, 1e3, 10**30, -(10**30), 1_780_000_000, 1_780_000_000_123, "", "13", "13.0", "1e3",
    "1780000000", "2026-06-01 10:00:00 +0200", "x", [], ["x"], [[1]], {}, {"a": 1},
)  # fmt: skip
TRIES = 60
"""Changes of each file, always the same ones."""
Path_ = tuple[Any, ...]
T = TypeVar("T")


def sampled(seed: str, things: list[T], n: int) -> list[T]:
    return random.Random(seed).sample(things, min(n, len(things)))  # noqa: S311  (the same ones each time)


def sample_files() -> list[Path]:
    found = []
    for folder in folders():
        paths = (p for p in sorted(folder.rglob("*")) if p.is_file() and ".expected." not in p.name)
        whole = [p for p in paths if "broken" not in str(p) and "torn" not in p.name and p.stat().st_size < 60_000]
        found += sampled(folder.name, whole, 2)
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


def at(records: Any, place: Path_) -> Any:
    for key in place:
        records = records[key]
    return records


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
    file = given(data, found[0].name, name)
    return found[0].name, len(found[0].read([file]).sessions), file.artifact


@pytest.mark.parametrize("path", sample_files(), ids=lambda p: p.relative_to(SAMPLES).as_posix())
def test_an_odd_value_costs_that_value(path: Path) -> None:
    data = path.read_bytes()
    content = parsed(data)
    before = read(path, data)
    if content is None or before is None:
        return  # no JSON, or read with its neighbours alone
    records, is_document = content
    chance = random.Random(path.name)  # noqa: S311  (the same ones each time)
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
        if place[-1] == "speaker" or len(at(records, place[:-1])) < 2:
            continue  # who speaks in the log of our own lab, of whom two are known; a record of one field
        is_leaf = not isinstance(at(records, place), dict | list) and isinstance(place[-1], str)
        if is_leaf and before[1] and (after[1] < before[1] or after[2].skipped > before[2].skipped):
            wrong.append(f"{place} = {odd!r}: {before[1]} sessions, now {after[1]}; {after[2].skipped_reasons}")
    assert not wrong, "\n".join(wrong)


@each_row("name", sorted(formats()))
def test_no_recogniser_raises(name: str) -> None:
    """Every field of the first records of its samples, with each type of value, through every recogniser."""
    for path in [p for p in sample_files() if p.parts[len(SAMPLES.parts)] == name]:
        content = parsed(path.read_bytes()[:HEAD_BYTES])
        if content is None:
            continue
        records, is_document = content[0][:2], content[1]
        places = [p for p in leaves(records) if 1 < len(p) < 5]
        for place in sampled(name, places, 12):
            for odd in ([["x"]], {"a": {}}, 1.5, None, "x"):
                made = changed(records, place, odd)
                text = json.dumps(made[0]) if is_document else "".join(json.dumps(r) + "\n" for r in made)
                head = Head(text.encode(), path.name, True)
                for trace_format in formats().values():
                    trace_format.claims(head)
                unread_file(head)


AT = 1_780_000_000_123_000
TIMES = (
    "2026-05-28T20:26:40.123Z", "2026-05-28T22:26:40.123+02:00", "2026-05-28 22:26:40.123 +0200",
    "2026-05-28 22:26:40.123 +0200 CEST", "2026-05-28T20:26:40.123z", "2026-05-28 20:26:40.123 UTC",
    1_780_000_000.123, 1_780_000_000_123, 1_780_000_000_123_000, 1_780_000_000_123_000_000, "1780000000.123",
    "1780000000123", " 1780000000123000 ",
)  # fmt: skip


@pytest.mark.parametrize("form", TIMES)
def test_a_time_is_read_in_any_form(form: Any) -> None:
    for parse in (logged_time, logged_ms, logged_seconds, *([logged_iso] if isinstance(form, str) else [])):
        at = parse(form)
        assert at is not None
        assert abs(at - AT) <= 1


@pytest.mark.parametrize("form", [True, [], {}, "soon", "12", 0, -5, 10**30, 1e300, "99999999999999999999", 86_400])
def test_what_is_no_time_is_told(form: Any) -> None:
    assert logged_time(form) == IMPOSSIBLE


@pytest.mark.parametrize(
    ("form", "count"),
    [(13, 13), (13.0, 13), ("13", 13), ("13.0", 13), (" 13 ", 13), (1e3, 1000), ("1e3", 1000), (13.5, None),
     ("13.5", None), ("13 tokens", None), ([13], None), ({"n": 13}, None), (True, None), ("", None), (None, None)],
)  # fmt: skip
def test_a_count_is_read_in_any_form_and_else_is_absent(form: Any, count: int | None) -> None:
    log = Log("s")
    log.user("Mend the parser")
    log.assistant({"type": "text", "text": "Done."})
    rows = [json.loads(line) for line in log.lines]
    rows[1]["message"]["usage"] = {"input_tokens": 5, "output_tokens": form}
    source = given(lines(*rows), "claude-code")
    (session,) = formats()["claude-code"].read([source]).sessions
    assert [(s.input_tokens, s.output_tokens) for s in session.steps] == [(5, count)]
    assert [e.text for e in session.events] == ["Mend the parser", "Done."]
    wanted = {} if count is not None or form is None else {"odd_value": 1}
    assert source.artifact.skipped_reasons == wanted
    assert source.artifact.skipped == 0


@each_row("field", ["cwd", "version", "gitBranch", "model", "id", "role", "name"])
@each_row("odd", [["x"], {"a": 1}, 7, None])
def test_an_odd_name_is_absent_and_its_record_stays(field: str, odd: Any) -> None:
    log = Log("s")
    log.user("Mend the parser")
    log.assistant({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}})
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": "a.py"}])
    rows = [json.loads(line) for line in log.lines]
    for row in rows:
        for holder in (row, row["message"], *(b for b in row["message"]["content"] if isinstance(b, dict))):
            if field in holder:
                holder[field] = odd
    (session,) = formats()["claude-code"].read([given(lines(*rows), "claude-code")]).sessions
    assert [e.kind for e in session.events][:2] == ["human_turn", "tool_call"]
    assert len(session.tool_calls) == 1


@pytest.mark.parametrize("odd", [["done"], 13, None])
def test_an_odd_value_in_a_subagents_turn_costs_no_other_turn(odd: Any) -> None:
    path = SAMPLES / "amp" / "thread.json"
    thread = json.loads(path.read_bytes())
    (turn, *_) = thread["messages"][8]["content"][0]["run"]["progress"]

    def events() -> int:
        sessions = formats()["amp"].read([given(thread, "amp", str(path))]).sessions
        return sum(len(session.events) for session in sessions)

    before = events()
    turn["tool_uses"][0]["status"] = odd
    assert before - events() <= 1
