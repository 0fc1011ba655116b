"""What the harness of Agent Signals prints and writes, one test for each rule (design/signals.md#tool-classes). All
is made up: no
sample of it is public.
"""

from __future__ import annotations

import json
import mmap
import resource
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.subq_eval_log import FORMAT as LOG
from agentsignals.model import Artifact, Attempt


def printed(text: str | bytes) -> list[Attempt]:
    data = text if isinstance(text, bytes) else text.encode()
    return LOG.read(
        [
            Input(
                data,
                Artifact(
                    artifact_id="a",
                    source="t",
                    path="/r/t/stdout.txt",
                    format="subq-eval-log",
                    sha256="",
                    bytes=len(data),
                ),
            )
        ]
    ).attempts


def told(text: str) -> list[tuple[int | None, Any]]:
    """Turns of each attempt by its index."""
    return [(a.attempt_index, a.summary.turns if a.summary else None) for a in printed(text)]


# -- what is printed ------------------------------------------------------------------------------------------------

BLOCK = "[subq-eval] Turns: {}\n[subq-eval] Tool calls: 9\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BLOCK.format(3), [(0, 3)]),
        ("[subq-eval] Turns: 3\n[subq-eval] Turns: 4\n[subq-eval] Tool calls: 9\n", [(0, 4)]),
        (BLOCK.format(3) + "more\n" + BLOCK.format(5), [(0, 3), (1, 5)]),
        (BLOCK.format(3) + BLOCK.format(5), [(0, 5)]),
        ("[subq-eval] Turns: 1\nlog\n[subq-eval] Turns: 2\nlog\n" + BLOCK.format(3), [(0, 3)]),
        (BLOCK.format(3) + "log\n[subq-eval] Edit calls: 1\n", [(0, 3)]),
        ("[subq-eval] Attempt 1\n" + BLOCK.format(3) + "[subq-eval] Attempt 2\n" + BLOCK.format(5), [(0, 3), (1, 5)]),
        ("[subq-eval] Attempt 0\n" + BLOCK.format(3) + "[subq-eval] Attempt 1\n" + BLOCK.format(5), [(0, 3), (1, 5)]),
        ("[subq-eval] Attempt 1\n" + BLOCK.format(3) + "log\n" + BLOCK.format(4), [(0, 4)]),
        (BLOCK.format(3) + "[subq-eval] Attempt 2\n" + BLOCK.format(5), [(0, 3), (1, 5)]),
        (BLOCK.format(9) + "[subq-eval] Attempt 1\n" + BLOCK.format(3), [(0, 3)]),
        ("[subq-eval] Attempt 1\n[subq-eval] Attempt 2\n" + BLOCK.format(5), [(0, None), (1, 5)]),
        ("[subq-eval] Attempt 1/3\n" + BLOCK.format(3) + "[subq-eval] Attempt 1/3\n" + BLOCK.format(4), [(0, 4)]),
        ("12:00 worker-3 | [subq-eval]  Turns :  7 \r\n", [(0, 7)]),
        ("\x1b[1m[subq-eval] Turns: 1,234\x1b[0m\n", [(0, 1234)]),
        ("[subq-eval] Turns: many\n", [(0, None)]),
        ("nothing of that kind\n", [(None, None)]),
        ("", [(None, None)]),
    ],
    ids=[
        "one block", "the last value wins", "the k-th block is attempt k", "without a gap it is one block",
        "progress is no summary", "a figure that comes late", "announced", "announced from 0", "announced ones count",
        "only the retry is announced", "before the first announcement", "an attempt that printed nothing",
        "announced twice", "behind a prefix", "in colour", "no number", "no lines", "empty",
    ],
)  # fmt: skip
def test_attempts_are_told_apart_by_announcement_else_by_block(text: str, expected: list[Any]) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ("a.py (3 diff lines)", [("a.py", 3)]),
        ("a.py (3 diff lines), b c/d (1).md (1 diff line)", [("a.py", 3), ("b c/d (1).md", 1)]),
        ("\n  a.py (3 diff lines)\n[subq-eval] b.py (1 diff line)\ndone (4 of 5)\nc.py (2 diff lines)",
         [("a.py", 3), ("b.py", 1)]),
        ("a.py (3 diff lines),\n  b.py (1 diff lines)\n", [("a.py", 3), ("b.py", 1)]),
        ("none", []),
        ("-", []),
        ("0", []),
        ("", []),
        ("a.py", None),
    ],
)  # fmt: skip
def test_touched_files_are_a_list_on_one_line_or_on_many(value: str, files: Any) -> None:
    (found,) = printed(f"[subq-eval] Touched files: {value}")
    assert found.summary is not None
    assert found.summary.touched_files == files


