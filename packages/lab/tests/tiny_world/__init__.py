"""A world whose law is known, for models of 0.3 million weights: what an analysis should find in them was put there.

Its setting, wording and tasks (`tiny:COUNT`) are added to the lab's by name. `MODELS` has two models, by seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentsignals.errors import LabError

import agentsignals_lab
from agentsignals_lab.coding_tasks import Task, chosen
from agentsignals_lab.retry.wording import WORDINGS
from tests.tiny_world import tasks
from tests.tiny_world.wording import TinyWording

MODELS = (
    Path(agentsignals_lab.__file__).parent / "sample_study" / "model",
    Path(__file__).parent / "seed1",
)


def drawn(count: str, seed: int) -> list[Task]:
    # More than so many different ones are hard to draw: they are 19 addends by pairs of inputs.
    if not count.isdecimal() or not 1 <= int(count) <= 5_000:
        raise LabError(f"{count!r} is no number of tiny tasks.", "Write tiny:60, and at most 5000.")
    return tasks.drawn(int(count), seed)


def with_setting() -> None:
    """Add the setting; it needs NumPy."""
    from agentsignals_lab.experiments import file_setting  # noqa: PLC0415
    from tests.tiny_world.setting import TinySetting  # noqa: PLC0415

    made: Any = TinySetting
    file_setting.SETTINGS["tiny"] = made


chosen.DRAWN["tiny"] = drawn
WORDINGS["tiny"] = TinyWording()
