"""Records and files of Claude Code. The structs hold only the fields that are read; the rest is skipped undecoded."""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from sys import intern

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import special
from agentsignals.formats.conversation import ROOT, Speaker, left_branches
from agentsignals.formats.conversation import Block as AnyBlock
from agentsignals.formats.documents import REDACTED
from agentsignals.formats.records import Records, decoder, some_lines
from agentsignals.formats.records import lines as records_of
from agentsignals.model import MAIN, Artifact, Step


class CacheCreation(Struct, gc=False):
    ephemeral_1h_input_tokens: int | None = None


class ServerTools(Struct, gc=False):
    web_search_requests: object = None


class Tokens(Struct, gc=False, kw_only=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None


class Iteration(Tokens, gc=False, kw_only=True):
    """A model call behind a message: one of the answering model, of an advisor, a compaction, a fallback."""

    type: str = ""
    model: str | None = None


ITERATIONS = frozenset(("message", "advisor_message", "compaction", "fallback_message"))
"""Types of iterations whose price is known: their own model's, or that of the message."""


class Usage(Tokens, gc=False, kw_only=True):
    """Tokens of a model call. Speed, tier and place may be of any type; only a text names one."""

    server_tool_use: ServerTools | None = None
    speed: object = None
    service_tier: object = None
    inference_geo: object = None
    iterations: Raw = Raw()
    """The model calls behind the message. Its own figures sum those of type `message`."""


class Block(AnyBlock, gc=False, kw_only=True):
    """A content block: text, thinking, tool_use, tool_result, image, fallback."""

    content: "str | list[Block | str | None] | Block | None" = None  # type: ignore[assignment]
    is_error: object = None  # type: ignore[assignment]


class Message(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Progress(Struct, gc=False, rename="camel"):
    """The report of a running tool. A subagent's whole conversation comes this way up to 2.1.81."""

    type: str = ""
    message: "Line | str | None" = None
    agent_id: str | None = None
    hook_event: str | None = None
    hook_name: str | None = None
    elapsed_time_seconds: object = None
    elapsed_time_ms: object = None


class Attachment(Struct, gc=False, rename="camel"):
    type: str = ""
    prompt: object = None
    command_mode: str | None = None
    hook_name: str | None = None
    filename: str | None = None
    hook_event: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
    duration_ms: object = None


class Structured(Struct, gc=False, rename="camel", kw_only=True):
    """The structured result of any tool: `toolUseResult`. `originalFile`, which can be huge, is never decoded."""

    file_path: object = None
    type: object = None
    structured_patch: Raw = Raw()
    content: Raw = Raw()
    agent_id: object = None
    total_tool_use_count: object = None
    total_tokens: object = None
    duration_ms: object = None
    duration_seconds: object = None


ToolUseResult = Structured | str | list[Raw] | float | None
"""Some tools have a text or a list as their structured result."""


class Line(Struct, gc=False, rename="camel", kw_only=True):
    """A record of the transcript, of any type. Flags are objects: re-exported rows write `"True"`."""

    is_sidechain: object = None
    cwd: str | None = None
    session_id: str | None = None
    version: str | None = None
    git_branch: str | None = None
    agent_id: str | None = None
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    type: str = ""
    message: Message | None = None
    data: Progress | None = None
    attachment: Attachment | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    forked_from: object = None
    """In a copied record: the session and id of the original. A fork may have an id of its own for the copy."""
    logical_parent_uuid: str | None = None
    timestamp: str | None = None
    tool_use_result: ToolUseResult = None
    is_meta: object = None
    is_compact_summary: object = None
    is_api_error_message: object = None
    plan_content: object = None
    origin: object = None
    prompt_source: object = None
    entrypoint: object = None
    subtype: str | None = None
    operation: str | None = None
    reason: object = None
    """In a queue operation: why a message was removed."""
    content: object = None
    error: object = None
    compact_metadata: object = None
    microcompact_metadata: object = None
    prevented_continuation: object = None
    stop_reason: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    explicit: object = None
    """In a `last-prompt`: a rewind has set the end. Older versions do not say so of any."""
    cost_usd: float | None = field(default=None, name="costUSD")
    thinking_metadata: object = None
    model_usage: Raw = Raw()
    """In a `cost-state`: what the session used so far, by model."""


class _Envelope(Struct, gc=False, rename="camel"):
    type: object = None
    uuid: object = None
    session_id: object = None
    timestamp: object = None


_decoder = msgspec.json.Decoder(Line)
_line = _decoder.decode
_envelope = msgspec.json.Decoder(_Envelope).decode

QUIET = frozenset(
    ("user", "assistant", "progress", "file-history-snapshot", "last-prompt", "permission-mode", "mode", "agent-name",
     "agent-color", "pr-link", "frame-link", "api-request", "api-request-blob", "api-request-shape", "tools-used",
     "atis-latch", "api-request-resumed", "attribution-snapshot", "continued-in", "data-flow-incomplete",
     "data-flow-records", "derived-from", "ended-by-model", "file-history-delta", "fork-context-ref",
     "history-suppression", "hybrid-organization", "isolation-latch", "memory-mode", "observer-ref", "repl-mode",
     "resume-head-vouch", "session-owner", "worktree-state")
)  # fmt: skip
"""Record types without an event of their own. They are counted in the artifact's record_kinds."""
ABOUT_SESSION = frozenset(("custom-title", "ai-title", "summary"))
QUIET_SYSTEM = frozenset(("stop_hook_summary", "turn_duration", "bridge_status"))
SYSTEM_NOTES = frozenset(("away_summary", "informational", "scheduled_task_fire", "model_refusal_fallback"))
QUIET_ATTACHMENTS = frozenset(
    ("hook_success", "hook_non_blocking_error", "hook_cancelled", "hook_system_message", "async_hook_response",
     "hook_additional_context", "task_reminder", "todo_reminder", "skill_listing", "invoked_skills", "nested_memory",
     "deferred_tools_delta", "agent_listing_delta", "mcp_instructions_delta", "command_permissions", "auto_mode",
     "file", "directory", "already_read_file", "compact_file_reference", "date_change", "goal_status",
     "ultra_effort_enter", "ultra_effort_exit", "workflow_keyword_request", "opened_file_in_ide", "diagnostics",
     "environment", "model", "total_tokens_reminder", "session_context", "date", "remote_session_change",
     "prompt_snapshot", "output_style", "ultramemory", "mcp_resource", "selected_lines_in_ide", "relevant_memories")
)  # fmt: skip
"""Attachments that the program adds as context for the model."""


_READ = QUIET | ABOUT_SESSION | {"system", "attachment", "queue-operation"}
"""Kinds that are read: an odd value in one of these costs the value, not the record."""


def decode(data: memoryview | bytes) -> Line:
    """Decode a record. One of an unknown kind may have any shape; then only its kind, id and time are read."""
    try:
        return _line(data)
    except msgspec.ValidationError:
        envelope = _envelope(data)
        kind = envelope.type if isinstance(envelope.type, str) else ""
        if not kind or kind in _READ:
            raise
        uuid, session_id, at = (
            v if isinstance(v, str) else None for v in (envelope.uuid, envelope.session_id, envelope.timestamp)
        )
        return Line(type=f"{kind} of unknown shape", uuid=uuid, session_id=session_id, timestamp=at)


def kind_of(line: Line) -> str:
    """Return the record's type and subtype, as counted in the artifact."""
    kind = line.type
    if kind == "progress":
        return f"progress.{line.data.type}" if line.data is not None else kind
    if kind == "attachment":
        return f"attachment.{line.attachment.type}" if line.attachment is not None else kind
    return f"system.{line.subtype}" if kind == "system" else kind or "untyped"


_NAMED_WITHIN = frozenset(("progress", "attachment", "system", ""))


def is_true(flag: object) -> bool:
    """Read a flag. Re-exported rows write it as the text `"True"`."""
    return flag is True or (isinstance(flag, str) and flag.lower() == "true")


def origin_of(line: Line) -> object:
    """Return the kind of sender that a record names."""
    return line.origin.get("kind") if isinstance(line.origin, dict) else None


def identity(text: str | None) -> str | None:
    """Return an id. None if a redactor has overwritten it."""
    return None if text == REDACTED else text


def blocks(message: Message) -> Sequence[Block]:
    content = message.content
    return [Block(type="text", text=content)] if isinstance(content, str) else content or ()


def text_of(message: Message) -> str:
    """Join the text blocks of a message."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(b.text for b in message.content or () if b.type == "text" and b.text)


def as_text(value: object) -> str:
    """Return a value that is usually a string, or a list of text blocks, as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(v["text"] for v in value if isinstance(v, dict) and isinstance(v.get("text"), str))
    return ""


def error_text(error: object) -> str:
    """Return the text of a failed model call: a name, or an object with a status and, somewhere inside, a message."""
    status = ""
    while isinstance(error, dict):
        if isinstance(error.get("status"), int):
            status = f"{error['status']} "
        if isinstance(error.get("message"), str):
            return f"{status}{error['message']}"
        error = error.get("error") or error.get("cause")
    return f"{status}{error}".strip() if isinstance(error, str) else status.strip()


def count_usage(step: Step, message: Message) -> None:
    """Set the tokens of a call. Every line of a message repeats them, and they grow while it streams: the maximum
    counts.

    Source: design/formats.md#claude-code-usage (the last line has the maximum in 8,262 of 8,262 ids).
    """
    if message.stop_reason:
        step.stop_reason = intern(message.stop_reason)
    usage = message.usage
    if usage is None:
        return
    step.output_tokens = _larger(step.output_tokens, usage.output_tokens)
    step.input_tokens = _larger(step.input_tokens, usage.input_tokens)
    step.cache_read_tokens = _larger(step.cache_read_tokens, usage.cache_read_input_tokens)
    step.cache_write_tokens = _larger(step.cache_write_tokens, usage.cache_creation_input_tokens)
    if usage.cache_creation is not None and (n := usage.cache_creation.ephemeral_1h_input_tokens):
        step.cache_write_1h_tokens = _larger(step.cache_write_1h_tokens, n)
    step.speed = special(usage.speed) or step.speed
    step.service_tier = special(usage.service_tier) or step.service_tier
    step.inference_geo = special(usage.inference_geo) or step.inference_geo
    if usage.server_tool_use is not None and (searches := count(usage.server_tool_use.web_search_requests)):
        step.web_searches = max(searches, step.web_searches or 0)


def _larger(before: int | None, now: int | None) -> int | None:
    return now if before is None or (now is not None and now > before) else before


Lines = Callable[[bytes, Artifact], tuple[Sequence[int], Sequence[Line]]]
"""Returns all records of a file and their line numbers."""


class _Link(Struct, gc=False, rename="camel"):
    session_id: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None


class File:
    def __init__(self, source: Input, read: Lines | None = None) -> None:
        self.source = source
        self._begin()
        self.numbers: Sequence[int]
        self.lines: Sequence[Line]
        if read is None:
            self.numbers, self.lines = some_lines(source.data, source.artifact, _decoder, decode, self._look)
        else:
            self.numbers, self.lines = read(source.data, source.artifact)
            self._look(self.lines)
        self._name()

    def _begin(self) -> None:
        self.ids: set[str] = set()
        self.folders: dict[str | None, None] = {}
        """Working folders, in order."""
        self.kinds: Counter[str] = Counter()
        self.version: str | None = None
        self._first: Line | None = None
        self._is_apart = True
        """All records so far are of subagents."""

    def _look(self, lines: Sequence[Line]) -> None:
        self.ids.update(session_id for session_id in map(attrgetter("session_id"), lines) if session_id is not None)
        self.folders |= dict.fromkeys(map(attrgetter("cwd"), lines))
        self.kinds.update([line.type if line.type not in _NAMED_WITHIN else kind_of(line) for line in lines])
        self.version = self.version or next((line.version for line in lines if line.version), None)
        self._first = self._first or next((line for line in lines if line.uuid is not None), None)
        self._is_apart = self._is_apart and all(thread_of(line) != MAIN for line in lines if line.uuid is not None)

    def _name(self) -> None:
        self.agent_id = self._first.agent_id if self._first is not None and self._is_apart else None
        hint, ids = self.source.session_hint, self.ids
        if hint is not None and (hint in ids or not ids):  # a resumed session may hold mostly the old one's records
            self.session_id = hint
        elif len(ids) > 1:
            times: Counter[str] = Counter(map(attrgetter("session_id"), self.lines))
            del times[None]
            self.session_id = max(times, key=lambda i: times[i])
        else:
            self.session_id = next(iter(ids), self.source.artifact.artifact_id)

    def parts(self) -> "list[File]":
        """Split a file that holds several sessions one after the other. Most files hold one.

        A resumed session begins with the records of the one before it, under their old id. So a session whose records
        follow on those of another belongs to it.
        """
        ids = self.ids - {""}
        if len(ids) < 2 or self.source.session_hint in ids:
            return [self]
        follows: dict[str, str] = {}
        owner: dict[str | None, str] = {}
        ours: set[tuple[str, str | None]] = set()

        def first(session_id: str) -> str:
            while (before := follows.get(session_id)) is not None:
                follows[session_id] = follows.get(before, before)  # so that long chains are walked once
                session_id = before
            return session_id

        aside = Artifact(artifact_id="", source="", path="", format=None, sha256="", bytes=0)
        for _, link in records_of(self.source.data, aside, decoder(_Link).decode):
            if link.session_id not in ids:
                continue
            owner.setdefault(link.uuid, link.session_id)
            ours.add((link.session_id, link.uuid))
            for before in (link.parent_uuid, link.logical_parent_uuid):
                if before is None or (link.session_id, before) in ours:  # also where others have that id
                    continue
                other, this = first(owner.get(before, link.session_id)), first(link.session_id)
                if other != this:
                    follows[this] = other
        group_of = {session_id: first(session_id) for session_id in ids}
        if len(set(group_of.values())) < 2:
            return [self]
        held: dict[str, list[int]] = {}
        group = group_of[next(line.session_id for line in self.lines if line.session_id)]
        for n, line in enumerate(self.lines):
            group = group_of.get(line.session_id or "", group)
            held.setdefault(group, []).append(n)
        parts = []
        for places in held.values():
            part = copy.copy(self)
            part.numbers = [self.numbers[n] for n in places]
            part.lines = self.lines.part(places) if isinstance(self.lines, Records) else [self.lines[n] for n in places]
            part._begin()
            part._look(part.lines)
            part._name()
            part.agent_id = self.agent_id
            parts.append(part)
        return parts

    @cached_property
    def span(self) -> tuple[str, str]:
        """The first and the last time, as written."""
        stamps = [line.timestamp for line in self.lines if line.timestamp]
        return min(stamps, default=""), max(stamps, default="")


def thread_of(line: Line) -> str:
    """Return the thread of a record: the main one or a subagent's. Old versions name no subagent."""
    if not line.is_sidechain or not is_true(line.is_sidechain):
        return MAIN
    return line.agent_id or "sidechain"


# -- branches: a rewind leaves the old records in the file, and the next prompt follows on a record before them


class Branches(Struct, frozen=True):
    """Branches of a conversation that the person went back from, by ids of records."""

    left: frozenset[str | None] = frozenset()
    """All records of such branches."""
    rewinds: frozenset[str | None] = frozenset()
    """Prompts with which the person went on from an earlier place."""
    ends_rewound: bool = False
    """The person went back last of all, and said nothing more."""


def branches(lines: Sequence[Line], is_said: Callable[[Line], bool]) -> Branches:
    """Find what the person went back from. `is_said` returns whether a user record holds words of a person."""
    last = next((line for line in reversed(lines) if line.uuid or line.type == "last-prompt"), None)
    leaf = last.leaf_uuid if last is not None and not last.uuid else None
    if leaf is not None and last is not None and not is_true(last.explicit) and any(line.explicit for line in lines):
        leaf = None  # written again by a version that marks rewinds: it may lag behind
    if _is_straight(lines, leaf):
        return Branches()
    main = [line for line in lines if line.uuid and line.uuid != REDACTED and thread_of(line) == MAIN]
    place: dict[str | None, int] = {line.uuid: n for n, line in enumerate(main)}
    if len(place) < len(main):
        return Branches()  # several records have one id: which of them another follows on can't be told
    speaks: list[Speaker] = []
    parents: list[int] = []
    for n, line in enumerate(main):
        speaker: Speaker = ""
        if line.type in ("user", "assistant") and (line.type == "assistant" or line.message is not None):
            speaker = "agent" if not _is_user(line) else "person" if is_said(line) else "program"
        speaks.append(speaker)
        known = place.get(line.parent_uuid) if line.parent_uuid is not None else None
        if known is None and line.logical_parent_uuid is not None:
            known = place.get(line.logical_parent_uuid)
        # A lost parent is taken to be the record before: it leaves nothing. Only a prompt begins anew. What else has no
        # parent is what a compaction, a hook or a resumed session begins with.
        begins = line.parent_uuid is None and speaker == "person"
        parents.append(known if known not in (None, n) else ROOT if begins else n - 1)
    left, rewinds = left_branches(parents, speaks, place.get(leaf))
    gone, back = (frozenset(main[n].uuid for n in places) for places in (left, rewinds))
    return Branches(gone, back, ends_rewound=len(main) - 1 in left)


def _is_user(line: Line) -> bool:
    content = line.message.content if line.message is not None else None
    return line.type == "user" and not (isinstance(content, list) and any(b.type == "tool_result" for b in content))


def _is_straight(lines: Sequence[Line], leaf: str | None) -> bool:
    """Return whether each user record follows on one that came after the user record before. Most logs are so."""
    since: set[str | None] = set()
    begun = False
    for line in lines:
        if line.uuid is None:
            continue
        if line.type == "user" and _is_user(line) and thread_of(line) == MAIN:
            if begun and line.parent_uuid not in since:
                return False
            since.clear()
            begun = True
        since.add(line.uuid)
    return leaf is None or leaf in since


def content_key(line: Line, before: str, occurrences: Counter[str]) -> str | None:
    """Return a key of a record without an id, the same in every copy of its file. None if it may be read twice.

    The key is its content, its time or else the record before it, and its number among equal ones.
    """
    kind = line.type
    if kind in QUIET or kind in ABOUT_SESSION:
        return None
    key = f"{kind}|{line.session_id}|{line.timestamp or before}|{line.operation}|{line.content}"
    occurrences[key] += 1
    return f"{key}|{occurrences[key]}"
