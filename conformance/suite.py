"""Cases, how a home is laid out on a disk, and how an answer is compared with the right one. Standard library only."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = HERE / "cases"
RESULTS = HERE / "results"
FIELDS = (
    "sessions", "prompts", "prompt_texts", "model_calls", "calls", "failed_calls",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
    "delegations", "subagent_output_tokens", "abandoned_output_tokens", "cost_usd", "models", "days", "rewards",
    "unread",
)  # fmt: skip
CLOSE = 1e-6
"""Dollars by which a cost may differ."""

Answer = dict[str, Any]
"""Values by field. A field that a tool doesn't report is left out; None is a value that the tool calls unknown."""


@dataclass(frozen=True)
class Case:
    """One situation: a home folder as agents leave it, and what is right about it."""

    name: str
    situation: str
    source: list[str]
    expect: Answer

    @property
    def agent(self) -> str:
        return self.name.partition("/")[0]

    @property
    def home(self) -> Path:
        return CASES / self.name / "home"

    def lay_out(self, home: Path) -> Path:
        """Write the home: NAME.sql becomes the SQLite database NAME, NAME.LINK a link to the path in it, and `/HOME/`
        in a file the home's own path."""
        for source in sorted(p for p in self.home.rglob("*") if p.is_file()):
            target = home / source.relative_to(self.home)
            target.parent.mkdir(parents=True, exist_ok=True)
            content = source.read_bytes().replace(b"/HOME/", f"{home}/".encode())
            if source.suffix == ".LINK":
                target.with_suffix("").symlink_to(content.decode())
            elif source.suffix == ".sql":
                database = sqlite3.connect(target.with_suffix(""))
                database.executescript(content.decode())
                database.close()
            else:
                target.write_bytes(content)
        return home


def cases(only: str = "") -> Iterator[Case]:
    """The cases whose name contains `only`, in order."""
    for path in sorted(CASES.glob("*/*/case.json")):
        name = path.parent.relative_to(CASES).as_posix()
        if only in name:
            about = json.loads(path.read_text("utf-8"))
            if unknown := about["expect"].keys() - set(FIELDS):
                raise ValueError(f"{name}: no such field: {', '.join(unknown)}")
            yield Case(name, about["situation"], about["source"], about["expect"])


def wrong(case: Case, answer: Answer) -> dict[str, tuple[Any, Any]]:
    """Fields that a tool reports and that aren't right: what is right, and what it said."""
    return {
        field: (right, answer[field])
        for field, right in case.expect.items()
        if field in answer and not same(right, answer[field])
    }


def same(right: Any, said: Any) -> bool:
    if isinstance(right, dict) and isinstance(said, dict):
        return right.keys() == said.keys() and all(same(right[key], said[key]) for key in right)
    if isinstance(right, float) and isinstance(said, int | float):
        return abs(right - said) <= CLOSE
    return bool(right == said)


def verdict(case: Case, answer: Answer | None) -> str:
    """`right`, `wrong`, `unread` (nothing was found though there is something), or `untold` (no field is reported)."""
    asserted = {field: right for field, right in case.expect.items() if answer is not None and field in answer}
    if answer is None or not asserted:
        return "untold"
    if not wrong(case, answer):
        return "right"
    nothing: tuple[Any, ...] = (0, None, [], {})
    found = any(answer[field] not in nothing for field in answer)
    return "wrong" if found else "unread"
