"""What a session is made of: kinds of files, and kinds of calls from its beginning to its end (SWE-chat)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import field

from agentsignals.catalog import Measured, Row, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import FILE_CLASSES, SessionView, target_file

BINS = 10
FEWEST_CALLS = 10
"""A shorter session has less than a call for each bin (design/signals.md#tools-by-position)."""


@signal(
    "chat.file_types_touched",
    type="obj",
    unit="calls",
    origin="SWE-chat",
    priority="P2",
    pitfalls="Counts calls, not files: a file read ten times counts ten. Searches of whole folders have no file.",
    why="Which languages the work was about, code or prose.",
)
def file_types_touched(view: SessionView, why: Evidence) -> dict[str, int]:
    """Main-thread reads, edits and searches of one file, by the file's extension in lower case; "(none)" without."""
    about_files = [c for c in view.calls if c.path is not None and c.class_ in FILE_CLASSES]
    why.support(c for c in about_files if target_file(c) is not None)
    # A session returns to few files: each is looked at once, by one of its calls.
    samples = {(c.path, c.class_ == "search"): c for c in about_files}
    by_extension: dict[str, int] = {}
    for about, n in Counter([(c.path, c.class_ == "search") for c in about_files]).items():
        path = target_file(samples[about])
        if path is not None:
            extension = _extension(path)
            by_extension[extension] = by_extension.get(extension, 0) + n
    return dict(sorted(by_extension.items(), key=lambda pair: (-pair[1], pair[0])))


def _extension(path: str) -> str:
    """The extension without its dot; a dot that the name begins with makes no extension."""
    stem, dot, extension = path[path.rfind("/") + 1 :].rpartition(".")
    return extension.lower() if dot and stem.strip(".") and extension else "(none)"


_SESSIONS = ""
"""Names no class of call: of pooled sessions, how many they are."""


def _pooled(sessions: Sequence[dict[str, list[int]]]) -> list[dict[str, list[int]]]:
    pooled: dict[str, list[int]] = {_SESSIONS: [0]}
    for session in sessions:
        pooled[_SESSIONS][0] += session.get(_SESSIONS, [1])[0]
        for class_, bins in session.items():
            if class_ != _SESSIONS:
                before = pooled.get(class_)
                pooled[class_] = bins if before is None else [a + b for a, b in zip(before, bins, strict=True)]
    return [pooled]


@signal(
    "chat.tool_calls_by_position",
    pool=_pooled,
    type="obj",
    unit="tool_calls",
    origin="agentsignals",
    source="derived",
    priority="P2",
    pitfalls="Position by call, not by time: a session that waits in the middle looks even.",
    why="What chat.tool_composition_by_position adds up.",
)
def tool_calls_by_position(view: SessionView, why: Evidence) -> dict[str, list[int]] | Absent:
    """For each class of call, how many main-thread calls fall into each tenth of the session, first to last."""
    n = len(view.calls)
    if n < FEWEST_CALLS:
        return Absent("not_applicable", f"under_{FEWEST_CALLS}_calls")
    why.support(view.calls)
    by_class: dict[str, list[int]] = {}
    for i, class_ in enumerate(view.classes):
        bins = by_class.get(class_)
        if bins is None:
            bins = by_class[class_] = [0] * BINS
        bins[BINS * i // n] += 1
    return by_class


class Share(Row):
    """The share of a class among the calls of one tenth of all sessions; `n` is those calls."""

    position_bin: int
    class_: str = field(name="class")
    share: float
    n: int


@signal(
    "chat.tool_composition_by_position",
    type="list[obj]",
    unit="rows",
    level="corpus",
    origin="SWE-chat",
    priority="P2",
    pitfalls="Calls are pooled, so long sessions weigh more. Sessions of fewer than ten calls are left out.",
    why="Sessions begin by looking and end by checking: whose do not?",
)
def tool_composition_by_position(tool_calls_by_position: Sequence[dict[str, list[int]]]) -> Measured | Absent:
    """Share of each class of call in each tenth of a session, over the calls of all sessions."""
    if not tool_calls_by_position:
        return Absent("not_applicable", "no_sessions")
    (pooled,) = _pooled(tool_calls_by_position)
    (n_sessions,) = pooled.pop(_SESSIONS)
    totals = [sum([bins[at] for bins in pooled.values()]) for at in range(BINS)]
    rows = [
        Share(at, class_, bins[at] / totals[at], totals[at])
        for at in range(BINS)
        for class_, bins in sorted(pooled.items())
        if bins[at]
    ]
    return Measured(rows, {"n_sessions": n_sessions, "n_calls": sum(totals)})
