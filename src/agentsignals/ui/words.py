"""Values as a reader of the page sees them."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.analysis.figures import AT_LEAST, MISSING, formatted
from agentsignals.analysis.study import Kind

CUT_CHARS = 90
"""A value longer than this is cut in a table; the page that explains it shows it whole."""
REASONS = {
    "not_applicable": "does not apply here",
    "missing_artifact": "its file was not collected",
    "missing_field": "the trace does not record it",
    "not_computable": "can’t be computed",
    "none_found": "none found",
    "dependency_null": "what it needs is absent",
    "backend_disabled": "needs a judge or model that is off",
    "censored": "the session ended before it could show",
    "parse_error": "could not be read",
}
"""The contract's reasons of absence, in words."""
_KINDS: dict[str, Kind] = {"USD": "usd", "seconds": "seconds", "tokens": "tokens"}


def reason(name: str) -> str:
    """Why a value is absent, in words."""
    return REASONS.get(name, name.replace("_", " "))


def figure(number: float | None, unit: str, at_least: bool = False) -> str:
    """A number in the words of its unit, which it carries only where it would not be understood without."""
    return formatted(number, _KINDS.get(unit, "number"), at_least)


def worth(value: str | None, number: float | None, type_: str, unit: str, at_least: bool = False) -> str:
    """A stored value (JSON text) in a few words; `at_least`: it is a lower bound."""
    if at_least and value is not None:
        return AT_LEAST + worth(value, number, type_, unit)
    if value is None:
        return MISSING
    if type_ == "bool":
        return "yes" if number else "no"
    if number is not None and type_ in ("int", "float"):
        return figure(number, unit)
    plain = msgspec.json.decode(value)
    if isinstance(plain, list) and not all(isinstance(item, str) for item in plain):
        return f"{len(plain):,} {'entry' if len(plain) == 1 else 'entries'}"
    return cut(plain if isinstance(plain, str) else _listed(plain))


def pretty(value: Any) -> str:
    """A value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()


def cut(text: str, chars: int = CUT_CHARS) -> str:
    """A text in one line, its end cut off."""
    flat = " ".join(text.split())
    return flat if len(flat) <= chars else flat[: chars - 1] + "…"


def unit(name: str) -> str:
    """A unit as it is read."""
    return name.replace("_", " ")


def times(n: int | None, singular: str, many: str = "") -> str:
    """A count with its noun: `1 call`, `2 calls`."""
    return f"{n or 0:,} {singular if n == 1 else many or singular + 's'}"


def _listed(plain: Any) -> str:
    if isinstance(plain, list):
        return ", ".join(plain) or "none"
    if isinstance(plain, dict):
        return ", ".join(f"{name} {_short(value)}" for name, value in plain.items()) or "none"
    return str(plain)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return formatted(value, "number")
    return str(value) if isinstance(value, str | int) or value is None else msgspec.json.encode(value).decode()
