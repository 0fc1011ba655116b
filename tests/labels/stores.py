"""Stores of sessions whose messages a test writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from tests.claude import Log

ANSWER = "I looked at the module and changed it as you asked."


def session_id(n: int) -> str:
    return f"6f1d2c3b-0000-4000-8000-{n:012d}"


def store_of(folder: Path, *sessions: Sequence[str], answer: str = ANSWER) -> Store:
    """A store of sessions, each given as the person's messages; the agent answers every one the same."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for n, messages in enumerate(sessions):
        log = Log(session_id(n))
        for m, text in enumerate(messages):
            log.user(text)
            log.say(f"{answer} ({m})", message_id=f"msg_{n}_{m}")
        (corpus / f"{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(corpus)], folder / "store", jobs=1)
    return Store(folder / "store")
