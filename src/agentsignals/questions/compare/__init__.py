"""Comparison of candidates: eval attempts grouped by treatment and compared with a baseline.

A pure function of rows, as every question. First attempts are compared; retries are reported separately, because only
failed attempts are retried, often under another limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from agentsignals.errors import UsageError
from agentsignals.questions.compare.attempts import (
    ALL,
    MEASURES,
    TIME,
    Attempt,
    OutcomeRule,
    also_differ,
    attempts_of,
    candidate_columns,
    candidates,
    confounded_columns,
    decoded,
    differing,
    evaluated,
    is_version,
    outcome_rule,
    pooled,
    queries,
    unrecorded,
    values_of,
)
from agentsignals.questions.compare.attempts import UNKNOWN_TREATMENTS as UNKNOWN
from agentsignals.questions.compare.attempts import candidate_named as treatments_named
from agentsignals.questions.compare.candidate import (
    Candidate,
    Estimate,
    UninformativeTasks,
    candidate_of,
    mismatches,
    task_key,
    tasks_of,
    uninformative_tasks,
)
from agentsignals.questions.compare.pairs import Conclusion, Pair, Unpaired, adjust_p_values, conclude, pair_of
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import safe_name
from agentsignals.signals.catalog import caption
from agentsignals.stats.intervals import FEWEST_CLUSTERS
from agentsignals.stats.validation import CAVEAT

# -- warnings ----------------------------------------------------------------------------------------------------------


MOST_MISSING = 0.05
"""If a larger share of first attempts has no outcome, a warning says that the rate leaves them out."""
_OF_AUDIT = ("verification.pass_audit", "verification.earned")
_LISTED, _LONGEST, _SENTENCES = 6, 80, 4


def warnings_of(  # noqa: PLR0913  (what a comparison is made of)
    rule: OutcomeRule,
    values: Sequence[Row],
    tried: Sequence[Attempt],
    by: Sequence[str],
    candidates: Sequence[Candidate],
    pairs: Sequence[Pair],
) -> list[str]:
    """Return warnings about a comparison, the most serious first."""
    first = [attempt for attempt in tried if attempt.index == 0]
    changing = differing(first)
    return [
        *([CAVEAT] if rule.signal in _OF_AUDIT else []),
        *_single(candidates, by, changing),
        *_confounded(first, by, changing),
        *_apart(pairs, {c for group in confounded_columns(first, changing) if set(group) & set(by) for c in group}),
        *_names(candidates),
        *_versions(first, by, changing),
        *_pooled(candidates),
        *_rule(rule, values, tried),
        *_clocks(candidates),
        *_missing(rule, candidates),
        *_odd_trials(tried, candidates),
    ]


def _single(candidates: Sequence[Candidate], by: Sequence[str], changing: Sequence[str]) -> list[str]:
    if len(candidates) != 1:
        return []
    other = [column for column in changing if column not in by]
    more = f" What differs between its attempts: {_list(other)}; name one with --by." if other else ""
    return [f"one candidate only, {candidates[0].name}: there is nothing to compare it with.{more}"]


def _confounded(first: Sequence[Attempt], by: Sequence[str], changing: Sequence[str]) -> list[str]:
    groups = [[c for c in group if c in by or not is_version(c)] for group in confounded_columns(first, changing)]
    confounded = [group for group in groups if set(group) & set(by) and len(group) > 1]
    return [f"{_list(g)} always change together: no difference can be laid to one of them." for g in confounded]


def _apart(pairs: Sequence[Pair], named_columns: Collection[str]) -> list[str]:
    """Treatments that two candidates never share, one sentence for all pairs with the same. `named_columns` are left
    out."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for comparison in pairs:
        columns = tuple(c for c in comparison.also_differ if c not in named_columns and not is_version(c))
        if columns:
            alike.setdefault(columns, []).append(comparison.candidate)
    ranked = sorted(alike.items(), key=lambda pair: -len(pair[1]))
    sentences = [
        f"{_list(names)} {'differs' if len(names) == 1 else 'differ'} from the baseline in {_list(columns)}, too."
        for columns, names in ranked[:_SENTENCES]
    ]
    left = sum(len(names) for _, names in ranked[_SENTENCES:])
    return (
        [*sentences, f"{left:,} more candidates differ from the baseline in other columns, too."] if left else sentences
    )


