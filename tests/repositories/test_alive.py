"""Which committed lines live today, held against Git's second opinion on all four repositories of the corpus; and what
of a commit's slice it kept."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from agentsignals.ingest.collection import attribute_repository
from agentsignals.store import Store
from tests.git_repositories import real
from tests.repositories.story import Story, block

ALIVE = {
    "context-evaluator": (9111, 10359, 1698, 1736),
    "reglint": (248, 456, 680, 799),
    "pup-mcp": (658, 658, 0, 0),
    "test-repo": (84, 96, 1, 3),
}
"""Agents' lines alive and all, then the others', in commits that the head descends from."""


def reverse(repo: Path, sha: str, head: str, path: str) -> list[bool]:
    """For each line of a file of a commit, whether walking forward in history it is met at the head."""
    words = ("blame", "--reverse", "-l", "-s", f"{sha}..{head}", "--", path)
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=False)
    return [row.lstrip(b"^").startswith(head.encode()) for row in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALIVE)
def test_blame_in_reverse_agrees_line_by_line(name: str, tmp_path: Path) -> None:
    """The program asks blame of the head's files; here every file of every commit is walked forward instead."""
    repo = real(name, tmp_path)
    told = attribute_repository(str(repo), tmp_path / "store").survival.alive_at_head
    assert (told.agent_alive, told.agent, told.other_alive, told.other) == ALIVE[name]
    rows = Store(tmp_path / "store").sql(
        "SELECT commit_sha, path, line, alive FROM line_attribution WHERE alive IS NOT NULL"
    )
    files: dict[tuple[str, str], dict[int, bool]] = defaultdict(dict)
    for sha, path, line, alive in rows.fetchall():
        files[sha, path][line] = alive
    n = same = 0
    for (sha, path), lines in files.items():
        if sha == told.head:
            continue  # nothing to walk: what the head added is there
        theirs = reverse(repo, sha, told.head or "", path)
        for line, alive in lines.items() if theirs else ():
            n += 1
            same += theirs[line - 1] == alive
    assert n > 0.8 * sum(len(lines) for lines in files.values())
    assert same >= 0.99 * n, (same, n)


def test_a_line_is_alive_dead_or_out_of_sight(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(5)
    with story.agent("writer") as a:
        a.write("new.py", block("new", 4))
    story.commit("made", a)
    story.git("checkout", "--quiet", "-b", "side")
    with a:
        a.write("side.py", block("side", 3))
    story.commit("beside", a)
    story.git("checkout", "--quiet", "main")
    story.human("new.py", "".join(story.text("new.py").splitlines(True)[1:]))
    story.git("mv", "new.py", "renamed.py")
    story.commit("after")
    story.attributed()
    rows = story.rows(
        "SELECT subject, line, alive FROM line_attribution JOIN commits USING (repo, commit_sha) ORDER BY ALL"
    )
    assert rows == [("beside", n, None) for n in (1, 2, 3)] + [("made", n, n > 1) for n in (1, 2, 3, 4)]


def test_a_commit_keeps_of_what_was_written_since_the_one_before(tmp_path: Path) -> None:
    """12 lines, 2 of which the session takes back; 6 are in files of this commit, 4 wait for the next."""
    story = Story(tmp_path).begun(5)
    with story.agent("writer") as a:
        a.write("now.py", block("now", 8))
        a.edit("now.py", "now_0 = compute('now', 0)\nnow_1 = compute('now', 1)\n", "")
        a.write("later.py", block("later", 4))
    story.commit("first", a, add="now.py")
    with a:
        a.write("more.py", block("more", 3))
    story.commit("second", a)
    story.attributed()
    rows = story.rows(
        "SELECT subject, written, rewritten, written_in_files, rewritten_in_files, kept FROM commits"
        " ORDER BY committed_at"
    )
    assert rows == [("base", None, None, None, None, None), ("first", 12, 2, 8, 2, 6), ("second", 3, 0, 3, 0, 3)]
