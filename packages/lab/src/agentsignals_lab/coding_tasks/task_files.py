"""Tasks from a JSONL file: this package's shape, HumanEval's and MBPP's, told apart by their fields.

Nothing of a file is run. Tests of a benchmark are read as cases; a task whose tests say more than cases can is left
out, and counted. A hidden case that the words or a visible case show would be none: in this package's shape that is an
error, in the others the case counts as visible.
"""

from __future__ import annotations

import ast
import doctest
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct
from msgspec.structs import replace

from agentsignals_lab.coding_tasks.calls import read_case, says_nothing
from agentsignals_lab.coding_tasks.task import Case, Check, Task, shown, words
from agentsignals_lab.coding_tasks.variants import parameters_of

ENDING = ".jsonl"
_LONGEST_ID = 120
_LONGEST_CALL = 500


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


def read_tasks(path: Path) -> TaskFile:
    """The tasks of a file. LabError when it can't be read, two are called alike, a line of this package's shape is
    wrong, or nothing is left."""
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise LabError(
            f"The tasks {path} can't be read: {problem.strerror}.", "Name a file of JSON lines."
        ) from problem
    by_id: dict[str, Task] = {}
    left_out: list[LeftOut] = []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            read, is_benchmark = _shape(record)
        except (msgspec.MsgspecError, UnicodeDecodeError, LabError) as problem:
            raise LabError(f"Line {number} of {path} is no task: {problem}", _SHAPES_SAID) from problem
        try:
            task = read(record)
        except (LabError, msgspec.MsgspecError) as problem:
            if not is_benchmark:
                raise LabError(f"Line {number} of {path} is no task: {problem}", _SHAPES_SAID) from problem
            left_out.append(LeftOut(number, str(record.get("task_id"))[:_LONGEST_ID], str(problem)))
            continue
        if not task.id.strip() or len(task.id) > _LONGEST_ID or not task.id.isprintable() or set("+@,") & set(task.id):
            raise LabError(
                f"Line {number} of {path}: {task.id[:_LONGEST_ID]!r} is no id.",
                f"At most {_LONGEST_ID} printable characters without `+`, `@` and commas.",
            )
        if task.id in by_id:
            raise LabError(f"{path} has two tasks called {task.id!r}.", "Rows are told apart by that name.")
        by_id[task.id] = task
    if not by_id:
        why = f" The first: {left_out[0].why}" if left_out else ""
        raise LabError(f"{path} holds no task that can be asked.{why}", _SHAPES_SAID)
    return TaskFile(list(by_id.values()), left_out, hashlib.sha256(raw).hexdigest())


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
    "One JSON object a line: id, says, signature, visible, hidden; or the shape of HumanEval or MBPP. See docs/lab.md."
)


def _shape(record: dict[str, Any]) -> tuple[Callable[[dict[str, Any]], Task], bool]:
    """Return the reader of a line, and whether it is a benchmark's."""
    if "says" in record:
        return _written, False
    if "entry_point" in record and "test" in record:
        return _human_eval, True
    if "test_list" in record:
        return _mbpp, True
    raise LabError("it has neither `says`, nor `entry_point` and `test`, nor `test_list`")


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
        if sum(map(bool, (part.text, part.pattern, part.command))) != 1:
            raise LabError("a check is one of text, pattern and command")
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


def shown_arguments(task: Task) -> set[str]:
    """The arguments, as Python writes them, that the task's words and visible cases show."""
    return {*calls_in(words(task), task.function), *(repr(case.args) for case in task.visible)}


def calls_in(text: str, function: str) -> set[str]:
    """The arguments, as Python writes them, of calls of the function with literals that stand in a text."""
    arguments: set[str] = set()
    for begun in re.finditer(rf"\b{re.escape(function)}\s*\(", text):
        for ended in re.finditer(r"\)", text[begun.start() : begun.start() + _LONGEST_CALL]):
            try:
                arguments.add(repr(read_case(text[begun.start() : begun.start() + ended.end()], function).args))
            except LabError:
                continue  # the bracket closes something inside the call, or it is one of names
            break
    return arguments


