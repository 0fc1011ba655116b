"""Tables of conversations, in every kind of file and by either road: what a folder holds and what `hub:` fetches."""

from __future__ import annotations

import csv
import datetime
import gzip
import hashlib
import io
import json
import os
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.cli import main
from agentsignals.formats import by_name, identify
from agentsignals.formats import rows as tables
from agentsignals.formats.records import Head
from agentsignals.ingest import pipeline
from agentsignals.ingest import plan as planning
from agentsignals.sources import RawFile, Unreadable, open_source
from agentsignals.store import Store
from agentsignals.store.index import Manifest
from tests.formats.reading import given, placed
from tests.hub_server import DataSet, Hub, conversation, hub, messages, table

__all__ = ["hub"]

ONE, TWO = "11111111-aaaa", "22222222-bbbb"
Rows = list[dict[str, Any]]


def chat(task: str) -> list[dict[str, Any]]:
    """A trajectory with two calls, of which the second edits."""

    def calls(n: int, name: str, **arguments: Any) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {
            "role": "assistant",
            "content": "Next.",
            "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
        }

    return [
        {"role": "system", "content": "You repair programs."},
        {"role": "user", "content": f"Repair {task}."},
        calls(1, "bash", command="ls"),
        {"role": "tool", "content": "a.py", "tool_call_id": "c1"},
        calls(2, "str_replace_editor", command="str_replace", path="/r/a.py", old_str="x", new_str="y"),
        {"role": "tool", "content": "The file was edited.", "tool_call_id": "c2"},
        {"role": "assistant", "content": "Done."},
    ]


def as_text(rows: Rows) -> Rows:
    """The rows with every list and object as its JSON."""
    return [{k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()} for row in rows]


def as_lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_csv(rows: Rows) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(as_text(rows))
    return out.getvalue().encode()


def as_parquet(rows: Rows) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def as_arrow(rows: Rows, stream: bool = True) -> bytes:
    """As `datasets` saves to disk."""
    out, made = io.BytesIO(), pa.Table.from_pylist(rows)
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, made.schema) as writer:
        writer.write_table(made)
    return out.getvalue()


KINDS: dict[str, Callable[[Rows], bytes]] = {
    "train.jsonl": as_lines,
    "train.json": lambda rows: json.dumps(rows).encode(),
    "train.jsonl.gz": lambda rows: gzip.compress(as_lines(rows)),
    "train.csv": as_csv,
    "train.parquet": as_parquet,
    "text.parquet": lambda rows: as_parquet(as_text(rows)),
    "data-00000-of-00001.arrow": as_arrow,
    "file.arrow": lambda rows: as_arrow(rows, stream=False),
}


def analyzed(folder: Path, files: dict[str, bytes], store: str = "store") -> tuple[pipeline.Summary, Store]:
    data = placed(folder / f"{store}-data", files)
    return pipeline.analyze([str(data)], folder / store, jobs=1), Store(folder / store)


def facts(store: Store) -> list[tuple[Any, ...]]:
    """What a store says of its sessions, without where they came from."""
    asked = """SELECT session_id, context, agent, model, task_id, reward, n_prompts, n_tool_calls, n_edits FROM sessions
        LEFT JOIN attempts USING (session_id) ORDER BY ALL"""
    return store.sql(asked).fetchall()


def sessions(store: Store) -> list[tuple[Any, ...]]:
    return store.sql(
        "SELECT session_id, agent, text FROM turns JOIN sessions USING (session_id) ORDER BY ALL"
    ).fetchall()


SMITH = [
    {
        "messages": chat(f"o__r-{n}"),
        "instance_id": f"o__r-{n}",
        "resolved": n % 2 == 0,
        "model": "claude-3-7-sonnet",
        "traj_id": f"o__r-{n}.abc{n}",
        "patch": "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n",
    }
    for n in range(3)
]
"""As SWE-smith's trajectories come (its card)."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_tells_the_same(tmp_path: Path, kind: str) -> None:
    summary, store = analyzed(tmp_path, {kind: KINDS[kind](SMITH)})
    assert summary.skipped == {}
    assert facts(store) == [
        (f"o__r-{n}.abc{n}", "eval", "unknown", "claude-3-7-sonnet", f"o__r-{n}", float(n % 2 == 0), 1, 2, 1)
        for n in range(3)
    ]
    assert all('"a.py"' in told for (told,) in store.sql("SELECT facts FROM attempts").fetchall())


def test_by_path_and_by_hub_the_tables_are_equal(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run by `hub:` reads the filled cache alone."""
    files = {f"{n}/{kind}": make(SMITH) for n, (kind, make) in enumerate(KINDS.items())}
    hub.sets["ann/all"] = DataSet(files)
    _, local = analyzed(tmp_path, files)
    pipeline.analyze(["hub:ann/all#*"], tmp_path / "filled", jobs=1)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pipeline.analyze(["hub:ann/all#*"], tmp_path / "hub", jobs=1)
    assert facts(Store(tmp_path / "hub")) == facts(local)
    for name in ("sessions", "turns", "steps", "tool_calls", "edits", "events", "attempts"):
        columns = [c for c, *_ in local.sql(f"DESCRIBE {name}").fetchall()]
        kept = [c for c in columns if c not in ("artifact_id", "trial_id", "facts", "root", "source", "path")]
        asked = f"SELECT {', '.join(kept)} FROM {name} ORDER BY ALL"
        assert Store(tmp_path / "hub").sql(asked).fetchall() == local.sql(asked).fetchall(), name


