"""Lengths of text as the catalogue counts them."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\w+|[^\w\s]")


def count_tokens(text: str) -> int:
    """Tokens of a text: runs of word characters, or one punctuation mark (signals.yaml, conventions)."""
    return len(_TOKEN.findall(text)) if text else 0


def estimate_tokens(n_chars: int) -> int:
    """ceil(characters / 4): the catalogue's estimate where counting would cost too much (tool results, thinking)."""
    return (n_chars + 3) // 4
