"""Tasks about words, names and masked text."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, idempotent, unchanged
from agentsignals.lab.coding_tasks.task import task

FAMILY = "wording"

TASKS = (
    task(
        "stable_top_words(words: list[str], k: int) -> list[str]",
        """Give the `k` most frequent words, the most frequent first. Of words equally frequent, the one that occurs
        first in `words` comes first. Fewer than `k` when there are not so many; none when `k` is 0.""",
        family=FAMILY,
        visible=[((["red", "sea", "red", "sky"], 2), ["red", "sea"]), ((["x", "y", "y"], 1), ["y"])],
        hidden=[
            ((["pear", "fig", "fig", "pear", "date"], 2), ["pear", "fig"]),
            (([], 3), []),
            ((["a"], 5), ["a"]),
            ((["b", "a"], 0), []),
            ((["Oak", "oak", "oak"], 2), ["oak", "Oak"]),
        ],
        relations=(
            unchanged("all words twice", lambda words, k: (words + words, k)),
            always("no word twice, no more than k", lambda out, _w, k: len(set(out)) == len(out) <= k),
        ),
        reference="""
from collections import Counter

def stable_top_words(words, k):
    return [word for word, _ in Counter(words).most_common(k)] if k > 0 else []
""",
        wrong="""
from collections import Counter

def stable_top_words(words, k):
    counted = Counter(words)
    return sorted(counted, key=lambda word: (-counted[word], word))[:k]
""",
    ),
    task(
        "mask_tokens(text: str, secrets: list[str]) -> str",
        """Replace every occurrence of a secret in the text by `[MASK]`. Where secrets overlap, the longest that
        begins at a place wins; what was masked is not looked at again. Empty secrets are ignored.""",
        family=FAMILY,
        visible=[
            (("key k-91 used", ["k-91"]), "key [MASK] used"),
            (("pin 12 or 123", ["123", "12"]), "pin [MASK] or [MASK]"),
        ],
        hidden=[
            (("user tom99", ["tom", "tom99"]), "user [MASK]"),
            (("nothing here", []), "nothing here"),
            (("ab", [""]), "ab"),
            (("a token", ["a", "MASK"]), "[MASK] token"),
            (("x.y xzy", ["x.y"]), "[MASK] xzy"),
        ],
        relations=(
            unchanged("order of the secrets", lambda text, secrets: (text, secrets[::-1])),
            unchanged("a secret named twice", lambda text, secrets: (text, secrets + secrets)),
        ),
        reference="""
import re

def mask_tokens(text, secrets):
    known = sorted((secret for secret in secrets if secret), key=len, reverse=True)
    if not known:
        return text
    return re.sub("|".join(map(re.escape, known)), "[MASK]", text)
""",
        wrong="""
def mask_tokens(text, secrets):
    for secret in secrets:
        text = text.replace(secret, "[MASK]")
    return text
""",
    ),
    task(
        "normalize_codes(codes: list[str]) -> list[str]",
        """Give every code without blanks at its ends and in capital letters, in the same order; a code that is empty
        then stays in the list as an empty text.""",
        family=FAMILY,
        visible=[(([" qz ", "Rt"],), ["QZ", "RT"]), ((["up"],), ["UP"])],
        hidden=[
            ((["", " é", "pQ"],), ["", "É", "PQ"]),
            (([],), []),
            ((["a b", "\tz\n"],), ["A B", "Z"]),
            ((["x", "x"],), ["X", "X"]),
        ],
        relations=(
            idempotent(),
            becomes("order turned", lambda codes: (codes[::-1],), lambda out: out[::-1]),
        ),
        reference="""
def normalize_codes(codes):
    return [code.strip().upper() for code in codes]
""",
        wrong="""
def normalize_codes(codes):
    return [code.strip().upper() for code in codes if code.strip()]
""",
    ),
    task(
        "to_snake(name: str) -> str",
        """Turn a name in camel case into snake case: small letters, an underscore before each capital that follows a
        small letter or a digit, and before the last capital of a run that is followed by a small letter.""",
        family=FAMILY,
        visible=[(("fileName",), "file_name"), (("Total",), "total"), (("maxRowCount",), "max_row_count")],
        hidden=[(("HTTPServer",), "http_server"), (("parseURL",), "parse_url"), (("v2Api",), "v2_api"), (("",), "")],
        relations=(idempotent(), always("no capitals", lambda out, _name: out == out.lower())),
        reference="""
