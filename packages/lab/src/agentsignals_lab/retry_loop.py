"""The retry loop: a model writes a function, hears what its visible tests said, and tries again.

Conditions share tasks, words and draws. Their episodes run in one pool: whatever is ready is written, answers are
evaluated beside it, and what is over comes out at once. A first attempt that no condition has touched is written once:
conditions that act on feedback alone, or not at all, share it, as they would by their random numbers.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.coding_tasks.cases import Task
from agentsignals_lab.conditions import Condition
from agentsignals_lab.evaluation import Verdict, evaluate, hardcoding, legacy_score, prose_markers
from agentsignals_lab.residual import Calibration, Edit, Generation, Message, Piece, Request, Sampling
from agentsignals_lab.runs import Row, seed_of
from agentsignals_lab.texts import Wording

if TYPE_CHECKING:
    from agentsignals_lab.directions import DirectionSet
    from agentsignals_lab.residual.model import HookedModel
    from agentsignals_lab.served_model import Served
    from agentsignals_lab.steering import Projector


EPISODE_KEY = ("condition", "task", "sample")


class OfEpisode(Row, frozen=True, kw_only=True):
    """A row of one task under one condition."""

    KEY: ClassVar[tuple[str, ...]] = EPISODE_KEY
    condition: str
    task: str
    """Id, version and variant."""
    sample: int


class EpisodeRow(OfEpisode, frozen=True, kw_only=True):
    """An episode from the first attempt to the last. Hidden results are of the last attempt."""

    attempts: int
    visible_pass: bool | None
    hidden_pass: bool | None
    full_pass: bool | None
    failed_first: bool
    recovered: bool
    """The first attempt failed and a later one passed its visible tests."""
    passed_at: int | None
    """Number (from 0) of the first attempt that passed its visible tests."""
    regressed: int
    """Attempts that pass fewer visible cases than the one before."""
    repeated: int
    """Attempts whose code is that of the attempt before."""
    hardcoded: bool
    """In its last attempt."""
    evaluator: str
    tier: str | None


class AttemptRow(OfEpisode, frozen=True, kw_only=True):
    """One answer of the model and what it was worth."""

    KEY: ClassVar[tuple[str, ...]] = (*EPISODE_KEY, "attempt")
    attempt: int
    """From 0."""
    seed: int
    """Seed of its random numbers: equal in every condition."""
    prompt_tokens: int | None
    """None where a server did not tell."""
    tokens: int | None
    """Tokens of the answer; None where a server did not tell."""
    finish: str
    logprob_sum: float | None
    answer: str
    source: str
    """The code that ran."""
    feedback: str
    """Feedback after it; empty after the last."""
    error: str
    error_class: str
    valid_python: bool
    visible_pass: bool | None
    hidden_pass: bool | None
    full_pass: bool | None
    visible_passed: int
    n_visible: int
    hidden_passed: int
    n_hidden: int
    hardcoded: bool
    marker_score: int
    """The published sum of seven counts on the raw text (`legacy`)."""
    frustration_per_100_words: float | None
    desperation_per_100_words: float | None
    give_up_per_100_words: float | None
    prose_words: int
    evaluator: str
    tier: str | None
    wall_time_s: float
    """Seconds of running its code."""


class ProjectionRow(OfEpisode, frozen=True, kw_only=True):
    """Projection of the prompt of an attempt on a direction, in the unsteered model."""

    KEY: ClassVar[tuple[str, ...]] = (*EPISODE_KEY, "attempt", "direction", "layer", "span")
    attempt: int
    direction: str
    layer: int
    span: str
    """`all`, or the role of the tokens."""
    cosine: float | None
    """None where the prompt has no such tokens."""
    coordinate: float | None
    """In median norms of the layer."""


class ManipulationRow(Row, frozen=True, kw_only=True):
    """Effect of a condition on the model, on fixed prompts that hold tokens where it acts."""

    KEY: ClassVar[tuple[str, ...]] = ("condition",)
    condition: str
    verdict: str
    """`moved`, `nothing`, or `not testable`: no prompt holds such a token, and nothing is known of the condition."""
    kl: float | None = None
    """Mean Kullback-Leibler divergence of the next token's distribution, steered from plain, in nats."""
    noise: float | None = None
    """Difference of prompts run together from prompts run alone: what rounding does."""
    shift: float | None = None
    """Mean change of the projection on the direction at the last layer read downstream, in median norms there; None
    where the condition has no direction."""
    anti_steered: float | None = None
    """The share of prompts whose projection moved the other way."""
    n: int
    """Prompts with such tokens; others are left out."""


