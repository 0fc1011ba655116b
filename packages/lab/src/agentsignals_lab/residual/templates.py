"""Rendering of a chat by a chat template, and the place of each message's text in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agentsignals.errors import LabError

from agentsignals_lab.residual.interface import Message


class Place(NamedTuple):
    """Where a message's text stands in the chat as written, and how many characters the template cut off its front."""

    start: int
    end: int
    cut: int


def has_template(tokenizer: Any) -> bool:
    # mistral_common writes its chats itself, without a Jinja template.
    return bool(getattr(tokenizer, "chat_template", None)) or type(tokenizer).__name__ == "MistralCommonBackend"


def rendered(tokenizer: Any, chat: Sequence[Message], contents: Sequence[str]) -> str:
    """The chat as text, ready for an answer; up to the end of an assistant's last message."""
    return str(_applied(tokenizer, chat, contents, tokenize=False))


def rendered_tokens(tokenizer: Any, chat: Sequence[Message], contents: Sequence[str]) -> list[int]:
    """The chat as tokens, for tokenizers that make no token of a special one's text."""
    return list(_applied(tokenizer, chat, contents, tokenize=True, return_dict=False))


def _applied(tokenizer: Any, chat: Sequence[Message], contents: Sequence[str], **how: Any) -> Any:
    opened = chat[-1].speaker == "assistant"
    messages = [{"role": message.speaker, "content": text} for message, text in zip(chat, contents, strict=True)]
    try:
        return tokenizer.apply_chat_template(
            messages, add_generation_prompt=not opened, continue_final_message=opened, **how
        )
    except Exception as problem:  # a template is a program of the model's makers and raises what it likes
        raise LabError(
            f"The model's chat template refuses this chat: {problem}",
            "Remove the system message, or let user and assistant take turns: many templates require it.",
        ) from problem


def places_of(text: str, contents: Sequence[str], write: Callable[[Sequence[str]], str]) -> list[Place]:
    """Where each message's text stands in `text`. LabError when the template did not keep one.

    `write` writes the chat once more with marks for the texts, since a short text may stand in the template's own
    words, too, and some templates move the system's message to the user's last.
    """
    stem = "mark"
    while any(stem in content for content in contents):
        stem += "x"
    marks = [f"{stem}{number}q" for number in range(len(contents))]
    marked = write(marks)
    if any(marked.count(mark) != 1 for mark in marks):
        return found_in(text, contents)
    order = sorted(range(len(marks)), key=lambda number: marked.index(marks[number]))
    walked = _walked(text, [contents[number] for number in order], _between(marked, [marks[n] for n in order]))
    if walked is None:
        return found_in(text, contents)
    return [place for _, place in sorted(zip(order, walked, strict=True))]


def _between(marked: str, marks: Sequence[str]) -> list[str]:
    """The template's own words before, between and after the marks."""
    parts, rest = [], marked
    for mark in marks:
        before, _, rest = rest.partition(mark)
        parts.append(before)
    return [*parts, rest]


def _walked(text: str, contents: Sequence[str], between: Sequence[str]) -> list[Place] | None:
    """Places of texts that follow each other with `between` between them, each perhaps trimmed."""
    places, at = [], 0
    for content, before, after in zip(contents, between, between[1:], strict=False):
        if not text.startswith(before, at):
            return None
        at += len(before)
        for trimmed in dict.fromkeys((content, content.strip(), content.rstrip(), content.lstrip())):
            if text.startswith(trimmed, at) and text.startswith(after, at + len(trimmed)):
                places.append(Place(at, at + len(trimmed), content.find(trimmed)))
                at += len(trimmed)
                break
        else:
            return None
    return places


def found_in(text: str, contents: Sequence[str]) -> list[Place]:
    """Places of texts by looking for one after the other."""
    places, at = [], 0
    for content in contents:
        for trimmed in (content, content.strip()):
            start = text.find(trimmed, at)
            if start >= 0:
                break
        else:
            raise LabError(
                "The chat template or tokenizer does not keep a message as it was told, so its tokens can't be named.",
                f"The message begins: {content[:60]!r}",
            )
        at = start + len(trimmed)
        places.append(Place(start, at, content.find(trimmed)))
    return places
