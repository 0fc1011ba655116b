"""Objects and history of a Git repository, read through `git` itself. Nothing is fetched, and nothing of the repository
is run. Objects are asked for by their id only, so a hostile ref or path name never becomes an argument."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, cast

from msgspec import Struct

from agentsignals import private_files

_REDIRECTING = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_CONFIG", "GIT_REPLACE_REF_BASE",
    "GIT_GRAFT_FILE",
)  # fmt: skip
"""Set when we run inside a Git hook, and would point every command at that repository."""

_DISCARDED_AT_ONCE = 1024 * 1024
_FOLDER = b"40000"
_FILES = (b"100644", b"100755", b"100664")


class GitError(Exception):
    """A git command failed; says why in git's own words, on one line, or nothing when git printed nothing."""


class Entry(Struct, frozen=True, gc=False):
    """A file in a tree. `oid` names its content."""

    path: str
    oid: str


def run(*arguments: str, protocols: str = "none") -> bytes:
    """Return the output of `git …`, which never prompts. GitError when it fails or is not installed."""
    try:
        done = subprocess.run(  # noqa: S603  (no shell; a word that is not ours comes after `--` or is checked)
            ["git", *arguments],  # noqa: S607  (whichever git the person uses)
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=_environment(protocols),
            umask=private_files.OTHERS,  # objects that are fetched hold transcripts
            start_new_session=True,  # without a terminal ssh can't ask for a password either
            check=False,
        )
    except FileNotFoundError:
        raise GitError("the program git was not found") from None
    if done.returncode:
        lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        message = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
        raise GitError("".join(c if c.isprintable() else " " for c in message)[:300])
    return done.stdout


def locate(path: Path) -> tuple[str, str] | None:
    """The Git folder that serves `path` and the repository's own folder; None when there is none.

    Another owner's repository is read too: only its data are, none of its settings can run a program here.
    """
    try:
        output = run("-c", "safe.directory=*", "-C", str(path), "rev-parse", "--git-common-dir", "--is-bare-repository")
    except GitError:
        return None
    common, bare = os.fsdecode(output).rstrip("\n").rsplit("\n", 1)
    folder = (path / common).resolve()
    return str(folder), str(folder if bare == "true" or folder.name != ".git" else folder.parent)


def refs(git_dir: str) -> list[tuple[str, str]]:
    """Every ref with the id it points at, in order of name."""
    listed = run(f"--git-dir={git_dir}", "for-each-ref", "--format=%(objectname) %(refname)")
    lines = (line.partition(b" ") for line in listed.splitlines())
    return [(name.decode("utf-8", "backslashreplace"), oid.decode()) for oid, _, name in lines]


def origin(git_dir: str) -> str | None:
    try:
        return os.fsdecode(run(f"--git-dir={git_dir}", "config", "--get", "remote.origin.url")).strip() or None
    except GitError:
        return None


def walk(git_dir: str, roots: list[tuple[str, Callable[[str], bool]]]) -> Iterator[tuple[int, list[Entry], str | None]]:
    """The files under several commits or trees, level by level, entering only folders that are `wanted`.

    Gives (index of the root, files, path of a folder that can't be read). One process a level, however many roots.
    """
    level = [(n, "", f"{oid}^{{tree}}") for n, (oid, _) in enumerate(roots)]
    while level:
        below: list[tuple[int, str, str]] = []
        trees = contents(git_dir, [oid for _, _, oid in level])
        for (n, folder, _), tree in zip(level, trees, strict=True):
            if tree is None:
                yield n, [], folder
                continue
            files = []
            at, oid_bytes = 0, len(roots[n][0]) // 2
            while at < len(tree):  # mode, a space, name, a zero byte, id
                space = tree.find(b" ", at)
                end = tree.find(b"\0", space)
                if space < 0 or end < 0:
                    break
                path = folder + tree[space + 1 : end].decode("utf-8", "backslashreplace")
                mode, oid = tree[at:space], tree[end + 1 : end + 1 + oid_bytes].hex()
                at = end + 1 + oid_bytes
                if mode in _FILES:
                    files.append(Entry(path, oid))
                elif mode == _FOLDER and roots[n][1](path + "/"):
                    below.append((n, path + "/", oid))
            yield n, files, None
        level = below


