"""The parts of pages written by hand that say what the code says: how sure each answer is, what formats can't say."""

from __future__ import annotations

from pathlib import Path

from tests.oracles import COUNTERS

from agentsignals.questions.ranking import Bounds
from agentsignals.stats.validation import figures_of, labeller_figure, share_text
from docs import what_formats_say

_ROOT = Path(__file__).parents[1]
_MEASURED: tuple[tuple[str, str, str], ...] = (
    ("Which prompts a person wrote", "agentsignals show SESSION", "user.user_turn_count"),
    ("Working time", "agentsignals explain SESSION infra.work_time_s", "infra.work_time_s"),
    ("Repeated calls", "agentsignals report --study repetition -o r.html", "dynamics.repetition_rate"),
    (
        "Main type of failure in a session",
        "agentsignals report --study errors -o r.html",
        "dynamics.session_failure_mode",
    ),
    ("Result of tests and builds", "agentsignals report --study outcomes -o r.html", "verification.outcome"),
    ("Prompts that object or correct", "agentsignals report --study friction -o r.html", "chat.pushback_type"),
    ("Intent of a prompt", "agentsignals report --study intents -o r.html", "chat.prompt_intent"),
    ("Sentiment of a message", "agentsignals report --study sentiment -o r.html", "corpus.sentiment_label"),
    (
        "Prompts that say too little",
        "agentsignals inventory underspecification",
        "anticipation.prompt_underspecification",
    ),
)
"""Question, command, and the signal that the answer rests on."""


def readme() -> str:
    return _filled(_ROOT / "README.md", {"how sure": _how_sure(), "formats": _formats()})


def formats_page() -> str:
    parts = {
        "formats": what_formats_say.table(),
        "cards": what_formats_say.cards(),
        "harness fields": what_formats_say.harness_fields(),
    }
    return _filled(_ROOT / "docs" / "formats.md", parts)


def _filled(page: Path, parts: dict[str, list[str]]) -> str:
    """The page with these parts anew, each between its mark and the next end."""
    text = page.read_text("utf-8")
    for name, lines in parts.items():
        before, mark, rest = text.partition(f"<!-- {name}: made by `python -m docs.generate` -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not (mark and end):
            raise ValueError(f"{page.name} has no part {name!r}")
        text = "\n".join([f"{before}{mark}", *lines, "", f"{end}{after}"])
    return text


def _how_sure() -> list[str]:
    bounds = Bounds()
    counters = len(COUNTERS)
    rows = [
        (
            "Findings",
            "agentsignals findings",
            f"at most {bounds.false_discoveries:.0%} are expected to be chance; of 10 planted problems 9 rank"
            " first ([test](docs/design/findings.md#how-they-are-tried))",
        ),
        (
            "Tokens and cost",
            "agentsignals report --study cost cost_causes -o r.html",
            f"tokens equal [an independent count](docs/counters.md) in {counters} formats; cost is at list price",
        ),
        *((question, command, _sure(path)) for question, command, path in _MEASURED),
    ]
    return ["| Answer | Run | Measured accuracy |", "| --- | --- | --- |"] + [
        f"| {question} | `{command}` | {sure} |" for question, command, sure in rows
    ]


def _sure(path: str) -> str:
    """The figures of a signal against most things judged."""
    measured = figures_of(path)
    if not measured:
        return "never measured"
    most = max(figure.n for figure in measured)
    against = [figure for figure in measured if figure.n == most]
    first = against[0]
    right = [figure.precision for figure in against if figure.precision is not None]
    truth = "synthetic cases" if first.truth == "planted cases" else "LLM-labelled messages"
    found = [figure.recall for figure in against if figure.recall is not None]
    if first.kappa is not None and first.truth != "planted cases":  # where one class is most of all, agreement flatters
        by_class = f"by class, {_between(right)} of the hits are right and {_between(found)} of the cases are found"
        unseen = labeller_figure("sentiment", "rules")
        if path == "corpus.sentiment_label" and unseen is not None:
            truth += f" that the rules' author had read; {unseen.n:,} unread ones gave {unseen.kappa:.2f}"
        return f"agreement (kappa) {first.kappa:.2f}; {by_class}; {most} {truth}"
    right_in = f"right in {share_text(first.agreement, first.agreement_interval)} of {most} {truth}"
    return right_in if min(right) == 1 else f"{right_in}; by class, {_between(right)} of the hits are right"


def _between(shares: list[float]) -> str:
    low, high = min(shares), max(shares)
    return f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"


def _formats() -> list[str]:
    """Formats by what they lack."""
    by_lack: dict[str, list[str]] = {}
    for name in what_formats_say.said():
        by_lack.setdefault(what_formats_say.lacking(name), []).append(f"`{name}`")
    rows = sorted(by_lack.items(), key=lambda pair: (pair[0].count(","), pair[0] != what_formats_say.NOTHING, pair[0]))
    return ["| Format | Missing fields |", "| --- | --- |"] + [
        f"| {' '.join(names)} | {lack} |" for lack, names in rows
    ]
