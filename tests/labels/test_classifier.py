"""The classifier that is shipped, and one made of somebody's own gold: through `label`, `agree` and the training."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentsignals.cli import main
from agentsignals.errors import SourceError, UsageError
from agentsignals.labels import annotation as order
from agentsignals.labels import labellers, training
from agentsignals.labels.labellers import LABELLERS, default_labeller, quality
from agentsignals.labels.tasks import task
from agentsignals.labels.units import answer_end_in, request_in
from agentsignals.model import Label, Turn
from agentsignals.questions.label_shares import Trust, trust
from agentsignals.stats.intervals import mean_probability
from agentsignals.stats.validation import labeller_figure
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.ui.snapshot import Snapshot
from agentsignals.words.classifier import (
    SHIPPED,
    VERSION,
    Model,
    chooses_option,
    features,
    read,
    session_mark,
    shipped,
    shipped_tasks,
)
from tests.labels.stores import session_id, store_of
from tests.ui.served import ask, serving

MESSAGES = (
    ["add a parser for dates", "no, that is wrong, I wanted it in the other module", "commit this and push"],
    ["why does the build fail?", "that still does not work, it crashes", "yes"],
)
OBJECTS = ("no that is wrong", "this is not what I wanted", "you missed the second case", "still broken")
GOES_ON = ("please commit this", "add a test for the parser", "what does this function do", "yes go ahead")
RARE = "zanzibar"
"""A word of one project alone."""


def message(text: str, turn: int = 1) -> Turn:
    return Turn(turn=turn, kind="prompt", text=text, n_tokens=len(text) // 4, timestamp=None, model=None, seq=0)


def gold_file(path: Path, n_projects: int = 6, **more: Any) -> Path:
    """Messages of made-up projects, half of which object."""
    draw = random.Random(7)  # noqa: S311  (draws, no secret)
    rows = []
    for project in range(n_projects):
        for n in range(12):
            objects = draw.random() < 0.5
            words = [draw.choice(OBJECTS if objects else GOES_ON), draw.choice(("here", "now", "in main.py", ""))]
            rows.append(
                {
                    "session_id": session_id(100 * project + n // 2 * 2),
                    "turn": n % 2 + 2,
                    "text": " ".join([*words, RARE if project == 0 else ""]).strip(),
                    "label": "correction" if objects else "non_pushback",
                    "project": f"p{project}",
                    "stratum": "random",
                    "annotator": "human:ann",
                    **more,
                }
            )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_of(tmp_path_factory.mktemp("classified"), *MESSAGES)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of made-up gold, written by the training's own command."""
    pytest.importorskip("sklearn")
    folder = tmp_path_factory.mktemp("own")
    file = folder / "own.json"
    assert training.main(["pushback", str(gold_file(folder / "gold.jsonl")), "--out", str(file)]) == 0
    return file


