"""Records in Claude Code's form, for whoever reads Claude Code's (design/formats.md#small-formats).

`claude-form`: another agent wrote them, which stands in `harness`, or in place of the version's number. `swival`: an
export of that agent. `claude-stream`: the output of `claude -p --output-format stream-json`: a start, messages, a
result (design/formats.md#claude-stream). The prompt is not among it, nor are times in most versions. With
`--output-format json` only the result is printed.
"""

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats import profile as tools
from agentsignals.formats.claude_code import PROFILE, sessions_of_another
from agentsignals.formats.records import Head

SWIVAL = tools.Profile(
    agent="swival",
    tools=tools.named(
        (tools.READ, "read_file read_multiple_files view_image outline"),
        (tools.SEARCH, "grep"),
        (tools.FIND, "list_files"),
        (tools.EDIT, "edit_file delete_file"),
        (tools.WRITE, "write_file"),
        (tools.SHELL, "run_command run_shell_command"),
        (tools.PLAN, "todo"),
        (tools.TASK, "spawn_subagent check_subagents"),
        (tools.SKILL, "use_skill"),
        (tools.WEB, "fetch_url"),
        (tools.ASIDE, "think snapshot goal"),
    ),
    tools_like={"mcp__*": tools.MCP},
)
"""Swival's records are shaped like Claude Code's on purpose. No real file was found: the reader follows the program."""


def claims(head: Head) -> Claim | None:
    ids = sessions_of_another(head)
    return Claim(keys=[f"session:{session_id}" for session_id in ids]) if ids else None


_OTHERS = ("tool_call", "tool_result", "message", "thinking", "completion")
"""Records of other agents whose streams begin alike (Cursor's, Droid's)."""
_NOT_STREAMED = ("parentUuid", "sessionId", "harness", "reasoning_effort")


def claims_stream(head: Head) -> Claim | None:
    """A start or a result that names its session in snake case; a transcript's records have `sessionId`, and parents.

    No session of its own is named by a transcript and by the stream of the same run: they share the key.
    """
    records = head.records or head.items
    if not records and head.document.get("type") == "result":
        records = [head.document]
    if any(r.get("type") in _OTHERS or any(k in r for k in _NOT_STREAMED) for r in records):
        return None
    ids = [r["session_id"] for r in records if isinstance(r.get("session_id"), str) and r["session_id"]]
    if not ids or not any(
        (r.get("type") == "system" and r.get("subtype") == "init" and "session_id" in r)
        or (r.get("type") == "result" and isinstance(r.get("subtype"), str) and "is_error" in r)
        for r in records
    ):
        return None
    return Claim(keys=[f"session:{session_id}" for session_id in dict.fromkeys(ids)])


def claims_swival(head: Head) -> Claim | None:
    """Recognize a `harness`, a `parentUuid` and a `sessionId`; Claude Code's have no `harness`, STS no parents.

    Every export gives the records new ids: the session's is the only key that two exports share.
    """
    records = [r for r in head.records if "harness" in r]
    named = [r for r in records if isinstance(r.get("sessionId"), str)]
    if not any("parentUuid" in r and r["harness"] == "swival" for r in named):
        return None
    return Claim(keys=list(dict.fromkeys(f"session:{r['sessionId']}" for r in named)))


CLAUDE_FORM_FORMAT = Format(
    name="claude-form", version=1, claims=claims, read=read_by("claude_form.reader", "read_form")
)
CLAUDE_STREAM_FORMAT = Format(
    name="claude-stream",
    marks=(b'"session_id"',),
    version=10,
    claims=claims_stream,
    read=read_by("claude_form.reader", "read_stream"),
    profile=PROFILE,
)
SWIVAL_FORMAT = Format(
    name="swival",
    marks=(b'"harness"',),
    version=3,
    claims=claims_swival,
    read=read_by("claude_form.reader", "read_swival"),
    profile=SWIVAL,
)
