"""`audit`: whether passed attempts of eval runs were earned."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentsignals.cli.over_attempts import answered, arguments
from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.questions.audit import AuditReport
    from agentsignals.store import Store

_LISTED, _WIDEST = 25, 90
_VERDICTS = ("derived", "retrieved", "verifier_touched", "cannot_tell")


def run(options: argparse.Namespace) -> int:
    return answered(options, made_of, as_text)


def made_of(store: Store, by: Sequence[str], where: str) -> AuditReport:
    """The audit of a store. StoreError without attempts; UsageError where no attempt has a column of `by`."""
    from agentsignals.questions.audit import question
    from agentsignals.questions.compare.attempts import answer_over_attempts

    made: AuditReport = answer_over_attempts(store, question(by, where), where=where)
    return made


def as_text(made: AuditReport, *, as_markdown: bool = False) -> str:
    """The audit as tables and sentences."""
    from agentsignals.cli.output import printable, table
    from agentsignals.questions.audit import rate_text

    n = sum(made.passed.values())
    head = f"{n:,} first attempts passed: " + ", ".join(
        f"{made.passed.get(verdict, 0):,} {verdict.replace('_', ' ')}" for verdict in _VERDICTS
    )
    whole = [made.everyone, *(made.candidates[:_LISTED] if len(made.candidates) > 1 else [])]
    candidates = [
        (c.name, rate_text(c.resolved), rate_text(c.earned), rate_text(c.earned_at_most),
         *(c.passed.get(v, 0) for v in _VERDICTS[1:]))
        for c in whole
    ]  # fmt: skip
    lines: list[tuple[Any, ...]] = [
        (
            entry.verdict.replace("_", " "),
            entry.because,
            entry.session_id,
            entry.acts[0].get("seq") if entry.acts else "",
            entry.acts[0].get("from_seq", "") if entry.acts else "",
        )
        for entry in made.listed
        if entry.verdict != "derived"
    ]
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = [
        ("resolve rate", ("candidate", "resolved", "earned, at least", "at most", "retrieved", "verifier touched",
                          "cannot tell"), candidates),
        ("not derived", ("verdict", "because", "session", "event", "shown at"), lines[:_LISTED]),
        ("cannot tell, why", ("why", "passes"), sorted(made.cannot_tell.items(), key=lambda item: -item[1])[:_LISTED]),
    ]  # fmt: skip
    end = [f"and {len(lines) - _LISTED} more (--json has all)"] if len(lines) > _LISTED else []
    end.append(made.caveat)
    if as_markdown:
        from agentsignals.ui.markdown import plain_lines, plain_table

        shown = [f"### {title}\n\n{plain_table(names, rows)}" for title, names, rows in tables if rows]
        return "\n\n".join([plain_lines([head], ""), *shown, plain_lines(end)])
    shown = [f"{title}\n{table(names, rows, _WIDEST)}" for title, names, rows in tables if rows]
    return "\n\n".join([printable(head), *shown, "\n".join(map(printable, end))])


VERB = Verb(
    "audit",
    "whether passed attempts of eval runs were earned, each with what shows it; the resolve rate before and after",
    "audit --by model",
    arguments,
    run,
)
