"""The filter of every verb that lists or sums: time, project, model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentsignals.cli import declarations, main
from agentsignals.errors import NothingFound, UsageError
from agentsignals.questions.findings import findings
from agentsignals.store import Store, sidecars
from agentsignals.store.selection import period, select
from tests.build import call, session, user
from tests.questions.stores import store_of

DAY_US = 86_400_000_000
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = datetime(2026, 11, 29, 10, 30, tzinfo=UTC)


def at(day: int) -> int:
    return int(START.timestamp() * 1e6) + day * DAY_US


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A date is of the machine's own time zone."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Twenty sessions, one a day, by turns of two projects and two models; one has no time."""
    parts = [call("Bash", command="make x", status="error", result="no")] * 5
    made = [
        replace(
            session(
                user(f"mend {n}"), *parts, session_id=f"s{n:02}", model=("claude-opus-4-5", "gpt-5.1-codex")[n % 4 > 1],
                repo=("acme/shop", "acme/shop-front")[n % 2], cwd=f"/home/jo/{('shop', 'shop-front')[n % 2]}",
            ),
            started_at=at(n), ended_at=at(n),
        )
        for n in range(20)
    ]  # fmt: skip
    undated = session(user("when?"), session_id="undated", repo="acme/shop", model="claude-opus-4-5")
    made.append(replace(undated, started_at=None, ended_at=None))
    return store_of(tmp_path_factory.mktemp("selection"), *made)


def chosen(store: Store, **asked: str) -> list[str]:
    fresh = Store(store.folder)
    select(fresh, **asked)
    return sorted(fresh.only or {})


def test_each_filter_selects(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(store, since="2026-03-18") == ["s17", "s18", "s19"]
    assert chosen(store, until="2026-03-02") == ["s00", "s01"], "the day is included"
    assert chosen(store, since="2026-03-03", until="2026-03-04") == ["s02", "s03"]
    assert chosen(store, since="2026-03-20 12:00", project="shop-front") == ["s19"]
    assert len(chosen(store, project="shop")) == 11 and len(chosen(store, project="ACME/Shop")) == 11
    assert len(chosen(store, project="/home/jo/shop-front/")) == 10
    monkeypatch.setenv("HOME", "/home/jo")
    assert len(chosen(store, project="~/shop-front")) == 10
    assert len(chosen(store, model="opus")) == 11 and len(chosen(store, model="GPT-5.1")) == 10
    assert chosen(store, model="opus", project="shop-front", since="2026-03-17") == ["s17"]


def test_sessions_without_a_time_are_left_out_of_times_and_said(store: Store) -> None:
    said: list[str] = []
    select(Store(store.folder), since="2026-03-01", tell=said.append)
    assert said == ["1 sessions have no recorded time and are left out."]
    assert "undated" in chosen(store, project="shop")


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("2026-11-01", "2026-10-31 23:00", "2026-11-01 23:00"),
        ("2026-12", "2026-11-30 23:00", "2026-12-31 23:00"),
        ("2026", "2025-12-31 23:00", "2026-12-31 23:00"),
        ("2026-07-01 14:30", "2026-07-01 12:30", "2026-07-01 12:31"),
        ("2026-07-01T14:30", "2026-07-01 12:30", "2026-07-01 12:31"),
        ("7d", "2026-11-22 10:30", "2026-11-22 10:30"),
        ("24h", "2026-11-28 10:30", "2026-11-28 10:30"),
        ("2w", "2026-11-15 10:30", "2026-11-15 10:30"),
        ("today", "2026-11-28 23:00", "2026-11-29 23:00"),
        ("Yesterday", "2026-11-27 23:00", "2026-11-28 23:00"),
    ],
)
def test_a_time_is_a_day_a_month_or_a_while_ago(text: str, begin: str, end: str) -> None:
    assert period(text, "--since", NOW) == (datetime.fromisoformat(begin), datetime.fromisoformat(end))


@pytest.mark.parametrize("text", ["", "last week", "2026-13", "2026-02-30", "99999d" * 9, "0000", "7", "-1d", "9999"])
def test_what_is_no_time_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        period(text, "--until", NOW)
    assert "--until" in refused.value.message and "7d" in refused.value.hint


def test_where_no_session_fits_the_reason_is_said(store: Store) -> None:
    for asked, hint in (
        ({"project": "shpo"}, "Did you mean shop?"), ({"model": "claude-opsu-4-5"}, "Did you mean claude-opus-4-5?"),
        ({"since": "2026-11-01"}, "2026-03-01 to 2026-03-20"), ({"model": "zzz"}, "Known, for example: claude-opus"),
    ):  # fmt: skip
        with pytest.raises(NothingFound) as none:
            chosen(store, **asked)
        assert hint in none.value.hint
    assert store.only is None


def test_findings_and_tables_see_the_selected_sessions_alone(store: Store) -> None:
    whole = findings(Store(store.folder))
    some = Store(store.folder)
    select(some, since="2026-03-06")
    made = findings(some)
    assert (whole.sessions, made.sessions) == (21, 15) and made.totals.sessions == 15
    for table in ("sessions", "turns", "tool_calls", "signals", "session_signals"):
        seen = {name for (name,) in some.sql(f"SELECT DISTINCT session_id FROM {table}").fetchall() if name}
        assert seen == {f"s{n:02}" for n in range(5, 20)}, table
    assert sidecars.read_cache(Store(store.folder), "product") is not None, "what was kept of all stays"
    assert findings(Store(store.folder)) == whole


def test_every_verb_that_lists_or_sums_takes_the_filters(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take = {name for name, about in declarations().items()
            if isinstance(about, dict) and "arguments" in about and "chosen" in about["arguments"]}  # fmt: skip
    assert {"analyze", "findings", "report", "search", "sessions", "compare", "drivers"} <= take
    filters = ("--since", "2026-03-06", "--store", str(store.folder))
    assert main(["sessions", "--json", *filters]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 15
    assert main(["search", "mend", "--json", *filters]) == 0
    assert json.loads(capsys.readouterr().out)["n_sessions"] == 15
    assert main(["findings", "--json", *filters]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 15
    assert main(["report", "-o", str(tmp_path / "r.json"), *filters]) == 0
    assert json.loads((tmp_path / "r.json").read_text())["sessions"] == 15
    capsys.readouterr()
    assert main(["findings", *filters]) == 0
    assert "--since 2026-03-06" in capsys.readouterr().out, "commands name the same sessions"
