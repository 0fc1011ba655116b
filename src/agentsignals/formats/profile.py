"""What a tool is, in the words every agent shares. Each format maps its own tool names; this module maps arguments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, defstruct, field, structs
from msgspec.structs import astuple

from agentsignals.formats.records import UNREADABLE
from agentsignals.model import CallStatus, Convention, EventKind, Roles, ShellKind, ToolClass, ToolPurpose

if TYPE_CHECKING:
    from agentsignals.shell import Command


class Tool(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A tool of an agent: its class, and which of its arguments hold a file path or a shell command, best first."""

    class_: ToolClass
    path: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()
    """Which hold the folder that a command runs in."""
    limits: tuple[tuple[str, float], ...] = ()
    """Which hold how long it may run, each with the seconds that 1 stands for."""
    purpose: ToolPurpose | None = None
    roles: Roles | None = None
    """What its other arguments hold, where signals ask for it."""

    def to(self, purpose: ToolPurpose) -> Tool:
        """The same tool where its agent has it for something finer."""
        return structs.replace(self, purpose=purpose)

    def within(self, argument: str, seconds: float = 1.0) -> Tool:
        """The same tool where an argument limits how long it runs, in units of so many seconds."""
        return structs.replace(self, limits=(*self.limits, (argument, seconds)))


EDIT_ROLES = Roles(
    replace=(("old_string", "new_string"), ("oldText", "newText"), ("old_str", "new_str"), ("oldString", "newString")),
    whole=("content", "contents", "file_text"),
    part=("new_source", "insert_text"),
    patch=("patch", "patchText", "input", "diff"),
    several=("edits", "changes"),
    everywhere=("replace_all", "replaceAll", "allow_multiple"),
    line=("insert_line",),
    deed="command",
)
"""The spellings in use. Models write one agent's for another's tool, and the agents take them."""
OTHER = Tool(class_="other", path=("file_path", "path", "filePath"))
READ = Tool(class_="read", path=("file_path", "path", "filePath", "absolute_path", "notebook_path", "target_file"))
SEARCH = Tool(class_="search", path=("path", "dir_path", "directory"))
FIND = SEARCH.to("find_files")
EDIT = Tool(
    class_="edit",
    path=("file_path", "path", "filePath", "notebook_path", "absolute_path", "target_file"),
    roles=EDIT_ROLES,
)
WRITE = EDIT.to("write_file")
SHELL = Tool(
    class_="shell",
    command=("command", "cmd", "script"),
    folder=("workdir",),
    roles=Roles(
        manner=(
            *("description", "timeout", "timeout_ms"),
            *("run_in_background", "background", "is_background", "isBackground"),
        )
    ),
)
NO_SHELL = Tool(class_="shell")
"""Runs code that is no shell's."""
PLAN = Tool(
    class_="plan",
    roles=Roles(
        steps=("todos", "plan", "items", "tasks", "task_list"),
        plan=("plan",),
        step=("content", "step", "subject", "description", "title", "text"),
        task="taskId",
        task_name="subject",
        state="status",
        waits_for="addBlockedBy",
        holds_up="addBlocks",
    ),
)
TASK, WEB = Tool(class_="task"), Tool(class_="web")
HAND_IN, PLAN_MODE, SKILL = PLAN.to("plan_handoff"), PLAN.to("plan_mode"), TASK.to("skill")
ASK = Tool(class_="ask", roles=Roles(question="question", questions="questions"))
MCP, ASIDE = Tool(class_="mcp"), Tool(class_="other")
"""`ASIDE`: about none of the files."""


class Described(Struct, gc=False, kw_only=True):
    """One call in shared words."""

    tool: Tool
    """What it is used for here: a text editor that shows a file reads it."""
    class_: ToolClass
    shell_kind: ShellKind | None = None
    path: str | None = None
    command: str | None = None
    does: Command | None = None
    """What a shell command does."""
    folder: str | None = None
    """Where a shell command runs, when its arguments say so."""
    limit_s: float | None = None
    """How long it may run, when its arguments say so."""


_LOOKS = "view"
"""What an editor for all is asked to do when it is to change nothing."""


class _Arguments(Struct, frozen=True, gc=False, kw_only=True):
    """What reads of a tool's arguments those that say what a call is about, and at which places they then stand."""

    decode: Callable[[bytes | str], Any]
    path: tuple[int, ...]
    command: tuple[int, ...]
    folder: tuple[int, ...]
    deed: int | None
    limits: tuple[tuple[int, float], ...]


