"""What is known of Windsurf's Cascade: where its hook writes, and its tools."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import EDIT, FIND, MCP, READ, SEARCH, SHELL

PROFILE = Profile(
    agent="windsurf",
    instructions=(".windsurf/rules/**/*.md", ".windsurfrules"),
    instructions_perhaps=("AGENTS.md",),
    homes=("~/.windsurf/transcripts",),
    tools=named(
        (READ, "view_file"),
        (EDIT, "code_action"),
        (SHELL, "run_command"),
        (structs.replace(SEARCH, path=("search_path",)), "grep_search"),
        (structs.replace(FIND, path=("search_directory", "path")), "find list_directory"),
        (MCP, "list_resources"),
    ),
    conventions=("thinking_not_logged",),
)
