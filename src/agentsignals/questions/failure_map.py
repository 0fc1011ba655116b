"""Failure classes by candidate, with intervals, and each failed attempt with the event that shows it.

A pure function of rows, with the candidates of `compare`. The classes are the signal `verification.failure_class`
(design/failures.md#rules).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.questions.audit import AUDITS, UNKNOWN, Pass, passes_of, verdict_of
from agentsignals.questions.compare.attempts import (
    ALL,
    Attempt,
    attempts_of,
    available,
    candidate_columns,
    candidates,
    evaluated,
    outcome_rule,
    queries,
)
from agentsignals.questions.compare.attempts import NOT_RECORDED as NOBODY
from agentsignals.questions.compare.candidate import task_sums
from agentsignals.questions.question import Question, Row, part_text, times
from agentsignals.stats.intervals import rate_interval
from agentsignals.stats.paired import difference_interval
from agentsignals.stats.validation import CAVEAT
from agentsignals.views.failure import CLASSES, JUDGED, OUTCOMES
from agentsignals.views.reward_hacking import NOT_EARNED

SIGNAL = "verification.failure_class"
UNSTARTED = ("agent_not_started", "verifier_not_run")
"""Classes that say nothing of what was tried."""
ENOUGH = 5
"""Failed first attempts that a sentence about a candidate needs (this project's choice)."""
MOSTLY = 0.5
"""A class with this share or more is the candidate's dominant failure type."""
MOST_SENTENCES = 25
"""Candidates and differences put into sentences; the tables have all."""
_BAD = tuple(name for name in OUTCOMES if name not in ("solved", "not_judged"))
_RULE = outcome_rule("resolved")


class Failed(Struct, frozen=True, kw_only=True):
    """A failed or broken-off attempt, and where to look."""

    session_id: str
    candidate: str
    task: str | None
    attempt: int
    """0 for the first of its trial."""
    name: str
    """The failure class."""
    because: str
    seq: int | None
    """The event that shows it."""
    file: str | None
    tests: list[str] = []
    """Tests that failed, by name."""
    others_failed: int | None = None
    """Other candidates that fail the first of these tests at the same task; None without one that was judged there."""
    others: int = 0
    """Other candidates that were judged at the same task."""

    @property
    def shared(self) -> str:
        """How many other candidates fail the same test, in words; empty where nobody else was judged at the task."""
        if self.others_failed is None:
            return ""
        return f"also fails for {self.others_failed:,} of {self.others:,} other candidates"


class Share(Struct, frozen=True, kw_only=True):
    """First attempts of a class among those that failed. The interval is over tasks."""

    name: str
    n: int
    value: float
    low: float | None
    high: float | None


class CandidateFailures(Struct, frozen=True, kw_only=True):
    name: str
    first_attempts: int
    not_judged: int
    """First attempts without a known outcome."""
    failed: int
    """First attempts that failed or were broken off."""
    retries_failed: int
    not_earned: int
    """First attempts that passed without earning it. They do not count as failed."""
    classes: list[Share]
    """Classes with an attempt, largest first."""


class Difference(Struct, frozen=True, kw_only=True):
    """A class with a larger share of one candidate's failures than of another's."""

    name: str
    more: str
    less: str
    value: float
    low: float
    high: float
    """Newcombe's 95 % interval of the difference (method 10)."""


class FailureMap(Struct, frozen=True, kw_only=True):
    """The failures of all candidates."""

    by: list[str]
    """Columns whose values make a candidate."""
    columns: list[str]
    """Columns available for that."""
    attempts: int
    first_attempts: int
    failed: int
    """First attempts that failed or were broken off: the denominator of all shares."""
    classes: list[Share]
    candidates: list[CandidateFailures]
    """Most attempts first."""
    differences: list[Difference]
    """Differences whose interval excludes 0."""
    looked_at: int
    """Number of differences checked."""
    sentences: list[str]
    listed: list[Failed]
    """All failed attempts, retries too, by class and task."""
    passed: dict[str, int]
    """Passed first attempts by verdict (`views.reward_hacking.Verdict`)."""
    not_earned: list[Pass]
    """Passes that were looked up, or that touched the verifier, retries too. No share counts them."""
    passed_caveat: str = CAVEAT
    unevaluated: int
    """Attempts of candidates that were never evaluated, which would have failed."""


def question(by: Sequence[str] = (), where: str = ALL) -> Question:
    """Return the question whose answer is a `FailureMap`. `by`: as for `failure_map`; `where`: the user's condition."""
    failures = f"SELECT session_id, value, detail FROM signals WHERE signal = '{SIGNAL}' AND value IS NOT NULL"
    return Question(
        name="failures",
        question="Why did eval attempts fail?",
        queries={**queries(_RULE, where), "failures": failures, "audits": AUDITS},
        function=lambda inputs: failure_map(inputs.rows, by),
        context="eval",
    )


def failure_map(rows: Mapping[str, list[Row]], by: Sequence[str] = ()) -> FailureMap:
    """Map the failures of these rows. `by`: columns and knobs that make a candidate. UsageError for an unknown one."""
    everyone = attempts_of(_RULE, rows)
    columns = candidate_columns(everyone, by)
    groups = {name: evaluated(attempts) for name, attempts in candidates(everyone, columns).items()}
    tasks = {attempt.session_id: attempt.task_key for attempts in groups.values() for attempt in attempts}
    failed = _failed(groups, rows["failures"])
    first = [entry for entry in failed if not entry.attempt]
    passes = passes_of(groups, rows["audits"])
    not_earned = [entry for entry in passes if entry.verdict in NOT_EARNED]
    made = []
    for name, attempts in groups.items():
        mine = [entry for entry in failed if entry.candidate == name]
        of_first = [attempt for attempt in attempts if attempt.index == 0]
        failed_first = [entry for entry in mine if not entry.attempt]
        candidate = CandidateFailures(
            name=name,
            first_attempts=len(of_first),
            not_judged=sum(attempt.rung not in ("solved", *_BAD) for attempt in of_first),
            failed=len(failed_first),
            retries_failed=len(mine) - len(failed_first),
            not_earned=sum(entry.candidate == name and not entry.attempt for entry in not_earned),
            classes=_shares(failed_first, tasks),
        )
        made.append(candidate)
    differences, looked_at = _differences({n: a for n, a in groups.items() if n != NOBODY}, first, tasks)
    return FailureMap(
        by=columns,
        columns=available(everyone),
        attempts=len(everyone),
        first_attempts=sum(attempt.index == 0 for attempt in everyone),
        failed=len(first),
        classes=_shares(first, tasks),
        candidates=made,
        differences=differences,
        looked_at=looked_at,
        sentences=_sentences(made, differences, looked_at),
        passed=dict(Counter(entry.verdict for entry in passes if not entry.attempt)),
        not_earned=not_earned,
        unevaluated=sum(attempt.rung in _BAD for attempt in everyone) - len(failed),
        listed=sorted(failed, key=lambda f: (CLASSES.index(f.name), f.task or "", f.attempt, f.session_id)),
    )


def _failed(groups: Mapping[str, Sequence[Attempt]], failures: Sequence[Row]) -> list[Failed]:
    """The failed attempts, each with how many other candidates fail the same test: one that all fail may be the task's,
    not the agent's."""
    judged: dict[str, set[str]] = {}
    failing: dict[tuple[str, str], set[str]] = {}
    reasons = {row["session_id"]: row for row in failures}
    found: list[tuple[str, Failed]] = []
    for candidate, attempts in groups.items():
        for attempt in attempts:
            if attempt.rung in JUDGED and candidate != NOBODY:
                judged.setdefault(attempt.task_key, set()).add(candidate)
            if attempt.rung not in _BAD:
                continue
            name, because, stated = verdict_of(reasons.get(attempt.session_id), CLASSES)
            tests = [test for test in stated.get("tests") or [] if isinstance(test, str)]
            for test in tests:
                failing.setdefault((attempt.task_key, _bare(test)), set()).add(candidate)
            entry = Failed(
                session_id=attempt.session_id,
                candidate=candidate,
                task=attempt.task,
                attempt=attempt.index,
                name=name,
                because=because,
                seq=stated.get("seq"),
                file=stated.get("file"),
                tests=tests,
            )
            found.append((attempt.task_key, entry))
    made = []
    for task, entry in found:
        others = judged.get(task, set()) - {entry.candidate}
        if entry.tests and others:
            same = failing[task, _bare(entry.tests[0])] & others
            entry = replace(entry, others=len(others), others_failed=len(same))  # noqa: PLW2901
        made.append(entry)
    return made


def _bare(test: str) -> str:
    """The name of a test without its file: reports and outputs of one run name files differently."""
    return test.rpartition("::")[2]


def _shares(first: Sequence[Failed], tasks: Mapping[str, str]) -> list[Share]:
    counted = Counter(entry.name for entry in first)
    return [_share(name, first, tasks) for name, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))]


