"""Names of models, and prices of their calls: for traces without costs, and itemized in decimals to check by hand.

The list is `prices-<VERSION>.json` beside this file: USD per million tokens, each model with its source. A new list is
a new file with a new version; steps keep the version they were priced with in `cost_source`. A person's own prices
(`prices.toml` in the configuration folder, or `--prices FILE`) come first.

The spelling of a name adds where the call went (`bedrock/us.anthropic.…-v1:0`), how it was asked for (`…-high`,
`…:thinking`, `…[1m]`) or which snapshot answered (`…-20250929`), and some write the parts in another order
(`claude-4.5-sonnet`). What is left has to be the whole name of a listed model, so that a successor stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct, field

from agentsignals.errors import PriceError
from agentsignals.model import ABANDONED, ITERATION, MAIN, REPLAYED, SESSION_TOTAL, Session, Step
from agentsignals.model.lazy import deferred_pattern

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
_PARTED = deferred_pattern(r",|--")
"""Separators that some routers write for the `/` behind a route or a maker."""
_PLACE = deferred_pattern(
    r"global|us|eu|apac|au|ca|jp|us-gov|converse|invoke|[a-z]{2}(?:-[a-z]+)+-?\d|(?:global|data-zone)-standard"
)
"""Regions and kinds of deployment, which LiteLLM writes between a cloud and a name."""
_PUBLISHED = deferred_pattern(r"(?:.*/)?publishers/(?P<rest>[^/]+/models/.+)")
"""A resource of Vertex: a project, a location, a maker."""
_ARN = deferred_pattern(r"(?:.*/)?arn:aws[\w-]*:bedrock:[^/]*:(?:foundation-model|inference-profile)/(?P<rest>.+)")
_VENDOR = deferred_pattern(
    r"(?:(?:global|us-gov|us|eu|apac|au|ca|jp)\.)?(?:anthropic|deepseek|google|minimax|mistral|moonshot|moonshotai|openai|"
    r"qwen|xai|zai)\.(?P<name>.+?)(?:-v?\d+:\d+(?::\w+)?|-v\d+)?"
)
"""A name in Bedrock: a region, a maker, the model, and the version of the entry."""
_POINT = deferred_pattern(r"(?<=\d)[.p](?=\d)")
_CLAUDE = deferred_pattern(r"claude-(?P<version>\d+(?:-\d)?)-(?P<family>[a-z]+)")
"""The order of Claude 3 and of Cursor: the version before the family."""
_EFFORT = r"none|off|minimal|low|medium|high|xhigh|extra-high"
_ENDINGS = (
    deferred_pattern(r"\[1m\]$"),
    deferred_pattern(rf":(?:{_EFFORT}|max|thinking|adaptive)$"),
    deferred_pattern(rf"-?\((?:{_EFFORT}|max|thinking|preview|default)(?:-(?:effort|reasoning|thinking))?\)$"),
    deferred_pattern(r"@(?:\d{8}|default|latest)$"),
    deferred_pattern(r"-20\d\d(?:\d{4}|-\d\d-\d\d)$"),
    deferred_pattern(r"(?<=\d)(?:-[a-z]+)*(?P<end>-latest)$"),
    deferred_pattern(r"(?<!gemini-2-5-flash)-preview$"),  # which had other prices than its release
    deferred_pattern(r"-maas$"),
    deferred_pattern(rf"-(?:{_EFFORT})$"),
    deferred_pattern(r"^claude-.*?(?P<end>-(?:max|thinking(?:[-:]\d+k?)?|1m|200k|v\d(?::\d)?)|:beta)$"),
)  # fmt: skip
"""Endings of a name that change no list price. `:free` does, and so does `-fast`. `-max` is a model in other families
than Claude's, and `-latest` behind no version is whatever came last."""
_MAKERS = (
    ("anthropic", deferred_pattern(r"claude|(?:sonnet|opus|haiku|fable|mythos|opusplan)\b")),
    ("openai", deferred_pattern(r"gpt|codex|chatgpt|o[1345](?:-|$)")),
    ("google", deferred_pattern(r"gemini|gemma")),
    ("mistral", deferred_pattern(r"mistral|ministral|devstral|codestral|magistral|labs-devstral")),
    ("moonshot", deferred_pattern(r"kimi|moonshot")),
    ("zai", deferred_pattern(r"glm")),
    ("alibaba", deferred_pattern(r"qwen|qwq")),
    ("deepseek", deferred_pattern(r"deepseek")),
    ("minimax", deferred_pattern(r"minimax")),
    ("xai", deferred_pattern(r"grok")),
    ("meta", deferred_pattern(r"llama")),
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
_LOCATION = deferred_pattern(r"(?:[./~]|[a-z]:\\|[a-z0-9]+://).*", re.DOTALL)
"""A folder or address of weights, which names no model."""
_SERVED_AS = deferred_pattern(r"(?::(?:free|nitro|floor|exacto)|-maas|@default|[-@]latest)$")
"""Suffixes for a kind of server, or for the newest snapshot."""
_SNAPSHOT = deferred_pattern(r"(?:-v\d)?[-@](20\d\d)-?(\d\d)-?(\d\d)$")
_FIRST = deferred_pattern(r"(?<=^claude-opus-4)-0$|(?<=^claude-sonnet-4)-0$")
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
        for snapshot, names in by_date.items():
            into.setdefault(snapshot, []).extend(names)
    yield from joined.values()


VERSION = "2026-11"
DATE = "2026-11-20"
"""Day on which the table's sources were looked at."""

USD_DIGITS = 12
"""Decimals of costs. List prices times tokens and factors have no more (a price has at most three decimals a million, a
factor one), so a cost is what one computes by hand, without a float's last bits."""
_EPOCH = date(1970, 1, 1).toordinal()
_US_A_DAY = 86_400_000_000


class Tier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of a whole request whose prompt, cached tokens included, is longer than `tokens`."""

    tokens: int
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class Rate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in USD per million tokens from one day (`since`, included) to another (`until`, not included)."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    """Writing to a cache that lasts minutes; None: not charged separately, or not known."""
    cache_write_1h: float | None = None
    since: date | None = None
    until: date | None = None
    above: list[Tier] = field(default_factory=list)
    """Tiers of long prompts, ascending. A tier without prices says that they differ and are not known."""
    factors: dict[str, float] = field(default_factory=dict)
    """Factors on all of these prices for a speed (`fast`), a service tier, or a place (`us`)."""
    web_search: float | None = None
    """USD for a thousand searches."""


class ModelPrice(Struct, frozen=True):
    """Prices of one model; `rates` are newest first."""

    source: str
    rates: list[Rate]
    aliases: list[str] = field(default_factory=list)
    note: str = ""

    def rate(self, day: date) -> Rate | None:
        """Return the rate of a day; None when it is not known."""
        for rate in self.rates:
            if rate.since is None or rate.since <= day:
                return rate if rate.until is None or day < rate.until else None
        return None


class Table(Struct, frozen=True):
    version: str
    date: date
    unit: str
    checked: str
    models: dict[str, ModelPrice]


@lru_cache(maxsize=1)
def table() -> Table:
    return msgspec.json.decode(Path(__file__).with_name(f"prices-{VERSION}.json").read_bytes(), type=Table)


@lru_cache(maxsize=1)
def _by_name() -> dict[str, ModelPrice]:
    return _keyed({name: price for model, price in table().models.items() for name in (model, *price.aliases)})


def _keyed(listed: Mapping[str, ModelPrice]) -> dict[str, ModelPrice]:
    """Key prices by every spelling that a name answers to; a name's own spelling comes before another's shorter one."""
    keys = [(n, key, price) for name, price in listed.items() for n, key in enumerate(price_keys(name))]
    return {key: price for n, key, price in sorted(keys, key=lambda k: -k[0])}


@lru_cache(maxsize=1024)
def price(model: str) -> ModelPrice | None:
    """Return the list prices of a model by its name as logged; None when the list does not have exactly this model."""
    return next((listed for name in candidates(model) if (listed := _by_name().get(name))), None)


# Own prices


class _OwnModel(Rate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of one model in a person's file: one rate, or several with their days."""

    rates: list[Rate] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    source: str = ""
    note: str = ""


class _OwnFile(Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, _OwnModel]


class OwnPrices(Struct, frozen=True):
    """A person's own prices."""

    text: bytes = b""
    exact: dict[str, ModelPrice] = field(default_factory=dict)
    """By names as logged, with their routes."""
    spelled: dict[str, ModelPrice] = field(default_factory=dict)
    digest: bytes = b""

    @property
    def mark(self) -> str:
        """Return what `cost_source` calls them; empty where there are none."""
        return f"own-{self.digest.hex()}" if self.digest else ""

    def price(self, model: str) -> ModelPrice | None:
        if (named := self.exact.get(model.strip().lower())) is not None:
            return named
        return next((own for name in candidates(model) if (own := self.spelled.get(name))), None)


_own: OwnPrices | None = None


def own_prices() -> OwnPrices:
    """Return the own prices of this process: those in use, or else what the configuration folder holds."""
    if _own is None:
        import platformdirs  # noqa: PLC0415  (only where something is priced)

        file = Path(platformdirs.user_config_dir("agentsignals", appauthor=False)) / "prices.toml"
        return use_own_prices(file if file.exists() else b"")
    return _own


def use_own_prices(file: Path | bytes) -> OwnPrices:
    """Use the own prices of a file, or of its text, from now on. PriceError where it is no price file."""
    global _own  # noqa: PLW0603  (one price file a process)
    text, name = (file, "prices.toml") if isinstance(file, bytes) else (b"", str(file))
    try:
        text = text if isinstance(file, bytes) else file.read_bytes()
    except OSError as problem:
        raise PriceError(f"The price file {name} can't be read: {problem.strerror}.", PRICE_FILE_HINT) from problem
    _own = _parsed(text, name) if text else OwnPrices()
    _terms.cache_clear()
    return _own


PRICE_FILE_HINT = (
    'It is TOML, USD per million tokens: [models."NAME"] with input, output, cache_read, cache_write, cache_write_1h,'
    " since, until, above = [{tokens = N, input = …}]. See docs/prices.md."
)


def _parsed(text: bytes, name: str) -> OwnPrices:
    try:
        file = msgspec.toml.decode(text, type=_OwnFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise PriceError(f"{name} is not a price file: {problem}.", PRICE_FILE_HINT) from problem
    listed: dict[str, ModelPrice] = {}
    for model, own in file.models.items():
        direct = Rate(**{each: getattr(own, each) for each in Rate.__struct_fields__})
        if own.rates and direct != Rate():
            raise PriceError(f"{name}: {model} has prices in and outside of `rates`.", "Put all into `rates`.")
        rates = own.rates or [direct]
        for rate in rates:
            _check(rate, f"{name}: {model}")
        rates = [
            msgspec.structs.replace(rate, above=sorted(rate.above, key=lambda tier: tier.tokens))
            for rate in sorted(rates, key=lambda rate: rate.since or date.min, reverse=True)
        ]
        listed |= dict.fromkeys((model, *own.aliases), ModelPrice(own.source or name, rates, own.aliases, own.note))
    exact = {model.strip().lower(): price for model, price in listed.items()}
    return OwnPrices(text, exact, _keyed(listed), blake2b(text, digest_size=4).digest())


def _check(rate: Rate, name: str) -> None:
    amounts = [
        (name_of, value)
        for prices in (rate, *rate.above)
        for name_of in prices.__struct_fields__
        for value in (getattr(prices, name_of),)
        if isinstance(value, int | float)
    ]
    amounts += list(rate.factors.items())
    for name_of, value in amounts:
        if not isfinite(value) or value < 0:
            raise PriceError(f"{name}: {name_of} is {value}.", "Prices, factors and tokens must be 0 or more.")
    if not amounts:
        raise PriceError(f"{name} has no price.", PRICE_FILE_HINT)
    if rate.since is not None and rate.until is not None and rate.until <= rate.since:
        raise PriceError(f"{name}: `until` {rate.until} is not after `since` {rate.since}.", "Give a later `until`.")


def cost_usd(  # noqa: PLR0913  (the kinds of tokens a call is billed for)
    model: str | None,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
    *,
    cache_write_1h_tokens: int = 0,
    at: int | None = None,
) -> float | None:
    """Return the cost of a call; None when a price it needs is not known, 0.0 without tokens.

    Input excludes cached tokens, output includes reasoning; `cache_write_tokens` includes those written for an hour.
    `at` is the time of the call in microseconds since 1970 UTC; without it, the table's date counts.
    """
    read, written = cache_read_tokens, cache_write_tokens
    terms = _terms(model, None if at is None else at // _US_A_DAY).of_prompt(input_tokens + read + written)
    cost = _cost(terms, input_tokens, output_tokens, read, written, for_an_hour=cache_write_1h_tokens)
    return None if isnan(cost) else cost


def apply(session: Session, maker_of: Callable[[str, str], str | None] = lambda *_: None) -> None:
    """Set the price of steps with known tokens whose cost was not recorded, or not at the price of their model.

    `maker_of` returns whose models an agent knows prices of, by its name and its session's format. It records other
    models at those prices: such dollars are kept in `replaced_cost_usd`, and so are those of a model that has a price
    of a person's own.

    A format without a concept of caching leaves cached tokens absent; then there are none to bill. There is no input to
    bill where a closing step holds it. The prompts of a closing step are of unknown length: the price of short ones is
    a lower bound.
    """
    model: str | None = None
    day: int | None = None
    terms = _terms(model, day)
    own = own_prices()
    prices_of: str | None = _NOT_ASKED
    attempt = session.attempt
    if attempt is not None and attempt.cost_usd and session.model is not None:
        prices_of = maker_of(session.agent, session.format)
        if prices_of is not None and maker(session.model) != prices_of:
            attempt.replaced_cost_usd, attempt.cost_usd = attempt.cost_usd, None
    for step in session.steps:
        if step.cost_usd is not None:
            if step.cost_source != "recorded" or step.model is None:
                continue
            if prices_of is _NOT_ASKED:
                prices_of = maker_of(session.agent, session.format)
            is_own = step.input_tokens is not None and _terms(step.model, _day(step)).is_own if own.mark else False
            if not is_own and (prices_of is None or maker(step.model) == prices_of):
                continue
            step.replaced_cost_usd, step.cost_usd, step.cost_source = step.cost_usd, None, None
        fresh, output = step.input_tokens, step.output_tokens
        if fresh is None and step.input_in_step is not None:
            fresh, output = 0, output or 0
        elif step.stop_reason == SESSION_TOTAL and fresh is not None:
            output = output or 0
        if fresh is None or output is None:
            continue
        today = _day(step)
        if step.model != model or today != day:  # neighbours mostly share both, and a look-up costs as much as the sum
            model, day = step.model, today
            terms = _terms(model, day)
        read, written = step.cache_read_tokens or 0, step.cache_write_tokens or 0
        rate = _of_prompt(terms, step, fresh + read + written)
        cost = _cost(rate, fresh, output, read, written, for_an_hour=step.cache_write_1h_tokens or 0)
        is_behind = isnan(cost) and (step.stop_reason or "").startswith(ITERATION)
        if is_behind:  # of a total that is known otherwise: what it lacks is said
            step.cost_usd, step.cost_source = 0.0, VERSION
            step.unpriced = (
                f"{(step.stop_reason or '').removeprefix(ITERATION)} calls of {step.model or 'an unknown model'}"
            )
        elif not isnan(cost):
            lacking = ["long prompts"] if rate is terms and fresh + read + written > terms.limit else []
            if step.speed or step.service_tier or step.inference_geo or step.web_searches:
                cost *= _factor(step, terms, lacking)
                if step.web_searches and terms.web_search is None:
                    lacking.append(f"{step.web_searches} web searches")
                elif step.web_searches:
                    cost += step.web_searches * (terms.web_search or 0.0)
            step.cost_usd, step.cost_source = round(cost, USD_DIGITS), own.mark if terms.is_own else VERSION
            step.unpriced = ", ".join(filter(None, (step.unpriced, *lacking))) or None


_NOT_ASKED = "?"


def _is_computed(step: Step) -> bool:
    """Return whether the cost is tokens times prices that are in use: neither recorded nor by former own prices."""
    source = step.cost_source or "recorded"
    return source != "recorded" and (not source.startswith("own-") or source == own_prices().mark)


def _day(step: Step) -> int | None:
    return None if step.timestamp is None else step.timestamp // _US_A_DAY


class Charge(NamedTuple):
    terms: _Terms
    factor: float
    """Factor for a speed, a service tier, or a place."""
    search: float


def step_charge(step: Step) -> Charge:
    """Return the list prices of a call, whether it was paid by them or not."""
    terms = _terms(step.model, _day(step))
    prompt = (step.input_tokens or 0) + (step.cache_read_tokens or 0) + (step.cache_write_tokens or 0)
    search = nan if terms.web_search is None else terms.web_search
    return Charge(_of_prompt(terms, step, prompt), round(_factor(step, terms, []), 6), search)


def cost_formula(step: Step, is_lower_bound: bool = False) -> str:
    """Return tokens times prices of a call as one line that can be checked by hand: uncached input, read from a cache,
    written to one, output. `is_lower_bound`: the output was logged in mid-stream."""
    rate, factor, search = step_charge(step)
    names = ("in", "read", "write", "write 1h", "out")
    is_listed = _is_computed(step)
    least = ">= " if is_lower_bound and step.stop_reason is None else ""
    used = [
        f"{least if name == 'out' else ''}{n:,} {name}" + (f" x ${1e6 * price:g}" if is_listed else "")
        for name, (_, n, price) in zip(names, _token_kinds(step, rate), strict=True)
        if n
    ]
    line = " + ".join(used) or "no tokens"
    if is_listed and factor != 1:
        line = f"({line}) x {factor:g}"
    if step.web_searches:
        line += f" + {step.web_searches:,} searches" + (f" x ${search:g}" if is_listed and not isnan(search) else "")
    if step.cost_usd is None:
        return f"no cost: {line} ({step.model})"
    lacks = f", without {step.unpriced}" if step.unpriced else ""
    return f"{least}${step.cost_usd:.6f} = {line} ({step.model}, {step.cost_source}{lacks})"


class CostParts(NamedTuple):
    """Cost of a model call by kind of token, in USD: uncached input, read from a cache, written to one, output, and a
    rest that is not attributed."""

    input: float
    cache_read: float
    cache_write: float
    output: float
    other: float


def cost_parts(  # noqa: PLR0913  (what a call is charged by)
    model: str | None,
    at: int | None,
    usd: float,
    tokens: tuple[int, int, int, int, int],
    *,
    searches: int = 0,
    is_total: bool = False,
) -> CostParts:
    """Split the cost of a call into parts that sum to `usd`: list prices times its tokens, scaled to what was recorded.

    Searches, and calls whose model has no list price, are in the rest. `at`: microseconds since 1970 UTC. `tokens`:
    uncached input, cache reads, cache writes, of these for an hour, output. `searches`: those paid separately.
    `is_total`: a total of many calls, whose prompts are of unknown length.
    """
    fresh, read, written, hour, output = tokens
    terms = _terms(model, None if at is None else at // _US_A_DAY)
    prompt = fresh + read + written
    rate = terms if is_total else terms.of_prompt(prompt)
    of_input = fresh * rate.input if fresh else 0.0
    of_read = read * rate.cache_read if read else 0.0
    of_output = output * rate.output if output else 0.0
    of_write = hour * rate.cache_write_1h if hour else 0.0
    if written != hour:
        of_write += (written - hour) * rate.cache_write
    total = of_input + of_read + of_write + of_output
    if isnan(total) or not total:
        return CostParts(0.0, 0.0, 0.0, 0.0, usd)
    search = terms.web_search
    rest = min(usd, searches * search) if searches and search is not None else 0.0
    scale = (usd - rest) / total
    return CostParts(of_input * scale, of_read * scale, of_write * scale, of_output * scale, rest)


def _of_prompt(terms: _Terms, step: Step, prompt: int) -> _Terms:
    """Terms for a prompt of that length. A closing step is a total of many calls with unknown prompts."""
    return terms if step.stop_reason == SESSION_TOTAL else terms.of_prompt(prompt)


def _factor(step: Step, terms: _Terms, lacking: list[str]) -> float:
    """Factor for the way a call was served; `lacking` gets what the table has no figure for."""
    product = 1.0
    for name in (step.speed, step.service_tier, step.inference_geo):
        if name is not None:
            factor = terms.factors.get(name)
            if factor is None:
                lacking.append(name)
            product *= factor or 1.0
    return product


class _Terms(NamedTuple):
    """Prices a token; nan where not known, so that every result that needs them is nan too."""

    input: float = nan
    output: float = nan
    cache_read: float = nan
    cache_write: float = nan
    cache_write_1h: float = nan
    limit: float = inf
    above: tuple[Tier, ...] = ()
    factors: dict[str, float] = {}  # noqa: RUF012  (a named tuple has no factories; it is only read)
    web_search: float | None = None
    is_own: bool = False

    def of_prompt(self, prompt: int) -> _Terms:
        """Return the terms of a prompt of that length."""
        if prompt <= self.limit:
            return self
        return _a_token([tier for tier in self.above if prompt > tier.tokens][-1])


def _cost(  # noqa: PLR0913  (the kinds of tokens)
    terms: _Terms, fresh: int, output: int, read: int, written: int, *, for_an_hour: int = 0
) -> float:
    """Tokens times prices; nan when a price is missing for which there are tokens."""
    cost = 0.0
    if fresh:
        cost += fresh * terms.input
    if output:
        cost += output * terms.output
    if read:
        cost += read * terms.cache_read
    if for_an_hour:
        cost += for_an_hour * terms.cache_write_1h
        written -= for_an_hour
    if written:
        cost += written * terms.cache_write
    return cost


@lru_cache(maxsize=4096)
def _terms(model: str | None, day: int | None) -> _Terms:
    ordinal = 0 if day is None else _EPOCH + day
    at = date.fromordinal(ordinal) if 0 < ordinal <= date.max.toordinal() else table().date
    for is_own, prices in ((True, own_prices().price(model)), (False, price(model))) if model else ():
        if prices is not None and (rate := prices.rate(at)) is not None:
            return _a_token(rate, rate.above, rate)._replace(is_own=is_own)
    return _Terms()


def _a_token(prices: Rate | Tier, above: Sequence[Tier] = (), extras: Rate | None = None) -> _Terms:
    def per_token(million: float | None) -> float:
        return nan if million is None else million / 1_000_000

    return _Terms(
        input=per_token(prices.input),
        output=per_token(prices.output),
        cache_read=per_token(prices.cache_read),
        cache_write=per_token(prices.cache_write),
        cache_write_1h=per_token(prices.cache_write_1h),
        limit=above[0].tokens if above else inf,
        above=tuple(above),
        factors=extras.factors if extras else {},
        web_search=extras.web_search / 1_000 if extras and extras.web_search is not None else None,
    )


# Itemized costs

Kind = Literal[
    "input", "cache read", "cache write 5m", "cache write 1h", "output", "reasoning", "web searches", "not split",
    "recorded", "rounding",
]  # fmt: skip
"""Kinds of cost. `cache write 5m`: for minutes, or for an unknown time; `reasoning`: a part of the output; `not split`:
a subagent's tokens of unknown kind and model; `recorded`: paid by the trace, whatever the list prices are; `rounding`:
the difference to the value's last digit."""
_ORDER = {kind: n for n, kind in enumerate(get_args(Kind))}
CACHE_WRITES: frozenset[Kind] = frozenset(("cache write 5m", "cache write 1h"))
PROMPT: frozenset[Kind] = CACHE_WRITES | {"input", "cache read"}
PAID: frozenset[Kind] = PROMPT | {"output", "web searches", "recorded"}
_WHOSE = {MAIN: "main thread", ABANDONED: "left branches", REPLAYED: "copied history"}
_A_MILLION = 1_000_000


class CostLine(Struct, frozen=True, kw_only=True):
    """Tokens (or searches) of one kind that have one price."""

    whose: str
    """`main thread`, `subagents`, `left branches`, `copied history`."""
    model: str
    kind: Kind | Literal[""]
    calls: int
    amount: int
    usd_each_million: Decimal | None = None
    """List price times the factor of a speed, tier or place; None: not known, or not what was paid."""
    usd: Decimal | None = None
    counts: bool
    """True where it is part of the value."""
    at_least: bool = False
    """True where it was logged in mid-stream: a lower bound."""


def cost_lines(
    steps: Collection[Step], included: Mapping[int, Collection[Kind]], is_lower_bound: bool = False
) -> list[CostLine]:
    """Return tokens and cost of these model calls, one line for each thread, model, kind and price.

    Lines that are part of the explained value come first. `included`: by `id()` of a call, the kinds that are part of
    it. `is_lower_bound`: output was logged in mid-stream, so its tokens are a lower bound.
    """
    sums: dict[tuple[bool, str, str, Kind, Decimal | None], tuple[int, int, Decimal | None]] = {}
    for step in steps:
        whose, model = _WHOSE.get(step.thread, "subagents"), step.model or "unknown model"
        for kind, amount, price in _parts(step):
            counts = kind in included.get(id(step), ())
            paid = Decimal(repr(step.cost_usd)) if kind == "recorded" else price and amount * price / _A_MILLION
            calls, before, usd = sums.get((counts, whose, model, kind, price), (0, 0, None))
            total = paid if usd is None or paid is None else usd + paid
            sums[counts, whose, model, kind, price] = (calls + 1, before + amount, total)
    return [
        CostLine(whose=whose, model=model, kind=kind, calls=calls, amount=amount, usd_each_million=price, usd=usd,
             counts=counts, at_least=is_lower_bound and kind in ("output", "reasoning"))
        for (counts, whose, model, kind, price), (calls, amount, usd) in sorted(
            sums.items(), key=lambda s: (not s[0][0], s[0][1] != _WHOSE[MAIN], *s[0][1:3], _ORDER[s[0][3]])
        )
    ]  # fmt: skip


def rounding_line(value: float, lines: Collection[CostLine]) -> CostLine | None:
    """Return the difference between a value in USD and its lines; None where they sum to its last digit."""
    rest = Decimal(repr(value)) - total_usd(lines)
    return CostLine(whose="", model="", kind="rounding", calls=0, amount=0, usd=rest, counts=True) if rest else None


def total_usd(lines: Collection[CostLine]) -> Decimal:
    return sum((line.usd for line in lines if line.counts and line.usd is not None), Decimal())


def total_line(lines: Collection[CostLine]) -> CostLine:
    """Sum the lines that are part of the value; reasoning tokens are already in the output."""
    included = [line for line in lines if line.counts]
    all_kinds = {line.kind for line in included}
    no_tokens = ("web searches", "recorded", "rounding", *(("reasoning",) if "output" in all_kinds else ()))
    amount, at_least = sum(n.amount for n in included if n.kind not in no_tokens), any(n.at_least for n in included)
    usd = total_usd(included)
    return CostLine(whose="", model="", kind="", calls=0, amount=amount, usd=usd, counts=True, at_least=at_least)


def exact_digits(usd: Decimal | None) -> str:
    """Format an amount with all its digits and no more; empty where it is not known."""
    return "" if usd is None else f"{usd.normalize():f}"


def _parts(step: Step) -> list[tuple[Kind, int, Decimal | None]]:
    """Amounts by kind, each with its price a million; None where it was recorded or has no price."""
    is_listed = step.cost_usd is not None and _is_computed(step)
    is_recorded = step.cost_usd is not None and not is_listed
    terms, factor, search = step_charge(step)
    parts = [
        (kind, n, _million(price, factor) if is_listed else None) for kind, n, price in _token_kinds(step, terms) if n
    ]
    if step.web_searches:
        parts.append(("web searches", step.web_searches, _million(search) if is_listed else None))
    if step.reasoning_tokens:
        parts.append(("reasoning", step.reasoning_tokens, None))
    if step.summed_tokens:
        parts.append(("not split", step.summed_tokens, None))
    if is_recorded:
        parts.append(("recorded", 1, None))
    return parts


def _token_kinds(step: Step, terms: _Terms) -> tuple[tuple[Kind, int, float], ...]:
    """Tokens of a call by kind, each with its price."""
    hour = step.cache_write_1h_tokens or 0
    return (
        ("input", step.input_tokens or 0, terms.input),
        ("cache read", step.cache_read_tokens or 0, terms.cache_read),
        ("cache write 5m", (step.cache_write_tokens or 0) - hour, terms.cache_write),
        ("cache write 1h", hour, terms.cache_write_1h),
        ("output", step.output_tokens or 0, terms.output),
    )


def _million(price: float, factor: float = 1.0) -> Decimal | None:
    """Price of a million tokens in the digits it is listed with; None for nan."""
    return None if isnan(price) else Decimal(repr(round(price * _A_MILLION, 6))) * Decimal(repr(factor))
