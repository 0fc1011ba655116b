"""Claude Code session JSONL (formats.md section 1): `~/.claude/projects/<cwd>/<session>.jsonl` and its subagent files."""

from __future__ import annotations


import msgspec

from agentsignals.formats import Claim, Format, Input, Reading
from agentsignals.formats import claude_records as records
from agentsignals.formats import claude_user as user
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.claude_records import Line, Message
from agentsignals.formats.claude_results import answer
from agentsignals.formats.claude_tools import tool
from agentsignals.formats.head import Head
from agentsignals.formats.records import lines, saw
from agentsignals.model import MAIN, Session
from agentsignals.times import from_iso

_FIRST_TYPES = frozenset(
    "file-history-snapshot queue-operation summary last-prompt mode permission-mode custom-title ai-title progress".split()
)


def claims(head: Head) -> Claim | None:
    """Records with `parentUuid` and `sessionId`, or a first record of a kind only Claude Code writes."""
    found = head.records
    if not found or any("harness" in r for r in found):
        return None
    if not any("sessionId" in r and ("parentUuid" in r or r.get("type") in _FIRST_TYPES) for r in found) and not (
        found[0].get("type") in _FIRST_TYPES and ("leafUuid" in found[0] or "snapshot" in found[0])
    ):
        return None
    keys = [f"session:{r['sessionId']}" for r in found if isinstance(r.get("sessionId"), str)]
    first = next((r["uuid"] for r in found if isinstance(r.get("uuid"), str)), None)
    if first:
        keys.append(f"record:{first}")  # a fork or resume begins with a copy of the other session's records
    return Claim(list(dict.fromkeys(keys)))


def read(inputs: list[Input]) -> Reading:
    """All files of one family: snapshots of a session are united by record id, forks don't count a record twice."""
    parsed = [_Parsed(given) for given in inputs]
    parsed.sort(key=lambda p: p.order)
    seen: set[str] = set()
    builders: dict[str, _Reader] = {}
    for one in parsed:
        reader = builders.get(one.session_id)
        if reader is None:
            reader = builders[one.session_id] = _Reader(one)
        reader.take(one, seen)
    return Reading([reader.finish() for reader in builders.values()])


class _Parsed:
    """The decoded lines of one file, and where the file stands among its family."""

    def __init__(self, given: Input) -> None:
        self.given = given
        self.lines: list[tuple[int, Line]] = list(lines(given.data, given.artifact, records.decode))
        ids = [line.sessionId for _, line in self.lines if line.sessionId]
        self.session_id = (max(set(ids), key=ids.count) if ids else None) or given.session_hint or given.artifact.artifact_id
        self.agent_id = next((line.agentId for _, line in self.lines if line.isSidechain and line.agentId), None)
        first = min((line.timestamp for _, line in self.lines if line.timestamp), default="")
        last = max((line.timestamp for _, line in self.lines if line.timestamp), default="")
        # The original of a fork ended first; a subagent's file comes after the conversation that started it.
        self.order = (self.agent_id is not None, first, last, self.session_id, given.artifact.sha256)


