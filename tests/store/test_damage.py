"""A store that was damaged says so, answers with the rest, and is whole again when its sources are read again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentsignals.cli import main
from agentsignals.errors import StoreError
from agentsignals.ingest import maintenance, pipeline
from agentsignals.store import Store, disk, query, sidecars
from agentsignals.store.index import INDEX_FILE, RETIRED
from agentsignals.store.sidecars import LabelRow
from tests.golden import SAMPLES
from tests.quick import some
from tests.store.test_store import label

Harm = Callable[[Path], None]


def only(folder: Path) -> Path:
    (name,) = Store(folder).manifest.shards
    return folder / "shards" / name


def table(folder: Path) -> Path:
    return only(folder) / "turns.parquet"


def garble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = os.urandom(len(data) - len(data) // 2)
    path.write_bytes(data)


HARMS: dict[str, Harm] = {
    "the shards' folder gone": lambda s: shutil.rmtree(s / "shards"),
    "a shard gone": lambda s: shutil.rmtree(only(s)),
    "a table gone": lambda s: table(s).unlink(),
    "a table cut": lambda s: os.truncate(table(s), 200),
    "a table empty": lambda s: os.truncate(table(s), 0),
    "a table garbled at its length": lambda s: garble(table(s)),
    "another table in its place": lambda s: void(shutil.copy(only(s) / "steps.parquet", table(s))),
    "a folder in its place": lambda s: (table(s).unlink(), table(s).mkdir())[1],
    "values garbled": lambda s: garble(only(s) / "signals.parquet"),
    "values across sessions gone": lambda s: next(s.glob("signals.*.parquet")).unlink(),
    "the index cut": lambda s: os.truncate(s / INDEX_FILE, 5000),
    "the index cut to its header": lambda s: os.truncate(s / INDEX_FILE, 300),
    "the index garbled": lambda s: garble(s / INDEX_FILE),
    "the index empty": lambda s: os.truncate(s / INDEX_FILE, 0),
    "the index gone": lambda s: (s / INDEX_FILE).unlink(),
}


def void(_: object) -> None:
    """Harms return nothing."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a few sessions, and its sources."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(SAMPLES / "pi", folder / "pi")
    pipeline.analyze([str(folder / "pi")], folder / "s", jobs=1)
    pipeline.measure(folder / "s", every=True)
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy of them of one's own; the sources are where the store knows them."""
    shutil.copytree(made / "s", tmp_path / "s")
    return tmp_path


def counts(store: Path) -> dict[str, int]:
    return {t: query.rows(Store(store), f"SELECT count(*) FROM {t}")[1][0][0] for t in ("sessions", "turns", "signals")}


@pytest.mark.parametrize("harm", some(HARMS, 4))
def test_damage_is_told_and_mended_by_reading_again(
    harm: str, made: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = place / "s"
    whole = counts(store)
    HARMS[harm](store)
    capsys.readouterr()
    main(["query", "SELECT count(*) AS n FROM sessions", "--store", str(store), "--json"])
    out, err = capsys.readouterr()
    assert "is damaged" in err
    assert json.loads(out)["damage"]
    assert main(["doctor", "--store", str(store)]) == 1
    pipeline.analyze([str(made / "pi")], store, jobs=1)
    assert counts(store) == whole
    capsys.readouterr()
    assert main(["doctor", "--store", str(store)]) == 0, capsys.readouterr().out


def test_an_analysis_of_other_sources_heals_what_is_on_this_machine(made: Path, place: Path) -> None:
    whole = counts(place / "s")
    table(place / "s").unlink()
    (place / "empty").mkdir()
    summary = pipeline.analyze([str(place / "empty")], place / "s", jobs=1)
    assert summary.restored_sessions == whole["sessions"]
    assert counts(place / "s") == whole


def test_what_has_no_source_any_more_is_named_and_given_up_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLES / "pi", tmp_path / "pi")
    store = tmp_path / "s"
    pipeline.analyze([str(tmp_path / "pi")], store, jobs=1)
    lost = sorted(Store(store).manifest.sessions)
    shutil.rmtree(tmp_path / "pi")
    table(store).unlink()
    (tmp_path / "empty").mkdir()
    assert pipeline.analyze([str(tmp_path / "empty")], store, jobs=1).lost_sessions == lost
    assert counts(store)["sessions"] == len(lost), "what can be read stays readable"
    with pytest.raises(StoreError, match=r"turns\.parquet is missing"):
        Store(store).session(lost[0])
    done = maintenance.repair(store)
    assert lost[0] in done.lost[0]
    assert all(p.is_dir() for p in done.aside)
    assert Store(store).warnings == []
    assert counts(store)["sessions"] == 0


