"""The data model: a session, the rows that belong to it, and the attempt of an eval run that it may be.

Times are integers, microseconds since 1970 UTC. A missing fact is None here and NULL in the store; a signal that can't
be computed is `Absent` and says why. Field order is column order.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from agentsignals.model.lazy import deferred_pattern

PatchOp = Literal["create", "modify", "delete", "rename"]
Ending = Literal["finished", "time", "budget", "verifier", "infrastructure"]
"""Cause of an attempt's end: the agent; its time or its budget of calls, tokens or money; the verifier, which failed;
or the environment, the provider or the harness, which no benchmark counts against the agent."""


class PatchedFile(Struct, gc=False, kw_only=True):
    """A file that a patch changes. `hunks` are (old start, old lines, new start, new lines); `changes` each run of
    changed lines: first and last line in the file before (of what only adds the two it lies between), and the function,
    empty where the diff does not show it."""

    path: str
    op: PatchOp
    added: int
    removed: int
    hunks: list[tuple[int, int, int, int]]
    changes: list[tuple[int, int, str]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    """Hashes of the lines that `changes` name, without indentation: numbers alone mislead where two patches have
    different base commits."""
    old_path: str | None = None
    """Former path of a renamed file."""
    binary: bool = False


def patched_paths(files: Iterable[PatchedFile] | None) -> frozenset[str]:
    """Return the paths that a patch touches; both names of a renamed file. Empty for an unknown patch."""
    return frozenset(path for file in files or () for path in (file.path, file.old_path) if path)


class Verification(Struct, kw_only=True):
    """Result of the verifier: test ids by what was expected of them and what came (design/formats.md#swe-bench)."""

    status: Literal["ok", "crashed", "timed_out", "not_run"] = "ok"
    """`not_run`: it ended before its first test, so that its reward says nothing of the attempt."""
    layout: Literal["A", "B"] = "A"
    """A: tests under what the gold patch does to them, each passed or failed. B: under the transition observed."""
    patch_applies: bool | None = None
    fixed: list[str] | None = None
    """Failed before, pass now (FAIL_TO_PASS success). None when the report lists no tests."""
    unfixed: list[str] | None = None
    """Should pass now and still fail (FAIL_TO_PASS failure)."""
    kept: list[str] | None = None
    """Passed before and pass now."""
    broken: list[str] | None = None
    """Passed before and fail now: regressions."""
    still_failing: list[str] | None = None
    """Failed before, fail now, and were not meant to be fixed."""
    passed: list[str] | None = None
    """Pass now, where nobody says how they did before."""
    failed: list[str] | None = None
    """Fail now, where nobody says how they did before."""
    message: str = ""
    """Line that shows how a verifier failed; of a plain script without named tests its last line."""
    missing_module: str | None = None
    """Module that the tests' own file could not import: of the work, if the task names it."""

    @property
    def ran(self) -> bool | None:
        """True if a test was seen to end. A report lists expected tests as failed though its verifier never started."""
        if any((self.passed, self.failed, self.fixed, self.kept)):
            return True
        return False if self.status == "not_run" else None


class HarnessSummary(Struct):
    """Counts of the harness while the agent ran (`[subq-eval]` lines)."""

    turns: int | None = None
    tool_calls: int | None = None
    edit_calls: int | None = None
    touched_files: list[tuple[str, int]] | None = None
    """Path and lines of its diff."""


class Statement(Struct, kw_only=True):
    """A place in a run's files that says something about the attempt; it becomes an event, which values can cite."""

    text: str
    artifact_id: str
    line: int
    fields: list[str]
    """The names of the attempt's fields that rest on it; a knob is `knobs.NAME`."""
    at: int | None = None
    """Time in microseconds UTC, where that is known."""
    kind: Literal["harness", "phase"] = "harness"
    """The kind of event it becomes: `phase` where the agent announced one while it ran."""
    seq: int = -1
    """The event it became."""


class Attempt(Struct, kw_only=True):
    """One uninterrupted agent run, or a part of what is known about it. None: this part does not tell.

    Each file of a run tells a part. `merge_attempts` merges the parts of one attempt, and keeps contradictions as
    conflicts.
    """

    root: str
    """The folder of the trial."""
    scope: Literal["attempt", "trial", "step", "lent"] = "attempt"
    """Subject of the part: one attempt; all of the trial; a step of the trial in whose folder it lies; any trial below
    `root` (of `task_id`, when named)."""
    trial_id: str | None = None
    attempt_index: int | None = None
    is_last: bool | None = None
    """True where no attempt of the trial came after it."""
    is_handed_in: bool | None = None
    """The harness chose this one of several attempts: the trial's verdict is of it."""
    task_id: str | None = None
    run_id: str | None = None
    record_id: str | None = None
    """The harness's own id of its record, which no other trial has: names of trials repeat from run to run."""
    regrade_of: str | None = None
    """`record_id` of the trial whose work this one judges again: no agent ran."""
    goes_by: str | None = None
    """Name of the trial wherever its files are (`<run>/<task>`): parts of that name belong to it too."""
    only_below: str | None = None
    """For a lent part: prefix of the folder below `root` of the trial it is about."""
    session_id: str | None = None
    """The session that this part came with; empty when the format has no id for it."""
    session_artifact: str | None = None
    """The artifact of that session."""
    knobs: dict[str, Any] = field(default_factory=dict)
    """The treatment as configured, under our names (`attempt1_tool_cap` …) and others; None: set to no limit."""
    observed: dict[str, Any] = field(default_factory=dict)
    """Values of knobs in the trace, used where no configuration names them."""
    summary: HarnessSummary | None = None
    localization: dict[str, Any] | None = None
    """`attempt1Mode`, `trialRecoveryMode`, `finalFailureMode`, verbatim."""
    patch: list[PatchedFile] | None = None
    """Files that the agent changed; an empty list is a patch known to be empty."""
    patch_text_bytes: int | None = None
    gold_patch: list[PatchedFile] | None = None
    verification: Verification | None = None
    reward: float | None = None
    rewards: dict[str, float] | None = None
    """Every reward by name, where a verifier gives more than one."""
    exit_status: str | None = None
    ending: Ending | None = None
    """`exit_status`, in the harness's own words, by what it means there."""
    timed_out: bool | None = None
    agent_started: bool | None = None
    """The agent's program ran. False where a shell or the harness says that it was not there."""
    fault: str | None = None
    """Fault of the machine that ended the agent or the verifier: `out of memory`, `disk full`, `no container`."""
    reward_counts: bool | None = None
    """The harness's own word on whether its reward is valid."""
    exception: str | None = None
    """Type of what ended the agent or its harness."""
    started_at: int | None = None
    ended_at: int | None = None
    wall_time_s: float | None = None
    agent_time_s: float | None = None
    """Time of the agent itself, without environment, set-up and verification."""
    input_tokens: int | None = None
    """All input of the agent, with what was read from a cache. Usage as the harness recorded it is kept beside the
    session's own, never summed with it."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    """Part of `input_tokens`."""
    cost_usd: float | None = None
    other_input_tokens: int | None = None
    """Usage of graders, simulated users and runs that were thrown away, which is no part of the agent's."""
    other_output_tokens: int | None = None
    other_cost_usd: float | None = None
    replaced_cost_usd: float | None = None
    """Dollars that the harness took from an agent that prices models of other makers as its own: not believed."""
    ratings: dict[str, Any] | None = None
    """Judgements of people or of the harness about the attempt, by name."""
    statements: list[Statement] = field(default_factory=list, name="said")
    """The column `facts` keeps them as `said`, so that a store written before can be read."""
    kinds: list[str] = field(default_factory=list)
    """Kinds of files there are: `stdout`, `result_json`, `verifier_report`, `gold_patch`, `patch`, `harness_config`,
    `harbor_result`, `session_jsonl`, `attempt_log`, `eval_history`."""
    conflicts: list[str] = field(default_factory=list)
    """Fields that two parts say differently; the most specific part was believed."""

    @property
    def has_transcript(self) -> bool:
        """True where the attempt's own conversation was collected."""
        return "session_jsonl" in self.kinds

    def saying(self, name: str) -> list[Statement]:
        """The events that a field of this attempt rests on; of a knob, `knobs.NAME`."""
        return [s for s in self.statements if name in s.fields]


_NOT_UNITED = frozenset((
    "root", "scope", "statements", "kinds", "conflicts", "knobs", "observed", "session_id", "session_artifact",
    "only_below",
))  # fmt: skip


def merge_attempts(parts: list[Attempt]) -> Attempt:
    """Merge the parts of one attempt, the most specific first: an earlier part wins."""
    whole = Attempt(root=parts[0].root)
    unnoted = {"run_id"}  # the run that an evaluation was is another one than the run it evaluates
    for part in parts:
        for name in Attempt.__struct_fields__:
            value = getattr(part, name)
            if name in _NOT_UNITED or value is None or (part.scope == "lent" and name == "attempt_index"):
                continue
            earlier = getattr(whole, name)
            if earlier is None:
                setattr(whole, name, value)
            elif name == "rewards":
                whole.rewards = {**value, **earlier}
            elif isinstance(earlier, Verification):
                # Merge two reports of one verification. A failure in either one counts.
                fuller = earlier if earlier.fixed is not None or value.fixed is None else value
                status = earlier.status if earlier.status != "ok" else value.status
                lists = {n: v for n in Verification.__struct_fields__ if (v := getattr(earlier, n)) is not None}
                facts = {
                    "status": status,
                    "layout": fuller.layout,
                    "message": (earlier if earlier.status == status else value).message
                    or earlier.message
                    or value.message,
                }
                whole.verification = msgspec.structs.replace(value, **lists | facts)
                if whole.verification.status == "not_run" and whole.verification.ran:
                    whole.verification.status, whole.verification.message = "ok", ""
            elif type(value) in (int, float, str, bool) and earlier != value and name not in unnoted:
                whole.conflicts.append(name)
                unnoted.add(name)
        for name, value in part.knobs.items():
            if whole.knobs.setdefault(name, value) != value and f"knobs.{name}" not in whole.conflicts:
                whole.conflicts.append(f"knobs.{name}")
        whole.statements += [s for s in part.statements if s not in whole.statements]
        whole.kinds += [k for k in part.kinds if k not in whole.kinds]
    for part in parts:
        for name, value in part.observed.items():
            whole.knobs.setdefault(name, value)
    return whole


def copy_attempt(part: Attempt) -> Attempt:
    """Copy a part so that it can be changed."""
    statements = [msgspec.structs.replace(s, fields=list(s.fields)) for s in part.statements]
    return msgspec.structs.replace(part, statements=statements, kinds=list(part.kinds), knobs=dict(part.knobs))


MAIN = "main"
"""The thread of the conversation with the person; any other thread is a subagent's id."""

ABANDONED = "abandoned"
"""Thread of what was done on a branch that the person went back from: paid for, but no part of how it ended."""
REPLAYED = "replayed"
"""Thread of a history copied from a session that is not among the files read."""
SESSION_TOTAL = "session_total"
"""Stop reason of a closing step: no model call, but what the log's totals say beyond the calls it tells of."""
ITERATION = "iteration_"
"""Beginning of the stop reason of a model call behind another one's message (`iteration_advisor_message`): it is paid
for by itself, and its prompt is no context of the thread."""
RULES = "rules"
"""The labeller that needs no model: stands in where nobody else judged, and is never pooled with those who did."""
CLASSIFIER = "classifier"
"""The labeller by a small model that the package carries; `classifier:FILE` is by somebody's own."""
ENCODER = "encoder"
"""Labeller with a sentence encoder and a small model."""
VADER = "vader"
"""Labeller by a sentiment classifier off the shelf."""
_LEAST_TRUSTED = (VADER, RULES, CLASSIFIER, ENCODER)
NO_SUBAGENT = frozenset((MAIN, ABANDONED, REPLAYED))

Context = Literal["product", "eval"]
TurnKind = Literal[
    "prompt", "queued_prompt", "rejection_feedback", "slash_command", "plan_handoff", "attachment", "scripted_prompt",
]  # fmt: skip
"""Beginning of a turn. `scripted_prompt`: a prompt of a program that drives the agent, so nobody's words."""
UNSPOKEN: frozenset[TurnKind] = frozenset(("plan_handoff", "attachment", "scripted_prompt"))
"""Turns without words of a person."""
EventKind = Literal[
    "human_turn", "interrupt", "thinking", "text", "tool_call", "tool_result", "compaction", "model_change",
    "settings_change", "resume", "command_output", "notification", "hook_block", "user_shell", "external_edit",
    "api_error", "phase", "rewind", "meta", "harness", "unknown",
]  # fmt: skip
"""`harness` is what the harness or the verifier of an eval run said. At a `rewind` the person went back; what was left
has the thread `abandoned`.

`unknown` is a record that was readable but is not understood: kept whole as text, and counted."""

ToolClass = Literal["read", "search", "edit", "shell", "test", "plan", "task", "web", "ask", "mcp", "other"]
ToolPurpose = Literal[
    "find_files", "write_file", "add_task", "plan_handoff", "plan_mode", "skill", "tool_search", "poll",
]  # fmt: skip
"""Purpose of a tool, finer than its class, where signals need it: find files by name, write a whole file, add a task to
a list, show the person a plan and wait for approval, start planning, use a skill, search for tools, poll something that
runs."""
Convention = Literal["thinking_not_logged", "phases_logged", "usage_logged_midway", "rewinds_logged"]
"""Logging habits of an agent, by which missing data can be interpreted: it never logs thinking; it logs the phases it
announces; it may log usage before the answer is complete; it keeps what the person went back from."""
ShellKind = Literal["test", "build", "vcs", "read", "search", "write", "run"]
CallStatus = Literal["ok", "error", "rejected", "cancelled", "unknown", "none"]
"""Success of a call. `unknown`: it has a result, and the trace does not tell; `none`: it has no result."""
RAN: frozenset[CallStatus] = frozenset(("ok", "unknown"))
"""Statuses of calls that are taken to have done what was asked."""
CallOutcome = Literal[
    "done", "nothing_found", "exit_nonzero", "error_result", "timed_out", "refused", "cancelled",
]  # fmt: skip
"""End of a call, in the same words for every agent (design/formats.md#how-a-call-ended). The first two are `ok`, the
next three `error`; `refused` is by a person."""
EditOp = Literal["create", "modify", "delete", "rename"]
EditOrigin = Literal["written", "copied", "repository", "network", "package", "program"]
"""Source of the text of a shell command's edit: the command itself; another file; a state of the repository (`git
checkout REF -- FILE`, `git stash`); a download; a package; or a program, and only the file is known."""

AbsentReason = Literal[
    "not_applicable", "missing_artifact", "missing_field", "not_computable", "none_found",
    "dependency_null", "backend_disabled", "censored", "parse_error",
]  # fmt: skip


class Absent(Struct, frozen=True, gc=False):
    """A value that is missing, and why. Never 0, never an empty list."""

    reason: AbsentReason
    detail: str = ""

    def __bool__(self) -> bool:
        return False


class Turn(Struct, gc=False, kw_only=True):
    """One human prompt; it lasts until the next."""

    turn: int
    kind: TurnKind
    text: str
    n_tokens: int
    timestamp: int | None
    model: str | None
    seq: int

    @property
    def is_prompt(self) -> bool:
        """True where the person said it. A plan that goes on in a fresh context is the agent's; a script's prompt is
        nobody's."""
        return self.kind not in ("plan_handoff", "scripted_prompt")


class Step(Struct, gc=False, kw_only=True):
    """One model API call, however many lines it was logged on. `input_tokens` never counts cached tokens."""

    step: int
    turn: int | None
    thread: str
    seq: int
    message_id: str | None
    model: str | None
    timestamp: int | None
    stop_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    """`recorded`, the version of the price list that was applied, or `own-` and a mark of the person's price file."""
    replaced_cost_usd: float | None = None
    """Dollars that the agent recorded and that are not believed: it prices models of other makers as its own."""
    cache_write_1h_tokens: int | None = None
    """Part of `cache_write_tokens` kept for an hour, which costs more; None when the trace does not tell."""
    input_in_step: int | None = None
    """The closing step whose input, and output where none stands here, holds this call's too."""
    speed: str | None = None
    """`fast` where the call was made so; as the provider names it. None: standard."""
    service_tier: str | None = None
    """Name by the provider (`priority`, `batch`); None: standard."""
    inference_geo: str | None = None
    """Required place of computation (`us`); None: anywhere."""
    web_searches: int | None = None
    """Searches of the provider that are paid for each."""
    unpriced: str | None = None
    """Part of the call that the price table lacks: `cost_usd` is too low by that."""
    summed_calls: int | None = None
    """For a closing step of a subagent whose work is not logged: its tool calls, as the log counts them."""
    summed_tokens: int | None = None
    """Its tokens, of which the log tells neither kind nor model."""

    @property
    def is_beside(self) -> bool:
        """True where its prompt is not the thread's context: totals of a run, a call behind a message."""
        return self.stop_reason is not None and self.stop_reason.startswith((SESSION_TOTAL, ITERATION))


class Event(Struct, gc=False, kw_only=True):
    """Anything that happened, in file order (`seq`). `line` is 1-based; in a one-document file the record's ordinal."""

    seq: int
    turn: int | None
    step: int | None
    thread: str
    kind: EventKind
    text: str | None
    n_chars: int
    """Length of the text as found; more than `len(text)` when a long tool result was cut for keeping."""
    timestamp: int | None
    artifact_id: str
    line: int


class ToolCall(Struct, gc=False, kw_only=True):
    """A tool call with its result. `seq` is its event, `result_seq` its result's event."""

    seq: int
    turn: int | None
    step: int | None
    thread: str
    call_id: str
    name: str
    class_: ToolClass = field(name="class")
    shell_kind: ShellKind | None = None
    path: str | None = None
    command: str | None = None
    arguments: str = ""
    """The arguments as JSON text, as logged."""
    status: CallStatus = "none"
    outcome: CallOutcome | None = None
    """None where there is no result, or the trace does not tell how the call ended."""
    error_class: str | None = None
    exit_code: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    result_tokens: int | None = None
    """ceil(characters / 4) of the result text (design/signals.md#units)."""
    result_seq: int | None = None
    purpose: ToolPurpose | None = None
    argument_roles: str | None = None
    """Names of arguments by what they hold (`Roles`, as JSON). Texts of edits are kept once, in the arguments."""
    ran_s: float | None = None
    """Run time without hooks and waiting for approval, by its result or by records that date its start; None when the
    log does not tell."""
    limit_s: float | None = None
    """Time limit by its arguments; None when they don't tell."""
    hooks_s: float | None = None
    """Run time of its hooks, before and after it; None when the log has none."""
    not_before: int | None = None
    """Moment before which it did not run: a hook before it, or the question for permission, has this time."""


class Edit(Struct, gc=False, kw_only=True):
    """One changed hunk of a file, context lines trimmed; line numbers as the file was right after the call."""

    seq: int
    turn: int | None
    thread: str
    call_id: str
    path: str
    op: EditOp
    via: Literal["edit_tool", "shell"]
    hunk: int = 0
    start_line: int | None = None
    end_line: int | None = None
    added: int | None = None
    removed: int | None = None
    old_start: int | None = None
    """First removed line before the call; None when the trace has no line numbers."""
    whole_file: bool = False
    origin: EditOrigin | None = None
    """Source of a shell command's text; None for an edit tool, whose arguments hold it, and where none came in."""
    source: str | None = None
    """The file, revision, address, package or program that the text is from; None where it stands in the call."""


class Checkpoint(Struct, gc=False, kw_only=True):
    """Record of a collector (Entire) beside a transcript: an independent second opinion."""

    checkpoint_id: str
    created_at: int | None = None
    branch: str | None = None
    agent_lines: int | None = None
    human_added: int | None = None
    human_modified: int | None = None
    human_removed: int | None = None
    total_committed: int | None = None
    agent_percentage: float | None = None
    files_touched: list[str] | None = None
    transcript_start: int | None = None
    """Line (0-based) of the transcript at which the recorded slice begins; None when it was not recorded."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    api_calls: int | None = None


class Label(Struct, gc=False, kw_only=True):
    """A judgement by a rule, a model or a person, of a session or of one event in it."""

    task: str
    """Question that was judged: `sentiment`, `trail_error` …"""
    labeller: str
    turn: int | None
    value: str
    reason: str | None = None
    prompt_hash: str | None = None
    """Version of the prompt a model was asked with."""
    model: str | None = None
    """The model that was asked for."""
    served_model: str | None = None
    """The model that answered, as its server says, with the server's fingerprint in parentheses where it gives one."""
    created_at: int | None = None
    seq: int | None = None
    """The event it is about; None when it is about the turn or the whole session."""
    number: float | None = None
    """The value where it is a score."""
    detail: str | None = None
    """Further statements of the labeller, as JSON."""


class Artifact(Struct, gc=False, kw_only=True):
    """A file as found, with every record in it accounted for."""

    artifact_id: str
    source: str
    path: str
    format: str | None
    sha256: str
    bytes: int
    mtime_ns: int | None = None
    records: int = 0
    skipped: int = 0
    skipped_reasons: dict[str, int] = field(default_factory=dict)
    """Reasons why records were skipped; and, not in `skipped`, why values of records that were read are absent: they
    could not be true (`impossible_tokens` …) or stored (`unsound_text`)."""
    record_kinds: dict[str, int] = field(default_factory=dict)
    """Records of each kind that were read, including those that leave no event (hook ticks, snapshots)."""
    note: str | None = None
    dataset: str | None = None
    """OWNER/NAME of the data set on the Hub that it is a file of."""
    revision: str | None = None
    """The commit of the data set, whatever branch was asked for."""
    config: str | None = None
    split: str | None = None


class Session(Struct, kw_only=True):
    """One conversation of a person or harness with an agent."""

    session_id: str
    context: Context
    format: str
    agent: str
    artifact_id: str
    agent_version: str | None = None
    model: str | None = None
    repo: str | None = None
    cwd: str | None = None
    branch: str | None = None
    parent_session_id: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    title: str | None = None
    conventions: list[Convention] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    """Judgements that came with the trace; those made here are kept apart."""
    attempt: Attempt | None = None
    """The eval run that this session is, in the eval context."""


def labeller_rank(labeller: str) -> int:
    """Return a labeller's rank, by its name: one off the shelf, rules, the classifier, it with an encoder, then people
    and language models, which have one rank."""
    kind = labeller.partition(":")[0]
    return _LEAST_TRUSTED.index(kind) if kind in _LEAST_TRUSTED else len(_LEAST_TRUSTED)


# Roles of arguments


class Roles(Struct, frozen=True, kw_only=True, omit_defaults=True, cache_hash=True):
    """Names of a tool's arguments by what they hold, from an agent's profile. Several names of one role are spellings;
    the first one present counts."""

    replace: tuple[tuple[str, str], ...] = ()
    """Pairs: a text of the file, and what it becomes."""
    whole: tuple[str, ...] = ()
    """A file's new text from beginning to end."""
    part: tuple[str, ...] = ()
    """A text that comes in at a line, at the end, or at a place that is not said."""
    patch: tuple[str, ...] = ()
    """A patch of one file or several."""
    several: tuple[str, ...] = ()
    """A list of edits, each an object of the roles above."""
    everywhere: tuple[str, ...] = ()
    """True-like where each place of the old text is meant, not one."""
    line: tuple[str, ...] = ()
    """The number of lines before the part that comes in."""
    deed: str = ""
    """Operation: `create` makes the file anew, `append` puts the part at its end."""

    manner: tuple[str, ...] = ()
    """Options of how a command is run: for how long, in the background."""

    steps: tuple[str, ...] = ()
    """A list of things to do, written whole."""
    plan: tuple[str, ...] = ()
    """A plan in prose."""
    step: tuple[str, ...] = ()
    """The words of one thing to do: of an item of the list, or of a task that is put on it by itself."""
    task: str = ""
    """The task that a call changes."""
    task_name: str = ""
    state: str = ""
    waits_for: str = ""
    """Tasks that must be done before it."""
    holds_up: str = ""
    """Tasks that must be done after it."""

    question: str = ""
    questions: str = ""
    """A list of objects that each have a question."""


@cache
def encode_roles(roles: Roles) -> str:
    return msgspec.json.encode(roles).decode()


@cache
def decode_roles(text: str | None) -> Roles:
    """Decode the roles of a call; none where it has none. Few tools have any: each is decoded once."""
    return msgspec.json.decode(text, type=Roles) if text is not None else Roles()


# Times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = EPOCH.toordinal()
_HOUR_US = 3_600_000_000
_TWO = tuple(f"{n:02d}" for n in range(100))
"""Numbers of two digits. Signals write a time for every edit and turn; a `datetime` each costs three times as much."""


EARLIEST = 946_684_800_000_000
"""2000: no coding agent is older, and a number of seconds taken for milliseconds falls before it."""
LATEST = 4_102_444_800_000_000
"""2100: a file's time may be wrong by a clock, not by a lifetime."""
IMPOSSIBLE = -(2**62)
"""Stands for a logged time that is none; `formats.soundness` counts it and takes it out."""


_EARLIEST_MS = EARLIEST // 1000
_DIGITS = deferred_pattern(r"[0-9]{9,19}(?:\.[0-9]{1,9})?")
_ZONE = deferred_pattern(r"\s+([+-][0-9]{2}:?[0-9]{2})(?:\s+[A-Z]{1,5})?\Z")
_UTC = deferred_pattern(r"\s*(?:UTC|GMT|z)\Z")


def from_iso(text: str | None) -> int | None:
    """Parse an ISO 8601 time; a naive one is UTC. None when it is missing or invalid."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)) - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def logged_iso(text: str | None) -> int | None:
    """Parse a logged time, usually ISO 8601: None when it is missing, `IMPOSSIBLE` when it is invalid."""
    if not text:
        return None
    at = from_iso(text)
    return logged_time(text) if at is None else at


def logged_ms(value: object) -> int | None:
    """Parse a logged time, usually milliseconds since 1970: None when missing, `IMPOSSIBLE` when invalid."""
    if value is None:
        return None
    if type(value) is int and _EARLIEST_MS <= value <= LATEST // 1000:
        return value * 1000
    return logged_time(value)


def logged_seconds(value: object) -> int | None:
    """Parse a logged time, usually seconds since 1970: None when missing, `IMPOSSIBLE` when invalid."""
    return logged_time(value)


def logged_time(value: object) -> int | None:
    """Parse a logged time in any form: None when missing, `IMPOSSIBLE` when invalid.

    A number, or a text of one, is of seconds, milliseconds, microseconds or nanoseconds by its size. A text may be ISO
    8601 with a zone as programs print it.
    """
    if value is None or isinstance(value, bool):
        return None if value is None else IMPOSSIBLE
    if isinstance(value, str):
        text = value.strip()
        if _DIGITS.fullmatch(text) is None:
            zoned = _UTC.sub("+00:00", _ZONE.sub(r"\1", text))
            at = from_iso(zoned)
            return IMPOSSIBLE if at is None else at
        value = float(text) if "." in text else int(text)
    if not isinstance(value, int | float):
        return IMPOSSIBLE
    for unit_us in (1_000_000, 1000, 1):
        if EARLIEST <= value * unit_us <= LATEST:
            return int(value * unit_us)
    return int(value // 1000) if EARLIEST * 1000 <= value <= LATEST * 1000 else IMPOSSIBLE


def to_iso(at: int | None) -> str | None:
    """RFC 3339 UTC with milliseconds."""
    if at is None:
        return None
    hour = at // _HOUR_US
    ms = at // 1000 - hour * 3_600_000
    second = ms // 1000
    ms %= 1000
    return f"{_hour(hour)}{_TWO[second // 60]}:{_TWO[second % 60]}.{ms // 100}{_TWO[ms % 100]}Z"


@lru_cache(maxsize=256)
def _hour(hour: int) -> str:
    return f"{date.fromordinal(_EPOCH_DAY + hour // 24).isoformat()}T{_TWO[hour % 24]}:"
