"""A run of an experiment on disk: what was asked, what it ran on, its rows; it can be stopped and goes on.

RUN/config.json       the experiment and its settings
RUN/manifest.json     model, versions, seeds, texts, evaluator, sandbox
RUN/rows/NAME.jsonl   rows
RUN/traces/           sessions that `analyze` reads
RUN/tasks.jsonl       tasks that came from a file, as they were read
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from agentsignals import private_files
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.coding_tasks.task_files import written
from agentsignals_lab.runs.table import Row, Table

__all__ = ["Config", "Manifest", "Row", "Run", "Table"]

R = TypeVar("R", bound=Row)
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

    def same_ground(self, other: Manifest) -> list[str]:
        """In what two manifests differ such that their rows do not belong in one table."""
        fields = ("model", "evaluator", "texts", "sandbox", "seed", "files")
        return [name for name in fields if getattr(self, name) != getattr(other, name)]


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
            if differ := before.manifest.same_ground(now):
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
        return self._write(self.folder / "traces" / f"{name}.jsonl", msgspec.json.Encoder().encode_lines(lines))

    def write_summary(self, name: str, what: Any) -> Path:
        """A result that is no table: an effect with its interval, a chosen layer."""
        return self._write(self.folder / f"{name}.json", msgspec.json.format(msgspec.json.encode(what)) + b"\n")

    @staticmethod
    def _write(path: Path, content: bytes) -> Path:
        private_files.make_folder(path.parent)
        beside = path.with_suffix(".new")
        private_files.write(beside, content)
        beside.replace(path)
        return path

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
