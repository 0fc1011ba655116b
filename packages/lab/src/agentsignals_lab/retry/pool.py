"""Episodes of all conditions in one pool: whatever is ready is written, answers are evaluated beside it, and what is
over comes out at once.

A first attempt that no condition has touched is written once: conditions that act on feedback alone, or not at all,
share it, as they would by their random numbers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from agentsignals.errors import LabError

from agentsignals_lab.answer_streams import Answered, Asked, Writer, stream_of
from agentsignals_lab.evaluation.evaluator import evaluate
from agentsignals_lab.residual.interface import Edit, Generation
from agentsignals_lab.retry.loop import Done, Episode, First, Plan, Steered, Work, sampling_of, take

if TYPE_CHECKING:
    from agentsignals_lab.retry.projections import Projector

BACKLOG = 4
"""Answers that await their verdicts, as a multiple of those judged at a time, above which no new episode begins: a fast
writer would else begin all of them before one is over, and an interrupt lose them."""


GRACE_S = 10.0
"""After a fault, for answers of a server that are under way: they are paid for. What hangs is not awaited longer."""


class Evaluated(NamedTuple):
    """An episode's answer and its verdict, or why there is none."""

    episode: Episode
    answer: Generation
    verdict: Any


def episodes(
    writer: Writer,
    plan: Plan,
    work: Sequence[Work],
    steered: Steered | None = None,
    firsts: Mapping[First, Generation] | None = None,
) -> Iterator[Done]:
    """Runs episodes, in the order of `work` as far as there is room, and gives each when it is over.

    Args:
        firsts: first attempts that an earlier call wrote.

    Raises:
        LabError: a condition steers and the model is not in this process; or a server gave no answer, after all that
            is over was given.
    """
    if (steers := next((w.condition for w in work if w.condition.steers), None)) and steered is None:
        raise LabError(
            f"Condition {steers.name!r} steers, and {writer.name} is no model in this process.", "Give --model."
        )
    pool = _Pool(writer, plan, work, steered, dict(firsts or {}))
    try:
        yield from pool.run()
    finally:
        pool.close()


class _Pool:
    def __init__(
        self,
        writer: Writer,
        plan: Plan,
        work: Sequence[Work],
        steered: Steered | None,
        firsts: dict[First, Generation],
    ) -> None:
        self._plan, self._written = plan, firsts
        self._new, self._going = deque(work), deque[Episode]()
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._stream = stream_of(writer, self._ended)
        self._evaluating = ThreadPoolExecutor(plan.evaluating, thread_name_prefix="verdict")
        self._projector: Projector | None = None
        if steered is not None:
            from agentsignals_lab.retry.projections import Projector  # noqa: PLC0415  (NumPy is of an extra)

            self._projector = Projector(steered)
        self._edits = _edits(work, steered)
        self._sharing: dict[First, list[Episode]] = {}
        """First attempts under way, and who waits for them beside the one that asked."""
        self._evaluated: dict[First, Evaluated] = {}
        self._asked = self._judged = 0
        """Answers and verdicts under way."""
        self._fault: BaseException | None = None
        self._until: float | None = None
        """When answers under way are given up; None: they are awaited."""

    def close(self) -> None:
        self._stream.close()
        self._evaluating.shutdown(wait=False, cancel_futures=True)

    def run(self) -> Iterator[Done]:
        while True:
            if self._fault is None:
                self._fill()
            if not self._judged and not self._asked:
                break
            busy = self._fault is None and self._works()
            for event in self._events(wait=not busy and self._judged + self._asked > 0):
                yield from self._over(event)
        if self._fault is not None:
            raise self._fault

    def _works(self) -> bool:
        try:
            return self._stream.work()
        except LabError as fault:
            self._stop(fault)
            self._asked = 0
            return False

    def _events(self, *, wait: bool) -> Iterator[Answered | Evaluated]:
        if wait and self._ended.empty():
            # Verdicts always come: what they run is stopped by its own clock.
            left = None if self._until is None or self._judged else max(0.0, self._until - time.perf_counter())
            try:
                event = self._ended.get(timeout=left)
            except Empty:
                self._asked = 0
                return
            yield event
        while not self._ended.empty():
            yield self._ended.get()

    def _fill(self) -> None:
        """Asks for as many answers as there is room for, of episodes under way first: so that they end."""
        taken: list[Episode] = []
        while self._going or self._new:
            if not self._going:
                if self._judged + self._ended.qsize() > BACKLOG * self._plan.evaluating:
                    break
                self._going.append(Episode(self._new.popleft(), self._plan))
            episode = self._going[0]
            if not self._is_shared(episode):
                edits = self._edits[episode.condition.name]
                if not self._stream.take(episode, Asked(tuple(episode.chat), sampling_of(self._plan, episode), edits)):
                    break
                self._asked += 1
                if episode.first is not None:
                    self._sharing[episode.first] = []
            taken.append(self._going.popleft())
        if self._projector is not None:
            self._projector.project(taken)

    def _is_shared(self, episode: Episode) -> bool:
        """Return whether its next answer is, or will be, there without asking."""
        first = episode.first
        if first is None:
            return False
        if first in self._sharing:
            self._sharing[first].append(episode)
        elif first in self._evaluated:
            self._judged += 1
            self._ended.put(self._evaluated[first]._replace(episode=episode))
        elif first in self._written:
            self._sharing[first] = []
            self._evaluate(episode, self._written.pop(first))
        else:
            return False
        return True

    def _over(self, event: Answered | Evaluated) -> Iterator[Done]:
        if isinstance(event, Answered):
            self._asked -= 1
            if isinstance(event.answer, BaseException):
                self._stop(event.answer)
            else:
                self._evaluate(event.key, event.answer)
            return
        self._judged -= 1
        if isinstance(event.verdict, BaseException):
            self._stop(event.verdict)
            return
        first, shared = event.episode.first, []
        if first is not None:
            self._evaluated[first] = event
            shared = self._sharing.pop(first, [])
        for episode in (event.episode, *shared):
            take(episode, event.answer, event.verdict, self._plan)
            if episode.over:
                yield episode.done()
            else:
                self._going.append(episode)

    def _evaluate(self, episode: Episode, answer: Generation) -> None:
        self._judged += 1
        self._evaluating.submit(self._verdict, episode, answer)

    def _verdict(self, episode: Episode, answer: Generation) -> None:
        try:
            verdict: Any = evaluate(episode.task, answer.text, self._plan.limits)
        except BaseException as problem:  # noqa: BLE001  (raised again where the verdict is awaited)
            verdict = problem
        self._ended.put(Evaluated(episode, answer, verdict))

    def _stop(self, fault: BaseException) -> None:
        """Nothing more is asked."""
        if self._fault is None:
            self._fault, self._until = fault, time.perf_counter() + GRACE_S


def _edits(work: Sequence[Work], steered: Steered | None) -> dict[str, tuple[Edit, ...]]:
    """By condition: the same edits for all its episodes, so that their rows are one group."""
    conditions = {w.condition.name: w.condition for w in work}
    if steered is None:
        return dict.fromkeys(conditions, ())
    from agentsignals_lab import steering  # noqa: PLC0415  (as above)

    return {
        name: tuple(steering.edits(condition, steered.directions, steered.calibration))
        for name, condition in conditions.items()
    }
