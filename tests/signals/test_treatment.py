"""treatment.*: the knobs as configured, never as observed."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent
from tests.build import call, say, user, view
from tests.signals.ask import Case, absent, detail, evidence, value
from tests.signals.attempts import ran, trial, unseen

CAP = "treatment.attempt1_tool_cap"
MODEL = "treatment.model_id"
COUNTS = ("attempt1_tool_cap", "retry_tool_cap", "concurrency")


@pytest.mark.parametrize("knob", COUNTS)
@pytest.mark.parametrize(
    ("raw", "expected", "told"), [(50, 50, None), ("50", 50, "50"), (50.0, 50, None), (" 7 ", 7, " 7 ")]
)
def test_a_count_is_copied(knob: str, raw: Any, expected: int, told: Any) -> None:
    one = unseen(knobs={knob: raw})
    assert (value(one, f"treatment.{knob}"), detail(one, f"treatment.{knob}").get("raw")) == (expected, told)


@pytest.mark.parametrize("knob", [*COUNTS, "timeout_s"])
@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (None, "unlimited"),
        (0, "unlimited: 0"),
        (-1, "unlimited: -1"),
        ("unlimited", "unlimited: unlimited"),
        ("Auto", "unlimited: Auto"),
        (float("inf"), "unlimited: inf"),
        (10**400, "unlimited: more than anyone counts"),
    ],
)
def test_no_limit_is_not_applicable(knob: str, raw: Any, told: str) -> None:
    assert absent(unseen(knobs={knob: raw}), f"treatment.{knob}") == ("not_applicable", told)


@pytest.mark.parametrize("raw", [True, "many", "5 apples", [5], {"n": 5}, float("nan"), "5" * 5000])
def test_what_is_no_number_is_not_computable_and_says_the_raw(raw: Any) -> None:
    reason, told = absent(unseen(knobs={"attempt1_tool_cap": raw}), CAP)
    assert reason == "not_computable"
    assert told.startswith("no_number: ")
    assert len(told) < 120


def test_both_caps_stand_on_every_attempt_of_the_trial() -> None:
    knobs = {"attempt1_tool_cap": 20, "retry_tool_cap": 40}
    for one in trial({"knobs": knobs}, {"knobs": knobs}):
        assert (value(one, CAP), value(one, "treatment.retry_tool_cap")) == (20, 40)


def test_an_agent_type_is_trimmed_and_lower_case_and_keeps_its_raw() -> None:
    one = unseen(knobs={"agent_type": " Mini-SWE-Agent "})
    assert value(one, "treatment.agent_type") == "mini-swe-agent"
    assert detail(one, "treatment.agent_type") == {"raw": "Mini-SWE-Agent"}
    assert absent(unseen(knobs={"agent_type": "  "}), "treatment.agent_type")[0] == "missing_field"
    assert absent(unseen(knobs={"agent_type": 5}), "treatment.agent_type")[0] == "missing_field"


def test_a_dataset_without_version_says_so() -> None:
    assert detail(unseen(knobs={"dataset": "swesmith@1.0"}), "treatment.dataset") == {}
    assert detail(unseen(knobs={"dataset": "swesmith"}), "treatment.dataset") == {"version_missing": True}


def test_two_places_that_differ_are_a_conflict_and_the_first_is_believed() -> None:
    one = unseen(knobs={"dataset": "a@1"})
    assert one.session.attempt is not None
    one.session.attempt.conflicts = ["knobs.dataset"]
    assert (value(one, "treatment.dataset"), detail(one, "treatment.dataset")) == ("a@1", {"conflict": True})


def test_the_evidence_is_the_place_that_configured_it() -> None:
    one = unseen(reward=1.0, knobs={"attempt1_tool_cap": 20})
    assert [(i.artifact, i.excerpt) for i in evidence(one, CAP).items] == [
        ("harness-file", "knobs.attempt1_tool_cap is said here")
    ]


def test_a_product_session_has_no_treatment() -> None:
    with pytest.raises(StopIteration):
        value(view(user("go")), CAP)


CASES = (
    Case("calls made are no cap", ran(*[call("Bash", command="ls")] * 50), CAP,
         Absent("missing_field", "attempt1_tool_cap")),
    Case("a converted timeout keeps its raw", unseen(knobs={"timeout_s": "30m"}), "treatment.timeout_s",
         detail={"raw": "30m"}),
    Case("a converted timeout keeps its raw", unseen(knobs={"timeout_s": 1800}), "treatment.timeout_s", detail={}),
    Case("the configured model wins over those that answered",
         ran(say("a", model="gpt-5"), say("b", model="gpt-5-mini"), knobs={"model_id": "openai/gpt-5"}), MODEL,
         "openai/gpt-5", {"method": "configured", "observed": {"gpt-5": 1, "gpt-5-mini": 1}}),
    Case("a provider before the name is no other model",
         ran(say("a", model="gpt-5"), knobs={"model_id": "openai/gpt-5"}), MODEL, detail={"method": "configured"}),
    Case("without configuration the model that answered most counts and synthetic ones do not",
         ran(*[say("a", model="gpt-5"), say("b", model="gpt-5"), say("c", model="haiku")], *(say(text,
         model="<synthetic>") for text in "xyz")), MODEL, "gpt-5",
         {"method": "observed", "observed": {"gpt-5": 2, "haiku": 1}}),
    *(Case("what nobody configured is a missing field", unseen(reward=1.0), f"treatment.{knob}",
           Absent("missing_field", knob))
      for knob in [*COUNTS, "timeout_s", "agent_type", "model_id", "dataset"]),
    *(Case("a timeout is in seconds", unseen(knobs={"timeout_s": raw}), "treatment.timeout_s", expected)
      for raw, expected in [
        (1800, 1800),
        (1800.0, 1800),
        ("1800s", 1800),
        ("30m", 1800),
        ("30 minutes", 1800),
        ("0.5h", 1800),
        ("1800000ms", 1800),
        ("1500ms", 2),
        ("10ms", 1),
      ]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
