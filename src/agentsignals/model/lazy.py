"""Lazily compiled patterns, cached properties, NumPy without threads, and release of memory maps."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast

_NAMES = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))


class _Compiled:
    """Holds the methods of a pattern as its own attributes, which are found faster."""


class _Deferred(_Compiled):
    def __init__(self, text: str, flags: int) -> None:
        self._arguments = (text, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._arguments)
        self.__dict__.update({each: getattr(compiled, each) for each in _NAMES})
        self.__class__ = _Compiled  # type: ignore[assignment]  # from now on what it has is looked up directly
        return getattr(compiled, name)


def deferred_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when first used: a run loads hundreds, most of which its texts never need.
    re.error comes then. Not for `isinstance`, nor as an argument of `re`'s functions."""
    return cast("re.Pattern[str]", _Deferred(text, flags))


_Made = TypeVar("_Made")


class once(Generic[_Made]):  # noqa: N801  (used like `property`)
    """A property that is computed when first read. `functools.cached_property` takes a lock until Python 3.12, which
    costs more than computing the many small views of small sessions."""

    def __init__(self, make: Callable[[Any], _Made]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, view: Any, owner: type[Any]) -> _Made:
        made = view.__dict__[self._name] = self._make(view)  # found there from now on, before this is asked
        return made


@contextmanager
def without_threads() -> Iterator[None]:
    """Load NumPy, also by way of pyarrow, without the threads of its OpenBLAS. They wait for each other in busy loops:
    on a busy machine a QR of 1,000 rows took 4 s of CPU instead of 0.2, with the same digits. A process with one thread
    can be forked."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


EVERY_BYTES = 4 * 1024 * 1024
"""Bytes of a map that are read before its pages are released."""


def release_pages(data: object) -> None:
    """Release the pages of a memory map, which count as this process's own. They are read from the file again when
    needed. Bytes are left alone."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)
