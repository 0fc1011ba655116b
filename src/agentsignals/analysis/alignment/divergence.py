"""Where two runs part: the first step that differs at all, the first that the other never takes, and the first after
which they do not come together again (design/alignment.md#where-they-part)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct

from agentsignals.analysis.alignment.facing import Facing
from agentsignals.analysis.alignment.steps import Deed, Step

HALF, MOST = 0.5, 0.8
"""A step of whose deeds the other run has less than half, at any time, is one that the other never takes; of a change,
less than four fifths of its lines."""
SOME = 0.25
"""From this share on it is not sure that it does not."""
OPAQUE = 0.25
"""Share of steps of which the trace does not say what they were about, from which nothing is sure."""
ALONE = 3
"""Steps that do something, one after the other, to which the other run has nothing beside: one goes on alone."""
NEXT = 5
"""Steps of each side that are shown from the place on."""
FAILED = frozenset(("error", "rejected", "cancelled"))
Basis = Literal["change", "after", "course"]
"""`change`: a file is changed otherwise. `after`: the changes are the same, then one does what the other never does.
`course`: neither changes anything, and one does what the other never does."""
BECAUSE: dict[Basis, str] = {
    "change": "a file is changed otherwise",
    "after": "the changes are the same, and one goes on to what the other does not do",
    "course": "one does what the other never does",
}


class Place(Struct, frozen=True, kw_only=True):
    """A place in both runs."""

    row: int
    """From 0, in the rows of the alignment."""
    left: int
    right: int
    """Steps (calls, from 1) of each side that stand there, or would be its next; one more than it has: it had ended."""


class Side(Struct, frozen=True, kw_only=True):
    """What a run did from a place on."""

    next: list[Step]
    steps: int
    """Calls from there to its end."""
    failed: int
    """Those that failed."""
    only: list[str]
    """Files that it read or changed from there on, and the other did not at any time."""


class Parting(Struct, frozen=True, kw_only=True):
    """The step after which two runs do not come together again."""

    place: Place
    basis: Basis
    shared: float
    """Share of that step's deeds that the other run has too."""
    sure: bool
    unsure: str
    """Why not; empty where it is."""
    left: Side
    right: Side


class Divergence(Struct, frozen=True, kw_only=True):
    """Where two runs part. Each None where they never do."""

    differs: Place | None
    """The first call that is not the same."""
    strays: Place | None
    """The first step that the other never takes, though they may come together again."""
    parts: Parting | None
    changes_shared: float | None
    """Of all lines that either changed, the share that both did; None where neither changed any."""


def divergence(rows: Sequence[Facing], left_out: bool = False) -> Divergence:
    """Where the runs of an alignment part. `left_out`: steps of either are not in it."""
    sides = [[step for row in rows if (step := pick(row)) and step.kind != "prompt"] for pick in (_left, _right)]
    did = [_did(side) for side in sides]
    private = [_private(row, did) for row in rows]
    changes = [frozenset(deed for deed in deeds if deed[0] == "change") for deeds in did]
    differs = next((n for n, row in enumerate(rows) if row.how != "same" and row.is_call), None)
    strays = next((n for n, shares in enumerate(private) if shares), None)
    n, basis = _parting(rows, private)
    parting = None
    if n is not None:
        place, shared = _place(rows, n), min(private[n].values(), default=0.0)
        touched = [frozenset(file for step in side for file in step.files) for side in sides]
        unsure = _unsure(rows[n], basis, shared, sides, left_out)
        parting = Parting(
            place=place,
            basis=basis,
            shared=shared,
            sure=not unsure,
            unsure=unsure,
            left=_side(sides[0][place.left - 1 :], touched[1]),
            right=_side(sides[1][place.right - 1 :], touched[0]),
        )
    return Divergence(
        differs=None if differs is None else _place(rows, differs),
        strays=None if strays is None else _place(rows, strays),
        parts=parting,
        changes_shared=len(changes[0] & changes[1]) / len(union) if (union := changes[0] | changes[1]) else None,
    )


def _did(steps: Sequence[Step]) -> frozenset[Deed]:
    """All that a run did. Who is known to have changed lines of a file has edited it."""
    deeds = {deed for step in steps for deed in step.deeds}
    return frozenset(deeds | {("edited", deed[1]) for deed in deeds if deed[0] == "change"})


def _parting(rows: Sequence[Facing], private: Sequence[dict[str, float]]) -> tuple[int | None, Basis]:
    changing = [n for n, row in enumerate(rows) if any(s is not None and s.is_change for s in (row.left, row.right))]
    for n in changing:
        if any((step := getattr(rows[n], side)) and step.is_change for side in private[n]):
            return n, "change"
    after = changing[-1] + 1 if changing else 0
    basis: Basis = "after" if changing else "course"
    return next((n for n in range(after, len(rows)) if private[n] or _goes_on_alone(rows, n)), None), basis


def _goes_on_alone(rows: Sequence[Facing], start: int) -> bool:
    """Whether a stretch begins here in which one does something and the other nothing."""
    how, doing = rows[start].how, 0
    for row in islice(rows, start, None):
        if row.how != how or how not in ("left", "right"):
            return False
        step = row.left or row.right
        doing += step is not None and bool(step.deeds)
        if doing == ALONE:
            return True
    return False


def _private(row: Facing, did: Sequence[frozenset[Deed]]) -> dict[str, float]:
    """The sides whose step in this row is one that the other run never takes, with the share that it has of it."""
    shares = {}
    for name, step, other in (("left", row.left, did[1]), ("right", row.right, did[0])):
        if (
            step is not None
            and step.deeds
            and (share := len(step.deeds & other) / len(step.deeds)) < (MOST if step.is_change else HALF)
        ):
            shares[name] = share
    return shares


def _unsure(row: Facing, basis: Basis, shared: float, sides: Sequence[Sequence[Step]], left_out: bool) -> str:
    opaque = max(sum(step.is_opaque for step in side) / len(side) if side else 0.0 for side in sides)
    edited = {deed[0] for step in (row.left, row.right) if step is not None for deed in step.deeds}
    reasons = [
        "the trace does not say what many steps were about" if opaque >= OPAQUE else "",
        "the other run does some of it, too" if shared >= SOME else "",
        "which lines were changed is not recorded" if basis == "change" and "edited" in edited else "",
        "neither changed a file" if basis == "course" else "",
        "the runs are too long to be aligned whole" if left_out else "",
    ]
    return "; ".join(filter(None, reasons))


def _side(rest: Sequence[Step], elsewhere: frozenset[str]) -> Side:
    return Side(
        next=list(islice(rest, NEXT)),
        steps=len(rest),
        failed=sum(step.status in FAILED for step in rest),
        only=sorted({file for step in rest for file in step.files} - elsewhere),
    )


def _place(rows: Sequence[Facing], n: int) -> Place:
    before = rows[:n]
    left, right = (sum(1 for row in before if (s := pick(row)) and s.kind != "prompt") for pick in (_left, _right))
    return Place(row=n, left=1 + left, right=1 + right)


def _left(row: Facing) -> Step | None:
    return row.left


def _right(row: Facing) -> Step | None:
    return row.right
