"""Attempts as they are compared: outcome, treatment and task of each, grouped by candidate.

Any signal of an attempt can be the outcome, as yes or no or as a number. A file of the user's can add treatments that a
run does not record: patterns of folders; names of folders suggest some.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import StoreError, UsageError
from agentsignals.model.prices import maker, same_models
from agentsignals.model.registry import did_you_mean
from agentsignals.questions.question import Inputs, Kind, Question, Row, cut
from agentsignals.questions.sql import read_queries
from agentsignals.signals.catalog import by_path
from agentsignals.store import Store
from agentsignals.views.failure import JUDGED, NO_ARTIFACT, OUTCOMES

_LABEL = "verification.patch_outcome_label"
REWARD, OUTCOME = "verification.reward", "verification.outcome"
_SHORT = {"reward": REWARD, "patch_outcome_label": _LABEL}
UNKNOWN = tuple(name for name in OUTCOMES if name not in JUDGED)
"""Outcomes that mean the result is unknown."""
_TESTED = re.compile(r"([A-Za-z0-9_.\[\]]{1,120}) ?(>=|<=|=)(.{1,200})", re.DOTALL)
_TESTS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, "=": operator.eq}
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_NUMERIC = ("int", "float")
_MOST = 1e100


class OutcomeRule(Struct, frozen=True, kw_only=True):
    """Maps a signal's value to the outcome of an attempt."""

    name: str
    """Name in the user's spelling."""
    signal: str
    """The signal's path."""
    yes_or_no: bool
    """True if outcomes are 1 and 0; else numbers, which are averaged."""
    test: str = ""
    """`=`, `>=`, `<=`; empty for the value itself."""
    value: str = ""
    unknown: tuple[str, ...] = ()
    """Labels that mean undecided."""

    @property
    def more_is_better(self) -> bool:
        """True if a higher outcome is certainly better: a verifier accepts it."""
        accepted = self.test in ("", ">=") or self.value in ("1", "solved", "correct", "correct_patch")
        return self.signal in (REWARD, OUTCOME, _LABEL) and accepted

    def of(self, value: Any) -> float | str:
        """Return 1 or 0, or the number; a reason if the value is neither."""
        if isinstance(value, str):
            if value in self.unknown:
                return value
            if self.test != "=":
                return "a label, not a number"
            return float(value in (self.value, f"{self.value}_patch"))
        if not is_number(value):
            return "not a number, label, or yes or no"
        if not self.test:
            return float(value)
        wanted = _WORDS.get(self.value.lower()) if isinstance(value, bool) else _number(self.value)
        return "of another type than requested" if wanted is None else float(_TESTS[self.test](value, wanted))

    def of_attempt(self, value: Any, why: str, rung: str, reason: str) -> float | str:
        """Return the outcome of an attempt, or the reason why it is unknown.

        The attempt's overall outcome (`rung`, `reason`; empty if unmeasured) takes precedence over the value, which may
        be missing (`why`).
        """
        if self.signal in (REWARD, OUTCOME) and rung in UNKNOWN:
            return f"{rung.replace('_', ' ')}: {reason}"
        if value is not None:
            return self.of(value)
        if self.signal == REWARD and rung:
            return self.of(float(rung == "solved"))
        if (
            self.signal == _LABEL
            and rung == "failed"
            and (reason == NO_ARTIFACT or "correct_patch".startswith(self.value))
        ):
            return 0.0
        return why


def outcome_rule(name: str) -> OutcomeRule:
    """Parse an outcome: `reward` (solved at 1), `resolved` (by the reward, else by tests), or a signal of attempts.

    A signal is written SIGNAL (yes or no, or a number), SIGNAL=VALUE, SIGNAL>=NUMBER or SIGNAL<=NUMBER. For `reward`
    and `resolved`, unjudged attempts and infrastructure failures are unknown. UsageError or CatalogError if it is
    invalid.
    """
    if name == "reward":
        return OutcomeRule(name=name, signal=_SHORT[name], yes_or_no=True, test="=", value="1")
    if name == "resolved":
        return OutcomeRule(name=name, signal=OUTCOME, yes_or_no=True, test="=", value="solved", unknown=UNKNOWN)
    tested = _TESTED.fullmatch(name.strip())
    path, test, value = (tested[1], tested[2], tested[3].strip()) if tested else (name.strip(), "", "")
    signal = by_path(_SHORT.get(path, path))
    if signal.context == "product" or signal.level not in ("attempt", "session"):
        raise UsageError(
            f"{signal.path} is not a signal of eval attempts.",
            "Run `agentsignals inventory --context eval` to list them.",
        )
    if test in (">=", "<=") and (_number(value) is None or signal.type not in _NUMERIC):
        raise UsageError(f"{test} is for numbers; {signal.path} is a {signal.type}.", f"Write {signal.path}=VALUE.")
    if not test and signal.type not in (*_NUMERIC, "bool"):
        raise UsageError(
            f"{signal.path} is a {signal.type}, not a number and not yes or no.", f"Write {signal.path}=VALUE."
        )
    return OutcomeRule(
        name=name.strip(), signal=signal.path, yes_or_no=bool(test) or signal.type == "bool", test=test, value=value
    )


