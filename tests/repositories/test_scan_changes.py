"""What a commit did to findings, and whose they are: rule by rule, without a repository."""

from __future__ import annotations

import pytest

from agentsignals.changes.git import FileChange
from agentsignals.repositories.scan import Line, Lines, changed, owner_of
from agentsignals.repositories.scanners import ScanFinding

Told = list[tuple[str, str, int, str | None]]


def at(line: int, match: str = "m", around: str = "a", rule: str = "r", end: int | None = None) -> ScanFinding:
    return ScanFinding(
        rule=rule,
        line=line,
        end_line=end or line,
        message="",
        cwe=(),
        severity="low",
        confidence="low",
        text="",
        match=match,
        around=around,
    )


def file(path: str, *added: tuple[int, int], old: str | None = None) -> FileChange:
    return FileChange(path=path, old_path=old or path, old_oid="1", new_oid="2", added=list(added), removed=[])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([(file("a"), [at(1)], [at(9)])], []),
        ([(file("a", (9, 1)), [at(1)], [at(9)])], [("moved", "a", 9, "a")]),
        ([(file("a", (8, 1)), [at(1)], [at(9)])], []),
        ([(file("a", (8, 2)), [at(1)], [at(9)])], [("moved", "a", 9, "a")]),
        ([(file("a", (10, 1)), [at(1)], [at(8, end=9)])], []),
        ([(file("a", (9, 1)), [at(1)], [at(8, end=9)])], [("moved", "a", 8, "a")]),
        ([(file("a"), [at(1)], [at(1, rule="other")])], [("fixed", "a", 1, None), ("introduced", "a", 1, None)]),
        ([(file("a"), [at(1)], [at(1, "other")])], [("fixed", "a", 1, None), ("introduced", "a", 1, None)]),
        ([(file("b", old="a"), [at(1)], [at(1)])], []),
        ([(file("b", (1, 1), old="a"), [at(1)], [at(1)])], [("moved", "b", 1, "a")]),
        ([(file("b", old="a"), [at(1)], [])], [("fixed", "a", 1, None)]),
        ([(file("a"), [at(1)], []), (file("b"), [], [at(1)])], [("moved", "b", 1, "a")]),
        ([(file("a"), [at(1)], []), (file("b"), [at(2)], [at(2)])], [("fixed", "a", 1, None)]),
        ([(file("a", (1, 1)), [at(5)], [at(1), at(6)])], [("introduced", "a", 1, None)]),
        ([(file("a", (1, 1)), [at(5, around="x")], [at(1, around="y"), at(6, around="x")])],
         [("introduced", "a", 1, None)]),
        ([(file("a", (1, 1)), [at(5, around="x")], [at(1, around="x"), at(6, around="y")])],
         [("introduced", "a", 6, None), ("moved", "a", 1, "a")]),
        ([(file("a"), [at(1), at(2)], [at(1)])], [("fixed", "a", 2, None)]),
    ],
)  # fmt: skip
def test_findings_are_paired_from_near_to_far_and_only_the_rest_is_new_or_gone(
    files: list[tuple[FileChange, list[ScanFinding], list[ScanFinding]]], expected: Told
) -> None:
    told = sorted((one.change, one.path, one.finding.line, one.moved_from) for one in changed(files))
    assert told == expected


def test_a_finding_keeps_its_name_wherever_it_goes_with_its_surroundings() -> None:
    found = changed([(file("a"), [], [at(1), at(2, around="b"), at(3, "n")]), (file("b"), [], [at(7)])])
    one, two, three, four = (c.row("r", "s", ("rules", "1"), (None, None, None)).fingerprint for c in found)
    assert one == four
    assert len({one, two, three}) == 3


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", ("context", None, None)),
        ("agent_exact", ("agent", "agent_exact", "s0")),
        ("human_observed agent_ws", ("agent", "agent_ws", "s1")),
        ("agent_shell agent_exact", ("agent", "agent_exact", "s1")),
        ("unknown agent_shell", ("agent", "agent_shell", "s1")),
        ("human_observed human_observed", ("human", "human_observed", None)),
        ("human_observed unknown", ("unknown", "human_observed", None)),
        ("human_observed moved", ("unknown", "human_observed", None)),
        ("moved generated preexisting", ("nobody", "moved", None)),
        ("moved unknown", ("unknown", "unknown", None)),
    ],
)
def test_a_finding_is_an_agents_when_any_of_its_lines_is_and_a_persons_when_all_are(
    tags: str, expected: tuple[str, str | None, str | None]
) -> None:
    assert owner_of([Line(tag, f"s{n}") for n, tag in enumerate(tags.split())]) == expected


def test_lines_to_divide_by_are_those_of_taken_files_that_are_not_blank() -> None:
    rows = [
        {"commit_sha": "c", "path": path, "line": n, "tag": tag, "session_id": None, "is_blank": blank}
        for path, n, tag, blank in [
            ("a.py", 1, "unknown", False), ("a.py", 2, "unknown", True), ("a.py", 3, "moved", False),
            ("a.md", 1, "unknown", False),
        ]
    ]  # fmt: skip
    lines = Lines(rows, lambda path: path.endswith(".py"))
    assert {key: dict(count) for key, count in lines.counts.items()} == {("c", "a.py"): {"unknown": 1, "moved": 1}}
    assert [one.tag for one in lines.of("c", "a.py", 2, 3)] == ["unknown", "moved"]
    assert [len(lines.of(*asked)) for asked in (("c", "a.py", 4, 9), ("d", "a.py", 1, 3), ("c", "a.md", 1, 1))] == [
        0, 0, 1,
    ]  # fmt: skip
