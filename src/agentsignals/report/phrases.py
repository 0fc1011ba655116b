"""What page and Markdown both say of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from agentsignals.analysis.figures import MISSING, formatted
from agentsignals.analysis.ranking import Answer, Findings
from agentsignals.analysis.study import Chart, Finding, Kind, Table
from agentsignals.report.document import WHOSE, Document

EMPTY = "The store holds no session yet: every figure below is empty."
_COMPACT_FROM = 10_000_000
FIRST_STEP = "agentsignals analyze SOURCE"
UNDRAWN = "Charts stand here in words and figures: pip install 'agentsignals[charts]' has them drawn."


def title(document: Document) -> str:
    """What the report is about, in a line. People's sessions and attempts are counted apart, as all figures are."""
    if document.about:
        return document.about
    people, attempts = document.contexts.get("product", 0), document.contexts.get("eval", 0)
    told_attempts = f"{attempts:,} attempt{'' if attempts == 1 else 's'} of eval runs"
    if not people:
        return told_attempts if attempts else "No session yet"
    told_people = f"{people:,} agent session{'' if people == 1 else 's'}"
    return f"{told_people}, and {told_attempts}" if attempts else told_people


def whose(document: Document) -> tuple[str, str]:
    """Which sessions the figures are about, and the command for the others; empty where the store holds one context."""
    if len(document.contexts) < 2:
        return "", ""
    other = "eval" if document.context == "product" else "product"
    sections = [s.title for s in document.sections if s.context == other]
    told_others = f", but for {' and '.join(sections)}" if sections else ""
    sentence = f"Figures are of {WHOSE[document.context]}{told_others}. Those of {WHOSE[other]}:"
    return sentence, f"agentsignals report --context {other} -o {other}.html"


def made(document: Document) -> str:
    """When, by what and from what."""
    prices = [p for p in document.prices if p != "recorded"]
    told_prices = f", price list {', '.join(prices)}" if prices else ""
    when = document.made_at.replace("T", " ").removesuffix("Z")[:16]
    told_store = "" if document.about else f", store schema {document.schema}{told_prices}"
    return f"Made {when} UTC by agentsignals {document.agentsignals}{told_store}"


def unit_of(finding: Finding) -> str:
    """The unit, where the figure does not carry it."""
    if finding.kind in ("usd", "seconds", "text") or finding.value is None:
        return ""
    return finding.unit.removeprefix("share ") if finding.kind == "share" else finding.unit


def value_of(finding: Finding) -> str:
    """The figure, without its unit."""
    return formatted(finding.value, finding.kind, finding.at_least)


def interval_of(finding: Finding) -> str:
    """The interval in words; a dash when there is none."""
    if finding.interval is None:
        return MISSING
    low, high = finding.interval
    return f"{formatted(low, finding.kind)} to {formatted(high, finding.kind)}"


def n_of(n: int, of: str) -> str:
    """The number of observations and what they are; millions in three figures."""
    return f"n = {formatted(n, 'count' if n < _COMPACT_FROM else 'tokens')} {of}"


def note_of(finding: Finding) -> str:
    """What a reader has to know beside the figure: its caveats, and how often what it rests on was right."""
    return "; ".join(part for part in (finding.note, finding.validation) if part)


def versions_of(finding: Finding) -> str:
    """What the value was computed with, in words."""
    versions = finding.versions
    if versions is None:
        return ""
    parts = [f"schema {versions.schema}", *(f"{path} {version}" for path, version in versions.signals.items())]
    return ", ".join(parts + ([f"prices {' and '.join(versions.prices)}"] if versions.prices else []))


def is_figure(kind: Kind) -> bool:
    """Whether values of a kind are written flush right."""
    return kind not in ("text", "session", "code", "date")


def looked_at(findings: Findings) -> str:
    """Of how much, and how sure."""
    n = sum(findings.looked_at.values())
    bill = f"{findings.bill}. " if findings.bill else ""
    return (
        f"{bill[:1].upper()}{bill[1:]}{n:,} candidates were looked at; of those said at most"
        f" {findings.bounds.false_discoveries:.0%} are expected to be wrong by chance, and nothing below"
        f" {findings.bounds.effect:.0%} of the whole is said."
    )


def sure_of(answer: Answer) -> str:
    """How sure, of how many, with the interval of its figure."""
    sure = f"Sureness {answer.sureness:.2f}, n = {answer.n:,}"
    if answer.interval is not None:
        low, high = (formatted(end, "share") for end in answer.interval)
        sure += f", 95% {low} to {high}"
    return sure + (f", q {answer.q:.2g}" if answer.q is not None else "")


def more_of(figures: Sequence[Finding], charts: Sequence[Chart], tables: Sequence[Table]) -> str:
    """What is folded."""
    counted = ((len(figures), "figure"), (len(charts), "chart"), (len(tables), "table"))
    return "More: " + ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counted if n)


def limits_of(document: Document) -> list[str]:
    """What can't be concluded: from all sections, and of what no section is about."""
    limits = [
        f"The store was damaged when this was made, and figures are without it: {line}." for line in document.damage
    ]
    if document.deleted_sessions:
        limits.append(
            f"The files of {document.deleted_sessions:,} sessions are gone since they were read; every figure is with"
            " these sessions. agentsignals forget --deleted takes them out of the store."
        )
    limits += list(dict.fromkeys(limit for section in document.sections for limit in section.limits))
    for reason in dict.fromkeys(study.reason for study in document.left_out):
        titles = [study.title for study in document.left_out if study.reason == reason]
        limits.append(f"Not in this report: {', '.join(titles)} ({reason}).")
    return limits
