"""Comparison of candidates: eval attempts grouped by treatment and compared with a baseline.

A pure function of rows, as every question. First attempts are compared; retries are reported separately, because only
failed attempts are retried, often under another limit. Candidates that share tasks, data set and limits are a group.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import UsageError
from agentsignals.questions.compare.attempts import (
    ALL,
    CAMEL,
    NOT_RECORDED,
    RECORDED_MODEL,
    SHORT_NAMES,
    TIME,
    Attempt,
    OutcomeRule,
    also_differ,
    attempts_of,
    candidate_columns,
    candidate_named,
    candidates,
    confounded_columns,
    decoded,
    differing,
    evaluated,
    is_nuisance,
    is_version,
    outcome_rule,
    pooled,
    proposed,
    queries,
    unrecorded,
    values_of,
)
from agentsignals.questions.compare.candidate import (
    Candidate,
    UninformativeTasks,
    candidate_of,
    tasks_of,
    uninformative_tasks,
)
from agentsignals.questions.compare.pairs import Conclusion, Pair, adjust_p_values, conclude, pair_of
from agentsignals.questions.question import Inputs, Question, Row, cut, times
from agentsignals.questions.ranking import ResolvedCandidate, ResolvedGroup, safe_name
from agentsignals.signals.catalog import caption
from agentsignals.stats.intervals import FEWEST_CLUSTERS
from agentsignals.stats.validation import CAVEAT

LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
"""Bounds of the regression weight."""
CALLED_BASELINE = frozenset({"baseline", "control", "plain"})
"""Names by which a run marks its baseline."""


class OtherGroup(Struct, frozen=True, kw_only=True):
    """Candidates that are comparable with each other, and not with the baseline."""

    candidates: list[str]
    """Most attempts first."""
    attempts: int
    tasks: int
    shares_tasks: bool
    """True if one of them tried a task of the baseline."""
    reasons: list[str]
    """Reasons against a comparison with the baseline."""
    command: str
    """The command that compares them with each other; of one candidate, with the baseline all the same; empty where
    they share no task with it."""


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
    """Those of `candidates`, and unrecorded ones."""
    baseline: str | None
    """None if there is nothing to compare."""
    candidates: list[Candidate]
    """Those comparable with the baseline, most attempts first."""
    datasets: list[str]
    """Data sets of their tasks."""
    other_groups: list[OtherGroup]
    """Candidates with other tasks, data sets or limits."""
    pairs: list[Pair]
    """Every other candidate against the baseline."""
    regression_weight: float
    """Cost of a regression in gains."""
    conclusions: list[Conclusion]
    """One for each pair."""
    silent: UninformativeTasks
    """Tasks with the same outcome for every candidate."""
    unlike: list[str]
    """Reasons against comparing these candidates, where they are compared anyway."""
    common_tasks: int | None
    """Number of tasks that the rates are of. None if all candidates tried the same tasks."""
    unrecorded: int
    """Attempts without a recorded candidate; they belong to none."""
    proposed_treatments: str = ""
    """A value of `--treatments` that reads who was tried out of folders' names; empty if they show nobody."""
    warnings: list[str]


class Arms(Struct, frozen=True, kw_only=True):
    """Attempts of a comparison by candidate, most attempts first."""

    everyone: list[Attempt]
    """All attempts, with unrecorded ones."""
    proposed: str
    """As `Comparison.proposed_treatments`."""
    columns: list[str]
    """Columns whose values make a candidate."""
    groups: dict[str, list[Attempt]]
    first: dict[str, list[Attempt]]
    tasks: dict[str, frozenset[str]]
    """Tasks of first attempts by candidate."""
    baseline: str | None = None
    common: frozenset[str] | None = None
    """Tasks of the rates. None if all candidates tried the same tasks."""
    other_groups: list[OtherGroup] = []

    def shared(self, name: str) -> list[Attempt]:
        """Return a candidate's first attempts at the common tasks, or all if there are none."""
        return [o for o in self.first[name] if not self.common or o.task_key in self.common]


def question(  # noqa: PLR0913  (the options of the verb)
    outcome: str = "reward",
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    where: str = ALL,
    regression_weight: float = 1.0,
    only: Sequence[str] = (),
    anyway: bool = False,
    treatments: Path | None = None,
) -> Question:
    """Return the question whose answer is a `Comparison`. `where`: the user's condition; `treatments`: the user's file,
    for commands that are shown; the rest as for `compare`."""
    rule = outcome_rule(outcome)
    options = ["--where", where] if where != ALL else []
    options += ["--treatments", str(treatments)] if treatments else []
    return Question(
        name="compare",
        question="Which candidate is better than the baseline?",
        queries=queries(rule, where),
        function=lambda inputs: compare(
            rule,
            inputs.rows,
            by,
            baseline,
            regression_weight=regression_weight,
            only=only,
            anyway=anyway,
            options=options,
        ),
        context="eval",
    )


