"""The Git source, over real repositories built here, one for each layout Entire has used."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsignals.changes import git as objects
from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Unreadable, open_source, read
from agentsignals.sources.git import owner_and_name
from tests.git_repositories import V1, Repository, git, listed, metadata, one_session, real, told

ULID = "01KQ4Z9T7S3V5W7X9YABCDEFGH"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop.git")


ONE_SESSION: dict[str, str | None] = {
    "a1/b2c3d4e5f6/metadata.json": None,
    "a1/b2c3d4e5f6/0/metadata.json": "s-1",
    "a1/b2c3d4e5f6/0/full.jsonl": "s-1",
}
"""What is listed of `one_session`, and the session each place names."""

LAYOUTS: dict[str, tuple[str, dict[str, str], dict[str, str | None]]] = {
    "branch v1": (V1, one_session(), ONE_SESSION),
    "v1 followed from a remote": ("refs/remotes/origin/entire/checkpoints/v1", one_session(), ONE_SESSION),
    "v1 as a ref": ("refs/entire/checkpoints/v1", one_session("2026-01-09-s-1"), ONE_SESSION),
    "the branch's first name": ("refs/heads/entire/sessions", one_session(), ONE_SESSION),
    "one session in the checkpoint's own folder": (
        V1,
        {"a1/b2c3d4e5f6/metadata.json": metadata("2026-01-09-s-1"), "a1/b2c3d4e5f6/full.log": "{}\n"},
        {"a1/b2c3d4e5f6/metadata.json": "s-1", "a1/b2c3d4e5f6/full.log": "s-1"},
    ),
    "a ref for each checkpoint": (
        f"refs/entire/checkpoints/GH/{ULID}",
        {"metadata.json": "{}", "0/metadata.json": metadata("s-1", ULID), "0/full.jsonl": "{}\n", "1/full.jsonl": "[]"},
        {"metadata.json": None, "0/metadata.json": "s-1", "0/full.jsonl": "s-1", "1/full.jsonl": None},
    ),
    "tasks": (
        V1,
        one_session() | {
            "a1/b2c3d4e5f6/tasks/toolu_01/checkpoint.json": '{"session_id":"s-1"}',
            "a1/b2c3d4e5f6/0/tasks/toolu_02/agent-7f.jsonl": '{"isSidechain":true}\n',
        },
        ONE_SESSION | {
            "a1/b2c3d4e5f6/0/tasks/toolu_02/agent-7f.jsonl": "s-1",
            "a1/b2c3d4e5f6/tasks/toolu_01/checkpoint.json": None,
        },
    ),
    "shadow branch": (
        "refs/heads/entire/0f1e2d3-ab12cd",
        {
            ".entire/metadata/2026-01-09-s-1/full.jsonl": "{}\n", ".entire/metadata/2026-01-09-s-1/prompt.txt": "x",
            ".entire/settings.json": "{}", "src/a.py": "pass\n", "12/full.jsonl": "[]", "metadata.json": "{ }",
        },
        {".entire/metadata/2026-01-09-s-1/full.jsonl": "s-1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_transcripts_and_metadata_are_found_in_every_layout(repository: Repository, name: str) -> None:
    ref, files, expected = LAYOUTS[name]
    repository.put(ref, files)
    repository.put("refs/heads/main", {"full.jsonl": "not this one", "a1/b2c3d4e5f6/0/full.jsonl": "nor this"})
    assert told(repository) == {path: (session, files[path].encode()) for path, session in expected.items()}


def _packed(repository: Repository) -> Path:
    git(repository.path, "pack-refs", "--all")
    return repository.path


def _cloned(repository: Repository) -> Path:
    clone = repository.path.with_name("clone")
    git(repository.path, "clone", "-q", "--no-local", str(repository.path), str(clone))
    (clone / "a.jsonl").write_text("{}\n")
    return clone


@pytest.mark.parametrize(
    "place",
    [
        lambda repository: repository.path,
        lambda repository: repository.path.parent,
        _packed,
        _cloned,
        lambda repository: _cloned(repository) / ".git",
    ],
    ids=["bare", "a folder with it", "with packed refs", "a clone", "its .git"],
)
@pytest.mark.parametrize("name", ["branch v1", "shadow branch"])
def test_checkpoints_of_a_repository_that_is_named_as_a_folder_are_parts_of_it(
    repository: Repository, name: str, place: Callable[[Repository], Path]
) -> None:
    ref, files, expected = LAYOUTS[name]
    repository.put("refs/heads/main", {"a.py": "pass\n"})
    repository.put(ref, files)
    folder = str(place(repository))
    found = [file for file in open_source(folder) if file.uri.startswith("git:")]
    assert {file.spec for file in found} == {folder}
    held = [file for file in found if isinstance(file, RawFile)]
    assert sorted(read(held)) == sorted(files[path].encode() for path in expected)


def test_a_repository_without_checkpoints_is_a_folder_like_any_other(repository: Repository) -> None:
    repository.put("refs/heads/entirely/other", {"a.py": "pass\n"})
    assert not [file for file in open_source(str(repository.path)) if file.uri.startswith("git:")]


def test_where_git_is_missing_a_folder_with_checkpoints_says_so_and_the_rest_is_read(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.put(V1, one_session())
    (repository.path.parent / "a.jsonl").write_text("{}\n")
    monkeypatch.setattr("shutil.which", lambda _: None)
    found = {file.uri: file for file in open_source(str(repository.path.parent))}
    lost = found.pop(str(repository.path))
    assert isinstance(lost, Unreadable) and lost.reason == "unreadable" and "git is not installed" in lost.detail
    assert list(found) == [str(repository.path.parent / "a.jsonl")]


def test_the_two_refs_of_v2_are_one_checkpoint(repository: Repository) -> None:
    folder = "a1/b2c3d4e5f6/0"
    repository.put(
        "refs/entire/checkpoints/v2/main",
        {f"{folder}/metadata.json": metadata("s-1"), f"{folder}/transcript.jsonl": "{}"},
    )
    repository.put("refs/entire/checkpoints/v2/full/current", {f"{folder}/raw_transcript": '{"n":1}\n'})
    repository.put("refs/entire/checkpoints/v2/full/1700000000000", {f"{folder[:-1]}1/raw_transcript": '{"n":2}\n'})
    found = told(repository)
    assert found[f"{folder}/raw_transcript"] == ("s-1", b'{"n":1}\n')
    assert found[f"{folder[:-1]}1/raw_transcript"] == (None, b'{"n":2}\n')
    assert found.keys() == {f"{folder}/raw_transcript", f"{folder[:-1]}1/raw_transcript", f"{folder}/metadata.json"}


def test_the_compact_copy_is_listed_only_where_the_full_transcript_cannot_be_had(repository: Repository) -> None:
    lost = "a1/b2c3d4e5f6/1"
    repository.put(V1, one_session() | {
        "a1/b2c3d4e5f6/0/transcript.jsonl": '{"v":1}\n',
        f"{lost}/full.jsonl": "lost\n", f"{lost}/transcript.jsonl": '{"v":2}\n',
        "cc/dddddddddd/0/transcript.jsonl": '{"v":3}\n',
    })  # fmt: skip
    repository.loose("lost\n").unlink()
    found = told(repository)
    assert "a1/b2c3d4e5f6/0/transcript.jsonl" not in found
    assert found[f"{lost}/transcript.jsonl"] == (None, b'{"v":2}\n')
    assert found["cc/dddddddddd/0/transcript.jsonl"] == (None, b'{"v":3}\n')


def test_pieces_of_a_long_transcript_are_put_together_in_order_of_number(repository: Repository) -> None:
    files = {
        f"a1/b2c3d4e5f6/0/full.jsonl{end}": text
        for end, text in (("", "a"), (".010", "d"), (".002", "c"), (".001", "b"))
    }
    repository.put(V1, files)
    assert told(repository) == {"a1/b2c3d4e5f6/0/full.jsonl": (None, b"a\nb\nc\nd")}
    assert list(read([f for f in listed(repository) if isinstance(f, RawFile)], 4)) == [b"a\nb\n"]


def test_a_transcript_with_a_missing_piece_is_missing(repository: Repository) -> None:
    repository.put(V1, {"a1/b2c3d4e5f6/0/full.jsonl": "a", "a1/b2c3d4e5f6/0/full.jsonl.001": "b"})
    repository.loose("b").unlink()
    assert told(repository) == {"a1/b2c3d4e5f6/0/full.jsonl": (None, "missing_blob")}


def test_every_snapshot_of_a_session_is_listed_and_an_identical_one_once(repository: Repository) -> None:
    grown = ["1\n", "1\n2\n", "1\n2\n", "1\n2\n3\n"]
    files = {f"a{n}/b2c3d4e5f6/0/full.jsonl": text for n, text in enumerate(grown)}
    files |= {f"a{n}/b2c3d4e5f6/0/metadata.json": metadata("s-1", f"a{n}b2c3d4e5f6") for n in range(4)}
    repository.put(V1, files)
    repository.put("refs/remotes/origin/entire/checkpoints/v1", files)
    found = {
        path: text
        for path, (session, text) in told(repository).items()
        if path.endswith("full.jsonl") and session == "s-1"
    }
    assert found == {
        "a0/b2c3d4e5f6/0/full.jsonl": b"1\n",
        "a1/b2c3d4e5f6/0/full.jsonl": b"1\n2\n",
        "a3/b2c3d4e5f6/0/full.jsonl": b"1\n2\n3\n",
    }
    assert all("refs/heads/" in f.uri for f in listed(repository))


def test_a_working_tree_its_git_folder_and_a_folder_in_it_are_the_same_repository(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop", bare=False)
    repository.put(V1, one_session())
    (tmp_path / "shop" / "src").mkdir()
    seen = [listed(tmp_path / "shop" / inner) for inner in ("", ".git", "src")]
    assert [len(s) for s in seen] == [3, 3, 3]
    assert len({tuple(f.uri for f in s) for s in seen}) == 1
    first = seen[0][0]
    assert isinstance(first, RawFile)
    assert first.uri == f"git:{tmp_path}/shop@{V1}:a1/b2c3d4e5f6/0/full.jsonl"
    assert (first.source, first.stamp, first.repo_hint, first.container) == (
        "git",
        None,
        "shop",
        f"{tmp_path}/shop/.git",
    )
    assert first.key == repository.blob('{"type":"user"}\n')


def test_a_missing_blob_costs_that_file_only(repository: Repository) -> None:
    repository.put(V1, one_session(text="gone\n") | {"a1/b2c3d4e5f6/1/full.jsonl": "here\n"})
    repository.loose("gone\n").unlink()
    found = told(repository)
    assert found["a1/b2c3d4e5f6/0/full.jsonl"] == (None, "missing_blob")
    assert found["a1/b2c3d4e5f6/1/full.jsonl"] == (None, b"here\n")
    assert found["a1/b2c3d4e5f6/0/metadata.json"][0] == "s-1"


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "gone"])
def test_a_blob_damaged_after_it_was_listed_costs_that_file_only(repository: Repository, damage: str) -> None:
    text = "".join(f'{{"n":{n}}}\n' for n in range(20_000))
    repository.put(
        V1,
        {"a1/b2c3d4e5f6/0/full.jsonl": text, "a0/b2c3d4e5f6/0/full.jsonl": "x\n", "a2/b2c3d4e5f6/0/full.jsonl": "y\n"},
    )
    files = [f for f in listed(repository) if isinstance(f, RawFile)]
    assert len(files) == 3
    where = repository.loose(text)
    data = where.read_bytes()
    where.chmod(0o644)
    if damage == "gone":
        where.unlink()
    else:
        where.write_bytes(
            {"cut": data[: len(data) // 2], "garbage": data[:40] + b"\0" * 400 + data[440:], "empty": b""}[damage]
        )
    got = [d.reason if isinstance(d, Unreadable) else bytes(d) for d in read(files)]
    assert got == [b"x\n", "missing_blob", b"y\n"]


def test_a_missing_folder_is_told_and_the_rest_is_read(repository: Repository) -> None:
    repository.put(V1, one_session() | {"cc/dddddddddd/0/full.jsonl": "x\n"})
    tree = repository.git("rev-parse", f"{V1}:cc/dddddddddd")
    (repository.git_dir / "objects" / tree[:2] / tree[2:]).unlink()
    found = told(repository)
    assert found["cc/dddddddddd/"] == (None, "missing_tree")
    assert found["a1/b2c3d4e5f6/0/full.jsonl"] == ("s-1", b'{"type":"user"}\n')


def test_missing_blobs_are_never_fetched(repository: Repository, tmp_path: Path) -> None:
    """A partial clone whose remote would leave a mark if it were asked for anything."""
    repository.put(V1, one_session(text="gone\n"))
    repository.loose("gone\n").unlink()
    mark = tmp_path / "asked"
    settings = {
        "core.repositoryformatversion": "1", "extensions.partialClone": "origin", "protocol.ext.allow": "always",
        "remote.origin.promisor": "true", "remote.origin.url": f"ext::sh -c touch% {mark}",
    }  # fmt: skip
    for name, value in settings.items():
        repository.git("config", name, value)
    assert told(repository)["a1/b2c3d4e5f6/0/full.jsonl"] == (None, "missing_blob")
    assert not mark.exists()
    subprocess.run(["git", f"--git-dir={repository.git_dir}", "fetch"], capture_output=True, check=False)
    assert mark.exists()  # the trap does work


def test_a_ref_can_be_named(repository: Repository) -> None:
    commit = repository.put(V1, one_session())
    repository.put("refs/remotes/fork/entire/checkpoints/v1", {"b1/b2c3d4e5f6/0/full.jsonl": "fork\n"})
    repository.put("refs/heads/moved", {"b2/b2c3d4e5f6/0/full.jsonl": "moved\n", "7/full.jsonl": "root\n"})
    all_of_v1 = set(ONE_SESSION)
    expected = {
        V1: all_of_v1, "heads/entire/checkpoints/v1": all_of_v1, "entire/checkpoints/v1": all_of_v1,
        "entire": all_of_v1, commit: all_of_v1, "fork/entire/checkpoints/v1": {"b1/b2c3d4e5f6/0/full.jsonl"},
        "moved": {"b2/b2c3d4e5f6/0/full.jsonl", "7/full.jsonl"},
    }  # fmt: skip
    assert {ref: told(repository, f"#{ref}").keys() for ref in expected} == expected


def test_a_folder_may_have_a_number_sign_in_its_name(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "c#" / "x#1.git")
    repository.put(V1, one_session())
    assert len(listed(repository)) == len(listed(repository, "#entire/checkpoints/v1")) == 3


def test_names_made_to_harm_are_only_names(repository: Repository) -> None:
    sessions = ["-rf", "a\nb", "$(touch pwned)", "naïve ☕", "--upload-pack=x"]
    for n, session in enumerate(sessions):
        repository.put(
            f"refs/remotes/-x{n}é/entire/0f1e2d3-ab12cd", {f".entire/metadata/{session}/full.jsonl": f"{n}\n"}
        )
    found = told(repository)
    assert dict(found.values()) == {
        "-rf": b"0\n", "a\nb": b"1\n", "$(touch pwned)": b"2\n", "naïve ☕": b"3\n", "--upload-pack=x": b"4\n",
    }  # fmt: skip
    assert not any("\n" in f.uri for f in listed(repository))
    assert not Path("pwned").exists()


def test_what_is_no_file_is_not_read(repository: Repository) -> None:
    """A symbolic link and a submodule under a transcript's name."""
    link = repository.blob("/etc/passwd")
    inner = repository.git("mktree", given=f"120000 blob {link}\tfull.jsonl\n160000 commit {'1' * 40}\tmetadata.json\n")
    tree = inner
    for name in ("0", "b2c3d4e5f6", "a1"):
        tree = repository.git("mktree", given=f"040000 tree {tree}\t{name}\n")
    repository.git("update-ref", V1, repository.git("commit-tree", tree, "-m", "x"))
    with pytest.raises(SourceError, match="no checkpoint"):
        listed(repository)


