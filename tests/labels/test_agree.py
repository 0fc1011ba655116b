"""`agree`: two labellers of a store, or one and a gold file, as a person meets it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.labels.agreement import Both, compare, fitting
from agentsignals.labels.tasks import task
from agentsignals.model import Label
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from tests.labels.server import Server
from tests.labels.stores import session_id, store_of
from tests.verbs import printed

GOLD = Path(__file__).parents[2].parent / "shared" / "corpus" / "gold" / "prompts_gold.jsonl"
SESSIONS = (["fix the parser", "do it", "great, thanks"], ["add a test", "this is wrong"])
SECRET = "hf_" + "a" * 30


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two labellers: they share four messages and agree on two of them."""
    made = store_of(tmp_path_factory.mktemp("agree"), *SESSIONS, ["nobody but ann", f"use {SECRET} " + "x" * 300])
    current = task("sentiment").prompt_hash
    give(made, "ann", {(0, 0): "NEUTRAL", (0, 1): "NEUTRAL", (0, 2): "POSITIVE", (1, 1): "NEGATIVE", (2, 0): "NEUTRAL"})
    said = {(0, 0): "neutral", (0, 1): "POSITIVE", (0, 2): "POSITIVE", (1, 1): "NEUTRAL", (2, 1): "odd"}
    give(made, "openai:m", {**said, (1, 0): "NEUTRAL"}, prompt_hash=current, model="m")
    return made


