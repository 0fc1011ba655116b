"""The second pass: values that look at a session among the others, and values of the whole store.

A run reads what its own shards hold; of the others what their briefs say, and of their sessions those that lie
otherwise now among the rest (docs/decisions/016).
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct, field

from agentsignals.errors import StoreError
from agentsignals.model import Absent, Attempt, Context, Session
from agentsignals.signals import Measured, Signal
from agentsignals.signals.catalog import Result, as_bound, catalogue, measure, plan
from agentsignals.store import Store, shards
from agentsignals.store import files as disk
from agentsignals.store.files import Part
from agentsignals.store.parquet import signal_rows, signal_table
from agentsignals.views.history import (
    History,
    SessionSummary,
    Site,
    compare,
    histories,
    known_until,
    places,
    tells,
    time_span,
    user_of,
)
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import words

# What the sessions of a shard are to all others: where and when they were, and what they add to values over all.
#
# A brief follows from the shard's tables. It is kept beside the shards, in a file that can be thrown away, so that
# a run that changes one shard reads no other.

FOLDER = "briefs"
CONTEXTS: tuple[Context, ...] = get_args(Context)
FILES = "touched_files"
"""The signal whose value says which files a session touched."""
LINES = "edited_line_prints"
"""The signal whose value says which lines a session changed."""
MARKS = "repository_marks"
"""The signal whose value says of which repository Git spoke."""
SETS = "metric_inputs"
"""The signal whose value is counted by place."""
READ = ("sessions", "signals", "turns")
"""The tables that a brief is made from."""
_VERSION = 2
_HEADER_BRIEFS = [
    "session_id", "context", "repo", "cwd", "parent_session_id", "started_at", "ended_at", "n_turns",
]  # fmt: skip
_CHECK_BYTES = 4


class Entry(Struct, array_like=True, kw_only=True, gc=False):
    """A session among the others; times in microseconds since 1970 UTC."""

    session_id: str
    context: Context
    repo: str | None
    cwd: str | None
    parent_session_id: str | None
    started_at: int | None
    ended_at: int | None
    n_turns: int | None
    lines: int
    """Names the lines that it changed; 0 where there are none."""


class Text(Struct, array_like=True, gc=False):
    """What two sessions are compared by."""

    files: list[str]
    words: str | None
    """Of its first prompt; None without one. One text takes a tenth of the memory of many."""


class Brief(Struct, kw_only=True):
    """What a shard's sessions are to all others."""

    sessions: list[Entry] = field(default_factory=list)
    sites: dict[Context, list[Site]] = field(default_factory=dict)
    """What the sessions of each repository and folder say of where they lie."""
    sums: dict[Context, dict[str, list[Any]]] = field(default_factory=dict)
    """By signal that goes into values over all sessions: pooled ones (`Signal.pool`), or each with its session."""
    texts: bytes = b""
    """Small, and unpacked when asked for."""


def brief_of(root: Path, shard: str, keep: bool = False) -> Brief:
    """The brief of a shard, made where it is not there; `keep`: written, too. StoreError when a table can't be read."""
    path = root / FOLDER / f"{shard}.{_stamp()}"
    with suppress(OSError, msgspec.DecodeError):
        data = path.read_bytes()
        if zlib.crc32(data[_CHECK_BYTES:]) == int.from_bytes(data[:_CHECK_BYTES]):
            return msgspec.msgpack.decode(memoryview(data)[_CHECK_BYTES:], type=Brief)
    made = _made(root, shard)
    if keep:
        encoded = msgspec.msgpack.encode(made)
        try:
            path.parent.mkdir(exist_ok=True)
            disk.replace(path, zlib.crc32(encoded).to_bytes(_CHECK_BYTES) + encoded)
        except OSError as problem:
            raise disk.cannot_write(root, problem) from problem
    return made


def sweep(store: Store) -> None:
    """Removes the briefs of shards that are no more."""
    for path in disk.listed(store.folder / FOLDER):
        shard, _, stamp = path.name.partition(".")
        if shard not in store.manifest.shards or stamp != _stamp():
            path.unlink(missing_ok=True)


