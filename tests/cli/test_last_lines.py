"""What `analyze`, and `agentsignals` alone, end with; and the table of what is said, kept for a state of the store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.cli.analyze import findings_of, last_lines, summary_of
from agentsignals.cli.output import fitted
from agentsignals.errors import QueryError
from agentsignals.ingest.maintenance import forget
from agentsignals.questions import findings as computing
from agentsignals.questions.findings import every_context, findings
from agentsignals.questions.ranking import Answer, Bounds, fewest_sessions, ranked_answers
from agentsignals.store import Store, sidecars, tables
from agentsignals.store.index import ArtifactEntry
from agentsignals.store.query import rows
from tests.build import call, session, user
from tests.claude import Log
from tests.questions.stores import store_of
from tests.verbs import printed, printed_json

HOSTILE = "it's; DROP TABLE x; --\x1b[31m"


def circling(n: int = 12, prefix: str = "x") -> list[Any]:
    """Sessions in which one failing call is made five times, at a place with a strange name."""
    parts = [call("Bash", command="make x", status="error", result="no")] * 5 + [call("Edit", path=f"{HOSTILE}.py")]
    return [session(user("go"), *parts, session_id=f"{prefix}{k}", repo=HOSTILE) for k in range(n)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store whose findings were computed."""
    store = store_of(tmp_path_factory.mktemp("circling"), *circling())
    findings(store)
    return store


