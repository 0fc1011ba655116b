"""Declare signals: each a function of a session, with its facts beside it.

A signal is a function of a `SessionView`, of an `Evidence` collector named `why`, and of other signals, which it names
as parameters. Its docstring holds its meaning (the first paragraph), and the paragraphs `Pitfalls:` and `Why:`.

    signal = signals_with(context="both", origin="Agent Signals")

    @signal("behavior.edit_calls", "int", "tool_calls")
    def edit_calls(view: SessionView, why: Evidence) -> int:
        '''Calls to edit tools on the main thread, failed and rejected ones included.

        Pitfalls: Blind to files changed through the shell.
        '''

`Absent` is a value too. A signal whose need is absent is absent itself (`dependency_null`), unless the annotation of
that parameter admits `Absent`. `agentsignals.signals.catalog` collects the declarations and computes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field, json

from agentsignals.errors import CatalogError, NameCollision
from agentsignals.model import Absent, Context, Label

if TYPE_CHECKING:
    from agentsignals.views.session import Evidence, SessionView

Status = Literal["computed", "needs a judge", "needs a repository", "needs an artifact", "blocked upstream"]
"""Requirement of a signal: none; a label; a checkout; a file that harnesses seldom collect; a fact that nobody logs."""
Basis = Literal["record", "heuristic", "overlap of words", "judge"]
"""Evidence of a signal: the trace's record; a rule that guesses a meaning; the similarity of two texts; a label."""
_BASIS_OF_SOURCE: dict[str, Basis] = {"regex": "heuristic", "embedding": "overlap of words", "llm_judge": "judge"}
Level = Literal["attempt", "session", "turn", "region", "corpus"]
_BUILT_IN = ("view", "why", "history", "vectors")
"""Parameters of a signal that are not signals: the session, the evidence, other sessions, what compares texts."""
Hindsight = Literal["", "the verdict", "the gold patch", "the verifier's time"]
"""Facts that a signal reads although nobody knew them before the attempt was judged; mostly none."""
Scope = Literal["session", "history", "corpus"]
"""The input of a signal: one session; a session among the others in the store; all sessions."""


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
    context: Literal["product", "eval", "both"] = "product"
    level: Level = "session"
    type: str
    unit: str
    version: int = 1
    description: str
    computation: str = ""
    """How to compute the value from the public tables, where the description leaves a question."""
    pitfalls: str
    why_it_matters: str
    origin: str
    source: str = "session"
    priority: str = "P0"
    high_value: bool = False
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
    status: Status = "computed"
    basis: Basis
    """Follows from the source where it is not declared."""
    grows_with_output: bool = False
    """Its value is a lower bound where the count of output tokens is one."""
    pool: Callable[[Sequence[Any]], list[Any]] | None = None
    """Merge the values of many sessions, or its own results, without changing what signals over all sessions get."""
    hindsight: Hindsight = ""

    def applies_to(self, context: Context) -> bool:
        return self.context in ("both", context)


DECLARED: dict[str, Signal] = {}
"""Every signal whose module was imported, keyed by the name of its function."""


