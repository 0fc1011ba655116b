"""Check a format over its samples: `python -m agentsignals.formats.conformance NAME SAMPLES`.

For authors of formats, here or in a package of their own (docs/adding/format.md#test). A sample is a file, or a
folder of files that belong together. Goldens (`*.expected.json`) are left out.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentsignals.formats import Format, Input, Reading, by_name, card_of, formats, identify
from agentsignals.formats.bounds import REASONS
from agentsignals.formats.records import HEAD_BYTES, UNREADABLE, Head
from agentsignals.model import Artifact

SPOILT = ("broken", "torn", "cancelled")
"""Beginnings of the name of the sample in which something is wrong. Each format has one."""
MEANS = {
    "done": "ok", "nothing_found": "ok", "exit_nonzero": "error", "error_result": "error", "timed_out": "error",
    "refused": "rejected", "cancelled": "cancelled",
}  # fmt: skip
"""The one status of each outcome (design/formats.md#how-a-call-ended)."""
_EXIT = re.compile(r"^(?:Process exited with|Command exited with|Exit|exit) code:? (\d{1,9})\s*$", re.MULTILINE)
NOBODYS = (
    "{}",
    '{"name": "x", "version": "1.0.0", "dependencies": {}}',
    '{"id": "x", "type": "message", "timestamp": "2026-01-01T00:00:00Z", "sessionId": "x", "data": {}}',
    '{"messages": [{"role": "user", "content": "x"}]}',
    '[{"role": "user", "content": "x"}]',
)
"""Contents that no format may claim, because anybody may write them."""
_CUTS = 12
_JUNK = b'\x00\xff{"}]\\u'
_COUNTED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd")

Files = dict[str, bytes]
"""The files of a sample by their path below its folder."""


class Problem(Struct, frozen=True):
    sample: str
    rule: str
    what: str


def samples(folder: Path) -> dict[str, Files]:
    tops = [p for p in sorted(folder.iterdir()) if not p.name.endswith(".expected.json") and p.name[0] not in "._"]
    return {top.name: files_of(top) for top in tops}


def files_of(top: Path) -> Files:
    """Return a file, or all files below a folder."""
    paths = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
    return {path.relative_to(top.parent).as_posix(): path.read_bytes() for path in paths}


def problems(name: str, folder: Path) -> list[Problem]:
    """Return the rules that a format breaks over the samples in a folder."""
    made, by_sample = by_name(name), samples(folder)
    wrong = [Problem(sample, rule, what) for sample, files in by_sample.items() for rule, what in broken(files)]
    card = card_of(made)
    if card is None or not (card.material and card.limits):
        wrong.append(Problem("", "card", "it has no card that says what it rests on and what to mind"))
    if not any(sample.startswith(SPOILT) for sample in by_sample):
        wrong.append(Problem("", "samples", f"none is called {SPOILT[0]}: a file in which something is wrong"))
    try:
        if not any(made.claims(_head(path, data)) for files in by_sample.values() for path, data in files.items()):
            wrong.append(Problem("", "samples", "it claims none of them"))
        claimed = [text for text in NOBODYS if made.claims(_head("x.json", text.encode()))]
        wrong += [Problem("", "claims", f"it claims {text}, which anybody may write") for text in claimed]
    except Exception as problem:  # noqa: BLE001  (as in `broken`)
        wrong.append(Problem("", "claims", _raised(problem)))
    return wrong


def _raised(problem: Exception) -> str:
    return f"it raises {type(problem).__name__}: {problem}"


def _head(path: str, data: bytes) -> Head:
    return Head(data[:HEAD_BYTES], path, len(data) <= HEAD_BYTES)


def broken(files: Files) -> Iterator[tuple[str, str]]:
    """Yield the rules that a sample breaks, and how."""
    for rule, check in RULES.items():
        try:
            yield from ((rule, what) for what in check(files))
        except Exception as problem:  # noqa: BLE001  (a format that raises is what this looks for)
            yield rule, _raised(problem)


def read(files: Files) -> tuple[Reading, list[tuple[Format, Artifact]]]:
    """Read files as the program does, each by the format that claims it. Unclaimed files are left out."""
    inputs: dict[str, list[Input]] = {}
    accounts = []
    for name, data in files.items():
        claimed = identify(_head(name, data))
        if claimed is not None:
            given = _given(claimed[0], name, data)
            inputs.setdefault(claimed[0].name, []).append(given)
            accounts.append((claimed[0], given.artifact))
    whole = Reading()
    for name, group in inputs.items():
        reading = formats()[name].read(group)
        whole.sessions += reading.sessions
        whole.attempts += reading.attempts
    return whole, accounts


def claimants(head: Head) -> list[str]:
    """Return the formats that claim a file. Those that are asked last count only where no other does."""
    asked = (f for f in formats().values() if f.of_json in (None, head.looks_like_json))
    claiming = [f for f in asked if f.claims(head) is not None]
    return [f.name for f in [f for f in claiming if not f.is_last] or claiming]


def one_claimant(files: Files) -> Iterator[str]:
    """One format claims each file, and no other."""
    for name, data in files.items():
        head = _head(name, data)
        who = claimants(head)
        if len(who) != 1:
            yield f"{name} is claimed by {' and '.join(who) or 'none'}"


def claims_of_anything(files: Files) -> Iterator[str]:
    """Recognising a file raises nothing, whatever it holds."""
    for name, data in files.items():
        head = Head(data[:HEAD_BYTES], name)
        for record in ([head.document], head.items[:1], *([r] for r in head.records)):
            for spoilt in _replaced(record):
                lines = Head(json.dumps(spoilt[0], default=repr).encode() + b"\n", name, complete=True)
                for made in formats().values():
                    made.claims(lines)
    yield from ()


def _replaced(value: Any) -> Iterator[Any]:
    """Yield the value with each of its inner values replaced by one that no real trace holds there."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: other} for other in ({}, [], *_replaced(inner)))
    elif isinstance(value, list) and value:
        yield from ([other, *value[1:2]] for other in _replaced(value[0]))


def nothing_lost(files: Files) -> Iterator[str]:
    """Each record was read and has a kind, or was skipped for a reason."""
    for _, account in read(files)[1]:
        kinds = sum(n for kind, n in account.record_kinds.items() if kind != "repeated")
        skipped = sum(n for reason, n in account.skipped_reasons.items() if reason not in REASONS)
        if kinds + skipped != account.records:
            yield f"{account.path}: {account.records} records, of which {kinds} are of a kind and {skipped} skipped"


def rows_hang_together(files: Files) -> Iterator[str]:
    """Numbers name rows that exist, and each call has its result or none."""
    for session in read(files)[0].sessions:
        name, events = session.session_id, session.events
        kinds = [e.kind for e in events]
        if [e.seq for e in events] != list(range(len(events))):
            yield f"{name}: events are not numbered from 0"
        if [t.turn for t in session.turns] != list(range(len(session.turns))):
            yield f"{name}: turns are not numbered from 0"
        if any(kinds[t.seq] != "human_turn" for t in session.turns):
            yield f"{name}: a turn is no human_turn"
        for call in session.tool_calls:
            is_result = call.result_seq is None or kinds[call.result_seq] == "tool_result"
            if kinds[call.seq] != "tool_call" or not is_result:
                yield f"{name}: {call.call_id} is no call, or its result none"
        if not {e.seq for e in session.edits} <= {c.seq for c in session.tool_calls}:
            yield f"{name}: an edit is of no call"


def one_meaning_of_failed(files: Files) -> Iterator[str]:
    """Status and outcome agree, and neither says that a failed call succeeded."""
    for session in read(files)[0].sessions:
        texts = {e.seq: e.text or "" for e in session.events}
        for call in session.tool_calls:
            if (call.status == "none") != (call.result_seq is None):
                yield f"{call.call_id} has status {call.status}, result {call.result_seq}"
            if call.outcome is not None and MEANS[call.outcome] != call.status:
                yield f"{call.call_id} is {call.outcome}, and {call.status}"
            if call.exit_code and call.outcome == "done":
                yield f"{call.call_id} is done, with exit code {call.exit_code}"
            went_well = call.outcome == "done" and call.class_ == "shell" and call.purpose != "poll"
            end = _EXIT.search(texts.get(call.result_seq, "")) if went_well and call.result_seq is not None else None
            if end is not None and int(end[1]):
                yield f"{call.call_id} is done, and its result says {end[0]!r}"


def nothing_twice(files: Files) -> Iterator[str]:
    """An id has one session, a message has one step, and a copy of a log adds nothing."""
    whole = read(files)[0]
    ids = [s.session_id for s in whole.sessions]
    yield from sorted({f"session {i} comes twice" for i in ids if ids.count(i) > 1})
    for session in whole.sessions:
        named = [(s.thread, s.message_id) for s in session.steps if s.message_id and s.output_tokens is not None]
        yield from sorted(
            {f"{session.session_id}: the tokens of {n[1]} count twice" for n in named if named.count(n) > 1}
        )
    name, data = next(iter(files.items()))
    claimed = identify(_head(name, data))
    if len(files) == 1 and claimed and claimed[0].is_own and any(k.startswith("session:") for k in claimed[1].keys):
        again = read({name: data, f"copy/{name}": data})[0]
        if _sums(again) != _sums(whole):
            yield f"{_sums(whole)} in {name}, {_sums(again)} with a copy beside it"


def _sums(reading: Reading) -> dict[str, float]:
    sessions = reading.sessions
    steps = [step for s in sessions for step in s.steps]
    counts = {"sessions": len({s.session_id for s in sessions}), "calls": sum(len(s.tool_calls) for s in sessions)}
    return counts | {name: sum(getattr(s, name) or 0 for s in steps) for name in _COUNTED}


def absent_is_no_zero(files: Files) -> Iterator[str]:
    """Without a field its value is absent: no count becomes 0."""
    for name, data in files.items():
        before = _least(files)
        fields = {field for value, _ in _values(data) for field in _number_fields(value)}
        for field in sorted(fields):
            left = b"".join(json.dumps(_without(value, field)).encode() + end for value, end in _values(data))
            after = _least({**files, name: left})
            yield from (f"without {field} {what} is 0" for what in after if what not in before)


def _number_fields(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (key for key, inner in value.items() if type(inner) in (int, float))
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _number_fields(inner)


def _without(value: Any, field: str) -> Any:
    if isinstance(value, list):
        return [_without(item, field) for item in value]
    if isinstance(value, dict):
        return {key: _without(inner, field) for key, inner in value.items() if key != field}
    return value


def _least(files: Files) -> set[str]:
    """Return figures that are 0 in some session: each of its steps has 0, or nothing."""
    return {
        what
        for session in read(files)[0].sessions
        for what in _COUNTED
        if 0 in (each := [getattr(step, what) for step in session.steps]) and not any(each)
    }


def _values(data: bytes) -> Iterator[tuple[Any, bytes]]:
    """Yield the document, or the readable records of JSON Lines, each with its line end."""
    try:
        yield json.loads(data), b""
    except ValueError:
        for line in data.splitlines():
            try:
                yield json.loads(line), b"\n"
            except (ValueError, *UNREADABLE):
                continue


def damage_survived(files: Files) -> Iterator[str]:
    """A file cut anywhere loses only its last record, and garbled bytes raise nothing."""
    for name, data in files.items():
        claimed = identify(_head(name, data))
        if claimed is None:
            continue
        whole = _skipped(claimed[0], name, data)
        for n in range(_CUTS):
            at = len(data) * n // _CUTS
            if _skipped(claimed[0], name, data[:at]) > whole + 1:
                yield f"{name} cut at {at} loses more than its last record"
            _skipped(claimed[0], name, data[:at] + _JUNK + data[at + len(_JUNK) :])


def _skipped(made: Format, name: str, data: bytes) -> int:
    given = _given(made, name, data)
    made.read([given])
    return given.artifact.skipped


def _given(made: Format, name: str, data: bytes) -> Input:
    artifact = Artifact(artifact_id=name, source="sample", path=name, format=made.name, sha256="", bytes=len(data))
    return Input(data, artifact)


RULES: dict[str, Callable[[Files], Iterator[str]]] = {
    rule.__name__: rule
    for rule in (
        one_claimant, claims_of_anything, nothing_lost, rows_hang_together, one_meaning_of_failed, nothing_twice,
        absent_is_no_zero, damage_survived,
    )
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Print the broken rules. Return 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help="of an installed format")
    parser.add_argument("samples", type=Path, help="their folder")
    options = parser.parse_args(arguments)
    wrong = problems(options.name, options.samples)
    for problem in wrong:
        print(f"{problem.sample or options.name}: {problem.rule.replace('_', ' ')}: {problem.what}")
    print(f"{options.name}: {len(RULES)} rules over {len(samples(options.samples))} samples, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
