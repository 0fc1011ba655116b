"""Scan of a repository's commits: weaknesses introduced, fixed and moved, whose lines hold them, and rates.
Findings are matched by their text, never by line numbers alone."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from agentsignals.changes import git
from agentsignals.changes import git as objects
from agentsignals.changes.git import FileChange
from agentsignals.model import Label
from agentsignals.questions.written_lines import PER, Rate, rates
from agentsignals.repositories.commit_figures import AGENT, NOBODY, SURE
from agentsignals.repositories.scanner import ScanFinding, Scanned, Scanner, SourceFile, language_of, name_of, place_of
from agentsignals.stats.intervals import poisson
from agentsignals.stats.validation import benchmarks as planted_recall
from agentsignals.stats.validation.benchmarks import CAVEAT
from agentsignals.stats.validation.benchmarks import PlantedRecallFigure as Figure
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import FindingRow, ScanRow

Change = Literal["introduced", "fixed", "moved"]


class Changed(Struct):
    """A finding that a commit introduced, fixed or moved; the file and lines are those after the commit, of one that
    was fixed those before.
    """

    change: Change
    path: str
    finding: ScanFinding
    moved_from: str | None = None
    """Where a moved finding was: a path."""

    @property
    def fingerprint(self) -> str:
        """Names rule, matched text and its surroundings: the same wherever the finding goes with them."""
        return name_of(f"{self.finding.rule}\0{self.finding.match}\0{self.finding.around}")


class _Side(Struct):
    path: str
    """The path after the commit, for both sides of a rename."""
    own_path: str
    finding: ScanFinding
    is_added: bool
    """True where the commit added one of its lines."""


def changed(files: Sequence[tuple[FileChange, Sequence[ScanFinding], Sequence[ScanFinding]]]) -> list[Changed]:
    """The findings that a commit changed, from each changed file's findings before and after.

    Equal findings are paired off from near to far: same file and surroundings, same file, another file of the commit.
    What remains after was introduced, what remains before was fixed.
    """
    before = [_Side(f.path, f.old_path or f.path, finding, False) for f, old, _ in files for finding in old]
    after = []
    for f, _, new in files:
        for finding in new:
            is_added = any(start <= finding.end_line and finding.line < start + n for start, n in f.added)
            after.append(_Side(f.path, f.path, finding, is_added))
    changes: list[Changed] = []
    for key in (_where_it_was, _in_the_file, _anywhere):
        for was, now in _paired(before, after, key):
            if now.own_path != was.path or now.is_added:
                changes.append(Changed("moved", now.own_path, now.finding, was.own_path))
    changes += [Changed("introduced", now.own_path, now.finding) for now in after]
    changes += [Changed("fixed", was.own_path, was.finding) for was in before]
    return sorted(changes, key=lambda c: (c.path, c.finding.line, c.finding.rule, c.change))


def _paired(before: list[_Side], after: list[_Side], key: Callable[[_Side], Hashable]) -> list[tuple[_Side, _Side]]:
    """Takes pairs of equal keys out of both lists, in order; lines that were not added are taken first."""
    waiting: dict[Hashable, list[_Side]] = defaultdict(list)
    for side in before:
        waiting[key(side)].append(side)
    pairs = []
    for side in sorted(after, key=lambda s: s.is_added):
        candidates = waiting.get(key(side))
        if candidates:
            pairs.append((candidates.pop(0), side))
    gone = {id(side) for pair in pairs for side in pair}
    before[:] = [side for side in before if id(side) not in gone]
    after[:] = [side for side in after if id(side) not in gone]
    return pairs


def _where_it_was(side: _Side) -> Hashable:
    return side.path, side.finding.rule, side.finding.match, side.finding.around


def _in_the_file(side: _Side) -> Hashable:
    return side.path, side.finding.rule, side.finding.match


def _anywhere(side: _Side) -> Hashable:
    return side.finding.rule, side.finding.match


# Whose lines a finding stands on, and how many lines of each there are to divide by.

Owner = Literal["agent", "human", "unknown", "nobody", "context"]
"""`nobody`: moved, generated or older lines; `context`: no line of the finding was added, a change beside it made it;
`unknown`: nothing tells who wrote it, which never means a person (design/attribution.md#replay)."""


class Line(Struct, gc=False):
    """An added line of a commit."""

    tag: str
    session_id: str | None


class Lines:
    """The added lines of a repository's commits, by (commit, path, line)."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], takes: Callable[[str], bool]) -> None:
        self._lines: dict[tuple[str, str], dict[int, Line]] = defaultdict(dict)
        self.counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        """By (commit, path): lines that are not blank, in files that a scanner takes, by tag."""
        taken: dict[str, bool] = {}
        for row in rows:
            sha, path = row["commit_sha"], row["path"]
            self._lines[sha, path][row["line"]] = Line(row["tag"], row["session_id"])
            if path not in taken:
                taken[path] = takes(path)
            if taken[path] and not row["is_blank"]:
                self.counts[sha, path][row["tag"]] += 1

    def of(self, sha: str, path: str, first: int, last: int) -> list[Line]:
        """The added ones of these lines."""
        by_number = self._lines.get((sha, path), {})
        return [by_number[n] for n in range(first, last + 1) if n in by_number]


def owner_of(lines: list[Line]) -> tuple[Owner, str | None, str | None]:
    """Whose a finding on these added lines is; the tag that says so, and the session that wrote the line.

    An agent's when any of its added lines is; a person's when all are (design/attribution.md#weaknesses).
    """
    if not lines:
        return "context", None, None
    agents = sorted((line for line in lines if line.tag in AGENT), key=lambda line: line.tag not in SURE)
    if agents:
        return "agent", agents[0].tag, agents[0].session_id
    if all(line.tag == "human_observed" for line in lines):
        return "human", "human_observed", None
    if all(line.tag in NOBODY for line in lines):
        return "nobody", lines[0].tag, None
    return "unknown", next(line.tag for line in lines if line.tag not in NOBODY), None


# What a scan says of single sessions, as labels: new findings in the commits of a session, per 1 000 added lines.

TASK = "vulnerabilities"


class OfSession(Struct, kw_only=True):
    """Numerator and denominator of a session's rate."""

    introduced: int = 0
    on_own_lines: int = 0
    """Introduced findings on lines that the session itself wrote."""
    fixed: int = 0
    lines: int = 0
    """Added lines that are not blank, of files that the scanner takes, whoever wrote them."""
    commits: int = 0
    low: float | None = None
    high: float | None = None
    """Exact Poisson interval of the rate, 95 percent."""
    scanner_version: str = ""
    attribution: str = "commits linked to the session by checkpoints, or by the files it changed"


def of_sessions(
    scanner: str,
    commits: Mapping[str, Mapping[str, Any]],
    findings: Sequence[FindingRow],
    scans: Sequence[ScanRow],
) -> list[LabelRow]:
    """Labels of the sessions that these commits are linked to. A session whose commits added no line that the scanner
    takes has none.
    """
    by_session: dict[str, OfSession] = defaultdict(OfSession)
    seen: set[tuple[str, str]] = set()
    for scan in scans:
        for session_id in commits[scan.commit_sha]["session_ids"]:
            totals = by_session[session_id]
            totals.lines += sum(
                (scan.agent_lines, scan.shell_lines, scan.human_lines, scan.unknown_lines, scan.nobody_lines)
            )
            totals.commits += (session_id, scan.commit_sha) not in seen
            totals.scanner_version = scan.scanner_version
            seen.add((session_id, scan.commit_sha))
    for finding in findings:
        for session_id in commits[finding.commit_sha]["session_ids"]:
            totals = by_session[session_id]
            totals.introduced += finding.change == "introduced"
            totals.on_own_lines += finding.change == "introduced" and finding.session_id == session_id
            totals.fixed += finding.change == "fixed"
    return [_row(scanner, session_id, totals) for session_id, totals in sorted(by_session.items()) if totals.lines]


def write(store: Store, scanner: str, sessions: set[str], rows: list[LabelRow]) -> None:
    """Puts a scanner's labels of these sessions beside those of others, in the place of what these had before."""
    sidecars.replace_labels(store.folder, TASK, _labeller(scanner), sessions, rows)


def _labeller(scanner: str) -> str:
    return f"scan:{scanner}"


def _row(scanner: str, session_id: str, totals: OfSession) -> LabelRow:
    rate = totals.introduced / totals.lines * PER
    interval = poisson(totals.introduced, totals.lines / PER)
    if interval is not None:
        totals.low, totals.high = interval
    reason = "findings after but not before the session's commits / 1 000 lines they added to files that are scanned"
    detail = msgspec.json.encode(totals).decode()
    return LabelRow(
        session_id,
        Label(
            task=TASK,
            labeller=_labeller(scanner),
            turn=None,
            value=f"{rate:.4f}",
            reason=reason,
            number=rate,
            detail=detail,
        ),
    )


# A scan of what a repository's commits changed: findings before and after each, whose lines they stand on, rates.

Progress = Callable[[str, int, int | None], None]
_KEPT_EVERY_S = 5.0
_LARGEST_BYTES = 4 * 1024 * 1024
_TAGS = {
    "agent_lines": ("agent_exact", "agent_ws", "agent_other_session"),
    "shell_lines": ("agent_shell",),
    "human_lines": ("human_observed",),
    "unknown_lines": ("unknown",),
    "nobody_lines": ("preexisting", "moved", "generated"),
}


class OfLanguage(Struct, kw_only=True):
    """Files of one language that were scanned, with the scanner's measured recall."""

    language: str
    """`other` for files of a language that none of our rules is about."""
    files: int
    introduced: int
    planted: Figure | None
    """Recall of this scanner version on planted weak code; None where it was not measured."""


class Scan(Struct, kw_only=True):
    """Result of `scan` for one repository."""

    repo: str
    scanner: str
    scanner_version: str
    commits: int = 0
    """Commits linked to sessions whose changed files were looked into."""
    commits_left_out: int = 0
    """Such commits of which Git can't tell what they changed, for the clone has not all their files."""
    files: int = 0
    """Different contents of those files, before and after."""
    scanned: int = 0
    """Commits scanned in this run; the others were known."""
    unchanged: bool = False
    """Nothing was left to scan."""
    skipped: dict[str, int] = field(default_factory=dict)
    introduced: int = 0
    fixed: int = 0
    moved: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    """Introduced findings by whose lines they stand on, by the replay."""
    rules: dict[str, int] = field(default_factory=dict)
    cwes: dict[str, int] = field(default_factory=dict)
    """Introduced findings by rule and by weakness."""
    languages: list[OfLanguage] = field(default_factory=list)
    recall_caveat: str = CAVEAT
    rates: list[Rate] = field(default_factory=list)
    sessions: int = 0
    """Sessions that got a rate of their own."""


class _Kept(Struct):
    """Answers by file: content and path, for a rule may ask for a folder's name."""

    version: str
    answers: dict[str, Scanned] = field(default_factory=dict)


class _Run:
    """A scan on its way."""

    def __init__(self, store: Store, git_dir: str, name: str, scanner: Scanner) -> None:
        self.store, self.git_dir, self.name, self.scanner = store, git_dir, name, scanner
        self.kept = _Kept(scanner.version)

    def take_up(self) -> None:
        """Takes over what a former run knew, when it was of the same rules."""
        note = sidecars.read_note(self.store.folder, self.name, self._note)
        try:
            kept = msgspec.json.decode(note, type=_Kept) if note else None
        except msgspec.DecodeError:  # of an older version
            kept = None
        if kept is not None and kept.version == self.scanner.version:
            self.kept = kept

    def keep(self) -> None:
        """Writes down what is known."""
        sidecars.write_note(self.store.folder, self.name, self._note, self.kept)

    @property
    def _note(self) -> str:
        return "scanned-" + "".join(c if c.isalnum() or c in "-_" else "-" for c in self.scanner.id)[:60]

    def takes(self, path: str) -> bool:
        """Return whether files of this name are scanned."""
        return place_of(path) != "vendored" and self.scanner.takes(path)

    def wanted(self, files: list[FileChange]) -> list[FileChange]:
        """The changed files to look into, before or after."""
        return [f for f in files if self.takes(f.path) or (f.old_path is not None and self.takes(f.old_path))]

    def findings_of(self, oid: str | None, path: str | None) -> list[ScanFinding]:
        """Return the scanner's findings in a file."""
        answer = self.kept.answers.get(_key(oid, path)) if oid is not None and path is not None else None
        return answer.findings if answer is not None else []

    def scan_missing(self, changes: Iterable[list[FileChange]], progress: Progress) -> int:
        """Asks about files not seen before. What is said is kept on the way, so that a stopped run goes on."""
        wanted = dict.fromkeys(content for files in changes for content in _contents(files) if self.takes(content[1]))
        todo = [content for content in wanted if _key(*content) not in self.kept.answers]
        kept_at = time.monotonic()
        try:
            for at in range(0, len(todo), self.scanner.at_once):
                progress("scanning", at, len(todo))
                self._ask(todo[at : at + self.scanner.at_once])
                if time.monotonic() - kept_at > _KEPT_EVERY_S:
                    self.keep()
                    kept_at = time.monotonic()
        finally:
            if todo:
                self.keep()
        return len(todo)

    def _ask(self, part: list[tuple[str, str]]) -> None:
        there = []
        contents = objects.contents(self.git_dir, [oid for oid, _ in part], _LARGEST_BYTES)
        for key, data in zip(part, contents, strict=True):
            if data is None:
                self.kept.answers[_key(*key)] = Scanned([], "missing")
            else:
                there.append((key, SourceFile(key[1], data)))
        answers = self.scanner.scan([file for _, file in there])
        for (key, _), answer in zip(there, answers, strict=True):
            self.kept.answers[_key(*key)] = answer

    def finding(self, sha: str, changed: Changed, lines: Lines) -> FindingRow:
        """A changed finding with whose it is."""
        finding, scanner = changed.finding, self.scanner
        owner = tag = session_id = None
        if changed.change != "fixed":
            owner, tag, session_id = owner_of(lines.of(sha, changed.path, finding.line, finding.end_line))
        return FindingRow(
            repo=self.name,
            commit_sha=sha,
            scanner=scanner.id,
            scanner_version=scanner.version,
            change=changed.change,
            rule=finding.rule,
            cwe=list(finding.cwe),
            severity=finding.severity,
            confidence=finding.confidence,
            path=changed.path,
            line=finding.line,
            end_line=finding.end_line,
            moved_from=changed.moved_from,
            place=place_of(changed.path),
            owner=owner,
            tag=tag,
            session_id=session_id,
            fingerprint=changed.fingerprint,
            text=finding.text,
            message=finding.message,
        )

    def scan_rows(self, sha: str, files: list[FileChange], lines: Lines) -> list[ScanRow]:
        """A row a kind of place: the files looked at and their added lines by whose they are."""
        by_place: dict[str, list[FileChange]] = defaultdict(list)
        for file in files:
            by_place[place_of(file.path)].append(file)
        rows = []
        for place, those in sorted(by_place.items()):
            tags: Counter[str] = Counter()
            for file in those:
                tags += lines.counts.get((sha, file.path), Counter())
            answers = [self.kept.answers.get(_key(*content)) for content in _contents(those)]
            skipped = sum(a is not None and a.skipped not in (None, "unparsed") for a in answers)
            counts = {column: sum(tags[t] for t in wanted) for column, wanted in _TAGS.items()}
            rows.append(
                ScanRow(
                    repo=self.name,
                    commit_sha=sha,
                    scanner=self.scanner.id,
                    scanner_version=self.scanner.version,
                    place=place,
                    files=len(those),
                    skipped=skipped,
                    **counts,
                )
            )
        return rows


class Tables(Struct):
    """Rows of a scan, ready to be stored."""

    result: Scan
    findings: list[FindingRow]
    scans: list[ScanRow]
    sessions: set[str]
    """Sessions that the scanned commits are linked to."""
    labels: list[LabelRow]

    def write(self, store: Store) -> Scan:
        """Puts the scanner's rows into the repository's tables, and labels of its sessions; those of others stay."""
        self._replace(store, "weaknesses", FindingRow, self.findings)
        self._replace(store, "scans", ScanRow, self.scans)
        write(store, self.result.scanner, self.sessions, self.labels)
        return self.result

    def _replace(self, store: Store, table: str, kind: type[Struct], rows: Sequence[Struct]) -> None:
        def with_others(before: list[dict[str, Any]]) -> list[Any]:
            return [*(msgspec.convert(r, kind) for r in before if r["scanner"] != self.result.scanner), *rows]

        sidecars.update_repository_rows(store.folder, self.result.repo, table, with_others)


def scan(store: Store, at: tuple[str, str], scanner: Scanner, progress: Progress, *, afresh: bool = False) -> Tables:
    """Scans the files that linked commits of an attributed repository changed. What is written is only what was said of
    each file, on the way; the tables are for who asked.

    `at`: the repository's Git folder, and what tables call it.
    """
    git_dir, name = at
    commits = {
        row["commit_sha"]: row
        for row in sidecars.repository_rows(store.folder, name, "commits")
        if row["relation"] not in (None, "copy") and row["added"] is not None and not row["is_merge"]
    }
    run = _Run(store, git_dir, name, scanner)
    if not afresh:
        run.take_up()
    changes = {sha: run.wanted(files) for sha, files in git.changes(git_dir, sorted(commits))}
    summary = Scan(
        repo=name,
        scanner=scanner.id,
        scanner_version=scanner.version,
        commits=len(changes),
        commits_left_out=len(commits) - len(changes),
    )
    summary.scanned = run.scan_missing(changes.values(), progress)
    summary.unchanged = summary.scanned == 0
    lines = Lines(sidecars.repository_rows(store.folder, name, "line_attribution"), run.takes)
    findings, scans = [], []
    for sha, files in changes.items():
        commit_changes = changed(
            [(f, run.findings_of(f.old_oid, f.old_path), run.findings_of(f.new_oid, f.path)) for f in files]
        )
        findings += [run.finding(sha, change, lines) for change in commit_changes]
        scans += run.scan_rows(sha, files, lines)
    looked = {_key(*content) for files in changes.values() for content in _contents(files)} & run.kept.answers.keys()
    summary.files = len(looked)
    summary.skipped = dict(sorted(Counter(why for key in looked if (why := run.kept.answers[key].skipped)).items()))
    summary.languages = _languages(scanner, (key.partition(":")[2] for key in looked), findings)
    _summarise(summary, findings, [_with_modes(s, commits) for s in scans])
    labels = of_sessions(scanner.id, commits, findings, scans)
    summary.sessions = len(labels)
    linked = {session_id for commit in commits.values() for session_id in commit["session_ids"]}
    return Tables(summary, findings, scans, linked, labels)


def _languages(scanner: Scanner, paths: Iterable[str], findings: list[FindingRow]) -> list[OfLanguage]:
    files = Counter(language_of(path) or "other" for path in paths)
    new = Counter(language_of(row.path) or "other" for row in findings if row.change == "introduced")
    measured = planted_recall.figures()
    return [
        OfLanguage(
            language=name,
            files=n,
            introduced=new[name],
            planted=measured.of(scanner.id, scanner.version, name),
        )
        for name, n in sorted(files.items(), key=lambda item: (-item[1], item[0]))
    ]


def _key(oid: str, path: str) -> str:
    return f"{oid}:{path}"


def _contents(files: Iterable[FileChange]) -> Iterator[tuple[str, str]]:
    """Id and path of each file's content before and after."""
    for file in files:
        if file.old_oid is not None and file.old_path is not None:
            yield file.old_oid, file.old_path
        if file.new_oid is not None:
            yield file.new_oid, file.path


def _with_modes(row: ScanRow, commits: dict[str, dict[str, Any]]) -> dict[str, Any]:
    commit = commits[row.commit_sha]
    return {**asdict(row), "mode": commit["mode"], "recorded_mode": commit["recorded_mode"]}


def _summarise(summary: Scan, findings: list[FindingRow], scans: list[dict[str, Any]]) -> None:
    by_change = Counter(row.change for row in findings)
    summary.introduced, summary.fixed, summary.moved = (by_change[c] for c in ("introduced", "fixed", "moved"))
    new = [row for row in findings if row.change == "introduced"]
    summary.owners = dict(Counter(row.owner or "" for row in new).most_common())
    summary.rules = dict(Counter(row.rule for row in new).most_common())
    summary.cwes = dict(Counter(cwe for row in new for cwe in row.cwe).most_common())
    summary.rates = rates(scans, [asdict(row) for row in findings])