def texts_of(brief: Brief) -> dict[str, Text]:
    """By session."""
    texts = msgspec.msgpack.decode(zlib.decompress(brief.texts), type=list[Text])
    return {entry.session_id: text for entry, text in zip(brief.sessions, texts, strict=True)}


def values_of(root: Path, shard: str, names: Iterable[str], only: set[str] | None = None) -> dict[str, dict[str, Any]]:
    """The session-level values of these signals (by function name), of a shard's sessions or `only` of these."""
    called = {catalogue()[name].path: name for name in names}
    values: dict[str, dict[str, Any]] = {}
    for session_id, path, value, absent, why in shards.read_values(root, shard, set(called), only):
        values.setdefault(session_id, {})[called[path]] = _absent(absent, why or "") if absent else decoded(value or "")
    return values


def decoded(value: str) -> Any:
    """A value out of the store's."""
    return msgspec.json.decode(value)


_absent = lru_cache(maxsize=4096)(Absent)
"""Sessions have the same few reasons."""


@cache
def summed(context: Context) -> tuple[Signal, ...]:
    """The signals of one session that go into values over all sessions of a context."""
    names = dict.fromkeys(n for s in plan(context, "corpus") for n in s.needs)
    return tuple(catalogue()[n] for n in names)


@cache
def _stamp() -> str:
    """Changes with what a brief is made from: the signals across sessions, those that they ask for, this module."""
    versions = [(s.path, s.version) for s in catalogue().values() if s.scope != "session"]
    asked = [(context, s.path) for context in CONTEXTS for s in summed(context)]
    return hashlib.blake2b(repr((_VERSION, versions, asked)).encode(), digest_size=6).hexdigest()


def _made(root: Path, shard: str) -> Brief:
    names = {s.name for context in CONTEXTS for s in summed(context) if s.scope == "session"}
    values = values_of(root, shard, names | {FILES, LINES, MARKS})
    prompts = shards.first_prompts(root, shard)
    brief = Brief()
    texts: list[Text] = []
    sites: dict[tuple[Context, str | None, str | None], _Heard] = {}
    lists: dict[Context, dict[str, list[tuple[str, Any]]]] = {}
    for row in shards.read_header(root, shard, _HEADER_BRIEFS):
        entry = Entry(**row, lines=0)
        measured = values.get(entry.session_id, {})
        files, marks, lines = (measured.get(name) for name in (FILES, MARKS, LINES))
        entry.lines = _mark(lines) if isinstance(lines, dict) and lines else 0
        files = files if isinstance(files, list) else []
        prompt = prompts.get(entry.session_id)
        texts.append(Text(files, None if prompt is None else " ".join(sorted(words(prompt)))))
        heard = sites.setdefault((entry.context, entry.repo, entry.cwd), _Heard())
        heard.add(1, marks if isinstance(marks, dict) else {}, filter(tells, files))
        for signal in summed(entry.context):
            value = measured.get(signal.name)
            if value is not None and type(value) is not Absent:
                if signal.name == SETS:
                    value = {**value, "place": site_id(entry.repo, entry.cwd)}
                lists.setdefault(entry.context, {}).setdefault(signal.name, []).append((entry.session_id, value))
        brief.sessions.append(entry)
    for (context, repo, cwd), heard in sites.items():
        brief.sites.setdefault(context, []).append(heard.site(repo, cwd))
    for context, by_name in lists.items():
        brief.sums[context] = {name: _pooled(catalogue()[name], pairs) for name, pairs in by_name.items()}
    brief.texts = zlib.compress(msgspec.msgpack.encode(texts), 1)
    return brief


def _pooled(signal: Signal, pairs: list[tuple[str, Any]]) -> list[Any]:
    return signal.pool([value for _, value in pairs]) if signal.pool is not None else list(pairs)


