"""The time of a session grows with its length, not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from benchmarks.growth import ALL, spent

from agentsignals.changes.regions import track
from agentsignals.formats import Input, formats
from agentsignals.model import Artifact, Edit
from tests.long_sessions import FORMATS
from tests.long_shapes import SHAPES

TURNS, TIMES, MOST = 60, 8, 12
"""A step that grows with the square would take 64 times as long; half more than in proportion is left for a busy
machine and what grows with the root. `benchmarks/growth.py` looks at 4,000 and 16,000 turns."""


_TRIES = 4


def steep(cpu_s: Callable[[int], float], most: float, least_s: float) -> list[str]:
    """What each try took where none stayed below; empty where one did. What others do on the machine makes some tries
    slow; a square is above in each.
    """
    tries = []
    for _ in range(_TRIES):
        short, long = cpu_s(1), cpu_s(TIMES)
        if long <= most * max(short, least_s):
            return []
        tries.append(f"{short:.3f} s, then {long:.3f} s")
    return tries


def test_a_square_is_steep_and_a_line_with_noise_is_not() -> None:
    noise = iter([1.0, 30.0, 1.0, 9.0])
    assert steep(lambda n: next(noise), MOST, 0.02) == []
    assert len(steep(lambda n: float(n * n), MOST, 0.02)) == _TRIES


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(f, marks=pytest.mark.nightly if n % 2 else ()) for n, f in enumerate(sorted(FORMATS))]
)
def test_eight_times_the_turns_take_some_eight_times_as_long(name: str) -> None:
    assert steep(lambda times: spent(name, TURNS * times)[ALL], MOST, 0.02) == []


_STEPS = 300


@pytest.mark.slow
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_so_does_that_of_a_session_that_is_long_in_one_way(shape: str) -> None:
    # Three times the proportion, of 64 by a square: a session this short and simple is done in 10 ms, which vary.
    assert steep(lambda times: spent(shape, _STEPS * times)[ALL], 3 * TIMES, 0.01) == []


def _cpu_s(do: Callable[[], object]) -> float:
    begun = time.process_time()
    do()
    return time.process_time() - begun


def _edits(n: int) -> list[Edit]:
    """Insertions all over one file, far from each other."""
    places = [1 + 10 * (i * 7_919 % n) for i in range(n)]
    return [
        Edit(
            seq=i,
            turn=0,
            thread="main",
            call_id="c",
            path="a.py",
            op="modify",
            via="edit_tool",
            hunk=0,
            start_line=at,
            end_line=at,
            added=1,
            removed=0,
            old_start=at,
            whole_file=False,
        )
        for i, at in enumerate(places)
    ]


def _one_file_edited(times: int) -> None:
    assert len(track(_edits(times))) > times / 2


def _read(text: str) -> None:
    (session,) = (
        formats()["claude-code"]
        .read(
            [
                Input(
                    text.encode(),
                    Artifact(artifact_id="a", source="", path="a", format="claude-code", sha256="", bytes=1),
                )
            ]
        )
        .sessions
    )
    assert len(session.edits) == len(session.tool_calls)


def _written_without_patches(calls: int, same_id: bool) -> str:
    """Files written with nothing beside the result: whether one is new, the calls before it tell."""
    base = '{"parentUuid":null,"sessionId":"s","timestamp":"2026-03-02T09:00:00Z","cwd":"/w"'
    lines = []
    for n in range(calls):
        call_id = "c" if same_id else f"c{n}"
        use = f'{{"type":"tool_use","id":"{call_id}","name":"Write","input":{{"file_path":"/w/{n}.py","content":"x"}}}}'
        result = f'{{"type":"tool_result","tool_use_id":"{call_id}","content":"done"}}'
        said = f'{{"role":"assistant","id":"m{n}","content":[{use}]}}'
        lines.append(f'{base},"type":"assistant","uuid":"a{n}","message":{said}}}')
        lines.append(f'{base},"type":"user","uuid":"u{n}","message":{{"role":"user","content":[{result}]}}}}')
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "n"),
    [
        pytest.param(_one_file_edited, 500, id="regions of one file"),
        pytest.param(lambda n: _read(_written_without_patches(n, same_id=False)), 500, id="edits without a patch"),
        pytest.param(lambda n: _read(_written_without_patches(n, same_id=True)), 500, id="calls of one id"),
    ],
)
def test_so_does_work_on_much_of_one_thing(work: Callable[[int], None], n: int) -> None:
    assert steep(lambda times: _cpu_s(lambda: work(n * times)), 2 * TIMES, 0.01) == []
