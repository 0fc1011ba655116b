"""What is known of Factory Droid: its home and its tools."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASK, EDIT, FIND, HAND_IN, PLAN, READ, SEARCH, SHELL, SKILL, TASK, WEB, WRITE

PROFILE = Profile(
    agent="factory-droid",
    instructions=("AGENTS.md",),
    aliases=("droid",),
    homes=("~/.factory/sessions",),
    tools=named(
        (READ, "Read"),
        (SEARCH, "Grep"),
        (FIND, "Glob LS"),
        (EDIT, "Edit MultiEdit ApplyPatch"),
        (WRITE, "Create Write"),
        (SHELL, "Execute"),
        (PLAN, "TodoWrite ProposeMission"),
        (HAND_IN, "ExitSpecMode"),
        (TASK, "Task"),
        (SKILL, "Skill"),
        (WEB, "WebSearch FetchUrl"),
        (ASK, "AskUser"),
    ),
    frame=(r"\[Process exited with code -?\d+\]", r"Error: Command failed \(exit code: -?\d+\)"),
    nothing_found=("No matches found", "No files found", "No results found"),
    failures=(("edit_mismatch", ("could not find the text", "old_str not found", "old_str and new_str are")),),
)
