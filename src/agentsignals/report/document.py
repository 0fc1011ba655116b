"""A report before it has a form: the studies' outcomes with what belongs to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from msgspec import Struct

from agentsignals.analysis import STUDIES, study
from agentsignals.analysis.study import Chart, Finding, Table
from agentsignals.report.inputs import Reader
from agentsignals.store import Store

FORM = 1
"""Version of the JSON document."""


class Section(Struct, frozen=True):
    """What one study found."""

    study: str
    title: str
    question: str
    findings: list[Finding]
    tables: list[Table]
    charts: list[Chart]
    limits: list[str]


class Document(Struct, frozen=True):
    """A report."""

    form: int
    agentsignals: str
    """The program's version."""
    made_at: str
    """RFC 3339, UTC."""
    sessions: int
    """Sessions in the store; with 0 the sections hold no value."""
    schema: int
    prices: tuple[str, ...]
    sections: list[Section]


def document(store: Store, names: Sequence[str] | None = None) -> Document:
    """The report of a store: these studies, or all. UsageError names what there is when one is unknown."""
    studies = [study(name) for name in dict.fromkeys(names or STUDIES)]
    reader = Reader(store, studies)
    sections = []
    for one in studies:
        found = one.run(reader.inputs(one))
        sections.append(
            Section(one.name, one.title, one.question, found.findings, found.tables, found.charts, found.limits)
        )
    return Document(
        FORM,
        version("agentsignals"),
        f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        len(store.manifest.sessions),
        reader.versions.schema,
        reader.versions.prices,
        sections,
    )
