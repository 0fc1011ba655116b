"""Read SWE-agent trajectories, each an attempt with its session and treatment."""

import posixpath
import re
import shlex
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import Hunk, count_lines, created, inserted, replaced
from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.documents import each, saw_again, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.instances import attempt_of, canonical, repo_of, root_of, run_of, stem_of
from agentsignals.formats.outcome import error_class
from agentsignals.formats.profile import Tool
from agentsignals.formats.records import as_list, decoded, decoder, inside, string
from agentsignals.formats.swe_agent import PROFILE
from agentsignals.model import Attempt, CallStatus, Ending, Session, ShellKind, ToolCall, ToolClass


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


_LIMITS = ("per_instance_cost_limit", "total_cost_limit", "per_instance_call_limit")
"""Limits of which 0 means none."""
_OF_MODEL = ("temperature", "top_p", "seed", "max_input_tokens", "max_output_tokens")
_TEXTS = ("model_id", "reasoning_effort", "parse_function")
_OF_TOOLS = {"execution_timeout": "execution_timeout_s", "total_execution_timeout": "total_execution_timeout_s"}
_NO_MODELS = frozenset(("replay", "human", "human_thought", "instant_empty_submit"))
"""Names under which SWE-agent lets something other than a model act."""


def knobs(config: dict[str, Any], attempt: int = 0) -> dict[str, Any]:
    """Return the treatment as configured. A limit of 0 means none (None). Null values were left to the provider and are
    left out."""
    agent = inside(config, "agent")
    several = [a for a in as_list(inside(agent, "agent_configs")) if isinstance(a, dict)]  # taken in turn
    retries = inside(agent, "retry_loop", "max_attempts")
    agent = several[attempt % len(several)] if several else agent
    model, settings = inside(agent, "model"), inside(agent, "tools")
    arguments = inside(model, "completion_kwargs")
    stated = {
        "model_id": inside(model, "name") or inside(model, "model_name"),
        **{limit: inside(model, limit) for limit in _LIMITS},
        **{n: value for at in (arguments, model) for n in _OF_MODEL if (value := inside(at, n)) is not None},
        "reasoning_effort": inside(arguments, "reasoning_effort"),
        "max_attempts": retries,
        **{ours: inside(settings, theirs) for theirs, ours in _OF_TOOLS.items()},
        "parse_function": inside(settings, "parse_function", "type"),
        "max_requeries": inside(agent, "max_requeries"),
    }
    treatment: dict[str, Any] = {"agent_type": "swe-agent"}
    for knob, value in stated.items():
        if isinstance(value, str if knob in _TEXTS else int | float) and not isinstance(value, bool):
            treatment[knob] = (value or None) if knob in _LIMITS else value
    bundles = [inside(bundle, "path") for bundle in as_list(inside(settings, "bundles"))]
    named = [posixpath.basename(path.rstrip("/")) for path in bundles if isinstance(path, str)]
    return treatment | ({"tools": named} if named else {})


_EXITS = ("Exit due to", "Exiting due to", "Exited ")
"""First words of the harness's own message when it ends a run."""
_NO_FILE = "n/a"
_SHELL_LINE = re.compile(r"\n\(Open file: ([^\n)]{1,500})\)\n\(Current directory: ([^\n)]{1,500})\)\nbash-\$\s*$")
_OBSERVATION = "OBSERVATION:\n"
_LISTING = "Here's the files and directories"


