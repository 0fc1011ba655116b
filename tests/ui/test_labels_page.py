"""The page of labels: counts, agreement, and what labellers differ about, whatever stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsignals.model import Label
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.ui.server import Server
from tests.ui.browser import browsing, needs_browser, overflow_px, serious
from tests.ui.served import EVIL, EVIL_ID, Elements, ask, page, serving, text_of, whole_store

TASK = "pushback"
BY = {"rules": ("non_pushback", "correction"), "human:ann": ("rejection", "correction"), EVIL: ("rejection", EVIL)}
"""What each says of both turns of the fine session."""


def labelled(store: Store) -> Store:
    """Three labellers, one of them hostile, of one session; two of the hostile session; a task that nobody declared."""
    for labeller, values in BY.items():
        rows = [_row("fine-1", TASK, labeller, turn, value) for turn, value in enumerate(values)]
        rows += [_row(EVIL_ID, TASK, labeller, 0, values[0])] if labeller != EVIL else []
        sidecars.write_labels(store.folder, TASK, labeller, rows)
    for labeller in ("a", "b"):
        events = [_row("fine-1", EVIL, labeller, None, f"kind {labeller}", seq=n) for n in (0, 2)]
        sidecars.write_labels(store.folder, EVIL, labeller, events)
    return Store(store.folder)


def _row(session_id: str, task: str, labeller: str, turn: int | None, value: str, seq: int | None = None) -> LabelRow:
    detail = '{"unsure": true}' if value == "rejection" else 'no JSON, "unsure": {' if labeller == EVIL else None
    return LabelRow(
        session_id,
        Label(task=task, labeller=labeller, turn=turn, value=value, seq=seq, reason=f"because {EVIL}", detail=detail),
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(labelled(whole_store(tmp_path_factory.mktemp("labels") / "store"))) as running:
        yield running


def test_what_labellers_differ_about_comes_with_its_message_its_context_and_every_reason(server: Server) -> None:
    text = text_of(server, f"/labels?task={TASK}")
    assert "3 labelled, 3 by several, 3 differently" in text
    assert text.index("Fix the parser, please") < text.index("thanks"), "in the order of turns where as many differ"
    assert "human:ann rejection unsure because" in text and "rules non pushback because" in text
    links = Elements(page(server, f"/labels?task={TASK}")).all_of("href")
    assert "/session/fine-1?at=0#e0" in links and any(f"#e{n}" in link for link in links for n in range(3, 20))
    assert "what it answers to" in text and "Fix the parser, please the end of the answer w" in text


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("a=rules&b=human:ann", "Fix the parser", "thanks"),
        ("a=rules&b=human:ann&show=alike", "thanks", "Fix the parser"),
        ("a=rules&show=all", "1–3 of 3", "No messages"),
        ("a=rules&by_a=correction&show=all", "1–1 of 1", "Fix the parser"),
        ("a=rules&b=human:ann&by_a=non_pushback&by_b=rejection", "1–2 of 2", "thanks"),
        ("class=correction", "thanks", "Fix the parser"),
        ("class=takeover&a=nobody&show=no", "1–3 of 3", "No messages"),
    ],
)
def test_the_list_is_filtered_by_labellers_and_classes(server: Server, query: str, shown: str, hidden: str) -> None:
    listed = text_of(server, f"/labels?task={TASK}&{query}").partition("differently.")[2]
    things = listed.partition("how far they agree")[0]
    assert shown in things and hidden not in things.replace("Fix the parser, please the end", "")


def test_a_pair_has_its_agreement_and_which_class_for_which(server: Server) -> None:
    text = text_of(server, f"/labels?task={TASK}&a=rules&b=human:ann")
    assert "How far they agree" in text and "no interval: under six sessions" in text
    assert "rows human:ann, columns rules" in text
    links = Elements(page(server, f"/labels?task={TASK}&a=rules&b=human:ann")).all_of("href")
    [cell] = [link for link in links if "by_a=rejection&by_b=non_pushback" in link]
    assert "1–2 of 2" in text_of(server, cell)


def test_the_filter_of_all_pages_holds_for_counts_agreement_and_the_list(server: Server) -> None:
    path = f"/labels?task={TASK}&repo=me/tools"
    text = text_of(server, path)
    assert "2 labelled, 2 by several, 2 differently" in text and "Only repository me/tools" in text
    assert "2 things of people’s sessions have labels of two or more" in text
    assert "rules 2" in text and "rules 3" in text_of(server, f"/labels?task={TASK}")
    assert all("repo=" in link for link in Elements(page(server, path)).all_of("href") if link.startswith("/labels?a"))
    nobody = text_of(server, f"/labels?task={TASK}&agent=nobody")
    assert "0 labelled" in nobody and "How far they agree" not in nobody


def test_labels_of_events_and_tasks_that_nobody_declared_are_shown(server: Server) -> None:
    [path] = [h for h in Elements(page(server, "/labels")).all_of("href") if h.startswith("/labels?task=%3C")]
    text = text_of(server, path)
    assert "kind a" in text and "kind b" in text and "event 2" in text and "How far they agree" not in text


def test_hostile_labels_stay_text(server: Server) -> None:
    [evil] = [h for h in Elements(page(server, "/labels")).all_of("href") if h.startswith("/labels?task=%3C")]
    for path in ("/labels", f"/labels?task={TASK}", evil, f"/labels?task={TASK}&show=all&page=99", "/labels?task=%00"):
        text = page(server, path)
        assert "window.pwned=1" in text or path.endswith("%00")
        elements = Elements(text).elements
        scripts = [attrs.get("src") or "" for name, attrs in elements if name == "script"]
        assert all(source.startswith("/static/") for source in scripts)
        assert "img" not in {name for name, _ in elements} and "\u202e" not in text
        assert not [name for _, attrs in elements for name in attrs if name.startswith("on")]


def test_a_store_without_labels_says_how_to_make_some(tmp_path: Path) -> None:
    Store(tmp_path / "store", create=True).save()
    with serving(Store(tmp_path / "store")) as running:
        assert "agentsignals label pushback" in text_of(running, "/labels")
        assert ask(running, "/labels?a=x&b=y&class=z").status == 200


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("phone", [False, True])
def test_a_browser_complains_of_nothing(server: Server, phone: bool) -> None:
    with browsing(phone=phone, dark=phone) as tab:
        for path in (f"labels?task={TASK}&a=rules&b=human:ann", "labels/annotate"):
            tab.goto(server.url + path)
            assert serious(tab) == [] and overflow_px(tab) == 0, path
        tab.goto(f"{server.url}labels?task={TASK}")
        tab.get_by_text("rules and human:ann").or_(tab.get_by_text("human:ann and rules")).click()
        tab.get_by_text("Which class for which").click()
        tab.locator("td.apart a").first.click()
        tab.locator("ol.things li").first.wait_for()
        assert "by_a=" in tab.url
