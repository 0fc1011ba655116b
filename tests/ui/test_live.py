"""An agent works while pages are open: what it writes is read, and pages hear which session it was."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest.pipeline import ingest
from agentsignals.store import Store
from agentsignals.ui import live
from agentsignals.ui import server as ui
from agentsignals.ui.live import Looking, sessions_changed, sources_of
from agentsignals.ui.server import Server
from agentsignals.ui.transcript import PART
from tests.claude import SESSION, Log
from tests.ui.browser import browsing, needs_browser
from tests.ui.served import ask, page, serving

OTHER = "6f1d2c3b-0000-4000-8000-000000000002"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(live, "READING_SHARE", 1.0)


class Agent:
    """Writes a transcript as an agent does: line by line, at the end of its file."""

    def __init__(self, folder: Path, session: str = SESSION) -> None:
        self.log = Log(session)
        self.path = folder / f"{session}.jsonl"
        self._written = 0
        self.log.user("Fix the parser, please")
        self.log.say("Looking.")
        self.write()

    def write(self, tail: str = "") -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in self.log.lines[self._written :]) + tail)
        self._written = len(self.log.lines)

    def works(self, what: str, tail: str = "") -> None:
        self.log.ran("Bash", f"{what}: done", command=f"make {what}")
        self.write(tail)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "shop"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def agent(traces: Path) -> Agent:
    return Agent(traces)


@pytest.fixture
def server(agent: Agent, traces: Path, tmp_path: Path) -> Iterator[Server]:
    """A store of what the agent wrote, served."""
    ingest([str(traces)], tmp_path / "s", jobs=1)
    with serving(Store(tmp_path / "s")) as running:
        yield running


def program(folder: Path, script: str) -> str:
    """A program in Python's place."""
    made = folder / "python"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    return str(made)


