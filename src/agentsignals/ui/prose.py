"""What people and models wrote, as HTML: Markdown without its HTML, links and pictures as text, code in colours.

Whatever comes in is hostile. The parser passes no HTML on, nothing leads away from this machine, and every character
that turns text around is shown (`words.text.visible`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from agentsignals.words.text import visible

MOST_COLOURED_CHARS = 20_000
"""Code beyond this stays plain: a lexer takes a second for a megabyte."""
_NUMBERED = re.compile(r" *(\d{1,7})(?:→|\t|: |\. ?|:)(.*)")
"""A line of a file with its number before it, as tools print it."""
_MOST_BRACKETS = 1_000
"""The parser looks for the end of a link from each on: 20,000 of them take a second."""
_NESTED = 40
"""Quotes in quotes and lists in lists; deeper ones stay text."""


def rendered(text: str) -> Markup:
    """Markdown (CommonMark and tables) as HTML; only escaped where it opens so many brackets that parsing it would take
    seconds: nesting is bounded, and so is all else that could take longer than the text is long."""
    if text.count("[") > _MOST_BRACKETS:
        return Markup("<pre>{}</pre>").format(visible(text))
    return Markup(_parser().render(visible(text)))  # noqa: S704  (made by a parser that passes no HTML on)


def coloured(code: str, language: str = "", path: str = "") -> Markup:
    """Code with classes for its colours (`static/code.css`), by the language's name, or what a file of that path is
    written in; only escaped where neither is known, or the code is long."""
    lexer = _lexer(language, path.rsplit("/", 1)[-1]) if len(code) <= MOST_COLOURED_CHARS else None
    if lexer is None:
        return escape(visible(code))
    from pygments import highlight  # noqa: PLC0415  (30 ms, which pages without code do without)
    from pygments.formatters import HtmlFormatter  # noqa: PLC0415

    made: str = highlight(visible(code), lexer, HtmlFormatter(nowrap=True))
    # The formatter escapes; and it ends the last line, which may have no end.
    return Markup(made if code.endswith("\n") else made.removesuffix("\n"))  # noqa: S704


def coloured_lines(code: str, path: str) -> list[Markup]:
    """The lines of code, each with its colours whole by itself."""
    lines = code.split("\n")
    made = str(coloured(code, path=path)).split("\n")
    if len(made) != len(lines):  # a lexer that keeps no lines
        return [escape(visible(line)) for line in lines]
    return [Markup(line) for line in made]  # noqa: S704  (escaped above)


def file_text(text: str, path: str) -> Markup:
    """A file as a tool gave it back, in the colours of its path; numbers that stand before its lines stay apart."""
    lines = text.split("\n")
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    if 2 * sum(line is not None for line in numbered) <= len(lines):
        return coloured(text, path=path)
    code = [at[2] if at else line for at, line in zip(numbered, lines, strict=True)]
    made = coloured_lines("\n".join(code), path)
    numbers = [Markup('<span class="no">{}</span>').format(at[1] if at else "") for at in numbered]
    return Markup("\n").join(number + line for number, line in zip(numbers, made, strict=True))


@lru_cache(500)
def _lexer(language: str, name: str) -> Any:
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    kept = {"stripnl": False, "ensurenl": False}  # lines stay the lines they are
    try:
        return get_lexer_by_name(language, **kept) if language else get_lexer_for_filename(name, **kept)
    except ClassNotFound:
        return None


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTED}, renderer_cls=_Renderer).enable(
        ["table", "strikethrough"]
    )


class _Renderer(RendererHTML):
    """Headings as paragraphs, for the page's outline is the session's; addresses are not to be clicked."""

    def heading_open(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return f'<p class="heading {tokens[place].tag}">'

    def heading_close(self, *_: Any) -> str:
        return "</p>\n"

    def link_open(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return f'<span class="link" title="{escape(tokens[place].attrGet("href") or "")}">'

    def link_close(self, *_: Any) -> str:
        return "</span>"

    def th_open(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return self._cell(tokens[place])

    def td_open(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return self._cell(tokens[place])

    def _cell(self, token: Token) -> str:
        """The page's policy lets no style in: a cell's side is a class."""
        side = str(token.attrGet("style") or "").removeprefix("text-align:")
        return f'<{token.tag} class="{side}">' if side in ("left", "center", "right") else f"<{token.tag}>"

    def image(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        source = str(tokens[place].attrGet("src") or "")
        return f'<span class="link" title="{escape(source[:200])}">[picture: {escape(tokens[place].content)}]</span>'

    def fence(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        language = tokens[place].info.split(" ", 1)[0].strip()[:40]
        return f'<pre class="code"><code>{coloured(tokens[place].content, language)}</code></pre>\n'
