"""The plan of a search (a TOML file), its history of runs, and their results from the store.

The command is a list of words and never passes through a shell. `{name}` in a word is replaced once by that knob's
value, within that word: no value can add a word or name another placeholder. The history is an append-only file in the
search's folder, from which an interrupted search continues. Results come from the store only, never from the process.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from math import isclose, isfinite, prod
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from agentsignals import private_files
from agentsignals.errors import StoreError, UsageError
from agentsignals.questions.compare.attempts import Attempt, attempts_of, evaluated, outcome_rule, queries
from agentsignals.store import Store
from agentsignals.store.query import rows

Value = bool | int | float | str
Candidate = tuple[Value, ...]
"""A value for each knob, in the plan's order."""
Sampler = Literal["thompson", "optuna"]

MOST_CANDIDATES = 1_000
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_OURS = ("task", "run")
_HELD_OUT_SHARE = 3
"""Every n-th task is held out if the plan names none."""


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the whole search, including the confirmation."""

    runs: int
    cost_usd: float | None = None
    """According to the store. The current run is not stopped."""
    wall_time_s: float | None = None
    """Total time of the commands."""


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: list[str]
    """Words of one run. `{run}` is its folder, `{task}` the task, each other `{name}` a knob."""
    knobs: dict[str, list[Value]]
    default: dict[str, Value]
    """Values in use today, which a winner must beat."""
    tasks: list[str | int]
    """Tasks to run: a task's name, a slice, a seed, as text for the command. A run may attempt several tasks."""
    held_out: list[str | int] = []
    """Tasks of the confirmation; empty: a third of `tasks`, drawn by `seed`."""
    budget: Budget
    environment: dict[str, str] = {}
    recorded_as: dict[str, str] = {}
    """Name under which the harness records a knob, if it differs."""
    outcome: str = "reward"
    """A yes or no, as for `compare --outcome`."""
    sampler: Sampler = "thompson"
    seed: int = 13
    timeout_s: float | None = None

    @property
    def start(self) -> Candidate:
        return tuple(self.default[name] for name in self.knobs)

    def candidates(self) -> list[Candidate]:
        return list(product(*self.knobs.values()))

    def treatment(self, candidate: Candidate) -> dict[str, Value]:
        return dict(zip(self.knobs, candidate, strict=True))

    def parted(self) -> tuple[list[str], list[str]]:
        """Return the tasks to search on, in a fixed random order, and the held-out ones."""
        tasks, held_out = [str(task) for task in self.tasks], [str(task) for task in self.held_out]
        # The racing rule needs an order that no candidate could have been chosen by.
        random.Random(f"tasks {self.seed}").shuffle(tasks)  # noqa: S311  (an order, no secret)
        if held_out:
            return tasks, held_out
        parted = -(-len(tasks) // _HELD_OUT_SHARE)
        return tasks[parted:], tasks[:parted]

    def digest(self) -> str:
        """Hash of everything but the budget, which may be raised."""
        fields = {name: value for name, value in asdict(self).items() if name != "budget"}
        return hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).hexdigest()[:16]

    def argv(self, treatment: Mapping[str, Value], task: str, run: str) -> list[str]:
        values = self._values(treatment, task, run)
        return [_filled(word, values) for word in self.command]

    def variables(self, treatment: Mapping[str, Value], task: str, run: str) -> dict[str, str]:
        values = self._values(treatment, task, run)
        return {name: _filled(text, values) for name, text in self.environment.items()}

    def _values(self, treatment: Mapping[str, Value], task: str, run: str) -> dict[str, str]:
        return {name: value_text(value) for name, value in treatment.items()} | {"task": task, "run": run}


def read_plan(path: Path) -> Plan:
    """Read a plan file. UsageError if it cannot be read or searched."""
    try:
        plan = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Plan)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise UsageError(f"{path} is not a tuning plan: {problem}", "See docs/tune.md for an example.") from problem
    check(plan)
    return plan


