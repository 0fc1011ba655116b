"""Episodes of the lab's retry loop, each attempt of which is a session of one trial.

What came back after a failed attempt begins the next one, and a retry is never merged with the first attempt.
"""

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.records import Head

AGENT, MARK = "lab-retry", "agentsignals_lab"


def _claims(head: Head) -> Claim | None:
    """Claim a file whose first line has the mark. Copies of an episode share its trial's name."""
    if f'"{MARK}"'.encode() not in head.data[:4_000] or not head.records:
        return None
    trial, version = head.records[0].get("trial_id"), head.records[0].get(MARK)
    keys = [f"trial:{trial}"] if isinstance(trial, str) and trial else []
    return Claim(keys=keys) if isinstance(version, int) else None


LAB_RETRY_FORMAT = Format(
    name=AGENT, marks=(b'"agentsignals_lab"',), version=1, claims=_claims, read=read_by("lab.reader", "read_retry")
)
