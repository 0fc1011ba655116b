"""The records of `codex exec --json` as typed structs: only what is read."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct


class Usage(Struct, gc=False):
    """The thread's running total. Cached tokens are part of the input, reasoning is part of the output."""

    input_tokens: object = None
    cached_input_tokens: object = None
    cache_write_input_tokens: object = None
    output_tokens: object = None
    reasoning_output_tokens: object = None


class Failure(Struct, gc=False):
    message: str | None = None


class Change(Struct, gc=False):
    path: str = ""
    kind: str = ""
    """`add`, `delete`, `update`."""
    diff: str | None = None
    """Newer versions: the new file, the old one, or a unified diff."""


class Item(Struct, gc=False, kw_only=True):
    id: str = ""
    type: str = ""
    text: str | None = None
    message: str | None = None
    status: str | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    changes: list[Change] | None = None
    server: str | None = None
    tool: str | None = None
    arguments: Raw = Raw()
    result: Raw = Raw()
    error: Failure | None = None
    query: str | None = None
    items: Raw = Raw()
    prompt: str | None = None


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    thread_id: str | None = None
    item: Item | None = None
    usage: Usage | None = None
    error: Failure | None = None
    message: str | None = None


class Answer(Struct, gc=False):
    """What an MCP server gave back."""

    content: Raw = Raw()
    structured_content: Raw = Raw()


class Part(Struct, gc=False):
    """A piece of it, of a kind that the protocol of these servers (MCP) has."""

    type: str = ""
    text: str | None = None


PARTS = frozenset(("text", "image", "audio", "resource", "resource_link"))


DECODER = msgspec.json.Decoder(Record)
decode = DECODER.decode
answer_of = msgspec.json.Decoder(Answer | None).decode
parts_of = msgspec.json.Decoder(list[Part]).decode


def kind_of(record: Record) -> str:
    """The record's type with that of its item, as counted in the artifact."""
    kind = record.type or "untyped"
    return f"{kind}.{record.item.type}" if record.item is not None else kind
