"""Keys of every issuer in the table, in every writing; what a published scanner sees; harmless texts of each shape."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest

from agentsignals.redaction import Redactor, redacted
from agentsignals.redaction.keys import ISSUERS, Issuer
from tests.quick import each_row
from tests.redaction.planted import KINDS, drawn

LETTERS = string.ascii_letters + string.digits + "_-"
SAMPLES = [(issuer, prefix) for issuer in ISSUERS for prefix in issuer.prefixes.split()]


def sample(issuer: Issuer, prefix: str) -> str:
    """A key of an issuer, drawn; none that opens anything."""
    chance = random.Random(prefix)  # noqa: S311  (draws, no secret)
    letters = LETTERS[:-2] if "14" in issuer.ahead else "".join(c for c in LETTERS if re.fullmatch(issuer.body, c))
    n = issuer.whole or (32 if issuer.least == 32 else issuer.least + 16)
    body = chance.choice([c for c in letters if c.isalpha()]) + drawn(chance, n - 2, letters) + "7"
    return prefix + (body[:14] + "." + body[15:] if "14" in issuer.ahead else body)


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in text)


def entities(text: str) -> str:
    return "".join(f"&#{ord(c)};" for c in text)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def spaced(text: str) -> str:
    return " ".join(f"{c:02x}" for c in text.encode())


def dumped(text: str) -> str:
    """As `xxd` prints it: beside the bytes a column of letters, with dots for line ends."""
    rows = [(n, text[n : n + 16]) for n in range(0, len(text), 16)]
    return "".join(f"{n:08x}: {row.encode().hex(' ', 2):40} {row.replace(chr(10), '.')}\n" for n, row in rows)


def wide(text: str) -> str:
    """In letters of full width; a blank has a wide one elsewhere in Unicode, and a line's end has none."""
    return "".join({" ": "\u3000", "\n": "\n"}.get(c) or chr(ord(c) + 0xFEE0) for c in text)


def lines_of(encoded: str, n: int) -> str:
    return "\n".join(encoded[at : at + n] for at in range(0, len(encoded), n))


WRITINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": lambda key: json.dumps({"type": "text", "text": f"use {key} now"}),
    "listing": lambda key: f"    12\tDEBUG=1\n    13\t{key}\n",
    "diff": lambda key: f"@@ -1 +1 @@\n-{key}\n+x\n",
    "shell": lambda key: f"export ITEM='{key}' && make",
    "XML": lambda key: f"<item>{key}</item>",
    "address": lambda key: f"https://x.test/v1?item={quote(key, safe='')}&page=2",
    "small letters": str.lower,
    "capitals": str.upper,
    "base64": lambda key: f"data: {encoded(f'item is {key} here')}",
    "base64 twice": lambda key: encoded(encoded(f"item {key}")),
    "hex": lambda key: f"xxd {f'item {key} here'.encode().hex()}",
    "percent": lambda key: "".join(f"%{ord(c):02X}" for c in f"a {key}"),
    "percent twice": lambda key: quote("".join(f"%{ord(c):02X}" for c in f"a {key}")),
    "unicode": lambda key: f'"{escaped(key)}"',
    "entities": lambda key: f"<p>{entities(key)}</p>",
    "base64 of UTF-16": lambda key: f"powershell -e {base64.b64encode(key.encode('utf-16-le')).decode()}",
    "packed": lambda key: base64.b64encode(gzip.compress(f"item {key}".encode())).decode(),
    "base64 in bytes": lambda key: base64.b64encode(bytes(range(128, 155)) + key.encode() + b"\xff" * 20).decode(),
    "hex in lines": lambda key: lines_of(f"item {key} here".encode().hex(), 60),
    "hex apart": lambda key: f"<Buffer {spaced(f'a {key}')}>",
    "hex with 0x": lambda key: "{" + ", ".join(f"0x{c:02x}" for c in f"a {key}".encode()) + "}",
    "dump": lambda key: dumped(f"item {key} here"),
    "octal": lambda key: "".join(f"\\{ord(c):03o}" for c in f"a {key}"),
    "entities without their end": lambda key: "".join(f"&#{ord(c)}" for c in f"a {key}"),
    "percent, of percent": lambda key: "".join(f"%252525{ord(c):02x}" for c in f"a {key}"),
    "wide letters": lambda key: f"the item is this: {wide(key)}",
}


def parts(said: str, key: str) -> set[str]:
    """Twelve characters each of how a key stands in a writing, without what stands around it."""
    core = key[len(key) // 2 :]
    return (
        {core[n : n + 8].lower() for n in range(max(1, len(core) - 7))}
        if core.lower() in said.lower()
        else {said[20:52]}
    )


@pytest.mark.slow
@pytest.mark.parametrize("writing", WRITINGS)
def test_no_key_of_any_issuer_passes_in_any_writing(writing: str) -> None:
    passed = []
    for issuer, prefix in SAMPLES:
        if writing == "small letters" and prefix == "AC":  # in small letters it is a hash
            continue
        key = sample(issuer, prefix)
        said = WRITINGS[writing](key)
        told = Redactor().text(said).lower()
        if any(part in told for part in parts(said, key)):
            passed.append(prefix)
    assert passed == []


@pytest.mark.parametrize("kind", ["rsa", "pgp", "gcp account"])
def test_a_private_key_in_small_letters_is_one(kind: str) -> None:
    secret = KINDS[kind](random.Random(kind))  # noqa: S311  (draws, no secret)
    text = f"see\n{secret.around[0]}{secret.value}{secret.around[1]}and go".lower()
    assert redacted(text) == "see\n[private key]\nand go"


@each_row("kind", ["mail", "postgres", "db password", "mac user", "docker login", "ssh", "jwt", "bearer"])
@each_row("writing", ["base64", "percent", "hex", "unicode", "entities"])
def test_other_secrets_are_looked_for_in_other_writings(kind: str, writing: str) -> None:
    secret = KINDS[kind](random.Random(kind))  # noqa: S311  (draws, no secret)
    text = f"{secret.name}={secret.around[0]}{secret.value}{secret.around[1]}"
    said = WRITINGS[writing](text)
    told = Redactor().text(said)
    value = WRITINGS[writing](secret.value.splitlines()[0])
    inner = value[len(value) // 2 - 8 : len(value) // 2 + 8]
    assert inner not in told and secret.value[:8] not in told


def seen(text: str) -> set[str]:
    """What a published scanner's detectors of shapes see in a text."""
    util = pytest.importorskip("detect_secrets.core.plugins.util", reason="the scanner is not installed")
    base = pytest.importorskip("detect_secrets.plugins.base")
    plugins = util.get_mapping_from_secret_type_to_class().items()
    shapes = [(name, plugin()) for name, plugin in plugins if issubclass(plugin, base.RegexBasedDetector)]
    return {
        name for name, plugin in shapes if any(True for line in text.split("\n") for _ in plugin.analyze_string(line))
    }


def test_a_published_scanner_sees_nothing_in_what_was_masked() -> None:
    chance = random.Random(3)  # noqa: S311  (draws, no secret)
    planted = [make(chance) for make in KINDS.values()]
    lines = [f"{one.name}={one.around[0]}{one.value}{one.around[1]}" for one in planted]
    text = "\n".join([*lines, *(f"use {sample(*one)} now" for one in SAMPLES)])
    assert len(seen(text)) >= 14
    assert seen(redacted(text)) == set()
