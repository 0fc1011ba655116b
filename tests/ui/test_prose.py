"""What people and models wrote, rendered: readable, and never anything but text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.ui.markup import MOST_COLOURED_CHARS, coloured, rendered
from tests.ui.served import EVIL, Elements

ALLOWED = {
    "p", "span", "em", "strong", "s", "code", "pre", "ul", "ol", "li", "blockquote", "hr", "br",
    "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
ATTRIBUTES = {"class", "title", "start"}


def test_markdown_becomes_headings_lists_tables_and_code_in_colours() -> None:
    text = "## Plan\n\n1. **first** `x`\n2. then\n\n|a|b|\n|-|-:|\n|1|2|\n\n```python\nreturn 1\n```\n"
    made = str(rendered(text))
    assert (
        '<p class="heading h2">Plan</p>' in made
        and "<strong>first</strong>" in made
        and '<td class="right">2</td>' in made
    )
    assert '<span class="k">return</span>' in made


@pytest.mark.parametrize(
    "text",
    [
        EVIL,
        '[a](javascript:alert(1)) [b](https://e.com/"onmouseover=x) ![p](https://e.com/p.png) <https://e.com>',
        f"```{EVIL}\n{EVIL}\n```",
        f"# {EVIL}\n\n|{EVIL}|b|\n|-|-|\n|1|{EVIL}|\n",
        ">" * 5_000 + "deep",
        "[" * 20_000,
        "![" * 10_000,
        "*a_ " * 5_000,
    ],
)
def test_hostile_markdown_stays_text_and_is_rendered_quickly(text: str) -> None:
    told = Elements(str(rendered(text)))
    assert {name for name, _ in told.elements} <= ALLOWED
    assert {key for _, attrs in told.elements for key in attrs} <= ATTRIBUTES
    assert "\u202e" not in str(rendered(text))


@given(st.text(alphabet="<>&\"'`#*_[]()!|-\n\\ab\u202e", max_size=60))
def test_no_text_becomes_an_element_that_markdown_has_not(text: str) -> None:
    told = Elements(str(rendered(text)))
    assert {name for name, _ in told.elements} <= ALLOWED
    assert {key for _, attrs in told.elements for key in attrs} <= ATTRIBUTES


def test_code_is_coloured_by_its_path_and_only_escaped_where_it_is_long_or_of_no_language() -> None:
    assert '<span class="k">def</span>' in str(coloured("def f(): ...\n", path="src/a.py"))
    assert "<span" not in str(coloured("def f(): ...\n", path="src/a.unheard"))
    line = "x = 1\n"
    fits = line * (MOST_COLOURED_CHARS // len(line))
    assert "<span" in str(coloured(fits, path="a.py")) and "<span" not in str(coloured(fits + line * 2, path="a.py"))
    assert str(coloured("\n\nx\n", path="a.py")).count("\n") == 3


def test_so_many_brackets_that_they_would_take_seconds_are_not_parsed() -> None:
    assert "<strong>" in str(rendered("**a** " + "[" * 1_000)) and "<strong>" not in str(
        rendered("**a** " + "[" * 1_001)
    )
