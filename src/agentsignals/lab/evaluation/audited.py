"""The study "what the audit found": published tables beside the same answers evaluated again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentsignals.errors import install_command
from agentsignals.lab.evaluation.audit import BASELINE, Audit, Figures, numpy_here
from agentsignals.lab.evaluation.published import Run
from agentsignals.lab.evaluation.verdict import Evaluator
from agentsignals.questions.question import Column, Finding, Kind, Outcome, Table
from agentsignals.stats.intervals import wilson

_RATES = ("valid", "visible", "hidden", "task", "baseline")
_SHIPPED: Evaluator = "legacy-last"
_WITHOUT_NUMPY = "Claims about stored directions are not checked: numpy is not installed ({})."


def findings(audit: Audit) -> Outcome:
    """Return the audit's findings in the runs at hand. SandboxError when this machine can't lock their answers in."""
    one_shot = [run for run in audit.runs.values() if not run.loop]
    loops = [run for run in audit.runs.values() if run.loop]
    return Outcome(
        findings=_changed(audit),
        tables=[
            table
            for table in (
                _rates(audit, one_shot),
                _conditions(audit, one_shot),
                _causes(audit, loops),
                _firsts(audit, loops),
                _markers(audit),
                _alike(audit),
                _rises(audit, loops),
            )
            if table.rows
        ],
        limits=[
            "Three one-shot and four retry tasks: no rate here tells models or conditions apart.",
            "Later attempts answer the feedback of the published evaluator: only first ones can be judged anew.",
            "Hidden cases that were never printed are ours; all published verdicts come out the same with them.",
            *(() if numpy_here() else (_WITHOUT_NUMPY.format(install_command("lab")),)),
        ],
    )


def _changed(audit: Audit) -> list[Finding]:
    findings = []
    for run in audit.runs.values():
        answer = audit.ask("again", run.name, _SHIPPED)
        if run.loop or not isinstance(answer, Figures):
            continue
        flips = int(answer.values["fail_to_pass"])
        findings.append(
            Finding(
                id=f"audit.{run.name}.fail_to_pass",
                title=f"{run.name}: verdicts that the evaluator shipped later turns from fail to pass",
                value=flips / answer.n,
                unit="share",
                kind="share",
                n=answer.n,
                of="stored answers",
                interval=wilson(flips, answer.n),
                command="agentsignals replicate emotion-lab --data DIR",
                note=f"{flips} of {answer.n}; from pass to fail: {int(answer.values['pass_to_fail'])}",
            )
        )
    return findings


def _rates(audit: Audit, runs: Iterable[Run]) -> Table:
    rows: list[list[Any]] = []
    for run in runs:
        for label, question, evaluator in (
            ("as published", "published", "1"),
            ("legacy-first", "rates", "legacy-first"),
            ("legacy-last", "rates", "legacy-last"),
            ("ours, 1", "rates", "1"),
        ):
            answer = audit.ask(question, run.name, evaluator)
            if isinstance(answer, Figures):
                rows.append([run.name, label, *(answer.values.get(name) for name in _RATES), answer.n])
    columns = (
        Column("run", "run"),
        Column("evaluator", "evaluator"),
        *_columns(_RATES, "share"),
        Column("n", "n", "count"),
    )
    return _table("audit_rates", "One-shot pass rates, published and re-scored", columns, rows, "stored answers")


def _conditions(audit: Audit, runs: Iterable[Run]) -> Table:
    rows: list[list[Any]] = []
    for run in runs:
        by: dict[str, list[tuple[bool | None, bool]]] = {}
        for row in audit.rescored(run, _SHIPPED):
            by.setdefault(row.condition, []).append((row.was, row.verdict.task_pass is True))
        for condition in sorted(by, key=lambda name: (name != BASELINE, name)):
            was = [a for a, _ in by[condition] if a is not None]
            now = [b for _, b in by[condition]]
            rows.append([run.name, condition, sum(was) / len(was) if was else None, sum(now) / len(now), len(now)])
    columns = (
        Column("run", "run"), Column("condition", "condition"), Column("was", "task, published", "share"),
        Column("now", "task, legacy-last", "share"), Column("n", "n", "count"),
    )  # fmt: skip
    return _table(
        "audit_conditions", "Task pass rate by condition, published and re-scored", columns, rows, "stored answers"
    )


def _causes(audit: Audit, runs: Iterable[Run]) -> Table:
    names = ("imports", "tuples", "no_function", "other")
    return _asked(audit, runs, "failures", names, "count", "What failed attempts failed of", "failed attempts")


def _firsts(audit: Audit, runs: Iterable[Run]) -> Table:
    names = ("published", "imports_kept", "lists", "nested_lists")
    title = (
        "First attempts that pass: as published, with imports kept, with a list for the tuple that goes in, and nested"
    )
    return _asked(audit, runs, "first_attempts", names, "share", title, "first attempts")


def _markers(audit: Audit) -> Table:
    names = ("cells_that_differ", "total", "capitals", "exclamation", "feeling_in_prose")
    title = "The published marker score counted again, and words of feeling in prose"
    return _asked(audit, audit.runs.values(), "markers", names, "count", title, "stored answers")


def _alike(audit: Audit) -> Table:
    names = ("calm_desperate_0", "mean_cosine_0", "shared_energy_0", "neutral_top5_0", "negative_without_prompt")
    title = "How alike the directions are at the first stored layer, and the projection without a prompt"
    return _asked(audit, audit.runs.values(), "geometry", names, "number", title, "layers")


def _rises(audit: Audit, runs: Iterable[Run]) -> Table:
    names = ("negative", "positive", "shared", "contrast", "contrast_up", "desperate", "calm", "calm_up")
    title = "Change of projections from the first attempt to the second, what the directions share apart"
    return _asked(audit, runs, "rises", names, "number", title, "task and condition")


def _asked(  # noqa: PLR0913  (a question and how its answer is shown)
    audit: Audit, runs: Iterable[Run], question: str, names: tuple[str, ...], kind: Kind, title: str, of: str
) -> Table:
    rows: list[list[Any]] = []
    for run in runs:
        answer = audit.ask(question, run.name)
        if isinstance(answer, Figures):
            rows.append([run.name, *(answer.values.get(name) for name in names), answer.n])
    columns = (Column("run", "run"), *_columns(names, kind), Column("n", "n", "count"))
    return _table(f"audit_{question}", title, columns, rows, of)


def _columns(names: tuple[str, ...], kind: Kind) -> tuple[Column, ...]:
    return tuple(Column(name, name.replace("_", " "), kind) for name in names)


def _table(name: str, title: str, columns: tuple[Column, ...], rows: list[list[Any]], of: str) -> Table:
    return Table(id=name, title=title, columns=columns, rows=rows, n=sum(row[-1] for row in rows), of=of)