def compare(  # noqa: PLR0913  (the options of the verb)
    rule: OutcomeRule,
    rows: Mapping[str, list[Row]],
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    regression_weight: float = 1.0,
    only: Sequence[str] = (),
    anyway: bool = False,
    options: Sequence[str] = (),
) -> Comparison:
    """Compare the candidates in these rows. UsageError for an unknown column or candidate, or an invalid weight.

    `by`: columns and knobs (default: the treatments that differ). `baseline`: a candidate's name or a unique part of it
    (default: the one called so, else of the largest group the one with most known outcomes). `regression_weight`: cost
    of a regression in gains. `only`: names of candidates to compare with the baseline. `anyway`: all in one group,
    whatever their tasks and limits. `options`: of the command line, for commands that are shown.
    """
    if not LEAST_WEIGHT <= regression_weight <= MOST_WEIGHT:
        raise UsageError(
            f"The regression weight {regression_weight:g} is out of range.",
            f"Use a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}. With 1 a regression counts as much as an"
            " improvement.",
        )
    given = [*(("--by", *by) if by else ()), *(("--outcome", rule.name) if rule.name != "reward" else ()), *options]
    everything = arms(rule, rows, by, baseline)
    whole = comparable(everything, by, baseline, only=only, anyway=anyway, options=given)
    base = whole.baseline
    tried = [attempt for attempts in whole.groups.values() for attempt in attempts]
    changing = differing(tried)
    every_task = frozenset[str]().union(*whole.tasks.values())
    described = [
        candidate_of(
            name,
            attempts,
            by=whole.columns,
            yes_or_no=rule.yes_or_no,
            pooled=pooled(attempts, whole.columns, changing),
            common=whole.common or None,
            missing_tasks=len(every_task - whole.tasks[name]),
        )
        for name, attempts in whole.groups.items()
    ]
    pairs: list[Pair] = []
    if base is not None:
        # Those with enough common tasks for a test share the significance level.
        known = {n: tasks_of(o for o in attempts if o.outcome is not None) for n, attempts in whole.first.items()}
        tests = sum(name != base and len(tasks & known[base]) >= FEWEST_CLUSTERS for name, tasks in known.items())
        for name, attempts in whole.first.items():
            if name != base:
                of_base = whole.first[base]
                pair = pair_of(
                    name,
                    base,
                    attempts,
                    of_base,
                    yes_or_no=rule.yes_or_no,
                    also_differ=also_differ(attempts, of_base, whole.columns, changing),
                    weight=regression_weight,
                    tests=max(1, tests),
                )
                pairs.append(pair)
    pairs = adjust_p_values(pairs)
    nobody = len(whole.everyone) - sum(map(len, everything.groups.values()))
    return Comparison(
        outcome=rule.name,
        signal=rule.signal,
        validation=caption(rule.signal, (rule.value,)),
        yes_or_no=rule.yes_or_no,
        more_is_better=rule.more_is_better,
        by=whole.columns,
        attempts=len(tried) + nobody,
        baseline=base,
        candidates=described,
        datasets=sorted({o.dataset for o in tried if o.dataset}),
        other_groups=whole.other_groups,
        pairs=pairs,
        regression_weight=regression_weight,
        conclusions=[conclude(each, yes_or_no=rule.yes_or_no, good=rule.more_is_better) for each in pairs],
        silent=uninformative_tasks(whole.first, yes_or_no=rule.yes_or_no),
        unlike=[*_mismatches(whole.first, base, by, changing), *_other_tasks(whole.tasks, base)] if anyway else [],
        common_tasks=len(whole.common) if whole.common is not None else None,
        unrecorded=nobody,
        proposed_treatments=whole.proposed,
        warnings=_warnings(rule, rows["values"], tried, whole.columns, described, pairs),
    )


# -- candidates and their groups ---------------------------------------------------------------------------------------


