"""Sessions out of the store again, in formats that others read.

To add one: a module with a `WRITER`: a `Writer` (a file a session) or a `WholeWriter` (everything chosen, at once). A
writer says what its format can't carry, and `export` prints that list. Where `reads_back` names a trace format, reading
what was written gives the rest unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from agentsignals.errors import ExportError
from agentsignals.model import Session
from agentsignals.model.registry import Registry
from agentsignals.redaction import Redactor
from agentsignals.redaction.guard import Guard
from agentsignals.store import artifact_id

if TYPE_CHECKING:
    from agentsignals.store import Store


# What was written for others is read again, every file to its last byte, before anybody may give it away.

_AT_ONCE = 4096
"""Rows of a table, or lines of a text, that are looked at together; then one by one where something is seen."""


def last_look(written: Path, redactor: Redactor) -> None:
    """Masks what is left of values that were masked elsewhere, and looks again. ExportError where a file holds a key
    all the same, or such a part: all that was written is deleted.

    The message names the place and the kind, never the value.
    """
    guard = Guard(redactor)
    files = sorted(p for p in written.rglob("*") if p.is_file()) if written.is_dir() else [written]
    for path in files:
        try:
            if any(guard.has_part(text) for _, text in _texts(path)):
                _write_again(path, guard, redactor)
            refuse(path.name, _texts(path), guard)
        except ExportError:
            for other in files:
                other.unlink(missing_ok=True)
            raise


def _write_again(path: Path, guard: Guard, redactor: Redactor) -> None:
    """Writes a file without parts of values that were masked elsewhere."""

    def mask(text: str, times: int = 1) -> str:
        clean = guard.without_parts(text)
        if clean != text:
            redactor.counts["key"] = redactor.counts.get("key", 0) + times
        return clean

    draft = path.with_name(f".{path.name}.tmp")
    if path.suffix == ".parquet":
        import pyarrow as pa  # noqa: PLC0415  (loaded when something is written)
        import pyarrow.parquet as pq  # noqa: PLC0415

        from agentsignals.store.copies import masked  # noqa: PLC0415

        file = pq.ParquetFile(path)
        with pq.ParquetWriter(draft, file.schema_arrow, compression="zstd") as writer:
            for batch in file.iter_batches(_AT_ONCE):
                writer.write_table(masked(pa.Table.from_batches([batch]), mask))
    else:
        with (
            path.open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
            draft.open("w", encoding="utf-8", errors="surrogateescape", newline="") as out,
        ):
            out.writelines(map(mask, lines))
    draft.replace(path)


def refuse(name: str, texts: Iterable[tuple[str, str]], guard: Guard) -> None:
    """ExportError where one of the texts of a file, each with its place, holds what must not leave."""
    for place, text in texts:
        if kind := guard.kind(text):
            raise ExportError(
                f"{name} would hold a {kind} ({place}): nothing of it is left on the disk.",
                "Leave that session out with --where, and report which signal or format forgot to mask.",
            )


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """Every text of a file, with where it stands."""
    yield "its name", path.name
    if path.suffix == ".parquet":
        yield from _cells(path)
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for n, line in enumerate(lines, 1):
            yield f"line {n}", line


def _cells(path: Path) -> Iterator[tuple[str, str]]:
    import pyarrow.parquet as pq  # noqa: PLC0415  (loaded when something is written)

    file = pq.ParquetFile(path)
    for key, value in (file.metadata.metadata or {}).items():
        if key != b"ARROW:schema":
            yield "its metadata", f"{key!r} {value!r}"
    for name in file.schema_arrow.names:
        yield "its columns", name
    first = 0
    for batch in file.iter_batches(_AT_ONCE):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            seen: set[str] = set()
            for n, value in enumerate(column.to_pylist()):
                text = value if isinstance(value, str) else str(value) if isinstance(value, list | dict | bytes) else ""
                if text and text not in seen:
                    seen.add(text)
                    yield f"column {name}, row {first + n + 1}", text
        first += len(batch)


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


# The card of a data set: what it holds, who may use it, how it was made. The Hub and `datasets` read its head.

UNKNOWN_LICENCE = "unknown"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


class Contents(Struct, kw_only=True):
    """What a data set holds, for its card."""

    title: str
    licence: str | None
    tables: dict[str, int]
    """Rows of each table that has any."""
    transcripts: int
    """Files of conversations."""
    transcript_kind: str
    agents: list[tuple[str, int]]
    """Agents and their sessions."""
    models: list[tuple[str, int]]
    formats: list[tuple[str, int]]
    sources: list[str]
    """Data sets the sessions came from."""
    masked: dict[str, int] | None
    loses: list[str] = field(default_factory=list)


def card(contents: Contents) -> str:
    """The README of the data set's folder."""
    return f"---\n{_head(contents)}---\n\n{_body(contents)}"


