"""Turns that the person cut short: one definition and one number for every study that counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentsignals.questions.estimates import ClusteredShare, Sample
from agentsignals.questions.question import Finding, Row

SIGNAL = "chat.hard_interruption"
TITLE = "Turns cut short"
OF = "turns"
MEANS = "an interruption, a refused call, or a queued stop"


def cut_short(rows: Iterable[Row], places: Mapping[str, str]) -> ClusteredShare:
    """Return the share of turns that were cut short. Rows: a turn each, with session_id and `cut`, which is None where
    it was not measured."""
    known = [row for row in rows if row["cut"] is not None]
    return Sample([row["session_id"] for row in known], dict(places)).among([bool(row["cut"]) for row in known], True)


def cut_short_finding(share: ClusteredShare, id: str) -> Finding:  # noqa: A002  (the finding's field)
    """Return the share as the finding of a study."""
    return share.finding(id, TITLE, OF, MEANS, signals=(SIGNAL,))
