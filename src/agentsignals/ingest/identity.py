"""Identity of sessions: one id may name several. They are one session only if their records agree.

Agents count sessions by date and number, and copies travel. So files that claim one id are compared by their prompts,
or else by all texts, with the times of these. Files of different sessions are read apart, and every session but the
oldest gets a suffix to its id.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.formats import Format, Input, Reading, format_named, refuse
from agentsignals.formats.documents import saw_again
from agentsignals.formats.records import read_before
from agentsignals.model import MAIN, Artifact, Checkpoint, Event, Session, Turn
from agentsignals.store.index import name_of

CLOCKS_US = 120_000_000
"""Two logs of one session may note a message some seconds apart."""
_ROUNDED_US = 1_000_000
"""Copies of one log have its times; an export may round them to seconds."""
_COMPARED_CHARS = 2_000
"""Characters of a text that are compared. Copies may differ in the mark of a cut behind them."""
_WINDOWS, _WINDOW_BYTES = (1, 2, 3), 4_096
"""Files that share this many bytes at three quarters of the smaller one are copies."""
_SPOKEN = frozenset(("text", "thinking", "tool_result"))
_SAID = _SPOKEN | {"human_turn"}

Said = tuple[str, int | None]


class Told(Struct):
    """A reading, and the files that it was made of."""

    reading: Reading
    inputs: list[Input]
    format: Format


class Batch(Struct):
    """Files that are read together: they tell no two sessions of one id."""

    inputs: list[Input]
    new_ids: dict[str, str] = field(default_factory=dict)
    """Ids of sessions of which another batch has an older one."""
    rivals: dict[str, list[str]] = field(default_factory=dict)
    """New ids of other batches' sessions, by the id that the oldest keeps."""


def read_apart(trace_format: Format, inputs: list[Input], keys: Mapping[str, Collection[str]]) -> list[Told]:
    """Read the files of a format: together, except for those that are of another session under the same id.

    `keys` of the files' claims, by artifact.
    """
    return [Told(trace_format.read(b.inputs), b.inputs, trace_format) for b in batches_of(trace_format, inputs, keys)]


def batches_of(trace_format: Format, inputs: list[Input], keys: Mapping[str, Collection[str]]) -> list[Batch]:
    """Split the files of a format into batches."""
    units: dict[str, list[Input]] = {}
    for source in inputs:
        path = source.artifact.path
        units.setdefault(trace_format.unit(path) if trace_format.unit is not None else path, []).append(source)
    ids = {
        place: {k for i in unit for k in keys.get(i.artifact.artifact_id, ()) if k.startswith(_IDS)}
        for place, unit in units.items()
    }
    named = Counter(key for found in ids.values() for key in found)
    rivals = [place for place, found in ids.items() if any(named[key] > 1 for key in found)]
    if len(rivals) < 2 or _all_overlap([units[place] for place in rivals]):
        return [Batch(inputs)]
    alone = {place: _sessions_of(trace_format, units[place]) for place in rivals}

    def agree(place: str, other: str) -> bool:
        """Return whether two places tell no two sessions of one id."""
        pairs = [(alone[place][i], alone[other][i]) for i in alone[place].keys() & alone[other].keys()]
        if all(is_same(*pair) or _counts_on(*pair) for pair in pairs) or _continues(units[place], units[other]):
            return True
        if not all(_begin_alike(*pair) for pair in pairs):
            return False
        # Two kinds of files that one program keeps of a session may each hold what the other lacks.
        (mine, my_kinds), (theirs, their_kinds) = (_structure(units[p]) for p in (place, other))
        if my_kinds.isdisjoint(their_kinds) or 2 * len(mine & theirs) < min(len(mine), len(theirs)):
            return True
        # They went apart. Some formats unite their records, others keep the fullest of several states.
        whole = _sessions_of(trace_format, [*units[place], *units[other]])
        return all(s.session_id in whole and not _lacks(whole[s.session_id], s) for pair in pairs for s in pair)

    places: list[list[str]] = []
    for place in sorted(alone, key=lambda p: (not alone[p], p)):  # what tells no session goes where it fits best
        fitting = [batch for batch in places if all(agree(place, other) for other in batch)]
        if not fitting:
            places.append([])
            fitting = places[-1:]
        related = [b for b in fitting if any(not alone[place].keys().isdisjoint(alone[p]) for p in b)] or fitting
        max(related, key=lambda b: max((_shared_path(place, p) for p in b), default=0)).append(place)
    if len(places) < 2:
        return [Batch(inputs)]
    batches = [Batch([]) for _ in places]
    of_id: dict[str, list[tuple[Batch, Session]]] = {}
    for batch, held in zip(batches, places, strict=True):
        for place in held:
            for session_id, session in alone[place].items():
                of_id.setdefault(session_id, []).append((batch, session))
    for session_id, told in of_id.items():
        first, *others = by_session([session for _, session in told])
        known = {id(session) for session in first}
        for same in others:
            new_id = f"{session_id}~{mark_of(same[0])}"
            for batch, session in told:
                if id(session) in known and new_id not in batch.rivals.setdefault(session_id, []):
                    batch.rivals[session_id].append(new_id)
                if any(session is s for s in same) and all(id(s) not in known for b, s in told if b is batch):
                    batch.new_ids[session_id] = new_id
    for place in sorted(units.keys() - alone.keys()):
        max(places, key=lambda b: max(_shared_path(place, p) for p in b)).append(place)
    for batch, held in zip(batches, places, strict=True):
        batch.inputs = sorted((i for place in held for i in units[place]), key=lambda i: i.artifact.path)
    return batches


