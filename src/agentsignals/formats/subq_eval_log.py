"""Output of the harness of Agent Signals: text with `[subq-eval]` lines and phase events.

A `stdout.txt` without any in its head is read inside of a trial, where they may come late.
"""

import posixpath

from agentsignals.formats import Claim, Format, patch, read_by, swe_bench_text
from agentsignals.formats.head import Head
from agentsignals.formats.subq_eval import PHASE, PRINTED

_NAME = "stdout.txt"


def claims(head: Head) -> Claim | None:
    folder, name = posixpath.split(head.path)
    if "[subq-eval]" in head.text and PRINTED.search(head.text):
        return Claim(keys=[], root=folder, gathers=True)
    if "plannotator-phase" in head.text and PHASE.search(head.text):
        return Claim(keys=[], root=folder, gathers=True)
    if name != _NAME or any(other.claims(head) is not None for other in (patch, swe_bench_text)):
        return None
    return Claim(keys=[], companion=True)


FORMAT = Format(
    name="subq-eval-log", version=1, claims=claims, read=read_by("subq_eval.stdout"), of_json=False, snapshots=False
)