def sizes(git_dir: str, oids: Iterable[str]) -> dict[str, int]:
    """Bytes of each blob that is there; a missing one is not in the answer."""
    by_oid: dict[str, int] = {}
    with _cat_file(git_dir, "--batch-check", oids) as answers:
        for line in answers:
            oid, kind, *size = line.decode().split()
            if kind == "blob" and size:
                by_oid[oid] = int(size[0])
    return by_oid


def contents(git_dir: str, oids: list[str], limit: int | None = None) -> Iterator[bytes | None]:
    """The content of each object in order, at most `limit` bytes of each; None for one that is missing or damaged."""
    at = 0
    while at < len(oids):  # a damaged object ends the process: begin again behind it
        with _cat_file(git_dir, "--batch", oids[at:]) as answers:
            while at < len(oids):
                words = answers.readline().split()
                if words[-1:] == [b"missing"]:
                    at += 1
                    yield None
                    continue
                if len(words) != 3:
                    break
                data = _body(answers, int(words[2]), limit)
                if data is None:
                    break
                at += 1
                yield data
        if at < len(oids):
            at += 1
            yield None


class Objects:
    """Objects of one repository asked for one at a time, by id or as `commit:path`: one process answers them all."""

    def __init__(self, git_dir: str) -> None:
        self._git_dir = git_dir
        self._process: subprocess.Popen[bytes] | None = None

    def get(self, name: str) -> bytes | None:
        """The object's content; None for one that is missing or damaged."""
        if "\n" in name or "\0" in name:  # git would take it for another name, or for two
            return None
        process = self._process = self._process or _asked(self._git_dir, ["--batch"], subprocess.PIPE)
        questions, answers = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        questions.write(name.encode("utf-8", "backslashreplace") + b"\n")
        questions.flush()
        words = answers.readline().split()
        if words[-1:] == [b"missing"]:
            return None
        data = _body(answers, int(words[-1]), None) if len(words) == 3 and words[-1].isdigit() else None
        if data is None:  # a damaged object ends the process
            self.close()
        return data

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _body(answers: IO[bytes], size: int, limit: int | None) -> bytes | None:
    kept = size if limit is None else min(size, limit)
    data = answers.read(kept)
    left = size - kept + 1  # the newline that ends every answer
    while left > 0:
        dropped = len(answers.read(min(left, _DISCARDED_AT_ONCE)))
        if not dropped:
            return None
        left -= dropped
    return data


@contextmanager
def _cat_file(git_dir: str, mode: str, oids: Iterable[str]) -> Iterator[IO[bytes]]:
    """The answers of `git cat-file` about objects; the process ends when the reader turns away.

    It reads the ids from a file: a pipe would have to be fed while its answers are read.
    """
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{oid}\n" for oid in oids).encode())
        asked.seek(0)
        with _asked(git_dir, [mode, "--buffer"], asked) as process:
            try:
                yield cast(IO[bytes], process.stdout)
            finally:
                process.kill()


def _asked(git_dir: str, options: list[str], questions: IO[bytes] | int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  (no shell; what is asked goes through its input)
        ["git", f"--git-dir={git_dir}", "cat-file", *options],  # noqa: S607  (whichever git the person uses)
        stdin=questions,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment("none"),
    )


def _environment(protocols: str) -> dict[str, str]:
    """Ours, less what redirects git; `protocols` are the only ones git may speak (`none`: no network at all)."""
    ours = {name: value for name, value in os.environ.items() if name not in _REDIRECTING}
    return ours | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GCM_INTERACTIVE": "never",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": protocols,
        "LC_ALL": "C",
    }


