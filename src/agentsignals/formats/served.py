"""How a model call was served: what it is charged by, beside its tokens."""

from __future__ import annotations

from agentsignals.formats.one_document import REDACTED

_USUAL = frozenset(("", "standard", "default", "auto", "global", "not_available", REDACTED))
"""Speeds, service tiers and places that cost what the price list says."""


def special(name: object) -> str | None:
    """A way of being served other than the usual one."""
    return name if isinstance(name, str) and name not in _USUAL else None
