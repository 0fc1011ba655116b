"""How near a patch came to the gold patch: its files, its functions, its lines (design/failures.md#localisation)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from agentsignals.model.attempt import PatchedFile, paths_of

Level = Literal["line", "function", "file", "elsewhere"]
_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|conftest\.py)(?:/|$)|(?:^|/)test_|_test\.\w+$|\.(?:test|spec)\.\w+$"
)
_PROSE = (".md", ".rst", ".txt", ".adoc")


class Overlap(Struct, frozen=True, gc=False):
    """Of the gold patch's places of one kind those that the patch changes too, and how many it changes in all."""

    hit: int
    gold: int
    touched: int


class Localization(Struct, frozen=True, gc=False, kw_only=True):
    """Where a patch lies against the gold patch. Tests and prose count only where the gold patch is nothing else."""

    level: Level
    """The finest kind of place that both have in common."""
    files: Overlap
    functions: Overlap | None
    """In the files of both; None where a diff does not show the function of each change."""
    lines: Overlap | None
    """By what stands on them; None where the gold patch, or the patch, has none that tells a place."""
    missed: list[str]
    """Files of the gold patch that the patch does not change."""
    only_new: bool
    """Beside tests and prose the patch only makes new files, and the gold patch makes none."""
    gold_is_new: bool
    """The gold patch only makes new files: one of another name may be as right."""


def localized(patch: Iterable[PatchedFile], gold: Iterable[PatchedFile]) -> Localization | None:
    """The place of a patch that is not empty; None where the gold patch names no file."""
    ours, theirs = list(patch), list(gold)
    theirs = [f for f in theirs if is_source(f.path)] or theirs
    sources = [f for f in ours if is_source(f.path)]
    if not ours or not theirs:
        return None
    wanted, touched = paths_of(theirs), paths_of(ours)
    hit = [f for f in theirs if paths_of([f]) & touched]
    mine = [f for f in ours if paths_of([f]) & wanted]
    functions, lines = _functions(mine, hit), _lines(mine, hit)
    return Localization(
        level=_level(bool(hit), functions, lines),
        files=Overlap(len(hit), len(theirs), len(sources) or len(ours)),
        functions=functions,
        lines=lines,
        missed=[f.path for f in theirs if f not in hit],
        only_new=all(f.op == "create" for f in sources) and all(f.op != "create" for f in theirs),
        gold_is_new=all(f.op == "create" for f in theirs),
    )


def is_source(path: str) -> bool:
    """Whether a path is neither a test's nor prose, by its name."""
    return not _TEST.search(path) and posixpath.splitext(path)[1].lower() not in _PROSE


def _level(is_hit: bool, functions: Overlap | None, lines: Overlap | None) -> Level:
    if not is_hit:
        return "elsewhere"
    if lines is not None and lines.hit:
        return "line"
    return "function" if functions is not None and functions.hit else "file"


def _functions(patch: list[PatchedFile], gold: list[PatchedFile]) -> Overlap | None:
    mine, theirs = _named(patch), _named(gold)
    if not mine or not theirs or "" in {name for _, name in mine | theirs}:
        return None
    return Overlap(len(mine & theirs), len(theirs), len(mine))


def _named(files: list[PatchedFile]) -> set[tuple[str, str]]:
    return {(f.old_path or f.path, function) for f in files for _, _, function in f.changes}


def _lines(patch: list[PatchedFile], gold: list[PatchedFile]) -> Overlap | None:
    mine, theirs = ({(f.old_path or f.path, d) for f in files for d in f.digests} for files in (patch, gold))
    return Overlap(len(mine & theirs), len(theirs), len(mine)) if mine and theirs else None