import re

def to_snake(name):
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\\1_\\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\\1_\\2", name).lower()
""",
        wrong="""
import re

def to_snake(name):
    return re.sub(r"(?<!^)([A-Z])", r"_\\1", name).lower()
""",
    ),
    task(
        "title_words(text: str) -> str",
        """Write each word (separated by blanks) with a capital first letter and the rest in small letters, joined by
        one blank. The words `and`, `of` and `the` stay small unless they come first.""",
        family=FAMILY,
        visible=[(("lord of the rings",), "Lord of the Rings"), (("DOGS and cats",), "Dogs and Cats")],
        hidden=[
            (("the end OF time",), "The End of Time"),
            (("",), ""),
            (("  two   blanks ",), "Two Blanks"),
            (("don't stop",), "Don't Stop"),
        ],
        relations=(idempotent(), unchanged("in capitals", lambda text: (text.upper(),))),
        reference="""
def title_words(text):
    done = []
    for word in text.lower().split():
        small = word in ("and", "of", "the") and done
        done.append(word if small else word[0].upper() + word[1:])
    return " ".join(done)
""",
        wrong="""
def title_words(text):
    small = ("and", "of", "the")
    return " ".join(w.lower() if w.lower() in small else w.title() for w in text.split())
""",
    ),
    task(
        "wrap_words(text: str, width: int) -> list[str]",
        """Break the text into lines of at most `width` characters at blanks, putting as many words on a line as fit,
        one blank between them. A word longer than `width` stands on a line of its own, whole.""",
        family=FAMILY,
        visible=[(("one two three", 7), ["one two", "three"]), (("hi", 10), ["hi"])],
        hidden=[
            (("", 5), []),
            (("a incomprehensible b", 4), ["a", "incomprehensible", "b"]),
            (("aa bb cc", 5), ["aa bb", "cc"]),
            (("aa bb cc", 8), ["aa bb cc"]),
            ((" x  y ", 3), ["x y"]),
        ],
        relations=(
            always("all words, in order", lambda out, text, _width: " ".join(out).split() == text.split()),
            unchanged("blanks doubled", lambda text, width: (text.replace(" ", "  "), width)),
        ),
        reference="""
def wrap_words(text, width):
    lines = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
""",
        wrong="""
def wrap_words(text, width):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) <= width:
            lines[-1] = (lines[-1] + " " + word).strip()
        else:
            lines.append(word)
    return lines
""",
    ),
    task(
        "count_vowel_groups(word: str) -> int",
        "Count the groups of neighbouring vowels (a, e, i, o, u, y, small or capital) in the word.",
        family=FAMILY,
        visible=[(("banana",), 3), (("queue",), 1), (("sky",), 1)],
        hidden=[(("",), 0), (("Eerie",), 2), (("rhythm",), 1), (("AEIOU-x-a",), 2), (("tsk",), 0)],
        relations=(
            unchanged("backwards", lambda word: (word[::-1],)),
            unchanged("in capitals", lambda word: (word.upper(),)),
        ),
        reference="""
def count_vowel_groups(word):
    groups, inside = 0, False
    for letter in word.lower():
        vowel = letter in "aeiouy"
        groups += vowel and not inside
        inside = vowel
    return int(groups)
""",
        wrong="""
import re

def count_vowel_groups(word):
    return len(re.findall("[aeiouy]+", word))
""",
    ),
    task(
        "initials(name: str) -> str",
        """Give the first letter of each part of the name as a capital followed by a dot. Parts are separated by
        blanks or hyphens; initials of parts joined by a hyphen stay joined by one.""",
        family=FAMILY,
        visible=[(("ada lovelace",), "A.L."), (("Grace Brewster Hopper",), "G.B.H.")],
        hidden=[(("jean-luc picard",), "J.-L.P."), (("",), ""), (("  cher ",), "C."), (("ann  lee",), "A.L.")],
        relations=(
            unchanged("in small letters", lambda name: (name.lower(),)),
            becomes("one more name", lambda name: (name + " Zed",), lambda out: out + "Z."),
        ),
        reference="""
def initials(name):
    return "".join("-".join(p[0].upper() + "." for p in part.split("-") if p) for part in name.split())
""",
        wrong="""
def initials(name):
    return "".join(part[0].upper() + "." for part in name.split(" "))
""",
    ),
)
