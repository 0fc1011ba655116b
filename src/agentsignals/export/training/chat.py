"""A session as chat messages with tool calls, as trainers take them: `role`, `content`, `tool_calls` with arguments as
an object, and results of the role `tool` (https://huggingface.co/docs/trl/dataset_formats#tool-calling)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from agentsignals.export.moves import Move, arguments, moves, without_nones
from agentsignals.model import Session

Message = dict[str, Any]


class Conversation(Struct, frozen=True, kw_only=True):
    """What a person asked first, and all that came of it."""

    prompt: list[Message]
    """What stands before the agent's first message."""
    moves: list[Move]
    """What comes then: the agent's, and what people said in between."""
    cut_results: int
    """Results of which the store keeps the ends alone."""

    @property
    def completion(self) -> list[Message]:
        """The messages behind the prompt."""
        return [message for move in self.moves for message in messages(move)]

    @property
    def completion_text(self) -> str:
        """What comes behind the prompt, as plain text."""
        return as_text(self.moves)

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return f"{prompt_text(self.prompt)}\n{self.completion_text}"


def conversation(session: Session) -> Conversation | str:
    """The main thread; why there is none to train on, where it has no prompt, or the agent says nothing."""
    whole = [move for move in moves(session) if move.text.strip() or move.thinking or move.calls]
    while whole and whole[-1].role == "user":
        whole.pop()  # nobody answered it
    first = next((n for n, move in enumerate(whole) if move.role == "agent"), len(whole))
    if first == len(whole):
        return "the agent says nothing"
    if first == 0:
        return "no prompt is recorded"
    results = [call.result for move in whole for call in move.calls if call.result is not None]
    return Conversation(
        prompt=[message for move in whole[:first] for message in messages(move)],
        moves=whole[first:],
        cut_results=sum(result.n_chars > len(result.text or "") for result in results),
    )


def messages(move: Move) -> list[Message]:
    """The message of a move, and one for each result of its calls. What the agent thought stands apart
    (`reasoning_content`), as templates of reasoning models take it."""
    if move.role == "user":
        return [{"role": "user", "content": move.text}]
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.call.name, "arguments": arguments(c.call)}}
        for c in move.calls
    ]
    of_agent = {
        "role": "assistant",
        "content": move.text,
        "reasoning_content": move.thought,
        "tool_calls": calls or None,
    }
    results = [
        {"role": "tool", "tool_call_id": c.id, "name": c.call.name, "content": c.result.text or ""}
        for c in move.calls
        if c.result is not None
    ]
    return [without_nones(of_agent), *results]


def as_text(moves_of_it: Iterable[Move]) -> str:
    """Moves as plain text, for what takes no messages."""
    return "\n".join(text for move in moves_of_it for text in (deeds(move), results(move)) if text)


def deeds(move: Move) -> str:
    """What a move says and calls, as plain text."""
    calls = [f"{c.call.name} {c.call.arguments}" for c in move.calls]
    return "\n".join(text for text in (move.thought or "", move.text, *calls) if text)


def results(move: Move) -> str:
    """What its calls brought, as plain text."""
    return "\n".join(c.result.text for c in move.calls if c.result is not None and c.result.text)


def prompt_text(prompt: Sequence[Message]) -> str:
    """The prompt as plain text."""
    return "\n\n".join(message["content"] for message in prompt)
