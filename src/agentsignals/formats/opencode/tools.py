"""OpenCode's tools: what they are in shared words, what became of a run, and which lines it changed."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from agentsignals.edits.hunks import Hunk, count_lines, created, of_whole_file, unified
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.figures import whole
from agentsignals.formats.one_document import as_text
from agentsignals.formats.opencode import UNNAMED
from agentsignals.formats.opencode.profile import PROFILE
from agentsignals.formats.opencode.records import Part, State
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import CallStatus, EditOp, Step, ToolCall
from agentsignals.model.times import logged_ms

INVALID = "invalid"
"""The tool that answers in place of one that does not exist, or was called with arguments it does not take. It says
`completed`; what the model wanted is its argument `tool`."""
REFUSED = "The user rejected permission to use this specific tool call"
_FEEDBACK = "with the following feedback: "
_DISMISSED = "The user dismissed this question"
_ABORTED = ("Tool execution aborted", "Cancelled")
_ERROR_HEAD = 200

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_OPS: dict[str, EditOp] = {"add": "create", "update": "modify", "delete": "delete", "move": "rename"}


class Metadata(Struct, frozen=True, gc=False, kw_only=True):
    """What tools say about a run beside its output."""

    exit: object = None
    interrupted: object = None
    exists: object = None
    diff: object = None
    files: Raw = Raw()
    results: Raw = Raw()


class PatchedFile(Struct, gc=False):
    """A file of an `apply_patch` run; the diff is called `diff` first, `patch` later."""

    filePath: str = ""
    movePath: str | None = None
    type: str = ""
    diff: str | None = None
    patch: str | None = None


class Arguments(Struct, frozen=True, gc=False):
    """The arguments of edit tools and shells that say more than their path and command."""

    patchText: str | None = None
    content: str | None = None
    workdir: str | None = None
    command: str | None = None
    tool: str | None = None


_metadata = msgspec.json.Decoder(Metadata).decode
_patched_files = msgspec.json.Decoder(list[PatchedFile]).decode
_results = msgspec.json.Decoder(list[Metadata]).decode
_arguments = msgspec.json.Decoder(Arguments).decode
_NO_METADATA, _NO_ARGUMENTS = Metadata(), Arguments()


class Runs:
    """The tool runs of one session, and what the person said when refusing them."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._ids: set[str] = set()
        self._feedback: list[tuple[str, int | None]] = []
        self._bare: tuple[str, int | None] | None = None

    def add(self, part: Part, at: int | None, step: Step | None) -> None:
        """A tool part: the call, and in the same record its result."""
        state = part.state if part.state is not None else State()
        is_invalid = part.tool == INVALID
        name = (arguments(state).tool if is_invalid else None) or part.tool or ""
        tool = PROFILE.tool(name)
        args = arguments(state) if tool is not None and tool.class_ in ("edit", "shell") else _NO_ARGUMENTS
        began = logged_ms(state.time.start) if state.time is not None else None
        call = self._builder.call(
            self._unique_id(part.callID),
            name,
            _compact(state.input),
            tool,
            began if began is not None else at,
            step,
            path=_patched_path(args),
            folder=args.workdir,
        )
        if state.status in ("completed", "error"):
            self._answer(call, state, args, is_invalid)

    def close(self) -> None:
        """The message is over. Refusing one call rejects all that wait: that is one interruption, not many."""
        for feedback, at in self._feedback:
            if self._builder.session.parent_session_id is None:
                self._builder.turn("rejection_feedback", feedback, at)
            else:
                self._builder.event("meta", feedback, at)
        if self._bare is not None and not self._feedback:
            self._builder.event("interrupt", *self._bare)
        self._feedback, self._bare = [], None

    def _answer(self, call: ToolCall, state: State, args: Arguments, is_invalid: bool) -> None:
        ended = logged_ms(state.time.end) if state.time is not None else None
        telling = call.shell_kind is not None or call.class_ == "edit" or state.status == "error"
        metadata = _decoded(state.metadata) if telling else _NO_METADATA
        text = as_text(state.output if state.status == "completed" else state.error)
        status = outcome("error" if is_invalid else state.status, text, metadata)
        self._builder.result(call.call_id, text, status, ended, call.thread, whole(metadata.exit))
        if status == "rejected":
            self._refused(text, ended)
        elif status == "ok" and call.class_ == "edit":
            _edits(self._builder, call, metadata, args)

    def _refused(self, text: str, at: int | None) -> None:
        where = text.find(_FEEDBACK)
        feedback = text[where + len(_FEEDBACK) :].strip() if where >= 0 else ""
        if feedback:
            self._feedback.append((feedback, at))
        else:
            self._bare = (text, at)

    def _unique_id(self, call_id: str | None) -> str:
        """The call's id, made unique: REDACTED stands for many, and a result must find its own call."""
        if call_id is None or call_id in UNNAMED or call_id in self._ids:
            return f"{call_id or 'call'}#{len(self._builder.session.tool_calls)}"
        self._ids.add(call_id)
        return call_id


