"""Prices each model call of a period again with one thing changed.

A scenario changes tokens or models of calls and leaves the rest as it was logged. `prices.apply` prices both, so a
scenario that changes nothing costs what the calls cost. docs/what-if.md has the measured error of each assumption.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from itertools import groupby
from math import fsum
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import UsageError
from agentsignals.model import NO_SUBAGENT, Session, Step, prices
from agentsignals.model.prices import same_models
from agentsignals.model.registry import did_you_mean
from agentsignals.questions.question import cut, formatted, times
from agentsignals.questions.sql import IS_COST_BOUND, IS_SUBAGENTS
from agentsignals.stats.intervals import median, wilson
from agentsignals.store import Store
from agentsignals.views.usage import LIFETIME_S, LONG_LIFETIME_S, SHRUNK

Work = Literal["all", "subagents", "no-edits"]
"""Kinds of work: every call, those of subagents, or those of sessions that changed no file."""
SUMMARY_TOKENS = (3_200, 19_200)
"""Tokens that seven logged compactions left in a context beyond its start: the median, and the most."""


class Pauses(NamedTuple):
    """Logged pauses of five minutes to an hour of which something holds."""

    k: int
    n: int

    @property
    def share(self) -> float:
        return self.k / self.n

    @property
    def low(self) -> float:
        """The low end of the share's interval."""
        return (wilson(self.k, self.n) or (0.0, 1.0))[0]


SURVIVED = Pauses(55, 58)
"""One-hour caches survived them."""
EXPIRED = Pauses(34, 35)
"""Five-minute caches did not."""
SAME_TOKENS = (0.71, 2.35)
"""Cost of a prompt after five real changes of model, as a multiple of what the same tokens would have cost."""
CONTEXT_TOKENS, FEWEST_CONTEXT_TOKENS = 100_000, 40_000
"""The usual limit of a context, and the least one: the largest summary has to fit beside a thread's start."""
_LARGEST = 3
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens")
_CALLS = f"""
    SELECT session_id, thread, seq, step, steps.model, epoch_us(timestamp) AS timestamp, stop_reason, turn, message_id,
        steps.input_tokens, steps.output_tokens, steps.cache_read_tokens, steps.cache_write_tokens,
        cache_write_1h_tokens, steps.cost_usd, steps.cost_source, input_in_step, speed, service_tier, inference_geo,
        web_searches, s.agent, s.started_at, s.n_edits, s.is_subagents, s.is_bound, lost.tokens AS lost
    FROM steps
    JOIN (SELECT session_id, agent, started_at, n_edits, {IS_SUBAGENTS} AS is_subagents,
            {IS_COST_BOUND} AS is_bound
        FROM sessions) AS s USING (session_id)
    LEFT JOIN (SELECT session_id, step, any_value(tokens) AS tokens FROM cache_losses
        WHERE cause = 'rebuilt' AND lives_s = {LIFETIME_S} AND pause_s <= {LONG_LIFETIME_S} GROUP BY ALL) AS lost
        USING (session_id, step)
    ORDER BY session_id, thread, step
"""
_OF_SESSION = ("session_id", "agent", "started_at", "n_edits", "is_subagents", "is_bound", "lost")


class Moved(Struct, frozen=True, kw_only=True):
    """A session whose cost a scenario changes."""

    session_id: str
    cost_usd: float
    then_usd: float | None
    """None with a plan, whose price is no session's."""


class Scenario(Struct, frozen=True, kw_only=True):
    """The cost of the period if one thing had been otherwise."""

    id: str
    name: str
    cost_usd: float
    low_usd: float
    high_usd: float
    calls: int
    """Model calls whose cost it changes."""
    calls_usd: float
    """Cost of these calls."""
    break_even: float | None = None
    """With another model: how many times as many tokens would cost what the calls cost."""
    exact: str
    assumed: str
    """Empty where nothing is assumed."""
    unpriced: int = 0
    """Calls that it would change but that have no list price then; they keep their cost."""
    largest: list[Moved]
    """Sessions whose cost it changes most; with a plan those that cost most without it."""


