"""Sentiment labels as signals: of one message, and agent-traces's findings over all sessions."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, Label
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, inventory, measure, plain
from agentsignals.views.session import SessionView
from tests.build import call, say, session, user
from tests.signals.ask import absent, evidence, lines, value

LABEL, SAID = "corpus.sentiment_label", "corpus.sentiment_messages"
LETTERS = {"+": "POSITIVE", "-": "NEGATIVE", "0": "NEUTRAL", "?": None}


def label(turn: int | None, value: str, labeller: str = "model", task: str = "sentiment", **more: Any) -> Label:
    return Label(task=task, labeller=labeller, turn=turn, value=value, **more)


def labelled(*labels: Label, turns: int = 3) -> SessionView:
    made = session(*(part for n in range(turns) for part in (user(f"say {n}"), say("so"))))
    made.labels = list(labels)
    return SessionView(made)


def told(view: SessionView) -> list[Any]:
    """The labels by turn, absent ones by their reason."""
    found = [r.value for r in measure(view) if r.signal.path == LABEL and r.turn is not None]
    return [v.reason if isinstance(v, Absent) else v for v in found]


# -- of a message ------------------------------------------------------------------------------------------------------


def test_a_label_is_the_message_s_value_and_a_message_without_one_says_so() -> None:
    view = labelled(label(0, "NEUTRAL"), label(2, "NEGATIVE", reason="says it is wrong"))
    assert told(view) == ["NEUTRAL", "backend_disabled", "NEGATIVE"]
    assert lines(view, LABEL) == [1, 5]


def test_the_reason_the_labeller_and_the_prompt_are_kept() -> None:
    view = labelled(label(0, "POSITIVE", reason="thanks", model="m", prompt_hash="p1"), turns=1)
    found = next(r for r in measure(view) if r.signal.path == LABEL)
    assert found.detail == {"labeller": "model", "model": "m", "prompt_hash": "p1", "reason": "thanks"}


def test_without_a_label_nothing_is_said_of_any_message() -> None:
    assert told(labelled()) == []
    assert absent(labelled(), SAID) == ("backend_disabled", "no sentiment label")


def test_labels_of_other_tasks_and_of_the_whole_session_are_not_of_messages() -> None:
    assert absent(labelled(label(0, "NEGATIVE", task="pushback"), label(None, "NEGATIVE")), SAID)[0] == (
        "backend_disabled"
    )


def test_a_label_of_the_whole_session_alone_is_of_no_message() -> None:
    assert told(labelled(label(None, "NEGATIVE"))) == []


def test_words_that_are_no_label_are_a_parse_error_and_no_label_of_anything() -> None:
    view = labelled(label(0, "mixed feelings"), label(1, " negative\n"))
    assert told(view) == ["parse_error", "NEGATIVE", "backend_disabled"]
    assert [m[1] for m in value(view, SAID)["model"]["messages"]] == [None, "NEGATIVE", None]


@pytest.mark.parametrize("kind", ["plan_handoff", "attachment", "slash_command"])
def test_what_nobody_said_in_words_has_no_sentiment_even_when_labelled(kind: Any) -> None:
    made = session(user("/x", kind), user("no"))
    made.labels = [label(0, "NEGATIVE"), label(1, "NEGATIVE")]
    assert told(SessionView(made)) == ["not_applicable", "NEGATIVE"]
    assert value(SessionView(made), SAID)["model"]["messages"] == [[2, "NEGATIVE", None]]


def test_of_two_labels_of_one_message_the_younger_counts() -> None:
    view = labelled(label(0, "POSITIVE", created_at=9), label(0, "NEGATIVE", created_at=5), turns=1)
    assert told(view) == ["POSITIVE"]
    assert value(view, SAID) == {"model": {"at": 9, "messages": [[1, "POSITIVE", "claude-opus-4-5"]]}}


def test_labellers_are_never_mixed_in_one_session() -> None:
    view = labelled(label(0, "NEUTRAL", "a"), label(1, "NEUTRAL", "a"), label(2, "NEGATIVE", "b", created_at=9))
    assert told(view) == ["NEUTRAL", "NEUTRAL", "backend_disabled"]
    assert list(value(view, SAID)) == ["a", "b"]


def test_a_message_is_said_to_the_model_of_the_last_answer_before_it() -> None:
    made = session(
        user("first"), say("x", model="one"), say("y", model="two"), user("second"), user("third"),
        say("z", model="three"), say("s", model="sub", thread="agent"), user("fourth"),
    )  # fmt: skip
    made.labels = [label(n, "NEUTRAL") for n in range(4)]
    assert [m[2] for m in value(SessionView(made), SAID)["model"]["messages"]] == ["one", "two", "two", "three"]


def test_without_an_answer_a_message_was_said_to_the_session_s_model() -> None:
    made = session(user("a"), user("b"), say("x", model="late"), model="main")
    made.labels = [label(0, "NEUTRAL"), label(1, "NEUTRAL")]
    assert [m[2] for m in value(SessionView(made), SAID)["model"]["messages"]] == ["late", "main"]
    unknown = session(user("a"), call("Read", path="x"))
    unknown.labels = [label(0, "NEUTRAL")]
    assert value(SessionView(unknown), SAID)["model"]["messages"] == [[1, "NEUTRAL", None]]


def test_the_messages_that_could_be_labelled_are_the_evidence() -> None:
    made = session(user("a"), user("/clear", "slash_command"), user("b"))
    made.labels = [label(0, "NEUTRAL")]
    assert [i.line for i in evidence(SessionView(made), SAID).items] == [1, 3]


# -- of all sessions ---------------------------------------------------------------------------------------------------


def said(letters: str, labeller: str = "model", at: int = 0, model: str | None = "m") -> dict[str, Any]:
    """A session by its labels: `0-+` is three turns; a blank is a turn that is nobody's words."""
    messages = [[n + 1, LETTERS[c], model] for n, c in enumerate(letters) if c != " "]
    return {labeller: {"at": at, "messages": messages}}


