"""Model names as agents log them, reduced to the names of the price table. Only exact names match: a successor whose
name merely begins like a known model's stays unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ROUTES = frozenset((
    "amazon-bedrock", "anthropic", "azure", "bedrock", "copilot", "dashscope", "deepseek", "gemini", "github-copilot",
    "google", "google-vertex", "minimax", "mistral", "mistralai", "models", "moonshot", "moonshotai", "openai",
    "openai-codex", "opencode", "openrouter", "qwen", "vertex", "vertex_ai", "x-ai", "xai", "z-ai", "zai", "zai-org",
    "zhipuai",
))  # fmt: skip
"""Ways to a model that stand before its name, as in `openrouter/anthropic/claude-…`. The price is the list price of the
model's maker, whatever the way there charged."""

_EFFORTS = frozenset(("none", "off", "minimal", "low", "medium", "high", "xhigh", "max", "thinking"))
"""What may follow a colon without changing the price; `:free` and the like do change it."""

_BEDROCK = re.compile(r"(?:(?:us|eu|apac|au|ca|jp|global)\.)?anthropic\.(?P<name>.+?)(?:-v\d+(?::\d+)?)?")
_BIG_WINDOW = re.compile(r"\[1m\]$")
_AT = re.compile(r"@(?:\d{8}|default|latest)$")
_DATE = re.compile(r"-20\d{2}(?:\d{4}|-\d{2}-\d{2})$")
_POINT = re.compile(r"(?<=\d)\.(?=\d)")


def candidates(logged: str) -> Iterator[str]:
    """Names to look up, the most exact first. A dated name may be priced apart from the undated one."""
    name = _without_route(logged.strip().lower())
    name = _AT.sub("", _BIG_WINDOW.sub("", _without_effort(name)))
    yield name
    if name.startswith("claude-"):
        name = _POINT.sub("-", name)
        yield name
    yield _DATE.sub("", name)


def _without_route(name: str) -> str:
    route, slash, rest = name.partition("/")
    while slash and route in _ROUTES:
        name = rest
        route, slash, rest = name.partition("/")
    bedrock = _BEDROCK.fullmatch(name)
    return bedrock["name"] if bedrock else name


def _without_effort(name: str) -> str:
    before, colon, effort = name.rpartition(":")
    return before if colon and effort in _EFFORTS else name
