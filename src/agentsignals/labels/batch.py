"""Batch files: unanswered questions written as requests, and results read as answers.

`openai`: one request a line (OpenAI's Batch API, Azure's, Groq's, `vllm run-batch`). `anthropic`: the document that
Message Batches take. Results are lines in both, in any order. A request's `custom_id` is its question's key, so results
may come in any number of files, and taking one twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Raw, Struct

from agentsignals import private_files
from agentsignals.errors import LabelError, SourceError, UsageError
from agentsignals.labels.answers import MOST_GROWTH, Answers, ChatMessage, Choice, Completion, Inquiry, Usage
from agentsignals.labels.labellers import Done, Labeller
from agentsignals.labels.labellers.openai import ENDPOINT, ChatServer
from agentsignals.labels.prompting import AS_IT_IS, Prompting, Question
from agentsignals.labels.run import Progress, Summary, run
from agentsignals.labels.tasks import Task, Verdict
from agentsignals.labels.units import Selection
from agentsignals.model import Absent
from agentsignals.redaction import Guard
from agentsignals.store import Store, sidecars

_BOUNDS = frozenset(("minimum", "maximum"))
"""Schema keys that Anthropic does not support; values out of bounds are found when the answer is decoded."""
_STOPS = {"max_tokens": "length", "model_context_window_exceeded": "length"}


class Form(NamedTuple):
    """A provider's batch format."""

    request: Callable[[Question, dict[str, Any]], dict[str, Any]]
    """Build a request from a question and the body that a chat server would get."""
    around: tuple[bytes, bytes, bytes]
    """Bytes before the first request, between two, and after the last."""
    most_requests: int
    most_bytes: int


class Failure(NamedTuple):
    """Why a request has no answer."""

    reason: str
    """A word to count by: `expired`, `canceled`, `errored`."""
    detail: str


class _Problem(Struct):
    code: str | int | None = None
    type: str | None = None
    message: str | None = None
    error: _Problem | None = None


class _Response(Struct):
    status_code: int | None = None
    body: Raw = Raw()


class _Block(Struct):
    type: str
    text: str = ""


