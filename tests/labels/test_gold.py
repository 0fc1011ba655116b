"""Gold files and people: a sample out, labels in, two annotators and what they settle."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.cli import main
from agentsignals.errors import AgentSignalsError, SourceError, UsageError
from agentsignals.ingest import pipeline
from agentsignals.labels import annotation as human_labels
from agentsignals.labels import gold
from agentsignals.labels.agreement import Both, weighted_back
from agentsignals.labels.annotation import to_settle
from agentsignals.labels.gold import GoldRow
from agentsignals.labels.matching import read_published, take
from agentsignals.labels.tasks import task
from agentsignals.model import Label
from agentsignals.redaction import Redactor
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from tests.build import say, session, user
from tests.labels.stores import session_id, store_of
from tests.questions.stores import store_of as store_with

SENTIMENT = task("sentiment")
MESSAGES = [f"message {n}" for n in range(30)]
SECRET = "hf_" + "b" * 30


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two sessions of thirty messages; rules said of the first two that they are NEGATIVE, of one nothing."""
    made = store_of(tmp_path, MESSAGES, [f"other {m}" for m in MESSAGES])
    said = {(s, t): "NEUTRAL" for s in range(2) for t in range(30)} | dict.fromkeys(((0, 0), (0, 1)), "NEGATIVE")
    del said[1, 29]
    rows = [
        LabelRow(session_id(s), Label(task="sentiment", labeller="rules", turn=t, value=value))
        for (s, t), value in said.items()
    ]
    sidecars.write_labels(made.folder, "sentiment", "rules", rows)
    return made


