"""Studies over attributed repositories: modes on two roads, what became of lines, what a hundred of them took, and how
people kept an eye on it. Every figure is worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agentsignals.model import Checkpoint, Label, Session
from agentsignals.questions import written_lines as modes
from agentsignals.questions.studies.code import by_repo
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import CommitRow, LineRow
from tests.build import START, call, event, say, session, user
from tests.questions.stores import findings, outcome, store_of, table

SECOND = 1_000_000
WEEK = 7 * 86_400 * SECOND


def told(store: Store, task: str, **values: tuple[str, float, dict[str, Any]]) -> None:
    """Labels of attribution, by session."""
    rows = [
        LabelRow(
            s,
            Label(task=task, labeller="attribution", turn=None, value=value, number=number, detail=json.dumps(detail)),
        )
        for s, (value, number, detail) in values.items()
    ]
    sidecars.write_labels(store.folder, task, "attribution", rows)


def commit(sha: str, *sessions: str, at: int = 0, relation: str | None = "original", **figures: Any) -> CommitRow:
    made = CommitRow(
        repo="/r",
        commit_sha=sha,
        parent_sha=None,
        authored_at=START + at,
        committed_at=START + at,
        author="a",
        subject="s",
        is_merge=False,
        checkpoint_ids=[],
        relation=relation,
        session_ids=list(sessions),
    )
    for name, value in figures.items():
        setattr(made, name, value)
    return made


def recorded(name: str, percent: float, lines: int = 100, checkpoint: str = "") -> Session:
    made = session(user("go on"), say("done", input_tokens=10, output_tokens=5), session_id=name, cwd=f"/p/{name}")
    own = round(percent * lines / 100)
    made.checkpoints.append(
        Checkpoint(checkpoint_id=checkpoint or name, agent_lines=own, total_committed=lines, agent_percentage=percent)
    )
    return made


# -- modes -------------------------------------------------------------------------------------------------------------


def test_modes_are_told_on_both_roads_and_the_replay_comes_first(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", *(recorded(f"s{n}", p) for n, p in enumerate([0, 0, 50, 100])))
    told(store, "coding_mode", s0=("vibe", 1.0, {}), s1=("unknown", 0.5, {}), s3=("vibe", 1.0, {}))
    found = findings(store, "coding_modes")
    by_replay = {m: (found[f"replayed.{m}"].value, found[f"replayed.{m}"].n) for m in modes.MODES_OF_SOURCE["replayed"]}
    assert by_replay == {
        "human_only": (0, 3), "collaborative": (0, 3), "vibe_coding": (2 / 3, 3), "unknown": (1 / 3, 3),
    }  # fmt: skip
    assert (found["human_only"].value, found["human_only"].n) == (0.5, 4)
    assert next(iter(found)) == "replayed.human_only"
    rows = table(outcome(store, "coding_modes"), "coding_modes.roads")
    assert rows["human only"] == [2, 0, 0, 1, 1], "of two recorded as a person's one is the agent's, one is open"


def test_medians_by_replay_are_of_bounds_and_say_what_is_unknown(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", *(recorded(f"s{n}", 50) for n in range(7)))
    bounds = {"low": 0.2, "high": 1.0, "likely": 0.6, "n": 10}
    told(store, "coding_mode", **{f"s{n}": ("unknown", 0.6, bounds) for n in range(7)})
    found = findings(store, "coding_modes")
    low, high = found["replayed.percent.low.median"], found["replayed.percent.high.median"]
    assert (low.value, high.value) == (pytest.approx(20), 100)
    assert "80.0% of lines unknown" in low.title and "80.0% of lines unknown" in high.title
    assert low.interval == high.interval and high.interval is not None
    assert high.interval[0] <= 20 and high.interval[1] >= 100
    assert "replayed.percent.median" not in found


def test_modes_by_other_labellers_are_no_replay(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", recorded("s0", 0))
    sidecars.write_labels(
        store.folder,
        "coding_mode",
        "somebody",
        [LabelRow("s0", Label(task="coding_mode", labeller="somebody", turn=None, value="vibe"))],
    )
    assert "replayed.vibe_coding" not in findings(store, "coding_modes")


def test_friction_is_split_by_both_roads(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", recorded("s0", 0), session(user("x"), say("y"), session_id="other"))
    told(store, "coding_mode", s0=("vibe", 1.0, {}))
    rows = table(outcome(store, "friction"), "friction.by_mode")
    assert {name: row[0] for name, row in rows.items()} == {
        "vibe coding, replayed": 1, "no mode, replayed": 1, "human only, recorded": 1, "no mode, recorded": 1,
    }  # fmt: skip


# -- survival ----------------------------------------------------------------------------------------------------------


def fates(produced: int, own: int, committed: int, taken: int = 0, standing: int = 0) -> dict[str, int]:
    return {
        "produced": produced, "overwritten_by_self": own, "committed": committed, "taken": taken, "standing": standing,
    }  # fmt: skip


def survived(folder: Path) -> Store:
    """Two sessions: 100 lines, of which 20 overwritten and 60 committed; 50 lines, all committed. Two commits."""
    store = store_of(folder, session(user("a"), session_id="s0"), session(user("b"), session_id="s1"))
    told(
        store,
        "code_survival",
        s0=("0.6", 0.6, fates(100, 20, 60, taken=15, standing=3)),
        s1=("1", 1.0, fates(50, 0, 50)),
    )
    told(store, "coding_mode", s0=("collaborative", 0.5, {}), s1=("vibe", 1.0, {}))
    told(store, "earlier_on_same_lines", s0=("0", 0, {}), s1=("1", 1, {}))
    slices = {"rewritten": 20, "rewritten_in_files": 10, "kept": 40}
    one = commit("c0", "s0", written=100, written_in_files=60, **slices)
    two = commit("c1", "s1", at=3 * WEEK, written=50, rewritten=0, written_in_files=50, rewritten_in_files=0, kept=50)
    sidecars.write_repository_rows(store.folder, "/r", "commits", [one, two, commit("c2", relation=None, at=5 * WEEK)])
    tags = [("c0", "agent_exact", False)] * 3 + [("c0", "agent_shell", True), ("c0", "unknown", True)]
    tags += [("c1", "agent_ws", True)] * 2 + [("c1", "moved", None)]
    lines = [
        LineRow(
            repo="/r", commit_sha=sha, path="f", line=n, tag=tag, session_id=None, seq=None, is_blank=False, alive=alive
        )
        for n, (sha, tag, alive) in enumerate(tags)
    ]
    sidecars.write_repository_rows(store.folder, "/r", "line_attribution", lines)
    return Store(folder)


def test_survival_by_each_definition(tmp_path: Path) -> None:
    found = findings(survived(tmp_path / "s"), "survival")
    assert {name: (f.value, f.n) for name, f in found.items()} == {
        "efficiency": (110 / 150, 150),
        "rate": (110 / 130, 130),
        "strict": (90 / 110, 110),
        "strict.rate": (90 / 100, 100),
        "window": (90 / 150, 150),
        "window.rate": (90 / 130, 130),
        "alive": (3 / 6, 6),
        "alive.others": (1, 1),
        "met": (0.5, 2),
    }


def test_fates_of_lines_add_up_to_what_was_written(tmp_path: Path) -> None:
    rows = table(outcome(survived(tmp_path / "s"), "survival"), "survival.by_mode")
    n, produced, efficiency, _, _, rate, own, other, taken, standing, rest = rows["collaborative, replayed"]
    assert (n, produced, efficiency, rate) == (1, 100, 0.6, 0.75)
    assert (own, other, taken, standing) == (0.2, 0, 0.15, 0.03)
    assert efficiency + own + other + taken + standing + rest == pytest.approx(1)
    assert set(rows) == {"all", "collaborative, replayed", "vibe coding, replayed"}


def test_age_is_counted_from_the_newest_commit_and_unseen_lines_are_in_no_figure(tmp_path: Path) -> None:
    found = outcome(survived(tmp_path / "s"), "survival")
    rows = table(found, "survival.by_age")
    assert {age: (row[1], row[2]) for age, row in rows.items()} == {"1 to 2 weeks": (2, 1.0), "4 to 8 weeks": (4, 0.25)}
    [row] = table(found, "survival.by_repository").values()
    assert row[:7] == [2, 150, 110, 20, 0, 15, 3]
    assert row[-4:] == [6, 0.5, 1, 1]


def test_repositories_of_one_name_are_told_apart_by_as_much_of_their_folders_as_it_takes() -> None:
    figures = {"session_ids": [], "written_in_files": 0, "kept": 0}

    def names(*repos: str) -> list[str]:
        return [row[0] for row in by_repo([], [{"repo": repo, **figures} for repo in repos], []).rows]

    assert names("/a/x/repo", "/a/y/repo/", "/b/other") == ["x/repo", "y/repo", "b/other"]
    assert names("/a/one", "https://h.org/u/two") == ["one", "two"]
    assert names("/repo", "https://h.org/repo") == ["/repo", "h.org/repo"]
    assert names() == []


def test_lines_that_came_back_make_no_share_above_all(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", session(user("a"), session_id="s0"))
    told(store, "code_survival", s0=("1", 1.0, fates(10, 4, 10)))
    found = findings(store, "survival")
    assert (found["efficiency"].value, found["rate"].value) == (1, 1)


def test_tables_of_an_older_version_lack_columns_and_are_read_all_the_same(tmp_path: Path) -> None:
    store = survived(tmp_path / "s")
    for name, column in (("line_attribution", "alive"), ("commits", "written")):
        [path] = sidecars.repository_files(store.folder, name)
        with sidecars.changing(store.folder) as held:
            [(key, _)] = held.live(ends=f"/{name}")
            held.put(key, pq.read_table(path).drop_columns([column]))
    found = findings(store, "survival")
    assert set(found) == {"efficiency", "rate", "met"}
    assert store.sql("SELECT sum(len(session_ids)), count(written) FROM commits").fetchall() == [(2, 0)]


# -- efficiency --------------------------------------------------------------------------------------------------------


def test_a_hundred_lines_take_their_share_of_the_session(tmp_path: Path) -> None:
    made = recorded("s0", 100, lines=50)
    made.turns[0].text = "x" * 30
    store = store_of(tmp_path / "s", made)
    sidecars.write_repository_rows(
        store.folder, "/r", "commits", [commit("c0", "s0", added=20), commit("c1", "s0", added=5)]
    )
    found = findings(store, "efficiency")
    assert (found["replayed.characters"].value, found["replayed.characters"].n) == (100 * 30 / 25, 1)
    assert found["replayed.tokens"].value == 100 * 15 / 25
    assert found["recorded.tokens.vibe_coding"].value == 100 * 15 / 50, "by the lines that the collector counted"
    assert found["replayed.usd"].value == pytest.approx(100 * made.steps[0].cost_usd / 25)
    assert found["replayed.usd"].interval is None, "one session has no interval"


@pytest.mark.parametrize(
    ("commits", "alone"),
    [
        ([commit("c0", "s0", added=9)], 1),
        ([commit("c0", "s0", added=9), commit("c1", "s0", "s1", added=1)], 0),
        ([commit("c0", "s0", added=9), commit("c1", "s0", added=None)], 0),
        ([commit("c0", "s0", added=9), commit("c1", "s0", "s1", added=1, relation="copy")], 1),
    ],
    ids=["alone", "shared", "unread", "copied"],
)
def test_only_sessions_alone_in_their_commits_are_compared(
    commits: list[CommitRow], alone: int, tmp_path: Path
) -> None:
    store = store_of(tmp_path / "s", session(user("a word"), session_id="s0"))
    sidecars.write_repository_rows(store.folder, "/r", "commits", commits)
    found = findings(store, "efficiency")
    assert found["replayed.alone"].value == alone
    assert ("replayed.characters" in found) == bool(alone)


def test_recorded_commits_of_two_sessions_are_nobodys_alone(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", recorded("s0", 100, checkpoint="c"), recorded("s1", 0, checkpoint="c"))
    found = findings(store, "efficiency")
    assert (found["recorded.alone"].value, found["recorded.alone"].n) == (0, 2)
    assert set(found) == {"recorded.alone"}


def test_gaps_count_where_the_agent_works_and_not_where_nobody_acts(tmp_path: Path) -> None:
    made = session(user("a"), call("Bash", command="make"), say("done"), user("b"), say("done"), session_id="s0")
    seconds = {"human_turn": [0, 4000], "tool_call": [10], "tool_result": [610], "text": [630, 4030]}
    for one in made.events:
        one.timestamp = START + seconds[one.kind].pop(0) * SECOND
    store = store_of(tmp_path / "s", made)
    sidecars.write_repository_rows(store.folder, "/r", "commits", [commit("c0", "s0", added=100)])
    # 630 s of work with a call of ten minutes, then nearly an hour of nobody, then 30 s of work
    assert findings(store, "efficiency")["replayed.seconds"].value == pytest.approx(660 / 60)


def test_without_commits_the_study_says_what_finds_them(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", session(user("go")))
    for name in ("efficiency", "survival"):
        found = outcome(store, name)
        assert found.findings == [] and "agentsignals repo attribute" in found.limits[0]


# -- oversight ---------------------------------------------------------------------------------------------------------


def test_what_happens_to_turns_is_counted_apart(tmp_path: Path) -> None:
    made = session(
        *(user("plan it"), call("ExitPlanMode", status="rejected")),
        *(user("again"), call("ExitPlanMode"), call("Edit", path="a"), say("done")),
        *(user("more"), call("Edit", path="a", status="rejected"), event("interrupt", "[Request interrupted by user]")),
        *(user("which one"), call("AskUserQuestion"), say("which?")),
    )
    found = findings(store_of(tmp_path / "s", made), "oversight")
    assert {name: (f.value, f.n) for name, f in found.items() if name not in ("seconds", "calls")} == {
        "cut": (0.5, 4),
        "interrupted": (0.25, 4),
        "refused": (0.5, 4),
        "asked": (0.25, 4),
        "asked_in_words": (0, 4),
        "plans": (0.5, 4),
        "approved": (0.5, 2),
        "refused_calls": (2 / 5, 5),
    }
    assert found["calls"].value == 1


def test_a_plan_without_an_answer_is_neither_approved_nor_refused(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", session(user("plan it"), call("ExitPlanMode", status="none")))
    found = findings(store, "oversight")
    assert found["plans"].value == 1 and "approved" not in found


def test_oversight_is_told_by_agent_and_by_mode(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", recorded("s0", 100), recorded("s1", 0))
    told(store, "coding_mode", s0=("vibe", 1.0, {}))
    found = outcome(store, "oversight")
    assert {name: row[0] for name, row in table(found, "oversight.by_mode").items()} == {
        "vibe coding, replayed": 1, "human only, recorded": 1, "vibe coding, recorded": 1,
    }  # fmt: skip
    assert table(found, "oversight.by_agent")["claude-code"][0] == 2
