"""The reader that message-list formats share. It turns a list of messages with roles into a session.

A format declares its records as structs, and what each role means as a method `on_<role>`. The rest is here: decode
each message, choose the fullest of several copies, decide who wrote a prompt, match results with calls, record edits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import pairwise, takewhile
from typing import Any, ClassVar, Generic, Literal, TypeVar

from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder, record_arguments
from agentsignals.formats.documents import Messages, Snapshot, largest, messages_of, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.profile import Profile
from agentsignals.formats.records import ODD, decoder
from agentsignals.model import MAIN, RAN, Artifact, CallStatus, EventKind, Session, Step, ToolCall, TurnKind

D = TypeVar("D", bound="Document")
M = TypeVar("M")
B = TypeVar("B", bound="Block")


class Document(Struct, kw_only=True):
    """A file that holds one session."""

    id: str
    messages: list[Raw] = []


class Block(Struct, gc=False, kw_only=True):
    """A block of a message's content, as Anthropic's interface has it."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: "str | list[Block] | None" = None
    is_error: bool | None = None


def blocks_of(content: str | Sequence[B] | None, block: Callable[..., B]) -> Sequence[B]:
    """Return the blocks of a content that may be a text."""
    return [block(type="text", text=content)] if isinstance(content, str) else content or ()


class Conversation:
    """A session while it is read. `thread` is the thread of the next event."""

    profile: Profile
    is_subagent = False
    """An agent wrote the prompts, not a person."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.builder = SessionBuilder(session, self.profile)
        self.thread = MAIN
        self.touched: set[str] = set()
        """Files that the session read or changed. A write that failed does not count."""

    def event(self, kind: EventKind, text: str | None = "", at: int | None = None, step: Step | None = None) -> None:
        self.builder.event(kind, text, at, step, self.thread)

    def prompt(self, text: str, at: int | None = None, attached: bool = False, kind: TurnKind = "prompt") -> None:
        """Record a user message, by the rule of `SessionBuilder.prompt`."""
        self.builder.prompt(
            text, at, kind, by_person=not self.is_subagent and self.thread == MAIN, attached=attached,
            thread=self.thread,
        )  # fmt: skip

    def call(self, call_id: str, name: str, arguments: bytes | str, at: int | None, step: Step) -> ToolCall:
        return self.builder.call(call_id, name, arguments or "{}", self.profile.tool(name), at, step, step.thread)

    def result(  # noqa: PLR0913  (what a result can say)
        self, call_id: str, text: str, status: CallStatus, at: int | None = None, detail: Any = None,
        code: int | None = None, error: str | None = None,
    ) -> ToolCall | None:  # fmt: skip
        """Record the result of a call. `detail` is the record's own account of a file change; `edit` reads it."""
        call = self.builder.result(call_id, text, status, at, self.thread, code, error)
        if call is not None and call.status in RAN and call.class_ == "edit" and not self.edit(call, text, detail):
            record_arguments(self.builder, call)
        if call is not None and status == "ok" and call.path and call.class_ in ("edit", "read"):
            self.touched.add(call.path)
        return call

    def is_command(self, call_id: str) -> bool:
        calls = self.builder.calls_of(call_id)
        return bool(calls) and calls[0].command is not None

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        """Record a file change from the result. Return False if it shows none: then the call's arguments are read."""
        return False

    @contextmanager
    def aside(self, thread: str) -> Iterator[None]:
        """Events inside this block belong to `thread`, and unless that is the main one to no turn."""
        before, self.thread = self.thread, thread
        with self.builder.aside() if thread != MAIN else nullcontext():
            yield
        self.thread = before


# -- rewinds: logs that are trees keep what the person went back from

ROOT = -1
"""The place of no record. A record that begins a conversation follows on it."""
Speaker = Literal["person", "program", "agent", ""]
"""Source of a record's words. `program`: in the person's place. Empty: a record without words."""


def path_to_root(parents: Sequence[int], start: int) -> Iterator[int]:
    """Yield the places from `start` up to the root. A circle ends it."""
    met: set[int] = set()
    n = start
    while n != ROOT and n not in met:
        met.add(n)
        yield n
        n = parents[n]


def returns(parents: Sequence[int], is_prompt: Sequence[bool]) -> set[int]:
    """Return the prompts of a tree with which the person went back: they follow on another prompt than the last one.

    `parents` are the places of the records that each follows on.
    """
    found: set[int] = set()
    last: int | None = None
    follows: list[int] = []
    for n, parent in enumerate(parents):
        before = ROOT if not 0 <= parent < n else parent if is_prompt[parent] else follows[parent]
        follows.append(before)
        if is_prompt[n]:
            if last is not None and before != last:
                found.add(n)
            last = n
    return found


