"""The code history of a repository, as attribution asks for it: commits with their trailers, what each changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agentsignals.git.objects import GitError, run

TRAILER = re.compile(rb"^Entire-Checkpoint:[ \t]*([0-9a-f]{12}|[0-9A-Z]{26})[ \t]*\r?$", re.MULTILINE)
"""Every occurrence counts: a squash keeps the trailers of what it joins, anywhere in the message
(design/attribution.md#checkpoint-layouts)."""

_REVERTS = re.compile(rb"^This reverts commit ([0-9a-f]{40}|[0-9a-f]{64})\b", re.MULTILINE)
"""As `git revert` writes it."""

_QUIET = (
    "-c", "core.quotePath=false", "-c", "log.showSignature=false", "-c", "log.showRoot=true", "-c", "core.hooksPath=",
    "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "safe.directory=*",
)  # fmt: skip
_NOT_CODE = (
    "refs/heads/entire/*", "refs/entire/*", "refs/remotes/*/entire/*", "refs/stash", "refs/notes/*", "refs/ai/*",
)  # fmt: skip
_FIELDS = "%H%x00%P%x00%at%x00%ct%x00%an%x00%s%x00%B%x00%x01"
_AT = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_AT_ONCE = 100
"""Commits whose changes are asked for in one go."""


class Commit(Struct, frozen=True, kw_only=True):
    """A commit of the code. Times in microseconds since 1970 UTC."""

    sha: str
    parents: tuple[str, ...]
    authored_at: int
    committed_at: int
    author: str
    subject: str
    checkpoint_ids: tuple[str, ...]
    """Those its trailers name, in order, each once."""
    reverts: tuple[str, ...] = ()
    """Commits that it says it reverts."""

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


class FileChange(Struct, frozen=True, kw_only=True):
    """What a commit did to one file, against its first parent."""

    path: str
    old_path: str | None
    """Its path before; None for a new file."""
    old_oid: str | None
    new_oid: str | None
    """None for a deleted file."""
    added: list[tuple[int, int]]
    """(first line, how many) in the new file, lines counted from 1."""
    removed: list[tuple[int, int]]


def commits(git_dir: str) -> list[Commit]:
    """Every commit of the code, oldest first; checkpoint branches, stashes and notes are left out."""
    excluded = [f"--exclude={pattern}" for pattern in _NOT_CODE]
    output = run(*_QUIET, f"--git-dir={git_dir}", "log", *excluded, "--all", "--reverse", "--date-order",
               f"--format=tformat:{_FIELDS}", "--")  # fmt: skip
    return [_commit(record) for record in output.split(b"\x01\n") if record]


def _commit(record: bytes) -> Commit:
    sha, parents, authored, committed, author, subject, body = record.split(b"\0", 7)[:7]
    ids = dict.fromkeys(value.decode() for value in TRAILER.findall(body))
    return Commit(
        sha=sha.decode(),
        parents=tuple(parents.decode().split()),
        authored_at=int(authored) * 1_000_000,
        committed_at=int(committed) * 1_000_000,
        author=author.decode("utf-8", "replace"),
        subject=subject.decode("utf-8", "replace")[:200],
        checkpoint_ids=tuple(ids),
        reverts=tuple(value.decode() for value in _REVERTS.findall(body)),
    )


def changes(git_dir: str, shas: Sequence[str]) -> Iterator[tuple[str, list[FileChange]]]:
    """What each of these commits changed: histogram diff, renames from half of the content on, links and modules left
    out. A commit whose objects are not all there gives nothing.
    """
    for at in range(0, len(shas), _AT_ONCE):
        part = shas[at : at + _AT_ONCE]
        try:
            yield from _parsed(_diffs(git_dir, part))
        except GitError:  # one missing blob ends the whole command: ask one by one
            for sha in part:
                try:
                    yield from _parsed(_diffs(git_dir, [sha]))
                except GitError:
                    continue


def _diffs(git_dir: str, shas: Sequence[str]) -> bytes:
    return run(*_QUIET, f"--git-dir={git_dir}", "log", "--no-walk=unsorted", "--format=%x00%H", "--raw", "--no-abbrev",
               "--patch", "--unified=0", "--histogram", "--find-renames=50%", "-l2000", "--diff-merges=first-parent",
               "--inter-hunk-context=0", "--no-relative", "--no-ext-diff", "--no-textconv", "--no-color",
               "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/", *shas, "--")  # fmt: skip


def _parsed(output: bytes) -> Iterator[tuple[str, list[FileChange]]]:
    sha, changes, hunks = "", list[FileChange](), _Hunks()
    lines = iter(output.split(b"\n"))
    for line in lines:
        if line[:1] == b"\0":
            if sha:
                yield sha, changes
            sha, changes, hunks = line[1:].decode(), [], _Hunks()
        elif line[:1] == b":":
            change = _raw(line)
            if change is not None:
                changes.append(change)
        elif line.startswith(b"diff --git "):
            hunks.next()
        elif line.startswith(b"index "):
            hunks.of(line, changes)
        elif line.startswith(b"@@ "):
            _skip(lines, hunks.hunk(line))
    if sha:
        yield sha, changes


class _Hunks:
    """Puts the hunks of a patch to the file they are of: raw lines come in the order of the patches, but a file whose
    mode alone changed has no patch body, so blob ids say which it is.
    """

    def __init__(self) -> None:
        self._now: FileChange | None = None
        self._at = 0

    def next(self) -> None:
        self._now = None

    def of(self, line: bytes, changes: list[FileChange]) -> None:
        old, _, new = line.split()[1].decode().partition("..")
        for n in range(self._at, len(changes)):
            change = changes[n]
            if (change.old_oid or _NONE)[: len(old)] == old and (change.new_oid or _NONE)[: len(new)] == new:
                self._now, self._at = change, n + 1
                return

    def hunk(self, line: bytes) -> int:
        """Takes in a hunk; how many lines of it follow."""
        place = _AT.match(line)
        if place is None:
            return 0
        old, n_old, new, n_new = (int(g) if g is not None else 1 for g in place.groups())
        if self._now is not None:
            if n_new:
                self._now.added.append((new, n_new))
            if n_old:
                self._now.removed.append((old, n_old))
        return n_old + n_new


_NONE = "0" * 64


def _skip(lines: Iterator[bytes], n: int) -> None:
    for _ in range(n):
        next(lines, b"")


def _raw(line: bytes) -> FileChange | None:
    """`:old_mode new_mode old_id new_id status<TAB>path[<TAB>new_path]`; None for what is no plain file."""
    facts, _, names = line[1:].partition(b"\t")
    old_mode, new_mode, old, new, status = facts.split()
    paths = [unquoted(name) for name in names.split(b"\t")]
    if {old_mode, new_mode} & {b"120000", b"160000"}:
        return None
    letter = status[:1]
    return FileChange(
        path=paths[-1],
        old_path=None if letter in b"AC" else paths[0],
        old_oid=None if letter in b"AC" else old.decode(),
        new_oid=None if letter == b"D" else new.decode(),
        added=[],
        removed=[],
    )


def unquoted(name: bytes) -> str:
    """A path as Git prints it: in quotes, with escapes, when it holds quotes, backslashes or control characters."""
    if name[:1] == b'"' and name[-1:] == b'"':
        name = _ESCAPED.sub(_unescaped, name[1:-1])
    return name.decode("utf-8", "backslashreplace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPES.get(code, code)


def tips(git_dir: str) -> list[str]:
    """Every ref with its id: changes when anything was fetched or committed."""
    return (
        run(f"--git-dir={git_dir}", "for-each-ref", "--format=%(objectname) %(refname)")
        .decode("utf-8", "replace")
        .splitlines()
    )


def head(git_dir: str) -> str | None:
    """The commit that the repository stands at; of one whose HEAD names a branch that isn't there, the usual branch."""
    for name in ("HEAD", "refs/heads/main", "refs/heads/master", "refs/remotes/origin/HEAD"):
        try:
            return (
                run(f"--git-dir={git_dir}", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
            )
        except GitError:
            continue
    return None


def default_tip(git_dir: str) -> str | None:
    """The commit that the default branch ends with: the remote's, the HEAD of a bare repository, `main` or `master`,
    else where the repository stands. What a working tree stands at says nothing: reviewers check the branch out."""
    is_bare = run(f"--git-dir={git_dir}", "rev-parse", "--is-bare-repository").strip() == b"true"
    for name in ("refs/remotes/origin/HEAD", *(("HEAD",) if is_bare else ()), "refs/heads/main", "refs/heads/master"):
        if (sha := resolved(git_dir, name)) is not None:
            return sha
    return head(git_dir)


def files_at(git_dir: str, sha: str) -> set[str]:
    """The paths of a commit's files."""
    output = run(f"--git-dir={git_dir}", "ls-tree", "-r", "-z", "--name-only", sha)
    return {name.decode("utf-8", "backslashreplace") for name in output.split(b"\0") if name}


def blame(git_dir: str, sha: str, path: str) -> bytes:
    """Which commit each line of a file is from, in Git's porcelain form."""
    return run(*_QUIET, "-c", "blame.ignoreRevsFile=", f"--git-dir={git_dir}", "blame", "--porcelain", sha, "--", path)


def tips_name(git_dir: str) -> str:
    """A short name of the state of all refs."""
    return hashlib.blake2b("\n".join(tips(git_dir)).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def resolved(git_dir: str, revision: str) -> str | None:
    """The commit that a revision names, as people write them; None when it names none."""
    try:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return run(f"--git-dir={git_dir}", *words).decode().strip()
    except (GitError, ValueError):  # ValueError: a NUL
        return None


def is_branch(git_dir: str, name: str) -> bool:
    """Whether it is the name of a branch, here or of a remote."""
    names = {line.partition(" ")[2] for line in tips(git_dir)}
    return any(f"refs/{kind}/{name}" in names for kind in ("heads", "remotes", "remotes/origin"))