def test_metadata_that_is_no_json_names_no_session(repository: Repository) -> None:
    repository.put(V1, {"a1/b2c3d4e5f6/0/metadata.json": '{"session_id": ["x"]', "a1/b2c3d4e5f6/0/full.jsonl": "x\n"})
    assert {session for session, _ in told(repository).values()} == {None}


def test_a_repository_without_checkpoints_and_an_unknown_ref_say_what_to_do(repository: Repository) -> None:
    repository.put("refs/heads/main", {"a": "b"})
    with pytest.raises(SourceError, match="no checkpoint") as empty:
        listed(repository)
    assert "git fetch origin 'refs/entire/*:refs/entire/*'" in empty.value.hint
    with pytest.raises(SourceError, match="no branch or ref 'mian'") as unknown:
        listed(repository, "#mian")
    assert "refs/heads/main" in unknown.value.hint


def test_without_the_program_git_the_error_says_so(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match="git is not installed"):
        listed(repository)


def test_git_variables_of_a_hook_do_not_redirect_us(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.put(V1, one_session())
    other = Repository(tmp_path / "other.git")
    monkeypatch.setenv("GIT_DIR", str(other.git_dir))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.git_dir / "objects"))
    monkeypatch.setenv("GIT_NAMESPACE", "elsewhere")
    assert len(told(repository)) == 3


