"""Output logged in mid-stream is a lower bound, and every face that shows it or its cost says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.analysis.figures import AtLeast, formatted
from agentsignals.cli import main
from agentsignals.export import atif
from agentsignals.ingest import pipeline
from agentsignals.ingest.explaining import explain
from agentsignals.report import phrases
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.ui.page import Query
from agentsignals.ui.pages import overview
from agentsignals.ui.pages import session as session_page
from agentsignals.ui.pages import sessions as sessions_page
from agentsignals.ui.reading import Reading
from agentsignals.ui.rendering import html
from agentsignals.views.ledger import FINAL_SHARE, is_lower_bound, visible_output_tokens
from tests.analysis.stores import outcome
from tests.build import call, say, session, think, user
from tests.claude import Log

LONG = "a long visible answer, word for word. " * 40
BOUND, KNOWN = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"


def log(session_id: str, reason: str | None, day: int) -> bytes:
    one = Log(session=session_id, name=session_id[:8])
    one.wait(day * 86_400)
    one.user("please explain it")
    usage = {"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 100}
    message = {"model": "claude-opus-4-8", "id": f"msg_{session_id}", "content": [{"type": "text", "text": LONG}]}
    one.record("assistant", message={**message, "usage": usage, "stop_reason": reason})
    return one.data()


@pytest.fixture(name="store", scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A session whose output was logged in mid-stream, and two whose output is known, at two times."""
    root = tmp_path_factory.mktemp("bounds")
    (root / "in").mkdir()
    (root / "in" / "a.jsonl").write_bytes(log(BOUND, None, 1))
    (root / "in" / "b.jsonl").write_bytes(log(KNOWN, "end_turn", 1))
    (root / "in" / "c.jsonl").write_bytes(log(KNOWN[::-1], "end_turn", 5))
    pipeline.analyze([str(root / "in")], root / "store", jobs=1)
    return Store(root / "store")


def part(n_final: int, n: int) -> Any:
    steps = [say("x" * 100, output_tokens=5, stop_reason="end_turn" if k < n_final else None) for k in range(n)]
    return session(user("go"), *steps)


@pytest.mark.parametrize(("n_final", "is_bound"), [(0, True), (4, True), (5, False), (10, False)])
def test_it_is_a_bound_where_fewer_than_half_of_the_calls_have_a_stop_reason(n_final: int, is_bound: bool) -> None:
    assert FINAL_SHARE == 0.5
    assert is_lower_bound(part(n_final, 10)) is is_bound
    assert (visible_output_tokens(part(n_final, 10)) is not None) is is_bound


def test_of_agents_that_log_usage_at_the_end_it_is_none() -> None:
    made = session(user("go"), say("hi", output_tokens=5), format="codex", agent="codex")
    assert visible_output_tokens(made) is None


def test_the_estimate_is_of_all_that_was_written_and_never_below_what_was_logged() -> None:
    made = session(user("go" * 99), say("x" * 40, output_tokens=1), think("y" * 40), call("Bash", command="z" * 26))
    chars = 80 + len(made.tool_calls[0].arguments)
    assert visible_output_tokens(made) == -(-chars // 4)
    assert visible_output_tokens(session(user("go"), say("x", output_tokens=70))) == 70


def test_a_figure_that_is_a_bound_is_written_as_one() -> None:
    assert formatted(192, "tokens", at_least=True) == formatted(AtLeast(192), "tokens") == ">= 192"
    assert formatted(None, "usd", at_least=True) == "–"


def test_analyze_and_sessions_mark_it(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(store.folder.parent / "in")
    assert main(["analyze", folder, "--store", str(store.folder), "--quiet"]) == 0
    told = capsys.readouterr().out
    assert ">= 12 out" in told and ">= $" in told and "1 sessions log output in mid-stream" in told
    assert main(["analyze", folder, "--store", str(store.folder), "--quiet", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["lower_bounds"], summary["visible_output_tokens"]) == (1, len(LONG) // 4)
    assert main(["sessions", "--store", str(store.folder)]) == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if ">= 4" in line]
    assert len(marked) == 1 and marked[0].startswith(BOUND)


def test_the_report_marks_headlines_tables_and_draws_no_bound_over_time(store: Store) -> None:
    made = [outcome(store, name) for name in ("cost", "agents", "models", "worth_opening")]
    by_id = {f.id: f for one in made for f in one.findings}
    for name in ("cost.total", "cost.median", "cost.output_tokens", "agents.output_input"):
        assert by_id[name].at_least and "at least: 1" in by_id[name].note, name
        assert phrases.value_of(by_id[name]).startswith(">= ")
    assert not by_id["cost.input_tokens"].at_least and not by_id["cost.billed"].at_least
    tables = {t.id: t for one in made for t in one.tables}
    for name, column in (("cost.by_agent", "output"), ("cost.by_agent", "cost"), ("models.used", "output"),
                         ("agents.metrics", "output"), ("worth.costly", "cost")):  # fmt: skip
        at = [c.key for c in tables[name].columns].index(column)
        assert any(isinstance(row[at], AtLeast) for row in tables[name].rows), (name, column)
    drawn = {c.id: c for one in made for c in one.charts}
    for name in ("cost.over_time", "cost.output.over_time"):
        assert "1 whose output is a lower bound" in drawn[name].note and drawn[name].n == 2


def test_pages_mark_it(store: Store) -> None:
    reading = Reading(store)
    for page in (overview.page(reading, Query()), sessions_page.page(reading, Query())):
        assert "&gt;= " in html(page, "/")
    assert "&gt;= 4 out" in html(session_page.page(reading, Query(), BOUND), "/session")
    assert "&gt;= " not in html(session_page.page(reading, Query(), KNOWN), "/session")


def test_explain_says_at_least_with_the_error_of_the_estimate(store: Store) -> None:
    for signal in ("tokens.output_tokens_total", "tokens.cost_usd"):
        explained = explain(store, BOUND, signal)
        assert explained.detail["at_least"] is True and "at least" in explained.rule
    assert "3.2 times" in explain(store, BOUND, "tokens.output_tokens_total").rule
    assert "at_least" not in explain(store, KNOWN, "tokens.cost_usd").detail


def test_the_index_made_again_knows_it(store: Store) -> None:
    (store.folder / "manifest.json").unlink()
    again = Store(store.folder).manifest.sessions
    assert (again[BOUND].visible_output_tokens, again[KNOWN].visible_output_tokens) == (len(LONG) // 4, None)
    assert rows(store, "SELECT count(visible_output_tokens) FROM sessions")[1] == [(1,)]


def test_an_exported_trajectory_says_it(store: Store) -> None:
    told = [json.loads(atif.text(store.session(s)))["final_metrics"].get("extra") for s in (BOUND, KNOWN)]
    assert told == [{"output_and_cost_at_least": True}, None]
