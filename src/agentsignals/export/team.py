"""A team's view of its members' agents: counts, costs, failures, outcomes and distributions, and no text at all.

Every figure rests on sessions of published cells (week, agent, model), each of which holds five or more. No total
includes a session of an unpublished cell, so none can be found by subtraction. Names are from a closed vocabulary that
this program ships; others are `other_agent` or `other_model`. People, repositories, paths, branches and days are left
out. `check` verifies all that of a file.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from statistics import fmean, quantiles
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct, field

from agentsignals.errors import ExportError
from agentsignals.export import queries
from agentsignals.formats import formats
from agentsignals.model import prices
from agentsignals.questions.baseline import FEWEST
from agentsignals.signals import Signal
from agentsignals.signals.catalog import catalogue

DIGITS = 4
"""Significant digits of anything but a plain count: more would identify a sum, and could hold a text."""
MOST_COUNT = 100_000
"""Whole numbers below this are counts and are not rounded."""
KIND: Final = "agentsignals-team"
OTHER_AGENT, OTHER_MODEL, NO_MODEL, NO_WEEK = "other_agent", "other_model", "no_model", "no_week"
SEVERAL = "several"
Outcome = Literal[
    "accepted", "explicitly_rejected", "restarted_same_task", "abandoned_mid_session", "solved", "failed",
    "agent_not_started", "verifier_not_run", "infrastructure", "no_verdict",
]  # fmt: skip
_WEEK = re.compile(rf"{NO_WEEK}|(?:199[1-9]|20\d\d)-W(?:0[1-9]|[1-4]\d|5[0-3])", re.ASCII)
Ask = Callable[[str], list[dict[str, Any]]]


class Cell(Struct, kw_only=True, forbid_unknown_fields=True):
    context: Literal["product", "eval"]
    week: str
    """ISO 8601: `2026-W03`; `no_week` where no time is recorded."""
    agent: str
    model: str
    sessions: int
    prompts: int
    calls: int
    failed_calls: int
    edits: int
    input_tokens: float
    """Cached or not."""
    output_tokens: float
    cost_usd: float | None
    outcomes: dict[Outcome, int]
    """Without rare outcomes, and without the next larger one where subtraction would reveal them."""


class Spread(Struct, kw_only=True, forbid_unknown_fields=True):
    context: Literal["product", "eval"]
    agent: str
    signal: str
    n: int
    mean: float
    """Mean; for a flag, the share of true values."""
    q25: float | None
    median: float | None
    q75: float | None


class Proof(Struct, kw_only=True, forbid_unknown_fields=True):
    """Checks of the file that holds it."""

    vocabulary: str
    words: int
    strings: int
    """Names and values that were looked up in the vocabulary."""
    numbers: int
    cells_left_out: int
    """Weeks of an agent and model with fewer than five sessions that fit into no other cell."""


class Team(Struct, kw_only=True, forbid_unknown_fields=True):
    kind: Literal["agentsignals-team"] = KIND
    version: Literal[1] = 1
    fewest: int = FEWEST
    cells: list[Cell] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    proof: Proof


@cache
def vocabulary() -> frozenset[str]:
    """Return every word that a file may contain: names of fields, signals, agents, models, outcomes. Besides them only
    weeks and numbers are allowed."""
    fields = (name for record in (Team, Cell, Spread, Proof) for name in record.__struct_encode_fields__)
    ours = (KIND, "product", "eval", SEVERAL, NO_MODEL, NO_WEEK, *get_args(Outcome), *fields)
    return frozenset((*ours, *_agents(), *prices.table().models, OTHER_MODEL, *_signals()))


@cache
def vocabulary_hash() -> str:
    return sha256("\n".join(sorted(vocabulary())).encode()).hexdigest()


def team(ask: Ask) -> Team:
    """Return a store's export. ExportError where no cell has enough sessions."""
    by_price = {id(price): name for name, price in prices.table().models.items()}
    rows = []
    for row in ask(queries()["team.sessions"]):  # with agent, model and outcome in words of the vocabulary
        listed = prices.price(row["model"]) if row["model"] else None
        model = NO_MODEL if not row["model"] else OTHER_MODEL if listed is None else by_price[id(listed)]
        agent = row["agent"] if row["agent"] in _agents() else OTHER_AGENT
        outcome = row["outcome"] if row["outcome"] in get_args(Outcome) else "no_verdict"
        context = row["context"] if row["context"] == "eval" else "product"
        rows.append(row | {"agent": agent, "model": model, "outcome": outcome, "context": context})
    by_cell, left_out = _cells(rows)
    if not by_cell:
        raise ExportError(
            f"No agent has {FEWEST} sessions in one week; fewer could reveal individual ones.", "Collect more sessions."
        )
    cells = [_cell(key, of_cell) for key, of_cell in sorted(by_cell.items())]
    agents = {row["session_id"]: (key[0], key[2]) for key, of_cell in by_cell.items() for row in of_cell}
    proof = Proof(vocabulary=vocabulary_hash(), words=len(vocabulary()), strings=0, numbers=0, cells_left_out=left_out)
    made = Team(cells=cells, spreads=list(_spreads(ask(queries()["team.values"]), agents)), proof=proof)
    proof.strings, proof.numbers = _counted(made)
    return msgspec.json.decode(msgspec.json.encode(made), type=Team)  # numbers are of the types that its fields have