def left_branches(parents: Sequence[int], speaks: Sequence[Speaker], end: int | None) -> tuple[set[int], set[int]]:
    """Return the records on branches that the person went back from, and the prompts with which they did.

    `end` is where the conversation stands, if the log says it: else at the last record. Other branches are none of a
    person: results of parallel calls, hooks, attachments, retries, a compaction. On both sides of a rewind words of the
    person come first.
    """
    last = len(parents) - 1
    whole = list(path_to_root(parents, last))
    if end is None or end not in whole or not any(speaks[n] == "person" for n in whole[: whole.index(end)]):
        end = last
    live = list(path_to_root(parents, end))
    on_path = {n: at for at, n in enumerate(live)}
    prompts = [n for n, speaker in enumerate(speaks) if speaker == "person"]
    gone: set[int] = set()  # at first where the branches begin
    for prompt in (n for n in prompts if n not in on_path):
        side = list(takewhile(lambda n: n not in on_path, path_to_root(parents, prompt)))
        meets = parents[side[-1]]
        onward = live[: on_path[meets]] if meets in on_path else live
        first, other = (next((n for n in reversed(part) if speaks[n]), None) for part in (side, onward))
        goes_on = end != last if other is None else speaks[other] != "agent"
        if first is not None and speaks[first] != "agent" and goes_on:
            gone.add(first)
    is_left: dict[int, bool] = {ROOT: False}
    for place in range(len(parents)) if gone else ():
        for n in reversed(list(takewhile(lambda n: n not in is_left, path_to_root(parents, place)))):
            is_left[n] = n in gone or is_left.get(parents[n], False)
    gone = {n for n, left in is_left.items() if left}
    back = returns(parents, [speaker == "person" for speaker in speaks]) if gone else set()
    return gone, {at for before, at in pairwise(prompts) if at in back and (before in gone or at in gone)}


class DocumentReader(Conversation, Generic[D, M]):
    """Reads files that each hold one session as a document."""

    document_type: ClassVar[Any]
    message_type: ClassVar[Any]
    list_key: ClassVar[str] = "messages"
    noun: ClassVar[str] = "message"
    part_types: ClassVar[frozenset[str]] = frozenset()
    """Types of message parts that are read. Others are recorded as unknown."""

    def __init__(self, snapshot: Snapshot[tuple[D, Messages[M]]], extra: Any = None) -> None:
        self.extra = extra
        self.source = snapshot.source
        self.document, self.messages = snapshot.document
        agent = self.profile.agent
        super().__init__(snapshot.source.session(snapshot.session_id, snapshot.source.artifact.format or agent, agent))

    @classmethod
    def read(cls, inputs: list[Input], extra: Any = None) -> Reading:
        """Read a group of files. Of several copies of a session the longest counts. `extra`: facts from other files."""
        built = [(snapshot, cls(snapshot, extra).build()) for snapshot in largest(cls.snapshots(inputs))]
        # Where the list of messages was no list, nothing is left of the session.
        return Reading(
            [s for held, s in built if s.events or held.messages or ODD not in held.source.artifact.skipped_reasons]
        )

    @classmethod
    def snapshots(cls, inputs: Iterable[Input]) -> Iterator[Snapshot[tuple[D, Messages[M]]]]:
        for source in inputs:
            read = read_document(source, partial(cls._decode, artifact=source.artifact), cls.list_key)
            if read is not None:
                document, messages = read
                tally(source.artifact, cls.noun, (None if m is None else cls.role(m) for m in messages))
                session_id = document.id or source.session_hint or source.artifact.artifact_id
                yield Snapshot(source, read, session_id, len(messages))

    @classmethod
    def _decode(cls, data: memoryview | bytes, artifact: Artifact) -> tuple[D, Messages[M]]:
        """Decode each message by itself, so that a malformed one costs only itself."""
        document = decoder(cls.document_type).decode(data)
        return document, messages_of(data, document.messages, lambda raw, _: cls.message(raw), artifact)

    @classmethod
    def message(cls, raw: memoryview | bytes) -> M:
        message: M = decoder(cls.message_type).decode(raw)
        return message

    def build(self) -> Session:
        self.begin()
        for number, message in enumerate(self.messages, 1):
            self.builder.line = number
            if message is not None:
                self.take(message)
        self.end()
        return self.builder.finish()

    def begin(self) -> None:
        """Read facts about the session from the document."""

    def end(self) -> None:
        """Read facts that follow the messages, such as the total cost."""

    def take(self, message: M) -> None:
        role, at = self.role(message), self.at(message)
        on_role = getattr(self, f"on_{role}", None)
        if on_role is not None:
            on_role(message, at)
        else:
            self.event("unknown", role or "message without a role", at)
        self.builder.unread(self.types(message), self.part_types, at, self.thread)

    @staticmethod
    def role(message: Any) -> str:
        return str(message.role)

    def at(self, message: M) -> int | None:
        return None

    def types(self, message: Any) -> Iterable[str]:
        """Types of the parts of a message. None by default for messages that are one text."""
        return [part.type for part in getattr(message, "parts", ())]
