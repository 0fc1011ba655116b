"""How each session of the store lies among the others, and which lie otherwise than they did after the last run.

What followed from the last run is kept in a file beside the shards: whoever's standing is the same has the same values.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

import msgspec
from msgspec import Struct, field

from agentsignals.catalog import plan
from agentsignals.ingest.briefs import CONTEXTS, LINES, Brief, Entry, Text, site_id, texts_of, united, values_of
from agentsignals.model import Context
from agentsignals.store import Store
from agentsignals.store import files as disk
from agentsignals.store.files import Part
from agentsignals.views.history import History, Outline, compare, histories, known_until, span_of, user_of
from agentsignals.views.same_place import places

_FEW = 16
"""What follows so many others is looked for one by one; of more their places are looked at as a whole."""


class Standing(Struct, array_like=True, kw_only=True, gc=False):
    """A session among the others, as the last run left it."""

    session_id: str
    shard: str
    """That its values were written with."""
    is_human: bool
    started_at: int | None
    lines: int
    """Names the lines that it changed; 0 where there are none."""
    next_shard: str
    """That the values of the next session were written with."""
    place: str | None
    known_until: int
    known_since: int
    n_prior: int
    n_prior_same_user: int
    next_id: str | None
    next_started_at: int | None
    next_shares_file: bool | None = None
    next_similarity: float | None = None
    same_lines: dict[str, list[str]] = {}
    user: str | None = ""
    """See `user_of`; empty where that was not kept."""

    def history(self) -> History:
        """As signals are given it."""
        return History(**{name: getattr(self, name) for name in History.__struct_fields__})


class Standings(Struct):
    """Of all sessions; `changed` are those that lie otherwise than they did, or are new or other themselves."""

    now: list[Standing] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    """Sessions that the store held and does not hold any more."""
    places: dict[Context, dict[str, str]] = field(default_factory=dict)
    """By repository and folder (`site_id`)."""


class _Kept(Struct):
    versions: dict[str, int]
    standings: list[Standing]


def read(store: Store, versions: dict[str, int]) -> dict[str, Standing] | None:
    """The standings that the last run left, by session; None where there are none of these signals' versions."""
    part = store.manifest.standings
    if part is None or disk.what_is_wrong(str(store.folder / part.file), part):
        return None
    with suppress(OSError, msgspec.DecodeError):
        kept = msgspec.msgpack.decode((store.folder / part.file).read_bytes(), type=_Kept)
        if kept.versions == versions:
            return {standing.session_id: standing for standing in kept.standings}
    return None


def write(store: Store, number: int, standings: Standings, versions: dict[str, int]) -> Part:
    """Keeps them under a name that no earlier ones have."""
    path = store.folder / f"standings.{number}.msgpack"
    data = msgspec.msgpack.encode(_Kept(versions, standings.now))
    try:
        disk.replace(path, data)
        return Part(len(data), len(standings.now), disk.digest(data), path.stat().st_mtime_ns, path.name)
    except OSError as problem:
        raise disk.cannot_write(store.folder, problem) from problem


def standings(
    store: Store, briefs: dict[str, Brief], former: dict[str, Standing], only_places: bool = False
) -> Standings:
    """How the sessions of these shards lie among each other, or `only_places`. Runs of an eval are nobody's earlier
    sessions."""
    made = Standings()
    where = {entry.session_id: name for name, brief in briefs.items() for entry in brief.sessions}
    made.gone = former.keys() - where.keys()
    for context in CONTEXTS:
        here = [(n, entry) for n, brief in briefs.items() for entry in brief.sessions if entry.context == context]
        where_they_lie = places(united(site for brief in briefs.values() for site in brief.sites.get(context, ())))
        made.places[context] = where_they_lie
        if here and not only_places and plan(context, "history"):
            _of_context(store, here, where_they_lie, former, made)
    _compare_next(made, where, briefs)
    return made