_OF_VERDICT = [name for name in AttemptRow.__struct_fields__ if name in Verdict.__struct_fields__]


class Plan(Struct, frozen=True, kw_only=True):
    """Facts that every episode of a run shares."""

    wording: Wording
    attempts: int = 3
    max_new_tokens: int = 360
    temperature: float = 0.2
    top_p: float = 0.9
    seed: int = 13
    evaluating: int = max(1, (os.cpu_count() or 1) - 1)
    """Answers that are evaluated at a time, beside the writing. More than there are processors would make code slow
    that is stopped by the clock."""


class Steered(Struct, frozen=True):
    """A model in this process with what steering and projecting need."""

    model: HookedModel
    directions: DirectionSet | None
    calibration: Calibration


class Work(NamedTuple):
    """An episode to be run."""

    condition: Condition
    task: Task
    sample: int


First = tuple[str, str, int]
"""Which first attempt: tone, task, sample. It is the same in every condition that does nothing before feedback."""


class Episode:
    """An episode under way, and when it is over."""

    def __init__(self, work: Work, plan: Plan) -> None:
        self.condition, self.task, self.sample = work
        self._plan = plan
        self.chat = list(plan.wording.opening(self.task, self.condition.tone))
        self.attempts: list[AttemptRow] = []
        self.projections: list[ProjectionRow] = []
        self.over = False

    @property
    def attempt(self) -> int:
        """The number of the next attempt, from 0."""
        return len(self.attempts)

    @property
    def first(self) -> First | None:
        """The part that other conditions share now; None: nothing."""
        if self.attempts or self.condition.acts_before_feedback:
            return None
        return self.condition.tone, self.task.key, self.sample

    @property
    def sampling(self) -> Sampling:
        """Of the next answer. It does not depend on the condition: all conditions share random numbers."""
        plan, seed = self._plan, seed_of(self._plan.seed, self.task.key, self.attempt, self.sample)
        return Sampling(plan.max_new_tokens, plan.temperature, plan.top_p, seed)

    def take(self, answer: Generation, verdict: Verdict) -> None:
        """Keeps an answer and all that is scored about it, and says what comes back of it."""
        attempt, seed, wording, tone = self.attempt, self.sampling.seed, self._plan.wording, self.condition.tone
        # All that the model was told, whose words are not counted as its own.
        told = "\n".join(p.text for message in self.chat if message.speaker != "assistant" for p in message.pieces)
        prose = prose_markers(answer.text, verdict.source, told)
        left = self._plan.attempts - attempt - 1
        self.over = verdict.visible_pass is True or not left
        self.chat.append(Message("assistant", (Piece("code", answer.text, str(attempt)),)))
        feedback = ""
        if not self.over:
            back = wording.after_failure(self.task, visible_failure(self.task, verdict), attempt, left, tone)
            self.chat.append(back)
            feedback = "".join(piece.text for piece in back.pieces)
        self.attempts.append(
            AttemptRow(
                **{name: getattr(verdict, name) for name in _OF_VERDICT},
                condition=self.condition.name,
                sample=self.sample,
                attempt=attempt,
                seed=seed,
                prompt_tokens=answer.prompt_tokens,
                tokens=len(answer.tokens) or answer.new_tokens,
                finish=answer.finish,
                logprob_sum=answer.logprob_sum,
                answer=answer.text,
                feedback=feedback,
                hardcoded=hardcoding(self.task, verdict.source, verdict).flagged,
                marker_score=legacy_score(answer.text),
                frustration_per_100_words=prose.rate("frustration"),
                desperation_per_100_words=prose.rate("desperation"),
                give_up_per_100_words=prose.rate("give_up"),
                prose_words=prose.words,
            )
        )

    @property
    def episode(self) -> EpisodeRow:
        """The outcome of all attempts; its result is that of the last one made."""
        last, failed_first = self.attempts[-1], self.attempts[0].visible_pass is False
        pairs = list(pairwise(self.attempts))
        passed_at = next((row.attempt for row in self.attempts if row.visible_pass), None)
        return EpisodeRow(
            **{name: getattr(last, name) for name in _OF_LAST},
            attempts=len(self.attempts),
            failed_first=failed_first,
            recovered=failed_first and passed_at is not None,
            passed_at=passed_at,
            regressed=sum(b.visible_passed < a.visible_passed for a, b in pairs),
            repeated=sum(bool(a.source) and a.source == b.source for a, b in pairs),
        )


