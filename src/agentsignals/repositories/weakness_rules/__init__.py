"""The rules of our own: written from CWE descriptions and the documentation of the functions they name."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from agentsignals.repositories.weakness_rules.rule import Rule

_PACKS = ("python", "text")


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the packs."""
    declared = [
        rule for name in _PACKS for rule in import_module(f"agentsignals.repositories.weakness_rules.{name}").RULES
    ]
    return tuple(declared)


@cache
def rules_for(language: str) -> tuple[Rule, ...]:
    """The rules for files of this language."""
    return tuple(rule for rule in rules() if language in rule.languages or "any" in rule.languages)
