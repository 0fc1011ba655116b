"""Traces of the lab's retry loop: an episode a file, each attempt in it a session of one trial.

What came back after a failed attempt begins the next one, and a retry is never merged with the first attempt.
"""

from __future__ import annotations

from agentsignals.formats import Format
from agentsignals.formats.lab_repository import claims_by

MARK = "agentsignals_lab"

FORMAT = Format(name="lab-retry", marks=(b'"agentsignals_lab"',), version=1, claims=claims_by(MARK))