CORPUS_FILES = {
    "context-evaluator": {"full.jsonl": 110, "metadata.json": 174},
    "pup-mcp": {"full.jsonl": 2, "metadata.json": 4},
    "reglint": {"full.jsonl": 12, "metadata.json": 17},
    # 62 on the v1 branch and 62 under v2/full, of which 57 are the same blobs, and one under refs/entire/checkpoints/v1
    "test-repo": {"full.jsonl": 6, "raw_transcript": 62, "metadata.json": 203},
}


@pytest.mark.corpus
@pytest.mark.parametrize("name", CORPUS_FILES)
def test_real_repositories_give_each_blob_once(tmp_path: Path, name: str) -> None:
    repo = real(name, tmp_path)
    files = [f for f in listed(repo) if isinstance(f, RawFile)]
    assert Counter(f.uri.rsplit("/", 1)[1] for f in files) == CORPUS_FILES[name]
    assert {f.key: f.bytes for f in files} == _blobs_by_ls_tree(repo)
    assert len(files) == len(listed(repo))  # nothing of a checkpoint is missing
    transcripts = [f for f in files if not f.uri.endswith(".json")]
    assert all(f.session_hint for f in transcripts)
    for file, head in zip(transcripts, read(transcripts, 1000), strict=True):
        assert isinstance(head, bytes)
        assert len(head) == min(1000, file.bytes)


