"""Words and text: lists, patterns, prose, languages."""

from functools import cache
from pathlib import Path
from typing import Any


@cache
def word_lists(name: str) -> dict[str, Any]:
    """Return the lists of a TOML file of this folder."""
    import tomllib  # noqa: PLC0415  (`--help` loads this package, and needs no list)

    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