def arms(rule: OutcomeRule, rows: Mapping[str, list[Row]], by: Sequence[str] = (), baseline: str | None = None) -> Arms:
    """Group the attempts by candidate, as `compare` does."""
    everyone = attempts_of(rule, rows)
    proposal = proposed(rows["attempts"])
    folders = f"Their folder names may contain it: {treatments_option(proposal)}. " if proposal else ""
    try:
        columns = candidate_columns(everyone, by)
    except UsageError as problem:
        raise UsageError(problem.message, f"{folders}{problem.hint}") from problem
    recorded = everyone
    if baseline != NOT_RECORDED:
        recorded = [attempt for attempt in everyone if not unrecorded(attempt, columns)]
        if everyone and not recorded:
            raise UsageError(
                f"No attempt records its {' or '.join(columns)}, so the candidates are unknown.",
                f"{folders}Use --by to compare by another column, or --treatments FILE to assign it by folder.",
            )
    if "dataset" in columns:  # then the data set is no part of a task
        recorded = [replace(o, task_key=f"\n{o.task}") if o.task is not None else o for o in recorded]
    groups = {name: evaluated(attempts) for name, attempts in candidates(recorded, columns).items()}
    first = {name: [attempt for attempt in attempts if attempt.index == 0] for name, attempts in groups.items()}
    tasks = {name: tasks_of(attempts) for name, attempts in first.items()}
    return Arms(everyone=everyone, proposed=proposal, columns=columns, groups=groups, first=first, tasks=tasks)


def comparable(  # noqa: PLR0913  (the options of the verb)
    whole: Arms,
    by: Sequence[str] = (),
    baseline: str | None = None,
    *,
    only: Sequence[str] = (),
    anyway: bool = False,
    options: Sequence[str] = (),
) -> Arms:
    """Return the candidates that are comparable with the baseline; the others are groups by name. As for `compare`."""
    names = list(whole.groups)
    base = None if baseline is None else candidate_named(baseline, whole.groups)
    if only:
        chosen = {base, *(candidate_named(name, whole.groups) for name in only)}
        names = [name for name in names if name in chosen]
    known = {name: sum(o.outcome is not None for o in whole.first[name]) for name in names}
    named_first = [base] if base is not None else [name for name in names if name.lower() in CALLED_BASELINE][:1]
    order = [*named_first, *sorted((n for n in names if n not in named_first), key=lambda n: -known[n])]
    if not order:
        return whole
    changing = differing([o for name in names for o in whole.groups[name]])

    def reasons_against(seed: str, name: str) -> list[str]:
        return _mismatches({n: whole.first[n] for n in (seed, name)}, seed, by, changing)

    def share_enough(seed: str, name: str) -> bool:
        """True if they share tasks enough for a test, or half of the fewer; or neither records any."""
        tasks, others = whole.tasks[seed], whole.tasks[name]
        shared = len(tasks & others)
        return shared >= FEWEST_CLUSTERS or 2 * shared >= max(1, min(len(tasks), len(others))) or not (tasks or others)

    groups = [order] if anyway else []
    left = [] if anyway else order
    while left:  # the first of each group is comparable with all others of its group
        seed, *rest = left
        alike = [name for name in rest if share_enough(seed, name) and not reasons_against(seed, name)]
        groups.append([seed, *alike])
        left = [name for name in rest if name not in alike]
    main = groups[0] if named_first else max(groups, key=lambda each: (len(each) > 1, sum(known[n] for n in each)))
    base, kept, others = main[0], [name for name in names if name in main], []
    for group in groups:
        if group is main:
            continue
        seed, tasks = group[0], {name: whole.tasks[name] for name in group}
        # Where no task is shared, no setting matters but the data set, and nothing would be compared.
        shares = bool(whole.tasks[base] & tasks[seed])
        reasons = [reason for reason in reasons_against(base, seed) if shares or reason.startswith("dataset ")]
        reasons = reasons or _other_tasks({name: whole.tasks[name] for name in (base, seed)}, base)
        words = ["--baseline", seed] if len(group) > 1 else ["--baseline", base, "--only", seed, "--anyway"]
        other = OtherGroup(
            candidates=[name for name in whole.groups if name in group],
            attempts=sum(len(whole.groups[name]) for name in group),
            tasks=len(frozenset[str]().union(*tasks.values())),
            shares_tasks=any(each & whole.tasks[base] for each in tasks.values()),
            reasons=reasons,
            command=f"agentsignals evals compare {shlex.join([*options, *words])}" if shares or len(group) > 1 else "",
        )
        others.append(other)
    return replace(
        whole,
        groups={name: whole.groups[name] for name in kept},
        first={name: whole.first[name] for name in kept},
        tasks={name: whole.tasks[name] for name in kept},
        baseline=base,
        common=_common_tasks({n: whole.tasks[n] for n in (base, *kept)}, of_all=anyway),
        other_groups=sorted(others, key=lambda each: -each.attempts),
    )