# -- which column holds the conversation, and what a row says beside it


@pytest.mark.parametrize("column", ["messages", "conversations", "trajectory", "traj", "history", "Trajectory", "chat"])
def test_a_column_of_conversations_goes_by_many_names(tmp_path: Path, column: str) -> None:
    rows = [{"trajectory_id": ONE, column: messages("Fix it.")}, {"trajectory_id": TWO, column: messages("Go on.")}]
    for n, kind in enumerate(("train.jsonl", "text.parquet")):
        _, store = analyzed(tmp_path, {kind: KINDS[kind](rows)}, f"s{n}")
        assert sessions(store) == [(ONE, "unknown", "Fix it."), (TWO, "unknown", "Go on.")]


def test_a_reward_without_a_task_is_an_attempt(tmp_path: Path) -> None:
    """As CoderForge's rows come (its card), and a name of a task without a verdict."""
    rows = [
        {"trajectory_id": f"t{n:07}", "finish_reason": "stop", "messages": chat("x"), "reward": n / 2, "tools": "[]"}
        for n in range(3)
    ]
    _, store = analyzed(tmp_path, {"a.parquet": as_parquet(as_text(rows))})
    assert [(row[0], row[5]) for row in facts(store)] == [(f"t{n:07}", n / 2) for n in range(3)]
    _, store = analyzed(tmp_path, {"a.jsonl": as_lines([{"instance_id": "o__r-1", "messages": chat("x")}] * 2)}, "more")
    assert [(row[4], row[5]) for row in facts(store)] == [("o__r-1", None)]


def test_a_score_beyond_1_is_no_reward(tmp_path: Path) -> None:
    rows = [{"trajectory_id": f"t{n:07}", "messages": chat(f"x{n}"), "score": 4.0 * n} for n in range(2)]
    _, store = analyzed(tmp_path, {"a.parquet": as_parquet(rows)})
    assert [row[5] for row in facts(store)] == [None, None]


def test_an_export_of_traces_names_trial_agent_and_task(tmp_path: Path) -> None:
    """Harbor's traces export (cards of OpenThoughts' agent data sets): its keys are also those of trials' files."""
    row = {
        "agent": "terminus-2",
        "model": "glm",
        "date": "2026-04-17T12:48:02+00:00",
        "task": "t0",
        "episode": "episode-0",
        "run_id": "r1",
        "trial_name": "t0__abcdefg",
        "result": "1.0",
    }
    typed = {
        "role": "assistant",
        "content": '{"analysis": "So.", "commands": [{"keystrokes": "ls\\n", "duration": 1}]}',
    }
    said = [{"role": "user", "content": "Task 0"}, typed, {"role": "user", "content": "New Terminal Output: a.py"}]
    rows = [{"conversations": said, **row}, {"conversations": [*said, typed], **row, "episode": "episode-1"}]
    rows.append({**rows[0], "trial_name": "t1__abcdefg", "task": "t1", "result": "AgentTimeoutError"})
    _, store = analyzed(tmp_path, {"train.jsonl": as_lines(rows)})
    assert facts(store) == [
        ("t0__abcdefg", "eval", "terminus-2", "glm", "t0", 1.0, 1, 2, 0),
        ("t1__abcdefg", "eval", "terminus-2", "glm", "t1", None, 1, 1, 0),
    ], "an episode is a state of its trial's conversation: the longest counts"
    assert store.sql("SELECT exit_status FROM attempts ORDER BY ALL").fetchall() == [("AgentTimeoutError",), (None,)]


def test_calls_may_be_objects_with_their_status(tmp_path: Path) -> None:
    """As DataClaw writes them (its README), and as the AI SDK names them."""
    uses = [
        {"tool": "Write", "input": {"file_path": "a.py", "content": "x\n"}, "status": "success"},
        {"toolName": "Bash", "args": {"command": "make"}, "status": "error", "output": "no rule"},
    ]
    said = [
        {"role": "user", "content": "Go", "timestamp": "2026-01-15T10:00:00+00:00"},
        {
            "role": "assistant",
            "content": "I look.",
            "thinking": "hm",
            "tool_uses": uses,
            "timestamp": "2026-01-15T10:00:05+00:00",
        },
    ]
    row = {"session_id": ONE, "project": "p", "model": "m", "start_time": "2026-01-15T10:00:00+00:00", "messages": said}
    _, store = analyzed(tmp_path, {"conversations.jsonl": as_lines([row, {**row, "session_id": TWO}])})
    asked = "SELECT name, class, status FROM tool_calls WHERE session_id = ? ORDER BY seq"
    assert store.sql(asked.replace("?", f"'{ONE}'")).fetchall() == [("Write", "edit", "ok"), ("Bash", "shell", "error")]
    assert facts(store)[0][-3:] == (1, 2, 1)


