"""Sentiment labels as studies see them: one labeller's conversations, and the place each lies in."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from typing import Any

from agentsignals.analysis.clusters import PlacedShare, placed_share
from agentsignals.analysis.grouped import Estimate
from agentsignals.analysis.rows import PLACE
from agentsignals.analysis.study import Finding, Inputs, Outcome, Row
from agentsignals.catalog import caption
from agentsignals.model import RULES
from agentsignals.stats.sentiment_counts import TASK, UNJUDGED, Conversation, Message, Part, chosen, label
from agentsignals.validation import NEVER_VALIDATED

_KINDS = ", ".join(f"'{kind}'" for kind in sorted(UNJUDGED))
LABELS = (
    "SELECT session_id, turn, labeller, value, model, prompt_hash, created_at, epoch_us(created_at) AS at FROM labels"
    f" WHERE task = '{TASK}' AND turn IS NOT NULL ORDER BY session_id, turn, labeller, created_at NULLS FIRST, value"
)
"""One row a label of a message; of two by one labeller the younger comes last."""
MESSAGES = (
    "WITH answers AS (SELECT session_id, seq, model FROM steps WHERE thread = 'main' AND model <> ''),"
    " opened AS (SELECT session_id, arg_min(model, seq) AS model FROM answers GROUP BY session_id)"
    f" SELECT said.session_id, said.turn, {PLACE},"
    " coalesce(answers.model, CASE WHEN said.turn = 0 THEN opened.model END, sessions.model) AS model"
    " FROM turns AS said JOIN sessions USING (session_id) LEFT JOIN opened USING (session_id)"
    " ASOF LEFT JOIN answers ON said.session_id = answers.session_id AND said.seq > answers.seq"
    f" WHERE said.kind NOT IN ({_KINDS})"
    f" AND said.session_id IN (SELECT session_id FROM labels WHERE task = '{TASK}')"
    " ORDER BY said.session_id, said.turn"
)
"""One row a message of the sessions with labels: where it was said, and to which model."""
QUERIES = {"labels": LABELS, "messages": MESSAGES}

NO_LABELS = (
    "No message has a sentiment label yet: agentsignals label sentiment --by LABELLER makes them, --from FILE reads"
    " published ones."
)
OUTPUT = (
    "A sentiment label is a labeller's output, not what was felt: two labellers of one data set agreed with a kappa of"
    " 0.43 (agent-traces)."
)
SENTIMENT = "corpus.sentiment_label"
_UNMEASURED = f"this labeller was {NEVER_VALIDATED}; agentsignals agree sentiment LABELLER --gold FILE does it"
FEW_PLACES = "Intervals that draw places are too narrow where these are worth fewer than ten or so equal ones."


class Labelled:
    """One labeller's conversations."""

    def __init__(self, labeller: str, conversations: list[Conversation], places: dict[str, str]) -> None:
        self.labeller = labeller
        self.conversations = conversations
        self.places = places
        """The place of each session whose place is known."""

    def estimate(self, count: Callable[[Conversation], Part | None]) -> PlacedShare:
        """A share over these conversations, by what each has of it."""
        counted = ((conversation.session_id, count(conversation)) for conversation in self.conversations)
        return placed_share([(name, *part) for name, part in counted if part is not None], self.places)

    def finding(self, estimate: Estimate, id: str, title: str, of: str, note: str = "", **more: Any) -> Finding:  # noqa: A002  (the finding's field)
        """The figure as a finding; its command makes it again with the same labeller."""
        study = id.partition(".")[0]
        command = f"agentsignals report --study {study} --labeller {shlex.quote(self.labeller)} -o {study}.json"
        validation = caption(SENTIMENT, more.get("classes", ())) if self.labeller == RULES else _UNMEASURED
        return estimate.finding(id, title, of, note, command=command, validation=validation, **more)

    def limits(self) -> list[str]:
        """What holds of every figure over these labels."""
        of_place = Counter(self.places.get(c.session_id) for c in self.conversations for _ in c.labelled)
        n = of_place.total()
        of_place.pop(None, None)
        limits = [f"Sentiment labels are by {self.labeller}.", OUTPUT, FEW_PLACES]
        most = max(of_place.values(), default=0)
        if 2 * most > n:
            limits.append(
                f"{most / n:.0%} of the labelled messages lie in one place: the figures of sentiment are its people's."
            )
        return limits


def labelled(inputs: Inputs) -> Labelled | None:
    """The conversations by the labeller asked for, else by the one with most labels; None when there is no label."""
    by_labeller: dict[str, dict[tuple[str, int], Row]] = {}
    for row in inputs.rows["labels"]:
        by_labeller.setdefault(row["labeller"], {})[row["session_id"], row["turn"]] = row
    messages: dict[str, list[Row]] = {}
    for row in inputs.rows["messages"]:
        messages.setdefault(row["session_id"], []).append(row)
    name = inputs.labeller or chosen({n: _standing(rows) for n, rows in by_labeller.items()})
    if name is None or name not in by_labeller:
        return None
    values = {key: label(row["value"]) for key, row in by_labeller[name].items()}
    judged = {session_id for session_id, _ in by_labeller[name]}
    conversations = [
        Conversation(s, [Message(r["turn"] + 1, values.get((s, r["turn"])), r["model"]) for r in rows])
        for s, rows in messages.items()
        if s in judged
    ]
    places = {s: place for s, rows in messages.items() if (place := rows[0]["place"]) is not None}
    return (
        Labelled(name, conversations, places) if any(conversation.labelled for conversation in conversations) else None
    )


def _standing(rows: dict[tuple[str, int], Row]) -> tuple[int, int]:
    """How many labels, and the time of the last."""
    return sum(label(row["value"]) is not None for row in rows.values()), max(row["at"] or 0 for row in rows.values())


def unlabelled(inputs: Inputs) -> Outcome:
    """What a study of labels says where there are none: what makes them."""
    if not inputs.labeller:
        return Outcome(limits=[NO_LABELS])
    names = sorted({row["labeller"] for row in inputs.rows["labels"]})
    there = f"labels are by {', '.join(names)}" if names else "there are no labels"
    return Outcome(limits=[f"No message has a sentiment label by {inputs.labeller}: {there}."])