def _names(candidates: Sequence[Candidate]) -> list[str]:
    """Providers and routers put folders before a model's name."""
    alike: dict[str, list[str]] = {}
    for candidate in candidates:
        alike.setdefault(candidate.name.lower().rpartition("/")[2], []).append(candidate.name)
    return [
        f"{' and '.join(_cut(name) for name in names[:_LISTED])} end alike: one under several names? Then its tasks are"
        " split between them."
        for names in alike.values()
        if len(names) > 1
    ][:_SENTENCES]


def _versions(first: Sequence[Attempt], by: Sequence[str], changing: Sequence[str]) -> list[str]:
    differing_versions = []
    for column in changing:
        if is_version(column) and column not in by:
            values = sorted(v if v is not None else "not recorded" for v in values_of(first, column))
            differing_versions.append(f"{column} ({_list(values)})")
    if not differing_versions:
        return []
    return [
        f"attempts were run or judged by different versions: {'; '.join(differing_versions)}."
        " Rates may differ for that alone."
    ]


def _pooled(candidates: Sequence[Candidate]) -> list[str]:
    columns = Counter(c for candidate in candidates for c in candidate.pooled if not is_version(c))
    if not columns:
        return []
    pooled_columns = [f"{c} (in {n} of {len(candidates)})" for c, n in columns.most_common()]
    return [f"candidates hold attempts that differ in {_list(pooled_columns)}: --by tells those apart."]


def _rule(rule: OutcomeRule, values: Sequence[Row], tried: Sequence[Attempt]) -> list[str]:
    ids = {attempt.session_id for attempt in tried}
    values_of_rule = [
        decoded(row["value"])
        for row in values
        if row["signal"] == rule.signal and not row["absent"] and row["session_id"] in ids
    ]
    if rule.name == "reward":
        partial = sum(isinstance(value, int | float) and value not in (0, 1) for value in values_of_rule)
        return [f"{partial:,} rewards are neither 0 nor 1 and count as not solved; --outcome 'reward>=0.5' sets another"
                " bar."] if partial else []  # fmt: skip
    if rule.test == "=" and not any(attempt.outcome for attempt in tried):
        labels = Counter(str(value) for value in values_of_rule)
        labels_text = f"; what there is: {_list([name for name, _ in labels.most_common()])}" if labels else ""
        return [f"no attempt has {rule.name}{labels_text}."]
    return []


def _clocks(candidates: Sequence[Candidate]) -> list[str]:
    clocks = Counter(clock for candidate in candidates for clock in candidate.took[TIME].clocks)
    if len(clocks) < 2:
        return []
    counted = [f"{clock or 'not said'} (in {n} of {len(candidates)})" for clock, n in clocks.most_common()]
    return [f"wall times are of several clocks, and not alike: {_list(counted)}."]


def _missing(rule: OutcomeRule, candidates: Sequence[Candidate]) -> list[str]:
    candidates_missing = []
    for candidate in candidates:
        missing = sum(candidate.absent.values())
        tried = candidate.first.n + missing + sum(candidate.infrastructure.values())
        if missing > MOST_MISSING * tried:
            reason = next(iter(candidate.absent))
            candidates_missing.append(f"{candidate.name}: {missing:,} of {tried:,} ({_cut(reason)})")
    if not candidates_missing:
        return []
    return [
        f"first attempts without an outcome ({rule.name}) are left out of its rate: {_list(candidates_missing, '; ')}."
    ]


def _odd_trials(tried: Sequence[Attempt], candidates: Sequence[Candidate]) -> list[str]:
    sentences = []
    retries = sum(candidate.without_first for candidate in candidates)
    if retries:
        sentences.append(
            f"{retries:,} trials have no first attempt under the same candidate: only their retries count."
        )
    nowhere = sum(attempt.task is None for attempt in tried)
    if nowhere:
        sentences.append(f"{nowhere:,} of {len(tried):,} attempts record no task, and are matched with none.")
    return sentences


def _list(words: Iterable[str], between: str = ", ") -> str:
    items = [_cut(word) for word in words]
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return between.join(items[:_LISTED]) + more


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


__all__ = [
    "CALLED_BASELINE",
    "MEASURES",
    "Arms",
    "Candidate",
    "Comparison",
    "Conclusion",
    "Estimate",
    "OutcomeRule",
    "Pair",
    "UninformativeTasks",
    "Unpaired",
    "arms",
    "compare",
    "outcome_rule",
    "queries",
    "question",
]


