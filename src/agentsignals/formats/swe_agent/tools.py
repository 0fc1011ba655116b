"""Records of SWE-agent trajectories, and its actions: their tools, outcomes and edits. A malformed step costs only
itself."""

import posixpath
import re
import shlex
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, count_lines, created, inserted, replaced
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.outcome import error_class
from agentsignals.formats.profile import Tool
from agentsignals.formats.records import decoded, inside
from agentsignals.formats.swe_agent import PROFILE
from agentsignals.model import CallStatus, ShellKind, ToolCall, ToolClass


class Step(Struct, gc=False, kw_only=True):
    """One entry of the trajectory: a model call and what came of its action."""

    action: object = None
    observation: object = None
    response: object = None
    thought: object = None
    reasoning_content: object = None
    execution_time: object = None
    state: Raw = Raw()
    """An object; a JSON string in old files."""
    query: Raw = Raw()
    """The whole prompt again; called `messages` for a while."""
    messages: Raw = Raw()


PARTS = frozenset(("text", "image_url", "image", "tool_result"))
"""The kinds of blocks that there are; pictures have no words."""


class Message(Struct, kw_only=True):
    """One message of the history."""

    role: str = ""
    content: object = None
    message_type: object = None
    thought: object = None
    action: object = None
    is_demo: object = None
    tool_calls: list[dict[str, Any]] | None = None
    thinking_blocks: list[dict[str, Any]] | None = None

    @property
    def is_demonstration(self) -> bool:
        """It shows how another task was solved."""
        return bool(self.is_demo) or self.message_type == "demonstration"

    @property
    def type(self) -> str:
        """Return the kind of message by which it is counted."""
        if self.is_demonstration:
            return "demonstration"
        return self.message_type if isinstance(self.message_type, str) else self.role

    @property
    def kinds(self) -> list[str]:
        blocks = self.content if isinstance(self.content, list) else []
        return [as_text(b.get("type")) if isinstance(b, dict) else "" for b in blocks]


class Document(Struct, kw_only=True):
    """A trajectory file. `attempts` are those of a run that retries; what stands beside them repeats the best."""

    trajectory: list[Raw] | None = None
    history: list[Raw] | None = None
    attempts: list[Raw] | None = None
    info: Raw = Raw()
    replay_config: Raw = Raw()
    environment: object = None


class Attempted(Struct):
    """One attempt of a run that retries."""

    trajectory: list[Raw] = field(default_factory=list)
    history: list[Raw] = field(default_factory=list)
    info: Raw = Raw()


def state_of(step: Step) -> tuple[str, str]:
    """Return the working folder and the open file after a step, as far as it says so."""
    state = decoded(step.state, dict[str, Any]) or decoded(decoded(step.state, str), dict[str, Any])
    return as_text(inside(state, "working_dir")), as_text(inside(state, "open_file"))


def prompt_of(step: Step) -> list[Message]:
    """The messages that a model call was given."""
    return decoded(step.query or step.messages, list[Message]) or []


def config_of(raw: Raw) -> dict[str, Any]:
    """The run's configuration: an object, or one as a JSON string."""
    config = decoded(raw, Any)
    config = decoded(config, Any) if isinstance(config, str) else config
    return config if isinstance(config, dict) else {}


