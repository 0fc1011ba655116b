"""Plain text that evaluations leave beside a trial: the output of its tests, the harness's log, a form of ratings.

It is read only where an eval run lies beside or below it (design/formats.md#swe-bench).
"""

from __future__ import annotations

import posixpath
import re

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.head import Head

_TESTS_RAN = re.compile(
    r"^(?:\+* ?source /opt/miniconda3/bin/activate|\+\+ _CONDA_ROOT=|>>>>> (?:Start Test Output|Applied Patch))",
    re.MULTILINE,
)
_LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - (?:INFO|ERROR|WARNING) - ", re.MULTILINE)
_OF_HARNESS = ("Creating container for ", "Container for ", "Intermediate patch for ", "Evaluating ", "Git diff before")
_RESULT = frozenset(("instance_id", "resolved"))
_FORM = "Evaluation Form"
_FIRST = 2_048


def claims(head: Head) -> Claim | None:
    """By their first lines."""
    begin = head.text[:_FIRST].lstrip()
    if {name.strip().strip('"') for name in begin.partition("\n")[0].split(",")} >= _RESULT:
        return Claim(keys=[])
    if begin.startswith(_FORM) and "\nOverall rating" in head.text:
        return Claim(keys=[], lends=posixpath.dirname(head.path), companion=True)
    is_log = _LOG.match(begin) is not None and any(words in begin for words in _OF_HARNESS)
    return Claim(keys=[], companion=True) if is_log or _TESTS_RAN.search(begin) else None


FORMAT = Format(
    name="swe-bench-text",
    version=3,
    claims=claims,
    read=read_by("swe_bench_text.files"),
    of_json=False,
    snapshots=False,
)
