"""What an agent's answer is understood as: one block, whole, and nothing guessed."""

from __future__ import annotations

import time

import pytest

from agentsignals.lab.repo_agent.protocol import KINDS, WORDS, Action, Unfit, read_answer


def block(text: str) -> str:
    return f"```action\n{text}\n```"


@pytest.mark.parametrize(("answer", "does"), [
    (block("list"), Action(kind="list")),
    (block("READ a/b c.py"), Action(kind="read", path="a/b c.py")),
    (block("read a.py 3-12"), Action(kind="read", path="a.py", lines=(3, 12))),
    (block("read a.py ٣-٥"), Action(kind="read", path="a.py ٣-٥")),
    (block("search def  f("), Action(kind="search", text="def  f(")),
    (block("write a.py\nx = 1\n"), Action(kind="write", path="a.py", text="x = 1\n\n")),
    (block("write a.py"), Action(kind="write", path="a.py")),
    (block("replace a.py\n<<<<\nold\n====\n>>>>"), Action(kind="replace", path="a.py", old="old\n")),
    (block("replace a.py\n<<<<\n  a\n\n====\nb\nc\n>>>>"),
     Action(kind="replace", path="a.py", old="  a\n\n", text="b\nc\n")),
    (block("patch\n--- a/x\n+++ b/x"), Action(kind="patch", text="--- a/x\n+++ b/x\n")),
    ("First\n" + block("test") + "\nthen", Action(kind="test")),
    ("~~~ Action\r\nsubmit\r\n~~~\r\n", Action(kind="submit")),
    ("````action\nwrite a.md\n```\ncode\n```\n````", Action(kind="write", path="a.md", text="```\ncode\n```\n")),
    ("```python\nprint()\n```\n" + block("test"), Action(kind="test")),
    ("````text\n```action\nsubmit\n```\n````\n" + block("test"), Action(kind="test")),
])  # fmt: skip
def test_a_block_is_an_action(answer: str, does: Action) -> None:
    assert read_answer(answer).does == does


@pytest.mark.parametrize(("answer", "why"), [
    ("", "no block"),
    ("I give up.", "no block"),
    ("```\nlist\n```", "no block"),
    ("```action\nwrite a.py\nhalf of", "does not end"),
    (block("rm -rf /"), "'rm' is no action"),
    (block(""), "'' is no action"),
    (block("read"), "wants a file"),
    (block("search  "), "wants a text"),
    (block("replace a.py\nold\n====\nnew"), "<<<<"),
    (block("replace a.py\n<<<<\na\n====\nb\n====\nc\n>>>>"), "<<<<"),
    ("x" * 200_001, "characters"),
])  # fmt: skip
def test_what_is_no_action_says_why(answer: str, why: str) -> None:
    does = read_answer(answer).does
    assert isinstance(does, Unfit)
    assert why in does.why


def test_only_the_first_block_counts_and_the_others_are_told() -> None:
    found = read_answer(block("test") + "\nThey pass.\n" + block("submit") + "\n```action\nwrite x\nhalf")
    assert (found.does, found.more) == (Action(kind="test"), 2)


def test_the_words_name_every_action() -> None:
    assert all(f"\n{kind}" in WORDS for kind in KINDS)
    assert read_answer(WORDS).does == Action(kind="read", path="shop/basket.py")


@pytest.mark.parametrize(
    "answer", ["`" * 199_000, "```action\n" * 19_000, ("<<<<\n====\n" * 20_000)[:199_000], "\n" * 199_000]
)
def test_hostile_answers_are_read_in_no_time(answer: str) -> None:
    start = time.process_time()
    read_answer(answer)
    assert time.process_time() - start < 1.0
