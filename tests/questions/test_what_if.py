"""What a period would have cost otherwise, against sums by hand. Prices are those of the list, USD a million tokens:
Opus 4.6 5 in, 25 out, 0.5 read, 6.25 written for minutes, 10 for an hour; Haiku 4.5 a fifth of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks.what_if import changes

from agentsignals.cli import main
from agentsignals.errors import UsageError
from agentsignals.ingest import pipeline
from agentsignals.questions import what_if as module
from agentsignals.questions.what_if import Scenario, WhatIf, what_if
from agentsignals.store import Store
from agentsignals.store.query import rows
from tests.build import say, session, user
from tests.claude import Log
from tests.questions.stores import store_of
from tests.verbs import printed, printed_json

OPUS, HAIKU = "claude-opus-4-6", "claude-haiku-4-5"
M = 1_000_000
Calls = list[tuple[float, int, int, int, int]]
"""Calls of a session: seconds before it, uncached input, output, cache reads, cache writes."""


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Store]:
    def write(*sessions: Calls, hour: bool = False, model: str = OPUS, edits: bool = True) -> Store:
        (tmp_path / "in").mkdir(exist_ok=True)
        for number, calls in enumerate(sessions):
            log = Log(f"6f1d2c3b-0000-4000-8000-{number:012d}", version="2.2.0")
            log.user("mend it")
            for at, (seconds, *usage) in enumerate(calls):
                log.wait(seconds - 1)
                log.assistant(
                    {"type": "text", "text": "done"},
                    message_id=f"msg_{at}",
                    model=model,
                    usage=tuple(usage),  # type: ignore[arg-type]
                )
                if hour:
                    written = f'"cache_creation_input_tokens":{usage[3]}'
                    creation = (
                        f'"cache_creation":{{"ephemeral_1h_input_tokens":{usage[3]},"ephemeral_5m_input_tokens":0}}'
                    )
                    log.lines[-1] = (
                        log.lines[-1]
                        .replace(written, f"{written},{creation}")
                        .replace(written.replace(":", ": "), f"{written},{creation}")
                    )
            if edits:
                log.ran("Write", file_path="/work/shop/a.py", content="x = 1\n")
            (tmp_path / "in" / f"{number}.jsonl").write_bytes(log.data())
        pipeline.analyze([str(tmp_path / "in")], tmp_path / "store", jobs=1)
        return Store(tmp_path / "store")

    return write


def scenario(result: WhatIf, id: str) -> Scenario:  # noqa: A002  (the scenario's field)
    return next(each for each in result.scenarios if each.id == id)


PAUSED: Calls = [(1, 10, 100, 0, 40_000), (1800, 10, 100, 0, 41_000), (5, 10, 100, 41_000, 1_000)]
"""A cache of 40,000 tokens is lost in a pause of half an hour."""
EDIT = (3 * 5 + 10 * 25 + 900 * 0.5 + 40 * 6.25) / M
"""The call that `Log.ran` adds to change a file."""


def test_an_hour_is_paid_at_each_write_and_spares_the_writes_after_pauses(made: Callable[..., Store]) -> None:
    got = scenario(what_if(made(PAUSED)), "one-hour-cache")
    other = (30 * 5 + 300 * 25) / M + EDIT - 40 * 6.25 / M
    worst = other + (82_000 * 10 + 41_000 * 0.5) / M + 40 * 10 / M
    best = other + (41_990 * 10 + 81_010 * 0.5) / M + 40 * 10 / M  # 10 of input were lost, too
    low_kept, kept = module.SURVIVED.low, module.SURVIVED.share
    assert got.cost_usd == pytest.approx(worst + kept * (best - worst), abs=1e-12)
    assert (got.low_usd, got.high_usd) == pytest.approx((best, worst + low_kept * (best - worst)), abs=1e-12)
    assert "1 pause of 5 min to 1 h" in got.exact and "of such pauses keep the cache" in got.assumed
    assert scenario(what_if(made(PAUSED[:1])), "one-hour-cache").assumed == "", "without a pause nothing is assumed"


@pytest.mark.parametrize(("seconds", "is_spared"), [(290, False), (310, True), (3590, True), (3700, False)])
def test_only_pauses_between_five_minutes_and_an_hour_count(
    made: Callable[..., Store], seconds: int, is_spared: bool
) -> None:
    got = scenario(what_if(made([PAUSED[0], (seconds, *PAUSED[1][1:]), PAUSED[2]])), "one-hour-cache")
    assert (got.low_usd < got.high_usd) is is_spared


def test_minutes_are_cheaper_at_each_write_and_dearer_after_pauses(made: Callable[..., Store]) -> None:
    store = made([(1, 10, 100, 0, 40_000), (1800, 10, 100, 40_000, 1_000)], hour=True)
    got = scenario(what_if(store), "five-minute-cache")
    other = 20 * 5 / M + 200 * 25 / M + EDIT
    kept = other + (41_000 * 6.25 + 40_000 * 0.5) / M
    lost = other + 81_000 * 6.25 / M
    low, point = module.EXPIRED.low, module.EXPIRED.share
    assert got.cost_usd == pytest.approx(kept + point * (lost - kept), abs=1e-12)
    assert (got.low_usd, got.high_usd) == pytest.approx((kept + low * (lost - kept), lost), abs=1e-12)
    assert "one-hour-cache" in what_if(store).not_asked or scenario(what_if(store), "one-hour-cache").calls == 1


def test_another_model_costs_its_list_price_for_the_same_tokens(made: Callable[..., Store]) -> None:
    result = what_if(made(PAUSED), model=HAIKU, work="all")
    got = scenario(result, "model")
    assert got.cost_usd == pytest.approx(result.cost_usd / 5) and got.break_even == pytest.approx(5)
    assert (got.low_usd, got.high_usd) == pytest.approx([result.cost_usd / 5 * end for end in module.SAME_TOKENS])


def test_a_model_without_a_price_of_cache_writes_pays_them_as_input(made: Callable[..., Store]) -> None:
    got = scenario(what_if(made([(1, 10, 100, 0, 40_000)], edits=False), model="gpt-5", work="all"), "model")
    assert got.cost_usd == pytest.approx((40_010 * 1.25 + 100 * 10) / M, abs=1e-12)


def test_work_chooses_the_calls(made: Callable[..., Store], tmp_path: Path) -> None:
    store = made([(1, 10, 100, 0, 40_000)])
    assert "model" in what_if(store, model=HAIKU).not_asked, "its one session has an edit"
    assert "subagents-model" in what_if(store, subagents=HAIKU).not_asked
    assert scenario(what_if(store, model=HAIKU, work="all"), "model").calls == 2
    same = what_if(store, work="subagents")
    assert "subagents-model" in same.not_asked and "model" not in same.not_asked, "one scenario is shown once"
    assert "model" in what_if(store, work="subagents", model=HAIKU).not_asked
    used = what_if(made([(1, 10, 100, 0, 40_000)], edits=False), work="all").not_asked["model"]
    assert used == "every call already uses the cheapest model; choose another with --to MODEL"


def test_the_cheapest_model_of_the_same_agent_is_the_default(made: Callable[..., Store], tmp_path: Path) -> None:
    made([(1, 10, 100, 0, 40_000)], edits=False)
    log = Log("6f1d2c3b-0000-4000-8000-000000000009", version="2.2.0")
    log.user("look")
    log.say("done", model=HAIKU)
    (tmp_path / "in" / "9.jsonl").write_bytes(log.data())
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    got = scenario(what_if(Store(tmp_path / "store")), "model")
    assert got.name.startswith(HAIKU) and got.calls == 1


@pytest.mark.parametrize(
    ("others", "offered"),
    [
        (["claude-opus-4-7"], None),  # the same prices
        (["claude-3-5-haiku"], "claude-3-5-haiku"),
        (["claude-3-5-haiku", "glm-5"], "glm-5"),  # more for input, less for output, and less in all
    ],
)
def test_the_cheapest_model_is_that_of_the_calls_tokens(tmp_path: Path, others: list[str], offered: str | None) -> None:
    tokens = {"input_tokens": 10, "output_tokens": 4_000}
    made_of = [session(user("look"), say("done", model=m, **tokens), session_id=m) for m in (OPUS, *others)]
    result = what_if(store_of(tmp_path, *made_of))
    assert (scenario(result, "model").name if offered else None) == (
        f"{offered} for sessions without an edit" if offered else None
    )
    assert ("model" in result.not_asked) is (offered is None)


def test_the_same_model_under_another_spelling_changes_nothing(tmp_path: Path) -> None:
    one = session(user("look"), say("done", model=f"{HAIKU}-20251001", input_tokens=1000, output_tokens=100))
    assert "model" in what_if(store_of(tmp_path, one), model=HAIKU).not_asked


def test_several_cheapest_models_stay_one_name_and_are_listed(made: Callable[..., Store], tmp_path: Path) -> None:
    parts = {"claude-code": (OPUS, HAIKU), "codex": ("gpt-5", "gpt-5-mini")}
    made_of = [
        session(
            user("look"), say("done", model=model, input_tokens=1000, output_tokens=100), session_id=model, agent=agent
        )
        for agent, models in parts.items()
        for model in models
    ]
    got = scenario(what_if(store_of(tmp_path, *made_of)), "model")
    assert got.name == "the cheapest model for sessions without an edit" and f"({HAIKU}, gpt-5-mini)" in got.exact


def growing(calls: int, by: int) -> Calls:
    return [(1, 0, 100, n * by, by) for n in range(calls)]


def test_a_context_is_compacted_before_it_passes_the_limit(made: Callable[..., Store]) -> None:
    store = made(growing(10, 10_000), edits=False)  # prompts of 10,000 to 100,000 tokens
    got = scenario(what_if(store, context_tokens=60_000), "context-limit")
    summary = module.SUMMARY_TOKENS[0]
    now = (1_000 * 25 + 100_000 * 6.25 + 450_000 * 0.5) / M
    # The seventh call would send 70,000: it sends the start, a summary and what is new. The rest grow from there.
    wrote = (60_000 * 0.5 + summary * 25) / M
    anew = 10_000 + summary
    less = 60_000 - anew
    then = now + wrote - 4 * less * 0.5 / M + anew * (6.25 - 0.5) / M
    assert got.cost_usd == pytest.approx(then, abs=1e-12)
    assert got.low_usd < got.cost_usd < got.high_usd
    assert "context-limit" in what_if(store, context_tokens=100_000).not_asked


def test_a_thread_that_starts_with_half_of_the_limit_is_left_as_it_is(made: Callable[..., Store]) -> None:
    start = 30_000
    store = made([(1, 0, 100, start + n * 5_000 if n else 0, 5_000 if n else start) for n in range(10)], edits=False)
    fits = 2 * (start + module.SUMMARY_TOKENS[0] + 5_000) > 80_000 - 4_000
    assert fits and "context-limit" in what_if(store, context_tokens=70_000).not_asked
    assert "context-limit" in what_if(store, context_tokens=76_000).not_asked
    assert scenario(what_if(store, context_tokens=77_000), "context-limit").calls == 2
    left = what_if(store, context_tokens=70_000).not_asked["context-limit"]
    assert left == "no compaction brings 2 longer prompts below 70,000 tokens"
    made([(1, 0, 100, 0, 90_000)], growing(10, 10_000), edits=False)  # the first thread begins above the limit
    both = scenario(what_if(Store(store.folder), context_tokens=60_000), "context-limit")
    assert both.exact == "prices; 5 longer prompts, 1 of which no compaction shortens enough"


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Etc/GMT-1")  # an hour before UTC
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("starts", "months", "days"),
    [
        (("2026-02-28T23:30:00Z", "2026-03-02T09:00:00Z"), 1, ("2026-03-01", "2026-03-02")),
        (("2026-03-31T22:30:00Z", "2026-03-31T23:30:00Z"), 2, ("2026-03-31", "2026-04-01")),
        (("2025-11-05T09:00:00Z", "2026-04-02T09:00:00Z"), 6, ("2025-11-05", "2026-04-02")),
    ],
)
@pytest.mark.usefixtures("zone")
def test_a_plan_costs_each_local_month_from_the_first_session_to_the_last(
    tmp_path: Path, starts: tuple[str, str], months: int, days: tuple[str, str]
) -> None:
    made = []
    for at, day in enumerate(starts):
        one = session(user("mend it"), say("done"), session_id=f"s{at}")
        one.started_at = round(datetime.fromisoformat(day).timestamp() * 1e6)
        made.append(one)
    result = what_if(store_of(tmp_path, *made), subscription=20)
    got = scenario(result, "subscription")
    assert got.cost_usd == 20 * months == got.low_usd == got.high_usd and "a part of a month" in got.assumed
    assert got.name == "a plan at $20.00 a month" and (result.first, result.last) == days
    assert "subscription" in what_if(store_of(tmp_path, *made)).not_asked


def test_a_plan_names_the_costliest_sessions_and_needs_a_time(
    made: Callable[..., Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = made(PAUSED, growing(5, 10_000), edits=False)
    got = scenario(what_if(store, subscription=20), "subscription")
    per_session = rows(store, "SELECT session_id, cost_usd FROM sessions ORDER BY cost_usd DESC")[1]
    assert [(m.session_id, m.cost_usd, m.then_usd) for m in got.largest] == [
        (session_id, pytest.approx(usd), None) for session_id, usd in per_session
    ]
    timeless = session(user("look"), say("done", input_tokens=1000, output_tokens=100))
    timeless.started_at = timeless.ended_at = None
    unknown = what_if(store_of(tmp_path / "timeless", timeless), subscription=20)
    assert unknown.not_asked["subscription"] == "no session has a time, so the months are not known"
    out = printed(capsys, "what-if", "--store", tmp_path / "timeless", "--to", HAIKU, "--work", "all")
    assert out.startswith("1 session without a time: ")


def test_a_session_that_hardly_changes_is_not_listed(
    made: Callable[..., Store], capsys: pytest.CaptureFixture[str]
) -> None:
    store = made([(1, 40_000, 100, 0, 10)], edits=False)
    out = printed(capsys, "what-if", "--store", store.folder)
    assert "a one-hour cache" in out and "+0.0%" in out and "agentsignals show" not in out


def test_a_plan_has_an_exact_price_where_the_calls_have_a_least_one(
    made: Callable[..., Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made([(1, 10, 100, 0, 40_000)])  # output is logged in mid-stream
    out = printed(capsys, "what-if", "--subscription", "200", "--store", tmp_path / "store")
    assert ": >= $" in out.partition("\n")[0]
    (row,) = (line for line in out.split("\n") if "a plan at $200.00" in line)
    assert ">=" not in row and "<= +" in row


def test_what_a_change_of_model_really_cost_is_without_subagents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = {"input_tokens": 1000, "output_tokens": 100}
    made = []
    for at, model in enumerate(["claude-opus-4-5"] * 5 + [HAIKU] * 5):
        parts = [user("mend it"), say("done", model=model, **spent)]
        if at < 5:
            parts.append(say("looked", thread="a", model=model, **spent))
        one = session(*parts, session_id=f"s{at}", cwd="/work/shop")
        one.started_at = round(datetime(2026, 3, 1 + at, tzinfo=UTC).timestamp() * 1e6)
        made.append(one)
    changes(store_of(tmp_path, *made))
    assert f"claude-opus-4-5 (5 sessions) to {HAIKU} (5): expected $0.002 a prompt, cost $0.002: 1.00 times" in (
        capsys.readouterr().out
    )


def test_the_page_has_the_measured_figures() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/what-if.md").read_text("utf-8").split())
    low, high = module.SAME_TOKENS
    for seen in (module.SURVIVED, module.EXPIRED):
        assert f"| {seen.k} of {seen.n} pauses ({100 * seen.low:.0f} to " in page
        assert f"| {100 * seen.low:.0f} % and all of the pauses " in page
    assert f"{low:g} and {high:g} times the cost of the same tokens" in page and f"a prompt cost {low:g}, " in page
    assert f" and {high:g} times what was expected" in page
    assert all(f"{tokens:,} tokens" in page for tokens in module.SUMMARY_TOKENS)


def test_a_change_of_nothing_costs_what_the_sessions_cost(made: Callable[..., Store]) -> None:
    store = made(PAUSED, growing(5, 10_000))
    result = what_if(store, model=OPUS, work="all")
    assert "model" in result.not_asked and result.cost_usd == pytest.approx(
        rows(store, "SELECT sum(cost_usd) FROM sessions")[1][0][0]
    )
    for each in result.scenarios:
        moved = sum(of.then_usd - of.cost_usd for of in each.largest)
        assert each.cost_usd - result.cost_usd == pytest.approx(moved), "of few sessions all are among the largest"


def test_a_call_without_a_price_is_in_no_figure(made: Callable[..., Store], tmp_path: Path) -> None:
    store = made(PAUSED, model="a-model-without-price", edits=False)
    result = what_if(store, subscription=20)
    assert (result.unpriced, result.cost_usd) == (3, 0) and not [s for s in result.scenarios if s.id != "subscription"]
    assert main(["what-if", "--store", str(tmp_path / "store")]) == 1
    with pytest.raises(UsageError, match="No list price of the model 'claude-haiku-4-6'"):
        what_if(store, model="claude-haiku-4-6")


def test_where_nothing_costs_anything_there_is_nothing_to_change(made: Callable[..., Store], tmp_path: Path) -> None:
    store = made([(1, 0, 0, 0, 0)], edits=False)
    assert what_if(store).cost_usd == 0 and what_if(store).scenarios == []
    assert main(["what-if", "--store", str(tmp_path / "store")]) == 1


def test_the_verb_shows_the_month_of_the_last_session(
    made: Callable[..., Store], capsys: pytest.CaptureFixture[str]
) -> None:
    named = ("--store", made(PAUSED).folder)
    out = printed(capsys, "what-if", *named)
    assert out.startswith("1 session, 2026-03-02 to 2026-03-02: ") and "1  a one-hour cache" in out
    assert "agentsignals show 6f1d2c3b-0000-4000-8000-000000000000" in out
    document = printed_json(capsys, "what-if", "--to", HAIKU, "--work", "all", *named)
    assert [each["id"] for each in document["scenarios"]] == ["one-hour-cache", "model"]
    for words in (["--context-limit", "39999"], ["--subscription", "-1"], ["--to", "claude-hiku-4-5"]):
        assert main(["what-if", *words, *map(str, named)]) == 2
    assert "Did you mean claude-haiku-4-5?" in capsys.readouterr().err
    assert main(["what-if", "--since", "2027-01", *map(str, named)]) == 1
