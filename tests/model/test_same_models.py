"""One model in the spellings of its providers, and models that are not one."""

from __future__ import annotations

import pytest

from agentsignals.model.prices import same_models

ONE = [
    ("@google/gemini-2.5-pro", "google/gemini-2.5-pro", "vertex_ai/gemini-2.5-pro", "models/gemini-2.5-pro"),
    ("openai/neulab/claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-20250514", "claude-sonnet-4-20250514"),
    ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4@20250514", "claude-4-sonnet"),
    ("claude-sonnet-4-0", "claude-sonnet-4-20250514", "Claude Sonnet 4", "openrouter/anthropic/claude-sonnet-4"),
    ("gpt-4o", "gpt-4o-2024-08-06", "azure/gpt-4o", "openai:gpt-4o"),
    ("acme/one", "openrouter/acme/one", "hosted_vllm/acme/one", "one"),
    ("together_ai/Qwen/Qwen3-8B", "qwen3-8b", "fireworks_ai/accounts/fireworks/models/qwen3-8b", "qwen/qwen3-8b:free"),
    ("gpt-5-latest", "gpt-5"),
]
SEVERAL = [
    ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", "gpt-4o"),
    ("claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929", "claude-opus-4-20250514", "claude-opus-4-1-20250805"),
    ("gemini-2.5-pro", "gemini-2.5-pro-preview", "gemini-2.5-flash", "gemini-3-pro"),
    ("gpt-5", "gpt-5-high", "gpt-5-mini", "gpt-5-codex", "gpt-5.1"),
    ("kimi-k2-instruct", "kimi-k2-0905", "kimi-k2-0711"),
    ("qwen3-8b", "qwen3-8b-fp8", "qwen3-32b"),
    ("acme/one", "beta/one", "one"),
    ("/weights/a/best", "/weights/b/best", "runs/a/checkpoint-500", "runs/b/checkpoint-500"),
]


@pytest.mark.parametrize("names", ONE)
def test_spellings_of_one_model_are_one(names: tuple[str, ...]) -> None:
    assert set(same_models(names).values()) == {min(names, key=lambda name: (len(name), name))}


@pytest.mark.parametrize("names", SEVERAL)
def test_other_models_stay_apart(names: tuple[str, ...]) -> None:
    assert same_models(names) == {name: name for name in names}
