"""Sessions that share an id: other people's are kept, copies count once, in one run and file by file."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
from conformance import suite

from agentsignals.ingest import pipeline
from agentsignals.ingest.maintenance import forget
from agentsignals.store import Store, index, shards
from tests.claude import Log
from tests.formats import cursor_database, opencode_database, test_crush, test_goose, test_zed
from tests.golden import SAMPLES
from tests.quick import AT_NIGHT, some
from tests.two_people import make_anothers, of_another

PEOPLE = (
    "amp/threads", "atif/files", "claude-code/fork", "claude-code/queue.jsonl", "claude-code/subagent-file",
    "claude-stream/run.jsonl", "cline/task", "cline/cli", "codex/fork", "codex/session.jsonl", "codex-exec/run.jsonl",
    "continue/folder", "copilot-cli/session.jsonl", "crush/session.json", "cursor-agent/chat.jsonl",
    "cursor-agent/conversation.jsonl",
    "factory-droid/session.jsonl", "gemini-cli/log.jsonl", "gemini-cli/menu.json", "goose/session.json",
    "goose/20250801_1.jsonl", "grok-build/session", "kimi-cli/session",
    "kimi-code/session", "kiro/cli", "kiro/client.json", "lab-retry/broken.jsonl",
    "mistral-vibe/session", "opencode/person.json", "opencode/snapshots",
    "openhands/conversation", "opentraces/two_sessions.jsonl", "otel-genai/agentic.jsonl", "pi/family", "pi/tree.jsonl",
    "qwen-code/session.jsonl", "sts/forked.jsonl", "subq-eval/run-7", "swival/session.jsonl", "terminal-bench/run-9",
    "trail/mended", "vscode-copilot/session.json", "vscode-copilot/united", "zed/thread.json",
)  # fmt: skip
"""A sample of each format whose ids can repeat. The other formats name a session by its place, but
for Inspect: a sample that did not run has the id of its trial, so a second log of it may be a retry."""

Found = dict[str, tuple[str, ...]]


def put(sample: str, where: Path, another: bool = False) -> Path:
    """Write a sample into a folder, as it is or as another person's."""
    source = SAMPLES / sample
    for path in sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]:
        to = where / path.relative_to(source if source.is_dir() else source.parent)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(of_another(path.read_bytes()) if another else path.read_bytes())
    return where


def read(store: Path, *runs: list[Path], jobs: int = 1, shard_bytes: int = 64 << 20) -> Found:
    """Read folders in several runs. Return the events of each session by its id."""
    for folders in runs:
        pipeline.ingest(map(str, folders), store, jobs=jobs, shard_bytes=shard_bytes)
    found: dict[str, list[str]] = {s: [] for s in Store(store).manifest.sessions}
    for name in Store(store).manifest.shards:
        for row in shards.read_table(store, name, "events"):
            found[row["session_id"]].append(f"{row['kind']} {row['text']} {row['timestamp']}")
    return {session_id: tuple(events) for session_id, events in found.items()}


def trials_of(store: Path) -> list[tuple[str, int]]:
    """Return the trial and the number of each attempt."""
    rows = (a for s in Store(store).manifest.shards for a in shards.read_table(store, s, "attempts"))
    return sorted((row["trial_id"], row["attempt_index"]) for row in rows)


def notes_of(store: Path) -> list[str]:
    rows = (a for s in Store(store).manifest.shards for a in shards.read_table(store, s, "artifacts"))
    return [row["note"] for row in rows if row["note"]]


@pytest.mark.parametrize("sample", some(PEOPLE, 8, AT_NIGHT))
def test_two_people_with_one_id_are_two_sessions(tmp_path: Path, sample: str) -> None:
    alice, bob = put(sample, tmp_path / "alice"), put(sample, tmp_path / "bob", another=True)
    alone = [read(tmp_path / name, [folder]) for name, folder in (("a", alice), ("b", bob))]
    both = read(tmp_path / "both", [alice, bob])
    assert set(alone[0]) <= set(both)
    assert Counter(both.values()) == Counter([*alone[0].values(), *alone[1].values()])
    assert read(tmp_path / "one", [alice], [bob]) == both == read(tmp_path / "two", [bob], [alice])
    summary = pipeline.ingest([str(alice), str(bob)], tmp_path / "both")
    assert summary.skipped["session_id_of_another"] >= 1
    assert any("another session has its id too" in note for note in notes_of(tmp_path / "both"))


