"""What is said of a store: planted trouble comes first, ordinary work leaves it silent, every bound decides."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import agentsignals
from agentsignals.cli import main
from agentsignals.cli.analyze import last_lines, summary_of
from agentsignals.errors import UsageError
from agentsignals.ingest import pipeline
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.model import Attempt, Session
from agentsignals.questions import ranking as held_apart
from agentsignals.questions.estimates import clustered_share
from agentsignals.questions.findings import answer, asking, findings, questions
from agentsignals.questions.findings.cost import CONCENTRATED, COSTLIEST_SHARE, FEWEST_RESULTS, FEWEST_SESSIONS
from agentsignals.questions.question import Inputs, Question, Rows, Versions
from agentsignals.questions.ranking import (
    Answer,
    Bounds,
    Candidate,
    candidate_answers,
    finding_id,
    may_be_told,
    p_above,
    ranked_answers,
    safe_name,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import BOUND, CAUSES
from agentsignals.stats.intervals import wilson
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.ui.document import sure_of
from agentsignals.views.working_time import LONGEST_S, longest_s, longest_sql
from tests.build import call, event, say, session, user
from tests.planted_stores import STORES, evaluated
from tests.plants import causes, files, trials, work
from tests.questions.stores import rows_of, store_of
from tests.signals.attempts import trial
from tests.verbs import printed, printed_json

FIRST = {
    "a loop": "loops.",
    "a runaway cost": "few-sessions.",
    "a failing tool": "failures.",
    "an agent that never tests": "untested-changes.agent.pi",
    "a re-reading agent": "repeated-work.reread",
    "a repository with pushback": "pushback.place.",
    "pauses that lose the cache": "money.rebuilt",
    "a hot file": "hotspots.",
    "an infra outage": "why-failed.infrastructure",
    "an unequal comparison": "solved-more.unlike",
}
"""What has to be said first of each planted store."""


def said_of(folder: Path, sessions: list[Session]) -> list[str]:
    return [made.id for made in findings(store_of(folder, *sessions)).answers]


@pytest.mark.slow
def test_planted_trouble_comes_first(paused: Store, tmp_path: Path) -> None:
    assert findings(paused).answers[0].id == FIRST["pauses that lose the cache"]
    assert said_of(tmp_path, STORES["an infra outage"](1))[0] == FIRST["an infra outage"]


@pytest.mark.slow
def test_of_ten_planted_stores_nine_say_it_first(tmp_path: Path) -> None:
    assert set(FIRST) == set(STORES) and len(STORES) == 10
    first = {name: said_of(tmp_path / name, make(1))[:1] for name, make in STORES.items()}
    missed = {name: ids for name, ids in first.items() if not (ids and ids[0].startswith(FIRST[name]))}
    assert len(missed) <= 1, missed


# -- what is said, and in what order -----------------------------------------------------------------------------------


def candidate(name: str, share: float = 0.3, **more: Any) -> Answer:
    base: dict[str, Any] = {"sentence": f"{name}.", "size": 1, "unit": "USD", "n": 90}
    return Answer(id=name, share=share, cause="SELECT 1", caveat="", **base | more)


def said(*candidates: Answer, **bounds: float) -> list[str]:
    return [made.id for made in ranked_answers(candidates, Bounds(**bounds))]


def test_each_bound_decides() -> None:
    small, unsure, chance = candidate("small", 0.04), candidate("unsure", n=3), candidate("chance", p=0.06)
    assert said(small, unsure, chance) == []
    assert said(small, effect=0.04) == ["small"]
    assert said(unsure, sureness=0.2) == ["unsure"]
    assert said(chance, false_discoveries=0.1) == ["chance"]
    assert said(candidate("shaky", validity=0.3)) == [] and said(candidate("right", validity=0.8)) == ["right"]


def test_every_candidate_counts_for_the_false_discoveries() -> None:
    one = candidate("one", p=0.02)
    assert said(one) == ["one"]
    assert said(one, *(candidate(f"idle{n}", 0.0, p=0.9) for n in range(9))) == []
    (made,) = ranked_answers([one, candidate("other", 0.0, p=0.5)], Bounds())
    assert made.q == pytest.approx(0.04)
    assert said(candidate("counted")) == ["counted"], "what is only counted draws nothing"


def test_the_largest_and_surest_is_first_and_one_thing_is_said_once() -> None:
    large, sure = candidate("large", 0.4, n=10), candidate("sure", 0.3, n=990)
    assert said(large, sure) == ["sure", "large"]
    assert said(replace(sure, about="x"), replace(large, about="x")) == ["sure"]
    assert said(candidate("data", 0.9, of_data=True), large) == ["large", "data"], "what was read comes behind the work"


def test_evidence_is_made_only_of_what_is_told() -> None:
    def answers(*_: Inputs) -> list[Answer]:
        evidence = partial(dict, cause="SELECT 1", by_session={"s": 1.0}, do="Look.")
        base: dict[str, Any] = {"sentence": "So.", "size": 1, "unit": "calls", "n": 90, "caveat": "", "told": evidence}
        return [Candidate(id=f"x.{share}", share=share, **base) for share in (0.04, 0.06)]

    asked = Question(name="x", question="Why?", queries={}, function=answers)
    small, large = candidate_answers(asked, Inputs(rows={}), partial(may_be_told, bounds=Bounds()))
    assert (small.cause, small.sessions, small.do) == ("", (), "") and type(small) is type(large) is Answer
    assert (large.cause, large.sessions, large.do) == ("SELECT 1", ("s",), "Look. Could save up to 1 call.")


def test_of_too_few_sessions_nothing_is_sure() -> None:
    assert p_above(clustered_share([("a", 1, 1)], {}), 0.1) == 1.0
    many = clustered_share([(str(n), float(n % 2), 1) for n in range(40)], {})
    assert p_above(many, 0.1) < 0.001 and p_above(many, 0.5) == pytest.approx(0.5)


def test_an_id_is_safe_in_a_command_and_a_value_in_sql_and_sentence() -> None:
    hostile = "a'b\"; $(rm -rf ~) `x`\n\u202e"
    assert set(finding_id("x", hostile)) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")
    assert finding_id("x", "a b") != finding_id("x", "a-b"), "two values never share an id"
    for secret in ("/home/brunhildgard/shop", "/srv/redis://u:Gs8wE5nC7mYd1k@h/.env", "gpt token=Pk6tB3rL8vNq2z"):
        assert not re.search("brunhildgard|gs8we5nc7myd1k|pk6tb3rl8vnq2z", finding_id("x", secret), re.I)
    assert finding_id("x", "/home/ann/shop") == finding_id("x", "/home/ben/shop"), "`candidate_answers` numbers these"
    assert sql_text("a'b") == "'a''b'"
    assert safe_name("\n x \t y ") == "x y" and len(safe_name("x" * 99)) == 60


def contrasted(*groups: tuple[str, str, str, int, int]) -> dict[tuple[str, str], held_apart.Contrast]:
    """Contrasts by key and value, of sessions of (agent, place, model, sessions, of which it holds)."""
    parts, sessions = [], []
    for agent, place, model, n, k in groups:
        for i in range(n):
            name = f"{agent}{place}{model}{i}"
            parts.append((name, float(i < k), 1.0))
            sessions.append({"session_id": name, "agent": agent, "place": place, "model": model})
    cells = held_apart.cells_of(by_column(sessions))
    return {
        (made.key, made.value): made for made in held_apart.contrasts(cells.counted(*zip(*parts, strict=True)), cells)
    }


def test_a_contrast_is_with_sessions_that_are_alike() -> None:
    groups = [("a", "p", "m", 12, 11), ("b", "p", "m", 12, 1), ("b", "q", "m", 12, 12)]
    by_value = contrasted(*groups)
    of_agent = by_value["agent", "a"]
    assert (of_agent.rest.n, of_agent.matched) == (12, "your other sessions in the same projects")
    assert of_agent.rest.k == 1 and of_agent.p < 0.01 and of_agent.excess == pytest.approx(10 / 12 * 12 / 36)
    assert by_value["place", "q"].rest.n == 12, "those of the agent that works there"
    alone = contrasted(("a", "p", "m", 9, 9), ("b", "q", "n", 9, 0))
    assert alone["place", "p"].matched == "your other sessions (any agent)"
    assert set(alone) == {("place", "p"), ("place", "q")}, "the same sessions are looked at once"


def test_what_can_not_be_much_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = ("a", "p", "m", 6, 6), ("a", "q", "m", 70, 0)
    assert contrasted(*groups) == {}
    monkeypatch.setattr(held_apart, "LEAST_PART", 0.05)
    assert list(contrasted(*groups)) == [("place", "p"), ("place", "q")]


# -- each finding's own thresholds -------------------------------------------------------------------------------------


NAMED = (
    "session_id", "agent", "model", "place", "cost_usd", BOUND, "unpriced", "is_subagents", "tool", "refused",
    "n", "cause", "kind", "at", "tokens", "records", "skipped", "hours",
)  # fmt: skip
"""Columns that a test need not give."""


def by_column(rows: list[dict[str, Any]]) -> Rows:
    names = list(dict.fromkeys([*NAMED, *(name for row in rows for name in row)]))
    return Rows(names, [[row.get(name) for row in rows] for name in names])


def made_of(name: str, **tables: list[dict[str, Any]]) -> dict[str, Answer]:
    question = questions()[name]
    many = {table: by_column(tables.pop(table)) for table in (question.sliced | question.summed) & tables.keys()}
    paid: dict[str, dict[str, float]] = {cause: {} for cause in CAUSES}
    for charge in tables.pop("charges", []):
        paid[charge["cause"]][charge["session_id"]] = charge["cost_usd"]
    share = {"chat.pushback_type": "5% of prompts not judged: another language"}
    inputs = Inputs(rows=tables, many=many, paid=paid, versions=Versions(1), context="product", unjudged=share)
    return {made.id: made for made in candidate_answers(question, inputs)}


@pytest.mark.parametrize(
    ("costs", "share"),
    [
        ([1.0] * (FEWEST_SESSIONS - 1) + [(FEWEST_SESSIONS - 1) * CONCENTRATED / (1 - CONCENTRATED)], CONCENTRATED),
        ([1.0] * (FEWEST_SESSIONS - 1) + [(FEWEST_SESSIONS - 1) * 0.9], 0.0),
        ([1.0] * (FEWEST_SESSIONS - 2) + [100.0], None),
    ],
)
def test_few_sessions_matter_only_where_cost_is_concentrated(costs: list[float], share: float | None) -> None:
    sessions = [{"session_id": f"s{n}", "cost_usd": usd} for n, usd in enumerate(costs)]
    made = made_of("few_sessions", sessions=sessions).get("few-sessions.cost")
    assert (made.share if made else None) == share
    assert COSTLIEST_SHARE * FEWEST_SESSIONS == 1


def runs(*parts: Any, sessions: int = 1, others: int = 20) -> list[Session]:
    """Sessions of these parts, and others that do nothing of note."""
    made = [session(user("go"), *parts, session_id=f"x{n}", repo="a/b") for n in range(sessions)]
    return made + [
        session(user("go"), call("Bash", command="ls"), session_id=f"o{n}", repo="a/b") for n in range(others)
    ]


def failing(n: int, command: str = "make x") -> list[Any]:
    return [call("Bash", command=command, status="error", result="no")] * n


@pytest.mark.parametrize(
    ("parts", "n"),
    [
        (failing(2), 0),
        (failing(3), 3),
        ([*failing(2), call("Edit", path="a.py"), *failing(2)], 0),
        ([*failing(2), call("Bash", command="make x"), *failing(2)], 0),
        ([*failing(2), call("Read", path="a.py"), *failing(1)], 3),
        ([call("BashOutput", bash_id="1", status="error", result="no")] * 5, 0),
    ],
)
def test_a_circle_is_three_equal_failures_with_nothing_changed(parts: list[Any], n: int, tmp_path: Path) -> None:
    made = answer(store_of(tmp_path, *runs(*parts)), "loops.failing")
    assert (made.size, made.sessions) == (n, ("x0",) if n else ())
    assert "in a row" not in made.sentence, "other calls may stand between"


def test_the_same_failure_at_once_again_is_no_further_failure(tmp_path: Path) -> None:
    store = store_of(tmp_path, *runs(*failing(30), sessions=8))
    ids = {made.id for made in findings(store, bounds=Bounds(effect=0, sureness=0, false_discoveries=1)).answers}
    assert "loops.failing" in ids and not any(name.startswith("failures.") for name in ids)


def test_a_tool_that_fails_more_often_than_it_works(tmp_path: Path) -> None:
    mixed = [part for n in range(4) for part in failing(1, f"deploy --{n}")] + [call("Bash", command="deploy --now")]
    (made,) = [a for a in findings(store_of(tmp_path, *runs(*mixed, sessions=20))).answers if a.id.startswith("fail")]
    assert made.size == 80 and made.sentence.startswith("deploy") and "(80.0%)" in made.sentence
    assert "25" not in made.sentence and "succeed later" in made.details


@pytest.mark.parametrize(
    ("name", "tool"),
    [("mcp__a__find", "mcp__a__find"), ("WebFetch", "WebFetch"), ("Read", "read"), ("Grep", "search")],
)
def test_a_servers_tool_fails_by_its_name_and_others_by_what_they_are_for(name: str, tool: str, tmp_path: Path) -> None:
    made = session(user("go"), call(name, status="error", result="no", path="a.py"))
    _, values = rows(store_of(tmp_path, made), questions()["failures"].queries["calls"])
    assert [row[0] for row in values] == [tool]


def failures(*groups: tuple[str, int, tuple[int, ...]]) -> dict[str, Answer]:
    """Of tools by name: calls in each of nine sessions, and failures in these by turns."""
    sessions = [{"session_id": f"s{n}", "agent": "a", "model": "m", "place": None} for n in range(9)]
    base = {"error_class": "other", "mended": 0, "minutes": None}
    calls = [
        {"session_id": f"s{n}", "tool": tool, "n": k, "failed": failed[n % len(failed)], **base}
        for tool, k, failed in groups
        for n in range(9)
    ]
    return made_of("failures", sessions=sessions, calls=calls, kinds=kinds(calls))


def kinds(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row a session and tool, and one for all of its tools but tests, as the query has them."""
    rows = []
    for session_id in {row["session_id"] for row in calls}:
        here = [row for row in calls if row["session_id"] == session_id]
        of = {
            name: sum(row[column] for row in here if row["tool"] != "test")
            for name, column in (("k_all", "failed"), ("n_all", "n"))
        }
        rows += [{"tool": row["tool"], "k": row["failed"], "n": row["n"], **of} for row in here]
        rows.append({"tool": None, "k": of["k_all"], "n": of["n_all"], **of})
    return [{"place": None, "agent": "a", "model": "m", "sessions": 1, **row} for row in rows]


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        (("not_found", "not_found", "network"), "Most errors are “not found”"),
        (("not_found", "network", "permission"), "The most common error is “network”"),
        (("exit_nonzero",) * 3, "Most errors are “unexplained exit code”"),
        ((None,) * 3, "Most errors are “unclassified error”"),
    ],
)
def test_the_cause_of_more_than_half_is_said_to_be_most(classes: tuple[str | None, ...], said: str) -> None:
    sessions = [{"session_id": f"s{n}", "agent": "a", "model": "m", "place": None} for n in range(9)]
    base = {"tool": "find", "n": 5, "failed": 5, "mended": 0, "minutes": None}
    calls = [{"session_id": f"s{n}", "error_class": classes[n // 3], **base} for n in range(9)]
    made = made_of("failures", sessions=sessions, calls=calls, kinds=kinds(calls))
    assert said in made["failures.often.find"].details


def test_a_failing_tool_is_held_against_the_persons_other_calls() -> None:
    find, read = ("find", 5, (1, 5, 3)), ("read", 30, (0, 1, 2))
    alone, beside, tests = failures(find), failures(find, read), failures(find, read, ("test", 6, (5, 4)))
    alone_p, beside_p, tests_p = (made["failures.often.find"].p or 0.0 for made in (alone, beside, tests))
    assert "Your other tools, tests and builds left out, fail in 3.3%." in beside["failures.often.find"].sentence
    assert beside_p < 0.001 < alone_p, "of one tool alone it is asked whether it fails more often than it works"
    assert tests_p == beside_p, "tests fail because they are run"


def large(parts: list[float], usd: float = 1.0, results: int = 500) -> dict[str, Answer]:
    """Of one session: results that make these parts of what is carried, at a bill of ten dollars."""
    row = {"session_id": "s", "name": "Bash", "tokens": 9, "times": 9}
    dear = [{**row, "seq": n, "cost_usd": part * usd, "results": None} for n, part in enumerate(parts)]
    dear[0]["results"] = results
    return made_of("large_results", sessions=[{"session_id": "s", "cost_usd": 10.0}], results=dear)


@pytest.mark.parametrize(
    ("parts", "results", "share"),
    [
        ([0.5, 0.3], 500, 0.08),
        ([0.5, 0.3], FEWEST_RESULTS - 1, None),
        ([0.5, 0.3], FEWEST_RESULTS, 0.05),
        ([0.5] + [0.06] * 8, 500, 0.05 + 0.006 * 4),
        ([0.5, 0.04], 500, 0.05),
        ([0.02] * 30, 5000, 0.04),
    ],
    ids=["few", "too few to stand out", "one in a hundred", "five of 500", "a tenth of the dearest", "twenty at most"],
)
def test_a_few_results_are_said_by_what_carrying_them_costs(
    parts: list[float], results: int, share: float | None
) -> None:
    made = large(parts, results=results).get("large-results.carried")
    assert (made.share if made else None) == (None if share is None else pytest.approx(share))


def test_a_result_is_carried_by_the_calls_before_the_next_compaction(tmp_path: Path) -> None:
    log = "x" * 40_000
    parts = [
        call("Bash", command="cat log", result=log),
        say("a", input_tokens=9),
        call("Bash", command="ls", result="y"),
        say("failed, nothing was sent", input_tokens=0),
        say("b", input_tokens=9),
    ]
    store = store_of(tmp_path, session(user("go"), *parts, event("compaction"), say("c", input_tokens=9)))
    row, small = rows_of(store, questions()["large_results"].queries["results"])
    assert (row["name"], row["tokens"], row["times"], row["results"]) == ("Bash", 10_000, 2, 2)
    assert (row["cost_usd"], small["cost_usd"]) == (0.0, None), "what is below a twentieth has no part"


def test_the_agent_that_reads_again_is_named() -> None:
    base = {"agent": "a", "model": "m", "place": None}
    sessions = [{"session_id": f"s{n}", **base, "agent": "a" if n < 10 else "b"} for n in range(30)]
    bill = [{**row, "cost_usd": 1.0 + n % 3 / 10} for n, row in enumerate(sessions)]
    charges = [{"session_id": f"s{n}", "cause": "reread", "cost_usd": 0.3} for n in range(10)]
    repeats = [{"session_id": "s1", "kind": "reread", "path": "x.py", "name": "Read", "number": 1}]
    made = made_of("repeated_work", sessions=bill, charges=charges, repeats=repeats)
    of_agent = made["repeated-work.reread.agent.a"]
    assert (
        "with a was spent re-reading unchanged files" in of_agent.sentence and "compared with 0.0%" in of_agent.sentence
    )
    assert of_agent.share == pytest.approx(3.0 / 33) and of_agent.about == made["repeated-work.reread"].about
    assert not any(".place." in name for name in made), "of places nothing is asked: an agent reads, not a place"


@pytest.mark.parametrize(("path", "expected"), [("a.py", 1), ("a.md", 0)])
def test_only_changes_of_code_have_to_be_checked(path: str, expected: int, tmp_path: Path) -> None:
    store = store_of(tmp_path, *runs(call("Edit", path=path)))
    (count,) = rows(store, f"SELECT count(*) FROM ({questions()['untested_changes'].queries['changed']})")[1][0]
    assert count == expected


@pytest.mark.parametrize(
    ("parts", "checked"),
    [
        ([call("Edit", path="a.py"), call("Bash", command="pytest")], True),
        ([call("Bash", command="pytest"), call("Edit", path="a.py")], False),
        ([call("Edit", path="a.py")], None),
    ],
)
def test_checked_is_a_check_behind_the_last_change(parts: list[Any], checked: bool | None, tmp_path: Path) -> None:
    store = store_of(tmp_path, *runs(*parts))
    row, *_ = rows_of(store, questions()["untested_changes"].queries["changed"])
    assert (None if row["checked"] is None else row["checked"] > row["edited"]) is checked


@pytest.mark.parametrize(
    ("path", "hot", "expected"), [("core.py", 11, 11 / 12), ("core.py", 5, 0.0), ("CHANGELOG.md", 12, None)]
)
def test_a_place_that_is_never_finished(path: str, hot: int, expected: float | None, tmp_path: Path) -> None:
    sessions = [
        session(user("go"), call("Edit", path=path if n < hot else f"f{n}.py"), session_id=f"s{n}", repo="a/b")
        for n in range(12)
    ]
    made = findings(store_of(tmp_path, *sessions), bounds=Bounds(effect=0, sureness=0, false_discoveries=1)).answers
    shares = [a.share for a in made if a.id.startswith("hotspots.")]
    assert shares == ([] if expected is None else [pytest.approx(expected)])


def test_three_thousand_sessions_of_a_place_have_a_p() -> None:
    """They can be chosen in more ways than a float holds."""
    sessions = [{"session_id": f"s{n}", "place": "r"} for n in range(3000)]
    edits = [{"session_id": f"s{n}", "path": "core.py" if n < 800 else f"f{n % 4}.py"} for n in range(3000)]
    (made,) = made_of("hotspots", sessions=sessions, edits=edits).values()
    a_quarter = sum(comb(3000, k) * 3 ** (3000 - k) for k in range(800, 3001)) / 4**3000
    assert made.p == pytest.approx(5 * a_quarter), "of the most changed of five files"


@pytest.mark.parametrize(("hours", "of", "share"), [(3.0, 10.0, 0.3), (2.0, 10.0, 0.0), (0.9, 2.0, None)])
def test_a_wait_is_said_from_an_hour_and_a_quarter_of_the_time(hours: float, of: float, share: float | None) -> None:
    expected = [] if share is None else [pytest.approx(share)]
    tables: dict[str, list[dict[str, Any]]] = {
        "sessions": [{"session_id": "s", "agent": "a", "model": "m", "place": "r"}],
        "waits": [],
        "ran": [],
        "each_ran": [{"session_id": "s", "tool": "make", "hours": hours}],
        "ended": [{"tool": "make", "session_id": "s", "n": 50, "refused": 2}],
    }
    ran = [{"tool": "make", "hours": [hours]}]
    times = [{"session_id": "s", "worked_s": 3600 * of, "waited_s": 0.0, "left_alone_s": 0.0}]
    assert [a.share for a in made_of("waiting", **tables | {"ran": ran, "times": times}).values()] == expected
    waits = [{"session_id": "s", "seq": n, "tool": "make", "kind": "call", "waited_s": 900 * hours} for n in range(4)]
    left_alone = {"left_alone_s": 30_000.0, "waited_s": 3600 * hours}
    times = [{"session_id": "s", "worked_s": 3600 * (of - hours), **left_alone}]
    made = made_of("waiting", **tables | {"waits": waits, "times": times})
    assert [a.share for a in made.values()] == expected
    for each in made.values():
        assert "4 waits of 1 min to 1 h" in each.details and "with make (4)" in each.details
        assert "You refused 2 of 50 calls" in each.details and "8.3 h" in each.caveat
        assert each.interval is None and each.p is None, "what was waited is counted, not drawn"


@pytest.mark.parametrize(
    ("hours", "advises", "saves"),
    [
        ({"call": 2.0}, ["Allow-list"], 2.0),
        ({"edit": 3.0, "call": 0.2}, ["edit files"], 3.0),
        ({"question": 2.0}, ["notifications"], 0.0),
        ({"question": 1.0, "edit": 0.6, "call": 0.5}, ["notifications", "edit files", "Allow-list"], 1.1),
    ],
)
def test_advice_on_waits_goes_by_what_was_waited_for(hours: dict[str, float], advises: list[str], saves: float) -> None:
    waits = [
        {"session_id": "s", "seq": n, "tool": kind, "kind": kind, "waited_s": 3600 * h}
        for n, (kind, h) in enumerate(hours.items())
    ]
    times = [{"session_id": "s", "worked_s": 3600.0, "waited_s": 0.0, "left_alone_s": 0.0}]
    made = made_of("waiting", sessions=[], waits=waits, times=times, ran=[], ended=[])["waiting.for-you"]
    places = {words: made.do.find(words) for words in ("notifications", "edit files", "Allow-list")}
    assert sorted((w for w, at in places.items() if at >= 0), key=places.__getitem__) == advises
    assert made.saves == pytest.approx(saves) and ("Could save" in made.do) is bool(saves)


@pytest.mark.parametrize(
    ("big", "sentence", "caveat"),
    [
        (30.0, "$61.00 (9.5% of the cost) was spent", "Computed from the logged tokens"),
        (
            40.0,
            "$71.00 (",
            "One session accounts for $40.00 (56.3% of the total). The median session accounts ",
        ),
    ],
)
def test_the_caveat_of_a_total_that_one_session_rules_is_the_median(big: float, sentence: str, caveat: str) -> None:
    bill = [
        {"session_id": f"s{n}", "cost_usd": 20.0, "place": f"p{n}", BOUND: None, "unpriced": None} for n in range(32)
    ]
    charges = [{"session_id": f"s{n}", "cause": "rebuilt", "cost_usd": big if n == 9 else 1.0} for n in range(32)]
    made = made_of("money", sessions=bill, charges=charges, losses=[], writes=[])["money.rebuilt"]
    assert made.sentence.startswith(sentence) and made.caveat.startswith(caveat)
    assert made.sessions == ("s9", "s0", "s1", "s10", "s11")
    assert made.by_session == {"s9": big, "s0": 1.0, "s1": 1.0, "s10": 1.0, "s11": 1.0}


def test_evidence_comes_in_order_of_contribution(tmp_path: Path) -> None:
    made = [
        session(user("go"), *[call("Bash", command=f"x{k}") for k in range(n)], session_id=name)
        for name, n in (("few", 1), ("most", 3), ("some", 2))
    ]
    for each in made:
        for position, one in enumerate(each.tool_calls):
            one.exit_code = 10 * position if each.session_id == "few" else position
    store = store_of(tmp_path, *made)
    of_calls = "SELECT session_id, seq, exit_code FROM tool_calls"

    def order(part: str = "") -> list[tuple[str, int]]:
        return [(row["session_id"], row["exit_code"]) for row in rows_of(store, with_source_lines(of_calls, part))]

    assert order() == [("most", 0), ("most", 1), ("most", 2), ("some", 0), ("some", 1), ("few", 0)]
    assert order("exit_code")[:4] == [("most", 2), ("most", 1), ("some", 1), ("few", 0)]


def seconds_of(store: Store, query: str, column: str) -> list[tuple[str, float]]:
    return [(row["tool"], row[column]) for row in rows_of(store, questions()["waiting"].queries[query])]


def test_of_a_call_that_was_open_for_long_the_rest_is_waiting(tmp_path: Path) -> None:
    made = session(user("go"), call("Bash", command="make x"))
    (open_call,) = made.tool_calls
    open_call.ended_at = made.events[-1].timestamp = (open_call.started_at or 0) + 4000 * 1_000_000
    store = store_of(tmp_path, made)
    assert seconds_of(store, "each_ran", "ran_s") == [("make x", LONGEST_S["shell"])]
    assert seconds_of(store, "waits", "waited_s") == [("make x", 4000 - LONGEST_S["shell"])]


def test_what_one_program_ran_for_is_the_sum_whatever_it_was_run_for(tmp_path: Path) -> None:
    made = session(user("go"), call("Bash", command="python -m pytest"), call("Bash", command="python /x.py"))
    assert {c.class_ for c in made.tool_calls} == {"test", "shell"}
    for each, seconds in zip(made.tool_calls, (20, 30), strict=True):
        each.started_at = seconds * 1_000_000_000
        each.ended_at = each.started_at + seconds * 1_000_000
    assert seconds_of(store_of(tmp_path, made), "each_ran", "ran_s") == [("python", 50)]


@pytest.mark.parametrize(
    ("spans", "ran_s"),
    [
        ([(0, 60), (0, 60)], 60),
        ([(0, 60), (30, 90)], 90),
        ([(0, 90), (30, 60), (80, 100)], 100),
        ([(0, 60), (60, 90), (200, 210)], 100),
        ([(0, 6000), (5000, 6001)], 601),
    ],
)
def test_calls_of_one_program_that_overlap_count_each_moment_once(
    spans: list[tuple[int, int]], ran_s: float, tmp_path: Path
) -> None:
    made = session(user("go"), *[call("Bash", command=f"make x{n}") for n in range(len(spans))])
    for each, (start, end) in zip(made.tool_calls, spans, strict=True):
        each.started_at, each.ended_at = 10**9 + start * 10**6, 10**9 + end * 10**6
        each.command = "make all"
    assert seconds_of(store_of(tmp_path, made), "each_ran", "ran_s") == [("make all", ran_s)]


DATES: list[dict[str, Any]] = [
    {},
    {"ran_s": 7.0},
    {"ran_s": 7.0, "hooks_s": 3.0},
    {"hooks_s": 3.0},
    {"limit_s": 20.0},
    {"limit_s": 20.0, "hooks_s": 3.0},
    {"not_before": 900 * 10**6},
    {"not_before": 900 * 10**6, "hooks_s": 3.0, "limit_s": 5000.0},
    {"not_before": 5000 * 10**6},
    {"ran_s": 7.0, "status": "rejected"},
]


def test_sql_and_python_date_a_call_alike(tmp_path: Path) -> None:
    made = []
    for n, (name, dates) in enumerate(product(("Bash", "Edit", "WebFetch"), DATES)):
        made.append(session(user("go"), call(name, command="make x", file_path="a", url="x"), session_id=f"s{n:02}"))
        (open_call,) = made[-1].tool_calls
        open_call.started_at, open_call.ended_at = 0, 1000 * 10**6
        for field, value in dates.items():
            setattr(open_call, field, value)
    _, asked = rows(store_of(tmp_path, *made), f"SELECT {longest_sql()} FROM tool_calls ORDER BY session_id")
    assert [seconds for (seconds,) in asked] == pytest.approx([longest_s(one.tool_calls[0]) for one in made])


@pytest.mark.parametrize(("precision", "expected"), [(0.49, 0), (0.51, 2)])
def test_what_is_right_less_than_half_the_time_says_nothing(
    precision: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentsignals.questions.findings import work  # noqa: PLC0415
    from agentsignals.stats.validation import figures_of  # noqa: PLC0415

    measured = [replace(figure, precision=precision) for figure in figures_of("chat.pushback_type")]
    monkeypatch.setattr(work, "figures_of", lambda _: measured)
    base = {"agent": "a", "model": "m"}
    sessions = [{"session_id": f"s{n}", "place": "p" if n < 10 else "q", **base} for n in range(20)]
    turns = [
        {"session_id": f"s{n}", "label": "correction" if n < 9 or n == 19 else "non_pushback", "n": 2}
        for n in range(20)
    ]
    made = made_of("pushback", sessions=sessions, turns=turns)
    assert [answer.details for answer in made.values()] == ["5% of prompts not judged: another language."] * expected


def test_one_reason_of_most_failures_is_said_unless_nobody_would_do_anything_about_it() -> None:
    def why(reason: str, n_of: int = 6) -> float:
        base = {"rung": "failed", "task_id": None}
        made = [{"session_id": f"s{n}", "reason": reason if n < n_of else f"other {n}", **base} for n in range(10)]
        return made_of("why_failed", rungs=made)["why-failed.failed"].share

    assert (why("wrong_place"), why("wrong_place", 5), why("wrong_place", 4)) == (0.6, 0.5, 0.0)
    assert [why(name) for name in ("tests", "wrong_answer", "cannot_tell")] == [0.0] * 3


@pytest.mark.parametrize(
    ("bound", "words"), [(None, "$1.00 (50.0% of the cost)"), (9, "$1.00 (50.0% of the known cost)")]
)
def test_a_share_of_a_bill_that_is_a_lower_bound_is_an_upper_one(bound: int | None, words: str) -> None:
    bill = [{"session_id": "s", "place": "r", "cost_usd": 2.0, "visible_output_tokens": bound, "unpriced": None}]
    charges = [{"session_id": "s", "cause": "missed", "cost_usd": 1.0}]
    assert words in made_of("money", sessions=bill, charges=charges, losses=[], writes=[])["money.missed"].sentence


def test_what_a_cause_took_is_the_sum_of_its_own_charges() -> None:
    bill = [
        {"session_id": s, "place": "r", "cost_usd": 8.0, "visible_output_tokens": None, "unpriced": None}
        for s in ("s", "t")
    ]
    paid = [("s", "missed", 3.0), ("s", "rebuilt", 0.5), ("t", "missed", 0.004), ("s", "output", 4)]
    charges = [{"session_id": session, "cause": cause, "cost_usd": usd} for session, cause, usd in paid]
    made = made_of("money", sessions=bill, charges=charges, losses=[], writes=[])
    assert [made[f"money.{cause}"].size for cause in ("missed", "rebuilt", "compaction")] == [3.004, 0.5, 0.0]
    assert "in 1 of 2 sessions" in made["money.missed"].sentence, "less than a cent was counted as a session"


def loss(cause: str, usd: float, **more: Any) -> dict[str, Any]:
    base = {"session_id": "s", "cause": cause, "after": "work", "cost_usd": usd, "read_usd": usd / 12.5}
    return {**base, "pause_s": 0.0, "lives_s": 300, "longer_usd": 0.1, **more}


@pytest.mark.parametrize(
    ("losses", "says", "advises", "saves"),
    [
        ([("settings", 3.0), ("work", 0.1)], "a change of thinking or effort (once)", "Change thinking", 3.0),
        ([("model", 2.0), ("skill", 2.0)], "a skill or slash command", "Choose the model", 4.0),
        ([("interruption", 4.0)], "an interruption", "after you interrupt", 4.0),
        ([("prompt", 4.0)], "100.0% of it followed nothing logged that drops a cache", "", None),
        (
            [("work", 4.5), ("prompt", 0.9), *((act, 0.9) for act in ("model", "resume", "skill", "settings"))],
            "60.0% of it followed nothing logged that drops a cache",
            "",
            None,
        ),
        ([("work", 4.0), ("prompt", 1.0)], "80.0% of it came after the agent's own tool calls", "", None),
    ],
)
def test_advice_on_missed_caches_names_what_came_before_them(
    losses: list[tuple[str, float]], says: str, advises: str, saves: float | None
) -> None:
    bill = [{"session_id": "s", "place": "r", "cost_usd": 8.0, "visible_output_tokens": None, "unpriced": None}]
    charges = [{"session_id": "s", "cause": "missed", "cost_usd": 5.0}]
    rows = [loss("missed", usd, after=after) for after, usd in losses]
    made = made_of("money", sessions=bill, charges=charges, losses=rows, writes=[])["money.missed"]
    assert says in made.details and advises in made.do and "cache should still have held" in made.sentence
    assert made.saves == (saves or 0.0) and ("Could save up to" in made.do) is (saves is not None)
    assert not {"tools", "instructions"} & set(made.do.split())


@pytest.mark.parametrize(
    ("losses", "advises", "saves"),
    [
        ([], "", 0.0),
        ([loss("rebuilt", 5.0, pause_s=1500)], "one-hour prompt caches. They survive 1 of these 1", 4.6 - 0.1),
        ([loss("rebuilt", 5.0, pause_s=9000)], "After a long pause, such as an hour", 5.0),
        (
            [loss("rebuilt", 5.0, pause_s=9000, lives_s=3600, longer_usd=None)],
            "After a long pause, such as an hour",
            5.0,
        ),
        ([loss("rebuilt", 5.0, pause_s=1500, longer_usd=4.5)], "Reply within five minutes", 4.6),
        ([loss("rebuilt", 5.0, pause_s=1500, longer_usd=None)], "Reply within five minutes", 4.6),
        ([loss("rebuilt", 5.0, pause_s=1500, longer_usd=0.0)], "Reply within five minutes", 4.6),
        (
            [loss("rebuilt", 2.5, pause_s=1500), loss("rebuilt", 2.5, pause_s=9000)],
            "After a long pause",
            2.3 - 0.1 + 2.5,
        ),
    ],
)
def test_advice_on_expired_caches_goes_by_their_life(losses: list[dict[str, Any]], advises: str, saves: float) -> None:
    bill = [{"session_id": "s", "place": "r", "cost_usd": 8.0, "visible_output_tokens": None, "unpriced": None}]
    charges = [{"session_id": "s", "cause": "rebuilt", "cost_usd": 5.0}]
    made = made_of("money", sessions=bill, charges=charges, losses=losses, writes=[])["money.rebuilt"]
    assert advises in made.do and made.saves == pytest.approx(saves)
    assert "five minutes" not in made.do or all(row["lives_s"] == 300 for row in losses)


@pytest.mark.parametrize(
    ("tokens", "model", "advises", "saves"),
    [
        (400_000, "claude-opus-4-6", "after $1.60 of extra write cost", 4.6 - 0.1 - 1.5),
        (1_000_000, "claude-opus-4-6", "Reply within five minutes", 4.6),
        (1_000_000, "gpt-5", "after $0.10 of extra write cost", 4.5),
    ],
)
def test_an_hour_is_paid_in_sessions_without_a_loss_too(tokens: int, model: str, advises: str, saves: float) -> None:
    bill = [{"session_id": "s", "place": "r", "cost_usd": 8.0, "visible_output_tokens": None, "unpriced": None}]
    charges = [{"session_id": "s", "cause": "rebuilt", "cost_usd": 5.0}]
    writes = [{"session_id": name, "model": model, "at": None, "tokens": tokens} for name in ("s", "t")]
    rows = {"losses": [loss("rebuilt", 5.0, pause_s=1500)], "writes": writes}
    made = made_of("money", sessions=bill, charges=charges, **rows)["money.rebuilt"]
    assert advises in made.do and made.saves == pytest.approx(saves)


def test_what_can_not_be_told_names_the_agents() -> None:
    base = {"cost_usd": None, "visible_output_tokens": 9, "has_tokens": False}
    sessions = [{"session_id": str(n), "agent": f"agent-{n // 2}" if n else None, **base} for n in range(80)]
    for made in made_of("data_quality", sessions=sessions, artifacts=[]).values():
        assert "(agent-1 2, agent-10 2, " in made.sentence and "…)" in made.sentence and len(made.sentence) < 400


@pytest.mark.parametrize(
    ("rows", "why", "do"),
    [
        ([("kiro", None, False)], "the log does not state all tokens (kiro 1).", "No total"),
        ([("codex", "new-1", True)], "no price of the model is known (new-1 1).", "prices.toml"),
        (
            [("kiro", None, False), ("codex", "new-1", True), ("pi", "new-1", True)],
            "the log does not state all tokens (kiro 1); no price of the model is known (new-1 2).",
            "prices.toml",
        ),
    ],
)
def test_an_unknown_cost_says_whether_tokens_or_a_price_are_missing(
    rows: list[tuple[str, str | None, bool]], why: str, do: str
) -> None:
    base = {"is_unpriced": True, "is_bound": False, "n": 1, "first": ["s"]}
    sessions = [{"agent": agent, "model": model, "has_tokens": has_tokens, **base} for agent, model, has_tokens in rows]
    made = made_of("data_quality", sessions=sessions, artifacts=[])["data-quality.unpriced"]
    assert made.sentence.endswith(why) and do in made.do


def test_what_one_session_paid_is_as_sure_as_one_session() -> None:
    bill = [{"session_id": f"s{n}", "cost_usd": 10.0, BOUND: None, "unpriced": None} for n in range(40)]
    charges = [{"session_id": f"s{n}", "cause": "rebuilt", "cost_usd": 1.0 if n < 20 else 0.001} for n in range(40)]
    assert made_of("money", sessions=bill, charges=charges, losses=[], writes=[])["money.rebuilt"].n == 20
    alone = made_of("money", sessions=bill, charges=[charges[0] | {"cost_usd": 90.0}], losses=[], writes=[])[
        "money.rebuilt"
    ]
    assert alone.n == 1 and alone.share == 0.225 and said(alone) == []


def test_a_reason_that_says_nothing_is_not_said() -> None:
    def of(reason: str) -> str:
        rungs = [{"session_id": str(n), "rung": "not_judged", "reason": reason, "task_id": None} for n in range(3)]
        return made_of("why_failed", rungs=rungs)["why-failed.not-judged"].sentence

    assert of("no verdict").endswith("have no verdict (solved or failed).") and "mostly “it crashed”" in of(
        "it crashed"
    )


def test_candidates_that_are_unlike_are_said_in_a_line(tmp_path: Path) -> None:
    made = answer(store_of(tmp_path, *evaluated(1, tasks=(range(8), range(8, 16)))), "solved-more.unlike", "eval")
    assert re.fullmatch(r"No two of the \d candidates ran the same tasks under .+: [a-z, ]+ differs?\.", made.sentence)
    assert "differ: " in made.caveat or "differs: " in made.caveat


@pytest.mark.parametrize("winner", [0, 1])
def test_who_solved_more_did_so_by_an_interval_around_the_difference_over_tasks(tmp_path: Path, winner: int) -> None:
    attempts = [
        Attempt(
            root=f"/runs/{model}/{task}", task_id=f"task-{task}", attempt_index=0, run_id="r1", ending="finished",
            knobs={"model_id": model, "agent_type": "pi", "dataset": "made-up"}, reward=float(task < solved),
        )
        for model, solved in zip(("acme/one", "acme/two"), ((3, 27), (27, 3))[1 - winner], strict=True)
        for task in range(30)
    ]  # fmt: skip
    store = store_of(tmp_path, *(session for attempt in attempts for session in attach_attempts([], [attempt], {})))
    (made,) = (a for a in findings(store, context="eval", bounds=Bounds()).answers if a.id.startswith("solved-more."))
    assert made.sentence.startswith(("acme/one", "acme/two")[winner]) and made.interval is not None
    assert 0 < made.interval[0] < made.share < made.interval[1] < 1
    assert re.fullmatch(r"\w+ confidence · difference \d\d\.\d% to \d\d\.\d% · 30 tasks", sure_of(made))


# -- the ways out ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_of(tmp_path_factory.mktemp("paused"), *STORES["pauses that lose the cache"](1))


@pytest.mark.slow
def test_every_sentence_opens_down_to_its_lines(paused: Store, capsys: pytest.CaptureFixture[str]) -> None:
    made = findings(paused, bounds=Bounds(effect=0, sureness=0, false_discoveries=1))
    assert {a.question for a in made.answers} <= {q.question for q in questions().values()} and made.bill
    by_question = {a.question: a for a in reversed(made.answers) if a.size}
    assert len(by_question) > 4
    for each in by_question.values():
        assert each.sentence.endswith(".") and each.caveat.endswith(".")
        assert each.again == f"agentsignals findings {each.id}" and re.fullmatch(r"[a-z0-9.-]+", each.id)
        assert answer(paused, each.id).sentence == each.sentence
        names, values = rows(paused, each.cause)
        assert {"session_id", "seq", "line", "file"} <= set(names) and values, each.id
    document = printed_json(capsys, "findings", "money.rebuilt", "--store", paused.folder)
    assert document["finding"]["id"] == "money.rebuilt" and document["evidence"][0]["line"] is not None


def test_the_evidence_of_lost_caches_is_every_pause(paused: Store) -> None:
    made = answer(paused, "money.rebuilt")
    evidence = rows_of(paused, made.cause)
    assert {row["session_id"] for row in evidence} >= set(made.sessions)
    assert all(row["pause_s"] > 300 and row["lost_tokens"] > 1000 for row in evidence)
    assert len(evidence) == rows(paused, "SELECT count(*) FROM steps WHERE cache_read_tokens = 0 AND step > 0")[1][0][0]


def test_the_verb_says_the_sentence_how_sure_and_how_to_see_it(
    paused: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "findings", "--store", paused.folder)
    assert (
        "\n1. $" in out and "rebuilding expired prompt caches" in out and "agentsignals findings money.rebuilt" in out
    )
    assert "checks run. False discovery rate 5%. Effects under 5% are hidden." in out
    out = printed(capsys, "findings", "money.rebuilt", "--store", paused.folder)
    assert out.startswith("Where did the money go?\n$") and "Caveat: " in out and "pause_s" in out
    assert "No findings. Topics checked: " in printed(capsys, "findings", "--effect", "1", "--store", paused.folder)


def test_what_was_kept_is_printed_as_it_was_when_it_was_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hot = [session(user("go"), call("Edit", path="a.py"), session_id=f"s{n}", repo="a/b") for n in range(40)]
    folder = str(store_of(tmp_path, *hot).folder)
    first, again = (printed(capsys, "findings", "--store", folder, "--json") for _ in range(2))
    assert "hotspots." in first and first == again
    assert asking(Store(folder)) == asking(Store(folder), "product") == [] != asking(Store(folder), "eval")


@pytest.mark.slow
def test_a_store_without_sessions_has_no_finding_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path)
    assert findings(store).answers == [] and findings(store).bill == ""
    assert main(["findings", "--store", str(tmp_path)]) == 1
    says = capsys.readouterr()
    assert not says.out and "holds no session" in says.err and "agentsignals analyze FOLDER" in says.err


def test_what_is_asked_for_wrongly_is_said(paused: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"no finding 'money.x'") as raised:
        answer(paused, "money.x")
    assert "Did you mean money" in raised.value.hint
    with pytest.raises(UsageError, match=r"no finding 'x'"):
        answer(paused, "x")
    assert main(["findings", "--rate", "7", "--store", str(paused.folder)]) == 2
    assert "from 0 to 1" in capsys.readouterr().err


@pytest.mark.slow
def test_the_python_face_gives_the_same(paused: Store) -> None:
    made = agentsignals.find(paused, "product")
    assert [a.id for a in made.answers] == [a.id for a in findings(paused).answers] and made.context == "product"


@pytest.mark.slow
def test_findings_of_one_context_leave_the_other_out(tmp_path: Path) -> None:
    store = store_of(tmp_path, *runs(*failing(5), sessions=9), *evaluated(1, outage=0.4)[:20])
    assert {a.id for a in findings(store).answers} == {"loops.failing"}
    assert [a.id for a in findings(store, "eval").answers] == ["why-failed.infrastructure"]
    made = findings(store, "eval").answers[0]
    assert made.again == "agentsignals findings --context eval why-failed.infrastructure"


def test_hostile_names_stay_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "a'; DROP TABLE x; --\x1b[31m"
    parts = [call("Edit", path=f"{name}.py")]
    sessions = [session(user("go"), *parts, session_id=f"s{n}", repo=name) for n in range(12)]
    store = store_of(tmp_path, *sessions)
    (made,) = [a for a in findings(store).answers if a.id.startswith("hotspots.")]
    assert len(rows(store, made.cause)[1]) == 12
    assert "\x1b" not in printed(capsys, "findings", "--store", tmp_path)


def test_lines_of_gives_the_file_and_line(tmp_path: Path) -> None:
    store = store_of(tmp_path, session(user("go"), say("done")))
    assert rows(store, with_source_lines("SELECT session_id, seq FROM events WHERE kind = 'human_turn'"))[1] == [
        ("s1", 0, 1, None)
    ]


def dear(place_usd: float, places: tuple[int, int], charges: list[tuple[int, str, float]]) -> Answer:
    """What is said of a place of so many sessions, each at this cost, beside others that cost a dollar each."""
    n_dear, n = places[0], sum(places)
    base = {"agent": "a", "model": "m"}
    here = {"place": "dear", "cost_usd": place_usd}, {"place": "other", "cost_usd": 1.0}
    sessions = [{"session_id": f"s{k}", **base, **here[k >= n_dear]} for k in range(n)]
    paid = [{"session_id": f"s{k}", "cause": cause, "cost_usd": usd} for k, cause, usd in charges]
    made = made_of("expensive_projects", sessions=sessions, charges=paid)
    (found,) = [each for each in made.values() if "in dear costs" in each.sentence]
    return found


@pytest.mark.parametrize(("factor", "share"), [(1.4, 0.0), (1.6, 0.6 * 10 / (16 + 10))])
def test_a_place_is_dear_from_half_more_a_session(factor: float, share: float) -> None:
    made = dear(factor, (10, 10), [(1, "output", 5.0), (11, "input", 5.0)])
    assert made.share == pytest.approx(share) and made.details.endswith("mostly for output.")


def test_a_dear_place_is_explained_by_what_its_sessions_pay_more_for_each() -> None:
    """Three times as many others pay more output together, and less of it each."""
    output = [(n, "output", 1.0 if n < 10 else 0.5) for n in range(40)]
    assert dear(2.0, (10, 30), [*output, (1, "input", 2.0)]).details.endswith("mostly for output.")


_TWICE = """
import os, sys
from agentsignals.questions.ranking import Bounds
from agentsignals.questions.findings import findings
from agentsignals.ingest.engine.local import in_background
from agentsignals.store import Store

copies = []

def begun(function):
    copies.append(in_background(function))
    return copies[0]

store, bounds = Store(sys.argv[1]), Bounds(effect=0.0, sureness=0.0, false_discoveries=1.0)
of_two = findings(store, bounds=bounds, beside=begun)
print(of_two == findings(store, bounds=bounds), len(copies), bool(of_two.bill), len(of_two.answers) > 1, flush=True)
os._exit(0)
"""


def test_two_processes_say_what_one_says(paused: Store) -> None:
    """With bounds below which nothing falls: all that was looked at is compared."""
    ran = subprocess.run(
        [sys.executable, "-c", _TWICE, str(paused.folder)], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == ["True", "1", "True", "True"]


# -- eval runs: who resolved how much, and whose findings these are ----------------------------------------------------


def judged(model: str, solved: Sequence[bool], dataset: str = "a") -> list[Session]:
    facts = [
        {"trial_id": f"{dataset}/{model}/{n}", "task_id": f"t{n}", "reward": float(good),
         "knobs": {"model_id": model, "dataset": dataset}}
        for n, good in enumerate(solved)
    ]  # fmt: skip
    return [view.session for one in facts for view in trial(one)]


def test_findings_of_eval_runs_begin_with_resolved_by_candidate_in_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [*judged("m-1", [True] * 9 + [False]), *judged("m-2", [True] * 3 + [False] * 7),
            *judged("m-3", [True, False], dataset="b")]  # fmt: skip
    store = store_of(tmp_path / "s", *runs)
    first, second = agentsignals.find(store).resolved
    assert (first.datasets, first.tasks, [c.name for c in first.candidates]) == (["a"], 10, ["m-1", "m-2"])
    best = first.candidates[0]
    assert (best.share, best.judged, (best.low, best.high)) == (0.9, 10, wilson(9, 10))
    assert ([c.name for c in second.candidates], second.command) == (["m-3"], "")
    lines = printed(capsys, "findings", "--store", store.folder).splitlines()
    assert lines[0] == "22 attempts" and lines[1] == "Resolved, a, 10 tasks:"
    assert "9 of 10  m-1" in lines[2] and "3 of 10  m-2" in lines[3] and max(map(len, lines[:6])) <= 80


def test_attempts_are_named_beside_one_chat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat = session(user("Rename the module"), call("Bash", command="ls"))
    store = store_of(tmp_path / "s", chat, *judged("m-1", [True] * 8))
    (other,) = agentsignals.find(store).elsewhere
    assert (other.context, other.sessions, other.command) == ("eval", 8, "agentsignals findings --context eval")
    assert main(["findings", "--store", str(store.folder)]) == 0
    assert "not in these findings: 8 eval attempts: agentsignals findings --context eval" in capsys.readouterr().out
    (people,) = agentsignals.find(store, "eval").elsewhere
    assert (people.context, people.sessions) == ("product", 1)
    lines = last_lines(store, summary_of(store)[1]).splitlines()
    assert lines[0] == "Eval runs: 8 attempts"
    assert any(line.startswith("People's sessions: 1 session · ") for line in lines)


def test_the_models_in_folders_names_are_a_finding(tmp_path: Path) -> None:
    runs = judged("m", [True] * 8)
    for n, made in enumerate(runs):
        assert made.attempt is not None
        made.model, made.attempt.knobs, made.attempt.root = None, {}, f"/r/x_gpt-5/t{n}"
    store = store_of(tmp_path / "s", *runs)
    found = answer(store, "no-model.folders", "eval")
    assert "8 of 8 attempts record no model" in found.sentence and "'**/x_{model_id}/**'" in found.do


# -- raw traces of ordinary work with one cause laid in, by another hand than the findings' (`tests/plants`) ----------

SESSIONS = 60
FEWER = 24
"""Enough for what is counted; a contrast between repositories, of some ten sessions each, may not be sure."""
SEEDS = (1, 2, 3)
NAMES = (*(lay.__name__ for lay in causes.CAUSES), "an_outage", "an_unequal_comparison")


def analyzed(folder: Path) -> Store:
    pipeline.analyze([str(folder / "traces")], folder / "store", jobs=1)
    return Store(folder / "store")


def planted(name: str, seed: int, folder: Path, sessions: int = SESSIONS) -> tuple[Store, causes.Plant]:
    """A store with this cause, and what has to be said of it."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311  (made-up data, the same every time)
    by_name = {lay.__name__: lay for lay in causes.CAUSES}
    if name in by_name:
        works = work.ordinary(seed, sessions)
        plant = by_name[name](works, chance)
        files.write(folder / "traces", works)
    else:
        runs = trials.ordinary(seed)
        unequal = trials.other_tasks if seed % 2 else trials.other_limits
        plant = (trials.an_outage if name == "an_outage" else unequal)(runs, chance)
        trials.write(folder / "traces", runs)
    return analyzed(folder), plant


def says(answers: list[Answer], plant: causes.Plant) -> bool:
    """Whether the first sentence answers the question, names what was laid in, and opens with a session it is in."""
    if not answers:
        return False
    first = answers[0]
    named = all(words.lower() in first.sentence.lower() for words in plant.words)
    behind = not plant.sessions or first.sessions[0] in plant.sessions
    return first.question in plant.questions and named and behind


@pytest.mark.slow
def test_a_planted_cause_is_said_first(tmp_path: Path) -> None:
    store, plant = planted("a_loop", 0, tmp_path, FEWER)
    assert says(agentsignals.find(store).answers, plant)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_of_ten_planted_traces_nine_say_it_first(seed: int, tmp_path: Path) -> None:
    assert len(NAMES) == 10
    missed = {}
    for name in NAMES:
        store, plant = planted(name, seed, tmp_path / name)
        if not says(answers := agentsignals.find(store).answers, plant):
            missed[name] = [made.sentence for made in answers[:3]]
    assert len(missed) <= 1, missed


@pytest.mark.slow
def test_of_ten_ordinary_stores_nine_are_silent(tmp_path: Path) -> None:
    loud = {}
    for seed in range(10):
        folder = tmp_path / str(seed)
        if seed < 7:
            files.write(folder / "traces", work.ordinary(seed + 100, SESSIONS))
        else:
            trials.write(folder / "traces", trials.ordinary(seed + 100))
        if answers := agentsignals.find(analyzed(folder)).answers:
            loud[seed] = [made.sentence for made in answers]
    assert len(loud) <= 1, loud


@pytest.mark.slow
def test_every_bound_decides_of_traces(tmp_path: Path) -> None:
    """The sentence is there at the bound that it keeps, and gone behind it."""
    store, plant = planted("a_failing_tool", 1, tmp_path)
    (made,) = agentsignals.find(store).answers
    assert made.q is not None and says([made], plant)
    kept = Bounds(effect=made.share, sureness=made.sureness, false_discoveries=made.q)
    assert [each.id for each in agentsignals.find(store, bounds=kept).answers] == [made.id]
    for bounds in (
        Bounds(effect=made.share + 0.01),
        Bounds(sureness=made.sureness + 0.01),
        Bounds(false_discoveries=made.q * 0.99),
    ):
        assert agentsignals.find(store, bounds=bounds).answers == []
