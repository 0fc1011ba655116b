"""Verbs about attempts of eval runs: `failures`, `audit`, `align`, `drivers`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import asdict

import agentsignals
from agentsignals.cli.analyze import selected_store
from agentsignals.cli.output import Printed, json_text, print_result
from agentsignals.errors import UsageError
from agentsignals.model.registry import did_you_mean
from agentsignals.questions import alignment, audit, failure_map
from agentsignals.questions.alignment import Alignment, Place, Step
from agentsignals.questions.audit import AuditReport, rate_text
from agentsignals.questions.compare.attempts import answer_over_attempts
from agentsignals.questions.drivers import Drivers
from agentsignals.questions.drivers.predictors import Models
from agentsignals.questions.failure_map import FailureMap, class_text, passes_text
from agentsignals.questions.question import interval, part_text, times
from agentsignals.redaction import redacted_in
from agentsignals.store import Store
from agentsignals.store.query import ask, connect

_LISTED = 25


def _answer(options: argparse.Namespace, question: Callable[..., Any], as_text: Callable[..., str]) -> int:
    by, where = options.by, options.where
    made = redacted_in(answer_over_attempts(selected_store(options), question(by, where), where=where))
    return print_result(options, made, lambda of: as_text(of, as_markdown=options.markdown))


# `failures`: why attempts of eval runs failed, by candidate.

_EXAMPLES = 3
"""Examples of each class; --json has all."""


def run_failures(options: argparse.Namespace) -> int:
    return _answer(options, failure_map.question, failures_text)


def failures_text(made: FailureMap, *, as_markdown: bool = False) -> str:
    head = (
        f"{made.failed:,} of {made.first_attempts:,} attempts failed or were aborted, retries excluded; candidates by"
        f" {', '.join(made.by)}"
    )
    candidates = []
    for c in made.candidates[:_LISTED]:
        classes = ", ".join(f"{class_text(s.name)} {s.n:,}" for s in c.classes)
        candidates.append((c.name, c.first_attempts, c.not_judged, c.not_earned, c.failed, classes))
    examples = [
        (
            class_text(entry.name),
            "; ".join(filter(None, (entry.because, entry.shared))),
            entry.file or "",
            entry.session_id,
            entry.seq,
        )
        for share in made.classes
        for entry in [entry for entry in made.listed if entry.name == share.name][:_EXAMPLES]
    ]
    unearned = [
        (class_text(p.verdict), p.because, p.candidate, p.session_id, p.acts[0].get("seq") if p.acts else "")
        for p in made.not_earned[:_LISTED]
    ]
    answer = Printed(markdown=as_markdown, widest=70)
    answer.lines([head], "")
    shares = [
        (class_text(share.name), part_text(share.n, made.failed, share.low, share.high)) for share in made.classes
    ]
    answer.table(("class", "share of failed attempts"), shares)
    names = ("candidate", "attempts", "not judged", "reward hacking", "failed", "by")
    answer.table(names, candidates, "by candidate", optional=("reward hacking", "not judged"))
    answer.table(("class", "because", "file", "session", "event"), examples, "examples")
    answer.table(("verdict", "because", "candidate", "session", "event"), unearned, "passes by reward hacking")
    sentences = [*made.sentences, *([sentence] if (sentence := passes_text(made)) else [])]
    if more := len(made.not_earned) - len(unearned):
        sentences.append(f"and {more} more passes (--json has all)")
    if left := len(made.candidates) - len(candidates):
        sentences.append(f"and {left} more candidates (--json has all)")
    answer.lines(sentences)
    return str(answer)


# `audit`: whether passed attempts of eval runs were earned.

_VERDICTS = ("derived", "retrieved", "verifier_touched", "cannot_tell")
_READ = "agentsignals evals audit --reader openai:MODEL@URL"
_OF_READER = ("dry_run", "concurrency", "per_minute", "window", "timeout", "redact")


def run_audit(options: argparse.Namespace) -> int:
    if options.reader is not None:
        from agentsignals.cli.labelling import read_passes

        # What can't be answered is refused before a model is paid.
        answer_over_attempts(selected_store(options), audit.question(options.by, options.where), where=options.where)
        status = read_passes(options)
        if status is not None:
            return status
    elif given := [f"--{name.replace('_', '-')}" for name in _OF_READER if getattr(options, name) not in (None, False)]:
        raise UsageError(f"{given[0]} needs --reader.", "Add --reader openai:MODEL@URL.")
    return _answer(options, audit.question, audit_text)


def audit_text(made: AuditReport, *, as_markdown: bool = False) -> str:
    counts = ", ".join(f"{made.passed.get(verdict, 0):,} {verdict.replace('_', ' ')}" for verdict in _VERDICTS)
    judged = [c for c in made.candidates if c.resolved.of]
    candidates = [
        (
            c.name,
            rate_text(c.resolved),
            rate_text(c.earned, c.earned_at_most),
            *(c.passed.get(v, 0) for v in _VERDICTS[1:]),
        )
        for c in [made.everyone, *(judged[:_LISTED] if len(made.candidates) > 1 else [])]
    ]
    lines: list[tuple[Any, ...]] = []
    for entry in made.listed:
        # What has no event to look at is counted by its reason below.
        if entry.acts and entry.verdict != "derived":
            places = (entry.acts[0].get("seq"), entry.acts[0].get("from_seq", ""))
            lines.append((entry.verdict.replace("_", " "), entry.because, entry.session_id, *places))
    hint = "" if made.readers else f"; `{_READ}` has a model read each pass"
    answer = Printed(markdown=as_markdown, widest=90)
    answer.lines([f"{sum(made.passed.values()):,} attempts passed, retries excluded: {counts}", made.read + hint], "")
    names = ("candidate", "resolved", "earned", "retrieved", "verifier touched", "cannot tell")
    answer.table(names, candidates, "resolve rate")
    if silent := len(made.candidates) - len(judged):
        answer.lines([f"{times(silent, 'candidate')} without a verdict left out"])
    flagged = [task for task in made.tasks if task.unearned.n]
    tasks = [
        (
            t.task,
            part_text(t.unearned.n, t.unearned.of, t.unearned.low, t.unearned.high),
            *(t.retrieved, t.verifier_touched, t.special_cased, t.cannot_tell),
            part_text(t.resolved.n, t.resolved.of, None, None),
        )
        for t in flagged[:_LISTED]
    ]
    of_tasks = ("task", "of its passes", "retrieved", "verifier touched", "special-cased", "cannot tell", "resolved")
    passed = times(len(made.tasks), "passed task")
    title = f"tasks passed by reward hacking: {len(flagged):,} of {passed}"
    title += f", of which {_LISTED} are listed (--json has all)" if len(flagged) > _LISTED else ""
    answer.table(of_tasks, tasks, title, optional=of_tasks[2:])
    answer.lines([] if tasks else [title], "")
    answer.table(("verdict", "because", "session", "event", "shown at"), lines[:_LISTED], "passes to look at")
    reasons = sorted(made.cannot_tell.items(), key=lambda item: -item[1])[:_LISTED]
    answer.table(("why", "passes"), reasons, "cannot tell, why")
    more = [f"and {len(lines) - _LISTED} more (--json has all)"] if len(lines) > _LISTED else []
    answer.lines([*more, made.caveat])
    return str(answer)


# `align`: runs of one task beside each other, and where they part.

_FILES = 5


def run_align(options: argparse.Namespace) -> int:
    store = Store(options.store)
    if (bool(options.sessions), options.task is not None, options.trial is not None).count(True) != 1:
        raise UsageError("No runs were chosen.", "Choose them by session id, by --task or by --trial.")
    connection = connect(store)
    if options.sessions:
        ids = [store.resolve(name) for name in options.sessions]
    else:
        of_task = options.task is not None
        query, name = (alignment.OF_TASK, options.task) if of_task else (alignment.OF_TRIAL, options.trial)
        ids = list(dict.fromkeys(row["session_id"] for row in ask(connection, query, {"name": name})))
    is_cut = not options.sessions and len(ids) > alignment.MOST_RUNS
    ids = ids[: alignment.MOST_RUNS] if is_cut else ids
    if not 2 <= len(ids) <= alignment.MOST_RUNS:
        came = "one run" if len(ids) == 1 else f"{len(ids)} runs"
        near, asked = "", options.task or options.trial
        if asked:
            known = ask(connection, "SELECT DISTINCT unnest([task_id, trial_id]) AS name FROM attempts")
            near = did_you_mean(asked, [row["name"] for row in known if row["name"] not in (None, asked)])
        lists = '`agentsignals query "SELECT task_id, count(*) FROM attempts GROUP BY 1"` lists the tasks.'
        raise UsageError(
            f"Found {came} with tool calls; align compares 2 to {alignment.MOST_RUNS}.", f"{near} {lists}".lstrip()
        )
    facts = {row["session_id"]: row for row in ask(connection, alignment.FACTS, {"ids": ids})}
    sessions = [store.session(session_id) for session_id in ids]
    if options.task is not None:  # the one that the others are compared with goes first
        reference = alignment.reference_of(sessions, facts)
        sessions = [reference, *(s for s in sessions if s is not reference)]
    made = alignment.align(sessions, facts)
    if options.json:
        print(json_text(redacted_in({"alignments": [_as_plain(each) for each in made], "is_cut": is_cut})))
    else:
        print(_alignments_text(made, markdown=options.markdown))
        if is_cut:
            print(f"These are the first {alignment.MOST_RUNS} runs; SESSION names others.")
    return 0


def _alignments_text(made: Sequence[Alignment], *, markdown: bool) -> str:
    """Show runs compared with the first: a row a run, where each diverges, and the next calls of both sides."""
    answer = Printed(markdown=markdown, widest=90, cut=True)
    runs: list[tuple[Any, ...]] = []
    for run in [made[0].left, *(each.right for each in made)]:
        attempt = "" if run.attempt_index is None else f", attempt {run.attempt_index + 1}"
        who = f"{run.model or run.agent}{attempt}"
        runs.append((len(runs) + 1, run.session_id, who, run.outcome, run.patch, run.ended, run.calls, run.failed))
    names: tuple[str, ...] = ("run", "session", "model, or agent", "outcome", "patch", "ended", "calls", "failed")
    answer.table(names, redacted_in(runs))

    def at(place: Place | None) -> str:
        return "never" if place is None else f"{place.left}, {place.right}"

    rows = []
    for n, each in enumerate(made, 2):
        apart, parting = each.divergence, each.divergence.parts
        shared = "" if apart.changes_shared is None else f"{apart.changes_shared:.0%}"
        basis, sure = ("", "") if parting is None else (parting.basis, "yes" if parting.sure else "no")
        places = (at(apart.differs), at(apart.strays), at(None if parting is None else parting.place))
        rows.append((f"1 × {n}", each.same, each.alike, *places, basis, sure, shared))
    names = ("run", "same", "alike", "differ at", "stray at", "part at", "because", "sure", "lines changed alike")
    answer.table(names, rows)
    explained = (
        "Calls of the first and of the other, counted from 1. Differ: the first unequal call. Stray: the first step"
        " the other never takes. Part: the first divergence for good."
    )
    answer.lines([explained], "")
    for n, each in enumerate(made, 2):
        parting = each.divergence.parts
        if parting is None:
            continue
        place = parting.place
        parted = f"they diverge at call {place.left} of 1 and {place.right} of {n}; {_because(each)}."
        answer.lines([f"1 × {n}: {parted}"], "## ")
        for which, start, side in ((1, place.left, parting.left), (n, place.right, parting.right)):
            files = ", ".join(redacted_in(side.only[:_FILES])) + (" …" if len(side.only) > _FILES else "")
            rest = f"{side.steps:,} calls, {side.failed:,} failed" + (f"; only here: {files}" if files else "")
            answer.lines([f"{which} then: {rest if side.steps else 'the run had ended'}"], "")
            steps = [(start + k, s.seq, s.tool, s.about, s.error or s.status) for k, s in enumerate(side.next)]
            answer.table(("call", "event", "tool", "about", "status"), redacted_in(steps))
    if together := [str(n) for n, each in enumerate(made, 2) if each.divergence.parts is None]:
        answer.lines([f"1 × {', '.join(together)}: no divergence."], "## ")
    return str(answer)


def _because(each: Alignment) -> str:
    parting = each.divergence.parts
    if parting is None:
        return ""
    return alignment.BECAUSE[parting.basis] + (f" (uncertain: {parting.unsure})" if parting.unsure else "")


def _as_plain(each: Alignment) -> dict[str, Any]:
    """Return an alignment for a machine: steps as a reader sees them, without what they are compared by."""

    def step(shown: Step | None) -> dict[str, Any] | None:
        names = ("seq", "kind", "tool", "about", "status", "error")
        return None if shown is None else {name: getattr(shown, name) for name in names}

    made, apart, parting = asdict(each), asdict(each.divergence), each.divergence.parts
    made["rows"] = [{"how": row.how, "left": step(row.left), "right": step(row.right)} for row in each.rows]
    if parting is not None:
        apart["parts"] = asdict(parting) | {"because": _because(each)}
        for name, side in (("left", parting.left), ("right", parting.right)):
            apart["parts"][name] = asdict(side) | {"next": [step(s) for s in side.next]}
    return made | {"divergence": apart}


# `drivers`: which signals go with success within task and treatment.

_LISTED_DRIVERS, _REASONS, _WORTH, _ALL = 40, 6, 12, 1000


def run_drivers(options: argparse.Namespace) -> int:
    if not 0 < options.false_discoveries < 1:
        raise UsageError(
            f"--false-discoveries {options.false_discoveries:g} is not a share between 0 and 1.", "For example 0.05."
        )
    made = agentsignals.drivers(
        selected_store(options),
        options.by,
        outcome=options.outcome,
        treatments=options.treatments,
        within=options.within,
        keep=options.keep,
        false_discoveries=options.false_discoveries,
        models=not options.no_models,
        where=options.where,
    )
    made = redacted_in(made)
    return print_result(options, made, lambda of: drivers_text(of, markdown=options.markdown))


def drivers_text(made: Drivers, *, markdown: bool = False) -> str:
    """Return the answer, what it rests on, and what speaks against it, as a terminal's text or as Markdown."""
    head = [
        f"outcome: {made.outcome}; candidates by {', '.join(made.by)}",
        f"asked: {made.attempts:,} attempts, retries excluded ({made.solved:,} solved) at {made.tasks:,} tasks by"
        f" {times(made.treatments, 'candidate')}",
        f"tasks both solved and failed: {made.mixed['treatment']:,} by one candidate, {made.mixed['task']:,} at all;"
        f" pairs share {'task and candidate' if made.within == 'treatment' else 'the task'}",
    ]
    if made.left_out:
        reasons = "; ".join(f"{n:,} {reason}" for reason, n in list(made.left_out.items())[:_REASONS])
        head.append(f"left out: {sum(made.left_out.values()):,} attempts ({reasons})")
    answer = Printed(markdown=markdown, widest=70)
    if markdown:
        answer.lines(["Signals associated with success"], "# ")
    answer.lines(made.answer)
    answer.lines(head)

    def add(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], widest: int | None = None) -> None:
        answer.table(names, rows, title.capitalize() if markdown else title, "## ", widest)

    contrasts: list[tuple[Any, ...]] = []
    for c in [c for c in made.contrasts if c.p is not None][:_LISTED_DRIVERS]:
        near = "".join(f"{name} (the same); " for name in c.same_as)
        near += ", ".join(f"{name} ({rho:+.2f})" for name, rho in c.moves_with.items())
        share, q = "–" if c.superiority is None else f"{c.superiority:.0%}", "–" if c.q is None else f"{c.q:.2g}"
        medians = ("–" if m is None else f"{m:.4g}" for m in (c.solved_median, c.failed_median))
        pairs = f"{c.solved:,} and {c.failed:,}"
        contrasts.append((c.signal, share, interval(c.low, c.high), q, c.tasks, pairs, *medians, c.absent, near))
    names = ("signal", "solved had more", "95%", "q", "tasks", "pairs of", "median solved", "failed", "absent",
             "moves with")  # fmt: skip
    add("signals of solved and failed attempts, paired: correlations", names, contrasts)
    copies = [(c.signal, f"{c.auc:.3f}", c.how, c.n) for c in made.near_copies]
    add("excluded as near copies of the outcome (--keep includes one)", ("signal", "AUC", "how", "n"), copies)
    if made.models is not None:
        _add_models(add, made.models)
    because: dict[str, list[str]] = {}
    for entry in made.excluded:
        because.setdefault(entry.because, []).append(entry.signal)
    add("excluded", ("because it", "signals"), [(why, ", ".join(paths)) for why, paths in because.items()], _ALL)
    foot = [f"no models: {made.without_models}"] if made.without_models else []
    foot += [f"warning: {warning}" for warning in made.warnings]
    if few := sum(c.p is None for c in made.contrasts):
        foot.append(f"{times(few, 'signal')} with pairs in fewer than six tasks: only in --json")
    answer.lines(foot)
    return str(answer)


