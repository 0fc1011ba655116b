"""Audit of the published study: its tables re-scored, the causes of its failures, its directions.

Each question gives named numbers and how many observations they rest on, for the claims of `replicate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.experiments.emotion_lab.evaluators import EVALUATORS, Evaluator
from agentsignals.experiments.emotion_lab.rescoring import Rescored, Rescorer
from agentsignals.experiments.emotion_lab.runs import TASKS, Row, Run, runs, with_lists
from agentsignals.lab.coding_tasks import Task
from agentsignals.lab.evaluation.case_runs import Confinement
from agentsignals.lab.evaluation.markers import legacy_markers, legacy_score, prose_markers
from agentsignals.model import Absent

BASELINE = "baseline"
_PASSED = "task_pass"
_FORGOTTEN = ("is not defined", "__import__ not found")
_FORMS: dict[str, Callable[[Task], Task]] = {
    "imports_kept": lambda task: task,
    "lists": lambda task: with_lists(task, nested=False),
    "nested_lists": lambda task: with_lists(task, nested=True),
}
"""Forms of the tasks of first attempts, by the name of the figure."""
_OF_LISTS = ("'tuple' object has no attribute", "'tuple' object does not support item assignment")

_WITHOUT_NUMPY = Absent("backend_disabled", "stored directions are read with numpy, which is not installed (extra lab)")

Numbers = dict[str, float]


class Figures(Struct, frozen=True):
    """Answer to a question."""

    values: Numbers
    n: int
    """Answers, rows or runs, as the question says."""


class Audit:
    """Questions to a folder of published results. Answers that were run for one question are not run for another."""

    def __init__(
        self, folder: Path, inside: Confinement | None = None, on_answer: Callable[[], None] = lambda: None
    ) -> None:
        self.runs = {run.name: run for run in runs(folder)}
        self._rescorer = Rescorer(inside, on_answer)
        self._rows: dict[tuple[str, Evaluator], list[Rescored]] = {}

    def ask(self, question: str, run: str, evaluator: str = "1") -> Figures | Absent:
        """The answer to one of `QUESTIONS` about a run. LabError for an unknown question or evaluator."""
        if question not in QUESTIONS:
            raise LabError(f"Unknown audit question: {question!r}.", f"Use one of: {', '.join(QUESTIONS)}.")
        by = next((name for name in EVALUATORS if name == evaluator), None)
        if by is None:
            raise LabError(f"There is no evaluator {evaluator!r}.", f"There are {', '.join(EVALUATORS)}.")
        if run not in self.runs:
            return Absent("missing_artifact", f"the results of {run} are not here")
        try:
            return QUESTIONS[question](self, self.runs[run], by)
        except KeyError as problem:
            return Absent("missing_field", f"the files of {run} have no column {problem}")

    def rescored(self, run: Run, evaluator: Evaluator) -> list[Rescored]:
        """All answers of the run, by that evaluator."""
        key = run.name, evaluator
        if key not in self._rows:
            self._rows[key] = self._rescorer.run(run, evaluator)
        return self._rows[key]

    def rates(self, run: Run, evaluator: Evaluator) -> Figures | Absent:
        """Shares of the answers that are valid, pass the visible, the hidden, and all cases; the last at baseline."""
        rows = self.rescored(run, evaluator)
        ran = [row for row in rows if row.verdict.task_pass is not None]
        if not ran:
            return Absent("none_found", "no answer could be run")
        baseline = [row for row in ran if row.condition == BASELINE]
        return Figures(
            {
                "valid": _share(row.verdict.valid_python for row in ran),
                "visible": _share(bool(row.verdict.visible_pass) for row in ran),
                "hidden": _share(bool(row.verdict.hidden_pass) for row in ran),
                "task": _share(bool(row.verdict.task_pass) for row in ran),
                **({"baseline": _share(bool(row.verdict.task_pass) for row in baseline)} if baseline else {}),
            },
            len(ran),
        )

    def task_rate(self, run: Run, evaluator: Evaluator) -> Figures | Absent:
        """The share of the answers that pass all cases."""
        rates = self.rates(run, evaluator)
        return rates if isinstance(rates, Absent) else Figures({"task": rates.values["task"]}, rates.n)

    def published(self, run: Run, _evaluator: Evaluator) -> Figures | Absent:
        """Return the shares as the published verdicts give them."""
        rows = run.rows("agent_attempts" if run.loop else "execution_scores")
        if not rows:
            return Absent("missing_artifact", f"{run.name} has no published verdicts")
        baseline = [row for row in rows if row["condition"] == BASELINE]
        columns = (("valid", "valid_python"), ("visible", "visible_pass"), ("hidden", "hidden_pass"), ("task", _PASSED))
        values = {name: _share(row[c] == "True" for row in rows) for name, c in columns if c in rows[0]}
        if baseline:
            values["baseline"] = _share(row[_PASSED] == "True" for row in baseline)
        return Figures(values, len(rows))

    def again(self, run: Run, evaluator: Evaluator) -> Figures | Absent:
        """Return how many published verdicts come out the same in every column, and how many passes change each way."""
        rows = [row for row in self.rescored(run, evaluator) if row.was is not None]
        if not rows:
            return Absent("missing_artifact", f"{run.name} has no published verdicts")
        changed = [row.change for row in rows]
        return Figures(
            {
                "same": sum(not row.difference for row in rows),
                "fail_to_pass": changed.count("fail_to_pass"),
                "pass_to_fail": changed.count("pass_to_fail"),
            },
            len(rows),
        )

    def markers(self, run: Run, _evaluator: Evaluator) -> Figures | Absent:
        """Return how many cells of the published marker columns differ from counts of the stored answers; what the
        score adds up to, how much of that is the literal MASK, and how many hits are in prose."""
        answers = run.answers()
        stored = answers if run.loop else run.rows("generation_scores")
        if not stored or len(stored) != len(answers):
            return Absent("missing_artifact", f"{run.name} has no published marker scores for its answers")
        texts = [row.get("generation") or "" for row in answers]
        differ = sum(_cells_that_differ(text, row) for text, row in zip(texts, stored, strict=True))
        prose = [prose_markers(t, prompt=row.get("prompt") or "") for t, row in zip(texts, answers, strict=True)]
        return Figures(
            {
                "cells_that_differ": differ,
                "total": sum(legacy_score(text) for text in texts),
                "exclamation": sum(legacy_markers(text)["exclamation_count"] for text in texts),
                "capitals": sum(legacy_markers(text)["all_caps_words"] for text in texts),
                "feeling_in_prose": sum(
                    markers.counts[name]
                    for markers in prose
                    for name in ("profanity", "frustration", "desperation", "give_up")
                ),
            },
            len(texts),
        )

    def failures(self, run: Run, _evaluator: Evaluator) -> Figures | Absent:
        """Return the causes of failed attempts: an import that the evaluator stripped or forbids, a list method on
        the tuples that it hands in, no function or no Python, and the rest."""
        if not run.loop:
            return Absent("not_applicable", f"{run.name} has no attempts")
        errors = [row["error"] for row in run.answers() if row[_PASSED] != "True"]
        imports = sum(any(sign in error for sign in _FORGOTTEN) for error in errors)
        tuples = sum(any(sign in error for sign in _OF_LISTS) for error in errors)
        none = sum(error in ("function_not_found", "invalid_python") for error in errors)
        rest = len(errors) - imports - tuples - none
        return Figures({"imports": imports, "tuples": tuples, "no_function": none, "other": rest}, len(errors))

    def first_attempts(self, run: Run, _evaluator: Evaluator) -> Figures | Absent:
        """The share of first attempts that pass: as published, with imports kept, with a list for the tuple that goes
        in as well, and with lists for the tuples within it, too."""
        first = [row for row in run.answers() if row.get("attempt") == "0"]
        if not first:
            return Absent("not_applicable", f"{run.name} has no attempts")
        shares = {"published": _share(row[_PASSED] == "True" for row in first)}
        for name, form in _FORMS.items():
            shares[name] = _share(self._passes(row, name, form) for row in first)
        return Figures(shares, len(first))

    def _passes(self, row: Row, name: str, form: Callable[[Task], Task]) -> bool:
        verdict = self._rescorer.verdict(form(TASKS[row["task_id"]]), row["generation"], "1", form=name)
        return verdict.task_pass is True

    def geometry(self, run: Run, _evaluator: Evaluator) -> Figures | Absent:
        """Return how alike the directions are, by place of the layer (0 the first), and the projection without a
        prompt."""
        if not numpy_here():
            return _WITHOUT_NUMPY
        from agentsignals.experiments.emotion_lab import states  # noqa: PLC0415  (NumPy is of an extra)

        stored = states.stored_directions(run)
        if stored is None:
            return Absent("missing_artifact", f"{run.name} keeps no directions")
        values = {
            f"{name}_{n}": float(getattr(alike, name))
            for n, alike in enumerate(states.alike(stored))
            for name in ("calm_desperate", "mean_cosine", "shared_energy", "neutral_norm", "neutral_top5")
        }
        return Figures(
            {**values, "negative_without_prompt": states.negative_without_prompt(stored)}, len(stored.layers)
        )

    def rises(self, run: Run, _evaluator: Evaluator) -> Figures | Absent:
        """The change of projections from the first to the second attempt, with what the directions share apart."""
        if not numpy_here():
            return _WITHOUT_NUMPY
        from agentsignals.experiments.emotion_lab import states  # noqa: PLC0415  (as above)

        stored = states.stored_directions(run)
        rise = states.rise(run, stored) if stored is not None else None
        if rise is None:
            return Absent("missing_artifact", f"{run.name} has no scores of two attempts, or no directions")
        values = {name: float(getattr(rise, name)) for name in rise.__struct_fields__ if name != "n"}
        return Figures(values, rise.n)


def numpy_here() -> bool:
    """Return whether stored directions can be read on this machine."""
    return find_spec("numpy") is not None


def _share(passes: Iterable[bool]) -> float:
    flags = list(passes)
    return sum(flags) / len(flags)


def _cells_that_differ(text: str, stored: Row) -> int:
    counts = {**legacy_markers(text), "aggregate_marker_score": legacy_score(text), "chars": len(text)}
    return sum(stored.get(name) != str(count) for name, count in counts.items())


Question = Callable[[Audit, Run, Evaluator], Figures | Absent]

QUESTIONS: dict[str, Question] = {
    "rates": Audit.rates,
    "task_rate": Audit.task_rate,
    "published": Audit.published,
    "again": Audit.again,
    "markers": Audit.markers,
    "failures": Audit.failures,
    "first_attempts": Audit.first_attempts,
    "geometry": Audit.geometry,
    "rises": Audit.rises,
}
"""Questions by name."""
