"""What each format says, and what it can't: read off the samples that the tests read, so that it can't be wished."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from tests import golden

from agentsignals.formats import Card, card_of, formats
from agentsignals.model import Session

NOTHING = "none"
_SAYS: dict[str, Callable[[Session], bool]] = {
    "times": lambda s: any(event.timestamp is not None for event in s.events),
    "model": lambda s: s.model is not None or any(step.model for step in s.steps),
    "tokens": lambda s: any(step.output_tokens is not None or step.input_tokens is not None for step in s.steps),
    "cached tokens": lambda s: any(step.cache_read_tokens is not None for step in s.steps),
    "cost": lambda s: any(step.cost_source == "recorded" for step in s.steps),
    "tool calls": lambda s: bool(s.tool_calls),
    "tool results": lambda s: any(call.result_seq is not None for call in s.tool_calls),
    "tool errors": lambda s: any(call.status == "error" for call in s.tool_calls),
    "edited lines": lambda s: any(edit.start_line is not None for edit in s.edits),
    "thinking": lambda s: any(event.kind == "thinking" for event in s.events),
}
"""In the order of the columns. Cost: as the log records it; from tokens and model it is estimated at list price."""


@cache
def said() -> dict[str, dict[str, bool]]:
    """By format: whether a sample says it. Formats that give no conversation are left out."""
    found: dict[str, dict[str, bool]] = {}
    for sample in golden.samples():
        files = [sample] if sample.is_file() else sorted(p for p in sample.rglob("*") if p.is_file())
        _, _, reading = golden.read_files(files, sample.parent)
        for session in reading.sessions:
            says = found.setdefault(session.format, dict.fromkeys(_SAYS, False))
            says.update({name: says[name] or holds(session) for name, holds in _SAYS.items()})
    return {name: found[name] for name in formats() if name in found}


def lacking(name: str) -> str:
    """What no sample of a format says, in words."""
    return ", ".join(what for what, holds in said()[name].items() if not holds) or NOTHING


def table() -> list[str]:
    """The whole of it as lines of Markdown."""
    return [
        f"| format | {' | '.join(_SAYS)} |",
        f"| --- |{' :-: |' * len(_SAYS)}",
        *(f"| {name} | {' | '.join(_mark(says.values()))} |" for name, says in said().items()),
    ]


def cards() -> list[str]:
    """What each format rests on, as lines of Markdown."""
    return [
        "| format | tested on | limits |",
        "| --- | --- | --- |",
        *(
            f"| {name} | {_rests_on(card)} | {' '.join(card.limits)} |"
            for name, made in formats().items()
            if (card := card_of(made)) is not None
        ),
    ]


def harness_fields() -> list[str]:
    """Fields of harnesses' record types that aren't read, with what that costs, as lines of Markdown."""
    rows: list[str] = []
    for name, made in formats().items():
        card = card_of(made)
        for told in card.fields if card is not None else ():
            costs: dict[str, list[str]] = {}
            for field, cost in told.not_read.items():
                if not cost.startswith("None"):
                    costs.setdefault(cost, []).append(f"`{field}`")
            package = (
                f"{name} | {told.package} {told.version} | {len(told.read)} of {len(told.read) + len(told.not_read)}"
            )
            rows += [f"| {package} | {', '.join(fields)} | {cost} |" for cost, fields in costs.items()]
    return ["| format | package | read | not read | consequence |", "| --- | --- | --- | --- | --- |", *rows]


def _rests_on(card: Card) -> str:
    return "; ".join(f"**{lot.kind}** {lot}" for lot in card.material).replace("|", "\\|")


def _mark(holds: Iterable[bool]) -> list[str]:
    return ["✓" if each else "–" for each in holds]
