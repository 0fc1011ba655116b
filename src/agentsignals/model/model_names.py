"""Names of models: how agents, routers and clouds spell them, and the spelling that price tables share.

A spelling adds where the call went (`bedrock/us.anthropic.…-v1:0`), how it was asked for (`…-high`, `…:thinking`,
`…[1m]`) or which snapshot answered (`…-20250929`), and some write the parts in another order (`claude-4.5-sonnet`).
What is left has to be the whole name of a known model, so that a successor stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_ROUTES = frozenset((
    "aihubmix", "amazon-bedrock", "anthropic", "anyrouter", "azure", "azure-ai", "azure-foundry", "azure-openai",
    "bedrock", "bedrock-converse", "copilot", "cursor", "dashscope", "databricks", "deepseek", "deepseek-ai",
    "gateway", "gemini", "github-copilot", "google", "google-ai-studio", "google-genai", "google-gla",
    "google-vertex", "google-vertex-anthropic", "helicone", "kilo", "kilocode", "litellm", "litellm-proxy",
    "minimax", "minimaxai", "mistral", "mistralai", "models", "moonshot", "moonshotai", "openai", "openai-codex",
    "opencode", "openrouter", "portkey", "publishers", "qwen", "requesty", "sap", "sap-ai-core", "snowflake",
    "vercel", "vercel-ai-gateway", "vertex", "vertex-ai", "vertex-ai-beta", "vertexai", "x-ai", "xai", "z-ai",
    "z.ai", "zai", "zai-org", "zed.dev", "zenmux", "zhipuai",
))  # fmt: skip
"""Makers, and routes to their models, that precede a name, as in `openrouter/anthropic/claude-…`. The price is the list
price of the model's maker, whatever the route charged. A host with weights of its own and a server on this machine are
no routes."""
_PARTED = re.compile(r",|--")
"""What some routers write for the `/` behind a route or a maker."""
_PLACE = re.compile(
    r"global|us|eu|apac|au|ca|jp|us-gov|converse|invoke|[a-z]{2}(?:-[a-z]+)+-?\d|(?:global|data-zone)-standard"
)
"""Regions and kinds of deployment, which LiteLLM writes between a cloud and a name."""
_PUBLISHED = re.compile(r"(?:.*/)?publishers/(?P<rest>[^/]+/models/.+)")
"""A resource of Vertex: a project, a location, a maker."""
_ARN = re.compile(r"(?:.*/)?arn:aws[\w-]*:bedrock:[^/]*:(?:foundation-model|inference-profile)/(?P<rest>.+)")
_VENDOR = re.compile(
    r"(?:(?:global|us-gov|us|eu|apac|au|ca|jp)\.)?(?:anthropic|deepseek|google|minimax|mistral|moonshot|moonshotai|openai|"
    r"qwen|xai|zai)\.(?P<name>.+?)(?:-v?\d+:\d+(?::\w+)?|-v\d+)?"
)
"""A name in Bedrock: a region, a maker, the model, and the version of the entry."""
_POINT = re.compile(r"(?<=\d)[.p](?=\d)")
_CLAUDE = re.compile(r"claude-(?P<version>\d+(?:-\d)?)-(?P<family>[a-z]+)")
"""The order of Claude 3 and of Cursor: the version before the family."""
_EFFORT = r"none|off|minimal|low|medium|high|xhigh"
_ENDINGS = (
    re.compile(r"\[1m\]$"),
    re.compile(rf":(?:{_EFFORT}|max|thinking|adaptive)$"),
    re.compile(rf"-?\((?:{_EFFORT}|max|thinking|preview|default)(?:-(?:effort|reasoning|thinking))?\)$"),
    re.compile(r"@(?:\d{8}|default|latest)$"),
    re.compile(r"-20\d\d(?:\d{4}|-\d\d-\d\d)$"),
    re.compile(r"(?<=\d)(?:-[a-z]+)*(?P<end>-latest)$"),
    re.compile(r"-preview$"),
    re.compile(r"-maas$"),
    re.compile(rf"-(?:{_EFFORT})$"),
    re.compile(r"^claude-.*?(?P<end>-(?:max|thinking|1m|200k|v\d(?::\d)?)|:beta)$"),
)  # fmt: skip
"""What follows a name and changes no list price. `:free` does, and so does `-fast`. `-max` is a model in other families
than Claude's, and `-latest` behind no version is whatever came last."""
_MAKERS = (
    ("anthropic", re.compile(r"claude|(?:sonnet|opus|haiku|fable|mythos|opusplan)\b")),
    ("openai", re.compile(r"gpt|codex|chatgpt|o[1345](?:-|$)")),
    ("google", re.compile(r"gemini|gemma")),
    ("mistral", re.compile(r"mistral|ministral|devstral|codestral|magistral|labs-devstral")),
    ("moonshot", re.compile(r"kimi|moonshot")),
    ("zai", re.compile(r"glm")),
    ("alibaba", re.compile(r"qwen|qwq")),
    ("deepseek", re.compile(r"deepseek")),
    ("minimax", re.compile(r"minimax")),
    ("xai", re.compile(r"grok")),
    ("meta", re.compile(r"llama")),
)
"""Makers by the beginning of a model's name, without the route."""


def spelled(name: str) -> str:
    """Return a name as tables and logs share it: in lower case, versions with dashes, Claude's family before them."""
    name = _POINT.sub("-", name.strip().lower().replace(" ", "-").replace("_", "-"))
    if turned := _CLAUDE.match(name):
        name = f"claude-{turned['family']}-{turned['version']}{name[turned.end() :]}"
    return name


@lru_cache(maxsize=1024)
def candidates(logged: str) -> tuple[str, ...]:
    """Return the names to look up, the most exact first: a dated name may have a price of its own. None for a model of
    a host that is no route."""
    name = _without_route(logged.strip().lower())
    if name is None:
        return ()
    if vendor := _VENDOR.fullmatch(name):
        name = vendor["name"]
    name = spelled(name).removeprefix("databricks-")
    found = [name]
    while (shorter := _shortened(name)) is not None:
        found.append(name := shorter)
    return tuple(found)


def maker(logged: str) -> str | None:
    """Return the maker of a model; None for a name that tells none."""
    name = _PARTED.sub("/", logged.strip().lower()).rpartition("/")[2]
    if vendor := _VENDOR.fullmatch(name):
        name = vendor["name"]
    name = spelled(name).removeprefix("databricks-")
    return next((who for who, begins in _MAKERS if begins.match(name)), None)


def _without_route(name: str) -> str | None:
    """Return a name without what precedes it; None where somebody unknown does."""
    whole = _ARN.fullmatch(name) or _PUBLISHED.fullmatch(name)
    *ways, name = _PARTED.sub("/", whole["rest"] if whole else name.lstrip("@~")).split("/")
    route, colon, model = name.partition(":")
    if colon and route.replace("_", "-") in _ROUTES:  # `anthropic:claude-…`, as Python libraries write it
        name = model
    ways = [way.replace("_", "-") for way in ways]
    is_known = all(way in _ROUTES or _PLACE.fullmatch(way) for way in ways)
    return name if is_known else None


def _shortened(name: str) -> str | None:
    for ending in _ENDINGS:
        if found := ending.search(name):
            return name[: found.start("end" if ending.groups else 0)]
    return None


def price_keys(listed: str) -> Iterator[str]:
    """Yield the spellings that a listed name answers to: its own, then without `-latest` or `-preview`."""
    name = spelled(listed)
    yield name
    for ending in ("-latest", "-preview"):
        if name.endswith(ending) and any(map(str.isdigit, name)):
            yield name.removesuffix(ending)
