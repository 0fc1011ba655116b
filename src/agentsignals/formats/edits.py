"""What a Codex patch changed: as the program recorded it, with line numbers, or as the patch text says, without."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, structs

from agentsignals.changes.hunks import (
    EditText,
    Hunk,
    count_lines,
    created,
    edit_texts,
    inserted,
    replaced,
    trimmed,
    unified,
)
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.codex.records import Change
from agentsignals.model import EditOp, ToolCall

_ADD, _UPDATE, _DELETE, _MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "

_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


class Patched(Struct):
    """One file of a patch text."""

    path: str
    op: EditOp
    moved_to: str | None = None
    lines: list[list[str]] = []
    """The lines of each of its places, marked ` `, `+` or `-`."""


def record_changes(builder: SessionBuilder, call: ToolCall, changes: dict[str, Change]) -> None:
    """The changes of a `patch_apply_end` event: whole new or deleted files, unified diffs of the others."""
    for path, change in changes.items():
        if change.type == "add":
            builder.edit(call, path, "create", [created(change.content or "")])
        elif change.type == "delete":
            builder.edit(call, path, "delete", [_deleted(change.content)])
        else:
            _modify(builder, call, path, change.move_path, unified(change.unified_diff or ""))


def record_patch(builder: SessionBuilder, call: ToolCall, patch: str) -> None:
    """The changes as the patch text gives them: numbers of lines, but not where in the file they are."""
    for file in patched(patch):
        if file.op == "create":
            builder.edit(
                call, file.path, "create", [created("\n".join(line[1:] for part in file.lines for line in part))]
            )
        elif file.op == "delete":
            builder.edit(call, file.path, "delete", [_deleted(None)])
        else:
            _modify(builder, call, file.path, file.moved_to, list(_sizes(file.lines)))


def first_file(patch: str) -> str | None:
    """The file that a patch text names first."""
    match = _FILE.search(patch)
    return match.group(1).strip() if match else None


def patched(patch: str) -> list[Patched]:
    """The files of an `apply_patch` text, in order."""
    files: list[Patched] = []
    for line in patch.split("\n"):
        if line.startswith(_ADD):
            files.append(Patched(line[len(_ADD) :].strip(), "create", None, [[]]))
        elif line.startswith(_UPDATE):
            files.append(Patched(line[len(_UPDATE) :].strip(), "modify", None, [[]]))
        elif line.startswith(_DELETE):
            files.append(Patched(line[len(_DELETE) :].strip(), "delete", None, [[]]))
        elif not files or line.startswith("*** "):
            if files and line.startswith(_MOVE):
                files[-1].moved_to = line[len(_MOVE) :].strip()
        elif line.startswith("@@"):
            files[-1].lines.append([])
        else:
            files[-1].lines[-1].append(line)
    return files


def _modify(builder: SessionBuilder, call: ToolCall, path: str, moved_to: str | None, hunks: list[Hunk]) -> None:
    if moved_to and moved_to != path:
        builder.edit(call, path, "delete", [_deleted(None)])
        builder.edit(call, moved_to, "rename", hunks)
    else:
        builder.edit(call, path, "modify", hunks)


def _deleted(content: str | None) -> Hunk:
    return Hunk(added=0, removed=count_lines(content) if content is not None else None, whole_file=True)


def _sizes(places: list[list[str]]) -> Iterator[Hunk]:
    for lines in places:
        hunk = trimmed(1, 1, lines)
        if hunk is not None:
            yield Hunk(added=hunk.added, removed=hunk.removed)


# What the arguments of an edit tool say was changed, for traces that log no diff: sizes, and whole new contents.


def record_arguments(builder: SessionBuilder, call: ToolCall, touched: set[str]) -> None:
    """The change of a call that succeeded. `touched` holds the paths the session has read or changed before it."""
    texts = edit_texts(call.arguments, call.argument_roles)
    if texts and texts[0].kind == "patch":
        record_patch(builder, call, texts[0].new)
    elif texts and texts[0].kind == "whole" and (texts[0].creates or call.path not in touched):
        builder.edit(call, None, "create", [created(texts[0].new)])
    else:
        builder.edit(call, None, "modify", [hunk for text in texts if (hunk := _hunk(text)) is not None])


def _hunk(text: EditText) -> Hunk | None:
    """The place a text comes to, as far as the arguments tell."""
    if text.kind == "replace":
        return replaced(text.old, text.new)
    if text.kind in ("insert", "append"):
        return inserted(text.new, text.line if text.kind == "insert" else None)
    if text.kind == "whole":  # whether the file was there before is not logged: it was when the session touched it
        return structs.replace(created(text.new), removed=None)
    return None
