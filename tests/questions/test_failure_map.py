"""Why attempts failed, by candidate: the map, its study, its verb and its page say the same, and no more than is so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agentsignals import find
from agentsignals.cli import main
from agentsignals.model import Session
from agentsignals.questions.compare.attempts import answer_over_attempts
from agentsignals.questions.failure_map import ENOUGH, FailureMap, failure_map, question
from agentsignals.store import Store
from agentsignals.store.query import rows as ask
from agentsignals.ui.filter import behind, key_of
from agentsignals.ui.server import Server
from tests.build import call, session
from tests.questions.stores import outcome, store_of
from tests.signals.attempts import graded, patched, trial
from tests.ui.served import EVIL, Elements, page, serving
from tests.ui.served import ask as fetch

GOLD = {"gold_patch": [patched("src/a.py")]}
ELSEWHERE: dict[str, Any] = {**GOLD, "patch": [patched("src/b.py")], "verification": graded(unfixed=1), "reward": 0.0}
WRONG: dict[str, Any] = {**ELSEWHERE, "patch": [patched("src/a.py")]}
SOLVED: dict[str, Any] = {**WRONG, "verification": graded(fixed=1), "reward": 1.0}
BUDGET: dict[str, Any] = {"ending": "budget", "reward": 0.0, "patch": [patched("src/a.py")]}
BROKEN: dict[str, Any] = {"ending": "infrastructure", "exception": "RateLimit"}
UNTOLD: dict[str, Any] = {"reward": 0.0}
TIRED: dict[str, Any] = {"patch": []}
UNJUDGED: dict[str, Any] = {"patch": [patched("src/a.py")], "ending": "finished"}

RUNS = (
    [("A", f"t{n}", [ELSEWHERE]) for n in range(6)]
    + [("A", "t6", [WRONG, ELSEWHERE]), ("A", "t7", [SOLVED]), ("A", "t8", [UNTOLD])]
    + [("B", f"t{n}", [BUDGET]) for n in range(6)]
    + [("B", "t6", [SOLVED]), ("B", "t7", [BROKEN, SOLVED])]
    + [("C", f"other{n}", [WRONG]) for n in range(8)]
    + [("D", f"t{n}", [TIRED, TIRED]) for n in range(6)]
    + [("D", "t6", [UNJUDGED])]
    + [(EVIL, "t0", [WRONG])]
)
"""Candidate, task, attempts. Of D no attempt was ever evaluated."""


def attempts(number: int, model: str, task: str, facts: list[dict[str, Any]]) -> Iterator[Session]:
    for view in trial(*({"knobs": {"model_id": model}, **one} for one in facts)):
        made = view.session
        assert made.attempt is not None
        made.session_id = f"r{number}-{made.attempt.attempt_index}"
        made.attempt.trial_id, made.attempt.task_id = f"r{number}", task
        yield made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    sessions = (s for n, (model, task, facts) in enumerate(RUNS) for s in attempts(n, model, task, facts))
    return store_of(tmp_path_factory.mktemp("failures") / "s", *sessions)


@pytest.fixture(scope="module")
def made(store: Store) -> FailureMap:
    return mapped(store)


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Server]:
    with serving(store) as running:
        yield running


def mapped(store: Store, where: str = "true") -> FailureMap:
    made: FailureMap = answer_over_attempts(store, question(where=where), where=where)
    return made


def counted(made: FailureMap, name: str) -> dict[str, int]:
    candidate = next(c for c in made.candidates if c.name == name)
    return {share.name: share.n for share in candidate.classes}


def test_each_failed_first_attempt_is_in_one_class_of_its_candidate(made: FailureMap) -> None:
    assert counted(made, "A") == {"wrong_place": 6, "wrong_fix": 1, "cannot_tell": 1}
    assert counted(made, "B") == {"limit_reached": 6, "infrastructure": 1}
    assert counted(made, "C") == {"wrong_fix": 8}
    assert made.failed == 24 == sum(share.n for share in made.classes)
    assert (made.first_attempts, made.attempts) == (33, 41)
    by_name = {c.name: c for c in made.candidates}
    assert (by_name["A"].failed, by_name["A"].retries_failed, by_name["A"].not_judged) == (8, 1, 0)


def test_what_nobody_evaluated_did_not_fail(made: FailureMap) -> None:
    assert counted(made, "D") == {}
    d = next(c for c in made.candidates if c.name == "D")
    assert (d.failed, d.retries_failed, d.not_judged, d.first_attempts) == (0, 0, 7, 7)
    assert made.unevaluated == 12


def test_candidates_are_told_apart_by_what_they_fail_by_at_the_tasks_of_both(made: FailureMap) -> None:
    told = " ".join(made.sentences)
    assert "A fails mostly with wrong place: 6 of 8, 75.0% (" in told
    assert "B fails mostly with limit reached: 6 of 7, 85.7% (" in told
    assert (
        "A fails more often with wrong place than B" in told and "B fails more often with limit reached than A" in told
    )
    assert {(d.name, d.more, d.less) for d in made.differences} == {
        ("wrong_place", "A", "B"),
        ("limit_reached", "B", "A"),
    }, "C failed at other tasks: how it differs may be theirs"
    of_both = next(d for d in made.differences if d.name == "wrong_place")
    assert of_both.value == pytest.approx(6 / 7) and 0 < of_both.low < of_both.value < of_both.high <= 1
    assert f"Not described: 1 candidate with fewer than {ENOUGH} failures each (1 in total)." in told


def test_of_too_few_failures_nothing_is_said(store: Store) -> None:
    few = mapped(store, "model_id IN ('A', 'B') AND task_id IN ('t0', 't1', 't2', 't3')")
    assert few.differences == [] and few.looked_at == 0
    assert few.sentences == ["Not described: 2 candidates with fewer than 5 failures each (8 in total)."]
    enough = mapped(store, "model_id IN ('A', 'B') AND task_id IN ('t0', 't1', 't2', 't3', 't4')")
    assert len(enough.differences) == 2 and enough.sentences[0].startswith("A fails mostly with wrong place: 5 of 5")


def test_intervals_are_over_tasks(store: Store) -> None:
    """Attempts at one task are one observation, however often it was tried."""
    alone = next(s for s in mapped(store, "model_id = 'C'").classes if s.name == "wrong_fix")
    assert alone.value == 1.0 and alone.low == pytest.approx(0.676, abs=0.001), "Wilson's of 8 tasks"


def test_a_store_measured_before_the_signal_was_there_says_so(store: Store) -> None:
    asked = {name: ask(store, sql) for name, sql in question().queries.items()}
    rows = {n: [dict(zip(names, row, strict=True)) for row in got] for n, (names, got) in asked.items()}
    old = failure_map({**rows, "failures": []})
    assert old.failed == 24 and {f.because for f in old.listed} == {"not measured: read the run in again"}


def test_the_study_says_the_same_and_each_number_opens_its_attempts(store: Store, made: FailureMap) -> None:
    found = outcome(store, "failures")
    values = {f.id: (f.value, f.n, f.interval) for f in found.findings}
    wrong = next(share for share in made.classes if share.name == "wrong_fix")
    assert values["failures.count"][0] == 24
    assert values["failures.wrong_fix"] == (wrong.value, 24, (wrong.low, wrong.high))
    assert any("1 of 24 failed is undecided: 1 no file of the run lists tests" in limit for limit in found.limits)
    table = next(t for t in found.tables if t.id == "failures.by_candidate")
    row = next(r for r in table.rows if r[:2] == ["A", "wrong place"])
    assert row[2:5] == [6, 8, 0.75]
    opened = behind(store, key_of("failures", "failures.by_candidate:A · wrong place")).parts
    assert set(opened) == {f.session_id for f in made.listed if (f.candidate, f.name) == ("A", "wrong_place")} - {
        "r6-1"
    }
    near = next(t for t in found.tables if t.id == "failures.places")
    assert [r[:4] for r in near.rows] == [["a file only", 13, 3, 10], ["nothing", 7, 0, 7]]
    examples = next(t for t in found.tables if t.id == "failures.examples")
    assert [r[0] for r in examples.rows].count("wrong place") == 5, "at most five of a class"


def test_the_verb_has_words_json_and_markdown(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*more: str) -> str:
        assert main(["failures", "--store", str(store.folder), *more]) == 0
        return capsys.readouterr().out

    assert json.loads(printed("--json", "--by", "model"))["failed"] == 24
    assert re.search(r"wrong fix +10 of 17, 58.8% \(", printed("--where", "model_id <> 'B'"))
    markdown = printed("--markdown", "--where", "model_id <> 'B'")
    assert "| wrong fix | 10 of 17" in markdown and "<script>" not in markdown and "### by candidate" in markdown
    assert main(["failures", "--store", str(store.folder), "--where", "false"]) == 1
    assert main(["failures", "--store", str(store.folder), "--by", "nothing_such"]) == 2
    assert "Available: model_id" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_counts_the_same_and_each_number_lists_its_attempts(server: Server) -> None:
    whole = page(server, "/failures?by=model_id")
    links = re.findall(r'href="([^"]+)#listed">(\d+)</a>', whole)
    assert len(links) > 10
    for link, n in links[::5]:
        shown = page(server, "/failures" + link.replace("&amp;", "&"))
        assert f"of {n} attempts" in " ".join(shown.split()), link
    some = page(server, f"/failures?candidate=A&class=wrong_place&which=first&by={quote('model_id')}")
    assert "No test is fixed" in some and some.count("all evidence") == 6
    assert 'href="/session/r0-0/explain/verification.failure_class"' in some
    assert re.search(r'href="/session/r0-0\?at=\d+#e\d+"', some)
    assert "A fails mostly with wrong place" in Elements(whole).said


def test_the_page_shows_a_hostile_name_as_text_and_has_words_for_nothing(server: Server) -> None:
    told = Elements(page(server, f"/failures?by=model_id&candidate={quote(EVIL)}"))
    assert "img" not in [name for name, _ in told.elements] and "window.pwned" in told.said
    assert fetch(server, f"/failures?by={quote(EVIL)}").status == 404
    assert "of 25 attempts" in " ".join(page(server, "/failures?candidate=nobody&class=none").split())


def test_a_figure_is_made_again_by_its_query(store: Store, tmp_path: Path) -> None:
    runs = [(n, *run) for n, run in enumerate(RUNS) if run[0] in ("A", "B")]
    evaluated = store_of(tmp_path / "s", *(s for run in runs for s in attempts(*run)))
    found = [f for f in outcome(evaluated, "failures").findings if f.id.startswith("failures.")]
    assert {f.id for f in found} > {"failures.count", "failures.wrong_place", "failures.limit_reached"}
    for finding in found:
        sql = finding.command.removeprefix('agentsignals query "').removesuffix('"')
        assert ask(evaluated, sql)[1][0][0] == pytest.approx(finding.value), finding.id
    whole = outcome(store, "failures").findings
    assert all("--study failures" in f.command for f in whole), "no query leaves out candidates"


def test_the_page_of_findings_names_the_class_that_most_share(tmp_path: Path) -> None:
    runs = [("A", f"t{n}", [ELSEWHERE]) for n in range(30)] + [("A", f"u{n}", [SOLVED]) for n in range(10)]
    lost = store_of(tmp_path / "s", *(s for n, run in enumerate(runs) for s in attempts(n, *run)))
    sentences = {made.id: made.sentence for made in find(lost, "eval").answers}
    assert sentences["why-failed.failed"] == "30 of 40 attempts (75.0%) failed for the same reason: wrong place."


@pytest.mark.parametrize(("where", "differ"), [(range(6), True), ([0] * 6, False)])
def test_failures_at_one_task_are_no_six(where: Sequence[int], differ: bool, tmp_path: Path) -> None:
    """None of six attempts in a wrong place says much where they are at six tasks, and little where they are at one."""
    runs = [("A", f"t{n}", [ELSEWHERE]) for n in range(6)] + [("B", f"t{n}", [SOLVED]) for n in range(6)]
    runs += [("B", f"t{n}", [BUDGET]) for n in where]
    sessions = (s for n, (model, task, facts) in enumerate(runs) for s in attempts(n, model, task, facts))
    differences = {(d.more, d.name) for d in mapped(store_of(tmp_path / "s", *sessions)).differences}
    assert (("A", "wrong_place") in differences) is differ


KEY = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"[:36]


@pytest.fixture(scope="module")
def handed_on(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Runs whose candidates and tasks are named by a key and by what turns text around."""
    runs = [
        (f"{name} {KEY}", f"t{n} {KEY}\u202e|x", [facts])
        for name, facts in (("A", SOLVED), ("B", WRONG))
        for n in range(7)
    ]
    sessions = []
    for n, (model, task, [facts]) in enumerate(runs):
        knobs = {"model_id": model, f"k {KEY}": model}
        for made in attempts(n, model, task, [{**facts, "knobs": knobs}]):
            made.tool_calls = [*session(call("Bash", command=f"echo {n}"), call("Read", path=f"{n}.py")).tool_calls]
            sessions.append(made)
    return store_of(tmp_path_factory.mktemp("keys") / "s", *sessions)


@pytest.mark.parametrize("form", ["", "--markdown", "--json"])
@pytest.mark.parametrize(
    "verb", ["failures", "drivers --by KNOB", "compare --baseline BASE --fail-if worse", "compare --baseline BASE"]
)
def test_what_is_made_for_a_pull_request_holds_no_key_and_nothing_unseen(
    verb: str, form: str, handed_on: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [{"BASE": f"A {KEY}", "KNOB": f"k {KEY}"}.get(word, word) for word in verb.split()]
    main([*words, *([form] if form else []), "--store", str(handed_on.folder)])
    text = capsys.readouterr().out
    assert "key" in text, "a knob is named, and but for drivers the candidates"
    assert KEY not in text and KEY[4:20] not in text and "\u202e" not in text
