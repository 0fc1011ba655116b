"""What a format was made from: without it nobody can tell what was proved from what was believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from importlib import import_module
from typing import Any, Literal, Protocol, get_args

from msgspec import Struct, field, structs

from agentsignals.errors import AmbiguousFormat, FormatError, UsageError
from agentsignals.formats.bounds import VERSION, make_sound, sound_claim
from agentsignals.formats.bounds import refuse as refuse
from agentsignals.formats.head import Head
from agentsignals.formats.profile import Profile
from agentsignals.formats.records import MAX_DOCUMENT_BYTES as MAX_DOCUMENT_BYTES
from agentsignals.formats.records import skip as skip
from agentsignals.formats.unknown import LOOKED_BY as LOOKED_BY
from agentsignals.formats.unknown import database_of as database_of
from agentsignals.formats.unknown import first_fields as first_fields
from agentsignals.formats.unknown import stranger as stranger
from agentsignals.formats.unknown import unknown_fields as unknown_fields
from agentsignals.formats.unknown import unread_homes as unread_homes
from agentsignals.model import Artifact, Attempt, Checkpoint, Session
from agentsignals.model.registry import Registry

Kind = Literal["run", "real", "fixture", "package", "documents"]
"""Best first. `run`: files that the agent's own published program wrote for us, against a scripted model, so that what
was sent is known. `real`: files of real sessions, recorded by people or published. `fixture`: files that another
project keeps for its tests, recorded or written by hand. `package`: the program's source was read, no file seen.
`documents`: only what others write about it."""


class Material(Struct, frozen=True):
    """One lot of material that a format was read from and tried on."""

    kind: Kind
    what: str
    """Which files, in a few words: how many, of what."""
    versions: tuple[str, ...] = ()
    """The agent's versions that wrote them, as the files or the package say; none where nothing says."""

    def __str__(self) -> str:
        return f"{self.what} ({', '.join(self.versions)})" if self.versions else self.what


class Card(Struct, frozen=True, kw_only=True):
    """A format's fidelity: what it rests on and what it can't say. What it does say is read off its samples, in the
    table of docs/formats.md, and stands nowhere else."""

    material: tuple[Material, ...]
    limits: tuple[str, ...] = ()
    """What a reader of its figures has to know, a sentence each: what is absent, and why; what was never seen."""

    @property
    def rests_on(self) -> Kind:
        """The best of its material."""
        return min((lot.kind for lot in self.material), key=get_args(Kind).index)


# What a format says of the SQLite databases in which an agent keeps its sessions; `sources.databases` opens them.


class Ask(Protocol):
    """Puts one SELECT to a database. Texts come as bytes, as they lie there."""

    tables: Mapping[str, Set[str]]
    """Of the tables that the format names, those that the file has, and their columns."""

    def __call__(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]: ...


class Held(Struct, frozen=True):
    """A session that a database holds."""

    session_id: bytes
    changed_ms: int
    """When the last of its rows was written, in milliseconds since 1970; 0 where no column says."""
    rows: int
    mark: int = 0
    """A number that is another whenever a row of it was written, where times don't tell."""


class Database(Struct, frozen=True, kw_only=True):
    """The tables that hold sessions, and how the rows of one become the document that its format reads.

    Whatever else is in such a file, credentials among it, is never read: SQLite itself refuses every column that is not
    named here (`sqlite3_set_authorizer`).
    """

    columns: Mapping[str, tuple[str, ...]]
    """The columns that are read, by table. A file without one of these tables is not such a database; one that has the
    tables and lacks a column is of a version that is not known."""
    some_have: Mapping[str, tuple[str, ...]] = {}
    """The same of tables that only some versions have, and of further columns of these."""
    sessions: Callable[[Ask], Iterator[Held]]
    document: Callable[[Ask, bytes], Iterator[bytes]]
    """A session in pieces, each of the size of a row; none where the database does not hold it any more."""
    newer: str = ""
    """The table in which a newer version keeps what stands in these: rows in it, and none here, are told."""


