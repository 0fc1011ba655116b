"""Every format, one suite: samples are claimed by one format alone, read as their goldens say, and survive damage."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentsignals.formats
from agentsignals.formats import FORMATS, Input, card_of, conformance, formats, identify, marks
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.ingest import pipeline
from agentsignals.model import Artifact
from tests.golden import SAMPLES, cases, dumped, expected_path, picture, samples
from tests.quick import AT_NIGHT, each_row

ALL = samples()
FILES = [f for s in ALL for f in ([s] if s.is_file() else [p for p in sorted(s.rglob("*")) if p.is_file()])]


def _one_a_format(paths: list[Path]) -> list[Any]:
    """The first of each format at once, the others at night: damage to all of them is what `make fuzz` draws."""
    of = [path.relative_to(SAMPLES).parts[0] for path in paths]
    return [
        pytest.param(path, marks=() if of.index(name) == n else AT_NIGHT)
        for n, (path, name) in enumerate(zip(paths, of, strict=True))
    ]


DAMAGED = _one_a_format(FILES)
DEAR = ("absent_is_no_zero", "damage_survived")
"""Rules that read a sample dozens of times are slow; the one that looks at each value is asked of one sample a format
in `make test`."""
LOOKS = "claims_of_anything"
CHEAP = [rule for rule in conformance.RULES if rule not in (*DEAR, LOOKS)]


def _name(path: Path) -> str:
    return path.relative_to(SAMPLES).as_posix()


@each_row("sample", ALL + cases())
def test_a_sample_reads_as_its_golden_says(sample: Path) -> None:
    """To the letter, so that writing the goldens anew changes none that nobody touched."""
    assert dumped(sample) == expected_path(sample).read_text(encoding="utf-8")


@pytest.mark.parametrize("left_out", ["_cases", pytest.param("", marks=pytest.mark.slow)], ids=["samples", "cases"])
def test_no_sample_shows_an_error_of_ours(left_out: str, tmp_path: Path) -> None:
    """Readers, signals and whatever else comes between a file and its rows: what fails there is named."""
    ignored = shutil.ignore_patterns("*.expected.json", left_out)
    whole = shutil.copytree(SAMPLES, tmp_path / "samples", ignore=ignored)
    summary = pipeline.analyze([str(whole)], tmp_path / "store", jobs=1)
    assert summary.internal_errors == {}
    assert set(summary.formats) >= set(formats()) - {"swe-bench-text"}, (
        "which says more of attempts that others tell of"
    )


@each_row("path", FILES)
def test_a_sample_lies_with_its_format(path: Path) -> None:
    data = path.read_bytes()
    found = identify(Head(data[:HEAD_BYTES], path.as_posix(), len(data) <= HEAD_BYTES))
    folder, *below = path.relative_to(SAMPLES).parts
    assert found is not None
    assert found[0].name == folder or len(below) > 1, "only a folder of files that belong together holds other formats"


RIGHTLY = {
    ("zed", "absent_is_no_zero"): "nothing is written of a figure of 0",
    ("continue", "absent_is_no_zero"): "the name of the cache's figure says which wire it was",
    ("qwen-code", "absent_is_no_zero"): "a count of 0 stands beside it, in the telemetry",
}
"""What a format may break, and why."""


@pytest.mark.parametrize("sample", ALL, ids=_name)
def test_what_holds_of_every_format(sample: Path) -> None:
    """The suite that a format's author can run over samples of a package of its own."""
    assert _broken(sample, CHEAP) == {}


