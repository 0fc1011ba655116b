"""The filter that all pages share: what each word chooses, what can't be read, and where it goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest

from agentsignals.model import Session
from agentsignals.store import Store
from agentsignals.ui.filter import Filter, filtered
from agentsignals.ui.page import Query
from agentsignals.ui.server import Server
from agentsignals.ui.snapshot import Snapshot
from tests.build import call, say, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import graded, trial
from tests.ui.served import EVIL, Elements, ask, page, serving

DAY = 86_400_000_000


def _at(made: Session, days: float | None) -> Session:
    """The session so many days after the beginning of 2026; None: no time is recorded."""
    for name in ("started_at", "ended_at"):
        setattr(made, name, None if days is None else getattr(made, name) + int(days * DAY))
    return made


def _sessions() -> list[Session]:
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
        _at(one, days)
    runs = trial(
        {"trial_id": "run-1", "verification": graded(fixed=2), "reward": 1.0},
        {"trial_id": "run-1", "verification": graded(unfixed=2), "reward": 0.0},
    )
    return [*made, *(run.session for run in runs)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_of(tmp_path_factory.mktemp("filter") / "store", *_sessions())


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Server]:
    with serving(store) as running:
        yield running


def _asked(store: Store, **words: str) -> tuple[Filter, str]:
    """The filter, and the sessions of people that fit it."""
    snapshot = Snapshot(store)
    made = filtered(Query(urlencode(words)), snapshot)
    rows = snapshot.rows(made.sessions, made.where.values)
    return made, "".join(sorted(row["session_id"] for row in rows if len(row["session_id"]) == 1))


@pytest.mark.parametrize(
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
def test_each_word_chooses_its_sessions(store: Store, words: dict[str, str], fit: str) -> None:
    made, sessions = _asked(store, **words)
    assert sessions == fit
    assert bool(made.chips) == bool(words)


def test_attempts_are_chosen_by_what_came_of_them(store: Store) -> None:
    snapshot = Snapshot(store)
    made = filtered(Query("outcome=solved"), snapshot)
    assert len(snapshot.rows(made.sessions, made.where.values)) == 1 and not made.notes


@pytest.mark.parametrize(
    ("words", "fit", "says"),
    [
        ({"agent": "nobody"}, "", "There is no session with agent “nobody”"),
        ({"tool": EVIL}, "", "There is no session with a call of “"),
        ({"failed": "Nothing"}, "", "no session with a call of “Nothing”"),
        ({"context": "'; DROP TABLE sessions"}, "", "no session with the context"),
        ({"from": "yesterday"}, "abcd", "from is a day as YYYY-MM-DD, not “yesterday”"),
        ({"to": "2026-02-30"}, "abcd", "to is a day"),
        ({"from": "20260101"}, "abcd", "from is a day"),
        ({"cost_min": "nan"}, "abcd", "cost_min is a number of dollars"),
        ({"cost_max": "1e999"}, "abcd", "cost_max is a number of dollars"),
        ({"from": "2026-01-02"}, "bc", "3 sessions without a recorded time: left out"),
        ({"from": "2026-01-01", "agent": "pi"}, "c", ""),
        ({"cost_max": "1000"}, "ad", "without a cost: left out"),
        ({"where": "user.tool_eror_rate>=1"}, "abcd", "user.tool_error_rate"),
        ({"where": "user.tool_error_rate>=many"}, "abcd", "is a number, not “many”"),
        ({"where": "user.tool_error_rate>=inf"}, "abcd", "is a number"),
        ({"where": "user.session_outcome>=accepted"}, "abcd", "has no order"),
        ({"where": "user.session_outcome="}, "abcd", "lacks a value"),
        ({"where": "corpus.cost_per_session>=1"}, "abcd", "one value over all sessions"),
        ({"where": "1=1) OR (1=1"}, "abcd", "Left out"),
        ({"where": "hello"}, "abcd", "is no condition"),
        ({"where": ";".join(f"user.tool_error_rate>={n}" for n in range(-30, 0))}, "abcd", "the first 20 are asked"),
        ({"where": "x" * 5000}, "abcd", "at most 300 characters"),
        ({"missing": "everything"}, "abcd", "nothing that can be missing"),
        ({"behind": "study:no:such"}, "", "Nothing counts “study:no:such”"),
    ],
)
def test_what_is_nowhere_or_can_not_be_read_is_said(store: Store, words: dict[str, str], fit: str, says: str) -> None:
    made, sessions = _asked(store, **words)
    assert sessions == fit
    assert says in " ".join(made.notes) and bool(made.notes) == bool(says)
    is_unread = any("is a day" in note or "is a number of dollars" in note for note in made.notes)
    assert bool(made.words) != is_unread, "what could not be read is in no field, which would complain of it"


def test_a_chip_leads_to_the_address_without_it_and_clear_to_the_address_without_any(server: Server) -> None:
    condition = "where=user.tool_error_rate%3E%3D0.1&signal=user.session_outcome&op=absent"
    text = page(server, f"/sessions?agent=claude-code&{condition}&order=agent")
    links = [a["href"] for _, a in Elements(text).elements if (a.get("aria-label") or "").startswith("Remove")]
    assert links == [
        "?where=user.tool_error_rate%3E%3D0.1%3Buser.session_outcome+absent&order=agent",
        "?agent=claude-code&where=user.session_outcome+absent&order=agent",
        "?agent=claude-code&where=user.tool_error_rate%3E%3D0.1&order=agent",
    ]
    assert '<a class="clear" href="?order=agent">' in text
    assert "1–1 of 1 sessions" in text


def test_the_filter_goes_on_to_every_page_and_its_values_stay_text(server: Server) -> None:
    words = f"agent={quote(EVIL, safe='')}&from=2026-01-01&order=agent&page=2"
    for path in ("/", "/sessions", "/signals", "/studies", "/artifacts", "/session/a", "/signal/user.tool_error_rate"):
        elements = Elements(page(server, f"{path}?{words}"))
        tops = [
            a["href"] or "" for tag, a in elements.elements if tag == "a" and (a.get("href") or "").startswith("/sig")
        ]
        assert tops[0].startswith("/signals?agent=%3C%2Fscript%3E") and "from=2026-01-01" in tops[0], path
        assert "order=" not in tops[0] and "page=" not in tops[0]
        assert not [tag for tag, attrs in elements.elements if tag == "img" or "onerror" in attrs], path


def test_links_to_what_only_passes_the_filter_on_have_it_and_lists_choose_themselves(server: Server) -> None:
    words = "agent=pi&text=%22%3E%3Cimg%3E%26context%3Deval"
    for path in ("/studies", "/session/c", "/session/c/explain/user.tool_error_rate"):
        elements = Elements(page(server, f"{path}?{words}"))
        links = [href for href in elements.all_of("href") if re.match(r"/(session|studies|signal)/", href)]
        assert links and all("text=%22%3E%3Cimg%3E%26context%3Deval&agent=pi" in link for link in links), path
        assert not [tag for tag, _ in elements.elements if tag == "img"]
    behind = page(server, "/behind?key=study:tools:tools.mcp_sessions&agent=pi")
    lists = [href for href in Elements(behind).all_of("href") if href.startswith("/sessions?behind")]
    assert lists and not [href for href in lists if "agent" in href], "a number opens the sessions that it counts"
    outline = Elements(page(server, "/session/a?agent=pi")).all_of("href")
    assert "/sessions?agent=pi" in outline
    assert all("agent=pi" in href for href in outline if href.startswith("?"))


@pytest.mark.slow
def test_hostile_addresses_are_answered(server: Server) -> None:
    plain = ("agent", "model", "repo", "branch", "context", "outcome", "from", "to", "cost_min", "tool", "text")
    odd = ("failed", "file", "where", "missing", "behind", "signal", "op", "value", "cost_max")
    for value in (EVIL, "%00", "' OR 1=1 --", "$agent>=1", "%FF%FE", "9" * 3000, "a;b;c", "user.goal={where}", "-1"):
        for words in (plain, odd):
            address = "&".join(f"{word}={quote(value, safe='%')}" for word in words)
            assert ask(server, f"/sessions?{address}").status == 200, value
    for path in ("/", "/signals", "/signal/user.tool_error_rate", "/signal/user.session_outcome", "/session/a"):
        for address in (f"agent={quote(EVIL)}&to=%00&model=%FF", "where=%24x;;%3E=;user.goal=%27&behind=finding:x"):
            assert ask(server, f"{path}?{address}").status == 200, (path, address)
