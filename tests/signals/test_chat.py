"""chat.file_types_touched and the composition of sessions by position."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Absent, Checkpoint, Edit
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, measure, plain
from agentsignals.views.session import SessionView
from tests.build import Part, call, event, say, session, user, view
from tests.signals.ask import Case, absent, by_turn, detail, evidence, lines, value, values_over_sessions

TYPES, POSITIONS, SHARES = (
    "chat.file_types_touched",
    "chat.tool_calls_by_position",
    "chat.tool_composition_by_position",
)


def test_each_call_falls_into_its_tenth_of_the_session() -> None:
    reads, edits = [call("Read", path="a.py")] * 15, [call("Edit", path="a.py")] * 5
    one = view(user("go"), *reads, *edits)
    assert value(one, POSITIONS) == {
        "read": [2, 2, 2, 2, 2, 2, 2, 1, 0, 0],
        "edit": [0, 0, 0, 0, 0, 0, 0, 1, 2, 2],
    }
    assert len(lines(one, POSITIONS)) == 20


def test_shares_are_of_the_calls_of_all_sessions_in_a_tenth() -> None:
    sessions = [{"read": [3] + [1] * 9}, {"edit": [1] + [0] * 9, "read": [0] * 10}]
    found = values_over_sessions(by_path(SHARES), {"tool_calls_by_position": sessions})
    assert isinstance(found, Measured)
    assert plain(found.value)[:3] == [
        {"position_bin": 0, "class": "edit", "share": 0.25, "n": 4},
        {"position_bin": 0, "class": "read", "share": 0.75, "n": 4},
        {"position_bin": 1, "class": "read", "share": 1.0, "n": 1},
    ]
    assert len(found.value) == 11
    assert found.detail == {"n_sessions": 2, "n_calls": 13}


def test_without_a_long_enough_session_there_is_no_composition() -> None:
    assert values_over_sessions(by_path(SHARES), {}) == Absent("not_applicable", "no_sessions")


# chat.turn_autonomy_s and chat.cost_per_100_committed_lines.

AUTONOMY, COST = "chat.turn_autonomy_s", "chat.cost_per_100_committed_lines"


def committed(*lines: int | None, **more: Any) -> SessionView:
    made = session(
        user("go"),
        say("a", input_tokens=10, output_tokens=20, cache_read_tokens=300, cache_write_tokens=70, cost_usd=0.5),
        event("notification", "x"),
        user("more"),
        say("b", input_tokens=0, output_tokens=0),
        **more,
    )
    made.checkpoints = [Checkpoint(checkpoint_id=f"c{n}", total_committed=total) for n, total in enumerate(lines)]
    return SessionView(made)


def test_a_turns_autonomy_is_the_time_to_the_agents_last_sign_of_life() -> None:
    one = view(user("go"), say("a"), call("Read", path="a.py"), user("more"), user("again"), say("b"))
    assert by_turn(one, AUTONOMY) == [2.5, Absent("not_applicable", "no_response"), 1.0]


def test_a_response_without_a_time_is_a_missing_field() -> None:
    made = session(user("go"), say("a"), user("more"), say("b"))
    made.events[1].timestamp = None
    assert by_turn(SessionView(made), AUTONOMY) == [Absent("missing_field", "timestamp"), 1.0]


def test_without_any_time_the_field_is_missing() -> None:
    made = session(user("go"), say("a"))
    for row in (*made.events, *made.turns):
        row.timestamp = None
    assert by_turn(SessionView(made), AUTONOMY) == [Absent("missing_field", "timestamp")]


def test_costs_are_for_a_hundred_lines_of_all_recorded_commits_together() -> None:
    one = committed(30, None, 20)
    assert value(one, COST) == pytest.approx(
        {"usd": 1.0, "tokens": 800, "minutes": 2 * 4 / 60, "agent_minutes": 2 * 2 / 60, "user_turns": 4}
    )
    assert detail(one, COST).items() >= {"committed_lines": 50, "checkpoints": 2}.items()
    assert "2 commits of 50 lines" in evidence(one, COST).rules[0]


def test_what_is_unknown_is_null_and_leaves_the_others() -> None:
    made = session(user("go"), call("Read", path="a.py"))
    for row in (*made.events, *made.turns):
        row.timestamp = None
    made.checkpoints = [Checkpoint(checkpoint_id="c", total_committed=100)]
    made.steps.clear()
    found = value(SessionView(made), COST)
    assert found == {"usd": 0.0, "tokens": None, "minutes": None, "agent_minutes": None, "user_turns": 1}


def test_unpriced_calls_make_no_price() -> None:
    made = session(user("go"), say("a", model="no-such-model", input_tokens=10, output_tokens=20))
    made.checkpoints = [Checkpoint(checkpoint_id="c", total_committed=100)]
    found = value(SessionView(made), COST)
    assert (found["usd"], found["tokens"]) == (None, 30)


def test_no_recorded_commit_and_no_committed_line_are_told_apart() -> None:
    assert absent(committed(), COST) == ("not_applicable", "no_commit")
    assert absent(committed(None), COST) == ("not_applicable", "no_commit")
    assert absent(committed(0, 0), COST) == ("not_computable", "zero_denominator")


# chat.agent_self_overwrite_share.

PATH = "chat.agent_self_overwrite_share"


def hunk(at: int, added: int, removed: int, new_at: int | None = None) -> Hunk:
    start = new_at if new_at is not None else at
    return Hunk(start_line=start, end_line=start + max(added, 1) - 1, added=added, removed=removed, old_start=at)


def edit(*hunks: Hunk, path: str = "a.py", **more: object) -> Part:
    return call("Edit", path=path, hunks=list(hunks), **more)  # type: ignore[arg-type]  # fields of a call


def whole(lines_added: int, removed: int | None = 0) -> Hunk:
    return Hunk(
        start_line=1,
        end_line=lines_added,
        added=lines_added,
        removed=removed,
        old_start=None if removed is None else 1,
        whole_file=True,
    )


def test_a_change_through_the_shell_ends_the_following_of_that_file() -> None:
    one = view(user("go"), edit(hunk(1, 5, 0)), call("Bash", command="sed -i s/a/b/ a.py"), edit(hunk(1, 0, 5)))
    found = detail(one, PATH)
    assert (found["num"], found["edits_without_lines"], found["unfollowed_lines"]) == (0, 1, 5)


def test_without_edits_or_line_counts_or_added_lines_there_is_no_share() -> None:
    assert absent(view(user("go")), PATH) == ("not_applicable", "no_edit")
    shell = view(user("go"), call("Bash", command="sed -i s/a/b/ a.py"))
    assert absent(shell, PATH) == ("missing_field", "line_counts")
    assert absent(view(user("go"), edit(hunk(1, 0, 3))), PATH) == ("not_computable", "zero_denominator")


def test_many_edits_of_one_file_are_followed_in_reasonable_time() -> None:
    made = session(user("go"))
    made.edits = [
        Edit(
            seq=n,
            turn=0,
            thread="main",
            call_id="c",
            path="a.py",
            op="modify",
            via="edit_tool",
            hunk=0,
            start_line=2 * n + 1,
            end_line=2 * n + 1,
            added=1,
            removed=0,
            old_start=2 * n + 1,
        )
        for n in range(2_000)
    ]
    assert value(SessionView(made), PATH) == 0.0


# chat.*: pushback, interruptions, and whose lines were committed.

INTERRUPT = event("interrupt", "[Request interrupted by user]")
READ = call("Read", path="a.py")


def test_calls_belong_to_the_prompt_before_them() -> None:
    one = view(READ, user("a"), READ, READ, user("b"), user("c"), READ, call("Read", path="x", thread="agent-1"))
    assert by_turn(one, "chat.tool_calls_per_turn") == [2, 0, 1]
    assert lines(one, "chat.tool_calls_per_turn") == [1, 3, 4, 7]


@pytest.mark.parametrize(
    ("text", "kind", "label", "pattern"),
    [
        ("No.", "prompt", "rejection", "rejection"),
        ("revert that", "prompt", "rejection", "rejection"),
        ("no, use the other helper", "prompt", "correction", "no_initial"),
        ("undo that and use a dict instead", "prompt", "correction", "undo_revert"),
        ("you forgot to update the tests", "prompt", "correction", "you_erred"),
        ("tests are failing", "prompt", "failure_report", "failure_report"),
        ("commit this", "prompt", "non_pushback", None),
        ("why did you use a list here?", "prompt", "non_pushback", None),
        ("why did you use a list here?", "rejection_feedback", "correction", "why_did_you"),
        ("Implement the following plan: no, that is wrong", "plan_handoff", "non_pushback", None),
        ("", "attachment", "non_pushback", None),
    ],
)
def test_the_type_of_pushback(text: str, kind: Any, label: str, pattern: str | None) -> None:
    one = view(user("go"), say("ok"), user(text, kind))
    wanted = by_path("chat.pushback_type")
    found = [r for r in measure(one) if r.signal is wanted]
    assert found[0].value == Absent("not_applicable", "first_turn")
    assert (found[1].value, (found[1].detail or {}).get("pattern"), found[1].turn) == (label, pattern, 1)
    assert (found[1].detail or {})["method"] == "regex"
    assert lines(one, "chat.pushback_type") == ([3] if pattern else [])


def test_pushback_in_another_language_is_not_known() -> None:
    one = view(user("go"), user("нет, это неправильно, исправь"))
    assert by_turn(one, "chat.pushback_type")[1] == Absent("not_computable", "language")
    assert value(one, "chat.pushback_rate") == 0.0


@pytest.mark.parametrize(
    ("parts", "cut"),
    [
        ([user("a"), say("x"), INTERRUPT, user("b"), say("y")], [True, False]),
        ([user("a"), INTERRUPT], [True]),
        ([user("a"), call("Edit", path="a", status="rejected", result="x")], [True]),
        ([user("a"), call("Edit", path="a", status="error", result="Permission to use")], [False]),
        ([user("a"), say("x"), user("stop", "queued_prompt")], [True, False]),
        ([user("a"), say("x"), user("wait, why?", "queued_prompt")], [True, False]),
        ([user("a"), say("x"), user("also add a test", "queued_prompt")], [False, False]),
        ([user("a"), say("x"), user("stop")], [False, False]),
        ([INTERRUPT, user("a")], [False]),
    ],
)
def test_a_hard_interruption_is_the_persons_brake(parts: list[Part], cut: list[bool]) -> None:
    one = view(*parts)
    assert by_turn(one, "chat.hard_interruption") == cut
    if any(cut):
        assert evidence(one, "chat.hard_interruption").totals["support"] == 1


def test_pushback_rate_unites_words_and_brakes() -> None:
    one = view(
        user("go"),
        say("x"),
        INTERRUPT,
        user("no, use tabs"),  # soft, and behind a cut response: counted once
        say("x"),
        user("thanks"),
        say("x"),
        user("and the docs"),
        INTERRUPT,  # the last response, cut without a turn behind it
    )
    assert value(one, "chat.pushback_rate") == 0.5
    assert detail(one, "chat.pushback_rate") == {"num": 2, "den": 4, "soft": 1, "hard": 2, "method": "regex"}
    assert lines(one, "chat.pushback_rate") == [4, 8]


def checkpoint(lines: int | None, total: int | None, percent: float | None = None) -> Checkpoint:
    return Checkpoint(checkpoint_id="c", agent_lines=lines, total_committed=total, agent_percentage=percent)


PERCENT, MODE = "chat.agent_percentage", "chat.coding_mode"


@pytest.mark.parametrize(
    ("recorded", "percent", "mode"),
    [
        ([checkpoint(0, 10, 0.0)], 0.0, "human_only"),
        ([checkpoint(5, 10, 50.0)], 50.0, "collaborative"),
        ([checkpoint(99, 100, 99.0)], 99.0, "vibe_coding"),
        ([checkpoint(989, 1000, 98.9)], 98.9, "collaborative"),
        ([checkpoint(10, 10)], 100.0, "vibe_coding"),
        ([checkpoint(1, 10, 10.0), checkpoint(9, 90, 10.0), checkpoint(None, None)], 10.0, "collaborative"),
        ([checkpoint(0, 0, 100.0)], 100.0, "vibe_coding"),
    ],
)
def test_the_agents_share_of_the_committed_lines(recorded: list[Checkpoint], percent: float, mode: str) -> None:
    one = view(user("go"), checkpoints=recorded)
    assert value(one, PERCENT) == pytest.approx(percent)
    assert value(one, MODE) == mode
    assert evidence(one, PERCENT).rules and evidence(one, MODE).items[-1].excerpt.startswith("chat.agent_percentage =")


def test_without_attribution_nobody_knows_whose_lines_they_are() -> None:
    assert absent(view(user("go")), PERCENT) == ("missing_artifact", "git_attribution")
    assert absent(view(user("go")), MODE) == ("dependency_null", "chat.agent_percentage")
    nothing = view(user("go"), checkpoints=[checkpoint(0, 0, 0.0)])
    assert absent(nothing, PERCENT) == ("not_computable", "zero_denominator")


CASES = (
    Case("extensions are counted in lower case over reads edits and searches of a file",
         view(user("go"), call("Read", path="src/a.PY"), call("Read", path="src/a.PY"), call("Edit", path="src/a.py"),
         call("Grep", path="docs/x.md", pattern="y"), call("Grep", path="docs", pattern="y"), call("Bash",
         command="make"), call("Read", path="b.py", thread="agent-1")), TYPES, {"py": 3, "md": 1},
         support=[2, 3, 4, 5]),
    Case("a session that touched no file has no types", view(user("go"), call("Bash", command="make")), TYPES, {}),
    Case("nine calls are too few and ten are one for each tenth", view(user("go"), *[call("Read", path="a.py")] * 9),
         POSITIONS, Absent("not_applicable", "under_10_calls")),
    Case("nine calls are too few and ten are one for each tenth", view(user("go"), *[call("Read", path="a.py")] * 10),
         POSITIONS, {"read": [1] * 10}),
    Case("calls that do not divide by ten fall into the tenth they begin in",
         view(user("go"), *[call("Read", path="a.py")] * 13), POSITIONS, {"read": [2, 1, 1, 2, 1, 1, 2, 1, 1, 1]}),
    Case("a hunk of two changes loses no more than it removed",
         view(user("go"), edit(hunk(1, 10, 0)), edit(Hunk(start_line=1, end_line=10, added=1, removed=1,
         old_start=1))), PATH, some={"num": 1}),
    Case("a file written anew loses what it held and a deleted file everything",
         view(user("go"), call("Write", path="a.py", hunks=[whole(10)], creates=True), edit(whole(4, 10))), PATH,
         some={"num": 10, "den": 14}),
    Case("a file written anew loses what it held and a deleted file everything",
         view(user("go"), edit(hunk(1, 5, 0)), call("Bash", command="rm a.py")), PATH, support=[3],
         some={"num": 5, "den": 5}),
    Case("a rewrite that does not say what it removed is followed anew",
         view(user("go"), edit(hunk(1, 5, 0)), edit(whole(8, None)), edit(hunk(1, 0, 8))), PATH,
         some={"num": 8, "den": 13, "unfollowed_lines": 5}),
    Case("resetting the whole tree is not counted as removing lines",
         view(user("go"), edit(hunk(1, 5, 0)), call("Bash", command="git restore ."), edit(hunk(1, 0, 5))), PATH,
         some={"num": 0, "unfollowed_lines": 5}),
    Case("evidence names the edits that removed lines and those that added",
         view(user("go"), edit(hunk(1, 10, 0)), edit(hunk(40, 0, 1)), edit(hunk(2, 0, 2))), PATH, support=[4],
         denominator=[2]),
    Case("turns per session is the number of prompts", view(user("a"), say("b"), user("c")), "chat.turns_per_session",
         2),
    *(Case("the extension is behind the last dot that the name does not begin with",
           view(user("go"), call("Read", path=path)), TYPES, {extension: 1})
      for path, extension in [
        ("Makefile", "(none)"),
        (".gitignore", "(none)"),
        ("..x", "(none)"),
        ("a.tar.gz", "gz"),
        ("v1.2/notes", "(none)"),
        (".eslintrc.json", "json"),
        ("odd.", "(none)"),
      ]),
    *(Case("lines the agent added and removed again are followed by their place", view(user("go"), *parts), PATH,
           pytest.approx(num / den), some={"num": num, "den": den})
      for parts, num, den in [
        ([edit(hunk(1, 10, 0))], 0, 10),
        ([edit(hunk(1, 10, 0)), edit(hunk(3, 0, 4))], 4, 10),
        ([edit(hunk(1, 10, 0)), edit(hunk(3, 2, 4))], 4, 12),
        ([edit(hunk(1, 10, 0)), edit(hunk(50, 0, 4))], 0, 10),
        ([edit(hunk(1, 10, 0)), edit(hunk(9, 0, 4))], 2, 10),
        # A hunk above moves the lines below it along.
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 10, 0)), edit(hunk(30, 0, 5))], 5, 15),
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 10, 0)), edit(hunk(20, 0, 5))], 0, 15),
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 0, 10)), edit(hunk(10, 0, 5))], 5, 5),
        # Two hunks of one call: the second's old place is from before the call.
        ([edit(hunk(20, 5, 0)), edit(hunk(1, 10, 0), hunk(20, 0, 5, 30))], 5, 15),
        # A line put into the middle does not make the lines around it lost.
        ([edit(hunk(1, 10, 0)), edit(hunk(5, 1, 0)), edit(hunk(1, 0, 11))], 11, 11),
        # A line of the agent, replaced by the agent, is its line again.
        ([edit(hunk(1, 1, 1)), edit(hunk(1, 1, 1)), edit(hunk(1, 1, 1))], 2, 3),
        # Another file is another matter.
        ([edit(hunk(1, 5, 0)), edit(hunk(1, 0, 5), path="b.py")], 0, 5),
      ]),
    *(Case("one turn objects only by the brake", view(*parts), "chat.pushback_rate", rate)
      for parts, rate in [([user("stop")], 0.0), ([user("a"), INTERRUPT], 1.0)]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