def plain(value: object) -> object:
    """A value of a row: texts come as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


# What bytes mean. A format knows no source and no store: it recognises content and turns it into sessions.
#
# To add one: a module or folder with a `PROFILE` of the agent and a `FORMAT = Format(...)`, and samples in
# `tests/formats/<name>/` (docs/adding.md).

ASKS, ANSWERS = "asks:", "answers:"
"""Begin the two sides of one key, where files of one side alone have nothing in common."""


class Claim(Struct, kw_only=True):
    """A format recognises a file. `keys` name what it belongs to: files that share a key are read together.

    A session id is a key; so is anything two copies of one history have in common (the first record id of a fork).
    """

    keys: list[str]
    beside: bool = False
    """It carries no session id, or names the session of a file that doesn't: it belongs with its folder's files."""
    root: str | None = None
    """The folder of the eval trial that the file belongs to (a uri): eval files of one root are read together."""
    gathers: bool = False
    """Whatever sessions lie anywhere below `root` are this trial's, in any format."""
    lends: str | None = None
    """The folder (a uri) below which any trial may need what this file says: a gold patch, a run's configuration."""
    everywhere: bool = False
    """Any trial of the source may need what this file says, wherever it lies: the data set of its tasks."""
    companion: bool = False
    """It means nothing by itself: read where a trial's root or a lender's folder holds it, else it is no trace."""


class Input(Struct):
    """A file handed to a format: its bytes (or a memory map), and the artifact that accounts for its records."""

    data: bytes
    artifact: Artifact
    session_hint: str | None = None
    """The session id that the place of the file names, for formats that carry none of their own."""
    repo_hint: str | None = None
    named_trials: frozenset[str] | None = frozenset()
    """Where files of a run are read for themselves: what all trials go by that have other files. None where they are
    lent, read for what they say of the trials beside them."""

    @property
    def lent(self) -> bool:
        return self.named_trials is None

    def session(self, session_id: str, format_name: str, agent: str) -> Session:
        """A session of a person's work that this file begins."""
        return Session(
            session_id=session_id,
            context="product",
            format=format_name,
            agent=agent,
            artifact_id=self.artifact.artifact_id,
            repo=self.repo_hint,
        )


class Reading(Struct):
    """What a family of files says: sessions, and what a collector recorded about sessions by id."""

    sessions: list[Session] = field(default_factory=list)
    checkpoints: dict[str, list[Checkpoint]] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    """Parts of what is known about attempts. A session of an eval format comes with the part that names it."""
    keys: set[str] = field(default_factory=set)
    """What else these files belong to, seen only when they were read whole: files that share such a key are read again,
    together. Of keys that begin with `ASKS` and `ANSWERS` one of each must be there: two that ask share nothing."""


class Format(Struct, frozen=True, kw_only=True):
    """A trace format. `version` is the parser's: raise it when its output changes, and its rows become stale."""

    name: str
    version: int
    claims: Callable[[Head], Claim | None]
    read: Callable[[list[Input]], Reading]
    """Reads all files of one family in this format together; counts each record in its artifact."""
    pieces: Callable[[list[Input]], Iterator[Reading]] | None = None
    """The same piece by piece, where sessions stand one after the other: none is held until the last is read, and each
    comes with all that is said of it. Files of many sessions are larger than memory."""
    profile: Profile | None = None
    """What is known of the agent whose words its files are in, where they are one agent's."""
    forks: tuple[Profile, ...] = ()
    """Other agents that keep the same files elsewhere: what differs of them is their name and their homes."""
    snapshots: bool = True
    """A file that another one begins with is an earlier snapshot of it and is not read. Not so where files are small
    (a reward of `1`) and say different things in different places."""
    database: Database | tuple[Database, ...] | None = None
    """Of an agent that keeps its sessions in SQLite databases, by kind: each comes as a file of this format."""
    card: Card | None = None
    """What it rests on, and what it can't say."""
    marks: tuple[bytes, ...] = ()
    """Bytes of which one is in the head of every file it claims. Files without any are not shown to `claims`."""
    of_json: bool | None = True
    """Its files begin as JSON does; the others (archives, plain text) are asked about what does not. None: of both."""
    weight: int = 1
    """How many times its bytes a file becomes in memory, where that is far more: a row of 50 bytes, a session."""

    def __post_init__(self) -> None:
        """Whoever reads by a format reads soundly; the rules of that are part of its version."""
        conventions = self.profile.conventions if self.profile is not None else ()
        read, pieces = self.read, self.pieces
        structs.force_setattr(self, "read", lambda inputs: make_sound(read(inputs), inputs, conventions))
        if pieces is not None:
            structs.force_setattr(
                self, "pieces", lambda inputs: (make_sound(piece, inputs, conventions) for piece in pieces(inputs))
            )
        structs.force_setattr(self, "version", self.version + VERSION)

    @property
    def databases(self) -> tuple[Database, ...]:
        of = self.database
        return of if isinstance(of, tuple) else () if of is None else (of,)

    @property
    def is_own(self) -> bool:
        """Whether its files are those an agent writes for itself: the format is called as the agent is."""
        return self.profile is not None and self.profile.agent == self.name


