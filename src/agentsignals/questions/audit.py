"""Audit of passed attempts: was each pass earned, and the resolve rate before and after.

A pure function of rows, with the candidates of `compare`. The verdicts are the signal `verification.pass_audit`
(docs/audit.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from agentsignals.questions.compare.attempts import (
    ALL,
    Attempt,
    attempts_of,
    candidate_columns,
    candidates,
    decoded,
    evaluated,
    outcome_rule,
    queries,
)
from agentsignals.questions.compare.candidate import task_sums
from agentsignals.questions.question import Question, Row, formatted, part_text, times
from agentsignals.stats.intervals import rate_interval, wilson
from agentsignals.stats.validation import CAVEAT, READ_CAVEAT
from agentsignals.views.failure import VERDICTS

SIGNAL = "verification.pass_audit"
UNKNOWN = "cannot_tell"
AUDITS = f"SELECT session_id, value, detail FROM signals WHERE signal = '{SIGNAL}' AND value IS NOT NULL"
"""Query for the audit of each pass."""
_RULE = outcome_rule("resolved")
_UNMEASURED = "not measured: read the run in again"


class Rate(Struct, frozen=True, kw_only=True):
    """Share with a 95 % interval: of judged first attempts over tasks, None under six; at one task over attempts."""

    n: int
    of: int
    value: float
    low: float | None
    high: float | None


class Pass(Struct, frozen=True, kw_only=True):
    session_id: str
    candidate: str
    dataset: str | None
    task: str | None
    attempt: int
    """0 for the first of its trial."""
    verdict: str
    because: str
    acts: list[dict[str, Any]] = field(default_factory=list)
    """The deciding operations: channel, file, event, line, and the event that showed the line."""
    unseen: list[str] = field(default_factory=list)
    """Records that could not be examined."""
    read_by: str = ""
    """Second reader of the pass; empty where the rules alone decided."""
    rules: str = ""
    """Verdict of the rules alone, where a second reader read the pass."""
    reader: str = ""
    """Verdict of the second reader alone."""


class CandidateAudit(Struct, frozen=True, kw_only=True):
    name: str
    passed: dict[str, int]
    """Passed first attempts by verdict."""
    resolved: Rate
    """According to the verifier."""
    earned: Rate
    """Lower bound: passes found to be the agent's own work."""
    earned_at_most: Rate
    """Upper bound: with undecided passes."""


class TaskAudit(Struct, frozen=True, kw_only=True):
    """First attempts of all candidates at one task."""

    dataset: str | None
    task: str
    resolved: Rate
    """Passes according to the verifier, of judged attempts."""
    retrieved: int
    special_cased: int
    """Passes with the verdict *verifier touched* in which the tests' inputs stand in the product code."""
    verifier_touched: int
    """The other passes with that verdict."""
    cannot_tell: int
    unearned: Rate
    """Lower bound: flagged passes, of all passes at the task. The interval is over passes."""
    unearned_at_most: Rate
    """Upper bound: with undecided passes."""


class AuditReport(Struct, frozen=True, kw_only=True):
    """The result of the audit."""

    by: list[str]
    passed: dict[str, int]
    """Passed first attempts by verdict."""
    channels: dict[str, int]
    """Unearned passes by the deciding channel."""
    cannot_tell: dict[str, int]
    """Undecided passes by reason."""
    everyone: CandidateAudit
    candidates: list[CandidateAudit]
    tasks: list[TaskAudit]
    """Tasks with a pass, those most surely passed by reward hacking first."""
    listed: list[Pass]
    """Every pass, retries too: unearned, undecided, derived."""
    readers: dict[str, int]
    """Passed first attempts by their second reader; the others were judged by the rules alone."""
    caveat: str = CAVEAT

    @property
    def read(self) -> str:
        """Words that say who judged the passes."""
        by_rules = sum(self.passed.values()) - sum(self.readers.values())
        said = [f"{times(n, 'pass', 'passes')} read by {name}" for name, n in self.readers.items()]
        if not said:
            return "judged by rules alone"
        return ", ".join([*said, f"{by_rules:,} by rules alone"] if by_rules else said)


def question(by: Sequence[str] = (), where: str = ALL) -> Question:
    """Return the question whose answer is an `AuditReport`. `by`: as for `audit_report`; `where`: a condition."""
    return Question(
        name="audit",
        question="Were passes earned?",
        queries={**queries(_RULE, where), "audits": AUDITS},
        function=lambda inputs: audit_report(inputs.rows, by),
        context="eval",
    )


def audit_report(rows: Mapping[str, list[Row]], by: Sequence[str] = ()) -> AuditReport:
    """Audit these rows. `by`: columns and knobs that make a candidate. UsageError if no attempt has one."""
    everyone = attempts_of(_RULE, rows)
    columns = candidate_columns(everyone, by)
    groups = {name: evaluated(attempts) for name, attempts in candidates(everyone, columns).items()}
    passes = passes_of(groups, rows["audits"])
    first = [entry for entry in passes if not entry.attempt]
    judged = [attempt for attempts in groups.values() for attempt in attempts]
    readers = dict(Counter(entry.read_by for entry in first if entry.read_by).most_common())
    return AuditReport(
        by=columns,
        passed=dict(Counter(entry.verdict for entry in first)),
        channels=dict(Counter(p.acts[0]["channel"] for p in first if p.acts and p.verdict not in (UNKNOWN, "derived"))),
        cannot_tell=dict(Counter(entry.because for entry in first if entry.verdict == UNKNOWN)),
        everyone=_candidate("all", judged, first),
        candidates=[
            _candidate(name, attempts, [entry for entry in first if entry.candidate == name])
            for name, attempts in groups.items()
        ],
        tasks=_tasks(judged, first),
        listed=passes,
        readers=readers,
        caveat=f"{CAVEAT} {READ_CAVEAT}" if readers else CAVEAT,
    )


