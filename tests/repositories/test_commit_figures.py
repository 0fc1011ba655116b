"""What `attribute` says of a repository, in figures worked out by hand."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.ingest.collection import attribute_repository
from tests.repositories.story import Story, block


def written(story: Story) -> None:
    """10 lines, of which the agent takes back 2, a person 3 before the commit and 1 after it; and a person's own 2, of
    which 1 goes."""
    story.begun(5)
    with story.agent("writer") as a:
        a.write("new.py", block("new", 10))
        a.edit("new.py", "new_0 = compute('new', 0)\nnew_1 = compute('new', 1)\n", "")
    story.human("new.py", "".join(story.text("new.py").splitlines(True)[3:]))
    story.human("app.py", story.text("app.py") + block("own", 2))
    story.commit("made", a)
    story.human("new.py", "".join(story.text("new.py").splitlines(True)[1:]))
    story.human("app.py", "".join(story.text("app.py").splitlines(True)[:-1]))
    story.commit("after")


def test_survival_by_every_definition(tmp_path: Path) -> None:
    story = Story(tmp_path)
    written(story)
    told = story.attributed().survival
    counts = told.eventual
    assert (counts.produced, counts.overwritten_by_self, counts.overwritten_by_other_session, counts.committed) == (
        10, 2, 0, 5,
    )  # fmt: skip
    assert (counts.efficiency, counts.survival) == (5 / 10, 5 / 8)
    assert (told.strict.commits, told.strict.efficiency_mean, told.strict.survival_mean) == (1, 5 / 10, 5 / 8)
    assert (told.window.efficiency_of_lines, told.window.survival_of_lines) == (5 / 10, 5 / 8)
    alive = told.alive_at_head
    assert (alive.agent, alive.agent_alive, alive.other, alive.other_alive) == (5, 4, 2, 1)


def test_lines_survive_in_commits_that_name_no_checkpoint_too(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(5)
    with story.agent("writer") as a:
        a.write("before.py", block("before", 10))
    story.human("before.py", "".join(story.text("before.py").splitlines(True)[2:]) + block("typed", 3))
    story.commit("without a name")
    with a:
        a.write("named.py", block("named", 6))
        a.write("after.py", block("after", 4))
    story.commit("named", a, add="named.py")
    story.commit("after")
    told = story.attributed()
    assert (told.commits, told.lines) == (1, {"agent_exact": 6})
    assert (told.survival.eventual.produced, told.survival.eventual.committed) == (20, 8 + 6 + 4)


def test_the_signal_of_survival_becomes_available_with_its_counts(tmp_path: Path) -> None:
    story = Story(tmp_path)
    written(story)
    story.attributed()
    [(value, detail)] = story.rows("SELECT number, detail FROM signals WHERE signal = 'chat.code_survival_rate'")
    assert value == 0.5
    assert json.loads(detail)["labeller"] == "attribution"
    assert (json.loads(detail)["produced"], json.loads(detail)["committed"]) == (10, 5)


def test_a_session_has_the_mode_of_all_its_commits(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(5)
    a, b = story.agent("both"), story.agent("vibe")
    with a:
        a.write("one.py", block("one", 6))
    story.commit("first", a)
    a.prompt()
    a.say()
    story.human("two.py", block("two", 6))
    story.commit("second", a)
    with b:
        b.write("three.py", block("three", 6))
    story.commit("third", b)
    assert story.attributed().modes == {
        "replayed": {"human_only": 1, "vibe": 2},
        "recorded": {},
        "sessions": {"collaborative": 1, "vibe": 1},
    }
    rows = story.rows("SELECT value, number FROM labels WHERE task = 'coding_mode'")
    assert sorted(rows) == [("collaborative", 0.5), ("vibe", 1.0)]


@pytest.mark.slow
def test_sessions_of_other_repositories_keep_their_labels(tmp_path: Path) -> None:
    for name in ("one", "two"):
        story = Story(tmp_path / name).begun(5)
        with story.agent(name) as a:
            a.write("new.py", block(name, 6))
        story.commit("made", a)
        story.publish()
        attribute_repository(str(story.root), tmp_path / "store", jobs=1)
    labels = story.rows("SELECT session_id, number FROM labels WHERE task = 'code_survival'")
    assert sorted(number for _, number in labels) == [1.0, 1.0]


@pytest.mark.slow
def test_a_second_time_nothing_is_done_unless_something_is_new(tmp_path: Path) -> None:
    story = Story(tmp_path)
    written(story)
    first = story.attributed()
    again = attribute_repository(str(story.root), tmp_path / "store", jobs=1)
    assert (first.unchanged, again.unchanged) == (False, True)
    assert again.survival == first.survival
    story.human("app.py", block("other", 3))
    story.commit("news")
    third = attribute_repository(str(story.root), tmp_path / "store", jobs=1)
    assert (third.unchanged, third.commits_seen) == (False, first.commits_seen + 1)


def test_without_checkpoints_commits_are_found_by_the_files_that_sessions_changed(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(5)
    with story.agent("free") as a:
        a.write("new.py", story.are("agent", block("new", 12)))
    story.commit("made")
    story.human("other.py", block("other", 4))
    story.commit("unrelated")
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "one.jsonl").write_bytes(a.log.data())
    assert main(["analyze", str(folder), "--no-report", "--store", str(tmp_path / "store"), "--quiet"]) == 0
    told = attribute_repository(str(story.root), tmp_path / "store", jobs=1)
    assert (told.checkpoints, told.commits, told.lines) == (0, 1, {"agent_exact": 12})
    assert story.score().right == 12


@pytest.mark.slow
def test_a_commit_of_46_000_lines_takes_seconds_and_is_not_dropped(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.human("old.py", block("old", 100))
    story.commit("base")
    with story.agent("large") as a:
        a.write("large.py", block("large", 23_000))
        a.bash("make table", {"table.py": block("table", 23_000)})
    story.commit("large", a)
    began = time.process_time()
    told = story.attributed()
    assert time.process_time() - began < 20
    assert (told.lines["agent_exact"], sum(told.lines.values())) == (23_000, 46_000)


def test_the_document_has_what_the_contract_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(tmp_path)
    written(story)
    story.publish()
    assert main(["attribute", str(story.root), "--store", str(tmp_path / "store"), "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    keys = {"checkpoints", "checkpoints_linked", "unlinked", "commits", "modes", "agreement_with_record", "survival"}
    assert keys <= told.keys()
    assert {"n", "mae", "r"} <= told["agreement_with_record"].keys()
    assert (told["checkpoints"], told["checkpoints_linked"], told["commits"]) == (1, 1, 1)
    assert main(["attribute", str(story.root), "--store", str(tmp_path / "store"), "--quiet"]) == 0
    assert "1 of 1 linked to commits" in capsys.readouterr().out


def test_unknown_lines_are_in_the_bounds_and_the_estimate_says_how_they_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(tmp_path)
    with story.agent("works") as agent:
        agent.write("app.py", block("new", 6))
        agent.bash("./run-something")
        story.put("typed.py", block("typed", 4))
    story.commit("both", agent)
    share = story.attributed().share
    assert (share.n, share.unknown, share.low, share.high, share.likely) == (10, 4, 0.6, 1.0, 0.8)
    assert main(["attribute", str(story.root), "--store", str(tmp_path / "store"), "--quiet"]) == 0
    page = capsys.readouterr().out
    assert "60.0 to 100.0 % of 10 authored lines; 40.0 % unknown" in page
    assert "80.0 % with an unknown line counted for half; no comparable commit here tells how far off it is" in page


@pytest.mark.parametrize("given", ["nowhere", "--help-me", "git:"])
def test_what_is_no_repository_is_said_in_a_sentence(
    given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attribute", "--store", str(tmp_path / "store"), "--json", "--", given]) in (1, 2)
    assert json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_commit_whose_objects_are_missing_has_no_figures_rather_than_zeros(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(5)
    with story.agent("writer") as a:
        a.write("new.py", block("new", 10))
    sha = story.commit("made", a)
    oid = story.git("rev-parse", f"{sha}:new.py")
    (story.root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    story.attributed()
    rows = story.rows(f"SELECT files, added, flags FROM commits WHERE commit_sha = '{sha}'")
    assert rows == [(None, None, ["diff_unreadable"])]