def decoded(value: str | None) -> Any:
    """Decode a stored value. None if it is not valid JSON, or nested too deeply."""
    try:
        return msgspec.json.decode(value) if value is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None


def is_number(value: Any) -> bool:
    """True for a number or boolean that can be averaged; sums of larger ones overflow."""
    return isinstance(value, bool | int | float) and -_MOST < value < _MOST


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# -- attempts ----------------------------------------------------------------------------------------------------------


MEASURES: dict[str, tuple[str, Kind]] = {
    "cost_usd": ("tokens.cost_usd", "usd"),
    "input_tokens": ("tokens.input_tokens_total", "tokens"),
    "output_tokens": ("tokens.output_tokens_total", "tokens"),
    "turns": ("behavior.turn_count", "count"),
    "tool_calls": ("behavior.tool_call_count", "count"),
    "wall_time_s": ("infra.wall_time_s", "seconds"),
}
"""Resources that an attempt used, by name: signal and kind."""
COLUMNS = (
    *("model_id", "agent_type", "attempt1_tool_cap", "retry_tool_cap", "effective_tool_cap", "timeout_s"),
    *("concurrency", "dataset", "run_id", "format", "agent_version"),
)
"""Columns of attempts and sessions that can distinguish candidates; any knob can too."""
TIME = "wall_time_s"
RECORDED_MODEL = "recorded_model"
"""The model in the run's own spelling, a column where several spellings of one model are there."""
_LONGEST = 160
_NOT_EVALUATED = "no attempt of this candidate was evaluated"


class Attempt(Struct, frozen=True, gc=False, kw_only=True):
    session_id: str
    trial: str
    index: int
    task: str | None
    dataset: str | None
    task_key: str
    """The task, with its data set unless data sets are compared; of an attempt without a task the attempt itself."""
    treatment: dict[str, str]
    """Columns and knobs by name, as text. Unrecorded ones are missing."""
    outcome: float | None
    why: str
    """Reason why there is no outcome."""
    rung: str = ""
    """The overall outcome (`verification.outcome`); empty if it was not measured."""
    reason: str = ""
    """Cause of the failure or breakage."""
    inferred: bool = False
    """True if no verifier judged it."""
    recorded_reward: float | None = None
    """The reward that the harness recorded, also where nobody judged."""
    measures: dict[str, float | str]
    """By the names of MEASURES: the number, or the reason why it is missing."""
    at_least: frozenset[str] = frozenset()
    """Measures that are lower bounds."""
    clock: str = ""
    """Source of the wall time: the harness, or first to last time stamp. The two are not comparable."""
    repository: str | None = None
    """Repository of the task, where its id or the session names one."""


ALL = "true"
"""The condition that selects every attempt."""


def chosen(where: str = ALL) -> str:
    """Return the query for the sessions of attempts that meet the user's condition."""
    return read_queries(__file__, columns="", signals="")["attempts"]["chosen"].replace("{where}", where)


def queries(rule: OutcomeRule, where: str = ALL) -> dict[str, str]:
    """Return the queries for `attempts_of`. `where`: the user's condition."""
    wanted = dict.fromkeys((rule.signal, OUTCOME, *(path for path, _ in MEASURES.values())))
    columns = (c for c in COLUMNS if c not in ("model_id", "agent_type", "format", "agent_version"))
    made = read_queries(
        __file__,
        columns=", ".join(f"a.{c}" for c in columns),
        signals=", ".join(f"'{path}'" for path in wanted),
    )["attempts"]
    return {name: made[name].replace("{where}", where) for name in ("attempts", "values")}


