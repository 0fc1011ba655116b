"""A query says which signals it reads, or that it may read all."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from agentsignals.questions.findings import questions
from agentsignals.questions.question import Question
from agentsignals.questions.studies import studies
from agentsignals.signals.catalog import catalogue
from agentsignals.store.needed_signals import needed_signals
from agentsignals.store.query import _WIDE, _tree

ALL = None


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("asked", [*studies().values(), *questions().values()], ids=lambda asked: asked.name)
def test_a_question_declares_the_signals_that_its_queries_read(asked: Question) -> None:
    connection, paths = duckdb.connect(), {signal.path for signal in catalogue().values()}
    for name, sql in asked.queries.items():
        tree = _tree(connection, sql)
        assert tree is not None
        needed = needed_signals(tree, _WIDE)
        if asked.signals is not None:
            assert needed is not None, f"{name} reads every signal: declare it (`reads_every_signal`)"
            assert needed & paths <= asked.signals
