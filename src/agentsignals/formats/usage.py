"""Tokens of model calls, however a log spells them, and the totals that a run states at its end."""

from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any, Literal, NamedTuple

from agentsignals.formats.bounds import count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import REDACTED
from agentsignals.model import SESSION_TOTAL, Step

Cached = Literal["apart", "within", "within_if_fewer"]
"""The place of cached tokens, read or written, in a log. `apart`: its input holds none of them (Anthropic). `within`:
its input holds them (OpenAI). `within_if_fewer`: it holds them, unless they are more than the input."""

_SPELLINGS = {
    "input": "input_tokens inputTokens prompt_tokens promptTokens promptTokenCount input_other inputOther tokensIn"
    " prompt_n input",
    "output": "output_tokens outputTokens completion_tokens completionTokens candidatesTokenCount tokensOut predicted_n"
    " output",
    "cache_read": "cache_read_input_tokens cacheReadInputTokens cached_input_tokens cachedInputTokens cache_read_tokens"
    " cacheReadTokens cached_read_tokens input_tokens_cache_read input_cache_read inputCacheRead "
    "cachedContentTokenCount cachedReadTokens cached_tokens cachedTokens cacheReads cacheRead cache_n cached read",
    "cache_write": "cache_creation_input_tokens cacheCreationInputTokens cache_write_input_tokens cache_creation_tokens"
    " cache_write_tokens cacheWriteTokens input_tokens_cache_write input_cache_creation inputCacheCreation"
    " cacheCreationTokens cacheWrites cacheWrite write",
    "reasoning": "reasoning_output_tokens reasoningOutputTokens reasoning_tokens reasoningTokens thoughtsTokenCount"
    " thoughts_tokens thoughts reasoning",
}
"""Names of each figure in the logs that are read. Of several in one record the first counts."""
_DETAILS = (
    "prompt_tokens_details", "input_tokens_details", "promptTokensDetails", "completion_tokens_details",
    "output_tokens_details", "completionTokensDetails", "cache",
)  # fmt: skip
"""Records inside of a record of usage that hold further figures."""


_STANDARD = frozenset(("", "standard", "default", "auto", "global", "not_available", REDACTED))
"""Speeds, service tiers and places that cost what the price list says."""


def special(name: object) -> str | None:
    """Return the name of a speed, tier or place that has a price of its own."""
    return name if isinstance(name, str) and name not in _STANDARD else None


class Tokens(NamedTuple):
    """Tokens of a model call or a run. `input` holds no cached tokens, `output` holds reasoning. None: not logged."""

    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    reasoning: int | None = 0

    def since(self, before: "Tokens") -> "Tokens":
        """Return what was used since an earlier total. A figure that has fallen means that counting began anew."""
        grown = Tokens(*(None if now is None else now - (then or 0) for now, then in zip(self, before, strict=True)))
        return self if any(n is not None and n < 0 for n in grown) else grown

    def without(self, counted: "Tokens") -> "Tokens":
        """Return what is left of a total that other steps count in part. No figure falls below 0."""
        pairs = zip(self, counted, strict=True)
        return Tokens(*(None if now is None else max(now - (then or 0), 0) for now, then in pairs))


@cache
def _names(type_: Hashable) -> tuple[tuple[str, ...], ...]:
    """Return the spellings of each figure; of a struct those that it has, of any other type none."""
    has = None if type_ is None else frozenset(getattr(type_, "__struct_fields__", ()))
    return tuple(tuple(name for name in names.split() if has is None or name in has) for names in _SPELLINGS.values())


def tokens_of(usage: Any, cached: Cached = "within") -> Tokens:
    """Read the tokens of a record of usage, a dict or a struct in any spelling. All None for anything else."""
    if usage is None:
        return Tokens(None, None, None, None, None)
    found: Iterable[object]
    if isinstance(usage, dict):
        parts = [usage, *(inner for name in _DETAILS if isinstance(inner := usage.get(name), dict))]
        found = [
            next((v for part in parts for n in names if (v := part.get(n)) is not None), None) for names in _names(None)
        ]
    else:
        type_: Any = type(usage)
        found = [next((v for n in names if (v := getattr(usage, n)) is not None), None) for names in _names(type_)]
    tokens = Tokens(*map(count, found))
    held = 0 if cached == "apart" else (tokens.cache_read or 0) + (tokens.cache_write or 0)
    if not held or tokens.input is None or (cached == "within_if_fewer" and held > tokens.input):
        return tokens
    return tokens._replace(input=max(tokens.input - held, 0))


def charge(step: Step, tokens: Tokens, zeros: bool = True) -> None:
    """Set the tokens of a model call. Without `zeros` a cache or reasoning of 0 tokens stays absent, and so do all of
    a call that has none."""
    if not zeros and not any(tokens):
        return
    step.input_tokens, step.output_tokens, *others = tokens
    read, written, reasoning = others if zeros else [n or None for n in others]
    step.cache_read_tokens, step.cache_write_tokens, step.reasoning_tokens = read, written, reasoning


def summed(parts: Iterable[Iterable[int | None]]) -> Tokens:
    """Sum tokens. A figure that is not logged counts as 0."""
    columns = list(zip(*parts, strict=True))
    return Tokens(*(sum(n or 0 for n in column) for column in columns)) if columns else Tokens()


def tokens_of_steps(steps: Iterable[Step]) -> Tokens:
    """Sum the tokens of model calls."""
    return summed(
        (s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens) for s in steps
    )


def close(builder: SessionBuilder, model: str | None, tokens: Tokens, at: int | None = None) -> Step:
    """Add the closing step of a run: tokens that no logged call accounts for.

    Its `stop_reason` is "session_total". The session's sums are right, and no call gets a context size it did not have.
    """
    step = builder.step(None, model, at)
    step.stop_reason = SESSION_TOTAL
    charge(step, tokens, zeros=False)
    builder.event("meta", f"session totals of {model or 'the model'}", at, step)
    return step
