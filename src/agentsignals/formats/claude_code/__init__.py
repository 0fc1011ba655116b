"""Claude Code sessions (design/formats.md#claude-code): `~/.claude/projects/<cwd>/<session>.jsonl` and its subagent
files."""

from __future__ import annotations

import re
from typing import Any

from agentsignals.formats import Card, Claim, Format, Material, read_by
from agentsignals.formats.claude_code.profile import PROFILE
from agentsignals.formats.head import Head

_FIRST_TYPES = (
    *("file-history-snapshot", "queue-operation", "summary", "last-prompt", "mode", "permission-mode"),
    *("custom-title", "ai-title", "progress"),
)
"""Not a set: a hostile record's type may be a list, which has no hash."""
_LONG_FIRST_LINE = re.compile(rb'\{"(?:parentUuid|logicalParentUuid)":.{0,140}"isSidechain":', re.DOTALL)
_SESSION_ID = re.compile(rb'"sessionId":"([^"]{1,100})"')
_MOST_RECORD_KEYS = 3
_HANDS_ON = b"read the full transcript at: "
_MADE_IN = re.compile(
    rb"read the full transcript at: [^\s\"]{0,400}?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl"
)
_META = ".meta.json"
_ABOUT_SUBAGENT = re.compile(r"(?:([^/]+)/subagents/(?:[^/]+/)*)?agent-[^/]+\.meta\.json$")
"""What the program notes of a subagent, beside its log."""


def claims(head: Head) -> Claim | None:
    """Records with `parentUuid` and `sessionId`, or a first record of a kind only Claude Code writes."""
    about = _ABOUT_SUBAGENT.search(head.path) if head.path.endswith(_META) else None
    if about is not None and b'"agentType"' in head.data:
        return Claim(keys=[f"session:{about[1]}"] if about[1] else [])
    records = head.records
    if any("harness" in r for r in records) or not _may_be_ours(records):
        return None
    if not records:
        return _claims_long_line(head.data)
    if not any("sessionId" in r and ("parentUuid" in r or r.get("type") in _FIRST_TYPES) for r in records) and not (
        records[0].get("type") in _FIRST_TYPES and ("leafUuid" in records[0] or "snapshot" in records[0])
    ):
        return None
    keys = [f"session:{r['sessionId']}" for r in records if isinstance(r.get("sessionId"), str)]
    if _HANDS_ON in head.data:  # a plan names the session it was made in: foreseen, its file is not read a second time
        keys += [f"session:{name.decode()}" for name in _MADE_IN.findall(head.data)]
    # A fork or resume holds copies of the other session's records, under a session id of its own.
    copies = [r["uuid"] for r in records if isinstance(r.get("uuid"), str) and r["uuid"] != "REDACTED"]
    keys += [f"record:{uuid}" for uuid in copies[:_MOST_RECORD_KEYS]]
    return Claim(keys=list(dict.fromkeys(keys)))


def _may_be_ours(records: list[dict[str, Any]]) -> bool:
    """Others have `parentUuid` and `sessionId`, too; a message with `content` only Claude Code has beside them."""
    messages = [m for r in records if isinstance(m := r.get("message"), dict) and m]
    return any("content" in m for m in messages) or not (messages or any("systemPayload" in r for r in records))


def _claims_long_line(data: bytes) -> Claim | None:
    """A first record that is longer than the window: a pasted image, a huge prompt."""
    if not _LONG_FIRST_LINE.match(data) or b'"harness":' in data:
        return None
    session_id = _SESSION_ID.search(data)
    return Claim(keys=[f"session:{session_id.group(1).decode('utf-8', 'replace')}"] if session_id else [])


read = read_by("claude_code.family")
CARD = Card(
    material=(
        Material("real", "856 sessions of 11 repositories, in 94 versions", ("2.0.64 to 2.1.219",)),
        Material("run", "Agent SDK and claude -p: 4 sessions, one with 102 subagents", ("2.1.330",)),
        Material("fixture", "older logs", ("1.0.0", "1.0.24")),
    ),
    limits=(
        "Versions up to some 2.1.99 log output tokens in mid-stream: they are lower bounds there.",
        "A file does not say what was billed: dollars come from list prices.",
        "userModified is false in all 11,389 edits seen: it says nothing of a person's changes.",
        "How subagents of subagents are laid out was never seen.",
    ),
)
FORMAT = Format(name="claude-code", version=9, claims=claims, read=read, profile=PROFILE, card=CARD)
