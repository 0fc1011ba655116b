"""Every SQL text of a study or a finding runs: its queries, the command of each figure, and the rows behind each.

Questions about one session each are asked over some shards at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentsignals.cli import demo_corpus
from agentsignals.errors import QueryError
from agentsignals.ingest import pipeline
from agentsignals.questions import findings as reading
from agentsignals.questions.findings import Reader, questions
from agentsignals.questions.question import EvidenceQuery, Rows, collecting_evidence
from agentsignals.questions.ranking import candidate_answers
from agentsignals.questions.studies import studies
from agentsignals.store import Store
from agentsignals.store.query import connect, execute_ours, split_by_rows
from tests.build import START, call, say, session, user
from tests.planted_stores import evaluated
from tests.questions.stores import store_of

CONTEXTS = ("product", "eval")
_SQL_OF_COMMAND = re.compile(r'^agentsignals query (?:--context \w+ )?"(.*)"$', re.DOTALL)
Texts = dict[str, tuple[str, Mapping[str, Any]]]


@pytest.fixture(scope="module")
def stores(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    folder = tmp_path_factory.mktemp("every_query")
    attempts = evaluated(1)
    for made in attempts:
        assert made.attempt is not None
        made.attempt.cost_usd = 0.5 + (made.attempt.knobs.get("model_id") == "gpt-5.1-codex")
    unnamed = evaluated(1)
    for n, made in enumerate(unnamed):
        assert made.attempt is not None
        made.model, made.attempt.knobs, made.attempt.root = None, {}, f"/r/x_gpt-5/t{n}"
    slow = session(user("go"), *(call("Bash", command="make x") for _ in range(12)), say("done"))
    for event in slow.events:
        event.timestamp = _hours_later(event.timestamp)
    for each in slow.tool_calls:
        each.started_at, each.ended_at = _hours_later(each.started_at), _hours_later(each.ended_at)
    upgraded = [
        session(
            user("go"), *(call("Bash", status="error" if n % (k + 2) == 0 else "ok") for k in range(4)), say("done"),
            session_id=f"u{n}", repo="acme/shop", agent_version=f"2.{n // 12}",
        )
        for n in range(24)
    ]  # fmt: skip
    for n, made in enumerate(upgraded):
        made.started_at = START + n * 86_400_000_000
    return {
        "upgraded": store_of(folder / "upgraded", *upgraded),
        "demo": Store(demo_folder / "store"),
        "attempts": store_of(folder / "attempts", *attempts, slow),
        "unnamed": store_of(folder / "unnamed", *unnamed),
        "empty": Store(folder / "empty", create=True),
    }


def _hours_later(at: int | None) -> int | None:
    return None if at is None else START + 2400 * (at - START)


@pytest.fixture(scope="module")
def texts(stores: dict[str, Store]) -> Texts:
    """What the program makes of SQL while it answers, by where it stands: with the values that it binds."""
    found: Texts = {}
    for store in (stores[name] for name in ("demo", "attempts", "unnamed", "upgraded")):
        for context in CONTEXTS:
            reader = Reader(store, [*studies().values(), *questions().values()], context)
            for study in studies().values():
                with collecting_evidence() as behind:
                    outcome = study.run(reader.inputs(study))
                found |= {
                    f"behind {name}": (a.sql, a.values) for name, a in behind.items() if isinstance(a, EvidenceQuery)
                }
                for finding in outcome.findings:
                    if command := _SQL_OF_COMMAND.match(finding.command):
                        found[f"command of {finding.id}"] = command[1], {}
            for question in questions().values():
                candidates = candidate_answers(question, reader.inputs(question))
                found |= {f"cause of {made.id}": (made.cause, {}) for made in candidates}
    return found


@pytest.mark.slow
def test_every_finding_has_rows_to_show(texts: Texts) -> None:
    shown = {name.removeprefix("cause of ").partition(".")[0] for name in texts if name.startswith("cause of ")}
    assert {name.replace("_", "-") for name in questions()} - shown == set()


@pytest.mark.parametrize("name", ["demo", "attempts", "empty"])
def test_every_query_runs(name: str, stores: dict[str, Store], texts: Texts) -> None:
    refused: dict[str, str] = {}
    for context in CONTEXTS:
        asking = [*studies().values(), *questions().values()]
        reader = Reader(stores[name], asking, context)
        for one in asking:
            try:
                reader.inputs(one)
            except QueryError as problem:
                refused[f"queries of {one.name}"] = str(problem)
        for sql, (where, values) in {sql: (where, values) for where, (sql, values) in texts.items()}.items():
            try:
                reader.ask(sql, values, context)
            except QueryError as problem:
                refused[where] = str(problem)
    assert refused == {}


# -- slices ------------------------------------------------------------------------------------------------------------

SMALL_SHARDS = 40_000


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = demo_corpus.make_corpus(tmp_path_factory.mktemp("corpus"))
    folder = tmp_path_factory.mktemp("stores") / "s"
    pipeline.ingest([str(corpus)], folder, jobs=1, shard_bytes=SMALL_SHARDS)
    return folder


@pytest.fixture
def store(sharded: Path) -> Store:
    store = Store(sharded)
    assert len(store.manifest.shards) > 3
    return store


@pytest.mark.slow
@pytest.mark.parametrize("context", ["product", "eval"])
def test_what_is_asked_in_slices_is_what_is_asked_at_once(
    context: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list(questions().values())

    def made() -> list[object]:
        reader = Reader(store, asked, context)
        of_each = [reader.inputs(question) for question in asked]
        return [
            (each.rows, {n: sorted(each.many[n], key=repr) for n in question.sliced}, candidate_answers(question, each))
            for question, each in zip(asked, of_each, strict=True)
        ]

    at_once = made()
    monkeypatch.setattr(reading, "_MOST_IN_A_SLICE", 1)
    assert made() == at_once


@pytest.mark.slow
@pytest.mark.parametrize("context", ["product", "eval"])
def test_no_answer_depends_on_the_order_in_which_shards_are_asked(context: str, store: Store) -> None:
    reader = Reader(store, list(questions().values()), context)
    for question in questions().values():
        inputs = reader.inputs(question)
        turned = {name: _turned(inputs.many[name]) for name in question.sliced | question.summed}
        assert candidate_answers(question, replace(inputs, many=turned)) == candidate_answers(question, inputs)


def _turned(rows: Rows) -> Rows:
    names = [name for row in rows for name in row][: len(next(iter(rows), ()))]
    return Rows(names, [column[::-1] for column in rows.columns(*names)]) if names else rows


def test_no_slice_holds_more_calls_than_it_may_but_of_one_shard(store: Store) -> None:
    whole = connect(store)
    every = execute_ours(whole, "SELECT session_id FROM tool_calls").fetchall()
    [at_once] = split_by_rows(whole, "tool_calls", len(every))
    assert at_once is whole
    of_shard = [_calls(shard) for shard in split_by_rows(whole, "tool_calls", 1)]
    assert len(of_shard) == len(store.manifest.shards)
    assert sorted(chain.from_iterable(of_shard)) == sorted(every)
    most = max(map(len, of_shard)) + min(map(len, of_shard))
    pairs = [len(_calls(part)) for part in split_by_rows(whole, "tool_calls", most)]
    assert 1 < len(pairs) < len(of_shard) and max(pairs) <= most and sum(pairs) == len(every)


def test_a_slice_reads_the_other_tables_of_its_shards_alone(store: Store) -> None:
    for part in split_by_rows(connect(store), "tool_calls", 1):
        sessions = {session for (session,) in execute_ours(part, "SELECT session_id FROM sessions").fetchall()}
        asked = questions()["large_results"].queries["results"]
        assert {row[0] for row in execute_ours(part, asked).fetchall()} <= sessions


def test_a_shard_without_its_calls_is_in_a_slice(store: Store) -> None:
    whole = connect(store)
    whole.files = {**whole.files, "tool_calls": whole.files["tool_calls"][1:]}
    sessions = [
        execute_ours(part, "SELECT session_id FROM sessions").fetchall()
        for part in split_by_rows(whole, "tool_calls", 1)
    ]
    assert sorted(chain.from_iterable(sessions)) == sorted((id_,) for id_ in store.manifest.sessions)


def _calls(part: reading.Connection) -> list[tuple[str]]:
    rows: list[tuple[str]] = execute_ours(part, "SELECT session_id FROM tool_calls").fetchall()
    return rows
