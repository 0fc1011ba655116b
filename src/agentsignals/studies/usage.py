"""How agents are used: the size of conversations, what a prompt sets off, kinds of files, languages (SWE-chat)."""

from __future__ import annotations

from collections import Counter

import msgspec

from agentsignals.analysis.charts import OTHERS, bars
from agentsignals.analysis.clusters import Estimate, median_interval
from agentsignals.analysis.distributions import COUNTS, histogram_chart, quantile_columns, quantiles
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import median

_CALLS, _FILES, _LANGUAGE = "chat.tool_calls_per_turn", "chat.file_types_touched", "chat.prompt_language"
_MOST_TYPES = 15
_MOST_LANGUAGES = 6
_VALUE = "FROM signals WHERE signal = '{}' AND absent IS NULL"


def _outcome(inputs: Inputs) -> Outcome:
    places = by_session(inputs.rows["sessions"])
    turns = [(row["session_id"], row["n_turns"]) for row in inputs.rows["sessions"] if row["n_turns"]]
    calls = [(row["session_id"], int(row["number"])) for row in inputs.rows["calls"]]
    languages = inputs.rows["languages"]
    findings = [
        _median("turns", "Prompts in the median session", "prompts", turns, "sessions with a prompt", places),
        _median("calls", "Tool calls for the median prompt", "tool calls", calls, "prompts", places),
        _share(
            "without_call",
            "Prompts answered without a tool call",
            Estimate([(s, float(n == 0), 1) for s, n in calls], places),
            _CALLS,
            again(f"SELECT avg(CAST(number = 0 AS INT)) {_VALUE.format(_CALLS)}"),
            "prompts",
        ),
        _share(
            "english",
            "Prompts in English",
            Estimate([(r["session_id"], r["n"] * (r["language"] == "en"), r["n"]) for r in languages], places),
            _LANGUAGE,
            again(f"SELECT avg(CAST(json_extract_string(value, '') = 'en' AS INT)) {_VALUE.format(_LANGUAGE)}"),
            "prompts whose language is known",
            "SWE-chat: over 80%",
        ),
    ]
    charts = [
        histogram_chart([n for _, n in turns], COUNTS, id="usage.turns", title="Prompts in a session", unit="prompts"),
        histogram_chart(
            [n for _, n in calls], COUNTS, id="usage.calls", title="Tool calls for a prompt", unit="calls", of="prompts"
        ),
        _file_types(inputs.rows["files"]),
        _languages(languages),
    ]
    limits = [
        "A prompt's calls are those until the next prompt, waiting for none: a prompt queued while the agent works"
        " takes over the calls that follow it.",
    ]
    return Outcome([f for f in findings if f.n], [_sizes(turns, calls)], [c for c in charts if c is not None], limits)


def _median(  # noqa: PLR0913  (a finding's words, in the order they are read)
    name: str, title: str, unit: str, values: list[tuple[str, int]], of: str, places: dict[str, str]
) -> Finding:
    sql = {
        "turns": "SELECT median(n_turns) FROM sessions WHERE n_turns > 0",
        "calls": f"SELECT median(number) {_VALUE.format(_CALLS)}",
    }
    return Finding(
        id=f"usage.{name}.median",
        title=title,
        value=median([n for _, n in values]),
        unit=unit,
        kind="number",
        n=len(values),
        of=of,
        interval=median_interval(values, places),
        signals=(_CALLS,) if name == "calls" else (),
        command=again(sql[name]),
    )


def _share(  # noqa: PLR0913  (as above)
    name: str, title: str, estimate: Estimate, path: str, command: str, of: str, note: str = ""
) -> Finding:
    return estimate.finding(
        note, id=f"usage.{name}", title=title, unit=f"share of {of}", of=of, command=command, signals=(path,)
    )


def _sizes(turns: list[tuple[str, int]], calls: list[tuple[str, int]]) -> Table:
    named = (("prompts in a session", turns), ("tool calls for a prompt", calls))
    return Table(
        id="usage.sizes",
        title="Sizes",
        columns=(
            Column("of", "of"),
            Column("n", "n", "count"),
            *quantile_columns("number"),
            Column("p99", "99%", "count"),
        ),
        rows=[
            [name, len(values), *quantiles([n for _, n in values]), _at([n for _, n in values], 0.99)]
            for name, values in named
            if values
        ],
        n=len(turns),
        of="sessions with a prompt",
    )


def _at(values: list[int], share: float) -> int:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def _file_types(rows: list[Row]) -> Chart | None:
    counted: Counter[str] = Counter()
    sessions: Counter[str] = Counter()
    for row in rows:
        types: dict[str, int] = msgspec.json.decode(row["value"])
        counted.update(types)
        sessions.update(types.keys())
    total = counted.total()
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_TYPES]
    drawn: list[Row] = [
        {
            "name": name[:24],
            "value": n,
            "tip": f"{name[:24]}: {n:,} of {total:,} calls ({n / total:.1%}), in {sessions[name]:,} sessions",
        }
        for name, n in ranked
    ]
    if not drawn:
        return None
    return Chart(
        id="usage.file_types",
        title="Kinds of files that calls are about",
        says="; ".join(row["tip"] for row in drawn),
        spec=bars(drawn, "tool calls"),
        n=total,
        of="calls about one file",
        note=f"the {_MOST_TYPES} most frequent of {len(counted):,}" if len(counted) > _MOST_TYPES else "",
    )


def _languages(rows: list[Row]) -> Chart | None:
    counted: Counter[str] = Counter()
    sessions: dict[str, set[str]] = {}
    for row in rows:
        counted[row["language"]] += row["n"]
        sessions.setdefault(row["language"], set()).add(row["session_id"])
    total = counted.total()
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = sum(n for _, n in ranked[_MOST_LANGUAGES:])
    drawn: list[Row] = [
        {
            "name": name,
            "value": n / total,
            "tip": f"{name}: {n:,} of {total:,} prompts ({n / total:.1%}), in {len(sessions[name]):,} sessions",
        }
        for name, n in ranked[:_MOST_LANGUAGES]
    ]
    if rest:
        drawn.append({"name": OTHERS, "value": rest / total, "tip": f"{OTHERS}: {rest:,} of {total:,} prompts"})
    if len(drawn) < 2:
        return None
    return Chart(
        id="usage.languages",
        title="Languages of prompts",
        says="; ".join(row["tip"] for row in drawn),
        spec=bars(drawn, "share of prompts", "share"),
        n=total,
        of="prompts whose language is known",
        note="ISO 639-1; prompts under 20 characters and those that are mostly code are left out",
    )


STUDY = Study(
    name="usage",
    place=140,
    title="Usage",
    question="How long are conversations, what does a prompt set off, and in which languages?",
    queries={
        "sessions": "SELECT session_id, repo, cwd, n_turns FROM sessions ORDER BY session_id",
        "calls": f"SELECT session_id, turn, number {_VALUE.format(_CALLS)} ORDER BY session_id, turn",
        "files": f"SELECT session_id, value {_VALUE.format(_FILES)} ORDER BY session_id",
        "languages": "SELECT session_id, json_extract_string(value, '') AS language, count(*) AS n"
        f" {_VALUE.format(_LANGUAGE)} GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
    context="product",
)
