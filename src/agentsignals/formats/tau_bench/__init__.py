"""Results of tau-bench and tau2-bench (design/formats.md#tau-bench): a list of trials, each with its reward and
conversation; of tau2-bench a run as one document, or `results.json` beside `simulations/<id>.json`."""

import posixpath
import re

from msgspec import structs

from agentsignals.formats import Claim, Format, profile, read_by
from agentsignals.formats.profile import Profile, named
from agentsignals.formats.records import CUT, Head

PROFILE = Profile(agent="tau-bench", tools=named((profile.ASIDE, "think calculate transfer_to_human_agents")))
LOOKS = re.compile(r"(?:get|find|list|search)_\w+|calculate|think|respond|transfer_to_human_agents")
"""Tools of the two domains that change nothing in the database."""
_RESULT = frozenset(("task_id", "reward", "traj", "trial"))


def claims(head: Head) -> Claim | None:
    """Claim a list of which at least half have a task, a reward, a trial and a conversation."""
    items = head.items
    return Claim(keys=[]) if items and 2 * sum(item.keys() >= _RESULT for item in items) >= len(items) else None


FORMAT = Format(name="tau-bench", marks=(b'"traj"',), version=4, claims=claims, profile=PROFILE)


_SIMULATION = frozenset(("id", "task_id", "termination_reason"))
_CONVERSATION = frozenset(("messages", "ticks"))
_INFO = frozenset(("agent_info", "user_info", "environment_info"))


def claims_of_simulations(head: Head) -> Claim | None:
    """Claim a run by its agent, user and environment, and a simulation by its task and how it ended."""
    document, folder = head.document, posixpath.dirname(head.path)
    info = document.get("info")
    is_run = isinstance(info, dict) and info.keys() >= _INFO
    if is_run and (document.get("simulations") or CUT in document.values()):
        return Claim(keys=[])
    if is_run and "tasks" in document:
        return Claim(keys=[f"tau2:{folder}"])
    if document.keys() >= _SIMULATION and document.keys() & _CONVERSATION:
        return Claim(keys=[f"tau2:{posixpath.dirname(folder)}"])
    return None


TAU2_BENCH_FORMAT = Format(
    name="tau2-bench",
    marks=(b'"termination_reason"', b'"agent_info"'),
    version=3,
    claims=claims_of_simulations,
    read=read_by("tau_bench.simulations"),
    profile=structs.replace(PROFILE, agent="tau2-bench"),
)
