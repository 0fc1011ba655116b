"""Output of `codex exec --json` (design/formats.md#codex-exec): threads, turns, items. No times, models, prompts."""

from __future__ import annotations

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats.head import Head
from agentsignals.formats.profile import EDIT, MCP, PLAN, SHELL, TASK, WEB, Profile, named

PROFILE = Profile(
    tools=named(
        (SHELL, "command_execution"),
        (EDIT, "file_change"),
        (MCP, "mcp_tool_call"),
        (WEB, "web_search"),
        (PLAN, "todo_list"),
        (TASK, "collab_tool_call"),
    )
)


_TYPES = ("turn.started", "turn.completed", "turn.failed", "item.started", "item.updated", "item.completed")


def claims(head: Head) -> Claim | None:
    """Claim a `thread.started` that names its thread, or an item's record. A rollout of the thread shares the key."""
    records = head.records
    ids = [r["thread_id"] for r in records if r.get("type") == "thread.started" and isinstance(r.get("thread_id"), str)]
    if ids:
        return Claim(keys=[f"session:{thread_id}" for thread_id in dict.fromkeys(ids)])
    items = [r for r in records if r.get("type") in _TYPES]
    if any(isinstance(r.get("item"), dict) and isinstance(r["item"].get("type"), str) for r in items):
        return Claim(keys=[])
    return None


FORMAT = Format(
    name="codex-exec",
    marks=(b'"thread.started"', b'"item"'),
    version=4,
    claims=claims,
    profile=PROFILE,
    pieces=pieces_by("codex_exec.reader"),
)
