"""Turns raw coding-agent traces into facts people act on.

    import agentsignals as sig
    store = sig.analyze("~/.claude/projects")
    store.signals().filter(...)          # a Polars frame
    store.sql("SELECT ... FROM sessions")  # a DuckDB relation

Importing this loads nothing heavy, prints nothing and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from agentsignals.analysis.ranking import Bounds, Findings
    from agentsignals.store import Store

__version__ = "0.2.0"
__all__ = ["__version__", "analyze", "explain", "find", "ingest", "inventory", "open_store", "write_report"]


def analyze(
    *sources: str | Path, store: str | Path | None = None, report: str | Path | None = None, **options: Any
) -> Store:
    """Reads sources (none: the agents found here), measures, and opens the store. `report` also writes one.

    Options: jobs, force_format, executor, progress (see `agentsignals.ingest.pipeline.ingest`).
    """
    from agentsignals.ingest import pipeline
    from agentsignals.store import Store

    pipeline.analyze([str(s) for s in sources], store, **options)
    opened = Store(store)
    if report is not None:
        write_report(opened, report)
    return opened


def ingest(*sources: str | Path, store: str | Path | None = None, **options: Any) -> Store:
    """Reads sources into the store and opens it."""
    from agentsignals.ingest import pipeline
    from agentsignals.store import Store

    pipeline.ingest([str(s) for s in sources], store, **options)
    return Store(store)


def open_store(store: str | Path | None = None) -> Store:
    """The store in that folder; StoreError when there is none."""
    from agentsignals.store import Store

    return Store(store)


def inventory(text: str = "", context: str | None = None) -> list[dict[str, Any]]:
    """The catalogue of signals as plain rows."""
    from agentsignals import catalog

    return catalog.inventory(text, context)


def explain(store: Store, session: str, signal: str) -> Any:
    """One value with the events, lines and rule that made it."""
    from agentsignals.ingest import explaining

    return explaining.explain(store, session, signal)


def find(store: Store, context: str | None = None, bounds: Bounds | None = None) -> Findings:
    """The few sentences that matter of a store, ranked: `find(store).answers`. `context`: `product` or `eval`."""
    from agentsignals import findings

    return findings.findings(store, context, bounds)


def write_report(store: Store, path: str | Path) -> Path:
    """Writes the report of a store (.html, .md or .json) and gives its path."""
    from pathlib import Path as _Path

    from agentsignals import report as reporting

    return reporting.write(store, _Path(path))