class WhatIf(Struct, frozen=True, kw_only=True):
    """A period's cost, and what it would have been."""

    first: str
    last: str
    """Local days of its first and last session."""
    sessions: int
    calls: int
    unpriced: int
    """Calls without a price, which no figure holds."""
    recorded: int
    """Calls whose dollars the agent recorded. What changes of them is scaled from list prices to those dollars."""
    cost_usd: float
    at_least: bool
    scenarios: list[Scenario]
    not_asked: dict[str, str]
    """Scenarios that are not among these, with the reason."""


class _Call(NamedTuple):
    step: Step
    of: Mapping[str, Any]
    """Columns of its session, and `lost`: tokens sent again after a pause that a cache of an hour survives."""

    @property
    def is_main(self) -> bool:
        return self.step.thread in NO_SUBAGENT and not self.of["is_subagents"]

    def is_of(self, work: Work) -> bool:
        return {"all": True, "subagents": not self.is_main, "no-edits": not self.of["n_edits"]}[work]


Changed = dict[int, Step]
"""Calls as they would have been, by their place among all."""


class _Ledger:
    """The priced calls of a period."""

    def __init__(self, calls: Sequence[_Call]) -> None:
        self.calls = calls
        self.usd = [call.step.cost_usd or 0.0 for call in calls]
        self.total = fsum(self.usd)
        self._listed = _list_prices([call.step for call in calls])

    def then(self, changed: Changed, more: Changed | None = None) -> tuple[dict[int, float], int]:
        """Return what these calls would have cost, and how many have no price now or then. Recorded dollars change in
        the proportion of list prices. `more`: a further call after some of them."""
        further = dict(zip(more, _list_prices(list(more.values())), strict=True)) if more else {}
        made: dict[int, float] = {}
        for (n, _), usd in zip(changed.items(), _list_prices(list(changed.values())), strict=True):
            listed, extra = self._listed[n], further.get(n, 0.0)
            if usd is not None and listed is not None and extra is not None:
                made[n] = (usd + extra) * (self.usd[n] / listed if listed and self.usd[n] != listed else 1.0)
        return made, len(changed) - len(made)

    def total_with(self, then: Mapping[int, float]) -> float:
        return self.total + fsum(usd - self.usd[n] for n, usd in then.items())

    def by_session(self, then: Mapping[int, float]) -> dict[str, float]:
        """Return the cost of each session with these costs of calls."""
        sums: defaultdict[str, float] = defaultdict(float)
        for n, call in enumerate(self.calls):
            sums[call.of["session_id"]] += then.get(n, self.usd[n])
        return sums

    def threads(self) -> Iterator[list[tuple[int, _Call]]]:
        """Yield the main thread's calls of each session that have a prompt of their own, with their places."""
        own = [
            (n, call)
            for n, call in enumerate(self.calls)
            if call.is_main and not call.step.is_beside and call.step.input_in_step is None and _prompt(call.step)
        ]
        for _, of in groupby(own, lambda each: (each[1].of["session_id"], each[1].step.thread)):
            yield list(of)

    def scenario(  # noqa: PLR0913  (the parts of a scenario)
        self,
        id: str,  # noqa: A002  (the scenario's field)
        name: str,
        then: Mapping[int, float],
        ends: tuple[float, float],
        *,
        exact: str,
        assumed: str,
        unpriced: int = 0,
        break_even: float | None = None,
    ) -> Scenario:
        now, otherwise = self.by_session({}), self.by_session(then)
        moved = [Moved(session_id=s, cost_usd=a, then_usd=otherwise[s]) for s, a in now.items() if a != otherwise[s]]
        return Scenario(
            id=id,
            name=name,
            cost_usd=self.total_with(then),
            low_usd=min(ends),
            high_usd=max(ends),
            calls=len(then),
            calls_usd=fsum(self.usd[n] for n in then),
            break_even=break_even,
            exact=exact,
            assumed=assumed,
            unpriced=unpriced,
            largest=nlargest(_LARGEST, moved, key=lambda m: (abs((m.then_usd or 0.0) - m.cost_usd), m.session_id)),
        )


