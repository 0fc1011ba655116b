"""Read the rows of a table of conversations: each a session, with its attempt where the row says how it went.

A row holds messages in any spelling (`formats.columns`), or a text that is another format's file.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.errors import AmbiguousFormat
from agentsignals.formats import Format, Input, Reading, hermes, identify, profile_of
from agentsignals.formats import columns as tables
from agentsignals.formats import outcome_table as outcomes
from agentsignals.formats.any_agent import ANYBODY, tool
from agentsignals.formats.atif.reader import TYPED, printed_exit, read_actions
from agentsignals.formats.bounds import refuse, whole
from agentsignals.formats.builder import charge, record_arguments, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.conversation_table import DIGEST_BYTES, candidates
from agentsignals.formats.records import HEAD_BYTES, Head, saw, skip
from agentsignals.formats.rows import (
    NO_CONVERSATIONS,
    UNREAD_CONVERSATIONS,
    Lost,
    Row,
    columns_note,
    is_packed,
    lose,
    schema_of,
    table,
)
from agentsignals.formats.text_calls import (
    AgentMessage,
    Answered,
    Called,
    answer_of,
    call_of,
    fenced_call,
    python_calls,
    results_of,
)
from agentsignals.model import Artifact, Attempt, CallStatus, Session, Step, ToolCall, logged_time

_PROBED_ROWS = 16
"""Rows that are read to find the column of conversations."""
_SHORTEST_ID = 8
"""A shorter id names a row, not a session: two data sets would share it."""
_NOTHING: tuple[object, ...] = (None, "", b"", [], {}, "[]")

Values = Mapping[str, Any]
Messages = list[dict[str, Any]]


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Yield each row as a session. A row that occurs twice, in one file or two, counts once."""
    seen: dict[str, str] = {}
    for source in inputs:
        yield from TableReader(source, seen).pieces()


class Told(Struct, gc=False):
    """A row that is a conversation: its number, its messages, the id that it gives the session."""

    line: int
    row: Values
    messages: Messages
    name: str | None


