"""Traces of the lab's retry loop: an episode a file, each attempt in it a session of one trial.

What came back after a failed attempt begins the next one, and a retry is never merged with the first attempt.
"""

from __future__ import annotations

from agentsignals.formats import Card, Claim, Format, Material, read_by
from agentsignals.formats.head import Head

MARK = "agentsignals_lab"


def claims(head: Head) -> Claim | None:
    """A header with the lab's mark, in the first line. Copies of an episode share its trial's name."""
    if b'"agentsignals_lab"' not in head.data[:4_000] or not head.records:
        return None
    first = head.records[0]
    if not isinstance(first.get(MARK), int):
        return None
    trial = first.get("trial_id")
    return Claim(keys=[f"lab:{trial}"] if isinstance(trial, str) and trial else [])


CARD = Card(
    material=(Material("run", "the lab of this program writes it"),),
    limits=("No tools: there are no calls.",),
)
FORMAT = Format(
    name="lab-retry",
    marks=(b'"agentsignals_lab"',),
    version=1,
    claims=claims,
    read=read_by("lab_retry.reader"),
    card=CARD,
)