def _common_tasks(tasks: Mapping[str, frozenset[str]], *, of_all: bool) -> frozenset[str] | None:
    """Return the tasks for the rates of a group, whose first candidate is the baseline; None if all tried the same.

    `of_all`: those that all tried. Else candidates with few of the tasks do not reduce them for the others: candidates
    times tasks is largest.
    """
    (_, whole), *rest = tasks.items()
    if all(each == whole for _, each in rest):
        return None
    if of_all:
        return frozenset.intersection(*tasks.values())
    left, taken, best = dict(rest), whole, (0, whole)
    for n in range(2, len(tasks) + 1):
        nearest = max(left, key=lambda name: (len(left[name] & taken), name))
        taken &= left.pop(nearest)
        best = max(best, (n * len(taken), taken), key=lambda each: each[0])
    return best[1] if best[0] else frozenset()


_GUARDED = re.compile(
    r"(?:^|[_.])(?:dataset|split|subset|caps?|limits?|budget|timeout|retry|retries|max|maximum|effort|tools|mcp_servers)"
    r"(?:$|[_.])|reasoning_tokens$|^task_version$"
)
"""Names of columns that define tasks, limits, effort or tools of an attempt."""
_NO_LIMIT = re.compile(r"samples|tasks")
"""Names about the number of attempts, which limits none of them."""
_TIME, _FACTOR = "timeout_s", "multiplier"
_NAMED = 3


def _mismatches(
    first: Mapping[str, Sequence[Attempt]], base: str | None, asked: Collection[str], changing: Sequence[str]
) -> list[str]:
    """Return reasons against a comparison with `base`, one for each limit or data set that differs.

    `first`: first attempts by candidate. `asked`: columns that the user compares, which are the treatment.
    """
    if base is None:
        return []
    wanted = {SHORT_NAMES.get(name, name) for name in asked}
    columns = []
    for column in changing:
        name = CAMEL.sub("_", column).lower()
        is_limit = _GUARDED.search(name) and not _NO_LIMIT.search(name) and not is_nuisance(column)
        if is_limit and name != "effective_tool_cap" and column not in wanted:
            columns.append(column)
    if _TIME in wanted or all(_TIME in a.treatment for attempts in first.values() for a in attempts):
        columns = [c for c in columns if _FACTOR not in c]  # the limit contains it

    def differ(name: str, column: str) -> bool:
        """True if the two had other values at a common task, or at all if they share none; unrecorded ones never."""
        mine, its = (_values_by_task(first[side], column) for side in (name, base))
        both = mine.keys() & its.keys()
        if both and column != "dataset":
            return any(mine[task] != its[task] for task in both)
        values, others = (set().union(*side.values()) for side in (mine, its))
        return bool(values and others) and values != others

    def shown(name: str, column: str) -> str:
        values = sorted({a.treatment[column][:80] for a in first[name] if column in a.treatment})
        return f"{name} {' / '.join(values[:_NAMED])}{' / …' if len(values) > _NAMED else ''}"

    reasons = []
    for column in columns:
        others = [name for name in first if name != base and differ(name, column)]
        if others:
            compared = [shown(name, column) for name in (base, *others[:_NAMED])]
            reasons.append(f"{column} differs: {'; '.join(compared)}{_more(others)}")
    return reasons


def _values_by_task(attempts: Sequence[Attempt], column: str) -> dict[str, set[str]]:
    by_task: dict[str, set[str]] = {}
    for attempt in attempts:
        if (value := attempt.treatment.get(column)) is not None:
            by_task.setdefault(attempt.task or attempt.session_id, set()).add(value)
    return by_task


def _other_tasks(tasks: Mapping[str, frozenset[str]], base: str | None) -> list[str]:
    """Return the reason against a comparison with `base` that other tasks were tried, if they were."""
    others = [name for name, each in tasks.items() if base is not None and each != tasks[base]]
    if base is None or not others:
        return []
    compared = [
        f"{name} has {len(tasks[name]):,}, {base} has {len(tasks[base]):,}, {len(shared):,} shared"
        if (shared := tasks[name] & tasks[base])
        else f"none in common with {base}"
        for name in others[:_NAMED]
    ]
    return [f"tasks differ: {'; '.join(compared)}{_more(others)}"]


