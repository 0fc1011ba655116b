"""Number and size of sessions, the ones worth opening, usage, and concentration in one place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import repeat
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
from agentsignals.questions.question import Chart, EvidenceRows, Inputs, Outcome, Part, Row, Study, Table
from agentsignals.questions.sql import PLACE, declared, read_queries
from agentsignals.redaction import redacted, redacted_part

_SQL = read_queries(__file__)

_WORK, _WAITING = "infra.work_time_s", "infra.waiting_time_s"
_EVENTS = "corpus.session_length_events"
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
    each = {column: inputs.present("sessions", "session_id", column) for column in _TOTALS.values()}
    title = "Sessions started"
    charts = [
        stacked_chart(sessions, None, id="sessions.over_time", title=title, unit="sessions", kind="count"),
        histogram_chart(
            each["n_prompts"], COUNTS, id="sessions.turns.spread", title="Prompts in a session", unit="prompts"
        ),
        histogram_chart(
            each["n_tool_calls"], COUNTS, id="sessions.calls.spread", title="Tool calls in a session", unit="tool calls"
        ),
    ]
    medians = [
        clustered_median(each[_TOTALS[name]], inputs.places).finding(f"sessions.{name}.median")
        for name in ("turns", "tool_calls", "edits")
    ]
    columns = {"prompts": "n_prompts", "model calls": "n_steps", "tool calls": "n_tool_calls", "edits": "n_edits"}
    spread: dict[str, _Values] = {name: each[column] for name, column in columns.items()}
    for name, path, unit in (
        ("events", _EVENTS, 1),
        ("minutes the agent worked", _WORK, 60),
        ("minutes it waited", _WAITING, 60),
    ):
        spread[name] = [(session_id, number / unit) for session_id, number in signal_values(inputs, path)]
    spread = {name: values for name, values in spread.items() if values}
    n, ids = len(sessions), [s["session_id"] for s in sessions]
    times = [s["started_at"] for s in sessions if s["started_at"] is not None]
    span = f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d} (UTC)" if times else ""
    counted = {
        "count": [True] * n,
        "without_time": [s["started_at"] is None for s in sessions],
        "without_prompt": [s["n_prompts"] == 0 for s in sessions],
        "children": [s["parent_session_id"] is not None for s in sessions],
    }
    return Outcome(
        [
            *[
                count(sum(held), n, evidence=partial(zip, ids, held, repeat(1))).finding(
                    f"sessions.{name}", note=span if name == "count" else ""
                )
                for name, held in counted.items()
            ],
            *[
                count(sum([k for _, k in parts]), len(parts), evidence=partial(_each_once, parts)).finding(
                    f"sessions.{name}.total"
                )
                for name, column in _TOTALS.items()
                for parts in [each[column]]
            ],
            *medians,
            median_finding(inputs, "sessions.work_s.median"),
            median_finding(inputs, "sessions.waiting_s.median"),
            median_finding(inputs, "sessions.events.median"),
        ],
        [
            table(
                "sessions.spread",
                [[name, len(values), *quantiles([value for _, value in values])] for name, values in spread.items()],
                header=f"measure measure of a session | n:count | {quantile_columns('number')}",
                n=len(inputs.rows["sessions"]),
                evidence=[partial(_each_once, values) for values in spread.values()],
            ),
            _by_agent(sessions),
        ],
        charts,
    )


def _each_once(values: _Values) -> list[Part]:
    return [(session_id, value, 1) for session_id, value in values]


def _by_agent(sessions: list[Row]) -> Table:
    columns = ("n_prompts", "n_tool_calls", "n_edits", "n_subagent_tool_calls")
    groups = by(sessions, "agent")
    rows: list[list[Any]] = []
    for agent in agents_by_sessions(sessions):
        group = groups[agent]
        times = [s["started_at"] for s in group if s["started_at"] is not None]
        sums = [sum([s[c] or 0 for s in group]) for c in columns]
        rows.append([agent, len(group), *sums, min(times, default=None), max(times, default=None)])
    return table(
        "sessions.by_agent", rows, n=len(sessions), evidence=[[s["session_id"] for s in groups[row[0]]] for row in rows]
    )


SESSIONS_STUDY = Study(
    **declared("study", "sessions"),
    queries={"sessions": sql.SESSIONS, "values": sql.values(_WORK, _WAITING, _EVENTS, detail=()), "absent": sql.ABSENT},
    function=sessions_study,
)


# -- Sessions worth opening

_REPETITION = "dynamics.repetition_rate"
_ERRORS = "user.tool_error_rate"
_COST = "corpus.session_cost_usd"
_MOST_OPENED, _LEAST = 5, 1e-9
_TITLE_CHARS = 90
_ABOUT = "about title or first prompt | agent | started:date | prompts:count | tool_calls tool calls:count"


def worth_opening(inputs: Inputs) -> Outcome:
    by_id = {row["session_id"]: row for row in inputs.rows["sessions"]}
    prompts = {row["session_id"]: row["text"] for row in inputs.rows["prompts"]}

    def most(
        name: str,
        title: str,
        header: str,
        rows: list[Row],
        figures: Callable[[Row], list[Any]],
    ) -> Table:
        rows.sort(key=lambda row: ([-(without_bound(figure) or 0) for figure in figures(row)], row["session_id"]))
        return table(
            f"worth.{name}",
            [
                [row["session_id"], *figures(row), *_session_cells(by_id[row["session_id"]], prompts)]
                for row in rows[:_MOST_OPENED]
            ],
            title=title,
            header=f"session:session | {header} | {_ABOUT}",
            n=len(by_id),
            of="sessions",
            evidence=[[row["session_id"]] for row in rows[:_MOST_OPENED]],
            note="agentsignals show SESSION prints one.",
        )

    def cost_of(row: Row) -> list[Any]:
        return [with_bound(row["number"], by_id[row["session_id"]][sql.BOUND] is not None)]

    loops, failing, costly = (
        [row for row in signal_rows(inputs, path) if row[key]]
        for path, key in ((_REPETITION, "number"), (_ERRORS, "num"), (_COST, "number"))
    )
    runs, failed = (
        "run equal calls with no edit between:count | rate repeats:share",
        "failed:count | rate of the answered:share",
    )
    tables = [
        most("loops", "Most repetition", runs, loops, lambda row: [int(row["stale_max"]), row["number"]]),
        most("failing", "Most failed calls", failed, failing, lambda row: [int(row["num"]), row["number"]]),
        most("costly", "Costliest", "cost:usd", costly, cost_of),
    ]
    priced = {row["session_id"]: row["number"] for row in signal_rows(inputs, _COST) if row["number"] is not None}
    opening_failing = {row["session_id"]: row["num"] for row in signal_rows(inputs, _ERRORS) if row["num"] is not None}
    costs, errors = (sorted(of_session.values(), reverse=True) for of_session in (priced, opening_failing))
    total, opening_failed = fsum(costs), sum(errors)
    low = sum(row[sql.BOUND] is not None for row in inputs.rows["sessions"])
    return Outcome(
        [
            count(
                fsum(costs[:_MOST_OPENED]) / total if total else None, len(costs), "share", evidence=_first(priced)
            ).finding(
                "worth.cost_share",
                title=f"Cost that the {_MOST_OPENED} costliest sessions make up",
                note=f"{low:,} of the costs are lower bounds" if low else "",
                sql=f"SELECT (SELECT sum(number) FROM (SELECT number FROM signals WHERE signal = '{_COST}'"
                f" ORDER BY number DESC NULLS LAST LIMIT {_MOST_OPENED})) / sum(number) FROM signals"
                f" WHERE signal = '{_COST}'",
            ),
            count(
                sum(errors[:_MOST_OPENED]) / opening_failed if opening_failed else None,
                int(opening_failed),
                "share",
                evidence=_first(opening_failing),
            ).finding(
                "worth.error_share",
                title=f"Failed calls that lie in the {_MOST_OPENED} sessions with most",
                sql="SELECT (SELECT sum(k) FROM (SELECT CAST(detail->>'num' AS DOUBLE) AS k FROM signals"
                f" WHERE signal = '{_ERRORS}' ORDER BY k DESC NULLS LAST LIMIT {_MOST_OPENED}))"
                f" / sum(CAST(detail->>'num' AS DOUBLE)) FROM signals WHERE signal = '{_ERRORS}'",
            ),
        ],
        tables,
        [],
        [],
    )


def _session_cells(session: Row, prompts: dict[str, str]) -> list[Any]:
    about = " ".join(redacted_part(session["title"] or prompts.get(session["session_id"]) or "").split())
    short = about if len(about) <= _TITLE_CHARS else f"{about[: _TITLE_CHARS - 1]}…"
    figures = [session[key] for key in ("agent", "started_at", "n_prompts", "n_tool_calls")]
    return [short or None, *figures]


def _first(of_session: dict[str, float]) -> list[Part]:
    """The sessions with most, of all; one that has nothing of it is counted as well."""
    most = {session_id for session_id, _ in ranked(of_session)[:_MOST_OPENED]}
    return [(session_id, n if session_id in most else 0, max(n, _LEAST)) for session_id, n in of_session.items()]


WORTH_OPENING_STUDY = Study(
    **declared("study", "worth_opening"),
    queries={
        **_SQL["worth_opening"],
        "sessions": sql.SESSIONS,
        "values": sql.values(_REPETITION, _ERRORS, _COST, detail=(*sql.RATIO, "stale_max")),
    },
    function=worth_opening,
)


# -- Usage (SWE-chat)

_CALLS, _FILES, _LANGUAGE = "chat.tool_calls_per_turn", "chat.file_types_touched", "chat.prompt_language"
_MOST_TYPES = 15
_MOST_LANGUAGES = 6
_VALUE = "FROM {} WHERE signal = '{}' AND absent IS NULL"


def usage(inputs: Inputs) -> Outcome:
    places = inputs.places
    turns = [(row["session_id"], row["n_prompts"]) for row in inputs.rows["sessions"] if row["n_prompts"]]
    calls = [(row["session_id"], int(row["number"])) for row in inputs.rows["calls"]]
    languages = inputs.rows["languages"]
    per_call, spoken = (_VALUE.format("signals", path) for path in (_CALLS, _LANGUAGE))
    findings = [
        clustered_median(turns, places).finding("usage.turns.median"),
        clustered_median(calls, places).finding("usage.calls.median", sql=f"SELECT median(number) {per_call}"),
        share_of(inputs.rows["calls"], places, lambda row: row["number"] == 0).finding(
            "usage.without_call", sql=f"SELECT avg(CAST(number = 0 AS INT)) {per_call}"
        ),
        share_of(languages, places, lambda row: row["language"] == "en", "n").finding(
            "usage.english", sql=f"SELECT avg(CAST({sql.LABEL} = 'en' AS INT)) {spoken}"
        ),
    ]
    title = "Tool calls for a prompt"
    rows = inputs.rows["files"]
    touched: dict[str, list[Part]] = defaultdict(list)
    for types_row in rows:
        types: dict[str, int] = msgspec.json.decode(types_row["value"])
        for name, n in types.items():
            touched[name].append((types_row["session_id"], n, n))
    counted = Counter({name: sum(n for _, n, _ in parts) for name, parts in touched.items()})
    total = counted.total()
    rows = []
    for name, n in ranked(counted)[:_MOST_TYPES]:
        tip = f"{name[:24]}: {n:,} of {total:,} calls ({n / total:.1%}), in {len(touched[name]):,} sessions"
        rows.append(bar(name[:24], n, tip, evidence=touched[name]))
    spoken_in, groups = tally(languages, "language"), by(languages, "language")  # a row is a session's
    languages_total = spoken_in.total()
    most = ranked(spoken_in)[:_MOST_LANGUAGES]
    marks = []
    for name, n in most:
        share = f"{n:,} of {languages_total:,} prompts ({n / languages_total:.1%})"
        tip = f"{name}: {share}, in {len(groups[name]):,} sessions"
        marks.append(bar(name, n / languages_total, tip, evidence=groups[name]))
    drawn_names = {name for name, _ in most}
    others = [row for row in languages if row["language"] not in drawn_names]
    if others:
        rest = sum(row["n"] for row in others)
        marks.append(
            bar(OTHERS, rest / languages_total, f"{OTHERS}: {rest:,} of {languages_total:,} prompts", evidence=others)
        )
    charts = [
        histogram_chart(turns, COUNTS, id="usage.turns", title="Prompts in a session", unit="prompts"),
        histogram_chart(calls, COUNTS, id="usage.calls", title=title, unit="calls", of="prompts"),
        chart(
            "usage.file_types",
            rows,
            bars(rows, "tool calls"),
            n=total,
            note=f"the {_MOST_TYPES} most frequent of {len(counted):,}" if len(counted) > _MOST_TYPES else "",
        ),
        chart("usage.languages", marks, bars(marks, "share of prompts", "share"), n=languages_total, fewest=2),
    ]
    sized = (("prompts in a session", turns), ("tool calls for a prompt", calls))
    named = [(name, [n for _, n in values], [(s, n, 1) for s, n in values]) for name, values in sized if values]
    return Outcome(
        [f for f in findings if f.n],
        [
            table(
                "usage.sizes",
                [
                    [
                        name,
                        len(values),
                        *quantiles(values),
                        sorted(values)[min(int(len(values) * 0.99), len(values) - 1)],
                    ]
                    for name, values, _ in named
                ],
                header=f"of | n:count | {quantile_columns('number')} | p99 99%:count",
                n=len(turns),
                evidence=[parts for _, _, parts in named],
            )
        ],
        charts,
    )


USAGE_STUDY = Study(**declared("study", "usage"), queries=_SQL["usage"], function=usage)


# -- Concentration (SWE-chat, Figure 22)

_DRAWN = 3
_MOST_PLACES = 15
_OF = "sessions whose place is known"


def concentration(inputs: Inputs) -> Outcome:
    rows = inputs.rows["sessions"]
    placed = [(row, place) for row in rows if (place := row["place"]) is not None]
    counted = Counter(place for _, place in placed)
    if not counted:
        return Outcome()
    n = counted.total()
    largest = ranked(counted)
    unplaced = f"{len(rows) - n:,} sessions name none" if len(rows) > n else ""
    kish = "the square of the sessions over the sum of their squares by place (Kish)"
    effective = n * n / sum(k * k for k in counted.values())
    asked = (
        ("places", "Repositories and folders", len(counted), unplaced),
        ("effective", "Places of one size that would tell as much", effective, kish),
        ("half", "Places that hold half of the sessions", _holding(largest, n / 2), ""),
    )
    findings = [
        count(value, n, evidence=[row["session_id"] for row, _ in placed]).finding(
            f"concentration.{name}", title, _OF, note, unit="places"
        )
        for name, title, value, note in asked
    ]
    limits = []
    if largest[0][1] > DOMINANT * n:
        limits.append(f"{largest[0][1] / n:.0%} of the sessions lie in one place: every figure is mostly its people's.")
    over_time = _concentration_chart(placed, [place for place, _ in largest[:_DRAWN]])
    concentration_rows: list[list[Any]] = []
    groups = by([row for row, _ in placed], PLACE)
    for concentration_place, concentration_n in largest[:_MOST_PLACES]:
        group = groups[concentration_place]
        models = {row["model"] for row in group} - {None}
        times = [row["started_at"] for row in group if row["started_at"] is not None]
        agents = listing(Counter(row["agent"] for row in group))
        span = [min(times, default=None), max(times, default=None)]
        concentration_rows.append(
            [redacted(concentration_place), concentration_n, concentration_n / len(placed), agents, len(models), *span]
        )
    return Outcome(
        findings,
        [
            table(
                "concentration.largest",
                concentration_rows,
                n=len(placed),
                evidence=[
                    [row["session_id"] for row in groups[concentration_place]]
                    for concentration_place, _ in largest[:_MOST_PLACES]
                ],
                note=f"The {_MOST_PLACES} largest of {len(largest):,}." if len(largest) > _MOST_PLACES else "",
            )
        ],
        [over_time],
        limits,
    )


def _holding(largest: list[tuple[str, int]], wanted: float) -> int:
    """Return how many of the largest places hold that many sessions."""
    held = 0
    for at, (_, n) in enumerate(largest):
        held += n
        if held >= wanted:
            return at + 1
    return len(largest)


def _concentration_chart(placed: list[tuple[Row, str]], largest: list[str]) -> Chart | None:
    """The share of the largest places among all sessions up to each day."""
    timed = sorted((r["started_at"], place, r["session_id"]) for r, place in placed if r["started_at"] is not None)
    starts = [start_of(moment, "day") for moment, _, _ in timed]
    days = sorted(set(starts))
    if len(days) < 2:
        return None
    step = -(-len(days) // MOST_POINTS)
    points = {*days[::step], days[-1]}
    names = [_short(redacted(place)) for place in largest]
    names = [f"{n + 1}: {name}" for n, name in enumerate(names)] if len(set(names)) < len(names) else names
    counted: Counter[str] = Counter()
    rows: list[Row] = []
    at = 0
    for day in days:
        while at < len(timed) and starts[at] <= day:
            counted[timed[at][1]] += 1
            at += 1
        if day not in points:
            continue
        for place, name in zip(largest, names, strict=True):
            n, share = counted[place], counted[place] / at
            tip = f"{redacted(place)}, up to {day:%Y-%m-%d}: {n:,} of {at:,} sessions ({formatted(share, 'share')})"
            behind = partial(_so_far, timed, at, place)
            rows.append(mark({"name": name, "from": iso_time(day), "value": share, "tip": tip}, behind))
    return chart(
        "concentration.over_time",
        rows,
        lines(rows, "share of sessions so far", "share", names, (iso_time(days[0]), iso_time(days[-1]))),
        n=len(timed),
        note=f"the {len(largest)} largest; {OTHERS} are not drawn" if len(counted) > len(largest) else "",
        says="; ".join(row["tip"] for row in rows if row["from"] == iso_time(days[-1])),
    )


def _so_far(timed: list[tuple[datetime, str, str]], n: int, place: str) -> EvidenceRows:
    return [(session_id, float(of == place), 1) for _, of, session_id in timed[:n]]


def _short(place: str) -> str:
    """The last name of a path."""
    return place.replace("\\", "/").rstrip("/").rpartition("/")[2][:30] or place[:30]


CONCENTRATION_STUDY = Study(**declared("study", "concentration"), queries=_SQL["concentration"], function=concentration)
