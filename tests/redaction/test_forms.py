"""Secrets by their role, in forms of many commands, calls, files and languages; harmless lines of the same shapes."""

from __future__ import annotations

import json
import random
import string
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsignals.redaction import Redactor

FORMS = tomllib.loads(Path(__file__).with_name("forms.toml").read_text("utf-8"))
HARMLESS = FORMS.pop("harmless")


def drawn(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_letters, k=6) + chance.choices(string.digits, k=2)) + "xQ7w9Z"


def signed(chance: random.Random) -> str:
    return f"{''.join(chance.choices(string.ascii_letters, k=4))}{chance.choice('!%+')}q{chance.randrange(10, 99)}Rbv"


def word(chance: random.Random) -> str:
    first, last = chance.choice(("Falcon", "Winter", "Harbour")), chance.choice(("house", "berg", "sky"))
    return f"{first}{last}{chance.randrange(1000, 9999)}"


STYLES: dict[str, Callable[[random.Random], str]] = {"drawn": drawn, "with a sign": signed, "words": word}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("group", FORMS)
def test_a_secret_is_known_by_its_role(group: str, style: str) -> None:
    chance = random.Random(f"{group} {style}")  # noqa: S311  (draws, no secret)
    forms = [form.replace("⏎", "\n") for form in FORMS[group].splitlines()]
    left = []
    for form in forms:
        secret = STYLES[style](chance)
        text = form.replace("§", secret)
        outs = (Redactor().text(text), Redactor().text(json.dumps({"command": text})))
        left += [form] if any(secret in out for out in outs) else []
    assert len(left) <= 0.05 * len(forms), left


def test_harmless_lines_of_the_same_shapes_stay() -> None:
    lines = [line.replace("⏎", "\n") for line in HARMLESS.splitlines()]
    changed = {line: told for line in lines if (told := Redactor().text(line)) != line}
    assert len(changed) <= 0.02 * len(lines), changed


BLIND = json.loads(Path(__file__).with_name("secret_forms.json").read_bytes())
"""Forms and look-alikes of somebody who had not read the rules (secret_forms.md)."""
SECRET_KINDS = frozenset(("key", "login", "private key", "secret"))


def test_of_forms_that_others_wrote_nearly_all_are_masked() -> None:
    left = Counter[str]()
    for entry in BLIND["secrets"]:
        told = Redactor().text(entry["text"]).lower()
        parts = [entry["secret"]] if isinstance(entry["secret"], str) else entry["secret"]
        left[entry["class"]] += any(part.lower() in told for part in parts if len(part) >= 8 or len(part) == 1)
    assert left.total() <= 0.05 * len(BLIND["secrets"]), left


def test_of_look_alikes_that_others_wrote_nearly_none_is_masked() -> None:
    changed = []
    for entry in BLIND["harmless"]:
        redactor = Redactor()
        redactor.text(entry["text"])
        changed += [entry["text"]] if redactor.counts.keys() & SECRET_KINDS else []
    assert len(changed) <= 0.02 * len(BLIND["harmless"]), changed
