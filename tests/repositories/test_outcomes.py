"""What `attribute` makes known of single sessions: was their work committed, taken back, worked on again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsignals.changes.worktrees import LinesCommitted, read
from agentsignals.cli import main
from agentsignals.ingest import pipeline
from agentsignals.ingest.collection import attribute_repository
from agentsignals.ingest.measure import explain
from agentsignals.model import Label
from agentsignals.repositories.outcomes import spans
from agentsignals.store import Store
from tests.quick import some
from tests.repositories.story import Agent, Story, block

APPLIED, REVERTED, OUTCOME = "user.output_applied", "user.changes_reverted", "user.session_outcome"
REGION = "user.prior_sessions_same_region"
HOUR = 3600


def begun(folder: Path) -> Story:
    story = Story(folder)
    story.human("app.py", block("old", 20))
    story.human("other.py", block("other", 4))
    story.commit("base")
    return story


def worked(story: Story, name: str = "worker", path: str = "new.py") -> Agent:
    """A session that writes ten lines into a file of its own."""
    with story.agent(name) as a:
        a.write(path, block(name, 10))
    return a


def measured(story: Story, *unrecorded: Agent) -> Store:
    """The store after `attribute`. Transcripts of the unrecorded lie in a folder; checkpoints know nothing of them."""
    folder = story.folder / "traces"
    folder.mkdir(exist_ok=True)
    for one in unrecorded:
        (folder / f"{one.log.session}.jsonl").write_bytes(one.log.data())
    if unrecorded:
        pipeline.analyze([str(folder)], story.folder / "store", jobs=1)
    story.attributed()
    return Store(story.folder / "store")


def of(store: Store, agent: Agent, path: str) -> tuple[Any, dict[str, Any]]:
    """A session's value and detail; of an absent one the reason and no detail."""
    ((value, absent, why, detail),) = store.sql(
        f"SELECT value, absent, absent_detail, detail FROM signals WHERE signal = '{path}'"
        f" AND session_id = '{agent.log.session}'"
    ).fetchall()
    return (json.loads(value), json.loads(detail or "{}")) if absent is None else (f"{absent}: {why}", {})


@pytest.mark.slow
def test_lines_that_a_person_commits_without_a_checkpoint_are_applied(tmp_path: Path) -> None:
    story = begun(tmp_path)
    a = worked(story)
    story.human("new.py", "# by hand\n" + story.text("new.py"))
    sha = story.commit("by hand")
    b = worked(story, "linked", "linked.py")
    story.commit("linked", b)
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(a.log.data())
    before = pipeline.analyze([str(folder)], tmp_path / "store", jobs=1)
    assert before.sessions == 1
    assert of(Store(tmp_path / "store"), a, APPLIED)[0] == "missing_artifact: git"
    assert of(Store(tmp_path / "store"), a, "user.lines_committed")[0] == "missing_artifact: git_attribution"
    story.attributed()
    store = Store(tmp_path / "store")
    assert of(store, a, APPLIED) == (True, {"method": "git", "lines": 10, "produced": 10, "commits": 1})
    assert of(store, a, OUTCOME)[1]["evidence_kind"] == "git"
    told = explain(store, a.log.session, APPLIED)
    assert f"commit {sha[:12]} has 10 of its lines: new.py 2-11" in told.rule
    assert [i.line for i in told.evidence if i.role == "support"]
    assert of(store, a, "user.lines_committed")[0]["commits"][0]["files"] == {"new.py": "2-11"}


@pytest.mark.slow
def test_a_commit_counts_until_half_an_hour_after_the_session_or_when_it_is_linked(tmp_path: Path) -> None:
    for pause, is_linked, expected in ((HOUR / 3, False, True), (2 * HOUR, False, False), (2 * HOUR, True, True)):
        story = begun(tmp_path / f"{pause}{is_linked}")
        a = worked(story)
        story.wait(pause)
        story.commit("committed", *([a] if is_linked else []))
        b = worked(story, "second", "second.py")
        story.commit("second", b)
        value, detail = of(measured(story, *([] if is_linked else [a])), a, APPLIED)
        assert (value, detail.get("late_lines", 0)) == (expected, 0 if expected else 10), pause


