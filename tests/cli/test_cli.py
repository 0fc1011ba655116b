"""The command line as a person and a program meet it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from agentsignals.cli import build_parser, declarations, demo_corpus, main, verbs
from agentsignals.errors import UnknownSession
from agentsignals.ingest import pipeline
from agentsignals.ingest.measure import explain
from agentsignals.signals.catalog import catalogue
from agentsignals.store import Store
from agentsignals.ui.live import sources_of
from tests import demo_stories
from tests.build import session, user
from tests.claude import Log
from tests.questions.stores import store_of
from tests.signals.attempts import graded, trial
from tests.verbs import printed as say
from tests.verbs import printed_json as ask

CONTRACT = {
    "artifacts": "artifact_id source path format sha256 bytes records skipped skipped_reasons",
    "sessions": "session_id context format agent agent_version model repo cwd branch parent_session_id started_at"
    " ended_at n_turns n_prompts n_steps n_tool_calls n_edits input_tokens output_tokens cache_read_tokens"
    " cache_write_tokens cost_usd artifact_id",
    "turns": "session_id turn kind text n_tokens timestamp model",
    "steps": "session_id step turn message_id model timestamp input_tokens output_tokens cache_read_tokens"
    " cache_write_tokens reasoning_tokens cost_usd",
    "events": "session_id seq turn step thread kind text timestamp artifact_id line",
    "tool_calls": "session_id seq turn step thread call_id name class path command arguments status error_class"
    " exit_code started_at ended_at result_tokens",
    "edits": "session_id seq turn call_id path op start_line end_line added removed via",
    "signals": "level session_id trial_id attempt_index turn signal value number absent absent_detail version",
    "session_signals": "session_id",
    "turn_signals": "session_id turn",
}
"""Names others rely on, from the design contract: spelled out here, because code and schema can be wrong together."""


@pytest.fixture(scope="module")
def store(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    shutil.copytree(demo_folder / "corpus", folder / "corpus")
    return shutil.copytree(demo_folder / "store", folder / "store")


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, str]]:
    code = main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)["error"]


def any_session(store: Path, where: str = "true") -> str:
    query = f"SELECT session_id FROM sessions WHERE {where} ORDER BY n_tool_calls DESC, session_id LIMIT 1"
    return str(Store(store).sql(query).fetchall()[0][0])


def test_every_verb_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    verbs = list(build_parser()._subparsers._group_actions[0].choices)  # type: ignore[union-attr]
    assert set(verbs) == {
        "analyze", "measure", "inventory", "sessions", "show", "explain", "query", "report", "demo", "doctor",
        "completion", "discover", "evals", "export", "findings", "forget", "formats", "lab", "labels", "mcp", "repo",
        "search", "serve", "share", "today", "watch", "what-if",
    }  # fmt: skip
    of_groups = [f"{about['group']} {name}" for name, about in declarations().items() if "group" in about]
    for verb in [*verbs, *of_groups]:
        with pytest.raises(SystemExit) as done:
            main([*verb.split(), "--help"])
        assert done.value.code == 0
        told = capsys.readouterr().out
        assert "Example: agentsignals " + verb in told and "--json" in told


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_the_first_help_is_a_screen_of_grouped_verbs(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= int(columns)
    shown = [line.split()[0] for line in lines if re.match(r" {4}\w", line)]
    assert {"analyze", "findings", "sessions", "evals", "repo", "labels", "lab"} <= set(shown)
    assert all(any(name in line for line in lines) for name in verbs() if " " not in name), "none is left out"


def test_a_verb_of_a_group_is_also_known_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["evals", "compare"], ["compare"]):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        assert "usage: agentsignals evals compare" in capsys.readouterr().out
    before, behind = (build_parser().parse_args(words) for words in (
        ["evals", "--store", "x", "compare"], ["compare", "--store", "x"]))  # fmt: skip
    assert before == behind and before.store == "x" and before.do == "compare:run_compare"


def test_a_group_says_what_can_be_done(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = refused(capsys, "evals", "--store", store)
    assert (code, error["kind"]) == (1, "nothing_found") and "analyze" in error["hint"]
    told = say(capsys, "labels", "--store", store)
    assert told.startswith("no labels; store ") and "agentsignals labels label sentiment" in told
    assert [verb["command"].split()[2] for verb in ask(capsys, "repo", "--store", store)["verbs"]] == [
        "attribute", "collect", "receipt", "rules", "scan", "witness"]  # fmt: skip


def test_evals_offers_what_the_runs_at_hand_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = trial(
        {"trial_id": "run-1", "task_id": "mend", "verification": graded(fixed=2), "reward": 1.0},
        {"trial_id": "run-1", "task_id": "mend", "verification": graded(unfixed=2), "reward": 0.0},
    )
    store_of(tmp_path / "s", *(run.session for run in runs))
    by_command = {verb["command"].split()[2]: verb for verb in ask(capsys, "evals", "--store", tmp_path / "s")["verbs"]}
    for name in ("audit", "drivers", "align"):
        assert by_command[name]["lacks"], name
    assert not by_command["failures"]["lacks"] and "--by model" not in by_command["failures"]["command"]


def test_a_table_of_a_query_keeps_cents_and_tells_no_value_from_zero(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT 249.93 AS usd, 0.0::DOUBLE AS zero, NULL AS none, 1234567.891 AS large, 1 / 3 AS third, 1e-7 AS tiny"
    head, row = say(capsys, "query", sql, "--store", store).splitlines()
    assert dict(zip(head.split(), row.split(), strict=True)) == {
        "usd": "249.93", "zero": "0", "none": "–", "large": "1,234,567.89",
        "third": "0.333333", "tiny": "0.0000001"}  # fmt: skip


NAMES = [
    (("formats", "clude-code"), "claude-code"), (("analyze", "claud-code"), "claude-code"),
    (("export", "--to", "parqet", "-o", "x"), "parquet"), (("label", "sentment"), "sentiment"),
    (("label", "sentiment", "--by", "ruls"), "rules"), (("report", "--study", "kost", "-o", "x.html"), "cost"),
    (("findings", "waitng"), "waiting"), (("inventory", "repitition"), "dynamics.repetition_rate"),
    (("explain", "3819e141", "dynamics.repitition_rate"), "dynamics.repetition_rate"),
    (("query", "SELECT * FROM sesions"), "sessions"), (("evals", "compar"), "compare"), (("comapre",), "compare"),
    (("sessions", "--limt", "3"), "--limit"), (("repo", "scan", ".", "--scanner", "bandt"), "bandit"),
    (("today", "--model", "claude-sonet"), "claude-sonnet-4-5"), (("findings", "rebuilt"), "money.rebuilt"),
    (("compare", "--fail-if", "solve_rat < 1"), "solve_rate"), (("analyze", ".", "--format", "codx"), "codex"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "meant"), NAMES, ids=[" ".join(words) for words, _ in NAMES])
def test_a_name_that_is_none_gets_the_nearest(
    words: tuple[str, ...], meant: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = str(store) if words[0] != "analyze" else str(tmp_path / "new")
    code, error = refused(capsys, *words, "--store", named)
    assert code in (1, 2) and f"Did you mean {meant}?" in error["hint"], error


WRONG = [
    ["nonsense"], ["analyze", "/no/such/folder"], ["analyze", ".", "--format", "nobody"], ["formats", "nobody"],
    ["show", "nobody"], ["explain", "nobody", "tokens.cost_usd"], ["findings", "nobody.here"], ["findings", "--nobody"],
    ["report", "--study", "nobody", "-o", "x.html"], ["report", "-o", "x.pdf"], ["export", "--to", "nobody", "-o", "x"],
    ["label", "nobody"], ["label", "sentiment", "--by", "nobody"], ["inventory", "--status", "nobody"],
    ["sessions", "--since", "nobody"], ["today", "--by", "nobody"], ["compare", "--fail-if", "nobody"],
    ["repo", "nobody"], ["evals", "compare", "--nobody"], ["search", "x", "--kind", "nobody"],
    ["analyze", "--jobs", "x"],
]  # fmt: skip


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_what_is_wrong_is_one_line_and_what_to_do_another(
    words: list[str], store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--store", str(store if words[0] != "analyze" else tmp_path / "new")]
    assert main([*words, *named]) == 2
    said = capsys.readouterr()
    first, *more = said.err.splitlines()
    assert said.out == "" and first.startswith("agentsignals: ") and len(more) == 1 and more[0].startswith("  ")
    assert "nobody" in first or words[-1] in first


def test_a_place_in_the_place_of_a_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"agentsignals analyze {tmp_path}" in refused(capsys, tmp_path)[1]["hint"]


def test_a_topic_lists_its_findings(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = ask(capsys, "findings", "--store", store)["answers"]
    topic = every[0]["id"].partition(".")[0]
    of_topic = ask(capsys, "findings", topic, "--store", store)["answers"]
    assert of_topic and [a["id"] for a in of_topic] == [a["id"] for a in every if a["id"].startswith(f"{topic}.")]
    code, error = refused(capsys, "findings", "pushback", "--store", store)
    assert (code, error["kind"]) == (1, "nothing_found") and "2 candidates checked" in error["message"]


def test_nothing_found_is_an_error_with_a_reason(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("no trace")
    for source, reason in ((tmp_path / "notes", "none of them JSON"), ("codex", "~/.codex/sessions")):
        assert main(["analyze", str(source), "--store", str(tmp_path / "new"), "--quiet"]) == 1
        said = capsys.readouterr()
        assert said.out == "" and reason in said.err and len(said.err.splitlines()) <= 12
    empty = ("--store", tmp_path / "new")
    for words in (("findings", *empty), ("sessions", *empty), ("search", "x", *empty),
                  ("sessions", "--where", "false", "--store", store), ("search", "zzqq", "--store", store),
                  ("inventory", "zzqq")):  # fmt: skip
        code, error = refused(capsys, *words)
        assert (code, error["kind"]) == (1, "nothing_found") and error["hint"], words


def test_the_demo_is_what_its_generator_makes() -> None:
    assert gzip.decompress(demo_stories.ARCHIVE.read_bytes()) == gzip.decompress(demo_stories.archived())


@pytest.mark.slow
def test_analyze_gives_the_documents_keys(demo_folder: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(capsys, "analyze", demo_folder / "corpus", "--store", store)
    assert {"artifacts", "sessions", "prompts", "tool_calls", "skipped", "unchanged", "store", "report"} <= set(found)
    assert found["unchanged"] == found["artifacts"] == found["sessions"] == demo_corpus.SESSIONS


@pytest.mark.slow
def test_query_gives_rows_as_objects_a_table_and_csv(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT agent, count(*) AS n, max(started_at) AS latest FROM sessions GROUP BY agent ORDER BY agent"
    rows = ask(capsys, "query", sql, "--store", store)
    assert [r["agent"] for r in rows] == ["claude-code", "codex", "gemini-cli", "pi"]
    assert sum(r["n"] for r in rows) == demo_corpus.SESSIONS
    assert "claude-code" in say(capsys, "query", sql, "--store", store)
    table = list(csv.DictReader(io.StringIO(say(capsys, "query", sql, "--store", store, "--csv"))))
    assert [int(r["n"]) for r in table] == [r["n"] for r in rows]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM sessions",
        "COPY sessions TO 'out.csv'",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; SELECT 2",
        "ATTACH 'x.db'",
        "SET enable_external_access=true",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM nowhere",
        "SELEKT 1",
        "INSTALL httpfs",
    ],
)
def test_query_reads_the_store_and_nothing_else(store: Path, capsys: pytest.CaptureFixture[str], sql: str) -> None:
    code, error = refused(capsys, "query", sql, "--store", store)
    assert (code, error["kind"]) == (1, "query")


def test_the_contracts_columns_are_there(store: Path) -> None:
    for name, columns in CONTRACT.items():
        assert set(columns.split()) <= set(Store(store).frame(name).columns), name


def test_an_empty_store_answers_with_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "corpus").mkdir()
    assert refused(capsys, "analyze", tmp_path / "corpus", "--store", tmp_path / "s")[0] == 1
    assert ask(capsys, "query", "SELECT * FROM sessions", "--store", tmp_path / "s") == []
    assert ask(capsys, "query", "SELECT * FROM session_signals", "--store", tmp_path / "s") == []


def test_inventory_filters(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "inventory")
    keys = {
        "path", "name", "context", "level", "type", "unit", "status", "description", "pitfalls", "origin",
        "high_value",
    }  # fmt: skip
    assert len(rows) == len(catalogue()) and all(keys <= set(r) for r in rows)
    assert {r["path"] for r in ask(capsys, "inventory", "repetition")} >= {"dynamics.repetition_rate"}
    assert all(r["context"] in ("eval", "both") for r in ask(capsys, "inventory", "--context", "eval"))
    assert all(r["high_value"] for r in ask(capsys, "inventory", "--high-value"))
    assert "needs a judge" in ask(capsys, "inventory", "--status", "nonsense", code=2)["error"]["hint"]


def test_sessions_takes_a_condition_and_a_limit(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ask(capsys, "sessions", "--where", "agent = 'pi'", "--limit", "2", "--store", store)
    assert len(rows) == 2 and {r["agent"] for r in rows} == {"pi"}
    assert refused(capsys, "sessions", "--limit", "-1", "--store", store)[0] == 2


def test_show_tells_a_session_by_the_beginning_of_its_id(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = any_session(store)
    told = say(capsys, "show", session_id[:12], "--store", store)
    assert session_id in told and "turn 1 (prompt)" in told and "→ " in told
    more = say(capsys, "show", session_id, "--all", "--store", store)
    assert "tool_result" in more and "tool_result" not in told
    code, error = refused(capsys, "show", "nobody", "--store", store)
    assert (code, error["kind"]) == (2, "unknown_session")


def test_show_tells_a_session_by_its_logs_own_name(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `ls` says it, as a shell completes it, and by the beginning of it: of every log of every agent."""
    opened = Store(store)
    names = opened.sql("SELECT session_id, path FROM sessions JOIN artifacts USING (artifact_id)").fetchall()
    for session_id, path in names:
        for name in (path, Path(path).name, f"{Path(path).parent.name}/{Path(path).name}", Path(path).stem):
            assert opened.resolve(name) == session_id
    assert ask(capsys, "show", Path(names[0][1]).name, "--store", store)["session_id"] == names[0][0]
    for wrong in ("", "jsonl", "no-such.jsonl"):
        with pytest.raises(UnknownSession, match="There is no session"):
            opened.resolve(wrong)


