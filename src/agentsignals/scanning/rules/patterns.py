"""Regular expressions that some texts keep busy for ever, told from their own text."""

from __future__ import annotations

import re

_LONGEST = 2_000
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\]", re.DOTALL)
_TIMES = re.compile(r"([*+]|\{\d*,\d*\}|\?|\{\d+\})[?+]?")


def piles_up(pattern: str) -> bool:
    """Whether a group that is repeated without bound can itself match a text in several ways: all but one of its parts
    may be empty, and that one is repeated without bound, as in `(a+)+` or `(\\w+\\s?)*`.
    """
    if len(pattern) > _LONGEST:
        return False
    groups: list[list[tuple[bool, bool]]] = [[]]  # parts of each open group: may be empty, repeated without bound
    splits: list[bool] = [False]
    at = 0
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None:  # ends with a backslash, or in a class
            return False
        at = atom.end()
        word = atom[0]
        if word == "(":
            groups.append([])
            splits.append(False)
            at = _after_head(pattern, at)
            continue
        if word == "|":
            splits[-1] = True
            continue
        inner: list[tuple[bool, bool]] = []
        divided = False
        if word == ")":
            if len(groups) == 1:
                return False
            inner, divided = groups.pop(), splits.pop()
        times = _TIMES.match(pattern, at)
        quantifier = times[1] if times else ""
        at = times.end() if times else at
        endless = quantifier in ("*", "+") or quantifier.endswith(",}")
        if word == ")" and endless and not divided and _is_ambiguous(inner):
            return True
        if word not in ("^", "$"):
            groups[-1].append((quantifier in ("*", "?") or quantifier.startswith(("{0,", "{,")), endless))
    return False


def _is_ambiguous(parts: list[tuple[bool, bool]]) -> bool:
    needed = [endless for empty, endless in parts if not empty]
    return needed == [True] or (not needed and any(endless for _, endless in parts))


def _after_head(pattern: str, at: int) -> int:
    head = re.match(r"\?(?:[:=!>]|<[=!]|P?<\w+>|[a-zA-Z]*:)", pattern[at : at + 60])
    return at + head.end() if head else at
