"""The page of labels: counts, agreement, and what labellers differ about, whatever stands in it."""

from __future__ import annotations

import http.client
import json
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlencode

import pytest

from agentsignals.cli import main
from agentsignals.errors import LabelledMeanwhile, SourceError, UsageError
from agentsignals.labels import annotation as order
from agentsignals.labels import gold
from agentsignals.labels import matching as agree
from agentsignals.labels.annotation import sample, standing, take
from agentsignals.labels.gold import GoldFile, GoldRow
from agentsignals.labels.tasks import task
from agentsignals.model import Label
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.ui.pages.labels import ADDRESS, MOST_BODY_BYTES, Annotations
from agentsignals.ui.server import Server
from agentsignals.ui.snapshot import Snapshot
from tests.labels import stores
from tests.ui.browser import BROWSER, browsing, needs_browser, overflow_px, serious
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
    assert "3 labelled, 3 by several labellers, 3 with disagreement" in text
    assert text.index("Fix the parser, please") < text.index("thanks"), "in the order of turns where as many differ"
    assert "human:ann rejection unsure because" in text, "people's labels have no precision"
    assert "rules non pushback 71% of 1,307 right because" in text
    links = Elements(page(server, f"/labels?task={TASK}")).all_of("href")
    assert "/session/fine-1?at=0#e0" in links and any(f"#e{n}" in link for link in links for n in range(3, 20))
    assert "Context" in text and "Fix the parser, please end of the reply w" in text


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
    things = text_of(server, f"/labels?task={TASK}&{query}").partition("with disagreement.")[2]
    assert shown in things and hidden not in things.replace("Fix the parser, please end", "")


def test_a_pair_has_its_agreement_and_which_class_for_which(server: Server) -> None:
    text = text_of(server, f"/labels?task={TASK}&a=rules&b=human:ann")
    assert "Krippendorff" in text and "no interval: fewer than six sessions" in text
    assert "rows human:ann, columns rules" in text
    links = Elements(page(server, f"/labels?task={TASK}&a=rules&b=human:ann")).all_of("href")
    [cell] = [link for link in links if "by_a=rejection&by_b=non_pushback" in link]
    assert "1–2 of 2" in text_of(server, cell)


def test_the_filter_of_all_pages_holds_for_counts_agreement_and_the_list(server: Server) -> None:
    path = f"/labels?task={TASK}&repo=me/tools"
    text = text_of(server, path)
    assert "2 labelled, 2 by several labellers, 2 with disagreement" in text and "Only repository me/tools" in text
    assert "2 items of people’s sessions have labels from two or more labellers" in text
    assert "rules 2" in text and "rules 3" in text_of(server, f"/labels?task={TASK}")
    assert all("repo=" in link for link in Elements(page(server, path)).all_of("href") if link.startswith("/labels?a"))
    nobody = text_of(server, f"/labels?task={TASK}&agent=nobody")
    assert "0 labelled" in nobody and "Krippendorff" not in nobody


def test_labels_of_events_and_tasks_that_nobody_declared_are_shown(server: Server) -> None:
    [path] = [h for h in Elements(page(server, "/labels")).all_of("href") if h.startswith("/labels?task=%3C")]
    text = text_of(server, path)
    assert "kind a" in text and "kind b" in text and "event 2" in text and "Krippendorff" not in text


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
        assert "agentsignals labels label pushback" in text_of(running, "/labels")
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
        tab.get_by_text("Confusion matrix").click()
        tab.locator("td.apart a").first.click()
        tab.locator("ol.things li").first.wait_for()
        assert "by_a=" in tab.url


# Labelling by hand: what it writes into the gold file, what it shows nobody, and whom it refuses.

PUSHBACK = task("pushback")
START = f"{ADDRESS}?task=pushback&as=ann"
MESSAGES = ("add a parser for dates", "no, that is wrong", "it fails with an error", "thanks, go on")


class Sent(NamedTuple):
    status: int
    location: str
    text: str