def arguments(state: State) -> Arguments:
    """The arguments of a run; none of them when they are no object of the expected kind."""
    try:
        return _arguments(state.input) if state.input else _NO_ARGUMENTS
    except UNREADABLE:
        return _NO_ARGUMENTS


def outcome(status: str, text: str, metadata: Metadata) -> CallStatus:
    """What the state says: `completed` says nothing of an exit code, `error` mixes failures and refusals."""
    if status == "completed":
        return "ok"
    head = text[:_ERROR_HEAD]
    if REFUSED in head or _DISMISSED in head:
        return "rejected"
    if metadata.interrupted is True or head.removeprefix("Error: ") in _ABORTED:
        return "cancelled"
    return "error"


def _edits(builder: SessionBuilder, call: ToolCall, metadata: Metadata, args: Arguments) -> None:
    if metadata.files:
        _patch_edits(builder, call, metadata.files)
    elif call.name == "write":
        _write_edit(builder, call, metadata, args)
    else:
        for path, diff in _diffs(metadata):
            hunks = unified(diff)
            op: EditOp = "create" if "\n@@ -0,0 " in diff else "delete" if " +0,0 @@" in diff else "modify"
            builder.edit(call, path, op, hunks if op == "modify" else of_whole_file(hunks))


def _patch_edits(builder: SessionBuilder, call: ToolCall, raw: Raw) -> None:
    try:
        files = _patched_files(raw)
    except UNREADABLE:
        builder.edit(call, None, "modify", [])
        return
    for file in files:
        op = _OPS.get(file.type, "modify")
        hunks = unified(file.diff or file.patch or "")
        if op == "rename":
            builder.edit(call, file.filePath, "delete", [])
        path = file.movePath or file.filePath if op == "rename" else file.filePath
        builder.edit(call, path, op, of_whole_file(hunks) if op in ("create", "delete") else hunks)


def _write_edit(builder: SessionBuilder, call: ToolCall, metadata: Metadata, args: Arguments) -> None:
    """`write` records no diff: a new file is known line by line, an overwritten one only as replaced whole."""
    content = args.content or ""
    if metadata.exists is False:
        builder.edit(call, None, "create", [created(content)])
    else:
        builder.edit(call, None, "modify", [Hunk(start_line=1, end_line=max(count_lines(content), 1), whole_file=True)])


def _diffs(metadata: Metadata) -> list[tuple[str | None, str]]:
    """The diff of each file of an edit, with its path where the call names none; one empty diff when none is recorded.

    A `multiedit` keeps the diff of each of its edits; an early `patch` one text for all files, each behind `Index: `.
    """
    recorded = [metadata.diff]
    if metadata.results:
        try:
            recorded = [r.diff for r in _results(metadata.results)]
        except UNREADABLE:
            recorded = []
    diffs = [d for d in recorded if isinstance(d, str)]
    if len(diffs) == 1 and diffs[0].count("\nIndex: ") > 0:
        files = [f for f in f"\n{diffs[0]}".split("\nIndex: ") if f.strip()]
        return [(f.split("\n", 1)[0].strip(), f) for f in files]
    return [(None, d) for d in diffs] or [(None, "")]


def _decoded(raw: Raw) -> Metadata:
    try:
        return _metadata(raw) if raw else _NO_METADATA
    except UNREADABLE:
        return _NO_METADATA


def _patched_path(args: Arguments) -> str | None:
    """The one file of a patch; None when it names several."""
    named = set(_PATCHED.findall(args.patchText)) if args.patchText else set()
    return named.pop().strip() if len(named) == 1 else None


def _compact(raw: Raw) -> bytes:
    """JSON without the indentation of the document around it."""
    return msgspec.json.format(bytes(raw), indent=-1) if raw else b"{}"
