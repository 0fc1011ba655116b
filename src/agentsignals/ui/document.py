"""A report before it has a form: the studies' outcomes with what belongs to all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentsignals.questions.findings import Reader, asking
from agentsignals.questions.findings import findings as find
from agentsignals.questions.question import (
    MISSING,
    AtLeast,
    Chart,
    Finding,
    Kind,
    Study,
    Table,
    formatted,
    interval,
    joined_notes,
    singular,
    times,
)
from agentsignals.questions.ranking import MORE, Answer, Findings, Summary, summary
from agentsignals.questions.studies import STUDIES, study
from agentsignals.questions.studies import studies as every_study
from agentsignals.redaction import redacted_in
from agentsignals.redaction.values import KnownSecrets
from agentsignals.sources.local import deleted_files
from agentsignals.store import Store, sidecars
from agentsignals.store.index import sessions_only_in
from agentsignals.store.query import rows
from agentsignals.ui.page import sql
from agentsignals.words.text import visible

FORM = 4
"""Version of the JSON document."""
WHOSE = {"product": "people's sessions", "eval": "attempts of eval runs", "both": "all that was read"}
"""Contexts in words."""


class Section(Struct, frozen=True, kw_only=True):
    """The outcome of one study."""

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
    """Precision of each meaningful signal that its tables and charts use, by path."""


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
    """Not None where output and cost are lower bounds."""

    @property
    def is_bound(self) -> bool:
        return self.visible_output_tokens is not None


class LeftOut(Struct, frozen=True):
    """A study that had nothing to say, and why."""

    study: str
    title: str
    reason: str


class Document(Struct, frozen=True, kw_only=True):
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
    """Ranked findings, before the studies; None in a report of some studies alone."""
    summary: Summary | None = None
    """The summary of all contexts of the store; None in a report of some studies alone."""
    named: list[NamedSession] = []
    """The sessions that findings and tables name."""
    left_out: list[LeftOut] = []
    agents: dict[str, int] = {}
    """Sessions of each agent in the report's context, most first."""
    damage: list[str] = []
    """Faults of the store: figures are without what is missing."""
    deleted_sessions: int = 0
    """Sessions whose files are gone since they were read."""
    about: str = ""
    """The title of a document that is about no store."""


def document(  # noqa: PLR0913  (the choices of a report)
    store: Store,
    names: Sequence[str] | None = None,
    context: str | None = None,
    labeller: str | None = None,
    first: Sequence[Study] = (),
    known: KnownSecrets | None = None,
) -> Document:
    """The report of a store: these studies, or all. UsageError names what there is when one is unknown.

    `context`: `product` or `eval`, for the studies that take either; without one, people's sessions when there are any.
    `labeller`: whose labels studies of labels take. `first`: studies of this report alone, before the others. Every
    text is redacted; `known` secrets of the store are masked also where they stand bare.
    """
    studies = [*first, *(study(name) for name in dict.fromkeys(names or every_study()))]
    counted = store.contexts()
    reader = Reader(store, [*studies, *(asking(store, context) if names is None else ())], context, labeller)
    agents = dict(rows(store, sql("report.agents"), reader.context)[1]) if counted else {}
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
            left_out.append(LeftOut(declared.name, declared.title, " ".join(outcome.limits or ())))
            continue
        about = reader.context if declared.context == "either" else declared.context
        # Of one agent without what would say the same again by agent.
        shown = [made for made in (*outcome.tables, *outcome.charts) if made]
        if len(agents) == 1:
            by_agent = re.compile(r"agents\..*|.*(?:by_agent|\.agents)", re.DOTALL)
            shown = [made for made in shown if not by_agent.fullmatch(made.id)]
        section = Section(
            study=declared.name,
            title=declared.title,
            question=declared.question,
            context=about,
            findings=outcome.findings,
            tables=[made for made in shown if isinstance(made, Table)],
            charts=[made for made in shown if isinstance(made, Chart)],
            limits=list(outcome.limits or ()),
            validation=outcome.validation,
        )
        sections.append(section)
    made = find(store, reader.context, reader=reader) if names is None and counted.get(reader.context) else None
    others = [find(store, other) for other in counted if made is not None and other != reader.context]
    document = Document(
        form=FORM,
        agentsignals=version("agentsignals"),
        made_at=_now(),
        sessions=sum(counted.values()),
        schema=reader.versions.schema,
        prices=reader.versions.prices,
        context=reader.context,
        contexts=counted,
        agents=agents,
        sections=sections,
        findings=made,
        summary=None if made is None else summary([made, *others]),
        named=_named(store, made, sections),
        left_out=left_out,
        damage=store.warnings,
        deleted_sessions=_n_deleted(store),
    )
    return redacted_in(document, known)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _n_deleted(store: Store) -> int:
    return len(sessions_only_in(store.manifest, deleted_files(store.manifest.local_files())))


