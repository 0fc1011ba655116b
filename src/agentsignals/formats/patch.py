"""Patches of an eval run: the agent's changes, and those of the task's author (design/formats.md#swe-bench).

The name of a file tells whose patch it is. A diff is read only next to or above an eval run.
"""

import posixpath
from typing import Literal

from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.formats import Claim, Format, Input, Reading
from agentsignals.formats.records import Head, saw
from agentsignals.model import Attempt

Role = Literal["agent", "gold", "tests"]


def role_of(path: str) -> Role:
    """Return whose patch a file holds, by its name."""
    name = posixpath.basename(path).lower()
    if "test" in name:
        return "tests"
    return "gold" if "gold" in name else "agent"


def claims(head: Head) -> Claim | None:
    if not looks_like_diff(head.text):
        return None
    folder = posixpath.dirname(head.path)
    return Claim(keys=[], companion=True, lends=folder if role_of(head.path) != "agent" else None)


def read(inputs: list[Input]) -> Reading:
    reading = Reading()
    for source in inputs:
        role = role_of(source.artifact.path)
        files = patched_files(bytes(source.data).decode("utf-8", "replace"))
        source.artifact.records += 1
        saw(source.artifact, f"{role}_patch")
        summary = f"{role} patch: {', '.join(f.path for f in files) or 'nothing'}"
        part = Attempt(root=source.folder, scope="trial" if role == "agent" else "lent")
        if role == "agent":
            part.patch, part.kinds = files, ["patch"]
        elif role == "gold":
            part.gold_patch, part.kinds = files, ["gold_patch"]
        part.statements = source.states(summary, part.kinds)
        reading.attempts += [part]
    return reading


FORMAT = Format(name="patch", version=2, claims=claims, read=read, of_json=False)