@pytest.mark.parametrize(
    "sample", some((s for s in PEOPLE if not s.startswith(("terminal-bench", "atif", "subq"))), 8, AT_NIGHT)
)
def test_copies_of_a_folder_are_one(tmp_path: Path, sample: str) -> None:
    """Also where the copies lie deeper and came later."""
    home, backup = put(sample, tmp_path / "home"), put(sample, tmp_path / "old" / "backup")
    alone = read(tmp_path / "alone", [home])
    assert read(tmp_path / "both", [home, tmp_path / "old"]) == alone
    assert read(tmp_path / "later", [home], [backup]) == alone
    summary = pipeline.ingest([str(home), str(backup)], tmp_path / "both")
    if not sample.startswith("mistral"):  # whose own chunks repeat each other
        assert summary.repeated + summary.repeated_records >= 1
    assert "session_id_of_another" not in summary.skipped


def opencode_rows(path: Path) -> None:
    with closing(opencode_database.made(path)) as db:
        for own in ("ses_one", "ses_two"):
            said = [
                opencode_database.user(f"mend {own} now"),
                opencode_database.agent({"type": "text", "text": "I did"}),
            ]
            opencode_database.add(db, own, said)


def opencode_second_rows(path: Path) -> None:
    (case,) = suite.cases("opencode/version-2-beside-version-1")
    shutil.copy(case.lay_out(path.parent / "case") / ".local/share/opencode/opencode.db", path)
    shutil.rmtree(path.parent / "case")


def cursor_rows(path: Path) -> None:
    with closing(cursor_database.made(path)) as db:
        said = [cursor_database.person("mend it now"), cursor_database.agent("I did it")]
        cursor_database.add(db, "11111111-0000-4000-8000-000000000001", said)


def zed_rows(path: Path) -> None:
    thread = test_zed.thread(test_zed.user({"Text": "mend it now"}), test_zed.agent({"Text": "I did it"}))
    test_zed.made(path, {"one": ("json", json.dumps(thread).encode())})


def goose_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(test_goose.OLD)
        db.execute(
            "INSERT INTO sessions (id, name, working_dir, created_at, updated_at)"
            " VALUES ('20250801_1', 'Greeting', '/w', '2026-05-28 20:26:40', '2026-05-28 20:27:00')"
        )
        for n, (role, words) in enumerate((("user", "mend it now"), ("assistant", "I did it"))):
            row = [role, json.dumps([test_goose.text(words)]), test_goose.SECONDS + n]
            db.execute(
                "INSERT INTO messages (session_id, role, content_json, created_timestamp)"
                " VALUES ('20250801_1', ?, ?, ?)",
                row,
            )


def crush_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(test_crush.SCHEMA)
        db.execute("INSERT INTO sessions VALUES ('s1', NULL, 'Greeting', 0, 900, 40, 0.3, 9, 7)")
        for n, (role, words) in enumerate((("user", "mend it now"), ("assistant", "I did it"))):
            at = test_crush.SECONDS + n
            row = [f"m{n}", role, json.dumps([test_crush.part("text", text=words)]), at, at]
            db.execute(
                "INSERT INTO messages (id, session_id, role, parts, model, created_at, updated_at)"
                " VALUES (?, 's1', ?, ?, 'm-1', ?, ?)",
                row,
            )


DATABASES = {
    "opencode.db": opencode_rows, "kilo.db": opencode_rows, "opencode-2/opencode.db": opencode_second_rows,
    "state.vscdb": cursor_rows, "threads.db": zed_rows, "sessions.db": goose_rows, ".crush/crush.db": crush_rows,
}  # fmt: skip


