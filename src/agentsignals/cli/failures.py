"""`failures`: why attempts of eval runs failed, by candidate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.analysis.failure_map import FailureMap
    from agentsignals.store import Store

_LISTED, _WIDEST = 25, 70
_EXAMPLES = 3
"""Of each class; --json has all."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--by", metavar="COLUMN", nargs="+", default=[], action="extend",
        help="what makes a candidate: model, agent, a knob (default: treatments that differ)")  # fmt: skip
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions` and `attempts`")
    add("--markdown", action="store_true", help="print Markdown")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.redaction import without_keys_in
    from agentsignals.store import Store

    made = without_keys_in(made_of(Store(options.store), options.by, options.where))
    print(json_text(made) if options.json else in_words(made, as_markdown=options.markdown))
    return 0


def made_of(store: Store, by: Sequence[str], where: str) -> FailureMap:
    """The map of a store. StoreError without attempts; UsageError where no attempt has a column of `by`."""
    from agentsignals.analysis.failure_map import failure_map, queries
    from agentsignals.errors import StoreError
    from agentsignals.store.query import rows

    asked = {name: rows(store, sql) for name, sql in queries(where).items()}
    tables = {name: [dict(zip(names, row, strict=True)) for row in values] for name, (names, values) in asked.items()}
    if not tables["attempts"]:
        raise StoreError(
            "There is no eval attempt" + (" under this condition." if where != "true" else "."),
            "Attempts come from eval runs (Harbor, SWE-bench, Inspect …): `agentsignals analyze RUNS` reads them in.",
        )
    return failure_map(tables, by)


def in_words(made: FailureMap, *, as_markdown: bool = False) -> str:
    """The map as tables and sentences."""
    from agentsignals.analysis.failure_map import figure, words
    from agentsignals.cli.output import printable

    head = (
        f"{made.failed:,} of {made.first_attempts:,} first attempts failed or were broken off;"
        f" candidates by {', '.join(made.by)}"
    )
    classes = [(words(share.name), figure(share, made.failed)) for share in made.classes]
    candidates = [
        (c.name, c.first_attempts, c.not_judged, c.failed, ", ".join(f"{words(s.name)} {s.n:,}" for s in c.classes))
        for c in made.candidates[:_LISTED]
    ]
    examples = [
        (words(entry.name), entry.because, entry.file or "", entry.session_id, entry.seq)
        for share in made.classes
        for entry in [entry for entry in made.listed if entry.name == share.name][:_EXAMPLES]
    ]
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = [
        ("", ("class", "first attempts, share of what failed"), classes),
        ("by candidate", ("candidate", "first attempts", "not judged", "failed", "by"), candidates),
        ("examples", ("class", "because", "where to look", "session", "event"), examples),
    ]
    part = _as_markdown if as_markdown else _as_text
    shown = [part(title, names, rows) for title, names, rows in tables if rows]
    left = len(made.candidates) - len(candidates)
    sentences = [*made.sentences, *([f"and {left} more candidates (--json has all)"] if left else [])]
    if as_markdown:
        from agentsignals.report.markdown import plain_lines

        return "\n\n".join(part for part in (plain_lines([head], ""), *shown, plain_lines(sentences)) if part)
    return "\n\n".join(part for part in (printable(head), *shown, "\n".join(map(printable, sentences))) if part)


def _as_text(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    from agentsignals.cli.output import table

    return f"{title}\n{table(names, rows, _WIDEST)}".lstrip()


def _as_markdown(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    from agentsignals.report.markdown import plain_table

    return (f"### {title}\n\n" if title else "") + plain_table(names, rows)


VERB = Verb(
    "failures",
    "why attempts of eval runs failed, by candidate, each with what shows it",
    "failures --by model",
    arguments,
    run,
)
