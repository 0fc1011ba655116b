"""Read Codex rollouts: unite a session's files, and count once what forks copied of each other."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from agentsignals.changes.hunks import created, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import number, whole
from agentsignals.formats.builder import (
    SessionBuilder,
    charge,
    first_file,
    record_deletion,
    record_modification,
    record_patch,
    repo_name,
    tokens_of,
)
from agentsignals.formats.codex import PATCH, PROFILE, records
from agentsignals.formats.codex.records import PARTS, kinds_of
from agentsignals.formats.documents import Part, by_session, texts_of
from agentsignals.formats.profile import Tool, tagged
from agentsignals.formats.records import decoded, inside, saw, some_lines, string
from agentsignals.model import MAIN, CallStatus, EventKind, Session, Step, ToolCall, TurnKind, logged_iso, logged_ms

# -- results of tools: each generation of shell tools prints its exit code in another way

_HEAD = 600
"""Result headers are a few short lines. What follows is the tool's own output and may quote anything."""
_HEADED = ("Exit code:", "Chunk ID:", "Wall time:", "Process ")
_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)", re.MULTILINE)
_TOOK = re.compile(r"^Wall time: (\d+(?:\.\d+)?) seconds", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_ENDED = "\nProcess exited with code "
_FAILED = (
    "apply_patch verification failed", "exec_command failed", "execution error", "failed to ", "tool call error",
    "unable to ", "unsupported call", "write_stdin failed",
)  # fmt: skip
_REFUSED = re.compile(r"rejected by (?:the )?user|user (?:rejected|cancelled) ")


class Result(Struct, gc=False):
    text: str
    status: CallStatus = "ok"
    exit_code: int | None = None
    running: str | None = None
    ran_s: float | None = None


def read_result(output: str | list[Part] | records.Wrapped | None, failed: bool) -> Result:
    """Read a tool's output. `failed`: another record has said that the call failed."""
    wrapped = output if isinstance(output, records.Wrapped) else None
    text = output if isinstance(output, str) else "" if isinstance(output, records.Wrapped) else texts_of(output)
    code: int | None = None
    ran_s: float | None = None
    running: str | None = None
    status: CallStatus = "error" if failed else "ok"
    if text.startswith('{"output":'):  # else a tool's own JSON
        wrapped = decoded(text, records.Wrapped)
    if wrapped is not None:
        text = wrapped.output if wrapped.output is not None else wrapped.content or ""
        status = "error" if wrapped.success is False else "ok"
        if wrapped.metadata is not None and wrapped.metadata.exit_code is not None:
            code, ran_s = wrapped.metadata.exit_code, number(wrapped.metadata.duration_seconds)
    elif text.startswith(_HEADED):
        end = text.find("\nOutput:", 0, _HEAD)
        end = end if end >= 0 else _HEAD
        ended_at = text.find(_ENDED, 0, end)  # how it usually begins; a pattern takes ten times as long to get there
        ran_s = float(took[1]) if (took := _TOOK.search(text, 0, end)) else None
        if exited := _CODE.search(text, ended_at + 1 if ended_at > 0 else 0, end):
            code = int(exited[1])
        elif process := _RUNNING.search(text, 0, end):
            running, status = process[1], "ok"
    elif not failed and text.startswith("aborted"):
        status = "cancelled"
    elif not failed and "user" in text[:_HEAD] and _REFUSED.search(text[:_HEAD]):
        status = "rejected"
    elif text.startswith(_FAILED):
        status = "error"
    if code is not None:
        status = "ok" if code == 0 else "error"
    return Result(text, status, code, running, ran_s)


# -- model calls and their tokens (design/formats.md#codex)


class ModelCalls:
    """Opens a step with the first thing the model says, and closes it when its tokens are counted.

    A count states the session's total and the last call. Some are repeated, some calls have none, and a fork's begin
    with its parent's: what the total has grown by counts. In a session without counts a call ends where the results of
    its tools do, or where somebody else speaks.
    """

    def __init__(self, builder: SessionBuilder, inherits: bool, metered: bool) -> None:
        """`inherits`: the totals may begin with another session's. `metered`: there are counts."""
        self.model: str | None = None
        self._builder = builder
        self._inherits = inherits
        self._metered = metered
        self._total: records.Usage | None = None
        self._open: Step | None = None
        self._answered = False
        self._unmetered: Step | None = None
        self._counted: set[int] = set()
        """Counts that were taken: the total and the last call of each."""
        self._nameless: list[Step] = []
        """Calls before any record named a model."""

    def item(self, at: int | None) -> Step:
        if self._answered and not self._metered:
            self.close()
        self._answered = False
        if self._open is None:
            self._open = self._step(at)
        return self._open

    def named(self, model: str) -> None:
        """Note the model that is in use from now on. Calls that nothing named before were its own, too."""
        self.model = model
        for step in self._nameless:
            step.model = model
        self._nameless.clear()

    def _step(self, at: int | None) -> Step:
        step = self._builder.step(None, self.model, at)
        if self.model is None:
            self._nameless.append(step)
        return step

    def result(self, call: ToolCall | None) -> None:
        if call is not None and self._open is not None and call.step == self._open.step:
            self._answered = True

    def heard(self) -> None:
        self._answered = True

    def close(self) -> None:
        """Note that the call ended, or was stopped, before its tokens were counted. A later count may include it."""
        if self._open is not None:
            self._unmetered = self._open
            self._open = None

    def skip(self, info: records.TokenInfo) -> None:
        """Take totals that another session has already counted."""
        self._total = info.total_token_usage or self._total

    def count(self, info: records.TokenInfo, at: int | None) -> None:
        """Take a count of tokens. If the total has grown, it is the end of a call."""
        last, total = info.last_token_usage, info.total_token_usage
        if total is None:
            return
        before = self._total
        if before is None:
            before = _minus(total, last) if self._inherits and last is not None else records.Usage()
        grown = _minus(total, before)
        if not any(astuple(grown)):
            return
        count = hash((astuple(total), astuple(last) if last is not None else ()))
        if _has_negative(grown) and count in self._counted:
            return  # a stretch of the file that was written again
        self._counted.add(count)
        if grown == last:
            self._total = total
            charge(self._open or self._uncalled(at), tokens_of(last))
            self._open = self._unmetered = None
            return
        if _has_negative(grown):
            grown = last if last is not None else total  # the program counts from zero again
        self._total = total
        used = last if last is not None and any(astuple(last)) and not _has_negative(_minus(grown, last)) else grown
        rest = _minus(grown, used)
        if any(astuple(rest)):
            charge(self._unmetered or self._uncalled(at), tokens_of(rest))
        charge(self._open or self._uncalled(at), tokens_of(used))
        self._open = self._unmetered = None

    def _uncalled(self, at: int | None) -> Step:
        step = self._step(at)
        self._builder.event("meta", "tokens of a model call that is not logged", at, step)
        return step


def _minus(a: records.Usage, b: records.Usage) -> records.Usage:
    pairs = zip(astuple(a), astuple(b), strict=True)
    return records.Usage(*(now if now is None or then is None else now - then for now, then in pairs))


def _has_negative(usage: records.Usage) -> bool:
    return any(n is not None and n < 0 for n in astuple(usage))


# -- records in file order

# Whose words a text is: a `role=user` item need not be a person's (design/formats.md#codex).
_INTERRUPTED, _USER_SHELL = "<turn_aborted>", "<user_shell_command>"
_REQUEST = re.compile(r"^## My request for Codex:?\s*\n", re.MULTILINE)
"""The IDE extension puts the editor's context before it."""
_PLANS = ("PLEASE IMPLEMENT THIS PLAN:", "Implement the following plan:")
_PLAN_BUTTON = "Implement the plan."


class Reader:
    def __init__(
        self,
        session: Session,
        meta: records.SessionMeta | None,
        outline: records.Outline,
        inherits: bool,
    ) -> None:
        """`outline`: of all records of the session. Of facts that are logged twice one twin is read, if it is there."""
        self.session = session
        self.builder = SessionBuilder(session, PROFILE)
        self._is_subagents = meta is not None and isinstance(meta.source, dict) and "subagent" in meta.source
        """The words of prompts are those of the agent that started it."""
        self.models = ModelCalls(self.builder, inherits, metered=outline.is_metered)
        self._prompts = outline.prompts
        self._events_are_text = not outline.answers_in_items
        self._reports: dict[str, Counter[str]] = {}
        self._settings = ""
        self._is_running = self._is_prompted = False
        self._began: list[int] = []
        """First event of each user message that stands."""
        self._calls: dict[str, ToolCall] = {}
        self._patches: list[tuple[ToolCall, str]] = []
        self._failed: set[str] = set()
        self._codes: dict[str, int] = {}
        self._polls: dict[str, str] = {}
        self._processes: dict[str, ToolCall] = {}
        """Processes left running, by the number that later `write_stdin` calls name."""
        self._handlers: dict[type, Callable[..., None]] = {
            records.SessionMeta: self._headed,
            records.TurnContext: self._context,
            records.Compacted: self._compacted,
            records.Message: self._message,
            records.Reasoning: self._thinking,
            records.FunctionCall: self._function,
            records.CustomCall: self._custom,
            **{
                shape: partial(self._hosted, records.tag_of(shape).removesuffix("_call"))
                for shape in records.HOSTED_CALLS
            },
            **dict.fromkeys(records.OUTPUTS, self._output),
            records.ToolsFound: lambda body, at: self._result(
                body.call_id or "", Result(bytes(body.tools).decode("utf-8", "replace")), at
            ),
            records.PatchEnd: self._patch_end,
            records.McpEnd: self._mcp_end,
            records.ExecEnd: self._process_end,
            records.TokenCount: lambda body, at: self.models.count(body.info, at) if body.info is not None else None,
            **({} if outline.has_counts else {records.UsageRecord: self._used}),
            records.UserMessage: self._prompt,
            records.AgentMessage: self._agent_text,
            **dict.fromkeys((*records.STARTED, *records.ENDED, records.TurnAborted), self._task),
            records.ContextCompacted: self._compacted,
            **dict.fromkeys(records.ERRORS, lambda body, at: self._event("api_error", body.message, at)),
            records.Warned: lambda body, at: self._event("notification", body.message, at),
            records.Renamed: self._renamed,
            records.RolledBack: self._rolled_back,
            records.ItemCompleted: lambda body, at: (
                self._event("meta", body.item.text or body.item.type, at) if body.item is not None else None
            ),
        }
        if meta is not None:
            session.agent_version = session.agent_version or meta.cli_version
            self.builder.where(meta.cwd, string(inside(meta.git, "branch")))
            session.repo = repo_name(string(inside(meta.git, "repository_url"))) or session.repo
        self.builder.visits(outline.folders)

    def take(self, line: int, record: records.Record) -> None:
        body = record.payload
        handler = self._handlers.get(type(body))
        if handler is not None:
            self.builder.line = line
            handler(body, logged_iso(record.timestamp))
        elif body is None:
            self.builder.line = line
            self._event("unknown", records.kind_of(record)[:80], logged_iso(record.timestamp))

    def _used(self, body: records.UsageRecord, at: int | None) -> None:
        self.models.count(records.TokenInfo(body.thread_token_usage, body.usage), at)

    def copied(self, record: records.Record) -> None:
        """Take a copy of another session's record. Only what it says of the state at the fork counts."""
        body = record.payload
        if isinstance(body, records.TokenCount) and body.info is not None:
            self.models.skip(body.info)
        elif isinstance(body, records.UsageRecord):
            self.models.skip(records.TokenInfo(body.thread_token_usage))
        elif isinstance(body, records.TurnContext) and body.model:
            self.models.named(body.model)

    def finish(self) -> Session:
        self._handlers.clear()  # they hold this reader, a circle that would keep all its rows until the collector comes
        recorded = {edit.seq for edit in self.session.edits}
        for call, patch in self._patches:  # read off their text, if no record gives their lines
            if call.status == "ok" and call.seq not in recorded:
                record_patch(self.builder, call, patch)
        if self.session.model is None and self._is_subagents:
            self.session.model = self.models.model
        return self.builder.finish()

    def _event(self, kind: EventKind, text: str | None, at: int | None) -> None:
        self.builder.event(kind, text, at)

    def _event_once(self, kind: EventKind, source: str, text: str, at: int | None) -> None:
        """Add an event that is logged as an item and as an event, by some versions as one of the two only.

        A report is news if it is the n-th of its source, and no other source has told of n.
        """
        counts = self._reports.setdefault(kind, Counter())
        reported = max(counts.values(), default=0)
        counts[source] += 1
        if counts[source] > reported:
            self._event(kind, text, at)

    # -- the session, and the program

    def _headed(self, meta: records.SessionMeta, at: int | None) -> None:
        """Take a header. It is written again on resume."""
        if meta.id in ("", self.session.session_id):
            self.builder.where(meta.cwd)
            if self.session.steps:
                self._event("resume", "", at)

    def _context(self, context: records.TurnContext, at: int | None) -> None:
        self.builder.where(context.cwd)
        if context.model and context.model != self.models.model:
            self.builder.model_changed(self.models.model, context.model, at)
            self.models.named(context.model)
        settings = ", ".join(f"{n} {v}" for n in ("effort", "summary") if isinstance(v := getattr(context, n), str))
        if self._settings and settings and settings != self._settings:
            self._event("settings_change", f"{self._settings} -> {settings}", at)
        self._settings = settings or self._settings

    def _task(self, task: records.Task, at: int | None) -> None:
        """Take the start or the end of the work on a prompt."""
        self.models.close()
        self._is_running = isinstance(task, records.STARTED)
        if self._is_running:
            self._is_prompted = False
        elif isinstance(task, records.TurnAborted) and task.reason in ("interrupted", "replaced", None):
            self._event_once("interrupt", "event", task.reason or "interrupted", at)
        elif isinstance(task, records.TurnAborted):
            self._event("meta", f"turn aborted: {task.reason}", at)

    def _compacted(self, record: records.Compacted | records.ContextCompacted, at: int | None) -> None:
        facts: dict[str, Any] = {}
        if isinstance(record, records.Compacted):
            facts = {"window": record.window_number, "summary": record.message or None}
        present = {key: value for key, value in facts.items() if value is not None}
        source = "record" if isinstance(record, records.Compacted) else "event"
        self._event_once("compaction", source, msgspec.json.encode(present).decode(), at)

    def _renamed(self, event: records.Renamed, at: int | None) -> None:
        self.session.title = event.thread_name or self.session.title

    # -- words

    def _message(self, message: records.Message, at: int | None) -> None:
        if message.role == "assistant":
            self.builder.event("text", texts_of(message.content), at, self.models.item(at))
        elif message.role == "user":
            self.models.heard()
            self._user_item(message, at)
        else:
            self._event("meta", texts_of(message.content), at)
        self.builder.unread(kinds_of(message.content), PARTS, at)

    def _thinking(self, reasoning: records.Reasoning, at: int | None) -> None:
        text = texts_of(reasoning.summary) or texts_of(reasoning.content)
        self.builder.event("thinking", text, at, self.models.item(at))
        for parts in (reasoning.summary, reasoning.content):
            self.builder.unread(kinds_of(parts), PARTS, at)

    def _agent_text(self, event: records.AgentMessage, at: int | None) -> None:
        if self._events_are_text:
            self.builder.event("text", event.message, at, self.models.item(at))

    def _prompt(self, message: records.UserMessage, at: int | None) -> None:
        """Take a `user_message` event: what the person sent. Its lists may hold whole pictures."""
        self.models.heard()
        pictures = any(memoryview(listed).nbytes > len("null") for listed in (message.images, message.local_images))
        if message.message.strip() or pictures:
            self._turn(message.message, at)

    def _user_item(self, message: records.Message, at: int | None) -> None:
        """Take a `role=user` item: context from the program, or the person's words, which an event repeats."""
        content = message.content
        parts = [content] if isinstance(content, str) else [part.text for part in content or () if part.text]
        words = []
        for part in parts:
            if PROFILE.machine_kind(part.lstrip()) is None:
                words.append(part)
            elif part.startswith(_INTERRUPTED):
                self._event_once("interrupt", "item", part, at)
            elif part.startswith(_USER_SHELL):
                command = tagged(part, "command")
                self._event_once("user_shell", "item", part if command is None else command, at)
            else:
                self._event("meta", part, at)
        text = "\n".join(words)
        if not self._prompts:
            if words or (content and not parts):
                self._turn(text, at)
        elif words and text.strip() not in self._prompts:
            self._event("meta", text, at)

    def _turn(self, text: str, at: int | None) -> None:
        """Record words in the person's place: a turn, or an event where a program or a parent agent wrote them."""
        request = _REQUEST.search(text) if text.lstrip().startswith("# ") else None
        words = text[request.end() if request else 0 :].strip()
        is_program = PROFILE.machine_kind(words) is not None
        if not is_program:
            self._began.append(len(self.session.events))
        if self._is_subagents or is_program:
            self._event("meta", text, at)
            return
        kind: TurnKind = "prompt" if words else "attachment"
        if words.startswith(_PLANS) or words == _PLAN_BUTTON:
            kind = "plan_handoff"
        elif words and self._is_running and self._is_prompted:  # the agent was at work on an earlier prompt
            kind = "queued_prompt"
        self.builder.turn(kind, words, at, self.models.model)
        self._is_prompted = True

    def _rolled_back(self, record: records.RolledBack, at: int | None) -> None:
        """Abandon what came since the last `num_turns` user messages, which are the turns of a rollback."""
        self.models.close()
        turns = max(whole(record.num_turns) or 0, 0)
        if began := self._began[-turns:] if turns else ():
            self.builder.abandon(began[0])
            del self._began[-turns:]
        self._is_prompted = False
        self._event("rewind" if turns else "meta", None, at)

    # -- calls, read off up to four records each

    def _function(self, body: records.FunctionCall, at: int | None) -> None:
        """Begin a function call. A patch, and the process that a poll asks for, are among its arguments."""
        name, server = body.name, body.namespace or ""
        if server.startswith("mcp__"):  # older versions wrote it as one name, `mcp__server__tool`
            name = server + name if name.startswith("_") or server.endswith("__") else f"{server}__{name}"
        tool = PROFILE.tool(name)
        patch: str | None = None
        session_id: object = None
        says_more = name == "write_stdin" or "patch" in body.arguments
        if tool is PATCH or (tool is not None and tool.class_ == "shell" and says_more):
            arguments = decoded(body.arguments, records.Arguments) or records.Arguments()
            session_id, patch, words = arguments.session_id, arguments.input, arguments.command
            if isinstance(words, list) and len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
                patch = words[1] if isinstance(words[1], str) else None
        call = self._begin(name, body.call_id or "", body.arguments, tool, patch, at)
        if name == "write_stdin" and session_id is not None:
            self._polls[call.call_id] = str(session_id)

    def _custom(self, body: records.CustomCall, at: int | None) -> None:
        patch = body.input if body.name == "apply_patch" else None
        arguments = msgspec.json.encode({"input": body.input})
        self._begin(body.name, body.call_id or "", arguments, PROFILE.tool(body.name), patch, at)

    def _hosted(self, name: str, body: records.HostedCall, at: int | None) -> None:
        """Take a call of a tool that the model's provider runs. Of most the rollout holds no result."""
        call_id = body.call_id or body.id or f"line:{self.builder.line}"
        arguments = bytes(body.arguments or body.action) or b"{}"
        call = self._begin(name, call_id, arguments, PROFILE.tool(name), None, at)
        if body.call_id is None and body.status == "completed":
            self.builder.result(call_id, "", "ok", at)
            call.result_tokens = None  # what was found went to the model, not to the log

    def _begin(  # noqa: PLR0913  (what any kind of record tells of a call)
        self, name: str, call_id: str, arguments: bytes | str, tool: Tool | None, patch: str | None, at: int | None
    ) -> ToolCall:
        step = self.models.item(at)
        if patch is None:
            call = self.builder.call(call_id, name, arguments, tool, at, step)
        else:
            call = self.builder.call(call_id, name, arguments, PATCH, at, step, path=first_file(patch))
            self._patches.append((call, patch))
        self._calls[call_id] = call
        return call

    def _output(self, body: records.Output, at: int | None) -> None:
        self._result(body.call_id or "", read_result(body.output, body.call_id in self._failed), at)
        self.builder.unread(kinds_of(body.output), PARTS, at)

    def _result(self, call_id: str, result: Result, at: int | None) -> None:
        """Record a result. The exit code of a process that was polled goes to the call that began it."""
        status, code = result.status, result.exit_code
        if code is None and result.running is None and call_id in self._codes:
            code = self._codes.pop(call_id)
            status = "error" if code else status
        process = self._polls.get(call_id, "")
        begun = self._processes.get(process)
        if begun is not None and code is not None:
            self.builder.exited(begun, code, result.text, at)
            del self._processes[process]
            status, code = "ok", None  # the code is the command's; the poll that saw it end did what it should
        call = self.builder.result(call_id, result.text, status, at, MAIN, code, ran_s=result.ran_s)
        self.models.result(call)
        if call is not None and result.running is not None and begun is None:
            self._processes[result.running] = call

    def _patch_end(self, body: records.PatchEnd, at: int | None) -> None:
        call = self._calls.get(body.call_id or "")
        if call is None or not body.success:
            return
        for path, change in (body.changes or {}).items():
            if change.type == "add":
                self.builder.edit(call, path, "create", [created(change.content or "")])
            elif change.type == "delete":
                record_deletion(self.builder, call, path, change.content)
            else:
                hunks = unified(change.unified_diff or "")
                record_modification(self.builder, call, path, change.move_path, hunks)

    def _ran(self, end: records.McpEnd | records.ExecEnd, at: int | None) -> None:
        seconds, nanos = (number(inside(end.duration, name)) for name in ("secs", "nanos"))
        if seconds is not None and end.call_id:
            self.builder.ran(end.call_id, at, seconds + (nanos or 0.0) / 1e9)

    def _mcp_end(self, body: records.McpEnd, at: int | None) -> None:
        self._ran(body, at)
        result = decoded(body.result, records.McpResult) if body.call_id else None
        if result is not None and (result.Err or (result.Ok is not None and result.Ok.isError is True)):
            self._failed.add(body.call_id or "")

    def _process_end(self, end: records.ExecEnd, at: int | None) -> None:
        """Take the end of a command, logged by some versions: before its output, or long after if it was left
        running. Some were run by hand (`!`)."""
        if end.source == "user_shell":
            self._event_once("user_shell", "event", end.command[-1] if end.command else "", at)
            return
        self._ran(end, at)
        call = self._calls.get(end.call_id or "")
        if call is None or end.exit_code is None:
            return
        if call.result_seq is None:
            self._codes[call.call_id] = end.exit_code
        elif call.exit_code is None:
            self.builder.exited(call, end.exit_code, at=at)


# -- files of a session, and forks

_BURST_US = 2_000_000
"""A fork copies its parent's history in one go. Records this much later than the first are its own."""


def read(inputs: list[Input]) -> Reading:
    """Unite snapshots of a session. History that a fork copied counts for the parent, if the parent is there.

    Of forks whose parent is missing, the one that copied most of it keeps the copy.
    """
    by_id = by_session(inputs, _File)
    heads = {session_id: files[0] for session_id, files in by_id.items()}
    # By session, the session whose turns are the first to count for it: itself, or its parent. None: all count.
    first_own: dict[str, str | None] = {session_id: session_id for session_id in heads}
    keepers: dict[str, _File] = {}
    for session_id, file in heads.items():
        parent = file.parent
        if parent is not None and parent not in heads and file.copied:
            best = keepers.get(parent)
            if best is None or file.copied > best.copied:
                keepers[parent] = file
                first_own[session_id] = parent if file.parents & heads.keys() else None
                if best is not None:
                    first_own[best.session_id] = best.session_id
    return Reading([_session(session_id, files, first_own[session_id]) for session_id, files in by_id.items()])


class _File:
    def __init__(self, source: Input) -> None:
        self.source = source
        self.outline = records.Outline()
        self.numbers, self.records = some_lines(
            source.data, source.artifact, records.DECODER, records.decode, self.outline.look
        )
        for kind, times in self.outline.kinds.items():
            saw(source.artifact, kind, times)
        headers = self.outline.headers
        self.meta = headers[0] if headers else None
        named = self.meta.id if self.meta is not None else ""
        self.session_id = named or source.session_hint or source.artifact.artifact_id
        parents = [h.id for h in headers if h.id and h.id != self.session_id]
        parent: Any = None
        if self.meta is not None:
            if self.meta.forked_from_id:
                parents.insert(0, self.meta.forked_from_id)
            parent = inside(self.meta.source, "subagent", "thread_spawn", "parent_thread_id")
            parent = parent if isinstance(parent, str) else self.meta.forked_from_id
        self.parents = set(parents)
        self.parent: str | None = parent or next(iter(parents), None)
        """The session that this one was forked or spawned from."""
        first = next((record.timestamp for record in self.records if record.timestamp), "")
        # Of two snapshots that begin together the longer comes first, so that most of a session points into one file.
        self.order = (first, -len(self.records), source.artifact.sha256, source.artifact.artifact_id)

    @cached_property
    def copied(self) -> int:
        """The number of records at the top that were copied from other sessions."""
        if self.meta is None or not self.parents:
            return 0
        begins = self.begins(self.session_id)
        if begins is not None:
            return begins
        first = logged_iso(self.records[0].timestamp)
        for n, record in enumerate(self.records):
            at = logged_iso(record.timestamp)
            if at is not None and first is not None and at > first + _BURST_US:
                return n
        return len(self.records)

    def begins(self, session_id: str) -> int | None:
        """Return where the turns of a session begin, its own or an ancestor's. Copied turns are older than the session:
        by their id, or by the time they say they began."""
        began = _minted(session_id)
        for n, record in enumerate(self.records) if began is not None else ():
            turn = record.payload
            if began is None or not isinstance(turn, records.Task | records.TurnContext):
                continue
            minted = _minted(turn.turn_id or "")
            if minted is not None:
                if minted >= began:
                    return n
            elif isinstance(turn, records.Task) and turn.started_at is not None:
                started = logged_ms(turn.started_at * 1000)
                if started is not None and started >= began - began % 1_000_000:
                    return n
        return None


def _session(session_id: str, files: list[_File], first_own: str | None) -> Session:
    """Read a session from the files that hold it, without the records that are copies of another session's."""
    first = files[0]
    session = first.source.session(session_id, "codex", "codex")
    session.parent_session_id = first.parent
    left_out = [0] * len(files)  # leading records of each file that count for another session
    if first_own is not None:
        left_out = [f.copied if first_own == f.session_id else min(f.begins(first_own) or 0, f.copied) for f in files]
    outline = first.outline
    if len(files) > 1 or any(left_out):
        outline = records.Outline()
        own = chain.from_iterable(islice(file.records, n, None) for file, n in zip(files, left_out, strict=True))
        while block := list(islice(own, 4_096)):
            outline.look(block)
    reader = Reader(session, first.meta, outline, inherits=bool(first.parents))
    seen: set[tuple[str | None, str, int]] = set()
    for file, copied in zip(files, left_out, strict=True):
        reader.builder.artifact_id = file.source.artifact.artifact_id
        nth: Counter[tuple[str | None, str]] = Counter()
        for n, (line, record) in enumerate(zip(file.numbers, file.records, strict=True)):
            if n < copied and n > 0:
                saw(file.source.artifact, "repeated")
                if file is first:
                    reader.copied(record)
                continue
            if len(files) > 1:
                key = (record.timestamp, records.kind_of(record))
                nth[key] += 1
                if (*key, nth[key]) in seen:
                    saw(file.source.artifact, "repeated")
                    continue
                seen.add((*key, nth[key]))
            reader.take(line, record)
    return reader.finish()


def _minted(uuid: str) -> int | None:
    """Return the time in a version 7 UUID, in microseconds UTC. None for another id."""
    digits = uuid.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return int(digits[:12], 16) * 1000
    except ValueError:
        return None
