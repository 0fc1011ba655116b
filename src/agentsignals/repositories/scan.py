"""Scan of a repository's commits: weaknesses introduced, fixed and moved, whose lines hold them, and rates.
Findings are matched by their text, never by line numbers alone."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from agentsignals.changes import git
from agentsignals.changes.git import FileChange
from agentsignals.model import Label
from agentsignals.questions.written_lines import PER, Rate, rates
from agentsignals.repositories.commit_figures import AGENT, NOBODY, SURE
from agentsignals.repositories.scanners import ScanFinding, Scanned, Scanner, SourceFile, language_of, name_of, place_of
from agentsignals.stats.intervals import poisson
from agentsignals.stats.validation import benchmarks as planted_recall
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import FindingRow, ScanRow

Change = Literal["introduced", "fixed", "moved", "present"]
"""`present`: in a report about one state of the files, which says nothing of changes."""
Owner = Literal["agent", "human", "unknown", "nobody", "context", "unlinked"]
"""`nobody`: moved, generated or older lines; `context`: no line of the finding was added, a change beside it made it;
`unknown`: nothing tells who wrote it, which never means a person (design/attribution.md#replay); `unlinked`: its commit
has no session."""
Ownership = tuple[Owner | None, str | None, str | None]
"""Whose a finding is, the tag that says so, and the session that wrote the line."""


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

    def row(self, repo: str, sha: str, scanner: tuple[str, str], ownership: Ownership) -> FindingRow:
        """The row of the table `weaknesses`. `scanner`: its name and version."""
        finding = self.finding
        return FindingRow(
            repo=repo,
            commit_sha=sha,
            scanner=scanner[0],
            scanner_version=scanner[1],
            change=self.change,
            rule=finding.rule,
            cwe=list(finding.cwe),
            severity=finding.severity,
            confidence=finding.confidence,
            path=self.path,
            line=finding.line,
            end_line=finding.end_line,
            moved_from=self.moved_from,
            place=place_of(self.path),
            owner=ownership[0],
            tag=ownership[1],
            session_id=ownership[2],
            fingerprint=self.fingerprint,
            text=finding.text,
            message=finding.message,
        )


class _Side(Struct):
    path: str
    """The path after the commit, for both sides of a rename."""
    own_path: str
    finding: ScanFinding
    is_added: bool = False
    """True where the commit added one of its lines."""


def changed(files: Sequence[tuple[FileChange, Sequence[ScanFinding], Sequence[ScanFinding]]]) -> list[Changed]:
    """The findings that a commit changed, from each changed file's findings before and after.

    Equal findings are paired off from near to far: same file and surroundings, same file, another file of the commit.
    What remains after was introduced, what remains before was fixed.
    """
    before = [_Side(f.path, f.old_path or f.path, finding) for f, old, _ in files for finding in old]
    after = []
    for f, _, new in files:
        for finding in new:
            is_added = any(start <= finding.end_line and finding.line < start + n for start, n in f.added)
            after.append(_Side(f.path, f.path, finding, is_added))
    changes: list[Changed] = []
    keys: tuple[Callable[[_Side], Hashable], ...] = (
        lambda side: (side.path, side.finding.rule, side.finding.match, side.finding.around),
        lambda side: (side.path, side.finding.rule, side.finding.match),
        lambda side: (side.finding.rule, side.finding.match),
    )
    for key in keys:
        waiting: dict[Hashable, list[_Side]] = defaultdict(list)
        for side in before:
            waiting[key(side)].append(side)
        paired: set[int] = set()
        for now in sorted(after, key=lambda side: side.is_added):  # lines that were there before choose first
            if candidates := waiting.get(key(now)):
                was = candidates.pop(0)
                paired |= {id(was), id(now)}
                if now.own_path != was.path or now.is_added:
                    changes.append(Changed("moved", now.own_path, now.finding, was.own_path))
        before = [side for side in before if id(side) not in paired]
        after = [side for side in after if id(side) not in paired]
    changes += [Changed("introduced", now.own_path, now.finding) for now in after]
    changes += [Changed("fixed", was.own_path, was.finding) for was in before]
    return sorted(changes, key=lambda c: (c.path, c.finding.line, c.finding.rule, c.change))


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


def owner_of(lines: list[Line]) -> Ownership:
    """Whose a finding on these added lines is: an agent's when any of its added lines is; a person's when all are
    (design/attribution.md#weaknesses)."""
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


# Labels of single sessions: new findings in the commits of a session, per 1 000 added lines.

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


def _session_labels(
    labeller: str, commits: Mapping[str, Mapping[str, Any]], findings: list[FindingRow], scans: list[ScanRow]
) -> list[LabelRow]:
    """Labels of the sessions that these commits are linked to. A session whose commits added no line that the scanner
    takes has none."""
    by_session: dict[str, OfSession] = defaultdict(OfSession)
    seen: set[tuple[str, str]] = set()
    for scan_row in scans:
        for session_id in commits[scan_row.commit_sha]["session_ids"]:
            totals = by_session[session_id]
            totals.lines += sum(getattr(scan_row, column) for column in _TAGS)
            totals.commits += (session_id, scan_row.commit_sha) not in seen
            totals.scanner_version = scan_row.scanner_version
            seen.add((session_id, scan_row.commit_sha))
    for finding in findings:
        for session_id in commits[finding.commit_sha]["session_ids"]:
            totals = by_session[session_id]
            totals.introduced += finding.change == "introduced"
            totals.on_own_lines += finding.change == "introduced" and finding.session_id == session_id
            totals.fixed += finding.change == "fixed"
    reason = "findings after but not before the session's commits / 1 000 lines they added to files that are scanned"
    rows = []
    for session_id, totals in sorted(by_session.items()):
        if not totals.lines:
            continue
        rate = totals.introduced / totals.lines * PER
        totals.low, totals.high = poisson(totals.introduced, totals.lines / PER) or (None, None)
        label = Label(
            task=TASK,
            labeller=labeller,
            turn=None,
            value=f"{rate:.4f}",
            reason=reason,
            number=rate,
            detail=msgspec.json.encode(totals).decode(),
        )
        rows.append(LabelRow(session_id, label))
    return rows


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
"""Columns of a `ScanRow`, with the tags of the lines that each counts."""


class OfLanguage(Struct, kw_only=True):
    """Files of one language that were scanned, with the scanner's measured recall."""

    language: str
    """`other` for files of a language that none of our rules is about."""
    files: int
    introduced: int
    planted: planted_recall.PlantedRecallFigure | None
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
    recall_caveat: str = planted_recall.CAVEAT
    rates: list[Rate] = field(default_factory=list)
    sessions: int = 0
    """Sessions that got a rate of their own."""


class _Kept(Struct):
    """Answers by file: content and path, for a rule may ask for a folder's name."""

    version: str
    answers: dict[str, Scanned] = field(default_factory=dict)


def _contents(files: Iterable[FileChange]) -> Iterator[tuple[str, str]]:
    """Id and path of each file's content before and after."""
    for file in files:
        if file.old_oid is not None and file.old_path is not None:
            yield file.old_oid, file.old_path
        if file.new_oid is not None:
            yield file.new_oid, file.path


class _Run:
    """A scan in progress: the scanner's answers, those of a former run by the same rules included."""

    def __init__(self, store: Store, git_dir: str, name: str, scanner: Scanner, afresh: bool) -> None:
        self.store, self.git_dir, self.name, self.scanner = store, git_dir, name, scanner
        self._note = "scanned-" + "".join(c if c.isalnum() or c in "-_" else "-" for c in scanner.id)[:60]
        kept = None
        if not afresh and (note := sidecars.read_note(store.folder, name, self._note)):
            with suppress(msgspec.DecodeError):  # of an older version
                kept = msgspec.json.decode(note, type=_Kept)
        self._kept = kept if kept is not None and kept.version == scanner.version else _Kept(scanner.version)

    def takes(self, path: str) -> bool:
        """Return whether files of this name are scanned."""
        return place_of(path) != "vendored" and self.scanner.takes(path)

    def answer(self, oid: str | None, path: str | None) -> Scanned | None:
        """Return what the scanner said of a file's content."""
        return self._kept.answers.get(f"{oid}:{path}")

    def scan_missing(self, changes: Iterable[list[FileChange]], progress: Progress) -> int:
        """Scan the files not seen before. Answers are written down on the way, so that a stopped run goes on."""
        wanted = dict.fromkeys(content for files in changes for content in _contents(files) if self.takes(content[1]))
        todo = [content for content in wanted if self.answer(*content) is None]
        kept_at = time.monotonic()
        try:
            for at in range(0, len(todo), self.scanner.at_once):
                progress("scanning", at, len(todo))
                part = todo[at : at + self.scanner.at_once]
                there = []
                for (oid, path), data in zip(
                    part, git.contents(self.git_dir, [oid for oid, _ in part], _LARGEST_BYTES), strict=True
                ):
                    if data is None:
                        self._kept.answers[f"{oid}:{path}"] = Scanned([], "missing")
                    else:
                        there.append((f"{oid}:{path}", SourceFile(path, data)))
                answers = self.scanner.scan([file for _, file in there])
                self._kept.answers |= {key: answer for (key, _), answer in zip(there, answers, strict=True)}
                if time.monotonic() - kept_at > _KEPT_EVERY_S:
                    sidecars.write_note(self.store.folder, self.name, self._note, self._kept)
                    kept_at = time.monotonic()
        finally:
            if todo:
                sidecars.write_note(self.store.folder, self.name, self._note, self._kept)
        return len(todo)

    def findings(self, sha: str, files: list[FileChange], lines: Lines) -> Iterator[FindingRow]:
        """The changed findings of a commit, each with whose it is."""
        sides = []
        for f in files:
            old, new = self.answer(f.old_oid, f.old_path), self.answer(f.new_oid, f.path)
            sides.append((f, old.findings if old else [], new.findings if new else []))
        for change in changed(sides):
            ownership: Ownership = (None, None, None)
            if change.change != "fixed":
                ownership = owner_of(lines.of(sha, change.path, change.finding.line, change.finding.end_line))
            yield change.row(self.name, sha, (self.scanner.id, self.scanner.version), ownership)

    def scan_rows(self, sha: str, files: list[FileChange], lines: Lines) -> Iterator[ScanRow]:
        """A row a kind of place: the files looked at and their added lines by whose they are."""
        by_place: dict[str, list[FileChange]] = defaultdict(list)
        for file in files:
            by_place[place_of(file.path)].append(file)
        for place, those in sorted(by_place.items()):
            tags: Counter[str] = Counter()
            for file in those:
                tags += lines.counts.get((sha, file.path), Counter())
            answers = [self.answer(*content) for content in _contents(those)]
            yield ScanRow(
                repo=self.name,
                commit_sha=sha,
                scanner=self.scanner.id,
                scanner_version=self.scanner.version,
                place=place,
                files=len(those),
                skipped=sum(a is not None and a.skipped not in (None, "unparsed") for a in answers),
                **{column: sum(tags[t] for t in wanted) for column, wanted in _TAGS.items()},
            )


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
        scanner = self.result.scanner
        replace_findings(store, self.result.repo, {scanner}, self.findings)
        _replace(store, self.result.repo, "scans", {scanner}, self.scans)
        sidecars.replace_labels(store.folder, TASK, f"scan:{scanner}", self.sessions, self.labels)
        return self.result


def replace_findings(store: Store, repo: str, scanners: set[str], rows: list[FindingRow]) -> None:
    """Put findings into a repository's table in place of those of the same scanners."""
    _replace(store, repo, "weaknesses", scanners, rows)


def _replace(store: Store, repo: str, table: str, scanners: set[str], rows: list[FindingRow] | list[ScanRow]) -> None:
    kind = FindingRow if table == "weaknesses" else ScanRow

    def with_others(before: list[dict[str, Any]]) -> list[Any]:
        return [*(msgspec.convert(r, kind) for r in before if r["scanner"] not in scanners), *rows]

    sidecars.update_repository_rows(store.folder, repo, table, with_others)


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
    run = _Run(store, git_dir, name, scanner, afresh)
    changes = {
        sha: [f for f in files if run.takes(f.path) or (f.old_path is not None and run.takes(f.old_path))]
        for sha, files in git.changes(git_dir, sorted(commits))
    }
    scanned = run.scan_missing(changes.values(), progress)
    lines = Lines(sidecars.repository_rows(store.folder, name, "line_attribution"), run.takes)
    findings = [row for sha, files in changes.items() for row in run.findings(sha, files, lines)]
    scans = [row for sha, files in changes.items() for row in run.scan_rows(sha, files, lines)]
    labels = _session_labels(f"scan:{scanner.id}", commits, findings, scans)

    looked = {
        content: answer
        for files in changes.values()
        for content in _contents(files)
        if (answer := run.answer(*content)) is not None
    }
    new = [row for row in findings if row.change == "introduced"]
    by_change = Counter(row.change for row in findings)
    new_by_language = Counter(language_of(row.path) or "other" for row in new)
    files_by_language = Counter(language_of(path) or "other" for _, path in looked)
    measured = planted_recall.figures()
    modes = {sha: {key: commit[key] for key in ("mode", "recorded_mode")} for sha, commit in commits.items()}
    summary = Scan(
        repo=name,
        scanner=scanner.id,
        scanner_version=scanner.version,
        commits=len(changes),
        commits_left_out=len(commits) - len(changes),
        files=len(looked),
        scanned=scanned,
        unchanged=scanned == 0,
        skipped=dict(sorted(Counter(answer.skipped for answer in looked.values() if answer.skipped).items())),
        introduced=by_change["introduced"],
        fixed=by_change["fixed"],
        moved=by_change["moved"],
        owners=dict(Counter(row.owner or "" for row in new).most_common()),
        rules=dict(Counter(row.rule for row in new).most_common()),
        cwes=dict(Counter(cwe for row in new for cwe in row.cwe).most_common()),
        languages=[
            OfLanguage(
                language=language,
                files=n,
                introduced=new_by_language[language],
                planted=measured.of(scanner.id, scanner.version, language),
            )
            for language, n in sorted(files_by_language.items(), key=lambda item: (-item[1], item[0]))
        ],
        rates=rates([asdict(row) | modes[row.commit_sha] for row in scans], [asdict(row) for row in findings]),
        sessions=len(labels),
    )
    linked = {session_id for commit in commits.values() for session_id in commit["session_ids"]}
    return Tables(summary, findings, scans, linked, labels)