def test_a_phase_is_an_event_where_and_when_it_was_announced() -> None:
    text = (
        'x {"a": 1} {"event":"plannotator-phase","phase":"explore","timestamp":"2026-01-01T00:00:05Z"} y\n'
        '2026-01-01T00:00:07Z {"phase": "im{plement", "event": "plannotator-phase"}\n'
        '{"event":"plannotator-phase","ts":1767225609}\n{"event":"plannotator-phase","ts":1767225610000}\n'
        '{"event":"plannotator-phase"}\n{"event":"plannotator-phase", cut\nplannotator-phase\n'
    )
    (found,) = printed(text)
    start = 1_767_225_600_000_000
    phases = [(s.line, s.at, s.kind) for s in found.statements]
    assert phases == [
        (1, start + 5_000_000, "phase"), (2, start + 7_000_000, "phase"), (3, start + 9_000_000, "phase"),
        (4, start + 10_000_000, "phase"), (5, None, "phase"),
    ]  # fmt: skip
    assert json.loads(found.statements[1].text)["phase"] == "im{plement"


def test_phases_belong_to_the_attempt_whose_summary_follows_them() -> None:
    phase = '{"event":"plannotator-phase","phase":"%s"}\n'
    text = phase % "a" + BLOCK.format(1) + phase % "b" + BLOCK.format(2) + phase % "c"
    named = [[json.loads(s.text)["phase"] for s in a.statements if s.kind == "phase"] for a in printed(text)]
    assert named == [["a"], ["b", "c"]]
    text = "[subq-eval] Attempt 1\n" + BLOCK.format(1) + phase % "a" + "[subq-eval] Attempt 2\n" + phase % "b"
    named = [[json.loads(s.text)["phase"] for s in a.statements if s.kind == "phase"] for a in printed(text)]
    assert named == [["a"], ["b"]]


def test_an_attempt_lasts_from_its_announcement_to_its_summary() -> None:
    text = "2026-01-01T00:00:00Z [subq-eval] Attempt 1\n[2026-01-01 00:01:30] [subq-eval] Turns: 3\n"
    (found,) = printed(text)
    assert ((found.ended_at or 0) - (found.started_at or 0)) == 90_000_000
    (found,) = printed("2026-01-01T00:00:00Z [subq-eval] Turns: 3\n")
    assert (found.started_at, found.ended_at) == (None, None)


def test_a_line_is_cited_by_its_number_in_a_long_log() -> None:
    text = b"x\n" * 3_000_000 + b"[subq-eval] Turns: 4\n" + b"y\n" * 10 + b"[subq-eval] Tool calls: 2\n"
    (found,) = printed(text)
    assert [s.line for s in found.statements] == [3_000_001, 3_000_012]


def test_a_huge_log_is_read_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "stdout.txt"
    with path.open("wb") as out:
        out.write(b"[subq-eval] Turns: 1\n")
        for _ in range(120):
            out.write(b"a line of a log without any mark\n" * 31_000)
        out.write(b"z" * 3_000_000 + b"[subq-eval] Tool calls: 5 " + b"z" * 3_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        artifact = Artifact(
            artifact_id="a", source="t", path="/r/t/stdout.txt", format="subq-eval-log", sha256="", bytes=len(data)
        )
        (found,) = LOG.read([Input(data, artifact)]).attempts  # type: ignore[arg-type]  # a map, as the source gives
    assert found.summary is not None
    assert (found.summary.turns, found.summary.tool_calls) == (1, 5)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kb < 60_000 + path.stat().st_size / 1024, "the map's own pages may count; copies of it do not"


@pytest.mark.parametrize(
    "text",
    [
        "{" * 60_000 + '"plannotator-phase"',
        "[subq-eval] Touched files: " + "(1 diff lines" * 5_000,
        "[subq-eval]" * 9_000,
    ],
)
def test_hostile_lines_take_linear_time(text: str) -> None:
    printed(text + "\n")