def text_of(content: object) -> str:
    """The words of a message: a string, or blocks of type `text`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (b.get("text") for b in content if isinstance(b, dict))
    return "\n".join(t for t in texts if isinstance(t, str))


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


# Models with function calling name a tool and its arguments. Others write a command line: a tool's if it begins with
# the tool's name, else the shell's.

WINDOWED = frozenset(("open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert"))
"""Tools that work on the open file and show a window of it."""
_POSITIONAL: dict[str, tuple[str, ...]] = {
    "open": ("path", "line_number"),
    "goto": ("line_number",),
    "create": ("filename",),
    "edit": ("search", "replace", "replace-all"),
    "insert": ("text", "line"),
    "str_replace_editor": ("command", "path"),
    "find_file": ("file_name", "dir"),
    "search_dir": ("search_term", "dir"),
    "search_file": ("search_term", "file"),
    "filemap": ("file_path",),
    "view_image": ("image_file",),
    "set_cursors": ("start_line", "end_line"),
}
_RANGE = re.compile(r"edit[ \t]+(\d{1,9}):(\d{1,9})[ \t]*[^\n]{0,300}(?:\n|$)")
_END_OF_EDIT = "end_of_edit"
_LONGEST_SPLIT = 200_000


class Action(Struct):
    """One action: the tool, its arguments by name, and the same as JSON text."""

    name: str
    options: dict[str, Any]
    arguments: str

    @property
    def tool(self) -> Tool | None:
        return PROFILE.tool(self.name)

    @property
    def path(self) -> str | None:
        """The file or folder among the arguments."""
        named = (self.text(name) for name in ("path", "filename", "file", "file_path", "dir", "image_file"))
        return next(filter(None, named), None)

    def text(self, name: str) -> str:
        return as_text(self.options.get(name))

    def number(self, name: str) -> int | None:
        """A line number; agents write it as a number or as text."""
        value = self.options.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            value = int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def called(call: dict[str, Any]) -> Action | None:
    """Return the action of a function call. None if it names no tool."""
    name, passed = inside(call, "function", "name"), inside(call, "function", "arguments")
    arguments = passed if isinstance(passed, str) else _dumped(passed or {})
    return Action(name, decoded(arguments, dict[str, Any]) or {}, arguments) if isinstance(name, str) else None


def written(line: str) -> Action:
    """The action of a command line."""
    verb = line.split(None, 1)[0] if line.strip() else ""
    if verb not in PROFILE.tools or verb == "bash":
        arguments: dict[str, Any] = {"command": line}
        return Action("bash", arguments, _dumped(arguments))
    first, _, below = line.partition("\n")
    at = _RANGE.match(line) if verb == "edit" else None
    if at or first.strip() == "edit":  # `edit 3:5` or `edit` with the new text below, up to `end_of_edit`
        arguments = {"start_line": int(at[1]), "end_line": int(at[2])} if at else {}
        arguments["replacement_text"] = below.removesuffix("\n").removesuffix(_END_OF_EDIT)
        return Action(verb, arguments, _dumped(arguments))
    try:
        words = shlex.split(line[:_LONGEST_SPLIT])[1:]
    except ValueError:  # its quotes don't close
        words = line[:_LONGEST_SPLIT].split()[1:]
    arguments, key = dict(zip(_POSITIONAL.get(verb, ("argument",)), words, strict=False)), ""
    if verb == "str_replace_editor":
        for word in words[2:]:
            if word.startswith("--"):
                key = word[2:]
            elif key:
                arguments[key] = f"{arguments[key]} {word}" if key in arguments else word
    return Action(verb, arguments, _dumped(arguments))


def _dumped(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


# A trajectory keeps a command's output but no exit code.

_END = 4_000
_LAST = 600
_SHELL_SAYS = re.compile(r"(?:-?bash|/bin/(?:ba|da)?sh|sh|zsh): (?:line )?[^\n]{1,2000}$", re.MULTILINE)
_RAISED = re.compile(r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Expired)\b")
_TESTS_FAILED = re.compile(r"\b[1-9]\d{0,6} (?:failed|errors?)\b|^FAILED \((?:failures|errors)=", re.MULTILINE)
_CANCELLED = ("was cancelled because it took more than", "EXECUTION TIMED OUT", "COMMAND TIMED OUT")
_NOT_RUN = ("command contained syntax errors and was NOT executed",)
_HARNESS_CHARS = 2_000


def failure(text: str, command: str, class_: ToolClass, kind: ShellKind | None) -> str | None:
    """The error class of a command whose output shows that it failed; None when nothing shows it.

    What shows it: the harness stopped it, the shell could not run it, a test runner's summary, an exception that ends
    the output, or a program that says one line under its own name and nothing else. No output shows success.
    """
    begin = text[:_HARNESS_CHARS]
    if any(words in begin for words in _CANCELLED):
        return "timeout"
    if any(words in begin for words in _NOT_RUN):
        return "compile_error"
    if class_ == "test" and _TESTS_FAILED.search(text[-_LAST:]):
        return "test_failed"
    end = text[-_END:].rstrip()
    has_trace = "Traceback (most recent call last)" in end or "SyntaxError" in end
    raised = has_trace and _RAISED.match(end.rpartition("\n")[2])
    # `grep: unmatched (`, `cat: x: No such file or directory`: nothing was found or read besides.
    line = text.strip()
    program, _, rest = line.partition(": ") if "\n" not in line and len(line) <= _LAST else ("", "", "")
    says_one_line = rest and program.isidentifier() and program in command.split()
    if _SHELL_SAYS.match(text.lstrip()) or raised or says_one_line:
        return error_class(f"Exit code 1\n{text}", class_, kind)
    return None


_EDITOR_DID = (
    "Here's the ", "File created successfully", "The file ", "Last edit to ", "<NOTE>This file is too large",
)  # fmt: skip
"""First words of the editor's answer when it succeeded. Any other answer says why it failed."""
_NOT_SAVED = "Your proposed edit has introduced new syntax error"
"""The linter refused the edit: the file is as it was."""
_TOOL_REFUSED = (
    "Error", "Usage:", "Invalid", "No file open", "Text not found", "The search string", "Warning: no edit",
    "edit: ", "insert: ", "Wrong flag!",
)  # fmt: skip
_NOT_THERE = (" not found", " does not exist")
_FIRST = 300