def what_if(  # noqa: PLR0913  (the options of the verb)
    store: Store,
    *,
    context: str = "product",
    model: str | None = None,
    work: Work = "no-edits",
    subagents: str | None = None,
    context_tokens: int = CONTEXT_TOKENS,
    subscription: float | None = None,
) -> WhatIf:
    """Return what the sessions of a store would have cost. `model` is for the calls of `work`, `subagents` for those of
    subagents; without one it is the cheapest that the same agent used. `context_tokens`: the longest prompt.
    `subscription`: USD a month. UsageError for a model without a list price."""
    from agentsignals.store.query import rows  # noqa: PLC0415

    for name in filter(None, (model, subagents)):
        if prices.cost_usd(name, 1, 1) is None:
            near = did_you_mean(name, prices.table().models)
            raise UsageError(f"No list price of the model {name!r} is known.", near or "Add it to prices.toml.")
    names, values = rows(store, _CALLS, context)
    every: list[_Call] = []
    for value in values:
        row = dict(zip(names, value, strict=True))
        of = {name: row.pop(name) for name in _OF_SESSION}
        every.append(_Call(Step(**row), of))
    started = [
        call.of["started_at"].replace(tzinfo=UTC).astimezone() for call in every if call.of["started_at"] is not None
    ]
    ledger = _Ledger([call for call in every if call.step.cost_usd is not None])
    made: list[Scenario] = []
    not_asked: dict[str, str] = {}
    is_one = work == "subagents" and model == subagents
    for scenario in (
        _one_hour(ledger),
        _five_minutes(ledger),
        _other_model(ledger, "subagents", subagents, "subagents-model"),
        *(() if is_one else (_other_model(ledger, work, model, "model"),)),
        _context_limit(ledger, context_tokens),
        _subscription(ledger, subscription, started),
    ):
        if isinstance(scenario, Scenario):
            made.append(scenario)
        else:
            not_asked |= scenario
    return WhatIf(
        first=f"{min(started):%Y-%m-%d}" if started else "",
        last=f"{max(started):%Y-%m-%d}" if started else "",
        sessions=len({call.of["session_id"] for call in every}),
        calls=len(every),
        unpriced=sum(call.step.cost_usd is None and bool(_prompt(call.step)) for call in every),
        recorded=sum(call.step.cost_source == "recorded" for call in ledger.calls),
        cost_usd=ledger.total,
        at_least=any(call.of["is_bound"] for call in every),
        scenarios=made,
        not_asked=not_asked,
    )


def _list_prices(steps: Sequence[Step]) -> list[float | None]:
    bare = [replace(step, cost_usd=None, cost_source=None, unpriced=None) for step in steps]
    prices.apply(Session(session_id="", context="product", format="", agent="", artifact_id="", steps=bare))
    return [step.cost_usd for step in bare]


def _sells_hours(model: str | None) -> bool:
    """Return whether a cache of an hour has a price of its own."""
    return prices.cost_usd(model, 0, 0, 0, 1, cache_write_1h_tokens=1) is not None


def _prompt(step: Step) -> int:
    return (step.input_tokens or 0) + (step.cache_read_tokens or 0) + (step.cache_write_tokens or 0)


def _from_cache(step: Step, tokens: int) -> Step:
    """Return a call with so many more of its tokens read from the cache: of those written, then of the others."""
    written = min(tokens, step.cache_write_tokens or 0)
    fresh = min(tokens - written, step.input_tokens or 0)
    return replace(
        step,
        cache_write_tokens=(step.cache_write_tokens or 0) - written,
        cache_write_1h_tokens=max(0, (step.cache_write_1h_tokens or 0) - written),
        input_tokens=(step.input_tokens or 0) - fresh,
        cache_read_tokens=(step.cache_read_tokens or 0) + written + fresh,
    )


