"""Signals of retry loops, by llm-emotions' definitions: tests passed, recovery, and wording in code and text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from agentsignals.model import UNSPOKEN, Absent, Event
from agentsignals.model.lazy import deferred_pattern
from agentsignals.signals import Measured, rate_of, ratio, signals_with
from agentsignals.views.session import Evidence, SessionView
from agentsignals.words.lexicon import MARKERS, RETRY, SIGNS_OF_MARKERS, other_language, words_among, words_said
from agentsignals.words.text import beyond_ascii, is_of_word, lowered

signal = signals_with(context="eval", level="attempt", priority="P1", status="needs an artifact", origin="llm-emotions")

# Visible tests are those the agent was shown, hidden ones were only scored. An attempt log tells them as rewards of
# those names; harnesses seldom have both.

_EXCEPTION = deferred_pattern(r"(?:[A-Za-z_]\w{0,63}\.){0,8}([A-Za-z_]\w{0,63})(?:\(|:|$)")
_EXPECTED = deferred_pattern(r"expected .{0,2000}?, got ", re.DOTALL)
_PLAIN_ERRORS = frozenset(("function_not_found", "invalid_python", "timeout", "no_result"))
_ERROR_CHARS = 4_000
_LOG = "attempt_log"


def tests_pass(tests: str, doc: str) -> None:
    """Declare whether all tests of a set pass, as the attempt log's reward of that name says."""

    def passed(view: SessionView, why: Evidence) -> bool | Absent:
        attempt = view.session.attempt
        rewards = (attempt.rewards if attempt is not None else None) or {}
        value = next((v for name in (tests, f"{tests}_pass") if (v := rewards.get(name)) is not None), None)
        if attempt is None or value is None:
            return Absent("missing_artifact", _LOG)
        why.support(attempt.saying("rewards"))
        return value == 1

    computed = f"The reward `{tests}` or `{tests}_pass` of the attempt's facts is 1; absent without it."
    facts = {"hindsight": "the verdict", "source": "verifier", "harness": True, "computation": computed}
    signal(f"loop.{tests}_pass", "bool", "flag", doc=doc, **facts)(passed)


tests_pass(
    "visible",
    """Whether all tests that the agent was shown pass for the code of this attempt.

    Pitfalls: It ends the loop: an attempt after it does not exist.
    """,
)
tests_pass("hidden", "Whether all tests that the agent was not shown pass for the code of this attempt.")


@signal("loop.task_pass", "bool", "flag", source="verifier")
def task_pass(visible_pass: bool, hidden_pass: bool) -> bool:
    """Whether all tests pass: loop.visible_pass and loop.hidden_pass."""
    return visible_pass and hidden_pass


@signal("loop.attempts_used", "int", "attempts", hindsight="the verdict", level="session", source="harness",
        harness=True, status="computed")  # fmt: skip
def attempts_used(
    view: SessionView, why: Evidence, visible_pass: bool | Absent, reward: float | Absent
) -> Measured | Absent:
    """Attempts that the trial took, up to the one that passed or the last one allowed: attempt_index + 1 of the attempt
    with is_last.

    Pitfalls: `censored` at the most attempts allowed: with more of them it might have been solved. One value on the
    project's corpus.
    """
    attempt = view.session.attempt
    if attempt is None or attempt.attempt_index is None:
        return Absent("missing_artifact", _LOG)
    if not attempt.is_last:
        return Absent("not_applicable", "not_the_last_attempt")
    why.support(attempt.statements)
    by_reward = None if isinstance(reward, Absent) else reward == 1
    passed = by_reward if isinstance(visible_pass, Absent) else visible_pass
    return Measured(attempt.attempt_index + 1, {"censored": None if passed is None else not passed})


@signal("loop.first_failure_error", "str",
        "function_not_found|invalid_python|timeout|no_result|assertion|exception:<type>", hindsight="the verdict",
        source="verifier", priority="P2", harness=True)  # fmt: skip
