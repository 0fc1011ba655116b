"""OpenCode's own stores: the database, at work or at rest, and the folder before it (design/formats.md#databases)."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsignals.formats.opencode import DATABASES
from agentsignals.ingest import pipeline
from agentsignals.ingest.pipeline import session_from_database
from agentsignals.model import Session
from agentsignals.sources import DATABASE_MAGIC, RawFile, Unreadable, databases, local
from agentsignals.store import Store
from agentsignals.ui.live import Looking
from agentsignals.ui.raw_record import raw_line
from agentsignals.ui.snapshot import Snapshot
from tests.formats import cursor_database as cur
from tests.formats import opencode_database as oc
from tests.formats.test_crush import SCHEMA as CRUSH

WORK = [
    oc.user('"Write \\"hello.py\\" and run it"'),
    oc.agent(oc.tool("bash", {"command": "python3 hello.py; exit 3"}, "hello", metadata={"exit": 3})),
    oc.agent(oc.tool("invalid", {"tool": "teleport", "error": "unavailable tool"}, "The arguments are invalid")),
    oc.agent(oc.tool("task", {"prompt": "look"}, "done", metadata={"sessionId": "ses_child"})),
    ({"role": "user", "agent": "build"}, [{"type": "compaction", "auto": True}]),
    oc.agent({"type": "text", "text": "so far"}, mode="compaction", agent="compaction", summary=True),
    ({"role": "user", "agent": "build"}, [{"type": "text", "text": "Continue if you have", "synthetic": True}]),
    oc.agent({"type": "text", "text": "all done"}),
]
CHILD = [oc.user("look"), oc.agent({"type": "text", "text": "seen"})]
OLD = [oc.user("an old one"), oc.agent({"type": "text", "text": "an old answer"})]
CUT = [oc.user("say hi"), oc.agent(ended=False), oc.agent("{no json", {"type": "text", "text": "hi"})]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of which a session is in the log alone, the older folder with one session of it and one more, and an
    export of it that was made too early."""
    made = tmp_path_factory.mktemp("opencode")
    with oc.made(made / "db", wal=True) as db:
        oc.add(db, "ses_cut", CUT)
        oc.add(db, "ses_child", CHILD, parent_id="ses_work")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        oc.add(db, "ses_work", WORK, directory="/home/me/project")
        (made / "db").rename(made / "opencode.db")
        (made / "db-wal").rename(made / "opencode.db-wal")
        home = oc.copied(made / "opencode.db", made / "home").parent
    db.close()
    oc.stored("ses_work", WORK[:3], home)
    oc.stored("ses_old", OLD, home)
    export = {"info": {"id": "ses_work", "directory": "/w"}, "messages": [{"info": WORK[0][0], "parts": WORK[0][1]}]}
    (home / "export.json").write_text(json.dumps(export, indent=8))
    return home


