"""Kiro (and Amazon Q Developer CLI) conversations (design/formats.md#small-formats): one JSON document of
user/assistant pairs.

Collectors leave most fields empty: no ids, times or results. Files of the client itself have tool results, times, the
working folder, and text written in the person's or the agent's name.
"""

from __future__ import annotations

from agentsignals.formats import Card, Claim, Format, Material, read_by
from agentsignals.formats import profile as tools
from agentsignals.formats.head import CUT, Head
from agentsignals.formats.profile import Profile, named

PROFILE = Profile(
    agent="kiro",
    instructions=(".kiro/steering/**/*.md",),
    instructions_perhaps=("AGENTS.md",),
    homes=("~/.kiro/sessions",),
    tools=named(
        (tools.READ, "fs_read read"),
        (tools.WRITE, "fs_write write"),
        (tools.SEARCH, "grep code knowledge"),
        (tools.FIND, "glob"),
        (tools.SHELL, "execute_bash execute_cmd shell bash"),
        (tools.PLAN, "todo_list todo"),
        (tools.TASK, "delegate use_subagent subagent session"),
        (tools.WEB, "web_search web_fetch"),
        (tools.ASIDE, "use_aws aws thinking introspect report_issue gh_issue"),
    ),
    tools_like={"*___*": tools.MCP},
    conventions=("thinking_not_logged",),
    nothing_found=("No matches found", "No files found", "No results found"),
    failures=(("edit_mismatch", ("no occurrences of", "occurrences of old_str were found")),),
)
"""Its `thinking` is a tool. The model's own thinking is not logged."""


def claims(head: Head) -> Claim | None:
    """Recognize `conversation_id` (usually empty) and `history` of user/assistant pairs."""
    document = head.document
    conversation_id, history = document.get("conversation_id"), document.get("history")
    if not isinstance(conversation_id, str):
        return None
    if history is not CUT and not (isinstance(history, list) and all(_is_pair(entry) for entry in history[:1])):
        return None
    return Claim(keys=[f"session:{conversation_id}"]) if conversation_id else Claim(keys=[], beside=True)


def _is_pair(entry: object) -> bool:
    if isinstance(entry, list):
        return len(entry) == 2
    return isinstance(entry, dict) and "user" in entry and "assistant" in entry


CARD = Card(
    material=(Material("real", "5 short conversations"),),
    limits=("No times and no tokens.", "The program's own database is not read: it is known from documentation alone."),
)
FORMAT = Format(
    name="kiro",
    marks=(b'"conversation_id"',),
    version=3,
    claims=claims,
    read=read_by("kiro.reader"),
    profile=PROFILE,
    card=CARD,
)
