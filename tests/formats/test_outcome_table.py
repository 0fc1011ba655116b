"""Which tables are attempts, and what their columns say (design/formats.md#tables-of-outcomes)."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.cli import main
from agentsignals.formats.outcome_table import FORMAT
from agentsignals.model import Artifact, Attempt
from tests.formats.reading import format_of as claimed
from tests.formats.reading import given
from tests.ingest.test_data_sets import as_lines


def as_csv(rows: list[dict[str, Any]], separator: str = ",") -> bytes:
    lines = [separator.join("" if v is None else str(v) for v in row.values()) for row in rows]
    return "\n".join([separator.join(rows[0]), *lines, ""]).encode()


def as_parquet(rows: list[dict[str, Any]], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, **options)
    return out.getvalue()


def read(data: bytes) -> tuple[list[Attempt], Artifact]:
    file = given(data, "outcome-table", "a/t")
    return FORMAT.read([file]).attempts, file.artifact


ROWS: list[dict[str, Any]] = [
    {"task_id": "fix-1", "model": "m1", "passed": True, "cost_usd": 0.5},
    {"task_id": "fix-2", "model": "m1", "passed": False, "cost_usd": None},
    {"task_id": "fix-3", "model": "m2", "passed": None, "cost_usd": 0.25},
]


@pytest.mark.parametrize(
    "row",
    [
        {"Task ID": "a", "Agent": "x", "Resolved": "yes"},
        {"instance_id": "o__r-1", "resolved": 1},
        {"task_name": "a", "run": 3, "reward": 0.5},
        {"problem": "two sum", "model_name": "m", "is_correct": "false"},
        {"task": "a", "scaffold": "x", "outcome": "fail"},
    ],
)
def test_usual_names_are_known(row: dict[str, Any]) -> None:
    assert claimed(as_csv([row, row])) == "outcome-table"
    assert claimed(as_lines([row, row])) == "outcome-table"


@pytest.mark.parametrize(
    ("row", "lacks"),
    [
        ({"task_id": "a", "passed": True}, "no_model_column"),
        ({"instance_id": "a", "model": "m", "completion": "x"}, "no_outcome_column"),
        ({"model": "m", "passed": True}, "no_task_column"),
        ({"task_id": "a", "model": "m", "passed": True, "n_samples": 10}, "rows_of_sums"),
    ],
)
def test_a_near_miss_says_what_it_lacks(row: dict[str, Any], lacks: str) -> None:
    for data in (as_csv([row, row]), as_parquet([row, row])):
        assert claimed(data) == "outcome-table"
        parts, artifact = read(data)
        assert (parts, artifact.skipped_reasons) == ([], {lacks: 1})
    assert claimed(as_lines([row, row])) is None, "other formats' lines may have such keys"


@pytest.mark.parametrize(
    "data",
    [
        as_csv([{"name": "a", "price": 3}] * 3),
        as_csv([{"model": "ford", "score": 3}] * 3),
        as_csv([{"task": "wash up", "status": "done", "owner": "me"}] * 3),
        as_csv([{"task": "mmlu", "model": "m", "score": 0.73}] * 3),
        as_csv([{"task": "mmlu", "model": "m", "passed": 0.73}] * 3),
        as_csv([{"task_id": "a", "model": "m", "passed": 12}] * 3),
        as_csv([{"task_id": "a", "layer": 3, "score": 0.2}] * 3),
        as_csv([{"task_id": "a", "model": "m", "score": 0.5, "n_samples": 10}] * 3),
        as_csv([{"task_id": "x" * 400, "model": "m", "passed": True}] * 3),
        as_lines([{"task_id": "a", "model": "m", "passed": True}]),
        as_lines([{"task_id": {"a": 1}, "model": "m", "passed": True}] * 3),
        b"task_id, model, passed\n",
        b"The task_id, the model and what passed are columns.\nSo it is,\nor not.\n",
        as_parquet([{"id": 1, "text": "x"}]),
        b"PAR1 but no table",
    ],
)
def test_anything_else_is_no_table_of_outcomes(data: bytes) -> None:
    assert claimed(data) is None


def test_outcomes_beside_conversations_as_text_are_a_table_of_conversations() -> None:
    said = '[{"role": "user", "content": "x"}]'
    assert claimed(as_lines([{"task_id": "a", "model": "m", "passed": True, "messages": said}] * 3)) == (
        "conversation-table"
    )


def test_a_table_of_any_number_of_rows_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsignals.formats.outcome_table.ROWS_MAX", 2)
    for data in (as_csv(ROWS), as_lines(ROWS), as_parquet(ROWS)):
        parts, artifact = read(data)
        assert (len(parts), artifact.skipped_reasons) == (2, {"too_many_rows": 1})


def test_a_value_that_a_dictionary_holds_once_is_made_once() -> None:
    rows, model = 2_000, pa.array(["m" * 1_000_000])
    columns = {
        "task_id": pa.array(["a"] * rows), "passed": pa.array([True] * rows),
        "model": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), model),
    }  # fmt: skip
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, store_schema=False)  # as texts: what was written as a dictionary isn't told
    data = out.getvalue()
    assert len(data) < 200_000, "two gigabytes where each row has its own"
    tracemalloc.start()
    try:
        parts, _ = read(data)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 50_000_000
    assert len(parts) == rows
    assert "model_id" not in parts[0].observed


def test_odd_columns_of_parquet_are_absent() -> None:
    """Objects for a name, lists, numbers of any kind, two columns of one name, bytes that are no text."""
    table = pa.table(
        [
            pa.array(["a", "b"]), pa.array([{"x": 1}, None]), pa.array([["t", "u" * 70_000], None]),
            pa.array([1.5, None]).cast(pa.decimal128(5, 2)), pa.array(["no", "yes"]).cast(pa.large_string()),
            pa.array(["m", "m"]), pa.array(["n", "n"]), pa.array([b"\xff", b"r"]),
        ],
        names=["task_id", "agent", "tools", "cost", "passed", "model", "model", "run"],
    )  # fmt: skip
    out = io.BytesIO()
    pq.write_table(table, out)
    parts, artifact = read(out.getvalue())
    assert [(p.task_id, p.reward, p.run_id) for p in parts] == [("a", 0.0, None), ("b", 1.0, None)]
    assert [sorted(p.observed) for p in parts] == [["model_id"], ["model_id"]]
    assert artifact.skipped == 0


def test_columns_that_are_not_read_cost_nothing() -> None:
    rows = [{**row, "words": "x" * 100, "when": None, "passed": row["passed"]} for row in ROWS]
    parts, _ = read(as_parquet(rows))
    assert len(parts) == 3


@pytest.mark.slow
def test_candidates_are_compared_by_a_table_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """30 tasks, of which the one solves every third, the other every second."""
    rows = [
        {"task_id": f"t{n}", "model": model, "outcome": "fail" if n % every else "pass"}
        for model, every in (("a", 3), ("b", 2))
        for n in range(30)
    ]
    (tmp_path / "t.csv").write_bytes(as_csv(rows))
    store = ["--store", str(tmp_path / "s")]
    assert main(["analyze", str(tmp_path / "t.csv"), *store, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["compare", "--baseline", "a", "--json", *store]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert {c["name"]: c["first"]["value"] for c in compared["candidates"]} == {"a": 10 / 30, "b": 15 / 30}
    assert main(["failures", "--json", *store]) == 0
    capsys.readouterr()
    pytest.importorskip("sklearn", reason="scikit-learn, of the extra `drivers`, is not installed")
    assert main(["drivers", "--json", *store]) == 0, "no attempt has a prompt, and models are fitted without"
    made = json.loads(capsys.readouterr().out)
    assert made["without_models"] == "" and made["models"]["attempts"] == 60


def test_a_bad_row_costs_itself() -> None:
    data = as_csv(ROWS) + b"fix-4,m2\nfix-5,m2,maybe,\n\nfix-6,m2,no,0.1\n" + b'"' + b"x" * 200_000 + b"\n"
    parts, artifact = read(data)
    assert [p.task_id for p in parts] == ["fix-1", "fix-2", "fix-3", "fix-6"]
    assert artifact.skipped_reasons == {"bad_shape": 3}
    assert artifact.records == 7
