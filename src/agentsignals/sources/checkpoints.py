"""Where Entire keeps what it records (design/formats.md#entire): which refs hold checkpoints, and what their paths
hold.

sharded  branch entire/checkpoints/v1 (before: entire/sessions), refs/entire/checkpoints/v1, v2/main, v2/full/*:
         <2>/<rest of the id>/metadata.json, <2>/<rest>/<n>/{metadata.json, full.jsonl | raw_transcript, …}
rooted   refs/entire/checkpoints/<2>/<id>: the checkpoint is the root of the tree
shadow   branches entire/<commit>-<hash>: the working tree, and .entire/metadata/<session>/full.jsonl
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Kind = Literal["transcript", "compact", "metadata", "task"]

_V1 = "entire/(?:checkpoints|sessions)(?:/v1)?"
_V2 = "entire/checkpoints/v2/(?:main|full/[^/]+)"
_LAYOUTS = (
    ("sharded", re.compile(rf"refs/(?:heads/|remotes/(?:.+/)?)?(?:{_V1}|{_V2})")),
    ("rooted", re.compile(r"refs/(?:remotes/(?:.+/)?)?entire/checkpoints/[0-9a-zA-Z]{2}/([0-9a-f]{12}|[0-9A-Z]{26})")),
    ("shadow", re.compile(r"refs/(?:heads/|remotes/(?:.+/)?)entire/[0-9a-f]{7,40}(?:-[0-9a-zA-Z]+)?")),
)

_ID = "(?P<id>[0-9a-f]{2}/[0-9a-f]{10}|[0-9A-Z]{2}/[0-9A-Z]{24})"
_TASK = r"(?P<task>tasks/[^/]+/)?"
_FILE = (
    r"(?P<name>metadata\.json|(?:checkpoint|task)\.json|agent-[^/]+\.jsonl"
    r"|(?P<base>full\.jsonl|full\.log|raw_transcript|transcript\.jsonl)(?:\.(?P<chunk>\d{3,}))?)"
)
_PATHS = {
    "sharded": re.compile(rf"{_ID}/(?:(?P<n>\d+)/)?{_TASK}{_FILE}", re.DOTALL),
    "rooted": re.compile(rf"(?:(?P<n>\d+)/)?{_TASK}{_FILE}", re.DOTALL),
    "shadow": re.compile(rf"\.entire/metadata/(?P<session>[^/]+)/{_TASK}{_FILE}", re.DOTALL),
}
_FOLDERS = {
    "sharded": re.compile(rf"(?:[0-9a-zA-Z]{{2}}|{_ID}(?:/\d+)?(?:/tasks(?:/[^/]+)?)?)/", re.DOTALL),
    "rooted": re.compile(r"(?:\d+/)?(?:tasks/(?:[^/]+/)?)?", re.DOTALL),
    "shadow": re.compile(r"\.entire/(?:metadata/(?:[^/]+/(?:tasks/(?:[^/]+/)?)?)?)?", re.DOTALL),
}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}-(?=.)")


class Place(Struct, frozen=True, kw_only=True):
    """What a path inside a ref is."""

    kind: Kind
    checkpoint: str
    """Id of the checkpoint; nothing on a shadow branch."""
    n: str
    """Which of its sessions; nothing for what belongs to the checkpoint as a whole."""
    whole: str
    """The path of the file that this is, or is a piece of."""
    chunk: int = 0
    session: str | None = None
    """The session id, where the path itself says it."""


def layout(ref: str) -> tuple[str, str] | None:
    """How a ref keeps checkpoints, and the id of the one it holds; None when it holds none."""
    for name, shape in _LAYOUTS:
        match = shape.fullmatch(ref)
        if match:
            return name, match[1] if name == "rooted" else ""
    return None


def any_layout(folder: str) -> bool:
    """Whether a folder is worth entering in a ref of which nothing is known."""
    return any(shape.fullmatch(folder) for shape in _FOLDERS.values())


def folders(name: str) -> Callable[[str], bool]:
    """Whether a folder (with its closing slash) of such a layout can hold a file that counts."""
    shape = _FOLDERS[name]
    return lambda folder: shape.fullmatch(folder) is not None


def place(name: str, path: str, held: str = "") -> Place | None:
    """What the file at `path` is; `held` is the checkpoint that the ref itself names."""
    match = _PATHS[name].fullmatch(path)
    if match is None:
        return None
    part = match.groupdict()
    kind = _kind(part["name"], part["base"], part["task"])
    if kind is None:
        return None
    whole = path[: match.start("chunk") - 1] if part["chunk"] else path
    checkpoint = (part.get("id") or "").replace("/", "") or held
    session = without_date(part["session"]) if part.get("session") else None
    return Place(
        kind=kind,
        checkpoint=checkpoint,
        n=part.get("n") or "",
        whole=whole,
        chunk=int(part["chunk"] or 0),
        session=session,
    )


def without_date(session_id: str) -> str:
    """The agent's own session id: before February 2026 Entire put the day in front of it."""
    return _DATE.sub("", session_id, count=1)


def _kind(name: str, base: str | None, task: str | None) -> Kind | None:
    if task:
        if name in ("checkpoint.json", "task.json"):
            return "task"
        return "transcript" if name.startswith("agent-") else None
    if base == "transcript.jsonl":
        return "compact"
    if base:
        return "transcript"
    return "metadata" if name == "metadata.json" else None
