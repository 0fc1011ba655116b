"""Figures over the sessions of one context that a filter leaves: groups, days, tools and files, each with its link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import floor, fsum, inf, isfinite, log10, nextafter
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentsignals.questions import charts as calendar
from agentsignals.questions import ranking
from agentsignals.questions.estimates import ClusteredShare, clustered_share, ruled
from agentsignals.questions.question import MISSING, Row, formatted
from agentsignals.questions.ranking import ContextSummary
from agentsignals.questions.spending import sums
from agentsignals.questions.sql import place_by_session
from agentsignals.signals import Signal
from agentsignals.signals.catalog import catalogue
from agentsignals.stats.intervals import FEWEST_CLUSTERS, median, rate_interval
from agentsignals.stats.intervals import sums as sums_by
from agentsignals.stats.validation import figures_of
from agentsignals.ui.drawing import BarChart, Part, Point, Spark, spark, strip, tick_text
from agentsignals.ui.filter import Filter
from agentsignals.ui.page import COLOURS, colour_of, figure, sql, times
from agentsignals.ui.snapshot import Snapshot

MOST_GROUPS = 100
MOST_PAIRS = 60
MOST_FILES = 40
MOST_EXPENSIVE = 10
BY = {"agent": "agent", "model": "model", "repo": "repository"}
"""The columns that sessions are grouped by, and their headings."""
_NO_OUTCOME = "no verdict"


class Places(NamedTuple):
    """What sessions have in common, so that intervals take it as the sampling unit: a project, or an eval's task."""

    by_session: Mapping[str, str]
    noun: str

    def share(self, parts: Iterable[tuple[str, float, float]]) -> ClusteredShare:
        """Return the share of sum(k) in sum(n) of (session, k, n)."""
        return clustered_share(parts, self.by_session, place=self.noun)

    def solved(self, parts: Sequence[tuple[str, float, float]]) -> ClusteredShare:
        """Return the share of solved attempts, with the interval that a comparison of candidates has."""
        ids, ks, ns = zip(*parts, strict=True) if parts else ((), (), ())
        tasks = [self.by_session.get(session_id, session_id) for session_id in ids]
        of_k, of_n = sums_by(tasks, ks), sums_by(tasks, ns)
        interval = rate_interval([(of_k[task], of_n[task]) for task in sorted(of_n)])
        return replace(self.share(parts), interval=interval)


class Cost(NamedTuple):
    """The cost of sessions, as far as it is known."""

    usd: float | None
    priced: int
    sessions: int
    is_bound: bool
    """Some log output in mid-stream: the sum is a lower bound."""
    unpriced: int
    """Sessions that use what has no price: the sum is too low by that."""
    few: str = ""
    """Sentence where few sessions make most of it."""

    @property
    def at_least(self) -> bool:
        return self.is_bound or self.unpriced > 0

    @property
    def written(self) -> str:
        return formatted(self.usd, "usd", self.at_least)


class Group(NamedTuple):
    """Sessions of one agent, model or repository."""

    name: str | None
    """None: it is not recorded."""
    link: str
    cost: Cost
    of_all: float | None
    """Its share of what all of them cost."""
    median_usd: float | None
    failed: ClusteredShare
    solved: ClusteredShare | None
    """Share of the judged attempts; None for people's sessions."""


class Pair(NamedTuple):
    tool: str
    agent: str
    sessions: int
    failed: ClusteredShare
    to_failed: str
    to_all: str


class Overall(NamedTuple):
    """Figures over the sessions of one context under one filter."""

    sessions: int
    cost: Cost
    failed: ClusteredShare
    strips: list[BarChart]
    periods: list[dict[str, Any]]
    """The charts' periods, as rows."""
    undated: int
    groups: list[tuple[str, str, list[Group], int]]
    """By what, its heading, the groups, and how many more there are."""
    pairs: list[Pair]
    most_failed: Pair | None
    likeliest: Pair | None
    """The pair with the highest share among those of enough sessions to speak for others (`FEWEST_CLUSTERS`)."""
    most_expensive: list[Row]
    days: list[tuple[str, str, Cost]]
    """The dearest days: day, link, cost."""
    files: list[Row]


