"""A data set's folder for the Hub: a card, the store's tables, the conversations. Nothing is uploaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from agentsignals import private_files
from agentsignals.errors import ExportError
from agentsignals.export import (
    Choice,
    Exported,
    WholeWriter,
    data_card,
    empty_folder,
    file_name,
    finish_folder,
    markdown_table,
    size_category,
    sources_of,
    unique_file_name,
)
from agentsignals.export.sts import WRITER as STS
from agentsignals.ingest.plan import artifact_of
from agentsignals.sources import Unreadable, read
from agentsignals.store import Store, artifact_id
from agentsignals.store.index import ArtifactEntry

_TITLE = "Coding agent sessions"
_LOOKED_AT = 64 * 1024
"""Bytes in which an archive shows that it is no text."""


def write(store: Store, ids: list[str], folder: Path, choice: Choice, done: Exported) -> None:
    """Write README.md, data/*.parquet and transcripts/*."""
    from agentsignals.store.copies import write_tables  # noqa: PLC0415  (pyarrow is loaded when something is written)
    from agentsignals.store.shards import read_header  # noqa: PLC0415

    redactor, chosen = choice.redactor, set(ids)
    originals: dict[str, ArtifactEntry] = {}
    if choice.transcripts == "found":  # the files that the sessions were read from
        groups = {e.group for i, e in store.manifest.sessions.items() if i in chosen}
        others = {e.group for i, e in store.manifest.sessions.items() if i not in chosen}
        files = sorted(store.manifest.files.items())
        originals = {u: e for u, e in files if e.format and e.group in groups}
        if shared := [u for u, e in originals.items() if e.group in others]:
            raise ExportError(
                f"{len(shared):,} log files also contain sessions that were not chosen.",
                "Choose whole files with --where, or write conversations with --transcripts sts.",
            )
    empty_folder(folder)
    private_files.make_folder(folder / "data")
    choice.tick("writing tables", 0, None)
    rows = write_tables(store, folder / "data", chosen, redactor.text if redactor else None)
    for name in [n for n, count in rows.items() if not count]:  # it would be a configuration that can't be loaded
        (folder / "data" / f"{name}.parquet").unlink()
    done.tables = {name: count for name, count in rows.items() if count}
    n_transcripts = 0
    if choice.transcripts != "none":
        transcripts = folder / "transcripts"
        private_files.make_folder(transcripts)

        def as_sts() -> Iterator[tuple[str, str | bytes]]:
            done.loses = list(STS.loses)
            taken: set[str] = set()
            for n, session in enumerate(store.read(chosen)):
                choice.tick("writing transcripts", n, len(chosen))
                if session.attempt is not None and not session.attempt.has_transcript:
                    done.without_transcript += 1
                else:
                    yield unique_file_name(session.session_id, STS.suffix, taken, redactor), STS.text(session)

        for name, content in as_sts() if choice.transcripts == "sts" else _as_found(originals, choice, done):
            masked = redactor.lines(content) if redactor and isinstance(content, str) else content
            private_files.write(transcripts / name, masked, "replace")
            n_transcripts += 1
    tallies: dict[str, Counter[str]] = {"agent": Counter(), "model": Counter(), "format": Counter()}
    for shard in store.readable_shards("sessions"):
        for row in read_header(store.folder, shard, ["session_id", *tallies], gone=store.manifest.shards[shard].gone):
            if row["session_id"] in chosen:
                for name, counts in tallies.items():
                    counts[row[name] or "not known"] += 1
    card = _card(choice, done, n_transcripts, tallies, sources_of(store, ids))
    finish_folder(folder, card, choice, done)
    done.files = len(done.tables) + n_transcripts + 1
    done.notes.append(f"to publish it: hf upload OWNER/NAME {folder} --repo-type dataset")


def _as_found(wanted: dict[str, ArtifactEntry], choice: Choice, done: Exported) -> Iterator[tuple[str, str | bytes]]:
    """Yield each file's name and content; text where it is to be masked."""
    redactor, lost = choice.redactor, Counter[str]()
    for n, (uri, entry) in enumerate(wanted.items()):
        choice.tick("writing transcripts", n, len(wanted))
        data = next(iter(read([artifact_of(uri, entry).file])))
        if isinstance(data, Unreadable):
            lost[data.reason] += 1
        elif redactor is not None and b"\0" in data[:_LOOKED_AT]:
            lost["no text, so it can't be masked"] += 1
        else:
            # What a source hands out is unpacked already.
            stem = uri.rsplit("/", 1)[-1].removesuffix(".gz")
            name = f"{artifact_id(uri)}-{file_name(redactor.plain(stem) if redactor else stem)}"
            yield name, bytes(data).decode("utf-8", "replace") if redactor else bytes(data)
    done.notes += [f"{count:,} files left out: {reason}" for reason, count in sorted(lost.items())]


def _card(
    choice: Choice, done: Exported, n_transcripts: int, tallies: dict[str, Counter[str]], sources: list[str]
) -> str:
    """The README. The Hub and `datasets` read its head: one configuration a table, the sessions first."""
    tables = sorted(done.tables, key=lambda n: (n != "sessions", n))
    facts = {
        "tags": ["agent-traces", "coding-agents", "agentsignals", *(["format:agent-traces"] if n_transcripts else [])],
        "size_categories": [size_category(done.tables.get("sessions", 0))],
        "configs": [
            {"config_name": n, "data_files": [{"split": "train", "path": f"data/{n}.parquet"}]}
            | ({"default": True} if n == "sessions" else {})
            for n in tables
        ],
    }
    transcripts = ["It holds no conversations as files; the words are in `events` and `turns`."]
    if n_transcripts:
        kind = "in the session trace simple format" if choice.transcripts == "sts" else "as they were found"
        transcripts = [f"`transcripts/` holds {n_transcripts:,} files, {kind}."]
        if done.loses:
            transcripts += ["", "They can't say:", "", *(f"- {loss}" for loss in done.loses)]
    titles = {"agent": "agent", "model": "model", "format": "format as found"}
    counted = []
    for name, counts in tallies.items():
        most_first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        counted += [*markdown_table((titles[name], "sessions"), most_first), ""]
    return data_card(
        "hub_card.md",
        choice,
        sources,
        _TITLE,
        facts,
        tables=markdown_table(("table", "rows"), sorted(done.tables.items())),
        transcripts=transcripts,
        counts=counted,
    )


WRITER = WholeWriter(
    name="hub",
    describes="a data set's folder for the Hub: card, tables, conversations",
    put=write,
    redacts=True,
    every_text=True,
    masks_random=True,
)
