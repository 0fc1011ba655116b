"""Which lines a SWE-agent edit changed: its arguments say what was written, the answer shows the place with numbers."""

from __future__ import annotations

import posixpath
import re

from agentsignals.edits.hunks import Hunk, count_lines, created, inserted, replaced
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.swe_agent.tools import Action
from agentsignals.model import ToolCall

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
    if action.name == "str_replace_editor":
        _edited(builder, call, action, observation)
    elif action.name == "create":
        builder.edit(call, None, "create", [created("")])
    elif action.name == "insert":
        text = action.text("text")
        builder.edit(call, None, "modify", [_inserted(text, observation)])
    elif "search" in action.options:
        builder.edit(call, None, "modify", [_placed(action.text("search"), action.text("replace"), observation)])
    elif action.name == "edit":
        grown = after - before if before is not None and after is not None else None
        builder.edit(call, None, "modify", [_of_range(action, grown, observation)])
    else:
        builder.edit(call, None, "modify", [])


def _edited(builder: SessionBuilder, call: ToolCall, action: Action, observation: str) -> None:
    """The commands of `str_replace_editor`."""
    command, new = action.text("command"), action.text("new_str")
    if command == "create":
        builder.edit(call, None, "create", [created(action.text("file_text"))])
    elif command == "str_replace":
        builder.edit(call, None, "modify", [_placed(action.text("old_str"), new, observation)])
    elif command == "insert":
        line = action.number("insert_line")
        n = max(new.count("\n") + 1, 1)
        start = None if line is None else line + 1
        hunk = (
            Hunk(added=n, removed=0)
            if start is None
            else Hunk(start_line=start, end_line=start + n - 1, added=n, removed=0, old_start=start)
        )
        builder.edit(call, None, "modify", [hunk])
    else:  # undo_edit: what it brings back is not told
        builder.edit(call, None, "modify", [])


def _of_range(action: Action, grown: int | None, observation: str) -> Hunk:
    """`edit 3:5`. The end may lie behind the last line: how much the file grew says how many lines went."""
    text = action.text("replacement_text")
    added = count_lines(text)
    start, end = action.number("start_line"), action.number("end_line")
    removed = None if start is None or end is None else max(end - start + 1, 0)
    if grown is not None and added - grown >= 0:
        removed = added - grown
    if start is None:
        start = _place(text.removesuffix("\n"), observation) if text.strip() else None
    if start is None:
        return Hunk(added=added, removed=removed)
    return Hunk(start_line=start, end_line=start + max(added, 1) - 1, added=added, removed=removed, old_start=start)


def _inserted(text: str, observation: str) -> Hunk:
    start = _place(text.removesuffix("\n"), observation) if text.strip() else None
    return inserted(text, start - 1 if start is not None else None)


def _placed(old: str, new: str, observation: str) -> Hunk:
    """A replaced text, at the place where the answer shows the new one; sizes only when that can't be told."""
    hunk = replaced(old, new)
    start = _place(new, observation) if new.strip() else None
    if start is None or not (hunk.added or hunk.removed):
        return hunk
    before, after = old.split("\n"), new.split("\n")
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    first = start + same
    return Hunk(
        start_line=first,
        end_line=first + max(hunk.added or 0, 1) - 1,
        added=hunk.added,
        removed=hunk.removed,
        old_start=first,
    )


def _place(text: str, observation: str) -> int | None:
    """The line at which the numbered lines of an answer show a text; None when they show it nowhere, or twice."""
    wanted = [line.expandtabs().rstrip() for line in text.split("\n")]
    shown = _numbered(observation) if len(wanted) <= _WANTED_LINES else []
    if len(wanted) > len(shown):
        return None
    line_number: int | None = None
    for n in range(len(shown) - len(wanted) + 1):
        if _shows(shown, n, wanted):
            if line_number is not None:
                return None
            line_number = shown[n][0]
    return line_number


def _shows(shown: list[tuple[int, str]], n: int, wanted: list[str]) -> bool:
    """Whether the text begins at a shown line: it may begin and end in the middle of one."""
    last = len(wanted) - 1
    if last == 0:
        return wanted[0] in shown[n][1]
    return (
        shown[n][1].endswith(wanted[0])
        and shown[n + last][1].startswith(wanted[last])
        and all(shown[n + k][1] == wanted[k] for k in range(1, last))
    )


def _numbered(observation: str) -> list[tuple[int, str]]:
    lines = (_NUMBERED.match(line) for line in observation[:_SHOWN_CHARS].split("\n"))
    return [(int(m[1]), m[2].expandtabs().rstrip()) for m in lines if m][:_SHOWN_LINES]
