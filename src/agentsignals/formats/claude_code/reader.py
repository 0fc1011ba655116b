"""Read Claude Code sessions: unite a session's files, and count once what forks copied of each other."""

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from sys import intern
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import created, of_whole_file, rewrites, trimmed
from agentsignals.formats import ANSWERS, ASKS, Input, Reading
from agentsignals.formats.bounds import amount, count, number, refuse
from agentsignals.formats.builder import (
    SessionBuilder,
    charge,
    close,
    record_arguments,
    summed,
    tokens_of,
    tokens_of_steps,
)
from agentsignals.formats.claude_code import DRIVEN_BY, PROFILE, records
from agentsignals.formats.claude_code.records import as_text, content_key, is_true, text_of, thread_of
from agentsignals.formats.documents import REDACTED
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import tagged, without_tagged
from agentsignals.formats.records import decoded, decoder, document, inside, saw, string
from agentsignals.model import (
    ITERATION,
    MAIN,
    SESSION_TOTAL,
    CallStatus,
    EventKind,
    Session,
    Step,
    ToolCall,
    Turn,
    logged_iso,
)
from agentsignals.model.lazy import deferred_pattern

INTERRUPTED = "[Request interrupted by user"
PLAN = "Implement the following plan:"
_SUMMARY = "This session is being continued from a previous conversation"
_COMMAND_TAGS = ("<command-name>", "<command-message>", "<command-args>")
_COMMAND = deferred_pattern(r"/?([^<\s]*)")
_TYPED_COMMAND = deferred_pattern(r"/([A-Za-z][\w:.-]*)(?=\s|$)")
_CONTEXT = re.compile(r"<(ide_opened_file|ide_selection|ide_diagnostics|system-reminder)>")
_OUTPUT = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")
_AGENT: tuple[EventKind, ...] = ("text", "thinking", "tool_call", "human_turn")
_WITHDRAWN = deferred_pattern(r"cancel|clear|drop|withdr|reject|discard|expire|delete|block|supersede|abort|fail")
"""Beginnings of reasons for which a queued message was removed unsaid: `cancelled_by_sender`, `dropped_by_hook`."""
_MOST_QUEUED = 500
"""Queued messages. Nobody types so many ahead, and each one is searched for among all."""
BUILTIN_COMMANDS = frozenset(
    ("add-dir", "advisor", "agents", "allowed-tools", "approved-tools", "background", "bashes", "bg", "bug",
     "branch", "btw", "chrome", "clear", "color", "compact", "config", "context", "continue", "copy", "cost",
     "desktop", "diff", "doctor", "effort", "exit", "export", "extra-usage", "fast", "feedback", "files", "focus",
     "fork", "help", "hooks", "ide", "install-github-app", "keybindings", "login", "logout", "mcp", "memory",
     "migrate-installer", "mobile", "model", "new", "output-style", "passes", "permissions", "plan", "plugin",
     "plugins", "privacy-settings", "quit", "rate-limit-options", "rc", "recap", "release-notes", "reload-plugins",
     "remote-control", "remote-env", "rename", "reset", "resume", "rewind", "sandbox", "session", "settings",
     "skills", "stats", "status", "statusline", "stickers", "tag", "tasks", "terminal-setup", "theme", "think-back",
     "todos", "tui", "upgrade", "usage", "vim", "voice")
)  # fmt: skip
"""Commands of the program itself. A person types them, but nothing is said to the agent
(design/signals.md#human-turns)."""


# -- whose words a text is (design/formats.md#claude-code-human-words: 94 % of `user` records hold no words of a person)


def user_record(
    builder: SessionBuilder, line: records.Line, message: records.Message, at: int | None, after: Sequence[records.Line]
) -> str:
    """Add a `user` record without tool results: a human turn, or one of the many things that are none.

    `after` are the records that follow it. Return the text as it was found.
    """
    text = text_of(message).strip()
    # A program that drives the agent sent it. Neither the source nor the entry point alone says so.
    is_scripted = line.prompt_source == "sdk" and line.entrypoint in DRIVEN_BY
    if text.startswith("<") and text.startswith(_COMMAND_TAGS):
        # A custom command says what it expands to and is a turn. One that the program answers itself is none.
        named = _COMMAND.fullmatch(tagged(text, "command-name") or " ")
        command = f"/{named[1]} {tagged(text, 'command-args') or ''}".strip() if named else text
        spoken = (r for r in after if r.type == "assistant" or (r.type == "user" and r.message is not None))
        reply = next((r.message if r.type == "user" else None for r in spoken), None)
        is_answered = reply is not None and text_of(reply).startswith(_OUTPUT)
        if named is None or named[1] in BUILTIN_COMMANDS or is_answered:
            builder.event("meta", command, at)
        else:
            builder.turn("scripted_prompt" if is_scripted else "slash_command", command, at)
    elif is_true(line.is_compact_summary) or text.startswith(_SUMMARY):
        # What the model was left with after a compaction. Old versions log no boundary before it.
        if builder.latest(("compaction", *_AGENT)) != "compaction":
            builder.event("compaction", '{"kind":"summary"}', at)
        builder.event("meta", text, at)
    elif text.startswith(INTERRUPTED):
        interrupt(builder, text, at)
    elif _machine(builder, text, at):
        pass
    elif records.origin_of(line) not in (None, "human") or line.prompt_source == "system":
        builder.event("notification", text, at)
    elif is_true(line.is_meta):
        builder.event("meta", text, at)
    elif not (prompt := without_tagged(text, _CONTEXT).strip()):
        parts = message.content if isinstance(message.content, list) else ()
        if any(part.type in ("image", "document") for part in parts):
            builder.turn("attachment", "", at)
        else:
            builder.event("meta", text, at)
    elif prompt == text or not _machine(builder, prompt, at):  # what the editor put before it is no sign of a person
        is_plan = line.plan_content or prompt.startswith(PLAN)
        builder.turn("plan_handoff" if is_plan else "scripted_prompt" if is_scripted else "prompt", prompt, at)
    return text


