"""What is known of an agent: one record a folder, loaded without the reader beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property

from msgspec import Struct

from agentsignals.formats.tools import Tool
from agentsignals.model import CallStatus, Convention, EventKind, ToolClass


class Profile(Struct, frozen=True, kw_only=True, dict=True):
    """An agent's words. What signals need of them goes into the model with each call and session."""

    agent: str = ""
    aliases: tuple[str, ...] = ()
    """Other names under which data sets file its sessions."""
    homes: tuple[str, ...] = ()
    """Where it keeps its sessions on a machine: folders and databases (`~` is the home folder; `$NAME` a variable, of
    which nothing is looked for where it is not set, first; `*` may stand in the names below it, and `..` for what lies
    beside a folder that is there), and `FILE.json:KEY/BELOW`: BELOW in each folder that FILE lists as KEY."""
    instructions: tuple[str, ...] = ()
    """Instruction files of a repository that it reads, in the root or in a folder, as Git's globs."""
    instructions_perhaps: tuple[str, ...] = ()
    """Those that it reads in some versions or settings, or where it finds none of the others."""
    expands_imports: bool = False
    """Where an instruction file names another as `@FILE`, that one's text is given to the model, too."""
    instructions_logged: tuple[tuple[str, str], ...] = ()
    """Of an agent that logs what it was given: a file's name, and the pattern of a machine-written text whose group
    `text` is what stands in all files of that name, from the root down."""
    tools: Mapping[str, Tool] = {}
    """Its tools by name."""
    tools_like: Mapping[str, Tool] = {}
    """The others by a pattern of their names (`mcp__*`), the first that fits."""
    conventions: tuple[Convention, ...] = ()
    machine_written: tuple[tuple[str, EventKind], ...] = ()
    """How texts begin that the program writes in the person's name, and what they are; a beginning with a tag is the
    program's only as far as the tag goes, for a person may name or paste one."""
    machine_like: tuple[tuple[str, EventKind], ...] = ()
    """The same by pattern, matched at the start."""
    frame: tuple[str, ...] = ()
    """Patterns of the lines that the program writes around a command's output, or in its place."""
    nothing_found: tuple[str, ...] = ()
    """How results of its searching tools begin that found nothing."""
    stopped: tuple[tuple[CallStatus, tuple[str, ...]], ...] = ()
    """What the program writes at either end of a result that it calls complete, though it stopped the command: `error`
    where time was up, `cancelled` where the person did."""
    failures: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Classes of errors, by patterns of its results in lower case, beyond those that every agent has."""
    blocks_in_any_words: tuple[ToolClass, ...] = ()
    """Classes of its tools whose own errors are all known: other words are an extension's that blocked the call."""

    def tool(self, name: str) -> Tool | None:
        """The tool of that name; None when it is not known."""
        tool = self.tools.get(name)
        if tool is None:
            tool = next((like for pattern, like in self.tools_like.items() if fnmatchcase(name, pattern)), None)
        return tool

    def machine_kind(self, text: str) -> EventKind | None:
        """What a text is that the program wrote in the person's name; None for the person's words."""
        if _TEMPLATE.match(text):
            return "meta"
        if not text.startswith(self._beginnings):
            return next((kind for matches, kind in self._patterns if matches(text)), None)
        if self._goes_on_in_words(text):
            return None
        return next(kind for beginning, kind in self.machine_written if text.startswith(beginning))

    @cached_property
    def _beginnings(self) -> tuple[str, ...]:
        return tuple(beginning for beginning, _ in self.machine_written)

    @cached_property
    def _patterns(self) -> list[tuple[Callable[[str], object], EventKind]]:
        return [(re.compile(pattern).match, kind) for pattern, kind in self.machine_like]

    def _goes_on_in_words(self, text: str) -> bool:
        """Whether a tag that a text begins with is only named or pasted: words follow it, or its end, on its line."""
        tag = _TAG.match(text)
        if tag is None:
            return False
        at = text.rfind(f"</{tag[1]}>")
        return _WORDS.match(text, tag.end() if at < 0 else at + len(tag[1]) + len("</>")) is not None


_TAG = re.compile(r"<([a-z][\w-]*)>")
_TEMPLATE = re.compile(r"\[\[ ## \w+ ## \]\][ \t]*(?:\n|\Z)")
"""How a program that drives any agent heads the fields of its prompt (DSPy's ChatAdapter): nobody types it."""
_WORDS = re.compile(r"[ \t]+[^\W\d_]")


def named(*groups: tuple[Tool, str]) -> dict[str, Tool]:
    """A table of tools by name, from the names of each kind of tool, parted by blanks."""
    return {name: tool for tool, names in groups for name in names.split()}
