"""Questions in SQL: what is one SELECT is answered; nothing else is, and nothing changes a byte anywhere."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from duckdb import OutOfMemoryException

from agentsignals.errors import QueryError
from agentsignals.ingest import pipeline
from agentsignals.model import Label
from agentsignals.questions.findings import questions
from agentsignals.questions.question import Question
from agentsignals.questions.studies import studies
from agentsignals.signals.catalog import catalogue
from agentsignals.store import Store, query, sidecars
from agentsignals.store.query import _WIDE, NAMES, _tree, connect, execute_ours, needed_signals, rows, run
from agentsignals.store.sidecars import LabelRow
from tests.claude import Log
from tests.quick import each_row

ANSWERED = (
    "SELECT count(*) FROM sessions;",
    "FROM sessions LIMIT 1",
    "(SELECT 1) UNION (SELECT 2)",
    "VALUES (1), (2)",
    "TABLE sessions",
    "WITH a AS (SELECT 1 AS x), b AS MATERIALIZED (FROM a) SELECT * FROM A, B",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) FROM t",
    "DESCRIBE turns",
    "DESCRIBE SELECT 1",
    "SHOW TABLES",
    "SUMMARIZE sessions",
    "PIVOT sessions ON agent IN ('claude-code') USING count(*)",
    "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b INTO NAME k VALUE v",
    "FROM range(3), unnest([1, 2])",
    "FROM information_schema.tables",
    "FROM main.sessions",
    "EXPLAIN SELECT 1",
    "explain/* why */analyze -- so\n (SELECT 1)",
    "EXPLAIN (SELECT 1)",
    "EXPLAIN (ANALYZE, FORMAT json) FROM sessions",
    "-- first\n EXPLAIN ANALYZE SELECT count(*) FROM turns",
)
WRITES = (
    "COPY (SELECT 1) TO '{new}' (FORMAT csv)",
    "COPY (SELECT 1) TO '{index}' (FORMAT csv)",
    "COPY (SELECT 1) TO '{shard}' (FORMAT csv)",
    "COPY sessions TO '{shard}' (FORMAT parquet)",
    "WITH a AS (COPY (SELECT 1) TO '{shard}') SELECT 1",
    "WITH a AS (COPY (SELECT 1) TO '{new}') FROM a",
    "SELECT * FROM (WITH a AS (COPY (SELECT 1) TO '{shard}') FROM a)",
    "SELECT (WITH a AS (INSERT INTO sessions VALUES (1) RETURNING *) SELECT count(*) FROM a)",
    "EXPORT DATABASE '{new}'",
    "ATTACH '{new}' AS x",
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE OR REPLACE VIEW sessions AS SELECT 1",
    "CREATE MACRO f(x) AS x",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "DELETE FROM sessions",
    "INSERT INTO sessions VALUES (1)",
    "DROP VIEW sessions",
    "PREPARE p AS COPY (SELECT 1) TO '{new}'",
    "EXECUTE p",
    "CALL force_checkpoint()",
    "CHECKPOINT",
    "VACUUM",
    "PRAGMA enable_profiling",
    "PRAGMA table_info('sessions')",
    "SET threads=1",
    "RESET threads",
    "SET VARIABLE a=1",
    "INSTALL httpfs",
    "LOAD httpfs",
    "UPDATE EXTENSIONS",
    "USE memory",
    "BEGIN",
    "PIVOT sessions ON agent USING count(*)",  # makes a type first
)
"""Each is refused, and so is the EXPLAIN of it."""
PREFIXES = (
    "",
    "EXPLAIN ",
    "EXPLAIN ANALYZE ",
    "explain/*a*/Analyze--b\n",
    "EXPLAIN (ANALYZE) ",
    "EXPLAIN (ANALYZE, FORMAT json) ",
    "EXPLAIN /* /* */ SELECT 1 -- */ ",
    "; EXPLAIN ANALYZE ",
    "SELECT 1; ",
    "EXPLAIN SELECT 1; EXPLAIN ANALYZE ",
)
READS = (
    "FROM '{outside}'",
    'FROM "{outside}"',
    "FROM '{shard}'",
    "FROM read_csv('{outside}')",
    "FROM read_text('{outside}')",
    "FROM read_blob('{shard}')",
    "FROM read_json('{outside}')",
    "FROM read_parquet('{shard}')",
    "FROM parquet_metadata('{shard}')",
    "FROM sniff_csv('{outside}')",
    "FROM glob('{folder}/*')",
    "SELECT (SELECT content FROM read_text('{outside}'))",
    "SELECT * FROM sessions WHERE repo IN (SELECT content FROM read_text('{outside}'))",
    "WITH \"{outside}\" AS (SELECT 1) SELECT * FROM (SELECT * FROM '{outside}' UNION ALL FROM read_text('{outside}'))",
    "DESCRIBE '{outside}'",
    "SUMMARIZE '{outside}'",
    "EXPLAIN FROM read_text('{outside}')",
    "EXPLAIN ANALYZE FROM '{outside}'",
    "FROM query('SELECT 1')",
    "FROM query_table('sessions')",
    "FROM json_execute_serialized_sql('x')",
    "FROM duckdb_secrets()",
    "FROM which_secret('s3://x', 's3')",
    "FROM duckdb_settings()",
    "FROM pragma_database_list",
    "FROM system.main.duckdb_tables",
    "FROM pragma_table_info('sessions')",
    "FROM arrow_scan(1, 2, 3)",
    "FROM python_variable",
    "SELECT getenv('HOME')",
    "FROM 'https://127.0.0.1:9/x.parquet'",
    "FROM read_csv('https://127.0.0.1:9/x.csv')",
    "FROM 's3://bucket/x.parquet'",
    "SELEKT 1",
    "",
    "-- nothing",
    "SELECT 1; SELECT 2",
    "SELECT 1\0; SELECT 2",
    "SELECT '\ud800'",
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
)
"""Each is refused."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, and with a file that no question may see."""
    made = tmp_path_factory.mktemp("query")
    log = Log()
    log.user("look")
    (made / "traces").mkdir()
    (made / "traces" / "a.jsonl").write_text("\n".join(log.lines) + "\n")
    (made / "outside.csv").write_text("a\noutside\n")
    pipeline.analyze([str(made / "traces")], made / "store", jobs=1)
    return made


