"""Claims files written by anybody: what each kind of claim does, and what a bad or hostile one can't do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agentsignals.cli import main
from agentsignals.errors import ClaimsError, SourceError, UsageError
from agentsignals.experiments import replication as ground
from agentsignals.experiments.replication import Verdict, replicate
from agentsignals.model import Label
from agentsignals.sources import open_source
from agentsignals.sources.hub import cache_folder
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from tests import sentiment_data
from tests.build import call, session, user
from tests.hub_server import DataSet, Hub, hub
from tests.questions.stores import store_of
from tests.verbs import printed, printed_json

__all__ = ["hub"]

TABLE = "tables: {t: {files: [t.csv], columns: {a: BIGINT, b: VARCHAR}}}\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "it's data"
    folder.mkdir()
    (folder / "t.csv").write_text('a,b\n1,"x, y"\n3,"two\nlines"\n', "utf-8")
    (folder / "other.csv").write_text("secret\n42\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One session, for claims about a store; nobody writes to it."""
    return store_of(tmp_path_factory.mktemp("claims") / "store", session(user("hello there")))


def check(text: str, folder: Path, data: Path | None = None, store: Store | None = None) -> list[Verdict]:
    file = folder / "claims.yaml"
    file.write_text(text, "utf-8")
    return replicate(file, data, store)


def one(claim: dict[str, Any], data: Path, tables: str = TABLE) -> Verdict:
    """The verdict on one claim over the table t; id and expected value are put in when the test does not care."""
    claim = {"id": "c", "expected": 2, "over": "t", **claim}
    (found,) = check(tables + f"claims: [{json.dumps(claim)}]", data.parent, data)
    return found


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ({"query": "SELECT avg(a) FROM rows"}, "pass"),
        ({"query": "SELECT avg(a) FROM rows;"}, "pass"),
        ({"query": "SELECT avg(a) FROM rows -- a note"}, "pass"),
        ({"query": "WITH x AS (SELECT a FROM rows) SELECT avg(a) FROM x"}, "pass"),
        ({"query": "SELECT avg(x.a) FROM x", "over": {"x": "t"}}, "pass"),
        ({"query": "SELECT $v::INT AS v", "with": {"v": 2}}, "pass"),
        ({"query": "SELECT avg(a) FROM rows", "expected": 2.4, "tolerance": 0.4}, "pass"),
        ({"query": "SELECT avg(a) FROM rows", "expected": 2.41, "tolerance": 0.4}, "fail"),
        ({"query": "SELECT avg(a) FROM rows", "expected": 2.2, "tolerance": "10%"}, "pass"),
        ({"query": "SELECT avg(a) FROM rows", "expected": 2.3, "tolerance": "10 %"}, "fail"),
        ({"query": "SELECT -avg(a) FROM rows", "expected": -2.2, "tolerance": "10%"}, "pass"),
        ({"query": "SELECT -avg(a) FROM rows"}, "fail"),
        ({"query": "SELECT sum(a)::DECIMAL(9,2) - 2 FROM rows"}, "pass"),
        ({"query": "SELECT b FROM rows WHERE a = 1", "expected": "x, y"}, "pass"),
        ({"query": "SELECT b FROM rows WHERE a = 1", "expected": "x"}, "fail"),
        ({"query": "SELECT min(a) = 1 FROM rows", "expected": True}, "pass"),
        ({"query": "SELECT min(a) FROM rows", "expected": True}, "fail"),
        ({"query": "SELECT true", "expected": 1}, "fail"),
        ({"query": "SELECT 'NaN'::DOUBLE"}, "fail"),
        ({"query": "SELECT 'inf'::DOUBLE", "tolerance": "10%"}, "fail"),
        ({"query": "SELECT min(a) AS low, max(a) AS high FROM rows", "expected": {"low": 1, "high": 3}}, "pass"),
        ({"query": "SELECT min(a) AS low, max(a) AS high FROM rows", "expected": {"low": 1, "high": 4}}, "fail"),
        ({"query": "SELECT min(a) AS low FROM rows", "expected": {"low": 1}}, "fail"),
        ({"query": "SELECT min(a) AS low, 1 AS other FROM rows", "expected": {"high": 1}}, "fail"),
        ({"query": "SELECT min(a) AS low, max(a) AS high FROM rows", "expected": 1}, "fail"),
        ({"needs": "what nobody has"}, "untestable"),
        ({"query": "SELECT avg(a) FROM rows WHERE a > 9"}, "untestable"),
        ({"query": "SELECT a FROM rows"}, "untestable"),
        ({"query": "SELECT a FROM rows WHERE a > 9"}, "untestable"),
        ({"query": "SELECT c FROM rows"}, "untestable"),
        ({"query": "SELECT 2 FROM nowhere"}, "untestable"),
        ({"query": "SELECT count(*) AS n FROM rows"}, "untestable"),
        ({"query": "SELEC 2"}, "untestable"),
        ({"query": "SELECT $v::INT"}, "untestable"),
        ({"query": "SELECT 2", "with": {"v": 2}}, "untestable"),
        ({"finding": "autonomy.median"}, "untestable"),
        ({"query": "SELECT 2", "over": ""}, "untestable"),
    ],
)  # fmt: skip
def test_a_claim_is_judged(claim: dict[str, Any], status: str, data: Path) -> None:
    found = one(claim, data)
    assert found.status == status
    assert bool(found.note) == (status != "pass")


