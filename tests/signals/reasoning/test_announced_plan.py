"""reasoning.plan_steps_detected: plans in text, as to-dos, or shown for approval, before the first change."""

from __future__ import annotations

import pytest

from tests.build import Part, call, say, think, user, view
from tests.signals.ask import detail, lines, value

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


@pytest.mark.parametrize(
    "parts",
    [
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
    ],
)
def test_findings_code_later_turns_and_what_follows_a_change_are_no_plan(parts: list[Part]) -> None:
    assert value(view(user("go"), *parts), PATH) == 0


def test_reading_the_plan_out_of_long_text_is_linear() -> None:
    for text in ("1. " * 20_000, "\n- " * 20_000, "\n" + " " * 60_000, "\n```" * 15_000, "\n- **" * 12_000):
        assert value(view(user("go"), say(text)), PATH) >= 0
