"""`failures`: why attempts of eval runs failed, by candidate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentsignals.cli.over_attempts import answered, arguments
from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.questions.failure_map import FailureMap
    from agentsignals.store import Store

_LISTED, _WIDEST = 25, 70
_EXAMPLES = 3
"""Of each class; --json has all."""


def run(options: argparse.Namespace) -> int:
    return answered(options, made_of, in_words)


def made_of(store: Store, by: Sequence[str], where: str) -> FailureMap:
    """The map of a store. StoreError without attempts; UsageError where no attempt has a column of `by`."""
    from agentsignals.questions.compare.attempts import answer_over_attempts
    from agentsignals.questions.failure_map import question

    made: FailureMap = answer_over_attempts(store, question(by, where), where=where)
    return made


def in_words(made: FailureMap, *, as_markdown: bool = False) -> str:
    """The map as tables and sentences."""
    from agentsignals.cli.output import printable
    from agentsignals.questions.failure_map import class_text, passes_text, share_text

    head = (
        f"{made.failed:,} of {made.first_attempts:,} first attempts failed or were broken off;"
        f" candidates by {', '.join(made.by)}"
    )
    classes = [(class_text(share.name), share_text(share, made.failed)) for share in made.classes]
    candidates = [
        (
            c.name,
            c.first_attempts,
            c.not_judged,
            c.not_earned,
            c.failed,
            ", ".join(f"{class_text(s.name)} {s.n:,}" for s in c.classes),
        )
        for c in made.candidates[:_LISTED]
    ]
    examples = [
        (class_text(entry.name), entry.because, entry.file or "", entry.session_id, entry.seq)
        for share in made.classes
        for entry in [entry for entry in made.listed if entry.name == share.name][:_EXAMPLES]
    ]
    unearned = [
        (class_text(p.verdict), p.because, p.candidate, p.session_id, p.acts[0].get("seq") if p.acts else "")
        for p in made.not_earned[:_LISTED]
    ]
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = [
        ("", ("class", "first attempts, share of what failed"), classes),
        ("by candidate", ("candidate", "first attempts", "not judged", "pass not earned", "failed", "by"), candidates),
        ("examples", ("class", "because", "where to look", "session", "event"), examples),
        ("passed, not earned", ("verdict", "because", "candidate", "session", "event"), unearned),
    ]
    part = _as_markdown if as_markdown else _as_text
    shown = [part(title, names, rows) for title, names, rows in tables if rows]
    left = len(made.candidates) - len(candidates)
    passes = [sentence] if (sentence := passes_text(made)) else []
    more = len(made.not_earned) - len(unearned)
    if more:
        passes.append(f"and {more} more passes (--json has all)")
    sentences = [*made.sentences, *passes, *([f"and {left} more candidates (--json has all)"] if left else [])]
    if as_markdown:
        from agentsignals.ui.markdown import plain_lines

        return "\n\n".join(part for part in (plain_lines([head], ""), *shown, plain_lines(sentences)) if part)
    return "\n\n".join(part for part in (printable(head), *shown, "\n".join(map(printable, sentences))) if part)


def _as_text(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    from agentsignals.cli.output import table

    return f"{title}\n{table(names, rows, _WIDEST)}".lstrip()


def _as_markdown(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    from agentsignals.ui.markdown import plain_table

    return (f"### {title}\n\n" if title else "") + plain_table(names, rows)


VERB = Verb(
    "failures",
    "why attempts of eval runs failed, by candidate, each with what shows it",
    "failures --by model",
    arguments,
    run,
)
