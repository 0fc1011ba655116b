"""A search over knobs: what it refuses, how it runs, what it reads, when it stops, and what it answers."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from agentsignals.cli import main
from agentsignals.errors import StoreError, UsageError
from agentsignals.experiments.tuning import Budget, Plan, Search, read_plan, search_status
from agentsignals.experiments.tuning.plan import Result, Run, check
from agentsignals.experiments.tuning.samplers import HOPELESS, Effects, dropped_candidates

HARNESS = textwrap.dedent(
    """
    import json, sys
    from pathlib import Path

    def write(out, task, tone, solved, model="m", more=()):
        header = {"agentsignals_lab": 1, "trial_id": f"{out}/{tone}/{task}", "run_id": "r", "model": {"name": model},
                  "started_at": "2026-01-01T00:00:00Z", "condition": {"name": tone}, "task": {"key": task}}
        asked = {"message": {"speaker": "user", "pieces": [{"role": "task", "text": "do it"}]}}
        answer = {"message": {"speaker": "assistant", "pieces": [{"role": "code", "text": "x"}]}}
        lines = [header]
        for number, passed in enumerate((solved, *more)):
            scores = {"attempt": number, "prompt_tokens": 1_000_000, "tokens": 3, "visible_pass": passed,
                      "hidden_pass": passed, "full_pass": passed}
            lines += [asked, answer, {"attempt": scores}]
        Path(out).mkdir(parents=True, exist_ok=True)
        Path(out, f"{task}-{tone}.jsonl").write_text("".join(json.dumps(line) + chr(10) for line in lines))
    """
)
"""Writes a trace as the lab's retry loop does."""
_harness: dict[str, Any] = {}
exec(HARNESS, _harness)  # noqa: S102  (the text above, which commands of these tests run as well)
write = _harness["write"]


def plan(**changes: Any) -> Plan:
    settings: dict[str, Any] = {
        "command": ["run", "{run}", "{task}", "{tone}"],
        "knobs": {"tone": ["plain", "calm", "grim"]},
        "default": {"tone": "plain"},
        "tasks": ["t1", "t2", "t3", "t4"],
        "held_out": ["h1"],
        "recorded_as": {"tone": "condition"},
        "budget": Budget(runs=8),
    }
    return Plan(**settings | changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"command": ["{tone}", "{run}", "{task}"]}, "begin with a program"),
        ({"command": []}, "begin with a program"),
        ({"command": ["run", "{run}", "{task}"]}, "uses {tone} neither"),
        ({"command": ["run", "{task}", "{tone}"]}, "uses {run} neither"),
        ({"command": ["run", "{run}", "{task}", "{tone}", "{dose}"]}, "{dose} in the plan's command is not in [knobs]"),
        ({"command": ["run", "{run}", "{task}", "{tone}", "a\0"]}, "no command accepts"),
        ({"environment": {"A=B": "x"}}, "'A=B', which no command accepts"),
        ({"knobs": {"tone": ["plain", "--help"]}}, "as an option"),
        ({"tasks": ["t1", "-rf"]}, "as an option"),
        ({"knobs": {"tone": ["plain", "a\0b"]}}, "NUL"),
        ({"tasks": ["t1", "a\0b"]}, "NUL"),
        ({"knobs": {"tone": ["plain", "plain"]}}, "one twice"),
        ({"knobs": {"tone": ["plain", 1, True]}}, "one twice"),
        ({"knobs": {"tone": ["plain"]}}, "1 combinations"),
        ({"knobs": {"tone": ["plain", *map(str, range(1000))]}}, "1,001 combinations"),
        ({"knobs": {"run": ["a", "b"]}, "default": {"run": "a"}}, "name of a setting"),
        ({"default": {"tone": "loud"}}, "not among its values"),
        ({"default": {"tone": "plain", "dose": 1}}, "'dose' is not in the plan's [knobs]"),
        ({"tasks": ["t1", "h1"]}, "twice"),
        ({"tasks": ["t1"], "held_out": []}, "0 tasks to search on"),
        ({"budget": Budget(runs=3)}, "too small"),
        ({"budget": Budget(runs=8, cost_usd=0)}, "budget.cost_usd in the plan is 0"),
        ({"budget": Budget(runs=8, wall_time_s=float("nan"))}, "budget.wall_time_s in the plan is nan"),
        ({"timeout_s": -1.0}, "timeout_s in the plan is -1"),
        ({"outcome": "behavior.turn_count"}, "yes or no"),
    ],
)
def test_what_can_not_be_searched_is_refused(changes: dict[str, Any], says: str) -> None:
    check(plan())
    check(plan(budget=Budget(runs=4), knobs={"tone": ["plain", *map(str, range(999))]}))
    with pytest.raises(UsageError) as refused:
        check(plan(**changes))
    assert says in refused.value.message


