"""List prices: exact names only, the rate of the day, and absent rather than zero or a guess."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from agentsignals.errors import PriceError
from agentsignals.formats import maker_of
from agentsignals.model import Attempt, Session, Step, prices
from agentsignals.model.prices import ModelPrice, Rate, Tier, apply, cost_usd, price, table
from tests.quick import each_row

MILLION = 1_000_000


def day(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def step(model: str | None, at: int | None = None, **tokens: int | float | str | None) -> Step:
    made = Step(step=0, turn=0, thread="main", seq=0, message_id=None, model=model, timestamp=at)
    for name, value in tokens.items():
        setattr(made, name, value)
    return made


def session(*steps: Step) -> Session:
    return Session(
        session_id="s1",
        context="product",
        format="claude-code",
        agent="claude-code",
        artifact_id="a1",
        steps=list(steps),
    )


# -- names ----------------------------------------------------------------------------------------------------------


@each_row(
    ("logged", "model"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("claude-opus-4.8", "claude-opus-4-8"),
        ("anthropic/claude-opus-5:high", "claude-opus-5"),
        ("anthropic/claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("openrouter/anthropic/claude-3.7-sonnet:thinking", "claude-3-7-sonnet"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/eu.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("openai-codex/gpt-5.5", "gpt-5.5"),
        ("GPT-5-2025-08-07", "gpt-5"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),  # priced apart from gpt-4o
        ("openrouter/google/gemini-3-flash-preview", "gemini-3-flash-preview"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("zai/GLM-4.6", "glm-4.6"),
        ("xai/grok-4-0709", "grok-4"),
        (" moonshotai/kimi-k2-0905-preview ", "kimi-k2-0905-preview"),
        # Cursor and routers: another order, efforts, windows, display names
        ("claude-4.5-sonnet-thinking", "claude-sonnet-4-5"),
        ("anthropic/claude-4.6-opus", "claude-opus-4-6"),
        ("claude-4.6-opus-high-thinking", "claude-opus-4-6"),
        ("claude-4-sonnet-1m", "claude-sonnet-4"),
        ("claude-4-opus-20250514", "claude-opus-4"),
        ("Claude Opus 4.5 (Preview)", "claude-opus-4-5"),
        ("claude-sonnet-4-5-latest", "claude-sonnet-4-5"),
        ("gpt-5.2-codex-high", "gpt-5.2-codex"),
        ("gpt-5.1-codex-max-xhigh", "gpt-5.1-codex-max"),
        ("o4-mini-high", "o4-mini"),
        ("GPT-5.2 (high)", "gpt-5.2"),
        ("gpt-5.2-codex-extra-high", "gpt-5.2-codex"),
        ("claude-3-7-sonnet-thinking-32k", "claude-3-7-sonnet"),
        ("gpt-4-1", "gpt-4.1"),
        ("gpt-5.2-chat", "gpt-5.2"),
        ("gemini-3-pro", "gemini-3-pro-preview"),
        ("gemini-2.5-pro-preview-06-05", "gemini-2.5-pro"),
        ("kimi-k2p5", "kimi-k2.5"),
        ("openrouter,moonshotai/kimi-k2.5", "kimi-k2.5"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("sap/anthropic--claude-4.5-sonnet", "claude-sonnet-4-5"),
        # clouds
        ("us.anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0:200k", "claude-sonnet-4-5"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5",
        ),
        ("bedrock/us-west-2/anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("moonshot.kimi-k2-thinking", "kimi-k2-thinking"),
        ("projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("vertex_ai/kimi-k2-thinking-maas", "kimi-k2-thinking"),
        ("azure/eu/gpt-4o-2024-08-06", "gpt-4o"),
        ("azure/global-standard/gpt-5.2-2025-12-11", "gpt-5.2"),
        ("databricks-claude-sonnet-4-5", "claude-sonnet-4-5"),
    ],
)
def test_a_logged_name_leads_to_the_model(logged: str, model: str) -> None:
    assert price(logged) is table().models[model]


@pytest.mark.parametrize(
    "logged",
    [
        "sonnet",
        "opus",
        "<synthetic>",
        "",
        "claude-opus-4-5-mini",
        "claude-opus-4-50",
        "claude-opus-6",
        "claude-opus",
        "gpt-5.3-codex-spark",  # a preview without a list price
        "gpt-5.5-codex",
        "gpt-50",
        "o3-next",
        "glm-4.5:free",
        "someone/claude-opus-4-5",
        "accounts/fireworks/models/glm-4.6",
        "ggml-org/gemma-4-12B-it-GGUF",
        "claude-4.9-opus-high-thinking",
        "claude-4.7-sonnet",
        "claude-sonnet-latest",
        "gemini-flash-latest",
        "gpt-5.2-codex-max",  # a model in the family before, no effort
        "gpt-5.2-codex-high-fast",  # costs more, nobody lists how much
        "gpt-5.9-codex-high",
        "google/gemini-2.5-flash-preview",  # had prices of its own
        "gemini-2.5-flash-preview-05-20",
        "ollama/qwen3-coder-plus",
        "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc123",
    ],
)
def test_an_unknown_model_has_no_price_and_no_cost(logged: str) -> None:
    assert price(logged) is None
    assert cost_usd(logged, 1, 0) is None


# -- costs ----------------------------------------------------------------------------------------------------------


def test_each_kind_of_token_is_billed_at_its_own_price() -> None:
    assert cost_usd("claude-opus-4-5", MILLION, 0) == pytest.approx(5.0)
    assert cost_usd("claude-opus-4-5", 0, MILLION) == pytest.approx(25.0)
    assert cost_usd("claude-opus-4-5", 0, 0, MILLION, 0) == pytest.approx(0.5)
    assert cost_usd("claude-opus-4-5", 0, 0, 0, MILLION) == pytest.approx(6.25)
    assert cost_usd("claude-opus-4-5", 1000, 2000, 30_000, 4000) == pytest.approx(0.005 + 0.05 + 0.015 + 0.025)


def test_of_the_cache_writes_those_for_an_hour_cost_more() -> None:
    assert cost_usd("claude-opus-4-5", 0, 0, 0, 100_000, cache_write_1h_tokens=40_000) == pytest.approx(0.375 + 0.4)


@pytest.mark.parametrize("model", ["claude-opus-4-5", "mystery", None])
def test_no_tokens_cost_nothing_whatever_the_model(model: str | None) -> None:
    cost = cost_usd(model, 0, 0, 0, 0)
    assert cost == 0.0
    assert isinstance(cost, float)


def test_a_price_that_is_not_known_matters_only_when_there_are_tokens_of_its_kind() -> None:
    assert cost_usd("gpt-5-pro", MILLION, 0) == pytest.approx(15.0)
    assert cost_usd("gpt-5-pro", MILLION, 0, 1, 0) is None
    assert cost_usd("gpt-5.5", 0, 0, 0, 1) is None


@pytest.mark.parametrize(
    ("model", "at", "million_fresh"),
    [
        ("gpt-5.6-sol", "2026-08-20", 5.0),
        ("gpt-5.6-sol", "2026-08-21", 4.0),
        ("gpt-5.6-sol", "2026-11-22", None),  # the lower price is promised no longer
        ("o3", "2025-06-09", 10.0),
        ("o3", "2025-06-10", 2.0),
        ("deepseek-chat", "2025-08-01", None),  # was priced by the time of day
        ("deepseek-chat", "2025-09-10", 0.56),
        ("deepseek-chat", "2026-01-01", 0.28),
        ("grok-code-fast-1", "2026-05-14", 0.2),
        ("grok-code-fast-1", "2026-05-15", None),
        ("gemini-3.8-flash", "2026-12-31", 0.75),
        ("gemini-3.8-flash", "2027-01-01", 1.5),
    ],
)
def test_a_call_costs_what_was_asked_on_its_day(model: str, at: str, million_fresh: float | None) -> None:
    fresh = 10_000  # within every prompt limit
    cost = cost_usd(model, fresh, 0, at=day(at))
    assert cost == (None if million_fresh is None else pytest.approx(million_fresh * fresh / MILLION))


def test_without_a_time_the_day_of_the_table_counts() -> None:
    assert cost_usd("gpt-5.6-sol", 10_000, 0) == pytest.approx(0.04)
    assert cost_usd("gemini-3.8-flash", 10_000, 0) == pytest.approx(0.0075)
    assert cost_usd("deepseek-chat", 10_000, 0) is None


@pytest.mark.parametrize("at", [10**30, -(10**30)])
def test_a_time_that_is_no_time_counts_as_none(at: int) -> None:
    assert cost_usd("gpt-5.6-sol", 10_000, 0, at=at) == pytest.approx(0.04)


def test_a_long_prompt_reprices_the_whole_request_cached_tokens_included() -> None:
    short, over = (200_000, 1000, 72_000), (200_000, 1000, 72_001)
    assert cost_usd("gpt-5.5", *short) == pytest.approx((200_000 * 5 + 1000 * 30 + 72_000 * 0.5) / MILLION)
    assert cost_usd("gpt-5.5", *over) == pytest.approx((200_000 * 10 + 1000 * 45 + 72_001 * 1) / MILLION)


def test_the_highest_tier_that_a_prompt_reaches_counts() -> None:
    wanted = {32_000: 1, 32_001: 1.8, 128_001: 3, 256_001: 6}
    assert {n: round(cost_usd("qwen3-coder-plus", n, 0) / n * MILLION, 9) for n in wanted} == wanted  # type: ignore[operator]  # a None fails


def test_a_long_prompt_whose_price_is_not_known_has_no_cost() -> None:
    assert cost_usd("claude-sonnet-4", 200_000, 0) == pytest.approx(0.6)
    assert cost_usd("claude-sonnet-4", 200_001, 0) is None


# -- steps ----------------------------------------------------------------------------------------------------------


def test_steps_without_a_recorded_cost_get_the_list_price_and_its_version() -> None:
    priced = step(
        "claude-opus-4-5", input_tokens=1000, output_tokens=2000, cache_read_tokens=30_000, cache_write_tokens=4000
    )
    uncached = step("gpt-5.5", input_tokens=1000, output_tokens=0)
    apply(session(priced, uncached))
    assert (priced.cost_usd, priced.cost_source) == (pytest.approx(0.095), prices.VERSION)
    assert (uncached.cost_usd, uncached.cost_source) == (pytest.approx(0.005), prices.VERSION)


def test_a_recorded_cost_stays() -> None:
    recorded = step("claude-opus-4-5", input_tokens=1000, output_tokens=0, cost_usd=9.5, cost_source="recorded")
    apply(session(recorded))
    assert (recorded.cost_usd, recorded.cost_source) == (9.5, "recorded")


@pytest.mark.parametrize(
    "unpriceable",
    [
        step("claude-opus-4-5"),
        step("claude-opus-4-5", output_tokens=10),  # Copilot logs no input
        step("mystery", input_tokens=1, output_tokens=0),
        step(None, input_tokens=1, output_tokens=0),
    ],
)
def test_a_step_of_unknown_tokens_or_model_stays_without_cost(unpriceable: Step) -> None:
    apply(session(unpriceable))
    assert unpriceable.cost_usd is None
    assert unpriceable.cost_source is None


def test_a_step_of_no_tokens_costs_nothing() -> None:
    silent = step("<synthetic>", input_tokens=0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
    apply(session(silent))
    assert silent.cost_usd == 0.0
    assert silent.cost_source == prices.VERSION


def test_each_step_has_its_own_model_day_and_length() -> None:
    before, after = day("2026-08-20"), day("2026-08-21")
    steps = [
        step("gpt-5.6-sol", before, input_tokens=10_000, output_tokens=0),
        step("gpt-5.6-sol", after, input_tokens=10_000, output_tokens=0),
        step("gpt-5.6-sol", after, input_tokens=300_000, output_tokens=0),
        step("gpt-5.6-sol", after, input_tokens=10_000, output_tokens=0),
        step("claude-opus-4-5", after, input_tokens=10_000, output_tokens=0),
        step("gpt-5.6-sol", None, input_tokens=10_000, output_tokens=0),
    ]
    apply(session(*steps))
    assert [s.cost_usd for s in steps] == pytest.approx([0.05, 0.04, 2.4, 0.04, 0.05, 0.04])


@pytest.mark.slow
def test_sixteen_thousand_steps_take_milliseconds() -> None:
    tokens = {"input_tokens": 10, "output_tokens": 500, "cache_read_tokens": 50_000, "cache_write_tokens": 900}
    best = 1.0
    for _ in range(5):
        many = session(*(step("claude-opus-4-6", day("2026-03-01") + n * 60_000_000, **tokens) for n in range(16_000)))
        began = time.process_time()
        apply(many)
        best = min(best, time.process_time() - began)
    assert best < 0.08, "ten times the usual: a look-up a step is no longer cached"


# -- the table ------------------------------------------------------------------------------------------------------


def test_the_table_is_the_one_its_version_names_and_dates() -> None:
    assert table().version == prices.VERSION
    assert table().date == date.fromisoformat(prices.DATE)
    assert prices.DATE.startswith(prices.VERSION)


def test_every_key_of_the_file_is_read() -> None:
    written = json.loads(Path(prices.__file__).with_name(f"prices-{prices.VERSION}.json").read_text("utf-8"))

    def known(thing: dict[str, object], shape: type) -> bool:
        return set(thing) <= set(shape.__struct_fields__)  # type: ignore[attr-defined]  # of msgspec

    assert set(written) == set(prices.Table.__struct_fields__)
    for name, model in written["models"].items():
        assert known(model, ModelPrice), name
        for rate in model["rates"]:
            assert known(rate, Rate), name
            assert all(known(tier, Tier) for tier in rate.get("above", [])), name


def test_names_are_lower_case_and_lead_to_one_model() -> None:
    names = [name for model, p in table().models.items() for name in (model, *p.aliases)]
    assert len(set(names)) == len(names)
    for name in names:
        assert name == name.lower()
        assert price(name) is not None


@each_row("model", sorted(table().models))
def test_prices_are_in_order_and_have_a_source(model: str) -> None:
    found = table().models[model]
    assert found.source.startswith("https://")
    assert found.rates
    assert found.note or not any(rate.until for rate in found.rates), "an end wants its reason"
    for newer, older in pairwise(found.rates):
        assert newer.since is not None
        assert older.since is None or older.since < newer.since
        assert older.until is None or older.until <= newer.since
    for rate in found.rates:
        assert rate.input is not None
        assert rate.output is not None
        assert [t.tokens for t in rate.above] == sorted({t.tokens for t in rate.above})
        for at in (rate, *rate.above):
            if at.input is None or at.output is None:
                assert at in rate.above
                continue
            assert 0 < at.input < at.output
            assert at.cache_read is None or 0 < at.cache_read < at.input
            assert at.cache_write is None or at.input <= at.cache_write <= 2 * at.input
            assert at.cache_write_1h is None or at.cache_write is not None
            assert at.cache_write_1h is None or at.cache_write_1h == pytest.approx(2 * at.input)


@pytest.mark.corpus
def test_of_the_real_corpus_only_names_without_a_list_price_are_unpriced() -> None:
    corpus = Path(__file__).parents[3] / "shared" / "corpus" / "sessions"
    if not corpus.is_dir():
        pytest.skip("the real corpus is not beside this checkout")
    named = re.compile(rb'"(?:model|modelI[dD]|currentModel)" ?: ?"([^"]{1,80})"')
    logged = {m.decode() for path in corpus.rglob("transcript.json*") for m in named.findall(path.read_bytes())}
    assert {name for name in logged if price(name) is None} == {"<synthetic>", "sonnet", "gpt-5.3-codex-spark"}
    assert len(logged) > 20


@pytest.mark.corpus
def test_what_pi_recorded_as_cost_is_what_the_table_says() -> None:
    """A second opinion on six models, before and after a price cut, from a program with a table of its own."""
    corpus = Path(__file__).parents[3] / "shared" / "corpus"
    if not corpus.is_dir():
        pytest.skip("the real corpus is not beside this checkout")
    models: set[str] = set()
    compared = 0
    for path in (*corpus.glob("sessions/pi/*/*/transcript.jsonl"), *corpus.glob("pi-v1/*.jsonl")):
        for line in path.read_bytes().splitlines():
            said = json.loads(line).get("message", {}) if b'"usage"' in line else {}
            used = said.get("usage") or {}
            if not used.get("cost", {}).get("total"):
                continue
            tokens = [used[kind] for kind in ("input", "output", "cacheRead", "cacheWrite")]
            at = int(said["timestamp"] * 1000)
            assert cost_usd(said["model"], *tokens, at=at) == pytest.approx(used["cost"]["total"], abs=1e-9), line[:80]
            models.add(said["model"])
            compared += 1
    assert compared > 1400
    assert len(models) == 6


# -- whose dollars --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "usd", "replaced"),
    [
        ("kimi-k2.5", 0.6 + 0.3, 30.0),
        ("moonshotai/kimi-k2.5[1m]", 0.6 + 0.3, 30.0),
        ("gpt-5.2", 1.75 + 1.4, 30.0),
        ("house-model", None, 30.0),  # no list has it: nobody knows what it cost
        ("claude-opus-4-5", 30.0, None),
        ("us.anthropic.claude-next-1", 30.0, None),
        (None, 30.0, None),
    ],
)
def test_dollars_at_another_makers_prices_are_replaced(
    model: str | None, usd: float | None, replaced: float | None
) -> None:
    call = step(model, input_tokens=MILLION, output_tokens=MILLION // 10, cost_usd=30.0, cost_source="recorded")
    apply(session(call), lambda *_: "anthropic")
    assert call.cost_usd == (None if usd is None else pytest.approx(usd))
    assert call.replaced_cost_usd == replaced


def test_an_agent_that_knows_many_makers_is_believed() -> None:
    call = step("kimi-k2.5", input_tokens=MILLION, output_tokens=0, cost_usd=30.0, cost_source="recorded")
    apply(session(call), lambda *_: None)
    assert (call.cost_usd, call.replaced_cost_usd) == (30.0, None)


def test_what_a_harness_took_over_from_such_an_agent_is_replaced_too() -> None:
    run = session(step("kimi-k2.5"))
    run.model, run.attempt = "kimi-k2.5", Attempt(root="runs/a", cost_usd=5.0)
    apply(run, lambda *_: "anthropic")
    assert (run.attempt.cost_usd, run.attempt.replaced_cost_usd) == (None, 5.0)
    own = session(step("claude-opus-4-5"))
    own.model, own.attempt = "claude-opus-4-5", Attempt(root="runs/a", cost_usd=5.0)
    apply(own, lambda *_: "anthropic")
    assert (own.attempt.cost_usd, own.attempt.replaced_cost_usd) == (5.0, None)


@pytest.mark.parametrize(
    ("agent", "whose"),
    [
        ("claude-code", "anthropic"), ("Claude Code", "anthropic"), ("claude_code", "anthropic"),
        ("claude-code-2.1", "anthropic"), ("codex", "openai"), ("gemini-cli", "google"), ("mistral-vibe", "mistral"),
        ("opencode", None), ("pi", None), ("mini-swe-agent", None), ("", None), ("claudette", None),
    ],
)  # fmt: skip
def test_some_agents_know_prices_of_one_maker(agent: str, whose: str | None) -> None:
    assert maker_of(agent, "") == whose


# -- own prices -----------------------------------------------------------------------------------------------------

OWN = """
[models."our-model"]
input = 1
output = 2
aliases = ["team/our-model-v2"]

