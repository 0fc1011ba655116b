"""A labeller behind any server of `POST /v1/chat/completions` with a JSON Schema: vLLM, llama.cpp, Ollama, hosted.

A server that is busy, failing or gone is tried again with growing, jittered waits; a 429 pauses every thread for as
long as it asks. Where several servers serve the model, the others are asked meanwhile.
"""

from __future__ import annotations

import logging
import math
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from agentsignals.errors import LabelError, UsageError
from agentsignals.labels.answers import Choice, Completion, Inquiry, Outcome
from agentsignals.labels.labellers import Done, Kind, Labeller
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Verdict
from agentsignals.model import Absent
from agentsignals.network import Busy, Refused, http_opener, http_request, is_local
from agentsignals.redaction import Guard


class Pace:
    """Shared by all who ask one server."""

    def __init__(self, per_minute: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._apart_s = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0.0
        self.stopped = threading.Event()
        """Set when nobody shall ask any more: ends every wait."""
        self.paused_s = 0.0

    def wait(self) -> bool:
        """Returns when the caller may ask; False when it shall not any more."""
        while not self.stopped.is_set():
            with self._lock:
                left = self._next - self._clock()
                if left <= 0:
                    self._next = max(self._next, self._clock()) + self._apart_s if self._apart_s else self._next
                    return True
            self.stopped.wait(left)
        return False

    def pause(self, seconds: float) -> None:
        """Nobody asks for so long from now."""
        with self._lock:
            until = self._clock() + seconds
            if until > self._next:
                self.paused_s += until - max(self._next, self._clock())
                self._next = until


# -- Threads

GRACE_S = 10.0
"""Time that running calls get after Ctrl-C: they are paid for."""
_T = TypeVar("_T")


def in_threads(work: Callable[[_T], None], things: Iterable[_T], n: int, stopped: threading.Event) -> None:
    """Call `work` with each thing, by at most `n` threads at once, which take them in turn. Raises the first error of
    `work`, or of the stream, and stops at it. The threads hold up no exit."""
    waiting, turn = iter(things), threading.Lock()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            while True:
                with turn:
                    thing = next(waiting, None) if not stopped.is_set() else None
                if thing is None:
                    return
                work(thing)
        except BaseException as problem:  # noqa: BLE001  (raised again in the caller's thread)
            failed.append(problem)
            stopped.set()

    threads = [threading.Thread(target=run, daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        stopped.set()
        until = time.monotonic() + GRACE_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        raise
    if failed:
        raise failed[0]


# -- Servers: one that fails is set aside, longer each time, and gets a single call first when it is back

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
_LOOKS_EVERY_S = 0.1
"""Poll interval: a server may be back, or the run may have been stopped."""
_LOG = logging.getLogger("agentsignals.labels")


class ModelServer:
    """An address. UsageError where it is none."""

    def __init__(self, url: str) -> None:
        self.url = url.strip().rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{url!r} is not the URL of a chat server.", "Use --by openai:MODEL@http://HOST:PORT/v1[,URL…]."
            )
        self.leaves = not is_local(parts.hostname)
        self.is_openai = parts.hostname.endswith("openai.com")
        self.opener = http_opener(not self.leaves)
        self.under_way = self.calls = self.answers = self.times_aside = 0
        self.failures = 0
        """In a row."""
        self.away_until = -math.inf
        self.problem = ""

    def figures(self) -> dict[str, Any]:
        aside = {"set_aside": self.times_aside, "last_problem": self.problem} if self.times_aside else {}
        return {"calls": self.calls, "answers": self.answers, **aside}


class ModelServers:
    """Whom to ask next: who has most slots free, and is not set aside while another is well."""

    def __init__(self, addresses: str, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.all = [ModelServer(url) for url in dict.fromkeys(addresses.split(","))]
        self.slots = slots
        self._clock = clock
        self._changed = threading.Condition()

    @contextmanager
    def slot(self, stopped: threading.Event) -> Iterator[ModelServer | None]:
        """A server with a slot free, waited for; None when nobody shall ask any more."""
        taken: ModelServer | None = None
        with self._changed:
            while taken is None and not stopped.is_set():
                well = [server for server in self.all if not self._is_away(server)]
                pool = well or [server for server in self.all if server.away_until < math.inf]
                free = [server for server in pool if server.under_way < (1 if server.failures and well else self.slots)]
                if free:
                    taken = min(free, key=lambda server: server.under_way)
                    taken.under_way += 1
                    taken.calls += 1
                else:
                    self._changed.wait(_LOOKS_EVERY_S)
        try:
            yield taken
        finally:
            if taken is not None:
                with self._changed:
                    taken.under_way -= 1
                    self._changed.notify()

    def answered(self, server: ModelServer) -> None:
        with self._changed:
            server.answers += 1
            server.failures, server.away_until = 0, -math.inf

    def set_aside(self, server: ModelServer, problem: Exception) -> bool:
        """A call to it failed. Whether others are well: they are asked meanwhile. What is no `Busy` lasts."""
        with self._changed:
            others = [other for other in self.all if other is not server and not self._is_away(other)]
            if not others:
                return False
            if not self._is_away(server):
                server.failures += 1
                server.times_aside += 1
                if server.times_aside == 1:
                    _LOG.warning("%s is set aside, its questions go to others: %s", server.url, problem)
            server.problem = str(problem)[:200]
            grown = FIRST_WAIT_S * 2.0 ** min(server.failures - 1, 10)
            wait_s = math.inf
            if isinstance(problem, Busy):
                asked = LONGEST_WAIT_S if problem.timed_out else grown if problem.wait_s is None else problem.wait_s
                wait_s = min(LONGEST_WAIT_S, asked)
            server.away_until = max(server.away_until, self._clock() + wait_s)
            return True

    def _is_away(self, server: ModelServer) -> bool:
        return server.away_until > self._clock()


# -- The labeller

DEFAULT_URL = "https://api.openai.com/v1"
ENDPOINT = "/chat/completions"
URL_VARIABLE, KEY_VARIABLE = "OPENAI_BASE_URL", "OPENAI_API_KEY"
CONCURRENCY = 8
TIMEOUT_S = 120.0
"""For one call, from asking to the last byte."""
TRIES = 8
MOST_TIMEOUTS = 2
"""Timeouts allowed for one question, plus one for each further server; a hanging server is not tried `TRIES` times."""
HUNG = 4
"""Consecutive timeouts (at least two a thread) after which the server is taken to hang."""
HOPELESS = 20
"""Consecutive failures after which the server is taken to be gone, or to refuse everything."""
MOST_INVALID = 20
"""Consecutive malformed answers (thrice as many once one was valid) after which the model is given up."""
_MOST_BYTES = 16 * 2**20
_FORMATS = ("json_schema", "json_object", "text")
"""Response formats a server may support, strictest first."""
_OF_FORMAT = re.compile(r"response_format|json_schema|json_object|schema|grammar|structured|guided", re.IGNORECASE)
_STOPS_ALL = frozenset((401, 402, 403, 404, 405, 407))


class _Model(Struct):
    id: str
    max_model_len: int | None = None
    context_length: int | None = None
    meta: dict[str, Any] | None = None


class _Models(Struct):
    data: list[_Model] = field(default_factory=list)


class _Refused(Exception):
    """The server does not want this question: asking it again is no use."""


class ChatServer(Labeller):
    """A model behind one or more servers: `MODEL@URL[,URL…]`, or `MODEL` at `$OPENAI_BASE_URL`. The key is
    `$OPENAI_API_KEY`. `redact`: refuse what holds a key; without it, of servers elsewhere alone."""

    keeps = True

    def __init__(  # noqa: PLR0913  (what a person can set at the command line)
        self,
        named: str,
        *,
        concurrency: int | None = None,
        per_minute: float | None = None,
        window: int | None = None,
        timeout_s: float | None = None,
        wait: Callable[[float], object] | None = None,
        redact: bool | None = None,
        **_: Any,
    ) -> None:
        model, at, addresses = named.partition("@")
        if not model:
            raise UsageError(f"The labeller {named!r} names no model.", "Use openai:MODEL@http://HOST:PORT/v1.")
        self._concurrency = concurrency or CONCURRENCY
        addresses = addresses if at else os.environ.get(URL_VARIABLE) or DEFAULT_URL
        self._servers = ModelServers(addresses, self._concurrency)
        self.url = ", ".join(server.url for server in self._servers.all)
        self.model: str | None = model
        self.name = f"openai:{model}"
        self.leaves = any(server.leaves for server in self._servers.all)
        self._guard = Guard() if (self.leaves if redact is None else redact) else None
        self._openai = any(server.is_openai for server in self._servers.all)
        self._window = window
        self._timeout_s = timeout_s or TIMEOUT_S
        self._pace = Pace(per_minute)
        self._wait = wait or self._pace.stopped.wait
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._format = 0
        self._hopeless = self._invalid = self._timeouts = 0
        self._most_invalid = MOST_INVALID

    def window(self) -> int:
        if self._window is None:
            # The smallest that the servers' lists of models state (vLLM, OpenRouter, llama.cpp).
            stated = [self._stated_window(server) for server in self._servers.all]
            self._window = min((tokens for tokens in stated if tokens), default=super().window())
        return self._window

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        answer = question.read(text)
        with self._lock:  # a kept one shows, too, that the model can: what is left may be what it can't
            self._most_invalid = 3 * MOST_INVALID
        return answer

    def run_figures(self) -> dict[str, Any]:
        figures = {"url": self.url, "format": _FORMATS[self._format], **self._counts}
        if len(self._servers.all) > 1:
            figures["servers"] = {server.url: server.figures() for server in self._servers.all}
        return {**figures, "paused_s": round(self._pace.paused_s, 1)}

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        def answer(question: Question) -> None:
            outcome = self._answer(question)
            if outcome is None:
                return
            done(question, outcome)
            with self._lock:
                self._hopeless = self._hopeless + 1 if outcome.failure in ("no_answer", "refused") else 0
                if self._hopeless >= HOPELESS:
                    raise LabelError(
                        f"{self.url} failed on {HOPELESS} calls in a row: {outcome.detail}",
                        "The answers so far are kept. Fix the server and run again to continue.",
                    )

        in_threads(answer, questions, self._threads, self._pace.stopped)

    @property
    def _threads(self) -> int:
        return self._concurrency * len(self._servers.all)

    def _answer(self, question: Question) -> Outcome | None:
        """Ask a question until it has an outcome; None when the run is stopped before."""
        inquiry = Inquiry.at(question)
        while True:
            wanted = self._format
            asked = self.request(inquiry.question, inquiry.limit, inquiry.temperature, _FORMATS[wanted])
            body = msgspec.json.encode(asked)
            if self._guard and (kind := self._guard.kind(body.decode())):
                return inquiry.failed("held_back", f"it would have sent a {kind}")
            try:
                choice = self._tried(body, inquiry)
            except Busy as problem:
                return inquiry.failed("no_answer", f"{inquiry.calls:,} calls, the last: {problem}")
            except _Refused as problem:
                if wanted + 1 < len(_FORMATS) and _OF_FORMAT.search(str(problem)):
                    with self._lock:
                        self._format = max(self._format, wanted + 1)
                    continue
                return inquiry.failed("refused", str(problem))
            if choice is None:
                return None
            outcome = inquiry.took(choice)
            if inquiry.wrong:
                self._count(inquiry.wrong)
            with self._lock:
                if not inquiry.is_formless:
                    self._invalid, self._most_invalid = 0, 3 * MOST_INVALID
                elif choice.finish_reason != "length":  # a cut one may come whole with more room
                    self._invalid += 1
                if inquiry.is_formless and self._invalid >= self._most_invalid:
                    text = choice.message.content or choice.message.refusal or ""
                    raise LabelError(
                        f"{self.url} gave {self._invalid} unusable answers in a row, for example {text[:300]!r}.",
                        "Use a model that answers in JSON, or a server that enforces a JSON schema.",
                    )
            if outcome is not None:
                return outcome

    def _tried(self, body: bytes, inquiry: Inquiry) -> Choice | None:
        """The answer of one call, tried until it comes. None when the run ends before."""
        tried = timeouts = 0
        while self._pace.wait():
            with self._servers.slot(self._pace.stopped) as server:
                if server is None:
                    break
                try:
                    choice = self._once(server, body, inquiry)
                except LabelError as problem:
                    if not self._servers.set_aside(server, problem):
                        raise
                    continue
                except Busy as problem:
                    self._count("retries")
                    tried += 1
                    timeouts += problem.timed_out
                    self._hang(problem)
                    others = self._servers.set_aside(server, problem)
                    if tried == TRIES or timeouts == MOST_TIMEOUTS + len(self._servers.all) - 1:
                        raise
                    failed = problem
                except _Refused:
                    self._hang(None)
                    raise
                else:
                    self._hang(None)
                    self._servers.answered(server)
                    return choice
            if others:
                continue
            # Waits before the next try, since no other server can be asked meanwhile.
            grown = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (tried - 1)) * random.uniform(0.5, 1)  # noqa: S311  (jitter)
            if failed.overloaded and failed.wait_s is not None:
                self._pace.pause(min(failed.wait_s, LONGEST_WAIT_S))
            elif not failed.timed_out:  # it had its time
                self._wait(min(failed.wait_s or grown, LONGEST_WAIT_S))
        return None

    def _hang(self, problem: Busy | None) -> None:
        """LabelError where one call after the other runs into the time limit. `problem`: what became of a call."""
        with self._lock:
            timed_out = problem is not None and problem.timed_out
            self._timeouts = self._timeouts + 1 if timed_out else 0
            if self._timeouts >= max(2 * self._threads, HUNG):
                raise LabelError(
                    f"{self.url} did not answer {self._timeouts} calls in a row within {self._timeout_s:g} s.",
                    "Check that it runs. --timeout gives it longer; --concurrency 1 asks for one answer at a time.",
                )

    def _once(self, server: ModelServer, body: bytes, inquiry: Inquiry) -> Choice:
        inquiry.calls += 1
        try:
            completion = msgspec.json.decode(self._sent(server, ENDPOINT, body), type=Completion)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise Busy(f"an answer that is no completion ({str(problem)[:100]})") from problem
        inquiry.received(completion)
        if not completion.choices:
            raise Busy("a completion without a choice")
        return completion.choices[0]

    def _sent(self, server: ModelServer, path: str, body: bytes | None) -> bytes:
        try:
            return http_request(
                server.opener,
                server.url + path,
                body,
                key=os.environ.get(KEY_VARIABLE),
                most_bytes=_MOST_BYTES,
                timeout_s=self._timeout_s,
            )
        except Refused as problem:
            if problem.status in _STOPS_ALL or problem.status < 400:
                raise LabelError(
                    f"The server {server.url} refused: {problem}", f"Check the model, the address and ${KEY_VARIABLE}."
                ) from problem
            raise _Refused(str(problem)) from problem

    def request(self, question: Question, tokens: int, temperature: float, form: str = _FORMATS[0]) -> dict[str, Any]:
        """The body of the call that asks a question. `tokens`: what the answer gets at most; `form`: what the server is
        asked to hold it to."""
        instructions = question.instructions
        if form != "json_schema":
            schema = msgspec.json.encode(question.schema).decode()
            instructions += f"\n\nThe answer is one JSON object of this JSON Schema, and nothing else: {schema}"
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": question.shown}],
        }
        if form == "json_schema":
            held_to = {"name": question.task, "strict": True, "schema": question.schema}
            asked["response_format"] = {"type": form, form: held_to}
        elif form == "json_object":
            asked["response_format"] = {"type": form}
        if self._openai:  # its newer models take neither the older name nor a temperature
            asked["max_completion_tokens"] = tokens
        else:
            asked |= {"max_tokens": tokens, "temperature": temperature}
        return asked

    def _stated_window(self, server: ModelServer) -> int | None:
        try:
            models = msgspec.json.decode(self._sent(server, "/models", None), type=_Models).data
        except (Busy, _Refused, LabelError, msgspec.DecodeError):
            return None
        entry = next((m for m in models if m.id == self.model), None)
        if entry is None:
            return None
        trained = (entry.meta or {}).get("n_ctx_train")
        return entry.max_model_len or entry.context_length or (trained if isinstance(trained, int) else None)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + 1


LABELLER = Kind(ChatServer, "MODEL[@URL[,URL…]]")
