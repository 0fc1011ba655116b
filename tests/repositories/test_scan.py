"""Scans of planted repositories: each weakness found once, with the owner of its lines; what moves is not new; rates,
recall, study and reports of other scanners."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.weaknesses import figures, judged, planted

from agentsignals.changes.git import FileChange
from agentsignals.cli import main
from agentsignals.ingest.collection import import_sarif, scan_repository
from agentsignals.repositories import scanners as own_rules
from agentsignals.repositories.scan import Line, Lines, Scan, changed, owner_of
from agentsignals.repositories.scanners import OwnRules, ScanFinding, language_of, place_of, scan_one
from agentsignals.repositories.weakness_rules import rules
from agentsignals.stats import validation
from agentsignals.stats.intervals import poisson, wilson
from agentsignals.store import Store
from tests.git_repositories import real
from tests.questions.stores import outcome
from tests.quick import some
from tests.repositories.story import Story, block
from tests.verbs import printed, printed_json

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


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Scan]:
    story = story_of_agent_and_human(tmp_path_factory.mktemp("scanned"))
    return story, scan_of(story)


def test_each_planted_weakness_is_found_once_and_is_its_writers(scanned: tuple[Story, Scan]) -> None:
    story, told = scanned
    assert rows(story, "subject, change, rule, path, line, owner, tag") == [
        ("by agent", "introduced", "py-shell-true", "listing.py", 5, "agent", "agent_exact"),
        ("by both", "introduced", "py-os-system", "more.py", 3, "human", "human_observed"),
        ("by both", "introduced", "py-weak-hash", "naming.py", 5, "agent", "agent_exact"),
        ("by human", "introduced", "py-eval", "worth.py", 2, "human", "human_observed"),
    ]
    assert (told.introduced, told.fixed, told.moved, told.owners) == (4, 0, 0, {"agent": 2, "human": 2})
    [(session,)] = rows(story, "DISTINCT session_id", "owner = 'agent'")
    assert session == story.agents[0].log.session


def test_rates_divide_by_the_lines_of_the_same_owner_or_mode_and_name_the_attribution(
    scanned: tuple[Story, Scan],
) -> None:
    told = scanned[1]
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
    assert "nothing new to scan" in printed(capsys, "scan", story.root, "--store", tmp_path / "store", "--quiet")
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


def test_the_signal_of_a_session_becomes_available_with_what_it_is_made_of(scanned: tuple[Story, Scan]) -> None:
    query = "SELECT number, detail FROM signals WHERE signal = 'chat.vulnerabilities_introduced_per_kloc'"
    [(value, detail)] = scanned[0].rows(query)
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
    shown = printed(capsys, "scan", story.root, "--store", tmp_path / "store", "--quiet")
    assert "nothing new to scan" in shown and "1 commit left out" in shown
    (tmp_path / "away").rename(content)
    last = scan_repository(str(story.root), OwnRules(), tmp_path / "store", jobs=1)
    assert (last.introduced, last.commits, last.commits_left_out, last.scanned) == (4, 3, 0, 2)


@pytest.mark.slow
def test_the_document_and_the_table_name_the_attribution(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    at = ["--store", str(tmp_path / "store"), "--quiet"]
    told = printed_json(capsys, "scan", story.root, *at)
    assert {"scanner", "scanner_version", "introduced", "fixed", "moved", "rates", "unchanged"} <= told.keys()
    assert all(rate["attribution"] for rate in told["rates"])
    shown = printed(capsys, "scan", story.root, *at)
    assert "4 introduced, 0 fixed, 0 moved" in shown and "replayed_sure" in shown and "not confirmed" in shown


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--scanner", "guess"], 2, "There is no scanner"),
        (["--scanner", "semgrep"], 2, "no rules of its own"),
        (["--scanner", "semgrep", "--config", "p/default"], 2, "not a file or folder"),
        (["--config", "rules.yaml"], 2, "accepts no other rules"),
        (["--sarif", "nowhere.sarif", "--scanner", "rules"], 2, "cannot be combined"),
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


Told = list[tuple[str, str, int, str | None]]


def at(line: int, match: str = "m", around: str = "a", rule: str = "r", end: int | None = None) -> ScanFinding:
    return ScanFinding(
        rule=rule,
        line=line,
        end_line=end or line,
        message="",
        cwe=(),
        severity="low",
        confidence="low",
        text="",
        match=match,
        around=around,
    )


def file(path: str, *added: tuple[int, int], old: str | None = None) -> FileChange:
    return FileChange(path=path, old_path=old or path, old_oid="1", new_oid="2", added=list(added), removed=[])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([(file("a"), [at(1)], [at(9)])], []),
        ([(file("a", (9, 1)), [at(1)], [at(9)])], [("moved", "a", 9, "a")]),
        ([(file("a", (8, 1)), [at(1)], [at(9)])], []),
        ([(file("a", (8, 2)), [at(1)], [at(9)])], [("moved", "a", 9, "a")]),
        ([(file("a", (10, 1)), [at(1)], [at(8, end=9)])], []),
        ([(file("a", (9, 1)), [at(1)], [at(8, end=9)])], [("moved", "a", 8, "a")]),
        ([(file("a"), [at(1)], [at(1, rule="other")])], [("fixed", "a", 1, None), ("introduced", "a", 1, None)]),
        ([(file("a"), [at(1)], [at(1, "other")])], [("fixed", "a", 1, None), ("introduced", "a", 1, None)]),
        ([(file("b", old="a"), [at(1)], [at(1)])], []),
        ([(file("b", (1, 1), old="a"), [at(1)], [at(1)])], [("moved", "b", 1, "a")]),
        ([(file("b", old="a"), [at(1)], [])], [("fixed", "a", 1, None)]),
        ([(file("a"), [at(1)], []), (file("b"), [], [at(1)])], [("moved", "b", 1, "a")]),
        ([(file("a"), [at(1)], []), (file("b"), [at(2)], [at(2)])], [("fixed", "a", 1, None)]),
        ([(file("a", (1, 1)), [at(5)], [at(1), at(6)])], [("introduced", "a", 1, None)]),
        ([(file("a", (1, 1)), [at(5, around="x")], [at(1, around="y"), at(6, around="x")])],
         [("introduced", "a", 1, None)]),
        ([(file("a", (1, 1)), [at(5, around="x")], [at(1, around="x"), at(6, around="y")])],
         [("introduced", "a", 6, None), ("moved", "a", 1, "a")]),
        ([(file("a"), [at(1), at(2)], [at(1)])], [("fixed", "a", 2, None)]),
    ],
)  # fmt: skip
def test_findings_are_paired_from_near_to_far_and_only_the_rest_is_new_or_gone(
    files: list[tuple[FileChange, list[ScanFinding], list[ScanFinding]]], expected: Told
) -> None:
    told = sorted((one.change, one.path, one.finding.line, one.moved_from) for one in changed(files))
    assert told == expected


def test_a_finding_keeps_its_name_wherever_it_goes_with_its_surroundings() -> None:
    found = changed([(file("a"), [], [at(1), at(2, around="b"), at(3, "n")]), (file("b"), [], [at(7)])])
    one, two, three, four = (c.row("r", "s", ("rules", "1"), (None, None, None)).fingerprint for c in found)
    assert one == four
    assert len({one, two, three}) == 3


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", ("context", None, None)),
        ("agent_exact", ("agent", "agent_exact", "s0")),
        ("human_observed agent_ws", ("agent", "agent_ws", "s1")),
        ("agent_shell agent_exact", ("agent", "agent_exact", "s1")),
        ("unknown agent_shell", ("agent", "agent_shell", "s1")),
        ("human_observed human_observed", ("human", "human_observed", None)),
        ("human_observed unknown", ("unknown", "human_observed", None)),
        ("human_observed moved", ("unknown", "human_observed", None)),
        ("moved generated preexisting", ("nobody", "moved", None)),
        ("moved unknown", ("unknown", "unknown", None)),
    ],
)
def test_a_finding_is_an_agents_when_any_of_its_lines_is_and_a_persons_when_all_are(
    tags: str, expected: tuple[str, str | None, str | None]
) -> None:
    assert owner_of([Line(tag, f"s{n}") for n, tag in enumerate(tags.split())]) == expected


def test_lines_to_divide_by_are_those_of_taken_files_that_are_not_blank() -> None:
    rows = [
        {"commit_sha": "c", "path": path, "line": n, "tag": tag, "session_id": None, "is_blank": blank}
        for path, n, tag, blank in [
            ("a.py", 1, "unknown", False), ("a.py", 2, "unknown", True), ("a.py", 3, "moved", False),
            ("a.md", 1, "unknown", False),
        ]
    ]  # fmt: skip
    lines = Lines(rows, lambda path: path.endswith(".py"))
    assert {key: dict(count) for key, count in lines.counts.items()} == {("c", "a.py"): {"unknown": 1, "moved": 1}}
    assert [one.tag for one in lines.of("c", "a.py", 2, 3)] == ["unknown", "moved"]
    assert [len(lines.of(*asked)) for asked in (("c", "a.py", 4, 9), ("d", "a.py", 1, 3), ("c", "a.md", 1, 1))] == [
        0, 0, 1,
    ]  # fmt: skip


def test_shipped_figures_are_those_of_the_rules_of_today() -> None:
    assert validation.planted_recall() == figures(OwnRules())


def test_every_text_is_planted_once_and_beside_a_twin() -> None:
    for language, groups in planted().items():
        texts = [group.head + text for group in groups for text in (*group.weak, *group.safe)]
        assert len(texts) == len(set(texts)), language
        for group in groups:
            assert group.weak and group.safe, (language, group.cwe)


def test_a_share_counts_what_a_finding_names() -> None:
    """By another road: the texts counted by hand-written sets, not by the benchmark's figures."""
    [python] = [f for f in validation.planted_recall().languages if f.language == "python"]
    said = [one for one in judged(OwnRules()) if one.language == "python"]
    assert python.detected == len({one.text for one in said if one.is_weak and one.is_named})
    assert python.recall_interval == pytest.approx(wilson(python.detected, python.weak), abs=0.001)
    assert python.precision_interval == pytest.approx(
        wilson(python.detected, python.detected + python.flagged), abs=0.001
    )
    assert "CWE-208" in python.missed and "CWE-89" not in python.missed
    assert python.recall.startswith(f"{python.detected}/{python.weak} ")


