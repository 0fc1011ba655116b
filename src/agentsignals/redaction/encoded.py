"""Finds secrets in other encodings: base64, base32, base85, hex, compressed data, characters one by one, and characters
escaped for URLs, JSON, HTML, mails and programs.

Decoded text is searched like any other text, up to three encodings deep. Of base64 and hex the whole value is masked,
of escapes the part that holds the secret.
"""

from __future__ import annotations

import re
import string
import zlib
from base64 import a85decode, b32decode, b64decode, b85decode
from bisect import bisect_right
from collections.abc import Callable, Iterator
from html.entities import html5
from itertools import chain

from agentsignals.model.lazy import deferred_pattern
from agentsignals.redaction.values import LongRuns, Span

DEEPEST = 3
"""Nested encodings that are undone."""
Look = Callable[[str, int], list[Span]]
"""Return the spans to mask in a text, given how many nested encodings may still be undone."""

_AROUND = 160
"""Characters around an escape that are read with it."""
_ENTITIES = {n: c for n, c in html5.items() if n[-1] == ";" and c.isascii() and c.isprintable()}
_BYTE = "[2-7][0-9A-Fa-f]|0[9AaDd]"
_ESCAPE = deferred_pattern(
    rf"[%\\&](?:(?<=%)(?:25)*(?:u00)?(?P<percent>{_BYTE})"
    rf"|(?<=\\)\\{{0,3}}(?:(?:u00|x|U0{{6}})(?P<number>{_BYTE})|u\{{0{{0,4}}(?P<braced>[2-7][0-9A-Fa-f])\}}|(?P<slash>/)"
    r"|0?(?P<octal>01[125]|0[4-7][0-7]|1[0-7]{2}))"
    r"|(?<=&)(?:#0{0,5}(?P<decimal>\d{2,3});?|#[xX]0{0,5}(?P<hex>[2-7][0-9A-Fa-f]);?"
    rf"|(?P<entity>(?:{'|'.join(n[:-1] for n in _ENTITIES)});)))"
)
_GROUP = "[CI-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
_BASE64 = deferred_pattern(f"{_GROUP}(?:{_GROUP}){{3,}}")  # the first apart: `re` looks for its letters faster
"""Groups of four that encode three ASCII characters. One in eleven random groups does."""
_UTF16 = deferred_pattern(r"(?:[A-Za-z0-9+/_-][AQgw][AB][A-Za-z0-9+/_-]A[A-H][AEIMQUYcgkosw048]A){4,}")
"""Groups of eight that encode three ASCII characters of UTF-16, as in commands for Windows shells."""
_PACKED = (
    "H4sI",
    "eJ",
    *(f"{head}{n}" for head, last in (("eN", "opqr"), ("eA", "EFGH"), ("eF", "4567")) for n in last),
)
"""Base64 prefixes of gzip and zlib data (RFC 1952, RFC 1950)."""
_UTF16_CHARS, _UTF16_ZEROS = 40, 8
"""Letters A (zero bytes) that the first 40 characters of UTF-16 in base64 hold at least."""
_UNPACKED_BYTES = 64 * 1024
_TIMES_READ = 4
"""A text is unpacked, and later lines read again, up to this multiple of its length (and always up to 64 KiB)."""
_AGAIN_CHARS = 200
"""Then only so much of a line is read again."""
_BASE64_REST = deferred_pattern(r"[A-Za-z0-9+/_-]*(?:(?:\r?\n|\\n)(?:[+>#|]|//)?[ \t]{0,20}[A-Za-z0-9+/_-]{4,})*={0,2}")
_HEX = deferred_pattern(rf"(?:{_BYTE}){{10,}}(?:\n[+>#|]?[ ]?(?:{_BYTE}){{10,}})*(?:\n[+>#|]?[ ]?(?:{_BYTE})+)?")
_HEX_APART = deferred_pattern(
    rf"[0-7](?<![0-9A-Za-z:].)(?:(?<=0)x(?:{_BYTE})|[0-9A-Fa-f](?<={_BYTE}))"
    rf"(?:[ ,:-]{{1,2}}(?:0x)?(?:{_BYTE})){{11,}}(?![0-9A-Za-z])"
)
_MAY_BE_APART = LongRuns("0123456789abcdefABCDEFx ,:-", 12 * 2 + 11)
_HEX_ROW = r"0000[0-9a-f]{3,4}(?:: ?|  ?)((?:(?:[0-9a-f]{2}){1,2} {1,2}){1,16})"
_HEX_LINE = deferred_pattern(_HEX_ROW)
_HEX_REST = r" {0,50}(?:[^\r\n\\]|\\(?!r?\\?n0000)){0,34}(?:(?:\\r)?\\n|\r?\n|\Z)?"
"""The column of letters, up to the line end. A backslash in it is literal, unless a line end and a row follow."""
_HEX_DUMP = deferred_pattern(rf"{_HEX_ROW}{_HEX_REST}(?:{_HEX_ROW}{_HEX_REST})*")
_NO_HEX = deferred_pattern("[^0-9A-Fa-f]")
_PACKED_HEX = deferred_pattern(r"(?i:78(?:9c|da|01|5e)|1f8b08)(?:[0-9a-fA-F]{2}){12,}")
"""Gzip and zlib data in hex."""
_BASE32 = deferred_pattern(r"(?<![A-Za-z0-9])([A-Z2-7]{24,}|[a-z2-7]{24,})={0,6}(?![A-Za-z0-9])")
_PADDED = {n: (lambda bare, n=n: bare[-n:] + "=" * (8 - n)) for n in (2, 4, 5, 7)}
"""What the last letters of base32 are read as, by their number; other numbers encode nothing."""
_SIGNS_85 = deferred_pattern(r"[!#$&*;>?@^`{|}~%(]")
_LEAST_SIGNS, _LEAST_85 = 3, 25
_B85 = LongRuns(string.ascii_letters + string.digits + "!#$%&()*+-;<=>?@^_`{|}~", _LEAST_85)
_A85 = LongRuns("".join(map(chr, range(33, 118))) + "z~", _LEAST_85)
_MAY_BE_NUMBERED = LongRuns("0123456789 ,;\n", 12 * 3)
_NUMBERED = deferred_pattern(
    r"(?<![\w.])(?:[01]{8}[ ,;]{0,2}){12,}"
    r"|(?<![\w.])(?:(?:0?[3-9]\d|1[0-2]\d)(?:[ ;]|,\s{0,3})){7,}(?:[3-9]\d|1[0-2]\d)(?![\w.])"
)
_NUMBER = deferred_pattern(r"[01]{8}|\d{2,3}")
_BITS, _BLANK, _DELETE = 8, 32, 127
_CHR = deferred_pattern(r"(?:[Cc]hr\(\d{2,3}\)[\s+.&|,]{0,5}){8,}")
_SINGLES = bytes(
    120 if (chr(n).isalnum() and n < 127) or n in b"_-+/=." else 32 if n in b" \t\n" else 46 for n in range(256)
)
_ROWS_OF_SINGLES = (b"x x x x x x x x x", b"x  x  x  x  x  x  x  x  x", b"x   x   x   x   x   x   x   x   x")
_SINGLE = r"[\"']?[\w+/=.-][\"']?(?![\w\"'])"
_LETTERS_APART = deferred_pattern(
    rf"(?<![\w'\"]){_SINGLE}(?:(?:,[ ]?|[ ]{{1,3}}|[ ]{{0,3}}\n0\d{{6}}[ ]{{1,3}}){_SINGLE}){{11,}}"
)
"""Letters with blanks or commas between them, and rows of `od -c`."""
_NAME_BEFORE = deferred_pattern(r"([\w.-]*)\s?[:=]\s?[\w.$'\"\[({]{0,30}\Z")
_NAME_CHARS = 80
"""What a list of characters is assigned to."""
_NOT_SINGLE = deferred_pattern(r"\n0\d{6}|[\s,'\"]")
_PRINTABLE = deferred_pattern(r"=([2-7][0-9A-F])")
_IN_MAIL = deferred_pattern(r"=(?:5F|2D|3D|[2-7][0-9A-F]=[2-7][0-9A-F])")
"""Quoted-printable (RFC 2045)."""
_ANY_HEADER = 32
"""Accepts the headers of zlib and of gzip."""
_NO_BASE64 = deferred_pattern(r"[^A-Za-z0-9+/_-]|\\n")
_SEARCHED_CHARS = 400
"""Characters searched of a long run: its start shows whether it is base64 of a text. Pictures have millions of
characters."""
_WRAPPED_CHARS = 56
"""Shortest line of wrapped base64 (RFC 2045: 76; PEM: 64)."""


