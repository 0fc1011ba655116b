"""Published labels: read from Parquet, matched with the sessions of a store by id, turn and text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.errors import SourceError
from agentsignals.ingest import pipeline
from agentsignals.labels.gold import GoldRow
from agentsignals.labels.matching import read_published, take
from agentsignals.store import Store, sidecars
from tests.build import say, session, user
from tests.questions.stores import store_of

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def published(file: Path, *rows: dict[str, Any], **columns: pa.DataType) -> Path:
    """A Parquet file of these rows; a row without a key has null there."""
    types = {
        "session_id": pa.string(), "turn": pa.int64(), "sentiment_label": pa.string(), "sentiment_reason": pa.string(),
        "content_text": pa.string(), "model": pa.string(),
    } | columns  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = {name: kind for name, kind in types.items() if any(name in row for row in rows)}
    pq.write_table(pa.Table.from_pylist(list(rows), pa.schema(list(kept.items()))), file)
    return file


def row(session_id: str | None, turn: Any, label: str | None, **more: Any) -> dict[str, Any]:
    return {"session_id": session_id, "turn": turn, "sentiment_label": label, **more}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    one = session(user("fix the parser"), say("done"), user("no, the other one"), user("yes"), session_id="one")
    two = session(user("/init", "slash_command"), user("add a test"), say("ok"), user("yes"), session_id="two")
    return store_of(tmp_path / "store", one, two)


# -- reading -----------------------------------------------------------------------------------------------------------


def label(turn: int, value: str, **more: str) -> GoldRow:
    return GoldRow(session_id="s", turn=turn, task="sentiment", label=value, **more)  # type: ignore[arg-type]


NONE = ((None, 1, "NEUTRAL"), ("", 1, "NEUTRAL"), ("s", None, "NEUTRAL"), ("s", 0, "NEUTRAL"), ("s", 1, None))


@pytest.mark.parametrize(
    ("rows", "columns", "kept", "skipped"),
    [
        (  # turns count from one there and from zero here
            [row("s", 1, "NEUTRAL", sentiment_reason="asks", content_text="hi"), row("s", 2, " negative ")],
            {},
            [label(1, "NEUTRAL", reason="asks", text="hi"), label(2, "NEGATIVE")],
            {},
        ),
        (
            [*(row(*one) for one in NONE), row("s", 1, "MIXED"), row("s", 1, "POSITIVE"), row("s", 1, "NEGATIVE")],
            {},
            [label(1, "POSITIVE")],
            {"no_session": 2, "no_turn": 2, "no_label": 2, "repeated": 1},
        ),
        (  # turns written as floats are turns, and halves are none
            [row("s", turn, "NEUTRAL") for turn in (2.0, 1.5, float("nan"), float("inf"))],
            {"turn": pa.float64()},
            [label(2, "NEUTRAL")],
            {"no_turn": 3},
        ),
        ([row("s", 1, 2)], {"sentiment_label": pa.int64()}, [], {"no_label": 1}),
    ],
)
def test_rows_are_labels_or_counted_by_reason(
    tmp_path: Path, rows: list[Any], columns: dict[str, Any], kept: list[GoldRow], skipped: dict[str, int]
) -> None:
    found = read_published(published(tmp_path / "a.parquet", *rows, **columns))
    assert (found.rows, found.skipped) == (kept, skipped)


def test_a_folder_is_all_its_parquet_files(tmp_path: Path) -> None:
    published(tmp_path / "set" / "data" / "1.parquet", row("s", 1, "NEUTRAL"))
    published(tmp_path / "set" / "data" / "2.parquet", row("s", 2, "POSITIVE"), row("s", 1, "POSITIVE"))
    (tmp_path / "set" / "README.md").write_text("a card")
    found = read_published(tmp_path / "set")
    assert [r.label for r in found.rows] == ["NEUTRAL", "POSITIVE"] and found.skipped == {"repeated": 1}


def test_labels_of_another_task_keep_their_own_words(tmp_path: Path) -> None:
    file = published(
        tmp_path / "a.parquet", {"session_id": "s", "turn": 1, "intent_label": "git"}, intent_label=pa.string()
    )
    assert [r.label for r in read_published(file, "intent").rows] == ["git"]


def test_what_cannot_be_read_is_said_with_its_name(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 but not really")
    (tmp_path / "empty").mkdir()
    for path in (broken, tmp_path / "absent.parquet"):
        with pytest.raises(SourceError, match=path.name):
            read_published(path)
    with pytest.raises(SourceError, match="no Parquet file"):
        read_published(tmp_path / "empty")
    with pytest.raises(SourceError, match="no column sentiment_label"):
        read_published(published(tmp_path / "b.parquet", {"session_id": "s", "turn": 1}))


# -- taking them into a store ------------------------------------------------------------------------------------------


def test_labels_are_written_for_the_messages_they_are_of(store: Store, tmp_path: Path) -> None:
    file = published(
        tmp_path / "a.parquet",
        row("one", 1, "NEUTRAL", sentiment_reason="asks", content_text="fix the  parser\n"),
        row("one", 2, "NEGATIVE", content_text="no, the other one"),
        row("elsewhere", 1, "NEUTRAL", content_text="hi"),
        row("elsewhere", 2, "NEUTRAL", content_text="hi"),
    )
    taken = take(store, file, "qwen", model="qwen3", created_at=5)
    assert (taken.labels, taken.sessions, taken.moved) == (2, 1, 0)
    assert (taken.unmatched_sessions, taken.unmatched_labels, taken.skipped) == (1, 2, {})
    found = sidecars.labels_of(store.folder, "sentiment", "qwen")
    assert [(r.session_id, r.label.turn, r.label.value) for r in found] == [
        ("one", 0, "NEUTRAL"),
        ("one", 1, "NEGATIVE"),
    ]
    first = found[0].label
    assert (first.labeller, first.reason, first.model, first.created_at) == ("qwen", "asks", "qwen3", 5)


def test_a_message_that_is_another_turn_here_is_found_by_its_text(store: Store, tmp_path: Path) -> None:
    """Whoever published them did not count the slash command as a turn."""
    file = published(tmp_path / "a.parquet", row("two", 1, "NEUTRAL", content_text="add a test"))
    assert take(store, file, "qwen").moved == 1
    assert [r.label.turn for r in sidecars.labels_of(store.folder, "sentiment", "qwen")] == [1]


def test_a_text_that_several_turns_have_is_not_guessed_at(tmp_path: Path) -> None:
    made = session(user("go"), user("yes"), user("stop"), user("yes"), session_id="s")
    store = store_of(tmp_path / "store", made)
    file = published(
        tmp_path / "a.parquet",
        row("s", 1, "NEUTRAL", content_text="yes"), row("s", 2, "POSITIVE", content_text="yes"),
        row("s", 9, "NEUTRAL", content_text="yes"), row("s", 3, "NEUTRAL", content_text="nobody said this"),
    )  # fmt: skip
    taken = take(store, file, "qwen")
    assert (taken.labels, taken.skipped) == (1, {"other_text": 2, "no_such_turn": 1})
    assert sidecars.labels_of(store.folder, "sentiment", "qwen")[0].label.turn == 1


def test_without_its_text_a_label_goes_by_the_number_of_its_turn(store: Store, tmp_path: Path) -> None:
    file = published(tmp_path / "a.parquet", row("one", 3, "POSITIVE"), row("one", 4, "NEUTRAL"))
    taken = take(store, file, "qwen")
    assert (taken.labels, taken.skipped) == (1, {"no_such_turn": 1})


def test_two_published_messages_that_are_one_turn_here_leave_one_label(store: Store, tmp_path: Path) -> None:
    file = published(
        tmp_path / "a.parquet",
        row("two", 2, "NEUTRAL", content_text="add a test"), row("two", 1, "NEGATIVE", content_text="add a test"),
    )  # fmt: skip
    taken = take(store, file, "qwen")
    assert (taken.labels, taken.skipped) == (1, {"repeated": 1})
    assert sidecars.labels_of(store.folder, "sentiment", "qwen")[0].label.value == "NEUTRAL"


def test_taken_labels_become_values_at_the_next_measure(store: Store, tmp_path: Path) -> None:
    file = published(tmp_path / "a.parquet", row("one", 1, "NEUTRAL"), row("one", 2, "NEGATIVE"))
    take(store, file, "qwen")
    pipeline.measure(store.folder)
    asked = "SELECT number FROM signals WHERE signal = 'corpus.neutral_share'"
    assert Store(store.folder).sql(asked).fetchall() == [(0.5,)]


@pytest.mark.slow
@pytest.mark.corpus
def test_hand_labels_of_real_prompts_find_their_turns(tmp_path: Path, corpus_folder: Path) -> None:
    """The gold prompts number their turns by another reader's count, which most of ours agree with."""
    gold = [json.loads(line) for line in (CORPUS / "gold" / "prompts_gold.jsonl").read_text("utf-8").splitlines()]
    rows = [row(g["session"], g["turn"], g["sentiment"], content_text=g["text"]) for g in gold]
    store = Store(shutil.copytree(corpus_folder / "store", tmp_path / "store"))
    taken = take(store, published(tmp_path / "gold.parquet", *rows), "gold")
    here = [g for g in gold if g["session"] in store.manifest.sessions]
    assert taken.unmatched_labels == len(gold) - len(here) == 227
    assert taken.labels + sum(taken.skipped.values()) == len(here) == 25
    texts = {(s, t): x for s, t, x in store.sql("SELECT session_id, turn, text FROM turns").fetchall()}
    for one in sidecars.labels_of(store.folder, "sentiment", "gold"):
        said = " ".join(texts[one.session_id, one.label.turn].split())
        own = [g for g in here if g["session"] == one.session_id and " ".join(g["text"].split()) == said]
        assert one.label.value in {g["sentiment"] for g in own}
    assert (taken.labels, taken.moved, taken.skipped) == (23, 4, {"no_such_turn": 2})
