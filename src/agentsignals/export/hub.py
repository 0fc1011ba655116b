"""A data set's folder for the Hub: a card, the store's tables, the conversations. Nothing is uploaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentsignals.errors import ExportError
from agentsignals.export import (
    UNKNOWN_LICENCE,
    Choice,
    Contents,
    Exported,
    WholeWriter,
    cannot_write,
    dataset_card,
    empty_folder,
    file_name,
    sources_of,
    unique_file_name,
)
from agentsignals.export.sts import WRITER as STS
from agentsignals.ingest.plan import artifact_of
from agentsignals.redaction import Redactor
from agentsignals.sources import Unreadable, read
from agentsignals.store import Store, artifact_id
from agentsignals.store.index import ArtifactEntry

_TITLE = "Coding agent sessions"
_LOOKED_AT = 64 * 1024
"""Bytes in which an archive shows that it is no text."""


def write(store: Store, ids: list[str], folder: Path, choice: Choice) -> Exported:
    """Write README.md, data/*.parquet and transcripts/*."""
    done = Exported(format="hub", folder=str(folder), sessions=len(ids))
    originals = _files_of(store, set(ids)) if choice.transcripts == "found" else {}
    try:
        empty_folder(folder)
        _tables(store, ids, folder / "data", choice, done)
        if choice.transcripts == "sts":
            _as_sts(store, ids, folder / "transcripts", choice, done)
        elif choice.transcripts == "found":
            _as_found(originals, folder / "transcripts", choice, done)
        n_transcripts = done.files - len(done.tables)
        counted = _counted(store, ids)
        redactor = choice.redactor
        contents = Contents(
            title=choice.title or _TITLE,
            licence=choice.licence,
            tables=done.tables,
            transcripts=n_transcripts,
            transcript_kind=choice.transcripts,
            agents=counted["agent"],
            models=counted["model"],
            formats=counted["format"],
            sources=sources_of(store, ids),
            masked=redactor.counts if redactor else None,
            loses=done.loses,
        )
        card_text = dataset_card(contents)
        (folder / "README.md").write_text(
            choice.redactor.plain(card_text) if choice.redactor else card_text, "utf-8", "replace"
        )
        done.masked = choice.redactor.counts if choice.redactor else None
        done.files += 1
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    if choice.licence is None:
        done.notes.append(
            f"no licence was given: the card says {UNKNOWN_LICENCE!r}, so nobody may reuse it (--license)"
        )
    if choice.redactor is None:
        done.notes.append("nothing was masked: look through it before it leaves this machine")
    done.notes.append(f"to publish it: hf upload OWNER/NAME {folder} --repo-type dataset")
    return done


def _tables(store: Store, ids: list[str], folder: Path, choice: Choice, done: Exported) -> None:
    """Write the tables that have rows: an empty one would be a configuration that can't be loaded."""
    from agentsignals.store.copies import write_tables  # noqa: PLC0415  (pyarrow is loaded when something is written)

    folder.mkdir()
    choice.tick("writing tables", 0, None)
    rows = write_tables(store, folder, set(ids), choice.redactor.text if choice.redactor else None)
    for name in [n for n, count in rows.items() if not count]:
        (folder / f"{name}.parquet").unlink()
    done.tables = {name: count for name, count in rows.items() if count}
    done.files += len(done.tables)


def _as_sts(store: Store, ids: list[str], folder: Path, choice: Choice, done: Exported) -> None:
    done.loses = list(STS.loses)
    folder.mkdir()
    taken: set[str] = set()
    for n, session in enumerate(store.read(set(ids))):
        choice.tick("writing transcripts", n, len(ids))
        if session.attempt is not None and not session.attempt.has_transcript:
            done.without_transcript += 1
            continue
        text = STS.text(session)
        name = unique_file_name(session.session_id, STS.suffix, taken, choice.redactor)
        _put(folder / name, text, choice.redactor)
        done.files += 1


def _files_of(store: Store, ids: set[str]) -> dict[str, ArtifactEntry]:
    """Files that the sessions were read from. ExportError when they hold other sessions too."""
    groups = {e.group for i, e in store.manifest.sessions.items() if i in ids}
    others = {e.group for i, e in store.manifest.sessions.items() if i not in ids}
    wanted = {u: e for u, e in sorted(store.manifest.files.items()) if e.format and e.group in groups}
    shared = [u for u, e in wanted.items() if e.group in others]
    if shared:
        raise ExportError(
            f"{len(shared):,} files hold sessions that were not chosen too.",
            "Choose whole files with --where, or write conversations with --transcripts sts.",
        )
    return wanted


def _as_found(wanted: dict[str, ArtifactEntry], folder: Path, choice: Choice, done: Exported) -> None:
    folder.mkdir()
    lost: dict[str, int] = {}
    for n, (uri, entry) in enumerate(wanted.items()):
        choice.tick("writing transcripts", n, len(wanted))
        data = next(iter(read([artifact_of(uri, entry).file])))
        if isinstance(data, Unreadable):
            lost[data.reason] = lost.get(data.reason, 0) + 1
            continue
        if choice.redactor is not None and b"\0" in data[:_LOOKED_AT]:
            lost["no text, so it can't be masked"] = lost.get("no text, so it can't be masked", 0) + 1
            continue
        # What a source hands out is unpacked already.
        stem = uri.rsplit("/", 1)[-1].removesuffix(".gz")
        name = f"{artifact_id(uri)}-{file_name(choice.redactor.plain(stem) if choice.redactor else stem)}"
        if choice.redactor is None:
            (folder / name).write_bytes(data)
        else:
            _put(folder / name, bytes(data).decode("utf-8", "replace"), choice.redactor)
        done.files += 1
    done.notes += [f"{count:,} files left out: {reason}" for reason, count in sorted(lost.items())]


def _put(path: Path, text: str, redactor: Redactor | None) -> None:
    path.write_text(redactor.lines(text) if redactor else text, encoding="utf-8", errors="replace")


def _counted(store: Store, ids: list[str]) -> dict[str, list[tuple[str, int]]]:
    """Sessions by agent, model and format, most first."""
    from agentsignals.store.shards import read_header  # noqa: PLC0415  (pyarrow is loaded when something is written)

    chosen = set(ids)
    tallies: dict[str, dict[str, int]] = {"agent": {}, "model": {}, "format": {}}
    for shard in store.readable_shards("sessions"):
        rows: list[dict[str, Any]] = read_header(store.folder, shard, ["session_id", *tallies])
        for row in (r for r in rows if r["session_id"] in chosen):
            for name, counts in tallies.items():
                value = row[name] or "not known"
                counts[value] = counts.get(value, 0) + 1
    return {n: sorted(counts.items(), key=lambda p: (-p[1], p[0])) for n, counts in tallies.items()}


WRITER = WholeWriter(
    name="hub",
    describes="a data set's folder for the Hub: card, tables, conversations",
    put=write,
    redacts=True,
)