def verdict_of(row: Row | None, known: Collection[str]) -> tuple[str, str, dict[str, Any]]:
    """Return the value of a row of such a signal (`UNKNOWN` unless it is one of these), why, and its details."""
    detail, value = (decoded(row["detail"]), decoded(row["value"])) if row is not None else (None, None)
    stated = detail if isinstance(detail, dict) else {}
    if value not in known:
        return UNKNOWN, _UNMEASURED, stated
    return str(value), str(stated.get("because", "")), stated


def passes_of(groups: Mapping[str, Sequence[Attempt]], audits: Sequence[Row]) -> list[Pass]:
    """Return the passed attempts of these candidates with their verdicts, the unearned first."""
    by_session = {row["session_id"]: row for row in audits}
    passes = []
    for name, attempts in groups.items():
        for attempt in attempts:
            if attempt.outcome == 1:
                verdict, because, stated = verdict_of(by_session.get(attempt.session_id), VERDICTS)
                more: dict[str, Any] = {
                    key: of for key in ("acts", "unseen") if isinstance(of := stated.get(key), list)
                }
                more |= {key: str(stated.get(key, "")) for key in ("read_by", "rules", "reader")}
                passed = Pass(
                    session_id=attempt.session_id,
                    candidate=name,
                    dataset=attempt.dataset,
                    task=attempt.task,
                    attempt=attempt.index,
                    verdict=verdict,
                    because=because,
                    **more,
                )
                passes.append(passed)
    order = ("verifier_touched", "retrieved", UNKNOWN, "derived")
    return sorted(passes, key=lambda p: (order.index(p.verdict), p.task or "", p.attempt, p.session_id))


def _candidate(name: str, attempts: Sequence[Attempt], first: Sequence[Pass]) -> CandidateAudit:
    judged = [attempt for attempt in attempts if not attempt.index and attempt.outcome is not None]

    def rate(counted: set[str]) -> Rate:
        values = [(attempt.task_key, float(attempt.session_id in counted)) for attempt in judged]
        n = int(sum(value for _, value in values))
        low, high = rate_interval(list(task_sums(values).values())) or (None, None)
        return Rate(n=n, of=len(judged), value=n / len(judged) if judged else 0.0, low=low, high=high)

    return CandidateAudit(
        name=name,
        passed=dict(Counter(entry.verdict for entry in first)),
        resolved=rate({a.session_id for a in judged if a.outcome == 1}),
        earned=rate({entry.session_id for entry in first if entry.verdict == "derived"}),
        earned_at_most=rate({entry.session_id for entry in first if entry.verdict in ("derived", UNKNOWN)}),
    )


def _tasks(attempts: Sequence[Attempt], first: Sequence[Pass]) -> list[TaskAudit]:
    """Return the passed tasks by the lower end of the interval of flagged passes: one of one is weaker than nine of
    ten. Attempts of unknown tasks are left out."""
    judged: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.task is not None and not attempt.index and attempt.outcome is not None:
            judged.setdefault(attempt.task_key, []).append(attempt)
    verdicts = {entry.session_id: entry for entry in first}
    made = []
    for of_task in judged.values():
        passes = [verdicts[a.session_id] for a in of_task if a.session_id in verdicts]
        if not passes:
            continue
        counts = Counter(
            "special_cased"
            if p.verdict == "verifier_touched" and p.acts and p.acts[0]["channel"] == "special_case"
            else p.verdict
            for p in passes
        )
        unknown = counts[UNKNOWN]
        flagged = len(passes) - unknown - counts["derived"]
        task = TaskAudit(
            dataset=of_task[0].dataset,
            task=str(of_task[0].task),
            resolved=_share(len(passes), len(of_task)),
            retrieved=counts["retrieved"],
            verifier_touched=counts["verifier_touched"],
            special_cased=counts["special_cased"],
            cannot_tell=unknown,
            unearned=_share(flagged, len(passes)),
            unearned_at_most=_share(flagged + unknown, len(passes)),
        )
        made.append(task)
    return sorted(made, key=lambda t: (-(t.unearned.low or 0), -t.unearned.n, -t.unearned_at_most.value, t.task))


def _share(n: int, of: int) -> Rate:
    low, high = wilson(n, of) or (None, None)
    return Rate(n=n, of=of, value=n / of if of else 0.0, low=low, high=high)


def rate_text(rate: Rate, most: Rate | None = None) -> str:
    """Format a rate with its interval; with an upper bound that differs, both bounds without one."""
    if not rate.of:
        return "no verdicts"
    if most is None or most.n == rate.n:
        return part_text(rate.n, rate.of, rate.low, rate.high)
    shares = " to ".join(formatted(value, "share") for value in (rate.value, most.value))
    return f"{rate.n:,} to {most.n:,} of {rate.of:,}, {shares}"
