"""Reads such records like Claude Code's, with the tools of the agent that wrote them."""

from __future__ import annotations

from collections.abc import Callable

from agentsignals.formats import Input, Reading
from agentsignals.formats.any_agent import ANYBODY
from agentsignals.formats.any_agent import tool as any_tool
from agentsignals.formats.claude_code import agent_of
from agentsignals.formats.claude_code import records as claude
from agentsignals.formats.claude_code.reader import SessionReader
from agentsignals.formats.claude_code.records import File
from agentsignals.formats.claude_form import profile_of
from agentsignals.formats.head import head_of
from agentsignals.formats.profile import Profile, Tool
from agentsignals.formats.records import saw
from agentsignals.model import Session


def read(inputs: list[Input]) -> Reading:
    return read_exports([File(source) for source in inputs], Reader)


def read_exports(files: list[File], made: Callable[[File], SessionReader]) -> Reading:
    """Read files together. Of several exports of a session the fullest counts: their records share no id."""
    files.sort(key=lambda f: (len(f.lines), len(f.source.data), f.source.artifact.artifact_id), reverse=True)
    best: dict[str, File] = {}
    for file in files:
        kept = best.setdefault(file.session_id, file)
        if kept is not file:
            file.source.artifact.note = f"superseded by {kept.source.artifact.artifact_id}"
            saw(file.source.artifact, "repeated", len(file.lines))
            for line in file.lines:
                saw(file.source.artifact, claude.kind_of(line))
    sessions = []
    for session_id in sorted(best):
        reader = made(best[session_id])
        reader.take(best[session_id])
        sessions.append(reader.finish())
    return Reading([session for session in sessions if session.events])


class _Tools(Profile, frozen=True, kw_only=True, dict=True):
    """Any agent's tools, where no profile of the writer is known."""

    def tool(self, name: str) -> Tool | None:
        return any_tool(name)


_ANY = _Tools(frame=ANYBODY.frame, nothing_found=ANYBODY.nothing_found, stopped=ANYBODY.stopped)


class Reader(SessionReader):
    def __init__(self, file: File) -> None:
        super().__init__(file, {}, set())
        records = head_of(file.source.data).records
        named = next((agent for record in records if (agent := agent_of(record)) is not None), ("unknown", None))
        profile = profile_of(named[0])
        self.profile = profile or _ANY
        self.session.format, self.session.agent = "claude-form", profile.agent if profile is not None else named[0]
        self.session.agent_version = named[1] or ""

    def finish(self) -> Session:
        session = super().finish()
        session.agent_version = session.agent_version or None
        return session
