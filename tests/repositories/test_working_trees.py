"""What calls did to files, what a session's paths are called in the repository, and which commits checkpoints link."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.changes.git import Commit
from agentsignals.changes.worktrees import Naming, Tree, is_generated
from agentsignals.formats.profile import EDIT_ROLES
from agentsignals.model import Edit, Session, ToolCall, encode_roles
from agentsignals.repositories.working_trees import Recorded, activity, clocked, links, operations, unlinked

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@ def f():
 one
-two
+TWO
+three
*** Add File: new.py
+hello
+world
*** Delete File: old.py
*** Update File: from.py
*** Move to: to.py
@@
-x
+y
*** End Patch"""


def worked(*edits: Edit, **facts: Any) -> Session:
    """A session of one call, from 10 to 20."""
    call: dict[str, Any] = {"seq": 3, "turn": 0, "step": 0, "thread": "main", "call_id": "c", "name": "tool"}
    call |= {"class_": "edit", "status": "ok", "started_at": 10, "ended_at": 20} | facts
    made = {"session_id": "s", "context": "product", "format": "f", "agent": "a", "artifact_id": "x", "started_at": 1}
    return Session(**made, tool_calls=[ToolCall(**call)], edits=list(edits))  # type: ignore[arg-type]


def told(arguments: Any, *paths: str, command: str | None = None, via: str = "edit_tool") -> list[tuple[Any, ...]]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    edits = [Edit(seq=3, turn=0, thread="main", call_id="c", path=path, op="modify", via=via) for path in paths]  # type: ignore[arg-type]
    session = worked(*edits, command=command, arguments=text, argument_roles=encode_roles(EDIT_ROLES))
    return [(o.kind, o.path, o.old, o.new, o.everywhere, o.to, o.line) for o in operations(session)]


@pytest.mark.parametrize(
    ("started_at", "ended_at", "by_end", "clock"),
    [(10, 20, False, 10), (10, 20, True, 20), (None, 20, False, 20), (10, None, True, 10), (None, None, False, 1)],
)
def test_the_clock_of_a_call_is_of_what_is_known(
    started_at: int | None, ended_at: int | None, by_end: bool, clock: int
) -> None:
    assert [at for at, _ in clocked(worked(started_at=started_at, ended_at=ended_at), by_end)] == [clock]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"file_path": "/r/a.py", "old_string": "x", "new_string": "y"}, [("replace", "a.py", "x", "y", False, "", 0)]),
        (
            {"file_path": "/r/a.py", "old_string": "x", "new_string": "y", "replace_all": True},
            [("replace", "a.py", "x", "y", True, "", 0)],
        ),
        (
            {"file_path": "a.py", "edits": [{"old_string": "1", "new_string": "2"}, {"oldText": "3", "newText": "4"}]},
            [("replace", "a.py", "1", "2", False, "", 0), ("replace", "a.py", "3", "4", False, "", 0)],
        ),
        ({"filePath": "/r/a.py", "oldString": "x", "newString": "y"}, [("replace", "a.py", "x", "y", False, "", 0)]),
        ({"file_path": "/r/a.py", "content": "t\n"}, [("write", "a.py", "", "t\n", False, "", 0)]),
        ({"path": "a.py", "file_text": "t"}, [("write", "a.py", "", "t", False, "", 0)]),
        ({"file_path": "a.py", "old_string": "", "new_string": "t"}, [("write", "a.py", "", "t", False, "", 0)]),
        ({"command": "append", "path": "a.py", "content": "t"}, [("append", "a.py", "", "t", False, "", 0)]),
        ({"command": "insert", "insert_line": 4, "new_str": "t"}, [("insert", "a.py", "", "t", False, "", 4)]),
        ({"file_path": "a.py", "old_string": 3, "new_string": None}, []),
        ({}, []),
        ("no json", []),
        ([1, 2], []),
    ],
)
def test_arguments_say_what_was_replaced_or_written(arguments: Any, expected: list[Any]) -> None:
    assert told(arguments, "a.py") == expected


@pytest.mark.parametrize("name", ["patchText", "input", "patch"])
def test_a_patch_changes_adds_deletes_and_moves(name: str) -> None:
    expected = [
        ("replace", "src/a.py", "one\ntwo", "one\nTWO\nthree", False, "", 0),
        ("write", "new.py", "", "hello\nworld", False, "", 0),
        ("delete", "old.py", "", "", False, "", 0),
        ("rename", "from.py", "", "", False, "to.py", 0),
        ("replace", "to.py", "x", "y", False, "", 0),
    ]
    assert told({name: PATCH}, "src/a.py", "new.py", "old.py", "from.py", "to.py") == expected
    assert told(json.dumps(PATCH), "src/a.py", "new.py", "old.py", "from.py", "to.py") == expected


