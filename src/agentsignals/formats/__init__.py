"""Formats: what the bytes of a file mean. A format recognises content and turns it into sessions.

It knows no source and no store. To add one: a module or folder with a `PROFILE` of the agent and a
`FORMAT = Format(...)`, and samples in `tests/formats/<name>/` (docs/adding/format.md). What no format knows is counted:
files of known agents that none reads, and fields that no file of a format had before. Beside the registry stands what
formats share: rows of SQLite databases, limits of a plan that logs state, and the command that resumes a session.
"""

import posixpath
import re
import shlex
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from fnmatch import translate
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args

import msgspec
from msgspec import Raw, Struct, field, structs, toml

from agentsignals.errors import AmbiguousFormat, UnknownFormat, UsageError
from agentsignals.formats.bounds import VERSION, valid_claim, validate
from agentsignals.formats.bounds import refuse as refuse
from agentsignals.formats.profile import Profile
from agentsignals.formats.records import HEAD_BYTES, UNREADABLE, Head, decoded
from agentsignals.formats.records import MAX_DOCUMENT_BYTES as MAX_DOCUMENT_BYTES
from agentsignals.formats.records import skip as skip
from agentsignals.model import Artifact, Attempt, Checkpoint, Session, Statement, columnar
from agentsignals.model.lazy import deferred_pattern
from agentsignals.model.registry import Registry, UnitPlace, no_such

Kind = Literal["run", "real", "fixture", "package", "documents"]
"""Best first. `run`: files that the agent's own published program wrote for us, against a scripted model, so that what
was sent is known. `real`: files of real sessions, recorded by people or published. `fixture`: files that another
project keeps for its tests, recorded or written by hand. `package`: the program's source was read, no file seen.
`documents`: only what others write about it."""


class Material(Struct, frozen=True):
    """Material that a format was developed from and tried on."""

    kind: Kind
    what: str
    """The files in a few words: how many, of what."""
    versions: tuple[str, ...] = ()
    """Versions of the agent that wrote them, as far as the files or the package say."""

    def __str__(self) -> str:
        return f"{self.what} ({', '.join(self.versions)})" if self.versions else self.what


class Fields(Struct, frozen=True, kw_only=True):
    """Fields of a harness's own record types (`Type.field`) that say what counts, as its package declares them."""

    package: str
    version: str
    """Version of the package that the lists were made from (`benchmarks/harness_fields.py`)."""
    read: tuple[str, ...] = ()
    not_read: dict[str, str] = {}
    """Consequence of each field that is not read."""


class Card(Struct, frozen=True, kw_only=True):
    """A format's fidelity: its material and its limits. The fields that it reads are in the table of docs/formats.md,
    made from its samples."""

    material: tuple[Material, ...]
    limits: tuple[str, ...] = ()
    """Facts that a reader of its figures has to know, a sentence each: values that are absent, files never seen."""
    fields: tuple[Fields, ...] = ()
    """Fields of the harness's record types, for formats of a harness that publishes these."""
    resume: str = ""
    """The agent's own command that goes on with a session, which it calls `ID`. Empty where it has none."""
    plan_limits: str = ""
    """Module whose `plan_limits` reads the limits of the person's plan from a log's end. Empty if logs state none."""

    @property
    def rests_on(self) -> Kind:
        """The best kind of its material."""
        return min((lot.kind for lot in self.material), key=get_args(Kind).index)


class Ask(Protocol):
    """Runs one SELECT on a database. Texts come as bytes, as they are stored."""

    tables: Mapping[str, Set[str]]
    """The tables of the file that the format names, and their columns."""
    without_rowid: Set[str]
    """Those that were declared so."""

    def __call__(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]: ...


class Held(Struct, frozen=True):
    """A session that a database holds."""

    session_id: bytes
    changed_ms: int
    """Time of its last written row, in milliseconds since 1970. 0 if no column says."""
    rows: int
    mark: int = 0
    """A number that changes with every written row, if times don't tell."""


class Database(Struct, frozen=True, kw_only=True):
    """The tables that hold sessions, and how the rows of one become the document that its format reads.

    Whatever else is in such a file, credentials among it, is never read: SQLite itself refuses every column that is not
    named here (`sqlite3_set_authorizer`).
    """

    columns: Mapping[str, tuple[str, ...]]
    """The columns that are read, by table. A file without one of these tables is no such database. One that lacks a
    column is of an unknown version."""
    some_have: Mapping[str, tuple[str, ...]] = {}
    """Tables, and further columns, that only some versions have."""
    sessions: Callable[[Ask], Iterator[Held]]
    document: Callable[[Ask, bytes], Iterator[bytes]]
    """Yields a session in pieces of the size of a row. None if the database no longer holds it."""


