"""reasoning.*: announced and guessed phases, thinking."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent
from agentsignals.views.session import SessionView
from tests.build import Part, call, event, say, think, user, view
from tests.signals.ask import Case, absent, detail, evidence, lines, value

PHASES = "reasoning.plannotator_phases[]"
TRANSITIONS = "reasoning.phase_transitions[]"
BLOCKS = "reasoning.has_reasoning_blocks"
TOKENS = "reasoning.reasoning_tokens_total"

READ_A, READ_B = call("Read", path="a.py"), call("Read", path="b.py")
EDIT_A = call("Edit", path="a.py")
TEST, BUILD = call("Bash", command="pytest -q"), call("Bash", command="tsc --noEmit")
STATUS = call("Bash", command="git status")


def announced(phase: str) -> Part:
    return event("phase", f'{{"event":"plannotator-phase","phase":"{phase}"}}')


def of_format(name: str, *parts: Part) -> SessionView:
    return view(*parts, format=name)


def test_phase_events_keep_the_word_the_line_and_the_time() -> None:
    one = view(user("go"), announced("implement"), announced("Verify"), announced("ponder"))
    rows = value(one, PHASES)
    assert rows[0] == {
        "phase_raw": "implement",
        "phase": "implement",
        "ts": "2026-01-01T00:00:01.000Z",
        "line_no": 2,
        "source": "stdout",
    }
    assert [(r["phase_raw"], r["phase"]) for r in rows[1:]] == [("Verify", "verify"), ("ponder", None)]
    assert lines(one, PHASES) == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "raw", "phase"),
    [
        ('{"phase":"planning","lastSubmittedPath":null}', "planning", "localize"),
        ('{"phase":"executing"}', "executing", "implement"),
        ('{"customType":"plannotator","data":{"phase":"reviewing"}}', "reviewing", "verify"),
        ('{"phase":"idle"}', "idle", None),
    ],
)
def test_the_public_extensions_state_is_a_phase_too(text: str, raw: str, phase: str | None) -> None:
    row = value(of_format("pi", event("phase", text)), PHASES)[0]
    assert (row["phase_raw"], row["phase"], row["source"]) == (raw, phase, "custom_message")


def test_guessed_phases_count_their_calls_and_name_where_each_begins() -> None:
    one = view(user("go"), READ_B, READ_A, EDIT_A, STATUS, TEST)
    assert detail(one, TRANSITIONS) == {
        "method": "heuristic",
        "calls": {"explore": 1, "localize": 1, "implement": 2, "verify": 1},
    }
    assert lines(one, TRANSITIONS) == [2, 3, 4, 6]
    assert "design/signals.md#phases" in evidence(one, TRANSITIONS).rules[0]


@pytest.mark.parametrize(
    ("parts", "expected", "blocks", "redacted"),
    [
        ([think("hm"), think("")], True, 2, False),
        ([think("")], True, 1, True),
        ([say("<think>hm</think>done")], True, 1, False),
        ([say("done")], False, 0, False),
    ],
)
def test_thinking_blocks_count_even_without_their_text(
    parts: list[Any], expected: bool, blocks: int, redacted: bool
) -> None:
    one = view(user("go"), *parts)
    assert value(one, BLOCKS) is expected
    assert detail(one, BLOCKS) == {"blocks": blocks, "redacted": redacted}
    assert len(lines(one, BLOCKS)) == blocks


@pytest.mark.parametrize("path", [BLOCKS, TOKENS])
def test_a_format_that_never_records_thinking_leaves_it_unknown(path: str) -> None:
    assert absent(of_format("kiro", user("go"), say("done")), path)[0] == "missing_field"


# reasoning.plan_steps_detected: plans in text, as to-dos, or shown for approval, before the first change.

PATH = "reasoning.plan_steps_detected"
EDIT = call("Edit", path="a.py")
READ = call("Read", path="a.py")
TWO = say("Plan:\n1. Add a lock\n2. Run the tests")


@pytest.mark.parametrize(
    ("parts", "steps", "first"),
    [
        ([TWO], 2, 2),
        ([say("Let me look."), READ, TWO], 2, 0),
        ([say("- Add a lock\n- **Run** the tests\n* [ ] Update the docs\nand more")], 3, 3),
        ([say("## 1. Add a lock\ntext\n## 2) Then run it\nStep 3: verify it")], 3, 3),
        ([say("1. I'll add a lock\n2. Next, check it\n3. The rest")], 3, 3),
        ([TWO, say("- Fix a\n- Fix b\n- Fix c")], 3, 2),
        ([call("TodoWrite", todos=[{"content": "a"}] * 4), call("TodoWrite", todos=[{"content": "a"}] * 9)], 4, 0),
        ([call("TodoWrite", todos=[]), call("TodoWrite", todos=[{"content": "a"}] * 2)], 2, 0),
        ([call("TaskCreate", subject="a"), call("TaskCreate", subject="b"), TWO], 2, 2),
        ([call("ExitPlanMode", plan="# Plan\n1. Add\n   - detail\n2. Run\n- Also")], 3, 0),
        ([call("update_plan", plan=[{"step": "a"}, {"step": "b"}])], 0, 0),
    ],
)
def test_the_most_steps_of_any_plan_count(parts: list[Part], steps: int, first: int) -> None:
    one = view(user("go"), *parts)
    assert value(one, PATH) == steps
    assert detail(one, PATH) == {"text_steps": first}
    assert bool(lines(one, PATH)) == bool(steps)


def test_reading_the_plan_out_of_long_text_is_linear() -> None:
    for text in ("1. " * 20_000, "\n- " * 20_000, "\n" + " " * 60_000, "\n```" * 15_000, "\n- **" * 12_000):
        assert value(view(user("go"), say(text)), PATH) >= 0


CASES = (
    Case("no phase events are an empty list only where they would have been seen", view(user("go")), PHASES,
         Absent("missing_artifact", "stdout")),
    Case("no phase events are an empty list only where they would have been seen", of_format("pi", user("go")), PHASES,
         [], {"instrumented": False}),
    Case("announced phases collapse and the calls are not asked",
         view(user("go"), announced("explore"), announced("explore"), EDIT_A, announced("ponder"),
         announced("implement")), TRANSITIONS, ["explore", "implement"], {"method": "plannotator"}),
    Case("an extension that stayed idle leaves the calls to tell",
         of_format("pi", user("go"), event("phase", '{"phase":"idle"}'), EDIT_A), TRANSITIONS, ["implement"],
         some={"method": "heuristic"}),
    Case("a plan written outside the repository is no implementation",
         view(user("go"), READ_B, call("Write", path="/home/me/.claude/plans/p.md", creates=True), TEST, EDIT_A,
         cwd="/home/me/app"), TRANSITIONS, ["explore", "implement"]),
    Case("without phases and calls there is nothing to tell from", view(user("go"), say("hello")), TRANSITIONS,
         Absent("missing_artifact", "no_phases_and_no_calls")),
    Case("reported reasoning tokens win over the estimate",
         view(user("go"), think("x" * 400), say("a", reasoning_tokens=30), say("b", reasoning_tokens=12)), TOKENS, 42,
         {"method": "usage"}, support=[3, 4]),
    Case("thinking of which no text was kept is unknown and not zero", view(user("go"), think(""), think("")), TOKENS,
         Absent("missing_field", "all_blocks_redacted")),
    *(Case("what announces no phase is none", view(user("go"), event("phase", text)), PHASES,
           Absent("missing_artifact", "stdout"))
      for text in ["plan", "", '{"savedState":1}', "[1]", '{"phase":3}']),
    *(Case("phases are guessed from the calls", view(user("go"), *parts), TRANSITIONS, expected)
      for parts, expected in [
        ([READ_B, READ_A, EDIT_A, TEST], ["explore", "localize", "implement", "verify"]),
        ([TEST, READ_A, EDIT_A], ["explore", "localize", "implement"]),
        ([READ_A, EDIT_A, BUILD, READ_B, TEST], ["localize", "implement", "verify"]),
        ([STATUS, READ_A, STATUS, EDIT_A], ["localize", "implement"]),
        ([READ_A, READ_B, EDIT_A], ["localize", "implement"]),
        ([READ_A, call("Grep", path="src"), call("Grep", path="src"), EDIT_A], ["localize", "explore", "implement"]),
        ([EDIT_A, READ_B, EDIT_A], ["implement"]),
        ([EDIT_A, READ_B, READ_B, EDIT_A], ["implement", "explore", "implement"]),
        ([EDIT_A, TEST, EDIT_A], ["implement", "verify", "implement"]),
        ([READ_B, call("Edit", path="a.py", status="error"), TEST], ["explore", "implement", "explore"]),
        ([call("Bash", command="sed -i s/a/b/ a.py"), TEST], ["implement", "verify"]),
        ([READ_B, call("apply_patch"), call("Edit")], ["explore", "implement"]),
        ([READ_B], ["explore"]),
        ([STATUS], []),
      ]),
    *(Case("reasoning is estimated from its text", view(user("go"), *parts), TOKENS, tokens,
           {"method": "chars4", "redacted_blocks": redacted})
      for parts, tokens, redacted in [
        ([think("x" * 9), think("")], 3, 1),
        ([say("<think>abcdefgh</think>and the answer")], 2, 0),
        ([say("done")], 0, 0),
      ]),
    *(Case("findings code later turns and what follows a change are no plan", view(user("go"), *parts), PATH, 0)
      for parts in [
        [],
        [say("I will add a lock.")],
        [say("Findings:\n1. The lock is stale\n2. Tests are slow\n3. Add nothing")],
        [say("- The lock is stale\n- Nothing else")],
        [say("```\n1. Add a lock\n2. Run it\n```")],
        [say("2024. Add more\n1.5 Add")],
        [think("1. Add\n2. Run")],
        [EDIT, TWO],
        [call("Bash", command="sed -i s/a/b/ a.py"), TWO],
        [say("ok"), user("more"), TWO],
        [say("1. Add\n2. Run", thread="agent-1")],
        [call("TodoWrite", todos="")],
        [call("TodoWrite", todos=7)],
        [call("ExitPlanMode", plan="Just do it.")],
      ]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
