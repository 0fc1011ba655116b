"""What lies beside the shards: files of labels and of repositories, each a Parquet file, and the list that knows them.

A file is never written over: a newer one gets a name of its own and the list takes it in, in one rename. So whoever
reads sees the old rows or the new, a writer that dies leaves the old, and a file that was lost is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.errors import StoreError
from agentsignals.store import files, lock
from agentsignals.store.files import Part
from agentsignals.store.manifest import refuse_newer

NAME = "parts.json"
VERSION = 1
FOLDERS = ("labels", "repos")
_WAIT_S = 30.0
"""For a writer of a single file."""
_NUMBERED = re.compile(r"(?P<key>.+?)(?:\.(?P<number>\d+))?\.parquet")


class Damage(Struct, frozen=True, kw_only=True):
    """A part of the store that is not as it was written."""

    place: str
    """Its path in the store."""
    what: str
    """What happened to it."""
    lacks: str = ""
    """What answers lack because of it."""
    shard: str = ""
    table: str = ""
    key: str = ""
    """Which of the parts it is, where it is one."""

    def __str__(self) -> str:
        return f"{self.place} {self.what}" + (f": {self.lacks}" if self.lacks else "")


class _List(Struct):
    schema_version: int = VERSION
    run: int = 0
    parts: dict[str, Part] = field(default_factory=dict)


class Parts:
    """The list as it was read; `changing` gives one that can be changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._list, self.lost = _load(root)

    def path(self, key: str) -> Path | None:
        """The file of a part; None where there is none. StoreError when it was damaged."""
        part = self._list.parts.get(key)
        if part is None:
            return None
        path = self._root / part.file
        if what := files.what_is_wrong(str(path), part):
            raise StoreError(
                f"{path} {what}.",
                "`agentsignals doctor --repair` puts it aside; run what made it again afterwards.",
            )
        return path

    def live(self, begins: str = "", ends: str = "") -> Iterator[tuple[str, Part]]:
        """The parts whose names begin and end so, in order of name."""
        for key in sorted(self._list.parts):
            if key.startswith(begins) and key.endswith(ends):
                yield key, self._list.parts[key]

    def damage(self, begins: str = "", ends: str = "", thorough: bool = False) -> Iterator[Damage]:
        """Those of them that are not as they were written."""
        for key, part in self.live(begins, ends):
            if what := files.what_is_wrong(str(self._root / part.file), part, thorough):
                kind = "labels" if key.startswith("labels/") else key.rsplit("/", 1)[-1]
                yield Damage(place=part.file, what=what, lacks=f"{part.rows:,} rows of {kind} are missing", key=key)

    def put(self, key: str, table: Any) -> Path:
        """Writes a part anew and takes it into the list; gives its file. `table` is pyarrow's."""
        from agentsignals.store import table_files  # noqa: PLC0415  (pyarrow is loaded when something is written)

        self._list.run += 1
        file = f"{key}.{self._list.run}.parquet"
        path = self._root / file
        data = table_files.encoded(table)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace(path, data)
            self._list.parts[key] = table_files.part_of(path, data, table.num_rows, file)
        except OSError as problem:
            raise files.cannot_write(self._root, problem) from problem
        self.save()
        self._sweep(path.parent)
        return path

    def forget(self, begins: str) -> list[str]:
        """Strikes parts off the list, whole or not; gives their names. Their files stay where they are."""
        gone = [key for key in self._list.parts if key.startswith(begins)]
        for key in gone:
            del self._list.parts[key]
        self.save()
        return gone

    def distrust(self, keys: set[str]) -> None:
        """Has the bytes of these parts compared at each opening until they are written anew."""
        for key in keys & self._list.parts.keys():
            self._list.parts[key].stamp = 0
        self.save()

    def save(self) -> None:
        """Writes the list."""
        try:
            files.replace(self._root / NAME, msgspec.json.encode(self._list))
        except OSError as problem:
            raise files.cannot_write(self._root, problem) from problem

    def strays(self) -> list[Path]:
        """Parquet files among the parts that are in no list and are no former state of one that is."""
        return [p for key, p in _on_disk(self._root) if key not in self._list.parts and not p.name.startswith(".")]

    def _sweep(self, folder: Path) -> None:
        """Removes former states that nobody reads any more, and drafts of writers that died."""
        for key, path in _on_disk(self._root, folder):
            live = self._list.parts.get(key)
            if live is not None and path != self._root / live.file and files.is_old(self._root / live.file):
                path.unlink(missing_ok=True)
        for path in folder.glob(".*.tmp"):
            if files.is_old(path):
                path.unlink(missing_ok=True)


def load(root: Path) -> Parts:
    """The list as it is. Where it was lost, it is made again from the files that are there."""
    return Parts(root)


def whole(root: Path, begins: str = "", ends: str = "") -> list[Path]:
    """The files of parts whose names begin and end so, without those that were damaged."""
    held = load(root)
    broken = {d.place for d in held.damage(begins, ends)}
    return [root / part.file for _, part in held.live(begins, ends) if part.file not in broken]


def damage(root: Path, begins: str = "") -> list[Damage]:
    """The parts whose names begin so and that are not as they were written."""
    return list(load(root).damage(begins))


@contextmanager
def changing(root: Path) -> Iterator[Parts]:
    """The list, which nobody else changes meanwhile. StoreError when somebody does for too long."""
    with lock.locked(root, lock.PARTS, _WAIT_S):
        held = Parts(root)
        if held.lost:
            files.put_aside(root, root / NAME)
        yield held


def _load(root: Path) -> tuple[_List, str]:
    """The list, and what is wrong with it where it had to be made again."""
    why = "is gone"
    try:
        data = (root / NAME).read_bytes()
        loaded = msgspec.json.decode(data, type=_List)
        refuse_newer(root, loaded.schema_version, VERSION)
        return loaded, ""
    except FileNotFoundError:
        pass
    except msgspec.DecodeError:
        why = "is cut or garbled"
    except OSError as problem:
        why = files.instead_of(root / NAME, problem)
    made = _List()
    for key, path in _on_disk(root):
        number = int(_NUMBERED.fullmatch(path.name)["number"] or 0)  # type: ignore[index]  # _on_disk gives no other
        made.run = max(made.run, number)
        before = made.parts.get(key)
        if before is None or number >= int(_NUMBERED.fullmatch(before.file)["number"] or 0):  # type: ignore[index]
            made.parts[key] = _as_it_is(root, path)
    return made, why if made.parts or why != "is gone" else ""


def _as_it_is(root: Path, path: Path) -> Part:
    from agentsignals.store import table_files  # noqa: PLC0415  (rare)

    file = path.relative_to(root).as_posix()
    try:
        return table_files.as_it_is(path, file)
    except StoreError:
        return Part(0, 0, "", 0, file)  # matches nothing: damaged until it is written anew


def _on_disk(root: Path, folder: Path | None = None) -> Iterator[tuple[str, Path]]:
    """The Parquet files there are, with the name of the part that each is or was."""
    paths = (
        folder.glob("*.parquet") if folder is not None else (p for f in FOLDERS for p in (root / f).rglob("*.parquet"))
    )
    for path in sorted(paths):
        if named := _NUMBERED.fullmatch(path.name):
            yield f"{path.parent.relative_to(root).as_posix()}/{named['key']}", path