@pytest.mark.parametrize("name", some(DATABASES, 3))
def test_two_peoples_databases_with_equal_ids_keep_all_sessions(tmp_path: Path, name: str) -> None:
    homes = [tmp_path / "alice", tmp_path / "bob"]
    for home in homes:
        (home / name).parent.mkdir(parents=True)
        DATABASES[name](home / name)
    make_anothers(homes[1] / name)
    alone = [read(tmp_path / f"alone-{home.name}", [home]) for home in homes]
    assert alone[0] and alone[0].keys() == alone[1].keys()
    assert all(alone[0][own] != alone[1][own] for own in alone[0])
    both = read(tmp_path / "both", homes)
    assert Counter(both.values()) == Counter([*alone[0].values(), *alone[1].values()])
    assert read(tmp_path / "one", homes[:1], homes[1:]) == both == read(tmp_path / "two", homes[1:], homes[:1])
    assert pipeline.ingest(map(str, homes), tmp_path / "both").skipped["session_id_of_another"] == len(alone[0])
    assert any("another session has its id too" in note for note in notes_of(tmp_path / "both"))


def test_two_peoples_attempts_of_one_trial_id_are_two_trials(tmp_path: Path) -> None:
    for sample, trial in (
        ("opentraces/two_sessions.jsonl", "0d3f6a1e-0000-4000-8000-000000000002~d08ec8f1"),
        ("inspect-json/cancelled.json", "T1/fix-7_epoch_1~bd3f133e"),
    ):
        home = tmp_path / sample.partition("/")[0]
        alice, bob = put(sample, home / "alice"), put(sample, home / "bob", another=True)
        read(home / "one", [alice])
        read(home / "both", [alice, bob])
        assert trials_of(home / "both") == sorted([*trials_of(home / "one"), (trial, 0)])


def test_a_retry_of_a_sample_without_an_id_of_its_own_is_the_next_attempt(tmp_path: Path) -> None:
    """Logs of Inspect before samples had a uuid."""
    log = json.loads((SAMPLES / "inspect-json/cancelled.json").read_text())
    for sample in log["samples"]:
        sample.pop("uuid", None)
    first = json.dumps(log)
    write(tmp_path / "in/first.json", first)
    write(tmp_path / "in/retry.json", first.replace("2026-01-02T", "2026-01-03T"))
    read(tmp_path / "store", [tmp_path / "in"])
    assert trials_of(tmp_path / "store") == [("T1/3_epoch_1", 0), ("T1/fix-7_epoch_1", 0), ("T1/fix-7_epoch_1", 1)]


@pytest.mark.parametrize("ids", ["records", "runs"])
def test_trials_of_one_name_in_several_runs_are_trials_of_their_own(tmp_path: Path, ids: str) -> None:
    """A harness names trials `TASK.1-of-2`, without the run. Its records have ids; where they don't, runs do."""

    def run(name: str) -> Path:
        home = tmp_path / "in" / name
        shutil.copytree(SAMPLES / "terminal-bench/run-9", home)
        (home / "results.json").unlink()
        (home / "tb.lock").unlink()
        for path in home.rglob("*.json"):
            told = json.loads(path.read_text())
            told |= {"run_id": name} if "run_id" in told else {"id": f"{name}-{told['id']}"[:36]}
            if ids == "runs":
                told.pop("id", None)
            path.write_text(json.dumps(told))
        return home

    runs = [run(name) for name in ("a", "b", "c")]
    shutil.copytree(runs[1], tmp_path / "backup" / "b")
    read(tmp_path / "store", runs, [tmp_path / "backup"])
    read(tmp_path / "later", *([each] for each in (*runs, tmp_path / "backup")))
    found = trials_of(tmp_path / "store")
    assert len(found) == 6 and {trial.partition("~")[0] for trial, _ in found} == {
        "hello.1-of-2.run-9", "hello.2-of-2.run-9",
    }  # fmt: skip
    assert trials_of(tmp_path / "later") == found


