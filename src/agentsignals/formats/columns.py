"""One table of how public data sets spell things: the columns of tables, the roles of messages, verdicts in words.

Tables of outcomes and tables of conversations are both recognised by it, whatever file they lie in
(design/formats.md#tables-of-conversations).
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from msgspec import Struct

from agentsignals.formats.records import CUT, Head
from agentsignals.formats.text_calls import python_in
from agentsignals.model.lazy import deferred_pattern

_NAMED_TASK = ("instance_id", "task_id", "problem_id", "task_name")
_TASK = (*_NAMED_TASK, "task", "problem")
"""The first are of a task and nothing else; the others are also topics, todo lists, kinds of work."""
_PASSED = (
    "resolved", "is_resolved", "solved", "is_solved", "passed", "is_passed", "success", "is_success", "successful",
    "succeeded", "correct", "is_correct", "pass", "outcome", "verdict",
)  # fmt: skip
_TRY = "pass"
"""The number of the try where there is a reward, else a verdict."""
_SCORED = ("reward", "score")
_MODEL = ("model_id", "model", "model_name", "model_name_or_path", "source_model")
_AGENT = ("agent_type", "agent", "agent_name", "scaffold", "system", "harness")
_RUN = ("run_id", "run", "run_name", "submission", "submission_id", "experiment", "experiment_id")
_SUMS = frozenset((
    "n", "count", "n_samples", "num_samples", "n_tasks", "num_tasks", "n_instances", "num_instances", "n_trials",
    "num_trials", "num_runs", "n_runs", "total", "accuracy", "stderr", "std", "pass_rate", "success_rate",
    "resolve_rate", "resolved_rate", "mean_score", "avg_score", "average", "pass_1", "pass_at_1", "rank",
))  # fmt: skip
"""Columns of rows that sum up several attempts, and so are no attempts."""
KNOBS = {
    "model_id": _MODEL,
    "agent_type": _AGENT,
    "agent_version": ("agent_version",),
    "dataset": ("dataset", "benchmark"),
    "split": ("split",),
    "condition": ("condition",),
    "seed": ("seed",),
    "repeat": ("attempt", "attempt_index", "epoch", "repetition", "repeat"),
    "reasoning_effort": ("reasoning_effort", "effort"),
    "temperature": ("temperature",),
    "tools": ("tools",),
    "timeout_s": ("timeout_s",),
    "attempt1_tool_cap": ("tool_cap", "attempt1_tool_cap"),
    "max_steps": ("max_steps", "max_turns", "step_limit"),
    "max_retries": ("max_retries", "retries"),
    "cost_limit": ("cost_limit",),
}
"""Columns that say who was tried, by their usual names, best first. Other columns belong to the table."""
FIGURES = {
    "run_id": _RUN,
    "cost_usd": ("cost_usd", "total_cost_usd", "cost"),
    "input_tokens": ("input_tokens", "n_input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "n_output_tokens", "completion_tokens"),
    "wall_time_s": ("wall_time_s", "duration_s", "duration_seconds", "elapsed_s", "runtime_s"),
    "exit_status": ("exit_status", "failure_mode"),
    "model_patch": ("model_patch",),
}
_YES = frozenset(("true", "yes", "1", "1.0", "resolved", "solved", "pass", "passed", "success", "correct"))
_NO = frozenset(
    ("false", "no", "0", "0.0", "unresolved", "unsolved", "fail", "failed", "failure", "incorrect", "wrong")
)
_NOT_JUDGED = frozenset(("", "none", "null", "nan", "na", "n/a", "error", "timeout", "skipped", "not_judged"))
LONGEST_NAME = 300
"""Characters of a task's name: what is longer is its text."""
_APART = deferred_pattern(r"[\s.@/-]+")


class Columns(Struct, frozen=True, kw_only=True):
    """The columns of a table that are read, as the table spells them."""

    task: str | None
    passed: str | None
    """Says yes or no."""
    score: str | None
    """A number."""
    settings: dict[str, str]
    """Columns by the name of the knob or figure."""
    lacks: str
    """The reason for which it is no table of outcomes; empty where it is."""
    is_near: bool = False
    """It lacks one thing alone, and what it has hardly anything else has."""
    is_swe_bench: bool = False

    @property
    def outcomes(self) -> list[str]:
        return [name for name in (self.passed, self.score) if name is not None]

    @property
    def read(self) -> frozenset[str]:
        return frozenset((*self.outcomes, *self.settings.values(), *([self.task] if self.task else [])))


def columns_of(names: Iterable[str]) -> Columns:
    """Recognise columns by their names, in any case and with any signs between the words."""
    return _columns_of(tuple(names))


