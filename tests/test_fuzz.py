"""A little of the fuzzer with a fixed seed, and that it sees what it looks for: `make fuzz` runs for long."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from benchmarks import odd_values

from tests.fuzz.checking import failures, rows_alone
from tests.fuzz.mutations import ODD, mutated
from tests.fuzz.runs import batch, run
from tests.golden import folders


@pytest.mark.parametrize("most", [1, pytest.param(None, marks=pytest.mark.slow)])
def test_spoilt_files_of_every_format_are_counted_and_cost_no_neighbour_a_row(tmp_path: Path, most: int | None) -> None:
    """One sample of each format, and every one."""
    found = run(7, seconds=0, folder=tmp_path, batches=1, most=most)
    assert [(f.spoilt.name, f.problems) for f in found.failures] == []
    assert found.formats == {folder.name for folder in folders()}


def test_a_run_can_be_repeated_by_its_seed() -> None:
    assert batch(3, 1) == batch(3, 1)
    assert batch(3, 1) != batch(4, 1)


def test_every_odd_value_can_be_written() -> None:
    chance = Random(1)  # noqa: S311  (chance, no secret)
    data = json.dumps({"type": "x", "id": "y", "list": [1, {"a": 2}]}).encode()
    made = {mutated(data, chance)[0] for _ in range(4 * len(ODD))}
    assert len(made) > 2 * len(ODD)
    assert any(b"NaN" in one for one in made) and any(b"9" * 400 in one for one in made)


def test_a_changed_neighbour_is_seen(tmp_path: Path) -> None:
    alone = rows_alone(tmp_path)
    assert failures({}, alone, tmp_path) == []
    alone["turns"] = alone["turns"][1:]
    assert failures({}, alone, tmp_path) == ["a neighbour's turns changed"]


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the alarm may ring between `open` and its `with`
def test_what_takes_too_long_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = rows_alone(tmp_path)
    monkeypatch.setattr("tests.fuzz.checking.CPU_SECONDS", 0.001)
    assert any("Hang" in problem for problem in failures({}, alone, tmp_path))


@pytest.mark.parametrize("odd", ["[]", '{"a":{"b":1}}', "13", "null", "true"])
def test_arguments_that_are_no_text_cost_no_call(odd: str) -> None:
    chosen = odd_values.sample("kimi-cli")
    assert chosen is not None
    path, lines, found = chosen
    n, record, place = next(one for one in found if one[2][-1] == "arguments")
    before = odd_values.counts("kimi-cli", path, "\n".join(lines).encode())
    assert odd_values.counts("kimi-cli", path, odd_values.changed(lines, n, record, place, odd)) == before
