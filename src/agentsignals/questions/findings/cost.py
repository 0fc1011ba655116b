"""Findings about cost (few sessions, expensive places, causes, large results, repeated work) and data quality."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain, repeat
from math import ceil, fsum
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from agentsignals.model import prices
from agentsignals.questions.estimates import RULED, TOP_SESSIONS, by, listing
from agentsignals.questions.question import Inputs, Question, Row, formatted
from agentsignals.questions.ranking import (
    Answer,
    Candidate,
    Contrast,
    cells_of,
    contrasts,
    finding_id,
    priced,
    safe_excerpt,
    safe_name,
    sessions_sql,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import (
    BOUND,
    CARRIED,
    CAUSES,
    FACTS,
    LOST,
    REPEATS,
    declared,
    read_queries,
)
from agentsignals.views.usage import LEAST_LOST, LONG_LIFETIME_S

LEAST_PART = 0.05
"""Share of its session's result cost from which a result is large; smaller ones are filtered in SQL."""
MOST_RESULTS = 20
"""Results that a person can look at."""
_SQL = read_queries(__file__, least_part=str(LEAST_PART), most_results=str(MOST_RESULTS))

COSTLIEST_SHARE, CONCENTRATED, FEWEST_SESSIONS = 0.05, 0.5, 20
"""One session in twenty makes half of the bill. Costs of sessions lean far to the right: of a lognormal with a standard
deviation of 1 the dearest twentieth makes a quarter, with 1.5 half."""


def few_sessions(inputs: Inputs) -> list[Answer]:
    bill = zip(*inputs.many["sessions"].derived(priced).columns("session_id", "cost_usd"), strict=True)
    dearest: list[tuple[str, float]] = sorted(sorted(bill), key=itemgetter(1), reverse=True)  # equal ones by id
    total = fsum([usd for _, usd in dearest])
    if len(dearest) < FEWEST_SESSIONS or not total:
        return []
    few = dearest[: ceil(COSTLIEST_SHARE * len(dearest))]
    size = fsum([usd for _, usd in few])
    share = size / total
    of = f"{len(few):,} of {len(dearest):,} sessions"
    rest = (total - size) / (len(dearest) - len(few))
    first_name, first = few[0]
    alone = f"One of them cost {formatted(first, 'usd')}. " if len(few) > 1 and first > RULED * size else ""

    def told() -> dict[str, Any]:
        asked = (
            "SELECT session_id, min(seq) AS seq, any_value(cost_usd) AS cost_usd FROM events"
            f" JOIN sessions USING (session_id) WHERE {sessions_sql(name for name, _ in few)} GROUP BY session_id"
        )
        return {"cause": with_source_lines(asked, "cost_usd"), "by_session": dict(dearest)}

    return [
        Candidate(
            id="few-sessions.cost",
            sentence=f"{of} cost {formatted(size, 'usd')} of {formatted(total, 'usd')} ({formatted(share, 'share')}).",
            details=f"{alone}The other sessions average {formatted(rest, 'usd')}.",
            size=size,
            unit="USD",
            share=share if share >= CONCENTRATED else 0.0,
            n=len(dearest),
            part="cost_usd",
            saves=size - rest * len(few),
            do="Review these sessions first"
            + (f": `agentsignals show {first_name[:8]}`" if first_name[:8].isalnum() else "."),
            caveat="An exact count. A long session may have done the work of many.",
            told=told,
        )
    ]


FEW_SESSIONS_FINDING = Question(**declared("asked", "few_sessions", sessions=FACTS), function=few_sessions)


# -- Expensive places

APART = 1.5
"""By what factor a session has to cost more."""


