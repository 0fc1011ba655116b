"""Stores of sessions whose messages a test writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentsignals.ingest import pipeline
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.prompting import AS_IT_IS, Prompting
from agentsignals.labels.run import Summary, run
from agentsignals.labels.tasks import task
from agentsignals.labels.units import Selection
from agentsignals.store import Store
from tests.claude import Log
from tests.labels.server import Server

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


def judge(
    store: Store,
    server: Server,
    name: str = "sentiment",
    selection: Selection | None = None,
    prompting: Prompting = AS_IT_IS,
    **settings: Any,
) -> Summary:
    """A run by the server's model, which waits for nothing between tries."""
    by = ChatServer(f"tiny@{server.url}", wait=lambda _: None, **settings)
    return run(store, task(name), by, selection or Selection(), lambda *_: None, prompting)