def session_rows(snapshot: Snapshot, filter_: Filter) -> list[Row]:
    return snapshot.rows(sql("figures.sessions", where=filter_.where.text()), filter_.where.values)


def overall(snapshot: Snapshot, filter_: Filter, rows: list[Row] | None = None) -> Overall:
    """Figures of the sessions that the filter, which names one context, leaves. `rows`: these, where they are read."""
    rows = session_rows(snapshot, filter_) if rows is None else rows
    if filter_.words["context"] == "eval":  # attempts at one task are alike, wherever they ran
        places = Places({row["session_id"]: row["task"] for row in rows if row["task"] is not None}, "task")
    else:
        places = Places(place_by_session(rows), "project")
    pairs = _pairs(snapshot, filter_, {row["session_id"]: row for row in rows}, places)
    counted = [pair for pair in pairs if pair.failed.k and pair.sessions >= FEWEST_CLUSTERS]
    dated = [row for row in rows if row["started_at"]]
    periods = _periods(dated, filter_, places)
    dear = sorted((r for r in rows if r["cost_usd"]), key=lambda r: (-r["cost_usd"], r["session_id"]))[:MOST_EXPENSIVE]
    ids = [row["session_id"] for row in dear]
    asked = snapshot.rows(sql("sessions.first_prompts"), {"ids": ids}) if ids else []
    prompts = {row["session_id"]: row["prompt"] for row in asked}
    by_day: dict[datetime, list[Row]] = {}
    for row in dated:
        by_day.setdefault(calendar.start_of(row["started_at"], "day"), []).append(row)
    days = [(day, _cost(of_day)) for day, of_day in by_day.items()]
    days.sort(key=lambda item: (-(item[1].usd or 0), item[0]))
    models = _paid_to_models(snapshot, filter_.words["context"], rows)
    edited, files = sql("figures.edited_files", sessions=filter_.sessions), []
    for row in snapshot.rows(edited, {**filter_.where.values, "most": MOST_FILES}):
        path = row["path"] if row["path"].startswith("/") else f"./{row['path']}"
        narrow = filter_._replace(words={**filter_.words, "file": path})
        files.append({**row, "link": narrow.narrowed("/sessions", "repo", row["repo"])})
    return Overall(
        sessions=len(rows),
        cost=_cost(rows),
        failed=_failed(rows, places),
        strips=_strips(periods, filter_),
        periods=periods,
        undated=len(rows) - len(dated),
        groups=[
            (word, heading, *_groups(rows, word, filter_, places, models if word == "model" else {}))
            for word, heading in BY.items()
        ],
        pairs=pairs[:MOST_PAIRS],
        most_failed=pairs[0] if pairs and pairs[0].failed.k else None,
        likeliest=max(counted, key=lambda pair: pair.failed.value or 0, default=None),
        most_expensive=[{**row, "prompt": prompts.get(row["session_id"])} for row in dear],
        days=[
            (f"{day:%Y-%m-%d}", _between(filter_, day, day), cost) for day, cost in days[:MOST_EXPENSIVE] if cost.usd
        ],
        files=files,
    )


def _cost(rows: Sequence[Row]) -> Cost:
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    few = ruled((row["session_id"], row["cost_usd"]) for row in rows if row["cost_usd"] is not None)
    return Cost(
        few=few.sentence(partial(formatted, kind="usd")) if few and len(costs) > 1 else "",
        usd=fsum(costs) if costs else None,
        priced=len(costs),
        sessions=len(rows),
        is_bound=any(row["is_bound"] for row in rows),
        unpriced=sum(bool(row["unpriced"]) for row in rows),
    )


def _failed(rows: Iterable[Row], places: Places) -> ClusteredShare:
    parts = [(row["session_id"], float(row["failed"]), float(row["answered"])) for row in rows if row["answered"]]
    return places.share(parts)