def first_failure_error(view: SessionView, why: Evidence, visible_pass: bool | Absent) -> str | Absent:
    """The kind of error that the attempt's tests ended in: an assertion where values differ, else the exception.

    From `message` of the report, of an attempt with an attempt log: function_not_found, invalid_python, timeout or
    no_result as written; assertion for `expected X, got Y` and AssertionError; timeout for `timed out` or `timeout`;
    else `exception:` and the name it begins with, if that ends in Error, Exception, Exit, Interrupt, Iteration or
    Warning. Absent for another message, without one, and where loop.visible_pass is true.

    Pitfalls: Of the first test that failed only.
    """
    attempt = view.session.attempt
    if visible_pass is True:
        return Absent("not_applicable", "passed")
    tests = attempt.verification if attempt is not None else None
    if attempt is None or _LOG not in attempt.kinds or tests is None:
        return Absent("missing_artifact", _LOG)
    if not tests.message:
        return Absent("missing_field", "error")
    why.support(attempt.saying("verification"))
    kind = error_kind(tests.message)
    return kind if kind is not None else Absent("not_computable", "unknown_error")


@signal("loop.condition", "str", "label", source="harness", priority="P2", harness=True)
def condition(view: SessionView, why: Evidence) -> str | Absent:
    """The steering condition of the run, `baseline` or an emotion with its strength: the knob condition.

    Pitfalls: Part of the treatment: never pool over it.
    """
    attempt = view.session.attempt
    value = attempt.knobs.get("condition") if attempt is not None else None
    if attempt is None or not isinstance(value, str) or not value:
        return Absent("not_applicable", "no_steering")
    why.support(attempt.saying("knobs.condition"))
    return value


def error_kind(text: str) -> str | None:
    """Return the class of an error as a test harness words it; None for words that name none."""
    text = text.strip()[:_ERROR_CHARS]
    if text in _PLAIN_ERRORS:
        return text
    if _EXPECTED.match(text):
        return "assertion"
    lowered = text[:200].lower()
    if "timed out" in lowered or "timeout" in lowered:
        return "timeout"
    name = _EXCEPTION.match(text)
    if name is None or not (name[1].endswith(("Error", "Exception", "Exit", "Interrupt", "Iteration", "Warning"))):
        return None
    return "assertion" if name[1] == "AssertionError" else f"exception:{name[1]}"


# Trials: outcomes over all attempts in the store (llm-emotions, Agent Signals).

_TREATMENT = (
    "agent_type", "attempt1_tool_cap", "concurrency", "condition", "dataset", "model_id", "retry_tool_cap", "timeout_s",
)  # fmt: skip
_KNOB_CHARS = 200
_MOST = 10**15
"""A larger cap is none."""


@signal("loop.attempt_result", "obj", "row", version=2, source="harness", priority="P0", harness=True,
        status="computed", origin="this project")  # fmt: skip
def attempt_result(  # noqa: PLR0913  (each is a signal of its own that it puts together)
    view: SessionView,
    why: Evidence,
    reward: float | Absent,
    visible_pass: bool | Absent,
    hidden_pass: bool | Absent,
    task_pass: bool | Absent,
    cost_usd: float | Absent,
    model_id: str | Absent,
    agent_type: str | Absent,
) -> dict[str, Any] | Absent:
    """Result of the attempt: trial, position, reward, tests passed, cost, whether its code parses, and treatment.

    Keys: trial (trial_id), attempt_index, reward, visible, hidden, task (those signals' values or null), valid (rating
    valid_python), cost_usd, treatment (`name=value; ...` of agent_type, attempt1_tool_cap, concurrency, condition,
    dataset, model_id, retry_tool_cap and timeout_s, where configured). Absent without a trial_id.

    Pitfalls: For adding up over attempts; each of its parts is a signal of its own, which says why it is missing.
    Why: The input of figures over trials, such as recovery and cost per solved task.
    """
    attempt = view.session.attempt
    if attempt is None or attempt.trial_id is None:
        return Absent("missing_artifact", "result_json")
    why.support(attempt.statements)
    knobs = {**attempt.knobs, "model_id": _or_none(model_id), "agent_type": _or_none(agent_type)}
    valid = (attempt.ratings or {}).get("valid_python")
    settings = []
    for name in _TREATMENT:
        knob = knobs.get(name)
        if type(knob) is int and abs(knob) > _MOST:
            settings.append(f"{name}=unlimited")
        elif knob is not None:
            # Masked before it is cut: no rule recognises half a key.
            plain = _masked(str(knob))[:_KNOB_CHARS] if type(knob) in (str, int, float, bool) else type(knob).__name__
            settings.append(f"{name}={plain}")
    return {
        "trial": attempt.trial_id,
        "attempt_index": attempt.attempt_index or 0,
        "reward": _or_none(reward),
        "visible": _or_none(visible_pass),
        "hidden": _or_none(hidden_pass),
        "task": _or_none(task_pass),
        "valid": valid if isinstance(valid, bool) else None,
        "cost_usd": _or_none(cost_usd),
        "treatment": "; ".join(settings),
    }


