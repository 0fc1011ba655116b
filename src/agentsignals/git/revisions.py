"""Which commits a revision names, as people write them for a review."""

from __future__ import annotations

from agentsignals.git import commits as git
from agentsignals.git.commits import Commit


def commits_of(git_dir: str, commits: list[Commit], revision: str) -> list[str] | None:
    """The commits that a revision names, oldest first, merges left out: a commit, `A..B`, or a branch, which stands for
    what it has and the default branch has not (the branch's last commit where that is nothing). None: it names nothing.
    """
    there = {c.sha: c for c in commits}
    first, dots, last = revision.partition("..")
    if dots:
        ends = (git.resolved(git_dir, first or "HEAD"), git.resolved(git_dir, last.lstrip(".") or "HEAD"))
        if ends[0] is None or ends[1] is None:
            return None
        return _between(there, ends[1], ends[0])
    sha = git.resolved(git_dir, revision)
    if sha is None:
        return None
    usual = git.default_tip(git_dir)
    if git.is_branch(git_dir, revision) and usual not in (None, sha) and (some := _between(there, sha, str(usual))):
        return some
    return [sha]


def _between(there: dict[str, Commit], last: str, without: str) -> list[str]:
    gone = _reached(there, without)
    shas = [sha for sha in _reached(there, last) if sha not in gone and sha in there and not there[sha].is_merge]
    return sorted(shas, key=lambda sha: (there[sha].committed_at, sha))


def _reached(there: dict[str, Commit], sha: str) -> set[str]:
    met = {sha}
    ahead = [sha]
    while ahead:
        commit = there.get(ahead.pop())
        for parent in commit.parents if commit is not None else ():
            if parent not in met:
                met.add(parent)
                ahead.append(parent)
    return met
