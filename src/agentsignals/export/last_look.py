"""What was written for others is read again, every file to its last byte, before anybody may give it away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from agentsignals.errors import ExportError
from agentsignals.redaction import Redactor
from agentsignals.redaction.guard import Guard

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
