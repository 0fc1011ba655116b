"""One SWE-agent attempt in the making: the prompt, then a model call for each step of the trajectory."""

from __future__ import annotations

import re

from agentsignals.formats.builder import RESULT_CHARS_KEPT, SessionBuilder
from agentsignals.formats.swe_agent import records
from agentsignals.formats.swe_agent.edits import Window, record
from agentsignals.formats.swe_agent.outcome import outcome
from agentsignals.formats.swe_agent.records import Message, Step, as_text, text_of
from agentsignals.formats.swe_agent.tools import WINDOWED, Action, called, written

_EXITS = ("Exit due to", "Exiting due to", "Exited ")
"""How what the harness writes in the model's place begins, when it ends the run itself."""
_NO_FILE = "n/a"
_SHELL_LINE = re.compile(r"\n\(Open file: ([^\n)]{1,500})\)\n\(Current directory: ([^\n)]{1,500})\)\nbash-\$\s*$")
_OBSERVATION = "OBSERVATION:\n"
_LISTING = "Here's the files and directories"


class Conversation:
    """Reads the steps of one attempt in order. `messages`: the history, which has the prompt and the function calls."""

    def __init__(self, builder: SessionBuilder, messages: list[Message], model: str | None) -> None:
        self.builder = builder
        self.model = model
        self._window = Window()
        self._replies = [m for m in messages if m.role == "assistant" and not m.is_demonstration]
        self._has_history = bool(self._replies)
        self._next = 0
        self._messages = messages

    def read(self, steps: list[Step | None], stated: str | None) -> None:
        """The whole attempt; `stated` is the problem as configured, for a history that was lost."""
        opening = self._messages
        if not opening and steps and steps[0] is not None:
            opening = records.prompt_of(steps[0])
        self._open(opening, stated)
        for n, message in enumerate(self._messages, 1):
            self.builder.line = n
            self.builder.unread(message.kinds, records.PARTS, None)
            for call in (message.tool_calls or ())[1:]:  # of several the harness runs the first
                name = as_text(call.function.name) if call.function is not None else ""
                self.builder.event("unknown", f"another call, {name[:80] or 'without a name'}")
        if not steps:
            self._read_history()
            return
        states = [records.state_of(s) if s is not None else records.State() for s in steps]
        folders = [as_text(s.working_dir) for s in states]
        self.builder.visits(f for f in folders if f)
        self.builder.where(next((f for f in folders if f), None))
        for n, step in enumerate(steps):
            self.builder.line = n + 1
            if step is None:
                continue
            if as_text(states[n].open_file) not in ("", _NO_FILE):
                self._window.open = as_text(states[n].open_file)
            self._step(step, steps[n + 1] if n + 1 < len(steps) else None)
            self.builder.where(folders[n] or None)

    # -- before the first step -----------------------------------------------------------------------------------

    def _open(self, messages: list[Message], stated: str | None) -> None:
        """System prompt and demonstrations aside, what the model is told first is the prompt."""
        asked = False
        for n, message in enumerate(messages, 1):
            self.builder.line = n
            if message.is_demonstration:
                self._note(f"demonstration ({message.role}): {text_of(message.content)}")
            elif message.role == "assistant":
                break
            elif message.role == "system" or asked:
                self._note(text_of(message.content))
            else:
                asked = True
                self.builder.turn("prompt", text_of(message.content).strip(), None, self.model)
        if not asked and stated:
            self.builder.line = 1
            self.builder.turn("prompt", stated.strip(), None, self.model)

    def _note(self, text: str) -> None:
        self.builder.event("meta", text[:RESULT_CHARS_KEPT], n_chars=len(text))

    # -- steps ---------------------------------------------------------------------------------------------------

    def _step(self, step: Step, after: Step | None) -> None:
        line, thought, response = (as_text(v) for v in (step.action, step.thought, step.response))
        observation = as_text(step.observation)
        if response.startswith(_EXITS) and (not line.strip() or line.startswith("exit_")):
            self._match(line, thought)
            self._note("\n".join(t for t in (response, observation) if t))
            return
        message = self._match(line, thought)
        refusal = None
        if message is None and (self._has_history or not observation):
            refusal = _refusal(after)
        self._called(message, thought or (response if not line.strip() else ""), as_text(step.reasoning_content))
        if line.strip():
            action = self._action(message, line)
            self._act(action, message, observation or refusal or "", refused=refusal is not None and not observation)
        elif refusal:
            self._note(refusal)

    def _match(self, line: str, thought: str) -> Message | None:
        """The message of the history that this step became; None when the model was asked again instead."""
        if self._next >= len(self._replies):
            return None
        message = self._replies[self._next]
        same = as_text(message.action).strip() == line.strip()
        if not same or (message.thought is not None and as_text(message.thought).strip() != thought.strip()):
            return None
        self._next += 1
        return message

    def _called(self, message: Message | None, text: str, reasoning: str) -> None:
        step = self.builder.step(None, self.model)
        for block in (message.thinking_blocks if message is not None else None) or ():
            thinking = block.get("thinking")
            self.builder.event("thinking", thinking if isinstance(thinking, str) else "", None, step)
            reasoning = ""
        if reasoning:
            self.builder.event("thinking", reasoning, None, step)
        if text.strip():
            self.builder.event("text", text, None, step)

    def _action(self, message: Message | None, line: str) -> Action:
        calls = message.tool_calls if message is not None else None
        return (called(calls[0]) if calls else None) or written(line)

    def _act(self, action: Action, message: Message | None, observation: str, refused: bool = False) -> None:
        """One action with its answer. Its id is not unique in a trajectory: the answer follows, so the order tells."""
        builder = self.builder
        calls = message.tool_calls if message is not None else None
        call_id = (as_text(calls[0].id) if calls else "") or f"step-{builder.line}"
        path = action.path
        if path is None and action.name in WINDOWED:
            path = self._window.open
        call = builder.call(
            call_id, action.name, action.arguments, action.tool, None, builder.session.steps[-1], path=path
        )
        status, error = outcome(action, call, observation)
        if refused:
            status, error = "error", error or "other"
        if observation.startswith(_LISTING):
            call.class_ = "search"  # as of any tool that lists a folder: no file was read
        builder.result(call_id, observation, status, error=error)
        record(builder, call, action, observation, self._window)

    # -- a file with a history only ------------------------------------------------------------------------------

    def _read_history(self) -> None:
        """Answers are the messages between those of the model; where they run, they tell in their last lines."""
        messages = self._messages
        for n, message in enumerate(messages):
            if message.role != "assistant" or message.is_demonstration:
                continue
            self.builder.line = n + 1
            after = messages[n + 1] if n + 1 < len(messages) else None
            answer = text_of(after.content) if after is not None and after.role != "assistant" else ""
            shell_line = _SHELL_LINE.search(answer[-1_500:])
            if shell_line is not None:
                answer = answer[: answer.rfind("\n(Open file: ")]
                self.builder.where(shell_line[2])
                if shell_line[1] != _NO_FILE:
                    self._window.open = shell_line[1]
            line = as_text(message.action)
            self._called(message, as_text(message.thought) or ("" if line.strip() else text_of(message.content)), "")
            if line.strip():
                self._act(self._action(message, line), message, answer.removeprefix(_OBSERVATION))


def _refusal(after: Step | None) -> str | None:
    """What the model was told when it was asked again: the end of the prompt of the call after."""
    prompt = records.prompt_of(after) if after is not None else []
    last = prompt[-1] if prompt else None
    # The prompt ends with an answer of the environment otherwise, which says of itself that it is one.
    if last is None or last.role != "user" or last.message_type == "observation":
        return None
    return text_of(last.content) or None
