"""What takes a checkout to say: how much of an agent's code lived, and which weaknesses came with it.

`agentsignals attribute REPO` and `scan REPO` leave their results as labels of the sessions they are about.
"""

from __future__ import annotations

import msgspec

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


def _measured(view: SessionView, why: Evidence, task: str, missing: Absent) -> Measured | Absent:
    label = next(
        (judgement for judgement in view.judgements(task) if judgement.turn is None and judgement.number is not None),
        None,
    )
    if label is None or label.number is None:
        return missing
    detail = msgspec.json.decode(label.detail) if label.detail else {}
    why.support(view.session.edits)
    why.rule(label.reason or f"measured by {label.labeller}")
    return Measured(label.number, {"labeller": label.labeller, **detail})


@signal(
    "chat.code_survival_rate",
    type="float",
    unit="ratio",
    origin="swe-chat",
    source="git",
    priority="P1",
    status="needs a repository",
    why="How much of what an agent wrote reached a commit.",
    pitfalls="Several published rates go by this name; the detail says which lines are divided by which.",
)
def code_survival_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Lines of the agent that are in the commits of the session, over the lines its successful edits added."""
    if not view.session.edits:
        return Absent("not_applicable", "no_edit")
    return _measured(view, why, "code_survival", Absent("missing_artifact", "git_attribution"))


@signal(
    "chat.vulnerabilities_introduced_per_kloc",
    type="float",
    unit="findings_per_kloc",
    origin="swe-chat",
    source="git",
    priority="P3",
    status="needs a repository",
    why="Which weaknesses came with an agent's lines.",
    pitfalls="Findings of a static scanner are not confirmed weaknesses; rates of different rule sets don't compare.",
)
def vulnerabilities_introduced_per_kloc(view: SessionView, why: Evidence) -> Measured | Absent:
    """New findings of a scanner in the files that the session's commits changed, per 1 000 added lines."""
    return _measured(view, why, "vulnerabilities", Absent("backend_disabled", "scanner"))
