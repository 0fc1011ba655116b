"""How much masking does for a character of a hostile text: what begins a secret, and nothing else, over and over.

Work is counted, not timed: calls, and characters that are handed from one function of the masking to another. A text of
some 300 characters a character is one that is looked at to its end from each beginning.
"""

from __future__ import annotations

import base64
import re
import sys
import zlib
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agentsignals import redaction
from agentsignals.redaction import Redactor
from agentsignals.redaction.keys import ISSUERS

CHARS = 2_500
MOST_CALLS = 60
MOST_CHARS = 320
FOLDER = str(Path(redaction.__file__).parent)
NAMES = ("password=", "assw:", "passphrase=", "db_pass=", "pwd=", "secret=", "token=", "credential=", "_auth=", "_sid=",
         "api_key=", "_key=", "token: a1 ", "password=a.b/", "Authorization: ", "bearer ", "cookie: a=")  # fmt: skip
PLACES = ("://", "http://a:", "basic ", "auth=", "mysql -p ", "curl -u a ", "sshpass -p ", "login -p ", "redis-cli -a ",
          "mongo -p ", "sqlcmd -P ", "ldapsearch -w ", "plink -pw ", "smbclient -U a ", " -pass pass:", "unzip -P ",
          "htpasswd -b a b ", "echo a|--password-stdin ", "machine a login b password ", "echo a | sudo -S ",
          "identified by ", "PRIVATE KEY", "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJa.", "sig=", ":AA",
          "/api/webhooks/", "hooks.slack.com/services/", "Ma.abcdef.")  # fmt: skip
PEOPLE = ("@", "a@", "a@b.", "%40", "/users/", "/home/", "-home-", "C:\\users\\", "4111 ", "+49 ", "1.1.1.1 ", "2001:",
          "::", "DE44 ", "555-")  # fmt: skip
WRITTEN = ("%25", "%41", "\\u0041", "\\", "&#65;", "&amp;", "41", "41 ", "0x41,", "00000000: 4141 ", "aGVs", "H4sI",
           "eNr", "AAAAAAAA", "\x1b[0m", "\\x1b[", "\"'\"'\"'", '"+"', "\u200b", "\\\n", "\U0001d400",
           "[user-00000000]",
           base64.b64encode(zlib.compress(b"a b" * 20_000, 9)).decode())  # fmt: skip
BEGINNINGS = sorted({way for i in ISSUERS for p in i.prefixes.split() for way in (p, p.lower(), p.upper())})
SHAPES = {"in a row": (0, ""), "in words": (120, " "), "in lines": (70, "\n")}


class _Work:
    """Counts what masking does while it is open."""

    def __init__(self) -> None:
        self.calls = self.chars = 0

    def __enter__(self) -> _Work:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        self.calls += event in ("call", "c_call")
        if event == "call" and frame.f_code.co_filename.startswith(FOLDER):
            looks = frame.f_code.co_name == "_spans"
            self.chars += sum(_chars(v) for name, v in frame.f_locals.items() if looks or name not in ("text", "low"))


def _chars(value: object) -> int:
    return len(value) if isinstance(value, str) else len(value[0]) if isinstance(value, re.Match) else 0


def hostile(unit: str, shape: str, chars: int = CHARS) -> str:
    """So many characters of a unit, over and over."""
    least, end = SHAPES[shape]
    part = unit * (1 + least // len(unit)) + end
    return (part * (1 + chars // len(part)))[:chars]


def counted(text: str) -> _Work:
    Redactor().plain(text[: CHARS // 2])  # what is made on first use
    with _Work() as work:
        Redactor().plain(text)
    return work


def over(unit: str, shape: str) -> str | None:
    """How much work a character of such a text takes, where that is too much."""
    work = counted(hostile(unit, shape))
    calls, chars = work.calls / CHARS, work.chars / CHARS
    return f"{unit!r} {shape}: {calls:.0f} calls, {chars:.0f}" if calls > MOST_CALLS or chars > MOST_CHARS else None


@pytest.mark.parametrize(
    ("unit", "shape"),
    [
        ("password=", "in a row"),
        ("pwd=", "in words"),
        ("cookie: a=", "in a row"),
        ("user,password\n", "in a row"),
        ("|secret|\n", "in a row"),
        ("user  password\n", "in a row"),
        ("re_", "in a row"),
        ("tgp_v1_", "in lines"),
        ("cioa1", "in lines"),
        ("xglpat-", "in a row"),
        ("41", "in lines"),
        ("AKCp", "in lines"),
        (WRITTEN[-1], "in lines"),
    ],
)
def test_a_text_of_beginnings_takes_a_bounded_amount_of_work_a_character(unit: str, shape: str) -> None:
    assert over(unit, shape) is None


@pytest.mark.parametrize("unit", ["41", "aGVs"])
def test_lines_that_go_on_are_not_read_to_the_end_from_each(unit: str) -> None:
    few, many = (counted(hostile(unit, "in lines", n * CHARS)).chars for n in (1, 4))
    assert many < 6 * few


@pytest.mark.slow
@pytest.mark.nightly
def test_no_rule_s_beginning_takes_more() -> None:
    shapes = list(SHAPES)
    cases = [*product((*NAMES, *PLACES, *PEOPLE, *WRITTEN), shapes)]
    cases += ((unit, shapes[n % len(shapes)]) for n, unit in enumerate((*BEGINNINGS, *(f"x{b}a1" for b in BEGINNINGS))))
    assert [found for case in cases if (found := over(*case))] == []


@pytest.mark.parametrize("level", [1, 5, 6, 9])
@pytest.mark.parametrize("before", ["", "a b", "x" * 40])
def test_what_was_packed_at_any_level_is_looked_through(level: int, before: str) -> None:
    packed = base64.b64encode(zlib.compress(f"{before} ghp_{'a1B2' * 9} and more".encode(), level)).decode()
    assert packed not in Redactor().plain(f"it says {packed} here")


def test_more_packed_text_than_can_be_looked_through_does_not_leave() -> None:
    line = base64.b64encode(zlib.compress(b"a b" * 20_000, 9)).decode()
    masked = Redactor().plain("\n".join([line] * 20)).split("\n")
    assert masked[0] == line
    assert masked[-1] == "[key]"
