"""The local page over real HTTP: what it shows, whom it refuses, and what hostile traces do to it."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import pytest

from agentsignals.cli import demo_corpus, main
from agentsignals.errors import AgentSignalsError, StoreError
from agentsignals.ingest import pipeline
from agentsignals.model import AbsentReason
from agentsignals.questions.studies import studies
from agentsignals.store import Store
from agentsignals.ui import page as words
from agentsignals.ui.page import queries
from agentsignals.ui.server import Server, started
from agentsignals.words.text import visible
from tests.build import call, say, session, user
from tests.questions.stores import store_of
from tests.quick import some
from tests.ui.served import EVIL, EVIL_ID, Answer, Elements, ask, page, serving, text_of

SQLISH = (
    "' OR 1=1 --", "'; DROP TABLE sessions; --", "%", "_", "$text", "\\",
    "x' UNION SELECT path FROM artifacts --",
)  # fmt: skip
ROUTES = (
    "/", "/finding/loops.failing", "/finding/data-quality.records", "/code", "/compare", "/failures", "/sessions",
    "/search", "/search?q=window+onerror", "/attempts", "/labels", "/signals", "/studies", "/artifacts",
)  # fmt: skip


def everywhere() -> list[str]:
    """Addresses of every kind of page, the hostile session's among them."""
    evil = quote(EVIL_ID, safe="")
    of_session = (
        "", "?only=edits,failures", "/part", "/turns", "/raw/1", "/image/1", "/explain/user.tool_error_rate",
    )  # fmt: skip
    about = [f"/session/{name}{more}" for name in ("fine-1", evil) for more in of_session]
    some = ["user.tool_error_rate", "behavior.touched_files%5B%5D", "user.session_outcome", "corpus.cost_per_session"]
    return [
        *ROUTES,
        *about,
        *(f"/signal/{path}" for path in some),
        "/behind?key=study:errors:errors.rate",
        "/behind?key=study:tools:tools.classes:test",
        f"/sides?a=fine-1&b={evil}",
        f"/?agent={evil}&model=x",
        "/?context=eval",
        f"/sessions?repo={quote(EVIL, safe='')}&where=user.tool_error_rate%3E0",
        *(f"/signals?context={context}" for context in ("product", "eval")),
        *(f"/studies/{name}?context=product" for name in ("sessions", "worth_opening", "errors", "tools")),
    ]


# -- what it shows -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(server: Server) -> dict[str, Answer]:
    return {path: ask(server, path) for path in everywhere()}


@pytest.mark.slow
def test_every_route_answers_and_carries_the_policy(pages: dict[str, Answer]) -> None:
    for path, got in pages.items():
        assert got.status == 200, f"{path}: {got.text[-300:]}"
        policy = got.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["Referrer-Policy"] == "no-referrer" and got.headers["Cache-Control"] == "no-store"
        assert int(got.headers["Content-Length"]) == len(got.text.encode())


SEEN_IN_BOTH = [*studies()][::8]
"""What another context changes of a page is the same of all studies."""


@pytest.mark.slow
@pytest.mark.parametrize("name", some(studies(), 4))
def test_every_study_has_its_page(server: Server, name: str) -> None:
    for context in ("product", "eval") if name in SEEN_IN_BOTH else ("product",):
        assert "Limits" in (told := page(server, f"/studies/{name}?context={context}")) or ("No results" in told)


@pytest.mark.slow
def test_the_links_of_the_pages_lead_to_pages(server: Server, pages: dict[str, Answer]) -> None:
    """What a click reaches is there, from every page, and nothing leads away from this machine."""
    seen: set[str] = set()
    for path, got in pages.items():
        told = Elements(got.text)
        for link in [*told.all_of("href"), *told.all_of("src"), *told.all_of("action")]:
            assert not re.match(r"(?i)[a-z]+:|//", link) or link == "data:,", link
            seen.add(link if link.startswith("/") else path.partition("?")[0] + link)
    wanted = sorted(link.partition("#")[0] for link in seen if "/studies/" not in link and not link.endswith("data:,"))
    assert len(wanted) > 100
    of_a_shape: dict[str, list[str]] = {}  # of `/signal/…` and `/behind?key=…` there are hundreds
    for link in dict.fromkeys(wanted):
        path, _, query = link.partition("?")
        kind, *rest = path.strip("/").split("/")
        of_a_shape.setdefault(f"{kind} {len(rest)} {re.findall('([^=&]+)=', query)}", []).append(link)
    for links in of_a_shape.values():
        for link in links[:8]:
            assert ask(server, link).status == 200, link


