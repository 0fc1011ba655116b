"""Text of people and models as HTML: Markdown without its HTML, links and pictures as text, code in colours. Whatever
comes in is hostile. The parser passes no HTML on, nothing leads away from this machine, and every character that turns
text around is shown (`words.text.visible`)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from msgspec import Struct

from agentsignals.changes.hunks import EditText, edit_texts, patched
from agentsignals.views.calls import command_texts
from agentsignals.words.text import visible

if TYPE_CHECKING:
    from markupsafe import Markup


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
    return Markup(_PARSER.render(visible(text)))  # noqa: S704  (made by a parser that passes no HTML on)


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
        """The page's policy lets no style in: a cell's side is a class."""
        token = tokens[place]
        side = str(token.attrGet("style") or "").removeprefix("text-align:")
        return f'<{token.tag} class="{side}">' if side in ("left", "center", "right") else f"<{token.tag}>"

    td_open = th_open

    def image(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        source = str(tokens[place].attrGet("src") or "")
        return f'<span class="link" title="{escape(source[:200])}">[picture: {escape(tokens[place].content)}]</span>'

    def fence(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        language = tokens[place].info.split(" ", 1)[0].strip()[:40]
        return f'<pre class="code"><code>{coloured(tokens[place].content, language)}</code></pre>\n'


_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTED}, renderer_cls=_Renderer)
_PARSER.enable(["table", "strikethrough"])


# What an edit changed, as lines: those it took away, those it put in, and those around them.
#
# Made of the call's arguments, or the words of its command, which hold the texts; the numbers of the lines come of
# the store's rows of edits, where the trace has any.

MOST_LINES = 240
"""Lines of one call that are shown; the rest is in its arguments."""
_MOST_COMPARED = 400_000
"""Lines before times lines after, up to which they are compared."""
_MOST_ALIKE = 10_000
"""Pairs of a line before and one after that are the same, up to which they are compared: of lines that are all alike
400,000 pairs take five seconds."""
_AROUND = 3
"""Unchanged lines shown on either side of a change."""


Mark = tuple[str, int, int]
"""`+`, `-`, ` ` or `…`, and the places in the old and in the new text, from 0."""


class Line(Struct):
    """A line of a change: `+`, `-`, ` `, or `…` where lines are left out."""

    mark: str
    before: int | None
    after: int | None
    text: Markup | str


class Change(Struct, kw_only=True):
    """The change of one file, or of one place in it."""

    path: str
    op: str
    lines: list[Line]
    left_out: int = 0
    """Lines that are not shown."""


def changes(
    texts: Sequence[tuple[str, EditText]], edits: Sequence[dict[str, Any]], in_colours: bool = True
) -> list[Change]:
    """The changes that a call asked for, by file, in order. `edits`: the store's rows of it, none where it failed."""
    made: list[Change] = []
    by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for edit in edits:
        by_path[edit["path"]].append(edit)
    counted = Counter(path for path, _ in texts)
    for path, text in texts:
        if text.kind == "patch":
            made += _of_patch(text.new, by_path, in_colours)
            continue
        rows = by_path.get(path) or [row for row in edits if row["via"] == "edit_tool"]
        # Of several texts nobody says which of the places in the file is whose: they stand in another order.
        row = rows[0] if rows and counted[path] == 1 else {}
        shown_as = path if in_colours else ""
        old, new = text.old.split("\n"), text.new.split("\n")
        if text.kind == "whole":
            lines = _of_whole(text, rows, shown_as)
        elif text.kind == "replace":
            lines = _numbered(list(_compared(old, new)), row, _coloured(old, shown_as), _coloured(new, shown_as))
        else:
            start = text.line + 1 if text.kind == "insert" else row.get("start_line")
            shown = enumerate(_coloured(new, shown_as))
            lines = [Line("+", None, start + n if start else None, line) for n, line in shown]
        if made and made[-1].path == path:
            made[-1].lines += [Line("…", None, None, ""), *lines]
        else:
            made.append(
                Change(path=path, op=rows[0]["op"] if rows else "create" if text.creates else "modify", lines=lines)
            )
    left = MOST_LINES
    for change in made:
        change.left_out = max(len(change.lines) - left, 0)
        change.lines = change.lines[: max(left, 0)]
        left -= len(change.lines)
    return made


def texts_of(call: Mapping[str, Any], edits: Sequence[dict[str, Any]]) -> list[tuple[str, EditText]]:
    """Return the texts that a call (a row of `tool_calls`) asked to be written, each with its file: an edit tool's by
    its arguments, a command's by its words, for the files that it is recorded to have changed."""
    if edits and edits[0]["via"] == "shell":
        paths = dict.fromkeys(edit["path"] for edit in edits)
        return command_texts(call["command"] or "", paths, has_failed=call["status"] == "error")
    return [(call["path"] or "", text) for text in edit_texts(call["arguments"], call["argument_roles"])]


