"""What kind of software a repository is: asked once of each, of what sessions tell, and true of all its sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.ingest import pipeline
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.run import estimate, run
from agentsignals.labels.tasks import task
from agentsignals.labels.units import Selection
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from tests.build import Part, call, say, session, user
from tests.labels.server import Server, material, section
from tests.labels.stores import judge
from tests.questions.stores import store_of

SHOP = "/home/jo/shop"


@pytest.fixture
def server(server: Server) -> Server:
    server.answers = lambda body: answer("library" if "parser" in material(body) else "application")
    return server


def answer(domain: str) -> str:
    return json.dumps({"domain": domain, "audience": "developer", "reason": "its README says so"})


def said(store: Store) -> dict[str, str]:
    return {r.session_id: r.label.value for r in sidecars.labels_of(store.folder, "repo_domain", "openai:tiny")}


def shown(tmp_path: Path, server: Server, *sessions: tuple[Part, ...]) -> str:
    """What is shown of a repository with these sessions."""
    made = [session(*parts, session_id=f"s{n}", cwd=SHOP) for n, parts in enumerate(sessions)]
    judge(store_of(tmp_path / "s", *made), server, "repo_domain")
    assert len(server.requests) == 1
    return material(server.requests[0])


def test_a_repository_is_asked_about_once_and_its_label_is_every_sessions(tmp_path: Path, server: Server) -> None:
    made = [session(user(f"order {n}"), say("ok"), session_id=f"a{n}", cwd=SHOP) for n in range(3)]
    made += [session(user("the parser"), say("ok"), session_id="b", cwd="/home/jo/parser")]
    store = store_of(tmp_path / "s", *made)
    summary = judge(store, server, "repo_domain")
    assert said(store) == {"a0": "application", "a1": "application", "a2": "application", "b": "library"}
    assert (summary.calls, summary.labelled, summary.sessions) == (2, 4, 4)
    pipeline.measure(store.folder)
    found = rows(Store(store.folder), "SELECT value FROM signals WHERE signal = 'chat.repo_domain' ORDER BY session_id")
    assert [json.loads(value) for (value,) in found[1]] == ["application"] * 3 + ["library"]
    (row, *_) = sidecars.labels_of(store.folder, "repo_domain", "openai:tiny")
    assert json.loads(row.label.detail or "") == {"audience": "developer"}
    assert judge(store, server, "repo_domain").calls == 0, "what is known is not asked again"


def test_folders_of_one_repository_are_one(tmp_path: Path, server: Server) -> None:
    said_here = (user("order"), say("ok"))
    store = store_of(
        tmp_path / "s",
        session(*said_here, session_id="named", cwd=SHOP, repo="Jo/Shop"),
        session(*said_here, session_id="unnamed", cwd=SHOP),
        session(*said_here, session_id="elsewhere", cwd="/srv/shop", repo="jo/shop"),
        session(*said_here, session_id="other", cwd="/srv/other"),
        session(*said_here, session_id="worktree", cwd="/srv/other/.worktrees/fix"),
    )
    assert judge(store, server, "repo_domain").calls == 2
    assert len(said(store)) == 5
    assert {section(material(body), "name") for body in server.requests} == {"jo/shop", "/srv/other"}


def test_a_session_of_no_known_place_is_not_asked_about(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path / "s", session(user("hi"), say("ok"), session_id="lost"))
    summary = judge(store, server, "repo_domain")
    assert summary.not_asked == {"no_repository": 1} and not server.requests and said(store) == {}


def test_eval_runs_are_not_asked_about(tmp_path: Path, server: Server) -> None:
    one = session(user("hi"), say("ok"), session_id="e", cwd=SHOP)
    one.context = "eval"
    summary = judge(store_of(tmp_path / "s", one), server, "repo_domain")
    assert set(summary.not_asked) == {"eval_session"} and not server.requests


def test_it_is_shown_the_description_nearest_to_the_root_that_was_read_furthest(tmp_path: Path, server: Server) -> None:
    told = shown(
        tmp_path,
        server,
        (user("look"), call("Read", path="docs/README.md", result="about the documents, at length, " * 9)),
        (user("look"), call("Read", path="README.md", result="# Shop")),
        (user("look"), call("Read", path="README.md", result="# Shop\nSells hats.")),
        (user("look"), call("Read", path="README.md", result="No such file, at all, at all", status="error")),
        (user("look"), call("Edit", path="README.md", result="# Edited, which shows a part of it, only a part")),
        (user("look"), call("Read", path="package.json", result='{"name": "hats"}')),
    )
    assert section(told, "README") == "# Shop\nSells hats."
    assert section(told, "manifest") == '{"name": "hats"}'
    assert "documents" not in told and "No such file" not in told and "Edited" not in told


def test_it_is_shown_the_first_requests_and_the_kinds_of_files(tmp_path: Path, server: Server) -> None:
    look = [call("Read", path=f"src/{n}.py") for n in range(3)] + [call("Edit", path="a.ts"), call("Read", path="run")]
    many = [(user(f"request {n}"), *(look if not n else ()), say("ok"), user("later")) for n in range(11)]
    told = shown(tmp_path, server, *many)
    assert section(told, "kinds-of-files") == "py, ts"
    assert [line for line in told.splitlines() if line.startswith("- ")] == [
        f"- request {n}" for n in (0, 1, 10, 2, 3, 4, 5, 6)
    ], "by time, here all the same, then by id"
    assert "later" not in told


def test_a_repository_of_which_nothing_is_known_is_still_named(tmp_path: Path, server: Server) -> None:
    assert section(shown(tmp_path, server, (say("hello"),)), "name") == SHOP


def test_long_documents_are_shortened_and_say_so(tmp_path: Path, server: Server) -> None:
    told = shown(tmp_path, server, (user("x" * 900), call("Read", path="README.md", result="y" * 60_000)))
    assert "y" * 500 in told and "600 characters left out" in told and len(told) < 3_000


def test_what_leaves_is_masked(tmp_path: Path, server: Server) -> None:
    parts = (user("mail jo@example.org"), call("Read", path="README.md", result="ask ann@example.org"))
    store = store_of(tmp_path / "s", session(*parts, session_id="a", cwd="/home/josephine/shop"))
    summary = judge(store, server, "repo_domain", Selection(redact=True))
    told = material(server.requests[0])
    assert "example.org" not in told and "josephine" not in told and sum(summary.redacted.values()) == 3


def test_a_limit_is_of_repositories_and_an_estimate_counts_them(tmp_path: Path, server: Server) -> None:
    made = [
        session(user("hi"), say("ok"), session_id=f"{place}{n}", cwd=f"/srv/{place}") for place in "abc" for n in (0, 1)
    ]
    store = store_of(tmp_path / "s", *made)
    by = ChatServer(f"tiny@{server.url}")
    found = estimate(store, task("repo_domain"), by, Selection(), 8_000)
    assert (found.units, found.calls, found.long) == (3, 3, 0) and not server.requests
    summary = judge(store, server, "repo_domain", Selection(limit=2))
    assert summary.calls == 2 and set(said(store)) == {"a0", "a1", "b0", "b1"}


def test_progress_ends_where_it_said_it_would(tmp_path: Path, server: Server) -> None:
    made = [session(user("hi"), say("ok"), session_id=f"s{n}", cwd=f"/srv/{n // 2}") for n in range(6)]
    store = store_of(tmp_path / "s", *made, session(user("hi"), say("ok"), session_id="lost"))
    steps: list[tuple[int, int | None]] = []
    by = ChatServer(f"tiny@{server.url}")
    run(store, task("repo_domain"), by, Selection(), lambda _, done, total, __: steps.append((done, total)))
    assert steps[-1] == (4, 4)
