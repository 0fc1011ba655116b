"""A report before it has a form: the studies' outcomes with what belongs to all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from msgspec import Struct

from agentsignals.analysis import STUDIES, study
from agentsignals.analysis import studies as every_study
from agentsignals.analysis.ranking import Findings
from agentsignals.analysis.study import Chart, Finding, Outcome, Study, Table
from agentsignals.findings import asking
from agentsignals.findings import findings as find
from agentsignals.findings.inputs import Reader
from agentsignals.redaction import without_keys_in
from agentsignals.sources.local import deleted_files
from agentsignals.store import Store
from agentsignals.store.manifest import local_files, only_in
from agentsignals.store.query import rows

FORM = 3
"""Version of the JSON document."""
WHOSE = {"product": "people's sessions", "eval": "attempts of eval runs", "both": "all that was read"}
"""Contexts in words."""


class Section(Struct, frozen=True, kw_only=True):
    """What one study found."""

    study: str
    title: str
    question: str
    context: str
    """Whose sessions it is about: `product`, `eval`, or `both` for what is said of files."""
    findings: list[Finding]
    tables: list[Table]
    charts: list[Chart]
    limits: list[str]
    validation: dict[str, str] = {}
    """Of each signal in its tables and charts that claims a meaning, how often it was right."""


class NamedSession(Struct, frozen=True, kw_only=True):
    """A session that the report names somewhere; empty where the trace doesn't say."""

    session_id: str
    agent: str | None
    model: str | None
    started_at: datetime | None
    n_prompts: int | None
    n_tool_calls: int | None
    cost_usd: float | None
    repo: str | None
    visible_output_tokens: int | None
    """Where output and cost are lower bounds."""

    @property
    def is_bound(self) -> bool:
        return self.visible_output_tokens is not None


class LeftOut(Struct, frozen=True):
    """A study that had nothing to say, and why."""

    study: str
    title: str
    reason: str


class Document(Struct, frozen=True, kw_only=True):
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
    context: str
    """The context of the studies that take either."""
    contexts: dict[str, int]
    """Sessions of each context in the store."""
    sections: list[Section]
    findings: Findings | None = None
    """What stands out, before the studies; None of a report of some studies alone."""
    named: list[NamedSession] = []
    """The sessions that findings and tables name."""
    left_out: list[LeftOut] = []
    damage: list[str] = []
    """What is wrong with the store: figures are without what is missing."""
    deleted_sessions: int = 0
    """Of the sessions, those whose files are gone since they were read."""
    about: str = ""
    """What it is about, where that is no store: its title, and nothing is said of stores."""


def document(
    store: Store,
    names: Sequence[str] | None = None,
    context: str | None = None,
    labeller: str | None = None,
    first: Sequence[Study] = (),
) -> Document:
    """The report of a store: these studies, or all. UsageError names what there is when one is unknown.

    `context`: `product` or `eval`, for the studies that take either; without one, people's sessions when there are any.
    `labeller`: whose labels studies of labels take. `first`: studies of this report alone, before the others.
    """
    studies = [*first, *(study(name) for name in dict.fromkeys(names or every_study()))]
    counted = dict(Counter(entry.context for entry in store.manifest.sessions.values()))
    reader = Reader(store, [*studies, *(asking(store, context) if names is None else ())], context, labeller)
    has_one_agent = bool(counted) and _has_one_agent(store, reader.context)
    sections, left_out = [], []
    for declared in studies:
        reason = _reason(declared, context, counted)
        if reason:
            left_out.append(LeftOut(declared.name, declared.title, reason))
            continue
        try:
            outcome = declared.run(reader.inputs(declared))
        except Exception as problem:
            place = STUDIES.places.get(declared.name)
            if place is None or not place.distribution:
                raise
            # What another package adds must not cost the report; it is named in it.
            left_out.append(LeftOut(declared.name, declared.title, f"{place}: {type(problem).__name__}: {problem}"))
            continue
        if counted and not (outcome.findings or outcome.tables or outcome.charts):
            left_out.append(LeftOut(declared.name, declared.title, " ".join(outcome.limits)))
            continue
        about = reader.context if declared.context == "either" else declared.context
        sections.append(_section(declared, about, outcome, has_one_agent=has_one_agent))
    made = find(store, reader.context, reader=reader) if names is None and counted.get(reader.context) else None
    return Document(
        form=FORM,
        agentsignals=version("agentsignals"),
        made_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        sessions=len(store.manifest.sessions),
        schema=reader.versions.schema,
        prices=reader.versions.prices,
        context=reader.context,
        contexts=counted,
        sections=sections,
        findings=made,
        named=_named(store, made, sections),
        left_out=left_out,
        damage=store.warnings,
        deleted_sessions=len(only_in(store.manifest, deleted_files(local_files(store.manifest)))),
    )


def _section(declared: Study, context: str, outcome: Outcome, *, has_one_agent: bool) -> Section:
    """A study's outcome without keys; of one agent without what would say the same again by agent."""
    return Section(
        study=declared.name,
        title=declared.title,
        question=declared.question,
        context=context,
        findings=without_keys_in(outcome.findings),
        tables=without_keys_in([made for made in outcome.tables if not (has_one_agent and _by_agent(made.id))]),
        charts=without_keys_in([made for made in outcome.charts if not (has_one_agent and _by_agent(made.id))]),
        limits=outcome.limits,
        validation=outcome.validation,
    )


def _has_one_agent(store: Store, context: str) -> bool:
    """Whether what is told by agent would be told twice."""
    return int(rows(store, "SELECT count(DISTINCT agent) FROM sessions", context)[1][0][0]) <= 1


def _by_agent(id: str) -> bool:  # noqa: A002  (the chart's and table's field)
    """Whether a chart or table, by its id, holds agents against each other."""
    return id.startswith("agents.") or id.endswith(("by_agent", ".agents"))


def _named(store: Store, made: Findings | None, sections: Sequence[Section]) -> list[NamedSession]:
    named = {session_id for answer in made.answers for session_id in answer.sessions} if made else set()
    for table in (table for section in sections for table in section.tables):
        at = [n for n, column in enumerate(table.columns) if column.kind == "session"]
        named |= {row[n] for row in table.rows for n in at if row[n] is not None}
    columns = ", ".join(NamedSession.__struct_fields__)
    sql = f"SELECT {columns} FROM sessions WHERE session_id IN (SELECT unnest(?)) ORDER BY session_id"  # noqa: S608  (names of ours)
    names, values = rows(store, sql, values=[sorted(named)]) if named else ([], [])
    sessions: list[NamedSession] = without_keys_in(
        [NamedSession(**dict(zip(names, row, strict=True))) for row in values]
    )
    return sessions


def _reason(study: Study, context: str | None, counted: dict[str, int]) -> str:
    """Why a study is left out; empty when it is not. An empty store has every section, to show what it would hold."""
    if study.context in ("either", "both") or not counted:
        return ""
    if not counted.get(study.context):
        return f"it is about {WHOSE[study.context]}, and the store holds none"
    return f"it is about {WHOSE[study.context]}" if context and context != study.context else ""