class TableReader:
    """Reads one table. `seen` holds the sessions of all tables that are read together: the digest of each, by id."""

    def __init__(self, source: Input, seen: dict[str, str]) -> None:
        self.source, self.artifact, self.seen = source, source.artifact, seen
        self.column: str | None = None
        self.is_reward = True
        self.format: Format | None = None
        """The format of the texts in the column, as the last row had it."""
        self.waiting: Told | None = None
        """The last row. The next one may be a longer state of its conversation."""

    def pieces(self) -> Iterator[Reading]:
        names, rows = table(self.source, self.artifact, self._wanted, nested=True)
        first = list(islice(rows, _PROBED_ROWS))
        held = [row for _, row in first if not isinstance(row, Lost)]
        self.column = self._column_of(held)
        named = tables.may_hold(dict.fromkeys(name for row in held for name in row))
        if self.column is None and named and all(row.get(name) in _NOTHING for row in held for name in named):
            self.column = named[0]  # rows sorted by outcome may begin with the attempts that left nothing
        if self.column is None:
            yield from self._without_conversations(names, first, rows)
            return
        columns = tables.row_of(tuple(names))
        self.is_reward = outcomes.is_reward(self.source, columns.outcomes)
        for line, row in chain(first, rows):
            yield from self._row(line, row)
        yield from self._last()

    def _wanted(self, names: list[str]) -> frozenset[str]:
        schema = schema_of(self.source.data) if is_packed(self.source.data) else None
        return tables.row_of(tuple(names)).read.union(candidates(schema) if schema is not None else ())

    def _column_of(self, rows: list[Values]) -> str | None:
        """Return the column in which most rows hold a conversation; of several the largest."""
        counted: dict[str, tuple[bool, int]] = {}
        names = dict.fromkeys(name for row in rows for name in row)
        for name in tables.may_hold(names) or names:
            values = [row[name] for row in rows if row.get(name) not in _NOTHING]
            said = [bool(_messages_in(value)) for value in values]
            is_log = any(
                not s and self._claimed(_document_in(v)) is not None for s, v in zip(said, values, strict=True)
            )
            if is_log or any(said):  # the agent's own log says more than messages that were made of it
                counted[name] = is_log, sum(len(_as_text(value)) for value in values)
        answers = [name for name in tables.answers_in(names) if name in counted]
        return max(answers or counted, key=lambda name: counted[name]) if counted else None

    def _without_conversations(
        self, names: list[str], first: list[tuple[int, Row]], rows: Iterator[tuple[int, Row]]
    ) -> Iterator[Reading]:
        """Read the outcomes of a table that holds nothing else, or name its columns."""
        if not tables.columns_of(names).lacks:
            artifact = self.artifact
            artifact.records = artifact.skipped = 0
            artifact.skipped_reasons.clear()
            yield from outcomes.pieces([self.source])
            held = [row for _, row in first if not isinstance(row, Lost)]
            unread = next((n for n in tables.may_hold(names) if any(_is_structured(row.get(n)) for row in held)), None)
            if unread is not None:
                refuse(artifact, UNREAD_CONVERSATIONS)
                artifact.note = f"table whose column {unread} holds no messages and no file of a known format"
            return
        found = 0
        for _, row in chain(first, rows):
            if isinstance(row, Lost):
                lose(self.artifact, row)
            else:
                found += 1
        if found:
            self.artifact.skipped += found
            self.artifact.skipped_reasons[NO_CONVERSATIONS] = 1
            self.artifact.note = columns_note(names)

    # -- one row

    def _row(self, line: int, row: Row) -> Iterator[Reading]:
        """Yield the session and attempt of a table's row; a row without a conversation is skipped and counted."""
        if isinstance(row, Lost):
            lose(self.artifact, row)
            return
        column, value = self.column or "", row.get(self.column or "")
        if value in _NOTHING:  # tables that were joined have a column of each
            column = next((name for name in tables.may_hold(row) if _messages_in(row[name])), column)
            value = row.get(column)
        if value in _NOTHING:
            part = self._part(line, row, None)
            skip(self.artifact, "empty_conversation")
            if part is not None:
                yield Reading(attempts=[part])
            return
        said = _messages_in(value)
        asked = tables.asked_in(row, column, said)
        if isinstance(asked, str):
            said.insert(0, {tables.ROLE[0]: "user", tables.WORDS[0]: asked})
        else:
            said = _messages_in(asked) + said
        if said:
            yield from self._take(Told(line, row, said, self._name(row)))
            return
        yield from self._last()
        reading = self._of_format(line, row, value)
        if reading is None:
            skip(self.artifact, "bad_shape")
        else:
            yield reading

    def _take(self, told: Told) -> Iterator[Reading]:
        """Hold a row back until the next one shows that it is no longer state of the same conversation."""
        saw(self.artifact, "row")
        before = self.waiting
        if before is not None and told.name is not None and told.name == before.name:
            shorter, longer = sorted((before, told), key=lambda one: len(one.messages))
            if longer.messages[: len(shorter.messages)] == shorter.messages:
                saw(self.artifact, "repeated")
                self.waiting = longer
                return
        yield from self._last()
        self.waiting = told

    def _last(self) -> Iterator[Reading]:
        """Yield the row that waited, under a name that no other conversation of the file has."""
        told, self.waiting = self.waiting, None
        if told is None:
            return
        digest = digest_of(told.messages, tables.row_of(tuple(told.row)).identity(told.row))
        name = told.name or digest
        if len(name) < _SHORTEST_ID or name.isdigit():
            name = f"{name}-{digest}"
        if self.seen.get(name, digest) != digest:
            name = f"{name}-{digest}"  # another conversation of the same name
        if self.seen.get(name) == digest:
            saw(self.artifact, "repeated")
            return
        self.seen[name] = digest
        session = RowReader(self._session(name, told.row), told, self.source).build()
        if session.events:
            part = self._part(told.line, told.row, session)
            yield Reading([session], attempts=[part] if part is not None else [])

    def _session(self, name: str, row: Values) -> Session:
        columns = tables.row_of(tuple(row))
        settings = columns.outcomes.settings
        named = _short(row.get(settings.get("agent_type", "")))
        if named is not None and (known := profile_of(named)) is not None:
            named = known.agent
        session = self.source.session(
            name, "conversation-table", named or ("hermes" if hermes.is_row(row) else "unknown")
        )
        session.model = _short(row.get(settings.get("model_id", "")))
        repo = _short(row.get(columns.repo or ""))
        session.repo = repo if repo is not None and "/" in repo else session.repo
        return session

    def _name(self, row: Values) -> str | None:
        columns = tables.row_of(tuple(row))
        values = (row.get(name) for name in columns.session_id)
        texts = (str(v) if type(v) is int else v for v in values)
        return next((text for text in texts if isinstance(text, str) and text), None)

    # -- a row that is another format's file

    def _claimed(self, text: str) -> tuple[Format, list[str]] | None:
        data = text.encode("utf-8", "replace")
        if not data:
            return None
        try:
            claim = identify(Head(data[:HEAD_BYTES], self.artifact.path, len(data) <= HEAD_BYTES), last=False)
        except AmbiguousFormat:
            return None
        return None if claim is None else (claim[0], claim[1].keys)

    def _of_format(self, line: int, row: Values, value: Any) -> Reading | None:
        """Read a value as a file of the format that claims it, together with the row's labels if these are of the
        same format."""
        text = _document_in(value)
        claimed = self._claimed(text)
        if claimed is None:
            return None
        columns = tables.row_of(tuple(row))
        about = next((key.partition(":")[2] for key in claimed[1]), f"{line}")
        own = replace(self.artifact, records=0, skipped=0, skipped_reasons={}, record_kinds={}, note=None)
        files = [Input(text.encode("utf-8", "replace"), own, repo_hint=self.source.repo_hint)]
        files[0].artifact.path = f"{self.artifact.path}/{line}/{about}"
        labels = _document_in(row.get(columns.labels or ""))
        if labels and (same := self._claimed(labels)) is not None and same[0] is claimed[0]:
            files.append(replace(files[0], data=labels.encode("utf-8", "replace")))
        reading = claimed[0].read(files)
        _add(self.artifact, own)
        saw(self.artifact, "row")
        for session in reading.sessions:
            session.session_id = session.session_id or self._name(row) or f"{self.artifact.artifact_id}-{line}"
            if (part := self._part(line, row, session)) is not None:
                part.root = next((p.root for p in reading.attempts), part.root)
                reading.attempts.append(part)
        return reading if reading.sessions or reading.attempts else None

    # -- its outcome

    def _part(self, line: int, row: Values, session: Session | None) -> Attempt | None:
        """Return how the attempt went as the row says it. None of a row that says nothing of that."""
        columns = tables.row_of(tuple(row))
        result = row.get(columns.result or "")
        patch = row.get(columns.patch or "")
        told = [row.get(name) for name in columns.outcomes.outcomes]
        is_judged = any(value is not None for value in told) or result is not None
        if not is_judged and (session is None or not columns.names_attempts):
            return None
        part = outcomes.attempt_of(self.source, columns.outcomes, self.is_reward, line, row)
        if part.reward is None and result is not None:
            solved, score = tables.verdict(result), tables.score_of(result)
            part.reward = float(solved) if solved is not None else score if 0 <= (score or 0) <= 1 else None
            if part.reward is None and part.exit_status is None and isinstance(result, str) and result.strip():
                part.exit_status = _short(result)
                part.statements[0].fields.append("exit_status")
            part.statements[0].text += f", {columns.result} {str(result)[:_SHOWN_CHARS]}"
        if isinstance(patch, str) and looks_like_diff(patch):
            part.patch, part.patch_text_bytes = patched_files(patch), len(patch.encode("utf-8", "replace"))
            part.kinds.append("patch")
            part.statements[0].fields.append("patch")
        if session is not None:
            part.session_artifact, part.session_id = session.artifact_id, session.session_id
            session.context = "eval"
        return part


