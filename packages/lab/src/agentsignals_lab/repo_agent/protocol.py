"""The words an agent acts by: one fenced block an answer, which is read here and never reaches a shell."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Kind = Literal["list", "read", "search", "replace", "write", "patch", "test", "submit"]

KINDS: tuple[Kind, ...] = get_args(Kind)
VERSION = "1"
"""Version of the protocol and its words; sessions of two are not pooled."""

WORDS = """Act by one block in each answer, fenced like this:

```action
read shop/basket.py
```

These are the actions; each is the first line of a block:
list                 names all files
read FILE [A-B]      shows a file, or its lines A to B
search TEXT          shows the lines that hold TEXT
replace FILE         changes one place: below it a line <<<<, the old lines, a line ====, the new lines, a line >>>>
write FILE           makes FILE hold the lines below
patch                applies the unified diff below
test                 runs the tests
submit               hands in your work; nothing can be changed after it
FILE is a path as `list` names it. Old lines must stand in the file exactly once. Use a longer fence around lines that \
hold one."""

_LABEL = "action"
_LONGEST_ANSWER = 200_000
_DIGITS = 8
_OLD, _BETWEEN, _NEW = "<<<<", "====", ">>>>"


class Action(Struct, frozen=True, kw_only=True):
    """Action that an agent requests. Fields that its kind has no use for are empty."""

    kind: Kind
    path: str = ""
    text: str = ""
    """Text to search for, the lines to write, the diff to apply, or the lines that a replacement puts in."""
    old: str = ""
    """The lines that a replacement takes out."""
    lines: tuple[int, int] | None = None
    """First and last line to read, 1-based; None: all."""


class Unfit(Struct, frozen=True):
    """An answer, or a block, that is no action, and why: told to the agent."""

    why: str


class Answer(Struct, frozen=True):
    """An answer as it was understood."""

    does: Action | Unfit
    """The first block. Those after it were written without seeing what came of it, and are not done."""
    more: int
    """Number of blocks that follow."""


def read_answer(answer: str) -> Answer:
    """The action of an answer. A block that does not end is none: half of an edit is not what was meant."""
    if len(answer) > _LONGEST_ANSWER:
        return Answer(Unfit(f"the answer has over {_LONGEST_ANSWER:,} characters"), 0)
    blocks, whole = _blocks(answer)
    if not blocks:
        return Answer(Unfit("there is no block fenced with ```action"), 0)
    if len(blocks) == 1 and not whole:
        return Answer(Unfit("the block does not end"), 0)
    return Answer(_action(blocks[0]), len(blocks) - 1)


def _blocks(answer: str) -> tuple[list[list[str]], bool]:
    """The lines of each block of actions, and whether the last one ends. Other fenced blocks are passed over."""
    blocks: list[list[str]] = []
    fence, wanted = "", False
    for line in answer.split("\n"):
        stripped = line.strip()
        if fence:
            if len(stripped) >= len(fence) and not stripped.strip(fence[0]):
                fence = ""
            elif wanted:
                blocks[-1].append(line.removesuffix("\r"))
        elif stripped.startswith(("```", "~~~")):
            label = stripped.lstrip(stripped[0])
            fence, wanted = stripped[: len(stripped) - len(label)], label.strip().lower() == _LABEL
            if wanted:
                blocks.append([])
    return blocks, not fence


def _action(block: list[str]) -> Action | Unfit:
    first, below = (block[0] if block else ""), block[1:]
    word, _, rest = first.strip().partition(" ")
    kind, rest = next((k for k in KINDS if k == word.lower()), None), rest.strip()
    if kind is None:
        return Unfit(f"{word[:40]!r} is no action; there are {', '.join(KINDS)}")
    if kind in ("read", "replace", "write", "search") and not rest:
        return Unfit(f"{kind} wants {'a text' if kind == 'search' else 'a file'} on its line")
    if kind == "replace":
        return _replacement(rest, below)
    if kind == "read":
        return _reading(rest)
    path, text = (rest, "") if kind == "write" else ("", rest if kind == "search" else "")
    return Action(kind=kind, path=path, text=_joined(below) if kind in ("write", "patch") else text)


def _reading(rest: str) -> Action:
    path, _, span = rest.rpartition(" ")
    first, dash, last = span.partition("-")
    # Digits of other scripts are digits to `isdigit` and none to a person who names lines.
    if path and dash and all(end.isascii() and end.isdigit() and len(end) < _DIGITS for end in (first, last)):
        return Action(kind="read", path=path.strip(), lines=(int(first), int(last)))
    return Action(kind="read", path=rest)


def _replacement(path: str, below: list[str]) -> Action | Unfit:
    marks = [(n, line.strip()) for n, line in enumerate(below) if line.strip() in (_OLD, _BETWEEN, _NEW)]
    if [mark for _, mark in marks] != [_OLD, _BETWEEN, _NEW]:
        return Unfit(f"replace wants a line {_OLD}, the old lines, a line {_BETWEEN}, the new lines, and a line {_NEW}")
    (start, _), (middle, _), (end, _) = marks
    return Action(
        kind="replace", path=path, old=_joined(below[start + 1 : middle]), text=_joined(below[middle + 1 : end])
    )


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
