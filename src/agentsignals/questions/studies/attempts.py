"""Outcomes: attempts of eval runs and why they failed, and how people's sessions ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from agentsignals.questions.audit import UNKNOWN
from agentsignals.questions.charts import bars, dots
from agentsignals.questions.compare.candidate import task_sums
from agentsignals.questions.estimates import DOMINANT, Estimate, Sample, bar, by, chart, count, table
from agentsignals.questions.failure_map import (
    SIGNAL,
    class_text,
    failure_map,
    passes_text,
    question,
)
from agentsignals.questions.question import Finding, Inputs, Kind, Outcome, Part, Row, Study, formatted, interval, times
from agentsignals.questions.sql import declared, read_queries
from agentsignals.stats.intervals import rate_interval
from agentsignals.views.failure import OUTCOMES, RULES

read_queries(__file__)

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
_UNEVALUATED = "no attempt of this row was evaluated"
_SPENT: dict[str, tuple[str, str, Kind]] = {
    "cost": ("Cost", "USD", "usd"),
    "tokens": ("Input and output tokens", "tokens", "tokens"),
    "time": ("Time", "seconds", "seconds"),
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
    n = len(attempts)
    first, again = ([row for row in attempts if bool(row["attempt_index"]) == is_retry] for is_retry in (False, True))
    groups: dict[_Treatment, list[Row]] = {}
    for row in attempts:
        key = _Treatment(row["agent"], row["model"], row["dataset"], row["cap"], bool(row["attempt_index"]))
        groups.setdefault(key, []).append(row)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), [str(part) for part in pair[0]]))
    every = [(row["session_id"], 1, 1) for row in attempts]
    without_one = [(row["session_id"], not row["has_transcript"], 1) for row in attempts]
    findings = [count(n, n, evidence=every).finding("attempts.count", note=f"{len(again):,} of them retries")]
    for name, key_ in (("trials", "trial_id"), ("tasks", "task_id")):
        distinct = {row[key_] for row in attempts if row[key_]}
        findings.append(count(len(distinct), n, evidence=every).finding(f"attempts.{name}"))
    unread = count(sum(k for _, k, _ in without_one), n, evidence=without_one)
    findings.append(unread.finding("attempts.without_transcript"))
    # No single query takes some as not judged.
    unasked = {"sql": ""} if any(row["reason"] == _UNEVALUATED for row in first) else {}
    unasked_again = {"sql": ""} if any(row["reason"] == _UNEVALUATED for row in again) else {}
    asked: tuple[tuple[str, list[Row], Callable[[Row], bool | None], str, dict[str, str]], ...] = (
        ("solved", first, _is_solved, _bounds(first), unasked),
        ("retries_solved", again, _is_solved, declared("finding", "attempts.retries_solved")["note"], unasked_again),
        ("localized", first, lambda row: row["localized"], "", {}),
        ("first_tool", first, lambda row: row["precise"], "", {}),
    )
    for name, rows, holds, note, more in asked:
        estimate, n_tasks = _by_task(rows, holds)
        notes = "; ".join(part for part in (times(n_tasks, "task") if n_tasks else "", note) if part)
        findings.append(estimate.finding(f"attempts.{name}", note=notes, **more))
    findings += [_per_solved(key, first, unasked) for key in _SPENT]
    besides = [(row["session_id"], row["other_cost"], 1) for row in attempts if row["other_cost"] is not None]
    if besides:  # most harnesses count the agent alone
        paid = count(sum(cost for _, cost, _ in besides), len(besides), "usd", evidence=besides)
        findings.append(paid.finding("attempts.other_cost"))
    by_treatment: list[list[Any]] = []
    marks: list[Row] = []
    drawn_n = 0.0
    for treatment, of in ranked:
        labels, rungs = (Counter(row[key] for row in of) for key in ("label", "outcome"))
        solved, _ = _by_task(of, _is_solved)
        shares = [solved.value, *solved.ends, *_ends(of)]
        counts = [len(of), *(rungs[rung] for rung in OUTCOMES), *shares, *(labels[label] for label in _LABELS)]
        by_treatment.append([*treatment[:4], "retry" if treatment.retry else "first", *counts])
        if not treatment.retry and solved.n >= ENOUGH:
            cap = f", {treatment.cap:,} tool calls allowed" if treatment.cap is not None else ""
            name, share = f"{treatment.name}{cap}", formatted(solved.value, "share")
            marks.append(solved.mark(name, f"{name}: {share} of {solved.n:,.0f} attempts solved"))
            drawn_n += solved.n
    outcomes = " | ".join(f"{rung} {rung.replace('_', ' ')}:count" for rung in OUTCOMES)
    labelled = " | ".join(f"{label} {words} patch:count" for label, words in _LABELS.items())
    listed = sorted(attempts, key=lambda r: (r["label"] is None, _is_solved(r) is None, r["localized"] is None))
    listed = listed[:MOST_LISTED]
    yes = {None: None, True: "yes", False: "no"}
    each = [
        [
            *(r["task_id"], r["model"], (r["attempt_index"] or 0) + 1, _rung(r), _LABELS.get(r["label"], r["label"])),
            *(yes[r["localized"]], yes[r["precise"]], *(r[key] for key in _TESTS)),
            *(r["reward"], r["n_tool_calls"], r["session_id"]),
        ]
        for r in listed
    ]
    left = f"{n - len(each):,} more are not listed: `agentsignals query 'FROM attempts'` shows all."
    tests = " | ".join(f"{key} tests {words}:count" for key, words in _TESTS.items())
    tables = [
        table(
            "attempts.by_treatment",
            by_treatment,
            header="agent:code | model:code | dataset:code | cap tool calls allowed:count | attempt"
            f" | attempts:count | {outcomes} | share solved:share | ends:share"
            f" | worst if missing all failed:share | best if missing all solved:share | {labelled}",
            n=n,
            evidence=[[row["session_id"] for row in of] for _, of in ranked],
        ),
        table(
            "attempts.each",
            each,
            header="instance task:code | model:code | attempt:count | outcome | label patch | localized right file"
            f" | first_tool right file first | {tests} | reward:number | tool_calls tool calls:count | session:session",
            n=n,
            evidence=[[row["session_id"]] for row in listed],
            note=left if n > len(each) else "",
        ),
    ]
    of_rung = by([{**r, "rung": (r["outcome"] or "not_judged", _rung(r) or "not judged")} for r in first], "rung")
    rungs_drawn = [
        bar(rung[1], len(of), f"{rung[1]}: {len(of):,} of {len(first):,} attempts",
            evidence=[row["session_id"] for row in of])
        for rung, of in sorted(of_rung.items(), key=lambda pair: (OUTCOMES.index(pair[0][0]), -len(pair[1]), pair[0]))
    ]  # fmt: skip
    note = f"rows with at least {ENOUGH}; lines are 95% intervals over tasks; tasks differ, so not a ranking"
    charts = [
        chart("attempts.outcomes", rungs_drawn, bars("attempts"), n=len(first)),
        chart("attempts.solved", marks, dots("share of attempts"), n=drawn_n, note=note),
    ]
    limits = []
    if uncapped := sum(row["cap"] is None for row in attempts):
        limits.append(
            f"{uncapped:,} of {times(n, 'attempt')} without a recorded tool-call limit: a better result may come from a"
            " higher limit."
        )
    judged = [row for row in attempts if _is_solved(row) is not None]
    for key_, subject in (("dataset", "dataset"), ("model", "model"), ("task_id", "task")):
        for name, k in Counter(row[key_] for row in judged if row[key_]).most_common(1):
            if k > DOMINANT * len(judged):
                limits.append(f"{k:,} of {len(judged):,} attempts with an outcome are of one {subject}, {name}.")
    return Outcome(findings, tables, charts, limits)


def _evaluated(attempts: list[Row]) -> list[Row]:
    """The attempts; what failed by inference alone (no patch, no time left) as not judged where no verifier spoke of
    any with that treatment: only failures could be known there, as `compare` has it."""

    def who(row: Row) -> tuple[Any, ...]:
        return row["agent"], row["model"], row["dataset"]

    judged = {who(row) for row in attempts if _is_solved(row) is not None and not row["inferred"]}
    inferred = {"outcome": "not_judged", "reason": _UNEVALUATED}
    return [
        row | inferred if row["inferred"] and row["outcome"] == "failed" and who(row) not in judged else row
        for row in attempts
    ]


def _by_task(rows: list[Row], holds: Callable[[Row], bool | None]) -> tuple[Estimate, int]:
    """The share over tasks, and how many there are: attempts at one task are alike."""
    known = [(row, held) for row in rows if (held := holds(row)) is not None]
    parts: list[Part] = [(row["session_id"], held, 1) for row, held in known]
    tasks = (f"{row['dataset']}\n{row['task_id'] or row['session_id']}" for row, _ in known)
    pairs = list(task_sums(zip(tasks, (float(held) for _, held in known), strict=True)).values())
    k, n = sum(k for k, _ in pairs), sum(n for _, n in pairs)
    note = "interval over tasks, because attempts at one task are alike" if len(pairs) > 1 else ""
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
    low, high = _ends(rows)
    return interval(low, high, "{:.1%}", f"{{}} whatever the outcome of the {left_out}")


def _per_solved(key: str, first: list[Row], unasked: dict[str, str]) -> Finding:
    """Cost, tokens or time of all first attempts (failed ones too) for each solved one."""
    subject, unit, kind = _SPENT[key]
    measured = [row for row in first if _is_solved(row) is not None and row[key] is not None]
    solved = sum(row["outcome"] == "solved" for row in measured)
    value = sum(row[key] for row in measured) / solved if solved else None
    note = f"spent on failed attempts, too; {len(first) - len(measured):,} of {len(first):,} not measured or not judged"
    low = sum(bool(row["low"]) for row in measured) if key in _OF_OUTPUT else 0
    if low:
        note += f"; lower bound: {low:,} under-report output tokens"
    parts = [(row["session_id"], row[key], 1) for row in measured]
    return count(value, len(measured), kind, evidence=parts).finding(
        f"attempts.{key}_per_solved",
        f"{subject} per solved attempt",
        "judged attempts, retries excluded",
        note,
        unit=unit,
        at_least=low > 0,
        **unasked,
    )


def _rung(row: Row) -> str | None:
    """`failed: empty patch`; of a solved attempt nothing more."""
    outcome, reason = ((row[key] or "").replace("_", " ") for key in ("outcome", "reason"))
    return (f"{outcome}: {reason}" if reason and outcome != "solved" else outcome) or None


ATTEMPTS_STUDY = Study(**declared("study", "attempts"), function=attempts_study)


# -- Failures of eval runs

MOST_EXAMPLES = 5
"""Examples of each class; the verb's JSON and the page have all."""
_NEAR = {"line": "a line", "function": "a function", "file": "a file only", "elsewhere": "nothing"}
_CLASSED = f"FROM signals WHERE signal = '{SIGNAL}' AND absent IS NULL AND coalesce(attempt_index, 0) = 0"
_FAILED = "failed or aborted attempts, retries excluded"