def test_a_value_stays_one_word_whatever_it_holds() -> None:
    nasty = ["a b; rm -rf ~", "$(id) `id` && x", "{run} {task}", "'\"\\\n", "--x"]
    made = plan(
        command=["run", "{run}", "--task={task}", "--tone={tone}", '{"json": 1}'],
        knobs={"tone": nasty},
        default={"tone": nasty[0]},
        environment={"TONE": "<{tone}>"},
    )
    check(made)
    for value in nasty:
        argv = made.argv({"tone": value}, "t 1", "/out")
        assert argv == ["run", "/out", "--task=t 1", f"--tone={value}", '{"json": 1}']
        assert made.variables({"tone": value}, "t 1", "/out") == {"TONE": f"<{value}>"}


def test_a_candidate_is_dropped_where_the_leader_is_surely_better() -> None:
    """The threshold lies between these two, and the chances are those of draws from the same posterior."""
    for lost, out in ((4, []), (8, [("grim",)])):
        effects = Effects()
        for n in range(lost):
            effects.add(("plain",), f"t{n}", 1, 1)
            effects.add(("grim",), f"t{n}", 0, 1)
        assert list(dropped_candidates(effects, [("plain",), ("grim",)])) == out
        draws = [effects.draw(random.Random(n), [("plain",), ("grim",)]) for n in range(1_000)]  # noqa: S311  (draws)
        drawn = sum(grim > plain for plain, grim in draws) / len(draws)
        assert effects.better(("grim",), ("plain",)) == pytest.approx(drawn, abs=0.03)
        assert (drawn < HOPELESS) == bool(out)
    assert dropped_candidates(Effects(), []) == {}


def test_effects_are_the_posterior_that_algebra_gives() -> None:
    numpy = pytest.importorskip("numpy")
    effects, chance = Effects(), random.Random(2)  # noqa: S311  (draws, no secret)
    seen = [
        ((chance.randrange(2), chance.randrange(3)), f"t{chance.randrange(4)}", chance.randrange(2)) for _ in range(30)
    ]
    for candidate, task, outcome in seen:
        effects.add(candidate, task, outcome, 1)
    spread = {"mean": 1.0, "task": 0.3, "value": 0.12, "pair": 0.06, "candidate": 0.05}
    names: dict[object, int] = {}

    def row(a: int, b: int, task: str = "") -> list[int]:
        parts = [("mean",), ("value", 0, a), ("value", 1, b), ("pair", a, b), ("candidate", a, b)]
        return [names.setdefault(part, len(names)) for part in (*parts, *([("task", task)] if task else []))]

    rows = [row(*candidate, task) for candidate, task, _ in seen]
    design = numpy.zeros((len(rows), len(names)))
    for n, places in enumerate(rows):
        design[n, places] = 1
    prior = numpy.diag([spread[str(name[0])] ** -2 for name in names])  # type: ignore[index]
    right = design.T @ (numpy.array([outcome for *_, outcome in seen]) - 0.5) / 0.2
    means = numpy.linalg.solve(prior + design.T @ design / 0.2, right)
    for candidate in {candidate for candidate, *_ in seen}:
        assert effects.estimate(candidate) == pytest.approx(0.5 + means[row(*candidate)].sum())
    draws = [effects.draw(chance, [(0, 0), (1, 2)]) for _ in range(400)]
    assert sum(first for first, _ in draws) / 400 == pytest.approx(effects.estimate((0, 0)), abs=0.03)


SOLVES = {"plain": 1, "calm": 9, "grim": 0}
"""Of ten tasks in a run."""


def ran(search: Search, run: Run, solves: dict[str, int] | None = None, **changes: Any) -> None:
    """A run of ten tasks, some of which are solved."""
    tone = str(run.treatment["tone"])
    for n in range(10):
        write(search.output(run), f"{run.task}.{n}", changes.get("recorded", tone), n < (solves or SOLVES)[tone])
    search.tell(run)