# The code history of a repository: commits with their trailers, what each changed.

TRAILER = re.compile(rb"^Entire-Checkpoint:[ \t]*([0-9a-f]{12}|[0-9A-Z]{26})[ \t]*\r?$", re.MULTILINE)
"""Every occurrence counts: a squash keeps the trailers of what it joins, anywhere in the message
(design/attribution.md#checkpoint-layouts)."""

_REVERTS = re.compile(rb"^This reverts commit ([0-9a-f]{40}|[0-9a-f]{64})\b", re.MULTILINE)

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


class Commit(Struct, frozen=True, kw_only=True):
    """A commit of the code. Times in microseconds since 1970 UTC."""

    sha: str
    parents: tuple[str, ...]
    authored_at: int
    committed_at: int
    author: str
    subject: str
    checkpoint_ids: tuple[str, ...]
    reverts: tuple[str, ...] = ()

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


class FileChange(Struct, frozen=True, kw_only=True):
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
    made = []
    for record in filter(None, output.split(b"\x01\n")):
        sha, parents, authored, committed, author, subject, body = record.split(b"\0", 7)[:7]
        made.append(
            Commit(
                sha=sha.decode(),
                parents=tuple(parents.decode().split()),
                authored_at=int(authored) * 1_000_000,
                committed_at=int(committed) * 1_000_000,
                author=author.decode("utf-8", "replace"),
                subject=subject.decode("utf-8", "replace")[:200],
                checkpoint_ids=tuple(dict.fromkeys(value.decode() for value in TRAILER.findall(body))),
                reverts=tuple(value.decode() for value in _REVERTS.findall(body)),
            )
        )
    return made


def ancestors(commits: Mapping[str, Commit], sha: str, met: set[str] | None = None) -> list[str]:
    """A commit and all that it descends from, as far as they are among `commits`. Those already `met` are left out with
    what is before them, and the others are added to it."""
    met = set() if met is None else met
    shas = []
    ahead = [sha]
    while ahead:
        sha = ahead.pop()
        if sha not in met and sha in commits:
            met.add(sha)
            shas.append(sha)
            ahead += commits[sha].parents
    return shas


def changes(git_dir: str, shas: Sequence[str]) -> Iterator[tuple[str, list[FileChange]]]:
    """Yield the changes of these commits: histogram diff, renames from half of the content on, links and modules
    left out. A commit with missing objects yields nothing."""
    words = (*_QUIET, f"--git-dir={git_dir}", "log", "--no-walk=unsorted", "--format=%x00%H", "--raw", "--no-abbrev",
               "--patch", "--unified=0", "--histogram", "--find-renames=50%", "-l2000", "--diff-merges=first-parent",
               "--inter-hunk-context=0", "--no-relative", "--no-ext-diff", "--no-textconv", "--no-color",
               "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/")  # fmt: skip
    for at in range(0, len(shas), _AT_ONCE):
        part = shas[at : at + _AT_ONCE]
        try:
            yield from _parsed(run(*words, *part, "--"))
        except GitError:  # one missing blob ends the whole command: ask one by one
            for sha in part:
                with suppress(GitError):
                    yield from _parsed(run(*words, sha, "--"))


