"""How agents are used: the size of conversations, what a prompt sets off, kinds of files, languages (SWE-chat)."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from agentsignals.questions import sql
from agentsignals.questions.charts import COUNTS, OTHERS, bars, histogram_chart, quantile_columns, quantiles
from agentsignals.questions.estimates import bar, by, chart, clustered_median, ranked, share_of, table, tally
from agentsignals.questions.question import Chart, Inputs, Outcome, Part, Row, Study, Table

_CALLS, _FILES, _LANGUAGE = "chat.tool_calls_per_turn", "chat.file_types_touched", "chat.prompt_language"
_MOST_TYPES = 15
_MOST_LANGUAGES = 6
_VALUE = "FROM {} WHERE signal = '{}' AND absent IS NULL"


def _outcome(inputs: Inputs) -> Outcome:
    places = inputs.places
    turns = [(row["session_id"], row["n_prompts"]) for row in inputs.rows["sessions"] if row["n_prompts"]]
    calls = [(row["session_id"], int(row["number"])) for row in inputs.rows["calls"]]
    languages = inputs.rows["languages"]
    per_call, spoken = (_VALUE.format("signals", path) for path in (_CALLS, _LANGUAGE))
    findings = [
        clustered_median(turns, places).finding(
            "usage.turns.median",
            "Prompts in the median session with a prompt",
            "sessions with a prompt",
            unit="prompts",
            sql="SELECT median(n_prompts) FROM sessions WHERE n_prompts > 0",
        ),
        clustered_median(calls, places).finding(
            "usage.calls.median",
            "Tool calls for the median prompt",
            "prompts",
            unit="tool calls",
            sql=f"SELECT median(number) {per_call}",
            signals=(_CALLS,),
        ),
        share_of(inputs.rows["calls"], places, lambda row: row["number"] == 0).finding(
            "usage.without_call",
            "Prompts answered without a tool call",
            "prompts",
            sql=f"SELECT avg(CAST(number = 0 AS INT)) {per_call}",
            signals=(_CALLS,),
        ),
        share_of(languages, places, lambda row: row["language"] == "en", "n").finding(
            "usage.english",
            "Prompts in English",
            "prompts whose language is known",
            "SWE-chat: over 80%",
            sql=f"SELECT avg(CAST({sql.LABEL} = 'en' AS INT)) {spoken}",
            signals=(_LANGUAGE,),
        ),
    ]
    title = "Tool calls for a prompt"
    charts = [
        histogram_chart(turns, COUNTS, id="usage.turns", title="Prompts in a session", unit="prompts"),
        histogram_chart(calls, COUNTS, id="usage.calls", title=title, unit="calls", of="prompts"),
        _file_types(inputs.rows["files"]),
        _languages(languages),
    ]
    limits = [
        "A prompt's calls are those until the next prompt, waiting for none: a prompt queued while the agent works"
        " takes over the calls that follow it."
    ]
    return Outcome([f for f in findings if f.n], [_sizes(turns, calls)], charts, limits)


def _sizes(turns: list[tuple[str, int]], calls: list[tuple[str, int]]) -> Table:
    sized = (("prompts in a session", turns), ("tool calls for a prompt", calls))
    named = [(name, [n for _, n in values], [(s, n, 1) for s, n in values]) for name, values in sized if values]
    return table(
        "usage.sizes",
        "Sizes",
        f"of | n:count | {quantile_columns('number')} | p99 99%:count",
        [[name, len(values), *quantiles(values), _at(values, 0.99)] for name, values, _ in named],
        n=len(turns),
        of="sessions with a prompt",
        evidence=[parts for _, _, parts in named],
    )


def _at(values: list[int], share: float) -> int:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def _file_types(rows: list[Row]) -> Chart | None:
    touched: dict[str, list[Part]] = defaultdict(list)
    for row in rows:
        types: dict[str, int] = msgspec.json.decode(row["value"])
        for name, n in types.items():
            touched[name].append((row["session_id"], n, n))
    counted = Counter({name: sum(n for _, n, _ in parts) for name, parts in touched.items()})
    total = counted.total()
    rows = []
    for name, n in ranked(counted)[:_MOST_TYPES]:
        tip = f"{name[:24]}: {n:,} of {total:,} calls ({n / total:.1%}), in {len(touched[name]):,} sessions"
        rows.append(bar(name[:24], n, tip, evidence=touched[name]))
    return chart(
        "usage.file_types",
        "Kinds of files that calls are about",
        rows,
        bars(rows, "tool calls"),
        n=total,
        of="calls about one file",
        note=f"the {_MOST_TYPES} most frequent of {len(counted):,}" if len(counted) > _MOST_TYPES else "",
    )


def _languages(rows: list[Row]) -> Chart | None:
    counted, groups = tally(rows, "language"), by(rows, "language")  # a row is a session's
    total = counted.total()
    most = ranked(counted)[:_MOST_LANGUAGES]
    marks = []
    for name, n in most:
        tip = f"{name}: {n:,} of {total:,} prompts ({n / total:.1%}), in {len(groups[name]):,} sessions"
        marks.append(bar(name, n / total, tip, evidence=groups[name]))
    drawn_names = {name for name, _ in most}
    others = [row for row in rows if row["language"] not in drawn_names]
    if others:
        rest = sum(row["n"] for row in others)
        marks.append(bar(OTHERS, rest / total, f"{OTHERS}: {rest:,} of {total:,} prompts", evidence=others))
    return chart(
        "usage.languages",
        "Languages of prompts",
        marks,
        bars(marks, "share of prompts", "share"),
        n=total,
        of="prompts whose language is known",
        note="ISO 639-1; prompts under 20 characters and those that are mostly code are left out",
        fewest=2,
    )


STUDY = Study(
    name="usage",
    order=140,
    title="Usage",
    question="How long are conversations, what does a prompt set off, and in which languages?",
    queries={
        "sessions": f"SELECT session_id, {sql.PLACE}, n_prompts FROM sessions ORDER BY session_id",
        "calls": f"SELECT session_id, turn, number {_VALUE.format(sql.NAMED, _CALLS)} ORDER BY session_id, turn",
        "files": f"SELECT session_id, value {_VALUE.format(sql.NAMED, _FILES)} ORDER BY session_id",
        "languages": f"SELECT session_id, {sql.LABEL} AS language, count(*) AS n"
        f" {_VALUE.format(sql.NAMED, _LANGUAGE)} GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
    context="product",
)
