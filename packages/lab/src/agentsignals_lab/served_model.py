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

from agentsignals_lab.residual.interface import Generation, Message, Sampling

DEFAULT_URL = "https://api.openai.com/v1"
URL_VARIABLE, KEY_VARIABLE = "OPENAI_BASE_URL", "OPENAI_API_KEY"
CONCURRENCY = 8
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
    """A model behind a server, a `Writer`: `MODEL@URL`, or `MODEL` at `$OPENAI_BASE_URL`. The key is `$OPENAI_API_KEY`.

    What leaves this machine has its secrets masked first, and `tell` is told once where it goes.
    """

    def __init__(
        self,
        named: str,
        *,
        concurrency: int = CONCURRENCY,
        timeout_s: float = TIMEOUT_S,
        tell: Callable[[str], None] | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        model, at, url = named.partition("@")
        self.url = (url if at else os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise UsageError(f"{named!r} names no chat server.", "Say openai:MODEL@http://HOST:PORT/v1.")
        self.name = f"openai:{model}"
        self.leaves = not is_local(parts.hostname)
        self._model = model
        self._openai = parts.hostname.endswith("openai.com")
        self._opener = http_opener(not self.leaves)
        if concurrency < 1:
            raise UsageError(f"{concurrency} calls in flight ask nothing.", "One at least.")
        self.concurrency, self._timeout_s, self._tell, self._wait = concurrency, timeout_s, tell, wait
        self._telling = threading.Lock()

    def answer(self, chat: Sequence[Message], sampling: Sampling) -> Generation:
        """One answer; as many calls at a time as `concurrency` says are meant to be in flight. LabError when the server
        refuses, gives none in several tries, or must not be told the chat."""
        body = self._body(chat, sampling)
        if self.leaves and (kind := Guard().kind(body.decode())):
            raise LabError(f"A chat would have sent a {kind} to {self.url}.", "Take it out of the task's texts.")
        with self._telling:
            tell, self._tell = self._tell, None
        if tell is not None:
            how = MASKED_NOTICE if self.leaves else LOCAL_NOTICE
            tell(f"tasks and answers go to {self.url}, {how}, to be answered by {self._model}")
        return self._answer(body)

    def _body(self, chat: Sequence[Message], how: Sampling) -> bytes:
        if not chat or chat[-1].speaker == "assistant":
            raise LabError("A server continues no open answer.", "End the chat with a user's message.")
        asked: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": message.speaker, "content": self._text(message)} for message in chat],
            "seed": how.seed,
        }
        if how.stop:
            asked["stop"] = list(how.stop)
        if self._openai:
            # Its newer models take neither the older name nor a temperature other than one.
            return msgspec.json.encode(asked | {"max_completion_tokens": how.max_new_tokens})
        more = {"max_tokens": how.max_new_tokens, "temperature": how.temperature, "top_p": how.top_p}
        return msgspec.json.encode(asked | more)

    def _text(self, message: Message) -> str:
        text = "".join(piece.text for piece in message.pieces)
        return self._redactor.plain(text) if self.leaves else text

    @cached_property
    def _redactor(self) -> Redactor:
        from agentsignals.store.secrets import pseudonym_key  # noqa: PLC0415  (a server here needs none)

        return Redactor(pseudonym_key())

    def _answer(self, body: bytes) -> Generation:
        for tried in range(1, TRIES + 1):
            try:
                return self._once(body)
            except Busy as problem:
                if tried == TRIES:
                    raise LabError(
                        f"{self.url} gave no answer in {TRIES} tries: {problem}",
                        "Mend the server and run again: what is done stays done.",
                    ) from problem
                grown = FIRST_WAIT_S * 2 ** (tried - 1) * random.uniform(0.5, 1)  # noqa: S311  (jitter, no secret)
                self._wait(min(LONGEST_WAIT_S, problem.wait_s if problem.wait_s is not None else grown))
        raise AssertionError("the last try returns or raises")

    def _once(self, body: bytes) -> Generation:
        try:
            completion = msgspec.json.decode(self._sent(body), type=_Completion)
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

    def _sent(self, body: bytes) -> bytes:
        try:
            return http_request(
                self._opener,
                self.url + "/chat/completions",
                body,
                key=os.environ.get(KEY_VARIABLE),
                most_bytes=_MOST_BYTES,
                timeout_s=self._timeout_s,
            )
        except Refused as problem:
            raise LabError(
                f"{self.url} refused: {problem}", f"Check the model's name, the address and ${KEY_VARIABLE}."
            ) from problem
