"""Tasks about one message of the person."""

from __future__ import annotations

from typing import Any, Literal, get_args

from msgspec import Struct

from agentsignals.labels.task import Case, Task, Verdict

Sentiment = Literal["POSITIVE", "NEUTRAL", "NEGATIVE"]
Pushback = Literal["correction", "rejection", "failure_report", "non_pushback"]
ReleasedPushback = Literal[
    "correction", "rejection", "failure_report", "pacing_complaint", "takeover", "requirement_change", "non_pushback"
]
Intent = Literal["create_new_code", "debug", "refactor", "understand", "connect", "test", "git", "other"]


class SentimentAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    label: Sentiment


class PushbackAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    label: Pushback


class ReleasedPushbackAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    label: ReleasedPushback


class IntentAnswer(Struct, forbid_unknown_fields=True):
    reason: str
    label: Intent


def _labelled(answer: Any, _: Case) -> Verdict:
    return Verdict(answer.label, answer.reason)


TURN_TASKS = (
    Task(
        name="sentiment",
        says="how a person's message feels about the agent's work (agent-traces)",
        level="turn",
        shows="message",
        answer=SentimentAnswer,
        read=_labelled,
        values=get_args(Sentiment),
    ),
    Task(
        name="pushback",
        says="whether and how a message objects to the work before it: the four classes of SWE-chat's paper",
        level="turn",
        shows="exchange",
        answer=PushbackAnswer,
        read=_labelled,
        values=get_args(Pushback),
        min_turns=2,
    ),
    Task(
        name="pushback_released",
        says="the same with the seven classes of SWE-chat's released column",
        level="turn",
        shows="exchange",
        answer=ReleasedPushbackAnswer,
        read=_labelled,
        values=get_args(ReleasedPushback),
        min_turns=2,
    ),
    Task(
        name="prompt_intent",
        says="what a message asks the agent for (SWE-chat)",
        level="turn",
        shows="message",
        answer=IntentAnswer,
        read=_labelled,
        values=get_args(Intent),
    ),
)
