"""A run of an experiment on disk: what was asked, what it ran on, its rows; it can be stopped and goes on.

RUN/config.json       the experiment and its settings
RUN/manifest.json     model, versions, seeds, texts, evaluator, sandbox
RUN/rows/NAME.jsonl   rows: a killed process loses nothing that it had added
RUN/traces/           sessions that `analyze` reads
RUN/tasks.jsonl       tasks that came from a file, as they were read
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from agentsignals import private_files
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.coding_tasks import written
from agentsignals_lab.coding_tasks.cases import Task


class Row(Struct, frozen=True):
    """A row of a table. Fields are text, numbers, truth values, lists of these, or None where unknown."""

    KEY: ClassVar[tuple[str, ...]] = ()
    """The fields that say which piece of work a row is of: one that is there is not done again."""

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.KEY)


R = TypeVar("R", bound=Row)


class Table(Generic[R]):
    """The rows of one kind. `add` returns when the row is on disk."""

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
        self.rows: list[R] = self._read(kind)
        self._keys = {row.key for row in self.rows}

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return key in self._keys

    def add(self, rows: Iterable[R]) -> None:
        """Adds the rows whose key is new; of several with one key the first. LabError for a number that is not finite:
        JSON has none."""
        by_key: dict[tuple[object, ...], R] = {}
        for row in rows:
            if row.key not in self._keys:
                by_key.setdefault(row.key, row)
        new = list(by_key.values())
        for row, name in product(new, new[0].__struct_fields__ if new else ()):
            value = getattr(row, name)
            if any(isinstance(x, float) and not isfinite(x) for x in (value if isinstance(value, tuple) else [value])):
                raise LabError(
                    f"{name} of the row {row.key} is {value}, which JSON does not have.",
                    "Look whether a class has no text here, or the model's numbers overflow.",
                )
        if not new:
            return
        self.rows += new
        self._keys |= {row.key for row in new}
        with private_files.open_file(self._path, "ab") as file:
            file.write(msgspec.json.Encoder().encode_lines(new))
            file.flush()
            os.fsync(file.fileno())

    def rewrite(self, rows: list[R]) -> None:
        """Has these rows instead, on disk, too, before this returns."""
        if rows != self.rows:
            self.rows, self._keys = rows, {row.key for row in rows}
            _replace(self._path, msgspec.json.Encoder().encode_lines(rows))

    def _read(self, kind: type[R]) -> list[R]:
        """The rows that are there. A last line that was cut by a kill is no row, and is taken away."""
        if not self._path.exists():
            return []
        held = self._path.read_bytes()
        whole = held[: held.rfind(b"\n") + 1]
        if len(whole) < len(held):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
        try:
            rows: list[R] = msgspec.json.Decoder(kind).decode_lines(whole)
        except msgspec.DecodeError as error:
            raise LabError(
                f"The rows in {self._path} are not those that this version writes: {error}", "Name a new folder."
            ) from error
        return rows


def _replace(path: Path, content: bytes) -> Path:
    """The file whole or not at all."""
    private_files.make_folder(path.parent)
    beside = path.with_suffix(".new")
    private_files.write(beside, content)
    beside.replace(path)
    return path


def read_any(path: Path) -> list[dict[str, Any]]:
    """Rows of a table of any kind; none where it is not there. LabError when it can't be read."""
    try:
        rows: list[dict[str, Any]] = msgspec.json.Decoder(dict).decode_lines(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise LabError(f"{path} can't be read: {error}", "Run the experiment again: it continues.") from error
    return rows


_TASKS = "tasks.jsonl"
_ANY_RUN = ("config.json", "manifest.json")


class Config(Struct, frozen=True):
    """Settings as requested."""

    experiment: str
    settings: dict[str, Any]


class Manifest(Struct, frozen=True, kw_only=True):
    """Environment of a run: whatever could make equal settings give other numbers."""

    model: dict[str, Any]
    """The model's card, or the name and address of a server."""
    evaluator: str
    texts: str
    """The fingerprint of the text sets."""
    sandbox: str
    """The sandbox that model-written code ran in (`sandbox.TIER`)."""
    seed: int
    packages: dict[str, str]
    started_at: str
    """ISO 8601, UTC; of the first start."""
    files: dict[str, str] = {}
    """SHA-256 of what the settings name: tasks, texts, a setting, directions."""


def versions_of(*names: str) -> dict[str, str]:
    """Versions of these packages, those that are installed."""
    versions = {}
    for name in names:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


class Run:
    """An open run. Use it in a `with`: one that fails before it has a result leaves nothing."""

    def __init__(self, folder: Path, config: Config, manifest: Manifest) -> None:
        self.folder, self.config, self.manifest = folder, config, manifest
        self._tables: dict[str, Table[Any]] = {}

    @classmethod
    def open(cls, folder: Path, config: Config, manifest: Manifest) -> Run:
        """Begins a run in a new or empty folder, or goes on with the same one.

        LabError when the folder holds something else, or a run of other settings, or of another model, evaluator, text
        set, sandbox or seed: rows of two such never mix.
        """
        if (folder / "config.json").exists():
            before = cls.read(folder)
            # As JSON says it: a tuple that was written comes back as a list.
            asked = msgspec.json.decode(msgspec.json.encode(config), type=Config)
            if before.config != asked:
                raise LabError(
                    f"{folder} is a run of other settings.",
                    "Name a new folder, or use the settings in its config.json.",
                )
            now = msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest)
            ground = ("model", "evaluator", "texts", "sandbox", "seed", "files")
            if differ := [name for name in ground if getattr(before.manifest, name) != getattr(now, name)]:
                raise LabError(
                    f"{folder} was begun with another {' and another '.join(differ)}.",
                    "Name a new folder. `agentsignals evals compare` compares the two runs.",
                )
            return before
        if folder.exists() and any(folder.iterdir()):
            raise LabError(f"{folder} is not empty and is not a run.", "Name a new folder.")
        private_files.make_folder(folder / "rows")
        private_files.make_folder(folder / "traces")
        for name, what in zip(_ANY_RUN, (config, manifest), strict=True):
            private_files.write(folder / name, msgspec.json.format(msgspec.json.encode(what)))
        return cls(folder, config, manifest)

    @classmethod
    def read(cls, folder: Path) -> Run:
        """A run as it lies there. LabError when there is none."""
        try:
            config = msgspec.json.decode((folder / "config.json").read_bytes(), type=Config)
            manifest = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise LabError(
                f"{folder} holds no run: {error}", "Name a folder that `lab agent` or `lab run` wrote."
            ) from error
        return cls(folder, config, manifest)

    def table(self, name: str, kind: type[R]) -> Table[R]:
        """The table of that name, with the rows it has."""
        if name not in self._tables:
            self._tables[name] = Table(self.folder / "rows" / f"{name}.jsonl", kind)
        table: Table[R] = self._tables[name]
        return table

    def write_trace(self, name: str, lines: list[Any]) -> Path:
        """A session as JSON lines, whole or not at all."""
        return _replace(self.folder / "traces" / f"{name}.jsonl", msgspec.json.Encoder().encode_lines(lines))

    def write_summary(self, name: str, what: Any) -> Path:
        """A result that is no table: an effect with its interval, a chosen layer."""
        return _replace(self.folder / f"{name}.json", msgspec.json.format(msgspec.json.encode(what)) + b"\n")

    def keep_tasks(self, tasks: Iterable[Task]) -> None:
        """Stores tasks of files, so that answers can be scored again wherever the files are by then."""
        if lines := msgspec.json.Encoder().encode_lines(map(written, tasks)):
            private_files.write(self.folder / _TASKS, lines)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        if kind is not None and {path.name for path in files} <= {*_ANY_RUN, _TASKS}:
            # It failed before it had a result: the folder can be used for mended settings.
            for path in (*files, self.folder / "rows", self.folder / "traces"):
                path.unlink() if path.is_file() else path.rmdir()


def seed_of(base: int, *of: object) -> int:
    """A seed for a piece of work: the same for the same base and parts.

    What must share its random numbers (the conditions of a task, attempt and sample) leaves out what differs.
    """
    text = ":".join(map(str, (base, *of)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
