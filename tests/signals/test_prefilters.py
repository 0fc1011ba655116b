"""What is looked for before a pattern is tried: whatever the pattern finds, the look lets through."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentsignals.redaction import redacted
from agentsignals.signals import dynamics as planned_work
from agentsignals.signals import loop as markers
from agentsignals.signals.corpus import metrics as duplicates
from agentsignals.signals.user import history
from agentsignals.words import text as language
from agentsignals.words.lexicon import Prose, asked
from agentsignals.words.text import count_tokens
from agentsignals.words.vectors import Words, split_words
from tests.build import say, view

_SECRETS = (
    "password: hunter2", "api-key=x1", "TOKEN = abc", "https://me:pass@host", "sk-", "ghp_", "a1" * 9, "B" * 15,
    "é" * 4, "9" * 33, "+-" * 16, "me@host.org", "/home/me/x.py", "C:\\tmp\\x", "\\\\share\\x", "ſecret: x", "\u2019",
    "\U0001f600",
)  # fmt: skip
_ITEMS = (
    "a..b",
    "AA0",
    "A",
    "b9C",
    "foo.py",
    "src/a.py",
    "run()",
    "fooBar",
    "a_b",
    "me@host.org",
    "/home/me/",
    "x.y",
    "Read ",
    "é_",
    "_",
    ".",
)
_COMMANDS = ("cd x", "git -C y", "clone", "--git-dir", "--work-tree", "submodule", "git", " ", "-", "\n", "&&")


def _texts(*pieces: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces) | st.text(max_size=4), max_size=6).map("".join)


@settings(max_examples=25)
@given(_texts(*_SECRETS, " ", "\n", "sk", "sec", "ret:"))
@example("secret: x")
@example("token=x")
@example("api_key: x")
@example("passwd=x")
@example("https://a:b@c")
@example("hf-abcdefghijklmnop")
@example("hfabcdefghijklmnop")
@example("é1" * 16)
@example("~/a/b")
@example("a:\\b\\c")
@example("\\\\a\\b")
def test_a_message_is_masked_as_by_all_patterns(text: str) -> None:
    masked = duplicates._ADDRESS.sub("[address]", duplicates._PATH.sub("[path]", text))
    assert duplicates._masked(text) == duplicates._SECRET.sub("[secret]", masked.strip().casefold())


@settings(max_examples=25)
@given(_texts(*_ITEMS, " ", "[mail]"))
@example("run()")
@example("a..b")
@example("AA0")
@example("a_b")
@example("a.b")
def test_a_step_without_anything_to_change_has_no_item(step: str) -> None:
    if planned_work._ITEM.search(redacted(step)):
        assert planned_work._MAY_BE_ITEM.search(step)


@settings(max_examples=25)
@given(_texts(*_COMMANDS))
@example("cd x")
@example("git -C y")
@example("git clone")
@example("--git-dir")
@example("--work-tree")
@example("submodule")
def test_a_command_that_goes_elsewhere_has_a_sign_of_it(command: str) -> None:
    if history._ELSEWHERE.search(command):
        assert any(sign in command for sign in history._SIGNS_OF_ELSEWHERE)


@settings(max_examples=25)
@given(_texts("API", "ID", "TODO", "é", "É", "\u2014", "_", " ", "x", "3", "\U0001f600"))
@example("éAPI")
@example("\u2014API\u2014")
def test_words_in_capitals_are_those_of_the_pattern(text: str) -> None:
    assert markers._count_capitals(text) == len(re.findall(r"(?<!\w)[A-Z]{3,}(?!\w)", text))


@settings(max_examples=25)
@given(
    _texts("über", "a-b", "\u2014", "\U0001f600", " ", "\ud800", "ß", "_", "...", *"\u2019\u201c\u201d\u2026\u00a0→✓·•")
)
def test_tokens_are_those_of_the_pattern(text: str) -> None:
    assert count_tokens(text) == len(re.findall(r"\w+|[^\w\s]", text))


@settings(max_examples=25)
@given(
    _texts(
        "commit",
        "Commits",
        "theFile",
        "\u6f22\u5b57\u304b\u306a",
        "a",
        "the",
        " ",
        "snake_case",
        "É",
        "x1",
        "HTTPServer",
    )
)
def test_a_text_is_counted_word_by_word(text: str) -> None:
    counted: Counter[str] = Counter()
    for word in split_words(text):
        counted.update(Words().embed([word])[0].counts)
    assert Words().embed([text])[0].counts == counted


@settings(max_examples=25)
@given(_texts("漢", "か", "ф", "і", "\u2014", "✓", "α"))
def test_a_script_is_told_by_its_letters(foreign: str) -> None:
    letters = {
        name for name, first, last in language._SCRIPTS for c in foreign if first <= ord(c) <= last and c.isalpha()
    }
    assert (language._script(foreign)[0] is None) == (not letters)


@settings(max_examples=15)
@given(st.lists(_texts("Shall I?", "What now?", " ", "\n", "`code?`", "a"), min_size=1, max_size=4))
def test_questions_of_a_message_are_those_that_stand_in_it(texts: list[str]) -> None:
    prose = Prose(view(*map(say, texts)).by_kind["text"])
    for event in prose.events:
        assert prose.spans_at(event, asked) == [s for s in prose.spans(asked) if prose.event(s) is event]
