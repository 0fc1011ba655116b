"""Sources list the files of a place and read their bytes. A source knows no format.

To add one: a module with a `SOURCE = Source(...)`. The first source that accepts a specification opens it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import AgentSignalsError, SourceError, is_out_of_memory
from agentsignals.formats import homes
from agentsignals.model.registry import Registry


class RawFile(Struct, frozen=True, kw_only=True):
    """A listed file, with all that any process needs to read it."""

    uri: str
    """Permanent name of the file: the artifact's path in the store."""
    source: str
    """Name of the source that reads it."""
    spec: str
    """The specification that the person gave."""
    bytes: int
    stamp: int | None
    """Modification time in nanoseconds. None if the address itself names the content, as a Git blob's does."""
    container: str = ""
    """The path of its repository or the uri of its database; empty for a plain file."""
    key: str = ""
    """Its name in the container: a blob id, a path, a session's id."""
    session_hint: str | None = None
    repo_hint: str | None = None


class Unreadable(Struct, frozen=True):
    """A file that exists and can't be read, or should exist and doesn't. It is counted, and never ends a run."""

    uri: str
    spec: str
    reason: str
    detail: str = ""
    """More than the reason says: the error of a source that failed, or how much was not read."""
    part: bytes = b""
    """The bytes that could be read."""


def internal_error(uri: str, spec: str, problem: Exception) -> Unreadable:
    """Count a file on which a source failed by a defect, or for want of memory, with the error's text."""
    why = error_text(problem)
    return Unreadable(uri, spec, reason_of(why), why)


OUT_OF_MEMORY = "out of memory"
"""Words in the text of an error that is no defect: there was too little memory."""


def error_text(problem: BaseException) -> str:
    """Return an error as one line that can be stored and shown."""
    text = storable_text(" ".join(f"{type(problem).__name__}: {problem}".split()))[:300]
    return f"{OUT_OF_MEMORY}: {text}" if is_out_of_memory(problem) else text


def reason_of(error: str) -> str:
    """Return the reason to skip a file over which an error came, given as `error_text`."""
    return "out_of_memory" if error.startswith(OUT_OF_MEMORY) else "internal_error"


def storable_text(text: str) -> str:
    """Escape lone surrogates, so that any file can hold the text. A byte of a name that is not UTF-8 becomes
    `\\xff`."""
    return text if text.isascii() else _SURROGATE.sub(_escaped, text)


def uri_of(path: str) -> str:
    """Return the uri of an absolute path: the path itself if it is UTF-8, else escaped, with `//` before the last name.

    No absolute path holds `//`, so no two files share a uri. `path_of` is the inverse.
    """
    if path.isascii() or _SURROGATE.search(path) is None:
        return path
    folder, _, name = path.replace("\\", "\\\\").rpartition("/")
    return f"{storable_text(folder)}//{storable_text(name)}"


def row_uri(uri: str, key: str) -> str | None:
    """Return the uri of a session in a database, such as `/home/me/opencode.db///ses_1`. None if no file or terminal
    can hold the key."""
    return f"{uri}{_IN_DATABASE}{key}" if 0 < len(key) <= _MOST_KEY_CHARS and key.isprintable() else None


def key_of(uri: str) -> str | None:
    """Return the key that a `row_uri` ends with, or None for a file's uri."""
    return uri.partition(_IN_DATABASE)[2] or None


def path_of(uri: str) -> str:
    """Return the path of a `uri_of`, or of a `row_uri`'s database."""
    if "//" not in uri[1:]:
        return uri
    uri = uri.partition(_IN_DATABASE)[0]
    if "//" not in uri[1:]:
        return uri
    folder, _, name = uri.rpartition("//")
    return _ESCAPE.sub(lambda m: chr(0xDC00 + int(m[1], 16)) if m[1] else "\\", f"{folder}/{name}")


_IN_DATABASE, _MOST_KEY_CHARS = "///", 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|x([0-9a-f]{2}))")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


class Source(Struct, frozen=True):
    """A kind of place that files are read from."""

    name: str
    accepts: Callable[[str], bool]
    find: Callable[[str], Iterator[RawFile | Unreadable]]
    read: Callable[[list[RawFile], int | None], Iterator[bytes | Unreadable]]
    """Return the bytes of files of this source in order, at most so many of each if a number is given."""
    expect: Callable[[list[RawFile]], None] = lambda _: None
    """Announce the files that will be read whole next, in order, so that a remote source can fetch them ahead."""