@pytest.mark.parametrize(
    ("scanner", "version", "language", "is_measured"),
    [
        ("rules", "", "go", True),
        ("rules", "", "rust", False),
        ("rules", "other", "go", False),
        ("bandit", "", "python", False),
    ],
)
def test_figures_are_of_the_scanner_and_version_that_was_measured(
    scanner: str, version: str, language: str, is_measured: bool
) -> None:
    measured = validation.planted_recall()
    assert (measured.of(scanner, version or measured.version, language) is not None) == is_measured


def test_scan_says_recall_beside_the_count_and_where_it_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(tmp_path)
    with story.agent("writer") as a:
        a.write("a.py", "def worth(text):\n    return eval(text)\n")
        a.write("a.rs", "fn main() {}\n")
    story.commit("made", a)
    story.publish()
    at = ["--store", str(tmp_path / "store"), "--quiet"]
    said = printed_json(capsys, "scan", story.root, *at)
    python, rust = said["languages"]
    assert (python["language"], python["files"], python["introduced"]) == ("python", 1, 1)
    assert python["planted"]["weak"] > python["planted"]["detected"] > 0
    assert (rust["language"], rust["introduced"], rust["planted"]) == ("rust", 0, None)
    assert "not on real code" in said["recall_caveat"]
    lines = printed(capsys, "scan", story.root, *at).splitlines()
    [shown] = [line for line in lines if line.startswith("python ")]
    assert f"{python['planted']['detected']}/{python['planted']['weak']} " in shown
    assert any(line.startswith("rust ") and line.count("unknown") == 2 for line in lines)
    assert any("not on real code" in line for line in lines)


