"""Every cause of wrong attribution that the feasibility study counted (design/attribution.md#working-trees), with the
truth known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.quick import some
from tests.repositories.story import Story, block


def agent_commits_mid_turn(s: Story) -> None:
    s.begun(20)
    with s.agent("mid") as a:
        a.adds("app.py", "old_3", "first", 15)
        a.commit("first part")
        a.edit("app.py", "old_9 = ", s.are("agent", block("second", 15)) + "old_9 = ")
        a.write("more.py", s.are("agent", block("more", 10)))
        a.commit("second part")


def formatter(s: Story) -> None:
    s.begun(10)
    with s.agent("format") as a:
        long = "".join(f"value_{k} = call_it(first_{k}, second_{k}, third_{k})\n" for k in range(12))
        a.write("new.py", long + "def f():\n  return 'text'\n")
        broken = "".join(
            f"value_{k} = call_it(\n    first_{k},\n    second_{k},\n    third_{k},\n)\n" for k in range(12)
        )
        formatted = s.are("agent", broken + 'def f():\n    return "text"\n')
        a.bash("ruff format new.py", {"new.py": formatted})
    s.wait(120)
    s.commit("formatted", a)


def rebase(s: Story) -> None:
    s.begun(10)
    s.git("switch", "-c", "feature")
    with s.agent("rebase") as a:
        a.write("new.py", s.are("agent", block("new", 20)))
        a.adds("app.py", "old_2", "in_app", 5)
    s.wait(30)
    s.commit("feature", a)
    s.git("switch", "main")
    s.human("other.py", block("theirs", 10))
    s.human("app.py", s.text("app.py") + block("appended", 4))
    s.commit("meanwhile")
    s.git("switch", "feature")
    s.wait(3000)
    s.git("rebase", "--quiet", "main")


def moved_lines(s: Story) -> None:
    s.human("a.py", block("stay", 10) + block("wander", 12) + block("inner", 8) + block("end", 10))
    s.human("b.py", block("host", 5))
    s.commit("base")
    with s.agent("move") as a:
        a.adds("b.py", "host_2", "written", 10)
    s.human("a.py", block("stay", 10) + block("end", 10) + s.are("moved", block("inner", 8)))
    s.human("b.py", s.text("b.py") + s.are("moved", block("wander", 12)))
    s.commit("move", a)


def moved_before_the_first_commit(s: Story) -> None:
    s.human("a.py", block("a", 6))
    s.human("b.py", block("b", 6))
    s.commit("base")
    with s.agent("parted") as a:
        mine = s.are("agent", block("mine", 10))
        a.edit("a.py", "a_3 = ", mine + block("stays", 4) + "a_3 = ")
        s.are("agent", block("stays", 4))
        s.own["a_3 = compute('a', 3)"] = "preexisting"
    s.human("a.py", s.text("a.py").replace(mine, ""))
    s.human("b.py", s.text("b.py") + mine)
    s.human("c.py", s.are("human", block("own", 4)))
    s.commit("parted", a)


def duplicate_lines(s: Story) -> None:
    body = "".join(f"if (case_{k}) {{\n  run_{k}();\n}}\n\n" for k in range(8))
    s.human("app.js", body)
    s.commit("base")
    with s.agent("twice") as a:
        more = "if (case_new) {\n  run_new();\n}\n\n"
        a.edit("app.js", "if (case_4) {", more + "if (case_4) {")
        a.edit("app.js", "if (case_7) {", "if (case_more) {\n  run_more();\n}\n\nif (case_7) {")
        for k in range(4):
            a.edit("app.js", "if (case_2) {", f"if (extra_{k}) {{\n  run_extra_{k}();\n}}\n\nif (case_2) {{")
            s.are("agent", f"if (extra_{k}) {{\n  run_extra_{k}();\n")
        for line in ("if (case_new) {", "run_new();", "}", "if (case_more) {", "run_more();", ""):
            s.own[line] = "agent"
    s.wait(60)
    s.commit("twice", a)


def shell_edits(s: Story) -> None:
    s.human("conf.py", block("plain", 10) + "host = 'localhost'\n")
    s.human("script.py", block("kept", 6))
    s.commit("base")
    with s.agent("shell") as a:
        doc = s.are("agent", block("here", 12))
        a.bash(f"cat > made.py <<'EOF'\n{doc}EOF", {"made.py": doc})
        more = s.are("agent", block("appended", 4))
        a.bash(f"cat >> made.py << EOF\n{more}EOF\n", {"made.py": doc + more})
        s.own["host = 'example.org'"] = "agent"
        a.bash(
            "sed -i 's/localhost/example.org/' conf.py",
            {"conf.py": s.text("conf.py").replace("localhost", "example.org")},
        )
        s.own["host = 'example.org'"] = "agent"
        inner = s.are("agent", block("by_script", 6))
        script = f"python3 - <<'PY'\ntext = '''{inner}'''\nopen('script.py', 'a').write(text)\nPY"
        a.bash(script, {"script.py": s.text("script.py") + inner})
        made = s.are("agent", block("generated_by_tool", 10))
        a.bash("./generate > table.py", {"table.py": made})
        a.bash("npm install thing", {"package-lock.json": s.are("generated", block("lock", 10))})
        a.commit("by shell")


def parallel_worktrees(s: Story) -> None:
    s.begun(20)
    other = s.folder / "second"
    s.git("worktree", "add", "--quiet", "-b", "second", str(other))
    a, b = s.agent("one"), s.agent("two", at=other)
    with a:
        a.edit("app.py", "old_3 = ", s.are("agent", block("by_one", 12)) + "old_3 = ")
        b.prompt()
        b.adds("app.py", "old_3", "by_two", 12)
    b.say()
    s.human("app.py", s.text("app.py", other) + s.are("human", block("typed", 6)), other)
    s.commit("second", b, at=other)
    s.wait(60)
    s.commit("first", a)


def interleaved_human_edits(s: Story) -> None:
    s.begun(20)
    with s.agent("between") as a:
        a.adds("app.py", "old_3", "one", 10)
    s.human("app.py", s.text("app.py").replace("one_4 = compute('one', 4)\n", s.are("human", block("mine", 8))))
    s.human("notes.py", s.are("human", block("note", 7)))
    with a:
        a.adds("app.py", "old_15", "two", 10)
        a.edit(
            "app.py",
            "mine_2 = compute('mine', 2)\n",
            "mine_2 = compute('mine', 2)\n" + s.are("agent", block("within", 5)),
        )
    s.human("app.py", s.are("human", block("top", 5)) + s.text("app.py"))
    s.commit("together", a)


def renames(s: Story) -> None:
    s.human("pkg/before.py", block("old", 20))
    s.human("pkg/second.py", block("two", 20))
    s.commit("base")
    with s.agent("rename") as a:
        a.adds("pkg/before.py", "old_3", "early", 8)
        a.bash("git mv pkg/before.py pkg/after.py", {"pkg/after.py": s.text("pkg/before.py")})
        (s.root / "pkg/before.py").unlink()
        a.edit("pkg/after.py", "old_9 = ", s.are("agent", block("late", 8)) + "old_9 = ")
        a.edit("pkg/second.py", "two_9 = ", s.are("agent", block("kept", 8)) + "two_9 = ")
    text = s.text("pkg/second.py")
    (s.root / "pkg/second.py").unlink()
    s.human("pkg/renamed.py", text + s.are("human", block("typed", 4)))
    s.commit("renamed", a)


def carried_forward(s: Story) -> None:
    s.begun(10)
    with s.agent("carry") as a:
        a.write("first.py", s.are("agent", block("first", 10)))
        a.write("later.py", s.are("agent", block("later", 10)))
    s.wait(60)
    s.commit("first only", a, add="first.py")
    with a:
        a.edit("first.py", "first_2 = ", s.are("agent", block("again", 5)) + "first_2 = ")
        s.own["first_2 = compute('first', 2)"] = "agent"
    s.wait(60)
    s.commit("the rest", a)


def another_session(s: Story) -> None:
    s.begun(10)
    a, b = s.agent("earlier"), s.agent("later")
    with a:
        a.write("a.py", s.are("agent", block("by_a", 12)))
    with b:
        b.write("b.py", s.are("agent", block("by_b", 12)))
    s.wait(30)
    s.commit("both", b)
    with a:
        a.adds("app.py", "old_2", "a_again", 3)
    s.wait(30)
    s.commit("own", a)


def subfolder_and_windows_lines(s: Story) -> None:
    s.human("web/src/app.ts", block("old", 10).replace("\n", "\r\n"))
    s.human("web/src/other.ts", block("other", 3))
    s.commit("base")
    with s.agent("sub", cwd=str(s.root / "web")) as a:
        old = "old_3 = compute('old', 3)"
        new = s.are("agent", block("crlf", 6)).replace("\n", "\r\n") + old
        a.edit("web/src/app.ts", old, new)
        a.write("web/src/new.ts", s.are("agent", block("new", 6)))
        a.edit("web/src/other.ts", "other_1 = ", s.are("agent", block("in_other", 4)) + "other_1 = ")
    s.wait(40)
    s.commit("sub", a)


def subagent(s: Story) -> None:
    s.begun(10)
    with s.agent("helper") as a:
        a.log.call("Task", "toolu_task", description="help", prompt="do it")
        a.side_edit("app.py", "old_4 = ", s.are("agent", block("by_helper", 12)) + "old_4 = ")
        s.own["old_4 = compute('old', 4)"] = "preexisting"
        s.commit("helper", a)
        a.side_edit("app.py", "old_8 = ", s.are("agent", block("by_helper_too", 12)) + "old_8 = ")
        a.log.now = s.now
        a.log.result("done", "toolu_task")
        s.now = a.log.now
    s.wait(50)
    s.commit("helper again", a)


def staged_in_part(s: Story) -> None:
    s.begun(10)
    with s.agent("parts") as a:
        a.edit("app.py", "old_4 = ", s.are("agent", block("kept", 8)) + block("dropped", 8) + "old_4 = ")
        s.own["old_4 = compute('old', 4)"] = "preexisting"
    s.human("app.py", s.text("app.py").replace(block("dropped", 8), s.are("human", block("instead", 3))))
    s.commit("parts", a)
    s.human("app.py", s.text("app.py") + s.are("human", block("later", 12)))
    s.commit("later", a)


def failed_and_refused_edits(s: Story) -> None:
    s.begun(10)
    with s.agent("failing") as a:
        text = block("typed", 10)
        a.fail("app.py", "old_1 = ", text + "old_1 = ")
        a.adds("app.py", "old_4", "done", 10)
    s.human("app.py", s.text("app.py") + s.are("human", text))
    s.commit("after a failure", a)


def only_a_person(s: Story) -> None:
    s.begun(10)
    a = s.agent("asked")
    a.prompt("how does this work?")
    a.say("like this")
    s.human("app.py", s.text("app.py") + s.are("human", block("typed", 12)))
    s.human("own.py", s.are("human", block("own", 12)))
    s.commit("by hand", a)


def test_lines_of_another_session_are_told_apart(tmp_path: Path) -> None:
    s = Story(tmp_path)
    another_session(s)
    s.attributed()
    found = Counter((subject, path, tag) for (subject, path, _), tag in s.tags().items())
    assert found == {
        ("both", "a.py", "agent_other_session"): 12,
        ("both", "b.py", "agent_exact"): 12,
        ("own", "app.py", "agent_exact"): 3,
    }


def test_a_change_that_was_picked_onto_another_branch_counts_once(tmp_path: Path) -> None:
    s = Story(tmp_path).begun(10)
    s.git("branch", "other")
    with s.agent("picked") as a:
        a.write("new.py", block("new", 12))
    sha = s.commit("made", a)
    s.git("switch", "other")
    s.wait(4000)
    s.git("cherry-pick", sha)
    told = s.attributed()
    assert (told.checkpoints_linked, told.commits, told.lines) == (1, 1, {"agent_exact": 12})
    rows = s.rows("SELECT relation, added FROM commits WHERE relation IS NOT NULL ORDER BY 1")
    assert rows == [("copy", None), ("original", 12)]


@pytest.mark.slow
def test_more_lines_than_anybody_types_are_no_persons(tmp_path: Path) -> None:
    """An agent whose transcript nobody kept worked between the last turn and the commit."""
    for n, expected in ((12, {"human_observed": 12}), (60, {"unknown": 60})):
        s = Story(tmp_path / str(n)).begun(10)
        a = s.agent("asked")
        a.prompt()
        a.say()
        s.human("new.py", block("sudden", n))
        s.commit("quick", a)
        assert s.attributed().lines == expected


@pytest.mark.slow
def test_nothing_is_a_persons_where_a_transcript_tells_no_times_or_is_missing(tmp_path: Path) -> None:
    for missing in (False, True):
        s = Story(tmp_path / str(missing)).begun(10)
        a = s.agent("untimed")
        a.prompt()
        a.say()
        s.human("app.py", s.text("app.py") + block("somebodys", 5))
        s.commit("untimed", a)
        if missing:
            a.log.lines = []
        else:
            a.log.lines = [
                re.sub(r',"timestamp":"[^"]*"', "", re.sub(r',\s*"timestamp":\s*"[^"]*"', "", x)) for x in a.log.lines
            ]
        told = s.attributed()
        assert told.lines == {"unknown": 5}
        assert told.sessions_missing == missing


STORIES: list[Callable[[Story], None]] = [
    agent_commits_mid_turn, formatter, rebase, moved_lines, moved_before_the_first_commit, duplicate_lines, shell_edits,
    parallel_worktrees,
    interleaved_human_edits, renames, carried_forward, another_session, subfolder_and_windows_lines, subagent,
    staged_in_part, failed_and_refused_edits, only_a_person,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tell", some(STORIES, 3), ids=lambda t: t.__name__)
def test_lines_are_tagged_as_the_story_has_them(tell: Callable[[Story], None], tmp_path: Path) -> None:
    story = Story(tmp_path)
    tell(story)
    story.attributed()
    told = story.score()
    assert told.human_as_agent == []
    assert told.right >= 10
    assert told.share >= 0.98, "\n".join(told.wrong)
