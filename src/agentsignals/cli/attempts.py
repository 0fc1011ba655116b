"""Verbs about attempts of eval runs: `failures`, `audit`, `align`, `drivers`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec.structs import asdict

import agentsignals
from agentsignals.cli.output import json_text
from agentsignals.cli.printing import Printed
from agentsignals.errors import UsageError
from agentsignals.questions import audit, failure_map
from agentsignals.questions.alignment import (
    BECAUSE,
    FACTS,
    MOST_RUNS,
    OF_TASK,
    OF_TRIAL,
    Alignment,
    Place,
    Run,
    Side,
    Step,
    align,
    reference_of,
)
from agentsignals.questions.audit import AuditReport, rate_text
from agentsignals.questions.compare.attempts import answer_over_attempts
from agentsignals.questions.drivers import Contrast, Drivers
from agentsignals.questions.drivers.predictors import Models
from agentsignals.questions.failure_map import FailureMap, class_text, passes_text, share_text
from agentsignals.redaction import without_keys_in
from agentsignals.store import Store
from agentsignals.store.query import ask, connect

Made = TypeVar("Made")
_Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
"""Title, headings, rows."""


def answered(
    options: argparse.Namespace, make: Callable[[Store, Sequence[str], str], Made], as_text: Callable[..., str]
) -> int:
    """Prints what is made of a store, without keys in it; the verb's exit code."""

    made = without_keys_in(make(Store(options.store), options.by, options.where))
    print(json_text(made) if options.json else as_text(made, as_markdown=options.markdown))
    return 0


# `failures`: why attempts of eval runs failed, by candidate.

_LISTED, _WIDEST = 25, 70
_EXAMPLES = 3
"""Examples of each class; --json has all."""


def run_failures(options: argparse.Namespace) -> int:
    return answered(options, failures_of, failures_text)


def failures_of(store: Store, by: Sequence[str], where: str) -> FailureMap:
    """Return the map of a store. StoreError without attempts; UsageError where no attempt has a column of `by`."""
    made: FailureMap = answer_over_attempts(store, failure_map.question(by, where), where=where)
    return made


def failures_text(made: FailureMap, *, as_markdown: bool = False) -> str:
    """The map as tables and sentences."""

    head = (
        f"{made.failed:,} of {made.first_attempts:,} first attempts failed or were broken off;"
        f" candidates by {', '.join(made.by)}"
    )
    classes = [(class_text(share.name), share_text(share, made.failed)) for share in made.classes]
    candidates = [
        (
            c.name,
            c.first_attempts,
            c.not_judged,
            c.not_earned,
            c.failed,
            ", ".join(f"{class_text(s.name)} {s.n:,}" for s in c.classes),
        )
        for c in made.candidates[:_LISTED]
    ]
    examples = [
        (class_text(entry.name), entry.because, entry.file or "", entry.session_id, entry.seq)
        for share in made.classes
        for entry in [entry for entry in made.listed if entry.name == share.name][:_EXAMPLES]
    ]
    unearned = [
        (class_text(p.verdict), p.because, p.candidate, p.session_id, p.acts[0].get("seq") if p.acts else "")
        for p in made.not_earned[:_LISTED]
    ]
    answer = Printed(markdown=as_markdown, widest=_WIDEST)
    answer.lines([head], "")
    answer.table(("class", "first attempts, share of what failed"), classes)
    names = ("candidate", "first attempts", "not judged", "pass not earned", "failed", "by")
    answer.table(names, candidates, "by candidate")
    answer.table(("class", "because", "where to look", "session", "event"), examples, "examples")
    answer.table(("verdict", "because", "candidate", "session", "event"), unearned, "passed, not earned")
    sentences = [*made.sentences, *([sentence] if (sentence := passes_text(made)) else [])]
    if more := len(made.not_earned) - len(unearned):
        sentences.append(f"and {more} more passes (--json has all)")
    if left := len(made.candidates) - len(candidates):
        sentences.append(f"and {left} more candidates (--json has all)")
    answer.lines(sentences)
    return str(answer)


# `audit`: whether passed attempts of eval runs were earned.

_WIDEST_AUDIT = 90
_VERDICTS = ("derived", "retrieved", "verifier_touched", "cannot_tell")


def run_audit(options: argparse.Namespace) -> int:
    return answered(options, audit_of, audit_text)


def audit_of(store: Store, by: Sequence[str], where: str) -> AuditReport:
    """Return the audit of a store. StoreError without attempts; UsageError where no attempt has a column of `by`."""
    made: AuditReport = answer_over_attempts(store, audit.question(by, where), where=where)
    return made


