"""Text: its length in tokens, letters folded to one case, its language, hidden characters made visible, and cells that
a spreadsheet would run made inert. The lists of words beside this file are read here."""

from __future__ import annotations

import re
import struct
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_TOKEN = re.compile(r"\w+|[^\w\s]")
_ASCII = bytes(range(128))
_KINDS = bytes(
    ord("w") if char.isalnum() or char == "_" else ord(" ") if char.isspace() else ord(".")
    for char in map(chr, range(128))
).ljust(256)
"""Each ASCII character as what it is to `_TOKEN`: of a word, blank, or a mark of its own."""
_FEW = 12
"""Different characters beyond ASCII (dashes, quotes, umlauts) that are sooner replaced by some of their kind."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe"
    "\uffff\U000e0000-\U000e007f]"
)
"""Control characters, and those that turn text around or hide in it; joiners stay, which scripts and emoji need."""
_LIVE = re.compile(r"[\t\r']|[\s'\"\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""First characters of a cell that a spreadsheet runs, or that has our own mark: `=`, `+`, `-`, `@` and their wide
forms, behind characters that are dropped before a formula is looked for (OWASP, "CSV Injection")."""
_LONE = re.compile("[\ud800-\udfff]")
_ODD_CASES = {"\u0130": "i", "\u0131": "i", "\u017f": "s"}
"""Letters that `re.IGNORECASE` takes for one of ASCII, and whose lower case is two characters or themselves."""


def count_tokens(text: str) -> int:
    """Tokens of a text: runs of word characters, or one punctuation mark (design/signals.md#units)."""
    if not text.isascii():
        others = beyond_ascii(text)
        if len(others) > _FEW:
            return len(_TOKEN.findall(text))
        for char in others:
            text = text.replace(char, "w" if char.isalnum() else " " if char.isspace() else ".")
    # Several times faster than the pattern, which makes a string for every token.
    kinds = text.encode().translate(_KINDS)
    marks = kinds.count(b".")
    if marks:
        kinds = kinds.replace(b".", b" ")  # one way for a word to begin is found sooner than two
    return kinds.startswith(b"w") + kinds.count(b" w") + marks


def is_of_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def beyond_ascii(text: str) -> set[str]:
    """The different characters of a text that are not in ASCII."""
    return set(text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass"))


def lowered(text: str) -> str:
    """The text in lower case, every character in its place: what patterns for lower case find has the same offsets."""
    if not text.isascii():
        for odd, plain in _ODD_CASES.items():
            text = text.replace(odd, plain)
    return text.lower()


def estimate_tokens(n_chars: int) -> int:
    """ceil(characters / 4): the catalogue's estimate where counting would cost too much (tool results, thinking)."""
    return (n_chars + 3) // 4


def visible(text: str) -> str:
    """The text with every unseen character as its number: `\\u202e` becomes `[U+202E]`. For all that people read."""
    seen = _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text.replace("\r\n", "\n"))
    return _LONE.sub("\ufffd", seen)


def visible_in_json(document: str) -> str:
    r"""Return the document with every invisible character escaped as JSON does: `\u202e`, in six letters."""

    def escaped(match: re.Match[str]) -> str:
        data = match[0].encode("utf-16-be")
        return "".join(f"\\u{unit:04x}" for unit in struct.unpack(f">{len(data) // 2}H", data))

    return _UNSEEN.sub(escaped, document)


def inert(cell: str) -> str:
    """The text of a spreadsheet's cell, with `'` before it where the spreadsheet would run it. `of_inert` undoes it."""
    return f"'{cell}" if _LIVE.match(cell) else cell


