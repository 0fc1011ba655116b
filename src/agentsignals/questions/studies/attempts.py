"""Outcomes: attempts of eval runs and why they failed, and how people's sessions ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from agentsignals.questions.charts import bars, dots
from agentsignals.questions.estimates import DOMINANT, INTERVAL_NOTE, Estimate, Sample, bar, chart, count, table
from agentsignals.questions.failure_map import (
    SIGNAL,
    UNKNOWN,
    Failed,
    FailureMap,
    Share,
    class_text,
    failure_map,
    passes_text,
    question,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Finding, Inputs, Kind, Outcome, Part, Row, Study, Table
from agentsignals.questions.sql import declared, read_queries
from agentsignals.stats.intervals import rate_interval
from agentsignals.views.attempt_outcome import OUTCOMES
from agentsignals.views.failure import RULES

_SQL = read_queries(__file__)

_RUNG, _LOCALIZED, _PRECISE = (
    "verification.outcome",
    "behavior.localized_correct_file",
    "anticipation.first_tool_precision",
)
_LABELS = {
    "correct_patch": "correct",
    "partial_patch": "partial",
    "regressive_patch": "regressive",
    "no_effect_patch": "no effect",
    "unverifiable": "unverifiable",
}
_TESTS = {
    "fail_to_pass_count": "fixed",
    "pass_to_fail_count": "broken",
    "pass_to_pass_count": "kept",
    "fail_to_fail_count": "still failing",
}
MOST_LISTED = 100
"""Attempts in the table, those of which most is known first; beyond that it would be the page."""
_RUNGS = OUTCOMES
_UNEVALUATED = "nothing of this treatment was evaluated"
_HAS_OUTCOME = "outcome IN ('solved', 'failed')"
_SPENT: dict[str, tuple[str, str, Kind, str]] = {
    "cost": ("Cost", "USD", "usd", "coalesce(s.cost_usd, a.harness_cost_usd)"),
    "tokens": (
        "Tokens in and out",
        "tokens",
        "tokens",
        "coalesce(s.input_tokens + s.output_tokens, a.harness_input_tokens + a.harness_output_tokens)",
    ),
    "time": ("Time", "seconds", "seconds", "a.wall_time_s"),
}
_OF_OUTPUT = ("cost", "tokens")
"""Lower bounds where output is logged in mid-stream."""
ENOUGH = 5
"""First attempts a treatment needs to be drawn."""


class _Treatment(NamedTuple):
    """Facts that the attempts of a row share."""

    agent: str | None
    model: str | None
    dataset: str | None
    cap: int | None
    """Tool calls allowed; None: not recorded, or without limit."""
    retry: bool

    @property
    def name(self) -> str:
        return " · ".join(str(part) for part in (self.agent, self.model, self.dataset) if part) or "not recorded"


def attempts_study(inputs: Inputs) -> Outcome:
    attempts = _evaluated(inputs.rows["attempts"])
    first = [row for row in attempts if not row["attempt_index"]]
    groups: dict[_Treatment, list[Row]] = {}
    for row in attempts:
        key = _Treatment(row["agent"], row["model"], row["dataset"], row["cap"], bool(row["attempt_index"]))
        groups.setdefault(key, []).append(row)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), [str(part) for part in pair[0]]))
    every = [(row["session_id"], 1, 1) for row in attempts]
    without_one = [(row["session_id"], not row["has_transcript"], 1) for row in attempts]
    again = [row for row in attempts if row["attempt_index"]]
    n = len(attempts)
    sizes = [
        count(n, n, evidence=every).finding("attempts.count", note=f"{len(again):,} of them retries"),
        *(
            count(len({row[key] for row in attempts if row[key]}), n, evidence=every).finding(f"attempts.{name}")
            for name, key in (("trials", "trial_id"), ("tasks", "task_id"))
        ),
        count(sum(k for _, k, _ in without_one), n, evidence=without_one).finding("attempts.without_transcript"),
    ]
    asked: tuple[tuple[str, list[Row], Callable[[Row], bool | None], str], ...] = (
        ("solved", first, _is_solved, _bounds(first)),
        ("retries_solved", again, _is_solved, declared("finding", "attempts.retries_solved")["note"]),
        ("localized", first, lambda row: row["localized"], ""),
        ("first_tool", first, lambda row: row["precise"], ""),
    )
    findings = []
    for name, rows, holds, note in asked:
        estimate, n_tasks = _by_task(rows, holds)
        notes = "; ".join(part for part in (f"{n_tasks:,} tasks" if n_tasks else "", note) if part)
        unasked = {"sql": ""} if holds is _is_solved and _is_unevaluated(rows) else {}
        findings.append(estimate.finding(f"attempts.{name}", note=notes, **unasked))
    treatment_rows: list[list[Any]] = []
    for treatment, treatment_attempts in ranked:
        labels, rungs = (Counter(row[key] for row in treatment_attempts) for key in ("label", "outcome"))
        solved, _ = _by_task(treatment_attempts, _is_solved)
        shares = [solved.value, *solved.ends, *_ends(treatment_attempts)]
        counts = [
            len(treatment_attempts),
            *(rungs[rung] for rung in _RUNGS),
            *shares,
            *(labels[label] for label in _LABELS),
        ]
        treatment_rows.append([*treatment[:4], "retry" if treatment.retry else "first", *counts])
    outcomes = " | ".join(f"{rung} {rung.replace('_', ' ')}:count" for rung in _RUNGS)
    labelled = " | ".join(f"{label} {words} patch:count" for label, words in _LABELS.items())
    listed = sorted(attempts, key=lambda r: (r["label"] is None, _is_solved(r) is None, r["localized"] is None))
    each_rows = [
        [
            *(r["task_id"], r["model"], (r["attempt_index"] or 0) + 1, _rung(r), _LABELS.get(r["label"], r["label"])),
            *(_yes(r["localized"]), _yes(r["precise"]), *(r[key] for key in _TESTS)),
            *(r["reward"], r["n_tool_calls"], r["session_id"]),
        ]
        for r in listed[:MOST_LISTED]
    ]
    left = len(attempts) - len(each_rows)
    tests = " | ".join(f"{key} tests {words}:count" for key, words in _TESTS.items())
    return Outcome(
        [
            *sizes,
            *findings,
            *_per_solved(first),
        ],
        [
            table(
                "attempts.by_treatment",
                treatment_rows,
                header="agent:code | model:code | dataset data set:code | cap tool calls allowed:count | attempt"
                f" | attempts:count | {outcomes} | share of known solved:share | ends:share"
                f" | worst if all missing failed:share | best if all were solved:share | {labelled}",
                n=n,
                evidence=[[row["session_id"] for row in treatment_attempts] for _, treatment_attempts in ranked],
            ),
            table(
                "attempts.each",
                each_rows,
                header="instance:code | model:code | attempt:count | outcome | label patch | localized right file"
                f" | first_tool first look right | {tests} | reward:number | tool_calls tool calls:count"
                " | session:session",
                n=len(attempts),
                evidence=[[row["session_id"]] for row in listed[:MOST_LISTED]],
                note=f"{left:,} more are not listed: agentsignals query 'FROM attempts' shows all." if left else "",
            ),
        ],
        [_outcomes_chart(first), _solved_chart(ranked)],
        _attempts_limits(attempts),
    )


def _evaluated(attempts: list[Row]) -> list[Row]:
    """The attempts; what failed by inference alone (no patch, no time left) as not judged where no verifier spoke of
    any with that treatment: only failures could be known there, as `compare` has it."""
    judged = {_who(row) for row in attempts if row["outcome"] in ("solved", "failed") and not row["inferred"]}
    inferred = {"outcome": "not_judged", "reason": _UNEVALUATED}
    return [
        row | inferred if row["inferred"] and row["outcome"] == "failed" and _who(row) not in judged else row
        for row in attempts
    ]


def _is_unevaluated(rows: list[Row]) -> bool:
    """Tell whether some were taken as not judged, which no single query does."""
    return any(row["reason"] == _UNEVALUATED for row in rows)


def _who(row: Row) -> tuple[Any, ...]:
    return row["agent"], row["model"], row["dataset"]


def _by_task(rows: list[Row], holds: Callable[[Row], bool | None]) -> tuple[Estimate, int]:
    """The share over tasks, and how many there are: attempts at one task are alike."""
    counted: dict[tuple[str | None, str], list[int]] = {}
    parts: list[Part] = []
    for row in rows:
        held = holds(row)
        if held is not None:
            parts.append((row["session_id"], held, 1))
            pair = counted.setdefault((row["dataset"], row["task_id"] or row["session_id"]), [0, 0])
            pair[0] += held
            pair[1] += 1
    pairs = [(float(k), float(n)) for k, n in counted.values()]
    k, n = sum(k for k, _ in pairs), sum(n for _, n in pairs)
    note = "the interval is over tasks" if len(pairs) > 1 else ""
    share = Estimate(value=k / n if n else None, n=n, k=k, interval=rate_interval(pairs), note=note, counted=parts)
    return share, len(pairs)


def _is_solved(row: Row) -> bool | None:
    return bool(row["outcome"] == "solved") if row["outcome"] in ("solved", "failed") else None


def _ends(rows: list[Row]) -> tuple[float, float] | tuple[None, None]:
    """The share if all without an outcome had failed, and if all were solved."""
    counted = Counter(row["outcome"] for row in rows)
    solved, failed = counted["solved"], counted["failed"]
    return (solved / len(rows), (len(rows) - failed) / len(rows)) if rows else (None, None)


def _bounds(rows: list[Row]) -> str:
    missing = Counter(row["outcome"] or "not judged" for row in rows if _is_solved(row) is None)
    if not missing:
        return ""
    left_out = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in missing.most_common())
    low, high = (formatted(end, "share") for end in _ends(rows))
    return f"{low} to {high} whatever came of the {left_out}"


def _per_solved(first: list[Row]) -> list[Finding]:
    """Cost, tokens and time of all first attempts (failed ones too) for each solved one."""
    findings = []
    for key, (subject, unit, kind, sql) in _SPENT.items():
        measured = [row for row in first if _is_solved(row) is not None and row[key] is not None]
        solved = sum(row["outcome"] == "solved" for row in measured)
        value = sum(row[key] for row in measured) / solved if solved else None
        title = f"{subject} for each first attempt that was solved"
        note = (
            f"with what the failed ones took; {len(first) - len(measured):,} of {len(first):,} not measured or judged"
        )
        of = "first attempts with an outcome"
        asked = (
            f"SELECT sum({sql}) / nullif(count(*) FILTER (outcome = 'solved'), 0) FROM attempts a JOIN sessions s"
            f" USING (session_id) WHERE coalesce(a.attempt_index, 0) = 0 AND {_HAS_OUTCOME} AND {sql} IS NOT NULL"
        )
        bounds = sum(bool(row["low"]) for row in measured) if key in _OF_OUTPUT else 0
        note += f"; at least: {bounds:,} log output in mid-stream" * bool(bounds)
        parts = [(row["session_id"], row[key], 1) for row in measured]
        estimate, name = count(value, len(measured), kind, evidence=parts), f"attempts.{key}_per_solved"
        command = "" if _is_unevaluated(first) else asked
        findings.append(estimate.finding(name, title, of, note, unit=unit, sql=command, at_least=bounds > 0))
    return findings


def _rung(row: Row) -> str | None:
    """`failed: empty patch`; of a solved attempt nothing more."""
    outcome, reason = ((row[key] or "").replace("_", " ") for key in ("outcome", "reason"))
    return (f"{outcome}: {reason}" if reason and outcome != "solved" else outcome) or None


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _outcomes_chart(first: list[Row]) -> Chart | None:
    of_rung: dict[tuple[str, str], list[str]] = {}
    for row in first:
        rung = row["outcome"] or "not_judged", _rung(row) or "not judged"
        of_rung.setdefault(rung, []).append(row["session_id"])
    counted = {rung: len(ids) for rung, ids in of_rung.items()}
    order = sorted(counted, key=lambda pair: (_RUNGS.index(pair[0]), -counted[pair], pair))
    tip = f"of {len(first):,} first attempts"
    rows = [
        bar(rung[1], counted[rung], f"{rung[1]}: {counted[rung]:,} {tip}", evidence=of_rung[rung]) for rung in order
    ]
    spec = bars(rows, "first attempts")
    return chart("attempts.outcomes", rows, spec, n=len(first))


def _solved_chart(ranked: list[tuple[_Treatment, list[Row]]]) -> Chart | None:
    rows: list[Row] = []
    n = 0.0
    for treatment, attempts in ranked:
        solved, _ = _by_task(attempts, _is_solved)
        if treatment.retry or solved.n < ENOUGH:
            continue
        name = f"{treatment.name}{f', {treatment.cap:,} tool calls allowed' if treatment.cap is not None else ''}"
        share = formatted(solved.value, "share")
        rows.append(solved.mark(name, f"{name}: {share} of {solved.n:,.0f} first attempts solved"))
        n += solved.n
    return chart(
        "attempts.solved",
        rows,
        dots(rows, "share of first attempts"),
        n=n,
        note=f"treatments with at least {ENOUGH}; {INTERVAL_NOTE}; tasks differ, so this is no ranking",
    )


def _attempts_limits(attempts: list[Row]) -> list[str]:
    limits = []
    uncapped = sum(row["cap"] is None for row in attempts)
    if uncapped:
        limits.append(
            f"{uncapped:,} of {len(attempts):,} attempts do not record how many tool calls they were allowed: whether a"
            " candidate did better, or was only allowed more, can't be told of them."
        )
    judged = [row for row in attempts if _is_solved(row) is not None]
    for key, subject in (("dataset", "data set"), ("model", "model"), ("task_id", "task")):
        counted = Counter(row[key] for row in judged if row[key])
        (name, n) = counted.most_common(1)[0] if counted else ("", 0)
        if n > DOMINANT * len(judged):
            limits.append(f"{n:,} of {len(judged):,} attempts with an outcome are of one {subject}, {name}.")
    return limits


ATTEMPTS_STUDY = Study(**declared("study", "attempts"), queries=_SQL["attempts"], function=attempts_study)


# -- Failures of eval runs

MOST_EXAMPLES = 5
"""Examples of each class; the verb's JSON and the page have all."""
_NEAR = {"line": "a line", "function": "a function", "file": "a file alone", "elsewhere": "nothing"}
_CLASSED = f"FROM signals WHERE signal = '{SIGNAL}' AND absent IS NULL AND coalesce(attempt_index, 0) = 0"
_FAILED = "first attempts that failed or were broken off"