def test_the_overview_tells_what_was_read_and_what_was_skipped_and_counts_contexts_apart(server: Server) -> None:
    said = text_of(server, "/")
    assert "Sessions 2" in said and "Attempts 2" in said
    assert "2 bad json" in said


def test_a_session_is_told_in_turns_with_its_calls_results_edits_and_subagents_folded(server: Server) -> None:
    text = page(server, "/session/fine-1")
    said = " ".join(Elements(text).said.split())
    assert "Turn 1 Fix the parser, please" in said and "Turn 2 thanks" in said
    assert "Bash pytest -q error" in said and "1 failed" in said
    assert "subagent agent-7" in said and re.search('<details class="thread" data-thread="agent-7" id', text)
    assert "all 1,900 characters" in said
    assert "src/parse.py" in said
    assert said.rindex("Signals") > said.index("Turn 2")
    assert "tool error rate 0.333 ratio" in said


def test_a_signal_without_a_value_says_why_and_never_zero(server: Server) -> None:
    said = text_of(server, "/session/fine-1")
    assert "instruction adherence needs a judge or model that is not enabled" in said
    explained = text_of(server, "/session/fine-1/explain/anticipation.instruction_adherence")
    assert "Absent: needs a judge or model that is not enabled ( backend_disabled" in explained
    assert set(words.REASONS) == set(get_args(AbsentReason))


def test_a_value_leads_to_its_evidence_and_the_evidence_to_the_event(server: Server) -> None:
    explained = page(server, "/session/fine-1/explain/user.tool_error_rate")
    said = " ".join(Elements(explained).said.split())
    assert "support" in said and "Bash pytest -q" in said and "1 shown" not in said
    link = re.search(r'href="(/session/fine-1\?at=(\d+)#e\2)"', explained)
    assert link
    shown = page(server, link[1].partition("#")[0])
    assert re.search(rf'class="entry [^"]* here" id="e{link[2]}"', shown)


def test_evidence_in_a_subagent_or_a_result_opens_what_is_folded_over_it(server: Server) -> None:
    known = server.snapshots.current().store.session("fine-1")
    deep = next(c for c in known.tool_calls if c.thread == "agent-7")
    assert '<details class="thread" data-thread="agent-7" open>' in page(server, f"/session/fine-1?at={deep.seq}")
    failed = next(c for c in known.tool_calls if c.status == "error")
    assert f'<details class="result here" id="e{failed.result_seq}" open>' in page(
        server, f"/session/fine-1?at={failed.result_seq}"
    )


def test_a_long_session_is_shown_in_parts_and_an_event_is_found_in_its_part(tmp_path: Path) -> None:
    parts = [part for n in range(450) for part in (say(f"word-{n}-end"),)]
    with serving(store_of(tmp_path / "s", session(user("go"), *parts, session_id="long"))) as running:
        first, last = page(running, "/session/long"), page(running, "/session/long?page=8")
        assert "word-10-end" in first and "word-449-end" not in first
        assert "word-449-end" in last and "word-10-end" not in last
        assert 'id="e440"' in page(running, "/session/long?at=440")
        assert "word-449-end" in page(running, "/session/long?page=99999999")


