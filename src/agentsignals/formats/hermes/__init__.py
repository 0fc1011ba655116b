"""Hermes' sessions as JSON (design/formats.md#small-formats): `~/.hermes/sessions/session_<id>.json`, rewritten as it
grows. Its tools also occur in data sets of other formats."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agentsignals.formats import Claim, Format
from agentsignals.formats import profile as tools
from agentsignals.formats.head import CUT, Head

PROFILE = tools.Profile(
    agent="hermes",
    aliases=("hermes-agent",),
    homes=("~/.hermes/sessions", "$HERMES_HOME/sessions"),
    state=("sessions/sessions.json", "sessions/request_dump_*"),
    tools=tools.named(
        (tools.SHELL, "terminal"),
        (tools.NO_SHELL, "process execute_code"),
        (tools.READ, "read_file"),
        (tools.SEARCH, "search_files session_search"),
        (tools.EDIT, "patch"),
        (tools.WRITE, "write_file"),
        (tools.WEB, "web_search web_extract web_crawl"),
        (tools.PLAN, "todo"),
        (tools.TASK, "delegate_task mixture_of_agents skill_manage skills_list"),
        (tools.SKILL, "skill_view"),
        (tools.ASK, "clarify"),
        (tools.ASIDE, "memory vision_analyze image_generate send_message cronjob"),
    ),
    tools_like={"browser_*": tools.WEB},
)


_OF_ROWS = ("api_calls", "tool_stats", "toolsets_used")
_FACTS = ("completed", "partial", "api_calls", "category", "subcategory", "task")


def is_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row of a table of conversations is of those that Hermes writes."""
    return any(row.get(name) is not None for name in _OF_ROWS) or {"completed", "partial"} <= row.keys()


def facts_of(row: Mapping[str, Any]) -> str:
    """Return what such a row says of its run."""
    return msgspec.json.encode({name: row[name] for name in _FACTS if row.get(name) is not None}).decode()


def claims(head: Head) -> Claim | None:
    """Recognize a session by its platform, its start and its messages. The head may end before the messages."""
    document = head.document
    session_id, messages = document.get("session_id"), document.get("messages", None if head.complete else CUT)
    is_session = isinstance(session_id, str) and {"platform", "session_start"} <= document.keys()
    return (
        Claim(keys=[f"session:{session_id}"])
        if is_session and (messages is CUT or isinstance(messages, list))
        else None
    )


FORMAT = Format(name="hermes", marks=(b'"session_start"',), version=2, claims=claims, profile=PROFILE)
