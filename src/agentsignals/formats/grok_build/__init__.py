"""Grok Build sessions (design/formats.md#grok-build): `~/.grok/sessions/<cwd>/<session>/updates.jsonl`, a line for
each update of the Agent Client Protocol, and `summary.json`."""

import re
from typing import Any

from agentsignals.formats import Claim, Format, session_folder
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="grok-build",
    maker="xai",
    aliases=("grok",),
    homes=("~/.grok/sessions", "$GROK_HOME/sessions"),
    tools=tools.named(
        (tools.SHELL.within("timeout", 0.001), "run_terminal_command"),
        (tools.READ, "read_file"),
        (tools.SEARCH, "grep"),
        (tools.FIND, "list_dir"),
        (tools.EDIT, "search_replace apply_patch"),
        (tools.WRITE, "write"),
        (tools.PLAN, "todo_write"),
        (tools.TASK, "spawn_subagent"),
        (tools.TASK.to("poll"), "get_command_or_subagent_output"),
        (tools.WEB, "web_search web_fetch"),
        (tools.ASK, "ask_user_question"),
        (tools.ASIDE, "kill_command_or_subagent scheduler_create scheduler_delete scheduler_list"),
    ),
    nothing_found=("found 0 matches", "No matches found"),
)


_LONG_FIRST_LINE = re.compile(
    rb'\{"timestamp":\d{1,12},"method":"(?:_x\.ai/)?session/update","params":\{"sessionId":"([^"]{1,100})"'
)
"""A first record longer than the head, with a huge prompt."""


def claims(head: Head) -> Claim | None:
    """Recognize updates with the time and id that Grok gives each, or a summary that names its chat's format."""
    document = head.document
    info = document.get("info")
    if isinstance(info, dict) and "chat_format_version" in document and isinstance(info.get("id"), str):
        return Claim(keys=[f"session:{info['id']}"])
    if not head.records:
        long = _LONG_FIRST_LINE.match(head.data)
        return Claim(keys=[f"session:{long[1].decode('utf-8', 'replace')}"]) if long else None
    named = [session_id for r in head.records if (session_id := _session_of(r)) is not None]
    return Claim(keys=list(dict.fromkeys(f"session:{session_id}" for session_id in named))) if named else None


def _session_of(record: dict[str, Any]) -> str | None:
    params = record.get("params")
    if not str(record.get("method")).endswith("session/update") or not isinstance(params, dict):
        return None
    update, meta, session_id = params.get("update"), params.get("_meta"), params.get("sessionId")
    ours = isinstance(update, dict) and "sessionUpdate" in update and isinstance(meta, dict) and "eventId" in meta
    return session_id if ours and isinstance(session_id, str) else None


FORMAT = Format(
    name="grok-build",
    marks=(b'"chat_format_version"', b'session/update"'),
    version=1,
    claims=claims,
    unit=session_folder(),
    profile=PROFILE,
)
