"""Rows of a retry loop: a row an episode, a row an attempt, a row a projection."""

from __future__ import annotations

from typing import ClassVar

from agentsignals_lab.runs import Row

EPISODE_KEY = ("condition", "task", "sample")


class EpisodeRow(Row, frozen=True, kw_only=True):
    """One task under one condition, from the first attempt to the last. Hidden results are of the last attempt."""

    KEY: ClassVar[tuple[str, ...]] = EPISODE_KEY
    condition: str
    task: str
    """Id, version and variant."""
    sample: int
    attempts: int
    visible_pass: bool | None
    hidden_pass: bool | None
    full_pass: bool | None
    failed_first: bool
    recovered: bool
    """The first attempt failed and a later one passed its visible tests."""
    passed_at: int | None
    """Number (from 0) of the first attempt that passed its visible tests."""
    regressed: int
    """Attempts that pass fewer visible cases than the one before."""
    repeated: int
    """Attempts whose code is that of the attempt before."""
    hardcoded: bool
    """In its last attempt."""
    evaluator: str
    tier: str | None


class AttemptRow(Row, frozen=True, kw_only=True):
    """One answer of the model and what it was worth."""

    KEY: ClassVar[tuple[str, ...]] = (*EPISODE_KEY, "attempt")
    condition: str
    task: str
    sample: int
    attempt: int
    """From 0."""
    seed: int
    """Seed of its random numbers: equal in every condition."""
    prompt_tokens: int | None
    """None where a server did not tell."""
    tokens: int | None
    """Tokens of the answer; None where a server did not tell."""
    finish: str
    logprob_sum: float | None
    answer: str
    source: str
    """The code that ran."""
    feedback: str
    """Feedback after it; empty after the last."""
    error: str
    error_class: str
    valid_python: bool
    visible_pass: bool | None
    hidden_pass: bool | None
    full_pass: bool | None
    visible_passed: int
    n_visible: int
    hidden_passed: int
    n_hidden: int
    hardcoded: bool
    marker_score: int
    """The published sum of seven counts on the raw text (`legacy`)."""
    frustration_per_100_words: float | None
    desperation_per_100_words: float | None
    give_up_per_100_words: float | None
    prose_words: int
    evaluator: str
    tier: str | None
    wall_time_s: float
    """Seconds of running its code."""


class ProjectionRow(Row, frozen=True, kw_only=True):
    """Projection of the prompt of an attempt on a direction, in the unsteered model."""

    KEY: ClassVar[tuple[str, ...]] = (*EPISODE_KEY, "attempt", "direction", "layer", "span")
    condition: str
    task: str
    sample: int
    attempt: int
    direction: str
    layer: int
    span: str
    """`all`, or the role of the tokens."""
    cosine: float | None
    """None where the prompt has no such tokens."""
    coordinate: float | None
    """In median norms of the layer."""