def run(capsys: pytest.CaptureFixture[str], store: Store, *arguments: object, code: int = 0) -> dict[str, Any]:
    assert main([*map(str, arguments), "--store", str(store.folder), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def sit(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{a}\n" for a in answers)))


def labelled(store: Store, name: str, kind: str = "sentiment") -> dict[tuple[str, int | None], str]:
    return {(r.session_id, r.label.turn): r.label.value for r in sidecars.labels_of(store.folder, kind, name)}


def test_a_sample_is_even_over_what_the_labeller_said_and_weighs_it_back(store: Store) -> None:
    rows = human_labels.sample(store, SENTIMENT, 13)
    assert len(rows) == len({(r.session_id, r.turn) for r in rows}) == 13
    told = Counter((r.stratum, r.weight) for r in rows)
    # One thing without a label, two NEGATIVE, and ten of the 57 NEUTRAL.
    assert sorted(told.values()) == [1, 2, 10]
    assert sum(n * weight for (_, weight), n in told.items() if weight is not None) == pytest.approx(60)
    assert "NEG" not in json.dumps([r.stratum for r in rows]), "who labels is not to know what the labeller said"
    assert {r.prompt_hash for r in rows} == {SENTIMENT.prompt_hash}


def test_a_sample_is_the_same_for_the_same_seed_and_at_most_all(store: Store) -> None:
    first, again, other = (human_labels.sample(store, SENTIMENT, 20, seed=s) for s in (1, 1, 2))
    assert first == again != other
    assert [r.turn for r in first] != sorted(r.turn or 0 for r in first)
    rows = human_labels.sample(store, SENTIMENT, 500)
    assert len(rows) == 60 and {r.weight for r in rows} == {1.0}


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_sample_goes_out_is_labelled_elsewhere_and_comes_back(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    path = tmp_path / f"gold.{suffix}"
    assert run(capsys, store, "label", "sentiment", "--export-gold", path, "--sample", 13)["strata"] == 3
    if suffix == "jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert all(row["label"] is None and row["text"] for row in rows)
    else:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    for row in rows[:5]:
        row["label"] = "positive"
    edited = tmp_path / f"edited.{suffix}"
    with edited.open("w", encoding="utf-8", newline="") as out:
        if suffix == "jsonl":
            out.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            table = csv.DictWriter(out, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    arguments = ("label", "sentiment", "--from", edited, "--labeller", "human:eva")
    taken = run(capsys, store, *arguments)
    assert (taken["labels"], taken["skipped"]) == (5, {"no_label": 8})
    assert set(labelled(store, "human:eva").values()) == {"POSITIVE"}
    held = sidecars.labels_of(store.folder, "sentiment", "human:eva")
    assert {r.label.prompt_hash for r in held} == {SENTIMENT.prompt_hash}
    found = run(capsys, store, "agree", "sentiment", "rules", "--gold", edited)
    assert found["n"] + found["left_out"].get("only_gold", 0) == 5
    assert found["weighted_back"]["things"] > 5


def test_labels_come_in_beside_those_that_stand(store: Store, tmp_path: Path) -> None:
    for turn, said in ((1, "POSITIVE"), (2, "NEUTRAL")):
        path = tmp_path / f"{turn}.jsonl"
        gold.write(path, [GoldRow(session_id=session_id(0), turn=turn, label=said)])
        human_labels.take(store, path, "human:eva", SENTIMENT)
    assert labelled(store, "human:eva") == {(session_id(0), 0): "POSITIVE", (session_id(0), 1): "NEUTRAL"}


def test_texts_are_masked_in_a_file_and_still_found(tmp_path: Path) -> None:
    made = store_of(tmp_path, ["first", f"use {SECRET} please"])
    path = tmp_path / "gold.jsonl"
    rows = human_labels.sample(made, SENTIMENT, 2)
    gold.write(path, rows)
    assert SECRET not in path.read_text("utf-8") and "[key]" in path.read_text("utf-8")
    for row in rows:
        row.label = "NEUTRAL"
    gold.write(tmp_path / "back.jsonl", rows)
    assert human_labels.take(made, tmp_path / "back.jsonl", "human:eva", SENTIMENT).labels == 2


def test_a_file_that_another_machine_masked_is_found_and_another_persons_text_is_not(tmp_path: Path) -> None:
    made = store_of(tmp_path, ["first", "write to jo@example.org please", "see /home/jodoe/x or https://x.org/y"])
    rows = human_labels.sample(made, SENTIMENT, 3)
    theirs = Redactor(bytes(range(32)))
    texts = {2: "write to jo@example.org please", 3: "see /home/jodoe/x or https://x.org/y"}
    for row in rows:
        row.label, ours = "NEUTRAL", row.text
        if row.turn in texts:
            row.text = theirs.plain(texts[row.turn])
            assert row.text != ours and "[" in row.text
    gold.write(tmp_path / "back.jsonl", rows)
    assert human_labels.take(made, tmp_path / "back.jsonl", "human:eva", SENTIMENT).labels == 3
    for row in rows:
        row.text = "write to al@example.org please" if row.turn == 2 else row.text
    gold.write(tmp_path / "other.jsonl", rows)
    assert human_labels.take(made, tmp_path / "other.jsonl", "human:al", SENTIMENT).skipped == {"other_text": 1}


def test_a_spreadsheet_runs_nothing_and_gives_back_what_was(tmp_path: Path) -> None:
    texts = ["=HYPERLINK(1)", "+1", "-1", "@x", "'quoted", "plain, with “quotes” and\nlines", "\ttab"]
    rows = [GoldRow(session_id="s", turn=n, label="NEUTRAL", text=t) for n, t in enumerate(texts, 1)]
    path = tmp_path / "gold.csv"
    gold.write(path, rows)
    with path.open(encoding="utf-8", newline="") as held:
        assert not [r for r in csv.DictReader(held) if r["text"][0] in "=+-@\t"]
    assert [r.text for r in gold.read(path, SENTIMENT).rows] == texts


def test_what_is_no_row_is_counted_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    good = {"session_id": "s", "turn": 1, "label": "NEUTRAL"}
    bad: list[Any] = [
        {**good, "turn": 0}, {**good, "turn": 1.5}, {**good, "turn": True}, {**good, "turn": "1e400"},
        {**good, "session_id": 7}, {**good, "turn": 2, "label": "meh"}, {**good, "turn": 3, "task": "persona"},
        {**good, "turn": 4, "label": None}, 5, good,
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, [good, *bad])) + "\n{cut\n\n" + "[" * 100_000, "utf-8")
    found = gold.read(path, SENTIMENT)
    assert len(found.rows) == 1
    assert found.skipped == {
        "no_turn": 4, "no_session": 1, "no_label": 1, "no_such_class": 1, "not_this_task": 1, "unreadable": 3,
        "repeated": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("n", "refused"), [(4, False), (5, True)])
def test_a_column_of_other_classes_is_refused_and_the_fitting_one_named(tmp_path: Path, n: int, refused: bool) -> None:
    path = tmp_path / "gold.jsonl"
    other = {"label": "none", "mood": "NEUTRAL"}
    rows = [{"session_id": "s", "turn": k, **(other if k <= n else {"label": "NEUTRAL"})} for k in range(1, 20)]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    if not refused:
        assert gold.read(path, SENTIMENT).skipped == {"no_such_class": n}
        rows = [{"session_id": "s", "turn": k, "label": "meh" if k <= 5 else "NEUTRAL"} for k in range(1, 101)]
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        assert gold.read(path, SENTIMENT).skipped == {"no_such_class": 5}, "a few labels of a large file may be none"
        return
    with pytest.raises(UsageError, match=r"5 of 19 labels in gold.jsonl are not labels of .*'none' 5 times"):
        gold.read(path, SENTIMENT)
    rows = [{**row, "mood": "NEUTRAL"} for row in rows]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with pytest.raises(UsageError) as caught:
        gold.read(path, SENTIMENT)
    assert caught.value.hint == "Name the column that has these labels: --column mood."
    assert len(gold.read(path, SENTIMENT, "mood").rows) == 19


def test_bad_files_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text('{"session_id": "s", "turn": 1}\n', "utf-8")
    for call in (
        lambda: gold.read(path, SENTIMENT),  # no column of labels
        lambda: gold.read(tmp_path / "none.jsonl", SENTIMENT),
        lambda: gold.read(tmp_path, SENTIMENT),
        lambda: gold.write(path, []),  # somebody's work may be in it
        lambda: gold.write(tmp_path / "gold.txt", []),
        lambda: human_labels.name_of(" "),
        lambda: human_labels.name_of("a\x1b[31m"),
    ):
        with pytest.raises(AgentSignalsError) as caught:
            call()
        assert caught.value.hint


def test_a_person_labels_goes_back_skips_and_goes_on_later(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gold.jsonl"
    gold.write(path, [GoldRow(session_id=session_id(0), turn=n) for n in (1, 2, 3, 4, 99)])
    arguments = ("annotate", "sentiment", "--as", "ann", "--gold", path)
    # POSITIVE; nonsense, then NEGATIVE by name; back, NEUTRAL instead; skip; quit.
    sit(monkeypatch, "1", "9", "", "?", "negative", "u", "2", "s", "q")
    assert main([*map(str, arguments), "--store", str(store.folder)]) == 0
    out, err = capsys.readouterr()
    assert "labelled    2 by human:ann" in out and "left        2" in out and "1 no such turn" in out
    assert "message 0" in err and "1 POSITIVE, 2 NEUTRAL, 3 NEGATIVE" in err and "9 is none of them" in err
    assert SENTIMENT.prompt.splitlines()[0] in err
    s = session_id(0)
    assert labelled(store, "human:ann") == {(s, 0): "POSITIVE", (s, 1): "NEUTRAL"}
    sit(monkeypatch, "3")  # and the input ends
    assert run(capsys, store, *arguments)["before"] == 2
    assert labelled(store, "human:ann") == {(s, 0): "POSITIVE", (s, 1): "NEUTRAL", (s, 2): "NEGATIVE"}
    assert {r.label.prompt_hash for r in sidecars.labels_of(store.folder, "sentiment", "human:ann")} == {
        SENTIMENT.prompt_hash
    }


def test_labels_that_the_file_has_are_adopted_and_counted(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, both = tmp_path / "settle.jsonl", {"ann": "NEUTRAL", "ben": "NEUTRAL"}
    rows = [GoldRow(session_id=session_id(0), turn=1, label="NEUTRAL", by_labeller=both)]
    gold.write(path, [*rows, GoldRow(session_id=session_id(0), turn=2, by_labeller={**both, "ben": "POSITIVE"})])
    sit(monkeypatch, "q")
    assert main(["annotate", "sentiment", "--as", "eva", "--gold", str(path), "--store", str(store.folder)]) == 0
    told = capsys.readouterr().out
    assert "agreed      1 with equal labels of both were adopted" in told and "left        1" in told
    assert labelled(store, "human:eva") == {(session_id(0), 0): "NEUTRAL"}


def test_undo_before_anything_is_no_harm(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sit(monkeypatch, "u", "u", "1", "u")
    told = run(capsys, store, "annotate", "sentiment", "--as", "human:ann", "--sample", 3)
    assert (told["labelled"], told["left"], labelled(store, "human:ann")) == (0, 3, {})


def test_messages_cannot_drive_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store_of(tmp_path, ["red \x1b[31m and \x07 bell"])
    sit(monkeypatch, "1")
    run(capsys, made, "annotate", "sentiment", "--as", "ann")
    sit(monkeypatch, "q")
    assert main(["annotate", "sentiment", "--as", "ben", "--store", str(made.folder)]) == 0
    err = capsys.readouterr().err
    assert "red" in err and "\x1b" not in err and "\x07" not in err


def test_what_is_judged_by_its_context_is_shown_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store_of(tmp_path, ["write a parser", "no, in Rust"], answer="Here is one in C.")
    for name, asked, shown in (("pushback", ["q"], True), ("sentiment", ["q"], False), ("sentiment", ["s", "c"], True)):
        path = tmp_path / f"{name}-{len(asked)}.jsonl"
        gold.write(path, [GoldRow(session_id=session_id(0), turn=n) for n in (1, 2)[2 - len(asked) :]])
        sit(monkeypatch, *asked)
        assert main(["annotate", name, "--as", "x", "--gold", str(path), "--store", str(made.folder)]) == 0
        err = capsys.readouterr().err
        assert "no, in Rust" in err and ("Here is one in C." in err) is shown


def test_sessions_are_scored_with_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store_of(tmp_path, ["write a parser", "thanks"])
    sit(monkeypatch, "101", "-1", "abc", "85")
    assert main(["annotate", "session_success", "--as", "ann", "--store", str(made.folder)]) == 0
    assert "turn 0, the person" in capsys.readouterr().err
    (row,) = sidecars.labels_of(made.folder, "session_success", "human:ann")
    assert (row.label.value, row.label.number, row.label.turn) == ("85", 85.0, None)


@pytest.mark.slow
def test_two_annotators_settle_what_they_disagree_on(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, settle = tmp_path / "gold.jsonl", tmp_path / "settle.jsonl"
    gold.write(path, [GoldRow(session_id=session_id(0), turn=n) for n in (1, 2, 3)])
    for name, answers in (("ann", "123"), ("ben", "122")):
        sit(monkeypatch, *answers)
        run(capsys, store, "annotate", "sentiment", "--as", name, "--gold", path)
    found = run(capsys, store, "agree", "sentiment", "human:ann", "human:ben", "--settle", settle)
    assert (found["n"], found["warnings"]) == (3, [])
    sit(monkeypatch, "3")
    assert main(["annotate", "sentiment", "--as", "settled", "--gold", str(settle), "--store", str(store.folder)]) == 0
    err = capsys.readouterr().err
    assert "human:ann said NEGATIVE" in err and "human:ben said NEUTRAL" in err and "1 of 1" in err
    s = session_id(0)
    assert labelled(store, "human:settled") == {(s, 0): "POSITIVE", (s, 1): "NEUTRAL", (s, 2): "NEGATIVE"}


def test_near_scores_are_settled_by_their_mean() -> None:
    both = [
        Both(session_id="s", turn=None, a="70", b="85", score_a=70.0, score_b=85.0),
        Both(session_id="t", turn=None, a="10", b="60", score_a=10.0, score_b=60.0),
    ]
    near, far = to_settle(task("session_success"), "a", "b", both)
    assert near.label == "77.5" and far.label is None and far.by_labeller == {"a": "10", "b": "60"}
    steps = [Both(session_id="s", turn=None, a="3", b="4", score_a=0.75, score_b=1.0)]
    assert to_settle(task("goal_alignment_at_close"), "a", "b", steps)[0].label is None


def test_weights_give_back_what_strata_took() -> None:
    things = [("a", "a", 8.0), ("b", "b", 1.0), ("a", "b", 1.0)]
    found = weighted_back([("s", *thing) for thing in things])
    # First: a 9, b 1. Second: a 8, b 2. Chance: .9 * .8 + .1 * .2 = .74.
    assert found is not None and (found.things, found.agreement) == (10, 0.9)
    assert found.chance == pytest.approx(0.74) and found.kappa is not None and found.kappa.low is None
    assert found.kappa.value == pytest.approx(0.16 / 0.26)
    spread = [(f"s{n}", *things[n % 3][:2], things[n % 3][2] + n) for n in range(12)]
    over = weighted_back(spread)
    assert over is not None and over.kappa is not None and over.kappa.low is not None and over.kappa.high is not None
    assert over.kappa.low < over.kappa.value < over.kappa.high
    alone = weighted_back([("s", "a", "a", 2.0)])
    assert alone is not None and alone.kappa is None and weighted_back([]) is None


def test_peoples_steps_are_on_the_scale_of_models(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    gold.write(path, [GoldRow(session_id="s", label="3")])
    (row,) = gold.read(path, task("goal_alignment_at_close")).rows
    assert (row.label, row.number) == ("3", 0.75)


# -- published labels --------------------------------------------------------------------------------------------------


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
def held(tmp_path: Path) -> Store:
    one = session(user("fix the parser"), say("done"), user("no, the other one"), user("yes"), session_id="one")
    two = session(user("/init", "slash_command"), user("add a test"), say("ok"), user("yes"), session_id="two")
    return store_with(tmp_path / "store", one, two)


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


# -- taking them into a held ------------------------------------------------------------------------------------------


def test_labels_are_written_for_the_messages_they_are_of(held: Store, tmp_path: Path) -> None:
    file = published(
        tmp_path / "a.parquet",
        row("one", 1, "NEUTRAL", sentiment_reason="asks", content_text="fix the  parser\n"),
        row("one", 2, "NEGATIVE", content_text="no, the other one"),
        row("elsewhere", 1, "NEUTRAL", content_text="hi"),
        row("elsewhere", 2, "NEUTRAL", content_text="hi"),
    )
    taken = take(held, file, "qwen")
    assert (taken.labels, taken.sessions, taken.moved) == (2, 1, 0)
    assert (taken.unmatched_sessions, taken.unmatched_labels, taken.skipped) == (1, 2, {})
    found = sidecars.labels_of(held.folder, "sentiment", "qwen")
    assert [(r.session_id, r.label.turn, r.label.value) for r in found] == [
        ("one", 0, "NEUTRAL"),
        ("one", 1, "NEGATIVE"),
    ]
    first = found[0].label
    assert (first.labeller, first.reason, first.created_at is not None) == ("qwen", "asks", True)


def test_a_message_that_is_another_turn_here_is_found_by_its_text(held: Store, tmp_path: Path) -> None:
    """Whoever published them did not count the slash command as a turn."""
    file = published(tmp_path / "a.parquet", row("two", 1, "NEUTRAL", content_text="add a test"))
    assert take(held, file, "qwen").moved == 1
    assert [r.label.turn for r in sidecars.labels_of(held.folder, "sentiment", "qwen")] == [1]


def test_a_text_that_several_turns_have_is_not_guessed_at(tmp_path: Path) -> None:
    made = session(user("go"), user("yes"), user("stop"), user("yes"), session_id="s")
    held = store_with(tmp_path / "store", made)
    file = published(
        tmp_path / "a.parquet",
        row("s", 1, "NEUTRAL", content_text="yes"), row("s", 2, "POSITIVE", content_text="yes"),
        row("s", 9, "NEUTRAL", content_text="yes"), row("s", 3, "NEUTRAL", content_text="nobody said this"),
    )  # fmt: skip
    taken = take(held, file, "qwen")
    assert (taken.labels, taken.skipped) == (1, {"other_text": 2, "no_such_turn": 1})
    assert sidecars.labels_of(held.folder, "sentiment", "qwen")[0].label.turn == 1


def test_without_its_text_a_label_goes_by_the_number_of_its_turn(held: Store, tmp_path: Path) -> None:
    file = published(tmp_path / "a.parquet", row("one", 3, "POSITIVE"), row("one", 4, "NEUTRAL"))
    taken = take(held, file, "qwen")
    assert (taken.labels, taken.skipped) == (1, {"no_such_turn": 1})


def test_two_published_messages_that_are_one_turn_here_leave_one_label(held: Store, tmp_path: Path) -> None:
    file = published(
        tmp_path / "a.parquet",
        row("two", 2, "NEUTRAL", content_text="add a test"), row("two", 1, "NEGATIVE", content_text="add a test"),
    )  # fmt: skip
    taken = take(held, file, "qwen")
    assert (taken.labels, taken.skipped) == (1, {"repeated": 1})
    assert sidecars.labels_of(held.folder, "sentiment", "qwen")[0].label.value == "NEUTRAL"


def test_taken_labels_become_values_at_the_next_measure(held: Store, tmp_path: Path) -> None:
    file = published(tmp_path / "a.parquet", row("one", 1, "NEUTRAL"), row("one", 2, "NEGATIVE"))
    take(held, file, "qwen")
    pipeline.measure(held.folder)
    asked = "SELECT number FROM signals WHERE signal = 'corpus.neutral_share'"
    assert Store(held.folder).sql(asked).fetchall() == [(0.5,)]