def plain(value: object) -> object:
    """Return a value of a row, with text decoded."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def rows_of(ask: Ask, table: str, columns: Sequence[str], rest: str, *values: object) -> Iterator[dict[str, object]]:
    """Yield rows by those columns that the table has. `rest` follows its name. No row if there is no such table."""
    there = [column for column in columns if column in ask.tables.get(table, ())]
    rows = rows_in_order(ask, table, there, rest, *values) if there else ()
    yield from (dict(zip(there, map(plain, row), strict=True)) for row in rows)


def rows_in_order(
    ask: Ask, table: str, columns: Sequence[str], rest: str, *values: object
) -> Iterator[tuple[Any, ...]]:
    """Yield rows in the order that `rest` asks for, each read by itself: SQLite would sort them with all their text."""
    if table in ask.without_rowid:
        yield from ask(f"SELECT {', '.join(columns)} FROM {table} {rest}", *values)  # noqa: S608
        return
    places = array("q", (place for (place,) in ask(f"SELECT rowid FROM {table} {rest}", *values)))  # noqa: S608
    for place in places:
        yield from list(ask(f"SELECT {', '.join(columns)} FROM {table} WHERE rowid = ?", place))  # noqa: S608


def whole_of(value: object) -> int:
    """Return a value of a row that is a whole number. 0 for anything else."""
    return value if isinstance(value, int) else 0


def listed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the items of a JSON list with commas between them."""
    comma = b""
    for piece in pieces:
        yield comma + piece
        comma = b","


def json_of(value: object) -> Raw | None:
    """Return a value of a row that is JSON. None for anything else, which a reader counts."""
    return Raw(value.encode()) if isinstance(value, str) and decoded(value, Any) is not None else None


ASKS, ANSWERS = "asks:", "answers:"
"""Prefixes of the two sides of one key. Files of one side alone have nothing in common."""


class Claim(Struct, kw_only=True):
    """A format's claim of a file. Files that share one of the `keys` are read together.

    A session id is a key, and so is anything that two copies of one history share (the first record id of a fork).
    """

    keys: list[str]
    by_folder: bool = False
    """It is read with the files of its folder: it has no session id, or names the session of a file without one."""
    root: str | None = None
    """The folder (a uri) of the eval trial that the file belongs to. Eval files of one root are read together."""
    gathers: bool = False
    """All sessions below `root`, in any format, belong to this trial."""
    lends: str | None = None
    """The folder (a uri) below which trials may need this file: a gold patch, a run's configuration."""
    predicts: bool = False
    """It holds what was handed in for the trials below `lends`: those to which no other such file lies nearer."""
    judges: str | None = None
    """The folder (a uri) below which trials may take their verdict from this file, which is read for itself too."""
    tells: list[str] = []
    """Names of the trial (`<run>/<task>`, `/<task>`) by which a file that `judges` knows it. They join no files."""
    everywhere: bool = False
    """Any trial of the source may need this file, wherever it is: the data set of its tasks."""
    companion: bool = False
    """It is read only in a trial's root or in the folder of a file that lends. Elsewhere it is no trace."""


class Input(Struct):
    """A file to read: its bytes (or a memory map), and the artifact that accounts for its records."""

    data: bytes
    artifact: Artifact
    session_hint: str | None = None
    """The session id in the path of the file, for formats that carry none of their own."""
    repo_hint: str | None = None
    named_trials: frozenset[str] | None = frozenset()
    """Names of all trials that have other files, if files of a run are read for themselves. None if they are lent: read
    for what they say about other trials."""
    trials_below: frozenset[str] = frozenset()
    """For a file that lends or judges: names of the trials below its folder; `/<task>` of a task's only trial."""
    judges: str = ""
    """For a file that judges: the folder whose trials it is about, its own or the one above."""

    @property
    def lent(self) -> bool:
        return self.named_trials is None

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.artifact.path)

    def states(self, text: str, fields: Iterable[str] = (), line: int = 1) -> list[Statement]:
        """Return what the file says of an attempt, as its list of statements. `fields` of the attempt rest on it."""
        return [Statement(text=text, artifact_id=self.artifact.artifact_id, line=line, fields=list(fields))]

    def session(self, session_id: str, format_name: str, agent: str) -> Session:
        """Begin a session of a person's work."""
        return Session(
            session_id=session_id,
            context="product",
            format=format_name,
            agent=agent,
            artifact_id=self.artifact.artifact_id,
            repo=self.repo_hint,
        )


