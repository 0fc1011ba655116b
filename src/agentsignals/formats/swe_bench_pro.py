"""Verdicts of SWE-bench Pro: `eval_results.json`, a document of true or false by instance
(design/formats.md#swe-bench)."""

import posixpath
import re

from msgspec import Raw

from agentsignals.formats import Claim, Format, Input, Reading
from agentsignals.formats.documents import each, tally
from agentsignals.formats.instances import TrialsBelow, run_of_model
from agentsignals.formats.records import CUT, Head, decoder, document, saw
from agentsignals.model import Attempt

_INSTANCE = re.compile(r"instance_[\w.-]+__[\w.-]+-[0-9a-f]{7,}(?:-v[\w.]*)?")


def claims(head: Head) -> Claim | None:
    """Claim a document whose keys are instances of this data set, and whose values are true or false."""
    entries = head.document
    is_ours = bool(entries) and all(map(_INSTANCE.fullmatch, entries))
    is_ours = is_ours and all(isinstance(v, bool) or v is CUT for v in entries.values())
    return Claim(keys=[], judges=posixpath.dirname(head.path)) if is_ours else None


def read(inputs: list[Input]) -> Reading:
    """Read each verdict as an attempt of the run that the folder is named for, or lend it to the trial below the folder
    that has the instance."""
    reading = Reading()
    for source in inputs:
        verdicts = document(source.data, source.artifact, decoder(dict[str, Raw]).decode)
        if verdicts is None:
            continue
        saw(source.artifact, "document")
        resolved = each(list(verdicts.values()), decoder(bool).decode, source.artifact)
        tally(source.artifact, "verdict", [None if one is None else str(one).lower() for one in resolved])
        run, below = posixpath.basename(source.folder), TrialsBelow(source.trials_below)
        for instance, one in zip(verdicts, resolved, strict=True):
            if one is None:
                continue
            named = below.judged_by(instance, run, None, alone=True)
            if (named is None) is source.lent:
                continue  # it is another trial's, or this file is read for that trial
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
            if named is not None:
                part.root, part.scope, part.run_id = source.judges or source.folder, "lent", None
                part.goes_by = None if named.startswith("/") else named
            reading.attempts.append(part)
    return reading


FORMAT = Format(name="swe-bench-pro", marks=(b'"instance_',), version=2, claims=claims, read=read, snapshots=False)
