"""What is known of Amp: its home and its tools."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, EDIT, FIND, MCP, PLAN, READ, SEARCH, SHELL, SKILL, TASK, WEB, WRITE

PROFILE = Profile(
    agent="amp",
    instructions=("AGENTS.md",),  # https://ampcode.com/manual#AGENTS.md: the others where there is none
    instructions_perhaps=("AGENT.md", "CLAUDE.md"),
    expands_imports=True,
    homes=("~/.local/share/amp/threads", "$XDG_DATA_HOME/amp/threads", "$LOCALAPPDATA/amp/threads"),
    tools=named(
        (READ, "Read look_at"),
        (SEARCH, "Grep finder"),
        (FIND, "glob list_directory"),
        (EDIT, "edit_file apply_patch"),
        (structs.replace(EDIT, roles=None), "undo_edit format_file"),
        (WRITE, "create_file"),
        (structs.replace(SHELL, folder=("cwd", "workdir")), "Bash shell_command"),
        (PLAN, "todo_write todo_read"),
        (TASK, "Task oracle librarian handoff code_review"),
        (SKILL, "skill"),
        (WEB, "read_web_page web_search"),
        (ASIDE, "mermaid painter read_thread find_thread get_diagnostics walkthrough repl read_mcp_resource"),
    ),
    tools_like={"mcp__*": MCP},
    nothing_found=("No results found", "[]"),
    failures=(("edit_mismatch", ("could not find exact match",)),),
)
