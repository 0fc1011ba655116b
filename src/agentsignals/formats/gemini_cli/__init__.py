"""Gemini CLI chats (design/formats.md#gemini-cli): one JSON document a session, rewritten as it grows; from 0.40 JSON
Lines.

A session that a newer version resumed exists in both forms.
"""

from agentsignals.formats import Claim, Format
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="gemini-cli",
    maker="google",
    conventions=("rewinds_logged",),
    # https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/gemini-md.md: others by `context.fileName`
    instructions=("GEMINI.md",),
    instructions_perhaps=("AGENTS.md",),
    expands_imports=True,
    aliases=("gemini",),
    homes=("~/.gemini/tmp", "$GEMINI_CLI_HOME/.gemini/tmp"),
    state=("tmp/*/logs.json", "tmp/*/checkpoints/*", "tmp/*/shell_history"),
    tools=tools.named(
        (tools.READ, "read_file read_many_files get_internal_docs"),
        (tools.SEARCH, "grep_search search_file_content codebase_investigator"),
        (tools.FIND, "glob list_directory"),
        (tools.EDIT, "replace edit"),
        (tools.WRITE, "write_file"),
        (tools.SHELL, "run_shell_command"),
        (tools.READ.to("poll"), "read_background_output list_background_processes"),
        (tools.PLAN, "write_todos update_topic"),
        (tools.PLAN_MODE, "enter_plan_mode"),
        (tools.HAND_IN, "exit_plan_mode"),
        (tools.TASK, "delegate_to_agent invoke_agent complete_task"),
        (tools.SKILL, "activate_skill"),
        (tools.WEB, "google_web_search web_fetch"),
        (tools.ASK, "ask_user"),
        (tools.ASIDE, "save_memory"),
    ),
    tools_like={"mcp_*": tools.MCP, "*__*": tools.MCP},
    machine_written=(
        ("System: Please continue.", "meta"),
        ("System: Potential loop detected", "meta"),
        ("I ran the following shell command:", "user_shell"),
        ("<state_snapshot>", "compaction"),
        ("<session_context>", "meta"),
        ("<hook_context>", "meta"),
    ),
    frame=(
        r"Command: (?s:.*?)\nDirectory: .*",
        r"(?:Output|Stdout|Stderr|Error|Signal|Background PIDs|Process Group PGID):(?: \((?:empty|none)\)| \d+)?",
        r"Exit Code: -?\d+",
    ),
    nothing_found=("No matches found", "No files found", "No files matching"),
    stopped=(
        ("error", ("exceeded the timeout of",)),
        ("cancelled", ("Command was cancelled by user", "Command cancelled by user")),
    ),
    failures=(
        (
            "edit_mismatch",
            (
                "0 occurrences found",
                "could not find the string to replace",
                "no changes to apply",
                "occurrences but found",
                "no edits to apply",
            ),
        ),
        ("permission", ("denied by policy", "path not in workspace", "must be within")),
    ),
)


def claims(head: Head) -> Claim | None:
    """Recognize `sessionId`, `projectHash` and `messages`. The header line of the JSON Lines has no messages."""
    document = head.document
    session_id = document.get("sessionId")
    if not isinstance(session_id, str) or not session_id or "projectHash" not in document:
        return None
    if "messages" not in document and not (head.is_lines and "startTime" in document):
        return None
    return Claim(keys=[f"session:{session_id}"])


FORMAT = Format(name="gemini-cli", marks=(b'"projectHash"',), version=6, claims=claims, profile=PROFILE)