def _parsed(output: bytes) -> Iterator[tuple[str, list[FileChange]]]:
    """Raw lines come in the order of the patches, but a file whose mode alone changed has no patch body: blob ids say
    which file a patch is of."""
    sha, changes, at = "", list[FileChange](), 0
    now: FileChange | None = None
    lines = iter(output.split(b"\n"))
    for line in lines:
        if line[:1] == b"\0":
            if sha:
                yield sha, changes
            sha, changes, at, now = line[1:].decode(), [], 0, None
        elif line[:1] == b":":
            old_mode, new_mode, old_oid, new_oid, letter, *paths = _raw(line)
            if not {old_mode, new_mode} & {_LINK, b"160000"}:
                is_new = letter in b"AC"
                changes.append(
                    FileChange(
                        path=paths[-1],
                        old_path=None if is_new else paths[0],
                        old_oid=None if is_new else old_oid,
                        new_oid=None if letter == b"D" else new_oid,
                        added=[],
                        removed=[],
                    )
                )
        elif line.startswith(b"diff --git "):
            now = None
        elif line.startswith(b"index "):
            old, _, new = line.split()[1].decode().partition("..")
            for n in range(at, len(changes)):
                change = changes[n]
                if (change.old_oid or _NONE).startswith(old) and (change.new_oid or _NONE).startswith(new):
                    now, at = change, n + 1
                    break
        elif line.startswith(b"@@ ") and (place := _AT.match(line)):
            old_line, n_old, new_line, n_new = (int(g) if g is not None else 1 for g in place.groups())
            if now is not None and n_new:
                now.added.append((new_line, n_new))
            if now is not None and n_old:
                now.removed.append((old_line, n_old))
            for _ in range(n_old + n_new):
                next(lines, b"")
    if sha:
        yield sha, changes


_NONE = "0" * 64


_LINK = b"120000"


def _raw(line: bytes) -> tuple[bytes, bytes, str, str, bytes, *tuple[str, ...]]:
    """`:old_mode new_mode old_id new_id status<TAB>path[<TAB>new_path]`; of the status the letter."""
    facts, _, names = line[1:].partition(b"\t")
    old_mode, new_mode, old, new, status = facts.split()[:5]
    return (old_mode, new_mode, old.decode(), new.decode(), status[:1], *map(_unquoted, names.split(b"\t")))


