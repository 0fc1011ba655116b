"""Cursor agent transcripts (design/formats.md#small-formats):
`~/.cursor/projects/<cwd>/agent-transcripts/<id>/<id>.jsonl`.

The poorest of formats: who said what, and the calls. No ids, times, models, usage; results in few versions only.
"""

from __future__ import annotations

from typing import Any

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.cursor_agent.profile import PROFILE
from agentsignals.formats.head import Head


def claims(head: Head) -> Claim | None:
    """Records that are `{role, message}` and nothing else: one id or time among them, and it is another format's."""
    records = [r for r in head.records if r.get("type") != "turn_ended"]
    if not records or not all(_is_bare(r) for r in records):
        return None
    return Claim(keys=[], beside=True)


def _is_bare(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return (
        record.keys() == {"role", "message"}
        and record["role"] in ("user", "assistant")
        and isinstance(message, dict)
        and "content" in message
        and message.keys() <= {"role", "content"}
    )


FORMAT = Format(
    name="cursor-agent",
    version=3,
    claims=claims,
    read=read_by("cursor_agent.files"),
    profile=PROFILE,
)
