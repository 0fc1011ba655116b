"""`replicate`: published claims against data whose truth is known, whole, damaged and missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agentsignals.cli import main
from agentsignals.errors import SourceError
from agentsignals.experiments.replication import Verdict, replicate
from agentsignals.model import Label
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from tests import sentiment_data
from tests.build import call, session, user
from tests.questions.stores import store_of

LABEL, TURN, SESSION = pl.col("sentiment_label"), pl.col("turn"), pl.col("session_id")


@pytest.fixture(autouse=True)
def no_store_of_mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "no store"))


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return sentiment_data.write(tmp_path / "dataset", sentiment_data.messages())


def by_claim(found: list[Verdict]) -> dict[str, Verdict]:
    return {v.claim: v for v in found}


def statuses(found: list[Verdict]) -> dict[str, str]:
    return {v.claim.removeprefix("sentiment."): v.status for v in found}


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[dict[str, Any]], str]:
    code = main(["replicate", *map(str, arguments), "--json"])
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


def test_the_six_claims_pass_on_data_that_was_made_to_meet_them(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, err = asked(capsys, "sentiment", "--data", dataset)
    assert (code, err) == (0, "")
    assert [v["claim"] for v in found] == list(sentiment_data.TRUTH)
    for verdict in found:
        assert verdict["computed"] == pytest.approx(sentiment_data.TRUTH[verdict["claim"]])
    assert {v["status"] for v in found} == {"pass"}
    assert [v["n"] for v in found] == [2500, 500, 2500, 1000, 40, 500]
    assert set(found[0]) >= {"claim", "status", "expected", "computed", "tolerance", "source", "note"}
    assert found[0]["tolerance"] == {"neutral": 0.015, "negative": 0.015, "positive": 0.015}
    assert found[5]["tolerance"] == {"median": 1.6, "corpus": 1.8}


@pytest.mark.parametrize("named", ["data", "data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"])
def test_the_data_may_be_named_by_its_inner_folder_or_by_a_file(dataset: Path, named: str) -> None:
    n = by_claim(replicate("sentiment", dataset / named))["sentiment.short_messages"].n
    assert n == (2500 if named == "data" else 1250)


def test_a_file_of_another_form_will_do(tmp_path: Path) -> None:
    sentiment_data.messages().write_ndjson(tmp_path / "messages.jsonl")
    assert set(statuses(replicate("sentiment", tmp_path)).values()) == {"pass"}


CORRUPTED: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], set[str]]] = {
    "neutral second messages became negative": (
        lambda rows: rows.with_columns(
            sentiment_label=pl.when((LABEL == "NEUTRAL") & (TURN == 2)).then(pl.lit("NEGATIVE")).otherwise(LABEL)
        ),
        {"label_shares", "pure_neutral_sessions"},
    ),
    "labels in small letters": (
        lambda rows: rows.with_columns(LABEL.str.to_lowercase()),
        # No session opens NEGATIVE any more, so there is nothing to compute that claim from.
        {"label_shares", "pure_neutral_sessions", "negative_by_turn"},
    ),
    "turns in reverse": (
        lambda rows: rows.with_columns(turn=6 - TURN),
        {"negative_by_turn", "never_positive_after"},
    ),
    "a blank at the end of every message": (
        lambda rows: rows.with_columns(pl.col("content_text") + " "),
        {"short_messages"},
    ),
    "half of the calls lost": (
        lambda rows: rows.with_columns(pl.col("n_tool_calls") // 2),
        {"autonomy_ratio"},
    ),
    "one session holds all the calls": (
        lambda rows: rows.with_columns(
            n_tool_calls=pl.when(SESSION == "session 499").then(9000).otherwise(pl.col("n_tool_calls"))
        ),
        {"autonomy_ratio"},
    ),
    "good words after bad openings lost": (
        lambda rows: rows.filter((LABEL != "POSITIVE") | (TURN != 2)),
        {"label_shares", "pure_neutral_sessions", "never_positive_after"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", CORRUPTED)
def test_a_corrupted_copy_fails_loudly_in_the_claims_it_touches(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corrupt, hit = CORRUPTED[damage]
    copy = sentiment_data.write(tmp_path / "copy", corrupt(sentiment_data.messages()))
    code, found, err = asked(capsys, "sentiment", "--data", copy)
    failed = {v["claim"].removeprefix("sentiment.") for v in found if v["status"] == "fail"}
    assert code == 1
    assert failed == hit
    assert "FAILED" in err
    assert all(f"sentiment.{claim}" in err for claim in hit)


def test_eight_and_sixteen_of_a_hundred_are_not_more_than_double(tmp_path: Path) -> None:
    rows = sentiment_data.messages().with_columns(
        pl.when((TURN == 5) & pl.col("session_id").is_in([f"session {n}" for n in range(40, 50)]))
        .then(pl.lit("NEUTRAL"))
        .otherwise(LABEL)
        .alias("sentiment_label")
    )
    found = by_claim(replicate("sentiment", sentiment_data.write(tmp_path / "copy", rows)))[
        "sentiment.negative_by_turn"
    ]
    assert found.computed == pytest.approx({"first": 0.08, "fifth": 0.16, "more_than_doubled": False})
    assert found.status == "fail"


def test_a_file_cut_short_fails_and_says_so(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    victim = dataset / "data" / "train-00001-of-00002.parquet"
    victim.write_bytes(victim.read_bytes()[:-20])
    code, found, _ = asked(capsys, "sentiment", "--data", dataset)
    assert code == 1
    assert {v["status"] for v in found} == {"fail"}
    assert all(v["computed"] is None and "parse_error" in v["note"] for v in found)


def test_a_missing_column_costs_only_the_claims_that_need_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = sentiment_data.write(tmp_path / "copy", sentiment_data.messages().drop("n_tool_calls"))
    code, found, _ = asked(capsys, "sentiment", "--data", copy)
    told = {v["claim"]: v for v in found}
    assert code == 0
    assert told.pop("sentiment.autonomy_ratio")["status"] == "untestable"
    assert {v["status"] for v in told.values()} == {"pass"}
    assert main(["replicate", "sentiment", "--data", str(copy), "--strict"]) == 1


@pytest.mark.parametrize("claims", ["sentiment", "swe-chat", "emotion-lab"])
def test_without_data_nothing_passes_and_every_claim_says_what_it_needs(
    claims: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for named in ((), ("--data", tmp_path / "empty")):
        code, found, err = asked(capsys, claims, *named)
        assert code == 1
        assert found
        assert all(v["status"] == "untestable" and v["computed"] is None and v["note"] for v in found)
        assert "not one claim could be tested" in err


def test_a_data_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="There is no"):
        replicate("sentiment", tmp_path / "nowhere")


def test_an_empty_table_is_no_zero(tmp_path: Path) -> None:
    copy = sentiment_data.write(tmp_path / "copy", sentiment_data.messages().clear())
    assert set(statuses(replicate("sentiment", copy)).values()) == {"untestable"}


def test_sessions_without_prompts_have_no_ratio(tmp_path: Path) -> None:
    odd = pl.DataFrame([{**sentiment_data.message(0, 1), "session_id": "odd", "nTurns": 0}])
    rows = pl.concat([sentiment_data.messages(), odd])
    found = by_claim(replicate("sentiment", sentiment_data.write(tmp_path / "copy", rows)))["sentiment.autonomy_ratio"]
    assert (found.n, found.computed) == (500, {"median": 16.0, "corpus": 18.0})


def test_labels_of_a_store_stand_in_for_the_data_set(tmp_path: Path) -> None:
    """Three sessions; the labeller with most labels counts, and eval runs never do."""
    made = [
        session(user("it does not work at all"), call("Bash", command="ls"), user("ok thanks"), session_id="a"),
        session(user("add a page for the list of users"), *[call("Bash", command="ls")] * 4, session_id="b"),
        session(user("Solve the task in this folder"), session_id="run"),
    ]
    made[2].context = "eval"
    store = store_of(tmp_path / "store", *made)
    mine = [("a", 0, "negative"), ("a", 1, "POSITIVE"), ("b", 0, "NEUTRAL"), ("run", 0, "NEGATIVE")]
    for labeller, given in {"mine": mine, "other": [("b", 0, "NEGATIVE")]}.items():
        rows = [
            LabelRow(s, Label(task="sentiment", labeller=labeller, turn=turn, value=value)) for s, turn, value in given
        ]
        sidecars.write_labels(store.folder, "sentiment", labeller, rows)
    elsewhere = [LabelRow("b", Label(task="intent", labeller="other", turn=turn, value="create")) for turn in range(9)]
    sidecars.write_labels(store.folder, "intent", "other", elsewhere)
    found = by_claim(replicate("sentiment", store=Store(store.folder)))
    computed = {claim.removeprefix("sentiment."): v.computed for claim, v in found.items()}
    third = pytest.approx(1 / 3)
    assert computed["label_shares"] == {"neutral": third, "negative": third, "positive": third}
    assert computed["pure_neutral_sessions"] == 0.5
    assert computed["short_messages"] == third
    assert computed["never_positive_after"] == 0.0
    assert computed["autonomy_ratio"] == {"median": 2.25, "corpus": pytest.approx(5 / 3)}
    assert found["sentiment.negative_by_turn"].status == "untestable"  # no fifth turn


def test_a_store_without_labels_has_nothing_to_test(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", session(user("hello there")))
    assert set(statuses(replicate("sentiment", store=store)).values()) == {"untestable"}


def test_named_data_is_never_replaced_by_the_store(tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", session(user("hello there"), session_id="a"))
    sidecars.write_labels(
        store.folder,
        "sentiment",
        "mine",
        [LabelRow("a", Label(task="sentiment", labeller="mine", turn=0, value="NEUTRAL"))],
    )
    (tmp_path / "empty").mkdir()
    found = replicate("sentiment", tmp_path / "empty", Store(store.folder))
    assert {v.status for v in found} == {"untestable"}


def test_people_see_a_table_the_reasons_and_a_count(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (dataset / "data" / "train-00001-of-00002.parquet").unlink()
    assert main(["replicate", "sentiment", "--data", str(dataset)]) in (0, 1)
    out = capsys.readouterr().out
    assert "sentiment.label_shares" in out
    assert "neutral 0.77, negative 0.14, positive 0.09" in out
    assert out.rstrip().splitlines()[-1].endswith("untestable")
