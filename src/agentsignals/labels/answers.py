"""Answers of language models: kept by question, and asked again where invalid.

Answers are kept in one file of the store and written as each comes, so a run that was killed asks nothing twice. The
key is made from labeller, prompt, schema and material. Failures are kept with their reason; the next run asks again.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Unfit, answer_in

NAME = "answers.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, labeller TEXT, task TEXT, text TEXT, failure TEXT,
  detail TEXT, input_tokens INTEGER, output_tokens INTEGER, calls INTEGER, created_at INTEGER, model TEXT,
  cut_chars INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (key TEXT PRIMARY KEY, file TEXT, created_at INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (started_at INTEGER, ended_at INTEGER, told TEXT);
"""

_GET = (
    "SELECT text, failure, detail, input_tokens, output_tokens, calls, created_at, model, cut_chars"
    " FROM answers WHERE key = ?"
)


class Outcome(Struct, frozen=True, kw_only=True):
    """Outcome of a question: the answer's text, or a failure with its reason. One of the two is set."""

    text: str | None = None
    failure: str | None = None
    """A word to count by."""
    detail: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    """Tokens of all calls, failed ones included."""
    calls: int = 0
    created_at: int = 0
    """Microseconds since 1970 UTC."""
    model: str | None = None
    """Model that the server names (a snapshot, the model behind a router), with its fingerprint if it has one."""
    cut_chars: int = 0
    """Characters around the answer (a fence, a thought, a sentence), which are not kept."""


class Answers:
    """The kept answers of a store. Usable from several threads."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._lock = threading.Lock()
        try:
            private_files.make_folder(folder)
            private_files.create(self.path)
            self._db = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            weakref.finalize(self, self._db.close)  # whoever forgets it: an open database is a warning of Python 3.13
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
            have = {row[1] for row in self._db.execute("PRAGMA table_info(answers)")}
            for column in ("model TEXT", "cut_chars INTEGER DEFAULT 0"):  # paid answers of an older program stay
                if column.split()[0] not in have:
                    self._db.execute(f"ALTER TABLE answers ADD COLUMN {column}")
        except (OSError, sqlite3.DatabaseError) as problem:
            # Paid work may lie in it: unlike other indexes it is not begun anew behind the person's back.
            raise self._unreadable(problem) from problem

    def _unreadable(self, problem: Exception) -> StoreError:
        return StoreError(
            f"{self.path} can't be opened: {problem}.", "Move it away. The model is then asked for its answers again."
        )

    def get(self, key: str) -> Outcome | None:
        """Return a question's outcome of an earlier run; None when it was not asked."""
        try:
            with self._lock:
                row = self._db.execute(_GET, (key,)).fetchone()
        except sqlite3.Error as problem:
            raise self._unreadable(problem) from problem
        return Outcome(**dict(zip(Outcome.__struct_fields__, row, strict=True))) if row else None

    def put(self, key: str, labeller: str, task: str, outcome: Outcome) -> None:
        row = (key, labeller, task, *msgspec.structs.astuple(outcome))
        self._write(f"INSERT OR REPLACE INTO answers VALUES ({','.join('?' * len(row))})", [row])  # noqa: S608  (marks)

    def note_run(self, started_at: int, summary: dict[str, Any]) -> None:
        """Keeps what a run was: labeller, address, prompt and schema versions, figures."""
        row = (started_at, now(), msgspec.json.encode(summary).decode())
        self._write("INSERT INTO runs VALUES (?, ?, ?)", [row])

    def waiting(self) -> dict[str, str]:
        """Questions that stand in a batch file without a result so far, and in which."""
        try:
            with self._lock:
                return dict(self._db.execute("SELECT key, file FROM batches").fetchall())
        except sqlite3.Error as problem:
            raise self._unreadable(problem) from problem

    def wait_for(self, keys: Iterable[str], file: str) -> None:
        self._write("INSERT OR REPLACE INTO batches VALUES (?, ?, ?)", [(key, file, now()) for key in keys])

    def wait_no_more(self, keys: Iterable[str]) -> None:
        """A result of these came, whatever it says."""
        self._write("DELETE FROM batches WHERE key = ?", [(key,) for key in keys])

    def _write(self, statement: str, written: list[tuple[Any, ...]]) -> None:
        try:
            with self._lock, self._db:
                self._db.executemany(statement, written)
        except sqlite3.Error as problem:
            raise StoreError(f"{self.path} can't be written: {problem}.", "Free some space.") from problem

    def close(self) -> None:
        with self._lock:
            self._db.close()


