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

from agentsignals.changes import git
from agentsignals.errors import ScanError
from agentsignals.repositories.scan import Changed, Lines, Ownership, owner_of, replace_findings
from agentsignals.repositories.scanners import ScanFinding, level, marked
from agentsignals.store import Store, sidecars
from agentsignals.store.tables import FindingRow

_SPAN = 500
"""Lines of a finding that are looked at."""
_LARGEST_BYTES = 256 * 1024 * 1024
_CWE = re.compile(r"CWE[-/ ]?0{0,4}(\d{1,5})\b", re.IGNORECASE)
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


class Reported(Struct, kw_only=True):
    """A result of a run."""

    scanner: str
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
                    version = str(driver.get("semanticVersion") or driver.get("version") or "")
                    yield Reported(
                        scanner=f"sarif:{driver['name']}",
                        version=version,
                        revision=revision if _SHA.fullmatch(revision) else None,
                        uri=str(uri),
                        finding=_finding(result, about, region),
                    )
                except malformed:
                    skipped["malformed"] += 1
        except malformed:
            skipped["malformed"] += 1


def _finding(result: Any, about: dict[str, Any], region: Any) -> ScanFinding:
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
    reported = list(read(path, skipped))
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
        own_path = _path_of(result.uri, trees[sha]) if sha is not None else None
        if sha is None or own_path is None:
            skipped["no_such_file"] += 1
        else:
            by_file[sha, own_path].append(result)
    rows: list[FindingRow] = []
    objects = git.Objects(git_dir)
    for (sha, own_path), results in sorted(by_file.items()):
        text = (objects.get(f"{sha}:{own_path}") or b"").decode("utf-8", "replace").splitlines()
        origins = _origins(git_dir, sha, own_path)
        for result in results:
            finding = marked(result.finding, text)
            numbers = range(finding.line, min(finding.end_line, finding.line + _SPAN) + 1)
            span = [origins[n] for n in numbers if n in origins]
            if not span:
                skipped["no_such_line"] += 1
                continue
            linked = [origin for origin in span if origin.sha in attributed]
            added = [line for origin in linked for line in lines.of(origin.sha, origin.path, origin.line, origin.line)]
            ownership: Ownership = owner_of(added) if added else ("unlinked", None, None)
            change = Changed("present", own_path, finding)
            rows.append(change.row(name, (linked or span)[0].sha, (result.scanner, result.version), ownership))
    objects.close()
    replace_findings(store, name, {result.scanner for result in reported}, rows)
    owners, scanners = Counter(row.owner or "" for row in rows), Counter(row.scanner for row in rows)
    return Imported(name, dict(scanners), len(rows), dict(owners.most_common()), dict(sorted(skipped.items())))


def _path_of(uri: str, tree: set[str]) -> str | None:
    """The file that an address means: the longest end of it that is a path of the tree."""
    parts = [p for p in unquote(uri.removeprefix("file://")).replace("\\", "/").split("/") if p not in ("", ".")]
    return next((path for n in range(len(parts)) if (path := "/".join(parts[n:])) in tree), None)


def _origins(git_dir: str, sha: str, path: str) -> dict[int, git.BlamedLine]:
    """By line: where it comes from; nothing where the file's history can't be read."""
    try:
        return {line.now: line for line in git.blame(git_dir, sha, path)}
    except git.GitError:
        return {}