def log_of(words: str, name: str, session: str = "same", n: int = 2) -> Log:
    log = Log(session, name=name)
    for i in range(n):
        log.user(f"{words} {i}")
        log.assistant({"type": "text", "text": "Done."}, message_id=f"msg-{name}-{i}")
    return log


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_logs_of_one_folder_and_of_equal_times_are_told_apart_by_their_prompts(tmp_path: Path) -> None:
    write(tmp_path / "in/a.jsonl", *log_of("Chart the bay", "a").lines)
    write(tmp_path / "in/b.jsonl", *log_of("Mend the mole", "b").lines)
    found = read(tmp_path / "store", [tmp_path / "in"])
    assert sorted(len(events) for events in found.values()) == [4, 4]


@pytest.mark.parametrize(("apart_s", "sessions"), [(0.9, 1), (1.5, 2)])
def test_copies_of_a_log_have_its_times_but_for_rounded_seconds(tmp_path: Path, apart_s: float, sessions: int) -> None:
    """Two people give one agent one prompt, in sessions of one id; an export rounds times."""
    first, other = log_of("Chart the bay", "a"), Log("same", name="b")
    other.wait(apart_s)
    for i in range(2):
        other.user(f"Chart the bay {i}")
        other.assistant({"type": "text", "text": "Done."}, message_id=f"msg-b-{i}")
    write(tmp_path / "alice/a.jsonl", *first.lines)
    write(tmp_path / "bob/b.jsonl", *other.lines)
    assert len(read(tmp_path / "store", [tmp_path / "alice", tmp_path / "bob"])) == sessions


def printed(*said: str, model: str = "m-1", cwd: str = "/w") -> str:
    """What Claude Code prints: no times."""
    start = {"type": "system", "subtype": "init", "session_id": "one", "cwd": cwd, "model": model, "uuid": "u"}
    told = [
        {
            "type": "assistant",
            "session_id": "one",
            "message": {"id": f"m{n}", "content": [{"type": "text", "text": text}]},
        }
        for n, text in enumerate(said)
    ]
    return "\n".join(map(json.dumps, [start, *told]))


def chatted(*said: str) -> str:
    """A session of Goose; the fullest of several states is read."""
    rows: list[dict[str, object]] = [{"working_dir": "/w", "description": said[0], "message_count": len(said)}]
    rows += [
        {"role": ("user", "assistant")[n % 2], "created": 1785578400 + n, "content": [{"type": "text", "text": text}]}
        for n, text in enumerate(said)
    ]
    return "\n".join(map(json.dumps, rows))


@pytest.mark.parametrize(
    ("one", "other", "sessions"),
    [
        (printed("a", "b"), printed("a", "b"), 1),
        (printed("a", "b"), printed("a", "b", "c"), 1),
        (printed("a", "b"), printed("a", "c", "d"), 2),
        (printed("a", "b"), printed("a", "b", model="m-2"), 2),
        (printed("a", "b"), printed("a", "b", cwd="/elsewhere"), 2),
        (chatted("a", "b"), chatted("a", "b", "c", "d"), 1),
        (chatted("a", "b", "c", "d"), chatted("a", "b", "e", "f", "g"), 2),
        (chatted("a", "my [secret] here", "c"), chatted("a", "my word here", "c", "d"), 1),
    ],
)
def test_one_session_is_one_of_which_all_agrees_that_both_tell(
    tmp_path: Path, one: str, other: str, sessions: int
) -> None:
    """Logs without times agree in all, also in folder and model. Logs that begin alike and then go apart are two."""
    for person, text in (("alice", one), ("bob", other)):
        write(tmp_path / person / "sessions/20260801_1.jsonl", text)
    homes = [tmp_path / "alice", tmp_path / "bob"]
    found = read(tmp_path / "both", homes)
    assert len(found) == sessions
    assert read(tmp_path / "one", homes[:1], homes[1:]) == found == read(tmp_path / "two", homes[1:], homes[:1])


