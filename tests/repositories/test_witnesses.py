"""What others recorded of line owners, beside the replay: notes by the standard, planted histories, hostile notes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.cli import main
from agentsignals.ingest.collection import witness_repository
from agentsignals.repositories.witness_comparison import Compared, Witnessed
from agentsignals.repositories.witnesses import Range, Statement, agent_trace, git_ai, statements
from tests.repositories.story import Agent, Story, block

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus" / "native" / "git-ai-notes"
KEY = "s_0123456789abcd"


def note(story: Story, sha: str, attestations: str, session: str = "", key: str = KEY, **metadata: Any) -> None:
    """Writes an authorship log as the standard has it."""
    record = {"agent_id": {"tool": "claude", "id": session, "model": "claude-sonnet-4-6"}}
    body = {"schema_version": "authorship/3.0.0", "git_ai_version": "1.6.22", "base_commit_sha": sha, "prompts": {}}
    text = f"{attestations}---\n{json.dumps(body | {'sessions': {key: record}} | metadata)}"
    source = story.folder / "note"
    source.write_text(text)
    story.git("notes", "--ref=ai", "add", "-f", "-F", str(source), sha)


def read(story: Story) -> Witnessed:
    if not (story.folder / "tree").exists():
        story.publish()
    return witness_repository(str(story.root), story.folder / "store", jobs=1)


def one(result: Witnessed) -> Compared:
    (compared,) = result.witnesses
    return compared


def feature(story: Story) -> tuple[Agent, str]:
    """A commit of twenty agent's lines on a branch, with a note that says so."""
    story.begun(10)
    story.git("switch", "-q", "-c", "feature")
    with story.agent("noted") as agent:
        agent.write("new.py", story.are("agent", block("new", 20)))
    story.wait(30)
    sha = story.commit("feature", agent)
    note(story, sha, f"new.py\n  {KEY}::t_00 1-20\n", agent.log.session)
    return agent, sha


def test_two_witnesses_that_saw_the_same_agree_line_by_line(tmp_path: Path) -> None:
    story = Story(tmp_path)
    agent, sha = feature(story)
    story.human("new.py", story.text("new.py") + block("typed", 4))
    later = story.commit("by hand", agent)
    note(story, later, "new.py\n  h_00112233445566 21-22\n")
    compared = one(read(story))
    assert (compared.commits, compared.commits_both, compared.lines) == (2, 2, 24)
    assert compared.owners == {"agent": {"agent": 20}, "person": {"person": 2, "not_stated": 2}}
    assert (compared.compared, compared.same, compared.share) == (22, 22, 1.0)
    assert (compared.sessions_same, compared.sessions_other) == (20, 0)
    assert compared.reasons == {}, "what nobody recorded is no contradiction to a person's line"
    assert compared.low is None, "two commits give no interval"
    assert sha != later


