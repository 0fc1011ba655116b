"""Which words in a Codex rollout are the person's (design/formats.md#codex: a `role=user` item need not be)."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Raw

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.codex.profile import PROFILE
from agentsignals.formats.codex.records import Message, UserMessage
from agentsignals.formats.tags import between
from agentsignals.model import EventKind, TurnKind

_INTERRUPTED = "<turn_aborted>"
_USER_SHELL = "<user_shell_command>"

_REQUEST = re.compile(r"^## My request for Codex:?\s*\n", re.MULTILINE)
_PLANS = ("PLEASE IMPLEMENT THIS PLAN:", "Implement the following plan:")
_PLAN_BUTTON = "Implement the plan."


class Reports:
    """Facts that are logged as an item and as an event, by some versions as one of the two only."""

    def __init__(self) -> None:
        self._reports: dict[str, Counter[str]] = {}

    def is_first(self, fact: str, source: str) -> bool:
        """Whether this report is news: the n-th of its source, and no other source has told of n."""
        counts = self._reports.setdefault(fact, Counter())
        reported = max(counts.values(), default=0)
        counts[source] += 1
        return counts[source] > reported


class UserRecords:
    """What stands in a user's place: prompts, commands run by hand, interruptions, and what the program puts there.

    `prompts` are the texts of all `user_message` events; None in a session that has none, whose items are all there is.
    In a subagent's session, which `is_person` denies, the words are those of the agent that started it.
    """

    def __init__(self, builder: SessionBuilder, is_person: bool, prompts: set[str] | None) -> None:
        self._builder = builder
        self._is_person = is_person
        self._prompts = prompts
        self._reports = Reports()
        self._running = False
        self._prompted = False

    def task_started(self) -> None:
        self._running, self._prompted = True, False

    def task_ended(self) -> None:
        self._running = False

    def event(self, message: UserMessage, at: int | None, model: str | None) -> None:
        """A `user_message` event: what the person sent."""
        if message.message.strip() or _has_any(message.images) or _has_any(message.local_images):
            self._turn(message.message, at, model)

    def item(self, message: Message, at: int | None, model: str | None) -> None:
        """A `role=user` item: context that the program puts there, and the person's words, which an event repeats."""
        content = message.content
        parts = [content] if isinstance(content, str) else [part.text for part in content or () if part.text]
        words = [text for text in parts if not self._injected(text, at)]
        text = "\n".join(words)
        if self._prompts is None:
            if words or (content and not parts):
                self._turn(text, at, model)
        elif words and text.strip() not in self._prompts:
            self._event("meta", text, at)

    def interrupted(self, source: str, text: str, at: int | None) -> None:
        if self._reports.is_first("interrupt", source):
            self._event("interrupt", text, at)

    def ran(self, source: str, command: str, at: int | None) -> None:
        """The person ran a command by hand (`!`)."""
        if self._reports.is_first("user_shell", source):
            self._event("user_shell", command, at)

    def _injected(self, text: str, at: int | None) -> bool:
        if PROFILE.machine_kind(text.lstrip()) is None:
            return False
        if text.startswith(_INTERRUPTED):
            self.interrupted("item", text, at)
        elif text.startswith(_USER_SHELL):
            command = between(text, "command")
            self.ran("item", text if command is None else command, at)
        else:
            self._event("meta", text, at)
        return True

    def _turn(self, text: str, at: int | None, model: str | None) -> None:
        words = request_of(text)
        if not self._is_person or PROFILE.machine_kind(words):
            self._event("meta", text, at)
            return
        queued = self._running and self._prompted
        self._builder.turn(turn_kind(words, queued) if words else "attachment", words, at, model)
        self._prompted = True

    def _event(self, kind: EventKind, text: str, at: int | None) -> None:
        self._builder.event(kind, text, at)


def _has_any(pictures: Raw) -> bool:
    """Whether a list, which may hold whole pictures, is more than `[]` or `null`."""
    return memoryview(pictures).nbytes > len("null")


def request_of(text: str) -> str:
    """The person's own words: without the editor context that the IDE extension puts before the request."""
    if text.lstrip().startswith("# "):
        match = _REQUEST.search(text)
        if match:
            return text[match.end() :].strip()
    return text.strip()


def turn_kind(words: str, queued: bool) -> TurnKind:
    """The kind of a turn; `queued`: the agent was at work on an earlier prompt when the words came."""
    if words.startswith(_PLANS) or words == _PLAN_BUTTON:
        return "plan_handoff"
    return "queued_prompt" if queued else "prompt"
