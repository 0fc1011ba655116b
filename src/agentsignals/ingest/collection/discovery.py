"""Which of the repositories that somebody names hold checkpoints, before anything of them is read or fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from agentsignals.git import commits as git
from agentsignals.git import objects
from agentsignals.git.objects import GitError
from agentsignals.ingest.collection.addresses import candidates
from agentsignals.sources import checkpoints
from agentsignals.sources.git_clone import is_address


class Discovered(Struct, kw_only=True):
    """A repository, and what its refs say. Of one behind an address nothing is known before it is fetched."""

    place: str
    is_here: bool
    is_fork: bool = False
    layouts: dict[str, int] = field(default_factory=dict)
    """How many refs keep checkpoints in which way: `sharded` (a branch or ref of many), `rooted` (a ref each),
    `shadow`."""
    commits: int | None = None
    naming: int | None = None
    """Commits whose message names a checkpoint."""
    trouble: str | None = None


def discovered(wanted: Iterable[str]) -> list[Discovered]:
    """Each repository named by paths, addresses, folders of clones, lists or saved search results."""
    return [_looked_at(c.place, c.is_fork) for c in candidates(wanted)]


def _looked_at(place: str, is_fork: bool) -> Discovered:
    if is_address(place):
        return Discovered(place=place, is_here=False, is_fork=is_fork)
    repository = Discovered(place=place, is_here=True, is_fork=is_fork)
    located = objects.locate(Path(place))
    if located is None:
        repository.trouble = "no Git repository"
        return repository
    try:
        kept = (checkpoints.layout(name) for name, _ in objects.refs(located[0]))
        repository.layouts = dict(sorted(Counter(layout[0] for layout in kept if layout).items()))
        commits = git.commits(located[0])
    except GitError as failed:
        repository.trouble = str(failed) or "git said nothing"
        return repository
    repository.commits, repository.naming = len(commits), sum(bool(c.checkpoint_ids) for c in commits)
    return repository
