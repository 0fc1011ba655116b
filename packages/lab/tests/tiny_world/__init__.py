"""A world whose law is known, for models of 0.3 million weights: what an analysis should find in them was put there.

Its setting goes by the file name `tiny` after `with_setting`; tasks and words of its language are written as files for
`lab agent`. `MODELS` has two models, by seed.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec

import agentsignals_lab
from agentsignals_lab.coding_tasks import written
from tests.tiny_world import tasks, world

MODELS = (
    Path(agentsignals_lab.__file__).parent / "sample_study" / "model",
    Path(__file__).parent / "seed1",
)
_WORDS = """[words]
task = "{says}"
tests = "{tests}"
case = " test {function} ( {args} ) == {expected} ."
"""


def with_setting() -> None:
    """Let the setting of experiments be the tiny world's where the file is called `tiny`. It needs NumPy."""
    from agentsignals_lab.experiments import setting  # noqa: PLC0415
    from tests.tiny_world.setting import TinySetting  # noqa: PLC0415

    of_files: Any = setting.Setting
    made: Any = lambda model, asked: (TinySetting if asked.file == "tiny" else of_files)(model, asked)  # noqa: E731
    setting.Setting = made


def tasks_file(path: Path, count: int, seed: int = 13) -> Path:
    """Write a file of tasks of the world, in its language."""
    drawn = (msgspec.structs.replace(written(task), says=f"task add {task.id.split('_')[1]} .")
             for task in tasks.drawn(count, seed))  # fmt: skip
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in drawn))
    return path


def tones() -> str:
    """The world's language as the tables [words] and [tones.MOOD] of a file of conditions."""
    chance, text = random.Random(0), _WORDS  # noqa: S311  (texts are drawn, no secrets)
    for mood in world.MOODS:
        said = [world.feedback(mood, chance) for _ in range(8)]
        text += f"[tones.{mood}]\nafter_failure = {msgspec.json.encode(said).decode()}\n"
    return text
