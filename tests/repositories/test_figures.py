"""What `attribute` says of a repository: figures worked out by hand, shares with their interval, modes, lines that
live today."""

from __future__ import annotations

import json
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.ingest.collection import attribute_repository
from agentsignals.repositories.attribute import Attribution, agreement
from agentsignals.repositories.outcomes import authored, mode_of, share_of
from agentsignals.repositories.replay import AddedLine
from agentsignals.store import Store
from agentsignals.store.tables import CommitRow
from tests.git_repositories import real
from tests.repositories.story import Story, block
from tests.verbs import printed, printed_json


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


@pytest.fixture(scope="module")
def attributed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Attribution]:
    story = Story(tmp_path_factory.mktemp("attributed"))
    written(story)
    return story, story.attributed()


def test_survival_by_every_definition(attributed: tuple[Story, Attribution]) -> None:
    told = attributed[1].survival
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


def test_the_signal_of_survival_becomes_available_with_counts(attributed: tuple[Story, Attribution]) -> None:
    [(value, detail)] = attributed[0].rows(
        "SELECT number, detail FROM signals WHERE signal = 'chat.code_survival_rate'"
    )
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
    labels = Store(tmp_path / "store").sql("SELECT number FROM labels WHERE task = 'code_survival'").fetchall()
    assert sorted(number for (number,) in labels) == [1.0, 1.0]


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


def test_the_document_has_what_the_contract_names(
    attributed: tuple[Story, Attribution], capsys: pytest.CaptureFixture[str]
) -> None:
    story = attributed[0]
    at = ["--store", str(story.folder / "store"), "--quiet"]
    told = printed_json(capsys, "attribute", story.root, *at)
    keys = {"checkpoints", "checkpoints_linked", "unlinked", "commits", "modes", "agreement_with_record", "survival"}
    assert keys <= told.keys()
    assert {"n", "mae", "r"} <= told["agreement_with_record"].keys()
    assert (told["checkpoints"], told["checkpoints_linked"], told["commits"]) == (1, 1, 1)
    assert "1 of 1 linked to commits" in printed(capsys, "attribute", story.root, *at)


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
    page = printed(capsys, "attribute", story.root, "--store", tmp_path / "store", "--quiet")
    assert "60.0 to 100.0 % of 10 authored lines; 40.0 % unknown" in page
    assert "80.0 % with unknown lines counted as half; no comparable commit measures its error" in page


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


def lines(**tags: int) -> list[AddedLine]:
    return [AddedLine("a.py", n, tag, -1, False) for tag, many in tags.items() for n in range(many)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tags", "low", "high", "likely", "mode"),
    [
        ({"agent_exact": 10}, 1.0, 1.0, 1.0, "vibe"),
        ({"human_observed": 10}, 0.0, 0.0, 0.0, "human_only"),
        ({"agent_exact": 5, "human_observed": 5}, 0.5, 0.5, 0.5, "collaborative"),
        ({"agent_exact": 99, "human_observed": 1}, 0.99, 0.99, 0.99, "vibe"),
        ({"agent_exact": 90, "unknown": 10}, 0.9, 1.0, 0.95, "unknown"),
        ({"human_observed": 9, "unknown": 1}, 0.0, 0.1, 0.05, "unknown"),
        ({"agent_exact": 50, "unknown": 20, "human_observed": 30}, 0.5, 0.7, 0.6, "collaborative"),
        ({"agent_exact": 64, "unknown": 361}, 64 / 425, 1.0, 244.5 / 425, "unknown"),
        ({"agent_shell": 10}, 0.0, 1.0, 1.0, "unknown"),
        ({"agent_other_session": 5, "agent_ws": 5}, 1.0, 1.0, 1.0, "vibe"),
        ({"unknown": 4}, 0.0, 1.0, None, "unknown"),
        ({"moved": 5, "generated": 5, "preexisting": 5}, None, None, None, "unknown"),
        ({}, None, None, None, "unknown"),
    ],
)
def test_a_share_is_an_interval_and_a_mode_needs_all_of_it(
    tags: dict[str, int], low: float | None, high: float | None, likely: float | None, mode: str
) -> None:
    told = share_of(authored(lines(**tags)))
    assert (told.low, told.high, told.likely, mode_of(told.low, told.high)) == (
        low if low is None else pytest.approx(low),
        high if high is None else pytest.approx(high),
        likely if likely is None else pytest.approx(likely),
        mode,
    )