CALL = "<function=execute_bash>\n<parameter=command>ls -la</parameter>\n</function>"
IN_TEXT = {
    "functions": (f"I look.\n{CALL}", "EXECUTION RESULT of [execute_bash]:\na.py"),
    "functions in calls": (f"I look.\n<tool_call>\n{CALL}\n</tool_call>", "a.py"),
    "XML": (
        '<function_calls>\n<invoke name="bash">\n<parameter name="command">ls -la</parameter>\n'
        "</invoke>\n</function_calls>",
        "a.py",
    ),
    "CodeAct": ("I look.\n<execute_bash>\nls -la\n</execute_bash>", "OBSERVATION:\na.py"),
    "JSON in tags": (
        '<tool_call>{"name": "bash", "arguments": {"command": "ls -la"}}</tool_call>',
        "<tool_response>a.py</tool_response>",
    ),
    "JSON": ('{"name": "bash", "arguments": {"command": "ls -la"}}', "OBSERVATION:\na.py"),
    "backticks": ("DISCUSSION\nI look.\n```\nls -la\n```", "a.py"),
}


@pytest.mark.parametrize("form", IN_TEXT)
def test_calls_that_stand_in_text_are_calls(tmp_path: Path, form: str) -> None:
    """SWE-Gym's, SWE-smith's, Qwen's, Anthropic's, Hermes' and SWE-agent's forms. What follows is the result."""
    asks, answers = IN_TEXT[form]
    roles = ("system", "user", "ai", "user") if form == "backticks" else ("system", "human", "gpt", "human")
    says = ["Act by one ```\ncommand\n``` a message.", "Fix it.", asks, answers]
    row = [dict(zip(("from", "value"), pair, strict=True)) for pair in zip(roles, says, strict=True)]
    _, store = analyzed(
        tmp_path,
        {"train.jsonl": as_lines([{"conversations": row}] * 2)},
    )
    assert store.sql("SELECT command, result_tokens FROM tool_calls").fetchall() == [("ls -la", 1)]
    assert store.sql("SELECT text FROM turns").fetchall() == [("Fix it.",)]


def test_a_block_that_ends_an_answer_is_no_call_where_nobody_asked_for_it(tmp_path: Path) -> None:
    said = [{"from": "human", "value": "How do I list files?"}, {"from": "gpt", "value": "So:\n```\nls\n```"}]
    summary, _ = analyzed(tmp_path, {"a.jsonl": as_lines([{"conversations": said}] * 2)})
    assert (summary.sessions, summary.tool_calls) == (1, 0)


def test_answers_in_fenced_blocks_beside_a_verdict_called_target(tmp_path: Path) -> None:
    """As nebius' SWE-agent trajectories come (their card): roles `ai`, words in `text` and `system_prompt`."""

    def said(role: str, text: str) -> dict[str, Any]:
        is_system = role == "system"
        return {"role": role, "text": None if is_system else text, "system_prompt": text if is_system else None}

    acts = [("ls -F", "a.py"), ("open a.py", "[File: a.py]"), ("submit", "diff --git")]
    turns = [said("system", "RESPONSE FORMAT:\n```\nls -a\n```"), said("user", "Solve it.")]
    turns += [m for c, o in acts for m in (said("ai", f"DISCUSSION\nNext.\n```\n{c}\n```"), said("user", o))]
    rows = [
        {
            "instance_id": f"a__b-{n}",
            "model_name": "m",
            "target": n == 0,
            "trajectory": turns,
            "exit_status": "done",
        }
        for n in range(2)
    ]
    for kind in ("a.parquet", "a.jsonl"):
        _, store = analyzed(tmp_path, {kind: as_parquet(rows) if kind == "a.parquet" else as_lines(rows)}, kind)
        asked = "SELECT reward, exit_status FROM attempts ORDER BY reward"
        assert store.sql(asked).fetchall() == [(0.0, "done"), (1.0, "done")]
        assert store.sql("SELECT n_prompts, n_tool_calls FROM sessions").fetchall() == [(1, 3), (1, 3)]