def outcome(action: Action, call: ToolCall, observation: str) -> tuple[CallStatus, str | None]:
    """Status, and the class of the error."""
    if action.name == "bash":
        error = failure(observation, call.command or "", call.class_, call.shell_kind)
        return ("error", error) if error else ("ok", None)
    opening = observation.lstrip()[:_FIRST]
    # `File a.py not found`, `Directory src does not exist`: one line, and nothing below it.
    first, _, rest = opening.partition("\n")
    is_not_there = not rest.strip() and first.rstrip(". ").endswith(_NOT_THERE)
    if action.name == "str_replace_editor":
        is_done = opening.startswith(_EDITOR_DID) and not is_not_there
        return ("ok", None) if is_done else ("error", error_class(opening, "edit", None))
    if opening.startswith(_NOT_SAVED):
        return "error", "lint_failed"
    if is_not_there:
        return "error", "not_found"
    is_refused = opening.startswith(_TOOL_REFUSED)
    return ("error", error_class(opening, call.class_, call.shell_kind)) if is_refused else ("ok", None)


# The arguments of an edit say what was written; the answer shows the place with line numbers.

_OPEN_FILE = re.compile(r"\[File: ([^\n]{1,500}) \((\d{1,9}) lines total\)\]")
_NUMBERED = re.compile(r"[ \t]{0,12}(\d{1,9})(?:\t|:)([^\n]*)")
_SHOWN_CHARS = 60_000
_SHOWN_LINES, _WANTED_LINES = 2_000, 1_000
"""A text is looked for in so many lines, and when it has no more: an answer shows a snippet around the change."""


class Window:
    """The files as the tools showed them: which one is open, and how long each is."""

    def __init__(self) -> None:
        self.open: str | None = None
        self._lengths: dict[str, int] = {}

    def saw(self, observation: str) -> tuple[int | None, int | None]:
        """Takes in an answer: how long the file that is open now was before, and how long it is."""
        at = observation.find("[File: ")
        match = _OPEN_FILE.match(observation, at) if at >= 0 else None
        if match is None:
            return None, None
        self.open = match[1]
        name = posixpath.basename(match[1])  # some tools tell the whole path, some the one they were given
        before, after = self._lengths.get(name), int(match[2])
        self._lengths[name] = after
        return before, after


