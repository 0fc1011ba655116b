"""The Pi sessions of one family: snapshots of a session united, and what forks copied of each other counted once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, changed, marks_of, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, whole
from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.head import HEAD_BYTES
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.pi import OPENCLAW, PROFILE, session_of
from agentsignals.formats.records import UNREADABLE, all_lines, saw
from agentsignals.model import (
    ABANDONED,
    MAIN,
    REPLAYED,
    Artifact,
    CallStatus,
    EventKind,
    Session,
    Step,
    ToolCall,
    TurnKind,
    logged_iso,
    logged_ms,
)

# The records of Pi as typed structs (design/formats.md#pi): only what is read; the rest is skipped undecoded.

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.


class Cost(Struct, gc=False):
    total: object = None


class Usage(Struct, gc=False, kw_only=True):
    """`input` excludes the cached tokens, `output` includes `reasoning` (design/formats.md#token-usage)."""

    input: object = None
    output: object = None
    cacheRead: object = None
    cacheWrite: object = None
    reasoning: object = None
    reasoningTokens: object = None
    """OpenClaw's name for it."""
    cost: Cost | None = None


class Block(Struct, gc=False, kw_only=True):
    """A content block: text, thinking, toolCall, image."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: Raw = Raw()


class Ran(Struct, gc=False):
    """Details of a command of OpenClaw's."""

    exitCode: object = None


class Message(Struct, gc=False, kw_only=True):
    """What a `message` entry holds, whatever its role."""

    role: str = ""
    content: str | list[Block] | None = None
    model: str | None = None
    usage: Usage | None = None
    stopReason: str | None = None
    errorMessage: str | None = None
    responseId: str | None = None
    toolCallId: str | None = None
    toolName: str | None = None
    isError: bool | None = None
    details: Raw = Raw()
    command: str | None = None
    output: str | None = None
    customType: str | None = None


class Entry(Struct, gc=False, kw_only=True):
    """A record of the file, of any type: v3 entries are nodes of a tree, v1 entries have neither id nor parent."""

    type: str = ""
    id: str | None = None
    parentId: str | None = None
    timestamp: object = None
    cwd: str | None = None
    parentSession: str | None = None
    branchedFrom: str | None = None
    spawnedBy: str | None = None
    """Of OpenClaw: the session whose agent asked for this one."""
    modelId: str | None = None
    thinkingLevel: str | None = None
    message: Message | None = None
    customType: str | None = None
    content: str | list[Block] | None = None
    data: Raw = Raw()
    details: Raw = Raw()
    summary: str | None = None
    tokensBefore: object = None
    firstKeptEntryId: object = None
    firstKeptEntryIndex: object = None
    fromHook: object = None
    usage: Raw = Raw()
    name: str | None = None
    label: str | None = None


DECODER = msgspec.json.Decoder(Entry)
decode = DECODER.decode
_ran = msgspec.json.Decoder(Ran).decode


def exit_code_of(details: Raw) -> int | None:
    """The exit code that a result's details state; None where they state none."""
    try:
        return whole(_ran(details).exitCode) if details else None
    except UNREADABLE:
        return None


def at_of(entry: Entry) -> int | None:
    """When the entry was written, microseconds UTC."""
    stamp = entry.timestamp
    return logged_iso(stamp) if isinstance(stamp, str) else logged_ms(stamp)


def tally(entries: Iterable[Entry]) -> dict[str, int]:
    """How many records there are of each type, with the role or extension it is about."""
    kinds: Counter[str] = Counter()
    for (kind, role, extension), times in Counter([_kind_of(entry) for entry in entries]).items():
        if role is not None:
            kinds[f"message.{role}"[:80]] += times
        elif kind in ("custom", "custom_message"):
            kinds[f"{kind}.{extension}"[:80]] += times
        else:
            kinds[kind[:80] or "untyped"] += times
    return kinds


def _kind_of(entry: Entry) -> tuple[str, str | None, str | None]:
    kind, message = entry.type, entry.message
    return kind, message.role if kind == "message" and message is not None else None, entry.customType


def blocks(content: str | list[Block] | None) -> Sequence[Block]:
    """The content as blocks, also when it is a bare string."""
    if isinstance(content, str):
        return [Block(type="text", text=content)]
    return content or ()


def text_of(content: str | list[Block] | None) -> str:
    """The text blocks joined."""
    if isinstance(content, str):
        return content
    if content and len(content) == 1:
        return content[0].text or ""
    return "\n".join(b.text for b in content or () if b.type == "text" and b.text)


def count_usage(step: Step, usage: Usage | None) -> None:
    """Tokens and recorded cost of one call. All zero means that nothing was reported (aborted and failed calls).

    A cost of zero beside tokens is a provider without prices, not a call that cost nothing.
    """
    if usage is None:
        return
    new, out = count(usage.input), count(usage.output)
    read, written = count(usage.cacheRead), count(usage.cacheWrite)
    if not (new or out or read or written):
        return
    step.input_tokens, step.output_tokens, step.cache_read_tokens, step.cache_write_tokens = new, out, read, written
    step.reasoning_tokens = count(usage.reasoning if usage.reasoning is not None else usage.reasoningTokens)
    total = usage.cost.total if usage.cost is not None else None
    if total:
        step.cost_usd, step.cost_source = amount(total), "recorded"


# What Pi's `edit` and `write` changed: from the diff in the result's details, else from the arguments.

_NUMBERED = re.compile(r"[+-] *(\d+)(?: |$)")


class Details(Struct, gc=False):
    diff: str | None = None
    patch: str | None = None


_details = msgspec.json.Decoder(Details).decode


def record(builder: SessionBuilder, call: ToolCall, details: Raw, touched: set[str]) -> None:
    """The change a successful call made. `touched` holds the paths this session has read or changed before."""
    hunks = _from_details(details) if details else []
    if hunks:
        builder.edit(call, None, "modify", hunks)
    else:
        record_arguments(builder, call, touched)


def _from_details(raw: Raw) -> list[Hunk]:
    """`patch` is a unified diff (newer); `diff` numbers every line (all versions)."""
    try:
        details = _details(raw)
    except UNREADABLE:
        return []
    hunks = unified(details.patch) if details.patch else []
    return hunks or (list(_of_numbered(details.diff)) if details.diff else [])


def _of_numbered(diff: str) -> Iterator[Hunk]:
    """Lines `-  32 text`, `+  32 text`, ` 33 text` in runs set apart by `...`.

    A `+` line has its new number, a `-` line its old one; the number in the other file follows from the lines added and
    removed so far. Context lines are only counted: the first versions number them wrongly after a gap.
    """
    shift = 0
    for run in _runs(diff.split("\n")):
        marks = marks_of(run)
        starts = _starts(run, shift)
        hunk = changed(*starts, marks) if starts is not None else None
        if hunk is not None:
            yield hunk
        shift += marks.count("+") - marks.count("-")


def _runs(lines: list[str]) -> Iterator[list[str]]:
    begin = 0
    for n, line in enumerate(lines):
        if not line or ("..." in line and line[1:].lstrip(" ").startswith("...")):
            yield lines[begin:n]
            begin = n + 1
    yield lines[begin:]


def _starts(run: list[str], shift: int) -> tuple[int, int] | None:
    """First old and new line of a run, off its first changed line that has a number; None when there is none."""
    for n, line in enumerate(run):
        match = _NUMBERED.match(line)
        if match is not None:
            first = int(match.group(1)) - n
            return (first - shift, first) if line[0] == "+" else (first, first + shift)
    return None


# One Pi session in the making: entries in, events, steps, turns and calls out.

QUEUED_WITHIN_US = 1_000_000
"""A prompt written this soon after a tool result was typed while the agent worked and handed in between two calls."""

_SKILL = re.compile(r'<skill name="([^"\n]*)"')
_CANCELLED = ("Command aborted", "Operation aborted", "Request was aborted", "Skipped due to queued user message")
_REFUSED = ("Blocked by user", "Cancelled by user")
_PLAIN = frozenset(("text", "image"))
"""Blocks of a person's message and of a result."""


class Conversation:
    """Reads the entries of one session in file order. `harness`: a subagent's session, no person talks in it."""

    def __init__(self, builder: SessionBuilder, harness: bool) -> None:
        self.builder = builder
        self.harness = harness
        self._models: dict[str, str] = {}
        self._touched: set[str] = set()
        self._answered_at: int | None = None
        """When the last tool result of a response that goes on came in; None when the agent is not at work."""

    def take(self, entry: Entry, at: int | None, thread: str) -> None:
        """Adds one entry; nothing off the main thread belongs to a turn."""
        builder = self.builder
        turn = builder.turn_index
        if thread != MAIN:
            builder.turn_index = None
        self._entry(entry, at, thread)
        if thread != MAIN:
            builder.turn_index = turn

    def _entry(self, entry: Entry, at: int | None, thread: str) -> None:
        kind = entry.type
        if kind == "message" and entry.message is not None:
            self._message(entry.message, entry, at, thread)
        elif kind == "model_change":
            self._model(entry.modelId, at, thread)
        elif kind == "compaction":
            self._compaction(entry, at, thread)
        elif kind in ("custom", "custom_message"):
            self._extension(entry, at, thread)
        elif kind == "thinking_level_change":
            self._event("meta", f"thinking level: {entry.thinkingLevel}", at, thread)
        elif kind == "branch_summary":
            self._event("meta", entry.summary, at, thread)
        elif kind == "label":
            self._event("meta", f"label: {entry.label}", at, thread)
        elif kind == "session_info":
            if thread == MAIN and entry.name:
                self.builder.session.title = entry.name
        elif kind != "session":
            self._event("unknown", kind[:80], at, thread)

    def _event(self, kind: EventKind, text: str | None, at: int | None, thread: str) -> None:
        self.builder.event(kind, text, at, None, thread)

    def _message(self, message: Message, entry: Entry, at: int | None, thread: str) -> None:
        role = message.role
        if role == "assistant":
            self._assistant(message, entry, at, thread)
        elif role == "toolResult":
            self._result(message, at, thread)
        elif role == "user":
            self._user(message, at, thread)
        elif role == "bashExecution":
            self._event("user_shell", message.command, at, thread)
            output = message.output or ""
            self.builder.event("command_output", output[:RESULT_CHARS_KEPT], at, None, thread, len(output))
        elif role in ("custom", "hookMessage"):  # extension messages of v2 and of early v3
            self._event("notification", text_of(message.content), at, thread)
        else:
            self._event("unknown", f"message.{role}"[:80], at, thread)

    # -- the agent -----------------------------------------------------------------------------------------------

    def _assistant(self, message: Message, entry: Entry, at: int | None, thread: str) -> None:
        builder = self.builder
        step = builder.step(None, message.model, at, thread)
        step.message_id = message.responseId or entry.id
        step.stop_reason = message.stopReason
        count_usage(step, message.usage)
        current = self._models.get(thread)
        if message.model and message.model != current:
            self._models[thread] = message.model
            if current is not None:
                builder.event("model_change", f"{current} -> {message.model}", at, step, thread)
        for block in blocks(message.content):
            if block.type == "text":
                builder.event("text", block.text or "", at, step, thread)
            elif block.type == "thinking":
                builder.event("thinking", block.thinking or "", at, step, thread)
            elif block.type == "toolCall":
                name = block.name or ""
                tool = builder.profile.tool(name)
                builder.call(block.id or "", name, bytes(block.arguments) or b"{}", tool, at, step, thread)
            else:
                builder.event("unknown", block.type[:80], at, step, thread)
        if message.stopReason == "aborted":
            builder.event("interrupt", message.errorMessage or "aborted", at, step, thread)
        elif message.stopReason == "error":
            builder.event("api_error", message.errorMessage or "error", at, step, thread)
        if thread == MAIN:
            self._answered_at = None

    def _result(self, message: Message, at: int | None, thread: str) -> None:
        text = text_of(message.content)
        status = _status(text, message.isError)
        code = exit_code(text) if status == "error" and message.toolName == "bash" else exit_code_of(message.details)
        call = self.builder.result(message.toolCallId or "", text, status, at, thread, code)
        if thread == MAIN:
            self._answered_at = at
        self.builder.unread((block.type for block in blocks(message.content)), _PLAIN, at, thread)
        if call is not None and status == "ok":
            self._worked(call, message)

    def _worked(self, call: ToolCall, message: Message) -> None:
        if call.class_ == "edit":
            record(self.builder, call, message.details, self._touched)
        if call.path and call.class_ in ("edit", "read"):
            self._touched.add(call.path)

    # -- the person and the harness ------------------------------------------------------------------------------

    def _user(self, message: Message, at: int | None, thread: str) -> None:
        self.builder.unread((block.type for block in blocks(message.content)), _PLAIN, at, thread)
        text = text_of(message.content).strip()
        machine = self.builder.profile.machine_kind(text)
        if thread != MAIN or self.harness or machine is not None:
            self._event(machine or "meta", text, at, thread)
            return
        queued = self._answered_at is not None and at is not None and at - self._answered_at <= QUEUED_WITHIN_US
        kind: TurnKind = "queued_prompt" if queued else "prompt"
        self._answered_at = None
        skill = _SKILL.match(text)
        if skill is not None:
            body, _, rest = text.partition("</skill>")
            self._event("meta", f"{body}</skill>", at, thread)
            kind, text = "slash_command", f"/skill:{skill.group(1)} {rest.strip()}".strip()
        files, text = _attached_files(text)
        if files:
            self._event("meta", files, at, thread)
        images = any(block.type == "image" for block in blocks(message.content))
        if not text:
            if not files and not images:
                self._event("meta", text, at, thread)
                return
            kind = "attachment"
        self.builder.turn(kind, text, at, self._models.get(MAIN))

    def _model(self, model: str | None, at: int | None, thread: str) -> None:
        """The choice a session opens with is no change, nor is the same model chosen again."""
        current = self._models.get(thread)
        if model is None or model == current or current is None:
            self._event("meta", f"model: {model}", at, thread)
        else:
            self._event("model_change", f"{current} -> {model}", at, thread)
        if model is not None:
            self._models[thread] = model

    def _compaction(self, entry: Entry, at: int | None, thread: str) -> None:
        facts = {
            "tokensBefore": entry.tokensBefore,
            "firstKeptEntryId": entry.firstKeptEntryId,
            "firstKeptEntryIndex": entry.firstKeptEntryIndex,
            "fromHook": entry.fromHook,
            "usage": entry.usage or None,
        }
        present = {key: value for key, value in facts.items() if value is not None}
        self._event("compaction", msgspec.json.encode(present).decode(), at, thread)
        if entry.summary:
            self._event("meta", entry.summary, at, thread)

    def _extension(self, entry: Entry, at: int | None, thread: str) -> None:
        """`custom_message` is shown to the model; `custom` is the extension's own state."""
        if entry.customType == "plannotator":
            payload = bytes(entry.data) or bytes(entry.details)
            text = payload.decode("utf-8", "replace") or text_of(entry.content)
            self._event("phase", text, at, thread)
        elif entry.type == "custom_message":
            self._event("notification", text_of(entry.content), at, thread)
        else:
            self._event("meta", (entry.customType or "")[:80], at, thread)


def _status(text: str, is_error: bool | None) -> CallStatus:
    if not is_error:
        return "ok"
    end = text[-200:].strip()
    if end.startswith(_REFUSED):
        return "rejected"
    last_line = end.rpartition("\n")[2]
    return "cancelled" if last_line.startswith(_CANCELLED) else "error"


def _attached_files(text: str) -> tuple[str, str]:
    """The files a prompt was started with (`pi @file`), put before the words, and the words."""
    end = 0
    while text.startswith('<file name="', end):
        stop = text.find("</file>", end)
        if stop < 0:
            break
        end = stop + len("</file>")
        while end < len(text) and text[end].isspace():
            end += 1
    return text[:end].rstrip(), text[end:]


# Which entries of a Pi file are the conversation: a session is a tree, and a fork begins with a copy of another.

_CONVERSATION = frozenset(("message", "custom_message", "compaction", "branch_summary"))


def threads(entries: Sequence[Entry]) -> list[str]:
    """`main` for the conversation, `abandoned` for other branches. Entries without ids (v1) are one conversation."""
    live = _live(entries)
    return [MAIN if entry.id is None or n in live else ABANDONED for n, entry in enumerate(entries)]


def copied(header: Entry | None, born: int | None, stamps: Sequence[int | None]) -> list[bool]:
    """Whether each entry is a copy that a fork took over from its parent: written before the fork's own header.

    Only a fork's: v1 writes the header of a new session after its first prompt.
    """
    if born is None or header is None or not (header.parentSession or header.branchedFrom):
        return [False] * len(stamps)
    return [at is not None and at < born for at in stamps]


def copy_key(entry: Entry) -> tuple[object, ...]:
    """The same for an entry and its copy in a fork; ids won't do, a v1 file has none until Pi rewrites it."""
    message = entry.message
    return (
        at_of(entry),
        entry.type,
        entry.customType,
        message.role if message is not None else None,
        message.toolCallId if message is not None else None,
    )


def _live(entries: Sequence[Entry]) -> set[int]:
    """Positions on the path from the last entry to the root, and from the last entry in which something was said.

    The two differ when an extension has noted its state on an older branch after the conversation's last word.
    """
    position = {entry.id: n for n, entry in enumerate(entries) if entry.id is not None}
    live: set[int] = set()
    spoken_leaf = next((n for n in range(len(entries) - 1, -1, -1) if entries[n].type in _CONVERSATION), None)
    for leaf in (spoken_leaf, len(entries) - 1):
        if leaf is not None and leaf >= 0:
            for n in _path(entries, position, leaf):
                if n in live:
                    break
                live.add(n)
    return live


def _path(entries: Sequence[Entry], position: dict[str, int], leaf: int) -> Iterator[int]:
    """From an entry to its root. A parent that is lost (a skipped line, a slice) is taken to follow the entry before:
    one bad line must not abandon everything said earlier."""
    n = leaf
    for _ in range(len(entries)):
        yield n
        entry = entries[n]
        if entry.parentId is None and entry.id is not None:
            return
        n = position.get(entry.parentId or "", n - 1)
        if n < 0:
            return


_OF_OPENCLAW = re.compile(r"/openclaw-agent\.sqlite//|/\.(?:openclaw|clawdbot|moltbot|moldbot)/agents/")
_SUBAGENT = "subagent-"
"""How the names of sessions begin that an extension runs for a subagent."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family. Snapshots of a session are united by entry id; v1 entries have none, the largest counts.

    What a fork copied counts in the session it comes from. When that is not among the files, the copies are the only
    record of it and count in the first fork: a person's in its conversation, a subagent's beside it (`replayed`).
    """
    sessions = [_Tree(files) for files in by_session(inputs, _File).values()]
    sessions.sort(key=lambda s: (s.born is None, s.born or 0, s.session_id))
    held: set[tuple[object, ...]] = set()
    if len(sessions) > 1 and any(any(s.copied) for s in sessions):
        for session in sessions:
            held.update(session.owned())
    return Reading([session.read(held) for session in sessions])


def is_openclaws(source: Input) -> bool:
    """By its place; or by what it adds to messages."""
    return _OF_OPENCLAW.search(source.artifact.path) is not None or b'"__openclaw":' in source.data[:HEAD_BYTES]


class _File:
    """The decoded entries of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.artifact = source.artifact
        numbers, entries = all_lines(source.data, source.artifact, DECODER, decode)
        for kind, times in tally(entries).items():
            saw(source.artifact, kind, times)
        self.header = next((entry for entry in entries if entry.type == "session"), None)
        self.entries = [
            (number, (entry, at_of(entry)))
            for number, entry in zip(numbers, entries, strict=True)
            if entry.type != "session"
        ]
        header_id = self.header.id if self.header is not None else None
        self.session_id = header_id or source.session_hint or source.artifact.artifact_id
        self.has_ids = any(entry.id is not None for _, (entry, _) in self.entries)
        last = max((at for _, (_, at) in self.entries if at is not None), default=0)
        self.order = (last, len(self.entries), source.artifact.sha256)


class _Tree:
    """One session: the entries of all its files, each once, with the thread each is on."""

    def __init__(self, files: list[_File]) -> None:
        self.files = _kept(files)
        self.header = next((f.header for f in self.files if f.header is not None), None)
        self.session_id = files[0].session_id
        self.born = at_of(self.header) if self.header is not None else None
        self.entries: list[Entry] = []
        self.stamps: list[int | None] = []
        self.places: list[tuple[Artifact, int]] = []
        for file, number, (entry, at) in once(self.files, lambda file: file.entries, lambda record: record[0].id):
            self.entries.append(entry)
            self.stamps.append(at)
            self.places.append((file.artifact, number))
        self.copied = copied(self.header, self.born, self.stamps)

    def owned(self) -> Iterator[tuple[object, ...]]:
        """The keys of the entries that were written in this session."""
        return (copy_key(entry) for entry, copy in zip(self.entries, self.copied, strict=True) if not copy)

    def read(self, held: set[tuple[object, ...]]) -> Session:
        """The session. `held` has the keys of the entries that another session owns, or keeps as the first copy."""
        builder = self._builder()
        harness = self._is_subagents()
        conversation = Conversation(builder, harness)
        kept: list[tuple[object, ...]] = []
        rows = zip(self.entries, self.stamps, threads(self.entries), self.copied, self.places, strict=True)
        for entry, at, thread, copy, (artifact, number) in rows:
            builder.artifact_id, builder.line = artifact.artifact_id, number
            if not copy:
                conversation.take(entry, at, thread)
                continue
            artifact.note = f"begins with a copy of session {builder.session.parent_session_id}"
            key = copy_key(entry)
            if key in held:
                saw(artifact, "repeated")
            else:
                kept.append(key)
                conversation.take(entry, at, REPLAYED if harness else thread)
        held.update(kept)
        return self._finish(builder)

    def _builder(self) -> SessionBuilder:
        first = self.files[0].source
        profile = OPENCLAW if is_openclaws(first) else PROFILE
        session = first.session(self.session_id, "pi", profile.agent)
        builder = SessionBuilder(session, profile)
        if self.header is not None:
            session.parent_session_id = session_of(self.header.parentSession) or session_of(self.header.branchedFrom)
            session.parent_session_id = session.parent_session_id or self.header.spawnedBy
            builder.where(self.header.cwd or None)
        return builder

    def _is_subagents(self) -> bool:
        fresh = (entry for entry, copy in zip(self.entries, self.copied, strict=True) if not copy)
        if self.header is not None and self.header.spawnedBy:
            return True
        return any(entry.type == "session_info" and (entry.name or "").startswith(_SUBAGENT) for entry in fresh)

    def _finish(self, builder: SessionBuilder) -> Session:
        """The session's times are its own: a fork began when it was forked, whatever history it was given."""
        session = builder.finish()
        stamps = [at for at, copy in zip(self.stamps, self.copied, strict=True) if at is not None and not copy]
        if self.born is not None:
            stamps.append(self.born)
        session.started_at = min(stamps, default=None)
        session.ended_at = max(stamps, default=None)
        if session.model is None and self.header is not None:
            session.model = self.header.modelId
        return session


def _kept(files: list[_File]) -> list[_File]:
    """The files whose entries are used: all that have ids, else the largest; the others are counted and say so."""
    with_ids = [f for f in files if f.has_ids]
    kept = with_ids or [max(files, key=lambda f: (len(f.entries), f.order))]
    for file in files:
        if file not in kept:
            file.artifact.note = f"an earlier copy of {kept[-1].artifact.path}, which counts"
            for _ in file.entries:
                saw(file.artifact, "repeated")
    return kept
