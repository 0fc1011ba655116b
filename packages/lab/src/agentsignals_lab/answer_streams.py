"""Where answers come from while other work goes on: asked one by one, they come back in order of ending."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from msgspec import Struct

from agentsignals_lab.residual.interface import Edit, Generation, Message, Request, Sampling

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel
    from agentsignals_lab.served_model import Served

Writer: TypeAlias = "HookedModel | Served"
"""Something that answers chats."""


class Asked(Struct, frozen=True):
    """A chat to be answered; `edits` only where the model is in this process."""

    chat: tuple[Message, ...]
    sampling: Sampling
    edits: tuple[Edit, ...] = ()


class Answered(NamedTuple):
    """Outcome of a chat: an answer, or the reason why there is none."""

    key: Any
    answer: Generation | BaseException


Ended = SimpleQueue[Answered]


def stream_of(writer: Writer, ended: Ended) -> InProcess | OnServer:
    """Answers under way of a writer: a model in this process, or one on a server. What ends is put into the queue."""
    if hasattr(writer, "encode"):
        return InProcess(cast("HookedModel", writer), ended)
    return OnServer(writer, ended)


class InProcess:
    """Rows of a model in this process: one that ends makes room for the next, whatever the edits of either."""

    def __init__(self, model: HookedModel, ended: Ended) -> None:
        self._model, self._ended = model, ended
        self._answers = model.answers()
        self._new: list[tuple[Any, Request]] = []
        self._refused: tuple[Any, Request] | None = None

    def take(self, key: Any, asked: Asked) -> bool:
        """Return whether there was room for it; with nothing under way there is."""
        if self._refused is None or self._refused[0] is not key:
            self._refused = key, Request(self._model.encode(asked.chat), asked.sampling, asked.edits)
        if not self._answers.fits([*(request for _, request in self._new), self._refused[1]]):
            return False
        self._new.append(self._refused)
        self._refused = None
        return True

    def work(self) -> bool:
        """Does a little of what has to be done in this thread; False: there is nothing of that."""
        if self._new:
            new, self._new = self._new, []
            self._answers.add(new)
        for key, answer in self._answers.step():
            self._ended.put(Answered(key, answer))
        return len(self._answers) > 0

    def close(self) -> None:
        self._new = []


class OnServer:
    """Calls of a server, several in flight. Their threads end with the process: an answer that never comes holds
    nobody up."""

    def __init__(self, server: Served, ended: Ended) -> None:
        self._server, self._ended = server, ended
        self._free = threading.Semaphore(server.concurrency)
        self._closed = False

    def take(self, key: Any, asked: Asked) -> bool:
        if not self._free.acquire(blocking=False):
            return False
        threading.Thread(target=self._call, args=(key, asked), daemon=True).start()
        return True

    def _call(self, key: Any, asked: Asked) -> None:
        try:
            answer: Generation | BaseException = self._server.answer(asked.chat, asked.sampling)
        except BaseException as problem:  # noqa: BLE001  (raised again where the answer is awaited)
            answer = problem
        self._free.release()
        if not self._closed:
            self._ended.put(Answered(key, answer))

    def work(self) -> bool:
        return False

    def close(self) -> None:
        self._closed = True
