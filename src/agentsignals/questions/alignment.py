"""Alignment of two or more runs of one task: what each did step by step, and where they diverge.

A step is a prompt or a call of the main thread. Two steps are the *same* if they did equal things, *alike* if they did
the same kind of thing to the same file. A step's operations are what the other run may have done too, at any time
(design/alignment.md#steps). Steps are aligned by longest common subsequences with bit vectors (Hyyrö 2004): two runs of
5,000 steps take 50 ms (design/alignment.md#cost). More than two runs are aligned as a star, each with one reference: a
run that solved the task, if one did (design/alignment.md#more-than-two).
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from agentsignals.changes.hunks import TRIVIAL_CHARS, EditText, edit_texts
from agentsignals.model import MAIN, RAN, Edit, Session, ToolCall
from agentsignals.questions.sql import read_queries
from agentsignals.shell.commands import KINDS, kind_of, leading_words
from agentsignals.shell.tokens import program, simple_commands
from agentsignals.views.calls import call_summary, complete_lines

SCRATCH = "(its own script)"
"""Stands for every file that a run created only to try something; its name does not matter."""
_TAIL = 2
"""Path components that count where the project's folder is unknown: runs have folders of their own."""
_MOST_CHARS = 400
_BLANKS = re.compile(r"\s+")
_NUMBERS = re.compile(r"\d+")
_ENTERS = re.compile(r"\s*cd \S+ *(?:&&|;)\s*")
_COMMENT = re.compile(r"(?<=\s)(?:#|//).*")
_ONLY_COMMENT = ("#", "//", "/*", "*", '"""', "'''", "--")
_PROSE = re.compile(r"[A-Z][^=(){}\[\];]*\.")
_FILE = re.compile(r"(?<![\w./-])(?:[\w.-]+/)+[\w.-]+\.[A-Za-z]\w{0,4}\b")
_HEADER = re.compile(r"(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.*)")
_INTERPRETERS = ("python", "node", "ruby", "perl", "php", "deno", "bun", "bash", "sh")
_TEXT_OPTIONS = frozenset(("-c", "-e", "-", "--eval"))
_LOOKS = frozenset(("diff", "status", "log", "show", "branch"))
"""Git commands that change nothing."""
_LOOKS_ONLY = frozenset(("search", "plan"))
"""Call classes without operations: what they find shows in later reads."""

Operation: TypeAlias = "tuple[str, ...]"


class Step(Struct, frozen=True, kw_only=True):
    """A prompt or a call of the main thread."""

    seq: int
    kind: str
    """`prompt`, or the call's class."""
    tool: str = ""
    about: str = ""
    """The command, the file, or the text."""
    status: str = ""
    error: str = ""
    same: Operation = ()
    """Equal if two steps did the same."""
    named: Operation = ()
    """Like `alike`, with the run's own scripts by name."""
    alike: Operation = ()
    """Equal if two steps did the same kind of thing to the same file."""
    deeds: frozenset[Operation] = frozenset()
    """Operations: `(read, file)`, `(change, file, line)`, `(test, file)`, `(tries,)` …

    Steps that look around, clean up, or failed to change anything have none.
    """
    files: frozenset[str] = frozenset()
    """Files read or changed."""
    is_change: bool = False
    """True if it changed a file other than the run's own scripts."""
    is_opaque: bool = False
    """True if the trace does not tell what it was about: code, or a tool of unknown kind."""


class FileNames:
    """One name for each file of several runs."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        paths = {call.path for s in sessions for call in s.tool_calls} | {e.path for s in sessions for e in s.edits}
        self._relative = {posixpath.normpath(path) for path in paths if path and path[:1] not in "/~"}

    def of(self, path: str) -> str:
        """Return the path from the repository's root if any run names it so, else its last two components."""
        if path[:1] not in "/~":
            return posixpath.normpath(path)
        parts = path.strip("/").split("/")
        for start in range(len(parts)):
            if (rest := "/".join(parts[start:])) in self._relative:
                return rest
        return "/".join(parts[-_TAIL:])


