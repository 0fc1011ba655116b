"""Tasks from a JSONL or Parquet file or from the Hub, in this package's shape or a benchmark's (`benchmarks`).

Nothing of a file is run. A task of a benchmark whose tests say more than cases can is left out, and counted. A hidden
case that the words or a visible case show would be none: in this package's shape that is an error, in the others the
case counts as visible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct
from msgspec.structs import replace

from agentsignals_lab.coding_tasks.benchmarks import HUB, from_hub, reader_of
from agentsignals_lab.coding_tasks.calls import read_case, shown_arguments
from agentsignals_lab.coding_tasks.task import Case, Check, Task, shown
from agentsignals_lab.coding_tasks.variants import parameters_of

ENDING, TABLE = ".jsonl", ".parquet"
_LONGEST_ID = 120


class LeftOut(Struct, frozen=True):
    """A task of a benchmark that can't be asked here."""

    line: int
    id: str
    why: str


class TaskFile(Struct, frozen=True):
    """Contents of a task file."""

    tasks: list[Task]
    left_out: list[LeftOut]
    sha256: str


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A task as this package writes it. With a signature, visible and hidden are cases, lines of Python such as
    `area(2) == 4`; without one they are checks of the answer's text."""

    id: str
    says: str
    family: str = "file"
    version: int = 1
    signature: str = ""
    visible: tuple[str | Check, ...] = ()
    hidden: tuple[str | Check, ...]
    reference: str = ""
    wrong: str = ""


def is_file(named: str) -> bool:
    """Return whether a name of tasks is a file's, or a data set's on the Hub."""
    return named.endswith((ENDING, TABLE)) or named.startswith(HUB)


def read_tasks(named: str | Path, beside: Path = Path()) -> TaskFile:
    """The tasks of a file, or of `hf:OWNER/NAME`. LabError when it can't be read, two are called alike, a line of this
    package's shape is wrong, or nothing is left."""
    by_id: dict[str, Task] = {}
    left_out: list[LeftOut] = []
    sha256, records = _records(str(named), beside)
    for number, row in records:
        where = f"Line {number} of {named}"
        try:
            record = row if isinstance(row, dict) else msgspec.json.decode(row, type=dict[str, Any])
            read = reader_of(record)
            if read is None and "says" not in record:
                raise LabError("it has the fields of no shape that is known")
        except (msgspec.MsgspecError, UnicodeDecodeError, LabError) as problem:
            raise LabError(f"{where} is no task: {problem}", _SHAPES_SAID) from problem
        try:
            task = _written(record) if read is None or "says" in record else read(record)
        except (LabError, msgspec.MsgspecError) as problem:
            if "says" in record:
                raise LabError(f"{where} is no task: {problem}", _SHAPES_SAID) from problem
            called = str(record.get("task_id", record.get("question_id")))
            left_out.append(LeftOut(number, called[:_LONGEST_ID], str(problem)))
            continue
        if not task.id.strip() or len(task.id) > _LONGEST_ID or not task.id.isprintable() or set("+@,") & set(task.id):
            raise LabError(
                f"{where}: {task.id[:_LONGEST_ID]!r} is no id.",
                f"At most {_LONGEST_ID} printable characters without `+`, `@` and commas.",
            )
        if task.id in by_id:
            raise LabError(f"{named} has two tasks called {task.id!r}.", "Rename one of them.")
        by_id[task.id] = task
    if not by_id:
        why = f" The first: {left_out[0].why}" if left_out else ""
        raise LabError(f"{named} holds no task that can be asked.{why}", _SHAPES_SAID)
    return TaskFile(list(by_id.values()), left_out, sha256)


