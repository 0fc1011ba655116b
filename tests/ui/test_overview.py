"""The first page: figures under a filter, each with a link to the sessions that it counts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals import find, study
from agentsignals.model import Session
from agentsignals.questions.question import formatted
from agentsignals.signals.catalog import by_path
from agentsignals.store import Store
from agentsignals.ui.drawing import Part, Point, axis, strip
from agentsignals.ui.figures import Overall, edges, histogram, overall, spreads
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Query
from agentsignals.ui.server import Server
from agentsignals.ui.snapshot import MOST_RECENT, Snapshot
from tests.build import call, say, session, user
from tests.questions.stores import store_of
from tests.quick import each_row
from tests.signals.attempts import graded, trial
from tests.ui.browser import browsing, needs_browser, overflow_px, serious
from tests.ui.served import EVIL, Elements, ask, page, serving, text_of

DAY = 86_400_000_000
DOLLAR = {"input_tokens": 200_000, "output_tokens": 0}
"""Of Claude Opus 4.5, at 5 dollars a million."""


def _days(made: Session, days: float | None) -> Session:
    for name in ("started_at", "ended_at"):
        setattr(made, name, None if days is None else getattr(made, name) + int(days * DAY))
    return made


def _failing(n: int, of: int, tool: str = "Bash") -> list[object]:
    return [call(tool, command=f"x {k}", status="error" if k < n else "ok", result="no") for k in range(of)]


def _sessions() -> list[Session]:
    edit = call("Edit", path="src/a.py", old_string="x", new_string="y")
    made = []
    for n in range(8):
        parts = [user(f"task {n}"), say("ok", **DOLLAR), *_failing(2, 4), *([edit] * (3 if n < 2 else 0))]
        made.append(_days(session(*parts, session_id=f"c{n}", repo="me/tools"), n))
    for n in range(7):
        parts = [user(f"job {n}"), say("ok", **{**DOLLAR, "input_tokens": 400_000}), *_failing(1, 1, "shell")]
        made.append(_days(session(*parts, session_id=f"x{n}", cwd="/home/me"), 3 + n))
        made[-1].agent = "codex"
    made.append(_days(session(user("hm"), say("ok"), *_failing(9, 9, "Rare"), session_id="lost"), None))
    runs = trial(
        {"trial_id": "run-1", "verification": graded(fixed=2), "reward": 1.0},
        {"trial_id": "run-1", "verification": graded(unfixed=2), "reward": 0.0},
    )
    return [*made, *(run.session for run in runs)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(store_of(tmp_path_factory.mktemp("overview") / "store", *_sessions())) as running:
        yield running


def _overall(server: Server, query: str = "", context: str = "product") -> tuple[Overall, Filter]:
    snapshot = server.snapshots.current()
    of = filtered(Query(query), snapshot).of_context(context)
    return overall(snapshot, of), of


def _listed(server: Server, link: str) -> int:
    """How many sessions the list shows at an address."""
    match = re.search(r"of ([\d,]+) sessions", page(server, link))
    return int(match[1].replace(",", "")) if match else 0


def test_the_first_page_answers_which_tool_where_the_cost_and_which_file(server: Server) -> None:
    said = text_of(server, "/")
    assert "The tool with most failed calls: Bash of claude-code , 16 of 32 (50.0%)" in said
    assert (
        "The tool that fails most often: shell of codex , 100.0% (7 of 7), among tools used in at least six sessions"
        in said
    )
    assert "$22.00 over 15 of 16 sessions with a cost" in said and "1 without a cost" in said
    assert "src/a.py : 6 edits in 2 sessions" in said
    assert "1 without a recorded time excluded" in said


@pytest.mark.slow
def test_outcomes_of_people_are_by_rules_and_say_how_often_these_are_right(server: Server) -> None:
    assert "by rules, right in 78% of 18 planted cases" in text_of(server, "/?context=product")
    assert "planted cases" not in text_of(server, "/?context=eval")


def test_every_number_leads_to_the_sessions_it_counts(server: Server) -> None:
    made, of = _overall(server)
    for _, _, groups, _ in made.groups:
        assert sum(group.cost.sessions for group in groups) == made.sessions == 16
        for group in groups:
            assert _listed(server, group.link) == group.cost.sessions, group.link
    for stretch in made.periods:
        assert _listed(server, stretch["link"]) == stretch["sessions"], stretch["link"]
    for pair in made.pairs:
        assert _listed(server, pair.to_all) == pair.sessions
        assert _listed(server, pair.to_failed) == (pair.sessions if pair.failed.k else 0)
    for _, link, cost in made.days:
        assert _listed(server, link) == cost.sessions
    assert [_listed(server, row["link"]) for row in made.files] == [2]
    assert _listed(server, of.narrowed("/sessions", "time", None)) == made.undated == 1
    lost = next(g for g in made.groups[2][2] if g.name is None)
    assert lost.link == "/sessions?context=product&missing=repo"


@pytest.mark.parametrize(
    ("query", "sessions", "usd", "failed"),
    [
        ("agent=codex", 7, 14.0, (7, 7)),
        ("repo=me%2Ftools", 8, 8.0, (16, 38)),
        ("from=2026-01-02&to=2026-01-03", 2, 2.0, (4, 11)),
        ("agent=nobody", 0, None, (0, 0)),
        ("missing=cost", 1, None, (9, 9)),
    ],
)
def test_figures_are_of_the_sessions_chosen(
    server: Server, query: str, sessions: int, usd: float | None, failed: tuple[int, int]
) -> None:
    made, _ = _overall(server, query)
    assert (made.sessions, made.cost.usd, (made.failed.k, made.failed.n)) == (sessions, usd, failed)
    assert sum(s["sessions"] for s in made.periods) == sessions - made.undated


def test_people_and_eval_runs_are_counted_apart(server: Server) -> None:
    product, _ = _overall(server)
    runs, of = _overall(server, context="eval")
    assert (product.sessions, runs.sessions) == (16, 2)
    assert all(group.solved is None for _, _, groups, _ in product.groups for group in groups)
    solved = runs.groups[0][2][0].solved
    assert solved is not None and (solved.k, solved.n) == (1, 2)
    assert of.link("/sessions") == "/sessions?context=eval"
    assert "No matching eval runs" in " ".join(page(server, "/?context=eval&agent=codex").split())


def test_a_stretch_of_a_filter_stays_within_it(server: Server) -> None:
    made, _ = _overall(server, "from=2026-01-02")
    assert made.periods[0]["link"].endswith("?from=2026-01-02&context=product&to=2026-01-02")


def test_the_dearest_come_first_and_the_groups_by_what_they_cost(server: Server) -> None:
    made, _ = _overall(server)
    assert [row["session_id"] for row in made.most_expensive[:2]] == ["x0", "x1"] and made.most_expensive[0][
        "prompt"
    ] == "job 0"
    assert [(g.name, g.of_all) for g in made.groups[0][2]] == [("codex", 14 / 22), ("claude-code", 8 / 22)]
    assert made.days[0][0] == "2026-01-04" and made.days[0][2].usd == 3.0


def test_the_links_of_the_charts_are_in_a_table_too(server: Server) -> None:
    text = page(server, "/?agent=codex")
    charts, table = text.split("Show as a table")
    links = set(re.findall(r'<a href="([^"]*from=[^"]*)" tabindex', charts))
    assert links and all(f'href="{link}"' in table for link in links)
    assert "agent=codex" in unescape(links.pop())


@pytest.mark.parametrize(
    ("highest", "whole", "values"),
    [
        (0.0, False, [0, 1]),
        (1e-320, False, [0, 1]),
        (0.07, False, [0, 0.02, 0.04, 0.06, 0.08]),
        (0.3, False, [0, 0.1, 0.2, 0.3]),
        (1.0, True, [0, 1]),
        (4.9, False, [0, 1, 2, 3, 4, 5]),
        (12.0, True, [0, 5, 10, 15]),
        (1234.0, False, [0, 500, 1000, 1500]),
    ],
)
def test_an_axis_has_round_values_up_to_the_highest(highest: float, whole: bool, values: list[float]) -> None:
    assert axis(highest, whole=whole) == values


def test_an_interval_of_few_does_not_stretch_the_axis_and_one_of_many_does() -> None:
    def top(n: float) -> str:
        points = [Point(name="", parts=(Part(0.1),), label="", link="", interval=(0.0, 0.9), n=n)]
        drawn = strip(points, title="", unit="", written=str, dots=True)
        assert drawn is not None
        return drawn.up[-1].label

    assert (top(29), top(30)) == ("0.1", "1.0")
    assert strip([Point(name="", parts=(), label="", link="")], title="", unit="", written=str) is None


# -- signals -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", ["user.tool_error_rate", "behavior.edit_calls", "behavior.tool_call_count"])
@pytest.mark.parametrize("query", ["", "agent=claude-code", "from=2026-01-03&context=product"])
def test_each_bar_of_a_histogram_leads_to_the_sessions_in_it(server: Server, path: str, query: str) -> None:
    snapshot = server.snapshots.current()
    filter_ = filtered(Query(query), snapshot)
    signal = by_path(path)
    spread = spreads(snapshot, "product", filter_)[path]
    drawn = histogram(snapshot, "product", filter_.of_context("product"), signal, spread)
    assert drawn is not None and f"n = {spread.figures['known']}" in drawn.note
    listed = [_listed(server, bar.link) for bar in drawn.bars]
    assert listed == [int(re.search(r": (\d+) session", bar.label)[1]) for bar in drawn.bars]  # type: ignore[index]
    assert sum(listed) == spread.figures["known"]


def test_a_long_tail_is_one_bar_and_the_last_edge_says_so(tmp_path: Path) -> None:
    many = [session(user("x"), *_failing(0, 500 if n == 39 else 1 + n % 5), session_id=f"s{n}") for n in range(40)]
    snapshot = Snapshot(store_of(tmp_path / "s", *many))
    of = filtered(Query(""), snapshot).of_context("product")
    path = "behavior.tool_call_count"
    drawn = histogram(snapshot, "", of, by_path(path), spreads(snapshot, "")[path])
    assert drawn is not None and "the last bar holds all higher values" in drawn.note
    assert drawn.across[-1].label == "… 500" and drawn.bars[-1].label.endswith(": 1 session")


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.booleans())
def test_edges_are_few_rising_and_hold_all_values(a: float, b: float, whole: bool) -> None:
    low, high = sorted((float(int(a)), float(int(b))) if whole else (a, b))
    made = edges(low, high, whole=whole)
    assert 2 <= len(made) <= 24 and made[0] <= low <= high <= made[-1]
    assert all(x < y for x, y in itertools.pairwise(made))


def test_the_inventory_and_a_signal_are_of_the_sessions_chosen(server: Server) -> None:
    def row(query: str) -> str:
        text = page(server, f"/signals?name=user.tool_error_rate{query}")
        match = re.search(r"/signal/user\.tool_error_rate.*?</tr>", text, re.DOTALL)
        assert match
        return " ".join(Elements(match[0]).said.split())

    assert "session computed 16 none 0.393 0.75 1" in row("&context=product")
    assert "session computed 7 none 1 1 1" in row("&agent=codex&context=product")
    chosen = page(server, "/signal/user.tool_error_rate?agent=codex&context=product")
    assert "7 values in 7 sessions; 0 absent." in chosen and "<summary>Sessions<" in chosen
    outcome = page(server, "/signal/user.session_outcome?context=product&agent=codex")
    links = re.findall(r'href="(/sessions[^"]+absent[^"]+)"', outcome)
    assert sum(_listed(server, unescape(link)) for link in links) == 7


def test_what_an_address_chooses_is_kept_for_the_last_that_were_asked_for(tmp_path: Path) -> None:
    snapshot = Snapshot(store_of(tmp_path / "s", session(user("hello"))))
    made: list[int] = []
    for n in [*range(MOST_RECENT + 5), MOST_RECENT, 0]:
        snapshot.recent(n, lambda n=n: made.append(n))  # type: ignore[misc]
    assert made == [*range(MOST_RECENT + 5), 0], "the oldest was made again, a late one was not"


def test_what_takes_long_goes_on_in_the_background_and_what_failed_is_tried_again(tmp_path: Path) -> None:
    snapshot = Snapshot(store_of(tmp_path / "s", session(user("hello"))))

    def slowly() -> str:
        sleep(0.3)
        return "made"

    def badly() -> str:
        raise ValueError("no")

    assert snapshot.soon("slow", slowly, 0.01) is None
    until = monotonic() + 30
    while snapshot.soon("slow", slowly, 0.0) is None and monotonic() < until:
        sleep(0.02)
    assert snapshot.soon("slow", slowly, 0.0) == "made"
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            snapshot.soon("bad", badly, 5.0)
    assert snapshot.soon("bad", lambda: "now", 5.0) == "now"


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_browser
def test_a_walk_with_a_filter(server: Server) -> None:
    """Chosen once, it stays from page to page and back; the address holds what was chosen and nothing else."""
    with browsing() as tab:
        tab.goto(server.url)
        tab.get_by_text("Filter", exact=True).click()
        tab.locator("select[name=agent]").select_option("codex")
        tab.get_by_role("button", name="Show").click()
        tab.wait_for_url("**/?agent=codex")
        tab.get_by_role("link", name="Sessions", exact=True).click()
        tab.get_by_text("of 7 sessions").first.wait_for()  # a busy machine sends the list after the form
        assert tab.url.endswith("/sessions?agent=codex")
        tab.get_by_text("More: outcome").click()
        tab.get_by_label("Signal").fill("user.user_turn_count")
        tab.get_by_label("Value").fill("1")
        tab.get_by_role("button", name="Show").click()
        tab.get_by_label("Remove where user.user_turn_count>=1").wait_for()
        tab.get_by_text("of 7 sessions").first.wait_for()
        tab.get_by_role("link", name="Signals", exact=True).click()
        tab.get_by_role("link", name="behavior.tool_call_count").click()
        assert "agent=codex" in tab.url and "where=user.user_turn_count" in tab.url
        assert not serious(tab)
        tab.locator(".strip svg a").first.click()
        tab.wait_for_url("**/sessions?**")
        tab.get_by_text("of 7 sessions").first.wait_for()
        assert "behavior.tool_call_count" in tab.url
        tab.get_by_label("Remove agent codex").click()
        tab.wait_for_url(lambda url: "agent=codex" not in url)
        tab.go_back()
        tab.go_back()
        tab.go_back()
        assert tab.url.endswith("/signals?agent=codex&where=user.user_turn_count%3E%3D1")
        tab.get_by_role("link", name="Overview", exact=True).click()
        tab.locator(".strip svg a").last.click()
        tab.wait_for_url("**/sessions?**from=**")
        tab.get_by_role("link", name="Clear").click()
        tab.wait_for_url("**/sessions?")
        tab.get_by_text("of 18 sessions").first.wait_for()


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(("dark", "phone"), [(True, True), pytest.param(False, False, marks=pytest.mark.nightly)])
def test_filtered_pages_keep_nobody_out(server: Server, dark: bool, phone: bool) -> None:
    words = "agent=codex&where=user.tool_error_rate%3E%3D0.1&from=2026-01-02"
    with browsing(dark, phone) as tab:
        for path in ("", "sessions", "signals", "signal/user.tool_error_rate", "signal/user.session_outcome"):
            tab.goto(f"{server.url}{path}?{words}")
            if tab.get_by_text("Filter", exact=True).count() and phone:
                assert not tab.locator("select[name=agent]").is_visible(), "on a phone what was asked for comes first"
            tab.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
            assert not serious(tab) and overflow_px(tab) <= 0, path


# The filter that all pages share: which sessions each word of an address chooses, and what is said of the rest.


def _varied() -> list[Session]:
    priced = {"input_tokens": 1_000_000, "output_tokens": 200_000}
    edits = call("Edit", path="src/parse.py", old_string="x", new_string="y")
    failing = [call("Bash", command="pytest", status="error", result="1 failed")] * 3
    made = [
        session(user("Fix the parser"), say("ok", **priced), edits, *failing, session_id="a", repo="me/tools"),
        session(user("100% sure"), say("ok"), call("Bash", command="ls"), session_id="b", repo="me/tools", branch="x"),
        session(user("why"), say("so", model="gpt-5"), call("Read", path="parse.py"), session_id="c", cwd="/home/me"),
        session(user("when"), call("Edit", path="parse.py", old_string="x", new_string="y"), session_id="d"),
    ]
    made[2].agent = "pi"
    for one, days in zip(made, (0, 1, 2, None), strict=True):
        _days(one, days)
    runs = trial(
        {"trial_id": "run-1", "verification": graded(fixed=2), "reward": 1.0},
        {"trial_id": "run-1", "verification": graded(unfixed=2), "reward": 0.0},
    )
    return [*made, *(run.session for run in runs)]


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_of(tmp_path_factory.mktemp("filter") / "store", *_varied())


@pytest.fixture(scope="module")
def served(varied: Store) -> Iterator[Server]:
    with serving(varied) as running:
        yield running


def _asked(varied: Store, **words: str) -> tuple[Filter, str]:
    """The filter, and the sessions of people that fit it."""
    snapshot = Snapshot(varied)
    made = filtered(Query(urlencode(words)), snapshot)
    rows = snapshot.rows(made.sessions, made.where.values)
    return made, "".join(sorted(row["session_id"] for row in rows if len(row["session_id"]) == 1))


@each_row(
    ("words", "fit"),
    [
        ({}, "abcd"),
        ({"agent": "pi"}, "c"),
        ({"model": "gpt-5"}, "c"),
        ({"model": "claude-opus-4-5"}, "ab"),
        ({"repo": "me/tools"}, "ab"),
        ({"repo": "/home/me"}, "c"),
        ({"branch": "x"}, "b"),
        ({"context": "product"}, "abcd"),
        ({"context": "eval"}, ""),
        ({"from": "2026-01-02"}, "bc"),
        ({"to": "2026-01-02"}, "ab"),
        ({"from": "2026-01-02", "to": "2026-01-02"}, "b"),
        ({"from": "2026-01-03", "to": "2026-01-01"}, ""),
        ({"from": "0001-01-01", "to": "9999-12-31"}, "abc"),
        ({"cost_min": "1"}, "a"),
        ({"cost_max": "1"}, "d"),
        ({"tool": "Bash"}, "ab"),
        ({"failed": "Bash"}, "a"),
        ({"file": "parse.py"}, "ad"),
        ({"file": "./parse.py"}, "d"),
        ({"file": "src/parse.py"}, "a"),
        ({"file": "arse.py"}, ""),
        ({"file": ".py"}, "ad"),
        ({"text": "PARSER"}, "a"),
        ({"text": "0% s"}, "b"),
        ({"missing": "repo"}, "d"),
        ({"missing": "model"}, "d"),
        ({"missing": "time"}, "d"),
        ({"missing": "model;time"}, "d"),
        ({"missing": "outcome"}, "abcd"),
        ({"where": "user.place=me/tools"}, "ab"),
        ({"where": "user.place!=me/tools"}, "c"),
        ({"where": "user.tool_error_rate>=0.5"}, "a"),
        ({"where": "user.tool_error_rate>=0.75"}, "a"),
        ({"where": "user.tool_error_rate>0.75"}, ""),
        ({"where": "user.tool_error_rate<0.75"}, "bcd"),
        ({"where": "user.tool_error_rate!=0"}, "a"),
        ({"where": "user.tool_error_rate<=0.75;user.tool_error_rate > 0"}, "a"),
        ({"where": "user.session_outcome absent"}, "abcd"),
        ({"where": "user.session_outcome absent none_found"}, "abd"),
        ({"where": "user.session_outcome absent parse_error"}, ""),
        ({"where": "user.session_outcome=accepted"}, ""),
        ({"signal": "user.tool_error_rate", "op": ">=", "value": "0.5"}, "a"),
        ({"signal": "user.session_outcome", "op": "absent"}, "abcd"),
        ({"where": "user.tool_error_rate>=0;", "signal": "user.tool_error_rate", "op": "<", "value": "0.1"}, "bcd"),
        ({"agent": "pi", "tool": "Read", "from": "2026-01-03"}, "c"),
        ({"behind": "study:tools:tools.mcp_sessions"}, "abcd"),
        ({"behind": "study:tools:tools.mcp_sessions", "agent": "pi"}, "c"),
        ({"behind": "with:study:tools:tools.mcp_sessions"}, ""),
    ],
)
def test_each_word_chooses_its_sessions(varied: Store, words: dict[str, str], fit: str) -> None:
    made, sessions = _asked(varied, **words)
    assert sessions == fit
    assert bool(made.chips) == bool(words)


def test_attempts_are_chosen_by_what_came_of_them(varied: Store) -> None:
    snapshot = Snapshot(varied)
    made = filtered(Query("outcome=solved"), snapshot)
    assert len(snapshot.rows(made.sessions, made.where.values)) == 1 and not made.notes


@pytest.mark.parametrize(
    ("words", "fit", "says"),
    [
        ({"agent": "nobody"}, "", "No session has agent “nobody”"),
        ({"tool": EVIL}, "", "No session has a call of “"),
        ({"failed": "Nothing"}, "", "No session calls the tool “Nothing”"),
        ({"context": "'; DROP TABLE sessions"}, "", "No session has the context"),
        ({"from": "yesterday"}, "abcd", "from must be a date (YYYY-MM-DD), not “yesterday”"),
        ({"to": "2026-02-30"}, "abcd", "to must be a date"),
        ({"from": "20260101"}, "abcd", "from must be a date"),
        ({"cost_min": "nan"}, "abcd", "cost_min must be a number of dollars"),
        ({"cost_max": "1e999"}, "abcd", "cost_max must be a number of dollars"),
        ({"from": "2026-01-02"}, "bc", "3 sessions without a recorded time are hidden"),
        ({"from": "2026-01-01", "agent": "pi"}, "c", ""),
        ({"cost_max": "1000"}, "ad", "without a cost are hidden"),
        ({"where": "user.tool_eror_rate>=1"}, "abcd", "user.tool_error_rate"),
        ({"where": "user.tool_error_rate>=many"}, "abcd", "takes a number, not “many”"),
        ({"where": "user.tool_error_rate>=inf"}, "abcd", "takes a number"),
        ({"where": "user.session_outcome>=accepted"}, "abcd", "has no order"),
        ({"where": "user.session_outcome="}, "abcd", "needs a value"),
        ({"where": "corpus.cost_per_session>=1"}, "abcd", "a value of the whole store"),
        ({"where": "1=1) OR (1=1"}, "abcd", "Ignored"),
        ({"where": "hello"}, "abcd", "is not a condition"),
        ({"where": ";".join(f"user.tool_error_rate>={n}" for n in range(-30, 0))}, "abcd", "Only the first 20 of 30"),
        ({"where": "x" * 5000}, "abcd", "at most 300 characters"),
        ({"missing": "everything"}, "abcd", "not a known field for missing"),
        ({"behind": "study:no:such"}, "", "Unknown number “study:no:such”"),
    ],
)
def test_what_is_nowhere_or_can_not_be_read_is_said(varied: Store, words: dict[str, str], fit: str, says: str) -> None:
    made, sessions = _asked(varied, **words)
    assert sessions == fit
    assert says in " ".join(made.notes) and bool(made.notes) == bool(says)
    is_unread = any("must be a date" in note or "must be a number of dollars" in note for note in made.notes)
    assert bool(made.words) != is_unread, "what could not be read is in no field, which would complain of it"


def test_a_chip_leads_to_the_address_without_it_and_clear_to_the_address_without_any(served: Server) -> None:
    condition = "where=user.tool_error_rate%3E%3D0.1&signal=user.session_outcome&op=absent"
    text = page(served, f"/sessions?agent=claude-code&{condition}&order=agent")
    links = [a["href"] for _, a in Elements(text).elements if (a.get("aria-label") or "").startswith("Remove")]
    assert links == [
        "?where=user.tool_error_rate%3E%3D0.1%3Buser.session_outcome+absent&order=agent",
        "?agent=claude-code&where=user.session_outcome+absent&order=agent",
        "?agent=claude-code&where=user.tool_error_rate%3E%3D0.1&order=agent",
    ]
    assert '<a class="clear" href="?order=agent">' in text
    assert "1–1 of 1 sessions" in text


def test_the_filter_goes_on_to_every_page_and_its_values_stay_text(served: Server) -> None:
    words = f"agent={quote(EVIL, safe='')}&from=2026-01-01&order=agent&page=2"
    for path in ("/", "/sessions", "/signals", "/studies", "/artifacts", "/session/a", "/signal/user.tool_error_rate"):
        elements = Elements(page(served, f"{path}?{words}"))
        tops = [
            a["href"] or "" for tag, a in elements.elements if tag == "a" and (a.get("href") or "").startswith("/sig")
        ]
        foot = tops[-1]
        assert foot.startswith("/signals?agent=%3C%2Fscript%3E") and "from=2026-01-01" in foot, path
        assert "order=" not in foot and "page=" not in foot
        assert not [tag for tag, attrs in elements.elements if tag == "img" or "onerror" in attrs], path


def test_links_to_what_only_passes_the_filter_on_have_it_and_lists_choose_themselves(served: Server) -> None:
    words = "agent=pi&text=%22%3E%3Cimg%3E%26context%3Deval"
    for path in ("/studies", "/session/c", "/session/c/explain/user.tool_error_rate"):
        elements = Elements(page(served, f"{path}?{words}"))
        links = [href for href in elements.all_of("href") if re.match(r"/(session|studies|signal)/", href)]
        assert links and all("text=%22%3E%3Cimg%3E%26context%3Deval&agent=pi" in link for link in links), path
        assert not [tag for tag, _ in elements.elements if tag == "img"]
    behind = page(served, "/behind?key=study:tools:tools.mcp_sessions&agent=pi")
    lists = [href for href in Elements(behind).all_of("href") if href.startswith("/sessions?behind")]
    assert lists and not [href for href in lists if "agent" in href], "a number opens the sessions that it counts"
    outline = Elements(page(served, "/session/a?agent=pi")).all_of("href")
    assert "/sessions?agent=pi" in outline
    assert all("agent=pi" in href for href in outline if href.startswith("?"))


@pytest.mark.slow
def test_hostile_addresses_are_answered(served: Server) -> None:
    plain = ("agent", "model", "repo", "branch", "context", "outcome", "from", "to", "cost_min", "tool", "text")
    odd = ("failed", "file", "where", "missing", "behind", "signal", "op", "value", "cost_max")
    for value in (EVIL, "%00", "' OR 1=1 --", "$agent>=1", "%FF%FE", "9" * 3000, "a;b;c", "user.goal={where}", "-1"):
        for words in (plain, odd):
            address = "&".join(f"{word}={quote(value, safe='%')}" for word in words)
            assert ask(served, f"/sessions?{address}").status == 200, value
    for path in ("/", "/signals", "/signal/user.tool_error_rate", "/signal/user.session_outcome", "/session/a"):
        for address in (f"agent={quote(EVIL)}&to=%00&model=%FF", "where=%24x;;%3E=;user.goal=%27&behind=finding:x"):
            assert ask(served, f"{path}?{address}").status == 200, (path, address)


def test_a_time_range_is_chosen_by_the_address_on_every_list(varied: Store) -> None:
    with serving(varied) as running:
        every = Elements(page(running, "/sessions"))
        ranges = [a["href"] for tag, a in every.elements if tag == "a" and (a.get("href") or "").startswith("?days=")]
        assert ranges == ["?days=7", "?days=30"]
        snapshot = running.snapshots.current()
        last = snapshot.rows("SELECT max(started_at) AS at FROM sessions")[0]["at"]
        since = f"{last - timedelta(days=6):%Y-%m-%d}"
        assert _listed(running, "/sessions?days=7") == _listed(running, f"/sessions?from={since}")
        assert f"7, since {since}" in text_of(running, "/?days=7")
        assert "Ignored: days must be 7 or 30" in text_of(running, "/sessions?days=8")


def test_a_time_range_is_also_of_studies_findings_and_the_number_behind_a_figure(tmp_path: Path) -> None:
    made = [session(user(f"go {n}"), session_id=f"s{n}", cwd="/w/shop") for n in range(8)]
    for n, one in enumerate(made):
        _days(one, 0 if n < 5 else 40)
    with serving(store_of(tmp_path / "store", *made)) as running:
        for query, n in (("", 8), ("?days=7", 3), ("?days=30", 3), ("?days=8", 8)):
            told = text_of(running, f"/studies/sessions{query}")
            assert re.search(rf"Sessions {n} ", told), (query, told[:400])
        assert "findings need at least 5 sessions" in text_of(running, "/?days=7")


def test_the_first_screen_says_what_projects_and_models_cost(varied: Store) -> None:
    with serving(varied) as running:
        told = text_of(running, "/")
        assert re.search(r"Cost by project me/tools \S+ (>= )?\$\d", told), told[:900]
        assert re.search(r"Cost by model \S+ \S+ (>= )?\$\d", told)


def test_page_and_report_say_one_cost_of_a_model(demo_folder: Path) -> None:
    store = Store(demo_folder / "store")
    with serving(store) as running:
        told = text_of(running, "/?context=product")
    (table,) = [made for made in study(store, "cost_causes").tables if made.id == "cost_causes.by_model"]
    assert len(table.rows) > 1
    below = told.partition("By model")[2]
    for model, cost, *_ in table.rows[:5]:
        assert re.search(rf"{re.escape(model)} [\d.]+% {re.escape(formatted(cost, 'usd'))} ", told), model
        assert re.search(rf"{re.escape(model)} \d+ (>= )?{re.escape(formatted(cost, 'usd'))} ", below), model


def test_a_run_without_calls_and_costs_shows_no_empty_cards(tmp_path: Path) -> None:
    runs = trial({"verification": graded(fixed=2), "reward": 1.0}, {"verification": graded(unfixed=2), "reward": 0.0})
    with serving(store_of(tmp_path / "store", *(run.session for run in runs))) as running:
        told = text_of(running, "/")
    assert "Attempts 2 " in told and "Failing tools" not in told and "Failed tool calls" not in told
    assert "Cost –" not in told.partition(" Filter ")[0]
    assert (
        "Most expensive" not in told and "Hotspots" not in told and "failed calls" not in told.partition("By agent")[2]
    )


def test_attempts_whose_calls_have_no_cost_count_with_what_their_harness_states(tmp_path: Path) -> None:
    stated = {"knobs": {"model_id": "m"}, "verification": graded(), "cost_usd": 0.25}
    facts = [
        {"trial_id": f"t{n}", "task_id": f"task-{n}", "attempt_index": 0, "reward": float(n < 3)} for n in range(4)
    ]
    runs = trial(*({**stated, **fact} for fact in facts))
    store = store_of(tmp_path / "store", *(run.session for run in runs))
    made = find(store, "eval")
    assert (made.totals.cost_usd, made.totals.priced) == (1.0, 4)
    snapshot = Snapshot(store)
    figures = overall(snapshot, filtered(Query(""), snapshot).of_context("eval"))
    assert figures.cost.usd == 1.0 and [group.cost.usd for group in figures.groups[1][2]] == [1.0]
    (candidate,), solved = made.resolved[0].candidates, figures.groups[0][2][0].solved
    assert solved is not None and solved.interval == (candidate.low, candidate.high), "one rate has one interval"


def test_the_interval_of_solved_runs_is_over_tasks(tmp_path: Path) -> None:
    """Five attempts at a task that all end alike say no more than one: the interval is as wide as over eight tasks."""
    runs = trial(
        *(
            {"trial_id": f"t{task}-{k}", "task_id": f"task-{task}", "verification": graded(), "reward": task % 2 * 1.0}
            for task in range(8)
            for k in range(5)
        )
    )
    snapshot = Snapshot(store_of(tmp_path / "s", *(run.session for run in runs)))
    made = overall(snapshot, filtered(Query(""), snapshot).of_context("eval"))
    solved = made.groups[0][2][0].solved
    assert solved is not None and (solved.k, solved.n) == (20, 40)
    assert "over 8 tasks" in solved.note
    low, high = solved.interval or (0.5, 0.5)
    assert high - low > 0.6, "40 independent attempts would have .3"


def test_worktrees_of_one_repository_are_one_project(tmp_path: Path) -> None:
    made = [session(user("go"), session_id=f"s{n}", cwd=cwd, repo=repo) for n, (cwd, repo) in enumerate((
        ("/w/shop", "me/shop"), ("/w/shop", None), ("/w/shop/.worktrees/2", "me/shop"), ("/w/other", None),
    ))]  # fmt: skip
    snapshot = Snapshot(store_of(tmp_path / "s", *made))
    made_of = overall(snapshot, filtered(Query(""), snapshot).of_context("product"))
    (groups,) = (groups for word, _, groups, _ in made_of.groups if word == "repo")
    assert {group.name: group.cost.sessions for group in groups} == {"me/shop": 3, "/w/other": 1}


def test_tabs_are_of_what_the_store_holds(tmp_path: Path) -> None:
    with serving(store_of(tmp_path / "s", session(user("hello")))) as running:
        head, _, foot = page(running, "/").partition("</nav>")
        tabs = re.findall(r'<li><a href="(/[a-z]*)"', head)
        assert tabs == ["/", "/sessions", "/studies"]
        assert 'href="/signals"' in foot and 'href="/artifacts"' in foot
        assert "The store has no eval attempts" in page(running, "/failures"), "a page without a tab is still there"
