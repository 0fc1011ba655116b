"""Results of tau2-bench: a run as one document, or `results.json` beside `simulations/<id>.json`
(design/formats.md#tau-bench)."""

import posixpath

from msgspec import structs

from agentsignals.formats import Claim, Format, tau_bench
from agentsignals.formats.head import CUT, Head

PROFILE = structs.replace(tau_bench.PROFILE, agent="tau2-bench")
_SIMULATION = frozenset(("id", "task_id", "termination_reason"))
_CONVERSATION = frozenset(("messages", "ticks"))
_INFO = frozenset(("agent_info", "user_info", "environment_info"))


def claims(head: Head) -> Claim | None:
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


FORMAT = Format(
    name="tau2-bench", marks=(b'"termination_reason"', b'"agent_info"'), version=3, claims=claims, profile=PROFILE
)