def _records(named: str, beside: Path) -> tuple[str, Iterable[tuple[int, Any]]]:
    """A hash of the rows, and the rows by their number: JSON as it is written, or as Python has it."""
    if named.startswith(HUB):
        rows = from_hub(named)
        return hashlib.sha256(msgspec.json.encode(rows)).hexdigest(), enumerate(rows, 1)
    try:
        raw = (beside / named).read_bytes()
        if named.endswith(TABLE):
            import pyarrow.parquet as pq  # noqa: PLC0415  (a third of a second, and few files need it)

            return hashlib.sha256(raw).hexdigest(), enumerate(pq.read_table(beside / named).to_pylist(), 1)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise LabError(
            f"The tasks {named} can't be read: {why}.", "Name a file of JSON lines, or Parquet."
        ) from problem
    lines = [(number, line) for number, line in enumerate(raw.splitlines(), 1) if line.strip()]
    return hashlib.sha256(raw).hexdigest(), lines


def written(task: Task) -> Line:
    """A plain task as a line of this package's shape."""
    return Line(
        id=task.id,
        says=task.says,
        family=task.family,
        version=task.version,
        signature=task.signature,
        visible=(*(shown(case, task.function) for case in task.visible), *task.visible_checks),
        hidden=(*(shown(case, task.function) for case in task.hidden), *task.hidden_checks),
        reference=task.reference,
        wrong=task.wrong,
    )


_SHAPES_SAID = (
    "One JSON object a line: id, says, signature, visible, hidden; or a row of HumanEval, MBPP, EvalPlus or"
    " LiveCodeBench. See docs/lab.md."
)


# -- this package's shape ----------------------------------------------------------------------------------------------


def _written(record: dict[str, Any]) -> Task:
    line = msgspec.convert(record, Line)
    if not line.hidden:
        raise LabError(f"{line.id!r} has nothing hidden: who passes what is visible may know that alone")
    task = Task(
        id=line.id,
        version=line.version,
        family=line.family,
        says=line.says,
        signature=line.signature,
        reference=line.reference,
        wrong=line.wrong,
    )
    if not line.signature:
        return replace(task, visible_checks=_checks(line.visible), hidden_checks=_checks(line.hidden))
    parameters, name = parameters_of(line.signature), line.signature.partition("(")[0].strip()
    task = replace(task, function=name, visible=_cases(line.visible, name), hidden=_cases(line.hidden, name))
    if odd := [case for case in (*task.visible, *task.hidden) if len(case.args) > len(parameters)]:
        raise LabError(f"{shown(odd[0], name)} has more arguments than {line.signature}")
    if not task.visible:
        raise LabError(f"{line.id!r} shows no case")
    in_sight = shown_arguments(task)
    if leaks := [case for case in task.hidden if repr(case.args) in in_sight]:
        raise LabError(f"the hidden case {shown(leaks[0], task.function)} is shown by its words or a visible case")
    return task


def _checks(parts: Iterable[str | Check]) -> tuple[Check, ...]:
    for part in parts:
        if isinstance(part, str):
            raise LabError(f"{part[:80]!r} is a case, and no signature says of what")
        if bool(part.text) == bool(part.pattern):
            raise LabError("a check is one of text and pattern")
        if part.pattern:
            # The same engine that will search the answers: what it refuses, it refuses before anything is asked.
            compiled(part.pattern)
    return tuple(part for part in parts if isinstance(part, Check))


def compiled(pattern: str) -> Callable[[str], bool]:
    """Return a test for a match of the RE2 pattern, in time that grows with the text alone. LabError for none."""
    import pyarrow as pa  # noqa: PLC0415  (a third of a second, and few tasks need it)
    import pyarrow.compute as pc  # noqa: PLC0415

    def holds(text: str) -> bool:
        return bool(pc.match_substring_regex(pa.array([text]), pattern=pattern)[0].as_py())

    try:
        holds("")
    except pa.ArrowInvalid as problem:
        raise LabError(f"{pattern[:80]!r} is no RE2 pattern: {problem}") from problem
    return holds


def _cases(parts: Iterable[str | Check], function: str) -> tuple[Case, ...]:
    cases = []
    for part in parts:
        if not isinstance(part, str):
            raise LabError("a task with a signature has cases, lines of Python, and no checks of text")
        cases.append(read_case(part, function))
    return tuple(cases)