class Conversation:
    """Reads the steps of an attempt. `messages`: the history, which holds the prompt and the function calls."""

    def __init__(self, builder: SessionBuilder, messages: list[Message], model: str | None) -> None:
        self.builder = builder
        self.model = model
        self._window = Window()
        self._replies = [m for m in messages if m.role == "assistant" and not m.is_demonstration]
        self._next = 0
        self._messages = messages

    def read(self, steps: list[Step | None], stated: str | None) -> None:
        """Read the whole attempt. `stated`: the configured problem, in case the history was lost."""
        opening = self._messages
        if not opening and steps and steps[0] is not None:
            opening = prompt_of(steps[0])
        asked = False
        for n, message in enumerate(opening, 1):
            self.builder.line = n
            text = text_of(message.content)
            if message.is_demonstration:
                self._note(f"demonstration ({message.role}): {text}")
            elif message.role == "assistant":
                break
            elif message.role == "system" or asked:
                self._note(text)
            else:
                asked = True
                self.builder.turn("prompt", text.strip(), None, self.model)
        if not asked and stated:
            self.builder.line = 1
            self.builder.turn("prompt", stated.strip(), None, self.model)
        for n, message in enumerate(self._messages, 1):
            self.builder.line = n
            self.builder.unread(message.kinds, PARTS, None)
            for call in (message.tool_calls or ())[1:]:  # of several the harness runs the first
                name = as_text(inside(call, "function", "name"))
                self.builder.event("unknown", f"another call, {name[:80] or 'without a name'}")
        if not steps:
            self._read_history()
            return
        states = [state_of(s) if s is not None else ("", "") for s in steps]
        folders = [folder for folder, _ in states]
        self.builder.visits(f for f in folders if f)
        self.builder.where(next((f for f in folders if f), None))
        for n, step in enumerate(steps):
            self.builder.line = n + 1
            if step is None:
                continue
            if states[n][1] not in ("", _NO_FILE):
                self._window.open = states[n][1]
            self._step(step, steps[n + 1] if n + 1 < len(steps) else None)
            self.builder.where(folders[n] or None)

    def _note(self, text: str) -> None:
        self.builder.event("meta", text[:RESULT_CHARS_KEPT], n_chars=len(text))

    def _step(self, step: Step, after: Step | None) -> None:
        line, thought, response = (as_text(v) for v in (step.action, step.thought, step.response))
        observation = as_text(step.observation)
        if response.startswith(_EXITS) and (not line.strip() or line.startswith("exit_")):
            self._match(line, thought)
            self._note("\n".join(t for t in (response, observation) if t))
            return
        message = self._match(line, thought)
        refusal = None
        if message is None and after is not None and (self._replies or not observation):
            # The model was asked again: the last message of the next call's prompt says why. Otherwise that prompt ends
            # with an answer of the environment, which is marked as such.
            last = next(reversed(prompt_of(after)), None)
            if last is not None and last.role == "user" and last.message_type != "observation":
                refusal = text_of(last.content) or None
        self._called(message, thought or (response if not line.strip() else ""), as_text(step.reasoning_content))
        if line.strip():
            refused = refusal is not None and not observation
            self._act(line, message, observation or refusal or "", refused)
        elif refusal:
            self._note(refusal)

    def _match(self, line: str, thought: str) -> Message | None:
        """Return the message of the history that this step became; None if the model was asked again instead."""
        if self._next >= len(self._replies):
            return None
        message = self._replies[self._next]
        same = as_text(message.action).strip() == line.strip()
        if not same or (message.thought is not None and as_text(message.thought).strip() != thought.strip()):
            return None
        self._next += 1
        return message

    def _called(self, message: Message | None, text: str, reasoning: str) -> None:
        step = self.builder.step(None, self.model)
        for block in (message.thinking_blocks if message is not None else None) or ():
            thinking = block.get("thinking")
            self.builder.event("thinking", thinking if isinstance(thinking, str) else "", None, step)
            reasoning = ""
        if reasoning:
            self.builder.event("thinking", reasoning, None, step)
        if text.strip():
            self.builder.event("text", text, None, step)

    def _act(self, line: str, message: Message | None, observation: str, refused: bool = False) -> None:
        """Record an action with its answer. Call ids repeat within a trajectory, so the order pairs them."""
        builder = self.builder
        calls = message.tool_calls if message is not None else None
        action = (called(calls[0]) if calls else None) or written(line)
        call_id = (as_text(calls[0].get("id")) if calls else "") or f"step-{builder.line}"
        path = action.path
        if path is None and action.name in WINDOWED:
            path = self._window.open
        call = builder.call(
            call_id, action.name, action.arguments, action.tool, None, builder.session.steps[-1], path=path
        )
        status, error = outcome(action, call, observation)
        if refused:
            status, error = "error", error or "other"
        if observation.startswith(_LISTING):
            call.class_ = "search"  # as of any tool that lists a folder: no file was read
        builder.result(call_id, observation, status, error=error)
        record(builder, call, action, observation, self._window)

    def _read_history(self) -> None:
        """Read a file without steps. Answers stand between the model's messages; their last lines name the folder."""
        messages = self._messages
        for n, message in enumerate(messages):
            if message.role != "assistant" or message.is_demonstration:
                continue
            self.builder.line = n + 1
            after = messages[n + 1] if n + 1 < len(messages) else None
            answer = text_of(after.content) if after is not None and after.role != "assistant" else ""
            shell_line = _SHELL_LINE.search(answer[-1_500:])
            if shell_line is not None:
                answer = answer[: answer.rfind("\n(Open file: ")]
                self.builder.where(shell_line[2])
                if shell_line[1] != _NO_FILE:
                    self._window.open = shell_line[1]
            line = as_text(message.action)
            self._called(message, as_text(message.thought) or ("" if line.strip() else text_of(message.content)), "")
            if line.strip():
                self._act(line, message, answer.removeprefix(_OBSERVATION))