class Reading(Struct):
    """The outcome of reading files together: sessions, and a collector's records by session id."""

    sessions: list[Session] = field(default_factory=list)
    checkpoints: dict[str, list[Checkpoint]] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    """Parts of facts about attempts. A session of an eval format comes with the part that names it."""
    keys: set[str] = field(default_factory=set)
    """Further keys, found only when the files were read. Files that share such a key are read again, together. Of keys
    that begin with `ASKS` and `ANSWERS` one of each must be there: two that ask share nothing."""


def of_own_reader(inputs: list[Input]) -> Reading:
    """Stand for the pieces of a format, else for the `read` of its own `reader.py`, which is loaded on use."""
    raise NotImplementedError


class Format(Struct, frozen=True, kw_only=True):
    """A trace format. `version` is the reader's. Raise it when its output changes: then stored rows are stale."""

    name: str
    version: int
    claims: Callable[[Head], Claim | None]
    read: Callable[[list[Input]], Reading] = of_own_reader
    """Reads files that belong together, and counts each record in its artifact."""
    pieces: Callable[[list[Input]], Iterator[Reading]] | None = None
    """Reads the same files session by session, if they stand one after the other. Files of many sessions may be larger
    than memory."""
    profile: Profile | None = None
    """The agent whose words its files are in, if they are one agent's."""
    forks: tuple[Profile, ...] = ()
    """Other agents with the same files. Only their name and their homes differ."""
    snapshots: bool = True
    """A file that another file begins with is an earlier snapshot and is not read. False for formats of small files (a
    reward of `1`), which say different things in different places."""
    unit: Callable[[str], str] | None = None
    """Returns the place of the session that a file at a path is part of: files of one place are one telling of it. None
    if each file tells a session by itself."""
    database: Database | tuple[Database, ...] | None = None
    """Databases this agent writes, by kind. Each session is read like a file of this format."""
    card: Card | None = None
    """Its material and its limits, where the format is of another package. Ours stand in `cards/<name>.toml`."""
    marks: tuple[bytes, ...] = ()
    """Bytes of which one is in the head of every file it claims. Files without any are not shown to `claims`. A format
    without marks is shown the files that no other claims."""
    of_json: bool | None = True
    """Its files begin as JSON does. Archives and plain text do not. None: some do."""
    is_last: bool = False
    """It is asked only about files that no other format claims: what it recognises may stand in the files of many."""
    weight: int = 1
    """Memory that a file takes, in multiples of its bytes. It is large if 50 bytes are a session."""

    def __post_init__(self) -> None:
        """Wrap the readers, so that values are validated. The rules of that are part of the version."""
        conventions = self.profile.conventions if self.profile is not None else ()
        read, pieces = self.read, self.pieces
        if read is of_own_reader and pieces is not None:
            read = lambda inputs: gathered(pieces(inputs))  # noqa: E731
        elif read is of_own_reader:
            read = read_by(f"{self.name.replace('-', '_')}.reader")

        def read_valid(inputs: list[Input]) -> Reading:
            with columnar.held(sum(len(source.data) for source in inputs)):
                return validate(read(inputs), inputs, conventions)

        structs.force_setattr(self, "read", read_valid)
        if pieces is not None:
            structs.force_setattr(
                self, "pieces", lambda inputs: (validate(piece, inputs, conventions) for piece in pieces(inputs))
            )
        structs.force_setattr(self, "version", self.version + VERSION)

    @property
    def databases(self) -> tuple[Database, ...]:
        of = self.database
        return of if isinstance(of, tuple) else () if of is None else (of,)

    @property
    def is_own(self) -> bool:
        """Its files are an agent's own: the format has the agent's name."""
        return self.profile is not None and self.profile.agent == self.name


def card_of(made: Format) -> Card | None:
    """Return a format's card: the one that it was declared with, else that of `cards/<name>.toml`."""
    place = Path(__file__).parent / "cards" / f"{made.name}.toml"
    return made.card or (toml.decode(place.read_bytes(), type=Card) if place.is_file() else None)


class PlanLimit(Struct, frozen=True, kw_only=True):
    """A limit of the person's plan, as a log stated it last."""

    used: float
    """Share that is used."""
    window_s: int
    """Length of its window in seconds. 0 if the log does not say."""
    resets_at: int | None
    """When the window ends, in seconds since 1970."""