@lru_cache(maxsize=1024)
def _columns_of(names: tuple[str, ...]) -> Columns:
    """Asked of every file of JSON, by two formats; an agent's records begin alike."""
    spelt = spelled(names)
    task, passed, score = (_first(spelt, usual) for usual in (_TASK, _PASSED, _SCORED))
    usually = (*KNOBS.items(), *FIGURES.items())
    settings = {knob: column for knob, usual in usually if (column := _first(spelt, usual)) is not None}
    if passed is not None and passed == spelt.get(_TRY) and "reward" in spelt:
        settings.setdefault("repeat", passed)
        passed = None
    is_swe_bench = "instance_id" in spelt and "resolved" in spelt
    has_id = any(usual in spelt for usual in _NAMED_TASK)
    is_tried = any(usual in spelt for usual in (*_MODEL, *_AGENT, *_RUN))
    lacks = [
        reason
        for reason, is_there in (
            ("no_task_column", task is not None and (has_id or passed is not None)),
            ("no_outcome_column", passed is not None or score is not None),
            ("no_model_column", is_tried or is_swe_bench),
            ("rows_of_sums", _SUMS.isdisjoint(spelt)),
        )
        if not is_there
    ]
    return Columns(
        task=task,
        passed=passed,
        score=score,
        settings=settings,
        lacks=lacks[0] if lacks else "",
        is_near=len(lacks) == 1
        and (passed is not None or lacks == ["no_outcome_column"])
        and (has_id or lacks == ["no_task_column"]),
        is_swe_bench=is_swe_bench,
    )


def _first(spelt: Mapping[str, str], usual: Iterable[str]) -> str | None:
    return next((spelt[name] for name in usual if name in spelt), None)


def are_rows(rows: Sequence[Mapping[str, Any]], columns: Columns) -> bool:
    """Return whether most of these rows are outcomes. A broken row costs only itself."""
    return 2 * sum(is_row(row, columns) for row in rows) > len(rows)


def is_row(row: Mapping[str, Any], columns: Columns) -> bool:
    """Return whether a row names a task and has valid values in its columns of outcomes."""
    task = row.get(columns.task or "")
    is_named = is_name(task) and not (type(task) is int and columns.is_swe_bench)
    passed, score = row.get(columns.passed or ""), row.get(columns.score or "")
    return (
        is_named
        and any(name in row for name in columns.outcomes)
        and (is_missing(passed) or verdict(passed) is not None)
        and (is_missing(score) or score_of(score) is not None)
    )


def is_name(value: object) -> bool:
    """Return whether a value may name a task: a short text, or a number."""
    return (isinstance(value, str) and 0 < len(value) <= LONGEST_NAME) or type(value) is int


def is_missing(value: object) -> bool:
    """Return whether a value says that nobody judged."""
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in _NOT_JUDGED)  # noqa: PLR0124


def verdict(value: object) -> bool | None:
    """Return True or False for a word or number that people write so, and None for anything else."""
    word = str(value).strip().lower() if isinstance(value, bool | int | float | str) else ""
    return True if word in _YES else False if word in _NO else None


def score_of(value: object) -> float | None:
    """Return a number; None for anything else, including yes and no."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


# -- conversations: which column holds them, who speaks, and what says where a row comes from

CONVERSATIONS = (
    "messages", "conversation", "conversations", "trajectory", "traj", "trace", "transcript", "history", "dialogue",
    "dialog", "chat", "turns", "steps", "events", "spans", "trajectories", "traces", "transcripts",
)  # fmt: skip
"""Columns that hold a conversation a row, the most usual first."""
SESSION_IDS = (
    "session_id", "sessionid", "conversation_id", "trajectory_id", "traj_id", "trace_id", "trial_name", "trial_id",
    "id", "uuid",
)  # fmt: skip
STARTED = ("started_at", "start_time", "date", "created_at")
ENDED = ("ended_at", "end_time", "finished_at", "timestamp")
INSTRUCTIONS = ("system", "system_prompt")
REPO = ("repo", "repository", "repo_name")
PROMPT, ANSWERS = "prompt", ("completion", "response")
"""A conversation in two columns, as models are trained with."""
LABELS = ("labels", "annotations")
"""Columns that may hold what people said of the conversation, as a file of its format has it."""
RESULT = ("result", "target")
"""Verdicts of rows of conversations. Elsewhere these words may mean anything."""
PATCHES = ("model_patch", "generated_patch", "git_patch", "patch")
OF_TASKS = frozenset(("test_patch", "gold_patch", "base_commit", "fail_to_pass"))
"""Beside these `patch` is the right answer, not the agent's."""