def test_a_conversation_in_two_columns_is_one(tmp_path: Path) -> None:
    """As trainers take them: what was asked, and what is to be answered."""
    call = {"type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}}
    for asked in ([{"role": "user", "content": "Do it."}], "Do it."):
        rows = [
            {"id": ONE, "prompt": asked, "completion": [{"role": "assistant", "content": "", "tool_calls": [call]}]}
        ]
        _, store = analyzed(tmp_path, {"a.parquet": as_parquet(rows)}, f"s{type(asked).__name__}")
        assert facts(store)[0][-3:] == (1, 1, 0)


def test_a_topic_is_no_task(tmp_path: Path) -> None:
    rows = [{"id": f"session-{n:04}", "task": "coding", "model": "m", "messages": chat(f"{n}")} for n in range(2)]
    summary, _ = analyzed(tmp_path, {"a.jsonl": as_lines(rows)})
    assert (summary.sessions, summary.attempts) == (2, 0)


def test_what_datasets_writes_beside_its_tables_is_known(tmp_path: Path) -> None:
    info = {"citation": "", "description": "", "features": {"id": {"dtype": "string"}}, "homepage": "", "license": ""}
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_fingerprint": "a", "_split": "train"}
    files = {"train/data-00000-of-00001.arrow": as_arrow(SMITH), "dataset_dict.json": b'{"splits": ["train"]}'}
    files |= {
        "train/dataset_info.json": json.dumps(info, indent=2).encode(),
        "train/state.json": json.dumps(state).encode(),
    }
    summary, _ = analyzed(tmp_path, files)
    assert (summary.sessions, summary.skipped) == (3, {"not_sessions": 3})


# -- rows that are other formats' files


def span(trace: str) -> dict[str, Any]:
    return {
        "span_id": "s1",
        "span_name": "main",
        "timestamp": "2025-03-19T16:38:37Z",
        "parent_span_id": None,
        "duration": "PT1S",
        "trace_id": trace,
        "status_code": "Ok",
        "status_message": "",
        "events": [],
        "links": [],
        "logs": [],
        "span_attributes": {"openinference.span.kind": "CHAIN"},
        "child_spans": [],
    }


def test_a_trace_and_its_labels_are_read_together(tmp_path: Path) -> None:
    """TRAIL (its card): two columns of JSON text, read as two files of one trace are."""
    labels = {
        "errors": [
            {"category": "Tool-related", "location": "s1", "evidence": "e", "description": "d", "impact": "HIGH"}
        ],
        "scores": [{"reliability_score": 3, "overall": 3}],
    }
    traces = [{"trace_id": f"{n:02}" * 16, "spans": [span(f"{n:02}" * 16)]} for n in range(2)]
    rows = [{"trace": json.dumps(trace), "labels": json.dumps(labels)} for trace in traces]
    files = {f"{trace['trace_id']}.json": json.dumps(trace).encode() for trace in traces}
    marks = {f"marks/{trace['trace_id']}.json": json.dumps(labels).encode() for trace in traces}
    asked = "SELECT session_id, task, value FROM labels ORDER BY ALL"
    _, apart = analyzed(tmp_path, files | marks, "files")
    for n, make in enumerate((as_parquet, as_lines, as_csv)):
        _, store = analyzed(tmp_path, {"gaia.x": make(rows)}, f"s{n}")
        assert store.sql(asked).fetchall() == apart.sql(asked).fetchall() != []


def test_a_column_of_transcripts_is_a_session_a_row(hub: Hub, tmp_path: Path) -> None:
    rows = {
        "session_id": [ONE, TWO, "33333333-cccc"],
        "prompt": ["Fix it.", "Go on.", "Nothing"],
        "trace": [conversation(ONE, "Fix it.").decode(), conversation(TWO, "Go on.").decode(), None],
    }
    hub.sets["ann/table"] = DataSet({"data/train.parquet": table(**rows), "README.md": b"# Table\n"})
    summary = pipeline.analyze(["hub:ann/table"], tmp_path / "store", jobs=1)
    assert sessions(Store(tmp_path / "store")) == [(ONE, "pi", "Fix it."), (TWO, "pi", "Go on.")]
    assert (summary.artifacts, summary.skipped) == (1, {"empty_conversation": 1})
    again = pipeline.analyze(["hub:ann/table"], tmp_path / "store", jobs=1)
    assert (again.parsed, again.unchanged) == (0, 2)


def test_a_row_and_a_file_of_one_session_are_one_session(hub: Hub, tmp_path: Path) -> None:
    hub.sets["bob/files"] = DataSet({"a.jsonl": conversation(ONE, "Fix it.", "Further.")})
    hub.sets["ann/table"] = DataSet({"t.parquet": table(id=[ONE], trace=[conversation(ONE, "Fix it.").decode()])})
    summary = pipeline.analyze(["hub:ann/table", "hub:bob/files"], tmp_path / "store", jobs=1)
    assert (summary.sessions, summary.prompts) == (1, 2)


def test_the_column_that_holds_conversations_is_found_by_what_it_holds(tmp_path: Path) -> None:
    row = {"history": "see the log", "messages": [{"n": 1}], "trajectory": messages("Fix it."), "session_id": ONE}
    _, store = analyzed(tmp_path, {"a.parquet": as_parquet([row, {**row, "session_id": TWO}])})
    assert [row[2] for row in sessions(store)] == ["Fix it.", "Fix it."]


# -- odd rows, odd tables


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [0, 5, 19])
def test_an_empty_row_costs_itself(tmp_path: Path, kind: str, at: int) -> None:
    rows: Rows = [
        {"session_id": f"session-{n:04}", "messages": [] if n == at else messages(f"Do {n}.")} for n in range(20)
    ]
    summary, _ = analyzed(tmp_path, {kind: KINDS[kind](rows)})
    assert (summary.sessions, summary.skipped) == (19, {"empty_conversation": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_begin_empty_hide_none_of_those_that_follow(tmp_path: Path, kind: str) -> None:
    rows: Rows = [
        {"session_id": f"session-{n:04}", "task_id": f"t{n}", "model": "m", "resolved": n > 40,
         "messages": [] if n < 40 else messages(f"Do {n}.")}
        for n in range(50)
    ]  # fmt: skip
    summary, store = analyzed(tmp_path, {kind: KINDS[kind](rows)})
    assert summary.skipped == {"empty_conversation": 40}
    assert store.sql("SELECT count(*) FROM turns").fetchall() == [(10,)]


@pytest.mark.parametrize("odd", ["[" * 100_000, "[1, 2]", '[{"role": "user", "content": NaN', "so it is", "{}"])
def test_an_odd_row_costs_itself(tmp_path: Path, odd: str) -> None:
    rows = [{"session_id": f"session-{n:04}", "messages": json.dumps(messages(f"Do {n}."))} for n in range(10)]
    for n, kind in enumerate(("a.parquet", "a.jsonl")):
        made: Iterable[dict[str, Any]] = [{**rows[0], "messages": odd}, *rows]
        make = as_parquet if kind == "a.parquet" else as_lines
        summary, _ = analyzed(tmp_path, {kind: make([*made])}, f"s{n}")
        assert (summary.sessions, summary.skipped) == (10, {"bad_shape": 1})


def test_an_odd_message_costs_itself(tmp_path: Path) -> None:
    said = [*messages("Fix it.", "Go on."), 7, {"content": "nobody's"}]
    _, store = analyzed(tmp_path, {"a.jsonl": as_lines([{"session_id": i, "messages": said} for i in (ONE, TWO)])})
    assert store.sql("SELECT count(*) FROM events WHERE kind = 'unknown'").fetchall() == [(4,)]


def test_typed_times_are_times(tmp_path: Path) -> None:
    began = datetime.datetime(2026, 3, 1, 10, tzinfo=datetime.UTC)
    said = [{**m, "timestamp": began + datetime.timedelta(seconds=n)} for n, m in enumerate(messages("Fix it."))]
    _, store = analyzed(
        tmp_path, {"a.parquet": as_parquet([{"session_id": ONE, "created_at": began, "messages": said}])}
    )
    (found,) = store.sql("SELECT started_at, ended_at FROM sessions").fetchall()
    assert [at.astimezone(datetime.UTC) for at in found] == [began, began + datetime.timedelta(seconds=1)]


@pytest.mark.parametrize(
    ("data", "reason", "says"),
    [
        (table(session_id=[ONE], words=["yes"], n=[1]), "no_conversation_column", "session_id, words, n"),
        (table(messages=[[1, 2], [3]], n=[1, 2]), "no_conversation_column", "messages, n"),
        (table(trace=["so", "it is"]), "no_conversation_column", "trace"),
        (as_arrow([{"a": 1}]), "no_conversation_column", "a"),
        (b"PAR1 cut in the middle", "bad_parquet", ""),
    ],
    ids=["words", "numbers", "other words", "arrow", "damaged"],
)
def test_a_table_without_conversations_is_named_with_its_columns(
    hub: Hub, tmp_path: Path, data: bytes, reason: str, says: str
) -> None:
    hub.sets["ann/table"] = DataSet({"a.parquet": data, "b.parquet": table(trace=[conversation(ONE, "x").decode()])})
    for n, spec in enumerate(("hub:ann/table", str(tmp_path / "here"))):
        (tmp_path / "here").mkdir(exist_ok=True)
        (tmp_path / "here/a.parquet").write_bytes(data)
        summary = pipeline.analyze([spec], tmp_path / f"s{n}", jobs=1)
        assert summary.skipped == {reason: 1}
        notes = Store(tmp_path / f"s{n}").sql("SELECT note FROM artifacts WHERE skipped > 0").fetchall()
        assert notes == [(f"table with the columns {says}" if says else None,)]
        assert says in json.dumps([u.what for u in summary.unread])


def test_a_csv_without_conversations_is_named_too(tmp_path: Path) -> None:
    files = {"a.csv": b"tool,calls\nbash,12\n", "b.tsv.gz": gzip.compress(b"clip\tlabel\nx\ty\n"), "c.csv": b"words\n"}
    summary, _ = analyzed(tmp_path, files)
    assert {u.what for u in summary.unread} == {
        f"table with the columns {names}" for names in ("tool, calls", "clip, label")
    }
    assert summary.other_files == 1


@pytest.mark.parametrize("kind", ["train.parquet", "train.csv", "text.parquet", "train.jsonl", "train.json"])
def test_conversations_of_an_unknown_form_are_told_beside_the_outcomes(tmp_path: Path, kind: str) -> None:
    rows = [{"task_id": f"t{n}", "success": True, "model": "m", "steps": [{"do": "ls", "saw": "a"}]} for n in range(2)]
    make = KINDS[kind]
    summary, _ = analyzed(tmp_path, {kind: make(rows)})
    assert (summary.attempts, summary.skipped) == (2, {"conversations_not_read": 1})
    assert "column steps" in summary.unread[0].what
    paths: Rows = [{**row, "steps": f"runs/{n}.json"} for n, row in enumerate(rows)]
    assert analyzed(tmp_path, {kind: make(paths)}, "paths")[0].skipped == {}


def test_a_file_about_a_table_takes_nothing_from_it(hub: Hub, tmp_path: Path) -> None:
    about = [as_lines([{"traj_id": ONE, "difficulty": "easy", "solved": True}] * 3), b'{"builder_name": "parquet"}']
    for n, other in enumerate(about):
        hub.sets[f"ann/t{n}"] = DataSet({"data/train.parquet": as_parquet(SMITH), "manifest.jsonl": other})
        assert pipeline.analyze([f"hub:ann/t{n}"], tmp_path / f"s{n}", jobs=1).sessions == 3


def test_a_table_beside_transcripts_is_named_and_not_fetched(hub: Hub, tmp_path: Path) -> None:
    hub.sets["ann/both"] = DataSet({"a.jsonl": conversation(ONE, "Fix it."), "data/turns.parquet": as_parquet(SMITH)})
    summary = pipeline.analyze(["hub:ann/both"], tmp_path / "store", jobs=1)
    assert (summary.sessions, summary.skipped, hub.downloads()) == (1, {"beside_transcripts": 1}, ["a.jsonl"])


def in_groups(*, rows: int, of: int, words: int = 20) -> bytes:
    """A table of row groups of so many rows, packed so that damage shows."""
    prompts = [f"Prompt {n} {'again ' * words}" for n in range(rows)]
    columns = {"id": [f"session-{n:04}" for n in range(rows)], "messages": [json.dumps(messages(p)) for p in prompts]}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, row_group_size=of, compression="gzip")
    return out.getvalue()


@pytest.mark.parametrize("group", [0, 1, 2])
def test_damage_costs_the_rows_of_its_group_alone(tmp_path: Path, group: int) -> None:
    data = in_groups(rows=9, of=3)
    column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group).column(1)
    at = column.dictionary_page_offset or column.data_page_offset
    summary, store = analyzed(tmp_path, {"a.parquet": data[:at] + b"\xff" * 40 + data[at + 40 :]})
    lost = range(3 * group, 3 * group + 3)
    assert [row[0] for row in sessions(store)] == [f"session-{n:04}" for n in range(9) if n not in lost]
    assert summary.skipped == {"bad_parquet": 3}


