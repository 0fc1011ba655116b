"""Inspect's standard tools, and how those of the agents it bridges are called."""

import re
from typing import Any

from msgspec import Struct

from agentsignals.formats import Claim, Format, claude_code, pieces_by, read_by, zip_members
from agentsignals.formats import profile as tools
from agentsignals.formats.records import CUT, Head, decoded, inside

PROFILE = tools.Profile(
    tools=tools.named(
        (tools.SHELL, "bash bash_session shell exec_command"),
        (tools.NO_SHELL, "python code_execution ipython"),
        (tools.EDIT, "text_editor str_replace_editor str_replace_based_edit_tool edit_file apply_patch"),
        (tools.WRITE, "write_file create_file"),
        (tools.READ, "read_file view_file"),
        (tools.READ.to("skill"), "skill"),
        (tools.SEARCH, "grep"),
        (tools.FIND, "glob list_files find"),
        (tools.WEB, "web_search web_fetch web_browser"),
        (tools.PLAN, "update_plan todo_write"),
        (tools.TASK, "task agent"),
        (tools.ASK, "ask_user"),
        (tools.ASIDE, "submit think computer memory"),
    ),
    tools_like={"web_browser_*": tools.WEB, "transfer_to_*": tools.TASK},
)


def tool(name: str) -> tools.Tool | None:
    """Return the tool of that name, Inspect's own or Claude Code's, which Inspect bridges. None if unknown."""
    return PROFILE.tool(name) or claude_code.PROFILE.tool(name)


SAMPLE = re.compile(r"samples/[^\x00]+_epoch_\d{1,9}\.json\Z")
"""Names of the members that hold a sample."""
SPECIFICATIONS = ("_journal/start.json", "header.json")
"""Members with the run's specification, one written first and one last."""
_SPECIFICATION_BYTES = 1024 * 1024


class Start(Struct, gc=False):
    eval: dict[str, Any] | None = None


def claims(head: Head) -> Claim | None:
    """Recognise an archive that begins as a log does.

    Its key is the id of the task's run: copies of a log, and the log of a retry, hold the same samples.
    """
    if not head.data.startswith(zip_members.MAGIC):
        return None
    first = zip_members.first(head.data)
    if first is None or not (first.name in SPECIFICATIONS or SAMPLE.match(first.name)):
        return None
    if first.name not in SPECIFICATIONS:
        return Claim(keys=[])
    start = decoded(zip_members.beginning(head.data, first, _SPECIFICATION_BYTES), Start)
    return Claim(keys=keys_of(inside(start.eval, "task_id") if start is not None else None))


def keys_of(task_id: object) -> list[str]:
    return [f"inspect:{task_id}"] if isinstance(task_id, str) and task_id else []


FORMAT = Format(
    name="inspect",
    version=8,
    claims=claims,
    read=read_by("inspect.reader"),
    pieces=pieces_by("inspect.reader"),
    of_json=False,
    profile=PROFILE,
)


_STATUS = frozenset(("started", "success", "cancelled", "error"))


def claims_document(head: Head) -> Claim | None:
    """Claim a log written as one JSON document: `version`, `status` and an `eval` that names its task and model."""
    document = head.document
    spec, status = document.get("eval"), document.get("status")
    if not isinstance(status, str) or status not in _STATUS or "version" not in document:
        return None
    if spec is CUT:
        return Claim(keys=[])
    if not isinstance(spec, dict) or not isinstance(spec.get("task"), str) or "model" not in spec:
        return None
    return Claim(keys=keys_of(spec.get("task_id")))


INSPECT_JSON_FORMAT = Format(
    name="inspect-json", marks=(b'"eval"',), version=4, claims=claims_document, read=read_by("inspect.reader")
)