def read_by(module: str) -> Callable[[list[Input]], Reading]:
    """`read` of a module of this package that is loaded when the first file of its format is read."""

    def read(inputs: list[Input]) -> Reading:
        reading: Reading = import_module(f"agentsignals.formats.{module}").read(inputs)
        return reading

    return read


def pieces_by(module: str) -> Callable[[list[Input]], Iterator[Reading]]:
    """`pieces` of a module of this package, the same way."""

    def pieces(inputs: list[Input]) -> Iterator[Reading]:
        yield from import_module(f"agentsignals.formats.{module}").pieces(inputs)

    return pieces


def gathered(pieces: Iterator[Reading]) -> Reading:
    """All pieces together, sessions in order of id."""
    whole = Reading()
    for piece in pieces:
        whole.sessions += piece.sessions
        whole.attempts += piece.attempts
    whole.sessions.sort(key=lambda s: s.session_id)
    return whole


FORMATS = Registry[Format]("format", "agentsignals.formats", "FORMAT", lambda unit: isinstance(unit, Format))


@cache
def formats() -> dict[str, Format]:
    """Every format by name."""
    return {f.name: f for f in FORMATS.all().values()}


def profiles() -> list[Profile]:
    """Of every agent whose own files are read here."""
    return [p for f in formats().values() if f.is_own for p in (f.profile, *f.forks) if p is not None]


def homes() -> dict[str, tuple[str, ...]]:
    """Where each agent keeps its sessions, by its name in order; folders that are not there may be among them."""
    places: dict[str, tuple[str, ...]] = {}
    for profile in sorted(profiles(), key=lambda p: p.agent):
        if profile.homes:
            places[profile.agent] = places.get(profile.agent, ()) + profile.homes
    return places


def format_named(name: str) -> Format | None:
    """The format of that name; None of one that is no more. Loads no other, where its module bears its name."""
    try:
        return FORMATS.get(name)
    except UsageError:
        return formats().get(name)


def by_name(name: str) -> Format:
    """The format of that name. FormatError names the ones there are."""
    if (named := format_named(name)) is None:
        raise FormatError(f"There is no format {name!r}.", f"The formats are: {', '.join(sorted(formats()))}.")
    return named


def identify(head: Head) -> tuple[Format, Claim] | None:
    """The one format that claims a file, None when none does. Two claimants are an error that names both."""
    asked = ((candidate, claimed_by(candidate, head)) for candidate in formats().values())
    claimed = [(candidate, claim) for candidate, claim in asked if claim is not None]
    if len(claimed) > 1:
        names = " and ".join(f.name for f, _ in claimed)
        raise AmbiguousFormat(f"{head.path} is claimed by {names}.", "Name the right one with --format.")
    return claimed[0] if claimed else None


def claimed_by(candidate: Format, head: Head) -> Claim | None:
    """What a format says of a file; None where it is not its own."""
    is_possible = candidate.of_json in (None, head.looks_like_json) and (
        not candidate.marks or any(mark in head.data for mark in candidate.marks)
    )
    claim = candidate.claims(head) if is_possible else None
    return None if claim is None else sound_claim(claim)


def made_up(parts: Sequence[Sequence[str]]) -> Session:
    """A session of these parts, of no agent: `person`, `agent`, `thinking` (a text), `interrupt`, `edit`, `read` (a
    path), `shell`, `poll` (a command or its id, output, seconds until it came), `pause` (seconds)."""
    from agentsignals.formats.builder import session_of  # noqa: PLC0415  (reading traces needs none)

    return session_of(parts)
