"""Reads Pi sessions. The structs hold only the fields that are read."""

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, changed, marks_of, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, whole
from agentsignals.formats.builder import RESULT_CHARS_KEPT, charge, record_arguments, tokens_of
from agentsignals.formats.conversation import ROOT, Conversation, blocks_of, path_to_root, returns
from agentsignals.formats.conversation import Block as AnyBlock
from agentsignals.formats.documents import by_session
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.pi import OPENCLAW, PROFILE, session_of
from agentsignals.formats.records import HEAD_BYTES, decoded, decoder, inside, saw, some_lines
from agentsignals.model import (
    ABANDONED,
    MAIN,
    REPLAYED,
    CallStatus,
    Session,
    ToolCall,
    TurnKind,
    logged_iso,
    logged_ms,
)


class Block(AnyBlock, gc=False, kw_only=True):
    arguments: Raw = Raw()


class Ran(Struct, gc=False):
    exitCode: object = None


class Message(Struct, gc=False, kw_only=True):
    role: str = ""
    content: str | list[Block] | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    """`input` excludes the cached tokens, `output` includes `reasoning` (design/formats.md#token-usage)."""
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
    """A record of any type. In v3 entries are nodes of a tree, in v1 they have neither id nor parent."""

    type: str = ""
    id: str | None = None
    parentId: str | None = None
    timestamp: object = None
    cwd: str | None = None
    parentSession: str | None = None
    branchedFrom: str | None = None
    spawnedBy: str | None = None
    """OpenClaw: the session whose agent started this one."""
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


class Details(Struct, gc=False):
    """Details of an edit. `patch` is a unified diff (newer); `diff` numbers every line (all versions)."""

    diff: str | None = None
    patch: str | None = None


_NUMBERED = re.compile(r"[+-] *(\d+)(?: |$)")
_QUEUED_WITHIN_US = 1_000_000
"""A prompt so soon after a tool result was typed while the agent worked, and passed on between two calls."""
_SKILL = re.compile(r'<skill name="([^"\n]*)"')
_CANCELLED = ("Command aborted", "Operation aborted", "Request was aborted", "Skipped due to queued user message")
_REFUSED = ("Blocked by user", "Cancelled by user")
_PARTS = frozenset(("text", "image"))
"""Blocks of a user message and of a result."""
_CONVERSATION = frozenset(("message", "custom_message", "compaction", "branch_summary"))
_OPENCLAW_PLACE = re.compile(r"/openclaw-agent\.sqlite//|/\.(?:openclaw|clawdbot|moltbot|moldbot)/agents/")
_SUBAGENT = "subagent-"
"""Name prefix of sessions that an extension runs for a subagent."""
_Key = tuple[object, ...]


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Those of a session are united by entry id. Of v1 files, without ids, the largest counts.

    An entry that a fork copied counts in the session it comes from. If that is not among the files, it counts in the
    first fork: a person's in its conversation, a subagent's on the thread `replayed`.
    """
    trees = [_Tree(files) for files in by_session(inputs, _File).values()]
    trees.sort(key=lambda tree: (tree.born is None, tree.born or 0, tree.session_id))
    held: set[_Key] = set()
    if len(trees) > 1 and any(any(tree.copied) for tree in trees):
        for tree in trees:
            held.update(tree.owned())
    return Reading([tree.read(held) for tree in trees])


def _time(entry: Entry) -> int | None:
    stamp = entry.timestamp
    return logged_iso(stamp) if isinstance(stamp, str) else logged_ms(stamp)


def _text(content: str | list[Block] | None) -> str:
    if isinstance(content, str):
        return content
    if content and len(content) == 1:
        return content[0].text or ""
    return "\n".join(b.text for b in content or () if b.type == "text" and b.text)


class _File:
    def __init__(self, source: Input) -> None:
        self.source = source
        self.artifact = source.artifact
        self.header: Entry | None = None
        self.size, self.last, self.has_ids = 0, 0, False
        entry_decoder = decoder(Entry)
        self.numbers, self.records = some_lines(
            source.data, source.artifact, entry_decoder, entry_decoder.decode, self._look
        )
        header_id = self.header.id if self.header is not None else None
        self.session_id = header_id or source.session_hint or source.artifact.artifact_id
        self.order = (self.last, self.size, source.artifact.sha256)

    def _look(self, entries: Sequence[Entry]) -> None:
        """Count the entries by kind, and note the header, whether entries have ids, and the last time."""
        for entry in entries:
            kind = entry.type or "untyped"
            if entry.type == "message" and entry.message is not None:
                kind = f"message.{entry.message.role}"
            elif entry.type in ("custom", "custom_message"):
                kind = f"{entry.type}.{entry.customType}"
            saw(self.artifact, kind[:80])
            if entry.type == "session":
                self.header = self.header or entry
                continue
            self.size += 1
            self.has_ids = self.has_ids or entry.id is not None
            self.last = max(self.last, _time(entry) or 0)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield the entries, each with its place among the records."""
        return ((n, entry) for n, entry in enumerate(self.records) if entry.type != "session")