def of_inert(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _LIVE.match(cell[1:]) else cell


@cache
def word_lists(name: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415  (`--help` loads this module, and needs no list)

    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


# Language detection by script, else by the small words of languages in Latin letters. Made for prompts about code:
# short, full of English loan words. A detector by letter statistics names some language for every such text, and
# costs more to load than all signals to compute.

_OUTSIDE_LATIN = re.compile(r"[^\x00-\u024f]+")
_SCRIPTS: tuple[tuple[str, int, int], ...] = (
    ("ja", 0x3040, 0x30FF),
    ("zh", 0x3400, 0x9FFF),
    ("ko", 0xAC00, 0xD7AF),
    ("ru", 0x0400, 0x04FF),
    ("el", 0x0370, 0x03FF),
    ("ar", 0x0600, 0x06FF),
    ("he", 0x0590, 0x05FF),
    ("th", 0x0E00, 0x0E7F),
    ("hi", 0x0900, 0x097F),
)
"""Script by the language that most prompts in it are in. Cyrillic and Arabic are looked at more closely."""
_ELSE_BY_LETTER = {"ru": (("uk", "іїєґ"),), "ar": (("fa", "پچژگکی"),)}
"""Languages that share a script, by letters only they have."""
_CJK = frozenset(("ja", "zh", "ko"))
_LETTERS_OF_A_SIGN = 3
"""A Chinese, Japanese or Korean character says as much as so many letters."""


_SHARED = "also_in_english"


@cache
def _small_words() -> dict[str, frozenset[str]]:
    lists = {language: frozenset(words.split()) for language, words in word_lists("languages").items()}
    return {language: words for language, words in lists.items() if language != _SHARED}


_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_ASCII_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
"""Words of a lower-case ASCII text, in half the time."""
FEWEST_WORDS = 2
"""Small words that must speak for a language, and one more than for any other."""
SHORT_WORDS = 6
"""In a text of so few different words, and none of English's, one small word hints at the language."""
CLEARLY = 0.3
"""With such a share of small English words among the different words, no other language has as many."""
WINDOW_CHARS = 600


def language_of(text: str) -> str | None:
    """The ISO 639-1 code of the language a text is in; None where too little of it speaks for one.

    Knows en de fr es pt it nl sv pl tr by their words, and ja zh ko ru uk el ar fa he th hi by their script. Of 2,300
    lines of programs' translations it named 80 % rightly and 1 % wrongly (by script 97 and 1, Turkish 24 and 1).
    Of 935 real prompts of 20 characters and more 94 %, one of them, in two languages, by the one that it quotes.
    """
    return _spoken(text[:WINDOW_CHARS].lower())


@lru_cache(maxsize=1024)
def _spoken(low: str) -> str | None:
    """The language of a text in lower case: signals ask about the same ones, and people say the same again."""
    if low.isascii():
        return _by_small_words(_ASCII_WORD.findall(low))
    foreign = "".join(_OUTSIDE_LATIN.findall(low))
    words = _WORD.findall(low)
    if foreign:
        script, weight = _script(foreign)
        latin = sum(map(len, words)) - len([c for c in foreign if c.isalpha()])
        if script and weight >= latin / 2:
            return script
    return _by_small_words(words)


def _script(foreign: str) -> tuple[str | None, int]:
    """The script most of the letters are in, and how much they say, in letters."""
    points = [ord(c) for c in foreign if c.isalpha()]  # mostly none: dashes, ticks, and what frames a terminal's text
    counts = {
        language: n
        for language, first, last in (_SCRIPTS if points else ())
        if (n := len([at for at in points if first <= at <= last]))
    }
    if not counts:
        return None, 0
    kana = counts.get("ja", 0)
    if kana and "zh" in counts:  # Japanese is written with Chinese characters, too
        counts["ja"] += counts.pop("zh")
    language = max(counts, key=lambda script_language: counts[script_language])
    weight = counts[language] * (_LETTERS_OF_A_SIGN if language in _CJK else 1)
    for other, letters in _ELSE_BY_LETTER.get(language, ()):
        if any(letter in foreign for letter in letters):
            return other, weight
    return language, weight


def _by_small_words(words_in_text: list[str]) -> str | None:
    """Return the language whose small words (the, und, que) are most among these; None in doubt."""
    languages = _small_words()
    n_english = len(languages["en"].intersection(words_in_text))
    # Most prompts are, and asking about the others takes ten times as long; telling the different words apart, twice.
    if n_english >= max(CLEARLY * len(words_in_text), FEWEST_WORDS):
        return "en"
    # Single letters are names of values as often as words: together they count as one.
    letters, words = set[str](), set[str]()
    for word in words_in_text:
        (words if len(word) > 1 or not word.isascii() else letters).add(word)
    if n_english >= max(CLEARLY * len(words), FEWEST_WORDS):
        return "en"
    (second, _), (most, language) = sorted(
        (len(words & small) + (not letters.isdisjoint(small)), name) for name, small in languages.items()
    )[-2:]
    return language if most >= FEWEST_WORDS and most > second else None


def hinted_language(text: str) -> str | None:
    """Return the one language that has small words in a short text without any of English's. Words that are short, or
    of English or programs too, hint at none."""
    words = set(_WORD.findall(text.lower()))
    languages, shared = _small_words(), word_lists("languages")[_SHARED].split()
    if len(words) > SHORT_WORDS or words & languages["en"]:
        return None
    telling = {word for word in words if (len(word) > 2 or not word.isascii()) and word not in shared}
    hinted = [language for language, small in languages.items() if telling & small]
    return hinted[0] if len(hinted) == 1 else None
