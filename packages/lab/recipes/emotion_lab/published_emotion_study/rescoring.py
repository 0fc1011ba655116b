"""Tables that claims about the published study are computed from: its stored answers evaluated again, the marker words
in them, its directions. A table is asked for one run, and for one evaluator where answers are run.

The published evaluators take an answer from `def NAME(` on, so every import above is lost, and run it with 23 builtins
and no `import` (design/lab.md#extraction). Written anew from that description; answers run in our sandbox only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from agentsignals.errors import LabError
from agentsignals.model import Absent

from agentsignals_lab.coding_tasks.cases import Case, Task
from agentsignals_lab.evaluation import evaluate, legacy_markers, legacy_score, parsed
from agentsignals_lab.sandbox import Failed, Limits, Result, call, shown
from published_emotion_study import TASKS, Run, runs, with_lists

EVALUATORS = ("1", "legacy-first", "legacy-last")
"""The lab's own evaluator; the study's at the time of its tables, which keeps the first prefix of an answer that
parses; the one that it ships now, which keeps the last."""
BUILTINS = (
    "Exception", "ZeroDivisionError", "abs", "bool", "dict", "enumerate", "filter", "float", "int", "isinstance", "len",
    "list", "map", "max", "min", "range", "round", "set", "sorted", "str", "sum", "tuple", "zip",
)  # fmt: skip
"""All that the published evaluators let code use."""
_LIMITS = Limits(cpu_s=2, wall_s=2.0)
"""A published suite had two seconds."""
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


class Judged(NamedTuple):
    """Verdict on an answer, by the names of the published columns. Passes are None where the machine failed."""

    valid_python: bool
    has_function: bool
    visible_pass: bool | None
    hidden_pass: bool | None
    task_pass: bool | None
    error: str
    extracted_source: str


def extract_legacy(answer: str, function: str, evaluator: str) -> tuple[str, bool]:
    """Return the code that these evaluators run, and whether it parses; empty when the function is not found.

    `legacy-first` takes the shortest prefix of lines that parses and holds the function, `legacy-last` the longest.
    The code is the function's own lines in it.
    """
    text = re.sub(r"```(?:python)?", "", answer.replace("Ċ", "\n").replace("Ġ", " ")).strip()
    match = re.search(rf"def\s+{re.escape(function)}\s*\(", text)
    if not match:
        return "", False
    lines = text[match.start() :].splitlines()
    ends = range(1, min(len(lines), _MOST_LINES) + 1)
    for end in ends if evaluator == "legacy-first" else reversed(ends):
        source = "\n".join(lines[:end]).strip()
        tree = parsed(source)
        for node in tree.body if tree else ():
            if type(node).__name__ == "FunctionDef" and getattr(node, "name", "") == function:
                return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]).strip(), True
    return text[match.start() :].strip(), False


def evaluate_legacy(task: Task, answer: str, evaluator: str) -> Judged:
    """Return the published evaluator's verdict on an answer. It never tells the machine's faults from the model's."""
    source, valid = extract_legacy(answer, task.function, evaluator)
    if valid:
        visible, hidden = (_suite_error(source, task.function, cases) for cases in (task.visible, task.hidden))
    else:
        visible = hidden = "invalid_python" if source else "function_not_found"
    error = visible or hidden
    return Judged(valid, bool(source), not visible, not hidden, not error, error, source)


def _suite_error(source: str, function: str, cases: tuple[Case, ...]) -> str:
    """Return the error of the first case that fails, as the published evaluators word it; empty when all pass."""
    shim = _SHIM.format(names=BUILTINS, source=source, name=function)
    results = call(shim, "_call", [case.args for case in cases], _LIMITS).results
    return next(
        (error for result, case in zip(results, cases, strict=True) if (error := _case_error(result, case))), ""
    )


def _case_error(result: Result, case: Case) -> str:
    if isinstance(result, Failed):
        return "timeout" if result.kind in ("timeout", "not_reached") else f"no_result: {result}"
    if type(result.value) is not tuple or len(result.value) != 2:
        return "no_result: an answer that the frame around the code does not give"
    status, value = result.value
    if status == "raised":
        return str(value)
    return "" if value == case.expected else f"expected {case.expected!r}, got {shown(value)}"


def judge(task: Task, answer: str, evaluator: str) -> Judged:
    """Return the verdict of one of `EVALUATORS`."""
    if evaluator != "1":
        return evaluate_legacy(task, answer, evaluator)
    by = evaluate(task, answer)
    passes = by.visible_pass, by.hidden_pass, by.full_pass
    return Judged(by.valid_python, by.error_class != "no_function", *passes, by.error, by.source)


