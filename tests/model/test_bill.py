"""What is made of tokens or money is written out line by line, and the lines add up to it to the last digit."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from agentsignals.errors import CatalogError
from agentsignals.ingest import pipeline
from agentsignals.ingest.measure import explain
from agentsignals.model.prices import total_line
from agentsignals.signals import catalog
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.store.tables import SESSIONS
from agentsignals.ui.page import Query
from agentsignals.ui.rendering import answer_of, html
from agentsignals.ui.snapshot import Snapshot
from tests.claude import SESSION, Log
from tests.formats import pi_entries
from tests.verbs import printed, printed_json

WRITTEN = {"ephemeral_5m_input_tokens": 120, "ephemeral_1h_input_tokens": 80}
USED = {"input_tokens": 7, "cache_read_input_tokens": 33_333, "cache_creation_input_tokens": 200,
        "cache_creation": WRITTEN}  # fmt: skip
TOKENS = {
    "tokens.input_tokens_total": ("input",),
    "tokens.output_tokens_total": ("output",),
    "tokens.cache_read_tokens": ("cache read",),
    "tokens.cache_write_tokens": ("cache write 5m", "cache write 1h"),
}
"""Signals that count tokens, by the kinds that they count."""


def answers(log: Log, name: str, output: int, model: str = "claude-opus-4-8", **more: Any) -> None:
    content = [{"type": "text", "text": "done"}]
    usage = {**USED, "output_tokens": output, **more}
    message = {"model": model, "id": f"msg_{log.name}{name}", "content": content, "stop_reason": "end_turn"}
    log.record("assistant", message={**message, "usage": usage})


@pytest.fixture(name="store", scope="module")
def of_all_kinds(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A session with searches, fast calls, caches of both lifetimes, a subagent of another model; one that recorded
    what was paid."""
    root = tmp_path_factory.mktemp("bill")
    main_log = Log()
    main_log.user("review it")
    for n in range(60):  # more calls than an explanation lists
        answers(main_log, str(n), 101 + n)
    answers(main_log, "fast", 11, speed="fast", server_tool_use={"web_search_requests": 3})
    side = Log(name="sub")
    side.base |= {"isSidechain": True, "agentId": "abc"}
    side.user("Review it")
    answers(side, "", 20_001, "claude-haiku-4-5")
    folder = root / "in" / SESSION / "subagents"
    folder.mkdir(parents=True)
    (root / "in" / f"{SESSION}.jsonl").write_bytes(main_log.data())
    (folder / "agent-abc.jsonl").write_bytes(side.data())
    (root / "in" / "pi.jsonl").write_bytes(recorded())
    pipeline.analyze([str(root / "in")], root / "store", jobs=1)
    return Store(root / "store")


def recorded() -> bytes:
    use = {"input": 5, "output": 7, "cacheRead": 11, "cacheWrite": 0}
    paid = (0.1, 0.2, 0.30000000000000004)
    said = [
        (n + 1.0, "message", pi_entries.says("ok", usage={**use, "cost": {"total": usd}})) for n, usd in enumerate(paid)
    ]
    entries = [pi_entries.header(), *pi_entries.chain((0.0, "message", pi_entries.user("go")), *said)]
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def pi_session(store: Store) -> str:
    return str(rows(store, "SELECT session_id FROM sessions WHERE agent = 'pi'")[1][0][0])


@pytest.mark.parametrize(("path", "kinds"), TOKENS.items())
def test_lines_of_tokens_add_up_to_the_value(store: Store, path: str, kinds: tuple[str, ...]) -> None:
    explained = explain(store, SESSION, path)
    counted = [line for line in explained.bill if line.counts]
    assert {line.kind for line in counted} == set(kinds) and {line.whose for line in counted} == {"main thread"}
    assert sum(line.amount for line in counted) == explained.value == total_line(explained.bill).amount > 0
    assert all(line.usd == line.amount * line.usd_each_million / 1_000_000 for line in counted)
    assert any(line.whose == "subagents" and not line.counts for line in explained.bill)


