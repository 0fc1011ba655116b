"""Conditions from a TOML file, with the tones and words that they use; all of it is checked before a model is there."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Meta, Struct
from msgspec.structs import replace

from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.retry.wording import PlainWording, Wording, Words, wording
from agentsignals_lab.texts.tones import Tone, read_tones

_LONGEST_NAME = 80
_RANDOMS = "randoms"


class ConditionFile(Struct, frozen=True, kw_only=True):
    """Conditions, the baseline first, and the words that they may use beside the package's."""

    conditions: tuple[Condition, ...] = (BASELINE,)
    tones: dict[str, Tone] = {}
    words: Words | None = None


def read_conditions(path: Path | None, only: Sequence[str] = ()) -> ConditionFile:
    """A TOML file of [[condition]]s, with [tones.NAME] and [words] where it has such; `tones` may name a file that has
    them. `randoms` of a condition makes as many beside it, each along another random direction. With `only`, those
    conditions beside the baseline. LabError when it can't be read, has an unknown setting, a name twice, or none of a
    name that is asked for."""
    if path is None:
        if only:
            raise LabError(f"There is no condition {only[0]!r}.", "Name the file that has it: --conditions.")
        return ConditionFile()
    try:
        document = tomllib.loads(path.read_text("utf-8"))
        tables, tones, words = (document.pop(name, None) for name in ("condition", "tones", "words"))
        if document or not isinstance(tables, list) or not tables:
            raise LabError(f"{path} has no list of conditions.", "Write [[condition]] and name = … for each.")
        if isinstance(tones, str):
            named = tomllib.loads((path.parent / tones).read_text("utf-8"))
            tones, words = named.get("tones"), words or named.get("words")
        conditions = _with_controls([(_condition(table), _randoms(table)) for table in tables])
        words = None if words is None else msgspec.convert(words, Words)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise LabError(f"The conditions {path} can't be read: {problem}", "See docs/lab.md.") from problem
    names = [condition.name for condition in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"{path} has two conditions called {twice[0]!r}.", "Rows are told apart by that name.")
    if BASELINE.name not in names:
        conditions.insert(0, BASELINE)
    if unknown := [name for name in only if name not in names]:
        raise LabError(f"{path} has no condition {unknown[0]!r}.", f"It has {', '.join(names)}.")
    kept = [one.place for one in conditions if one.name in only]
    conditions = [
        one
        for one in conditions
        if not only or one.name in (*only, BASELINE.name) or (one.is_control and one.place in kept)
    ]
    return ConditionFile(conditions=tuple(conditions), tones=read_tones(tones or {}), words=words)


def wording_of(name: str, file: ConditionFile) -> Wording:
    """Return the wording of that name, with the words of the file. LabError for a condition whose tone it does not
    have."""
    chosen = wording(name)
    if file.tones or file.words is not None:
        if not isinstance(chosen, PlainWording):
            raise LabError(f"The wording {name!r} takes no tones of a file.", "Leave --wording out.")
        chosen = PlainWording(file.tones, file.words)
    for condition in file.conditions:
        if condition.tone not in chosen.tones:
            raise LabError(
                f"Condition {condition.name!r}: there is no tone {condition.tone!r}.",
                f"There are {', '.join(chosen.tones)}; a file of conditions may bring its own, [tones.NAME].",
            )
    return chosen


def check_directions(path: Path | None, conditions: Sequence[Condition]) -> None:
    """LabError for a condition whose direction or layer the file does not have."""
    if path is None:
        return
    from agentsignals_lab.directions import read  # noqa: PLC0415  (NumPy is of an extra)
    from agentsignals_lab.steering import vector  # noqa: PLC0415  (as above)

    of = read(path)
    for condition in conditions:
        for layer in condition.layers:
            if condition.direction is not None:
                vector(of, condition.direction, layer)


def _condition(table: Any) -> Condition:
    made = msgspec.convert(table, Condition)
    fields = (*Condition.__struct_fields__, _RANDOMS)
    if unknown := sorted(set(table) - set(fields)):
        raise LabError(f"A condition has no {unknown[0]!r}.", f"It has {', '.join(fields)}.")
    if not made.name.strip() or len(made.name) > _LONGEST_NAME or not made.name.isprintable():
        raise LabError(f"{made.name[:_LONGEST_NAME]!r} is no name.", f"At most {_LONGEST_NAME} printable characters.")
    return made


def _randoms(table: Any) -> int:
    number: int = msgspec.convert(table.get(_RANDOMS, 0), Annotated[int, Meta(ge=0, le=10_000)])
    return number


def _with_controls(asked: Sequence[tuple[Condition, int]]) -> list[Condition]:
    """The conditions, each followed by its random directions; those at one place and dose share them."""
    conditions: list[Condition] = []
    there: dict[tuple[object, ...], int] = {}
    for condition, randoms in asked:
        if randoms and not condition.steers:
            raise LabError(f"Condition {condition.name!r} steers along nothing.", f"Leave {_RANDOMS} out.")
        conditions.append(condition)
        for number in range(there.get(condition.place, 0) + 1, randoms + 1):
            conditions.append(
                replace(condition, name=f"{condition.name}, random:{number}", direction=f"random:{number}")
            )
        there[condition.place] = max(randoms, there.get(condition.place, 0))
    return conditions