def configs(contents: Contents) -> list[dict[str, Any]]:
    """What `load_dataset` offers: a configuration a table, the sessions first; transcripts are files, not rows."""
    names = sorted(contents.tables, key=lambda n: (n != "sessions", n))
    return [
        {"config_name": n, "data_files": [{"split": "train", "path": f"data/{n}.parquet"}]}
        | ({"default": True} if n == "sessions" else {})
        for n in names
    ]


def _head(contents: Contents) -> str:
    rows = contents.tables.get("sessions", 0)
    tags = ["agent-traces", "coding-agents", "agentsignals", *(["format:agent-traces"] if contents.transcripts else [])]
    facts = {
        "pretty_name": contents.title,
        "license": contents.licence or UNKNOWN_LICENCE,
        "tags": tags,
        "size_categories": [size(rows)],
        "configs": configs(contents),
    }
    return head(facts)


def size(rows: int) -> str:
    """How many rows there are, in the Hub's words."""
    return next((name for limit, name in _SIZES if rows < limit), "1M<n<10M")


def head(facts: dict[str, Any]) -> str:
    """Facts as YAML, for the card's head."""
    return "".join(_yaml(name, value) for name, value in facts.items())


def _yaml(name: str, value: Any) -> str:
    """A key and its value; values as JSON, which YAML reads as its own, so that no word of theirs is read as more."""
    if isinstance(value, list):
        return f"{name}:\n" + "".join(f"- {json.dumps(v)}\n" for v in value)
    return f"{name}: {json.dumps(value)}\n"


def _body(contents: Contents) -> str:
    return "\n".join(
        [
            f"# {plain(contents.title)}",
            "",
            "Sessions of coding agents with what was measured in them, made by agentsignals "
            f"{version('agentsignals')}.",
            "",
            "## What is in it",
            "",
            *in_rows(("table", "rows"), sorted(contents.tables.items())),
            "",
            *_transcripts(contents),
            "",
            *in_rows(("agent", "sessions"), contents.agents),
            "",
            *in_rows(("model", "sessions"), contents.models),
            "",
            *in_rows(("format as found", "sessions"), contents.formats),
            "",
            "## Loading it",
            "",
            "```python",
            "from datasets import load_dataset",
            "",
            'sessions = load_dataset("OWNER/NAME", "sessions", split="train")',
            "```",
            "",
            "Times are UTC. Main figures of a session are of its main thread; subagents stand beside, in columns of",
            "their own. A value that is missing has a row in `signals` whose `absent` says why; it is never 0.",
            "",
            *closing(contents.licence, contents.sources, contents.masked),
        ]
    )


def closing(licence: str | None, sources: list[str], masked: dict[str, int] | None) -> list[str]:
    """How every card ends."""
    return ["## Licence", "", *_licence(licence, sources), "", "## What was masked", "", *_masked(masked), ""]


def sources_of(store: Store, ids: Collection[str]) -> list[str]:
    """The published data sets that sessions came from."""
    families = {store.manifest.sessions[i].family for i in ids}
    files = store.manifest.files.values()
    return sorted({e.spec for e in files if e.family in families and e.spec.startswith("hub:")})


def _transcripts(contents: Contents) -> list[str]:
    if not contents.transcripts:
        return ["It holds no conversations as files; the words are in `events` and `turns`."]
    kind = "in the session trace simple format" if contents.transcript_kind == "sts" else "as they were found"
    lines = [f"`transcripts/` holds {contents.transcripts:,} files, {kind}."]
    return [*lines, "", "They can't say:", "", *(f"- {loss}" for loss in contents.loses)] if contents.loses else lines


def _licence(licence: str | None, sources: list[str]) -> list[str]:
    """Who may use it. `sources`: data sets that the sessions came from."""
    lines = (
        [f"`{plain(licence)}`, as whoever made this data set says."]
        if licence
        else ["Not stated. Without a licence nobody but their authors may pass these texts on."]
    )
    if sources:
        lines += ["", "Sessions were taken from data sets that have licences of their own:", ""]
        lines += [f"- `{plain(s)}`" for s in sources]
    return lines


def _masked(masked: dict[str, int] | None) -> list[str]:
    """What was masked, by kind; None where nothing was looked for."""
    if masked is None:
        return ["Nothing: texts stand as they were found."]
    method = "Keys, passwords, mail addresses and names in home folders were looked for by their shapes, in every text."
    if not masked:
        return [method, "None was found."]
    return [
        method,
        "A secret that looks like prose passes. Users, mail addresses, telephones and addresses of machines have",
        "pseudonyms: the same for the same in all that the exporting machine gives away. Others have a word a kind.",
        "",
        *in_rows(("kind", "times"), sorted(masked.items())),
    ]


def in_rows(names: tuple[str, str], rows: Iterable[tuple[str, int]]) -> list[str]:
    """Counts as a table of two columns."""
    lines = [f"| {plain(str(name))} | {n:,} |" for name, n in rows]
    return [f"| {names[0]} | {names[1]} |", "| --- | ---: |", *lines]


def plain(text: str) -> str:
    """A word of a trace as words: no markup, no line of its own."""
    flat = " ".join(text.split())[:200]
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in flat if c.isprintable())
