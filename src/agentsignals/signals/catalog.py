"""The catalogue of signals: collect the declarations, compute them in the order of their needs, explain one value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from types import ModuleType
from typing import Any, get_args

import msgspec
from msgspec import Struct

from agentsignals.errors import AgentSignalsError, CatalogError
from agentsignals.model import Absent, Context
from agentsignals.model.registry import Registry, did_you_mean, no_such
from agentsignals.signals import DECLARED, Measured, Row, Scope, Signal, Status
from agentsignals.stats.validation import validation_text
from agentsignals.views.session import NO_EVIDENCE, CollectedEvidence, SessionView
from agentsignals.words.vectors import counting_vectors

INTERNAL_ERROR = "internal_error"


SIGNALS = Registry[ModuleType](
    "signal",
    "agentsignals.signals",
    "",
    lambda unit: isinstance(unit, ModuleType),
    r"(?!catalog\b)(?:\w+/)?(?!__init__)\w+\.py",
)
"""Modules that declare signals when they are imported."""


FIRST = frozenset(
    {
        # of attempts: the table `attempts`, and comparisons of them
        "attempt1_tool_cap", "fail_to_fail_count", "fail_to_pass_count", "outcome", "pass_to_fail_count",
        "pass_to_pass_count", "patch_applies", "patch_outcome_label", "retry_tool_cap", "timed_out", "wall_time_s",
        "agent_type", "attempt_index", "concurrency", "dataset", "model_id", "reward", "timeout_s",
        # findings
        "cost_usd", "failure_class", "input_tokens_total", "output_tokens_total", "pass_audit", "pushback_type",
        "tool_call_count", "turn_count", "waiting_time_s", "work_time_s",
        # where sessions lie
        "place", "repository_marks", "touched_files",
    }
)  # fmt: skip
"""Signals (by function) that are computed when sessions are read: the findings, the table `attempts` and the places of
sessions rest on them. Others are computed when somebody asks for them (docs/decisions/020)."""


class Result(Struct, gc=False):
    """One computed value: of the session, or of one of its turns."""

    signal: Signal
    value: Any
    detail: dict[str, Any] | None = None
    turn: int | None = None


@cache
def catalogue() -> dict[str, Signal]:
    """Return every signal by its name, ordered by path but after its needs. Circles and unknown needs raise."""
    for place in SIGNALS.inside.values():
        place.load()
    ordered = _ordered(DECLARED, {})
    for place in SIGNALS.places.values():
        if not place.distribution:
            continue
        # Another package's signals are left out where they can't be declared or computed.
        before = dict(DECLARED)
        if SIGNALS.load(place) is not None:
            try:
                ordered = _ordered(DECLARED.keys() - before.keys(), ordered)
                continue
            except CatalogError as problem:
                SIGNALS.leave_out(place, problem.message)
        DECLARED.clear()
        DECLARED.update(before)
    return ordered


def _ordered(names: Collection[str], before: dict[str, Signal]) -> dict[str, Signal]:
    """Append these signals, ordered by path but after their needs, to those before."""
    ordered = dict(before)

    def place(name: str, *above: str) -> None:
        if name in ordered:
            return
        if name in above:
            raise CatalogError(
                f"Signals depend on each other in a circle: {' -> '.join((*above, name))}.", "Remove one dependency."
            )
        if name not in DECLARED:
            raise CatalogError(
                f"{above[-1]} needs {name!r}, which is not a signal.", "Write the name of the signal's function."
            )
        signal = DECLARED[name]
        for need in signal.needs:
            place(need, *above, name)
        if signal.scope == "session" and any(ordered[n].scope == "history" for n in signal.needs):
            signal = msgspec.structs.replace(signal, scope="history")
        ordered[name] = signal

    for name in sorted(names, key=lambda name: DECLARED[name].path):
        place(name)
    return ordered


def by_path(path: str) -> Signal:
    """Return the signal of a dotted path (with or without `[]`), or of a name. CatalogError lists near ones."""
    for signal in (signals := catalogue()).values():
        if path in (signal.path, signal.path.removesuffix("[]"), signal.name):
            return signal
    near = did_you_mean(path, [signal.path for signal in signals.values()])
    raise CatalogError(f"There is no signal {path!r}.", f"{near} `agentsignals inventory` lists them.".lstrip())


@cache
def plan(context: Context, scope: Scope, among: frozenset[str] | None = None) -> tuple[Signal, ...]:
    """Return the signals of a scope that apply in a context, in the order to compute them; of `among` these names."""
    return tuple(
        s
        for s in catalogue().values()
        if s.scope == scope and s.applies_to(context) and (among is None or s.name in among)
    )


@cache
def with_needs(names: frozenset[str]) -> frozenset[str]:
    """Return these signals and all that they need, directly or not."""
    signals, found, waiting = catalogue(), set(names), list(names)
    while waiting:
        for need in signals[waiting.pop()].needs:
            if need not in found:
                found.add(need)
                waiting.append(need)
    return frozenset(found)


def measure(
    view: SessionView,
    inputs: dict[str, Any] | None = None,
    history: Any = None,
    among: frozenset[str] | None = None,
) -> list[Result]:
    """Compute all signals of one session; with `history`, those that need the other sessions, from the other signals'
    values in `inputs`. `inputs["vectors"]` compares texts; without it the embedder that counts words does. `among`: the
    names of the only signals to compute, which include whatever they need."""
    signals = plan(view.session.context, "history" if history is not None else "session", among)
    return _measured(view, dict(inputs or {}), history, signals)


def values(
    view: SessionView, inputs: dict[str, Any] | None = None, among: frozenset[str] | None = None
) -> dict[str, Any]:
    """Return the values of a session's signals keyed by function name, as lists over turns where turn-level. `among`:
    the names of the only signals to compute, which include whatever they need."""
    results = dict(inputs or {})
    _measured(view, results, None, plan(view.session.context, "session", among))
    return results


def _measured(view: SessionView, by_name: dict[str, Any], history: Any, signals: Sequence[Signal]) -> list[Result]:
    """Compute signals in order; an exception becomes an absent value of that signal alone."""
    by_name.update(view=view, why=NO_EVIDENCE, history=history)
    by_name.setdefault("vectors", counting_vectors())
    results: list[Result] = []
    is_blind = view.is_blind
    for signal in signals:
        try:
            value = signal.function(view, NO_EVIDENCE) if signal.is_plain and not is_blind else _value(signal, by_name)
        except Exception as problem:  # noqa: BLE001  (another package's signals may raise anything)
            value = _broken(problem)
        value, detail = (value.value, value.detail) if type(value) is Measured else (value, None)
        by_name[signal.name] = value
        if signal.level != "turn":
            results.append(Result(signal, value, detail))
        elif type(value) is not Absent:
            results += [
                Result(signal, v.value, v.detail, n) if type(v) is Measured else Result(signal, v, detail, n)
                for n, v in enumerate(value)
            ]
    return results


def plain(value: Any) -> Any:
    """Return a value as plain data: lists per turn without their wrappers, rows as dicts."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, Measured):
        return value.value
    if isinstance(value, Row):
        return msgspec.to_builtins(value)
    return {"absent": value.reason, "detail": value.detail} if isinstance(value, Absent) else value


