"""Turns the logs of coding agents into facts that people act on.

    import agentsignals as sig
    store = sig.analyze("~/.claude/projects")
    store.signals().filter(...)          # a Polars frame
    store.sql("SELECT ... FROM sessions")  # a DuckDB relation
    sig.find(store).answers              # the few sentences that matter
    sig.search(store, "merge conflicts") # the sessions in which somebody says it
    sig.study(store, "cost")             # one question, with all its figures

Importing this loads nothing heavy, prints nothing and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentsignals import on_demand

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agentsignals.questions.compare import Comparison
    from agentsignals.questions.drivers import Drivers
    from agentsignals.questions.drivers.predictors import Within
    from agentsignals.questions.ranking import Bounds, Findings
    from agentsignals.store import Store
    from agentsignals.store.fulltext import Results
    from agentsignals.ui.document import Section

__version__ = "0.3.0"
__all__ = [
    "__version__",
    "all_studies",
    "analyze",
    "compare",
    "drivers",
    "explain",
    "find",
    "ingest",
    "inventory",
    "open_store",
    "search",
    "study",
    "write_report",
]


def _compute(store: Store, signals: frozenset[str], shard: str | None) -> None:
    from agentsignals.ingest import pipeline

    pipeline.compute(store, signals, shard)


on_demand.compute = _compute
del _compute  # it is nobody's to call from here


def analyze(
    *sources: str | Path, store: str | Path | None = None, report: str | Path | None = None, **options: Any
) -> Store:
    """Read sources (none: the agents found here), measure, and open the store. `report` also writes a report.

    Options: jobs, force_format, engine, progress (see `agentsignals.ingest.pipeline.ingest_into`).
    """
    from agentsignals.ingest import pipeline
    from agentsignals.store import Store

    pipeline.analyze([str(s) for s in sources], store, **options)
    opened = Store(store)
    if report is not None:
        write_report(opened, report)
    return opened


def ingest(*sources: str | Path, store: str | Path | None = None, **options: Any) -> Store:
    """Read sources into the store and open it."""
    from agentsignals.ingest import pipeline
    from agentsignals.store import Store

    pipeline.ingest([str(s) for s in sources], store, **options)
    return Store(store)


def open_store(store: str | Path | None = None) -> Store:
    """Open the store in that folder. StoreError when there is none."""
    from agentsignals.store import Store

    return Store(store)


def inventory(text: str = "", context: str | None = None) -> list[dict[str, Any]]:
    """Return the catalogue of signals as plain rows.

    >>> [row["path"] for row in inventory("repetition")]
    ['dynamics.repetition_rate']
    """
    from agentsignals.signals import catalog

    return catalog.inventory(text, context)


def explain(store: Store, session: str, signal: str) -> Any:
    """Return a value with the events, lines and rule that made it.

    >>> explain(store, "3819e141", "user.user_turn_count").value
    2
    """
    from agentsignals.ingest import measure

    return measure.explain(store, session, signal)


def find(store: Store, context: str | None = None, bounds: Bounds | None = None) -> Findings:
    """Return the findings of a store, ranked: `find(store).answers`. `context`: `product` or `eval`.

    >>> [answer.id for answer in find(store).answers][1:]
    ['repeated-work.reread', 'data-quality.output']
    """
    from agentsignals.questions import findings

    return findings.findings(store, context, bounds)


def search(store: Store, text: str, **options: Any) -> Results:
    """Find sessions in which one prompt, reply, command, path or result holds these words, last active first.

    Options: kinds, among, order, limit, start, most_hits, progress (see `agentsignals.store.fulltext.search`).

    >>> [hit.kind for hit in search(store, "login bug kind:prompt").sessions[0].hits]
    ['prompt']
    """
    from agentsignals.store import fulltext

    return fulltext.search(store, text, **options)


def all_studies() -> list[dict[str, str]]:
    """Return the studies as plain rows: name, title, question, context.

    >>> next(row["question"] for row in all_studies() if row["name"] == "cost")
    'How many tokens were used, and what did they cost?'
    """
    from agentsignals.questions import studies as analysis

    named = (analysis.study(name) for name in analysis.studies())
    return [{"name": s.name, "title": s.title, "question": s.question, "context": s.context} for s in named]


def study(store: Store, name: str, context: str | None = None, labeller: str | None = None) -> Section:
    """Answer one question over all sessions: `findings` (each with n, interval, caveat), `tables`, `charts`, `limits`.

    `context`: `product` or `eval`; `labeller`: whose labels count. UsageError for a name that is none, and where the
    store holds nothing that the study is about.

    >>> section = study(store, "cost")
    >>> section.findings[0].title, section.findings[0].n
    ('Cost', 36)
    """
    from agentsignals.errors import UsageError
    from agentsignals.ui.document import document

    made = document(store, [name], context, labeller)
    if not made.sections:
        raise UsageError(f"The study {name!r} has no results for this store: {made.left_out[0].reason}")
    return made.sections[0]


_REASONS = 6


def compare(  # noqa: PLR0913  (the options of the verb)
    store: Store,
    by: Sequence[str] = (),
    *,
    baseline: str | None = None,
    outcome: str = "reward",
    treatments: Path | None = None,
    anyway: bool = False,
    where: str = "true",
    regression_weight: float = 1.0,
    only: Sequence[str] = (),
) -> Comparison:
    """Compare candidates of an eval, paired where tasks match.

    `by`: what makes a candidate (model, agent, a knob; none: treatments that differ); `outcome`: reward, resolved or a
    signal of attempts; `treatments`: a file that says who was tried; `where`: SQL over `sessions` and `attempts`;
    `regression_weight`: what a regression counts, a gain counting 1; `only`: candidates to compare with the baseline.
    Candidates with other tasks, data sets or limits are in `other_groups`, unless `anyway`. StoreError without
    attempts; UnlikeCandidates if no candidate is comparable with the baseline.
    """
    from agentsignals.errors import UnlikeCandidates
    from agentsignals.questions.compare import question
    from agentsignals.questions.compare.attempts import answer_over_attempts

    asked = question(
        outcome,
        by,
        baseline,
        where=where,
        regression_weight=regression_weight,
        only=only,
        anyway=anyway,
        treatments=treatments,
    )
    comparison: Comparison = answer_over_attempts(store, asked, treatments, where)
    if comparison.other_groups and not comparison.pairs:
        reasons = dict.fromkeys(reason for group in comparison.other_groups for reason in group.reasons)
        possible = next((f"`{group.command}` is possible. " for group in comparison.other_groups if group.command), "")
        raise UnlikeCandidates(
            f"No candidate can be compared with {comparison.baseline}: {'. '.join(list(reasons)[:_REASONS])}.",
            f"{possible}--where chooses attempts that are alike, --by names what is compared, --anyway compares all the"
            " same.",
        )
    return comparison


def drivers(  # noqa: PLR0913  (the options of the verb)
    store: Store,
    by: Sequence[str] = (),
    *,
    outcome: str = "reward",
    treatments: Path | None = None,
    within: Within | None = None,
    keep: Sequence[str] = (),
    false_discoveries: float = 0.05,
    models: bool = True,
    where: str = "true",
) -> Drivers:
    """Find signals associated with success within task and treatment: correlations, not causes (docs/drivers.md).

    `by`, `outcome`, `treatments`, `where`: as for `compare`; `within`: what the attempts of a pair share; `keep`:
    signals let in although they read the gold patch or nearly tell the outcome; `false_discoveries`: the share of wrong
    ones among those named; `models`: whether models are fitted, which takes the extra `drivers`. StoreError without
    attempts.
    """
    from agentsignals.questions.compare.attempts import answer_over_attempts
    from agentsignals.questions.drivers import question

    asked = question(
        outcome, by, where=where, within=within, keep=keep, false_discoveries=false_discoveries, fit=models
    )
    made: Drivers = answer_over_attempts(store, asked, treatments, where)
    return made


def write_report(store: Store, path: str | Path) -> Path:
    """Write the report of a store (.html, .md or .json) and return its path."""
    from pathlib import Path as _Path

    from agentsignals.ui import report as reporting

    return reporting.write(store, _Path(path))