def _counts_on(one: Session, other: Session) -> bool:
    """Return whether one goes on counting tokens where the other ended, in logs without prompts and times."""
    if any(s.turns or any(e.timestamp is not None for e in s.events) for s in (one, other)):
        return False
    used = sorted([s.input_tokens for s in session.steps if s.input_tokens] for session in (one, other))
    few, many = sorted(used, key=sum)
    return bool(few) and many[0] > sum(few)


def _continues(unit: list[Input], other: list[Input]) -> bool:
    """Return whether the records of one follow on a record of the other, or one names the other's file as the part
    that comes next: parts of one log."""
    (mine, theirs), (my_above, their_above) = zip(*(_ids(of) for of in (unit, other)), strict=True)
    if not (my_above - mine).isdisjoint(theirs) or not (their_above - theirs).isdisjoint(mine):
        return True
    for one, next_one in ((unit, other), (other, unit)):
        paths = [i.artifact.path.encode("utf-8", "surrogateescape") for i in next_one]
        if any(path.endswith(name) for i in one for name in _NEXT.findall(i.data) for path in paths):
            return True
    return False


def _ids(unit: list[Input]) -> tuple[set[bytes], set[bytes]]:
    data = [i.data for i in unit]
    return {i for d in data for i in _ID.findall(d)}, {i for d in data for i in _ABOVE.findall(d)}


def _structure(unit: list[Input]) -> tuple[set[bytes], set[str]]:
    names = {name for i in unit for name in _FIELD.findall(i.data[:_WINDOW_BYTES])}
    return names, {posixpath.splitext(i.artifact.path)[1] for i in unit}


_FIELD = re.compile(rb'"(\w{1,40})"\s*:')
_IDS = ("session:", "trace:", "otel:", "trial:")
"""Prefixes of keys that name a session. Other keys name a place, a run or a record."""
_ID = re.compile(rb'"(?:uu|span)?_?[Ii]d"\s*:\s*"([^"]{4,80})"')
_ABOVE = re.compile(rb'"[Pp]arent\w*"\s*:\s*"([^"]{4,80})"')
_NEXT = re.compile(rb'"continued\w*"\s*:\s*"([^"/]{4,200})"')
"""The file in which a log goes on (ATIF's `continued_trajectory_ref`); a copy of it may have more before its name."""


def _shared_path(one: str, other: str) -> int:
    return len(posixpath.commonpath((one, other))) if one[:1] == other[:1] else 0


