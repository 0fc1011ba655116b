"""Chats and texts as tokens, with the role of every token.

A token's role is that of the character at which it begins, told by the tokenizer's offsets; spaces before a word do not
count, since tokenizers differ in whose they are. A tokenizer without offsets (a slow one, Mistral's own) has its tokens
decoded one after another; each begins where the text so far ends.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from agentsignals.errors import LabError

from agentsignals_lab.residual import Message, Piece, Prompt, Role, Span


class TextPlace(NamedTuple):
    """Where a message's text stands in the chat as written, and how many characters the template cut off its front."""

    start: int
    end: int
    cut: int


def has_template(tokenizer: Any) -> bool:
    # mistral_common writes its chats itself, without a Jinja template.
    return bool(getattr(tokenizer, "chat_template", None)) or type(tokenizer).__name__ == "MistralCommonBackend"


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


def places_of(text: str, contents: Sequence[str], write: Callable[[Sequence[str]], str]) -> list[TextPlace]:
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
    between = re.split("|".join(marks), marked)  # the template's own words
    walked = _walked(text, [contents[number] for number in order], between)
    if walked is None:
        return found_in(text, contents)
    return [place for _, place in sorted(zip(order, walked, strict=True))]


def _walked(text: str, contents: Sequence[str], between: Sequence[str]) -> list[TextPlace] | None:
    """Places of texts that follow each other with `between` between them, each perhaps trimmed."""
    places, at = [], 0
    for content, before, after in zip(contents, between, between[1:], strict=False):
        if not text.startswith(before, at):
            return None
        at += len(before)
        for trimmed in dict.fromkeys((content, content.strip(), content.rstrip(), content.lstrip())):
            if text.startswith(trimmed, at) and text.startswith(after, at + len(trimmed)):
                places.append(TextPlace(at, at + len(trimmed), content.find(trimmed)))
                at += len(trimmed)
                break
        else:
            return None
    return places


def found_in(text: str, contents: Sequence[str]) -> list[TextPlace]:
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
        places.append(TextPlace(start, at, content.find(trimmed)))
    return places


_MOST_TOKENS_OF_A_CHARACTER = 8
"""Tokens whose text stays incomplete longer than this are no part of a character: the bytes are broken."""


class _Stretch(NamedTuple):
    """Characters from `start` on, up to the next stretch."""

    start: int
    role: Role
    label: str = ""


def encode_chat(tokenizer: Any, chat: Sequence[Message]) -> Prompt:
    """A chat under the tokenizer's template, ready for an answer; an assistant's last message is left open, to be
    continued. LabError without a template, but for a single user's message: that is plain text then.
    """
    if not chat:
        raise LabError("A chat has no message.", "Give it one.")
    if not has_template(tokenizer):
        if len(chat) == 1 and chat[0].speaker == "user":
            return encode_pieces(tokenizer, chat[0].pieces)
        raise LabError(
            "This model has no chat template, and the chat has more than one message.",
            "Use an instruct model, or give plain text.",
        )
    contents = ["".join(piece.text for piece in message.pieces) for message in chat]
    if _is_fast(tokenizer):

        def write(texts: Sequence[str]) -> str:
            return str(_applied(tokenizer, chat, texts, tokenize=False))

        text = write(contents)
        tokens, starts, _ = _with_offsets(tokenizer, text, special=False)
    else:  # one that makes no token of a special one's text

        def read_back(texts: Sequence[str]) -> tuple[list[int], str, list[int]]:
            tokens = list(_applied(tokenizer, chat, texts, tokenize=True, return_dict=False))
            return tokens, *_decoded(tokenizer, tokens)

        tokens, text, starts = read_back(contents)

        def write(texts: Sequence[str]) -> str:
            return read_back(texts)[1]

    stretches = [_Stretch(-1, "template")]
    for place, message in sorted(zip(places_of(text, contents, write), chat, strict=True), key=lambda pair: pair[0]):
        stretches += [*_of_pieces(message.pieces, place), _Stretch(place.end, "template")]
    return Prompt(tuple(tokens), tuple(_spans(starts, stretches)), text)


