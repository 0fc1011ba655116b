"""Units (formats, sources, signals, studies, findings, exports, labellers, engines) found by name, without a list.

A module in the folder of its kind that declares the kind's word (`FORMAT = …`) is a unit of the module's name. One with
a name before the word (`TURNS_STUDY = …`) is a unit of that name, and a file may declare several. Another package adds
one by an entry point of the group `agentsignals.formats`, `agentsignals.signals` … with the unit's name,
which leads to what the module would declare (https://packaging.python.org/specifications/entry-points/). Finding units
loads none of them.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from agentsignals.errors import NameCollision, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Unit = TypeVar("Unit")
_log = logging.getLogger(__name__)


class UnitPlace(NamedTuple):
    name: str
    target: str
    """`module:attribute`, or a module."""
    distribution: str = ""
    """Package, with version, that adds it; empty for a unit of this one."""
    declaration: str = ""
    """Source of `FORMAT = Format(…)`: its literals are known before the module is loaded. Empty for other packages."""

    def __str__(self) -> str:
        return f"{self.target} of {self.distribution}" if self.distribution else self.target

    def load(self) -> Any:
        """Load the unit. Raises whatever its module does."""
        module, _, attribute = self.target.partition(":")
        return attrgetter(attribute)(import_module(module)) if attribute else import_module(module)


class Registry(Generic[Unit]):
    """Units of one kind by name: those of `package`, then those of other packages, each in order of name.

    `attribute`: name that a module declares; empty where importing the module is enough. `is_unit`: checks what was
    declared. `modules`: files of the package's folder that may hold units.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        attribute: str,
        is_unit: Callable[[Any], bool],
        modules: str = r"\w+\.py|\w+/__init__\.py",
    ) -> None:
        self.kind = kind
        self.group = f"agentsignals.{'studies' if kind == 'study' else f'{kind}s'}"
        self.broken: dict[str, str] = {}
        """Units of other packages that can't be used, by name: why."""
        self._own: dict[str, Unit] = {}
        """Units of this package that were asked for: a session asks for its format seven times."""
        self._package = package
        self._attribute = attribute
        self._word = attribute.encode()
        self._declarations = re.compile(rf"^((?:[A-Z][A-Z0-9_]*_)?){attribute} *[:=]", re.M)
        self._is_unit = is_unit
        self._modules = re.compile(modules)

    @cached_property
    def inside(self) -> dict[str, UnitPlace]:
        return {place.name: place for place in sorted(self._inside())}

    def _inside(self) -> Iterator[UnitPlace]:
        folder = str(self._folder)
        with os.scandir(folder) as entries:
            inner = [f"{entry.name}/" for entry in entries if entry.is_dir()]
        for above in ("", *inner):
            for name in os.listdir(f"{folder}/{above}"):  # noqa: PTH208  (a path object a file is a tenth of a start)
                yield from self._declared(above + name)

    @cached_property
    def _folder(self) -> Path:
        return Path(str(import_module(self._package).__file__)).parent  # `importlib.resources` takes 10 ms to load

    def _declared(self, path: str) -> Iterator[UnitPlace]:
        """Yield the units of a file of the package: `STUDY = …` has the module's name, `TURNS_STUDY = …` is `turns`."""
        if not self._modules.fullmatch(path):
            return
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        target = f"{self._package}.{module}"
        if not self._attribute:
            yield UnitPlace(module, target)
            return
        with open(f"{self._folder}/{path}", "rb") as file:  # noqa: PTH123  (as in `_inside`)
            source = file.read()
        text = source.decode() if self._word in source else ""
        for found in self._declarations.finditer(text):
            end = _ENDS.search(text, found.end())
            declaration = text[found.start() : end.start() if end is not None else len(text)]
            yield UnitPlace(found[1][:-1].lower() or module, f"{target}:{found[1]}{self._attribute}", "", declaration)

    def _place(self, key: str) -> UnitPlace | None:
        """Find a unit without listing the others, where its module bears its name and no package adds any."""
        if "places" not in vars(self) and key.isidentifier() and not may_have_plugins(tuple(sys.path)):
            for path in (f"{key}.py", f"{key}/__init__.py"):
                if (self._folder / path).is_file():
                    for unit in self._declared(path):
                        if unit.name == key:
                            return unit
        return self.places.get(key)

    @cached_property
    def places(self) -> dict[str, UnitPlace]:
        """Every unit. NameCollision when two have one name."""
        places = dict(self.inside)
        if not may_have_plugins(tuple(sys.path)):
            return places
        from importlib.metadata import entry_points  # noqa: PLC0415  (50 ms, which most runs do without)

        for entry in sorted(entry_points(group=self.group), key=lambda entry: entry.name):
            place = UnitPlace(entry.name, entry.value, _distribution(entry))
            taken = places.setdefault(_key(entry.name), place)
            if taken is not place:
                raise NameCollision(
                    f"Two units of the kind {self.kind} are named {entry.name!r}: {taken} and {place}.",
                    "Remove or rename one of the packages.",
                )
        return places

    def get(self, name: str) -> Unit:
        """Return the unit of that name. UsageError lists the names there are, or says why the unit can't be used."""
        if (own := self._own.get(name)) is not None:
            return own
        place = self._place(_key(name))
        unit = None if place is None else self.load(place)
        if unit is not None and place is not None:
            if not place.distribution:
                self._own[name] = unit
            return unit
        if place is not None:
            raise UsageError(
                f"The {self.kind} {name!r} can't be used: {self.broken[place.name]}.",
                "Fix or remove the package that it comes from.",
            )
        raise UsageError(*no_such(self.kind, name, self.places))

    def all(self) -> dict[str, Unit]:
        """Every unit that can be used, by name."""
        loaded = {name: self.load(place) for name, place in self.places.items()}
        return {name: unit for name, unit in loaded.items() if unit is not None}

    def load(self, place: UnitPlace) -> Unit | None:
        """Load a unit. None, logged once, when another package's can't be used; errors of this package are raised."""
        if not place.distribution:
            unit: Unit = place.load()
            return unit
        if place.name in self.broken:
            return None
        try:
            unit = place.load()
            why = self._unfit(place, unit)
        except NameCollision:
            raise
        except (Exception, SystemExit) as problem:  # noqa: BLE001  (whatever it is, the rest of the program goes on)
            why = f"{type(problem).__name__}: {problem}"
        if why:
            self.leave_out(place, why)
            return None
        return unit

    def _unfit(self, place: UnitPlace, unit: Any) -> str:
        """Reason why what was declared is no unit of that place; empty when it is."""
        if not self._is_unit(unit):
            return f"it is no {self.kind} but {type(unit).__name__}"
        name = getattr(unit, "name", place.name)
        return "" if _key(name) == _key(place.name) else f"it calls itself {name!r}, its entry point {place.name!r}"

    def leave_out(self, place: UnitPlace, why: str) -> None:
        """Record that another package's unit can't be used."""
        if place.name not in self.broken:
            self.broken[place.name] = f"{place}: {why}"
            _log.warning("The %s %r is left out: %s", self.kind, place.name, self.broken[place.name])


