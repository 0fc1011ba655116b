"""Names of models: how agents, routers and clouds spell them, and the spelling that price tables share.

A spelling adds where the call went (`bedrock/us.anthropic.…-v1:0`), how it was asked for (`…-high`, `…:thinking`,
`…[1m]`) or which snapshot answered (`…-20250929`), and some write the parts in another order (`claude-4.5-sonnet`).
What is left has to be the whole name of a known model, so that a successor stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
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
"""Separators that some routers write for the `/` behind a route or a maker."""
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
_EFFORT = r"none|off|minimal|low|medium|high|xhigh|extra-high"
_ENDINGS = (
    re.compile(r"\[1m\]$"),
    re.compile(rf":(?:{_EFFORT}|max|thinking|adaptive)$"),
    re.compile(rf"-?\((?:{_EFFORT}|max|thinking|preview|default)(?:-(?:effort|reasoning|thinking))?\)$"),
    re.compile(r"@(?:\d{8}|default|latest)$"),
    re.compile(r"-20\d\d(?:\d{4}|-\d\d-\d\d)$"),
    re.compile(r"(?<=\d)(?:-[a-z]+)*(?P<end>-latest)$"),
    re.compile(r"(?<!gemini-2-5-flash)-preview$"),  # which had other prices than its release
    re.compile(r"-maas$"),
    re.compile(rf"-(?:{_EFFORT})$"),
    re.compile(r"^claude-.*?(?P<end>-(?:max|thinking(?:[-:]\d+k?)?|1m|200k|v\d(?::\d)?)|:beta)$"),
)  # fmt: skip
"""Endings of a name that change no list price. `:free` does, and so does `-fast`. `-max` is a model in other families
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


# -- one model under several names -------------------------------------------------------------------------------------

_HOSTS = _ROUTES | frozenset((
    "accounts", "anyscale", "baseten", "cerebras", "chutes", "cohere", "custom-openai", "deepinfra", "featherless",
    "fireworks", "fireworks-ai", "friendliai", "groq", "hf", "hosted-vllm", "huggingface", "hyperbolic", "inference",
    "lambda", "llamacpp", "lm-studio", "lmstudio", "local", "meta-llama", "nebius", "novita", "nscale", "nvidia",
    "nvidia-nim", "ollama", "ollama-chat", "openai-compatible", "parasail", "perplexity", "replicate", "sambanova",
    "serverless", "sglang", "siliconflow", "targon", "text-completion-openai", "together", "together-ai",
    "togethercomputer", "vllm", "volcengine", "watsonx",
))  # fmt: skip
"""Routes, and hosts that serve models of others: what they charge is their own, the model is not."""
_LOCATION = re.compile(r"(?:[./~]|[a-z]:\\|[a-z0-9]+://).*", re.DOTALL)
"""A folder or address of weights, which names no model."""
_SERVED_AS = re.compile(r"(?::(?:free|nitro|floor|exacto)|-maas|@default|[-@]latest)$")
"""Suffixes for a kind of server, or for the newest snapshot."""
_SNAPSHOT = re.compile(r"(?:-v\d)?[-@](20\d\d)-?(\d\d)-?(\d\d)$")
_FIRST = re.compile(r"(?<=^claude-opus-4)-0$|(?<=^claude-sonnet-4)-0$")
"""Anthropic's name of the first snapshot of Claude 4."""


def same_models(logged: Collection[str]) -> dict[str, str]:
    """Map each spelling to the shortest spelling of the same model among these.

    Provider, host, order and punctuation are spelling. Effort, size, quantization and version are not. A name without a
    date is the dated one if only one date is there. A maker that nobody knows is part of the name, unless it is left
    out in only one way.
    """
    bases: dict[str, dict[tuple[str, ...], dict[str, list[str]]]] = {}
    for name in set(logged):
        ways, base, date = _identity(name)
        bases.setdefault(base, {}).setdefault(ways, {}).setdefault(date, []).append(name)
    made: dict[str, str] = {}
    for by_way in bases.values():
        for by_date in _one_maker(by_way):
            dates = sorted(date for date in by_date if date)
            if "" in by_date and len(dates) == 1:
                by_date[dates[0]] += by_date.pop("")
            for names in by_date.values():
                shortest = min(names, key=lambda name: (len(name), name))
                made |= dict.fromkeys(names, shortest)
    return made


def _identity(name: str) -> tuple[tuple[str, ...], str, str]:
    """Return unknown makers and hosts, the name without them and without its date, and the date."""
    low = name.strip().lower()
    if _LOCATION.fullmatch(low):
        return (), name, ""
    whole = _ARN.fullmatch(low) or _PUBLISHED.fullmatch(low)
    *ways, base = _PARTED.sub("/", whole["rest"] if whole else low.lstrip("@~")).split("/")
    route, colon, model = base.partition(":")
    base = model if colon and route.replace("_", "-") in _HOSTS else base
    vendor = _VENDOR.fullmatch(base)
    base = spelled(_SERVED_AS.sub("", vendor["name"] if vendor else base)).removeprefix("databricks-")
    date = "".join(found.groups()) if (found := _SNAPSHOT.search(base)) else ""
    base = _FIRST.sub("", _SNAPSHOT.sub("", base))
    ways = [way.replace("_", "-") for way in ways]
    unknown = tuple(way for way in ways if way not in _HOSTS and not _PLACE.fullmatch(way))
    return () if maker(base) and len(unknown) == 1 else unknown, base, date


def _one_maker(by_way: dict[tuple[str, ...], dict[str, list[str]]]) -> Iterator[dict[str, list[str]]]:
    """Join names whose makers are the end of just one other's."""
    ends: dict[tuple[str, ...], list[tuple[str, ...]]] = {
        way: [other for other in by_way if other != way and other[len(other) - len(way) :] == way] for way in by_way
    }
    joined: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for way, by_date in by_way.items():
        outermost = [other for other in ends[way] if not ends[other]]
        into = joined.setdefault(outermost[0] if len(outermost) == 1 else way, {})
        for date, names in by_date.items():
            into.setdefault(date, []).extend(names)
    yield from joined.values()
