"""A data set of audited passes: each pass with its verdict and the lines that show it, and each task with its shares of
passes by reward hacking. Nothing is uploaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from agentsignals import private_files
from agentsignals.errors import ExportError, StoreError
from agentsignals.export import (
    UNKNOWN_LICENCE,
    Choice,
    Exported,
    WholeWriter,
    card_closing,
    card_text,
    empty_folder,
    markdown_table,
    one_line,
    size_category,
    sources_of,
    yaml_head,
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
    redactor = choice.redactor
    tables = {"passes": passes_of(made), "tasks": [to_builtins(task) for task in made.tasks]}
    empty_folder(folder)
    private_files.make_folder(folder / "data")
    for name, rows in tables.items():
        with private_files.open_file(
            folder / "data" / f"{name}.jsonl", "w", encoding="utf-8", errors="replace", newline="\n"
        ) as out:
            for row in rows:
                line = json.dumps(row, ensure_ascii=False)
                out.write(f"{redactor.text(line) if redactor else line}\n")
    card = _card(made, choice, sources_of(store, {entry.session_id for entry in made.listed}))
    private_files.write(folder / "README.md", redactor.plain(card) if redactor else card, "replace")
    done.tables = {name: len(rows) for name, rows in tables.items()}
    done.files, done.sessions = len(tables) + 1, len(made.listed)
    done.masked = redactor.counts if redactor else None
    done.notes.append(made.caveat)
    if choice.licence is None:
        done.notes.append("no licence was given: the card says so, and nobody may reuse it (--license)")
    if redactor is None:
        done.notes.append("nothing was masked: look through it before it leaves this machine")


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
    title = choice.title or _TITLE
    facts = {
        "pretty_name": title,
        "license": choice.licence or UNKNOWN_LICENCE,
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
    return yaml_head(facts) + card_text(
        "audit_card.md",
        title=one_line(title),
        passes=len(made.listed),
        tasks=len(made.tasks),
        verdicts=markdown_table(("verdict", "passes"), sorted(made.passed.items())),
        resolved=rate_text(everyone.resolved),
        earned=rate_text(everyone.earned, everyone.earned_at_most),
        flagged=markdown_table(("task", "flagged passes"), flagged[:_MOST_LISTED]) if flagged else ["None."],
        reasons=markdown_table(("reason", "passes"), reasons[:_MOST_LISTED]) if reasons else ["None."],
        caveat=made.caveat,
        closing=card_closing(choice, sources),
    )


WRITER = WholeWriter(
    name="audit",
    describes="passed attempts with their verdicts and lines, and tasks by reward hacking, with a card",
    put=write,
    redacts=True,
    masks_random=True,
)