def _all_overlap(units: list[list[Input]]) -> bool:
    """Return whether each unit is a file that shares long stretches of bytes with the largest, as copies do."""
    if any(len(unit) > 1 for unit in units):
        return False
    largest, *others = sorted((unit[0].data for unit in units), key=len, reverse=True)
    windows = (bytes(part[len(part) * n // 4 :][:_WINDOW_BYTES]) for part in others for n in _WINDOWS)
    return min(map(len, others)) >= 4 * _WINDOW_BYTES and all(largest.find(window) >= 0 for window in windows)


def _sessions_of(trace_format: Format, unit: list[Input]) -> dict[str, Session]:
    """Return the sessions that these files tell alone. Nothing is accounted for."""
    aside = [replace(i, artifact=read_before(i.artifact)) for i in unit]
    return {s.session_id: s for s in trace_format.read(aside).sessions if s.events}


def is_same(one: Session, other: Session) -> bool:
    """Return whether two readings are of one session: the first prompt of one is among the other's, or most texts of
    the smaller one are in the other, at the same times. In one format without times all has to agree: two people ask
    the same, and models answer the same.

    Attempts are told apart by the harness's own ids of their records; those that have neither such ids nor a
    conversation by their runs.
    """
    attempts = [s.attempt for s in (one, other) if s.attempt is not None]
    records, runs = ({getattr(a, of) for a in attempts} - {None} for of in ("record_id", "run_id"))
    if len(records) > 1:
        return False
    is_timed = one.format != other.format or any(e.timestamp is not None for s in (one, other) for e in s.events)
    begins = [s.started_at for s in (one, other) if s.started_at is not None]
    is_apart = len(begins) > 1 and max(begins) - min(begins) > CLOCKS_US
    if is_timed and _begin_alike(one, other):
        if is_apart and one.format == other.format and all(t.timestamp is None for s in (one, other) for t in s.turns):
            return False
        return one.format != other.format or not (_lacks(one, other) and _lacks(other, one))
    within = CLOCKS_US if one.format != other.format else _ROUNDED_US
    mine, theirs = map(_prompts, (one, other))
    if is_timed and not (mine and theirs):
        spoken = ([e for e in s.events if e.thread == MAIN and e.kind in _SPOKEN] for s in (one, other))
        mine, theirs = (_said((e.text, e.timestamp) for e in events) for events in spoken)
        if mine and theirs and one.format == other.format:
            is_timed = any(at is not None for _, at in (*mine, *theirs))
    if not (mine and theirs) and one.format != other.format:
        return True  # a log and what its agent printed may each hold what the other lacks
    if not (mine and theirs):
        if is_apart and one.attempt is not None:
            return False
        if len(runs) > 1 and not (records and all(a.record_id for a in attempts)):
            return False
    if not (is_timed and mine and theirs):
        mine, theirs = map(_all_said, (one, other))
    few, many = sorted((mine, theirs), key=len)
    shared = _share(few, many, within)
    if is_timed:
        return not few or 2 * shared > len(few)
    places, models = ({getattr(s, of) for s in (one, other)} - {None} for of in ("cwd", "model"))
    return max(map(len, (places, models))) < 2 and shared == len(few)


def _begin_alike(one: Session, other: Session) -> bool:
    within = CLOCKS_US if one.format != other.format else _ROUNDED_US
    mine, theirs = map(_prompts, (one, other))
    return bool(mine and theirs) and bool(_share(mine[:1], theirs, within) or _share(theirs[:1], mine, within))


def _lacks(one: Session, other: Session) -> bool:
    """Return whether one has not all that is said in the other, but for texts that were masked there."""
    from agentsignals.redaction.values import has_mask  # noqa: PLC0415  (few logs are compared, and every run reads this)

    told = _said((e.text, e.timestamp) for e in other.events if e.kind in _SAID and not has_mask(e.text or ""))
    return _share(told, _said((e.text, e.timestamp) for e in one.events), _ROUNDED_US) < len(told)


def _prompts(session: Session) -> list[Said]:
    return _said((t.text, t.timestamp) for t in session.turns)


def _all_said(session: Session) -> list[Said]:
    arguments = {call.seq: call.arguments for call in session.tool_calls}
    return _said((f"{e.kind} {e.text or arguments.get(e.seq)}", e.timestamp) for e in session.events)


def _said(texts: Iterable[tuple[str | None, int | None]]) -> list[Said]:
    return [("".join(text[:_COMPARED_CHARS].split()), at) for text, at in texts if text]


def _share(few: list[Said], many: list[Said], within: int) -> int:
    """Count texts that are among others too, at most so many microseconds apart."""
    times: dict[str, list[int | None]] = {}
    for text, at in many:
        times.setdefault(text, []).append(at)
    return sum(
        any(at is None or then is None or abs(at - then) <= within for then in times.get(text, ()))
        for text, at in few
    )  # fmt: skip


def id_beside(stored: Sequence[Session], same: Sequence[Session], wanted: str) -> str:
    """Return the id of a session beside those in the store whose files are gone: that of the same one, else one that
    none of them has."""
    name = name_of(wanted)
    near = [s for s in stored if name_of(s.session_id) == name]
    known = (s.session_id for s in near if any(_may_be_one(s, other) and is_same(s, other) for other in same))
    taken = any(s.session_id == wanted for s in near)
    return next(known, f"{name}~{mark_of(same[0])}" if taken else wanted)


def give_ids(told: list[Told], artifacts: Mapping[str, Artifact], stored: Sequence[Session] = ()) -> list[Session]:
    """Return all sessions with ids of their own. Of several readings of one session in one format the fullest stays.

    `stored`: sessions of files that are gone, which keep their ids.
    """
    by_id: dict[str, list[Session]] = {}
    owners: dict[int, Told] = {}
    for one in told:
        for session in one.reading.sessions:
            by_id.setdefault(session.session_id, []).append(session)
            owners[id(session)] = one
    dropped: set[int] = set()
    for session_id, readings in by_id.items():
        if not session_id or (len(readings) < 2 and not stored):
            continue
        people = by_session(readings)
        for same in people:
            new_id = session_id if same is people[0] else f"{session_id}~{mark_of(same[0])}"
            new_id = id_beside(stored, same, new_id)
            before = [s for s in stored if s.session_id == new_id]
            dropped.update(map(id, _surplus([*same, *before], artifacts)))
            for session in same if new_id != session_id else ():
                give_id(session, new_id, artifacts.get(session.artifact_id), owners[id(session)].reading)
            for session in people[0] if same is not people[0] else ():
                add_note(artifacts.get(session.artifact_id), f"{OF_ANOTHER_NOTE}{new_id}")
    for one in told:
        gone = {(s.artifact_id, s.session_id) for s in one.reading.sessions if id(s) in dropped}
        gone -= {(s.artifact_id, s.session_id) for s in one.reading.sessions if id(s) not in dropped}
        if gone:
            parts = one.reading.attempts
            one.reading.attempts = [p for p in parts if (p.session_artifact, p.session_id) not in gone]
    return [s for one in told for s in one.reading.sessions if id(s) not in dropped]


def by_session(readings: list[Session]) -> list[list[Session]]:
    """Group readings of one id by session, the oldest first. Each begins with its first reading."""
    groups: list[list[Session]] = []
    for session in readings:
        same = [g for g in groups if any(_may_be_one(session, other) and is_same(session, other) for other in g)]
        groups = [g for g in groups if all(g is not s for s in same)] + [[session, *(s for g in same for s in g)]]
    return sorted((sorted(g, key=_begin) for g in groups), key=lambda g: _begin(g[0]))


def _may_be_one(one: Session, other: Session) -> bool:
    """Return whether two formats may tell one session: an agent's log and what it prints, or a collector's copy."""
    if one.format == other.format or one.agent == other.agent:
        return True
    return not (is_own(one) and is_own(other))


def is_own(session: Session) -> bool:
    trace_format = format_named(session.format)
    return trace_format is not None and trace_format.is_own


def _surplus(same: list[Session], artifacts: Mapping[str, Artifact]) -> Iterator[Session]:
    """Yield further readings of a session in one format; the fullest of them is not among them."""
    kept: dict[str, Session] = {}
    for session in sorted(same, key=lambda s: (-len(s.events), s.artifact_id not in artifacts, s.artifact_id)):
        first = kept.setdefault(session.format, session)
        if first is not session:
            artifact = artifacts.get(session.artifact_id)
            add_note(artifact, f"the same session as in {first.artifact_id}")
            if artifact is not None and first.artifact_id != artifact.artifact_id:
                saw_again(artifact)
            yield session


def _begin(session: Session) -> tuple[int, str]:
    return session.started_at if session.started_at is not None else 2**62, mark_of(session)


def mark_of(session: Session) -> str:
    """Return a mark of a session's beginning: the same for each copy and for each later state of it."""
    rows: Sequence[Turn | Event] = session.turns or session.events
    first = next(iter(rows), None)
    text, at = (None, None) if first is None else (first.text, first.timestamp)
    begin: tuple[str | int | None, ...] = (
        session.format, (text or "")[:_COMPARED_CHARS], session.started_at if at is None else at
    )  # fmt: skip
    if session.attempt is not None and not session.turns:
        begin += tuple(i for i in (session.attempt.run_id, session.attempt.record_id) if i is not None)
    return hashlib.blake2b(repr(begin).encode(), digest_size=4).hexdigest()


def give_id(session: Session, new_id: str, artifact: Artifact | None, reading: Reading | None = None) -> None:
    """Give a session another id, also where its reading names it. The note of its artifact says so.

    Its trial gets another id too, unless the session had the trial's own id: such an id names each attempt.
    """
    old_id, session.session_id = session.session_id, new_id
    mark = f"~{new_id.rpartition('~')[2]}"
    for other in reading.sessions if reading is not None else ():
        if other.parent_session_id == old_id:
            other.parent_session_id = new_id
    for part in reading.attempts if reading is not None else ():
        if part.session_id == old_id and part.session_artifact in (None, session.artifact_id):
            part.session_id = new_id
            is_folder = artifact is None or artifact.path.startswith(part.root)
            if not is_folder and part.trial_id is not None and part.trial_id != old_id:
                part.root, part.trial_id = part.root + mark, part.trial_id + mark
    if (attempt := session.attempt) is not None and attempt.trial_id is not None:
        attempt.trial_id += mark
    refuse(artifact, "session_id_of_another")
    add_note(artifact, f"another session has the id {old_id}, so this one is {new_id}")


def without_copies(sessions: list[Session], artifacts: dict[str, Artifact]) -> list[Session]:
    """Return the sessions without those that another format tells too: an agent may write down what it also prints."""
    copies = dict(copies_of(sessions)) if len(sessions) > 1 else {}
    for session in sessions:
        if id(session) in copies:
            artifact = artifacts[session.artifact_id]
            add_note(artifact, f"the same session as in {copies[id(session)].artifact_id}")
            saw_again(artifact)
    return [s for s in sessions if id(s) not in copies]


def copies_of(sessions: list[Session]) -> Iterator[tuple[int, Session]]:
    """Yield all but one of a session in several formats, each with that one: the agent's own file, else the fullest."""
    first_by_id: dict[str, Session] = {}
    for session in sorted(sessions, key=lambda s: (not is_own(s), -len(s.events), s.format)):
        first = first_by_id.setdefault(session.session_id, session)
        if session.session_id and first.format != session.format:
            yield id(session), first


REPEATED_FILE, REPEATED_RECORD = "repeated_file", "repeated_record"
"""Reasons, in the index, why a file leaves nothing of its own, or some records don't: another file has them too."""
_PREFIX = "prefix of "
OF_ANOTHER_NOTE = "another session has its id too: that one is "


def prefix_note(holder: Artifact) -> str:
    """Return the note of a file that another one begins with."""
    return f"{_PREFIX}{holder.artifact_id}"


def repeated(artifact: Artifact) -> dict[str, int]:
    """Count what is read elsewhere: the whole file, or some records."""
    n = artifact.record_kinds.get("repeated", 0)
    if (artifact.note or "").startswith(_PREFIX) or (n and n >= artifact.records - artifact.skipped):
        return {REPEATED_FILE: 1}
    return {REPEATED_RECORD: n} if n else {}


def checkpoints_of(
    told: list[Told], sessions: list[Session], artifacts: Mapping[str, Artifact]
) -> dict[str, list[Checkpoint]]:
    """Return a collector's records by session. Where several had one id, each file's go to the nearest."""
    found: dict[str, list[Checkpoint]] = {}
    rivals: dict[str, list[Session]] = {}
    for session in sessions:
        rivals.setdefault(name_of(session.session_id), []).append(session)
    for one in told:
        for session_id, rows in one.reading.checkpoints.items():
            near = rivals.get(session_id, [])
            by_id = {session_id: rows} if len(near) < 2 else _by_place(one, session_id, near, artifacts)
            for own_id, fresh in by_id.items():
                kept = found.setdefault(own_id, [])
                kept += [c for c in fresh if c not in kept]
    return found


def _by_place(
    told: Told, session_id: str, near: list[Session], artifacts: Mapping[str, Artifact]
) -> dict[str, list[Checkpoint]]:
    found: dict[str, list[Checkpoint]] = {}
    for source in told.inputs:
        aside = replace(source, artifact=read_before(source.artifact))
        rows = told.format.read([aside]).checkpoints.get(session_id)
        if rows:
            path = source.artifact.path
            held = ((s, artifacts[s.artifact_id].path) for s in near if s.artifact_id in artifacts)
            nearest = max(held, key=lambda pair: (_shared_path(path, pair[1]), pair[0].session_id == session_id))[0]
            found.setdefault(nearest.session_id, []).extend(rows)
    return found


def add_note(artifact: Artifact | None, note: str) -> None:
    """Add a sentence to an artifact's note."""
    if artifact is not None and note not in (artifact.note or ""):
        artifact.note = f"{artifact.note}; {note}" if artifact.note else note
