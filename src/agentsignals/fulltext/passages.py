"""The texts of a store, each with what it is, and how a number names one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

KINDS = ("title", "prompt", "reply", "command", "path", "result", "thinking", "other")
"""What a passage can be, the most telling first."""
_OF_EVENTS = {
    "human_turn": "prompt",
    "user_shell": "prompt",
    "text": "reply",
    "tool_result": "result",
    "command_output": "result",
    "thinking": "thinking",
}
"""The kinds of events; of the others (notes of the harness, interruptions, compactions) all are `other`."""
_EVENTS = ["session_id", "seq", "kind", "text"]
_CALLS = ["session_id", "seq", "path", "command", "arguments", "result_seq", "name"]
_END = re.compile("(?:[a-z0-9]|[A-Z](?=[A-Z][a-z]))[A-Z][A-Za-z0-9]*")
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no space between words: Thai, Lao, Burmese, Khmer, Kana, Han."""
_MOST_WORDS = 500_000
"""Identifiers whose endings are kept in memory."""
_KIND_BITS, _SEQ_BITS = 3, 32


class Passage(NamedTuple):
    """A text of a session: what an event says, or a call asks for; its title, which is as good as its first event."""

    session_id: str
    seq: int
    kind: str
    text: str
    tool: str
    """The tool of a call, also for its result; empty for anything else."""


def number_of(session: int, kind: str, seq: int) -> int:
    """The number of a passage in the index: those of a session follow each other, the most telling kinds first."""
    return (session << _KIND_BITS | KINDS.index(kind)) << _SEQ_BITS | seq


def session_and_kind(number: int) -> tuple[int, str]:
    """Of a passage's number without its event's (`KIND_SHIFT` bits to the right)."""
    return number >> _KIND_BITS, KINDS[number & (1 << _KIND_BITS) - 1]


KIND_SHIFT = _SEQ_BITS
SESSION_SHIFT = _SEQ_BITS + _KIND_BITS


def passages(shard: Path) -> Iterator[list[Passage]]:
    """All texts of a shard, a session's at a time in order of their numbers. StoreError when it can't be read."""
    from agentsignals.store import table_files  # noqa: PLC0415  (pyarrow is loaded when an index is made)

    calls: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for table in table_files.pieces(shard / "tool_calls.parquet", _CALLS):
        for session_id, *call in zip(*(column.to_pylist() for column in table.columns), strict=True):
            calls[session_id].append(tuple(call))
    titles: dict[str, str] = {}
    for table in table_files.pieces(shard / "sessions.parquet", ["session_id", "title"]):
        titles |= zip(*(column.to_pylist() for column in table.columns), strict=True)
    events = (
        row
        for table in table_files.pieces(shard / "events.parquet", _EVENTS)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )
    for session_id, of_session in groupby(events, key=itemgetter(0)):
        of_calls = calls.pop(session_id, [])
        tools = {result: name for *_, result, name in of_calls if result is not None}
        made = [
            Passage(session_id, seq, _OF_EVENTS.get(kind, "other"), text, tools.get(seq, ""))
            for _, seq, kind, text in of_session
            if text
        ]
        for seq, path, command, arguments, _, name in of_calls:
            texts = texts_of_call(path, command, arguments)
            made += [Passage(session_id, seq, kind, text, name) for kind, text in texts.items() if text]
        if title := titles.get(session_id):
            made.append(Passage(session_id, 0, "title", title, ""))
        made.sort(key=lambda p: number_of(0, p.kind, p.seq))
        yield made


def texts_of_call(path: str | None, command: str | None, arguments: str) -> dict[str, str]:
    """What a call asks for: the paths it is about, and whatever else it says, by kind."""
    texts = [*_strings(arguments)]
    paths = [text for text in texts if path and (text == path or text.endswith(f"/{path}"))] or ([path] if path else [])
    rest = [text for text in texts if text not in paths]
    if command and command not in rest:
        rest.insert(0, command)
    return {"path": "\n".join(dict.fromkeys(paths)), "command": "\n".join(dict.fromkeys(rest))}


def _strings(arguments: str) -> Iterator[str]:
    """The texts in a JSON document, in order; of what is none, itself."""
    try:
        waiting: list[Any] = [msgspec.json.decode(arguments or "{}")]
    except (msgspec.DecodeError, RecursionError):
        yield arguments.replace("\\n", " ").replace("\\t", " ")
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += reversed(value.values())
        elif isinstance(value, list):
            waiting += reversed(value)


def storable(text: str) -> str:
    """The text without halves of surrogate pairs, which SQLite takes no string with."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def spaced(text: str) -> str:
    """The text with spaces around each letter of a script that has none between words: so these can be looked up."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


class Endings:
    """What the identifiers of a text end with, from each part of theirs on: `OpenStore` can be found as `store`."""

    def __init__(self) -> None:
        self._made: dict[str, str] = {}

    def of(self, text: str) -> str:
        return " ".join(self._made.get(end) or self._of_end(end) for end in set(_END.findall(text)))

    def _of_end(self, end: str) -> str:
        """Of the end of an identifier that begins a letter before its first inner part."""
        starts = [1, *(match.start() for match in _BOUNDARY.finditer(end, 2))]
        made = " ".join(end[start:].lower() for start in starts)
        if len(self._made) >= _MOST_WORDS:
            self._made.clear()
        self._made[end] = made
        return made
