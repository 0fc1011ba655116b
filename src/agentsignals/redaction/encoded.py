"""Secrets in another writing: base64, hex, and characters escaped as addresses, JSON, HTML and programs escape them.

What is decoded is looked through as any text is, and again, three writings deep. Of base64 and hex the whole value is
masked, of escapes the part that says the secret.
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Callable, Iterator

from agentsignals.redaction.spans import Span

DEEPEST = 3
"""So many writings inside each other are undone."""
Look = Callable[[str, int], list[Span]]
"""The places in a text that must not leave, given how many writings may still be undone."""

_AROUND = 160
"""Characters before and after an escape that are read with it."""
_ESCAPE = re.compile(
    r"[%\\&](?:(?<=%)(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])"
    r"|(?<=\\)\\{0,3}(?:(?:u00|x)(?P<number>[2-7][0-9A-Fa-f]|0[9AaDd])|u\{0{0,4}(?P<braced>[2-7][0-9A-Fa-f])\}|(?P<slash>/))"
    r"|(?<=&)(?:#0{0,4}(?P<decimal>\d{2,3});|#[xX]0{0,4}(?P<hex>[2-7][0-9A-Fa-f]);"
    r"|(?P<entity>amp|lt|gt|quot|apos|commat|colon|sol|equals|period|lowbar|num|hyphen|plus);))"
)
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "commat": "@", "colon": ":", "sol": "/",
             "equals": "=", "period": ".", "lowbar": "_", "num": "#", "hyphen": "-", "plus": "+"}  # fmt: skip
_BASE64 = re.compile(r"(?:[CI-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]){4,}")
"""Groups of four that say three ASCII characters: of groups drawn by chance one in eleven does."""
_BASE64_REST = re.compile(r"[A-Za-z0-9+/_-]*(?:(?:\r?\n|\\n)[ \t]{0,20}[A-Za-z0-9+/_-]{4,})*={0,2}")
_HEX = re.compile(r"(?:[2-7][0-9A-Fa-f]|0[9AaDd]){10,}")
_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/_-]|\\n")
_SEARCHED_CHARS = 400
"""In a longer run only its beginning says whether it is base64 of a text: pictures have millions of characters."""
_WRAPPED_CHARS = 56
"""Base64 that goes on in the next line has lines of so many characters at least (RFC 2045: 76; PEM: 64)."""


def in_base64(text: str, start: int, end: int, look: Look, depth: int) -> Iterator[Span]:
    """What a long run of letters and digits says in base64, where that must not leave."""
    done = start
    search = _BASE64.search if end - start <= _SEARCHED_CHARS else _BASE64.match
    while depth and (hit := search(text, done, end)):
        rest = _BASE64_REST.match(text, hit.end())
        done = rest.end() if rest else hit.end()
        line = text.find("\n", hit.start(), done)
        if 0 <= line < hit.start() + _WRAPPED_CHARS:
            done = line
        if inner := look(_decoded(text[hit.start() : done]), depth - 1):
            yield Span(hit.start(), done, inner[0].kind)
        if done >= end:
            break


def in_hex(text: str, start: int, end: int, look: Look, depth: int) -> Iterator[Span]:
    """What a long run of letters and digits says in hex, where that must not leave."""
    if depth and (begun := _HEX.search(text, start, min(end, start + _SEARCHED_CHARS))):
        hit = _HEX.match(text, begun.start(), end) or begun
        if inner := look(bytes.fromhex(hit[0]).decode("ascii"), depth - 1):
            yield Span(*hit.span(), inner[0].kind)


def _decoded(encoded: str) -> str:
    """What base64 says, of either alphabet, as far as it is whole."""
    bare = _NO_BASE64.sub("", encoded.replace("\\n", "\n")).replace("-", "+").replace("_", "/")
    bare = bare[: -1 if len(bare) % 4 == 1 else None]
    return b64decode(bare + "=" * (-len(bare) % 4)).decode("utf-8", "replace")


def escaped(text: str, look: Look, depth: int) -> Iterator[Span]:
    """What must not leave in the parts of a text that have escapes."""
    if not depth or not ("%" in text or "\\" in text or "&" in text):
        return
    start = end = -1
    for hit in _ESCAPE.finditer(text):
        if hit.start() > end:
            if end >= 0:
                yield from _undone(text, start, end, look, depth)
            before = text.rfind("\n", max(0, hit.start() - _AROUND, end), hit.start())
            start = before + 1 if before >= 0 else max(0, hit.start() - _AROUND, end)
        line = text.find("\n", hit.end(), hit.end() + _AROUND)
        end = line if line >= 0 else min(len(text), hit.end() + _AROUND)
    if end >= 0:
        yield from _undone(text, start, end, look, depth)


def _undone(text: str, start: int, end: int, look: Look, depth: int) -> Iterator[Span]:
    """What must not leave in a part of a text with its escapes undone, in places of the text."""
    parts: list[str] = []
    at: list[int] = []
    stood: list[int] = []
    done, length = start, 0
    for hit in _ESCAPE.finditer(text, start, end):
        parts += (text[done : hit.start()], _character(hit))
        length += hit.start() - done + 1
        at.append(length)
        stood.append(hit.end())
        done = hit.end()
    parts.append(text[done:end])

    def place(n: int) -> int:
        """Where the part's character of that number stood."""
        k = bisect_right(at, n)
        return stood[k - 1] + n - at[k - 1] if k else start + n

    for span in look("".join(parts), depth - 1):
        yield Span(place(span.start), place(span.end), span.kind)


def _character(hit: re.Match[str]) -> str:
    entity = hit["entity"]
    if entity:
        return _ENTITIES[entity]
    if hit["slash"]:
        return "/"
    if hit["decimal"]:
        return chr(int(hit["decimal"])) if 9 <= int(hit["decimal"]) < 127 else "\ufffd"
    return chr(int(hit["percent"] or hit["number"] or hit["braced"] or hit["hex"], 16))
