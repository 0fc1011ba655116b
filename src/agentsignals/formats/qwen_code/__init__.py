"""Qwen Code chats (design/formats.md#qwen-code): `~/.qwen/projects/<cwd>/chats/<session>.jsonl`, a record a line.

Its records have the ids of Claude Code's and the messages of Gemini's API.
"""

import re

from msgspec import structs

from agentsignals.formats import Claim, Format, gemini_cli
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head, inside

PROFILE = structs.replace(
    gemini_cli.PROFILE,
    agent="qwen-code",
    conventions=("rewinds_logged",),
    instructions=("QWEN.md",),
    instructions_perhaps=("AGENTS.md",),
    aliases=("qwen",),
    homes=("~/.qwen/projects", "~/.qwen/tmp"),
    state=("projects/*/extract-cursor.json", "projects/*/meta.json"),
    tools=tools.named(
        (tools.READ, "read_file read_many_files"),
        (tools.SEARCH, "grep_search search_file_content lsp"),
        (tools.FIND, "glob list_directory"),
        (tools.EDIT, "edit replace"),
        (tools.WRITE, "write_file"),
        (tools.SHELL, "run_shell_command"),
        (tools.PLAN, "todo_write task_update"),
        (tools.PLAN.to("add_task"), "task_create"),
        (tools.HAND_IN, "exit_plan_mode"),
        (tools.TASK, "agent task"),
        (tools.SKILL, "skill"),
        (tools.WEB, "web_fetch web_search"),
        (tools.ASK, "ask_user_question"),
        (tools.READ.to("poll"), "task_output"),
        (tools.ASIDE, "save_memory task_list task_get task_stop"),
    ),
)


_LONG_FIRST_LINE = re.compile(
    rb'\{"uuid": ?"[^"]{1,64}", ?"parentUuid": ?(?:null|"[^"]{1,64}"), ?"sessionId": ?"([^"]{1,100})", ?'
    rb'[^{}]{1,4000}"message": ?\{"role": ?"(?:user|model)", ?"parts": ?\['
)
"""A first record longer than the head, with a huge prompt."""


def claims(head: Head) -> Claim | None:
    """Recognize `parentUuid` and `sessionId` with messages that have `parts`, or with the program's state."""
    named = [r for r in head.records if "parentUuid" in r and isinstance(r.get("sessionId"), str)]
    messages = [m for r in named if isinstance(m := r.get("message"), dict)]
    has_parts = any(isinstance(m.get("parts"), list) and "content" not in m for m in messages)
    if has_parts or any("systemPayload" in r and r.get("type") == "system" for r in named):
        ids = [r["sessionId"] for r in named] + [inside(r.get("forkedFrom"), "sessionId") for r in named]
        return Claim(keys=list(dict.fromkeys(f"session:{name}" for name in ids if isinstance(name, str))))
    long = _LONG_FIRST_LINE.match(head.data) if not head.records else None
    return Claim(keys=[f"session:{long[1].decode('utf-8', 'replace')}"]) if long else None


FORMAT = Format(name="qwen-code", marks=(b'"parts"', b'"systemPayload"'), version=1, claims=claims, profile=PROFILE)
