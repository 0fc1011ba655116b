"""Records of Inspect logs as structs that hold only the fields that are read, and samples kept in chunks."""

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.bounds import count
from agentsignals.formats.records import (
    MAX_DOCUMENT_BYTES,
    UNREADABLE,
    as_list,
    decoded,
    decoder,
    document,
    inside,
    skip,
    string,
)
from agentsignals.formats.zip_members import Contents, Member, MemberError
from agentsignals.model import Artifact

MAX_ATTACHED_CHARS = 1024 * 1024 * 1024
"""Limit of a sample's attachments once they are inserted. A line can name a long one a thousand times."""
_MARK = "://"
_REFERENCE = re.compile(r"(?:attachment|\btc)://([0-9a-f]{32}|\d{1,9}(?![0-9a-f]))")
"""Reference to a long text: `tc` in the first logs of 2024, a number in chunked samples."""
MISSING = Raw(b"null")
"""Stands in a pool for a message that could not be read, so that those behind it keep their number."""


class Part(Struct, gc=False, kw_only=True):
    """A piece of a message: text, reasoning, a tool that the provider ran itself."""

    type: str | None = None
    text: str | None = None
    reasoning: str | None = None
    summary: str | None = None
    redacted: bool = False


class Failure(Struct, gc=False):
    """`type` of a tool's error, or the text of a sample's."""

    type: str | None = None
    message: str | None = None
    traceback: str | None = None
    events: list[Raw] | None = None
    """Of a run of the sample that was thrown away."""


class Call(Struct, gc=False):
    id: str | None = None
    function: str | None = None
    arguments: Raw = Raw()


class Message(Struct, gc=False, kw_only=True):
    role: str
    content: str | list[Part] | None = None
    id: str | None = None
    source: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    error: Failure | None = None


