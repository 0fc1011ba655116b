"""`rules`: the mechanical rules of instruction files, whether sessions kept them, what their introduction changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.repositories.rule_report import RuleRow, RulesReport

_LISTED, _OF_ONE, _WIDEST = 25, 5, 90


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("repository", metavar="REPO", nargs="?",
        help="a repository's folder or address (default: what the store's traces show of such files)")  # fmt: skip
    add("--file", metavar="FILE", help="of this instruction file alone, as the repository calls it")
    add("--markdown", action="store_true", help="print Markdown")
    add("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.errors import UsageError
    from agentsignals.ingest.collection import repository_rules
    from agentsignals.redaction import without_keys_in

    if options.file and not options.repository:
        raise UsageError(
            "--file is a file of a repository.", "Name the repository, too: `agentsignals rules . --file …`."
        )
    made = without_keys_in(repository_rules(options.repository, options.store, file=options.file, jobs=options.jobs))
    print(json_text(made) if options.json else as_text(made, as_markdown=options.markdown))
    return 0


_Table = tuple[str, Sequence[str], list[tuple[Any, ...]]]


def as_text(made: RulesReport, *, as_markdown: bool = False) -> str:
    """The report as tables and sentences."""
    from agentsignals.cli.output import printable, table
    from agentsignals.ui.markdown import plain_lines, plain_table

    def lines(sentences: Sequence[str], mark: str) -> str:
        return plain_lines(sentences, mark) if as_markdown else "\n".join(printable(s) for s in sentences)

    parts = [lines(list(_head(made)), "")]
    for title, names, rows in _tables(made):
        if rows:
            body = plain_table(names, rows, _WIDEST) if as_markdown else table(names, rows, _WIDEST)
            parts.append(f"### {title}\n\n{body}" if as_markdown else f"{title}\n{body}")
    parts.append(lines([*_meanwhile(made), *made.cautions], "- "))
    return "\n\n".join(part for part in parts if part)


def _head(made: RulesReport) -> Iterator[str]:
    where = made.repo or "What the store's traces show"
    n, others = len(made.rules), sum(file["not_mechanical"] for file in made.files.values())
    yield f"{where}: {made.sessions:,} sessions, {len(made.files):,} instruction files, {n:,} mechanical rules."
    if others:
        yield f"{others:,} other sentences ask what commands, edits and commits can't show; they are not judged."
    if not made.files:
        yield (
            "No instruction file is in its history, or in a trace."
            if made.repo
            else ("No trace holds the text of an instruction file: name a repository.")
        )


def _tables(made: RulesReport) -> Iterator[_Table]:
    yield (
        "rules",
        ("rule", "says", "in force", "always kept", "broken", "no occasion", "cannot tell", "times kept",
         "times broken"),
        [(_name(r), r.text, r.exposed, r.kept, r.broken, r.no_occasion, sum(r.cannot_tell.values()), r.occasions_kept,
          r.occasions_broken) for r in made.rules[:_LISTED]],
    )  # fmt: skip
    broken = [
        (_name(row), session.session_id, mark.seq, mark.line, f"{mark.because}: {mark.text}")
        for row in made.rules
        for session in [s for s in row.sessions if s.exposure == "exposed" and s.verdict == "broken"][:_OF_ONE]
        for mark in session.marks[:1]
    ]
    yield "broken, the first time in a session", ("rule", "session", "event", "line", "what"), broken[:_LISTED]
    yield (
        "cannot tell, and not in force",
        ("rule", "why", "sessions"),
        [(_name(r), why, n) for r in made.rules for why, n in (*r.cannot_tell.items(), *r.not_exposed.items())][
            :_LISTED
        ],
    )
    yield (
        "kept before and after a rule came (shares of its occasions, a session a value)",
        ("rule", "since", "before", "after", "change beside the trend", "said"),
        [_effect(r) for r in made.rules[:_LISTED]],
    )


def _effect(row: RuleRow) -> tuple[Any, ...]:
    change, effect = row.effect.change, row.effect
    judged = f"{effect.verdict.replace('_', ' ')}: {effect.because}"
    if change is None or change.level is None or change.level_interval is None:
        n = (f"n = {change.n_before}", f"n = {change.n_after}") if change is not None else ("", "")
        return _name(row), (row.since or "")[:10], *n, "", judged
    low, high = change.level_interval
    return (
        _name(row), (row.since or "")[:10], f"{change.before:.0%} (n = {change.n_before})",
        f"{change.after:.0%} (n = {change.n_after})", f"{change.level:+.0%} [{low:+.0%}, {high:+.0%}]", judged,
    )  # fmt: skip


def _meanwhile(made: RulesReport) -> Iterator[str]:
    for row in made.rules:
        change = row.effect.change
        if row.effect.meanwhile and change is not None and change.level is not None:
            yield f"{_name(row)}: meanwhile {'; '.join(row.effect.meanwhile)}"


def _name(row: RuleRow) -> str:
    return f"{row.place}: {row.file}:{row.line}" if row.place is not None else f"{row.file}:{row.line}"


VERB = Verb(
    "rules",
    "mechanical rules of instruction files (AGENTS.md …): in force, kept or broken with the line, their effect",
    "rules . --file AGENTS.md",
    arguments,
    run,
)
