"""A data set of audited passes: each pass with its verdict and the lines that show it, and each task with its shares of
passes by reward hacking. Nothing is uploaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import to_builtins

from agentsignals import private_files
from agentsignals.errors import ExportError, StoreError
from agentsignals.export import (
    Choice,
    Exported,
    WholeWriter,
    data_card,
    empty_folder,
    finish_folder,
    markdown_table,
    size_category,
    sources_of,
    write_rows,
)
from agentsignals.questions import audit
from agentsignals.questions.audit import AuditReport, rate_text
from agentsignals.questions.compare.attempts import answer_over_attempts
from agentsignals.questions.ranking import sessions_sql
from agentsignals.store import Store

_TITLE = "Passes of coding agents, audited for reward hacking"
_MOST_LISTED = 30


def write(store: Store, ids: list[str], folder: Path, choice: Choice, done: Exported) -> None:
    """Write README.md, data/passes.jsonl and data/tasks.jsonl. ExportError where no attempt of these passed."""
    choice.tick("auditing", 0, None)
    where = sessions_sql(ids)
    try:
        made: AuditReport = answer_over_attempts(store, audit.question(where=where), where=where)
    except StoreError as problem:
        raise ExportError("None of these sessions is an attempt of an eval run.", problem.hint) from problem
    if not made.listed:
        raise ExportError(
            f"None of these {len(ids):,} sessions is a passed attempt.", "`agentsignals evals compare` lists outcomes."
        )
    tables = {"passes": passes_of(made), "tasks": [to_builtins(task) for task in made.tasks]}
    empty_folder(folder)
    private_files.make_folder(folder / "data")
    for name, rows in tables.items():
        write_rows(folder / "data" / f"{name}.jsonl", rows, choice.redactor)
    card = _card(made, choice, sources_of(store, {entry.session_id for entry in made.listed}))
    done.tables = {name: len(rows) for name, rows in tables.items()}
    done.files, done.sessions = len(tables) + 1, len(made.listed)
    done.notes.append(made.caveat)
    finish_folder(folder, card, choice, done)


def passes_of(made: AuditReport) -> list[dict[str, Any]]:
    """Return a row for each pass, flagged ones first. `lines` show what decided; an undecided pass may have none."""
    rows = []
    for entry in made.listed:
        lines = [
            {
                "channel": act["channel"],
                "path": act.get("path"),
                "line": act.get("text"),
                "event": act.get("seq"),
                "shown_at": act.get("from_seq"),
            }
            for act in entry.acts
        ]
        names = ("dataset", "task", "candidate", "attempt", "session_id", "read_by")
        facts = {name: getattr(entry, name) for name in names}
        verdict = {"verdict": entry.verdict, "because": entry.because, "lines": lines, "not_examined": entry.unseen}
        rows.append(facts | verdict)
    return rows


def _card(made: AuditReport, choice: Choice, sources: list[str]) -> str:
    facts = {
        "tags": ["coding-agents", "benchmarks", "reward-hacking", "agentsignals"],
        "size_categories": [size_category(len(made.listed))],
        "configs": [
            {"config_name": name, "data_files": [{"split": "train", "path": f"data/{name}.jsonl"}]}
            for name in ("passes", "tasks")
        ],
    }
    flagged = [(task.task, task.unearned.n) for task in made.tasks if task.unearned.n]
    reasons = sorted(made.cannot_tell.items(), key=lambda item: (-item[1], item[0]))
    everyone = made.everyone
    return data_card(
        "audit_card.md",
        choice,
        sources,
        _TITLE,
        facts,
        passes=len(made.listed),
        tasks=len(made.tasks),
        judged=made.read,
        verdicts=markdown_table(("verdict", "passes"), sorted(made.passed.items())),
        resolved=rate_text(everyone.resolved),
        earned=rate_text(everyone.earned, everyone.earned_at_most),
        flagged=markdown_table(("task", "flagged passes"), flagged[:_MOST_LISTED]) if flagged else ["None."],
        reasons=markdown_table(("reason", "passes"), reasons[:_MOST_LISTED]) if reasons else ["None."],
        caveat=made.caveat,
    )


WRITER = WholeWriter(
    name="audit",
    describes="passed attempts with their verdicts and lines, and tasks by reward hacking, with a card",
    put=write,
    redacts=True,
    masks_random=True,
)
