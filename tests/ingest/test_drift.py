"""An agent that writes something new is noticed: which fields, in how many files, of which version."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks.upstream.compare import places, samples_of

from agentsignals import formats as fields
from agentsignals.cli import main
from agentsignals.formats import formats
from agentsignals.ingest import pipeline
from agentsignals.ingest.plan import UnknownFields, unknown_fields_by_version
from agentsignals.store import Store
from agentsignals.store.index import FileKind
from tests import vocabulary
from tests.golden import SAMPLES
from tests.ui.served import page, serving

WORDS = fields.parsed_fields(".: a b\nb: c d\nb.c: *\nb.d: e\n")
LOOKS: dict[str, tuple[Any, set[str]]] = {
    "nothing new": ({"a": 1, "b": {"c": {"x": 1}, "d": {"e": 2}}}, set()),
    "a new field": ({"a": 1, "z": 1}, {"z"}),
    "inside": ({"b": {"d": {"e": 1, "new": 1}}}, {"b.d.new"}),
    "in a list": ({"b": [{"d": [{"new": 1}]}]}, {"b.d.new"}),
    "an object where a word was": ({"a": {"new": {"x": 1}}}, {"a.new"}),
    "data under a star": ({"b": {"c": {"whatever": {"y": 1}}}}, set()),
    "keys that are data": ({"/x/y.py": 1, "a b": 1, "id_12345": 1, "": 1, "x" * 41: 1, "\x1b[31m": 1}, set()),
    "a list of words": (["a"], set()),
    "the first items of a list, and its last": (
        {"b": [{f"n_{c}": 1} for c in "pqrstu"]},
        {"b.n_p", "b.n_q", "b.n_r", "b.n_u"},
    ),
}


@pytest.mark.parametrize(("value", "met"), LOOKS.values(), ids=LOOKS)
def test_what_is_new_is_a_field_that_no_file_had(value: Any, met: set[str]) -> None:
    found: set[str] = set()
    fields.walk_fields(value, WORDS, "", found, fields.MOST_DEPTH)
    assert found == met


def test_a_list_of_fields_is_read_as_it_is_written() -> None:
    lists = [*vocabulary.FOLDER.glob("*.txt")]
    assert lists
    for path in lists:
        text = path.read_text(encoding="utf-8")
        words = fields.parsed_fields(text)
        known = {place for place in vocabulary.places_of(words) if re.search(rf"(?m)^{_line_of(place)}~", text)}
        assert known and vocabulary.written(words, known) == text, path.name
        assert path.stem in formats()


def _line_of(place: str) -> str:
    """A pattern of the line of a vocabulary up to a field's name."""
    above, _, name = place.rpartition(".")
    return rf"{re.escape(above or '.')}: (?:\S+ )*{re.escape(name)}"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.stem, marks=[pytest.mark.slow] * (path.stem == "claude-code"))
        for path in sorted(vocabulary.FOLDER.glob("*.txt"))
    ],
)
def test_a_field_counts_as_read_only_if_a_sample_has_it(name: str) -> None:
    text = (vocabulary.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    words = fields.parsed_fields(text)
    read = {p for p in vocabulary.places_of(words) if not re.search(rf"(?m)^{_line_of(p)}~", text)}
    met: set[str] = set()
    for files in samples_of(name):
        for _, records, _ in files:
            for record in records:
                met |= {re.sub(r"\[[^\]]*\]", "", place.partition(": ")[2]) for place, _ in places(record, name)}
    assert not read - met


def test_of_a_long_file_some_records_are_looked_at() -> None:
    """The first and others, spread; none that is too long; the same each time."""
    many = b"".join(json.dumps({"n": n, "pad": "x" * 990}).encode() + b"\n" for n in range(1_000))
    seen = [record["n"] for record in fields.examined_records(many, "0")]
    assert len(seen) == fields.MOST_RECORDS and seen[0] == 0 and seen[-1] > 800
    assert len(list(fields.examined_records(many[:5_050], "0"))) == fields.FEWEST_RECORDS
    long = json.dumps({"n": 0, "pad": "x" * 40_000}).encode() + b"\n"
    assert all(record["n"] for record in fields.examined_records(long + many, "0"))


def test_a_long_document_is_looked_at_as_its_content_decides() -> None:
    short = json.dumps({"a": [{"b": 1}] * 3}, indent=1).encode()
    long = json.dumps({"a": [{"b": 1}] * 5_000}, indent=1).encode()
    assert len(list(fields.examined_records(short, "ff"))) == 1
    parts = 1 + len(long) // fields.DOCUMENT_BYTES
    assert [len(list(fields.examined_records(long, f"{n:08x}"))) for n in range(parts)] == [1, *[0] * (parts - 1)]
    assert list(fields.examined_records(b"{" * 100_000, "0")) == list(fields.examined_records(b"", "0")) == []


def _drifting(folder: Path, versions: dict[str, list[dict[str, int]]]) -> None:
    """Sessions of Claude Code with more fields: a file a list, by version."""
    lines = [json.loads(line) for line in (SAMPLES / "claude-code" / "edits.jsonl").read_text("utf-8").splitlines()]
    folder.mkdir()
    for version, files in versions.items():
        for n, more in enumerate(files):
            made = (
                {
                    **line,
                    **more,
                    "sessionId": f"{version}-{n}",
                    "uuid": f"{version}-{n}-{line.get('uuid')}",
                    "version": version,
                }
                for line in lines
            )
            (folder / f"{version}-{n}.jsonl").write_text("".join(json.dumps(m) + "\n" for m in made), encoding="utf-8")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of a version with new fields, one hostile; one of a version without."""
    folder = tmp_path_factory.mktemp("drift")
    new = {"newSwitch": 1, "otherSwitch": 1}
    hostile = {"\x1b]0;x": 1, "<script>": 1, "newSwitch": 1, **{f"field{c}": 1 for c in "abcdefghij"}}
    _drifting(folder / "there", {"9.10.0": [new, hostile], "9.9.0": [{}]})
    pipeline.ingest([str(folder / "there")], folder / "store")
    return folder / "store"


def test_what_is_new_is_counted_by_version(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["analyze", str(store.parent / "there"), "--store", str(store)],
        ["doctor", "--store", str(store)],
    ):
        assert main([*arguments, "--quiet"]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("new fields")]
        assert "10 unknown fields in 2 files of claude-code 9.10.0 (fielda, fieldb, " in line
    summary = pipeline.ingest([str(store.parent / "there")], store)
    assert summary.versions == {"claude-code": {"9.9.0": 1, "9.10.0": 2}}
    (row,) = summary.unknown_fields
    assert (row.version, row.files) == ("9.10.0", 2)
    assert row.fields == [*(f"field{c}" for c in "abcdefgh"), "newSwitch", "otherSwitch"], "eight of a file at most"


def test_the_page_of_files_shows_what_is_new_and_which_versions_were_met(store: Path) -> None:
    with serving(Store(store)) as server:
        text = page(server, "/artifacts")
    assert "Unknown fields" in text and "<code>fielda</code>" in text
    assert "9.9.0" in text and "9.10.0" in text and "<script>" not in text.partition("<main")[2].partition("</main")[0]


def test_fields_are_added_up_over_files() -> None:
    def kind(version: str, files: int, *unknown: str) -> FileKind:
        facts = {"bytes": 1, "example": "/x", "is_trace": True, "spec": "/", "skipped": {}, "note": ""}
        return FileKind(**facts, files=files, format="pi", version=version, unknown_fields=[*unknown])  # type: ignore[arg-type]

    kinds = [kind("1", 1, "a"), kind("2", 4), kind("1", 2, "b", "a"), kind("", 1, "c")]
    assert unknown_fields_by_version(kinds) == [
        UnknownFields(format="pi", version="1", files=3, fields=["a", "b"]),
        UnknownFields(format="pi", version="", files=1, fields=["c"]),
    ]


@pytest.mark.skipif(not vocabulary.CORPUS.exists(), reason="no corpus beside the repository")
@pytest.mark.slow
def test_real_files_have_next_to_nothing_new() -> None:
    """Lists made from half of the files, the other half as a run looks at it."""
    sessions = vocabulary.CORPUS / "sessions"
    found = vocabulary.files_by_format([sessions / "codex", sessions / "opencode"])
    for name, most in {"codex": 0.1, "opencode": 0.08}.items():
        n, new = vocabulary.halves(name, found[name], whole=False)
        assert len(set().union(*new.values())) <= most * n, (name, new)