def failures_study(inputs: Inputs) -> Outcome:
    return outcome_of(failure_map(inputs.rows), inputs.rows["places"])


def outcome_of(made: FailureMap, places: list[Row]) -> Outcome:
    """The map as figures and tables. `places`: how near each patch came, with what came of its attempt."""
    first = [entry for entry in made.listed if not entry.attempt]
    rows: list[list[Any]] = []
    behind: list[list[str]] = []
    for candidate in made.candidates:
        for share in candidate.classes:
            rows.append(
                [candidate.name, class_text(share.name), share.n, candidate.failed, share.value, share.low, share.high]
            )
            behind.append([f.session_id for f in first if (f.candidate, f.name) == (candidate.name, share.name)])
    # Distance of patches to the gold patch, of all attempts and of the failed ones.
    near_rows: list[list[Any]] = []
    near_behind: list[list[str]] = []
    for level, common in _NEAR.items():
        ids = [row["session_id"] for row in places if row["level"] == level]
        outcomes = Counter(row["outcome"] for row in places if row["level"] == level)
        if ids:
            near_rows.append([common, len(ids), outcomes["solved"], outcomes["failed"], len(ids) / len(places)])
            near_behind.append(ids)
    shown = [
        entry for rule in RULES for entry in [entry for entry in made.listed if entry.name == rule.name][:MOST_EXAMPLES]
    ]
    examples_rows = [
        [class_text(f.name), f.because, f.file, f.seq, f.task, f.candidate, f.attempt + 1, f.session_id] for f in shown
    ]
    left = len(made.listed) - len(shown)
    tables = [
        table(
            "failures.by_candidate",
            rows,
            n=made.failed,
            evidence=behind,
            note=" ".join(
                [*made.sentences, "A stronger candidate fails at harder tasks: shares are of what each failed at."]
            ),
        ),
        table("failures.places", near_rows, n=len(places), evidence=near_behind),
        table(
            "failures.examples",
            examples_rows,
            n=len(made.listed),
            evidence=[[f.session_id] for f in shown],
            note=f"{left:,} more are not listed: agentsignals failures --json has all." if left else "",
        ),
        _not_earned(made),
    ]
    note = f"of {made.first_attempts:,} first attempts; {len(made.listed) - len(first):,} retries failed, too"
    every = [(entry.session_id, 1, 1) for entry in first]
    # A share of each class that there is, in the order of the rules.
    shares = {share.name: share for share in made.classes}
    unknown = Counter(entry.because for entry in first if entry.name == UNKNOWN)
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in unknown.most_common())
    not_judged = sum(candidate.not_judged for candidate in made.candidates)
    limits = [f"Why {unknown.total():,} of {made.failed:,} failed can't be told: {reasons}."] if unknown else []
    if not_judged:
        limits.append(f"{not_judged:,} first attempts were never judged: whether they failed is not known.")
    failures_rows = [
        bar(class_text(share.name), share.n, f"{class_text(share.name)}: {share.n:,} of {made.failed:,} {_FAILED}",
            evidence=[f.session_id for f in first if f.name == share.name])
        for share in made.classes
    ]  # fmt: skip
    return Outcome(
        [
            count(made.failed, made.first_attempts, evidence=every).finding(
                "failures.count", title=_FAILED.capitalize(), note=note, sql=_again(made, "count(*)")
            ),
            *[
                _estimate(shares[rule.name], first).finding(
                    f"failures.{rule.name}",
                    f"Failed: {class_text(rule.name)}",
                    _FAILED,
                    rule.means.rstrip("."),
                    sql=_again(made, f"avg(CAST(contains(value, '{rule.name}') AS INT))"),
                    unit="share of what failed",
                    signals=(SIGNAL,),
                    classes=(rule.name,),
                )
                for rule in RULES
                if rule.name in shares
            ],
        ],
        tables,
        [chart("failures.classes", failures_rows, bars(failures_rows, "attempts"), n=made.failed)],
        limits,
    )


