"""Output of `claude -p --output-format stream-json` (design/formats.md#claude-stream): a start, messages, a result.

The prompt is not among it, nor are times in most versions. With `--output-format json` only the result is printed.
"""

from __future__ import annotations

from agentsignals.formats import Claim, Format
from agentsignals.formats.claude_code import PROFILE
from agentsignals.formats.head import Head

_OTHERS = ("tool_call", "tool_result", "message", "thinking", "completion")
"""Records of other agents whose streams begin alike (Cursor's, Droid's)."""
_NOT_STREAMED = ("parentUuid", "sessionId", "harness", "reasoning_effort")


def claims(head: Head) -> Claim | None:
    """A start or a result that names its session in snake case; a transcript's records have `sessionId`, and parents.

    No session of its own is named by a transcript and by the stream of the same run: they share the key.
    """
    records = head.records or head.items
    if not records and head.document.get("type") == "result":
        records = [head.document]
    if any(r.get("type") in _OTHERS or any(k in r for k in _NOT_STREAMED) for r in records):
        return None
    ids = [r["session_id"] for r in records if isinstance(r.get("session_id"), str) and r["session_id"]]
    if not ids or not any(
        (r.get("type") == "system" and r.get("subtype") == "init" and "session_id" in r)
        or (r.get("type") == "result" and isinstance(r.get("subtype"), str) and "is_error" in r)
        for r in records
    ):
        return None
    return Claim(keys=[f"session:{session_id}" for session_id in dict.fromkeys(ids)])


FORMAT = Format(name="claude-stream", marks=(b'"session_id"',), version=10, claims=claims, profile=PROFILE)
