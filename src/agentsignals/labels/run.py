"""A labelling run: progress, the run itself, and an estimate of its cost.

Every answer that cost something is kept as it comes; labels are written when the run ends, however it ends. A run that
was killed continues where it stopped.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field

from agentsignals.errors import UsageError
from agentsignals.labels.answers import Answers, Outcome, now
from agentsignals.labels.labellers import Labeller, quality
from agentsignals.labels.prompting import AS_IT_IS, NOTES, NOTES_TOKENS, Asker, Prompting, Question
from agentsignals.labels.tasks import Task, Unfit, Verdict, is_strict, mark
from agentsignals.labels.units import NotAsked, Selection, Unit, tokens
from agentsignals.model import Absent, Label
from agentsignals.model.prices import cost_usd
from agentsignals.stats.intervals import Prevalence, mean_probability
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.words.classifier import Model, classifier_of
from agentsignals.words.text import estimate_tokens

EVERY_S = 1.0
SILENT_S = 5.0
"""From so long without an answer on it is said."""


class Progress(Protocol):
    """Told how far a run is: never more done than there is. `detail`: calls, failures, tokens, money."""

    def __call__(self, stage: str, done: int, total: int | None, detail: str) -> None: ...


class Meter:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._answered = clock()

    def answered(self) -> None:
        self._answered = self._clock()

    def words(self, spent: Summary, waiting: int) -> str:
        """In a line; empty where nothing was asked. `waiting`: questions that were given and have no answer yet."""
        parts = []
        if spent.calls:
            minutes = max(self._clock() - self._began, 1.0) / 60
            parts.append(f"{spent.calls:,} calls ({spent.calls / minutes:,.0f} a minute)")
        if failed := sum(spent.failed.values()):
            parts.append(f"{failed:,} failed")
        if spent.input_tokens or spent.output_tokens:
            parts.append(f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out")
            cost = cost_usd(spent.model, spent.input_tokens, spent.output_tokens) if spent.model else None
            parts += [f"${cost:,.2f}"] if cost is not None else []
        silent_s = self._clock() - self._answered
        if spent.model and waiting and silent_s >= SILENT_S:
            parts.append(f"no answer for {silent_s:,.0f} s, {waiting:,} waiting")
        return ", ".join(parts)


@contextmanager
def beating(beat: Callable[[], None]) -> Iterator[None]:
    """Calls `beat` every so often from a thread of its own, so that a server that says nothing is seen to."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(EVERY_S):
            beat()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# -- The run

MOST_FAILURES = 50
"""Failures that a summary names one by one; all are counted."""
EXAMPLE = "shown_as_example"
"""Why a message is not asked about that the model was shown with its label, or one that says the same."""


class Summary(Struct, kw_only=True):
    """Summary of a run. Tokens and cost count this run's calls; kept answers cost nothing again."""

    task: str
    labeller: str
    model: str | None
    prompt_hash: str
    labelled: int = 0
    sessions: int = 0
    kept: int = 0
    """Labels that rest on an answer of an earlier run."""
    repeated: int = 0
    """Labels that rest on an answer to an equal question of this run."""
    not_asked: dict[str, int] = field(default_factory=dict)
    """Messages or sessions that the task is not about, by reason."""
    no_verdict: dict[str, int] = field(default_factory=dict)
    """Units without a verdict, by reason."""
    failed: dict[str, int] = field(default_factory=dict)
    """Units without a valid answer, by reason; the next run asks again."""
    failures: list[dict[str, Any]] = field(default_factory=list)
    unanswered: int = 0
    """Units asked about without an outcome: their questions are in a batch file, or the run was stopped."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """At list price; None where the model's is not known, or nothing was asked."""
    loosely_parsed: int = 0
    """Answers of this run that a strict JSON parser would have refused."""
    unwrapped: int = 0
    """Answers of this run around which a fence, a thought or a sentence stood, which was cut away."""
    served_models: dict[str, int] = field(default_factory=dict)
    """Who answered, as the server says, with how many labels of this run."""
    of_earlier_prompts: int = 0
    """Labels of this labeller that stand from another version of the prompt: this run was not about them."""
    redacted: dict[str, int] = field(default_factory=dict)
    """Masked strings in texts that left this machine, by kind."""
    run_figures: dict[str, Any] = field(name="told", default_factory=dict)
    """The labeller's own figures: address, retries, pauses."""
    measured: str = ""
    """Measured quality of this labeller at this task; empty where unmeasured."""
    counts: dict[str, int] = field(default_factory=dict)
    """Labels of this run by class, where the task has classes; those of rules are lower bounds."""
    shares: dict[str, Prevalence] = field(default_factory=dict)
    """By class, of a classifier: the mean of its calibrated probabilities, and the count of its labels."""
    file: str = ""


