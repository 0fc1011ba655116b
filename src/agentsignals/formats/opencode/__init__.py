"""OpenCode session exports (design/formats.md#opencode): one pretty-printed JSON document a session.

A session with `parentID` is a subagent's: its "user" is the parent agent, so it has no human turns. A message's own
tokens count; the `step-finish` part that repeats them does not. The client's own folder (a file a message) is not read.
"""

from __future__ import annotations

import re

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.head import CUT, Head
from agentsignals.formats.opencode.profile import PROFILE

UNNAMED = (None, "", "REDACTED")
"""Session ids that name nothing: a collector takes ids for secrets."""

_BEGINS = re.compile(r'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"(ses_\w+)"')


def claims(head: Head) -> Claim | None:
    """`info.id` = `ses_…` and `messages`. The head may end inside `info`, and need not show the messages."""
    info = head.document.get("info")
    if info is CUT:
        cut = _BEGINS.match(head.text)
        return Claim(keys=[f"session:{cut.group(1)}"]) if cut else None
    if not isinstance(info, dict) or "messages" not in head.document:
        return None
    session_id = info.get("id")
    if isinstance(session_id, str) and session_id.startswith("ses_"):
        return Claim(keys=[f"session:{session_id}"])
    if session_id in UNNAMED and "projectID" in info and "directory" in info:
        return Claim(keys=[], beside=True)
    return None


FORMAT = Format(name="opencode", version=4, claims=claims, read=read_by("opencode.files"), profile=PROFILE)
