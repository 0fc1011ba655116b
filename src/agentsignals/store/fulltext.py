"""Full text search over prompts, replies, commands, paths and results (docs/decisions/017).

The index is SQLite's FTS5, a file a shard, made from nothing but the shard. It can be thrown away. A file is named by
the content it was made from, so that the index of a replaced shard is never read. Forgetting removes whole files; no
row stays behind.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from agentsignals import private_files
from agentsignals.errors import StoreError, UsageError
from agentsignals.store import disk
from agentsignals.store import index as manifest
from agentsignals.store.index import SHARDS_FOLDER as SHARDS
from agentsignals.store.index import Manifest

if TYPE_CHECKING:
    from agentsignals.store import Store


# Passages

KINDS = ("title", "prompt", "reply", "command", "path", "result", "thinking", "other")
"""Kinds of passages, the most telling first."""
_OF_EVENTS = {
    "human_turn": "prompt",
    "user_shell": "prompt",
    "text": "reply",
    "tool_result": "result",
    "command_output": "result",
    "thinking": "thinking",
}
"""Kinds of passages by kind of event; all others (notes of the harness, interruptions, compactions) are `other`."""
_EVENTS = ["session_id", "seq", "kind", "text"]
_CALLS = ["session_id", "seq", "path", "command", "arguments", "result_seq", "name"]
_END = re.compile("(?:[a-z0-9]|[A-Z](?=[A-Z][a-z]))[A-Z][A-Za-z0-9]*")
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Kana, Han."""
_MOST_WORDS = 500_000
"""Identifiers whose endings are cached."""
_KIND_BITS, _SEQ_BITS = 3, 32
_PASSAGE_BITS = _KIND_BITS + _SEQ_BITS


class Passage(NamedTuple):
    """A text of a session: of an event, of a call's arguments, or its title."""

    session_id: str
    seq: int
    kind: str
    text: str
    tool: str
    """Tool of a call, also for its result; else empty."""


def passage_number(session: int, kind: str, seq: int) -> int:
    """Return the number of a passage in the index: a session's are contiguous, the most telling kinds first."""
    return (session << _KIND_BITS | KINDS.index(kind)) << _SEQ_BITS | seq


def passages(shard: Path, gone: Collection[str] = ()) -> Iterator[list[Passage]]:
    """Yield the texts of a shard, a session at a time, in order of their numbers, but for sessions `gone`. StoreError
    when it can't be read."""
    from agentsignals.store import parquet  # noqa: PLC0415  (pyarrow is loaded when an index is made)

    calls: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for table in parquet.read_batches(shard / "tool_calls.parquet", _CALLS):
        for session_id, *call in zip(*(column.to_pylist() for column in table.columns), strict=True):
            calls[session_id].append(tuple(call))
    titles: dict[str, str] = {}
    for table in parquet.read_batches(shard / "sessions.parquet", ["session_id", "title"]):
        titles |= zip(*(column.to_pylist() for column in table.columns), strict=True)
    events = (
        row
        for table in parquet.read_batches(shard / "events.parquet", _EVENTS)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )
    left = frozenset(gone)
    for session_id, of_session in groupby(events, key=itemgetter(0)):
        if session_id in left:
            continue
        of_calls = calls.pop(session_id, [])
        tools = {result: name for *_, result, name in of_calls if result is not None}
        made = [
            Passage(session_id, seq, _OF_EVENTS.get(kind, "other"), text, tools.get(seq, ""))
            for _, seq, kind, text in of_session
            if text
        ]
        for seq, path, command, arguments, _, name in of_calls:
            texts = call_texts(path, command, arguments)
            made += [Passage(session_id, seq, kind, text, name) for kind, text in texts.items() if text]
        if title := titles.get(session_id):
            made.append(Passage(session_id, 0, "title", title, ""))
        made.sort(key=lambda p: passage_number(0, p.kind, p.seq))
        yield made


def call_texts(path: str | None, command: str | None, arguments: str) -> dict[str, str]:
    """Return what a call asks for, by kind: paths, and everything else."""
    texts = [*_strings(arguments)]
    paths = [text for text in texts if path and (text == path or text.endswith(f"/{path}"))] or ([path] if path else [])
    rest = [text for text in texts if text not in paths]
    if command and command not in rest:
        rest.insert(0, command)
    return {"path": "\n".join(dict.fromkeys(paths)), "command": "\n".join(dict.fromkeys(rest))}


