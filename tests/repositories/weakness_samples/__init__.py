"""Small texts for each rule: those in which it must find something, and look-alikes in which it must not."""

from __future__ import annotations

from typing import NamedTuple


class Samples(NamedTuple):
    """Written for this project, a statement or a few lines each. `path` gives the language."""

    path: str
    finds: tuple[str, ...]
    leaves: tuple[str, ...]


def all_samples() -> dict[str, Samples]:
    from tests.repositories.weakness_samples import files, others, python, web  # noqa: PLC0415  (each imports Samples)

    return {**python.SAMPLES, **web.SAMPLES, **files.SAMPLES, **others.SAMPLES}