def _paid_to_models(snapshot: Snapshot, context: str, rows: Sequence[Row]) -> dict[str | None, list[Row]]:
    """Return what the calls of each model cost, a row a session. A session whose calls have no cost counts whole for
    the model that gave most answers."""
    among = {row["session_id"]: row for row in rows}
    paid: dict[str | None, dict[str, Row]] = {}
    for row in sums(snapshot.store, context).rows:
        session = among.get(row.session_id)
        if session is None or session["cost_usd"] is None or row.cost_usd is None:
            continue
        of_model = paid.setdefault(row.model or None, {})
        part = of_model.setdefault(row.session_id, session | {"cost_usd": 0.0})
        part["cost_usd"] += row.cost_usd
    counted = {session_id for of_model in paid.values() for session_id in of_model}
    for session_id in among.keys() - counted:
        paid.setdefault(among[session_id]["model"] or None, {})[session_id] = among[session_id]
    return {name: [of_model[key] for key in sorted(of_model)] for name, of_model in paid.items()}


def _groups(
    rows: Sequence[Row], word: str, filter_: Filter, places: Places, paid: Mapping[str | None, list[Row]]
) -> tuple[list[Group], int]:
    """Return the largest groups of sessions by a column, and how many more there are. `paid`: the sessions by group
    with what each paid to it, where a session pays to several."""
    by_name: dict[str | None, list[Row]] = {name: [] for name in paid}
    for row in rows:
        by_name.setdefault(row[word] or None, []).append(row)
    total = _cost(rows).usd
    is_eval = filter_.words["context"] == "eval"
    made = []
    order = [(_cost(paid.get(name, of_it)), name, of_it) for name, of_it in by_name.items()]
    for cost, name, of_it in sorted(order, key=lambda item: (-(item[0].usd or 0), -len(item[2]), item[1] or "")):
        judged = [row for row in of_it if row["outcome"] in ("solved", "failed")]
        solved = [(row["session_id"], float(row["outcome"] == "solved"), 1.0) for row in judged]
        made.append(
            Group(
                name=name,
                link=filter_.narrowed("/sessions", word, name),
                cost=cost,
                of_all=cost.usd / total if total and cost.usd is not None else None,
                median_usd=median([r["cost_usd"] for r in paid.get(name, of_it) if r["cost_usd"] is not None]),
                failed=_failed(of_it, places),
                solved=places.solved(solved) if is_eval else None,
            )
        )
    return made[:MOST_GROUPS], max(0, len(made) - MOST_GROUPS)


def _pairs(snapshot: Snapshot, filter_: Filter, sessions: Mapping[str, Row], places: Places) -> list[Pair]:
    """Return failed calls by tool and agent, most failures first."""
    by_pair: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    for row in snapshot.rows(sql("figures.tools", sessions=filter_.sessions), filter_.where.values):
        key = row["tool"], sessions[row["session_id"]]["agent"]
        by_pair.setdefault(key, []).append((row["session_id"], float(row["failed"]), float(row["n"])))
    made = []
    order = sorted(by_pair.items(), key=lambda item: (-sum(k for _, k, _ in item[1]), item[0]))
    for (tool, agent), parts in order:
        of_agent = {"agent": agent} if agent else {"missing": "agent"}
        made.append(
            Pair(
                tool=tool,
                agent=agent,
                sessions=len(parts),
                failed=places.share(parts),
                to_failed=filter_.link("/sessions", **of_agent, failed=tool),
                to_all=filter_.link("/sessions", **of_agent, tool=tool),
            )
        )
    return made


# -- over time ---------------------------------------------------------------------------------------------------------


def _between(filter_: Filter, first: datetime, last: datetime) -> str:
    """The sessions from one day to another; a filter that begins or ends between them still does."""
    begin = max(f"{first:%Y-%m-%d}", filter_.words.get("from", ""))
    end = min(f"{last:%Y-%m-%d}", filter_.words.get("to", "") or "9999")
    return filter_.link("/sessions", **{"from": begin, "to": end})


