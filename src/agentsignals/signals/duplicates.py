"""What people say again and again: "yes", "commit this"."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

MOST_ROWS = 25
LONG_CHARS = 120
"""A longer message is told apart by its beginning and a digest of the whole."""
_CUT = "\u2026"
_UNSPOKEN = frozenset(("plan_handoff", "attachment"))

_SECRET = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|hf|npm|akia|asia|aiza|eyj)[-_]?[\w-]{16,200}"
    r"|\b(?=[\w+-]{0,40}\d)[\w+-]{32,200}={0,2}"
    r"|(?<=://)[^\s/@]{1,100}:[^\s/@]{1,100}(?=@)|\b(?:password|passwd|secret|token|api[_-]?key)\s{0,3}[=:]\s{0,3}\S{1,200}"
)
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_PATH = re.compile(r"(?<![\w/:.])(?:[a-z]:\\|~?/|\\\\)[\w.@~-]{1,100}[/\\][^\s'\"]{1,400}")


@signal(
    "corpus.message_counts",
    type="obj",
    unit="messages",
    origin="this project",
    pitfalls="Raw material of corpus.top_duplicate_messages; long messages by their beginning and a digest.",
)
def message_counts(view: SessionView, why: Evidence) -> dict[str, int] | Absent:
    """How often each human message occurs, case, outer blanks and a final . or ! put aside; plan hand-offs and bare
    attachments excluded."""
    said = [t for t in view.turns if t.kind not in _UNSPOKEN and t.text.strip()]
    if not said:
        return Absent("not_applicable", "no_messages")
    why.support(said)
    return dict(Counter([_normal(t.text) for t in said]))


def _normal(text: str) -> str:
    low = text.strip().casefold()
    low = low.rstrip(".! \n\t") or low
    if len(low) <= LONG_CHARS:
        return low
    digest = hashlib.blake2b(low.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{low[:LONG_CHARS]}{_CUT}{digest}"


@signal(
    "corpus.top_duplicate_messages[]",
    type="list[obj]",
    unit="rows",
    level="corpus",
    origin="agent-traces",
    priority="P2",
    why="One in five messages is a word or two: most of them are these.",
    pitfalls="Secrets, addresses and absolute paths are hidden, as far as they are recognised.",
)
def top_duplicate_messages(message_counts: Sequence[dict[str, int]]) -> Measured | Absent:
    """The 25 most frequent human messages that occur at least twice: text, how often, in how many sessions."""
    if not message_counts:
        return Absent("not_applicable", "no_messages")
    n: Counter[str] = Counter()
    sessions: Counter[str] = Counter()
    for one in message_counts:
        n.update(one)
        sessions.update(one.keys())
    often = sorted((key for key, times in n.items() if times > 1), key=lambda key: (-n[key], key))
    rows: list[dict[str, Any]] = [
        {"text": _shown(key), "n": n[key], "sessions": sessions[key]} for key in often[:MOST_ROWS]
    ]
    return Measured(rows, {"messages": n.total(), "distinct": len(n), "repeated": len(often)})


def _shown(key: str) -> str:
    """A message as it may be shown to others."""
    text = key[: LONG_CHARS + 1] if len(key) > LONG_CHARS else key
    text = _SECRET.sub("[secret]", text)
    return _PATH.sub("[path]", _ADDRESS.sub("[address]", text))
