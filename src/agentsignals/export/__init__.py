"""Sessions out of the store again, in formats that others read.

To add one: a module with a `WRITER` and a line in `_MODULES` (a `Writer`: a file a session) or in `_WHOLE` (a
`WholeWriter`: everything chosen, at once). A writer says what its format can't carry; `export` prints that list, and
reading back what was written gives the rest unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from agentsignals.errors import ExportError
from agentsignals.export.last_look import last_look
from agentsignals.model import Session
from agentsignals.redaction import Redactor
from agentsignals.store import artifact_id

if TYPE_CHECKING:
    from agentsignals.store import Store

_MODULES = ("atif", "opentraces", "sts")
_WHOLE = {"parquet": "parquet", "hub": "hub", "baseline": "baseline"}
"""Name of a format that is written at once to its module, imported on use."""


class Writer(Struct, frozen=True):
    """A format to write. `text` gives a session's file; `loses` is what such a file can't say."""

    name: str
    describes: str
    suffix: str
    text: Callable[[Session], str]
    loses: tuple[str, ...]


class Choice(Struct, frozen=True):
    """What was asked for beside the format."""

    redactor: Redactor | None = None
    """Masks every text that is written; None leaves them as they are."""
    licence: str | None = None
    """The identifier under which the data may be used; None when nobody said."""
    title: str | None = None
    transcripts: Literal["sts", "found", "none"] = "sts"
    """Conversations in one format; the files as they were found; or none."""
    tick: Callable[[str, int, int | None], None] = lambda stage, done, total: None


class WholeWriter(Struct, frozen=True):
    """A format whose files hold all sessions together. `put` gets the store, the ids chosen, and where to write."""

    name: str
    describes: str
    put: Callable[[Store, list[str], Path, Choice], Exported]
    redacts: bool = False
    """Texts are masked unless somebody says otherwise: it is made to be given away."""
    loses: tuple[str, ...] = ()

    def write(self, store: Store, ids: list[str], path: Path, choice: Choice) -> Exported:
        """Writes these sessions. What was masked is looked through again: ExportError, and nothing stays, where it
        holds a secret; ExportError, too, when it can't be written.
        """
        done = self.put(store, ids, path, choice)
        if choice.redactor is not None:
            last_look(path, choice.redactor)
        return done


class Exported(Struct, kw_only=True):
    """What was written."""

    format: str
    folder: str
    files: int = 0
    sessions: int = 0
    without_transcript: int = 0
    """Attempts that have no conversation to write."""
    loses: list[str] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)
    """Rows of each table."""
    masked: dict[str, int] | None = None
    """What was masked, by kind; None when nothing was looked for."""
    notes: list[str] = field(default_factory=list)
    """What the person should know of it."""


@cache
def writers() -> dict[str, Writer]:
    """Every writer by name."""
    found = (import_module(f"agentsignals.export.{name}").WRITER for name in _MODULES)
    return {w.name: w for w in found}


def names() -> list[str]:
    """Every format that is written, by name."""
    return sorted([*_MODULES, *_WHOLE])


def by_name(name: str) -> Writer:
    """The writer of a file a session of that name. ExportError names the formats there are."""
    known = writers()
    if name not in known:
        raise ExportError(f"Nothing is written as {name!r}.", f"Choose one of: {', '.join(names())}.")
    return known[name]


def whole(name: str) -> WholeWriter | None:
    """The writer of that name that writes everything at once; None when there is none."""
    if name not in _WHOLE:
        return None
    found: WholeWriter = import_module(f"agentsignals.export.{_WHOLE[name]}").WRITER
    return found


def empty_folder(folder: Path) -> None:
    """Makes the folder. ExportError when something is in it: no older export is mixed in."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty.", "Name a new folder, so that no older export is mixed in.")


def cannot_write(folder: Path, problem: OSError) -> ExportError:
    """The error to raise when the disk refuses."""
    return ExportError(f"{folder} can't be written: {problem.strerror or problem}.", "Name another folder with -o.")


def write(sessions: Iterator[Session], to: str, folder: Path, redactor: Redactor | None = None) -> Exported:
    """One file a session into a folder, which must be empty or new. What was masked is looked through again.

    ExportError when it can't be written, and when it would hold a secret all the same: then nothing stays.
    """
    writer = by_name(to)
    done = Exported(format=to, folder=str(folder), loses=list(writer.loses))
    try:
        empty_folder(folder)
        taken: set[str] = set()
        for session in sessions:
            if session.attempt is not None and not session.attempt.has_transcript:
                done.without_transcript += 1
                continue
            text = writer.text(session)
            name = free_name(session.session_id, writer.suffix, taken, redactor)
            (folder / name).write_text(redactor.lines(text) if redactor else text, encoding="utf-8", errors="replace")
            done.files += 1
            done.sessions += 1
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    if redactor is not None:
        done.masked = redactor.counts
        last_look(folder, redactor)
    return done


def file_name(session_id: str) -> str:
    """A session's id as the name of a file: it may hold anything, slashes too."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in session_id).lstrip(".")[:120] or "session"


def free_name(session_id: str, suffix: str, taken: set[str], redactor: Redactor | None) -> str:
    """A session's file name that no other has: ids that differ in odd characters, late, or in what is masked of them,
    would share one.
    """
    stem = file_name(redactor.plain(session_id) if redactor else session_id)
    name = stem + suffix
    if name.lower() in taken:
        name = f"{stem}-{artifact_id(session_id)}{suffix}"
    taken.add(name.lower())
    return name