def give(store: Store, name: str, said: dict[tuple[int, int], str], kind: str = "sentiment", **more: Any) -> None:
    rows = [
        LabelRow(session_id(n), Label(task=kind, labeller=name, turn=turn, value=value, **more))
        for (n, turn), value in said.items()
    ]
    sidecars.write_labels(store.folder, kind, name, rows)


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, Any]:
    assert main(["agree", *map(str, arguments), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def gold_file(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_two_labellers_are_compared_where_both_judged(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "sentiment", "ann", "openai:m", "--store", store.folder)
    assert (found["n"], found["sessions"], found["agreement"]) == (4, 2, 0.5)
    # Ann: 2 neutral, 1 positive, 1 negative; the model: 2 neutral, 2 positive.
    assert found["chance"] == (2 * 2 + 1 * 2) / 16
    assert found["kappa"] == {"value": pytest.approx((0.5 - 0.375) / 0.625), "low": None, "high": None}
    assert found["confusion"]["NEUTRAL"] == {"POSITIVE": 1, "NEUTRAL": 1, "NEGATIVE": 0}
    two_sessions = dict.fromkeys(("precision_interval", "recall_interval", "f1_interval"))
    negative = {"n": 0, "said": 1, "precision": 0.0, "recall": None, "f1": 0.0}
    positive = {"n": 2, "said": 1, "precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3)}
    assert found["per_class"]["NEGATIVE"] == negative | two_sessions
    assert found["per_class"]["POSITIVE"] == positive | two_sessions
    assert found["left_out"] == {"no_label": 1, "only_ann": 1, "only_openai:m": 1}
    assert [w.split(" labels")[0] for w in found["warnings"]] == ["1 of 6"]


def test_disagreements_are_shown_with_their_messages(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "sentiment", "ann", "openai:m", "--store", store.folder)
    assert [(p["a"], p["b"], p["n"], p["share"]) for p in found["patterns"]] == [
        ("NEGATIVE", "NEUTRAL", 1, 0.25),
        ("NEUTRAL", "POSITIVE", 1, 0.25),
    ]
    assert found["patterns"][1]["examples"] == [{"session": session_id(0), "turn": 2, "excerpt": "do it"}]
    out = printed(capsys, "agree", "sentiment", "ann", "openai:m", "--store", store.folder)
    assert "NEGATIVE → NEUTRAL, profanity and technical complaints: 1 (25.0%)\n    “this is wrong”" in out
    assert "agreement   50.0%, by chance 37.5%" in out


def by_session(session: int, pairs: str) -> list[Both]:
    """Things that two labelled, a pair of letters each."""
    names = {"c": "correction", "r": "rejection", "n": "non_pushback"}
    said = ((names[a], names[b]) for a, b in pairs.split())
    return [Both(session_id=f"s{session}", turn=at, a=a, b=b) for at, (a, b) in enumerate(said)]


def test_every_figure_has_its_interval_over_sessions() -> None:
    sessions = ["cc nn nn", "cn nn rr", "nn nc cc", "nn nn cc", "rn nn nn cc", "cc nc nn", "nn nn", "cn cc"]
    found = compare(task("pushback"), "a", "b", [b for n, said in enumerate(sessions) for b in by_session(n, said)])
    of = found.per_class["correction"]
    # F1 lies between precision and recall; each end is Student's over the sessions that have the class.
    for value, ends in (
        (of.precision, of.precision_interval),
        (of.recall, of.recall_interval),
        (of.f1, of.f1_interval),
    ):
        assert value is not None and ends is not None and 0.3 < ends[0] < value < ends[1] < 1
    assert found.per_class["rejection"].precision_interval is None, "two sessions have it"
    assert found.agreement_interval is not None and found.agreement is not None
    assert found.agreement_interval[0] < found.agreement < found.agreement_interval[1]
    assert found.ac1 is not None and found.ac1.low is not None and found.ac1.low < found.ac1.value
    assert found.weighted_kappa is None, "these classes have no order"
    fewer = compare(task("pushback"), "a", "b", [b for n in range(5) for b in by_session(n, sessions[n])])
    assert fewer.agreement_interval is None and fewer.ac1 is not None and fewer.ac1.low is None


def test_ordered_classes_and_scores_have_intervals_too() -> None:
    scores = [(3, 4), (0, 0), (2, 2), (4, 4), (1, 2), (4, 3), (0, 1), (3, 3)]
    both = [
        Both(session_id=f"s{n}", turn=None, a=str(a), b=str(b), score_a=a / 4, score_b=b / 4)
        for n, (a, b) in enumerate(scores)
    ]
    found = compare(task("goal_alignment_at_close"), "a", "b", both)
    assert found.scores is not None and found.scores.mean_difference_interval is not None
    for estimate in (found.weighted_kappa, found.scores.icc, found.scores.spearman):
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        assert 0 < estimate.low < estimate.value < estimate.high < 1
    low, high = found.scores.mean_difference_interval
    assert low < found.scores.mean_difference < high


def test_classes_that_are_not_the_tasks_are_shouted_about(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    give(store, "other", {(0, n): ("NEUTRAL", "happy", "sad")[min(n, 2)] for n in range(2)} | {(1, 0): "sad"})
    found = told(capsys, "sentiment", "ann", "other", "--store", store.folder)
    (warning,) = [w for w in found["warnings"] if "other" in w]
    assert "2 of 3" in warning and "'happy'" in warning and "'sad'" in warning and "POSITIVE, NEUTRAL" in warning


def test_secrets_are_masked_before_an_excerpt_is_cut() -> None:
    text = "x" * 150 + f" {SECRET} and more\x1b[31m"
    found = compare(task("sentiment"), "a", "b", [Both(session_id="s", turn=0, a="NEUTRAL", b="NEGATIVE", text=text)])
    (example,) = found.patterns[0].examples
    assert example.excerpt is not None and "hf_" not in example.excerpt and len(example.excerpt) == 160


def test_patterns_come_with_examples_from_several_sessions() -> None:
    both = [Both(session_id=f"s{n}", turn=0, a="NEUTRAL", b="NEGATIVE", text=f"m{n}") for n in range(9)]
    found = compare(task("sentiment"), "a", "b", both)
    assert [e.session for e in found.patterns[0].examples] == ["s0", "s3", "s6"]
    more = compare(task("sentiment"), "a", "b", [Both(session_id="t", turn=0, a="NEGATIVE", b="NEUTRAL"), *both])
    assert [p.n for p in more.patterns] == [9, 1]
    assert found.kappa is None or found.kappa.low is None


@pytest.mark.slow
def test_three_labellers_have_an_alpha_and_three_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Krippendorff by hand: of four messages two are alike; nine labels, the last message has one and says nothing."""
    made = store_of(tmp_path, ["one", "two", "three", "four"])
    for name, said in (("a", "PPN"), ("b", "PNN"), ("c", "PP-P")):
        values = {"P": "POSITIVE", "N": "NEUTRAL"}
        give(made, name, {(0, turn): values[one] for turn, one in enumerate(said) if one in values})
    found = told(capsys, "sentiment", "a", "b", "c", "--store", made.folder)
    # Units PPP, PNP, NN: disagreement seen 2·2·1/2 = 2 (of 8); 5 P and 3 N: blind 2·5·3 = 30.
    assert found["n"] == 3 and found["alpha"]["value"] == pytest.approx(1 - 7 * 2 / 30)
    assert [(p["a"], p["b"], p["n"]) for p in found["pairs"]] == [("a", "b", 3), ("a", "c", 2), ("b", "c", 2)]
    assert main(["agree", "sentiment", "a", "b", "c", "--store", str(made.folder)]) == 0
    assert found["alpha_of"] == "ordinal" and "Krippendorff's alpha (ordinal) 0.53" in capsys.readouterr().out


def test_a_labeller_nobody_knows_shares_nothing(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "sentiment", "ann", "nobody", "--store", store.folder, code=1)
    assert found["n"] == 0 and found["agreement"] is None and found["kappa"] is None
    assert main(["agree", "sentiment", "ann", "nobody", "--store", str(store.folder)]) == 1
    assert "no item has labels of both" in capsys.readouterr().out
    assert told(capsys, "sentiment", "' OR 1=1 --", "ann", "--store", store.folder, code=1)["n"] == 0


@pytest.mark.parametrize(
    ("name", "version", "warns"),
    [("openai:m", "0ld", ["prompt"]), ("rules", "rules-0", ["rules"]), ("rules", "rules-2", [])],
)
def test_labels_of_an_earlier_prompt_ask_for_validation(
    name: str, version: str, warns: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A labeller with a version of its own is told of that, not of the prompt."""
    made = store_of(tmp_path, *SESSIONS)
    give(made, "ann", {(0, 0): "NEUTRAL"})
    give(made, name, {(0, 0): "NEUTRAL"}, prompt_hash=version)
    warnings = told(capsys, "sentiment", name, "ann", "--store", made.folder)["warnings"]
    assert [f"earlier version of the {what}" in said for said, what in zip(warnings, warns, strict=True)] == [
        True
    ] * len(warns)


def test_gold_of_another_codebook_asks_for_validation(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"session_id": session_id(0), "turn": 1, "label": "NEUTRAL", "annotator": "human:eva"}
    path = gold_file(tmp_path, {**row, "prompt_hash": "0ld"})
    (warning,) = told(capsys, "sentiment", "openai:m", "--gold", path, "--store", store.folder)["warnings"][1:]
    assert "another version of the codebook" in warning
    path = gold_file(tmp_path, {**row, "prompt_hash": task("sentiment").prompt_hash})
    assert told(capsys, "sentiment", "openai:m", "--gold", path, "--store", store.folder)["warnings"][1:] == []


def test_gold_is_found_in_the_store_by_session_turn_and_text(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = gold_file(
        tmp_path,
        {"session": session_id(0), "turn": 2, "label": "POSITIVE", "text": "do it"},
        {"session": session_id(0), "turn": 1, "label": "POSITIVE", "text": "great,  thanks"},  # moved by two
        {"session": session_id(0), "turn": 1, "label": "POSITIVE", "text": "something else"},
        {"session": session_id(0), "turn": 9, "label": "POSITIVE"},
        {"session": "elsewhere", "turn": 1, "label": "POSITIVE"},
        {"session": session_id(1), "turn": 2},
        {"session": session_id(1), "turn": 2, "label": "furious"},
    )
    found = told(capsys, "sentiment", "openai:m", "--gold", path, "--store", store.folder)
    assert (found["n"], found["agreement"]) == (2, 1.0)
    assert found["left_out"] == {
        "repeated": 1, "no_such_turn": 1, "session_not_in_store": 1, "no_label": 2, "no_such_class": 1,
    }  # fmt: skip
    assert "not people's" in found["warnings"][-1]


def test_rules_read_a_gold_files_own_texts_without_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "none"))
    path = gold_file(
        tmp_path,
        {"session": "a", "turn": 2, "pushback": "correction", "text": "no, use tabs"},
        {"session": "a", "turn": 1, "pushback": "non pushback", "text": "now add docs"},
        {"session": "b", "turn": 2, "pushback": "Non_Pushback", "text": "now add docs"},
        {"session": "b", "turn": 3, "pushback": "rejection", "text": "これは全然だめです、やり直してください"},
    )
    found = told(capsys, "pushback", "rules", "--gold", path)
    assert (found["n"], found["agreement"]) == (2, 1.0)
    assert found["left_out"] == {"first_turn": 1, "language": 1}


EXCHANGES = (
    ("no, that is not what I asked for, the flag goes into the second parser", "correction"),
    ("yes, go ahead and commit it", "non_pushback"),
    ("it still fails with the same error as before", "failure_report"),
    ("please write a test for the empty list", "non_pushback"),
) * 10


def test_labellers_that_read_texts_judge_a_file_as_it_is_in_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn before is a column of the file, too; intervals are over its projects."""
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "none"))
    rows = [
        {"session": f"s{n}", "turn": 3, "text": text, "prev_agent_tail": "Done. All tests pass.", "label": label,
         "project": f"p{n % 7}", "annotator": "human:ann"}
        for n, (text, label) in enumerate(EXCHANGES)
    ]  # fmt: skip
    path = gold_file(tmp_path, *rows, rows[0] | {"session": "first", "turn": 1})
    alone = told(capsys, "pushback", "classifier", "--gold", path)
    assert (alone["n"], alone["projects"], alone["left_out"]) == (40, 7, {"first_turn": 1})
    assert alone["kappa"]["value"] > 0.5
    both = told(capsys, "pushback", "rules", "classifier", "--gold", path)
    assert [(one["a"], one["n"]) for one in both["labellers"]] == [("rules", 40), ("classifier", 40)]
    out = printed(capsys, "agree", "pushback", "rules", "classifier", "--gold", path)
    assert "intervals over projects" in out
    assert "always non_pushback 40 0.50" in " ".join(out.split()), "of the rows that labellers judge"


def test_a_message_that_comes_ten_times_is_one_example() -> None:
    both = [Both(session_id=f"s{n}", turn=0, a="NEUTRAL", b="NEGATIVE", text=f"m{n % 2}") for n in range(20)]
    (pattern,) = compare(task("sentiment"), "a", "b", both).patterns
    assert sorted(str(example.excerpt) for example in pattern.examples) == ["m0", "m1"]


def test_where_none_can_judge_it_says_why_and_what_helps(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = gold_file(tmp_path, {"session": "elsewhere", "turn": 2, "label": "correction"})
    assert main(["agree", "pushback", "classifier", "--gold", str(path), "--store", str(store.folder)]) == 1
    said = capsys.readouterr().err
    assert "session not in store" in said and "need `text`" in said
    path = gold_file(tmp_path, {"session": "elsewhere", "turn": 1, "text": "no, undo that", "label": "rejection"})
    assert main(["agree", "pushback", "classifier", "--gold", str(path), "--store", str(store.folder)]) == 1
    said = capsys.readouterr().err
    assert "1 first turn" in said and "need `text`" not in said


def test_a_language_model_judges_a_files_texts_where_its_address_is_named(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "none"))
    rows = [{"session": f"s{n}", "turn": 1, "text": f"please do it {n}", "label": "NEUTRAL"} for n in range(3)]
    found = told(capsys, "sentiment", f"openai:tiny@{server.url}", "--gold", gold_file(tmp_path, *rows))
    assert (found["n"], found["agreement"]) == (3, 1.0)


def test_scores_are_compared_as_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = store_of(tmp_path, ["a task for one"], ["a task for two"], ["a task for three"])
    for name, scores in (("human:a", (10, 50, 90)), ("human:b", (20, 60, 100))):
        rows = [
            LabelRow(
                session_id(n),
                Label(task="session_success", labeller=name, turn=None, value=str(score), number=float(score)),
            )
            for n, score in enumerate(scores)
        ]
        sidecars.write_labels(made.folder, "session_success", name, rows)
    found = told(capsys, "session_success", "human:a", "human:b", "--store", made.folder)
    assert found["agreement"] is None and found["confusion"] == {} and found["n"] == 3
    scores = found["scores"]
    assert scores["spearman"]["value"] == pytest.approx(1) and 0.9 < scores["icc"]["value"] < 1
    assert scores["mean_difference"] == -10 and scores["mean_difference_interval"] is None, "three sessions"
    assert main(["agree", "session_success", "human:a", "human:b", "--store", str(made.folder)]) == 0
    assert "mean difference -10.00 (n 3)" in capsys.readouterr().out


def test_steps_that_nobody_gave_still_lie_between() -> None:
    """0 and 4 of 0 to 4 are four steps apart, though no other value occurs; classes without order weigh nothing."""
    both = [Both(session_id=f"s{a}{b}", turn=None, a=a, b=b) for a, b in ("04", "00", "11")]
    found = compare(task("goal_alignment_at_close"), "a", "b", both)
    # Seen: 16 of 3 things. Blind: 2 of 0 and 1 of 1 against 4, 0, 1.
    assert found.weighted_kappa is not None
    assert found.weighted_kappa.value == pytest.approx(1 - 16 * 3 / (2 * 16 + 2 * 0 + 2 * 1 + 9 + 1 + 0))
    other = [Both(session_id="s", turn=1, a="correction", b="rejection")]
    assert compare(task("pushback"), "a", "b", other).weighted_kappa is None


@pytest.mark.parametrize(
    ("name", "said", "label"),
    [
        ("prompt_intent", "create new code", "create_new_code"),
        ("sentiment", " neutral ", "NEUTRAL"),
        ("sentiment", "fine", None),
        ("sentiment", "", None),
        ("goal_alignment_at_close", "5", None),
        ("session_success", "85", "85"),
        ("session_success", "85.5", "85.5"),
        ("session_success", "100.5", None),
        ("session_success", "٨", None),
        ("conflation_turn", "none", "none"),
        ("conflation_turn", "12", "12"),
        ("conflation_turn", "soon", None),
        ("conflation_turn", "9" * 400, None),
    ],
)
def test_labels_are_taken_by_their_words_never_bent(name: str, said: str, label: str | None) -> None:
    assert fitting(task(name), said) == label


@pytest.mark.corpus
@pytest.mark.skipif(not GOLD.exists(), reason="the corpus is not on this machine")
@pytest.mark.parametrize(
    ("name", "column", "n", "agreement", "kappa"),
    [("sentiment", "sentiment", 252, 0.917, 0.67), ("pushback", "pushback_swechat4", 214, 0.603, 0.092)],
)
def test_rules_on_a_language_models_reading_of_real_messages(
    name: str, column: str, n: int, agreement: float, kappa: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures that `label` shows with the rules were computed elsewhere (test_rules); this is the second road."""
    found = told(capsys, name, "rules", "--gold", GOLD, "--column", column)
    assert found["n"] == n
    assert round(found["agreement"], 3) == agreement and round(found["kappa"]["value"], 3) == kappa
    assert found["kappa"]["low"] < kappa < found["kappa"]["high"]
    assert found["gold"] == "a language model, single reader; not a human expert"
    assert "validates nothing" in found["warnings"][0]
    own = Counter(json.loads(line)[column] for line in GOLD.read_text("utf-8").splitlines())
    assert name != "sentiment" or {k: v["n"] for k, v in found["per_class"].items()} == dict(own)
