"""Terminals are transcripts where an agent printed its records: wrapped, behind a shell line, in pieces, with codes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.terminal import printed
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.formats import reading
from tests.golden import SAMPLES

RECORDS = [
    {"type": "a", "text": 'x "quoted" {brace} \u00fc ' * 20},
    {"type": "b", "n": [1, {"c": "\u001b[31m"}]},
    {"type": "c"},
]


def wrapped(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def pane(records: list[Any], width: int = 10_000, end: str = "\n") -> str:
    shown = [line for record in records for line in wrapped(json.dumps(record), width)]
    return end.join(["root@box:/app# agent --json", *shown, "root@box:/app#", ""])


def cast(text: str, piece: int = 50, version: int = 2) -> str:
    size = {"width": 80, "height": 24} if version == 2 else {"term": {"cols": 80, "rows": 24}}
    events = [[round(n * 0.1, 3), "o", part] for n, part in enumerate(wrapped(text, piece))]
    events.insert(1, [0.1, "i", '{"type": "typed"}\n'])
    return "".join(json.dumps(row) + "\n" for row in [{"version": version, **size}, *events])


def read(text: str) -> tuple[list[Any], list[int]]:
    found = printed(text.encode())
    return ([json.loads(line) for line in found.data.splitlines()], found.lines) if found is not None else ([], [])


@pytest.mark.parametrize("width", [20, 37, 80, 160, 10_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_records_are_put_together_at_any_width(width: int, end: str) -> None:
    records, lines = read(pane(RECORDS, width, end))
    assert records == RECORDS
    assert lines[0] == 2


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("piece", [7, 50, 4_000])
def test_a_recording_is_what_it_showed(version: int, piece: int) -> None:
    records, lines = read(cast(pane(RECORDS, end="\r\n"), piece, version))
    assert records == RECORDS
    assert lines == sorted(lines)
    assert lines[0] == 2 + 29 // piece + (1 if 29 // piece else 0)


def test_codes_of_the_terminal_are_no_part_of_a_record() -> None:
    shown = (
        pane(RECORDS)
        .replace("root@box", "\x1b]0;title\x07\x1b[01;32mroot@box\x1b[0m")
        .replace('"b"', '\x1b[1m"b"\x1b[K')
    )
    assert read(shown)[0] == RECORDS
    assert read(cast(shown, 9))[0] == RECORDS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "root@box:/app# ls\na.csv\n",
        '{"broken": \n',
        "{}\n",
        '{"a": 1} and more\n',
        "[1, 2]\n",
        cast("root@box:~# ls\r\n"),
    ],
)
def test_a_terminal_without_records_shows_none(text: str) -> None:
    assert read(text) == ([], [])


def test_a_record_that_breaks_off_costs_itself() -> None:
    broken = json.dumps(RECORDS[0])[:100]
    assert read(f"{broken}\n{json.dumps(RECORDS[1])}\n")[0] == [RECORDS[1]]


def test_what_only_begins_like_records_is_passed_over_quickly() -> None:
    start = time.perf_counter()
    assert read('{"a": [\n' * 50_000)[0] == []
    assert time.perf_counter() - start < 5


STREAMS = {"claude": SAMPLES / "claude-stream" / "run.jsonl", "codex": SAMPLES / "codex-exec" / "run.jsonl"}


def sums(store: Path, *sources: Path) -> list[tuple[Any, ...]]:
    pipeline.analyze([str(source) for source in sources], store, jobs=1)
    query = "SELECT n_tool_calls, n_steps, input_tokens, output_tokens, round(cost_usd, 6) FROM sessions ORDER BY ALL"
    return [tuple(row) for row in asked(Store(store), query)[1]]


def placed(root: Path, files: dict[str, str]) -> Path:
    known = {"id": "0" * 36, "trial_name": "t.1", "task_id": "t", "instruction": "x", "is_resolved": True}
    reading.placed(
        root / "t" / "t.1", {**files, "results.json": {**known, "failure_mode": "unset", "parser_results": None}}
    )
    return root


@pytest.mark.parametrize("agent", STREAMS)
@pytest.mark.parametrize(
    "names",
    [
        ["panes/post-agent.txt"],
        ["sessions/agent.cast"],
        ["sessions/agent.log"],
        ["agent-logs/agent/run.txt"],
        ["panes/post-agent.txt", "sessions/agent.cast", "sessions/agent.log"],
    ],
    ids=["pane", "cast", "log", "agent's log", "all"],
)
def test_an_attempt_has_the_transcript_that_its_terminal_shows_once(
    tmp_path: Path, agent: str, names: list[str]
) -> None:
    stream = STREAMS[agent].read_text("utf-8")
    set_up = "root@box:/# bash install.sh\n" + "Unpacking package\n" * 6_000
    shown = f"{set_up}root@box:/app# agent --json\n{stream}root@box:/app#\n"
    narrow = "\n".join(
        ["root@box:/app# agent", *(part for line in stream.splitlines() for part in wrapped(line, 160)), ""]
    )
    forms = {"panes": narrow, "sessions/agent.cast": cast(shown.replace("\n", "\r\n"), 700), "sessions": shown}
    files = {n: forms.get(n) or forms.get(n.partition("/")[0]) or shown for n in names}
    alone = sums(tmp_path / "alone", STREAMS[agent])
    assert sums(tmp_path / "s", placed(tmp_path / "in", files)) == alone
    _, attempts = asked(Store(tmp_path / "s"), "SELECT has_transcript, outcome FROM attempts")
    assert [tuple(row) for row in attempts] == [(True, "solved")]


def test_a_pane_that_lost_its_beginning_gives_way_to_the_recording(tmp_path: Path) -> None:
    stream = STREAMS["claude"].read_text("utf-8")
    late = "".join(stream.splitlines(keepends=True)[2:])
    files = {"panes/post-agent.txt": late, "sessions/agent.cast": cast(f"$ agent\r\n{stream}")}
    assert sums(tmp_path / "s", placed(tmp_path / "in", files)) == sums(tmp_path / "alone", STREAMS["claude"])


def test_a_terminal_without_records_is_no_transcript(tmp_path: Path) -> None:
    files = {"panes/post-agent.txt": "root@box:/app# ls\na.csv\n", "sessions/agent.cast": cast("root@box:/app# ls\r\n")}
    pipeline.analyze([str(placed(tmp_path / "in", files))], tmp_path / "s", jobs=1)
    _, found = asked(
        Store(tmp_path / "s"),
        "SELECT has_transcript, n_tool_calls, input_tokens, cost_usd FROM attempts JOIN sessions USING (session_id)",
    )
    assert [tuple(row) for row in found] == [(False, None, None, None)]
