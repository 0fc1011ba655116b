"""Reads from each log what it says of its trial, and the records that a terminal shows."""

import posixpath
import re
from math import inf

from agentsignals.formats import Input, Reading, identify
from agentsignals.formats.documents import saw_again
from agentsignals.formats.harbor import EXCEPTION, TERMINALS
from agentsignals.formats.records import HEAD_BYTES, Head, saw, skip
from agentsignals.formats.terminal import printed
from agentsignals.formats.test_report import program_not_there, read_junit, read_log, tests_text
from agentsignals.model import Attempt, Session, Verification

_REWARD, _RETURN_CODE = "reward.txt", "return-code.txt"
_MOST_OF_REWARD = 64
_NOT_STARTED = (126, 127)
_END = 4_000
_RAISED = re.compile(r"^([A-Za-z_][\w.]{0,200}(?:Error|Exception|Exit|Interrupt|Timeout))(?::|$)", re.MULTILINE)


def read(inputs: list[Input]) -> Reading:
    """Read a part of the trial from each file that says something of it."""
    reading = Reading()
    on_screen: dict[tuple[str, str], list[tuple[Input, Session]]] = {}
    for source in inputs:
        artifact, data = source.artifact, source.data
        for session in _transcripts(source):
            trial = posixpath.dirname(source.folder)
            on_screen.setdefault((trial, session.session_id), []).append((source, session))
        artifact.records += 1
        part = Attempt(root=source.folder, scope="trial", kinds=["attempt_log"])
        folder, name = posixpath.split(artifact.path)
        inner = posixpath.basename(folder)
        if name in (_REWARD, _RETURN_CODE):
            try:
                number = float(bytes(data[:_MOST_OF_REWARD]).decode("utf-8", "replace").strip())
            except ValueError:
                number = inf
            if not abs(number) < inf:
                skip(artifact, "no_number")
                continue
            if name == _REWARD:
                saw(artifact, "reward")
                part.reward, part.statements = number, source.states(f"verifier's reward: {number}", ["reward"])
            else:
                saw(artifact, "return_code")
                if number in _NOT_STARTED and inner.startswith("command"):
                    part.agent_started = False
                    part.statements = source.states(f"{inner} ended with exit code {number:g}", ["agent_started"])
        elif name == EXCEPTION:
            saw(artifact, "exception")
            # A traceback ends in the name of the exception and its message.
            start = max(len(data) - _END, 0)
            text = bytes(data[start:]).decode("utf-8", "replace")
            if raised := list(_RAISED.finditer(text)):
                last = raised[-1]
                part.exception = last[1].rpartition(".")[2]
                line = bytes(source.data[:start]).count(b"\n") + text.count("\n", 0, last.start()) + 1
                part.statements = source.states(text[last.start() :].split("\n", 1)[0], ["exception"], line)
        elif name.endswith(".xml"):
            part.verification = read_junit(data)
            if part.verification is None:
                skip(artifact, "bad_shape")
                continue
            saw(artifact, "test_report")
            part.statements = source.states(_shown(part.verification), ["verification"])
        elif inner == "verifier" or (inner in TERMINALS and "test" in name):
            saw(artifact, "verifier_log")
            log = read_log(data)
            part.verification, part.fault = log.verification, log.fault or None
            if log.text:
                text = _shown(part.verification) if log.state == "ran" and part.verification is not None else log.text
                part.statements = source.states(text, ["fault" if log.fault else "verification"], log.line)
        elif inner not in TERMINALS or name.startswith(("post-agent", "agent")):
            saw(artifact, "agent_log")
            if (shown := program_not_there(data, name.partition(".")[0] if inner == "agent" else "")) is not None:
                part.agent_started = False
                part.statements = source.states(shown[1], ["agent_started"], shown[0])
        else:
            saw(artifact, "log")
        reading.attempts.append(part)
    for copies in on_screen.values():  # a pane may begin late, and a log may break off
        best = max((session for _, session in copies), key=lambda s: (len(s.steps), len(s.events)))
        reading.sessions.append(best)
        for source, session in copies:
            if session is not best:
                source.artifact.note = f"shows the session of {best.artifact_id}"
                saw_again(source.artifact)
    return reading


def _transcripts(source: Input) -> list[Session]:
    """Return the sessions whose records a terminal or an agent's log shows, as the format of these records reads them.

    What a terminal shows of other files is no session: records without a model call or a tool call.
    """
    inner = posixpath.basename(source.folder)
    if inner == "verifier" or (records := printed(source.data)) is None:
        return []
    head = Head(records.data[:HEAD_BYTES], source.artifact.path, len(records.data) <= HEAD_BYTES)
    found = identify(head)
    if found is None or found[0].name == "harbor-log":
        return []
    sessions = [s for s in found[0].read([Input(records.data, source.artifact)]).sessions if s.steps or s.tool_calls]
    for session in sessions:
        for event in session.events:
            event.line = records.lines[min(max(event.line, 1), len(records.lines)) - 1]
    return sessions


def _shown(tests: Verification) -> str:
    return tests.message or tests_text(tests)
