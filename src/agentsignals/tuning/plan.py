"""What a search is of, from a TOML file: a command, the knobs in it, the tasks, the budget.

The command is a list of words and never passes a shell. `{name}` in a word is replaced by that knob's value, inside
that word, once: no value can add a word, or name another placeholder.
"""

from __future__ import annotations

import hashlib
import random
import re
import tomllib
from collections.abc import Mapping
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from agentsignals.analysis.compare.outcome import outcome_rule
from agentsignals.errors import UsageError

Value = bool | int | float | str
Candidate = tuple[Value, ...]
"""A value for each knob, in the order of the plan's knobs."""
Sampler = Literal["thompson", "random", "optuna"]

MOST_CANDIDATES = 1_000
"""The model looks at each before every run."""
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_OURS = ("task", "run")
_HELD_OUT_SHARE = 3
"""One task in so many is held out where the plan names none."""


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the whole search may take, confirmation included."""

    runs: int
    cost_usd: float | None = None
    """As the store has it. The run under way when it is reached is not stopped."""
    wall_time_s: float | None = None
    """Of the commands, one after the other."""


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search."""

    command: list[str]
    """The words of one run. `{run}` is its folder, `{task}` the task, each other `{name}` a knob."""
    knobs: dict[str, list[Value]]
    default: dict[str, Value]
    """What is used today: what a winner must beat."""
    tasks: list[str | int]
    """What one run is of: a task's name, a slice, a seed: text for the command. Its attempts may be of many tasks."""
    held_out: list[str | int] = []
    """Tasks of the confirmation; empty: a third of `tasks`, drawn by `seed`."""
    budget: Budget
    environment: dict[str, str] = {}
    """Variables set for the command, beside those it inherits; placeholders as in words."""
    recorded_as: dict[str, str] = {}
    """Under which name the harness records a knob, where it is not the knob's."""
    outcome: str = "reward"
    """A yes or no, as `compare --outcome` takes it."""
    sampler: Sampler = "thompson"
    seed: int = 13
    timeout_s: float | None = None
    """After which a run is ended."""

    @property
    def start(self) -> Candidate:
        """The default as a candidate."""
        return tuple(self.default[name] for name in self.knobs)

    def candidates(self) -> list[Candidate]:
        """Every combination of the knobs' values."""
        return list(product(*self.knobs.values()))

    def treatment(self, candidate: Candidate) -> dict[str, Value]:
        return dict(zip(self.knobs, candidate, strict=True))

    def parted(self) -> tuple[list[str], list[str]]:
        """The tasks to search on, in the order in which every candidate goes through them, and the held-out ones."""
        tasks, held_out = [str(task) for task in self.tasks], [str(task) for task in self.held_out]
        # The racing rule needs an order that no candidate could have been chosen by.
        random.Random(f"tasks {self.seed}").shuffle(tasks)  # noqa: S311  (an order, no secret)
        if held_out:
            return tasks, held_out
        parted = -(-len(tasks) // _HELD_OUT_SHARE)
        return tasks[parted:], tasks[:parted]

    def digest(self) -> str:
        """Of all but the budget, which may be raised."""
        fields = {name: value for name, value in asdict(self).items() if name != "budget"}
        return hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).hexdigest()[:16]

    def argv(self, treatment: Mapping[str, Value], task: str, run: str) -> list[str]:
        """The words of a run."""
        values = self._values(treatment, task, run)
        return [_filled(word, values) for word in self.command]

    def variables(self, treatment: Mapping[str, Value], task: str, run: str) -> dict[str, str]:
        """The environment variables of a run that are set for it."""
        values = self._values(treatment, task, run)
        return {name: _filled(text, values) for name, text in self.environment.items()}

    def _values(self, treatment: Mapping[str, Value], task: str, run: str) -> dict[str, str]:
        return {name: text(value) for name, value in treatment.items()} | {"task": task, "run": run}


def read_plan(path: Path) -> Plan:
    """The plan of a file. UsageError where it can't be read, or is of something that can't be searched."""
    try:
        plan = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Plan)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise UsageError(f"{path} is no plan of a search: {problem}", "docs/tune.md has one.") from problem
    check(plan)
    return plan