@pytest.mark.parametrize("sample", _one_a_format(ALL), ids=_name)
def test_whatever_stands_in_a_file_it_can_be_looked_at(sample: Path) -> None:
    assert _broken(sample, [LOOKS]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("rule", DEAR)
@pytest.mark.parametrize("sample", _one_a_format(ALL), ids=_name)
def test_what_holds_of_every_format_although_it_is_dear_to_ask(sample: Path, rule: str) -> None:
    assert _broken(sample, [rule]) == {}


def _broken(sample: Path, rules: Iterable[str]) -> dict[str, list[str]]:
    """The rules that a sample breaks without a right to, and how."""
    files, name = conformance.files_of(sample), sample.relative_to(SAMPLES).parts[0]
    problems = {rule: list(conformance.RULES[rule](files)) for rule in rules if (name, rule) not in RIGHTLY}
    return {rule: what for rule, what in problems.items() if what}


@each_row("sample", [s for s in ALL if s.is_dir()])
def test_a_folder_of_files_holds_its_format(sample: Path) -> None:
    assert sample.parent.name in {file["format"] for file in picture(sample)["files"]}


def test_every_format_has_a_sample() -> None:
    assert {p.relative_to(SAMPLES).parts[0] for p in ALL} == set(formats())


def _read(path: Path, data: bytes) -> Artifact:
    """Reads damaged bytes with the sample's own format, as when a file is cut after it was recognised."""
    whole = path.read_bytes()
    found = identify(Head(whole[:HEAD_BYTES], _name(path), False)) or identify(Head(whole, _name(path), True))
    assert found is not None
    artifact = Artifact(
        artifact_id="a", source="sample", path=_name(path), format=found[0].name, sha256="", bytes=len(data)
    )
    found[0].read([Input(data, artifact)])
    return artifact


@pytest.mark.parametrize("path", DAMAGED, ids=_name)
@settings(max_examples=15, deadline=None)
@given(cut=st.floats(0, 1))
def test_a_file_cut_anywhere_costs_only_its_last_record(path: Path, cut: float) -> None:
    data = path.read_bytes()
    whole = _read(path, data)
    got = _read(path, data[: int(len(data) * cut)])
    assert got.skipped <= whole.skipped + 1


@pytest.mark.parametrize("path", DAMAGED, ids=_name)
@settings(max_examples=25, deadline=None)
@given(at=st.floats(0, 1), junk=st.binary(min_size=1, max_size=12))
def test_garbled_bytes_never_raise(path: Path, at: float, junk: bytes) -> None:
    data = path.read_bytes()
    n = int(len(data) * at)
    artifact = _read(path, data[:n] + junk + data[n + len(junk) :])
    assert artifact.records >= 0


def test_no_format_claims_what_anybody_may_write() -> None:
    heads = [Head(text.encode(), "x.json", complete=True) for text in conformance.NOBODYS]
    claimed = {name: head.text for name, made in formats().items() for head in heads if made.claims(head)}
    assert claimed == {}


def test_what_is_read_of_a_declaration_is_what_the_format_is() -> None:
    declared = [(d.place.load().name, d.version, d.of_json, d.marks) for d in marks()]
    assert declared == [(f.name, f.version, f.of_json, f.marks) for f in formats().values()]


@given(
    st.lists(st.sampled_from([m for d in marks() for m in d.marks] + [b'"', b"\\", b'":"', b" ", b"{"]), max_size=12)
)
def test_a_format_is_asked_where_the_file_has_a_mark_of_it(parts: list[bytes]) -> None:
    data = b"{" + b"".join(parts)
    head, asked = Head(data, "a.jsonl", True), set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FORMATS, "load", asked.add)
        identify(head)
    of_kind = [d for d in marks() if d.of_json in (None, head.looks_like_json)]
    assert asked == {d.place for d in of_kind if not d.marks or any(mark in data for mark in d.marks)}


def test_every_format_says_what_it_rests_on_and_what_it_can_not_say() -> None:
    cards = {name: card_of(made) for name, made in formats().items()}
    assert [name for name, card in cards.items() if card is None or not (card.material and card.limits)] == []


def test_every_format_has_a_sample_that_is_broken() -> None:
    """What is left of it is in its golden: skips counted, neighbours kept."""
    have = {p.relative_to(SAMPLES).parts[0] for p in ALL if p.name.startswith(conformance.SPOILT)}
    assert set(formats()) - have == set()


def test_a_field_of_a_harness_is_read_or_not_and_what_is_said_to_be_read_stands_in_the_reader() -> None:
    for name, made in formats().items():
        card = card_of(made)
        for told in card.fields if card is not None else ():
            assert set(told.read).isdisjoint(told.not_read)
            assert all(cost.endswith(".") for cost in told.not_read.values())
            place = Path(agentsignals.formats.__file__).parent / name.replace("-", "_")
            code = "\n".join(path.read_text("utf-8") for path in place.glob("*.py"))
            lacking = [f for f in told.read if not re.search(rf"\b{f.rpartition('.')[2]}\b", code)]
            assert lacking == [], f"{name}: said to be read"
