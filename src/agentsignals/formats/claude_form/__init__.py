"""Records in Claude Code's form that another agent wrote (design/formats.md#small-formats), for whoever reads Claude
Code's: the agent stands in `harness`, or in place of the version's number."""

from __future__ import annotations

from agentsignals.formats import Claim, Format, profiles
from agentsignals.formats.claude_code import sessions_of_another
from agentsignals.formats.head import Head
from agentsignals.formats.profile import Profile


def profile_of(name: str) -> Profile | None:
    """Return the profile of an agent by its name or another name of it."""
    return next((p for p in profiles() if name.lower() in (p.agent, *p.aliases)), None)


def claims(head: Head) -> Claim | None:
    ids = sessions_of_another(head)
    return Claim(keys=[f"session:{session_id}" for session_id in ids]) if ids else None


FORMAT = Format(name="claude-form", version=1, claims=claims)