def _of_whole(text: EditText, rows: Sequence[dict[str, Any]], path: str) -> list[Line]:
    """A file written whole: where the trace says what changed in it, only those lines are marked."""
    modified = [r for r in rows if r["start_line"] and not r["whole_file"] and r["op"] == "modify"]
    places = [(r["start_line"], r["end_line"]) for r in modified]
    lines = _coloured(text.new.removesuffix("\n").split("\n"), path)
    if not places:
        return [Line("+", None, n, line) for n, line in enumerate(lines, 1)]
    marked = {n for start, end in places for n in range(start, end + 1)}
    near = {n + d for start, end in places for n in (start, end) for d in range(-_AROUND, _AROUND + 1)} | marked
    shown: list[Line] = []
    for n, line in enumerate(lines, 1):
        if n in near:
            shown.append(Line("+" if n in marked else " ", None, n, line))
        elif not shown or shown[-1].mark != "…":
            shown.append(Line("…", None, None, ""))
    return shown


def _compared(old: list[str], new: list[str]) -> Iterator[Mark]:
    """Mark and places in both texts of each line of their difference."""
    counted = Counter(old)
    n_alike = sum(counted[line] for line in new)
    if len(old) * len(new) > _MOST_COMPARED or n_alike > _MOST_ALIKE:
        steps: list[tuple[str, int, int, int, int]] = [("replace", 0, len(old), 0, len(new))]
    else:
        steps = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for n, (tag, i1, i2, j1, j2) in enumerate(steps):
        if tag == "equal":
            head = 0 if n == 0 else _AROUND
            tail = 0 if n == len(steps) - 1 else _AROUND
            for k in range(i2 - i1):
                if k < head or k >= i2 - i1 - tail:
                    yield " ", i1 + k, j1 + k
                elif k == head:
                    yield "…", i1 + k, j1 + k
            continue
        yield from (("-", i, j1) for i in range(i1, i2))
        yield from (("+", i2, j) for j in range(j1, j2))


def _numbered(
    marks: Sequence[Mark], row: dict[str, Any], before: Sequence[Markup | str], after: Sequence[Markup | str]
) -> list[Line]:
    """Lines with their numbers in the file: the row says where the first that changed stands."""
    first = next(((i, j) for mark, i, j in marks if mark in "+-"), (0, 0))
    old_base = row["old_start"] - first[0] if row.get("old_start") else None
    new_base = row["start_line"] - first[1] if row.get("start_line") else None
    return [
        Line(
            mark,
            old_base + i if old_base is not None and mark in " -" else None,
            new_base + j if new_base is not None and mark in " +" else None,
            "" if mark == "…" else after[j] if mark == "+" else before[i],
        )
        for mark, i, j in marks
    ]


def _of_patch(patch: str, by_path: dict[str, list[dict[str, Any]]], in_colours: bool) -> Iterator[Change]:
    """The files of a patch. Its places and the store's rows of a file stand in one order."""
    for file in patched(patch.removesuffix("\n"), diffs=True):
        rows = _rows_of(file.moved_to or file.path, by_path) or _rows_of(file.path, by_path)
        sides = [
            (before.split("\n") if before else [], after.split("\n") if after else []) for before, after in file.texts
        ]
        places = [(list(_compared(old, new)), old, new) for old, new in sides]
        places = [place for place in places if any(mark in "+-" for mark, *_ in place[0])]
        firsts = _firsts([marks for marks, *_ in places], rows)
        if file.op == "create":
            firsts = [{"start_line": 1, "old_start": 1}] * len(places)
        lines: list[Line] = []
        for (marks, old, new), first in zip(places, firsts, strict=True):
            if lines:
                lines.append(Line("…", None, None, ""))
            shown_as = file.path if in_colours else ""
            lines += _numbered(marks, first, _coloured(old, shown_as), _coloured(new, shown_as))
        path = rows[0]["path"] if rows else file.moved_to or file.path
        yield Change(path=path, op="rename" if file.moved_to else file.op, lines=lines)


def _rows_of(path: str, by_path: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of a file, whichever of the two names is the whole one."""
    named = (rows for name, rows in by_path.items() if f"/{name}".endswith(f"/{path}") or path.endswith(f"/{name}"))
    return next(named, [])


def _firsts(places: Sequence[Sequence[Mark]], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row of the first change of each place. What the patch calls one place the program may have recorded as
    several: as many as have its lines together."""
    firsts: list[dict[str, Any]] = []
    left = list(rows)
    for place in places:
        added, removed = (sum(mark == wanted for mark, *_ in place) for wanted in "+-")
        firsts.append(left[0] if left else {})
        while left and (added > 0 or removed > 0):
            row = left.pop(0)
            added, removed = added - (row["added"] or 0), removed - (row["removed"] or 0)
        if added or removed:  # they don't go together: no number is better than a wrong one
            return [{}] * len(places)
    return firsts


def _coloured(lines: Sequence[str], path: str) -> Sequence[Markup | str]:
    """Lines in the colours of their file, as far as any of them can be shown; the others plain."""
    return [*coloured_lines("\n".join(lines[:MOST_LINES]), path), *lines[MOST_LINES:]] if lines else []
