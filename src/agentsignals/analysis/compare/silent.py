"""Tasks that tell candidates not apart: solved by all, or by none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentsignals.analysis.compare.candidate import place, with_outcome
from agentsignals.analysis.compare.tried import Tried


class Silent(Struct, frozen=True, kw_only=True):
    """Of the tasks of which two candidates or more have an outcome, those where every first attempt came out alike."""

    tasks: int
    """All of these tasks."""
    solved: list[str]
    """Those that everyone solved; of numbers, those where all have the same one."""
    failed: list[str]
    """Those that nobody solved."""

    @property
    def telling(self) -> int:
        """The others: what a comparison rests on."""
        return self.tasks - len(self.solved) - len(self.failed)


def silent(first: Mapping[str, Sequence[Tried]], by_dataset: bool, *, yes_or_no: bool) -> Silent:
    """`first`: first attempts by candidate."""
    outcomes: dict[str, set[float]] = {}
    tried_by: dict[str, set[str]] = {}
    names = {place(o, by_dataset): o.task for attempts in first.values() for o in attempts if o.task is not None}
    for candidate, attempts in first.items():
        for task, outcome in with_outcome(attempts, by_dataset):
            outcomes.setdefault(task, set()).add(outcome)
            tried_by.setdefault(task, set()).add(candidate)
    shared = sorted(task for task, candidates in tried_by.items() if len(candidates) > 1 and task in names)
    alike = [task for task in shared if len(outcomes[task]) == 1]
    failed = [task for task in alike if yes_or_no and outcomes[task] == {0.0}]
    return Silent(
        tasks=len(shared),
        solved=[names[task] or "" for task in alike if task not in failed],
        failed=[names[task] or "" for task in failed],
    )