def test_a_log_of_two_sessions_names_both(tmp_path: Path) -> None:
    """As Claude Code leaves it where a session was resumed in another's log."""
    logs = [Log(f"{digit * 8}-0000-4000-8000-000000000001", name=digit) for digit in "89"]
    for log in logs:
        log.user("add a test")
        log.say("done")
    (tmp_path / "77777777-0000-4000-8000-000000000001.jsonl").write_bytes(b"".join(log.data() for log in logs))
    pipeline.analyze([str(tmp_path)], tmp_path / "store", jobs=1)
    with pytest.raises(UnknownSession, match="2 sessions") as raised:
        Store(tmp_path / "store").resolve("77777777")
    assert all(log.session in raised.value.hint for log in logs)


@pytest.mark.slow
def test_every_signal_of_every_session_explains_itself(store: Path) -> None:
    """Same value as stored, and at least one piece of evidence for every value that is there."""
    opened = Store(store)
    for session_id in (any_session(store), any_session(store, "agent = 'codex'"), any_session(store, "n_turns = 1")):
        stored = dict(
            opened.sql(
                f"SELECT signal, value FROM signals WHERE session_id = '{session_id}' AND turn IS NULL"
            ).fetchall()
        )
        for path, value in stored.items():
            found = explain(opened, session_id, path)
            if value is None:
                assert found.absent is not None, path
            else:
                assert json.loads(msgspec.json.encode(found.value)) == json.loads(value), path
                assert found.evidence, path