def plan_limits(format_name: str, end: bytes) -> list[PlanLimit]:
    """Return the limits of the person's plan that the end of a log states; none for formats that log none."""
    named = format_named(format_name)
    card = card_of(named) if named is not None else None
    if card is None or not card.plan_limits:
        return []
    limits: list[PlanLimit] = import_module(f"agentsignals.formats.{card.plan_limits}").plan_limits(end)
    return limits


def resume_command(format_name: str, session_id: str, cwd: str | None = None) -> str:
    """Return the agent's own command that goes on with a session, in its folder; empty where it has none. It is safe in
    a shell, whatever the trace calls them."""
    named = format_named(format_name)
    card = card_of(named) if named is not None else None
    if card is None or not card.resume:
        return ""
    command = " ".join(shlex.quote(session_id) if word == "ID" else word for word in card.resume.split())
    return f"cd {shlex.quote(cwd)} && {command}" if cwd else command


def resumed(context: str, format_name: str, session_id: str, cwd: str | None, parent: str | None) -> str:
    """Return the agent's command that goes on with a person's session; a subagent's can't be gone on with."""
    return resume_command(format_name, session_id, cwd) if context == "product" and parent is None else ""


def read_by(module: str, function: str = "read") -> Callable[[list[Input]], Reading]:
    """Return the reader in a module of this package. It is loaded with the first file of its format."""

    def read(inputs: list[Input]) -> Reading:
        reading: Reading = getattr(import_module(f"agentsignals.formats.{module}"), function)(inputs)
        return reading

    return read


def pieces_by(module: str) -> Callable[[list[Input]], Iterator[Reading]]:
    """Return the `pieces` of a module of this package. It is loaded with the first file of its format."""

    def pieces(inputs: list[Input]) -> Iterator[Reading]:
        yield from import_module(f"agentsignals.formats.{module}").pieces(inputs)

    return pieces


def session_folder(*inside: str) -> Callable[[str], str]:
    """Return a function from a file to its session's folder: the one above a folder of these names, else its own."""
    parted = re.compile(f"/(?:{'|'.join(inside)})/") if inside else None

    def folder_of(path: str) -> str:
        found = parted.search(path) if parted is not None else None
        return path[: found.start()] if found is not None else posixpath.dirname(path)

    return folder_of


def in_path(pattern: str) -> Callable[[str], str | None]:
    """Return a function from a path to what the pattern's group finds in it: the session that it names, or None."""
    search = re.compile(pattern).search
    return lambda path: found[1] if (found := search(path)) is not None else None


def gathered(pieces: Iterator[Reading]) -> Reading:
    """Unite pieces, with sessions in order of id."""
    whole = Reading()
    for piece in pieces:
        whole.sessions += piece.sessions
        whole.attempts += piece.attempts
    whole.sessions.sort(key=lambda s: s.session_id)
    return whole


FORMATS = Registry[Format]("format", "agentsignals.formats", "FORMAT", lambda unit: isinstance(unit, Format))


@cache
def formats() -> dict[str, Format]:
    """Return every format by name."""
    return {f.name: f for f in FORMATS.all().values()}


def profiles() -> list[Profile]:
    """Return the profile of every agent whose own files are read."""
    return [p for f in formats().values() if f.is_own for p in (f.profile, *f.forks) if p is not None]


def profile_of(agent: str) -> Profile | None:
    """Return the profile of an agent by any spelling of its name or of another name that it has."""
    name = _spelled(agent)
    return next((p for p in profiles() if name in map(_spelled, (p.agent, *p.aliases))), None)


@cache
def maker_of(agent: str, format_name: str) -> str | None:
    """Return the maker of the models whose prices an agent knows, by any spelling of its name; None for one that has
    prices of many. `format_name` of its session: most agents have a format of their own, and no other is loaded then.
    """
    name, own = _spelled(agent), format_named(format_name)
    held = [p for p in (own.profile, *own.forks) if p is not None] if own is not None and own.is_own else []
    if not any(name == _spelled(p.agent) for p in held):
        held = profiles()
    for profile in held:
        if profile.maker and any(
            name == n or name.startswith(f"{n}-") for n in map(_spelled, (profile.agent, *profile.aliases))
        ):
            return profile.maker
    return None


def _spelled(agent: str) -> str:
    return re.sub(r"[\s_]+", "-", agent.strip().lower())


