"""Published claims against computed values: pass, fail, or untestable with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from agentsignals.errors import SourceError
from agentsignals.model import Absent
from agentsignals.replicate.claims import Claim, ClaimSet, Plain, Unread, Value, load, tables_of, tolerance_of

if TYPE_CHECKING:
    from agentsignals.replicate.ground import Answer, Ground
    from agentsignals.store import Store

Status = Literal["pass", "fail", "untestable"]

_FLOAT_SLACK = 1e-9
"""A value half a decimal off is within tolerance, also where binary numbers put it a hair beyond."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What became of a claim."""

    claim: str
    status: Status
    expected: Value | None
    computed: Value | None
    """None when nothing could be computed; `note` says why. Of data that is not what the claim is about: what it gives,
    and the claim is untestable all the same."""
    tolerance: float | dict[str, float]
    """In the unit of the value; by name when the claim states several."""
    source: str
    note: str
    why: str
    """Why it is no pass; empty when it is one. `note` has it, too, before what else there is to know."""
    n: int | None = None
    """How many observations the computed value rests on."""
    text: str = ""
    prior_result: str = ""
    """`does not reproduce` when that was found before: a failure that is no news."""


def replicate(claims: str | Path, data: Path | str | None = None, store: Store | None = None) -> list[Verdict]:
    """Checks the claims of a set's name or of a YAML file, in their order.

    `data`: the folder or file the claims are about; without it the store stands in where the set says how. Data that is
    missing makes a claim untestable; data that is there and can't be read makes it fail. SourceError when `data` is not
    there at all, UsageError or ClaimsError when there are no such claims.
    """
    from agentsignals.replicate.ground import Ground  # noqa: PLC0415  (DuckDB is loaded when there is something to ask)

    claim_set = load(claims)
    folder = Path(data).expanduser() if data is not None else None
    if folder is not None and not folder.exists():
        raise SourceError(f"There is no {folder}.", f"--data names {claim_set.data or 'the data of the claims'}.")
    ground = Ground(claim_set.tables, folder, store)
    return [_verdict(entry, claim_set, ground) for entry in claim_set.entries()]


def _verdict(entry: Claim | Unread, claim_set: ClaimSet, ground: Ground) -> Verdict:
    if isinstance(entry, Unread):
        why = f"the claim can't be read: {entry.why}"
        return Verdict(
            claim=entry.id,
            status="untestable",
            expected=None,
            computed=None,
            tolerance=0.0,
            source=claim_set.source,
            note=why,
            why=why,
        )
    computed = _computed(entry, claim_set, ground)
    other_data = _other_data(entry, claim_set, ground)
    answer = computed if other_data is None else other_data
    status: Status
    if isinstance(answer, Absent):
        status, why = (
            ("fail" if answer.reason == "parse_error" else "untestable"),
            f"{answer.reason}: {answer.detail}",
        )
    else:
        why = _differs(entry, answer.value)
        status = "fail" if why else "pass"
    expectation = f"known before: {entry.prior_result}" if entry.prior_result and status == "fail" else ""
    if entry.prior_result and status == "pass":
        expectation = f"was known before as: {entry.prior_result}; on this data it does"
    return Verdict(
        claim=entry.id,
        status=status,
        expected=entry.expected,
        computed=None if isinstance(computed, Absent) else computed.value,
        tolerance=_tolerances(entry),
        source=entry.source or claim_set.source,
        note="; ".join(part for part in (why, expectation, entry.definition, entry.note) if part),
        why=why,
        n=None if isinstance(computed, Absent) else computed.n,
        text=entry.text,
        prior_result=entry.prior_result,
    )


def _computed(claim: Claim, claim_set: ClaimSet, ground: Ground) -> Answer | Absent:
    if claim.needs:
        return Absent("missing_artifact", f"needs {claim.needs}")
    if claim.finding:
        return ground.finding(claim.finding)
    if claim.audit:
        expected = claim.expected
        wanted = list(expected) if isinstance(expected, dict) else [str(claim.arguments.get("value", ""))]
        return ground.audited(claim.audit, claim.arguments, wanted)
    return ground.ask(claim.query or claim_set.recipes[claim.recipe], tables_of(claim), claim.arguments)


def _other_data(claim: Claim, claim_set: ClaimSet, ground: Ground) -> Absent | None:
    """Why the data at hand is not the snapshot that the claim is about; None when it is."""
    if not claim.snapshot:
        return None
    snapshot = claim_set.snapshots[claim.snapshot]
    there = ground.ask(snapshot.query, {"rows": snapshot.over}, {})
    if isinstance(there, Absent):
        return there
    if there.value is True:
        return None
    return Absent("not_applicable", f"the data at hand is not snapshot {claim.snapshot}: {snapshot.says}")


def _tolerances(claim: Claim) -> float | dict[str, float]:
    if isinstance(claim.expected, dict):
        return {name: tolerance_of(claim, value) for name, value in claim.expected.items()}
    return tolerance_of(claim, claim.expected)


def _differs(claim: Claim, computed: Value) -> str:
    """What is off, in words; empty when all is within tolerance."""
    if not isinstance(claim.expected, dict):
        if isinstance(computed, dict):
            return f"one value is expected, the query gave {', '.join(computed)}"
        return "" if _near(claim, claim.expected, computed) else "off by more than the tolerance"
    if not isinstance(computed, dict):
        return f"{', '.join(claim.expected)} are expected, the query gave one value"
    off = [
        name
        for name, value in claim.expected.items()
        if name not in computed or not _near(claim, value, computed[name])
    ]
    return f"off by more than the tolerance: {', '.join(off)}" if off else ""


def _near(claim: Claim, expected: Plain, computed: Plain) -> bool:
    if isinstance(expected, (bool, str)) or isinstance(computed, (bool, str)):
        return type(expected) is type(computed) and expected == computed
    return abs(computed - expected) <= tolerance_of(claim, expected) + _FLOAT_SLACK
