"""The studies of labels: numbers by hand, against the signals of the same name, and what they refuse to say."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agentsignals.cli import main
from agentsignals.ingest import pipeline
from agentsignals.model import Label, Session
from agentsignals.questions.label_shares import NO_LABELS
from agentsignals.questions.question import Outcome
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.ui.document import document
from agentsignals.words import classifier
from tests.build import say, session, user
from tests.questions import test_every_study as every_store
from tests.questions import test_studies as every_study
from tests.questions.stores import findings, outcome, store_of

STUDIES = ("sentiment", "sentiment_turns", "sentiment_openings", "sentiment_after", "sentiment_models")
LETTERS = {"+": "POSITIVE", "-": "NEGATIVE", "0": "NEUTRAL"}


def said(letters: str, name: str, model: str = "m", labeller: str = "judge", **facts: Any) -> Session:
    """A session by its labels: `0-+` is three turns, `?` one without a label, a blank a slash command."""
    parts = []
    for letter in letters:
        parts += [user("/x", "slash_command") if letter == " " else user("do"), say("so", model=model)]
    made = session(*parts, session_id=name, **facts)
    made.labels = [
        Label(task="sentiment", labeller=labeller, turn=n, value=LETTERS[c])
        for n, c in enumerate(letters)
        if c in LETTERS
    ]
    return made


def label_all(store: Store, labeller: str, seed: int) -> list[LabelRow]:
    """Labels every message by chance, later turns more often NEGATIVE."""
    chance = random.Random(seed)  # noqa: S311  (draws, no secret)
    asked = store.sql("SELECT session_id, turn FROM turns ORDER BY ALL").fetchall()
    rows = [
        LabelRow(
            s,
            Label(
                task="sentiment",
                labeller=labeller,
                turn=t,
                value=chance.choices(list(LETTERS.values()), [9, 9 + t, 50])[0],
            ),
        )
        for s, t in asked
    ]
    sidecars.write_labels(store.folder, "sentiment", labeller, rows)
    pipeline.measure(store.folder)
    return rows


@pytest.fixture(scope="module")
def demo_store(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = shutil.copytree(demo_folder / "store", tmp_path_factory.mktemp("demo") / "store")
    label_all(Store(folder), "judge", 4)
    return Store(folder)


# -- what holds of every study -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_with_labels_they_are_held_to_what_every_study_is(demo_store: Store, tmp_path: Path) -> None:
    assert set(STUDIES) <= set(every_study.with_something_to_say(demo_store.folder))
    every_study.assert_commands_make_values_again(demo_store, tmp_path)
    every_study.test_estimates_carry_versions_and_an_interval(demo_store)
    of_store = every_store.outcomes(demo_store.folder)
    every_store.test_a_finding_can_be_quoted(of_store)
    every_store.test_a_row_has_a_cell_a_column_and_an_end_of_an_interval_its_value_between(of_store)
    every_store.test_a_chart_has_marks_and_words_and_each_mark_lies_in_its_interval(of_store)


def test_each_number_is_the_signal_s(demo_store: Store) -> None:
    """By a second road: studies join labels and steps in SQL, signals walk through each session."""
    value = dict(
        demo_store.sql("SELECT signal, value FROM signals WHERE level = 'corpus' AND absent IS NULL").fetchall()
    )
    detail = dict(demo_store.sql("SELECT signal, detail FROM signals WHERE level = 'corpus'").fetchall())
    told = every_study.json.loads
    shares, turns, openings, after = (findings(demo_store, name) for name in STUDIES[:4])
    assert shares["neutral"].value == pytest.approx(told(value["corpus.neutral_share"]))
    assert shares["negative"].value == pytest.approx(told(detail["corpus.neutral_share"])["neg_share"])
    assert shares["pure_neutral"].value == pytest.approx(told(value["corpus.pure_neutral_session_share"]))
    assert turns["fifth"].value == pytest.approx(told(value["corpus.neg_pct_turn5"]))
    assert turns["plateau"].value == pytest.approx(told(detail["corpus.neg_by_turn_curve[]"])["plateau"])
    assert openings["recovery"].value == pytest.approx(told(value["corpus.recovery_rate"]))
    assert openings["neutral_recovery"].value == pytest.approx(told(detail["corpus.recovery_rate"])["neutral_first"])
    shift = told(value["corpus.post_negative_shift"])
    for key, name in (("neg_after", "negative_after"), ("pos_base", "positive_base"), ("pos_after", "positive_after")):
        assert after[name].value == pytest.approx(shift[key])
    curve = [row for row in outcome(demo_store, "sentiment_turns").tables[0].rows if row[0] == "all sessions"]
    points = [p for p in told(value["corpus.neg_by_turn_curve[]"]) if p["n"]]
    assert [(row[2], row[3]) for row in curve] == [(p["n"], p["neg"]) for p in points]


@pytest.mark.slow
def test_without_labels_they_say_what_makes_them_and_are_left_out(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", session(user("go"), session_id="a"))
    for name in STUDIES:
        assert outcome(store, name) == Outcome(limits=[NO_LABELS])
    assert "agentsignals labels label sentiment --by" in NO_LABELS
    left_out = {one.study: one.reason for one in document(store).left_out}
    assert {name: left_out[name] for name in STUDIES} == dict.fromkeys(STUDIES, NO_LABELS)


def test_eval_runs_are_not_in_the_numbers(tmp_path: Path) -> None:
    run = said("--", "run")
    run.context = "eval"
    store = store_of(tmp_path / "s", said("00", "person"), run)
    assert findings(store, "sentiment")["negative"].value == 0
    assert findings(store, "sentiment")["neutral"].n == 2


# -- numbers by hand ---------------------------------------------------------------------------------------------------


def test_a_session_that_does_not_reach_turn_five_is_in_no_cohort(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", said("-000", "a"), said("00000", "b"))
    found = findings(store, "sentiment_turns")
    assert (found["first"].value, found["cohort_first"].value) == (0.5, 0)


def test_recovery_by_opening(tmp_path: Path) -> None:
    sessions = [said(text, f"s{n}") for n, text in enumerate(["-0+", "-0", "-", "0+", "00", "+-", " -+", "?-+"])]
    found = findings(store_of(tmp_path / "s", *sessions), "sentiment_openings")
    assert (found["negative"].value, found["negative"].n) == (0.5, 6)
    assert (found["recovery"].value, found["recovery"].n) == (pytest.approx(1 / 3), 3)
    assert found["never"].value == pytest.approx(2 / 3)
    assert (found["recovery_several"].value, found["recovery_several"].n) == (0.5, 2)
    assert (found["neutral_recovery"].value, found["neutral_recovery"].n) == (0.5, 2)


def test_a_positive_opening_recovers_by_a_later_message_only(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", said("+-", "a"), said("+0+", "b"), said("0", "c"))
    rows = {row[0]: row[1:4] for row in outcome(store, "sentiment_openings").tables[0].rows}
    assert rows["POSITIVE"] == [2, 1, 0.5]


def test_a_message_belongs_to_the_model_that_answered_before_it(tmp_path: Path) -> None:
    made = session(
        user("a"), say("x", model="one"), user("b"), user("c"), say("y", model="sub", thread="agent"), user("d"),
        say("z", model="two"), user("e"), session_id="a",
    )  # fmt: skip
    made.labels = [Label(task="sentiment", labeller="judge", turn=n, value="NEGATIVE") for n in range(5)]
    rows = outcome(store_of(tmp_path / "s", made), "sentiment_models").tables[0].rows
    assert {row[0]: row[1] for row in rows} == {"one": 4, "two": 1}


def test_a_second_message_before_any_answer_belongs_to_the_sessions_model(tmp_path: Path) -> None:
    made = session(user("a"), user("b"), say("x", model="late"), session_id="a", model="main")
    made.labels = [
        Label(task="sentiment", labeller="judge", turn=n, value=v) for n, v in enumerate(("NEGATIVE", "NEUTRAL"))
    ]
    rows = outcome(store_of(tmp_path / "s", made), "sentiment_models").tables[0].rows
    assert {row[0]: (row[1], row[4]) for row in rows} == {"late": (1, 1), "main": (1, 0)}


def test_models_are_drawn_from_a_hundred_messages_on_with_what_speaks_against_them(tmp_path: Path) -> None:
    wide = [said("0" * 19 + "-", f"w{n}", "wide", cwd=f"/p/{n}") for n in range(6)]
    narrow = [said("0" * 45 + "-" * 5, f"n{n}", "narrow", cwd="/p/0") for n in range(2)]
    store = store_of(tmp_path / "s", *wide, *narrow, said("-" * 99, "t", "thin", cwd="/p/1"))
    found = outcome(store, "sentiment_models")
    rows = {row[0]: row for row in found.tables[0].rows}
    assert {name: row[-1] for name, row in rows.items()} == {
        "wide": "", "narrow": "one project", "thin": "few messages, one project",
    }  # fmt: skip
    assert rows["narrow"][1:6] == [100, 1, 1.0, 10, pytest.approx(0.1)]
    assert [row["name"] for row in found.charts[0].marks] == ["wide (120)", "narrow (100)"]
    assert any("leaderboard" in limit for limit in found.limits)
    assert "1 of 2 models with 100 labelled messages: more than half are in one project." in found.limits
    by_id = {f.id: f for f in found.findings}
    assert (by_id["sentiment_models.count"].value, by_id["sentiment_models.dominated"].value) == (2, 1)


def test_one_place_that_makes_most_of_the_labels_is_told(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", said("000", "a", cwd="/p/0"), said("00", "b", cwd="/p/1"))
    assert any(
        limit.startswith("60% of the labelled messages are from one project")
        for limit in outcome(store, "sentiment").limits
    )
    even = store_of(tmp_path / "even", said("00", "a", cwd="/p/0"), said("00", "b", cwd="/p/1"))
    assert not any("are from one project" in limit for limit in outcome(even, "sentiment").limits)


# -- labellers ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_labellers(tmp_path: Path) -> Store:
    one, other = said("000-", "a"), said("000", "b", labeller="other's")
    one.labels += [Label(task="sentiment", labeller="other's", turn=n, value="NEGATIVE") for n in (0, 3)]
    return store_of(tmp_path / "s", one, other)


def test_labellers_are_never_mixed_and_who_gave_most_counts(two_labellers: Store) -> None:
    found = findings(two_labellers, "sentiment")
    assert (found["neutral"].value, found["neutral"].n) == (0.6, 5)
    assert "--labeller 'other'\"'\"'s'" in found["neutral"].command
    unjudged = "28.6% of messages not judged"
    found = outcome(two_labellers, "sentiment")
    assert f"Sentiment labels by other's; {unjudged}." in found.limits
    assert all(unjudged in finding.note for finding in found.findings if finding.unit.startswith("share"))


def test_another_labeller_can_be_asked_for(two_labellers: Store, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "r.json"
    asked = [
        "report",
        "--study",
        "sentiment",
        "--labeller",
        "judge",
        "-o",
        str(file),
        "--store",
        str(two_labellers.folder),
    ]
    assert main(asked) == 0
    section = every_study.json.loads(file.read_text())["sections"][0]
    assert [f["value"] for f in section["findings"] if f["id"] == "sentiment.neutral"] == [0.75]
    made = document(two_labellers, ["sentiment"], labeller="nobody")
    assert made.sections == []
    assert made.left_out[0].reason == "No message has a sentiment label by nobody: labels are by judge, other's."


def test_the_labellers_are_listed_and_compared(two_labellers: Store) -> None:
    tables = {t.id: t for t in outcome(two_labellers, "sentiment").tables}
    assert [(row[0], row[3], row[-1]) for row in tables["sentiment.labellers"].rows] == [
        ("other's", 5, "used here"), ("judge", 4, ""),
    ]  # fmt: skip
    assert len(tables["sentiment.agreement"].rows) == 1
    row = dict(
        zip(
            [c.key for c in tables["sentiment.agreement"].columns],
            tables["sentiment.agreement"].rows[0],
            strict=True,
        )
    )
    assert (row["other"], row["n"], row["agreement"], row["negative_neutral"]) == ("judge", 2, 0.5, 1)


def test_what_a_classifier_learnt_by_heart_is_no_agreement(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    model = classifier.shipped("sentiment", "encoder")
    assert model is not None
    by = replace(model, kind="classifier", net=msgspec.UNSET, sessions=[classifier.session_mark("a")])
    file.write_bytes(msgspec.json.encode(by))
    sessions = [said("0-+", name, labeller=f"classifier:{file}") for name in ("a", "b")]
    for made in sessions:
        made.labels += said("0--", made.session_id).labels
    store = store_of(tmp_path / "s", *sessions)
    compared = outcome(store, "sentiment")
    found = next(t for t in compared.tables if t.id == "sentiment.agreement")
    assert (found.rows[0][1], found.n) == (3, 3)
    assert any("leaves out 3 messages in sessions that a labeller was made" in limit for limit in compared.limits)
    file.unlink()
    gone = outcome(store, "sentiment")
    assert all(t.id != "sentiment.agreement" for t in gone.tables)
    assert any("leaves out 6 messages" in limit for limit in gone.limits)


def test_what_is_no_label_is_counted_and_no_label(tmp_path: Path) -> None:
    made = said("00", "a")
    made.labels += [
        Label(task="sentiment", labeller="judge", turn=0, value="who knows"),
        Label(task="sentiment", labeller="judge", turn=1, value="negative", created_at=5),
    ]
    found = outcome(store_of(tmp_path / "s", made), "sentiment")
    assert {f.id: (f.value, f.n) for f in found.findings}["sentiment.negative"] == (1.0, 1)
    assert next(t for t in found.tables if t.id == "sentiment.labellers").rows[0][3:5] == [4, 1]


# -- messages ----------------------------------------------------------------------------------------------------------


def test_messages_their_length_and_those_that_come_again(tmp_path: Path) -> None:
    texts = ["yes", " Yes.\n", "fix the parser in one go", "yes", "x" * 500]
    sessions = [session(user(text), user("/plan", "plan_handoff"), session_id=f"s{n}") for n, text in enumerate(texts)]
    found = outcome(store_of(tmp_path / "s", *sessions), "messages")
    by_id = {f.id: f for f in found.findings}
    assert (by_id["messages.median"].value, by_id["messages.median"].n) == (4, 5)
    assert (by_id["messages.common"].value, by_id["messages.common"].note) == ("yes", "3 times in 3 sessions")
    common = next(t for t in found.tables if t.id == "messages.most_common")
    assert common.rows == [["yes", 3, 0.6, 3]] and common.n == 5
    drawn = {row["name"]: row["value"] for row in found.charts[0].marks}
    assert drawn["≤5"] == 3 and drawn["≤500"] == 1 and Counter(drawn.values())[1] == 2


def test_a_secret_that_is_said_twice_is_not_shown(tmp_path: Path) -> None:
    secret = "use sk-" + "a1b2" * 8
    sessions = [session(user(secret), session_id=f"s{n}") for n in range(2)]
    found = outcome(store_of(tmp_path / "s", *sessions), "messages")
    assert {f.id: f.value for f in found.findings}["messages.common"] == "use [key]"


def test_the_same_words_twice_are_a_table_of_one_agent_or_of_each(tmp_path: Path) -> None:
    one, two = session(user("abc"), session_id="a"), session(user("abcdef"), session_id="b")
    two.agent = "codex"
    rows = next(
        t for t in outcome(store_of(tmp_path / "s", one, two), "messages").tables if t.id == "messages.by_agent"
    )
    assert [(row[0], row[1], row[4]) for row in rows.rows] == [
        ("all agents", 2, 4.5),
        ("claude-code", 1, 3),
        ("codex", 1, 6),
    ]
