"""Number and size of sessions, the ones worth opening, usage, concentration in one place, and what was read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import accumulate, repeat
from math import fsum
from typing import Any, TypeAlias

import msgspec

from agentsignals.questions import sql
from agentsignals.questions.charts import (
    COUNTS,
    MOST_POINTS,
    OTHERS,
    bars,
    histogram_chart,
    iso_time,
    lines,
    quantile_columns,
    quantiles,
    stacked_chart,
    start_of,
)
from agentsignals.questions.estimates import (
    DOMINANT,
    agents_by_sessions,
    bar,
    by,
    chart,
    clustered_median,
    count,
    listing,
    mark,
    median_finding,
    ranked,
    share_of,
    signal_rows,
    signal_values,
    table,
    tally,
)
from agentsignals.questions.formatting import formatted, with_bound, without_bound
from agentsignals.questions.question import (
    Chart,
    EvidenceQuery,
    EvidenceRows,
    Inputs,
    NoSessions,
    Outcome,
    Part,
    Row,
    Study,
    Table,
)
from agentsignals.questions.sql import PLACE, declared, read_queries
from agentsignals.redaction import redacted, redacted_part

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
        "minutes the agent worked": [(s, number / 60) for s, number in signal_values(inputs, _WORK)],
        "minutes it waited": [(s, number / 60) for s, number in signal_values(inputs, _WAITING)],
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
            header=f"measure measure of a session | n:count | {quantile_columns('number')}",
            n=n,
            evidence=[partial(_each_once, values) for values in spread.values()],
        ),
        table("sessions.by_agent", rows, n=n, evidence=[[s["session_id"] for s in groups[agent]] for agent in agents]),
    ]
    turns, calls = each["turns"], each["tool_calls"]
    charts = [
        stacked_chart(sessions, None, id="sessions.over_time", title="Sessions started", unit="sessions", kind="count"),
        histogram_chart(turns, COUNTS, id="sessions.turns.spread", title="Prompts in a session", unit="prompts"),
        histogram_chart(calls, COUNTS, id="sessions.calls.spread", title="Tool calls in a session", unit="tool calls"),
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
            short = about if len(about) <= _TITLE_CHARS else f"{about[: _TITLE_CHARS - 1]}…"
            facts = [session[column] for column in ("agent", "started_at", "n_prompts", "n_tool_calls")]
            shown.append([row["session_id"], *figures(row), short or None, *facts])
        return table(
            f"worth.{name}",
            shown,
            title=title,
            header=f"session:session | {header} | {_ABOUT}",
            n=len(by_id),
            of="sessions",
            evidence=[[cells[0]] for cells in shown],
            note="agentsignals show SESSION prints one.",
        )

    def run(row: Row) -> list[Any]:
        return [int(row["stale_max"]), row["number"]]

    def failed(row: Row) -> list[Any]:
        return [int(row["num"]), row["number"]]

    def cost(row: Row) -> list[Any]:
        return [with_bound(row["number"], by_id[row["session_id"]][sql.BOUND] is not None)]

    runs = "run equal calls with no edit between:count | rate repeats:share"
    failures = "failed:count | rate of the answered:share"
    tables = [
        most("loops", "Most repetition", runs, _REPETITION, run),
        most("failing", "Most failed calls", failures, _ERRORS, failed),
        most("costly", "Costliest", "cost:usd", _COST, cost),
    ]
    priced = {row["session_id"]: row["number"] for row in signal_rows(inputs, _COST) if row["number"] is not None}
    failing = {row["session_id"]: row["num"] for row in signal_rows(inputs, _ERRORS) if row["num"] is not None}
    total, n_failed = fsum(priced.values()), sum(failing.values())
    of_cost = fsum(sorted(priced.values(), reverse=True)[:_MOST_OPENED]) / total if total else None
    of_failed = sum(sorted(failing.values(), reverse=True)[:_MOST_OPENED]) / n_failed if n_failed else None
    low = sum(row[sql.BOUND] is not None for row in inputs.rows["sessions"])
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
        tip = f"{name[:24]}: {n:,} of {total:,} calls ({n / total:.1%}), in {len(touched[name]):,} sessions"
        types.append(bar(name[:24], n, tip, evidence=touched[name]))
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
    titles = "Prompts in a session", "Tool calls for a prompt"
    charts = [
        histogram_chart(turns, COUNTS, id="usage.turns", title=titles[0], unit="prompts"),
        histogram_chart(calls, COUNTS, id="usage.calls", title=titles[1], unit="calls", of="prompts"),
        chart("usage.file_types", types, bars(types, "tool calls"), n=total, note=note),
        chart("usage.languages", marks, bars(marks, "share of prompts", "share"), n=n_spoken, fewest=2),
    ]
    rows: list[list[Any]] = []
    behind = []
    sized: dict[str, _Values] = {"prompts in a session": turns, "tool calls for a prompt": calls}
    for name, values in sized.items():
        if numbers := sorted(n for _, n in values):
            p99 = numbers[min(int(len(numbers) * 0.99), len(numbers) - 1)]
            rows.append([name, len(numbers), *quantiles(numbers), p99])
            behind.append(_each_once(values))
    header = f"of | n:count | {quantile_columns('number')} | p99 99%:count"
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
    kish = "the square of the sessions over the sum of their squares by place (Kish)"
    unplaced = f"{len(sessions) - n:,} sessions name none" if len(sessions) > n else ""
    asked: tuple[tuple[str, str, float, str], ...] = (
        ("places", "Repositories and folders", len(largest), unplaced),
        ("effective", "Places of one size that would tell as much", n * n / sum(k * k for _, k in largest), kish),
        ("half", "Places that hold half of the sessions", next(at for at, k in enumerate(held, 1) if 2 * k >= n), ""),
    )
    ids, of = [row["session_id"] for row in placed], "sessions whose place is known"
    findings = [
        count(value, n, evidence=ids).finding(f"concentration.{name}", title, of, note, unit="places")
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
        limits.append(f"{largest[0][1] / n:.0%} of the sessions lie in one place: every figure is mostly its people's.")
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
    names = [_short(redacted(place)) for place in largest]
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
        lines(rows, "share of sessions so far", "share", names, ends),
        n=len(timed),
        note=f"the {len(largest)} largest; {OTHERS} are not drawn" if len(counted) > len(largest) else "",
        says="; ".join(row["tip"] for row in rows if row["from"] == ends[1]),
    )


def _so_far(timed: list[tuple[datetime, str, str]], n: int, place: str) -> EvidenceRows:
    return [(session_id, float(of == place), 1) for _, of, session_id in timed[:n]]


def _short(place: str) -> str:
    """The last name of a path."""
    return place.replace("\\", "/").rstrip("/").rpartition("/")[2][:30] or place[:30]


CONCENTRATION_STUDY = Study(**declared("study", "concentration"), function=concentration)


# -- What was read and what was skipped

_OF_FILES = NoSessions("It counts files or their records, not sessions: the page Files has them.")


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
    absent = [[r["absent"].replace("_", " "), r["n"], r["signals"], r["sessions"]] for r in rows["absent"]]
    reasons = [of("absent", reason=row["absent"]) for row in rows["absent"]]
    n_beside = sum(no_traces.values())
    tables = [
        table("reading.formats", formats, n=sum(row[1] for row in formats), evidence=behind),
        table("reading.reasons", skipped, n=records.total(), evidence=_OF_FILES),
        table("reading.no_traces", endings, n=n_beside, evidence=_OF_FILES),
        table("reading.notes", notes, n=sum(n for _, n in notes), evidence=_OF_FILES),
        table("reading.absent", absent, n=sum(row[1] for row in absent), evidence=reasons),
    ]
    total = {key: int(value or 0) for key, value in rows["totals"][0].items()}
    n_records = total["records"] + total["skipped"]
    counted = {
        "files": (total["files"], total["files"]),
        "records": (total["records"], n_records),
        "skipped": (total["skipped"], n_records),
        "no_traces": (n_beside, total["files"] + n_beside),
        "unknown": (total["unknown"], total["records"]),
        "internal_errors": (total["internal"], total["n_values"]),
    }
    findings = []
    for name, (value, n) in counted.items():
        sessions = of(name) if name in ("unknown", "internal_errors") else _OF_FILES
        note = "please report them" if name == "internal_errors" and value else ""
        findings.append(count(value, n, evidence=sessions).finding(f"reading.{name}", note=note))
    marks: list[Row] = []
    for name, n, _, n_read, _, size in sorted((row for row in formats if row[5]), key=lambda row: -row[5]):
        tip = f"{name}: {n:,} files, {size / 1e6:,.1f} MB, {n_read or 0:,} records"
        format_ = None if name == "unrecognised" else name
        marks.append(bar(f"{name} ({n:,})", size, tip, evidence=of("format", format=format_)))
    n = sum(row[1] for row in formats if row[5])
    limit = f"{total['skipped']:,} records could not be read; what they hold is in no figure."
    drawn = chart("reading.formats", marks, bars(marks, "bytes", "bytes"), n=n)
    return Outcome(findings, tables, [drawn], [limit] if total["skipped"] else [])


READING_STUDY = Study(**declared("study", "reading"), function=reading, reads_every_signal=True)