def failures_study(inputs: Inputs) -> Outcome:
    made, places = failure_map(inputs.rows), inputs.rows["places"]
    first = [entry for entry in made.listed if not entry.attempt]

    def again(figure: str) -> str:
        """The query of a figure; no single query leaves out the candidates of whom nothing was evaluated."""
        return "" if made.unevaluated else f"SELECT {figure} {_CLASSED}"

    note = f"of {made.first_attempts:,} attempts; {len(made.listed) - len(first):,} retries failed too"
    every = count(made.failed, made.first_attempts, evidence=[(entry.session_id, 1, 1) for entry in first])
    findings = [every.finding("failures.count", title=_FAILED.capitalize(), note=note, sql=again("count(*)"))]
    # A share of each class that there is, in the order of the rules.
    shares = {share.name: share for share in made.classes}
    shown = []
    for rule in RULES:
        shown += [entry for entry in made.listed if entry.name == rule.name][:MOST_EXAMPLES]
        if (share := shares.get(rule.name)) is None:
            continue
        interval = None if share.low is None or share.high is None else (share.low, share.high)
        parts = [(entry.session_id, float(entry.name == rule.name), 1.0) for entry in first]
        note = (
            "interval over tasks, because attempts at one task are alike"
            if interval
            else "too few tasks for an interval"
        )
        of_class = Estimate(value=share.value, n=len(first), k=share.n, interval=interval, note=note, counted=parts)
        finding = of_class.finding(
            f"failures.{rule.name}",
            f"Failed: {class_text(rule.name)}",
            _FAILED,
            rule.means.rstrip("."),
            sql=again(f"avg(CAST(contains(value, '{rule.name}') AS INT))"),
            unit="share of what failed",
            signals=(SIGNAL,),
            classes=(rule.name,),
        )
        findings.append(finding)
    rows: list[list[Any]] = []
    behind: list[list[str]] = []
    for c in made.candidates:
        for share in c.classes:
            rows.append([c.name, class_text(share.name), share.n, c.failed, share.value, share.low, share.high])
            behind.append([f.session_id for f in first if (f.candidate, f.name) == (c.name, share.name)])
    # Distance of patches to the gold patch, of all attempts and of the failed ones.
    near: list[list[Any]] = []
    near_behind: list[list[str]] = []
    for level, common in _NEAR.items():
        of_level = [row for row in places if row["level"] == level]
        outcomes, n = Counter(row["outcome"] for row in of_level), len(of_level)
        if n:
            near.append([common, n, outcomes["solved"], outcomes["failed"], n / len(places)])
            near_behind.append([row["session_id"] for row in of_level])
    examples = [
        [class_text(f.name), f.because, f.file, f.seq, f.task, f.candidate, f.attempt + 1, f.session_id] for f in shown
    ]
    left = len(made.listed) - len(shown)
    # Passes that did not fail, and were not the agent's own.
    passes: list[list[Any]] = []
    for p in made.not_earned:
        seq = p.acts[0].get("seq") if p.acts else None
        passes.append([class_text(p.verdict), p.because, seq, p.task, p.candidate, p.attempt + 1, p.session_id])
    stronger = "Shares are of each candidate's own failures. A stronger candidate fails at harder tasks."
    more = f"{left:,} more are not listed. Run `agentsignals evals failures --json` to see all." if left else ""
    of_examples, of_passes = [[f.session_id] for f in shown], [[p.session_id] for p in made.not_earned]
    by_candidate = " ".join([*made.sentences, stronger])
    tables = [
        table("failures.by_candidate", rows, n=made.failed, evidence=behind, note=by_candidate),
        table("failures.places", near, n=len(places), evidence=near_behind),
        table("failures.examples", examples, n=len(made.listed), evidence=of_examples, note=more),
        table("failures.not_earned", passes, n=len(passes), evidence=of_passes, note=passes_text(made)),
    ]
    marks = []
    for share in made.classes:
        tip = f"{class_text(share.name)}: {share.n:,} of {made.failed:,} {_FAILED}"
        of = [f.session_id for f in first if f.name == share.name]
        marks.append(bar(class_text(share.name), share.n, tip, evidence=of))
    unknown = Counter(entry.because for entry in first if entry.name == UNKNOWN)
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in unknown.most_common())
    limits = [f"Why {unknown.total():,} of {made.failed:,} failed is undecided: {reasons}."] if unknown else []
    if not_judged := sum(c.not_judged for c in made.candidates):
        limits.append(f"{not_judged:,} attempts have no verdict.")
    drawn = chart("failures.classes", marks, bars("attempts"), n=made.failed)
    return Outcome(findings, tables, [drawn], limits)