def steps_of(session: Session, names: FileNames) -> list[Step]:
    """Return a run's steps in order."""
    edits: dict[int, list[Edit]] = defaultdict(list)
    for edit in session.edits:
        if edit.thread == MAIN:
            edits[edit.seq].append(edit)
    calls = [call for call in session.tool_calls if call.thread == MAIN]
    scratch = _scratch(calls, edits)
    made = [_step(call, edits.get(call.seq, []), scratch, names) for call in calls]
    made += [
        Step(
            seq=turn.seq,
            kind="prompt",
            about=turn.text[:_MOST_CHARS],
            same=("prompt", _flat(turn.text)),
            alike=("prompt",),
        )
        for turn in session.turns
    ]
    return sorted(made, key=lambda step: step.seq)


def _scratch(calls: Sequence[ToolCall], edits: Mapping[int, list[Edit]]) -> set[str]:
    """Files that the run created and then executed by name, or deleted again."""
    looked = {call.path: call.seq for call in reversed(calls) if call.class_ == "read" and call.path}
    created: dict[str, int] = {}
    dropped: dict[str, int] = {}
    changed: set[str] = set()
    for seq, there in sorted(edits.items()):
        for edit in there:
            if edit.op == "create" and edit.path not in changed and looked.get(edit.path, seq) >= seq:
                created[edit.path] = seq
            elif edit.op == "delete":
                dropped[edit.path] = seq
            changed.add(edit.path)
    ran = {
        posixpath.basename(word)
        for call in calls
        if call.command and call.shell_kind == "run"
        for _, words in _commands(call.command)
        for word in words
    }
    return {path for path, seq in created.items() if dropped.get(path, -1) > seq or posixpath.basename(path) in ran}


def _step(call: ToolCall, edits: list[Edit], scratch: set[str], names: FileNames) -> Step:
    """Return a call as it is compared: exactly, loosely by kind and files, and by what it read or changed."""

    def named(path: str) -> str:
        return SCRATCH if path in scratch else names.of(path)

    words = call_summary(call.class_, call.path, call.command, call.arguments)[:_MOST_CHARS]
    path = named(call.path) if call.path and call.path not in (".", "..") else ""
    kind, ran = call.class_, call.status in RAN
    deeds: set[Operation] = set()
    alike: Operation = (kind, path)
    same: Operation = (kind, path, _flat(words))
    opaque = False
    scripts: Sequence[str] = ()
    """Names of the run's own scripts."""
    if edits or kind == "edit":
        lines = _changes(call, edits, path, named)
        whole = sorted({edit.path for edit in edits} or {call.path or ""})
        files = sorted(set(map(named, whole)))
        alike, same = ("edit", *files), ("edit", *files, *sorted(deed[-1] for deed in lines))
        scripts = [posixpath.basename(file) for file in whole if file in scratch]
        if ran:
            deeds = {deed for deed in lines if deed[1] != SCRATCH}
            deeds |= {deed for deed in _ran(call.command or "", scratch, names)[1] if deed[0] == "test"}
            if SCRATCH in files and any(edit.op != "delete" for edit in edits):
                deeds.add(("tries",))
    elif kind == "read" or (call.shell_kind == "read" and path):
        # Other numbers than those of its name are lines: another part of the file is alike.
        alike, deeds = ("read", path), {("read", path)} if path else set()
        same = ("read", path, *_NUMBERS.findall(call.arguments.replace(call.path, "") if call.path else words))
    elif call.shell_kind == "search":
        alike = ("search", path)
    elif call.command is not None:
        family, deeds, scripts = _ran(call.command, scratch, names)
        alike = (call.shell_kind or "run", *sorted({deed[0] for deed in deeds} or family))
        same = (*alike, _flat(_ENTERS.sub("", call.command, count=1)))
    elif kind == "shell":
        there = {names.of(file) for file in _FILE.findall(call.arguments.replace("\\n", " "))}
        deeds, opaque = {("read", file) for file in there}, not there
        alike = ("code", *sorted(there))
    elif kind not in _LOOKS_ONLY:
        alike, deeds, opaque = (kind, call.name), {("tool", call.name)}, kind == "mcp"
    return Step(
        seq=call.seq, kind=kind, tool=call.name, about=words, status=call.status, error=call.error_class or "",
        same=same if ran else (*same, call.status), named=(*alike, *scripts), alike=alike, deeds=frozenset(deeds),
        files=frozenset(deed[1] for deed in deeds if deed[0] in ("read", "change", "edited")),
        is_change=any(deed[0] in ("change", "edited") for deed in deeds), is_opaque=opaque,
    )  # fmt: skip