# -- Tables

Row = dict[str, Any]


def rescored(run: Run, evaluator: str) -> Iterable[Row]:
    """Yield each stored answer with its verdict now, and how that differs from the published one. LabError when an
    answer is to a task that was never published."""
    answers = run.answers()
    published = answers if run.loop else run.rows("execution_scores")
    if published and len(published) != len(answers):
        raise LabError(
            f"{run.name} has {len(answers)} answers and {len(published)} verdicts.",
            "There must be one of each per task.",
        )
    verdicts: dict[tuple[str, str], Judged] = {}  # the same answer to the same task is run once: it is the same code
    for n, answer in enumerate(answers):
        task_id, text = answer.get("task_id", ""), answer.get("generation") or ""
        if task_id not in TASKS:
            raise LabError(
                f"{run.name} has answers to {task_id!r}, no published task.", f"Published are: {', '.join(TASKS)}."
            )
        if (task_id, text) not in verdicts:
            verdicts[task_id, text] = judge(TASKS[task_id], text, evaluator)
        verdict = verdicts[task_id, text]
        before = published[n] if published else {}
        change = "now_unknown" if verdict.task_pass is None else "same"
        if change == "same" and before and (passed := before.get("task_pass") == "True") is not verdict.task_pass:
            change = "pass_to_fail" if passed else "fail_to_pass"
        yield {
            "task_id": task_id,
            "condition": answer.get("condition", ""),
            "change": change if before else "was_unknown",
            "is_same": all(before[name] == str(now) for name, now in verdict._asdict().items() if name in before),
            **verdict._asdict(),
        }


def first_attempts(run: Run, _evaluator: str) -> Iterable[Row]:
    """Yield each first attempt: whether it passes as published, with imports kept, with a list for the tuple that goes
    in as well, and with lists for the tuples within it, too."""
    for row in run.answers():
        if row.get("attempt") == "0":
            task = TASKS[row["task_id"]]
            forms = {"imports_kept": task, "lists": with_lists(task, nested=False)}
            forms["nested_lists"] = with_lists(task, nested=True)
            passes = {name: judge(form, row["generation"], "1").task_pass is True for name, form in forms.items()}
            yield {"published": row["task_pass"] == "True", **passes}  # noqa: S105  (a column)


def markers(run: Run, _evaluator: str) -> Iterable[Row]:
    """Yield the marker words of each stored answer, and how many cells of the published columns differ from them."""
    answers = run.answers()
    stored = answers if run.loop else run.rows("generation_scores")
    if len(stored) == len(answers):
        for text, row in zip((answer.get("generation") or "" for answer in answers), stored, strict=True):
            counts = legacy_markers(text) | {"aggregate_marker_score": legacy_score(text)}
            differ = sum(row.get(name) != str(count) for name, count in {**counts, "chars": len(text)}.items())
            yield {"cells_that_differ": differ, **counts}


def _of_directions(table: str, run: Run, _evaluator: str) -> Iterable[Row]:
    from published_emotion_study import states  # noqa: PLC0415  (NumPy is of an extra)

    stored = states.stored_directions(run)
    if stored is None:
        return []
    return states.alike(stored) if table == "directions" else states.rises(run, stored)


TABLES: dict[str, Callable[[Run, str], Iterable[Row]]] = {
    "rescored": rescored,
    "first_attempts": first_attempts,
    "markers": markers,
    "directions": partial(_of_directions, "directions"),
    "rises": partial(_of_directions, "rises"),
}


def rows_of(folder: Path, table: str, run: str, evaluator: str) -> list[Row] | Absent:
    """Return one of `TABLES` about a run below a folder of published results. LabError when its files are damaged."""
    if evaluator not in EVALUATORS:
        return Absent("not_computable", f"there is no evaluator {evaluator!r}, only {', '.join(EVALUATORS)}")
    found = runs(folder).get(run)
    if found is None:
        return Absent("missing_artifact", f"the results of {run} are not here")
    try:
        rows = [{"run": run, "evaluator": evaluator, **row} for row in TABLES[table](found, evaluator)]
    except KeyError as problem:
        return Absent("missing_field", f"the files of {run} have no column {problem}")
    return rows or Absent("missing_artifact", f"the files of {run} give no row of {table!r}")
