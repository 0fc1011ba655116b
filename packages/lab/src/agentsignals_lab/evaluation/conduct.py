"""Conduct of an answer besides solving: missing imports, fixation on tests, leaving the task; recovery by retries."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.coding_tasks import Case, Task
from agentsignals_lab.evaluation.extraction import Extracted, parsed, readable
from agentsignals_lab.evaluation.markers import prose_of, word_count
from agentsignals_lab.evaluation.verdict import Verdict, one_evaluator

_MEMBERS = frozenset((
    "Counter", "defaultdict", "deque", "OrderedDict", "namedtuple", "lru_cache", "reduce", "partial", "cmp_to_key",
    "groupby", "permutations", "combinations", "product", "chain", "accumulate", "islice", "zip_longest", "bisect_left",
    "bisect_right", "insort", "heappush", "heappop", "heapify", "datetime", "timedelta", "date", "Decimal", "Fraction",
    "sqrt", "gcd", "ceil", "floor", "isclose", "List", "Dict", "Optional", "Tuple", "Union", "Any", "Set", "np", "pd",
    "dataclass", "field", "Enum", "itemgetter", "attrgetter", "Path",
))  # fmt: skip
"""Names that code uses without importing them more often than it means something else by them."""
_TESTS = re.compile(
    r"\b(?:tests?|test cases?|examples?|assert(?:ion)?s?|expected (?:output|value|result)s?)\b", re.IGNORECASE
)
_ECHOED = re.compile(
    r"^\s*(?:Attempt \d+ failed|Visible (?:examples|failure|tests)|Hidden (?:examples|tests)|- args=|Retries remaining)"
)
_ECHO_SHARE = 0.5
_MOST_CASES_SHOWN = 10_000

OffTask = Literal["", "no_code", "other_function", "imitates_prompt"]


class ImportMistakes(Struct, frozen=True):
    """Names that are used and never bound though a library has them, and modules that are no part of Python."""

    missing: tuple[str, ...]
    foreign: tuple[str, ...]


class TestFixation(Struct, frozen=True):
    """Share of an answer that is about tests. Rates are per 100 words of prose; None without prose."""

    __test__ = False  # for pytest: nothing to collect

    mentions_per_100_words: float | None
    writes_tests: bool
    """Asserts, or defines or runs tests."""
    cases_copied: int
    """Visible cases whose inputs stand in the code outside the function's own lines."""


class Recovery(Struct, frozen=True, kw_only=True):
    """Recovery by retries in one run of attempts."""

    attempts: int
    failed_first: bool
    recovered: bool
    """The first attempt failed and a later one passed."""
    passed_at: int | None
    """The number (from 0) of the first attempt that passed."""
    repeated: int
    """Attempts whose code is that of the attempt before."""
    regressed: int
    """Attempts that pass fewer visible cases than the one before."""


def import_mistakes(source: str) -> ImportMistakes:
    """Return imports that the code forgot, and those that only an installation would have."""
    tree = parsed(source)
    if tree is None:
        return ImportMistakes((), ())
    bound = set(dir(builtins))
    used: dict[str, None] = {}
    foreign: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used[node.id] = None
            else:
                bound.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            foreign.update((m.partition(".")[0], None) for m in modules)
    importable = _MEMBERS | sys.stdlib_module_names
    return ImportMistakes(
        tuple(name for name in used if name not in bound and name in importable),
        tuple(name for name in foreign if name and name not in sys.stdlib_module_names),
    )


def test_fixation(task: Task, answer: str, source: str, prompt: str = "") -> TestFixation:
    """Return how much the answer is about tests rather than the task; words copied from the prompt do not count."""
    prose = prose_of(answer, source, prompt)
    words = word_count(prose)
    tree = parsed(source)
    function_source = _own_source(tree, source, task.function)
    outside = source.replace(function_source, "", 1)[:_MOST_CASES_SHOWN] if function_source else source
    return TestFixation(
        100 * len(_TESTS.findall(prose)) / words if words else None,
        tree is not None and any(_is_test(node) for node in ast.walk(tree)),
        sum(_call(case) in outside.replace('"', "'") for case in task.visible),
    )


def _own_source(tree: ast.Module | None, source: str, function: str) -> str:
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return ast.get_source_segment(source, node) or ""
    return ""


def _call(case: Case) -> str:
    return f"({', '.join(map(repr, case.args))})"


def _is_test(node: ast.AST) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name.lower().startswith("test")
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.Import) and any(alias.name in ("unittest", "pytest", "doctest") for alias in node.names)
    )


def off_task(answer: str, extracted: Extracted) -> OffTask:
    """Return how the answer left the task, empty when it did not: it goes on with the harness's own lines, defines
    other functions only, or has no code."""
    lines = [line for line in readable(answer).split("\n") if line.strip()]
    if not extracted.valid and lines and sum(bool(_ECHOED.match(line)) for line in lines) >= _ECHO_SHARE * len(lines):
        return "imitates_prompt"
    if extracted.source:
        return ""
    return "other_function" if re.search(r"^[ \t]*def[ \t]+\w+", readable(answer), re.MULTILINE) else "no_code"


def recovery(attempts: Sequence[Verdict]) -> Recovery:
    """Return the recovery by retries, from the verdicts of a run's attempts in order. LabError for none, or of two
    evaluators."""
    one_evaluator(attempts)
    if len({attempt.task for attempt in attempts}) != 1:
        raise LabError("Attempts of several tasks are no run.", "Give the attempts of one task and sample, in order.")
    passes = [n for n, attempt in enumerate(attempts) if attempt.visible_pass]
    pairs = list(pairwise(attempts))
    return Recovery(
        attempts=len(attempts),
        failed_first=attempts[0].visible_pass is False,
        recovered=bool(passes) and attempts[0].visible_pass is False,
        passed_at=passes[0] if passes else None,
        repeated=sum(bool(a.extracted) and a.extracted == b.extracted for a, b in pairs),
        regressed=sum(b.visible_passed < a.visible_passed for a, b in pairs),
    )
