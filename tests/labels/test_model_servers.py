"""A model behind several real servers: asked by free slots; one that fails or hangs is set aside and named, its
questions go to the others, and what is stored is what one server alone would have given.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.errors import LabelError, UsageError
from agentsignals.labels import run
from agentsignals.labels.labellers import openai as model_servers
from agentsignals.labels.labellers.openai import ChatServer, ModelServers
from agentsignals.labels.run import Summary
from agentsignals.labels.tasks import task
from agentsignals.labels.units import Selection
from agentsignals.network import Busy
from agentsignals.store import Store, sidecars
from tests.labels.server import Fault, Server, label, material, serving
from tests.labels.stores import judge, store_of

ABSENT = "http://127.0.0.1:9/v1"
"""Where nobody listens."""


@pytest.fixture
def three() -> Iterator[list[Server]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(serving()) for _ in range(3)]
        for server in servers:
            server.answers = lambda body: label("POSITIVE" if "3" in material(body) else "NEUTRAL")
        yield servers


def asked(store: Store, *urls: str, timeout_s: float = 0.5) -> Summary:
    by = ChatServer(f"m@{','.join(urls)}", concurrency=2, timeout_s=timeout_s)
    return run.run(store, task("sentiment"), by, Selection(), lambda *_: None)


def stored(store: Store) -> list[tuple[str, int | None, str, str]]:
    """The labels, without when they were made."""
    rows = sidecars.labels_of(store.folder, "sentiment", "openai:m")
    return [(r.session_id, r.label.turn, r.label.value, r.label.labeller) for r in rows]


def test_questions_are_spread_over_the_addresses(three: list[Server], tmp_path: Path) -> None:
    for server in three:
        server.delay_s = 0.02
    store = store_of(tmp_path, [f"message {n}" for n in range(60)])
    summary = asked(store, *(server.url for server in three))
    assert summary.labelled == summary.calls == 60 and not summary.failed
    counts = [summary.run_figures["servers"][server.url] for server in three]
    assert [figures["answers"] for figures in counts] == [len(server.requests) for server in three]
    assert all(figures["answers"] >= 12 for figures in counts)


def test_one_hangs_one_fails_one_is_well_and_the_labels_are_those_of_one(three: list[Server], tmp_path: Path) -> None:
    hangs, fails, well = three
    hangs.fault, fails.fault = lambda _: "hang", lambda _: 500
    messages = [f"message {n}" for n in range(40)]
    store, alone = store_of(tmp_path / "a", messages), store_of(tmp_path / "b", messages)
    began = time.monotonic()
    summary = asked(store, hangs.url, fails.url, well.url)
    assert time.monotonic() - began < 8
    assert summary.labelled == 40 and not summary.failed
    asked(alone, well.url)
    assert stored(store) == stored(alone) and {row[2] for row in stored(store)} == {"POSITIVE", "NEUTRAL"}
    figures = summary.run_figures["servers"]
    assert len(hangs.requests) == figures[hangs.url]["calls"] == 2, "as many as it has slots; then it is set aside"
    assert figures[hangs.url]["set_aside"] == 1 and "timed out" in figures[hangs.url]["last_problem"]
    assert "HTTP 500" in figures[fails.url]["last_problem"] and figures[fails.url]["answers"] == 0
    assert figures[well.url] == {"calls": 40, "answers": 40}


def test_one_that_refuses_the_caller_is_asked_no_more_and_all_that_do_end_the_run(
    three: list[Server], tmp_path: Path
) -> None:
    refuses, well, other = three
    refuses.fault = lambda _: 404
    summary = asked(store_of(tmp_path / "a", [f"m {n}" for n in range(20)]), refuses.url, well.url)
    assert summary.labelled == 20 and len(refuses.requests) <= 2
    other.fault = refuses.fault
    with pytest.raises(LabelError, match="refused: HTTP 404"):
        asked(store_of(tmp_path / "b", ["m"]), refuses.url, other.url)


def test_one_that_comes_back_is_asked_again(three: list[Server], tmp_path: Path) -> None:
    first, second, _ = three
    first.faults = [503, 503]
    for server in (first, second):
        server.delay_s = 0.03
    summary = asked(store_of(tmp_path, [f"message {n}" for n in range(120)]), first.url, second.url)
    figures = summary.run_figures["servers"][first.url]
    assert summary.labelled == 120 and figures["set_aside"] >= 1 and figures["answers"] > 10


def test_where_none_is_well_all_are_asked_on() -> None:
    """As one alone is: waiting is for who asks. One that will not have the caller stays away."""
    now = [0.0]
    servers = ModelServers("http://a/v1,http://b/v1,http://c/v1", slots=1, clock=lambda: now[0])
    a, b, c = servers.all
    assert servers.set_aside(a, Busy("down")) and servers.set_aside(b, LabelError("no")) and a.failures == 1
    assert not servers.set_aside(c, Busy("down")), "no other is well"
    now[0] = model_servers.FIRST_WAIT_S
    assert servers.set_aside(c, Busy("down", timed_out=True)) and a.failures == 1
    assert servers.set_aside(a, Busy("down")) is False
    now[0] = model_servers.LONGEST_WAIT_S
    assert servers.set_aside(a, Busy("down")) is False, "c comes a moment later"
    now[0] += model_servers.FIRST_WAIT_S
    assert servers.set_aside(a, Busy("down")) and a.failures == 2 and b.away_until > 1e9


def test_the_verb_counts_by_server_and_names_what_fails(
    three: list[Server], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_of(tmp_path, ["fix it", "thanks"])
    how = ["label", "sentiment", "--by", f"openai:m@{ABSENT},{three[0].url}", "--store", str(tmp_path / "store")]
    assert main([*how, "--quiet"]) == 0
    said: Any = capsys.readouterr()
    assert f"{ABSENT} is set aside, its questions go to others" in said.err
    assert f"server      {three[0].url}: 2 answers to 2 calls\n" in said.out
    assert main([*how, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["told"]["url"] == f"{ABSENT}, {three[0].url}"
    with pytest.raises(UsageError, match="no address of a chat server"):
        ChatServer(f"m@{ABSENT},nonsense")


# -- a server that misbehaves ------------------------------------------------------------------------------------------


GOOD = label("POSITIVE")
SAID = {
    "plain": GOOD,
    "fence": f"```json\n{GOOD}\n```",
    "thought": f"<think>{label('NEGATIVE')} or not?</think>\n{GOOD}",
    "open thought": f"is it {label('NEGATIVE')}? no.</think>{GOOD}",
    "sentence": f"Here you are: {GOOD} Hope this helps.",
    "tabs": GOOD.replace("because", "be\tcause"),
    "two": f"{GOOD} or {label('NEGATIVE')}",
    "prose": "rather positive",
    "other class": label("HAPPY"),
    "nothing": "",
}
FAULTS: dict[str, Fault] = {"busy": 429, "down": 503, "broken": "cut", "garbled": "{", "too long": 400, "stuck": "hang"}
ONCE = ("busy", "down", "broken", "garbled", "slow")
REASONS = {
    "two": "several_answers",
    "prose": "invalid_json",
    "nothing": "invalid_json",
    "other class": "invalid_answer",
    "refused": "refusal",
    "too long": "refused",
    "stuck": "no_answer",
}
"""What fails, with its reason; everything else is labelled."""


def misbehaves(server: Server) -> None:
    seen: Counter[str] = Counter()

    def fault(body: dict[str, Any]) -> Fault:
        kind = material(body).rpartition(" ")[0]
        seen[material(body)] += 1
        if kind in ONCE and seen[material(body)] > 1:
            return None
        return "hang" if kind == "slow" else FAULTS.get(kind)

    server.fault = fault
    server.answers = lambda body: SAID.get(material(body).rpartition(" ")[0], GOOD)
    server.refuses = lambda body: "I won't." if material(body).startswith("refused") else None


@pytest.mark.slow
def test_everything_is_labelled_or_failed_and_nothing_is_asked_twice(tmp_path: Path, server: Server) -> None:
    kinds = [*SAID, *FAULTS, "slow", "refused"]
    # Sound ones between them: a server that does nothing but hang is another case (test_run).
    store = store_of(
        tmp_path, *[[f"{kind} {n}", f"plain {9 * n + at}"] for at, kind in enumerate(kinds) for n in (1, 2)]
    )
    misbehaves(server)
    messages = {f"{kind} {n}" for kind in kinds for n in (1, 2)} | {
        f"plain {9 * n + at}" for at in range(len(kinds)) for n in (1, 2)
    }
    first = judge(store, server, concurrency=4, timeout_s=0.5)
    assert first.failed == dict(Counter(reason for reason in REASONS.values() for _ in range(2)))
    labelled = {text for text in messages if text.rpartition(" ")[0] not in REASONS}
    assert all(server.answered[text] == 1 for text in labelled), "what was answered is not asked again"
    assert all(failure["detail"] for failure in first.failures)
    wrapped = {text for text in labelled if text.rpartition(" ")[0] in ("fence", "thought", "open thought", "sentence")}
    assert (first.unwrapped, first.loosely_parsed) == (len(wrapped), 2)
    stored = sidecars.labels_of(store.folder, "sentiment", "openai:tiny")
    assert {row.label.value for row in stored} == {"POSITIVE"}, "what was thought aloud is no answer"
    assert first.labelled + sum(first.failed.values()) == 2 * 2 * len(kinds)

    before = dict(server.answered)
    second = judge(store, server, concurrency=4, timeout_s=0.5)
    assert second.failed == first.failed, "the next run asks what failed, and only that"
    assert {text for text in messages if server.answered[text] > before.get(text, 0)} <= messages - labelled
    server.fault, server.answers, server.refuses = lambda _: None, lambda _: GOOD, lambda _: None
    third = judge(store, server, concurrency=4, timeout_s=0.5)
    assert third.failed == {} and third.labelled == 2 * 2 * len(kinds)
    assert all(server.answered[text] == 1 for text in labelled)
