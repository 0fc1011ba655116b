"""How agents change files: whether they look first, how much, where."""

from __future__ import annotations

from collections import defaultdict

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import dots
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import agents_in_order, median_finding, of_parts, of_signal, parts, pooled_finding
from agentsignals.analysis.places import Places
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import share_interval

_READ_FIRST = "corpus.read_before_edit_rate"
_RATIO = "behavior.edit_to_read_ratio"
_LINES = "behavior.diff_lines"
_AGAIN = "user.region_re_edit_count"
_MOST_FILES = 20


def _outcome(inputs: Inputs) -> Outcome:
    chart = _read_first_chart(inputs)
    limits = [
        "Some agents refuse to edit a file they have not read: reading first says something only of agents without"
        " that guard."
    ]
    return Outcome(_findings(inputs), [_files(inputs.rows["files"])], [chart] if chart else [], limits)


def _findings(inputs: Inputs) -> list[Finding]:
    by_session: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in inputs.rows["ways"]:
        by_session[row["session_id"]][0] += row["n"] * (row["via"] == "shell")
        by_session[row["session_id"]][1] += row["n"]
    shell = [(k, n) for k, n in by_session.values()]
    return [
        pooled_finding(
            inputs,
            _READ_FIRST,
            "edit attempts on existing files",
            id="edits.read_first",
            title="Edits of files the agent had read or changed before",
            unit="share of edit attempts",
        ),
        pooled_finding(
            inputs,
            _RATIO,
            "reads",
            share=False,
            id="edits.per_read",
            title="Edits for each read",
            unit="edits for each read",
        ),
        median_finding(
            inputs,
            _LINES,
            id="edits.lines.median",
            title="Lines added and removed in the median session",
            unit="lines",
            note="the sum of all edits, so rework counts each time; sessions without an edit count as 0",
        ),
        Finding(
            id="edits.by_shell",
            title="Changes made through the shell",
            value=of_parts(shell),
            unit="share of file changes",
            kind="share",
            n=int(sum(n for _, n in shell)),
            of="file changes",
            interval=share_interval(shell),
            command=again(
                "SELECT avg(CAST(via = 'shell' AS INT)) FROM"
                " (SELECT DISTINCT session_id, seq, path, via FROM edits WHERE thread = 'main')"
            ),
        ),
        _again_finding(inputs),
    ]


def _again_finding(inputs: Inputs) -> Finding:
    pairs = parts(of_signal(inputs, _AGAIN), "number", "regions")
    return Finding(
        id="edits.again",
        title="Edited places that were edited again by a later call",
        value=of_parts(pairs),
        unit="share of places",
        kind="share",
        n=int(sum(n for _, n in pairs)),
        of="edited places",
        interval=share_interval(pairs),
        signals=(_AGAIN,),
        command=again(
            f"SELECT sum(number) / sum(CAST(detail->>'regions' AS DOUBLE)) FROM signals WHERE signal = '{_AGAIN}'"
        ),
    )


def _read_first_chart(inputs: Inputs) -> Chart | None:
    measured = [row for row in of_signal(inputs, _READ_FIRST) if row["number"] is not None]
    rows: list[Row] = []
    for agent in agents_in_order(measured):
        pairs = parts(row for row in measured if row["agent"] == agent)
        low, high = share_interval(pairs) or (None, None)
        value, n = of_parts(pairs), int(sum(n for _, n in pairs))
        tip = f"{agent}: {formatted(value, 'share')} of {n:,} edit attempts, {len(pairs):,} sessions"
        rows.append({"name": f"{agent} ({n:,})", "value": value, "low": low, "high": high, "tip": tip})
    if not rows:
        return None
    return Chart(
        id="edits.read_first.agents",
        title="Edits of files the agent knew, by agent",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of edit attempts"),
        n=int(sum(n for _, n in parts(measured))),
        of="edit attempts",
        note="edit attempts in brackets; the line is the 95% interval",
    )


def _files(files: list[Row]) -> Table:
    places = Places(files)
    merged: dict[tuple[str, str], list[int]] = {}
    for row in files:
        merged_counts = merged.setdefault((places.of(row) or "", row["path"]), [0, 0, 0, 0])
        for i, key in enumerate(("n", "sessions", "added", "removed")):
            merged_counts[i] += int(row[key] or 0)
    most = sorted(merged.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_FILES]
    total = sum(counts[0] for counts in merged.values())
    return Table(
        id="edits.files",
        title="Most edited files",
        columns=(
            Column("path", "file", "code"),
            Column("place", "in", "code"),
            Column("changes", "changes", "count"),
            Column("sessions", "sessions", "count"),
            Column("added", "added", "count"),
            Column("removed", "removed", "count"),
        ),
        rows=[[path, place.rstrip("/").rsplit("/", 1)[-1], *counts] for (place, path), counts in most],
        n=total,
        of="file changes",
        note="Lines added and removed."
        + (f" The {len(most)} most changed of {len(merged):,} files." if len(merged) > len(most) else ""),
    )


STUDY = Study(
    name="edits",
    place=120,
    title="Edits",
    question="How do agents change files?",
    queries={
        "values": sql.values(_READ_FIRST, _RATIO, _LINES, _AGAIN, detail=("regions",)),
        "ways": "SELECT session_id, via, count(*) AS n FROM"
        " (SELECT DISTINCT session_id, seq, path, via FROM edits WHERE thread = 'main') GROUP BY ALL ORDER BY ALL",
        "files": "SELECT repo, cwd, path, count(DISTINCT (session_id, seq)) AS n,"
        " count(DISTINCT session_id) AS sessions, sum(added) AS added, sum(removed) AS removed"
        " FROM edits JOIN sessions USING (session_id) WHERE thread = 'main'"
        " GROUP BY repo, cwd, path ORDER BY n DESC, path",
    },
    function=_outcome,
)
