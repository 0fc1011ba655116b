"""Results of tau-bench: a list of trials, each with its reward and conversation (design/formats.md#tau-bench)."""

import re

from agentsignals.formats import Claim, Format, profile
from agentsignals.formats.head import Head
from agentsignals.formats.profile import Profile, named

PROFILE = Profile(agent="tau-bench", tools=named((profile.ASIDE, "think calculate transfer_to_human_agents")))
LOOKS = re.compile(r"(?:get|find|list|search)_\w+|calculate|think|respond|transfer_to_human_agents")
"""Tools of the two domains that change nothing in the database."""
_RESULT = frozenset(("task_id", "reward", "traj", "trial"))


def claims(head: Head) -> Claim | None:
    """Claim a list of which at least half have a task, a reward, a trial and a conversation."""
    items = head.items
    return Claim(keys=[]) if items and 2 * sum(item.keys() >= _RESULT for item in items) >= len(items) else None


FORMAT = Format(name="tau-bench", marks=(b'"traj"',), version=4, claims=claims, profile=PROFILE)
