"""Where bytes come from. A source knows no format, only where agents keep their files: it lists files, says what
each looked like, and reads them.

To add one: a module with a `SOURCE = Source(...)`. The first source that accepts a specification opens it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import AgentSignalsError, SourceError
from agentsignals.formats import homes
from agentsignals.model.registry import Registry


class RawFile(Struct, frozen=True, kw_only=True):
    """A file as found: enough to read it again, from any process."""

    uri: str
    """Names the file for good; the artifact's path in the store."""
    source: str
    """The name of the source that reads it."""
    spec: str
    """What the person asked for."""
    bytes: int
    stamp: int | None
    """Modification time in nanoseconds; None when the address itself names the content (a Git blob)."""
    container: str = ""
    """What holds it: a repository's path, a database's uri; nothing for a plain file."""
    key: str = ""
    """Its name in the container: a blob id, a path, a session's id."""
    session_hint: str | None = None
    repo_hint: str | None = None


class Unreadable(Struct, frozen=True):
    """A file that is there and can't be read, or should be there and isn't: counted, never fatal."""

    uri: str
    spec: str
    reason: str
    detail: str = ""
    """What is to be known beyond the reason: the error of a source that stumbled, how much was not read."""
    part: bytes = b""
    """What of it could be read, where that is not nothing."""


def stumbled(uri: str, spec: str, problem: Exception) -> Unreadable:
    """A file on which a source failed as it never should: the error is kept, so that it is seen."""
    return Unreadable(uri, spec, "internal_error", error_text(problem))


def error_text(problem: BaseException) -> str:
    """An error on one line, as it can be stored and shown."""
    return sound(" ".join(f"{type(problem).__name__}: {problem}".split()))[:300]


def sound(text: str) -> str:
    """Text that any file can hold: half a surrogate pair, or a byte of a name that is no UTF-8, becomes `\\xff`."""
    return text if text.isascii() else _SURROGATE.sub(_escaped, text)


def uri_of(path: str) -> str:
    """The uri of an absolute path: the path itself where it is UTF-8, else escaped, with `//` before the last name.

    No absolute path holds `//`, so no file can be taken for another; `path_of` turns it back.
    """
    if path.isascii() or _SURROGATE.search(path) is None:
        return path
    folder, _, name = path.replace("\\", "\\\\").rpartition("/")
    return f"{sound(folder)}//{sound(name)}"


def row_uri(uri: str, key: str) -> str | None:
    """The uri of what a database holds under that name, by the database's: `/home/me/opencode.db///ses_1`. None for a
    name that no file and no terminal can hold."""
    return f"{uri}{_IN_DATABASE}{key}" if 0 < len(key) <= _MOST_KEY_CHARS and key.isprintable() else None


def key_of(uri: str) -> str | None:
    """The name in its database that a `row_uri` ends with; None for a file's."""
    return uri.partition(_IN_DATABASE)[2] or None


def path_of(uri: str) -> str:
    """The path that a `uri_of` stands for; of a `row_uri` that of the database."""
    if "//" not in uri[1:]:
        return uri
    uri = uri.partition(_IN_DATABASE)[0]
    if "//" not in uri[1:]:
        return uri
    folder, _, name = uri.rpartition("//")
    return _ESCAPE.sub(_unescaped, f"{folder}/{name}")


_IN_DATABASE, _MOST_KEY_CHARS = "///", 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|x([0-9a-f]{2}))")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _unescaped(match: re.Match[str]) -> str:
    return chr(0xDC00 + int(match[1], 16)) if match[1] else "\\"


class Source(Struct, frozen=True):
    """A kind of place."""

    name: str
    accepts: Callable[[str], bool]
    find: Callable[[str], Iterator[RawFile | Unreadable]]
    read: Callable[[list[RawFile], int | None], Iterator[bytes | Unreadable]]
    """The bytes of files of this source, in order; of each at most so many when a number is given."""
    expect: Callable[[list[RawFile]], None] = lambda _: None
    """Hears which files will be read whole next, in their order: one that comes from far may be fetched meanwhile."""


SOURCES = Registry[Source]("source", "agentsignals.sources", "SOURCE", lambda unit: isinstance(unit, Source))


@cache
def by_name(name: str) -> Source:
    """The source of that name."""
    return SOURCES.inside[name].load() if name in SOURCES.inside else SOURCES.get(name)


def _in_turn() -> Iterator[Source]:
    """Paths first, which need no other source; those of other packages last: they are looked for only then."""
    yield from map(by_name, sorted(SOURCES.inside, key=lambda name: name != "local"))
    yield from (source for name, source in SOURCES.all().items() if name not in SOURCES.inside)


def open_source(spec: str) -> Iterator[RawFile | Unreadable]:
    """The files of a specification: a path, an agent, `git:…`, `hub:…`, `s3:…`. SourceError when nothing accepts it."""
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
    """What a source lists; where it fails midway the rest of this specification is counted, not the run ended."""
    try:
        for file in files:
            yield _sound(file)
    except AgentSignalsError:
        raise
    except Exception as problem:  # noqa: BLE001  (kept by name and shown: whatever it is, the other sources are read)
        yield stumbled(sound(spec), sound(spec), problem)


def _sound(file: RawFile | Unreadable) -> RawFile | Unreadable:
    if isinstance(file, Unreadable):
        return replace(file, uri=sound(file.uri), spec=sound(file.spec))
    if file.spec.isascii() and (file.session_hint or "").isascii() and (file.repo_hint or "").isascii():
        return file
    hints = [None if hint is None else sound(hint) for hint in (file.session_hint, file.repo_hint)]
    return replace(file, spec=sound(file.spec), session_hint=hints[0], repo_hint=hints[1])


def expect(files: list[RawFile]) -> None:
    """Says to their sources which files will be read whole next, in this order."""
    for name in dict.fromkeys(f.source for f in files):
        by_name(name).expect([f for f in files if f.source == name])


def read(files: list[RawFile], limit: int | None = None) -> Iterator[bytes | Unreadable]:
    """The bytes of files of one source, in order. A file on which the source fails costs itself alone."""
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
            yield stumbled(files[at - 1].uri, files[at - 1].spec, problem)


# Lists of what to leave out: data sets, repositories and sessions, one a line.


def read_exclusions(path: str) -> frozenset[str]:
    """The names in a list; what follows a `#` at the start of a line or after a space is a remark. SourceError when
    the file can't be read.
    """
    try:
        lines = Path(path).expanduser().read_text("utf-8", "replace").splitlines()
    except OSError as problem:
        raise SourceError(
            f"{path!r} can't be read: {problem.strerror}.", "Name a text file, one name a line."
        ) from None
    entries = (f" {line}".split(" #", 1)[0].strip() for line in lines)
    return frozenset(name for line in entries if line for name in (line, place(line)))


def place(spec: str) -> str:
    """The data set that `hub:OWNER/NAME@REVISION#PATTERN` names, as OWNER/NAME; anything else as it is."""
    if not spec.startswith("hub:"):
        return spec
    return spec.removeprefix("hub:").partition("#")[0].partition("@")[0]
