"""corpus.first_message_pattern: the ordered rules of design/signals.md#first-message."""

from __future__ import annotations

import pytest

from agentsignals.model import TurnKind
from tests.build import call, user, view
from tests.signals.ask import absent, evidence, lines, value

PATH = "corpus.first_message_pattern"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
    ],
)
def test_the_first_rule_that_fits_names_the_message(text: str, expected: str) -> None:
    assert value(view(user(text)), PATH) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("plan_handoff", "plan_handoff"), ("slash_command", "slash_command"), ("attachment", "attachment_only"),
     ("queued_prompt", "bug_report"), ("rejection_feedback", "bug_report")],
)  # fmt: skip
def test_the_kind_of_the_turn_comes_before_its_words(kind: TurnKind, expected: str) -> None:
    assert value(view(user("the build is broken", kind)), PATH) == expected


def test_words_far_down_a_long_message_do_not_count() -> None:
    assert value(view(user("the header is blue. " + "and wide, " * 45 + "with an error")), PATH) == "statement"
    assert value(view(user("the header is blue. " + "and wide, " * 20 + "after review")), PATH) == "statement"


def test_only_the_first_message_is_looked_at() -> None:
    one = view(user("Add a flag"), call("Read", path="a.py"), user("it crashes"))
    assert value(one, PATH) == "task_imperative"
    assert 1 in lines(one, PATH) and 3 not in lines(one, PATH)


def test_the_words_that_matched_are_shown() -> None:
    found = evidence(view(user("Could you look at the flaky test?")), PATH)
    assert any("bug_report: “flaky”" in i.excerpt for i in found.items)


def test_no_human_turn_has_no_pattern_and_another_alphabet_no_english_words() -> None:
    assert absent(view(call("Read", path="a.py")), PATH) == ("not_applicable", "no_turns")
    assert absent(view(user("исправь ошибку")), PATH) == ("not_computable", "language")
