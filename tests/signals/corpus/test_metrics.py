"""corpus.*: the behavioural metrics of agent-traces, of a session and of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentsignals.model import Absent, Label, TurnKind
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, plain
from agentsignals.signals.corpus.metrics import COMMANDS_LOOKED_AT
from agentsignals.views.session import SessionView
from tests.build import Part, call, say, session, user, view
from tests.quick import each_row
from tests.signals.ask import Case, detail, value, values_over_sessions

READ = call("Read", path="a.py")
SUBAGENT = call("Read", path="b.py", thread="agent-1")


def over_sessions(path: str, **values: Sequence[Any]) -> Any:
    return values_over_sessions(by_path(path), values)


@pytest.mark.parametrize(("lengths", "median"), [([3], 3.0), ([1, 2, 10], 2.0), ([10, 1, 4, 2], 3.0)])
def test_the_median_of_an_even_number_is_between_the_two_in_the_middle(lengths: list[int], median: float) -> None:
    found = over_sessions("corpus.median_session_length_events", session_length_events=lengths)
    assert found == Measured(median, {"n": len(lengths)})


def test_no_sessions_have_no_median() -> None:
    assert over_sessions("corpus.median_session_length_events") == Absent("not_applicable", "no_sessions")


def priced(cost: float | None, thread: str = "main", tokens: int = 5) -> Part:
    return say("x", input_tokens=tokens, output_tokens=tokens, cost_usd=cost, thread=thread)


def test_cost_per_session_is_the_mean_of_the_known_costs_and_tells_how_many_are_not() -> None:
    found = over_sessions(
        "corpus.cost_per_session",
        session_cost_usd=[1.0, 2.0, 6.0],
        session_length_events=[9] * 5,
    )
    assert found == Measured(3.0, {"median": 2.0, "n": 3, "n_null": 2})


def test_cost_per_session_without_any_cost_is_not_computable() -> None:
    assert over_sessions("corpus.cost_per_session", session_length_events=[9]) == Absent("not_computable", "no_costs")


def test_the_share_of_short_messages_pools_the_sessions() -> None:
    counts = [{"le_20": 1, "lt_20": 0, "n": 1}, {"le_20": 1, "lt_20": 1, "n": 7}]
    found = over_sessions("corpus.share_messages_le_20_chars", short_messages=counts)
    assert found == Measured(0.25, {"num": 2, "den": 8, "lt_20": 0.125})
    nothing = over_sessions("corpus.share_messages_le_20_chars")
    assert nothing == Absent("not_computable", "zero_denominator")


# corpus.read_before_edit_rate and corpus.error_recovery_rate.

CARE = "corpus.read_before_edit_rate"

EDIT = call("Edit", path="a.py")
CREATE = call("Write", path="new.py", creates=True)
BLOCKED = call("Edit", path="a.py", status="error", result="File has not been read yet. Read it first.")


def bash(command: str, ok: bool = True) -> Part:
    return call("Bash", command=command, status="ok" if ok else "error", result="ok" if ok else "Exit code 1")


@pytest.mark.parametrize(
    ("parts", "num", "den"),
    [
        ([READ, EDIT], 1, 1),
        ([EDIT], 0, 1),
        ([READ, EDIT, EDIT], 2, 2),
        ([EDIT, EDIT], 1, 2),
        ([bash("cat a.py"), EDIT], 1, 1),
        ([bash("cat b.py a.py"), EDIT], 1, 1),
        ([bash("cat b.py c.py"), EDIT], 0, 1),
        ([bash("sed -i s/x/y/ a.py"), EDIT], 1, 1),
        ([CREATE, call("Edit", path="new.py"), EDIT], 1, 2),
        ([call("Grep", path="a.py"), EDIT], 0, 1),
        ([call("Read", path="a.py", thread="agent-1"), EDIT], 0, 1),
        ([BLOCKED], 0, 1),
        ([BLOCKED, READ, EDIT], 1, 2),
        ([call("Edit", path="a.py", status="rejected"), READ, EDIT], 1, 1),
        ([call("Write", path="a.py", status="error", result="File has not been read yet"), EDIT], 0, 2),
        ([call("Write", path="new.py", status="error", result="EACCES: permission denied"), READ, EDIT], 1, 1),
        ([call("Edit", path="gone.py", status="error", result="File does not exist."), READ, EDIT], 1, 1),
    ],
)
def test_an_edit_is_careful_when_the_agent_knew_the_file(parts: list[Part], num: int, den: int) -> None:
    found = detail(view(user("go"), *parts), CARE)
    assert (found["num"], found["den"]) == (num, den)


# corpus.cross_dataset_variance[] and the figures of sessions it is made of.

INPUTS, PATH = "corpus.metric_inputs", "corpus.cross_dataset_variance[]"


def figures(place: str, **more: Any) -> dict[str, Any]:
    same = {
        "autonomy": 10.0, "errors": [1, 10], "tools": {"Read": 1, "Edit": 1}, "events": 20, "reads": 1.0, "edits": 2,
        "cost": 1.0, "pattern": "question", "tokens": [1, 100], "short": [1, 4], "felt": {},
    }  # fmt: skip
    return {"place": place, **same, **more}


def rows(*sessions: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = values_over_sessions(by_path(PATH), {"metric_inputs": list(sessions)})
    assert isinstance(found, Measured), found
    return {row["metric"]: row for row in plain(found.value)}


def sets(name: str, *values: Any, n: int = 5) -> list[dict[str, Any]]:
    """A data set a value, each of five sessions that have it."""
    return [figures(f"place{at}", **{name: one}) for at, one in enumerate(values) for _ in range(n)]


@pytest.mark.parametrize(
    ("name", "values", "metric", "cv", "robust"),
    [
        ("autonomy", (1.0, 2.0, 3.0), "autonomy_ratio", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("errors", ([1, 10], [2, 10], [3, 10]), "error_rate", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("events", (10, 20, 30), "median_session_length_events", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("cost", (0.0, 0.0, 3.0), "cost_per_session", 2**0.5, None),
        ("tokens", ([1, 10], [1, 10], [4, 10]), "output_input_token_ratio", 2**0.5 / 2, 0.0),
        ("short", ([1, 4], [2, 4], [3, 4]), "share_messages_le_20_chars", (2 / 3) ** 0.5 / 2, 1.4826 / 2),
        ("reads", (0.5, 0.5, 0.5), "read_before_edit_rate", 0.0, 0.0),
        ("tools", ({"R": 1, "E": 1}, {"R": 2, "E": 2}, {"R": 9}), "tool_mix_entropy", 0.5**0.5, 0.0),
    ],
)
def test_a_metric_varies_by_its_deviation_over_its_mean_and_by_its_robust_counterpart(
    name: str, values: tuple[Any, ...], metric: str, cv: float, robust: float | None
) -> None:
    found = rows(*sets(name, *values))[metric]
    assert found["n_datasets"] == 3
    assert found["cv"] == pytest.approx(cv)
    assert found["robust_cv"] == (robust if robust is None else pytest.approx(robust))


def test_a_pattern_varies_by_the_share_that_is_not_the_commonest_of_all() -> None:
    found = rows(*sets("pattern", "question", "question", "bug_report"))["first_message_pattern"]
    assert found["cv"] == pytest.approx(2**0.5)


def test_the_most_different_metric_comes_first_and_those_without_a_middle_last() -> None:
    sessions = sets("autonomy", 1.0, 2.0, 3.0)
    for one in sessions:
        one["cost"] = 3.0 if one["place"] == "place0" else 0.0
    order = list(rows(*sessions))
    assert (order[0], order[-1]) == ("autonomy_ratio", "cost_per_session")


def test_what_cannot_be_computed_is_named() -> None:
    found = values_over_sessions(by_path(PATH), {"metric_inputs": sets("cost", None, None, 1.0)})
    assert found.detail["left_out"] == ["neg_pct_turn5", "cost_per_session", "first_message_pattern"]
    assert found.detail["data_sets"] == 3


def test_negativity_at_turn_five_is_of_the_labeller_with_most_labels() -> None:
    """Shares of 0, 1/2 and 1; the other labeller, whose labels are younger, is not asked."""
    felt = [{"a": [9, 0, k, 2], "b": [1, 5, 1, 1]} for k in (0, 1, 2)]
    found = rows(*sets("felt", *felt))["neg_pct_turn5"]
    assert found["n_datasets"] == 3
    assert (found["cv"], found["robust_cv"]) == (pytest.approx((1 / 6) ** 0.5 / 0.5), pytest.approx(1.4826))


def test_a_session_without_a_label_at_turn_five_takes_no_part_in_it() -> None:
    sessions = sets("felt", {"a": [9, 0, 1, 2]}, {"a": [9, 0, 1, 2]}, {})
    assert "neg_pct_turn5" not in rows(*sessions)


def test_what_a_labeller_said_of_turn_five_is_a_sessions_part() -> None:
    made = session(*(part for n in range(6) for part in (user(f"say {n}"), say("so"))), cwd="/r")
    made.labels = [Label(task="sentiment", labeller="a", turn=n, value="NEGATIVE", created_at=7) for n in (0, 4, 5)]
    made.labels.append(Label(task="sentiment", labeller="b", turn=4, value="NEUTRAL"))
    assert value(SessionView(made), INPUTS)["felt"] == {"a": [3, 7, 1, 1], "b": [1, 0, 0, 1]}


def test_small_data_sets_are_left_out_and_three_are_needed() -> None:
    few = sets("autonomy", 1.0, 2.0) + sets("autonomy", 9.0, 9.0, 9.0, 9.0, n=4)[8:12]
    assert values_over_sessions(by_path(PATH), {"metric_inputs": few}) == Absent(
        "not_computable", "fewer_than_3_data_sets"
    )
    assert values_over_sessions(by_path(PATH), {}) == Absent("not_computable", "fewer_than_3_data_sets")


# corpus.top_duplicate_messages[]: what people say again and again, with what must not be shown hidden.

COUNTS, TOP = "corpus.message_counts", "corpus.top_duplicate_messages[]"


def top(*views: SessionView) -> Any:
    counted = [v for one in views if not isinstance(v := value(one, COUNTS), Absent)]
    return values_over_sessions(by_path(TOP), {"message_counts": counted})


def test_the_most_frequent_messages_come_first_and_once_is_no_duplicate() -> None:
    found = top(view(user("yes"), user("Yes!"), user("go")), view(user("yes"), user("commit")), view(user("go")))
    assert found.value == [{"text": "yes", "n": 3, "sessions": 2}, {"text": "go", "n": 2, "sessions": 2}]
    assert found.detail == {"messages": 6, "distinct": 3, "repeated": 2}


def test_no_more_than_25_rows_are_shown_in_an_order_that_does_not_depend_on_the_sessions() -> None:
    many = [view(user(f"say {n}")) for n in range(30) for _ in "ab"]
    assert top(*many) == top(*reversed(many))
    assert len(top(*many).value) == 25


def test_long_messages_are_the_same_only_as_a_whole() -> None:
    long = "word " * 100
    found = top(view(user(long + "a"), user(long + "b")), view(user(long + "a")))
    assert [(row["n"], len(row["text"]) <= 121, row["text"][-1]) for row in found.value] == [(2, True, "…")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("use sk-abcdefghijklmnop1234", "use [key]"),
        ("password: hunter2 ok", "[secret] ok"),
        ("clone https://me:pw@host/x", "clone https://[login]@host/x"),
        ("mail me@example.org now", "mail [mail] now"),
        ("read /Users/me/app/a.py please", "read [path] please"),
        ("read ~/notes/a.md", "read [path]"),
        ("read C:\\Users\\me", "read [path]"),
        ("key deadbeefdeadbeefdeadbeefdeadbeef1", "key [secret]"),
        ("/review", "/review"),
        ("fix src/a.py and/or b", "fix src/a.py and/or b"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
    ],
)
def test_secrets_addresses_and_absolute_paths_are_hidden(text: str, shown: str) -> None:
    assert [row["text"] for row in top(view(user(text)), view(user(text))).value] == [shown]


def test_an_empty_data_set_has_no_duplicates() -> None:
    assert values_over_sessions(by_path(TOP), {}) == Absent("not_applicable", "no_messages")
    assert isinstance(top(view(user("a"))), Measured)


@pytest.mark.parametrize("unit", ["a@", "a.", "sk-", "/a", "password ", "a:", "\\"])
def test_hostile_messages_cost_no_more_than_their_length(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    assert len(top(view(user(text)), view(user(text))).value) == 1


# corpus.first_message_pattern: the ordered rules of design/signals.md#first-message.

FIRST_MESSAGE = "corpus.first_message_pattern"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("plan_handoff", "plan_handoff"), ("slash_command", "slash_command"), ("attachment", "attachment_only"),
     ("queued_prompt", "bug_report"), ("rejection_feedback", "bug_report")],
)  # fmt: skip
def test_the_kind_of_the_turn_comes_before_its_words(kind: TurnKind, expected: str) -> None:
    assert value(view(user("the build is broken", kind)), FIRST_MESSAGE) == expected


CASES = (
    *(Case("tool mix entropy is in bits and normed by the number of tools",
           view(user("go"), *(call(name) for name in names), SUBAGENT), "corpus.tool_mix_entropy", pytest.approx(bits),
           some={"norm": pytest.approx(norm)})
      for names, bits, norm in [
        (["Read"] * 5, 0.0, 0.0),
        (["Read", "Bash"], 1.0, 1.0),
        (["Read", "Read", "Bash", "Edit"], 1.5, 1.5 / 1.584962500721156),
      ]),
    *(Case("without calls there is no mix", view(user("go"), say("hello")), path, Absent("not_applicable", "no_calls"))
      for path in ["corpus.tool_mix_entropy", "corpus.tool_class_mix"]),
    *(Case("a sessions cost leaves out a subagent without a price",
           view(user("go"), priced(1.5), say("x", thread="agent-1", **usage)), "corpus.session_cost_usd", 1.5)
      for usage in [{"output_tokens": 5}, {"input_tokens": 5}, {"cache_read_tokens": 5}]),
    *(Case("without an attempt on an existing file the rate does not apply", view(user("go"), *parts), CARE,
           Absent("not_applicable", "no_edit"))
      for parts in [[READ], [CREATE], [call("Edit", path="a.py", status="rejected")]]),
    *(Case("a command that read several files is remembered for so many more",
           view(user("go"), bash("cat b.py a.py"), *[bash("cat c.py d.py")] * later, EDIT), CARE, some={"num": num})
      for later, num in [(COMMANDS_LOOKED_AT - 1, 1), (COMMANDS_LOOKED_AT, 0)]),
    *(Case("the first rule that fits names the message", view(user(text)), FIRST_MESSAGE, expected)
      for text, expected in [
        ("Hi!", "greeting"),
        ("hello there", "greeting"),
        ("hello, fix the parser", "task_imperative"),
        ("ok, now what is left of the old storage layer in there", "question"),
        ("continue", "continuation"),
        ("yes, do that", "continuation"),
        ("2", "continuation"),
        ("commit this", "continuation"),
        ("commit the fix for the crash", "bug_report"),
        ("commit and push the fix for the crash", "continuation"),
        ("yes, and then make it " + "x" * 18, "continuation"),
        ("yes, and then make it " + "x" * 19, "statement"),
        ("commit hooks stay silent", "task_imperative"),
        ("2 new endpoints for the api", "statement"),
        ("ok so the thing is that the second page of the wizard shows nothing at all", "statement"),
        ("can you fix the crash on start?", "bug_report"),
        ("the export doesn't work for me", "bug_report"),
        ("tests are failing on main", "bug_report"),
        ("a debugger would be nice here", "statement"),
        ("please review my changes", "review_request"),
        ("address the comments on the PR", "review_request"),
        ("the preview is too small", "statement"),
        ("could you add a dark theme", "task_request"),
        ("I want to rename the module", "task_request"),
        ("I'd like to see the totals first", "task_request"),
        ("let's move the parser out", "task_request"),
        ("Add a flag for colours", "task_imperative"),
        ("- implement the cache", "task_imperative"),
        ("additional logging, everywhere", "statement"),
        ("what does this function return", "question"),
        ("the cache is per process? I thought it was shared", "question"),
        ("is it shared", "question"),
        ("The cache is shared. Or is it?", "statement"),
        ("the header is blue on every page", "statement"),
        ("```\ntrace\n```", "paste_only"),
        ("`make build`", "paste_only"),
        ("https://example.org/issue/3", "paste_only"),
        ("Low Severity\nThe name is never checked", "paste_only"),
        ("Add this:\n```\nerror: x\n```", "task_imperative"),
        ("   ", "attachment_only"),
      ]),
)  # fmt: skip


@each_row("case", CASES)
def test_a_case(case: Case) -> None:
    case.check()
