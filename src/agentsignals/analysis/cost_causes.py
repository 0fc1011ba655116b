"""Where the money went: every dollar of the ledger under one cause (design/findings.md#cost-by-cause).

A pure function of rows. A model call pays for what it is sent and for what it answers; what it is sent was sent before
(carried, or anew past the cache) or is new. Which results stand in a context is followed call by call, so that a result
is charged for as often as it was sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentsignals import prices
from agentsignals.analysis.grouped import by
from agentsignals.analysis.rows import BOUND, IS_SUBAGENTS, PLACE
from agentsignals.analysis.study import Row
from agentsignals.model import NO_SUBAGENT, SESSION_TOTAL, Step

CAUSES = {
    "subagents": "subagents",
    "compaction": "the context written anew after a compaction",
    "rebuilt": "caches rebuilt after a pause longer than they live",
    "missed": "context sent again past the cache without such a pause",
    "failed": "failed calls",
    "repeated": "calls repeated with nothing changed",
    "reread": "files read again that had not changed",
    "carried_results": "carried context: tool results",
    "carried_start": "carried context: what sessions start with",
    "carried_words": "carried context: prompts, answers, arguments",
    "cache_write": "new context, written to the cache",
    "input": "new context, not cached",
    "output": "output",
    "other": "other",
}
"""In words, in order of precedence: a dollar that two causes claim is the first one's."""
CARRIED = ("carried_results", "carried_start", "carried_words")
LIFETIME_S, LONG_LIFETIME_S = 300, 3600
"""How long a provider keeps a cache that is not used: five minutes, or an hour for what was written to last that long
(https://docs.claude.com/en/docs/build-with-claude/prompt-caching)."""
SHRUNK = 0.5
"""A context that fell to less than this share of itself was cleared or compacted, whether or not the trace says so."""

_SECOND = 1_000_000
_IS_AGAIN = "again.n > 1 AND again.tokens_before = again.result_tokens"
QUERIES: Mapping[str, str] = {
    "bill": f"SELECT session_id, agent, model, {PLACE}, branch, {IS_SUBAGENTS} AS is_subagents, cost_usd,"
    f" {BOUND} FROM sessions WHERE cost_usd IS NOT NULL ORDER BY session_id",
    "steps": "SELECT t.session_id, step, t.turn, thread, seq, message_id, t.model, epoch_us(timestamp) AS timestamp,"
    " strftime(timestamp, '%Y-%m-%d') AS day,"
    " stop_reason, t.input_tokens, t.output_tokens, t.cache_read_tokens, t.cache_write_tokens, t.cost_usd,"
    " t.cost_source, cache_write_1h_tokens, input_in_step, speed, service_tier, inference_geo, web_searches"
    " FROM steps AS t JOIN sessions AS s USING (session_id) WHERE s.cost_usd IS NOT NULL"
    " ORDER BY t.session_id, thread, step",
    # Equal arguments and a result of equal length, with no edit of the file (of a call that reads no file: of any)
    # between the two: what the second brought was there.
    "results": "WITH answered AS (SELECT session_id, thread, step, seq, result_seq, class, path, name, status, purpose,"
    " arguments, result_tokens FROM tool_calls WHERE result_tokens IS NOT NULL AND result_seq IS NOT NULL),"
    " again AS (SELECT *, row_number() OVER w AS n, lag(seq) OVER w AS seq_before, lag(result_tokens) OVER w AS"
    " tokens_before FROM answered WHERE status IN ('ok', 'unknown') WINDOW w AS (PARTITION BY session_id, thread, name,"
    " arguments ORDER BY seq)),"
    " changed AS (SELECT session_id, path, seq FROM edits),"
    " last_change AS (SELECT again.session_id, again.seq, max(changed.seq) AS of_any,"
    " max(changed.seq) FILTER (changed.path = again.path) AS of_file"
    " FROM again LEFT JOIN changed ON changed.session_id = again.session_id AND"
    f" changed.seq < again.seq AND changed.seq > again.seq_before WHERE {_IS_AGAIN} GROUP BY ALL)"
    " SELECT answered.session_id, answered.thread, answered.step, answered.seq, answered.result_seq,"
    " answered.result_tokens, answered.name, answered.path,"
    " CASE WHEN answered.status = 'error' THEN 'failed'"
    f" WHEN {_IS_AGAIN} AND answered.class = 'read' AND answered.path IS NOT NULL AND of_file IS NULL THEN 'reread'"
    f" WHEN {_IS_AGAIN} AND of_any IS NULL AND answered.class NOT IN ('plan', 'task', 'ask', 'edit')"
    " AND answered.purpose IS DISTINCT FROM 'poll' THEN 'repeated' ELSE 'result' END AS kind"
    " FROM answered LEFT JOIN again USING (session_id, seq) LEFT JOIN last_change USING (session_id, seq)"
    " ORDER BY answered.session_id, answered.thread, answered.result_seq",
    "compactions": "SELECT session_id, thread, seq FROM events WHERE kind = 'compaction' ORDER BY session_id, seq",
}
"""What `charged` needs: the first is the bill."""