SOURCES = Registry[Source]("source", "agentsignals.sources", "SOURCE", lambda unit: isinstance(unit, Source))


@cache
def by_name(name: str) -> Source:
    """Return the source of that name."""
    return SOURCES.inside[name].load() if name in SOURCES.inside else SOURCES.get(name)


def _in_turn() -> Iterator[Source]:
    """Yield paths first, which need no other source, and sources of other packages last, which are only then loaded."""
    yield from map(by_name, sorted(SOURCES.inside, key=lambda name: name != "local"))
    yield from (source for name, source in SOURCES.all().items() if name not in SOURCES.inside)


def open_source(spec: str) -> Iterator[RawFile | Unreadable]:
    """List the files of a specification: a path, an agent, `git:…`, `hub:…`, `s3:…`. SourceError if no source accepts
    it."""
    for source in _in_turn():
        if _accepts(source, spec):
            return _listed(source.find(spec), spec)
    raise SourceError(
        f"Nothing is found under {spec!r}: no such file, folder or agent, and no address this version opens.",
        f"Name a file, a folder, {', '.join(homes())}, git:PATH_OR_URL[#REF], hub:OWNER/NAME, or s3://BUCKET/PREFIX.",
    )


def _accepts(source: Source, spec: str) -> bool:
    try:
        return source.accepts(spec)
    except Exception as problem:  # (another package's; it is named, and the other sources are asked)
        if source.name in SOURCES.inside:
            raise
        SOURCES.leave_out(SOURCES.places[source.name], f"asked for {spec!r}: {error_text(problem)}")
        return False


def _listed(files: Iterator[RawFile | Unreadable], spec: str) -> Iterator[RawFile | Unreadable]:
    """List a source's files. If it fails midway, the rest of this specification is counted and the run goes on."""
    try:
        for file in files:
            yield _sound(file)
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (kept by name and shown: whatever it is, the other sources are read)
        yield internal_error(storable_text(spec), storable_text(spec), problem)


def _sound(file: RawFile | Unreadable) -> RawFile | Unreadable:
    if isinstance(file, Unreadable):
        return replace(file, uri=storable_text(file.uri), spec=storable_text(file.spec))
    if file.spec.isascii() and (file.session_hint or "").isascii() and (file.repo_hint or "").isascii():
        return file
    hints = [None if hint is None else storable_text(hint) for hint in (file.session_hint, file.repo_hint)]
    return replace(file, spec=storable_text(file.spec), session_hint=hints[0], repo_hint=hints[1])


def expect(files: list[RawFile]) -> None:
    """Announce to their sources the files that will be read whole next, in this order."""
    for name in dict.fromkeys(f.source for f in files):
        by_name(name).expect([f for f in files if f.source == name])


def read(files: list[RawFile], limit: int | None = None) -> Iterator[bytes | Unreadable]:
    """Return the bytes of files of one source, in order. A file on which the source fails costs only itself."""
    at = 0
    while at < len(files):
        try:
            for data in by_name(files[0].source).read(files[at:], limit):
                at += 1
                yield data
            return
        except AgentSignalsError:
            raise
        except Exception as problem:  # noqa: BLE001  (kept by name and shown: whatever it is, the others are read)
            at += 1
            yield internal_error(files[at - 1].uri, files[at - 1].spec, problem)


def read_exclusions(path: str) -> frozenset[str]:
    """Read a list of data sets, repositories and sessions to leave out, one name a line. `#` begins a remark.
    SourceError if the file can't be read."""
    try:
        lines = Path(path).expanduser().read_text("utf-8", "replace").splitlines()
    except OSError as problem:
        raise SourceError(
            f"{path!r} can't be read: {problem.strerror}.", "Name a text file, one name a line."
        ) from None
    entries = (f" {line}".split(" #", 1)[0].strip() for line in lines)
    return frozenset(name for line in entries if line for name in (line, dataset_name(line)))


def dataset_name(spec: str) -> str:
    """Return OWNER/NAME of `hub:OWNER/NAME@REVISION#PATTERN`, and anything else unchanged."""
    return spec[4:].partition("#")[0].partition("@")[0] if spec.startswith("hub:") else spec
