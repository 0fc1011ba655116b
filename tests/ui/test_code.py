"""The page of code: whose lines commits added, what is unknown, what is still there, what scanners found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from agentsignals.model import Session
from agentsignals.store import Store, sidecars
from agentsignals.store.tables import CommitRow, FindingRow, LineRow, ScanRow
from agentsignals.ui.pages.code import FEWEST_TOUCHES, OWNERS
from agentsignals.ui.server import Server
from tests.build import START, call, session, user
from tests.questions.stores import store_of
from tests.ui.served import EVIL, Elements, ask, page, serving

REPOS = {"/r": "fine", EVIL: EVIL}
"""Repositories, and the subject of their commits."""
TAGS = {"agent_exact": 5, "agent_ws": 1, "agent_shell": 1, "human_observed": 1, "unknown": 4, "moved": 2}


def _edited(lines: list[int]) -> Session:
    """A session whose calls change a file at these lines."""
    edits = [call("Edit", path="src/app.py", old_string=f"line {n}", new_string=f"row {n}") for n in lines]
    made = session(user("change it"), *edits, session_id="s0", cwd="/r")
    for edit, line in zip(made.edits, lines, strict=True):
        edit.start_line = line
    return made


def _commit(repo: str, sha: str, subject: str, **figures: object) -> CommitRow:
    made = CommitRow(
        repo=repo, commit_sha=sha, parent_sha=None, authored_at=START, committed_at=START, author=subject,
        subject=subject, is_merge=False, checkpoint_ids=[], relation="original", session_ids=["s0"],
    )  # fmt: skip
    for name, value in figures.items():
        setattr(made, name, value)
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("code") / "store"
    store_of(folder, _edited([1, 5, 20, 21, 22]))
    for repo, subject in REPOS.items():
        figures = {**TAGS, "added": sum(TAGS.values()), "mode": "vibe", "agent_low": 0.5, "agent_high": 0.9}
        bare = _commit(repo, "c1", subject, relation=None)
        sidecars.write_repository_rows(folder, repo, "commits", [_commit(repo, "c0", subject, **figures), bare])
        tags = [tag for tag, n in TAGS.items() for _ in range(n)]
        lines = [
            LineRow(
                repo=repo,
                commit_sha="c0",
                path=f"{subject}.py",
                line=n + 1,
                tag=tag,
                session_id="s0" if tag.startswith("agent_e") else None,
                seq=1 if tag.startswith("agent_e") else None,
                is_blank=False,
                alive=n % 2 == 0,
            )
            for n, tag in enumerate(tags)
        ]
        sidecars.write_repository_rows(folder, repo, "line_attribution", lines)
        sidecars.write_repository_rows(
            folder, repo, "weaknesses", [_weakness(repo, owner) for owner in ("agent", "unknown")]
        )
        scan = ScanRow(repo=repo, commit_sha="c0", scanner="rules", scanner_version="1", place="code",
                       files=3, skipped=1,
                       agent_lines=5, shell_lines=1, human_lines=1, unknown_lines=4, nobody_lines=2)  # fmt: skip
        sidecars.write_repository_rows(folder, repo, "scans", [scan])
    return Store(folder)


def _weakness(repo: str, owner: str) -> FindingRow:
    return FindingRow(
        repo=repo, commit_sha="c0", scanner="rules", scanner_version="1", change="introduced", rule=f"py-eval-{owner}",
        cwe=["CWE-95"], severity="high", confidence="low", path=f"{REPOS[repo]}.py", line=3, end_line=3,
        moved_from=None,
        place="code", owner=owner, tag=None, session_id="s0" if owner == "agent" else None, fingerprint=owner,
        text=f"eval({REPOS[repo]})", message="eval of a text",
    )  # fmt: skip


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Server]:
    with serving(store) as running:
        yield running


def _said(text: str) -> str:
    return " ".join(Elements(text).said.split())


def test_that_it_has_no_filter_of_sessions_is_said_where_one_came_along(server: Server) -> None:
    note = "ignores the session filter"
    assert note in page(server, "/code?agent=codex") and note not in page(server, "/code?context=product")


def test_the_unknown_share_stands_beside_every_bar(server: Server) -> None:
    told = page(server, "/code")
    bars = told.count('<svg class="owners"')
    assert bars >= 5 and len(re.findall(r"unknown (28\.6%|0%)", told)) >= bars
    assert "2 of 4 commits are linked to sessions. They added 28 lines" in _said(told)


def test_lines_are_counted_by_owner_and_by_what_is_still_there(server: Server) -> None:
    told = _said(page(server, "/code?repo=%2Fr"))
    assert "agents 50.0%" in told and "people 7.1%" in told and "50.0% to 90.0%" in told
    assert "unknown 4 50.0%" in told, "of four lines of nobody known two are still there"
    assert sum(len(owner.tags) for owner in OWNERS) == 9


def test_findings_say_whose_lines_and_how_many_nobody_knows(server: Server) -> None:
    told = _said(page(server, "/code?repo=%2Fr"))
    assert "2 findings, 1 on lines with an unknown author" in told
    assert "rules scanned 3 files of 1 commit and skipped 1" in told and "not confirmed weaknesses" in told


def test_a_commit_shows_its_files_and_leads_to_the_calls(server: Server) -> None:
    told = page(server, "/code/%2Fr/c0")
    assert "fine.py" in told and "2 findings introduced here" in _said(told)
    [link] = {link for link in Elements(told).all_of("href") if link.startswith("/session/s0?at=")}
    assert ask(server, link.partition("#")[0]).status == 200
    assert "not linked to a session" in page(server, "/code/%2Fr/c1")


def test_places_that_few_calls_changed_are_left_out(server: Server, tmp_path: Path) -> None:
    """Of five changes three lie within the first twenty lines."""
    told = _said(page(server, "/code"))
    assert "src/app.py /r 1–20 3 1" in told and "21–40" not in told
    assert "src/app.py" in page(server, "/code?repo=%2Fr"), "its commits are linked to the session"
    with serving(store_of(tmp_path / "store", _edited([1, 5, 21, 25][: 2 * (FEWEST_TOUCHES - 1)]))) as running:
        told = _said(page(running, "/code"))
        assert "No block of lines was changed by three" in told and "No repository is attributed yet" in told


def test_places_that_attempts_of_eval_runs_changed_stand_apart(tmp_path: Path) -> None:
    people, attempt = _edited([1, 5, 20]), _edited([41, 42, 43, 44])
    attempt.session_id, attempt.context, attempt.artifact_id = "attempt", "eval", "a2"
    with serving(store_of(tmp_path / "store", people, attempt)) as running:
        assert "1–20 3 1" in (told := _said(page(running, "/code"))) and "41–60" not in told
        assert "41–60 4 1" in (told := _said(page(running, "/code?context=eval"))) and "1–20" not in told


def test_hostile_repositories_stay_text_and_every_link_opens(server: Server) -> None:
    for path in ("/code", f"/code?repo={quote(EVIL)}", f"/code/{quote(EVIL, safe='')}/c0"):
        told = page(server, path)
        assert "<script>window" not in told and "<img src=x" not in told
        assert "window.pwned" in Elements(told).said
        for link in dict.fromkeys(link for link in Elements(told).all_of("href") if link.startswith("/code")):
            assert ask(server, link.partition("#")[0]).status == 200, link
    for path in ("/code/nowhere/c0", f"/code/{quote(EVIL, safe='')}/{quote(EVIL, safe='')}"):
        got = ask(server, path)
        assert got.status == 404 and "<script>window" not in got.text
