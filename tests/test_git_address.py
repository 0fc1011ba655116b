"""Checkpoints behind an address: what is refused, what is cloned, what is fetched again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.changes import git as objects
from agentsignals.errors import SourceError
from agentsignals.sources import RawFile, Unreadable, open_source
from agentsignals.sources.git import owner_and_name
from tests.git_repositories import V1, Repository, listed, one_session, told


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop.git")


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
    with pytest.raises(SourceError, match="no ref 'gone'"):
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
