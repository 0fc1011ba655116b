"""Judgements made here: a Parquet file for each task and labeller, beside the shards, so that reading traces again
keeps them. Labels that came with a trace lie in its shard; the view `labels` shows both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.model import Label
from agentsignals.store import parts

FOLDER = "labels"


class LabelRow(Struct, gc=False):
    """A label with the session it is about."""

    session_id: str
    label: Label


def key_of(task: str, labeller: str) -> str:
    """Names a task's labels by one labeller among the store's parts. Names may hold anything: a model's has slashes."""
    mark = hashlib.blake2b(f"{task}\0{labeller}".encode(), digest_size=4).hexdigest()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{task}--{labeller}")[:80]
    return f"{FOLDER}/{plain}-{mark}"


def write(root: Path, task: str, labeller: str, rows: list[LabelRow]) -> Path:
    """Replaces a labeller's labels of a task, in one rename; gives the file."""
    return update(root, task, labeller, lambda _: rows)


def update(root: Path, task: str, labeller: str, change: Callable[[list[LabelRow]], list[LabelRow]]) -> Path:
    """Replaces a labeller's labels of a task by what `change` makes of them. Nobody else writes in between."""
    key = key_of(task, labeller)
    with parts.changing(root) as held:
        path = held.path(key)
        rows = change(list(_rows([path], None)) if path is not None else [])
        return held.put(key, _table(rows))


def replace(root: Path, task: str, labeller: str, sessions: Container[str], rows: Iterable[LabelRow]) -> Path:
    """Replaces a labeller's labels of some sessions; those of others stay, before the new ones."""
    return update(root, task, labeller, lambda before: [*(r for r in before if r.session_id not in sessions), *rows])


def _table(rows: list[LabelRow]) -> Any:
    from agentsignals.store import arrow_tables, tables  # noqa: PLC0415  (only who labels pays for it)

    return arrow_tables.rows_with_ids(
        tables.TABLES["labels"], [row.session_id for row in rows], [row.label for row in rows]
    )


def files(root: Path) -> list[Path]:
    """The files of labels made here that can be read."""
    return parts.whole(root, f"{FOLDER}/")


def read(root: Path, only: str | None = None) -> dict[str, list[Label]]:
    """The labels made here by session; of one session when it is named."""
    by_session: dict[str, list[Label]] = {}
    for row in _rows(files(root), only):
        by_session.setdefault(row.session_id, []).append(row.label)
    return by_session


def forget(root: Path, sessions: set[str]) -> None:
    """Takes the labels of these sessions out of every file that has any."""
    for path in files(root):
        rows = list(_rows([path], None))
        if rows and any(row.session_id in sessions for row in rows):
            replace(root, rows[0].label.task, rows[0].label.labeller, sessions, [])


def of_task(root: Path, task: str, labeller: str) -> list[LabelRow]:
    """A labeller's labels of a task, in the order they were written; none when there are none. StoreError when they
    were damaged."""
    path = parts.load(root).path(key_of(task, labeller))
    return list(_rows([path], None)) if path is not None else []


def fingerprint(root: Path) -> str:
    """Changes when any label made here does; empty when there is none."""
    marks = "|".join(f"{key}:{part.digest}" for key, part in parts.load(root).live(f"{FOLDER}/"))
    return hashlib.blake2b(marks.encode(), digest_size=8).hexdigest() if marks else ""


def _rows(paths: Iterable[Path], only: str | None) -> Iterator[LabelRow]:
    from agentsignals.store import table_files  # noqa: PLC0415  (pyarrow is loaded when there are labels)

    for path in paths:
        for row in table_files.rows(path, only=only):
            session_id = row.pop("session_id")
            yield LabelRow(session_id, msgspec.convert(row, Label, strict=False))