def encode_pieces(tokenizer: Any, pieces: Sequence[Piece]) -> Prompt:
    """Plain text, after the tokenizer's beginning-of-sequence token where it adds one."""
    text = "".join(piece.text for piece in pieces)
    if _is_fast(tokenizer):
        tokens, starts, added = _with_offsets(tokenizer, text, special=True)
        place = TextPlace(0, len(text), 0)
    else:
        tokens = tokenizer.encode(text, add_special_tokens=True)
        text_read, starts = _decoded(tokenizer, tokens)
        place = found_in(text_read, [text])[0]
        added = [start < place.start or start >= place.end for start in starts]
        text = text_read
    while tokens and added[-1]:
        # An end-of-sequence token would close what is to be continued.
        tokens, starts, added = tokens[:-1], starts[:-1], added[:-1]
    before = next((i for i, special in enumerate(added) if not special), len(tokens))
    starts = [-1] * before + list(starts[before:])
    stretches = [_Stretch(-1, "template"), *_of_pieces(pieces, place)]
    return Prompt(tuple(tokens), tuple(_spans(starts, stretches)), text)


def read(tokenizer: Any, tokens: Sequence[int]) -> str:
    """Decode a model's tokens, without special tokens and with every space as written."""
    return str(tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))


def _is_fast(tokenizer: Any) -> bool:
    return bool(getattr(tokenizer, "is_fast", False))


def _with_offsets(tokenizer: Any, text: str, *, special: bool) -> tuple[list[int], list[int], list[bool]]:
    """Tokens, where each begins, and which of them the tokenizer added."""
    encoded = tokenizer(text, add_special_tokens=special, return_offsets_mapping=True, return_special_tokens_mask=True)
    marked = zip(encoded["special_tokens_mask"], encoded["offset_mapping"], strict=True)
    added = [bool(is_special) and start == end for is_special, (start, end) in marked]
    return list(encoded["input_ids"]), [_at_word(text, *edges) for edges in encoded["offset_mapping"]], added


def _at_word(text: str, start: int, end: int) -> int:
    """Where a token's first character stands that is no space; its start when all are."""
    return end - len(text[start:end].lstrip()) if not text[start:end].isspace() else start


def _of_pieces(pieces: Sequence[Piece], place: TextPlace) -> list[_Stretch]:
    starts = accumulate((len(piece.text) for piece in pieces), initial=place.start - place.cut)
    return [
        _Stretch(min(max(start, place.start), place.end), piece.role, piece.label)
        for start, piece in zip(starts, pieces, strict=False)
    ]


def _spans(starts: Sequence[int], stretches: Sequence[_Stretch]) -> list[Span]:
    """Tokens of one stretch are neighbours. Where stretches begin at one character, all but the last are empty."""
    edges = [stretch.start for stretch in stretches]
    spans, at = [], 0
    for index, tokens in groupby(bisect_right(edges, start) - 1 for start in starts):
        end = at + sum(1 for _ in tokens)
        spans.append(Span(stretches[index].role, at, end, stretches[index].label))
        at = end
    return spans


def _decoded(tokenizer: Any, tokens: Sequence[int]) -> tuple[str, list[int]]:
    """The text of tokens and where each begins in it, decoding a window of a few tokens at a time."""

    def text_of(part: Sequence[int]) -> str:
        return str(tokenizer.decode(list(part), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    text, starts = "", []
    # A window begins with a token already read: many decoders drop a space at the beginning of what they are given.
    window, done = 0, 0
    for upto in range(1, len(tokens) + 1):
        starts.append(len(text))
        before, now = text_of(tokens[window:done]), text_of(tokens[window:upto])
        if now.endswith("\ufffd") and upto < len(tokens) and upto - done < _MOST_TOKENS_OF_A_CHARACTER:
            continue
        text += now[len(before) :]
        window, done = done, upto
    return text, [_at_word(text, *edges) for edges in zip(starts, [*starts[1:], len(text)], strict=True)]
