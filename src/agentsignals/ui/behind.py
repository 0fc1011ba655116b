"""The sessions behind a number, for pages: what a key opens, and the address that opens it."""

from __future__ import annotations

from urllib.parse import quote

from agentsignals.report.drill_down import WITH, Behind, behind
from agentsignals.ui.reading import Reading


def behind_key(reading: Reading, key: str) -> Behind:
    """What a key opens, made once for this state of the store. UsageError when it is none."""
    of_all = key.removeprefix(WITH)
    made: Behind = reading.kept(("behind", of_all), lambda: behind(reading.store, of_all))
    return made.partly() if key.startswith(WITH) else made


def sessions_behind(reading: Reading, key: str) -> tuple[str, list[str]]:
    """What a number is called, and the sessions it counts, largest part first. UsageError when the key is none."""
    made = behind_key(reading, key)
    return made.title, list(made.parts)


def opening(key: str, size: tuple[int, int] | str | None, of_all: bool = False) -> str:
    """The address of the sessions that a key counts (`sizes`): of a share those that make it up, or `of_all` that it
    is of. Empty for none."""
    if size is None or isinstance(size, str):
        return ""
    is_part = not of_all and 0 < size[0] < size[1]
    return f"/behind?key={quote(WITH + key if is_part else key, errors='surrogateescape')}"