class _Used(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Message(Struct):
    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None
    usage: _Used | None = None


class _Result(Struct):
    type: str
    message: _Message | None = None
    error: _Problem | None = None


class _Line(Struct):
    custom_id: str
    response: _Response | None = None
    error: _Problem | None = None
    result: _Result | None = None


class _WithError(Struct):
    error: _Problem | None = None


_line = msgspec.json.Decoder(_Line).decode
_completion = msgspec.json.Decoder(Completion).decode
_with_error = msgspec.json.Decoder(_WithError).decode


def result(line: bytes) -> tuple[str, Completion | Failure] | None:
    """Decode a line of a results file: the question's key, and its answer. None where it is none."""
    try:
        parsed = _line(line)
        return parsed.custom_id, _of_openai(parsed) if parsed.result is None else _of_anthropic(parsed.result)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _of_anthropic(outcome: _Result) -> Completion | Failure:
    message = outcome.message
    if outcome.type != "succeeded" or message is None:
        problem = outcome.error.error or outcome.error if outcome.error is not None else None
        detail = f"{problem.type}: {problem.message}" if problem is not None else outcome.type
        return Failure(outcome.type if outcome.type in ("expired", "canceled") else "errored", detail)
    used = message.usage or _Used()
    input_tokens = (used.input_tokens, used.cache_creation_input_tokens, used.cache_read_input_tokens)
    text = "".join(block.text for block in message.content if block.type == "text")
    refusal = (text or "the model refused") if message.stop_reason == "refusal" else None
    finish_reason = _STOPS.get(message.stop_reason or "", message.stop_reason)
    usage = Usage(sum(n or 0 for n in input_tokens), used.output_tokens)
    return Completion([Choice(ChatMessage(text, refusal), finish_reason)], usage, message.model)


def _of_openai(line: _Line) -> Completion | Failure:
    answered = line.response
    if line.error is None and answered is not None and (answered.status_code or 200) < 400:
        completion = _completion(answered.body)
        return completion if completion.choices else Failure("errored", "a completion without a choice")
    problem = line.error or (
        _with_error(answered.body).error if answered is not None and bytes(answered.body) else None
    )
    expired = problem is not None and problem.code == "batch_expired"
    status = f"HTTP {answered.status_code}: " if answered is not None else ""
    words = (problem and (problem.message or problem.code)) or "no answer"
    return Failure("expired" if expired else "errored", f"{status}{words}")


def _anthropic_request(question: Question, body: dict[str, Any]) -> dict[str, Any]:
    """Without a temperature, which its newer models refuse."""
    properties = {
        name: {key: value for key, value in of.items() if key not in _BOUNDS}
        for name, of in question.schema["properties"].items()
    }
    params = {
        "model": body["model"],
        "max_tokens": body.get("max_tokens") or body["max_completion_tokens"],
        "system": question.instructions,
        "messages": [{"role": "user", "content": question.shown}],
        "output_config": {"format": {"type": "json_schema", "schema": question.schema | {"properties": properties}}},
    }
    return {"custom_id": question.key, "params": params}


FORMS = {
    "openai": Form(
        lambda question, body: {"custom_id": question.key, "method": "POST", "url": f"/v1{ENDPOINT}", "body": body},
        (b"", b"", b""),
        50_000,
        200_000_000,
    ),
    "anthropic": Form(_anthropic_request, (b'{"requests": [\n', b",", b"]}\n"), 100_000, 256_000_000),
}
"""With what a file may hold at most: OpenAI's and Anthropic's pages of November 2026."""


# -- Writing requests and reading results

_CLAUDE = "claude"


class _Offline(Labeller):
    """A chat server's labeller that asks no server."""

    leaves = True
    keeps = True

    def __init__(self, by: ChatServer, window: int | None) -> None:
        self._by, self._window = by, window
        self.name, self.model = by.name, by.model
        self.figures: dict[str, Any] = {}

    def window(self) -> int:
        return self._window or super().window()

    def run_figures(self) -> dict[str, Any]:
        return self.figures


class _Requests(_Offline):
    """Writes questions down; none of them is answered now."""

    def __init__(self, by: ChatServer, window: int | None, path: Path, form: Form, answers: Answers) -> None:
        super().__init__(by, window)
        self._path, self._form, self._answers = path, form, answers
        self._draft = path.with_name(f".{path.name}.part")
        self.waiting = answers.waiting()
        self._guard = Guard()
        self._out: BinaryIO | None = None
        self._bytes = 0
        self._keys: list[str] = []
        self.figures = {"files": [], "requests": 0, "waiting": 0}

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        for question in questions:
            if question.key in self.waiting:
                self.figures["waiting"] += 1
                continue
            # It can't grow when an answer is cut: it gets at once what that would end at.
            body = self._by.request(question, question.tokens * MOST_GROWTH, 0.0)
            line = msgspec.json.encode(self._form.request(question, body))
            if kind := self._guard.kind(msgspec.json.encode(body).decode()):  # not its id, a hash
                done(question, Inquiry.at(question).failed("held_back", f"it would have held a {kind}"))
                continue
            full = len(self._keys) == self._form.most_requests or self._bytes + len(line) > self._form.most_bytes
            if self._keys and full:
                self.close()
            if self._name.exists():
                raise UsageError(f"{self._name} already exists.", "Choose a new file name.")
            try:
                if self._out is None:
                    self._out = private_files.open_file(self._draft, "wb")
                    self._out.write(self._form.around[0])
                self._out.write((self._form.around[1] if self._keys else b"") + line + b"\n")
            except OSError as problem:
                raise SourceError(
                    f"{self._name} can't be written: {problem.strerror}.", "Name another file."
                ) from problem
            self._keys.append(question.key)
            self._bytes += len(line) + 2

    @property
    def _name(self) -> Path:
        n = len(self.figures["files"]) + 1
        return self._path if n == 1 else self._path.with_name(f"{self._path.stem}-{n}{self._path.suffix}")

    def close(self, *, whole: bool = True) -> None:
        """Ends a file. It is there only when it is whole."""
        if self._out is None:
            return
        try:
            if whole:
                self._out.write(self._form.around[2])
            self._out.close()
            if whole:
                # Before the file is there: a question that is lost can be asked again, one asked twice is paid twice.
                self._answers.wait_for(self._keys, str(self._name))
                self._draft.rename(self._name)
        except OSError as problem:
            raise SourceError(f"{self._name} can't be written: {problem.strerror}.", "Free some space.") from problem
        finally:
            self._draft.unlink(missing_ok=True)
        if whole:
            self.figures["requests"] += len(self._keys)
            self.figures["files"].append(str(self._name))
        self._out, self._keys, self._bytes = None, [], 0


class _Results(_Offline):
    """Answers questions by what stands in files of results; a question without one stays unanswered."""

    def __init__(self, by: ChatServer, window: int | None, results: dict[str, Completion | Failure]) -> None:
        super().__init__(by, window)
        self._results = results
        self.used: set[str] = set()
        self.settled: set[str] = set()
        """Questions that have an answer, from here or from before."""

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        self.settled.add(question.key)
        return super().read(question, text)

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        for question in questions:
            received = self._results.get(question.key)
            if received is None:
                continue
            self.used.add(question.key)
            inquiry = Inquiry.at(question)
            if isinstance(received, Failure):
                done(question, inquiry.failed(*received))
                continue
            inquiry.calls = 1
            inquiry.received(received)
            choice = received.choices[0]
            outcome, cut = inquiry.took(choice), choice.finish_reason == "length"
            text = choice.message.content or ""
            done(question, outcome or inquiry.failed("cut_short" if cut else inquiry.wrong, text))


def write(  # noqa: PLR0913  (as `run`, and where to)
    store: Store,
    task: Task,
    by: ChatServer,
    selection: Selection,
    progress: Progress,
    path: Path | str,
    *,
    form: str | None = None,
    window: int | None = None,
    prompting: Prompting = AS_IT_IS,
    again: bool = False,
) -> Summary:
    """Writes what has no answer yet into a new file, or several where one would be too large (NAME-2 …). `again`: what
    stands in an earlier file without a result, too. Labels that kept answers give are written into the store.
    """
    target = Path(path)
    if target.exists():
        raise UsageError(f"{target} already exists.", "Choose a new file name.")
    default = "anthropic" if (by.model or "").startswith(_CLAUDE) else "openai"  # what the model's provider takes
    answers = Answers(store.folder / sidecars.LABELS_FOLDER)
    try:
        requests = _Requests(by, window, target, FORMS[form or default], answers)
        if again:
            requests.waiting.clear()
        try:
            summary = run(store, task, requests, selection, progress, prompting)
            requests.close()
        finally:
            requests.close(whole=False)
    finally:
        answers.close()
    return summary


def take(  # noqa: PLR0913  (as `run`, and where from)
    store: Store,
    task: Task,
    by: ChatServer,
    selection: Selection,
    progress: Progress,
    paths: Iterable[Path | str],
    *,
    window: int | None = None,
    prompting: Prompting = AS_IT_IS,
) -> Summary:
    """Labels by files of results. `run_figures` says how many lines were taken, answered before, of no question here
    (another task, model or way of asking), or no result. LabelError where none is of a question here.
    """
    results: dict[str, Completion | Failure] = {}
    skipped: Counter[str] = Counter()
    for path in paths:
        try:
            with Path(path).open("rb") as lines:
                for line in lines:
                    received = result(line) if line.strip() else None
                    if received is None:
                        skipped["unreadable"] += bool(line.strip())
                    # Of several about one question the one with an answer counts.
                    elif isinstance(results.get(received[0], Failure("", "")), Failure):
                        results[received[0]] = received[1]
        except OSError as problem:
            raise SourceError(
                f"{path} can't be read: {problem.strerror}.", "Name a readable file of batch results."
            ) from problem
    answers = Answers(store.folder / sidecars.LABELS_FOLDER)
    try:
        taking = _Results(by, window, results)
        summary = run(store, task, taking, selection, progress, prompting)
        answers.wait_no_more(taking.used)
    finally:
        answers.close()
    before = (results.keys() & taking.settled) - taking.used
    counts = Counter(taken=len(taking.used), answered_before=len(before), **skipped)
    counts["of_no_question"] = len(results.keys() - taking.used - before)
    summary.run_figures = {name: n for name, n in counts.items() if n}
    if results and not taking.used and not before:
        raise LabelError(
            f"None of {len(results):,} results belongs to the task {task.name} and {summary.labeller}.",
            "Give the same task, model, --examples and --redact as when the batch was written.",
        )
    return summary
