"""The files that were read, and what of them could not be."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

import msgspec

from agentsignals.ingest.plan import drift, versions
from agentsignals.ui.page import Page, Query, Route, Where, part_of
from agentsignals.ui.pages.overview import skipped
from agentsignals.ui.snapshot import Reading

SIZE = 100
_LONGEST_ENDING = 12
_FROM = "FROM (SELECT *, coalesce(format, 'not recognised') AS kind FROM artifacts)"
_LISTED = "SELECT artifact_id, path, kind, bytes, records, skipped, skipped_reasons, note"
_ORDER = "ORDER BY skipped DESC, path, artifact_id LIMIT $size OFFSET $start"


def page(reading: Reading, query: Query) -> Page:
    """Files that fit the filter, those with most skipped records first."""
    reasons = reading.kept("skipped", lambda: skipped(reading))
    formats = [row["kind"] for row in reading.rows(f"SELECT DISTINCT kind {_FROM} ORDER BY 1")]
    chosen = {
        "format": query.choice("format", formats),
        "reason": query.choice("reason", [row["reason"] for row in reasons]),
    }
    where = Where()
    where.equals("kind", "format", chosen["format"])
    where.contains("path", "path", query.text("path"))
    where.holds("json_keys(skipped_reasons)", "reason", chosen["reason"])
    total = reading.rows(" ".join(("SELECT count(*) AS n", _FROM, where.text())), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    asked = " ".join((_LISTED, _FROM, where.text(), _ORDER))
    rows = reading.rows(asked, {**where.values, "size": SIZE, "start": part.start})
    for row in rows:
        row["reasons"] = msgspec.json.decode(row["skipped_reasons"] or "{}", type=dict[str, int])
    filled = {
        "rows": rows,
        "reasons": reasons,
        "formats": formats,
        "chosen": chosen,
        "path": query.text("path"),
        "part": part,
        "query": query,
        "no_traces": _no_traces(reading),
        "unknown_fields": drift(reading.store.manifest.files.values()),
        "versions": versions(reading.store.manifest.files.values()),
    }
    return Page("artifacts.html.j2", "Files", filled)


def _no_traces(reading: Reading) -> list[tuple[str, int]]:
    """How many files under the sources are no traces, by their ending."""
    endings = (PurePosixPath(uri).suffix.lower() for uri, e in reading.store.manifest.files.items() if not e.shard)
    return Counter(e if e and len(e) <= _LONGEST_ENDING else "no ending" for e in endings).most_common()


PAGES = (Route(("artifacts",), page, "Files", 80),)
