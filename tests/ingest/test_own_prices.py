"""Own prices and recorded dollars, through the command line: what a person sees of whose dollars count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.model import prices
from tests.claude import Log


@pytest.fixture(autouse=True)
def no_prices_left() -> Iterator[None]:
    yield
    prices.use_own_prices(b"")


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main([*map(str, arguments), "--quiet", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_changed_price_file_prices_the_sessions_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log()
    log.user("Go")
    log.say("Done.", model="house-model", usage=(1000, 100, 0, 0))
    logs, store, own = tmp_path / "logs", tmp_path / "store", tmp_path / "own.toml"
    logs.mkdir()
    (logs / "a.jsonl").write_bytes(log.data())

    def cost(*more: object) -> tuple[float | None, str | None]:
        ask(capsys, "analyze", logs, "--store", store, "--no-report", *more)
        (row,) = ask(capsys, "query", "SELECT cost_usd, cost_source FROM sessions", "--store", store)
        return row["cost_usd"], row["cost_source"]

    assert cost() == (None, None)
    own.write_text('[models."house-model"]\ninput = 2\noutput = 10\n')
    usd, source = cost("--prices", own)
    assert usd == pytest.approx(0.003) and source is not None and source.startswith("own-")
    own.write_text('[models."house-model"]\ninput = 4\noutput = 20\n')
    assert cost("--prices", own)[0] == pytest.approx(0.006)


def test_replaced_dollars_are_shown_beside_those_that_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log()
    log.user("Go")
    log.say("Done.", model="kimi-k2.5", usage=(1_000_000, 0, 0, 0), costUSD=5.0)
    (tmp_path / "a.jsonl").write_bytes(log.data())
    ask(capsys, "analyze", tmp_path / "a.jsonl", "--store", tmp_path / "store", "--no-report")
    assert main(["show", log.session[:8], "--store", str(tmp_path / "store")]) == 0
    assert "cost     >= $0.60, the agent recorded $5.00" in capsys.readouterr().out
    columns = "cost_usd, recorded_cost_usd, replaced_cost_usd"
    (row,) = ask(capsys, "query", f"SELECT {columns} FROM sessions", "--store", tmp_path / "store")
    assert row == {"cost_usd": 0.6, "recorded_cost_usd": 0.0, "replaced_cost_usd": 5.0}
