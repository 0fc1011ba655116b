"""Entire is a tool that saves agents' sessions with Git commits (design/formats.md#entire). Read are its metadata of
sessions and checkpoints, and its shortened transcripts.

They give checkpoints and no sessions. The transcript itself is the agent's own file, in the agent's own format.
"""

import re

import msgspec
from msgspec import Raw, Struct, structs

from agentsignals.formats import Claim, Format, Input, Reading
from agentsignals.formats.records import Head, decoded, document, lines, saw
from agentsignals.model import Checkpoint, logged_iso

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}-(?=.)")


class Usage(Struct, gc=False):
    """Tokens since the checkpoint before. Input holds no cached tokens."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    api_call_count: int | None = None


class Attribution(Struct, gc=False, kw_only=True):
    """Entire's own count of a session's lines in a commit (design/attribution.md#what-entire-recorded)."""

    calculated_at: str | None = None
    agent_lines: int | None = None
    human_added: int | None = None
    human_modified: int | None = None
    human_removed: int | None = None
    total_committed: int | None = None
    agent_percentage: float | None = None
    metric_version: int | None = None


class Metadata(Struct, gc=False, kw_only=True):
    """Any of Entire's JSON documents. Its fields tell which one it is."""

    checkpoint_id: str | None = None
    session_id: str | None = None
    strategy: str | None = None
    sessions: Raw = Raw()
    tool_use_id: str | None = None
    checkpoint_uuid: str | None = None
    created_at: str | None = None
    branch: str | None = None
    files_touched: list[str] | None = None
    checkpoint_transcript_start: int | None = None
    transcript_lines_at_start: int | None = None
    """The older name of `checkpoint_transcript_start`."""
    token_usage: Usage | None = None
    initial_attribution: Attribution | None = None


class Compact(Struct, gc=False):
    """A line of a compact transcript: Entire's shortened copy."""

    type: str = ""
    v: int | None = None
    agent: str | None = None
    cli_version: str | None = None


decode_metadata = msgspec.json.Decoder(Metadata).decode
_compact = msgspec.json.Decoder(Compact).decode


def claims(head: Head) -> Claim | None:
    """Claim documents that name a checkpoint, and lines with the version of Entire's command."""
    keys = head.document.keys()
    is_compact = _is_compact(head.data)
    of_session = {"checkpoint_id", "session_id"} <= keys
    of_checkpoint = not of_session and {"checkpoint_id", "sessions", "strategy"} <= keys
    if not (is_compact or of_session or of_checkpoint or {"session_id", "tool_use_id", "checkpoint_uuid"} <= keys):
        return None
    session_id = None if is_compact or of_checkpoint else head.document.get("session_id")
    named = session_id if isinstance(session_id, str) else ""
    return Claim(keys=[f"session:{undated_session_id(named)}"] if named else [], by_folder=True)


def read(inputs: list[Input]) -> Reading:
    """Read the checkpoints of each session in order of time, each once."""
    by_session: dict[str, dict[str, Checkpoint]] = {}
    for source in inputs:
        if _is_compact(source.data):
            for _, line in lines(source.data, source.artifact, _compact):
                saw(source.artifact, f"entire.compact.{line.type or 'untyped'}")
            continue
        metadata = document(source.data, source.artifact, decode_metadata)
        if metadata is None:
            continue
        kind = "unknown"
        if metadata.checkpoint_id is not None and metadata.session_id is not None:
            kind = "session"
        elif metadata.checkpoint_id is not None and bytes(metadata.sessions) and metadata.strategy is not None:
            kind = "checkpoint"
        elif metadata.session_id and metadata.tool_use_id and metadata.checkpoint_uuid:
            kind = "task"
        saw(source.artifact, f"entire.{kind}")
        if kind == "session" and metadata.session_id and metadata.checkpoint_id:
            checkpoints = by_session.setdefault(undated_session_id(metadata.session_id), {})
            usage, lines_of = metadata.token_usage or Usage(), metadata.initial_attribution or Attribution()
            start = metadata.checkpoint_transcript_start
            counted = {
                name: getattr(lines_of, name)
                for name in Attribution.__struct_fields__
                if name in Checkpoint.__struct_fields__
            }
            checkpoint = Checkpoint(
                checkpoint_id=metadata.checkpoint_id, created_at=logged_iso(metadata.created_at), **counted,
                branch=metadata.branch or None, files_touched=metadata.files_touched,
                transcript_start=start if start is not None else metadata.transcript_lines_at_start,
                input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, api_calls=usage.api_call_count,
                cache_read_tokens=usage.cache_read_tokens, cache_write_tokens=usage.cache_creation_tokens,
            )  # fmt: skip
            if (earlier := checkpoints.get(checkpoint.checkpoint_id)) is not None:
                # Two copies of a record (two refs of one checkpoint): the earlier one, completed by the later.
                first, second = sorted((earlier, checkpoint), key=_when)
                absent = {f: getattr(second, f) for f in Checkpoint.__struct_fields__ if getattr(first, f) is None}
                checkpoint = structs.replace(first, **absent)
            checkpoints[checkpoint.checkpoint_id] = checkpoint
    return Reading(
        checkpoints={session_id: sorted(rows.values(), key=_when) for session_id, rows in by_session.items()}
    )


def _is_compact(data: bytes) -> bool:
    end = data.find(b"\n")
    first = decoded(data[: end if end >= 0 else len(data)], Compact)
    return first is not None and bool(first.type) and None not in (first.v, first.agent, first.cli_version)


def _when(row: Checkpoint) -> tuple[int, str]:
    return row.created_at or 0, row.checkpoint_id


def undated_session_id(session_id: str) -> str:
    """Return the agent's own session id. Before February 2026 Entire put the date in front of it."""
    return _DATE.sub("", session_id, count=1)


FORMAT = Format(
    name="entire",
    marks=(b'"checkpoint_id"', b'"checkpoint_uuid"', b'"cli_version"'),
    version=1,
    claims=claims,
    read=read,
)
