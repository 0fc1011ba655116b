"""Nothing that untrusted code tries succeeds; and what it may do works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentsignals_lab import sandbox
from tests.conftest import some
from tests.sandbox.attacks import ATTACKS, CALLS, CONTROLS
from tests.sandbox.world import REACHED, Attack, World

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=f"there is no sandbox here: {sandbox.missing()}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


@pytest.mark.parametrize("attack", some([*ATTACKS, *CALLS], 2), ids=lambda a: a.name)
def test_an_attack_is_refused(attack: Attack, world: World) -> None:
    assert world.attacked(attack) in attack.refused


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.weak], ids=lambda a: a.name)
def test_it_would_succeed_under_resource_limits_alone(
    attack: Attack, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So its refusal above is the locks' doing."""
    whole = sandbox.locks
    monkeypatch.setattr(sandbox, "locks", lambda limits: {"rlimits": whole(limits)["rlimits"]})
    monkeypatch.setattr(sandbox, "computing", lambda limits: ["env", "-C", str(tmp_path)])
    alone = World(tmp_path / "world")
    try:
        assert alone.attacked(attack) == REACHED
    finally:
        alone.close()


@pytest.mark.parametrize("name", CONTROLS)
def test_what_code_may_do_works(name: str) -> None:
    source, expected = CONTROLS[name]
    outcome = sandbox.call(source, "f", [(2,)], sandbox.Limits(wall_s=10))
    assert outcome.results == (sandbox.Returned(expected),)