def explain(
    signal: Signal, view: SessionView, inputs: dict[str, Any], history: Any = None
) -> tuple[Any, dict[str, Any], CollectedEvidence]:
    """Compute one signal again, with its evidence. `inputs` holds the values of the signals it needs."""
    collected = CollectedEvidence(view)
    results = {"vectors": counting_vectors(), **inputs, "view": view, "why": collected, "history": history}
    try:
        result = _value(signal, results)
    except Exception as problem:  # noqa: BLE001  (as while measuring)
        result = _broken(problem)
    value, detail = (result.value, result.detail) if type(result) is Measured else (result, {})
    for need in (catalogue()[name] for name in signal.needs):
        is_bound = need.grows_with_output and view.undercounted
        collected.input(need.path, inputs.get(need.name, Absent("dependency_null", need.name)), is_bound)
    return value, detail, collected


def _value(signal: Signal, results: dict[str, Any]) -> Any:
    """Compute one signal. `results` holds its possible parameters: view, why, history, other signals."""
    for need in signal.needs:
        if need not in results:
            results[need] = Absent("dependency_null", f"{need}:not_computed")
        if type(results[need]) is Absent and need not in signal.takes_absent:
            return Absent("dependency_null", catalogue()[need].path)
    if signal.reads_transcript and results["view"].is_blind:
        return Absent("missing_artifact", "session_jsonl")
    value = signal.function(*[results[name] for name in signal.parameters])
    return as_bound(value) if signal.grows_with_output and results["view"].undercounted else value


def _broken(problem: Exception) -> Absent:
    """Turn an exception into an absent value, so that one odd session stops no other; `analyze` counts them."""
    if isinstance(problem, AgentSignalsError | MemoryError | OSError):
        raise problem
    return Absent("not_computable", f"{INTERNAL_ERROR}: {type(problem).__name__}: {problem}")


def as_bound(value: Any) -> Any:
    """Mark a value made of output that was logged in mid-stream. Counts of the harness are complete."""
    if type(value) is Measured and value.detail.get("method") != "harness":
        value.detail.update(at_least=True, confidence="low")
    return value


def validation(signal: Signal, classes: Sequence[str] = (), *, brief: bool = False) -> str:
    """Return how often a signal that claims a meaning was right (`validation.in_words`)."""
    needs = [catalogue()[n].path for n in signal.needs]
    return validation_text(signal.path, signal.version, needs, basis=signal.basis, classes=classes, brief=brief)


def caption(path: str, classes: Sequence[str] = ()) -> str:
    """Return a caption for a signal's numbers (of these `classes`): basis and accuracy; empty for a plain count."""
    words = next((validation(s, classes, brief=True) for s in catalogue().values() if s.path == path), "")
    return f"{by_path(path).basis}, {words}" if words else ""


def inventory(
    text: str = "",
    context: str | None = None,
    high_value: bool = False,
    status: str | None = None,
    computed: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the catalogue as plain rows, filtered. `computed`: paths of signals that a store has values of."""
    if status is not None and status not in get_args(Status):
        raise CatalogError(*no_such("status", status, get_args(Status)))
    wanted = text.lower()
    names = ("path", "name", "context", "level", "type", "unit", "version", "source", "description", "pitfalls")
    more = ("computation", "basis", "why_it_matters", "origin", "priority", "high_value")
    rows = [
        {
            **{name: getattr(signal, name) for name in names},
            "status": "computed" if signal.path in computed else signal.status,
            "validation": validation(signal),
            **{name: getattr(signal, name) for name in more},
        }
        for signal in sorted(catalogue().values(), key=lambda signal: signal.path)
    ]
    return [
        r for r in rows
        if wanted in f"{r['path']} {r['name']} {r['description']}".lower()
        and (context is None or r["context"] in (context, "both"))
        and (not high_value or r["high_value"])
        and (status is None or r["status"] == status)
    ]  # fmt: skip
