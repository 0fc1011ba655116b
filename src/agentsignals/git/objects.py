"""What a Git repository holds, read through `git` itself: refs, trees, blobs. Nothing is fetched, nothing is executed.

Objects are asked for by their id only, so a hostile ref or path name never becomes an argument.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from msgspec import Struct

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
    """A git command failed; says why in git's own words, on one line, or nothing when git said nothing."""


class Entry(Struct, frozen=True, gc=False):
    """A file in a tree. `oid` names its content."""

    path: str
    oid: str


def run(*arguments: str, protocols: str = "none") -> bytes:
    """What `git …` prints. GitError when it fails or is not installed. It never asks anybody anything."""
    try:
        done = subprocess.run(  # noqa: S603  (no shell; a word that is not ours comes after `--` or is checked)
            ["git", *arguments],  # noqa: S607  (whichever git the person uses)
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=_environment(protocols),
            start_new_session=True,  # without a terminal ssh can't ask for a password either
            check=False,
        )
    except FileNotFoundError:
        raise GitError("the program git was not found") from None
    if done.returncode:
        raise GitError(_last_line(done.stderr))
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
    """The address the repository was cloned from."""
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
            for mode, name, oid in _entries(tree, len(roots[n][0]) // 2):
                path = folder + name
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
        """Ends the process."""
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


def _entries(tree: bytes, oid_bytes: int) -> Iterator[tuple[bytes, str, str]]:
    """Mode, name and id of each entry of a tree object."""
    at = 0
    while at < len(tree):
        space = tree.find(b" ", at)
        end = tree.find(b"\0", space)
        if space < 0 or end < 0:
            return
        name = tree[space + 1 : end].decode("utf-8", "backslashreplace")
        yield tree[at:space], name, tree[end + 1 : end + 1 + oid_bytes].hex()
        at = end + 1 + oid_bytes


@contextmanager
def _cat_file(git_dir: str, mode: str, oids: Iterable[str]) -> Iterator[IO[bytes]]:
    """The answers of `git cat-file` about objects; the process ends when the reader turns away.

    It reads the ids from a file: a pipe would have to be fed while its answers are read.
    """
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{oid}\n" for oid in oids).encode())
        asked.seek(0)
        process = _asked(git_dir, [mode, "--buffer"], asked)
        with process:
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


def _last_line(text: bytes) -> str:
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    message = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
    return "".join(c if c.isprintable() else " " for c in message)[:300]
