"""The edits and plans that people refused in a store, what was kept in their place, and their words."""

from __future__ import annotations

from msgspec import Struct

from agentsignals.stats.intervals import wilson
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.views.refusals import READ, RULES, Refusal, Rule, refusals, texts

_SESSIONS = """
    SELECT DISTINCT session_id FROM tool_calls JOIN (SELECT session_id FROM sessions WHERE ({where})) USING (session_id)
    WHERE status = 'rejected' AND thread = 'main'"""


class RuleSummary(Struct, frozen=True, kw_only=True):
    """Refusals of one kind, and how often the pairs of its rule are right."""

    rule: Rule
    refusals: int
    pairs: int
    no_pair: dict[str, int]
    """Refusals without a pair, by reason."""
    right: int
    read: int
    """Pairs of other sessions that were read to measure the rule."""
    precision_low: float | None
    precision_high: float | None


class Pair(Struct, frozen=True, kw_only=True):
    """A refused text, the one kept in its place, and the person's words. The numbers are events."""

    rule: Rule
    session_id: str
    agent: str
    path: str | None
    words: str
    refused: str
    """The text that the refused edit would have written, or the refused plan."""
    kept: str
    refused_seq: int
    words_seq: int
    kept_seq: int


class Refusals(Struct, frozen=True, kw_only=True):
    rules: list[RuleSummary]
    pairs: list[Pair]


def refusals_in(store: Store, where: str = "true") -> Refusals:
    """Return the refusals of the sessions that meet a condition, and their pairs."""
    ids = {str(row[0]) for row in rows(store, _SESSIONS.replace("{where}", where))[1]}
    found: list[Refusal] = []
    pairs = []
    for session in store.read(ids):
        for refusal in refusals(session):
            found.append(refusal)
            if refusal.kept is not None and refusal.words is not None:
                pair = Pair(
                    rule=refusal.rule,
                    session_id=session.session_id,
                    agent=session.agent,
                    path=refusal.refused.path,
                    words=refusal.words.text or "",
                    refused=texts(refusal.refused)[1],
                    kept=texts(refusal.kept)[1],
                    refused_seq=refusal.refused.seq,
                    words_seq=refusal.words.seq,
                    kept_seq=refusal.kept.seq,
                )
                pairs.append(pair)
    pairs.sort(key=lambda pair: (RULES.index(pair.rule), pair.session_id, pair.refused_seq))
    return Refusals(rules=[_summary(rule, [r for r in found if r.rule == rule]) for rule in RULES], pairs=pairs)


def _summary(rule: Rule, found: list[Refusal]) -> RuleSummary:
    reasons: dict[str, int] = {}
    for refusal in found:
        if refusal.why_no_pair:
            reasons[refusal.why_no_pair] = reasons.get(refusal.why_no_pair, 0) + 1
    right, read = READ[rule]
    low, high = wilson(right, read) or (None, None)
    return RuleSummary(
        rule=rule,
        refusals=len(found),
        pairs=len(found) - sum(reasons.values()),
        no_pair=reasons,
        right=right,
        read=read,
        precision_low=low,
        precision_high=high,
    )


def differing_lines(pair: Pair) -> tuple[str, str]:
    """Return the first line of each side that the other side lacks; empty where a side only lacks lines."""
    refused, kept = ([line.strip() for line in text.split("\n")] for text in (pair.refused, pair.kept))
    return (
        next((line for line in refused if line and line not in kept), ""),
        next((line for line in kept if line and line not in refused), ""),
    )
