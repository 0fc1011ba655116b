"""How a model call was served: what it is charged by, beside its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import REDACTED
from agentsignals.model import SESSION_TOTAL, Step

_USUAL = frozenset(("", "standard", "default", "auto", "global", "not_available", REDACTED))
"""Speeds, service tiers and places that cost what the price list says."""


def special(name: object) -> str | None:
    """A way of being served other than the usual one."""
    return name if isinstance(name, str) and name not in _USUAL else None


# Totals that a headless run prints at its end, where its single model calls say less or nothing.
#
# What the calls do not account for becomes one closing step with `stop_reason` "session_total", so that the
# session's sums are right and no call is given a context size it did not have (as for Copilot CLI's totals at
# shutdown).


class Used(NamedTuple):
    """Tokens; input counts no cached ones, output includes reasoning. None where nothing is said of a kind."""

    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    reasoning: int | None = 0

    def since(self, before: Used) -> Used:
        """What was used since an earlier total. A figure that has fallen: counting began anew, and this is all."""
        grown = Used(*(None if now is None else now - (then or 0) for now, then in zip(self, before, strict=True)))
        return self if any(n is not None and n < 0 for n in grown) else grown

    def without(self, counted: Used) -> Used:
        """What is left beside what was counted elsewhere; never less than nothing."""
        pairs = zip(self, counted, strict=True)
        return Used(*(None if now is None else max(now - (then or 0), 0) for now, then in pairs))


def of_steps(steps: Iterable[Step]) -> Used:
    """What model calls say they used, together."""
    figures = [
        (s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens) for s in steps
    ]
    return Used(*(sum(f or 0 for f in column) for column in zip(*figures, strict=True))) if figures else Used()


def charge(step: Step, used: Used) -> None:
    """The figures as a model call's; caches and reasoning of nothing stay unsaid."""
    step.input_tokens, step.output_tokens = used.input, used.output
    step.cache_read_tokens = used.cache_read or step.cache_read_tokens
    step.cache_write_tokens = used.cache_write or step.cache_write_tokens
    step.reasoning_tokens = used.reasoning or step.reasoning_tokens


def close(builder: SessionBuilder, model: str | None, used: Used, at: int | None = None) -> Step:
    """The closing step that holds what no call of the run accounts for."""
    step = builder.step(None, model, at)
    step.stop_reason = SESSION_TOTAL
    charge(step, used)
    builder.event("meta", f"session totals of {model or 'the model'}", at, step)
    return step