def expensive_projects(inputs: Inputs) -> list[Answer]:
    cost: dict[str, float] = dict(
        zip(*inputs.many["sessions"].derived(priced).columns("session_id", "cost_usd"), strict=True)
    )
    if not cost:
        return []
    cells = inputs.many["sessions"].derived(cells_of)
    # Whether a session costs more than the middle one: a few that go on without end decide nothing.
    middle, total = median(cost.values()), fsum(cost.values())
    by_cell: defaultdict[int, list[float]] = defaultdict(list)
    for session_id, usd in cost.items():
        by_cell[cells.of[session_id]].append(usd)

    def mean(of: Iterable[int]) -> float:
        every = list(chain.from_iterable(by_cell[cell] for cell in of))
        return fsum(every) / len(every)

    def told(contrast: Contrast, there: float, size: float) -> dict[str, Any]:
        sides = [cells.among(cost, of) for of in (contrast.in_group, contrast.in_rest)]
        # The cause of which a session here pays most more than one elsewhere.
        more: defaultdict[str, float] = defaultdict(float)
        for cause, usd in inputs.paid.items():
            here, rest = (fsum(map(usd.get, side, repeat(0.0))) / len(side) for side in sides)
            if here or rest:
                more["re-sent context" if cause in CARRIED else CAUSES[cause]] += here - rest
        most = max(more, key=lambda words: (more[words], words), default="")
        asked = (
            f"SELECT session_id, min(seq) AS seq, any_value(cost_usd) - {there!r} AS more_usd FROM events"
            f" JOIN sessions USING (session_id) WHERE {sessions_sql(sides[0])} GROUP BY session_id"
        )
        return {
            "details": f"That is {formatted(size, 'usd')} more over {contrast.n:,}"
            f" sessions{f', mostly for {most}' if most else ''}.",
            "cause": with_source_lines(asked, "more_usd"),
            "by_session": sides[0],
        }

    made: list[Answer] = []
    dear = cells.counted(cost, [float(usd > middle) for usd in cost.values()], repeat(1.0))
    for contrast in contrasts(dear, cells, ("place",)):
        here, there = mean(contrast.in_group), mean(contrast.in_rest)
        size = (here - there) * contrast.n
        made.append(
            Candidate(
                id=finding_id("expensive-projects", contrast.value),
                sentence=f"A session {contrast.where} costs {formatted(here, 'usd')} on average, compared with"
                f" {formatted(there, 'usd')} in {contrast.matched}.",
                size=size,
                unit="USD",
                share=size / total if here > 0 and here >= APART * there else 0.0,
                interval=contrast.interval,
                p=contrast.p,
                n=contrast.n,
                part="more_usd",
                do=f"Run `agentsignals report --study cost_causes -o r.html` to see the causes {contrast.where}.",
                saves=size,
                caveat="An association, not a cause: the tasks may just be larger. The interval is for the share of"
                f" sessions that cost more than the median session; {contrast.group.note}.",
                told=partial(told, contrast, there, size),
            )
        )
    return made


EXPENSIVE_PROJECTS_FINDING = Question(
    **declared("asked", "expensive_projects", sessions=FACTS), function=expensive_projects
)


# -- Causes of cost


Writes = Mapping[tuple[str, int | None], float]
"""Tokens that were written for minutes by sessions whose losses an hour would not have kept, by model and day."""


class _Cause(NamedTuple):
    name: str
    words: str
    least: float
    """The share of the bill from which it is worth a sentence."""
    advise: Callable[[float, list[Row], Writes], Advice]
    """Called with the dollars, the lost caches, and the writes to caches."""


class Advice(NamedTuple):
    """What the data shows that could be done, with what it could save at most."""

    do: str
    saves_usd: float
    shows: str = ""
    """A further sentence on what was seen."""


_OFTEN = 0.2
"""Share of a loss from which its part is worth a sentence of advice."""
_AFTER = {
    "model": ("a change of model", "Choose the model before the context is large"),
    "settings": (
        "a change of thinking or effort",
        "Change thinking or effort at the start of a session, not in the middle",
    ),
    "resume": ("a resumed session", "Start a new session instead of resuming a large one"),
    "interruption": ("an interruption", "Check what happens after you interrupt"),
    "skill": ("a skill or slash command", "Use skills and slash commands early, while the context is small"),
    "prompt": ("a new prompt, with no other logged change", ""),
    "work": ("the agent's own tool calls", ""),
}
"""What came before a loss, in words; and what to do about it, where a person has a hand in it."""
_NOTHING_SEEN = "nothing logged that drops a cache: the provider may have dropped it, or tools or rules changed"


