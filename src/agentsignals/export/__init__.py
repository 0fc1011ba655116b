"""Sessions out of the store, in formats that others read.

To add one: a module with a `WRITER`, a `Writer` (a file a session) or a `WholeWriter` (all chosen sessions at once). A
writer says what its format can't carry, and `export` prints that list. Where `reads_back` names a trace format, reading
the files gives the rest unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from agentsignals import private_files
from agentsignals.errors import ExportError
from agentsignals.ingest.plan import artifact_of
from agentsignals.model import Session
from agentsignals.model.registry import Registry
from agentsignals.questions.sql import sections
from agentsignals.redaction import Guard, Redactor
from agentsignals.redaction.values import KNOWN
from agentsignals.sources import origin_of
from agentsignals.store import artifact_id

if TYPE_CHECKING:
    from agentsignals.store import Store


_QUOTED = (list, dict, bytes)
_AT_ONCE = 4096
"""Rows of a table, or lines of a text, that are checked together; one by one where something is found."""


def verify_export(written: Path, redactor: Redactor) -> None:
    """Read everything that was written for others again. Secrets that were masked elsewhere are masked, in names of
    files too. ExportError where a file still holds a secret: all that was written is deleted.

    The message names the place and the kind, never the value.
    """
    guard = Guard(redactor)
    files = sorted(p for p in written.rglob("*") if p.is_file()) if written.is_dir() else [written]
    for path in files:
        try:
            if found := [(place, text) for place, text in _texts(path) if guard.kind(text)]:
                again = _write_again(path, {text for _, text in found}, guard, redactor)
                left = ((place, text if place in _FIXED else guard.without_known(text)) for place, text in found)
                refuse_secrets(again.name, left, guard)
        except ExportError:
            for other in written.rglob("*") if written.is_dir() else files:
                if other.is_file():
                    other.unlink()
            raise


def _write_again(path: Path, texts: set[str], guard: Guard, redactor: Redactor) -> Path:
    """Rewrite these texts of a file without secrets masked elsewhere; return its path, whose name may hold one."""

    def mask(text: str, times: int = 1) -> str:
        clean = guard.without_known(text) if text in texts else text
        if clean != text:
            redactor.counts[KNOWN] = redactor.counts.get(KNOWN, 0) + times
        return clean

    draft = path.with_name(f".{path.name}.tmp")
    if path.suffix == ".parquet":
        import pyarrow as pa  # noqa: PLC0415  (loaded when something is written)
        import pyarrow.parquet as pq  # noqa: PLC0415

        from agentsignals.store.copies import mask_table as masked  # noqa: PLC0415

        file = pq.ParquetFile(path)
        private_files.create(draft)
        with pq.ParquetWriter(draft, file.schema_arrow, compression="zstd") as writer:
            for batch in file.iter_batches(_AT_ONCE):
                writer.write_table(masked(pa.Table.from_batches([batch]), mask))
    else:
        with (
            path.open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
            private_files.open_file(draft, "w", encoding="utf-8", errors="surrogateescape", newline="") as out,
        ):
            out.writelines(map(mask, lines))
    name = guard.without_known(path.name)
    if name == path.name:
        return draft.replace(path)
    path.unlink()
    stem, suffix = file_name(name.removesuffix(path.suffix)), path.suffix
    free = next(n for n in chain((stem,), (f"{stem}-{n}" for n in count(2))) if not path.with_name(n + suffix).exists())
    return draft.replace(path.with_name(free + suffix))


def refuse_secrets(name: str, texts: Iterable[tuple[str, str]], guard: Guard) -> None:
    """Raise ExportError where one of the texts of a file, each with its place, holds a secret."""
    for place, text in texts:
        if kind := guard.kind(text):
            raise ExportError(
                f"{name} was not written: a secret ({kind}) in {place} is not masked.",
                "Leave that session out with --where, and report the signal or format that holds it.",
            )


_FIXED = ("its metadata", "its columns")
"""Places of texts that are ours and are not rewritten."""


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each text of a written file with its place, for the last check that no secret is in it."""
    yield "its name", path.name
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415  (loaded when something is written)

        file = pq.ParquetFile(path)
        for key, value in (file.metadata.metadata or {}).items():
            if key != b"ARROW:schema":
                yield _FIXED[0], f"{key!r} {value!r}"
        for name in file.schema_arrow.names:
            yield _FIXED[1], name
        first = 1
        for batch in file.iter_batches(_AT_ONCE):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                seen: set[str] = set()
                for n, cell in enumerate(column.to_pylist(), first):
                    for value in cell if isinstance(cell, list) else (cell,):
                        text = value if isinstance(value, str) else str(value) if isinstance(value, _QUOTED) else ""
                        if text and text not in seen:
                            seen.add(text)
                            yield f"column {name}, row {n}", text
            first += len(batch)
        return
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
        for n, line in enumerate(lines, 1):
            yield f"line {n}", line


