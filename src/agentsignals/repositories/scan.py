"""Scan of a repository's commits: weaknesses introduced, fixed and moved, whose lines hold them, and rates.
Findings are matched by their text, never by line numbers alone. Those of any other scanner come from a SARIF 2.1.0
file, which is about one state of the files: nothing in it is introduced or fixed, each finding is of the commit of its
line."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from agentsignals.changes import git
from agentsignals.changes.git import FileChange
from agentsignals.changes.worktrees import label
from agentsignals.errors import ScanError
from agentsignals.questions.written_lines import PER, Rate, rates
from agentsignals.repositories.outcomes import AGENT, NOBODY, SURE
from agentsignals.repositories.scanners import (
    ScanFinding,
    Scanned,
    Scanner,
    SourceFile,
    language_of,
    level,
    marked,
    name_of,
    place_of,
)
from agentsignals.stats import validation
from agentsignals.stats.intervals import poisson
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

    def row(self, repo: str, sha: str, scanner: tuple[str, str], ownership: Ownership) -> FindingRow:
        """The row of the table `weaknesses`. `scanner`: its name and version."""
        found = asdict(self.finding) | {"cwe": list(self.finding.cwe)}
        # The fingerprint names rule, matched text and its surroundings: the same wherever the finding goes with them.
        fingerprint = name_of("\0".join((self.finding.rule, found.pop("match"), found.pop("around"))))
        return FindingRow(
            repo=repo, commit_sha=sha, scanner=scanner[0], scanner_version=scanner[1], change=self.change,
            path=self.path, moved_from=self.moved_from, place=place_of(self.path), owner=ownership[0],
            tag=ownership[1], session_id=ownership[2], fingerprint=fingerprint, **found,
        )  # fmt: skip


class _Side(Struct):
    path: str
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
        if totals.lines:
            rate = totals.introduced / totals.lines * PER
            totals.low, totals.high = poisson(totals.introduced, totals.lines / PER) or (None, None)
            rows.append(LabelRow(session_id, label(totals, f"{rate:.4f}", rate, reason, TASK, labeller)))
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
    planted: validation.PlantedRecallFigure | None
    """Recall of this scanner version on planted weak code; None where it was not measured."""


class Scan(Struct, kw_only=True):
    repo: str
    scanner: str
    scanner_version: str
    commits: int = 0
    commits_left_out: int = 0
    """Such commits of which Git can't tell what they changed, for the clone has not all their files."""
    files: int = 0
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
    recall_caveat: str = validation.PLANTED_CAVEAT
    rates: list[Rate] = field(default_factory=list)
    sessions: int = 0
    """Sessions that got a rate of their own."""


class _Kept(Struct):
    """Answers by file: content and path, for a rule may ask for a folder's name."""

    version: str
    answers: dict[str, Scanned] = field(default_factory=dict)


def _contents(files: Iterable[FileChange]) -> Iterator[tuple[str, str]]:
    for file in files:
        if file.old_oid is not None and file.old_path is not None:
            yield file.old_oid, file.old_path
        if file.new_oid is not None:
            yield file.new_oid, file.path


