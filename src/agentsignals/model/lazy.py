"""Patterns that are compiled when they are first used: a run loads hundreds, most of which its texts never need."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

_NAMES = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))


class _Compiled:
    """Has what a pattern has, as its own: found faster than by asking for it each time."""


class _Deferred(_Compiled):
    def __init__(self, text: str, flags: int) -> None:
        self._arguments = (text, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._arguments)
        self.__dict__.update({each: getattr(compiled, each) for each in _NAMES})
        self.__class__ = _Compiled  # type: ignore[assignment]  # from now on what it has is looked up directly
        return getattr(compiled, name)


def deferred_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern as of `re.compile`, which it calls when first used: re.error comes then. Not for `isinstance`, nor as
    an argument of `re`'s functions."""
    return cast("re.Pattern[str]", _Deferred(text, flags))


# A property that is made once.

_Made = TypeVar("_Made")


class once(Generic[_Made]):  # noqa: N801  (used like `property`)
    """A property that is made when first asked for. `functools.cached_property` takes a lock until Python 3.12, which
    for the many small views of many small sessions costs more than making them.
    """

    def __init__(self, make: Callable[[Any], _Made]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, view: Any, owner: type[Any]) -> _Made:
        made = view.__dict__[self._name] = self._make(view)  # found there from now on, before this is asked
        return made


# Files that are mapped into memory: their pages count as a process's own until it lets go of them.

EVERY_BYTES = 16 * 1024 * 1024
"""How much of a map is read before it is let go."""


def release(data: object) -> None:
    """Lets go of what was read of a map; it is still there, and read from the file again when looked at. Bytes stay."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)