@signal("loop.retry_recovery", "float", "ratio", level="corpus", source="derived", status="computed")
def retry_recovery(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Trials that fail their first attempt and pass on a later one / trials that fail their first attempt.

    A trial fails its first attempt where its tests (loop.task_pass), else its reward, say so.

    Pitfalls: Depends on how many retries were allowed: `retried` of the `den` trials had one at all.
    Why: Tells better recovery from better first attempts.
    """
    trials = _trials(attempt_result)
    failed = [t for t in trials if _first_outcome(t) is False]
    at = [next((a["attempt_index"] for a in t[1:] if _outcome(a)), None) for t in failed]
    recovered = sorted(n for n in at if n is not None)
    by_attempt = [bisect_right(recovered, k) for k in range(recovered[-1] + 1)] if recovered else []
    visible = [t for t in trials if t[0]["attempt_index"] == 0 and t[0]["visible"] is False]
    return ratio(
        len(recovered),
        len(failed),
        retried=len([t for t in failed if len(t) > 1]),
        unknown_first=len([t for t in trials if _first_outcome(t) is None]),
        recovered_by_attempt=by_attempt,
        visible={"num": len([t for t in visible if any(a["visible"] for a in t[1:])]), "den": len(visible)},
    )


@signal("loop.hidden_pass_rate", "float", "ratio", level="corpus", source="derived")
def hidden_pass_rate(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Trials whose last attempt has loop.hidden_pass true / trials whose last attempt has one.

    Pitfalls: Look at the gap to the visible tests attempt by attempt too.
    """
    ends = [t[-1] for t in _trials(attempt_result) if t[-1]["hidden"] is not None]
    told = {name: [bool(a[name]) for a in ends if a[name] is not None] for name in ("visible", "task")}
    rates = {f"{name}_pass_rate": sum(passed) / len(passed) if passed else None for name, passed in told.items()}
    return ratio(len([a for a in ends if a["hidden"]]), len(ends), **rates)


@signal("loop.visible_hidden_gap", "float", "difference", level="corpus", source="derived")
def visible_hidden_gap(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Share of trials whose last attempt passes the visible tests minus the share that passes the hidden ones, over
    trials whose last attempt has both.

    Pitfalls: Small where hidden tests resemble the visible ones.
    Why: Shows code fitted to the visible tests.
    """
    ends = [t[-1] for t in _trials(attempt_result) if t[-1]["hidden"] is not None and t[-1]["visible"] is not None]
    if not ends:
        return Absent("not_computable", "zero_denominator")
    more = len([a for a in ends if a["visible"]]) - len([a for a in ends if a["hidden"]])
    return Measured(more / len(ends), {"num": more, "den": len(ends)})


@lru_cache(maxsize=1024)
def _masked(text: str) -> str:
    """Cached, since all attempts of a run have the same settings."""
    from agentsignals.redaction import redacted  # noqa: PLC0415  (loaded where a value is asked for, not in each run)

    return redacted(text)


def _or_none(value: Any) -> Any:
    return None if isinstance(value, Absent) else value


def _trials(attempts: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    trials: dict[str, list[dict[str, Any]]] = {}
    for attempt in attempts:
        trials.setdefault(attempt["trial"], []).append(attempt)
    return [sorted(t, key=lambda a: int(a["attempt_index"])) for _, t in sorted(trials.items())]


def _outcome(attempt: dict[str, Any]) -> bool | None:
    """Return whether the attempt solved the task: by its tests, else by its reward."""
    if attempt["task"] is not None:
        return bool(attempt["task"])
    return None if attempt["reward"] is None else attempt["reward"] == 1


def _first_outcome(trial: list[dict[str, Any]]) -> bool | None:
    return _outcome(trial[0]) if trial[0]["attempt_index"] == 0 else None


# Scores of an attempt's source code. The lab scores its attempts where it runs them, and its traces carry the scores;
# other harnesses keep neither code nor scores (design/signals.md#retry-loop).

_NO_SOURCE = Absent("missing_artifact", "attempt_log")


def _rated(view: SessionView, why: Evidence, name: str) -> Any:
    """Return a score that the harness gave the attempt's code; _NO_SOURCE where it gave none, or no valid one."""
    attempt = view.session.attempt
    score = None if attempt is None or attempt.ratings is None else attempt.ratings.get(name)
    if attempt is None or not isinstance(score, bool | int | float | list):
        return _NO_SOURCE
    why.support(attempt.saying("ratings"))
    return score


@signal("loop.valid_python_rate", "float", "ratio", version=2, level="corpus", source="derived")
def valid_python_rate(attempt_result: list[dict[str, Any]]) -> Measured | Absent:
    """Attempts with the rating valid_python true (the source parses and defines the function) / those that have it."""
    validities = [attempt["valid"] for attempt in attempt_result if attempt["valid"] is not None]
    return ratio(sum(validities), len(validities)) if validities else _NO_SOURCE


def rated(flag: str, rating: str, doc: str) -> None:
    """Declare that a score of the harness is not zero or empty."""

    def is_rated(view: SessionView, why: Evidence) -> bool | Absent:
        score = _rated(view, why, rating)
        return score if isinstance(score, Absent) else bool(score)

    facts = {"computation": f"The rating `{rating}` of the attempt's facts is not empty; absent without it."}
    signal(flag, "bool", "flag", doc=doc, version=2, source="derived", harness=True, **facts)(is_rated)


rated(
    "loop.import_mistake",
    "imports_missing",
    """Whether the source imports what is forbidden or missing, or uses a module that it did not import.

    Pitfalls: Named in llm-emotions without a definition: this one is the project's.
    """,
)
rated(
    "loop.hardcoding",
    "hardcoded",
    """True if the source returns expected outputs of visible tests as literals.

    Pitfalls: Literals miss special cases that are computed: read with visible_pass and not hidden_pass.
    """,
)
_OVER_ATTEMPTS = {"priority": "P1", "source": "derived", "origin": "llm-emotions", "context": "eval"}
_SCORED = {**_OVER_ATTEMPTS, "status": "needs an artifact"}
rate_of("loop.import_mistake", "Attempts with an import mistake / attempts.", **_SCORED)
rate_of("loop.hardcoding", "Attempts with hardcoding / attempts whose source parses.", **_SCORED)
rate_of(
    "loop.marker_score",
    """Mean of loop.marker_score over attempts.

    Pitfalls: A mean over attempts, not tasks: models that pass early contribute fewer.
    """,
    path="loop.mean_marker_score",
    unit="count per attempt",
    **_OVER_ATTEMPTS,
)


@signal("loop.test_fixation", "bool", "flag", version=2, source="derived", harness=True)
def test_fixation(view: SessionView, why: Evidence) -> bool | Absent:
    """Whether the attempt works on the tests instead of the task: hardcodes, says so, or changes those tests.

    True where the harness's rating `hardcoded` or `tests_edited` is true or not empty; absent where it gave neither.

    Pitfalls: The word “hack” alone is weak.
    """
    rated = [_rated(view, why, name) for name in ("hardcoded", "tests_edited")]
    ratings = [bool(rating) for rating in rated if not isinstance(rating, Absent)]
    return any(ratings) if ratings else _NO_SOURCE


@signal("loop.off_task_continuation", "bool", "flag", source="derived", priority="P2")
def off_task_continuation() -> Absent:
    """Whether the text beside the function asked for is longer than twice that function.

    Always absent (missing_artifact, attempt_log): no harness keeps the code.

    Pitfalls: Named in llm-emotions as something to observe, without a formula.
    """
    return _NO_SOURCE


@signal("loop.negative_projection", "float", "cosine", source="harness", priority="P3")
def negative_projection() -> Absent:
    """Mean projection of the prompt on the directions frustrated, desperate, stuck and stressed.

    Always absent (missing_artifact, activations): no trace keeps activations.

    Pitfalls: Its sign can't be compared between models.
    """
    return Absent("missing_artifact", "activations")


# The surface markers of llm-emotions: words that look like feelings, counted as its published scorer counts them.

_ONLY_RETRY = deferred_pattern(r"\bonly .* retry\b")

_KINDS = bytes(
    ord("A") if chr(n).isupper() else ord("a") if chr(n).isalnum() or chr(n) == "_" else ord(" ") for n in range(128)
).ljust(256)
_CAPITALS = re.compile(rb" AAA+(?= )")
"""A word of three capitals or more, in a text where capitals are A and other characters of words are a."""


@signal("loop.marker_score", "int", "count", context="both", source="regex", status="computed")
def marker_score(view: SessionView, why: Evidence) -> Measured | Absent:
    """Profanity, frustration, desperation, hardcoding and giving-up words, exclamation marks and words in capitals in
    what the agent said, code included, as llm-emotions's scorer counts them.

    Over the main thread's text events, raw: the matches of each of the five word tables (docs/patterns.md), in whole
    words and any case, and of `only ... retry` in a line; each `!`; each word of three capitals or more
    (`\\b[A-Z]{3,}\\b`). Absent where the agent writes another language than English.

    Pitfalls: “!=” and constants inflate it: `no_code` is the same count over prose. Nearly all of it is capitals.
    Why: Kept because the seed published it; its point is that it does not track performance.
    """
    prose = view.prose
    if (other := other_language(prose)) is not None:
        return other
    raw = "\n".join([event.text or "" for event in prose.events])
    code = "\n".join(prose.code)
    # Every word of the messages is in their prose or in what was cut out of it, which is little.
    in_code = words_among(SIGNS_OF_MARKERS, lowered(code))
    quoted = words_among(SIGNS_OF_MARKERS, lowered("\n".join(prose.quoted)))
    counts = _count(raw, words_said(prose) | in_code | quoted)
    total = sum(counts.values())
    no_code = total - sum(_count(code, in_code).values())
    messages = "\n".join([t.text for t in view.turns if t.kind not in UNSPOKEN])
    foreign = view.mostly_foreign() is not None
    person = None if foreign else sum(_count(messages, words_among(SIGNS_OF_MARKERS, lowered(messages))).values())
    why.matches(match for event in prose.events for match in _spelled_out(event))
    why.rule("seven surface counts, summed (design/lab.md#markers)")
    names = (*(m.name for m in MARKERS), "exclamation", "all_caps")
    detail = {name: counts.get(name, 0) for name in names}
    return Measured(total, {**detail, "no_code": no_code, "user": person})


def _count(text: str, words: frozenset[bytes]) -> dict[str, int]:
    """Count the seven markers in a text that has these words and no other sign of a marker; some zeros are left out."""
    if not text:
        return {}
    counts = {"exclamation": text.count("!"), "all_caps": _count_capitals(text)}
    words &= SIGNS_OF_MARKERS
    if words:
        low = lowered(text)
        retries = list(_only_retry(low)) if RETRY in words and "only " in low else []
        counts["desperation"] = len(retries)
        for marker in MARKERS:
            if not marker.signs.isdisjoint(words):
                spans = marker.find(low, words)
                if marker.name == "desperation":
                    # A word inside "only … retry" is counted already.
                    spans = [s for s in spans if not any(start <= s.start < end for start, end in retries)]
                counts[marker.name] = counts.get(marker.name, 0) + len(spans)
    return counts


def _count_capitals(text: str) -> int:
    kinds = b" " + text.encode("ascii", "replace").translate(_KINDS) + b" "
    if text.isascii() or not any(map(is_of_word, beyond_ascii(text))):
        return len(_CAPITALS.findall(kinds))
    # A letter beyond ASCII beside them makes them part of another word.
    spans = [match.span() for match in _CAPITALS.finditer(kinds)]
    return sum(not (is_of_word(text[max(a - 1, 0) : a]) or is_of_word(text[b - 1 : b])) for a, b in spans)


def _only_retry(low: str) -> Iterator[tuple[int, int]]:
    """Yield where a line says "only … retry": from the first to the last, once a line."""
    at = 0
    for line in low.split("\n"):
        end = line.rfind(" retry")
        while end >= 0 and is_of_word(line[end + 6 : end + 7]):
            end = line.rfind(" retry", 0, end)
        if end >= 0 and (match := _ONLY_RETRY.search(line[: end + 6])):
            yield at + match.start(), at + match.end()
        at += len(line) + 1


def _spelled_out(event: Event) -> Iterator[tuple[Event, str, str]]:
    """Yield the markers of one message for the evidence."""
    text = event.text or ""
    low = lowered(text)
    words = words_among(SIGNS_OF_MARKERS, low)
    for marker in MARKERS:
        for span in marker.find(low, words):
            yield event, span.name, text[span.start : span.end]
    for start, end in _only_retry(low):
        yield event, "desperation", text[start:end]
    for match in re.finditer(r"\b[A-Z]{3,}\b", text):
        yield event, "all_caps", match[0]
    if "!" in text:
        yield event, "exclamation", f"{text.count('!')} exclamation marks"