def test_blank_lines_are_no_lines_of_a_session(tmp_path: Path) -> None:
    story = begun(tmp_path)
    with story.agent("airy") as a:
        a.write("new.py", block("one", 3) + "\n\n" + block("two", 2))
    story.commit("airy", a)
    found = of(measured(story), a, "user.lines_committed")[0]
    assert (found["lines"], found["produced"], found["commits"][0]["files"]) == (5, 7, {"new.py": "1-3, 6-7"})


def test_of_an_edit_whose_place_is_not_found_nothing_is_known(tmp_path: Path) -> None:
    story = begun(tmp_path)
    with story.agent("lost") as a:
        a._now()
        a.log.ran(
            "Edit", file_path=str(story.root / "app.py"), old_string="never was there", new_string=block("lost", 6)
        )
        a._then()
    story.human("other.py", story.text("other.py") + block("own", 2))
    story.commit("by hand", a)
    story.wait(HOUR)
    story.human("other.py", story.text("other.py") + block("more", 2))
    story.commit("later")
    found = of(measured(story), a, "user.lines_committed")[0]
    assert (found["verdict"], found["produced"]) == ("unknown", 6)


@pytest.mark.slow
def test_without_any_later_sign_of_the_repository_nobody_knows_yet(tmp_path: Path) -> None:
    story = begun(tmp_path)
    b = worked(story, "linked", "linked.py")
    story.commit("linked", b)
    a = worked(story)
    assert of(measured(story, a), a, APPLIED)[0] == "censored: repository_ends_before_close"


@pytest.mark.slow
def test_a_session_whose_commit_is_not_in_the_clone_is_not_called_unapplied(tmp_path: Path) -> None:
    story = begun(tmp_path)
    story.git("switch", "-c", "gone")
    a = worked(story)
    story.commit("on a branch", a)
    story.git("switch", "main")
    story.git("branch", "-D", "gone")
    story.wait(HOUR)
    b = worked(story, "second", "second.py")
    story.commit("second", b)
    store = measured(story)
    assert of(store, a, "user.lines_committed")[0]["verdict"] == "unknown"
    assert of(store, a, APPLIED)[0] == "missing_artifact: git"


@pytest.mark.slow
def test_lines_are_followed_through_commits_to_the_sessions_that_worked_there_before(tmp_path: Path) -> None:
    story = begun(tmp_path)
    with story.agent("first") as a:
        a.edit("app.py", "old_9 = ", block("first", 4) + "old_9 = ")
    story.commit("first", a)
    story.human("app.py", block("above", 30) + story.text("app.py"))
    story.commit("by hand")
    beside, far, text = (story.agent(name) for name in ("beside", "far", "other file"))
    for agent, path, old in (
        (beside, "app.py", "old_10 = "),
        (far, "app.py", "above_3 = "),
        (text, "other.py", "other_1 = "),
    ):
        with agent:
            agent.edit(path, old, block(agent.log.base["sessionId"][:4] + "x", 1) + old)
    story.commit("the others", beside, far, text)
    store = measured(story)
    assert [of(store, agent, REGION)[0] for agent in (a, beside, far, text)] == [0, 1, 0, 0]
    assert of(store, beside, REGION)[1] == {
        "method": "lines", "by_lines": 1, "by_content": 0, "sessions": [a.log.session],
    }  # fmt: skip
    assert of(store, beside, "user.earlier_sessions_on_lines")[0] == {a.log.session: ["app.py"]}
    assert (
        f"session {a.log.session} wrote the lines there, or beside, in app.py"
        in explain(store, beside.log.session, REGION).rule
    )


@pytest.mark.slow
def test_a_session_known_by_its_lines_and_by_their_text_counts_once(tmp_path: Path) -> None:
    story = begun(tmp_path)
    a, b = story.agent("first"), story.agent("second")
    with a:
        a.edit("app.py", "old_9 = ", block("first", 4) + "old_9 = ")
    story.commit("first", a)
    with b:
        b.edit("app.py", "first_1 = compute('first', 1)\n", "first_1 = better('first', 1)\n")
    story.commit("second", b)
    value, detail = of(measured(story), b, REGION)
    assert (value, detail["by_lines"], detail["by_content"]) == (1, 1, 1)