class Writer(Struct, frozen=True, kw_only=True):
    """A format of one file a session. `text` makes the file; `loses` lists what it can't carry."""

    name: str
    describes: str
    suffix: str
    text: Callable[[Session], str]
    loses: tuple[str, ...]
    reads_back: str = ""
    """Trace format of its files; empty where no format reads them."""


class Choice(Struct, frozen=True, kw_only=True):
    """Options beside the format."""

    redactor: Redactor | None = None
    """Masks every text that is written; None leaves texts as they are."""
    licence: str | None = None
    title: str | None = None
    transcripts: Literal["sts", "found", "none"] = "sts"
    """Conversations in one format; the files as they were found; or none."""
    kind: str = "accepted"
    without_benchmarks: bool = False
    """Leave sessions of known benchmarks out of training data."""
    tick: Callable[[str, int, int | None], None] = lambda stage, done, total: None


class WholeWriter(Struct, frozen=True):
    """A format whose files hold all sessions together. `put` gets the store, the chosen ids, the target, the choice,
    and the counts to fill in."""

    name: str
    describes: str
    put: Callable[[Store, list[str], Path, Choice, Exported], None]
    redacts: bool = False
    """Mask texts by default: it is made to be given away."""
    every_text: bool = False
    """Write every text of the chosen sessions, so that their secrets are learned while it writes."""
    masks_random: bool = False
    """Mask also what looks random and is no known id: it is made to be published."""
    loses: tuple[str, ...] = ()

    def write(self, store: Store, ids: list[str], path: Path, choice: Choice) -> Exported:
        """Write these sessions, and check what was masked. ExportError, and nothing stays, where it still holds a
        secret; ExportError when it can't be written."""
        done = Exported(format=self.name, folder=str(path), sessions=len(ids))
        try:
            self.put(store, ids, path, choice, done)
        except OSError as problem:
            raise cannot_write(path, problem) from problem
        if choice.redactor is not None:
            verify_export(path, choice.redactor)
        return done


class Exported(Struct, kw_only=True):
    """Counts of what was written."""

    format: str
    folder: str
    files: int = 0
    sessions: int = 0
    without_transcript: int = 0
    loses: list[str] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)
    masked: dict[str, int] | None = None
    """Masked values by kind; None when nothing was masked."""
    notes: list[str] = field(default_factory=list)


WRITERS = Registry[Writer | WholeWriter](
    "export", "agentsignals.export", "WRITER", lambda unit: isinstance(unit, Writer | WholeWriter)
)


@cache
def queries() -> dict[str, str]:
    return sections(Path(__file__).with_name("queries.sql"))


def empty_folder(folder: Path) -> None:
    """Make the folder. ExportError when something is in it, so that no older export is mixed in."""
    private_files.make_folder(folder)
    if any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty.", "Choose a new folder, so that exports are not mixed.")


def cannot_write(folder: Path, problem: OSError) -> ExportError:
    return ExportError(f"Cannot write {folder}: {problem.strerror or problem}.", "Choose a writable folder with -o.")


def write(sessions: Iterator[Session], writer: Writer, folder: Path, redactor: Redactor | None = None) -> Exported:
    """Write one file a session into an empty or new folder, and check what was masked. ExportError when it can't be
    written, and when it still holds a secret: then nothing stays."""
    done = Exported(format=writer.name, folder=str(folder), loses=list(writer.loses))
    try:
        empty_folder(folder)
        taken: set[str] = set()
        for session in sessions:
            if session.attempt is not None and not session.attempt.has_transcript:
                done.without_transcript += 1
                continue
            text = writer.text(session)
            name = unique_file_name(session.session_id, writer.suffix, taken, redactor)
            private_files.write(folder / name, redactor.lines(text) if redactor else text, "replace")
            done.files += 1
            done.sessions += 1
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    if redactor is not None:
        done.masked = redactor.counts
        verify_export(folder, redactor)
    return done