def _again(made: FailureMap, figure: str) -> str:
    """The query of a figure; no single query leaves out the candidates of whom nothing was evaluated."""
    return "" if made.unevaluated else f"SELECT {figure} {_CLASSED}"


def _estimate(share: Share, first: list[Failed]) -> Estimate:
    interval = None if share.low is None or share.high is None else (share.low, share.high)
    parts = [(entry.session_id, float(entry.name == share.name), 1.0) for entry in first]
    note = "the interval is over tasks" if interval else "too few tasks for an interval"
    return Estimate(value=share.value, n=len(first), k=share.n, interval=interval, note=note, counted=parts)


def _not_earned(made: FailureMap) -> Table:
    """Passes that did not fail, and were not the agent's own."""
    rows = [
        [
            class_text(p.verdict),
            p.because,
            p.acts[0].get("seq") if p.acts else None,
            p.task,
            p.candidate,
            p.attempt + 1,
            p.session_id,
        ]
        for p in made.not_earned
    ]
    return table(
        "failures.not_earned",
        rows,
        n=len(rows),
        evidence=[[p.session_id] for p in made.not_earned],
        note=passes_text(made),
    )


FAILURES_STUDY = Study(
    **declared("study", "failures"), queries={**_SQL["failures"], **question().queries}, function=failures_study
)


