"""Claims files written by anybody: what each kind of claim does, and what a bad or hostile one can't do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.errors import ClaimsError, UsageError
from agentsignals.experiments import replication as ground
from agentsignals.experiments.replication import Verdict, replicate
from agentsignals.store import Store
from tests.build import call, session, user
from tests.questions.stores import store_of

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
    assert "on this data it does" in found.note


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
    assert main(["replicate", "claims.yaml", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "claims"
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
    assert main(["replicate", str(tmp_path / "c.yaml"), "--store", str(store.folder)]) == 0
    assert "1 pass" in capsys.readouterr().out
    assert main(["replicate", str(tmp_path / "c.yaml"), "--store", str(tmp_path / "none")]) == 1
