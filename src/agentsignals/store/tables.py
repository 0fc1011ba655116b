"""Columns of every table, derived from the model's structs, so that a field is declared once.

Nothing heavy is loaded: SQL needs only the names. `store.parquet` fills the columns with pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

from agentsignals.model import (
    MAIN,
    NO_SUBAGENT,
    Artifact,
    Checkpoint,
    Edit,
    Event,
    Label,
    Session,
    Step,
    ToolCall,
    Turn,
)
from agentsignals.views.usage import (
    CacheLoss,
    Charge,
    RepeatedCall,
    cost_of,
    cost_source,
    replaced_usd,
    unpriced_parts,
    usage_totals,
    visible_output_tokens,
)

_TIME = "timestamp[us]"
_TIMES = frozenset(("timestamp", "started_at", "ended_at", "created_at", "authored_at", "committed_at", "not_before"))
_KINDS = {"int": "int64", "float": "double", "bool": "bool", "list[str]": "list<string>"}
_HEADER = (
    "session_id", "context", "format", "agent", "agent_version", "model", "repo", "cwd", "branch", "parent_session_id",
    "started_at", "ended_at",
)  # fmt: skip


class SignalRow(Struct, gc=False, kw_only=True):
    """One value of one signal, in the long form."""

    level: str
    session_id: str | None
    trial_id: str | None
    attempt_index: int | None
    turn: int | None
    signal: str
    value: str | None
    """The value as JSON; NULL when absent."""
    number: float | None
    """The value when it is a number or a truth value."""
    absent: str | None
    absent_detail: str | None
    version: int
    detail: str | None
    """Numerator, denominator, method, confidence, as JSON."""


class AttemptRow(Struct, gc=False, kw_only=True):
    """An attempt of a trial, with the values that comparisons need; NULL where absent (`signals` says why)."""

    trial_id: str | None
    attempt_index: int | None
    session_id: str
    task_id: str | None
    run_id: str | None
    is_last: bool | None
    attempt1_tool_cap: int | None
    retry_tool_cap: int | None
    effective_tool_cap: int | None
    """The one of the two caps that this attempt ran under."""
    agent_type: str | None
    model_id: str | None
    dataset: str | None
    concurrency: int | None
    timeout_s: int | None
    knobs: str
    """The treatment as configured, as JSON."""
    outcome: str | None
    """solved and failed were judged; agent_not_started, verifier_not_run, infrastructure and not_judged were not."""
    outcome_reason: str | None
    """Cause of the outcome: tests, no_artifact, time, budget, or what broke."""
    outcome_shown_by: str | None
    """Line of the run's files that shows the outcome."""
    agent_started: bool | None
    """The agent's program ran."""
    agent_acted: bool | None
    """The agent called a tool."""
    verifier_started: bool | None
    """A test ran, or the verifier ended by itself."""
    tests_passed: int | None
    """Tests that passed in the verifier's run."""
    tests_failed: int | None
    """Tests that failed in the verifier's run."""
    reward: float | None
    """NULL where nobody judged; `facts` keeps the number that was recorded."""
    patch_outcome_label: str | None
    fail_to_pass_count: int | None
    pass_to_fail_count: int | None
    pass_to_pass_count: int | None
    fail_to_fail_count: int | None
    patch_applies: bool | None
    wall_time_s: float | None
    agent_time_s: float | None
    timed_out: bool | None
    exit_status: str | None
    harness_input_tokens: int | None
    """All input of the agent as its harness counted it, cached input included; `sessions.input_tokens` has none of
    it."""
    harness_output_tokens: int | None
    harness_cache_read_tokens: int | None
    """Part of `harness_input_tokens` that was read from a cache."""
    harness_cost_usd: float | None
    """Dollars of the agent's calls as its harness recorded them."""
    harness_other_input_tokens: int | None
    """Input of graders, simulated users and runs that were thrown away, cached input included; in no other column."""
    harness_other_output_tokens: int | None
    harness_other_cost_usd: float | None
    """Dollars of graders, simulated users and runs that were thrown away; in no other column."""
    has_transcript: bool
    facts: str
    """Everything that is known of the attempt, as JSON."""


