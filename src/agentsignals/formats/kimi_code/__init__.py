"""Kimi Code sessions (design/formats.md#kimi-code): a folder for each session, with the records of each agent
(`agents/<agent>/wire.jsonl`) and `state.json`."""

import re

from agentsignals.formats import Claim, Format, session_folder
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="kimi-code",
    maker="moonshot",
    conventions=("rewinds_logged",),
    homes=("~/.kimi-code/sessions", "$KIMI_CODE_HOME/sessions"),
    state=("sessions/.index-cache/*", "sessions/*/notify/*"),
    tools=tools.named(
        (tools.READ, "Read ReadMediaFile"),
        (tools.SEARCH, "Grep"),
        (tools.FIND, "Glob"),
        (tools.EDIT, "Edit"),
        (tools.WRITE, "Write"),
        (tools.SHELL.within("timeout"), "Bash"),
        (tools.PLAN, "TodoList"),
        (tools.PLAN_MODE, "EnterPlanMode"),
        (tools.HAND_IN, "ExitPlanMode"),
        (tools.TASK, "Agent AgentSwarm"),
        (tools.SKILL, "Skill"),
        (tools.WEB, "WebSearch FetchURL"),
        (tools.ASK, "AskUserQuestion"),
        (tools.READ.to("poll"), "TaskOutput WaitFor"),
        (tools.ASIDE, "TaskList TaskStop CronCreate CronList CronDelete NotifyUser CreateGoal GetGoal UpdateGoal"),
    ),
    tools_like={"mcp__*": tools.MCP},
    machine_written=(("<system-reminder>", "meta"), ("<git-context>", "meta")),
    frame=(r"Command failed with exit code: -?\d+\.", r"Process exited with code -?\d+"),
    stopped=(("error", ("Command killed by timeout",)), ("cancelled", ("Interrupted by user",))),
    failures=(
        ("edit_mismatch", ("old_string not found in", "old_string is not unique")),
        ("not_found", (r"\Atool \"[^\"]*\" not found",)),
    ),
)


_PLACE = re.compile(r"(?:\A|/)(session_[\w-]{8,80})/agents/([\w.-]{1,80})/[^/]+\Z")
_OF_STATE = frozenset(("id", "version", "cwd", "agents", "createdAt"))
_DOTTED = re.compile(r"[a-z_]+(?:\.[a-z_]+)+")


def place_of(path: str) -> tuple[str | None, str]:
    """Return the session and the agent of a file by its folders. Nothing in it names them."""
    match = _PLACE.search(path)
    return (match[1], match[2]) if match else (None, "main")


def claims(head: Head) -> Claim | None:
    """Recognize `metadata` with a protocol, followed by records whose types have dots; or `state.json`, which also
    names the origin of a fork."""
    if is_wire(head):
        session_id, _ = place_of(head.path)
        return Claim(keys=[f"session:{session_id}"] if session_id else [])
    state = head.document
    if not (
        state.keys() >= _OF_STATE and str(state["id"]).startswith("session_") and isinstance(state["agents"], dict)
    ):
        return None
    ids = (state["id"], state.get("forkedFrom"))
    return Claim(keys=[f"session:{name}" for name in ids if isinstance(name, str) and name])


def is_wire(head: Head) -> bool:
    """Kimi Code's lines have `type` and `time`. Those of kimi-cli begin alike and have `timestamp` and `message`."""
    if not head.records or head.records[0].get("type") != "metadata" or "protocol_version" not in head.records[0]:
        return False
    rest = head.records[1:]
    if not rest:
        return "created_at" in head.records[0]
    return any("time" in r and isinstance(r.get("type"), str) and _DOTTED.fullmatch(r["type"]) for r in rest)


FORMAT = Format(
    name="kimi-code",
    marks=(b'"protocol_version"', b'"agents"'),
    version=1,
    claims=claims,
    unit=session_folder("agents"),
    profile=PROFILE,
    snapshots=False,
)
