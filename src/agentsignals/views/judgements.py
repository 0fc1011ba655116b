"""What a judge said of a session: a person, or a model that read it.

Where several labellers did a task, the one with most labels of it counts, then the youngest; the detail names it.
"""

from __future__ import annotations

import msgspec

from agentsignals.model import Absent, Label
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

NO_JUDGE = Absent("backend_disabled", "judge")
SPOKE = "session without assistant text"


def label_detail(label: Label) -> dict[str, object]:
    """Who said it, why, and what else."""
    more = msgspec.json.decode(label.detail) if label.detail else {}
    detail: dict[str, object] = {"labeller": label.labeller, "reason": label.reason, "model": label.model}
    if label.prompt_hash is not None:
        detail["prompt_hash"] = label.prompt_hash
    return {k: v for k, v in detail.items() if v is not None} | (more if isinstance(more, dict) else {})


def session_label(view: SessionView, why: Evidence, task: str) -> Label | Absent:
    """The label of a whole session by that task; absent without an agent's text, and where nobody judged it."""
    if not view.by_kind.get("text"):
        return Absent("not_applicable", SPOKE)
    label = next((judgement for judgement in view.judgements(task) if judgement.turn is None), None)
    if label is None:
        return NO_JUDGE
    why.rule(f"{label.labeller}: {label.value}" + (f" ({label.reason})" if label.reason else ""))
    return label