def _share(name: str, first: Sequence[Failed], tasks: Mapping[str, str]) -> Share:
    """The share of a class. The interval is over tasks, because attempts at one task are alike."""
    values = [(tasks[entry.session_id], float(entry.name == name)) for entry in first]
    low, high = rate_interval(list(task_sums(values).values())) or (None, None)
    n = int(sum(value for _, value in values))
    return Share(name=name, n=n, value=n / len(first), low=low, high=high)


def _differences(
    groups: Mapping[str, Sequence[Attempt]], first: Sequence[Failed], tasks: Mapping[str, str]
) -> tuple[list[Difference], int]:
    """Differences between two candidates at their common tasks whose interval excludes 0, and how many were checked."""
    tried = {name: {o.task_key for o in attempts if o.index == 0} for name, attempts in groups.items()}
    found, looked_at = [], 0
    for names in combinations(groups, 2):
        both = tried[names[0]] & tried[names[1]]
        sides = [[f for f in first if f.candidate == name and tasks[f.session_id] in both] for name in names]
        if min(map(len, sides)) < ENOUGH:
            continue
        for name in CLASSES:
            if name in (UNKNOWN, *UNSTARTED) or not any(f.name == name for side in sides for f in side):
                continue
            looked_at += 1
            shares = [(_share(name, side, tasks), who) for side, who in zip(sides, names, strict=True)]
            # The larger share first, of equal ones that of the first candidate.
            (a, more), (b, less) = sorted(shares, key=lambda share: -share[0].value)
            if a.low is None or a.high is None or b.low is None or b.high is None:
                continue
            low, high = difference_interval(a.value, (a.low, a.high), b.value, (b.low, b.high))
            if low > 0:
                gap = a.value - b.value
                found.append(Difference(name=name, more=more, less=less, value=gap, low=low, high=high))
    return sorted(found, key=lambda d: (-d.low, d.more, d.less, d.name)), looked_at


