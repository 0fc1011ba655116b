"""anticipation.first_tool_precision."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, TurnKind
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, explain, measure
from tests.build import Part, call, say, user, view
from tests.signals.ask import detail, value

# What was asked: how vaguely, in which language, and whether the work stayed with it.

VAGUE = "anticipation.prompt_underspecification"
DRIFT = "anticipation.scope_drift"
LANGUAGE = "chat.prompt_language"


def parts_of(text: str) -> tuple[float, float, float]:
    found = detail(view(user(text)), VAGUE)
    return found["L"], found["R"], found["O"]


@pytest.mark.parametrize(
    "named",
    [
        "src/parser.py",
        "parser.py",
        "package.json",
        "`lock`",
        "parseLine",
        "ParserError",
        "parse_line",
        "parse()",
        "--verbose",
        "https://example.org/a",
        "#123",
        "ENT-207",
        "PR 41",
        "issue #7",
        "branch fix/lock",
        "commit 97d5530",
        "97d55301a",
        "@docs/a",
        "[Image #1]",
        "```\nx\n```",
        "Traceback (most recent call last)",
    ],
)
def test_something_concrete_is_a_reference(named: str) -> None:
    assert parts_of(f"look at {named} now")[1] == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it should stop", 0.0),
        ("make sure it stops", 0.0),
        ("when it stops then start it", 0.0),
        ("clean it up", 1.0),
        ("the shoulder needs care", 1.0),
        ("why is it slow?", 0.5),
        ("why does it return that?", 0.0),
        ('it says "you must"', 1.0),
    ],
)
def test_an_outcome_is_told_by_its_words_and_a_question_asks_for_half_of_one(text: str, expected: float) -> None:
    assert parts_of(text)[2] == expected


def languages(*turns: tuple[str, TurnKind]) -> list[str]:
    found = measure(view(*(user(text, kind) for text, kind in turns)))
    return [v.detail if isinstance(v := r.value, Absent) else v for r in found if r.signal.path == LANGUAGE]


def test_each_turn_has_a_language_where_its_own_words_tell_one() -> None:
    assert languages(
        ("please fix the parser of the app", "prompt"),
        ("Kannst du die Tests noch einmal prüfen?", "prompt"),
        ("このテストを直してください。他のファイルは変えないでください。", "prompt"),
        ("commit", "prompt"),
        ("go test ./internal/... failing", "prompt"),
        ("`please fix the parser of the app, it is not for you`", "prompt"),
        ("```\nthis is the code of the app and it is not for you\n```", "prompt"),
    ) == ["en", "de", "ja", "under_20_characters", "n_too_small", "under_20_characters", "under_20_characters"]


def edits(*paths: str) -> list[Part]:
    return [call("Edit", path=path) for path in paths]


@pytest.mark.parametrize("unit", ["a.", "a/", "aA", "a_", "[Image", "`a", "-", "#", "0a", "PR ", " at", "when a ", "."])
def test_hostile_prompts_cost_no_more_than_their_length(unit: str) -> None:
    one = view(user(unit * (60_000 // len(unit))), *edits("a.py"))
    assert isinstance(value(one, VAGUE), float | Absent)
    assert isinstance(value(one, DRIFT), float | Absent)


# Scope, told offline: anticipation.unrequested_files, anticipation.conflation_turn, dynamics.gd_actions.


# dynamics.objections and anticipation.session_attribution.

OBJECTIONS, ATTRIBUTION = "dynamics.objections", "anticipation.session_attribution"
NONE = Absent("none_found", "x")


def turns(n: int) -> list[Part]:
    return [part for k in range(n) for part in (user(f"step {k}"), say("ok"))]


CALM: dict[str, Any] = {
    "session_outcome": Absent("none_found", "no_verdict"),
    "objections": {"corrections": [], "pushback": []},
    "user_turn_count": 6,
    "prompt_underspecification": 0.3,
    "clarification_sought": False,
    "assumption_count": 0,
    "first_tool_precision": True,
    "scope_drift": 1.0,
    "unrequested_files": {"n": 0, "touched": 2, "first_turn": None},
    "conflation_turn": NONE,
    "drift_onset_turn": NONE,
}


def corrected(*at: int) -> dict[str, Any]:
    return {"objections": {"corrections": list(at), "pushback": list(at)}}


def pushed(n: int) -> dict[str, Any]:
    return {"objections": {"corrections": [], "pushback": list(range(1, n + 1))}}


WIDE = {"scope_drift": 2.5, "unrequested_files": {"n": 3, "touched": 5, "first_turn": 2}}
VAGUE_CASE = {"prompt_underspecification": 0.75}


def judged(**given: Any) -> tuple[Any, dict[str, Any], Any]:
    return explain(by_path(ATTRIBUTION), view(*turns(6)), {**CALM, **given})


@pytest.mark.parametrize(
    ("given", "label", "rule"),
    [
        # 1: trouble after a vague prompt, with a sign that it was the prompt.
        ({**VAGUE_CASE, **corrected(2)}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, **corrected(4), "clarification_sought": True}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, **pushed(2), "assumption_count": 1}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, "session_outcome": "explicitly_rejected", "assumption_count": 1}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, **corrected(1), **WIDE, "conflation_turn": 1}, "underspecified_prompt", 1),
        # 2: both misread and widened: the earlier, and of two at once the misreading.
        ({**corrected(1), **WIDE}, "agent_misunderstood", 2),
        ({**corrected(2), **WIDE}, "agent_misunderstood", 2),
        ({**corrected(2), **WIDE, "conflation_turn": 1}, "scope_conflation", 2),
        ({**corrected(2), **WIDE, "conflation_turn": 1, "drift_onset_turn": 1}, "agent_misunderstood", 2),
        # 3: a clear prompt misread.
        (corrected(1), "agent_misunderstood", 3),
        (corrected(2), "agent_misunderstood", 3),
        ({**pushed(2), "first_tool_precision": False, "drift_onset_turn": 2}, "agent_misunderstood", 3),
        ({"session_outcome": "restarted_same_task", "first_tool_precision": False, "drift_onset_turn": 1},
         "agent_misunderstood", 3),
        # 4: widened, and somebody minded.
        ({**WIDE, **pushed(2)}, "scope_conflation", 4),
        ({**WIDE, "session_outcome": "explicitly_rejected"}, "scope_conflation", 4),
        ({"conflation_turn": 4, **corrected(5)}, "scope_conflation", 4),
        ({**VAGUE_CASE, **corrected(3), **WIDE}, "scope_conflation", 4),
        # 5: no trouble, and accepted.
        ({"session_outcome": "accepted"}, "correct_anticipation", 5),
        ({"session_outcome": "accepted", **pushed(1)}, "correct_anticipation", 5),
        ({"session_outcome": "accepted", "first_tool_precision": Absent("not_applicable", "no_edit")},
         "correct_anticipation", 5),
        ({"session_outcome": "accepted", **VAGUE_CASE, "assumption_count": 3}, "correct_anticipation", 5),
    ],
)  # fmt: skip
def test_the_first_rule_that_holds_names_the_session(given: dict[str, Any], label: str, rule: int) -> None:
    found, detail, why = judged(**given)
    assert (found, detail["rule"]) == (label, rule)
    assert why.rules[0].startswith(f"rule {rule}: ")


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({}, "nothing"),
        # Files that nobody named are no verdict where nobody minded.
        (WIDE, "nothing"),
        ({"conflation_turn": 4}, "nothing"),
        ({**WIDE, "user_turn_count": 1}, "nothing"),
        (corrected(3), "trouble"),
        # A vague prompt alone blames nobody.
        ({**VAGUE_CASE, **corrected(3)}, "trouble"),
        ({**VAGUE_CASE}, "nothing"),
        ({"scope_drift": 2.5}, "nothing"),
        ({"scope_drift": 2.0, "unrequested_files": WIDE["unrequested_files"]}, "nothing"),
        ({**pushed(2), "first_tool_precision": False, "drift_onset_turn": 3}, "trouble"),
        ({"session_outcome": "accepted", "first_tool_precision": False}, "nothing"),
        ({"session_outcome": "accepted", **corrected(4)}, "trouble"),
        # In one turn nobody could object: a rejected outcome blames no one.
        (
            {
                "user_turn_count": 1,
                "session_outcome": "explicitly_rejected",
                **VAGUE_CASE,
                "assumption_count": 2,
            },
            "trouble",
        ),
        ({**corrected(1), "prompt_underspecification": Absent("not_applicable", "slash_command")}, "trouble"),
    ],
)
def test_where_no_rule_holds_the_session_is_inconclusive(given: dict[str, Any], holds: str) -> None:
    assert judged(**given)[0] == Absent("not_computable", f"inconclusive: {holds} holds")


def test_what_is_missing_is_said_and_what_was_looked_for_in_vain_is_not_missing() -> None:
    gone = Absent("not_computable", "no_reference")
    detail = judged(session_outcome="accepted", scope_drift=gone, unrequested_files=gone)[1]
    assert detail["missing"] == [
        "scope_drift", "unrequested_files", "task_paraphrase_accuracy", "plan_optimality",
    ]  # fmt: skip
    assert detail["predicates"] == {
        "trouble": False,
        "vague_prompt": False,
        "misunderstood": False,
        "scope_widened": False,
        "anticipated": True,
    }


def test_without_outcome_and_objections_nothing_is_judged() -> None:
    found = judged(session_outcome=NONE, objections=NONE)[0]
    assert isinstance(found, Absent)
    assert found.reason == "dependency_null"
    assert judged(session_outcome=NONE, **corrected(1))[0] == "agent_misunderstood"
    assert judged(session_outcome="accepted", objections=NONE)[0] == "correct_anticipation"


def test_evidence_shows_the_turns_that_corrected_and_the_inputs() -> None:
    why = judged(**corrected(1, 3))[2]
    assert [i.line for i in why.items if i.role == "support"] == [3, 7]
    assert any("anticipation.prompt_underspecification = 0.3" in i.excerpt for i in why.items if i.role == "input")


def test_it_can_be_told_from_the_values_alone() -> None:
    """Across sessions only values are at hand, and no turns."""
    declared = by_path(ATTRIBUTION)
    assert declared.scope == "history"
    found = explain(declared, view(), {**CALM, **corrected(1)})[0]
    assert not isinstance(found, Measured | Absent)
    assert found == "agent_misunderstood"
