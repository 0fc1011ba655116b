"""What a benchmark names of the program is there."""

from __future__ import annotations

from benchmarks.stages import STAGES, holder_of


def test_every_stage_has_its_functions() -> None:
    for target in (target for targets in STAGES.values() for target in targets):
        holder, name = holder_of(target)
        assert callable(getattr(holder, name)), target
