"""What is known of OpenCode: its home and its tools."""

from __future__ import annotations

from msgspec import structs

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
    instructions=("AGENTS.md",),  # https://opencode.ai/docs/rules: CLAUDE.md where there is none, `@FILE` is not read
    instructions_perhaps=("CLAUDE.md",),
    homes=tuple(
        f"{data}/opencode/{place}"
        for data in ("~/.local/share", "$XDG_DATA_HOME")
        for place in ("opencode*.db", "storage/session", "storage/message", "storage/part", "export")
    ),
    tools=named(
        (READ, "read"),
        (SEARCH, "grep lsp"),
        (FIND, "glob list"),
        (EDIT, "edit multiedit patch apply_patch"),
        (WRITE, "write"),
        (SHELL.within("timeout", 0.001), "bash shell"),
        (PLAN, "todowrite todoread"),
        (PLAN_MODE, "plan_enter"),
        (HAND_IN, "plan_exit"),
        (TASK, "task"),
        (SKILL, "skill"),
        (WEB, "webfetch websearch codesearch"),
        (ASK, "question"),
    ),
    nothing_found=("No files found", "No matches found"),
    stopped=(
        ("error", ("terminated command after exceeding timeout", "terminated after exceeding timeout")),
        ("cancelled", ("User aborted the command",)),
    ),
    failures=(
        ("permission", ("the user has specified a rule which prevents you",)),
        ("not_read_first", ("must read file",)),
        (
            "edit_mismatch",
            (
                "could not find oldstring",
                "multiple matches for oldstring",
                "modified since it was last read",
                "newstring are identical",
                "newstring must be different",
                "oldstring not found",
            ),
        ),
        ("not_found", (r"\A(?:error: )?file .* not found",)),
    ),
)
"""Other names are MCP servers' tools (`<server>_<tool>`) and plugins'; nothing in the trace tells them apart."""
KILO = structs.replace(
    PROFILE,
    agent="kilo",
    homes=tuple(f"{data}/kilo/kilo*.db" for data in ("~/.local/share", "$XDG_DATA_HOME")),
)
"""A fork with the same tables: nothing in them names it, the database's name does."""
