"""Blocks in tags that agents put into a person's words. Looked for from left to right: one that is never closed costs
no more than the text is long, where a pattern would read on to the end for each.
"""

from __future__ import annotations

import re

_SPACE = re.compile(r"\s*")


def between(text: str, tag: str) -> str | None:
    """What the first block of that tag holds, without outer blanks; None where there is none that ends."""
    start = text.find(f"<{tag}>")
    inside = start + len(tag) + 2
    end = text.find(f"</{tag}>", inside) if start >= 0 else -1
    return text[inside:end].strip() if end >= 0 else None


def without(text: str, opening: re.Pattern[str]) -> str:
    """The text without the blocks that begin with `opening`, whose group is the tag, and the blanks behind each."""
    parts: list[str] = []
    unclosed: set[str] = set()
    at = 0
    for tag_start in opening.finditer(text):
        tag = tag_start[1]
        if tag_start.start() < at or tag in unclosed:
            continue
        end = text.find(f"</{tag}>", tag_start.end())
        if end < 0:
            unclosed.add(tag)
            continue
        parts.append(text[at : tag_start.start()])
        behind = _SPACE.match(text, end + len(tag) + 3)
        at = behind.end() if behind is not None else end
    return "".join([*parts, text[at:]])