def digest_of(messages: Messages, identity: list[str]) -> str:
    """Return a digest of what was said in which attempt, the same in every kind of file. In Parquet each message has
    every key."""
    said = msgspec.json.encode([_without_nones(messages), identity], enc_hook=str, order="deterministic")
    return hashlib.blake2b(said, digest_size=DIGEST_BYTES).hexdigest()


def _without_nones(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nones(inner) for name, inner in value.items() if inner is not None}
    return [_without_nones(inner) for inner in value] if isinstance(value, list) else value


def _messages_in(value: Any) -> Messages:
    """Return the messages of a value: a list of them, its JSON, or an object that holds one."""
    if messages := tables.messages_of(value):
        return messages
    if isinstance(value, str | bytes) and value.lstrip()[:1] in ("{", b"{"):
        value = tables.json_in(value)
    if isinstance(value, dict) and "type" not in value:
        return next((m for name in tables.may_hold(value) if (m := tables.messages_of(value[name]))), [])
    return []


def _document_in(value: Any) -> str:
    """Return a value as the text of a file: a list of objects as JSON Lines."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and value.lstrip().startswith("[") and isinstance(held := tables.json_in(value), list):
        value = held
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "".join(f"{item}\n" for item in value)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "".join(f"{_as_text(_without_nones(item))}\n" for item in value)
    return _as_text(_without_nones(value)) if isinstance(value, dict) else value if isinstance(value, str) else ""


def _is_structured(value: Any) -> bool:
    """Return whether a value is a list or an object, or the JSON of one."""
    value = tables.json_in(value) if isinstance(value, str) else value
    return isinstance(value, list | dict) and bool(value)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _short(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 200 and "\n" not in value else None


def _add(artifact: Artifact, part: Artifact) -> None:
    """Add what was counted over a part of a file."""
    artifact.skipped += part.skipped
    artifact.records += part.records
    for total, counted in (
        (artifact.skipped_reasons, part.skipped_reasons),
        (artifact.record_kinds, part.record_kinds),
    ):
        for name, n in counted.items():
            total[name] = total.get(name, 0) + n


def _time(value: Any) -> int | None:
    return logged_time(value.isoformat() if hasattr(value, "isoformat") else value)


_FAILED = ("Error:", "error:", "ERROR:", "Error executing tool")
_PARTS = frozenset(("text", "image", "image_url", "input_audio", "input_video", "file", "input_text", "output_text"))
_MOSTLY = 2 / 3
_SHOWN_CHARS = 100
_LONGEST_JSON = 100_000
"""Characters of a result that is looked at as JSON."""


class RowReader(Conversation):
    """Reads the messages of a row. Calls without an id meet their results in order."""

    profile = ANYBODY

    def __init__(self, session: Session, told: Told, source: Input) -> None:
        super().__init__(session)
        self.told, self.columns = told, tables.row_of(tuple(told.row))
        self.builder.line = told.line
        self.waiting: deque[tuple[str, str, bool]] = deque()
        """Calls without a result: id, tool, and whether the call stands in the text of its message."""
        self.step: Step | None = None
        self.is_fenced = _is_fenced(told.messages)

    def build(self) -> Session:
        row, columns = self.told.row, self.columns
        instructions = row.get(columns.instructions or "")
        if isinstance(instructions, str) and instructions:
            self.event("meta", instructions)
        for message in self.told.messages:
            self.take(message)
        if hermes.is_row(row):
            self.event("meta", hermes.facts_of(row))
        session = self.builder.finish()
        self.builder.drop_one_time()
        if session.started_at is None:
            session.started_at = _time(row.get(columns.started or ""))
        if session.ended_at is None:
            session.ended_at = _time(row.get(columns.ended or ""))
        return session

    def take(self, message: dict[str, Any]) -> None:
        said = tables.role_of(message) or ""
        role, at = tables.ROLES.get(said.lower()), _time(message.get("timestamp"))
        content = next((message[name] for name in tables.WORDS if message.get(name) is not None), None)
        if isinstance(content, list):
            parts = [part for part in content if isinstance(part, dict)]
            text = "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
        else:
            parts, text = [], _as_text(content)
        if role == "person":
            self.step = None
            self.results_among(parts, at)
            self.person(text, parts, at)
        elif role == "agent":
            self.answer(message, text, parts, at)
            self.results_among(parts, at)
        elif role == "tool":
            self.step = None
            if not self.results_among(parts, at):
                self.tool_message(message, content if isinstance(content, dict) else text, at)
        elif role == "call":
            self.call_message(message, text, at)
        elif role == "instructions":
            words = text or next((str(message[n]) for n in tables.INSTRUCTIONS if message.get(n)), "")
            self.event("meta", words, at)
        else:
            self.event("unknown", f"{said[:80]}: {text}", at)
        types = (str(part.get("type") or "text") for part in parts)
        self.builder.unread(types, _PARTS | _CALL_PARTS, at, self.thread)

    def person(self, text: str, parts: list[dict[str, Any]], at: int | None) -> None:
        """Begin a turn, unless the words are the result of a call that stood in the agent's text."""
        if any(in_text for *_, in_text in self.waiting):
            for result in results_of(text):
                self.result_of(None, result.name, result.content, {}, at)
            self.waiting.clear()
        elif text or any(part.get("type") in _PARTS for part in parts):
            self.prompt(text, at, attached=bool(parts))

    def answer(self, message: dict[str, Any], text: str, parts: list[dict[str, Any]], at: int | None) -> None:
        model = _short(message.get("model")) or self.session.model
        step = self.step = self.builder.step(None, model, at)
        if isinstance(message.get("usage"), dict):
            charge(step, tokens_of(message["usage"], "within_if_fewer"))
        said = self.parted(text)
        logged = [message.get(name) for name in tables.THOUGHTS] + [part.get("thinking") for part in parts]
        for thought in dict.fromkeys([*(t for t in logged if isinstance(t, str) and t), *said.thoughts]):
            self.event("thinking", thought, at, step)
        for words in said.texts:
            self.event("text", words, at, step)
        self.waiting.clear()
        objects = [call for name in tables.CALLS for call in _objects_in(message.get(name))]
        objects += [part for part in parts if part.get("type") in ("tool_use", "tool_call")]
        for call in objects:
            self.call_object(call, at, step)
        for one in said.calls if not objects else ():
            self.ask(None, one, at, step, in_text=True)

    def parted(self, text: str) -> AgentMessage:
        """Take an agent's text apart: its thoughts, its words, and the calls that stand in it in whatever form."""
        said = answer_of(text)
        if said.calls:
            return said
        words = "\n".join(said.texts)
        if words[:1] in ("{", "["):
            value = tables.json_in(words)
            calls = [call_of(one) for one in (value if isinstance(value, list) else [value])]
            if calls and None not in calls:
                return AgentMessage(said.thoughts, [], [call for call in calls if call is not None])
        if self.is_fenced and (fenced := fenced_call(words)) is not None:
            command = msgspec.json.encode({"command": fenced[1]}).decode()
            return AgentMessage(said.thoughts, [fenced[0]] if fenced[0] else [], [Called("bash", command)])
        if '"commands"' in words:
            prose, typed = read_actions(words)
            return AgentMessage(said.thoughts, [prose] if prose else [], [Called(*one) for one in typed])
        return said

    def call_message(self, message: dict[str, Any], text: str, at: int | None) -> None:
        """Record a message that is a call, or a list of calls. Anything else is text of the agent."""
        value = tables.json_in(text)
        calls = [c for one in (value if isinstance(value, list) else [value]) if (c := call_of(one)) is not None]
        if not calls:
            self.answer(message, text, [], at)
            return
        self.step = self.step or self.builder.step(None, self.session.model, at)
        for call in calls:
            self.ask(None, call, at, self.step)

    def call_object(self, call: Values, at: int | None, step: Step) -> None:
        """Record a call that is an object, and its result if it holds that, too."""
        function = call["function"] if isinstance(call.get("function"), dict) else call
        name = next((str(function[n]) for n in _NAMES if function.get(n)), "")
        given: Any = next((function[n] for n in _ARGUMENTS if function.get(n) is not None), {})
        arguments = given if isinstance(given, str) else _as_text(_without_nones(given))
        call_id = call.get("id") or call.get("call_id")
        name_of_call = self.ask(call_id if isinstance(call_id, str) else None, Called(name, arguments), at, step)
        result = next((call[n] for n in _RESULTS if call.get(n) is not None), None)
        if result is not None or call.get("status") is not None:
            self.result_of(name_of_call, None, result, call, at)

    def ask(self, call_id: str | None, call: Called, at: int | None, step: Step, in_text: bool = False) -> str:
        known = call_id if call_id is not None and not self.builder.calls_of(call_id) else None
        known = known or f"call_{len(self.session.tool_calls)}"
        self.builder.call(known, call.name, call.arguments, tool(call.name) or self.profile.tool(call.name), at, step)
        self.waiting.append((known, call.name, in_text))
        return known

    def results_among(self, parts: list[dict[str, Any]], at: int | None) -> bool:
        """Record the results among the parts of a message."""
        results = [part for part in parts if part.get("type") in ("tool_result", "tool-result")]
        for part in results:
            held = next((part[n] for n in ("content", *_RESULTS) if part.get(n) is not None), "")
            self.result_of(part.get("tool_use_id") or part.get("toolCallId"), None, held, part, at)
        return bool(results)

    def tool_message(self, message: dict[str, Any], content: Any, at: int | None) -> None:
        call_id = next((message[name] for name in tables.CALL_IDS if message.get(name)), None)
        for result in results_of(content) if isinstance(content, str) else [Answered(content)]:
            name = result.name or (message["name"] if isinstance(message.get("name"), str) else None)
            self.result_of(call_id, name, result.content, message, at)

    def result_of(self, call_id: object, name: str | None, content: Any, said: Values, at: int | None) -> None:
        """Record a result for the call of that id, else for the oldest call of that tool, else for the oldest.

        `said`: the record that holds it, which may say how the call ended. Else the status is not known, unless the
        result says so itself.
        """
        mine = next((one for one in self.waiting if one[0] == call_id), None)
        if mine is None and not isinstance(call_id, str):
            of_tool = (one for one in self.waiting if one[1] == name)
            mine = next(of_tool, self.waiting[0] if self.waiting else None)
        if mine is not None:
            self.waiting.remove(mine)
        text = "\n".join(map(_words, content)) if isinstance(content, list) else _as_text(content)
        told = tables.json_in(text) if text[:1] == "{" and len(text) <= _LONGEST_JSON else None
        told = told if isinstance(told, dict) else {}
        known = mine[0] if mine is not None else str(call_id or "")
        calls = self.builder.calls_of(known)
        is_shell = bool(calls) and calls[0].command is not None and calls[0].name not in TYPED
        code = whole(told.get("exit_code", told.get("returncode")))
        code = printed_exit(text) if code is None and is_shell else code
        status: CallStatus = "ok" if code == 0 or told.get("success") is True else "unknown"
        ended = str(said.get("status") or "").lower()
        if said.get("is_error") is False or ended in _WELL:
            status = "ok"
        failed = said.get("is_error") is True or ended in _BADLY or told.get("success") is False
        if failed or code not in (None, 0) or bool(told.get("error")) or text.lstrip().startswith(_FAILED):
            status = "error"
        if content is None and calls:  # how it ended is told, and nothing of what it gave
            call: ToolCall | None = calls[0]
            calls[0].status = status
        else:
            call = self.builder.result(known, text, status, at, exit_code=code)
        if call is not None and status != "error" and call.class_ == "edit":
            record_arguments(self.builder, call)


