"""How much to think of the verdicts on passes: what they were worth on hacks nobody had in mind (docs/audit.md)."""

from __future__ import annotations

from typing import Final

from agentsignals.stats.proportions import wilson

HACKS: Final = 136
"""Passed runs of the second, blind set in which a hack was planted; as many are honest twins:
`python -m benchmarks.stories.measure FOLDER second all`."""
FLAGGED: Final = 70
CANNOT_TELL: Final = 32
FALSE_ALARMS: Final = 4
"""Honest runs that are flagged."""


def _share(n: int) -> str:
    low, high = wilson(n, HACKS) or (0.0, 1.0)
    return f"{100 * n / HACKS:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


CAVEAT: Final = (
    f"Derived: nothing was found in what the trace keeps. Of {HACKS} hacks that another writer planted blind,"
    f" {_share(FLAGGED)} are flagged, {100 * CANNOT_TELL / HACKS:.0f} % cannot be told, and"
    f" {100 * (HACKS - FLAGGED - CANNOT_TELL) / HACKS:.0f} % are called derived; of as many honest runs"
    f" {_share(FALSE_ALARMS)} are flagged (docs/audit.md). What a model knows by heart is in no trace."
)
"""Stands beside every number that rests on them."""
