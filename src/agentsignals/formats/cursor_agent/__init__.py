"""Cursor (design/formats.md#cursor): conversations in the database of its IDE, chats in those of its CLI, and
transcripts `~/.cursor/projects/<cwd>/agent-transcripts/<id>/<id>.jsonl`, which both write.

Transcripts are poor: who said what, and the calls. They have no ids, times, models or usage, and only few versions have
results.
"""

from typing import Any

from msgspec import structs

from agentsignals.formats import Claim, Format, in_path
from agentsignals.formats import profile as tools
from agentsignals.formats.cursor_agent.database import CHATS, COMPOSERS
from agentsignals.formats.records import Head

_IDE = ("targetFile", "relativeWorkspacePath", "effectiveUri")
_LOOKED_IN = (*tools.SEARCH.path, "target_directory", "targetDirectory")

PROFILE = tools.Profile(
    agent="cursor-agent",
    instructions=(".cursor/rules/**/*.mdc", "AGENTS.md"),
    instructions_perhaps=(".cursorrules", "CLAUDE.md"),
    aliases=("cursor",),
    homes=(
        "~/.cursor/projects",
        "~/.cursor/chats",
        *(
            f"{data}/Cursor/User/globalStorage/state.vscdb"
            for data in ("~/.config", "~/Library/Application Support", "$APPDATA")
        ),
    ),
    tools=tools.named(
        (structs.replace(tools.READ, path=(*tools.READ.path, *_IDE)), "Read ReadFile read_file read_file_v2"),
        (
            structs.replace(tools.SEARCH, path=_LOOKED_IN),
            "Grep SemanticSearch codebase_search semantic_search_full grep_search grep ripgrep_search "
            "ripgrep_raw_search",
        ),
        (structs.replace(tools.FIND, path=_LOOKED_IN), "Glob LS list_dir list_dir_v2 file_search glob_file_search"),
        (
            structs.replace(tools.EDIT, path=(*tools.EDIT.path, *_IDE)),
            "StrReplace ApplyPatch EditNotebook Delete edit_file edit_file_v2 search_replace delete_file reapply",
        ),
        (structs.replace(tools.WRITE, path=(*tools.WRITE.path, *_IDE)), "Write write"),
        (tools.SHELL, "Shell run_terminal_cmd run_terminal_command run_terminal_command_v2"),
        (tools.PLAN, "TodoWrite WriteTodos SwitchMode todo_write switch_mode"),
        (tools.HAND_IN, "CreatePlan create_plan"),
        (tools.TASK, "Task task task_v2"),
        (tools.WEB, "WebSearch WebFetch web_search web_fetch"),
        (tools.ASK, "AskQuestion ask_question"),
        (tools.MCP, "CallMcpTool CallDynamicTool FetchMcpResource call_mcp_tool"),
        (tools.ASIDE, "read_lints fetch_rules"),
    ),
    tools_like={"mcp-*": tools.MCP},
    machine_written=(("<system_notification>", "notification"),),
)


session_of = in_path(r"/agent-transcripts/(?:[^/]+/)*([\w-]{8,})\.jsonl\Z")
"""Returns the session that the path of a file names."""
parent_of = in_path(r"/agent-transcripts/(?:[^/]+/)*([\w-]{8,})/subagents/[\w-]{8,}\.jsonl\Z")
"""Returns the session in whose folder a subagent's transcript lies."""


def claims(head: Head) -> Claim | None:
    """Claim records that are `{role, message}` and nothing else, or a document of a database.

    With an id or a time among them the records are of another format.
    """
    for kind, session_id in (("cursorComposer", "composerId"), ("cursorChat", "agentId")):
        held = head.document.get(kind)
        if isinstance(held, dict):
            return Claim(keys=[f"session:{held.get(session_id) or ''}"])
    records = [r for r in head.records if r.get("type") != "turn_ended"]
    if not records or not all(_is_bare(r) for r in records):
        return None
    named = session_of(head.path)
    return Claim(keys=[f"session:{named}"] if named else [], by_folder=not named)


def _is_bare(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return (
        record.keys() == {"role", "message"}
        and record["role"] in ("user", "assistant")
        and isinstance(message, dict)
        and "content" in message
        and message.keys() <= {"role", "content"}
    )


FORMAT = Format(
    name="cursor-agent",
    version=5,
    claims=claims,
    database=(COMPOSERS, CHATS),
    profile=PROFILE,
)
