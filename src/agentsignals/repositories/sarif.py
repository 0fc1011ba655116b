"""Findings of any scanner out of a SARIF 2.1.0 file. It is about one state of the files, so nothing is introduced or
fixed: each finding is of the commit that its line is from.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from agentsignals.changes import git as commits
from agentsignals.changes import git as git_objects
from agentsignals.changes.git import GitError
from agentsignals.errors import ScanError
from agentsignals.repositories.scan import Changed, Lines, owner_of
from agentsignals.repositories.scanner import ScanFinding, marked, place_of
from agentsignals.repositories.scanners import level
from agentsignals.store import Store, sidecars
from agentsignals.store.tables import FindingRow

_Origin = tuple[str, str, int]
"""The commit that a line is from, the file's path there, and its line there."""
_SPAN = 500
"""Lines of a finding that are looked at."""
_LARGEST_BYTES = 256 * 1024 * 1024
_CWE = re.compile(r"CWE[-/ ]?0{0,4}(\d{1,5})\b", re.IGNORECASE)
_HEADER = re.compile(rb"([0-9a-f]{40,64}) (\d+) (\d+)(?: \d+)?")
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


class Imported(Struct):
    """Findings of one SARIF file."""

    repo: str
    scanners: dict[str, int] = field(default_factory=dict)
    """Findings by scanner."""
    findings: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    """`suppressed`, `no_place`, `no_such_file`, `no_such_line`, `malformed`."""


class Reported(Struct):
    """A result of a run."""

    tool: str
    version: str
    revision: str | None
    uri: str
    finding: ScanFinding


def read(path: Path, skipped: Counter[str]) -> Iterator[Reported]:
    """The results of every run of a SARIF file. ScanError when it is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
        runs = msgspec.json.decode(data)["runs"] if len(data) <= _LARGEST_BYTES else None
    except OSError as problem:
        raise ScanError(f"{path} can't be read: {problem.strerror}.", "Name a SARIF file.") from None
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError):
        runs = None
    if not isinstance(runs, list):
        raise ScanError(
            f"{path} is no SARIF file of at most 256 MB.", "A scanner writes one with an option like --sarif."
        )
    for run in runs:
        try:
            yield from _of_run(run, skipped)
        except (KeyError, TypeError, AttributeError, ValueError):
            skipped["malformed"] += 1


def _of_run(run: Any, skipped: Counter[str]) -> Iterator[Reported]:
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
            tool, version = str(driver["name"]), str(driver.get("semanticVersion") or driver.get("version") or "")
            yield Reported(tool, version, revision if _SHA.fullmatch(revision) else None, str(uri),
                           _finding(result, about, region))  # fmt: skip
        except (KeyError, TypeError, AttributeError, ValueError):
            skipped["malformed"] += 1


def _finding(result: Any, about: dict[str, Any], region: Any) -> ScanFinding:
    rule = str(result.get("ruleId") or (result.get("rule") or {}).get("id") or "unnamed")
    declared = about.get(rule) or {}
    words = [*(declared.get("properties") or {}).get("tags", ()), *(result.get("properties") or {}).get("tags", ())]
    words += [str((r.get("target") or {}).get("id") or "") for r in declared.get("relationships") or ()]
    cwes = dict.fromkeys(f"CWE-{int(m[1])}" for word in words if (m := _CWE.search(str(word)[:200])))
    stated = result.get("level") or (declared.get("defaultConfiguration") or {}).get("level") or "warning"
    first = region["startLine"]
    last = region.get("endLine")
    sure = (declared.get("properties") or {}).get("precision", "medium")
    return ScanFinding(
        rule=rule[:200], line=max(first, 1), end_line=max(last if isinstance(last, int) else first, first, 1),
        message=str((result.get("message") or {}).get("text") or "")[:2000], cwe=tuple(cwes), severity=level(stated),
        confidence="high" if sure == "very-high" else level(sure),
    )  # fmt: skip


def take_in(store: Store, git_dir: str, name: str, path: Path) -> Imported:
    """Adds the findings of a SARIF file to a repository's, in place of those of the same scanner."""
    skipped: Counter[str] = Counter()
    reported = list(read(path, skipped))
    placed = _Placed(store, git_dir, name)
    rows: list[FindingRow] = []
    for (sha, own_path), those in sorted(_by_file(git_dir, reported, skipped).items()):
        text = placed.text(sha, own_path)
        origins = _origins(git_dir, sha, own_path)
        for result in those:
            finding = marked(result.finding, text)
            span = [
                origins[n] for n in range(finding.line, min(finding.end_line, finding.line + _SPAN) + 1) if n in origins
            ]
            if span:
                rows.append(placed.row(own_path, result, span))
            else:
                skipped["no_such_line"] += 1
    tools = {_scanner(result) for result in reported}

    def with_others(before: list[dict[str, Any]]) -> list[Any]:
        return [*(msgspec.convert(r, FindingRow) for r in before if r["scanner"] not in tools), *rows]

    sidecars.update_repository_rows(store.folder, name, "weaknesses", with_others)
    owners, scanners = Counter(row.owner or "" for row in rows), Counter(row.scanner for row in rows)
    return Imported(name, dict(scanners), len(rows), dict(owners.most_common()), dict(sorted(skipped.items())))


