"""Every value tells what it rests on, zero and empty ones too."""

from __future__ import annotations

import pytest

from agentsignals.model import Absent
from agentsignals.signals.catalog import explain, measure
from agentsignals.views.session import SessionView
from tests.build import call, say, think, user, view

GROUPS = ("behavior.", "tokens.", "reasoning.", "infra.", "anticipation.", "corpus.")
USAGE = {"input_tokens": 5, "output_tokens": 7, "cache_read_tokens": 90, "cache_write_tokens": 9}


@pytest.mark.parametrize(
    "one",
    [
        view(user("go"), say("done")),
        view(user("go"), call("Read", path="a.py"), say("done", **USAGE)),
        view(
            user("go"),
            think("hm"),
            call("Read", path="a.py"),
            call("Edit", path="a.py"),
            say("done", **USAGE, cost_usd=1),
        ),
    ],
    ids=["talk", "read", "edit"],
)
def test_no_value_stands_without_evidence_and_explaining_repeats_it(one: SessionView) -> None:
    known = {r.signal.name: r.value for r in measure(one)}
    told = {}
    for result in measure(one):
        if not result.signal.path.startswith(GROUPS):
            continue
        value, _, collected = explain(result.signal, one, known)
        assert value == result.value, result.signal.path
        if not isinstance(value, Absent):
            told[result.signal.path] = bool(collected.items or collected.rules)
    assert len(told) > 15
    assert [path for path, any_evidence in told.items() if not any_evidence] == []
