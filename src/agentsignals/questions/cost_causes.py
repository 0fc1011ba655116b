"""Cost by cause: every dollar of a session's bill is attributed to one cause (design/findings.md#cost-by-cause).

A pure function of rows. A model call pays for its input and its output; input was sent before (read from the cache, or
again without it) or is new. Tool results in a context are tracked call by call, so a result is charged each time it is
sent. A store has many calls, so their rows are tuples and may be streamed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from sys import intern
from typing import Any, NamedTuple

from agentsignals.model import NO_SUBAGENT, SESSION_TOTAL, prices
from agentsignals.questions.question import Row
from agentsignals.questions.sql import IS_SUBAGENTS, read_queries

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
"""Text by cause, in order of precedence: a dollar that two causes claim belongs to the first."""
CARRIED = ("carried_results", "carried_start", "carried_words")
LIFETIME_S, LONG_LIFETIME_S = 300, 3600
"""Lifetime of an unused prompt cache: five minutes, or one hour for long-lived entries
(https://docs.claude.com/en/docs/build-with-claude/prompt-caching)."""
SHRUNK = 0.5
"""A context that shrinks below this share was cleared or compacted, whether or not the trace says so."""

_SECOND = 1_000_000


class Call(NamedTuple):
    """A model call with a cost, as in `QUERIES`."""

    session_id: str
    thread: str
    step: int
    seq: int
    model: str | None
    timestamp: int | None
    """Microseconds since 1970."""
    day: str | None
    stop_reason: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cache_write_1h_tokens: int | None
    input_in_step: int | None
    cost_usd: float
    cost_source: str | None
    web_searches: int | None


class Result(NamedTuple):
    """A tool result that entered the context, as in `QUERIES`."""

    session_id: str
    thread: str
    step: int | None
    seq: int
    result_seq: int
    result_tokens: int
    name: str | None
    path: str | None
    kind: str
    """`result`, or one of `_WASTED`."""


class CostItem(NamedTuple):
    """Part of the bill."""

    session_id: str
    model: str | None
    day: str | None
    cause: str
    usd: float


class _Arrived(NamedTuple):
    """The fields of a result kept until its thread is charged; a store has hundreds of thousands."""

    step: int | None
    result_seq: int
    result_tokens: int
    kind: str


QUERIES: Mapping[str, str] = read_queries(
    __file__,
    is_again="status IN ('ok', 'unknown') AND n > 1 AND tokens_before = result_tokens",
    is_subagents=IS_SUBAGENTS,
)["cost"]
"""Queries for `cost_by_cause`."""


BOUNDED = ("output", "subagents")
"""Causes that are lower bounds where a session logs its output in mid-stream."""


def cost_by_cause(
    bill: Iterable[Row],
    calls: Iterable[tuple[Any, ...]],
    results: Iterable[tuple[Any, ...]],
    compactions: Iterable[tuple[Any, ...]],
) -> tuple[list[CostItem], list[Row]]:
    """Return the bill by cause, and the results that were sent before (session_id, name, path, kind).

    The items sum to the costs of the sessions that have one. The arguments are the rows of `QUERIES`, in their order.
    """
    children = {row["session_id"] for row in bill if row["is_subagents"]}
    brought: defaultdict[tuple[str, str], list[_Arrived]] = defaultdict(list)
    repeats: list[Row] = []
    for result in map(Result._make, results):
        kind = intern(result.kind)
        brought[result.session_id, result.thread].append(
            _Arrived(result.step, result.result_seq, result.result_tokens, kind)
        )
        if kind in _REPEATS:
            repeats.append({"session_id": result.session_id, "name": result.name, "path": result.path, "kind": kind})
    compacted: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for session_id, thread, seq in compactions:
        compacted[session_id, thread].append(seq)
    sums: defaultdict[tuple[str, str | None, str | None], defaultdict[str, float]] = defaultdict(_no_dollar)
    for (session_id, thread), of_thread in groupby(calls, itemgetter(0, 1)):
        if thread not in NO_SUBAGENT or session_id in children:
            for call in map(Call._make, of_thread):
                sums[session_id, call.model, call.day]["subagents"] += call.cost_usd
            continue
        context = _Context(brought.get((session_id, thread), ()), compacted.get((session_id, thread), ()))
        for call in map(Call._make, of_thread):
            context.charge(call, sums[session_id, call.model, call.day])
    charges = [
        CostItem(session_id, model, day, cause, usd)
        for (session_id, model, day), of_cause in sums.items()
        for cause, usd in of_cause.items()
        if usd
    ]
    return charges, repeats


def _no_dollar() -> defaultdict[str, float]:
    return defaultdict(float)


_CAUSE_OF = {
    "start": "carried_start",
    "words": "carried_words",
    "result": "carried_results",
    "failed": "failed",
    "repeated": "repeated",
    "reread": "reread",
}
"""Cause of sending a segment of this kind again."""
_KINDS = {kind: at for at, kind in enumerate(_CAUSE_OF)}
_CAUSES_OF_KINDS = tuple(_CAUSE_OF.values())
_WASTED = ("failed", "repeated", "reread")
"""Kinds whose first sending is charged to them too, in order of precedence."""
_REPEATS = ("repeated", "reread")
_START, _WORDS = _KINDS["start"], _KINDS["words"]

_Amounts = list[float]
"""Tokens by kind."""


class _Context:
    """The input of a thread's model calls, as consecutive segments of one kind each."""

    def __init__(self, results: Sequence[_Arrived], compactions: Sequence[int]) -> None:
        self._results, self._compactions = results, compactions
        self._made: dict[int | None, set[str]] = {}
        for result in results:
            self._made.setdefault(result.step, set()).add(result.kind)
        self._ends: list[float] = [0.0]
        self._kinds: list[int] = [_START]
        self._sums: list[_Amounts] = [[0.0] * len(_KINDS)]
        """For each segment: its end, its kind, and the tokens of each kind up to there."""
        self._at = self._compacted = 0
        self._before: int | None = None
        self._lifetime_s = LIFETIME_S
        self._caches = False

    def charge(self, call: Call, shares: defaultdict[str, float]) -> None:
        """Add the cost of the next model call to the causes."""
        read, written = call.cache_read_tokens or 0, call.cache_write_tokens or 0
        fresh = call.input_tokens or 0
        size = fresh + read + written
        is_sum = call.stop_reason == SESSION_TOTAL
        parts = prices.cost_parts(
            call.model,
            call.timestamp,
            call.cost_usd,
            (fresh, read, written, call.cache_write_1h_tokens or 0, call.output_tokens or 0),
            searches=0 if call.cost_source == "recorded" else call.web_searches or 0,
            is_total=is_sum,
        )
        made = self._made.get(call.step)
        wasted = "output"
        if made and made.issubset(_WASTED):
            wasted = next(kind for kind in _WASTED if kind in made)
        shares[wasted] += parts.output
        shares["other"] += parts.other
        if not size or is_sum or call.input_in_step is not None:
            # Of several calls together: what of it was sent before can't be told from what is new.
            shares["carried_words"] += parts.cache_read
            shares["cache_write"] += parts.cache_write
            shares["input"] += parts.input
            return
        pause_s = 0.0
        if call.timestamp is not None:
            pause_s = (call.timestamp - (call.timestamp if self._before is None else self._before)) / _SECOND
            self._before = call.timestamp
        old, before, is_anew = self._grow(call.seq, size)
        if read:
            _charge(shares, parts.cache_read / read, self._upto(read))
        usd = parts.input + parts.cache_write
        if size <= read or not usd:
            shares["other"] += usd
        elif is_anew:
            shares["compaction"] += usd
        else:
            sent = _Sent(size, read, old, before)
            self._charge_rest(shares, parts, sent, is_late=pause_s > self._lifetime_s)
        self._caches = self._caches or bool(read or written)
        if call.cache_write_1h_tokens:
            self._lifetime_s = LONG_LIFETIME_S

    def _grow(self, seq: int, size: int) -> tuple[float, _Amounts, bool]:
        """Add what is new in this call. Returns tokens sent before, their kinds, and whether the context was reset."""
        is_first = len(self._ends) == 1
        passed = self._compacted
        while self._compacted < len(self._compactions) and self._compactions[self._compacted] < seq:
            self._compacted += 1
        is_anew = not is_first and (self._compacted > passed or size < SHRUNK * self._ends[-1])
        arrived: dict[int, int] = {}
        while self._at < len(self._results) and self._results[self._at].result_seq < seq:
            result = self._results[self._at]
            kind = _KINDS[result.kind]
            arrived[kind] = arrived.get(kind, 0) + result.result_tokens
            self._at += 1
        if is_first:
            self._add(_START, float(size))
            return 0.0, self._sums[0], False
        if is_anew:
            start = min(self._sums[1][_START], float(size))
            del self._ends[1:], self._kinds[1:], self._sums[1:]
            self._add(_START, start)
            self._add(_WORDS, size - start)
            return start, self._sums[1], True
        self._cut(size)
        old, before = self._ends[-1], self._sums[-1]
        growth = size - old
        total = sum(arrived.values())
        scale = min(1.0, growth / total) if total else 0.0
        for kind, tokens in arrived.items():
            self._add(kind, tokens * scale)
        self._add(_WORDS, growth - total * scale)
        return old, before, False

    def _add(self, kind: int, tokens: float) -> None:
        if tokens > 0:
            sums = self._sums[-1].copy()
            sums[kind] += tokens
            self._ends.append(self._ends[-1] + tokens)
            self._kinds.append(kind)
            self._sums.append(sums)

    def _cut(self, size: float) -> None:
        """Shorten a context that became a little smaller."""
        if size >= self._ends[-1]:
            return
        left = self._upto(size)
        at = bisect_left(self._ends, size)
        kind = self._kinds[at]
        del self._ends[at:], self._kinds[at:], self._sums[at:]
        self._ends.append(float(size))
        self._kinds.append(kind)
        self._sums.append(left)

    def _upto(self, tokens: float) -> _Amounts:
        """Tokens of each kind among the first `tokens`."""
        at = bisect_left(self._ends, tokens)
        if at >= len(self._ends):
            return self._sums[-1]
        if at == 0 or self._ends[at] == tokens:
            return self._sums[at]
        sums = self._sums[at - 1].copy()
        sums[self._kinds[at]] += tokens - self._ends[at - 1]
        return sums

    def _charge_rest(
        self, shares: defaultdict[str, float], parts: prices.CostParts, sent: _Sent, *, is_late: bool
    ) -> None:
        """Charge input not read from the cache. `is_late`: after the cache expired."""
        size, read, old, before = sent
        usd = parts.input + parts.cache_write
        a_token = usd / (size - read)
        if old < read:
            before = self._upto(read)
        elif old > read and self._caches:
            shares["rebuilt" if is_late else "missed"] += a_token * (old - read)
        elif old > read:
            carried = zip(before, self._upto(read), strict=True)
            _charge(shares, a_token, [until - of_cache for until, of_cache in carried])
        fresh = size - max(read, old)
        for cause in _WASTED:
            tokens = self._sums[-1][_KINDS[cause]] - before[_KINDS[cause]]
            if tokens:
                shares[cause] += a_token * tokens
                fresh -= tokens
        written = parts.cache_write / usd
        shares["cache_write"] += a_token * fresh * written
        shares["input"] += a_token * fresh * (1 - written)


def _charge(shares: defaultdict[str, float], usd_a_token: float, amounts: _Amounts) -> None:
    """Charge tokens that were sent before, each kind to its cause."""
    for cause, tokens in zip(_CAUSES_OF_KINDS, amounts, strict=True):
        if tokens:
            shares[cause] += usd_a_token * tokens


class _Sent(NamedTuple):
    """Tokens sent by a call: all, read from cache, sent before, and these by kind."""

    size: int
    read: int
    old: float
    before: _Amounts
