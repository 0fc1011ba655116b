"""Records that were read, and records that were skipped."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import msgspec

from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import bar, chart, count, ranked, table
from agentsignals.questions.question import (
    Chart,
    EvidenceQuery,
    Inputs,
    NoSessions,
    Outcome,
    Row,
    Study,
)
from agentsignals.questions.sql import declared, read_queries

_SQL = read_queries(__file__)

_INTERNAL = "absent_detail LIKE 'internal_error%'"

_ABSENT = (
    "SELECT session_id, count(*) AS n FROM signals WHERE absent = $reason AND session_id <> '' GROUP BY session_id"
)
_OF_FILES = NoSessions("It counts files or their records, not sessions: the page Files has them.")
_BEHIND = {
    "unknown": EvidenceQuery(
        "SELECT session_id, count(*) AS n FROM events WHERE kind = 'unknown' GROUP BY session_id", {}
    ),
    "internal_errors": EvidenceQuery(f"SELECT session_id, count(*) AS n FROM signals WHERE {_INTERNAL} GROUP BY 1", {}),
}


def reading(inputs: Inputs) -> Outcome:
    formats = inputs.rows["formats"]
    keys = ("files", "sessions", "records", "skipped", "bytes")
    records: Counter[str] = Counter()
    files: dict[str, list[str]] = defaultdict(list)
    for row in inputs.rows["skips"]:
        for reason, n in msgspec.json.decode(row["skipped_reasons"], type=dict[str, int]).items():
            records[reason] += n
            files[reason].append(row["path"])
    rows: list[list[Any]] = [[r.replace("_", " "), n, len(files[r]), min(files[r])] for r, n in ranked(records)]
    endings_rows: list[list[Any]] = [[ending or "none", endings_n] for ending, endings_n in ranked(inputs.no_traces)]
    endings_n = sum(inputs.no_traces.values())
    notes_rows = [[row["note"], row["files"]] for row in inputs.rows["notes"]]
    notes_n = sum(files for _, files in notes_rows)
    absent_rows = inputs.rows["absent"]
    tables = [
        table(
            "reading.formats",
            [[row["format"] or "unrecognised", *(row[key] for key in keys)] for row in formats],
            n=sum(row["files"] for row in formats),
            evidence=[_of_format(row) for row in formats],
        ),
        table("reading.reasons", rows, n=records.total(), evidence=_OF_FILES),
        table("reading.no_traces", endings_rows, n=endings_n, evidence=_OF_FILES),
        table("reading.notes", notes_rows, n=notes_n, evidence=_OF_FILES),
        table(
            "reading.absent",
            [[r["absent"].replace("_", " "), r["n"], r["signals"], r["sessions"]] for r in absent_rows],
            n=sum(r["n"] for r in absent_rows),
            evidence=[EvidenceQuery(_ABSENT, {"reason": row["absent"]}) for row in absent_rows],
        ),
    ]
    total = {key: int(value or 0) for key, value in inputs.rows["totals"][0].items()}
    beside, n_records = sum(inputs.no_traces.values()), total["records"] + total["skipped"]
    counted = {
        "files": (total["files"], total["files"]),
        "records": (total["records"], n_records),
        "skipped": (total["skipped"], n_records),
        "no_traces": (beside, total["files"] + beside),
        "unknown": (total["unknown"], total["records"]),
        "internal_errors": (total["internal"], total["n_values"]),
    }
    return Outcome(
        [
            count(value, n, evidence=_BEHIND.get(name, _OF_FILES)).finding(
                f"reading.{name}", note="please report them" if name == "internal_errors" and value else ""
            )
            for name, (value, n) in counted.items()
        ],
        tables,
        [_reading_chart(formats)],
        _reading_limits(inputs),
    )


def _reading_chart(formats: list[Row]) -> Chart | None:
    with_bytes = [row for row in formats if row["bytes"]]
    rows: list[Row] = []
    for row in sorted(with_bytes, key=lambda r: -r["bytes"]):
        name, files = row["format"] or "unrecognised", f"{row['files']:,}"
        tip = f"{name}: {files} files, {row['bytes'] / 1e6:,.1f} MB, {row['records'] or 0:,} records"
        rows.append(bar(f"{name} ({files})", row["bytes"], tip, evidence=_of_format(row)))
    n = sum(row["files"] for row in with_bytes)
    spec = bars(rows, "bytes", "bytes")
    return chart("reading.formats", rows, spec, n=n)


def _of_format(row: Row) -> EvidenceQuery:
    return EvidenceQuery("SELECT session_id FROM sessions WHERE format = $format", {"format": row["format"]})


def _reading_limits(inputs: Inputs) -> list[str]:
    total = inputs.rows["totals"][0]
    if not total["skipped"]:
        return []
    return [f"{int(total['skipped']):,} records could not be read; what they hold is in no figure."]


READING_STUDY = Study(
    reads_every_signal=True, **declared("study", "reading"), queries=_SQL["reading"], function=reading
)