def homes() -> dict[str, tuple[str, ...]]:
    """Return the folders in which each agent keeps its sessions, by name. Some may not exist on this machine."""
    places: dict[str, tuple[str, ...]] = {}
    for profile in sorted(profiles(), key=lambda p: p.agent):
        if profile.homes:
            places[profile.agent] = places.get(profile.agent, ()) + profile.homes
    return places


_SHARED = frozenset((
    ".local", "share", ".config", "Library", "Application Support", "AppData", "Roaming", "Local", ".cache", "state",
))  # fmt: skip
"""Folders of a home folder in which each program has its own."""


@cache
def _own_folders() -> dict[str, list[re.Pattern[str]]]:
    """Return the folder that each program keeps everything in, with patterns of what holds sessions below it."""
    folders: dict[str, list[re.Pattern[str]]] = {}
    for place in (place for places in homes().values() for place in places if place.startswith("~/")):
        parts = place.partition(".json:")[0][2:].split("/")
        depth = next((n for n, part in enumerate(parts, 1) if part not in _SHARED), 0)
        if "*" not in "/".join(parts[:depth]):
            inside = "/".join(parts[depth:]).replace("*", "\0")
            pattern = re.compile(re.escape(inside).replace("\0", "[^/]*") + r"(?:/|\Z)" if inside else "")
            folders.setdefault("/".join(parts[:depth]), []).append(pattern)
    return folders


@cache
def _state_inside() -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for profile in profiles() for pattern in profile.state) or r"(?!)")


def is_state(path: str, is_empty: bool = False) -> bool:
    """Return whether a file that no format claims is an agent's own state: it lies in the agent's folder, wherever that
    was copied to, and not where the agent keeps sessions, or is none of those there, or is empty: a lock, a mark."""
    if "/." not in path and "/Library/" not in path and "/AppData/" not in path:
        return False
    for folder, holds_sessions in _own_folders().items():
        _, found, inside = path.rpartition(f"/{folder}/")
        is_among_sessions = any(p.match(inside) for p in holds_sessions)
        if found and (is_empty or not is_among_sessions or _state_inside().match(inside)):
            return True
    return False


def format_named(name: str) -> Format | None:
    """Return the format of that name, or None. No other format is loaded if its module has its name."""
    try:
        return FORMATS.get(name)
    except UsageError:
        return formats().get(name)


def by_name(name: str) -> Format:
    """Return the format of that name. FormatError lists the formats."""
    if (named := format_named(name)) is None:
        raise UnknownFormat(*no_such("format", name, formats()))
    return named


class Marks(NamedTuple):
    """The literals of a format's declaration, known before its module is loaded."""

    place: UnitPlace
    version: int
    of_json: bool | None
    marks: tuple[bytes, ...]


_LITERAL = r"""(?:b"[^"\\]*"|b'[^'\\]*')"""
_VERSION, _OF_JSON = re.compile(r"\bversion=(\d+)[,)]"), re.compile(r"\bof_json=(\w+)[,)]")
_MARKS = deferred_pattern(rf"\bmarks=\(((?:\s*{_LITERAL},?)*)\s*\)")


@cache
def marks() -> tuple[Marks, ...]:
    """Return the declared marks of each format, in order of name. Formats whose declarations hold no literals, and
    those of other packages, are loaded."""
    declared = []
    for place in FORMATS.places.values():
        source = place.declaration
        version, of_json, listed = _VERSION.search(source), _OF_JSON.search(source), _MARKS.search(source)
        is_literal = version is not None and (listed is not None or "marks=" not in source)
        json = _JSON.get(of_json[1] if of_json is not None else "True", ...)
        if version is not None and is_literal and json is not ...:
            found = tuple(literal[2:-1].encode() for literal in re.findall(_LITERAL, listed[1] if listed else ""))
            declared.append(Marks(place, int(version[1]) + VERSION, json, found))
        elif (unit := FORMATS.load(place)) is not None:
            declared.append(Marks(place, unit.version, unit.of_json, unit.marks))
    return tuple(declared)


_STRING = re.compile(rb'"[^"]+"')
"""A mark that is a whole string of JSON."""
_JSON: dict[str, bool | None] = {"True": True, "False": False, "None": None}


def version_of_all() -> int:
    """Return a number that changes with each format that is added or read in a new way."""
    return (sum(declared.version for declared in marks()) + UNREAD_VERSION) * 100 + len(marks())


