"""How agents change files: whether they look first, how much, where."""

from __future__ import annotations

from agentsignals.questions import sql
from agentsignals.questions.charts import dots
from agentsignals.questions.estimates import (
    INTERVAL_NOTE,
    agents_by_sessions,
    chart,
    median_finding,
    pooled_finding,
    pooled_ratio,
    share_of,
    signal_rows,
    table,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, EvidenceQuery, Finding, Inputs, Outcome, Row, Study, Table

_READ_FIRST = "corpus.read_before_edit_rate"
_RATIO = "behavior.edit_to_read_ratio"
_LINES = "behavior.diff_lines"
_AGAIN = "user.region_re_edit_count"
_MOST_FILES = 20
_WAYS = "SELECT DISTINCT session_id, seq, path, via FROM edits WHERE thread = 'main'"

_OF_FILE = (
    "SELECT session_id, count(DISTINCT seq) AS n FROM edits JOIN sessions USING (session_id)"
    f" WHERE thread = 'main' AND path = $path AND coalesce({sql.PLACE}, '') = $place GROUP BY session_id"
)


def _outcome(inputs: Inputs) -> Outcome:
    limits = [
        "Some agents refuse to edit a file they have not read: reading first says something only of agents without"
        " that guard."
    ]
    return Outcome(_findings(inputs), [_files(inputs.rows["files"])], [_read_first_chart(inputs)], limits)


def _findings(inputs: Inputs) -> list[Finding]:
    places = inputs.places
    shell = share_of(inputs.rows["ways"], places, lambda row: row["via"] == "shell", "n")
    again = pooled_ratio(signal_rows(inputs, _AGAIN), places, "number", "regions")
    edited, rework = (
        "Edits of files the agent had read or changed before",
        "the sum of all edits, so rework counts each",
    )
    return [
        pooled_finding(
            inputs,
            _READ_FIRST,
            "edits.read_first",
            edited,
            "edit attempts on existing files",
            unit="share of edit attempts",
        ),
        pooled_finding(
            inputs, _RATIO, "edits.per_read", "Edits for each read", "reads", is_share=False, unit="edits for each read"
        ),
        median_finding(
            inputs,
            _LINES,
            "edits.lines.median",
            "Lines added and removed in the median session",
            unit="lines",
            note=f"{rework} time; sessions without an edit count as 0",
        ),
        shell.finding(
            "edits.by_shell",
            "Changes made through the shell",
            "file changes",
            sql=f"SELECT avg(CAST(via = 'shell' AS INT)) FROM ({_WAYS})",
        ),
        again.finding(
            "edits.again",
            "Edited places that were edited again by a later call",
            "edited places",
            unit="share of places",
            sql=f"SELECT sum(number) / sum(CAST(detail->>'regions' AS DOUBLE)) FROM signals WHERE signal = '{_AGAIN}'",
            signals=(_AGAIN,),
        ),
    ]


def _read_first_chart(inputs: Inputs) -> Chart | None:
    measured = [row for row in signal_rows(inputs, _READ_FIRST) if row["number"] is not None]
    rows: list[Row] = []
    for agent in agents_by_sessions(measured):
        group = [row for row in measured if row["agent"] == agent and row["num"] is not None and row["den"]]
        estimate = pooled_ratio(group, inputs.places)
        share = formatted(estimate.value, "share")
        tip = f"{agent}: {share} of {estimate.n:,.0f} edit attempts, {len(group):,} sessions"
        rows.append(estimate.mark(f"{agent} ({estimate.n:,.0f})", tip))
    return chart(
        "edits.read_first.agents",
        "Edits of files the agent knew, by agent",
        rows,
        dots(rows, "share of edit attempts"),
        n=pooled_ratio(measured, inputs.places).n,
        of="edit attempts",
        note=f"edit attempts in brackets; {INTERVAL_NOTE}",
    )


def _files(files: list[Row]) -> Table:
    merged: dict[tuple[str, str], list[int]] = {}
    for row in files:
        counts = merged.setdefault((row["place"] or "", row["path"]), [0, 0, 0, 0])
        for i, key in enumerate(("n", "sessions", "added", "removed")):
            counts[i] += int(row[key] or 0)
    most = sorted(merged.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_FILES]
    more = f" The {len(most)} most changed of {len(merged):,} files." if len(merged) > len(most) else ""
    return table(
        "edits.files",
        "Most edited files",
        "path file:code | place in:code | changes:count | sessions:count | added:count | removed:count",
        [[path, place.rstrip("/").rsplit("/", 1)[-1], *counts] for (place, path), counts in most],
        n=sum(counts[0] for counts in merged.values()),
        of="file changes",
        evidence=[EvidenceQuery(_OF_FILE, {"place": place, "path": path}) for (place, path), _ in most],
        note=f"Lines added and removed.{more}",
    )


STUDY = Study(
    name="edits",
    order=120,
    title="Edits",
    question="How do agents change files?",
    queries={
        "values": sql.values(_READ_FIRST, _RATIO, _LINES, _AGAIN, detail=(*sql.RATIO, "regions")),
        "absent": sql.ABSENT,
        "ways": f"SELECT session_id, via, count(*) AS n FROM ({_WAYS}) GROUP BY ALL ORDER BY ALL",
        "files": f"SELECT {sql.PLACE}, path, count(DISTINCT (session_id, seq)) AS n,"
        " count(DISTINCT session_id) AS sessions, sum(added) AS added, sum(removed) AS removed"
        " FROM edits JOIN sessions USING (session_id) WHERE thread = 'main'"
        " GROUP BY ALL ORDER BY n DESC, path",
    },
    function=_outcome,
)
