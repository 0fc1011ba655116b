"""reasoning.*: announced and guessed phases, thinking."""

from __future__ import annotations

from tests.build import say, user, view
from tests.signals.ask import value

# reasoning.plan_steps_detected: plans in text, as to-dos, or shown for approval, before the first change.

PATH = "reasoning.plan_steps_detected"


def test_reading_the_plan_out_of_long_text_is_linear() -> None:
    for text in ("1. " * 20_000, "\n- " * 20_000, "\n" + " " * 60_000, "\n```" * 15_000, "\n- **" * 12_000):
        assert value(view(user("go"), say(text)), PATH) >= 0
