"""Values as text between the sandbox and us: plain data only, by exact type, of limited size and depth.

A value that is not one of these types is refused, whatever it says of itself: a subclass could lie about its length,
its text or what it equals. Types that JSON lacks are objects of one tag: `{"tuple": [1, 2]}`.
"""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

MOST_DEPTH = 64
MOST_ITEMS = 100_000
MOST_CHARS = 1_000_000
"""Characters of strings, bytes and digits in one value."""

MOST_INT_BITS = 14_000
"""4215 digits: below Python's own limit (4300), so that any value that came through can be printed."""

MOST_EQUAL_HASHES = 64
"""Numbers can be chosen to collide; a set or mapping of them would cost us the square of its size."""

MAPPINGS = (dict, Counter, OrderedDict, defaultdict)
"""All of these compare as a dict does, and arrive as one."""

_TAGS: dict[type, str] = {list: "", tuple: "tuple", set: "set", frozenset: "frozenset"}


class Refused(Exception):
    """This value does not pass: `kind` is `not_plain`, `too_large` or `protocol`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Encoder:
    """One value on its way out."""

    def __init__(self) -> None:
        self.items_left = MOST_ITEMS
        self.chars_left = MOST_CHARS

    def form(self, value: Any, depth: int = 0) -> Any:
        """The value in types JSON knows. Raises Refused."""
        self.items_left -= 1
        if self.items_left < 0:
            raise Refused("too_large", f"more than {MOST_ITEMS} items")
        if depth > MOST_DEPTH:
            raise Refused("too_large", f"nested deeper than {MOST_DEPTH}")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind in _TAGS:
            inner = [self.form(item, depth + 1) for item in value]
            return {_TAGS[kind]: inner} if _TAGS[kind] else inner
        if kind in MAPPINGS:
            pairs = dict.items(value)
            return {"dict": [[self.form(k, depth + 1), self.form(v, depth + 1)] for k, v in pairs]}
        return self._scalar(value, kind)

    def _scalar(self, value: Any, kind: type) -> Any:
        if kind is int:
            self._spend_integer(value.bit_length())
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is str:
            self._spend(len(value))
            return value
        if kind is bytes or kind is bytearray:
            self._spend(2 * len(value))
            return {kind.__name__: value.hex()}
        if kind is complex:
            return {"complex": [repr(value.real), repr(value.imag)]}
        raise Refused("not_plain", f"a value of type {name_of(kind)} is no plain data")

    def _spend_integer(self, bits: int) -> None:
        if bits > MOST_INT_BITS:
            raise Refused("too_large", f"an integer of {bits} bits, more than {MOST_INT_BITS}")
        self._spend(bits // 3)

    def _spend(self, chars: int) -> None:
        self.chars_left -= chars
        if self.chars_left < 0:
            raise Refused("too_large", f"more than {MOST_CHARS} characters")


_OF_TEXT: dict[str, Callable[[str], Any]] = {"float": float, "bytes": bytes.fromhex, "bytearray": bytearray.fromhex}
_OF_MEMBERS: dict[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def encode(value: Any) -> Any:
    """The value in types JSON knows. Raises Refused when it is no plain data, or too large."""
    return Encoder().form(value)


def decode(form: Any, depth: int = 0) -> Any:
    """The value that `encode` was given. Raises Refused when nothing would have been written so."""
    kind = type(form)
    if form is None or kind in (bool, int, float, str):
        return form
    if depth > MOST_DEPTH:
        raise Refused("protocol", f"nested deeper than {MOST_DEPTH}")
    if kind is list:
        return [decode(item, depth + 1) for item in form]
    if kind is not dict or len(form) != 1:
        raise Refused("protocol", "an object without its one tag")
    [(tag, inner)] = form.items()
    try:
        return _tagged(tag, inner, depth)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused("protocol", f"not a {tag[:20]}: {type(error).__name__}") from None


def _tagged(tag: str, inner: Any, depth: int) -> Any:
    if tag in _OF_TEXT:
        if type(inner) is not str:
            raise TypeError(tag)
        return _OF_TEXT[tag](inner)
    if type(inner) is not list:
        raise TypeError(tag)
    if tag == "complex":
        real, imaginary = inner
        return complex(float(real), float(imaginary))
    if tag == "dict":
        pairs = [(decode(k, depth + 1), decode(v, depth + 1)) for k, v in inner]
        _spread([k for k, _ in pairs])
        return dict(pairs)
    if tag not in _OF_MEMBERS:
        raise Refused("protocol", f"unknown tag {tag[:20]}")
    members = [decode(item, depth + 1) for item in inner]
    if tag != "tuple":
        _spread(members)
    return _OF_MEMBERS[tag](members)


def _spread(keys: list[Any]) -> None:
    # Texts are hashed with a secret of the process, so counting hashes as texts can't be attacked itself.
    equal = Counter(str(hash(key)) for key in keys)
    if equal and max(equal.values()) > MOST_EQUAL_HASHES:
        raise Refused("protocol", "keys chosen to collide")


def loads(line: bytes) -> Any:
    """A line as JSON. Raises Refused when it is none, or so nested or so long a number that Python gives up."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused("protocol", f"not JSON: {type(error).__name__}") from None


_NAME: Any = type.__dict__["__name__"]


def name_of(kind: type) -> str:
    """The type's own name; its metaclass is not asked, it may lie or never return."""
    return str(_NAME.__get__(kind))[:200]