class CommitRow(Struct, gc=False, kw_only=True):
    """A commit of a repository's code. Counts of added lines are there once it was attributed
    (design/attribution.md#replay)."""

    repo: str
    """Its folder or address."""
    commit_sha: str
    parent_sha: str | None
    authored_at: int
    committed_at: int
    author: str
    subject: str
    is_merge: bool
    checkpoint_ids: list[str]
    relation: str | None
    """To its checkpoints: `original`, `rewritten`, `further`, `copy`; `by_files` without any; NULL: to no session."""
    session_ids: list[str]
    in_turn: bool | None = None
    """Made while an agent that had edited was still at work: what Entire counted then is of the turn before."""
    files: int | None = None
    added: int | None = None
    blank: int | None = None
    agent_exact: int | None = None
    agent_ws: int | None = None
    agent_shell: int | None = None
    agent_other_session: int | None = None
    human_observed: int | None = None
    preexisting: int | None = None
    moved: int | None = None
    generated: int | None = None
    unknown: int | None = None
    agent_low: float | None = None
    """Share of the authored lines (not blank, and none of preexisting, moved, generated) that is surely an agent's."""
    agent_high: float | None = None
    """1 - the share that only a person can have written."""
    agent_likely: float | None = None
    """Estimate between the two: an unknown line counts for half. NULL where every line is unknown."""
    mode: str | None = None
    recorded_percentage: float | None = None
    """Entire's own figure, of the one session it is about; NULL where several sessions have one."""
    recorded_agent_lines: int | None = None
    """The agent's lines by the same record, blank ones too: its percentage may count files not in the commit."""
    recorded_mode: str | None = None
    flags: list[str] = []
    """Reasons why the recorded figure may be off: `in_turn`, `several_sessions`, `total_differs`, `metric_v2`,
    `no_record`, `not_original`."""
    written: int | None = None
    """Lines that agents wrote since the linked commit before, in all files of the working tree."""
    rewritten: int | None = None
    """Lines of `written` that the session that wrote them removed again."""
    written_in_files: int | None = None
    """Lines of `written` in the files that the commit changed."""
    rewritten_in_files: int | None = None
    """Lines of `rewritten` in these files."""
    kept: int | None = None
    """Lines of these that the commit added."""


class LineRow(Struct, gc=False, kw_only=True):
    """A line that a commit added, and whose it is."""

    repo: str
    commit_sha: str
    path: str
    line: int
    """1-based, in the file as committed."""
    tag: str
    session_id: str | None
    seq: int | None
    """The tool call that wrote it."""
    is_blank: bool
    alive: bool | None
    """True where `git blame` still finds it at the head; NULL when the head does not descend from the commit."""


class FindingRow(Struct, gc=False, kw_only=True):
    """A finding of a scanner that a commit introduced, fixed or moved, or that was there when somebody looked."""

    repo: str
    commit_sha: str
    """The commit; for a finding that is just `present`, the commit of its line."""
    scanner: str
    scanner_version: str
    change: str
    """`introduced`, `fixed`, `moved`; `present` for a report about one state of the files."""
    rule: str
    cwe: list[str]
    severity: str
    confidence: str
    path: str
    line: int
    """1-based, in the file after the commit; of a fixed one, before it."""
    end_line: int
    moved_from: str | None
    place: str
    """`code`, or `test` for tests, samples and examples."""
    owner: str | None
    """`agent`, `human`, `unknown`, `nobody`, `context`, `unlinked` by the replay (docs/weaknesses.md); NULL of a fixed
    one."""
    tag: str | None
    session_id: str | None
    """The session that wrote the line."""
    fingerprint: str
    text: str
    message: str


class ScanRow(Struct, gc=False, kw_only=True):
    """Added lines (not blank) that a scanner looked at in a commit: what findings are divided by."""

    repo: str
    commit_sha: str
    scanner: str
    scanner_version: str
    place: str
    files: int
    skipped: int
    """Files it could not look at, before or after."""
    agent_lines: int
    """Standing in a call's arguments."""
    shell_lines: int
    """Lines inferred to be an agent's: left by a command."""
    human_lines: int
    unknown_lines: int
    nobody_lines: int
    """Moved, generated or older ones."""


class Table(Struct, frozen=True):
    """A table: its columns, and how the rows of one session fill them."""

    name: str
    columns: dict[str, str]
    rows: Callable[[Session], list[Any]] | None = None
    """The session's rows; None for a table whose rows carry their own ids."""


def _arrow(name: str, annotation: str) -> str:
    """The column type of a field, from its annotation as written; words and one-of-several-words are text."""
    if name in _TIMES:
        return _TIME  # UTC, without a zone: DuckDB needs a further package to hand out zoned times
    return _KINDS.get(annotation.removesuffix(" | None"), "string")


def _rows_table(name: str, struct: type[Struct], rows: Callable[[Session], list[Any]] | None) -> Table:
    """The table of a struct: a column a field, named as the field is encoded."""
    pairs = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    columns = {"session_id": "string"} if rows is not None else {}
    columns |= {column: _arrow(attr, struct.__annotations__[attr]) for attr, column in pairs}
    return Table(name, columns, rows)


_KINDS_OF_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_COUNTED = ("n_turns", "n_prompts", "n_steps", "n_tool_calls", "n_edits", *_KINDS_OF_TOKENS, "visible_output_tokens")
_PARTS_OF_LEDGER = ("main", "subagent")
_COSTS = ("recorded_cost_usd", "replaced_cost_usd", *(f"{part}_cost_usd" for part in _PARTS_OF_LEDGER))
_TOKENS = (*(f"{part}_{kind}" for part in _PARTS_OF_LEDGER for kind in _KINDS_OF_TOKENS), "subagent_summed_tokens")
_OF_MONEY = ("cost_source", "unpriced")