class Runs:
    """Searches the long runs of a text for base64 and hex. Continued lines are read from the first that may begin
    something; later ones only while the work stays within a multiple of the text."""

    def __init__(self, text: str, look: Look, depth: int) -> None:
        self._text, self._look, self._depth = text, look, depth
        self._left_chars = _UNPACKED_BYTES + _TIMES_READ * len(text)
        self._in_hex = self._in_base64 = 0
        """Ends of what was read."""

    def in_base64(self, start: int, end: int) -> Iterator[Span]:
        """Yield secrets that a run holds in base64."""
        text, depth = self._text, self._depth
        if depth and text.startswith(_PACKED, start):
            if self._left_chars <= 0:  # a bomb in every line: what can't be looked through does not leave
                yield Span(start, end, "key")
                return
            unpacked = self._unpacked(of_base64(text[start:end]))
            if inner := self._look(unpacked, depth - 1):
                yield Span(start, end, inner[0].kind)
                return
        if (
            depth
            and text.count("A", start, start + _UTF16_CHARS) >= _UTF16_ZEROS
            and (wide := _UTF16.search(text, start, end))
        ):
            done = self._end(wide.end())
            if inner := self._look(of_base64(text[wide.start() : done]).decode("utf-16-le", "replace"), depth - 1):
                yield Span(wide.start(), done, inner[0].kind)
        done = start
        while depth and (hit := _BASE64.search(text, done, min(end, max(done, start + _SEARCHED_CHARS)))):
            done = self._end(hit.end())
            whole, line = done, text.find("\n", hit.start(), done)
            if 0 <= line < hit.start() + _WRAPPED_CHARS:
                done = line
            # Behind binary data the alignment is unknown: from two groups of four before this place, too, counted from
            # the start of the run.
            at = hit.start()
            first = max(start, 1 + max(text.rfind(sign, start, at) for sign in "=."))
            for begin in {at, max(first, at - (at - first) % 4 - 8)}:
                for end_of in {done, whole}:
                    if inner := self._look(of_base64(text[begin:end_of]).decode("utf-8", "replace"), depth - 1):
                        yield Span(begin, end_of, inner[0].kind)
            if done >= end:
                break

    def _unpacked(self, packed: bytes) -> str:
        """Return the beginning of what gzip or zlib data hold; nothing if they are none."""
        try:
            data = zlib.decompressobj(wbits=zlib.MAX_WBITS | _ANY_HEADER).decompress(packed, _UNPACKED_BYTES)
        except zlib.error:
            return ""
        self._left_chars -= len(data)
        return data.decode("utf-8", "replace")

    def _end(self, at: int) -> int:
        """Return where the base64 ends that continues here; a nearby end if it was read before and the budget is
        spent."""
        again = at < self._in_base64 and self._left_chars <= 0
        rest = _BASE64_REST.match(self._text, at, at + _AGAIN_CHARS if again else len(self._text))
        done = rest.end() if rest else at
        self._left_chars -= max(0, min(done, self._in_base64) - at)
        self._in_base64 = max(self._in_base64, done)
        return done

    def in_hex(self, start: int, end: int) -> Iterator[Span]:
        """Yield secrets that a run holds in hex. Lines that were already read with an earlier one are skipped."""
        if not self._depth or start < self._in_hex:
            return
        head_end = min(end, start + _SEARCHED_CHARS)
        may_be_packed = self._text.find("78", start, head_end) >= 0 or self._text.find("8b08", start, head_end) >= 0
        if may_be_packed and (packed := _PACKED_HEX.search(self._text, start, head_end)):
            unpacked = self._unpacked(bytes.fromhex(packed[0][: len(packed[0]) // 2 * 2]))
            if self._left_chars > 0 and (inner := self._look(unpacked, self._depth - 1)):
                yield Span(*packed.span(), inner[0].kind)
        if begun := _HEX.search(self._text, start, min(end, start + _SEARCHED_CHARS)):
            hit = _HEX.match(self._text, begun.start()) or begun
            self._in_hex = hit.end()
            if inner := self._look(bytes.fromhex(_NO_HEX.sub("", hit[0])).decode("ascii"), self._depth - 1):
                yield Span(*hit.span(), inner[0].kind)

    def in_base32(self, start: int, end: int) -> Iterator[Span]:
        """Yield secrets that a run holds in base32 (RFC 4648), in letters of either case."""
        for hit in _BASE32.finditer(self._text, start, min(end, start + _SEARCHED_CHARS)) if self._depth else ():
            bare = hit[1].upper()
            decoded = b32decode(bare[: len(bare) // 8 * 8] + _PADDED.get(len(bare) % 8, lambda _: "")(bare))
            if decoded.isascii() and (inner := self._look(decoded.decode("ascii"), self._depth - 1)):
                yield Span(*hit.span(), inner[0].kind)


def in_base85(text: str, raw: bytes, look: Look, depth: int) -> Iterator[Span]:
    """Yield secrets in base85 of RFC 1924 and of Adobe: long words of signs whose first letters decode to text."""
    for runs, decode in ((_B85, b85decode), (_A85, a85decode)) if depth == DEEPEST else ():
        for start, end in runs(raw):
            word = text[start : min(end, start + _SEARCHED_CHARS)]
            if len(_SIGNS_85.findall(word[:60])) < _LEAST_SIGNS:
                continue
            for at in {0, *(n + 1 for n, c in enumerate(word[:60]) if c in "\"'=:~(")}:
                whole = word[at:].partition("~>")[0]
                try:
                    if len(whole) < _LEAST_85 or not decode(whole[:20].encode()).decode("ascii").isprintable():
                        continue
                    decoded = decode(whole.encode()).decode("utf-8", "replace")
                except ValueError:
                    continue
                if inner := look(decoded, depth - 1):
                    yield Span(start + at, end, inner[0].kind)


def apart(text: str, raw: bytes, look: Look, depth: int) -> Iterator[Span]:
    """Yield secrets whose characters are written one by one: as letters, or as their numbers."""
    if not depth:
        return
    hits: list[tuple[re.Match[str], str]] = []
    for start, end in _MAY_BE_NUMBERED(raw):
        for hit in _NUMBERED.finditer(text, start, min(len(text), end + 1)):
            numbers = [int(n, 2 if len(n) == _BITS else 10) for n in _NUMBER.findall(hit[0])]
            hits.append((hit, "".join(chr(n) if _BLANK <= n < _DELETE else "\n" for n in numbers)))
    if "hr(" in text:
        hits += ((hit, "".join(chr(int(n)) for n in _NUMBER.findall(hit[0]))) for hit in _CHR.finditer(text))
    singles = raw.translate(_SINGLES, b"'\",")
    if any(row in singles for row in _ROWS_OF_SINGLES):
        hits += ((hit, _NOT_SINGLE.sub("", hit[0])) for hit in _LETTERS_APART.finditer(text))
    for hit, decoded in hits:
        named = _NAME_BEFORE.search(text, max(0, hit.start() - _NAME_CHARS), hit.start())
        if inner := look(f"{named[1]}='{decoded}'" if named else decoded, depth - 1):
            yield Span(*hit.span(), inner[0].kind)


def in_dump(text: str, raw: bytes, look: Look, depth: int) -> Iterator[Span]:
    """Yield secrets in bytes printed apart, as `xxd`, `hexdump` and programs print them."""
    if not depth:
        return
    apart = chain.from_iterable(_HEX_APART.finditer(text, start, end + 1) for start, end in _MAY_BE_APART(raw))
    for hit, digits in chain(
        ((hit, hit[0].replace("0x", "")) for hit in apart),
        ((hit, "".join(_HEX_LINE.findall(hit[0]))) for hit in _HEX_DUMP.finditer(text)),
    ):
        decoded = bytes.fromhex("".join(c for c in digits if c.isalnum())).decode("latin-1")
        if inner := look(decoded, depth - 1):
            yield Span(*hit.span(), inner[0].kind)


def of_base64(encoded: str) -> bytes:
    """Decode base64 of either alphabet, as far as it is complete."""
    bare = _NO_BASE64.sub("", encoded.replace("\\n", "\n")).replace("-", "+").replace("_", "/")
    bare = bare[: -1 if len(bare) % 4 == 1 else None]
    return b64decode(bare + "=" * (-len(bare) % 4))


def escaped(text: str, look: Look, depth: int) -> Iterator[Span]:
    """Yield secrets in the escaped parts of a text, at their places in it."""
    may_be_escaped = depth and ("%" in text or "\\" in text or "&" in text)
    in_mail = depth and "=" in text and _IN_MAIL.search(text)
    for escape in (*([_ESCAPE] if may_be_escaped else []), *([_PRINTABLE] if in_mail else [])):
        parts: list[tuple[int, int]] = []
        start = end = -1
        for hit in escape.finditer(text):
            if hit.start() > end:
                parts += [(start, end)] if end >= 0 else []
                before = text.rfind("\n", max(0, hit.start() - _AROUND, end), hit.start())
                start = before + 1 if before >= 0 else max(0, hit.start() - _AROUND, end)
            line = text.find("\n", hit.end(), hit.end() + _AROUND)
            end = line if line >= 0 else min(len(text), hit.end() + _AROUND)
        parts += [(start, end)] if end >= 0 else []
        for start, end in parts:
            pieces: list[str] = []
            at: list[int] = []
            stood: list[int] = []
            done, length = start, 0
            for hit in escape.finditer(text, start, end):
                pieces += (text[done : hit.start()], _character(hit) if escape is _ESCAPE else chr(int(hit[1], 16)))
                length += hit.start() - done + 1
                at.append(length)
                stood.append(hit.end())
                done = hit.end()
            pieces.append(text[done:end])
            for span in look("".join(pieces), depth - 1):
                places = []
                for n in (span.start, span.end):
                    k = bisect_right(at, n)
                    places.append(stood[k - 1] + n - at[k - 1] if k else start + n)
                yield Span(places[0], places[1], span.kind)


def _character(hit: re.Match[str]) -> str:
    if hit["entity"]:
        return _ENTITIES[hit["entity"]]
    if hit["slash"]:
        return "/"
    if hit["octal"]:
        return chr(int(hit["octal"], 8))
    if hit["decimal"]:
        return chr(int(hit["decimal"])) if 9 <= int(hit["decimal"]) < 127 else "\ufffd"
    return chr(int(hit["percent"] or hit["number"] or hit["braced"] or hit["hex"], 16))


# -- invisible text: colours of a terminal, characters without width, other alphabets, joints of literals --------------
#
# A key may begin after a colour, so keys are searched with blanks for colours. A search, a font or a shell may also
# break a key by them, so such texts are searched a second time without them.

_ESC = r"(?:\x1b|\\{1,4}(?:[uU]001[bB]|x1[bB]|033|e))"
_OF_COLOUR = (
    r"(?:(?<=\x9b)|(?:(?<=\x1b)|(?<=\\)\\{0,3}(?:[uU]001[bB]|x1[bB]|033|e))\[)[0-9;:?]{0,40}[A-Za-z]"
    rf"|(?:(?<=\x1b)|(?<=\\)\\{{0,3}}(?:[uU]001[bB]|x1[bB]|033|e))\]8;[^\x07\x1b\\]{{0,400}}(?:\x07|{_ESC}\\{{1,4}}|\\u0007|\\a)"
)
COLOUR = deferred_pattern(rf"[\x1b\x9b\\](?:{_OF_COLOUR})")
"""ECMA-48 control sequences, raw and escaped, and links, which terminals show as their text."""
_MARKS = ("001b[", "001B[", "x1b[", "x1B[", "033[", "\\e[")
"""Every escaped colour contains one of these."""
_WIDTHLESS = (
    "\0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff\u0300-\u0338"
)
"""Characters that Unicode calls ignorable by default, combining marks, and the zero bytes of UTF-16 read as bytes."""
_IS_WIDTHLESS = deferred_pattern(f"[{_WIDTHLESS}]")
_KEY_CHAR = "[A-Za-z0-9_+/=.~:@%-]"
_BETWEEN = r"[ \t]{0,3}(?:[.&+]|\.\.)?[ \t]{0,3}(?:\r?\n[ \t]{0,40})?"
_OF_JOINT = (
    rf"(?<={_KEY_CHAR}{{4}}.)(?:(?<=[\\^])\r?\n[ \t]{{0,40}}"
    rf"|(?<=')(?:\"'?\"'|{_BETWEEN}')|(?<=\")(?:'\"?'\"|{_BETWEEN}\"))(?={_KEY_CHAR}{{4}})(?={_KEY_CHAR}{{0,80}}(?:\d|[a-z][A-Z]))"
)
_JOINT = deferred_pattern(rf"[\"'\\^](?:{_OF_JOINT})")
"""Between two parts of a value that a shell or a program joins: a continued line, or two adjacent literals."""
_OF_MARKUP = (
    rf"(?:(?<=[A-Za-z0-9]\\)(?=[_-][A-Za-z0-9])"
    rf"|(?:(?<={_KEY_CHAR}{{4}}\*)\*|(?<={_KEY_CHAR}{{4}}<)/?[A-Za-z]{{1,10}}>)(?={_KEY_CHAR}{{2}})(?={_KEY_CHAR}{{0,80}}(?:\d|[a-z][A-Z]|[A-Z]{{4}})))"
)
_MARKUP = deferred_pattern(rf"[\\*<]{_OF_MARKUP}")
"""Markdown's escape, bold letters and tags within a word."""
OTHER_FONT = deferred_pattern("[\u00a0\u2000-\u200a\u202f\u205f\u3000\uff01-\uff5e\U0001d400-\U0001d7ff]")
_PARTS = deferred_pattern(
    rf"[\x1b\x9b\\\"'^*<{_WIDTHLESS}](?:(?<=[{_WIDTHLESS}])|{_OF_COLOUR}|{_OF_JOINT}|{_OF_MARKUP})"
)


def has_invisible(text: str) -> bool:
    """Return whether a text has what a reader does not see: terminal colours, characters without width, markup within
    words, or string literals that code joins (`"ab" + "cd"`)."""
    return (
        "\x1b" in text
        or ("\\" in text and any(mark in text for mark in _MARKS))
        or ("\0" in text if text.isascii() else _IS_WIDTHLESS.search(text) is not None or "\x9b" in text)
        or _JOINT.search(text) is not None
        or _MARKUP.search(text) is not None
    )


def rejoined(text: str, look: Look, depth: int) -> Iterator[Span]:
    """Yield secrets in a text without invisible characters and joints, at their places in the text."""
    hits = [hit.span() for hit in _PARTS.finditer(text)]
    if not depth or not hits:
        return
    at: list[int] = []
    gone: list[int] = []
    for start, end in hits:
        before = gone[-1] if gone else 0
        at.append(start - before)
        gone.append(before + end - start)

    def place(n: int) -> int:
        k = bisect_right(at, n)
        return n + (gone[k - 1] if k else 0)

    for span in look(_PARTS.sub("", text), depth - 1):
        yield Span(place(span.start), place(span.end - 1) + 1, span.kind)