@pytest.mark.slow
def test_each_difference_has_its_cause(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(10)
    with story.agent("causes") as agent:
        agent.write("new.py", block("new", 8))
    sha = story.commit("written", agent)
    note(story, sha, f"new.py\n  h_00 1\n  {KEY} 4-8\n", agent.log.session)
    with agent:
        agent.bash("./generate > table.py", {"table.py": block("table", 3)})
        note(story, agent.commit("by a command"), "", agent.log.session)
    story.human("app.py", story.text("app.py") + block("typed", 5))
    sha = story.commit("by hand", agent)
    note(story, sha, f"app.py\n  {KEY}::t_1 11-13\n", agent.log.session)
    compared = one(read(story))
    assert compared.reasons == {
        "written_by_a_command": 3,
        "appeared_between_turns": 3,
        "not_recorded": 2,  # an agent's call wrote them, the recorder has nothing
        "stated_a_persons": 1,
    }
    assert {(e.path, e.line) for e in compared.examples if e.reason == "stated_a_persons"} == {("new.py", 1)}


@pytest.mark.parametrize(
    "way", ["rebase", *(pytest.param(way, marks=pytest.mark.slow) for way in ("squash", "amend", "squash_merge"))]
)
def test_attributions_that_a_rewrite_lost_come_back_by_content(tmp_path: Path, way: str) -> None:
    story = Story(tmp_path)
    agent, sha = feature(story)
    expected = 20
    if way == "rebase":
        story.git("switch", "-q", "main")
        story.human("other.py", block("theirs", 10))
        story.commit("theirs")
        story.git("switch", "-q", "feature")
        story.git("rebase", "-q", "main")
    elif way == "amend":
        story.human("new.py", story.text("new.py") + block("typed", 4))
        story.git("add", ".")
        story.git("commit", "-q", "--amend", "--no-edit")
    else:
        with agent:
            agent.edit("new.py", "new_3 = ", block("second", 6) + "new_3 = ")
        second = story.commit("second", agent)
        note(story, second, f"new.py\n  {KEY}::t_2 4-9\n", agent.log.session)
        expected = 26
        if way == "squash":
            story.git("reset", "-q", "--soft", "main")
            story.git("commit", "-q", "-m", "squashed")
        else:
            story.git("switch", "-q", "main")
            story.git("merge", "-q", "--squash", "feature")
            story.git("commit", "-q", "-m", "squashed")
    compared = one(read(story))
    assert (compared.recovered, compared.recovered_commits) == (expected, 1)
    assert {r.owner for r in compared.recovered_examples} == {"agent"}
    assert compared.recovered_other == 0
    assert compared.commits_gone == (0 if way == "squash_merge" else 2 if way == "squash" else 1)
    assert sha in {r.from_commit for r in compared.recovered_examples}


@pytest.mark.slow
def test_a_copy_of_committed_lines_has_lost_nothing_and_two_owners_give_none(tmp_path: Path) -> None:
    story = Story(tmp_path)
    _, sha = feature(story)
    story.git("rm", "-q", "new.py")
    story.commit("away")
    story.put("new.py", block("new", 20))
    story.commit("typed in again")  # its source leads to it
    assert one(read(story)).recovered == 0
    story.git("switch", "-q", "-c", "other", "main")
    story.put("new.py", block("new", 20))
    typed = story.commit("the same elsewhere")
    note(story, typed, "new.py\n  h_00 1-20\n")
    story.git("switch", "-q", "-c", "third", "main")
    story.put("new.py", block("new", 20))
    story.commit("and once more")
    assert one(read(story)).recovered == 0
    assert sha


@pytest.mark.slow
def test_notes_of_commits_that_are_not_in_the_clone_are_counted(tmp_path: Path) -> None:
    story = Story(tmp_path)
    _, sha = feature(story)
    story.git("commit", "-q", "--amend", "-m", "renamed")
    story.git("reflog", "expire", "--expire=now", "--all")
    story.git("gc", "-q", "--prune=now")
    compared = one(read(story))
    assert (compared.commits_gone, compared.commits_not_here, compared.recovered) == (1, 1, 0)
    assert sha


def test_notes_that_git_cannot_read_are_no_notes_and_are_counted(tmp_path: Path) -> None:
    story = Story(tmp_path)
    feature(story)
    oid = story.git("rev-parse", "refs/notes/ai")
    path = story.root / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o600)
    path.write_bytes(b"no object")
    compared = one(read(story))
    assert (compared.records, compared.problems) == (0, {"unreadable_notes": 1})


def test_a_repository_without_sessions_still_has_witnesses(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.human("app.py", block("old", 3))
    note(story, story.commit("base"), f"app.py\n  {KEY} 1-2\n")
    result = witness_repository(str(story.root), tmp_path / "store", jobs=1)
    assert (result.commits, result.commits_replayed) == (1, 0), "a note is no commit of the code"
    assert one(result).stated == {"agent": 2}
    assert one(result).share is None


@pytest.mark.parametrize(
    ("text", "problems", "ranges"),
    [
        ("a.py\n  0123456789abcdef 1-2\n---\n{", {"bad_metadata": 1, "unresolved_key": 1}, 1),
        ("a.py\n  0123456789abcdef 1-2\n", {"no_divider": 1}, None),
        ('a.py\n  k 1\n---\n{"schema_version": "authorship/9.0.0"}', {"other_schema": 1}, None),
        ("a.py\n  0123456789abcdef 1-2\n---\n{}", {"other_schema": 1}, None),
        ('a.py\n    deep 1\n---\n{"schema_version": "authorship/3.0.0"}', {"bad_line": 1}, 0),
        (
            'a.py\n  abcdef0 4-2,x,1-99999999999,0,7\n---\n{"schema_version": "authorship/3.0.0"}',
            {"unresolved_key": 1, "bad_range": 4},
            1,
        ),
        ('"my file.py"\n  h_1 1\n---\n{"schema_version": "authorship/3.0.0"}', {}, 1),
        ('\xff.py\n  human 1\n---\n{"schema_version": "authorship/3.0.0", "prompts": null}', {}, 1),
    ],
)
def test_a_note_says_what_can_be_read_of_it(text: str, problems: dict[str, int], ranges: int | None) -> None:
    counted: Counter[str] = Counter()
    account = git_ai.read(text.encode("latin-1"), "0" * 40, counted)
    assert dict(counted) == problems
    assert (None if account is None else sum(map(len, account.ranges.values()))) == ranges


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=20), st.sets(st.integers(1, 30), max_size=30)
)
def test_of_overlapping_ranges_the_last_one_holds(spans: list[tuple[int, int]], lines: set[int]) -> None:
    ranges = [Range(a, b, Statement(owner="agent", session_id=str(n))) for n, (a, b) in enumerate(spans)]
    plain: dict[int, str] = {}
    for n, (a, b) in enumerate(spans):
        plain |= {line: str(n) for line in lines if a <= line <= b}
    assert {line: s.session_id for line, s in statements(ranges, lines).items()} == plain


def test_a_note_of_endless_ranges_takes_no_longer_than_its_size() -> None:
    ranges = [Range(1, 999_999_999, Statement(owner="agent"))] * 200_000
    assert len(statements(ranges, range(1, 5_001))) == 5_000