@pytest.mark.slow
def test_a_session_that_began_later_is_not_before_it(tmp_path: Path) -> None:
    story = begun(tmp_path)
    a, b = story.agent("long"), story.agent("short")
    with a:
        a.edit("other.py", "other_1 = ", block("elsewhere", 2) + "other_1 = ")
        with b:
            b.edit("app.py", "old_9 = ", block("short", 4) + "old_9 = ")
        a.edit("app.py", "short_2 = ", block("long", 2) + "short_2 = ")
    story.commit("both", a, b)
    store = measured(story)
    assert [of(store, one, REGION)[0] for one in (a, b)] == [0, 0]


@pytest.mark.slow
def test_the_catalogue_says_computed_where_the_store_has_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = begun(tmp_path)
    story.commit("work", worked(story))
    story.publish()
    paths = {APPLIED, REVERTED, "user.lines_committed", "user.earlier_sessions_on_lines", "chat.code_survival_rate"}

    def statuses() -> set[str]:
        assert main(["inventory", "--json", "--store", str(tmp_path / "store")]) == 0
        return {row["status"] for row in json.loads(capsys.readouterr().out) if row["path"] in paths}

    assert statuses() == {"needs a repository"}
    attribute_repository(str(story.root), tmp_path / "store", jobs=1)
    assert statuses() == {"computed"}


EVIDENCE = '{"kind":"lines_committed","verdict":"applied","lines":1,"late_lines":0,"produced":1,"n_commits":0}'


@pytest.mark.parametrize(
    ("labeller", "detail", "is_evidence"),
    [
        ("attribution", EVIDENCE, True),
        ("somebody", EVIDENCE, False),  # came with a trace
        *(("attribution", x, False) for x in (None, "", "{", "[]", '{"kind":"lines_taken_back"}', "[" * 4_000)),
    ],
)
def test_only_evidence_that_attribution_left_counts(labeller: str, detail: str | None, is_evidence: bool) -> None:
    label = Label(task="lines_committed", labeller=labeller, turn=None, value="x", detail=detail)
    assert (read([label], LinesCommitted) is not None) is is_evidence