def is_said(line: records.Line) -> bool:
    """Return whether a user record without results of tools holds words of a person, a command of theirs included."""
    if line.message is None or is_true(line.is_meta) or is_true(line.is_compact_summary):
        return False
    text = text_of(line.message).strip()
    if text.startswith(_COMMAND_TAGS):
        named = _COMMAND.fullmatch(tagged(text, "command-name") or " ")
        return named is not None and named[1] not in BUILTIN_COMMANDS
    is_program = text.startswith((INTERRUPTED, _SUMMARY)) or PROFILE.machine_kind(text) is not None
    return not is_program and records.origin_of(line) in (None, "human") and line.prompt_source != "system"


def _machine(builder: SessionBuilder, text: str, at: int | None) -> bool:
    kind = PROFILE.machine_kind(text)
    if kind is not None:
        builder.event(kind, text, at)
    return kind is not None


def interrupt(builder: SessionBuilder, text: str, at: int | None, thread: str = MAIN) -> None:
    """Add an interruption. A bare refusal is followed by a marker that says so again: it counts once."""
    is_again = builder.latest(("interrupt", *_AGENT), thread) == "interrupt"
    builder.event("meta" if is_again else "interrupt", text, at, None, thread)


class Queue:
    """Prompts typed while the agent works, until they are delivered, pulled back or withdrawn.

    A prompt delivered in mid-turn is logged by `remove`, and from 2.1.91 on also by an attachment.
    """

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._queued: list[tuple[str, int]] = []
        self._dequeued: tuple[str, int] | None = None
        self._delivered_by_remove: Counter[str] = Counter()
        self._delivered_by_attachment: Counter[str] = Counter()

    def apply_record(self, kind: str, content: object, at: int | None, reason: object = None) -> None:
        """Apply a `queue-operation` record: a prompt typed while the agent works is queued, delivered in mid-turn
        (`remove` without a reason), followed by a user record of its own (`dequeue`), pulled back into the editor
        (`popAll`), or withdrawn and never sent (`remove` with a reason)."""
        text = as_text(content)
        if kind == "enqueue":
            self._queued.append((text, self._builder.line))
            if len(self._queued) > _MOST_QUEUED:
                self._unsent(*self._queued.pop(0))
        elif kind == "popAll":
            is_named = any(entry[0] == text for entry in self._queued)
            self._queued = [e for e in self._queued if (e[0] != text if is_named else PROFILE.machine_kind(e[0]))]
        elif kind == "dequeue":
            self._dequeued = self._next(text)
        elif kind == "remove" and isinstance(reason, str) and _WITHDRAWN.match(reason):
            self._unsent(*(self._next(text) or (text, self._builder.line)))
        elif kind == "remove":
            self._deliver(
                (self._next(text) or (text, 0))[0], self._delivered_by_remove, self._delivered_by_attachment, at
            )

    def attachment(self, attached: records.Attachment, line: records.Line, at: int | None) -> None:
        """Take a `queued_command`: a message that reached the running turn, as newer versions log it."""
        text = as_text(attached.prompt)
        if (attached.command_mode or "prompt") != "prompt" or records.origin_of(line) not in (None, "human"):
            text = text if PROFILE.machine_kind(text) else f"<task-notification>{text}"
        self._deliver(text, self._delivered_by_attachment, self._delivered_by_remove, at)

    def user_record(self, text: str) -> None:
        """Take a `user` record. It tells which message a `dequeue` without content took."""
        if self._dequeued is not None and self._dequeued[0] != text:
            other = next((entry for entry in self._queued if entry[0] == text), None)
            if other is not None:
                self._queued[self._queued.index(other)] = self._dequeued
        self._dequeued = None

    def finish(self) -> None:
        for text, line in self._queued:
            self._unsent(text, line)

    def _unsent(self, text: str, line: int) -> None:
        if text and not PROFILE.machine_kind(text):
            here, self._builder.line = self._builder.line, line
            self._builder.event("meta", f"queued, never sent: {text}")
            self._builder.line = here

    def _next(self, text: str) -> tuple[str, int] | None:
        """Take an entry from the queue: the one of that text, else the person's oldest, else any."""
        by_text = (lambda e: e[0] == text,) if text else ()
        for fits in (*by_text, lambda e: not PROFILE.machine_kind(e[0]), lambda e: True):
            for entry in self._queued:
                if fits(entry):
                    self._queued.remove(entry)
                    return entry
        return None

    def _deliver(self, text: str, own: Counter[str], other: Counter[str], at: int | None) -> None:
        """Add a prompt, unless a record of the other kind (`remove` or attachment) has added it."""
        if other[text]:
            other[text] -= 1
            return
        own[text] += 1
        prompt = without_tagged(text, _CONTEXT).strip()
        if _machine(self._builder, prompt, at) or not prompt:
            return
        if _TYPED_COMMAND.match(prompt):  # the program runs it at once; what a custom one expands to has its own record
            self._builder.event("meta", prompt, at)
        else:
            turns = self._builder.session.turns
            scripted = bool(turns) and turns[-1].kind == "scripted_prompt"  # who drives the agent says more
            self._builder.turn("scripted_prompt" if scripted else "queued_prompt", prompt, at)