def audit_text(made: AuditReport, *, as_markdown: bool = False) -> str:
    """The audit as tables and sentences."""

    n = sum(made.passed.values())
    head = f"{n:,} first attempts passed: " + ", ".join(
        f"{made.passed.get(verdict, 0):,} {verdict.replace('_', ' ')}" for verdict in _VERDICTS
    )
    whole = [made.everyone, *(made.candidates[:_LISTED] if len(made.candidates) > 1 else [])]
    candidates = [
        (c.name, rate_text(c.resolved), rate_text(c.earned), rate_text(c.earned_at_most),
         *(c.passed.get(v, 0) for v in _VERDICTS[1:]))
        for c in whole
    ]  # fmt: skip
    lines: list[tuple[Any, ...]] = [
        (
            entry.verdict.replace("_", " "),
            entry.because,
            entry.session_id,
            entry.acts[0].get("seq") if entry.acts else "",
            entry.acts[0].get("from_seq", "") if entry.acts else "",
        )
        for entry in made.listed
        if entry.verdict != "derived"
    ]
    answer = Printed(markdown=as_markdown, widest=_WIDEST_AUDIT)
    answer.lines([head], "")
    names = ("candidate", "resolved", "earned, at least", "at most", "retrieved", "verifier touched", "cannot tell")
    answer.table(names, candidates, "resolve rate")
    answer.table(("verdict", "because", "session", "event", "shown at"), lines[:_LISTED], "not derived")
    reasons = sorted(made.cannot_tell.items(), key=lambda item: -item[1])[:_LISTED]
    answer.table(("why", "passes"), reasons, "cannot tell, why")
    answer.lines(
        [*([f"and {len(lines) - _LISTED} more (--json has all)"] if len(lines) > _LISTED else []), made.caveat]
    )
    return str(answer)


# `align`: runs of one task beside each other, and where they part.

_WIDEST_ALIGN = 90
_FILES = 5


def run_align(options: argparse.Namespace) -> int:
    store = Store(options.store)
    sessions, facts = _chosen(store, options)
    made = align(sessions, facts)
    if options.json:
        print(json_text(without_keys_in({"alignments": [_plain(alignment) for alignment in made]})))
        return 0
    print(_report(made, markdown=options.markdown))
    return 0


def _chosen(store: Store, options: argparse.Namespace) -> tuple[list[Any], dict[str, dict[str, Any]]]:
    """The sessions, the one that the others are held against first, and what is recorded of each."""

    ways = [bool(options.sessions), options.task is not None, options.trial is not None]
    if sum(ways) != 1:
        raise UsageError("Runs are named by their sessions, by --task, or by --trial.", "Give one of these.")
    connection = connect(store)
    if options.sessions:
        ids = [store.resolve(name) for name in options.sessions]
    else:
        query, name = (OF_TASK, options.task) if options.task is not None else (OF_TRIAL, options.trial)
        ids = [row["session_id"] for row in ask(connection, query, {"name": name})]
    ids = list(dict.fromkeys(ids)) if not options.sessions else ids
    if not 2 <= len(ids) <= MOST_RUNS:
        raise UsageError(
            f"{'One run' if len(ids) == 1 else f'{len(ids)} runs'} with calls came; 2 to {MOST_RUNS} are aligned.",
            '`agentsignals query "SELECT task_id, count(*) FROM attempts GROUP BY 1"` says what there is.',
        )
    facts = {row["session_id"]: row for row in ask(connection, FACTS, {"ids": ids})}
    sessions = [store.session(session_id) for session_id in ids]
    if options.task is not None:
        reference = reference_of(sessions, facts)
        sessions = [reference, *(s for s in sessions if s is not reference)]
    return sessions, facts