def _more(others: Sequence[str]) -> str:
    return f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""


# -- warnings ----------------------------------------------------------------------------------------------------------


MOST_MISSING = 0.05
"""If a larger share of first attempts has no outcome, a warning says that the rate leaves them out."""
_OF_AUDIT = ("verification.pass_audit", "verification.earned")
_LISTED, _LONGEST, _SENTENCES = 6, 80, 4


def _warnings(  # noqa: PLR0913  (what a comparison is made of)
    rule: OutcomeRule,
    values: Sequence[Row],
    tried: Sequence[Attempt],
    by: Sequence[str],
    candidates: Sequence[Candidate],
    pairs: Sequence[Pair],
) -> list[str]:
    """Return warnings about a comparison, the most serious first: what changes with the candidates or within them, then
    outcomes, times and tasks that are missing or not comparable."""
    first = [attempt for attempt in tried if attempt.index == 0]
    warnings = [CAVEAT] if rule.signal in _OF_AUDIT else []
    changing = differing(first)
    if len(candidates) == 1:
        other = [column for column in changing if column not in by and not is_nuisance(column)]
        more = f" Its attempts differ in {_list(other)}: choose one with --by." if other else ""
        warnings.append(f"only one candidate, {candidates[0].name}, so there is nothing to compare.{more}")
    confounded = confounded_columns(first, changing)
    for columns in confounded:
        together = [c for c in columns if c in by or not is_version(c)]
        if set(together) & set(by) and len(together) > 1:
            warnings.append(f"{_list(together)} always change together, so their effects cannot be separated.")
    # Treatments that two candidates never share, unless named above: one sentence for all pairs with the same.
    named_columns = {c for group in confounded if set(group) & set(by) for c in group}
    apart: dict[tuple[str, ...], list[str]] = {}
    for pair in pairs:
        if never_shared := tuple(c for c in pair.also_differ if c not in named_columns and not is_version(c)):
            apart.setdefault(never_shared, []).append(pair.candidate)
    ranked = sorted(apart.items(), key=lambda entry: -len(entry[1]))
    for never_shared, names in ranked[:_SENTENCES]:
        verb = "differs" if len(names) == 1 else "differ"
        warnings.append(f"{_list(names)} {verb} from the baseline also in {_list(never_shared)}.")
    if left := sum(len(names) for _, names in ranked[_SENTENCES:]):
        warnings.append(f"{left:,} more candidates also differ from the baseline in other columns.")
    lent = [
        a for a in first if a.dataset is None and a.task is not None and not a.task_key.startswith(("\n", "session"))
    ]
    if lent and "dataset" not in by:
        named = sorted({attempt.task_key.partition("\n")[0] for attempt in lent})
        warnings.append(
            f"{times(len(lent), 'first attempt')} record no data set and count as tasks of {_list(named)}: the names"
            " of the tasks are the same."
        )
    spellings: dict[str, set[str]] = {}
    for attempt in first:
        if recorded := attempt.treatment.get(RECORDED_MODEL):
            spellings.setdefault(attempt.treatment["model_id"], set()).add(recorded)
    warnings += [
        f"{_list(sorted(names))} count as one model. Use --by {RECORDED_MODEL} to separate them."
        for names in spellings.values()
        if len(names) > 1
    ][:_SENTENCES]
    # Providers and routers put folders before a model's name.
    alike: dict[str, list[str]] = {}
    for candidate in candidates:
        alike.setdefault(candidate.name.lower().rpartition("/")[2], []).append(candidate.name)
    warnings += [
        f"{' and '.join(cut(name, _LONGEST) for name in names[:_LISTED])} have similar names. If they are one"
        " candidate, its tasks are split between them."
        for names in alike.values()
        if len(names) > 1
    ][:_SENTENCES]
    versions = [
        f"{column} ({_list(sorted(v if v is not None else 'not recorded' for v in values_of(first, column)))})"
        for column in changing
        if is_version(column) and column not in by
    ]
    if versions:
        warnings.append(
            f"attempts were run or judged by different versions: {'; '.join(versions)}. This alone can change rates."
        )
    mixed = Counter(c for a in candidates for c in a.pooled if not is_version(c) and not is_nuisance(c))
    if mixed:
        columns = [f"{c} (in {n} of {len(candidates)})" for c, n in mixed.most_common()]
        warnings.append(f"candidates mix attempts that differ in {_list(columns)}. Use --by to separate them.")
    ids = {attempt.session_id for attempt in tried}
    stated = [
        decoded(row["value"])
        for row in values
        if row["signal"] == rule.signal and not row["absent"] and row["session_id"] in ids
    ]
    if rule.name == "reward":
        if partial := sum(isinstance(value, int | float) and value not in (0, 1) for value in stated):
            warnings.append(
                f"{partial:,} rewards are neither 0 nor 1 and count as not solved. Use --outcome 'reward>=0.5' for"
                " another threshold."
            )
    elif rule.test == "=" and not any(attempt.outcome for attempt in tried):
        labels = [name for name, _ in Counter(map(str, stated)).most_common()]
        warnings.append(f"no attempt has {rule.name}{f'; available: {_list(labels)}' if labels else ''}.")
    clocks = Counter(clock for candidate in candidates for clock in candidate.took[TIME].clocks)
    if len(clocks) > 1:
        counted = [f"{clock or 'unknown'} (in {n} of {len(candidates)})" for clock, n in clocks.most_common()]
        warnings.append(f"wall times come from different clocks and are not comparable: {_list(counted)}.")
    missing = []
    for candidate in candidates:
        absent = sum(candidate.absent.values())
        of = candidate.first.n + absent + sum(candidate.infrastructure.values())
        if absent > MOST_MISSING * of:
            missing.append(f"{candidate.name}: {absent:,} of {of:,} ({cut(next(iter(candidate.absent)), _LONGEST)})")
    if missing:
        warnings.append(
            f"attempts without an outcome ({rule.name}) are excluded from its rate: {_list(missing, '; ')}."
        )
    if retries := sum(candidate.without_first for candidate in candidates):
        warnings.append(f"{retries:,} trials have no first attempt by the same candidate; only their retries count.")
    if nowhere := sum(attempt.task is None for attempt in tried):
        warnings.append(f"{nowhere:,} of {len(tried):,} attempts record no task and are not matched.")
    return warnings


