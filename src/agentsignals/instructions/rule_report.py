"""What became of each rule: exposure, kept or broken with the line, and what its introduction changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from agentsignals.instructions.effects import Effect, Point, effects
from agentsignals.instructions.exposure import Exposure, Stated
from agentsignals.instructions.following import Followed
from agentsignals.instructions.marks import Mark
from agentsignals.instructions.rule import Rule
from agentsignals.model import Session
from agentsignals.stats.proportions import wilson


class SessionRule(Struct, kw_only=True):
    """A rule in a session."""

    session_id: str
    agent: str
    agent_version: str | None
    model: str | None
    started_at: int | None
    exposure: str
    exposed_by: str
    """Why that is thought."""
    verdict: str
    """`kept`, `broken`, `cannot_tell`, `no_occasion`: of what was done, in force or not."""
    because: str
    kept: int
    broken: int
    untold: int
    marks: list[Mark]
    """Occasions, broken ones first."""


class RuleRow(Struct, kw_only=True):
    """A rule, and what became of it."""

    id: str
    """File, and what stays the same when the rule is put differently."""
    file: str
    line: int
    text: str
    kind: str
    when: str
    commands: list[str]
    instead_of: list[str]
    paths: list[str]
    branches: list[str]
    condition: str
    place: str | None
    """Where its sessions lie, of a rule that only traces show."""
    since: str | None
    """The commit that brought it."""
    since_at: int | None
    until: str | None
    until_at: int | None
    exposed: int
    kept: int
    """Sessions in which it was in force and always kept where that can be judged."""
    broken: int
    """Sessions in which it was in force and broken."""
    occasions_kept: int
    occasions_broken: int
    """Over all sessions in which it was in force."""
    no_occasion: int
    cannot_tell: dict[str, int]
    """Sessions of which nobody can tell, by why: whether it was in force, or what was done."""
    not_exposed: dict[str, int]
    """Sessions in which it was not in force, by why."""
    share: float | None
    """Kept among kept and broken."""
    low: float | None
    """Of Wilson's interval at 95 percent, over sessions."""
    high: float | None
    effect: Effect
    sessions: list[SessionRule] = field(default_factory=list)


class RulesReport(Struct, kw_only=True):
    """The mechanical rules of a repository, or of what traces show."""

    repo: str | None
    sessions: int
    files: dict[str, dict[str, int]]
    """Each instruction file with its versions, rules, and sentences that ask something else."""
    rules: list[RuleRow]
    cautions: list[str]


class Case(Struct):
    """A rule in a session, measured."""

    rule: Rule
    session: Session
    exposure: Exposure
    followed: Followed


def rules_report(
    repo: str | None,
    sessions: int,
    files: dict[str, dict[str, int]],
    measured: Sequence[tuple[Stated, Sequence[Case]]],
    cautions: Sequence[str],
) -> RulesReport:
    """The report of measured rules."""
    series = [_series(cases) for _, cases in measured]
    made = effects(
        series,
        [_others(n, series[n], measured) for n in range(len(measured))],
        [_meanwhile(stated, measured) for stated, _ in measured],
    )
    rows = [_row(stated, cases, effect) for (stated, cases), effect in zip(measured, made, strict=True)]
    rows.sort(key=lambda row: (-row.broken, -row.kept, row.file, row.line))
    return RulesReport(repo=repo, sessions=sessions, files=files, rules=rows, cautions=list(cautions))


def _series(cases: Sequence[Case]) -> list[Point]:
    points = []
    for case in cases:
        judged, session = case.followed.kept + case.followed.broken, case.session
        if session.started_at is None or case.exposure.state not in ("before", "exposed") or not judged:
            continue
        if case.followed.verdict == "cannot_tell":
            continue
        points.append(
            Point(
                session_id=session.session_id,
                at=session.started_at,
                is_after=case.exposure.state == "exposed",
                kept=_kept(case),
                agent=session.agent,
                model=session.model,
                agent_version=".".join((session.agent_version or "").split(".")[:2]) or None,
            )
        )
    return points