def test_line_numbers_are_told_as_spans() -> None:
    assert spans([1]) == "1"
    assert spans([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def took_back(story: Story) -> Agent:
    with story.agent("refused") as a:
        a.edit("app.py", "old_9 = ", block("unwanted", 10) + "old_9 = ")
    story.human("app.py", story.text("app.py").replace(block("unwanted", 10), ""))
    story.human("other.py", story.text("other.py") + block("own", 3))
    story.human("app.py", story.text("app.py") + block("after", 2))
    story.commit("by hand", a)
    return a


def took_back_a_part(story: Story) -> Agent:
    with story.agent("in part") as a:
        a.edit("app.py", "old_9 = ", block("wanted", 5) + block("unwanted", 5) + "old_9 = ")
    story.human("app.py", story.text("app.py").replace(block("unwanted", 5), ""))
    story.commit("by hand", a)
    return a


def took_back_what_was_left(story: Story) -> Agent:
    with story.agent("half itself") as a:
        a.edit("app.py", "old_9 = ", block("own", 5) + block("unwanted", 5) + "old_9 = ")
        a.edit("app.py", block("own", 5), "")
    story.human("app.py", story.text("app.py").replace(block("unwanted", 5), ""))
    story.human("app.py", story.text("app.py") + block("after", 2))
    story.commit("by hand", a)
    return a


def reverted_after_other_work(story: Story) -> Agent:
    with story.agent("reverted") as a:
        a.edit("app.py", "old_2 = ", block("work", 10) + "old_2 = ")
    sha = story.commit("work", a)
    story.human("app.py", story.text("app.py") + block("after", 5))
    story.commit("in between")
    story.git("revert", "--no-edit", sha)
    return a


def reverted(story: Story, pause: float = 60) -> Agent:
    a = worked(story)
    sha = story.commit("work", a)
    story.wait(pause)
    story.git("revert", "--no-edit", sha)
    return a


def reverted_much_later(story: Story) -> Agent:
    return reverted(story, 2 * HOUR)


def reverted_and_brought_back(story: Story) -> Agent:
    a = reverted(story)
    story.wait(60)
    story.git("revert", "--no-edit", "HEAD")
    return a


def undone_without_saying_so(story: Story) -> Agent:
    a = worked(story)
    story.commit("work", a)
    (story.root / "new.py").unlink()
    story.commit("cleaning")
    return a


def undone_by_the_agent_itself(story: Story) -> Agent:
    with story.agent("changes its mind") as a:
        before = story.text("app.py")
        a.write("app.py", before + block("first", 10))
        story.commit("first", a)
        a.write("app.py", before)
    story.commit("second", a)
    return a


def formatted(story: Story) -> Agent:
    with story.agent("formatted") as a:
        a.write("new.py", "".join(f"value_{k} = call_it(first_{k}, second_{k})\n" for k in range(12)))
        broken = "".join(f"value_{k} = call_it(\n    first_{k},\n    second_{k},\n)\n" for k in range(12))
        a.bash("ruff format new.py", {"new.py": broken})
    story.commit("formatted", a)
    return a


def rewritten_by_a_command(story: Story) -> Agent:
    a = worked(story)
    with a:
        a.bash("./rewrite", {"new.py": block("generated", 10)})
    story.commit("rewritten", a)
    return a


def removed_by_a_person(story: Story, *commands: str) -> Agent:
    with story.agent("removed") as a:
        a.edit("other.py", "other_1 = ", block("unwanted", 10) + "other_1 = ")
        for command in commands:
            a.bash(command)
    (story.root / "other.py").unlink()
    story.human("app.py", story.text("app.py") + block("own", 2))
    story.commit("removed", a)
    return a


def removed_by_a_command(story: Story) -> Agent:
    return removed_by_a_person(story, "make clean")


def replaced_by_another_session(story: Story) -> Agent:
    a = worked(story)
    with story.agent("rewrites") as b:
        b.write("new.py", block("rewritten", 10))
    story.commit("of both", a, b)
    return a


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tell", "value", "share"),
    some(
        [
            (took_back, True, 1.0),
            (took_back_a_part, False, 0.5),
            (took_back_what_was_left, True, 1.0),
            (reverted, True, 1.0),
            (reverted_after_other_work, True, 1.0),
            (reverted_much_later, False, 0.0),
            (reverted_and_brought_back, False, 0.0),
            (undone_without_saying_so, True, 1.0),
            (undone_by_the_agent_itself, False, 0.0),
            (formatted, False, 0.0),
            (rewritten_by_a_command, "missing_artifact: git_or_snapshots", None),
            (removed_by_a_person, True, 1.0),
            (removed_by_a_command, "missing_artifact: git_or_snapshots", None),
            (replaced_by_another_session, False, 0.0),
        ],
        3,
    ),
)
def test_what_counts_as_taken_back(
    tell: Callable[[Story], Agent], value: Any, share: float | None, tmp_path: Path
) -> None:
    story = begun(tmp_path)
    agent = tell(story)
    found, detail = of(measured(story), agent, REVERTED)
    assert (found, detail.get("share")) == (value, share)


@pytest.mark.slow
def test_a_revert_is_explained_by_its_commit_and_a_late_one_only_told_of(tmp_path: Path) -> None:
    for pause, verb in ((60, "undoes"), (2 * HOUR, "reverts")):
        story = begun(tmp_path / verb)
        agent = reverted(story, pause)
        store = measured(story)
        sha = story.git("rev-parse", "HEAD")
        assert (
            f"commit {sha[:12]} {verb} a commit of the session"
            in explain(store, agent.log.session, "user.lines_taken_back").rule
        )
        assert of(store, agent, REVERTED)[1].get("reverted_later_by", []) == ([sha] if verb == "reverts" else [])


def test_work_that_was_taken_back_before_any_commit_is_rejected(tmp_path: Path) -> None:
    story = begun(tmp_path)
    agent = took_back(story)
    story.wait(2 * HOUR)
    story.human("other.py", block("much later", 3))
    story.commit("later")
    store = measured(story)
    assert of(store, agent, APPLIED)[0] is False
    assert of(store, agent, OUTCOME)[0] == "explicitly_rejected"
    assert of(store, agent, OUTCOME)[1]["evidence_kind"] == "git"
