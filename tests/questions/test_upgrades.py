"""Changes of version and model: planted ones are said with their day, mixes of work and drifts are not, each bound
decides."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from math import exp, log
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentsignals.cli import main
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.questions import upgrades
from agentsignals.questions.findings import Reader, questions
from agentsignals.questions.findings.upgrade import answer_of as upgrade_answer
from agentsignals.questions.ranking import Bounds, ranked_answers
from agentsignals.questions.studies import study
from agentsignals.questions.upgrades import Change, MeasuredSession, Value, compared
from agentsignals.store import Store
from agentsignals.store.index import INDEX_FILE
from agentsignals.store.query import rows
from agentsignals.ui.document import sure_of
from tests.build import event, say, session, user
from tests.claude import Log
from tests.planted_stores import ordinary
from tests.questions.stores import store_of
from tests.verbs import printed, printed_json

START = datetime(2026, 3, 1)


def sessions(
    n: int,
    failed: Callable[[int], float],
    *,
    version: Callable[[int], str | None] = lambda at: "1.1" if at < 30 else "1.2",
    model: Callable[[int], str] = lambda at: "opus",
    place: Callable[[int], str] = lambda at: "shop",
    edits: Callable[[int], bool] = lambda at: True,
    a_day: int = 2,
    seed: int = 1,
) -> list[MeasuredSession]:
    """So many sessions of one agent with their shares of failed calls, which scatter a little."""
    chance = random.Random(seed)  # noqa: S311  (draws, no secret)
    made = []
    for at in range(n):
        value = Value(min(1.0, max(0.0, failed(at) + chance.uniform(-0.03, 0.03))), 20)
        started = START + timedelta(days=at // a_day, minutes=at)
        facts = (f"s{at:03}", "claude-code", version(at), model(at), place(at), started, edits(at))
        made.append(MeasuredSession(*facts, partial(dict, {"failed-calls": value})))
    return made


def said(history: Sequence[MeasuredSession]) -> list[tuple[str, str, str]]:
    return [(change.axis, change.name, change.metric) for change in compared(history) if change.is_said]


def of(history: Sequence[MeasuredSession], axis: str = "version", metric: str = "failed-calls") -> Change:
    return next(change for change in compared(history) if (change.axis, change.metric) == (axis, metric))


def step(at: int) -> float:
    return 0.05 if at < 30 else 0.25


def test_a_planted_change_is_said_with_its_day_size_and_interval() -> None:
    history = sessions(60, step)
    assert said(history) == [("version", "1.2", "failed-calls")]
    change = of(history)
    assert (f"{change.day:%Y-%m-%d}", change.former, change.n_before, change.n_after) == ("2026-03-16", "1.1", 30, 30)
    assert change.before == pytest.approx(0.05, abs=0.01) and change.after == pytest.approx(0.25, abs=0.01)
    low, high = change.interval or (0.0, 0.0)
    assert 0.15 < low < 0.2 < high < 0.25 and change.excess == pytest.approx(0.2 * 30 * 20, rel=0.1)


def test_nothing_is_said_where_nothing_changed() -> None:
    alarms = sum(bool(said(sessions(60, lambda at: 0.1, seed=seed))) for seed in range(100))
    assert alarms <= 8, "5 of 100 are expected at most; more than 8 have a chance of 6 %"


def test_another_mix_of_projects_is_no_change() -> None:
    """Tasks of the docs fail more, and are most of the work since the new version."""
    place: Callable[[int], str] = lambda at: "docs" if (at % 5 == 0 if at < 30 else at % 5 != 0) else "shop"  # noqa: E731
    assert said(sessions(60, lambda at: 0.3 if place(at) == "docs" else 0.05, place=place)) == []
    as_one = of(sessions(60, lambda at: 0.3 if place(at) == "docs" else 0.05))
    assert upgrades.is_sure(as_one), "were it one project"


def test_another_share_of_sessions_with_edits_is_no_change() -> None:
    edits: Callable[[int], bool] = lambda at: at % 5 == 0 if at < 30 else at % 5 != 0  # noqa: E731
    assert said(sessions(60, lambda at: 0.3 if edits(at) else 0.05, edits=edits)) == []


def test_a_change_of_the_model_is_not_put_down_to_the_version() -> None:
    history = sessions(60, step, model=lambda at: "opus" if at < 30 else "sonnet")
    assert said(history) == [("model", "sonnet", "failed-calls")]
    assert of(history).absent == "fewer than 8 alike sessions, or 3 days of them, on a side"
    assert of(history, "model").also_changed == "the agent's version"


def test_what_changed_on_another_day_is_not_put_down_to_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    history = sessions(80, lambda at: 0.05 if at < 40 else 0.25)
    assert of(history).q is not None and upgrades.is_sure(of(history)) and said(history) == []
    monkeypatch.setattr(upgrades, "CLEARLY", 1e9)
    assert said(history) == [("version", "1.2", "failed-calls")]


@pytest.mark.parametrize(("n", "is_compared"), [(38, True), (37, False)])
def test_eight_sessions_on_either_side_are_needed(n: int, is_compared: bool) -> None:
    found = [c for c in compared(sessions(n, step, a_day=1)) if c.metric == "failed-calls"]
    assert bool(found and found[0].p is not None) is is_compared


@pytest.mark.parametrize(("a_day", "is_compared"), [(10, True), (15, False)])
def test_three_days_on_either_side_are_needed(a_day: int, is_compared: bool) -> None:
    assert (of(sessions(60, step, a_day=a_day)).p is not None) is is_compared


def test_sixty_sessions_on_either_side_are_compared() -> None:
    change = of(sessions(200, lambda at: 0.1, version=lambda at: "1" if at < 100 else "2"))
    assert (change.n_before, change.n_after) == (upgrades.MOST, upgrades.MOST) == (60, 60)


def test_the_error_rate_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    history = sessions(60, step)
    q = of(history).q or 0.0
    assert 0 < q < upgrades.ERROR_RATE == 0.05
    for rate, found in ((q * 1.01, True), (q * 0.99, False)):
        monkeypatch.setattr(upgrades, "ERROR_RATE", rate)
        assert bool(said(history)) is found


def test_every_comparison_of_the_store_counts_for_the_error_rate() -> None:
    alone = of(sessions(60, step))
    quiet = [replace(s, id=f"o{s.id}", agent="codex") for s in sessions(60, lambda at: 0.1, seed=2)]
    among = next(c for c in compared([*sessions(60, step), *quiet]) if c.agent == "claude-code" and c.p is not None)
    assert among.p == alone.p and among.q == pytest.approx(2 * (alone.q or 0.0))


def test_versions_of_few_sessions_are_taken_together_in_the_order_of_their_numbers() -> None:
    names = ["2.1.9"] * 20 + ["2.1.10"] * 4 + ["2.1.11"] * 6 + ["2.1.8"] * 3 + ["2.1.12"] * 20
    found = compared(sessions(len(names), lambda at: 0.1, version=names.__getitem__))
    starts = {c.name: (c.taken_with, c.former, c.n_before) for c in found if c.metric == "failed-calls"}
    assert starts == {"2.1.10": (("2.1.11",), "2.1.9", 23), "2.1.12": ((), "2.1.11", 33)}, "2.1.8 is before"


@pytest.mark.parametrize(
    ("old", "new"), [("9fc", "1ab"), ("build 7", "2.0"), ("1.0-f00d9", "1.0-f00d1"), ("v1.9.0", "v1.10.0+9fc")]
)
def test_versions_that_are_no_numbers_are_in_the_order_of_time(old: str, new: str) -> None:
    history = sessions(60, step, version=lambda at: old if at < 30 else new)
    assert (of(history).name, of(history).former) == (new, old)


def test_of_versions_taken_together_the_one_with_the_change_is_said() -> None:
    names = ["1.1"] * 24 + ["1.2"] * 6 + ["1.3"] * 30  # 1.2 has too few sessions and is taken together with 1.3
    history = sessions(60, step, version=names.__getitem__)
    assert [change.name for change in compared(history) if change.p is not None] == ["1.3"]
    (change,) = (each for each in compared(history) if each.is_said)
    assert (change.name, change.former, change.taken_with, change.n_before) == ("1.3", "1.2", (), 30)
    assert f"{change.day:%Y-%m-%d}" == "2026-03-16"


def test_one_change_is_said_once_though_later_versions_see_it() -> None:
    history = sessions(90, step, version=lambda at: f"1.{at // 10}")
    assert said(history) == [("version", "1.3", "failed-calls")]
    assert sum(map(upgrades.is_sure, compared(history))) > 1


def test_a_version_that_is_not_logged_gives_no_change() -> None:
    assert compared(sessions(60, step, version=lambda at: None)) == []


def test_what_never_varies_is_no_test() -> None:
    history = [replace(s, measure=lambda: {"loops": Value(0.0, 9)}) for s in sessions(60, step)]
    change = of(history, metric="loops")
    assert (change.before, change.after, change.p, change.q) == (0.0, 0.0, None, None)
    assert of(history).absent == "the logs lack it"


def test_amounts_are_compared_as_ratios() -> None:
    history = [
        replace(s, measure=partial(dict, {"cost": Value(log((2.0 if at >= 30 else 1.0) * exp(0.2 * (at % 3))), 2)}))
        for at, s in enumerate(sessions(60, step))
    ]
    change = of(history, metric="cost")
    low, high = change.interval or (0.0, 0.0)
    assert change.after / change.before == pytest.approx(2, rel=0.02) and low < 2 < high  # type: ignore[operator]
    assert change.is_said and change.excess == pytest.approx(30 * 2 * exp(0.2), rel=0.02)
    answer = upgrade_answer(change)
    assert "times as much (95%)" in answer.details and sure_of(answer).count("·") == 1, "no interval of another figure"


# -- what is measured, from a store


def measured_of(store: Store) -> dict[str, dict[str, tuple[float, float]]]:
    question = questions()["upgrade"]
    found = upgrades.measured(Reader(store, [question]).inputs(question))
    return {s.id: {name: (round(v.value, 6), v.n) for name, v in s.values.items()} for s in found}


def test_each_measure_is_counted_from_the_log(tmp_path: Path) -> None:
    log = Log(version="2.1.20")
    log.user("mend it")
    log.call("Bash", "toolu_1", command="false")
    log.result("no", "toolu_1", error=True)
    log.wait(57)
    log.ran("Write", file_path="/work/shop/a.py", content="x = 1\n")
    log.user("no, that is wrong, use the other function")
    log.say("done", message_id="msg_9")
    (tmp_path / "a.jsonl").write_bytes(log.data())
    pipeline.analyze([str(tmp_path / "a.jsonl")], tmp_path / "store", jobs=1)
    (values,) = measured_of(Store(tmp_path / "store")).values()
    assert values["failed-calls"] == (0.5, 2) and values["loops"] == (0.0, 2) and values["pushback"] == (1.0, 1)
    assert values["first-edit"] == (round(log_of_seconds(tmp_path / "store"), 6), 1)
    assert values["cache-misses"][0] == 0 and "cost" not in values, "output was logged in mid-stream"


def log_of_seconds(store: Path) -> float:
    ((seconds,),) = rows(Store(store), "SELECT number FROM signals WHERE signal = 'user.time_to_first_edit_s'")[1]
    return log(seconds)


def test_rewinds_are_absent_where_the_log_keeps_none(tmp_path: Path) -> None:
    plain = session(user("a"), say("b"), session_id="plain")
    back = session(user("a"), event("rewind"), user("c"), say("b"), session_id="back")
    plain.conventions.clear()
    values = measured_of(store_of(tmp_path, plain, back))
    assert "rewinds" not in values["plain"] and values["back"]["rewinds"] == (round(1 / 3, 6), 3)


# -- as it is said


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Sessions of three agents; since a new version a third of the first one's calls fail."""
    made: list[Session] = ordinary(5, 120)
    for at, one in enumerate(made):
        one.agent_version = "2.1.30" if at < 60 else "2.1.31"
        if at >= 60 and one.agent == "claude-code":
            for number, each in enumerate(one.tool_calls):
                each.status = "error" if number % 3 == 0 else each.status
    return store_of(tmp_path_factory.mktemp("planted"), *made)


