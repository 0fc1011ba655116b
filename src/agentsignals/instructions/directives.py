"""What an instruction file tells an agent, sentence by sentence: without code, quotations, examples and tables.

Commands and paths stand in backticks; a sentence keeps them apart from its words, so that no word of a command is taken
for one of the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_SKIPPED = re.compile(r"^\s*(?:>|\||@\S+\s*$|(?:-{3,}|\*{3,}|={3,})\s*$)")
"""Quotations, tables, imports, rulers."""
_CODE = re.compile(r"(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
_STRUCK = re.compile(r"~~.+?~~")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_QUOTED = re.compile(r"[“\"][^”\"\n]{12,}[”\"]")
"""Somebody's words, not a single term."""
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z⟦])|(?<=[.!?:])\s*(?:—|–)\s+(?=[A-Z])")
_EXAMPLE = re.compile(
    r"\b(?:examples?|sample|samples|anti-?patterns?|wrong|bad|incorrect|template|changelog|history)\b", re.IGNORECASE
)
"""Headings and openings under which nothing is asked."""
_FILES = ("globs", "applyTo", "paths", "fileMatchPattern")
_ON_REQUEST = ("manual", "model_decision", "auto")
_CHARS = 4_000
_MARK = re.compile(r"⟦(\d+)⟧")


class Directive(Struct, frozen=True, kw_only=True):
    """A sentence of an instruction file, at the line where its paragraph or item begins (1-based)."""

    line: int
    text: str
    """In words; `⟦n⟧` stands for the n-th of `code`."""
    code: tuple[str, ...]
    under: str
    """The heading and the opening that it stands under, in the same form, with marks of `under_code`."""
    under_code: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    """The commands of the code block that the sentence ends in a colon for."""

    @property
    def shown(self) -> str:
        """The sentence as it stands in the file."""
        return _MARK.sub(lambda m: f"`{self.code[int(m[1])]}`", self.text)


class Document(Struct, frozen=True, kw_only=True):
    """An instruction file's sentences, and what its head says of where it holds."""

    directives: list[Directive]
    globs: tuple[str, ...] = ()
    """Files that it is about, where its head names them (`globs`, `applyTo`, `paths`, `fileMatchPattern`)."""
    is_optional: bool = False
    """Its head leaves it to the agent or the person whether it is read: `alwaysApply: false` and no files,
    `trigger: manual` (https://docs.windsurf.com/windsurf/cascade/memories), `inclusion: manual`
    (https://kiro.dev/docs/steering)."""
    imports: tuple[str, ...] = ()
    """Files that it takes in (`@AGENTS.md` on a line)."""


class _Block(Struct):
    line: int
    parts: list[str] = field(default_factory=list)
    indent: int | None = None
    """Of an item; None of a paragraph."""
    commands: list[str] = field(default_factory=list)
    is_closed: bool = False
    """A blank line came after it."""

    @property
    def text(self) -> str:
        return " ".join(self.parts)[:_CHARS]

    @property
    def opens(self) -> bool:
        """Whether it ends in the colon of something that follows."""
        return self.text.rstrip("*_ ").endswith(":")


def read(text: str) -> Document:
    """The sentences of an instruction file."""
    lines = text.replace("\r\n", "\n").split("\n")
    start, head = _head(lines)
    files = next((head[name] for name in _FILES if head.get(name)), "")
    return Document(
        directives=list(_directives(lines, start)),
        globs=tuple(_listed(files)),
        is_optional=(head.get("alwaysApply", "").lower() == "false" and not files)
        or (head.get("trigger") or head.get("inclusion") or "").strip("\"'") in _ON_REQUEST,
        imports=tuple(line.strip()[1:] for line in lines if re.fullmatch(r"\s*@[\w./-]+\.mdc?\s*", line)),
    )


def _head(lines: list[str]) -> tuple[int, dict[str, str]]:
    """Where the text begins, and the fields of the head between two rulers before it."""
    if not lines or lines[0].strip() != "---":
        return 0, {}
    end = next((n for n, line in enumerate(lines[1:60], 1) if line.strip() == "---"), 0)
    fields: dict[str, str] = {}
    name = ""
    for line in lines[1:end]:
        key, colon, value = line.partition(":")
        if colon and re.fullmatch(r"[A-Za-z]\w*", key):
            name = key
            fields[name] = value.strip()
        elif name and line.strip().startswith("- "):
            fields[name] = f"{fields[name]},{line.strip()[2:]}"
    return end + 1 if end else 0, fields