def _mark(lines: dict[str, str]) -> int:
    encoded = msgspec.msgpack.encode(lines, order="sorted")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=7).digest()) or 1


def site_id(repo: str | None, cwd: str | None) -> str:
    """Names the sites of one repository and folder."""
    return repr((repo, cwd))


class _Heard(Struct):
    """What sessions of one repository and folder say of where they lie."""

    sessions: int = 0
    remotes: set[str] = field(default_factory=set)
    commits: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, sessions: int, marks: dict[str, list[str]], files: Iterable[str]) -> None:
        self.sessions += sessions
        self.remotes.update(marks.get("remotes", ()))
        self.commits.update(marks.get("commits", ()))
        self.files.update(files)

    def site(self, repo: str | None, cwd: str | None) -> Site:
        return Site(
            session_id=site_id(repo, cwd),
            repo=repo,
            cwd=cwd,
            remotes=sorted(self.remotes),
            commits=sorted(self.commits),
            files=sorted(self.files),
            sessions=self.sessions,
        )


def united(sites: Iterable[Site]) -> list[Site]:
    """Those of one repository and folder as one."""
    heard: dict[tuple[str | None, str | None], _Heard] = {}
    for site in sites:
        marks = {"remotes": site.remotes, "commits": site.commits}
        heard.setdefault((site.repo, site.cwd), _Heard()).add(site.sessions, marks, site.files)
    return [of.site(repo, cwd) for (repo, cwd), of in heard.items()]


# How each session of the store lies among the others, and which lie otherwise than they did after the last run.
#
# What followed from the last run is kept in a file beside the shards: whoever's standing is the same has the same
# values.

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
            _of_context_standing(store, here, where_they_lie, former, made)
    _compare_next(made, where, briefs)
    return made


def _of_context_standing(
    store: Store, here: list[tuple[str, Entry]], by_site: dict[str, str], former: dict[str, Standing], made: Standings
) -> None:
    written = {name: shard.values or name for name, shard in store.manifest.shards.items()}
    shard_of = {entry.session_id: written[name] for name, entry in here}
    span = time_span(t for _, entry in here for t in (entry.started_at, entry.ended_at))
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