def file_name(session_id: str) -> str:
    """Return a session's id as the name of a file: it may hold anything, slashes too."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in session_id).lstrip(".")[:120] or "session"


def unique_file_name(session_id: str, suffix: str, taken: set[str], redactor: Redactor | None) -> str:
    """Return a session's file name that no other has. Ids that differ in odd characters, late, or only in masked parts
    would share one."""
    stem = file_name(redactor.plain(session_id) if redactor else session_id)
    name = stem + suffix
    if name.lower() in taken:
        name = f"{stem}-{artifact_id(session_id)}{suffix}"
    taken.add(name.lower())
    return name


# The card of a data set

UNKNOWN_LICENCE = "unknown"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def size_category(rows: int) -> str:
    return next((name for limit, name in _SIZES if rows < limit), "1M<n<10M")


def data_card(
    template: str, choice: Choice, sources: list[str], title: str, facts: dict[str, Any], **parts: Any
) -> str:
    """Return the README of a data set's folder: the head that the Hub and `datasets` read, with these facts, and the
    template's body, whose `parts` are texts or lists of lines. `title` is used where the person chose none."""
    title = choice.title or title
    head = {"pretty_name": title, "license": choice.licence or UNKNOWN_LICENCE, **facts}
    lines = ["---"]
    for name, value in head.items():  # as JSON, which is YAML that can't be misread
        many = isinstance(value, list)
        lines += [f"{name}:", *(f"- {json.dumps(one)}" for one in value)] if many else [f"{name}: {json.dumps(value)}"]
    parts |= {"title": one_line(title), "closing": _card_closing(choice, sources)}
    texts = {key: "\n".join(part) if isinstance(part, list) else part for key, part in parts.items()}
    body = Path(__file__).with_name(template).read_text("utf-8").removesuffix("\n")
    return "\n".join([*lines, "---", "", body.format(version=version("agentsignals"), **texts)])


def finish_folder(folder: Path, card: str, choice: Choice, done: Exported) -> None:
    """Write the README of a data set's folder, and note what the person should know before it leaves the machine."""
    redactor = choice.redactor
    private_files.write(folder / "README.md", redactor.plain(card) if redactor else card, "replace")
    done.masked = redactor.counts if redactor else None
    if choice.licence is None:
        done.notes.append(
            f"no licence was given: the card says {UNKNOWN_LICENCE!r}, so nobody may reuse it (--license)"
        )
    if redactor is None:
        done.notes.append("nothing was masked: look through it before it leaves this machine")


def write_rows(path: Path, rows: Iterable[Any], redactor: Redactor | None) -> None:
    """Write rows as JSON, one a line, masked."""
    with private_files.open_file(path, "w", encoding="utf-8", errors="replace", newline="\n") as out:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False)
            out.write(f"{redactor.text(line) if redactor else line}\n")


def _card_closing(choice: Choice, sources: list[str]) -> list[str]:
    """Return the end of every card: licence and masking."""
    lines = ["## Licence", ""]
    if choice.licence:
        lines.append(f"`{one_line(choice.licence)}`, as whoever made this data set says.")
    else:
        lines.append("Not stated. Without a licence only the authors may redistribute these texts.")
    if sources:
        lines += ["", "Sessions were taken from data sets that have licences of their own:", ""]
        lines += [f"- `{one_line(s)}`" for s in sources]
    lines += ["", "## What was masked", ""]
    if choice.redactor is None:
        return [*lines, "Nothing: texts stand as they were found.", ""]
    lines.append(
        "Keys, passwords, mail addresses and names in home folders were looked for by their shapes, in every text."
    )
    if not choice.redactor.counts:
        return [*lines, "None was found.", ""]
    return [
        *lines,
        "A secret that looks like prose passes. Users, mail addresses, telephones and addresses of machines have",
        "pseudonyms: the same for the same in all that the exporting machine gives away. Others have a word a kind.",
        "",
        *markdown_table(("kind", "times"), sorted(choice.redactor.counts.items())),
        "",
    ]


def sources_of(store: Store, ids: Collection[str]) -> list[str]:
    """Return the published data sets that sessions came from, each with the commit that was read."""
    groups = {store.manifest.sessions[i].group for i in ids}
    found = [(e, origin_of(artifact_of(uri, e).file)) for uri, e in store.manifest.files.items() if e.group in groups]
    specs = {e.spec for e, origin in found if origin is None and e.spec.startswith("hub:")}
    return sorted(specs | {f"hub:{o.dataset}@{o.revision}" for _, o in found if o is not None and o.dataset})


def markdown_table(names: tuple[str, str], rows: Iterable[tuple[str, int]]) -> list[str]:
    """Return counts as a table of two columns."""
    lines = [f"| {one_line(str(name))} | {n:,} |" for name, n in rows]
    return [f"| {names[0]} | {names[1]} |", "| --- | ---: |", *lines]


def one_line(text: str) -> str:
    """Return a text of a trace without markup and line breaks."""
    flat = " ".join(text.split())[:200]
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in flat if c.isprintable())
