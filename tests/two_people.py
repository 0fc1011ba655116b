"""Another person's files: a sample with other words and other times, under the same ids."""

from __future__ import annotations

import json
import re
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
