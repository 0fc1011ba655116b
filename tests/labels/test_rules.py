"""Judging without a model: agent-traces's domain rules, and how good the rules were found to be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from agentsignals.errors import UsageError
from agentsignals.labels.answers import Outcome
from agentsignals.labels.labellers import labeller
from agentsignals.labels.labellers.rules import Rules
from agentsignals.labels.prompting import Asker, Question
from agentsignals.labels.tasks import Case, Verdict, task, tasks
from agentsignals.labels.units import Unit
from agentsignals.labels.validation import BY_TASK, rules_measured
from agentsignals.model import Absent, Turn, TurnKind
from agentsignals.stats.validation import figures_of

GOLD = Path(__file__).parents[2].parent / "shared" / "corpus" / "gold" / "prompts_gold.jsonl"


def judged(name: str, text: str, turn: int = 1, kind: TurnKind = "prompt") -> Verdict | Absent:
    """What the rules say of one message, through the door a run uses."""
    unit = Unit(
        session_id="s",
        turn=turn,
        message=Turn(turn=turn, kind=kind, text=text, n_tokens=len(text.split()), timestamp=None, model=None, seq=0),
        parts=(text,),
        case=Case(turn + 1),
    )
    found: list[tuple[Question, Outcome]] = []
    by = labeller("rules")
    by.ask(Asker(task(name), by.name).questions(unit), lambda q, o: found.append((q, o)))
    ((question, outcome),) = found
    assert outcome.text is not None and outcome.calls == 0
    said = by.read(question, outcome.text)
    assert isinstance(said, Verdict | Absent)
    return said


def value(name: str, text: str, turn: int = 1) -> str:
    said = judged(name, text, turn)
    assert isinstance(said, Verdict), said
    return said.value


@pytest.mark.parametrize(
    ("text", "feeling"),
    [
        ("kill that shit and push", "NEUTRAL"),
        ("fuck it, delete the whole branch", "NEUTRAL"),
        ("do it", "NEUTRAL"),
        ("commit and push", "NEUTRAL"),
        ("ci failed", "NEUTRAL"),
        ("please could you refactor this", "NEUTRAL"),
        ("no, use tabs instead", "NEUTRAL"),
        ("what does this do?", "NEUTRAL"),
        ("why would you use the web, i just gave you the file", "NEGATIVE"),
        ("this is ridiculous", "NEGATIVE"),
        ("it still doesn't work!!", "NEGATIVE"),
        ("no, that's wrong, damn", "NEGATIVE"),
        ("great work, but you missed the header. undo that", "NEUTRAL"),
        ("great, let's call it v2", "POSITIVE"),
        ("ok that works", "POSITIVE"),
        ("thanks! now the docs", "POSITIVE"),
        ("```\nthis is ridiculous\n```\nrename it", "NEUTRAL"),
        ("> looks great\nrename it", "NEUTRAL"),
    ],
)
def test_sentiment_follows_seed_000s_rules(text: str, feeling: str) -> None:
    assert value("sentiment", text) == feeling


def test_a_verdict_names_the_words_it_rests_on() -> None:
    said = judged("sentiment", "this is ridiculous")
    assert isinstance(said, Verdict) and said.reason == "frustration: “this is ridiculous”"


@pytest.mark.parametrize(
    ("text", "kind"),
    [("no, use tabs", "correction"), ("revert that", "rejection"), ("tests fail again", "failure_report"),
     ("now add docs", "non_pushback")],
)  # fmt: skip
def test_pushback_is_the_signals_rule(text: str, kind: str) -> None:
    assert value("pushback", text) == kind


def test_intent_is_the_signals_rule_and_repeats_no_label() -> None:
    assert value("prompt_intent", "fix the parser") == "debug"
    assert value("prompt_intent", "hello there") == "other"


def test_other_languages_are_left_alone() -> None:
    assert judged("sentiment", "これは全然だめです、やり直してください") == Absent("not_computable", "language")


@pytest.mark.parametrize("name", sorted(set(tasks()) - {"sentiment", "pushback", "prompt_intent"}))
def test_rules_refuse_what_they_cannot_judge(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Rules().version(task(name))
    assert "openai:" in caught.value.hint


@pytest.mark.parametrize("text", ["a" * 60_000, "ar" * 30_000, "no " * 20_000, "! " * 30_000, "still " * 10_000])
def test_long_and_repetitive_messages_cost_no_time(text: str) -> None:
    for name in ("sentiment", "pushback", "prompt_intent"):
        judged(name, text)


@pytest.mark.corpus
@pytest.mark.skipif(not GOLD.exists(), reason="the corpus is not on this machine")
@pytest.mark.parametrize(
    ("name", "column"), [("sentiment", "sentiment"), ("pushback", "pushback_swechat4"), ("prompt_intent", "intent")]
)
def test_the_figures_shown_with_the_rules_are_those_of_the_gold_set(name: str, column: str) -> None:
    """Counted by hand here. The gold counts turns from 1; its labels are a language model's."""
    pairs = []
    for row in map(json.loads, GOLD.read_text("utf-8").splitlines()):
        assert row["split"] == "dev"
        if name != "pushback" or row["turn"] > 1:
            pairs.append((value(name, row["text"], row["turn"] - 1), row[column].replace(" ", "_")))
    figures = [f for f in figures_of(BY_TASK[name][0]) if f.truth.startswith(f"{GOLD.name},")]
    same = sum(a == b for a, b in pairs)
    named, meant = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(named[c] * meant[c] for c in named) / len(pairs) ** 2
    assert {f.value for f in figures} == set(named) | set(meant)
    for figure in figures:
        hits = pairs.count((figure.value, figure.value))
        assert (figure.n, figure.true, figure.named) == (len(pairs), meant[figure.value], named[figure.value])
        assert figure.agreement == pytest.approx(same / len(pairs), abs=5e-4)
        assert figure.kappa == pytest.approx((same / len(pairs) - chance) / (1 - chance), abs=5e-4)
        assert figure.recall == pytest.approx(hits / meant[figure.value], abs=5e-4)
        assert figure.precision == (pytest.approx(hits / named[figure.value], abs=5e-4) if figure.named else None)


def test_a_run_by_rules_says_how_often_they_were_right() -> None:
    assert "NEGATIVE precision" in rules_measured("sentiment") and "language model" in rules_measured("sentiment")
    assert rules_measured("persona") == ""
