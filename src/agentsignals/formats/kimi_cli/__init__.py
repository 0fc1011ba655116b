"""kimi-cli sessions (design/formats.md#kimi-cli): `wire.jsonl` in a folder for each session, a line for each message
between agent and terminal. Subagents have files of their own."""

import re

from msgspec import structs

from agentsignals.formats import Claim, Format, session_folder
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head
from agentsignals.model import Roles

_REPLACE = structs.replace(
    tools.EDIT, roles=Roles(replace=(("old", "new"),), several=("edit",), everywhere=("replace_all",))
)

PROFILE = tools.Profile(
    agent="kimi-cli",
    maker="moonshot",
    homes=("~/.kimi/sessions", "$KIMI_SHARE_DIR/sessions"),
    tools=tools.named(
        (tools.READ, "ReadFile ReadMediaFile"),
        (tools.SEARCH, "Grep"),
        (tools.FIND, "Glob"),
        (_REPLACE, "StrReplaceFile"),
        (tools.WRITE, "WriteFile"),
        (tools.SHELL.within("timeout"), "Shell Bash CMD"),
        (tools.PLAN, "SetTodoList"),
        (tools.PLAN_MODE, "EnterPlanMode"),
        (tools.HAND_IN, "ExitPlanMode"),
        (tools.TASK, "Agent Task CreateSubagent"),
        (tools.WEB, "SearchWeb FetchURL"),
        (tools.ASK, "AskUserQuestion"),
        (tools.READ.to("poll"), "TaskOutput"),
        (tools.ASIDE, "TaskList TaskStop SendDMail Think"),
    ),
    tools_like={"mcp__*": tools.MCP},
    machine_written=(("<system>", "meta"), ("<git-context>", "meta")),
    frame=(r"Command failed with exit code: -?\d+\.", r"Command executed successfully\."),
    stopped=(("error", ("Command killed by timeout",)),),
    failures=(("edit_mismatch", ("no replacements were made",)), ("not_found", (r"tool `[^`]*` not found",))),
)


_PLACE = re.compile(r"(?:\A|/)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/(?:subagents/([\w.-]{1,80})/)?[^/]+\Z")


def place_of(path: str) -> tuple[str | None, str | None]:
    """Return the session and the subagent of a file by its folders. Nothing in it names them."""
    match = _PLACE.search(path)
    return (match[1], match[2]) if match else (None, None)


def claims(head: Head) -> Claim | None:
    """Recognize lines with `timestamp` and a `message` of a type and a `payload`."""
    if not any(_is_message(record) for record in head.records):
        return None
    session_id, _ = place_of(head.path)
    return Claim(keys=[f"session:{session_id}"] if session_id else [])


def _is_message(record: dict[str, object]) -> bool:
    message = record.get("message")
    return (
        isinstance(record.get("timestamp"), float | int)
        and isinstance(message, dict)
        and message.keys() == {"type", "payload"}
        and isinstance(message["payload"], dict)
    )


FORMAT = Format(
    name="kimi-cli",
    marks=(b'"payload"',),
    version=1,
    claims=claims,
    unit=session_folder("subagents"),
    profile=PROFILE,
    snapshots=False,
)