def check(plan: Plan) -> None:
    """Raise UsageError if the plan cannot be searched."""
    for name, values in plan.knobs.items():
        if not _NAME.fullmatch(name) or name in _OURS:
            raise UsageError(
                f"{name!r} can't be the name of a setting in [knobs].",
                "Use letters, digits and _, but not task or run.",
            )
        texts = [value_text(value) for value in values]
        if not values or len(set(texts)) < len(texts) or len(set(values)) < len(values):
            raise UsageError(
                f"The setting {name} has no values, or one twice.", "List each value once; 1, 1.0 and true are equal."
            )
        if any("\0" in word for word in texts):
            raise UsageError(f"A value of the setting {name} contains a NUL character.", "Remove it.")
        if name not in plan.default or value_text(plan.default[name]) not in texts:
            raise UsageError(
                f"The default of the setting {name} is not among its values.", f"Use one of {', '.join(texts)}."
            )
    if odd := sorted(plan.default.keys() - plan.knobs.keys()) + sorted(plan.recorded_as.keys() - plan.knobs.keys()):
        raise UsageError(f"{odd[0]!r} is not in the plan's [knobs].", f"[knobs] has {', '.join(plan.knobs)}.")
    if not 2 <= (n := prod(len(values) for values in plan.knobs.values())) <= MOST_CANDIDATES:
        raise UsageError(f"The plan's [knobs] have {n:,} combinations.", f"Allowed are 2 to {MOST_CANDIDATES:,}.")
    # Each placeholder must exist, each knob must be used, and no value may look like an option.
    if not plan.command or _PLACE.search(plan.command[0]):
        raise UsageError("The plan's command does not begin with a program.", "Write the program's name first.")
    templates = [*plan.command, *plan.environment.values()]
    used = {name for template in templates for name in _PLACE.findall(template)}
    known_names = {*plan.knobs, *_OURS}
    if odd := sorted(used - known_names):
        raise UsageError(
            f"{{{odd[0]}}} in the plan's command is not in [knobs].", f"Use one of: {', '.join(sorted(known_names))}."
        )
    if missing := sorted(known_names - used):
        raise UsageError(
            f"The plan uses {{{missing[0]}}} neither in its command nor in its environment.",
            "Add it, or it has no effect. {run} is the run's output folder, {task} its task.",
        )
    if bad := [t for t in templates if "\0" in t] or [n for n in plan.environment if not _NAME.fullmatch(n)]:
        raise UsageError(
            f"The plan's command or environment has {bad[0]!r}, which no command accepts.",
            "Remove NUL characters. Names of environment variables have only letters, digits and _.",
        )
    options: dict[str, list[Any]] = {"task": [*plan.tasks, *plan.held_out], **plan.knobs}
    for word in plan.command:
        opening = _PLACE.match(word)
        for value in options.get(opening[1], []) if opening else ():
            if isinstance(value, str) and value.startswith("-"):
                raise UsageError(
                    f"The command would read the value {value!r} as an option, because it starts with -.",
                    f"Join the option and its value in the plan's command: --option={word}.",
                )
    tasks, held_out = plan.parted()
    if not tasks or len({*tasks, *held_out}) < len(tasks) + len(held_out):
        raise UsageError(
            f"The plan has {len(tasks)} tasks to search on, which is too few, or names a task twice.",
            "Name each task once, in tasks or in held_out.",
        )
    if any("\0" in task for task in (*tasks, *held_out)):
        raise UsageError("The name of a task contains a NUL character.", "Remove it: no command accepts one.")
    if plan.budget.runs < 2 * len(held_out) + 2:
        raise UsageError(
            f"A budget of {plan.budget.runs} runs is too small: {2 * len(held_out)} are kept to confirm the result"
            f" (best and default settings on {len(held_out)} held-out tasks).",
            "Raise budget.runs, or name fewer tasks in held_out.",
        )
    limits = {"budget.cost_usd": plan.budget.cost_usd, "budget.wall_time_s": plan.budget.wall_time_s}
    for name, limit in (limits | {"timeout_s": plan.timeout_s}).items():
        if limit is not None and not (isfinite(limit) and limit > 0):
            raise UsageError(f"{name} in the plan is {limit}.", "Use a number above 0.")
    if not outcome_rule(plan.outcome).yes_or_no:
        raise UsageError(f"The plan's outcome {plan.outcome!r} is not yes or no.", f"Write {plan.outcome}>=NUMBER.")


def value_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filled(word: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values[match[1]], word)


# -- history -----------------------------------------------------------------------------------------------------------


NAME = "search.jsonl"
Phase = Literal["search", "held_out"]
State = Literal["running", "ended", "interrupted"]


class Run(Struct, kw_only=True):
    number: int
    phase: Phase
    treatment: dict[str, Value]
    task: str
    state: State = "running"
    exit_code: int | None = None
    wall_time_s: float = 0.0


class _Begun(Struct, tag="begun"):
    plan: str


class _Asked(Struct, tag="asked"):
    run: Run


class _Ended(Struct, tag="ended", kw_only=True):
    number: int
    state: State
    exit_code: int | None
    wall_time_s: float


_Line = _Begun | _Asked | _Ended