def run(  # noqa: PLR0913  (what is judged by whom, how, and who is told)
    store: Store,
    task: Task,
    by: Labeller,
    selection: Selection,
    progress: Progress,
    prompting: Prompting = AS_IT_IS,
) -> Summary:
    """Labels what was selected, and writes the labels into the store: also when interrupted, with what there is.

    UsageError where a labeller that reads no prompt is to be prompted otherwise.
    """
    return _Run(store, task, by, selection, progress, prompting).through()


class _Run:
    def __init__(  # noqa: PLR0913  (as `run`)
        self,
        store: Store,
        task: Task,
        by: Labeller,
        selection: Selection,
        progress: Progress,
        prompting: Prompting,
    ) -> None:
        self._store, self._task, self._by, self._selection, self._progress = store, task, by, selection, progress
        self._prompting, self._name = prompting, by.name + prompting.suffix
        self._version = versioned(task, by, prompting)
        self._asker = Asker(task, self._name, prompting)
        self._answers = Answers(store.folder / sidecars.LABELS_FOLDER) if by.keeps else None
        self._lock = threading.RLock()
        self._waiting: dict[str, list[Unit | None]] = {}
        self._failed_now: dict[str, Outcome] = {}
        self._long: set[str] = set()
        self._rows: dict[tuple[str, int], LabelRow] = {}
        self._open = self._settled = 0
        self._meter = Meter()
        self.summary = Summary(
            task=task.name,
            labeller=self._name,
            model=by.model,
            prompt_hash=self._version,
            measured=quality(by.name, task),
        )
        self._classifier = classifier_of(by.name, task.name)

    def through(self) -> Summary:
        started = now()
        try:
            with beating(self._beat):
                self._by.ask(self._short_questions(), self._done)
                if self._long:
                    self._by.ask(self._long_questions(), self._done)
        finally:
            with self._lock:
                self._finish()
                if self._answers is not None:
                    record = msgspec.to_builtins(self.summary) | {"schema": mark(str(self._task.schema))}
                    self._answers.note_run(started, record)
        return self.summary

    def _finish(self) -> None:
        """Write the labels, and complete the summary."""
        summary, rows = self.summary, dict(self._rows)

        def with_standing(before: list[LabelRow]) -> list[LabelRow]:
            for row in before:
                place = _place(row.session_id, row.label.turn)
                if place not in rows:
                    rows[place] = row
                    summary.of_earlier_prompts += row.label.prompt_hash != self._version
            return [rows[place] for place in sorted(rows)]

        folder, name = self._store.folder, self._task.name
        if rows or sidecars.labels_of(folder, name, self._name):
            summary.file = str(sidecars.update_labels(folder, name, self._name, with_standing))
        summary.labelled, summary.unanswered = len(self._rows), self._open
        if self._task.values:
            summary.counts = dict(Counter(row.label.value for row in self._rows.values()).most_common())
        if self._classifier is not None:
            made = [(row.session_id, row.label.value, row.label.detail) for row in self._rows.values()]
            summary.shares = shares_of(self._classifier, made)
        summary.sessions = len({session_id for session_id, _ in self._rows})
        summary.redacted = self._selection.redacted
        summary.run_figures = self._by.run_figures()
        if summary.calls and self._by.model:
            summary.cost_usd = cost_usd(self._by.model, summary.input_tokens, summary.output_tokens)

    # -- questions -----------------------------------------------------------------------------------------------

    def _short_questions(self) -> Iterator[Question]:
        """The questions about what is shown in one part, and those for notes on what is not."""
        for unit in self._selection.units(self._store, self._task, self._by.window()):
            why = unit.reason if isinstance(unit, NotAsked) else EXAMPLE if self._prompting.shows(unit) else ""
            if why or isinstance(unit, NotAsked):
                with self._lock:
                    _count(self.summary.not_asked, why)
                    self._beat()
            elif len(unit.parts) == 1:
                yield from self._new(self._asker.question(unit), unit)
            else:
                self._long.add(unit.session_id)
                yield from (q for q in self._asker.notes(unit) if self._is_new(q, None))

    def _long_questions(self) -> Iterator[Question]:
        """The questions about long sessions, whose notes are there now. Their transcripts are made anew, not held."""
        window = self._by.window()
        for unit in self._selection.units(self._store, self._task, window, self._long):
            if isinstance(unit, NotAsked) or len(unit.parts) == 1:
                continue
            notes, missing = [], None
            for question in self._asker.notes(unit):
                outcome = self._answers.get(question.key) if self._answers else None
                if outcome is None or outcome.text is None:
                    missing = outcome or Outcome(failure="missing")
                    break
                notes.append(str(self._by.read(question, outcome.text)))
            if missing is not None:
                if missing.failure == "missing" and self._waiting:  # they stand in a batch file
                    with self._lock:
                        self._open += 1
                else:
                    self._fail(unit, "notes_" + (missing.failure or "missing"), missing.detail)
                continue
            question = self._asker.question(unit, notes)
            if tokens(question.instructions) + tokens(question.shown) + question.tokens > window:
                self._fail(unit, "too_long", f"notes on {len(notes)} parts and the last part fill {window:,} tokens")
            else:
                yield from self._new(question, unit)

    def _new(self, question: Question, unit: Unit) -> Iterator[Question]:
        with self._lock:
            self._open += 1
            is_new = self._is_new(question, unit)
        if is_new:
            yield question

    def _is_new(self, question: Question, unit: Unit | None) -> bool:
        """Tell whether a question must be asked. If not, its unit is settled now, or with an equal question."""
        with self._lock:
            if question.key in self._waiting:
                self._waiting[question.key].append(unit)
                self.summary.repeated += unit is not None
                return False
            kept = self._failed_now.get(question.key) or (self._answers.get(question.key) if self._answers else None)
            if kept is not None and (kept.text is not None or question.key in self._failed_now):
                with suppress(Unfit):  # what an older version of this code took for an answer is asked again
                    self._settle(question, unit, kept)
                    self.summary.kept += unit is not None and kept.text is not None
                    return False
            self._waiting[question.key] = [unit]
            return True

    # -- answers -------------------------------------------------------------------------------------------------

    def _done(self, question: Question, outcome: Outcome) -> None:
        if self._answers is not None:
            self._answers.put(question.key, self._name, question.task, outcome)
        with self._lock:
            self._meter.answered()
            summary = self.summary
            summary.calls += outcome.calls
            summary.input_tokens += outcome.input_tokens
            summary.output_tokens += outcome.output_tokens
            if outcome.text is None:
                self._failed_now[question.key] = outcome
            elif self._by.keeps:
                summary.loosely_parsed += not is_strict(outcome.text)
                summary.unwrapped += outcome.cut_chars > 0
            for unit in self._waiting.pop(question.key, []):
                self._settle(question, unit, outcome)

    def _settle(self, question: Question, unit: Unit | None, outcome: Outcome) -> None:
        """Give a unit the verdict and label of an answer. Unfit when a kept answer is none any more."""
        if unit is None:
            return
        verdict = None if outcome.text is None else self._by.read(question, outcome.text)
        self._open -= 1
        if not isinstance(verdict, Verdict | Absent):
            self._fail(unit, outcome.failure or "no_answer", outcome.detail)
            return
        if isinstance(verdict, Absent):
            _count(self.summary.no_verdict, verdict.detail or verdict.reason)
            self._tick()
            return
        detail = dict(verdict.detail or {}) | ({"parts": len(unit.parts)} if len(unit.parts) > 1 else {})
        made = Label(
            task=self._task.name,
            labeller=self._name,
            turn=unit.turn,
            value=verdict.value,
            reason=verdict.reason,
            prompt_hash=self._version,
            model=self._by.model,
            served_model=outcome.model,
            created_at=outcome.created_at,
            number=verdict.number,
            detail=msgspec.json.encode(detail).decode() if detail else None,
        )
        if outcome.model is not None:
            _count(self.summary.served_models, outcome.model)
        for session_id in (unit.session_id, *unit.also):
            self._rows[_place(session_id, unit.turn)] = LabelRow(session_id, made)
        self._tick()

    def _fail(self, unit: Unit, reason: str, detail: str | None) -> None:
        with self._lock:
            _count(self.summary.failed, reason)
            if len(self.summary.failures) < MOST_FAILURES:
                about = {"session": unit.session_id, "turn": unit.turn}
                self.summary.failures.append({**about, "reason": reason, "detail": detail})
            self._tick()

    def _tick(self) -> None:
        self._settled += 1
        self._beat()

    def _beat(self) -> None:
        with self._lock:
            total = self._selection.total
            if total is not None:
                total = max(total - self.summary.not_asked.get(EXAMPLE, 0), self._settled + self._open)
            self._progress("labelling", self._settled, total, self._meter.words(self.summary, len(self._waiting)))


