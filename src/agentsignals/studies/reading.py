"""What was read, and what was skipped: nothing is lost in silence."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import msgspec

from agentsignals.analysis.charts import bars
from agentsignals.analysis.study import (
    Chart,
    Column,
    Finding,
    Inputs,
    Outcome,
    Row,
    Study,
    Table,
    again,
    again_in_report,
)

_INTERNAL = "absent_detail LIKE 'internal_error%'"


def _outcome(inputs: Inputs) -> Outcome:
    chart = _chart(inputs.rows["formats"])
    tables = [_formats(inputs.rows["formats"]), _reasons(inputs), _endings(inputs), _notes(inputs), _absent(inputs)]
    return Outcome(_findings(inputs), tables, [chart] if chart else [], _limits(inputs))


def _findings(inputs: Inputs) -> list[Finding]:
    total = {key: int(value or 0) for key, value in inputs.rows["totals"][0].items()}
    files, records, beside = total["files"], total["records"], sum(inputs.no_traces.values())
    n_records = records + total["skipped"]
    return [
        _count("files", "Files read", files, "files", (files, "files"), "SELECT count(*) FROM artifacts"),
        _count(
            "records",
            "Records read",
            records,
            "records",
            (n_records, "records found"),
            "SELECT coalesce(sum(records), 0) FROM artifacts",
        ),
        _count(
            "skipped",
            "Records skipped",
            total["skipped"],
            "records",
            (n_records, "records found"),
            "SELECT coalesce(sum(skipped), 0) FROM artifacts",
            note="a file that is no known format counts as one record",
            headline=True,
        ),
        _count(
            "no_traces",
            "Files beside them that are no traces",
            beside,
            "files",
            (files + beside, "files found"),
            note="not JSON; they were not read",
        ),
        _count(
            "unknown",
            "Records read but not understood",
            total["unknown"],
            "records",
            (records, "records read"),
            "SELECT count(*) FROM events WHERE kind = 'unknown'",
            note="kept whole, as events of kind unknown",
        ),
        _count(
            "internal_errors",
            "Values that an error of this program prevented",
            total["internal"],
            "values",
            (total["n_values"], "values"),
            f"SELECT count(*) FROM signals WHERE {_INTERNAL}",
            note="please report them" if total["internal"] else "",
        ),
    ]


def _count(  # noqa: PLR0913  (a record; the words stand in the order they are read)
    name: str, title: str, value: int, unit: str, n_of: tuple[int, str], query: str = "", **more: Any
) -> Finding:
    """A finding that counts; without a query it is made again by the report alone."""
    command = again(query) if query else again_in_report("reading")
    return Finding(
        id=f"reading.{name}", title=title, value=value, unit=unit, n=n_of[0], of=n_of[1], command=command, **more
    )


def _chart(formats: list[Row]) -> Chart | None:
    with_bytes = [row for row in formats if row["bytes"]]
    rows = [
        {
            "name": f"{row['format'] or 'unrecognised'} ({row['files']:,})",
            "value": row["bytes"],
            "tip": f"{row['format'] or 'unrecognised'}: {row['files']:,} files, {row['bytes'] / 1e6:,.1f} MB,"
            f" {row['records'] or 0:,} records",
        }
        for row in sorted(with_bytes, key=lambda r: -r["bytes"])
    ]
    if not rows:
        return None
    return Chart(
        id="reading.formats",
        title="Bytes by format",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "bytes", "bytes"),
        n=sum(row["files"] for row in with_bytes),
        of="files",
        note="files in brackets",
    )


def _formats(formats: list[Row]) -> Table:
    return Table(
        id="reading.formats",
        title="What was read, by format",
        columns=(
            Column("format", "format"),
            Column("files", "files", "count"),
            Column("sessions", "sessions", "count"),
            Column("records", "records read", "count"),
            Column("skipped", "skipped", "count"),
            Column("bytes", "size", "bytes"),
        ),
        rows=[
            [r["format"] or "unrecognised", r["files"], r["sessions"], r["records"], r["skipped"], r["bytes"]]
            for r in formats
        ],
        n=sum(r["files"] for r in formats),
        of="files",
        note="A format without sessions of its own adds to sessions of others, or holds none.",
    )


def _reasons(inputs: Inputs) -> Table:
    records: Counter[str] = Counter()
    files: dict[str, list[str]] = defaultdict(list)
    for row in inputs.rows["skips"]:
        for reason, n in msgspec.json.decode(row["skipped_reasons"], type=dict[str, int]).items():
            records[reason] += n
            files[reason].append(row["path"])
    order = sorted(records, key=lambda reason: (-records[reason], reason))
    return Table(
        id="reading.reasons",
        title="What was skipped, by reason",
        columns=(
            Column("reason", "reason"),
            Column("records", "records", "count"),
            Column("files", "files", "count"),
            Column("example", "for example", "code"),
        ),
        rows=[[r.replace("_", " "), records[r], len(files[r]), min(files[r])] for r in order],
        n=records.total(),
        of="skipped records",
    )


def _endings(inputs: Inputs) -> Table:
    return Table(
        id="reading.no_traces",
        title="Files that are no traces, by ending",
        columns=(Column("ending", "ending", "code"), Column("files", "files", "count")),
        rows=[[ending or "none", n] for ending, n in sorted(inputs.no_traces.items(), key=lambda p: (-p[1], p[0]))],
        n=sum(inputs.no_traces.values()),
        of="files",
    )


def _notes(inputs: Inputs) -> Table:
    rows = inputs.rows["notes"]
    return Table(
        id="reading.notes",
        title="Copies and continuations that were not counted twice",
        columns=(Column("note", "what was found"), Column("files", "files", "count")),
        rows=[[r["note"], r["files"]] for r in rows],
        n=sum(r["files"] for r in rows),
        of="files",
    )


def _absent(inputs: Inputs) -> Table:
    rows = inputs.rows["absent"]
    return Table(
        id="reading.absent",
        title="Values that are absent, by reason",
        columns=(
            Column("reason", "reason"),
            Column("values", "values", "count"),
            Column("signals", "signals", "count"),
            Column("sessions", "sessions", "count"),
        ),
        rows=[[r["absent"].replace("_", " "), r["n"], r["signals"], r["sessions"]] for r in rows],
        n=sum(r["n"] for r in rows),
        of="absent values",
        note="Absent is not zero: these values are in no figure of this report.",
    )


def _limits(inputs: Inputs) -> list[str]:
    total = inputs.rows["totals"][0]
    if not total["skipped"]:
        return []
    return [f"{int(total['skipped']):,} records could not be read; what they hold is in no figure."]


STUDY = Study(
    name="reading",
    place=370,
    title="What was read and what was skipped",
    question="What do these figures rest on, and what is missing?",
    queries={
        "totals": "SELECT (SELECT count(*) FROM artifacts) AS files, (SELECT sum(records) FROM artifacts) AS records,"
        " (SELECT sum(skipped) FROM artifacts) AS skipped,"
        " (SELECT count(*) FROM events WHERE kind = 'unknown') AS unknown,"
        " (SELECT count(*) FROM signals) AS n_values,"
        f" (SELECT count(*) FROM signals WHERE {_INTERNAL}) AS internal",
        "formats": "SELECT a.format AS format, count(*) AS files, any_value(coalesce(s.sessions, 0)) AS sessions,"
        " sum(records) AS records, sum(skipped) AS skipped, sum(bytes) AS bytes FROM artifacts a"
        " LEFT JOIN (SELECT format, count(*) AS sessions FROM sessions GROUP BY format) s USING (format)"
        " GROUP BY a.format ORDER BY files DESC, a.format",
        "skips": "SELECT path, skipped_reasons FROM artifacts WHERE skipped_reasons <> '{}' ORDER BY path",
        "notes": "SELECT trim(regexp_replace(note, '[0-9a-f-]{12,}', '…')) AS note, count(*) AS files FROM artifacts"
        " WHERE note IS NOT NULL GROUP BY 1 ORDER BY files DESC, 1",
        "absent": "SELECT absent, count(*) AS n, count(DISTINCT signal) AS signals,"
        " count(DISTINCT session_id) AS sessions FROM signals WHERE absent IS NOT NULL GROUP BY absent"
        " ORDER BY n DESC, absent",
    },
    function=_outcome,
    context="both",
)
