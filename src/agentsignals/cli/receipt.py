"""`receipt`: what an agent did for a commit, a branch or a pull request, on one page for its review."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.repositories.receipt import CheckRun, Place, Receipt

_WIDEST = 70


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repository", metavar="REPO", help="a repository's folder or address")
    parser.add_argument(
        "revision", metavar="REVISION", nargs="?", default="HEAD", help="a commit, A..B, or a branch (default: HEAD)"
    )
    parser.add_argument("--markdown", action="store_true", help="as Markdown, for a review")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.ingest.collection import repository_receipt
    from agentsignals.redaction import without_keys_in

    made = without_keys_in(repository_receipt(options.repository, options.revision, options.store, jobs=options.jobs))
    print(json_text(made) if options.json else _page(made, options.markdown))
    return 0


_Table = tuple[str, Sequence[str], list[Sequence[Any]]]


def _page(made: Receipt, as_markdown: bool) -> str:
    from agentsignals.cli.output import printable, table
    from agentsignals.ui.markdown import plain_lines, plain_table

    def lines(sentences: Sequence[str], mark: str) -> str:
        return plain_lines(sentences, mark) if as_markdown else "\n".join(printable(s) for s in sentences)

    named = [f"{sha[:10]} {made.subjects.get(sha, '')}" for sha in made.commits[:5]]
    more = [f"and {len(made.commits) - 5} more commits"] if len(made.commits) > 5 else []
    parts = [
        lines(["What the transcripts show of:"], "## "),
        lines([*named, *more], "- "),
        lines(list(_says(made)), "- "),
    ]
    for title, names, rows in _tables(made):
        if rows:
            body = plain_table(names, rows, _WIDEST) if as_markdown else table(names, rows, _WIDEST)
            parts.append(f"### {title}\n\n{body}" if as_markdown else f"{title}\n{body}")
    return "\n\n".join(part for part in parts if part)


def _says(made: Receipt) -> Iterator[str]:
    o = made.owners
    n = o.agent + o.person + o.unknown
    if not made.sessions:
        yield "No transcript is at hand for these commits: nothing can be said of how they were made."
    if made.attributed < len(made.commits):
        yield f"{len(made.commits) - made.attributed} of {len(made.commits)} commits are linked to no session."
    if n and o.low is not None and o.high is not None:
        yield (
            f"Of {n:,} added lines with an author {o.agent:,} are an agent's, {o.person:,} a person's, {o.unknown:,}"
            f" ({100 * o.unknown / n:.0f} %) nobody knows: the agent's share is between {100 * o.low:.0f} and"
            f" {100 * o.high:.0f} %."
        )
    if o.nobody:
        yield f"{o.nobody:,} more were moved, were there before, or are generated."
    if made.sessions_missing:
        yield f"{len(made.sessions_missing)} sessions had a part whose transcripts are not here."
    if made.sessions:
        yield from _checked(made)
    if made.sessions:
        yield _cost(made)
    if made.weaknesses is None:
        yield "No scan has looked at these commits (`agentsignals scan` reads those of sessions, in its languages)."
    else:
        part = "" if made.commits_scanned == len(made.commits) else f" of {made.commits_scanned} of the commits"
        yield f"A scan{part} found {len(made.weaknesses):,} weaknesses introduced."


def _cost(made: Receipt) -> str:
    n, missing = len(made.sessions), len(made.sessions_missing)
    if made.cost_usd is None:
        return "What the sessions cost is not known: model calls that used tokens have no price."
    whose = (
        "The sessions"
        if made.sessions_priced == n
        else f"{made.sessions_priced} of {n} sessions, the others without a price,"
    )
    least = " at least" if any(s.cost_at_least for s in made.sessions if s.cost_usd is not None) else ""
    shared = sum(s.other_commits > 0 for s in made.sessions)
    rest = f"; {shared} of them also made other commits" if shared else ""
    rest += f"; {missing} whose transcripts are not here cost more" if missing else ""
    return f"{whose} cost{least} {made.cost_usd:,.2f} USD as a whole{rest}."


def _checked(made: Receipt) -> Iterator[str]:
    if made.kinds_not_run:
        words = {"test": "test", "build": "build, linter or type checker"}
        yield "No transcript shows a run of a " + ", nor of a ".join(words[k] for k in made.kinds_not_run) + "."
    stale = [run.name for run in made.checks if run.edits_after]
    if stale:
        yield f"Not run since the last change: {', '.join(stale)}."
    failed = [run.name for run in made.checks if run.result == "failed"]
    if failed:
        yield f"Failed when last run: {', '.join(failed)}."
    if made.not_run:
        yield f"Run by other sessions of this repository, not by these: {', '.join(made.not_run[:8])}."


_RESULTS = {"hidden": "ran; its line does not tell how it ended", "unknown": "ran; the log does not say how it ended"}


def _tables(made: Receipt) -> list[_Table]:
    checks: list[Sequence[Any]] = [(c.name, c.runs, _end(c), _since(c), _at(c.place)) for c in made.checks]
    sessions: list[Sequence[Any]] = [
        (s.session_id, s.agent, s.model or "", s.prompts, s.interrupts, s.refused, s.cost_usd) for s in made.sessions
    ]
    return [
        ("Checks before the commit", ("check", "runs", "the last", "changed since", "session and event"), checks),
        (
            "Failed, and not seen to succeed since",
            ("command", "why", "session and event"),
            [(f.command, f.error_class or "", _at(f.place)) for f in made.failed],
        ),
        ("Lines nobody knows", ("file", "lines"), list(made.owners.files_unknown.items())),
        _files("Committed, and changed by no call", made.committed_not_changed, made.committed_not_changed_n),
        _files("Changed, and not committed", made.changed_not_committed, made.changed_not_committed_n),
        _files("Read, and not changed", made.read_not_changed, made.read_not_changed_n),
        ("Sessions", ("session", "agent", "model", "prompts", "interrupts", "refused calls", "USD"), sessions),
    ]


def _files(title: str, paths: list[str], n: int) -> _Table:
    rest = [(f"and {n - len(paths)} more",)] if n > len(paths) else []
    return title, ("file",), [*((path,) for path in paths), *rest]


def _end(check: CheckRun) -> str:
    return _RESULTS.get(check.result, check.result) + (" (of a part)" if check.is_part else "")


def _since(check: CheckRun) -> str:
    if not check.edits_after:
        return "nothing"
    files = ", ".join(check.files_after[:3]) + (", …" if len(check.files_after) > 3 else "")
    return f"{check.edits_after} {'change' if check.edits_after == 1 else 'changes'}: {files}"


def _at(place: Place) -> str:
    return f"{place.session_id[:13]} {place.seq}"


VERB = Verb(
    "receipt", "what agents did for a commit, a branch or a pull request: owners, checks, what was not run, cost",
    "receipt . main..HEAD --markdown", arguments, run,
)  # fmt: skip
