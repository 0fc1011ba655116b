"""The living collection: repositories named in any way, read once, brought up to date, left out for a reason."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.errors import SourceError
from agentsignals.ingest.collection import Collection, Filters, attribute_repository, collect, named_repositories
from agentsignals.store import Store
from tests.claude import SESSION, Log
from tests.git_repositories import V1, Repository, metadata
from tests.quick import some
from tests.repositories.story import Story, block


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def told(folder: Path, name: str, sessions: int = 1) -> Story:
    """A repository with a checkpoint a session."""
    story = Story(folder)
    story.human("app.py", block("old", 3))
    story.commit("base")
    for n in range(sessions):
        more(story, f"{name}-{n}")
    story.publish()
    return story


def more(story: Story, name: str) -> None:
    a = story.agent(name)
    a.prompt()
    a.write(f"{name}.py", block(name.replace("-", "_"), 4))
    a.say()
    story.commit(name, a)


def by_repo(collection: Collection) -> dict[str, tuple[Any, ...]]:
    return {
        Path(o.repo).parent.name: (o.status, o.checkpoints, o.new_checkpoints, o.commits, o.new_commits, o.files_read)
        for o in collection.repositories
    }


@pytest.mark.slow
def test_a_second_run_reads_nothing_and_a_third_only_what_is_new(tmp_path: Path) -> None:
    one, _ = told(tmp_path / "src" / "one", "one"), told(tmp_path / "src" / "two", "two", 2)
    store = tmp_path / "store"
    assert by_repo(collect([str(tmp_path / "src")], store)) == {
        "one": ("new", 1, 1, 2, 2, 2),
        "two": ("new", 2, 2, 3, 3, 4),
    }
    written = {p: p.stat().st_mtime_ns for p in store.rglob("*.parquet")}
    assert by_repo(collect([str(tmp_path / "src")], store)) == {
        "one": ("unchanged", 1, 0, 2, 0, 0),
        "two": ("unchanged", 2, 0, 3, 0, 0),
    }
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*.parquet")} == written
    more(one, "news")
    (tmp_path / "src" / "one" / "tree").rename(tmp_path / "gone")
    one.publish()
    assert by_repo(collect([str(tmp_path / "src")], store)) == {
        "one": ("updated", 2, 1, 3, 1, 2),
        "two": ("unchanged", 2, 0, 3, 0, 0),
    }


def test_commits_are_stored_with_the_sessions_they_belong_to(tmp_path: Path) -> None:
    story = told(tmp_path / "one", "one")
    collect([str(story.root)], tmp_path / "store")
    rows = Store(tmp_path / "store").sql(
        "SELECT subject, relation, session_ids, len(checkpoint_ids), is_merge FROM commits ORDER BY committed_at"
    )
    assert rows.fetchall() == [
        ("base", None, [], 0, False),
        ("one-0", "original", [story.agents[0].log.session], 1, False),
    ]
    assert Store(tmp_path / "store").sql("SELECT count(*) FROM sessions").fetchall() == [(1,)]


@pytest.mark.slow
def test_an_address_is_fetched_and_fetched_again(tmp_path: Path) -> None:
    story = told(tmp_path / "far", "far")
    address = f"file://{story.root}"
    first = collect([address], tmp_path / "store")
    assert [(o.repo, o.status, o.checkpoints, o.sessions) for o in first.repositories] == [(address, "new", 1, 1)]
    assert collect([address], tmp_path / "store").by_status == {"unchanged": 1}
    story.human("app.py", block("other", 2))
    story.commit("news")
    assert collect([address], tmp_path / "store").new_commits == 1
    assert main(["attribute", address, "--store", str(tmp_path / "store"), "--json", "--quiet"]) == 0


def test_a_repository_that_fails_does_not_cost_the_others(tmp_path: Path) -> None:
    story = told(tmp_path / "good", "good")
    broken = tmp_path / "broken" / "repo"
    (broken / "objects").mkdir(parents=True)
    (broken / "HEAD").write_text("nothing")
    listed = tmp_path / "list.txt"
    listed.write_text(f"# ours\n{broken}\n\n{story.root}  # this one\n{tmp_path / 'missing'}\n")
    found = collect([str(listed)], tmp_path / "store")
    assert [o.status for o in found.repositories] == ["failed", "new", "failed"]
    assert all(o.reason for o in found.repositories if o.status == "failed")


@pytest.mark.parametrize(
    ("filters", "expected", "reason"),
    [
        (Filters(), "new", None),
        (Filters(min_checkpoints=2), "filtered", "fewer_checkpoints"),
        (Filters(min_commits=3), "filtered", "fewer_commits"),
        (Filters(min_linked=2), "filtered", "fewer_linked_commits"),
    ],
)
def test_a_filter_leaves_out_and_counts(filters: Filters, expected: str, reason: str | None, tmp_path: Path) -> None:
    story = told(tmp_path / "one", "one")
    found = collect([str(story.root)], tmp_path / "store", filters)
    assert [(o.status, o.reason) for o in found.repositories] == [(expected, reason)]
    assert found.filtered == ({reason: 1} if reason else {})
    assert len(Store(tmp_path / "store").manifest.sessions) == (0 if reason else 1)


def test_another_filter_looks_again(tmp_path: Path) -> None:
    story = told(tmp_path / "one", "one")
    collect([str(story.root)], tmp_path / "store", Filters(min_checkpoints=2))
    again = collect([str(story.root)], tmp_path / "store", Filters())
    assert [(o.status, o.sessions) for o in again.repositories] == [("new", 1)]


def test_forks_of_a_search_are_left_out_without_being_fetched(tmp_path: Path) -> None:
    found = tmp_path / "search.json"
    found.write_text(json.dumps({"items": [{"full_name": "a/fork", "fork": True}]}))
    told_of = collect([str(found)], tmp_path / "store", Filters(forks=False))
    assert (told_of.by_status, told_of.filtered) == ({"filtered": 1}, {"fork": 1})


def test_a_repository_without_checkpoints_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    story = Story(tmp_path / "plain")
    story.human("app.py", block("old", 3))
    story.commit("base")
    assert collect([str(story.root)], tmp_path / "store").filtered == {"fewer_checkpoints": 1}
    anyway = collect([str(story.root)], tmp_path / "store", Filters(min_checkpoints=0))
    assert [(o.status, o.commits, o.sessions) for o in anyway.repositories] == [("new", 1, 0)]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"items": [{"repository": {"full_name": "a/b", "fork": False}}]}, [("https://github.com/a/b", False)]),
        ([{"clone_url": "https://x.org/a/b.git", "fork": True}], [("https://x.org/a/b.git", True)]),
        (
            [{"nameWithOwner": "a/b", "isFork": True}, "c/d"],
            [("https://github.com/a/b", True), ("https://github.com/c/d", False)],
        ),
        ({"repositories": ["a/b", "a/b"]}, [("https://github.com/a/b", False)]),
        (
            {"items": [{"url": "https://api.github.com/repos/a/b", "full_name": "a/b"}]},
            [("https://github.com/a/b", False)],
        ),
    ],
)
def test_search_results_of_several_shapes_name_repositories(document: Any, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    path.write_text(json.dumps(document))
    assert [(c.place, c.is_fork) for c in named_repositories([str(path)])] == expected


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "[1, null, {}]", "[" * 5_000])
def test_a_list_that_names_none_says_so(text: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(text)
    if text.startswith("[["):
        assert collect([str(path)], tmp_path / "store").by_status == {"failed": 1}  # a line like any other
        return
    with pytest.raises(SourceError):
        named_repositories([str(path)])


def test_the_verb_lists_without_reading_and_says_when_nothing_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = told(tmp_path / "one", "one")
    store = ["--store", str(tmp_path / "store"), "--quiet"]
    assert main(["collect", str(tmp_path), "--list", *store]) == 0
    assert capsys.readouterr().out.strip() == str(story.root)
    assert not (tmp_path / "store").exists()
    assert main(["collect", str(story.root), "--json", *store]) == 0
    assert json.loads(capsys.readouterr().out)["by_status"] == {"new": 1}
    assert main(["collect", str(story.root), *store]) == 0
    assert "nothing new" in capsys.readouterr().out
    assert main(["collect", str(tmp_path / "nowhere"), "--json", *store]) == 1
    assert "error" in json.loads(capsys.readouterr().out)


def test_discovery_says_which_clones_hold_checkpoints_and_reads_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(tmp_path / "src" / "with", "with")
    plain = Story(tmp_path / "src" / "without")
    plain.human("app.py", block("old", 3))
    plain.commit("base")
    (tmp_path / "found.json").write_text(json.dumps([{"full_name": "a/b", "fork": True}]))
    store = ["--store", str(tmp_path / "none")]
    words = ["discover", "repos", str(tmp_path / "src"), str(tmp_path / "found.json"), *store]
    assert main([*words, "--json"]) == 0
    found = [
        (d["is_here"], d["is_fork"], d["layouts"], d["commits"], d["naming"])
        for d in json.loads(capsys.readouterr().out)
    ]
    assert found == [
        (True, False, {"sharded": 1}, 2, 1),
        (True, False, {}, 1, 0),
        (False, True, {}, None, None),
    ]
    assert main(words) == 0
    assert "3 repositories, 1 with checkpoints" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()
    assert main(["discover", "repos", "--json"]) == 2
    assert main(["discover", "hub", "name", "--json"]) == 2


TO_A_BOT = "Fix issue {n} of the list, and write a test for it, and then say what you did, in a few plain words."
OF_A_PERSON = "A long prompt that a person has written, with much in it that nobody else would ever say. {n}"


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [([TO_A_BOT] * 3, 3), ([TO_A_BOT] * 2, 0), (["continue"] * 9, 0), ([OF_A_PERSON, "b", "c"], 0)],
    ids=["three alike", "two alike", "short", "a person's"],
)
def test_long_prompts_that_come_again_and_again_are_a_programs(
    prompts: list[str], expected: int, tmp_path: Path
) -> None:
    story = Story(tmp_path / "one")
    story.human("app.py", block("old", 3))
    story.commit("base")
    for n, prompt in enumerate(prompts):
        a = story.agent(f"a{n}")
        a.prompt(prompt.format(n=n))
        a.write(f"a{n}.py", block(f"a{n}", 4))
        story.commit(f"c{n}", a)
    story.publish()
    found = collect([str(story.root)], tmp_path / "store")
    assert (found.sessions, found.machine_sessions) == (len(prompts), expected)
    labels = Store(tmp_path / "store").sql("SELECT count(*) FROM labels WHERE task = 'machine_prompts'").fetchall()
    assert labels == [(expected,)]


def ids(store: Path) -> set[str]:
    return set(Store(store).manifest.sessions)


@pytest.mark.slow
def test_sessions_that_a_program_began_are_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    story = Story(tmp_path / "one")
    story.human("app.py", block("old", 3))
    story.commit("base")
    for n in range(3):
        a = story.agent(f"bot{n}")
        a.prompt(TO_A_BOT.format(n=n))
        a.write(f"bot{n}.py", block(f"bot{n}", 4))
        story.commit(f"bot{n}", a)
    more(story, "person")
    story.publish()
    person = story.agents[-1].log.session
    store, filters = tmp_path / "store", Filters(machine_prompts=False)
    found = collect([str(story.root)], store, filters)
    assert (found.sessions, found.machine_sessions, found.sessions_left_out) == (1, 3, 3)
    assert ids(store) == {person}
    assert collect([str(story.root)], store, filters).by_status == {"unchanged": 1}
    attribute_repository(str(story.root), store, jobs=1)
    assert ids(store) == {person}, "attributing does not bring them back"
    more(story, "news")
    (tmp_path / "one" / "tree").rename(tmp_path / "gone")
    story.publish()
    found = collect([str(story.root)], store, filters)
    assert (found.sessions, found.machine_sessions, found.sessions_left_out) == (2, 3, 3)
    assert collect([str(story.root)], store, Filters()).sessions == 5
    assert len(ids(store)) == 5


@pytest.mark.slow
def test_collecting_keeps_what_attribution_found_of_commits(tmp_path: Path) -> None:
    story = told(tmp_path / "one", "one")
    store = tmp_path / "store"
    attribute_repository(str(story.root), store, jobs=1)
    figures = "SELECT subject, added, agent_exact, mode, in_turn, flags FROM commits ORDER BY 1"
    before = Store(store).sql(figures).fetchall()
    assert [row[1] for row in before] == [None, 4]
    assert collect([str(story.root)], store).by_status == {"new": 1}
    assert Store(store).sql(figures).fetchall() == before
    more(story, "news")
    (tmp_path / "one" / "tree").rename(tmp_path / "gone")
    story.publish()
    assert collect([str(story.root)], store).by_status == {"updated": 1}
    assert [row[1] for row in Store(store).sql(figures).fetchall()] == [None, None, 4]
    attribute_repository(str(story.root), store, jobs=1)
    assert [row[1] for row in Store(store).sql(figures).fetchall()] == [None, 4, 4]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Killed without warning when the first repository is done, in the middle of the second, and again in the third."""
    for n in range(4):
        told(tmp_path / "src" / f"r{n}", f"r{n}", 2)
    store = tmp_path / "store"
    for done in (1, 2):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path / "src"), str(store), "2"], check=False, capture_output=True
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
        assert len(list(store.glob("repos/*/collected.json"))) == done
        assert Store(store).sql("SELECT count(*) FROM sessions").fetchall() >= [(2 * done,)]
    found = collect([str(tmp_path / "src")], store)
    assert [o.status for o in found.repositories] == ["unchanged", "unchanged", "new", "new"]
    whole = tmp_path / "whole"
    collect([str(tmp_path / "src")], whole)
    for asked in ("SELECT session_id, turn, text FROM turns ORDER BY ALL", "SELECT * FROM commits ORDER BY ALL"):
        assert Store(store).sql(asked).fetchall() == Store(whole).sql(asked).fetchall()
    assert not list(store.rglob("*.tmp"))