def _of_context(
    store: Store, here: list[tuple[str, Entry]], by_site: dict[str, str], former: dict[str, Standing], made: Standings
) -> None:
    written = {name: shard.values or name for name, shard in store.manifest.shards.items()}
    shard_of = {entry.session_id: written[name] for name, entry in here}
    span = span_of(t for _, entry in here for t in (entry.started_at, entry.ended_at))
    here = _unsettled(here, by_site, former, shard_of, span, made)
    outlines = _outlines(here, by_site)
    shared_anew = _shared_anew(here, outlines, former, made.gone)
    _add_lines(store, here, outlines, shared_anew)
    by_session = histories(outlines.values(), span)
    users = {entry.cwd: outlines[entry.session_id].user for _, entry in here}
    outlines.clear()  # of a large store they take as much as what is made of them
    for _, entry in here:
        history, before = by_session.pop(entry.session_id), former.get(entry.session_id)
        standing = Standing(
            session_id=entry.session_id,
            shard=shard_of[entry.session_id],
            is_human=_is_human(entry),
            started_at=entry.started_at,
            lines=entry.lines,
            next_shard=shard_of[history.next_id] if history.next_id is not None else "",
            place=history.place,
            known_until=history.known_until,
            known_since=history.known_since,
            n_prior=history.n_prior,
            n_prior_same_user=history.n_prior_same_user,
            next_id=history.next_id,
            next_started_at=history.next_started_at,
            same_lines=history.same_lines,
            user=users[entry.cwd],
        )
        if before is not None:
            standing.next_shares_file, standing.next_similarity = before.next_shares_file, before.next_similarity
            if history.place not in shared_anew:
                standing.same_lines = before.same_lines
        if before is not None and standing == before:
            made.now.append(before)
        else:
            standing.next_shares_file = standing.next_similarity = None
            made.changed.add(entry.session_id)
            made.now.append(standing)


def _unsettled(  # noqa: PLR0913  (one call: all that a place depends on)
    here: list[tuple[str, Entry]],
    by_site: dict[str, str],
    former: dict[str, Standing],
    shard_of: dict[str, str],
    span: tuple[int, int],
    made: Standings,
) -> list[tuple[str, Entry]]:
    """The sessions of places in which any came, went, moved or lies otherwise. Those of others stand as they did, save
    for how far the store sees on after them, and for what followed those that are others or came before such."""
    sites = {(entry.repo, entry.cwd) for _, entry in here}
    place_of = {site: by_site.get(site_id(*site)) for site in sites}
    unsettled: set[str | None] = {former[session_id].place for session_id in made.gone}
    others: dict[str, Entry] = {}
    for _, entry in here:
        place, before = place_of[entry.repo, entry.cwd], former.get(entry.session_id)
        if before is None:
            unsettled.add(place)
        elif before.place != place or before.known_since != span[0]:
            unsettled |= {place, before.place}
        elif before.shard != shard_of[entry.session_id]:
            if _lies_as_before(before, entry):
                others[entry.session_id] = entry
            else:
                unsettled.add(place)
    if len(others) > _FEW:
        unsettled.update(former[session_id].place for session_id in others)
    left = []
    settled: list[Standing] = []
    for name, entry in here:
        if place_of[entry.repo, entry.cwd] in unsettled:
            others.pop(entry.session_id, None)
            left.append((name, entry))
            continue
        standing = former[entry.session_id]
        until = known_until(span[1], entry.started_at, entry.ended_at)
        if standing.known_until != until:
            standing.known_until = until
            made.changed.add(entry.session_id)
        settled.append(standing)
    if others:
        _follow(others, settled, former, shard_of, made)
    made.now += settled
    return left


def _lies_as_before(before: Standing, entry: Entry) -> bool:
    """Whether a session that is another is to the others what it was: as when lines came to its end."""
    now = (entry.started_at, _is_human(entry), entry.lines, user_of(entry.cwd))
    return now == (before.started_at, before.is_human, before.lines, before.user)


