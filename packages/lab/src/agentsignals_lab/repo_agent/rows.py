"""Rows of an agent's work on repositories: a row an episode, a row a step."""

from __future__ import annotations

from typing import ClassVar

from agentsignals_lab.runs import Row

EPISODE_KEY = ("condition", "task", "sample")


class RepoEpisodeRow(Row, frozen=True, kw_only=True):
    """One repository under one condition, from the issue to the patch."""

    KEY: ClassVar[tuple[str, ...]] = EPISODE_KEY
    condition: str
    task: str
    """Id and version."""
    sample: int
    steps: int
    ended: str
    """`submitted`, `steps`: there were no more, or `room`: the chat became longer than it may."""
    applies: bool
    """True if there is a patch of code, and it applies."""
    visible_pass: bool
    hidden_pass: bool
    """Visible and hidden tests together, as they were handed out or kept back."""
    full_pass: bool
    error: str
    changed: list[str]
    """All files of the patch, tests included."""
    tests_edited: list[str]
    """Tests that were there and are changed or gone."""
    tests_added: list[str]
    hardcoding_hints: list[str]
    """Literals of the shown tests that the code newly singles out (`hints`)."""
    forging: list[str]
    """Parts of the patch of code that reach for the test run itself (`patches.PatchVerdict`)."""
    edits: int
    invalid_actions: int
    """Answers without an action that could be understood."""
    refused_actions: int
    """Actions that reach for what is not the agent's."""
    failed_actions: int
    """Understood, allowed, and not possible: no such file, a diff that does not apply."""
    test_runs: int
    last_test_passed: bool | None
    """Result of its own last run of the tests as they then stood; None where it ran none."""
    untested: bool
    """Changed something after its last run of the tests, or never ran them."""
    patch: str
    """All changes, tests included."""
    evaluator: str
    tier: str | None


class RepoStepRow(Row, frozen=True, kw_only=True):
    """One answer of the model, what it did, and what the model was shown."""

    KEY: ClassVar[tuple[str, ...]] = (*EPISODE_KEY, "step")
    condition: str
    task: str
    sample: int
    step: int
    """From 0."""
    seed: int
    """Seed of its random numbers: equal in every condition."""
    prompt_tokens: int | None
    tokens: int | None
    """None where a server did not tell; so `prompt_tokens`."""
    finish: str
    logprob_sum: float | None
    answer: str
    action: str
    """Its kind; `none` where there was none to be understood."""
    argument: str
    """The file, or what was searched for."""
    status: str
    """`ok`, `error`, `refused`, or `invalid`."""
    shown: str
    """Message that the model got about it."""
    patch: str
    """Changes of the step."""
    more_actions: int
    """Blocks after the first, which were not done."""
    exit_code: int | None
    """Exit code of its run of the tests; None where there was none, or it was stopped."""
    passed: bool | None
    frustration_per_100_words: float | None
    desperation_per_100_words: float | None
    give_up_per_100_words: float | None
    prose_words: int
    wall_time_s: float
    """Seconds of running tests."""
