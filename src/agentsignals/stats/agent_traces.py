"""The measures of agent-traces: sentiment counts of a conversation, and ten behavioural metrics of a set of sessions.

Counts are parts `(k, n)`, k of n, so that callers can add them up and see how conversations differ. Definitions:
design/signals.md#sentiment-by-turn. Metrics are computed from the signal corpus.metric_inputs of each session.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentsignals.model import RULES, UNSPOKEN, labeller_rank
from agentsignals.stats.intervals import median

TASK = "sentiment"
POSITIVE, NEUTRAL, NEGATIVE = VALUES = ("POSITIVE", "NEUTRAL", "NEGATIVE")
FAILURE_PATTERNS = {
    (NEGATIVE, NEUTRAL): "profanity and technical complaints",
    (POSITIVE, NEUTRAL): "politeness around orders",
    (NEUTRAL, NEGATIVE): "quiet frustration",
    (NEUTRAL, POSITIVE): "understated praise",
}
"""Typical errors of an off-the-shelf sentiment classifier (first label) against a prompt for this kind of text
(second), named by agent-traces."""
UNJUDGED = UNSPOKEN | {"slash_command"}
"""Kinds of turns without a person's words, and so without a sentiment."""
TURNS_APART = 10
LOW_N = 30
"""Groups with fewer labelled messages are marked as small (design/signals.md#sentiment-by-turn)."""
PLATEAU = 5
"""Turn from which the rate is one figure. A session must reach it to be in the cohort."""

Part = tuple[int, int]


class Message(Struct, gc=False, frozen=True):
    """A human message that can be labelled. `turn` counts from 1; `value` is None without a valid label."""

    turn: int
    value: str | None
    model: str | None = None
    """Model it was addressed to: of the last answer before it, or of the first answer for the first message."""


class Conversation(Struct, frozen=True):
    """The messages of one session in order, with one labeller's labels."""

    session_id: str
    messages: list[Message]

    @property
    def labelled(self) -> list[Message]:
        return [m for m in self.messages if m.value is not None]

    @property
    def opening(self) -> str | None:
        return next((m.value for m in self.messages if m.turn == 1), None)


def label(text: str | None) -> str | None:
    """Return the sentiment a labeller's answer stands for, in any case, or None."""
    value = (text or "").strip().upper()
    return value if value in VALUES else None


def total(parts: Iterable[Part]) -> Part:
    k = n = 0
    for part, of in parts:
        k, n = k + part, n + of
    return k, n


def share(conversation: Conversation, value: str) -> Part:
    """Count labelled messages with that label."""
    labelled = conversation.labelled
    return sum(m.value == value for m in labelled), len(labelled)


def pure_neutral(conversation: Conversation) -> Part | None:
    """Count the conversation as purely neutral: (1, 1) or (0, 1). None if unlabelled messages leave it open."""
    values = {m.value for m in conversation.messages}
    charged = POSITIVE in values or NEGATIVE in values
    if None in values and NEUTRAL in values and not charged:
        return None
    return (0, 1) if charged else (1, 1) if NEUTRAL in values else (0, 0)


def negative_between(conversation: Conversation, first: int, last: float, *, cohort: bool = False) -> Part:
    """Count NEGATIVE messages from turn `first` to `last`. `cohort`: only sessions that reach the plateau count."""
    if cohort and not reaches(conversation, PLATEAU):
        return 0, 0
    values = [m.value for m in conversation.labelled if first <= m.turn <= last]
    return values.count(NEGATIVE), len(values)


def reaches(conversation: Conversation, turn: int) -> bool:
    return bool(conversation.messages) and conversation.messages[-1].turn >= turn


def bands() -> list[tuple[int, float]]:
    """First and last turn of each class of the curve: ten single turns, then the rest."""
    return [(t, t) for t in range(1, TURNS_APART + 1)] + [(TURNS_APART + 1, float("inf"))]


def recovery(conversation: Conversation, opening: str, *, several: bool = False) -> Part:
    """Count sessions with that opening and a later POSITIVE message. `several`: only those with a later message."""
    if conversation.opening != opening or (several and not reaches(conversation, 2)):
        return 0, 0
    return int(any(m.value == POSITIVE for m in conversation.messages if m.turn > 1)), 1


def after_negative(conversation: Conversation, value: str) -> Part:
    """Count messages with that label after the first NEGATIVE one, unless that opens the session."""
    first = next((m.turn for m in conversation.messages if m.value == NEGATIVE), 1)
    values = [m.value for m in conversation.labelled if m.turn > first] if first > 1 else []
    return values.count(value), len(values)


def by_model(conversation: Conversation) -> dict[str, Part]:
    """Count NEGATIVE messages by the model they were addressed to."""
    counts = Counter((m.model, m.value == NEGATIVE) for m in conversation.labelled if m.model)
    return {model: (counts[model, True], counts[model, True] + counts[model, False]) for model, _ in counts if model}


def main_labeller(labellers: Mapping[str, tuple[int, int]]) -> str | None:
    """Return the labeller whose labels count: most labels, then latest, then by name; rules and classifiers that were
    made for other texts only without others.

    `labellers`: number of labels and time of the last (microseconds, 0 if unknown) by name.
    """
    return max(
        labellers,
        key=lambda name: (min(labeller_rank(name), labeller_rank(RULES) + 1), *labellers[name], name),
        default=None,
    )


# -- metrics of a set of sessions --------------------------------------------------------------------------------------