@pytest.fixture(autouse=True)
def at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever DuckDB would put in the person's home or beside the program is put where it is looked for."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)


def _bytes(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "folder"
        for p in folder.rglob("*")
    }


def _named(sql: str, folder: Path) -> str:
    shard = next((folder / "store" / "shards").glob("*/sessions.parquet"))
    names = {"new": folder / "store/new", "index": folder / "store/index.sqlite", "shard": shard, "folder": folder}
    for name, path in {**names, "outside": folder / "outside.csv"}.items():
        sql = sql.replace(f"{{{name}}}", str(path))
    return sql


@pytest.mark.parametrize("sql", ANSWERED)
def test_one_select_is_answered(folder: Path, sql: str) -> None:
    assert rows(Store(folder / "store"), sql)[1]
    assert Store(folder / "store").sql(sql).fetchall()


def test_nothing_that_writes_is_let_through_and_no_byte_changes(folder: Path) -> None:
    connection, before = connect(Store(folder / "store")), _bytes(folder)
    for sql in WRITES:
        for prefix in PREFIXES:
            with pytest.raises(QueryError):
                run(connection, prefix + _named(sql, folder)).fetchall()
    for ask in (Store(folder / "store").sql, partial(rows, Store(folder / "store"))):
        with pytest.raises(QueryError):
            ask(_named("WITH a AS (COPY (SELECT 1) TO '{shard}') SELECT 1", folder))
    assert _bytes(folder) == before


def test_a_connection_has_as_many_threads_as_it_is_asked_for(folder: Path) -> None:
    store, asked = Store(folder / "store"), "SELECT current_setting('threads')"
    of_many = connect(store).database.execute(asked).fetchall()
    assert connect(store, threads=1).database.execute(asked).fetchall() == [(1,)]
    assert connect(store).database.execute(asked).fetchall() == of_many, "each is kept for who asks for as many"


def test_nothing_but_the_stores_tables_is_read(folder: Path) -> None:
    connection, before = connect(Store(folder / "store")), _bytes(folder)
    for sql in READS:
        with pytest.raises(QueryError) as refused:
            run(connection, _named(sql, folder)).fetchall()
        assert refused.value.hint, sql
    assert _bytes(folder) == before


def test_no_file_but_the_stores_can_be_opened_even_by_our_own_sql(folder: Path) -> None:
    """What `one_select` let through wrongly would still find nothing outside, and no file it could make."""
    connection, before = connect(Store(folder / "store")), _bytes(folder)
    for sql in ("FROM read_text('{outside}')", "COPY (SELECT 1) TO '{new}'", "COPY (SELECT 1) TO '{index}'"):
        with pytest.raises(Exception, match="disabled by configuration"):
            connection.database.execute(_named(sql, folder))
    assert _bytes(folder) == before


def test_a_query_that_needs_too_much_memory_ends_in_words_and_without_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.store.query._SHARE_OF_LIMIT", 0.02)
    monkeypatch.setattr("agentsignals.store.query._kept", {})
    before = _bytes(folder)
    with pytest.raises(QueryError, match="half of this machine's memory") as refused:
        rows(Store(folder / "store"), "SELECT list(i) FROM range(300_000_000) t(i)")
    assert isinstance(refused.value.__cause__, OutOfMemoryException)
    assert _bytes(folder) == before


