"""Patterns that are compiled when they are first used: a run loads hundreds, most of which its texts never need."""

from __future__ import annotations

import re
from typing import Any, cast

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