@contextmanager
def listening(server: Server) -> Iterator[Callable[[], tuple[str, Any]]]:
    """Gives what takes the next event of `/live`: its kind and its data."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request("GET", live.PATH)
        answer = connection.getresponse()
        assert answer.status == 200 and answer.getheader("Content-Type", "").startswith("text/event-stream")

        def following() -> tuple[str, Any]:
            kind = ""
            while line := answer.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    answer.readline()
                    return kind, json.loads(value)
            return "", None

        with answer:
            yield following


# -- from the file to the page -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_an_agent_appends_is_on_the_page_and_the_page_hears_of_it(tmp_path: Path, traces: Path) -> None:
    agent = Agent(traces)
    Agent(traces, OTHER)
    ingest([str(tmp_path / "projects")], tmp_path / "s", jobs=1)
    with serving(Store(tmp_path / "s")) as server:
        server.live.watch(sources_of(server.snapshots.current().store.manifest)[0])
        with listening(server) as following:
            kind, hello = following()
            assert (kind, hello["watching"], hello["problem"]) == ("hello", True, "")
            assert f'data-live-state="{hello["state"]}"' in page(server, f"/session/{SESSION}")
            agent.works("parser", tail='{"type": "assistant", "message": {"role"')  # its last line is half there
            kind, news = following()
            assert (kind, news["sessions"], news["n"], news["new"]) == ("changed", [SESSION], 1, 0)
        text = page(server, f"/session/{SESSION}")
        assert "make parser" in text and f'data-live-state="{news["state"]}"' in text


def test_what_another_program_reads_into_the_store_is_heard_of_too(
    server: Server, agent: Agent, tmp_path: Path, traces: Path
) -> None:
    with listening(server) as following:
        assert following()[1]["watching"] is False
        agent.works("parser")
        Agent(traces, OTHER)
        ingest([str(traces)], tmp_path / "s", jobs=1)
        kind, news = following()
        assert (kind, sorted(news["sessions"]), news["new"]) == ("changed", [SESSION, OTHER], 1)


def test_an_id_in_an_event_is_data(
    server: Server, tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "sessions_changed", lambda *_: ["x\n\nevent: hello\ndata: {}\n\n"])
    with listening(server) as following:
        following()
        Agent(traces, OTHER)
        ingest([str(traces)], tmp_path / "s", jobs=1)
        assert following()[1]["sessions"] == ["x\n\nevent: hello\ndata: {}\n\n"]


@pytest.mark.slow
def test_a_run_that_fails_is_said_and_the_next_one_that_works_too(
    server: Server,
    agent: Agent,
    tmp_path: Path,
    traces: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(live, "RETRY_S", 0.05)
    python = program(tmp_path, "printf 'no \\033[31mroom\\n' >&2; exit 1")
    with listening(server) as following:
        following()
        with monkeypatch.context() as broken:
            broken.setattr(live.sys, "executable", python)
            server.live.watch([str(traces)])
            agent.works("parser")
            assert following() == ("problem", {"problem": "no [U+001B][31mroom"})
            assert ask(server, "/sessions").status == 200
        heard = [following(), following()]
        assert ("problem", {"problem": ""}) in heard and "changed" in {kind for kind, _ in heard}
    assert "cannot read the changed files: no [U+001B][31mroom" in capfd.readouterr().err


def test_a_store_that_goes_and_comes_back_is_said(server: Server, tmp_path: Path) -> None:
    with listening(server) as following:
        following()
        (tmp_path / "s").rename(tmp_path / "away")
        kind, news = following()
        assert kind == "problem" and "no store" in news["problem"]
        with listening(server) as another:
            assert another()[1]["problem"] == news["problem"]
        (tmp_path / "away").rename(tmp_path / "s")
        assert following() == ("problem", {"problem": ""})


def test_while_nobody_looks_it_is_read_seldom(
    server: Server, agent: Agent, tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    monkeypatch.setattr(live.sys, "executable", program(tmp_path, f"echo run >> {runs}"))

    def runs_within(seconds: float, enough: int) -> int:
        until, n = time.monotonic() + seconds, 0
        while time.monotonic() < until and n < enough:
            time.sleep(0.02)
            n = runs.read_text().count("run") if runs.exists() else 0
        return n

    server.live.watch([str(traces)])
    agent.works("parser")
    assert runs_within(10, 1) == 1
    agent.works("printer")
    assert runs_within(0.5, 2) == 1
    with listening(server):
        assert runs_within(10, 2) == 2


# -- the streams -------------------------------------------------------------------------------------------------------


def test_streams_have_their_own_places_and_are_not_cut(
    server: Server, agent: Agent, tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("MOST_CONNECTIONS", 3), ("MOST_STREAMS", 4), ("ANSWER_S", 0.3), ("WAIT_S", 0.3)):
        monkeypatch.setattr(ui, name, value)
    monkeypatch.setattr(live, "ALIVE_EVERY_S", 0.1)
    with ExitStack() as held:
        streams = [held.enter_context(listening(server)) for _ in range(4)]
        assert ask(server, live.PATH).status == 503
        assert ask(server, "/static/ui.css").status == 200, "pages have their own places"
        assert all(following()[0] == "hello" for following in streams)
        time.sleep(1.0)
        agent.works("parser")
        ingest([str(traces)], tmp_path / "s", jobs=1)
        assert all(following()[0] == "changed" for following in streams), "none was cut"
    until = time.monotonic() + 10
    while time.monotonic() < until and server._streams:
        time.sleep(0.05)
    assert not server._streams, "whoever goes away leaves his place"


def test_a_place_is_free_again_soon_after_its_reader_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "MOST_STREAMS", 1)
    with listening(server) as following:
        assert following()[0] == "hello"
    time.sleep(3)
    with listening(server) as following:
        assert following()[0] == "hello"


def test_the_end_of_the_server_ends_its_streams(tmp_path: Path, traces: Path) -> None:
    Agent(traces)
    ingest([str(traces)], tmp_path / "s", jobs=1)
    before = set(threading.enumerate())
    with ExitStack() as held:
        with serving(Store(tmp_path / "s")) as server:
            server.live.watch([str(traces)])
            followings = [held.enter_context(listening(server)) for _ in range(3)]
            assert all(following()[0] == "hello" for following in followings)
        with suppress(ConnectionError):
            assert [following()[0] for following in followings] == ["", "", ""]
    until = time.monotonic() + 10
    while time.monotonic() < until and set(threading.enumerate()) - before:
        time.sleep(0.02)
    assert not set(threading.enumerate()) - before


def test_a_run_in_the_middle_is_ended_with_the_server(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(traces)
    ingest([str(traces)], tmp_path / "s", jobs=1)
    began = tmp_path / "began"
    monkeypatch.setattr(live.sys, "executable", program(tmp_path, f"echo $$ > {began}; exec sleep 60"))
    with serving(Store(tmp_path / "s")) as server:
        server.live.watch([str(traces)])
        agent.works("parser")
        until = time.monotonic() + 10
        while time.monotonic() < until and not (began.exists() and began.read_text().strip()):
            time.sleep(0.02)
    with pytest.raises(ProcessLookupError):
        os.kill(int(began.read_text()), 0)


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403)])
def test_pages_of_elsewhere_take_no_place(server: Server, site: str, status: int) -> None:
    assert ask(server, live.PATH, headers={"Sec-Fetch-Site": site}).status == status
    assert ask(server, live.PATH, headers={"Host": "evil.example"}).status == 421
    assert ask(server, live.PATH, "POST").status == 405
    assert ask(server, live.PATH, "HEAD").status == 503


# -- looking -----------------------------------------------------------------------------------------------------------


def _looking(traces: Path, store: Path) -> Looking:
    ingest([str(traces)], store, jobs=1)
    looks = Looking([str(traces)], Store(store).manifest)
    assert looks.changed() == set(), "what the store has is no change"
    return looks


def test_a_change_is_seen_once_whatever_it_is(tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SHARE", 1e-9)  # so that all is looked at but once: those at work alone are
    agent = Agent(traces)
    looks = _looking(traces, tmp_path / "s")
    agent.works("parser")
    assert (looks.changed(), looks.changed()) == ({str(traces)}, set())
    Agent(traces, OTHER)
    assert (looks.changed(), looks.changed()) == ({str(traces)}, set()), "a new file beside one at work"
    agent.path.unlink()
    assert (looks.changed(), looks.changed()) == ({str(traces)}, set())


def test_what_is_not_at_work_is_looked_at_too_but_seldom(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "AT_WORK", 1)
    agent = Agent(traces)
    os.utime(agent.path, (1, 1))
    Agent(traces, OTHER)
    looks = _looking(traces, tmp_path / "s")
    agent.works("parser")
    os.utime(agent.path, (2, 2))
    monkeypatch.setattr(looks, "_next_s", time.monotonic() + 60)
    assert looks.changed() == set()
    monkeypatch.setattr(looks, "_next_s", 0.0)
    assert looks.changed() == {str(traces)}


def test_the_sources_of_a_store_are_those_that_are_there_from_here(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Agent(traces)
    other = tmp_path / "other"
    other.mkdir()
    Agent(other, OTHER)
    monkeypatch.chdir(tmp_path)
    ingest([str(traces), "other"], tmp_path / "s", jobs=1)
    manifest = Store(tmp_path / "s").manifest
    monkeypatch.chdir(traces)
    assert sources_of(manifest) == (sorted([str(other), str(traces)]), [])
    other.rename(tmp_path / "gone")
    assert sources_of(manifest) == ([str(traces)], [str(other)])


def test_only_sessions_of_files_that_differ_have_changed(tmp_path: Path, traces: Path) -> None:
    agent = Agent(traces)
    Agent(traces, OTHER)
    ingest([str(traces)], tmp_path / "s", jobs=1)
    before = Store(tmp_path / "s").manifest
    assert sessions_changed(before, before) == []
    agent.works("parser")
    ingest([str(traces)], tmp_path / "s", jobs=1)
    after = Store(tmp_path / "s").manifest
    assert sessions_changed(before, after) == [SESSION], "the other one's shard may be another now; it says the same"


# -- the verb ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("watches", [True, False])
def test_serve_makes_a_store_of_what_it_is_to_watch_and_ends_with_sigterm(
    tmp_path: Path, traces: Path, watches: bool
) -> None:
    Agent(traces)
    words = [sys.executable, "-m", "agentsignals", "serve", str(traces), "--store", str(tmp_path / "s"), "--port", "0"]
    words.append("--no-token")
    with subprocess.Popen([*words, *([] if watches else ["--no-watch"])], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        line = running.stdout.readline()
        assert (f"watches {traces}" in line) is watches
        port = int(line.split("/")[2].partition(":")[2])
        until, text = time.monotonic() + (30 if watches else 3), b""
        while time.monotonic() < until and SESSION.encode() not in text:
            time.sleep(0.2)
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
                connection.request("GET", "/sessions")
                text = connection.getresponse().read()
        assert (SESSION.encode() in text) is watches
        running.terminate()
        assert running.wait(20) == 128 + 15


# -- in a browser ------------------------------------------------------------------------------------------------------


@needs_browser
@pytest.mark.slow
def test_an_open_session_grows_at_its_end_and_a_list_offers_to_be_shown_anew(tmp_path: Path, traces: Path) -> None:
    agent = Agent(traces)
    for n in range(30):
        agent.works(f"part-{n}")
    ingest([str(traces)], tmp_path / "s", jobs=1)
    with serving(Store(tmp_path / "s")) as server, browsing() as reader:
        server.live.watch([str(traces)])
        reader.goto(f"{server.url}session/{SESSION}")
        opened = reader.locator("details").nth(3)
        opened.evaluate("fold => { fold.open = true; }")
        agent.works("above")
        reader.get_by_role("button", name="new event").wait_for()
        assert "make above" in reader.locator("main").inner_text()
        assert reader.evaluate("scrollY") == 0 and opened.evaluate("fold => fold.open")
        reader.get_by_role("button", name="new event").click()
        assert reader.evaluate("scrollY") > 0
        reader.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        agent.works("below")
        reader.get_by_text("make below").first.wait_for()
        reader.wait_for_timeout(200)
        assert reader.evaluate("innerHeight + scrollY >= document.documentElement.scrollHeight - 2")
        reader.goto(f"{server.url}sessions")
        agent.works("last")
        reader.get_by_role("button", name="1 session changed: reload").click()
        reader.get_by_role("button", name="changed").wait_for(state="detached")


@needs_browser
@pytest.mark.slow
def test_a_session_that_outgrows_the_part_it_ended_in_shows_every_event(tmp_path: Path, traces: Path) -> None:
    agent = Agent(traces)
    for n in range(PART - 5):
        agent.works(f"part-{n}")
    ingest([str(traces)], tmp_path / "s", jobs=1)
    with serving(Store(tmp_path / "s")) as server, browsing() as reader:
        server.live.watch([str(traces)])
        reader.goto(f"{server.url}session/{SESSION}")
        before = reader.locator(".entry").count()
        assert before < PART
        for n in range(8):
            agent.log.ran("Bash", "done", command=f"make more-{n}")
        agent.write()
        reader.get_by_role("button", name="New events").click()
        reader.get_by_text("make more-7").first.wait_for()
        assert reader.locator(".entry").count() == before + 8