def _of_rebuilt(usd: float, losses: list[Row], writes: Writes) -> Advice:
    """Advise by the life of the caches that died, and by how long the pauses were. Caches of an hour would cost more in
    every session, also in those that lost none."""
    lost = fsum(row["cost_usd"] for row in losses)
    within = list(filter(_is_within_hour, losses))
    later = fsum(row["cost_usd"] for row in losses if row["pause_s"] > LONG_LIFETIME_S)
    # Where nothing is paid for writing to a cache, none of an hour is offered either.
    offered = list(filter(_is_offered, within))
    costs = [*{row["session_id"]: row["longer_usd"] for row in offered}.values()]
    costs += [_longer_usd(model, at, tokens) for (model, at), tokens in writes.items()]
    net = fsum(row["cost_usd"] - row["read_usd"] for row in offered) - fsum(costs)
    if not losses:
        return Advice("", 0.0)
    parts, saves = [], 0.0
    if offered and net >= _OFTEN * lost:
        parts.append(
            f"Use one-hour prompt caches. They survive {len(offered):,} of these {len(losses):,} pauses and would have"
            f" saved {formatted(net, 'usd')}, after {formatted(fsum(costs), 'usd')} of extra write cost"
        )
        saves += net
    elif within and fsum(row["cost_usd"] for row in within) >= _OFTEN * lost:
        parts.append("Reply within five minutes, before these caches expire")
        saves += fsum(row["cost_usd"] - (row["read_usd"] or 0.0) for row in within)
    if later >= _OFTEN * lost or not parts:
        parts.append("After a long pause, such as an hour, start a new session or compact first")
        saves += later
    return Advice(". ".join(parts), min(saves, usd))


def _is_within_hour(loss: Row) -> bool:
    return bool(loss["lives_s"] < loss["pause_s"] <= LONG_LIFETIME_S)


def _is_offered(loss: Row) -> bool:
    return bool(loss["longer_usd"]) and loss["read_usd"] is not None


def _longer_usd(model: str, at: int | None, tokens: float) -> float:
    """Return what caches of an hour would have cost more; 0 where the model has no price of them."""
    minutes, hour = (prices.cost_usd(model, 0, 0, 0, 1, cache_write_1h_tokens=n, at=at) for n in (0, 1))
    return 0.0 if minutes is None or hour is None else tokens * (hour - minutes)


def _of_missed(usd: float, losses: list[Row], _: Writes) -> Advice:
    """Name what came before most of the loss, and advise where a person has a hand in it."""
    by_act: defaultdict[str, list[float]] = defaultdict(list)
    for row in losses:
        by_act[row["after"]].append(row["cost_usd"])
    lost = fsum(row["cost_usd"] for row in losses)
    acts = sorted(by_act, key=lambda act: (-fsum(by_act[act]), act))
    if not acts:
        return Advice("", 0.0)
    of = {act: fsum(by_act[act]) for act in acts}
    named = [act for act in acts if of[act] >= _OFTEN * lost] or acts[:1]
    shows = "; ".join(
        f"{formatted(of[act] / lost, 'share')} of it came after {_AFTER[act][0]} ({_times(len(by_act[act]))})"
        for act in named
    )
    do = [act for act in named if _AFTER[act][1]]
    if not do:
        unseen = fsum(of[act] for act in acts if not _AFTER[act][1])
        return Advice("", 0.0, f"{formatted(unseen / lost, 'share')} of it followed {_NOTHING_SEEN}. {shows}")
    return Advice(". ".join(_AFTER[act][1] for act in do), min(fsum(of[act] for act in do), usd), shows)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


_COMPACT = "Start a new session for a new task before the context is full"
_SHORTEN = "Truncate long outputs or write them to a file (head, grep, line ranges). Start a new session for a new task"
_SENT_AGAIN = "was spent re-sending context that the prompt cache should still have held"
_CAUSES = (
    _Cause("rebuilt", "was spent rebuilding expired prompt caches", 0.0, _of_rebuilt),
    _Cause("missed", _SENT_AGAIN, 0.0, _of_missed),
    _Cause("compaction", "was spent writing the context again after compactions (summaries of a full one)", 0.0,
           lambda usd, *_: Advice(_COMPACT, usd)),
    _Cause("carried_results", "was spent re-sending tool results with every later call", 0.25,
           lambda usd, *_: Advice(_SHORTEN, usd)),
)  # fmt: skip


def _split_by_row(cause: str, rows: str, weight: str = "1") -> str:
    """The evidence of a cause whose dollars are known by session: each row with its part of them, by `weight`."""
    of_session = f"SELECT session_id, sum(cost_usd) AS usd FROM charges WHERE cause = '{cause}' GROUP BY ALL"
    held = (
        f"SELECT *, greatest(coalesce({weight}, 0), 1e-9) AS weight FROM ({rows})"
        f" JOIN ({of_session}) USING (session_id)"
    )
    usd = "usd * weight / sum(weight) OVER (PARTITION BY session_id) AS cost_usd"
    return with_source_lines(f"SELECT * EXCLUDE (usd, weight), {usd} FROM ({held})", "cost_usd")