def test_a_patch_names_files_by_other_roots_than_the_session() -> None:
    patch = "*** Begin Patch\n*** Update File: /home/me/repo/src/a.py\n@@\n-x\n+y\n*** End Patch"
    assert [(o[0], o[1]) for o in told({"input": patch}, "src/a.py")] == [("replace", "src/a.py")]


def test_a_unified_diff_is_a_patch_too() -> None:
    patch = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9 @@\n-d\n+e\n"
    made = [o[:4] for o in told({"input": patch}, "x.py")]
    assert made == [("replace", "x.py", "a\nb", "a\nc"), ("replace", "x.py", "d", "e")]


def test_calls_that_changed_nothing_are_no_operations() -> None:
    assert told({"file_path": "a.py", "content": "t"}) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat > a.py <<'EOF'\nx\ny\nEOF", [("write", "a.py", "", "x\ny\n")]),
        (
            "cat >> a.py << 'E'\nx\nE\ncat > b.py <<E\ny\nE",
            [("append", "a.py", "", "x\n"), ("write", "b.py", "", "y\n")],
        ),
        ("tee -a a.py <<EOF\nx\nEOF", [("append", "a.py", "", "x\n")]),
        ("cat <<EOF\nx\nEOF", []),
        ("sed -i 's/old/new/' a.py", [("substitute", "a.py", "old", "new")]),
        (
            "sed -i -e 's|a b|c|' -e 's/c/d/g' a.py",
            [("substitute", "a.py", "a b", "c"), ("substitute", "a.py", "c", "d")],
        ),
        ("sed -i 's/a.*b/c/' a.py", [("shell", "a.py", "", "")]),
        ("echo 's/a/b/' a.py", []),
        ("sed -i '3a y' a.py", [("insert", "a.py", "", "y\n")]),
        ("mv a.py b.py", [("rename", "a.py", "", "")]),
        ("rm a.py", [("delete", "a.py", "", "")]),
        ("git checkout HEAD -- a.py", [("shell", "a.py", "", "")]),
        (
            "python3 - <<'E'\np = 'a.py'\ns = open(p).read()\nopen(p, 'w').write(s.replace('x\\ny', 'z'))\nE",
            [("replace", "a.py", "x\ny", "z")],
        ),
        (
            "git apply <<'E'\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n k\n-x\n+y\nE",
            [("replace", "a.py", "k\nx", "k\ny")],
        ),
    ],
)
def test_a_command_says_what_it_writes(command: str, expected: list[Any]) -> None:
    paths = sorted({path for _, path, _, _ in expected})
    if command.startswith("mv"):
        paths.append("b.py")
    assert [o[:4] for o in told({}, *paths, command=command, via="shell")] == expected


def test_a_written_file_whose_text_is_not_told_is_only_named() -> None:
    assert told({}, "a.py", command="./make > a.py", via="shell") == [("shell", "a.py", "", "", False, "", 0)]


@pytest.mark.parametrize(
    ("command", "kind", "writes"),
    [
        ("git add -A && git commit -m x", "vcs", False),
        ("git -c a=b --no-pager log -1", "vcs", False),
        ("git checkout main", "vcs", True),
        ("git stash pop", "vcs", True),
        ("cat a.py", "read", False),
        ("npm run format", "run", True),
    ],
)
def test_commands_that_may_write_unseen_are_told_from_those_that_cannot(command: str, kind: Any, writes: bool) -> None:
    assert bool(activity(worked(class_="shell", shell_kind=kind, command=command)).writers) is writes


@pytest.mark.parametrize(("status", "writes"), [("none", True), ("ok", False), ("rejected", False)])
def test_an_edit_whose_outcome_is_not_logged_may_have_written(status: Any, writes: bool) -> None:
    assert bool(activity(worked(path="a.py", status=status)).writers) is writes


TREE = Tree(["README.md", "web/README.md", "web/src/app.ts", "src/main.py", "pkg/deep/er/x.py", "docs/a.md", "tool.py"])


