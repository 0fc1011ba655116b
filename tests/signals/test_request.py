"""What was asked: how vaguely, in which language, and whether the work stayed with it."""

from __future__ import annotations

import pytest

from agentsignals.model import Absent, TurnKind
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView
from tests.build import Part, call, say, user, view
from tests.signals.ask import absent, detail, evidence, lines, value

VAGUE = "anticipation.prompt_underspecification"
DRIFT = "anticipation.scope_drift"
LANGUAGE = "chat.prompt_language"


def parts_of(text: str) -> tuple[float, float, float]:
    found = detail(view(user(text)), VAGUE)
    return found["L"], found["R"], found["O"]


def test_the_score_weighs_length_reference_and_outcome() -> None:
    vague, precise = view(user("fix it")), view(user("In `a.py` " + "word " * 40 + "the parser should return None."))
    assert value(vague, VAGUE) == 1.0
    assert detail(vague, VAGUE)["prompt_quality"] == 0.0
    assert value(precise, VAGUE) == 0.0
    half = view(user("one two three four five six seven eight nine ten"))
    assert value(half, VAGUE) == pytest.approx(0.4 * 30 / 35 + 0.6)
    assert lines(half, VAGUE) == [1]
    told = [i.excerpt for i in evidence(precise, VAGUE).items]
    assert [t.split("”")[0] for t in told[1:3]] == ["reference: “`a.py`", "outcome: “should"]


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
    "text",
    [
        "review the branch",
        "make it work with GitHub and JavaScript",
        "use UTF-8 e.g. everywhere",
        "fix it. then push.",
        "fix and/or remove it",
        "a well-known decade - faced",
        "in 2024 12345678 times... ok",
        "what about Node.js",
        "an e-mail to the PR people",
    ],
)
def test_words_that_only_look_concrete_are_no_reference(text: str) -> None:
    assert parts_of(text)[1] == 1.0


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


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], ("not_applicable", "no_turns")),
        ([user("deploy", "slash_command")], ("not_applicable", "slash_command")),
        ([user("# Plan", "plan_handoff")], ("not_applicable", "plan_handoff")),
        ([user("", "attachment")], ("not_applicable", "attachment")),
        ([user("")], ("not_applicable", "attachment_only")),
        ([user("hello claude!")], ("not_applicable", "greeting")),
        ([user("Kannst du bitte die Tests noch einmal laufen lassen?")], ("not_computable", "language: de")),
        ([user("テストを修正してください")], ("not_computable", "language")),
    ],
)
def test_what_is_no_prompt_in_english_is_not_called_vague(parts: list[Part], reason: tuple[str, str]) -> None:
    assert absent(view(*parts), VAGUE) == reason


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


@pytest.mark.parametrize(
    ("said", "touched", "expected"),
    [
        ("fix src/a.py", ["src/a.py"], 1.0),
        ("fix a.py", ["src/a.py", "src/b.py", "c.md"], 3.0),
        ("fix the parse_line helper", ["src/parse_line.py", "src/b.py"], 2.0),
        ("fix a.py.", ["a.py"], 1.0),
        ("see (`src/a.py:12`)", ["src/a.py"], 1.0),
        ("fix @src/a.py", ["src/a.py"], 1.0),
        (
            "fix a.py",
            ["a.py", "uv.lock", "package-lock.json", "dist/x.js", "tmp/n.txt", "a.pb.go", "/home/you/x.py"],
            1.0,
        ),
        ("fix it", [], 0.0),
        ("fix it", ["yarn.lock"], 0.0),
    ],
)
def test_drift_is_what_was_changed_over_what_of_it_was_named(said: str, touched: list[str], expected: float) -> None:
    one = view(user(said), *edits(*touched), cwd="/home/me/app")
    assert value(one, DRIFT) == expected
    assert detail(one, DRIFT)["method"] == "mention"


@pytest.mark.parametrize(
    ("said", "detail_"),
    [
        ("fix it", "no_reference"),
        ("fix the main module", "no_reference"),
        ("fix other.py", "zero_denominator"),
        ("fix data.py", "zero_denominator"),
    ],
)
def test_without_a_named_file_drift_is_unknown(said: str, detail_: str) -> None:
    assert absent(view(user(said), *edits("src/main.py", "a.py"), cwd="/home/me/app"), DRIFT) == (
        "not_computable",
        detail_,
    )


def test_any_turn_may_name_a_file_and_edits_are_the_evidence() -> None:
    one: SessionView = view(user("fix it"), *edits("a.py", "b.py"), user("and b.py"), say("ok"), cwd="/home/me/app")
    assert value(one, DRIFT) == 2.0
    assert detail(one, DRIFT)["unrequested"] == 1
    assert (lines(one, DRIFT), lines(one, DRIFT, "counter")) == ([3], [2])


@pytest.mark.parametrize("unit", ["a.", "a/", "aA", "a_", "[Image", "`a", "-", "#", "0a", "PR ", " at", "when a ", "."])
def test_hostile_prompts_cost_no_more_than_their_length(unit: str) -> None:
    one = view(user(unit * (60_000 // len(unit))), *edits("a.py"))
    assert isinstance(value(one, VAGUE), float | Absent)
    assert isinstance(value(one, DRIFT), float | Absent)