def answered(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main([*map(str, arguments), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", ["pushback", "prompt_intent"])
def test_a_store_is_labelled_by_what_is_shipped(store: Store, capsys: pytest.CaptureFixture[str], name: str) -> None:
    summary = answered(capsys, "label", name, "--by", "classifier", "--store", store.folder)
    model = shipped(name)
    assert model is not None
    assert summary["prompt_hash"] == f"classifier-{model.version}"
    assert summary["labelled"] == (4 if name == "pushback" else 6), "a first message objects to nothing"
    figure = labeller_figure(name, "classifier")
    assert figure is not None and figure.version == model.version, "measured again after training"
    assert summary["measured"] == f"{figure.text(model.version)}; {model.measured}"
    assert figure.text("other") == f"{figure.text(model.version)}, by earlier weights"
    assert set(summary["shares"]) == set(task(name).values)
    assert sum(share["share"] for share in summary["shares"].values()) == pytest.approx(1, abs=0.01)
    assert all(share["low"] <= share["share"] <= share["high"] for share in summary["shares"].values())


@pytest.mark.parametrize(("name", "best"), [("pushback", "classifier"), ("sentiment", "rules")])
def test_the_best_labeller_at_hand_is_the_default(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, best: str
) -> None:
    monkeypatch.setattr(labellers, "find_spec", lambda _: None)
    summary = answered(capsys, "label", name, "--store", store.folder)
    assert summary["labeller"] == best and sum(summary["counts"].values()) == summary["labelled"]
    assert main(["label", name, "--store", str(store.folder)]) == 0
    shown = capsys.readouterr()
    assert ("at least" in shown.out) is (best == "rules")
    assert "kappa" in shown.err and ("lower bounds" in shown.err) is (best == "rules")
    monkeypatch.setattr(labellers, "find_spec", lambda _: object())
    assert default_labeller(task(name)) == "encoder"
    with pytest.raises(UsageError, match="can label the task persona"):
        default_labeller(task("persona"))


def test_help_names_every_labeller_and_the_recommended_ones_kappa(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["label", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    for name in LABELLERS.all():
        assert re.search(rf"\b{name}\b", words), name
    assert "encoder: recommended, needs the extra `encoder` (" in words
    for kind in ("encoder", "classifier"):
        for name in shipped_tasks(kind):
            figure = labeller_figure(name, kind)
            assert figure is not None and f"{figure.kappa:.2f}".lstrip("0") in words, (kind, name)


LEFT_OUT = Path(__file__).with_name("left_out_rows.json")
"""Random rows of projects left out of the encoder's training, as `labels.training --left-out` wrote them: project,
class, class named, scores, file."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pushback", "prompt_intent", "sentiment"])
def test_the_share_shown_is_as_near_to_the_truth_as_the_count_and_its_interval_holds_it(name: str) -> None:
    """Each project's shares by a calibration on four fifths of the others. Project 0, the largest, was judged by models
    trained on the small rest, and is no example of one's own."""
    held = json.loads(LEFT_OUT.read_bytes())[name]
    classes = held["classes"]
    rows = [
        training.Judged(
            training.Example(
                label=label, session_id=str(n), project=str(project), random=True, rules="", annotator="", counted={}
            ),
            named,
            dict(zip(classes, scores, strict=True)),
        )
        for n, (project, label, named, scores, _) in enumerate(held["rows"])
    ]
    shown, counted, covered = [], [], []
    own = [j for j in rows if j.example.project != "0"]
    models = {}
    for group in training.folds([j.example for j in own], 5):
        calibration = training.calibrated([j for j in rows if j.example.project not in group], classes)
        assert calibration is not None
        model = Model(
            task=name, kind="encoder", features_version=VERSION, classes=classes, intercept=[], weights={},
            calibration=calibration, net="f" * 64,
        )  # fmt: skip
        models |= dict.fromkeys(group, (model, calibration.share_errors))
    for project, (model, errors) in models.items():
        of = [j for j in own if j.example.project == project]
        if len(of) < training.FEWEST_RANDOM:
            continue
        chances = [model.probabilities([j.scores[c] for c in classes]) for j in of]
        for at, value in enumerate(classes):
            truth = sum(j.example.label == value for j in of) / len(of)
            parts = [(j.example.session_id, p[at], j.predicted == value) for j, p in zip(of, chances, strict=True)]
            share = mean_probability(parts, errors[at])
            shown += [abs(share.share - truth)] * len(of)
            counted += [abs(share.counted - truth)] * len(of)
            covered += [share.low <= truth <= share.high] * len(of)
    # Most projects have no message with a feeling in so few rows: counting none is near.
    assert sum(shown) <= sum(counted) * (1.15 if name == "sentiment" else 1)
    assert sum(covered) >= 0.93 * len(covered)


def test_a_class_that_is_wrong_as_often_as_right_is_not_shown() -> None:
    assert trust("prompt_intent", "encoder", "debug") == Trust(True, 152 / 174, 174), "random rows, not chosen ones"
    assert trust("prompt_intent", "encoder", "test") == Trust(False, 8 / 16, 16), "as often wrong as right"
    assert trust("pushback", "encoder", "correction") == Trust(True, 76 / 134, 134)
    assert trust("sentiment", "encoder", "NEGATIVE") == Trust(False, 13 / 27, 27)
    assert trust("pushback", "classifier", "correction").n == 133 + 501, "two sets of rows"
    assert trust("prompt_intent", "classifier", "connect") == Trust(False, 2 / 11, 11)
    assert trust("pushback", "classifier", "rejection") == Trust(False), "one label is no measure"
    assert trust("pushback", "rules", "rejection") == Trust(False)
    assert trust("pushback", "rules", "correction") == Trust(True, 40 / 58, 58, "at least")
    assert trust("pushback", "rules", "non_pushback") == Trust(True, 923 / 1307, 1307, "at most")
    assert trust("prompt_intent", "rules", "other") == Trust(False, 160 / 725, 725, "at most")
    assert trust("prompt_intent", "rules", "understand") == Trust(False, 159 / 389, 389), "no bound of anything"
    assert trust("pushback", "human:ann", "rejection") == Trust(True)
    assert trust("pushback", "classifier:gone.json", "correction") == Trust(False)


def test_the_page_says_what_a_classifiers_counts_stand_for(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    summary = answered(capsys, "label", "pushback", "--by", "classifier", "--store", store.folder)
    share = summary["shares"]["rejection"]
    with serving(store) as server:
        text = ask(server, "/labels?task=pushback").text
    assert "Shares by classifier" in text
    assert f"classifier: {quality('classifier', task('pushback'))}." in text, "its kappa stands on the page"
    named = {value for value, n in summary["counts"].items() if n}
    of = trust("pushback", "classifier", "non_pushback")
    assert "non_pushback" not in named or f"{of.precision:.0%} of {of.n:,} right" in text
    assert "rejection" not in named or "not measured" in text
    interval = f"[{share['low']:.0%}, {share['high']:.0%}]"
    assert f"rejection {share['share']:.0%} {interval} (named in {share['counted']:.0%} of 4)" in text


def test_every_page_with_labels_of_rules_says_what_their_counts_bound(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = answered(capsys, "label", "sentiment", "--by", "rules", "--store", store.folder)
    assert main(["measure", "--store", str(store.folder), "--quiet"]) == 0
    n = summary["counts"]["NEUTRAL"]
    with serving(store) as server:
        labels, values = (
            ask(server, path).text for path in ("/labels?task=sentiment", "/signal/corpus.sentiment_label")
        )
        session = ask(server, f"/session/{min(store.manifest.sessions)}").text
    assert f">≤{n}</a> <span" in labels and "97% of 1,484 right" in labels
    assert "97% of 1,484 right" in values and ">rules</span>" in values
    assert "sentiment messages" not in session, "a list of labels, which stand at their turns"


def test_what_is_shipped_holds_words_and_no_sentences() -> None:
    assert shipped_tasks() == ["prompt_intent", "pushback"]
    for name in shipped_tasks():
        model = shipped(name)
        assert model is not None and model.trained_on and model.sessions
        assert len(msgspec.json.encode(model)) < 1_500_000
        for feature in model.weights:
            kind, _, what = feature.partition(":")
            most = {"w": 2, "b": 3, "e": 1, "p": 1}.get(kind)
            assert most is None or len(what.split(" ")) <= most, feature
            assert kind != "c" or len(what) <= 5, feature
        assert not re.search(r"\d{2}|@\w+\.", " ".join(model.weights)), "numbers and addresses are one sign each"


@pytest.mark.slow
def test_a_model_is_made_of_what_several_projects_write(own: Path) -> None:
    model = read(own)
    assert not any(RARE[:4] in name for name in model.weights)
    assert any(name == "w:wrong" for name in model.weights)


@pytest.mark.slow
def test_the_same_files_give_the_same_model_and_others_another(own: Path, tmp_path: Path) -> None:
    held = training.examples([own.parent / "gold.jsonl"], task("pushback"))
    again = training.fitted(held, task("pushback"))
    assert again.weights == read(own).weights
    fewer = training.fitted(held, task("pushback"), share=0.5)
    assert fewer.rows < again.rows and fewer.weights != again.weights
    weaker = training.fitted(held, task("pushback"), strength=read(own).strength / 10)
    largest = [max(abs(row[-1]) for row in model.weights.values()) for model in (weaker, again)]
    assert largest[0] < largest[1]


@pytest.mark.slow
def test_whole_projects_are_left_out(own: Path) -> None:
    held = training.examples([own.parent / "gold.jsonl"], task("pushback"))
    groups = training.folds(held, 4)
    assert len(groups) == 4 and sorted(p for group in groups for p in group) == [f"p{n}" for n in range(6)]
    left_out, curve = training.left_out(held, task("pushback"), training.folds(held, training.FOLDS))
    assert len(left_out) == len(held) and set(curve) == {*training.CURVE, 1.0}
    found = training.held_out(left_out, task("pushback").values)
    assert found.kappa is not None and found.kappa > 0.8, "such easy words are learnt"
    calibration = training.calibrated(left_out, ["correction", "non_pushback"])
    assert calibration is not None and (calibration.rows, calibration.projects) == (len(held) - 12, 5)
    assert max(calibration.share_errors) < 0.1, "projects are drawn alike"


@pytest.mark.slow
def test_a_model_is_never_judged_by_what_it_was_made_from(
    store: Store, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"classifier:{own}"
    answered(capsys, "label", "pushback", "--by", name, "--store", store.folder)
    gold = tmp_path / "gold.jsonl"
    rows = [
        {"session_id": session_id(s), "turn": turn, "text": MESSAGES[s][turn - 1], "label": label}
        for s, turn, label in ((0, 2, "correction"), (0, 3, "non_pushback"), (1, 2, "correction"))
    ]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))
    seen = answered(capsys, "agree", "pushback", name, "--gold", gold, "--store", store.folder)
    assert seen["n"] == 1, "session 0 was among the examples"
    assert seen["left_out"]["seen_in_training"] == 2
    assert any("made from" in warning for warning in seen["warnings"])
    unseen = read(own)
    other = tmp_path / "other.json"
    other.write_bytes(msgspec.json.encode(msgspec.structs.replace(unseen, sessions=[session_mark("another")])))
    answered(capsys, "label", "pushback", "--by", f"classifier:{other}", "--store", store.folder)
    found = answered(capsys, "agree", "pushback", f"classifier:{other}", "--gold", gold, "--store", store.folder)
    assert found["n"] == 3 and "seen_in_training" not in found["left_out"]


@pytest.mark.slow
def test_another_tasks_model_is_refused(store: Store, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for spec, name in ((f"classifier:{own}", "prompt_intent"), ("classifier", "sentiment")):
        assert main(["label", name, "--by", spec, "--store", str(store.folder)]) == 2
        assert "can't label" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: {"classes": model["classes"][:1]}, "lacks weights for a class"),
        (lambda model: {"features_version": 99}, "is of version 99"),
        (lambda model: {"weights": "none"}, "is no classifier"),
        (lambda model: {"kind": "encoder"}, "has no fine-tuned encoder"),
    ],
)
def test_a_file_that_is_no_model_is_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], words: str
) -> None:
    model = json.loads((SHIPPED / "pushback.classifier.json").read_bytes())
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(model | change(model)))
    with pytest.raises(SourceError, match=words):
        read(broken)
    with pytest.raises(SourceError, match="can't be read"):
        read(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("tasks", "more", "words"),
    [
        ("pushback", ("--unseen", "golb.jsonl"), "--unseen golb.jsonl is none of the gold files"),
        ("pushback", ("b/gold.jsonl",), "Two gold files are called gold.jsonl"),
        ("pushback,sentiment", ("--encoder", "--column", "label"), "--column label names one column for 2 tasks"),
    ],
)
def test_arguments_that_would_train_on_something_else_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tasks: str, more: tuple[str, ...], words: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("b").mkdir()
    for name in ("gold.jsonl", "b/gold.jsonl"):
        gold_file(Path(name))
    assert training.main([tasks, "gold.jsonl", *more, "--out", "made"]) == 2
    assert words in capsys.readouterr().err and not Path("made").exists()


def test_no_model_is_made_where_none_can_be_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for of, words in (("pushback", "too few projects"), ("pushback,sentiment", "several tasks")):
        assert training.main([of, str(gold_file(tmp_path / "few.jsonl", 2)), "--out", str(tmp_path / "m.json")]) == 2
        assert words in capsys.readouterr().err
    with pytest.raises(UsageError, match="No classifier"):
        training.examples([], task("persona"))
    one = training.examples([gold_file(tmp_path / "one.jsonl", label="correction")], task("pushback"))
    with pytest.raises(UsageError, match="the same label"):
        training.fitted(one, task("pushback"))


def test_what_a_message_is_counted_by() -> None:
    asked = features(message("Yes, do it in src/a/b.py"), "Shall I change the loader?")
    assert {"w:yes ,", "b:yes", "w:<path>", "p:loader", "h:answers a question", "e:<path>"} <= asked.keys()
    assert "h:short answer to a question" not in asked
    assert "h:short answer to a question" in features(message("yes"), "Shall I change the loader?")
    assert not any(name.startswith("p:") for name in features(message("yes"), None))
    assert "h:no answer before" in features(message("yes"), "")
    far = " ".join(["word"] * 200) + " zebra"
    assert "w:zebra" not in features(message(far), None), "what stands further on is mostly pasted"
    assert "w:zebra" in features(message(far.replace("word ", "", 1)), None)
    long_ago = "zebra " + "x" * 394
    assert "p:zebra" in features(message("yes"), long_ago) and "p:zebra" not in features(message("yes"), long_ago + "x")


def test_the_end_of_an_answer_is_found_in_a_gold_file() -> None:
    shown = "The person's last request:\n| fix it\n\nThe end of the agent's answer:\n| Done.\n| All pass."
    assert answer_end_in(shown) == "Done.\nAll pass."
    assert answer_end_in("The person's last request:\n| fix it") == ""
    assert answer_end_in("Done. All pass.") == "Done. All pass."
    assert request_in(shown) == "fix it" and request_in("Done. All pass.") == ""


@pytest.mark.parametrize(
    ("text", "answer", "takes_one"),
    [
        ("b", "Which do you prefer?\n(a) close it\n(b) close it and add a sentence", True),
        ("2", "1. Move the commit\n2. Leave it\nWhich do you want?", True),
        ("C", "What would you like to do next?\n- **[C]ommit**\n- **[E]dit**", True),
        ("let's go with option 2", "Option 1: a flag. Option 2: a file. Your call.", True),
        ("the second one please", "1. a flag\n2. a file\nShall I take the flag?", True),
        (
            "both files in the single commit",
            "Do you want both files in the single commit, or one after the other?",
            True,
        ),
        ("no, use the other parser", "Done. All tests pass.", False),
        ("that is wrong, the flag goes elsewhere", "1. a flag\n2. a file\nWhich do you want?", False),
    ],
)
def test_an_option_taken_from_the_agents_list_is_known(text: str, answer: str, takes_one: bool) -> None:
    assert chooses_option(text, answer) is takes_one
    assert ("h:chooses an option" in features(message(text), answer)) is takes_one


def test_chances_add_up_and_a_word_moves_them() -> None:
    model = Model(
        task="pushback",
        kind="classifier",
        features_version=VERSION,
        classes=["correction", "non_pushback"],
        intercept=[0.0, 0.0],
        weights={"w:wrong": [2.0, 1.5, -1.5], "h:short": [1.0, 0.1, 0.0]},
    )
    assert model.probabilities(model.scores({})) == [0.5, 0.5]
    chances = model.probabilities(model.scores({"w:wrong": 1.0, "w:unknown": 1.0}))
    assert chances[0] == pytest.approx(0.952574, abs=1e-6)


def test_what_the_classifier_is_least_sure_of_is_labelled_first(tmp_path: Path) -> None:
    messages = ["start", *(f"do thing {n}" for n in range(6))]
    made = store_of(tmp_path, messages)
    chances = {1: 0.9, 2: 0.55, 3: 0.97, 4: 0.6, 5: 0.8, 6: 0.99}
    rows = [
        LabelRow(
            session_id(0),
            Label(
                task="pushback",
                labeller="classifier",
                turn=turn,
                value="correction",
                detail=json.dumps({"probability": chance}),
            ),
        )
        for turn, chance in chances.items()
    ]
    sidecars.write_labels(made.folder, "pushback", "classifier", rows)
    queue = order.of_store(Snapshot(Store(made.folder)).rows, task("pushback"))
    assert [turn for _, turn in queue] == sorted(chances, key=lambda turn: chances[turn])


def test_projects_that_people_labelled_least_come_first(tmp_path: Path) -> None:
    made = store_of(tmp_path, ["start", "a one", "a two"], ["start", "b one", "b two"])
    with_repo = {session_id(0): "/w/much", session_id(1): "/w/little"}
    row = LabelRow(session_id(0), Label(task="pushback", labeller="human:ann", turn=1, value="correction"))
    sidecars.write_labels(made.folder, "pushback", "human:ann", [row])

    def rows(sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        cases = " ".join(f"WHEN '{name}' THEN '{repo}'" for name, repo in with_repo.items())
        return Snapshot(Store(made.folder)).rows(
            sql.replace("s.repo", f"CASE s.session_id {cases} END AS repo"), values
        )

    queue = order.of_store(rows, task("pushback"))
    assert queue[0][0] == session_id(1), "nobody labelled anything there"