@pytest.mark.slow
def test_sessions_are_filtered_ordered_and_shown_in_parts(tmp_path: Path) -> None:
    many = []
    for n in range(120):
        made = session(user(f"task number {n:03d}"), *[call("Read", path="a.py")] * (n % 7), session_id=f"s{n:03d}")
        made.agent = "codex" if n % 2 else "pi"
        many.append(made)
    with serving(store_of(tmp_path / "s", *many)) as running:

        def listed(query: str) -> list[str]:
            return re.findall(r'<td class="text"><a href="/session/([^"?]+)', page(running, f"/sessions{query}"))

        assert (
            len(listed("")) == 50
            and len(listed("?page=3")) == 20
            and "1–50 of 120 sessions" in page(running, "/sessions")
        )
        assert listed("?page=2")[0] not in listed("") and len(listed("?page=99")) == 20
        assert listed("?text=NUMBER+042") == ["s042"] and listed("?text=s119") == ["s119"]
        assert {int(one[1:]) % 2 for one in listed("?agent=codex")} == {1}
        assert {int(one[1:]) % 7 for one in listed("?order=n_tool_calls")[:17]} == {6}
        assert {int(one[1:]) % 7 for one in listed("?order=n_tool_calls&way=up")[:17]} == {0}
        assert listed("?agent=nobody") == [] and listed("?order=1;DROP") == listed("")
        assert "No matching sessions." in page(running, "/sessions?text=nowhere")


def test_attempts_show_treatment_and_outcome_and_are_filtered_by_them(server: Server) -> None:
    said = text_of(server, "/attempts")
    assert "correct patch" in said and "no effect patch" in said and "1–2 of 2 attempts" in said
    assert "95% interval" in said and "cap 40" in said
    only = Elements(page(server, "/attempts?outcome=solved")).said
    assert "1–1 of 1 attempts" in " ".join(only.split())


def test_the_catalogue_counts_values_and_absences_of_one_context_at_a_time(server: Server) -> None:
    text = page(server, "/signals?name=user.tool_error_rate")
    row = re.search(r"/signal/user\.tool_error_rate.*?</tr>", text, re.DOTALL)
    assert row and re.findall(r'<td class="num">(\d+)</td>', row[0])[:1] == ["2"] and "none" in row[0]
    assert (
        "user.tool_error_rate"
        not in page(server, "/signals?context=eval&name=user.tool_error_rate").split("<thead>")[1]
    )


def test_a_signal_shows_its_spread_and_the_sessions_at_its_ends(server: Server) -> None:
    text = page(server, "/signal/user.tool_error_rate")
    said = " ".join(Elements(text).said.split())
    assert "2 values in 2 sessions; 0 absent." in said and "Highest" in said and "Lowest" in said
    assert "ratio across; n = 2" in said and said.index("Highest") < said.index("Lowest")
    ends = re.findall(r'<b>([^<]+)</b></td><td class="text"><a href="([^"]+)"', text)
    assert ends[0][1] == f"/session/{quote(EVIL_ID, safe='')}/explain/user.tool_error_rate"
    assert ends[-1] == ends[0] and ends[1][1] == "/session/fine-1/explain/user.tool_error_rate"


def test_files_are_found_by_the_reason_records_were_skipped_for(server: Server) -> None:
    rows = page(server, "/artifacts?reason=bad_json").split("<tbody>")[-1]
    assert rows.count("<tr>") == 1 and "2 bad json" in rows
    assert page(server, "/artifacts").split("<tbody>")[-1].count("<tr>") == 2