def _unquoted(name: bytes) -> str:
    """A path as Git prints it: in quotes, with escapes, when it holds quotes, backslashes or control characters."""

    def unescaped(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPES.get(code, code)

    if name[:1] == b'"' and name[-1:] == b'"':
        name = _ESCAPED.sub(unescaped, name[1:-1])
    return name.decode("utf-8", "backslashreplace")


def head(git_dir: str) -> str | None:
    """The commit that the repository stands at; of one whose HEAD names a branch that isn't there, the usual branch."""
    return _first(git_dir, "HEAD", "refs/heads/main", "refs/heads/master", "refs/remotes/origin/HEAD")


def _first(git_dir: str, *names: str) -> str | None:
    return next((sha for name in names if (sha := resolved(git_dir, name)) is not None), None)


def files_at(git_dir: str, sha: str) -> set[str]:
    output = run(f"--git-dir={git_dir}", "ls-tree", "-r", "-z", "--name-only", sha)
    return {name.decode("utf-8", "backslashreplace") for name in output.split(b"\0") if name}


class BlamedLine(NamedTuple):
    now: int
    """Its number today, counted from 1."""
    sha: str
    path: str
    line: int
    """The commit that wrote it, the file's path there, and the line's number there."""


_BLAMED = re.compile(rb"([0-9a-f]{40,64}) (\d+) (\d+)(?: \d+)?")


def blame(git_dir: str, sha: str, path: str) -> Iterator[BlamedLine]:
    """The commit that each line of a file is from. GitError where its history can't be read."""
    options = ("-c", "blame.ignoreRevsFile=", f"--git-dir={git_dir}")
    output = run(*_QUIET, *options, "blame", "--porcelain", sha, "--", path)
    paths: dict[str, str] = {}
    at: re.Match[bytes] | None = None
    for row in output.split(b"\n"):
        if row[:1] == b"\t" and at is not None:
            origin = at[1].decode()
            yield BlamedLine(int(at[3]), origin, paths.get(origin, path), int(at[2]))
            at = None
        elif at is not None and row.startswith(b"filename "):
            paths[at[1].decode()] = _unquoted(row[9:])
        elif at is None:
            at = _BLAMED.fullmatch(row)


def tips_name(git_dir: str) -> str:
    """A short name of the state of all refs: changes when anything was fetched or committed."""
    listed = "\n".join(f"{oid} {name}" for name, oid in refs(git_dir))
    return hashlib.blake2b(listed.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def resolved(git_dir: str, revision: str) -> str | None:
    """The commit that a revision names, as people write them; None when it names none."""
    try:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return run(f"--git-dir={git_dir}", *words).decode().strip()
    except (GitError, ValueError):  # ValueError: a NUL
        return None


def commits_of(git_dir: str, commits: list[Commit], revision: str) -> list[str] | None:
    """The commits that a revision, as people write it for a review, names, oldest first, merges left out. It is a
    commit, `A..B`, or a branch, which stands for what it has and the default branch has not (the branch's last commit
    where that is nothing). A merge commit stands for the commits that it merged. None: it names nothing.

    The default branch is the remote's, the HEAD of a bare repository, `main` or `master`, else where the repository
    stands. What a working tree stands at says nothing: reviewers check the branch out.
    """
    there = {c.sha: c for c in commits}

    def between(last: str, without: str) -> list[str]:
        gone = set(ancestors(there, without))
        shas = [sha for sha in ancestors(there, last) if sha not in gone and not there[sha].is_merge]
        return sorted(shas, key=lambda sha: (there[sha].committed_at, sha))

    first, dots, last = revision.partition("..")
    if dots:
        ends = (resolved(git_dir, first or "HEAD"), resolved(git_dir, last.lstrip(".") or "HEAD"))
        return between(ends[1], ends[0]) if ends[0] is not None and ends[1] is not None else None
    sha = resolved(git_dir, revision)
    if sha is None:
        return None
    is_bare = run(f"--git-dir={git_dir}", "rev-parse", "--is-bare-repository").strip() == b"true"
    names = ("refs/remotes/origin/HEAD", *(("HEAD",) if is_bare else ()), "refs/heads/main", "refs/heads/master")
    usual = _first(git_dir, *names) or head(git_dir)
    branches = {f"refs/{kind}/{revision}" for kind in ("heads", "remotes", "remotes/origin")}
    is_branch = any(name in branches for name, _ in refs(git_dir))
    if is_branch and usual not in (None, sha) and (shas := between(sha, usual)):
        return shas
    parents = there[sha].parents if sha in there else ()
    return (between(sha, parents[0]) if len(parents) > 1 else []) or [sha]


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
    """The versions of files whose path, in any folder, fits one of the patterns (Git's globs), in the history of a
    commit, oldest first. GitError where the history can't be read."""
    wanted = [f":(glob)**/{pattern}" for pattern in patterns]
    by_sha = {commit.sha: commit for commit in commits}
    main_line = []
    commit = by_sha.get(head)
    while commit is not None:
        main_line.append(commit)
        commit = by_sha.get(commit.parents[0]) if commit.parents else None
    met: set[str] = set()
    arrived = {sha: step.committed_at for step in reversed(main_line) for sha in ancestors(by_sha, step.sha, met)}
    output = run(
        "-c", "core.quotePath=false", "-c", "log.showSignature=false", "-c", "safe.directory=*", f"--git-dir={git_dir}",
        "log", "--raw", "--no-abbrev", "--no-renames", "--full-history", "--reverse", "--date-order", "--format=%x00%H",
        head, "--", *wanted,
    )  # fmt: skip
    rows: list[tuple[Commit, bytes, str, str]] = []
    commit = None
    for line in output.split(b"\n"):
        if line[:1] == b"\0":
            commit = by_sha.get(line[1:].decode())
        elif line[:1] == b":" and commit is not None:
            _, mode, _, oid, letter, *paths = _raw(line)
            rows.append((commit, mode, "" if letter == b"D" else oid, paths[0]))
    oids = list({oid for _, _, oid, _ in rows if oid})
    texts = dict(zip(oids, contents(git_dir, oids, _MOST_CHARS), strict=True))
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
