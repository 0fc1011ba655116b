"""Texts, tones, settings and conditions from files: what is refused, before any model is there."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from agentsignals.cli import main
from agentsignals.errors import LabError

from agentsignals_lab import texts
from agentsignals_lab.coding_tasks import task
from agentsignals_lab.conditions import read_conditions
from agentsignals_lab.experiments.setting import SettingConfig, read_setting
from agentsignals_lab.retry_loop import Plan, Work, episodes
from agentsignals_lab.texts import read_contrast
from tests.test_retry import Scripted, fenced, text_of

ROOT = Path(__file__).parents[1]
OWN = ROOT / "src" / "agentsignals_lab" / "sample_study"
TEXTS = """
low = "quiet"
high = "loud"
[classes.quiet]
sea = ["The water lay flat.", "No wind came over the bay."]
wood = ["Snow had covered the path."]
[classes.loud]
sea = ["The waves broke over the wall."]
wood = ["Two saws ran behind the trees."]
"""
TONES = """
[[condition]]
name = "short"
tone = "curt"
[tones.curt]
system = "Python only."
after_failure = ["No: {failure} {left}", "Wrong. {failure}"]
"""


def test_texts_are_read_by_class_and_topic(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(TEXTS)
    read = read_contrast(tmp_path / "t.toml")
    assert (read.low, read.high, read.neutral) == ("quiet", "loud", None)
    assert [topic for topic, _ in read.classes["quiet"]] == ["sea", "sea", "wood"]
    (tmp_path / "t.toml").write_text(TEXTS + "\n")
    assert read_contrast(tmp_path / "t.toml").fingerprint != read.fingerprint
    built_in = texts.contrast()
    assert {built_in.low, built_in.high, built_in.neutral} < set(built_in.classes)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('low = "quiet"', 'low = "still"', "no class 'still'"),
        ('low = "quiet"', 'low = "quiet"\nneutral = "none"', "no class 'none'"),
        ('low = "quiet"', 'low = "loud"', "with itself"),
        ('low = "quiet"\n', "", "can't be read"),
        ("No wind", "A quiet wind", "names its class"),
        ("Two saws ran behind the trees.", "The water lay flat.", "same text is of quiet/sea and of loud/wood"),
        ("No wind came over the bay.", "The water lay flat.", "same text is of quiet/sea and of quiet/sea"),
        ('wood = ["Snow had covered the path."]', "", "not every class has the topic 'wood'"),
        ('wood = ["Two', 'garden = ["Two', "not every class has the topic"),
        ('["Snow had covered the path."]', "[]", "no text of quiet/wood"),
        ('["Snow had covered the path."]', '"Snow"', "can't be read"),
        ("[classes.quiet]", "[[classes.quiet]", "can't be read"),
        ("low =", "lowest = 1\nlow =", "can't be read"),
    ],
)
def test_texts_that_make_no_contrast_are_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in TEXTS
    (tmp_path / "t.toml").write_text(TEXTS.replace(old, new))
    with pytest.raises(LabError, match=says):
        read_contrast(tmp_path / "t.toml")


def test_one_topic_can_not_be_split(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(re.sub(r"wood = .*\n", "", TEXTS))
    with pytest.raises(LabError, match="1 topic"):
        read_contrast(tmp_path / "t.toml")


def test_tones_of_a_file_stand_beside_the_packages_and_say_nothing_hidden(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(TONES)
    file = read_conditions(tmp_path / "c.toml")
    plan = Plan(wording=file.wording, attempts=3)
    asked = task("parse_duration")
    writer = Scripted(*[fenced("def parse_duration(text):\n    return '{left}'\n")] * 3)
    (done,) = episodes(writer, plan, [Work(file.conditions[1], asked, 0)])
    whole = text_of(done.chat)
    assert "Python only." in whole
    back = [row.feedback for row in done.attempts[:2]]
    assert all("'{left}'" in words and re.match(r"No: .* [12]$|Wrong\. ", words) for words in back)
    hidden = [f"parse_duration({case.args[0]!r})" for case in asked.hidden]
    assert not [call for call in hidden if call in whole]
    plain = [row.feedback for row in next(episodes(writer, plan, [Work(file.conditions[0], asked, 0)])).attempts[:2]]
    assert plain[0].startswith("The visible tests do not pass")


def test_a_task_and_attempt_get_one_wording_and_tasks_differ(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(TONES)
    wording = read_conditions(tmp_path / "c.toml").wording
    said = [wording.after_failure(task(name), "x", 0, 1, "curt").pieces[0].text
            for name in ("caesar", "is_leap", "rotate", "spiral", "initials", "to_snake") * 2]  # fmt: skip
    assert said[:6] == said[6:]
    assert set(said) == {"No: x 1", "Wrong. x"}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('[[condition]]\nname = "b"\ntone = "absent"\n', "no tone 'absent'"),
        ("[tones.loud]\nwords = 'a'\n", "tone is wrong"),
        ("[tones.loud]\nafter_failure = []\n", "no words"),
        ("[words]\nquestion = 'a'\n", "can't be read"),
        ('[[condition]]\nname = "b"\ntone = "calm"\n', ""),
    ],
)
def test_tones_that_are_not_there_or_say_nothing_are_refused(more: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(TONES + more)
    if not says:
        assert read_conditions(tmp_path / "c.toml").wording
        return
    with pytest.raises(LabError, match=says):
        read_conditions(tmp_path / "c.toml")


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["lab", *map(str, words), "--json"]) == 1
    return str(json.loads(capsys.readouterr().out)["error"]["message"])


def test_names_are_checked_before_a_model_is_looked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The model is nowhere: whatever is said of it would come too late."""
    np = pytest.importorskip("numpy", reason="numpy is not installed (extra lab)")
    from agentsignals_lab import directions  # noqa: PLC0415

    made = directions.DirectionSet(
        names=("loud",), layers=(1,), vectors=np.ones((1, 1, 4), np.float32), centre=np.zeros((1, 4), np.float32),
        recipe="contrast", texts="", model="m",
    )  # fmt: skip
    directions.write(made, tmp_path / "d.npz")
    condition = '[[condition]]\nname = "up"\ndirection = "{}"\ndose = 1\nlayers = [{}]\n'
    agent = ("agent", "--model", tmp_path / "nowhere", "--directions", tmp_path / "d.npz", "--tasks", "times")
    for name, layer, says in (
        ("desperate", 1, "no direction 'desperate'"),
        ("loud", 2, "no directions at layer 2"),
        ("loud", 1, "can't be loaded"),
    ):
        (tmp_path / "c.toml").write_text(condition.format(name, layer))
        message = refused(capsys, *agent, "--conditions", tmp_path / "c.toml", "--out", tmp_path / "run")
        assert says in message
    (tmp_path / "e.toml").write_text('directions = "d.npz"\nsources = ["desperate"]\n')
    run = (
        "run",
        "grid",
        "--model",
        tmp_path / "nowhere",
        "--config",
        tmp_path / "e.toml",
        "--out",
        tmp_path / "run",
    )
    assert "no source 'desperate'" in refused(capsys, *run)
    assert not (tmp_path / "run").exists()