def record(revision: str, *files: tuple[str, str, int, int], timestamp: str = "2026-01-01T00:00:00Z") -> str:
    return json.dumps({
        "version": "0.1.0", "id": "0", "timestamp": timestamp, "vcs": {"type": "git", "revision": revision},
        "tool": {"name": "cursor", "version": "2.4.0"},
        "files": [
            {"path": path, "conversations": [{
                "url": "file:///home/me/abc-1.jsonl", "contributor": {"type": owner, "model_id": "anthropic/x"},
                "ranges": [{"start_line": a, "end_line": b}],
            }]} for path, owner, a, b in files
        ],
    })  # fmt: skip


@pytest.mark.slow
def test_agent_trace_records_come_to_the_commit_whose_lines_they_count(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.human("app.py", block("old", 10))
    base = story.commit("base")
    with story.agent("traced") as agent:
        agent.write("new.py", block("new", 6))
    sha = story.commit("new", agent)
    lines = [
        record(sha, ("new.py", "ai", 1, 2)),  # by the standard: the commit
        record(base, ("new.py", "human", 3, 4), ("gone.py", "ai", 1, 1)),  # by the reference hook: the one before
        record(sha, ("new.py", "mixed", 5, 5), timestamp="2026-01-02T00:00:00Z"),
        record("f" * 40, ("new.py", "ai", 1, 1)),
        '{"version": "0.1.0", "files": []}',
        '{"version": 1}',
    ]
    story.put(".agent-trace/traces.jsonl", "\n".join(lines))
    compared = one(read(story))
    assert compared.witness == agent_trace.WITNESS.name
    assert compared.owners == {"agent": {"agent": 2, "person": 2, "mixed": 1, "not_stated": 1}}
    assert compared.problems == {"not_placed": 1, "revision_not_here": 1, "bad_record": 1, "no_revision": 1}
    assert (compared.sessions_same, compared.sessions_other) == (0, 0), "abc-1 is no session of the store"
    assert compared.reasons == {"stated_a_persons": 2, "not_recorded": 1}
    (story.root / ".agent-trace/link.json").symlink_to("/etc/hostname")
    (story.root / ".agent-trace/folder.json").mkdir()
    assert one(read(story)).problems["no_plain_file"] == 2
    (story.root / ".agent-trace/link.json").unlink()
    story.git("add", ".agent-trace")
    story.git("commit", "-q", "-m", "records")
    bare = tmp_path / "bare"
    story.git("clone", "-q", "--bare", str(story.root), str(bare))
    assert one(witness_repository(str(bare), tmp_path / "other", jobs=1)).records == 5, (
        "those of the head, without a tree"
    )


@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus is not here")
def test_real_notes_are_read_whole() -> None:
    """Attestation lines and lines counted with awk over the same files."""
    counted = {
        "h__": ("person", 1), "h_s": (None, 378), "hex16__": ("agent", 11), "hex16_m": ("agent", 15),
        "hex16_s": ("agent", 424), "hex7": ("agent", 104), "msgs": (None, 0), "s__": ("agent", 205),
    }  # fmt: skip
    problems: Counter[str] = Counter()
    for path in sorted(CORPUS.iterdir()):
        account = git_ai.read(path.read_bytes(), path.stem.rpartition("__")[2], problems)
        assert account is not None, path.name
        owner, lines = next(v for k, v in counted.items() if path.name.startswith(k))
        ranges = [r for part in account.ranges.values() for r in part]
        assert sum(r.lines for r in ranges) == lines, path.name
        if owner is not None:
            assert {r.statement.owner for r in ranges} == {owner}
    assert set(problems) <= {"unresolved_key"}


@pytest.mark.slow
def test_records_that_are_exported_say_of_every_line_what_the_replay_says(tmp_path: Path) -> None:
    story = Story(tmp_path)
    agent, _ = feature(story)
    story.git("update-ref", "-d", "refs/notes/ai")
    key = "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vX4" * 4
    with agent:
        agent.write(f"keys/{key}.py", block("named", 3))
    story.commit("a key in a name", agent)
    story.human("new.py", story.text("new.py") + block("typed", 4))
    story.commit("by hand", agent)
    assert read(story).witnesses == []
    folder = tmp_path / "records"
    masked = tmp_path / "masked"
    for out, choice in ((folder, ["--no-redact"]), (masked, [])):
        place = ["-o", str(out), "--store", str(tmp_path / "store"), "--quiet"]
        assert main(["export", "--to", "agent-trace", *place, *choice]) == 0
    assert key in (folder / "traces.jsonl").read_text()
    assert key not in (masked / "traces.jsonl").read_text()
    story.put(".agent-trace/traces.jsonl", (folder / "traces.jsonl").read_text())
    compared = one(read(story))
    assert compared.owners == {"agent": {"agent": 23}, "person": {"person": 4}}
    assert (compared.reasons, compared.problems, compared.sessions_same) == ({}, {}, 23)