class _Tree:
    """One session: the entries of all its files, each once."""

    def __init__(self, files: list[_File]) -> None:
        # All files with ids are used, else the largest. The others say so.
        self.files = [f for f in files if f.has_ids] or [max(files, key=lambda f: (f.size, f.order))]
        for file in files:
            if file not in self.files:
                file.artifact.note = f"an earlier copy of {self.files[-1].artifact.path}, which counts"
                saw(file.artifact, "repeated", file.size)
        self.header = next((f.header for f in self.files if f.header is not None), None)
        self.session_id = files[0].session_id
        header = self.header or Entry()
        self.parent = header.parentSession or header.branchedFrom
        self.born = _time(self.header) if self.header is not None else None
        self.stamps: list[int | None] = []
        self.places: list[tuple[_File, array[int]]] = []
        """The records that count, of each file."""
        self.copied = bytearray()
        self.names: list[str] = []
        """Its names, but for those of a fork's parent."""
        self._parents = array("q")
        self._is_users: list[bool] = []
        self._spoken_leaf = ROOT
        # A fork's entries from before its header are copies. Only a fork's: v1 writes a header after the first prompt.
        born = self.born if self.parent is not None else None
        position: dict[str, int] = {}
        later: dict[int, str] = {}
        """Parents that were not met yet, by entry."""
        for file in self.files:
            self.places.append((file, array("q")))
            for place, entry in file.entries():
                n = len(self.stamps)
                if entry.id is not None and position.setdefault(entry.id, n) != n:
                    saw(file.artifact, "repeated")
                    continue
                at = _time(entry)
                self.stamps.append(at)
                self.places[-1][1].append(place)
                self.copied.append(born is not None and at is not None and at < born)
                if entry.type == "session_info" and not self.copied[-1]:
                    self.names.append(entry.name or "")
                # A lost parent (a skipped line) is taken to be the entry before: one bad line must not abandon
                # everything before it.
                is_root = entry.parentId is None and entry.id is not None
                self._parents.append(ROOT if is_root else position.get(entry.parentId or "", n - 1))
                if entry.parentId and entry.parentId not in position:
                    later[n] = entry.parentId
                self._is_users.append(entry.message is not None and entry.message.role == "user")
                self._spoken_leaf = n if entry.type in _CONVERSATION else self._spoken_leaf
        for n, parent in later.items():
            self._parents[n] = position.get(parent, n - 1)

    def entries(self) -> Iterator[tuple[_File, int, Entry]]:
        return ((file, place, file.records[place]) for file, places in self.places for place in places)

    def owned(self) -> Iterator[_Key]:
        return (_copy_key(entry) for (*_, entry), copy in zip(self.entries(), self.copied, strict=True) if not copy)

    def read(self, held: set[_Key]) -> Session:
        """`held`: keys of the entries that another session owns, or has as the first copy."""
        reader = self.reader()
        builder = reader.builder
        own: list[_Key] = []
        # The paths to the root from the last entry and from the last that says something differ when an extension noted
        # its state on an older branch after the end of the conversation.
        leaves = (self._spoken_leaf, len(self._parents) - 1)
        live = {n for leaf in leaves for n in path_to_root(self._parents, leaf)}
        returned = returns(self._parents, self._is_users)
        rows = zip(self.entries(), self.stamps, self.copied, strict=True)
        for n, ((file, place, entry), at, copy) in enumerate(rows):
            artifact = file.artifact
            thread = MAIN if entry.id is None or n in live else ABANDONED  # without ids (v1) it is one conversation
            builder.artifact_id, builder.line = artifact.artifact_id, file.numbers[place]
            if n in returned and not copy:
                builder.event("rewind", None, at, None, thread)
            if not copy:
                reader.take(entry, at, thread)
                continue
            artifact.note = f"begins with a copy of session {builder.session.parent_session_id}"
            key = _copy_key(entry)
            if key in held:
                saw(artifact, "repeated")
            else:
                own.append(key)
                reader.take(entry, at, REPLAYED if reader.is_subagent else thread)
        held.update(own)
        session = builder.finish()
        # The times are the session's own: a fork began when it was forked, whatever history it was given.
        stamps = [at for at, copy in zip(self.stamps, self.copied, strict=True) if at is not None and not copy]
        stamps += [self.born] if self.born is not None else []
        session.started_at, session.ended_at = min(stamps, default=None), max(stamps, default=None)
        if session.model is None and self.header is not None:
            session.model = self.header.modelId
        return session

    def reader(self) -> "Reader":
        first, header = self.files[0].source, self.header or Entry()
        is_openclaw = _OPENCLAW_PLACE.search(first.artifact.path) or b'"__openclaw":' in first.data[:HEAD_BYTES]
        profile = OPENCLAW if is_openclaw else PROFILE
        reader = (OpenClawReader if is_openclaw else Reader)(first.session(self.session_id, "pi", profile.agent))
        parent = session_of(header.parentSession) or session_of(header.branchedFrom)
        reader.session.parent_session_id = parent or header.spawnedBy
        reader.builder.where(header.cwd or None)
        reader.is_subagent = bool(header.spawnedBy) or any(name.startswith(_SUBAGENT) for name in self.names)
        return reader