def own_setting(tmp_path: Path, old: str = "", new: str = "") -> SettingConfig:
    document = (OWN / "setting.toml").read_text()
    assert old in document
    (tmp_path / "setting.toml").write_text(document.replace(old, new, 1) if old else document)
    for name in ("tasks.jsonl", "texts.toml"):
        (tmp_path / name).write_bytes((OWN / name).read_bytes())
    return SettingConfig(file=str(tmp_path / "setting.toml"))


def test_a_setting_is_read_with_hashes_of_its_files(tmp_path: Path) -> None:
    read = read_setting(own_setting(tmp_path))
    assert (read.document.low, read.neutral, read.document.high, len(read.tasks)) == ("kind", "kind", "harsh", 10)
    assert (read.texts.low, read.texts.high) == ("at_ease", "in_need")
    assert set(read.files) == {"setting", "tasks tasks.jsonl", "texts"}
    functions = read_setting(SettingConfig(tasks=3))
    assert (functions.files, functions.document.high, functions.texts.high) == ({}, "pressing", "desperate")
    texts_of_another = SettingConfig(tasks=3, texts=str(tmp_path / "texts.toml"))
    assert read_setting(texts_of_another).texts.high == "in_need"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('high = "harsh"', 'high = "kind"', "with itself"),
        ('high = "harsh"', 'high = "stern"', "no tone 'stern'"),
        ('tasks = "tasks.jsonl"', 'tasks = "nothing"', "no task or family"),
        ('tasks = "tasks.jsonl"', 'tasks = "nowhere.jsonl"', "can't be read"),
        ('tasks = "tasks.jsonl"', 'tasks = "is_leap"', "1 tasks"),
        ('texts = "texts.toml"', 'texts = "none.toml"', "can't be read"),
        ('better = [" x"]', 'better = [" x"]\nworse = ["3"]', "worse words and better ones"),
        ('better = [" x"]', "", "worse words and better ones"),
        ('kind = "next_token"', 'kind = "wish"', "can't be read"),
        ('attempt = "{wrong}"', "", "can't be read"),
        ('attempt = "{wrong}"', 'attempt = " "', "is empty"),
        ("[outcome]", "[result]", "can't be read"),
    ],
)
def test_a_setting_that_can_not_be_is_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=says):
        read_setting(own_setting(tmp_path, old, new))


def test_two_continuations_that_are_one_are_refused(tmp_path: Path) -> None:
    document = (OWN / "setting.toml").read_text()
    (tmp_path / "s.toml").write_text(
        document[: document.index("[outcome]")].replace('"t', f'"{OWN}/t')
        + '[outcome]\nkind = "continuation"\nworse = "{reference}"\nbetter = "{reference}"\n'
    )
    with pytest.raises(LabError, match="are the same"):
        read_setting(SettingConfig(file=str(tmp_path / "s.toml")))