def now() -> int:
    return time.time_ns() // 1000


# -- Retries: a cut answer gets twice the tokens; an invalid one, or one in a loop, is asked for at a higher temperature

ANSWERS = 3
"""Invalid answers to one question before it fails."""
MOST_GROWTH = 8
"""A cut answer gets twice the tokens each time, up to so many times as many."""
WARMER = 0.4
LOOP_CHARS, LOOPS = 40, 4
"""A cut answer whose last characters stand in it so many times repeats itself: more tokens would not end it."""
_DETAIL_CHARS = 300
_NAME_CHARS = 200


class ChatMessage(Struct):
    content: str | None = None
    refusal: str | None = None


class Choice(Struct):
    message: ChatMessage
    finish_reason: str | None = None


class Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Completion(Struct):
    """A model's response, as chat servers send it."""

    choices: list[Choice]
    usage: Usage | None = None
    model: str | None = None
    system_fingerprint: str | None = None


class Inquiry(Struct, kw_only=True):
    """A question, and what it has used so far."""

    question: Question
    limit: int
    invalid: int = 0
    wrong: str = ""
    """Defect of the last answer, in a word; empty when valid."""
    is_formless: bool = False
    """The last response held no answer of the wanted shape."""
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    model: str | None = None
    """Who answered last, as the server says."""

    @classmethod
    def at(cls, question: Question) -> Inquiry:
        return cls(question=question, limit=question.tokens)

    @property
    def temperature(self) -> float:
        return self.invalid * WARMER

    def received(self, completion: Completion) -> None:
        """Add what a call used, and who answered it."""
        if completion.usage is not None:
            self.input_tokens += completion.usage.prompt_tokens or 0
            self.output_tokens += completion.usage.completion_tokens or 0
        mark = f" ({completion.system_fingerprint})" if completion.system_fingerprint else ""
        self.model = f"{completion.model}{mark}"[:_NAME_CHARS] if completion.model else None

    def took(self, choice: Choice) -> Outcome | None:
        """Take a response: return the outcome, or None when the question must be asked again."""
        text, refusal = choice.message.content or "", choice.message.refusal
        self.is_formless = True
        try:
            answer = answer_in(self.question.answer, text)
            self.is_formless = False
            self.question.read(answer)
        except Unfit as problem:
            withheld = "refusal" if refusal else "content_filter" if choice.finish_reason == "content_filter" else ""
            is_cut = choice.finish_reason == "length" and text.count(text[-LOOP_CHARS:]) < LOOPS
            self.wrong = withheld or problem.reason
            if withheld:  # the same would come again, and cost again
                return self.failed(withheld, refusal or "the server withheld the answer")
            if not is_cut:
                self.invalid += 1
                return self.failed(problem.reason, str(problem)) if self.invalid >= ANSWERS else None
            if self.limit >= self.question.tokens * MOST_GROWTH:
                return self.failed("cut_short", f"no whole answer in {self.limit} tokens")
            self.limit *= 2
            return None
        self.wrong = ""
        return self._outcome(answer, cut_chars=len(text) - len(answer))

    def failed(self, reason: str, detail: str) -> Outcome:
        """The end of it without an answer."""
        return self._outcome(None, reason, " ".join(detail.split())[:_DETAIL_CHARS])

    def _outcome(
        self, text: str | None, failure: str | None = None, detail: str | None = None, cut_chars: int = 0
    ) -> Outcome:
        return Outcome(
            text=text,
            failure=failure,
            detail=detail,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            calls=self.calls,
            created_at=now(),
            model=self.model,
            cut_chars=cut_chars,
        )