# -- benchmarks --------------------------------------------------------------------------------------------------------


class HumanEvalLine(Struct, frozen=True, kw_only=True):
    """github.com/openai/human-eval; other fields are ignored."""

    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str = ""
    test: str


class MbppLine(Struct, frozen=True, kw_only=True):
    """github.com/google-research/google-research/tree/master/mbpp; `prompt` in its sanitized half."""

    task_id: int | str
    text: str = ""
    prompt: str = ""
    code: str
    test_list: tuple[str, ...]
    challenge_test_list: tuple[str, ...] = ()
    test_setup_code: str = ""


def _human_eval(record: dict[str, Any]) -> Task:
    line = msgspec.convert(record, HumanEvalLine)
    name = line.entry_point
    defined = _functions(line.prompt)
    if list(defined) != [name]:
        raise LabError("its prompt defines other functions as well")
    check = _functions(line.test).get("check")
    if check is None:
        raise LabError("its test defines no `check`")
    tests = [ast.unparse(statement) for statement in check.body if not says_nothing(statement)]
    says = ast.get_docstring(defined[name]) or ""
    return _of_benchmark(
        Task(
            id=line.task_id,
            family="human_eval",
            function=name,
            signature=_signature(defined[name]),
            says=says,
            visible=tuple(_examples(says, name)),
            reference=line.prompt + line.canonical_solution,
        ),
        [read_case(test, name) for test in tests],
    )


def _mbpp(record: dict[str, Any]) -> Task:
    line = msgspec.convert(record, MbppLine)
    if line.test_setup_code.strip():
        raise LabError("its tests need code of their own")
    code = line.code.replace("\r\n", "\n")
    defined = _functions(code)
    tests = (*line.test_list, *line.challenge_test_list)
    called = [name for name in defined if re.search(rf"\b{re.escape(name)}\s*\(", tests[0] if tests else "")]
    if len(called) != 1:
        raise LabError("its tests call no function of its code, or several")
    return _of_benchmark(
        Task(
            id=f"mbpp/{line.task_id}",
            family="mbpp",
            function=called[0],
            signature=_signature(defined[called[0]]),
            says=line.text or line.prompt,
            reference=code,
        ),
        [read_case(test, called[0]) for test in tests],
    )


def _functions(code: str) -> dict[str, ast.FunctionDef]:
    try:
        return {node.name: node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise LabError("it is no Python") from problem


def _signature(defined: ast.FunctionDef) -> str:
    gives = f" -> {ast.unparse(defined.returns)}" if defined.returns else ""
    return f"{defined.name}({ast.unparse(defined.args)}){gives}"


def _examples(docstring: str, function: str) -> Iterable[Case]:
    """The examples of a docstring that are cases; what is none stays words."""
    try:
        examples = doctest.DocTestParser().get_examples(docstring)
    except ValueError:
        return
    for example in examples:
        if not example.want.strip():
            continue  # it prints nothing, which is no value
        try:
            yield read_case(f"({example.source.strip()}) == ({example.want.strip()})", function)
        except LabError:
            continue


def _of_benchmark(task: Task, tests: Sequence[Case]) -> Task:
    """The task with its tests parted: those that are shown anyway are visible, and of none the first is. Where an
    example contradicts a test (HumanEval/47 does), the test counts."""
    in_sight = shown_arguments(task)
    hidden = [case for case in tests if repr(case.args) not in in_sight]
    by_args = {repr(case.args): case for case in (*task.visible, *(case for case in tests if case not in hidden))}
    visible = list(by_args.values())
    if not visible:
        visible, hidden = hidden[:1], hidden[1:]
    if not hidden:
        raise LabError("all its tests are shown")
    return replace(task, visible=tuple(visible), hidden=tuple(hidden))
