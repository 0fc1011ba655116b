"""What is known of Kiro: its home and its tools."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, FIND, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, WRITE

PROFILE = Profile(
    agent="kiro",
    instructions=(".kiro/steering/**/*.md",),
    instructions_perhaps=("AGENTS.md",),
    homes=("~/.kiro/sessions",),
    tools=named(
        (READ, "fs_read read"),
        (WRITE, "fs_write write"),
        (SEARCH, "grep code knowledge"),
        (FIND, "glob"),
        (SHELL, "execute_bash execute_cmd shell bash"),
        (PLAN, "todo_list todo"),
        (TASK, "delegate use_subagent subagent session"),
        (WEB, "web_search web_fetch"),
        (ASIDE, "use_aws aws thinking introspect report_issue gh_issue"),
    ),
    tools_like={"*___*": MCP},
    conventions=("thinking_not_logged",),
    nothing_found=("No matches found", "No files found", "No results found"),
    failures=(("edit_mismatch", ("no occurrences of", "occurrences of old_str were found")),),
)
"""Its `thinking` is a tool; what the model thought is not logged."""