def over(name: str, *sessions: dict[str, Any]) -> Any:
    return by_path(f"corpus.{name}").function(sentiment_messages=list(sessions))


FINDINGS = (
    "neutral_share", "pure_neutral_session_share", "neg_by_turn_curve[]", "neg_pct_turn5", "recovery_rate",
    "post_negative_shift", "neg_share_by_model[]",
)  # fmt: skip


@pytest.mark.parametrize("name", FINDINGS)
def test_without_labels_every_finding_waits_for_a_judge(name: str) -> None:
    assert over(name) == Absent("backend_disabled", "no sentiment label")
    assert by_path(f"corpus.{name}").status == "needs a judge"
    assert f"corpus.{name}" in {row["path"] for row in inventory(status="needs a judge")}


def test_shares_are_of_labelled_messages() -> None:
    found = over("neutral_share", said("00-?"), said("+0"))
    assert (found.value, found.detail["num"], found.detail["den"]) == (0.6, 3, 5)
    assert (found.detail["neg_share"], found.detail["pos_share"], found.detail["labeller"]) == (0.2, 0.2, "model")
    assert over("neutral_share", said("??")) == Absent("not_computable", "zero_denominator")


def test_a_session_is_neutral_when_all_of_it_is_and_left_out_when_that_cannot_be_told() -> None:
    found = over("pure_neutral_session_share", said("00"), said("0"), said("0-"), said("+?"), said("0?"), said("??"))
    assert (found.value, found.detail["den"], found.detail["n_excluded"]) == (0.5, 4, 1)


def test_the_curve_has_ten_turns_and_the_rest() -> None:
    found = over("neg_by_turn_curve[]", said("0-" + "0" * 8 + "--0"), said("-"), said("0? -"))
    points = plain(found.value)
    assert [p["turn"] for p in points] == list(range(1, 12))
    assert [(p["neg"], p["n"]) for p in points] == [
        (1, 3), (1, 1), (0, 1), (1, 2), *[(0, 1)] * 6, (2, 3),
    ]  # fmt: skip
    assert points[1]["rate"] == 1.0 and points[0]["ci_low"] == pytest.approx(0.0513 / 3, abs=1e-3)
    assert all(p["low_n"] for p in points)
    assert (found.detail["plateau"], found.detail["plateau_n"]) == (pytest.approx(2 / 9), 9)
    cohort = found.detail["cohort"]
    assert [(p["neg"], p["n"]) for p in cohort[:4]] == [(0, 1), (1, 1), (0, 1), (0, 1)]


