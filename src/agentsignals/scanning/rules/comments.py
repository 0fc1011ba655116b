"""A text with its comments blanked, so that a rule does not take an explanation for code. Strings stay."""

from __future__ import annotations

import re

_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_SLASHES = re.compile(
    rf"{_STRING}|`(?:\\.|[^`\\])*(?:`|\Z)|(?P<comment>(?<![:\\])//[^\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL
)
_HASH = re.compile(rf"{_STRING}|(?P<comment>(?:(?<=\s)|^)#(?!\{{)[^\n]*)", re.MULTILINE | re.DOTALL)
_PHP = re.compile(
    rf"{_STRING}|(?P<comment>(?<![:\\])//[^\n]*|/\*.*?(?:\*/|\Z)|(?:(?<=\s)|^)#(?!\[)[^\n]*)", re.MULTILINE | re.DOTALL
)
_MARKUP = re.compile(r"(?P<comment><!--.*?(?:-->|\Z))", re.DOTALL)
_OF_LANGUAGE = {
    **dict.fromkeys(("javascript", "go", "java", "csharp", "c", "rust"), _SLASHES),
    **dict.fromkeys(("shell", "yaml", "ruby", "terraform", "dockerfile", "python"), _HASH),
    "php": _PHP,
    "html": _MARKUP,
}
_SHOWN = re.compile(r"[^\n]")


def without_comments(text: str, language: str) -> str:
    """The text of the same length, each character of a comment a space. An open comment ends with the file."""
    pattern = _OF_LANGUAGE.get(language)
    return pattern.sub(_blanked, text) if pattern is not None else text


def _blanked(match: re.Match[str]) -> str:
    return _SHOWN.sub(" ", match[0]) if match.lastgroup else match[0]
