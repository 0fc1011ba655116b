"""corpus.top_duplicate_messages[]: what people say again and again, with what must not be shown hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.model import Absent
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path
from agentsignals.views.session import SessionView
from tests.build import say, user, view
from tests.signals.ask import absent, lines, value, values_over_sessions

COUNTS, TOP = "corpus.message_counts", "corpus.top_duplicate_messages[]"


def top(*views: SessionView) -> Any:
    counted = [v for one in views if not isinstance(v := value(one, COUNTS), Absent)]
    return values_over_sessions(by_path(TOP), {"message_counts": counted})


def samples(one: SessionView) -> dict[str, int]:
    """How often each message occurs, by its sample."""
    return {told["sample"]: told["n"] for told in value(one, COUNTS).values()}


def test_messages_are_the_same_but_for_case_blanks_and_a_final_mark() -> None:
    one = view(user("Commit this."), user("  commit THIS!"), user("commit this?"), user("", "attachment"), say("yes"))
    assert samples(one) == {"commit this": 2, "commit this?": 1}
    assert lines(one, COUNTS) == [1, 2, 3]


def test_plans_and_empty_messages_are_no_messages() -> None:
    assert absent(view(user("# Plan", "plan_handoff"), user(" ")), COUNTS) == ("not_applicable", "no_messages")
    assert samples(view(user("..."))) == {"...": 1}


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


def test_no_key_is_a_text_and_what_is_masked_is_masked_before_it_is_folded_or_cut() -> None:
    key = "AK" + "IAQX7PLM2ZK4RT6YWB"
    text = f"{'x ' * 52}deploy with {key} in /Users/janedoe17/app please"
    told = json.dumps(value(view(user(text)), COUNTS)).lower()
    assert not [part for part in (key[:8].lower(), key[-8:].lower(), "janedoe17", "/users/ja") if part in told]
    assert "[key" in told


def test_an_empty_data_set_has_no_duplicates() -> None:
    assert values_over_sessions(by_path(TOP), {}) == Absent("not_applicable", "no_messages")
    assert isinstance(top(view(user("a"))), Measured)


@pytest.mark.parametrize("unit", ["a@", "a.", "sk-", "/a", "password ", "a:", "\\"])
def test_hostile_messages_cost_no_more_than_their_length(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    assert len(top(view(user(text)), view(user(text))).value) == 1