BOUNDED = ("output", "subagents")
"""Causes that are too low where a session logs its output in mid-stream."""


class Charge(NamedTuple):
    """Dollars of one cause in one session, with one model, on one day."""

    session_id: str
    model: str | None
    day: str | None
    cause: str
    usd: float


def charged(rows: Mapping[str, list[Row]]) -> list[Charge]:
    """The bill by cause; sums to the costs of the sessions that have one. Rows: those of `QUERIES`."""
    sums: defaultdict[tuple[str, str | None, str | None, str], float] = defaultdict(float)
    children = {row["session_id"] for row in rows["bill"] if row["is_subagents"]}
    results = by(rows["results"], "session_id", "thread")
    compactions = by(rows["compactions"], "session_id", "thread")
    for (session_id, thread), group in by(rows["steps"], "session_id", "thread").items():
        key = (session_id, thread)
        is_subagents = thread not in NO_SUBAGENT or session_id in children
        context = _Context(results.get(key, ()), [row["seq"] for row in compactions.get(key, ())])
        for row in group:
            step = _step(row)
            if not step.cost_usd:
                continue
            shares = {"subagents": step.cost_usd} if is_subagents else context.charge(step)
            for cause, usd in shares.items():
                sums[session_id, step.model, row.get("day"), cause] += usd
    return [Charge(*key, usd) for key, usd in sums.items() if usd]


def _step(row: Row) -> Step:
    fields: dict[str, Any] = {name: row.get(name) for name in Step.__struct_fields__}
    return Step(**fields)


_Amounts = tuple[float, ...]
_CAUSE_OF = {
    "start": "carried_start",
    "words": "carried_words",
    "result": "carried_results",
    "failed": "failed",
    "repeated": "repeated",
    "reread": "reread",
}
"""What it is to be charged to that a segment of a context is sent again."""
_KINDS = tuple(_CAUSE_OF)
_WASTED = ("failed", "repeated", "reread")
"""Kinds whose first sending, too, is charged to them; in order of precedence."""


