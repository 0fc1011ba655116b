"""The traps of ATIF steps, one test each (design/formats.md#harbor-and-atif)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats.atif import FORMAT
from agentsignals.formats.records import Head
from tests.atif_steps import agent, document, run

# -- what is recognised ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "keys"),
    [
        (document(), ["session:s-1"]),
        (document(session_id=None), []),
        ({"schema_version": "ATIF-v1.0", "agent": {"tool_definitions": ["x" * 90_000]}}, []),
        ({"schema_version": 2, "steps": []}, None),
        ({"schema_version": "1.7", "steps": []}, None),
    ],
    ids=["named", "without an id", "steps behind the window", "a number", "another's version"],
)
def test_only_a_version_of_atif_is_atif(found: dict[str, Any], keys: list[str] | None) -> None:
    data = json.dumps(found).encode()
    claim = FORMAT.claims(Head(data[: 64 * 1024], "/r/agent/t.json", len(data) < 64 * 1024))
    assert (claim.keys if claim else None) == keys
    assert claim is None or claim.root == "/r/agent"


# -- actions inside the message -------------------------------------------------------------------------------------


def test_hostile_messages_take_linear_time() -> None:
    for message in ("<function=" * 60_000, "<parameter=" * 60_000, "<function=a>" + "<parameter=p>" * 60_000):
        run(agent(message))


# -- several files --------------------------------------------------------------------------------------------------


SUB = {"trajectory_id": "t-sub", "schema_version": "ATIF-v1.7", "agent": {"name": "helper", "model_name": "small"}}


def test_subagents_nested_without_end_are_all_read() -> None:
    inner: dict[str, Any] = {**SUB, "trajectory_id": "t-0", "steps": [agent("0")]}
    for n in range(1, 200):
        ref = {"results": [{"content": "", "subagent_trajectory_ref": [{"trajectory_id": f"t-{n - 1}"}]}]}
        steps = [agent(str(n), observation=ref)]
        inner = {**SUB, "trajectory_id": f"t-{n}", "steps": steps, "subagent_trajectories": [inner]}
    session = run(agent("top"), subagent_trajectories=[inner])
    assert len({e.thread for e in session.events}) == 201
