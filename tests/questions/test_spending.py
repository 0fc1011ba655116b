"""What was spent: in a time zone, by period, project, branch, model and agent; the block that is open; a budget."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agentsignals.cli import main
from agentsignals.formats import plan_limits, resume_command
from agentsignals.ingest import pipeline
from agentsignals.questions.spending import Spending, spending, sums
from agentsignals.store import Store
from agentsignals.store.query import rows
from tests.claude import START, Log
from tests.questions.stores import with_log
from tests.verbs import printed, printed_json

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 11, 22, 30, tzinfo=UTC)  # 23:30 on a Wednesday in Berlin
CALLS = (
    ("2026-03-02 09:10", "shop", "claude-opus-4-6", "main"),
    ("2026-03-08 23:30", "shop", "claude-opus-4-6", "main"),  # Monday, 00:30 in Berlin
    ("2026-03-11 12:20", "front", "claude-sonnet-4-5-20250929", "fix"),
    ("2026-03-11 20:40", "shop", "claude-opus-4-6", "main"),
    ("2026-03-11 22:10", "shop", "a-model-without-price", "main"),
    ("2026-03-11 23:20", "front", "claude-opus-4-6", "fix"),  # Thursday, 00:20 in Berlin; after now
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("spending")
    (folder / "in").mkdir()
    for n, (at, project, model, branch) in enumerate(CALLS):
        log = Log(f"6f1d2c3b-0000-4000-8000-{n:012d}", cwd=f"/work/{project}", version="2.2.0")
        log.base["gitBranch"] = branch
        log.wait((datetime.fromisoformat(f"{at}+00:00") - START).total_seconds())
        log.user("mend it")
        log.say("done", model=model)
        (folder / "in" / f"{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    return Store(folder / "store")


def spent(store: Store, by: Any = "day", **more: Any) -> Spending:
    return spending(sums(store, "product"), by, zone=BERLIN, now=NOW, **more)


def test_days_weeks_and_months_are_those_of_the_time_zone(store: Store) -> None:
    assert [(row.name, row.sessions) for row in spent(store).rows] == [
        ("2026-03-02", 1), ("2026-03-09", 1), ("2026-03-11", 3), ("2026-03-12", 1)]  # fmt: skip
    assert [row.name for row in spending(sums(store, "product"), zone=UTC, now=NOW).rows] == [
        "2026-03-02",
        "2026-03-08",
        "2026-03-11",
    ]
    assert [(row.name, row.sessions) for row in spent(store, "week").rows] == [("2026-03-02", 1), ("2026-03-09", 5)]
    assert [(row.name, row.sessions) for row in spent(store, "month").rows] == [("2026-03", 6)]


def test_today_this_week_and_this_month_end_today(store: Store) -> None:
    made = spent(store)
    assert (made.today.sessions, made.week.sessions, made.month.sessions) == (3, 4, 5)
    assert made.last is not None and f"{made.last:%Y-%m-%d %H:%M}" == "2026-03-12 00:15"


@pytest.mark.parametrize(
    ("by", "names"),
    [("project", {"/work/shop": 4, "/work/front": 2}), ("branch", {"main": 4, "fix": 2}),
     ("agent", {"claude-code": 6}),
     ("model", {"claude-opus-4-6": 4, "claude-sonnet-4-5-20250929": 1, "a-model-without-price": 1})],
)  # fmt: skip
def test_other_rows_come_by_cost(store: Store, by: str, names: dict[str, int]) -> None:
    made = spent(store, by)
    assert {row.name: row.sessions for row in made.rows} == names
    costs = [row.cost_usd or 0.0 for row in made.rows]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("by", ["day", "week", "month", "block", "project", "branch", "model", "agent"])
def test_the_rows_of_every_table_add_up_to_the_sessions(store: Store, by: str) -> None:
    made = spent(store, by)
    ((total, tokens),) = rows(store, "SELECT sum(cost_usd), sum(output_tokens) FROM steps")[1]
    assert made.whole.cost_usd == pytest.approx(total) == pytest.approx(sum(row.cost_usd or 0 for row in made.rows))
    assert made.whole.output_tokens == tokens == sum(row.output_tokens or 0 for row in made.rows)


def test_a_call_without_a_price_makes_the_sum_a_lower_bound_and_is_no_zero(store: Store) -> None:
    by_name = {row.name: row for row in spent(store, "model").rows}
    assert by_name["a-model-without-price"].cost_usd is None and by_name["a-model-without-price"].is_bound
    assert by_name["claude-opus-4-6"].cost_usd and spent(store).today.is_bound
    nothing = spending(sums(store, "product"), zone=BERLIN, now=datetime(2026, 5, 1, tzinfo=UTC)).today
    assert (nothing.calls, nothing.cost_usd, nothing.output_tokens) == (0, 0.0, None)


def test_the_open_block_began_at_the_hour_of_its_first_call(store: Store) -> None:
    block = spent(store).block
    assert block is not None and (f"{block.start:%H:%M}", f"{block.end:%H:%M}") == ("21:00", "02:00")
    assert block.spent.sessions == 3
    assert spending(sums(store, "product"), zone=BERLIN, now=datetime(2026, 3, 12, 2, tzinfo=UTC)).block is None
    assert [row.name for row in spent(store, "block").rows][-1] == "2026-03-11 21:00"


def test_filters_limit_the_table(store: Store) -> None:
    made = spent(store, since=datetime(2026, 3, 11, 12, 15), until=datetime(2026, 3, 11, 22))
    assert made.whole.sessions == 2 and made.today.sessions == 3, "today is today"
    assert spent(store, model="OPUS").whole.sessions == 4
    assert [row.name for row in spent(store, most=1).rows] == ["2026-03-12"]
    assert spent(store, "project", most=1).rows[0].name == "/work/shop"


def test_the_verb_prints_a_table_a_line_and_a_document(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("--store", str(store.folder))
    out = printed(capsys, "today", "--timezone", "Europe/Berlin", *named)
    today = f"{datetime.now(BERLIN):%Y-%m-%d}"
    assert out.startswith(f"No model call today ({today}); the last was on 2026-03-12") and "2026-03-09" in out
    out = printed(capsys, "today", "--by", "project", "--since", "2026-03-01", "--project", "front", *named)
    assert "/work/front" in out and "/work/shop" not in out and "all since 2026-03-01" in out
    assert re.search(r"\nall  +\d", printed(capsys, "today", "--by", "model", *named)), (
        "no call in 30 days: all there are"
    )
    assert main(["today", "--by", "model", "--since", "7d", *named]) == 1
    assert re.search(r"No model call since \d{4}-\d\d-\d\d;", capsys.readouterr().err)
    assert main(["today", "--limit", "1", *named]) == 0
    assert re.search(r"\nthe last 1 of (\d+) days with calls; --limit \1 lists all\n", capsys.readouterr().out)
    assert printed(capsys, "today", "--statusline", *named) == "$0.00 today · $0.00 this week\n"
    (row,) = printed_json(capsys, "today", "--by", "month", *named)["spending"]["rows"]
    assert row["name"] == "2026-03" and row["cost_usd"] > 0
    for words in (["--timezone", "Europe/Berln"], ["--limit", "0"], ["--since", "soon"]):
        assert main(["today", *words, *named]) == 2
    assert "Did you mean Europe/Berlin?" in capsys.readouterr().err


def test_a_budget_has_an_exit_code(store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    named = ("--store", str(store.folder), "--json")
    assert main(["today", "--budget", "0", *named]) == 0, "nothing was spent today"
    assert json.loads(capsys.readouterr().out)["budget"]["is_over"] is False
    log = Log("6f1d2c3b-0000-4000-8000-000000000099", version="2.2.0")
    log.now = datetime.now(UTC)
    log.user("mend it")
    log.say("done", model="claude-opus-4-6")
    (tmp_path / "now.jsonl").write_bytes(log.data())
    pipeline.analyze([str(tmp_path / "now.jsonl")], tmp_path / "store", jobs=1)
    for budget, code in (("0.000001", 1), ("1000", 0)):
        for by in ("day", "week", "month", "block"):
            assert main(["today", "--by", by, "--budget", budget, "--store", str(tmp_path / "store")]) == code, by
    assert "Over budget today: >= $0.0" in capsys.readouterr().err


# -- the agent's own command that goes on with a session


def test_a_session_names_the_command_that_goes_on_with_it(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    (session,) = printed_json(capsys, "sessions", "--limit", "1", "--store", store.folder)
    assert session["resume"] == f"cd {session['cwd']} && claude --resume {session['session_id']}"
    assert f"resume   {session['resume']}" in printed(capsys, "show", session["session_id"], "--store", store.folder)


def test_a_command_is_safe_in_a_shell_and_none_is_made_up() -> None:
    hostile = "x'; rm -rf ~; '"
    words = shlex.split(resume_command("claude-code", hostile, hostile).replace(" && ", " "))
    assert words == ["cd", hostile, "claude", "--resume", hostile]
    assert resume_command("codex", "abc") == "codex resume abc"
    assert resume_command("goose", "20251108_1") == "goose session --resume --session-id 20251108_1"
    assert resume_command("swe-bench", "abc") == resume_command("no-such-format", "abc") == ""


# -- limits of a plan, where a log states them


def logged(**windows: Any) -> bytes:
    record = {"timestamp": "2026-03-11T10:00:00Z", "type": "event_msg",
              "payload": {"type": "token_count", "rate_limits": {"limit_id": "codex", **windows}}}  # fmt: skip
    return json.dumps(record).encode() + b"\n"


def test_the_last_record_that_states_a_limit_counts() -> None:
    five = {"used_percent": 45.0, "window_minutes": 300, "resets_at": 1_800_000_000}
    week = {"used_percent": 12.5, "window_minutes": 10080, "resets_at": 1_800_100_000}
    end = b'cut": 1}\n' + logged(primary={**five, "used_percent": 1.0}) + logged(primary=five, secondary=week)
    read = plan_limits("codex", end + logged(primary=None, secondary=None) + b'{"payload": {"rate_limits"')
    assert [(limit.used, limit.window_s, limit.resets_at) for limit in read] == [
        (0.45, 18_000, 1_800_000_000), (0.125, 604_800, 1_800_100_000)]  # fmt: skip
    assert plan_limits("codex", logged(primary=None)) == plan_limits("claude-code", end) == []
    assert plan_limits("codex", logged(primary={"used_percent": "many"})) == []


def test_open_limits_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = int(datetime.now(UTC).timestamp())
    lines = [
        {"timestamp": "2026-03-11T10:00:00Z", "type": "session_meta",
         "payload": {"id": "019f1de1-ca1d-7261-9e32-4d51380144e6", "cwd": "/w", "cli_version": "0.125.0"}},
        {"timestamp": "2026-03-11T10:00:01Z", "type": "response_item",
         "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "mend it"}]}},
        {"timestamp": "2026-03-11T10:00:02Z", "type": "response_item",
         "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}},
        {"timestamp": "2026-03-11T10:00:03Z", "type": "event_msg", "payload": {"type": "token_count",
         "info": {"total_token_usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
                  "last_token_usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}},
         "rate_limits": {"primary": {"used_percent": 45.0, "window_minutes": 300, "resets_at": now + 3600},
                         "secondary": {"used_percent": 12.0, "window_minutes": 10080, "resets_at": now - 60}}}},
    ]  # fmt: skip
    log = tmp_path / "in" / "rollout-2026-03-11T10-00-00-019f1de1-ca1d-7261-9e32-4d51380144e6.jsonl"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    pipeline.analyze([str(log.parent)], tmp_path / "store", jobs=1)
    out = printed(capsys, "today", "--statusline", "--store", tmp_path / "store")
    assert "five-hour limit 45% used, resets " in out and "weekly" not in out, "its window has ended"


def test_sums_are_kept_until_the_store_changes(tmp_path: Path) -> None:
    computed = spent(with_log(tmp_path, 1))
    (kept,) = (tmp_path / "store").glob("spending.*.product.json")
    assert spent(Store(tmp_path / "store")) == computed
    kept.write_bytes(kept.read_bytes().replace(b"claude-opus-4-6", b"as-it-was-kept"))
    assert [row.name for row in spent(Store(tmp_path / "store"), "model").rows] == ["as-it-was-kept"]
    assert spent(with_log(tmp_path, 2), "model").whole.sessions == 2
    assert len(list((tmp_path / "store").glob("spending.*"))) == 1, "the former sums are removed"