def _list(words: Iterable[str], between: str = ", ") -> str:
    items = [cut(word, _LONGEST) for word in words]
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return between.join(items[:_LISTED]) + more


# -- eval runs of a store ----------------------------------------------------------------------------------------------


RULE = outcome_rule("resolved")
QUERIES = queries(RULE)
OF_ATTEMPTS = (
    "SELECT session_id, task_id, attempt_index, model_id, agent_type, outcome, reward, exit_status FROM attempts"
)


def eval_comparisons(inputs: Inputs) -> list[Comparison]:
    """Compare the candidates of the store's eval runs, a comparison for each group, largest first. None without
    attempts, or without recorded candidates."""
    if not inputs.rows["attempts"]:
        return []
    try:
        made = [compare(RULE, inputs.rows)]
    except UsageError:  # of what the attempts don't record
        return []
    for group in made[0].other_groups:
        made.append(compare(RULE, inputs.rows, baseline=group.candidates[0], only=group.candidates))
    return made


def resolved_groups(inputs: Inputs) -> list[ResolvedGroup]:
    """Return what each candidate of the store's eval runs resolved, by group: judged ones first, by their tasks."""
    made: list[ResolvedGroup] = []
    for comparison in eval_comparisons(inputs):
        is_pooled = bool(comparison.proposed_treatments) and "model_id" not in comparison.by
        described = [
            ResolvedCandidate(
                name=f"{c.name} (models not recorded)" if is_pooled else c.name,
                share=c.first.value,
                low=c.first.low,
                high=c.first.high,
                judged=c.first.n,
                not_judged=sum(c.absent.values()) + sum(c.infrastructure.values()),
            )
            for c in comparison.candidates
        ]
        seed = shlex.quote(comparison.baseline or "")
        against = f" --baseline {seed}" if made else ""
        made.append(
            ResolvedGroup(
                datasets=comparison.datasets,
                tasks=comparison.common_tasks or max(c.tasks for c in comparison.candidates),
                candidates=sorted(described, key=lambda c: (-(c.share if c.share is not None else -1), c.name)),
                unrecorded=0 if made else comparison.unrecorded,
                command=f"agentsignals evals compare --outcome {RULE.name}{against}" if comparison.pairs else "",
            )
        )
    return sorted(made, key=lambda group: (not any(c.judged for c in group.candidates), -group.tasks))


def treatments_option(proposal: str) -> str:
    """Return the option of the command line, ready to copy."""
    return f"--treatments {shlex.quote(proposal)}"


def named(candidate: str) -> str:
    """Return a candidate's name for a sentence."""
    return safe_name(candidate, 80)
