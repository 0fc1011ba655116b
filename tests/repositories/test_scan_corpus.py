"""Over repositories of the corpus: what is divided by, counted on another road, and findings anybody can look up."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from agentsignals.ingest.collection import scan_repository
from agentsignals.repositories.scanners import OwnRules, language_of, place_of, scan_one
from agentsignals.store import Store
from tests.git_repositories import real


def git(repo: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.slow
def test_rates_divide_by_the_added_lines_that_git_shows(tmp_path: Path) -> None:
    repo = real("reglint", tmp_path)
    told = scan_repository(str(repo), OwnRules(), tmp_path / "store", jobs=1)
    assert (told.commits, told.commits_left_out, told.files, told.scanned, told.skipped) == (5, 0, 24, 24, {})
    lines: Counter[str] = Counter()
    for (sha,) in Store(tmp_path / "store").sql("SELECT DISTINCT commit_sha FROM scans").fetchall():
        path = ""
        for line in git(repo, "show", "--histogram", "--find-renames=50%", "-U0", "--format=", sha).split("\n"):
            if line.startswith("+++ "):
                path = line[6:]
            elif line.startswith("+") and line[1:].strip() and language_of(path):
                lines[place_of(path)] += 1
    known = {r.files: (r.lines, r.introduced, r.commits_with) for r in told.rates if r.by == "all"}
    assert known == {"all": (618, 0, 0), "code": (229, 0, 0)}
    assert (lines["code"] + lines["test"], lines["code"]) == (618, 229)
    owners = {r.group: r.lines for r in told.rates if (r.attribution, r.by, r.files) == ("replayed", "owner", "all")}
    assert owners == {"unknown": 587, "nobody": 31}


def test_what_shell_scripts_write_under_known_names_is_what_a_search_finds(tmp_path: Path) -> None:
    """In the files as they are today, most of which no session of the collection changed."""
    repo = real("context-evaluator", tmp_path)
    found, searched = set(), set()
    for path in git(repo, "ls-tree", "-r", "--name-only", "HEAD", "scripts").split():
        text = git(repo, "show", f"HEAD:{path}")
        found |= {(path, f.line) for f in scan_one(path, text.encode()).findings if f.rule == "sh-known-temporary"}
        if path.endswith(".sh"):
            lines = enumerate(text.split("\n"), 1)
            searched |= {(path, n) for n, line in lines if re.search(r"[^&0-9]> ?/tmp/\w", line)}
    assert found == searched
    assert len(found) == 10
