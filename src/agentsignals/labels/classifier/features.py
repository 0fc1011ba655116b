"""What a classifier counts in a message: words, runs of letters, the end of the answer before it, marks, and rules.

Names are `kind:what`: `w:` one word or two in a row, `b:` the first ones, `e:` the last, `c:` three to five letters,
`p:` words of the end of the answer before, `h:` a property of the message's form, `r:` what rules say of it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from math import log1p

from agentsignals.labels.labellers.rules import BY_TASK
from agentsignals.labels.task import Verdict
from agentsignals.model import Turn

VERSION = 1
"""Raise it when a feature would change: a model knows which it was made with."""
MOST_WORDS = 200
"""What stands further on in a message is mostly pasted."""
ANSWER_CHARS = 400
"""Of the end of the answer before."""
TEXT_KINDS = ("w", "b", "e", "c", "p")
"""Kinds whose counts share one length of 1 in a message; the others stand as they are."""
_BEGINNING_WORDS = 3
_LETTERS = (3, 4, 5)
_FEW_WORDS, _MANY_WORDS = 4, 60
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_URL = re.compile(r"https?://\S{1,500}")
_PATH = re.compile(
    r"@?[\w.\-~]{0,100}/[\w./\-]{1,300}|\b[\w\-]{1,100}\.(?:go|py|tsx?|jsx?|md|json|ya?ml|sh|rs|toml|txt)\b"
)
_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_][\w']{0,40}|<(?:code|url|path)>|0|[?!.,:;]{1,3}|[^\s\w]")
_ITEM = re.compile(r"(?m)^[ \t]{0,20}(?:[-*]|\d{1,3}[.)])[ \t]")
_CAPITALS = re.compile(r"\b[A-Z]{3,40}\b")
_ERROR = re.compile(r"(?i)error|fail|exception|traceback|panic")
_FIRST_EMOJI = 0x1F000


def words(text: str) -> list[str]:
    """The words and marks of a text in lower case; code, links, paths and numbers each as one sign for all."""
    plain = _PATH.sub(" <path> ", _URL.sub(" <url> ", _FENCE.sub(" <code> ", text)))
    return _WORD.findall(_DIGITS.sub("0", plain).lower().replace("’", "'"))


def features(turn: Turn, answer_end: str | None) -> dict[str, float]:
    """The features of a message. `answer_end`: the end of what the agent wrote before it; None where that is not
    to be looked at (a task that judges the message alone)."""
    here = words(turn.text)[:MOST_WORDS]
    counted = dict.fromkeys(_of_words(here), 1.0)
    if answer_end is not None:
        counted |= _of_answer(" ".join(answer_end.split())[-ANSWER_CHARS:], here)
    return counted | _of_form(turn.text, here) | _of_rules(turn)


def _of_words(here: list[str]) -> list[str]:
    pairs = [f"{a} {b}" for a, b in pairwise(here)]
    line = f" {' '.join(here)} "
    letters = [f"c:{line[n : n + size]}" for size in _LETTERS for n in range(len(line) - size + 1)]
    beginnings = [f"b:{' '.join(here[:n])}" for n in range(1, min(_BEGINNING_WORDS, len(here)) + 1)]
    return [*(f"w:{word}" for word in (*here, *pairs)), *beginnings, *(f"e:{word}" for word in here[-1:]), *letters]


def _of_answer(end: str, here: list[str]) -> dict[str, float]:
    before = words(end)
    if not before:
        return {"h:no answer before": 1.0}
    counted = dict.fromkeys((f"p:{word}" for word in before), 1.0)
    if "?" in re.split(r"(?<=[.!?])\s", end)[-1]:
        counted["h:answers a question"] = 1.0
        counted |= {"h:short answer to a question": 1.0} if len(here) <= _FEW_WORDS else {}
    long = {word for word in here if len(word) > 3}
    if shared := long & set(before):
        counted["h:words of the answer"] = len(shared) / len(long)
    return counted


def _of_form(text: str, here: list[str]) -> dict[str, float]:
    form = {
        "length": min(log1p(len(text)) / 4, 2.0),
        "short": float(len(here) < _FEW_WORDS),
        "long": float(len(here) > _MANY_WORDS),
        "lines": min(text.count("\n"), 10) / 5,
        "question marks": min(text.count("?"), 3) / 2,
        "ends in a question mark": float(text.rstrip().endswith("?")),
        "exclamation mark": float("!" in text),
        "dots": float("..." in text or "…" in text),
        "code": float("```" in text),
        "emoji": float(any(ord(char) > _FIRST_EMOJI for char in text)),
        "items": float(len(_ITEM.findall(text)) > 1),
        "capitals": float(bool(_CAPITALS.search(text))),
        "error": float(bool(_ERROR.search(text))),
    }
    return {f"h:{name}": value for name, value in form.items() if value}


def _of_rules(turn: Turn) -> dict[str, float]:
    verdicts = {task: judge(turn) for task, judge in BY_TASK.items()}
    return {f"r:{task}:{v.value}": 1.0 for task, v in verdicts.items() if isinstance(v, Verdict)}
