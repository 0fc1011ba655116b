"""Agent Trace records (https://agent-trace.dev, 0.1.0): `.agent-trace/` of a working tree and of its head
(design/attribution.md#agent-trace)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, suppress
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct, field

from agentsignals.changes import git
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
    version: str | None = None


class _Record(Struct, gc=False):
    version: str
    files: list[_File]
    timestamp: str | None = None
    vcs: _Revision | None = None
    tool: _Tool | None = None


_decode = msgspec.json.Decoder(_Record).decode


def testimony(ground: Ground) -> Testimony:
    """The records of a repository, each range to the commit that added its lines: the one that the record names, as the
    standard means it, or the next that changed the file. The reference hook, which writes before there is a commit,
    names the one before."""
    result = Testimony()
    problems = result.problems
    records = [r for data in _files(ground, problems) for r in _records(data, problems)]
    result.records = len(records)
    if not records:
        return result
    after = {c.sha: n for n, c in enumerate(ground.commits)}
    named = {r.vcs.revision for r in records if r.vcs is not None and r.vcs.revision is not None}
    first = min((after[r] for r in named if r in after), default=len(ground.commits))
    changes = ground.changes([c.sha for c in ground.commits[first:] if not c.is_merge])
    added = {(sha, f.path): f.added for sha, files in changes.items() for f in files}
    touching: dict[str, list[str]] = defaultdict(list)
    for commit in ground.commits:
        for file in changes.get(commit.sha, ()):
            touching[file.path].append(commit.sha)
    by_time = sorted(range(len(records)), key=lambda n: (from_iso(records[n].timestamp) or 0, n))
    for record in (records[n] for n in by_time):  # of records that overlap the last one holds
        revision = record.vcs.revision if record.vcs is not None and record.vcs.type == "git" else None
        if revision is None or not _SHA.fullmatch(revision):
            problems["no_revision"] += 1
            continue
        if revision not in after:
            problems["revision_not_here"] += 1
            continue
        for stated in record.files:
            later = next((sha for sha in touching.get(stated.path, ()) if after[sha] > after[revision]), None)
            for part in _ranges(stated, problems):
                for sha in filter(None, (revision, later)):
                    places = added.get((sha, stated.path), ())
                    if any(begin <= part.last and part.first < begin + n for begin, n in places):
                        account = result.commits.setdefault(sha, Account(is_carried=sha != revision))
                        account.version = (record.tool.version if record.tool is not None else None) or ""
                        account.ranges.setdefault(stated.path, []).append(part)
                        break
                else:
                    problems["not_placed"] += 1
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
    with closing(git.Objects(ground.git_dir)) as objects:
        for name in names:
            data = objects.get(f"{head}:{name}")
            if data is not None:
                yield data
            else:
                problems["unreadable_file"] += 1


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


def _ranges(file: _File, problems: Counter[str]) -> Iterator[Range]:
    """Yield the lines of a file with their stated owner and session; impossible ranges are counted."""
    for conversation in file.conversations:
        # The last word of the address: agents name transcripts and pages by their session's id.
        session_id = ""
        with suppress(ValueError):
            session_id = unquote(urlsplit(conversation.url or "").path.rstrip("/").rpartition("/")[2])
        session_id = session_id.rpartition(".")[0] if session_id.endswith(_ENDS) else session_id
        for part in conversation.ranges:
            by = part.contributor or conversation.contributor
            owner = _OWNERS.get((by.type if by is not None else None) or "unknown")
            if owner is None or not 1 <= part.start_line <= part.end_line:
                problems["bad_range"] += 1
                continue
            statement = Statement(owner=owner, session_id=session_id)
            yield Range(part.start_line, part.end_line, statement)


WITNESS = Witness(name="agent-trace", describes="Agent Trace records (`.agent-trace/`, 0.1.0)", testimony=testimony)
