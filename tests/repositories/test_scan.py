"""Scans of planted repositories: each weakness found once, with the owner of its lines; what moves is not new."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.ingest.collection import scan_repository
from agentsignals.repositories import scanners as own_rules
from agentsignals.repositories.scan import Scan
from agentsignals.repositories.scanners import OwnRules
from agentsignals.store import Store
from tests.quick import some
from tests.repositories.story import Story, block

SHELL = "import subprocess\n\n\ndef listed(folder):\n    return subprocess.run(f'ls {folder}', shell=True)\n"
EVAL = "def worth(text):\n    return eval(text)\n"
HASH = "import hashlib\n\n\ndef name(data):\n    return hashlib.md5(data)\n"


def story_of_agent_and_human(folder: Path) -> Story:
    """Agent: a command and a hash; a person: an eval; both in commits of their own, and one commit of both."""
    story = Story(folder).begun(5)
    with story.agent("writer") as a:
        a.write("listing.py", SHELL)
    story.commit("by agent", a)
    a.prompt()
    a.say()
    story.human("worth.py", EVAL)
    story.commit("by human", a)
    with a:
        a.write("naming.py", HASH)
    story.human("more.py", "import os\n\nos.system('rm ' + input())\n")
    story.commit("by both", a)
    return story


def scan_of(story: Story, **options: Any) -> Scan:
    story.publish()
    return scan_repository(str(story.root), OwnRules(), story.folder / "store", jobs=1, **options)


def rows(story: Story, columns: str, where: str = "true") -> list[tuple[Any, ...]]:
    query = f"SELECT {columns} FROM weaknesses JOIN commits USING (repo, commit_sha) WHERE {where} ORDER BY ALL"
    return Store(story.folder / "store").sql(query).fetchall()


def test_each_planted_weakness_is_found_once_and_is_its_writers(tmp_path: Path) -> None:
    story = story_of_agent_and_human(tmp_path)
    told = scan_of(story)
    assert rows(story, "subject, change, rule, path, line, owner, tag") == [
        ("by agent", "introduced", "py-shell-true", "listing.py", 5, "agent", "agent_exact"),
        ("by both", "introduced", "py-os-system", "more.py", 3, "human", "human_observed"),
        ("by both", "introduced", "py-weak-hash", "naming.py", 5, "agent", "agent_exact"),
        ("by human", "introduced", "py-eval", "worth.py", 2, "human", "human_observed"),
    ]
    assert (told.introduced, told.fixed, told.moved, told.owners) == (4, 0, 0, {"agent": 2, "human": 2})
    [(session,)] = rows(story, "DISTINCT session_id", "owner = 'agent'")
    assert session == story.agents[0].log.session


@pytest.mark.slow
def test_rates_divide_by_the_lines_of_the_same_owner_or_mode_and_name_the_attribution(tmp_path: Path) -> None:
    told = scan_of(story_of_agent_and_human(tmp_path))
    found = {(r.attribution, r.by, r.group): r for r in told.rates if r.files == "all"}
    agent, human = found["replayed", "owner", "agent"], found["replayed", "owner", "human"]
    assert (agent.lines, agent.introduced, human.lines, human.introduced) == (6, 2, 4, 2)
    assert agent.introduced_rate == pytest.approx(2 / 6 * 1000)
    assert agent.introduced_low == pytest.approx(0.2422 / 6 * 1000, rel=1e-3)  # chi-square tables: 0.2422 to 7.2247
    assert agent.introduced_high == pytest.approx(7.2247 / 6 * 1000, rel=1e-3)
    assert (agent.fixed, agent.fixed_rate) == (None, None)
    modes = {g: (r.lines, r.introduced, r.fixed) for (a, b, g), r in found.items() if (a, b) == ("replayed", "mode")}
    assert modes == {"human_only": (2, 1, 0), "collaborative": (5, 2, 0), "vibe": (3, 1, 0)}
    assert {r.attribution for r in told.rates} == {"any", "replayed", "replayed_sure"}
    assert (found["any", "all", "all"].commits_with, found["any", "all", "all"].largest_commit) == (3, 2)


@pytest.mark.parametrize(
    ("what", "expected"),
    some(
        [
            ("rename", []),
            ("move in the file", [("moved", "listing.py", "listing.py")]),
            ("move to another file", [("moved", "other.py", "listing.py")]),
            ("lines before it", []),
            ("white space", [("moved", "listing.py", "listing.py")]),
            ("copy", [("introduced", "other.py", None)]),
            ("fix", [("fixed", "listing.py", None)]),
            ("delete", [("fixed", "listing.py", None)]),
            ("twice", [("introduced", "listing.py", None)]),
        ],
        6,
    ),
)
def test_what_moves_is_not_new_and_what_goes_is_fixed(
    tmp_path: Path, what: str, expected: list[tuple[Any, ...]]
) -> None:
    story = Story(tmp_path)
    story.human("listing.py", SHELL + block("rest", 12))
    story.human("other.py", block("other", 12))
    story.commit("base")
    with story.agent("mover") as a:
        call = "    return subprocess.run(f'ls {folder}', shell=True)\n"
        if what == "rename":
            a.bash("git mv listing.py lister.py")
            (story.root / "listing.py").rename(story.root / "lister.py")
        elif what == "move in the file":
            a.write("listing.py", "import subprocess\n" + block("rest", 12) + "\n\ndef listed_now(folder):\n" + call)
        elif what == "move to another file":
            a.write("listing.py", block("rest", 12))
            a.write("other.py", SHELL.replace("listed", "shown") + block("other", 12))
        elif what == "lines before it":
            a.edit("listing.py", "import subprocess\n", "import os\nimport subprocess\n\nos.getcwd()\n")
        elif what == "white space":
            a.edit("listing.py", call, call.replace(", shell", ",  shell"))
        elif what == "copy":
            a.write("other.py", SHELL + block("other", 12))
        elif what == "fix":
            a.edit("listing.py", call, "    return subprocess.run(['ls', folder])\n")
        elif what == "delete":
            a.bash("rm listing.py")
            (story.root / "listing.py").unlink()
        elif what == "twice":
            a.edit("listing.py", call, call + "\n\ndef again(folder):\n" + call)
    story.commit("changed", a)
    told = scan_of(story)
    assert rows(story, "change, path, moved_from", "subject = 'changed'") == expected
    assert told.introduced == sum(change == "introduced" for change, _, _ in expected)


@pytest.mark.slow
def test_a_change_beside_unadded_lines_that_makes_a_weakness_is_of_the_context(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.human("app.py", "from mine import loads\n\n\ndef read(data):\n    return loads(data)\n" + block("rest", 9))
    story.commit("base")
    with story.agent("importer") as a:
        a.edit("app.py", "from mine import loads", "from pickle import loads")
    story.commit("changed", a)
    told = scan_of(story)
    assert rows(story, "rule, line, owner, tag") == [("py-unsafe-decoder", 5, "context", None)]
    [rate] = [r for r in told.rates if r.group == "context" and r.attribution == "replayed" and r.files == "all"]
    assert (rate.lines, rate.introduced, rate.introduced_rate) == (0, 1, None)


@pytest.mark.slow
def test_tests_are_counted_apart_and_vendored_code_not_at_all(tmp_path: Path) -> None:
    story = Story(tmp_path).begun(5)
    with story.agent("writer") as a:
        for path in ("src/a.py", "tests/test_a.py", "node_modules/x/a.py", "notes.md"):
            a.write(path, EVAL)
    story.commit("made", a)
    told = scan_of(story)
    assert rows(story, "path, place") == [("src/a.py", "code"), ("tests/test_a.py", "test")]
    everything = {r.files: (r.lines, r.introduced) for r in told.rates if r.by == "all"}
    assert everything == {"all": (4, 2), "code": (2, 1)}


class Counting(OwnRules):
    """Our rules, with the number of files they were asked about; fails at one of them when told to."""

    def __init__(self, fails_at: int = -1) -> None:
        self.seen = 0
        self.fails_at = fails_at
        self.at_once = 1

    def scan(self, files: Any) -> Any:
        if self.seen == self.fails_at:
            raise KeyboardInterrupt
        self.seen += len(files)
        return super().scan(files)


@pytest.mark.slow
def test_a_second_run_scans_nothing_new_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = story_of_agent_and_human(tmp_path)
    first = scan_of(story)
    counting = Counting()
    again = scan_repository(str(story.root), counting, tmp_path / "store", jobs=1)
    assert (first.scanned, first.unchanged, counting.seen, again.scanned, again.unchanged) == (4, False, 0, 0, True)
    assert (again.introduced, again.rates) == (first.introduced, first.rates)
    assert main(["scan", str(story.root), "--store", str(tmp_path / "store"), "--quiet"]) == 0
    assert "nothing new to scan" in capsys.readouterr().out
    assert (
        scan_repository(str(story.root), counting, tmp_path / "store", jobs=1, afresh=True).scanned
        == counting.seen
        == 4
    )


@pytest.mark.slow
def test_a_stopped_scan_goes_on_where_it_was(tmp_path: Path) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    with pytest.raises(KeyboardInterrupt):
        scan_repository(str(story.root), Counting(fails_at=3), tmp_path / "store", jobs=1)
    rest = Counting()
    assert scan_repository(str(story.root), rest, tmp_path / "store", jobs=1).introduced == 4
    assert rest.seen == 1


@pytest.mark.slow
def test_other_rules_mean_another_version_and_a_new_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = story_of_agent_and_human(tmp_path)
    scan_of(story)
    some = tuple(rule for rule in own_rules.rules() if rule.id == "py-eval")
    monkeypatch.setattr(own_rules, "rules", lambda: some)
    monkeypatch.setattr(own_rules, "rules_for", lambda language: some if language == "python" else ())
    told = scan_repository(str(story.root), OwnRules(), tmp_path / "store", jobs=1)
    assert (told.scanned, told.introduced, told.scanner_version.split("-")[0]) == (4, 1, "1")
    assert rows(story, "DISTINCT scanner_version") == [(told.scanner_version,)]


@pytest.mark.slow
def test_the_signal_of_a_session_becomes_available_with_what_it_is_made_of(tmp_path: Path) -> None:
    story = story_of_agent_and_human(tmp_path)
    scan_of(story)
    path = "chat.vulnerabilities_introduced_per_kloc"
    [(value, detail)] = story.rows(f"SELECT number, detail FROM signals WHERE signal = '{path}'")
    told = json.loads(detail)
    assert value == pytest.approx(4 / 10 * 1000, rel=1e-3)
    assert (told["labeller"], told["introduced"], told["on_own_lines"], told["lines"], told["commits"]) == (
        "scan:rules", 4, 2, 10, 3,
    )  # fmt: skip


@pytest.mark.slow
def test_what_a_clone_has_not_is_said_costs_nobody_else_and_is_scanned_once_it_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.attributed()
    oid = story.git("rev-parse", "HEAD:naming.py")
    content = story.root / ".git/objects" / oid[:2] / oid[2:]
    content.rename(tmp_path / "away")
    told = scan_repository(str(story.root), OwnRules(), tmp_path / "store", jobs=1)
    assert set(told.rules) == {"py-eval", "py-shell-true"}
    assert (told.commits, told.commits_left_out, told.scanned) == (2, 1, 2)
    assert main(["scan", str(story.root), "--store", str(tmp_path / "store"), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "nothing new to scan" in shown and "none; 1 commits left out" in shown
    (tmp_path / "away").rename(content)
    last = scan_repository(str(story.root), OwnRules(), tmp_path / "store", jobs=1)
    assert (last.introduced, last.commits, last.commits_left_out, last.scanned) == (4, 3, 0, 2)


@pytest.mark.slow
def test_the_document_and_the_table_name_the_attribution(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    at = ["--store", str(tmp_path / "store"), "--quiet"]
    assert main(["scan", str(story.root), *at, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"scanner", "scanner_version", "introduced", "fixed", "moved", "rates", "unchanged"} <= told.keys()
    assert all(rate["attribution"] for rate in told["rates"])
    assert main(["scan", str(story.root), *at]) == 0
    shown = capsys.readouterr().out
    assert "4 introduced, 0 fixed, 0 moved" in shown and "replayed_sure" in shown and "not confirmed" in shown


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--scanner", "guess"], 2, "There is no scanner"),
        (["--scanner", "semgrep"], 2, "brings no rules"),
        (["--scanner", "semgrep", "--config", "p/default"], 2, "no file or folder"),
        (["--config", "rules.yaml"], 2, "takes no rules"),
        (["--sarif", "nowhere.sarif", "--scanner", "rules"], 2, "A scanner and"),
    ],
)
def test_wrong_words_are_told_in_a_sentence(
    words: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", str(tmp_path), *words, "--store", str(tmp_path / "store"), "--json", "--quiet"]) == code
    assert says in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_repository_without_sessions_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(tmp_path)
    story.human("a.py", EVAL)
    story.commit("base")
    assert main(["scan", str(story.root), "--store", str(tmp_path / "store"), "--json", "--quiet"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "source"


@pytest.fixture(autouse=True)
def _no_store_of_the_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AGENTSIGNALS_STORE", str(tmp_path / "unused"))
    yield
