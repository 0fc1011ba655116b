"""Refused edits and plans, what came in their place, and what the person said: pairs, the verb, the export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from agentsignals.cli import main
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.stats.intervals import wilson
from agentsignals.views import refusals as rules
from agentsignals.views.refusals import READ, refusals
from tests import build
from tests.claude import SAID, STOP, Log, session

FILE = "/work/shop/app.py"
OLD = "def total(items):\n    return sum(items)"
PRINTED = "def total(items):\n    print('empty', file=sys.stderr)\n    return sum(items)"
LOGGED = "def total(items):\n    logger.warning('empty')\n    return sum(items)"
KEY = "ghp_" + "c3" * 18


def log() -> Log:
    made = Log()
    made.user("Warn of an empty list.")
    return made


def edit(made: Log, new: str, said: str = "updated", old: str = OLD, path: str = FILE) -> None:
    made.ran("Edit", said, error=said != "updated" or None, file_path=path, old_string=old, new_string=new)


def refused(made: Log, words: str = "use our logger", new: str = PRINTED, path: str = FILE) -> None:
    edit(made, new, SAID + words, path=path)


def pairs(made: Log) -> list[tuple[str, str, str]]:
    """Rule, words, and the text that was kept; of a refusal without a pair the reason."""
    of: Session = session(made)
    return [
        (r.rule, (r.words.text or "") if r.words else "", rules.texts(r.kept)[1] if r.kept else r.why_no_pair)
        for r in refusals(of)
    ]


NOTHING = "nothing took its place in the person's turn"


def another_file(made: Log) -> None:
    edit(made, LOGGED, path="/work/shop/other.py")


def another_place(made: Log) -> None:
    edit(made, "TAX = 20", old="TAX = 19")


def next_prompt(made: Log) -> None:
    made.user("And now something else.")
    edit(made, LOGGED)


def failed(made: Log) -> None:
    edit(made, LOGGED, "Error: file was changed")


def the_same(made: Log) -> None:
    edit(made, PRINTED)


@pytest.mark.parametrize(
    ("then", "kept"),
    [
        (lambda made: edit(made, LOGGED), LOGGED),
        (another_file, NOTHING), (another_place, NOTHING), (next_prompt, NOTHING), (failed, NOTHING),
        (the_same, "the same was accepted afterwards"),
        (lambda made: made.say("Fine."), NOTHING),
    ],
)  # fmt: skip
def test_an_edit_of_the_same_place_in_the_turn_of_the_persons_words_is_the_pair(then: object, kept: str) -> None:
    made = log()
    refused(made)
    then(made)  # type: ignore[operator]
    assert pairs(made) == [("refused_edit", "use our logger", kept)]


def test_words_after_a_stop_count_and_silence_makes_no_pair() -> None:
    spoken, silent = log(), log()
    for made in (spoken, silent):
        edit(made, PRINTED, STOP)
    spoken.user("use our logger")
    for made in (spoken, silent):
        edit(made, LOGGED)
    assert pairs(spoken) == [("refused_edit", "use our logger", LOGGED)]
    assert pairs(silent) == [("refused_edit", "", "the person said nothing")]


def test_what_is_refused_again_goes_on_with_the_matter() -> None:
    made = log()
    refused(made, "use our logger")
    refused(made, "no, warning, not info", new=LOGGED.replace("warning", "info"))
    edit(made, LOGGED)
    assert [kept for _, _, kept in pairs(made)] == [LOGGED, LOGGED]
    between = log()
    refused(between, "use our logger")
    refused(between, "not that file", path="/work/shop/other.py")
    edit(between, LOGGED)
    assert pairs(between)[0][2] == NOTHING, "a refusal of another file is another matter"


def test_half_of_the_lines_make_two_edits_of_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    made = log()
    made.ran("Edit", SAID + "no", error=True, file_path=FILE, old_string="alpha = 1\nbeta = 2", new_string="alpha = 3")
    edit(made, "beta = 4\ngamma = 5", old="beta = 2\ngamma = 3")
    assert pairs(made)[0][2] == "beta = 4\ngamma = 5"
    monkeypatch.setattr(rules, "SAME_PLACE", 0.51)
    assert pairs(made)[0][2] == NOTHING


def test_files_written_whole_are_compared_by_what_they_say() -> None:
    made = log()
    made.ran("Write", SAID + "Acme Inc.", error=True, file_path=FILE, content="Copyright 2026 Acme\nAll rights")
    made.ran("Write", "File created", file_path=FILE, content="Copyright 2026 Acme Inc.\nAll rights")
    assert pairs(made) == [("refused_edit", "Acme Inc.", "Copyright 2026 Acme Inc.\nAll rights")]


@pytest.mark.parametrize(
    ("path", "before", "after", "is_pair"),
    [
        ("app.py", "limit = 10", "limit = 30", True),
        ("app.py", "count = 10", "count = 30", False),
        ("other.py", "limit = 10", "limit = 30", False),
    ],
)
def test_patches_are_compared_by_what_they_change(path: str, before: str, after: str, *, is_pair: bool) -> None:
    def patch(path: str, before: str, after: str) -> str:
        return f"*** Begin Patch\n*** Update File: {path}\n@@\n-{before}\n+{after}\n*** End Patch"

    no, yes = patch("app.py", "limit = 10", "limit = 20"), patch(path, before, after)
    refused = build.call("apply_patch", input=no, status="rejected", result="rejected")
    parts = [build.user("More."), refused, build.user("thirty"), build.call("apply_patch", input=yes)]
    (found,) = refusals(build.session(*parts, format="codex", agent="codex"))
    assert (found.kept is not None) == is_pair
    assert rules.texts(found.refused) == ("limit = 10", "limit = 20")


@pytest.mark.parametrize(
    ("plan", "kept"), [("Use a switch.", "Use a switch."), ("Use ifs.", "the same was accepted afterwards")]
)
def test_the_next_accepted_plan_is_the_pair(plan: str, kept: str) -> None:
    made = log()
    made.ran("ExitPlanMode", SAID + "a switch, please", error=True, plan="Use ifs.")
    made.ran("ExitPlanMode", "User has approved your plan.", plan=plan)
    assert pairs(made) == [("refused_plan", "a switch, please", kept)]


def test_other_refused_calls_and_subagents_make_no_pair() -> None:
    made = log()
    made.ran("Bash", SAID + "no stash", error=True, command="git stash")
    made.ran("Bash", "ok", command="git status")
    assert pairs(made) == []


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A refusal with a key and marks of a terminal and of markup in what was said and written."""
    hostile = f"use our logger, {KEY} \x1b[31m<script>alert(1)</script>"
    made = log()
    refused(made, hostile)
    edit(made, LOGGED)
    quiet = Log("6f1d2c3b-0000-4000-8000-000000000002")
    quiet.user("Hello.")
    quiet.say("Hello.")
    (tmp_path / "in").mkdir()
    for n, one in enumerate((made, quiet)):
        (tmp_path / "in" / f"s{n}.jsonl").write_bytes(one.data())
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    return tmp_path / "store"