def _report(made: Sequence[Alignment], *, markdown: bool) -> str:
    """The runs, where each parts from the first, and what came then in both."""
    answer = Printed(markdown=markdown, widest=_WIDEST_ALIGN, cut=True)
    runs = [made[0].left, *(alignment.right for alignment in made)]
    answer.table(
        ("run", "session", "model, or agent", "outcome", "patch", "ended", "calls", "failed"),
        without_keys_in([_run(n, run) for n, run in enumerate(runs)]),
    )
    answer.table(
        ("run", "same", "alike", "differ at", "stray at", "part at", "because", "sure", "lines changed alike"),
        [(f"1 × {n}", *_where(alignment)) for n, alignment in enumerate(made, 2)],
    )
    explained = (
        "Calls of the first and of the other, counted from 1. Differ: the first that is not the same. Stray: the first"
        " step that the other never takes. Part: they do not come together again."
    )
    answer.lines([explained], "")
    for n, alignment in enumerate(made, 2):
        parting = alignment.divergence.parts
        if parting is None:
            continue
        place = parting.place
        parted = f"they part at call {place.left} of 1 and {place.right} of {n}; {_because(alignment)}."
        answer.lines([f"1 × {n}: {parted}"], "## ")
        for which, at, side in ((1, place.left, parting.left), (n, place.right, parting.right)):
            answer.lines([f"{which} then: {_rest(side)}"], "")
            names = ("call", "event", "tool", "about", "status")
            answer.table(names, without_keys_in([_step(at + k, step) for k, step in enumerate(side.next)]))
    if together := [str(n) for n, alignment in enumerate(made, 2) if alignment.divergence.parts is None]:
        answer.lines([f"1 × {', '.join(together)}: no step after which one goes where the other never goes."], "## ")
    return str(answer)


def _because(alignment: Alignment) -> str:
    parting = alignment.divergence.parts
    if parting is None:
        return ""
    return BECAUSE[parting.basis] + (f" (not sure: {parting.unsure})" if parting.unsure else "")


def _rest(side: Side) -> str:
    if not side.steps:
        return "had ended"
    files = ", ".join(without_keys_in(side.only[:_FILES])) + (" …" if len(side.only) > _FILES else "")
    return f"{side.steps:,} calls, {side.failed:,} failed" + (f"; only here: {files}" if files else "")


def _run(n: int, run: Run) -> tuple[Any, ...]:
    who = run.model or run.agent
    attempt = "" if run.attempt_index is None else f", attempt {run.attempt_index + 1}"
    return n + 1, run.session_id, f"{who}{attempt}", run.outcome, run.patch, run.ended, run.calls, run.failed


def _where(alignment: Alignment) -> tuple[Any, ...]:
    apart = alignment.divergence
    parting = apart.parts
    shared = "" if apart.changes_shared is None else f"{apart.changes_shared:.0%}"
    places = (apart.differs, apart.strays, None if parting is None else parting.place)
    basis, sure = ("", "") if parting is None else (parting.basis, "yes" if parting.sure else "no")
    return alignment.same, alignment.alike, *map(_place, places), basis, sure, shared


def _place(place: Place | None) -> str:
    return "never" if place is None else f"{place.left}, {place.right}"


def _step(call: int, step: Step) -> tuple[Any, ...]:
    return call, step.seq, step.tool, step.about, step.error or step.status


def _plain(alignment: Alignment) -> dict[str, Any]:
    """An alignment for a machine: steps as a reader sees them, without what they are compared by."""

    made = asdict(alignment)
    made["rows"] = [{"how": row.how, "left": _shown(row.left), "right": _shown(row.right)} for row in alignment.rows]
    apart = asdict(alignment.divergence)
    if (parting := alignment.divergence.parts) is not None:
        sides = {"left": parting.left, "right": parting.right}
        apart["parts"] = asdict(parting) | {"because": _because(alignment)}
        apart["parts"] |= {
            name: asdict(side) | {"next": [_shown(s) for s in side.next]} for name, side in sides.items()
        }
    return made | {"divergence": apart}


def _shown(step: Step | None) -> dict[str, Any] | None:
    names = ("seq", "kind", "tool", "about", "status", "error")
    return None if step is None else {name: getattr(step, name) for name in names}


# `drivers`: which signals go with success within task and treatment.

_LISTED_DRIVERS, _REASONS, _WORTH, _ALL = 40, 6, 12, 1000
_NOT_ASKED = "not asked"


def run_drivers(options: argparse.Namespace) -> int:
    if not 0 < options.false_discoveries < 1:
        raise UsageError(f"--false-discoveries {options.false_discoveries:g} is no share between 0 and 1.", "0.05")
    made = agentsignals.drivers(
        Store(options.store),
        options.by,
        outcome=options.outcome,
        treatments=options.treatments,
        within=options.within,
        keep=options.keep,
        false_discoveries=options.false_discoveries,
        models=not options.no_models,
        where=options.where,
    )
    made = without_keys_in(made)
    print(json_text(made) if options.json else drivers_text(made, markdown=options.markdown))
    return 0


