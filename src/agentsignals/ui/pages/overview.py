"""The first page: what stands out; then what was read, what was not, and figures of the whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from agentsignals.catalog import catalogue
from agentsignals.ui.page import Page, Query, Route
from agentsignals.ui.pages import findings
from agentsignals.ui.reading import Reading

_FIGURES = """
SELECT context, count(*) AS sessions, sum(n_prompts) AS prompts, sum(n_tool_calls) AS tool_calls, sum(n_edits) AS edits,
  sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(cache_read_tokens) AS cache_read_tokens,
  sum(cost_usd) AS cost_usd, count(cost_usd) AS priced, min(started_at) AS first, max(started_at) AS last,
  count(visible_output_tokens) AS bounds
FROM sessions GROUP BY context ORDER BY context DESC
"""
_AGENTS = """
SELECT agent, context, count(*) AS sessions, sum(n_prompts) AS prompts, sum(n_tool_calls) AS tool_calls,
  sum(cost_usd) AS cost_usd, count(cost_usd) AS priced, max(started_at) AS last, count(visible_output_tokens) AS bounds
FROM sessions GROUP BY agent, context ORDER BY sessions DESC, agent, context
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
    """What stands out, and what the store holds."""
    context = query.choice("context", ("product", "eval"), reading.main_context)
    return reading.kept(
        ("overview", context), lambda: Page("overview.html.j2", "What stands out", _filled(reading, context))
    )


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


def _filled(reading: Reading, context: str) -> dict[str, Any]:
    declared = {signal.path: signal for signal in catalogue().values()}
    corpus = [row | {"one": declared[row["signal"]]} for row in reading.rows(_CORPUS) if row["signal"] in declared]
    return {
        "store": str(reading.store.folder),
        "made": findings.of(reading, context),
        "others": sorted(reading.contexts - {context}),
        "contexts": reading.rows(_FIGURES),
        "agents": reading.rows(_AGENTS),
        "formats": reading.rows(_FORMATS),
        "skipped": skipped(reading),
        "no_traces": sum(not entry.shard for entry in reading.store.manifest.files.values()),
        "corpus": corpus,
    }


PAGES = (Route((), page, "Overview", 10),)
