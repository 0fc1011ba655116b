"""git-ai's notes: an authorship log a commit under `refs/notes/ai`, standard 3.0.0 (design/attribution.md#git-ai)."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
from msgspec import Struct, field

from agentsignals.changes.git import GitError, contents, refs, run
from agentsignals.repositories.witnesses import Account, Ground, Range, Statement, Testimony, Witness

MOST_BYTES = 64 * 1024 * 1024
"""Bytes read of a note: its attestations come first, and the transcripts of older versions are not needed."""
_REF = "refs/notes/ai"
_DIVIDER = re.compile(rb"(?:\A|\n)---\r?(?:\n|\Z)")
_SCHEMA = "authorship/3."
_ENTRY = re.compile(r"  (\S+) (\S+)")
_SPAN = re.compile(r"([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?")
_PERSON = re.compile(r"h_|human\Z")
"""Keys of people: `h_` and a hash; `human` of some versions, outside the standard."""


class _Agent(Struct, gc=False):
    id: str | None = None


class _Record(Struct, gc=False):
    agent_id: _Agent | None = None


class _Metadata(Struct, gc=False):
    schema_version: str | None = None
    git_ai_version: str | None = None
    base_commit_sha: str | None = None
    prompts: dict[str, _Record | None] | None = field(default=None)
    sessions: dict[str, _Record | None] | None = field(default=None)


_decode = msgspec.json.Decoder(_Metadata).decode


def testimony(ground: Ground) -> Testimony:
    """The notes of a repository, each to its commit, whether that is still there or not."""
    result = Testimony()
    try:
        listed = run(f"--git-dir={ground.git_dir}", "notes", "--ref=ai", "list").decode("ascii", "replace").split("\n")
    except GitError:
        if any(name == _REF for name, _ in refs(ground.git_dir)):
            result.problems["unreadable_notes"] += 1
        return result
    pairs = [words for line in listed if len(words := line.split()) == 2]
    for (_, sha), data in zip(pairs, contents(ground.git_dir, [oid for oid, _ in pairs], MOST_BYTES), strict=True):
        result.records += 1
        if data is None:
            result.problems["missing_note"] += 1
            continue
        account = read(data, sha, result.problems)
        if account is not None:
            result.commits[sha] = account
    return result


def read(note: bytes, sha: str, problems: Counter[str]) -> Account | None:
    """One note; None where it is of another schema, which is counted as everything is that can't be read."""
    divider = _DIVIDER.search(note)
    if divider is None:
        problems["no_divider"] += 1
        return None
    try:
        metadata = _decode(note[divider.end() :])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problems["bad_metadata"] += 1  # who wrote the lines is gone with it, not that an agent did
        metadata = _Metadata(schema_version=_SCHEMA)
    if not (metadata.schema_version or "").startswith(_SCHEMA):
        problems["other_schema"] += 1
        return None
    records = {**(metadata.prompts or {}), **(metadata.sessions or {})}
    account = Account(
        # In spite of its name it is the commit that the note was made for, not its parent.
        is_carried=metadata.base_commit_sha not in (None, "", sha),
        version=metadata.git_ai_version or "",
    )
    path = ""
    for line in note[: divider.start()].decode("utf-8", "surrogateescape").split("\n"):
        entry = _ENTRY.fullmatch(line.rstrip("\r"))
        if entry is not None and path:
            statement = _statement(entry[1], records, problems)
            ranges = account.ranges.setdefault(path, [])
            for match in map(_SPAN.fullmatch, entry[2].split(",")):
                first, last = (int(match[1]), int(match[2] or match[1])) if match is not None else (1, 0)
                if first <= last:
                    ranges.append(Range(first, last, statement))
                else:
                    problems["bad_range"] += 1
        elif line[:1] not in ("", " ", "\r"):
            path = line.rstrip("\r")
            path = path[1:-1] if len(path) > 1 and path[0] == path[-1] == '"' else path
        elif line.strip():
            problems["bad_line"] += 1
    return account


def _statement(key: str, records: dict[str, _Record | None], problems: Counter[str]) -> Statement:
    if _PERSON.match(key):
        return Statement(owner="person")
    record = records.get(key) or records.get(key.partition("::")[0])
    if record is None or record.agent_id is None:
        problems["unresolved_key"] += 1  # an agent's by the standard; which one nobody says
        return Statement(owner="agent")
    return Statement(owner="agent", session_id=record.agent_id.id or "")


WITNESS = Witness(name="git-ai", describes="notes of git-ai (`refs/notes/ai`, standard 3.0.0)", testimony=testimony)
