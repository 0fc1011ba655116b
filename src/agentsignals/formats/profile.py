"""An agent's profile: its homes, its tools in shared words, and what its program writes in the person's name."""

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
from agentsignals.model.lazy import deferred_pattern

if TYPE_CHECKING:
    from agentsignals.shell import Command


class Tool(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A tool of an agent: its class, and the names of its arguments by what they hold, best first."""

    class_: ToolClass
    path: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()
    """The folder that a command runs in."""
    limits: tuple[tuple[str, float], ...] = ()
    """Limit of its run time, each name with the seconds that 1 stands for."""
    purpose: ToolPurpose | None = None
    roles: Roles | None = None
    """Roles of its other arguments, as far as signals ask for them."""

    def to(self, purpose: ToolPurpose) -> Tool:
        return structs.replace(self, purpose=purpose)

    def within(self, argument: str, seconds: float = 1.0) -> Tool:
        """Return the tool with an argument that limits how long it runs, in units of `seconds`."""
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
"""All spellings in use. Models write one agent's arguments for another's tool, and the agents accept them."""
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
"""Runs code that is not a shell's."""
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
"""`ASIDE`: a tool that concerns no file."""


class Described(Struct, gc=False, kw_only=True):
    """A call in shared words."""

    tool: Tool
    """The tool as it is used here: a text editor that shows a file reads it."""
    class_: ToolClass
    shell_kind: ShellKind | None = None
    path: str | None = None
    command: str | None = None
    does: Command | None = None
    """The effects of a shell command."""
    folder: str | None = None
    """The folder that a shell command runs in, if its arguments say so."""
    limit_s: float | None = None
    """Limit of its run time, if its arguments say so."""


_VIEW = "view"
"""The operation of an all-purpose editor that changes nothing."""


@cache
def _decoder(tool: Tool) -> tuple[Callable[[bytes | str], Any], tuple[str, ...]]:
    """Return a decoder of the arguments of a tool that say what a call is about, and their names in order."""
    deed = tool.roles.deed if tool.roles is not None else ""
    wanted = (*tool.path, *tool.command, *tool.folder, deed, *(name for name, _ in tool.limits))
    names = tuple(name for name in dict.fromkeys(wanted) if name)
    fields = [(f"argument_{n}", object, field(default=None, name=name)) for n, name in enumerate(names)]
    return msgspec.json.Decoder(defstruct("Arguments", fields, gc=False)).decode, names


@cache  # an import costs 1 µs a call, also when all is loaded
def _command_reader() -> tuple[Callable[[str], Command], Callable[[str], bool], Callable[[str], bool]]:
    """Return the functions of `shell` that read a command line. It is loaded with the first call that needs them."""
    from agentsignals.shell import parse  # noqa: PLC0415  (patterns that a run with nothing to read is without)
    from agentsignals.shell.commands import is_log, is_polling  # noqa: PLC0415  (as above)

    return parse, is_polling, is_log


def describe(tool: Tool, name: str, arguments: bytes | str) -> Described:
    """Read class, path and command of a call. Arguments that are no JSON object leave path and command unknown."""
    if tool is OTHER and name.startswith("mcp__"):
        tool = MCP
    if not tool.path and not tool.command and not tool.limits:
        return Described(tool=tool, class_=tool.class_)
    decode, names = _decoder(tool)
    try:
        values = dict(zip(names, astuple(decode(arguments)), strict=True))
    except UNREADABLE:
        return Described(tool=tool, class_=tool.class_)
    if tool.class_ == "edit" and tool.roles is not None and values.get(tool.roles.deed) == _VIEW:
        tool = structs.replace(READ, path=tool.path)
    path = _first_text(values, tool.path)
    command = _first_text(values, tool.command) if tool.command else None
    limit = None
    for limit_name, seconds in tool.limits:
        value = values[limit_name]
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            limit = value * seconds
            break
    if command is None and path is not None and tool.class_ == "read" and tool.purpose is None:
        tool = tool.to("poll") if _command_reader()[2](path) else tool
    if command is None or tool.class_ != "shell":
        return Described(tool=tool, class_=tool.class_, path=path, command=command, limit_s=limit)
    parse, is_polling, _ = _command_reader()
    does = parse(command)
    return Described(
        tool=tool if tool.purpose is not None or not is_polling(command) else tool.to("poll"),
        class_=SHELL_CLASS.get(does.kind, "shell"),
        shell_kind=does.kind,
        path=does.path,
        command=command,
        does=does,
        folder=next((folder for of in tool.folder if isinstance(folder := values[of], str)), None),
        limit_s=limit,
    )


SHELL_CLASS: dict[ShellKind, ToolClass] = {"test": "test", "read": "read", "search": "search"}
"""Shell commands that only run tests, read or search have the class of what they do. The rest stay `shell`."""


def _first_text(values: dict[str, object], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = values[name]
        if value is None:
            continue
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # Words that ask a shell to run a script (`bash -lc …`) stand for the script.
            asks_shell = len(value) > 2 and value[-2].lower() in ("-c", "-lc", "-ic", "-command", "/c")
            return value[-1] if asks_shell else shlex.join(value)
    return None


_SPACE = deferred_pattern(r"\s*")


def tagged(text: str, tag: str) -> str | None:
    """Return the content of the first block `<tag>…</tag>` of a text, stripped. None if there is none that ends."""
    start = text.find(f"<{tag}>")
    inside = start + len(tag) + 2
    end = text.find(f"</{tag}>", inside) if start >= 0 else -1
    return text[inside:end].strip() if end >= 0 else None


def without_tagged(text: str, opening: re.Pattern[str]) -> str:
    """Return a text without the tagged blocks that begin with `opening`, whose group is the tag.

    A tag that is never closed costs no more than the text is long. A pattern would read on to the end for each.
    """
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
    """Facts about an agent. They are loaded without the reader of its files."""

    agent: str = ""
    aliases: tuple[str, ...] = ()
    """Other names under which data sets file its sessions."""
    maker: str = ""
    """Maker of the models whose prices it knows (`prices.maker`): other models are priced as one of these. Empty
    for an agent that has prices of many makers."""
    homes: tuple[str, ...] = ()
    """Folders and databases in which it keeps its sessions on a machine. `~` is the home folder. A first `$NAME` is an
    environment variable; without it nothing is looked for. Names below may hold `*`, or be `..` for what lies next to a
    folder. `FILE.json:KEY/BELOW` is BELOW in each folder that FILE lists as KEY."""
    state: tuple[str, ...] = ()
    """Files in its homes that hold no session, as globs of the path from the program's own folder on (`*` also matches
    `/`). What lies in that folder outside its homes is state in any case."""
    instructions: tuple[str, ...] = ()
    """Instruction files of a repository that it reads, in the root or a folder, as Git globs."""
    instructions_perhaps: tuple[str, ...] = ()
    """Instruction files that it reads in some versions or settings, or if there are no others."""
    expands_imports: bool = False
    """`@FILE` in an instruction file adds the text of that file."""
    instructions_logged: tuple[tuple[str, str], ...] = ()
    """For agents that log the instructions they were given: a file name, and the pattern of a machine-written text
    whose group `text` holds all files of that name, from the root down."""
    tools: Mapping[str, Tool] = {}
    """Tools by name."""
    tools_like: Mapping[str, Tool] = {}
    """Other tools by a pattern of their names (`mcp__*`). The first that fits counts."""
    conventions: tuple[Convention, ...] = ()
    machine_written: tuple[tuple[str, EventKind], ...] = ()
    """Beginnings of texts that the program writes in the person's name, and the kind of event they are. A beginning
    with a tag counts only if the text ends with the tag: a person may name or paste one."""
    machine_like: tuple[tuple[str, EventKind], ...] = ()
    """Patterns of such texts, matched at the start."""
    frame: tuple[str, ...] = ()
    """Patterns of lines that the program writes around a command's output, or in its place."""
    nothing_found: tuple[str, ...] = ()
    """Beginnings of results of its search tools that found nothing."""
    stopped: tuple[tuple[CallStatus, tuple[str, ...]], ...] = ()
    """Texts at either end of a result that the program calls complete, though it stopped the command: `error` if time
    was up, `cancelled` if the person stopped it."""
    failures: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Error classes by patterns of its results in lower case, in addition to those of every agent."""
    blocks_in_any_words: tuple[ToolClass, ...] = ()
    """Classes of its tools whose own errors are all known. Another text is from an extension that blocked the call."""

    def tool(self, name: str) -> Tool | None:
        """Return the tool of that name. None if it is not known."""
        tool = self.tools.get(name)
        if tool is None:
            tool = next((like for pattern, like in self.tools_like.items() if fnmatchcase(name, pattern)), None)
        return tool

    def machine_kind(self, text: str) -> EventKind | None:
        """Return the kind of a text that the program wrote in the person's name. None for the person's words.

        Some texts are known by what this agent's program writes, others by their kind, for every agent: a notice in a
        tag that is named for it, the report of a hook, the task that a parent agent hands on. In doubt a text is the
        person's.
        """
        if text.startswith(self._beginnings):
            tag = _TAG.match(text)
            if tag is not None:  # a tag is only named or pasted if words follow it, or its end, on its line
                end = text.rfind(f"</{tag[1]}>")
                if _WORDS.match(text, tag.end() if end < 0 else end + len(tag[1]) + len("</>")):
                    return None
            return next(kind for beginning, kind in self.machine_written if text.startswith(beginning))
        listed = next((kind for matches, kind in self._patterns if matches(text)), None)
        if listed is not None or not text.startswith(_MACHINE_STARTS):
            return listed
        if (announced := _ANNOUNCED.match(text)) is not None:
            return "notification" if self.machine_kind(text[announced.end() :].rstrip()) is not None else None
        return _notice_kind(text) or next((kind for pattern, kind in _PROGRAM_TEXTS if pattern.match(text)), None)

    @cached_property
    def _beginnings(self) -> tuple[str, ...]:
        return tuple(beginning for beginning, _ in self.machine_written)

    @cached_property
    def _patterns(self) -> list[tuple[Callable[[str], object], EventKind]]:
        return [(re.compile(pattern).match, kind) for pattern, kind in self.machine_like]


_TAG = deferred_pattern(r"<([a-z][\w-]*)(?:\s[^<>]*)?>")
_WORDS = deferred_pattern(r"[ \t]+[^\W\d_]")

# -- texts of programs by their kind, for every agent

_MACHINE_STARTS = ("<", "[[", *"ACENOPSTUY")
"""First characters of all texts that the rules below know. Most prompts begin otherwise."""
_SENDERS = frozenset((
    "system", "agent", "subagent", "teammate", "team", "peer", "session", "task", "background", "hook", "mcp",
    "coordinator", "channel", "slack", "discord", "telegram", "voice", "monitor", "scheduled", "cron", "remote",
    "worker", "orchestrator", "parent", "internal", "fetched",
))  # fmt: skip
_NOTICES = frozenset((
    "notification", "notifications", "update", "updates", "relay", "reminder", "caveat", "notice", "alert", "event",
    "events", "talk", "heartbeat", "hook",
))  # fmt: skip
_CONTEXT = frozenset(("reminder", "caveat", "context", "output", "hook"))
"""Last words of tags around what the model is to know: nobody sent it."""
_OF_PROGRAMS = frozenset(
    (
        "fetched-web-content",
        "environment-context",
        "internal-context",
        "hook-output",
        "hook-context",
        "prompt-submit-hook",
    )
)
_BLOCK = deferred_pattern(r"<([a-z][a-z0-9]*(?:[_-][a-z0-9]+)+)(?:\s[^<>]*)?>")
_NOTE = deferred_pattern(r"(?:IMPORTANT|NOTE): |Read the output file\b|This (?:message )?(?:came from|was sent by) an")
"""A note to the model below a notice."""
_ANNOUNCED = deferred_pattern(
    r"(?:An?|Another|The|This|Your)\b[^\n<]{0,120}"
    r"\b(?:session|agent|subagent|teammate|peer|task|hook|monitor|channel|server|coordinator|worker)s?\b"
    r"[^\n<]{0,120}:[ \t]*\n\s*(?=<)"
)
"""A sentence that says who sent the notice below it."""
_PROGRAM_TEXTS: tuple[tuple[re.Pattern[str], EventKind], ...] = (
    # Heading of a prompt field of DSPy's ChatAdapter
    (deferred_pattern(r"\[\[ ## \w+ ## \]\][ \t]*(?:\n|\Z)"), "meta"),
    (
        deferred_pattern(
            r"(?:(?:Pre|Post)\w{2,20}|\w{2,20}(?:Submit|Expansion|Start|End|Stop)|Stop|Notification|PermissionRequest|Operation"
            r"|Prompt|Execution|Elicitation|Tool use|Continuation)(?::[\w|*.-]+)? (?:operation )?(?:was )?"
            r"(?:blocked|stopped|denied|cancelled|prevented|rejected) by (?:an? |the )?(?:\w+ )?hook(?: [\w./-]+)?"
            r"(?::[ \t]*(?:\n|\[|\Z)|[ \t]*(?:\n|\Z))"
        ),
        "hook_block",
    ),
    # A mark that a program puts on a task
    (
        deferred_pattern(r"<!-- (?:pi-[\w-]+|[\w-]*(?:task|agent|session|worker)[\w-]*)(?::[\w.-]+| v\d[\w.]*) -->"),
        "meta",
    ),
    # What a parent agent hands to a child
    (
        deferred_pattern(
            r"You are (?:an?|the) (?:[\w-]+ ){0,4}(?:instance|subagent|sub-agent|agent|worker|child)\b[^\n]{0,80}"
            r"\bdelegated\b"
            r"|You are an? (?:fresh|new|isolated|separate) (?:[\w-]+ ){0,2}(?:instance|subagent|agent|session)\b"
            r"[^\n]{0,80}\btask\b"
        ),
        "meta",
    ),
)


def _notice_kind(text: str) -> EventKind | None:
    """Return the kind of a text that blocks in tags of programs are the whole of. None for another one."""
    at, end = 0, len(text)
    kind: EventKind | None = None
    while at < end:
        opening = _BLOCK.match(text, at)
        if opening is None:
            return kind if _NOTE.match(text, at) else None
        words = opening[1].replace("_", "-").split("-")
        senders = _SENDERS.intersection(words[:-1])
        is_message = words[-1] in ("message", "messages") and senders != {
            "system"
        }  # a person may write a system message
        is_of_program = (senders and (is_message or words[-1] in _NOTICES)) or "-".join(words[-3:]) in _OF_PROGRAMS
        closing = text.find(f"</{opening[1]}>", opening.end()) if is_of_program else -1
        if closing < 0:
            return None
        kind = kind or ("meta" if words[-1] in _CONTEXT else "notification")
        behind = _SPACE.match(text, closing + len(opening[1]) + len("</>"))
        at = behind.end() if behind is not None else end
    return kind


_SKILL_END = deferred_pattern(
    r"^(?:Base directory (?:for|of) (?:this|the) skill|Skill (?:base )?directory): \S[^\n]*"
    r"(?:\n[^\n]*\bskill\b[^\n]*)*(?:\n|\Z)",
    re.MULTILINE,
)


_SKILL_TAG = deferred_pattern(r"<(skill(?:[_-](?:content|body|instructions|definition|file))?)(?:\s[^<>]*)?>")


def without_skill(text: str) -> tuple[str, str]:
    """Return the body of a skill that a program put before the person's words, and the words.

    It is a block in a tag, with a line to itself; or it ends with the lines that say where the skill's files are. Where
    they are its first ones, all of it is the body.
    """
    if (tag := _SKILL_TAG.match(text)) is not None:
        end = text.find(f"</{tag[1]}>", tag.end())
        behind = end + len(tag[1]) + len("</>")
        if end >= 0 and text[behind:].partition("\n")[0].strip() == "":
            return text[:behind], text[behind:].strip()
    if "irectory" not in text:
        return "", text
    ends = list(_SKILL_END.finditer(text))
    if not ends:
        return "", text
    last = ends[-1]
    return (text, "") if last.start() == 0 else (text[: last.end()].rstrip(), text[last.end() :].strip())


def named(*groups: tuple[Tool, str]) -> dict[str, Tool]:
    """Return tools by name, from the names of each kind of tool, separated by spaces."""
    return {name: tool for tool, names in groups for name in names.split()}
