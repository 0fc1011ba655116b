"""Another person's files: a sample with other words and other times, under the same ids."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

_DAYS = 37
_ISO = re.compile(r"(20\d\d)-(\d\d)-(\d\d)(?=[T ]\d\d:\d\d)")
_TEXTS = frozenset(("text", "content", "message", "prompt"))


def of_another(data: bytes) -> bytes:
    """Return a file of JSON or JSON Lines with other words and times. Ids and names of kinds stay."""
    try:
        return json.dumps(_changed(json.loads(data)), ensure_ascii=False).encode()
    except ValueError:
        pass
    changed = []
    for line in data.split(b"\n"):
        try:
            changed.append(json.dumps(_changed(json.loads(line)), ensure_ascii=False).encode())
        except ValueError:
            changed.append(line)
    return b"\n".join(changed)


def make_anothers(database: Path) -> None:
    """Give the rows of a SQLite database other words and times. Their ids stay."""
    with closing(sqlite3.connect(database)) as db, db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            read = db.execute(f"SELECT rowid, * FROM {table}")
            names = [column for column, *_ in read.description[1:]]
            for rowid, *row in read.fetchall():
                for name, value in zip(names, row, strict=True):
                    changed = of_another(value) if isinstance(value, bytes) else _changed(value, name)
                    if changed != value:
                        db.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", [changed, rowid])


def _changed(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _changed(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_changed(inner, name) for inner in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value + _shift(value)
    if not isinstance(value, str):
        return value
    if value[:1] in '{["' and (inner := _decoded(value)) is not None:
        return json.dumps(_changed(inner), ensure_ascii=False)
    if _ISO.match(value):
        return _ISO.sub(lambda m: f"{int(m[1]) - 1}-{m[2]}-{min(int(m[3]), 28):02d}", value, count=1)
    if re.fullmatch(r"1[5-9]\d{8,17}", value):
        return str(int(value) + _shift(int(value)))
    said = len(value) > 8 and " " in value if name not in _TEXTS else bool(value)
    return f"{value} (said by another)" if said and not value.startswith("<") else value


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _shift(number: float) -> int:
    for unit in (1, 1_000, 1_000_000, 1_000_000_000):
        if 1_500_000_000 * unit <= number <= 2_000_000_000 * unit:
            return -_DAYS * 86_400 * unit
    return 0
