"""Gemini CLI chat files up to 0.39 (formats.md section 5): one JSON document a session, rewritten as it grows.

Later versions write JSON Lines, which this format does not claim.
"""

from __future__ import annotations

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.head import Head


def claims(head: Head) -> Claim | None:
    """A document with `sessionId`, `projectHash` and `messages`; the header line of the JSON Lines has no messages."""
    found = head.document
    session_id = found.get("sessionId")
    if not isinstance(session_id, str) or not session_id or "projectHash" not in found or "messages" not in found:
        return None
    return Claim([f"session:{session_id}"])


FORMAT = Format(
    name="gemini-cli",
    version=1,
    claims=claims,
    read=read_by("gemini_files"),
    agent="gemini-cli",
    home=("~/.gemini/tmp",),
)
