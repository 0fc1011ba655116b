"""The page of search: passages lead to their events, and an index that is building the search index is said to be."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest

from agentsignals.store import Store, fulltext
from agentsignals.ui.pages import sessions as search
from agentsignals.ui.server import Server
from tests.build import call, say, session, user
from tests.questions.stores import store_of
from tests.ui.browser import browsing, needs_browser, serious
from tests.ui.served import EVIL_ID, Elements, ask, page, serving, text_of


def test_a_passage_leads_to_its_event(server: Server) -> None:
    text = page(server, "/search?q=pytest")
    assert "<mark>pytest</mark> -q" in text and "command <b>Bash</b>" in text
    link = re.search(r'href="(/session/fine-1\?at=(\d+)#e\2)"', text)
    assert link
    assert re.search(rf'id="e{link[2]}"', page(server, link[1].partition("#")[0]))


def test_kinds_order_and_the_filter_narrow_it(server: Server) -> None:
    assert "1 passage in 1 session" in text_of(server, "/search?q=deep+kind:result")
    both = text_of(server, "/search?q=deep")
    assert "2 passages in 1 session" in both and "path 1" in both and "result 1" in both
    assert "1 passage in 1 session" in text_of(server, "/search?q=deep&kind=path&order=most")
    narrowed = text_of(server, "/search?q=deep&repo=nowhere")
    assert "No results." in narrowed and "Search all sessions" in narrowed
    assert "Search all kinds" in text_of(server, "/search?q=thanks&kind=result")


def test_the_top_of_each_page_leads_there_with_the_filter(server: Server) -> None:
    assert '<form class="find" action="/search"' in page(server, "/sessions")
    top = page(server, "/sessions?agent=claude-code").partition("</nav>")[0]
    assert '<input type="hidden" name="agent" value="claude-code">' in top


def test_an_id_leads_to_its_session(server: Server) -> None:
    assert 'href="/session/fine-1"' in page(server, "/search?q=fine-1")
    assert "Session with this ID" not in text_of(server, "/search?q=nobody-1")


@pytest.mark.parametrize("typed", ["' OR 1=1 --", '"', "NEAR(", "<script>alert(1)</script>", "%00", "-", "kind:foo"])
def test_nothing_that_is_typed_breaks_it(server: Server, typed: str) -> None:
    got = ask(server, f"/search?q={quote(typed)}&kind={quote(typed)}&order={quote(typed)}&page=999")
    assert got.status == 200 and "<script>alert" not in got.text


def test_hostile_passages_are_text(server: Server) -> None:
    text = page(server, "/search?q=window")
    assert quote(EVIL_ID, safe="") in text and "\u202e" not in text
    assert not [tag for tag, _ in Elements(text).elements if tag == "img"]
    assert "<mark>window</mark>.pwned" in text


def test_sessions_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SIZE_OF_SEARCH", 2)
    many = [session(user(f"xylophone {n}"), *[say("xylophone")] * n, session_id=f"s{n}") for n in range(5)]
    with serving(store_of(tmp_path / "s", *many)) as running:
        for query, ids in (("&page=3", ["s0"]), ("&page=9", ["s0"]), ("", ["s4", "s3"])):
            text = page(running, f"/search?q=xylophone&order=most{query}")
            assert re.findall(r'<h2><a href="/session/(\w+)"', text) == ids
        assert "of 5 sessions" in text and "all 5 in this session" in page(running, "/search?q=xylophone&order=most")


def test_of_one_session_all_passages_are_shown(tmp_path: Path) -> None:
    many = [session(user(f"xylophone {n}"), *[say("xylophone")] * 9, session_id=f"s {n}") for n in range(2)]
    with serving(store_of(tmp_path / "s", *many)) as running:
        (link, *_) = re.findall(r'class="more" href="([^"]+)"', page(running, "/search?q=xylophone"))
        assert page(running, f"/search{link}").count('class="hit"') == 10


def test_while_the_index_is_made_the_page_says_so_and_asks_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(server.snapshots.folder, tmp_path / "s", ignore=shutil.ignore_patterns(fulltext.FOLDER))
    may_go_on, make = Event(), fulltext.build
    monkeypatch.setattr(search, "WAIT_S", 0.01)
    monkeypatch.setattr(fulltext, "build", lambda *given: (may_go_on.wait(10), make(*given))[1])
    with serving(Store(tmp_path / "s")) as running:
        waiting = page(running, "/search?q=pytest")
        assert (
            "is building the search index" in waiting and "data-again" in waiting and "at least 0 passages" in waiting
        )
        may_go_on.set()
        monkeypatch.setattr(search, "WAIT_S", 10)
        done = page(running, "/search?q=pytest")
        assert "is building the search index" not in done and "<b>1 passage</b> in <b>1 session</b>" in done


@pytest.mark.slow
@needs_browser
def test_what_the_index_lacked_comes_into_the_open_page(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(server.snapshots.folder, tmp_path / "s", ignore=shutil.ignore_patterns(fulltext.FOLDER))
    may_go_on, make = Event(), fulltext.build
    monkeypatch.setattr(search, "WAIT_S", 0.01)
    monkeypatch.setattr(fulltext, "build", lambda *given: (may_go_on.wait(60), make(*given))[1])
    with serving(Store(tmp_path / "s")) as running, browsing() as browser:
        browser.goto(f"{running.url}search?q=pytest")
        assert browser.locator("#come [role=status]", has_text="is building the search index").count() == 1
        assert serious(browser) == []
        may_go_on.set()
        browser.locator("#come a.hit").wait_for()
        assert browser.locator("[data-again]").count() == 0


def test_a_store_that_can_t_be_written_is_searched_all_the_same(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", session(user("hello xylophone"), call("Read", path="a.py")))
    (store.folder / fulltext.FOLDER).write_text("in the way")
    with serving(store) as running:
        told = text_of(running, "/search?q=xylophone")
        assert "1 passage in 1 session" in told and "can’t be written" in told.replace("'", "’")


@pytest.mark.slow
@needs_browser
def test_from_the_top_of_a_page_to_the_event_in_two_steps(server: Server) -> None:
    with browsing() as browser:
        browser.goto(f"{server.url}signals")
        browser.fill("#find", "pytest kind:command")
        browser.press("#find", "Enter")
        browser.click("a.hit")
        browser.wait_for_url("**/session/fine-1?at=*")
        event = browser.locator(f"#{browser.url.partition('#')[2]}")
        assert event.is_visible() and "pytest -q" in event.inner_text()
