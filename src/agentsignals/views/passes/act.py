"""What an audit goes by: a thing that an attempt did which decides, with its events."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Channel = Literal[
    "repository", "network", "package", "copied",
    "test_deleted", "test_skipped", "test_weakened", "harness", "exit_code", "clock", "result_file", "special_case",
]  # fmt: skip
"""The first four: where a fix came from; the others: what was done to what judges."""


class Act(Struct, frozen=True, kw_only=True):
    """A thing that an attempt did which decides, and its events."""

    channel: Channel
    seq: int
    """Where it was done."""
    path: str
    text: str
    """The line, or what was done."""
    from_seq: int | None = None
    """Where the text was shown."""
    is_open: bool = False
    """It may have been asked for: whether it paid nobody can tell."""
