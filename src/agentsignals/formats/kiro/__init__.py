"""Kiro (and Amazon Q Developer CLI) conversations (design/formats.md#small-formats): one JSON document of
user/assistant pairs, in a file or a row of its database; and sessions of the newer command line, a message a line.

Collectors leave most fields empty: no ids, times or results. Files of the client itself have tool results, times, the
working folder, and text written in the person's or the agent's name.
"""

import re
from collections.abc import Iterator

from agentsignals.formats import Ask, Claim, Database, Format, Held
from agentsignals.formats import profile as tools
from agentsignals.formats.records import CUT, Head

PROFILE = tools.Profile(
    agent="kiro",
    instructions=(".kiro/steering/**/*.md",),
    instructions_perhaps=("AGENTS.md",),
    homes=(
        "~/.kiro/sessions",
        *(
            f"{data}/{program}/data.sqlite3"
            for data in ("~/.local/share", "$XDG_DATA_HOME", "~/Library/Application Support")
            for program in ("kiro-cli", "amazon-q")
        ),
    ),
    tools=tools.named(
        (tools.READ, "fs_read read"),
        (tools.WRITE, "fs_write write"),
        (tools.SEARCH, "grep code knowledge"),
        (tools.FIND, "glob"),
        (tools.SHELL, "execute_bash execute_cmd shell bash"),
        (tools.PLAN, "todo_list todo"),
        (tools.TASK, "delegate use_subagent subagent session"),
        (tools.WEB, "web_search web_fetch"),
        (tools.ASIDE, "use_aws aws thinking introspect report_issue gh_issue"),
    ),
    tools_like={"*___*": tools.MCP},
    conventions=("thinking_not_logged",),
    nothing_found=("No matches found", "No files found", "No results found"),
    failures=(("edit_mismatch", ("no occurrences of", "occurrences of old_str were found")),),
)
"""Its `thinking` is a tool. The model's own thinking is not logged."""


_NEW = ("conversation_id", "value", "updated_at")
_OLD_ID = "CASE WHEN json_valid(value) THEN json_extract(value, '$.conversation_id') END"
"""A row of the older table is of a folder, and names its conversation inside."""


def sessions(ask: Ask) -> Iterator[Held]:
    """Yield every conversation. Of one that stands in both tables the newer one's counts."""
    seen: set[bytes] = set()
    if "conversations_v2" in ask.tables:
        query = "SELECT conversation_id, max(updated_at), sum(length(value)) FROM conversations_v2 GROUP BY 1"
        for session_id, changed, size in ask(query):
            seen.add(session_id)
            yield Held(session_id, changed if isinstance(changed, int) else 0, 1, size if isinstance(size, int) else 0)
    if "conversations" in ask.tables:
        for session_id, size in ask(f"SELECT {_OLD_ID}, sum(length(value)) FROM conversations GROUP BY 1"):  # noqa: S608
            if session_id not in seen:
                yield Held(session_id, 0, 1, size)


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield a conversation as it is stored. A folder that was renamed may have an earlier copy."""
    own_id = session_id.decode()
    if "conversations_v2" in ask.tables:
        query = "SELECT value FROM conversations_v2 WHERE conversation_id = ? ORDER BY updated_at DESC LIMIT 1"
        if (row := next(ask(query, own_id), None)) is not None:
            yield row[0] if isinstance(row[0], bytes) else b""
            return
    if "conversations" in ask.tables:
        query = f"SELECT value FROM conversations WHERE {_OLD_ID} = ? ORDER BY length(value) DESC LIMIT 1"  # noqa: S608
        yield from (value for (value,) in ask(query, own_id) if isinstance(value, bytes))


DATABASES = (
    Database(
        columns={"conversations_v2": _NEW},
        some_have={"conversations": ("key", "value")},
        sessions=sessions,
        document=document,
    ),
    Database(columns={"conversations": ("key", "value"), "auth_kv": ()}, sessions=sessions, document=document),
)
"""The second is of Amazon Q and of Kiro's first versions."""


_BEGINS = re.compile(rb'\s*\{\s*"version"\s*:\s*"v\d+"\s*,\s*"kind"\s*:')


def is_log(data: bytes) -> bool:
    """Return whether a file is a log of the newer command line."""
    return _BEGINS.match(data) is not None


def claims(head: Head) -> Claim | None:
    """Recognize `conversation_id` (usually empty) and `history` of user/assistant pairs; a log or the facts on it."""
    document = head.document
    if is_log(head.data) or (isinstance(document.get("session_id"), str) and "session_created_reason" in document):
        return Claim(keys=[], by_folder=True)
    conversation_id, history = document.get("conversation_id"), document.get("history")
    if not isinstance(conversation_id, str):
        return None
    first = history[0] if isinstance(history, list) and history else [None, None]
    is_pair = (
        len(first) == 2
        if isinstance(first, list)
        else isinstance(first, dict) and {"user", "assistant"} <= first.keys()
    )
    if history is not CUT and not (isinstance(history, list) and is_pair):
        return None
    return Claim(keys=[f"session:{conversation_id}"]) if conversation_id else Claim(keys=[], by_folder=True)


FORMAT = Format(
    name="kiro",
    marks=(b'"conversation_id"', b'"kind"', b'"session_created_reason"'),
    version=5,
    claims=claims,
    database=DATABASES,
    profile=PROFILE,
)
