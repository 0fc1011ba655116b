"""Over the corpus's largest repository (Claude Code, 64 checkpoints, one blob missing), held against other roads."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest.collection import attribute_repository
from agentsignals.repositories.attribute import Attribution
from agentsignals.store import Store
from tests.git_repositories import real

pytestmark = pytest.mark.slow  # each reads the whole repository of traces


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Attribution, Path, Path]:
    folder = tmp_path_factory.mktemp("context")
    repo = real("context-evaluator", folder)
    return attribute_repository(str(repo), folder / "store"), repo, folder / "store"


def test_59_of_64_checkpoints_have_a_commit_and_the_others_a_reason(told: Any) -> None:
    assert (told[0].checkpoints, told[0].checkpoints_linked, told[0].commits) == (64, 59, 75)
    assert told[0].unlinked == {"commit_not_in_history": 4, "commit_without_trailer": 1}


def test_the_record_is_met_where_it_can_be(told: Any) -> None:
    found = told[0].agreement_with_record
    assert found.n == 14
    assert found.mae < 3
    assert [d.commit_sha[:7] for d in found.far] == ["da5defc"]


def test_every_added_line_has_one_tag(told: Any) -> None:
    _, repo, store = told
    words = ("show", "--numstat", "--format=", "--histogram", "--find-renames=50%")
    rows = Store(store).sql(
        "SELECT commit_sha, count(*), count(DISTINCT path || ':' || line) FROM line_attribution GROUP BY 1"
    )
    for sha, n, distinct in rows.fetchall():
        done = subprocess.run(["git", "-C", str(repo), *words, sha], capture_output=True, check=True)
        added = sum(int(row.split("\t")[0]) for row in done.stdout.decode().splitlines() if row[:1].isdigit())
        assert (n, distinct) == (added, added), sha


def test_no_surely_written_line_is_missing_from_the_transcripts(told: Any) -> None:
    """The one-sided claim, by another road: each stands in the arguments of the call that is named for it."""
    _, repo, store = told
    rows = Store(store).sql(
        "SELECT l.commit_sha, l.path, l.line, t.arguments, coalesce(t.command, '') FROM line_attribution l"
        " JOIN tool_calls t USING (session_id, seq) WHERE l.tag = 'agent_exact' AND NOT l.is_blank"
        " AND hash(l.path || l.line) % 20 = 0"
    )
    missing: Counter[str] = Counter()
    texts: dict[tuple[str, str], list[str]] = {}
    for sha, path, line, arguments, command in rows.fetchall():
        if (sha, path) not in texts:
            shown = subprocess.run(["git", "-C", str(repo), "show", f"{sha}:{path}"], capture_output=True, check=True)
            texts[sha, path] = shown.stdout.decode().split("\n")
        wanted = texts[sha, path][line - 1].strip()
        said = json.dumps(json.loads(arguments), ensure_ascii=False) + command
        words = json.dumps(wanted, ensure_ascii=False)[1:-1]
        missing["seen"] += 1
        missing["missing"] += words not in said
    assert missing["seen"] > 300
    assert missing["missing"] <= 0.03 * missing["seen"]  # edits within a line leave its other half unsaid


def test_the_lines_that_are_said_to_be_committed_stand_there_and_in_the_calls(told: Any) -> None:
    """By another road: the text at each place as Git shows it, looked for in what the session's calls said."""
    _, repo, store = told
    said: Counter[str] = Counter()
    words: dict[str, str] = {}
    for session_id, arguments, command in (
        Store(store).sql("SELECT session_id, arguments, coalesce(command, '') FROM tool_calls").fetchall()
    ):
        words[session_id] = words.get(session_id, "") + _plain(arguments) + command
    rows = Store(store).sql(
        "SELECT session_id, value FROM signals WHERE signal = 'user.lines_committed' AND absent IS NULL"
    )
    for session_id, value in rows.fetchall():
        found = json.loads(value)
        said[found["verdict"]] += 1
        literal = [line in words[session_id] for line in _lines(repo, found["commits"])]
        said["seen"], said["missing"] = said["seen"] + len(literal), said["missing"] + literal.count(False)
        assert (found["verdict"] != "applied") or any(literal), session_id
    assert (said["applied"], said["not_applied"], said["unknown"], said["censored"]) == (84, 9, 2, 0)
    assert said["seen"] > 9_000
    assert said["missing"] <= 0.02 * said["seen"]  # edits within a line leave its other half unsaid