def _losses(cause: str) -> str:
    """The evidence of lost caches: a row a loss, and one a session for losses that are too small for a row."""
    rows = f"{_SQL['money_rows']['losses']} WHERE cause = '{cause}'"
    usd = f"SELECT session_id, sum(cost_usd) AS usd FROM charges WHERE cause = '{cause}' GROUP BY ALL"
    lost = f"SELECT session_id, sum(cost_usd) AS lost FROM cache_losses WHERE cause = '{cause}' GROUP BY ALL"
    rest = (
        f"SELECT session_id, seq, usd - coalesce(lost, 0) AS cost_usd, 'losses of up to {LEAST_LOST:,} tokens' AS after"
        f" FROM ({usd}) LEFT JOIN ({lost}) USING (session_id)"
        " JOIN (SELECT session_id, min(seq) AS seq FROM steps GROUP BY ALL) USING (session_id)"
        " WHERE usd - coalesce(lost, 0) > 1e-6"
    )
    return with_source_lines(f"{rows} UNION ALL BY NAME {rest}", "cost_usd")


CENT = 0.01
"""Least cost of a counted session: caches leave the end of a prompt out, by blocks of tokens."""
_BY_CALLS = "Computed from the logged tokens of each model call. Why a provider dropped a cache is not logged."
_OF_RESULTS = "How much of the re-sent context is tool results is estimated from their length in characters."


def money(inputs: Inputs) -> list[Answer]:
    bill = inputs.many["sessions"].derived(priced)
    costs, *bounds = bill.columns("cost_usd", BOUND, "unpriced")
    total = fsum(costs)
    if not total:
        return []
    lost = by(inputs.many["losses"], "cause")
    # Sessions that one of an hour would have kept a cache for are counted with their losses.
    apart = {row["session_id"] for row in lost.get("rebuilt", ()) if _is_within_hour(row) and _is_offered(row)}
    apart |= {
        s for s, is_it in zip(*inputs.many["sessions"].columns("session_id", "is_subagents"), strict=True) if is_it
    }
    writes: Counter[tuple[str, int | None]] = Counter()
    for session_id, model, at, tokens in zip(
        *inputs.many["writes"].columns("session_id", "model", "at", "tokens"), strict=True
    ):
        if session_id not in apart:
            writes[model, at] += tokens
    # What was sent is logged whole, the output of some sessions is not: of the whole bill this were a smaller share.
    is_bound = any(bound is not None for bound in chain(*bounds))
    of = "of the known cost" if is_bound else "of the cost"
    made: list[Answer] = []
    for cause in _CAUSES:
        usd = inputs.paid[cause.name]
        size, paying = fsum(usd.values()), sum(part >= CENT for part in usd.values())
        share = size / total
        advice = cause.advise(size, lost.get(cause.name, []), writes)
        if cause.name in ("rebuilt", "missed"):
            evidence = _losses(cause.name)
        else:
            weight = "result_tokens" if cause.name == "carried_results" else "1"
            evidence = _split_by_row(cause.name, _SQL["money_rows"][cause.name], weight)
        made.append(
            Candidate(
                id=f"money.{cause.name.replace('_', '-')}",
                sentence=f"{formatted(size, 'usd')} ({formatted(share, 'share')} {of})"
                f" {cause.words}, in {paying:,} of {len(bill):,} sessions.",
                details=f"{advice.shows}." if advice.shows else "",
                size=size,
                unit="USD",
                share=share if share >= cause.least else 0.0,
                n=paying,
                cause=evidence,
                part="cost_usd",
                do=f"{advice.do}." if advice.do else "",
                saves=advice.saves_usd,
                caveat=_OF_RESULTS if cause.name == "carried_results" else _BY_CALLS,
                told=partial(dict, by_session=usd),
            )
        )
    return made


MONEY_FINDING = Question(**declared("asked", "money", sessions=FACTS, losses=LOST), function=money)


# -- Large tool results

LARGEST_SHARE, FEWEST_RESULTS = 0.01, 100
"""One result in a hundred, and no more than `MOST_RESULTS`; of fewer than a hundred none stands out."""
BESIDE = 0.1
"""Share of the most expensive result's cost from which other results are counted with it."""