def test_the_study_gives_the_rates_of_the_scan_with_interval_and_attribution(scanned: tuple[Story, Scan]) -> None:
    story, told = scanned
    found = outcome(Store(story.folder / "store"), "weaknesses")
    findings = {f.id: f for f in found.findings}
    assert findings["weaknesses.introduced"].value == pytest.approx(4 / 10 * 1000)
    agent = findings["weaknesses.owner.agent"]
    assert (agent.value, agent.n, "replayed" in agent.title) == (pytest.approx(2 / 6 * 1000), 6, True)
    assert agent.interval is not None and agent.interval[0] < agent.value < agent.interval[1]
    assert len(found.tables[0].rows) == len(told.rates)
    assert {c.id: c.n for c in found.charts} == {"weaknesses.rules": 4, "weaknesses.cwes": 4}


def test_without_a_scan_it_says_how_to_make_one(tmp_path: Path) -> None:
    story_of_agent_and_human(tmp_path).attributed()
    found = outcome(Store(tmp_path / "store"), "weaknesses")
    assert (found.findings, found.tables, "scan REPO" in found.limits[0]) == ([], [], True)


PAGE = Path(__file__).parents[2] / "docs" / "weaknesses.md"


def test_the_page_lists_every_rule_as_it_is() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \| (.*) \| (.*) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(r.id, ", ".join(r.cwe), r.severity, r.confidence, ", ".join(r.languages)) for r in rules()]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 37, 157, 1000, 20_000])
def test_the_interval_of_a_rate_leaves_a_fortieth_on_each_side(count: int) -> None:
    """By sums over the counts themselves, without the chi-square distribution."""
    low, high = poisson(count, 1.0) or (0.0, 0.0)
    for mean, counts, left in ((low, range(count), 0.975), (high, range(count + 1), 0.025)):
        sums = math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in counts)
        assert not counts or sums == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (3, 0.619, 8.767), (10, 4.795, 18.390)]
)
def test_the_interval_is_that_of_printed_tables(count: int, low: float, high: float) -> None:
    assert poisson(count, 1.0) == pytest.approx((low, high), rel=2e-3)


