"""What the sessions of a shard are to all others: where and when they were, and what they add to values over all.

A brief follows from the shard's tables. It is kept beside the shards, in a file that can be thrown away, so that a run
that changes one shard reads no other.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct, field

from agentsignals.catalog import Signal, catalogue, plan
from agentsignals.model import Absent, Context
from agentsignals.store import Store, shards
from agentsignals.store import files as disk
from agentsignals.views.same_place import Site, tells
from agentsignals.words.lexicon import words

FOLDER = "briefs"
CONTEXTS: tuple[Context, ...] = get_args(Context)
FILES = "touched_files"
"""The signal whose value says which files a session touched."""
LINES = "edited_line_prints"
"""The signal whose value says which lines a session changed."""
MARKS = "repository_marks"
"""The signal whose value says of which repository Git spoke."""
SETS = "metric_inputs"
"""The signal whose value is counted by place."""
READ = ("sessions", "signals", "turns")
"""The tables that a brief is made from."""
_VERSION = 2
_HEADER = [
    "session_id", "context", "repo", "cwd", "parent_session_id", "started_at", "ended_at", "n_turns",
]  # fmt: skip
_CHECK_BYTES = 4


class Entry(Struct, array_like=True, kw_only=True, gc=False):
    """A session among the others; times in microseconds since 1970 UTC."""

    session_id: str
    context: Context
    repo: str | None
    cwd: str | None
    parent_session_id: str | None
    started_at: int | None
    ended_at: int | None
    n_turns: int | None
    lines: int
    """Names the lines that it changed; 0 where there are none."""


class Text(Struct, array_like=True, gc=False):
    """What two sessions are compared by."""

    files: list[str]
    words: str | None
    """Of its first prompt; None without one. One text takes a tenth of the memory of many."""


class Brief(Struct, kw_only=True):
    """What a shard's sessions are to all others."""

    sessions: list[Entry] = field(default_factory=list)
    sites: dict[Context, list[Site]] = field(default_factory=dict)
    """What the sessions of each repository and folder say of where they lie."""
    sums: dict[Context, dict[str, list[Any]]] = field(default_factory=dict)
    """By signal that goes into values over all sessions: pooled ones (`Signal.pool`), or each with its session."""
    texts: bytes = b""
    """Small, and unpacked when asked for."""


def brief_of(root: Path, shard: str, keep: bool = False) -> Brief:
    """The brief of a shard, made where it is not there; `keep`: written, too. StoreError when a table can't be read."""
    path = root / FOLDER / f"{shard}.{_stamp()}"
    with suppress(OSError, msgspec.DecodeError):
        data = path.read_bytes()
        if zlib.crc32(data[_CHECK_BYTES:]) == int.from_bytes(data[:_CHECK_BYTES]):
            return msgspec.msgpack.decode(memoryview(data)[_CHECK_BYTES:], type=Brief)
    made = _made(root, shard)
    if keep:
        encoded = msgspec.msgpack.encode(made)
        try:
            path.parent.mkdir(exist_ok=True)
            disk.replace(path, zlib.crc32(encoded).to_bytes(_CHECK_BYTES) + encoded)
        except OSError as problem:
            raise disk.cannot_write(root, problem) from problem
    return made


def sweep(store: Store) -> None:
    """Removes the briefs of shards that are no more."""
    for path in disk.listed(store.folder / FOLDER):
        shard, _, stamp = path.name.partition(".")
        if shard not in store.manifest.shards or stamp != _stamp():
            path.unlink(missing_ok=True)


def texts_of(brief: Brief) -> dict[str, Text]:
    """By session."""
    texts = msgspec.msgpack.decode(zlib.decompress(brief.texts), type=list[Text])
    return {entry.session_id: text for entry, text in zip(brief.sessions, texts, strict=True)}


def values_of(root: Path, shard: str, names: Iterable[str], only: set[str] | None = None) -> dict[str, dict[str, Any]]:
    """The session-level values of these signals (by function name), of a shard's sessions or `only` of these."""
    called = {catalogue()[name].path: name for name in names}
    values: dict[str, dict[str, Any]] = {}
    for session_id, path, value, absent, why in shards.read_values(root, shard, set(called), only):
        values.setdefault(session_id, {})[called[path]] = _absent(absent, why or "") if absent else decoded(value or "")
    return values


def decoded(value: str) -> Any:
    """A value out of the store's."""
    return msgspec.json.decode(value)


