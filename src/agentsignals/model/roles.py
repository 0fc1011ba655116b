"""Which argument of a tool holds what: an agent's profile says it, so that nobody else need know an agent's words."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec import Struct


class Roles(Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """Names of arguments by what they hold. Several names of one role are spellings; the first that is there counts."""

    replace: tuple[tuple[str, str], ...] = ()
    """Pairs: a text of the file, and what it becomes."""
    whole: tuple[str, ...] = ()
    """A file's new text from beginning to end."""
    part: tuple[str, ...] = ()
    """A text that comes in at a line, at the end, or at a place that is not said."""
    patch: tuple[str, ...] = ()
    """A patch of one file or several."""
    several: tuple[str, ...] = ()
    """A list of edits, each an object of the roles above."""
    everywhere: tuple[str, ...] = ()
    """Whether each place of the old text is meant, not one."""
    line: tuple[str, ...] = ()
    """The number of lines before the part that comes in."""
    deed: str = ""
    """What the tool is asked to do: `create` makes the file anew, `append` puts the part at its end."""

    manner: tuple[str, ...] = ()
    """How a command is to be run, not what: for how long, in the background."""

    steps: tuple[str, ...] = ()
    """A list of things to do, written whole."""
    plan: tuple[str, ...] = ()
    """A plan in prose."""
    step: tuple[str, ...] = ()
    """The words of one thing to do: of an item of the list, or of a task that is put on it by itself."""
    task: str = ""
    """The task that a call changes."""
    task_name: str = ""
    state: str = ""
    waits_for: str = ""
    """Tasks that must be done before it."""
    holds_up: str = ""
    """Tasks that must be done after it."""

    question: str = ""
    questions: str = ""
    """A list of objects that each have a question."""


@cache
def encoded(roles: Roles) -> str:
    """As a call carries it."""
    return msgspec.json.encode(roles).decode()


@cache
def decoded(text: str | None) -> Roles:
    """As it was declared; no roles where a call has none. Few tools have any: each is decoded once."""
    return msgspec.json.decode(text, type=Roles) if text is not None else Roles()