def searched(folder: Path, solves: dict[str, int] | None = None, **changes: Any) -> Search:
    search = Search(plan(**changes), folder)
    while (run := search.ask()) is not None:
        ran(search, run, solves)
    return search


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Search:
    return searched(tmp_path_factory.mktemp("done") / "s", budget=Budget(runs=6))


@pytest.mark.slow
def test_a_search_finds_what_is_better_and_confirms_it_on_tasks_it_has_not_seen(done: Search) -> None:
    made = search_status(done)
    assert (made.verdict, made.winner, made.runs) == ("better", {"tone": "calm"}, 6)
    assert "better than the default: +80.0 points on 10 held-out tasks" in made.answer
    assert made.confirmed is not None and made.confirmed.difference.p == pytest.approx(2 / 2**8)
    assert [run.task for run in done.runs[-2:]] == ["h1", "h1"]
    assert {run.phase for run in done.runs[:-2]} == {"search"}
    assert (made.over, made.caveats) == ("the budget of 6 runs is used up (2 reserved for the confirmation)", [])


@pytest.mark.slow
def test_each_goes_through_the_tasks_in_one_order_that_the_seed_drew(done: Search) -> None:
    order, _ = done.plan.parted()
    assert sorted(order) == ["t1", "t2", "t3", "t4"] != order
    by_tone: dict[object, list[str]] = {}
    for run in done.runs:
        if run.phase == "search":
            by_tone.setdefault(run.treatment["tone"], []).append(run.task)
    assert all(tasks == order[: len(tasks)] for tasks in by_tone.values())
    assert done.runs[0].treatment == {"tone": "plain"}, "the default comes first"


@pytest.mark.slow
def test_a_search_made_again_over_its_folder_goes_on_where_it_stood(done: Search, tmp_path: Path) -> None:
    again = Search(plan(budget=Budget(runs=6)), done.folder)
    assert again.ask() is None and search_status(again) == search_status(done)
    more = Search(plan(budget=Budget(runs=20)), done.folder)
    assert more.proposal() is None, "what is confirmed is not searched on"
    with pytest.raises(UsageError, match="another plan"):
        Search(plan(seed=14), done.folder)
    history = done.history.path.read_bytes()
    torn = tmp_path / "search.jsonl"
    torn.write_bytes(history + b'{"type":"asked","ru')
    whole = Search(plan(), tmp_path)
    assert len(whole.runs) == 6 and torn.stat().st_size > len(history), "it may just be written by another program"
    whole.history.ended(whole.runs[-1])
    assert torn.read_bytes().startswith(history + b'{"type":"ended"')
    torn.write_bytes(b"nothing\n" + history)
    with pytest.raises(StoreError, match="Line 1 "):
        Search(plan(), tmp_path)


def test_a_candidate_whose_runs_leave_no_outcome_is_out(tmp_path: Path) -> None:
    search = Search(plan(), tmp_path)
    silent, solved = Result(outcomes={}, without={"lost": 1}), Result(outcomes={"a": [1.0]}, without={})
    outcomes = [("plain", solved), ("calm", silent), ("calm", silent), ("calm", silent)]
    for number, (tone, result) in enumerate(outcomes, 1):
        run = Run(number=number, phase="search", treatment={"tone": tone}, task=f"t{number}", state="ended")
        search.runs.append(run)
        search.__dict__.setdefault("results", {})[number] = result
        assert (("calm",) in search.dropped()) == (number == 4)
    assert [row.dropped for row in search_status(search).tried] == ["", "its runs have no outcome"]


def test_the_plan_of_the_page_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tune.md").read_text("utf-8")
    check(convert(tomllib.loads(page.partition("```toml\n")[2].partition("```")[0]), Plan))


@pytest.mark.slow
def test_only_what_records_the_treatment_it_was_run_for_counts(tmp_path: Path) -> None:
    search = Search(plan(recorded_as={}), tmp_path / "a")
    ran(search, search.ask() or pytest.fail())
    assert search.results[1].without == {"tone is not recorded": 10} and not search.arms("search")
    search = Search(plan(), tmp_path / "b")
    ran(search, search.ask() or pytest.fail(), recorded="loud")
    assert search.results[1].without == {"condition is another than asked for": 10}
    run = search.ask() or pytest.fail()
    search.interrupted(run)
    ran(search, search.ask() or pytest.fail())
    assert [r.state for r in search.runs] == ["ended", "interrupted", "ended"]
    assert search.runs[1].task == search.runs[2].task, "what was broken off is asked for again"
    assert list(search.results) == [1, 3]