def _strings(arguments: str) -> Iterator[str]:
    """Yield the strings in a JSON document, in order; the text itself where it is no JSON."""
    try:
        waiting: list[Any] = [msgspec.json.decode(arguments or "{}")]
    except (msgspec.DecodeError, RecursionError):
        yield arguments.replace("\\n", " ").replace("\\t", " ")
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += reversed(value.values())
        elif isinstance(value, list):
            waiting += reversed(value)


def without_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, which SQLite refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def space_unspaced_scripts(text: str) -> str:
    """Put spaces around each letter of scripts without spaces, so that words in them can be found."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def _endings(identifier: str) -> str:
    """Return the endings of an identifier from each of its parts on, so that `OpenStore` is found as `store`."""
    starts = [1, *(match.start() for match in _BOUNDARY.finditer(identifier, 2))]
    return " ".join(identifier[start:].lower() for start in starts)


# The index

FOLDER = ".search"
"""Folder of the index; hidden, so that it is not uploaded to a remote store."""
VERSION = 2
"""Version of the files' content and of the way texts are split into words."""
TABLES = ("sessions", "events", "tool_calls")
"""Tables whose texts are searched."""
Progress = Callable[[str, int, int | None], None]
"""Called with the stage, the amount done, and the total."""
_making = Lock()
_in_memory: dict[Path, sqlite3.Connection] = {}
"""Indexes of stores that can't be written, while the program runs."""
_SUFFIX = ".sqlite"
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE sessions (number INTEGER PRIMARY KEY, session_id TEXT);
CREATE VIRTUAL TABLE passages USING fts5(text, parts, tool, content='', tokenize='unicode61 remove_diacritics 2');
INSERT INTO passages (passages, rank) VALUES ('hashsize', 100000000);
"""


def build(store: Store, progress: Progress = lambda *_: None) -> str:
    """Build what of the index is missing, and remove what is stale. Return why it could not be written; it is in memory
    then. StoreError where this Python's SQLite has no FTS5."""
    with _making:
        wanted, why = missing_shards(store), ""
        live = _live(store.folder) if wanted else set()
        sizes = {name: store.manifest.shards[name].tables["events"].bytes for name in wanted}
        for done, name in enumerate(wanted):
            progress("indexing", sum(sizes[n] for n in wanted[:done]), sum(sizes.values()))
            path, gone = index_file(store.folder, store.manifest, name), store.manifest.shards[name].gone
            why = why or ("" if path.name in live else "The store was written anew since it was opened.")
            try:
                why = why or _written(store.folder, name, gone, path)
                if why:
                    _in_memory[path] = _filled(":memory:", store.folder / SHARDS / name, gone)
            except StoreError:  # what only reading a shard shows
                if not store.check_files(thorough=True):
                    raise
        paths = set(_files(store).values())
        for path in _in_memory.keys() - paths:
            if path.parent.parent == store.folder:
                del _in_memory[path]
    sweep(store.folder, {path.name for path in paths})
    return why


def missing_shards(store: Store) -> list[str]:
    """Return the shards without an index."""
    return [name for name, path in _files(store).items() if path not in _in_memory and not _is_whole(path)]


def sweep(folder: Path, expected: Collection[str] = ()) -> None:
    """Remove the files of shards that no longer exist, and drafts of programs that died. Nothing is done where only
    `expected` files are there."""
    there = [path for path in disk.folder_entries(folder / FOLDER) if path.name not in expected]
    live = {name.partition(".")[0] for name in _live(folder)} if there else set()
    for path in there:
        is_draft = path.suffix != _SUFFIX
        if path.name.partition(".")[0] not in live or (is_draft and disk.is_expired(path)):
            with suppress(OSError):  # who may not remove it may not write here either
                path.unlink()


@contextmanager
def open_index(store: Store, shard: str) -> Iterator[sqlite3.Connection]:
    path = index_file(store.folder, store.manifest, shard)
    try:
        yield _in_memory[path]
        return
    except KeyError:
        pass
    where = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(where, uri=True)) as connection:
        yield connection


