"""Forks in OpenCode copy messages under new ids: what was paid once counts once, in the session that was made first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.query import rows
from tests.formats import opencode_database as oc

HOUR = 3_600_000
_ids = count(1)
USED = {"input": 1000, "output": 200, "reasoning": 0, "cache": {"read": 0, "write": 0}}
NONE = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
Turn = tuple[int, str]


def export(turns: list[Turn], made: int, *, tokens: dict[str, Any] = USED, parent: str | None = None) -> dict[str, Any]:
    """A session as its export: each prompt is answered once."""
    session = f"ses_{next(_ids):020d}"
    messages = []
    for at, prompt in turns:
        asked = {"role": "user", "agent": "build", "time": {"created": at}}
        time = {"created": at + 500, "completed": at + 4000}
        answer = {"role": "assistant", "modelID": "m-1", "cost": 0.02, "tokens": tokens, "time": time, "finish": "stop"}
        for info, text in ((asked, prompt), (answer, f"Done with {prompt}")):
            own = f"msg_{next(_ids):020d}"
            part = {
                "type": "text",
                "text": text,
                "id": f"prt_{next(_ids):020d}",
                "messageID": own,
                "sessionID": session,
            }
            messages.append({"info": {**info, "id": own, "sessionID": session}, "parts": [part]})
    info = {"id": session, "projectID": "p", "directory": "/w", "title": "t", "version": "1.18.3"}
    return {
        "info": {**info, "time": {"created": made, "updated": made}, **({"parentID": parent} if parent else {})},
        "messages": messages,
    }


def turns(*minutes: int) -> list[Turn]:
    return [(oc.START + minute * 60_000, f"Look at part {minute}") for minute in minutes]


ROOT = export(turns(0, 1, 2), oc.START)
FORK = export([*turns(0, 1, 2), *turns(61)], oc.START + HOUR)
FORK_OF_FORK = export([*turns(0, 1, 2), *turns(61), *turns(122)], oc.START + 2 * HOUR)
SHORT = export([*turns(0), *turns(183)], oc.START + 3 * HOUR)
ONLY_COPIES = export(turns(0, 1), oc.START + 4 * HOUR)


def folder(at: Path, sessions: list[dict[str, Any]]) -> Path:
    at.mkdir(exist_ok=True)
    for session in sessions:
        (at / f"{session['info']['id']}.json").write_text(json.dumps(session))
    return at


def database(at: Path, sessions: list[dict[str, Any]]) -> Path:
    with oc.made(at) as db:
        for session in sessions:
            info = session["info"]
            db.execute(
                "INSERT INTO session VALUES (?, 'p', ?, '/w', 't', '1.18.3', 0, ?, ?, NULL)",
                (info["id"], info.get("parentID"), info["time"]["created"], info["time"]["created"]),
            )
            for message in session["messages"]:
                own, data = (
                    message["info"]["id"],
                    {k: v for k, v in message["info"].items() if "ID" not in k or k == "modelID"},
                )
                created = data["time"]["created"]
                db.execute(
                    "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (own, info["id"], created, created, json.dumps(data))
                )
                for part in message["parts"]:
                    text = json.dumps({"type": "text", "text": part["text"]})
                    row = (part["id"], own, info["id"], created, created, text)
                    db.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    db.close()
    return at


def figures(store: Store) -> tuple[int, int]:
    """Answers that were paid, prompts."""
    sums = "SELECT round(sum(cost_usd) / 0.02), sum(n_prompts) FROM sessions"
    ((paid, prompts),) = rows(store, sums)[1]
    return int(paid), int(prompts)


FORKS = [
    ([ROOT, FORK], 4),
    ([FORK, ROOT], 4),
    ([ROOT, FORK, FORK_OF_FORK, SHORT], 6),
    ([FORK, FORK_OF_FORK], 5),  # the first was deleted: a fork keeps what it copied
    ([FORK_OF_FORK, SHORT], 6),
    ([ROOT, ONLY_COPIES], 3),
    ([ROOT, export(turns(0, 1, 3), oc.START + 1)], 4),
    ([ROOT, export([(at + 1, text) for at, text in turns(0, 1, 2)], oc.START)], 6),  # equal work a little later
    ([ROOT, export(turns(0, 1, 2), oc.START, parent=ROOT["info"]["id"])], 6),  # a subagent copies nothing
]
PLACES = [*(("exports", *fork) for fork in FORKS), *((name, *FORKS[2]) for name in ("opencode.db", "kilo.db"))]


@pytest.mark.parametrize(("place", "sessions", "paid"), PLACES)
def test_what_a_fork_copied_counts_once(place: str, sessions: list[dict[str, Any]], paid: int, tmp_path: Path) -> None:
    made = folder(tmp_path / "exports", sessions) if place == "exports" else database(tmp_path / place, sessions)
    _, store = pipeline.ingest_into([str(made)], tmp_path / "store", jobs=1)
    subagents = sum("parentID" in session["info"] for session in sessions)
    assert figures(store) == (paid, paid - 3 * subagents)


def test_a_fork_that_comes_later_finds_what_it_copied(tmp_path: Path) -> None:
    at = folder(tmp_path / "exports", [ROOT])
    pipeline.ingest_into([str(at)], tmp_path / "store", jobs=1)
    folder(at, [FORK])
    _, store = pipeline.ingest_into([str(at)], tmp_path / "store", jobs=1)
    assert figures(store) == (4, 4)
    ((parent,),) = rows(store, f"SELECT parent_session_id FROM sessions WHERE session_id = '{FORK['info']['id']}'")[1]
    assert parent == ROOT["info"]["id"]


@pytest.fixture
def aborted() -> Iterator[list[dict[str, Any]]]:
    """A session whose last answer was stopped, and its fork."""
    stopped = export(turns(2), oc.START, tokens=NONE)["messages"]
    whole, fork = export(turns(0), oc.START), export([*turns(0)], oc.START + HOUR)
    again = export(turns(2), oc.START, tokens=NONE)["messages"]
    yield [
        {**whole, "messages": [*whole["messages"], *stopped]},
        {**fork, "messages": [*fork["messages"], *again, *export(turns(61), oc.START)["messages"]]},
    ]


def test_copies_without_tokens_count_once_too(aborted: list[dict[str, Any]], tmp_path: Path) -> None:
    _, store = pipeline.ingest_into([str(folder(tmp_path / "exports", aborted))], tmp_path / "store", jobs=1)
    assert figures(store)[1] == 3
