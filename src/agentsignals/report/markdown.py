"""The report as one Markdown file: the same findings and tables. Charts are left out; the tables hold their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentsignals.analysis.figures import MISSING, formatted
from agentsignals.analysis.ranking import Findings
from agentsignals.analysis.study import Column, Finding, Table
from agentsignals.report import phrases
from agentsignals.report.document import Document, Section
from agentsignals.words.text import visible

_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~$!]|:(?=//))")
_BREAKS = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def render(document: Document, short_ids: Mapping[str, str]) -> str:
    """The document as GitHub-flavoured Markdown."""
    parts = [f"# {escaped(phrases.title(document))}", f"{phrases.made(document)}."]
    whose, command = phrases.whose(document)
    if whose:
        parts.append(f"{escaped(whose)} {code(command)}")
    if not document.sessions:
        parts.append(f"**{phrases.EMPTY}** Begin with `{phrases.FIRST_STEP}`.")
    if document.findings is not None:
        parts += _findings(document.findings, short_ids)
    for section in document.sections:
        parts += _section(section, short_ids)
    limits = phrases.limits_of(document)
    if limits:
        parts += ["## What can't be concluded", "\n".join(f"- {escaped(limit)}" for limit in limits)]
    commands = [
        [f"`{f.id}`", code(f.command), escaped(phrases.versions_of(f))] for s in document.sections for f in s.findings
    ]
    parts += ["## Every number, made again", table_of(["finding", "command", "versions"], ["---"] * 3, commands)]
    return visible("\n\n".join(parts)) + "\n"


def _findings(findings: Findings, short_ids: Mapping[str, str]) -> list[str]:
    parts = ["## What stands out", escaped(phrases.looked_at(findings))]
    for at, made in enumerate(findings.answers):
        ids = ", ".join(code(short_ids.get(name, name)) for name in made.sessions)
        below = [made.do, f"{phrases.sure_of(made)}. {made.caveat}"]
        lines = [f"{at + 1}. **{escaped(made.sentence)}**", *(f"   {escaped(line)}" for line in below if line)]
        parts.append("\n".join([*lines, f"   {ids + ' · ' if ids else ''}{code(made.again)}"]))
    return parts if findings.answers else [*parts, "Nothing stands out from the other sessions here."]


def _section(section: Section, short_ids: Mapping[str, str]) -> list[str]:
    rows = [_finding(finding) for finding in section.findings]
    parts = [f"## {section.title}", f"*{section.question}*"]
    if rows:
        heads = ["finding", "value", "95% interval", "n", "note"]
        parts.append(table_of(heads, ["---", "---:", "---", "---", "---"], rows))
    if section.tables:
        parts += [f"`{path}` in tables: {escaped(caption)}" for path, caption in section.validation.items()]
    for table in section.tables:
        parts += _table(table, short_ids)
    return parts


def _finding(finding: Finding) -> list[str]:
    value = f"{phrases.value_of(finding)} {phrases.unit_of(finding)}".rstrip()
    n = f"{finding.n:,} {finding.of}"
    return [escaped(text) for text in (finding.title, value, phrases.interval_of(finding), n, phrases.note_of(finding))]


def _table(table: Table, short_ids: Mapping[str, str]) -> list[str]:
    align = ["---:" if phrases.is_figure(column.kind) else "---" for column in table.columns]
    rows = [[_cell(v, c, short_ids) for v, c in zip(row, table.columns, strict=True)] for row in table.rows]
    told_n = f"n = {table.n:,} {table.of}." + (f" {escaped(table.note)}" if table.note else "")
    return [f"### {table.title}", told_n, table_of([c.label for c in table.columns], align, rows)]


def _cell(value: Any, column: Column, short_ids: Mapping[str, str]) -> str:
    if value is None:
        return MISSING
    if column.kind == "session":
        return code(short_ids.get(value, value))
    return code(str(value)) if column.kind == "code" else escaped(formatted(value, column.kind))


def table_of(head: Sequence[str], align: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, align, *rows))


def plain_table(head: Sequence[str], rows: Sequence[Sequence[Any]], most_chars: int | None = None) -> str:
    """A table of figures and of texts that are no Markdown; numbers stand to the right, and texts are cut where
    `most_chars` says so."""
    numeric = [all(isinstance(row[n], int | float | None) for row in rows) for n in range(len(head))]
    cells = [[escaped(_plain_cell(value)[:most_chars]) for value in row] for row in rows]
    return visible(table_of([escaped(name) for name in head], ["---:" if right else "---" for right in numeric], cells))


def _plain_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain_lines(lines: Iterable[str], mark: str = "- ") -> str:
    """Sentences that are no Markdown, one a line."""
    return visible("\n".join(f"{mark}{escaped(line)}" for line in lines))


def escaped(text: str) -> str:
    """Text of a trace as Markdown that shows it and does nothing else."""
    return _SPECIAL.sub(r"\\\1", _BREAKS.sub(" ", text))


def code(text: str) -> str:
    """Text as a code span inside a table, whatever is in it."""
    clean = _BREAKS.sub(" ", text).replace("|", "\\|").strip()
    if not clean:
        return MISSING
    fence = "`" * (max((len(run) for run in re.findall(r"`+", clean)), default=0) + 1)
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{clean}{pad}{fence}"
