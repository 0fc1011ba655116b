"""What was paid for twice: files read again unchanged, calls repeated with nothing changed; over all, and where one
agent does so more than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import fsum

from agentsignals.questions.cost_causes import QUERIES
from agentsignals.questions.estimates import ClusteredShare, clustered_share_alone, top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import (
    SESSIONS,
    Answer,
    Contrast,
    contrasts,
    finding_id,
    safe_name,
    sessions_sql,
    share_fields,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import place_by_session

MUCH = 0.02
"""The share of the bill (of result tokens, where nothing is priced) from which it is worth a sentence."""
_KINDS = {
    "reread": ("files read again that had not changed", "Tell the agent to keep what it read; start it with the files"),
    "repeated": ("calls made again with nothing changed in between", "Tell the agent to act on a result before asking"),
}


_CAVEAT = (
    "Arguments and length of the result are equal and no edit is seen between; what a program changed meanwhile is not"
    " seen, and what came back in other words is not counted"
)


def _answers(inputs: Inputs) -> list[Answer]:
    bill = inputs.rows["bill"]
    if not bill:
        return []
    made = []
    for kind in _KINDS:
        usd = inputs.paid[kind]
        parts = [(row["session_id"], usd.get(row["session_id"], 0.0), row["cost_usd"]) for row in bill]
        calls = [row for row in inputs.rows["repeats"] if row["kind"] == kind and row["session_id"] in usd]
        whole = clustered_share_alone(parts, place_by_session(bill))
        made.append(_over_all(kind, whole, len(bill), calls, usd))
        by_agent = contrasts(parts, inputs.rows["sessions"], ("agent",))
        made += [_of_agent(kind, contrast, whole.n, calls, usd) for contrast in by_agent]
    return made


def _over_all(kind: str, share: ClusteredShare, n: int, calls: list[Row], usd: Mapping[str, float]) -> Answer:
    words, do = _KINDS[kind]
    size = fsum(usd.values())
    return Answer(
        id=f"twice.{kind}",
        about=f"twice.{kind}",
        sentence=f"At least {formatted(size, 'usd')} ({formatted(share.value or 0.0, 'share')} of the bill) went on"
        f" {words}: {len(calls):,} times{_most(calls)}.",
        size=size,
        unit="USD",
        **share_fields(share, MUCH),
        n=n,
        cause=with_source_lines(_rows(kind)),
        do=f"{do}.",
        caveat=f"{_CAVEAT}; {share.note}.",
        at_least=True,
        sessions=top_sessions(usd.items()),
    )


def _of_agent(kind: str, contrast: Contrast, bill: float, calls: list[Row], usd: Mapping[str, float]) -> Answer:
    words, do = _KINDS[kind]
    here = [row for row in calls if row["session_id"] in contrast.in_group]
    there = formatted(contrast.rest.value, "share")
    return Answer(
        id=finding_id(f"twice.{kind}.{contrast.key}", contrast.value),
        about=f"twice.{kind}",
        sentence=f"At least {formatted(contrast.group.value, 'share')} of the bill {contrast.where} went on {words},"
        f" against {there} in {contrast.matched}: {formatted(contrast.excess * bill, 'usd')} more, {len(here):,}"
        f" times{_most(here)}.",
        **contrast.more(bill, "USD", bill),
        cause=with_source_lines(f"{_rows(kind)} AND {sessions_sql(contrast.in_group)}"),
        do=f"{do}.",
        caveat=f"Goes with it, and need not be because of it. {_CAVEAT}; {contrast.group.note}.",
        at_least=True,
        sessions=top_sessions(
            (session_id, part) for session_id, part in usd.items() if session_id in contrast.in_group
        ),
    )


def _rows(kind: str) -> str:
    return (
        f"SELECT session_id, seq, name, path, result_tokens FROM ({QUERIES['results']}) WHERE kind = {sql_text(kind)}"
    )


def _most(calls: list[Row]) -> str:
    paths = Counter(row["path"] or row["name"] for row in calls)
    return f", most often {safe_name(paths.most_common(1)[0][0])}" if paths else ""


FINDING = Question(
    name="twice",
    question="What do I pay for twice?",
    queries={"sessions": SESSIONS, "bill": QUERIES["bill"]},
    function=_answers,
    needs_charges=True,
)
