"""docs/columns.md: every column of every table, its type, its unit and what it means."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import get_args

from msgspec import Struct

from agentsignals.model import (
    Artifact,
    Checkpoint,
    Edit,
    Event,
    EventKind,
    Label,
    Session,
    Step,
    ToolCall,
    Turn,
    TurnKind,
)
from agentsignals.questions.ranking import Answer
from agentsignals.store import query, tables
from agentsignals.views.usage import CacheLoss, Charge, RepeatedCall

_STRUCTS: dict[str, type[Struct]] = {
    "artifacts": Artifact,
    "sessions": Session,
    "turns": Turn,
    "steps": Step,
    "events": Event,
    "tool_calls": ToolCall,
    "edits": Edit,
    "checkpoints": Checkpoint,
    "labels": Label,
    "charges": Charge,
    "repeated_calls": RepeatedCall,
    "cache_losses": CacheLoss,
    "attempts": tables.AttemptRow,
    "signals": tables.SignalRow,
    "commits": tables.CommitRow,
    "line_attribution": tables.LineRow,
    "weaknesses": tables.FindingRow,
    "scans": tables.ScanRow,
    "findings": Answer,
}
"""Where a table's columns are declared; a field's docstring is what its column means."""
MEANINGS: dict[str, str] = {
    # keys, in most tables
    "session_id": "the session, as its agent named it",
    "turn": "the turn (a prompt and what follows), from 0; NULL before the first prompt",
    "seq": "the event, in the order of the file, from 0 within a session",
    "step": "the model call, from 0 within a session",
    "thread": "`main`, a subagent's id, `abandoned` (a branch that was left) or `replayed`",
    "artifact_id": "the file",
    "timestamp": "when",
    "model": "the model, as the log names it",
    "path": "the file that was read or changed, relative to the session's folder where it lies in it",
    "call_id": "the call, as the log names it",
    "turns.kind": ", ".join(get_args(TurnKind)),
    "events.kind": ", ".join(get_args(EventKind)),
    "text": "the words, masked",
    "line": "the line of the file, from 1; in a file that is one document the record's ordinal",
    "repo": "the repository, by owner and name or by its address or folder",
    "branch": "the Git branch",
    "created_at": "when it was made",
    "started_at": "when it began",
    "ended_at": "when it ended",
    "value": "what it was judged to be",
    "reason": "why, in the labeller's words",
    "format": "the format that it is written in",
    "trial_id": "the trial of an eval run",
    "attempt_index": "which attempt of the trial, from 0",
    "commit_sha": "the commit",
    "version": "of the rule that gave the value",
    "name": "the tool, as the agent names it",
    "n_tokens": "length of the text: runs of word characters, and punctuation marks",
    "message_id": "the answer, as the provider named it",
    "stop_reason": "why the model stopped, as logged; `session_total` for a step that closes a session's books",
    "input_tokens": "input that was neither read from a cache nor written to one",
    "output_tokens": "output as it was billed, thinking included",
    "cache_read_tokens": "input read from a cache",
    "cache_write_tokens": "input written to a cache",
    "reasoning_tokens": "of the output, thinking, where the log tells it apart",
    "cost_usd": "what it cost: as recorded, else at list price",
    # artifacts
    "artifacts.source": "the place that it was found in",
    "artifacts.path": "the file, within the source or on this machine",
    "artifacts.format": "the format that claimed it; NULL: none did",
    "artifacts.sha256": "of its bytes",
    "artifacts.bytes": "its length",
    "artifacts.mtime_ns": "when it was last changed, since 1970",
    "artifacts.records": "records (mostly lines) that it holds",
    "artifacts.skipped": "of those, the ones that gave nothing",
    "artifacts.note": "what is to be said of it",
    "artifacts.dataset": "OWNER/NAME of the data set on the Hub that it is of",
    "artifacts.revision": "the data set's commit",
    "artifacts.config": "its configuration, as the file's folder names it",
    "artifacts.split": "its split, as the file's name says it",
    # sessions
    "sessions.context": "`product` for people's sessions, `eval` for those of a harness",
    "sessions.agent": "whose session it is, by the name used here",
    "sessions.agent_version": "the agent's version",
    "sessions.model": "the model that gave most answers",
    "sessions.cwd": "the folder that it worked in",
    "sessions.parent_session_id": "the session that started it",
    "sessions.n_turns": "turns",
    "sessions.n_prompts": "turns that a person began",
    "sessions.n_steps": "model calls of the main thread",
    "sessions.n_tool_calls": "tool calls of the main thread",
    "sessions.n_edits": "changes of a file by one call, of the main thread",
    "sessions.n_events": "events",
    "sessions.n_subagent_tool_calls": "tool calls of subagents",
    "sessions.visible_output_tokens": "the output that the log shows, estimated: characters / 4; output is no less",
    "sessions.title": "as the agent named the session",
    "sessions.cost_source": "`recorded`, the version of the price table, or both",
    "sessions.unpriced": "what of it has no price: the cost is too low by that",
    "sessions.recorded_cost_usd": "of the cost, what the log states",
    "sessions.replaced_cost_usd": "dollars that the agent recorded for models of other makers, replaced by list prices",
    "sessions.subagent_summed_tokens": "tokens of subagents whose calls are not logged, of unknown kind",
    "sessions.conventions": "how its agent logs, so that what is missing can be read",
    # calls and edits
    "tool_calls.class": "what the tool is for, whoever's it is: read, search, edit, shell, …",
    "tool_calls.shell_kind": "what a command does: test, build, vcs, read, search, write, run",
    "tool_calls.path": "the file it is about",
    "tool_calls.command": "the command, of a shell",
    "tool_calls.status": "ok, error, rejected, cancelled; unknown: the log does not say; none: there is no result",
    "tool_calls.error_class": "of a failed one, by its output: not_found, test_failed, compile_error, … or other",
    "tool_calls.exit_code": "of a command, where the log says it",
    "tool_calls.started_at": "when it was asked for",
    "tool_calls.ended_at": "when its result was logged",
    "tool_calls.result_seq": "the event of its result",
    "tool_calls.purpose": "finer than the class: polling, finding files, writing a whole file, …",
    "edits.op": "create, modify, delete, rename",
    "edits.via": "by an editing tool or by a command",
    "edits.hunk": "which hunk of the call, from 0",
    "edits.start_line": "first line that it left, from 1; NULL: the log has no line numbers",
    "edits.end_line": "last line that it left",
    "edits.added": "lines added",
    "edits.removed": "lines removed",
    "edits.whole_file": "whether it wrote the file whole",
    # checkpoints
    "checkpoints.checkpoint_id": "as Entire named it",
    "checkpoints.agent_lines": "lines that Entire counts as the agent's",
    "checkpoints.human_added": "lines that a person added, as Entire counts",
    "checkpoints.human_modified": "lines that a person changed, as Entire counts",
    "checkpoints.human_removed": "lines that a person removed, as Entire counts",
    "checkpoints.total_committed": "lines committed, as Entire counts",
    "checkpoints.agent_percentage": "Entire's share of the agent, 0 to 100",
    "checkpoints.files_touched": "files changed",
    "checkpoints.api_calls": "model calls, as Entire counts",
    "labels.labeller": "who judged: a rule, a model, a person",
    "labels.model": "the model that judged",
    "signals.level": "what it is a value of: session, turn, attempt, region, corpus",
    "signals.signal": "its name, dotted: see the catalogue",
    "signals.absent": "why there is no value; NULL where there is one",
    "signals.absent_detail": "the same in words",
    # attempts
    "attempts.task_id": "the task",
    "attempts.run_id": "the run",
    "attempts.is_last": "whether no later attempt of the trial is there",
    "attempts.attempt1_tool_cap": "most tool calls that a first attempt might make",
    "attempts.retry_tool_cap": "most tool calls that a later one might make",
    "attempts.agent_type": "the scaffold",
    "attempts.model_id": "the model, with its provider",
    "attempts.dataset": "the set of tasks",
    "attempts.concurrency": "trials at once",
    "attempts.timeout_s": "time limit of the agent",
    "attempts.reward": "as the verifier gave it",
    "attempts.patch_outcome_label": "what became of the patch: see the catalogue",
    "attempts.fail_to_pass_count": "tests that failed before and pass now",
    "attempts.pass_to_fail_count": "tests that passed before and fail now",
    "attempts.pass_to_pass_count": "tests that still pass",
    "attempts.fail_to_fail_count": "tests that still fail",
    "attempts.patch_applies": "whether the patch could be applied",
    "attempts.wall_time_s": "from beginning to end, setup and verification included",
    "attempts.agent_time_s": "the agent's part of it",
    "attempts.timed_out": "whether its time was up",
    "attempts.exit_status": "how it ended, as the harness says",
    "attempts.harness_output_tokens": "output of the agent as its harness counted it, reasoning included",
    "attempts.harness_other_output_tokens": "output of graders, simulated users and runs that were thrown away",
    "attempts.has_transcript": "whether its conversation was collected",
    # findings
    "findings.context": "of people's sessions (`product`) or of eval runs",
    "findings.rank": "its place in the list, from 1",
    "findings.sentence": "what is said",
    "findings.question": "the question that it answers",
    "findings.size": "the figure that it names",
    "findings.unit": "of `size`",
    "findings.low": "lower end of the figure's interval, at 95 percent",
    "findings.high": "upper end",
    # repositories
    "commits.parent_sha": "the commit before",
    "commits.authored_at": "when it was written",
    "commits.committed_at": "when it was committed",
    "commits.author": "a pseudonym",
    "commits.subject": "first line of its message, masked",
    "commits.is_merge": "whether it has several parents",
    "commits.checkpoint_ids": "Entire's checkpoints that it names",
    "commits.session_ids": "sessions that it is linked to",
    "commits.files": "files changed",
    "commits.added": "lines added",
    "commits.blank": "of those, blank ones",
    "commits.agent_exact": "lines that stand in an agent's call as they are",
    "commits.agent_ws": "the same but for blanks",
    "commits.agent_shell": "lines that a command of an agent's left",
    "commits.agent_other_session": "lines of an agent's in a session that the commit is not linked to",
    "commits.human_observed": "lines that a person was seen to write",
    "commits.preexisting": "lines that were there before",
    "commits.moved": "lines moved within the commit",
    "commits.generated": "lines of generated files",
    "commits.unknown": "lines whose author can't be told",
    "commits.rewritten_in_files": "of those, taken away again by the session that wrote them",
    "commits.mode": "how it was made: see the glossary",
    "commits.recorded_mode": "the mode by the recorded figure",
    "line_attribution.path": "the file as committed",
    "line_attribution.tag": "whose it is: see docs/design/attribution.md",
    "line_attribution.session_id": "the session that wrote it",
    "line_attribution.is_blank": "whether nothing stands on it",
    "weaknesses.rule": "the scanner's name of it",
    "weaknesses.cwe": "its classes by MITRE's numbers",
    "weaknesses.severity": "as the scanner says",
    "weaknesses.confidence": "as the scanner says",
    "weaknesses.path": "the file",
    "weaknesses.end_line": "where it ends",
    "weaknesses.moved_from": "the file that it was in before",
    "weaknesses.tag": "of its line: see docs/design/attribution.md",
    "weaknesses.fingerprint": "the same for one weakness in several commits",
    "weaknesses.text": "the line, masked",
    "weaknesses.message": "the scanner's words",
    "scanner": "the program that looked",
    "scanner_version": "its version",
    "scans.place": "`code`, or `test` for tests, samples and examples",
    "scans.files": "files it looked at",
    "scans.human_lines": "lines that a person was seen to write",
    "scans.unknown_lines": "lines whose author can't be told",
}
"""What a column means whose field has no docstring: by table and column, or by a column's name in all tables."""
_UNITS = (
    ("_usd", "US dollars"), ("_tokens", "tokens"), ("_s", "seconds"), ("_ns", "nanoseconds"), ("_lines", "lines"),
    ("_at", "UTC"), ("timestamp", "UTC"), ("n_chars", "characters"), ("bytes", "bytes"), ("_percentage", "percent"),
)  # fmt: skip


