"""`search`: the sessions in which something was said, asked for, run or answered."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.store.fulltext import Hit, Results, SessionHits

KINDS = ("title", "prompt", "reply", "command", "path", "result", "thinking", "other")
ORDERS = ("newest", "most")
_LONGEST = 110
"""Characters of a title or first prompt."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "words",
        metavar="WORD",
        nargs="+",
        help="all in one passage; as one argument also '\"a phrase\" begin* -without tool:Bash agent: repo: session:'",
    )
    add("--kind", choices=KINDS, action="append", default=[], help="passages of this kind alone; may be repeated")
    add("--order", choices=ORDERS, default="newest", help="the last active session first, or that with most passages")
    add("--limit", type=int, default=20, metavar="N", help="at most so many sessions (default 20)")
    add("--hits", type=int, default=3, metavar="N", help="at most so many passages of each (default 3)")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import Bar, json_text
    from agentsignals.store import Store
    from agentsignals.store.fulltext import search

    bar = Bar(options.quiet)
    try:
        results = search(
            Store(options.store),
            _typed(options.words),
            kinds=options.kind,
            order=options.order,
            limit=options.limit,
            most_hits=options.hits,
            progress=bar,
        )
    finally:
        bar.close()
    print(json_text(results) if options.json else _text(results))
    return 0


def _typed(words: list[str]) -> str:
    """The question: as it stands where it is one argument; of several those with spaces were quoted as phrases."""
    if len(words) == 1:
        return words[0]
    return " ".join(f'"{word}"' if " " in word.strip() and not {'"', ":"} & set(word) else word for word in words)


def _text(results: Results) -> str:
    from agentsignals.cli.output import printable

    lines = [line for session in results.sessions for line in _lines(session)]
    bound = "at least " if results.is_lower_bound else ""
    n = len(results.sessions)
    shown = f"; the first {n:,} are shown, --limit {results.n_sessions} shows all" if n < results.n_sessions else ""
    lines.append(f"{bound}{_times(results.n_passages, 'passage')} in {_times(results.n_sessions, 'session')}{shown}")
    if results.by_kind:
        lines.append(f"by kind: {', '.join(f'{kind} {n:,}' for kind, n in results.by_kind.items())}")
    return "\n".join(printable(line) for line in [*lines, *results.notes])


def _lines(session: SessionHits) -> list[str]:
    when = session.ended_at or session.started_at
    day = f"{when:%Y-%m-%d %H:%M}" if when else "no time"
    facts = [session.session_id, day, session.agent or "", session.place or "", _times(session.n, "passage")]
    about = " ".join((session.title or session.prompt or "").split())[:_LONGEST]
    lines = ["  ".join(fact for fact in facts if fact), *([f"  {about}"] if about else [])]
    return [*lines, *(_line(hit) for hit in session.hits), ""]


def _line(hit: Hit) -> str:
    what = f"{hit.kind} {hit.tool}" if hit.tool else hit.kind
    return f"  {hit.seq:>5} {what}: {_marked(hit)}"


def _marked(hit: Hit) -> str:
    """The excerpt with its matches between signs that texts seldom have."""
    made, at = "", 0
    for start, end in hit.marks:
        made += f"{hit.text[at:start]}»{hit.text[start:end]}«"
        at = end
    return made + hit.text[at:]


def _times(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


VERB = Verb(
    "search",
    "find the sessions in which something was said, run or answered",
    'search "merge conflicts -rebase tool:Bash"',
    arguments,
    run,
)