def check(plan: Plan) -> None:
    """UsageError for a plan of which no search can be made."""
    _check_knobs(plan)
    _check_words(plan)
    tasks, held_out = plan.parted()
    if not tasks or len({*tasks, *held_out}) < len(tasks) + len(held_out):
        raise UsageError(
            f"The plan has {len(tasks)} tasks to search on, or one of them twice.",
            "Name each once; those of held_out must not be in tasks.",
        )
    if any("\0" in task for task in (*tasks, *held_out)):
        raise UsageError("A task's name has a NUL character.", "No command takes one.")
    if plan.budget.runs < 2 * len(held_out) + 2:
        raise UsageError(
            f"A budget of {plan.budget.runs} runs is too small: {2 * len(held_out)} are for the confirmation"
            f" (the winner and the default on {len(held_out)} held-out tasks).",
            "Raise budget.runs, or name fewer tasks in held_out.",
        )
    limits = {"budget.cost_usd": plan.budget.cost_usd, "budget.wall_time_s": plan.budget.wall_time_s}
    for name, limit in (limits | {"timeout_s": plan.timeout_s}).items():
        if limit is not None and not (isfinite(limit) and limit > 0):
            raise UsageError(f"{name} is {limit}.", "It is a number above 0.")
    if not outcome_rule(plan.outcome).yes_or_no:
        raise UsageError(
            f"The outcome {plan.outcome!r} is a number; a search is over yes or no.", f"{plan.outcome}>=NUMBER"
        )


def _check_knobs(plan: Plan) -> None:
    for name, values in plan.knobs.items():
        if not _NAME.fullmatch(name) or name in _OURS:
            raise UsageError(f"{name!r} can't be the name of a knob.", "Letters, digits and _; not task, not run.")
        texts = [text(value) for value in values]
        if not values or len(set(texts)) < len(texts) or len(set(values)) < len(values):
            raise UsageError(
                f"The knob {name} has no values, or one twice.", "List each once; 1, 1.0 and true are one."
            )
        if any("\0" in word for word in texts):
            raise UsageError(f"A value of the knob {name} has a NUL character.", "No command takes one.")
        if name not in plan.default or text(plan.default[name]) not in texts:
            raise UsageError(f"The default of the knob {name} is not among its values.", f"One of {', '.join(texts)}.")
    if odd := sorted(plan.default.keys() - plan.knobs.keys()) + sorted(plan.recorded_as.keys() - plan.knobs.keys()):
        raise UsageError(f"{odd[0]!r} is no knob.", f"There is {', '.join(plan.knobs)}.")
    if not 2 <= (n := prod(len(values) for values in plan.knobs.values())) <= MOST_CANDIDATES:
        raise UsageError(f"The knobs make {n:,} candidates.", f"2 to {MOST_CANDIDATES:,}: leave values out.")


def _check_words(plan: Plan) -> None:
    """That each placeholder is one, each knob has a place, and no value can be taken for an option."""
    if not plan.command or _PLACE.search(plan.command[0]):
        raise UsageError("The command's first word is a program's name, without placeholders.", "")
    templates = [*plan.command, *plan.environment.values()]
    used = {name for template in templates for name in _PLACE.findall(template)}
    known_names = {*plan.knobs, *_OURS}
    if odd := sorted(used - known_names):
        raise UsageError(
            f"The command has {{{odd[0]}}}, which is no knob.", f"There is {', '.join(sorted(known_names))}."
        )
    if missing := sorted(known_names - used):
        raise UsageError(
            f"{{{missing[0]}}} stands nowhere in the command or its environment.",
            "{run} is the folder that a run writes to, {task} what it is of; a knob without a place has no effect.",
        )
    if bad := [t for t in templates if "\0" in t] or [n for n in plan.environment if not _NAME.fullmatch(n)]:
        raise UsageError(f"{bad[0]!r} can't be given to a command.", "No NUL; variables are letters, digits and _.")
    options: dict[str, list[Any]] = {"task": [*plan.tasks, *plan.held_out], **plan.knobs}
    for word in plan.command:
        opening = _PLACE.match(word)
        values: list[Any] = options.get(opening[1], []) if opening else []
        for value in values:
            if isinstance(value, str) and value.startswith("-"):
                raise UsageError(
                    f"The value {value!r} would be read as an option of the command.",
                    f"Write --option={word} as one word, so that it is not.",
                )


def text(value: Value) -> str:
    """A value as the command gets it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filled(word: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values[match[1]], word)