def page() -> str:
    """Every table with its columns."""
    lines = ["<!-- made by `python -m docs.generate`; do not edit -->", "", "# Columns", ""]
    lines += [
        "The tables that `agentsignals query` and `Store.sql` see. Times are in UTC without a zone. NULL is never 0:"
        " it is what a trace does not state; `signals.absent` says why a signal has none. `session_signals`,"
        " `turn_signals` and `attempt_signals` hold a row an entity and a column a [signal](catalog.md), named by its"
        " dotted path.",
    ]
    for name, columns in tables.COLUMNS.items():
        lines += ["", f"## {name}", ""]
        if doc := inspect.getdoc(_STRUCTS[name]):
            lines += [" ".join(doc.split()), ""]
        lines += ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
        kinds = dict(query.duckdb_columns(name))
        lines += [f"| `{c}` | {kinds[c]} | {unit(c)} | {meaning(name, c)} |" for c in columns]
    return "\n".join(lines) + "\n"


def meaning(table: str, column: str) -> str:
    """What a column means; empty where nothing says it."""
    plain = MEANINGS.get(f"{table}.{column}") or declared(table).get(column) or MEANINGS.get(column, "")
    for part in ("main", "subagent"):
        if table == "sessions" and not plain and column.startswith(f"{part}_"):
            of = "of the main thread" if part == "main" else "of subagents"
            plain = f"{of}: {MEANINGS[column.removeprefix(f'{part}_')]}"
    return plain.replace("|", "\\|")


def unit(column: str) -> str:
    return next((words for ending, words in _UNITS if column.endswith(ending)), "")


@cache
def declared(table: str) -> dict[str, str]:
    """The docstrings of a table's fields, by column."""
    struct = _STRUCTS[table]
    names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    return {names[name]: text for name, text in _docstrings(struct)}


def _docstrings(struct: type[Struct]) -> Iterator[tuple[str, str]]:
    for made in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(struct)))):
        if not isinstance(made, ast.ClassDef):
            continue
        for field, after in zip(made.body, made.body[1:], strict=False):
            match field, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    yield name, " ".join(text.split())