def _copy_key(entry: Entry) -> _Key:
    """Return a key that an entry shares with its copies. Ids would not do: a v1 file has none until Pi rewrites it."""
    message = entry.message or Message()
    role = entry.message.role if entry.message is not None else None
    return _time(entry), entry.type, entry.customType, role, message.toolCallId


class Reader(Conversation):
    profile = PROFILE
    answered_at: int | None = None
    """Time of the last tool result while the agent is at work."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.models: dict[str, str] = {}

    def take(self, entry: Entry, at: int | None, thread: str) -> None:
        with self.aside(thread):
            self.entry(entry, at)

    def entry(self, entry: Entry, at: int | None) -> None:
        kind = entry.type
        if kind == "message" and entry.message is not None:
            self.message(entry.message, entry, at)
        elif kind == "model_change":
            # The choice that a session opens with is no change, nor is the same model chosen again.
            model, current = entry.modelId, self.models.get(self.thread)
            if model is None or model == current or current is None:
                self.event("meta", f"model: {model}", at)
            else:
                self.event("model_change", f"{current} -> {model}", at)
            if model is not None:
                self.models[self.thread] = model
        elif kind == "compaction":
            names = ("tokensBefore", "firstKeptEntryId", "firstKeptEntryIndex", "fromHook")
            facts = {name: getattr(entry, name) for name in names} | {"usage": entry.usage or None}
            present = {name: value for name, value in facts.items() if value is not None}
            self.event("compaction", msgspec.json.encode(present).decode(), at)
            if entry.summary:
                self.event("meta", entry.summary, at)
        elif kind in ("custom", "custom_message") and entry.customType == "plannotator":
            payload = bytes(entry.data) or bytes(entry.details)
            self.event("phase", payload.decode("utf-8", "replace") or _text(entry.content), at)
        elif kind == "custom_message":
            self.event("notification", _text(entry.content), at)
        elif kind == "custom":  # an extension's own state
            self.event("meta", (entry.customType or "")[:80], at)
        elif kind == "thinking_level_change":
            self.event("meta", f"thinking level: {entry.thinkingLevel}", at)
        elif kind == "branch_summary":
            self.event("meta", entry.summary, at)
        elif kind == "label":
            self.event("meta", f"label: {entry.label}", at)
        elif kind == "session_info":
            if self.thread == MAIN and entry.name:
                self.session.title = entry.name
        elif kind != "session":
            self.event("unknown", kind[:80], at)

    def message(self, message: Message, entry: Entry, at: int | None) -> None:
        if message.role == "assistant":
            self.answer(message, entry, at)
        elif message.role == "toolResult":
            self.tool_result(message, at)
        elif message.role == "user":
            self.user(message, at)
        elif message.role == "bashExecution":
            self.event("user_shell", message.command, at)
            output = message.output or ""
            shown = output[:RESULT_CHARS_KEPT]
            self.builder.event("command_output", shown, at, None, self.thread, len(output))
        elif message.role in ("custom", "hookMessage"):  # extension messages of v2 and of early v3
            self.event("notification", _text(message.content), at)
        elif message.role == "system":  # of 1.6; its words are in sections
            self.event("meta", _text(message.content) or "system prompt", at)
        else:
            self.event("unknown", f"message.{message.role}"[:80], at)

    def answer(self, message: Message, entry: Entry, at: int | None) -> None:
        step = self.builder.step(None, message.model, at, self.thread)
        step.message_id = message.responseId or entry.id
        step.stop_reason = message.stopReason
        if message.usage is not None:
            # Set tokens and recorded cost of a call. Zeros mean that nothing was reported (aborted and failed
            # calls). A cost of zero with tokens is a provider without prices, not a free call.
            tokens = tokens_of(message.usage, "apart")
            if any(tokens[:4]):
                charge(step, tokens)
                if total := inside(message.usage, "cost", "total"):
                    step.cost_usd, step.cost_source = amount(total), "recorded"
        current = self.builder.model_changed(self.models.get(self.thread), message.model, at, step, self.thread)
        if current is not None:
            self.models[self.thread] = current
        for block in blocks_of(message.content, Block):
            if block.type == "text":
                self.event("text", block.text or "", at, step)
            elif block.type == "thinking":
                self.event("thinking", block.thinking or "", at, step)
            elif block.type == "toolCall":
                self.call(block.id or "", block.name or "", bytes(block.arguments), at, step)
            else:
                self.event("unknown", block.type[:80], at, step)
        if message.stopReason == "aborted":
            self.event("interrupt", message.errorMessage or "aborted", at, step)
        elif message.stopReason == "error":
            self.event("api_error", message.errorMessage or "error", at, step)
        if self.thread == MAIN:
            self.answered_at = None

    def tool_result(self, message: Message, at: int | None) -> None:
        text = _text(message.content)
        status: CallStatus = "ok"
        if message.isError:
            end = text[-200:].strip()
            is_cancelled = end.rpartition("\n")[2].startswith(_CANCELLED)
            status = "rejected" if end.startswith(_REFUSED) else "cancelled" if is_cancelled else "error"
        if status == "error" and message.toolName == "bash":
            code = exit_code(text)
        else:
            ran = decoded(message.details, Ran)
            code = whole(ran.exitCode) if ran is not None else None
        self.result(message.toolCallId or "", text, status, at, message.details, code)
        if self.thread == MAIN:
            self.answered_at = at
        self.builder.unread((block.type for block in blocks_of(message.content, Block)), _PARTS, at, self.thread)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        details = decoded(detail, Details) or Details()
        hunks = unified(details.patch) if details.patch else []
        hunks = hunks or (list(_numbered_hunks(details.diff)) if details.diff else [])
        if hunks:
            self.builder.edit(call, None, "modify", hunks)
        else:
            record_arguments(self.builder, call, existed=call.path in self.touched)
        return True

    def user(self, message: Message, at: int | None) -> None:
        self.builder.unread((block.type for block in blocks_of(message.content, Block)), _PARTS, at, self.thread)
        text = _text(message.content).strip()
        machine = self.profile.machine_kind(text)
        if self.thread != MAIN or self.is_subagent or machine is not None:
            self.event(machine or "meta", text, at)
            return
        queued = self.answered_at is not None and at is not None and at - self.answered_at <= _QUEUED_WITHIN_US
        kind: TurnKind = "queued_prompt" if queued else "prompt"
        self.answered_at = None
        skill = _SKILL.match(text)
        if skill is not None:
            body, _, rest = text.partition("</skill>")
            self.event("meta", f"{body}</skill>", at)
            kind, text = "slash_command", f"/skill:{skill.group(1)} {rest.strip()}".strip()
        end = 0  # of the files that the prompt begins with (`pi @file`)
        while text.startswith('<file name="', end) and (stop := text.find("</file>", end)) >= 0:
            end = stop + len("</file>")
            while end < len(text) and text[end].isspace():
                end += 1
        files, text = text[:end].rstrip(), text[end:]
        if files:
            self.event("meta", files, at)
        if text or files or any(block.type == "image" for block in blocks_of(message.content, Block)):
            self.builder.turn(kind if text else "attachment", text, at, self.models.get(MAIN))
        else:
            self.event("meta", text, at)


class OpenClawReader(Reader):
    profile = OPENCLAW


def _numbered_hunks(diff: str) -> Iterator[Hunk]:
    """Read lines `-  32 text`, `+  32 text`, ` 33 text` in runs separated by `...`.

    A `+` line has its new number, a `-` line its old one; the number in the other file follows from the lines added and
    removed so far. Context lines are only counted: the first versions number them wrongly after a gap.
    """
    lines = diff.split("\n")
    gaps = [n for n, line in enumerate(lines) if not line or line[1:].lstrip(" ").startswith("...")]
    shift = 0
    for begin, end in pairwise((-1, *gaps, len(lines))):
        run = lines[begin + 1 : end]
        marks = marks_of(run)
        n, numbered = next(((n, m) for n, line in enumerate(run) if (m := _NUMBERED.match(line))), (0, None))
        if numbered is not None:
            first = int(numbered.group(1)) - n
            starts = (first - shift, first) if run[n][0] == "+" else (first, first + shift)
            if (hunk := changed(*starts, marks)) is not None:
                yield hunk
        shift += marks.count("+") - marks.count("-")
