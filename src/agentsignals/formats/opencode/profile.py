"""What is known of OpenCode: its home and its tools."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import (
    ASK,
    EDIT,
    FIND,
    HAND_IN,
    PLAN,
    PLAN_MODE,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
)

PROFILE = Profile(
    agent="opencode",
    homes=("~/.local/share/opencode/export",),
    tools=named(
        (READ, "read"),
        (SEARCH, "grep lsp"),
        (FIND, "glob list"),
        (EDIT, "edit multiedit patch apply_patch"),
        (WRITE, "write"),
        (SHELL, "bash shell"),
        (PLAN, "todowrite todoread"),
        (PLAN_MODE, "plan_enter"),
        (HAND_IN, "plan_exit"),
        (TASK, "task"),
        (SKILL, "skill"),
        (WEB, "webfetch websearch codesearch"),
        (ASK, "question"),
    ),
)
"""Other names are MCP servers' tools (`<server>_<tool>`) and plugins'; nothing in the trace tells them apart."""
