"""The catalogue of signals: each declared once, computed in the order of its needs, explained by the same function.

A signal is a function of a `SessionView`, of an `Evidence` collector named `why`, and of other signals, which it asks
for by the name of their function. Its first docstring line is its meaning in `inventory` and `docs/catalog.md`.

    @signal("behavior.edit_calls", type="int", unit="tool_calls", context="both", origin="Agent Signals", pitfalls="…")
    def edit_calls(view: SessionView, why: Evidence) -> int:
        '''Calls to edit tools on the main thread, failed and rejected ones included.'''

`Absent` is a value too: a signal whose need is absent is absent itself (`dependency_null`), unless the parameter's
annotation admits `Absent`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, field

from agentsignals.embedding import light
from agentsignals.errors import AgentSignalsError, CatalogError, NameCollision
from agentsignals.model import Absent, Context
from agentsignals.model.registry import Place, Registry
from agentsignals.stats.validation import in_words
from agentsignals.views.session import SILENT, Collected, SessionView

Status = Literal["computed", "needs a judge", "needs a repository", "needs an artifact", "blocked upstream"]
"""What a signal waits for: nothing; a label; a checkout; a file that harnesses seldom collect; what nobody records."""
Basis = Literal["record", "heuristic", "overlap of words", "judge"]
"""What a signal rests on: the trace's record; a rule that guesses a meaning; how near two texts are; a label."""
_BASIS_OF_SOURCE: dict[str, Basis] = {"regex": "heuristic", "embedding": "overlap of words", "llm_judge": "judge"}
Level = Literal["attempt", "session", "turn", "region", "corpus"]
_BUILT_IN = ("view", "why", "history", "vectors")
"""Parameters of a signal that are not signals: the session, the evidence, other sessions, what compares texts."""
INTERNAL_ERROR = "internal_error"
Hindsight = Literal["", "the verdict", "the gold patch", "the verifier's time"]
"""What a signal itself reads that nobody knew before the attempt was judged; mostly nothing."""
Scope = Literal["session", "history", "corpus"]
"""What a signal looks at: one session; a session among the others in the store; all sessions."""


class Measured(Struct, gc=False):
    """A value with what belongs to it: numerator and denominator, method, confidence."""

    value: Any
    detail: dict[str, Any] = field(default_factory=dict)


class Row(Struct, gc=False):
    """A row of a value that is a list of objects: made and written faster than a dict; plain data outside."""


class Signal(Struct, frozen=True, kw_only=True):
    """A declared measure."""

    path: str
    name: str
    context: Literal["product", "eval", "both"]
    level: Level
    type: str
    unit: str
    version: int
    description: str
    pitfalls: str
    why_it_matters: str
    origin: str
    source: str
    priority: str
    high_value: bool
    scope: Scope
    needs: tuple[str, ...]
    """The parameters that are signals."""
    takes_absent: frozenset[str]
    """The needs that may be absent: their annotation says so."""
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    is_plain: bool
    """It takes the session and the evidence alone, and its value is no lower bound."""
    reads_transcript: bool
    """It looks at the session itself, so an attempt without its conversation has no value of it."""
    status: Status
    basis: Basis
    """Where it is not declared, the source's."""
    grows_with_output: bool
    """Whether its value is a lower bound where output tokens are."""
    pool: Callable[[Sequence[Any]], list[Any]] | None
    """Makes fewer values of those of many sessions, or of its own, that tell signals over all sessions the same."""
    hindsight: Hindsight

    def applies_to(self, context: Context) -> bool:
        return self.context in ("both", context)


class Result(Struct, gc=False):
    """One computed value: of the session, or of one of its turns."""

    signal: Signal
    value: Any
    detail: dict[str, Any] | None = None
    turn: int | None = None


_declared: dict[str, Signal] = {}
SIGNALS = Registry[ModuleType](
    "signal",
    "agentsignals.signals",
    "",
    lambda unit: isinstance(unit, ModuleType),
    r"(?!catalog\b)(?:\w+/)?(?!__init__)\w+\.py",
)
"""Modules that declare signals when they are imported."""