def test_files_that_are_no_traces_are_counted_by_their_ending(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.abcdefghijk", "b.abcdefghijkl", "c"):
        (tmp_path / "in" / name).write_text("x")
    pipeline.ingest([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    with serving(Store(tmp_path / "store")) as running:
        assert "by file extension: 2 no ending 1 .abcdefghijk" in text_of(running, "/artifacts")


# -- whom it refuses ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost:1",
        "127.0.0.1:{port}.evil.example",
        "",
        "[::1]:{port}",
    ],
)
def test_another_host_is_refused(server: Server, host: str) -> None:
    for path in ("/", "/sessions", "/static/ui.css"):
        got = ask(server, path, headers={"Host": host.format(port=server.port)})
        assert got.status == 421 and "agentsignals" not in got.text


def test_our_own_names_are_answered_and_two_hosts_are_not(server: Server) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert ask(server, "/", headers={"Host": f"{name}:{server.port}"}).status == 200
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nHost: evil.example\r\n\r\n".encode())
        assert raw.recv(65536).startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FROBNICATE"])
def test_nothing_but_reading_is_allowed(server: Server, method: str) -> None:
    got = ask(server, "/sessions", method)
    assert got.status == 405 and got.headers["Allow"] == "GET, HEAD"
    assert "default-src 'none'" in got.headers["Content-Security-Policy"]


def test_head_says_what_get_would_without_the_page(server: Server) -> None:
    asked, got = ask(server, "/sessions", "HEAD"), ask(server, "/sessions")
    assert asked.status == 200 and asked.text == "" and asked.headers["Content-Length"] == str(len(got.text.encode()))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/session/nobody", "There is no session &#39;nobody&#39;"),
        ("/session/fine-1/explain/no.such", "There is no signal &#39;no.such&#39;"),
        ("/signal/no.such", "There is no signal"),
        ("/studies/nothing", "There is no study"),
        ("/nowhere", "Page not found: /nowhere"),
        ("/session", "Page not found:"),
        ("/static/../server.py", "Page not found:"),
        ("/static/page.html.j2", "Page not found:"),
        ("/session/fine-1/more", "Page not found:"),
        ("/" + "a/" * 5000, "Page not found:"),
        ("/%3Cscript%3E", "Page not found: /%3Cscript%3E"),
    ],
)
def test_what_is_not_there_is_a_404_that_says_so(server: Server, path: str, says: str) -> None:
    got = ask(server, path)
    assert got.status == 404 and says in got.text and "<nav" in got.text
    assert "Content-Security-Policy" in got.headers


def test_an_odd_address_costs_nobody_anything(server: Server) -> None:
    for path in (
        "/sessions?" + "a=1&" * 100,
        "/sessions?page=-1",
        "/sessions?page=" + "9" * 5000,
        "/session/fine-1?at=1e9",
        "/session/fine-1?at=99999999999",
        "/session/%FF%FE",
        "/sessions?text=%FF%00",
        "/signal/%00",
        "/finding/%00",
        "/finding/money.%27",
        "//evil.example/",
    ):
        assert ask(server, path).status in (200, 400, 404), path
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"\x00\xff garbage\r\n\r\n")
        assert raw.recv(65536) == b"Bad Request\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: " + b"x" * 70_000)
        told = raw.recv(65536)
        assert told.startswith(b"HTTP/1.1 431 ") and b"Content-Security-Policy" in told
    assert ask(server, "/").status == 200


# -- what stands out ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def circling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Sessions in which one failing call with a hostile name is made again and again."""
    parts = [call("Bash", command=EVIL, status="error", result="no")] * 5
    sessions = [session(user("go"), *parts, session_id=f"{n}{EVIL_ID}", repo=EVIL) for n in range(9)]
    with serving(store_of(tmp_path_factory.mktemp("circling") / "store", *sessions)) as running:
        yield running


def test_the_first_screen_is_what_stands_out_and_each_opens_what_it_rests_on(circling: Server) -> None:
    until = time.monotonic() + 60
    while "being computed" in page(circling, "/") and time.monotonic() < until:
        time.sleep(0.2)
    first = Elements(page(circling, "/"))
    links = [a["href"] for tag, a in first.elements if tag == "a" and (a.get("href") or "").startswith("/finding/")]
    link = "/finding/loops.failing?context=product"
    assert link in links
    assert (
        first.said.index("Failed tool calls") < first.said.index("the same failing call") < first.said.index("Filter")
    )
    assert list(circling.snapshots.folder.glob("findings.*.json")), "a page of another server has it at once"
    made = Elements(page(circling, link))
    said = " ".join(made.said.split())
    assert (
        "Where do agents repeat the same failing call?" in said
        and "Interrupt the agent at the third identical failure" in said
    )
    assert "are not seen" in said and "45 rows" in said and "agentsignals findings loops.failing" in said
    into = sorted({a["href"] for tag, a in made.elements if tag == "a" and "?at=" in (a.get("href") or "")})
    assert len(into) == 45
    path, _, mark = str(into[0]).partition("#")
    assert f'id="{mark}"' in page(circling, path), "a row opens at its event"
    assert not [tag for tag, _ in made.elements if tag == "img"]