@cache
def may_have_plugins(folders: tuple[str, ...]) -> bool:
    """Return whether any installed package may register a plug-in with us (an entry point).

    Reads only `entry_points.txt`: `importlib.metadata` takes 50 ms to load.
    """
    for folder in folders:
        try:
            with os.scandir(folder or ".") as entries:
                installed = [e.path for e in entries if e.name.endswith((".dist-info", ".egg-info", ".egg"))]
        except FileNotFoundError:
            continue
        except OSError:  # an archive, or a folder that can't be listed: Python's own way says what is in it
            return True
        for package in installed:
            inner = "EGG-INFO/entry_points.txt" if package.endswith(".egg") else "entry_points.txt"
            try:
                with open(f"{package}/{inner}", "rb") as listed:  # noqa: PTH123  (there are hundreds)
                    if _ADDS(listed.read()):
                        return True
            except OSError:  # it has none
                continue
    return False


_ENDS = re.compile(r"\n(?=[^\s)])")
"""Line on which the next statement of a module begins."""
_ADDS = re.compile(rb"^\s*\[agentsignals\.", re.M).search


def _distribution(entry: EntryPoint) -> str:
    try:
        return f"{entry.dist.name} {entry.dist.version}"  # type: ignore[union-attr]  # None is an AttributeError, too
    except (AttributeError, KeyError, TypeError):  # its metadata are damaged
        return "another package"


def _key(name: str) -> str:
    """Modules have no hyphens, and some units' names do."""
    return name.replace("-", "_")


def no_such(kind: str, name: str, names: Iterable[str]) -> tuple[str, str]:
    """Return message and hint of an error about an unknown name of a kind: the nearest of the names, then all."""
    known = sorted(names)
    near = did_you_mean(name, known)
    return f"There is no {kind} {name!r}.", f"{near} There are: {', '.join(known)}.".lstrip()


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Ask whether the nearest of the names was meant; empty where none is near. Of a dotted name a part will do."""
    from difflib import get_close_matches  # noqa: PLC0415  (once, where a name is wrong)

    spelled: dict[str, str] = {}
    for one in names:
        spelled.setdefault(_key(one.lower()), one)
    for one in names:
        for part in re.split(r"[.:]", _key(one.lower())):
            spelled.setdefault(part, one)
    near = get_close_matches(_key(name.lower()), spelled, 1) or get_close_matches(_key(name.lower()), spelled, 1, 0.55)
    return f"Did you mean {spelled[near[0]]}?" if near else ""