def test_a_column_n_is_the_number_of_observations_and_no_value(data: Path) -> None:
    found = one({"query": "SELECT avg(a) AS value, count(*) AS n FROM rows"}, data)
    assert (found.status, found.computed, found.n) == ("pass", 2.0, 2)


def test_a_decimal_is_told_as_a_number(data: Path) -> None:
    assert isinstance(one({"query": "SELECT sum(a)::DECIMAL(9,2) - 2 FROM rows"}, data).computed, float)


def test_files_of_several_forms_are_not_read_as_one(data: Path) -> None:
    (data / "t.jsonl").write_text('{"a": 100}\n{"a": 200}\n', "utf-8")
    tables = TABLE.replace("t.csv", "'t.*'")
    assert one({"query": "SELECT count(*) FROM rows"}, data, tables).status == "pass"


def test_an_empty_file_has_no_rows_to_count(data: Path) -> None:
    (data / "t.csv").write_text("a,b\n", "utf-8")
    assert one({"query": "SELECT count(*) FROM rows", "expected": 0}, data).status == "untestable"


def test_a_source_of_the_set_is_that_of_its_claims_unless_they_name_their_own(data: Path) -> None:
    claims = [{"id": "a", "expected": 1, "needs": "x"}, {"id": "b", "expected": 1, "needs": "x", "source": "table 2"}]
    found = check(f"source: the paper\nclaims: {json.dumps(claims)}", data.parent)
    assert [v.source for v in found] == ["the paper", "table 2"]


def test_a_known_failure_that_passes_says_so(data: Path) -> None:
    found = one({"query": "SELECT 2", "prior_result": "does not reproduce"}, data)
    assert found.status == "pass"
    assert "on this data it reproduces" in found.note


HOSTILE = (
    "SELECT count(*) FROM read_csv('{data}/other.csv')",
    "SELECT content FROM read_text('/etc/passwd')",
    "SELECT count(*) FROM glob('/etc/*')",
    "SELECT count(*) FROM rows) TO '{data}/out.csv'; SELECT (2",
    "COPY (SELECT 2) TO '{data}/out.csv'",
    "ATTACH '{data}/out.db'",
    "INSTALL httpfs",
    "SET enable_external_access=true",
    "DROP TABLE source_0",
    "DROP VIEW sessions",
    "SELECT 1; SELECT 2",
    "SELECT 2 FROM range(10) UNION ALL SELECT 2",
    "SELECT getenv('HOME')",
)


@pytest.mark.slow
@pytest.mark.parametrize("over", ["t", ""])
@pytest.mark.parametrize("sql", HOSTILE)
def test_sql_of_a_claims_file_reaches_nothing_but_its_tables(sql: str, over: str, data: Path, store: Store) -> None:
    files = sorted(p.name for p in data.iterdir())
    claims = [
        {"id": "bad", "expected": 2, "over": over, "query": sql.replace("{data}", str(data).replace("'", "''"))},
        {"id": "good", "expected": 2, "over": "t", "query": "SELECT avg(a) FROM rows"},
        {"id": "also good", "expected": 1, "query": "SELECT count(*) FROM sessions"},
    ]
    bad, *good = check(TABLE + f"claims: {json.dumps(claims)}", data.parent, data, store)
    assert (bad.status, bad.computed) == ("untestable", None)
    assert [v.status for v in good] == ["pass", "pass"]
    assert sorted(p.name for p in data.iterdir()) == files


