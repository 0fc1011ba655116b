"""`validate`: signals against planted cases and gold, and the figures that the package ships."""

from __future__ import annotations

import json
from collections import Counter
from html import unescape
from pathlib import Path

import msgspec
import polars as pl
import pytest

from agentsignals import inventory
from agentsignals.cli import main
from agentsignals.errors import UsageError
from agentsignals.labels.answers import Outcome
from agentsignals.labels.labellers import labeller
from agentsignals.labels.labellers.rules import Rules
from agentsignals.labels.prompting import Asker, Question
from agentsignals.labels.tasks import Case, Verdict, task, tasks
from agentsignals.labels.units import Unit
from agentsignals.labels.validation import BY_TASK, PLANTED, never_validated, validate
from agentsignals.model import Absent, Turn, TurnKind
from agentsignals.questions.estimates import count
from agentsignals.questions.question import Inputs, NoSessions, Study, Versions
from agentsignals.questions.question import Outcome as StudyOutcome
from agentsignals.signals.catalog import by_path, caption, validation
from agentsignals.stats.validation import Figure, figures, figures_of, misleads, planted, validation_text
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.ui import report as markdown
from agentsignals.ui.document import document
from agentsignals.ui.page import Query
from agentsignals.ui.rendering import answer_of, html
from agentsignals.ui.snapshot import Snapshot
from tests.verbs import printed, printed_json

GOLD = Path(__file__).parents[2].parent / "shared" / "corpus" / "gold"
PROMPTS_GOLD = GOLD / "prompts_gold.jsonl"


def test_the_shipped_figures_of_planted_cases_are_those_of_today() -> None:
    """Stale? `agentsignals labels validate --gold FILES --write src/agentsignals/stats/validation/figures.json`."""
    assert [f for f in figures() if f.truth == PLANTED or "left out of training" in f.truth] == validate()


@pytest.mark.skipif(not GOLD.exists(), reason="the corpus is not on this machine")
@pytest.mark.slow
def test_the_shipped_figures_of_gold_are_those_of_today() -> None:
    assert list(figures()) == validate(sorted(GOLD.glob("*.jsonl")))


def test_a_figure_is_the_share_counted_by_hand() -> None:
    accepted = next(f for f in figures_of("user.session_outcome") if f.value == "accepted")
    (family,) = (f for f in planted() if f.signal == "user.session_outcome")
    assert accepted.true == sum(case.truth == "accepted" for case in family.cases)
    assert accepted.n == len(family.cases)
    assert accepted.precision_interval is not None and accepted.precision is not None
    assert accepted.precision_interval[0] < accepted.precision <= accepted.precision_interval[1]


def test_gold_of_a_file_is_named_with_who_labelled_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        ("no, use tabs instead", "correction"),
        ("now add a test", "non_pushback"),
        ("why are there two of them?", "correction"),
    ]
    file = tmp_path / "mine.jsonl"
    lines = [
        {"session": f"s{n}", "turn": 3, "text": text, "pushback": label, "annotator": "human:ann"}
        for n, (text, label) in enumerate(rows)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    made = tmp_path / "figures.json"
    document = printed_json(capsys, "validate", "--gold", file, "--write", made)
    of_file = [f for f in document["figures"] if f["truth"].startswith("mine.jsonl")]
    correction = next(f for f in of_file if f["value"] == "correction")
    assert (correction["n"], correction["named"], correction["true"]) == (3, 1, 2)
    assert (correction["precision"], correction["recall"]) == (1.0, 0.5)
    assert correction["truth"] == "mine.jsonl, labelled by human:ann"
    assert "chat.pushback_type" not in document["never_validated"]
    assert "anticipation.scope_drift" in document["never_validated"]
    assert len(msgspec.json.decode(made.read_bytes(), type=list[Figure])) == len(document["figures"])


def test_a_file_without_such_labels_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"session": "s", "turn": 1, "mood": "x", "text": "hi"}\n', "utf-8")
    assert main(["validate", "--gold", str(file)]) != 0
    assert "pushback" in capsys.readouterr().err
    assert main(["validate", "--gold", str(tmp_path / "gone.jsonl")]) != 0


def test_what_was_never_validated_says_so_and_what_counts_needs_not() -> None:
    by = {row["path"]: row for row in inventory()}
    assert by["anticipation.scope_drift"]["validation"].startswith("never validated")
    assert "chat.pushback_type" in by["chat.pushback_rate"]["validation"]
    assert by["tokens.input_tokens_total"]["validation"] == ""
    assert by["tokens.input_tokens_total"]["basis"] == "record"
    assert by["user.session_outcome"]["basis"] == "heuristic"
    assert "never" not in by["user.session_outcome"]["validation"]
    assert set(never_validated()).isdisjoint(f.signal for f in figures())


def test_a_figure_of_an_older_version_says_so() -> None:
    figure = figures_of("user.session_outcome")[0]
    assert "measured with version" not in validation(by_path(figure.signal))
    words = validation_text(figure.signal, figure.version + 1, (), basis="heuristic")
    assert f"measured with version {figure.version}" in words


def test_a_class_that_is_mostly_wrong_misleads() -> None:
    low = msgspec.structs.replace(figures()[0], precision=0.49)
    assert low.misleads and not msgspec.structs.replace(low, precision=0.5).misleads
    assert not msgspec.structs.replace(low, precision=None).misleads