def _by_file(git_dir: str, reported: list[Reported], skipped: Counter[str]) -> dict[tuple[str, str], list[Reported]]:
    """The results by the commit and file they are about."""
    head = commits.head(git_dir)
    trees: dict[str, set[str]] = {}
    by_file: dict[tuple[str, str], list[Reported]] = defaultdict(list)
    for result in reported:
        sha = _full_sha(git_dir, result.revision) or head
        if sha is not None and sha not in trees:
            trees[sha] = commits.files_at(git_dir, sha)
        own_path = _path_of(result.uri, trees[sha]) if sha is not None else None
        if sha is None or own_path is None:
            skipped["no_such_file"] += 1
            continue
        by_file[sha, own_path].append(result)
    return by_file


class _Placed:
    """Puts findings to the commits and lines of a repository."""

    def __init__(self, store: Store, git_dir: str, name: str) -> None:
        self._git_dir, self._name = git_dir, name
        self._lines = Lines(sidecars.repository_rows(store.folder, name, "line_attribution"), lambda _: True)
        self._attributed = {
            row["commit_sha"]
            for row in sidecars.repository_rows(store.folder, name, "commits")
            if row["added"] is not None and row["relation"] not in (None, "copy")
        }

    def text(self, sha: str, path: str) -> list[str]:
        """The lines of a file of a commit."""
        objects = git_objects.Objects(self._git_dir)
        try:
            return (objects.get(f"{sha}:{path}") or b"").decode("utf-8", "replace").splitlines()
        finally:
            objects.close()

    def row(self, path: str, result: Reported, span: list[_Origin]) -> FindingRow:
        """A finding on lines that are from there."""
        finding = result.finding
        attributed = [origin for origin in span if origin[0] in self._attributed]
        added = [line for sha, there, n in attributed for line in self._lines.of(sha, there, n, n)]
        owner, tag, session_id = owner_of(added) if added else ("unlinked", None, None)
        return FindingRow(
            repo=self._name,
            commit_sha=(attributed or span)[0][0],
            scanner=_scanner(result),
            scanner_version=result.version,
            change="present",
            rule=finding.rule,
            cwe=list(finding.cwe),
            severity=finding.severity,
            confidence=finding.confidence,
            path=path,
            line=finding.line,
            end_line=finding.end_line,
            moved_from=None,
            place=place_of(path),
            owner=owner,
            tag=tag,
            session_id=session_id,
            fingerprint=Changed("introduced", path, finding).fingerprint,
            text=finding.text,
            message=finding.message,
        )


def _scanner(result: Reported) -> str:
    return f"sarif:{result.tool}"


def _full_sha(git_dir: str, revision: str | None) -> str | None:
    """The commit of a revision id, where the repository has it."""
    if revision is None:
        return None
    try:
        output = git_objects.run(f"--git-dir={git_dir}", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except GitError:
        return None
    return output.decode().strip()


def _path_of(uri: str, tree: set[str]) -> str | None:
    """The file that an address means: the longest end of it that is a path of the tree."""
    parts = [p for p in unquote(uri.removeprefix("file://")).replace("\\", "/").split("/") if p not in ("", ".")]
    return next((path for n in range(len(parts)) if (path := "/".join(parts[n:])) in tree), None)


def _origins(git_dir: str, sha: str, path: str) -> dict[int, _Origin]:
    """By line: the commit it is from, the file's path there, and its line there."""
    try:
        output = commits.blame(git_dir, sha, path)
    except GitError:
        return {}
    origins: dict[int, _Origin] = {}
    paths: dict[str, str] = {}
    here: tuple[str, int, int] | None = None
    for line in output.split(b"\n"):
        if line[:1] == b"\t" and here is not None:
            origins[here[2]] = (here[0], paths.get(here[0], path), here[1])
            here = None
        elif here is not None and line.startswith(b"filename "):
            paths[here[0]] = commits.unquoted(line[9:])
        elif here is None and (header := _HEADER.fullmatch(line)):
            here = header[1].decode(), int(header[2]), int(header[3])
    return origins
