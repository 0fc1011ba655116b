"""Copilot CLI (design/formats.md#copilot-cli): `~/.copilot/session-state/<session>/events.jsonl`."""

from agentsignals.formats import Claim, Format
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="copilot-cli",
    instructions=(".github/copilot-instructions.md", ".github/instructions/**/*.instructions.md", "AGENTS.md"),
    instructions_perhaps=("CLAUDE.md", "GEMINI.md"),
    aliases=("copilot",),
    homes=tuple(
        f"{home}/{place}"
        for home in ("~/.copilot", "$COPILOT_HOME")
        for place in ("session-state", "history-session-state")
    ),
    state=("session-state/*/rewind-file-snapshots/*",),
    tools=tools.named(
        (tools.SHELL, "bash powershell local_shell write_bash write_powershell"),
        (tools.READ, "view show_file"),
        (tools.READ.to("poll"), "read_bash list_bash read_powershell list_powershell"),
        (tools.SEARCH, "grep rg lsp search_code_subagent"),
        (tools.SEARCH.to("tool_search"), "tool_search"),
        (tools.FIND, "glob"),
        (tools.EDIT, "edit insert str_replace str_replace_editor apply_patch"),
        (tools.WRITE, "create"),
        (tools.PLAN, "update_todo report_intent task_complete"),
        (tools.HAND_IN, "exit_plan_mode"),
        (tools.TASK, "task read_agent write_agent list_agents stop_bash stop_powershell send_message"),
        (tools.SKILL, "skill"),
        (tools.WEB, "web_fetch web_search"),
        (tools.ASK, "ask_user elicitation"),
        (tools.ASIDE, "sql store_memory fetch_copilot_cli_documentation manage_schedule"),
    ),
    tools_like={"github-mcp-server-*": tools.MCP},
    frame=(r"<(?:shellId: \S+ completed|(?:command )?exited|command) with exit code:? -?\d+>",),
    nothing_found=("No matches found", "No files matched"),
    failures=(("edit_mismatch", ("no match found", "multiple matches found")),),
)


IN_VS_CODE = "vscodeVersion"
"""The field of `session.start` that says that VS Code's extension wrote it. The `producer` is the same."""
_FAMILIES = frozenset(
    ("abort", "assistant", "hook", "permission", "session", "skill", "subagent", "system", "tool", "user")
)


def claims(head: Head) -> Claim | None:
    """Claim events of a dotted `type`, `data` and `parentId`, unless `session.start` says that VS Code wrote them."""
    events = [
        r
        for r in head.records
        if str(r.get("type")).split(".")[0] in _FAMILIES and isinstance(r.get("data"), dict) and "parentId" in r
    ]
    if not events or any(IN_VS_CODE in r["data"] for r in events):
        return None
    ids = (r["data"].get("sessionId") for r in events if r["type"] == "session.start")
    keys = [f"session:{i}" for i in ids if isinstance(i, str)]
    return Claim(keys=list(dict.fromkeys(keys)), by_folder=not keys)


FORMAT = Format(name="copilot-cli", marks=(b'"parentId"',), version=5, claims=claims, profile=PROFILE)