Figures = dict[str, Any]
"""A session's inputs of each metric, None if missing; or those of several sessions, as `pooled` returns them."""
FEWEST_SESSIONS = 5
"""Smaller sets say little beyond their own sessions (this project's choice)."""
FEWEST_SETS = 3
NORMAL = 1.4826
"""Scales the median absolute deviation of a normal distribution to its standard deviation."""


def by_metric(sets: Sequence[Sequence[Figures]], everything: Sequence[Figures]) -> dict[str, list[float | None]]:
    """Return each metric for each set, None where a set has no value.

    `neg_pct_turn5` uses the labeller with most labels in `everything`. `first_message_pattern` is the share of first
    messages of another kind than the commonest.
    """
    labelled: dict[str, tuple[int, int]] = {}
    for session in everything:
        for name, (n, at, _, _) in session["felt"].items():
            labels, last = labelled.get(name, (0, 0))
            labelled[name] = labels + n, max(last, at)
    labeller = main_labeller(labelled)
    together = [pooled(sessions) for sessions in sets]
    mode = commonest_pattern(together)
    values: dict[str, list[float | None]] = {"neg_pct_turn5": []}
    for figures in together:
        *_, negative, of = figures["felt"].get(labeller, (0, 0))
        values["neg_pct_turn5"].append(negative / of if of else None)
    values |= {metric: [value(figures) for figures in together] for metric, value in _METRICS.items()}
    counts = [(figures["pattern"].get(mode, 0), sum(figures["pattern"].values())) for figures in together]
    values["first_message_pattern"] = [1 - k / n if n else None for k, n in counts]
    return values


def pooled(sessions: Sequence[Figures]) -> Figures:
    """Combine the metric inputs of sessions, or of sets of them."""
    felt: dict[str, list[int]] = {}
    tools: defaultdict[str, int] = defaultdict(int)
    patterns: Counter[str] = Counter()
    reads: list[tuple[float, int]] = []
    for session in sessions:
        for tool, times in session["tools"].items():  # three of a session: a Counter takes thrice as long
            tools[tool] += times
        pattern = session["pattern"]
        if pattern and isinstance(pattern, str):
            patterns[pattern] += 1
        elif pattern:
            patterns.update(pattern)
        if isinstance(session["reads"], list):
            reads += session["reads"]
        elif session["reads"] is not None and session["edits"]:
            reads.append((session["reads"], session["edits"]))
        for name, (n, at, negative, of) in session["felt"].items():
            before = felt.get(name, (0, 0, 0, 0))
            felt[name] = [before[0] + n, max(before[1], at), before[2] + negative, before[3] + of]
    single: dict[str, list[float]] = {name: [] for name in _SINGLE}
    for session in sessions:
        for name, numbers in single.items():
            value = session[name]
            if isinstance(value, list):
                numbers.extend(value)
            elif value is not None:
                numbers.append(value)
    return {
        "sessions": sum([s.get("sessions", 1) for s in sessions]),
        "tools": Counter(tools),
        "pattern": patterns,
        "reads": reads,
        "felt": felt,
        **single,
        **{name: [sum([s[name][at] for s in sessions]) for at in (0, 1)] for name in _SUMS},
    }


_SINGLE = ("autonomy", "events", "cost")
_SUMS = ("errors", "tokens", "short")


def commonest_pattern(sets: Sequence[Figures]) -> str | None:
    """Return the commonest kind of first message of pooled sets, the first by name if equal."""
    patterns: Counter[str] = Counter()
    for figures in sets:
        patterns.update(figures["pattern"])
    return min(patterns, key=lambda p: (-patterns[p], p), default=None)


def spread(values: Sequence[float]) -> tuple[float, float | None] | None:
    """Return the coefficient of variation and its robust counterpart (scaled MAD over median). None for under three
    values, or around 0."""
    mean = math.fsum(values) / len(values) if values else 0.0
    if len(values) < FEWEST_SETS or not mean:
        return None
    middle = median(values)
    deviation = median([abs(v - middle) for v in values]) if middle else None
    return math.sqrt(math.fsum([(v - mean) ** 2 for v in values]) / len(values)) / abs(mean), (
        NORMAL * deviation / abs(middle) if middle and deviation is not None else None
    )


def _entropy(counts: Iterable[int]) -> float | None:
    total = sum(counts := list(counts))
    return -math.fsum([n / total * math.log2(n / total) for n in counts]) if total else None


def _share(part: float, of: float) -> float | None:
    return part / of if of else None


_METRICS: dict[str, Callable[[Figures], float | None]] = {
    "autonomy_ratio": lambda figures: median(figures["autonomy"]),
    "error_rate": lambda figures: _share(*figures["errors"]),
    "tool_mix_entropy": lambda figures: _entropy(figures["tools"].values()),
    "median_session_length_events": lambda figures: median(figures["events"]),
    # Sessions are weighted by their edit calls.
    "read_before_edit_rate": lambda figures: _share(
        math.fsum([share * n for share, n in figures["reads"]]), sum([n for _, n in figures["reads"]])
    ),
    "cost_per_session": lambda figures: _share(math.fsum(figures["cost"]), len(figures["cost"])),
    "output_input_token_ratio": lambda figures: _share(*figures["tokens"]),
    "share_messages_le_20_chars": lambda figures: _share(*figures["short"]),
}
"""Metrics but the two whose labeller or pattern depends on all sets; tools are those of all sessions together."""