@pytest.fixture(scope="module")
def store(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    _, store = pipeline.ingest_into([str(home)], tmp_path_factory.mktemp("store") / "s", jobs=1)
    return store


def session(store: Store, session_id: str) -> Session:
    return store.session(session_id)


def test_a_session_of_all_three_places_is_one_and_the_log_is_read(store: Store) -> None:
    assert sorted(store.manifest.sessions) == ["ses_child", "ses_cut", "ses_old", "ses_work"]
    assert len(session(store, "ses_work").steps) == 5, "the fullest copy, of which all is in the log"
    held = [(s.title, [t.text for t in s.turns]) for s in (session(store, "ses_old"),)]
    assert held == [("T", ["an old one"])]


def test_what_rows_mean_is_what_an_export_of_them_means(store: Store) -> None:
    work, child, cut = (session(store, f"ses_{name}") for name in ("work", "child", "cut"))
    assert (work.cwd, work.agent, work.agent_version) == ("/home/me/project", "opencode", "1.18.33")
    assert [t.text for t in work.turns] == ['Write "hello.py" and run it'], "no marks; compaction is no turn"
    assert Counter(e.kind for e in work.events)["compaction"] == 1
    # Once, of the messages: not the steps' parts, the events, or the session's sum.
    assert sum(s.input_tokens or 0 for s in work.steps) == 5 * 138
    assert sum(s.output_tokens or 0 for s in work.steps) == 5 * (32 + 8)
    calls = {c.name: (c.status, c.exit_code) for c in work.tool_calls}
    assert calls == {"bash": ("error", 3), "teleport": ("error", None), "task": ("ok", None)}
    assert (child.parent_session_id, child.turns) == ("ses_work", [])
    assert [e.text for e in cut.events if e.kind == "meta"] == [
        "not finished: no answer, no end and no reason is recorded"
    ]
    assert [s.input_tokens for s in cut.steps] == [None, 138]


def test_a_row_that_is_no_json_costs_itself(store: Store) -> None:
    counted = store.sql("SELECT skipped, skipped_reasons FROM artifacts WHERE path LIKE '%.db///ses_cut'").fetchall()
    assert counted == [(1, '{"bad_shape":1}')]
    assert [e.text for e in session(store, "ses_cut").events if e.kind == "text"] == ["hi"]


def test_credentials_reach_no_store(store: Store, home: Path) -> None:
    assert oc.SECRET.encode() in (home / "opencode.db").read_bytes()
    held = [p.name for p in store.folder.rglob("*") if p.is_file() and oc.SECRET.encode() in p.read_bytes()]
    assert held == [] and not any(oc.SECRET.encode() in data for data in _contents(home).values())

    def steal(db: sqlite3.Connection) -> list[object]:
        return list(databases._ask(db, DATABASES[0])("SELECT access_token FROM account"))

    with pytest.raises(sqlite3.DatabaseError, match="prohibited"):
        databases.query(str(home / "opencode.db"), steal)


def test_a_fork_with_the_same_tables_keeps_its_name(tmp_path: Path) -> None:
    """And its index by a function that SQLite 3.40 would not read in a schema that it can't trust."""
    db = oc.made(tmp_path / "kilo.db", wal=True)
    db.execute("CREATE INDEX recall_message_role_idx ON message (session_id, json_extract(data, '$.role'))")
    oc.add(db, "ses_1", OLD)
    (tmp_path / "copy").mkdir()
    for name in ("kilo.db", "kilo.db-wal"):
        shutil.copyfile(tmp_path / name, tmp_path / "copy" / name)
    for place in (tmp_path, tmp_path / "copy"):  # read in its place, and, with a log that nobody has open, as a copy
        files = [f for f in local.find(str(place / "kilo.db")) if isinstance(f, RawFile)]
        assert [session_from_database(f).agent for f in files] == ["kilo"], place
    db.close()


def test_the_page_shows_the_part_of_an_event_alone(store: Store) -> None:
    snapshot = Snapshot(store)
    for session_id, words in (("ses_child", "seen"), ("ses_old", "an old answer")):
        (event,) = [e for e in store.session(session_id).events if e.text == words]
        shown = raw_line(snapshot, session_id, event.seq)
        assert (shown.why_not, json.loads(shown.text)["text"]) == ("", words), shown


def test_only_the_session_that_changed_is_read_again(home: Path, tmp_path: Path) -> None:
    with oc.made(tmp_path / "opencode.db", wal=True) as db:
        oc.add(db, "ses_1", OLD)
        oc.add(db, "ses_2", OLD)
        path = str(tmp_path / "opencode.db")
        first, store = pipeline.ingest_into([path], tmp_path / "s", jobs=1)
        looking = Looking([path], store.manifest)
        assert looking.changed() == set()
        seen = (tmp_path / "opencode.db").stat()
        oc.say(db, "ses_2", 2, oc.user("and another"))
        assert (tmp_path / "opencode.db").stat().st_mtime_ns == seen.st_mtime_ns, "the log alone grew"
        assert looking.changed() == {path}
        second = pipeline.ingest([path], tmp_path / "s", jobs=1)
        db.execute("DELETE FROM session WHERE id = 'ses_1'")
        third = pipeline.ingest([path], tmp_path / "s", jobs=1)
    db.close()
    assert (first.parsed, first.unchanged, first.prompts) == (2, 0, 2)
    assert (second.parsed, second.unchanged, second.prompts) == (1, 1, 3)
    assert (third.stored_sessions, third.deleted_files, third.deleted_sessions) == (2, 1, 1), (
        "kept, as of deleted files"
    )


@pytest.mark.parametrize("log", ["never", "folded in", "left"])
def test_reading_a_database_at_rest_leaves_nothing_beside_it(log: str, tmp_path: Path) -> None:
    db = oc.made(tmp_path / "opencode.db", wal=log != "never")
    oc.add(db, "ses_1", OLD)
    place = oc.copied(tmp_path / "opencode.db", tmp_path / "crashed").parent if log == "left" else tmp_path
    db.close()
    before = {p.name: p.stat().st_mtime_ns for p in place.iterdir()}
    assert before.keys() == {"opencode.db", *(["opencode.db-wal"] if log == "left" else [])}
    assert len(_contents(place)) == 1
    assert {p.name: p.stat().st_mtime_ns for p in place.iterdir()} == before


def test_where_no_index_of_the_log_can_be_made_a_copy_is_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on media that can't be written. The copy's own folder does not outlive its opening."""
    path = oc.copied(home / "opencode.db", tmp_path / "in")
    monkeypatch.setattr(databases, "MAX_COPY_BYTES", 0)
    path.with_name("opencode.db-shm").symlink_to("/nowhere/at/all")  # SQLite follows no link here
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    assert {uri.rpartition("/")[2] for uri in _contents(path.parent)} == {"ses_child", "ses_cut", "ses_work"}
    assert list((tmp_path / "tmp").iterdir()) == []


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def changed(statement: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        db = sqlite3.connect(path, isolation_level=None)
        db.executescript(statement)
        db.close()

    return change


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "scrambled behind its magic": (lambda p: p.write_bytes(DATABASE_MAGIC + b"\7" * 9000), "bad_database"),
    "cut": (cut, "bad_database"),
    "nobody's": (changed("DROP TABLE part"), "unknown_database"),
    "lacks a column": (changed("ALTER TABLE part DROP COLUMN data"), "unknown_database"),
    "a view": (changed("DROP TABLE part; CREATE VIEW part AS SELECT * FROM message"), "unknown_database"),
    "newer": (
        changed("DELETE FROM message; DELETE FROM part; INSERT INTO session_message VALUES (1, '{}')"),
        "newer_database",
    ),
    "empty": (changed("DELETE FROM session"), "no_sessions"),
    "ids that can't be kept": (changed("UPDATE session SET id = 'a' || char(10)"), "bad_shape"),
    "encrypted": (lambda p: p.write_bytes(b"\x91\x02\xf0\x88" * 2000), ""),
    "an empty file": (lambda p: p.write_bytes(b""), "empty_file"),
    "under another name": (lambda p: p.rename(p.with_name("sessions")), "database"),
}


def test_what_is_no_sound_database_is_counted_with_its_reason_and_its_neighbours_are_read(tmp_path: Path) -> None:
    for what, (change, _) in WRONG.items():
        folder = tmp_path / "in" / what
        oc.stored(f"ses_{what}", OLD, folder)
        db = oc.made(folder / "opencode.db")
        oc.add(db, "ses_1", OLD)
        db.close()
        change(folder / "opencode.db")
    summary, store = pipeline.ingest_into([str(tmp_path / "in")], tmp_path / "s", jobs=1)
    rows = store.sql("SELECT path, skipped_reasons FROM artifacts WHERE path NOT LIKE '%.json'").fetchall()
    counted = {Path(path).parts[len(tmp_path.parts) + 1]: list(json.loads(reasons)) for path, reasons in rows}
    assert counted == {what: [reason] for what, (_, reason) in WRONG.items() if reason}
    assert sorted(store.manifest.sessions) == sorted(f"ses_{what}" for what in WRONG)
    assert not summary.internal_errors


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("CREATE TABLE session_v3 (id text, title text); INSERT INTO session_v3 VALUES ('ses_x', 't')", "session_v3"),
        (
            "CREATE TABLE turns (id text, session_id text, data text); INSERT INTO turns VALUES ('t', 'ses_x', '{}')",
            "turns",
        ),
        (
            "CREATE TABLE said (id text, threadId text, role text, body text);"
            "INSERT INTO said VALUES ('s', 'ses_x', 'user', 'hi')",
            "said",
        ),
        ("CREATE TABLE tasks (session_id text, data text); INSERT INTO tasks VALUES ('ses_1', '{}')", ""),
        ("CREATE TABLE threads (id text); CREATE TABLE notes (id, data); INSERT INTO notes VALUES (1, '{}')", ""),
    ],
)
@pytest.mark.parametrize("agent", ["opencode", "crush"])
def test_tables_of_sessions_that_nobody_reads_are_named(agent: str, statement: str, table: str, tmp_path: Path) -> None:
    """Whoever's database it is, and although older rows are read."""
    db = oc.made(tmp_path / "opencode.db") if agent == "opencode" else sqlite3.connect(tmp_path / "crush.db")
    if agent == "opencode":
        oc.add(db, "ses_1", OLD)
    else:
        db.executescript(CRUSH + "INSERT INTO sessions (id, title, updated_at, created_at) VALUES ('ses_1', 't', 1, 1)")
        db.execute("INSERT INTO messages VALUES ('m', 'ses_1', 'user', '[]', 'm', 1, 1)")
    db.executescript(statement)
    db.commit()
    db.close()
    _, store = pipeline.ingest_into([str(tmp_path)], tmp_path.with_name(f"{tmp_path.name}-store"), jobs=1)
    notes = store.sql("SELECT note FROM artifacts WHERE skipped > 0 ORDER BY note").fetchall()
    assert list(store.manifest.sessions) == ["ses_1"]
    assert [note for (note,) in notes] == ([f"not read: table {table}"] if table else [])


def test_of_a_damaged_database_the_sessions_that_can_be_read_are(tmp_path: Path) -> None:
    db = oc.made(tmp_path / "opencode.db")
    for session_id in ("ses_1", "ses_2", "ses_3"):
        oc.add(db, session_id, [oc.user(session_id + "x " * 1000)] * 20)
    db.close()
    data = bytearray((tmp_path / "opencode.db").read_bytes())
    for at in range(0, len(data), 4096):
        if b"ses_2x x" in data[at : at + 4096]:
            data[at : at + 8] = b"\xff" * 8  # no page begins so
    (tmp_path / "opencode.db").write_bytes(data)
    files = [f for f in local.find(str(tmp_path)) if isinstance(f, RawFile)]
    read = {
        f.key: d.reason if isinstance(d, Unreadable) else "read"
        for f, d in zip(files, local.read(files, None), strict=True)
    }
    assert read == {"ses_1": "read", "ses_2": "bad_database", "ses_3": "read"}


def test_an_agent_s_homes_are_found_where_its_data_folder_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    oc.copied(home / "opencode.db", tmp_path / "data" / "opencode")
    shutil.copytree(home / "storage", tmp_path / ".local/share/opencode/storage")
    there = local.found_homes()["opencode"]
    assert [p.relative_to(tmp_path).as_posix() for p in there] == [
        *(f".local/share/opencode/storage/{name}" for name in ("session", "message", "part")),
        "data/opencode/opencode.db",
    ]
    keys = [f.key or Path(f.uri).name for f in local.find("opencode") if isinstance(f, RawFile)]
    assert {"ses_work", "ses_child", "ses_cut", "ses_old.json"} <= set(keys)


WRITER = """
import os, sqlite3, sys, time
sys.path.insert(0, sys.argv[2])
from tests.formats import cursor_database as cur
from tests.formats import opencode_database as oc
from tests.formats.test_crush import SCHEMA as CRUSH
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
db.execute("PRAGMA wal_autocheckpoint = 4")
n, until = 1, time.monotonic() + float(sys.argv[3])
def opencode(session):
    text = {"type": "text", "text": str(n)}
    oc.say(db, session, n, oc.agent(text, text, text, output=n))
    db.execute("UPDATE session SET title = ? WHERE id = ?", [str(n), session])
try:
    while time.monotonic() < until and not os.path.exists(sys.argv[5]):
        for session in ("ses_1", "ses_2"):
            db.execute("BEGIN IMMEDIATE")
            if sys.argv[4] == "opencode":
                opencode(session)
            else:
                cur.write(db, session, [cur.person("go"), *[cur.agent(str(i)) for i in range(1, n + 1)]], name=str(n))
            db.execute("COMMIT")
        n += 1
except sqlite3.Error as problem:
    print(problem)
print("wrote", n)
"""


def opencode_at_work(path: Path) -> None:
    db = oc.made(path, wal=True)
    for session_id in ("ses_1", "ses_2"):
        oc.add(db, session_id, [oc.user("go")], title="0")
    db.close()


def cursor_at_work(path: Path) -> None:
    db = cur.made(path, wal=True)
    for session_id in ("ses_1", "ses_2"):
        cur.add(db, session_id, [cur.person("go")], name="0")
    db.close()


def opencode_state(data: bytes) -> tuple[str, list[object]]:
    held = json.loads(data)
    return held["info"]["title"], [[p.get("text") for p in m["parts"]] for m in held["messages"]]


def cursor_state(data: bytes) -> tuple[str, list[object]]:
    composer, *bubbles = map(json.loads, data.splitlines())
    return composer["cursorComposer"]["name"], [[b.get("text")] for b in bubbles]


AT_WORK: dict[str, tuple[str, Callable[[Path], None], Callable[[bytes], tuple[str, list[object]]], int]] = {
    "opencode": ("opencode.db", opencode_at_work, opencode_state, 3),
    "cursor": ("state.vscdb", cursor_at_work, cursor_state, 1),
}
"""The file, how it begins, and of a session what its title says is the last message, and its messages: of the agent's
each says so often which it is."""


@pytest.mark.slow
@pytest.mark.parametrize("agent", AT_WORK)
def test_a_database_is_read_while_it_is_written_without_a_lock_or_a_torn_session(agent: str, tmp_path: Path) -> None:
    """Each session is one of the committed states: its title says which message is the last."""
    name, begin, state, times = AT_WORK[agent]
    begin(tmp_path / name)
    root = str(Path(__file__).parents[2])
    enough = tmp_path / "enough"  # a busy machine takes its time to have seen as much
    command = [sys.executable, "-c", WRITER, str(tmp_path / name), root, "60", agent, str(enough)]
    seen, looks = set[str](), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        while writer.poll() is None:
            for uri, data in _contents(tmp_path).items():
                last, states = state(data)
                ends = [None] if agent == "opencode" else []
                assert states == [["go"], *([str(i)] * times + ends for i in range(1, int(last) + 1))], uri
                seen.add(last)
            if (looks := looks + 1) % 20 == 0:
                _, store = pipeline.ingest_into([str(tmp_path / name)], tmp_path / "s", jobs=1)
                assert all(s.title == str(_said(s)) for s in map(store.session, ("ses_1", "ses_2")))
            if looks >= 40 and len(seen) > 5 and int(last) > 20:
                enough.touch()
        assert writer.stdout is not None
        words = writer.stdout.read().split()
    assert words[0] == "wrote" and int(words[1]) > 20 and len(seen) > 5, words
    pipeline.ingest([str(tmp_path / name)], tmp_path / "s", jobs=1)
    last = Store(tmp_path / "s").session("ses_1")
    assert _said(last) == int(words[1]) - 1 == int(last.title or 0)


def _said(session: Session) -> int:
    """The last message of the agent."""
    return max([int(e.text or 0) for e in session.events if e.kind == "text"], default=0)


def _contents(folder: Path) -> dict[str, bytes]:
    files = [f for f in local.find(str(folder)) if isinstance(f, RawFile) and f.container]
    read = dict(zip([f.uri for f in files], local.read(files, None), strict=True))
    assert not [data for data in read.values() if isinstance(data, Unreadable)]
    return {uri: data for uri, data in read.items() if not isinstance(data, Unreadable)}
