"""The commits of a repository with the sessions that checkpoints link them to, before any line is attributed."""

from __future__ import annotations

from msgspec import Struct

from agentsignals.attribution.checkpoints import Link, Recorded, links, recorded
from agentsignals.git import commits as git
from agentsignals.git.commits import Commit
from agentsignals.store.tables import CommitRow


class Gathered(Struct):
    """Commits, what checkpoints say of themselves, and what links them."""

    commits: list[Commit]
    recorded: list[Recorded]
    links: list[Link]

    @property
    def checkpoint_ids(self) -> set[str]:
        """The checkpoints that are there."""
        return {row.checkpoint_id for row in self.recorded}

    def rows(self, name: str) -> list[CommitRow]:
        """A row a commit for the store, the repository called `name`."""
        sessions: dict[str, set[str]] = {}
        for record in self.recorded:
            sessions.setdefault(record.checkpoint_id, set()).add(record.session_id)
        relations: dict[str, str] = {}
        for link in self.links:
            if relations.get(link.sha) != "original":
                relations[link.sha] = link.relation
        return [row(name, c, relations.get(c.sha), {s for i in c.checkpoint_ids for s in sessions.get(i, ())})
                for c in self.commits]  # fmt: skip


def gather(git_dir: str, spec: str) -> Gathered:
    """The code history of a Git folder, and the checkpoints that the source `spec` (`git:…`) gives."""
    commits = git.commits(git_dir)
    rows = recorded(spec)
    return Gathered(commits, rows, links(commits, rows))


def row(name: str, commit: Commit, relation: str | None, sessions: set[str] | frozenset[str]) -> CommitRow:
    """A commit as the store keeps it."""
    return CommitRow(
        repo=name,
        commit_sha=commit.sha,
        parent_sha=commit.parents[0] if commit.parents else None,
        authored_at=commit.authored_at,
        committed_at=commit.committed_at,
        author=commit.author,
        subject=commit.subject,
        is_merge=commit.is_merge,
        checkpoint_ids=list(commit.checkpoint_ids),
        relation=relation,
        session_ids=sorted(sessions),
    )