# -- tool results

_REFUSED = ("The user doesn't want to ", "The agent proposed a plan that was rejected by the user")
_WITH_WORDS = "the user said:"
_FEEDBACK = f"{_WITH_WORDS}\n"
_NOTE = "\n\nNote: The user's next message"
_NOT_SAID = ("The user wants to clarify these questions.", "The user has indicated they have provided enough answers")
"""The program writes these in the person's place when questions are put off."""
_CANCELLED = ("Sibling tool call errored", "Cancelled: parallel tool call")
_PARTS = frozenset(("text", "image", "document", "tool_reference", "search_result", "web_search_result"))
"""Types of blocks in a result. Words of blocks other than text are not read."""
_DENIED = (
    "Permission to use", "Permission for this action", "Permission for this tool use",
    "Claude requested permissions to",
)  # fmt: skip
_ENDED = deferred_pattern(
    r"<usage>\s{0,9}<total_tokens>(\d{1,15})</total_tokens>\s{0,9}<tool_uses>(\d{1,15})</tool_uses>", re.ASCII
)
_ABOUT_AGENT = ("tool-use-id", "task-id")
_HEAD_CHARS = 2_000
"""The ids of a notice stand at its top, before words of the subagent."""


class Patch(Struct, gc=False, rename="camel"):
    old_start: int = 1
    new_start: int = 1
    lines: list[str] = []


EndedAgent = tuple[str, str | None, object, object]
"""A subagent that has ended: the call that began it, its id, and its closing totals of calls and tokens."""


def answer(
    builder: SessionBuilder, block: records.Block, structured: records.Structured | None, at: int | None, thread: str
) -> None:
    """Add a `tool_result` block. `structured` is the record's `toolUseResult`."""
    content = block.content
    parts = content if isinstance(content, list) else [content]
    text = "\n".join(filter(None, (p if isinstance(p, str) else p.text for p in parts if p is not None)))
    # `is_error` mixes failures, refusals and cancelled siblings; the text tells which: see
    # design/formats.md#claude-code-results.
    status: CallStatus = "error" if is_true(block.is_error) else "ok"
    if status == "error" and text.startswith(_REFUSED):
        status = "rejected"
    elif status == "error" and (text.startswith(INTERRUPTED) or any(words in text[:200] for words in _CANCELLED)):
        status = "cancelled"
    error = "permission" if status == "error" and text.startswith(_DENIED) else None
    code = exit_code(text) if status == "error" else None
    ran_s = None
    if structured is not None and structured.duration_ms is not None:  # a subagent's holds its own waits, too
        ms = number(structured.duration_ms)
        ran_s = ms / 1000 if ms is not None else None
    elif structured is not None:
        ran_s = number(structured.duration_seconds)
    call = builder.result(block.tool_use_id or "", text, status, at, thread, code, error, ran_s)
    if isinstance(content, list):
        builder.unread((p.type for p in content if isinstance(p, records.Block)), _PARTS, at, thread)
    if status == "rejected":
        # Words given when refusing are a turn, also in a subagent's work. A bare refusal is an interruption.
        at_words = text.find(_FEEDBACK)
        feedback = text[at_words + len(_FEEDBACK) :].partition(_NOTE)[0].strip() if at_words >= 0 else ""
        if feedback and not feedback.startswith(_NOT_SAID):
            builder.turn("rejection_feedback", feedback, at)
        else:
            interrupt(builder, text, at, thread)
    elif call is not None and status == "ok" and call.class_ == "edit":
        _edits(builder, call, structured)


def _edits(builder: SessionBuilder, call: ToolCall, structured: records.Structured | None) -> None:
    """Record the changes of an edit by the structured patch of its result, else by its arguments."""
    path: Any = structured.file_path if structured is not None else None
    kind = structured.type if structured is not None else None
    patches: list[Patch] | None = decoded(structured.structured_patch, list[Patch]) if structured is not None else None
    if patches is None and structured is not None and kind == "create":
        patches = [] if bytes(structured.structured_patch) in (b"", b"null") else None
    if structured is None or patches is None or not isinstance(path, str | None) or not isinstance(kind, str | None):
        record_arguments(builder, call)
        return
    content = decoded(structured.content, str) if structured.content else ""
    if kind == "create":
        builder.edit(call, path, "create", [created(content)] if content is not None else [])
    elif patches:  # an empty patch: the file already read so
        hunks = [h for p in patches if (h := trimmed(p.old_start, p.new_start, p.lines))]
        new = kind == "update" and content and rewrites(hunks, content)
        builder.edit(call, path, "modify", of_whole_file(hunks) if new else hunks)


# -- plans that the person approved by going on in a fresh context
# They are logged as a refusal, and then a hand-off of the plan, in the same log or at the head of another. From 2.1 on
# the hand-off names the log that the plan was made in (design/formats.md#claude-code-plans).