def _one_hour(ledger: _Ledger) -> Scenario | dict[str, str]:
    lost, spared = {}, {}
    for n, call in enumerate(ledger.calls):
        minutes = (call.step.cache_write_tokens or 0) - (call.step.cache_write_1h_tokens or 0)
        if call.is_main and (minutes > 0 or call.of["lost"]) and _sells_hours(call.step.model):
            lost[n] = replace(call.step, cache_write_1h_tokens=call.step.cache_write_tokens)
            spared[n] = _from_cache(lost[n], call.of["lost"] or 0)
    if not lost:
        return {"one-hour-cache": "no call wrote to a five-minute cache of a maker that sells hours"}
    (worst, unpriced), (best, _) = ledger.then(lost), ledger.then(spared)
    then, ends = _between(ledger, worst, best, SURVIVED)
    pauses = sum(bool(ledger.calls[n].of["lost"]) for n in lost)
    return ledger.scenario(
        "one-hour-cache", "a one-hour cache", then, ends, unpriced=unpriced,
        exact=f"prices and tokens of the writes; {times(pauses, 'pause')} of 5 min to 1 h that lost a cache",
        assumed=_of_pauses(pauses, SURVIVED, "keep"),
    )  # fmt: skip


def _five_minutes(ledger: _Ledger) -> Scenario | dict[str, str]:
    kept: Changed = {}
    expired: Changed = {}
    pauses = 0
    for thread in ledger.threads():
        before: int | None = None
        lives_long = False
        for n, call in thread:
            step = call.step
            was, before = before, step.timestamp if step.timestamp is not None else before
            pause_s = 0.0 if was is None or step.timestamp is None else (step.timestamp - was) / 1e6
            dies = lives_long and LIFETIME_S < pause_s <= LONG_LIFETIME_S and bool(step.cache_read_tokens)
            if step.cache_write_1h_tokens or dies:
                pauses += dies
                kept[n] = replace(step, cache_write_1h_tokens=0)
                read = step.cache_read_tokens or 0
                written = (step.cache_write_tokens or 0) + read
                expired[n] = replace(kept[n], cache_read_tokens=0, cache_write_tokens=written) if dies else kept[n]
            lives_long = lives_long or bool(step.cache_write_1h_tokens)
    if not kept:
        return {"five-minute-cache": "no call wrote to a one-hour cache"}
    (best, unpriced), (worst, _) = ledger.then(kept), ledger.then(expired)
    then, ends = _between(ledger, best, worst, EXPIRED)
    return ledger.scenario(
        "five-minute-cache", "a five-minute cache", then, ends, unpriced=unpriced,
        exact=f"prices and tokens of the writes; {times(pauses, 'pause')} of 5 min to 1 h after which a cache was read",
        assumed=_of_pauses(pauses, EXPIRED, "lose"),
    )  # fmt: skip


def _between(
    ledger: _Ledger, none: Mapping[int, float], every: Mapping[int, float], seen: Pauses
) -> tuple[dict[int, float], tuple[float, float]]:
    """Return the calls' costs where a share of the pauses changes, and the totals of the bounds: the lower share, and
    all of them."""

    def at(share: float) -> dict[int, float]:
        return {n: usd + share * (every.get(n, usd) - usd) for n, usd in none.items()}

    return at(seen.share), (ledger.total_with(at(seen.low)), ledger.total_with(at(1.0)))


def _of_pauses(pauses: int, seen: Pauses, do: str) -> str:
    return f"{seen.share:.0%} of such pauses {do} the cache (bounds: {seen.low:.0%} and all)" if pauses else ""


