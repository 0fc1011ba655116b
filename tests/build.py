"""Tiny sessions in a line: `session(user("fix it"), call("Read", path="a.py"), say("done"))`.

Each part is a function of the builder; time passes a second a part, from 2026-01-01T00:00:00Z.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentsignals.changes.hunks import Hunk
from agentsignals.formats import formats
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_code import PROFILE
from agentsignals.formats.profile import Profile
from agentsignals.model import MAIN, Artifact, CallStatus, EventKind, Session, TurnKind
from agentsignals.store import disk, parquet, shards, tables
from agentsignals.store.parquet import SignalRows
from agentsignals.store.tables import AttemptRow
from agentsignals.views.session import SessionView

START = 1_767_225_600_000_000
Part = Callable[[SessionBuilder, int], None]


def session(*parts: Part, session_id: str = "s1", **facts: Any) -> Session:
    """A session of these parts. `facts` are fields of Session (repo=…, cwd=…)."""
    named = {"context": "product", "format": "claude-code", "agent": "claude-code", "artifact_id": "a1", **facts}
    made = Session(session_id=session_id, **named)
    made.conventions = list(profile(made.format).conventions)
    builder = SessionBuilder(made)
    if made.cwd:
        builder.where(made.cwd)
    for n, part in enumerate(parts):
        builder.line = n + 1
        part(builder, START + n * 1_000_000)
    return builder.finish()


def profile(format_name: str) -> Profile:
    """What is known of the agent of a format; of Claude Code for one that is no agent's."""
    return (formats()[format_name].profile if format_name in formats() else None) or PROFILE


def write_shard(
    folder: Path,
    sessions: Sequence[Session],
    artifacts: Sequence[Artifact] = (),
    signals: Sequence[SignalRows] = (),
    attempts: Sequence[AttemptRow] = (),
    name: str = "one",
) -> dict[str, disk.StoredFile]:
    """A shard of a store, whole; gives the marks of its tables."""
    with shards.Draft(folder, name) as draft:
        draft.add(shards.shard_rows(list(sessions), list(signals), list(attempts)).tables)
        draft.add({"artifacts": parquet.plain_table(tables.ARTIFACTS, list(artifacts))})
    return draft.parts


def view(*parts: Part, **facts: Any) -> SessionView:
    return SessionView(session(*parts, **facts))


def user(text: str, kind: TurnKind = "prompt") -> Part:
    return lambda b, at: void(b.turn(kind, text, at))


def say(text: str, message_id: str | None = None, thread: str = MAIN, **usage: Any) -> Part:
    """The agent writes; a model call of its own unless `message_id` repeats. `usage` are fields of Step."""

    def part(b: SessionBuilder, at: int) -> None:
        step = b.step(message_id, usage.pop("model", "claude-opus-4-5"), at, thread)
        for name, value in usage.items():
            setattr(step, name, value)
        b.event("text", text, at, step, thread)

    return part


def think(text: str) -> Part:
    return lambda b, at: void(b.event("thinking", text, at, b.step(None, "claude-opus-4-5", at)))


def event(kind: EventKind, text: str = "") -> Part:
    return lambda b, at: void(b.event(kind, text, at))


def call(
    name: str,
    *,
    path: str | None = None,
    command: str | None = None,
    result: str | None = "ok",
    status: CallStatus = "ok",
    hunks: list[Hunk] | None = None,
    creates: bool = False,
    thread: str = MAIN,
    **arguments: Any,
) -> Part:
    """A tool call and its result half a second later; no result when `result` is None. An edit tool's successful call
    changes `path`, in `hunks` when given."""

    def part(b: SessionBuilder, at: int) -> None:
        about = {"file_path": path, "path": path} if path else {}
        given = {**about, **({"command": command} if command else {}), **arguments}
        tool = profile(b.session.format).tool(name) or PROFILE.tool(name)
        made = b.call(f"c{len(b.session.tool_calls)}", name, json.dumps(given), tool, at, None, thread)
        if result is not None:
            b.result(made.call_id, result, status, at + 500_000, thread)
        if made.class_ == "edit" and status == "ok" and result is not None:
            b.edit(made, path, "create" if creates else "modify", hunks or [])

    return part


def void(_: object) -> None:
    """Parts return nothing."""
