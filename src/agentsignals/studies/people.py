"""What people do: how they open, how short they are, when they object or pull the brake."""

from __future__ import annotations

from collections import Counter

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import bars, by_position
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import of_signal, pooled_finding
from agentsignals.analysis.study import Chart, Finding, Inputs, Outcome, Row, Study, again
from agentsignals.stats.estimates import share_interval, wilson

_PUSHBACK = "chat.pushback_rate"
_TYPE = "chat.pushback_type"
_CUT = "chat.hard_interruption"
_OPENING = "corpus.first_message_pattern"
_SHORT = "corpus.short_messages"
_LAST = 6
"""Prompts from this number on are one class."""
_OBJECTS, _BRAKES = "objects in words", "cuts the response"


def _outcome(inputs: Inputs) -> Outcome:
    charts = [c for c in (_positions(inputs.rows["turns"]), _openings(inputs)) if c is not None]
    limits = [
        "Objections are found by word patterns, which find a tenth to a third of what a reader finds: read the rates as"
        " lower bounds, and never beside rates from another labeller.",
        "Later prompts come from longer sessions: a rate that climbs with the prompt's number is in part a change of"
        " sessions, not of mood.",
    ]
    return Outcome(_findings(inputs), [], charts, limits)


def _findings(inputs: Inputs) -> list[Finding]:
    cut = [(row["cut"], row["n"]) for row in inputs.rows["cuts"]]
    short = [(row["le_20"], row["n"]) for row in inputs.rows["short"] if row["n"]]
    n_short = int(sum(n for _, n in short))
    return [
        pooled_finding(
            inputs,
            _PUSHBACK,
            "prompts",
            id="people.pushback",
            title="Prompts that object, or follow a response that was cut",
            unit="share of prompts",
        ),
        Finding(
            id="people.interrupted",
            title="Responses the person cut short",
            value=sum(k for k, _ in cut) / sum(n for _, n in cut) if cut else None,
            unit="share of prompts",
            kind="share",
            n=int(sum(n for _, n in cut)),
            of="prompts",
            interval=share_interval(cut),
            signals=(_CUT,),
            command=again(f"SELECT avg(number) FROM signals WHERE signal = '{_CUT}'"),
            note="an interrupt, a refused tool call, or a queued stop",
        ),
        Finding(
            id="people.short",
            title="Messages of at most 20 characters",
            value=sum(k for k, _ in short) / n_short if n_short else None,
            unit="share of messages",
            kind="share",
            n=n_short,
            of="messages",
            interval=share_interval(short),
            signals=(_SHORT,),
            command=again(
                "SELECT sum(CAST(value->>'le_20' AS INT)) / sum(CAST(value->>'n' AS INT)) FROM signals"
                f" WHERE signal = '{_SHORT}' AND absent IS NULL"
            ),
        ),
        _most_common(inputs),
    ]


def _most_common(inputs: Inputs) -> Finding:
    labels = [row["label"] for row in of_signal(inputs, _OPENING) if row["absent"] is None]
    most = min(Counter(labels).items(), key=lambda pair: (-pair[1], pair[0]), default=(None, 0))
    return Finding(
        id="people.opening",
        title="Most common opening",
        value=most[0].replace("_", " ") if most[0] else None,
        unit="pattern",
        kind="text",
        n=len(labels),
        of="first messages",
        signals=(_OPENING,),
        command=again(
            f"SELECT replace({sql.LABEL}, '_', ' ') AS opening FROM signals"
            f" WHERE signal = '{_OPENING}' AND absent IS NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
        ),
        note=f"{most[1]:,} sessions" if most[0] else "no session has a first message",
    )


def _openings(inputs: Inputs) -> Chart | None:
    openings = Counter(row["label"] for row in of_signal(inputs, _OPENING) if row["absent"] is None)
    total = openings.total()
    rows = [
        {
            "name": name.replace("_", " "),
            "value": n,
            "tip": f"{name.replace('_', ' ')}: {n:,} of {total:,} first messages ({n / total:.1%})",
        }
        for name, n in sorted(openings.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    if not rows:
        return None
    return Chart(
        id="people.openings",
        title="How sessions open",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "sessions"),
        n=total,
        of="first messages",
    )


def _positions(turns: list[Row]) -> Chart | None:
    rows: list[Row] = []
    for row in turns:
        at = f"{row['at']}+" if row["at"] == _LAST else str(row["at"])
        for name, k, n in ((_OBJECTS, row["objects"], row["judged"]), (_BRAKES, row["cut"], row["n"])):
            interval = wilson(k, n)
            if not interval:
                continue
            tip = f"prompt {at}, {name}: {k:,} of {n:,}, {formatted(k / n, 'share')}"
            rows.append({"name": name, "at": at, "value": k / n, "low": interval[0], "high": interval[1], "tip": tip})
    if len({row["at"] for row in rows}) < 2:
        return None
    return Chart(
        id="people.positions",
        title="When people object or interrupt",
        says="; ".join(row["tip"] for row in rows),
        spec=by_position(rows, "number of the prompt in its session", "share of prompts", (_OBJECTS, _BRAKES)),
        n=sum(row["n"] for row in turns),
        of="prompts",
        note="lines are 95% intervals; a first prompt has nothing to object to yet",
    )


STUDY = Study(
    name="people",
    place=240,
    title="People",
    question="How do people steer?",
    queries={
        "values": sql.values(_PUSHBACK, _OPENING),
        "short": "SELECT session_id, CAST(value->>'le_20' AS INT) AS le_20, CAST(value->>'n' AS INT) AS n"
        f" FROM signals WHERE signal = '{_SHORT}' AND absent IS NULL ORDER BY session_id",
        "cuts": "SELECT session_id, CAST(sum(number) AS INT) AS cut, count(number) AS n"
        f" FROM signals WHERE signal = '{_CUT}' GROUP BY session_id ORDER BY session_id",
        "turns": f"SELECT least(turn + 1, {_LAST}) AS at,"
        f" count(*) FILTER (signal = '{_CUT}') AS n,"
        f" count(*) FILTER (signal = '{_CUT}' AND number = 1) AS cut,"
        f" count(*) FILTER (signal = '{_TYPE}' AND absent IS NULL) AS judged,"
        f" count(*) FILTER (signal = '{_TYPE}' AND absent IS NULL"
        f" AND {sql.LABEL} <> 'non_pushback') AS objects"
        f" FROM signals WHERE signal IN ('{_CUT}', '{_TYPE}') GROUP BY 1 ORDER BY 1",
    },
    function=_outcome,
    context="product",
)