_NO_INSTANCE = frozenset(("", "swe_main", "main"))
"""Values of `environment` that name no instance."""
_OUT_OF_TIME = "exit_total_execution_time"
ENDINGS: dict[str, Ending] = {
    _OUT_OF_TIME: "time",
    "exit_command_timeout": "time",
    "exit_cost": "budget",
    "exit_context": "budget",
    "exit_api": "infrastructure",
    "exit_environment_error": "infrastructure",
    "exit_error": "infrastructure",
}


def read(inputs: list[Input]) -> Reading:
    """All files of a trial. A retrying run writes its attempts together and each in a folder: the first counts."""
    reading = Reading()
    several: set[str] = set()
    for source in sorted(inputs, key=lambda g: (attempt_of(g.artifact.path) is not None, g.artifact.path)):
        artifact = source.artifact
        document = read_document(source, decoder(Document).decode, "trajectory")
        if document is None:
            continue
        attempts = each(document.attempts or [], decoder(Attempted).decode, artifact)
        tally(artifact, "attempt", [None if attempt is None else "of_several" for attempt in attempts])
        indexed: list[tuple[Attempted, int | None, bool | None]] = [
            (attempt, n, n == len(attempts) - 1) for n, attempt in enumerate(attempts) if attempt is not None
        ]
        if not indexed:  # beside a list its best attempt stands again
            alone = Attempted(document.trajectory or [], document.history or [], document.info)
            indexed = [(alone, attempt_of(artifact.path), None)]
        parts = [_attempt(source, document, *attempt) for attempt in indexed]
        told = decoded(document.info, Any)
        chosen, spent = inside(told, "best_attempt_idx"), inside(told, "rloop_model_stats")
        for _, part in parts if isinstance(chosen, int) else ():
            part.is_handed_in = part.attempt_index == chosen if len(parts) > 1 else None
            if part.attempt_index == chosen:  # reviewers and choosers are billed with the attempt that they took
                part.other_cost_usd = amount(inside(spent, "instance_cost")) or None
                part.other_input_tokens = count(inside(spent, "tokens_sent")) or None
                part.other_output_tokens = count(inside(spent, "tokens_received")) or None
        place = f"{root_of(artifact.path)}/{stem_of(artifact.path)}"
        if document.attempts:
            several.add(place)
        elif place in several and attempt_of(artifact.path) is not None:
            artifact.note = "an attempt of the trajectory above it, which counts"
            saw_again(artifact)
            continue
        for session, part in parts:
            reading.sessions.append(session)
            reading.attempts.append(part)
    return reading


