"""What stands directly before, after or within a secret hides none: signs, colours, escapes, characters nobody sees."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from unicodedata import normalize

import pytest

from agentsignals.redaction import Redactor
from tests.quick import each_row
from tests.redaction.planted import KINDS, Secret, pieces
from tests.redaction.test_issuers import SAMPLES, dumped, sample, wide

BEFORE = {
    "a diff's -": "x\n-", "a diff's +": "x\n+", "a first -": "-", "two": "++", "an escaped diff": "x\\n-",
    "a line": "x\n", "an escaped line": "x\\n", "twice escaped": "x\\\\n", "an escaped tab": "x\\t", "CRLF": "x\\r\\n",
    "a listing": "    12\t-", "a number": "12→", "=": "x=", ":": "x:", "(": "f(", "[": "[", "{": "{", ",": "a,",
    ";": ";",
    "|": "a|", "`": "`", '"': '"', "'": "'", '\\"': '\\"', "<": "<", ">": ">", "@": "@", "#": "#", "$": "$", "&": "a&",
    "!": "!", "?": "?", "a colour": "\x1b[31m", "two colours": "\x1b[1;32m\x1b[K", "a colour in JSON": "\\u001b[31m",
    "a colour in Python": "\\x1b[0m", "a colour in C": "\\033[0m", "a colour in bash": "\\e[0m",
    "a diff in colours": "\x1b[31m-", "a coloured diff in JSON": "\\u001b[32m+", "no width": "\u200b",
    "a mark": "\ufeff", "a wide blank": "\u00a0",
}  # fmt: skip
AFTER = {
    "a line": "\nx", "an escaped line": "\\n", '"': '"', '\\"': '\\"}', "`": "`", "a colour": "\x1b[0m",
    "a colour in JSON": "\\u001b[0m", "\\": "\\", ",": ",", ")": ")", "]": "]", ".": ".", ";": ";", "|": "|",
    "&": "&a=1",
    "<": "</a>", "*": "**", "~": "~~", "no width": "\u200b", "another script": "。", "a diff's +": "\\n+x",
}  # fmt: skip
WITHIN: dict[str, Callable[[str], str]] = {
    "what a search found": lambda s: f"\x1b[01;31m\x1b[K{s[: len(s) // 2]}\x1b[m\x1b[K{s[len(s) // 2 :]}",
    "the same in JSON": lambda s: f"\\u001b[01;31m{s[: len(s) // 2]}\\u001b[m{s[len(s) // 2 :]}",
    "no width": lambda s: s[:6] + "\u200b" + s[6:9] + "\u2060" + s[9:],
    "a soft hyphen": lambda s: s[: len(s) // 2] + "\u00ad" + s[len(s) // 2 :],
    "UTF-16 read as bytes": lambda s: s.encode("utf-16-le").decode("latin-1"),
    "base64 of JSON": lambda s: base64.b64encode(json.dumps({"a": 1, "item": s}).encode()).decode(),
    "base64 for addresses, without its end": lambda s: base64.urlsafe_b64encode(
        json.dumps({"item": s, "n": "ÿ"}).encode()).decode().rstrip("="),
    "JSON in JSON in JSON": lambda s: json.dumps(json.dumps(json.dumps({"a": s}))),
    "quoted-printable": lambda s: s[: len(s) // 2] + "=\n" + s[len(s) // 2 :],
    "two literals": lambda s: f'"{s[: len(s) // 2]}" + "{s[len(s) // 2 :]}"',
    "a mark over each letter": "\u0301".join,
    "characters that choose a glyph": "\ufe0f".join,
    "directions": lambda s: f"\u202d{s[: len(s) // 2]}\u202c\u2066{s[len(s) // 2 :]}\u2069",
    "a link of a terminal": lambda s: f"{s[: len(s) // 2]}\x1b]8;;https://x.test\x07{s[len(s) // 2 :]}",
    "a shell's line that goes on": lambda s: s[: len(s) // 2] + "\\\n    " + s[len(s) // 2 :],
    "a shell's literals": lambda s: f"'{s[: len(s) // 2]}'\"\"'{s[len(s) // 2 :]}'",
    "nothing quoted": lambda s: s[: len(s) // 2] + "''" + s[len(s) // 2 :],
    "two literals of C": lambda s: f'"{s[: len(s) // 2]}" "{s[len(s) // 2 :]}"',
    "a frame": lambda s: f"│ {s[: len(s) // 2]} │\n│ {s[len(s) // 2 :]} │",
    "a comment": lambda s: f"// {s[: len(s) // 2]}\n// {s[len(s) // 2 :]}",
    "two literals on two lines": lambda s: f"x = ('{s[: len(s) // 2]}'\n     '{s[len(s) // 2 :]}')",
}  # fmt: skip
SHAPED = [kind for kind, make in KINDS.items() if make(random.Random(0)).breaks]  # noqa: S311  (draws, no secret)


def secrets(*kinds: str) -> list[tuple[str, Secret]]:
    return [(kind, KINDS[kind](random.Random(f"{kind} edges"))) for kind in kinds or KINDS]  # noqa: S311  (as above)


def said(secret: Secret) -> str:
    return f"{secret.name}=" * bool(secret.name) + secret.around[0] + secret.value + secret.around[1]


def left(secret: Secret, told: str) -> bool:
    """Whether eight characters in a row are there, also with what nobody sees taken out again."""
    bare = told.replace("\0", "").replace("\u200b", "").replace("\u2060", "").replace("\u00ad", "")
    return any(p in text for p in pieces(secret) for text in (told, bare))


@each_row("place", BEFORE)
def test_nothing_before_a_secret_hides_it(place: str) -> None:
    redactor = Redactor(bytes(32))
    kinds = [kind for kind, secret in secrets() if left(secret, redactor.plain(BEFORE[place] + said(secret)))]
    keys = [sample(*one) for one in SAMPLES]
    assert kinds == []
    assert [key[:4] for key in keys if key[len(key) // 2 :][:10] in redactor.plain(BEFORE[place] + key)] == []


@pytest.mark.slow
@pytest.mark.parametrize("place", AFTER)
def test_nothing_after_a_secret_hides_it(place: str) -> None:
    redactor = Redactor(bytes(32))
    kinds = [kind for kind, secret in secrets() if left(secret, redactor.plain(said(secret) + AFTER[place]))]
    keys = [sample(*one) for one in SAMPLES]
    assert kinds == []
    assert [key[:4] for key in keys if key[len(key) // 2 :][:10] in redactor.plain(key + AFTER[place])] == []


@pytest.mark.parametrize("way", WITHIN)
def test_a_key_that_is_broken_for_programs_and_whole_for_people_is_one(way: str) -> None:
    redactor = Redactor(bytes(32))
    assert [kind for kind, secret in secrets(*SHAPED)
            if left(secret, redactor.text(f"see {WITHIN[way](secret.value)} there"))
            or secret.value[-8:] in redactor.text(WITHIN[way](secret.value))] == []  # fmt: skip


BLANKS = {"wide": "\u3000", "that does not break": "\u00a0", "thin": "\u2009", "narrow": "\u202f"}


@pytest.mark.parametrize("blank", [*BLANKS.values(), None], ids=[*BLANKS, "of wide letters"])
def test_blanks_of_typesetters_are_blanks(blank: str | None) -> None:
    redactor = Redactor(bytes(32))
    kinds = []
    for kind, secret in secrets():
        text = said(secret)
        written = wide(text) if blank is None else text.replace(" ", blank)
        told = normalize("NFKC", redactor.plain(f"see this:\n{written}"))
        kinds += [kind] if left(secret, told) else []
    assert kinds == []


@pytest.mark.parametrize("end", ["\n", "\\n", "\\r\\n"])
def test_a_dump_s_column_of_letters_may_have_backslashes(end: str) -> None:
    redactor = Redactor(bytes(32))
    around = f"it says:{end}%sand it goes on, and on, and at its long last it ends"
    for kind, secret in secrets():
        dump = dumped(f"at \\n {said(secret)} \\")
        shown = redactor.plain(around % dump.replace("\n", end))
        assert shown.endswith("ends") and not left(secret, shown), kind
        assert not any(row[10:49] in shown for row in dump.splitlines()[1:3]), kind


BY_CHANCE = (
    "AWS_SECRET_ACCESS_KEY=a/Gch1VoMGJhwvVx34DOjhkLIZHeE3kDMWwRtoC+",
    "AWS_SECRET_ACCESS_KEY=/C4qM1J/GhhGlRV5l+swATDG9kIjisEEHiQvp3/s",
    "AccountKey=/VPM/J0SOR2ZOMMEARGRZG9ULXNQOFVPM2QNMDIYUXSPFEHDSLRI4OLX9S==",
    "api_key=u9Aa359TLxCbFmZTykEYPDx0",
    "client_secret=yJC5Ucxybpwd46jeGG8RUR7Vyh4baxVd",
    "{api_key=OlDQsCIdWrbrdRVJYeIEWq3h",
    "client_secret=Xxxxq46jeGG8RUR7Vyh4baxd",
    "aki" + "azlnaxpbengeao43n",
    '{"auths":{"ghcr.io":{"auth":"ym9ioknmy2ezmvlwwlkyajk0"}}}',
    "authorization: basic nufstkjsolbkoelpatfcmw==",
)


@pytest.mark.parametrize("text", BY_CHANCE)
def test_letters_drawn_by_chance_make_no_word_path_or_placeholder(text: str) -> None:
    core = text[-20:-6]
    assert core not in Redactor().text(text)


@pytest.mark.parametrize("kind", ["aws secret", "client secret", "access token", "env key"])
@pytest.mark.parametrize("way", ["\n", "\r\n    ", "\n> ", " │\n│ "])
def test_a_named_value_that_a_terminal_broke_is_masked_to_its_end_and_no_further(kind: str, way: str) -> None:
    secret = KINDS[kind](random.Random(f"{kind} broken"))  # noqa: S311  (draws, no secret)
    half = len(secret.value) // 2
    text = f"{secret.name}={secret.value[:half]}{way}{secret.value[half:]}\nPORT=8080\n"
    told = Redactor().plain(text)
    assert not left(secret, told) and told.endswith("\nPORT=8080\n")


@pytest.mark.parametrize("kind", ["github classic", "aws id", "gitlab", "npm", "stripe hook", "groq", "shopify"])
@pytest.mark.parametrize("before", ["tmp", "2.1.20", "0b9f3c52-41aa-4c1e-9d2e-7a1f00c0ffee"])
def test_a_key_behind_letters_of_a_name_is_one(kind: str, before: str) -> None:
    secret = KINDS[kind](random.Random(f"{kind} glued"))  # noqa: S311  (draws, no secret)
    assert not left(secret, Redactor().plain(f"/srv/{before}{secret.value}.json"))


def test_colours_stay_where_nothing_is_masked() -> None:
    text = "\x1b[31m-/usr/lib/x.py\x1b[0m \\u001b[1mok\\u001b[0m naïve\u200bword"
    assert Redactor().plain(text) == text
