"""Shares of messages that a rule or a classifier names: a flag of the one, corrected of the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsignals.model import Label, Session
from agentsignals.questions import studies as analysis
from agentsignals.questions.findings import Reader
from agentsignals.questions.label_shares import rules_recall_text
from agentsignals.questions.question import Finding
from agentsignals.stats.intervals import corrected_prevalence
from agentsignals.store import Store
from tests.build import call, say, session, user
from tests.questions.stores import findings, outcome, store_of

N = 100
OBJECTS, GOES_ON = "no, that is wrong, undo it", "now write the next part of the parser please"
STUDIES = ("people", "friction")


def sessions(objecting: int, labeller: str = "", named: int = 0, of: int = N, task: str = "pushback") -> list[Session]:
    """N sessions of two prompts: the second of `objecting` of them objects; `labeller` labels that of the first `of`,
    and calls `named` of them a correction."""
    made = []
    for n in range(N):
        second = OBJECTS if n < objecting else GOES_ON
        one = session(
            user("build it"), call("Edit", path="a"), say("done"), user(second), say("ok"), session_id=f"s{n}"
        )
        if labeller and n < of:
            value = ("correction", "non_pushback") if task == "pushback" else ("git", "other")
            one.labels.append(Label(task=task, labeller=labeller, turn=1, value=value[n >= named]))
            if task != "pushback":
                one.labels.append(Label(task=task, labeller=labeller, turn=0, value="other"))
        made.append(one)
    return made


STORES: dict[Any, Store] = {}


@pytest.fixture
def pushback(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Finding]:
    """What a study finds of these sessions; a store of the same ones is made once."""

    def found(study: str, *made: Any) -> Finding:
        if made not in STORES:
            STORES[made] = store_of(tmp_path_factory.mktemp("labelled") / "s", *sessions(*made))
        return findings(STORES[made], study)["pushback"]

    return found


@pytest.mark.parametrize("study", STUDIES)
def test_what_word_rules_find_is_a_count_at_least_with_how_much_they_find(
    pushback: Callable[..., Finding], study: str
) -> None:
    found = pushback(study, 10)
    assert (found.value, found.kind, found.at_least, found.n, found.interval) == (10, "count", True, N, None)
    assert rules_recall_text() in found.note
    assert rules_recall_text().startswith("rules: recall 9% [5%, 17%] (n 89), 16% [12%, 20%] (n 324)")


@pytest.mark.parametrize("study", STUDIES)
def test_what_a_classifier_labels_is_a_share_corrected_and_by_name(
    pushback: Callable[..., Finding], study: str
) -> None:
    """Of the shipped model: 10 of 17 that object and 13 of 59 others, on random rows of projects left out."""
    found = pushback(study, 10, "classifier", 25)
    right = corrected_prevalence(25, N, hits=10, true=17, false_alarms=13, others=59)
    assert right.share is not None and found.value == pytest.approx(right.share)
    assert found.interval == (pytest.approx(right.low), pytest.approx(right.high)) and not found.at_least
    assert (
        "by classifier" in found.note
        and "59% of 17 such and 22% of 59 others" in found.note
        and "the rules flag 10 of 100" in found.note
    )
    assert found.validation.endswith("against a language model, single reader; not a human expert")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labeller", "of", "is_share"),
    [("classifier", N // 2, True), ("classifier", N // 2 - 1, False), ("rules", N, False), ("human:ann", N, True)],
)
def test_labels_count_once_they_are_of_half_the_prompts_and_are_no_rules(
    pushback: Callable[..., Finding], labeller: str, of: int, is_share: bool
) -> None:
    found = pushback("people", 10, labeller, 40, of)
    assert (found.kind == "share") is is_share and found.n == (of if is_share else N)


def test_a_share_by_somebody_whose_recall_nobody_measured_says_so(tmp_path: Path) -> None:
    made = sessions(10, "openai:m", 20)
    for one, more in zip(made, sessions(10, "classifier", 25), strict=True):
        one.labels += more.labels
    found = findings(store_of(tmp_path / "s", *made), "people")["pushback"]
    assert found.value == 0.2 and "by openai:m" in found.note and "never validated" in found.note


@pytest.mark.slow
@pytest.mark.parametrize("there", [None, b"no JSON", b'{"held_out": null}'])
def test_a_classifier_whose_file_says_nothing_corrects_nothing(
    tmp_path: Path, pushback: Callable[..., Finding], there: bytes | None
) -> None:
    file = tmp_path / "mine.json"
    if there is not None:
        file.write_bytes(there)
    found = pushback("people", 10, f"classifier:{file}", 20)
    assert found.value == 0.2 and "never validated" in found.note and "never validated" in found.validation


@pytest.mark.slow
def test_what_cannot_be_told_has_no_share(pushback: Callable[..., Finding]) -> None:
    found = pushback("people", 10, "classifier", 0)
    assert found.value is None and "cannot be told" in found.note


def test_tables_of_what_rules_find_are_lower_bounds(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", *sessions(10))
    for study, table, column in (
        ("agents", "agents.metrics", "pushback"),
        ("intents", "intents.activities", "objected"),
    ):
        shown = next(t for t in outcome(store, study).tables if t.id == table)
        at = [c.key for c in shown.columns].index(column)
        assert any(row[at] is not None for row in shown.rows)
        assert all(row[at] is None or hasattr(row[at], "at_least") for row in shown.rows), study
        assert rules_recall_text() in shown.note


@pytest.mark.slow
def test_intents_by_the_classifier_are_corrected_by_class(tmp_path: Path) -> None:
    """`git` is found in 14 of 16 such, and in 4 of 81 others."""
    found = findings(store_of(tmp_path / "s", *sessions(0, "classifier", 50, task="prompt_intent")), "intents")
    right = corrected_prevalence(50, 2 * N, hits=14, true=16, false_alarms=4, others=81)
    assert found["intent.git"].value == pytest.approx(right.share)
    assert "88% of 16 such and 5% of 81 others" in found["intent.git"].note
    assert not any(name.startswith("activity") for name in found), "of a sum of classes nothing was measured"


@pytest.mark.slow
def test_the_labeller_asked_for_is_the_one_taken(tmp_path: Path) -> None:
    made = sessions(10, "openai:m", 20)
    for one, more in zip(made, sessions(10, "hf:n", 30), strict=True):
        one.labels += more.labels
    store, people = store_of(tmp_path / "s", *made), analysis.study("people")
    for name, share in (("openai:m", 0.2), ("hf:n", 0.3)):
        found = people.run(Reader(store, [people], labeller=name).inputs(people))
        assert next(f.value for f in found.findings if f.id == "people.pushback") == share