def _other_model(ledger: _Ledger, work: Work, model: str | None, id: str) -> Scenario | dict[str, str]:  # noqa: A002  (the scenario's field)
    words = {"all": "every call", "subagents": "subagents", "no-edits": "sessions without an edit"}[work]
    chosen = [(n, call) for n, call in enumerate(ledger.calls) if call.is_of(work)]
    if not chosen:
        return {id: f"no priced call is of {words}"}
    models = {call.step.model for call in ledger.calls if call.step.model} | ({model} if model else set())
    same = same_models(models)
    cheapest = {} if model else _cheapest(ledger.calls, [call for _, call in chosen])
    changed: Changed = {}
    for n, call in chosen:
        now = call.step.model
        name = model or cheapest.get((call.of["agent"], now), now)
        if name is not None and (now is None or same[name] != same[now]):
            changed[n] = _with_model(call.step, name)
    if not changed:
        used = model or "the cheapest model"
        option = "--to" if id == "model" else "--subagents"
        return {id: f"{words} already {'uses' if work == 'all' else 'use'} {used}; choose another with {option} MODEL"}
    then, unpriced = ledger.then(changed)
    before, after = fsum(ledger.usd[n] for n in then), fsum(then.values())
    rest = ledger.total - before
    named = sorted({changed[n].model or "" for n in then})
    few = f" ({cut(', '.join(named), 100)})" if len(named) > 1 else ""
    name = f"{'the cheapest model' if few else named[0]} for {words}"
    return ledger.scenario(
        id, name, then, (rest + SAME_TOKENS[0] * after, rest + SAME_TOKENS[1] * after),
        unpriced=unpriced, break_even=before / after if after else None,
        exact=f"list prices of {prices.DATE}{few} and tokens as logged",
        assumed=f"the same tokens, and work as good (bounds: five real changes of model cost {SAME_TOKENS[0]:g} to"
        f" {SAME_TOKENS[1]:g} times that)",
    )  # fmt: skip


def _cheapest(calls: Sequence[_Call], chosen: Sequence[_Call]) -> dict[tuple[str, str | None], str]:
    """Return the cheapest model that each agent used, by agent and present model, where it is cheaper than the present
    one. `chosen`: the calls of which an average one is priced."""
    used: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for agent in {call.of["agent"] for call in chosen}:
        steps = [call.step for call in chosen if call.of["agent"] == agent]
        amounts = {name: round(fsum(getattr(step, name) or 0 for step in steps) / len(steps)) for name in _TOKENS}
        for name in {call.step.model for call in calls if call.of["agent"] == agent and call.step.model}:
            (usd,) = _list_prices([_with_model(replace(steps[0], **amounts), name)])
            if usd is not None:
                used[agent][name] = usd
    made: dict[tuple[str, str | None], str] = {}
    for agent, models in used.items():
        least = min(models, key=lambda name: (models[name], name))
        made |= {(agent, name): least for name, usd in models.items() if models[least] < usd}
    return made


def _with_model(step: Step, model: str) -> Step:
    """Return a call of another model, at the prices of the table's day. What that model has no price for is billed as
    plain input: makers without a price of cache writes charge none."""
    read, written, hour = (
        n or 0 for n in (step.cache_read_tokens, step.cache_write_tokens, step.cache_write_1h_tokens)
    )
    fresh = step.input_tokens
    if written and prices.cost_usd(model, 0, 0, 0, 1) is None:
        fresh, written, hour = (fresh or 0) + written, 0, 0
    if hour and not _sells_hours(model):
        hour = 0
    if read and prices.cost_usd(model, 0, 0, 1) is None:
        fresh, read = (fresh or 0) + read, 0
    return replace(
        step, model=model, timestamp=None, input_tokens=fresh, cache_read_tokens=read, cache_write_tokens=written,
        cache_write_1h_tokens=hour, speed=None, service_tier=None, inference_geo=None,
    )  # fmt: skip


class _Limited(NamedTuple):
    """Calls of threads that are compacted before a prompt exceeds a limit."""

    changed: Changed
    compactions: Changed
    """Calls that write the summaries, each by the call before it."""
    longer: int
    """Prompts that exceed the limit as they were logged."""
    still_longer: int


def _context_limit(ledger: _Ledger, most: int) -> Scenario | dict[str, str]:
    least, middle, largest = (_limited(ledger, most, summary) for summary in (0, *SUMMARY_TOKENS))
    if not middle.changed:
        left = f"no compaction brings {times(middle.longer, 'longer prompt')} below {most:,} tokens"
        return {"context-limit": left if middle.longer else f"no thread grew past {most:,} tokens"}
    still = f", {middle.still_longer:,} of which no compaction shortens enough" if middle.still_longer else ""
    then, unpriced = ledger.then(middle.changed, middle.compactions)
    others = [ledger.then(of.changed, of.compactions)[0] for of in (least, largest)]
    ends = [ledger.total_with(each) for each in (then, *others)]
    return ledger.scenario(
        "context-limit", f"contexts of at most {most:,} tokens", then, (min(ends), max(ends)), unpriced=unpriced,
        exact=f"prices; {times(middle.longer, 'longer prompt')}{still}",
        assumed=f"{times(len(middle.compactions), 'compaction')} leaving {SUMMARY_TOKENS[0]:,} tokens of summary"
        f" (bounds: none, and {SUMMARY_TOKENS[1]:,}); the work stays the same",
    )  # fmt: skip


