"""Records in Claude Code's form that another agent wrote (design/formats.md#small-formats), for whoever reads Claude
Code's: the agent stands in `harness`, or in place of the version's number."""

from __future__ import annotations

import re
from typing import Any

from agentsignals.formats import Claim, Format, profiles
from agentsignals.formats.head import Head
from agentsignals.formats.profile import Profile

_NAME = re.compile(r"([A-Za-z][A-Za-z_-]{2,40}?)(?:[-_/@ ]v?(\d[\w.+-]*))?\Z")
_NO_NAME = re.compile(
    r"(?i:unknown|dev|development|local|redacted|none|null|latest|canary|nightly|beta|alpha|claude.*)"
)
_OWN_FORMAT = ("swival",)


def agent_of(record: dict[str, Any]) -> tuple[str, str | None] | None:
    """Return the agent that a record names, and its version if that is told. None where it is Claude Code's own."""
    harness = record.get("harness")
    if isinstance(harness, str) and harness:
        return None if harness in _OWN_FORMAT else (harness, None)
    named = _NAME.match(version) if isinstance(version := record.get("version"), str) else None
    return None if named is None or _NO_NAME.fullmatch(named[1]) else (named[1], named[2])


def profile_of(name: str) -> Profile | None:
    """Return the profile of an agent by its name or another name of it."""
    return next((p for p in profiles() if name.lower() in (p.agent, *p.aliases)), None)


def claims(head: Head) -> Claim | None:
    """Claim records with `parentUuid`, `sessionId` and the name of an agent that is not Claude Code.

    Of a first record that is longer than the head, the fields before its text are read."""
    if not head.records and head.data.startswith(b"{") and b'"parentUuid"' in head.data:
        fields = {
            name: found[1].decode("utf-8", "replace")
            for name in ("sessionId", "version", "harness")
            if (found := re.search(rb'"%b"\s*:\s*"([^"\\]{1,80})"' % name.encode(), head.data))
        }
        if "sessionId" in fields and agent_of(fields) is not None:
            return Claim(keys=[f"session:{fields['sessionId']}"])
    records = [r for r in head.records if "parentUuid" in r and isinstance(r.get("sessionId"), str)]
    if not records or any(agent_of(record) is None for record in records):
        return None
    if not any(isinstance(message := record.get("message"), dict) and "content" in message for record in records):
        return None
    return Claim(keys=list(dict.fromkeys(f"session:{record['sessionId']}" for record in records)))


FORMAT = Format(name="claude-form", marks=(b'"parentUuid"',), version=1, claims=claims)
