"""Questions that people open the page with, answered by clicks in a real browser over real sessions, and the answer
held against the store asked in SQL."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.store import Store
from agentsignals.store.query import ask, connect
from agentsignals.ui.server import Server
from tests.ui.browser import browsing, needs_browser, overflow_px, serious
from tests.ui.served import serving

pytestmark = [pytest.mark.slow, pytest.mark.corpus, needs_browser]
_LONG_MS = 60_000


@pytest.fixture(scope="module")
def server(corpus_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("answers") / "store"
    shutil.copytree(corpus_folder / "store", folder)  # a search makes its index there
    with serving(Store(folder)) as running:
        yield running


@pytest.fixture
def page(server: Server) -> Iterator[Any]:
    with browsing() as opened:
        opened.set_default_timeout(_LONG_MS)
        opened.goto(server.url)
        yield opened


def _rows(server: Server, query: str) -> list[dict[str, Any]]:
    return ask(connect(Store(server.snapshots.folder)), query)


def _text(page: Any) -> str:
    return " ".join(page.inner_text("main").split())


def test_which_tool_fails_most_for_which_agent(page: Any, server: Server) -> None:
    (most,) = _rows(
        server,
        "SELECT name, agent, count(*) AS n FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main'"
        " AND status = 'error' AND context = 'product' GROUP BY ALL ORDER BY n DESC LIMIT 1",
    )
    section = page.locator("section", has=page.get_by_role("heading", name="Failing tools"))
    assert f"{most['name']} of {most['agent']}" in section.inner_text()
    section.get_by_role("link", name=re.compile(most["name"])).first.click()
    assert "/sessions?" in page.url and most["name"] in page.url


def test_where_the_cost_went(page: Any, server: Server) -> None:
    (most_expensive,) = _rows(
        server, "SELECT session_id FROM sessions WHERE context = 'product' ORDER BY cost_usd DESC NULLS LAST LIMIT 1"
    )
    page.locator("table", has_text="cost").locator("a[href^='/session/']").first.click()
    assert most_expensive["session_id"] in page.url
    page.locator("a[href*='explain/sessions.cost_usd']").first.click()
    assert "$" in _text(page) and "model call" in _text(page)


def test_which_file_is_edited_again_and_again(page: Any) -> None:
    section = page.locator("section", has=page.get_by_role("heading", name="Hotspots"))
    section.locator("a[href*='file=']").first.click()
    page.locator("table a[href^='/session/']").first.wait_for()
    assert "file=" in page.url


def test_why_a_session_loops(page: Any, server: Server) -> None:
    (worst,) = _rows(
        server,
        "SELECT session_id FROM signals WHERE signal = 'dynamics.repetition_rate' AND absent IS NULL"
        " ORDER BY number DESC, session_id LIMIT 1",
    )
    page.get_by_role("link", name="Signals", exact=True).click()
    page.fill("main input[name=name]", "repeat")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="dynamics.repetition_rate").first.click()
    page.locator("a[href*='explain/dynamics.repetition_rate']").first.click()
    assert worst["session_id"] in page.url
    page.locator("main a[href*='?at=']").first.click()
    page.locator(":target, .here").first.wait_for()  # the event that repeats another


def test_the_session_in_which_a_function_was_discussed(page: Any, server: Server) -> None:
    name = "GetOrCreateEntireSessionID"
    rows = _rows(server, f"SELECT DISTINCT session_id FROM events WHERE contains(text, '{name}')")
    page.fill("#find", name)
    page.keyboard.press("Enter")
    page.wait_for_selector("main a[href^='/session/']")
    shown = page.eval_on_selector_all("main a[href^='/session/']", "links => links.map(a => a.pathname.split('/')[2])")
    assert rows and {row["session_id"] for row in rows} <= set(shown)
    page.locator("main a[href*='at=']").first.click()
    assert name in page.content()


def test_back_and_the_address_keep_what_was_chosen(page: Any) -> None:
    page.get_by_role("link", name="Sessions", exact=True).click()
    page.goto(f"{page.url}?agent=codex")
    page.locator("table a[href^='/session/']").first.click()
    page.go_back()
    page.locator("table a[href^='/session/']").nth(1).wait_for()
    assert page.url.endswith("agent=codex")


def test_keys_walk_a_session(page: Any) -> None:
    page.goto(f"{page.url}sessions?tool=Edit&failed=Edit")
    page.locator("table a[href^='/session/']").first.click()
    page.wait_for_load_state("networkidle")
    for key, what in (("j", ".entry"), ("n", ".entry.human_turn"), ("f", ".entry.failed")):
        page.keyboard.press(key)
        page.wait_for_selector(f"{what}:focus", state="attached", timeout=10_000)
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count()


@pytest.mark.nightly
def test_pages_of_real_sessions_keep_nobody_out_and_fit_the_window(server: Server) -> None:
    """On a phone in the dark, where least fits and least is seen; `test_walk` has the other ways."""
    most = (
        "SELECT arg_max(session_id, n_tool_calls) AS id FROM sessions WHERE n_tool_calls < 40 GROUP BY agent ORDER BY 1"
    )
    sessions = _rows(server, most)  # of more calls, axe-core takes ten seconds a page and sees the same
    paths = [
        "", "sessions", "attempts", "code", "labels", "signal/tokens.cost_usd", "studies/tools", "artifacts",
    ]  # fmt: skip
    paths += ["search?q=merge+conflict", "compare", f"sides?a={sessions[0]['id']}&b={sessions[1]['id']}"]
    paths += [f"session/{row['id']}" for row in sessions[::2]]
    problems = []
    with browsing(dark=True, phone=True) as opened:
        for path in paths:
            opened.goto(server.url + path, timeout=_LONG_MS)
            problems += [f"{path}: {problem}" for problem in serious(opened)]
            problems += [f"{path}: {wide} px too wide" for wide in [overflow_px(opened)] if wide > 0]
    assert not problems, "\n".join(problems)