def _listed(value: str) -> Iterator[str]:
    for part in value.strip("[] ").split(","):
        plain = part.strip().strip("\"'")
        if plain and plain not in ("*", "**", "**/*"):
            yield plain


def _directives(lines: list[str], start: int) -> Iterator[Directive]:
    heading, opening = "", _Block(0)
    for block in _blocks(lines, start):
        if block.indent == -1:
            heading, opening = block.text, _Block(0)
            continue
        if _EXAMPLE.search(heading):
            continue
        opens = block.indent is None or block.indent <= (opening.indent if opening.indent is not None else -1)
        if opens:
            opening = _Block(0)
        if not _EXAMPLE.search(opening.text):
            yield from _sentences(block, heading if not opening.text else f"{heading}. {opening.text}")
        if block.opens and not block.commands:
            opening = block


def _blocks(lines: list[str], start: int) -> Iterator[_Block]:
    """Headings (indent -1), paragraphs and items. The commands of a code block go to the text that ends in a colon for
    it, where nothing but blank lines lies between; any other code block is left out."""
    now: _Block | None = None
    at = start
    while at < len(lines):
        line = lines[at][:_CHARS]
        at += 1
        fence = _FENCE.match(line)
        comment = line.lstrip().startswith("<!--")
        if fence or comment:
            end = next((n for n in range(at - comment, len(lines)) if _ends(lines[n], fence)), len(lines))
            if fence and now is not None and now.opens:
                now.commands = list(_commands(lines[at:end]))
            at = end + 1
            if now is not None and fence:
                yield now
                now = None
            continue
        if not line.strip():
            if now is not None and not now.opens:
                yield now
                now = None
            elif now is not None:
                now.is_closed = True
            continue
        heading, item = _HEADING.match(line), _ITEM.match(line)
        is_new = bool(heading or item or _SKIPPED.match(line))
        if now is not None and (is_new or now.is_closed):
            yield now
            now = None
        if heading:
            yield _Block(at, [heading[1]], -1)
        elif item:
            now = _Block(at, [line[item.end() :].strip()], len(item[1].expandtabs(4)))
        elif not is_new and (now is not None or not line.startswith(("    ", "\t"))):  # the others: code by indentation
            now = now or _Block(at)
            now.parts.append(line.strip())
    if now is not None:
        yield now


def _ends(line: str, fence: re.Match[str] | None) -> bool:
    """Whether a code block, or without `fence` a comment, ends on this line."""
    if fence is None:
        return "-->" in line
    return line.strip().startswith(fence[1]) and not line.strip().strip("`~")


def _commands(lines: list[str]) -> Iterator[str]:
    for line in lines:
        command = line.split(" #")[0].strip().removeprefix("$ ")
        if command and not command.startswith("#"):
            yield command


def _sentences(block: _Block, under: str) -> Iterator[Directive]:
    code: list[str] = []
    plain = _plain(block.text, code)
    above_code: list[str] = []
    above = _plain(under, above_code)
    parts = [part.strip() for part in _SENTENCE.split(plain) if part.strip()]
    for n, part in enumerate(parts):
        used: list[str] = []

        def renumbered(match: re.Match[str], used: list[str] = used) -> str:
            used.append(code[int(match[1])])
            return f"⟦{len(used) - 1}⟧"

        yield Directive(
            line=block.line,
            text=_MARK.sub(renumbered, part),
            code=tuple(used),
            under=above,
            under_code=tuple(above_code),
            block=tuple(block.commands) if n == len(parts) - 1 else (),
        )


def _plain(text: str, code: list[str]) -> str:
    """Without emphasis, links, what was struck out or quoted; code in backticks as marks."""

    def kept(match: re.Match[str]) -> str:
        code.append(match[2].strip())
        return f"⟦{len(code) - 1}⟧"

    marked = _CODE.sub(kept, _STRUCK.sub(" ", text.replace("⟦", "[").replace("⟧", "]")))
    return " ".join(_EMPHASIS.sub("", _LINK.sub(r"\1", _QUOTED.sub(" ", marked))).split())
