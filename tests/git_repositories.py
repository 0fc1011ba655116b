"""Small real Git repositories for tests, and what the Git source says of them."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from agentsignals.sources import RawFile, Unreadable, open_source, read

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "repos"
V1 = "refs/heads/entire/checkpoints/v1"


def real(name: str, folder: Path) -> Path:
    """A repository of the corpus, unpacked. By `tar`: Python's own has no filter before 3.11.4, and wants one later."""
    packed = CORPUS / f"{name}.git.tar"
    if not packed.exists():
        pytest.skip("the corpus of repositories is not there")
    subprocess.run(["tar", "-xf", str(packed), "-C", str(folder), "--no-same-owner"], check=True)
    return folder / "repo"


class Repository:
    """A Git repository made of blobs and trees by hand, so that anything Git allows can be in it."""

    def __init__(self, path: Path, bare: bool = True) -> None:
        self.path = path
        git(None, "init", "--quiet", *(["--bare"] if bare else []), str(path))
        self.git_dir = path if bare else path / ".git"

    def put(self, ref: str, files: dict[str, str]) -> str:
        """A commit on `ref` whose tree is exactly these files."""
        commit = self.git("commit-tree", self.tree(files), "-m", "checkpoint")
        self.git("update-ref", ref, commit)
        return commit

    def tree(self, files: dict[str, str]) -> str:
        rows = [f"100644 blob {self.blob(text)}\t{name}" for name, text in files.items() if "/" not in name]
        inner = sorted(
            (name.split("/", 1)[0], name.split("/", 1)[1], text) for name, text in files.items() if "/" in name
        )
        for folder, group in itertools.groupby(inner, key=lambda f: f[0]):
            rows.append(f"040000 tree {self.tree({rest: text for _, rest, text in group})}\t{folder}")
        return self.git("mktree", "-z", given="".join(f"{row}\0" for row in rows))

    def blob(self, text: str) -> str:
        return self.git("hash-object", "-w", "--stdin", given=text)

    def loose(self, text: str) -> Path:
        """The file in which an object lies."""
        oid = self.blob(text)
        return self.git_dir / "objects" / oid[:2] / oid[2:]

    def git(self, *words: str, given: str = "") -> str:
        return git(self.git_dir, *words, given=given)


def git(git_dir: Path | None, *words: str, given: str = "") -> str:
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    where = {"GIT_DIR": str(git_dir)} if git_dir else {}
    done = subprocess.run(
        ["git", *words], input=given.encode(), capture_output=True, env=os.environ | who | where, check=True
    )
    return done.stdout.decode().strip()


def metadata(session_id: str, checkpoint_id: str = "a1b2c3d4e5f6") -> str:
    return f'{{"checkpoint_id":"{checkpoint_id}","session_id":"{session_id}"}}'


def one_session(session_id: str = "s-1", text: str = '{"type":"user"}\n') -> dict[str, str]:
    """A checkpoint of one session on the v1 branch."""
    return {
        "a1/b2c3d4e5f6/metadata.json": '{"checkpoint_id":"a1b2c3d4e5f6","strategy":"manual-commit","sessions":[]}',
        "a1/b2c3d4e5f6/0/metadata.json": metadata(session_id),
        "a1/b2c3d4e5f6/0/full.jsonl": text,
        "a1/b2c3d4e5f6/0/prompt.txt": "fix it",
        "a1/b2c3d4e5f6/0/content_hash.txt": "sha256:00",
    }


def listed(repository: Repository | Path | str, ref: str = "") -> list[RawFile | Unreadable]:
    place = repository.path if isinstance(repository, Repository) else repository
    return list(open_source(f"git:{place}{ref}"))


def told(repository: Repository | Path | str, ref: str = "") -> dict[str, tuple[str | None, bytes | str]]:
    """Path in the repository -> (session the place names, content or why there is none)."""
    found = listed(repository, ref)
    files = [f for f in found if isinstance(f, RawFile)]
    contents = dict(zip((f.uri for f in files), read(files), strict=True))
    answer: dict[str, tuple[str | None, bytes | str]] = {}
    for file in found:
        path = file.uri.partition("@")[2].partition(":")[2]
        if isinstance(file, Unreadable):
            answer[path] = (None, file.reason)
            continue
        content = contents[file.uri]
        answer[path] = (file.session_hint, content.reason if isinstance(content, Unreadable) else content)
        assert isinstance(content, Unreadable) or file.bytes == len(content)
    return answer
