"""What a verb prints, asked for as a person asks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.cli import main


def printed(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    assert main([*map(str, words)]) == code, words
    return capsys.readouterr().out


def printed_json(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> Any:
    """What it gives a program; nothing else may be on stdout."""
    return json.loads(printed(capsys, *words, "--json", code=code))
