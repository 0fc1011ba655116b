"""The forms of `forms_by_class.txt` with made-up values, the same every time."""

from __future__ import annotations

import random
import re
import string
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LETTERS = string.ascii_letters + string.digits
_WORDS = (
    *("kelp", "harbour", "walnut", "tram", "reef", "sommer", "otter", "granite", "velvet", "maple", "comet", "saddle"),
    *("tiger", "puffin", "lantern", "orchid", "marble", "thistle", "cobalt", "juniper", "ember", "willow", "falcon"),
    "quartz",
)
_SEED_WORDS = ("abandon", "ability", "able", "about", "above", "absent", "absorb", "abstract", "absurd", "abuse")
_ALPHABETS = {
    "": _LETTERS,
    "h": "0123456789abcdef",
    "U": string.ascii_uppercase + string.digits,
    "d": string.digits,
    "B": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}
_PLACE = re.compile(r"§(pem|words|uuid|bauth|bp|wg|b64u|b64|[phUdB]?)(\d*)")


class Form(NamedTuple):
    kind: str
    text: str
    secrets: list[str]


def forms() -> Iterator[Form]:
    """Yield every form; those of look-alikes have no secrets."""
    kind = ""
    for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            kind = line[2:]
        elif not line.startswith("; "):
            chance, secrets = random.Random(f"{line}2026"), list[str]()  # noqa: S311  (made-up values)
            written = line.replace("\\n", "\n").replace("\\t", "\t").replace("\\u001b", "\x1b")
            text = _PLACE.sub(lambda place, c=chance, s=secrets: _filled(place, c, s), written)  # type: ignore[misc]
            yield Form(kind, text, secrets)


def _chosen(chance: random.Random) -> str:
    """Return a password as people choose them."""

    def word() -> str:
        return chance.choice(_WORDS)

    def drawn(least: int, most: int) -> str:
        return "".join(chance.choices(_LETTERS, k=chance.randrange(least, most)))

    styles = (
        lambda: f"{word().title()}-{chance.randrange(10, 99)}-{word()}",
        lambda: f"{word().title()}{chance.randrange(1990, 2030)}{chance.choice('!*~+')}",
        lambda: f"{word().replace('o', '0').replace('e', '3').title()}{word().title()}{chance.choice('!$')}7",
        lambda: f"{drawn(10, 15)}{chance.choice('!.*')}{chance.randrange(10)}",
        lambda: f"{drawn(12, 17)}{chance.randrange(10)}",
        lambda: f"{word()}_{word()}{chance.randrange(100, 9999)}",
        lambda: f"{word()}.{chance.randrange(10, 99)}.{word().title()}",
    )
    return chance.choice(styles)()


def _filled(place: re.Match[str], chance: random.Random, secrets: list[str]) -> str:
    kind, n = place[1], int(place[2] or 32)
    if kind in _ALPHABETS:
        value = "".join(chance.choices(_ALPHABETS[kind], k=n))
    elif kind == "p":
        value = _chosen(chance)
    elif kind in ("bp", "bauth"):
        value = b64encode((_chosen(chance) if kind == "bp" else f"bob:{_chosen(chance)}").encode()).decode()
    elif kind == "uuid":
        value = "-".join("".join(chance.choices(_ALPHABETS["h"], k=k)) for k in (8, 4, 4, 4, 12))
    elif kind == "pem":
        lines = ["".join(chance.choices(_LETTERS + "+/", k=64)) for _ in range(4)]
        secrets += lines
        return "\n".join(lines)
    elif kind == "words":
        value = " ".join(chance.choices(_SEED_WORDS, k=12))
    else:
        value = b64encode(chance.randbytes(32 if kind == "wg" else 48)).decode()
        value = value.replace("+", "%2B").replace("/", "%2F") if kind == "b64u" else value
    secrets.append(value)
    return value


def left_in(text: str, secrets: list[str]) -> list[str]:
    """Return the secrets that stand in a text, in letters of any case."""
    low = text.lower()
    return [secret for secret in secrets if secret.lower() in low]