def encode(made: Team) -> bytes:
    """Encode the file in the one allowed way, so that its formatting carries no information."""
    return msgspec.json.format(msgspec.json.encode(made, order="sorted"), indent=1) + b"\n"


def check(content: bytes) -> Team:
    """Check a file: each string is looked up, each number measured. ExportError says where, never what."""
    try:
        made = msgspec.json.decode(content, type=Team)
        raw = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise _refused(f"its fields differ from this version's ({type(problem).__name__})") from problem
    for place, value in _tokens(raw, "$"):
        if (why := _why_not(place, value)) is not None:
            raise _refused(f"{place} {why}")
    if encode(made) != content:
        raise _refused("its JSON differs from what this program writes, so it could hide a text")
    if any(cell.sessions < FEWEST for cell in made.cells) or any(spread.n < FEWEST for spread in made.spreads):
        raise _refused(f"a figure rests on fewer than {FEWEST} sessions")
    if any(0 < n < FEWEST for cell in made.cells for n in cell.outcomes.values()):
        raise _refused(f"it shows an outcome of fewer than {FEWEST} sessions")
    proof = made.proof
    if (proof.vocabulary, proof.words, (proof.strings, proof.numbers)) != (
        vocabulary_hash(), len(vocabulary()), _counted(made),
    ):  # fmt: skip
        raise _refused("its checksums are of another file, or of another version")
    return made


def _refused(why: str) -> ExportError:
    return ExportError(f"This team export may contain text of sessions: {why}.", "Do not share it. Export it again.")


def _why_not(place: str, value: Any) -> str | None:
    if isinstance(value, str):
        if place == "$.proof.vocabulary":
            return None if value == vocabulary_hash() else "is the hash of other words"
        if place.endswith(".week"):
            return None if _WEEK.fullmatch(value) else "is no week"
        return None if value in vocabulary() else "is a string that is no word of the vocabulary"
    if isinstance(value, bool) or not math.isfinite(value):
        return "is no number"
    return None if value == _rounded(value) else f"has more than {DIGITS} digits"