_EITHER = "either"
"""Names the kept document of no named context."""


def kept_or_made(store: Store, context: str | None, known: Callable[[], KnownSecrets]) -> Document:
    """Return the document of all studies. It is made once for each state of the store, and kept there, masked."""
    kept = sidecars.read_cache(store, context or _EITHER, "report")
    with suppress(msgspec.DecodeError):  # one that was cut short is made again
        if kept is not None:
            made = msgspec.msgpack.decode(kept, type=Document)
            for table in (table for section in made.sections for table in section.tables):
                for row in table.rows:
                    for n, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
                        if isinstance(cell, dict):
                            row[n] = AtLeast(**cell)
                        elif column.kind == "date" and cell is not None:
                            row[n] = datetime.fromisoformat(cell)
            return replace(made, made_at=_now(), deleted_sessions=_n_deleted(store))
    # Secrets are collected first, while this process may still be copied: DuckDB's threads can't be.
    made = document(store, context=context, known=known())
    sidecars.write_cache(store, context or _EITHER, msgspec.msgpack.encode(made), "report")
    return made


def _named(store: Store, made: Findings | None, sections: Sequence[Section]) -> list[NamedSession]:
    named = {session_id for answer in made.answers for session_id in answer.sessions} if made else set()
    for table in (table for section in sections for table in section.tables):
        at = [n for n, column in enumerate(table.columns) if column.kind == "session"]
        named |= {row[n] for row in table.rows for n in at if row[n] is not None}
    columns = ", ".join(NamedSession.__struct_fields__)
    asked = sql("report.sessions", columns=columns)
    names, values = rows(store, asked, values=[sorted(named)]) if named else ([], [])
    return [NamedSession(**dict(zip(names, row, strict=True))) for row in values]


def _reason(study: Study, context: str | None, counted: dict[str, int]) -> str:
    """Why a study is left out; empty when it is not. An empty store has every section, to show what it would hold."""
    if study.context in ("either", "both") or not counted:
        return ""
    if not counted.get(study.context):
        return f"it is about {WHOSE[study.context]}, and the store holds none"
    return f"it is about {WHOSE[study.context]}" if context and context != study.context else ""


# What page and Markdown both say of a finding.

EMPTY = "The store holds no session yet: every figure below is empty."
_COMPACT_FROM = 10_000_000
FIRST_STEP = "agentsignals analyze SOURCE"


def title(document: Document) -> str:
    """Return a line that says what the report is about. People's sessions and attempts are counted separately."""
    if document.about:
        return document.about
    people, attempts = document.contexts.get("product", 0), document.contexts.get("eval", 0)
    told_attempts = f"{times(attempts, 'attempt')} of eval runs"
    if not people:
        return told_attempts if attempts else "No session yet"
    told_people = times(people, "agent session")
    return f"{told_people}, and {told_attempts}" if attempts else told_people