HANDED_ON_WITHIN_US = 60_000_000
"""From the refusal to the hand-off. It is written within a second; a minute allows for a slow start. Later the same
plan was taken up again, which is no answer to the question."""
_TRANSCRIPT = deferred_pattern(r"read the full transcript at: \S*?([^/\\\s]+)\.jsonl")
_POINTER = "\n\n\nIf you need specific details from before exiting plan mode"


def approve_plans(sessions: Sequence[Session]) -> set[str]:
    """Make an approval of each refusal whose plan was handed on at once. A new session is a child of the old one.

    Return keys of files that may hold the other end of one, if they are read apart.
    """
    handoffs: list[tuple[Session, Turn, str, str | None]] = []
    """Plans that were handed on, with the session that each says it was made in."""
    refusals: list[tuple[Session, ToolCall, str]] = []
    """Plans that were refused without a word."""
    for session in sessions:
        for turn in session.turns:
            if turn.kind == "plan_handoff":
                made_in = _TRANSCRIPT.search(turn.text, max(turn.text.rfind(_POINTER), 0))
                plan = " ".join(turn.text.removeprefix(PLAN).partition(_POINTER)[0].split())
                is_named = made_in is not None and REDACTED not in made_in[1]
                handoffs.append((session, turn, plan, made_in[1] if made_in and is_named else None))
        for call in session.tool_calls:
            if call.purpose == "plan_handoff" and call.status == "rejected" and call.thread == MAIN:
                text = session.events[call.result_seq].text if call.result_seq is not None else None
                if _WITH_WORDS not in (text or ""):
                    plan = string(inside(decoded(call.arguments, dict[str, Any]), "plan")) or ""
                    refusals.append((session, call, " ".join(plan.split())))
    waiting, keys = list(refusals), set()
    for here, turn, plan, source in handoffs:
        near = []
        for refusal in waiting:
            session, call, refused = refusal
            is_of_it = (refused and refused == plan) or source == session.session_id
            is_later = here is not session or turn.seq >= call.seq
            if turn.timestamp is not None and call.ended_at is not None and is_of_it and is_later:
                near.append((abs(turn.timestamp - call.ended_at), refusal))
        apart, answered = min(near, key=lambda pair: pair[0], default=(0, None))
        if answered is not None and apart <= HANDED_ON_WITHIN_US:
            waiting.remove(answered)
            session, call, _ = answered
            call.status, call.outcome = "ok", "done"
            for event in session.events[(call.result_seq or call.seq) + 1 :]:
                if event.thread != MAIN or event.kind in _AGENT:
                    break
                if event.kind == "interrupt":
                    event.kind = "meta"
            if here is not session and here.parent_session_id is None:
                here.parent_session_id = session.session_id
        else:
            answered = None
        if source:
            keys.add(f"session:{source}")
        elif answered is not None and answered[0] is here:
            refusals.remove(answered)  # both ends are always read together
        elif plan:
            keys.add(f"{ANSWERS}plan:{_digest(plan)}")
    return keys | {f"{ASKS}plan:{_digest(plan)}" for _, _, plan in refusals if plan}