[models.claude-opus-4-5]
[[models.claude-opus-4-5.rates]]
since = 2026-07-01
input = 4
output = 20
above = [{tokens = 200000, input = 8, output = 30}]
[[models.claude-opus-4-5.rates]]
since = 2026-05-01
until = 2026-06-01
input = 3
output = 15
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "prices.toml"
    file.write_text(OWN)
    prices.use_own_prices(file)
    yield file
    prices.use_own_prices(b"")


@pytest.mark.parametrize(
    ("model", "at", "fresh", "usd"),
    [
        ("our-model", "2026-01-01", 100_000, 0.1),
        ("team/our-model-v2", "2026-01-01", 100_000, 0.1),
        ("other-model", "2026-01-01", 100_000, None),
        ("claude-opus-4-5-20251101", "2026-04-30", 100_000, 0.5),  # the list's
        ("claude-opus-4-5", "2026-05-01", 100_000, 0.3),
        ("openrouter/anthropic/claude-opus-4.5", "2026-06-01", 100_000, 0.5),  # between two own rates
        ("claude-opus-4-5", "2026-07-01", 100_000, 0.4),
        ("claude-opus-4-5", "2026-07-01", 200_001, 200_001 * 8 / MILLION),
    ],
)
def test_own_prices_come_first_on_their_days(own: Path, model: str, at: str, fresh: int, usd: float | None) -> None:
    assert cost_usd(model, fresh, 0, at=day(at)) == (None if usd is None else pytest.approx(usd))