def _blobs_by_ls_tree(path: Path) -> dict[str, int]:
    """The same blobs by another road: every ref of Entire's, listed by git."""
    found = {}
    for ref in git(path, "for-each-ref", "--format=%(refname)", "refs/heads/entire", "refs/entire").split():
        for line in git(path, "ls-tree", "-r", "--long", ref).splitlines():
            what, _, name = line.partition("\t")
            if name.endswith(("/full.jsonl", "/raw_transcript", "/metadata.json")):
                found[what.split()[2]] = int(what.split()[3])
    return found


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache" / name))


REFUSED = [
    "git:", "git:-u", "git:--upload-pack=touch pwned", "git:http://example.org/a/b", "git:ext::sh -c 'touch pwned'",
    "git:https://me:secret@example.org/a/b", "git:ssh://-oProxyCommand=touch%20pwned/a", "git:me@example.org:a/b.git",
    "git:file:///nowhere/at/all", "git:file:///nowhere#-x", "git:file:///nowhere#a..b", "git:file:///nowhere#a b",
    "git:file:///nowhere\n#x", "git:/nowhere/at/all", "git:/nowhere#main",
]  # fmt: skip


@pytest.mark.parametrize("spec", REFUSED)
def test_what_names_no_repository_is_refused_with_a_hint(spec: str) -> None:
    for _ in range(2):  # nor does a second try find what the first one left
        with pytest.raises(SourceError) as refused:
            list(open_source(spec))
        assert refused.value.hint
        assert "secret" not in refused.value.message + refused.value.hint
        assert "no checkpoint" not in refused.value.message
    assert not Path("pwned").exists()