def _periods(dated: Sequence[Row], filter_: Filter, places: Places) -> list[dict[str, Any]]:
    """Return the sessions by day, week or month, with cost, failed calls and outcomes."""
    span = calendar.buckets_of([row["started_at"] for row in dated])
    if span is None:
        return []
    by_start: dict[datetime, list[Row]] = {start: [] for start in span.starts()}
    for row in dated:
        by_start[calendar.start_of(row["started_at"], span.step)].append(row)
    made = []
    for start, rows in by_start.items():
        end = calendar.next_start(start, span.step) - timedelta(days=1)
        name = f"{start:%Y-%m}" if span.step == "month" else f"{start:%Y-%m-%d}"
        made.append(
            {
                "start": start,
                "step": span.step,
                "name": name,
                "link": _between(filter_, start, end),
                "sessions": len(rows),
                "cost": _cost(rows),
                "failed": _failed(rows, places),
                "outcomes": Counter(row["outcome"] or _NO_OUTCOME for row in rows),
            }
        )
    return made


def _strips(periods: Sequence[dict[str, Any]], filter_: Filter) -> list[BarChart]:
    """Return the overview's charts by period: sessions, cost, failed calls, outcomes."""
    if not periods:
        return []
    noun, per = "attempt" if filter_.words["context"] == "eval" else "session", f"a {periods[0]['step']}"
    counted = sum((period["outcomes"] for period in periods), Counter[str]())
    names = sorted(counted, key=lambda name: (name == _NO_OUTCOME, -counted[name], name))
    colours = {name: COLOURS[colour_of(name)] for name in names}
    points: dict[str, list[Point]] = {"sessions": [], "costs": [], "failures": [], "outcomes": []}
    for period in periods:
        n, cost, failed = period["sessions"], period["cost"], period["failed"]
        told = formatted(failed.value, "share")
        if failed.value is not None:
            ends = f"; {' to '.join(formatted(end, 'share') for end in failed.interval)}" if failed.interval else ""
            told += f" ({formatted(failed.k, 'count')} of {formatted(failed.n, 'count')}{ends})"
        of_it = [(name, period["outcomes"][name]) for name in names if name in period["outcomes"]]
        outcomes = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in of_it) or f"no {noun}"
        for kind, parts, says in (
            ("sessions", (Part(n),), times(n, noun)),
            (
                "costs",
                () if cost.usd is None else (Part(cost.usd),),
                f"{cost.written} over {cost.priced} of {times(n, 'session')} with a cost",
            ),
            (
                "failures",
                () if failed.value is None else (Part(failed.value, COLOURS["bad"]),),
                f"{told} of calls failed",
            ),
            ("outcomes", tuple(Part(n, colours[name]) for name, n in of_it), outcomes),
        ):
            start, label = f"{period['start']:%Y-%m-%d}", f"{period['name']}: {says}"
            point = Point(name=start, parts=parts, label=label, link=period["link"])
            points[kind].append(point._replace(interval=failed.interval, n=failed.n) if kind == "failures" else point)

    def count(value: float) -> str:
        return formatted(value, "count")

    rules = figures_of("user.session_outcome")[0]
    made = (
        strip(
            points["costs"],
            title="Cost",
            unit=f"USD {per}",
            written=lambda value: tick_text(value, "usd"),
            note="at least" if any(period["cost"].is_bound for period in periods) else "",
        ),
        strip(points["sessions"], title=f"{noun}s".capitalize(), unit=f"{noun}s {per}", written=count, whole=True),
        strip(
            points["failures"],
            title="Failed tool calls",
            unit="share of answered calls",
            written=lambda value: tick_text(value, "share"),
            note="bars: 95% intervals",
            dots=True,
        ),
        strip(
            points["outcomes"],
            title="Outcomes",
            unit=f"{noun}s {per}",
            written=count,
            note=f"by rules, right in {rules.agreement:.0%} of {rules.n} planted cases" if noun == "session" else "",
            legend=[
                (name, colours[name], filter_.narrowed("/sessions", "outcome", None if name == _NO_OUTCOME else name))
                for name in names
            ],
            whole=True,
        ),
    )
    return [chart for chart in made if chart]


class Card(NamedTuple):
    """A figure of the summary with its sparkline."""

    title: str
    figure: str
    note: str
    link: str
    spark: Spark | None
    colour: str = ""