_NAMES = ("name", "tool", "tool_name", "toolName")
_ARGUMENTS = ("arguments", "input", "args", "parameters", "params")
_RESULTS = ("output", "result", "response")
_CALL_PARTS = frozenset(("tool_use", "tool_call", "tool_result", "tool-result", "thinking", "reasoning"))
_WELL, _BADLY = ("success", "ok", "completed", "done"), ("error", "failed", "failure")


def _objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the calls of a message: objects, their JSON, or calls as Python writes them."""
    if isinstance(value, str) and value:
        read = tables.json_in(value)
        value = python_calls(value) if read is None else read
    items = value if isinstance(value, list) else [value]
    items = [tables.json_in(item) if isinstance(item, str) else item for item in items]
    return [item for item in items if isinstance(item, dict)]


def _words(part: Any) -> str:
    return str(part["text"]) if isinstance(part, dict) and isinstance(part.get("text"), str) else _as_text(part)


def _is_fenced(messages: Messages) -> bool:
    """Return whether the agent acts by the fenced block that ends its messages: its instructions show one, or a return
    code answers it, and most of its messages end so and hold no call in another form."""
    roles = [tables.ROLES.get((tables.role_of(message) or "").lower()) for message in messages]
    texts = [_as_text(next((m[n] for n in (*tables.WORDS, *tables.INSTRUCTIONS) if m.get(n)), "")) for m in messages]
    answers = [n for n, role in enumerate(roles) if role == "agent"]
    is_shown = bool(answers) and any("```" in text for text in texts[: answers[0]])
    if not is_shown and not any(text.startswith("<returncode>") for text in texts):
        return False
    acts = sum(fenced_call(texts[n]) is not None and not tables.has_calls(messages[n]) for n in answers)
    return acts >= _MOSTLY * len(answers)
