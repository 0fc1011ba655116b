"""`witness`: what others recorded of a repository's lines, beside our replay."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.repositories.witness_comparison import Compared, Witnessed

_LISTED = 3
"""Examples of a reason."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repository", metavar="REPO", help="a repository's folder or address")
    parser.add_argument("--markdown", action="store_true", help="as Markdown")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.ingest.collection import witness_repository
    from agentsignals.redaction import without_keys_in

    result = without_keys_in(witness_repository(options.repository, options.store, jobs=options.jobs))
    print(json_text(result) if options.json else _report(result, options.markdown))
    return 0


_Table = tuple[str, Sequence[str], list[Sequence[Any]]]


def _report(result: Witnessed, as_markdown: bool) -> str:
    from agentsignals.cli.output import printable, table
    from agentsignals.ui.markdown import plain_lines, plain_table

    head = f"{result.repo}: {result.commits:,} commits, {result.commits_replayed:,} of them replayed"
    parts = [plain_lines([head], "") if as_markdown else printable(head)]
    if not result.witnesses:
        nothing = "Nobody else left a record: no notes of git-ai, no Agent Trace file."
        parts.append(plain_lines([nothing], "") if as_markdown else nothing)
    for compared in result.witnesses:
        title = f"{compared.witness}: {compared.describes}"
        parts.append(plain_lines([title], "## ") if as_markdown else printable(title))
        sentences = list(_sentences(compared))
        parts.append(plain_lines(sentences) if as_markdown else "\n".join(printable(s) for s in sentences))
        for name, names, rows in _tables(compared):
            if rows and as_markdown:
                parts.append(f"### {name}\n\n{plain_table(names, rows)}")
            elif rows:
                parts.append(f"{name}\n{table(names, rows)}")
    return "\n\n".join(parts)


def _sentences(c: Compared) -> Iterator[str]:
    versions = ", ".join(f"{version} {n:,}" for version, n in list(c.versions.items())[:5])
    yield (
        f"{c.records:,} records; they speak of {c.commits:,} commits ({versions}): no branch leads to"
        f" {c.commits_gone:,} of these, {c.commits_carried:,} were carried over from another"
    )
    yield "lines stated: " + (", ".join(f"{owner} {n:,}" for owner, n in c.stated.items()) or "none")
    if c.problems:
        yield "not read or not placed: " + ", ".join(f"{n:,} {reason}" for reason, n in c.problems.items())
    if c.share is None:
        yield (
            f"Compared: nothing. The two speak of {c.commits_both:,} commits in common, and of no line of them both say"
            " whose it is."
        )
    else:
        interval = (
            f", {100 * c.low:.1f} to {100 * c.high:.1f} %"
            if c.low is not None and c.high is not None
            else (", no interval from so few commits")
        )
        yield (
            f"{c.commits_both:,} commits in common with {c.lines:,} lines; of {c.compared:,} both say whose they are,"
            f" and agree on {100 * c.share:.1f} %{interval}. Where one says nothing nothing is compared: see the tables"
        )
    if c.sessions_same or c.sessions_other:
        yield f"of the agents' lines {c.sessions_same:,} are given to the same session, {c.sessions_other:,} to another"
    if c.recovered:
        agree = f"; the replay says the same of {c.recovered_same:,}, another owner of {c.recovered_other:,}"
        yield (
            f"{c.recovered:,} lines of {c.recovered_commits:,} commits without a record have an owner again, by their"
            f" text in commits that were rewritten{agree}"
        )
    if c.commits_not_here:
        yield f"{c.commits_not_here:,} commits with a record are not in this clone: nothing of them comes back"


def _tables(c: Compared) -> list[_Table]:
    columns = list(dict.fromkeys(owner for counts in c.owners.values() for owner in counts))
    owners: list[Sequence[Any]] = [(ours, *(n.get(o, 0) for o in columns)) for ours, n in c.owners.items()]
    reasons: list[Sequence[Any]] = []
    for reason, n in c.reasons.items():
        lines = [line for line in c.examples if line.reason == reason][:_LISTED]
        reasons.append((reason, n, "; ".join(f"{e.commit_sha[:8]} {e.path}:{e.line}" for e in lines)))
    return [
        ("lines by owner: the replay's down, the witness's across", ("", *columns), owners),
        ("why they differ", ("reason", "lines", "for example"), reasons),
    ]


VERB = Verb(
    "witness", "what git-ai's notes and Agent Trace files say of a repository's lines, beside ours", "witness .",
    arguments, run,
)  # fmt: skip