def cards(part: ContextSummary, of: Filter | None = None) -> list[Card]:
    """Return the cards of a context whose figure is known. `of`: the filter that links carry; None for no links."""

    def link(path: str, **words: str) -> str:
        return of.link(path, **words) if of else ""

    counted, periods = part.totals, part.totals.periods
    plural = f"{ranking.NOUNS[part.context]}s"
    by = f"by {counted.step}"
    costs = spark([period.cost_usd for period in periods], f"Cost {by}")
    failures = [period.failed / period.answered if period.answered else None for period in periods]
    priced = "" if counted.priced == counted.sessions else f"{counted.priced:,} of {counted.sessions:,} {plural} priced"
    trend = ranking.trend_text(counted) or priced
    if not trend and counted.cost_usd:
        each = formatted(counted.cost_usd / counted.priced, "usd", counted.at_least)
        trend = f"{each} per {plural.removesuffix('s')}"
    share = formatted(counted.failed / counted.answered, "share") if counted.answered else MISSING
    made = [
        Card("Cost", ranking.cost_text(counted), trend, link("/sessions", order="cost_usd"), costs),
        Card(
            plural.capitalize(),
            f"{counted.sessions:,}",
            ranking.span_text(counted) or "no times recorded",
            link("/sessions"),
            spark([float(period.sessions) for period in periods], f"{plural.capitalize()} {by}"),
        ),
        Card(
            "Failed tool calls",
            share,
            f"{counted.failed:,} of {counted.answered:,}",
            f"{link('/', context=part.context)}#tools" if of else "",
            spark(failures, f"Share of failed calls {by}"),
            "bad",
        ),
    ]
    return [card for card in made if card.figure != MISSING]


# How the values of signals are spread: counts, quantiles and bars, asked of the store in one pass each.

BINS = 20
_FAR = 5
"""Where the highest value lies so many times farther from the lowest than 19 of 20 do, the last bar holds the rest."""
_LEAST = 1e-290
"""Values nearer to each other are one."""


class Bar(NamedTuple):
    """A bar of a histogram: from `low` to below `high` (the last with it), count, and share of the highest."""

    low: float
    high: float
    n: int
    share: float


class Spread(NamedTuple):
    """One signal over sessions, attempts or turns."""

    figures: dict[str, Any]
    """n, known, sessions, low, high, mean and quantiles; those of numbers None where there is none."""
    bars: list[Bar]
    """Empty where there are no two different numbers."""
    absent: dict[str, int]
    """Missing values by reason, commonest first."""
    labels: dict[str, int]
    """Values by label, commonest first; empty for a signal without labels."""


def spreads(snapshot: Snapshot, context: str, filter_: Filter | None = None) -> dict[str, Spread]:
    """The spread of every signal that the store holds, by its path; of the sessions that a filter leaves."""
    if filter_ is None or not filter_.where.text():
        made: dict[str, Spread] = snapshot.kept(("spreads", context), lambda: _made(snapshot, context, None))
        return made
    key = ("spreads", context, *sorted(filter_.words.items()))
    return snapshot.recent(key, lambda: _made(snapshot, context, filter_))


def chosen(filter_: Filter | None) -> str:
    """The condition on rows of `signals` that leaves those of the filter's sessions."""
    return f"AND session_id IN ({filter_.sessions})" if filter_ and filter_.where.text() else ""


def _made(snapshot: Snapshot, context: str, filter_: Filter | None) -> dict[str, Spread]:
    """Return the distribution of each signal: bins, absent values by reason, labels."""
    of_sessions, values = chosen(filter_), filter_.where.values if filter_ else {}
    binned: dict[str, dict[int, int]] = {}
    for row in snapshot.rows(sql("signals.bins", chosen=of_sessions), {**values, "bins": BINS}, context):
        binned.setdefault(row["signal"], {})[row["bin"]] = row["n"]
    absent: dict[str, dict[str, int]] = {}
    for row in snapshot.rows(sql("signals.missing", chosen=of_sessions), values, context):
        absent.setdefault(row["signal"], {})[row["absent"]] = row["n"]
    labels: dict[str, dict[str, int]] = {}
    enums = [signal.path for signal in catalogue().values() if signal.type == "enum"]
    for row in snapshot.rows(sql("signals.labels", chosen=of_sessions), {**values, "enums": enums}, context):
        labels.setdefault(row["signal"], {})[row["label"]] = row["n"]
    made = {}
    for row in snapshot.rows(sql("signals.quantiles", chosen=of_sessions), values, context):
        path, bars = row["signal"], []
        if counted := binned.get(path):
            low, step, most = row["low"], (row["high"] - row["low"]) / BINS, max(counted.values())
            ns = [counted.get(n, 0) for n in range(BINS)]
            bars = [Bar(low + at * step, low + (at + 1) * step, n, n / most) for at, n in enumerate(ns)]
        made[path] = Spread(row, bars, absent.get(path, {}), labels.get(path, {}))
    return made


