"""What was paid for twice: files read again unchanged, calls repeated with nothing changed."""

from __future__ import annotations

from collections import Counter
from math import fsum

from agentsignals.analysis.clusters import placed_share
from agentsignals.analysis.cost_causes import QUERIES
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import behind
from agentsignals.analysis.places import by_session
from agentsignals.analysis.ranking import Answer, Question, drawn, lines_of, shown
from agentsignals.analysis.study import Inputs, Row

MUCH = 0.02
"""The share of the bill (of result tokens, where nothing is priced) from which it is worth a sentence."""
_KINDS = {
    "reread": ("files read again that had not changed", "Tell the agent to keep what it read; start it with the files"),
    "repeated": ("calls made again with nothing changed in between", "Tell the agent to act on a result before asking"),
}


def _answers(inputs: Inputs) -> list[Answer]:
    bill = inputs.rows["bill"]
    if not bill:
        return []
    charges, places = inputs.rows["charges"], by_session(bill)
    made = []
    for kind, (words, do) in _KINDS.items():
        usd: dict[str, float] = {}
        for charge in charges:
            if charge["cause"] == kind:
                usd[charge["session_id"]] = usd.get(charge["session_id"], 0.0) + charge["usd"]
        parts = ((row["session_id"], usd.get(row["session_id"], 0.0), row["cost_usd"]) for row in bill)
        share = placed_share(parts, places)
        calls = [row for row in inputs.rows["results"] if row["kind"] == kind and row["session_id"] in usd]
        size = fsum(usd.values())
        made.append(
            Answer(
                id=f"twice.{kind}",
                sentence=f"At least {formatted(size, 'usd')} ({formatted(share.value or 0.0, 'share')} of the bill)"
                f" went on {words}: {len(calls):,} times{_most(calls)}.",
                size=size,
                unit="USD",
                **drawn(share, MUCH),
                n=len(bill),
                cause=lines_of(
                    f"SELECT session_id, seq, name, path, result_tokens FROM ({QUERIES['results']}) WHERE kind ="
                    f" '{kind}'"
                ),
                do=f"{do}.",
                caveat="Arguments and length of the result are equal and no edit is seen between; what a program"
                f" changed meanwhile is not seen, and what came back in other words is not counted; {share.note}.",
                at_least=True,
                sessions=behind(usd.items()),
            )
        )
    return made


def _most(calls: list[Row]) -> str:
    paths = Counter(row["path"] or row["name"] for row in calls)
    return f", most often {shown(paths.most_common(1)[0][0])}" if paths else ""


FINDING = Question(
    name="twice",
    question="What do I pay for twice?",
    queries={name: QUERIES[name] for name in ("bill", "results")},
    function=_answers,
    needs_charges=True,
)
