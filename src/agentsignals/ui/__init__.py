"""The local page, read only on 127.0.0.1, and the report, one file that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentsignals.errors import UsageError
from agentsignals.questions.studies import studies as every_study
from agentsignals.questions.studies import study

FORMS = (".html", ".md", ".json")
"""Endings of a report's file."""


def check_report(path: Path, studies: Sequence[str] | None = None) -> None:
    """Raise UsageError for an ending or a study that no report has. Loads nothing of what writes one."""
    if path.suffix.lower() not in FORMS:
        came = f"ends in {path.suffix!r}" if path.suffix else "has no file extension"
        raise UsageError(f"The report {path.name!r} {came}.", f"Use one of: {', '.join(FORMS)}.")
    for name in studies or every_study():
        study(name)
