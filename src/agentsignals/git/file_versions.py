"""Every version of some files in the history of the commit a repository stands at, with when each was written and when
it came to the main line."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from agentsignals.git import objects
from agentsignals.git.commits import Commit, unquoted

_LINK = b"120000"
_MOST_CHARS = 400_000


class Version(Struct, frozen=True, kw_only=True):
    """A file as a commit left it. Times in microseconds since 1970 UTC."""

    path: str
    sha: str
    authored_at: int
    arrived_at: int
    """When the first commit of the main line (first parents from HEAD) was made that has it."""
    text: str | None
    """None where the commit deleted it, or its content is missing."""
    is_link: bool = False
    """The text is the path that it stands for."""


def versions(git_dir: str, head: str, patterns: Iterable[str], commits: Iterable[Commit]) -> list[Version]:
    """The versions of files whose path, in any folder, fits one of the patterns (Git's globs), oldest first. GitError
    where the history can't be read."""
    wanted = [f":(glob)**/{pattern}" for pattern in patterns]
    by_sha = {commit.sha: commit for commit in commits}
    arrived = _arrived(by_sha, head)
    output = objects.run(
        "-c", "core.quotePath=false", "-c", "log.showSignature=false", "-c", "safe.directory=*", f"--git-dir={git_dir}",
        "log", "--raw", "--no-abbrev", "--no-renames", "--full-history", "--reverse", "--date-order", "--format=%x00%H",
        head, "--", *wanted,
    )  # fmt: skip
    rows: list[tuple[Commit, bytes, str, str]] = []
    commit: Commit | None = None
    for line in output.split(b"\n"):
        if line[:1] == b"\0":
            commit = by_sha.get(line[1:].decode())
        elif line[:1] == b":" and commit is not None:
            facts, _, name = line[1:].partition(b"\t")
            _, mode, _, oid, status = facts.split()[:5]
            rows.append((commit, mode, "" if status[:1] == b"D" else oid.decode(), unquoted(name)))
    texts = dict(zip(oids := list({oid for _, _, oid, _ in rows if oid}), objects.contents(git_dir, oids, _MOST_CHARS),
                     strict=True))  # fmt: skip
    made = [
        Version(
            path=path,
            sha=at.sha,
            authored_at=min(at.authored_at, at.committed_at),
            arrived_at=arrived.get(at.sha, at.committed_at),
            text=data.decode("utf-8", "replace") if (data := texts.get(oid)) is not None else None,
            is_link=mode == _LINK,
        )
        for at, mode, oid, path in rows
    ]
    return sorted(made, key=lambda version: version.arrived_at)


def _arrived(by_sha: dict[str, Commit], head: str) -> dict[str, int]:
    """When each ancestor of the head came to the main line."""
    line = []
    commit = by_sha.get(head)
    while commit is not None:
        line.append(commit)
        commit = by_sha.get(commit.parents[0]) if commit.parents else None
    arrived: dict[str, int] = {}
    for step in reversed(line):
        waiting = [step.sha]
        while waiting:
            sha = waiting.pop()
            if sha not in arrived and sha in by_sha:
                arrived[sha] = step.committed_at
                waiting += by_sha[sha].parents
    return arrived
