"""Rows of benchmarks as tasks: HumanEval, MBPP, EvalPlus' and LiveCodeBench's forms, told apart by their fields.

Nothing of them is run: tests are read as cases, and a task whose tests say more than cases can is a LabError.
"""

from __future__ import annotations

import ast
import base64
import binascii
import doctest
import io
import json
import pickle
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct
from msgspec.structs import replace

from agentsignals_lab.coding_tasks.calls import checked, read_case, says_nothing, shown_arguments
from agentsignals_lab.coding_tasks.task import Case, Task

HUB = "hf:"
BENCHMARKS = ("human_eval", "mbpp", "livecodebench")
"""Families of the tasks that are made here."""
_ROWS_OF_TESTS = ("inputs", "results")
_MOST_BYTES = 1 << 27
"""Of tests that come packed."""


def reader_of(record: dict[str, Any]) -> Callable[[dict[str, Any]], Task] | None:
    """Return the reader of a benchmark's row; None for one that is none's."""
    if "entry_point" in record and "test" in record:
        return _human_eval
    if "test_list" in record:
        return _mbpp
    return _live_code_bench if "public_test_cases" in record else None


def from_hub(named: str) -> list[dict[str, Any]]:
    """The rows of `hf:OWNER/NAME`, with `@REVISION` and `:SPLIT` (else `test`) where they are named, by the package
    `datasets`. LabError when it is not installed, or the data set can't be had."""
    path, _, split = named.removeprefix(HUB).partition(":")
    path, _, revision = path.partition("@")
    try:
        import datasets  # noqa: PLC0415  (a package of its own)
    except ImportError as problem:
        raise LabError(f"{named} needs the package datasets.", "pip install datasets, or name a file.") from problem
    try:
        return [dict(row) for row in datasets.load_dataset(path, split=split or "test", revision=revision or None)]
    except (OSError, ValueError, RuntimeError) as problem:
        raise LabError(
            f"{named} can't be read: {problem}", "Name OWNER/NAME, a split that it has, or a file."
        ) from problem


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
    test: str = ""
    """EvalPlus' further tests."""


class LiveCodeBenchLine(Struct, frozen=True, kw_only=True):
    """huggingface.co/datasets/livecodebench; other fields are ignored."""

    question_id: str
    question_content: str
    starter_code: str = ""
    public_test_cases: str | list[Any]
    private_test_cases: str | list[Any] = "[]"
    metadata: str | dict[str, Any] = "{}"


def _human_eval(record: dict[str, Any]) -> Task:
    line = msgspec.convert(record, HumanEvalLine)
    name = line.entry_point
    defined = _functions(line.prompt)
    if list(defined) != [name]:
        raise LabError("its prompt defines other functions as well")
    check = _functions(line.test).get("check")
    if check is None:
        raise LabError("its test defines no `check`")
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
        list(_of_table(check.body, name))
        or [read_case(ast.unparse(test), name) for test in check.body if not says_nothing(test)],
    )


def _of_table(body: Sequence[ast.stmt], function: str) -> Iterator[Case]:
    """The cases of EvalPlus' tests, two lists of literals and a loop over them; none where the tests are no such.
    The loop's last argument is a tolerance; 0 stands for none."""
    lists: dict[str, ast.expr] = {}
    loops = [one for one in body if isinstance(one, ast.For)]
    for one in body:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            lists[one.targets[0].id] = one.value
    if len(loops) != 1 or not set(_ROWS_OF_TESTS) <= set(lists):
        return
    call = loops[0].body[0].value if len(loops[0].body) == 1 and isinstance(loops[0].body[0], ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "assertion" or len(call.args) != 3:
        raise LabError("its tests are computed")
    try:
        inputs, results = (ast.literal_eval(lists[name]) for name in _ROWS_OF_TESTS)
        within = ast.literal_eval(call.args[2])
        rows = list(zip(inputs, results, strict=True))
    except (ValueError, TypeError, RecursionError, MemoryError) as problem:
        raise LabError("its inputs or results are computed") from problem
    for arguments, expected in rows:
        yield checked(Case(tuple(arguments), expected, within or None), function)


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
    table = _of_table(_parsed(line.test).body, called[0]) if line.test else ()
    return _of_benchmark(
        Task(
            id=f"mbpp/{line.task_id}",
            family="mbpp",
            function=called[0],
            signature=_signature(defined[called[0]]),
            says=line.text or line.prompt,
            reference=code,
        ),
        [*(read_case(test, called[0]) for test in tests), *table],
    )


def _live_code_bench(record: dict[str, Any]) -> Task:
    line = msgspec.convert(record, LiveCodeBenchLine)
    metadata = json.loads(line.metadata) if isinstance(line.metadata, str) else line.metadata
    name = metadata.get("func_name")
    if not name:
        raise LabError("it reads and writes text, and is no function")
    methods = [
        one
        for one in ast.walk(_parsed(f"{line.starter_code.rstrip()}\n        pass\n"))
        if isinstance(one, ast.FunctionDef)
    ]
    defined = next((one for one in methods if one.name == name), None)
    if defined is None:
        raise LabError(f"its starter code has no {name}")
    defined.args.args = [argument for argument in defined.args.args if argument.arg != "self"]
    shown, hidden = (_live_cases(tests, name) for tests in (line.public_test_cases, line.private_test_cases))
    task = Task(
        id=f"livecodebench/{line.question_id}",
        family="livecodebench",
        function=name,
        signature=_signature(defined),
        says=line.question_content,
        visible=tuple(shown),
    )
    return _of_benchmark(task, hidden)


def _live_cases(tests: str | list[Any], name: str) -> list[Case]:
    """Cases of JSON: an argument a line. The private ones may come as a pickled text, zlib, base 64; nothing but a text
    is unpickled."""
    if isinstance(tests, str) and tests.lstrip()[:1] not in ("[", ""):
        try:
            opened = zlib.decompressobj()
            packed = opened.decompress(base64.b64decode(tests), _MOST_BYTES)
            if opened.unconsumed_tail:
                raise LabError("its tests are too large")
            tests = _Texts(io.BytesIO(packed)).load()
        except (binascii.Error, zlib.error, pickle.UnpicklingError, EOFError, ValueError) as problem:
            raise LabError("its private tests can't be unpacked") from problem
    try:
        return [
            checked(Case(tuple(map(json.loads, test["input"].split("\n"))), json.loads(test["output"])), name)
            for test in (json.loads(tests) if isinstance(tests, str) else tests)
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise LabError("its tests are no JSON") from problem


class _Texts(pickle.Unpickler):
    """Refuses whatever would be imported."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name}")


def _functions(code: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in _parsed(code).body if isinstance(node, ast.FunctionDef)}


def _parsed(code: str) -> ast.Module:
    try:
        return ast.parse(code)
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