def reading_page(store: Store, address: str) -> str:
    """The HTML of a page of the local server."""
    path, _, asked = address.partition("?")
    snapshot = Snapshot(store)
    try:
        return html(answer_of(snapshot, path, Query(asked)), path)
    finally:
        snapshot.close()


@pytest.mark.slow
def test_what_was_measured_stands_beside_the_number_on_every_face(
    demo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One text, whoever shows it: report, page, frame, `inventory`; `explain` has it whole."""
    store, path = Store(demo_folder / "store"), "user.session_outcome"
    of_accepted, of_all = caption(path, ("accepted",)), caption(path)
    assert of_accepted.startswith("heuristic, ") and "accepted precision" in of_accepted
    text = markdown.render(document(store, ["outcomes"]), {})
    assert markdown.escaped(of_accepted) in text and markdown.escaped(of_all) in text
    shown = unescape(reading_page(store, "/studies/outcomes"))
    assert f"signal <code>{path}</code>:" in shown, "its caveat stands once, as a note"
    assert of_all.capitalize() in unescape(reading_page(store, "/signals?text=session_outcome"))
    session = store.signals().filter(pl.col("absent").is_null(), signal=path)["session_id"][0]
    assert of_all in unescape(reading_page(store, f"/session/{session}"))
    assert set(store.signals().filter(signal=path)["validation"]) == {of_all}
    assert set(store.signals().filter(signal="tokens.input_tokens_total")["validation"]) == {""}
    assert validation(by_path(path)) in printed(capsys, "explain", session, path, "--store", store.folder)
    assert "agreement" in printed(capsys, "inventory", "session_outcome")


def test_a_number_of_a_class_carries_that_class_and_any_other_the_weakest() -> None:
    assert "git precision" in caption("chat.prompt_intent", ("git",))
    assert "git precision" not in caption("chat.prompt_intent")
    assert caption("chat.prompt_intent").count(" precision ") == 1 and "language model" in caption("chat.prompt_intent")
    assert caption("chat.pushback_rate").startswith("heuristic, never validated; based on chat.pushback_type")
    assert caption("tokens.input_tokens_total") == caption("no.such_signal") == ""


@pytest.mark.parametrize(
    ("signal", "fewest"),
    [
        ("user.user_turn_count", 30),
        ("dynamics.session_failure_mode", 15),
        ("verification.outcome", 15),
        ("dynamics.repetition_rate", 10),
        ("infra.work_time_s", 8),
        ("user.session_outcome", 15),
    ],
)
def test_what_the_report_rests_on_has_planted_cases_of_every_class(signal: str, fewest: int) -> None:
    cases = [case for family in planted() if family.signal == signal for case in family.cases]
    assert len(cases) >= fewest and len({str(case) for case in cases}) == len(cases)
    measured = [figure for figure in figures_of(signal) if figure.truth == PLANTED]
    assert {figure.value for figure in measured} >= {case.truth for case in cases if case.truth}
    assert all(figure.n == len(cases) and figure.true for figure in measured), "families of one signal are one figure"


def test_no_number_of_a_class_that_misleads_is_a_headline() -> None:
    assert misleads("chat.prompt_intent", ("connect",)) and misleads("chat.prompt_intent")
    assert not misleads("chat.prompt_intent", ("debug",)) and not misleads("tokens.input_tokens_total")

    def study(*classes: str) -> Study:
        finding = count(1, 1, evidence=NoSessions("made up")).finding(
            "f", "F", "prompts", signals=("chat.prompt_intent",), classes=classes, headline=True
        )
        return Study(name="s", title="", question="", queries={}, function=lambda _: StudyOutcome([finding]))

    inputs = Inputs(rows={}, versions=Versions(1))
    assert [study(one).run(inputs).findings[0].headline for one in ("debug", "connect")] == [True, False]


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not GOLD.exists(), reason="the corpus is not on this machine")
def test_messages_of_people_are_read_as_human_turns(corpus_folder: Path) -> None:
    """Those of gold whose session is in the corpus: docs/validation.md has the count."""
    sql = "SELECT session_id, text FROM turns"
    read: dict[str, set[str]] = {}
    for session, text in rows(Store(corpus_folder / "store"), sql)[1]:
        read.setdefault(session, set()).add(" ".join((text or "").split())[:120])
    gold = [json.loads(line) for file in GOLD.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    here = [row for row in gold if row["session"] in read]
    as_read = sum(" ".join(row["text"].split())[:120] in read[row["session"]] for row in here)
    assert (as_read, len(here)) == (276, 281)


# -- judging without a model -------------------------------------------------------------------------------------------


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
    by.ask([Asker(task(name), by.name).question(unit)], lambda q, o: found.append((q, o)))
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
    assert isinstance(said, Verdict) and said.reason == "verdict: “this is ridiculous”"


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
@pytest.mark.parametrize(("name", "column"), [("sentiment", "sentiment"), ("pushback", "pushback_swechat4")])
def test_the_figures_shown_with_the_rules_are_those_of_the_gold_set(name: str, column: str) -> None:
    """Counted by hand here. The gold counts turns from 1; its labels are a language model's."""
    pairs = []
    for row in map(json.loads, PROMPTS_GOLD.read_text("utf-8").splitlines()):
        assert row["split"] == "dev"
        if name != "pushback" or row["turn"] > 1:
            pairs.append((value(name, row["text"], row["turn"] - 1), row[column].replace(" ", "_")))
    figures = [f for f in figures_of(BY_TASK[name][0]) if f.truth.startswith(f"{PROMPTS_GOLD.name},")]
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
