"""What is known of Pi: its home, its own tools, those of extensions met in real sessions; of OpenClaw, built on it."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import (
    ASIDE,
    ASK,
    EDIT,
    FIND,
    HAND_IN,
    MCP,
    PLAN,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
)

PROFILE = Profile(
    agent="pi",
    instructions=("AGENTS.md",),
    instructions_perhaps=("CLAUDE.md",),
    homes=("~/.pi/agent/sessions", "$PI_CODING_AGENT_DIR/sessions"),
    tools=named(
        (READ, "read"),
        (SEARCH, "grep"),
        (FIND, "find ls"),
        (EDIT, "edit"),
        (WRITE, "write"),
        (SHELL.within("timeout"), "bash"),
        (TASK, "subagent subagent_supervisor contact_supervisor intercom"),
        (SKILL, "skill"),
        (WEB, "websearch webfetch web_search web_fetch fetch_content searxng_search"),
        (ASK, "ask_user_question ask_user question"),
        (PLAN, "todo"),
        (HAND_IN, "plannotator_submit_plan exit_plan_mode"),
        (MCP, "mcp"),
    ),
    conventions=("phases_logged",),
    machine_written=(
        ("Task: [Read from:", "meta"),
        ("Task: [Write to:", "meta"),
        ("You are a fresh Pi instance working on a delegated task", "meta"),
    ),
    machine_like=((r"<!-- pi-[\w-]+ v\d+ -->", "meta"),),
    nothing_found=("No matches found", "No files found", "No results found"),
    frame=(r"Command exited with code -?\d+",),
    blocks_in_any_words=("edit",),
)

OPENCLAW = structs.replace(
    PROFILE,
    agent="openclaw",
    instructions=(),
    instructions_perhaps=("AGENTS.md",),
    aliases=("clawdbot", "moltbot"),
    homes=(
        *("~/.openclaw/agents", "$OPENCLAW_STATE_DIR/agents"),
        *("~/.clawdbot/agents", "~/.moltbot/agents"),  # as it was called before
    ),
    tools={
        **{name: tool for name, tool in PROFILE.tools.items() if tool is not HAND_IN},
        **named(
            (SHELL.within("timeout"), "exec"),
            (TASK.to("poll"), "process"),
            (EDIT, "apply_patch"),
            (TASK, "sessions_spawn sessions_send subagents"),
            (WEB, "browser"),
            (ASIDE, "openclaw message cron gateway nodes canvas image memory_search memory_get session_status"),
        ),
    },
    frame=(r"\(Command exited with code -?\d+\)",),
)
"""A gateway from chats to an agent built of Pi's parts; it writes the same entries."""