def drivers_text(made: Drivers, *, markdown: bool = False) -> str:
    """The answer, what it rests on, and what speaks against it, as a terminal's text or as Markdown."""

    head = [
        f"outcome: {made.outcome}; treatments by {', '.join(made.by)}",
        f"asked: {made.attempts:,} first attempts ({made.solved:,} solved) at {made.tasks:,} tasks under"
        f" {made.treatments:,} treatments",
        f"tasks both solved and failed: {made.mixed['treatment']:,} under one treatment, {made.mixed['task']:,} at all;"
        f" pairs share {'task and treatment' if made.within == 'treatment' else 'the task'}",
    ]
    if made.left_out:
        reasons = "; ".join(f"{n:,} {reason}" for reason, n in list(made.left_out.items())[:_REASONS])
        head.append(f"left out: {sum(made.left_out.values()):,} attempts ({reasons})")
    foot = [f"mind: {warning}" for warning in made.warnings]
    few = sum(c.p is None for c in made.contrasts)
    if few:
        foot.append(f"of {few:,} signals fewer than six tasks have pairs: not shown, but in --json")
    if made.without_models:
        foot.insert(0, f"no models: {made.without_models}")
    answer = Printed(markdown=markdown, widest=70)
    if markdown:
        answer.lines(["What goes with success"], "# ")
    answer.lines(made.answer)
    answer.lines(head)
    for title, names, cells in _tables(made):
        widest = _ALL if title == _NOT_ASKED else None
        answer.table(names, cells, title.capitalize() if markdown else title, "## ", widest)
    answer.lines(foot)
    return str(answer)


def _tables(made: Drivers) -> Iterator[_Table]:
    tested = [c for c in made.contrasts if c.p is not None]
    if tested:
        names = ("signal", "solved had more", "95%", "q", "tasks", "pairs of", "median solved", "failed", "absent")
        title = "signals at solved and failed attempts that share so much: correlations"
        yield title, (*names, "moves with"), [_contrast(c) for c in tested[:_LISTED_DRIVERS]]
    if made.near_copies:
        rows = [(c.signal, f"{c.auc:.3f}", c.how, c.n) for c in made.near_copies]
        title = "set aside: tells the outcome almost by itself (--keep lets it in)"
        yield title, ("signal", "AUC", "how", "n"), rows
    if made.models is not None:
        yield from _models(made.models)
    if made.excluded:
        because: dict[str, list[str]] = {}
        for entry in made.excluded:
            because.setdefault(entry.because, []).append(entry.signal)
        yield _NOT_ASKED, ("because it", "signals"), [(why, ", ".join(paths)) for why, paths in because.items()]


def _contrast(c: Contrast) -> tuple[Any, ...]:
    near = ", ".join(f"{name} ({rho:+.2f})" for name, rho in c.moves_with.items())
    same = "".join(f"{name} (the same); " for name in c.same_as)
    share = "–" if c.superiority is None else f"{c.superiority:.0%}"
    q = "–" if c.q is None else f"{c.q:.2g}"
    medians = tuple("–" if m is None else f"{m:.4g}" for m in (c.solved_median, c.failed_median))
    pairs = f"{c.solved:,} and {c.failed:,}"
    return c.signal, share, _ends(c.low, c.high, ".0%"), q, c.tasks, pairs, *medians, c.absent, f"{same}{near}"


def _ends(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f"{low:{form}} to {high:{form}}"


def _signed(value: float | None, form: str = "+.4f") -> str:
    return "" if value is None else f"{value:{form}}"


def _models(models: Models) -> Iterator[_Table]:
    scores = [
        (s.features, s.model, f"{s.brier:.4f}", _signed(s.auc, ".3f"), _signed(s.gain), _ends(s.low, s.high, "+.4f"))
        for s in models.scores
    ]
    title = f"foretold of tasks that the model had not seen: {models.attempts:,} attempts, {models.tasks:,} tasks," + (
        f" {models.folds} folds of tasks, {models.repeats} times; gain over {models.best_baseline}"
    )
    yield (title, ("by", "model", "Brier", "AUC", "gain", "95%"), scores)
    worth = [("all of them", models.jointly)] if models.jointly else []
    worth += [(", ".join(i.signals), i) for i in models.importance]
    rows = [(name, i.model, f"{i.value:+.4f}", _ends(i.low, i.high, "+.4f")) for name, i in worth]
    names = ("signals", "model", "rise of Brier", "95%")
    if rows:
        yield ("what foretelling loses where values are dealt out anew", names, rows[:_WORTH])
    yield (
        "calibration of baselines and signals, logistic",
        ("foretold", "solved", "95%", "n"),
        [(f"{r.foretold:.0%}", f"{r.solved:.0%}", _ends(r.low, r.high, ".0%"), r.n) for r in models.reliability],
    )
