"""Commits and their changes as Git tells them, whatever names, messages and contents are like."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.changes import git as commits
from agentsignals.changes.git import Objects
from tests.repositories.story import Story, block


def changed(story: Story, sha: str) -> dict[str, tuple[str | None, list[tuple[int, int]], list[tuple[int, int]]]]:
    [(_, files)] = commits.changes(str(story.root / ".git"), [sha])
    return {f.path: (f.old_path, f.added, f.removed) for f in files}


def test_added_and_removed_lines_are_counted_from_one(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("a.py", "1\n2\n3\n4\n")
    first = s.commit("one")
    s.put("a.py", "1\nnew\n2\n4\nlast")
    second = s.commit("two")
    assert changed(s, first) == {"a.py": (None, [(1, 4)], [])}
    assert changed(s, second) == {"a.py": ("a.py", [(2, 1), (5, 1)], [(3, 1)])}


@pytest.mark.parametrize(
    "name", ['qu"ote.py', "tab\tin.py", "new\nline.py", "back\\slash.py", "ümlaut ß.py", "-dash.py"]
)
def test_any_name_a_file_may_have_comes_back_whole(name: str, tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put(name, "x\n")
    assert changed(s, s.commit("odd")) == {name: (None, [(1, 1)], [])}


def test_contents_that_look_like_a_patch_are_contents(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("a.txt", "@@ -1 +1 @@\ndiff --git a/x b/x\nindex 1..2\n\x01:100644\n:100644 100644 a b M\tx\n")
    s.put("b.txt", "b\n")
    assert changed(s, s.commit("odd")) == {"a.txt": (None, [(1, 5)], []), "b.txt": (None, [(1, 1)], [])}


def test_renames_deletions_modes_and_binaries(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("old.py", block("kept", 20))
    s.put("gone.py", "x\n")
    s.put("run.sh", "y\n")
    s.put("z.py", "z\n")
    s.commit("one")
    (s.root / "old.py").rename(s.root / "new.py")
    s.put("new.py", s.text("new.py") + "more\n")
    (s.root / "gone.py").unlink()
    (s.root / "run.sh").chmod(0o755)
    (s.root / "pic.bin").write_bytes(b"\0\1\2")
    s.put("z.py", "zz\n")
    assert changed(s, s.commit("two")) == {
        "new.py": ("old.py", [(21, 1)], []),
        "gone.py": ("gone.py", [], [(1, 1)]),
        "run.sh": ("run.sh", [], []),
        "pic.bin": (None, [], []),
        "z.py": ("z.py", [(1, 1)], [(1, 1)]),
    }


def test_a_persons_own_settings_of_git_change_nothing(tmp_path: Path) -> None:
    s = Story(tmp_path)
    settings = {
        "log.showRoot": "false", "diff.interHunkContext": "9", "diff.relative": "true", "diff.renames": "false",
        "diff.noprefix": "true", "diff.mnemonicPrefix": "true", "color.ui": "always", "diff.external": "false",
        "core.quotePath": "true", "diff.algorithm": "minimal", "log.showSignature": "true", "diff.context": "5",
    }  # fmt: skip
    for name, value in settings.items():
        s.git("config", name, value)
    s.put("ü.py", block("kept", 20))
    first = s.commit("one")
    s.put("ö.py", s.text("ü.py").replace("kept_3 = ", "new = 1\nkept_3 = ").replace("kept_6 = ", "new = 2\nkept_6 = "))
    (s.root / "ü.py").unlink()
    second = s.commit("two")
    assert changed(s, first) == {"ü.py": (None, [(1, 20)], [])}
    assert changed(s, second) == {"ö.py": ("ü.py", [(4, 1), (8, 1)], [])}


def test_a_trailer_counts_anywhere_in_the_message_and_only_as_a_line(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("a", "1")
    message = (
        "squash\n\n* one\n\nEntire-Checkpoint: aaaaaaaaaaaa\n\n* two\n\nEntire-Checkpoint: bbbbbbbbbbbb\n"
        "Entire-Checkpoint: aaaaaaaaaaaa\n\nsee Entire-Checkpoint: cccccccccccc\nEntire-Checkpoint: nothex\n"
        "Entire-Checkpoint: 01JABCDEFGHJKMNPQRSTVWXYZ0\n"
    )
    s.git("add", "-A")
    s.git("commit", "--quiet", "-m", message)
    [commit] = commits.commits(str(s.root / ".git"))
    assert commit.checkpoint_ids == ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "01JABCDEFGHJKMNPQRSTVWXYZ0")
    assert (commit.author, commit.subject, commit.is_merge) == ("a@example.org", "squash", False)


def test_checkpoint_branches_are_no_code(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("a", "1")
    s.commit("code")
    for ref in ("refs/heads/entire/checkpoints/v1", "refs/entire/checkpoints/aa/1", "refs/remotes/origin/entire/x"):
        oid = s.git("commit-tree", s.git("rev-parse", "HEAD^{tree}"), "-m", f"checkpoint {ref}")
        s.git("update-ref", ref, oid)
    assert [c.subject for c in commits.commits(str(s.root / ".git"))] == ["code"]


def test_a_merge_commit_stands_for_what_it_merged(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("a", "1")
    s.commit("first")
    main = s.git("symbolic-ref", "--short", "HEAD").strip()
    merged = []
    for name in ("one", "two"):
        s.git("checkout", "--quiet", "-b", name, main)
        s.put(name, name)
        merged.append(s.commit(name))
    s.git("checkout", "--quiet", main)
    s.git("merge", "--quiet", "--no-ff", "-m", "octopus", "one", "two")
    git_dir = str(s.root / ".git")
    assert sorted(commits.commits_of(git_dir, commits.commits(git_dir), "HEAD") or []) == sorted(merged)
    s.git("checkout", "--quiet", "-b", "empty", "HEAD~0")
    empty = s.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-p", "one", "-m", "nothing new").strip()
    assert commits.commits_of(git_dir, [*commits.commits(git_dir)], empty) == [empty], "it merged nothing"


def test_a_missing_blob_costs_its_own_commits_only(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("a", "1\n")
    first = s.commit("one")
    s.put("b", "lost\n")
    second = s.commit("two")
    s.put("c", "3\n")
    third = s.commit("three")
    oid = s.git("rev-parse", f"{second}:b")
    (s.root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    found = dict(commits.changes(str(s.root / ".git"), [first, second, third]))
    assert set(found) == {first, third}
    objects = Objects(str(s.root / ".git"))
    assert objects.get(oid) is None
    objects.close()


def test_objects_are_answered_one_by_one_missing_ones_too(tmp_path: Path) -> None:
    s = Story(tmp_path)
    s.put("a b", "text\n")
    sha = s.commit("one")
    objects = Objects(str(s.root / ".git"))
    asked = (f"{sha}:a b", f"{sha}:none", "0" * 40, "two\nlines", f"{sha}:a b\0c", "\ud800", f"{sha}:a b")
    assert [objects.get(name) for name in asked] == [b"text\n", None, None, None, None, None, b"text\n"]
    objects.close()
    assert objects.get(f"{sha}:a b") == b"text\n"
    objects.close()
