"""mini-SWE-agent trajectories: `<instance>.traj.json`, a list of messages or a document with one
(design/formats.md#mini-swe-agent)."""

import re

from agentsignals.formats import Claim, Format
from agentsignals.formats.instances import canonical, of_submission, root_of, run_of, run_of_model, runs_above, stem_of
from agentsignals.formats.profile import SHELL, Profile, named
from agentsignals.formats.records import CUT, Head, inside, string

PROFILE = Profile(agent="mini-swe-agent", tools=named((SHELL, "bash")))


_FENCE = re.compile(r"```(?:mswea_)?bash(?:_command)?[^\n]{0,20}\n")
_SAYS_SO = re.compile(r'"trajectory_format"\s*:\s*"mini-swe-agent')
_ANSWERS = ("<returncode>", "<exception>", "Observation: ", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
_OF_MESSAGE = frozenset(("role", "content", "extra"))


def claims(head: Head) -> Claim | None:
    """A document that says so, or whose messages hold one command in a fence each and its return code below."""
    document = head.document
    ours = _is_document(document, head) if "messages" in document or "info" in document else _are_messages(head.items)
    if not ours:
        return None
    keys = [run_of(head.path), *runs_above(head.path)]
    name = string(inside(document, "info", "config", "model", "model_name"))
    if keys[0] is not None and name is not None and not of_submission(head.path):
        # An evaluation's folder is named for the model, even if the run has a name of its own.
        keys.append(run_of_model(name, keys[0].rpartition("/")[2]))
    task = string(document.get("instance_id")) or stem_of(head.path)
    tells = [f"@{name}/{canonical(task)}"] if name is not None else [f"/{canonical(task)}"]
    named = [f"run:{k}" for k in dict.fromkeys(keys) if k is not None]
    return Claim(keys=named, root=root_of(head.path), tells=tells)


def _is_document(document: dict[str, object], head: Head) -> bool:
    """Return whether a document is a trajectory: it says so, or has the messages and facts of one."""
    named = document.get("trajectory_format")
    if isinstance(named, str):
        return named.startswith("mini-swe-agent")
    messages, info = document.get("messages"), document.get("info")
    if isinstance(messages, list):
        return isinstance(info, dict) and _are_messages(messages)
    if not isinstance(info, dict) and info is not CUT:
        return False
    if _SAYS_SO.search(head.text):
        return True
    config = inside(info, "config")
    return (isinstance(info, dict) and "mini_version" in info) or (isinstance(config, dict) and "agent_type" in config)


def _are_messages(messages: list[object] | list[dict[str, object]]) -> bool:
    """System and user first, and where the rest can be seen: commands in fences, answers with their return code."""
    shown = [m for m in messages[:8] if isinstance(m, dict)]
    if len(shown) < 2 or [m.get("role") for m in shown[:2]] != ["system", "user"]:
        return False
    if any("extra" not in m and not m.keys() <= _OF_MESSAGE for m in shown):
        return False
    replies = [c for m in shown[2:] if isinstance(c := m.get("content"), str) and m.get("role") == "assistant"]
    answers = [c for m in shown[3:] if isinstance(c := m.get("content"), str) and m.get("role") == "user"]
    fenced = any(_FENCE.search(text) for text in replies)
    opening = shown[0].get("content")
    if not replies:
        return isinstance(opening, str) and _FENCE.search(opening) is not None
    return fenced and (not answers or any(a.startswith(_ANSWERS) for a in answers))


FORMAT = Format(name="mini-swe-agent", version=6, claims=claims, profile=PROFILE)