class Comparison(Struct, frozen=True, kw_only=True):
    """The result of `compare`."""

    outcome: str
    signal: str
    validation: str
    """Measured precision of the outcome signal, if it claims a meaning."""
    yes_or_no: bool
    more_is_better: bool
    """True if a higher outcome is certainly better; else it is only called higher."""
    by: list[str]
    """Columns whose values make a candidate."""
    attempts: int
    baseline: str | None
    """None if there is nothing to compare."""
    candidates: list[Candidate]
    """Most attempts first."""
    pairs: list[Pair]
    """Every other candidate against the baseline."""
    regression_weight: float
    """Cost of a regression in gains."""
    conclusions: list[Conclusion]
    """One for each pair."""
    silent: UninformativeTasks
    """Tasks with the same outcome for every candidate."""
    unlike: list[str]
    """Reasons against comparing these candidates: other data sets, limits or tasks."""
    common_tasks: int | None
    """Number of tasks that all candidates tried. None if all tried the same tasks."""
    unrecorded: int
    """Attempts without a recorded candidate; they belong to none."""
    warnings: list[str]


class Arms(Struct, frozen=True, kw_only=True):
    """Attempts of a comparison by candidate, most attempts first."""

    everyone: list[Attempt]
    """All attempts, with unrecorded ones."""
    columns: list[str]
    """Columns whose values make a candidate."""
    groups: dict[str, list[Attempt]]
    first: dict[str, list[Attempt]]
    tasks: dict[str, frozenset[str]]
    """Tasks of first attempts by candidate."""

    @property
    def by_dataset(self) -> bool:
        """True if a task is identified by its data set too."""
        return "dataset" not in self.columns

    @property
    def common(self) -> frozenset[str] | None:
        """Tasks that all candidates tried. None if all tried the same tasks."""
        return _common(list(self.tasks.values()))

    def shared(self, name: str) -> list[Attempt]:
        """Return a candidate's first attempts at the common tasks, or all if there are none."""
        common = self.common
        return [o for o in self.first[name] if not common or task_key(o, self.by_dataset) in common]


def question(
    outcome: str = "reward",
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    where: str = ALL,
    regression_weight: float = 1.0,
) -> Question:
    """Return the question whose answer is a `Comparison`. `where`: the user's condition; the rest as for `compare`."""
    rule = outcome_rule(outcome)
    return Question(
        name="compare",
        question="Which candidate is better than the baseline?",
        queries=queries(rule, where),
        function=lambda inputs: compare(rule, inputs.rows, by, baseline, regression_weight=regression_weight),
        context="eval",
    )


def compare(
    rule: OutcomeRule,
    rows: Mapping[str, list[Row]],
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    regression_weight: float = 1.0,
) -> Comparison:
    """Compare the candidates in these rows. UsageError for an unknown column or candidate, or an invalid weight.

    `by`: columns and knobs (default: the treatments that differ). `baseline`: a candidate's name or a unique part of it
    (default: the one called so, else the one with most known outcomes). `regression_weight`: cost of a regression in
    gains.
    """
    if not LEAST_WEIGHT <= regression_weight <= MOST_WEIGHT:
        raise UsageError(
            f"A regression can't count {regression_weight:g} times.",
            f"A weight is a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}; 1 counts it as much as a gain.",
        )
    whole = arms(rule, rows, by, baseline)
    everyone, columns, groups, first = whole.everyone, whole.columns, whole.groups, whole.first
    by_dataset, tasks, common = whole.by_dataset, whole.tasks, whole.common
    tried = [attempt for attempts in groups.values() for attempt in attempts]
    changing = differing(tried)
    described_candidates = [
        candidate_of(
            name,
            attempts,
            by=columns,
            yes_or_no=rule.yes_or_no,
            by_dataset=by_dataset,
            pooled=pooled(attempts, columns, changing),
            common=common or None,
        )
        for name, attempts in groups.items()
    ]
    base = treatments_named(baseline, list(groups)) if baseline is not None else _usual(described_candidates)
    pairs = _pairs(whole, base, changing, yes_or_no=rule.yes_or_no, weight=regression_weight)
    return Comparison(
        outcome=rule.name,
        signal=rule.signal,
        validation=caption(rule.signal, (rule.value,)),
        yes_or_no=rule.yes_or_no,
        more_is_better=rule.more_is_better,
        by=columns,
        attempts=len(everyone),
        baseline=base,
        candidates=described_candidates,
        pairs=pairs,
        regression_weight=regression_weight,
        conclusions=[conclude(each, yes_or_no=rule.yes_or_no, good=rule.more_is_better) for each in pairs],
        silent=uninformative_tasks(whole.first, by_dataset, yes_or_no=rule.yes_or_no),
        unlike=mismatches(first, base, by, tasks, changing),
        common_tasks=len(common) if common is not None else None,
        unrecorded=len(everyone) - len(tried),
        warnings=warnings_of(rule, rows["values"], tried, columns, described_candidates, pairs),
    )