def large_results(inputs: Inputs) -> list[Answer]:
    (costs,), rows = inputs.many["sessions"].derived(priced).columns("cost_usd"), inputs.many["results"]
    results = sum(filter(None, *rows.columns("results")))
    if not costs or results < FEWEST_RESULTS:
        return []
    known = list(rows.known("cost_usd").columns("cost_usd", "session_id", "seq", "name", "tokens", "times"))
    least = BESIDE * max(known[0], default=0.0)
    ordered = sorted((-usd, *named) for usd, *named in zip(*known, strict=True) if usd >= least)
    few = [(-usd, *named) for usd, *named in ordered[: min(MOST_RESULTS, ceil(LARGEST_SHARE * results))]]
    if not few:
        return []
    size, total, (*_, name, tokens, times) = fsum(each[0] for each in few), fsum(costs), few[0]
    chosen = ", ".join(f"({sql_text(session_id)}, {seq}, {usd!r}::DOUBLE)" for usd, session_id, seq, *_ in few)
    asked = (
        "SELECT session_id, seq, name, path, command, result_tokens, cost_usd FROM tool_calls"
        f" JOIN (VALUES {chosen}) AS chosen (session_id, seq, cost_usd) USING (session_id, seq)"
    )
    by_session: defaultdict[str, float] = defaultdict(float)
    for part, session_id, *_ in few:
        by_session[session_id] += part
    return [
        Answer(
            id="large-results.carried",
            sentence=f"{len(few):,} of {results:,} tool results cost {formatted(size, 'usd')}"
            f" ({formatted(size / total, 'share')} of the cost), because later calls re-sent them.",
            details=f"The most expensive (tool: {safe_name(name)}) has about {tokens:,} tokens"
            f" and was sent {times:,} times.",
            size=size,
            unit="USD",
            share=size / total,
            n=len(costs),
            cause=with_source_lines(asked, "cost_usd"),
            part="cost_usd",
            do="Let commands print less (head, grep, line ranges) or write to a file. Start a new session once a long"
            " result is read.",
            saves=size,
            caveat="Each result's share of the context is estimated from its length in characters.",
            by_session=dict(by_session),
        )
    ]


LARGE_RESULTS_FINDING = Question(**declared("asked", "large_results", sessions=FACTS), function=large_results)


# -- Repeated work

_KINDS = {
    "reread": (
        "re-reading unchanged files",
        "Name these files in the first prompt, and tell the agent not to read them again",
    ),
    "repeated": (
        "repeating calls with nothing changed in between",
        "Tell the agent to use a result before it repeats the call",
    ),
}


_BY_ARGUMENTS = (
    "A call counts as repeated if arguments and result length are the same and the agent changed no file in between."
    " Changes by other programs are not seen"
)


def repeated_work(inputs: Inputs) -> list[Answer]:
    bill = inputs.many["sessions"].derived(priced)
    cost: dict[str, float] = dict(zip(*bill.columns("session_id", "cost_usd"), strict=True))
    total = fsum(cost.values())
    if not total:
        return []
    cells = inputs.many["sessions"].derived(cells_of)
    repeats = sorted(inputs.many["repeats"], key=itemgetter("session_id", "number"))
    made: list[Answer] = []
    for kind, (words, do) in _KINDS.items():
        usd = inputs.paid[kind]
        calls = [row for row in repeats if row["kind"] == kind and row["session_id"] in usd]
        size = fsum(usd.values())
        asked = f"SELECT session_id, seq, name, path, result_tokens FROM repeated_calls WHERE kind = {sql_text(kind)}"
        made.append(
            Answer(
                id=f"repeated-work.{kind}",
                about=f"repeated-work.{kind}",
                sentence=f"At least {formatted(size, 'usd')} ({formatted(size / total, 'share')} of the cost)"
                f" was spent {words}: {_most(calls)}.",
                size=size,
                unit="USD",
                share=size / total,
                n=sum(part >= CENT for part in usd.values()),
                cause=_split_by_row(kind, asked, "result_tokens"),
                part="cost_usd",
                do=f"{do}.",
                saves=size,
                caveat=f"{_BY_ARGUMENTS}.",
                at_least=True,
                by_session=dict(usd),
            )
        )
        parts = cells.counted(cost, map(usd.get, cost, repeat(0.0)), cost.values())
        for contrast in contrasts(parts, cells, ("agent",)):
            here = cells.among(usd, contrast.in_group)
            often = _most([row for row in calls if row["session_id"] in here])
            made.append(
                Answer(
                    id=finding_id(f"repeated-work.{kind}.{contrast.key}", contrast.value),
                    about=f"repeated-work.{kind}",
                    sentence=f"At least {formatted(contrast.group.value, 'share')} of the cost {contrast.where} was"
                    " spent"
                    f" {words}, compared with {formatted(contrast.rest.value, 'share')} in {contrast.matched}.",
                    details=f"That is {formatted(contrast.excess * total, 'usd')} more: {often}.",
                    **contrast.more(total, "USD", total),
                    cause=_split_by_row(kind, f"{asked} AND {sessions_sql(here)}", "result_tokens"),
                    part="cost_usd",
                    do=f"{do}.",
                    saves=fsum(here.values()),
                    caveat=f"An association, not a cause. {_BY_ARGUMENTS}; {contrast.group.note}.",
                    at_least=True,
                    by_session=here,
                )
            )
    return made