def _limited(ledger: _Ledger, most: int, summary: int) -> _Limited:
    """Compact threads before a prompt exceeds `most`.

    After a compaction the context is the thread's first prompt, at most the median one of its agent, and a summary of
    so many tokens, sent anew. A thread where that is more than half of the limit is left as it is.
    """
    changed: Changed = {}
    compactions: Changed = {}
    longer = still_longer = 0
    threads = list(ledger.threads())
    starts: defaultdict[str, list[int]] = defaultdict(list)
    for thread in threads:
        starts[thread[0][1].of["agent"]].append(_prompt(thread[0][1].step))
    for thread in threads:
        first = thread[0][1]
        start = min(_prompt(first.step), int(median(starts[first.of["agent"]]) or 0))
        context = size = last = 0
        for n, call in thread:
            step, before = call.step, size
            size = _prompt(step)
            growth, anew = size - before, 0
            if not before or size < SHRUNK * before:  # the thread's first call, or one after a compaction
                context = size
            elif context + growth > most and start + SUMMARY_TOKENS[0] + max(0, growth) <= SHRUNK * most:
                asked = changed.setdefault(last, ledger.calls[last].step)
                compactions[last] = replace(
                    asked, input_tokens=0, cache_read_tokens=context, cache_write_tokens=0, cache_write_1h_tokens=0,
                    output_tokens=summary, web_searches=None,
                )  # fmt: skip
                anew = start + summary
                context = anew + max(0, growth)
            else:
                context += growth
            longer += size > most
            still_longer += context > most
            if context < size:
                changed[n] = _shortened(step, size - context, anew)
            last = n
    return _Limited(changed, compactions, longer, still_longer)


def _shortened(step: Step, tokens: int, anew: int) -> Step:
    """Return a call without so many tokens of its prompt, those read from the cache first. `anew`: tokens that it
    writes to the cache instead of reading them, after a compaction."""
    read, written, fresh = (n or 0 for n in (step.cache_read_tokens, step.cache_write_tokens, step.input_tokens))
    of_read = min(tokens, read)
    of_written = min(tokens - of_read, written)
    of_fresh = tokens - of_read - of_written
    read, written, fresh = read - of_read, written - of_written, fresh - of_fresh
    hour = min(step.cache_write_1h_tokens or 0, written)
    moved = min(anew, read)
    caches = bool(step.cache_write_tokens)
    return replace(
        step, cache_read_tokens=read - moved, cache_write_tokens=written + (moved if caches else 0),
        cache_write_1h_tokens=hour + (moved if caches and step.cache_write_1h_tokens else 0),
        input_tokens=fresh + (0 if caches else moved),
    )  # fmt: skip


def _subscription(ledger: _Ledger, usd: float | None, started: Sequence[datetime]) -> Scenario | dict[str, str]:
    if usd is None:
        return {"subscription": "--subscription USD compares with a plan's monthly price"}
    if not started:
        return {"subscription": "no session has a time, so the months are not known"}
    first, last = min(started), max(started)
    months = 12 * (last.year - first.year) + last.month - first.month + 1
    cost = usd * months
    name = f"a plan at {formatted(usd, 'usd')} a month"
    return Scenario(
        id="subscription", name=name, cost_usd=cost, low_usd=cost, high_usd=cost,
        calls=len(ledger.calls), calls_usd=ledger.total,
        largest=[
            Moved(session_id=session_id, cost_usd=cost_usd, then_usd=None)
            for session_id, cost_usd in nlargest(
                _LARGEST, ledger.by_session({}).items(), key=lambda each: (each[1], each[0])
            )
        ],
        exact=f"{times(months, 'calendar month')} at that price",
        assumed="all calls fit into the plan's limits; a part of a month is paid as a whole one",
    )  # fmt: skip