class Searched(NamedTuple):
    """The marks of formats as they are looked for."""

    possible: tuple[Marks, ...]
    strings: frozenset[bytes]
    """Whole strings of JSON, without their quotes."""
    others: list[tuple[re.Pattern[bytes], list[bytes]]]
    """Other marks by their first byte, each with a pattern that finds one of them, since a byte is found fast."""


@cache
def searched(is_json: bool) -> Searched:
    """Return the marks of the formats whose files look like JSON, or do not."""
    possible = tuple(declared for declared in marks() if declared.of_json in (None, is_json))
    every = frozenset(mark for declared in possible for mark in declared.marks)
    strings = frozenset(filter(_STRING.fullmatch, every))
    begins: dict[bytes, list[bytes]] = {}
    for mark in sorted(every - strings):
        begins.setdefault(mark[:1], []).append(mark)
    others = [(re.compile(b"|".join(map(re.escape, those))), those) for those in begins.values()]
    return Searched(possible, frozenset(string[1:-1] for string in strings), others)


def identify(head: Head, last: bool = True) -> tuple[Format, Claim] | None:
    """Return the format that claims a file, and its claim. Two claimants are an error that names both. Only formats
    whose marks the file has are loaded; those without marks are asked where none of these claims it. Those that are
    asked last are left out without `last`."""
    data, (possible, strings, others) = head.data, searched(head.looks_like_json)
    # At once: a search for each took as long as all else.
    present = {b'"%b"' % string for string in strings.intersection(data.split(b'"'))}
    for pattern, those in others:
        if len(those) == 1 or pattern.search(data):
            present.update(mark for mark in those if mark in data)
    marked: list[UnitPlace] = []
    unmarked: list[UnitPlace] = []
    for declared in possible:
        if not declared.marks:
            unmarked.append(declared.place)
        elif not present.isdisjoint(declared.marks):
            marked.append(declared.place)
    claimed: list[tuple[Format, Claim]] = []
    for places, is_last in ((marked, False), (unmarked, False), (marked + unmarked, True)):
        candidates = (unit for place in places if (unit := FORMATS.load(place)) is not None)
        for candidate in candidates if not claimed and (last or not is_last) else ():
            if candidate.is_last is is_last and (claim := candidate.claims(head)) is not None:
                claimed.append((candidate, valid_claim(claim)))
    if len(claimed) > 1:
        names = " and ".join(f.name for f, _ in claimed)
        raise AmbiguousFormat(f"Several log formats fit {head.path}: {names}.", "Name the right one with --format.")
    return claimed[0] if claimed else None


OUTCOME_TABLE = "outcome-table"
"""The format of tables that hold outcomes alone."""


def begins_transcript(data: bytes, path: str) -> bool:
    """Return whether a file that begins so holds sessions, and not outcomes or other facts of trials alone."""
    try:
        found = identify(Head(data, path, len(data) < HEAD_BYTES))
    except AmbiguousFormat:
        return True
    if found is None or found[0].name == OUTCOME_TABLE:
        return False
    claim = found[1]
    return not (claim.lends or claim.everywhere or claim.companion)


def claimed_by(candidate: Format, head: Head) -> Claim | None:
    """Return a format's claim of a file. None if it is not its own."""
    is_possible = candidate.of_json in (None, head.looks_like_json) and (
        not candidate.marks or any(mark in head.data for mark in candidate.marks)
    )
    claim = candidate.claims(head) if is_possible else None
    return None if claim is None else valid_claim(claim)


UNREAD_VERSION = 6
"""Raise it when other files are recognised: then unclaimed files are looked at again."""
Reason = Literal["agent_not_read", "not_sessions", "other_export"]


class UnreadFile(Struct, frozen=True):
    """Known files that are not read, as `unread.toml` lists them."""

    name: str
    what: str
    reason: Reason
    looks: str = ""
    """Recognises one of its files by content. Empty if they are known only by their place or tables."""
    of_json: bool = True
    """The files begin as JSON does."""
    tables: frozenset[str] = frozenset()
    homes: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """The text of an artifact's note."""
        return f"{self.name}: {self.what}"


@cache
def unread_files() -> tuple[UnreadFile, ...]:
    """Return all known files that are not read."""
    listed = msgspec.toml.decode((Path(__file__).parent / "unread.toml").read_bytes())
    rows = [{**row, "reason": reason} for reason, files in listed.items() for row in files]
    return msgspec.convert(rows, tuple[UnreadFile, ...])


def unread_file(head: Head) -> UnreadFile | None:
    """Return the known kind of a file that no format claims, or None."""
    is_json = head.looks_like_json
    return next((s for s in unread_files() if s.looks and s.of_json == is_json and _LOOKS[s.looks](head)), None)


