"""Swival traces (design/formats.md#small-formats): records shaped like Claude Code's on purpose; `harness`
distinguishes them.

No real file was found: the reader follows the program that writes them.
"""

from __future__ import annotations

from agentsignals.formats import Claim, Format
from agentsignals.formats import profile as tools
from agentsignals.formats.head import Head
from agentsignals.formats.profile import Profile, named

PROFILE = Profile(
    agent="swival",
    tools=named(
        (tools.READ, "read_file read_multiple_files view_image outline"),
        (tools.SEARCH, "grep"),
        (tools.FIND, "list_files"),
        (tools.EDIT, "edit_file delete_file"),
        (tools.WRITE, "write_file"),
        (tools.SHELL, "run_command run_shell_command"),
        (tools.PLAN, "todo"),
        (tools.TASK, "spawn_subagent check_subagents"),
        (tools.SKILL, "use_skill"),
        (tools.WEB, "fetch_url"),
        (tools.ASIDE, "think snapshot goal"),
    ),
    tools_like={"mcp__*": tools.MCP},
)


def claims(head: Head) -> Claim | None:
    """Recognize a `harness`, a `parentUuid` and a `sessionId`; Claude Code's have no `harness`, STS no parents.

    Every export gives the records new ids: the session's is the only key that two exports share.
    """
    records = [r for r in head.records if "harness" in r]
    named = [r for r in records if isinstance(r.get("sessionId"), str)]
    if not any("parentUuid" in r and r["harness"] == "swival" for r in named):
        return None
    return Claim(keys=list(dict.fromkeys(f"session:{r['sessionId']}" for r in named)))


FORMAT = Format(name="swival", marks=(b'"harness"',), version=3, claims=claims, profile=PROFILE)
