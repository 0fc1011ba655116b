"""Amp threads (design/formats.md#amp): `threads/T-<id>.json`, one document each, rewritten with every change."""

from msgspec import structs

from agentsignals.formats import Claim, Format
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="amp",
    instructions=("AGENTS.md",),  # https://ampcode.com/manual#AGENTS.md: the others where there is none
    instructions_perhaps=("AGENT.md", "CLAUDE.md"),
    expands_imports=True,
    homes=("~/.local/share/amp/threads", "$XDG_DATA_HOME/amp/threads", "$LOCALAPPDATA/amp/threads"),
    tools=tools.named(
        (tools.READ, "Read look_at"),
        (tools.SEARCH, "Grep finder"),
        (tools.FIND, "glob list_directory"),
        (tools.EDIT, "edit_file apply_patch"),
        (structs.replace(tools.EDIT, roles=None), "undo_edit format_file"),
        (tools.WRITE, "create_file"),
        (structs.replace(tools.SHELL, folder=("cwd", "workdir")), "Bash shell_command"),
        (tools.PLAN, "todo_write todo_read"),
        (tools.TASK, "Task oracle librarian handoff code_review"),
        (tools.SKILL, "skill"),
        (tools.WEB, "read_web_page web_search"),
        (tools.ASIDE, "mermaid painter read_thread find_thread get_diagnostics walkthrough repl read_mcp_resource"),
    ),
    tools_like={"mcp__*": tools.MCP},
    nothing_found=("No results found", "[]"),
    failures=(("edit_mismatch", ("could not find exact match",)),),
)


def claims(head: Head) -> Claim | None:
    """Recognize an id `T-…`, `v` (the number of changes), `created`, and messages."""
    document = head.document
    thread_id, edits = document.get("id"), document.get("v")
    is_thread = isinstance(thread_id, str) and thread_id.startswith("T-") and {"created", "messages"} <= document.keys()
    ids = [name for name in (thread_id, document.get("originThreadID")) if isinstance(name, str)]
    return Claim(keys=[f"session:{name}" for name in ids]) if is_thread and isinstance(edits, int) else None


FORMAT = Format(name="amp", marks=(b'"T-',), version=1, claims=claims, profile=PROFILE)
