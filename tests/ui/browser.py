"""A real browser on the page: Chromium driven by Playwright, and axe-core's opinion of what it shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
_QUIET = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic",
)  # fmt: skip
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@contextmanager
def browsing(dark: bool = False, phone: bool = False) -> Iterator[Any]:
    """A page of a browser of its own. When it is left, nothing may have been complained of on the console, and nothing
    asked of another machine."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (slow to load, and of slow tests alone)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=[*_QUIET])
        context = browser.new_context(
            viewport=PHONE if phone else WIDE, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text) if _is_complaint(said) else None)
        page.on("pageerror", lambda problem: complaints.append(str(problem)))
        away: list[str] = []
        page.on("request", lambda asked: None if _is_ours(asked.url) else away.append(asked.url))
        try:
            yield page
            if complaints or away:
                raise AssertionError(f"The browser complains of {complaints} and asked for {away}.")
        finally:
            browser.close()


@contextmanager
def slow_network(page: Any, latency_ms: int = 300) -> Iterator[None]:
    """Every answer comes so much later."""
    network = page.context.new_cdp_session(page)
    conditions = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", conditions | {"latency": latency_ms})
    try:
        yield
    finally:
        network.send("Network.emulateNetworkConditions", conditions | {"latency": 0})


def serious(page: Any) -> list[str]:
    """What axe-core calls serious or critical on the page as it stands, with the first element of each. The page's
    policy lets no script in; the browser puts this one beside it."""
    import axe_core_python  # noqa: PLC0415  (likewise)

    source = Path(axe_core_python.__file__).with_name("axe.min.js").read_text("utf-8")
    page.evaluate(source)
    broken = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{b['id']} ({b['impact']}): {b['nodes'][0]['html'][:160]}"
        for b in broken
        if b["impact"] in ("serious", "critical")
    ]


def overflow_px(page: Any) -> int:
    """By how much the page is wider than the window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


def _is_complaint(said: Any) -> bool:
    return said.type in ("error", "warning")


def _is_ours(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "http://localhost:", "data:", "blob:", "about:", "file:"))