class History:
    """The runs in a search's folder. UsageError if it belongs to another plan."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.path = folder / NAME
        self.runs: list[Run] = []
        decoder = msgspec.json.Decoder(_Line)
        # An incomplete last line is ignored: a crash tore it, or it is being written.
        *lines, _ = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        for number, encoded in enumerate(lines, 1):
            try:
                line = decoder.decode(encoded)
            except msgspec.DecodeError as problem:
                raise StoreError(
                    f"Line {number} of {self.path} does not record a run of this search: {problem}",
                    "Use another folder with --out.",
                ) from problem
            if isinstance(line, _Begun) and line.plan != plan.digest():
                raise UsageError(
                    f"{folder} contains the runs of another plan.",
                    "Name another folder with --out; only the budget may change during a search.",
                )
            if isinstance(line, _Asked):
                self.runs.append(line.run)
            elif isinstance(line, _Ended) and 0 < line.number <= len(self.runs):
                run = self.runs[line.number - 1]
                run.state, run.exit_code, run.wall_time_s = line.state, line.exit_code, line.wall_time_s
        self._begun = plan.digest()

    def asked(self, run: Run) -> None:
        if not self.path.exists():
            self._write(_Begun(self._begun))
        self._write(_Asked(run))
        self.runs.append(run)

    def ended(self, run: Run) -> None:
        line = _Ended(number=run.number, state=run.state, exit_code=run.exit_code, wall_time_s=run.wall_time_s)
        self._write(line)

    def _write(self, line: _Line) -> None:
        try:
            private_files.make_folder(self.path.parent)
            with private_files.open_file(self.path, "a+b") as file:
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)  # what a crash has torn
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise StoreError(f"{self.path} can't be written: {problem.strerror}.", "Use another --out.") from problem


# -- results -----------------------------------------------------------------------------------------------------------


_PLACES = (
    "SELECT session_id, artifacts.path FROM attempts JOIN sessions USING (session_id)"
    " JOIN artifacts USING (artifact_id)"
)


class Result(Struct, kw_only=True):
    outcomes: dict[str, list[float]]
    """Outcomes of trials by task, 1 or 0. A trial is solved if one of its attempts is."""
    without: dict[str, int]
    attempts: int = 0
    cost_usd: float = 0.0
    """Cost of all attempts of the run."""
    unpriced: int = 0


def results(store: Store, plan: Plan, runs: Sequence[Run], folder: Path) -> dict[int, Result]:
    """Return the results of runs by number. `folder` holds a folder for each run, named by its number."""
    rule = outcome_rule(plan.outcome)
    tables = {}
    for name, sql in (queries(rule) | {"places": _PLACES}).items():
        names, values = rows(store, sql)
        tables[name] = [dict(zip(names, row, strict=True)) for row in values]
    paths = {row["session_id"]: row["path"] for row in tables["places"]}
    numbers: dict[str, int | None] = {}
    for session, path in paths.items():  # the run in whose folder the session's file lies
        below = path.removeprefix(f"{folder}/")
        number = below.partition("/")[0]
        numbers[session] = int(number) if below != path and number.isdecimal() else None
    by_run: dict[int | None, list[Attempt]] = {}
    for attempt in evaluated([a for a in attempts_of(rule, tables) if numbers.get(a.session_id) is not None]):
        by_run.setdefault(numbers[attempt.session_id], []).append(attempt)
    return {run.number: _result(plan, run, by_run.get(run.number, [])) for run in runs}


def _result(plan: Plan, run: Run, attempts: Sequence[Attempt]) -> Result:
    """Sum up a finished run: outcomes by task, its cost, and the attempts left out by reason."""
    without: Counter[str] = Counter()
    trials: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if odd := _unlike(plan, run.treatment, attempt.treatment):
            without[odd] += 1
        else:
            trials.setdefault(attempt.trial, []).append(attempt)
    outcomes: dict[str, list[float]] = {}
    for trial in trials.values():
        last = sorted(trial, key=lambda attempt: attempt.index)[-1]
        solved = any(attempt.outcome == 1 for attempt in trial)
        if not solved and last.outcome is None:
            without[last.why] += 1
        else:
            task = run.task if trial[0].task is None else trial[0].task_key
            outcomes.setdefault(task, []).append(float(solved))
    if not attempts:
        without["no attempt was read from its folder"] = 1
    costs = [attempt.measures["cost_usd"] for attempt in attempts]
    return Result(
        outcomes=outcomes,
        without=dict(without),
        attempts=len(attempts),
        cost_usd=sum(cost for cost in costs if isinstance(cost, float)),
        unpriced=sum(isinstance(a.measures["cost_usd"], str) or "cost_usd" in a.at_least for a in attempts),
    )


def _unlike(plan: Plan, treatment: Mapping[str, Value], recorded: Mapping[str, str]) -> str:
    """Return how the recorded treatment differs from the planned one, or an empty string."""
    for knob, value in treatment.items():
        name = plan.recorded_as.get(knob, knob)
        if name not in recorded:
            return f"{name} is not recorded"
        if isinstance(value, str | bool):
            same = recorded[name] == value_text(value)
        else:
            try:
                same = isclose(float(recorded[name]), value, rel_tol=1e-9)
            except ValueError:
                same = False
        if not same:
            return f"{name} is another than asked for"
    return ""