def whose(document: Document) -> tuple[str, str]:
    """Name the sessions the figures are about, and the command for the others; empty in a store of one context."""
    if len(document.contexts) < 2:
        return "", ""
    other = "eval" if document.context == "product" else "product"
    sections = [s.title for s in document.sections if s.context == other]
    told_others = f", but for {' and '.join(sections)}" if sections else ""
    sentence = f"Figures are of {WHOSE[document.context]}{told_others}. Those of {WHOSE[other]}:"
    return sentence, f"agentsignals report --context {other} -o {other}.html"


def read_from(document: Document) -> str:
    """Whose logs the figures come from; empty in a store of none or two contexts, whose agents do not compare."""
    if not document.agents or len(document.contexts) > 1:
        return ""
    unit = "attempt" if document.context == "eval" else "session"
    named = [f"{agent or 'an agent that is not named'} ({times(n, unit)})" for agent, n in document.agents.items()][:4]
    more = len(document.agents) - len(named)
    others = f" and {times(more, 'more agent')}" if more else ""
    return f"Read from the logs of {', '.join(named)}{others}."


def made(document: Document) -> str:
    """When, by what and from what, and what is masked."""
    prices = [p for p in document.prices if p != "recorded"]
    told_prices = f", price list {', '.join(prices)}" if prices else ""
    when = document.made_at.replace("T", " ").removesuffix("Z")[:16]
    masked = "Secrets, mail addresses and user names are masked; some pass, mostly passwords of plain words"
    told_store = "" if document.about else f", store schema {document.schema}{told_prices}. {masked}"
    return f"Made {when} UTC by agentsignals {document.agentsignals}{told_store}"


def unit_of(finding: Finding) -> str:
    """The unit, where the figure does not carry it."""
    if finding.kind in ("usd", "seconds", "text") or finding.value is None:
        return ""
    unit = finding.unit.removeprefix("share ") if finding.kind == "share" else finding.unit
    return singular(unit) if finding.kind == "count" and finding.value == 1 else unit


def value_of(finding: Finding) -> str:
    """The figure, without its unit."""
    return formatted(finding.value, finding.kind, finding.at_least)


def interval_of(finding: Finding) -> str:
    """The interval in words; a dash when there is none."""
    low, high = finding.interval or (None, None)
    return interval(low, high, partial(formatted, kind=finding.kind)) or MISSING


def n_of(n: int, of: str) -> str:
    """The number of observations and what they are; millions in three figures."""
    return f"n = {formatted(n, 'count' if n < _COMPACT_FROM else 'tokens')} {singular(of) if n == 1 else of}"


def notes_of(finding: Finding) -> tuple[str, str, str]:
    """Return what a figure means, the caveat of its interval, and how often the signals it rests on were right."""
    caveat = finding.caveat
    forms = (caveat, f"{caveat[:1].upper()}{caveat[1:]}")  # after a sentence it is one
    said = next((form for form in forms if form and form in finding.note), None)
    parts = [finding.note] if said is None else finding.note.split(said)
    return joined_notes(*(part.lstrip(".; ").rstrip("; ") for part in parts)), caveat, finding.validation


def note_of(finding: Finding) -> str:
    """Return the notes of a figure as one text."""
    return joined_notes(*notes_of(finding))


def sentences_of(caveat: str) -> list[str]:
    """Return the parts of a finding's caveat, which are understood apart."""
    return [part.rstrip(".;") for part in re.split(r"(?<=[.;]) +", caveat)]


def versions_of(finding: Finding) -> str:
    """Name the versions of the signals a value was computed with."""
    versions = finding.versions
    if versions is None:
        return ""
    parts = [f"schema {versions.schema}", *(f"{path} {version}" for path, version in versions.signals.items())]
    return ", ".join(parts + ([f"prices {' and '.join(versions.prices)}"] if versions.prices else []))


def is_figure(kind: Kind) -> bool:
    """Return whether values of a kind are right-aligned."""
    return kind not in ("text", "session", "code", "date")