def test_records_that_two_logs_share_are_of_one_session_where_its_format_unites_them(tmp_path: Path) -> None:
    log, other = log_of("The task", "r", n=3), Log("same", name="q")
    other.last, other.now = "r-0002", log.now
    other.user("Another way.")
    write(tmp_path / "alice/log.jsonl", *log.lines)
    write(tmp_path / "bob/log.jsonl", *log.lines[:2], *other.lines)
    told = " ".join(*read(tmp_path / "store", [tmp_path / "alice", tmp_path / "bob"]).values())
    assert "The task 2" in told and "Another way." in told and told.count("The task 0") == 1


def test_three_people_keep_three_sessions_whatever_the_order(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        write(folder / "log.jsonl", *log_of(f"The task of {folder.name}", "same").lines)
    whole = read(tmp_path / "whole", folders)
    assert len(whole) == 3
    a, b, c = ([folder] for folder in folders)
    assert read(tmp_path / "cab", c, a, b) == whole == read(tmp_path / "bac", b, a, c)
    assert read(tmp_path / "small", folders, shard_bytes=1) == whole == read(tmp_path / "jobs", folders, jobs=2)


def test_another_agents_session_of_the_same_id_is_another_session(tmp_path: Path) -> None:
    one_id = "5a5a0000-0000-4000-8000-000000000001"
    write(tmp_path / "in/claude.jsonl", *log_of("Chart the bay", "a", one_id).lines)
    codex = (SAMPLES / "codex/session.jsonl").read_text()
    named: str = json.loads(codex.partition("\n")[0])["payload"]["id"]
    write(tmp_path / "in/codex.jsonl", codex.replace(named, one_id).rstrip())
    found = read(tmp_path / "store", [tmp_path / "in"])
    assert len(found) == 2
    assert min(len(events) for events in found.values()) == 4


def test_later_states_parts_and_forks_are_with_their_own(tmp_path: Path) -> None:
    """Each person has a log, an earlier state of it, a part that follows on it, and a fork under another id."""
    for person in ("alice", "bob"):
        log = log_of(f"The task of {person}", "r")
        write(tmp_path / person / "early.jsonl", *log.lines[:2])
        fork = [line.replace('"same"', '"fork"') for line in log.lines]
        end = Log("fork", name="f")
        end.last, end.now = log.last, log.now + timedelta(minutes=9)
        end.user(f"The fork of {person}")
        write(tmp_path / person / "fork.jsonl", *fork, *end.lines)
        write(tmp_path / person / "log.jsonl", *log.lines)
        part = Log("same", name="part")
        part.last, part.now = log.last, log.now
        part.user(f"More for {person}")
        write(tmp_path / person / "part.jsonl", *part.lines)
    store = tmp_path / "store"
    found = read(store, [tmp_path / "alice", tmp_path / "bob"])
    assert sorted((i.partition("~")[0], len(events)) for i, events in found.items()) == [
        ("fork", 1), ("fork", 1), ("same", 5), ("same", 5),
    ]  # fmt: skip
    rows = [r for s in Store(store).manifest.shards for r in shards.read_table(store, s, "sessions")]
    forks = [r for r in rows if r["parent_session_id"]]
    assert len(forks) == 2
    for row in forks:
        person = "alice" if "alice" in found[row["session_id"]][0] else "bob"
        assert f"task of {person}" in found[row["parent_session_id"]][0]


def test_records_of_one_uuid_and_other_times_are_all_kept(tmp_path: Path) -> None:
    log = Log("same")
    for n in range(3):
        log.user(f"Prompt {n}", uuid="one")
    write(tmp_path / "in/log.jsonl", *log.lines, log.lines[0])
    assert len(read(tmp_path / "store", [tmp_path / "in"])["same"]) == 3
    assert pipeline.ingest([str(tmp_path / "in")], tmp_path / "store").repeated_records == 1


def test_a_collectors_records_are_with_the_log_beside_them(tmp_path: Path) -> None:
    one_id = "7b1e6c52-0d0f-4a5e-9c7e-1f2a3b4c5d6e"
    metadata = json.loads((SAMPLES / "entire/session.json").read_text())
    for n, person in enumerate(("alice", "bob")):
        write(tmp_path / person / "0/full.jsonl", *log_of(f"The task of {person}", "r", one_id).lines)
        write(tmp_path / person / "0/metadata.json", json.dumps({**metadata, "checkpoint_id": f"{n}" * 12}))
    store = tmp_path / "store"
    found = read(store, [tmp_path / "alice", tmp_path / "bob"])
    rows = [r for s in Store(store).manifest.shards for r in shards.read_table(store, s, "checkpoints")]
    assert {(found[r["session_id"]][0].split()[4], r["checkpoint_id"]) for r in rows} == {
        ("alice", "0" * 12), ("bob", "1" * 12),
    }  # fmt: skip


def test_a_log_that_names_the_file_it_goes_on_in_is_one_session_with_it(tmp_path: Path) -> None:
    """ATIF's `continued_trajectory_ref`, also where copies got a longer name."""
    agent = {"name": "acme", "version": "1"}
    parts = {
        "run7.trajectory.json": [("user", "Chart the bay."), ("agent", "I look.")],
        "run7.trajectory.cont-1.json": [("user", "Go on where you were."), ("agent", "It is done.")],
    }
    for name, said in parts.items():
        steps = [{"step_id": n, "source": who, "message": text} for n, (who, text) in enumerate(said, 1)]
        whole: dict[str, object] = {"schema_version": "ATIF-v1.7", "session_id": "S", "agent": agent, "steps": steps}
        if "cont" not in name:
            whole["continued_trajectory_ref"] = "trajectory.cont-1.json"
        write(tmp_path / "in" / name, json.dumps(whole))
    found = read(tmp_path / "store", [tmp_path / "in"])
    told = " ".join(*found.values())
    assert [said in told for said in ("bay", "look", "were", "done")] == [True] * 4


def longer(path: Path, words: str, n: int = 3) -> None:
    write(path, *log_of(words, "same", n=n).lines)


@pytest.mark.parametrize(("deleted", "length", "shard_bytes"), some(product("abc", (2, 9), (1, 64 << 20)), 5))
def test_a_deleted_persons_session_stays_when_anothers_grows(
    tmp_path: Path, deleted: str, length: int, shard_bytes: int
) -> None:
    """Also the oldest, and where its log was the longest. It alone is told and forgotten as deleted."""
    for name in "abc":
        longer(tmp_path / "in" / name / "log.jsonl", f"The task of {name}", length if name == deleted else 2)
    store, source = tmp_path / "store", [tmp_path / "in"]
    before = read(store, source)
    of = {name: i for i, events in before.items() for name in "abc" if f"task of {name}" in events[0]}
    (tmp_path / "in" / deleted / "log.jsonl").unlink()
    for n, grown in enumerate(sorted({*"abc"} - {deleted}), 3):
        longer(tmp_path / "in" / grown / "log.jsonl", f"The task of {grown}", n)
        after = read(store, source, shard_bytes=shard_bytes)
        assert after.keys() == before.keys()
        assert {i for i in before if after[i] != before[i]} == {of[grown]} and len(after[of[grown]]) == 2 * n
        before = after
        summary = pipeline.ingest(map(str, source), store)
        assert (summary.deleted_files, summary.deleted_sessions, summary.stored_sessions) == (1, 1, 3)
    assert forget(store, deleted=True).sessions == [of[deleted]]
    assert read(store, source) == {i: events for i, events in before.items() if i != of[deleted]}
    assert forget(store, deleted=True).sessions == []


def test_a_session_deleted_from_a_persons_database_stays_when_anothers_grows(tmp_path: Path) -> None:
    homes = [tmp_path / "alice", tmp_path / "bob"]
    for home in homes:
        home.mkdir()
        goose_rows(home / "sessions.db")
    make_anothers(homes[1] / "sessions.db")
    before = read(tmp_path / "store", homes)
    with closing(sqlite3.connect(homes[0] / "sessions.db")) as db, db:
        db.executescript("DELETE FROM messages; DELETE FROM sessions")
    with closing(sqlite3.connect(homes[1] / "sessions.db")) as db, db:
        row = ["user", json.dumps([test_goose.text("more")]), test_goose.SECONDS + 9]
        db.execute(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('20250801_1', ?, ?, ?)",
            row,
        )
    after = read(tmp_path / "store", homes)
    assert after.keys() == before.keys()
    assert len({i for i in before if after[i] != before[i]}) == 1
    assert len(forget(tmp_path / "store", deleted=True).sessions) == 1


@pytest.mark.parametrize(("sample", "deleted"), some(product(PEOPLE, ("alice", "bob")), 15, AT_NIGHT))
def test_deleted_sessions_of_each_format_stay_when_the_others_are_read_again(
    tmp_path: Path, sample: str, deleted: str
) -> None:
    homes = [put(sample, tmp_path / "alice"), put(sample, tmp_path / "bob", another=True)]
    read(tmp_path / "s", homes)
    told = (
        "SELECT session_id, seq, text, timestamp FROM events ORDER BY 1, 2",
        "SELECT session_id, trial_id FROM attempts ORDER BY 1",
    )
    before = [Store(tmp_path / "s").sql(sql).fetchall() for sql in told]
    shutil.rmtree(tmp_path / deleted)
    for path in tmp_path.glob("[ab]*/**/*"):
        os.utime(path, (1, 1))
    read(tmp_path / "s", [home for home in homes if home.exists()])
    assert [Store(tmp_path / "s").sql(sql).fetchall() for sql in told] == before


def test_a_deleted_persons_session_stays_when_another_person_comes(tmp_path: Path) -> None:
    for n, (first, new) in enumerate((("m", "a"), ("m", "z"))):
        home = tmp_path / str(n)
        for name in ("alice", "bob"):
            write(home / "in" / name / "log.jsonl", *log_of(f"The task of {name}", f"{first}-{name}").lines)
        before = read(home / "store", [home / "in"])
        (home / "in/alice/log.jsonl").unlink()
        write(home / "in/carol/log.jsonl", *log_of("The task of carol", new, n=3).lines)
        after = read(home / "store", [home / "in"])
        assert len(after) == 3 and after.items() >= before.items()
        assert len(forget(home / "store", deleted=True).sessions) == 1


@pytest.mark.parametrize("shard_bytes", [1, 64 << 20])
@pytest.mark.parametrize("said", [1, 2])
def test_a_log_that_moved_or_has_a_copy_is_not_deleted(tmp_path: Path, shard_bytes: int, said: int) -> None:
    """Of a shorter copy too: the fuller state stays."""
    for name in "abc":
        longer(tmp_path / "in" / name / "log.jsonl", f"The task of {name}", 2)
    longer(tmp_path / "in/a-copy/log.jsonl", "The task of a", said)
    store, source = tmp_path / "store", [tmp_path / "in"]
    before = read(store, source)
    assert len(before) == 3
    shutil.rmtree(tmp_path / "in/a")
    assert forget(store, deleted=True).sessions == []
    (tmp_path / "in/b").rename(tmp_path / "in/elsewhere")
    assert read(store, source, shard_bytes=shard_bytes) == before
    assert forget(store, deleted=True).sessions == []
    longer(tmp_path / "in/c/log.jsonl", "The task of c", 4)
    after = read(store, source, shard_bytes=shard_bytes)
    assert after.keys() == before.keys() and sorted(map(len, after.values())) == [4, 4, 8]
    assert forget(store, deleted=True).sessions == []


@pytest.mark.parametrize(
    ("session_id", "name"),
    [("s1", "s1"), ("s1~0a1b2c3d", "s1"), ("of~mine", "of~mine"), ("of~mine~0a1b2c3d", "of~mine"), ("~", "~"),
     ("s1~0a1b2c3", "s1~0a1b2c3"), ("s1~0A1B2C3D", "s1~0A1B2C3D"), ("s1~0a1b2c3d4e5f6071", "s1~0a1b2c3d4e5f6071")],
)  # fmt: skip
def test_a_tilde_of_an_agents_own_id_is_no_mark_of_another_person(session_id: str, name: str) -> None:
    assert index.name_of(session_id) == name
