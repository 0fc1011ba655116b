"""Transcripts in the rows of a table: found by what the columns hold, taken out once, read like any other file."""

from __future__ import annotations

import io
import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.ingest import pipeline
from agentsignals.sources import RawFile, Unreadable, open_source, parquet_rows, read
from agentsignals.sources import hub as source
from agentsignals.store import Store
from tests.hub_server import DataSet, Hub, conversation, hub, messages, table

__all__ = ["hub"]

ONE, TWO = "11111111-aaaa", "22222222-bbbb"


def analyzed(hub: Hub, data: bytes, tmp_path: Path) -> tuple[pipeline.Summary, list[tuple[str, str, str]]]:
    """A data set of this one table: what a run says, and each prompt with its session and agent."""
    hub.sets["ann/table"] = DataSet({"data/train.parquet": data, "README.md": b"# Table\n"})
    store = tmp_path / "store"
    summary = pipeline.analyze(["hub:ann/table"], store, jobs=1)
    found = Store(store).sql("SELECT session_id, agent, text FROM turns JOIN sessions USING (session_id) ORDER BY ALL")
    return summary, found.fetchall()


def test_a_column_of_transcripts_is_a_session_a_row(hub: Hub, tmp_path: Path) -> None:
    data = table(
        session_id=[ONE, TWO, "33333333-cccc"],
        prompt=["Fix it.", "Go on.", "Nothing"],
        trace=[conversation(ONE, "Fix it.").decode(), conversation(TWO, "Go on.").decode(), None],
    )
    summary, found = analyzed(hub, data, tmp_path)
    assert found == [(ONE, "pi", "Fix it."), (TWO, "pi", "Go on.")]
    assert (summary.artifacts, summary.skipped) == (2, {})
    asked = f"SELECT path FROM artifacts JOIN sessions USING (artifact_id) WHERE session_id = '{TWO}'"
    ((uri,),) = Store(tmp_path / "store").sql(asked).fetchall()
    assert uri == "hub:ann/table@main:data/train.parquet#1"
    again = pipeline.analyze(["hub:ann/table"], tmp_path / "store", jobs=1)
    assert (again.parsed, again.unchanged) == (0, 3)


@pytest.mark.parametrize("odd", ["[" * 100_000, "[1, 2]", '[{"role": "user", "content": NaN'])
def test_a_row_that_cannot_be_read_is_counted_and_the_others_are_read(hub: Hub, tmp_path: Path, odd: str) -> None:
    rows = [json.dumps(messages(f"Prompt {n}")) for n in range(10)]
    data = table(id=[f"session-{n:04}" for n in range(11)], messages=[*rows, odd])
    summary, found = analyzed(hub, data, tmp_path)
    assert (len(found), summary.skipped) == (10, {"empty_file": 1})


def test_a_row_and_a_file_of_one_session_are_one_session(hub: Hub, tmp_path: Path) -> None:
    hub.sets["bob/files"] = DataSet({"a.jsonl": conversation(ONE, "Fix it.", "Further.")})
    hub.sets["ann/table"] = DataSet({"t.parquet": table(id=[ONE], text=[conversation(ONE, "Fix it.").decode()])})
    summary = pipeline.analyze(["hub:ann/table", "hub:bob/files"], tmp_path / "store", jobs=1)
    assert (summary.sessions, summary.prompts) == (1, 2)


@pytest.mark.parametrize("shape", ["structs", "texts", "document"])
def test_a_column_of_messages_is_read_as_a_conversation(hub: Hub, tmp_path: Path, shape: str) -> None:
    said = [messages("Fix it.", "Again."), messages("Go on.")]
    column = {
        "structs": said,
        "texts": [[json.dumps(m) for m in row] for row in said],
        "document": [json.dumps(row) for row in said],
    }[shape]
    data = table(session_id=[ONE, TWO], harness=["codex", "hermes"], model=["m-1", "m-2"], messages=column)
    _, found = analyzed(hub, data, tmp_path)
    assert found == [(ONE, "codex", "Again."), (ONE, "codex", "Fix it."), (TWO, "hermes", "Go on.")]
    models = Store(tmp_path / "store").sql("SELECT DISTINCT session_id, model FROM steps ORDER BY ALL").fetchall()
    assert models == [(ONE, "m-1"), (TWO, "m-2")]


