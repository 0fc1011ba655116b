"""What people and models wrote, as HTML: Markdown without its HTML, links and pictures as text, code in colours.

Whatever comes in is hostile. The parser passes no HTML on, nothing leads away from this machine, and every character
that turns text around is shown (`words.text.visible`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from agentsignals.words.text import visible

MOST_COLOURED_CHARS = 20_000
"""Code beyond this stays plain: a lexer takes a second for a megabyte."""
_NESTED = 40
"""Quotes in quotes and lists in lists; deeper ones stay text."""


def rendered(text: str) -> Markup:
    """Markdown (CommonMark and tables) as HTML. It takes no longer than linear in the text: nesting is bounded."""
    return Markup(_parser().render(visible(text)))  # noqa: S704  (made by a parser that passes no HTML on)


def coloured(code: str, language: str = "", path: str = "") -> Markup:
    """Code with classes for its colours (`static/code.css`), by the language's name, or what a file of that path is
    written in; only escaped where neither is known, or the code is long."""
    lexer = _lexer(language, path.rsplit("/", 1)[-1]) if len(code) <= MOST_COLOURED_CHARS else None
    if lexer is None:
        return escape(visible(code))
    from pygments import highlight  # noqa: PLC0415  (30 ms, which pages without code do without)
    from pygments.formatters import HtmlFormatter  # noqa: PLC0415

    return Markup(highlight(visible(code), lexer, HtmlFormatter(nowrap=True)))  # noqa: S704  (the formatter escapes)


@cache
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

    def image(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        source = str(tokens[place].attrGet("src") or "")
        return f'<span class="link" title="{escape(source[:200])}">[picture: {escape(tokens[place].content)}]</span>'

    def fence(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        language = tokens[place].info.split(" ", 1)[0].strip()[:40]
        return f'<pre class="code"><code>{coloured(tokens[place].content, language)}</code></pre>\n'