def _most(calls: list[Row]) -> str:
    paths = Counter(row["path"] or row["name"] for row in calls)
    often = f", most often {safe_name(paths.most_common(1)[0][0])}" if paths else ""
    return f"{_times(len(calls))}{often}"


REPEATED_WORK_FINDING = Question(
    **declared("asked", "repeated_work", sessions=FACTS, repeats=REPEATS),
    function=repeated_work,
)


# -- Data quality: costs without a price, output logged in mid-stream, records that were not read

_CAVEAT = "An exact count, not an estimate."


def data_quality(inputs: Inputs) -> list[Answer]:
    of_sessions = ("session_id", "agent", "model", "cost_usd", BOUND, "has_tokens")
    sessions, agents, models, costs, bounds, has_tokens = inputs.many["sessions"].columns(*of_sessions)
    if not sessions:
        return []

    def listed(rows: list[int], names: Sequence[str | None] = agents) -> str:
        return safe_excerpt(listing(Counter(names[row] or "unnamed" for row in rows)))

    n = len(sessions)
    unpriced = [row for row, usd in enumerate(costs) if usd is None]
    silent, unlisted = ([row for row in unpriced if has_tokens[row] is has] for has in (False, True))
    why = [f"the log does not state all tokens ({listed(silent)})"] if silent else []
    why += [f"no price of the model is known ({listed(unlisted, models)})"] if unlisted else []
    low = [row for row, bound in enumerate(bounds) if bound is not None]
    answers = []
    for name, affected, words, do in (
        (
            "unpriced",
            unpriced,
            f"have no known cost: {'; '.join(why)}",
            "Write the price into `prices.toml`, as docs/prices.md describes."
            if unlisted
            else "No total contains the cost of these sessions.",
        ),
        (
            "output",
            low,
            f"under-report output tokens ({listed(low)}), so their cost is a lower bound",
            "The real output tokens and cost of these agents are higher than shown.",
        ),
    ):
        k = len(affected)
        answers.append(
            Answer(
                id=f"data-quality.{name}",
                sentence=f"{k:,} of {n:,} sessions ({formatted(k / n, 'share')}) {words}.",
                size=k,
                unit="sessions",
                share=k / n,
                n=n,
                cause=with_source_lines(_SQL["evidence"][name]),
                do=do,
                caveat=_CAVEAT,
                of_data=True,
                sessions=tuple(nsmallest(TOP_SESSIONS, (sessions[row] for row in affected))),
            )
        )
    records, skipped = (sum(filter(None, column)) for column in inputs.many["artifacts"].columns("records", "skipped"))
    if records + skipped:
        share = skipped / (records + skipped)
        answers.append(
            Answer(
                id="data-quality.records",
                sentence=f"{skipped:,} of {records + skipped:,} records ({formatted(share, 'share')}) were skipped or"
                " not"
                " understood. No figure includes them.",
                size=skipped,
                unit="records",
                share=share,
                n=n,
                cause=_SQL["evidence"]["records"],
                do="Run `agentsignals doctor`: it gives a remedy for each reason.",
                caveat=_CAVEAT,
                of_data=True,
            )
        )
    return answers


DATA_QUALITY_FINDING = Question(**declared("asked", "data_quality", sessions=FACTS), function=data_quality)