def unread_homes() -> dict[str, tuple[str, ...]]:
    """Return folders of agents whose sessions are not read."""
    return {s.name: s.homes for s in unread_files() if s.homes}


MOST_KEYS = 6
_KEY = deferred_pattern(r"[A-Za-z_$][A-Za-z_-]{0,23}\Z")
"""Names of fields that may be shown: no id, path, address or word of a person."""


def first_fields(head: Head) -> str:
    """Describe a JSON file by the names of its first fields, so that a person may recognise it."""
    record = head.items[0] if head.items else head.document
    keys = [key for key in record if _KEY.match(key)]
    if not keys:
        return ""
    more = ", …" if len(record) > min(len(keys), MOST_KEYS) else ""
    return f"{'a list of ' if head.items else ''}JSON with {', '.join(keys[:MOST_KEYS])}{more}"


def _has(record: dict[str, Any], **types: type) -> bool:
    return all(isinstance(record.get(name), of) for name, of in types.items())


def _first_item(head: Head) -> dict[str, Any]:
    return head.items[0] if head.items else {}


def _agent_trace(head: Head) -> bool:
    return _has(head.document, version=str, id=str, timestamp=str, files=list) and any(
        isinstance(file, dict) and _has(file, path=str, conversations=list) for file in head.document["files"]
    )


def _chat_messages(head: Head) -> bool:
    """A conversation a line, as models are trained on."""
    messages = head.document.get("messages")
    if len(head.document) > 3 or not isinstance(messages, list) or not messages:
        return False
    return all(isinstance(m, dict) and _has(m, role=str) and "content" in m for m in messages)


def _saved_data_set(head: Head) -> bool:
    """The files that `datasets` writes beside the tables of a data set on disk."""
    keys = head.document.keys()
    return (
        {"_data_files", "_fingerprint"} <= keys
        or {"features", "citation", "license"} <= keys
        or (keys == {"splits"} and isinstance(head.document["splits"], list))
    )


_SENT_BY_GROK = frozenset(("system", "user", "assistant", "reasoning", "tool_result", "backend_tool_call"))
_OF_VIBE = frozenset(
    ("store_format", "last_finished_turn_id", "recovery_journal_segment", "runtime_state_version", "core_plugins")
)
"""The state that its runtime needs to resume a session. The messages that it sends its model are a list."""
_OF_LAB: tuple[dict[str, type], ...] = (
    {"experiment": str, "settings": dict},
    {"evaluator": str, "sandbox": str, "texts": str},
    {"condition": str, "task": str, "sample": int},
    {"condition": str, "verdict": str, "n": int},
    {"says": str, "hidden": list},
)
"""Fields of a lab run's settings, manifest, tables and tasks."""

_LOOKS: dict[str, Callable[[Head], bool]] = {
    "specstory": lambda head: head.text.lstrip().startswith("<!-- Generated by SpecStory"),
    "dsh": lambda head: any(r.get("type") == "session" and "delegationDepth" in r for r in head.records),
    "git_ai": lambda head: b'"authorship/' in head.data and b"\n---\n" in head.data,
    "agent_trace": _agent_trace,
    "mle_bench": lambda head: _has(head.document, competition_reports=list),
    "mle_star": lambda head: _has(head.document, task_type=str, agent_model=str, workspace_dir=str),
    "typed_in_claude": lambda head: _has(head.document, display=str, pastedContents=dict),
    "typed_in_codex": lambda head: head.document.keys() == {"session_id", "ts", "text"},
    "sent_by_grok": lambda head: (
        any("synthetic_reason" in r or "prompt_index" in r for r in head.records)
        and all(str(r.get("type")) in _SENT_BY_GROK for r in head.records)
    ),
    "cursor_chat": lambda head: _has(head.document, createdAtMs=int, hasConversation=bool),
    "vibe_state": lambda head: (
        bool(_OF_VIBE & head.document.keys())
        or any(
            names <= _first_item(head).keys() for names in ({"turn_index", "message"}, {"agent_types", "tool_groups"})
        )
    ),
    "of_lab": lambda head: any(_has(head.document, **fields) for fields in _OF_LAB),
    "chatgpt": lambda head: _has(_first_item(head), mapping=dict, current_node=str),
    "claude_ai": lambda head: _has(_first_item(head), uuid=str, chat_messages=list),
    "chat_messages": _chat_messages,
    "saved_data_set": _saved_data_set,
}


