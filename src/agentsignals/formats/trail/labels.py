"""What people said of a TRAIL trace, as labels: the errors they marked at spans, and their scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentsignals.formats.trail.records import Error
from agentsignals.model import Event, Label

LABELLER = "human"
ERROR = "trail_error"
_SCORES = {
    "reliability_score": "trail_reliability",
    "security_score": "trail_security",
    "instruction_adherence_score": "trail_instruction_adherence",
    "plan_opt_score": "trail_plan_opt",
    "overall": "trail_overall",
}
"""Scores from 1 to 5. Seed 003 has words for some of them (`optimal` …); the annotators gave numbers, kept as such."""
_MISSPELT = {"complience": "compliance", "retreival": "retrieval", "retrival": "retrieval", "formating": "formatting",
             "langauge": "language"}  # fmt: skip


def labels(
    errors: list[Error], scores: list[dict[str, Any]], seqs: Mapping[str, int], events: list[Event]
) -> Iterator[Label]:
    """`seqs` has the first event of each span. An error marked anywhere else is of the whole trace."""
    for error in errors:
        seq = seqs.get(error.location or "")
        if seq is not None:
            seq = min(seq, len(events) - 1) if events else None  # a last span may leave no event
        detail = {
            "category": error.category,
            "location": error.location,
            "impact": error.impact,
            "evidence": error.evidence,
        }
        yield Label(
            task=ERROR,
            labeller=LABELLER,
            turn=events[seq].turn if seq is not None else None,
            value=category_of(error.category),
            reason=error.description,
            seq=seq,
            detail=json.dumps(detail, ensure_ascii=False),
        )
    for entry in scores:
        for key, task in _SCORES.items():
            value = entry.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                reason = entry.get(f"{key.removesuffix('_score')}_reasoning")
                told_why = reason if isinstance(reason, str) else None
                yield Label(
                    task=task, labeller=LABELLER, turn=None, value=f"{value:g}", reason=told_why, number=float(value)
                )


def category_of(raw: str) -> str:
    """A category in one spelling: `Formatting Errors ` and `formatting error` are `formatting_error`."""
    words = re.findall(r"[a-z]+", raw.lower()[:200])
    words = [_MISSPELT.get(w, w) for w in words]
    if words and words[-1].endswith("s") and not words[-1].endswith("ss"):
        words[-1] = words[-1][:-1]
    return "_".join(words)
