"""Agent Trace records (https://agent-trace.dev, 0.1.0): `.agent-trace/` of a working tree and of its head
(design/attribution.md#agent-trace)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct, field

from agentsignals.changes import git
from agentsignals.changes.git import Objects
from agentsignals.model import from_iso
from agentsignals.repositories.witnesses import Account, Ground, Owner, Range, Statement, Testimony, Witness

FOLDER = ".agent-trace"
"""Where the reference hook writes; the standard prescribes no place."""
MOST_BYTES = 256 * 1024 * 1024
_ENDS = (".jsonl", ".json")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OWNERS: dict[str, Owner] = {"ai": "agent", "human": "person", "mixed": "mixed", "unknown": "unknown"}


class _Contributor(Struct, gc=False):
    type: str | None = None
    model_id: str | None = None


class _Range(Struct, gc=False):
    start_line: int = 0
    end_line: int = 0
    contributor: _Contributor | None = None


class _Conversation(Struct, gc=False):
    url: str | None = None
    contributor: _Contributor | None = None
    ranges: list[_Range] = field(default_factory=list)


class _File(Struct, gc=False):
    path: str = ""
    conversations: list[_Conversation] = field(default_factory=list)


class _Revision(Struct, gc=False):
    type: str | None = None
    revision: str | None = None


class _Tool(Struct, gc=False):
    name: str | None = None
    version: str | None = None


class _Record(Struct, gc=False):
    version: str
    files: list[_File]
    timestamp: str | None = None
    vcs: _Revision | None = None
    tool: _Tool | None = None


_decode = msgspec.json.Decoder(_Record).decode


def testimony(ground: Ground) -> Testimony:
    """The records of a repository, each range to the commit that added its lines."""
    result = Testimony()
    records = [r for data in _files(ground, result.problems) for r in _records(data, result.problems)]
    result.records = len(records)
    if not records:
        return result
    places = _Places(ground, {r.vcs.revision for r in records if r.vcs is not None and r.vcs.revision is not None})
    by_time = sorted(range(len(records)), key=lambda n: (from_iso(records[n].timestamp) or 0, n))
    for record in (records[n] for n in by_time):  # of records that overlap the last one holds
        revision = record.vcs.revision if record.vcs is not None and record.vcs.type == "git" else None
        if revision is None or not _SHA.fullmatch(revision):
            result.problems["no_revision"] += 1
            continue
        if not places.has(revision):
            result.problems["revision_not_here"] += 1
            continue
        for file in record.files:
            for ranges in _ranges(file, record, result.problems):
                sha = places.of(revision, file.path, ranges)
                if sha is None:
                    result.problems["not_placed"] += 1
                    continue
                account = result.commits.setdefault(sha, Account(is_carried=sha != revision))
                account.version = (record.tool.version if record.tool is not None else None) or ""
                account.ranges.setdefault(file.path, []).append(ranges)
    return result


def _files(ground: Ground, problems: Counter[str]) -> Iterator[bytes]:
    """The files of the working tree, which has the newest; else those of the head. Links are not followed: they
    may lead anywhere."""
    folder = ground.folder / FOLDER if ground.folder is not None else None
    if folder is not None and folder.is_dir():
        for path in sorted(p for p in folder.iterdir() if p.suffix in _ENDS):
            try:
                if path.is_symlink() or not path.is_file():
                    problems["no_plain_file"] += 1
                elif path.stat().st_size > MOST_BYTES:
                    problems["file_too_large"] += 1
                else:
                    yield path.read_bytes()
            except OSError:
                problems["unreadable_file"] += 1
        return
    head = git.head(ground.git_dir)
    if head is None:
        return
    names = sorted(n for n in git.files_at(ground.git_dir, head) if n.startswith(f"{FOLDER}/") and n.endswith(_ENDS))
    objects = Objects(ground.git_dir)
    try:
        for name in names:
            data = objects.get(f"{head}:{name}")
            if data is not None:
                yield data
            else:
                problems["unreadable_file"] += 1
    finally:
        objects.close()


def _records(data: bytes, problems: Counter[str]) -> Iterator[_Record]:
    """One document, or one a line."""
    try:
        yield _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        for line in data.split(b"\n"):
            if line.strip():
                try:
                    yield _decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    problems["bad_record"] += 1


def _ranges(file: _File, record: _Record, problems: Counter[str]) -> Iterator[Range]:
    for conversation in file.conversations:
        for part in conversation.ranges:
            by = part.contributor or conversation.contributor
            owner = _OWNERS.get((by.type if by is not None else None) or "unknown")
            if owner is None or not 1 <= part.start_line <= part.end_line:
                problems["bad_range"] += 1
                continue
            statement = Statement(
                owner=owner,
                tool=(record.tool.name if record.tool is not None else None) or "",
                session_id=_session_id(conversation.url),
                model=(by.model_id if by is not None else None) or "",
            )
            yield Range(part.start_line, part.end_line, statement)


def _session_id(url: str | None) -> str:
    """The last word of a conversation's address: agents name transcripts and pages by their session's id."""
    try:
        path = urlsplit(url or "").path
    except ValueError:
        return ""
    name = unquote(path.rstrip("/").rpartition("/")[2])
    return name.rpartition(".")[0] if name.endswith(_ENDS) else name


class _Places:
    """Finds the commit whose lines a record counts. The standard means the one it names; the reference hook, which
    writes before there is a commit, names the one before."""

    def __init__(self, ground: Ground, revisions: set[str]) -> None:
        self._after: dict[str, int] = {c.sha: n for n, c in enumerate(ground.commits)}
        self._commits = ground.commits
        first = min((self._after[r] for r in revisions if r in self._after), default=len(ground.commits))
        changes = ground.changes([c.sha for c in ground.commits[first:] if not c.is_merge])
        self._added: dict[str, dict[str, list[tuple[int, int]]]] = {
            sha: {f.path: f.added for f in files} for sha, files in changes.items()
        }
        self._touching: dict[str, list[int]] = defaultdict(list)
        for n, commit in enumerate(ground.commits):
            for path in self._added.get(commit.sha, ()):
                self._touching[path].append(n)

    def has(self, revision: str) -> bool:
        return revision in self._after

    def of(self, revision: str, path: str, lines: Range) -> str | None:
        """The commit itself when it added some of these lines; else the next that changed the file, if it did."""
        if self._adds(revision, path, lines):
            return revision
        after = next((n for n in self._touching.get(path, ()) if n > self._after[revision]), None)
        sha = self._commits[after].sha if after is not None else None
        return sha if sha is not None and self._adds(sha, path, lines) else None

    def _adds(self, sha: str, path: str, lines: Range) -> bool:
        return any(
            first <= lines.last and lines.first < first + n for first, n in self._added.get(sha, {}).get(path, ())
        )


WITNESS = Witness(name="agent-trace", describes="Agent Trace records (`.agent-trace/`, 0.1.0)", testimony=testimony)