@pytest.mark.parametrize("pattern", ["../secret.csv", "{root}/secret.csv", "**/../../secret.csv"])
def test_a_table_can_not_name_files_outside_the_data(pattern: str, data: Path) -> None:
    (data.parent / "secret.csv").write_text("a,b\n2,x\n", "utf-8")
    named = json.dumps(pattern.replace("{root}", str(data.parent)))
    tables = f"tables: {{t: {{files: [{named}], columns: {{a: BIGINT}}}}}}\n"
    assert one({"query": "SELECT avg(a) FROM rows"}, data, tables).status == "untestable"


def test_a_query_without_end_is_stopped(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "SECONDS_A_CLAIM", 0.3)
    endless = "WITH RECURSIVE e(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM e) SELECT max(x) FROM e"
    claims = [
        {"id": "endless", "expected": 2, "over": "t", "query": endless},
        {"id": "good", "expected": 2, "over": "t", "query": "SELECT avg(a) FROM rows"},
    ]
    stopped, good = check(TABLE + f"claims: {json.dumps(claims)}", data.parent, data)
    assert stopped.status == "untestable"
    assert "stopped after" in stopped.note
    assert good.status == "pass"


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("{id: c}", "expected"),
        ("{id: c, expected: [1], query: SELECT 1}", "expected"),
        ("{id: c, expected: 1, query: SELECT 1, tolerence: 2}", "tolerence"),
        ("{id: c, expected: 1}", "none"),
        ("{id: c, expected: 1, query: SELECT 1, needs: more}", "query and needs"),
        ("{id: c, expected: 1, recipe: nowhere}", "recipe"),
        ("{id: c, expected: 1, query: SELECT 1, over: nowhere}", "table"),
        ("{id: c, expected: 1, query: SELECT 1, snapshot: v9}", "snapshot"),
        ("{id: c, expected: 1, query: SELECT 1, tolerance: a bit}", "tolerance"),
        ("{id: c, expected: 1, query: SELECT 1, prior_result: maybe}", "prior_result"),
        ("{id: no, expected: 1, query: SELECT 1}", "id"),
        ("[1, 2]", "object"),
        ("null", "object"),
    ],
)
def test_a_claim_that_can_not_be_read_costs_the_others_nothing(claim: str, why: str, data: Path) -> None:
    text = TABLE + f"claims:\n- {claim}\n- {{id: good, expected: 2, over: t, query: SELECT avg(a) FROM rows}}\n"
    bad, good = check(text, data.parent, data)
    assert bad.status == "untestable"
    assert why in bad.note
    assert good.status == "pass"


def test_a_second_claim_of_an_id_is_not_taken_for_the_first(data: Path) -> None:
    same = {"id": "c", "expected": 2, "over": "t", "query": "SELECT avg(a) FROM rows"}
    first, second = check(TABLE + f"claims: {json.dumps([same, same])}", data.parent, data)
    assert (first.status, second.status) == ("pass", "untestable")


BOMB = "a: &a [1,1]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{f'*{chr(97 + n)},' * 9}]\n" for n in range(20))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "claims: 3",
        "just words",
        "claims: [",
        "claims: []\nmore: 1",
        "\x00\xff",
        "claims: []\nabout: !!python/object/apply:os.system ['touch owned']",
        BOMB + "claims: []",
        "claims: []\nabout: &a words\nsource: *a",
        "claims: " + "[" * 5000 + "]" * 5000,
    ],
)
def test_a_file_that_holds_no_claims_is_refused_with_a_reason(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.yaml").write_text(text, "utf-8")
    assert printed_json(capsys, "replicate", "claims.yaml", code=1)["error"]["kind"] == "claims"
    assert [p.name for p in tmp_path.iterdir()] == ["claims.yaml"]


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_bytes(b"claims: [\xff\xfe]")
    with pytest.raises(ClaimsError):
        replicate(tmp_path / "claims.yaml")


def test_a_set_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as problem:
        replicate("nowhere")
    assert "emotion-lab, sentiment, swe-chat" in problem.value.hint
    with pytest.raises(UsageError):
        replicate(tmp_path)


@pytest.mark.slow
def test_claims_ask_a_store_in_sql_and_by_a_studys_finding(tmp_path: Path) -> None:
    two = [call("Bash", command="ls"), call("Bash", command="pwd")]
    store = store_of(
        tmp_path / "store", session(user("do it"), *two, session_id="a"), session(user("x"), session_id="b")
    )
    claims = [
        {"id": "sql", "expected": 2, "query": "SELECT count(*) FROM sessions"},
        {"id": "finding", "expected": 1, "finding": "autonomy.median"},
        {"id": "other", "expected": 1.5, "finding": "autonomy.median"},
        {"id": "unknown", "expected": 1, "finding": "autonomy.nothing"},
        {"id": "wrong", "expected": 1, "query": "SELECT count(*) FROM nowhere"},
        {"id": "empty", "expected": 0, "query": "SELECT median(number) FROM signals WHERE signal = 'no.such'"},
    ]
    found = check(f"claims: {json.dumps(claims)}", tmp_path, store=store)
    assert [v.status for v in found] == ["pass", "pass", "fail", "untestable", "untestable", "untestable"]
    assert (found[1].computed, found[1].n) == (1.0, 2)


def test_the_verb_says_a_reason_why_claims_are_untestable_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path / "store", session(user("hello there")))
    tables = {"a": "nowhere", "b": "nowhere", "c": "elsewhere"}
    claims = [{"id": id_, "expected": 1, "query": f"SELECT count(*) FROM {name}"} for id_, name in tables.items()]
    (tmp_path / "c.yaml").write_text(f"claims: {json.dumps(claims)}", "utf-8")
    assert main(["replicate", str(tmp_path / "c.yaml"), "--store", str(store.folder)]) == 1
    reasons = [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines() if ": " in line]
    assert reasons[:2] == ["a and 1 more", "c"]


