"""anticipation.first_tool_precision."""

from __future__ import annotations

import pytest

from agentsignals.model import Absent, TurnKind
from agentsignals.signals.catalog import measure
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


def turns(n: int) -> list[Part]:
    return [part for k in range(n) for part in (user(f"step {k}"), say("ok"))]
