"""Trained models of the tiny world by name, made when they are first asked for and kept in the user's cache."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from agentsignals import private_files
from agentsignals.errors import LabError
from agentsignals.lab import how_to_install
from agentsignals.lab.tiny import world
from agentsignals.lab.tiny.recipes import LARGE, NULL, Recipe

_NAMED = {"tiny:": LARGE, "tiny-null:": NULL}
_MOST_SEEDS = 1_000_000


def kept_at(recipe: Recipe, seed: int) -> Path:
    """Where the trained model is kept: below the platform's folder for caches, by all that it was made from."""
    import platformdirs  # noqa: PLC0415  (who names a folder of their own does not need it)

    made_from = msgspec.json.encode((world.VERSION, recipe, world.vocabulary()))
    digest = hashlib.sha256(made_from).hexdigest()[:12]
    return Path(platformdirs.user_cache_dir("agentsignals")) / "tiny" / f"{digest}-seed{seed}"


def by_name(named: str, tell: Callable[[str], None]) -> Path | None:
    """The folder of `tiny:SEED` or `tiny-null:SEED`, trained now if it never was; None for any other name.

    LabError when the seed is none, or torch is not installed.
    """
    kind = next((kind for kind in _NAMED if named.startswith(kind)), None)
    if kind is None:
        return None
    seed = named.removeprefix(kind)
    if not seed.isdecimal() or int(seed) >= _MOST_SEEDS:
        raise LabError(f"{seed[:20]!r} is no seed of a tiny model.", f"Write {kind}0, {kind}1, ...")
    return trained(_NAMED[kind], int(seed), tell)


def trained(recipe: Recipe, seed: int, tell: Callable[[str], None]) -> Path:
    """The folder of a model in the cache; it is trained first where it is not there, and kept only when it is whole."""
    folder = kept_at(recipe, seed)
    if folder.is_dir():
        return folder
    try:
        from agentsignals.lab.residual.training import train  # noqa: PLC0415  (torch takes seconds)
    except ImportError as problem:
        raise LabError(
            f"A tiny model can't be trained: {problem}.", f"Install what it needs: {how_to_install()}"
        ) from problem
    private_files.make_folder(folder.parent)
    tell(f"training a tiny model, once, which takes minutes: {folder}")
    begun = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        train(recipe, seed, begun, tell=tell)
        begun.replace(folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster, with the same model
            raise
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return folder