def _tokens(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield every name, string and number of a document with its place."""
    if isinstance(value, dict):
        for name, held in value.items():
            yield f"the name of a field in {place}", name
            yield from _tokens(held, f"{place}.{name}" if name in vocabulary() else f"{place}.?")
    elif isinstance(value, list):
        for n, held in enumerate(value):
            yield from _tokens(held, f"{place}[{n}]")
    elif value is not None:
        yield place, value


def _counted(made: Team) -> tuple[int, int]:
    tokens = [value for _, value in _tokens(msgspec.to_builtins(made), "$")]
    strings = sum(isinstance(value, str) for value in tokens)
    return strings, len(tokens) - strings


@cache
def _agents() -> frozenset[str]:
    named = (unit.profile.agent for unit in formats().values() if unit.profile is not None)
    return frozenset((*(name for name in named if name), OTHER_AGENT))


@cache
def _signals() -> dict[str, Signal]:
    return {signal.path: signal for signal in catalogue().values()}


Key = tuple[str, str, str, str]


def _cells(rows: Iterable[dict[str, Any]]) -> tuple[dict[Key, list[dict[str, Any]]], int]:
    """Group sessions into cells. Small cells are merged over models, then over agents, of that week. Also return the
    number of cells that stay too small."""
    cells: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if _WEEK.fullmatch(row["week"] or ""):
            cells[row["context"], row["week"], row["agent"], row["model"]].append(row)
    for together in (lambda k: (k[0], k[1], k[2], SEVERAL), lambda k: (k[0], k[1], SEVERAL, SEVERAL)):
        merged: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        for key, of_cell in cells.items():
            merged[key if len(of_cell) >= FEWEST else together(key)] += of_cell
        cells = merged
    kept = {key: of_cell for key, of_cell in cells.items() if len(of_cell) >= FEWEST}
    return kept, len(cells) - len(kept)


def _cell(key: Key, rows: Sequence[dict[str, Any]]) -> Cell:
    context, week, agent, model = key
    sums = {name: sum(row[name] or 0 for row in rows) for name in ("prompts", "calls", "failed_calls", "edits")}
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    return Cell(
        context="eval" if context == "eval" else "product",
        week=week,
        agent=agent,
        model=model,
        sessions=int(_rounded(len(rows))),
        **{name: int(_rounded(value)) for name, value in sums.items()},
        input_tokens=_rounded(sum(row["input_tokens"] for row in rows)),
        output_tokens=_rounded(sum(row["output_tokens"] for row in rows)),
        cost_usd=_rounded(math.fsum(costs)) if len(costs) >= FEWEST else None,
        outcomes=frequent_outcomes(Counter(row["outcome"] for row in rows)),
    )


def frequent_outcomes(counted: Counter[Any]) -> dict[Any, int]:
    """Return counts of five or more, without those that would reveal a smaller one by subtraction."""
    ordered = sorted(counted.items(), key=lambda pair: (pair[1], pair[0]))
    hidden = sum(n for _, n in ordered if n < FEWEST)
    shown = [pair for pair in ordered if pair[1] >= FEWEST]
    while shown and 0 < hidden < FEWEST:
        hidden += shown.pop(0)[1]
    return {name: int(_rounded(n)) for name, n in sorted(shown)}


def _spreads(rows: Iterable[dict[str, Any]], agents: dict[str, tuple[str, str]]) -> Iterator[Spread]:
    """Numbers and flags of each agent, where five or more have them, and none or five or more lack them."""
    totals = Counter(agents.values())
    held: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["session_id"] in agents and row["signal"] in _signals():
            held[(*agents[row["session_id"]], row["signal"])].append(row["number"])
    for (context, agent, signal), numbers in sorted(held.items()):
        lack = totals[context, agent] - len(numbers)
        if len(numbers) < FEWEST or 0 < lack < FEWEST:
            continue
        is_flag = _signals()[signal].type == "bool"
        have = sum(map(bool, numbers))
        if is_flag and (0 < have < FEWEST or 0 < len(numbers) - have < FEWEST):
            continue
        parts = [None] * 3 if is_flag else [_rounded(q) for q in quantiles(numbers, n=4, method="inclusive")]
        yield Spread(
            context="eval" if context == "eval" else "product",
            agent=agent,
            signal=signal,
            n=int(_rounded(len(numbers))),
            mean=_rounded(fmean(numbers)),
            q25=parts[0],
            median=parts[1],
            q75=parts[2],
        )


def _rounded(number: float) -> float:
    if float(number).is_integer() and abs(number) < MOST_COUNT:
        return number
    return float(f"{number:.{DIGITS}g}")
