"""Nothing that untrusted code tries succeeds; and what it may do works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentsignals_lab import sandbox
from agentsignals_lab.sandbox.capability import WHOLE
from tests.conftest import some
from tests.sandbox.attacks import ATTACKS, CALLS, CONTROLS
from tests.sandbox.world import REACHED, Attack, World

FULL: list[sandbox.Tier] = ["default", "strict"]


def needs(tier: sandbox.Tier) -> None:
    missing = sandbox.capabilities().missing(WHOLE[tier])
    if missing:
        pytest.skip(f"the {tier} sandbox is not to be had here: {missing}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


@pytest.mark.parametrize("tier", FULL)
@pytest.mark.parametrize("attack", some([*ATTACKS, *CALLS], 4), ids=lambda a: a.name)
def test_an_attack_is_refused(attack: Attack, tier: sandbox.Tier, world: World) -> None:
    needs(tier)
    assert world.attacked(attack, tier) in attack.refused


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.weak], ids=lambda a: a.name)
def test_it_would_succeed_under_resource_limits_alone(attack: Attack, tmp_path_factory: pytest.TempPathFactory) -> None:
    """So its refusal above is the locks' doing."""
    needs("rlimits")
    alone = World(tmp_path_factory.mktemp("world"))
    try:
        assert alone.attacked(attack, "rlimits") == REACHED
    finally:
        alone.close()


@pytest.mark.parametrize("tier", FULL)
@pytest.mark.parametrize("name", CONTROLS)
def test_what_code_may_do_works(name: str, tier: sandbox.Tier) -> None:
    needs(tier)
    source, expected = CONTROLS[name]
    outcome = sandbox.call(source, "f", [(2,)], sandbox.Limits(wall_s=10), tier)
    assert outcome.results == (sandbox.Returned(expected),)
    assert outcome.tier == tier
    assert set(WHOLE[tier]) <= set(outcome.layers)