ROLE = ("role", "from", "speaker", "author")
WORDS = ("content", "value", "text", "message")
ROLES = {
    **dict.fromkeys(("user", "human"), "person"),
    **dict.fromkeys(("assistant", "gpt", "ai", "model", "agent", "chatgpt", "bot"), "agent"),
    **dict.fromkeys(
        ("tool", "observation", "function_response", "function", "tool_response", "tool_result", "environment"), "tool"
    ),
    **dict.fromkeys(("function_call", "tool_call", "action"), "call"),
    **dict.fromkeys(("system", "developer"), "instructions"),
}
"""Who speaks, by every spelling of a role."""
CALLS = ("tool_calls", "toolCalls", "tool_uses", "function_call", "function_calls")
THOUGHTS = ("reasoning_content", "reasoningContent", "reasoning", "thinking", "thought")
CALL_IDS = ("tool_call_id", "toolCallId", "call_id")
_CALLS_IN_TEXT = ("<function=", "<tool_call>", "<invoke ", '"commands"')
_BEGINS = re.compile(rb'"(?:' + "|".join(CONVERSATIONS).encode() + rb')"\s*:\s*\[\s*\{\s*"(?:from|value)"\s*:\s*"')
_FIRST_MESSAGES = 12


class Row(Struct, frozen=True, kw_only=True):
    """The columns of a table of conversations that are read, as the table spells them."""

    outcomes: Columns
    session_id: tuple[str, ...]
    """All that may name the session, best first."""
    started: str | None
    ended: str | None
    instructions: str | None
    patch: str | None
    result: str | None
    repo: str | None
    labels: str | None
    prompt: str | None
    names_attempts: bool
    """A task or a run is named. `task` alone may be the topic of a chat."""

    @property
    def read(self) -> frozenset[str]:
        """Every column but that of the conversation."""
        own = (getattr(self, name) for name in self.__struct_fields__)
        return self.outcomes.read.union(self.session_id, (name for name in own if isinstance(name, str)))

    def identity(self, row: Mapping[str, Any]) -> list[str]:
        """Return what tells an attempt from others with the same words: task, verdict, and who was tried, but not the
        split, which may repeat the row."""
        tried = (column for knob, column in self.outcomes.settings.items() if knob in (*KNOBS, "run_id"))
        names = sorted({*self.outcomes.outcomes, *tried, self.outcomes.task or "", self.result or ""})
        values = ((name, row.get(name)) for name in names if name != self.outcomes.settings.get("split"))
        return [f"{name}={str(value).lower()}" for name, value in values if value not in (None, "", [])]


def spelled(names: Iterable[str]) -> Mapping[str, str]:
    """Return columns by their usual spelling: in any case and with any signs between the words."""
    return _spelled(tuple(names))