class _Detail(Struct):
    probabilities: dict[str, float] | None = None


def shares_of(model: Model, labels: Iterable[tuple[str, str, str | None]]) -> dict[str, Prevalence]:
    """Return the share of each class behind a classifier's labels (session, class, detail); empty where one of them
    has no calibrated probabilities."""
    chances = [
        (session_id, value, msgspec.json.decode(detail or "{}", type=_Detail).probabilities)
        for session_id, value, detail in labels
    ]
    if model.calibration is None or not chances or any(found is None for _, _, found in chances):
        return {}
    return {
        name: mean_probability(
            [(session_id, (found or {}).get(name, 0.0), value == name) for session_id, value, found in chances], error
        )
        for name, error in zip(model.classes, model.calibration.share_errors, strict=True)
    }


def versioned(task: Task, by: Labeller, prompting: Prompting) -> str:
    """The version of a labeller's labels. UsageError where it reads no prompt that could be another."""
    version = by.version(task)
    if prompting.suffix and version != task.prompt_hash:
        raise UsageError(f"{by.name} is not a language model.", "Leave out --examples.")
    return version + prompting.suffix


def _place(session_id: str, turn: int | None) -> tuple[str, int]:
    """Where a label belongs: the session, or (from 0) its turn."""
    return session_id, -1 if turn is None else turn


