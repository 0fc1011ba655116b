"""The traps of ATIF steps, one test each (design/formats.md#harbor-and-atif)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.atif import FORMAT
from agentsignals.formats.head import Head
from agentsignals.model import Attempt, Session
from tests.atif_steps import agent, call, document, reading, run, seen

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


# -- usage ----------------------------------------------------------------------------------------------------------


# -- who speaks -----------------------------------------------------------------------------------------------------


# -- calls and results ----------------------------------------------------------------------------------------------


# -- actions inside the message -------------------------------------------------------------------------------------


def test_hostile_messages_take_linear_time() -> None:
    for message in ("<function=" * 60_000, "<parameter=" * 60_000, "<function=a>" + "<parameter=p>" * 60_000):
        run(agent(message))


# -- what surrounds it ----------------------------------------------------------------------------------------------


ODD: list[Any] = [None, 7, -1.5, True, "x", [], {}, [None], {"a": 1}, 10**30, [[{}]]]


@pytest.mark.parametrize(
    "name",
    [
        "source", "timestamp", "message", "model_name", "reasoning_content", "tool_calls", "observation", "metrics",
        "is_copied_context", "extra", "llm_call_count", "reasoning_effort",
    ],
)  # fmt: skip
def test_odd_values_of_a_step_never_raise(name: str) -> None:
    for odd in ODD:
        step = {**agent("a", tool_calls=[call("c")], observation=seen(("c", "x"))), name: odd}
        assert reading({"/r/t.json": document(step)}).sessions


@pytest.mark.parametrize("name", ["agent", "final_metrics", "subagent_trajectories", "continued_trajectory_ref"])
def test_odd_values_of_a_trajectory_never_raise(name: str) -> None:
    for odd in ODD:
        reading({"/r/t.json": document(agent("a"), **{name: odd})})


CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval"
NO_CORPUS = "the corpus of real traces is not here"

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


# -- real files -----------------------------------------------------------------------------------------------------


def real(pattern: str) -> tuple[dict[str, Any], Session, Attempt]:
    """Files as they are, read here by `json` alone for the second opinion, and what the format makes of them."""
    paths = sorted(CORPUS.glob(pattern))
    if not paths:
        pytest.skip(NO_CORPUS)
    found = reading({str(p): p.read_bytes() for p in paths})
    ((session,), (part,)) = found.sessions, found.attempts
    return json.loads(paths[-1].read_bytes()), session, part


@pytest.mark.parametrize(
    ("pattern", "steps", "calls", "edits"),
    [
        ("atif/openhands_hello-world.trajectory.json", 2, 2, 1),
        ("atif/openhands_hello-world.trajectory.no_function_calling.json", 2, 2, 1),
        ("harbor/*/*/*/agent/trajectory.json", 6, 7, 2),
    ],
)
def test_the_sum_of_a_real_run_is_its_own_total(pattern: str, steps: int, calls: int, edits: int) -> None:
    raw, session, _ = real(pattern)
    totals = raw["final_metrics"]
    cached = totals.get("total_cached_tokens", 0)
    assert sum(s.input_tokens or 0 for s in session.steps) == totals["total_prompt_tokens"] - cached
    assert sum(s.output_tokens or 0 for s in session.steps) == totals["total_completion_tokens"]
    assert sum(s.cache_read_tokens or 0 for s in session.steps) == cached
    if "total_cost_usd" in totals:
        assert sum(s.cost_usd or 0 for s in session.steps) == pytest.approx(totals["total_cost_usd"])
    assert (len(session.steps), len(session.tool_calls), len(session.edits)) == (steps, calls, edits)
    assert len(session.turns) == 1


def test_a_real_run_in_two_files_lacks_its_subagents_alone() -> None:
    """Its last totals count three summarising subagents too, whose files are not there: 1 300 tokens in, 340 out."""
    _, session, part = real("atif/terminus_2*.json")
    assert (part.input_tokens, part.output_tokens) == (7802, 1030)
    assert sum(s.input_tokens or 0 for s in session.steps) == 2252 + 4250
    assert sum(s.output_tokens or 0 for s in session.steps) == 160 + 530
    assert [c.command for c in session.tool_calls if c.class_ == "read"] == ["cat hello.txt\n"]
    assert [e.path for e in session.edits] == ["test_dir/file1.txt", "test_dir/file2.txt", "hello.txt"]
    assert [e.kind for e in session.events].count("compaction") == 1
