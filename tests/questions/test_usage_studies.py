"""The studies of use and behaviour: small sessions whose figures are known, and real ones counted by a second road."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.model import Checkpoint, Label, Session
from agentsignals.questions.studies import studies
from agentsignals.questions.studies.prompts import INTENTS
from agentsignals.store import Store
from tests.build import START, call, event, say, session, user
from tests.questions.stores import chart, findings, outcome, store_of, table

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions"
DAY = 86_400_000_000


def shell(command: str, **more: Any) -> Any:
    return call("Bash", command=command, **more)


# -- usage -------------------------------------------------------------------------------------------------------------


def test_usage_counts_prompts_their_calls_files_and_languages(tmp_path: Path) -> None:
    one = session(
        *(user("please change how the parser reads a line"), call("Read", path="a.py"), call("Edit", path="B.PY")),
        *(user("und jetzt bitte auch noch die Tests anpassen, danke"), call("Read", path="Makefile")),
        *(user("is it possible that this was the wrong one"), say("yes")),
        session_id="one",
    )
    empty = session(say("nobody asked"), session_id="empty")
    found = outcome(store_of(tmp_path / "s", one, empty), "usage")
    values = {f.id: (f.value, f.n) for f in found.findings}
    assert values == {
        "usage.turns.median": (3, 1),
        "usage.calls.median": (1, 3),
        "usage.without_call": (pytest.approx(1 / 3), 3),
        "usage.english": (pytest.approx(2 / 3), 3),
    }
    assert {f.id for f in found.findings if f.signals} == {"usage.calls.median", "usage.without_call", "usage.english"}
    assert [(r["name"], r["value"]) for r in chart(found, "usage.file_types")] == [("py", 2), ("(none)", 1)]
    assert [r["name"] for r in chart(found, "usage.languages")] == ["en", "de"]


# -- kinds of calls ----------------------------------------------------------------------------------------------------

KINDS = {
    "git/gh": ("git status", "\n\t git diff", "/usr/bin/git log", "GH_TOKEN=x gh pr view"),
    "grep": ("rg needle", "grep -rn x ."),
    "bash:file": ("cd /tmp && git push", "ls", "Cat a.txt"),
    "bash:build": ("npm test", "./node_modules/.bin/tsc -p .", "A=1 B=2 cargo build"),
    "bash:net": ("curl http://localhost",),
    "bash": ("workmux list", "# only a comment", "(true)", "gitk"),
}


def test_a_shell_call_is_of_the_kind_of_its_first_word(tmp_path: Path) -> None:
    parts = [shell(command) for commands in KINDS.values() for command in commands]
    tools = (
        *(
            ("Read", "read"),
            ("Edit", "edit"),
            ("Write", "write"),
            ("Grep", "grep"),
            ("Glob", "glob"),
            ("Task", "agent"),
        ),
        *(("mcp__x__git", "mcp"), ("ToolSearch", "ToolSearch"), ("Skill", "Skill"), ("ExitPlanMode", "ExitPlanMode")),
        *(("TodoWrite", "TodoWrite"), ("AskUserQuestion", "AskUserQuestion"), ("WebFetch", "web"), ("Odd", "other")),
    )
    parts += [call(name, path="a.py") for name, _ in tools]
    found = outcome(store_of(tmp_path / "s", session(user("go"), *parts)), "tool_categories")
    wanted = Counter({kind: len(commands) for kind, commands in KINDS.items()})
    wanted.update(kind for _, kind in tools)
    assert {kind: row[0] for kind, row in table(found, "tool_categories.calls").items()} == wanted


def test_a_command_of_sixty_thousand_characters_has_a_kind(tmp_path: Path) -> None:
    hostile = ["A=1 " * 15_000, "x" * 60_000, "/" * 60_000, "A=" * 30_000, " \n" * 30_000]
    found = outcome(store_of(tmp_path / "s", session(user("go"), *map(shell, hostile))), "tool_categories")
    assert sum(row[0] for row in table(found, "tool_categories.calls").values()) == len(hostile)


@pytest.mark.parametrize(("names", "note"), [(15, ""), (16, "The 15 most used of 16 names.")])
def test_a_table_that_is_cut_says_of_how_many(names: int, note: str, tmp_path: Path) -> None:
    made = session(user("go"), *(call(f"mcp__box__t{n}") for n in range(names)))
    (found,) = [t for t in outcome(store_of(tmp_path / "s", made), "tools").tables if t.id == "tools.names"]
    assert (len(found.rows), found.note) == (15, note)


def test_first_and_last_calls_are_those_of_the_turn_and_subagents_are_none_of_them(tmp_path: Path) -> None:
    made = session(
        user("one"),
        call("Read", path="a"),
        call("Grep", thread="t1"),
        call("Edit", path="a"),
        shell("git commit"),
        call("Glob", thread="t1"),
        user("two"),
        call("Read", path="b"),
        call("ExitPlanMode"),
        event("interrupt", "[Request interrupted by user]"),
        user("three"),
    )
    found = outcome(store_of(tmp_path / "s", made), "tool_positions")
    ends = table(found, "tool_positions.ends")
    assert {kind: (row[0], row[2], row[4]) for kind, row in ends.items()} == {
        "read": (2, 0, 0),
        "git/gh": (0, 1, 0),
        "ExitPlanMode": (0, 0, 1),
    }
    forward = {(r["name"], r["column"]): r["value"] for r in chart(found, "tool_positions.forward")}
    assert forward["edit", "2"] == forward["ExitPlanMode", "2"] == 0.5 and forward["git/gh", "3"] == 1
    natural = [r["column"] for r in chart(found, "tool_positions.natural") if r["name"] == "edit"]
    assert natural == ["−3", "−2", "−1"], "the end of the turn stands on the right"


# -- what follows what -------------------------------------------------------------------------------------------------


def test_neighbours_are_of_one_session_and_in_order(tmp_path: Path) -> None:
    one = session(user("go"), call("Read", path="a"), call("Edit", path="a"), shell("pytest -q"), session_id="one")
    two = session(user("go"), call("Read", path="b"), call("Read", path="c"), session_id="two")
    found = outcome(store_of(tmp_path / "s", one, two), "transitions")
    pairs = {(r[0], r[1]): r[2] for t in found.tables if t.id == "transitions.pairs" for r in t.rows}
    assert pairs == {("read", "edit"): 1, ("edit", "bash:build"): 1, ("read", "read"): 1}
    values = {f.id: (f.value, f.n) for f in found.findings}
    assert values["transitions.same"] == (pytest.approx(1 / 3), 3)
    assert values["transitions.tested"] == (1, 1) and values["transitions.looked"] == (1, 1)


def test_transitions_are_told_by_thirds_of_a_session(tmp_path: Path) -> None:
    parts = [*[call("Read", path=str(n)) for n in range(5)], *[call("Edit", path=str(n)) for n in range(5)]]
    short = session(user("go"), call("Grep"), call("Grep"), session_id="short")
    found = outcome(store_of(tmp_path / "s", session(user("go"), *parts), short), "transitions")
    thirds = {(r[0], r[1]): r[2:] for t in found.tables if t.id == "transitions.thirds" for r in t.rows}
    assert thirds == {
        ("read", "read"): [4, 1, 0, 0],
        ("edit", "edit"): [4, 0, pytest.approx(2 / 3), 1],
        ("read", "edit"): [1, 0, pytest.approx(1 / 3), 0],
    }, "a session of two calls has no thirds"


# -- after a failure ---------------------------------------------------------------------------------------------------


def failing(name: str, *after: Any) -> Session:
    return session(user("go"), shell("make all", status="error"), *after, session_id=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "pattern", "worked"),
    [
        ((shell("make all"),), "same call again", (1, 1)),
        ((shell("make clean", status="error"),), "same tool, other arguments", (1, 0)),
        ((call("Read", path="Makefile"),), "read or search", (1, 1)),
        ((call("Edit", path="Makefile", status="rejected"),), "another tool", (0, None)),
        ((user("stop"), shell("make all")), "no call before the next prompt", (0, None)),
        ((say("I give up"),), "no further call", (0, None)),
        ((call("Read", path="x", thread="t1"),), "no further call", (0, None)),
    ],
)
def test_what_comes_after_a_failed_call(
    tmp_path: Path, after: tuple[Any, ...], pattern: str, worked: tuple[int, float | None]
) -> None:
    rows = table(outcome(store_of(tmp_path / "s", failing("one", *after)), "recovery"), "recovery.patterns")
    assert rows[pattern][0] >= 1 and tuple(rows[pattern][-2:]) == worked


def test_calls_asked_for_together_with_the_failed_one_do_not_answer_it(tmp_path: Path) -> None:
    made = failing("one", call("Read", path="a"), call("Edit", path="b"))
    failed, together, _ = made.tool_calls
    assert failed.result_seq is not None
    # the failed call's result comes after the second call, as where an agent asks for several at once
    failed.result_seq = together.seq + 1
    rows = table(outcome(store_of(tmp_path / "s", made), "recovery"), "recovery.patterns")
    assert list(rows) == ["another tool"]


def test_failures_in_a_row_are_runs(tmp_path: Path) -> None:
    bad = [shell(f"x{n}", status="error") for n in range(3)]
    made = session(user("go"), *bad, call("Read", path="a"), shell("y", status="error"), session_id="one")
    rows = chart(outcome(store_of(tmp_path / "s", made), "recovery"), "recovery.runs")
    assert [(r["name"], r["value"]) for r in rows] == [("1", 1), ("2", 0), ("≤4", 1)]


# -- over time ---------------------------------------------------------------------------------------------------------


def checkpointed(name: str, percent: float, day: int) -> Session:
    made = session(user("go"), say("done"), session_id=name, cwd=f"/p/{name}")
    made.started_at = START + day * DAY
    lines = round(percent)
    made.checkpoints.append(
        Checkpoint(
            checkpoint_id=name,
            agent_lines=lines,
            human_added=100 - lines,
            total_committed=100,
            agent_percentage=percent,
        )
    )
    return made


def test_coding_modes_are_cut_at_nothing_and_at_ninety_nine_percent(tmp_path: Path) -> None:
    percents = [0, 0, 50, 98, 99, 100]
    store = store_of(tmp_path / "s", *(checkpointed(f"s{n}", p, n) for n, p in enumerate(percents)))
    found = findings(store, "coding_modes")
    assert [found[mode].value for mode in ("human_only", "collaborative", "vibe_coding")] == [pytest.approx(1 / 3)] * 3
    assert (found["percent.median"].value, found["percent.median"].n) == (74, 6)


def test_a_window_holds_the_days_up_to_its_day_and_no_more(tmp_path: Path) -> None:
    vibe = [checkpointed(f"v{n}", 100, 0) for n in range(10)]
    human = [checkpointed(f"h{n}", 0, 14) for n in range(10)]
    rows = chart(outcome(store_of(tmp_path / "s", *vibe, *human), "coding_modes"), "coding_modes.over_time")
    drawn = {(r["from"][:10], r["name"]): r["value"] for r in rows}
    assert drawn["2026-01-14", "vibe coding"] == 1 and drawn["2026-01-15", "vibe coding"] == 0
    assert drawn["2026-01-15", "human only"] == 1, "after fourteen days the first ten are gone"


def test_the_mean_and_the_median_share_of_lines_are_drawn_over_time(tmp_path: Path) -> None:
    made = [checkpointed(f"s{n}", 100 if n < 4 else 0, n % 2) for n in range(20)]
    rows = chart(outcome(store_of(tmp_path / "s", *made), "coding_modes"), "coding_modes.percent.over_time")
    assert {(r["from"][:10], r["name"]): r["value"] for r in rows} == {
        (day, name): value for day in ("2026-01-01", "2026-01-02") for name, value in (("mean", 20), ("median", 0))
    }


def test_without_records_of_lines_the_study_says_what_makes_them(tmp_path: Path) -> None:
    found = outcome(store_of(tmp_path / "s", session(user("go"))), "coding_modes")
    assert found.findings == [] and "git:REPOSITORY" in found.limits[0]


def test_concentration_counts_worktrees_with_their_folder_and_hides_names_of_homes(tmp_path: Path) -> None:
    places = ["/home/ada/app", "/home/ada/app/.worktrees/2", "/home/ada/app", "/home/ada/other"]
    sessions = [session(user("go"), session_id=f"s{n}", cwd=place) for n, place in enumerate(places)]
    sessions[3].started_at = START + 3 * DAY
    found = outcome(store_of(tmp_path / "s", *sessions, session(user("go"), session_id="none")), "concentration")
    values = {f.id: f.value for f in found.findings}
    assert values["concentration.places"] == 2 and values["concentration.half"] == 1
    assert values["concentration.effective"] == pytest.approx(16 / 10)
    assert list(table(found, "concentration.largest")) == ["/home/[user]/app", "/home/[user]/other"]
    rows = chart(found, "concentration.over_time")
    assert [(r["name"], r["value"]) for r in rows] == [("app", 1), ("other", 0), ("app", 0.75), ("other", 0.25)]
    assert "ada" not in json.dumps([rows, found.tables[0].rows], default=str)
    assert any("75%" in limit for limit in found.limits)


def test_how_a_turn_ended_is_told_of_the_turn_not_of_the_objection(tmp_path: Path) -> None:
    made = session(
        *(user("build it"), call("Edit", path="a"), say("done")),
        *(user("no, that is wrong, undo it"), call("AskUserQuestion"), say("which?")),
        *(user("this one"), call("Edit", path="b"), event("interrupt", "[Request interrupted by user]")),
        *(user("go on please"), call("Edit", path="b")),
    )
    found = findings(store_of(tmp_path / "s", made), "friction")
    ends = dict.fromkeys(("cut", "asked", "undisturbed"), (0.25, 4)) | {"pushback": (1, 1)}
    assert {name: (f.value, f.n) for name, f in found.items()} == ends


def timed(name: str, seconds: list[float], cwd: str = "/p", model: str = "m") -> Session:
    parts = [part for _ in seconds for part in (user("go"), say("done", model=model))]
    made = session(*parts, session_id=name, cwd=cwd)
    at = START
    for turn, event_, step, s in zip(
        made.turns, [e for e in made.events if e.kind == "text"], made.steps, seconds, strict=True
    ):
        turn.timestamp = made.events[turn.seq].timestamp = at
        event_.timestamp = step.timestamp = at + int(s * 1_000_000)
        at += 3_600_000_000
    made.ended_at = at
    return made


def test_outer_quantiles_are_told_only_of_turns_enough(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", timed("few", [10.0] * 9, model="few"), timed("many", [70.0] * 10, model="many"))
    found = outcome(store, "turn_time")
    rows = table(found, "turn_time.by_model")
    assert rows["few"][2:6] == [10, None, None, None] and rows["many"][2:6] == [70, 70, None, None]
    assert rows["few"][-2:] == [1, "one project"]
    assert {f.id: f.value for f in found.findings}["turn_time.over_minute"] == pytest.approx(10 / 19)


# -- what was asked for ------------------------------------------------------------------------------------------------


def test_intents_by_the_classifier_are_shares_that_say_so(tmp_path: Path) -> None:
    prompts = (user("Explain how the parser works"), say("so"), user("commit and push"), say("done"))
    found = outcome(store_of(tmp_path / "s", session(*prompts)), "intents")
    of_class = {f.id.removeprefix("intents.intent."): f for f in found.findings if ".intent." in f.id}
    shares = {name: float(f.value or 0) for name, f in of_class.items()}
    assert sum(shares.values()) == pytest.approx(1, abs=0.01) and set(shares) == set(INTENTS)
    assert {f.of for f in of_class.values()} == {"prompts labelled by classifier"}
    assert all("mean probability by classifier" in f.note for f in of_class.values())
    assert all("kappa" in f.validation and "unseen projects" in f.validation for f in of_class.values())
    for f in of_class.values():
        assert f.interval is None or f.interval[0] <= float(f.value or 0) <= f.interval[1]
    assert not any("persona" in f.id for f in found.findings)
    assert any("label prompt_intent" in one for one in found.limits)
    assert any("label persona" in one for one in found.limits)


def test_intents_by_rules_are_lower_bounds_and_no_shares(tmp_path: Path) -> None:
    made = session(user("explain it"), say("so"), user("commit that"), say("so"))
    for turn, value in ((0, "understand"), (1, "git")):
        made.labels.append(Label(task="prompt_intent", labeller="rules", turn=turn, value=value))
    found = outcome(store_of(tmp_path / "s", made), "intents")
    of_class = {f.id.removeprefix("intents.intent."): f for f in found.findings if ".intent." in f.id}
    assert {f.kind for f in of_class.values()} == {"count"} and all(f.at_least for f in of_class.values())
    assert of_class["git"].value == 1 and not [c for c in found.charts if c and c.id == "intents.prompts" and c.rows]


def judged(name: str, intent: str | None, persona: str | None) -> Session:
    made = session(user("explain it"), say("so"), user("and that"), say("so"), session_id=name)
    for turn in (0, 1) if intent else ():
        made.labels.append(Label(task="prompt_intent", labeller="judge", turn=turn, value=intent))
    if persona:
        made.labels.append(Label(task="persona", labeller="judge", turn=None, value=persona))
    return made


def test_a_judges_intents_are_not_added_to_the_classifiers(tmp_path: Path) -> None:
    most = [judged(f"j{n}", "git", None) for n in range(3)]
    found = findings(store_of(tmp_path / "most", *most, judged("w", None, None)), "intents")
    assert (found["intent.git"].value, found["intent.git"].n) == (1, 6)
    assert found["intent.git"].of == "prompts labelled by judge"
    few = outcome(
        store_of(tmp_path / "few", judged("j", "git", None), *(judged(f"w{n}", None, None) for n in range(3))),
        "intents",
    )
    values = {f.id: (f.of, f.n) for f in few.findings}
    assert values["intents.intent.git"] == ("prompts labelled by classifier", 6)
    assert any("2 of 8 prompts" in one for one in few.limits)


def test_personas_are_told_once_a_session_was_judged(tmp_path: Path) -> None:
    short = session(user("hello"), say("hi"), session_id="short")
    found = findings(store_of(tmp_path / "s", judged("j", None, "nitpicker"), short), "intents")
    assert (found["persona.nitpicker"].value, found["persona.nitpicker"].n) == (1.0, 1), "nobody judged the other"
    assert found["persona.other"].value == 0.0


# -- data sets ---------------------------------------------------------------------------------------------------------


def test_data_sets_are_told_with_the_metric_in_which_they_differ_most(tmp_path: Path) -> None:
    sessions = []
    for at, calls in enumerate((1, 2, 9)):
        for n in range(5):
            parts = [call("Read", path=f"{k}") for k in range(calls)]
            sessions.append(
                session(user("please look at it all"), *parts, session_id=f"s{at}-{n}", cwd=f"/home/a/p{at}")
            )
    found = outcome(store_of(tmp_path / "s", *sessions), "data_sets")
    rows = table(found, "data_sets.places")
    assert [row[:2] for row in rows.values()] == [[5, 1], [5, 2], [5, 9]] and "/home/[user]/p2" in rows
    most = next(f for f in found.findings if f.id == "data_sets.most_apart")
    assert (most.value, most.n) == ("calls per prompt", 3)
    agents = table(found, "data_sets.agents")
    assert agents["claude-code"][:2] == [15, 2] and agents["claude-code"][-2:] == [pytest.approx(1 / 3), ""]


def test_two_data_sets_are_too_few_to_vary(tmp_path: Path) -> None:
    sessions = [session(user("go"), session_id=f"s{n}", cwd=f"/p/{n % 2}") for n in range(10)]
    found = outcome(store_of(tmp_path / "s", *sessions), "data_sets")
    assert found.findings == [] and found.charts == [] and any("Fewer than three" in one for one in found.limits)


# -- real sessions, counted by a second road ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Store:
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real traces is not on this machine")
    folder = tmp_path_factory.mktemp("real") / "store"
    pipeline.analyze([str(CORPUS / "claude-code")], folder, jobs=1)
    return Store(folder)


def test_turns_cut_short_are_one_number_in_every_study(tmp_path: Path) -> None:
    """One turn was interrupted, one had a call refused, one was asked a question and cut short; two were not."""
    parts = [
        *(user("a"), call("Bash", command="make"), event("interrupt")),
        *(user("b"), call("Edit", path="x.py", status="rejected")),
        *(user("c"), call("AskUserQuestion"), event("interrupt")),
        *(user("d"), say("done"), user("e"), say("done")),
    ]  # fmt: skip
    store = store_of(tmp_path, *[session(*parts, session_id=f"s{n}") for n in range(3)])
    found = [f for name in studies() for f in outcome(store, name).findings if "cut short" in f.title]
    shares = {f.id: (f.value, f.n, f.interval) for f in found if f.title == "Turns cut short"}
    assert shares.keys() == {"friction.cut", "oversight.cut", "people.cut"}
    assert set(shares.values()) == {shares["friction.cut"]} and shares["friction.cut"][:2] == (0.6, 15)
    with_published = [f for f in found if "reports 5%" in f.note]
    assert not with_published, "5% are markers of the agent alone"
