"""Full text search: what is found, what nobody can break by typing, and that nothing forgotten stays in the index."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.cli import declarations, main
from agentsignals.errors import UsageError
from agentsignals.ingest import pipeline
from agentsignals.ingest.maintenance import forget
from agentsignals.store import Store, fulltext
from agentsignals.store.fulltext import KINDS, Results, excerpt, parse_question, search
from tests.build import call, event, say, session, think, user
from tests.claude import Log
from tests.questions.stores import store_of
from tests.quick import each_row

LONG = "filler " * 200


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    talk = session(
        user("Fix the merge conflicts in GetOrCreateEntireSessionID, please"),
        think("perhaps the Zwischenspeicher is stale"),
        say(f"{LONG} I found parse_http_header and HTTPServerConfig there."),
        call("Read", path="src/store/open_store.py", result="class OpenStore:\n    pass"),
        call("Bash", command="pytest -q --maxfail=3", status="error", result="E  AssertionError: naïve café"),
        event("notification", "the harness says hello"),
        session_id="talk-1",
        cwd="/home/me/tools",
        repo="me/tools",
    )
    other = session(
        user("修复解析器的错误 and run the tests; merge it, no conflict here\x00nulling"),
        call("Edit", path="src/a.py", old_string='x = "früh"\ny', new_string="GetOrCreate()"),
        call("mcp__tracker__list_issues", result="merge conflicts, conflicts, conflicts"),
        say("merge\nconflicts are gone; merges and conflicting are other words"),
        session_id="other-2",
        cwd="/home/me/site",
    )
    other.agent, other.title = "codex", "Laying the tablecloth"
    return store_of(tmp_path_factory.mktemp("fulltext") / "store", talk, other)


def kinds(results: Results) -> dict[str, list[str]]:
    """The kinds of the passages that fit, by session."""
    return {session.session_id: [*session.by_kind] for session in results.sessions}


@each_row(
    ("typed", "expected"),
    [
        ("GetOrCreateEntireSessionID", {"talk-1": ["prompt"]}),
        ("getorcreateentiresessionid", {"talk-1": ["prompt"]}),
        ("EntireSession", {"talk-1": ["prompt"]}),
        ("sessionid", {"talk-1": ["prompt"]}),
        ("GetOrCreate", {"talk-1": ["prompt"], "other-2": ["command"]}),
        ("ServerConfig", {"talk-1": ["reply"]}),
        ("http_header", {"talk-1": ["reply"]}),
        ("http-header", {"talk-1": ["reply"]}),
        ("parse_http_headers", {}),
        ("open_store", {"talk-1": ["path"]}),
        ("store/open", {"talk-1": ["path"]}),
        ("openstore", {"talk-1": ["result"]}),
        ("merge conflicts", {"talk-1": ["prompt"], "other-2": ["reply", "result"]}),
        ("merge conflict", {"talk-1": ["prompt"], "other-2": ["prompt", "reply", "result"]}),
        ('"merge conflicts"', {"talk-1": ["prompt"], "other-2": ["reply", "result"]}),
        ('"merge conflict"', {}),
        ('"merge conflict"*', {"talk-1": ["prompt"], "other-2": ["reply", "result"]}),
        ("merge -conflict", {}),
        ("merge -merge", {}),
        ("--maxfail", {"talk-1": ["command"]}),
        ("pytest --maxfail=3", {"talk-1": ["command"]}),
        ("pytest -q", {"talk-1": ["command"]}),
        ('merge -"no conflict"', {"talk-1": ["prompt"], "other-2": ["reply", "result"]}),
        ("conflict -gone", {"talk-1": ["prompt"], "other-2": ["prompt", "result"]}),
        ("merge conflicts kind:reply", {"other-2": ["reply", "result"]}),
        ("merge conflicts -kind:prompt", {"other-2": ["reply", "result"]}),
        ("kind:prompts,replies merge conflicts", {"talk-1": ["prompt"], "other-2": ["reply", "result"]}),
        ("maxfail", {"talk-1": ["command"]}),
        ("pytest tool:bash", {"talk-1": ["command"]}),
        ("pytest -tool:bash", {}),
        ("tool:tracker", {}),
        ("tool:mcp__tracker conflicts", {"other-2": ["result"]}),
        ("agent:codex merge", {"other-2": ["prompt", "reply", "result"]}),
        ("-agent:codex merge", {"talk-1": ["prompt"]}),
        ("repo:me/tools merge", {"talk-1": ["prompt"]}),
        ("repo:SITE merge conflicts", {"other-2": ["reply", "result"]}),
        ("session:talk merge", {"talk-1": ["prompt"]}),
        ("context:eval merge", {}),
        ("zwischen", {"talk-1": ["thinking"]}),
        ("harness", {"talk-1": ["other"]}),
        ("tablecloth", {"other-2": ["title"]}),
        ("nulling kind:prompt", {"other-2": ["prompt"]}),
        ("naive CAFÉ", {"talk-1": ["result"]}),
        ("frueh", {}),
        ("früh", {"other-2": ["command"]}),
        ("解析", {"other-2": ["prompt"]}),
        ("析解", {}),
        ("y", {"other-2": ["command"]}),
        ("an", {}),
        ("an*", {"talk-1": ["reply"], "other-2": ["prompt", "reply"]}),
        ("onflict", {}),
    ],
)
def test_words_are_found_where_they_stand(store: Store, typed: str, expected: dict[str, list[str]]) -> None:
    found = kinds(search(store, typed))
    if "kind:" in typed:  # the kinds that did not count are shown, too
        assert found.keys() == expected.keys()
    else:
        assert found == expected


def test_a_session_is_listed_with_what_was_said_and_counted_whole(store: Store) -> None:
    results = search(store, "merge conflicts", most_hits=1)
    assert (results.n_sessions, results.n_passages, results.is_lower_bound) == (2, 3, False)
    assert results.by_kind == {"prompt": 1, "reply": 1, "result": 1}
    of_it = {s.session_id: s for s in results.sessions}["other-2"]
    assert (of_it.n, of_it.agent, of_it.place, len(of_it.hits)) == (2, "codex", "/home/me/site", 1)
    hit = of_it.hits[0]
    assert (hit.kind, hit.tool) == ("reply", None) and hit.timestamp is not None
    assert [hit.text[a:b] for a, b in hit.marks] == ["merge", "conflicts", "merges"]
    events = {e.seq: e for e in store.session("other-2").events}
    assert events[hit.seq].kind == "text"


def test_the_passages_of_a_result_name_its_tool(store: Store) -> None:
    hit = search(store, "AssertionError").sessions[0].hits[0]
    assert (hit.kind, hit.tool) == ("result", "Bash")


def test_order_limit_and_choice(store: Store) -> None:
    newest, most = (search(store, "conflict", order=order) for order in ("newest", "most"))
    assert most.sessions[0].session_id == "other-2" and newest.n_sessions == most.n_sessions == 2
    assert [s.session_id for s in search(store, "conflict", limit=1, start=1).sessions] == [
        newest.sessions[1].session_id
    ]
    assert search(store, "conflict", limit=1).n_sessions == 2
    assert kinds(search(store, "conflict", among={"talk-1"})) == {"talk-1": ["prompt"]}
    only = search(store, "conflict", kinds=["result"])
    assert (only.n_sessions, only.n_passages, only.by_kind["prompt"]) == (1, 1, 2)
    for wrong in ({"kinds": ["prompts"]}, {"order": "best"}, {"limit": -1}):
        with pytest.raises(UsageError):
            search(store, "conflict", **wrong)  # type: ignore[arg-type]


# -- what people type --------------------------------------------------------------------------------------------------

HOSTILE = (
    '"', '""', "'", "-", "--", "-*", "*", '"*', "NEAR(a b)", "a AND", "OR", "NOT x", "(", ")", "{text}: a", "text:a",
    "^a", "a:b:c", "tool:", 'tool:"', "kind:nonsense", "-kind:", "a+b", "\x00", "a\x00b", "\ud800", "🦀", "%", "_",
    "' OR 1=1 --", "'; DROP TABLE passages; --", "a" * 5000, "a " * 3000, '-"a', "ﷺ", "\u0301", "x\u0301*", "٣", "½",
)  # fmt: skip


@each_row("typed", HOSTILE)
def test_nothing_that_is_typed_is_an_error(store: Store, typed: str) -> None:
    assert search(store, typed).n_sessions <= 2
    assert search(store, f"merge {typed}").n_sessions <= 2


@settings(max_examples=25)
@given(st.text(max_size=30) | st.text(alphabet='ab"*-:(){}^ \x00é修', max_size=20))
def test_no_text_is_an_error(store: Store, typed: str) -> None:
    for text in (typed, f'merge -{typed}"', f"tool:{typed} a"):
        search(store, text, limit=0)


@given(st.text(alphabet="abcABC019_-./ é修", min_size=1, max_size=25), st.text(alphabet="ab cé修.", max_size=40))
def test_what_is_marked_was_looked_for(word: str, around: str) -> None:
    question = parse_question(word)
    shown, marks = excerpt(f"{around} {word} {around}", question.terms)
    assert all(0 <= a < b <= len(shown) for a, b in marks)
    assert marks or not question.terms or not any(term.text.strip() for term in question.terms)


@pytest.mark.parametrize(
    ("text", "asked", "marked"),
    [
        ("new HTTPServerConfig there", "server", ["ServerConfig"]),
        ("a getOrCreate call", "create", ["Create"]),
        ("an observer", "server", []),
        ("HTTPSERVER", "server", []),
    ],
)
def test_parts_of_identifiers_are_marked_where_they_begin(text: str, asked: str, marked: list[str]) -> None:
    shown, marks = excerpt(text, parse_question(asked).terms)
    assert [shown[a:b] for a, b in marks] == marked


def test_what_could_not_be_taken_is_said(store: Store) -> None:
    assert "letter" in search(store, "?!").notes[0] and "letter" in search(store, "-merge").notes[0]
    assert "kind:foo is none of title" in search(store, "kind:foo").notes[0]
    assert "first 24 words" in search(store, " ".join(f"merge{n}" for n in range(25))).notes[0]
    assert not search(store, " ".join(f"merge{n}" for n in range(24))).notes
    assert not search(store, "merge " * 100).notes
    assert "y* was looked for as a whole word" in search(store, "y*").notes[0] and not search(store, "re*").notes
    assert "2,000 characters" in search(store, f"merge{' ' * 2000}conflicts").notes[0]


# -- the index and the store -------------------------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    return sorted((folder / fulltext.FOLDER).glob("*"))


def log(folder: Path, n: int, text: str) -> str:
    session_id = f"{n}1111111-2222-4333-8444-555555555555"
    made = Log(session=session_id, name=f"{n}")
    made.user(text)
    folder.mkdir(exist_ok=True)
    (folder / f"{session_id}.jsonl").write_bytes(made.data())
    return session_id


@pytest.fixture
def read_in(tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    ids = [log(tmp_path / "in", n, f"please look at xylophone{n} and kazoo") for n in range(3)]
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    yield tmp_path, ids


def test_what_was_forgotten_is_nowhere_in_the_index(read_in: tuple[Path, list[str]]) -> None:
    folder, ids = read_in
    assert search(Store(folder / "store"), "xylophone1").n_sessions == 1
    (draft := folder / "store" / fulltext.FOLDER / f"{files(folder / 'store')[0].stem}.7-7.tmp").write_bytes(
        b"xylophone1"
    )
    forget(folder / "store", [ids[1]])
    assert not draft.exists() and files(folder / "store") == []
    left = search(Store(folder / "store"), "kazoo")
    assert {s.session_id for s in left.sessions} == {ids[0], ids[2]}
    assert search(Store(folder / "store"), "xylophone1").n_sessions == 0
    assert all(b"xylophone1" not in path.read_bytes() for path in files(folder / "store"))


def test_what_was_replaced_is_not_found_and_goes_from_the_disk(read_in: tuple[Path, list[str]]) -> None:
    folder, ids = read_in
    search(Store(folder / "store"), "kazoo")
    before = files(folder / "store")
    log(folder / "in", 1, "please look at the trombone")
    pipeline.analyze([str(folder / "in")], tmp := folder / "store", jobs=1)
    assert [s.session_id for s in search(Store(tmp), "trombone").sessions] == [ids[1]]
    assert search(Store(tmp), "xylophone1").n_sessions == 0
    assert not set(before) & set(files(tmp))


def test_values_that_are_computed_anew_leave_the_index_as_it_is(read_in: tuple[Path, list[str]]) -> None:
    folder, _ = read_in
    search(store := Store(folder / "store"), "kazoo")
    before = {path: path.stat().st_mtime_ns for path in files(store.folder)}
    changed = Store(store.folder, write=True)
    for entry in changed.manifest.shards.values():
        entry.signals[next(iter(entry.signals))] = 0
    changed.manifest.code = ""
    changed.save()
    pipeline.measure(store.folder)
    again = Store(store.folder)
    assert not set(again.manifest.shards) & set(store.manifest.shards)
    assert search(again, "kazoo").n_sessions == 3
    assert {path: path.stat().st_mtime_ns for path in files(store.folder)} == before


def test_a_reader_of_a_former_state_writes_no_index_of_what_was_forgotten(read_in: tuple[Path, list[str]]) -> None:
    folder, ids = read_in
    former = Store(folder / "store")
    forget(folder / "store", [ids[0]])
    assert search(former, "xylophone0").n_sessions == 1
    assert files(folder / "store") == []


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 9, None, 4096], ids=["empty", "other", "cut", "zeros"])
def test_a_damaged_index_is_made_again(store: Store, tmp_path: Path, damage: bytes | int | None) -> None:
    shutil.copytree(store.folder, tmp_path / "s")
    copied = Store(tmp_path / "s")
    before = search(copied, "merge conflicts")
    for path in files(copied.folder):
        data = path.read_bytes()
        if damage is None:
            path.write_bytes(data[: len(data) // 2])
        elif isinstance(damage, int):  # as long as before
            path.write_bytes(data[:100].ljust(len(data), b"\0"))
        else:
            path.write_bytes(damage)
    assert search(copied, "merge conflicts") == before
    shutil.rmtree(copied.folder / fulltext.FOLDER)
    assert search(copied, "merge conflicts") == before


def test_of_a_store_that_can_t_be_written_the_index_is_in_memory_and_it_says_so(store: Store, tmp_path: Path) -> None:
    shutil.copytree(store.folder, tmp_path / "s", ignore=shutil.ignore_patterns(fulltext.FOLDER))
    copied = Store(tmp_path / "s")
    (copied.folder / fulltext.FOLDER).write_text("in the way")
    results = search(copied, "merge conflicts")
    assert results.n_sessions == 2 and "can't be written" in results.notes[0] and "in memory" in results.notes[0]
    assert search(copied, "merge conflicts").n_sessions == 2


def test_an_answer_from_part_of_the_index_says_so(store: Store, tmp_path: Path) -> None:
    shutil.copytree(store.folder, tmp_path / "s", ignore=shutil.ignore_patterns(fulltext.FOLDER))
    partly = search(Store(tmp_path / "s"), "merge", complete=False)
    assert (partly.is_lower_bound, partly.n_sessions) == (True, 0)


def test_many_ask_at_once_while_there_is_no_index(store: Store, tmp_path: Path) -> None:
    shutil.copytree(store.folder, tmp_path / "s", ignore=shutil.ignore_patterns(fulltext.FOLDER))
    code = (
        "from agentsignals.store import Store; from agentsignals.store.fulltext import search;"
        f"print(search(Store({str(tmp_path / 's')!r}), 'merge').n_sessions)"
    )
    beside = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ)
    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda _: search(Store(tmp_path / "s"), "merge").n_sessions, range(8))]
    assert answers == [2] * 8 and beside.communicate()[0] == "2\n"
    assert [path.suffix for path in files(tmp_path / "s")] == [".sqlite"]


def test_an_empty_store_has_nothing(tmp_path: Path) -> None:
    assert search(Store(tmp_path / "s", create=True), "merge").n_sessions == 0


# -- the verb ----------------------------------------------------------------------------------------------------------


def test_the_verb_lists_sessions_with_marked_passages(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "merge", "conflicts", "--store", str(store.folder), "--limit", "1"]) == 0
    text = capsys.readouterr().out
    assert "»merge« »conflicts«" in text and "3 passages in 2 sessions; the first 1 are shown" in text
    assert main(["search", "merge -gone", "no conflict", "--store", str(store.folder), "--json"]) == 1
    assert '"merge -gone" "no conflict"' in json.loads(capsys.readouterr().out)["error"]["message"]
    assert main(["search", "merge conflicts -gone", "--store", str(store.folder), "--kind", "result", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], found["n_sessions"]) == ("merge conflicts -gone", 1)
    assert found["sessions"][0]["hits"][0]["tool"] == "mcp__tracker__list_issues"
    assert main(["search", "x", "--limit", "-1", "--store", str(store.folder)]) == 2
    (kinds,) = (
        a["choices"] for a in declarations()["search"]["arguments"] if isinstance(a, dict) and a["name"] == "--kind"
    )
    assert tuple(kinds) == KINDS