@pytest.mark.parametrize(
    ("cwd", "names", "folders", "root", "expected"),
    [
        ("/r", ["src/main.py"], (), "/r", ["src/main.py"]),
        ("/r", ["new/file.py"], (), "/r", ["new/file.py"]),
        ("/r/web", ["src/app.ts", "new.ts"], (), "/r", ["web/src/app.ts", "web/new.ts"]),
        ("/mounted", ["src/app.ts", "new.ts"], (), "/mounted", ["web/src/app.ts", "web/new.ts"]),
        ("/r/web", ["README.md"], {"/r"}, "/r", ["web/README.md"]),
        ("/other/web", ["README.md"], {"/r"}, "/other/web", ["README.md"]),
        ("/r/pkg/deep/er", ["x.py"], (), "/r", ["pkg/deep/er/x.py"]),
        ("/above", ["repo/src/main.py", "else/where.py"], (), "/above/repo", ["src/main.py", None]),
        ("/r", ["../out.py"], (), "/r", [None]),
        (
            "/x",
            ["/home/me/r/src/main.py", "/home/me/r/new.py", "/etc/passwd"],
            (),
            "/x",
            ["src/main.py", "new.py", None],
        ),
        ("C:\\r\\web", ["src/app.ts"], (), "C:/r", ["web/src/app.ts"]),
        (None, ["src/main.py"], (), "", ["src/main.py"]),
    ],
)
def test_paths_are_those_of_the_repository(
    cwd: str | None, names: list[str], folders: set[str], root: str, expected: list[str | None]
) -> None:
    naming = Naming(TREE, cwd, names, folders)
    assert ([naming.of(name) for name in names], naming.root) == (expected, root)


@pytest.mark.parametrize(
    ("path", "lines", "expected"),
    [
        ("web/package-lock.json", [], True),
        ("go.sum", [], True),
        ("a.min.js", [], True),
        ("api.py", ["# Code generated by tool. DO NOT EDIT."], True),
        ("api.py", ["x = 1"] * 9 + ["@generated"], False),
        ("lock.py", ["import x"], False),
    ],
)
def test_what_programs_make_is_known_by_name_or_head(path: str, lines: list[str], expected: bool) -> None:
    assert is_generated(path, lines) is expected


A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


def commit(sha: str, at: int, *ids: str, subject: str = "", parents: int = 1, authored: int | None = None) -> Commit:
    when = at * 1_000_000
    return Commit(
        sha=sha,
        parents=("p",) * parents,
        authored_at=when if authored is None else authored * 1_000_000,
        committed_at=when,
        author="me",
        subject=subject or sha,
        checkpoint_ids=ids,
    )


def taken(checkpoint_id: str, at: int, branch: str | None = "main") -> Recorded:
    return Recorded(checkpoint_id, "s", at * 1_000_000, branch, None)


SAME: dict[str, Any] = {"subject": "fix", "authored": 900}


@pytest.mark.parametrize(
    ("commits", "rows", "expected"),
    [
        pytest.param([commit("c1", 1_000, A)], [taken(A, 1_060)], {(A, "c1"): "original"}, id="of that moment"),
        pytest.param([commit("c1", 1_000, A)], [taken(A, 1_121)], {(A, "c1"): "rewritten"}, id="two minutes later"),
        pytest.param([commit("c1", 5_000, A, **SAME), commit("c2", 1_001, A, **SAME)], [taken(A, 1_000)],
                     {(A, "c2"): "original", (A, "c1"): "copy"}, id="the same change again"),
        pytest.param([commit("c1", 1_000, A), commit("c2", 1_030, A)], [taken(A, 1_000)],
                     {(A, "c1"): "original", (A, "c2"): "further"}, id="another change under the same name"),
        pytest.param([commit("c1", 1_000, A, B)], [taken(A, 1_000), taken(B, 1_000)],
                     {(A, "c1"): "original", (B, "c1"): "original"}, id="a squash"),
        pytest.param([commit("m", 1_000, A, parents=2)], [taken(A, 1_000)], {}, id="a merge"),
    ],
)  # fmt: skip
def test_commits_that_name_a_checkpoint(
    commits: list[Commit], rows: list[Recorded], expected: dict[tuple[str, str], str]
) -> None:
    assert {(link.checkpoint_id, link.sha): link.relation for link in links(commits, rows)} == expected


def test_every_checkpoint_without_a_commit_has_a_reason() -> None:
    commits = [commit("m", 1_000, A, parents=2), commit("c", 5_000)]
    rows = [taken(A, 1_000), taken(B, 5_060), taken("c" * 12, 9_000, "gone"), taken("d" * 12, 9_000)]
    reasons = unlinked(commits, rows, links(commits, rows), {"main"})
    assert reasons == {
        A: "named_by_merges_only",
        B: "commit_without_trailer",
        "c" * 12: "branch_not_in_clone",
        "d" * 12: "commit_not_in_history",
    }