def test_a_finding_shows_the_first_rows_and_says_so(circling: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsignals.ui.pages.overview.MOST_ROWS", 7)
    with serving(Store(circling.snapshots.folder)) as fresh:
        assert "the 7 largest rows" in page(fresh, "/finding/loops.failing")


def test_of_too_few_sessions_the_first_screen_says_why_nothing_stands_out(server: Server) -> None:
    assert "findings need at least 5 sessions" in page(server, "/")
    assert "/?context=product" in page(server, "/?context=eval")


# -- hostile text ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_hostile_text_is_text_on_every_page(server: Server, pages: dict[str, Answer]) -> None:
    quoted = 0
    for path, got in pages.items():
        text, told = got.text, Elements(got.text)
        assert not [tag for tag, attrs in told.elements if tag == "img" or "onerror" in attrs], path
        scripts = [attrs for tag, attrs in told.elements if tag == "script"]
        assert all(
            attrs.get("src", "").startswith("/static/") or attrs.get("type") == "application/json" for attrs in scripts
        )
        assert not [
            attrs for _, attrs in told.elements if "style" in attrs or any(key.startswith("on") for key in attrs)
        ]
        assert "49[U+202E]" not in told.said, path
        outside = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
        assert "\u202e" not in outside and "\x07" not in text, path
        quoted += "window.pwned" in told.said
    assert quoted > 6
    assert "{{7*7}}[U+202E]gpj.exe&lt;[U+0007]" in Elements(page(server, f"/session/{quote(EVIL_ID, safe='')}")).said


@pytest.mark.slow
@pytest.mark.parametrize("typed", SQLISH)
def test_what_people_type_is_never_sql(server: Server, typed: str) -> None:
    fields = {
        "/sessions": ("text", "agent", "order", "way"),
        "/attempts": ("text", "order"),
        "/signals": ("text", "name"),
    }
    fields["/artifacts"] = ("path", "reason")
    for path, name in [(path, name) for path, names in fields.items() for name in names]:
        got = ask(server, f"{path}?{name}={quote(typed, safe='')}")
        assert got.status == 200
        if name in ("text", "path") and path != "/signals" and len(typed) > 1:
            assert f"No matching {path[1:].replace('artifacts', 'files')}." in got.text, typed
    assert "1–2 of 2 attempts" in " ".join(page(server, "/attempts").split())


def test_a_filter_finds_percent_signs_and_quotes_as_they_are(tmp_path: Path) -> None:
    made = [session(user(text), session_id=f"s{n}") for n, text in enumerate(["100% o'clock", "nothing"])]
    with serving(store_of(tmp_path / "s", *made)) as running:
        for typed in ("%", "0% O'", "'"):
            assert "1–1 of 1 sessions" in page(running, f"/sessions?text={quote(typed)}"), typed


def test_unseen_characters_are_seen_and_others_left_alone() -> None:
    assert visible("a\u202eb\u2066c\u200bd\x00e\x1b[31m") == "a[U+202E]b[U+2066]c[U+200B]d[U+0000]e[U+001B][31m"
    assert visible("שלום\tGrüße\n日本 👍🏽") == "שלום\tGrüße\n日本 👍🏽"
    assert visible("\ud800") == "\ufffd"


# -- the store underneath ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_empty_store_has_every_page(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", create=True)
    store.save()
    with serving(store) as running:
        lists = [path for path in ROUTES if not path.startswith("/finding/")]
        for path in (*lists, "/signal/user.tool_error_rate", *(f"/studies/{name}" for name in studies())):
            page(running, path)
        assert ask(running, "/finding/loops.failing").status == 404
        assert "The store holds no session yet" in page(running, "/")
        assert "No eval attempts yet" in page(running, "/attempts")
        assert ask(running, "/session/x").status == 404


@pytest.mark.slow
def test_what_is_read_while_it_serves_is_shown_and_what_is_swept_away_is_not_missed(tmp_path: Path) -> None:
    corpus = demo_corpus.make_corpus(tmp_path / "corpus")
    folders = sorted(p for p in corpus.iterdir() if p.is_dir())
    pipeline.analyze([str(folders[0])], tmp_path / "store", jobs=1)
    with serving(Store(tmp_path / "store")) as running:
        before = Elements(page(running, "/")).said
        page(running, "/sessions")
        pipeline.analyze([str(corpus)], tmp_path / "store", jobs=1)
        after = Elements(page(running, "/")).said
        n = len(Store(tmp_path / "store").manifest.sessions)
        assert before != after and f"of {n} sessions" in page(running, "/sessions")
        for found in Store(tmp_path / "store").manifest.sessions:
            page(running, f"/session/{quote(found, safe='')}")


def test_a_store_whose_files_are_gone_is_an_answer_and_not_the_end(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", session(user("hello")))
    with serving(store) as running:
        for folder in (store.folder / "shards").iterdir():
            shutil.rmtree(folder)
        for path in ("/sessions", "/session/s1"):
            got = ask(running, path)
            assert got.status in (200, 503), got.text[-300:]
        assert ask(running, "/session/s1").status == 503
        assert ask(running, "/static/ui.css").status == 200


@pytest.mark.slow
def test_many_readers_at_once_are_all_answered(server: Server) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda path: ask(server, path).status, [*ROUTES, "/session/fine-1"] * 8))
    assert set(answers) == {200}