def test_the_documented_conditions_name_directions_and_tones_that_the_package_has() -> None:
    page = (ROOT.parents[1] / "docs" / "lab.md").read_text()
    documents: list[dict[str, Any]] = [
        tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    ]
    conditions = [table for document in documents for table in document.get("condition", ())]
    assert {table["direction"] for table in conditions if "direction" in table} <= set(texts.contrast().classes)
    assert {table["tone"] for table in conditions if "tone" in table} <= set(texts.tones())
    assert any("direction" in table for table in conditions)


def test_tasks_of_a_file_are_listed_with_those_that_can_not_be_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    looping = {
        "task_id": 1,
        "text": "Halve.",
        "code": "def half(n): return n / 2",
        "test_list": ["for n in [2]: half(n)"],
    }
    asked = {**looping, "task_id": 2, "test_list": ["assert half(2) == 1", "assert half(4) == 2"]}
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in (looping, asked)))
    assert main(["lab", "list", "--tasks", str(path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["tasks"] == {"mbpp/2@1": "Halve."}
    ((place, why),) = listed["left_out"].items()
    assert place.endswith("line 1 1")
    assert "no case of half" in why
    assert main(["lab", "list", "--tasks", str(path)]) == 0
    assert "no case of half" in capsys.readouterr().out


# -- the lab's own words -----------------------------------------------------------------------------------------------


NAMES = re.compile(r"calm|patien|confiden|frustrat|despair|desper|\bstuck|stress|anxious|panic", re.IGNORECASE)
STORIES = texts.contrast().classes


@pytest.mark.parametrize("emotion", STORIES)
def test_a_set_is_large_distinct_and_does_not_name_its_emotion(emotion: str) -> None:
    told = [text for _, text in STORIES[emotion]]
    assert len(told) == len(set(told)) == 72
    assert not [text for text in told if NAMES.search(text)]


def test_sets_are_of_one_length_and_share_their_topics() -> None:
    words = [mean(len(text.split()) for _, text in stories) for stories in STORIES.values()]
    assert max(words) / min(words) < 1.05
    assert len({tuple(topic for topic, _ in stories) for stories in STORIES.values()}) == 1


def test_each_sentence_of_an_emotion_is_used_about_equally() -> None:
    firsts = [text.split(". ")[1] for _, text in STORIES["stuck"]]
    uses = [firsts.count(f) for f in set(firsts)]
    assert len(uses) == 4
    assert max(uses) - min(uses) <= 2


def test_a_trajectory_adds_bad_news_stage_by_stage() -> None:
    stages, tasks = texts.trajectory()
    assert {name: len(feedback) for name, feedback in stages.items()} == {
        "start": 0, "first_failure": 1, "repeated_failure": 3, "hidden_tests": 3, "deadline_pressure": 4,
    }  # fmt: skip
    assert len(tasks) >= 4


def test_feedback_keeps_a_hostile_failure_as_it_is() -> None:
    tones = texts.tones()
    assert tuple(tones) == ("neutral", "calm", "pressing", "honest")
    said = {name: tone.feedback("{left} {0.__class__} {failure}", 2) for name, tone in tones.items()}
    assert len(set(said.values())) == len(tones)
    assert all("{left} {0.__class__} {failure}" in words and "Attempts left: 2" in words for words in said.values())
    assert len({tone.system for tone in tones.values()}) > 1


def test_sets_have_a_fingerprint() -> None:
    assert re.fullmatch("[0-9a-f]{12}", texts.fingerprint())


def test_random_directions_beside_a_condition_share_its_place_and_dose(tmp_path: Path) -> None:
    text = "[[condition]]\nname = 'calm words'\ntone = 'calm'\n"
    for name, dose, randoms in (("up", 0.5, 2), ("down", -0.5, 3), ("far", 2.0, 0)):
        text += (
            f"[[condition]]\nname = '{name}'\ndirection = 'calm'\ndose = {dose}\nlayers = [1]\nrandoms = {randoms}\n"
        )
    (tmp_path / "c.toml").write_text(text)
    made = read_conditions(tmp_path / "c.toml").conditions
    assert [one.name for one in made] == [
        "baseline", "calm words", "up", "up, random:1", "up, random:2", "down", "down, random:3", "far",
    ]  # fmt: skip
    assert [one.direction for one in made if one.is_control] == ["random:1", "random:2", "random:3"]
    assert {(one.layers, abs(one.dose)) for one in made if one.is_control} == {((1,), 0.5)}
    only = read_conditions(tmp_path / "c.toml", ["down"]).conditions
    assert [one.name for one in only] == ["baseline", "up, random:1", "up, random:2", "down", "down, random:3"]
    for wrong, says in (("randoms = -1", "can't be read"), ("tone = 'calm'\nrandoms = 2", "steers along nothing")):
        (tmp_path / "c.toml").write_text(f"[[condition]]\nname = 'c'\n{wrong}\n")
        with pytest.raises(LabError, match=says):
            read_conditions(tmp_path / "c.toml")
