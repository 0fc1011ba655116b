"""Which words in a Claude Code transcript are the person's (formats.md 1.3: 94 % of `user` records are not)."""

from __future__ import annotations

import re

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_records import Line, Message, text_of

BUILTIN_COMMANDS = frozenset(
    "add-dir agents bashes bug chrome clear color compact config context copy cost desktop diff doctor effort exit export"
    " extra-usage fast feedback files fork help hooks ide install-github-app keybindings login logout mcp memory mobile model"
    " output-style passes permissions plan plugin plugins privacy-settings quit rate-limit-options release-notes reload-plugins"
    " remote-control remote-env rename resume rewind sandbox session skills stats status statusline stickers tag tasks"
    " terminal-setup theme think-back todos upgrade usage vim voice".split()
)
"""Commands of the program itself: typed by the person, but nothing is said to the agent (signals_notes section 2)."""

_COMMAND = re.compile(r"<command-name>\s*/?([^<\s]*)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_CONTEXT_TAGS = re.compile(
    r"<(ide_opened_file|ide_selection|system-reminder|ide_diagnostics)>.*?</\1>\s*", re.DOTALL
)
_PASTED_MACHINE = (
    ("<local-command-caveat>", "meta"),
    ("Caveat: The messages below", "meta"),
    ("<local-command-stdout>", "command_output"),
    ("<local-command-stderr>", "command_output"),
    ("<bash-stdout>", "command_output"),
    ("<bash-stderr>", "command_output"),
    ("<bash-input>", "user_shell"),
    ("<task-notification>", "notification"),
    ("<teammate-message", "notification"),
    ("<user-memory-input>", "meta"),
    ("Operation stopped by hook:", "hook_block"),
    ("Stop hook feedback:", "hook_block"),
    ("This session is being continued from a previous conversation", "compaction"),
    ("Base directory for this skill", "meta"),
    ("Continue from where you left off", "meta"),
)
INTERRUPTED = "[Request interrupted by user"
PLAN = "Implement the following plan:"
_INJECTED_BESIDE_RESULT = frozenset(("Tool loaded.",))


def record(builder: SessionBuilder, line: Line, message: Message, at: int | None) -> None:
    """A `user` record that holds no tool result: a human turn, or one of the many things that are not."""
    text = text_of(message).strip()
    if line.isCompactSummary is True:
        builder.event("meta", text, at)  # the compact_boundary before it is the event
        return
    if text.startswith(INTERRUPTED):
        builder.event("interrupt", text, at)
        return
    if _machine(builder, text, at):
        return
    command = _COMMAND.search(text)
    if command and text.startswith(("<command-name>", "<command-message>")):
        _slash_command(builder, command.group(1), text, at)
        return
    origin = line.origin.get("kind") if isinstance(line.origin, dict) else None
    if line.isMeta in (True, "True", "true") or origin not in (None, "human"):
        builder.event("notification" if origin else "meta", text, at)
        return
    said = _CONTEXT_TAGS.sub("", text).strip()
    if line.planContent or said.startswith(PLAN):
        builder.turn("plan_handoff", said, at)
    elif said:
        builder.turn("prompt", said, at)
    elif _has_image(message):
        builder.turn("attachment", "", at)
    else:
        builder.event("meta", text, at)


def beside_result(builder: SessionBuilder, text: str, at: int | None) -> None:
    """A text block in the same record as a tool result: words of the person, unless the program put it there."""
    said = _CONTEXT_TAGS.sub("", text).strip()
    if said.startswith(INTERRUPTED):
        builder.event("interrupt", said, at)
    elif said in _INJECTED_BESIDE_RESULT or not said:
        builder.event("meta", text, at)
    elif not _machine(builder, said, at):
        builder.turn("prompt", said, at)


class Queue:
    """Messages typed while the agent works: enqueued, then removed (said mid-turn), dequeued, or pulled back."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._waiting: list[str] = []
        self._delivered: list[str] = []

    def operation(self, operation: str, content: str | None, at: int | None) -> None:
        """`remove` without a prompt record is how older versions log a message that reached the running turn."""
        if operation == "enqueue":
            self._waiting.append(content or "")
        elif operation == "popAll":
            self._waiting.clear()
        elif operation in ("dequeue", "remove"):
            text = self._take(content)
            if operation == "remove":
                self._say(text, at)

    def attachment(self, text: str, mode: str, at: int | None) -> None:
        """`queued_command`: the same message as newer versions log it; said once."""
        if mode != "prompt":
            self._builder.event("notification", text, at)
        elif text in self._delivered:
            self._delivered.remove(text)
        else:
            self._say(text, at)
            if text in self._delivered:
                self._delivered.remove(text)

    def _take(self, content: str | None) -> str:
        if content is not None and content in self._waiting:
            self._waiting.remove(content)
            return content
        return self._waiting.pop(0) if self._waiting else (content or "")

    def _say(self, text: str, at: int | None) -> None:
        said = _CONTEXT_TAGS.sub("", text).strip()
        if not said or said.startswith("/") or _machine(self._builder, said, at):
            return
        self._delivered.append(text)
        self._builder.turn("queued_prompt", said, at)


def _machine(builder: SessionBuilder, text: str, at: int | None) -> bool:
    for prefix, kind in _PASTED_MACHINE:
        if text.startswith(prefix):
            builder.event(kind, text, at)  # type: ignore[arg-type]  # kinds of the table above
            return True
    return False


def _slash_command(builder: SessionBuilder, name: str, text: str, at: int | None) -> None:
    found = _ARGUMENTS.search(text)
    said = f"/{name} {found.group(1).strip() if found else ''}".strip()
    if name in BUILTIN_COMMANDS:
        builder.event("meta", said, at)
    else:
        builder.turn("slash_command", said, at)


def _has_image(message: Message) -> bool:
    return isinstance(message.content, list) and any(b.type in ("image", "document") for b in message.content)