class Open(NamedTuple):
    """A server that writes into a file."""

    server: Server
    path: Path

    @property
    def ours(self) -> dict[str, str]:
        return {"Origin": f"http://127.0.0.1:{self.server.port}", "Content-Type": "application/x-www-form-urlencoded"}

    def form(self, path: str = START, **changed: str) -> dict[str, str]:
        """The fields of the form there, with the first class chosen."""
        elements = [attrs for name, attrs in Elements(page(self.server, path)).elements if name == "input"]
        fields = {str(a["name"]): str(a.get("value") or "") for a in elements if a.get("type") == "hidden"}
        return {**fields, "label": "correction", "note": "", **changed}

    def send(self, fields: dict[str, str] | bytes, headers: dict[str, str] | None = None, path: str = ADDRESS) -> Sent:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
            connection.request("POST", path, body, self.ours if headers is None else headers)
            got = connection.getresponse()
            return Sent(got.status, got.getheader("Location") or "", got.read().decode())
        finally:
            connection.close()

    def written(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return stores.store_of(tmp_path_factory.mktemp("annotate"), MESSAGES, MESSAGES[:2])


@pytest.fixture
def opened(told: Store, tmp_path: Path) -> Iterator[Open]:
    with serving(told, Annotations(GoldFile(tmp_path / "gold.jsonl"))) as server:
        yield Open(server, tmp_path / "gold.jsonl")


# -- what it writes ----------------------------------------------------------------------------------------------------


def test_a_label_is_in_the_gold_file_before_the_next_thing_is_asked_about(opened: Open, told: Store) -> None:
    sent = opened.send(opened.form(note="it says\r\nno", unsure="yes"))
    assert sent.status == 303 and sent.location.startswith(f"{ADDRESS}?task=pushback&as=ann&at=")
    [row] = opened.written()
    assert row["label"] == "correction" and row["reason"] == "it says\nno" and row["unsure"] is True
    assert row["annotator"] == "human:ann" and row["prompt_hash"] == PUSHBACK.prompt_hash and row["text"] in MESSAGES
    assert "number 2" in " ".join(Elements(page(opened.server, sent.location)).said.split())
    read = gold.read(opened.path, PUSHBACK)
    assert [(r.label, r.unsure) for r in read.rows] == [("correction", True)] and read.by == ["human:ann"]
    assert agree.with_gold(PUSHBACK, "rules", read).n == 1, "agree and validate read it"
    assert take(told, opened.path, "human:ann", PUSHBACK).labels == 1
    assert [row.label.detail for row in standing(told, PUSHBACK, "human:ann").values()] == ['{"unsure": true}']


def test_what_is_in_the_file_is_not_asked_again_also_by_a_later_run(opened: Open, told: Store) -> None:
    path, asked = START, []
    for _ in range(2):
        form = opened.form(path)
        asked.append(form["place"])
        path = opened.send(form).location
    with serving(told, Annotations(GoldFile(opened.path))) as later:
        form = Open(later, opened.path).form()
        assert form["place"] not in asked and len(set(asked)) == 2
        assert Open(later, opened.path).send(form).status == 303
        while "All items are labelled" not in (text := page(later, START)):
            Open(later, opened.path).send(Open(later, opened.path).form())
    assert "agentsignals labels agree pushback rules --gold" in text
    places = [(row["session_id"], row["turn"]) for row in opened.written()]
    assert len(places) == len(set(places)) == 4, "all but the first message of each, which nothing stands before"


def test_a_drawn_sample_is_what_is_asked_about_and_keeps_its_weights(told: Store, tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    rows = sample(told, PUSHBACK, 3)
    gold.write(path, rows)
    with serving(told, Annotations(GoldFile(path))) as server:
        running = Open(server, path)
        assert "0 of 3 labelled" in page(server, START) and "not a random sample" not in page(server, START)
        for _ in rows:
            assert running.send(running.form()).status == 303
        assert "All items are labelled" in page(server, START)
    labels = {(row["session_id"], row["turn"]): row for row in running.written()}
    assert [(r.session_id, r.turn) for r in rows] == list(labels), "each row in its place"
    assert all(labels[r.session_id, r.turn]["weight"] == r.weight for r in rows)
    assert {row["label"] for row in labels.values()} == {"correction"}


def test_going_back_shows_the_label_and_replaces_it(opened: Open) -> None:
    first = opened.form()
    here = f"{START}&{urlencode({'at': first['place']})}"
    following = opened.send({**first, "note": "at first"}).location
    back = [a["href"] for n, a in Elements(page(opened.server, following)).elements if a.get("data-key") == "ArrowLeft"]
    assert back == [here]
    text = page(opened.server, here)
    assert "at first</textarea>" in text and 'value="correction" data-key="1" class="chosen"' in text
    assert opened.send({**opened.form(here), "label": "rejection"}).status == 303
    assert [(row["label"], row.get("reason")) for row in opened.written()] == [("rejection", None)]


def test_nobody_sees_what_others_said(tmp_path: Path) -> None:
    with serving(labelled(whole_store(tmp_path / "store")), Annotations(GoldFile(tmp_path / "g.jsonl"))) as server:
        text = page(server, START)
        assert "because" not in text and "rules" not in text and "stratum" not in text
        assert "rules" in page(server, "/labels?task=pushback"), "where it is meant to be seen"


def test_a_session_of_any_name_is_labelled_under_that_name(tmp_path: Path) -> None:
    with serving(whole_store(tmp_path / "store"), Annotations(GoldFile(tmp_path / "g.jsonl"))) as server:
        running, path = Open(server, tmp_path / "g.jsonl"), START.replace("pushback", "sentiment")
        for _ in range(3):
            assert running.send({**running.form(path), "label": "NEUTRAL"}).status == 303
    assert EVIL_ID in {row["session_id"] for row in running.written()}
    assert {row.session_id for row in gold.read(running.path, task("sentiment")).rows} == {EVIL_ID, "fine-1"}


# -- what comes first --------------------------------------------------------------------------------------------------


def test_what_labellers_differ_about_comes_first_then_class_by_class(tmp_path: Path) -> None:
    labels = ["non_pushback"] * 5 + ["correction", "failure_report", "non_pushback"]
    whole = stores.store_of(tmp_path, [f"do thing {n}, please" for n in range(8)], MESSAGES[:2])
    ids = [stores.session_id(n) for n in (0, 1)]
    say = {(ids[0], n + 1): label for n, label in enumerate(labels)} | {(ids[1], 2): "non_pushback"}
    for by, changed in (("a", {}), ("b", {(ids[1], 2): "rejection"})):
        rows = [GoldRow(session_id=s, turn=t, label=label) for (s, t), label in ({**say, **changed}).items()]
        gold.write(tmp_path / f"{by}.jsonl", rows)
        take(whole, tmp_path / f"{by}.jsonl", f"human:{by}", PUSHBACK)
    gold.write(tmp_path / "c.jsonl", [GoldRow(session_id=ids[0], turn=8, label="non_pushback", unsure=True)])
    take(whole, tmp_path / "c.jsonl", "human:c", PUSHBACK)
    queue = order.of_store(Snapshot(Store(whole.folder)).rows, PUSHBACK)
    assert set(queue[:2]) == {(ids[1], 1), (ids[0], 7)}, "the one they differ about, the one that was unsure"
    assert [say[s, t + 1] for s, t in queue[2:]].count("non_pushback") == 4
    assert {say[s, t + 1] for s, t in queue[2:5]} == {"non_pushback", "failure_report", "correction"}
    assert len(queue) == len(set(queue)) == 8


# -- whom it refuses ---------------------------------------------------------------------------------------------------


def test_without_a_file_nothing_is_taken_and_the_page_says_how(told: Store) -> None:
    with serving(told) as server:
        running = Open(server, Path("/nowhere"))
        assert "serve --annotate" in page(server, START) and "<button name" not in page(server, START)
        assert running.send({"token": ""}).status == 405


OTHERS: list[dict[str, str | None]] = [
    {"Origin": "http://evil.example"},
    {"Origin": None},
    {"Origin": "null"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "null", "Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://127.0.0.1"},
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/json"},
    {"Content-Type": None},
    {"Host": "evil.example"},
]


def test_other_sites_and_other_forms_write_nothing(opened: Open) -> None:
    form = opened.form()
    for changed in OTHERS:
        headers = {name: value for name, value in ({**opened.ours, **changed}).items() if value is not None}
        sent = opened.send(form, headers)
        assert sent.status in (403, 415, 421), changed
        assert form["token"] not in sent.text
    assert opened.written() == []
    same = {**opened.ours, "Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert opened.send(form, same).status == 303, "as browsers send a form of a page that tells nobody its address"


def test_forged_tokens_bodies_and_addresses_write_nothing(opened: Open) -> None:
    form = opened.form()
    later = Annotations(GoldFile(opened.path)).token
    for changed in ({"token": ""}, {"token": "x" * 43}, {"token": later}, {"token": "\u00e9\udc80"[:1]}):
        assert opened.send({**form, **changed}).status == 403
    assert opened.send({name: value for name, value in form.items() if name != "token"}).status == 403
    body = urlencode(form).encode()
    assert opened.send(body + f"&token={later}".encode()).status == 403, "a field twice"
    assert opened.send(b"\xff" + body).status == 403
    assert opened.send(body + b"&x=1" * 20).status == 403
    assert opened.send({**form, "note": "x" * MOST_BODY_BYTES}).status == 413
    assert opened.send(b"", {**opened.ours, "Content-Length": "9" * 30}).status == 411
    assert opened.send(b"", {**opened.ours, "Transfer-Encoding": "chunked"}).status == 411
    for path in ("/", "/labels", f"{ADDRESS}/", f"{ADDRESS}?x=1", "/static/ui.css"):
        assert opened.send(form, path=path).status == 405, path
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert ask(opened.server, ADDRESS, method).status == 405
    assert opened.written() == []


HOSTILE = ("", ":", "x", "0:", "0:no-such-session", "-1:a", "99999999999:a", ":%00", "1:../../etc/passwd", "\u0663:a")


def test_a_form_about_what_is_not_to_be_labelled_writes_nothing(opened: Open) -> None:
    form = opened.form()
    for place in HOSTILE:
        assert opened.send({**form, "place": place}).status == 404, place
        assert ask(opened.server, f"{START}&{urlencode({'at': place})}").status == 200, "the next thing is shown"
    for changed in ({"task": "no_such"}, {"task": ""}, {"as": ""}, {"as": "a\nb"}):
        assert opened.send({**form, **changed}).status == 404, changed
    for label in ("", "POSITIVE", "<script>"):
        sent = opened.send({**form, "label": label, "note": "<b>kept</b>"})
        assert sent.status == 409 and "&lt;b&gt;kept&lt;/b&gt;</textarea>" in sent.text and "<script>" not in sent.text
    assert opened.written() == []


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_two_tabs_do_not_label_a_thing_twice(opened: Open) -> None:
    first, second = opened.form(), opened.form()
    assert opened.send(first).status == 303
    assert opened.send(second).status == 303, "the same label once more says the same"
    other = opened.send({**second, "label": "rejection", "note": "mine"})
    assert other.status == 409 and "item correction meanwhile" in other.text and "mine</textarea>" in other.text
    assert [row["label"] for row in opened.written()] == ["correction"]


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    files = [GoldFile(tmp_path / "gold.jsonl") for _ in range(2)]

    def put(n: int) -> None:
        files[n % 2].put(PUSHBACK, GoldRow(session_id=f"s{n % 20}", turn=1 + n % 20, label="correction"), "")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(40)))
    lines = (tmp_path / "gold.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["turn"] for line in lines) == list(range(1, 21))


def test_what_can_not_be_written_is_said_and_stays_in_the_form(told: Store, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    with serving(told, Annotations(GoldFile(folder / "gold.jsonl"))) as server:
        running = Open(server, folder / "gold.jsonl")
        form = running.form(note="a long thought", unsure="yes")
        folder.rename(tmp_path / "away")
        sent = running.send(form)
        assert sent.status == 409 and "Not saved." in sent.text and "No such file or directory" in sent.text
        assert "a long thought</textarea>" in sent.text and 'value="yes" data-key="u" checked' in sent.text
        (tmp_path / "away").rename(folder)
        assert running.send(form).status == 303 and running.written()[0]["reason"] == "a long thought"


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = GoldFile(tmp_path / "gold.jsonl")
    file.put(PUSHBACK, GoldRow(session_id="a", turn=1, label="correction"), "")
    before = file.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
    try:
        with pytest.raises(SourceError, match="can't be written: File too large"):
            file.put(PUSHBACK, GoldRow(session_id="b", turn=1, label="correction"), "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.path.read_bytes() == before and not list(tmp_path.glob("*.tmp")) + list(tmp_path.glob(".*.tmp"))


def test_other_lines_of_a_file_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    mine = '{"session_id": "a", "turn": "2", "label": null, "extra": [1], "weight": 3}'
    path.write_text(f'no json\n{{"session_id": "a", "turn": 2, "task": "sentiment", "label": "NEUTRAL"}}\n{mine}')
    GoldFile(path).put(PUSHBACK, GoldRow(session_id="a", turn=2, label="correction", task=PUSHBACK.name), "")
    lines = path.read_text().splitlines()
    assert lines[0] == "no json" and json.loads(lines[1])["label"] == "NEUTRAL" and len(lines) == 3
    row = json.loads(lines[2])
    assert row["label"] == "correction" and row["extra"] == [1] and row["weight"] == 3
    with pytest.raises(LabelledMeanwhile):
        GoldFile(path).put(PUSHBACK, GoldRow(session_id="a", turn=2, label="rejection"), "")


@pytest.mark.parametrize(
    ("name", "error"), [("gold.csv", UsageError), ("gold", UsageError), ("no/such/gold.jsonl", SourceError)]
)
def test_a_file_that_can_not_be_added_to_is_refused_at_once(tmp_path: Path, name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        GoldFile(tmp_path / name)


def test_serve_says_at_once_that_a_file_is_none(told: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--annotate", "gold.csv", "--port", "0", "--store", str(told.folder)]) == 2
    assert "Name a file that ends in .jsonl" in capsys.readouterr().err


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_browser
def test_keys_choose_note_doubt_skip_and_go_back(opened: Open) -> None:
    with browsing() as tab:
        tab.goto(opened.server.url.rstrip("/") + START)
        assert serious(tab) == []
        tab.keyboard.press("u")
        tab.keyboard.press("n")
        tab.keyboard.type("1 is no key here")
        tab.keyboard.press("Escape")
        with tab.expect_navigation():
            tab.keyboard.press("2")
        [row] = opened.written()
        assert row["label"] == "rejection" and row["unsure"] and row["reason"] == "1 is no key here"
        second = tab.input_value("input[name=place]")
        with tab.expect_navigation():
            tab.keyboard.press("s")
        assert tab.input_value("input[name=place]") != second
        for _ in range(2):
            with tab.expect_navigation():
                tab.keyboard.press("ArrowLeft")
        assert tab.locator("button.chosen").text_content() == "2 rejection"
        assert tab.input_value("textarea") == "1 is no key here"


class Elsewhere(BaseHTTPRequestHandler):
    """Another site, whose page sends a form by itself. It knows the token, which it can't."""

    form: ClassVar[str] = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.form.encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("how", ["application/x-www-form-urlencoded", "text/plain", "fetch"])
def test_a_page_of_another_site_writes_nothing_through_a_browser(opened: Open, how: str) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (slow to load, and of slow tests alone)

    fields, url = opened.form(), opened.server.url.rstrip("/") + ADDRESS
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    sent = "{method: 'POST', mode: 'no-cors', body: new URLSearchParams(new FormData(f))}"
    fetched = f"fetch('{url}', {sent}).finally(() => {{ document.title = 'sent' }})"
    script = fetched if how == "fetch" else "f.submit()"
    Elsewhere.form = f"<form id=f method=post action='{url}' enctype='{how}'>{inputs}</form><script>{script}</script>"
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as other, sync_playwright() as playwright:
        Thread(target=other.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(f"http://localhost:{other.server_port}/")
        if how == "fetch":
            tab.wait_for_function("document.title === 'sent'")
        else:
            tab.get_by_text("Another website sent this request.").wait_for()
        browser.close()
        other.shutdown()
    assert opened.written() == []
    assert opened.send(fields).status == 303, "it was the sender, not the form"