class _Answers:
    """A scanner's answers, those of a former run by the same rules included."""

    def __init__(self, store: Store, git_dir: str, name: str, scanner: Scanner, afresh: bool) -> None:
        self._git_dir, self._scanner = git_dir, scanner
        note = "scanned-" + "".join(c if c.isalnum() or c in "-_" else "-" for c in scanner.id)[:60]
        self._note = store.folder, name, note
        self._kept = _Kept(scanner.version)
        if not afresh and (held := sidecars.read_note(store.folder, name, note)):
            with suppress(msgspec.DecodeError):  # of an older version
                kept = msgspec.json.decode(held, type=_Kept)
                self._kept = kept if kept.version == scanner.version else self._kept

    def get(self, oid: str | None, path: str | None) -> Scanned | None:
        return self._kept.answers.get(f"{oid}:{path}")

    def scan_missing(self, contents: Iterable[tuple[str, str]], progress: Progress) -> int:
        """Scan the files not seen before. Answers are written down on the way, so that a stopped run goes on."""
        todo = [content for content in dict.fromkeys(contents) if self.get(*content) is None]
        at_once, answers = self._scanner.at_once, self._kept.answers
        kept_at = time.monotonic()
        try:
            for at in range(0, len(todo), at_once):
                progress("scanning", at, len(todo))
                part = todo[at : at + at_once]
                there = {}
                data_of = git.contents(self._git_dir, [oid for oid, _ in part], _LARGEST_BYTES)
                for (oid, path), data in zip(part, data_of, strict=True):
                    if data is None:
                        answers[f"{oid}:{path}"] = Scanned([], "missing")
                    else:
                        there[f"{oid}:{path}"] = SourceFile(path, data)
                answers.update(zip(there, self._scanner.scan(list(there.values())), strict=True))
                if time.monotonic() - kept_at > _KEPT_EVERY_S:
                    sidecars.write_note(*self._note, self._kept)
                    kept_at = time.monotonic()
        finally:
            if todo:
                sidecars.write_note(*self._note, self._kept)
        return len(todo)


class Tables(Struct):
    """Rows of a scan, ready to be stored."""

    result: Scan
    findings: list[FindingRow]
    scans: list[ScanRow]
    sessions: set[str]
    labels: list[LabelRow]

    def write(self, store: Store) -> Scan:
        """Puts the scanner's rows into the repository's tables, and labels of its sessions; those of others stay."""
        scanner = self.result.scanner
        replace_rows(store, self.result.repo, "weaknesses", {scanner}, self.findings)
        replace_rows(store, self.result.repo, "scans", {scanner}, self.scans)
        sidecars.replace_labels(store.folder, TASK, f"scan:{scanner}", self.sessions, self.labels)
        return self.result


def replace_rows(
    store: Store, repo: str, table: str, scanners: set[str], rows: list[FindingRow] | list[ScanRow]
) -> None:
    """Put findings or scans into a repository's table in place of those of the same scanners."""
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

    def takes(path: str | None) -> bool:
        return path is not None and place_of(path) != "vendored" and scanner.takes(path)

    changes = {
        sha: [f for f in files if takes(f.path) or takes(f.old_path)]
        for sha, files in git.changes(git_dir, sorted(commits))
    }
    contents = [content for files in changes.values() for content in _contents(files)]
    answers = _Answers(store, git_dir, name, scanner, afresh)
    scanned = answers.scan_missing((content for content in contents if takes(content[1])), progress)
    lines = Lines(sidecars.repository_rows(store.folder, name, "line_attribution"), takes)
    findings: list[FindingRow] = []
    scans: list[ScanRow] = []
    for sha, files in changes.items():
        sides = []
        by_place: dict[str, list[FileChange]] = defaultdict(list)
        for file in files:
            old, new = answers.get(file.old_oid, file.old_path), answers.get(file.new_oid, file.path)
            sides.append((file, old.findings if old else [], new.findings if new else []))
            by_place[place_of(file.path)].append(file)
        for change in changed(sides):
            ownership: Ownership = (None, None, None)
            if change.change != "fixed":
                ownership = owner_of(lines.of(sha, change.path, change.finding.line, change.finding.end_line))
            findings.append(change.row(name, sha, (scanner.id, scanner.version), ownership))
        for place, those in sorted(by_place.items()):
            tags = sum((lines.counts.get((sha, file.path), Counter()) for file in those), Counter[str]())
            said = [answers.get(*content) for content in _contents(those)]
            scans.append(
                ScanRow(
                    repo=name,
                    commit_sha=sha,
                    scanner=scanner.id,
                    scanner_version=scanner.version,
                    place=place,
                    files=len(those),
                    skipped=sum(a is not None and a.skipped not in (None, "unparsed") for a in said),
                    **{column: sum(tags[t] for t in wanted) for column, wanted in _TAGS.items()},
                )
            )
    labels = _session_labels(f"scan:{scanner.id}", commits, findings, scans)
    looked = {content: answer for content in contents if (answer := answers.get(*content)) is not None}
    introduced = [row for row in findings if row.change == "introduced"]
    by_change = Counter(row.change for row in findings)
    by_language = Counter(language_of(row.path) or "other" for row in introduced)
    files_by_language = Counter(language_of(path) or "other" for _, path in looked)
    measured = validation.planted_recall()
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
        owners=dict(Counter(row.owner or "" for row in introduced).most_common()),
        rules=dict(Counter(row.rule for row in introduced).most_common()),
        cwes=dict(Counter(cwe for row in introduced for cwe in row.cwe).most_common()),
        languages=[
            OfLanguage(
                language=language,
                files=n,
                introduced=by_language[language],
                planted=measured.of(scanner.id, scanner.version, language),
            )
            for language, n in sorted(files_by_language.items(), key=lambda item: (-item[1], item[0]))
        ],
        rates=rates([asdict(row) | modes[row.commit_sha] for row in scans], [asdict(row) for row in findings]),
        sessions=len(labels),
    )
    linked = {session_id for commit in commits.values() for session_id in commit["session_ids"]}
    return Tables(summary, findings, scans, linked, labels)