def _lent_datasets(rows: Sequence[Row]) -> dict[str, str]:
    """Return, by task, the data set to count the tasks of attempts under that record none.

    It is the one data set of the store that has at least half of these tasks by name; tasks that it lacks get none.
    """
    unnamed = {row["task_id"] for row in rows if row["task_id"] is not None and not row["dataset"]}
    tasks: dict[str, set[str]] = {}
    for row in rows:
        if row["dataset"] and row["task_id"] in unnamed:
            tasks.setdefault(row["dataset"], set()).add(row["task_id"])
    if len(tasks) != 1:
        return {}
    [(dataset, shared)] = tasks.items()
    return dict.fromkeys(shared, dataset) if 2 * len(shared) >= len(unnamed) else {}


def attempts_of(rule: OutcomeRule, rows: Mapping[str, list[Row]]) -> list[Attempt]:
    """Return the attempts in these rows, ordered by session id."""
    by_session: dict[str, dict[str, Row]] = {}
    for row in rows["values"]:
        by_session.setdefault(row["session_id"], {})[row["signal"]] = row
    attempts: list[Attempt] = []
    models = same_models({row["model_id"] for row in rows["attempts"] if row["model_id"]})
    lent = _lent_datasets(rows["attempts"])
    is_respelled = any(name != shortest for name, shortest in models.items())
    for row in rows["attempts"]:
        values = by_session.get(row["session_id"], {})
        rung, _ = _value(values.get(OUTCOME))
        rung, of_rung = (rung, _details(values.get(OUTCOME))) if isinstance(rung, str) else ("", {})
        reason = str(of_rung.get("reason", ""))[:_LONGEST]
        outcome = rule.of_attempt(*_value(values.get(rule.signal)), rung, reason)
        measures: dict[str, float | str] = {}
        at_least = set()
        for name, (path, _) in MEASURES.items():
            value, why = _value(values.get(path))
            measures[name] = float(value) if is_number(value) else why
            details = _details(values.get(path))
            if details.get("at_least") or details.get("unpriced"):
                at_least.add(name)
        treatment = {name: _text(row[name]) for name in COLUMNS if row[name] not in (None, "")}
        if is_respelled and (name := row["model_id"]):
            treatment |= {"model_id": models[name], RECORDED_MODEL: name}
        knobs = decoded(row["knobs"])
        for name, value in (*(knobs.items() if isinstance(knobs, dict) else ()), *row.get("mapped", {}).items()):
            treatment.setdefault(name, _text(value))
        task, repository = row["task_id"], None
        if task is not None and (named := _INSTANCE.fullmatch(task) or _PULL_REQUEST.fullmatch(task)):
            repository = f"{named[1]}/{named[2]}"
        elif task is not None and row["repo"] and _OWNER_NAME.fullmatch(row["repo"]):
            repository = row["repo"]
        attempts.append(
            Attempt(
                session_id=row["session_id"],
                trial=row["trial_id"] or row["session_id"],
                index=row["attempt_index"] or 0,
                task=task,
                dataset=row["dataset"],
                task_key=f"session\n{row['session_id']}"
                if task is None
                else f"{row['dataset'] or lent.get(task, '')}\n{task}",
                treatment=treatment,
                outcome=outcome if isinstance(outcome, float) else None,
                why=outcome if isinstance(outcome, str) else "",
                measures=measures,
                at_least=frozenset(at_least),
                clock=str(_details(values.get(MEASURES[TIME][0])).get("method", ""))[:_LONGEST],
                rung=rung,
                reason=reason,
                inferred=of_rung.get("inferred") is True,
                recorded_reward=recorded if is_number(recorded := of_rung.get("recorded_reward")) else None,
                repository=repository,
            )
        )
    _lend_settings(attempts, [row.get("root") or "" for row in rows["attempts"]])
    return attempts


def _lend_settings(attempts: Sequence[Attempt], roots: Sequence[str]) -> None:
    """Give attempts without an agent, such as an empty prediction that left no trajectory, the settings in which the
    attempts of their run agree: those of the same model whose folders lie beside theirs or above it."""
    agreed: dict[tuple[str, str | None], dict[str, str]] = {}
    for attempt, place in zip(attempts, roots, strict=True):
        if "agent_type" in attempt.treatment and place:
            run, own = (posixpath.dirname(place), attempt.treatment.get("model_id")), attempt.treatment
            held = agreed.get(run, own)
            agreed[run] = {name: value for name, value in held.items() if name != "run_id" and own.get(name) == value}
    for attempt, place in zip(attempts, roots, strict=True):
        parts = [] if "agent_type" in attempt.treatment else place.split("/")
        above = (("/".join(parts[:n]), attempt.treatment.get("model_id")) for n in range(len(parts) - 1, 0, -1))
        for name, value in next((agreed[run] for run in above if run in agreed), {}).items():
            attempt.treatment.setdefault(name, value)


