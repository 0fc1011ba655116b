"""Secrets by their role, in forms of many commands, calls, files and languages; harmless lines of the same shapes."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable

import pytest

from agentsignals.redaction import Redactor
from tests.redaction.forms import FORMS, HARMLESS


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
    forms = [form.strip().replace("⏎", "\n") for form in FORMS[group].strip().split("\n")]
    left = []
    for form in forms:
        secret = STYLES[style](chance)
        text = form.replace("§", secret)
        outs = (Redactor().text(text), Redactor().text(json.dumps({"command": text})))
        left += [form] if any(secret in out for out in outs) else []
    assert len(left) <= 0.05 * len(forms), left


def test_harmless_lines_of_the_same_shapes_stay() -> None:
    lines = [line.strip().replace("⏎", "\n") for line in HARMLESS.strip().split("\n")]
    changed = {line: told for line in lines if (told := Redactor().text(line)) != line}
    assert len(changed) <= 0.02 * len(lines), changed
