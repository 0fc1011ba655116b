"""The parts of pages written by hand that say what the code says: how sure each answer is, what formats can't say."""

from __future__ import annotations

from pathlib import Path

from tests.oracles import COUNTERS

from agentsignals.questions.ranking import Bounds
from agentsignals.stats.validation import figures_of, share_text
from docs import what_formats_say

_ROOT = Path(__file__).parents[1]
_MEASURED: tuple[tuple[str, str, str], ...] = (
    ("Which prompts are a person's", "agentsignals show SESSION", "user.user_turn_count"),
    ("How long was worked", "agentsignals explain SESSION infra.work_time_s", "infra.work_time_s"),
    ("Where it repeats itself", "agentsignals report --study repetition -o r.html", "dynamics.repetition_rate"),
    ("How sessions fail", "agentsignals report --study errors -o r.html", "dynamics.session_failure_mode"),
    ("How tests and builds ended", "agentsignals report --study outcomes -o r.html", "verification.outcome"),
    ("Where people push back", "agentsignals report --study friction -o r.html", "chat.pushback_type"),
    ("What people ask for", "agentsignals report --study intents -o r.html", "chat.prompt_intent"),
    ("How people feel", "agentsignals report --study sentiment -o r.html", "corpus.sentiment_label"),
    ("What prompts leave open", "agentsignals inventory underspecification", "anticipation.prompt_underspecification"),
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
            "What goes wrong, in a few sentences",
            "agentsignals findings",
            f"each with its interval; at most {bounds.false_discoveries:.0%} of them by chance; what was planted comes"
            " first in nine of ten ([how](docs/design/findings.md#how-they-are-tried))",
        ),
        (
            "What it cost, and for what",
            "agentsignals report --study cost cost_causes -o r.html",
            f"tokens equal to [a second count](docs/counters.md) of {counters} formats; dollars by list price; `>=`"
            " where a log stops in mid-stream",
        ),
        *((question, command, _sure(path)) for question, command, path in _MEASURED),
    ]
    return ["| You want to know | Run | How sure |", "| --- | --- | --- |"] + [
        f"| {question} | `{command}` | {sure} |" for question, command, sure in rows
    ]


def _sure(path: str) -> str:
    """The figures of a signal against most things judged."""
    measured = figures_of(path)
    if not measured:
        return "never validated"
    most = max(figure.n for figure in measured)
    against = [figure for figure in measured if figure.n == most]
    first = against[0]
    right = [figure.precision for figure in against if figure.precision is not None]
    truth = "made-up cases" if first.truth == "planted cases" else "messages as a language model read them"
    kappa = "" if first.kappa is None else f", kappa {first.kappa:.2f}"
    return (
        f"agreement {share_text(first.agreement, first.agreement_interval)}{kappa}; what it names is right in"
        f" {_between(right)}, by class (n {most}, {truth})"
    )


def _between(shares: list[float]) -> str:
    low, high = min(shares), max(shares)
    return f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"


def _formats() -> list[str]:
    """Formats by what they lack."""
    by_lack: dict[str, list[str]] = {}
    for name in what_formats_say.said():
        by_lack.setdefault(what_formats_say.lacking(name), []).append(f"`{name}`")
    rows = sorted(by_lack.items(), key=lambda pair: (pair[0].count(","), pair[0] != what_formats_say.NOTHING, pair[0]))
    return ["| Logs | can't say |", "| --- | --- |"] + [f"| {' '.join(names)} | {lack} |" for lack, names in rows]