def test_the_finding_names_the_version_and_both_shares(planted: Store, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("--store", planted.folder)
    out = " ".join(printed(capsys, "findings", "upgrade", *named).split())
    assert "Since claude-code 2.1.31 (2" in out and " of tool calls fail, compared with " in out
    assert " confidence · difference " in out
    assert "If the work is alike, try 2.1.30 again." in out and "2.1.31 (2" in out and " pi " not in out
    assert re.search(r"`agentsignals show \S+", out) and "have no counterpart" not in out
    document = printed_json(capsys, "findings", "--question", "upgrade", *named)
    (answer,) = document["answers"]
    assert answer["q"] <= 0.05 and answer["p"] is None
    assert answer["caveat"].startswith("The change began that day. The new version may not be its cause. ")
    evidence = printed_json(capsys, "findings", answer["id"], *named)["evidence"]
    assert {row["agent_version"] for row in evidence} == {"2.1.30", "2.1.31"} and len(evidence) == answer["n"]


def test_commands_name_whole_ids_since_sessions_of_one_day_may_begin_alike() -> None:
    made = [replace(s, id=f"019ffa5e-{s.id}") for s in sessions(60, step)]
    (said_of,) = (upgrade_answer(change) for change in compared(made) if change.is_said)
    assert "`agentsignals show 019ffa5e-s029`, `agentsignals show 019ffa5e-s030`" in said_of.do
    assert (
        "of earlier versions and 30 of this or later ones" in said_of.details and "counterpart" not in said_of.details
    )


def test_where_nothing_can_be_compared_the_topic_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ordinary(5, 20)
    store = store_of(tmp_path, *few)
    assert main(["findings", "--question", "upgrade", "--store", str(store.folder)]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "No finding of the topic 'upgrade': 0 candidates checked; no version or model has 8 sessions" in told
    one_day = sessions(60, step, a_day=60)
    assert {c.absent for c in compared(one_day)} == {
        "fewer than 8 alike sessions, or 3 days of them, on a side", "the logs lack it",
    }  # fmt: skip


def test_names_of_a_trace_leave_as_text_only() -> None:
    hostile = "2.0`; rm -rf ~ #\n</b>"
    made = sessions(60, step, version=lambda at: "1.1" if at < 30 else hostile)
    made = [replace(s, id=f"$(id)`{s.id}") for s in made]
    (said_of,) = (upgrade_answer(change) for change in compared(made) if change.is_said)
    assert "\n" not in said_of.sentence and "show" not in said_of.do
    assert re.fullmatch(r"[a-z0-9.-]+", said_of.id)


def test_the_bounds_of_findings_hold_for_it_too(planted: Store) -> None:
    question = questions()["upgrade"]
    answers = question.function(Reader(planted, [question]).inputs(question))
    assert len(ranked_answers(answers, Bounds())) == 1 and len(answers) > 5
    assert ranked_answers(answers, Bounds(false_discoveries=1e-12)) == []


def test_the_study_lists_every_comparison_and_why_others_are_missing(planted: Store, tmp_path: Path) -> None:
    one = study("upgrades")
    outcome = one.run(Reader(planted, [one]).inputs(one))
    (table,) = outcome.tables
    ((timed,),) = rows(planted, "SELECT count(*) FROM sessions WHERE started_at IS NOT NULL")[1]
    assert [finding.n for finding in outcome.findings] == [timed, timed]
    assert outcome.findings[1].value < timed  # type: ignore[operator]
    assert "Not compared: the logs lack it (1 comparison)." in outcome.findings[0].note
    assert (
        table.rows[0][0] == "2.1.31"
        and table.rows[0][-1] == "changed"
        and {r[-1] for r in table.rows[1:]} == {"no sure change"}
    )
    silent = store_of(tmp_path, *(session(user("a"), say("b"), session_id=f"s{n}") for n in range(3)))
    made = one.run(Reader(silent, [one]).inputs(one))
    assert made.tables == [] and "no version or model has 8 sessions" in made.findings[0].note
    assert "Sessions whose log has no version: claude-code 3." in made.findings[0].note


def test_watch_says_what_changed_with_the_agents_version(
    planted: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, "findings", "--store", planted.folder)  # which the store keeps
    log = Log(version="2.1.31")
    log.user("mend it")
    log.say("done")
    (tmp_path / "now.jsonl").write_bytes(log.data())
    out = printed(capsys, "watch", tmp_path, "--once", "--store", planted.folder)
    assert "changed: Since claude-code 2.1.31 (2" in " ".join(out.split())
    assert printed_json(capsys, "watch", tmp_path, "--store", planted.folder)["changed"]
    assert printed_json(capsys, "watch", tmp_path, "--store", tmp_path / "none")["changed"] == []
    assert main(["watch", str(tmp_path), "--once", "--store", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().err == ""
    shutil.copytree(planted.folder, tmp_path / "newer")
    with closing(sqlite3.connect(tmp_path / "newer" / INDEX_FILE)) as database:
        database.execute("PRAGMA user_version = 99")
    assert main(["watch", str(tmp_path), "--once", "--store", str(tmp_path / "newer")]) == 0
    assert "What changed with the agent's versions is not shown" in capsys.readouterr().err