def test_blank_lines_and_what_nobody_wrote_decide_no_mode() -> None:
    blank = [AddedLine("a.py", n, "human_observed", -1, True) for n in range(50)]
    told = share_of(authored([*lines(agent_exact=10, moved=10), *blank]))
    assert (mode_of(told.low, told.high), told.n) == ("vibe", 10)


def test_a_border_belongs_to_the_mode_beyond_it() -> None:
    assert [mode_of(a, b) for a, b in ((0.0, 0.0), (0.01, 0.98), (0.99, 1.0), (0.5, 0.99))] == [
        "human_only", "collaborative", "vibe", "unknown",
    ]  # fmt: skip


def row(recorded: float | None, likely: float | None, *flags: str, **facts: Any) -> CommitRow:
    made = CommitRow(
        repo="r",
        commit_sha=f"{recorded}",
        parent_sha=None,
        authored_at=0,
        committed_at=0,
        author="me",
        subject="",
        is_merge=False,
        checkpoint_ids=[],
        relation="original",
        session_ids=["s"],
        added=100,
        **facts,
    )
    made.recorded_percentage, made.agent_likely, made.flags = recorded, likely, list(flags)
    return made


def test_only_rows_that_mean_the_same_are_compared() -> None:
    rows = [row(100.0, 1.0), row(90.0, 0.8), row(0.0, 1.0, "in_turn"), row(None, 1.0), row(50.0, None)]
    told = agreement(rows)
    assert (told.n, told.mae, told.all_rows) == (2, pytest.approx(5.0), 3)
    assert told.r == pytest.approx(1.0)
    assert told.all_mae == pytest.approx(110 / 3)


def test_a_large_difference_is_listed_with_what_most_likely_causes_it() -> None:
    told = agreement([row(20.0, 0.9, unknown=40, human_observed=10, agent_low=0.5, agent_high=0.9)])
    assert told.within_interval == 0
    assert agreement([row(70.0, 1.0, agent_low=0.5, agent_high=1.0)]).within_interval == 1
    assert [(d.low, d.high) for d in told.far] == [(50.0, 90.0)]
    assert [(d.recorded, d.replayed, d.cause) for d in told.far] == [
        (20.0, 90.0, "lines not explained by the transcripts: 40 of 100")
    ]


def test_without_spread_there_is_no_correlation() -> None:
    assert agreement([row(100.0, 1.0), row(100.0, 1.0)]).r is None


def test_bounds_of_lines_that_are_all_known_meet() -> None:
    """1 - 10/13 is a little less than 3/13."""
    share = share_of(authored(lines(agent_exact=3, human_observed=10)))
    assert share.low == share.high == share.likely == 3 / 13


@pytest.mark.parametrize(
    ("recorded", "likely", "flags", "facts", "cause"),
    [
        (
            10.0,
            1.0,
            ["total_differs"],
            {"recorded_agent_lines": 100},
            "the record counts lines that are not in the commit",
        ),
        (
            10.0,
            1.0,
            ["total_differs", "in_turn"],
            {"recorded_agent_lines": 100},
            "the record counts lines that are not",
        ),
        (10.0, 1.0, ["total_differs", "in_turn"], {"recorded_agent_lines": 40}, "committed mid-turn"),
        (0.0, 1.0, ["total_differs"], {"recorded_agent_lines": 0}, "the record has none of the agent's lines"),
        (50.0, 1.0, ["metric_v2"], {"recorded_agent_lines": 50}, "the record uses a newer measure"),
    ],
)
def test_every_row_far_apart_has_a_cause(
    recorded: float, likely: float, flags: list[str], facts: dict[str, int], cause: str
) -> None:
    made = row(recorded, likely, *flags)
    made.recorded_agent_lines = facts["recorded_agent_lines"]
    ((words, n),) = agreement([made]).causes.items()
    assert words.startswith(cause)
    assert n == 1


