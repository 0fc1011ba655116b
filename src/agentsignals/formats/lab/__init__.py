"""Episodes of the lab: an agent on a repository, and a retry loop, each attempt of which is a session of one trial.

What came back after a failed attempt begins the next one, and a retry is never merged with the first attempt.
"""

from collections.abc import Callable

from agentsignals.formats import Claim, Format, read_by
from agentsignals.formats.head import Head
from agentsignals.formats.profile import EDIT, OTHER, READ, SEARCH, Profile, Tool, named

PROFILE = Profile(
    agent="lab-repository",
    tools=named(
        (SEARCH, "list search"),
        (READ, "read"),
        (EDIT, "replace write patch"),
        (Tool(class_="test"), "test"),
        (OTHER, "submit"),
    ),
)
REPOSITORY_MARK, RETRY_MARK = "agentsignals_lab_repository", "agentsignals_lab"


def claims_by(mark: str) -> Callable[[Head], Claim | None]:
    """Return the `claims` of files whose first line has the mark. Copies of an episode share its trial's name."""

    def claims(head: Head) -> Claim | None:
        if f'"{mark}"'.encode() not in head.data[:4_000] or not head.records:
            return None
        trial, version = head.records[0].get("trial_id"), head.records[0].get(mark)
        keys = [f"trial:{trial}"] if isinstance(trial, str) and trial else []
        return Claim(keys=keys) if isinstance(version, int) else None

    return claims


LAB_REPOSITORY_FORMAT = Format(
    name="lab-repository",
    marks=(b'"agentsignals_lab_repository"',),
    version=3,
    claims=claims_by(REPOSITORY_MARK),
    read=read_by("lab.reader", "read_repository"),
    profile=PROFILE,
)
LAB_RETRY_FORMAT = Format(
    name="lab-retry",
    marks=(b'"agentsignals_lab"',),
    version=1,
    claims=claims_by(RETRY_MARK),
    read=read_by("lab.reader", "read_retry"),
)
