"""Sessions out of the store again, in formats that others read.

To add one: a module with a `WRITER`: a `Writer` (a file a session) or a `WholeWriter` (everything chosen, at once). A
writer says what its format can't carry, and `export` prints that list. Where `reads_back` names a trace format, reading
what was written gives the rest unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from agentsignals.errors import ExportError
from agentsignals.export.last_look import last_look
from agentsignals.model import Session
from agentsignals.redaction import Redactor
from agentsignals.registry import Registry
from agentsignals.store import artifact_id

if TYPE_CHECKING:
    from agentsignals.store import Store


class Writer(Struct, frozen=True, kw_only=True):
    """A format to write. `text` gives a session's file; `loses` is what such a file can't say."""

    name: str
    describes: str
    suffix: str
    text: Callable[[Session], str]
    loses: tuple[str, ...]
    reads_back: str = ""
    """The trace format that its files are of; empty where no format reads them."""


class Choice(Struct, frozen=True, kw_only=True):
    """What was asked for beside the format."""

    redactor: Redactor | None = None
    """Masks every text that is written; None leaves them as they are."""
    licence: str | None = None
    """The identifier under which the data may be used; None when nobody said."""
    title: str | None = None
    transcripts: Literal["sts", "found", "none"] = "sts"
    """Conversations in one format; the files as they were found; or none."""
    kind: str = "accepted"
    """Of training data: what an example is."""
    without_benchmarks: bool = False
    """Training data without what is of a known benchmark."""
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


WRITERS = Registry[Writer | WholeWriter](
    "export", "agentsignals.export", "WRITER", lambda unit: isinstance(unit, Writer | WholeWriter)
)


def empty_folder(folder: Path) -> None:
    """Makes the folder. ExportError when something is in it: no older export is mixed in."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty.", "Name a new folder, so that no older export is mixed in.")


def cannot_write(folder: Path, problem: OSError) -> ExportError:
    """The error to raise when the disk refuses."""
    return ExportError(f"{folder} can't be written: {problem.strerror or problem}.", "Name another folder with -o.")


def write(sessions: Iterator[Session], writer: Writer, folder: Path, redactor: Redactor | None = None) -> Exported:
    """One file a session into a folder, which must be empty or new. What was masked is looked through again.

    ExportError when it can't be written, and when it would hold a secret all the same: then nothing stays.
    """
    done = Exported(format=writer.name, folder=str(folder), loses=list(writer.loses))
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
