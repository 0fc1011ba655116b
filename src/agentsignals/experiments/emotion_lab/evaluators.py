"""The evaluators of the published study, for re-scoring its answers: what they cut out, and what they forbid.

They take the answer from `def NAME(` on, so every import above is lost, and run it with 23 builtins and no `import`
(design/lab.md#extraction). Written anew from that description; the answers run in our sandbox, never beside us.
"""

from __future__ import annotations

import re
from typing import Literal

from agentsignals.lab.coding_tasks import Case, Task
from agentsignals.lab.evaluation.case_runs import Confinement, run
from agentsignals.lab.evaluation.extraction import parsed
from agentsignals.lab.evaluation.verdict import ErrorClass, Verdict
from agentsignals.lab.sandbox import Failed, Limits, Result, Tier, shown

Legacy = Literal["legacy-first", "legacy-last"]
"""`legacy-first` is the study's evaluator at the time of its tables, which keeps the first prefix of an answer that
parses; `legacy-last` the one that it ships now, which keeps the last."""
Evaluator = Literal["1"] | Legacy
EVALUATORS: tuple[Evaluator, ...] = ("1", "legacy-first", "legacy-last")
"""Ours, and theirs."""

BUILTINS = (
    "Exception", "ZeroDivisionError", "abs", "bool", "dict", "enumerate", "filter", "float", "int", "isinstance", "len",
    "list", "map", "max", "min", "range", "round", "set", "sorted", "str", "sum", "tuple", "zip",
)  # fmt: skip
"""All that the published evaluators let code use."""

SECONDS = 2
"""Seconds of a suite, by the clock."""
_CLASSES: dict[str, ErrorClass] = {
    "function_not_found": "no_function",
    "invalid_python": "invalid_python",
    "timeout": "timeout",
}
_MOST_LINES = 1_000
"""Each prefix of lines is parsed, which takes the square of their number; published answers have under 100."""
_SHIM = """
import builtins as _builtins

def _load(source, name):
    space = {{"__builtins__": {{n: getattr(_builtins, n) for n in {names!r}}}}}
    exec(source, space)
    return space[name]

_failure = None
try:
    _function = _load({source!r}, {name!r})
except Exception as problem:
    _failure = repr(problem)

def _call(*args):
    if _failure is not None:
        return ("raised", _failure)
    try:
        return ("gave", _function(*args))
    except Exception as problem:
        return ("raised", repr(problem))
"""


def extract_legacy(answer: str, function: str, evaluator: Legacy) -> tuple[str, bool]:
    """The code that these evaluators run, and whether it parses; empty when the function is not found.

    Of the prefixes of lines that parse and hold the function, `legacy-first` takes the shortest and `legacy-last` the
    longest; of that, the function's own lines.
    """
    text = re.sub(r"```(?:python)?", "", answer.replace("Ċ", "\n").replace("Ġ", " ")).strip()
    match = re.search(rf"def\s+{re.escape(function)}\s*\(", text)
    if not match:
        return "", False
    lines = text[match.start() :].splitlines()
    ends = range(1, min(len(lines), _MOST_LINES) + 1)
    for end in ends if evaluator == "legacy-first" else reversed(ends):
        cut = _own_lines("\n".join(lines[:end]).strip(), function)
        if cut:
            return cut, True
    return text[match.start() :].strip(), False


def _own_lines(source: str, function: str) -> str:
    tree = parsed(source)
    for node in tree.body if tree else ():
        if type(node).__name__ == "FunctionDef" and getattr(node, "name", "") == function:
            return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]).strip()
    return ""


def evaluate_legacy(task: Task, answer: str, evaluator: Legacy, inside: Confinement | None = None) -> Verdict:
    """Return the published evaluator's verdict on an answer. It never tells the machine's faults from the model's."""
    inside = inside or Confinement()
    inside = Confinement(inside.tier, Limits(cpu_s=SECONDS, wall_s=float(SECONDS)), inside.allow_weak)
    source, valid = extract_legacy(answer, task.function, evaluator)
    suites = [_suite(source, task.function, cases, inside) for cases in (task.visible, task.hidden)] if valid else []
    missing = ("invalid_python" if source else "function_not_found") if not valid else ""
    errors = [error for error, _, _ in suites] or [missing, missing]
    return Verdict(
        evaluator=evaluator,
        task=task.key,
        has_function=bool(source),
        valid_python=valid,
        visible_pass=not errors[0],
        hidden_pass=not errors[1],
        task_pass=not any(errors),
        error=errors[0] or errors[1],
        error_class=_class_of(errors[0] or errors[1]),
        extracted=source,
        n_visible=len(task.visible),
        n_hidden=len(task.hidden),
        tier=suites[0][1] if suites else None,
        wall_s=sum(wall_s for _, _, wall_s in suites),
    )


def _suite(source: str, function: str, cases: tuple[Case, ...], inside: Confinement) -> tuple[str, Tier, float]:
    """The error of the first case that fails, as the published evaluators word it; empty when all pass."""
    outcome = run(_SHIM.format(names=BUILTINS, source=source, name=function), "_call", [c.args for c in cases], inside)
    errors = (_error(result, case) for result, case in zip(outcome.results, cases, strict=True))
    return next((error for error in errors if error), ""), outcome.tier, outcome.wall_s


def _error(result: Result, case: Case) -> str:
    if isinstance(result, Failed):
        return "timeout" if result.kind in ("timeout", "not_reached") else f"no_result: {result}"
    if type(result.value) is not tuple or len(result.value) != 2:
        return "no_result: an answer that the frame around the code does not give"
    status, value = result.value
    if status == "raised":
        return str(value)
    return "" if value == case.expected else f"expected {case.expected!r}, got {shown(value)}"


def _class_of(error: str) -> ErrorClass:
    if not error:
        return "none"
    if error in _CLASSES:
        return _CLASSES[error]
    if error.startswith("no_result"):
        return "crashed"
    if error.startswith("expected "):
        return "wrong_value"
    return "import_failed" if error.startswith(("ImportError", "ModuleNotFoundError")) else "raised"