def test_nothing_looked_at_has_no_rate() -> None:
    assert poisson(0, 0) is None


def result(uri: str, line: Any, **more: Any) -> dict[str, Any]:
    place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
    return {"ruleId": "X1", "message": {"text": "bad"}, "locations": [place], **more}


def report(folder: Path, *results: Any, **run: Any) -> Path:
    driver = {
        "name": "other",
        "version": "2",
        "rules": [{"id": "X1", "properties": {"tags": ["external/cwe/cwe-078"]}}],
    }
    path = folder / "report.sarif"
    path.write_text(json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results, **run}]}))
    return path


@pytest.mark.slow
def test_each_finding_is_its_lines_writers_and_replaces_the_tools_older_ones(tmp_path: Path) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    scan_repository(str(story.root), OwnRules(), tmp_path / "store", jobs=1)
    sarif = report(
        tmp_path, result("listing.py", 5, level="error"), result("file:///build/x/worth.py", 2), result("app.py", 1)
    )
    for _ in range(2):
        told = import_sarif(str(story.root), sarif, tmp_path / "store", jobs=1)
    assert (told.findings, told.owners, told.skipped) == (3, {"agent": 1, "human": 1, "unlinked": 1}, {})
    rows = Store(tmp_path / "store").sql(
        "SELECT subject, path, line, change, owner, cwe, severity FROM weaknesses JOIN commits USING (repo, commit_sha)"
        " WHERE scanner = 'sarif:other' ORDER BY ALL"
    )
    assert rows.fetchall() == [
        ("base", "app.py", 1, "present", "unlinked", ["CWE-78"], "medium"),
        ("by agent", "listing.py", 5, "present", "agent", ["CWE-78"], "high"),
        ("by human", "worth.py", 2, "present", "human", ["CWE-78"], "medium"),
    ]
    kept = Store(tmp_path / "store").sql("SELECT count(*) FROM weaknesses WHERE scanner = 'rules'").fetchall()
    assert kept == [(4,)]


