"""Conditions of an experiment: a direction at a dose, other words, or nothing at all; from a TOML file, with the tones
and words that they use. No model and no array here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from agentsignals.errors import LabError
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from agentsignals_lab.texts import Tone, Wording, Words, read_toml, read_tones

Where = Literal["all", "prompt", "feedback", "last", "generated"]
"""Where a condition acts (`residual.place`)."""

MOST_INVALID_BEYOND_BASELINE = 0.2
"""A condition whose share of invalid answers is this much above the baseline's is over-steered: what it does is break
the model, and no behaviour is read from it."""


class Condition(Struct, frozen=True, kw_only=True):
    """A treatment: nothing at all, a direction at a dose, or other words."""

    name: str
    direction: str | None = None
    """A name in a direction set, or a control (see `vector`)."""
    dose: float = 0.0
    """Fraction of the layer's median norm; negative: against the direction."""
    layers: tuple[int, ...] = ()
    where: Where = "all"
    tone: str = "neutral"
    """Tone of the words around the task: a prompt condition where it differs from the baseline's."""
    ablate: bool = False
    """The direction is taken out instead of added; the dose does not matter then."""

    @property
    def steers(self) -> bool:
        return self.direction is not None and (self.ablate or self.dose != 0)

    @property
    def is_control(self) -> bool:
        """Return whether its direction is a random one: no question of its own, and none that p is adjusted over."""
        return self.direction is not None and self.direction.startswith("random:")

    @property
    def place(self) -> tuple[object, ...]:
        """Where and how strongly it acts, along whatever direction: what random directions beside it share."""
        return self.layers, self.where, self.tone, abs(self.dose), self.ablate

    @property
    def acts_before_feedback(self) -> bool:
        """Return whether a first attempt, which no feedback precedes, is any other than without it."""
        return self.steers and self.where != "feedback"


BASELINE = Condition(name="baseline")


def beside(conditions: Sequence[Condition]) -> set[str]:
    """Names of the random directions that some other condition is held against, at the same place and dose."""
    held = {one.place for one in conditions if one.steers and not one.is_control}
    return {one.name for one in conditions if one.is_control and one.place in held}


def over_steered(invalid: float, invalid_at_baseline: float) -> bool:
    """Return whether a condition broke the model: its answers are invalid far more often than without it."""
    return invalid - invalid_at_baseline > MOST_INVALID_BEYOND_BASELINE


_LONGEST_NAME = 80


class ConditionFile(Struct, frozen=True, kw_only=True):
    """Conditions, the baseline first, and the words that they may use beside the package's."""

    conditions: tuple[Condition, ...] = (BASELINE,)
    tones: dict[str, Tone] = {}
    words: Words | None = None

    @property
    def wording(self) -> Wording:
        return Wording(self.tones, self.words)


class _Table(Condition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A [[condition]]."""

    randoms: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """As many conditions more, each along another random direction."""


class _Named(Struct, frozen=True):
    """What a file of conditions may take from another."""

    tones: dict[str, Any] | str = {}
    words: Words | None = None


class _Document(_Named, frozen=True, kw_only=True, forbid_unknown_fields=True):
    condition: Annotated[list[_Table], Meta(min_length=1)]


def read_conditions(path: Path | None, only: Sequence[str] = ()) -> ConditionFile:
    """A TOML file of [[condition]]s, with [tones.NAME] and [words] where it has such; `tones` may name a file that has
    them. With `only`, those conditions and the baseline. LabError when it can't be read, has an unknown setting, a name
    twice, a tone that is nowhere, or none of a name that is asked for."""
    if path is None:
        if only:
            raise LabError(f"There is no condition {only[0]!r}.", "Name the file that has it: --conditions FILE.")
        return ConditionFile()
    hint = f"Write [[condition]] for each; it takes {', '.join(_Table.__struct_fields__)}."
    document, _ = read_toml(path, "conditions", _Document, hint)
    tones, words = document.tones, document.words
    if isinstance(tones, str):
        named, _ = read_toml(path.parent / tones, "tones", _Named, "It has [tones.NAME], and perhaps [words].")
        tones, words = named.tones, words or named.words
    conditions = _with_controls(document.condition)
    names = [condition.name for condition in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"{path} has two conditions called {twice[0]!r}.", "Rename one of them.")
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
    file = ConditionFile(conditions=tuple(conditions), tones=read_tones(tones), words=words)
    there = file.wording.by_tone
    for condition in conditions:
        if condition.tone not in there:
            raise LabError(
                f"Condition {condition.name!r}: there is no tone {condition.tone!r}.",
                f"Tones: {', '.join(there)}. The file of conditions may define others by [tones.NAME].",
            )
    return file


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


def _with_controls(tables: Sequence[_Table]) -> list[Condition]:
    """The conditions, each followed by its random directions; those at one place and dose share them."""
    conditions: list[Condition] = []
    there: dict[tuple[object, ...], int] = {}
    for table in tables:
        condition = Condition(**{name: of for name, of in asdict(table).items() if name != "randoms"})
        if not condition.name.strip() or len(condition.name) > _LONGEST_NAME or not condition.name.isprintable():
            raise LabError(
                f"A condition can't have the name {condition.name[:_LONGEST_NAME]!r}.",
                f"Give it a name of at most {_LONGEST_NAME} printable characters.",
            )
        if table.randoms and not condition.steers:
            raise LabError(f"Condition {condition.name!r} steers along nothing.", "Remove its randoms.")
        conditions.append(condition)
        for number in range(there.get(condition.place, 0) + 1, table.randoms + 1):
            name = f"random:{number}"
            conditions.append(replace(condition, name=f"{condition.name}, {name}", direction=name))
        there[condition.place] = max(table.randoms, there.get(condition.place, 0))
    return conditions
