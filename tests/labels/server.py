"""A small real server that speaks `POST /v1/chat/completions`, with faults to order, and with real grammar masks.

`answers` decides what is said: a text, made from the material that was shown; `masked` says whatever the schema's
grammar allows, one random byte after the other, as a model without any sense would.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.http_server import Answering, running

Fault = str | int | None
"""A status; `cut` (a connection that breaks), `hang`, `drip` (a byte now and then); None: answered."""
_MATERIAL = re.compile(r"<material-\w+>\n(.*)\n</material-\w+>", re.S)


def material(body: dict[str, Any]) -> str:
    """What a request shows, without its marks."""
    found = _MATERIAL.fullmatch(body["messages"][1]["content"])
    assert found, "the material stands between marks"
    return found[1]


def section(shown: str, name: str) -> str:
    """What stands between the marks of that name."""
    mark = re.search(rf"^<{name}-(\w+)>$", shown, re.M)
    assert mark, f"{name} is a part of it"
    return shown.split(f"<{name}-{mark[1]}>\n")[1].partition(f"\n</{name}-{mark[1]}>")[0]


def label(value: str, **more: Any) -> str:
    return json.dumps({"label": value, "reason": "because", **more})


class Server:
    """What was asked of it. `faults` are served first, one a request; then `fault(body)` decides."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answered: Counter[str] = Counter()
        """How often each material was answered, that is: paid for."""
        self.faults: list[Fault] = []
        self.fault: Callable[[dict[str, Any]], Fault] = lambda _: None
        self.answers: Callable[[dict[str, Any]], str] = lambda _: label("NEUTRAL")
        self.refuses: Callable[[dict[str, Any]], str | None] = lambda _: None
        """The words of a refusal, which stand in a field of their own."""
        self.finish = "stop"
        self.refusal = b'{"error": "no"}'
        self.served: dict[str, str] = {}
        """What the server says of the model that answers."""
        self.retry_after = "0"
        self.delay_s = 0.0
        self.models: list[dict[str, Any]] = []
        self.asked_models = 0
        """How often it was asked for its models."""
        self.url = ""
        self.released = threading.Event()
        """Ends what hangs."""

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        text, finish = self.answers(body), self.finish
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        if len(text.encode()) > limit:  # a token is a byte here
            text, finish = text[:limit], "length"
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        refusal = self.refuses(body)
        message = {"content": text} if refusal is None else {"content": None, "refusal": refusal}
        return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage, **self.served}


def masked(seed: int, whitespace: bool = False) -> Callable[[dict[str, Any]], str]:
    """Random bytes under llguidance's masks for the schema that came with the request; stops at its token limit."""
    from llguidance import LLMatcher, LLTokenizer  # noqa: PLC0415  (asked for by tests that skip without it)

    tokenizer = LLTokenizer("byte")
    lock = threading.Lock()
    rng = random.Random(seed)  # noqa: S311  (a model without sense, no secret)

    def answer(body: dict[str, Any]) -> str:
        schema = body["response_format"]["json_schema"]["schema"]
        with lock:  # one generator, and matchers are cheap
            grammar = LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": whitespace})
            matcher = LLMatcher(tokenizer, grammar)
            said: list[int] = []
            while not matcher.is_stopped() and len(said) <= body["max_tokens"]:
                allowed = [n for n, bias in enumerate(matcher.compute_logit_bias()) if bias]
                token = rng.choice(allowed)
                if token == tokenizer.eos_token:
                    break
                matcher.consume_token(token)
                said.append(token)
            return bytes(said).decode("utf-8", "replace")

    return answer


@contextmanager
def serving() -> Iterator[Server]:
    """The server on a free port of this machine."""
    state = Server()
    lock = threading.Lock()

    class Handler(Answering):
        def do_GET(self) -> None:  # noqa: N802  (as above)
            state.asked_models += 1
            self.reply(200, json.dumps({"data": state.models}).encode())

        def do_POST(self) -> None:  # noqa: N802  (the name that http.server calls)
            body = self.asked()
            with lock:
                state.requests.append(body)
                state.headers.append(dict(self.headers))
                fault = state.faults.pop(0) if state.faults else state.fault(body)
            if state.delay_s:
                time.sleep(state.delay_s)
            if fault is None:
                done = json.dumps(state.complete(body)).encode()
                with lock:
                    state.answered[material(body)] += 1
                self.reply(200, done)
            elif isinstance(fault, int):
                self.reply(fault, state.refusal, state.retry_after)
            elif fault == "cut":
                self.close_connection = True
            elif fault == "hang":
                state.released.wait(30)
            elif fault == "drip":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                for _ in range(100):
                    if state.released.wait(0.05):
                        break
                    self.wfile.write(b" ")
                    self.wfile.flush()
            else:
                self.reply(200, fault.encode())

    with running(Handler) as url:
        state.url = f"{url}/v1"
        try:
            yield state
        finally:
            state.released.set()
