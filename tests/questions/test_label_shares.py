"""Shares of messages that a rule or a classifier names: a lower bound, and the mean of calibrated probabilities."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentsignals.model import Label, Session
from agentsignals.questions import studies as analysis
from agentsignals.questions.findings import Reader
from agentsignals.questions.label_shares import rules_recall_text
from agentsignals.questions.question import Finding
from agentsignals.store import Store
from agentsignals.words.classifier import shipped
from tests.build import call, say, session, user
from tests.questions.stores import findings, outcome, store_of

N = 100
OBJECTS, GOES_ON = "no, that is wrong, undo it", "now write the next part of the parser please"
STUDIES = ("people", "friction")


def sessions(
    objecting: int,
    labeller: str = "",
    named: int = 0,
    of: int = N,
    task: str = "pushback",
    *,
    with_chances: bool = True,
) -> list[Session]:
    """N sessions of two prompts: the second of `objecting` of them objects; `labeller` labels that of the first `of`,
    and calls `named` of them a correction, each with probability .7, the others with .1."""
    made = []
    for n in range(N):
        second = OBJECTS if n < objecting else GOES_ON
        one = session(
            user("build it"), call("Edit", path="a"), say("done"), user(second), say("ok"), session_id=f"s{n}"
        )
        if labeller and n < of:
            value = ("correction", "non_pushback") if task == "pushback" else ("git", "other")
            chances = dict(zip(value, (0.7, 0.3) if n < named else (0.1, 0.9), strict=True))
            detail = json.dumps({"probabilities": chances}) if with_chances else None
            one.labels.append(Label(task=task, labeller=labeller, turn=1, value=value[n >= named], detail=detail))
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
    assert rules_recall_text().startswith("word rules: recall 9% [5%, 17%] of 89 and 16% [12%, 20%] of 324 prompts")


@pytest.mark.parametrize("study", STUDIES)
def test_what_a_classifier_labels_is_the_mean_of_its_probabilities(
    pushback: Callable[..., Finding], study: str
) -> None:
    found = pushback(study, 10, "classifier", 25)
    model = shipped("pushback")
    assert model is not None and model.calibration is not None
    error = model.calibration.share_errors[model.classes.index("non_pushback")]
    assert found.value == pytest.approx(0.25 * 0.7 + 0.75 * 0.1)
    assert found.interval is not None and not found.at_least
    low, high = found.interval
    assert low < found.value - 1.9 * error and high > found.value + 1.9 * error, "another project's error is in it"
    assert "mean probability by classifier, which named 25%" in found.note
    assert "word rules find 10 of 100" in found.note
    assert found.validation.startswith("classifier: kappa") and "unseen projects" in found.validation


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
def test_intents_by_the_classifier_are_means_of_probabilities(tmp_path: Path) -> None:
    """A label without probabilities, by an older version, makes the share a count."""
    made = sessions(0, "classifier", 50, task="prompt_intent")
    for one in made:  # the first prompts' labels
        one.labels[-1] = msgspec.structs.replace(one.labels[-1], detail='{"probabilities": {"other": 1.0}}')
    found = findings(store_of(tmp_path / "s", *made), "intents")
    assert found["intent.git"].value == pytest.approx((50 * 0.7 + 50 * 0.1) / (2 * N))
    assert "which named 25%" in found["intent.git"].note
    assert found["activity.writing"].value == 0
    older = findings(
        store_of(tmp_path / "older", *sessions(0, "classifier", 50, task="prompt_intent", with_chances=False)),
        "intents",
    )
    assert older["intent.git"].value == 0.25 and "never validated" in older["intent.git"].note


@pytest.mark.slow
def test_the_labeller_asked_for_is_the_one_taken(tmp_path: Path) -> None:
    made = sessions(10, "openai:m", 20)
    for one, more in zip(made, sessions(10, "hf:n", 30), strict=True):
        one.labels += more.labels
    store, people = store_of(tmp_path / "s", *made), analysis.study("people")
    for name, share in (("openai:m", 0.2), ("hf:n", 0.3)):
        found = people.run(Reader(store, [people], labeller=name).inputs(people))
        assert next(f.value for f in found.findings if f.id == "people.pushback") == share


def test_sentiment_by_rules_is_a_lower_bound_and_no_share(tmp_path: Path) -> None:
    made = sessions(0)
    for n, one in enumerate(made):
        value = "NEGATIVE" if n < 3 else "NEUTRAL"
        one.labels.append(Label(task="sentiment", labeller="rules", turn=1, value=value))
    found = findings(store_of(tmp_path / "s", *made), "sentiment")
    assert {name: (f.value, f.kind, f.at_least) for name, f in found.items()} == {
        "negative": (3, "count", True),
        "positive": (0, "count", True),
    }
