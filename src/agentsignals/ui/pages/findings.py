"""What stands out, and of each sentence the sessions and rows that it rests on."""

from __future__ import annotations

from typing import Any

from agentsignals.questions import findings
from agentsignals.questions.ranking import Findings, of_too_few
from agentsignals.redaction import without_keys_in
from agentsignals.ui.document import beginnings
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.snapshot import Reading

MOST_ROWS = 200
"""Of the evidence on its page; the command line has them all."""


def of(reading: Reading, context: str) -> Findings:
    """What is said of the sessions of a context, as it is kept in the store for its present state."""
    n = sum(entry.context == context for entry in reading.store.manifest.sessions.values())
    return of_too_few(n, context) or reading.kept(
        ("findings", context), lambda: findings.findings(reading.store, context)
    )


def page(reading: Reading, query: Query, id: str) -> Page:  # noqa: A002  (the answer's field)
    """A sentence with how sure it is, what would make it wrong, its sessions, and the rows that make it up."""
    context = query.choice("context", ("product", "eval"), reading.main_context)
    filled = reading.kept(("finding", id, context), lambda: _filled(reading, id, context))
    return Page("finding.html.j2", filled["made"].question, filled)


def _filled(reading: Reading, id: str, context: str) -> dict[str, Any]:  # noqa: A002
    made = findings.answer(reading.store, id, context)
    of_context = context if reading.contexts - {context} else ""
    evidence = reading.rows(f"SELECT * FROM ({made.cause}) LIMIT {MOST_ROWS + 1}", context=of_context)  # noqa: S608  (ours, its values quoted)
    return {
        "made": without_keys_in(made),
        "evidence": without_keys_in(evidence[:MOST_ROWS]),
        "is_cut": len(evidence) > MOST_ROWS,
        "key": f"finding:{id}{f'@{context}' if context != reading.main_context else ''}",
        "short_ids": beginnings(reading.store.manifest.sessions),
    }


PAGES = (Route(("finding", "*"), page, below="/"),)
