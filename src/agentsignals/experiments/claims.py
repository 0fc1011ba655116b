"""Claims in a YAML file: what was published, how to recompute it, and the tolerance.

A claim is computed by its own SQL (`query`), by a shared `recipe`, by a study's `finding`, or by the lab's `audit`; one
that cannot be computed says what it `needs`. SQL queries the tables that `over` names, or the store's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from msgspec import Struct, field

from agentsignals.errors import ClaimsError, UsageError

SETS = Path(__file__).parent / "claim_sets"
"""Claim sets shipped with the package."""

Plain = bool | int | float | str
Value = Plain | dict[str, Plain]
"""One value, or several by name."""
Type = Literal["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"]

_MOST_BYTES = 4_000_000
_DEEPEST = 20
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """Rows that claims are computed from: files in the data folder, or a query over the store."""

    files: tuple[str, ...] = ()
    """Patterns below the data folder; the first with a match counts. Parquet, CSV or JSON lines."""
    columns: dict[str, Type] = field(default_factory=dict)
    """Columns to read, with their types; a file need not have all. Empty: all, as they are."""
    store: str = ""
    """SQL for the same rows from the store, used without a data folder."""
    rows_are: str = ""
    """Description of the rows, for a store without any."""


class Snapshot(Struct, frozen=True, forbid_unknown_fields=True):
    """A state of a living data set. Its claims do not apply to other data."""

    query: str
    """Returns true if the rows are that snapshot."""
    over: str
    says: str
    """Description by which it is recognized."""


class Claim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"arguments": "with"}):
    """One published statement with its number."""

    id: str
    expected: Value
    text: str = ""
    query: str = ""
    """SELECT of one row: the value, or several by name; a column `n` holds the number of observations."""
    recipe: str = ""
    finding: str = ""
    audit: str = ""
    """A question of the lab's audit of published runs. `with` names the `run`, optionally the `evaluator`, and the
    `value` expected."""
    needs: str = ""
    over: str | dict[str, str] = ""
    """The table that the SQL calls `rows`, or tables by the names it uses."""
    arguments: dict[str, Plain] = field(default_factory=dict)
    """Values of the SQL's `$names`; `with` in the file."""
    tolerance: float | str = 0.0
    """Allowed difference, in the value's unit or as `10%` of what is expected."""
    source: str = ""
    definition: str = ""
    note: str = ""
    prior_result: Literal["", "does not reproduce"] = ""
    """Result of earlier replications; the claim is computed and judged all the same."""
    snapshot: str = ""


class UnreadableClaim(Struct, frozen=True):
    """An invalid entry of the file, with the reason."""

    id: str
    why: str


class ClaimSet(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of claims."""

    claims: list[Any]
    about: str = ""
    source: str = ""
    """Source of every claim without its own."""
    data: str = ""
    """Description of `--data` for these claims."""
    tables: dict[str, Table] = field(default_factory=dict)
    recipes: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)

    def entries(self) -> list[Claim | UnreadableClaim]:
        """Return the claims in order. An invalid one does not affect the others."""
        read: list[Claim | UnreadableClaim] = []
        seen: set[str] = set()
        for n, raw in enumerate(self.claims, 1):
            named = raw.get("id") if isinstance(raw, dict) else None
            called = named if isinstance(named, str) and named else f"claim {n}"
            entry: Claim | UnreadableClaim
            try:
                entry = msgspec.convert(raw, Claim)
                if wrong := _wrong(entry, self):
                    entry = UnreadableClaim(called, wrong)
            except ValueError as problem:
                entry = UnreadableClaim(called, str(problem))
            again = entry.id in seen
            seen.add(entry.id)
            read.append(UnreadableClaim(entry.id, "an earlier claim has this id") if again else entry)
        return read


def names() -> list[str]:
    """Return the names of the shipped sets."""
    return sorted(path.stem for path in SETS.glob("*.yaml"))


def load(claims: str | Path) -> ClaimSet:
    """Load the claim set of that name, or from that file. UsageError if there is none, ClaimsError if it is invalid."""
    path = SETS / f"{claims}.yaml" if str(claims) in names() else Path(claims)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ClaimsError(f"{path} has over {_MOST_BYTES:,} bytes.", "Split it.")
        content = path.read_bytes()
    except OSError as problem:
        raise UsageError(
            f"No claims {str(claims)!r}: no set has that name, and no file can be read there ({problem.strerror}).",
            f"The sets: {', '.join(names())}.",
        ) from problem
    return parse(content, str(path))


def parse(content: bytes, name: str) -> ClaimSet:
    """Parse a YAML document of claims. ClaimsError if it is invalid as a whole."""
    try:
        # Aliases and merges can expand endlessly, and deep nesting exhausts the loader's stack.
        depth = 0
        for event in yaml.parse(content, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"line {event.start_mark.line + 1} has an alias; write the value out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError(f"line {event.start_mark.line + 1} is nested more than {_DEEPEST} deep")
        return msgspec.convert(yaml.load(content, Loader=_LOADER), ClaimSet)  # noqa: S506  (a safe loader)
    except (yaml.YAMLError, ValueError) as problem:  # msgspec's errors are values', too
        reason = " ".join(str(problem).split())
        raise ClaimsError(f"{name} holds no claims: {reason}", "docs/replicate.md describes the file.") from problem


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _wrong(claim: Claim, inside: ClaimSet) -> str:
    ways = [way for way in ("query", "recipe", "finding", "audit", "needs") if getattr(claim, way)]
    unknown = sorted(set(tables_of(claim).values()) - set(inside.tables))
    if len(ways) != 1:
        return f"of query, recipe, finding, audit and needs it has {' and '.join(ways) or 'none'}; one is wanted"
    if claim.recipe and claim.recipe not in inside.recipes:
        return f"there is no recipe {claim.recipe!r}"
    if claim.audit and not ({"run"} <= set(claim.arguments) <= {"run", "evaluator", "value"}):
        return "an audit's `with` names its run, and maybe evaluator and value"
    if unknown:
        return f"there is no table {unknown[0]!r}"
    if claim.snapshot and claim.snapshot not in inside.snapshots:
        return f"there is no snapshot {claim.snapshot!r}"
    if isinstance(claim.tolerance, str) and not _PERCENT.fullmatch(claim.tolerance):
        return f"the tolerance {claim.tolerance!r} is neither a number nor a percentage"
    return ""


def tables_of(claim: Claim) -> dict[str, str]:
    """Return the set's table for each name in the claim's SQL."""
    if isinstance(claim.over, str):
        return {"rows": claim.over} if claim.over else {}
    return claim.over


def tolerance_of(claim: Claim, expected: Plain) -> float:
    """Return the allowed difference in the value's unit; 0 for text and booleans."""
    if isinstance(expected, (bool, str)):
        return 0.0
    if isinstance(claim.tolerance, str):
        return abs(expected) * float(claim.tolerance.rstrip(" %")) / 100
    return float(claim.tolerance)
