"""Output of `droid exec --output-format stream-json` (design/formats.md#small-formats): a start, messages, thoughts and
calls, each a record, and a completion with the run's tokens."""

from __future__ import annotations

from agentsignals.formats import Claim, Format
from agentsignals.formats.factory_droid import PROFILE
from agentsignals.formats.head import Head

_OWN = {"tool_call": "toolName", "tool_result": "isError", "completion": "finalText", "message": "text"}
"""Records that the streams of Claude and of Cursor have not, with a field of each."""


def claims(head: Head) -> Claim | None:
    """Claim records that name their session in snake case, if one of them is of Droid's own kind."""
    records = head.records
    ids = [r["session_id"] for r in records if isinstance(r.get("session_id"), str) and r["session_id"]]
    if not ids or not any(
        _OWN.get(str(r.get("type")), "") in r or (r.get("subtype") == "init" and "reasoning_effort" in r)
        for r in records
    ):
        return None
    return Claim(keys=[f"session:{session_id}" for session_id in dict.fromkeys(ids)])


FORMAT = Format(
    name="droid-exec",
    marks=(b'"tool_call"', b'"completion"', b'"session_id"'),
    version=2,
    claims=claims,
    profile=PROFILE,
)