def signal(  # noqa: PLR0913  (a declaration is a record; every field is named at the call)
    path: str,
    *,
    type: str,  # noqa: A002  (the contract's word)
    unit: str,
    origin: str,
    pitfalls: str = "",
    why: str = "",
    context: Literal["product", "eval", "both"] = "product",
    level: Level = "session",
    version: int = 1,
    source: str = "session",
    priority: str = "P0",
    high_value: bool = False,
    harness: bool = False,
    status: Status = "computed",
    basis: Basis | None = None,
    grows_with_output: bool = False,
    pool: Callable[[Sequence[Any]], list[Any]] | None = None,
    hindsight: Hindsight = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares the decorated function as the signal `path`. `harness`: it reads what the harness recorded, no words."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        meaning = _meaning(path, function)
        parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        needs = tuple(p for p in parameters if p not in _BUILT_IN)
        scope: Scope = "corpus" if level == "corpus" else "history" if "history" in parameters else "session"
        _declared[function.__name__] = Signal(
            path=path,
            name=function.__name__,
            context=context,
            level=level,
            type=type,
            unit=unit,
            version=version,
            description=meaning,
            pitfalls=pitfalls,
            why_it_matters=why,
            origin=origin,
            source=source,
            priority=priority,
            high_value=high_value,
            scope=scope,
            needs=needs,
            takes_absent=frozenset(p for p in needs if "Absent" in str(function.__annotations__.get(p))),
            function=function,
            parameters=parameters,
            is_plain=parameters == ("view", "why") and not grows_with_output,
            reads_transcript="view" in parameters and scope == "session" and not harness,
            status=status,
            basis=basis or _BASIS_OF_SOURCE.get(source, "record"),
            grows_with_output=grows_with_output,
            pool=pool,
            hindsight=hindsight,
        )
        return function

    return declare


def _meaning(path: str, function: Callable[..., Any]) -> str:
    name = function.__name__
    for other in _declared.values():
        if other.name == name or other.path == path:
            both = f"{other.path} in {other.function.__module__} and {path} in {function.__module__}"
            raise NameCollision(f"Two signals have one name, {name}: {both}.", "Rename one.")
    if meaning := " ".join((function.__doc__ or "").split("\n\n")[0].split()):
        return meaning
    raise CatalogError(f"{path} has no docstring.", "Its first paragraph is its meaning in the inventory.")


@cache
def catalogue() -> dict[str, Signal]:
    """Every signal by the name of its function, by path but after its needs. Circles and unknown needs are errors."""
    for place in SIGNALS.inside.values():
        place.load()
    ordered = _ordered(_declared, {})
    for place in SIGNALS.places.values():
        if place.distribution:
            ordered = _with_those_of(place, ordered)
    return ordered


def _with_those_of(place: Place, ordered: dict[str, Signal]) -> dict[str, Signal]:
    """The catalogue with another package's signals; without, where they can't be declared or computed."""
    before = dict(_declared)
    if SIGNALS.load(place) is not None:
        try:
            return _ordered(_declared.keys() - before.keys(), ordered)
        except CatalogError as problem:
            SIGNALS.leave_out(place, problem.message)
    _declared.clear()
    _declared.update(before)
    return ordered


def _ordered(names: Collection[str], before: dict[str, Signal]) -> dict[str, Signal]:
    """These signals, by path but after what they need, behind those before."""
    ordered = dict(before)
    for name in sorted(names, key=lambda name: _declared[name].path):
        _place(name, ordered, ())
    return ordered


def _place(name: str, ordered: dict[str, Signal], above: tuple[str, ...]) -> None:
    if name in ordered:
        return
    if name in above:
        raise CatalogError(f"Signals need each other in a circle: {' -> '.join((*above, name))}.", "Break it.")
    if name not in _declared:
        raise CatalogError(f"{above[-1]} needs {name!r}, which is no signal.", "Needs are named by function name.")
    for need in _declared[name].needs:
        _place(need, ordered, (*above, name))
    signal = _declared[name]
    if signal.scope == "session" and any(ordered[n].scope == "history" for n in signal.needs):
        signal = msgspec.structs.replace(signal, scope="history")
    ordered[name] = signal


def by_path(path: str) -> Signal:
    """The signal of that dotted path (with or without `[]`), or of that function name. CatalogError lists near ones."""
    for signal in (signals := catalogue()).values():
        if path in (signal.path, signal.path.removesuffix("[]"), signal.name):
            return signal
    near = [s.path for s in signals.values() if path.rsplit(".", 1)[-1].removesuffix("[]")[:6] in s.path]
    raise CatalogError(
        f"There is no signal {path!r}.",
        f"Did you mean {', '.join(near[:5])}?" if near else "`agentsignals inventory` lists them.",
    )


@cache
def plan(context: Context, scope: Scope) -> tuple[Signal, ...]:
    """The signals of a scope that apply in a context, in the order to compute them."""
    return tuple(s for s in catalogue().values() if s.scope == scope and s.applies_to(context))


def measure(view: SessionView, inputs: dict[str, Any] | None = None, history: Any = None) -> list[Result]:
    """All signals of one session; with `history`, those that look at the other sessions too, `inputs` being the rest's
    values. Its `vectors` compares texts; without it the embedder that counts words does."""
    signals = plan(view.session.context, "history" if history is not None else "session")
    return _measured(view, dict(inputs or {}), history, signals)


def values(view: SessionView, inputs: dict[str, Any] | None = None, among: set[str] | None = None) -> dict[str, Any]:
    """What the signals of one session give each other: values by function name, a list over turns where turn-level.
    `among`: names of these signals alone, which are to hold whatever they need."""
    results, signals = dict(inputs or {}), plan(view.session.context, "session")
    _measured(view, results, None, signals if among is None else [s for s in signals if s.name in among])
    return results


def _measured(view: SessionView, by_name: dict[str, Any], history: Any, signals: Sequence[Signal]) -> list[Result]:
    by_name.update(view=view, why=SILENT, history=history)
    by_name.setdefault("vectors", light())
    results: list[Result] = []
    is_blind = view.is_blind
    for signal in signals:
        try:
            value = signal.function(view, SILENT) if signal.is_plain and not is_blind else _value(signal, by_name)
        except Exception as problem:  # noqa: BLE001  (another package's signals may raise anything)
            value = _broken(problem)
        value, detail = (value.value, value.detail) if type(value) is Measured else (value, None)
        by_name[signal.name] = value
        results += _by_turn(signal, value, detail) if signal.level == "turn" else (Result(signal, value, detail),)
    return results


def plain(value: Any) -> Any:
    """A value as plain data: lists per turn without their wrappers, rows as dicts."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, Measured):
        return value.value
    if isinstance(value, Row):
        return msgspec.to_builtins(value)
    return {"absent": value.reason, "detail": value.detail} if isinstance(value, Absent) else value


def explain(
    signal: Signal, view: SessionView, inputs: dict[str, Any], history: Any = None
) -> tuple[Any, dict[str, Any], Collected]:
    """The value of one signal again, with what it rests on. `inputs` holds the values of the signals it needs."""
    collected = Collected(view)
    results = {"vectors": light(), **inputs, "view": view, "why": collected, "history": history}
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
    """What a signal gives. `results` holds what it may ask for: view, why, history, other signals."""
    if signal.needs and (absent := _absent_need(signal, results)) is not None:
        return absent
    if signal.reads_transcript and results["view"].is_blind:
        return Absent("missing_artifact", "session_jsonl")
    value = signal.function(*[results[name] for name in signal.parameters])
    return as_bound(value) if signal.grows_with_output and results["view"].undercounted else value


def _broken(problem: Exception) -> Absent:
    """A session odd enough to break a measure must not take the others with it; `analyze` counts and names these."""
    if isinstance(problem, AgentSignalsError | MemoryError | OSError):
        raise problem
    return Absent("not_computable", f"{INTERNAL_ERROR}: {type(problem).__name__}: {problem}")


def as_bound(value: Any) -> Any:
    """A value made of output that was logged in mid-stream, marked so. What the harness counted is whole."""
    if type(value) is Measured and value.detail.get("method") != "harness":
        value.detail.update(at_least=True, confidence="low")
    return value


def _absent_need(signal: Signal, results: dict[str, Any]) -> Absent | None:
    """Why a signal can't be asked for, when one it needs is missing; what nobody computed is made absent, too."""
    for need in signal.needs:
        if need not in results:
            results[need] = Absent("dependency_null", f"{need}:not_computed")
        if type(results[need]) is Absent and need not in signal.takes_absent:
            return Absent("dependency_null", catalogue()[need].path)
    return None


def _by_turn(signal: Signal, values: Any, detail: dict[str, Any] | None) -> list[Result]:
    if type(values) is Absent:
        return []
    return [
        Result(signal, v.value, v.detail, n) if type(v) is Measured else Result(signal, v, detail, n)
        for n, v in enumerate(values)
    ]


def ratio(num: float, den: float, **detail: Any) -> Measured | Absent:
    """num / den with both kept; absent, never 0, when there is nothing to divide by."""
    if not den:
        return Absent("not_computable", "zero_denominator")
    return Measured(num / den, {"num": num, "den": den, **detail})


def validation(signal: Signal, classes: Sequence[str] = (), *, brief: bool = False) -> str:
    """How often a signal that claims a meaning was right (`validation.in_words`)."""
    needs = [catalogue()[n].path for n in signal.needs]
    return in_words(signal.path, signal.version, needs, basis=signal.basis, classes=classes, brief=brief)


def caption(path: str, classes: Sequence[str] = ()) -> str:
    """What stands beside a signal's numbers (of these `classes`): basis, how often right; empty of what only counts."""
    words = next((validation(s, classes, brief=True) for s in catalogue().values() if s.path == path), "")
    return f"{by_path(path).basis}, {words}" if words else ""


def inventory(
    text: str = "",
    context: str | None = None,
    high_value: bool = False,
    status: str | None = None,
    computed: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The catalogue as plain rows, filtered. `computed`: paths of signals that a store has values of."""
    if status is not None and status not in get_args(Status):
        raise CatalogError(f"There is no status {status!r}.", f"The statuses: {', '.join(get_args(Status))}.")
    wanted = text.lower()
    rows = [_inventory_row(s, computed) for s in sorted(catalogue().values(), key=lambda s: s.path)]
    return [
        r for r in rows
        if wanted in f"{r['path']} {r['name']} {r['description']}".lower()
        and (context is None or r["context"] in (context, "both"))
        and (not high_value or r["high_value"])
        and (status is None or r["status"] == status)
    ]  # fmt: skip


def _inventory_row(signal: Signal, computed: Collection[str]) -> dict[str, Any]:
    names = ("path", "name", "context", "level", "type", "unit", "version", "source", "description", "pitfalls")
    more = ("basis", "why_it_matters", "origin", "priority", "high_value")
    stands = {"status": "computed" if signal.path in computed else signal.status, "validation": validation(signal)}
    return {**{n: getattr(signal, n) for n in names}, **stands, **{n: getattr(signal, n) for n in more}}