# -- the verb ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="the tests run where Ctrl-C is ignored, as behind nohup"
)
def test_the_verb_says_where_it_is_and_ends_quietly_on_ctrl_c(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", session(user("hello")))
    given = [
        sys.executable,
        "-m",
        "agentsignals",
        "serve",
        "--store",
        str(store.folder),
        "--port",
        "0",
        "--json",
        "--no-token",
    ]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout and running.stderr
        told = ""
        while not told.rstrip().endswith("}"):
            line = running.stdout.readline()
            assert line, running.stderr.read()
            told += line
        url = json.loads(told)["url"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url) and json.loads(told)["store"] == str(store.folder)
        connection = http.client.HTTPConnection("127.0.0.1", int(url.rsplit(":", 1)[1].strip("/")), timeout=30)
        connection.request("GET", "/sessions")
        assert b"hello" in connection.getresponse().read()
        connection.close()
        running.send_signal(signal.SIGINT)
        try:
            assert running.wait(30) == 0
        finally:
            running.kill()
        assert running.stderr.read() == ""


def test_a_port_that_is_taken_is_refused_when_named_and_left_when_not(tmp_path: Path, monkeypatch: Any) -> None:
    store = store_of(tmp_path / "s", session(user("hello")))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AgentSignalsError, match=f"Cannot listen on 127.0.0.1:{port}"):
            started(store.folder, port)
        monkeypatch.setattr("agentsignals.ui.server.PORT", port)
        other = started(store.folder)
        other.server_close()
        assert other.port != port
    with pytest.raises(AgentSignalsError, match=":99999"):
        started(store.folder, 99999)


def test_it_listens_on_this_machine_alone(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_without_a_store_the_verb_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StoreError):
        started(tmp_path / "none")
    assert main(["serve", "--store", str(tmp_path / "none")]) == 1
    assert "agentsignals analyze" in capsys.readouterr().err


def test_a_query_that_duckdb_refuses_is_our_error_and_a_changed_store_is_told_as_one(
    tmp_path: Path, monkeypatch: Any
) -> None:
    store = store_of(tmp_path / "store", session(user("hi"), session_id="s1"))
    with serving(store) as running:
        monkeypatch.setitem(queries(), "sessions.count", "SELECT no_such_column AS n FROM sessions")
        got = ask(running, "/sessions")
        assert got.status == 500
        assert "no_such_column" in got.text and "error of agentsignals" in got.text
        assert "may have changed" not in got.text
