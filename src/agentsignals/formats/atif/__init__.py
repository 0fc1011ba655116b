"""ATIF trajectories, versions 1.0 to 1.7: one JSON document for each agent run (design/formats.md#harbor-and-atif).

Compactions and subagents may have files of their own. The profile holds the tool names of harnesses that write ATIF;
other names are looked up among all agents.
"""

import posixpath
from typing import Any

from agentsignals.formats import Claim, Format
from agentsignals.formats.profile import ASIDE, NO_SHELL, PLAN, SHELL, WEB, Profile, Tool, named
from agentsignals.formats.records import Head

PROFILE = Profile(
    tools=named(
        (Tool(class_="shell", command=("keystrokes", "command")), "keystrokes bash_command"),
        (SHELL, "execute_bash run_shell_command terminal"),
        (NO_SHELL, "execute_ipython_cell"),
        (PLAN, "task_tracker todo"),
        (WEB, "browser fetch browser_use"),
        (ASIDE, "think finish submit mark_task_complete task_complete"),
    ),
    frame=(
        r"\[The command completed with exit code -?\d+\.?\]",
        r"\[Command finished with exit code -?\d+\]",
        r"\[(?:Current working directory|Python interpreter): .*\]",
    ),
)


def claims(head: Head) -> Claim | None:
    """Recognise `schema_version: ATIF-…`, which no other format has.

    Files of one run share its session id, or at least their folder. Our own export writes a session a file, next to
    unrelated ones.
    """
    version = head.document.get("schema_version")
    if not isinstance(version, str) or not version.startswith("ATIF-"):
        return None
    session_id = head.document.get("session_id")
    keys = [f"session:{session_id}"] if isinstance(session_id, str) and session_id else []
    return Claim(keys=keys, root=None if keys and is_exported(head.document) else posixpath.dirname(head.path))


def is_exported(document: dict[str, Any]) -> bool:
    """Return whether our own export wrote the document: the trajectory's agent says so."""
    agent = document.get("agent")
    extra = agent.get("extra") if isinstance(agent, dict) else None
    return isinstance(extra, dict) and "agentsignals" in extra


FORMAT = Format(name="atif", marks=(b'"ATIF-',), version=6, claims=claims, profile=PROFILE)