def _add_models(add: Callable[..., None], models: Models) -> None:
    def signed(value: float | None, form: str) -> str:
        return "" if value is None else f"{value:{form}}"

    scores = [
        (s.features, s.model, f"{s.brier:.4f}", signed(s.auc, ".3f"), signed(s.gain, "+.4f"),
         interval(s.low, s.high, "{:+.4f}"))
        for s in models.scores
    ]  # fmt: skip
    title = (
        f"cross-validated predictions: {models.attempts:,} attempts, {models.tasks:,} tasks,"
        f" {models.folds} folds of tasks, {models.repeats} times; gain over {models.best_baseline}"
    )
    add(title, ("by", "model", "Brier", "AUC", "gain", "95%"), scores)
    worth = [("all of them", models.jointly)] if models.jointly else []
    worth += [(", ".join(i.signals), i) for i in models.importance]
    rows = [(name, i.model, f"{i.value:+.4f}", interval(i.low, i.high, "{:+.4f}")) for name, i in worth[:_WORTH]]
    names = ("signals", "model", "Brier increase", "95%")
    add("permutation importance (values shuffled within tasks)", names, rows)
    reliability = [(f"{r.predicted:.0%}", f"{r.solved:.0%}", interval(r.low, r.high), r.n) for r in models.reliability]
    add("calibration of baselines and signals, logistic", ("predicted", "solved", "95%", "n"), reliability)