def _plain(arguments: str) -> str:
    return json.dumps(json.loads(arguments), ensure_ascii=False)


def _lines(repo: Path, commits: list[dict[str, Any]]) -> list[str]:
    found = []
    for one in commits:
        for path, spans in one["files"].items():
            shown = subprocess.run(
                ["git", "-C", str(repo), "show", f"{one['sha']}:{path}"], capture_output=True, check=True
            )
            text = shown.stdout.decode("utf-8", "replace").split("\n")
            for span in spans.removesuffix(", …").split(", "):
                first, _, last = span.partition("-")
                found += [
                    json.dumps(t.strip(), ensure_ascii=False)[1:-1] for t in text[int(first) - 1 : int(last or first)]
                ]
    return found


def test_blame_knows_the_earlier_sessions_of_a_place_too(told: Any) -> None:
    """By another road: who the lines within three of each hunk were from, at the commit before."""
    _, repo, store = told
    lines = (
        Store(store)
        .sql("SELECT commit_sha, path, line, session_id FROM line_attribution WHERE starts_with(tag, 'agent_')"
             " AND session_id IS NOT NULL")
        .fetchall()
    )  # fmt: skip
    own = {(sha, path, line): session_id for sha, path, line, session_id in lines}
    began = dict(Store(store).sql("SELECT session_id, started_at FROM sessions").fetchall())
    blamed: set[tuple[str, str]] = set()
    for sha, path in sorted({(sha, path) for sha, path, _, _ in lines}):
        before = _blame(repo, f"{sha}^", path)
        for old, n_old, new, n_new in _hunks(repo, sha, path):
            here = {own[sha, path, n] for n in range(new, new + n_new) if (sha, path, n) in own}
            for place in before[max(old - 4, 0) : old + n_old + 3 - (n_old > 0)]:
                other = own.get(place)
                blamed |= {(s, other) for s in here if other not in (None, s) and began[other] < began[s]}
    ours = {
        (session_id, other)
        for session_id, value in Store(store)
        .sql("SELECT session_id, value FROM signals WHERE signal = 'user.earlier_sessions_on_lines' AND absent IS NULL")
        .fetchall()
        for other in json.loads(value)
    }
    assert len(blamed) > 130
    assert len(blamed & ours) >= 0.94 * len(blamed)
    linked = set(own.values())  # blame can tell of no others
    both = {pair for pair in ours if linked.issuperset(pair)}
    assert len(blamed & both) >= 0.8 * len(both)  # the rest met in the working tree, between two commits


def _hunks(repo: Path, sha: str, path: str) -> list[tuple[int, int, int, int]]:
    words = ("diff", "-U0", "--histogram", f"{sha}^", sha, "--", path)
    shown = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=True).stdout.decode()
    found = re.findall(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", shown, re.MULTILINE)
    return [(int(a), int(b) if b else 1, int(c), int(d) if d else 1) for a, b, c, d in found]


def _blame(repo: Path, sha: str, path: str) -> list[tuple[str, str, int]]:
    """Commit, path and line that each line of a file is from; nothing for a file that is not there."""
    words = ("blame", "--line-porcelain", sha, "--", path)
    shown = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=False).stdout.decode()
    heads = re.findall(r"^([0-9a-f]{40}) (\d+) \d+(?: \d+)?$", shown, re.MULTILINE)
    names = re.findall(r"^filename (.*)$", shown, re.MULTILINE)
    return [(sha, name, int(line)) for (sha, line), name in zip(heads, names, strict=True)]


def test_what_git_log_says_was_reverted_is(tmp_path: Path) -> None:
    repo = real("test-repo", tmp_path)
    attribute_repository(str(repo), tmp_path / "store")
    log = ("log", "--all", "--format=%H", "--grep=^This reverts commit")
    reverting = subprocess.run(["git", "-C", str(repo), *log], capture_output=True, check=True).stdout.decode().split()
    assert len(reverting) == 2
    rows = Store(tmp_path / "store").sql(
        "SELECT session_id, detail, value FROM signals WHERE signal = 'user.changes_reverted' AND absent IS NULL"
    )
    values = {session_id[:8]: json.loads(value) for session_id, _, value in rows.fetchall()}
    # One of the two reverts a session's commit, 61 seconds later; the other reverts what no session wrote. And a
    # session's file was deleted again 83 seconds after it had been committed, without a word.
    assert sorted(s for s, is_reverted in values.items() if is_reverted) == ["c3d85a7d", "cf708092"]