def test_what_only_its_bytes_show_is_found_by_doctor(place: Path) -> None:
    path = table(place / "s")
    before = path.stat()
    garble(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert Store(place / "s").damage == [], "the cheap look trusts length and time"
    store = Store(place / "s")
    store.check_files(thorough=True)
    assert [d.table for d in store.damage] == ["turns"]
    maintenance.repair(place / "s")
    assert counts(place / "s")["turns"] > 0


def test_a_copied_store_is_the_same_store(place: Path) -> None:
    for path in (place / "s").rglob("*.parquet"):
        os.utime(path)
    assert Store(place / "s").damage == []


def test_labels_that_are_damaged_are_told_and_put_aside(place: Path) -> None:
    root = place / "s"
    sidecars.write_labels(root, "sentiment", "rules", [LabelRow("a", label(0, "NEUTRAL"))])
    path = sidecars.write_labels(root, "sentiment", "gpt", [LabelRow("a", label(0, "NEUTRAL"))])
    os.truncate(path, 100)
    assert ["gpt" in line for line in Store(root).warnings] == [True]
    assert query.rows(Store(root), "SELECT labeller FROM labels")[1] == [("rules",)]
    with pytest.raises(StoreError, match="100 of"):
        sidecars.labels_of(root, "sentiment", "gpt")
    assert len(maintenance.repair(root).lost) == 1
    assert Store(root).warnings == []
    (root / "parts.json").unlink()
    assert [r.session_id for r in sidecars.labels_of(root, "sentiment", "rules")] == ["a"], "the list is made again"


def test_a_stray_file_is_shown_and_put_aside(place: Path) -> None:
    shutil.copytree(only(place / "s"), place / "s" / "shards" / "stray")
    (only(place / "s") / "notes.txt").write_text("x")
    assert [p.name for p in Store(place / "s").strays()] == ["notes.txt", "stray"]
    assert Store(place / "s").warnings == [], "no answer lacks anything"
    assert len(maintenance.repair(place / "s").aside) == 2
    assert Store(place / "s").strays() == []


@pytest.mark.slow
def test_what_another_run_adds_before_our_lock_stays(made: Path, place: Path) -> None:
    """Whoever waits for the lock reads the index when he has it."""
    shutil.copytree(SAMPLES / "codex", place / "codex")
    shutil.copytree(SAMPLES / "gemini-cli", place / "gemini")
    store = place / "s"
    with disk.locked(store):
        waits = threading.Event()
        late = threading.Thread(
            target=pipeline.ingest,
            args=([str(place / "codex")], store),
            kwargs={"jobs": 1, "progress": lambda stage, done, total: waits.set()},
        )
        late.start()
        assert waits.wait(20)
        # The other program, inside the lock that is held for it here.
        code = (
            "import sys; from contextlib import nullcontext; from agentsignals.ingest import pipeline;"
            " pipeline.disk.locked = lambda *a, **k: nullcontext();"
            " pipeline.ingest([sys.argv[1]], sys.argv[2], jobs=1)"
        )
        subprocess.run([sys.executable, "-c", code, str(place / "gemini"), str(store)], check=True)
        between = set(Store(store).manifest.sessions)
    late.join()
    after = set(Store(store).manifest.sessions)
    assert after > between > set(Store(made / "s").manifest.sessions)


def test_a_second_run_waits_so_long_and_says_so(place: Path) -> None:
    with disk.locked(place / "s"), pytest.raises(StoreError, match=rf"process {os.getpid()}\) .*/s; waited 0 sec"):
        pipeline.ingest([str(SAMPLES / "pi")], place / "s", wait_s=0)


def test_a_reader_keeps_what_he_opened_and_it_goes_an_hour_later(place: Path) -> None:
    store = place / "s"
    before, connection = Store(store), query.connect(Store(store))
    ask = "SELECT count(*) FROM events"
    n = query.rows(before, ask)[1]
    old = only(store)
    again = Store(store)
    files = again.manifest.files
    files.update({uri: replace(e, bytes=e.bytes - 1) for uri, e in files.items()})  # as if every file had grown
    again.manifest.code = ""
    again.save()
    pipeline.analyze([next(iter(again.manifest.files.values())).spec], store, jobs=1)
    assert old.name not in Store(store).manifest.shards
    assert query.rows(before, ask)[1] == query.run(connection, ask).fetchall() == n
    again = Store(store)
    again.sweep()
    assert old.is_dir(), "superseded a moment ago"
    past = (old / RETIRED).stat().st_mtime - disk.KEEP_S - 1
    os.utime(old / RETIRED, (past, past))
    again.sweep()
    assert not old.exists()
    before._looked_at -= 60  # a minute passes
    assert query.rows(before, ask)[1] == n, "the store is opened again where what it held is gone"


def test_what_runs_leave_beside_the_shards_goes_although_they_follow_each_other(place: Path) -> None:
    store = Store(place / "s")
    live = store.manifest.across
    assert live
    now = (store.folder / live.file).stat().st_mtime  # what is live is the newest
    for n, age_s in ((90, 3 * disk.KEEP_S), (91, 2 * disk.KEEP_S), (92, 600), (93, 5)):
        path = store.folder / f"signals.{n}.parquet"
        shutil.copy(store.folder / live.file, path)
        os.utime(path, (now - age_s, now - age_s))
    store.sweep()
    left = {p.name for p in store.folder.iterdir()}
    assert {n for n in range(90, 94) if f"signals.{n}.parquet" in left} == {91, 92, 93}, "91 was read ten minutes ago"
    assert not Store(store.folder).damage


def test_a_run_that_was_killed_leaves_nothing_that_stays(place: Path) -> None:
    store = place / "s"
    left = [store / "shards" / ".tmp-x-1", store / "shards" / "000009-abc"]
    for folder in left:
        shutil.copytree(only(store), folder)
    Store(store).sweep()
    assert not left[0].exists()
    assert (left[1] / RETIRED).exists()
    shutil.rmtree(left[1])
    lone = Store(store)
    shutil.copytree(only(store), left[1])
    lone.manifest.sessions.clear()
    lone.sweep()
    assert [p.name.startswith("shards-000009-abc") for p in (store / "aside").iterdir()] == [True], (
        "its sessions are new"
    )