# -- Outcomes of sessions

_OUTCOMES = {
    "accepted": "accepted",
    "explicitly_rejected": "rejected",
    "restarted_same_task": "begun again",
    "abandoned_mid_session": "left off",
}
_UNSEEN = "no verdict"
_EVIDENCE = {
    "git": "Git",
    "text": "words",
    "reopen": "next session",
    "cut": "response cut short",
    "question": "question left open",
}
"""Git: a commit or a reset; words: what the person said last; next session: the task was begun again; the last two: the
person stopped the agent, or owed it an answer, and never came back."""


def outcomes_study(inputs: Inputs) -> Outcome:
    judged = [row for row in inputs.rows["outcomes"] if row["absent"] in (None, "none_found")]
    kinds_of = [_ended(row) for row in judged]
    sample = Sample([row["session_id"] for row in judged], inputs.places)
    counted, total = Counter(kinds_of), len(judged)
    ranks = {name: i for i, name in enumerate((*_OUTCOMES.values(), _UNSEEN))}
    rows: list[list[Any]] = []
    marks: list[Row] = []
    behind = []
    for ended, evidence in sorted(counted, key=lambda pair: (ranks[pair[0]], -counted[pair], pair)):
        n = counted[ended, evidence]
        estimate = sample.among(kinds_of, (ended, evidence))
        rows.append([ended, evidence, n, estimate.value, *estimate.ends])
        behind.append([s for s, k, _ in estimate.counted() if k])
        tip = f"{ended}, evidence {evidence}: {n:,} of {total:,} sessions ({n / total:.1%})"
        marks.append(bar(ended if evidence == "none" else f"{ended} ({evidence})", n, tip, evidence=behind[-1]))
    by_evidence = table("outcomes.kinds", rows, n=total, evidence=behind)
    kinds = chart("outcomes.kinds", marks, bars(marks, "sessions"), n=total)
    return Outcome(_outcomes_findings(judged, sample, inputs.rows["outcomes"]), [by_evidence], [kinds])


def _ended(row: Row) -> tuple[str, str]:
    """Return a session's outcome and its evidence."""
    if row["absent"] is not None:
        return _UNSEEN, "none"
    return _OUTCOMES[row["label"]], _EVIDENCE[row["evidence"]]


def _outcomes_findings(judged: list[Row], sample: Sample, rows: list[Row]) -> list[Finding]:
    labels = [row["label"] if row["absent"] is None else None for row in judged]
    shares = [
        sample.among(labels, "accepted").finding("outcomes.accepted", classes=("accepted",)),
        sample.among(labels, "explicitly_rejected").finding("outcomes.rejected", classes=("explicitly_rejected",)),
        sample.among(labels, *_OUTCOMES).finding("outcomes.evidence"),
    ]
    ended, n = {row["session_id"] for row in judged}, len(rows)
    parts = [(row["session_id"], row["session_id"] not in ended, 1) for row in rows]
    censored = count(n - len(judged), n, evidence=parts).finding("outcomes.censored")
    return [*shares, censored]


OUTCOMES_STUDY = Study(**declared("study", "outcomes"), queries=_SQL["outcomes"], function=outcomes_study)