FAILURES_STUDY = Study(**declared("study", "failures", **question().queries), function=failures_study)


# -- Outcomes of sessions

_OUTCOMES = {
    "accepted": "accepted",
    "explicitly_rejected": "rejected",
    "restarted_same_task": "restarted",
    "abandoned_mid_session": "abandoned",
}
_UNSEEN = "no verdict"
_EVIDENCE = {
    "git": "Git",
    "text": "words",
    "reopen": "next session",
    "cut": "interruption",
    "question": "open question",
}
"""Git: a commit or a reset; words: what the person said last; next session: the task was begun again; the last two: the
person stopped the agent, or owed it an answer, and never came back."""


def outcomes_study(inputs: Inputs) -> Outcome:
    everything = inputs.rows["outcomes"]
    judged = [row for row in everything if row["absent"] in (None, "none_found")]
    sample, total = Sample([row["session_id"] for row in judged], inputs.places), len(judged)
    labels = [row["label"] if row["absent"] is None else None for row in judged]
    kinds = [
        (_UNSEEN, "none") if row["absent"] is not None else (_OUTCOMES[row["label"]], _EVIDENCE[row["evidence"]])
        for row in judged
    ]
    ended = {row["session_id"] for row in judged}
    parts = [(row["session_id"], row["session_id"] not in ended, 1) for row in everything]
    censored = count(len(everything) - total, len(everything), evidence=parts)
    findings = [
        sample.among(labels, "accepted").finding("outcomes.accepted", classes=("accepted",)),
        sample.among(labels, "explicitly_rejected").finding("outcomes.rejected", classes=("explicitly_rejected",)),
        sample.among(labels, *_OUTCOMES).finding("outcomes.evidence"),
        censored.finding("outcomes.censored"),
    ]
    counted, ranks = Counter(kinds), [*_OUTCOMES.values(), _UNSEEN]
    rows: list[list[Any]] = []
    marks: list[Row] = []
    behind = []
    for kind in sorted(counted, key=lambda pair: (ranks.index(pair[0]), -counted[pair], pair)):
        how, evidence = kind
        n, estimate = counted[kind], sample.among(kinds, kind)
        rows.append([how, evidence, n, estimate.value, *estimate.ends])
        behind.append([s for s, k, _ in estimate.counted() if k])
        tip = f"{how}, evidence {evidence}: {n:,} of {total:,} sessions ({n / total:.1%})"
        marks.append(bar(how if evidence == "none" else f"{how} ({evidence})", n, tip, evidence=behind[-1]))
    by_evidence = table("outcomes.kinds", rows, n=total, evidence=behind)
    return Outcome(findings, [by_evidence], [chart("outcomes.kinds", marks, bars("sessions"), n=total)])


OUTCOMES_STUDY = Study(**declared("study", "outcomes"), function=outcomes_study)
