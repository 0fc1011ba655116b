"""Antigravity transcripts, of the command line and the editor (design/formats.md#small-formats):
`brain/<id>/.system_generated/logs/transcript_full.jsonl`, and `transcript.jsonl` with long texts cut."""

import posixpath

from msgspec import structs

from agentsignals.formats import Claim, Format, in_path
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

_EDIT = structs.replace(
    tools.EDIT,
    path=("TargetFile", *tools.EDIT.path),
    roles=structs.replace(
        tools.EDIT_ROLES,
        replace=(("TargetContent", "ReplacementContent"),),
        whole=("CodeContent",),
        several=("ReplacementChunks",),
        everywhere=("AllowMultiple",),
    ),
)
PROFILE = tools.Profile(
    agent="antigravity",
    maker="google",
    # https://antigravity.google/docs/rules-workflows
    instructions=("GEMINI.md", "AGENTS.md"),
    instructions_perhaps=(".agents/rules/**/*.md", ".agent/rules/**/*.md"),
    aliases=("antigravity-cli", "agy"),
    homes=tuple(
        f"~/.gemini/{program}/brain/*/.system_generated/logs"
        for program in ("antigravity-cli", "antigravity", "antigravity-ide")
    ),
    tools=tools.named(
        (structs.replace(tools.READ, path=("AbsolutePath", "File")), "view_file view_file_outline view_code_item"),
        (structs.replace(tools.SEARCH, path=("SearchPath",)), "grep_search codebase_search"),
        (structs.replace(tools.FIND, path=("DirectoryPath", "SearchDirectory")), "list_dir find_by_name"),
        (_EDIT, "replace_file_content multi_replace_file_content"),
        (_EDIT.to("write_file"), "write_to_file"),
        (structs.replace(tools.SHELL, command=("CommandLine",), folder=("Cwd",)), "run_command"),
        (tools.READ.to("poll"), "command_status read_terminal manage_task"),
        (tools.PLAN, "task_boundary"),
        (tools.TASK, "invoke_subagent define_subagent browser_subagent send_message"),
        (tools.SKILL, "activate_skill"),
        (tools.WEB, "search_web read_url_content view_content_chunk"),
        (tools.ASK, "notify_user ask_question ask_permission"),
        (tools.ASIDE, "send_command_input generate_image schedule"),
    ),
    tools_like={"mcp_*": tools.MCP, "call_mcp_tool": tools.MCP},
    frame=(r"The command (?:completed successfully|failed with exit code:? -?\d+)\.?", "Output:"),
    nothing_found=("No results found", "No matches found"),
    failures=(("edit_mismatch", ("target content (?:was )?not found", "could not find the target content")),),
)

session_of = in_path(r"/brain/([\w-]{8,})/\.system_generated/logs/[^/]+\Z")
"""Returns the session that the path of a file names."""


def claims(head: Head) -> Claim | None:
    """Recognize a first step with an index, and source and type in capitals. The place names the session."""
    first = head.document
    named = (first.get("source"), first.get("type"))
    if type(first.get("step_index")) is not int or not all(isinstance(name, str) and name.isupper() for name in named):
        return None
    session_id = session_of(head.path)
    return Claim(keys=[f"session:{session_id}"] if session_id else [], by_folder=not session_id)


FORMAT = Format(
    name="antigravity",
    marks=(b'"step_index"',),
    version=2,
    claims=claims,
    unit=posixpath.dirname,  # a transcript and its short form
    profile=PROFILE,
)