_INSTANCE = re.compile(
    r"(?:.*/)?(?:instance_)?([A-Za-z0-9][\w.-]*?)__([A-Za-z0-9][\w.-]*?)"
    r"(?:-\d+|-[0-9a-f]{40}(?:-v\w+)?|\.[0-9a-f]{7,40}(?:\..*)?|[:#](?:pr-)?\d+)"
)
"""`owner__name` and a number, commit or pull request, as in SWE-bench and the sets that followed it."""
_PULL_REQUEST = re.compile(r"(?:.*github\.com/)?([\w.-]+)/([\w.-]+?)(?:#|:pr-|/pull/|/issues/)\d+")
_OWNER_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def _value(row: Row | None) -> tuple[Any, str]:
    if row is None:
        return None, "not measured"
    if row["absent"]:
        detail = f": {row['absent_detail']}" if row["absent_detail"] else ""
        return None, f"{row['absent']}{detail}"[:_LONGEST]
    return decoded(row["value"]), "no number"


def _details(row: Row | None) -> dict[str, Any]:
    detail = decoded(row.get("detail")) if row is not None else None
    return detail if isinstance(detail, dict) else {}


def evaluated(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Treat inferred failures as unjudged if no verifier judged any attempt of the candidate: its rate would be 0."""
    if any(o.outcome is not None and not o.inferred for o in attempts):
        return list(attempts)
    return [
        replace(o, outcome=None, why=_NOT_EVALUATED, rung="not_judged", reason=_NOT_EVALUATED)
        if o.inferred and o.outcome is not None
        else o
        for o in attempts
    ]


def _text(value: Any) -> str:
    """A setting as text, independent of how its file writes it. A null setting differs from an unrecorded one."""
    if value is None:
        return "none"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = sorted(value)
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()


# -- treatments and candidates -----------------------------------------------------------------------------------------


NOT_RECORDED = "not recorded"
SHORT_NAMES = {"model": "model_id", "agent": "agent_type", "run": "run_id"}
_FIRST = ("model_id", "agent_type", "condition", "attempt1_tool_cap", "retry_tool_cap")
"""Preferred columns where several distinguish the same candidates."""
_REPETITION = frozenset(("epoch", "epochs", "seed", "sample", "sample_index", "run_id"))
"""Columns that number repetitions of one treatment."""
_NOT_GIVEN = _REPETITION | {"dataset"}
"""Columns that are no treatment: the data set belongs to the task."""
_NUISANCE = re.compile(
    rf"^{RECORDED_MODEL}$|concurren|parallel|connections|subprocess|sandboxes|workers?$|threads?$|processes$|^jobs?$|^n_jobs$"
    r"|^(?:is_)?(?:quiet|verbose|debug|force|overwrite|resume|cleanup|no_rebuild|rebuild|delete|livestream|headless)$"
    r"|^(?:host|hostname|port|user|username|machine|node|gpu|gpu_ids?|device|pid|container_name|project_name)$"
    r"|^(?:log|logging|output|results?|trials?|jobs?|runs?|save|cache|tmp|temp|work|working|work_?space|upload|report|trace)s?_"
    r"(?:dir|directory|path|folder|file|root|level|prefix|name|url|uri|bucket)$"
)
"""Names of knobs of the machine that ran the attempts: workers, folders, logs."""
_PLAIN = frozenset(("model_id", "agent_type", "condition", "run_id"))
"""Columns whose values need no name before them."""
_MANY = 10
"""A knob with so many values, different for most trials, numbers trials."""
_LONGEST_VALUE, _LONGEST_NAME = 80, 160

Name = str
Candidates = dict[Name, list[Attempt]]


def is_version(column: str) -> bool:
    """True if a column describes what ran or judged the attempt, not what it was given."""
    return column in ("format", "inspect_ai") or column.endswith("version")


def is_nuisance(column: str) -> bool:
    """True if a column is of the machine, and makes no candidate unless it is asked for."""
    return _NUISANCE.search(CAMEL.sub("_", column).lower().rpartition(".")[2]) is not None


CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def differing(tried: Sequence[Attempt]) -> list[str]:
    """Return the columns and knobs that differ between attempts, the best names first.

    Without the effective limit, which differs for a retry of the same trial.
    """
    names = sorted({name for attempt in tried for name in attempt.treatment} - {"effective_tool_cap"})
    differing_columns = [name for name in names if len({attempt.treatment.get(name) for attempt in tried}) > 1]
    return sorted(differing_columns, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))


def candidate_columns(tried: Sequence[Attempt], asked: Sequence[str]) -> list[str]:
    """Return the columns that make candidates: those asked for, else each treatment that separates more attempts.

    UsageError, with the available columns, for an unknown one.
    """
    if asked:
        wanted = list(dict.fromkeys(SHORT_NAMES.get(name, name) for name in asked))
        recorded = {name for attempt in tried for name in attempt.treatment}
        missing = [name for name in wanted if name not in recorded]
        if missing:
            near = did_you_mean(missing[0], [*SHORT_NAMES, *available(tried)])
            raise UsageError(
                f"No attempt records a setting {missing[0]!r}.",
                f"{near} Available: {', '.join(available(tried))}.".lstrip() if recorded else "",
            )
        return wanted
    # Treatments, not what numbers trials, nor (where others differ at one task) knobs that only differ between tasks.
    treatments, crossed = [], set()
    for column in differing(tried):
        if column in _NOT_GIVEN or is_version(column) or is_nuisance(column):
            continue
        values = values_of(tried, column) - {None}
        trials = {attempt.trial for attempt in tried if column in attempt.treatment}
        if column in _PLAIN or len(values) < _MANY or 2 * len(values) <= len(trials):
            treatments.append(column)
            seen: dict[tuple[str | None, str], str | None] = {}
            for attempt in tried:
                value = attempt.treatment.get(column)
                if attempt.task is not None and seen.setdefault((attempt.dataset, attempt.task), value) != value:
                    crossed.add(column)
                    break
    taken: list[str] = []
    parts = 1
    for name in treatments:
        if name in _PLAIN or name in crossed or not crossed:
            more = len({_key(attempt, [*taken, name]) for attempt in tried})
            if more > parts:
                taken, parts = [*taken, name], more
    if taken or any("model_id" in a.treatment for a in tried):
        return taken or ["model_id"]
    known = (name for name in COLUMNS if not is_nuisance(name) and all(name in a.treatment for a in tried))
    return [next(known, "model_id")]


def candidates(tried: Sequence[Attempt], by: Sequence[str]) -> Candidates:
    """Group attempts by candidate, most attempts first. A name has the values of `by` that distinguish it."""
    groups: dict[tuple[str | None, ...], list[Attempt]] = {}
    for attempt in tried:
        groups.setdefault(_key(attempt, by), []).append(attempt)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), [value or "" for value in pair[0]]))
    names = _candidate_names([key for key, _ in ranked], by)
    counts, made = Counter(names), {}
    for name, (key, attempts) in zip(names, ranked, strict=True):
        digest = hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:6]
        made[name if counts[name] == 1 else f"{name} #{digest}"] = attempts
    return made


def _candidate_names(keys: Sequence[tuple[str | None, ...]], by: Sequence[str]) -> list[Name]:
    """Name each candidate by its first recorded value, and by further values only where others have the same name.

    Of a router's path to a model (`openai/accounts/fireworks/models/kimi-k2`) the last part is the name."""
    models = {key[n] for n, column in enumerate(by) if column == "model_id" for key in keys} - {None}
    shortened = Counter(model.rpartition("/")[2] for model in models if model is not None)
    parts: list[list[str]] = []
    for key in keys:
        shown = []
        for column, value in zip(by, key, strict=True):
            if value is None:
                shown.append("")
                continue
            last = value.rpartition("/")[2] if column == "model_id" and value.count("/") > 1 else ""
            text = cut(last if shortened[last] == 1 else value, _LONGEST_VALUE)
            shown.append(text if len(by) == 1 or column in _PLAIN else f"{column}={text}")
        parts.append(shown)
    names = [next(filter(None, shown), NOT_RECORDED) for shown in parts]
    for n in range(1, len(by)):
        same: dict[str, set[str | None]] = {}
        for name, key in zip(names, keys, strict=True):
            same.setdefault(name, set()).add(key[n])
        names = [
            f"{name} · {_what_differs(by[n], key[n], same[name]) or shown[n]}"
            if len(same[name]) > 1 and shown[n] and any(shown[:n])
            else name
            for name, key, shown in zip(names, keys, parts, strict=True)
        ]
    return [cut(name, _LONGEST_NAME) for name in names]


def _what_differs(column: str, value: str | None, among: Collection[str | None]) -> str | None:
    """Say what a list such as `tools` has and others lack, else what it lacks; None for other values."""
    lists = [entries for other in among if isinstance(entries := decoded(other), list)]
    own = decoded(value)
    if len(lists) < 2 or not isinstance(own, list):
        return None
    sets: list[set[str]] = [{str(entry) for entry in entries} for entries in lists]
    own_set = {str(entry) for entry in own}
    if only := sorted(own_set - sets[0].intersection(*sets)):
        return f"{column} with {', '.join(only)}"
    lacks = sorted(sets[0].union(*sets) - own_set)
    return f"{column} without {', '.join(lacks)}" if lacks else None


def unrecorded(attempt: Attempt, by: Sequence[str]) -> bool:
    """True if the candidate is not recorded: none of `by`, or no model where models are compared."""
    missing = [name for name in by if name not in attempt.treatment]
    return len(missing) == len(by) or "model_id" in missing


def candidate_named(name: str, among: Candidates) -> Name:
    """Return the candidate of that name, or the only one whose name or treatment contains it. UsageError lists them."""
    matches = [candidate for candidate in among if candidate == name] or [
        candidate for candidate in among if name in candidate
    ]
    matches = matches or [
        candidate
        for candidate, attempts in among.items()
        if any(name in value for value in attempts[0].treatment.values() if value)
    ]
    if len(matches) == 1:
        return matches[0]
    problem = "Several candidates are" if matches else "No candidate is"
    words = [word for one in among for word in (one, *re.findall(r"[\w.]{3,}", one))]
    near = "" if matches else did_you_mean(name, words)
    listed = f"The candidates: {', '.join((matches or list(among))[:10])}."
    raise UsageError(f"{problem} called {name!r}.", f"{near} {listed}".lstrip())


def values_of(tried: Sequence[Attempt], column: str) -> set[str | None]:
    return {attempt.treatment.get(column) for attempt in tried}


def confounded_columns(tried: Sequence[Attempt], columns: Sequence[str]) -> list[list[str]]:
    """Return groups of columns that always change together."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for column in columns:
        seen: dict[str | None, int] = {}
        parts = tuple(seen.setdefault(attempt.treatment.get(column), len(seen)) for attempt in tried)
        if len(seen) > 1 and column not in _REPETITION and not is_nuisance(column):
            alike.setdefault(parts, []).append(column)
    return [group for group in alike.values() if len(group) > 1]


def also_differ(
    attempts: Sequence[Attempt], other: Sequence[Attempt], by: Sequence[str], columns: Sequence[str]
) -> list[str]:
    """Return columns outside `by` whose values two candidates never share; they may explain a difference."""
    if not attempts or not other:
        return []
    apart = [c for c in columns if c not in by and c not in _REPETITION and not is_nuisance(c)]
    return [c for c in apart if not values_of(attempts, c) & values_of(other, c)]


def pooled(attempts: Sequence[Attempt], by: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Return columns that differ between attempts of one candidate, with their number of values."""
    counted = {c: len(values_of(attempts, c)) for c in columns if c not in by and c not in _REPETITION}
    return {c: n for c, n in counted.items() if n > 1}


def available(tried: Sequence[Attempt]) -> list[str]:
    """Return the columns that can make candidates."""
    recorded = {name for attempt in tried for name in attempt.treatment}
    return [*(c for c in COLUMNS if c in recorded), *sorted(recorded - set(COLUMNS))]


def _key(attempt: Attempt, by: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(attempt.treatment.get(name) for name in by)


# -- treatments that folders tell --------------------------------------------------------------------------------------


_FIELD = re.compile(r"\{([A-Za-z_]\w{0,40})\}|(\*\*|\*|\?)")
_GLOB = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_CONTENT = re.compile(r"\{\s*[\"']")
"""How the content of a treatments file begins, where it stands in place of the file."""
_SHAPE = "Use YAML or JSON that maps folder patterns to fields: '**/trace_??_{model_id}': {dataset: mine}."

Rules = Sequence[tuple[re.Pattern[str], Mapping[str, str]]]


def read_mapping(path: Path) -> Rules:
    """Read the patterns of a treatments file, in order. `{field}` in a pattern captures part of the folder's name.

    A pattern can stand in place of the file, and so can the file's content. UsageError if it is invalid.
    """
    import yaml  # noqa: PLC0415  (for such a file alone)

    try:
        if "{" in str(path) and not os.path.lexists(path):
            loaded = yaml.safe_load(str(path)) if _CONTENT.match(str(path)) else {str(path): None}
        else:
            loaded = yaml.safe_load(path.read_text("utf-8"))
        rules = msgspec.convert(loaded, dict[str, dict[str, str | int | float | bool] | None])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError, RecursionError) as problem:
        raise UsageError(f"{path} is not a treatments file: {problem}", _SHAPE) from problem
    return [(_pattern(p), {k: str(v) for k, v in (fields or {}).items()}) for p, fields in rules.items()]


def mapped(rows: Sequence[Row], rules: Rules) -> list[Row]:
    """Add the fields of the first pattern that matches a trial's folder, where the run records none."""
    made = []
    for row in rows:
        matches = ((pattern.fullmatch(row["root"] or ""), fields) for pattern, fields in rules)
        match, fields = next((found for found in matches if found[0] is not None), (None, {}))
        if match is None:
            made.append(row)
            continue
        stated = {**fields, **{k: v for k, v in match.groupdict().items() if v}}
        knobs = {k: v for k, v in stated.items() if k not in row}
        columns = {k: v for k, v in stated.items() if k in row and row[k] in (None, "")}
        made.append({**row, **columns, "mapped": knobs})
    return made


def _pattern(text: str) -> re.Pattern[str]:
    parts, at, seen = [], 0, set[str]()
    text, inside = (text[:-3], "(?:/.*)?") if text.endswith("/**") else (text, "")  # the folder itself, too
    for match in _FIELD.finditer(text):
        parts.append(re.escape(text[at : match.start()]))
        name, glob = match.groups()
        if name in seen:
            raise UsageError(f"The folder pattern {text!r} names {{{name}}} twice.", _SHAPE)
        seen.update([name] if name else ())
        parts.append(f"(?P<{name}>[^/]+)" if name else _GLOB[glob])
        at = match.end()
    return re.compile("".join((*parts, re.escape(text[at:]), inside)), re.DOTALL)


# -- patterns that names of folders suggest ----------------------------------------------------------------------------

_PARTS = re.compile(r"__|[_@+= ,]")
"""What separates the fields of a folder's name. A dash and a point are parts of models' names."""
_NO_NAME = re.compile(
    r"(?:(?:run|job|trial|exp|experiment|seed|attempt|epoch|batch|part|shard|night|day|v|r|n)?[-.]?\d*|[\dT:.Z-]+|[0-9a-f-]{6,})",
    re.IGNORECASE,
)
"""Numbers, dates and ids, which name nobody."""
_GLOBBED = re.compile(r"[*?{}]")
_MOST_FOLDERS = 12
"""More folders that need a line each are not proposed."""


_IS_AGENT = re.compile(
    r"(?:claude|qwen)-?code|(?:codex|gemini|kimi|mistral|grok|qwen)-(?:cli|agent)|codex(?=-gpt|-o\d|$)"
)


def proposed(rows: Sequence[Row]) -> str:
    """Return a value of `--treatments` that reads models out of the folders of attempts without one; empty if their
    names show none. The largest folder whose subfolders name models of known makers decides."""
    lacking = [
        row for row in rows if not row["model_id"] and row.get("root") and "model_id" not in row.get("mapped", {})
    ]
    folders: dict[tuple[str, ...], list[Row]] = {}
    for row in lacking:
        parts = tuple(str(row["root"]).strip("/").split("/"))
        for depth in range(len(parts)):
            folders.setdefault(parts[:depth], []).append(row)
    for among in sorted(folders.values(), key=len, reverse=True):
        agents = {str(row["agent_type"]).lower() for row in among if row["agent_type"]}
        for level in _levels(among):
            named = {folder: _model_in(folder, agents) for folder in level}
            if any(named.values()):
                return _pattern_of({folder: model for folder, model in named.items() if model}, among)
    for level in _levels(lacking):
        # The one field in which the names differ, if it names something. A name that is one field may name anything.
        names = sorted(level)
        fields_of = [_PARTS.split(folder) for folder in names]
        if len(level) < 2 or len(fields_of[0]) < 2 or len({len(fields) for fields in fields_of}) > 1:
            continue
        columns = enumerate(zip(*fields_of, strict=True))
        differ = [at for at, values in columns if len({*values}) > 1 and not all(map(_NO_NAME.fullmatch, values))]
        if len(differ) == 1 and not any(_NO_NAME.fullmatch(fields[differ[0]]) for fields in fields_of):
            return _pattern_of({f: fields[differ[0]] for f, fields in zip(names, fields_of, strict=True)}, lacking)
    return ""


def _levels(rows: Sequence[Row]) -> Iterator[set[str]]:
    """Yield the folders' names above the trials, outermost first: names under which several tasks lie."""
    by_level: dict[int, dict[str, set[str]]] = {}
    for row in rows:
        for at, folder in enumerate(str(row["root"]).strip("/").split("/")):
            by_level.setdefault(at, {}).setdefault(folder, set()).add(row["task_id"] or row["session_id"])
    for folders in by_level.values():
        if all(len(tasks) > 1 for tasks in folders.values()) and not any(map(_GLOBBED.search, folders)):
            yield set(folders)


def _model_in(folder: str, agents: set[str]) -> str:
    """Return the part of a folder's name that names a model of a known maker; empty if none does."""
    for field in _PARTS.split(folder):
        for at in (0, *(dash.end() for dash in re.finditer("-", field))):
            part = field[at:]
            is_agent = any(part.lower().startswith(agent) for agent in agents) or _IS_AGENT.match(part.lower())
            if not is_agent and maker(part) and any(map(str.isdigit, part)):
                return part
    return ""


def _pattern_of(models: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Return one pattern that finds these models in the roots of these attempts, by the depth of the folder where its
    name alone is not enough; else the folders, a line each."""
    around = [(folder[: (at := folder.rindex(model))], folder[at + len(model) :]) for folder, model in models.items()]
    before = _alike([b[::-1] for b, _ in around])[::-1]
    after = _alike([a for _, a in around])
    if len({len(b) for b, _ in around}) == 1:  # `trace_0?_`
        before = "".join(same[0] if len({*same}) == 1 else "?" for same in zip(*(b for b, _ in around), strict=True))
    elif not all(b == before for b, _ in around):
        before = f"*{before}"
    after = after if all(a == after for _, a in around) else f"{after}*"
    roots = {f"/{str(row['root']).strip('/')}" for row in rows}
    wanted = {root: models[name] for root in roots for name in root.split("/") if name in models}
    depths = {root[1:].split("/").index(name) for root in roots for name in root[1:].split("/") if name in models}
    for above in ("**/", *("/" + "*/" * depth for depth in depths if len(depths) == 1)):
        pattern = f"{above}{before}{{model_id}}{after}/**"
        found = _pattern(pattern)
        matches = {root: found.fullmatch(root) for root in wanted}
        if all(match is not None and match["model_id"] == wanted[root] for root, match in matches.items()):
            return pattern
    if len(models) > _MOST_FOLDERS:
        return ""
    lines = {f"**/{folder}/**": {"model_id": model} for folder, model in sorted(models.items())}
    return msgspec.json.encode(lines).decode()


def _alike(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def answer_over_attempts(store: Store, question: Question, treatments: Path | None = None, where: str = ALL) -> Any:
    """Ask a store a question about attempts. StoreError if there are none.

    `treatments`: a file of the user's. `where`: the condition in the question, for the error message.
    """
    from agentsignals.store.query import rows  # noqa: PLC0415  (DuckDB is loaded when asked)

    found: dict[str, list[Row]] = {}
    for name, sql in question.queries.items():
        columns, values = rows(store, sql)
        found[name] = [dict(zip(columns, row, strict=True)) for row in values]
    if treatments is not None:
        found["attempts"] = mapped(found["attempts"], read_mapping(treatments))
    if not found["attempts"]:
        raise StoreError(
            f"There are no eval attempts{'' if where == ALL else ' under this condition'}.",
            "Run `agentsignals analyze RUNS` on eval runs (Harbor, SWE-bench, Inspect …) to add some.",
        )
    return question.function(Inputs(rows=found))