def _changes(call: ToolCall, edits: list[Edit], path: str, named: Callable[[str], str]) -> set[Operation]:
    """Lines that a call changes, by file; the file alone if the trace does not tell the lines."""
    whole = sorted({edit.path for edit in edits})
    if call.command is not None:
        by_file = _lines_written(complete_lines(call.command, whole, has_failed=call.status == "error"))
    else:
        by_file = _lines_written([("", text) for text in edit_texts(call.arguments, call.argument_roles)])
    if edits and all(edit.op == "delete" for edit in edits):
        return {("change", named(file), "(deleted)") for file in whole}
    if not any(by_file.values()):
        return {("edited", named(file)) for file in whole} or {("edited", path)}
    # Of a command that tells the lines of some of its files, the others are edited, too.
    changed: set[Operation] = {
        ("edited", named(file)) for file in whole if call.command is not None and not by_file.get(file)
    }
    for file, lines in by_file.items():
        target = named(file) if file else named(whole[0]) if whole else path
        changed |= {("change", target, line) for raw in lines if (line := _code(raw))}
    return changed


def _lines_written(texts: Iterable[tuple[str, EditText]]) -> dict[str, set[str]]:
    """Lines that an edit adds, by file ("" if unnamed), or those it removes if it adds none.

    Only the result of a change is compared, because a file that is rewritten names no removed line.
    """
    added: dict[str, set[str]] = defaultdict(set)
    removed: dict[str, set[str]] = defaultdict(set)
    for path, text in texts:
        file = path
        if text.kind != "patch":
            old, new = set(text.old.split("\n")), set(text.new.split("\n"))
            added[file] |= new - old
            removed[file] |= old - new
            continue
        for line in text.new.split("\n"):
            if header := _HEADER.match(line):
                file = header[1].strip()
            elif line.startswith(("+", "-")) and not line.startswith(("+++", "---")):
                (added if line[0] == "+" else removed)[file].add(line[1:])
    return {file: added[file] or removed[file] for file in {*added, *removed}}


def _code(line: str) -> str:
    """Strip a line's comment; empty if nothing significant remains."""
    line = _BLANKS.sub(" ", _COMMENT.sub("", line)).strip()
    if len(line) <= TRIVIAL_CHARS or line.startswith(_ONLY_COMMENT) or (line.count(" ") > 2 and _PROSE.fullmatch(line)):
        return ""
    return line


def _ran(command: str, scratch: set[str], names: FileNames) -> tuple[set[str], set[Operation], list[str]]:
    """Programs that a command calls, its operations, and the run's own scripts among its words."""
    bases = {posixpath.basename(file) for file in scratch}
    deeds: set[Operation] = set()
    family: set[str] = set()
    scripts: list[str] = []
    for name, words in _commands(command):
        kind = kind_of(words, name)
        if kind in ("search", "read"):
            continue
        family.add(name)
        mine = [word for word in map(posixpath.basename, words) if word in bases]
        scripts += mine
        if kind == "test":
            files = [names.of(bare) for w in words[1:] if "." in (bare := w.partition("::")[0]) and w[:1] != "-"]
            deeds |= {("test", file) for file in files} or {("test", "")}
        elif mine:
            deeds |= {("tries",)} if kind == "run" else set()  # to remove it, or make it executable, is to tidy up
        elif name.startswith(_INTERPRETERS) and ("<<" in command or not _TEXT_OPTIONS.isdisjoint(words[1:4])):
            deeds.add(("tries",))
        elif kind != "vcs":
            deeds.add((str(kind), name, *(w for w in words[1:2] if w.isidentifier())))
        elif words[1:2] and words[1] not in _LOOKS:
            deeds.add(("vcs", words[1]))
    return family, deeds, scripts


def _commands(command: str) -> Iterator[tuple[str, list[str]]]:
    """Programs of a command line with their words, without `cd` and `echo`."""
    for words, _, _, _ in simple_commands(command):
        lead = leading_words(words)
        if lead and KINDS.get(name := program(lead[0])) != "":
            yield name, lead


