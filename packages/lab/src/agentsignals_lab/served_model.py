"""A model behind any server that speaks OpenAI's `POST /v1/chat/completions`: answers, and no look inside."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import msgspec
from agentsignals.errors import LabError, UsageError
from agentsignals.network import LOCAL_NOTICE, MASKED_NOTICE, Busy, Refused, http_opener, http_request, is_local
from agentsignals.redaction import Guard, Redactor
from msgspec import Struct

from agentsignals_lab.residual import Generation, Message, Sampling

KEY_VARIABLE = "OPENAI_API_KEY"
TIMEOUT_S = 600.0
"""For one answer, from asking to the last byte; long answers of slow models take minutes."""
TRIES = 6
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
_MOST_BYTES = 16 * 2**20


class _Message(Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class Served:
    """A model behind a server, a `Writer`. The key is `$OPENAI_API_KEY`.

    What leaves this machine has its secrets masked first, and `tell` is told once where it goes.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        concurrency: int = 8,
        tell: Callable[[str], None] | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url, self.name, self.concurrency = url.rstrip("/"), model, concurrency
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is not the URL of a chat server.", "Give --server http://HOST:PORT/v1.")
        if concurrency < 1:
            raise UsageError(f"{concurrency} calls at a time answer nothing.", "Give --calls 1 at least.")
        self.leaves = not is_local(parts.hostname)
        self.card = {
            "name": model,  # what the URL holds of user names and passwords is left out
            "server": f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}",
        }
        self._openai = parts.hostname.endswith("openai.com")
        self._opener = http_opener(not self.leaves)
        self._tell, self._wait = tell, wait
        self._telling = threading.Lock()

    def answer(self, chat: Sequence[Message], sampling: Sampling) -> Generation:
        """One answer; as many calls at a time as `concurrency` says are meant to be in flight. LabError when the server
        refuses, gives none in several tries, or must not be told the chat."""
        body = self._body(chat, sampling)
        if self.leaves and (kind := Guard().kind(body.decode())):
            raise LabError(
                f"A chat contains a secret ({kind}) and is not sent to {self.url}.", "Remove it from the task's texts."
            )
        with self._telling:
            tell, self._tell = self._tell, None
        if tell is not None:
            how = MASKED_NOTICE if self.leaves else LOCAL_NOTICE
            tell(f"tasks and answers go to {self.url}, {how}, to be answered by {self.name}")
        for tried in range(TRIES):
            try:
                return self._once(body)
            except Busy as problem:
                last = problem
            if tried + 1 < TRIES:
                grown = FIRST_WAIT_S * 2**tried * random.uniform(0.5, 1)  # noqa: S311  (jitter, no secret)
                self._wait(min(LONGEST_WAIT_S, last.wait_s if last.wait_s is not None else grown))
        raise LabError(
            f"{self.url} gave no answer in {TRIES} tries: {last}",
            "Repair the server and run the same command again: finished episodes are kept.",
        ) from last

    def _body(self, chat: Sequence[Message], how: Sampling) -> bytes:
        if not chat or chat[-1].speaker == "assistant":
            raise LabError("A server can't continue an answer.", "End the chat with a user's message.")
        texts = ("".join(piece.text for piece in message.pieces) for message in chat)
        told = (self._redactor.plain(text) if self.leaves else text for text in texts)
        messages = [{"role": message.speaker, "content": text} for message, text in zip(chat, told, strict=True)]
        asked: dict[str, Any] = {"model": self.name, "messages": messages, "seed": how.seed}
        if self._openai:
            # Its newer models take neither the older name nor a temperature other than one.
            return msgspec.json.encode(asked | {"max_completion_tokens": how.max_new_tokens})
        more = {"max_tokens": how.max_new_tokens, "temperature": how.temperature, "top_p": how.top_p}
        return msgspec.json.encode(asked | more)

    @cached_property
    def _redactor(self) -> Redactor:
        from agentsignals.store.secrets import pseudonym_key  # noqa: PLC0415  (a server here needs none)

        return Redactor(pseudonym_key())

    def _once(self, body: bytes) -> Generation:
        """One call. Raises Busy where another may be answered."""
        key, address = os.environ.get(KEY_VARIABLE), self.url + "/chat/completions"
        try:
            sent = http_request(self._opener, address, body, key=key, most_bytes=_MOST_BYTES, timeout_s=TIMEOUT_S)
            completion = msgspec.json.decode(sent, type=_Completion)
        except Refused as problem:
            raise LabError(
                f"{self.url} refused: {problem}", f"Check the model's name, the address and ${KEY_VARIABLE}."
            ) from problem
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise Busy(f"an answer that is no completion ({str(problem)[:100]})") from problem
        if not completion.choices:
            raise Busy("a completion without a choice")
        choice, usage = completion.choices[0], completion.usage or _Usage()
        return Generation(
            text=choice.message.content or choice.message.refusal or "",
            tokens=(),
            finish="length" if choice.finish_reason == "length" else "stop",
            prompt_tokens=usage.prompt_tokens,
            new_tokens=usage.completion_tokens,
        )
