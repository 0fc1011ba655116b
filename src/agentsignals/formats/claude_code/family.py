"""The Claude Code files of one family: a session's files united, and what forks copied of each other counted once."""

from __future__ import annotations

import msgspec

from agentsignals.formats import Input, Reading
from agentsignals.formats.claude_code import plans
from agentsignals.formats.claude_code.files import File
from agentsignals.formats.claude_code.session import Seen, SessionReader
from agentsignals.formats.records import document, saw
from agentsignals.formats.soundness import refuse

_note = msgspec.json.Decoder(dict[str, object]).decode


def _is_about_subagent(source: Input) -> bool:
    """A note of a subagent's kind beside its log. It says nothing that the call does not."""
    if not source.artifact.path.endswith(".meta.json"):
        return False
    if document(source.data, source.artifact, _note) is not None:
        saw(source.artifact, "subagent-meta")
    return True


def read(inputs: list[Input]) -> Reading:
    """All files of one family: snapshots of a session are united by record id, forks don't count a record twice."""
    files = [part for source in inputs if not _is_about_subagent(source) for part in File(source).parts()]
    ends: dict[str, str] = {}
    if len(files) > 1:
        for file in files:
            ends[file.session_id] = max(file.span[1], ends.get(file.session_id, ""))
        # The original of a fork ended first; a subagent's file comes after the conversation that started it.
        files.sort(key=lambda f: (bool(f.agent_id), ends[f.session_id], f.session_id, f.span, f.source.artifact.sha256))
    agents = {file.agent_id for file in files if file.agent_id}
    seen: dict[str, Seen] = {}
    readers: dict[str, SessionReader] = {}
    for file in files:
        reader = readers.get(file.session_id)
        if reader is None:
            reader = readers[file.session_id] = SessionReader(file, seen, agents)
        reader.take(file)
    sessions = []
    for reader in readers.values():
        session = reader.finish()
        if session.events:
            sessions.append(session)
        elif session.parent_session_id is not None:
            refuse(reader.artifact, "session_of_copies")
    return Reading(sessions, keys=plans.approve(sessions))