class _Reader:
    """One session in the making."""

    def __init__(self, first: _Parsed) -> None:
        artifact = first.given.artifact
        session = Session(first.session_id, "product", "claude-code", "claude-code", artifact.artifact_id)
        session.repo = first.given.repo_hint
        self.session = session
        self.builder = SessionBuilder(session)
        self.queue = user.Queue(self.builder)
        self.model: str | None = None

    def take(self, parsed: _Parsed, seen: set[str]) -> None:
        """Adds the records of one file that no earlier file held."""
        builder, artifact = self.builder, parsed.given.artifact
        builder.artifact_id = artifact.artifact_id
        for number, line in parsed.lines:
            saw(artifact, records.kind_of(line))
            if not _is_new(line, seen):
                saw(artifact, "repeated")
                continue
            builder.line = number
            self._record(line)

    def finish(self) -> Session:
        return self.builder.finish()

    def _record(self, line: Line) -> None:
        session = self.session
        if line.cwd:
            self.builder.where(line.cwd, line.gitBranch or None)
        if line.version and session.agent_version is None:
            session.agent_version = line.version
        kind = line.type
        if kind == "assistant" and line.message is not None:
            self._assistant(line.message, line, self._thread(line))
        elif kind == "user" and line.message is not None:
            self._user(line, line.message, self._thread(line))
        elif kind == "progress":
            self._progress(line)
        elif kind == "system":
            self._system(line)
        elif kind == "attachment":
            self._attachment(line)
        elif kind == "queue-operation":
            self.queue.operation(line.operation or "", line.content if isinstance(line.content, str) else None, from_iso(line.timestamp))
        elif kind in ("custom-title", "ai-title"):
            session.title = line.customTitle or line.aiTitle or session.title
        elif kind not in records.QUIET:
            self.builder.event("unknown", kind, from_iso(line.timestamp))

    def _thread(self, line: Line) -> str:
        return (line.agentId or "sidechain") if line.isSidechain else MAIN

    def _assistant(self, message: Message, line: Line, thread: str) -> None:
        builder = self.builder
        at = from_iso(line.timestamp)
        if message.model == "<synthetic>" or line.isApiErrorMessage:
            builder.event("api_error", " ".join(b.text or "" for b in records.blocks(message)), at, None, thread)
            return
        step = builder.step(message.id, message.model, at, thread)
        records.count_usage(step, message)
        if thread == MAIN and message.model and message.model != self.model:
            if self.model is not None:
                builder.event("model_change", f"{self.model} -> {message.model}", at, step)
            self.model = message.model
        for block in records.blocks(message):
            if block.type == "text":
                builder.event("text", block.text or "", at, step, thread)
            elif block.type == "thinking":
                builder.event("thinking", block.thinking or "", at, step, thread)
            elif block.type == "tool_use":
                name = block.name or ""
                builder.call(block.id or "", name, bytes(block.input) or b"{}", tool(name), at, step, thread)
            elif block.type == "fallback":
                builder.event("model_change", "fallback", at, step, thread)
            else:
                builder.event("unknown", block.type, at, step, thread)

    def _user(self, line: Line, message: Message, thread: str) -> None:
        at = from_iso(line.timestamp)
        if isinstance(message.content, list) and any(b.type == "tool_result" for b in message.content):
            for block in message.content:
                if block.type == "tool_result":
                    answer(self.builder, block, line, at, thread)
                elif block.type == "text" and block.text and thread == MAIN:
                    user.beside_result(self.builder, block.text, at)
            return
        if thread == MAIN:
            user.record(self.builder, line, message, at)
        else:
            self.builder.event("meta", records.text_of(message), at, None, thread)

    def _progress(self, line: Line) -> None:
        if b'"agent_progress"' not in bytes(line.data)[:200] and b"agent_progress" not in bytes(line.data):
            return
        data = records.decode_progress(line.data)
        inner = data.message
        if data.type != "agent_progress" or inner is None or inner.message is None:
            return
        thread = data.agentId or "subagent"
        inner.timestamp = inner.timestamp or line.timestamp
        if inner.type == "assistant":
            self._assistant(inner.message, inner, thread)
        elif inner.type == "user":
            self._user(inner, inner.message, thread)

    def _system(self, line: Line) -> None:
        at = from_iso(line.timestamp)
        if line.subtype == "compact_boundary":
            self.builder.event("compaction", msgspec.json.encode(line.compactMetadata).decode() if line.compactMetadata else "{}", at)
        elif line.subtype == "microcompact_boundary":
            self.builder.event("compaction", '{"kind":"micro"}', at)
        elif line.subtype == "api_error":
            self.builder.event("api_error", records.as_text(line.content), at)
        elif line.subtype == "model_refusal_fallback":
            self.builder.event("model_change", records.as_text(line.content), at)
        elif line.subtype in ("local_command", "away_summary", "informational", "scheduled_task_fire"):
            self.builder.event("meta", records.as_text(line.content), at)

    def _attachment(self, line: Line) -> None:
        attached = records.decode_attachment(line.attachment)
        at = from_iso(line.timestamp)
        if attached.type == "queued_command":
            self.queue.attachment(records.as_text(attached.prompt), attached.commandMode or "prompt", at)
        elif attached.type == "edited_text_file":
            self.builder.event("external_edit", attached.filename or "", at)
        elif attached.type in ("plan_mode", "plan_mode_exit"):
            self.builder.event("meta", attached.type, at)


def _is_new(line: Line, seen: set[str]) -> bool:
    key = line.uuid
    if key is None:
        if line.type != "queue-operation":
            return True
        key = f"{line.sessionId}|{line.timestamp}|{line.operation}|{line.content}"
    if key in seen:
        return False
    seen.add(key)
    return True




FORMAT = Format(
    name="claude-code",
    version=1,
    claims=claims,
    read=read,
    agent="claude-code",
    home=("~/.claude/projects", "~/.config/claude/projects"),
)