def test_a_turn_nobody_labelled_has_no_rate() -> None:
    point = plain(over("neg_by_turn_curve[]", said("0")).value)[4]
    assert (point["n"], point["rate"], point["ci_low"]) == (0, None, None)


def test_a_point_of_thirty_messages_is_not_flagged() -> None:
    points = plain(over("neg_by_turn_curve[]", *[said("00")] * 29, said("0")).value)
    assert [p["low_n"] for p in points[:2]] == [False, True]


def test_the_fifth_turn_counts_what_nobody_said_as_a_turn() -> None:
    found = over("neg_pct_turn5", said("0000-"), said("00 00"), said(" 000 -"))
    assert (found.value, found.detail["n"]) == (0.5, 2)
    assert over("neg_pct_turn5", said("0000")) == Absent("not_computable", "no session reaches turn 5")


def test_recovery_is_a_positive_message_after_a_negative_opening() -> None:
    found = over("recovery_rate", said("-0+"), said("-0"), said("-"), said("0+"), said("0"), said(" -+"), said("+"))
    assert (found.value, found.detail["den"]) == (pytest.approx(1 / 3), 3)
    assert (found.detail["multi_turn"], found.detail["neutral_first"]) == (0.5, 0.5)
    assert over("recovery_rate", said("0+")) == Absent("not_computable", "zero_denominator")


def test_after_the_first_negative_message_counts_neither_it_nor_openings() -> None:
    found = over("post_negative_shift", said("0-+-0"), said("--+"), said("00"))
    assert found.value == {
        "neg_base": pytest.approx(4 / 10),
        "neg_after": pytest.approx(1 / 3),
        "pos_base": pytest.approx(2 / 10),
        "pos_after": pytest.approx(1 / 3),
    }
    assert (found.detail["n_base"], found.detail["n_after"]) == (10, 3)
    assert over("post_negative_shift", said("00")).value["neg_after"] is None


def test_models_with_fewer_than_a_hundred_messages_are_hidden() -> None:
    found = over(
        "neg_share_by_model[]",
        said("-" * 20 + "0" * 80, model="calm"), said("-" * 30 + "0" * 70, model="a"), said("-" * 99, model="thin"),
        said("-" * 200, model=None), said("?" * 200, model="unjudged"),
    )  # fmt: skip
    assert [(r["model"], r["n"], r["neg_rate"]) for r in plain(found.value)] == [("calm", 100, 0.2), ("a", 100, 0.3)]
    assert plain(found.value)[0]["ci"] == pytest.approx([0.1334, 0.2888], abs=1e-3)
    assert (found.detail["models"], found.detail["hidden"]) == (3, 1)


def test_the_store_s_values_are_of_the_labeller_with_most_labels_then_of_the_younger() -> None:
    many, few = said("000"), said("--", "other", at=9)
    assert over("neutral_share", many, few).detail["labeller"] == "model"
    assert over("neutral_share", {**said("00", at=1), **said("--", "other", at=2)}).detail["labeller"] == "other"
    assert over("neutral_share", {**said("0??", at=9), **said("--", "other")}).detail["labeller"] == "other"


# -- two labellers -----------------------------------------------------------------------------------------------------


def test_two_labellers_are_compared_on_the_messages_both_labelled() -> None:
    one = {**said("00-+?0"), **said("0--0+", "other")}
    found = over("labeller_agreement", one, said("000"), said("--", "third"))
    assert (found.value["n"], found.value["agreement"], found.detail["labellers"]) == (4, 0.5, ["model", "other"])
    assert found.value["confusion"]["NEUTRAL"] == {"NEGATIVE": 1, "NEUTRAL": 1, "POSITIVE": 0}
    assert found.value["confusion"]["POSITIVE"] == {"NEGATIVE": 0, "NEUTRAL": 1, "POSITIVE": 0}


def test_one_labeller_agrees_with_nobody() -> None:
    assert over("labeller_agreement", said("00")) == Absent("backend_disabled", "fewer than 2 labellers")
    assert over("labeller_agreement") == Absent("backend_disabled", "fewer than 2 labellers")
    apart = over("labeller_agreement", said("00"), said("-", "other"))
    assert apart == Absent("not_computable", "no message has labels of both")


def test_a_finding_is_a_measured_value() -> None:
    assert isinstance(over("neutral_share", said("0")), Measured)