def test_calls_and_results_of_messages_meet(hub: Hub, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    bare = {"id": "c2", "name": "read", "arguments": {"path": "a.py"}}
    said = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call, bare]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "tool", "tool_call_id": "c2", "content": "x = 1"},
    ]
    analyzed(hub, table(session_id=[ONE], messages=[json.dumps(said)]), tmp_path)
    calls = Store(tmp_path / "store").session(ONE).tool_calls
    assert [(c.name, c.command or c.path, c.result_tokens) for c in calls] == [("bash", "ls", 1), ("read", "a.py", 2)]


def test_pairs_of_who_and_what_are_messages_too(hub: Hub, tmp_path: Path) -> None:
    said = [[{"from": "human", "value": "Fix it."}, {"from": "gpt", "value": "Done."}]]
    _, found = analyzed(hub, table(conversations=said, id=[ONE]), tmp_path)
    assert found == [(ONE, "unknown", "Fix it.")]


def test_eight_rows_tell_what_a_column_holds(hub: Hub, tmp_path: Path) -> None:
    ids = [f"{n}1111111-aaaa" for n in range(8)]
    traces = [conversation(one, f"Do {n}.").decode() for n, one in enumerate(ids)]
    _, found = analyzed(hub, table(session_id=[*ids, "x"], trace=[*traces, "no transcript"]), tmp_path)
    assert len(found) == 8


def test_the_number_of_a_row_is_no_session_id(hub: Hub, tmp_path: Path) -> None:
    hub.sets["bob/table"] = DataSet({"t.parquet": table(id=["1", "2"], messages=[messages("C"), messages("D")])})
    data = table(id=["1", "2"], messages=[messages("A"), messages("B")])
    analyzed(hub, data, tmp_path)
    summary = pipeline.analyze(["hub:bob/table", "hub:ann/table"], tmp_path / "store", jobs=1)
    assert (summary.sessions, summary.prompts) == (4, 4)


def test_the_column_that_holds_most_is_taken(hub: Hub, tmp_path: Path) -> None:
    data = table(
        first=[json.dumps({"type": "meta", "n": 1})],
        session_id=[ONE],
        trace=[conversation(ONE, "Fix it.").decode()],
        metadata=[json.dumps({"type": "x"})],
    )
    assert analyzed(hub, data, tmp_path)[1] == [(ONE, "pi", "Fix it.")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (table(session_id=[ONE, TWO], content_text=["yes", "{no json"], n=[1, 2]), "no_transcript_column"),
        (table(row=['{"a": 1}', '{"a": 2}']), "no_transcript_column"),
        (table(messages=[[1, 2], [3]]), "no_transcript_column"),
        (table(trace=[None, None], n=[1, 2]), "no_transcript_column"),
        (table(trace=["[" * 60_000]), "no_transcript_column"),
        (table(), "no_transcript_column"),
        (b"PAR1 cut in the middle", "bad_parquet"),
        (b"", "bad_parquet"),
    ],
    ids=["words", "any objects", "lists of numbers", "nothing", "deep", "no columns", "damaged", "empty"],
)
def test_a_table_without_transcripts_is_counted_with_the_reason(hub: Hub, data: bytes, reason: str) -> None:
    hub.sets["ann/table"] = DataSet({"a.parquet": data, "b.parquet": table(trace=[conversation(ONE, "x").decode()])})
    found = list(open_source("hub:ann/table"))
    assert [f.reason for f in found if isinstance(f, Unreadable)] == [reason]
    assert [f.uri for f in found if isinstance(f, RawFile)] == ["hub:ann/table@main:b.parquet#0"]


