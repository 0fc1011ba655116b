"""Tokens and money of model calls: their sums, for sessions, signals, reports and exports, and each dollar's cause.

A model call pays for its input and its output; input was sent before (read from the cache, or again without it) or is
new. Tool results in a context are tracked call by call, so a result is charged each time it is sent
(design/findings.md#cost-by-cause).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from math import isnan
from operator import attrgetter
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from agentsignals.model import (
    ITERATION,
    NO_SUBAGENT,
    REPLAYED,
    SESSION_TOTAL,
    Edit,
    EventKind,
    Session,
    Step,
    ToolCall,
    prices,
)
from agentsignals.model.prices import USD_DIGITS
from agentsignals.words.text import estimate_tokens

FINAL_SHARE = 0.5
"""Below it, the output of a session whose agent may log usage in mid-stream is a lower bound
(design/formats.md#output-in-mid-stream)."""
VISIBLE_ERROR = (
    "characters / 4; in sessions with complete logs output is 3.2 times that (median) or 4.8 times (p90), because"
    " thinking is billed but seldom logged"
)
"""Error of the estimate from the visible text, over 58 sessions (design/formats.md#output-in-mid-stream)."""
_WRITTEN = frozenset(("text", "thinking"))


def total_of(counts: list[int]) -> int | None:
    """Return the sum; None for an empty list."""
    return sum(counts) if counts else None


def used_tokens(step: Step) -> bool:
    """Return whether a model call reports any tokens."""
    return bool(step.input_tokens or step.output_tokens or step.cache_read_tokens or step.cache_write_tokens)


def cost_of(steps: list[Step]) -> float | None:
    """Return the cost of model calls in USD: of those with a price, a lower bound where `unpriced_parts` names others.
    None where none that used tokens has a price, or none reports usage. No call at all costs nothing."""
    unpriced = [s for s in steps if s.cost_usd is None]
    if unpriced:
        silent = len(unpriced) == len(steps) and all(s.output_tokens is s.input_tokens is None for s in unpriced)
        if silent or (any(map(used_tokens, unpriced)) and not any(s.cost_usd for s in steps)):
            return None
    return usd_of(steps)


def usd_of(steps: Iterable[Step]) -> float:
    """Return the sum of the known costs in USD, rounded to the decimals of prices."""
    return round(math.fsum([s.cost_usd or 0.0 for s in steps]), USD_DIGITS)


class UsageTotals(Struct, frozen=True, gc=False, kw_only=True):
    """Tokens and money of model calls together: None where no call reports them; money also where one has no price."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None


def usage_totals(steps: list[Step]) -> UsageTotals:
    """Return the sums of model calls."""
    billed = [s for s in steps if s.output_tokens is not None or s.input_tokens is not None]
    return UsageTotals(
        input_tokens=total_of([n for s in billed if (n := s.input_tokens) is not None]),
        output_tokens=total_of([n for s in billed if (n := s.output_tokens) is not None]),
        cache_read_tokens=total_of([n for s in billed if (n := s.cache_read_tokens) is not None]),
        cache_write_tokens=total_of([n for s in billed if (n := s.cache_write_tokens) is not None]),
        cost_usd=cost_of(steps),
    )


def last_closing(steps: list[Step]) -> int:
    """Return the last step with the totals of a run, which include whatever calls before it lack; -1 without one."""
    closing = [s.step for s in steps if s.stop_reason == SESSION_TOTAL and s.output_tokens is not None]
    return max(closing, default=-1)


def final_share(steps: list[Step], closing: int = -1) -> float | None:
    """Return the share of model calls with usage that have a stop reason, or totals after them (`closing`, see
    `last_closing`); None when none has usage."""
    final = [
        s.stop_reason is not None or s.step < closing
        for s in steps
        if (s.output_tokens is not None or s.input_tokens is not None)
        and not (s.stop_reason or "").startswith(ITERATION)
    ]
    return sum(final) / len(final) if final else None


def is_lower_bound(session: Session) -> bool:
    """Return whether output tokens, and so the cost, were logged in mid-stream: the true ones are higher. For agents
    that log usage once an answer is complete, a missing stop reason means nothing. Main thread and subagents are tested
    apart: a long complete thread does not hide gaps of the other."""
    if "usage_logged_midway" not in session.conventions:
        return False
    closing = last_closing(session.steps)
    for of_subagents in (False, True):
        part = [s for s in session.steps if (s.thread not in NO_SUBAGENT) is of_subagents]
        share = final_share(part, closing)
        if share is not None and share < FINAL_SHARE:
            return True
    return False


def visible_output_tokens(session: Session) -> int | None:
    """Estimate output tokens from the visible text, thinking and arguments (`VISIBLE_ERROR`), where the logged output
    is a lower bound; None where it is exact."""
    if not is_lower_bound(session):
        return None
    chars = sum(e.n_chars for e in session.events if e.kind in _WRITTEN and e.thread != REPLAYED)
    chars += sum(len(c.arguments) for c in session.tool_calls if c.thread != REPLAYED)
    return max(estimate_tokens(chars), sum(s.output_tokens or 0 for s in session.steps))


def cost_source(steps: list[Step]) -> str | None:
    """Return the source of costs: `recorded`, a version of the price table, or both, joined by ` + `."""
    return " + ".join(sorted({s.cost_source for s in steps if s.cost_source is not None}, reverse=True)) or None


def replaced_usd(steps: list[Step]) -> float | None:
    """Return the dollars that the agent recorded and that are not believed; None where all are."""
    amounts = [s.replaced_cost_usd for s in steps if s.replaced_cost_usd is not None]
    return round(math.fsum(amounts), USD_DIGITS) if amounts else None


def unpriced_parts(steps: list[Step]) -> str | None:
    """Return what the cost of model calls (`cost_of`) leaves out, models without a price among it, so that it is too
    low; None where nothing is missing, or no cost is known."""
    parts = {s.unpriced for s in steps if s.unpriced is not None}
    if any(s.cost_usd for s in steps):
        parts |= {s.model or "unnamed models" for s in steps if s.cost_usd is None and used_tokens(s)}
    return "; ".join(sorted(parts)) or None


Cause = Literal[
    "subagents", "compaction", "rebuilt", "missed", "failed", "repeated", "reread", "carried_results",
    "carried_start", "carried_words", "cache_write", "input", "output", "other",
]  # fmt: skip
"""In order of precedence: a dollar that two causes claim belongs to the first."""
ResultKind = Literal["result", "failed", "repeated", "reread"]
LIFETIME_S, LONG_LIFETIME_S = 300, 3600
"""Lifetime of an unused prompt cache: five minutes, or one hour for long-lived entries
(https://docs.claude.com/en/docs/build-with-claude/prompt-caching)."""
SHRUNK = 0.5
"""A context that shrinks below this share was cleared or compacted, whether or not the trace says so."""

_COMPACTED = f"{ITERATION}compaction"
"""Stop reason of the call that wrote a compaction's summary."""
_SECOND, _DAY = 1_000_000, 86_400_000_000
_ENDED_WELL = frozenset(("ok", "unknown"))
_NEVER_REPEATED = frozenset(("plan", "task", "ask", "edit"))


class Charge(Struct, gc=False):
    """Part of a session's bill: of one model, day and cause. The charges of a priced session sum to its cost."""

    session_id: str
    model: str | None
    day: str | None
    """Day of the model calls in UTC; NULL where they have no time."""
    cause: Cause
    """First of the causes that claim it (design/findings.md#cost-by-cause)."""
    cost_usd: float
    tokens: int
    """Tokens that it paid for; an estimate where tool results are involved, 0 for searches and bare sums of money."""
    calls: int
    """Model calls with a part in it."""


class RepeatedCall(Struct, gc=False):
    """A tool call whose result the context already had: equal arguments, a result of equal length, no edit between."""

    session_id: str
    thread: str
    seq: int
    result_seq: int
    """Event of its result."""
    name: str
    path: str | None
    """File it is about."""
    result_tokens: int
    """Length of the result, estimated: characters / 4."""
    kind: Literal["repeated", "reread"]
    """`reread`: a read of a file that had not changed; `repeated`: any other call."""


Act = Literal["settings", "resume", "interruption", "skill", "prompt"]
After = Literal["model", Act, "work"]
"""Event between two model calls, in order of precedence: another model, changed settings, a resumed session, an
interruption, a skill or slash command, a prompt; or only the agent's own work."""
_ACT_OF: dict[EventKind, Act] = {"settings_change": "settings", "resume": "resume", "interrupt": "interruption"}
LEAST_LOST = 1_000
"""Tokens up to which a lost cache is not told: providers cache a prompt in blocks, and leave its end out."""


class CacheLoss(Struct, gc=False):
    """A model call that sent again what its thread's cache had held, and what came before it."""

    session_id: str
    thread: str
    seq: int
    step: int
    model: str | None
    cause: Literal["rebuilt", "missed"]
    """`rebuilt`: after a pause longer than the cache lives; `missed`: within its life."""
    after: After
    """Event between this call and the one before: `model` (another one), `settings` (of thinking or effort),
    `resume`, `interruption`, `skill` (or a slash command), `prompt`; `work`: nothing of these."""
    tokens: int
    """Tokens that were sent again."""
    cost_usd: float
    read_usd: float | None
    """Cost of reading them from the cache; NULL where its price is not known."""
    pause_s: float
    """Time since the call before."""
    lives_s: int
    """Seconds that the cache lives unused: 3600 once something was written for an hour, else 300."""
    longer_usd: float | None = None
    """Extra cost of the session's cache writes with a life of an hour, without those that it would have
    spared; NULL where they had one, or a price is not known."""


class Bill(NamedTuple):
    """The bill of a session by cause, the calls that it paid for twice, and the caches that it lost."""

    charges: list[Charge]
    repeats: list[RepeatedCall]
    losses: list[CacheLoss]


class Result(NamedTuple):
    """A tool result that entered the context."""

    call: ToolCall
    seq: int
    """Event of the result."""
    tokens: int
    kind: ResultKind


def session_bill(session: Session, *, is_priced: bool, is_subagents: bool) -> Bill:
    """Return the bill of a session. `is_priced`: its cost is known, else it has no charges. `is_subagents`: the whole
    session is a subagent's."""
    session_id = session.session_id
    results = tool_results(session.tool_calls, session.edits)
    repeats = [
        RepeatedCall(session_id, call.thread, call.seq, seq, call.name, call.path, tokens, kind)
        for call, seq, tokens, kind in results
        if kind in ("repeated", "reread")
    ]
    compactions = [(event.thread, event.seq) for event in session.events if event.kind == "compaction"]
    steps = [step for step in session.steps if step.cost_usd] if is_priced else []
    losses: list[CacheLoss] = []
    charges = cost_by_cause(session_id, steps, results, compactions, is_subagents=is_subagents, losses=losses)
    if losses:
        _name_what_came_before(session, losses)
        # What a life of an hour would have cost more for what was written to caches that live for minutes, and would
        # still have been written.
        held = {loss.step: loss.tokens for loss in losses if LIFETIME_S < loss.pause_s <= LONG_LIFETIME_S}
        longer = 0.0
        for step in steps:
            for_minutes = (step.cache_write_tokens or 0) - (step.cache_write_1h_tokens or 0) - held.get(step.step, 0)
            if for_minutes > 0 and step.thread in NO_SUBAGENT:
                terms, factor, _ = prices.step_charge(step)
                longer += for_minutes * (terms.cache_write_1h - terms.cache_write) * factor
        for loss in losses:
            loss.longer_usd = longer if loss.lives_s == LIFETIME_S and not isnan(longer) else None
    return Bill(charges, repeats, losses)


def _name_what_came_before(session: Session, losses: Sequence[CacheLoss]) -> None:
    """Set what came between each loss and the call before it. `after` is `model` already where another one answered."""
    acts: list[tuple[int, Act]] = [
        (event.seq, _ACT_OF[event.kind]) for event in session.events if event.kind in _ACT_OF
    ]
    acts += [(turn.seq, "skill" if turn.kind == "slash_command" else "prompt") for turn in session.turns]
    acts += [(call.seq, "skill") for call in session.tool_calls if call.purpose == "skill"]
    acts.sort()
    begins = {step.step: step.seq for step in session.steps}
    before: dict[int, int] = {}
    last: dict[str, int] = {}
    for step in session.steps:
        before[step.step] = last.get(step.thread, -1)
        if not step.is_beside:
            last[step.thread] = step.seq
    for loss in losses:
        between = acts[bisect_left(acts, (before[loss.step],)) : bisect_left(acts, (begins[loss.step],))]
        if loss.after != "model" and between:
            found = {act for _, act in between}
            loss.after = next(act for act in get_args(Act) if act in found)


def cost_by_cause(  # noqa: PLR0913  (the parts of a session that are charged)
    session_id: str,
    steps: Sequence[Step],
    results: Sequence[Result],
    compactions: Sequence[tuple[str, int]],
    *,
    is_subagents: bool = False,
    losses: list[CacheLoss] | None = None,
) -> list[Charge]:
    """Return the charges of a session's priced model calls. `results`: as `tool_results` returns them. `compactions`:
    thread and event of each. `is_subagents`: the whole session is a subagent's. `losses`: gets the lost caches."""
    sums: dict[tuple[str | None, str | None], _Shares] = {}
    for thread, of_thread in groupby(sorted(steps, key=attrgetter("thread", "step")), attrgetter("thread")):
        is_other = is_subagents or thread not in NO_SUBAGENT
        context = _Context(
            [] if is_other else [result for result in results if result.call.thread == thread],
            [] if is_other else sorted(seq for of, seq in compactions if of == thread),
            session_id,
            losses,
        )
        for step in of_thread:
            key = step.model, None if step.timestamp is None else _day(step.timestamp // _DAY)
            shares = sums.get(key)
            if shares is None:
                shares = sums[key] = _Shares()
            shares.n_calls += 1
            if is_other:
                sent = (step.input_tokens or 0) + (step.cache_read_tokens or 0) + (step.cache_write_tokens or 0)
                shares.add("subagents", step.cost_usd or 0.0, sent + (step.output_tokens or 0))
            else:
                context.charge(step, shares)
    return [
        Charge(session_id, model, day, cause, usd, round(shares.tokens[cause]), shares.calls[cause])
        for (model, day), shares in sums.items()
        for cause, usd in shares.usd.items()
        if usd
    ]


@lru_cache(maxsize=4096)
def _day(number: int) -> str | None:
    """Return the date of a day, counted from 1970; None beyond the calendar's years."""
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=number):%Y-%m-%d}"
    except OverflowError:
        return None


def tool_results(calls: Sequence[ToolCall], edits: Sequence[Edit]) -> list[Result]:
    """Return the results of a session's calls by thread, in the order in which they came.

    A result was there already where a call before had equal arguments and a result of equal length, and no edit of the
    file (or of any, if the call reads no file) is seen between the two.
    """
    before: dict[tuple[str, str, str, bool], ToolCall] = {}
    edited: list[tuple[int, str]] | None = None
    made: list[Result] = []
    for call in sorted(calls, key=attrgetter("seq")):
        tokens, result_seq = call.result_tokens, call.result_seq
        if tokens is None or result_seq is None:
            continue
        ended_well = call.status in _ENDED_WELL
        key = call.thread, call.name, call.arguments, ended_well
        last = before.get(key)
        before[key] = call
        kind: ResultKind = "failed" if call.status == "error" else "result"
        if ended_well and last is not None and last.result_tokens == tokens:
            if edited is None:
                edited = sorted((edit.seq, edit.path) for edit in edits)
            between = edited[bisect_left(edited, (last.seq + 1,)) : bisect_left(edited, (call.seq,))]
            if call.class_ == "read" and call.path is not None and all(path != call.path for _, path in between):
                kind = "reread"
            elif not between and call.class_ not in _NEVER_REPEATED and call.purpose != "poll":
                kind = "repeated"
        made.append(Result(call, result_seq, tokens, kind))
    made.sort(key=lambda result: (result.call.thread, result.seq, result.call.seq))
    return made


class _Shares:
    """Cost by cause of the calls of one model on one day."""

    def __init__(self) -> None:
        self.usd: defaultdict[Cause, float] = defaultdict(float)
        self.tokens: defaultdict[Cause, float] = defaultdict(float)
        self.calls: defaultdict[Cause, int] = defaultdict(int)
        self.n_calls = 0
        self._last: dict[Cause, int] = {}

    def add(self, cause: Cause, usd: float, tokens: float) -> None:
        if usd:
            self.usd[cause] += usd
            self.tokens[cause] += tokens
            if self._last.get(cause) != self.n_calls:
                self._last[cause] = self.n_calls
                self.calls[cause] += 1


_CAUSE_OF: dict[str, Cause] = {
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
_WASTED: tuple[Cause, ...] = ("failed", "repeated", "reread")
"""Kinds whose first sending is charged to them too, in order of precedence."""
_START, _WORDS = _KINDS["start"], _KINDS["words"]

_Amounts = list[float]
"""Tokens by kind."""


class _Context:
    """The input of a thread's model calls, as consecutive segments of one kind each."""

    def __init__(
        self,
        results: Sequence[Result],
        compactions: Sequence[int],
        session_id: str = "",
        losses: list[CacheLoss] | None = None,
    ) -> None:
        self._results, self._compactions = results, compactions
        self._session_id, self._losses = session_id, losses
        self._model: str | None = None
        self._made: dict[int | None, set[str]] = {}
        for result in results:
            self._made.setdefault(result.call.step, set()).add(result.kind)
        self._ends: list[float] = [0.0]
        self._kinds: list[int] = [_START]
        self._sums: list[_Amounts] = [[0.0] * len(_KINDS)]
        """For each segment: its end, its kind, and the tokens of each kind up to there."""
        self._at = self._compacted = 0
        self._before: int | None = None
        self._lifetime_s = LIFETIME_S
        self._caches = False

    def charge(self, step: Step, shares: _Shares) -> None:
        """Add the cost of the next model call to the causes."""
        read, written = step.cache_read_tokens or 0, step.cache_write_tokens or 0
        fresh, output = step.input_tokens or 0, step.output_tokens or 0
        size = fresh + read + written
        is_beside = step.is_beside
        parts = prices.cost_parts(
            step.model,
            step.timestamp,
            step.cost_usd or 0.0,
            (fresh, read, written, step.cache_write_1h_tokens or 0, output),
            searches=0 if step.cost_source == "recorded" else step.web_searches or 0,
            is_total=step.stop_reason == SESSION_TOTAL,
        )
        made = self._made.get(step.step)
        wasted: Cause = "output"
        if made and made.issubset(_WASTED):
            wasted = next(kind for kind in _WASTED if kind in made)
        shares.add(wasted, parts.output, output)
        shares.add("other", parts.other, 0)
        if step.stop_reason == _COMPACTED:
            shares.add("compaction", parts.input + parts.cache_read + parts.cache_write, size)
            return
        if not size or is_beside or step.input_in_step is not None:
            # Of several calls together: what of it was sent before can't be told from what is new.
            shares.add("carried_words", parts.cache_read, read)
            shares.add("cache_write", parts.cache_write, written)
            shares.add("input", parts.input, fresh)
            return
        pause_s = 0.0
        if step.timestamp is not None:
            pause_s = (step.timestamp - (step.timestamp if self._before is None else self._before)) / _SECOND
            self._before = step.timestamp
        old, before, is_anew = self._grow(step.seq, size)
        if read:
            _charge(shares, parts.cache_read / read, self._upto(read))
        usd = parts.input + parts.cache_write
        if size <= read or not usd:
            shares.add("other", usd, 0)
        elif is_anew:
            shares.add("compaction", usd, size - read)
        else:
            self._charge_rest(shares, parts, (size, read, old, before), is_late=pause_s > self._lifetime_s)
            if self._losses is not None and self._caches and old - read > LEAST_LOST:
                terms, factor, _ = prices.step_charge(step)
                read_usd = (old - read) * terms.cache_read * factor
                loss = CacheLoss(
                    session_id=self._session_id,
                    thread=step.thread,
                    seq=step.seq,
                    step=step.step,
                    model=step.model,
                    cause="rebuilt" if pause_s > self._lifetime_s else "missed",
                    after="model" if step.model != self._model else "work",
                    tokens=round(old - read),
                    cost_usd=usd / (size - read) * (old - read),
                    read_usd=None if isnan(read_usd) else read_usd,
                    pause_s=pause_s,
                    lives_s=self._lifetime_s,
                )
                self._losses.append(loss)
        self._model = step.model
        self._caches = self._caches or bool(read or written)
        if step.cache_write_1h_tokens:
            self._lifetime_s = LONG_LIFETIME_S

    def _grow(self, seq: int, size: int) -> tuple[float, _Amounts, bool]:
        """Add what is new in this call. Returns tokens sent before, their kinds, and whether the context was reset."""
        is_first = len(self._ends) == 1
        passed = self._compacted
        while self._compacted < len(self._compactions) and self._compactions[self._compacted] < seq:
            self._compacted += 1
        is_anew = not is_first and (self._compacted > passed or size < SHRUNK * self._ends[-1])
        arrived: dict[int, int] = {}
        while self._at < len(self._results) and self._results[self._at].seq < seq:
            result = self._results[self._at]
            kind = _KINDS[result.kind]
            arrived[kind] = arrived.get(kind, 0) + result.tokens
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
        self, shares: _Shares, parts: prices.CostParts, sent: tuple[int, int, float, _Amounts], *, is_late: bool
    ) -> None:
        """Charge input not read from the cache. `sent`: tokens in all, read from the cache, sent before, and these by
        kind. `is_late`: after the cache expired."""
        size, read, old, before = sent
        usd = parts.input + parts.cache_write
        a_token = usd / (size - read)
        if old < read:
            before = self._upto(read)
        elif old > read and self._caches:
            shares.add("rebuilt" if is_late else "missed", a_token * (old - read), old - read)
        elif old > read:
            carried = zip(before, self._upto(read), strict=True)
            _charge(shares, a_token, [until - of_cache for until, of_cache in carried])
        fresh = size - max(read, old)
        for cause in _WASTED:
            tokens = self._sums[-1][_KINDS[cause]] - before[_KINDS[cause]]
            if tokens:
                shares.add(cause, a_token * tokens, tokens)
                fresh -= tokens
        written = parts.cache_write / usd
        shares.add("cache_write", a_token * fresh * written, fresh * written)
        shares.add("input", a_token * fresh * (1 - written), fresh * (1 - written))


def _charge(shares: _Shares, usd_a_token: float, amounts: _Amounts) -> None:
    """Charge tokens that were sent before, each kind to its cause."""
    for cause, tokens in zip(_CAUSES_OF_KINDS, amounts, strict=True):
        if tokens:
            shares.add(cause, usd_a_token * tokens, tokens)