def _kept(case: Case) -> float:
    """The share of the occasions; of what must never be done one breach breaks it, however often there was a chance."""
    if case.rule.forbids:
        return float(not case.followed.broken)
    return case.followed.kept / (case.followed.kept + case.followed.broken)


def _others(n: int, points: Sequence[Point], measured: Sequence[tuple[Stated, Sequence[Case]]]) -> list[Point]:
    """The series of the rules that were in force in the sessions of both sides, as one."""
    sides = {point.session_id: point.is_after for point in points}
    values: dict[str, list[float]] = {}
    of: dict[str, Session] = {}
    for k, (_, cases) in enumerate(measured):
        there = {c.session.session_id: c for c in cases if c.exposure.state == "exposed"}
        if k == n or not {sides[s] for s in there if s in sides} >= {False, True}:
            continue
        for session_id, case in there.items():
            judged = case.followed.kept + case.followed.broken
            if session_id in sides and judged and case.followed.verdict != "cannot_tell":
                values.setdefault(session_id, []).append(_kept(case))
                of[session_id] = case.session
    return [
        Point(
            session_id=session_id,
            at=of[session_id].started_at or 0,
            is_after=sides[session_id],
            kept=sum(kept) / len(kept),
            agent=of[session_id].agent,
            model=of[session_id].model,
            agent_version=None,
        )
        for session_id, kept in values.items()
    ]


def _meanwhile(stated: Stated, measured: Sequence[tuple[Stated, Sequence[Case]]]) -> list[str]:
    first = stated.introduced
    if first is None:
        return []
    came = sum(o is not stated and o.introduced is not None and o.introduced.sha == first.sha for o, _ in measured)
    left = sum(o is not stated and o.withdrawn is not None and o.withdrawn.sha == first.sha for o, _ in measured)
    return [f"{n} other rules {what} with the same commit" for n, what in ((came, "came"), (left, "went")) if n]


def _row(stated: Stated, cases: Sequence[Case], effect: Effect) -> RuleRow:
    exposed = [c for c in cases if c.exposure.state == "exposed"]
    by = Counter(c.followed.verdict for c in exposed)
    untold = Counter(c.followed.because for c in exposed if c.followed.verdict == "cannot_tell")
    untold.update(c.exposure.why for c in cases if c.exposure.state == "unknown")
    n = by["kept"] + by["broken"]
    low, high = wilson(by["kept"], n) or (None, None)
    rule, first, last = stated.rule, stated.introduced, stated.withdrawn
    return RuleRow(
        id=f"{stated.path} {stated.key}",
        file=stated.path,
        line=rule.line,
        text=rule.text,
        kind=rule.kind,
        when=rule.when,
        commands=list(rule.commands),
        instead_of=list(rule.instead_of),
        paths=list(rule.paths),
        branches=list(rule.branches),
        condition=rule.condition,
        place=stated.place,
        since=first.sha if first else None,
        since_at=first.arrived_at if first else None,
        until=last.sha if last else None,
        until_at=last.arrived_at if last else None,
        exposed=len(exposed),
        kept=by["kept"],
        broken=by["broken"],
        occasions_kept=sum(c.followed.kept for c in exposed),
        occasions_broken=sum(c.followed.broken for c in exposed),
        no_occasion=by["no_occasion"],
        cannot_tell=dict(untold.most_common()),
        not_exposed=dict(
            Counter(c.exposure.why for c in cases if c.exposure.state not in ("exposed", "unknown")).most_common()
        ),
        share=by["kept"] / n if n else None,
        low=low,
        high=high,
        effect=effect,
        sessions=[_session(case) for case in cases],
    )


def _session(case: Case) -> SessionRule:
    session, followed = case.session, case.followed
    return SessionRule(
        session_id=session.session_id,
        agent=session.agent,
        agent_version=session.agent_version,
        model=session.model,
        started_at=session.started_at,
        exposure=case.exposure.state,
        exposed_by=case.exposure.why,
        verdict=followed.verdict,
        because=followed.because,
        kept=followed.kept,
        broken=followed.broken,
        untold=followed.untold,
        marks=followed.marks,
    )
