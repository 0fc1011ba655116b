"""What of a session's lines counts as taken back, and what not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest.measure import explain
from tests.quick import some
from tests.repositories.story import Agent, Story, block
from tests.repositories.test_outcomes import APPLIED, HOUR, OUTCOME, REVERTED, begun, measured, of, worked


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