# -- fields that no file of a format had before: an agent has changed what it writes (design/formats.md#unknown-fields)
# A format may have a vocabulary, `fields/<format>.txt`, made by `python -m tests.vocabulary` from files that were read.
# A few records of each file are compared with it.

Vocabulary = dict[str, Any]
"""The fields at a path, each with its own. None for an object whose keys are data, as arguments are."""
FEWEST_RECORDS, MOST_RECORDS, RECORD_BYTES = 3, 8, 32 * 1024
"""Number of records of JSON Lines that are checked: one more for every `RECORD_BYTES`. Longer ones are not checked."""
DOCUMENT_BYTES = 16 * 1024
"""A longer document is checked at random by its digest: the longer, the less often."""
MOST_FIELDS, MOST_DEPTH, MOST_ITEMS, LONGEST_CHARS = 8, 8, 4, 100
"""Limits: names kept of a file, depth, items of a list, characters of a name."""
IS_FIELD = deferred_pattern(r"(?!.*[0-9]{4})[A-Za-z_$][A-Za-z0-9_$-]{0,39}\Z")
"""Names of fields. Other keys are data (paths, ids, words)."""
_LEFT_OUT, NOT_READ = "*", "~"


def unknown_fields(name: str, data: bytes, sha256: str) -> list[str]:
    """Return fields of a file that no file of that format had before, sorted; `a.b` is a field inside of `a`.

    A sample of the records is checked, always the same one for the same file.
    """
    words = vocabulary(name)
    if words is None:
        return []
    met: set[str] = set()
    for record in examined_records(data, sha256):
        walk_fields(record, words, "", met, MOST_DEPTH)
        if len(met) >= MOST_FIELDS:
            break
    return sorted(name[:LONGEST_CHARS] for name in met)[:MOST_FIELDS]


@cache
def vocabulary(name: str) -> Vocabulary | None:
    """Return the known fields of a format. None if there is no list."""
    try:
        text = (Path(__file__).parent / "fields" / f"{name}.txt").read_text(encoding="utf-8")
    except OSError:
        return None
    return parsed_fields(text)


def parsed_fields(text: str) -> Vocabulary:
    """Parse a vocabulary: a line a path, with its fields; `*` if the keys are data. `~` marks a field that is known and
    not read, or in no sample."""
    root: Vocabulary = {}
    for line in text.splitlines():
        place, _, names = line.partition(": ")
        *above, last = ["", *place.split(".")] if place != "." else [""]
        node: Any = {"": root}
        for step in above:
            node = node[step]
        if names == _LEFT_OUT:
            node[last] = None
        else:
            node[last].update({name.rstrip(NOT_READ): {} for name in names.split()})
    return root


def walk_fields(value: Any, words: Vocabulary, place: str, met: set[str], depth: int) -> None:
    """Add the fields of a value that are not in the vocabulary to `met`."""
    if type(value) is list:
        for item in (*value[: MOST_ITEMS - 1], *value[MOST_ITEMS - 1 :][-1:]):
            walk_fields(item, words, place, met, depth)
    elif type(value) is dict and depth:
        for name, inner in value.items():
            below = words.get(name, _LEFT_OUT)
            if below is _LEFT_OUT:
                if IS_FIELD.match(name):
                    met.add(f"{place}.{name}" if place else name)
            elif below is not None and type(inner) in _OBJECTS:
                walk_fields(inner, below, f"{place}.{name}" if place else name, met, depth - 1)


_OBJECTS = (dict, list)
_decode = msgspec.json.Decoder().decode


def examined_records(data: bytes, sha256: str) -> Iterator[Any]:
    """Yield some records of JSON Lines, spread over the file, or a document. Unreadable ones are left to the reader."""
    size = len(data)
    n = min(MOST_RECORDS, FEWEST_RECORDS + size // RECORD_BYTES)
    is_lines = False
    for i in range(n):
        start = data.find(b"\n", i * size // n - 1) + 1 if i else 0
        stop = data.find(b"\n", start, start + RECORD_BYTES)
        if (i and not start) or (stop < 0 and size - start > RECORD_BYTES):
            continue
        try:
            yield _decode(memoryview(data)[start : stop if stop >= 0 else size])
        except UNREADABLE:
            if not i:
                break
        else:
            is_lines = True
    if is_lines or not sha256 or int(sha256[:8], 16) % (1 + size // DOCUMENT_BYTES):
        return
    try:
        yield _decode(data)
    except UNREADABLE:
        return
