"""Studies: questions answered over many sessions, with n, interval and versions.

A file in this folder declares one or several studies (`…_STUDY`). `Study.order` is the position in the report.
"""

from __future__ import annotations

from functools import cache

from agentsignals.model.registry import Registry
from agentsignals.questions.question import Study

STUDIES = Registry[Study]("study", "agentsignals.questions.studies", "STUDY", lambda unit: isinstance(unit, Study))


@cache
def studies() -> dict[str, Study]:
    """Every study by name, in the order of the report."""
    declared = sorted(STUDIES.all().values(), key=lambda study: (study.order, study.name))
    return {study.name: study for study in declared}


def study(name: str) -> Study:
    """Return the study of that name. UsageError lists the names."""
    return STUDIES.get(name)