def _follow(
    others: dict[str, Entry],
    settled: list[Standing],
    former: dict[str, Standing],
    shard_of: dict[str, str],
    made: Standings,
) -> None:
    """Notes what follows sessions of which the end alone may be another, and that those before them are followed by
    another."""
    for session_id, entry in others.items():
        this = former[session_id]
        this.next_id = this.next_started_at = None
        if this.place is not None and this.started_at is not None:
            end = max(this.started_at, this.started_at if entry.ended_at is None else entry.ended_at)
            same = (s for s in settled if s.is_human and s.place == this.place and s.user == this.user)
            after = ((s.started_at, s.session_id) for s in same if s.started_at is not None and s.started_at > end)
            this.next_started_at, this.next_id = min(after, default=(None, None))
    for standing in settled:
        if standing.session_id in others or standing.next_id in others:
            standing.shard = shard_of[standing.session_id]
            standing.next_shard = shard_of[standing.next_id] if standing.next_id is not None else ""
            standing.next_shares_file = standing.next_similarity = None
            made.changed.add(standing.session_id)


def _outlines(here: list[tuple[str, Entry]], by_site: dict[str, str]) -> dict[str, Outline]:
    sites = {(entry.repo, entry.cwd) for _, entry in here}
    where = {(repo, cwd): (by_site.get(site_id(repo, cwd)), user_of(cwd)) for repo, cwd in sites}
    outlines = {}
    for _, entry in here:
        place, user = where[entry.repo, entry.cwd]
        outlines[entry.session_id] = Outline(
            session_id=entry.session_id,
            place=place,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            parent_session_id=entry.parent_session_id,
            user=user,
            n_turns=entry.n_turns,
        )
    return outlines


def _is_human(entry: Entry) -> bool:
    return entry.parent_session_id is None and entry.n_turns != 0


def _shared_anew(
    here: list[tuple[str, Entry]], outlines: dict[str, Outline], former: dict[str, Standing], gone: set[str]
) -> set[str | None]:
    """The places in which a session that changed lines came, went or is another."""
    places_of_lines: set[str | None] = {former[session_id].place for session_id in gone if former[session_id].lines}
    for _, entry in here:
        before = former.get(entry.session_id)
        if not entry.lines and (before is None or not before.lines):
            continue
        place = outlines[entry.session_id].place
        now = (place, entry.started_at, _is_human(entry), entry.lines)
        if before is None:
            places_of_lines.add(place)
        elif now != (before.place, before.started_at, before.is_human, before.lines):
            places_of_lines |= {place, before.place}
    return places_of_lines


def _add_lines(
    store: Store, here: list[tuple[str, Entry]], outlines: dict[str, Outline], shared_anew: set[str | None]
) -> None:
    by_shard: dict[str, set[str]] = defaultdict(set)
    for name, entry in here:
        if entry.lines and outlines[entry.session_id].place in shared_anew:
            by_shard[name].add(entry.session_id)
    for name, wanted in by_shard.items():
        for session_id, values in values_of(store.folder, name, [LINES], wanted).items():
            outlines[session_id].lines = values[LINES]


def _compare_next(made: Standings, where: dict[str, str], briefs: dict[str, Brief]) -> None:
    """Compares the sessions that changed with those that followed them."""
    pairs = [s for s in made.now if s.session_id in made.changed and s.next_id is not None]
    wanted = {session_id for s in pairs for session_id in (s.session_id, s.next_id)}
    texts: dict[str, Text] = {}
    for name in {where[session_id] for session_id in wanted if session_id is not None}:
        texts |= {session_id: text for session_id, text in texts_of(briefs[name]).items() if session_id in wanted}
    for standing in pairs:
        history = standing.history()
        compare(history, _as_outline(texts[standing.session_id]), _as_outline(texts[standing.next_id or ""]))
        standing.next_shares_file, standing.next_similarity = history.next_shares_file, history.next_similarity


def _as_outline(text: Text) -> Outline:
    words = None if text.words is None else frozenset(text.words.split())
    return Outline(session_id="", place=None, started_at=None, ended_at=None, files=text.files, words=words)
