"""What may be concluded of a candidate and the baseline: a word for machines, a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from agentsignals.analysis.compare.against import Pair
from agentsignals.stats.break_even import Weighed
from agentsignals.stats.paired import Paired
from agentsignals.stats.power import FEWEST_OF_SEVERAL, LEVEL, TELLING_GAP, Power, least_one_way

Word = Literal["better", "worse", "higher", "lower", "undecided", "too few"]
_LONGEST, _LISTED = 80, 12
_MOST_TASKS = 1000
"""Of fewer tasks the least that can tell is sought; no level of a comparison takes as many."""


class Conclusion(Struct, frozen=True, kw_only=True):
    """Of one pair."""

    candidate: str
    word: Word
    """better or worse (higher or lower where no more is meant by more): significant among all candidates, a regression
    counted with its weight; too few: no result of so few tasks could be; else undecided."""
    sentence: str


def concluded(pair: Pair, *, yes_or_no: bool, good: bool) -> Conclusion:
    """`good`: whether more of the outcome is better."""
    word = _word(pair, good)
    names = _cut(pair.candidate), _cut(pair.baseline)
    if word == "too few":
        sentence = _too_few(pair, names)
    elif word == "undecided":
        sentence = _undecided(pair, names, yes_or_no, good)
    else:
        sentence = _decided(pair, names, yes_or_no, word)
    return Conclusion(candidate=pair.candidate, word=word, sentence=sentence)


def without_tasks(pairs: Sequence[Pair]) -> str:
    """Of all that share no task with the baseline; empty where each does."""
    names = [_cut(pair.candidate) for pair in pairs if not pair.paired.tasks]
    if not names:
        return ""
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return (
        f"Without a task that has an outcome of both, nothing can be said of {len(names):,} against"
        f" {_cut(pairs[0].baseline)}: {', '.join(names[:_LISTED])}{more}."
    )


def gap_text(value: float | None, yes_or_no: bool, *, signed: bool = True) -> str:
    """A difference, of shares in points."""
    if value is None:
        return "–"
    sign = "+" if signed else ""
    return f"{value * 100:{sign}.1f} points" if yes_or_no else f"{value:{sign}.4g}"


def worth(value: float | None) -> str:
    """A break-even weight."""
    return "–" if value is None else f"{value:.3g}"


def _word(pair: Pair, good: bool) -> Word:
    if pair.weighed is None or pair.least_p is None or pair.least_p > LEVEL:
        return "too few"
    plain = pair.weighed.weight == 1
    p = pair.p_adjusted if plain else pair.weighed_p_adjusted
    if p is None or p > LEVEL:
        return "undecided"
    if pair.weighed.value > 0:
        return "better" if good else "higher"
    return "worse" if good else "lower"


def _too_few(pair: Pair, names: tuple[str, str]) -> str:
    n = pair.paired.tasks
    if not n:
        return (
            f"{names[0]} and {names[1]} share no task with an outcome of both:"
            " nothing can be said of one against the other."
        )
    level = pair.power.level if pair.power is not None else LEVEL
    least = next(tasks for tasks in range(1, _MOST_TASKS) if least_one_way(tasks, level) is not None)
    many = " among so many candidates" if (pair.least_p or 0.0) > (pair.paired.least_p or 0.0) else ""
    return (
        f"{_tasks(n)} {'is' if n == 1 else 'are'} too few to tell {names[0]} from {names[1]}: whatever came of"
        f" {'it' if n == 1 else 'them'}, p would be {pair.least_p:.2g} at least{many}; it takes {least:,} or more."
    )


def _undecided(pair: Pair, names: tuple[str, str], yes_or_no: bool, good: bool) -> str:
    p, power, weighed = pair.paired, pair.power, pair.weighed
    difference = gap_text(p.value, yes_or_no)
    if weighed is not None and weighed.weight != 1 and (pair.p_adjusted or 0.0) <= LEVEL:
        sure = f", {worth(weighed.low)} to {worth(weighed.high)} at 95%" if weighed.low is not None else ""
        return (
            f"{names[0]} differs from {names[1]} ({difference} on {_tasks(p.tasks)}, {_counts(pair, good)};"
            f" {_p(pair)}), but with a regression counted {weighed.weight:g} times neither is shown to be worth more:"
            f" it evens out at {worth(weighed.break_even)} gains for each{sure}."
        )
    ends = ""
    if p.low is not None and p.high is not None:
        ends = f"; anything from {gap_text(p.low, yes_or_no)} to {gap_text(p.high, yes_or_no)} fits what was seen"
    first = (
        f"Neither {names[0]} nor {names[1]} is shown to be {'better' if good else 'higher'} on {_tasks(p.tasks)}"
        f" ({_counts(pair, good)}; {_p(pair)}): the difference is {difference}{ends}."
    )
    return f"{first} {_able(power, p, yes_or_no)}" if power is not None else first


def _able(power: Power, compared: Paired, yes_or_no: bool) -> str:
    seen = compared.value or 0.0
    if not compared.single and compared.tasks < FEWEST_OF_SEVERAL:
        return f"How much under {FEWEST_OF_SEVERAL} tasks with several attempts can show is not told."
    if power.detectable is None:
        able = "So few tasks show no difference 4 times in 5"
    else:
        able = f"So many tasks show {gap_text(power.detectable, yes_or_no, signed=False)} or more 4 times in 5"
    if power.tasks_needed is not None:
        again = f" or {power.attempts_needed:,} attempts of each at these" if power.attempts_needed is not None else ""
        return (
            f"{able}; to show {gap_text(abs(seen), yes_or_no, signed=False)}, if that is the truth, takes about"
            f" {power.tasks_needed:,} tasks{again}."
        )
    if power.tasks_for_telling is not None:
        return f"{able}; {TELLING_GAP * 100:.0f} points take about {power.tasks_for_telling:,} tasks."
    return f"{able}."


def _decided(pair: Pair, names: tuple[str, str], yes_or_no: bool, word: Word) -> str:
    p, weighed = pair.paired, pair.weighed
    ends = f" ({gap_text(p.low, yes_or_no)} to {gap_text(p.high, yes_or_no)})" if p.low is not None else ""
    is_so, sure = f"{names[0]} is {word} than {names[1]}", _p(pair)
    if weighed is not None and weighed.weight != 1:
        is_so = f"With a regression counted {weighed.weight:g} times {is_so}"
        sure += f", weighted {pair.weighed_p_adjusted:.2g}"
    sentence = (
        f"{is_so}: {gap_text(p.value, yes_or_no)}{ends} on {_tasks(p.tasks)},"
        f" {_counts(pair, word in ('better', 'worse'))}; {sure}."
    )
    if weighed is not None and word in ("better", "worse"):
        sentence += f" {_unless(weighed, word)}"
    if pair.missing.undone:
        lack = pair.missing.candidate + pair.missing.baseline
        sentence += f" It would not be shown had the {lack:,} missing outcomes all gone against it."
    return sentence


def _unless(weighed: Weighed, word: Word) -> str:
    """Up to which weight of a regression the word stands."""
    if word == "worse" and not weighed.break_even:
        return "No task improved" + (
            f"; at 95% one may count for {worth(1 / weighed.high)} regressions." if weighed.high else "."
        )
    if word == "worse":
        sure = f" (95%: {worth(weighed.high)})" if weighed.high is not None else ""
        return f"It is, unless a regression costs less than {worth(weighed.break_even)} gains{sure}."
    if weighed.break_even is None:
        return "No task regressed" + (
            f"; at 95% one may cost up to {worth(weighed.low)} gains." if weighed.low else "."
        )
    sure = f" (95%: {worth(weighed.low)})" if weighed.low is not None else ""
    return f"It is, unless a regression costs more than {worth(weighed.break_even)} gains{sure}."


def _p(pair: Pair) -> str:
    adjusted = f", {pair.p_adjusted:.2g} among all candidates" if pair.p_adjusted != pair.paired.p else ""
    return f"p {pair.paired.p:.2g}{adjusted}"


def _counts(pair: Pair, good: bool) -> str:
    up, down = ("better", "worse") if good else ("higher", "lower")
    return f"{pair.paired.gained:,} {up}, {pair.paired.lost:,} {down}"


def _tasks(n: int) -> str:
    return f"{n:,} matched task{'' if n == 1 else 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
