"""dynamics.*: corrections and repetitions."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import ToolCall
from tests.build import Part, call, say, user, view
from tests.signals.ask import absent, detail, evidence, lines, value

RATIO, REPEATS = "dynamics.correction_ratio", "dynamics.repetition_rate"


def bash(command: str, **more: Any) -> Part:
    return call("Bash", command=command, **more)


def test_corrections_count_from_the_second_turn_on() -> None:
    one = view(user("no, use tabs"), say("ok"), user("no, use tabs"), say("ok"), user("thanks"), user("you missed one"))
    assert value(one, RATIO) == 0.5
    assert detail(one, RATIO) == {"num": 2, "den": 4, "turns": [2 - 1, 3], "raw_seed": 0.5}
    assert lines(one, RATIO) == [3, 6]
    assert lines(one, RATIO, "denominator") == [1, 3, 5, 6]


def test_evidence_names_the_pattern_and_the_words_it_matched() -> None:
    one = view(user("go"), say("ok"), user("wait, why are we deleting this?"))
    assert [i.excerpt for i in evidence(one, RATIO).items if i.role == "support"] == [
        "wait: “wait” wait, why are we deleting this?"
    ]


def test_one_turn_is_a_ratio_of_nothing_to_one() -> None:
    assert value(view(user("stop")), RATIO) == 0.0
    assert detail(view(user("stop")), RATIO)["raw_seed"] == 1.0


def test_a_plan_stays_below_the_line_but_corrects_nothing() -> None:
    one = view(user("go"), user("Implement the following plan: no, wrong", "plan_handoff"))
    assert detail(one, RATIO) == {"num": 0, "den": 2, "turns": [], "raw_seed": 0.0}


def test_weak_words_correct_only_when_a_tool_is_refused() -> None:
    why = "why did you use a list here?"
    assert value(view(user("go"), user(why)), RATIO) == 0.0
    assert value(view(user("go"), user(why, "rejection_feedback")), RATIO) == 0.5


def test_english_patterns_say_nothing_about_other_languages() -> None:
    russian = [user("исправь ошибку в парсере"), user("нет, это неправильно, исправь")]
    assert absent(view(*russian), RATIO) == ("not_computable", "language")
    assert value(view(*russian, user("go"), user("no, the other")), RATIO) == 0.25


def test_equal_calls_repeat_whatever_the_order_of_their_arguments() -> None:
    def read(b: Any, at: int) -> None:
        b.call("x", "Read", '{"limit":9,"file_path":"a.py"}', None, at)

    def again(b: Any, at: int) -> None:
        b.call("y", "Read", '{"file_path":"a.py","limit":9}', None, at)

    def other(b: Any, at: int) -> None:
        b.call("z", "Read", '{"file_path":"a.py","limit":8}', None, at)

    one = view(user("go"), read, again, other)
    assert value(one, REPEATS) == pytest.approx(1 / 3)
    assert lines(one, REPEATS) == [3]
    assert lines(one, REPEATS, "denominator") == [2, 3, 4]


@pytest.mark.parametrize(
    ("first", "second", "repeats"),
    [
        (bash("go test ./...", description="run"), bash("go test ./...", description="run again"), True),
        (bash("go test ./...", timeout=10), bash("go test ./...", timeout=900), True),
        (bash("go  test\n./..."), bash("go test ./..."), True),
        (bash("go test ./..."), bash("go test ./cmd"), False),
        (call("Read", path="a", offset=1), call("Read", path="a", offset=2), False),
        (call("Read", path="a"), call("Edit", path="a"), False),
        (call("mcp__tracker__create", title="a", description="x"), call("mcp__tracker__create", title="a"), False),
        (
            call("mcp__tracker__create", title="a", description="x"),
            call("mcp__tracker__create", title="a", description="y"),
            False,
        ),
        (call("TodoWrite", todos="x"), call("TodoWrite", todos="x"), None),
        (call("Task", prompt="x"), call("Task", prompt="x"), None),
        (call("Read", path="a"), call("Read", path="a", thread="agent-1"), False),
    ],
)
def test_what_repeats(first: Part, second: Part, repeats: bool | None) -> None:
    one = view(user("go"), first, second)
    if repeats is None:
        assert absent(one, REPEATS) == ("not_computable", "zero_denominator")
    else:
        assert detail(one, REPEATS)["num"] == int(repeats)


def test_arguments_that_are_no_object_repeat_as_logged() -> None:
    def raw(text: str) -> Part:
        return lambda b, at: b.call("x", "apply_patch", text, None, at) and None

    assert detail(view(user("go"), raw("*** p"), raw("*** p"), raw("*** q"), raw("[1]")), REPEATS)["num"] == 1


TEST, EDIT = bash("pytest -q"), call("Edit", path="a.py", old_string="a", new_string="b")
FAILED_EDIT = call("Edit", path="b.py", status="error", result="x", old_string="a", new_string="b")


@pytest.mark.parametrize(
    ("parts", "stale"),
    [
        ([TEST], 1),
        ([TEST, TEST, TEST], 3),
        ([TEST, EDIT, TEST, TEST], 2),
        ([TEST, FAILED_EDIT, TEST], 2),
        ([TEST, bash("sleep 9"), bash("sleep 9")], 1),
        ([EDIT, EDIT], 1),
        ([FAILED_EDIT, FAILED_EDIT, FAILED_EDIT], 3),
        ([bash("git status"), bash("git status"), bash("git status")], 1),
        ([bash("cd app && git diff"), bash("cd app && git diff")], 1),
        ([bash("ls"), bash("ls"), bash("lsblk"), bash("lsblk")], 2),
        ([bash("git stash"), bash("git stash")], 1),
        ([bash("echo x > a.txt; make", status="error")] * 3, 3),
        ([TEST, bash("echo x > a.txt; make", status="error"), TEST], 2),
    ],
)
def test_a_repeat_is_stale_until_something_is_edited(parts: list[Part], stale: int) -> None:
    assert detail(view(user("go"), *parts), REPEATS)["stale_max"] == stale


def test_without_calls_nothing_can_repeat() -> None:
    assert absent(view(user("go"), say("hm")), REPEATS) == ("not_computable", "zero_denominator")


def test_many_calls_of_one_tool_cost_no_quadratic_time() -> None:
    from agentsignals.signals.dynamics import _repeated  # noqa: PLC0415  (its cost is what is tested)

    calls = [
        ToolCall(
            seq=n,
            turn=0,
            step=None,
            thread="main",
            call_id=str(n),
            name="Grep",
            class_="search",
            arguments=f'{{"pattern":"{n % 5000:05d}"}}',
        )
        for n in range(10_000)
    ]
    assert [len(same) for same in _repeated(calls)] == [2] * 5000


@pytest.mark.parametrize(
    ("agent", "name", "stale", "n", "of"),
    [
        ("codex", "write_stdin", 1, 0, 1),
        ("copilot-cli", "read_bash", 1, 0, 1),
        ("copilot-cli", "list_bash", 1, 0, 1),
        ("codex", "mcp__db__query", 5, 4, 6),
    ],
)
def test_looking_again_whether_something_has_ended_is_no_repetition(
    agent: str, name: str, stale: int, n: int, of: int
) -> None:
    one = view(user("go"), TEST, *[call(name, session_id=7, chars="")] * 5, format=agent)
    counted = value(one, "dynamics.repeated_calls")
    assert (counted["stale_max"], counted["n"], counted["of"]) == (stale, n, of)
    assert value(one, "dynamics.repetition_rate") == n / of


@pytest.mark.parametrize(
    ("parts", "n", "equal"),
    [
        ([TEST, EDIT, TEST, call("Edit", path="b.py", old_string="a", new_string="b"), TEST], 0, 2),
        ([TEST, FAILED_EDIT, TEST], 1, 1),
        ([TEST, EDIT, TEST, TEST], 1, 2),
    ],
)
def test_a_call_made_again_after_an_edit_is_equal_and_no_repetition(parts: list[Part], n: int, equal: int) -> None:
    counted = value(view(user("go"), *parts), "dynamics.repeated_calls")
    assert (counted["n"], counted["equal"]) == (n, equal)
    assert detail(view(user("go"), *parts), REPEATS)["equal"] == equal


@pytest.mark.parametrize(
    ("agent", "name", "arguments"),
    [
        ("claude-code", "Bash", {"command": "sleep 30 && gh run list"}),
        ("codex", "exec_command", {"cmd": "kubectl get pods"}),
        ("codex", "shell", {"command": ["bash", "-lc", "tail -n 5 server.log"]}),
        ("gemini-cli", "run_shell_command", {"command": "ps aux | grep node"}),
        ("opencode", "bash", {"command": "curl -s localhost:3000/health"}),
        ("pi", "bash", {"command": "docker compose ps"}),
        ("copilot-cli", "bash", {"command": "gh run watch 7"}),
        ("factory-droid", "Execute", {"command": "sleep 5; cat nohup.out"}),
        ("kiro", "execute_bash", {"command": "systemctl status web"}),
        ("cursor-agent", "Shell", {"command": "until nc -z localhost 80; do sleep 1; done"}),
        ("claude-code", "Read", {"file_path": "/run/tasks/b1.output"}),
    ],
)
def test_every_agents_look_at_what_runs_is_a_poll(agent: str, name: str, arguments: dict[str, Any]) -> None:
    one = view(user("go"), TEST, *[call(name, **arguments)] * 4, format=agent)
    assert {c.purpose for c in one.calls[1:]} == {"poll"}
    assert value(one, "dynamics.repeated_calls")["of"] == 1
