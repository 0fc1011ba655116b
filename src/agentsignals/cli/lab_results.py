"""What `lab` says: its results as aligned text, as plain data, and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from agentsignals.cli.output import printable, table
from agentsignals.errors import LabError
from agentsignals.lab.comparing import OUTCOMES, conditions_of, episodes_of, rate
from agentsignals.questions.formatting import formatted

if TYPE_CHECKING:
    from agentsignals.lab.rescored import RescoredAnswers
    from agentsignals.lab.retry.retry_runs import Ran
    from agentsignals.lab.runs import Run
    from agentsignals.questions.question import Outcome
    from agentsignals.ui.document import Document, Section

_SHOWN = 44
_EXTRA = ("torch", "transformers", "tokenizers", "numpy", "sklearn")
"""Packages of the extra `lab`, as they are imported."""
_BROUGHT = (
    'pip install "agentsignals[lab]" brings a model into this process: `lab run`, and `lab agent` with --model,'
    " --directions and steering. All else runs without, `lab agent --server` too."
)


def inventory(families: str | None) -> dict[str, Any]:
    """What can be run here; with `families`, the tasks of those by key."""
    from agentsignals.lab import experiments, sandbox
    from agentsignals.lab.coding_tasks import tasks
    from agentsignals.lab.coding_tasks.chosen import chosen_tasks, task_files
    from agentsignals.lab.evaluation.verdict import EVALUATORS
    from agentsignals.lab.retry.wording import WORDINGS

    listed: dict[str, Any] = {
        "experiments": experiments.NAMES,
        "families": dict(Counter(task.family for task in tasks())),
        "wordings": list(WORDINGS),
        "evaluators": list(EVALUATORS),
        "sandbox": list(sandbox.tiers()),
        "not_installed": [name for name in _EXTRA if find_spec(name) is None],
    }
    if families is not None:
        listed["tasks"] = {task.key: task.says for task in chosen_tasks(families)}
        left_out = {f"{n} line {t.line} {t.id}": t.why for n, f in task_files(families).items() for t in f.left_out}
        listed |= {"left_out": left_out} if left_out else {}
    return listed


def text_of_inventory(listed: dict[str, Any]) -> str:
    lines = [table(("experiment", "what it asks"), listed["experiments"].items(), 110), ""]
    lines.append(table(("family", "tasks"), listed["families"].items()))
    lines += ["", *(f"{name:<12}{', '.join(listed[name])}" for name in ("wordings", "evaluators", "sandbox"))]
    if listed["not_installed"]:
        lines += ["", f"{', '.join(listed['not_installed'])}: not installed. {_BROUGHT}"]
    if "tasks" in listed:
        lines += ["", table(("task", "says"), listed["tasks"].items(), 110)]
    if "left_out" in listed:
        lines += ["", table(("left out", "why"), listed["left_out"].items(), 110)]
    return "\n".join(lines)


def ended(run: Run, ran: Ran) -> dict[str, Any]:
    """What a retry loop came to."""
    rows = []
    for name, episodes in conditions_of(episodes_of(run)).items():
        rates = {key.replace(" ", "_"): rate(episodes, of) for key, of in OUTCOMES.items()}
        failed = [row for row in episodes if row.failed_first]
        rows.append(
            {
                "condition": name,
                "episodes": len(episodes),
                **{key: estimate.value for key, estimate in rates.items()},
                "full_pass_interval": rates["full_pass"].interval,
                "failed_first": len(failed),
                "recovered": sum(row.recovered for row in failed),
            }
        )
    return {"run": str(run.folder), "episodes": ran.episodes, "new": ran.new, "conditions": rows}


def text_of_ended(summary: dict[str, Any]) -> str:
    heads = ("condition", "episodes", "visible", "full pass", "95 % interval", "recovered", "hardcoded")
    rows = [
        (
            row["condition"],
            row["episodes"],
            formatted(row["visible_pass"], "share"),
            formatted(row["full_pass"], "share"),
            " to ".join(formatted(end, "share") for end in row["full_pass_interval"] or ()),
            f"{row['recovered']} of {row['failed_first']}",
            formatted(row["hardcoded"], "share"),
        )
        for row in summary["conditions"]
    ]
    folder = printable(summary["run"])
    lines = [f"run       {folder}", f"episodes  {summary['episodes']:,}, {summary['new']:,} of them new", ""]
    lines += [table(heads, rows, _SHOWN), ""]
    lines.append(f"next      agentsignals lab report {folder}; agentsignals analyze {folder}")
    return "\n".join(lines)


def plain(outcome: Outcome) -> dict[str, Any]:
    """Tables as lists of objects, and what can't be concluded."""
    tables = {t.id: [dict(zip([c.key for c in t.columns], row, strict=True)) for row in t.rows] for t in outcome.tables}
    return {"tables": tables, "limits": outcome.limits or []}


