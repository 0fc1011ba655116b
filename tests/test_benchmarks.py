"""What a benchmark names of the program is there, and what it counts is so."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from benchmarks import harness_fields
from benchmarks.formats import table
from benchmarks.mutations import ROOT, SOURCE, Mutation, mutations
from benchmarks.recount import SHAPES
from benchmarks.stages import STAGES, holder_of

from agentsignals.cli import demo_corpus
from agentsignals.formats import Fields, formats
from agentsignals.ingest import pipeline
from tests.golden import SAMPLES
from tests.quick import each_row


def test_every_stage_has_its_functions() -> None:
    for target in (target for targets in STAGES.values() for target in targets):
        holder, name = holder_of(target)
        assert callable(getattr(holder, name)), target


@pytest.mark.slow
def test_the_table_of_formats_counts_what_was_read_and_skipped(tmp_path: Path) -> None:
    summary, store = pipeline.ingest_into([str(SAMPLES / "pi" / "broken.jsonl")], tmp_path / "s")
    rows = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in table(summary, store)}
    assert set(formats()) <= set(rows)
    assert rows["pi"][1:6] == ["1", "0.0", "1", "31", "2 bad_json, 1 cut_line"]
    assert rows["codex"][1:5] == ["0", "0.0", "0", "0"]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions of Claude Code, each in a folder of its id, as the corpus holds them."""
    made, folder = demo_corpus.make_corpus(tmp_path_factory.mktemp("demo")), tmp_path_factory.mktemp("traces")
    for path in sorted((made / "claude-code").rglob("*.jsonl")):
        (folder / path.stem).mkdir()
        shutil.copyfile(path, folder / path.stem / "transcript.jsonl")
    return folder


# -- small faults that the tests have to catch -------------------------------------------------------------------------


def test_the_list_is_long_and_over_many_rooms() -> None:
    every = mutations()
    assert len(every) >= 60 and len({m.file.split("/")[0] for m in every}) >= 12
    assert len({(m.file, m.new) for m in every}) == len(every)


@each_row("mutation", mutations())
def test_a_change_can_still_be_made(mutation: Mutation) -> None:
    """Where this fails the source moved on: write the change anew, or draw another of its kind."""
    source = (ROOT / SOURCE / mutation.file).read_text("utf-8")
    assert mutation.changed(source) not in (None, source)
    assert [t for t in mutation.tests if not _is_there(t)] == []


def _is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    return (ROOT / file).exists() and (not name or f"def {name}(" in (ROOT / file).read_text("utf-8"))


RECORD = """
class Result(BaseModel):
    reward: float | None = None
    retries: int = 0
    note: str = ""
"""


@pytest.mark.parametrize(
    ("read", "not_read", "said", "status"),
    [
        (("Result.reward", "Result.retries"), {}, [], 0),
        (("Result.reward",), {"Result.retries": "None."}, [], 0),
        (("Result.reward",), {}, ["  Result.retries: NEW"], 1),
        (("Result.reward", "Result.retries"), {"Result.epochs": "None."}, ["  Result.epochs: GONE"], 1),
    ],
)
def test_a_field_that_a_newer_package_adds_or_drops_is_a_difference(
    read: tuple[str, ...],
    not_read: dict[str, str],
    said: list[str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with zipfile.ZipFile(tmp_path / "made_bench-1.2.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("made_bench/models.py", RECORD)
    of_package = harness_fields.Records("harbor", "made_bench", {"models.py": ("Result",)})
    card = Fields(package="made_bench", version="1.1.0", read=read, not_read=not_read)
    monkeypatch.setattr(harness_fields, "HARNESSES", (of_package,))
    monkeypatch.setattr(harness_fields, "told", lambda _: card)
    monkeypatch.setattr(sys, "argv", ["harness_fields", "--packages", str(tmp_path)])
    assert harness_fields.main() == status
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(("NEW", "GONE"))] == said
    assert "harbor: made_bench 1.2.0, 2 fields; the card is of 1.1.0" in lines


SPAN = {"span_attributes": {"openinference.span.kind": "TOOL"}}


@pytest.mark.parametrize(
    ("shape", "name", "document", "counted"),
    [
        ("tau-bench", "a.json", [{"reward": 1.0, "traj": [{"role": "assistant", "tool_calls": [{}, {}]}]},
                                 {"reward": 0.0, "traj": [{"role": "user", "content": "hi"}]}],
         {"rows": 2, "sessions": 2, "calls": 2, "solved": 1, "failed": 1}),
        ("terminal-bench", "t/results.json", {"trial_name": "t.1-of-1", "is_resolved": None},
         {"rows": 1, "not judged": 1}),
        ("terminal-bench", "results.json", {"results": [{"trial_name": "t.1-of-1", "is_resolved": True}]}, {}),
        ("trail", "x.json", {"spans": [{"child_spans": [SPAN, SPAN]}]}, {"rows": 1, "sessions": 1, "calls": 2}),
    ],
)  # fmt: skip
def test_the_recount_counts_by_itself(
    shape: str, name: str, document: object, counted: dict[str, int], tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps(document))
    assert {name: n for name, n in SHAPES[shape][0](tmp_path).items() if n} == counted