def test_an_address_is_cloned_once_and_fetched_afterwards(repository: Repository, tmp_path: Path) -> None:
    repository.put(V1, one_session())
    repository.put("refs/heads/main", {"code.py": "pass\n"})
    address = f"file://{repository.path}"
    first = told(address)
    assert {path: session for path, (session, _) in first.items() if path.endswith("full.jsonl")} == {
        "a1/b2c3d4e5f6/0/full.jsonl": "s-1"
    }

    repository.put(V1, one_session() | {"cc/dddddddddd/0/full.jsonl": "new\n"})
    repository.put("refs/entire/checkpoints/v2/full/current", {"cc/eeeeeeeeee/0/raw_transcript": "newer\n"})
    again = told(address)
    assert again.keys() - first.keys() == {"cc/dddddddddd/0/full.jsonl", "cc/eeeeeeeeee/0/raw_transcript"}
    cached = list((tmp_path / "cache").glob("agentsignals/git/*"))
    assert len(cached) == 1
    assert "refs/heads/main" not in dict(objects.refs(str(cached[0])))  # the code is not wanted
    assert all(f.uri.startswith(f"git:{address}@refs/") for f in listed(address))

    repository.git("update-ref", "-d", "refs/entire/checkpoints/v2/full/current")
    assert "cc/eeeeeeeeee/0/raw_transcript" not in told(address)