def test_explain_names_events_and_lines(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_id = any_session(store, "agent = 'claude-code'")
    found = ask(capsys, "explain", session_id, "behavior.edit_calls", "--store", store)
    assert {"session", "signal", "value", "absent", "rule", "evidence"} <= set(found)
    assert found["value"] == len([e for e in found["evidence"] if e["role"] == "support"])
    for item in found["evidence"]:
        assert {"seq", "artifact", "line", "excerpt", "role"} <= set(item)
        path = Path(found["artifacts"][item["artifact"]])
        assert "tool_use" in path.read_text().splitlines()[item["line"] - 1]
    code, error = refused(capsys, "explain", session_id, "behavior.no_such", "--store", store)
    assert (code, error["kind"]) == (2, "catalog")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["query"], ["analyze", "--jobs", "many"], ["sessions", "--limit", "x"]]
)
def test_wrong_usage_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "agentsignals: " in captured.err and "--help" in captured.err


def test_no_store_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = refused(capsys, "sessions", "--store", tmp_path / "none")
    assert (code, error["kind"]) == (1, "store") and "analyze" in error["hint"]


def test_the_store_can_be_named_by_the_environment(store: Path) -> None:
    command = [sys.executable, "-m", "agentsignals", "query", "SELECT count(*) AS n FROM sessions", "--json"]
    env = {**os.environ, "AGENTSIGNALS_STORE": str(store)}
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert json.loads(found.stdout) == [{"n": demo_corpus.SESSIONS}]
    assert found.stderr == ""