def _outlines(here: list[tuple[str, Entry]], by_site: dict[str, str]) -> dict[str, SessionSummary]:
    sites = {(entry.repo, entry.cwd) for _, entry in here}
    where = {(repo, cwd): (by_site.get(site_id(repo, cwd)), user_of(cwd)) for repo, cwd in sites}
    outlines = {}
    for _, entry in here:
        place, user = where[entry.repo, entry.cwd]
        outlines[entry.session_id] = SessionSummary(
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
    here: list[tuple[str, Entry]], outlines: dict[str, SessionSummary], former: dict[str, Standing], gone: set[str]
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
    store: Store, here: list[tuple[str, Entry]], outlines: dict[str, SessionSummary], shared_anew: set[str | None]
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


def _as_outline(text: Text) -> SessionSummary:
    words = None if text.words is None else frozenset(text.words.split())
    return SessionSummary(session_id="", place=None, started_at=None, ended_at=None, files=text.files, words=words)


_HEADER = [
    "session_id", "context", "format", "agent", "artifact_id", "repo", "cwd", "parent_session_id", "started_at",
    "ended_at", "trial_id", "attempt_index",
]  # fmt: skip


def versions() -> dict[str, int]:
    """The signals across sessions, and their versions now."""
    return {s.path: s.version for s in catalogue().values() if s.scope != "session"}


def measure_across(store: Store) -> tuple[int, Part | None, Part | None]:
    """Computes the history and corpus signals that changed and writes them beside the shards. Gives what the index says
    of it then: the run, the file of the values, that of the standings."""
    manifest, now = store.manifest, versions()
    before = read(store, now) if manifest.across is not None else None
    manifest.run += 1
    try:
        _measure(store, before, now)
    except StoreError:
        if before is None:
            raise
        _measure(store, None, now)  # the former values can't be read
    sweep(store)
    return manifest.run, manifest.across, manifest.standings


def _measure(store: Store, before: dict[str, Standing] | None, now: dict[str, int]) -> None:
    manifest = store.manifest
    held = {name: brief_of(store.folder, name, keep=True) for name in store.whole(*READ)}
    made = standings(store, held, before or {})
    manifest.across = shards.write_across(store.folder, manifest.run, _tables(store, held, made, before is not None))
    manifest.standings = write(store, manifest.run, made, now)


def _tables(store: Store, held: dict[str, Brief], made: Standings, carries: bool) -> Iterator[Any]:
    """The values across sessions: of the former those that stand (`carries`), the new, and those of the whole store."""
    later = _later(CONTEXTS)
    former = store.manifest.across
    if carries and former is not None:
        yield from _noted(shards.read_across(store.folder, former, made.changed | made.gone), later)
    yield from _noted(_history_tables(store, held, made), later)
    yield signal_table([signal_rows(None, _corpus_results(store, held, made, later))])


def _later(contexts: Iterable[Context]) -> dict[str, dict[str, Any]]:
    """By signal across sessions that goes into values over all of them, an empty place for its values by session."""
    return {s.name: {} for context in contexts for s in summed(context) if s.scope == "history"}


def _noted(tables: Iterator[Any], later: dict[str, dict[str, Any]]) -> Iterator[Any]:
    """Passes tables of values on, and notes those that go into values over all sessions."""
    paths = {catalogue()[name].path: name for name in later}
    for table in tables:
        for session_id, path, value, absent, _ in shards.chosen(table, set(paths), None) if paths else ():
            if not absent:
                later[paths[path]][session_id] = decoded(value or "")
        yield table


def history_of(store: Store, session_id: str) -> tuple[History, dict[str, Any]]:
    """How one session lies among the others, and the values that signals across sessions have for it."""
    now, entry = versions(), store.manifest.sessions[session_id]
    is_done = bool(store.manifest.history_of) and store.manifest.history_of == store.fingerprint(now)
    kept = read(store, now) if is_done else None
    if kept is None:
        held = {name: brief_of(store.folder, name) for name in store.whole(*READ)}
        kept = {s.session_id: s for s in standings(store, held, {}).now}
    history = kept[session_id].history()
    ((header, values),) = _measurable(store, entry.shard, {session_id})
    return history, {r.signal.name: r.value for r in measure(SessionView(header), values, history)}


class OverAll(Struct):
    """A value over all sessions of a context, and what went in."""

    value: Any
    detail: dict[str, Any]
    sessions: int
    inputs: dict[str, dict[str, Any]]
    """By session, of the first of them in order of id."""


def over_all(store: Store, signal: Signal, context: Context, most: int) -> OverAll:
    """The value of a signal over all sessions of a context, with the inputs of so many sessions at most."""
    held = {name: brief_of(store.folder, name) for name in store.whole(*READ)}
    made = standings(store, held, {}, only_places=True)
    later = _later([context])
    if later and store.manifest.across is not None:
        for _ in _noted(shards.read_across(store.folder, store.manifest.across), later):
            pass
    (result,) = (r for r in _of_context(store, context, held, made, later) if r.signal.path == signal.path)
    there = {e.session_id: (name, e) for name, brief in held.items() for e in brief.sessions if e.context == context}
    first = {session_id: there[session_id] for session_id in sorted(there)[:most]}
    values: dict[str, dict[str, Any]] = {session_id: {} for session_id in first}
    for name in {name for name, _ in first.values()}:
        only = {session_id for session_id, (of, _) in first.items() if of == name}
        values |= values_of(store.folder, name, [n for n in signal.needs if n not in later], only)
    for session_id, (_, entry) in first.items():
        values[session_id] |= {n: of[session_id] for n, of in later.items() if session_id in of}
        if isinstance(sets := values[session_id].get(SETS), dict):
            values[session_id][SETS] = {**sets, "place": made.places[context][site_id(entry.repo, entry.cwd)]}
    inputs = {session_id: {n: values[session_id].get(n) for n in signal.needs} for session_id in first}
    return OverAll(result.value, result.detail or {}, len(there), inputs)


def _history_tables(store: Store, held: dict[str, Brief], made: Standings) -> Iterator[Any]:
    """The rows of the sessions that lie otherwise than they did, shard by shard."""
    by_id = {s.session_id: s for s in made.now if s.session_id in made.changed}
    for name, brief in held.items():
        only = {entry.session_id for entry in brief.sessions if entry.session_id in by_id}
        rows = []
        for header, values in _measurable(store, name, only):
            results = measure(SessionView(header), values, by_id[header.session_id].history())
            rows.append(signal_rows(header, results))
        if rows:
            yield signal_table(rows)


def _measurable(store: Store, shard: str, only: set[str]) -> Iterator[tuple[Session, dict[str, Any]]]:
    """These sessions of a shard in order of id: each without its rows, and with the values that signals across sessions
    ask for."""
    if not only:
        return
    values = values_of(store.folder, shard, _of_histories(), only)
    for row in sorted(shards.read_header(store.folder, shard, _HEADER, only), key=lambda row: str(row["session_id"])):
        trial_id, index = row.pop("trial_id"), row.pop("attempt_index")
        attempt = Attempt(root="", trial_id=trial_id, attempt_index=index) if trial_id is not None else None
        yield Session(**row, attempt=attempt), values.get(row["session_id"], {})


@cache
def _of_histories() -> frozenset[str]:
    """The values of a session that signals across sessions ask for."""
    signals = catalogue()
    needs = {n for context in CONTEXTS for s in plan(context, "history") for n in s.needs}
    return frozenset(n for n in needs if signals[n].scope == "session")


def _corpus_results(
    store: Store, held: dict[str, Brief], made: Standings, later: dict[str, dict[str, Any]]
) -> list[Result]:
    """The values over all sessions of each context there is."""
    there = {entry.context for brief in held.values() for entry in brief.sessions}
    contexts = [context for context in CONTEXTS if context in (there or {"product"})]
    return [result for context in contexts for result in _of_context(store, context, held, made, later)]


def _of_context(
    store: Store, context: Context, held: dict[str, Brief], made: Standings, later: dict[str, dict[str, Any]]
) -> list[Result]:
    lists = {
        s.name: _summed(s, context, held, made) if s.scope == "session" else _listed(later[s.name], context, held)
        for s in summed(context)
    }
    is_bound = any(
        e.context == context and e.visible_output_tokens is not None and e.shard in held
        for e in store.manifest.sessions.values()
    )
    results = []
    for declared in plan(context, "corpus"):
        value = declared.function(*[lists[need] for need in declared.needs])
        if declared.grows_with_output and is_bound:
            value = as_bound(value)
        detail = value.detail if isinstance(value, Measured) else None
        if context == "eval":
            detail = {**(detail or {}), "context": context}
        results.append(Result(declared, value.value if isinstance(value, Measured) else value, detail))
    return results


def _summed(signal: Signal, context: Context, held: dict[str, Brief], made: Standings) -> list[Any]:
    """The values that go into those over all sessions: pooled, else in order of the sessions' ids."""
    parts = [part for brief in held.values() for part in brief.sums.get(context, {}).get(signal.name, ())]
    if signal.name == SETS:  # a data set is a place, which only the sessions together tell
        parts = [{**part, "place": made.places[context][part["place"]]} for part in parts]
    return parts if signal.pool is not None else [value for _, value in sorted(parts, key=lambda pair: str(pair[0]))]


def _listed(values: dict[str, Any], context: Context, held: dict[str, Brief]) -> list[Any]:
    """The values of a context's sessions in order of their ids."""
    there = {entry.session_id for brief in held.values() for entry in brief.sessions if entry.context == context}
    return [values[session_id] for session_id in sorted(there & values.keys())]
