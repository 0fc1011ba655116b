"""What the agent planned to change and never touched."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent, ToolCall, Turn
from agentsignals.redaction import redacted
from agentsignals.views.evidence import Evidence
from agentsignals.views.plan import plans, text_steps
from agentsignals.views.session import SessionView

MOST_ITEMS = 60
MOST_TOLD = 20
_ITEM = re.compile(
    r"(?<![\w./-])(?:[\w@-][\w.@-]{0,80}/){0,12}[\w-][\w.-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,7}\b(?!\(|/)"
    r"|\b[A-Za-z_]\w{1,80}\(\)"
    r"|(?<![\w./-])[A-Za-z][a-z0-9]{0,40}(?:[A-Z][a-z0-9]{1,40}){1,8}\b(?![./])"
    r"|(?<![\w./-])[A-Za-z0-9]{1,40}(?:_[A-Za-z0-9]{1,40}){1,8}\b(?![./])"
)
"""A file, a call, an identifier in camel or snake case."""
_MAY_BE_ITEM = re.compile(r"[\w.-]\.[A-Za-z]|\w\(\)|[A-Za-z0-9][A-Z][a-z0-9]|[A-Za-z0-9]_[A-Za-z0-9]")
"""What every item has, wherever it stands: a mask takes words away, and adds none that is an item."""
_OF_NAME = ("_", "-", ".")
_NO_ITEMS = frozenset(("GitHub", "GitLab", "JavaScript", "TypeScript", "GraphQL", "DevOps", "Node.js", "e.g", "i.e"))
"""Names of products, and abbreviations, that look like something to change."""
_LOOKS_ONLY = re.compile(
    r"\W*(?:\*\*)?(?:(?:first|then|next|finally),? )?(?:read|check|look|review|inspect|explore|search|find|understand"
    r"|investigat\w+|analy[sz]e|identify|examine|locate|confirm|verify|run|compare|trace|audit|reproduce)\b",
    re.IGNORECASE,
)


@signal(
    "dynamics.gd_inaction",
    type="float",
    unit="ratio",
    origin="Agent Signals",
    source="derived",
    priority="P2",
    why="Parts of the plan that were forgotten on the way.",
    pitfalls="An adaptation to code, not the paper's number (arXiv 2505.02709). Names in prose: what was renamed"
    " counts as untouched; so do findings that a handed-over plan lists like steps. Few plans name what they change.",
)
def gd_inaction(view: SessionView, why: Evidence) -> Measured | Absent:
    """Files, functions and identifiers that the first plan names, outside steps that only look, and that no later edit,
    shell write or test names / all of them."""
    made, steps, source = _first_plan(view)
    items = _items(steps)
    if made is not None:
        why.support([made], "the plan:")
    if made is None or not items:
        return Absent("not_applicable", "no_plan_items")
    changed = view.changed_files
    later = [
        call
        for call, class_ in zip(view.calls, view.classes, strict=True)
        if call.seq > made.seq and class_ in ("edit", "shell_write", "test") and call.status != "rejected"
    ]
    files = {path for call in later for path in changed.get(call.seq, ())}
    arguments = "\n".join([c.arguments for c in later])
    untouched = [item for item in items if not (_is_changed(item, files) or _stands_in(item, arguments))]
    why.denominator(later, "after the plan:")
    why.rule(f"untouched: {', '.join(untouched[:MOST_TOLD]) or 'nothing'}")
    return ratio(len(untouched), len(items), source=source, untouched=untouched[:MOST_TOLD])


def _first_plan(view: SessionView) -> tuple[ToolCall | Turn | None, list[str], str]:
    """The plan the person hands over with the first turn, else the first the agent makes; its steps; what it is."""
    first = view.turns[0] if view.turns else None
    if first is not None and first.kind == "plan_handoff" and (steps := text_steps(first.text)):
        return first, steps, "handoff"
    if not any(c.class_ == "plan" for c in view.calls):
        return None, [], ""
    made = plans(view)
    return (made[0].call, made[0].steps, made[0].source) if made else (None, [], "")


def _items(steps: Sequence[str]) -> list[str]:
    """Each thing to change once, in the order of the plan. Masked first: a part of a mail address looks like a file."""
    names: dict[str, None] = {}
    for step in steps:
        if _MAY_BE_ITEM.search(step) and not _LOOKS_ONLY.match(step):
            names.update(dict.fromkeys(name.removesuffix("()") for name in _ITEM.findall(redacted(step))))
    return [name for name in names if name not in _NO_ITEMS][:MOST_ITEMS]


def _is_changed(item: str, files: set[str]) -> bool:
    return "." in item and any(path == item or path.endswith("/" + item) for path in files)


def _stands_in(name: str, text: str) -> bool:
    """Whether the name is there as a whole: not at the end of `other_name`, nor the beginning of `name2`."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or before in _OF_NAME or after.isalnum() or after == "_"):
            return True
        at = text.find(name, at + 1)
    return False
