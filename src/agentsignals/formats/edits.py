"""Changes of files read from the arguments of edit tools, for logs without a diff: sizes, and whole new contents."""

import re
from collections.abc import Iterable

from msgspec import structs

from agentsignals.changes.hunks import Hunk, count_lines, created, edit_texts, inserted, patched, replaced, trimmed
from agentsignals.formats.bounds import whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.model import ToolCall

_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def record_arguments(builder: SessionBuilder, call: ToolCall, existed: bool | None = None) -> None:
    """Record the change of a call that succeeded. A whole text makes a file, unless the file `existed`.

    None: it existed if the session touched it before.
    """
    texts = edit_texts(call.arguments, call.argument_roles)
    if existed is None:
        existed = builder.touched(call)
    if texts and texts[0].kind == "patch":
        record_patch(builder, call, texts[0].new)
    elif texts and texts[0].kind == "whole" and (texts[0].creates or not existed):
        builder.edit(call, None, "create", [created(texts[0].new)])
    else:
        hunks: list[Hunk] = []
        for text in texts:
            if text.kind == "replace":
                hunks.append(replaced(text.old, text.new))
            elif text.kind in ("insert", "append"):
                hunks.append(inserted(text.new, text.line if text.kind == "insert" else None))
            elif text.kind == "whole":  # how long the file was before is not logged
                hunks.append(structs.replace(created(text.new), removed=None))
        builder.edit(call, None, "modify", hunks)


def record_patch(builder: SessionBuilder, call: ToolCall, patch: str) -> None:
    """Record the changes of an `apply_patch` text: numbers of lines, but not where in the file they are."""
    for file in patched(patch):
        if file.op == "create":
            content = "\n".join(line[1:] for place in file.places for line in place)
            builder.edit(call, file.path, "create", [created(content)])
        elif file.op == "delete":
            record_deletion(builder, call, file.path)
        else:
            hunks = (trimmed(1, 1, lines) for lines in file.places)
            sizes = [Hunk(added=hunk.added, removed=hunk.removed) for hunk in hunks if hunk is not None]
            record_modification(builder, call, file.path, file.moved_to, sizes)


def record_deletion(builder: SessionBuilder, call: ToolCall, path: str, content: str | None = None) -> None:
    """Record that a call deleted a file. `content` is what the file held, if it is known."""
    removed = count_lines(content) if content is not None else None
    builder.edit(call, path, "delete", [Hunk(added=0, removed=removed, whole_file=True)])


def record_modification(
    builder: SessionBuilder, call: ToolCall, path: str, moved_to: str | None, hunks: list[Hunk]
) -> None:
    """Record the changed places of a file that a patch may also have moved."""
    if moved_to and moved_to != path:
        record_deletion(builder, call, path)
        builder.edit(call, moved_to, "rename", hunks)
    else:
        builder.edit(call, path, "modify", hunks)


def place(old_at: object, new_at: object, old: Iterable[str], new: Iterable[str]) -> list[Hunk]:
    """Return the change of a place: its first lines before and after, and its lines. Nothing without line numbers."""
    before, after = whole(old_at), whole(new_at)
    hunk = trimmed(before, after, [*(f"-{t}" for t in old), *(f"+{t}" for t in new)]) if before and after else None
    return [hunk] if hunk is not None else []


def first_file(patch: str) -> str | None:
    """Return the file that an `apply_patch` text names first."""
    match = _FILE.search(patch)
    return match.group(1).strip() if match else None