def test_a_run_is_read_from_the_store_and_the_next_begun_where_the_budget_allows(tmp_path: Path) -> None:
    """A trial is solved by any of its attempts. The run took 10 seconds and some dollars; beside the next one the
    confirmation takes two."""
    search = Search(plan(), tmp_path)
    run = search.ask() or pytest.fail()
    for task, attempts in {"a": (False, True), "b": (False, False), "c": (False, None), "d": (True,)}.items():
        write(search.output(run), task, "plain", attempts[0], model="claude-sonnet-4-5", more=attempts[1:])
    result = search.tell(run, wall_time_s=10.0)
    assert {task.strip(): outcomes for task, outcomes in result.outcomes.items()} == {"a": [1], "b": [0], "d": [1]}
    assert sum(result.without.values()) == 1
    cost, unpriced = search.cost()
    assert cost > 1 and unpriced == 0
    for budget, why in (
        (Budget(runs=8, wall_time_s=39.0), "the budget of 39 seconds is used up"),
        (Budget(runs=8, wall_time_s=40.0), ""),
        (Budget(runs=8, cost_usd=3.9 * cost), f"the budget of ${3.9 * cost:,.2f} is used up"),
        (Budget(runs=8, cost_usd=4.1 * cost), ""),
        (Budget(runs=4), ""),
        (Budget(runs=3), "the budget of 3 runs is used up"),
    ):
        search.plan = replace(search.plan, budget=budget)
        assert search.spent(2) == why
    search.plan = plan()
    made = search_status(search)
    assert (made.verdict, made.tried[0].solved, made.tried[0].trials, made.winner) == ("under way", 2, 3, None)


@pytest.mark.slow
def test_a_budget_of_dollars_is_not_kept_where_no_cost_is_known(tmp_path: Path) -> None:
    search = Search(plan(budget=Budget(runs=8, cost_usd=5)), tmp_path)
    ran(search, search.ask() or pytest.fail())
    assert search.ask() is None and "can't be kept" in search_status(search).over


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solves", "verdict", "says"),
    [
        ({"plain": 9, "calm": 1, "grim": 0}, "default", "No better than the default: "),
        ({"plain": 4, "calm": 5, "grim": 5}, "not shown", "No significant improvement over the default: tone=calm"),
    ],
)
def test_no_better_than_the_default_is_an_answer(
    solves: dict[str, int], verdict: str, says: str, tmp_path: Path
) -> None:
    made = search_status(searched(tmp_path, solves, budget=Budget(runs=4)))
    assert made.verdict == verdict and made.answer.startswith(says)
    assert (made.confirmed is None) == (verdict == "default")


@pytest.mark.slow
def test_a_winner_that_is_worse_on_tasks_it_has_not_seen_is_said_to_be(tmp_path: Path) -> None:
    search = Search(plan(budget=Budget(runs=6)), tmp_path)
    while (run := search.ask()) is not None:
        ran(search, run, SOLVES if run.phase == "search" else {"plain": 9, "calm": 0, "grim": 0})
    made = search_status(search)
    assert (made.verdict, made.winner) == ("worse", {"tone": "calm"})
    assert made.answer.startswith("tone=calm won the search but is worse than the default: -90.0 points on 10")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("optuna") is None, reason="Optuna is not installed (extra optuna)")
def test_optuna_searches_too(tmp_path: Path) -> None:
    made = search_status(searched(tmp_path, sampler="optuna", tasks=["t1"], budget=Budget(runs=5)))
    assert made.verdict == "better" and len(made.tried) == 3


def plan_file(folder: Path, body: str, **changes: Any) -> Path:
    """A plan whose command runs `body` after the harness."""
    script = folder / "harness.py"
    script.write_text(f"{HARNESS}\nout, task, tone = sys.argv[1:]\n{body}\n", "utf-8")
    command = [sys.executable, str(script), "{run}", "{task}", "{tone}"]
    lines = [
        f"command = {json.dumps(command)}",
        f"tasks = {json.dumps(changes.get('tasks', ['t1', 't2']))}",
        'held_out = ["h1"]',
        f"timeout_s = {changes.get('timeout_s', 60)}",
        'recorded_as = {tone = "condition"}',
        f"budget = {{runs = {changes.get('runs', 4)}}}",
        'knobs = {tone = ["plain", "calm"]}',
        'default = {tone = "plain"}',
    ]
    path = folder / "plan.toml"
    path.write_text("\n".join(lines), "utf-8")
    return path