def checks_text(findings: Findings) -> str:
    """State how many checks were run, the false discovery rate and the smallest effect shown."""
    n = sum(findings.looked_at.values())
    return (
        f"{times(n, 'check')} run. False discovery rate {findings.bounds.false_discoveries:.0%}. Effects"
        f" under {findings.bounds.effect:.0%} are hidden."
    )


def sure_of(answer: Answer) -> str:
    """State the confidence, the interval and n of a finding. Its q is in JSON and in the table `findings`."""
    word = next(word for least, word in _CONFIDENCE if answer.sureness >= least)
    low, high = answer.interval or (None, None)
    is_paired = answer.unit == "tasks"
    is_gap = is_paired or answer.unit.endswith(MORE) or answer.about.startswith("upgrade.")
    gap = "difference " if answer.interval and is_gap else ""
    counted = times(answer.n, "task" if is_paired else "session")
    parts = (f"{word} confidence", gap + interval(low, high, "{:.1%}"), counted)
    return " · ".join(filter(None, parts))


_CONFIDENCE = ((0.8, "High"), (0.5, "Medium"), (0.0, "Low"))
"""Least confidence of each word."""


def more_of(figures: Sequence[Finding], charts: Sequence[Chart], tables: Sequence[Table]) -> str:
    counted = ((len(figures), "figure"), (len(charts), "chart"), (len(tables), "table"))
    return "More: " + ", ".join(times(n, what) for n, what in counted if n)


def limits_of(document: Document) -> list[str]:
    """List the limits of all sections, and of what no section is about."""
    limits = [
        f"The store was damaged when this was made, and figures are without it: {line}." for line in document.damage
    ]
    if document.deleted_sessions:
        limits.append(
            f"The files of {times(document.deleted_sessions, 'session')} are gone since they were read; every figure is"
            " with these sessions. agentsignals forget --deleted takes them out of the store."
        )
    limits += list(dict.fromkeys(limit for section in document.sections for limit in section.limits))
    for reason in dict.fromkeys(left.reason for left in document.left_out):
        titles = [left.title for left in document.left_out if left.reason == reason]
        limits.append(f"Not in this report: {', '.join(titles)} ({reason}).")
    return limits


# Markdown out of texts and figures that are no Markdown: whatever a trace holds is shown and does nothing else.

_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~$!]|:(?=//))")
_BREAKS = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def table_of(head: Sequence[str], align: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, align, *rows))


def plain_table(head: Sequence[str], rows: Sequence[Sequence[Any]], most_chars: int | None = None) -> str:
    """A table of figures and of texts that are no Markdown; numbers at the right, texts cut at `most_chars`."""

    def told(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)

    numeric = [all(isinstance(row[n], int | float | None) for row in rows) for n in range(len(head))]
    cells = [[escaped(told(value)[:most_chars]) for value in row] for row in rows]
    return visible(table_of([escaped(name) for name in head], ["---:" if right else "---" for right in numeric], cells))


def plain_lines(lines: Iterable[str], mark: str = "- ") -> str:
    """Sentences that are no Markdown, one a line."""
    return visible("\n".join(f"{mark}{escaped(line)}" for line in lines))


def escaped(text: str) -> str:
    """Text of a trace as Markdown that shows it and does nothing else."""
    return _SPECIAL.sub(r"\\\1", _BREAKS.sub(" ", text))


def with_code(text: str) -> str:
    """Return a text as Markdown, with what stands between backticks as code."""
    return "".join(code(part) if n % 2 else escaped(part) for n, part in enumerate(text.split("`")))


def code(text: str) -> str:
    """Text as a code span inside a table, whatever is in it."""
    clean = _BREAKS.sub(" ", text).replace("|", "\\|").strip()
    if not clean:
        return MISSING
    fence = "`" * (max((len(run) for run in re.findall(r"`+", clean)), default=0) + 1)
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{clean}{pad}{fence}"
