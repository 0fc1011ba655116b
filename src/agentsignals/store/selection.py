"""Selection of sessions by time, project and model: the filter of every verb that lists or sums."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agentsignals.errors import NothingFound, UsageError
from agentsignals.model.registry import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentsignals.store import Store

_AGO = re.compile(r"(\d{1,5}) ?(h|d|w)")
_HOURS = {"h": 1, "d": 24, "w": 168}
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d))?)?)?")
_TIMES = "Write 2026-11-01, 2026-11, '2026-11-01 14:30', 7d, 24h, 2w, today or yesterday."
_OF_PROJECT = """(
    $3 IN (lower(repo), lower(cwd)) OR ends_with(lower(repo), '/' || $3) OR ends_with(lower(cwd), '/' || $3)
    OR contains(lower(cwd), '/' || ltrim($3, '/') || '/')
)"""
_SELECTED = f"""
    SELECT session_id, context, started_at IS NULL AND ($1 IS NOT NULL OR $2 IS NOT NULL) AS is_undated FROM sessions
    WHERE (started_at IS NULL OR (($1 IS NULL OR started_at >= $1) AND ($2 IS NULL OR started_at < $2)))
    AND ($3 IS NULL OR {_OF_PROJECT}) AND ($4 IS NULL OR contains(lower(model), $4))
"""  # noqa: S608  (ours)
_KNOWN = {
    "project": "SELECT repo FROM sessions UNION SELECT parse_filename(cwd) FROM sessions",
    "model": "SELECT DISTINCT model FROM sessions",
}


def select(  # noqa: PLR0913  (the options of a verb)
    store: Store,
    *,
    since: str | None = None,
    until: str | None = None,
    project: str | None = None,
    model: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Limit a store to the sessions that began in a time and are of a project and a model: `store.only`.

    `project`: a repository or a folder, whole or its last parts, in any case. `model`: a part of its name. `tell` is
    told of sessions left out because their log has no time. NothingFound where no session fits.
    """
    asked = {"since": since, "until": until, "project": project, "model": model}
    if not any(asked.values()):
        return
    place = project  # `~` of an unknown user is a name like any other
    if project and project.startswith((".", "~", "/")):
        place = os.path.abspath(os.path.expanduser(project))  # noqa: PTH100, PTH111
    first, end = since and period(since, "--since")[0], until and period(until, "--until")[1]
    values = [first, end, place and place.rstrip("/").lower(), model and model.lower()]
    from agentsignals.store.query import rows  # noqa: PLC0415  (`today` asks for periods alone, without DuckDB)

    _, found = rows(store, _SELECTED, values=values)
    store.only = {session_id: context for session_id, context, is_undated in found if not is_undated}
    undated = len(found) - len(store.only)
    if undated:
        tell(f"{undated:,} sessions have no recorded time and are left out.")
    if not store.only:
        store.only = None
        raise _nothing(store, {name: text for name, text in asked.items() if text})


def _nothing(store: Store, asked: dict[str, str]) -> NothingFound:
    """Return the error for a selection without sessions, with values that would fit."""
    from agentsignals.store.query import rows  # noqa: PLC0415

    named = " ".join(f"--{name} {text}" for name, text in asked.items())
    hints = []
    for name in asked.keys() & _KNOWN.keys():
        known = [text for (text,) in rows(store, _KNOWN[name])[1] if text]
        near = did_you_mean(asked[name], known)
        hints.append(near or f"Known, for example: {', '.join(sorted(known)[:5])}.")
    ((first, last),) = rows(store, "SELECT min(started_at)::DATE, max(started_at)::DATE FROM sessions")[1]
    if first is not None and asked.keys() & {"since", "until"}:
        hints.append(f"The sessions of the store are of {first} to {last}.")
    return NothingFound(f"No session fits {named}.", " ".join(hints))


def period(text: str, option: str, now: datetime | None = None) -> tuple[datetime, datetime]:
    """Return the begin and end of what a text names as a time: a day, a month, a year, a minute, or a moment ago. In
    UTC without a zone, as the store has times; a date is of the machine's own time zone. UsageError for anything else.
    """
    moment = (now or datetime.now(UTC)).astimezone()
    told = text.strip().lower()
    if ago := _AGO.fullmatch(told):
        then = moment - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
        return _utc(then), _utc(then)
    if told in ("today", "yesterday"):
        day = datetime(moment.year, moment.month, moment.day) - timedelta(days=told == "yesterday")
        return _utc(day), _utc(day + timedelta(days=1))
    match = _DATE.fullmatch(text.strip().upper())
    try:
        if match is None:
            raise ValueError(text)
        year, month, day_, hour, minute = (int(part) if part else None for part in match.groups())
        begin = datetime(year or 1, month or 1, day_ or 1, hour or 0, minute or 0)
        if hour is not None:
            end = begin + timedelta(minutes=1)
        elif day_ is not None:
            end = begin + timedelta(days=1)
        elif month is not None:
            end = datetime(begin.year + (month == 12), month % 12 + 1, 1)
        else:
            end = datetime(begin.year + 1, 1, 1)
        return _utc(begin), _utc(end)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} {text!r} is not a time.", _TIMES) from None


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
