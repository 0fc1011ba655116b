"""Verdicts of SWE-bench Pro: `eval_results.json`, a document of true or false by instance
(design/formats.md#swe-bench)."""

from __future__ import annotations

import posixpath
import re

from msgspec import Raw

from agentsignals.formats import Claim, Format, Input, Reading
from agentsignals.formats.documents import each, tally
from agentsignals.formats.head import CUT, Head
from agentsignals.formats.instances import run_of_model
from agentsignals.formats.records import decoder, document, saw
from agentsignals.model import Attempt

_INSTANCE = re.compile(r"instance_[\w.-]+__[\w.-]+-[0-9a-f]{7,}(?:-v[\w.]*)?")


def claims(head: Head) -> Claim | None:
    """Claim a document whose keys are instances of this data set, and whose values are true or false."""
    entries = head.document
    is_ours = bool(entries) and all(map(_INSTANCE.fullmatch, entries))
    return Claim(keys=[]) if is_ours and all(isinstance(v, bool) or v is CUT for v in entries.values()) else None


def read(inputs: list[Input]) -> Reading:
    """Read each verdict as an attempt of the run that the folder is named for."""
    reading = Reading()
    for source in inputs:
        verdicts = document(source.data, source.artifact, decoder(dict[str, Raw]).decode)
        if verdicts is None:
            continue
        saw(source.artifact, "document")
        resolved = each(list(verdicts.values()), decoder(bool).decode, source.artifact)
        tally(source.artifact, "verdict", [None if one is None else str(one).lower() for one in resolved])
        run = posixpath.basename(source.folder)
        for instance, one in zip(verdicts, resolved, strict=True):
            if one is None:
                continue
            said = source.states(f"{instance} {'resolved' if one else 'not resolved'}", ["reward", "knobs.dataset"])
            part = Attempt(
                root=f"{source.artifact.path}/{instance}",
                scope="trial",
                task_id=instance,
                run_id=run or None,
                goes_by=run_of_model(run, instance) if run else None,
                reward=float(one),
                observed={"dataset": "SWE-bench_Pro"},
                statements=said,
            )
            reading.attempts.append(part)
    return reading


FORMAT = Format(name="swe-bench-pro", marks=(b'"instance_',), version=1, claims=claims, read=read, snapshots=False)