# Findings of other scanners.

_SPAN = 500
_LARGEST_REPORT_BYTES = 256 * 1024 * 1024
_CWE = re.compile(r"CWE[-/ ]?0{0,4}(\d{1,5})\b", re.IGNORECASE)
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


class Imported(Struct):
    """Findings of one SARIF file."""

    repo: str
    scanners: dict[str, int] = field(default_factory=dict)
    findings: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    """`suppressed`, `no_place`, `no_such_file`, `no_such_line`, `malformed`."""


class Reported(Struct, kw_only=True):
    scanner: str
    version: str
    revision: str | None
    uri: str
    finding: ScanFinding


def _reported(path: Path, skipped: Counter[str]) -> Iterator[Reported]:
    """The results of every run of a SARIF file. ScanError when it is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_REPORT_BYTES + 1)
        runs = msgspec.json.decode(data)["runs"] if len(data) <= _LARGEST_REPORT_BYTES else None
    except OSError as problem:
        raise ScanError(f"{path} can't be read: {problem.strerror}.", "Name a readable SARIF file.") from None
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError):
        runs = None
    if not isinstance(runs, list):
        raise ScanError(
            f"{path} is not a SARIF file of at most 256 MB.", "A scanner writes one with an option like --sarif."
        )
    malformed = (KeyError, TypeError, AttributeError, ValueError)
    for run in runs:
        try:
            driver = run["tool"]["driver"]
            extensions = run["tool"].get("extensions") or []
            about = {str(r["id"]): r for part in (driver, *extensions) for r in part.get("rules") or () if "id" in r}
            revision = next((str(v.get("revisionId") or "") for v in run.get("versionControlProvenance") or ()), "")
            for result in run.get("results") or ():
                try:
                    if result.get("suppressions"):
                        skipped["suppressed"] += 1
                        continue
                    place = (result.get("locations") or [{}])[0].get("physicalLocation") or {}
                    uri, region = (place.get("artifactLocation") or {}).get("uri"), place.get("region") or {}
                    if not uri or not isinstance(region.get("startLine"), int):
                        skipped["no_place"] += 1
                        continue
                    yield Reported(
                        scanner=f"sarif:{driver['name']}",
                        version=str(driver.get("semanticVersion") or driver.get("version") or ""),
                        revision=revision if _SHA.fullmatch(revision) else None,
                        uri=str(uri),
                        finding=_finding(result, about, region),
                    )
                except malformed:
                    skipped["malformed"] += 1
        except malformed:
            skipped["malformed"] += 1


def _finding(result: Any, about: dict[str, Any], region: Any) -> ScanFinding:
    """Return a SARIF result as a finding, with the weaknesses (CWE) that its rule is tagged with."""
    rule = str(result.get("ruleId") or (result.get("rule") or {}).get("id") or "unnamed")
    declared = about.get(rule) or {}
    properties = declared.get("properties") or {}
    tags = [*properties.get("tags", ()), *(result.get("properties") or {}).get("tags", ())]
    tags += [str((r.get("target") or {}).get("id") or "") for r in declared.get("relationships") or ()]
    cwes = dict.fromkeys(f"CWE-{int(m[1])}" for tag in tags if (m := _CWE.search(str(tag)[:200])))
    stated = result.get("level") or (declared.get("defaultConfiguration") or {}).get("level") or "warning"
    first, last = region["startLine"], region.get("endLine")
    sure = properties.get("precision", "medium")
    return ScanFinding(
        rule=rule[:200],
        line=max(first, 1),
        end_line=max(last if isinstance(last, int) else first, first, 1),
        message=str((result.get("message") or {}).get("text") or "")[:2000],
        cwe=tuple(cwes),
        severity=level(stated),
        confidence="high" if sure == "very-high" else level(sure),
    )


def take_in(store: Store, git_dir: str, name: str, path: Path) -> Imported:
    """Adds the findings of a SARIF file to a repository's, in place of those of the same scanner."""
    skipped: Counter[str] = Counter()
    reported = list(_reported(path, skipped))
    attributed = {
        row["commit_sha"]
        for row in sidecars.repository_rows(store.folder, name, "commits")
        if row["added"] is not None and row["relation"] not in (None, "copy")
    }
    lines = Lines(sidecars.repository_rows(store.folder, name, "line_attribution"), lambda _: True)
    head = git.head(git_dir)
    trees: dict[str, set[str]] = {}
    by_file: dict[tuple[str, str], list[Reported]] = defaultdict(list)
    for result in reported:
        sha = (git.resolved(git_dir, result.revision) if result.revision else None) or head
        if sha is not None and sha not in trees:
            trees[sha] = git.files_at(git_dir, sha)
        own_path = None
        if sha is not None:  # the longest end of the address that is a path of the tree
            address = unquote(result.uri.removeprefix("file://")).replace("\\", "/")
            parts = [p for p in address.split("/") if p not in ("", ".")]
            own_path = next((p for n in range(len(parts)) if (p := "/".join(parts[n:])) in trees[sha]), None)
        if sha is None or own_path is None:
            skipped["no_such_file"] += 1
        else:
            by_file[sha, own_path].append(result)
    rows: list[FindingRow] = []
    with closing(git.Objects(git_dir)) as objects:
        for (sha, own_path), results in sorted(by_file.items()):
            text = (objects.get(f"{sha}:{own_path}") or b"").decode("utf-8", "replace").splitlines()
            origins: dict[int, git.BlamedLine] = {}
            with suppress(git.GitError):  # the file's history can't be read
                origins = {line.now: line for line in git.blame(git_dir, sha, own_path)}
            for result in results:
                finding = marked(result.finding, text)
                numbers = range(finding.line, min(finding.end_line, finding.line + _SPAN) + 1)
                span = [origins[n] for n in numbers if n in origins]
                if not span:
                    skipped["no_such_line"] += 1
                    continue
                linked = [origin for origin in span if origin.sha in attributed]
                added = [
                    line for origin in linked for line in lines.of(origin.sha, origin.path, origin.line, origin.line)
                ]
                ownership: Ownership = owner_of(added) if added else ("unlinked", None, None)
                change = Changed("present", own_path, finding)
                rows.append(change.row(name, (linked or span)[0].sha, (result.scanner, result.version), ownership))
    replace_rows(store, name, "weaknesses", {result.scanner for result in reported}, rows)
    owners, scanners = Counter(row.owner or "" for row in rows), Counter(row.scanner for row in rows)
    return Imported(name, dict(scanners), len(rows), dict(owners.most_common()), dict(sorted(skipped.items())))
