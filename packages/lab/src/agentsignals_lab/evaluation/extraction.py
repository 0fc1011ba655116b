"""The code in an answer: a whole module with its imports, out of fences, chat, or a text that breaks off.

Version `1`. Nothing that the answer's code needs is cut away: imports, constants and other functions stay (b 10). What
it runs behind the function (printed examples, asserts) is left out: a slip there is none of the function's.
"""

from __future__ import annotations

import ast
import re
import warnings

from msgspec import Struct

_FENCE = re.compile(r"^[ \t]*(`{3,20}|~{3,20})[^\n`]*$", re.MULTILINE)
_LONGEST = 200_000
"""Characters of an answer that are looked at; the longest published one has under 2,000."""
_MOST_TRIES = 300
"""Parses of one answer, so that a hostile one costs seconds at most."""
_MOST_STARTS = 20
_ASSIGNED = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_KEPT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, *_ASSIGNED)
_BEGINS_CODE = re.compile(r"(?:from|import|def|class|async|if|try)\b|[@#]|[A-Za-z_]\w* *(?::[^=]+)?=")


class Extracted(Struct, frozen=True):
    """`source` is empty when the function was not found; `valid` tells whether it parses."""

    source: str
    valid: bool


def extract(answer: str, function: str) -> Extracted:
    """The module that defines `function`: the last fenced block that does, else the whole answer, else the largest run
    of lines that parses and does. What defines it and never parses is given as found, not valid.
    """
    extracted = _extracted(answer, function)
    return Extracted(_without_examples(extracted.source, function), True) if extracted.valid else extracted


def _without_examples(source: str, function: str) -> str:
    """Without the statements behind the function that only do something: definitions, imports and assignments stay,
    unless what is assigned is a call of the function."""
    tree = parsed(source)
    body = tree.body if tree else []
    defined = max((n for n, node in enumerate(body) if getattr(node, "name", "") == function), default=len(body))
    lines = source.split("\n")
    for node in body[defined + 1 :]:
        if not isinstance(node, _KEPT) or (isinstance(node, _ASSIGNED) and _calls(node, function)):
            for n in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[n] = ""
    shorter = "\n".join(lines).rstrip("\n") + "\n"
    return shorter if _defines(shorter, function) else source


def _calls(node: ast.stmt, function: str) -> bool:
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == function for n in ast.walk(node)
    )


def _extracted(answer: str, function: str) -> Extracted:
    text = readable(answer[:_LONGEST])
    defined = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{re.escape(function)}[ \t]*\(", re.MULTILINE)
    if not defined.search(text):
        return Extracted("", False)
    blocks = _blocks(text)
    for block in reversed(blocks):
        if defined.search(block) and _defines(block, function):
            return Extracted(_with_imports(block, blocks, function), True)
    if _defines(text, function):
        return Extracted(text.strip("\n") + "\n", True)
    for candidate in [*(b for b in reversed(blocks) if defined.search(b)), text]:
        window = _window(candidate, function, defined)
        if window:
            return Extracted(window, True)
    at = defined.search(text)
    return Extracted(text[at.start() if at else 0 :].strip("\n") + "\n", False)


def readable(answer: str) -> str:
    """The answer with line breaks as one sign, and with blanks where a tokenizer's signs for them were left standing
    (some published answers are stored so: `Ġ` for a blank, `Ċ` for a line break, and neither itself)."""
    if " " not in answer and ("Ġ" in answer or "Ċ" in answer):
        answer = answer.replace("Ċ", "\n").replace("Ġ", " ")
    return answer.replace("\r\n", "\n").replace("\r", "\n")


def _blocks(text: str) -> list[str]:
    """Return the texts in fences; the last may lack its end, where the answer broke off."""
    blocks, opened = [], None
    for mark in _FENCE.finditer(text):
        if opened is None:
            opened = mark
        elif mark[1][0] == opened[1][0] and len(mark[1]) >= len(opened[1]):
            blocks.append(text[opened.end() + 1 : mark.start()])
            opened = None
    if opened is not None:
        blocks.append(text[opened.end() + 1 :])
    return blocks


def _with_imports(block: str, blocks: list[str], function: str) -> str:
    """The block, after earlier ones that hold nothing but imports: some answers put those in a block of their own."""
    before = [b for b in blocks[: blocks.index(block)] if _only_imports(b)]
    joined = "\n".join([*before, block]).strip("\n") + "\n"
    return joined if _defines(joined, function) else block


def _only_imports(block: str) -> bool:
    tree = parsed(block)
    return tree is not None and bool(tree.body) and all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in tree.body)


def _window(text: str, function: str, defined: re.Pattern[str]) -> str:
    """The lines from the earliest possible start to the latest possible end that parse and define the function."""
    lines = text.split("\n")
    definition = text[: match.start()].count("\n") if (match := defined.search(text)) else 0
    starts = [*[n for n in range(definition) if _BEGINS_CODE.match(lines[n])][-_MOST_STARTS:], definition]
    tries = 0
    for start in starts:
        for end in range(len(lines), definition, -1):
            tries += 1
            if tries > _MOST_TRIES:
                return ""
            candidate = "\n".join(lines[start:end])
            if _defines(candidate, function):
                return candidate.strip("\n") + "\n"
    return ""


def _defines(source: str, function: str) -> bool:
    tree = parsed(source)
    return tree is not None and any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function for node in tree.body
    )


def parsed(source: str) -> ast.Module | None:
    """The tree; None when it is no Python, or nested deeper than the parser goes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in an answer are no news to us
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
