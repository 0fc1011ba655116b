"""What is known of repositories: Parquet files and notes in a folder for each, beside the shards."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.store import files as disk
from agentsignals.store import parts

FOLDER = "repos"


def folder_of(root: Path, repo: str) -> Path:
    """The folder of a repository, by its own folder or address."""
    mark = hashlib.blake2b(repo.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in "-".join(repo.rstrip("/").split("/")[-2:]))[-60:]
    return root / FOLDER / f"{plain}-{mark}"


def write(root: Path, repo: str, table: str, rows: list[Any]) -> Path:
    """Replaces a repository's rows of a table (`commits`, `line_attribution`, `weaknesses`), in one rename."""
    return update(root, repo, table, lambda _: rows)


def update(root: Path, repo: str, table: str, change: Callable[[list[dict[str, Any]]], list[Any]]) -> Path:
    """Replaces a repository's rows of a table by what `change` makes of them. Nobody else writes in between."""
    key = _key(root, repo, table)
    with parts.changing(root) as held:
        path = held.path(key)
        changed = change(_read(path))
        return held.put(key, _table(table, changed))


def files(root: Path, table: str) -> list[Path]:
    """The files of a table that can be read, of all repositories."""
    return parts.whole(root, f"{FOLDER}/", f"/{table}")


def rows(root: Path, repo: str, table: str) -> list[dict[str, Any]]:
    """A repository's rows of a table, times in microseconds; none when nobody wrote any. StoreError when they were
    damaged."""
    return _read(parts.load(root).path(_key(root, repo, table)))


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
    for path in (root / FOLDER).glob("*/*.json"):
        if folders is None or path.parent.name in folders:
            path.unlink(missing_ok=True)


def forget(root: Path, sessions: set[str]) -> None:
    """Takes the ids of sessions out of the tables and notes of all repositories. Commits, lines and findings stay: they
    are the repository's, and an agent's line is one still, of a session that nobody names."""
    from agentsignals.store import table_files  # noqa: PLC0415  (pyarrow is loaded when there are any)

    with parts.changing(root) as held:
        damaged = {problem.key for problem in held.damage(f"{FOLDER}/")}
        for key, part in list(held.live(f"{FOLDER}/")):
            if key not in damaged:
                before = table_files.read(root / part.file)
                after = table_files.without_sessions(before, sessions)
                if not after.equals(before):
                    held.put(key, after)
    for path in (root / FOLDER).glob("*/*.json"):
        if any(session_id.encode() in path.read_bytes() for session_id in sessions):
            path.unlink(missing_ok=True)


def _key(root: Path, repo: str, table: str) -> str:
    return f"{FOLDER}/{folder_of(root, repo).name}/{table}"


def _read(path: Path | None) -> list[dict[str, Any]]:
    from agentsignals.store import table_files  # noqa: PLC0415  (pyarrow is loaded when there are any)

    return list(table_files.rows(path)) if path is not None else []


def _table(table: str, rows: list[Any]) -> Any:
    from agentsignals.store import arrow_tables, tables  # noqa: PLC0415  (only who looks into repositories pays for it)

    return arrow_tables.plain_table(tables.OF_REPOSITORIES[table], rows)