def _digest(plan: str) -> str:
    return hashlib.blake2b(plan.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# -- totals of a session, by model (design/formats.md#claude-code-totals)

_DATED = re.compile(r"-\d{8}$")
Tally = dict[str, Any]
"""Usage of one model: tokens and `costUSD`."""


def plain(model: str | None) -> str | None:
    """Return a model's name without what the program adds to it (`[1m]`, for a long context)."""
    return model.partition("[")[0] or None if model else None


def serve_alike(closing: Step, steps: list[Step]) -> None:
    """Copy how calls were served to the closing step, if all logged calls agree. Totals do not say it."""
    served = {(s.speed, s.service_tier, s.inference_geo) for s in steps}
    if len(served) == 1:
        closing.speed, closing.service_tier, closing.inference_geo = served.pop()


def close_with(builder: SessionBuilder, state: Raw) -> None:
    """Add closing steps for what a session's last `cost-state` counts and no message accounts for: titles, searches,
    subagents without a file. None if the state does not name the model of a message."""
    totals = decoded(state, dict[str, Tally]) or {}
    tallies = {_undated(model): tally for model, tally in totals.items()}
    steps = [s for s in builder.session.steps if s.stop_reason != SESSION_TOTAL]
    if not {_undated(s.model) for s in steps if s.input_tokens or s.output_tokens} <= tallies.keys():
        return
    for model, tally in tallies.items():
        of_model = [s for s in steps if _undated(s.model) == model]
        rest = tokens_of(tally, "apart").without(tokens_of_steps(of_model))
        if not any(rest):
            continue
        closing = close(builder, model, rest)
        serve_alike(closing, of_model)
        if not of_model and (paid := amount(tally.get("costUSD"))):
            closing.cost_usd, closing.cost_source = paid, "recorded"
    for step in builder.session.steps:  # what these have used is in the totals
        if step.summed_tokens is not None and tallies:
            step.summed_tokens = step.unpriced = None


_USED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens")


def _undated(model: str | None) -> str:
    return _DATED.sub("", plain(model) or "")


# -- records in file order

_RESUMED = "SessionStart:resume"
"""Name of the hooks that run when a session is resumed."""
_OF_A_PERSON = frozenset(("text", "image", "document", "tool_result"))
_HOOKS: dict[str | None, bool] = {
    "PreToolUse": True,
    "PermissionRequest": True,
    "PostToolUse": False,
    "PostToolUseFailure": False,
}
"""Events of a call that hooks run at, and whether the call runs only after them."""
_NEAR = 12
"""Records ahead among which the answer to a command or the call of a result is searched."""


class Seen(Struct, frozen=True, gc=False):
    """A record that was read, and the session that holds it."""

    session_id: str
    lines: Sequence[records.Line]
    at: int

    def is_copied_by(self, line: records.Line, session_id: str) -> bool:
        """Return whether a record of the same id is this one again.

        In the same session one of the same time is: a snapshot may be masked or cut. A fork copies a record as it is. A
        record of another session that says something else only shares the id.
        """
        earlier = self.lines[self.at]
        if session_id == self.session_id:
            return not (line.timestamp and earlier.timestamp) or line.timestamp == earlier.timestamp
        here, there = (
            (r.type, r.timestamp, r.message.content if r.message is not None else r.content) for r in (line, earlier)
        )
        return here == there and here[1:] != (None, None)


class SessionReader:
    """Reads one session. `seen` holds the records of all files read together, by their ids."""

    profile = PROFILE
    """Other agents that write the same records have tools of their own."""

    def __init__(self, first: records.File, seen: dict[str, Seen], agents: set[str]) -> None:
        session = first.source.session(first.session_id, "claude-code", "claude-code")
        self.session = session
        self.artifact = first.source.artifact
        self.builder = SessionBuilder(session, PROFILE)
        self.queue = Queue(self.builder)
        self.seen = seen
        self.agents = agents
        self.lines: Sequence[records.Line] = []
        self.early: dict[str, tuple[int, records.Block, records.Line]] = {}
        self.cwd: str | None = None
        self.model: str | None = None
        self.custom_title: str | None = None
        self.summaries: list[tuple[str | None, str]] = []
        self.ended_agents: list[EndedAgent] = []
        self.used = Raw()
        self.thinking: dict[str, object] | None = None
        self.behind: dict[int, tuple[Step, records.Usage]] = {}
        """Calls with the usage that lists the model calls behind them."""
        self.branches = records.Branches()

    def take(self, file: records.File) -> None:
        """Add the records of a file that no earlier file held."""
        builder, artifact = self.builder, file.source.artifact
        builder.artifact_id = artifact.artifact_id
        builder.visits(cwd for cwd in file.folders if cwd)
        for kind, times in file.kinds.items():
            saw(artifact, kind, times)
        running, turns = builder.turn_index, None
        if file.agent_id:  # the turn in which a subagent worked is told by the time alone
            turns = sorted((turn.timestamp, turn.turn) for turn in self.session.turns if turn.timestamp is not None)
        lines = self.lines = file.lines
        if self.session.agent_version is None:
            self.session.agent_version = file.version
        repeated = 0
        occurrences: Counter[str] = Counter()
        seen, session_id, before = self.seen, self.session.session_id, ""
        left, rewinds = self.branches.left, self.branches.rewinds
        left_from: int | None = None  # the first event of the branch that is read
        for n, (line_number, line) in enumerate(zip(file.numbers, lines, strict=True)):
            origin = string(inside(line.forked_from, "messageUuid")) if line.forked_from is not None else None
            key = origin or line.uuid
            if key is None or key == REDACTED:
                key = content_key(line, before, occurrences)
            else:
                before = key
            if key is not None:
                earlier = seen.get(key)
                if earlier is not None and origin is None and not earlier.is_copied_by(line, session_id):
                    key = f"{session_id}|{line.timestamp}|{key}"
                    earlier = seen.get(key)
                if earlier is not None:
                    repeated += 1
                    # Another session has it already: this one was forked off it, or resumed it.
                    if earlier.session_id != session_id and self.session.parent_session_id is None:
                        self.session.parent_session_id = earlier.session_id
                    continue
                seen[key] = Seen(session_id, lines, n)
            builder.line = line_number
            if left and line.uuid is not None and thread_of(line) == MAIN:
                if line.uuid not in left and left_from is not None:
                    builder.abandon(left_from)
                    left_from = None
                elif line.uuid in left and left_from is None:
                    left_from = len(builder.session.events)
                if line.uuid in rewinds:
                    builder.event("rewind", None, logged_iso(line.timestamp))
            if turns is not None:
                at = logged_iso(line.timestamp)
                place = bisect_right(turns, (at, len(turns))) if at is not None else len(turns)
                builder.turn_index = turns[place - 1][1] if place else None
            self._record(line, n)
        if left_from is not None:
            builder.abandon(left_from)
        if self.branches.ends_rewound and left_from is not None:
            builder.event("rewind")
        if repeated:
            saw(artifact, "repeated", repeated)
        if turns is not None:
            builder.turn_index = running

    def finish(self) -> Session:
        self.queue.finish()
        self._close_agents()
        self.bill_iterations()
        session = self.session
        if session.parent_session_id is None:  # a fork's totals go on from those of the session that it copied
            close_with(self.builder, self.used)
        titles = [
            text
            for leaf, text in self.summaries
            if leaf is not None and leaf in self.seen and self.seen[leaf].session_id == session.session_id
        ]
        session.title = self.custom_title or session.title or (titles[-1] if titles else None)
        self.builder.finish()
        self.builder.drop_one_time()
        return session

    def bill_iterations(self) -> None:
        """Add a step for each model call behind a message (design/formats.md#claude-code-usage).

        The message's own figures are those of its last iteration from then on. They hold iterations of type `message`
        only, unless they sum to more. A type that nobody knows makes the cost a lower bound.
        """
        for step, usage in self.behind.values():
            listed = decoded(usage.iterations, list[records.Iteration] | None)
            if listed is None and bytes(usage.iterations) != b"null":
                step.unpriced = "model calls behind a message, in an unknown shape"
            calls = listed or []
            own = [call for call in calls if call.type == "message"]
            counted = summed([tokens_of(usage, "apart")])
            if counted == summed(tokens_of(c, "apart") for c in calls) != summed(tokens_of(c, "apart") for c in own):
                own = calls
            unknown = sorted({call.type for call in calls if call.type not in records.ITERATIONS})
            if unknown:
                step.unpriced = ", ".join(f"{kind[:40] or 'unnamed'} calls" for kind in unknown)
            last = next((call for call in reversed(own) if call.type == "message"), None)
            is_split = counted == summed(tokens_of(c, "apart") for c in own) and (len(own) > 1 or last is None)
            for call in calls:
                if call is last or call.type not in records.ITERATIONS or (call.type == "message" and not is_split):
                    continue
                behind = self.builder.step(None, call.model or step.model, step.timestamp, step.thread)
                behind.turn, behind.seq, behind.stop_reason = step.turn, step.seq, f"{ITERATION}{call.type}"
                charge(behind, tokens_of(call, "apart"), zeros=False)
                if call.cache_creation is not None:
                    behind.cache_write_1h_tokens = call.cache_creation.ephemeral_1h_input_tokens
                if behind.model == step.model:
                    serve_alike(behind, [step])
                for name in _USED if is_split and any(call is each for each in own) else ():
                    if used := getattr(behind, name):
                        setattr(step, name, max((getattr(step, name) or 0) - used, 0))
        self.behind.clear()

    def _close_agents(self) -> None:
        """Stand in for subagents without a log of their own by their closing totals, kept apart from logged calls."""
        logged = {step.thread for step in self.session.steps} | {call.thread for call in self.session.tool_calls}
        in_background: list[EndedAgent] = []
        for text in (e.text for e in self.session.events if e.kind == "notification" and e.text):
            if (match := _ENDED.search(text, max(text.rfind("<usage>"), 0))) is not None:
                about = (re.search(rf"<{tag}>([^<]{{1,200}})</{tag}>", text[:_HEAD_CHARS]) for tag in _ABOUT_AGENT)
                call_id, agent = (found[1] if found else None for found in about)
                if call_id or agent:
                    in_background.append((call_id or "", agent, int(match[2]), int(match[1])))
        for call_id, agent, calls, tokens in (*self.ended_agents, *reversed(in_background)):
            thread = agent or call_id
            # One that was begun anew is notified of again. A stream names a subagent by the call that began it.
            if thread in logged or call_id in logged:
                continue
            logged.add(thread)
            call = next(iter(self.builder.calls_of(call_id)), None)
            step = self.builder.step(None, None, call.ended_at if call is not None else None, thread)
            step.turn, step.seq = (call.turn, call.seq) if call is not None else (step.turn, 0)
            step.stop_reason, step.summed_calls, step.summed_tokens = SESSION_TOTAL, count(calls), count(tokens)
            step.unpriced = "subagents of which only totals are logged"

    def _record(self, line: records.Line, n: int) -> None:
        """Record one line of the log by its type."""
        kind = line.type
        if kind == "progress" and (line.data is None or line.data.message is None):
            if line.data is not None:
                self._running(line.data, line.parent_tool_use_id, logged_iso(line.timestamp))
            return
        if line.cwd != self.cwd and line.cwd:
            self.cwd = line.cwd
            self.builder.where(line.cwd, line.git_branch)
        if kind == "assistant":
            if line.message is not None:
                self._assistant(line.message, line, thread_of(line))
        elif kind == "user":
            if line.message is not None:
                self._user(line, line.message, thread_of(line), n)
        elif kind == "attachment":
            self._attachment(line)
        elif kind == "progress" and line.data is not None:
            self._progress(line.data, line)
        elif kind == "system":
            self._system(line)
        elif kind == "queue-operation":
            self.queue.apply_record(line.operation or "", line.content, logged_iso(line.timestamp), line.reason)
        elif kind in records.QUIET:
            pass
        elif kind == "custom-title":
            self.custom_title = line.custom_title or self.custom_title
        elif kind == "ai-title":
            self.session.title = line.ai_title or self.session.title
        elif kind == "summary":
            self.summaries.append((line.leaf_uuid, line.summary or ""))
        elif kind == "cost-state":  # of the session so far, also where it was resumed
            self.used = line.model_usage or self.used
        else:
            self.builder.event("unknown", kind or "untyped", logged_iso(line.timestamp))

    def _assistant(self, message: records.Message, line: records.Line, thread: str) -> None:
        """Record an answer of the model: its step with tokens and cost, and its texts, thinking and calls."""
        builder = self.builder
        at = logged_iso(line.timestamp)
        if message.model == "<synthetic>" or line.is_api_error_message:
            text = text_of(message)
            failed = is_true(line.is_api_error_message) or text.startswith("API Error")
            builder.event("api_error" if failed else "meta", text, at, None, thread)
            return
        step = builder.step(records.identity(message.id), message.model, at, thread)
        records.count_usage(step, message)
        if message.usage is not None and message.usage.iterations:
            self.behind[step.step] = step, message.usage
        if line.cost_usd is not None:
            step.cost_usd = line.cost_usd if step.cost_usd is None else max(line.cost_usd, step.cost_usd)
            step.cost_source = "recorded"
        if thread == MAIN and message.model is not None:
            turns = self.session.turns
            self.model = builder.model_changed(self.model, message.model, at)
            if turns and turns[-1].model is None:
                turns[-1].model = intern(message.model)
        for block in records.blocks(message):
            kind = block.type
            if kind.endswith("tool_use"):  # also of a server
                name, call_id = block.name or "", block.id or ""
                builder.call(call_id, name, bytes(block.input) or b"{}", self.profile.tool(name), at, step, thread)
                if kind == "tool_use" and call_id in self.early:
                    here = builder.line
                    builder.line, result, result_line = self.early.pop(call_id)
                    answer(builder, result, _structured(result_line), logged_iso(result_line.timestamp), thread)
                    builder.line = here
            elif kind == "text":
                builder.event("text", block.text or "", at, step, thread)
            elif kind in ("thinking", "redacted_thinking"):
                builder.event("thinking", (block.thinking if kind == "thinking" else None) or "", at, step, thread)
            elif kind.endswith("tool_result"):
                answer(builder, block, None, at, thread)
            elif kind == "fallback":  # the change itself shows in the next message's model
                builder.event("meta", "fallback", at, step, thread)
            else:
                builder.event("unknown", f"block {kind}", at, step, thread)

    def _user(self, line: records.Line, message: records.Message, thread: str, n: int | None = None) -> None:
        """Record a `user` record: tool results, or words of the person or of the program."""
        at = logged_iso(line.timestamp)
        content = message.content
        if isinstance(content, list):
            types = [block.type for block in content]
            if not _OF_A_PERSON.issuperset(types):
                self.builder.unread(types, _OF_A_PERSON, at, thread)
            if "tool_result" in types:
                self._results(content, line, at, thread, n)
                return
        if thread == MAIN:
            if isinstance(line.thinking_metadata, dict):
                setting = {name: value for name, value in line.thinking_metadata.items() if name != "triggers"}
                if self.thinking is not None and setting != self.thinking:
                    before, now = (
                        ", ".join(f"{name} {value}" for name, value in sorted(each.items()))[:200]
                        for each in (self.thinking, setting)
                    )
                    self.builder.event("settings_change", f"thinking {before} -> {now}", at)
                self.thinking = setting
            after = self.lines[n + 1 : n + 1 + _NEAR] if n is not None else ()
            self.queue.user_record(user_record(self.builder, line, message, at, after))
        else:
            self.builder.event("meta", text_of(message), at, None, thread)

    def _resumed(self, at: int | None) -> None:
        """Note that the session was resumed. Each hook that ran then says so."""
        if self.builder.latest(("resume", *_AGENT)) not in ("resume", None):
            self.builder.event("resume", "", at)

    def _results(
        self, content: list[records.Block], line: records.Line, at: int | None, thread: str, n: int | None
    ) -> None:
        """Record the tool results and the words of a user record. A result that comes before its call waits for it."""
        # With several results in a record it is not said which one the structured result is of.
        alone = len(content) == 1 or sum(block.type == "tool_result" for block in content) == 1
        structured = _structured(line) if alone else None
        called_after: set[str | None] | None = None  # calls written right after: a fast tool's result may come before
        for block in content:
            if block.type == "tool_result":
                call_id = block.tool_use_id or ""
                if n is not None and called_after is None and self.builder.answered(call_id):
                    near = (r.message for r in self.lines[n + 1 : n + 1 + _NEAR] if r.type == "assistant")
                    called_after = {b.id for message in near if message is not None for b in records.blocks(message)}
                if called_after and call_id in called_after and self.builder.answered(call_id):
                    self.early[call_id] = (self.builder.line, block, line)
                    continue
                answer(self.builder, block, structured, at, thread)
                if structured is not None and structured.total_tool_use_count is not None:
                    agent, calls, tokens = structured.agent_id, structured.total_tool_use_count, structured.total_tokens
                    if isinstance(agent, str | None):
                        self.ended_agents.append((call_id, agent, calls, tokens))
            elif block.type == "text" and block.text and thread == MAIN:
                # In the same record as a tool result: words of the person, unless the program put them there.
                words = without_tagged(block.text, _CONTEXT).strip()
                if words.startswith(INTERRUPTED):
                    interrupt(self.builder, words, at)
                elif words in ("", "Tool loaded."):
                    self.builder.event("meta", block.text, at)
                else:
                    self.builder.prompt(words, at)

    def _running(self, data: records.Progress, call_id: str | None, at: int | None) -> None:
        """Take the report of a tool or a hook that runs. One of a subagent says nothing of the subagent's waits."""
        if data.hook_name == _RESUMED:
            self._resumed(at)
        if call_id is None or data.type == "agent_progress":
            return
        if data.type != "hook_progress":
            ms, seconds = number(data.elapsed_time_ms), number(data.elapsed_time_seconds)
            self.builder.ran(call_id, at, ms / 1000 if ms is not None else seconds or 0.0)
        elif data.hook_event in _HOOKS:
            self.builder.hooked(call_id, at, is_before=_HOOKS[data.hook_event])

    def _progress(self, data: records.Progress, line: records.Line) -> None:
        """Take a record of a subagent's conversation, unless the subagent has a file of its own."""
        inner = data.message
        if not isinstance(inner, records.Line) or inner.message is None:
            return
        thread = data.agent_id or "subagent"
        key = records.identity(inner.uuid)
        if data.agent_id in self.agents or (key is not None and key in self.seen):
            return
        if key is not None:
            self.seen[key] = Seen(self.session.session_id, [inner], 0)
        inner.timestamp = inner.timestamp or line.timestamp
        if inner.type == "assistant":
            self._assistant(inner.message, inner, thread)
        elif inner.type == "user":
            self._user(inner, inner.message, thread)

    def _system(self, line: records.Line) -> None:
        """Record a `system` record by its subtype: compaction, API error, output of a local command."""
        at = logged_iso(line.timestamp)
        kind, text = line.subtype or "", as_text(line.content)
        if kind == "compact_boundary":
            self.builder.event("compaction", _facts(line.compact_metadata), at)
        elif kind == "microcompact_boundary":
            self.builder.event("compaction", _facts(line.microcompact_metadata, kind="micro"), at)
        elif kind == "api_error":
            self.builder.event("api_error", records.error_text(line.error) or text, at)
        elif kind == "local_command":
            self.builder.event("command_output" if text.startswith(_OUTPUT) else "meta", text, at)
        elif kind == "stop_hook_summary" and is_true(line.prevented_continuation):
            self.builder.event("hook_block", line.stop_reason or text, at)
        elif kind in records.SYSTEM_NOTES:
            self.builder.event("meta", text, at)
        elif kind not in records.QUIET_SYSTEM:
            self.builder.event("unknown", f"system.{kind}", at)

    def _attachment(self, line: records.Line) -> None:
        """Record an attachment: a hook that ran around a call, queued prompts, and what the program adds."""
        attached = line.attachment
        if attached is None:
            return
        at = logged_iso(line.timestamp)
        if attached.hook_name == _RESUMED:
            self._resumed(at)
        call_id, ms = attached.tool_use_id, number(attached.duration_ms)
        if attached.hook_event in _HOOKS and call_id is not None and ms is not None:
            self.builder.hooked(call_id, at, is_before=_HOOKS[attached.hook_event], took_s=ms / 1000)
        if attached.type in records.QUIET_ATTACHMENTS:
            return
        if attached.type == "queued_command":
            self.queue.attachment(attached, line, at)
        elif attached.type == "edited_text_file":
            self.builder.event("external_edit", self.builder.relative(attached.filename or ""), at)
        elif attached.type.startswith("plan_mode"):
            self.builder.event("meta", attached.type, at)
        else:
            self.builder.event("unknown", f"attachment.{attached.type}", at)


def _structured(line: records.Line) -> records.Structured | None:
    result = line.tool_use_result
    return result if type(result) is records.Structured else None


def _facts(metadata: object, **more: str) -> str:
    facts = {**metadata, **more} if isinstance(metadata, dict) else more
    return msgspec.json.encode(facts).decode()


def read(inputs: list[Input]) -> Reading:
    """Read files that belong together. Snapshots of a session are united by record id; forks count no record twice."""
    files: list[records.File] = []
    for source in inputs:
        if not source.artifact.path.endswith(".meta.json"):
            files += records.File(source).parts()
        elif document(source.data, source.artifact, decoder(dict[str, object]).decode) is not None:
            saw(source.artifact, "subagent-meta")  # a note on a subagent, which says nothing that its call does not
    ends: dict[str, str] = {}
    if len(files) > 1:
        for file in files:
            ends[file.session_id] = max(file.span[1], ends.get(file.session_id, ""))
        # The original of a fork ended first; a subagent's file comes after the conversation that started it.
        files.sort(key=lambda f: (bool(f.agent_id), ends[f.session_id], f.session_id, f.span, f.source.artifact.sha256))
    agents = {file.agent_id for file in files if file.agent_id}
    seen: dict[str, Seen] = {}
    readers: dict[str, SessionReader] = {}
    lines: dict[str, Sequence[records.Line]] = {}
    for file in files:
        if not file.agent_id:
            earlier = lines.get(file.session_id, ())
            held = {line.uuid for line in earlier} - {None}
            fresh = [line for line in file.lines if line.uuid not in held] if held else file.lines
            lines[file.session_id] = [*earlier, *fresh] if earlier else fresh
    for file in files:
        if file.session_id not in readers:
            readers[file.session_id] = reader = SessionReader(file, seen, agents)
            reader.branches = records.branches(lines.get(file.session_id, ()), is_said)
        readers[file.session_id].take(file)
    sessions = []
    for reader in readers.values():
        session = reader.finish()
        if session.events:
            sessions.append(session)
        elif session.parent_session_id is not None:
            refuse(reader.artifact, "session_of_copies")
    return Reading(sessions, keys=approve_plans(sessions))
