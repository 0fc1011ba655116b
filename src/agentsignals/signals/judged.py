"""Signals whose value is a label: what a person, or a model that read the session, said of it.

Each value is the label of the task named; `agentsignals label TASK --by LABELLER` makes them. Where several labellers
did a task, the one with most labels of it counts, then the youngest; the detail names it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from agentsignals.model import Absent, Label
from agentsignals.signals import Measured, signals_with
from agentsignals.views.session import Evidence, SessionView

signal = signals_with(source="llm_judge", priority="P3", status="needs a judge")
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
    """Declare the value or number of a session's label. `task`: the path's last part, where it is not given."""
    asked = task or path.rpartition(".")[2]
    signal(path, type, unit, doc=doc, **facts)(lambda view, why: label_of(view, why, asked, field))


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
    more = msgspec.json.decode(label.detail) if label.detail else {}
    detail = {"labeller": label.labeller, "reason": label.reason, "model": label.model}
    if label.prompt_hash is not None:
        detail["prompt_hash"] = label.prompt_hash
    return {k: v for k, v in detail.items() if v is not None} | (more if isinstance(more, dict) else {})