def test_doctor_says_what_is_there(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".codex" / "sessions").mkdir(parents=True)
    rows = [(r["name"], r["status"], r["found"]) for r in ask(capsys, "doctor", "--store", store)]
    assert ("codex", "ok", f"{tmp_path / '.codex' / 'sessions'}: empty") in rows
    assert [status for name, status, _ in rows if name == "claude-code"] == ["missing"]
    assert [f"{demo_corpus.SESSIONS} sessions" in found for name, _, found in rows if name == "store"] == [True]


def test_a_format_says_what_it_rests_on_and_which_versions_were_met(
    store: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    by_name = {row["name"]: row for row in ask(capsys, "formats", "--store", store)}
    counted = dict(Store(store).sql("SELECT format, count(*) FROM sessions GROUP BY 1").fetchall())
    assert {name: sum(row["met"].values()) for name, row in by_name.items() if row["met"]} == counted
    one = ask(capsys, "formats", "swival", "--store", tmp_path / "none")
    assert (one["rests_on"], one["met"], len(one["material"])) == ("package", {}, 1)
    told = say(capsys, "formats", "claude-code", "--store", store)
    assert "real        856 sessions" in told and "home        ~/.claude/projects" in told and "limits  " in told
    code, error = refused(capsys, "formats", "nobody", "--store", store)
    assert (code, error["kind"]) == (2, "format")


def test_without_a_source_the_agents_of_this_machine_are_read(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    code, error = refused(capsys, "analyze", "--store", tmp_path / "s")
    assert (code, error["kind"]) == (1, "source")
    shutil.copytree(store.parent / "corpus" / "codex", tmp_path / ".codex" / "sessions")
    shutil.copytree(store.parent / "corpus" / "pi", tmp_path / ".pi" / "agent" / "sessions")
    assert set(ask(capsys, "analyze", "--store", tmp_path / "s")["formats"]) == {"codex", "pi"}
    assert set(ask(capsys, "analyze", "pi", "--store", tmp_path / "t")["formats"]) == {"pi"}


def test_a_relative_source_is_kept_as_an_absolute_path(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of the store that is served from another folder watches it."""
    shutil.copytree(store.parent / "corpus" / "pi", tmp_path / "work" / "traces")
    monkeypatch.chdir(tmp_path / "work")
    ask(capsys, "analyze", "traces", "--store", tmp_path / "s", "--no-report")
    monkeypatch.chdir(tmp_path)
    assert sources_of(Store(tmp_path / "s").manifest) == ([str(tmp_path / "work" / "traces")], [])


def test_hostile_text_stays_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal escapes are not passed on; quotes in ids and paths do not reach SQL."""
    nasty = "\x1b[31mred\x1b[0m '; DROP TABLE sessions; --"
    record = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": 'it\'s "odd"',
        "timestamp": "2026-01-01T00:00:00Z",
    }
    folder = tmp_path / "it's a 'corpus'"
    folder.mkdir()
    (folder / "a.jsonl").write_text(
        json.dumps({**record, "cwd": "/x", "message": {"role": "user", "content": nasty}}) + "\n"
    )
    store = tmp_path / "it's a 'store'"
    assert ask(capsys, "analyze", folder, "--store", store)["sessions"] == 1
    assert "\x1b" not in say(capsys, "show", "it's", "--store", store)
    assert "\x1b" not in say(capsys, "query", "SELECT text FROM turns", "--store", store)
    assert ask(capsys, "query", "SELECT text FROM turns", "--store", store) == [{"text": nasty}]


def test_sessions_are_listed_newest_first_with_how_many_there_are(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = ask(capsys, "sessions", "--limit", "2", "--store", store)
    every = ask(capsys, "sessions", "--store", store)
    assert newest == every[:2] and every[0]["started_at"] == max(row["started_at"] for row in every)
    assert main(["sessions", "--store", str(store), "--limit", "2"]) == 0
    assert f"2 of {len(every)} sessions, the last active" in capsys.readouterr().out


def test_a_list_of_sessions_shows_what_each_was_about_and_the_shortest_id_that_names_it(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = ask(capsys, "sessions", "--limit", "1", "--store", store)[0]
    _, line, *_ = say(capsys, "sessions", "--limit", "1", "--store", store).splitlines()
    assert newest["first_prompt"][:40] in line and newest["cwd"] in line
    assert line.split()[0] == newest["session_id"][:8]
    assert Store(store).resolve(line.split()[0]) == newest["session_id"]


def test_ids_that_begin_alike_are_shown_until_they_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "s"
    store_of(folder, *(session(user(f"do {name}"), session_id=name) for name in ("trial-17-a", "trial-17-bb", "x")))
    shown = [line.split()[0] for line in say(capsys, "sessions", "--store", folder).splitlines()[1:]]
    assert sorted(shown) == ["trial-17-a", "trial-17-b", "x"]


def test_a_cut_cell_says_how_to_get_all_of_it(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = say(capsys, "query", "SELECT repeat('x', 61) AS x", "--store", store)
    whole = say(capsys, "query", "SELECT repeat('x', 59) || '…' AS x", "--store", store)
    assert "--csv or --json has all" in cut and "--csv" not in whole


def test_a_verb_that_is_none_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean sessions?" in refused(capsys, "sesions")[1]["hint"]
    assert "Did you mean" not in refused(capsys, "zzz")[1]["hint"]
    assert "Did you mean eval?" in refused(capsys, "findings", "--context", "evil")[1]["hint"]
    hint = refused(capsys, "sessions", "--agent", "codex")[1]["hint"]
    assert "The options are" in hint and "--since" in hint and "sessions --help" in hint and "Did you" not in hint
    for words in (("search", "-word"), ("search", "a", "-word")):
        assert "agentsignals search -- -word" in refused(capsys, *words)[1]["hint"]


def test_show_says_cost_patterns_and_changed_lines(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = say(capsys, "show", "3819e141", "--store", store)
    assert re.search(r"^cost +\$0\.", text, re.MULTILINE) and re.search(r"^tokens +[\d,]+ input", text, re.MULTILINE)
    assert re.search(r"→ apply_patch .* \+\d+ -\d+", text)
    searching = "SELECT session_id, arguments->>'pattern' FROM tool_calls WHERE name = 'Grep' LIMIT 1"
    session_id, pattern = Store(store).sql(searching).fetchall()[0]
    assert re.search(f"→ Grep .*{re.escape(pattern)}", say(capsys, "show", session_id, "--store", store))