def tune(capsys: pytest.CaptureFixture[str], path: Path, *more: str) -> tuple[int, Any]:
    code = main(["tune", str(path), "--out", str(path.parent / "s"), "--json", "--quiet", *more])
    return code, json.loads(capsys.readouterr().out)


def test_a_plan_that_is_none_is_refused(tmp_path: Path) -> None:
    for text in ("", "command = 1", "{", "colour = 1"):
        (tmp_path / "p.toml").write_text(text, "utf-8")
        with pytest.raises(UsageError, match="not a tuning plan"):
            read_plan(tmp_path / "p.toml")


def test_what_would_be_run_can_be_seen_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan_file(tmp_path, "")
    code, answer = tune(capsys, path, "--dry-run")
    assert code == 0 and answer["argv"][-3:] == [answer["argv"][-3], answer["run"]["task"], "plain"]
    assert tune(capsys, path, "--show")[1]["verdict"] == "under way"
    assert main(["tune", str(path), "--out", str(tmp_path / "s"), "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith(" plain\n") and not (tmp_path / "s").exists()


@pytest.mark.slow
def test_a_search_is_run_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan_file(tmp_path, "for n in range(8): write(out, f'{n}', tone, tone == 'calm')\nsys.exit(3)")
    code, answer = tune(capsys, path)
    assert (code, answer["verdict"], answer["runs"], answer["failed"]) == (0, "better", 4, 4)
    assert main(["tune", str(path), "--out", str(tmp_path / "s"), "--show"]) == 0
    out = capsys.readouterr().out
    assert "tone=calm is better than the default: +100.0 points on 8 held-out tasks" in out
    assert "cost unknown" in out and "4 failed" in out
    assert "8 held-out tasks were also searched" in out
    shutil.rmtree(tmp_path / "s" / "store")
    assert tune(capsys, path) == (0, answer), "what has run is read again where the store lost it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "timeout_s", "says"),
    [
        ("print('lost', file=sys.stderr)", 60, "saying: lost"),
        ("import time; time.sleep(60)", 0.3, "was stopped at its time limit"),
    ],
)
def test_a_command_that_leaves_nothing_ends_the_search(
    body: str, timeout_s: float, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plan_file(tmp_path, body, runs=30, tasks=["t1", "t2", "t3", "t4"], timeout_s=timeout_s)
    code, answer = tune(capsys, path)
    assert code == 1 and answer["error"]["kind"] == "tuning"
    assert "The last 3 runs left no outcome" in answer["error"]["message"] and says in answer["error"]["message"]


def test_a_program_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan_file(tmp_path, "")
    path.write_text(path.read_text("utf-8").replace(json.dumps(sys.executable), '"no-such-program"'), "utf-8")
    assert "'no-such-program' can't be started" in tune(capsys, path)[1]["error"]["message"]


@pytest.mark.slow
def test_ctrl_c_ends_the_run_with_its_children_and_the_search_goes_on_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = (
        "import os, subprocess, time\n"
        f"if not os.path.exists({str(tmp_path / 'child')!r}):\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"    Path({str(tmp_path / 'new')!r}).write_text(str(child.pid))\n"
        f"    os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'child')!r})\n"
        "    time.sleep(60)\n"
        "for n in range(8): write(out, f'{task}.{n}', tone, tone == 'calm')\n"
    )
    path = plan_file(tmp_path, body, runs=5)
    words = [sys.executable, "-m", "agentsignals", "tune", str(path), "--out", str(tmp_path / "s"), "--quiet"]
    # Another folder than the tests': what is ignored there is not ignored here.
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "child").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int((tmp_path / "child").read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130 and "Run the command again to continue" in process.communicate()[1]
    while os.path.exists(f"/proc/{child}") and time.monotonic() < deadline:  # noqa: PTH110
        time.sleep(0.02)  # killed, and not yet taken off by a busy machine
    assert not os.path.exists(f"/proc/{child}") or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]  # noqa: PTH110
    code, answer = tune(capsys, path)
    assert (code, answer["verdict"], answer["runs"], answer["interrupted"]) == (0, "better", 5, 1)