_absent = lru_cache(maxsize=4096)(Absent)
"""Sessions have the same few reasons."""


@cache
def summed(context: Context) -> tuple[Signal, ...]:
    """The signals of one session that go into values over all sessions of a context."""
    names = dict.fromkeys(n for s in plan(context, "corpus") for n in s.needs)
    return tuple(catalogue()[n] for n in names)


@cache
def _stamp() -> str:
    """Changes with what a brief is made from: the signals across sessions, those that they ask for, this module."""
    versions = [(s.path, s.version) for s in catalogue().values() if s.scope != "session"]
    asked = [(context, s.path) for context in CONTEXTS for s in summed(context)]
    return hashlib.blake2b(repr((_VERSION, versions, asked)).encode(), digest_size=6).hexdigest()


def _made(root: Path, shard: str) -> Brief:
    names = {s.name for context in CONTEXTS for s in summed(context) if s.scope == "session"}
    values = values_of(root, shard, names | {FILES, LINES, MARKS})
    prompts = shards.first_prompts(root, shard)
    brief = Brief()
    texts: list[Text] = []
    sites: dict[tuple[Context, str | None, str | None], _Heard] = {}
    lists: dict[Context, dict[str, list[tuple[str, Any]]]] = {}
    for row in shards.read_header(root, shard, _HEADER):
        entry = Entry(**row, lines=0)
        measured = values.get(entry.session_id, {})
        files, marks, lines = (measured.get(name) for name in (FILES, MARKS, LINES))
        entry.lines = _mark(lines) if isinstance(lines, dict) and lines else 0
        files = files if isinstance(files, list) else []
        prompt = prompts.get(entry.session_id)
        texts.append(Text(files, None if prompt is None else " ".join(sorted(words(prompt)))))
        heard = sites.setdefault((entry.context, entry.repo, entry.cwd), _Heard())
        heard.add(1, marks if isinstance(marks, dict) else {}, filter(tells, files))
        for signal in summed(entry.context):
            value = measured.get(signal.name)
            if value is not None and type(value) is not Absent:
                if signal.name == SETS:
                    value = {**value, "place": site_id(entry.repo, entry.cwd)}
                lists.setdefault(entry.context, {}).setdefault(signal.name, []).append((entry.session_id, value))
        brief.sessions.append(entry)
    for (context, repo, cwd), heard in sites.items():
        brief.sites.setdefault(context, []).append(heard.site(repo, cwd))
    for context, by_name in lists.items():
        brief.sums[context] = {name: _pooled(catalogue()[name], pairs) for name, pairs in by_name.items()}
    brief.texts = zlib.compress(msgspec.msgpack.encode(texts), 1)
    return brief


def _pooled(signal: Signal, pairs: list[tuple[str, Any]]) -> list[Any]:
    return signal.pool([value for _, value in pairs]) if signal.pool is not None else list(pairs)


def _mark(lines: dict[str, str]) -> int:
    encoded = msgspec.msgpack.encode(lines, order="sorted")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=7).digest()) or 1


def site_id(repo: str | None, cwd: str | None) -> str:
    """Names the sites of one repository and folder."""
    return repr((repo, cwd))


class _Heard(Struct):
    """What sessions of one repository and folder say of where they lie."""

    sessions: int = 0
    remotes: set[str] = field(default_factory=set)
    commits: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, sessions: int, marks: dict[str, list[str]], files: Iterable[str]) -> None:
        self.sessions += sessions
        self.remotes.update(marks.get("remotes", ()))
        self.commits.update(marks.get("commits", ()))
        self.files.update(files)

    def site(self, repo: str | None, cwd: str | None) -> Site:
        return Site(
            session_id=site_id(repo, cwd),
            repo=repo,
            cwd=cwd,
            remotes=sorted(self.remotes),
            commits=sorted(self.commits),
            files=sorted(self.files),
            sessions=self.sessions,
        )


def united(sites: Iterable[Site]) -> list[Site]:
    """Those of one repository and folder as one."""
    heard: dict[tuple[str | None, str | None], _Heard] = {}
    for site in sites:
        marks = {"remotes": site.remotes, "commits": site.commits}
        heard.setdefault((site.repo, site.cwd), _Heard()).add(site.sessions, marks, site.files)
    return [of.site(repo, cwd) for (repo, cwd), of in heard.items()]