def _count(counts: dict[str, int], reason: str) -> None:
    counts[reason] = counts.get(reason, 0) + 1


# -- Estimate, without asking any server

ANSWER_TOKENS = {"turn": 40, "session": 120, "repository": 60, "attempt": 120, NOTES: 400}
"""Typical tokens of an answer: a label and a sentence, scores and a few, notes of 300 words."""


class Estimate(Struct, kw_only=True):
    """Estimate of a run. Tokens are characters / 4; a reasoning model uses more."""

    task: str
    labeller: str
    units: int = 0
    not_asked: dict[str, int] = field(default_factory=dict)
    long: int = 0
    """Units that exceed the window, and need notes first."""
    kept: int = 0
    """Questions answered by an earlier run."""
    repeated: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    window: int = 0


def estimate(  # noqa: PLR0913  (as `run`)
    store: Store,
    task: Task,
    by: Labeller,
    selection: Selection,
    window: int,
    prompting: Prompting = AS_IT_IS,
) -> Estimate:
    """Estimate what `run` would ask. `window`: tokens of the labeller's model."""
    versioned(task, by, prompting)
    name = by.name + prompting.suffix
    totals = Estimate(task=task.name, labeller=name, window=window)
    folder = store.folder / sidecars.LABELS_FOLDER
    answers = Answers(folder) if by.keeps and folder.is_dir() else None
    asker = Asker(task, name, prompting)
    seen: set[str] = set()
    for unit in selection.units(store, task, window):
        if isinstance(unit, NotAsked) or prompting.shows(unit):
            why = unit.reason if isinstance(unit, NotAsked) else EXAMPLE
            totals.not_asked[why] = totals.not_asked.get(why, 0) + 1
            continue
        totals.units += 1
        totals.long += len(unit.parts) > 1
        # Notes that are not there yet are taken to be as long as they may be.
        notes = ["n" * 4 * NOTES_TOKENS] * (len(unit.parts) - 1)
        for question in (*asker.notes(unit), asker.question(unit, notes)):
            kept = answers.get(question.key) if answers else None
            if question.key in seen:
                totals.repeated += 1
            elif kept is not None and kept.text is not None:
                totals.kept += 1
            elif by.model is not None:
                totals.calls += 1
                totals.input_tokens += estimate_tokens(len(question.instructions) + len(question.shown))
                totals.output_tokens += ANSWER_TOKENS[NOTES if question.task == NOTES else task.level]
            seen.add(question.key)
    if answers is not None:
        answers.close()
    if by.model is not None:
        totals.cost_usd = cost_usd(by.model, totals.input_tokens, totals.output_tokens)
    return totals
