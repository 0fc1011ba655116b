"""What speaks against a comparison, as sentences: what changes along, what is pooled, what is missing, what is few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from agentsignals.analysis.compare.against import Pair
from agentsignals.analysis.compare.candidate import Candidate
from agentsignals.analysis.compare.outcome import OutcomeRule, decoded
from agentsignals.analysis.compare.treatments import confounded_columns, differing, is_version, values_of
from agentsignals.analysis.compare.tried import TIME, Tried
from agentsignals.analysis.pass_caveat import CAVEAT
from agentsignals.analysis.study import Row

MOST_MISSING = 0.05
"""Share of first attempts without an outcome above which rates are said to be of the others (as for costs)."""
_OF_AUDIT = ("verification.pass_audit", "verification.earned")
_LISTED, _LONGEST, _SENTENCES = 6, 80, 4


def cautions(  # noqa: PLR0913  (what a comparison is made of)
    rule: OutcomeRule,
    values: Sequence[Row],
    tried: Sequence[Tried],
    by: Sequence[str],
    candidates: Sequence[Candidate],
    pairs: Sequence[Pair],
) -> list[str]:
    """Sentences, those first that most could mislead."""
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


def _confounded(first: Sequence[Tried], by: Sequence[str], changing: Sequence[str]) -> list[str]:
    groups = [[c for c in group if c in by or not is_version(c)] for group in confounded_columns(first, changing)]
    confounded = [group for group in groups if set(group) & set(by) and len(group) > 1]
    return [f"{_list(g)} always change together: no difference can be laid to one of them." for g in confounded]


def _apart(pairs: Sequence[Pair], named_columns: Collection[str]) -> list[str]:
    """Treatments that two candidates never share, one sentence for all pairs with the same. `named_columns`
    are left out: another caution names them."""
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


def _versions(first: Sequence[Tried], by: Sequence[str], changing: Sequence[str]) -> list[str]:
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


def _rule(rule: OutcomeRule, values: Sequence[Row], tried: Sequence[Tried]) -> list[str]:
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


def _odd_trials(tried: Sequence[Tried], candidates: Sequence[Candidate]) -> list[str]:
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
