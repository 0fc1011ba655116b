"""`verification.outcome`: the rungs of the ladder, and that a known outcome never rests on the reward's value."""

from __future__ import annotations

from typing import Any

import pytest

from tests.signals.ask import detail, value
from tests.signals.attempts import graded, patched, unseen

PATCH: dict[str, Any] = {"patch": [patched("a.py")]}


@pytest.mark.parametrize(
    ("facts", "rung", "reason", "inferred"),
    [
        ({"reward": 1.0}, "solved", "reward", False),
        ({"reward": 0.0}, "failed", "tests", False),
        ({"reward": 0.5}, "failed", "tests", False),
        ({"reward": float("nan")}, "not_judged", "no verdict", False),
        ({"reward": 0.0, "patch": []}, "failed", "empty_patch", False),
        ({"patch": [], "ending": "finished"}, "failed", "empty_patch", True),
        ({"patch": [], "reward": 1.0}, "solved", "reward", False),
        ({"ending": "time", "reward": 0.0}, "failed", "time", False),
        ({"ending": "time", "reward": 1.0}, "solved", "reward", False),
        ({"ending": "time", **PATCH}, "failed", "time", True),
        ({"timed_out": True}, "failed", "time", True),
        ({"ending": "budget"}, "failed", "budget", True),
        ({**PATCH, "ending": "finished"}, "not_judged", "no verdict", False),
        ({**PATCH, "verification": graded(fixed=2, kept=1)}, "solved", "tests", False),
        ({**PATCH, "verification": graded(unfixed=2)}, "failed", "tests", False),
        ({**PATCH, "verification": graded(patch_applies=False), "reward": 0.0}, "failed", "patch_not_applied", False),
        ({"verification": graded(status="crashed"), "reward": 0.0}, "not_judged", "verifier crashed", False),
        ({"verification": graded(status="timed_out"), "reward": 1.0}, "not_judged", "verifier timed_out", False),
        ({"ending": "verifier"}, "not_judged", "verifier failed", False),
        ({"ending": "infrastructure", "exception": "RateLimit", "reward": 0.0}, "infrastructure", "RateLimit", False),
        ({"ending": "infrastructure", "exception": "RateLimit", "reward": 1.0}, "infrastructure", "RateLimit", False),
        ({"ending": "infrastructure", "exit_status": "exit_api", "patch": []}, "infrastructure", "exit_api", False),
    ],
)
def test_each_rung(facts: dict[str, Any], rung: str, reason: str, inferred: bool) -> None:
    view, path = unseen(**facts), "verification.outcome"
    noted = detail(view, path)
    assert (value(view, path), noted["reason"], noted.get("inferred", False)) == (rung, reason, inferred)