def totals(session: Session) -> dict[str, Any]:
    """The counted columns of a session: the main thread's own events, subagents' calls beside them.

    Tokens and money are those of all model calls, as in `steps`; what is neither `main_…` nor `subagent_…` was used on
    branches that were left. None, not 0, for an attempt whose conversation was not collected.
    """
    if session.attempt is not None and not session.attempt.has_transcript:
        return dict.fromkeys((*_COUNTED, "cost_usd", "n_subagent_tool_calls", *_COSTS, *_TOKENS, *_OF_MONEY))
    steps = session.steps
    main = [s for s in steps if s.thread == MAIN]
    others = [s for s in steps if s.thread not in NO_SUBAGENT]
    whole = usage_totals(steps)
    figures = {
        "n_turns": len(session.turns),
        "n_prompts": sum(turn.is_prompt for turn in session.turns),
        "n_steps": sum(not s.is_beside for s in main),
        "n_tool_calls": sum(1 for c in session.tool_calls if c.thread == MAIN),
        "n_edits": len({(e.seq, e.path) for e in session.edits if e.thread == MAIN}),
        "n_subagent_tool_calls": sum(1 for c in session.tool_calls if c.thread not in NO_SUBAGENT)
        + sum(s.summed_calls or 0 for s in others),
        "subagent_summed_tokens": sum(s.summed_tokens or 0 for s in others) or None,
        "visible_output_tokens": visible_output_tokens(session),
        **structs.asdict(whole),
        "recorded_cost_usd": cost_of([s for s in steps if s.cost_source == "recorded"]) if steps else None,
        "replaced_cost_usd": replaced_usd(steps),
        "cost_source": cost_source(steps),
        "unpriced": unpriced_parts(steps),
    }
    for part, part_steps in zip(_PARTS_OF_LEDGER, (main, others), strict=True):
        sums = whole if len(part_steps) == len(steps) else usage_totals(part_steps)
        figures |= {f"{part}_{name}": value for name, value in structs.asdict(sums).items()}
    return figures


SESSIONS: dict[str, str] = (
    {n: _TIME if n in _TIMES else "string" for n in _HEADER}
    | dict.fromkeys(_COUNTED, "int64")
    | {"cost_usd": "double", "artifact_id": "string", "title": "string"}
    | {"n_events": "int64", "n_subagent_tool_calls": "int64"}
    | {"trial_id": "string", "attempt_index": "int64"}
    | {"conventions": "list<string>"}
    | dict.fromkeys(_OF_MONEY, "string")
    | dict.fromkeys(_COSTS, "double")
    | dict.fromkeys(_TOKENS, "int64")
)

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        _rows_table("turns", Turn, lambda s: s.turns),
        _rows_table("steps", Step, lambda s: s.steps),
        _rows_table("events", Event, lambda s: s.events),
        _rows_table("tool_calls", ToolCall, lambda s: s.tool_calls),
        _rows_table("edits", Edit, lambda s: s.edits),
        _rows_table("checkpoints", Checkpoint, lambda s: s.checkpoints),
        _rows_table("labels", Label, lambda s: s.labels),
    )
}
ARTIFACTS = _rows_table("artifacts", Artifact, None)
SIGNALS = _rows_table("signals", SignalRow, None)
ATTEMPTS = _rows_table("attempts", AttemptRow, None)
CHARGES = _rows_table("charges", Charge, None)
REPEATED_CALLS = _rows_table("repeated_calls", RepeatedCall, None)
CACHE_LOSSES = _rows_table("cache_losses", CacheLoss, None)
OF_REPOSITORIES: dict[str, Table] = {
    "commits": _rows_table("commits", CommitRow, None),
    "line_attribution": _rows_table("line_attribution", LineRow, None),
    "weaknesses": _rows_table("weaknesses", FindingRow, None),
    "scans": _rows_table("scans", ScanRow, None),
}
"""Tables of which each repository has a file of its own (`store.repositories`)."""
FINDINGS = {
    "context": "string", "rank": "int64", "id": "string", "question": "string", "sentence": "string",
    "size": "double", "unit": "string", "share": "double", "low": "double", "high": "double", "sureness": "double",
    "validity": "double", "n": "int64", "p": "double", "q": "double", "at_least": "bool", "of_data": "bool",
    "cause": "string", "do": "string", "saves": "double", "caveat": "string", "sessions": "list<string>",
    "again": "string",
}  # fmt: skip
"""Findings of the store, in order (`store.sidecars`); `low` and `high` are the ends of the interval."""

NAMES = ("artifacts", "sessions", *TABLES, "charges", "repeated_calls", "cache_losses", "attempts", "signals")
COLUMNS: dict[str, dict[str, str]] = {
    "artifacts": ARTIFACTS.columns,
    "sessions": SESSIONS,
    **{t.name: t.columns for t in TABLES.values()},
    "charges": CHARGES.columns,
    "repeated_calls": REPEATED_CALLS.columns,
    "cache_losses": CACHE_LOSSES.columns,
    "attempts": ATTEMPTS.columns,
    "signals": SIGNALS.columns,
    **{name: t.columns for name, t in OF_REPOSITORIES.items()},
    "findings": FINDINGS,
}
"""The columns of every table, with their types as Arrow writes them."""