def in_groups(*, rows: int, of: int, words: int = 20) -> bytes:
    """A table of row groups of so many rows, packed so that damage shows."""
    prompts = [f"Prompt {n} {'again ' * words}" for n in range(rows)]
    columns = {"id": [f"session-{n:04}" for n in range(rows)], "messages": [json.dumps(messages(p)) for p in prompts]}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, row_group_size=of, compression="gzip")
    return out.getvalue()


def with_damage(data: bytes, group: int) -> bytes:
    """The table with the first page of this group's last column spoilt."""
    column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group).column(1)
    at = column.dictionary_page_offset or column.data_page_offset
    return data[:at] + b"\xff" * 40 + data[at + 40 :]


@pytest.mark.parametrize("group", [0, 1, 2])
def test_damage_costs_the_rows_of_its_group_alone(hub: Hub, tmp_path: Path, group: int) -> None:
    summary, found = analyzed(hub, with_damage(in_groups(rows=9, of=3), group), tmp_path)
    lost = range(3 * group, 3 * group + 3)
    assert [row[0] for row in found] == [f"session-{n:04}" for n in range(9) if n not in lost]
    assert summary.skipped == {"bad_parquet": 1}
    asked = "SELECT path, note FROM artifacts WHERE skipped > 0"
    (told,) = Store(tmp_path / "store").sql(asked).fetchall()
    assert told == (f"hub:ann/table@main:data/train.parquet#{lost[0]}-{lost[-1]}", "3 rows were not read")


def test_a_group_beyond_all_measure_is_counted_and_the_others_are_read(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = in_groups(rows=2, of=2), in_groups(rows=2, of=2, words=400)
    sizes = [pq.ParquetFile(io.BytesIO(d)).metadata.row_group(0).total_byte_size for d in (small, large)]
    monkeypatch.setattr(parquet_rows, "GROUP_BYTES_MAX", sum(sizes) // 2)
    hub.sets["ann/large"] = DataSet({"a.parquet": large, "b.parquet": small})
    found = list(open_source("hub:ann/large"))
    assert [(f.uri, f.reason) for f in found if isinstance(f, Unreadable)] == [
        ("hub:ann/large@main:a.parquet#0-1", "row_group_too_large")
    ]
    assert [f.uri[-3:] for f in found if isinstance(f, RawFile)] == ["t#0", "t#1"]


def test_text_that_is_no_utf8_costs_its_row(hub: Hub, tmp_path: Path) -> None:
    rows = [conversation(ONE, "Fix it."), b"\xff\xfe", conversation(TWO, "Go on.")]
    odd = pa.Array.from_buffers(pa.string(), 3, pa.array([*rows], pa.binary()).buffers())
    head = pa.array([rows[0].decode()] * parquet_rows.PROBED_ROWS)
    summary, found = analyzed(hub, table(trace=pa.concat_arrays([head, odd])), tmp_path)
    assert {row[0] for row in found} == {ONE, TWO}
    assert summary.skipped == {"empty_file": 1}


def test_rows_are_taken_out_again_when_the_cache_lost_them(hub: Hub) -> None:
    text = conversation(ONE, "Fix it.")
    hub.sets["ann/table"] = DataSet({"a.parquet": table(trace=[text.decode()])})
    (row,) = open_source("hub:ann/table")
    assert isinstance(row, RawFile)
    shutil.rmtree(source.cache_folder() / "rows")
    assert next(read([row])) == text
    (lost,) = (source.cache_folder() / "rows").rglob("*.gz")
    lost.unlink()
    assert next(read([row])) == text, "also where the index is still there"


@pytest.mark.slow
def test_a_long_table_is_read_in_linear_time(hub: Hub) -> None:
    hub.sets["ann/table"] = DataSet({"a.parquet": table(messages=[messages("x" * 1000)] * 2000)})
    started = time.process_time()
    assert len(list(open_source("hub:ann/table"))) == 2000
    assert time.process_time() - started < 5
