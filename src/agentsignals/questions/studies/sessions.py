"""Sessions and their turns: number, size, time, calls for each prompt, how turns end, oversight, usage, where sessions
lie, and what was read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate, repeat
from math import fsum
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from agentsignals.questions import sql
from agentsignals.questions.charts import (
    COUNTS,
    MOST_POINTS,
    OTHERS,
    RATIOS,
    bars,
    dots,
    histogram_chart,
    iso_time,
    lines_chart,
    over_time,
    quantile_columns,
    quantiles,
    stacked_chart,
    start_of,
)
from agentsignals.questions.estimates import (
    DOMINANT,
    ONE_PLACE,
    ClusteredShare,
    Sample,
    agents_by_sessions,
    bar,
    by,
    chart,
    clustered_median,
    clustered_share,
    count,
    listing,
    median_finding,
    n_sessions,
    pooled_finding,
    pooled_ratio,
    ranked,
    share_of,
    signal_rows,
    signal_values,
    table,
    tally,
)
from agentsignals.questions.label_shares import (
    CUT_SHORT,
    NONE,
    PUSHBACK,
    PUSHBACK_LABELS,
    at_least_text,
    cut_short,
    cut_short_finding,
    pushback_finding,
    rules_recall_text,
)
from agentsignals.questions.question import (
    Chart,
    Evidence,
    EvidenceQuery,
    EvidenceRows,
    Inputs,
    NoSessions,
    Outcome,
    Part,
    Row,
    Study,
    Table,
    formatted,
    mark,
    with_bound,
    without_bound,
)
from agentsignals.questions.question import cut as cut_off
from agentsignals.questions.sql import PLACE, declared, read_queries
from agentsignals.questions.written_lines import CODING_MODE_SOURCES, MODES, MODES_OF_SOURCE, NAMES, mode_by_session
from agentsignals.redaction import redacted, redacted_part
from agentsignals.stats.intervals import median, nonzero_sums, quantile

_MOST_OPENED = 5
_SQL = read_queries(__file__, most_opened=str(_MOST_OPENED))

_WORK, _WAITING, _EVENTS = "infra.work_time_s", "infra.waiting_time_s", "corpus.session_length_events"
_TOTALS = {
    "turns": "n_prompts",
    "tool_calls": "n_tool_calls",
    "edits": "n_edits",
    "steps": "n_steps",
    "subagent_tool_calls": "n_subagent_tool_calls",
}
_Values: TypeAlias = "list[tuple[str, float]]"


def sessions_study(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    each = {name: inputs.present("sessions", "session_id", column) for name, column in _TOTALS.items()}
    n, ids = len(sessions), [s["session_id"] for s in sessions]
    times = [s["started_at"] for s in sessions if s["started_at"] is not None]
    span = f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d} (UTC)" if times else ""
    counted = {
        "count": [True] * n,
        "without_time": [s["started_at"] is None for s in sessions],
        "without_prompt": [s["n_prompts"] == 0 for s in sessions],
        "children": [s["parent_session_id"] is not None for s in sessions],
    }
    findings = []
    for name, held in counted.items():
        these = count(sum(held), n, evidence=partial(zip, ids, held, repeat(1)))
        findings.append(these.finding(f"sessions.{name}", note=span if name == "count" else ""))
    for name, parts in each.items():
        total = count(sum([k for _, k in parts]), len(parts), evidence=partial(_each_once, parts))
        findings.append(total.finding(f"sessions.{name}.total"))
    for name in ("turns", "tool_calls", "edits"):
        findings.append(clustered_median(each[name], inputs.places).finding(f"sessions.{name}.median"))
    findings += [median_finding(inputs, f"sessions.{name}.median") for name in ("work_s", "waiting_s", "events")]

    spread: dict[str, _Values] = {
        "prompts": each["turns"],
        "model calls": each["steps"],
        "tool calls": each["tool_calls"],
        "edits": each["edits"],
        "events": signal_values(inputs, _EVENTS),
        "agent working minutes": [(s, number / 60) for s, number in signal_values(inputs, _WORK)],
        "agent waiting minutes": [(s, number / 60) for s, number in signal_values(inputs, _WAITING)],
    }
    spread = {name: values for name, values in spread.items() if values}
    groups = by(sessions, "agent")
    agents = agents_by_sessions(sessions)
    rows: list[list[Any]] = []
    for agent in agents:
        group = groups[agent]
        times = [s["started_at"] for s in group if s["started_at"] is not None]
        sums = [
            sum([s[_TOTALS[c]] or 0 for s in group]) for c in ("turns", "tool_calls", "edits", "subagent_tool_calls")
        ]
        rows.append([agent, len(group), *sums, min(times, default=None), max(times, default=None)])
    tables = [
        table(
            "sessions.spread",
            [[name, len(values), *quantiles([value for _, value in values])] for name, values in spread.items()],
            header=f"measure measure per session | n:count | {quantile_columns('number')}",
            n=n,
            evidence=[partial(_each_once, values) for values in spread.values()],
        ),
        table("sessions.by_agent", rows, n=n, evidence=[[s["session_id"] for s in groups[agent]] for agent in agents]),
    ]
    turns, calls = each["turns"], each["tool_calls"]
    charts = [
        stacked_chart(sessions, None, id="sessions.over_time", title="Sessions started", unit="sessions", kind="count"),
        histogram_chart(turns, COUNTS, id="sessions.turns.spread", title="Prompts per session", unit="prompts"),
        histogram_chart(calls, COUNTS, id="sessions.calls.spread", title="Tool calls per session", unit="tool calls"),
    ]
    return Outcome(findings, tables, charts)


def _each_once(values: _Values) -> list[Part]:
    return [(session_id, value, 1) for session_id, value in values]


SESSIONS_STUDY = Study(
    **declared(
        "study",
        "sessions",
        sessions=sql.SESSIONS,
        values=sql.values(_WORK, _WAITING, _EVENTS, detail=()),
        absent=sql.ABSENT,
    ),
    function=sessions_study,
)


# -- Sessions worth opening

_REPETITION, _ERRORS, _COST = "dynamics.repetition_rate", "user.tool_error_rate", "corpus.session_cost_usd"
_LEAST = 1e-9
_TITLE_CHARS = 90
_ABOUT = "about title or first prompt | agent | started:date | prompts:count | tool_calls tool calls:count"


def worth_opening(inputs: Inputs) -> Outcome:
    by_id = {row["session_id"]: row for row in inputs.rows["sessions"]}
    prompts = {row["session_id"]: row["text"] for row in inputs.rows["prompts"]}

    def most(name: str, title: str, header: str, path: str, figures: Callable[[Row], list[Any]]) -> Table:
        rows = [row for row in signal_rows(inputs, path) if row["num" if path == _ERRORS else "number"]]
        rows.sort(key=lambda row: ([-(without_bound(figure) or 0) for figure in figures(row)], row["session_id"]))
        shown = []
        for row in rows[:_MOST_OPENED]:
            session = by_id[row["session_id"]]
            about = " ".join(redacted_part(session["title"] or prompts.get(row["session_id"]) or "").split())
            facts = [session[column] for column in ("agent", "started_at", "n_prompts", "n_tool_calls")]
            shown.append([row["session_id"], *figures(row), cut_off(about, _TITLE_CHARS) or None, *facts])
        return table(
            f"worth.{name}",
            shown,
            title=title,
            header=f"session:session | {header} | {_ABOUT}",
            n=len(by_id),
            of="sessions",
            evidence=[[cells[0]] for cells in shown],
            note="Run `agentsignals show SESSION` to print one.",
        )

    def run(row: Row) -> list[Any]:
        return [int(row["stale_max"]), row["number"]]

    def failed(row: Row) -> list[Any]:
        return [int(row["num"]), row["number"]]

    def cost(row: Row) -> list[Any]:
        return [with_bound(row["number"], sql.is_cost_bound(by_id[row["session_id"]]))]

    runs = "run longest loop:count | rate repeated calls:share"
    failures = "failed:count | rate error rate:share"
    tables = [
        most("loops", "Most repetition", runs, _REPETITION, run),
        most("failing", "Most failed calls", failures, _ERRORS, failed),
        most("costly", "Most expensive", "cost:usd", _COST, cost),
    ]
    priced = {row["session_id"]: row["number"] for row in signal_rows(inputs, _COST) if row["number"] is not None}
    failing = {row["session_id"]: row["num"] for row in signal_rows(inputs, _ERRORS) if row["num"] is not None}
    total, n_failed = fsum(priced.values()), sum(failing.values())
    of_cost = fsum(sorted(priced.values(), reverse=True)[:_MOST_OPENED]) / total if total else None
    of_failed = sum(sorted(failing.values(), reverse=True)[:_MOST_OPENED]) / n_failed if n_failed else None
    low = sum(map(sql.is_cost_bound, inputs.rows["sessions"]))
    findings = [
        count(of_cost, len(priced), "share", evidence=_first(priced)).finding(
            "worth.cost_share", note=f"{low:,} of the costs are lower bounds" if low else ""
        ),
        count(of_failed, int(n_failed), "share", evidence=_first(failing)).finding("worth.error_share"),
    ]
    return Outcome(findings, tables, [], [])


def _first(of_session: dict[str, float]) -> list[Part]:
    """The sessions with most, of all; one that has nothing of it is counted as well."""
    most = {session_id for session_id, _ in ranked(of_session)[:_MOST_OPENED]}
    return [(session_id, n if session_id in most else 0, max(n, _LEAST)) for session_id, n in of_session.items()]


WORTH_OPENING_STUDY = Study(
    **declared(
        "study",
        "worth_opening",
        sessions=sql.SESSIONS,
        values=sql.values(_REPETITION, _ERRORS, _COST, detail=(*sql.RATIO, "stale_max")),
    ),
    function=worth_opening,
)


# -- Usage (SWE-chat)

_MOST_TYPES = 15
_MOST_LANGUAGES = 6


def usage(inputs: Inputs) -> Outcome:
    places = inputs.places
    turns: _Values = [(row["session_id"], row["n_prompts"]) for row in inputs.rows["sessions"] if row["n_prompts"]]
    calls: _Values = [(row["session_id"], int(row["number"])) for row in inputs.rows["calls"]]
    languages = inputs.rows["languages"]
    english = share_of(languages, places, lambda row: row["language"] == "en", "n")
    findings = [
        clustered_median(turns, places).finding("usage.turns.median"),
        clustered_median(calls, places).finding("usage.calls.median"),
        share_of(inputs.rows["calls"], places, lambda row: row["number"] == 0).finding("usage.without_call"),
        english.finding("usage.english"),
    ]
    touched: dict[str, list[Part]] = defaultdict(list)
    for row in inputs.rows["files"]:
        for name, n in msgspec.json.decode(row["value"], type=dict[str, int]).items():
            touched[name].append((row["session_id"], n, n))
    counted = Counter({name: sum(int(n) for _, n, _ in parts) for name, parts in touched.items()})
    total = counted.total()
    types: list[Row] = []
    for name, n in ranked(counted)[:_MOST_TYPES]:
        tip = f"{name}: {n:,} of {total:,} calls ({n / total:.1%}), in {len(touched[name]):,} sessions"
        types.append(bar(name, n, tip, evidence=touched[name]))
    spoken, groups = tally(languages, "language"), by(languages, "language")  # a row is a session's
    n_spoken, most = spoken.total(), ranked(spoken)[:_MOST_LANGUAGES]
    marks = []
    for name, n in most:
        tip = f"{name}: {n:,} of {n_spoken:,} prompts ({n / n_spoken:.1%}), in {len(groups[name]):,} sessions"
        marks.append(bar(name, n / n_spoken, tip, evidence=groups[name]))
    drawn = {name for name, _ in most}
    if others := [row for row in languages if row["language"] not in drawn]:
        n = sum(row["n"] for row in others)
        marks.append(bar(OTHERS, n / n_spoken, f"{OTHERS}: {n:,} of {n_spoken:,} prompts", evidence=others))
    note = f"the {_MOST_TYPES} most frequent of {len(counted):,}" if len(counted) > _MOST_TYPES else ""
    titles = "Prompts per session", "Tool calls per prompt"
    charts = [
        histogram_chart(turns, COUNTS, id="usage.turns", title=titles[0], unit="prompts"),
        histogram_chart(calls, COUNTS, id="usage.calls", title=titles[1], unit="calls", of="prompts"),
        chart("usage.file_types", types, bars("tool calls"), n=total, note=note),
        chart("usage.languages", marks, bars("share of prompts", "share"), n=n_spoken, fewest=2),
    ]
    rows: list[list[Any]] = []
    behind = []
    sized: dict[str, _Values] = {"prompts per session": turns, "tool calls per prompt": calls}
    for name, values in sized.items():
        if numbers := sorted(n for _, n in values):
            p99 = numbers[min(int(len(numbers) * 0.99), len(numbers) - 1)]
            rows.append([name, len(numbers), *quantiles(numbers), p99])
            behind.append(_each_once(values))
    header = f"of | n:count | {quantile_columns('number')} | p99 p99:count"
    sizes = table("usage.sizes", rows, header=header, n=len(turns), evidence=behind)
    return Outcome([f for f in findings if f.n], [sizes], charts)


USAGE_STUDY = Study(**declared("study", "usage"), function=usage)


# -- Concentration (SWE-chat, Figure 22)

_DRAWN = 3
_MOST_PLACES = 15


def concentration(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    groups = by([row for row in sessions if row["place"] is not None], PLACE)
    largest = ranked({place: len(rows) for place, rows in groups.items()})
    if not largest:
        return Outcome()
    placed = [row for row in sessions if row["place"] is not None]
    n, most = len(placed), largest[:_MOST_PLACES]
    held = accumulate(k for _, k in largest)
    kish = "Kish: squared sum of sessions over the sum of squares by project"
    unplaced = f"{len(sessions) - n:,} sessions have none" if len(sessions) > n else ""
    asked: tuple[tuple[str, str, float, str], ...] = (
        ("half", "Projects with half of the sessions", next(at for at, k in enumerate(held, 1) if 2 * k >= n), ""),
        ("places", "Projects (repositories and folders)", len(largest), unplaced),
        ("effective", "Effective number of projects", n * n / sum(k * k for _, k in largest), kish),
    )
    ids, of = [row["session_id"] for row in placed], "sessions with a known project"
    findings = [
        count(value, n, evidence=ids).finding(f"concentration.{name}", title, of, note, unit="projects")
        for name, title, value, note in asked
    ]
    rows: list[list[Any]] = []
    for place, k in most:
        group = groups[place]
        times = [row["started_at"] for row in group if row["started_at"] is not None]
        agents, models = listing(Counter(row["agent"] for row in group)), {row["model"] for row in group} - {None}
        span = [min(times, default=None), max(times, default=None)]
        rows.append([redacted(place), k, k / n, agents, len(models), *span])
    note = f"The {_MOST_PLACES} largest of {len(largest):,}." if len(largest) > _MOST_PLACES else ""
    behind = [[row["session_id"] for row in groups[place]] for place, _ in most]
    limits = []
    if largest[0][1] > DOMINANT * n:
        limits.append(f"{largest[0][1] / n:.0%} of the sessions are from one project, so figures may not generalize.")
    over_time = _concentration_chart(placed, [place for place, _ in largest[:_DRAWN]])
    tables = [table("concentration.largest", rows, n=n, evidence=behind, note=note)]
    return Outcome(findings, tables, [over_time], limits)


def _concentration_chart(placed: list[Row], largest: list[str]) -> Chart | None:
    """The share of the largest places among all sessions up to each day."""
    timed = sorted((r["started_at"], r["place"], r["session_id"]) for r in placed if r["started_at"] is not None)
    starts = [start_of(moment, "day") for moment, _, _ in timed]
    days = sorted(set(starts))
    if len(days) < 2:
        return None
    points = {*days[:: -(-len(days) // MOST_POINTS)], days[-1]}
    names = [
        place.replace("\\", "/").rstrip("/").rpartition("/")[2][:30] or place[:30] for place in map(redacted, largest)
    ]
    names = [f"{n + 1}: {name}" for n, name in enumerate(names)] if len(set(names)) < len(names) else names
    counted: Counter[str] = Counter()
    rows: list[Row] = []
    at = 0
    for day in days:
        while at < len(timed) and starts[at] <= day:
            counted[timed[at][1]] += 1
            at += 1
        for place, name in zip(largest, names, strict=True) if day in points else ():
            n, share = counted[place], counted[place] / at
            tip = f"{redacted(place)}, up to {day:%Y-%m-%d}: {n:,} of {at:,} sessions ({formatted(share, 'share')})"
            drawn = {"name": name, "from": iso_time(day), "value": share, "tip": tip}
            rows.append(mark(drawn, partial(_so_far, timed, at, place)))
    ends = iso_time(days[0]), iso_time(days[-1])
    return chart(
        "concentration.over_time",
        rows,
        over_time("lines", "cumulative share of sessions", "share", names, ends),
        n=len(timed),
        note=f"the {len(largest)} largest; {OTHERS} are not shown" if len(counted) > len(largest) else "",
        says="; ".join(row["tip"] for row in rows if row["from"] == ends[1]),
    )


def _so_far(timed: list[tuple[datetime, str, str]], n: int, place: str) -> EvidenceRows:
    return [(session_id, float(of == place), 1) for _, of, session_id in timed[:n]]


CONCENTRATION_STUDY = Study(**declared("study", "concentration"), function=concentration)


# -- What was read and what was skipped

_OF_FILES = NoSessions("Counted by files or records, not by sessions. See the Files page.")


def reading(inputs: Inputs) -> Outcome:
    def of(name: str, **values: Any) -> EvidenceQuery:
        return EvidenceQuery(_SQL["reading_rows"][name], values)

    rows, no_traces = inputs.rows, inputs.no_traces
    records: Counter[str] = Counter()
    files: dict[str, list[str]] = defaultdict(list)
    for row in rows["skips"]:
        for reason, n in msgspec.json.decode(row["skipped_reasons"], type=dict[str, int]).items():
            records[reason] += n
            files[reason].append(row["path"])
    skipped = [[r.replace("_", " "), n, len(files[r]), min(files[r])] for r, n in ranked(records)]
    endings: list[list[Any]] = [[ending or "none", n] for ending, n in ranked(no_traces)]
    formats = [
        [row["format"] or "unrecognised", *(row[key] for key in ("files", "sessions", "records", "skipped", "bytes"))]
        for row in rows["formats"]
    ]
    behind = [of("format", format=row["format"]) for row in rows["formats"]]
    notes = [[row["note"], row["files"]] for row in rows["notes"]]
    n_beside = sum(no_traces.values())
    tables = [
        table("reading.formats", formats, n=sum(row[1] for row in formats), evidence=behind),
        table("reading.reasons", skipped, n=records.total(), evidence=_OF_FILES),
        table("reading.no_traces", endings, n=n_beside, evidence=_OF_FILES),
        table("reading.notes", notes, n=sum(n for _, n in notes), evidence=_OF_FILES),
    ]
    total = {key: int(value or 0) for key, value in rows["totals"][0].items()}
    n_records = total["records"] + total["skipped"]
    counted = {
        "files": (total["files"], total["files"]),
        "records": (total["records"], n_records),
        "skipped": (total["skipped"], n_records),
        "no_traces": (n_beside, total["files"] + n_beside),
        "unknown": (total["unknown"], total["records"]),
    }
    findings = [
        count(value, n, evidence=of(name) if name == "unknown" else _OF_FILES).finding(f"reading.{name}")
        for name, (value, n) in counted.items()
    ]
    marks: list[Row] = []
    for name, n, _, n_read, _, size in sorted((row for row in formats if row[5]), key=lambda row: -row[5]):
        tip = f"{name}: {n:,} files, {size / 1e6:,.1f} MB, {n_read or 0:,} records"
        format_ = None if name == "unrecognised" else name
        marks.append(bar(f"{name} ({n:,})", size, tip, evidence=of("format", format=format_)))
    n = sum(row[1] for row in formats if row[5])
    limit = f"{total['skipped']:,} records could not be read. No figure includes them."
    drawn = chart("reading.formats", marks, bars("bytes", "bytes"), n=n)
    return Outcome(findings, tables, [drawn], [limit] if total["skipped"] else [])


READING_STUDY = Study(**declared("study", "reading"), function=reading)


# -- Turns: calls for each prompt

_AUTONOMY = "corpus.autonomy_ratio"
WINDOW_DAYS, FEWEST_TURNS = 7, 20
"""Days of a rolling window, and turns behind a point of a line (this project's choice)."""


def autonomy(inputs: Inputs) -> Outcome:
    measured = [row for row in inputs.rows["values"] if row["number"] is not None]
    of_agent = by(measured, "agent")
    rows: list[list[Any]] = []
    marks: list[Row] = []
    behind = []
    for agent in agents_by_sessions(measured):
        group = of_agent[agent]
        calls = sorted([row["number"] for row in group])
        typical = clustered_median([(row["session_id"], row["number"]) for row in group], inputs.places)
        together = pooled_ratio(group, inputs.places, is_share=False).value
        quarters = quantile(calls, 0.25), quantile(calls, 0.75)
        rows.append([agent, len(calls), typical.value, *typical.ends, *quarters, together])
        behind.append([row["session_id"] for row in group])
        ends = "–".join(formatted(end, "number") for end in typical.ends)
        sure = f"95% {ends}" if typical.interval else "too few for an interval"
        of = f"median {formatted(typical.value, 'number')} calls per prompt"
        marks.append(typical.mark(f"{agent} ({len(calls)})", f"{agent}: {of}, {sure}, n = {len(calls)} sessions"))
    findings = [
        median_finding(inputs, "autonomy.median"),
        pooled_finding(inputs, "autonomy.pooled", is_share=False),
    ]
    title, unit, n = "Tool calls per prompt", "tool calls per prompt", len(measured)
    spread = histogram_chart(signal_values(inputs, _AUTONOMY), RATIOS, id="autonomy.spread", title=title, unit=unit)
    agents = chart("autonomy.agents", marks, dots(unit, "number"), n=n)
    return Outcome(findings, [table("autonomy.by_agent", rows, n=n, evidence=behind)], [spread, agents])


AUTONOMY_STUDY = Study(
    **declared("study", "autonomy", values=sql.values(_AUTONOMY), absent=sql.ABSENT), function=autonomy
)


def _over_time(rows: list[tuple[Any, str, Any]], id: str, title: str, **lines: Any) -> Chart | None:  # noqa: A002  (the chart's field)
    """Lines over rolling windows of turns: time, session and observation of each."""
    title = f"{title}, rolling {WINDOW_DAYS} days"
    return lines_chart(rows, id=id, title=title, days=WINDOW_DAYS, fewest=FEWEST_TURNS, **lines)


# -- Time for a prompt (SWE-chat, Figure 30)

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_MINUTES: tuple[float, ...] = (0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
_MINUTE = 60.0
_ROUNDING = 1e-9


def turn_time(inputs: Inputs) -> Outcome:
    rows, places = inputs.rows["turns"], inputs.places
    took = [(row["session_id"], row["seconds"]) for row in rows]
    findings = [
        clustered_median(took, places, "seconds").finding("turn_time.median"),
        share_of(rows, places, lambda row: row["seconds"] > _MINUTE).finding("turn_time.over_minute"),
    ]
    title, unit, of = "Agent working minutes per prompt", "minutes", "prompts"
    minutes = [(session_id, seconds / _MINUTE) for session_id, seconds in took]
    timed = [(row["timestamp"], row["session_id"], row["seconds"] / _MINUTE) for row in rows]
    at = {name: _at(share) for name, share in _QUANTILES.items()}
    charts = [
        histogram_chart(minutes, _MINUTES, id="turn_time.spread", title=title, unit=unit, of=of),
        _over_time(timed, "turn_time.over_time", title, measures=at, unit=unit, kind="number", of=of),
    ]
    tables = [_by("agent", rows, places), _by("model", [r for r in rows if r["model"]], places)]
    return Outcome([f for f in findings if f.n], tables, charts)


def _at(share: float) -> Callable[[list[float]], float | None]:
    """That quantile, where so many values lie beyond it that it is not just the longest; None of fewer."""
    return lambda values: quantile(sorted(values), share) if len(values) * (1 - share) >= 1 - _ROUNDING else None


def _by(key: str, rows: list[Row], places: dict[str, str]) -> Table:
    """Quantiles by agent or model, with what speaks against a comparison."""
    shown: list[list[Any]] = []
    groups = by(rows, key)
    order = ranked({name: len(group) for name, group in groups.items()})
    for name, n in order:
        group = groups[name]
        seconds = [row["seconds"] for row in group]
        held = Counter(place for row in group if (place := places.get(row["session_id"])) is not None)
        largest = max(held.values(), default=0) / n
        figures = [_at(share)(seconds) for share in _QUANTILES.values()]
        warning = ONE_PLACE if largest > DOMINANT else ""
        shown.append([name, n, n_sessions(group), *figures, largest or None, warning])
    quantiles = " | ".join(f"{name}:seconds" for name in _QUANTILES)
    return table(
        f"turn_time.by_{key}",
        shown,
        title=f"Time per prompt, by {key}",
        header=f"{key}:{'code' if key == 'model' else 'text'} | n prompts:count | sessions:count | {quantiles}"
        " | largest largest project:share | warning caution",
        n=len(rows),
        of="prompts with an answer and a time",
        evidence=[[row["session_id"] for row in groups[name]] for name, _ in order],
        note="p90 needs at least 10 prompts, p99 100 and p99.9 1,000."
        + (" A prompt's model is the one its trace names, or its session's." if key == "model" else ""),
    )


TURN_TIME_STUDY = Study(**declared("study", "turn_time"), function=turn_time)


# -- Friction: how turns end (SWE-chat, Figures 8 and 31)

_ASKS = "chat.agent_clarification_stop"
_OBJECTS = "pushback"
ENDS = {
    "cut": ("cut short", ""),
    "asked": ("question by the agent", "the SWE-chat paper reports 1.4%"),
    _OBJECTS: ("pushback in the next prompt, at least", "the SWE-chat paper reports about 39%, labelled by a model"),
    "undisturbed": ("none of these, at most", "the SWE-chat paper reports 51% to 56%"),
}
"""Endings of a turn; the first that fits counts."""


def friction(inputs: Inputs) -> Outcome:
    recall = rules_recall_text()
    limit = (
        f"Pushback found by English word rules is a lower bound ({recall}). Do not compare it with model labels. For a"
        " better share run `agentsignals labels label pushback --by classifier`; charts and tables still use the rules."
    )
    # Each turn with how it ended; what objects is the next turn of its session.
    turns = inputs.rows["turns"]
    if not turns:
        return Outcome(limits=[limit])
    following = {(row["session_id"], row["turn"] - 1): row["pushback"] for row in turns}
    rows: list[Row] = []
    objecting: dict[tuple[str, int], bool] = {}
    for row in turns:
        reaction = following.get((row["session_id"], row["turn"]))
        objected = reaction not in (None, NONE)
        end = "cut" if row["cut"] else "asked" if row["asked"] else _OBJECTS if objected else "undisturbed"
        rows.append({**row, "end": end})
        if reaction is not None and end in (_OBJECTS, "undisturbed"):
            objecting[row["session_id"], row["turn"] + 1] = objected
    ends, sample = [row["end"] for row in rows], Sample([row["session_id"] for row in rows], inputs.places)
    findings = []
    marks = []
    for end, (words, published) in ENDS.items():
        e = sample.among(ends, end)
        of = at_least_text(e.k, e.n, "turns") if end == _OBJECTS else e.words("turns")
        marks.append(bar(words, e.k / e.n, f"{words}: {of}", evidence=e.counted))
        if end == "cut":
            findings.append(cut_short_finding(cut_short(rows, inputs.places), f"friction.{end}"))
            continue
        title = "Turns that ended with a question by the agent"
        if end == _OBJECTS:
            title = "Turns neither cut short nor ended by a question, with pushback in the next prompt"
            of = "such turns before an English prompt"
            findings.append(pushback_finding(inputs, objecting, f"friction.{end}", title, of, published))
        elif end == "undisturbed":
            note = f"{published}; an upper bound, because pushback is a lower one ({recall})"
            more: dict[str, Any] = {"signals": (CUT_SHORT, PUSHBACK, _ASKS), "classes": (NONE,)}
            title = "Turns without interruption, question or pushback"
            findings.append(e.finding(f"friction.{end}", title, "turns", note, **more))
        else:
            findings.append(e.finding(f"friction.{end}", title, "turns", published, signals=(CUT_SHORT, _ASKS)))

    def ends_in(end: str, of: list[Row]) -> list[float]:
        return [float(row["end"] == end) for row in of]

    names = {"cut": "cut short", "asked": "asked", _OBJECTS: "pushback, at least"}
    lines = _over_time(
        [(row["timestamp"], row["session_id"], row) for row in rows],
        "friction.over_time",
        "Friction",
        shares={name: partial(ends_in, end) for end, name in names.items()},
        unit="share of turns",
        kind="share",
        of="turns",
    )
    charts = [
        chart("friction.ends", marks, bars("share of turns", "share"), n=len(rows), note=recall),
        (lines and replace(lines, note="; ".join(part for part in (lines.note, recall) if part))),
    ]
    # Endings of turns by the coding mode of their session, for both sources.
    shown: list[list[Any]] = []
    behind = []
    for source in CODING_MODE_SOURCES:
        mode_of = mode_by_session(inputs.rows["modes"], source)
        for mode in (*MODES_OF_SOURCE[source], None) if mode_of else ():
            group = [row for row in rows if mode_of.get(row["session_id"]) == mode]
            counted, n = Counter(row["end"] for row in group), len(group)
            if group:
                shares = (with_bound(counted[end] / n, end == _OBJECTS) for end in ENDS)
                shown.append([f"{NAMES[mode] if mode else 'no mode'}, {source}", n, *shares])
                behind.append(group)
    header = " | ".join(["mode | n turns:count", *(f"{end} {words}:share" for end, (words, _) in ENDS.items())])
    note = f"The first matching column counts, from the left. Pushback: {recall}."
    by_mode = table("friction.by_mode", shown, header=header, n=len(rows), evidence=behind, note=note)
    return Outcome(findings, [by_mode], charts, [limit])


FRICTION_STUDY = Study(**declared("study", "friction", labels=PUSHBACK_LABELS, modes=MODES), function=friction)


# -- Oversight (SWE-chat, Figures 8, 30 and 31)

_Column = Callable[[list[Row]], list[float]]


def _once(column: str) -> _Column:
    return lambda rows: [float(bool(row[column])) for row in rows]


def _times(column: str) -> _Column:
    return lambda rows: [float(row[column] or 0) for row in rows]


def _each(rows: list[Row]) -> list[float]:
    return [1.0] * len(rows)


class _Act(NamedTuple):
    """Something that happens to a turn. `part` of `whole`: how often, of how many chances it had in each turn."""

    key: str
    short: str
    part: _Column
    whole: _Column = _each


ACTS = (
    _Act("cut", "cut short", _once("cut")),
    _Act("interrupted", "interruption marker", _once("interrupts")),
    _Act("refused", "refused a call", _once("refused")),
    _Act("asked", "agent asked by tool", _once("asked")),
    _Act("asked_in_words", "agent asked in words", _once("asked_in_words")),
    _Act("plans", "agent proposed a plan", _once("plans")),
    _Act("approved", "plans approved", _times("approved"), _times("decided")),
    _Act("refused_calls", "calls refused", _times("refused"), _times("calls")),
)


class _Turns:
    """Turns by column: `parts` and `wholes` of each act, by its key."""

    def __init__(self, rows: list[Row]) -> None:
        self.sessions: list[str] = [row["session_id"] for row in rows]
        self.parts = {act.key: act.part(rows) for act in ACTS}
        self.wholes = {act.key: act.whole(rows) for act in ACTS}
        self.calls: list[float] = [row["calls"] or 0 for row in rows]
        self.seconds: list[float | None] = [row["seconds"] for row in rows]

    def estimates(self, places: dict[str, str]) -> list[tuple[_Act, ClusteredShare]]:
        turns = Sample(self.sessions, places)
        return [
            (act, turns.share(self.parts[act.key]) if act.whole is _each else self._of_chances(act, places))
            for act in ACTS
        ]

    def _of_chances(self, act: _Act, places: dict[str, str]) -> ClusteredShare:
        parts = zip(self.sessions, self.parts[act.key], self.wholes[act.key], strict=True)
        return clustered_share([part for part in parts if part[2]], places)

    def figures(self, groups: Sequence[Any]) -> dict[Any, list[Any]]:
        """Return the figures of each group; `groups` names each turn's group."""
        shares = [
            (nonzero_sums(groups, self.parts[act.key]), nonzero_sums(groups, self.wholes[act.key])) for act in ACTS
        ]
        calls, seconds = defaultdict(list), defaultdict(list)
        for group, n, took in zip(groups, self.calls, self.seconds, strict=True):
            calls[group].append(n)
            if took is not None:
                seconds[group].append(took)
        return {
            group: [
                len(each),
                *(part.get(group, 0.0) / whole[group] if group in whole else None for part, whole in shares),
                median(each),
                median(seconds[group]),
            ]
            for group, each in calls.items()
        }

    def of(self, groups: Sequence[Any], wanted: Any) -> list[str]:
        """The sessions of a group's turns."""
        return [session_id for session_id, group in zip(self.sessions, groups, strict=True) if group == wanted]


def oversight(inputs: Inputs) -> Outcome:
    rows, places = inputs.rows["turns"], inputs.places
    if not rows:
        return Outcome(limits=[])
    turns = _Turns(rows)
    findings = []
    marks = []
    for act, estimate in turns.estimates(places):
        if act.key == "cut":
            estimate = cut_short(rows, places)  # noqa: PLW2901
            finding = cut_short_finding(estimate, "oversight.cut")
        else:
            finding = estimate.finding(f"oversight.{act.key}")
        findings.append(finding)
        if estimate.n:
            tip = f"{finding.title}: {estimate.words(finding.of)}"
            marks.append(estimate.mark(f"{act.short} ({estimate.k:,.0f})", tip))
    findings.sort(key=lambda finding: finding.id == "oversight.cut")  # the study of friction begins with it
    seconds = [(s, float(took)) for s, took in zip(turns.sessions, turns.seconds, strict=True) if took is not None]
    calls = list(zip(turns.sessions, map(float, turns.calls), strict=True))
    findings += [
        clustered_median(seconds, places, "seconds").finding("oversight.seconds"),
        clustered_median(calls, places).finding("oversight.calls"),
    ]

    def taken(column: list[float], of: list[int]) -> list[float]:
        return [column[at] for at in of]

    def calls_at(share: float) -> Callable[[list[int]], float]:
        return lambda of: quantile(sorted(taken(turns.calls, of)), share)

    timed = [(row["timestamp"], row["session_id"], n) for n, row in enumerate(rows)]
    shares = {act.short: partial(taken, turns.parts[act.key]) for act in ACTS if act.whole is _each}
    measures = {"median": calls_at(0.5), "90%": calls_at(0.9)}
    title, unit = "Oversight events per turn", "share of turns"
    charts = [
        chart("oversight.acts", marks, dots("share of turns, plans or calls"), n=len(rows)),
        _over_time(timed, "oversight.over_time", title, unit=unit, kind="share", of="turns", shares=shares),
        _over_time(
            timed,
            "oversight.autonomy",
            "Calls per prompt",
            unit="calls",
            kind="number",
            of="turns",
            measures=measures,
        ),
    ]
    shown: list[list[Any]] = []
    behind: list[Evidence] = []
    n_replayed = 0
    for source in CODING_MODE_SOURCES:
        if mode_of := mode_by_session(inputs.rows["modes"], source):
            groups = [mode_of.get(session_id) for session_id in turns.sessions]
            figures = turns.figures(groups)
            held = [mode for mode in MODES_OF_SOURCE[source] if mode in figures]
            shown += [[f"{NAMES[mode]}, {source}", *figures[mode]] for mode in held]
            behind += [partial(turns.of, groups, mode) for mode in held]
            n_replayed += sum(figures[mode][0] for mode in held) if source == "replayed" else 0
    agents = [row["agent"] for row in rows]
    figures = turns.figures(agents)
    order = agents_by_sessions({row["session_id"]: row for row in rows}.values())
    of_agents = [[agent, *figures[agent]] for agent in order]
    tables = [
        _oversight_table("mode", shown, n_replayed or len(rows), behind),
        _oversight_table("agent", of_agents, len(rows), [partial(turns.of, agents, agent) for agent in order]),
    ]
    return Outcome([f for f in findings if f.n], tables, charts)


def _oversight_table(key: str, shown: list[list[Any]], n: int, behind: Sequence[Evidence]) -> Table:
    acts = " | ".join(f"{act.key} {act.short}:share" for act in ACTS)
    header = f"{key} {key} | n turns:count | {acts} | calls median calls:number | seconds median time:seconds"
    title = f"Oversight, by {key}"
    return table(f"oversight.by_{key}", shown, title=title, header=header, n=n, of="turns", evidence=behind)


OVERSIGHT_STUDY = Study(**declared("study", "oversight", modes=MODES), function=oversight)