def test_a_ref_behind_an_address_can_be_named(repository: Repository) -> None:
    repository.put(V1, one_session())
    repository.put("refs/heads/kept", {"b2/b2c3d4e5f6/0/full.jsonl": "kept\n"})
    assert told(f"file://{repository.path}", "#kept") == {"b2/b2c3d4e5f6/0/full.jsonl": (None, b"kept\n")}
    with pytest.raises(SourceError, match="no branch or ref 'gone'"):
        listed(f"file://{repository.path}", "#gone")


def test_an_address_that_stopped_answering_gives_what_was_fetched_before_and_says_so(
    repository: Repository, tmp_path: Path
) -> None:
    repository.put(V1, one_session())
    address = f"file://{repository.path}"
    before = told(address)
    repository.path.rename(tmp_path / "moved.git")
    found = listed(address)
    assert found[0] == Unreadable(f"git:{address}", f"git:{address}", "fetch_failed")
    assert len(found) == len(before) + 1


def test_an_empty_remote_holds_no_checkpoint(repository: Repository) -> None:
    repository.put("refs/heads/main", {"a": "b"})
    with pytest.raises(SourceError, match="no checkpoint"):
        listed(f"file://{repository.path}")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://github.com/acme/shop.git", "acme/shop"),
        ("https://token@github.com/acme/shop", "acme/shop"),
        ("https://x-access-token:secret@github.com/acme/shop/", "acme/shop"),
        ("ssh://git@example.org:2222/acme/shop.git", "acme/shop"),
        ("git@github.com:acme/shop.git", "acme/shop"),
        ("https://gitlab.com/group/sub/shop.git", "sub/shop"),
        ("/srv/git/shop.git", None),
        ("file:///srv/git/shop.git", None),
        ("https://github.com/shop", None),
    ],
)
def test_the_origin_names_the_repository(repository: Repository, address: str, expected: str | None) -> None:
    assert owner_and_name(address) == expected
    repository.put(V1, one_session())
    repository.git("config", "remote.origin.url", address)
    assert {f.repo_hint for f in listed(repository) if isinstance(f, RawFile)} == {expected or "shop"}