def record(builder: SessionBuilder, call: ToolCall, action: Action, observation: str, window: Window) -> None:
    """The change of an action that succeeded, with the lines it touched where they can be told."""
    before, after = window.saw(observation)
    if call.class_ != "edit" or call.status != "ok":
        return
    command = action.text("command") if action.name == "str_replace_editor" else action.name
    hunks: list[Hunk] = []
    if command == "create":
        hunks = [created("" if action.name == "create" else action.text("file_text"))]
    elif command == "str_replace":
        hunks = [_placed(action.text("old_str"), action.text("new_str"), observation)]
    elif action.name == "insert":
        start = _place(action.text("text"), observation)
        hunks = [inserted(action.text("text"), start - 1 if start is not None else None)]
    elif command == "insert":
        line, n = action.number("insert_line"), action.text("new_str").count("\n") + 1
        hunks = [_hunk(n, 0, line + 1 if line is not None else None)]
    elif action.name != "str_replace_editor" and "search" in action.options:
        hunks = [_placed(action.text("search"), action.text("replace"), observation)]
    elif action.name == "edit":
        # `edit 3:5`. The end may lie behind the last line: how much the file grew says how many lines went.
        start, end = action.number("start_line"), action.number("end_line")
        added = count_lines(action.text("replacement_text"))
        removed = None if start is None or end is None else max(end - start + 1, 0)
        if before is not None and after is not None and added - (after - before) >= 0:
            removed = added - (after - before)
        if start is None:
            start = _place(action.text("replacement_text"), observation)
        hunks = [_hunk(added, removed, start)]
    # Else it is undo_edit: what it brings back is not told.
    builder.edit(call, None, "create" if command == "create" else "modify", hunks)


def _hunk(added: int, removed: int | None, start: int | None) -> Hunk:
    if start is None:
        return Hunk(added=added, removed=removed)
    return Hunk(start_line=start, end_line=start + max(added, 1) - 1, added=added, removed=removed, old_start=start)


def _placed(old: str, new: str, observation: str) -> Hunk:
    """A replaced text, at the place where the answer shows the new one; sizes only when that can't be told."""
    hunk = replaced(old, new)
    start = _place(new, observation, whole_lines=False)
    if start is None or not (hunk.added or hunk.removed):
        return hunk
    before, after = old.split("\n"), new.split("\n")
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    return _hunk(hunk.added or 0, hunk.removed, start + same)


def _place(text: str, observation: str, whole_lines: bool = True) -> int | None:
    """The line at which the numbered lines of an answer show a text; None when they show it nowhere, or twice.

    It may begin and end in the middle of a line. Of `whole_lines` the last line break is no line.
    """
    if not text.strip():
        return None
    wanted = [line.expandtabs().rstrip() for line in (text.removesuffix("\n") if whole_lines else text).split("\n")]
    if len(wanted) > _WANTED_LINES:
        return None
    matches = (_NUMBERED.match(line) for line in observation[:_SHOWN_CHARS].split("\n"))
    shown = [(int(m[1]), m[2].expandtabs().rstrip()) for m in matches if m][:_SHOWN_LINES]
    last, found = len(wanted) - 1, None
    for n in range(len(shown) - last):
        if last == 0:
            is_here = wanted[0] in shown[n][1]
        else:
            is_here = (
                shown[n][1].endswith(wanted[0])
                and shown[n + last][1].startswith(wanted[last])
                and all(shown[n + k][1] == wanted[k] for k in range(1, last))
            )
        if is_here and found is not None:
            return None
        found = shown[n][0] if is_here else found
    return found
