"""What people do: how they open, how short they are, when they object or pull the brake."""

from __future__ import annotations

from collections import Counter

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, intervals_by_position
from agentsignals.questions.estimates import by, chart, clustered_share, count, count_bars, ranked, signal_rows
from agentsignals.questions.label_shares import LABELS_NAMED_SHARES as LABELS
from agentsignals.questions.label_shares import PUSHBACK, at_least_text, pushback_finding, rules_recall_text
from agentsignals.questions.question import Chart, Finding, Inputs, Outcome, Row, Study

_CUT = "chat.hard_interruption"
_OPENING = "corpus.first_message_pattern"
_SHORT = "corpus.short_messages"
_LAST = 6
"""Prompts from this number on are one class."""
_OBJECTS, _BRAKES = "objects, at least", "cuts the response"


def _outcome(inputs: Inputs) -> Outcome:
    opened = signal_rows(inputs, _OPENING)
    labels = [row["label"] for row in opened]
    openings = [(name.replace("_", " "), n) for name, n in ranked(Counter(labels))]
    named = {name: [row["session_id"] for row in rows] for name, rows in by(opened, "label").items()}
    marks = count_bars(
        openings, "first messages", evidence={name.replace("_", " "): ids for name, ids in named.items()}
    )
    of = "first messages"
    charts = [
        _positions(inputs.rows["turns"], inputs.places),
        chart("people.openings", "How sessions open", marks, bars(marks, "sessions"), n=len(labels), of=of),
    ]
    limits = [
        f"Objections that word rules find are a flag, no share ({rules_recall_text()}); never beside"
        " another labeller's.",
        "Later prompts come from longer sessions: a rate that climbs with the prompt's number is in part a change of"
        " sessions, not of mood.",
    ]
    return Outcome([*_shares(inputs), _most_common(openings, opened)], [], charts, limits)


def _shares(inputs: Inputs) -> list[Finding]:
    places = inputs.places
    cut = clustered_share(((row["session_id"], row["cut"], row["n"]) for row in inputs.rows["cuts"]), places)
    short = clustered_share(((row["session_id"], row["le_20"], row["n"]) for row in inputs.rows["short"]), places)
    flagged = {(row["session_id"], row["turn"]): row["objects"] for row in inputs.rows["later"]}
    return [
        pushback_finding(
            inputs, flagged, "people.pushback", "Prompts that object, in words", "later prompts in English"
        ),
        cut.finding(
            "people.interrupted",
            "Responses the person cut short",
            "prompts",
            "an interrupt, a refused tool call, or a queued stop",
            sql=f"SELECT avg(number) FROM signals WHERE signal = '{_CUT}'",
            signals=(_CUT,),
        ),
        short.finding(
            "people.short",
            "Messages of at most 20 characters",
            "messages",
            sql="SELECT sum(CAST(value->>'le_20' AS INT)) / sum(CAST(value->>'n' AS INT)) FROM signals"
            f" WHERE signal = '{_SHORT}' AND absent IS NULL",
            signals=(_SHORT,),
        ),
    ]


def _most_common(openings: list[tuple[str, int]], opened: list[Row]) -> Finding:
    name, most = openings[0] if openings else (None, 0)
    parts = [(row["session_id"], row["label"].replace("_", " ") == name, 1) for row in opened]
    return count(name, len(opened), "text", evidence=parts).finding(
        "people.opening",
        "Most common opening",
        "first messages",
        f"{most:,} sessions" if name else "no session has a first message",
        unit="pattern",
        sql=f"SELECT replace({sql.LABEL}, '_', ' ') AS opening FROM signals"
        f" WHERE signal = '{_OPENING}' AND absent IS NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1",
        signals=(_OPENING,),
    )


def _positions(turns: list[Row], places: dict[str, str]) -> Chart | None:
    rows: list[Row] = []
    for number, group in sorted(by(turns, "at").items()):
        at = f"{number}+" if number == _LAST else str(number)
        for name, k, n in ((_OBJECTS, "objects", "judged"), (_BRAKES, "cut", "n")):
            estimate = clustered_share(((row["session_id"], row[k], row[n]) for row in group), places)
            if estimate.n:
                words = at_least_text(estimate.k, estimate.n, "prompts") if k == "objects" else estimate.words()
                rows.append(estimate.mark(name, f"prompt {at}, {name}: {words}", at=at))
    if len({row["at"] for row in rows}) < 2:
        return None
    return chart(
        "people.positions",
        "When people object or interrupt",
        rows,
        intervals_by_position(rows, "number of the prompt in its session", "share of prompts", (_OBJECTS, _BRAKES)),
        n=sum(row["n"] for row in turns),
        of="prompts",
        note=f"lines are 95% intervals of what is found; a first prompt has nothing to object to yet;"
        f" {rules_recall_text()}",
    )


STUDY = Study(
    name="people",
    order=240,
    title="People",
    question="How do people steer?",
    queries={
        "values": sql.values(_OPENING, more=f"{sql.LABEL} AS label, "),
        "labels": LABELS,
        "later": f"SELECT session_id, turn, {sql.LABEL} <> 'non_pushback' AS objects FROM {sql.NAMED}"
        f" WHERE signal = '{PUSHBACK}' AND absent IS NULL AND turn > 0 ORDER BY session_id, turn",
        "short": "SELECT session_id, CAST(value->>'le_20' AS INT) AS le_20, CAST(value->>'n' AS INT) AS n"
        f" FROM {sql.NAMED} WHERE signal = '{_SHORT}' AND absent IS NULL ORDER BY session_id",
        "cuts": "SELECT session_id, CAST(sum(number) AS INT) AS cut, count(number) AS n"
        f" FROM {sql.NAMED} WHERE signal = '{_CUT}' GROUP BY session_id ORDER BY session_id",
        "turns": f"SELECT session_id, least(turn + 1, {_LAST}) AS at,"
        f" count(*) FILTER (signal = '{_CUT}') AS n,"
        f" count(*) FILTER (signal = '{_CUT}' AND number = 1) AS cut,"
        f" count(*) FILTER (signal = '{PUSHBACK}' AND absent IS NULL) AS judged,"
        f" count(*) FILTER (signal = '{PUSHBACK}' AND absent IS NULL"
        f" AND {sql.LABEL} <> 'non_pushback') AS objects"
        f" FROM {sql.NAMED} WHERE signal IN ('{_CUT}', '{PUSHBACK}') GROUP BY 1, 2 ORDER BY 1, 2",
    },
    function=_outcome,
    context="product",
)
