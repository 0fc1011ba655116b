"""Write the report as one HTML page that opens offline, as Markdown (tables in place of charts), or as data."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from agentsignals.errors import BaselineError, StoreError
from agentsignals.ingest.pipeline import in_processes
from agentsignals.questions import baseline as baselines
from agentsignals.questions.question import MISSING, Kind, formatted, mark_names, row_names, without_bound
from agentsignals.questions.ranking import head_text, resolved_text
from agentsignals.questions.studies import studies
from agentsignals.store import Store, disk
from agentsignals.store.secrets import Progress, known_secrets
from agentsignals.ui import check_report
from agentsignals.ui import document as phrases
from agentsignals.ui.document import Document, Section, code, document, escaped, kept_or_made, table_of, with_code
from agentsignals.ui.drawing import svg
from agentsignals.ui.figures import cards
from agentsignals.ui.filter import key_of
from agentsignals.ui.page import short_ids
from agentsignals.words.text import visible, visible_in_json


def render(document: Document, short_ids: Mapping[str, str]) -> str:
    """The document as GitHub-flavoured Markdown."""
    parts = [
        f"# {escaped(phrases.title(document))}",
        escaped(phrases.read_from(document)),
        f"{phrases.made(document)}.",
    ]
    whose, command = phrases.whose(document)
    if whose:
        parts.append(f"{escaped(whose)} {code(command)}")
    if not document.sessions:
        parts.append(f"**{phrases.EMPTY}** Begin with `{phrases.FIRST_STEP}`.")
    for part in document.summary.contexts if document.summary else ():
        parts.append(escaped(head_text(part)))
        parts += [f"```text\n{visible(chr(10).join(lines))}\n```" for lines in [resolved_text(part.resolved)] if lines]
    if document.findings is not None:
        parts += ["## Findings", escaped(phrases.checks_text(document.findings))]
        for at, made in enumerate(document.findings.answers):
            ids = ", ".join(code(short_ids.get(name, name)) for name in made.sessions)
            below = [made.details, made.do, f"{phrases.sure_of(made)}. {made.caveat}"]
            lines = [f"{at + 1}. **{escaped(made.sentence)}**", *(f"   {with_code(line)}" for line in below if line)]
            parts.append("\n".join([*lines, f"   {ids + ' · ' if ids else ''}{code(made.again)}"]))
        if not document.findings.answers:
            parts.append("No findings.")

    def cell(value: Any, kind: Kind) -> str:
        if value is None:
            return MISSING
        if kind in ("session", "code"):
            return code(short_ids.get(value, value) if kind == "session" else str(value))
        return escaped(formatted(value, kind))

    commands = []
    for section in document.sections:
        parts += [f"## {section.title}", f"*{section.question}*"]
        rows = []
        for f in section.findings:
            value, n = (
                f"{phrases.value_of(f)} {phrases.unit_of(f)}".rstrip(),
                phrases.n_of(f.n, f.of).removeprefix("n = "),
            )
            rows.append([*map(escaped, (f.title, value, phrases.interval_of(f), n)), with_code(phrases.note_of(f))])
            commands.append([f"`{f.id}`", code(f.command), escaped(phrases.versions_of(f))])
        if rows:
            heads = ["finding", "value", "95% interval", "n", "note"]
            parts.append(table_of(heads, ["---", "---:", "---", "---", "---"], rows))
        if section.tables:
            parts += [f"`{path}` in tables: {escaped(caption)}" for path, caption in section.validation.items()]
        for table in section.tables:
            align = ["---:" if phrases.is_figure(column.kind) else "---" for column in table.columns]
            cells = [[cell(v, c.kind) for v, c in zip(row, table.columns, strict=True)] for row in table.rows]
            told_n = f"n = {table.n:,} {table.of}." + (f" {with_code(table.note)}" if table.note else "")
            parts += [f"### {table.title}", told_n, table_of([c.label for c in table.columns], align, cells)]
    limits = phrases.limits_of(document)
    if limits:
        parts += ["## Limits", "\n".join(f"- {with_code(limit)}" for limit in limits)]
    if commands:
        heads = ["finding", "command", "versions"]
        parts += ["## SQL and versions of every number", table_of(heads, ["---"] * 3, commands)]
    return visible("\n\n".join(filter(None, parts))) + "\n"


# The report as one JSON document: findings, tables as rows of objects, charts as marks with their form.


def render_data(document: Document) -> str:
    plain = msgspec.to_builtins(document)
    for section, plain_section in zip(document.sections, plain["sections"], strict=True):
        for table, told_table in zip(section.tables, plain_section["tables"], strict=True):
            keys = [column.key for column in table.columns]
            told_table["rows"] = [dict(zip(keys, row, strict=True)) for row in table.rows]
    return visible_in_json(msgspec.json.format(msgspec.json.encode(plain), indent=1).decode())


# The report as one HTML page that opens offline: no request leaves it, and no text of a trace runs in it.

HEAD = (
    "cost_causes.bill",
    "attempts.outcomes",
    "attempts.solved",
    "errors.rate_by_class",
    "cost.over_time",
    "friction.ends",
)
"""The charts beside the findings: the first `_CHARTS` of these that there are."""
WHERES = (("Cost by project", "cost_causes.by_place"), ("Cost by model", "cost_causes.by_model"))
"""Tables whose largest rows stand below the findings: name and cost are their first columns."""
_CHARTS = 2
_MOST = {"most_figures": 6, "most_charts": 2, "most_groups": 2}
"""Figures and charts of a study that are open, about a screen; groups of candidates before the appendix."""


def render_page(document: Document, short_ids: Mapping[str, str]) -> str:
    """Return the document as HTML. Jinja escapes all that is put in but our own style, scripts and drawn charts."""
    from agentsignals.ui.rendering import content_hash, environment, text_of_asset  # noqa: PLC0415  (jinja2, which Markdown does without)

    style, scripts = text_of_asset("page.css"), [text_of_asset("page.js")]
    same = (section for section in document.sections if section.context == document.context)
    by_id = {chart.id: chart for section in same for chart in section.charts}
    head = [by_id[name] for name in HEAD if name in by_id][:_CHARTS] if document.findings else []
    above = {chart.id for chart in head}
    tables = {table.id: table for section in document.sections for table in section.tables}
    bill = document.findings.totals.cost_usd if document.findings else None
    wheres = [
        (
            title,
            [(name, "", formatted(usd, "usd"), without_bound(usd) / bill) for name, usd, *_ in tables[id_].rows[:5]],
        )
        for title, id_ in WHERES
        if id_ in tables and bill
    ]
    # Nothing is loaded, and only our own style and scripts, named by their hashes, are applied. The one image is a
    # chart on its way to being saved as PNG.
    hashes = " ".join(f"'{content_hash(script)}'" for script in scripts)
    policy = (
        f"default-src 'none'; style-src '{content_hash(style)}'; script-src {hashes}; img-src blob:; base-uri 'none';"
        " form-action 'none'"
    )

    def key(section: Section, figure: str) -> str:  # as a shell takes it, of the sessions that the section is about
        one_context = len(document.contexts) < 2 or section.context == "both"
        return shlex.quote(key_of(section.study, figure, "" if one_context else section.context))

    places = {session.session_id: f"#session-{n + 1}" for n, session in enumerate(document.named)}
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            document=document,
            head=head,
            wheres=wheres,
            above=above,
            fold=document.findings is not None,
            session_url=places.get,
            words=phrases,
            counted=_counted,
            key=key,
            parts=[(part, cards(part)) for part in document.summary.contexts] if document.summary else [],
            headlines=[] if document.findings else [f for s in document.sections for f in s.findings if f.headline],
            formatted=formatted,
            short_ids=short_ids,
            sort_key=sort_key,
            draw=svg,
            style=style,
            scripts=scripts,
            policy=policy,
            **_MOST,
        )
    )


def _counted(section: Section) -> list[tuple[str, str]]:
    """A figure of each kind whose sessions a command lists, with what it is of. None of a study of this report alone:
    the command line would not find it."""
    if section.study not in studies():
        return []
    rows = [(table.id, row_names(replace(table, rows=table.rows[:1]))) for table in section.tables[:1]]
    marks = [(chart.id, mark_names(chart.marks[:1])) for chart in section.charts[:1]]
    return [
        *[("", finding.id) for finding in section.findings[:1]],
        *[("of a row, by its first cells,", f"{table}:{name}") for table, (name,) in rows],
        *[("of a bar, a cell or a point, by its name and where it stands,", f"{c}:{name}") for c, (name,) in marks],
    ]


def sort_key(value: Any) -> str:
    """Return the value a column is sorted by, not the words it is shown in."""
    return "" if value is None else str(without_bound(value))


# Studies as one file: a page that opens offline, Markdown, or data.


def write(  # noqa: PLR0913  (each is a choice of the person at the command line)
    store: Store,
    path: Path,
    studies: Sequence[str] | None = None,
    *,
    context: str | None = None,
    labeller: str | None = None,
    baseline: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Path:
    """Writes the report of a store in the form its ending names, in one rename, and gives its path.

    `studies`: only these, in this order. `context`: `product` or `eval`, whose figures; without one, people's sessions
    when there are any. `labeller`: whose labels studies of labels take;
    without one, of those there are the one with most. `baseline`: a file that `export --to baseline` wrote, to hold
    these sessions against. UsageError for another ending or an unknown study, BaselineError when that file is none,
    StoreError when the report can't be written.
    """
    check_report(path, studies)
    first = []
    if baseline:
        try:
            held = baseline.read_bytes()
        except OSError as problem:
            why = f"Cannot read the baseline {baseline}: {problem.strerror}."
            raise BaselineError(why, "Write a baseline with `agentsignals export --to baseline`.") from problem
        first = [baselines.against(baselines.decode(held, baseline.name), str(baseline))]
    known = partial(known_secrets, store, progress=progress, each=in_processes)
    is_whole = not (studies or labeller or first)
    if is_whole:
        made = kept_or_made(store, context, known)
    else:
        made = document(store, studies, context, labeller, first, known())
    return write_document(made, path, short_ids(store.manifest.sessions))


def write_document(made: Document, path: Path, ids: Mapping[str, str]) -> Path:
    """Writes a document in the form its path's ending names, in one rename. StoreError when it can't be written."""
    form = path.suffix.lower()
    text = render_data(made) if form == ".json" else render(made, ids) if form == ".md" else render_page(made, ids)
    try:
        disk.write_atomically(path, text.encode())
    except OSError as problem:
        raise StoreError(
            f"Cannot write the report {path}: {problem.strerror}.", "Choose a writable folder with -o."
        ) from problem
    return path
