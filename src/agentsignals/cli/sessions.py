"""`sessions`: those of the store, the newest first."""

from __future__ import annotations

import argparse
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.store import Store

_COLUMNS = (
    "session_id, agent, model, started_at, ended_at, n_prompts, n_tool_calls, n_edits, output_tokens, cost_usd,"
    " visible_output_tokens, repo, cwd, title"
)
_LONGEST = 300
"""Characters of a first prompt."""
_SHORTEST = 8
"""Characters of an id that are shown, where they name one session."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--where", metavar="SQL", default="true", help="a condition over the columns of `sessions`")
    behind = (
        "those that a number counts, largest part first: study:NAME:ID, study:NAME:TABLE:ROW, study:NAME:CHART:MARK"
    )
    behind += " or finding:ID"
    add("--behind", metavar="KEY", help=behind)
    add("--limit", type=int, default=50, metavar="N", help="at most so many (default 50)")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text, table
    from agentsignals.errors import UsageError
    from agentsignals.sources.local import deleted_files
    from agentsignals.store import Store
    from agentsignals.store.index import local_files, sessions_only_in
    from agentsignals.store.query import rows

    if options.limit < 0:
        raise UsageError(f"--limit {options.limit} came; it counts rows.", "Give 0 or more.")
    store = Store(options.store)
    condition, order, behind = f"({options.where})", "started_at DESC NULLS LAST", None
    if options.behind:
        from agentsignals.ui.drill_down import behind as sessions_behind

        behind = sessions_behind(store, options.behind)
        condition, order = f"list_contains($1, session_id) AND {condition}", "list_position($1, session_id)"
    query = f"SELECT {_COLUMNS}, count(*) OVER () AS total FROM sessions WHERE {condition} ORDER BY {order}, session_id"  # noqa: S608  (the person's own SQL)
    values = None if behind is None else [list(behind.parts)]
    names, counted = rows(store, f"{query} LIMIT {options.limit:d}", values=values)
    prompts = _first_prompts(store, [row[0] for row in counted])
    listed = [dict(zip(names[:-1], row, strict=False)) | {"first_prompt": prompts.get(row[0])} for row in counted]
    if behind is not None:
        listed = [{"counts": behind.words(session["session_id"])} | session for session in listed]
    if options.json:
        print(json_text(listed))
        return 0
    beginnings = _beginnings(store)
    first = () if behind is None else ("counts",)
    cells = [(*(session[name] for name in first), *_cells(session, beginnings)) for session in listed]
    print(table((*first, *_SHOWN), cells) if behind is None or not behind.closed else behind.closed)
    total = counted[0][-1] if counted else 0
    if len(listed) < total:
        which = "the newest" if behind is None else "those with most"
        print(f"{len(listed):,} of {total:,} sessions, {which}; --limit {total} shows all")
    deleted = sessions_only_in(store.manifest, deleted_files(local_files(store.manifest)))
    if deleted:
        print(f"the files of {len(deleted):,} sessions of the store are gone since they were read")
    return 0


_SHOWN = ("session", "began", "last active", "agent", "model", "prompts", "calls", "edits", "output", "cost", "where",
          "title, or first prompt")  # fmt: skip


def _cells(session: dict[str, Any], beginnings: dict[str, str]) -> tuple[Any, ...]:
    """A session as the table shows it: its output and cost as lower bounds where they are."""
    from agentsignals.questions.formatting import AT_LEAST, formatted

    bound = "" if session["visible_output_tokens"] is None else AT_LEAST
    output, cost = session["output_tokens"], session["cost_usd"]
    began, last = session["started_at"], session["ended_at"]
    return (
        beginnings.get(session["session_id"], session["session_id"]),
        None if began is None else f"{began:%Y-%m-%d %H:%M}",
        None if last is None else f"{last:%Y-%m-%d %H:%M}",
        session["agent"],
        session["model"],
        session["n_prompts"],
        session["n_tool_calls"],
        session["n_edits"],
        None if output is None else f"{bound}{output}",
        None if cost is None else f"{bound}{formatted(cost, 'usd')}",
        session["repo"] or session["cwd"],
        " ".join((session["title"] or session["first_prompt"] or "").split()),
    )


def _first_prompts(store: Store, ids: list[str]) -> dict[str, str]:
    """What the person began these sessions with."""
    from agentsignals.questions.ranking import sessions_sql
    from agentsignals.store.query import rows

    if not ids:
        return {}
    beginning = f"SELECT session_id, left(text, {_LONGEST}) FROM turns WHERE turn = 0 AND {sessions_sql(ids)}"  # noqa: S608  (quoted by among)
    return dict(rows(store, beginning)[1])


def _beginnings(store: Store) -> dict[str, str]:
    """The beginning of each id that names it alone, as `show` and `explain` take it."""
    ids = sorted(store.manifest.sessions)
    shared = [_alike(a, b) for a, b in pairwise(ids)]
    longest = zip(ids, [0, *shared], [*shared, 0], strict=False)
    return {name: name[: max(_SHORTEST, before + 1, after + 1)] for name, before, after in longest}


def _alike(name: str, other: str) -> int:
    """How many characters two ids begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))


VERB = Verb("sessions", "list the sessions", "sessions --where \"n_prompts > 10 AND agent = 'codex'\"", arguments, run)
