"""How far the changed files go beyond those that the person names."""

from __future__ import annotations

import re

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.mentions import Mentions

_NOT_WRITTEN_BY_HAND = re.compile(
    r"(?:^|/)(?:node_modules|dist|vendor|__generated__|__snapshots__|tmp|\.venv|__pycache__)/"
    r"|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|npm-shrinkwrap\.json|go\.sum|bun\.lockb|packages\.lock\.json)$"
    r"|\.lock$|\.min\.(?:js|css)$|\.(?:pb\.go|g\.dart|designer\.cs|snap|log|tmp|bak|orig|map)$|_pb2(?:_grpc)?\.py$"
    r"|\.generated\.\w+$|_generated\.\w+$|(?:^|/)(?:scratch|tmp|temp)[^/]*$"
)
"""Lock files, generated files and scratch: nobody would ask for them."""
_FILE = re.compile(r"[\w-][\w.-]*\.[a-z][a-z0-9]{0,7}")
_NAMING = re.compile(r"[_-]|[a-z][A-Z]|\d")
"""A stem with one of these is a name, not a word that happens to be one ("main", "index")."""


@signal(
    "anticipation.scope_drift",
    basis="heuristic",
    type="float",
    unit="ratio",
    origin="Agent Signals",
    priority="P1",
    why="Work that grows past the request looks like thoroughness.",
    pitfalls="Method mention counts as asked for only what a turn names, so it says too much: call it drift above 2"
    " only with 3 or more unrequested files. Half of the sessions name no file.",
)
def scope_drift(view: SessionView, why: Evidence, touched_files: list[str]) -> Measured | Absent:
    """Files changed (generated, lock and scratch files left out) / those of them that a human turn names."""
    touched = [p for p in touched_files if view.in_repo(p) and not _NOT_WRITTEN_BY_HAND.search(p)]
    why.denominator(view.turns)
    if not touched:
        return Measured(0.0, {"num": 0, "den": 0, "method": "mention"})
    words = _path_words(view.mentions)
    named = [p for p in touched if _is_named(p, words)]
    if not named:
        speaks_of_files = any(_FILE.fullmatch(word) for word in words if "." in word)
        return Absent("not_computable", "zero_denominator" if speaks_of_files else "no_reference")
    asked_for = set(named)
    why.support((e for e in view.repo_edits if e.path in asked_for), "named by a turn:")
    why.counter((e for e in view.repo_edits if e.path not in asked_for), "named by none:")
    return ratio(len(touched), len(named), unrequested=len(touched) - len(named), method="mention")


def _path_words(mentions: Mentions) -> frozenset[str]:
    """The words of the turns as names of files have them, each also without its folders."""
    plain = {w.strip("./") for w in mentions.marked}
    return mentions.words.union(plain, {w.rpartition("/")[2] for w in plain})


def _is_named(path: str, words: frozenset[str]) -> bool:
    """Whether its path, its name, or its name without the extension is among the words."""
    name = path.rpartition("/")[2]
    stem = name.partition(".")[0]
    return path in words or name in words or (len(stem) > 3 and _NAMING.search(stem) is not None and stem in words)
