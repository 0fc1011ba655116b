"""What a trace becomes: a session and the rows that belong to it, the same in memory as in the store.

Times are integers, microseconds since 1970 UTC. A missing fact is None here and NULL in the store; a signal that
can't be computed is `Absent` and says why. Field order is column order.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from agentsignals.model.attempt import Attempt

MAIN = "main"
"""The thread of the conversation with the person; any other thread is a subagent's id."""

ABANDONED = "abandoned"
"""Thread of what was done on a branch that the person went back from: paid for, but no part of how it ended."""
REPLAYED = "replayed"
"""Thread of a history copied from a session that is not among the files read."""
SESSION_TOTAL = "session_total"
"""Stop reason of a closing step: no model call, but what the log's totals say beyond the calls it tells of."""
RULES = "rules"
"""The labeller that needs no model: stands in where nobody else judged, and is never pooled with those who did."""
CLASSIFIER = "classifier"
"""The labeller by a small model that the package carries; `classifier:FILE` is by somebody's own."""
ENCODER = "encoder"
"""The same with a sentence encoder."""
_LEAST_TRUSTED = (RULES, CLASSIFIER, ENCODER)
NO_SUBAGENT = frozenset((MAIN, ABANDONED, REPLAYED))

Context = Literal["product", "eval"]
TurnKind = Literal[
    "prompt", "queued_prompt", "rejection_feedback", "slash_command", "plan_handoff", "attachment", "scripted_prompt",
]  # fmt: skip
"""What a turn begins with. `scripted_prompt`: what a program asked for that drives the agent, so nobody's words."""
UNSPOKEN: frozenset[TurnKind] = frozenset(("plan_handoff", "attachment", "scripted_prompt"))
"""Turns without words of a person."""
EventKind = Literal[
    "human_turn", "interrupt", "thinking", "text", "tool_call", "tool_result", "compaction", "model_change",
    "command_output", "notification", "hook_block", "user_shell", "external_edit", "api_error", "phase", "meta",
    "harness", "unknown",
]  # fmt: skip
"""`harness` is what the harness or the verifier of an eval run said.

`unknown` is a record that was readable but is not understood: kept whole as text, and counted."""

ToolClass = Literal["read", "search", "edit", "shell", "test", "plan", "task", "web", "ask", "mcp", "other"]
ToolPurpose = Literal[
    "find_files", "write_file", "add_task", "plan_handoff", "plan_mode", "skill", "tool_search", "poll",
]  # fmt: skip
"""What a tool is for, finer than its class, where signals ask for it: to find files by name, to write one whole, to put
one task on a list, to show the person a plan and wait for leave, to begin planning, to use a skill, to look for tools,
to see whether something that runs has ended."""
Convention = Literal["thinking_not_logged", "phases_logged", "usage_logged_midway"]
"""How an agent logs, so that what is missing can be read: it never logs thinking; it logs the phases it announces; its
usage may be logged before the answer is whole."""
ShellKind = Literal["test", "build", "vcs", "read", "search", "write", "run"]
CallStatus = Literal["ok", "error", "rejected", "cancelled", "unknown", "none"]
"""Whether a call failed. `unknown`: it has a result, and the trace does not say; `none`: it has no result."""
RAN: frozenset[CallStatus] = frozenset(("ok", "unknown"))
"""What is taken to have done what it was asked to."""
CallOutcome = Literal[
    "done", "nothing_found", "exit_nonzero", "error_result", "timed_out", "refused", "cancelled",
]  # fmt: skip
"""How a call ended, in the same words for every agent (design/formats.md#how-a-call-ended). The first two are `ok`, the
next three `error`; who refused is a person."""
EditOp = Literal["create", "modify", "delete", "rename"]
EditOrigin = Literal["written", "copied", "repository", "network", "package", "program"]
"""Where the text of a shell command's edit is from: it stands in the command; another file; a state of the repository
(`git checkout REF -- FILE`, `git stash`); a download; a package; or a program made it, and only the file is known."""

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
        """Whether the person said it: a plan that goes on in a fresh context is the agent's, a script's no person's."""
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
    """`recorded`, or the version of the price table that was applied."""
    cache_write_1h_tokens: int | None = None
    """Those of `cache_write_tokens` kept for an hour, which cost more; None when the trace does not say."""
    input_in_step: int | None = None
    """The closing step whose input, and output where none stands here, holds this call's too."""
    speed: str | None = None
    """`fast` where the call was made so; as the provider names it. None: standard."""
    service_tier: str | None = None
    """As the provider names it (`priority`, `batch`); None: standard."""
    inference_geo: str | None = None
    """Where the call had to be computed (`us`); None: anywhere."""
    web_searches: int | None = None
    """Searches of the provider that are paid for each."""
    unpriced: str | None = None
    """What of the call the price table lacks: `cost_usd` is too low by that."""
    summed_calls: int | None = None
    """Of a closing step for a subagent whose work is not logged: its tool calls, as the log counts them."""
    summed_tokens: int | None = None
    """Its tokens, of which the log tells neither kind nor model."""


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
    """None where there is no result, or the trace does not say what became of the call."""
    error_class: str | None = None
    exit_code: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    result_tokens: int | None = None
    """ceil(characters / 4) of the result text (design/signals.md#units)."""
    result_seq: int | None = None
    purpose: ToolPurpose | None = None
    argument_roles: str | None = None
    """Which of the arguments hold what (`roles.Roles`, as JSON): texts of edits stand there, and are kept once."""
    ran_s: float | None = None
    """How long it ran as its result says, without a wait for leave; None when the log does not say."""
    limit_s: float | None = None
    """How long it was let run, as its arguments say; None when they don't."""


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
    """Where the removed lines began before the call; None when the trace has no line numbers."""
    whole_file: bool = False
    origin: EditOrigin | None = None
    """Of a shell command's edit, where its text is from; None of an edit tool's, whose arguments hold it, and where
    none came in."""
    source: str | None = None
    """The file, revision, address, package or program that the text is from; None where it stands in the call."""


class Checkpoint(Struct, gc=False, kw_only=True):
    """What a collector (Entire) recorded beside a transcript; an independent second opinion."""

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
    """What was judged: `sentiment`, `trail_error` …"""
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
    """What else the labeller said, as JSON."""


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
    """Why records were skipped; and, in no `skipped`, why values of records that were read are absent: what could not
    be true (`impossible_tokens` …) or stored (`unsound_text`)."""
    record_kinds: dict[str, int] = field(default_factory=dict)
    """How many records of each kind were read, those that leave no event (hook ticks, snapshots) included."""
    note: str | None = None


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
    """What is known of the run this session is, in the eval context."""


def trust(labeller: str) -> int:
    """The rank of a labeller, by its name: rules give way to the classifier, it to one with an encoder, and each to
    people and language models, which are of one rank."""
    kind = labeller.partition(":")[0]
    return _LEAST_TRUSTED.index(kind) if kind in _LEAST_TRUSTED else len(_LEAST_TRUSTED)