_OF_LAST = [name for name in EpisodeRow.__struct_fields__ if name in AttemptRow.__struct_fields__]


def visible_failure(task: Task, verdict: Verdict) -> str:
    """Return the message a model may get: the first visible failure. A failure of hidden tests alone is never told,
    since the loop ends where the visible ones pass."""
    if verdict.visible_pass:
        return ""
    if verdict.error_class == "no_function":
        return f"there is no function `{task.function}` in the answer."
    return verdict.error or verdict.error_class


# -- answers while other work goes on: asked one by one, they come back in order of ending

Writer: TypeAlias = "HookedModel | Served"
"""Something that answers chats."""


class Event(NamedTuple):
    """An answer, or its verdict; or the reason why there is none."""

    episode: Episode
    answer: Any
    verdict: Any = None


class InProcess:
    """Rows of a model in this process: one that ends makes room for the next, whatever the edits of either."""

    def __init__(self, model: HookedModel, ended: SimpleQueue[Event]) -> None:
        self._model, self._ended = model, ended
        self._answers = model.answers()
        self._new: list[tuple[Any, Request]] = []
        self._refused: tuple[Any, Request] | None = None

    def take(self, episode: Episode, edits: tuple[Edit, ...]) -> bool:
        """Return whether there was room for it; with nothing under way there is."""
        if self._refused is None or self._refused[0] is not episode:
            self._refused = episode, Request(self._model.encode(episode.chat), episode.sampling, edits)
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
        for episode, answer in self._answers.step():
            self._ended.put(Event(episode, answer))
        return len(self._answers) > 0

    def close(self) -> None:
        self._new = []


class OnServer:
    """Calls of a server, several in flight. Their threads end with the process: an answer that never comes holds
    nobody up."""

    def __init__(self, server: Served, ended: SimpleQueue[Event]) -> None:
        self._server, self._ended = server, ended
        self._free = threading.Semaphore(server.concurrency)
        self._closed = False

    def take(self, episode: Episode, _: tuple[Edit, ...]) -> bool:
        if not self._free.acquire(blocking=False):
            return False
        asked = (episode, tuple(episode.chat), episode.sampling)
        threading.Thread(target=self._call, args=asked, daemon=True).start()
        return True

    def _call(self, episode: Episode, chat: tuple[Message, ...], sampling: Sampling) -> None:
        try:
            answer: Any = self._server.answer(chat, sampling)
        except BaseException as problem:  # noqa: BLE001  (raised again where the answer is awaited)
            answer = problem
        self._free.release()
        if not self._closed:
            self._ended.put(Event(episode, answer))

    def work(self) -> bool:
        return False

    def close(self) -> None:
        self._closed = True