def histogram(snapshot: Snapshot, context: str, filter_: Filter, signal: Signal, spread: Spread) -> BarChart | None:
    """The values of one signal between round edges; each bar leads to its sessions. None where there is no number."""
    f = spread.figures
    if f["low"] is None or not isfinite(f["high"] - f["low"]):
        return None
    is_far = f["high"] - f["low"] > _FAR * (f["q95"] - f["low"]) > 0
    ends = edges(f["low"], f["q95"] if is_far else f["high"], whole=signal.type == "int")
    bounds = [("<=" if n == len(ends) - 2 else "<", high) for n, high in enumerate(ends[1:])]
    if is_far:
        ends, bounds = [*ends, f["high"]], [*(("<", high) for _, high in bounds), ("<=", f["high"])]
    counts = ", ".join(
        f"count(*) FILTER (number >= $low{n} AND number {sign} $high{n}) AS n{n}" for n, (sign, _) in enumerate(bounds)
    )
    values = {f"low{n}": low for n, low in enumerate(ends[:-1])} | {f"high{n}": v for n, (_, v) in enumerate(bounds)}
    asked = sql("signal.histogram", counts=counts, chosen=chosen(filter_))
    row = snapshot.rows(asked, {**filter_.where.values, **values, "signal": signal.path}, context)[0]
    of_turns = signal.level == "turn"
    noun = "turn" if of_turns else "attempt" if filter_.words.get("context") == "eval" else "session"
    points = []
    for n, (sign, high) in enumerate(bounds):
        low, count = ends[n], row[f"n{n}"]
        to = "to" if sign == "<=" else "to below"
        low_shown, high_shown = (figure(end, signal.unit, f["at_least"]) for end in (low, high))
        label = f"{low_shown} {to} {high_shown}: {times(count, noun)}"
        link = filter_.also("/sessions", f"{signal.path}>={_exactly(low)}", f"{signal.path}{sign}{_exactly(high)}")
        points.append(Point(name="", parts=(Part(float(count)),), label=label, link=link))
    return strip(
        points,
        title=signal.path,
        unit=f"{noun}s up, {signal.unit.replace('_', ' ')} across",
        note=f"n = {f['known']:,}{'; the last bar holds all higher values' if is_far else ''}",
        written=lambda value: f"{value:,.0f}",
        whole=True,
        edges=[
            f"{'… ' if is_far and n == len(bounds) else ''}{figure(value, signal.unit, f['at_least'])}"
            for n, value in enumerate(ends)
        ],
    )


def edges(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round edges of about twenty bars, the first no higher than `low`, the last no lower than `high`."""
    step = 0.0
    if high - low > _LEAST:  # the least of 1, 2, 5, 10, … that is no less than a twentieth
        size = (high - low) / BINS
        base = 10.0 ** floor(log10(size))
        step = next(base * k for k in (1, 2, 5, 10) if base * k >= size * (1 - 1e-9))
    if whole:
        step = max(step, 1.0)
    first = floor(low / step) * step if step else low
    above = high if high > low else nextafter(high, inf)
    if not step or first + step == first:  # one value, or values that a step is lost beside
        return [low, above]
    count = 1
    while first + step * count < high or (whole and first + step * count <= high):
        count += 1
    made = sorted({float(f"{first + step * n:.12g}") for n in range(count + 1)})
    if made[0] < made[-1] and len(made) == count + 1:
        return [min(made[0], low), *made[1:-1], max(made[-1], high)]  # what rounding took is in
    return [low, above]  # steps that twelve digits don't tell apart


def _exactly(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