def _attempt(
    source: Input, document: Document, attempt: Attempted, index: int | None, is_last: bool | None
) -> tuple[Session, Attempt]:
    steps = each(attempt.trajectory, decoder(Step).decode, source.artifact)
    messages = each(attempt.history, decoder(Message).decode, source.artifact)
    kinds = [None if s is None else ("action" if as_text(s.action).strip() else "no_action") for s in steps]
    tally(source.artifact, "step", kinds)
    tally(source.artifact, "message", [None if m is None else m.type for m in messages])
    info = decoded(attempt.info, Any)
    config = config_of(document.replay_config)
    treatment = knobs(config, index or 0)
    stated_id, problem = (string(inside(config, "problem_statement", name)) for name in ("id", "text"))
    named = as_text(document.environment)
    task = stated_id or (named if named not in _NO_INSTANCE else "") or stem_of(source.artifact.path)
    session = Session(
        session_id="", context="eval", format="swe-agent", agent="swe-agent", artifact_id=source.artifact.artifact_id
    )
    session.agent_version = string(inside(info, "swe_agent_version"))
    session.repo = repo_of(task)
    session.title = next((line.strip() for line in (problem or "").split("\n") if line.strip()), None)
    name = treatment.get("model_id")
    model = name if name not in _NO_MODELS else None  # a person or a recording acted
    builder = SessionBuilder(session, PROFILE)
    Conversation(builder, [m for m in messages if m is not None], model).read(steps, problem)
    builder.finish()
    session.model = model
    if index is not None:
        session.session_id = f"{canonical(task)}/{index}~{source.artifact.artifact_id}"
    goes_by, exit_status = run_of(source.artifact.path), string(inside(info, "exit_status"))
    sent, received, cost = (
        inside(info, "model_stats", name) for name in ("tokens_sent", "tokens_received", "instance_cost")
    )
    part = Attempt(
        root=root_of(source.artifact.path), attempt_index=index, is_last=is_last, task_id=canonical(task),
        run_id=goes_by.rpartition("/")[0] if goes_by is not None else None, goes_by=goes_by, knobs=treatment,
        session_id=session.session_id or None, session_artifact=session.artifact_id, exit_status=exit_status,
        input_tokens=count(sent) or None, output_tokens=count(received) or None, cost_usd=amount(cost) or None,
    )  # fmt: skip
    part.statements = source.states(_listed("configured", treatment), [f"knobs.{knob}" for knob in treatment])
    line, submission = max(len(steps), 1), as_text(inside(info, "submission")).replace("\r\n", "\n")
    if looks_like_diff(submission):
        part.patch, part.patch_text_bytes = patched_files(submission), len(submission.encode("utf-8", "replace"))
    elif exit_status is not None and not submission.strip():
        part.patch, part.patch_text_bytes = [], 0
    if exit_status is not None:
        # What was there when the run broke off is submitted all the same: `submitted (exit_cost)`.
        part.ending, part.timed_out = ENDINGS.get(exit_status, "finished"), _OUT_OF_TIME in exit_status
        text, fields = f"exit status {exit_status}", ["exit_status", "timed_out"]
        if part.patch is not None:
            names = ", ".join(posixpath.normpath(f.path) for f in part.patch)
            text, fields = f"{text}, submitted {names or 'nothing'}", [*fields, "patch"]
        part.statements += source.states(text, fields, line)
    usage = {n: v for n in ("input_tokens", "output_tokens", "cost_usd") if (v := getattr(part, n)) is not None}
    if usage:
        part.statements += source.states(_listed("model stats", usage), usage, line)
    return session, part


def _listed(what: str, facts: dict[str, Any]) -> str:
    return f"{what}: " + ", ".join(f"{name} {value}" for name, value in facts.items())