def _pairs(whole: Arms, base: str | None, changing: Sequence[str], *, yes_or_no: bool, weight: float) -> list[Pair]:
    """Compare every candidate with `base`. Those with enough common tasks for a test share the significance level."""
    if base is None:
        return []
    tasks = {
        name: tasks_of((attempt for attempt in attempts if attempt.outcome is not None), whole.by_dataset)
        for name, attempts in whole.first.items()
    }
    tests = sum(name != base and len(each & tasks[base]) >= FEWEST_CLUSTERS for name, each in tasks.items())
    return adjust_p_values(
        [
            pair_of(
                name,
                base,
                attempts,
                whole.first[base],
                yes_or_no=yes_or_no,
                by_dataset=whole.by_dataset,
                also_differ=also_differ(attempts, whole.first[base], whole.columns, changing),
                weight=weight,
                tests=max(1, tests),
            )
            for name, attempts in whole.first.items()
            if name != base
        ]
    )


def arms(rule: OutcomeRule, rows: Mapping[str, list[Row]], by: Sequence[str] = (), baseline: str | None = None) -> Arms:
    """Group the attempts by candidate, as `compare` does."""
    everyone = attempts_of(rule, rows)
    columns = candidate_columns(everyone, by)
    recorded = _recorded(everyone, columns, baseline)
    groups = {name: evaluated(attempts) for name, attempts in candidates(recorded, columns).items()}
    first = {name: [attempt for attempt in attempts if attempt.index == 0] for name, attempts in groups.items()}
    tasks = {name: tasks_of(attempts, "dataset" not in columns) for name, attempts in first.items()}
    return Arms(everyone=everyone, columns=columns, groups=groups, first=first, tasks=tasks)


def _recorded(tried: list[Attempt], columns: Sequence[str], baseline: str | None) -> list[Attempt]:
    """Attempts with a recorded candidate, or all if the unrecorded ones are the baseline."""
    if baseline == UNKNOWN:
        return tried
    recorded = [attempt for attempt in tried if not unrecorded(attempt, columns)]
    if tried and not recorded:
        raise UsageError(
            f"No attempt records its {' or '.join(columns)}: who was tried is not known.",
            "--by compares by another column; --treatments FILE says it of folders.",
        )
    return recorded


def _common(tasks: Sequence[frozenset[str]]) -> frozenset[str] | None:
    shared = frozenset.intersection(*tasks) if tasks else frozenset()
    return shared if any(each != shared for each in tasks) else None


LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
"""Bounds of the regression weight."""
CALLED_BASELINE = frozenset({"baseline", "control", "plain"})
"""Names by which a run marks its baseline."""


def _usual(candidates: Sequence[Candidate]) -> str | None:
    """Default baseline: the candidate called so, else the one with most known outcomes."""
    called = [candidate.name for candidate in candidates if candidate.name.lower() in CALLED_BASELINE]
    if called:
        return called[0]
    return max(candidates, key=lambda entry: entry.all_tasks.n).name if candidates else None


RULE = outcome_rule("resolved")
QUERIES = queries(RULE)
OF_ATTEMPTS = (
    "SELECT session_id, task_id, attempt_index, model_id, agent_type, outcome, reward, exit_status FROM attempts"
)


def eval_comparison(inputs: Inputs) -> Comparison | None:
    """Compare the candidates of the store's eval runs. None without attempts, or without recorded candidates."""
    if not inputs.rows["attempts"]:
        return None
    try:
        return compare(RULE, inputs.rows)
    except UsageError:  # of what the attempts don't record
        return None


def named(candidate: str) -> str:
    """Return a candidate's name for a sentence."""
    return safe_name(candidate, 80)