def text_of_tables(outcome: Outcome) -> str:
    """Tables under their titles."""
    lines: list[str] = []
    for outcome_table in outcome.tables:
        rows = [
            [formatted(v, c.kind) for v, c in zip(row, outcome_table.columns, strict=True)]
            for row in outcome_table.rows
        ]
        lines += [
            outcome_table.title,
            table([c.label for c in outcome_table.columns], rows, _SHOWN),
            outcome_table.note,
            "",
        ]
    return "\n".join([*lines, *(printable(limit) for limit in outcome.limits or ())]).rstrip()


def text_of_rescored(rescored: RescoredAnswers) -> str:
    rows = []
    for group in rescored.groups:
        of = group.changes
        changed = [of.get(name, 0) for name in ("fail_to_pass", "pass_to_fail")]
        unknown = of.get("was_unknown", 0) + of.get("now_unknown", 0)
        rows.append([group.name, group.answers, group.was, group.now, *changed, unknown])
    heads = ("answers of", "answers", "passed", "pass now", "fail to pass", "pass to fail", "unknown")
    first = f"evaluator {rescored.evaluator}, before {rescored.before}; what is stored stays as it is"
    return f"{first}\n\n{table(heads, rows, _SHOWN)}"


def write_report(run: Run, paths: Sequence[Path]) -> list[Path]:
    """The run's report in the form each ending names. LabError when there is nothing to report or no place for it."""
    return write_pages(document(run), paths)


def write_pages(made: Document, paths: Sequence[Path]) -> list[Path]:
    """A document in the form each ending names, whole or not at all. LabError when there is no place for it."""
    for path in paths:
        draft = path.with_name(f".{path.name}.new")
        try:
            draft.write_text(rendered(made, path.suffix.lower()), encoding="utf-8")
            draft.replace(path)
        except OSError as problem:
            draft.unlink(missing_ok=True)
            raise LabError(
                f"The report {path} can't be written: {problem.strerror}.", "Name another file."
            ) from problem
    return list(paths)


def document(run: Run) -> Document:
    """The run's report before it has a form."""
    from agentsignals.lab.outline import sections
    from agentsignals.ui.document import Section

    chapters = [
        Section(
            study=p.name,
            title=p.title,
            question=p.question,
            context="eval",
            findings=p.outcome.findings,
            tables=p.outcome.tables,
            charts=list(filter(None, p.outcome.charts)),
            limits=list(p.outcome.limits or ()),
        )
        for p in sections(run)
    ]
    name = run.manifest.model.get("name") or "a model"
    return _made(chapters, f"{run.config.experiment.replace('_', ' ').capitalize()} of {name}")


def audited(folder: Path, progress: Callable[[str, int, int | None], None]) -> Document:
    """What the audit finds in published runs. LabError when the folder holds none."""
    from agentsignals.lab.evaluation.audit import Audit
    from agentsignals.lab.evaluation.audited import findings
    from agentsignals.ui.document import Section

    answers = count(1)
    audit = Audit(folder, on_answer=lambda: progress("answers", next(answers), None))
    result = findings(audit)
    section = Section(
        study="audit",
        title="What the audit found",
        question="Which published numbers are of the models, and which of their evaluator, sampling or geometry?",
        context="eval",
        findings=result.findings,
        tables=result.tables,
        charts=list(filter(None, result.charts)),
        limits=list(result.limits or ()),
    )
    return _made([section], "The published runs, read again")


def _made(sections: list[Section], about: str) -> Document:
    from agentsignals.ui.document import FORM, Document

    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Document(
        form=FORM,
        agentsignals=version("agentsignals"),
        made_at=now,
        sessions=1,
        schema=0,
        prices=(),
        context="eval",
        contexts={"eval": 1},
        sections=sections,
        about=about,
    )


def rendered(made: Document, form: str) -> str:
    if form == ".json":
        return msgspec.json.format(msgspec.json.encode(made)).decode()
    if form == ".md":
        from agentsignals.ui.report import render as as_markdown

        return as_markdown(made, {})
    from agentsignals.ui.report import render_page as as_page

    return as_page(made, {})
