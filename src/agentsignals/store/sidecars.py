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
from agentsignals.store import files as disk
from agentsignals.store import index as parts

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
    from agentsignals.store import parquet as arrow_tables  # noqa: PLC0415  (only who labels pays for it)
    from agentsignals.store import tables  # noqa: PLC0415

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
    path = parts.load_parts(root).path(key_of(task, labeller))
    return list(_rows([path], None)) if path is not None else []


def fingerprint(root: Path) -> str:
    """Changes when any label made here does; empty when there is none."""
    marks = "|".join(f"{key}:{part.digest}" for key, part in parts.load_parts(root).live(f"{FOLDER}/"))
    return hashlib.blake2b(marks.encode(), digest_size=8).hexdigest() if marks else ""


def _rows(paths: Iterable[Path], only: str | None) -> Iterator[LabelRow]:
    from agentsignals.store import parquet as table_files  # noqa: PLC0415  (pyarrow is loaded when there are labels)

    for path in paths:
        for row in table_files.rows(path, only=only):
            session_id = row.pop("session_id")
            yield LabelRow(session_id, msgspec.convert(row, Label, strict=False))


# What is known of repositories: Parquet files and notes in a folder for each, beside the shards.

FOLDER_REPOSITORIES = "repos"


def folder_of(root: Path, repo: str) -> Path:
    """The folder of a repository, by its own folder or address."""
    mark = hashlib.blake2b(repo.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in "-".join(repo.rstrip("/").split("/")[-2:]))[-60:]
    return root / FOLDER_REPOSITORIES / f"{plain}-{mark}"


def write_repositories(root: Path, repo: str, table: str, rows: list[Any]) -> Path:
    """Replaces a repository's rows of a table (`commits`, `line_attribution`, `weaknesses`), in one rename."""
    return update_repositories(root, repo, table, lambda _: rows)


def update_repositories(root: Path, repo: str, table: str, change: Callable[[list[dict[str, Any]]], list[Any]]) -> Path:
    """Replaces a repository's rows of a table by what `change` makes of them. Nobody else writes in between."""
    key = _key(root, repo, table)
    with parts.changing(root) as held:
        path = held.path(key)
        changed = change(_read(path))
        return held.put(key, _table_repositories(table, changed))


def files_repositories(root: Path, table: str) -> list[Path]:
    """The files of a table that can be read, of all repositories."""
    return parts.whole(root, f"{FOLDER_REPOSITORIES}/", f"/{table}")


def rows(root: Path, repo: str, table: str) -> list[dict[str, Any]]:
    """A repository's rows of a table, times in microseconds; none when nobody wrote any. StoreError when they were
    damaged."""
    return _read(parts.load_parts(root).path(_key(root, repo, table)))


def write_note(root: Path, repo: str, name: str, note: Struct) -> Path:
    """Keeps a document about a repository."""
    target = folder_of(root, repo) / f"{name}.json"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        disk.replace(target, msgspec.json.encode(note))
    except OSError as problem:
        raise disk.cannot_write(root, problem) from problem
    return target


def note(root: Path, repo: str, name: str) -> bytes | None:
    """A document about a repository, as JSON; None when there is none, and when some of its tables can't be read: what
    it sums up is to be made again."""
    if parts.damage(root, _key(root, repo, "")):
        return None
    try:
        return (folder_of(root, repo) / f"{name}.json").read_bytes()
    except OSError:
        return None


def start_afresh(root: Path, repo: str) -> None:
    """Where a table of the repository was damaged, puts all that is known of it aside: its tables follow from each
    other. Nothing otherwise."""
    begins = _key(root, repo, "")
    if not parts.damage(root, begins):
        return
    with parts.changing(root) as held:
        gone = held.forget(begins)
    disk.put_aside(root, folder_of(root, repo))
    import logging  # noqa: PLC0415  (rare)

    tables = ", ".join(key.rsplit("/", 1)[-1] for key in gone)
    logging.getLogger("agentsignals.store").warning(
        "a table of %s was damaged: %s, which follow from each other, are put aside; run `collect`, `attribute` and"
        " `scan` of it again for those you need",
        repo,
        tables,
    )


def forget_notes(root: Path, folders: set[str] | None) -> None:
    """Removes the notes of repositories in these folders (None: of all): what they sum up is made again by the next
    run that is asked for it."""
    for path in (root / FOLDER_REPOSITORIES).glob("*/*.json"):
        if folders is None or path.parent.name in folders:
            path.unlink(missing_ok=True)


def forget_repositories(root: Path, sessions: set[str]) -> None:
    """Takes the ids of sessions out of the tables and notes of all repositories. Commits, lines and findings stay: they
    are the repository's, and an agent's line is one still, of a session that nobody names."""
    from agentsignals.store import parquet as table_files  # noqa: PLC0415  (pyarrow is loaded when there are any)

    with parts.changing(root) as held:
        damaged = {problem.key for problem in held.damage(f"{FOLDER_REPOSITORIES}/")}
        for key, part in list(held.live(f"{FOLDER_REPOSITORIES}/")):
            if key not in damaged:
                before = table_files.read(root / part.file)
                after = table_files.without_sessions(before, sessions)
                if not after.equals(before):
                    held.put(key, after)
    for path in (root / FOLDER_REPOSITORIES).glob("*/*.json"):
        if any(session_id.encode() in path.read_bytes() for session_id in sessions):
            path.unlink(missing_ok=True)


def _key(root: Path, repo: str, table: str) -> str:
    return f"{FOLDER_REPOSITORIES}/{folder_of(root, repo).name}/{table}"


def _read(path: Path | None) -> list[dict[str, Any]]:
    from agentsignals.store import parquet as table_files  # noqa: PLC0415  (pyarrow is loaded when there are any)

    return list(table_files.rows(path)) if path is not None else []


def _table_repositories(table: str, rows: list[Any]) -> Any:
    from agentsignals.store import parquet as arrow_tables  # noqa: PLC0415  (only who looks into repositories pays for it)
    from agentsignals.store import tables  # noqa: PLC0415

    return arrow_tables.plain_table(tables.OF_REPOSITORIES[table], rows)