def _flat(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


# -- alignment ---------------------------------------------------------------------------------------------------------


MOST_STEPS = 10_000
"""Steps of a run that are aligned, from its start: rows of 20,000 bits each would take 25 MB."""
How = Literal["same", "alike", "other", "left", "right"]


class AlignedRow(Struct, frozen=True):
    left: Step | None
    right: Step | None
    how: How
    """`same`; `alike`: same kind of operation on the same file; `other`: both do something else; `left`, `right`: only
    that side has a step."""


def align_steps(left: Sequence[Step], right: Sequence[Step]) -> list[AlignedRow]:
    """Align two sequences of steps, each step once, in order. Swapping the sides mirrors the result."""
    if [step.same for step in left] <= [step.same for step in right]:
        return _faced(left, right, _LEVELS)
    return [AlignedRow(row.right, row.left, _MIRRORED.get(row.how, row.how)) for row in _faced(right, left, _LEVELS)]


_MIRRORED: dict[How, How] = {"left": "right", "right": "left"}


_Level = tuple[How, Callable[[Step], Hashable], bool]
_LEVELS: tuple[_Level, ...] = (
    ("same", attrgetter("same"), False),
    ("alike", attrgetter("named"), True),
    ("alike", attrgetter("named"), False),
    ("alike", attrgetter("alike"), False),
)
"""Keys by which steps are matched, in order, and whether of changes alone; earlier matches are fixed. Changes come
first, because reads and attempts between them vary."""


def _faced(left: Sequence[Step], right: Sequence[Step], levels: Sequence[_Level]) -> list[AlignedRow]:
    if not levels or not left or not right:
        both = min(len(left), len(right))
        return [
            *(AlignedRow(a, b, "other") for a, b in zip(left[:both], right[:both], strict=True)),
            *(AlignedRow(step, None, "left") for step in left[both:]),
            *(AlignedRow(None, step, "right") for step in right[both:]),
        ]
    (how, key, of_changes), rest = levels[0], levels[1:]
    here, there = ([k for k, step in enumerate(side) if step.is_change or not of_changes] for side in (left, right))
    rows: list[AlignedRow] = []
    i = j = 0
    for n, m in _common([key(left[k]) for k in here], [key(right[k]) for k in there]):
        a, b = here[n], there[m]
        rows += _faced(left[i:a], right[j:b], rest)
        rows.append(AlignedRow(left[a], right[b], how))
        i, j = a + 1, b + 1
    return rows + _faced(left[i:], right[j:], rest)


def _common(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence that contains the common prefix and suffix; among several the one
    with the earliest matches."""
    n, m = len(left), len(right)
    start = end = 0
    while start < min(n, m) and left[start] == right[start]:
        start += 1
    while end < min(n, m) - start and left[n - 1 - end] == right[m - 1 - end]:
        end += 1
    places: defaultdict[Hashable, int] = defaultdict(int)
    for k, item in enumerate(right[start : m - end]):
        places[item] |= 1 << k
    whole = row = (1 << (m - end - start)) - 1
    rows = []
    for item in left[start : n - end]:
        kept = row & places.get(item, 0)
        row = ((row + kept) | (row - kept)) & whole
        rows.append(row)
    inner: list[tuple[int, int]] = []
    i, j = n - end - start, m - end - start
    while i and j:
        if rows[i - 1] >> (j - 1) & 1:
            j -= 1
        else:
            i -= 1
            if not i or rows[i - 1] >> (j - 1) & 1:
                j -= 1
                inner.append((start + i, start + j))
    return [(k, k) for k in range(start)] + inner[::-1] + [(n - k, m - k) for k in range(end, 0, -1)]


# -- divergence --------------------------------------------------------------------------------------------------------


HALF, MOST = 0.5, 0.8
"""A step diverges if the other run has less than half of its operations; a change, under four fifths of its lines."""
SOME = 0.25
"""From this share on it is uncertain that the other run lacks the step."""
OPAQUE = 0.25
"""Share of opaque steps from which nothing is certain."""
ALONE = 3
"""Consecutive steps with operations without a counterpart, after which one run goes on alone."""
NEXT = 5
"""Steps of each side shown from the divergence on."""
FAILED = frozenset(("error", "rejected", "cancelled"))
Basis = Literal["change", "after", "course"]
"""`change`: a file is changed differently. `after`: changes are equal, then one does something else. `course`: neither
changes a file, and one does something else."""
BECAUSE: dict[Basis, str] = {
    "change": "a file is changed differently",
    "after": "changes are equal, then one run does something the other does not",
    "course": "one run does something the other never does",
}


_SIDES = attrgetter("left"), attrgetter("right")


class Place(Struct, frozen=True, kw_only=True):
    """A position in both runs."""

    row: int
    """Index of the alignment's row."""
    left: int
    right: int
    """Step numbers (calls, from 1) on each side; one past its last if it had ended."""


class Side(Struct, frozen=True, kw_only=True):
    """Actions of a run from a position on."""

    next: list[Step]
    steps: int
    """Calls from there to its end."""
    failed: int
    """Failed calls among them."""
    only: list[str]
    """Files it read or changed from there on, and the other run never."""


class DivergencePoint(Struct, frozen=True, kw_only=True):
    """The step after which two runs do not converge again."""

    place: Place
    basis: Basis
    shared: float
    """Share of that step's operations that the other run has too."""
    sure: bool
    unsure: str
    """Reasons for doubt; empty if it is certain."""
    left: Side
    right: Side


class Divergence(Struct, frozen=True, kw_only=True):
    """Positions where two runs diverge. None where they never do."""

    differs: Place | None
    """First call that is not the same."""
    strays: Place | None
    """First step that the other run never takes, even if they converge later."""
    parts: DivergencePoint | None
    changes_shared: float | None
    """Share of all changed lines that both changed. None if neither changed any."""


def divergence(rows: Sequence[AlignedRow], left_out: bool = False) -> Divergence:
    """Find where the runs of an alignment diverge. `left_out`: steps of either are missing
    (design/alignment.md#where-they-part)."""
    sides = [[step for row in rows if (step := pick(row)) and step.kind != "prompt"] for pick in _SIDES]
    did: list[frozenset[Operation]] = []
    for side in sides:  # all operations of a run; changed lines imply an edited file
        deeds = {deed for step in side for deed in step.deeds}
        did.append(frozenset(deeds | {("edited", deed[1]) for deed in deeds if deed[0] == "change"}))
    # Sides whose step the other run never takes, with the share of its operations that the other has.
    private: list[dict[str, float]] = [
        {
            name: share
            for name, step, other in (("left", row.left, did[1]), ("right", row.right, did[0]))
            if step is not None
            and step.deeds
            and (share := len(step.deeds & other) / len(step.deeds)) < (MOST if step.is_change else HALF)
        }
        for row in rows
    ]
    changes = [frozenset(deed for deed in deeds if deed[0] == "change") for deeds in did]
    differs = next(
        (
            n
            for n, row in enumerate(rows)
            if row.how != "same" and any(step is not None and step.kind != "prompt" for step in (row.left, row.right))
        ),
        None,
    )
    strays = next((n for n, shares in enumerate(private) if shares), None)
    n, basis = _parting(rows, private)
    parting = None
    if n is not None:
        place, shared = _place(rows, n), min(private[n].values(), default=0.0)
        touched = [frozenset(file for step in side for file in step.files) for side in sides]
        row = rows[n]
        opaque = max(sum(step.is_opaque for step in side) / len(side) if side else 0.0 for side in sides)
        edited = {deed[0] for step in (row.left, row.right) if step is not None for deed in step.deeds}
        reasons = [
            "many steps have unknown content" if opaque >= OPAQUE else "",
            "the other run does part of it too" if shared >= SOME else "",
            "changed lines are not recorded" if basis == "change" and "edited" in edited else "",
            "neither run changed a file" if basis == "course" else "",
            "the runs are too long to align completely" if left_out else "",
        ]
        unsure = "; ".join(filter(None, reasons))
        parting = DivergencePoint(
            place=place,
            basis=basis,
            shared=shared,
            sure=not unsure,
            unsure=unsure,
            left=_side(sides[0][place.left - 1 :], touched[1]),
            right=_side(sides[1][place.right - 1 :], touched[0]),
        )
    return Divergence(
        differs=None if differs is None else _place(rows, differs),
        strays=None if strays is None else _place(rows, strays),
        parts=parting,
        changes_shared=len(changes[0] & changes[1]) / len(union) if (union := changes[0] | changes[1]) else None,
    )


def _parting(rows: Sequence[AlignedRow], private: Sequence[dict[str, float]]) -> tuple[int | None, Basis]:
    changing = [n for n, row in enumerate(rows) if any(s is not None and s.is_change for s in (row.left, row.right))]
    for n in changing:
        if any((step := getattr(rows[n], side)) and step.is_change for side in private[n]):
            return n, "change"

    def goes_on_alone(start: int) -> bool:
        how, doing = rows[start].how, 0
        for row in islice(rows, start, None):
            if row.how != how or how not in ("left", "right"):
                return False
            step = row.left or row.right
            doing += step is not None and bool(step.deeds)
            if doing == ALONE:
                return True
        return False

    after = changing[-1] + 1 if changing else 0
    basis: Basis = "after" if changing else "course"
    return next((n for n in range(after, len(rows)) if private[n] or goes_on_alone(n)), None), basis


def _side(rest: Sequence[Step], elsewhere: frozenset[str]) -> Side:
    return Side(
        next=list(islice(rest, NEXT)),
        steps=len(rest),
        failed=sum(step.status in FAILED for step in rest),
        only=sorted({file for step in rest for file in step.files} - elsewhere),
    )


def _place(rows: Sequence[AlignedRow], n: int) -> Place:
    before = rows[:n]
    left, right = (sum(1 for row in before if (s := pick(row)) and s.kind != "prompt") for pick in _SIDES)
    return Place(row=n, left=1 + left, right=1 + right)


# -- runs --------------------------------------------------------------------------------------------------------------


MOST_RUNS = 50
"""Attempts at one task that are aligned."""
_SQL = read_queries(__file__, limit=str(MOST_RUNS + 1))["runs"]
FACTS, OF_TASK, OF_TRIAL = _SQL["facts"], _SQL["of_task"], _SQL["of_trial"]
"""Queries for the facts of sessions, and for the attempts at a task, or of a trial, that have calls."""


class Run(Struct, frozen=True, kw_only=True):
    session_id: str
    agent: str
    model: str | None = None
    task_id: str | None = None
    trial_id: str | None = None
    attempt_index: int | None = None
    outcome: str | None = None
    """Outcome of the attempt; None for other sessions."""
    patch: str | None = None
    """Outcome of its patch."""
    ended: str | None = None
    """The harness's exit status."""
    calls: int
    failed: int
    """Number of failed calls."""


class Alignment(Struct, frozen=True, kw_only=True):
    """Two aligned runs."""

    left: Run
    right: Run
    rows: list[AlignedRow]
    left_out: tuple[int, int]
    """Steps at the ends beyond the limit."""
    same: int
    """Number of rows where both do the same."""
    alike: int
    """Number of rows where both do the same kind of thing to the same file."""
    divergence: Divergence


def align(sessions: Sequence[Session], facts: Mapping[str, Mapping[str, Any]]) -> list[Alignment]:
    """Align each further session with the first. `facts`: rows of `FACTS` by session."""
    names = FileNames(sessions)
    steps = [steps_of(session, names) for session in sessions]
    runs: list[Run] = []
    for session, done in zip(sessions, steps, strict=True):
        calls = [step for step in done if step.kind != "prompt"]
        stated = facts.get(session.session_id, {})
        named: dict[str, Any] = {"session_id": session.session_id, "agent": session.agent, "model": session.model}
        named |= {name: stated[name] for name in Run.__struct_fields__ if name in stated}
        runs.append(Run(**named, calls=len(calls), failed=sum(step.status in FAILED for step in calls)))
    made = []
    for run, done in zip(runs[1:], steps[1:], strict=True):
        rows = align_steps(steps[0][:MOST_STEPS], done[:MOST_STEPS])
        left_out = max(len(steps[0]) - MOST_STEPS, 0), max(len(done) - MOST_STEPS, 0)
        made.append(
            Alignment(
                left=runs[0],
                right=run,
                rows=rows,
                left_out=left_out,
                same=sum(row.how == "same" for row in rows),
                alike=sum(row.how == "alike" for row in rows),
                divergence=divergence(rows, any(left_out)),
            )
        )
    return made


def reference_of(sessions: Sequence[Session], facts: Mapping[str, Mapping[str, Any]]) -> Session:
    """Return the session that others are aligned with: with the median number of calls, among solved ones if any."""
    solved = [s for s in sessions if facts.get(s.session_id, {}).get("outcome") == "solved"]
    ordered = sorted(solved or sessions, key=lambda s: (len(s.tool_calls), s.session_id))
    return ordered[(len(ordered) - 1) // 2]
