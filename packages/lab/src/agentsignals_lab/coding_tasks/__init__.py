"""Tasks by what a person writes: names, families, files and data sets of the Hub.

Files are of this package's form or a benchmark's (HumanEval, MBPP, EvalPlus, LiveCodeBench), told apart by their
fields. Nothing of one is run: tests are read as cases. A task of a benchmark whose tests say more than cases can is
left out, and counted. A hidden case that the words or a visible case show would be none: in this package's form that is
an error, in the others the case counts as visible. The package's own tasks are such a file (`functions.jsonl`).
"""

from __future__ import annotations

import ast
import base64
import binascii
import doctest
import hashlib
import io
import json
import pickle
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct
from msgspec.structs import replace

from agentsignals_lab.coding_tasks.cases import (
    Case,
    Task,
    Variant,
    checked,
    parameters_of,
    read_case,
    says_nothing,
    shown,
    shown_arguments,
    variant,
    variant_named,
)

_FUNCTIONS = Path(__file__).with_name("functions.jsonl")

PUBLISHED = (
    "parse_duration", "merge_intervals", "stable_top_words", "mask_tokens",
    "normalize_codes", "bucket_score", "safe_divide",
)  # fmt: skip
"""Called like the tasks of the published study, for comparison; words and cases are ours, so results are not theirs."""


@cache
def _all() -> dict[str, Task]:
    return {task.id: task for task in read_tasks(_FUNCTIONS).tasks}


def tasks(
    names: Sequence[str] = (), families: Sequence[str] = (), variants: Sequence[Variant] = ("plain",)
) -> list[Task]:
    """The tasks of these names or families (none named: all), each in each variant. LabError for what is not there."""
    by_id = _all()
    there = dict.fromkeys(task.family for task in by_id.values())
    unknown = sorted(set(names) - set(by_id)) + sorted(set(families) - set(there))
    if unknown:
        raise LabError(f"There is no task or family {unknown[0]!r}.", f"Families: {', '.join(there)}.")
    chosen = [
        task for task in by_id.values() if (not names and not families) or task.id in names or task.family in families
    ]
    return [variant(task, name) for task in chosen for name in variants]


def task(key: str) -> Task:
    """The task of a key (`id`, `id@version`, either with `+variant`). LabError when there is none of that version."""
    name, _, wanted = key.partition("+")
    task_id, _, version = name.partition("@")
    (plain,) = tasks([task_id])
    if version and version != str(plain.version):
        raise LabError(
            f"Task {plain.id!r} is at version {plain.version}, not {version}.", "Name the task without a version."
        )
    return variant(plain, variant_named(wanted or "plain"))


# -- rows of benchmarks

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


# -- files

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
    """A task as this package writes it. Visible and hidden are cases, lines of Python such as `area(2) == 4`."""

    id: str
    says: str
    family: str = "file"
    version: int = 1
    signature: str
    visible: tuple[str, ...]
    hidden: tuple[str, ...]
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
    visible, hidden = (tuple(shown(case, task.function) for case in cases) for cases in (task.visible, task.hidden))
    return Line(visible=visible, hidden=hidden, **{name: getattr(task, name) for name in _KEPT})


_KEPT = ("id", "says", "family", "version", "signature", "reference", "wrong")
"""Fields that a line and its task share."""
_SHAPES_SAID = (
    "One JSON object a line: id, says, signature, visible, hidden; or a row of HumanEval, MBPP, EvalPlus or"
    " LiveCodeBench. See docs/lab.md."
)


def _written(record: dict[str, Any]) -> Task:
    line = msgspec.convert(record, Line)
    parameters, name = parameters_of(line.signature), line.signature.partition("(")[0].strip()
    visible, hidden = (tuple(read_case(case, name) for case in cases) for cases in (line.visible, line.hidden))
    task = Task(function=name, visible=visible, hidden=hidden, **{field: getattr(line, field) for field in _KEPT})
    if not (visible and hidden):
        raise LabError(f"{line.id!r} has nothing {'visible' if hidden else 'hidden'}, and needs both")
    if odd := [case for case in (*visible, *hidden) if len(case.args) > len(parameters)]:
        raise LabError(f"{shown(odd[0], name)} has more arguments than {line.signature}")
    in_sight = shown_arguments(task)
    if leaks := [case for case in hidden if repr(case.args) in in_sight]:
        raise LabError(f"the hidden case {shown(leaks[0], name)} is shown by its words or a visible case")
    return task


# -- what a person writes

HERE = Path()


def chosen_tasks(named: str, variants: Sequence[str] = ("plain",), beside: Path = HERE) -> list[Task]:
    """`all`, `published`, or names, keys, families, files and `hf:OWNER/NAME` between commas.

    `beside`: the folder that paths are seen from. LabError for what is not there, for a variant that is none, for tasks
    that have no variants, and where two are called alike.
    """
    wanted = [variant_named(name) for name in variants]
    if named == "all":
        return tasks(variants=wanted)
    names = list(PUBLISHED) if named == "published" else [name for name in named.split(",") if name]
    families = {candidate.family for candidate in tasks()}
    by_key: dict[str, Task] = {}
    for name in names:
        if is_file(name):
            group = read_tasks(name, beside).tasks
            if twice := sorted({of_file.key for of_file in group} & by_key.keys()):
                raise LabError(f"{name} has a task {twice[0]!r}, which was named before.", "Rename one of them.")
        else:
            group = tasks(families=[name]) if name in families else [task(name)]
        for candidate in group:
            for each in [candidate] if candidate.variant != "plain" else [variant(candidate, kind) for kind in wanted]:
                by_key[each.key] = each
    if not by_key:
        raise LabError(
            f"{named!r} names no task.",
            f"Name all, published, FILE{ENDING}, hf:OWNER/NAME, or of {', '.join(families)}.",
        )
    return list(by_key.values())


def task_files(named: str, beside: Path = HERE) -> dict[str, TaskFile]:
    """The files among what a person writes, by name."""
    return {name: read_tasks(name, beside) for name in named.split(",") if is_file(name)}


def files_of(named: str, beside: Path = HERE) -> dict[str, str]:
    """SHA-256 of those files, by what a manifest calls them."""
    return {f"tasks {Path(name).name}": read.sha256 for name, read in task_files(named, beside).items()}
