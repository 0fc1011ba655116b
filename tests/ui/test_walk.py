"""Every kind of page in a real browser: wide and on a phone, light and dark, with nothing to complain of."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from agentsignals.store import Store
from agentsignals.ui.server import Server
from tests.ui.browser import browsing, needs_browser, overflow_px, serious
from tests.ui.served import EVIL_ID, serving

PAGES = (
    "/",
    "/finding/data-quality.records",
    "/sessions",
    "/search",
    "/search?q=window+onerror",
    "/session/fine-1",
    f"/session/{quote(EVIL_ID, safe='')}",
    f"/session/{quote(EVIL_ID, safe='')}?only=failures,notes",
    f"/session/{quote(EVIL_ID, safe='')}/raw/1",
    "/session/fine-1/explain/user.tool_error_rate",
    f"/session/{quote(EVIL_ID, safe='')}/explain/user.session_outcome",
    "/attempts",
    "/signals",
    "/signal/user.tool_error_rate",
    "/studies",
    "/studies/errors",
    "/artifacts",
    "/behind?key=study:errors:errors.rate",
    "/behind?key=study:tools:tools.mcp_sessions",
    "/code",
    "/compare",
    "/labels",
    "/labels/annotate?task=pushback",
    "/sides",
    f"/sides?a=fine-1&b={quote(EVIL_ID, safe='')}",
)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(("dark", "phone"), [(True, True), pytest.param(False, False, marks=pytest.mark.nightly)])
def test_no_page_keeps_anybody_out_or_runs_what_a_trace_says(server: Server, dark: bool, phone: bool) -> None:
    problems: list[str] = []
    with browsing(dark, phone) as page:
        for path in PAGES:
            page.goto(f"{server.url}{path.lstrip('/')}", wait_until="networkidle")
            problems += [f"{path}: {problem}" for problem in serious(page)]
            if page.evaluate("window.pwned !== undefined"):
                problems.append(f"{path}: a trace's script ran")
            if overflow_px(page) > 0:
                problems.append(f"{path}: {overflow_px(page)} px wider than the window")
            # A name of a trace may be one word of any length.
            page.evaluate("for (const e of document.querySelectorAll('.limits li')) e.append('w'.repeat(200))")
            if overflow_px(page) > 0:
                problems.append(f"{path}: {overflow_px(page)} px wider than the window by a long word")
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@needs_browser
def test_a_slash_and_ctrl_k_search_from_every_page(server: Server) -> None:
    with browsing() as page:
        for path in ("", "sessions", "studies", "artifacts"):
            for key in ("/", "Control+k"):
                page.goto(f"{server.url}{path}")
                page.keyboard.press(key)
                assert page.evaluate("document.activeElement.id") == "find", (path, key)
        page.keyboard.type("a/b")
        assert page.input_value("#find") == "a/b", "a slash within a field is a slash"


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1440, 900)])
def test_figures_a_chart_and_findings_are_above_the_fold(demo_folder: Path, width: int, height: int) -> None:
    with serving(Store(demo_folder / "store")) as demo, browsing() as page:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(demo.url, wait_until="networkidle")
        page.locator(".lead li a").first.wait_for()
        for what, fewest in ((".cards .figure", 3), (".spark", 3), (".lead li a", 3), (".halves .strip svg", 2)):
            bottoms = [box["y"] + box["height"] for each in page.locator(what).all() if (box := each.bounding_box())]
            assert sum(bottom <= height for bottom in bottoms) >= fewest, (what, bottoms)