def test_the_verb_lists_pairs_with_the_measured_precision(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["refusals", "--json", "--store", str(store)]) == 0
    out = capsys.readouterr().out
    told = json.loads(out)
    (pair,) = told["pairs"]
    assert (pair["rule"], pair["refused"], pair["kept"], pair["path"]) == ("refused_edit", PRINTED, LOGGED, "app.py")
    assert pair["refused_seq"] < pair["words_seq"] < pair["kept_seq"]
    edits = told["rules"][0]
    right, read = READ["refused_edit"]
    assert (edits["refusals"], edits["pairs"], edits["right"], edits["read"]) == (1, 1, right, read)
    assert (edits["precision_low"], edits["precision_high"]) == pytest.approx(wilson(right, read))
    assert KEY not in out
    assert main(["refusals", "--store", str(store)]) == 0
    text = capsys.readouterr().out
    assert "logger.warning" in text and "15 of 18, 83.3%" in text
    assert KEY not in text and "\x1b" not in text
    assert main(["refusals", "--json", "--store", str(store), "--where", "n_prompts > 9"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == []


def test_a_pair_is_exported_with_the_calls_alone_and_the_words_apart(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["export", "--to", "training", "--kind", "refusals", "-o", str(out), "--store", str(store), "--quiet"]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tables"] == {"refusals examples": 1} and "left out: 1: no edit or plan was refused" in told["notes"]
    (example,) = [json.loads(line) for line in (out / "data" / "train.jsonl").read_text("utf-8").splitlines()]
    assert [message["role"] for message in example["prompt"]] == ["user"]
    texts = []
    for side in ("rejected", "chosen"):
        (message,) = example[side]
        assert (message["role"], message["content"]) == ("assistant", "")
        texts.append(message["tool_calls"][0]["function"]["arguments"]["new_string"])
    assert texts == [PRINTED, LOGGED]
    assert example["words"].startswith("use our logger") and "use our logger" not in json.dumps(example["prompt"])
    assert KEY not in (out / "data" / "train.jsonl").read_text("utf-8")
    card = (out / "README.md").read_text("utf-8")
    assert "15 of 18, 83.3% (61% to 94%)" in card and "known not to be earned" not in card
    features = {f["name"] for f in yaml.safe_load(card.split("---")[1])["dataset_info"]["features"]}
    assert features == set(example)