def test_what_can_not_be_placed_is_counted_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    sarif = report(
        tmp_path, result("listing.py", 99), result("nowhere.py", 1), result("../../etc/passwd", 1), {"ruleId": "X1"},
        result("listing.py", "5"), result("listing.py", 5, suppressions=[{"kind": "inSource"}]), 7, None,
        result("listing.py", 5, message=3), result("listing.py", -4),
    )  # fmt: skip
    at = ["--store", str(tmp_path / "store"), "--quiet", "--json"]
    told = json.loads(printed(capsys, "scan", story.root, "--sarif", sarif, *at))
    assert told["skipped"] == {"malformed": 3, "no_place": 2, "no_such_file": 2, "no_such_line": 1, "suppressed": 1}
    assert told["findings"] == 1


@pytest.mark.parametrize("text", some(["{" * 100_000, "", "[]", '{"runs": 3}', '{"runs": [3, {"tool": 1}]}'], 5))
def test_what_is_no_sarif_says_so(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = story_of_agent_and_human(tmp_path)
    story.publish()
    (tmp_path / "x.sarif").write_text(text)
    code = main(
        [
            "scan",
            str(story.root),
            "--sarif",
            str(tmp_path / "x.sarif"),
            "--store",
            str(tmp_path / "s"),
            "--quiet",
            "--json",
        ]
    )
    told = json.loads(capsys.readouterr().out)
    assert (code, told["error"]["kind"]) == (1, "scan") if "tool" not in text else told["skipped"] == {"malformed": 2}


@pytest.mark.slow
def test_a_report_about_an_older_commit_is_read_against_it(tmp_path: Path) -> None:
    story = story_of_agent_and_human(tmp_path)
    sha = story.git("rev-parse", "HEAD")
    story.human("listing.py", "import os\n")
    story.commit("later")
    story.publish()
    for revision, found in ((sha, 1), (story.git("rev-parse", "HEAD"), 0), ("--help", 0)):
        sarif = report(tmp_path, result("listing.py", 5), versionControlProvenance=[{"revisionId": revision}])
        assert import_sarif(str(story.root), sarif, tmp_path / "store", jobs=1).findings == found


def git(repo: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.slow
def test_rates_divide_by_the_added_lines_that_git_shows(tmp_path: Path) -> None:
    repo = real("reglint", tmp_path)
    told = scan_repository(str(repo), OwnRules(), tmp_path / "store", jobs=1)
    assert (told.commits, told.commits_left_out, told.files, told.scanned, told.skipped) == (5, 0, 24, 24, {})
    lines: Counter[str] = Counter()
    for (sha,) in Store(tmp_path / "store").sql("SELECT DISTINCT commit_sha FROM scans").fetchall():
        path = ""
        for line in git(repo, "show", "--histogram", "--find-renames=50%", "-U0", "--format=", sha).split("\n"):
            if line.startswith("+++ "):
                path = line[6:]
            elif line.startswith("+") and line[1:].strip() and language_of(path):
                lines[place_of(path)] += 1
    known = {r.files: (r.lines, r.introduced, r.commits_with) for r in told.rates if r.by == "all"}
    assert known == {"all": (618, 0, 0), "code": (229, 0, 0)}
    assert (lines["code"] + lines["test"], lines["code"]) == (618, 229)
    owners = {r.group: r.lines for r in told.rates if (r.attribution, r.by, r.files) == ("replayed", "owner", "all")}
    assert owners == {"unknown": 587, "nobody": 31}


def test_what_shell_scripts_write_under_known_names_is_what_a_search_finds(tmp_path: Path) -> None:
    """In the files as they are today, most of which no session of the collection changed."""
    repo = real("context-evaluator", tmp_path)
    found, searched = set(), set()
    for path in git(repo, "ls-tree", "-r", "--name-only", "HEAD", "scripts").split():
        text = git(repo, "show", f"HEAD:{path}")
        found |= {(path, f.line) for f in scan_one(path, text.encode()).findings if f.rule == "sh-known-temporary"}
        if path.endswith(".sh"):
            lines = enumerate(text.split("\n"), 1)
            searched |= {(path, n) for n, line in lines if re.search(r"[^&0-9]> ?/tmp/\w", line)}
    assert found == searched
    assert len(found) == 10