def signal(  # noqa: PLR0913  (a declaration is a record)
    path: str,
    type: str,  # noqa: A002  (the contract's word)
    unit: str,
    *,
    doc: str = "",
    parameters: tuple[str, ...] = (),
    harness: bool = False,
    **facts: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the decorated function as the signal `path`, whose last part is the function's name.

    The docstring's first paragraph is the meaning, those after it say how to compute the value; its paragraphs
    `Pitfalls:` and `Why:` are those facts. `facts` are fields of `Signal`. `harness`: it reads what the harness
    recorded, no words. A family of signals that share one function gives `doc` in place of the docstring, and
    `parameters` where their names differ from the function's.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        name = path.rpartition(".")[2].removesuffix("[]") if doc else function.__name__
        for other in DECLARED.values():
            if other.name == name or other.path == path:
                both = f"{other.path} in {other.function.__module__} and {path} in {function.__module__}"
                raise NameCollision(f"Two signals have the same name, {name}: {both}.", "Rename one.")
        text, *sections = re.split(r"^\s*(Pitfalls|Why): ", doc or function.__doc__ or "", flags=re.MULTILINE)
        paragraphs = {head: " ".join(body.split()) for head, body in zip(sections[::2], sections[1::2], strict=True)}
        meaning, _, computation = (" ".join(part.split()) for part in text.partition("\n\n"))
        if not meaning:
            raise CatalogError(
                f"The signal {path} has no docstring.", "Add one: its first paragraph says what it means."
            )
        names = parameters or function.__code__.co_varnames[: function.__code__.co_argcount]
        needs = tuple(p for p in names if p not in _BUILT_IN)
        is_corpus = facts.get("level") == "corpus"
        scope: Scope = "corpus" if is_corpus else "history" if "history" in names else "session"
        basis = _BASIS_OF_SOURCE.get(facts.get("source", ""), "record")
        DECLARED[name] = Signal(
            path=path,
            name=name,
            type=type,
            unit=unit,
            description=meaning,
            pitfalls=paragraphs.get("Pitfalls", ""),
            why_it_matters=paragraphs.get("Why", ""),
            scope=scope,
            needs=needs,
            takes_absent=frozenset(p for p in needs if "Absent" in str(function.__annotations__.get(p))),
            function=function,
            parameters=names,
            is_plain=names == ("view", "why") and not facts.get("grows_with_output"),
            reads_transcript="view" in names and scope == "session" and not harness,
            **{"basis": basis, "computation": computation, **facts},
        )
        return function

    return declare


def signals_with(**shared: Any) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Return `signal` with these facts as defaults: what all signals of a module share is written once."""
    return lambda *args, **facts: signal(*args, **{**shared, **facts})


def rate_of(flag: str, doc: str, *, path: str = "", unit: str = "ratio", **facts: Any) -> None:
    """Declare, over all sessions, the share of those with a value in which the signal `flag` is true (or its mean)."""
    need = flag.rpartition(".")[2]
    signal(path or f"{flag}_rate", "float", unit, level="corpus", doc=doc, parameters=(need,), **facts)(_mean)


def _mean(values: Sequence[float]) -> Measured | Absent:
    return ratio(sum(values), len(values))


def ratio(num: float, den: float, **detail: Any) -> Measured | Absent:
    """Return num / den with both kept in the detail; absent, never 0, when there is nothing to divide by."""
    if not den:
        return Absent("not_computable", "zero_denominator")
    return Measured(num / den, {"num": num, "den": den, **detail})


# Signals whose value is a label: what a person, or a model that read the session, said of it.

NO_JUDGE = Absent("backend_disabled", "judge")


def labelled(  # noqa: PLR0913  (a declaration is a record)
    path: str,
    type: str,  # noqa: A002  (the contract's word)
    unit: str,
    doc: str,
    *,
    task: str = "",
    field: Literal["value", "number"] = "value",
    **facts: Any,
) -> None:
    """Declare the value or number of a session's label; `agentsignals labels label TASK --by LABELLER` makes them.
    Where several labellers did a task, the one with most labels of it counts, then the youngest; the detail names it.
    `task`: the path's last part, where it is not given."""
    asked = task or path.rpartition(".")[2]
    told = f"{'`number` of the' if field == 'number' else 'The'} judge's label of task {asked}."
    declare = signals_with(source="llm_judge", priority="P3", status="needs a judge", computation=told)
    declare(path, type, unit, doc=doc, **facts)(lambda view, why: label_of(view, why, asked, field))


def label_of(
    view: SessionView, why: Evidence, task: str, field: Literal["value", "number"] = "value"
) -> Measured | Absent:
    """Return the label of a whole session; absent without an agent's text, and where nobody judged it."""
    if not view.by_kind.get("text"):
        return Absent("not_applicable", "session without assistant text")
    label = next((judgement for judgement in view.judgements(task) if judgement.turn is None), None)
    if label is None:
        return NO_JUDGE
    why.rule(f"{label.labeller}: {label.value}" + (f" ({label.reason})" if label.reason else ""))
    value = getattr(label, field)
    return Absent("parse_error", "label without a number") if value is None else Measured(value, label_detail(label))


def label_detail(label: Label) -> dict[str, Any]:
    """Return who gave a label, why, and what else the label's own detail holds."""
    more = json.decode(label.detail) if label.detail else {}
    detail = {"labeller": label.labeller, "reason": label.reason, "model": label.model}
    if label.prompt_hash is not None:
        detail["prompt_hash"] = label.prompt_hash
    return {k: v for k, v in detail.items() if v is not None} | (more if isinstance(more, dict) else {})
