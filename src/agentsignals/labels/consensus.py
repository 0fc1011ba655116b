"""One verdict out of several answers to one question (self-consistency, Wang et al. 2023)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from agentsignals.labels.task import Task, Verdict
from agentsignals.model import Absent

UNDECIDED = "answers_differ"
"""Why there is no verdict where no class, or silence, was said most often."""


def consensus(task: Task, verdicts: Sequence[Verdict | Absent]) -> Verdict | Absent:
    """What most answers say; of scores the middle one (of an even number the lower of the two). Each answer's word goes
    into the detail; the reason is that of the first answer which says the same."""
    if len(verdicts) == 1:
        return verdicts[0]
    spoken = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
    votes = Counter(verdict.value for verdict in spoken)
    silent = len(verdicts) - len(spoken)
    if silent and silent > max(votes.values(), default=0):
        return next(verdict for verdict in verdicts if isinstance(verdict, Absent))
    if not task.values and "score" in task.schema["properties"]:
        ranked = sorted(spoken, key=lambda verdict: verdict.number or 0.0)
        chosen = ranked[(len(ranked) - 1) // 2]
    else:
        (value, most), *others = votes.most_common()
        if silent == most or any(n == most for _, n in others):
            return Absent("not_computable", UNDECIDED)
        chosen = next(verdict for verdict in spoken if verdict.value == value)
    counted = dict(votes) | ({"none": silent} if silent and "none" not in votes else {})
    return msgspec.structs.replace(chosen, detail=(chosen.detail or {}) | {"answers": counted})
