"""What takes a reader to say, a person or a model that read the session: how well the task was understood.

Each value is a label's, of the task named: `agentsignals label TASK --by LABELLER` makes them.
"""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.judgements import label_detail, session_label
from agentsignals.views.session import SessionView


def _value(view: SessionView, why: Evidence, task: str) -> Measured | Absent:
    label = session_label(view, why, task)
    return label if isinstance(label, Absent) else Measured(label.value, label_detail(label))


def _number(view: SessionView, why: Evidence, task: str) -> Measured | Absent:
    label = session_label(view, why, task)
    if isinstance(label, Absent):
        return label
    if label.number is None:
        return Absent("parse_error", "label without a number")
    return Measured(label.number, label_detail(label))


@signal(
    "anticipation.task_paraphrase_accuracy",
    type="float",
    unit="similarity",
    origin="Agent Signals",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="The first restatement is the earliest sign of a misread task.",
    pitfalls="Agents often act without restating; then there is nothing to judge.",
)
def task_paraphrase_accuracy(view: SessionView, why: Evidence) -> Measured | Absent:
    """How completely and faithfully the agent's first restatement matches the request: a judge's 0 to 4, over 4."""
    return _number(view, why, "task_paraphrase_accuracy")


@signal(
    "anticipation.plan_optimality",
    type="enum",
    unit="label",
    origin="Agent Signals",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="Whether the first plan led where the work ended.",
    pitfalls="Judges are poor at this: calibrate against people's scores before using it.",
)
def plan_optimality(view: SessionView, why: Evidence, plan_steps_detected: int) -> Measured | Absent:
    """How the first explicit plan compares with the path that worked: optimal, suboptimal or wrong_direction."""
    if plan_steps_detected == 0:
        return Absent("not_applicable", "no_plan")
    return _value(view, why, "plan_optimality")


@signal(
    "anticipation.instruction_adherence",
    type="enum",
    unit="label",
    origin="Agent Signals",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="Whether what was asked for was done as asked.",
    pitfalls="Not the same as being right.",
)
def instruction_adherence(view: SessionView, why: Evidence) -> Measured | Absent:
    """How far the explicit instructions of the session were followed: full, partial, ignored or contradicted."""
    return _value(view, why, "instruction_adherence")