def index_file(folder: Path, index: Manifest, shard: str) -> Path:
    """Return the path of a shard's index. A copy of a shard with other values has the same."""
    entry = index.shards[shard]
    content = [entry.tables[name].digest for name in TABLES]
    parts = [str(VERSION), *(content if all(content) else [shard]), *entry.gone]
    mark = hashlib.blake2b("|".join(parts).encode(), digest_size=16)
    return folder / FOLDER / f"{mark.hexdigest()}{_SUFFIX}"


def indexed_shards(store: Store) -> list[str]:
    """Return the shards with texts that are not damaged."""
    return [name for name in store.readable_shards(*TABLES) if store.manifest.shards[name].tables.keys() >= set(TABLES)]


def _files(store: Store) -> dict[str, Path]:
    return {name: index_file(store.folder, store.manifest, name) for name in indexed_shards(store)}


def _live(folder: Path) -> set[str]:
    index = manifest.load(folder)[0] or Manifest()
    whole = [name for name, entry in index.shards.items() if entry.tables.keys() >= set(TABLES)]
    return {index_file(folder, index, name).name for name in whole}


def _is_whole(path: Path) -> bool:
    """True for a file that is as long as its header says."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    page = int.from_bytes(head[16:18]) or 1
    return head.startswith(b"SQLite format 3\0") and size == (65536 if page == 1 else page) * int.from_bytes(
        head[28:32]
    )


def _written(folder: Path, shard: str, gone: Collection[str], path: Path) -> str:
    """Write the index of a shard, or say why that failed."""
    draft = path.with_name(f"{path.stem}.{os.getpid()}-{get_ident()}.tmp")
    try:
        private_files.make_folder(path.parent)
        draft.unlink(missing_ok=True)
        private_files.create(draft)
        with closing(_filled(str(draft), folder / SHARDS / shard, gone)):
            pass
        disk.flush([draft])
        draft.replace(path)
    except (OSError, sqlite3.Error) as problem:
        return f"{folder / FOLDER} can't be written: {getattr(problem, 'strerror', None) or problem}."
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return ""


def _filled(where: str, shard: Path, gone: Collection[str]) -> sqlite3.Connection:
    """Fill a database with the texts of a shard."""
    database = sqlite3.connect(where, check_same_thread=False)
    try:
        database.executescript(_TABLES)
    except sqlite3.OperationalError as problem:
        if "fts5" not in str(problem):
            raise
        raise StoreError(
            "This Python's SQLite has no full-text search (FTS5).", "Use another Python: most are built with it."
        ) from problem
    endings = lru_cache(_MOST_WORDS)(_endings)  # forgotten with the shard
    with database:
        for number, of_session in enumerate(passages(shard, gone)):
            if of_session:
                database.execute("INSERT INTO sessions VALUES (?, ?)", (number, of_session[0].session_id))
                database.executemany(
                    "INSERT INTO passages (rowid, text, parts, tool) VALUES (?, ?, ?, ?)",
                    (
                        (
                            passage_number(number, passage.kind, passage.seq),
                            space_unspaced_scripts(text),
                            " ".join(map(endings, set(_END.findall(text)))),
                            without_surrogates(passage.tool),
                        )
                        for passage in of_session
                        for text in [without_surrogates(passage.text)]
                    ),
                )
    return database


# Counting matches

_Answer = TypeVar("_Answer")
_AT_ONCE = 4
"""Shards that are searched in parallel: SQLite works without Python's lock."""
_COUNTED = f"""
SELECT session_id, at & 7, n FROM (
  SELECT at, count(*) AS n FROM (
    SELECT rowid >> {_SEQ_BITS} AS at FROM passages WHERE passages MATCH ? ORDER BY rowid
  ) GROUP BY at
) JOIN sessions ON number = at >> 3
"""  # noqa: S608  (numbers of ours)
_FIRST = f"""
SELECT rowid >> {_SEQ_BITS} & 7, rowid & {(1 << _SEQ_BITS) - 1} FROM passages
WHERE passages MATCH ? AND rowid >= ? << {_PASSAGE_BITS} AND rowid < (? + 1) << {_PASSAGE_BITS} ORDER BY rowid
"""  # noqa: S608  (numbers of ours)