KILLED = """
import os, signal, sys
from agentsignals.ingest import collection
from agentsignals.store import sidecars

updating, seen = sidecars.update_repository_rows, 0

def update(*given):
    global seen
    seen += 1
    if seen == int(sys.argv[3]):  # its sessions are in the store, its commits are not
        os.kill(os.getpid(), signal.SIGKILL)
    return updating(*given)

collection.sidecars.update_repository_rows = update
collection.collect([sys.argv[1]], sys.argv[2], jobs=1)
"""


# Collected from every layout in which Entire has kept checkpoints


def snapshots(ids: list[str]) -> dict[str, str]:
    """The transcript of one session as each checkpoint has it: each holds the one before, and a turn more."""
    log = Log()
    found = {}
    for n, checkpoint_id in enumerate(ids):
        log.user(f"turn {n}")
        log.ran("Write", file_path=f"/work/shop/{n}.py", content=f"line_{n} = {n}\n")
        found[checkpoint_id] = log.data().decode()
    return found


def on_one_ref(ref: str, transcripts: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    files: dict[str, str] = {}
    for one, text in transcripts.items():
        folder = f"{one[:2]}/{one[2:]}/0"
        files |= {f"{folder}/metadata.json": metadata(SESSION, one), f"{folder}/full.jsonl": text}
    return [(ref, files)]


def on_two_refs(transcripts: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    about = {f"{one[:2]}/{one[2:]}/0/metadata.json": metadata(SESSION, one) for one in transcripts}
    raw = {f"{one[:2]}/{one[2:]}/0/raw_transcript": text for one, text in transcripts.items()}
    return [("refs/entire/checkpoints/v2/main", about), ("refs/entire/checkpoints/v2/full/current", raw)]


def on_a_ref_each(transcripts: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    return [
        (f"refs/entire/checkpoints/{one[-2:]}/{one}", {"0/metadata.json": metadata(SESSION, one), "0/full.jsonl": text})
        for one, text in transcripts.items()
    ]


HEX = ["a1b2c3d4e5f6", "b2c3d4e5f6a1", "c3d4e5f6a1b2"]
ULIDS = [f"01KQ4Z9T7S3V5W7X9YABCDEF{n:02d}" for n in range(3)]


@pytest.mark.parametrize(
    ("names", "kept"),
    some(
        [
            (HEX, lambda t: on_one_ref(V1, t)),
            (HEX, lambda t: on_one_ref("refs/entire/checkpoints/v1", t)),
            (HEX, on_two_refs),
            (ULIDS, on_a_ref_each),
        ],
        2,
    ),
    ids=["v1 branch", "v1 as a ref", "v2, two refs", "a ref each"],
)
def test_every_layout_gives_the_longest_transcript_of_a_session_once(
    names: list[str], kept: Any, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "shop.git")
    parent: list[str] = []
    for n, checkpoint_id in enumerate(names):
        tree = repository.tree({f"{k}.py": f"line_{k} = {k}\n" for k in range(n + 1)})
        message = f"work {n}\n\nEntire-Checkpoint: {checkpoint_id}"
        parent = ["-p", repository.git("commit-tree", tree, *parent, "-m", message)]
    repository.git("update-ref", "refs/heads/main", parent[1])
    for ref, files in kept(snapshots(names)):
        repository.put(ref, files)
    store = tmp_path / "store"
    found = collect([str(repository.path)], store)
    assert (found.sessions, found.checkpoints, found.commits) == (1, 3, 3)
    assert [o.linked for o in found.repositories] == [3]
    turns = Store(store).sql("SELECT text FROM turns ORDER BY turn").fetchall()
    assert turns == [("turn 0",), ("turn 1",), ("turn 2",)]
    assert Store(store).sql("SELECT n_tool_calls FROM sessions").fetchall() == [(3,)]
    assert Store(store).sql("SELECT DISTINCT session_ids FROM commits").fetchall() == [([SESSION],)]