class _Context:
    """What a thread's model calls are sent, as segments in order: each of one kind."""

    def __init__(self, results: Sequence[Row], compactions: Sequence[int]) -> None:
        self._results, self._compactions = list(results), list(compactions)
        self._made: dict[Any, set[str]] = {}
        for row in results:
            self._made.setdefault(row["step"], set()).add(row["kind"])
        self._ends: list[float] = [0.0]
        self._sums: list[_Amounts] = [(0.0,) * len(_KINDS)]
        self._at = self._compacted = 0
        self._before: int | None = None
        self._lifetime_s = LIFETIME_S
        self._caches = False

    def charge(self, step: Step) -> dict[str, float]:
        """The cost of the next model call by cause."""
        parts = prices.parts(step)
        read, written = step.cache_read_tokens or 0, step.cache_write_tokens or 0
        size = (step.input_tokens or 0) + read + written
        made = self._made.get(step.step, {"result"})
        wasted = next(kind for kind in _WASTED if kind in made) if made <= set(_WASTED) else "output"
        shares = defaultdict(float, {wasted: parts.output, "other": parts.other})
        if not size or step.stop_reason == SESSION_TOTAL or step.input_in_step is not None:
            # Of several calls together: what of it was sent before can't be told from what is new.
            shares |= {"carried_words": parts.cache_read, "cache_write": parts.cache_write, "input": parts.input}
            return shares
        pause_s = 0.0
        if step.timestamp is not None:
            pause_s = (step.timestamp - (step.timestamp if self._before is None else self._before)) / _SECOND
            self._before = step.timestamp
        is_anew, old = self._grow(step, size)
        self._send(shares, _Sent(size, read, old, parts), pause_s, is_anew=is_anew)
        self._caches = self._caches or bool(read or written)
        if step.cache_write_1h_tokens:
            self._lifetime_s = LONG_LIFETIME_S
        return shares

    def _grow(self, step: Step, size: int) -> tuple[bool, float]:
        """Adds what is new in this call. Whether the context began anew, and how much of it was sent before."""
        is_first = len(self._ends) == 1
        passed = self._compacted
        while self._compacted < len(self._compactions) and self._compactions[self._compacted] < step.seq:
            self._compacted += 1
        is_anew = not is_first and (self._compacted > passed or size < SHRUNK * self._ends[-1])
        arrived: Counter[str] = Counter()
        while self._at < len(self._results) and self._results[self._at]["result_seq"] < step.seq:
            row = self._results[self._at]
            arrived[row["kind"]] += row["result_tokens"]
            self._at += 1
        if is_first:
            self._add({"start": float(size)})
            return False, 0.0
        if is_anew:
            start = min(self._sums[1][0], float(size))
            del self._ends[1:], self._sums[1:]
            self._add({"start": start})
            self._add({"words": size - start})
            return True, start
        self._cut(size)
        old = self._ends[-1]
        growth = size - old
        total = arrived.total()
        scale = min(1.0, growth / total) if total else 0.0
        for kind, tokens in arrived.items():
            self._add({kind: tokens * scale})
        self._add({"words": growth - total * scale})
        return False, old

    def _add(self, tokens: Mapping[str, float]) -> None:
        added = sum(tokens.values())
        if added > 0:
            self._sums.append(tuple(n + tokens.get(k, 0.0) for k, n in zip(_KINDS, self._sums[-1], strict=True)))
            self._ends.append(self._ends[-1] + added)

    def _cut(self, size: float) -> None:
        """Drops the end of a context that became a little shorter."""
        if size >= self._ends[-1]:
            return
        kept = self._upto(size)
        at = bisect_left(self._ends, size)
        del self._ends[at:], self._sums[at:]
        self._ends.append(float(size))
        self._sums.append(kept)

    def _upto(self, tokens: float) -> _Amounts:
        """How much of each kind the first so many tokens hold."""
        at = bisect_left(self._ends, tokens)
        if at >= len(self._ends):
            return self._sums[-1]
        if at == 0:
            return self._sums[0]
        part = (tokens - self._ends[at - 1]) / (self._ends[at] - self._ends[at - 1])
        return tuple(a + part * (b - a) for a, b in zip(self._sums[at - 1], self._sums[at], strict=True))

    def _between(self, start: float, end: float) -> Iterable[tuple[str, float]]:
        return zip(_KINDS, (b - a for a, b in zip(self._upto(start), self._upto(end), strict=True)), strict=True)

    def _send(self, shares: defaultdict[str, float], sent: _Sent, pause_s: float, *, is_anew: bool) -> None:
        """Charges for what was sent: read from the cache, sent before and not read, new."""
        if sent.read:
            for kind, tokens in self._between(0, sent.read):
                shares[_CAUSE_OF[kind]] += sent.parts.cache_read * tokens / sent.read
        rest = sent.size - sent.read
        usd = sent.parts.input + sent.parts.cache_write
        if rest <= 0 or not usd:
            shares["other"] += usd
            return
        if is_anew:
            shares["compaction"] += usd
            return
        lost = max(0.0, sent.old - sent.read)
        if lost and self._caches:
            shares["rebuilt" if pause_s > self._lifetime_s else "missed"] += usd * lost / rest
        elif lost:
            for kind, tokens in self._between(sent.read, sent.old):
                shares[_CAUSE_OF[kind]] += usd * tokens / rest
        written = sent.parts.cache_write / usd
        for kind, tokens in self._between(max(sent.read, sent.old), sent.size):
            new = usd * tokens / rest
            if kind in _WASTED:
                shares[kind] += new
            else:
                shares["cache_write"] += new * written
                shares["input"] += new * (1 - written)


class _Sent(NamedTuple):
    """What a call was sent, in tokens: all, read from the cache, sent before; and what its parts cost."""

    size: float
    read: float
    old: float
    parts: prices.Parts
