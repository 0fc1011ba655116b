"""Values that a reader gives, and those that a repository gives: they are labels of the session."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, Label
from agentsignals.signals.catalog import inventory, measure
from agentsignals.views.session import SessionView
from tests.build import say, user, view
from tests.signals.ask import absent, detail, evidence, value

JUDGED = {
    "anticipation.instruction_adherence": Label(task="instruction_adherence", labeller="m", turn=None, value="full"),
    "chat.user_persona": Label(task="persona", labeller="m", turn=None, value="nitpicker"),
    "chat.repo_domain": Label(task="repo_domain", labeller="m", turn=None, value="devtools"),
}
SCORED = {
    "anticipation.task_paraphrase_accuracy": Label(
        task="task_paraphrase_accuracy", labeller="m", turn=None, value="3", number=0.75
    ),
    "chat.session_success_score": Label(task="session_success", labeller="m", turn=None, value="82", number=82),
}
NO_JUDGE = ("backend_disabled", "judge")


def turns(made: SessionView, path: str) -> list[tuple[Any, Any]]:
    """Value and detail of every turn that has one."""
    return [(r.value, r.detail) for r in measure(made) if r.signal.path == path]


def talked(*labels: Label) -> SessionView:
    made = view(user("fix the parser"), say("I will fix the parser."), user("thanks"), say("Done."))
    made.session.labels = list(labels)
    return made


@pytest.mark.parametrize("path", [*JUDGED, *SCORED])
def test_without_a_label_it_says_what_is_missing(path: str) -> None:
    assert absent(talked(), path) == NO_JUDGE


@pytest.mark.parametrize("path", JUDGED)
def test_the_label_is_the_value_and_its_labeller_is_told(path: str) -> None:
    known = JUDGED[path]
    label = Label(
        task=known.task,
        labeller="m",
        turn=None,
        value=known.value,
        reason="said so",
        prompt_hash="abc",
        detail='{"confidence":"high"}',
    )
    assert value(talked(label), path) == label.value
    assert detail(talked(label), path) == {
        "labeller": "m", "reason": "said so", "prompt_hash": "abc", "confidence": "high",
    }  # fmt: skip
    assert evidence(talked(label), path).rules == [f"m: {label.value} (said so)"]


@pytest.mark.parametrize("path", SCORED)
def test_a_score_is_a_number(path: str) -> None:
    label = SCORED[path]
    assert value(talked(label), path) == label.number
    spoilt = Label(task=label.task, labeller="m", turn=None, value="none of it")
    assert absent(talked(spoilt), path) == ("parse_error", "label without a number")


def test_who_labelled_most_counts_then_who_did_last() -> None:
    old, young = (
        Label(task="session_success", labeller="a", turn=None, value="10", number=10, created_at=1),
        Label(task="session_success", labeller="b", turn=None, value="20", number=20, created_at=2),
    )
    assert value(talked(old, young), "chat.session_success_score") == 20
    more = Label(task="session_success", labeller="a", turn=0, value="x", number=1, created_at=1)
    assert value(talked(old, young, more), "chat.session_success_score") == 10


def test_no_plan_has_no_optimality() -> None:
    label = Label(task="plan_optimality", labeller="m", turn=None, value="optimal")
    assert absent(talked(label), "anticipation.plan_optimality") == ("not_applicable", "no_plan")
    planned = view(user("fix it"), say("Plan:\n1. Read the parser\n2. Change the parser\n3. Run the tests"), say("ok"))
    planned.session.labels = [label]
    assert value(planned, "anticipation.plan_optimality") == "optimal"


@pytest.mark.parametrize(
    ("text", "intent"),
    [("commit and push", "git"), ("it still crashes, fix it", "debug"), ("what does this function do?", "understand")],
)
def test_without_a_judge_the_shipped_classifier_tells_what_a_prompt_asks_for(text: str, intent: str) -> None:
    ((value, detail),) = turns(view(user(text), say("ok")), "chat.prompt_intent")
    assert (value, detail["method"], detail["labeller"]) == (intent, "classifier", "classifier")
    assert sum(detail["probabilities"].values()) == pytest.approx(1, abs=0.001)


def test_a_prompt_in_another_language_has_no_intent_without_a_judge() -> None:
    made = view(user("これは全然だめです、やり直してください"), say("ok"))
    assert turns(made, "chat.prompt_intent") == [(Absent("not_computable", "language: ja"), None)]


def test_a_judge_is_believed_over_the_classifier() -> None:
    first, second = turns(
        talked(Label(task="prompt_intent", labeller="m", turn=0, value="understand")), "chat.prompt_intent"
    )
    assert (first[0], first[1]["method"], second[1]["method"]) == ("understand", "judge", "classifier")


def test_topics_are_numbers_of_clusters() -> None:
    assert turns(talked(), "chat.prompt_topic_cluster") == []
    first, second = turns(
        talked(Label(task="topic", labeller="kmeans", turn=0, value="tests", number=4)), "chat.prompt_topic_cluster"
    )
    assert (first[0], second[0]) == (4, Absent("not_applicable", "not_clustered"))


def test_the_inventory_says_what_each_waits_for() -> None:
    waits = {row["path"]: row["status"] for row in inventory() if row["status"] != "computed"}
    assert {p: waits.get(p) for p in (*SCORED, "chat.code_survival_rate")} == {
        **dict.fromkeys(SCORED, "needs a judge"),
        "chat.code_survival_rate": "needs a repository",
    }


def test_rules_count_only_where_nobody_else_judged() -> None:
    """Rules judge every message, a model may fail at one: that makes rules no better judge."""
    rules = [Label(task="prompt_intent", labeller="rules", turn=n, value="git", created_at=9) for n in range(2)]
    model = Label(task="prompt_intent", labeller="m", turn=0, value="debug", created_at=1)
    both = talked(*rules, model)
    assert [(v, d["method"], d.get("labeller")) for v, d in turns(both, "chat.prompt_intent")] == [
        ("debug", "judge", "m"),
        ("other", "classifier", "classifier"),
    ]
    alone = talked(*rules)
    assert [(v, d["method"], d["labeller"]) for v, d in turns(alone, "chat.prompt_intent")] == [
        ("git", "regex", "rules")
    ] * 2


def test_a_judge_says_where_the_work_ran_beyond_the_request() -> None:
    made = talked(
        Label(task="conflation_turn", labeller="m", turn=None, value="1", reason="touched the docs", number=1.0)
    )
    assert value(made, "anticipation.conflation_turn") == 1
    assert detail(made, "anticipation.conflation_turn")["method"] == "judge"
    assert evidence(made, "anticipation.conflation_turn").rules == ["m: 1 (touched the docs)"]
    clean = talked(Label(task="conflation_turn", labeller="m", turn=None, value="none"))
    assert absent(clean, "anticipation.conflation_turn") == ("none_found", "method judge, by m")


def test_a_judges_score_of_the_end_stands_before_the_comparison_of_words() -> None:
    made = talked(
        Label(
            task="goal_alignment_at_close", labeller="m", turn=None, value="3", reason="a part is missing", number=0.75
        )
    )
    assert value(made, "anticipation.goal_alignment_at_close") == 0.75
    assert detail(made, "anticipation.goal_alignment_at_close")["labeller"] == "m"
