"""Drivers: signals associated with success within task and treatment. Correlations, never causes.

A pure function of rows, with the outcomes and treatments of `compare`. The core is conditional: solved against failed
attempts at the same task. Models that predict outcomes at unseen tasks are a second opinion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import UsageError, install_command
from agentsignals.questions import compare
from agentsignals.questions.compare.attempts import (
    ALL,
    OutcomeRule,
    differing,
    is_version,
    outcome_rule,
    pooled,
)
from agentsignals.questions.compare.attempts import queries as attempt_queries
from agentsignals.questions.drivers.predictors import (
    FEWEST,
    Contrast,
    Excluded,
    Models,
    NearCopy,
    VerifiedAttempt,
    Within,
    centred,
    contrast,
    correlated,
    eligible,
    enough_for_near_copies,
    fit_models,
    mixed_tasks,
    near_copy_of,
    predictors,
    signals_query,
    sklearn_available,
    too_few,
)
from agentsignals.questions.question import Question, Row, interval, times
from agentsignals.signals.catalog import by_path
from agentsignals.stats.intervals import FEWEST_CLUSTERS
from agentsignals.stats.paired import benjamini_hochberg

FALSE_DISCOVERIES = 0.05
"""Default false discovery rate among named signals."""
MOVES_TOGETHER = 0.7
"""From this absolute rank correlation within strata on, data cannot distinguish two signals
(design/statistics.md#drivers)."""
_EMPTY_PATCH = "no_artifact"
_STOPS = ("time", "budget")
_LISTED = 5
_NO_SKLEARN = (
    f"scikit-learn is not installed ({install_command('drivers')}). It adds cross-validated predictions, permutation"
    " importance and calibration"
)


class Drivers(Struct, frozen=True, kw_only=True):
    """The result of `drivers`."""

    outcome: str
    by: list[str]
    """Columns whose values make a treatment."""
    within: Within
    """Task and treatment, or the task only, shared by the attempts of a pair."""
    attempts: int
    """First attempts with a verifier's outcome."""
    solved: int
    treatments: int
    tasks: int
    mixed: dict[Within, int]
    """Tasks both solved and failed: under one treatment; at all. Only these are informative."""
    answer: list[str]
    """The result in sentences."""
    false_discoveries: float
    contrasts: list[Contrast]
    """Smallest p value first."""
    near_copies: list[NearCopy]
    """Signals set aside because they nearly determine the outcome."""
    excluded: list[Excluded]
    left_out: dict[str, int]
    """Attempts by reason."""
    models: Models | None
    without_models: str
    """Reason why no models were fitted, and the remedy."""
    warnings: list[str]

    @property
    def named(self) -> list[Contrast]:
        """Signals associated with the outcome at the chosen false discovery rate."""
        return [c for c in self.contrasts if c.q is not None and c.q <= self.false_discoveries]


def question(  # noqa: PLR0913  (the options of the verb)
    outcome: str = "reward",
    by: Sequence[str] = (),
    *,
    where: str = ALL,
    within: Within | None = None,
    keep: Collection[str] = (),
    false_discoveries: float = FALSE_DISCOVERIES,
    fit: bool = True,
) -> Question:
    """Return the question whose answer is `Drivers`. `where`: the user's condition; the rest as for `drivers`."""
    rule = outcome_rule(outcome)
    return Question(
        name="drivers",
        question="Which signals are associated with success?",
        queries=queries(rule, where, keep),
        function=lambda inputs: drivers(
            rule, inputs.rows, by, within=within, keep=keep, false_discoveries=false_discoveries, fit=fit
        ),
        context="eval",
    )


def queries(rule: OutcomeRule, where: str = ALL, keep: Collection[str] = ()) -> dict[str, str]:
    chosen = (
        "SELECT session_id FROM sessions JOIN (SELECT * EXCLUDE (trial_id, attempt_index) FROM attempts)"
        f" USING (session_id) WHERE ({where})"
    )
    return {
        **attempt_queries(rule, where),
        "signals": signals_query(eligible(rule.signal, keep)[0], chosen),
        "prompts": "SELECT session_id, min_by(n_chars, seq) AS n_chars FROM events"
        f" WHERE kind = 'human_turn' AND session_id IN ({chosen}) GROUP BY session_id",
    }


def drivers(  # noqa: PLR0913  (the options of the verb)
    rule: OutcomeRule,
    rows: Mapping[str, list[Row]],
    by: Sequence[str] = (),
    *,
    within: Within | None = None,
    keep: Collection[str] = (),
    false_discoveries: float = FALSE_DISCOVERIES,
    fit: bool = True,
) -> Drivers:
    """Find the signals associated with the outcome. UsageError if the outcome is a number.

    `by`: what makes a treatment, as in `compare`. `within`: what attempts of a pair share (default: task and treatment
    if six tasks are mixed under one, else the task). `keep`: signals let in although they read the gold patch or nearly
    determine the outcome. `fit`: fit models where possible.
    """
    if not rule.yes_or_no:
        raise UsageError(
            f"{rule.name} is a number; drivers need a yes-or-no outcome.",
            f"Give a limit, such as --outcome '{rule.name}>=0.5'.",
        )
    paths, excluded = eligible(rule.signal, keep)
    arms = compare.arms(rule, rows, by)
    attempts, left_out = _judged(arms)
    mixed: dict[Within, int] = {kind: mixed_tasks(attempts, kind) for kind in ("treatment", "task")}
    chosen: Within = within or ("treatment" if mixed["treatment"] >= FEWEST_CLUSTERS or mixed["task"] == 0 else "task")
    asked, same = predictors(paths, rows["signals"], [a.session_id for a in attempts])
    kept = {by_path(name).path for name in keep}
    near_copies = (near_copy_of(p.signal, attempts, p.values) for p in asked if p.signal not in kept)
    copies = [copy for copy in near_copies if copy is not None]
    aside = {c.signal for c in copies}
    asked = [p for p in asked if p.signal not in aside]
    near = correlated({p.signal: centred(attempts, p.values, chosen) for p in asked}, MOVES_TOGETHER)
    contrasts = [
        replace(contrast(p.signal, attempts, p.values, chosen), same_as=p.same_as, moves_with=near[p.signal])
        for p in asked
    ]
    tested = [c for c in contrasts if c.p is not None]
    q = dict(zip([c.signal for c in tested], benjamini_hochberg([c.p or 0.0 for c in tested]), strict=True))
    contrasts = [replace(c, q=q.get(c.signal)) for c in contrasts]
    contrasts.sort(key=lambda c: (c.p if c.p is not None else 2, -abs((c.superiority or 0.5) - 0.5), c.signal))
    prompts = {row["session_id"]: row["n_chars"] for row in rows["prompts"] if row["n_chars"] is not None}
    groups = _together(near) if mixed[chosen] >= FEWEST_CLUSTERS else []
    without = "" if fit else "not requested"
    without = without or too_few(attempts) or ("" if sklearn_available() else _NO_SKLEARN)
    warnings = [
        "correlation, not cause: a signal of the whole attempt may be a result of failing (longer runs, more retries)"
    ]
    if chosen == "task":
        warnings.append(
            "pairs share a task but not a candidate. Candidates' means are subtracted; their effects at single tasks"
            " are not"
        )
    tried = [attempt for group in arms.first.values() for attempt in group]
    changing = differing(tried)
    inside = {c for group in arms.groups.values() for c in pooled(group, arms.columns, changing)}
    hidden = sorted(c for c in inside if not is_version(c) and c != "effective_tool_cap")
    if hidden and chosen == "treatment":
        listed = ", ".join(hidden[:_LISTED]) + (" …" if len(hidden) > _LISTED else "")
        warnings.append(f"attempts of one candidate differ in {listed}. Use --by to separate them")
    if not enough_for_near_copies(attempts):
        warnings.append(f"fewer than {FEWEST} solved or failed attempts, so copies of the outcome cannot be detected")
    reasons = Counter(t.reason for ts in arms.first.values() for t in ts if t.outcome == 0 and t.reason in _STOPS)
    if reasons:
        words = ", ".join(f"{n:,} by {reason}" for reason, n in reasons.most_common())
        warnings.append(f"attempts that ended at a limit ({words}) have higher work counts because of the limit")
    result = Drivers(
        outcome=rule.name,
        by=arms.columns,
        within=chosen,
        attempts=len(attempts),
        solved=sum(a.solved for a in attempts),
        treatments=len({a.treatment for a in attempts}),
        tasks=len({a.task for a in attempts}),
        mixed=mixed,
        answer=[],
        false_discoveries=false_discoveries,
        contrasts=contrasts,
        near_copies=copies,
        excluded=[*excluded, *same],
        left_out=dict(left_out.most_common()),
        models=None if without else fit_models(attempts, asked, prompts, groups, chosen),
        without_models=without,
        warnings=warnings,
    )
    return replace(result, answer=_answer(result))


def _judged(arms: compare.Arms) -> tuple[list[VerifiedAttempt], Counter[str]]:
    """First attempts judged by a verifier, and the others counted by reason. Only a missing patch, which no solved
    attempt has, depends on the outcome."""
    left_out: Counter[str] = Counter()
    judged: list[VerifiedAttempt] = []
    grouped = {a.session_id: (name, a) for name, attempts in arms.groups.items() for a in attempts}
    for tried in arms.everyone:
        name, attempt = grouped.get(tried.session_id, ("", tried))
        reasons = {
            "no candidate recorded": tried.session_id not in grouped,
            "retries, which depend on the first verdict": bool(attempt.index),
            "no task recorded": attempt.task is None,
            f"no outcome: {attempt.why}": attempt.outcome is None,
            "no verifier verdict, failed by definition": attempt.inferred,
            "empty patch, failed by definition": attempt.reason == _EMPTY_PATCH,
        }
        if because := next((reason for reason, holds in reasons.items() if holds), ""):
            left_out[because] += 1
            continue
        solved = bool(attempt.outcome)
        judged.append(
            VerifiedAttempt(session_id=attempt.session_id, task=attempt.task_key, treatment=name, solved=solved)
        )
    return judged, left_out


def _together(near: Mapping[str, Mapping[str, float]]) -> list[tuple[str, ...]]:
    """Connected groups of signals that move together, by name."""
    groups: list[tuple[str, ...]] = []
    placed: set[str] = set()
    for name in near:
        if name not in placed:
            group, todo = {name}, [name]
            while todo:
                fresh = near[todo.pop()].keys() - group
                group |= fresh
                todo += fresh
            groups.append(tuple(sorted(group)))
            placed |= group
    return groups


def _answer(made: Drivers) -> list[str]:
    """State in sentences which signals go with success, or why that cannot be told."""
    shares = "one task and candidate" if made.within == "treatment" else "one task, candidates' means subtracted"
    mixed, models_say = made.mixed[made.within], _of_models(made.models)
    if mixed < FEWEST_CLUSTERS:
        return [
            f"Too few mixed tasks to find predictors of success: {made.mixed['task']:,} of {times(made.tasks, 'task')}"
            f" were both solved and failed, {made.mixed['treatment']:,} of them for one candidate. At least"
            f" {FEWEST_CLUSTERS} are needed; about 30 detect a strong link (three pairs in four).",
            *models_say,
        ]
    lines = []
    for entry in made.named:
        ends = interval(entry.low, entry.high, shown=" ({})")
        also = f" (correlated with {', '.join(entry.moves_with)})" if entry.moves_with else ""
        lines.append(
            f"{entry.signal} is associated with {entry.goes_with}. The solved attempt had more of it in"
            f" {entry.superiority:.0%} of pairs ({shares}){ends}, {entry.tasks:,} tasks, q {entry.q:.2g}{also}."
        )
    tested = [c for c in made.contrasts if c.p is not None]
    if not lines and not tested:
        lines = ["Undecided: no signal has values at six such tasks."]
    elif not lines:
        widths = [(c.high - c.low) / 2 for c in tested if c.low is not None and c.high is not None]
        unseen = f"; median interval half-width ±{median(widths):.0%}" if widths else ""
        lines = [
            f"None of {len(tested):,} signals is associated with success: correlations within"
            f" {mixed:,} tasks, false discovery rate {made.false_discoveries:g}{unseen}."
        ]
    return [*lines, *models_say]


def _of_models(made: Models | None) -> list[str]:
    if made is None:
        return []
    added, baseline, inside = made.judged, made.best_baseline, made.jointly
    ends = interval(added.low, added.high, "{:+.3f}", " ({})")
    if not made.adds:
        return [
            "Signals do not beat the baselines. The cross-validated Brier score on unseen tasks is"
            f" {added.brier:.3f} with all signals and {(added.gain or 0) + added.brier:.3f} with the best baseline,"
            f" {baseline}: no significant gain{ends}."
        ]
    first = (
        "Signals predict outcomes on unseen tasks better than the best baseline,"
        f" {baseline}: the cross-validated Brier score is {added.brier:.3f}, lower by {added.gain:.3f}{ends}"
    )
    if inside is None or inside.low is None or inside.high is None or inside.low <= 0:
        return [
            f"{first}. Differences within a task are not significant, so signals may only reflect how hard the task is."
        ]
    return [
        f"{first}. Permuting signals within tasks raises it by {inside.value:.3f}"
        f" ({inside.low:+.3f} to {inside.high:+.3f}), so it is not only the task. Signals cover the"
        " whole attempt, so this is a correlation."
    ]