# -- the pool

BACKLOG = 4
"""Answers that await their verdicts, as a multiple of those judged at a time, above which no new episode begins: a fast
writer would else begin all of them before one is over, and an interrupt lose them."""
GRACE_S = 10.0
"""After a fault, for answers of a server that are under way: they are paid for. What hangs is not awaited longer."""


def episodes(
    writer: Writer,
    plan: Plan,
    work: Sequence[Work],
    steered: Steered | None = None,
    firsts: Mapping[First, Generation] | None = None,
) -> Iterator[Episode]:
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
        self._ended: SimpleQueue[Event] = SimpleQueue()
        self._stream: InProcess | OnServer
        if hasattr(writer, "encode"):
            self._stream = InProcess(cast("HookedModel", writer), self._ended)
        else:
            self._stream = OnServer(writer, self._ended)
        self._evaluating = ThreadPoolExecutor(plan.evaluating, thread_name_prefix="verdict")
        self._projector: Projector | None = None
        self._edits: dict[str, tuple[Edit, ...]] = {w.condition.name: () for w in work}
        """By condition: the same edits for all its episodes, so that their rows are one group."""
        if steered is not None:
            from agentsignals_lab import steering  # noqa: PLC0415  (NumPy is of an extra)

            self._projector = steering.Projector(steered)
            for condition in {w.condition.name: w.condition for w in work}.values():
                made = steering.edits(condition, steered.directions, steered.calibration)
                self._edits[condition.name] = tuple(made)
        self._sharing: dict[First, list[Episode]] = {}
        """First attempts under way, and who waits for them beside the one that asked."""
        self._evaluated: dict[First, Event] = {}
        self._asked = self._judged = 0
        """Answers and verdicts under way."""
        self._fault: BaseException | None = None
        self._until: float | None = None
        """When answers under way are given up; None: they are awaited."""

    def close(self) -> None:
        self._stream.close()
        self._evaluating.shutdown(wait=False, cancel_futures=True)

    def run(self) -> Iterator[Episode]:
        while True:
            if self._fault is None:
                self._fill()
            if not self._judged and not self._asked:
                break
            busy = False
            if self._fault is None:
                try:
                    busy = self._stream.work()
                except LabError as fault:
                    self._stop(fault)
                    self._asked = 0
            for event in self._events(wait=not busy and self._judged + self._asked > 0):
                yield from self._over(event)
        if self._fault is not None:
            raise self._fault

    def _events(self, *, wait: bool) -> Iterator[Event]:
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
                if not self._stream.take(episode, self._edits[episode.condition.name]):
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

    def _over(self, event: Event) -> Iterator[Episode]:
        is_answer = event.verdict is None
        self._asked -= is_answer
        self._judged -= not is_answer
        ended = event.answer if is_answer else event.verdict
        if isinstance(ended, BaseException):
            self._stop(ended)
        elif is_answer:
            self._evaluate(event.episode, event.answer)
        else:
            first, shared = event.episode.first, []
            if first is not None:
                self._evaluated[first] = event
                shared = self._sharing.pop(first, [])
            for episode in (event.episode, *shared):
                episode.take(event.answer, event.verdict)
                if episode.over:
                    yield episode
                else:
                    self._going.append(episode)

    def _evaluate(self, episode: Episode, answer: Generation) -> None:
        def judge() -> None:
            try:
                verdict: Any = evaluate(episode.task, answer.text)
            except BaseException as problem:  # noqa: BLE001  (raised again where the verdict is awaited)
                verdict = problem
            self._ended.put(Event(episode, answer, verdict))

        self._judged += 1
        self._evaluating.submit(judge)

    def _stop(self, fault: BaseException) -> None:
        """Nothing more is asked."""
        if self._fault is None:
            self._fault, self._until = fault, time.perf_counter() + GRACE_S
