"""Numbers on the page that open the sessions they count."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path
from urllib.parse import quote

import pytest

from agentsignals.store import Store
from agentsignals.ui.filter import behind, behind_key, sessions_behind
from agentsignals.ui.server import Server
from agentsignals.ui.snapshot import Snapshots
from tests.ui.browser import browsing, needs_browser
from tests.ui.served import EVIL, EVIL_ID, Elements, ask, page


def _opened(told: str) -> list[str]:
    return [link for link in Elements(told).all_of("href") if link.startswith("/behind?")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["errors", "tools", "sessions"])
def test_every_number_of_a_study_opens_a_page_of_sessions(server: Server, name: str) -> None:
    links = _opened(page(server, f"/studies/{name}?context=product"))
    assert len(links) > 5
    for link in dict.fromkeys(links):
        told = page(server, link)
        assert re.search(r"1–\d of \d sessions", Elements(told).said), link


def test_a_number_lists_its_sessions_with_their_part_largest_first(server: Server) -> None:
    told = Elements(page(server, f"/behind?key={quote('study:errors:errors.by_class:test')}")).said
    assert "Failed calls by kind of call: test" in told and "1 answered calls" in told
    both = page(server, "/behind?key=study:tools:tools.mcp_sessions")
    assert "1 session in the numerator" in both and "all 2 in the denominator" in both
    assert "/session/fine-1" in both and "/session/fine-1" not in page(
        server, "/behind?key=with:study:tools:tools.mcp_sessions"
    )


def test_the_page_and_the_filter_open_the_same_sessions(store: Store) -> None:
    snapshot = Snapshots(store.folder).current()
    for key in ("study:tools:tools.mcp_sessions", "with:study:tools:tools.mcp_sessions"):
        title, ids = sessions_behind(snapshot, key)
        assert title == "Sessions that use an MCP tool" and ids == list(behind_key(snapshot, key).parts)
    assert ids == [EVIL_ID]


def test_the_list_of_sessions_shows_the_same_to_filter_further(server: Server) -> None:
    key = quote("with:study:tools:tools.mcp_sessions")
    [link] = [
        link for link in Elements(page(server, f"/behind?key={key}")).all_of("href") if "/sessions?behind" in link
    ]
    told = page(server, link)
    assert quote(EVIL_ID, safe="") in told and "/session/fine-1" not in told


def test_a_number_that_counts_no_sessions_says_why(server: Server) -> None:
    assert "No sessions." in page(server, "/behind?key=study:reading:reading.files")
    assert not [link for link in _opened(page(server, "/studies/reading")) if "reading.files" in link]


def test_hostile_rows_and_keys_stay_text(server: Server) -> None:
    told = page(server, "/studies/tools?context=product")
    [link] = [link for link in dict.fromkeys(_opened(told)) if "mcp__" in link]
    shown = page(server, link)
    assert "window.pwned" in Elements(shown).said and "<script>window" not in shown and "<img" not in shown
    keys = (
        EVIL,
        f"study:tools:{EVIL}",
        f"study:{EVIL}:x",
        f"finding:{EVIL}",
        "with:" * 50,
        "study:tools:" + "x" * 9000,
    )
    for key in keys:
        got = ask(server, f"/behind?key={quote(key, errors='replace')}")
        assert got.status == 404 and "<script>window" not in got.text, key[:60]


def test_names_of_agents_models_and_files_open_their_sessions(server: Server) -> None:
    links = Elements(page(server, "/studies/edits?context=product")).all_of("href")
    assert "/sessions?file=src%2Fparse.py" in links
    agents = Elements(page(server, "/studies/sessions?context=product")).all_of("href")
    assert any(link.startswith("/sessions?agent=") for link in agents)


def test_a_finding_opens_its_sessions(server: Server) -> None:
    links = _opened(page(server, "/finding/data-quality.records"))
    assert links == ["/behind?key=finding%3Adata-quality.records"]
    assert "Its evidence is files" in page(server, links[0])


def test_the_report_links_nowhere_and_its_commands_open_the_same_sessions(store: Store, tmp_path: Path) -> None:
    from agentsignals.ui.report import write  # noqa: PLC0415

    opened = {}
    for context, name, kinds in (("product", "tools", 3), ("eval", "sessions", 1)):
        told = write(store, tmp_path / "r.html", [name], context=context).read_text()
        commands = re.findall(r"agentsignals sessions --behind [^<]*", told)
        assert "/behind?" not in told and len(commands) == kinds
        keys = [shlex.split(html.unescape(command))[-1] for command in commands]
        assert [key for key in keys if f"@{context}:" in key] == keys and ("tools.mix:" in keys[-1]) == (kinds == 3)
        opened[context] = [set(behind(store, key).parts) for key in keys]
        assert all(opened[context])
    assert not set.union(*opened["product"]) & set.union(*opened["eval"])


@pytest.mark.slow
def test_every_mark_of_a_study_is_a_link_without_script(server: Server) -> None:
    """Cells of a heat map here: as many sessions stand on the page as were counted, and an empty cell opens nothing."""
    told = page(server, "/studies/tools?context=product")
    cells = [link for link in dict.fromkeys(_opened(told)) if "tools.mix" in link]
    read_aloud = next(label for label in Elements(told).all_of("aria-label") if label.count("calls are") > 1)
    words = re.findall(r": ([1-9]\d*) of \d+ calls are", read_aloud)
    assert len(cells) == len(words) > 0 and ": 0 of " in Elements(told).said
    for link, n in zip(cells, words, strict=True):
        listed = re.findall(r"(\d+) tool calls", Elements(page(server, link)).said)
        assert sum(map(int, listed)) == int(n), link


@pytest.mark.slow
@needs_browser
def test_a_click_on_a_mark_or_a_number_opens_its_sessions_and_back_leads_back(server: Server) -> None:
    with browsing() as shown:
        for study in ("tools", "errors"):  # a cell, a point
            shown.goto(f"{server.url}studies/{study}", wait_until="networkidle")
            words = shown.locator(".behind-marks a").first.text_content()
            shown.locator(f'.chart [aria-label="{words}"]').first.click()
            shown.wait_for_url("**/behind?key=*")
        shown.go_back(wait_until="networkidle")
        shown.locator(".findings a.opens").first.press("Enter")
        shown.wait_for_url("**/behind?key=*")
        shown.locator("td a").first.click()
        shown.wait_for_url("**/session/*")
