"""A property that is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

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
