"""What a person sees of a run while it goes on: figures, money, silence; and never more done than there is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsignals.cli.output import Bar
from agentsignals.errors import LabelError
from agentsignals.labels import run as running
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.run import SILENT_S, Meter, Summary
from agentsignals.labels.tasks import task
from agentsignals.labels.units import Selection
from agentsignals.store import Store
from tests.labels.server import Server, label, material
from tests.labels.stores import store_of

Step = tuple[int, int | None, str]


def steps_of(store: Store, server: Server, name: str, selection: Selection, model: str = "tiny") -> list[Step]:
    steps: list[Step] = []
    by = ChatServer(f"{model}@{server.url}", wait=lambda _: None, concurrency=2)
    running.run(store, task(name), by, selection, lambda _, done, total, detail: steps.append((done, total, detail)))
    return steps


@pytest.mark.parametrize("limit", [None, 1, 3, 100])
@pytest.mark.parametrize("name", ["sentiment", "pushback"])
def test_never_more_is_done_than_there_is(tmp_path: Path, server: Server, name: str, limit: int | None) -> None:
    """With first turns that are not asked about, repeats, failures and a run that goes on where another stopped."""
    store = store_of(tmp_path, ["one", "two", "one"], ["three"], ["four", "bad"], ["five", "bad", "six"])
    server.answers = lambda body: "none" if "bad" in material(body) else label(task(name).values[0])
    for _ in range(2):
        steps = steps_of(store, server, name, Selection(limit=limit))
        assert all(total is not None and done <= total for done, total, _ in steps)
        assert steps[-1][0] == steps[-1][1] or limit == 100, "it ends where it said it would"
        assert [done for done, *_ in steps] == sorted(done for done, *_ in steps)


def test_calls_failures_tokens_and_money_are_shown(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "bad"])
    server.answers = lambda body: "none" if "bad" in material(body) else label("NEUTRAL")
    last = steps_of(store, server, "sentiment", Selection(), model="gpt-4o-mini")[-1][2]
    assert last.startswith("4 calls (") and "1 failed, 400 tokens in, 40 out, $0.00" in last
    assert "$" not in steps_of(store, server, "sentiment", Selection())[-1][2], "a price nobody knows is not zero"


def figures(clock: Callable[[], float]) -> tuple[Meter, Summary]:
    spent = Summary(task="t", labeller="l", model="gpt-4o-mini", prompt_hash="p", calls=30)
    spent.input_tokens = spent.output_tokens = 2_000_000
    return Meter(clock), spent


def test_the_rate_is_by_the_clock_and_the_cost_by_the_price_table() -> None:
    now = 0.0
    meter, spent = figures(lambda: now)
    now = 20.0
    meter.answered()
    assert meter.words(spent, 0) == "30 calls (90 a minute), 2,000,000 tokens in, 2,000,000 out, $1.50"


@pytest.mark.parametrize(
    ("seconds", "waiting", "said"), [(SILENT_S - 0.1, 2, False), (SILENT_S, 2, True), (9, 0, False)]
)
def test_silence_is_said_after_a_while(seconds: float, waiting: int, said: bool) -> None:
    now = 100.0
    meter, spent = figures(lambda: now)
    meter.answered()
    now += seconds
    assert ("no answer for" in meter.words(spent, waiting)) == said


@pytest.mark.slow
def test_a_person_hears_of_a_server_that_hangs_within_seconds(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "two"])
    server.fault = lambda _: "hang"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI")}
    words = [sys.executable, "-m", "agentsignals", "label", "sentiment", "--by", f"openai:m@{server.url}"]
    began = time.monotonic()
    with subprocess.Popen(
        [*words, "--store", str(store.folder)], stderr=subprocess.PIPE, text=True, env=clean
    ) as asking:
        assert asking.stderr is not None
        first = next(line for line in asking.stderr if "no answer" in line)
        took_s = time.monotonic() - began
        asking.send_signal(signal.SIGKILL)
    assert "labelling: 0 of 2; no answer for" in first and "2 waiting" in first and took_s < 3 * Bar.EVERY_S


def test_a_run_that_ends_for_a_hanging_server_keeps_what_it_has(tmp_path: Path, server: Server) -> None:
    store = store_of(tmp_path, ["one", "two", "three", "four"])
    server.fault = lambda body: None if material(body) == "one" else "hang"
    by = ChatServer(f"tiny@{server.url}", wait=lambda _: None, concurrency=1, timeout_s=0.2)
    with pytest.raises(LabelError, match="did not answer"):
        running.run(store, task("sentiment"), by, Selection(), lambda *_: None)
    server.fault = lambda _: None
    steps_of(store, server, "sentiment", Selection())
    assert dict(server.answered) == {"one": 1, "two": 1, "three": 1, "four": 1}
