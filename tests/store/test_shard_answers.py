"""Answers that are kept by shard are those that would be computed now."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import maintenance, pipeline
from agentsignals.questions.findings import Reader, questions
from agentsignals.questions.ranking import candidate_answers
from agentsignals.questions.sql import PAID, SITES, unjudged
from agentsignals.store import Store, shard_answers
from tests.claude import Log

SLICED = {PAID} | {question.queries[name] for question in questions().values() for name in question.sliced}
QUERIES = {*SLICED, SITES, unjudged({"chat.pushback_type"})} | {
    question.queries[name] for question in questions().values() for name in question.summed
}


@pytest.fixture(autouse=True)
def _every_shard_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_answers, "LARGE", 0)


def log(n: int, turns: int = 1) -> Log:
    made = Log(f"{n:08d}-2222-4333-8444-555555555555", f"s{n}", f"/work/{n % 3}")
    for _ in range(turns):
        made.user("Please fix it")
        for _ in range(3):
            made.ran("Bash", "no such target", error=True, command="make x")
        made.ran("Edit", file_path=f"/work/{n % 3}/a.py", old_string="x", new_string="y")
        made.say("Done.")
    return made


def written(folder: Path, *logs: tuple[int, int]) -> Store:
    """The store after these sessions were written, each with its number of turns, and read."""
    (folder / "in").mkdir(exist_ok=True)
    for n, turns in logs:
        (folder / "in" / f"{n}.jsonl").write_bytes(log(n, turns).data())
    pipeline.ingest([str(folder / "in")], folder / "store", jobs=1)
    return Store(folder / "store")


def answered(store: Store) -> dict[tuple[str, str], list[Any]]:
    asked = list(questions().values())
    reader = Reader(store, asked, "product")
    inputs = {q.name: reader.inputs(q) for q in asked}
    many = {(q.name, name): inputs[q.name].many[name] for q in asked for name in q.sliced | q.summed}
    found = {(q.name, name): sorted(many[q.name, name], key=repr) for q in asked for name in q.sliced}
    return found | {(q.name, "made"): candidate_answers(q, inputs[q.name]) for q in asked if q.summed}


def anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], list[Any]]:
    """The same without kept answers."""
    with monkeypatch.context() as without:
        without.setattr(shard_answers, "LARGE", 10**9)
        return answered(store)


def files(store: Store) -> list[Path]:
    return sorted((store.folder / shard_answers.FOLDER).iterdir())


def test_kept_answers_are_those_that_would_be_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(tmp_path, *((n, 1) for n in range(6)))
    first = answered(store)
    assert first == anew(store, monkeypatch) and any(first.values())
    assert len(files(store)) == len(QUERIES)
    monkeypatch.setattr(shard_answers.ShardAnswers, "_ask", None)
    assert answered(store) == first, "nothing is computed again"


def test_a_line_appended_costs_its_shard_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(written(tmp_path, *((n, 1) for n in range(6))))
    store = written(tmp_path, (2, 2), (6, 1))
    [old] = [name for name, entry in store.manifest.shards.items() if entry.gone]
    computed: set[str] = set()
    ask = shard_answers.ShardAnswers._ask

    def seen(self: shard_answers.ShardAnswers, missing: list[str], query: str) -> Any:
        computed.update(missing)
        return ask(self, missing, query)

    monkeypatch.setattr(shard_answers.ShardAnswers, "_ask", seen)
    assert answered(store) == anew(store, monkeypatch)
    assert computed == store.manifest.shards.keys() - {old}, "the rest of the old shard keeps its answers"
    runs = answered(store)["loops", "runs"]
    assert len({row["session_id"] for row in runs}) == 7


def test_what_two_questions_ask_of_all_sessions_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(tmp_path, *((n, 1) for n in range(3)))
    asked: Counter[str] = Counter()
    by_slices = Reader._by_slices

    def counted(self: Reader, sql: str, *rest: Any) -> Any:
        asked[sql] += 1
        return by_slices(self, sql, *rest)

    monkeypatch.setattr(Reader, "_by_slices", counted)
    made = answered(store)
    assert asked == dict.fromkeys(SLICED, 1) and made["loops", "runs"] == made["upgrade", "runs"] != []


def test_a_session_that_is_forgotten_is_in_no_kept_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(tmp_path, *((n, 1) for n in range(6)))
    answered(store)
    gone = f"{2:08d}-2222-4333-8444-555555555555"
    assert any(gone.encode() in path.read_bytes() for path in files(store))
    maintenance.forget(store.folder, [gone])
    store = Store(store.folder)
    assert answered(store) == anew(store, monkeypatch)
    assert files(store) and not any(gone.encode() in path.read_bytes() for path in files(store))


def test_a_damaged_answer_is_computed_again(tmp_path: Path) -> None:
    store = written(tmp_path, *((n, 1) for n in range(6)))
    first = answered(store)
    for n, path in enumerate(files(store)):
        data = bytearray(path.read_bytes())
        data[n % len(data)] ^= 1
        path.write_bytes(data if n % 2 else data[:-1])
    assert answered(store) == first


def test_a_folder_that_can_not_be_written_costs_no_answer(tmp_path: Path) -> None:
    store = written(tmp_path, (0, 1))
    first = answered(store)
    shard_answers.clear(store.folder)
    (store.folder / shard_answers.FOLDER).rmdir()
    (store.folder / shard_answers.FOLDER).write_text("")
    assert answered(store) == first


def test_answers_of_shrunk_shards_are_of_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, *((n, 1) for n in range(6)))
    written(tmp_path, (2, 2))
    store = written(tmp_path, (2, 3), (3, 2))
    assert sum(bool(entry.gone) for entry in store.manifest.shards.values()) == 1 < len(store.manifest.shards)
    assert answered(store) == anew(store, monkeypatch) == answered(store)


def test_answers_of_shards_that_are_gone_are_removed(tmp_path: Path) -> None:
    answered(written(tmp_path, (0, 1)))
    store = written(tmp_path, (0, 2))
    answered(store)
    assert {path.name.partition(".")[0] for path in files(store)} == store.manifest.shards.keys()


@pytest.mark.parametrize(
    ("query", "is_kept"),
    [
        ("SELECT session_id, seq FROM tool_calls", True),
        ("SELECT session_id, seq FROM edits JOIN steps USING (session_id)", True),
        ("SELECT session_id, label FROM tool_calls, labels", False),
        ("SELECT session_id, n_prompts FROM sessions", True),
        ("SELECT session_id, sha FROM sessions, commits", False),
    ],
)
def test_what_other_files_have_a_part_in_is_not_kept(query: str, is_kept: bool, tmp_path: Path) -> None:
    store = written(tmp_path, (0, 1))
    assert bool(shard_answers.ShardAnswers(store, None, lambda _: []).shards(query)) is is_kept


def test_who_opened_the_store_before_a_session_left_a_shard_still_sees_it_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written(tmp_path, *((n, 1) for n in range(6)))
    after = written(tmp_path, (2, 2))
    first = answered(after)
    assert answered(before) == anew(before, monkeypatch)
    assert answered(after) == first == anew(after, monkeypatch)