@cache
def _arguments(tool: Tool) -> _Arguments:
    deed = tool.roles.deed if tool.roles is not None else ""
    names = dict.fromkeys((*tool.path, *tool.command, *tool.folder, deed, *(name for name, _ in tool.limits)))
    place = {name: n for n, name in enumerate(name for name in names if name)}
    fields = [(f"argument_{n}", object, field(default=None, name=name)) for name, n in place.items()]
    return _Arguments(
        decode=msgspec.json.Decoder(defstruct("Arguments", fields, gc=False)).decode,
        path=tuple(place[name] for name in tool.path),
        command=tuple(place[name] for name in tool.command),
        folder=tuple(place[name] for name in tool.folder),
        deed=place.get(deed),
        limits=tuple((place[name], seconds) for name, seconds in tool.limits),
    )


class _CommandReader(Struct, frozen=True, gc=False):
    """What a command line does, and whether it or a path waits for something."""

    parse: Callable[[str], Command]
    is_look: Callable[[str], bool]
    is_log: Callable[[str], bool]


@cache  # an import costs 1 µs a call, also when all is loaded
def _command_reader() -> _CommandReader:
    """Loaded with the first call that needs it."""
    from agentsignals.shell import parse  # noqa: PLC0415  (patterns that a run with nothing to read is without)
    from agentsignals.shell.outputs import is_log, is_look  # noqa: PLC0415  (as above)

    return _CommandReader(parse, is_look, is_log)


def describe(tool: Tool, name: str, arguments: bytes | str) -> Described:
    """Class, path and command of one call. Arguments that are no JSON object leave path and command unknown."""
    if tool is OTHER and name.startswith("mcp__"):
        tool = MCP
    if not tool.path and not tool.command and not tool.limits:
        return Described(tool=tool, class_=tool.class_)
    where = _arguments(tool)
    try:
        values = astuple(where.decode(arguments))
    except UNREADABLE:
        return Described(tool=tool, class_=tool.class_)
    if where.deed is not None and tool.class_ == "edit" and values[where.deed] == _LOOKS:
        tool = structs.replace(READ, path=tool.path)
    path = _first_text(values, where.path)
    command = _first_text(values, where.command) if tool.command else None
    limit = _limit(values, where.limits) if tool.limits else None
    if command is None and path is not None and tool.class_ == "read" and tool.purpose is None:
        tool = tool.to("poll") if _command_reader().is_log(path) else tool
    if command is None or tool.class_ != "shell":
        return Described(tool=tool, class_=tool.class_, path=path, command=command, limit_s=limit)
    reader = _command_reader()
    does = reader.parse(command)
    return Described(
        tool=tool if tool.purpose is not None or not reader.is_look(command) else tool.to("poll"),
        class_=SHELL_CLASS.get(does.kind, "shell"),
        shell_kind=does.kind,
        path=does.path,
        command=command,
        does=does,
        folder=next((folder for n in where.folder if isinstance(folder := values[n], str)), None),
        limit_s=limit,
    )


def _limit(values: tuple[object, ...], places: tuple[tuple[int, float], ...]) -> float | None:
    for n, seconds in places:
        value = values[n]
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return value * seconds
    return None


SHELL_CLASS: dict[ShellKind, ToolClass] = {"test": "test", "read": "read", "search": "search"}
"""A shell command that only runs tests, reads or searches has the class of what it does; the rest stay `shell`."""


def _first_text(values: tuple[object, ...], places: tuple[int, ...]) -> str | None:
    for n in places:
        value = values[n]
        if value is None:
            continue
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return _command_line(value)
    return None


def _command_line(words: list[str]) -> str:
    """A command given as words: the script when they ask a shell to run one (`bash -lc …`), else the words, quoted."""
    asks_shell = len(words) > 2 and words[-2].lower() in ("-c", "-lc", "-ic", "-command", "/c")
    return words[-1] if asks_shell else shlex.join(words)


# Blocks in tags that agents put into a person's words. Looked for from left to right: one that is never closed
# costs no more than the text is long, where a pattern would read on to the end for each.

_SPACE = re.compile(r"\s*")


def between(text: str, tag: str) -> str | None:
    """What the first block of that tag holds, without outer blanks; None where there is none that ends."""
    start = text.find(f"<{tag}>")
    inside = start + len(tag) + 2
    end = text.find(f"</{tag}>", inside) if start >= 0 else -1
    return text[inside:end].strip() if end >= 0 else None


def without(text: str, opening: re.Pattern[str]) -> str:
    """The text without the blocks that begin with `opening`, whose group is the tag, and the blanks behind each."""
    parts: list[str] = []
    unclosed: set[str] = set()
    at = 0
    for tag_start in opening.finditer(text):
        tag = tag_start[1]
        if tag_start.start() < at or tag in unclosed:
            continue
        end = text.find(f"</{tag}>", tag_start.end())
        if end < 0:
            unclosed.add(tag)
            continue
        parts.append(text[at : tag_start.start()])
        behind = _SPACE.match(text, end + len(tag) + 3)
        at = behind.end() if behind is not None else end
    return "".join([*parts, text[at:]])


# What is known of an agent: one record a folder, loaded without the reader beside it.


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