@pytest.fixture
def store(made: Store, tmp_path: Path) -> Store:
    """The same before they were."""
    return Store(shutil.copytree(made.folder, tmp_path / "store", ignore=shutil.ignore_patterns("findings.*")))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The contexts whose findings are computed, as it happens."""
    seen: list[str] = []
    whole = computing._candidates
    monkeypatch.setattr(computing, "_candidates", lambda s, c, *of: (seen.append(c), whole(s, c, *of))[1])
    return seen


def test_findings_are_computed_once_for_each_state_of_the_store(store: Store, computed: list[str]) -> None:
    first = findings(store)
    assert findings(Store(store.folder)) == first and first.answers and computed == ["product"]
    findings(store, bounds=Bounds(effect=0.06))
    assert len(computed) == 2, "other bounds say something else"
    forget(store.folder, ["x3"])
    assert not list(store.folder.glob("findings.*")), "what was forgotten is not quoted"
    assert findings(Store(store.folder)).sessions == 11 and len(computed) == 3


def read_at(stamp: int) -> ArtifactEntry:
    """A file as it was at a time."""
    return ArtifactEntry(
        source="local", spec="", bytes=1, stamp=stamp, container="", key="", session_hint=None, repo_hint=None,
        format="claude-code", parser=1, group="", keys=[], shard="a",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sessions", "changed", "gone", "is_shown"),
    [
        (50, 1, 0, True),
        (49, 1, 0, False),
        (100, 2, 0, True),
        (100, 3, 0, False),
        (100, 1, 1, False),
        (100, 0, 1, False),
    ],
)
def test_after_a_few_changes_what_was_said_before_is_shown_and_says_so(
    sessions: int, changed: int, gone: int, is_shown: bool, store: Store, computed: list[str]
) -> None:
    entries = store.manifest.files
    entries.update({str(n): read_at(n) for n in range(sessions)})
    store.save()
    findings(store)
    entries.update({str(n): read_at(-1) for n in range(changed)})
    for n in range(gone):
        del entries[str(20 + n)]
    store.save()
    next(iter(store.manifest.shards.values())).tables["events"].digest = "x"  # what the kept file's name follows from
    shown = " ".join(last_lines(store, summary_of(store)[1]).split())
    assert len(computed) == (1 if is_shown else 2)
    note = f"Computed before {changed} of {sessions} files changed; `agentsignals findings` recomputes it."
    assert (note in shown) is is_shown
    assert findings_of(store).changed_files == (changed if is_shown else 0)


def test_nothing_that_other_code_said_before_is_shown(
    store: Store, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.manifest.files.update({str(n): read_at(n) for n in range(100)})
    store.save()
    findings(store)
    store.manifest.files["0"] = read_at(-1)
    store.save()
    next(iter(store.manifest.shards.values())).internal_errors["x"] = 1
    monkeypatch.setattr(sidecars, "code_stamp", lambda: "another")
    assert findings_of(store).changed_files == 0 and len(computed) == 2


@pytest.mark.slow
@pytest.mark.parametrize("what", ["code", "damage", "file"])
def test_what_was_kept_is_never_stale(
    what: str, store: Store, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    findings(store)
    if what == "code":
        monkeypatch.setattr(sidecars, "code_stamp", lambda: "another")
    elif what == "damage":
        (store.folder / "shards" / next(iter(store.manifest.shards)) / "edits.parquet").unlink()
    else:
        sidecars.cache_file(store, "product").write_text("{")
    findings(Store(store.folder))
    assert len(computed) == 2


def test_of_code_that_its_stamp_does_not_know_nothing_is_kept_for_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code, is_kept in ((sidecars.code_stamp(), True), ("older", False)):
        store.manifest.code = code
        sidecars.write_cache(store, "product", b"")
        monkeypatch.setattr(sidecars, "_PROCESS", f"another than with {code}")
        assert (sidecars.read_cache(store, "product") is not None) is is_kept


def test_what_was_made_of_a_state_that_is_gone_is_not_kept(store: Store) -> None:
    """A page computes for seconds; meanwhile a session is forgotten, and findings name sessions."""
    forget(store.folder, [min(store.manifest.sessions)])
    findings(store)
    assert not list(store.folder.glob("findings.*"))


def test_former_findings_go_after_an_hour(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    former = store.folder / "findings.former.product.json"
    former.write_text("")
    sidecars.write_cache(store, "product", b"")
    assert former.exists()
    monkeypatch.setattr(sidecars.disk, "is_expired", lambda _: True)
    sidecars.write_cache(store, "product", b"{}")
    assert not former.exists() and sidecars.read_cache(store, "product") == b"{}"


def test_they_are_a_table_of_the_store(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(QueryError, match="not computed") as raised:
        store.sql("SELECT * FROM findings")
    assert "agentsignals.find" in raised.value.hint
    assert ("findings",) in rows(store, "SHOW TABLES")[1], "it is listed all the same"
    with pytest.raises(QueryError, match="not computed"):
        rows(store, "SELECT count(*) FROM findings, information_schema.tables")
    (answers,) = (made.answers for made in every_context(store))
    names, values = rows(store, "SELECT * FROM findings")
    assert names == list(tables.COLUMNS["findings"]) and len(values) == len(answers) > 0
    for at, (row, answer) in enumerate(zip(values, answers, strict=True)):
        held = dict(zip(names, row, strict=True))
        assert (held["rank"], held["context"]) == (at + 1, "product")
        assert held["low"] == (answer.interval[0] if answer.interval else None)
        same = set(names) & set(Answer.__struct_fields__) - {"sessions"}
        assert {name: held[name] for name in same} == {name: getattr(answer, name) for name in same}
        assert tuple(held["sessions"]) == answer.sessions
    assert any(HOSTILE[:4] in row[names.index("sentence")] for row in values), "no quote gets out"
    assert main(["query", "SELECT count(*) AS n FROM findings", "--store", str(store.folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": len(answers)}]


def test_the_verb_computes_what_a_query_names_and_keeps_contexts_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts = [session(user("go"), session_id=f"e{k}", context="eval") for k in range(6)]
    store = store_of(tmp_path, *circling(6), *attempts)
    sql = "SELECT DISTINCT context FROM findings"
    assert {"context": "product"} in printed_json(capsys, "query", sql, "--store", tmp_path)
    assert {"context": "product"} not in printed_json(capsys, "query", sql, "--store", tmp_path, "--context", "eval")
    assert any("--context eval" in line for line in last_lines(store, summary_of(store)[1]).splitlines())


def test_of_too_few_sessions_nothing_is_computed(tmp_path: Path, computed: list[str]) -> None:
    fewest = fewest_sessions(Bounds())
    base: dict[str, Any] = {"sentence": "", "size": 1, "unit": "", "share": 1.0, "cause": "", "caveat": ""}
    said = [bool(ranked_answers([Answer(id="x", n=n, **base)], Bounds())) for n in (fewest - 1, fewest)]
    assert said == [False, True]
    few = store_of(tmp_path, *circling(fewest - 1))
    assert f"at least {fewest} sessions" in last_lines(few, summary_of(few)[1]) and not computed
    assert fewest_sessions(Bounds(sureness=1.0)) > 10**9


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_the_last_lines_fit_a_screens_end(
    width: str, made: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    with fitted():
        print(last_lines(made, summary_of(made)[1], " --store 'my store'"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("12 sessions") and any(line.startswith("1. ") for line in lines)
    assert max(map(len, lines)) <= int(width)
    assert "agentsignals findings --store 'my store'" in " ".join("\n".join(lines).replace("\\\n", " ").split())
    assert "\x1b" not in "".join(lines)


# -- `agentsignals` alone ----------------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any agent's folder."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "kept"))
    return tmp_path


def test_alone_on_a_machine_without_agents_it_says_what_it_looked_for(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 1
    err = capsys.readouterr().err
    assert "claude-code" in err and "agentsignals demo" in err and "agentsignals doctor" in err
    assert "~/.claude" not in err and len(err.splitlines()) <= 12, "doctor lists the folders"
    assert not (machine / "kept").exists(), "nothing is made where nothing was read"
    (machine / ".claude" / "projects").mkdir(parents=True)
    assert main(["--json"]) == 1 and json.loads(capsys.readouterr().out)["error"]["kind"] == "nothing_found"


def test_alone_it_reads_this_machine_and_says_what_to_type_next(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Log()
    log.user("rename it")
    log.say("done")
    folder = machine / ".claude" / "projects" / "shop"
    folder.mkdir(parents=True)
    (folder / f"{log.session}.jsonl").write_bytes(log.data())
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("read claude-code: 1 session; store ") and "\nnext: agentsignals findings\n" in out
    assert err == "", "no progress where no terminal is"
    document = printed_json(capsys, "--store", machine / "other")
    assert document["agents"] == ["claude-code"] and document["findings"]["sessions"] == 1
    assert (machine / "other" / "index.sqlite").exists() and document["read"]["parsed"] == 1
    shutil.rmtree(machine / ".claude")
    assert printed(
        capsys,
    ).startswith("no agent's logs are on this machine; these sessions were read before, into ")


def test_alone_with_a_word_it_is_refused(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quiet", "sessions"]) == 2
    assert "agentsignals --help" in capsys.readouterr().err


def test_analyze_ends_with_them(
    made: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    log = Log()
    log.user("rename it")
    log.say("done")
    (tmp_path / f"{log.session}.jsonl").write_bytes(log.data())
    store = shutil.copytree(made.folder, tmp_path / "store")
    out = printed(capsys, "analyze", tmp_path / f"{log.session}.jsonl", "--store", store, "--quiet")
    assert "\n\n13 sessions" in out and "\n1. " in out and "\nnext: agentsignals findings --store" in out
    document = printed_json(capsys, "analyze", tmp_path / f"{log.session}.jsonl", "--store", store, "--quiet")
    assert document["findings"]["answers"] and document["artifacts"] == 1
