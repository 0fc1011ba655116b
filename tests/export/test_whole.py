"""What is written at once: tables, and a data set's folder that goes out, comes back, and loads."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from agentsignals.cli import main
from agentsignals.ingest import pipeline
from agentsignals.model import Label
from agentsignals.store import Store, sidecars
from agentsignals.store.copies import write_tables
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import NAMES, OF_REPOSITORIES
from tests.golden import SAMPLES
from tests.hub_server import DataSet, Hub, conversation, hub
from tests.repositories.story import Story, block
from tests.verbs import printed_json

__all__ = ["hub"]

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "pi"
ONE, TWO = "11111111-aaaa", "22222222-bbbb"
KEY = "ghp_" + "a1" * 18
PLANTED = f"I am jo.doe@example.org, {KEY}, in /home/jodoe/src"
SECRETS = (b"jo.doe@example.org", KEY.encode(), b"jodoe", b"hunter22")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two conversations; one says what must not leave."""
    folder = tmp_path / "home" / "jodoe"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(conversation(ONE, PLANTED, "Again."))
    (folder / "b.jsonl").write_bytes(conversation(TWO, "Go on.", json.dumps({"password": "hunter22", "n": 1})))
    pipeline.analyze([str(folder)], tmp_path / "store", jobs=1)
    return tmp_path / "store"


def exported(capsys: pytest.CaptureFixture[str], store: Path, to: str, *arguments: str) -> tuple[Path, dict[str, Any]]:
    out = store.parent / f"out-{to}-{len(list(store.parent.iterdir()))}"
    return out, printed_json(capsys, "export", "--to", to, "-o", out, "--store", store, "--quiet", *arguments)


def every_text(folder: Path) -> bytes:
    """All that is said in the files of a folder, tables unpacked."""
    told = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        rows = json.dumps(pq.read_table(path).to_pylist(), default=str) if path.suffix == ".parquet" else None
        told.append(rows.encode() if rows is not None else path.read_bytes())
    return b"\n".join(told)


