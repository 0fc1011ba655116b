"""Lengths of text as the catalogue counts them, letters without their case, what is unseen made visible, what would run
made inert."""

from __future__ import annotations

import re
import struct
from functools import lru_cache

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
    """Return whether a character (or none) continues a word."""
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
    """Undo `inert`."""
    return cell[1:] if cell.startswith("'") and _LIVE.match(cell[1:]) else cell


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

_SMALL_WORDS = {
    "en": "the and is it of for this that you to with be are not have should can we my your please what how why when"
    " from if but just there now than through without into then does which or at by on as was will do don't i i'm it's"
    " let's its has had any all so they them their these those would could about after before only where who here"
    " instead fix make sure want need look see use using run add all our us also still get go been were did an no any"
    " other every please create remove delete update"
    " change changes write review implement open new once like looks he she show",
    "de": "der die das und ist nicht ich du wir sie ein eine einen einem einer zu mit auf für von dem den des im auch"
    " wie was warum wenn aber noch bitte kannst mach soll sollte sind wird werden hat haben kein keine nur oder bei aus"
    " nach es dass sich mir dir uns jetzt hier über mal schon als um zum zur",
    "fr": "le la les des un une et est pas je tu nous vous il elle que qui dans pour avec sur ce cette ces au aux du de"
    " en ne se plus mais ou où comment pourquoi quand peux peut faire fait doit sont être avoir mon ma mes ton ta ses"
    " leur y sans si c'est j'ai n'est d'un merci",
    "es": "el la los las un una y es no que de en para con por se del al lo como más pero su sus este esta esto ese eso"
    " qué cómo cuando porque si ya está están hay hacer puedes quiero tiene debe sin sobre también muy mi tu nos le"
    " son todos donde",
    "pt": "o a os as um uma e é não que de em para com por se do da dos das no na nos nas ao como mais mas seu sua este"
    " esta isso isto esse essa você quando porque já está são tem fazer pode preciso quero sem sobre também muito meu"
    " minha ele ela foi ser onde",
    "it": "il lo la i gli le un una e è non che di in per con su da del della dei delle al alla nel nella si come più"
    " ma questo questa quello perché quando se già sono ha hanno fare puoi voglio deve senza anche mio tuo ci ne dove",
    "nl": "de het een en is niet ik je we jij van voor met op te dat die deze dit in aan er maar om als ook naar bij"
    " uit nog kan kun moet waarom wanneer hoe wat heeft hebben zijn wordt worden geen wel graag dan of over zonder",
    "sv": "och är inte jag du vi det den ett en som på för med av till att har kan ska skall måste från om men när"
    " hur varför vad eller också där här de finns inga ingen utan efter detta",
    "pl": "i w na nie to jest się z do że jak co czy ale dla o od po za przez tylko już jeszcze może można trzeba"
    " proszę dlaczego kiedy są być ten ta te tego tej bez oraz lub jeśli tak",
    "tr": "ve bir bu için de da ne mi mı değil ile var yok gibi daha çok ama nasıl neden olarak olan sonra kadar lütfen"
    " ben sen biz şu her hata olsun et eder misin ya veya değildir olduğu olduğunu olmalı göster yeni tüm bulunan"
    " üzerinde tarafından",
}
"""Small words that most sentences of a language hold one of; letters in lower case."""
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _SMALL_WORDS.items():
    for _word in set(_words.split()):
        _LANGUAGES_OF.setdefault(_word, []).append(_language)
_ENGLISH = frozenset(_SMALL_WORDS["en"].split())

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_ASCII_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
"""Words of a lower-case ASCII text, in half the time."""
FEWEST_WORDS = 2
"""Small words that must speak for a language, and one more than for any other."""
CLEARLY = 0.3
"""With such a share of small English words among the different words, no other language has as many."""
WINDOW_CHARS = 600
"""More of a text is not looked at."""


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


def _by_small_words(small_words: list[str]) -> str | None:
    n_english = len(_ENGLISH.intersection(small_words))
    # Most prompts are, and asking about the others takes ten times as long; telling the different words apart, twice.
    if n_english >= max(CLEARLY * len(small_words), FEWEST_WORDS):
        return "en"
    words = set(small_words)
    if n_english >= max(CLEARLY * len(words), FEWEST_WORDS):
        return "en"
    votes = dict.fromkeys(_SMALL_WORDS, 0)
    for word in words & _LANGUAGES_OF.keys():
        for language in _LANGUAGES_OF[word]:
            votes[language] += 1
    (second, _), (most, language) = sorted((n, candidate) for candidate, n in votes.items())[-2:]
    return language if most >= FEWEST_WORDS and most > second else None
