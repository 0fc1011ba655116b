"""What people judged of the attempts at a task: a grade each, and pass or fail by rubric."""

from __future__ import annotations

import posixpath
from typing import Any

from msgspec import Struct, field

from agentsignals.formats import Input
from agentsignals.model.attempt import Attempt, Statement


class Overall(Struct):
    """The grade of an attempt, 1 (worst) to 5, and why."""

    rating: object = None
    rationale: object = None


class Ratings(Struct):
    """By attempt, which goes by the beginning of its folder's name (`trace_01` for `trace_01_<model>`)."""

    rubrics_rating: dict[str, dict[str, object]] = field(default_factory=dict)
    overall_rating: dict[str, Overall] = field(default_factory=dict)


def rating_parts(source: Input, ratings: Ratings) -> list[Attempt]:
    """A part for each attempt that was judged, lent to the trial in its folder."""
    names = dict.fromkeys((*ratings.overall_rating, *ratings.rubrics_rating))
    return [_part(source, name, ratings) for name in names]


def _part(source: Input, name: str, ratings: Ratings) -> Attempt:
    overall, rubrics = ratings.overall_rating.get(name), ratings.rubrics_rating.get(name)
    judged: dict[str, Any] = {}
    if overall is not None:
        judged |= {"rating": overall.rating, "rationale": overall.rationale}
    if rubrics is not None:
        judged["rubrics"] = rubrics
        passed = sum(value == "PASS" for value in rubrics.values())
        judged |= {"rubrics_passed": passed, "rubrics_total": len(rubrics)}
    listed = ", ".join(f"{k} {v}" for k, v in judged.items() if k != "rubrics")
    return Attempt(
        root=posixpath.dirname(source.artifact.path),
        scope="lent",
        only_below=name,
        ratings=judged,
        statements=[
            Statement(
                text=f"rated by people: {listed}", artifact_id=source.artifact.artifact_id, line=1, fields=["ratings"]
            )
        ],
    )