def test_tables_hold_what_the_store_holds(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, told = exported(capsys, store, "parquet", "--no-redact")
    opened = Store(store)
    for name in NAMES:
        ((n,),) = opened.sql(f"SELECT count(*) FROM {name}").fetchall()
        assert pq.read_metadata(out / f"{name}.parquet").num_rows == n == told["tables"][name]
    assert sorted(pq.read_table(out / "turns.parquet").column("text").to_pylist()) == sorted(
        row[0] for row in opened.sql("SELECT text FROM turns").fetchall()
    )
    assert told["masked"] is None


def test_tables_of_some_sessions_hold_nothing_of_the_others(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, told = exported(capsys, store, "parquet", "--no-redact", "--where", f"session_id = '{TWO}'")
    for name in NAMES:
        table = pq.read_table(out / f"{name}.parquet")
        if "session_id" in table.column_names:
            assert set(table.column("session_id").to_pylist()) <= {TWO}, name
    assert pq.read_table(out / "artifacts.parquet").column("path").to_pylist()[0].endswith("b.jsonl")
    assert (told["tables"]["artifacts"], told["tables"]["turns"]) == (1, 2)
    assert PLANTED.encode() not in every_text(out)


def test_labels_made_here_are_in_the_tables(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [LabelRow(i, Label(task="sentiment", labeller="me", turn=0, value="NEUTRAL")) for i in (ONE, TWO)]
    sidecars.write_labels(store, "sentiment", "me", rows)
    _, told = exported(capsys, store, "parquet", "--where", f"session_id = '{ONE}'")
    assert told["tables"]["labels"] == 1


def attributed(folder: Path) -> tuple[Path, dict[str, str]]:
    """A store with a repository's tables; the ids of the sessions in it by name."""
    story = Story(folder / "home" / "jodoe")
    story.human("app.py", block("old", 5))
    story.commit("base")
    for name in ("ann", "bob"):
        one = story.agent(name)
        one.prompt()
        one.write(f"{name}.py", block(name, 6))
        one.say()
        story.commit(f"work of {name}", one)
    together = story.agents
    together[0].prompt()
    together[0].write("both.py", block("both", 3))
    together[0].say()
    story.commit("of both", *together)
    story.attributed()
    return story.folder / "store", {n: a.log.session for n, a in zip(("ann", "bob"), together, strict=True)}


@pytest.mark.slow
def test_tables_of_repositories_leave_with_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, _ = attributed(tmp_path)
    out, told = exported(capsys, store, "parquet", "--no-redact")
    for name in OF_REPOSITORIES:
        assert (out / f"{name}.parquet").exists(), name
        ((n,),) = Store(store).sql(f"SELECT count(*) FROM {name}").fetchall()
        assert pq.read_metadata(out / f"{name}.parquet").num_rows == n == told["tables"][name]
    assert (told["tables"]["commits"], told["tables"]["line_attribution"]) == (4, 15)
    assert set(pq.read_table(out / "commits.parquet").column("author").to_pylist()) == {"a@example.org"}


@pytest.mark.slow
def test_commits_of_some_sessions_name_none_of_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, ids = attributed(tmp_path)
    out, _ = exported(capsys, store, "parquet", "--no-redact", "--where", f"session_id = '{ids['bob']}'")
    rows = pq.read_table(out / "commits.parquet").to_pylist()
    assert {(r["subject"], *r["session_ids"]) for r in rows} == {("work of bob", ids["bob"]), ("of both", ids["bob"])}
    lines = pq.read_table(out / "line_attribution.parquet").to_pylist()
    assert {(r["path"], r["session_id"]) for r in lines} == {("bob.py", ids["bob"])}
    assert ids["ann"].encode() not in every_text(out)


@pytest.mark.slow
def test_where_texts_are_masked_commits_name_no_author(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, _ = attributed(tmp_path)
    for to in ("parquet", "hub"):
        out, _ = exported(capsys, store, to)
        (path,) = out.rglob("commits.parquet")
        table = pq.read_table(path)
        assert table.num_rows == 4
        assert set(table.column("author").to_pylist()) == {None}
        assert [s for s in (b"a@example.org", b"jodoe") if s in every_text(out)] == []


def test_what_was_masked_is_counted_as_often_as_it_stood(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That no secret leaves is `tests/test_ways_out.py`'s."""
    out, told = exported(capsys, store, "sts", "--redact")
    assert told["masked"] == {"mail": 2, "key": 2, "user": 2, "secret": 2}, "once said, once repeated in the answer"
    assert b"Again." in every_text(out)


def test_the_files_as_found_are_masked_value_by_value(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = exported(capsys, store, "hub", "--transcripts", "found")
    files = sorted((out / "transcripts").iterdir())
    assert len(files) == 2
    said = b"".join(f.read_bytes() for f in files)
    assert [s for s in SECRETS if s in said] == []
    assert [json.loads(line)["type"] for line in said.splitlines()].count("session") == 2
    whole, _ = exported(capsys, store, "hub", "--transcripts", "found", "--no-redact")
    assert {f.read_bytes() for f in (whole / "transcripts").iterdir()} == {
        p.read_bytes() for p in (store.parent / "home" / "jodoe").iterdir()
    }


def test_every_text_of_every_table_goes_through_the_mask(tmp_path: Path) -> None:
    recorded = json.loads((SAMPLES / "entire" / "session.json").read_text("utf-8")) | {"session_id": ONE}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "metadata.json").write_text(json.dumps(recorded))
    (tmp_path / "in" / "full.jsonl").write_bytes(conversation(ONE, "Go on."))
    pipeline.analyze([str(tmp_path / "in"), str(SAMPLES / "pi"), str(SAMPLES / "swe-bench")], tmp_path / "s", jobs=1)
    opened = Store(tmp_path / "s")
    (tmp_path / "out").mkdir()
    write_tables(opened, tmp_path / "out", set(opened.manifest.sessions), lambda text, times: "#")
    said: set[str] = set()
    lists = 0
    for path in (tmp_path / "out").iterdir():
        for row in pq.read_table(path).to_pylist():
            for value in row.values():
                said |= {value} if isinstance(value, str) else set(value) if isinstance(value, list) else set()
                lists += isinstance(value, list) and bool(value)
    assert said == {"#"}
    assert lists, "the sample has a column of lists, too"


def test_archives_leave_only_unmasked_and_packed_files_leave_unpacked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(gzip.compress(conversation(ONE, PLANTED)))
    pipeline.analyze([str(tmp_path / "in"), str(SAMPLES / "inspect")], tmp_path / "store", jobs=1)
    out, told = exported(capsys, tmp_path / "store", "hub", "--transcripts", "found")
    (file,) = (out / "transcripts").glob("*a.jsonl")
    assert b"[mail-" in file.read_bytes()
    assert list((out / "transcripts").glob("*.eval")) == []
    assert any("can't be masked" in note for note in told["notes"])
    whole, _ = exported(capsys, tmp_path / "store", "hub", "--transcripts", "found", "--no-redact")
    archives = {p.read_bytes() for p in (whole / "transcripts").glob("*.eval")}
    assert archives
    assert archives <= {p.read_bytes() for p in (SAMPLES / "inspect").rglob("*.eval")}


def test_a_file_that_holds_other_sessions_too_does_not_leave(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.analyze([str(SAMPLES / "opentraces" / "two_sessions.jsonl")], tmp_path / "store", jobs=1)
    one, _ = sorted(Store(tmp_path / "store").manifest.sessions)
    arguments = ["--transcripts", "found", "--where", f"session_id = '{one}'", "--store", str(tmp_path / "store")]
    assert main(["export", "--to", "hub", "-o", str(tmp_path / "out"), "--quiet", *arguments]) == 1
    assert "1 log files also contain sessions that were not chosen" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def head(folder: Path) -> dict[str, Any]:
    """The card's head, as others read it."""
    text = (folder / "README.md").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_the_card_names_its_licence_and_a_config_a_table(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    title = 'My: "traces" # \n- [x](javascript:1) é'
    out, told = exported(capsys, store, "hub", "--license", "cc-by-4.0", "--title", title)
    found = head(out)
    assert (found["license"], found["pretty_name"], found["size_categories"]) == ("cc-by-4.0", title, ["n<1K"])
    assert "format:agent-traces" in found["tags"]
    paths = {c["config_name"]: c["data_files"][0]["path"] for c in found["configs"]}
    assert set(paths.values()) == {f"data/{p.name}" for p in (out / "data").iterdir()}
    assert [c["config_name"] for c in found["configs"] if c.get("default")] == ["sessions"]
    assert "labels" not in paths, "a table without rows would be a configuration that can't be loaded"
    body = (out / "README.md").read_text("utf-8").split("---\n", 2)[2]
    assert "[x](javascript" not in body
    assert not any("licence" in note for note in told["notes"])


def test_a_card_without_a_licence_says_so(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, told = exported(capsys, store, "hub", "--transcripts", "none")
    assert head(out)["license"] == "unknown"
    assert "format:agent-traces" not in head(out)["tags"], "it holds no traces"
    assert any("no licence" in note for note in told["notes"])
    assert "Without a licence" in (out / "README.md").read_text("utf-8")


def test_the_same_store_is_written_to_the_same_bytes(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (exported(capsys, store, "hub")[0] for _ in range(2))
    files = sorted(p.relative_to(first) for p in first.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(second) for p in second.rglob("*") if p.is_file())
    assert all((first / f).read_bytes() == (second / f).read_bytes() for f in files)


def test_ids_that_differ_in_odd_characters_have_files_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n, name in enumerate(("Same id/0001", "Same id:0001", "SAME id/0001")):
        (tmp_path / f"{n}.jsonl").write_bytes(conversation(name, "Go on."))
    pipeline.analyze([str(tmp_path)], tmp_path / "store", jobs=1)
    out, _ = exported(capsys, tmp_path / "store", "hub")
    assert len({p.name.lower() for p in (out / "transcripts").iterdir()}) == 3, "also where case does not count"


def test_attempts_without_a_conversation_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.analyze([str(SAMPLES / "swe-bench"), str(SAMPLES / "pi")], tmp_path / "store", jobs=1)
    out, told = exported(capsys, tmp_path / "store", "hub")
    asked = "SELECT count(*) FROM attempts WHERE NOT has_transcript"
    ((without,),) = Store(tmp_path / "store").sql(asked).fetchall()
    assert told["without_transcript"] == without > 0
    assert told["sessions"] == len(list((out / "transcripts").iterdir())) + without


@pytest.mark.parametrize("to", ["parquet", "hub"])
def test_a_folder_that_holds_something_is_left_alone(store: Path, to: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--to", to, "-o", str(store), "--store", str(store), "--quiet"]) == 1
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.slow
def test_what_went_out_comes_back_through_a_hub(hub: Hub, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = exported(capsys, store, "hub", "--license", "mit", "--no-redact")
    files = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    hub.sets["me/mine"] = DataSet(files, tags=["format:agent-traces"], cardData={"license": "mit"})
    assert [d["name"] for d in printed_json(capsys, "discover", "hub", "--license", "mit")] == ["me/mine"]
    back = store.parent / "back"
    summary = pipeline.analyze(["hub:me/mine"], back, jobs=1)
    asked = "SELECT session_id, turn, text FROM turns ORDER BY ALL"
    assert Store(back).sql(asked).fetchall() == Store(store).sql(asked).fetchall()
    assert (summary.sessions, summary.skipped) == (2, {"beside_transcripts": 6}), "the store's tables, which are told"
    again, _ = exported(capsys, back, "hub")
    assert "`hub:me/mine@" in (again / "README.md").read_text("utf-8"), "where the sessions came from"


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared/corpus")
def test_real_sessions_are_the_same_through_the_hub_and_after_coming_back(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By two more roads: the files as they are through the Hub, and what was made of them, out and in again."""
    here = tmp_path / "here"
    local = pipeline.analyze([str(CORPUS)], here, jobs=1)
    assert local.sessions == len(list(CORPUS.glob("*/*/transcript.jsonl"))) == 7
    assert (local.prompts, local.tool_calls) == (18, 759)
    files = {str(p.relative_to(CORPUS)): p.read_bytes() for p in CORPUS.rglob("*") if p.is_file()}
    hub.sets["pi/found"] = DataSet(files)
    found = pipeline.analyze(["hub:pi/found"], tmp_path / "found", jobs=1)
    figures = ("sessions", "prompts", "tool_calls", "edits", "input_tokens", "output_tokens", "cost_usd", "formats")
    assert [getattr(found, f) for f in figures] == [getattr(local, f) for f in figures]
    out, _ = exported(capsys, here, "hub", "--no-redact")
    hub.sets["pi/made"] = DataSet({str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()})
    made = pipeline.analyze(["hub:pi/made"], tmp_path / "made", jobs=1)
    assert (made.sessions, made.prompts, made.tool_calls) == (7, 18, 759)
    assert made.skipped == {"beside_transcripts": 12}, "the tables that repeat the transcripts"
    asked = "SELECT session_id, turn, text FROM turns ORDER BY ALL"
    assert Store(tmp_path / "made").sql(asked).fetchall() == Store(here).sql(asked).fetchall()


LOADING = """
import sys, datasets
folder = sys.argv[1]
for name in datasets.get_dataset_config_names(folder):
    print(name, datasets.load_dataset(folder, name, split="train").num_rows)
print("default", datasets.load_dataset(folder)["train"].num_rows)
"""


@pytest.mark.slow
def test_the_folder_loads_with_datasets(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("datasets") is None:
        pytest.skip("needs the package datasets (300 MB): pip install datasets")
    out, told = exported(capsys, store, "hub")
    environment = {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(out)], env=environment, capture_output=True, text=True, check=True
    )
    rows = dict(line.split() for line in done.stdout.splitlines())
    assert {n: int(v) for n, v in rows.items() if n != "default"} == told["tables"]
    assert rows["default"] == "2"
