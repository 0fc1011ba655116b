"""The first page: what stands out; then cost, failures and outcomes under a filter; then what was read and not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from agentsignals.signals.catalog import catalogue
from agentsignals.ui.figures import overall
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.pages import findings
from agentsignals.ui.snapshot import Reading

WAIT_S = 2.0
"""So long the page waits for what stands out, which takes ten seconds over 5,000 sessions the first time."""
_FIGURES = """
SELECT context, count(*) AS sessions, sum(n_prompts) AS prompts, sum(n_tool_calls) AS tool_calls, sum(n_edits) AS edits,
  sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(cache_read_tokens) AS cache_read_tokens,
  sum(cost_usd) AS cost_usd, count(cost_usd) AS priced, min(started_at) AS first, max(started_at) AS last,
  count(visible_output_tokens) AS bounds
FROM sessions s {where} GROUP BY context ORDER BY context DESC
"""
_FORMATS = """
SELECT coalesce(format, 'not recognised') AS format, count(*) AS artifacts, sum(records) AS records,
  sum(skipped) AS skipped, sum(bytes) AS bytes
FROM artifacts GROUP BY 1 ORDER BY artifacts DESC, 1
"""
_SKIPPED = "SELECT skipped_reasons, count(*) AS n FROM artifacts WHERE skipped_reasons <> '{}' GROUP BY 1"
_CORPUS = """
SELECT signal, value, number, absent, absent_detail, detail->>'at_least' AS at_least FROM signals
WHERE level = 'corpus' ORDER BY signal
"""


def page(reading: Reading, query: Query) -> Page:
    """What stands out, and what the store holds of the sessions that fit the filter."""
    filter_ = filtered(query, reading)
    context = query.choice("context", ("product", "eval"), reading.main_context)
    of_context = filter_.of_context(context)
    filled = {
        "filter": filter_,
        "of": of_context,
        "context": context,
        "is_chosen": bool(filter_.words.keys() - {"context"}),
        "made": reading.soon(("findings shown", context), lambda: findings.of(reading, context), WAIT_S),
        "others": sorted(reading.contexts - {context}),
        "is_empty": not reading.store.manifest.sessions,
        **reading.recent(
            ("overview", *sorted(of_context.words.items())), lambda: _counted(reading, filter_, of_context)
        ),
        **reading.kept("overview read", lambda: _read(reading)),
    }
    return Page("overview.html.j2", "Overview" if filled["is_chosen"] else "What stands out", filled)


def skipped(reading: Reading) -> list[dict[str, Any]]:
    """How many records were skipped for each reason, in how many files; most first. Reasons may hold anything."""
    records: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for row in reading.rows(_SKIPPED):
        for reason, n in msgspec.json.decode(row["skipped_reasons"] or "{}", type=dict[str, int]).items():
            records[reason] += n * row["n"]
            files[reason] += row["n"]
    return [
        {"reason": r, "n": n, "artifacts": files[r]} for r, n in sorted(records.items(), key=lambda p: (-p[1], p[0]))
    ]


def _counted(reading: Reading, filter_: Filter, of_context: Filter) -> dict[str, Any]:
    """What the filter leaves; people's sessions and eval runs never together."""
    counted = _FIGURES.format(where=filter_.where.text())
    return {"contexts": reading.rows(counted, filter_.where.values), "overall": overall(reading, of_context)}


def _read(reading: Reading) -> dict[str, Any]:
    declared = {signal.path: signal for signal in catalogue().values()}
    return {
        "store": str(reading.store.folder),
        "formats": reading.rows(_FORMATS),
        "skipped": skipped(reading),
        "no_traces": sum(not entry.shard for entry in reading.store.manifest.files.values()),
        "corpus": [
            row | {"one": declared[row["signal"]]} for row in reading.rows(_CORPUS) if row["signal"] in declared
        ],
    }


PAGES = (Route((), page, "Overview", 10),)
