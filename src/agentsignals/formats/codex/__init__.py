"""Codex rollouts (design/formats.md#codex): `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`."""

import re

from msgspec import structs

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PATCH = structs.replace(tools.EDIT, roles=structs.replace(tools.EDIT_ROLES, patch=("input", "patch", "command")))
"""The patch may be the last of a command's words."""
_INJECTED = (
    "# AGENTS.md instructions", "</image>", "<INSTRUCTIONS>", "<agent_message", "<app-context>", "<apps_instructions>",
    "<codex_internal_context", "<collaboration_mode>", "<environment_context>", "<goal_context>", "<hook_prompt",
    "<image", "<model_switch>", "<permissions instructions>", "<personality_spec>", "<plugins_instructions>",
    "<recommended_plugins>", "<skill>", "<skills_instructions>", "<subagent_notification>", "<turn_aborted>",
    "<user_action>", "<user_instructions>", "<user_shell_command>",
    "Another language model started to solve this problem and produced a summary",
)  # fmt: skip
"""Beginnings of items that the program puts in the person's place."""

_PERSONAL = r"(?:.*\n--- project-doc ---\n)?"
"""A person's own instructions, which are logged before the repository's."""

PROFILE = tools.Profile(
    agent="codex",
    maker="openai",
    conventions=("rewinds_logged",),
    instructions=("AGENTS.md", "AGENTS.override.md"),  # https://github.com/openai/codex/blob/main/docs/agents_md.md
    instructions_logged=(
        (
            "AGENTS.md",
            rf"# AGENTS\.md instructions[^\n]*\n+<INSTRUCTIONS>\n{_PERSONAL}(?P<text>.*?)(?:\n</INSTRUCTIONS>|\Z)",
        ),
        ("AGENTS.md", rf"<user_instructions>\n+{_PERSONAL}(?P<text>.*?)(?:\n</user_instructions>|\Z)"),
    ),
    homes=tuple(
        f"{home}/{place}" for home in ("~/.codex", "$CODEX_HOME") for place in ("sessions", "archived_sessions")
    ),
    tools=tools.named(
        (tools.SHELL.within("timeout_ms", 0.001), "shell container.exec local_shell shell_command"),
        (tools.SHELL.within("yield_time_ms", 0.001), "exec_command"),
        (tools.SHELL.to("poll").within("yield_time_ms", 0.001), "write_stdin"),
        (tools.READ, "read_file list_dir view_image read_mcp_resource"),
        (tools.SEARCH, "grep_files list_mcp_resources list_mcp_resource_templates"),
        (tools.SEARCH.to("tool_search"), "tool_search"),
        (tools.PLAN, "update_plan create_goal get_goal update_goal"),
        (tools.TASK, "spawn_agent send_input send_message resume_agent close_agent list_agents followup_task"),
        (tools.TASK, "interrupt_agent spawn_agents_on_csv report_agent_job_result"),
        (tools.TASK.to("poll"), "wait wait_agent"),
        (tools.WEB, "web_search web_fetch"),
        (PATCH, "apply_patch"),
        (tools.ASK, "request_user_input"),
        (tools.ASIDE, "image_generation js_repl exec request_permissions tool_suggest"),
    ),
    tools_like={"mcp__*": tools.MCP},
    machine_written=tuple((beginning, "meta") for beginning in _INJECTED),
    frame=(
        r"(?:Chunk ID|Wall time|Original token count|Total output lines|Exit code): .*",
        r"Process exited with code .*",
        r"Output:",
    ),
    nothing_found=("No matches found", "No files found"),
    failures=(
        ("edit_mismatch", ("failed to find expected lines", "failed to find context", "verification failed")),
        ("permission", ("rejected by sandbox", "sandbox denied", "patch rejected: writing outside of the project")),
    ),
)


_TYPES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_ID = re.compile(r'"id"\s*:\s*"([^"]+)"')


def claims(head: Head) -> Claim | None:
    """Claim records of `timestamp`, `type` and `payload`. The first header names the session, others its parents."""
    records = [
        r for r in head.records if r.get("type") in _TYPES and isinstance(r.get("payload"), dict) and "timestamp" in r
    ]
    ids = [r["payload"].get("id") for r in records if r["type"] == "session_meta"]
    keys = [f"session:{session_id}" for session_id in ids if isinstance(session_id, str)]
    parents = [r["payload"].get("forked_from_id") for r in records if r["type"] == "session_meta"]
    keys += [f"session:{session_id}" for session_id in parents if isinstance(session_id, str)]
    if not records:  # the header may be longer than the window: it holds instructions and tool definitions
        leading = head.document
        if leading.get("type") != "session_meta" or "payload" not in leading or "timestamp" not in leading:
            return None
        named = _ID.search(head.text, head.text.find('"payload"'), 4_000)
        return Claim(keys=[f"session:{named[1]}"]) if named else None
    return Claim(keys=list(dict.fromkeys(keys)), by_folder=not keys)


FORMAT = Format(name="codex", marks=(b'"payload"',), version=9, claims=claims, profile=PROFILE)


EXEC_PROFILE = tools.Profile(
    tools=tools.named(
        (tools.SHELL, "command_execution"),
        (tools.EDIT, "file_change"),
        (tools.MCP, "mcp_tool_call"),
        (tools.WEB, "web_search"),
        (tools.PLAN, "todo_list"),
        (tools.TASK, "collab_tool_call"),
    )
)
"""Items of `codex exec --json` (design/formats.md#codex-exec): threads, turns, items. No times, models, prompts."""
_PRINTED = ("turn.started", "turn.completed", "turn.failed", "item.started", "item.updated", "item.completed")


def claims_printed(head: Head) -> Claim | None:
    """Claim a `thread.started` that names its thread, or an item's record. A rollout of the thread shares the key."""
    records = head.records
    ids = [r["thread_id"] for r in records if r.get("type") == "thread.started" and isinstance(r.get("thread_id"), str)]
    if ids:
        return Claim(keys=[f"session:{thread_id}" for thread_id in dict.fromkeys(ids)])
    items = [r for r in records if r.get("type") in _PRINTED]
    if any(isinstance(r.get("item"), dict) and isinstance(r["item"].get("type"), str) for r in items):
        return Claim(keys=[])
    return None


CODEX_EXEC_FORMAT = Format(
    name="codex-exec",
    marks=(b'"thread.started"', b'"item"'),
    version=4,
    claims=claims_printed,
    profile=EXEC_PROFILE,
    pieces=pieces_by("codex.exec"),
)