@pytest.mark.parametrize(
    "sql",
    ("SHOW TABLES", "SHOW ALL TABLES", "DESCRIBE", "FROM information_schema.TABLES", "FROM Information_Schema.views"),
)
def test_every_table_is_listed_although_nobody_named_one(
    sql: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view is made when a query names it, and a query may ask which there are."""
    for before in ("SELECT 1", "FROM turn_signals"):
        monkeypatch.setattr("agentsignals.store.query._kept", {})
        rows(Store(folder / "store"), before)
        assert set(NAMES) <= {
            cell for row in rows(Store(folder / "store"), sql)[1] for cell in row if type(cell) is str
        }


def test_a_table_is_there_however_it_is_named(folder: Path) -> None:
    for sql in (
        "FROM Sessions",
        'FROM main."SESSIONS"',
        "WITH turns AS (FROM session_signals) FROM turns",
        "SUMMARIZE scans",
    ):
        assert rows(Store(folder / "store"), sql, "product")[0]


def test_rows_that_are_held_are_of_one_connection_and_of_small_tables(folder: Path) -> None:
    store = Store(folder / "store")
    holding, other = connect(store), connect(store)
    holding.hold("sessions", "SELECT *, 'here' AS place FROM sessions")
    assert run(holding, "SELECT DISTINCT place FROM sessions").fetchall() == [("here",)]
    assert "place" not in run(other, "FROM sessions").columns, "nobody else sees them"
    for most_rows, kept in ((0, []), (1000, [("turns",)])):
        holding = connect(store)
        holding.hold("turns", "SELECT * FROM turns", most_rows)
        assert run(holding, "SELECT count(*) > 0 FROM turns").fetchall() == [(True,)]
        assert holding.database.execute("SELECT table_name FROM duckdb_tables()").fetchall() == kept


@pytest.mark.parametrize("sql", ["SELECT 1 FROM sessions, turns", 'SELECT 1 from "turns"', "SUMMARIZE turns"])
def test_a_question_of_ours_sees_its_tables_however_it_names_them(folder: Path, sql: str) -> None:
    assert execute_ours(connect(Store(folder / "store")), sql).fetchall()


def test_a_connection_is_used_again_until_the_store_has_other_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.store.query._kept", {})
    store = tmp_path / "store"
    shutil.copytree(folder / "store", store)
    first, again = connect(Store(store)), connect(Store(store))
    assert len(query._kept) == 1
    first.database.close()
    counted = "SELECT count(*) FROM labels"
    assert run(again, counted).fetchall() == [(0,)], "one that is closed leaves the other alone"
    session = min(Store(store).manifest.sessions)
    sidecars.write_labels(store, "t", "me", [LabelRow(session, Label(task="t", labeller="me", turn=None, value="x"))])
    assert rows(Store(store), counted)[1] == [(1,)]
    assert run(again, counted).fetchall() == [(0,)], "it was made before"
    for n in range(query._MOST_KEPT + 1):
        shutil.copytree(store, tmp_path / str(n))
        connect(Store(tmp_path / str(n)))
    assert len(query._kept) == query._MOST_KEPT


@pytest.mark.slow
def test_an_interrupt_ends_a_query(folder: Path) -> None:
    endless = "SELECT count(*) FROM range(100000000000) a(i), range(1000) b(j) WHERE hash(i) * j % 7 = 1"
    command = [sys.executable, "-m", "agentsignals", "query", "--store", str(folder / "store"), endless]
    env = {**os.environ, "PYTHONFAULTHANDLER": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as asked:
        time.sleep(1.5)
        assert asked.poll() is None
        asked.send_signal(signal.SIGINT)
        _, told = asked.communicate(timeout=20)
    assert asked.returncode == 130 and b"Traceback" not in told


# A query says which signals it reads, or that it may read all

ALL = None


@each_row(
    ("query", "values", "expected"),
    [
        ("SELECT 1", [], set()),
        ("SELECT * FROM sessions WHERE session_id IN (SELECT 'signals')", [], set()),
        ("SELECT * FROM signals WHERE signal = 'a.b'", [], {"a.b"}),
        ("SELECT * FROM signals WHERE 'a.b' = signal AND number > 1", [], {"a.b"}),
        ("SELECT * FROM SIGNALS s WHERE s.signal IN ('a.b', 'c.d') AND level = 'turn'", [], {"a.b", "c.d"}),
        ("SELECT * FROM signals WHERE signal = 'a.b' OR signal = 'c.d'", [], {"a.b", "c.d"}),
        ("SELECT * FROM signals WHERE (signal = 'a.b' AND turn = 1) OR signal IN ('c.d')", [], {"a.b", "c.d"}),
        ("SELECT * FROM signals WHERE signal = 'a.b' OR number > 1", [], ALL),
        ("SELECT * FROM signals WHERE signal <> 'a.b'", [], ALL),
        ("SELECT * FROM signals WHERE NOT signal = 'a.b'", [], ALL),
        ("SELECT * FROM signals WHERE signal LIKE 'a.%'", [], ALL),
        ("SELECT * FROM signals WHERE signal = lower('A.B')", [], ALL),
        ("SELECT * FROM signals WHERE signal = (SELECT max(signal) FROM signals WHERE signal = 'a.b')", [], ALL),
        ("SELECT count(*) FROM signals", [], ALL),
        ("FROM signals", [], ALL),
        ("TABLE signals", [], ALL),
        ("SUMMARIZE signals", [], ALL),
        ("DESCRIBE signals", [], set()),
        ("PIVOT signals ON level IN ('turn') USING count(*)", [], ALL),
        ("SELECT * FROM (SELECT * FROM signals) WHERE signal = 'a.b'", [], ALL),
        (
            "SELECT * FROM signals WHERE signal = 'a.b' UNION ALL SELECT * FROM signals WHERE signal = 'c.d'",
            [],
            {"a.b", "c.d"},
        ),
        ("SELECT * FROM signals WHERE signal = 'a.b' UNION ALL SELECT * FROM signals", [], ALL),
        ("WITH x AS (SELECT * FROM signals WHERE signal = 'a.b') SELECT * FROM x", [], {"a.b"}),
        ("SELECT (SELECT count(*) FROM signals) FROM signals WHERE signal = 'a.b'", [], ALL),
        ("SELECT * FROM turns JOIN signals USING (session_id) WHERE signal = 'a.b'", [], {"a.b"}),
        ("SELECT * FROM sessions, signals WHERE sessions.signal = 'a.b'", [], ALL),
        ("SELECT * FROM sessions LEFT JOIN signals ON signals.signal = 'a.b'", [], ALL),
        ("SELECT * FROM signals WHERE signal = ?", ["a.b"], {"a.b"}),
        ("SELECT * FROM signals WHERE signal IN $paths", [["a.b", "c.d"]], {"a.b", "c.d"}),
        ("SELECT * FROM signals WHERE list_contains($paths, signal)", [["a.b"]], {"a.b"}),
        ('SELECT "a.b" FROM session_signals', [], {"a.b"}),
        ('SELECT t."a.b" FROM turn_signals t WHERE "c.d" > 1 ORDER BY "e.f"', [], {"a.b", "c.d", "e.f"}),
        ("SELECT * FROM session_signals", [], ALL),
        ('SELECT * EXCLUDE ("a.b") FROM attempt_signals', [], ALL),
        ("SELECT COLUMNS('a') FROM session_signals", [], ALL),
        ("SELECT session_signals FROM session_signals", [], ALL),
        ('SELECT s FROM session_signals s WHERE "a.b" > 1', [], ALL),
        ("SELECT count(*) FROM session_signals", [], set()),
        ("SELECT * FROM signals WHERE signal = signal", [], ALL),
        ("SELECT b.value FROM signals JOIN signals b USING (turn) WHERE signals.signal = 'a.b'", [], ALL),
        ('SELECT count(*) FROM session_signals JOIN turn_signals USING ("a.b")', [], {"a.b"}),
        ("SELECT count(*) FROM session_signals NATURAL JOIN turn_signals", [], ALL),
        ("SELECT #9 FROM session_signals", [], ALL),
        ("SELECT * FROM signals s(signal, x) WHERE signal = 'a.b'", [], ALL),
        ("SELECT d FROM session_signals s(a, b, c, d)", [], ALL),
        ('UNPIVOT session_signals ON "a.b" INTO NAME n VALUE v', [], ALL),
        ('SELECT "1" FROM session_signals PIVOT (count(*) FOR "a.b" IN (1))', [], ALL),
    ],
)
def test_a_query_names_the_signals_it_reads(query: str, values: list[Any], expected: set[str] | None) -> None:
    tree = _tree(duckdb.connect(), query)
    assert tree is not None
    needed = needed_signals(tree, _WIDE, values)
    if expected is None:
        assert needed is None
    else:
        assert needed is not None
        assert {path for path in needed if "." in path} == expected


@each_row("asked", [*studies().values(), *questions().values()])
def test_a_question_declares_the_signals_that_its_queries_read(asked: Question) -> None:
    connection, paths = duckdb.connect(), {signal.path for signal in catalogue().values()}
    for name, sql in asked.queries.items():
        tree = _tree(connection, sql)
        assert tree is not None
        needed = needed_signals(tree, _WIDE)
        assert needed is not None, f"{name} reads every signal: 182 would be computed for it"
        assert needed & paths <= asked.signals