class Usage(Struct, gc=False, kw_only=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_cache_read: int | None = None
    input_tokens_cache_write: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None

    @property
    def cached(self) -> int:
        """Input read from a cache or written to one."""
        return (count(self.input_tokens_cache_read) or 0) + (count(self.input_tokens_cache_write) or 0)

    @property
    def uncached(self) -> int | None:
        """Input that was not cached. Older logs of some providers count cached tokens as input: the total tells."""
        given = count(self.input_tokens)
        return max(given - self.cached, 0) if given is not None and self._parts[0] else given

    @property
    def output(self) -> int | None:
        """Output with reasoning. Older logs of some providers count reasoning in the total only."""
        out = count(self.output_tokens)
        return out + (count(self.reasoning_tokens) or 0) if out is not None and self._parts[1] else out

    @property
    def _parts(self) -> tuple[bool, bool]:
        """Whether the input contains cached tokens, and whether the total has reasoning that the output lacks."""
        given, out = count(self.input_tokens) or 0, count(self.output_tokens) or 0
        reasoned = count(self.reasoning_tokens) or 0
        for within, apart in ((False, False), (True, False), (False, True), (True, True)):
            if self.total_tokens == given + out + (0 if within else self.cached) + (reasoned if apart else 0):
                return within, apart
        return False, False


class Choice(Struct, gc=False):
    message: Message | None = None
    stop_reason: str | None = None


class Output(Struct, gc=False):
    choices: list[Choice] = []
    usage: Usage | None = None
    fallback: dict[str, Any] | None = None
    """The model that answered in place of the one that was asked."""


class Event(Struct, gc=False, kw_only=True):
    """Any event; each kind fills some of these."""

    event: str
    timestamp: str | None = None
    completed: Any = None
    span_id: str | None = None
    id: str | None = None
    parent_id: str | None = None
    type: str | None = None
    name: str | None = None
    action: str | None = None
    model: str | None = None
    cache: str | None = None
    input: Raw = Raw()
    input_refs: Raw = Raw()
    output: Raw = Raw()
    error: Raw = Raw()
    function: str | None = None
    arguments: Raw = Raw()
    result: Raw = Raw()
    events: list[Raw] | None = None
    failed: bool | None = None
    message: Raw = Raw()
    data: Raw = Raw()


class Sample(Struct, kw_only=True):
    id: Any = None
    epoch: int = 1
    messages: list[Raw] = []
    scores: dict[str, dict[str, Any]] | None = None
    """`value` and `explanation` of each."""
    events: list[Raw] = []
    model_usage: dict[str, Usage] | None = None
    started_at: str | None = None
    completed_at: str | None = None
    total_time: float | None = None
    working_time: float | None = None
    uuid: str | None = None
    error: Failure | None = None
    error_retries: list[Failure] | None = None
    limit: dict[str, str | float | None] | None = None
    invalidation: Any = None
    """Set by a person: the sample is no result any more."""
    attachments: dict[str, str] = {}
    message_pool: list[Raw] = []
    message_refs: Any = None
    """Spans of the pool that form the conversation of a chunked sample."""
    events_data: dict[str, Raw] | None = None
    """Place of the message pool in logs of 2026."""

    @property
    def pool(self) -> list[Raw]:
        """The messages that `input_refs` of model events point into."""
        return self.message_pool or decoded((self.events_data or {}).get("messages"), list[Raw]) or []


class Spec(Struct, kw_only=True):
    """The evaluation that was run."""

    task: str = ""
    task_id: str | None = None
    run_id: str | None = None
    model: str | None = None
    model_roles: dict[str, Any] | None = None
    task_version: Any = None
    solver: str | None = None
    solver_args: Any = None
    dataset: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    model_generate_config: dict[str, Any] | None = None
    task_args: dict[str, Any] | None = None
    packages: Any = None
    sandbox: Any = None
    metadata: Any = None
    headline_metric: Any = None


class Header(Struct):
    """Facts of a log about all its samples."""

    eval: Spec
    status: str | None = None
    plan: dict[str, Any] | None = None
    results: Any = None

    @property
    def headline(self) -> str | None:
        """The score that the log declares as its result, where it has several."""
        for declared in (inside(self.results, "headline"), self.eval.headline_metric):
            for name in ("score", "scorer"):
                if (score := string(inside(declared, name))) is not None:
                    return score
        return None

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [step for step in as_list(inside(self.plan, "steps")) if isinstance(step, dict)]

    @property
    def agent(self) -> str | None:
        """The solver that was asked for, else the last solver of the plan."""
        return self.eval.solver or next(filter(None, (string(s.get("solver")) for s in reversed(self.steps))), None)


class Document(Header):
    """A log that is one document."""

    samples: list[Raw] | None = None


def spanned(spans: object, pool: list[Raw]) -> list[Raw]:
    """Return the messages of a pool that spans `[start, end]` name, without the end."""
    messages: list[Raw] = []
    for span in as_list(spans):
        if isinstance(span, list) and len(span) == 2 and all(type(n) is int and n >= 0 for n in span):
            messages += [m for m in pool[span[0] : span[1]] if m != MISSING]
            if len(messages) > len(pool) + 1:
                break  # no conversation repeats its own messages
    return messages


def failure_of(raw: Raw) -> Failure | None:
    """Return an error, which is an object or a text."""
    failure = decoded(raw, Failure | str)
    if failure is None and bytes(raw)[:1] == b"{":
        failure = bytes(raw).decode("utf-8", "replace")
    return Failure(None, failure) if isinstance(failure, str) else failure


class Attachments:
    """Long texts that events only name."""

    def __init__(self, contents: dict[str, str]) -> None:
        self._contents = contents
        self._left = MAX_ATTACHED_CHARS

    def text(self, text: str) -> str:
        """Insert attachments into a text. A name that is not known stays."""
        return _REFERENCE.sub(self._named, text) if _MARK in text else text

    def json(self, raw: bytes) -> str:
        """Insert attachments into a JSON value, given and returned as text."""
        text = raw.decode("utf-8", "replace")
        if _MARK not in text or not _REFERENCE.search(text):
            return text
        try:
            return json.dumps(self._in(decoded(raw, Any)), ensure_ascii=False)
        except RecursionError:
            return text

    def _named(self, match: re.Match[str]) -> str:
        content = self._contents.get(match.group(1), match.group())
        self._left -= len(content)
        return content if self._left >= 0 else match.group()

    def _in(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._in(v) for v in value]
        return {k: self._in(v) for k, v in value.items()} if isinstance(value, dict) else value


# A chunked sample (design/formats.md#inspect) has a shell, and lists of messages, events and attachments whose members
# are named by the number of their first item.

MEMBER = re.compile(r"(samples/[^\x00]+_epoch_\d{1,9})/(?:sample|(messages|events|attachments)/(\d{1,9}))\.json\Z")
"""Names of the members of a chunked sample. Its shell has no list's name."""
_GAP_MOST = 100_000
"""Messages that may be missing before a chunk: its number is only a claim."""


def by_sample(members: Iterable[Member]) -> dict[str, list[Member]]:
    """Return the members of each chunked sample that has a shell, in the order of the archive."""
    chunks: dict[str, list[Member]] = {}
    shells = set()
    for member in members:
        match = MEMBER.match(member.name)
        if match is not None:
            chunks.setdefault(match[1], []).append(member)
            if match[2] is None:
                shells.add(match[1])
    return {place: chunks[place] for place in chunks if place in shells}


def sample_of(contents: Contents, members: list[Member], artifact: Artifact) -> Sample | None:
    """Put a chunked sample together, up to the size of a document. None if its shell can't be read.

    A chunk that can't be read costs only what it holds: later items keep their numbers.
    """
    left = MAX_DOCUMENT_BYTES
    placed: list[tuple[str, int, bytes]] = []
    for member in members:
        # The list of a chunk, empty of the shell, and the number of its first item.
        match = MEMBER.match(member.name)
        name, start = (match[2] or "", int(match[3] or 0)) if match is not None else ("", 0)
        try:
            data = contents.of(member)
        except MemberError as problem:
            lost(artifact, str(problem))
            continue
        left -= len(data)
        if left < 0:
            lost(artifact, "document_too_large")
            break
        placed.append((name, start, data))
    placed.sort(key=lambda chunk: chunk[:2])
    if not placed or placed[0][0]:
        return None
    sample: Sample | None = document(placed[0][2], artifact, decoder(Sample).decode)
    if sample is None:
        return None
    for name, start, data in placed[1:]:
        try:
            if name == "attachments":
                sample.attachments |= {str(n): text for n, text in enumerate(decoder(list[str]).decode(data), start)}
            elif name == "events":
                sample.events += decoder(list[Raw]).decode(data)
            else:
                items = decoder(list[Raw]).decode(data)
                missing = start - len(sample.message_pool)
                if not 0 <= missing <= _GAP_MOST:
                    raise msgspec.ValidationError(f"A chunk of messages begins at {start}.")
                sample.message_pool += [MISSING] * missing + items
        except UNREADABLE:
            lost(artifact, "bad_shape")
    sample.messages = spanned(sample.message_refs, sample.message_pool)
    return sample


def lost(artifact: Artifact, reason: str) -> None:
    """Count a member or chunk that can't be used."""
    artifact.records += 1
    skip(artifact, reason)
