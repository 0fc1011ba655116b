"""Tools of the lab's agent on a repository."""

from __future__ import annotations

from agentsignals.formats import Card, Claim, Format, Material, read_by
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


def claims(head: Head) -> Claim | None:
    """A header with the mark, in the first line. Copies of an episode share its trial's name."""
    if b'"agentsignals_lab_repository"' not in head.data[:4_000] or not head.records:
        return None
    first = head.records[0]
    if not isinstance(first.get(MARK), int):
        return None
    trial = first.get("trial_id")
    return Claim(keys=[f"lab:{trial}"] if isinstance(trial, str) and trial else [])


CARD = Card(
    material=(Material("run", "the lab of this program writes it"),),
    limits=("Times are not logged.",),
)
FORMAT = Format(
    name="lab-repository",
    marks=(b'"agentsignals_lab_repository"',),
    version=3,
    claims=claims,
    read=read_by("lab_repository.reader"),
    profile=PROFILE,
    card=CARD,
)
