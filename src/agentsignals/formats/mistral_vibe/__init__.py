"""Mistral Vibe sessions (design/formats.md#mistral-vibe): from 3.0 a folder of history chunks and a journal in
`~/.vibe/logs/session/unified/<id>/`, before that messages and a `meta.json`."""

import posixpath
import re
from typing import Any

from agentsignals.formats import Claim, Format, session_folder
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="mistral-vibe",
    maker="mistral",
    aliases=("vibe",),
    homes=("~/.vibe/logs/session", "$VIBE_HOME/logs/session"),
    state=tuple(
        f"logs/session/{place}"
        for place in ("plugins/*", "unified/.session-index.json", "unified/*/scheduled-loops.json")
    ),
    tools=tools.named(
        (tools.READ, "read_file"),
        (tools.WRITE, "write_file"),
        (tools.EDIT, "edit search_replace"),
        (tools.SHELL.within("timeout"), "bash"),
        (tools.SEARCH, "grep"),
        (tools.FIND, "list_directory glob"),
        (tools.PLAN, "todo"),
        (tools.SKILL, "skill"),
        (tools.TASK, "task"),
        (tools.TASK.to("poll").within("timeout_ms", 0.001), "wait"),
        (tools.ASK, "ask_user_question"),
        (tools.WEB, "web_search web_fetch"),
        (tools.ASIDE, "unified_harness_scratchpad search_tool_functions run_typescript"),
    ),
    frame=(r"(?:command|stdout|stderr|returncode): ?.*",),
)


MESSAGES = "messages.jsonl"
_JOURNAL = re.compile(r"(?:^|/)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/journal/\d{16}\.jsonl$")
_LONG_RECORD = b'{"payload":'


def claims(head: Head) -> Claim | None:
    """Chunks of history and states name their session. A journal and messages belong to their folder."""
    document, folder = head.document, posixpath.dirname(head.path)
    entry = head.items[0] if head.items else {}
    if "generationStatus" in entry and isinstance(entry.get("sessionId"), str):
        return Claim(keys=[f"session:{entry['sessionId']}"])
    if journal := _JOURNAL.search(head.path):
        ours = "recovery_journal_record_version" in document or head.data.startswith(_LONG_RECORD)
        return Claim(keys=[f"session:{journal[1]}"]) if ours else None
    session_id = document.get("session_id")
    if isinstance(session_id, str) and "projection_state_version" in document:
        return Claim(keys=[f"session:{session_id}"])
    stats, where = document.get("stats"), document.get("environment")
    is_vibes = "title_source" in document or (isinstance(stats, dict) and "session_prompt_tokens" in stats)
    is_meta = isinstance(where, dict) and "working_directory" in where and "start_time" in document and is_vibes
    if isinstance(session_id, str) and is_meta:
        return Claim(keys=[f"session:{session_id}", f"folder:{folder}"])
    if posixpath.basename(head.path) == MESSAGES and head.records and all(map(_is_message, head.records)):
        return Claim(keys=[f"folder:{folder}"])
    return None


def _is_message(record: dict[str, Any]) -> bool:
    named = isinstance(record.get("message_id"), str) or record.get("role") == "tool"
    return named and record.get("role") in ("system", "user", "assistant", "tool") and "content" in record


FORMAT = Format(
    name="mistral-vibe",
    version=1,
    claims=claims,
    unit=session_folder("chunks", "journal", "generations"),
    profile=PROFILE,
    snapshots=False,
)
