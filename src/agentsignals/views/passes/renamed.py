"""Lines that were copied under other names: the same words and signs but for identifiers, changed alike throughout."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

FEWEST_RENAMED = 3
"""So many lines that fit one renaming are no chance; a choice of this project's."""
_TOKENS = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\w\s]")
_FEWEST_TOKENS = 6
_MOST_LINES = 2_000
_MOST_ALIKE = 8
"""So many lines of one skeleton are compared with each: more say nothing."""
_KEYWORDS = frozenset(keyword.kwlist) | frozenset(
    [
        "function",
        "const",
        "let",
        "var",
        "this",
        "new",
        "null",
        "true",
        "false",
        "undefined",
        "typeof",
        "func",
        "range",
        "nil",
        "struct",
        "type",
        "package",
        "string",
        "int",
        "fn",
        "mut",
        "pub",
        "impl",
        "match",
        "Some",
        "None",
        "Ok",
        "Err",
        "self",
        "Self",
        "use",
        "void",
        "char",
        "static",
        "public",
        "private",
        "final",
        "len",
        "str",
    ]
)


@lru_cache(maxsize=65_536)
def skeleton(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The line's tokens with a mark for each name, and the names in turn."""
    tokens = _TOKENS.findall(line)
    names = tuple(t for t in tokens if _is_name(t))
    return tuple("\x00" if _is_name(t) else t for t in tokens), names


def _is_name(token: str) -> bool:
    return (token[0].isalpha() or token[0] == "_") and token not in _KEYWORDS


def renamed(standing: Sequence[str], source: Iterable[str], tree: Iterable[str]) -> set[str]:
    """Of the lines that stand, those that a line of the source becomes by one renaming of all of it.

    Lines whose skeleton `tree` has too (the tree's own) prove nothing, nor short ones. A renaming takes each name to
    one other, and no two names to the same; the more lines want it the sooner it is taken.
    """
    shapes: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for line in list(dict.fromkeys(source))[:_MOST_LINES]:
        shape, names = skeleton(line)
        if len(shape) >= _FEWEST_TOKENS and names and len(alike := shapes.setdefault(shape, [])) < _MOST_ALIKE:
            alike.append(names)
    mine = {line: skeleton(line) for line in list(dict.fromkeys(standing))[:_MOST_LINES]}
    if sum(shape in shapes for shape, _ in mine.values()) < FEWEST_RENAMED:
        return set()
    for line in tree:
        shapes.pop(skeleton(line)[0], None)
    pairs = [(line, theirs, names) for line, (shape, names) in mine.items() for theirs in shapes.get(shape, ())]
    votes = Counter(pair for _, theirs, names in pairs for pair in set(zip(theirs, names, strict=True)))
    to: dict[str, str] = {}
    for (old, new), _ in votes.most_common():
        if old not in to and new not in to.values():
            to[old] = new
    fitting = {line for line, theirs, names in pairs if all(to.get(o) == n for o, n in zip(theirs, names, strict=True))}
    changed = {line for line, theirs, names in pairs if line in fitting and theirs != names}
    return fitting if len(changed) >= FEWEST_RENAMED else set()