def count_passages(store: Store, expression: str, shards: Collection[str]) -> dict[str, Counter[str]]:
    """Count matching passages of each kind by session. `shards`: those with an index."""

    def of_shard(shard: str) -> list[tuple[str, int, int]]:
        return _asked(store, shard, lambda database: database.execute(_COUNTED, (expression,)).fetchall())

    by_session: dict[str, Counter[str]] = defaultdict(Counter)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for rows in pool.map(of_shard, shards):
            for session_id, kind, n in rows:
                by_session[session_id][KINDS[kind]] += n
    return by_session


def first_passages(
    store: Store, expression: str, sessions: Collection[str], kinds: Collection[str], most: int
) -> dict[str, list[tuple[str, int]]]:
    """Return the first matching passages (kind and event) of these sessions, the most telling kinds first."""
    by_shard: dict[str, list[str]] = defaultdict(list)
    for session_id in sessions:
        by_shard[store.manifest.sessions[session_id].shard].append(session_id)
    chosen = {KINDS.index(kind) for kind in kinds}

    def of_shard(ids: list[str], database: sqlite3.Connection) -> dict[str, list[tuple[str, int]]]:
        hits: dict[str, list[tuple[str, int]]] = {}
        for session_id in ids:
            number = database.execute("SELECT number FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
            rows = database.execute(_FIRST, (expression, *number, *number)) if number else ()
            of_it = ((KINDS[kind], seq) for kind, seq in rows if kind in chosen)
            hits[session_id] = [hit for hit, _ in zip(of_it, range(most), strict=False)]
        return hits

    of_all: dict[str, list[tuple[str, int]]] = {session_id: [] for session_id in sessions}
    for shard, ids in by_shard.items():
        of_all |= _asked(store, shard, partial(of_shard, ids))
    return of_all


def _asked(store: Store, shard: str, ask: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
    """Query a shard's index; it is built again where it is damaged, or was removed meanwhile."""
    try:
        with open_index(store, shard) as database:
            return ask(database)
    except sqlite3.DatabaseError:
        path = index_file(store.folder, store.manifest, shard)
        _in_memory.pop(path, None)
        with suppress(OSError):
            path.unlink(missing_ok=True)
    build(store)
    try:
        with open_index(store, shard) as database:
            return ask(database)
    except sqlite3.DatabaseError as problem:
        raise StoreError(
            f"The search index of the store {store.folder} can't be read: {problem}.",
            f"Remove {store.folder / FOLDER}; it is built again.",
        ) from problem


# Parsing questions

MOST_TERMS = 24
"""Words of one question: more are those of a pasted text, and each costs a look-up."""
MOST_CHARS = 2_000
SHORTEST_BEGINNING = 3
"""Letters from which a word also matches what begins with it: nearly everything begins with one or two."""
SHORTEST_STARRED = 2
"""Letters of a word with `*`: in 5,000 sessions, matching what begins with one letter takes seconds."""
FIELDS = ("kind", "tool", "agent", "repo", "session", "context")
# Only a word of three letters is left out: `--no-verify`, `-m` and `-rf` are looked for.
_PARTS = re.compile(rf'((?<!\S)-(?="|[^\W_]{{3}}))?(?:({"|".join(FIELDS)}):(?=\S))?("[^"]*"?\*?|\S+)', re.IGNORECASE)
_NAMES = {**{kind: kind for kind in KINDS}, **{f"{kind}s": kind for kind in KINDS}, "replies": "reply"}
_CONTROL = re.compile("[\x00-\x1f\x7f]")


class Term(Struct, frozen=True):
    """Words in this order, next to each other."""

    text: str
    is_beginning: bool
    """True where the last word may go on."""

    def matched(self) -> str:
        """Return it in FTS5's language, where a quoted string holds nothing but itself."""
        quoted = space_unspaced_scripts(self.text).replace('"', '""')
        return f'"{quoted}"{"*" if self.is_beginning else ""}'


class Filter(Struct, frozen=True):
    """A condition on the session or the tool."""

    field: str
    value: str
    is_excluded: bool


class Question(Struct):
    """A parsed search: all `terms` in one passage, and none of those `without`."""

    terms: list[Term]
    without: list[Term]
    kinds: frozenset[str]
    """Kinds of passages that count."""
    filters: list[Filter]
    notes: list[str]
    """Parts that could not be used as they were typed."""

    @property
    def expression(self) -> str:
        """FTS5 expression; empty where it asks for nothing."""
        tools = [f for f in self.filters if f.field == "tool"]
        wanted = [f"{{text parts}} : ({' AND '.join(term.matched() for term in self.terms)})"] if self.terms else []
        wanted += [_of_tool(f) for f in tools if not f.is_excluded]
        unwanted = [f"{{text parts}} : ({term.matched()})" for term in self.without]
        unwanted += [_of_tool(f) for f in tools if f.is_excluded]
        if not wanted:
            return ""
        return f"({' AND '.join(wanted)})" + (f" NOT ({' OR '.join(unwanted)})" if unwanted else "")


def parse_question(text: str) -> Question:
    """Parse words, `"phrases"`, `beginnings*`, `-without`, and conditions (`kind:` and the other FIELDS). Nothing that
    can be typed is an error."""
    asked = Question([], [], frozenset(KINDS), [], [])
    wanted: set[str] = set()
    unwanted: set[str] = set()
    if len(text) > MOST_CHARS:
        asked.notes.append(f"Only the first {MOST_CHARS:,} characters were looked for.")
    for minus, field_name, value in _PARTS.findall(without_surrogates(_CONTROL.sub(" ", text[:MOST_CHARS]))):
        in_field = field_name.lower()
        if in_field == "kind":
            named = {name for name in re.split(r"[,|]", value.strip('"').lower()) if name}
            if named and _NAMES.keys() >= named:
                (unwanted if minus else wanted).update(_NAMES[name] for name in named)
                continue
            asked.notes.append(f"kind:{value} is none of {', '.join(KINDS)}; it was looked for as words.")
        if in_field in FIELDS[1:]:
            if _has_letters(value):
                asked.filters.append(Filter(in_field, value.strip('"*'), bool(minus)))
        elif (term := _term(f"kind {value}" if in_field else value)) and term not in (
            terms := asked.without if minus else asked.terms
        ):
            terms.append(term)
            if value.endswith("*") and not term.is_beginning:
                asked.notes.append(f"{value} was looked for as a whole word: a beginning has two letters or more.")
    if len(asked.terms) + len(asked.without) > MOST_TERMS:
        asked.notes.append(f"Only the first {MOST_TERMS} words were looked for.")
        asked.terms = asked.terms[:MOST_TERMS]
        asked.without = asked.without[: MOST_TERMS - len(asked.terms)]
    asked.kinds = frozenset(wanted or KINDS) - unwanted
    return asked


def _term(value: str) -> Term | None:
    if not _has_letters(value):
        return None
    words = value.replace('"', " ").rstrip("*").strip()
    is_phrase = value.startswith('"') and not value.endswith("*")
    last = re.split(r"[\W_]+", words.rstrip("".join(c for c in set(words) if not c.isalnum())))[-1]
    shortest = SHORTEST_STARRED if value.endswith("*") else SHORTEST_BEGINNING
    return Term(words, not is_phrase and (len(last) >= shortest or not last.isascii()))


def _has_letters(value: str) -> bool:
    return any(c.isalnum() for c in value)


def _of_tool(condition: Filter) -> str:
    quoted = condition.value.replace('"', '""')
    return f'{{tool}} : (^"{quoted}"*)'


# Excerpts

BEFORE_CHARS, EXCERPT_CHARS = 70, 260
"""Characters shown before the first match, and in all: two lines of the page."""
_MOST_MATCHES = 400
_BETWEEN = re.compile(r"[\W_]+")


def excerpt(text: str, terms: Sequence[Term]) -> tuple[str, list[tuple[int, int]]]:
    """Return the part of a text, on one line, with most of these words, and where they are in it; the beginning where
    none is found."""
    matches = _matches(text, terms)
    most, best = 0, 0  # where the part begins that holds most of the terms, the first of several
    for n, (begin, _, _) in enumerate(matches):
        inside = {term for at, _, term in matches[n : n + 50] if at - begin < EXCERPT_CHARS - BEFORE_CHARS}
        if len(inside) > most:
            most, best = len(inside), begin
    start = max(0, best - BEFORE_CHARS)
    if start:
        gap = re.compile(r"\s").search(text, start, start + BEFORE_CHARS // 2)
        start = gap.end() if gap else start
    end = min(len(text), start + EXCERPT_CHARS)
    shown = "".join(" " if c.isspace() else c for c in text[start:end])
    lead, tail = "… " if start else "", " …" if end < len(text) else ""
    marks: list[tuple[int, int]] = []
    for begin, stop, _ in matches:
        if begin < end and stop > start:
            mark = max(begin, start) - start + len(lead), min(stop, end) - start + len(lead)
            if marks and mark[0] <= marks[-1][1]:
                marks[-1] = marks[-1][0], max(mark[1], marks[-1][1])
            else:
                marks.append(mark)
    return f"{lead}{shown}{tail}", marks


def _matches(text: str, terms: Sequence[Term]) -> list[tuple[int, int, int]]:
    """Start, end and index of the term of each match, in order."""
    plain = _plain(text)
    matches: list[tuple[int, int, int]] = []
    for n, term in enumerate(terms):
        words = [re.escape(word) for word in _BETWEEN.split(_plain(term.text)) if word]
        end = r"[^\W_]*" if term.is_beginning else r"(?![^\W_])"
        for match in re.finditer(r"[\W_]+".join(words) + end, plain):
            at = match.start()
            if at and text[at - 1].isalnum():
                # Inside a word only where a part of an identifier begins, or a word of a script without spaces.
                before, here, after = text[at - 1], text[at], text[at + 1 : at + 2]
                if here.isascii() and not (here.isupper() and (before.islower() or after.islower())):
                    continue
            matches.append((at, match.end(), n))
            if len(matches) >= _MOST_MATCHES * (n + 1):
                break
    return sorted(matches)


def _plain(text: str) -> str:
    """Lower case without accents, each character in its place."""
    if text.isascii():
        return text.lower()
    bases = ((c, unicodedata.normalize("NFD", c)[0].lower()) for c in text)
    return "".join(base if len(base) == 1 else c for c, base in bases)


# Results

_CONDITIONS = {
    "agent": "starts_with(lower(agent), lower({}))",
    "repo": "contains(lower(concat_ws(' ', repo, cwd)), lower({}))",
    "session": "starts_with(session_id, {})",
    "context": "context = lower({})",
}
_FACTS = """
SELECT session_id, title, agent, model, coalesce(repo, cwd) AS place, context, started_at, ended_at,
  format, parent_session_id
FROM read_parquet($files) WHERE session_id IN (SELECT unnest($ids))
"""
_EVENT_TEXTS = """
SELECT session_id, seq, text, timestamp FROM read_parquet($files)
WHERE session_id IN (SELECT unnest($ids)) AND seq IN (SELECT unnest($seqs))
"""
_CALL_TEXTS = """
SELECT session_id, seq, result_seq, name, path, command, arguments FROM read_parquet($files)
WHERE session_id IN (SELECT unnest($ids)) AND (seq IN (SELECT unnest($seqs)) OR result_seq IN (SELECT unnest($seqs)))
"""
_PROMPTS = """
SELECT session_id, left(arg_min(text, turn), 300) AS prompt FROM read_parquet($files)
WHERE session_id IN (SELECT unnest($ids)) AND kind IN ('prompt', 'queued_prompt') GROUP BY session_id
"""
_newest: dict[tuple[str, ...], list[str]] = {}
"""Sessions of the last store that was searched without conditions, by its files, which never change."""
Place = tuple[str, int]
"""Kind of passage and its event."""


class Hit(Struct, kw_only=True):
    """A matching passage, as the part that shows why."""

    seq: int
    """Event of the passage."""
    kind: str
    tool: str | None
    timestamp: datetime | None
    text: str
    """Two lines of it at most."""
    marks: list[tuple[int, int]]
    """Positions of the words in `text`."""


class SessionHits(Struct, kw_only=True):
    """A session with matching passages."""

    session_id: str
    title: str | None
    prompt: str | None
    """Beginning of the first prompt."""
    agent: str | None
    model: str | None
    place: str | None
    """Repository, or else the folder."""
    context: str
    started_at: datetime | None
    ended_at: datetime | None
    format: str
    parent_session_id: str | None
    n: int = 0
    """Number of matching passages."""
    by_kind: dict[str, int] = {}
    hits: list[Hit] = []
    """First matching passages, the most telling kinds first."""


class Tables:
    """Tables of a store as one search reads them."""

    def __init__(self, store: Store) -> None:
        from agentsignals.store.query import connect  # noqa: PLC0415  (DuckDB is loaded when asked)

        self.store = store
        self._connection = connect(store)

    def rows(self, sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        """Return rows of a query of ours; `values` are bound."""
        from agentsignals.store.query import ask  # noqa: PLC0415  (as above)

        return ask(self._connection, sql, values)

    def of_sessions(self, table: str, sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        """Query only the `files` of a table with the sessions `ids`: a third of the time of all."""
        shards = {self.store.manifest.sessions[session_id].shard for session_id in values["ids"]}
        gone = {session_id for shard in shards for session_id in self.store.manifest.shards[shard].gone}
        if not gone.isdisjoint(values["ids"]):  # they left one of these shards for another
            return self.rows(sql.replace("read_parquet($files)", table), values)
        files = [str(path) for path in self.store.files(table) if path.parent.name in shards]
        return self.rows(sql, {**values, "files": files})


def matching_sessions(tables: Tables, filters: Sequence[Filter]) -> list[str]:
    """Return the sessions that fit these conditions, the last active first."""
    gone = (f"{name}:{entry.gone}" for name, entry in tables.store.manifest.shards.items() if entry.gone)
    state = (*map(str, tables.store.files("sessions")), *gone)
    asked_before = _newest.get(state)
    if asked_before is not None and not any(f.field in _CONDITIONS for f in filters):
        return asked_before
    conditions, values = ["true"], {}
    for n, asked in enumerate(f for f in filters if f.field in _CONDITIONS):
        condition = f"coalesce({_CONDITIONS[asked.field].format(f'$v{n}')}, false)"
        conditions.append(f"NOT {condition}" if asked.is_excluded else condition)
        values[f"v{n}"] = asked.value
    order = "ORDER BY coalesce(ended_at, started_at) DESC NULLS LAST, session_id"
    sql = f"SELECT session_id FROM sessions WHERE {' AND '.join(conditions)} {order}"  # noqa: S608  (values are bound)
    ids = [row["session_id"] for row in tables.rows(sql, values)]
    if not values:
        _newest.clear()
        _newest[state] = ids
    return ids


def with_excerpts(tables: Tables, question: Question, places: dict[str, list[Place]]) -> list[SessionHits]:
    """Return these sessions with excerpts of their passages, in this order."""
    if not places:
        return []
    ids = list(places)
    which = {"ids": ids, "seqs": sorted({seq for of_it in places.values() for _, seq in of_it})}
    events = {(row["session_id"], row["seq"]): row for row in tables.of_sessions("events", _EVENT_TEXTS, which)}
    calls = {
        (row["session_id"], row[seq]): row
        for row in tables.of_sessions("tool_calls", _CALL_TEXTS, which)
        for seq in ("result_seq", "seq")
    }
    prompts = {row["session_id"]: row["prompt"] for row in tables.of_sessions("turns", _PROMPTS, {"ids": ids})}
    facts = {
        row["session_id"]: SessionHits(**row, prompt=prompts.get(row["session_id"]))
        for row in tables.of_sessions("sessions", _FACTS, {"ids": ids})
    }
    for session_id, session in facts.items():
        for kind, seq in places[session_id]:
            event, call = events.get((session_id, seq), {}), calls.get((session_id, seq))
            passage = session.title if kind == "title" else event.get("text")
            if call is not None and kind in ("command", "path"):
                passage = call_texts(call["path"], call["command"], call["arguments"])[kind]
            shown, marks = excerpt(passage or "", question.terms)
            tool = call["name"] if call is not None and kind in ("command", "path", "result") else None
            hit = Hit(seq=seq, kind=kind, tool=tool, timestamp=event.get("timestamp"), text=shown, marks=marks)
            session.hits.append(hit)
    return [facts[session_id] for session_id in ids if session_id in facts]


Order = Literal["newest", "most"]
"""Last active sessions first, or those with the most passages."""


class Results(Struct, kw_only=True):
    """Results of a search."""

    text: str
    n_sessions: int = 0
    n_passages: int = 0
    is_lower_bound: bool = False
    """True where part of the store was not searched: there may be more."""
    by_kind: dict[str, int] = field(default_factory=dict)
    """Matching passages of each kind, also of kinds that were not asked for."""
    sessions: list[SessionHits] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Remarks on the question or the answer, in words."""


def without_secrets(results: Results) -> Results:
    """Redact titles, prompts and passages, which are parts of texts. Marks of masked words are dropped."""
    from agentsignals.redaction import redacted, redacted_part  # noqa: PLC0415  (50 ms of patterns)

    for session in results.sessions:
        session.title = session.title and redacted_part(session.title)
        session.prompt = session.prompt and redacted_part(session.prompt)
        session.model, session.place = (text and redacted(text) for text in (session.model, session.place))
        for hit in session.hits:
            before, hit.text = hit.text, redacted_part(hit.text)
            hit.tool = hit.tool and redacted(hit.tool)
            marks, end = hit.marks, 0
            hit.marks = []
            for word in (before[slice(*mark)] for mark in marks):
                if (start := hit.text.find(word, end)) >= 0:
                    end = start + len(word)
                    hit.marks.append((start, end))
    return results


def search(  # noqa: PLR0913  (the options of the verb)
    store: Store,
    text: str,
    *,
    kinds: Collection[str] = (),
    among: Collection[str] | None = None,
    order: Order = "newest",
    limit: int = 20,
    start: int = 0,
    most_hits: int = 3,
    complete: bool = True,
    progress: Progress = lambda *_: None,
) -> Results:
    """Find the sessions in which one passage holds all the words of `text`, in any case, as a beginning or as a part of
    CamelCase.

    `"several words"` match next to each other, `-word` must not be in the passage; `kind:`, `tool:`, `agent:`, `repo:`,
    `session:` and `context:` restrict it. Nothing that can be typed is an error.

    `kinds`: of passages (`fulltext.KINDS`); `among`: ids of sessions; `most_hits`: passages shown of a session. What of
    the index is missing is built first or, unless `complete`, left out. UsageError for another kind or order;
    StoreError or QueryError where the store can't be read.
    """
    if wrong := sorted(set(kinds) - set(KINDS)):
        raise UsageError(f"{wrong[0]!r} is not a kind of passage.", f"Use one of: {', '.join(KINDS)}.")
    if order not in get_args(Order):
        raise UsageError(f"{order!r} is not a sort order.", f"Use one of: {', '.join(get_args(Order))}.")
    if min(limit, start, most_hits) < 0:
        raise UsageError("The number of sessions or passages to list is negative.", "Give 0 or more.")
    store.refresh()
    question = parse_question(text)
    results = Results(text=text, notes=question.notes)
    if not question.expression:
        results.notes.append("Name a word to look for, with a letter or a digit in it.")
        return results
    if complete and (why := build(store, progress)):
        results.notes.append(f"{why} The index is in memory, and made again by the next program that searches.")
    waiting = set(missing_shards(store))
    results.is_lower_bound = bool(waiting)
    passages = count_passages(
        store, question.expression, [name for name in indexed_shards(store) if name not in waiting]
    )
    tables = Tables(store)
    may = [i for i in matching_sessions(tables, question.filters) if i in passages and (among is None or i in among)]
    chosen = question.kinds & frozenset(kinds or KINDS)
    fit = {i: n for i in may if (n := sum(passages[i][kind] for kind in chosen))}
    ids = sorted(fit, key=lambda i: -fit[i]) if order == "most" else list(fit)
    results.n_sessions, results.n_passages = len(fit), sum(fit.values())
    results.by_kind = {kind: n for kind in KINDS if (n := sum(passages[i][kind] for i in may))}
    shown = ids[start : start + limit]
    results.sessions = with_excerpts(
        tables, question, first_passages(store, question.expression, shown, chosen, most_hits)
    )
    for session in results.sessions:
        of_it = passages[session.session_id]
        session.n, session.by_kind = fit[session.session_id], {kind: of_it[kind] for kind in KINDS if of_it[kind]}
    return results