def test_own_prices_replace_recorded_dollars_and_name_themselves(own: Path) -> None:
    call = step("our-model", input_tokens=1000, output_tokens=0, cost_usd=9.0, cost_source="recorded")
    listed = step("gpt-5.2", input_tokens=1000, output_tokens=0)
    apply(session(call, listed))
    assert (call.cost_usd, call.replaced_cost_usd) == (0.001, 9.0)
    assert call.cost_source is not None and call.cost_source.startswith("own-") and listed.cost_source == "2026-11"
    assert "$1" in prices.cost_formula(call)
    prices.use_own_prices(OWN.replace("input = 1\n", "input = 7\n").encode())
    assert "$7" not in prices.cost_formula(call)  # by other prices than it was paid


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[models.a]\ninputs = 1", "inputs"),
        ("[models.a]\ninput = -1", "input is -1"),
        ("[models.a]\ninput = inf", "input is inf"),
        ("[models.a]\n", "no price"),
        ("[models.a]\ninput = 1\nsince = 2026-02-01\nuntil = 2026-02-01", "until"),
        ("[models.a]\ninput = 1\nrates = [{output = 1}]", "outside"),
        ("models = 3", "models"),
        ("[models.a", "not a price file"),
    ],
)
def test_a_wrong_price_file_says_what_is_wrong(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(PriceError, match=says) as caught:
        prices.use_own_prices(file)
    assert "mine.toml" in caught.value.message
    prices.use_own_prices(b"")


def test_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PriceError, match=r"nowhere\.toml"):
        prices.use_own_prices(tmp_path / "nowhere.toml")
