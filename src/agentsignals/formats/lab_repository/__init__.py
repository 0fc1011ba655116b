"""Tools of the lab's agent on a repository."""

from __future__ import annotations

from collections.abc import Callable

from agentsignals.formats import Claim, Format
from agentsignals.formats.head import Head
from agentsignals.formats.profile import EDIT, OTHER, READ, SEARCH, Profile, Tool, named

PROFILE = Profile(
    agent="lab-repository",
    tools=named(
        (SEARCH, "list search"),
        (READ, "read"),
        (EDIT, "replace write patch"),
        (Tool(class_="test"), "test"),
        (OTHER, "submit"),
    ),
)


MARK = "agentsignals_lab_repository"


def claims_by(mark: str) -> Callable[[Head], Claim | None]:
    """Return the `claims` of files whose first line has the mark. Copies of an episode share its trial's name."""

    def claims(head: Head) -> Claim | None:
        if f'"{mark}"'.encode() not in head.data[:4_000] or not head.records:
            return None
        trial, version = head.records[0].get("trial_id"), head.records[0].get(mark)
        keys = [f"lab:{trial}"] if isinstance(trial, str) and trial else []
        return Claim(keys=keys) if isinstance(version, int) else None

    return claims


FORMAT = Format(
    name="lab-repository", marks=(b'"agentsignals_lab_repository"',), version=3, claims=claims_by(MARK), profile=PROFILE
)
