"""Topics of prompts and working styles: what is compared, what is left out and counted, and what is told of groups."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest

from agentsignals.model import Absent
from agentsignals.questions.prompts import TopicPrompts, plain_prompt
from agentsignals.questions.question import Outcome
from agentsignals.stats import grouping
from agentsignals.store import Store
from tests.build import call, say, session, user
from tests.questions.stores import outcome, store_of

THEMES = {
    "merge": ["merge", "branch", "conflict", "rebase", "upstream", "history"],
    "colour": ["button", "colour", "layout", "margin", "header", "footer"],
    "database": ["table", "column", "migration", "index", "schema", "query"],
}


def prompts(theme: str, n: int) -> list[str]:
    chance = random.Random(theme)  # noqa: S311  (made-up prompts, no secret)
    return [f"please could you {' '.join(chance.sample(THEMES[theme], 5))} and the rest of it" for _ in range(n)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    pytest.importorskip("numpy")
    sessions = []
    for theme in THEMES:
        said = prompts(theme, 20)
        for n in range(10):  # two prompts a session
            place = f"/home/ada/{'zebra' if n % 2 else 'yak'}-{n % 5}"
            parts = (user(said[2 * n]), say("done"), user(said[2 * n + 1]), say("done"))
            sessions.append(session(*parts, session_id=f"{theme}-{n}", cwd=place))
    return store_of(tmp_path_factory.mktemp("topics") / "s", *sessions)


@pytest.fixture(scope="module")
def found(store: Store) -> Outcome:
    return outcome(store, "topics")


def rows(found: Outcome, name: str) -> list[list[Any]]:
    return next(t.rows for t in found.tables if t.id == f"topics.{name}")


@pytest.mark.slow
def test_prompts_that_share_words_are_one_topic_named_by_them(found: Outcome) -> None:
    named = [row[0].split(", ") for row in rows(found, "topics") if row[0] != "(no topic)"]
    assert named
    for words in named:
        assert any(set(words) <= set(theme) for theme in THEMES.values()), words


def test_each_topic_has_three_examples_of_different_sessions(found: Outcome) -> None:
    topics = [row[0] for row in rows(found, "topics") if row[0] != "(no topic)"]
    examples = rows(found, "examples")
    assert len(examples) == 3 * len(topics) and len({row[2] for row in examples}) == len(examples)


def test_topics_and_noise_add_up_to_the_prompts_compared(found: Outcome) -> None:
    compared = next(f for f in found.findings if f.id == "topics.count").n
    noise = next(f for f in found.findings if f.id == "topics.noise")
    sizes = rows(found, "topics")
    assert sum(row[1] for row in sizes) == compared == noise.n
    assert noise.value == pytest.approx(sum(row[1] for row in sizes if row[0] == "(no topic)") / compared)
    assert compared + sum(row[1] for row in rows(found, "left_out")) == 60


def test_prompts_between_topics_and_in_small_ones_have_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(texts: list[str], k: int) -> grouping.Groups:
        n = len(texts)
        fit = [-0.2, *[0.1] * (n - 4), 0.0, 0.1, 0.1]
        return grouping.Groups([0] * (n - 30) + [1] * 26 + [2] * 4, fit, [float(at) for at in range(n)], 0.1)

    monkeypatch.setattr("agentsignals.questions.studies.prompts.text_groups", made)
    told = outcome(store, "topics")
    sizes = {row[0]: row[1] for row in rows(told, "topics")}
    assert sizes.pop("(no topic)") == 5 and set(sizes.values()) == {26, next(iter(told.findings)).n - 31}
    nearest = [row[2] for row in rows(told, "examples")]
    assert len(set(nearest[:3])) == len(set(nearest[3:])) == 3, "not twice of one session while others have one"


def test_the_same_prompts_give_the_same_topics(store: Store, found: Outcome) -> None:
    again = outcome(store, "topics")
    assert [t.rows for t in again.tables] == [t.rows for t in found.tables]


def test_without_the_library_the_outcome_says_how_to_install_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    bare = outcome(store, "topics")
    assert bare.findings == bare.tables == bare.charts == []
    assert "pip install" in bare.limits[0]
    assert grouping.grouped([[0.0], [1.0], [2.0]], 2) == Absent("backend_disabled", "topics")


def test_grouping_does_not_load_scikit_learn() -> None:
    program = (
        "import sys; from agentsignals.stats.grouping import grouped, text_groups;"
        " grouped([[0.0], [1.0], [2.0]], 2), text_groups(['one lamp', 'two lamp', 'tall door', 'old door', 'x'], 2);"
        " sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# -- what is compared --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Fix `parse_it()` in the parser", "Fix in the parser"),
        ("See src/app/main.py, please, and C:\\x\\y too", "See please, and too"),
        ("Why?\n```\nTraceback: secret\n```\nTell me.", "Why? Tell me."),
        ("Look at https://example.com/a?b=c now", "Look at now"),
        ("[Image #1] what is this", "what is this"),
        ("use myFunction and snake_case with 3 files", "use and with files"),
        ("@ada said so. Really.", "said so. Really."),
    ],
)
def test_a_prompts_own_words_are_without_code_paths_names_and_numbers(text: str, left: str) -> None:
    assert plain_prompt(text) == left


def row(text: str, session_id: str = "s", language: str | None = "en") -> dict[str, Any]:
    return {"session_id": session_id, "turn": 0, "text": text, "language": language}


def test_what_is_left_out_is_counted_by_reason() -> None:
    long_enough = "please change how the parser reads a line"
    kept = TopicPrompts(
        [
            row(long_enough),
            row(long_enough.upper()),
            row("too short"),
            row("many words " * 200),
            row("bitte ändere, wie der Parser eine Zeile liest", language="de"),
            row("who knows what this is supposed to mean at all", language=None),
            row("<task-notification> the agent is finished with its task now </task-notification>"),
        ],
        {},
    )
    assert [one.text for one in kept.prompts] == [long_enough]
    assert kept.left_out == {
        "repeated": 1,
        "too short": 1,
        "too long": 1,
        "not identified as English": 2,
        "inserted by a harness": 1,
    }


def numbered(n: int) -> str:
    """Words of its own for each number."""
    return " ".join("abcdefghij"[int(digit)] * 3 for digit in f"{n:04}") + " is what I would like to change here"


def test_of_one_place_a_tenth_is_compared_and_twenty_at_least() -> None:
    own = [row(numbered(n), "large") for n in range(300)]
    others = [row(numbered(1000 + n), f"s{n}") for n in range(100)]
    kept = TopicPrompts([*own, *others], {"large": "/p/large"})
    by_place = [one.place for one in kept.prompts]
    assert by_place.count("/p/large") == 40 and len(by_place) == 140
    assert kept.left_out == {"over the limit per project": 260}
    few = TopicPrompts(own[:30], {"large": "/p/large"})
    assert len(few.prompts) == 20


def test_of_many_prompts_a_sample_is_cleaned_the_same_in_any_order() -> None:
    own = [row(numbered(n), f"large-{n}") for n in range(4000)]
    others = [row(numbered(n), f"s{n}") for n in range(4000, 8000)]
    places = {f"large-{n}": "/p/large" for n in range(4000)}
    kept = TopicPrompts([*own, *own[:10], *others], places)
    assert kept.is_sample and len(kept.prompts) == 4000
    assert [one.place for one in kept.prompts].count("/p/large") == 400
    assert kept.left_out == {"not drawn": 4010}
    again = TopicPrompts([*others[::-1], *own[::-1]], places)
    assert {one.text for one in again.prompts} == {one.text for one in kept.prompts}
    whole = TopicPrompts(own, {})
    assert not whole.is_sample and len(whole.prompts) == 4000


def test_the_name_of_a_place_is_taken_out_unless_two_others_say_it() -> None:
    texts = {"one": "the zebra tests of the parser fail on every run", "two": "do the parser tests pass on every run"}
    kept = TopicPrompts(
        [row(texts["one"], "one"), row(texts["two"], "two"), row("why do all the tests fail since monday", "three")],
        {"one": "/p/zebra-tests-parser", "two": "/p/b", "three": "/p/c"},
    )
    assert next(one.text for one in kept.prompts) == "the tests of the fail on every run"


@pytest.mark.parametrize("text", ["[" * 60_000, "https://" * 8_000, "a.b" * 20_000, "<a" * 30_000, "x/" * 30_000])
def test_hostile_prompts_take_no_time(text: str) -> None:
    assert len(plain_prompt(text)) <= len(text)


def test_secrets_do_not_reach_the_examples(tmp_path: Any) -> None:
    pytest.importorskip("numpy")
    sessions = [
        session(
            user(f"{text} with password: correcthorsebattery and mail to ada@example.org"),
            session_id=f"{theme}-{n}",
            cwd=f"/p/{n % 4}",
        )
        for theme in THEMES
        for n, text in enumerate(prompts(theme, 20))
    ]
    made = outcome(store_of(tmp_path / "s", *sessions), "topics")
    shown = " ".join(row[1] for row in rows(made, "examples"))
    assert "password" in shown and "correcthorse" not in shown and "example.org" not in shown


def test_a_group_is_named_by_words_of_its_own_that_are_known() -> None:
    pytest.importorskip("numpy")
    texts = ["the lamp and the door", "the lamp again", "a door, a door, a door", "noise noise of a kite"]
    assert grouping.naming_words(texts, [0, 0, 1, -1], 2, ["a", "b", "b", "a"]) == [["lamp", "door"], ["door"]]


# -- working styles ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sessions_fall_into_as_many_styles_as_there_are(tmp_path: Any) -> None:
    pytest.importorskip("numpy")
    styles = {"read": (10, 1, 1), "edit": (1, 10, 1), "task": (1, 1, 10)}
    sessions = []
    for name, (reads, edits, tasks) in styles.items():
        for n in range(12):  # each a little different, or every different mix would be a style of its own
            calls = [call("Read", path=f"{k}") for k in range(reads + n % 4)]
            calls += [call("Edit", path=f"{k}") for k in range(edits + n % 3)]
            calls += [call("Task") for _ in range(tasks + n % 2)]
            sessions.append(session(user("go"), *calls, session_id=f"{name}-{n}", cwd=f"/p/{n % 4}"))
    short = session(user("go"), call("Read", path="a"), session_id="short")
    found = outcome(store_of(tmp_path / "s", *sessions, short), "tool_profiles")
    values = {f.id: f.value for f in found.findings}
    assert values["tool_profiles.count"] == 3
    table = found.tables[0]
    assert [row[1] for row in table.rows] == [12, 12, 12] and table.n == 36
    assert {row[0] for row in table.rows} == {"more read", "more edit", "more agent"}


def test_too_few_sessions_have_no_styles(tmp_path: Any) -> None:
    found = outcome(store_of(tmp_path / "s", session(user("go"), call("Read", path="a"))), "tool_profiles")
    assert found.findings == [] and "30 are needed" in found.limits[0]


def test_equal_sessions_are_not_cut_into_styles() -> None:
    pytest.importorskip("numpy")
    assert grouping.grouped([[1.0, 0.0]] * 40, 8) == Absent("not_computable", "fewer than three distinct items")