@pytest.mark.parametrize("kind", ["train.parquet", "text.parquet", "data-00000-of-00001.arrow", "file.arrow"])
def test_damage_anywhere_in_a_packed_table_raises_nothing(kind: str) -> None:
    """Arrow trusts offsets that nobody validated, and would end the process."""
    whole, draw = KINDS[kind](SMITH * 3), random.Random(5)  # noqa: S311  (the same damage each time)
    for _ in range(60):
        spoilt = bytearray(whole)
        for _ in range(draw.choice((1, 3, 10))):
            spoilt[draw.randrange(len(spoilt))] = draw.randrange(256)
        data = bytes(spoilt[: draw.choice((len(spoilt), len(spoilt), draw.randrange(len(spoilt))))])
        identify(Head(data, "a", complete=True))
        by_name("conversation-table").read([given(data, "conversation-table")])


def test_a_group_beyond_all_measure_is_counted_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = in_groups(rows=2, of=2), in_groups(rows=2, of=2, words=400)
    sizes = [pq.ParquetFile(io.BytesIO(d)).metadata.row_group(0).total_byte_size for d in (small, large)]
    monkeypatch.setattr(tables, "GROUP_BYTES_MAX", sum(sizes) // 2)
    summary, _ = analyzed(tmp_path, {"a.parquet": large, "b.parquet": small})
    assert (summary.sessions, summary.skipped) == (2, {"row_group_too_large": 2})


def test_text_that_is_no_utf8_costs_its_row(tmp_path: Path) -> None:
    rows = [conversation(ONE, "Fix it."), b"\xff\xfe", conversation(TWO, "Go on.")]
    odd = pa.Array.from_buffers(pa.string(), 3, pa.array([*rows], pa.binary()).buffers())
    summary, store = analyzed(tmp_path, {"a.parquet": table(trace=pa.concat_arrays([odd, odd]))})
    assert {row[0] for row in sessions(store)} == {ONE, TWO}
    assert summary.skipped == {"bad_shape": 2}


# -- whose a row is, and copies


def test_the_number_of_a_row_is_no_session_id(tmp_path: Path) -> None:
    files = {
        f"{a}.jsonl": as_lines(
            [{"id": 1, "agent": "x", "messages": messages(a)}, {"id": 2, "agent": "x", "messages": messages(b)}]
        )
        for a, b in (("A", "B"), ("C", "D"))
    }
    summary, _ = analyzed(tmp_path, files)
    assert (summary.sessions, summary.prompts) == (4, 4)


def test_attempts_at_one_task_that_share_an_id_are_apart(tmp_path: Path) -> None:
    said = [chat("x"), [*chat("x")[:-1], {"role": "assistant", "content": "I gave up."}]]
    rows = [
        {"id": "django__django-1", "instance_id": "django__django-1", "resolved": n == 0, "messages": m}
        for n, m in enumerate(said)
    ]
    _, store = analyzed(tmp_path, {"a.parquet": as_parquet(rows)})
    assert sorted(row[5] for row in facts(store)) == [0.0, 1.0]


@pytest.mark.parametrize(
    "kinds", [("train.parquet", "all.parquet"), ("train.parquet", "all.jsonl"), ("train.jsonl", "all.csv")]
)
def test_rows_that_splits_repeat_count_once(tmp_path: Path, kinds: tuple[str, str]) -> None:
    rows: Rows = [{"messages": chat(f"issue {n}"), "instance_id": f"o__r-{n}", "resolved": True} for n in range(4)]
    makes = {"parquet": as_parquet, "jsonl": as_lines, "csv": as_csv}
    files = {kind: makes[kind.partition(".")[2]](rows[:2] if n == 0 else rows) for n, kind in enumerate(kinds)}
    summary, _ = analyzed(tmp_path, files)
    assert (summary.sessions, summary.attempts) == (4, 4)
    assert summary.repeated + summary.repeated_records > 0, "copies are told"


@pytest.mark.parametrize("grows", ["a", "b"])
def test_files_of_one_session_stay_together_when_one_of_them_grows(tmp_path: Path, grows: str) -> None:
    def said(name: str) -> str:
        return json.dumps({"traj_id": name, "messages": messages(f"Repair {name}.")}) + "\n"

    folder = tmp_path / "in"
    folder.mkdir()
    for side in "ab":
        (folder / f"{side}.jsonl").write_text("".join(map(said, (f"{side}1", f"{side}2", "both"))))
    pipeline.analyze([str(folder)], tmp_path / "store")
    with (folder / f"{grows}.jsonl").open("a") as file:
        file.write(said("more"))
    summary, store = pipeline.analyze_into([str(folder)], tmp_path / "store")
    assert summary.sessions == 6 and summary.repeated_records == 1
    # The keys of a million rows would be as many texts in the main process: the table of sessions has them.
    assert max(len(entry.keys) for entry in store.manifest.files.values()) <= 2


def test_tables_of_few_bytes_and_many_rows_are_shards_of_their_own(tmp_path: Path) -> None:
    for n in range(6):
        rows = [{"traj_id": f"{n}-{at}", "messages": messages(f"Case {at}.")} for at in range(9)]
        (tmp_path / f"{n}.parquet").write_bytes(as_parquet(rows))
    files = list(tmp_path.iterdir())
    size = sum(file.stat().st_size for file in files)
    plan = planning.make_plan([str(tmp_path)], Manifest(), shard_bytes=size * by_name("conversation-table").weight // 3)
    assert 3 <= len(plan.shards) < len(files)


def test_tries_with_the_same_words_are_apart_by_task_verdict_and_number(tmp_path: Path) -> None:
    said = chat("x")
    rows = [{"instance_id": f"o__r-{n}", "resolved": True, "messages": said} for n in (1, 2)]
    rows += [{"instance_id": "o__r-1", "resolved": False, "messages": said}]
    _, store = analyzed(tmp_path, {"a.parquet": as_parquet(rows), "b.csv": as_csv(rows[:2])})
    assert sorted((row[4], row[5]) for row in facts(store)) == [("o__r-1", 0.0), ("o__r-1", 1.0), ("o__r-2", 1.0)]
    numbered = [{**rows[0], "seed": n, "split": s} for n in (1, 2) for s in ("train", "all")]
    summary, _ = analyzed(tmp_path, {"a.jsonl": as_lines(numbered)}, "numbered")
    assert (summary.attempts, summary.repeated_records) == (2, 2)


@pytest.mark.slow
def test_a_long_table_is_read_in_linear_time(tmp_path: Path) -> None:
    rows = [
        {"session_id": f"session-{n:06}", "messages": messages(f"{n} {'x' * 1000}"), "reward": 1.0} for n in range(4000)
    ]
    (tmp_path / "a.parquet").write_bytes(as_parquet(rows))
    started = time.process_time()
    assert pipeline.analyze([str(tmp_path / "a.parquet")], tmp_path / "store", jobs=1).sessions == 4000
    assert time.process_time() - started < 60


def test_hub_lists_a_table_as_one_file(hub: Hub) -> None:
    hub.sets["ann/table"] = DataSet({"a.parquet": as_parquet(SMITH)})
    (file,) = open_source("hub:ann/table")
    assert isinstance(file, RawFile) and not isinstance(file, Unreadable)


# -- caches of the Hub's, and which data set a file is of


def cached(folder: Path, commits: dict[str, dict[str, bytes]], main: str = "") -> Path:
    """A data set as huggingface_hub keeps it: files of snapshots are links to blobs."""
    data_set = folder / "datasets--anna--runs"
    for commit, files in commits.items():
        for path, content in files.items():
            blob = data_set / "blobs" / hashlib.sha256(content).hexdigest()
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(content)
            link = data_set / "snapshots" / commit / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(blob, link.parent))
    if main:
        (data_set / "refs").mkdir()
        (data_set / "refs" / "main").write_text(main)
    return data_set


def outcomes(n: int) -> bytes:
    return as_parquet([{"instance_id": f"o__r-{i}", "resolved": i == 0, "model": "m"} for i in range(n)])


OLD, NEW = "1" * 40, "2" * 40


@pytest.mark.parametrize(
    ("commits", "main", "attempts", "repeated"),
    [
        ({OLD: {"data/train.parquet": outcomes(2)}, NEW: {"data/train.parquet": outcomes(2)}}, "", 2, 1),
        ({OLD: {"data/train.parquet": outcomes(2)}, NEW: {"data/train.parquet": outcomes(3)}}, NEW, 3, 1),
        ({OLD: {"data/train.parquet": outcomes(2)}, NEW: {"data/train.parquet": outcomes(3)}}, OLD, 2, 1),
        ({OLD: {"a.parquet": outcomes(2), "data/b.parquet": outcomes(2)}}, OLD, 2, 1),
        ({OLD: {"a.parquet": outcomes(2)}, NEW: {"b.parquet": outcomes(3)}}, NEW, 3, 0),
    ],
    ids=["one blob", "a newer commit", "main is older", "two names of a blob", "two parts"],
)
def test_a_table_of_a_cache_counts_once(
    tmp_path: Path, commits: dict[str, dict[str, bytes]], main: str, attempts: int, repeated: int
) -> None:
    cached(tmp_path / "hub", commits, main)
    summary = pipeline.analyze([str(tmp_path / "hub")], tmp_path / "store", jobs=1)
    assert (summary.attempts, summary.repeated, summary.skipped, summary.unread) == (attempts, repeated, {}, [])


def test_rows_of_outcomes_that_splits_or_commits_repeat_count_once(hub: Hub, tmp_path: Path) -> None:
    rows = [{"instance_id": f"o__r-{n}", "resolved": n == 0, "model": "m"} for n in range(3)]
    several = {"data/all.csv": as_csv([*rows, rows[0]]), "data/train.parquet": as_parquet(rows[:2])}
    hub.sets["ann/set"] = DataSet(several)
    summary = pipeline.analyze(["hub:ann/set#*"], tmp_path / "store", jobs=1)
    assert (summary.attempts, summary.repeated) == (4, 1), "equal rows of one file are tries; another split repeats"
    first = hub.sets["ann/set"].commit
    summary = pipeline.analyze([f"hub:ann/set@{first}#*", "hub:ann/set#*"], tmp_path / "both", jobs=1)
    assert summary.attempts == 4
    _, store = analyzed(tmp_path, {"run1/r.parquet": as_parquet(rows), "run2/r.parquet": as_parquet(rows)}, "runs")
    assert len(facts(store)) == 6, "elsewhere two folders are two runs"


def test_a_link_to_a_file_that_is_read_anyway_counts_once(tmp_path: Path) -> None:
    (tmp_path / "mine/runs").mkdir(parents=True)
    (tmp_path / "mine/runs/a.parquet").write_bytes(outcomes(2))
    (tmp_path / "mine/latest.parquet").symlink_to("runs/a.parquet")
    (tmp_path / "mine/.git").mkdir()
    (tmp_path / "mine/.git/b.parquet").write_bytes(outcomes(3))
    (tmp_path / "mine/kept.parquet").symlink_to(".git/b.parquet")
    summary = pipeline.analyze([str(tmp_path / "mine")], tmp_path / "store", jobs=1)
    assert (summary.attempts, summary.repeated) == (5, 1), "a link into a folder that is not walked is followed"
    named = pipeline.analyze([str(tmp_path / "mine/latest.parquet")], tmp_path / "other", jobs=1)
    assert named.attempts == 2


def test_data_set_commit_configuration_and_split_are_told(hub: Hub, tmp_path: Path) -> None:
    files = {
        "data/train-00000-of-00001.parquet": outcomes(2),
        "small/test.jsonl": as_lines(SMITH),
        "big/tool/dev/a.csv": as_csv(SMITH),
    }
    hub.sets["ann/set"] = DataSet(files)
    pipeline.analyze(["hub:ann/set#*"], tmp_path / "store", jobs=1)
    cached(tmp_path / "hub", {NEW: files})
    pipeline.analyze([str(tmp_path / "hub")], tmp_path / "cached", jobs=1)
    told = [("big/tool", "dev"), (None, "train"), ("small", "test")]
    for place, name, commit in (("store", "ann/set", hub.sets["ann/set"].commit), ("cached", "anna/runs", NEW)):
        asked = "SELECT dataset, revision, config, split FROM artifacts ORDER BY path"
        found = Store(tmp_path / place).sql(asked).fetchall()
        assert found == [(name, commit, config, split) for config, split in told]


def test_elsewhere_a_file_is_of_no_data_set(tmp_path: Path) -> None:
    _, store = analyzed(tmp_path, {"data/train.parquet": outcomes(2)})
    assert store.sql("SELECT dataset, revision, config, split FROM artifacts").fetchall() == [(None,) * 4]


def test_tables_of_a_store_and_of_its_export_need_no_word(tmp_path: Path) -> None:
    _, store = analyzed(tmp_path, {"a.jsonl": as_lines(SMITH)})
    assert (
        main(["export", "--to", "parquet", "-o", str(tmp_path / "out"), "--store", str(store.folder), "--quiet"]) == 0
    )
    for n, place in enumerate((tmp_path / "out", store.folder)):
        summary = pipeline.analyze([place], tmp_path / f"again{n}", jobs=1)
        assert "no_conversation_column" not in summary.skipped