@lru_cache(maxsize=1024)
def _spelled(names: tuple[str, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(_APART.sub("_", name.strip().lower()).strip("_"), name)
    return found


@lru_cache(maxsize=1024)
def row_of(names: tuple[str, ...]) -> Row:
    """Return the columns of a table of conversations with these names."""
    spelt = spelled(names)
    patch = _first(spelt, PATCHES)
    instructions = _first(spelt, INSTRUCTIONS)
    return Row(
        outcomes=columns_of(name for name in names if name != instructions),
        session_id=tuple(spelt[name] for name in SESSION_IDS if name in spelt),
        started=_first(spelt, STARTED),
        ended=_first(spelt, ENDED),
        instructions=instructions,
        patch=None if patch == spelt.get("patch") and not OF_TASKS.isdisjoint(spelt) else patch,
        result=_first(spelt, RESULT),
        repo=_first(spelt, REPO),
        labels=_first(spelt, LABELS),
        prompt=spelt.get(PROMPT),
        names_attempts=not spelt.keys().isdisjoint((*_NAMED_TASK, *_RUN, "trial_name", "trial_id")),
    )


def may_hold(names: Iterable[str]) -> list[str]:
    """Return the columns that hold conversations by their names, the most usual first."""
    spelt = spelled(names)
    return [spelt[name] for name in CONVERSATIONS if name in spelt]


def answers_in(names: Iterable[str]) -> list[str]:
    """Return the columns that answer another one."""
    spelt = spelled(names)
    return [spelt[name] for name in ANSWERS if name in spelt and PROMPT in spelt]


def asked_in(row: Mapping[str, Any], column: str, messages: Sequence[Mapping[str, Any]]) -> Any:
    """Return what was asked apart from these messages of a column. None where they hold the whole conversation."""
    speak = {ROLES.get((role_of(message) or "").lower()) for message in messages}
    is_answer = column in answers_in(row) or (bool(speak) and "person" not in speak)
    return row.get(spelled(row).get(PROMPT, "")) if is_answer else None


def messages_of(value: Any) -> list[dict[str, Any]]:
    """Return the messages of a list, each an object or its JSON, or of a list in JSON. None of a list less than half of
    which is messages; an odd item among them is kept without a role."""
    if isinstance(value, str | bytes):
        if value.lstrip()[:1] not in ("[", b"["):
            return []
        value = json_in(value) or python_in(value)
    if not isinstance(value, list):
        return []
    items = (json_in(item) if isinstance(item, str | bytes) else item for item in value)
    messages = [m for item in items for m in (_said_in(item) if isinstance(item, dict) else [{WORDS[0]: item}])]
    known = sum(role_of(message) is not None for message in messages)
    return messages if known > 0 and 2 * known >= len(messages) else []


def _said_in(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a message as it is, and a step, which has no role, as the agent's call and its result."""
    if not {"action", "observation"} <= item.keys() or role_of(item) is not None:
        return [item]
    action, failed = item["action"], item.get("exit_code")
    arguments = action if isinstance(action, dict) else {"command": action}
    call = {"name": item.get("tool") or "bash", "arguments": arguments}
    said = {ROLE[0]: "assistant", WORDS[0]: item.get("thought"), CALLS[0]: [call]}
    result = {ROLE[0]: "tool", WORDS[0]: item["observation"], "is_error": None if failed is None else failed != 0}
    return [said, result]


def json_in(text: str | bytes) -> Any:
    """Return the value that a text spells in JSON; None if it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def role_of(message: Mapping[str, Any]) -> str | None:
    """Return the role of a message as it is spelled there. None for what is no message."""
    said = (message.get(name) for name in ROLE if name in message)
    return next((role for role in said if isinstance(role, str)), None)


def has_calls(message: Mapping[str, Any]) -> bool:
    """Return whether a message is of an agent's work: it holds a call or a result, in whatever form."""
    if any(message.get(name) for name in CALLS) or ROLES.get((role_of(message) or "").lower()) in ("tool", "call"):
        return True
    words = next((message[name] for name in WORDS if message.get(name)), "")
    if isinstance(words, list):
        return any(isinstance(part, dict) and part.get("type") in ("tool_use", "tool_result") for part in words)
    return isinstance(words, str) and any(mark in words for mark in _CALLS_IN_TEXT)


IN_FIELD = ("rows", "data")
"""Fields of a document that holds the rows of a table."""


def first_rows_of(head: Head) -> list[dict[str, Any]]:
    """Return the first objects of JSON Lines, of a list, or of a field: the Hub's server gives `rows`."""
    first = head.records or head.items or ([head.document] if head.document else [])
    rows = next((v for v in map(first[0].get, IN_FIELD) if v is not None), None) if len(first) == 1 else None
    if isinstance(rows, list):
        held = (row.get("row", row) for row in rows if isinstance(row, dict))
        return [row for row in held if isinstance(row, dict)]
    return first


def holds_conversations(head: Head) -> bool:
    """Return whether a file of JSON begins with rows that each hold a conversation with an agent.

    Words alone, with nothing that says whose they are or where they come from, are what models are trained on. One
    object by itself, which any program may have written, has to say more: a verdict, or calls beside whose they are.
    Where the value is cut in the head of the file, its beginning decides.
    """
    if not head.looks_like_json:
        return False
    rows = first_rows_of(head)
    for row in rows:
        for name in (*may_hold(row), *answers_in(row)):
            if row[name] is CUT:
                return _BEGINS.search(head.data) is not None
            if isinstance(row[name], str) and isinstance(json_in(row[name].strip().split("\n", 1)[0]), dict):
                return True  # the text of a file: no other program nests JSON so
            messages = messages_of(row[name])[:_FIRST_MESSAGES]
            if any(word in message for message in messages for word in (*WORDS, *CALLS)):
                names = {usual for usual, spelt in spelled(row).items() if row[spelt] is not None}
                acts = any(map(has_calls, messages))
                if len(rows) > 1 or head.items:
                    is_told = acts or not names.isdisjoint(_OF_SOMEBODY)
                else:
                    is_told = not names.isdisjoint(_JUDGED) or (acts and not names.isdisjoint(_OF_SOMEBODY))
                return is_told or any("from" in message for message in messages)
    return (not rows or CUT in map(rows[0].get, IN_FIELD)) and _BEGINS.search(head.data) is not None


_JUDGED = frozenset((*_NAMED_TASK, *_PASSED, *_SCORED))
_OF_SOMEBODY = frozenset((*SESSION_IDS[:-2], *_TASK, *_JUDGED, *_AGENT, *_RUN))
"""Columns that say more of a conversation than a number and the model: a name, a task, a verdict, an agent, a run."""
