"""What a receipt says of a commit, planted; and how a command line names its checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.errors import SourceError
from agentsignals.ingest.collection import repository_receipt
from agentsignals.repositories.receipt import Receipt
from agentsignals.shell.commands import checks, keeps_exit_code
from tests.repositories.story import Agent, Story, block
from tests.verbs import printed


@pytest.mark.parametrize(
    ("command", "names", "tells"),
    [
        ("pytest -q tests/test_x.py", ["pytest"], True),
        ("cd app && uv run pytest -x 2>&1", ["pytest"], True),
        ("npm run test:unit -- --watch=false", ["npm run test:unit"], True),
        ("bun run lint 2>&1 | tail -5", ["bun run lint"], False),
        ("ruff check src && mypy -p app", ["ruff check", "mypy"], True),
        ("make test || true", ["make test"], False),
        ("cargo test; echo done", ["cargo test"], False),
        ("pytest -k 'a | b; c'", ["pytest"], True),
        ("python -m unittest discover &", ["unittest discover"], False),
        ("./scripts/run-tests.sh", ["run-tests.sh"], True),
        ("git status && ls", [], True),
        ("echo pytest", [], True),
        ("bash -lc 'cd app && pytest -q'", ["pytest"], True),
    ],
)
def test_a_line_names_its_checks_and_whether_its_end_is_theirs(command: str, names: list[str], tells: bool) -> None:
    assert [check.name for check in checks(command)] == names
    assert keeps_exit_code(command) is tells


@pytest.mark.parametrize(
    ("command", "is_part"),
    [("pytest -q", False), ("pytest tests/test_a.py", True), ("pytest tests -k new", True), ("go test ./...", False),
     ("pytest tests/test_a.py::test_b", True), ("bun test --filter x", True), ("npm run test:unit", False)],
)  # fmt: skip
def test_a_run_of_some_files_or_tests_alone_is_a_part(command: str, is_part: bool) -> None:
    assert [check.is_part for check in checks(command)] == [is_part]


def failing(agent: Agent, command: str) -> None:
    agent._now()
    agent.log.ran("Bash", "Exit code 1\nnot so", error=True, command=command)
    agent._then()


def planted(story: Story) -> str:
    """A commit with everything a receipt speaks of."""
    story.human("app.py", block("old", 10))
    story.human("notes.md", "what it is about, in words\n")
    story.commit("base")
    before = story.agent("before")
    before.prompt()
    before.write("first.py", block("first", 4))
    before.bash("ruff check .")
    before.commit("first")
    with story.agent("work") as agent:
        agent._now()
        agent.log.ran("Read", "1\twhat it is about", file_path=str(story.root / "notes.md"))
        agent._then()
        agent.bash("pytest -q")
        agent.bash("mypy -p app | tail -1")
        agent.edit("app.py", "old_3 = ", block("new", 6) + "old_3 = ")
        failing(agent, "npm run build")
        failing(agent, "python migrate.py")
        failing(agent, "node once.js")
        agent.bash("node once.js")
        agent.write("scratch.py", block("scratch", 3))
    story.human("typed.py", block("typed", 4))
    (story.root / "scratch.py").unlink()
    sha = story.commit("the work", agent)
    agent.prompt("after the commit")
    return sha


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, str]:
    story = Story(tmp_path_factory.mktemp("receipt"))
    sha = planted(story)
    story.publish()
    return story, sha


def made(story: Story, revision: str) -> Receipt:
    return repository_receipt(str(story.root), revision, story.folder / "store", jobs=1)


@pytest.mark.slow
def test_a_receipt_says_what_ran_what_changed_after_and_what_did_not_run(story: tuple[Story, str]) -> None:
    page = made(story[0], story[1][:12])
    assert page.commits == [story[1]]
    ran = {run.name: (run.kind, run.result, run.edits_after, run.files_after) for run in page.checks}
    assert ran == {
        "pytest": ("test", "passed", 1, ["app.py"]),
        "mypy": ("build", "hidden", 1, ["app.py"]),
        "npm run build": ("build", "failed", 0, []),
    }
    assert page.not_run == ["ruff check"]
    assert page.kinds_not_run == []
    assert [f.command for f in page.failed] == ["npm run build", "python migrate.py"], "what went well later is mended"
    assert page.read_not_changed == ["notes.md"]
    assert page.changed_not_committed == ["scratch.py"]
    assert page.committed_not_changed == ["typed.py"]
    assert (page.owners.agent, page.owners.person, page.owners.unknown) == (6, 0, 4), "commands ran"
    assert (page.owners.low, page.owners.high) == (0.6, 1.0)
    assert page.weaknesses is None
    (session,) = page.sessions
    assert (session.prompts, session.other_commits) == (1, 0)
    assert (page.sessions_priced, page.cost_usd, page.cost_at_least) == (1, 0.00965, True), "logged in mid-stream"


@pytest.mark.slow
def test_revisions_name_commits(story: tuple[Story, str]) -> None:
    first = story[0].git("rev-parse", "HEAD~2")
    assert made(story[0], f"{first[:9]}..HEAD").commits == [story[0].git("rev-parse", "HEAD~1"), story[1]]
    assert made(story[0], "main").commits == [story[1]]
    for wrong in ("--help", "nowhere", "HEAD..", "a..b", "\0"):
        with pytest.raises(SourceError):
            made(story[0], wrong)


@pytest.mark.slow
def test_a_branch_is_held_against_the_default_branch_whatever_is_checked_out(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(3)
    story.git("switch", "-q", "-c", "feature")
    made_here = []
    for name in ("a", "b"):
        with story.agent(name) as agent:
            agent.write(f"{name}.py", block(name, 3))
        made_here.append(story.commit(name, agent))
    story.publish()
    assert made(story, "feature").commits == made_here
    assert made(story, "HEAD").commits == made_here[1:]


@pytest.mark.slow
def test_a_scan_that_found_nothing_is_a_scan(tmp_path: Path) -> None:
    story = Story(tmp_path)
    shas = []
    for name in ("safe.py", "words.txt"):
        with story.agent(name) as agent:
            agent.write(name, block("some", 3))
        shas.append(story.commit(name, agent))
    story.publish()
    assert main(["scan", str(story.root), "--store", str(story.folder / "store"), "--quiet"]) == 0
    assert [(page.weaknesses, page.commits_scanned) for page in (made(story, sha) for sha in shas)] == [
        ([], 1),
        (None, 0),
    ]


def test_five_commits_are_named_and_the_others_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(tmp_path).begun(1)
    for n in range(6):
        story.human("app.py", block(f"n{n}", 1))
        story.commit(f"change {n}")
    for since, more in (("HEAD~5", ""), ("HEAD~6", "and 1 more commits")):
        told = printed(capsys, "receipt", story.root, f"{since}..HEAD", "--store", tmp_path / "s", "--quiet")
        assert told.count("change ") == 5 and more in told and ("more commits" in told) is bool(more)


@pytest.mark.slow
def test_a_commit_without_a_session_says_so_and_nothing_else(
    story: tuple[Story, str], capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--store", str(story[0].folder / "store"), "--quiet"]
    text = printed(capsys, "receipt", story[0].root, "HEAD~2", *place)
    assert "The store has no transcript of these commits" in text
    assert "Checks" not in text
    page = printed(capsys, "receipt", story[0].root, "HEAD", "--markdown", *place)
    assert "Not run since the last change: pytest, mypy." in page
    assert "| pytest | 1 | passed |" in page