def test_the_verb_takes_the_store_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path / "store", session(user("hello there")))
    (tmp_path / "c.yaml").write_text("claims: [{id: c, expected: 1, query: SELECT count(*) FROM sessions}]", "utf-8")
    assert "1 pass" in printed(capsys, "replicate", tmp_path / "c.yaml", "--store", store.folder)
    assert main(["replicate", str(tmp_path / "c.yaml"), "--store", str(tmp_path / "none")]) == 1


# -- the claims of a set -----------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("named", ["", "data/train.parquet"])
def test_a_file_of_the_hubs_cache_is_a_link_to_a_blob(tmp_path: Path, named: str) -> None:
    """`snapshots/COMMIT/FILE` links to `blobs/HASH`: the kind of file stands in the name of the link alone."""
    (tmp_path / "blobs").mkdir()
    sentiment_data.messages().write_parquet(tmp_path / "blobs" / "4f1c0a")
    snapshot = tmp_path / "snapshots" / "1111"
    (snapshot / "data").mkdir(parents=True)
    (snapshot / "data" / "train.parquet").symlink_to("../../../blobs/4f1c0a")
    assert set(statuses(replicate("sentiment", snapshot / named)).values()) == {"pass"}


def test_a_data_set_of_the_hub_is_fetched_and_then_read_without_a_network(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentiment_data.messages().write_parquet(tmp_path / "m.parquet")
    data = (tmp_path / "m.parquet").read_bytes()
    hub.sets["ann/other"] = DataSet({"first.parquet": data})
    assert any(open_source("hub:ann/other")), "the same content is in another data set's cache"
    hub.sets["ann/set"] = DataSet({"data/train-00000-of-00001.parquet": data, "raw/huge.bin": b"x" * 9})
    assert set(statuses(replicate("sentiment", "hub:ann/set")).values()) == {"pass"}
    assert "raw/huge.bin" not in hub.downloads()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert set(statuses(replicate("sentiment", "hub:ann/set@main")).values()) == {"pass"}
    kept = cache_folder() / "datasets--ann--set"
    (kept / "blobs").mkdir(exist_ok=True)
    assert set(statuses(replicate("sentiment", kept)).values()) == {"pass"}, "named by its folder in the cache"
    with pytest.raises(SourceError, match="ann/unknown"):
        replicate("sentiment", "hub:ann/unknown")


def test_compressed_lines_will_do(tmp_path: Path) -> None:
    lines = sentiment_data.messages().write_ndjson()
    (tmp_path / "messages.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    claim = {"id": "n", "text": "t", "over": "t", "query": "SELECT count(*) > 9 AS v FROM rows", "expected": True}
    table = {"t": {"files": ["*.jsonl.gz"], "columns": {"turn": "BIGINT"}}}
    (tmp_path / "c.yaml").write_text(json.dumps({"source": "me", "tables": table, "claims": [claim]}))
    assert set(statuses(replicate(str(tmp_path / "c.yaml"), tmp_path)).values()) == {"pass"}


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
    with pytest.raises(SourceError, match="does not exist"):
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