def test_recorded_lines_are_compared_as_a_share_of_what_was_committed() -> None:
    counted_beside, near, unknown = row(7.1, 1.0, "total_differs"), row(90.0, 0.9), row(70.0, 0.85, unknown=30)
    counted_beside.recorded_agent_lines, near.recorded_agent_lines = 100, 90
    made = agreement([counted_beside, near, unknown])
    assert (made.lines_n, made.lines_mae) == (2, pytest.approx(0.0))
    assert made.all_mae == pytest.approx((92.9 + 0 + 15) / 3)
    assert (made.unknown_n, made.unknown_mae) == (1, pytest.approx(15.0))


ALIVE = {
    "context-evaluator": (9111, 10359, 1698, 1736),
    "reglint": (248, 456, 680, 799),
    "pup-mcp": (658, 658, 0, 0),
    "test-repo": (84, 96, 1, 3),
}
"""Agents' lines alive and all, then the others', in commits that the head descends from."""


def reverse(repo: Path, sha: str, head: str, path: str) -> list[bool]:
    """For each line of a file of a commit, whether walking forward in history it is met at the head."""
    words = ("blame", "--reverse", "-l", "-s", f"{sha}..{head}", "--", path)
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=False)
    return [row.lstrip(b"^").startswith(head.encode()) for row in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALIVE)
@pytest.mark.nightly
def test_blame_in_reverse_agrees_line_by_line(name: str, tmp_path: Path) -> None:
    """The program asks blame of the head's files; here every file of every commit is walked forward instead."""
    repo = real(name, tmp_path)
    told = attribute_repository(str(repo), tmp_path / "store").survival.alive_at_head
    assert (told.agent_alive, told.agent, told.other_alive, told.other) == ALIVE[name]
    rows = Store(tmp_path / "store").sql(
        "SELECT commit_sha, path, line, alive FROM line_attribution WHERE alive IS NOT NULL"
    )
    files: dict[tuple[str, str], dict[int, bool]] = defaultdict(dict)
    for sha, path, line, alive in rows.fetchall():
        files[sha, path][line] = alive
    n = same = 0
    for (sha, path), lines in files.items():
        if sha == told.head:
            continue  # nothing to walk: what the head added is there
        theirs = reverse(repo, sha, told.head or "", path)
        for line, alive in lines.items() if theirs else ():
            n += 1
            same += theirs[line - 1] == alive
    assert n > 0.8 * sum(len(lines) for lines in files.values())
    assert same >= 0.99 * n, (same, n)


def test_a_line_is_alive_dead_or_out_of_sight(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(5)
    with story.agent("writer") as a:
        a.write("new.py", block("new", 4))
    story.commit("made", a)
    story.git("checkout", "--quiet", "-b", "side")
    with a:
        a.write("side.py", block("side", 3))
    story.commit("beside", a)
    story.git("checkout", "--quiet", "main")
    story.human("new.py", "".join(story.text("new.py").splitlines(True)[1:]))
    story.git("mv", "new.py", "renamed.py")
    story.commit("after")
    story.attributed()
    rows = story.rows(
        "SELECT subject, line, alive FROM line_attribution JOIN commits USING (repo, commit_sha) ORDER BY ALL"
    )
    assert rows == [("beside", n, None) for n in (1, 2, 3)] + [("made", n, n > 1) for n in (1, 2, 3, 4)]


def test_a_commit_keeps_of_what_was_written_since_the_one_before(tmp_path: Path) -> None:
    """12 lines, 2 of which the session takes back; 6 are in files of this commit, 4 wait for the next."""
    story = Story(tmp_path).begun(5)
    with story.agent("writer") as a:
        a.write("now.py", block("now", 8))
        a.edit("now.py", "now_0 = compute('now', 0)\nnow_1 = compute('now', 1)\n", "")
        a.write("later.py", block("later", 4))
    story.commit("first", a, add="now.py")
    with a:
        a.write("more.py", block("more", 3))
    story.commit("second", a)
    story.attributed()
    rows = story.rows(
        "SELECT subject, written, rewritten, written_in_files, rewritten_in_files, kept FROM commits"
        " ORDER BY committed_at"
    )
    assert rows == [("base", None, None, None, None, None), ("first", 12, 2, 8, 2, 6), ("second", 3, 0, 3, 0, 3)]