def _sentences(made: Sequence[CandidateFailures], differences: Sequence[Difference], looked_at: int) -> list[str]:
    """State each candidate's dominant failure type, and how many attempts never started."""
    sentences = []
    of_nobody = sum(candidate.failed for candidate in made if candidate.name == NOBODY)
    made = [candidate for candidate in made if candidate.name != NOBODY]
    for candidate in made[:MOST_SENTENCES]:
        machine = [share for share in candidate.classes if share.name in UNSTARTED]
        n = sum(share.n for share in machine)
        if machine:
            listed = ", ".join(f"{class_text(share.name)} {share.n:,}" for share in machine)
            sentences.append(f"{n:,} of {candidate.failed:,} failures of {candidate.name} are not its own: {listed}.")
        if candidate.failed - n < ENOUGH:
            continue
        most = next((share for share in candidate.classes if share.name not in (UNKNOWN, *UNSTARTED)), None)
        if most is None or most.value < MOSTLY:
            how = f"no dominant failure type ({candidate.failed:,} attempts failed)"
            sentences.append(f"{candidate.name}: {how}.")
        else:
            how = f"{class_text(most.name)}: {part_text(most.n, candidate.failed, most.low, most.high)}"
            sentences.append(f"{candidate.name} fails mostly with {how}.")
    few = [candidate.failed for candidate in made if 0 < candidate.failed < ENOUGH]
    if few:
        of = f"{times(len(few), 'candidate')} with fewer than {ENOUGH} failures each ({sum(few):,} in total)"
        nor = f", and {times(of_nobody, 'failed attempt')} without a recorded candidate" if of_nobody else ""
        sentences.append(f"Not described: {of}{nor}.")
    for d in differences[:MOST_SENTENCES]:
        sentences.append(
            f"{d.more} fails more often with {class_text(d.name)} than {d.less}: {d.value * 100:.0f} points"
            f" ({d.low * 100:.0f} to {d.high * 100:.0f}), as a share of each one's failures at shared tasks."
        )
    if looked_at:
        sentences.append(f"{looked_at:,} differences checked; expect one in twenty by chance.")
    return sentences


def passes_text(made: FailureMap) -> str:
    """Return how many passes were not earned or undecided, as a sentence; empty if none passed."""
    n, unknown = sum(made.passed.values()), made.passed.get(UNKNOWN, 0)
    if not n:
        return ""
    counts = {verdict: made.passed.get(verdict, 0) for verdict in NOT_EARNED}
    which = ", ".join(f"{k:,} {class_text(verdict)}" for verdict, k in counts.items() if k)
    bad = (
        f"{sum(counts.values()):,} show reward hacking ({which}) and do not count as failed"
        if which
        else "none show reward hacking"
    )
    more = f"; {unknown:,} are undecided" if unknown else ""
    if derived := n - unknown - sum(counts.values()):
        more += f"; {derived:,} are derived"
    return f"{times(n, 'attempt')} passed; {bad}{more} (`agentsignals evals audit`). {CAVEAT}"


def class_text(name: str) -> str:
    """Return a class as text: `wrong place`."""
    return name.replace("_", " ")
