"""Transcripts of Windsurf's Cascade, written by its hook: `~/.windsurf/transcripts/<id>.jsonl`
(design/formats.md#small-formats). A line is a step: `{status, type, <type>: {…}}`."""

from msgspec import structs

from agentsignals.formats import Claim, Format, in_path
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="windsurf",
    instructions=(".windsurf/rules/**/*.md", ".windsurfrules"),
    instructions_perhaps=("AGENTS.md",),
    homes=("~/.windsurf/transcripts",),
    tools=tools.named(
        (tools.READ, "view_file"),
        (tools.EDIT, "code_action"),
        (tools.SHELL, "run_command"),
        (structs.replace(tools.SEARCH, path=("search_path",)), "grep_search"),
        (structs.replace(tools.FIND, path=("search_directory", "path")), "find list_directory"),
        (tools.MCP, "list_resources"),
    ),
    conventions=("thinking_not_logged",),
)


_WORDS = {"user_input": "user_response", "planner_response": "response"}
session_of = in_path(r"/\.windsurf/transcripts/([\w-]{8,})\.jsonl\Z")
"""Returns the session that the path of a file names."""


def claims(head: Head) -> Claim | None:
    """Recognize steps with their content under the name of their type. One must be a message of person or agent."""
    for record in head.records:
        kind = record.get("type")
        if (
            not isinstance(kind, str)
            or not isinstance(record.get("status"), str)
            or not isinstance(record.get(kind), dict)
        ):
            return None
    words = ((record[kind], _WORDS[kind]) for record in head.records if (kind := record["type"]) in _WORDS)
    if not any(isinstance(body.get(name), str) for body, name in words):
        return None
    session_id = session_of(head.path)
    return Claim(keys=[f"session:{session_id}"] if session_id else [], by_folder=not session_id)


FORMAT = Format(
    name="windsurf", marks=(b'"planner_response"', b'"user_input"'), version=1, claims=claims, profile=PROFILE
)
