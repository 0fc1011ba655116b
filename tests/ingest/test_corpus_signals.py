"""Values across sessions of a store that changed again and again are those of a store made of the same files at once,
and a run computes no more of them than what changed.
"""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import corpus_signals, pipeline
from agentsignals.ingest.maintenance import forget
from agentsignals.ingest.measure import explain
from agentsignals.store import PLACE, Store, shards
from agentsignals.store.query import rows
from tests.claude import Log
from tests.quick import some

FOLDERS = ("/home/me/shop", "/home/me/clone", "/home/you/shop", "/srv/lib")
PROMPTS = ("please fix the login form", "fix the login form again please", "yes", "write some docs for exports")
LINES = ("total = add(first, second)", "total = add(first, third)", "return the_value_of(it)")
COMMITS = "a1b2c3d fix\nb1b2c3d more"
REMOTES = ("origin\tgit@github.com:me/shop.git (fetch)", "origin\tgit@github.com:me/lib.git (fetch)")


class Corpus:
    """Sessions that come, grow and go, at random, and the store that follows them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.store = folder, folder / "store"
        self.rng = random.Random(seed)  # noqa: S311  (a choice, no secret)
        self.logs: dict[str, Log] = {}
        self.excluded: set[str] = set()
        (folder / "in").mkdir()

    def add(self) -> None:
        n = len(self.logs) + 1
        log = Log(f"{n:08d}-2222-4333-8444-555555555555", f"s{n}", self.rng.choice(FOLDERS))
        log.now += timedelta(hours=self.rng.choice((-60, -1, 0, 0.2, 0.4, 5, 30, 80)))
        self.logs[log.session] = log
        self._grow(log)

    def append(self) -> None:
        self._grow(self.rng.choice(list(self.logs.values())))

    def exclude(self) -> None:
        self.excluded.add(self.rng.choice(list(self.logs)))

    def forget(self) -> None:
        held = [row[0] for row in rows(Store(self.store), "SELECT session_id FROM sessions ORDER BY 1")[1]]
        if len(held) > 1:
            gone = self.rng.choice(held)
            (self.folder / "in" / f"{gone}.jsonl").unlink()
            del self.logs[gone]
            forget(self.store, [gone])

    def _grow(self, log: Log) -> None:
        log.wait(self.rng.choice((1, 400, 90_000)))
        log.user(self.rng.choice(PROMPTS))
        match self.rng.randrange(4):
            case 0:
                log.ran("Bash", COMMITS, command="git log --oneline")
            case 1 | 2:
                old, new = self.rng.sample(LINES, 2)
                path = f"{log.base['cwd']}/src/shop/{self.rng.choice('abc')}.py"
                log.ran("Edit", file_path=path, old_string=old, new_string=new)
            case _:
                log.ran("Bash", self.rng.choice(REMOTES), command="git remote -v")
        self.write(log)

    def write(self, log: Log) -> None:
        self.logs[log.session] = log
        (self.folder / "in" / f"{log.session}.jsonl").write_bytes(log.data())

    def analyze(self, store: Path) -> Store:
        pipeline.analyze([str(self.folder / "in")], store, jobs=1, exclude=frozenset(self.excluded))
        return Store(store)


def across_of(store: Store) -> list[tuple[Any, ...]]:
    """The rows of the values across sessions."""
    asked = ", ".join(f"'{path}'" for path in (PLACE, *corpus_signals.versions_on_ask()))
    return sorted(rows(store, f"SELECT * FROM signals WHERE signal IN ({asked})")[1], key=str)


def followed(folder: Path, seed: int, steps: int) -> None:
    corpus = Corpus(folder, seed)
    for _ in range(3):
        corpus.add()
    corpus.analyze(corpus.store)
    for step in range(steps):
        corpus.rng.choice((corpus.add, corpus.append, corpus.append, corpus.append, corpus.exclude, corpus.forget))()
        made = across_of(corpus.analyze(corpus.store))
        fresh = across_of(corpus.analyze(folder / f"fresh{step}"))
        assert made == fresh, (seed, step)


def test_a_store_that_followed_its_files_is_one_made_of_them(tmp_path: Path) -> None:
    followed(tmp_path, 0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 7))])
def test_so_it_is_after_whatever_happened(tmp_path: Path, seed: int) -> None:
    followed(tmp_path, seed, 12)


def logs(*folders: str) -> list[Log]:
    """A session in each folder, an hour after the one before."""
    made = [Log(f"{n:08d}-2222-4333-8444-555555555555", f"s{n}", folder) for n, folder in enumerate(folders, 1)]
    for n, log in enumerate(made):
        log.now += timedelta(hours=n)
        log.user("please fix the login form")
    return made


def edits(log: Log) -> None:
    log.ran("Edit", file_path=f"{log.base['cwd']}/src/shop/a.py", old_string=LINES[0], new_string=LINES[1])


def test_a_next_session_that_comes_to_the_same_file_later_is_another_next(tmp_path: Path) -> None:
    corpus, (first, following, later) = Corpus(tmp_path, 0), logs("/work/shop", "/work/shop", "/elsewhere")
    edits(first)
    later.wait(200_000)
    later.user("so far does the store see on")
    for log in (first, following, later):
        corpus.write(log)
    corpus.analyze(corpus.store)
    edits(following)
    corpus.write(following)
    asked = (
        "SELECT detail->>'shares_file' FROM signals WHERE signal = 'user.session_reopened_within_s' AND absent IS NULL"
    )
    assert rows(corpus.analyze(corpus.store), asked)[1] == [("true",)]
    assert rows(corpus.analyze(tmp_path / "fresh"), asked)[1] == [("true",)]


def test_what_follows_a_session_that_grew_is_what_follows_it_in_a_store_made_at_once(tmp_path: Path) -> None:
    """It comes to end after others began; to those before it, it is what it was, save for its rows."""
    homes = ("/home/me/shop", "/home/me/shop", "/home/you/shop", "/home/me/shop", "/home/me/shop")
    corpus, made = Corpus(tmp_path, 0), logs(*homes)
    for log in made:
        log.ran("Bash", REMOTES[0], command="git remote -v")
        edits(log)
        corpus.write(log)
    corpus.analyze(corpus.store)
    for step, (n, seconds) in enumerate(((0, 3_700), (1, 4_000), (0, 20_000))):
        made[n].wait(seconds)
        made[n].user("fix the login form again please")
        corpus.write(made[n])
        fresh = corpus.analyze(tmp_path / f"fresh{step}")
        assert across_of(corpus.analyze(corpus.store)) == across_of(fresh), step


def test_those_whom_others_left_are_looked_at_again(tmp_path: Path) -> None:
    """Two folders of one remote are one place, until one of them is seen to hold another repository, too."""
    corpus, (here, there, later) = Corpus(tmp_path, 0), logs("/work/clone", "/work/shop", "/work/clone")
    for log, remote in ((here, 0), (there, 0), (later, 1)):
        log.ran("Bash", REMOTES[remote], command="git remote -v")
    corpus.write(here)
    corpus.write(there)
    asked = (
        f"SELECT number FROM signals WHERE signal = 'user.prior_sessions_same_repo' AND session_id = '{there.session}'"
    )
    assert rows(corpus.analyze(corpus.store), asked)[1] == [(1.0,)]
    corpus.write(later)
    assert rows(corpus.analyze(corpus.store), asked)[1] == [(0.0,)]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    corpus = Corpus(tmp_path_factory.mktemp("few"), 7)
    for _ in range(4):
        corpus.add()
        corpus.analyze(corpus.store)  # each in a shard of its own
    pipeline.measure(corpus.store, every=True)
    return corpus


@pytest.fixture
def corpus(few: Corpus, tmp_path: Path) -> Corpus:
    """A few sessions of one's own."""
    mine = copy.deepcopy(few)
    mine.store = tmp_path / "store"
    shutil.copytree(few.store, mine.store)
    return mine


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shards of which values are read."""
    read: list[str] = []
    whole = shards.read_values

    def reading(files: list[Path], *more: Any) -> Any:
        read.extend(path.parent.name for path in files)
        return whole(files, *more)

    monkeypatch.setattr(shards, "read_values", reading)
    return read


def test_a_session_that_grows_costs_its_shard(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    lone = Log("99999999-2222-4333-8444-555555555555", "lone", "/elsewhere")
    lone.user("hello")
    corpus.write(lone)
    across_of(corpus.analyze(corpus.store))
    read = counted(monkeypatch)
    lone.user("and again")
    corpus.write(lone)
    store = corpus.analyze(corpus.store)
    assert len(store.manifest.shards) == 5
    assert set(read) == {store.manifest.sessions[lone.session].shard}


def test_explaining_a_value_across_sessions_reads_the_sessions_of_its_place_alone(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(corpus.store)
    session_id = min(store.manifest.sessions)
    value, absent = rows(
        store,
        "SELECT number, absent FROM signals WHERE signal = 'user.prior_sessions_same_repo'"
        f" AND session_id = '{session_id}'",
    )[1][0]
    read = counted(monkeypatch)
    assert explain(store, session_id, "user.prior_sessions_same_repo").value == value and absent is None
    place = "(SELECT value FROM signals WHERE signal = 'user.place' AND session_id = '{}')"
    near = rows(
        store, f"SELECT session_id FROM signals WHERE signal = 'user.place' AND value = {place}".format(session_id)
    )
    assert set(read) == {store.manifest.sessions[i].shard for (i,) in near[1]} < set(store.manifest.shards)


def harmed(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9] + b"\xc1" * 9)


HARMS: dict[str, Callable[[Path], object]] = {
    "briefs gone": lambda store: shutil.rmtree(store / corpus_signals.FOLDER),
    "briefs garbled": lambda store: [harmed(path) for path in (store / corpus_signals.FOLDER).iterdir()],
}


@pytest.mark.parametrize("harm", some(HARMS, 2))
def test_what_can_be_thrown_away_is_made_again(corpus: Corpus, harm: str, tmp_path: Path) -> None:
    HARMS[harm](corpus.store)
    store = Store(corpus.store)
    assert store.damage == []
    session_id = min(store.manifest.sessions)
    for path in ("user.prior_sessions_same_repo", "corpus.share_messages_le_20_chars"):
        assert explain(store, session_id, path).value is not None
    corpus.append()
    assert across_of(corpus.analyze(corpus.store)) == across_of(corpus.analyze(tmp_path / "fresh"))


def test_what_is_forgotten_is_in_no_brief(corpus: Corpus) -> None:
    gone = min(Store(corpus.store).manifest.sessions)

    def naming() -> list[str]:
        kept = (corpus.store / corpus_signals.FOLDER).iterdir()
        return [path.name for path in kept if gone.encode() in path.read_bytes()]

    assert len(naming()) == 3
    forget(corpus.store, [gone])
    assert naming() == []
