"""The ten behavioural metrics of agent-traces, of a set of sessions: a data set, the sessions of an agent or of a
model.

Each is told from the sessions' parts in it (the signal corpus.metric_inputs), so that whoever adds up can also divide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from agentsignals.stats.quantiles import median
from agentsignals.stats.sentiment_counts import chosen

Figures = dict[str, Any]
"""A session's part in each metric; None where it has none."""
FEWEST_SESSIONS = 5
"""A set of fewer sessions says more about those than about itself (this project's choice)."""
FEWEST_SETS = 3
NORMAL = 1.4826
"""Makes the median absolute deviation of a normal distribution its standard deviation."""


def by_metric(sets: Sequence[Sequence[Figures]], everything: Sequence[Figures]) -> dict[str, list[float | None]]:
    """Each metric of each set; None where a set has no such value.

    `neg_pct_turn5` is of the labeller with most labels in `everything`; `first_message_pattern` is the share of first
    messages of another kind than the commonest of the sets.
    """
    labeller = _labeller(everything)
    mode = commonest_pattern([session for sessions in sets for session in sessions])
    values = {"neg_pct_turn5": [_fifth(list(sessions), labeller) for sessions in sets]}
    values |= {metric: [value(list(sessions)) for sessions in sets] for metric, value in _METRICS.items()}
    values["first_message_pattern"] = [_other_patterns(list(sessions), mode) for sessions in sets]
    return values


def commonest_pattern(sessions: Sequence[Figures]) -> str | None:
    """The commonest kind of first message; of equally common ones the first by name."""
    patterns = Counter([s["pattern"] for s in sessions if s["pattern"]])
    return min(patterns, key=lambda p: (-patterns[p], p), default=None)


def spread(values: Sequence[float]) -> tuple[float, float | None] | None:
    """How much values differ: the standard deviation as a share of their mean, and its robust twin, the scaled median
    absolute deviation as a share of their median. None of fewer than three values, or around 0."""
    mean = math.fsum(values) / len(values) if values else 0.0
    if len(values) < FEWEST_SETS or not mean:
        return None
    return _deviation(values, mean) / abs(mean), _robust(values)


def _deviation(values: Sequence[float], mean: float) -> float:
    return math.sqrt(math.fsum([(v - mean) ** 2 for v in values]) / len(values))


def _robust(values: Sequence[float]) -> float | None:
    middle = median(values)
    deviation = median([abs(v - middle) for v in values]) if middle else None
    return NORMAL * deviation / abs(middle) if middle and deviation is not None else None


def _typical(name: str) -> Callable[[list[Figures]], float | None]:
    def value(sessions: list[Figures]) -> float | None:
        return median([s[name] for s in sessions if s[name] is not None])

    return value


def _pooled(name: str) -> Callable[[list[Figures]], float | None]:
    def value(sessions: list[Figures]) -> float | None:
        of = sum([s[name][1] for s in sessions])
        return sum([s[name][0] for s in sessions]) / of if of else None

    return value


def _entropy(sessions: list[Figures]) -> float | None:
    """Bits, of the tools of all sessions together."""
    tools: Counter[str] = Counter()
    for session in sessions:
        tools.update(session["tools"])
    total = sum(tools.values())
    return -math.fsum([n / total * math.log2(n / total) for n in tools.values()]) if total else None


def _reads(sessions: list[Figures]) -> float | None:
    """Sessions weigh by their edit calls."""
    edited = [s for s in sessions if s["reads"] is not None and s["edits"]]
    edits = sum([s["edits"] for s in edited])
    return math.fsum([s["reads"] * s["edits"] for s in edited]) / edits if edits else None


def _cost(sessions: list[Figures]) -> float | None:
    costs = [s["cost"] for s in sessions if s["cost"] is not None]
    return math.fsum(costs) / len(costs) if costs else None


def _labeller(sessions: Sequence[Figures]) -> str | None:
    labelled: dict[str, tuple[int, int]] = {}
    for session in sessions:
        for name, (n, at, _, _) in session["felt"].items():
            labels, last = labelled.get(name, (0, 0))
            labelled[name] = labels + n, max(last, at)
    return chosen(labelled)


def _fifth(sessions: list[Figures], labeller: str | None) -> float | None:
    """The NEGATIVE share of the messages at turn 5, by one labeller."""
    labelled = [s["felt"][labeller] for s in sessions if labeller in s["felt"]]
    of = sum([n for *_, n in labelled])
    return sum([negative for _, _, negative, _ in labelled]) / of if of else None


def _other_patterns(sessions: list[Figures], mode: str | None) -> float | None:
    """The share of first messages that are not of the commonest kind of all."""
    patterns = [s["pattern"] for s in sessions if s["pattern"]]
    return 1 - patterns.count(mode) / len(patterns) if patterns else None


_METRICS: dict[str, Callable[[list[Figures]], float | None]] = {
    "autonomy_ratio": _typical("autonomy"),
    "error_rate": _pooled("errors"),
    "tool_mix_entropy": _entropy,
    "median_session_length_events": _typical("events"),
    "read_before_edit_rate": _reads,
    "cost_per_session": _cost,
    "output_input_token_ratio": _pooled("tokens"),
    "share_messages_le_20_chars": _pooled("short"),
}