@pytest.mark.parametrize("path", ["tokens.cost_usd", "corpus.session_cost_usd", "sessions.cost_usd"])
def test_lines_of_money_add_up_to_the_last_digit(store: Store, path: str) -> None:
    explained = explain(store, SESSION, path)
    assert sum(line.usd for line in explained.bill if line.counts) == Decimal(repr(explained.value))
    assert "rounding" not in {line.kind for line in explained.bill}
    kinds = {(line.whose, line.kind) for line in explained.bill}
    each = ("input", "cache read", "cache write 5m", "cache write 1h", "output")
    assert kinds == {("main thread", k) for k in (*each, "web searches")} | {("subagents", k) for k in each}
    fast = [line.usd_each_million for line in explained.bill if line.kind == "output" and line.calls == 1]
    assert sorted(fast) == [Decimal(5), Decimal(50)]  # a fast call costs twice


def totals_of_sessions() -> list[str]:
    return [
        c
        for c in SESSIONS
        if c.endswith(("_tokens", "cost_usd")) and c not in ("visible_output_tokens", "replaced_cost_usd")
    ]


@pytest.mark.parametrize("column", totals_of_sessions())
def test_every_total_of_a_session_is_explained_by_its_column(store: Store, column: str) -> None:
    for session in (SESSION, pi_session(store)):
        (held,) = rows(store, f"SELECT {column} FROM sessions WHERE session_id = '{session}'")[1][0]
        explained = explain(store, session, f"sessions.{column}")
        assert explained.value == held
        whole = total_line(explained.bill)
        if held is not None:
            shown = str(whole.amount) if column.endswith("_tokens") else f"{whole.usd:f}"
            assert Decimal(shown) == Decimal(repr(held))


def test_what_was_recorded_is_a_line_and_what_rounding_leaves_is_one(store: Store) -> None:
    explained = explain(store, pi_session(store), "tokens.cost_usd")
    assert explained.value == 0.6
    (paid,) = (line for line in explained.bill if line.kind == "recorded")
    (rest,) = (line for line in explained.bill if line.kind == "rounding")
    assert (paid.usd, rest.usd) == (Decimal("0.60000000000000004"), Decimal("-4E-17"))
    assert [line.usd for line in explained.bill if line.kind == "output"] == [None]


@pytest.mark.slow
def test_every_signal_of_tokens_or_money_has_a_bill(store: Store) -> None:
    for signal in catalog.catalogue().values():
        counts = signal.unit in ("tokens", "USD", "tokens per step") and signal.path.startswith(("tokens.", "corpus."))
        if counts and signal.scope == "session" and explain(store, SESSION, signal.path).absent is None:
            assert explain(store, SESSION, signal.path).bill, signal.path


def test_a_value_over_all_sessions_is_explained_by_theirs(store: Store) -> None:
    explained = explain(store, SESSION, "corpus.cost_per_session")
    costs = [float(i.excerpt.rpartition(" = ")[2]) for i in explained.evidence if "session_cost_usd" in i.excerpt]
    assert explained.absent is None and len(costs) == 2
    assert explained.value == pytest.approx(sum(costs) / 2)


def test_the_command_and_the_page_write_it_out(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "explain", SESSION, "tokens.cost_usd", "--store", store.folder)
    value = str(printed_json(capsys, "explain", SESSION, "tokens.cost_usd", "--store", store.folder)["value"])
    assert text.startswith("tokens.cost_usd = $1.46\n"), "all digits are in the bill and in JSON"
    lines = [line for line in text.splitlines() if line.startswith("in the value")]
    assert sum(Decimal(line.split()[-1]) for line in lines) == Decimal(value)
    shown = html(answer_of(Snapshot(store), f"/session/{SESSION}/explain/sessions.cost_usd", Query()), "/session")
    assert f'<td class="num">{value}</td>' in shown and "cache write 1h" in shown
    bill = printed_json(capsys, "explain", SESSION, "tokens.cost_usd", "--store", store.folder)["bill"]
    assert sum(Decimal(line["usd"]) for line in bill if line["counts"]) == Decimal(value)


def test_a_column_that_is_no_total_is_refused_with_those_that_are(store: Store) -> None:
    with pytest.raises(CatalogError) as refused:
        explain(store, SESSION, "sessions.n_turns")
    assert "main_cost_usd" in str(refused.value.hint)
