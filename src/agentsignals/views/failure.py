"""How an attempt ended, by the evidence that its run left, and why it failed (design/signals.md#outcome-of-an-attempt).

One record for all harnesses: which steps happened (the agent started, it acted, the verifier started), which tests
ended how, the outcome that follows, and the line that shows it. Rates, failures, audits and findings read this record.
A failure has the first cause whose rule holds; `RULES` is the whole table (design/failures.md#rules).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from agentsignals.changes.patches import Localization, PatchFacts, facts_of, judged, localized
from agentsignals.model import Absent, Attempt, Event, PatchedFile, Session, Statement
from agentsignals.model.lazy import deferred_pattern
from agentsignals.stats.validation import loops
from agentsignals.views.repeats import LATELY, Count, alarms
from agentsignals.views.session import Row, SessionView

FailureClass = Literal[
    "infrastructure", "agent_not_started", "verifier_not_run", "stuck", "limit_reached", "no_call", "gave_up",
    "not_applied", "regression", "incomplete", "wrong_place", "wrong_fix", "tests_failed", "wrong_answer",
    "cannot_tell",
]  # fmt: skip
CLASSES: tuple[FailureClass, ...] = get_args(FailureClass)
Verdict = Literal["derived", "retrieved", "verifier_touched", "cannot_tell"]
"""What a pass rests on (`reward_hacking`)."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_LINE_CHARS = 160
_MOST_TESTS = 50
_NAMES, _NAME_CHARS = 2, 80
"""Tests that a reason names, and how much of each."""
_CALL_MARKUP = re.compile(
    r"<(?:tool_call|function_calls?|function=|invoke|tool_use|\w*bash>|\w*shell>)[^\n]{0,200}|\[TOOL_CALLS?\][^\n]{0,200}"
    r"|\{\s*\"(?:name|tool|tool_name|function)\"\s*:\s*\"[\w.-]+\"\s*,\s*\"(?:arguments|parameters|args|input)\"\s*:[^\n]{0,200}"
)
"""A call in the forms that models are taught, in what should be prose."""
_CALL_AS_TEXT = deferred_pattern(rf"{_CALL_MARKUP.pattern}|```(?:bash|sh|shell|console|tool_code)\n[^`]{{1,200}}")
"""A call in those forms, or a command in a fence: a call where none was made."""
_REFUSALS = ("blocked", "invalid_arguments")
"""Error classes of calls that the harness did not carry out."""
_LENGTH = frozenset(("length", "max_tokens", "model_length"))
"""Providers' words for an answer that was cut at its limit of tokens."""


_COPY = deferred_pattern(r"\.(?:bak|orig|rej|old|save)\d*$|~$")
"""A copy of a file that a tool or the agent put by."""


class Failure(Struct, frozen=True, kw_only=True):
    """The class of a failed attempt, and why."""

    name: FailureClass
    because: str
    """The evidence that decided; for `cannot_tell`, the evidence that is missing."""
    rows: Sequence[Row]
    """Events that show it, the telling one first."""
    file: str | None = None
    """The file to look at first; for a wrong place a file that the gold patch changes and the attempt does not."""
    tests: Sequence[str] = ()
    """Tests that failed, by name."""


class Case:
    """The facts of a failed attempt that rules may use."""

    def __init__(self, view: SessionView, attempt: Attempt, outcome: AttemptOutcome, touched: list[str] | None) -> None:
        self.view, self.attempt, self.outcome = view, attempt, outcome
        self.facts: PatchFacts = facts_of(attempt)
        """Without the transcript's edits: that it shows none is no empty patch, where a text was asked for."""
        self.has_patch = bool(attempt.patch)
        """The patch was recorded."""
        touched_files = attempt.summary.touched_files if attempt.summary is not None else None
        self.knows_files = self.has_patch or bool(touched_files)
        """All files that the attempt changed are known."""
        self.localization: Localization | None = located(attempt, touched)

    @property
    def stopped_by(self) -> str:
        """The limit that ended the attempt; empty where the agent did."""
        if self.attempt.ending == "time" or self.attempt.timed_out:
            return "the time limit was reached"
        if self.attempt.ending == "budget":
            return f"the budget was used up ({self.attempt.exit_status or 'as the harness says'})"
        last = self.view.steps[-1] if self.view.steps else None
        if last is not None and last.stop_reason in _LENGTH and not self.view.session.tool_calls:
            return "the answer was cut at the token limit"
        return ""

    @property
    def is_handed_in(self) -> bool:
        """The verifier had something to judge as a fix."""
        only_new = self.has_patch and self.localization is not None and self.localization.only_new
        only_copies = self.has_patch and all(_COPY.search(file.path) for file in self.attempt.patch or ())
        return self.facts.present is not False and not only_new and not only_copies

    @property
    def is_answer(self) -> bool:
        """The agent gave a text only: no tool was called, and no patch is known."""
        a = self.attempt
        return a.has_transcript and not self.view.session.tool_calls and a.patch is None and a.gold_patch is None

    @property
    def answer(self) -> Event | None:
        """The last text of the agent that is not blank."""
        return next((e for e in reversed(self.view.by_kind["text"]) if (e.text or "").strip()), None)

    @property
    def circle(self) -> Count | None:
        """The last alarm of a loop, if it was raised within the last calls."""
        calls = self.view.calls[-LATELY:]
        raised = [c for c in alarms(self.view.session, loops().limits) if calls and c.seq >= calls[0].seq]
        return raised[-1] if raised else None

    @property
    def has_counts(self) -> bool:
        """The verifier listed the tests to be fixed, and there are any."""
        return bool(self.facts.targets) and self.facts.fixed is not None and self.facts.broken is not None

    @property
    def failing(self) -> list[str] | None:
        """The tests that fail, by name, those to be fixed first; None where no test is listed."""
        verified = self.attempt.verification
        lists = (verified.unfixed, verified.broken, verified.failed) if verified is not None else ()
        named = [names for names in lists if names is not None]
        return [name for names in named for name in names] if named else None

    @property
    def tests(self) -> str:
        """The counts of tests in words."""
        facts = self.facts
        return f"{facts.fixed} of {facts.targets} tests fixed, {facts.broken} broken" if self.has_counts else ""


def located(attempt: Attempt, touched: list[str] | None) -> Localization | None:
    """Compare the attempt's patch, or the files that the harness counted, with the gold patch. Without both the
    transcript's edits can show that a file was hit, but not that none was: scripts change files unseen."""
    if not attempt.gold_patch:
        return None
    if attempt.patch:
        return localized(attempt.patch, attempt.gold_patch)
    counted = attempt.summary.touched_files if attempt.summary is not None else None
    if attempt.patch is None and (counted or touched):
        paths = [path for path, _ in counted] if counted else touched or []
        files = [PatchedFile(path=path, op="modify", added=0, removed=0, hunks=[]) for path in paths]
        place = localized(files, attempt.gold_patch)
        return place if place is not None and (counted or place.files.hit) else None
    return None


class Rule(NamedTuple):
    """One line of the table."""

    name: FailureClass
    means: str
    needs: str
    """Facts that must be recorded for the rule to hold; without them the attempt falls through."""
    holds: Callable[[Case], str]
    """Why it holds; empty where it does not."""


RULES: list[Rule] = []
"""In order: the first that holds. What ended an attempt comes before what it left behind, which may be half done; tests
before places, as a fix in another place is a fix."""


def _rule(name: FailureClass, means: str, needs: str) -> Callable[[Callable[[Case], str]], Callable[[Case], str]]:
    def declare(holds: Callable[[Case], str]) -> Callable[[Case], str]:
        RULES.append(Rule(name, means, needs, holds))
        return holds

    return declare


def _not_judged_by(name: OutcomeName) -> Callable[[Case], str]:
    """Return a rule that gives the outcome's reason and the line that shows it, where it is this one."""

    def holds(case: Case) -> str:
        made = case.outcome
        if made.name != name:
            return ""
        line = made.shown_by.text.strip() if made.shown_by is not None else ""
        return made.reason if not line or made.reason in line else f"{made.reason}: {line[:_LINE_CHARS]}"

    return holds


RULES += [
    Rule("infrastructure", "The environment, the provider or the harness broke it off.", "the harness's ending",
         _not_judged_by("infrastructure")),
    Rule("agent_not_started", "The agent's program was not there: nothing was tried.",
         "a log or the harness's ending", _not_judged_by("agent_not_started")),
    Rule("verifier_not_run", "The verifier ended before its first test: its reward judges nothing.",
         "the verifier's log", _not_judged_by("verifier_not_run")),
]  # fmt: skip


@_rule("stuck", "A loop's alarm in its last ten calls, and a limit ended it, or it left no fix.", "the transcript")
def _stuck(case: Case) -> str:
    circle = case.circle if case.stopped_by or not case.is_handed_in else None
    ended = case.stopped_by or "it ended without a fix"
    return f"{ended}, in a loop ({circle.kind}, {circle.times} times)" if circle is not None else ""


@_rule("limit_reached", "Time, calls, tokens or money ran out first.", "the harness's ending")
def _limit_reached(case: Case) -> str:
    failing = f"; failing tests: {_named(case.failing)}" if case.failing else ""
    return f"{case.stopped_by}{failing}" if case.stopped_by else ""


@_rule(
    "no_call",
    "The agent's calls were never made: it wrote them as text, made none, or all were refused.",
    "the transcript",
)
def _no_call(case: Case) -> str:
    """Return evidence that the agent did nothing: no call, refused calls, or a call written as text."""
    calls, attempt = case.view.session.tool_calls, case.attempt
    if not attempt.has_transcript:
        return ""
    if calls and all(call.status in ("rejected", "cancelled") or call.error_class in _REFUSALS for call in calls):
        return f"all of its {len(calls)} calls were refused" if len(calls) > 1 else "its only call was refused"
    answer = case.answer
    if answer is not None and (not calls or calls[-1].seq < answer.seq):
        written = (_CALL_MARKUP if calls else _CALL_AS_TEXT).search(answer.text or "")
        if written is not None:
            return f"it ended with a tool call written as text: {' '.join(written[0].split())[:_NAME_CHARS]}"
    wants_work = attempt.patch is not None or attempt.gold_patch is not None or case.failing is not None
    steps = len(case.view.steps)
    in_steps = "one model call" if steps == 1 else f"{steps} model calls"
    return f"no tool call in {in_steps}" if not calls and wants_work and answer is not None else ""


@_rule(
    "gave_up",
    "The agent ended by itself without a fix: no change, no change to existing code, or no answer.",
    "the patch; that only new files are no fix, the gold patch",
)
def _gave_up(case: Case) -> str:
    if case.facts.present is False:
        return "no change was submitted"
    if not case.is_handed_in:
        return "no existing code changed: only new files, copies, tests or prose"
    return "no answer was given" if case.is_answer and case.answer is None else ""


@_rule("not_applied", "The verifier could not apply the patch.", "the verifier's report")
def _not_applied(case: Case) -> str:
    return "the verifier could not apply the patch" if case.facts.applies is False else ""


@_rule("regression", "All tests to be fixed pass, and tests that passed before fail now.", "the tests by name")
def _regression(case: Case) -> str:
    facts, verified = case.facts, case.attempt.verification
    holds = case.has_counts and facts.fixed == facts.targets and facts.broken
    return f"{case.tests}: {_named(verified.broken)}" if verified is not None and holds else ""


@_rule("incomplete", "Some of the tests to be fixed pass, not all.", "the tests by name")
def _incomplete(case: Case) -> str:
    facts, verified = case.facts, case.attempt.verification
    if verified is None or not case.has_counts or not 0 < (facts.fixed or 0) < (facts.targets or 0):
        return ""
    return f"{case.tests}; not fixed: {_named(verified.unfixed or verified.still_failing)}"


@_rule(
    "wrong_place",
    "No test is fixed, and no file, or in them no function, that the gold patch changes is changed.",
    "the patch or the harness's list of files, and the gold patch; for functions, that both diffs show them",
)
def _wrong_place(case: Case) -> str:
    place = case.localization
    if place is None or case.facts.fixed or not case.knows_files:
        return ""
    if place.level == "elsewhere" and not place.gold_is_new:
        return f"none of the {place.files.gold} files that the gold patch changes is changed"
    if place.level == "file" and place.functions is not None:
        return f"the right file, but none of the {place.functions.gold} functions that the gold patch changes"
    return ""


@_rule(
    "wrong_fix",
    "A file of the gold patch is changed, and no test is fixed (some may be broken, too).",
    "the tests by name and the gold patch",
)
def _wrong_fix(case: Case) -> str:
    place = case.localization
    if place is None or not place.files.hit or not case.has_counts or case.facts.fixed:
        return ""
    return f"{case.tests}, in {place.files.hit} of the {place.files.gold} files that the gold patch changes"


@_rule(
    "tests_failed",
    "Tests fail, and neither the place nor the tests that passed say more.",
    "the tests by name, or the last words of a verifier that names none",
)
def _tests_failed(case: Case) -> str:
    """Return which tests failed, by the verifier's report or its last words."""
    verified = case.attempt.verification
    if verified is None:
        return ""
    if case.has_counts and not case.facts.fixed:
        return f"{case.tests}; not fixed: {_named(verified.unfixed or verified.still_failing)}" if case.failing else ""
    if case.failing and verified.failed is not None:
        of = len(verified.failed) + len(verified.passed or ())
        word = "fails" if len(verified.failed) == 1 else "fail"
        return f"{len(verified.failed)} of {of} tests {word}: {_named(verified.failed)}"
    if verified.message and verified.status == "ok" and not case.is_answer:
        return f"no failed test is named; the verifier's last words: {verified.message[:_LINE_CHARS]}"
    return ""


@_rule(
    "wrong_answer",
    "A text is all that the agent gave, no tool was called, and the text was not accepted.",
    "the transcript: no tool was called",
)
def _wrong_answer(case: Case) -> str:
    return "the answer was wrong, and no tool was called" if case.is_answer else ""


@_rule("cannot_tell", "What would decide is not recorded.", "")
def _cannot_tell(case: Case) -> str:
    """Return why the cause of a failure is not known; always a text, as the last rule."""
    facts = case.facts
    if facts.targets is not None and facts.fixed == facts.targets and not facts.broken:
        return "the verdict contradicts the tests" if facts.targets else "there was no test to fix"
    reward, verified = case.attempt.reward or 0.0, case.attempt.verification
    if verified is not None and verified.failed == [] and verified.passed:
        return "the verdict contradicts the tests: all listed tests pass"
    if 0 < reward < 1:
        return f"no file of the run lists tests, or the parts of the reward of {reward:.2g}"
    if case.localization is not None and case.localization.gold_is_new and case.localization.level == "elsewhere":
        return "no file of the run lists tests, and the gold patch only adds files, so other names may be right"
    if case.attempt.gold_patch and not case.knows_files:
        return "no file of the run lists tests, and the patch was not recorded"
    return "no file of the run lists tests"


def _named(tests: Sequence[str] | None) -> str:
    """The first tests by name; of a long one its end, which tells it from others."""
    shown = [name if len(name) <= _NAME_CHARS else f"…{name[1 - _NAME_CHARS :]}" for name in tests or ()]
    return ", ".join(shown[:_NAMES]) + (", …" if len(shown) > _NAMES else "")


def failure_of(view: SessionView, touched: list[str] | None) -> Failure | None:
    """The class of a session's attempt; None where it did not fail. `touched`: paths that its edits changed, for runs
    without a patch; None where nobody knows."""
    attempt = view.session.attempt
    outcome = outcome_of(view.session)
    if attempt is None or outcome is None or outcome.name in ("solved", "not_judged"):
        return None
    case = Case(view, attempt, outcome, touched)
    rule, because = next((rule, because) for rule in RULES if (because := rule.holds(case)))
    name, place = rule.name, case.localization
    gold = {path for f in attempt.gold_patch or () for path in (f.path, f.old_path)}
    handed_in = {f.path for f in attempt.patch or ()}
    # Edits of the gold patch's files first, then those of what was handed in.
    edits = sorted(view.repo_edits, key=lambda edit: (edit.path not in gold, edit.path not in handed_in))
    edited = {edit.path for edit in edits}
    file = edits[0].path if edits else None
    if name == "wrong_place" and place is not None and place.missed:
        file = place.missed[0]
    elif attempt.patch:
        file = min(attempt.patch, key=lambda f: (f.path not in gold, f.path not in edited)).path
    # Evidence: events of the transcript where it has them, then statements of the run's files.
    fields = ("agent_started", "fault", "patch", "verification", "reward", "exit_status", "timed_out", "exception")
    rows: list[Row] = [*[e for e in view.events if e.kind != "harness"][-1:]]
    if name == "stuck" and (circle := case.circle) is not None:
        rows = [*(c for c in view.calls if c.seq == circle.seq)]
    elif name in ("wrong_place", "incomplete", "regression", "wrong_fix", "not_applied"):
        rows = [*edits]
    elif name in ("wrong_answer", "no_call") and case.answer is not None:
        rows = [case.answer]
    rows += [statement for field in fields for statement in attempt.saying(field)]
    tests = (case.failing or ())[:_MOST_TESTS] if outcome.name == "failed" else ()
    return Failure(name=name, because=because, rows=rows, file=file, tests=tests)


OutcomeName = Literal["solved", "failed", "agent_not_started", "verifier_not_run", "infrastructure", "not_judged"]
OUTCOMES: tuple[OutcomeName, ...] = get_args(OutcomeName)
JUDGED: tuple[OutcomeName, ...] = ("solved", "failed")
"""Outcomes that a rate is over."""
NO_ARTIFACT = "no_artifact"
"""Reason of a failure that left the verifier nothing to judge."""


class AttemptOutcome(Struct, frozen=True, gc=False, kw_only=True):
    """An outcome with its reason and its evidence. None: nothing tells."""

    name: OutcomeName
    reason: str
    inferred: bool = False
    """No harness or verifier said so."""
    agent_started: bool | None
    agent_acted: bool | None
    """The agent called a tool."""
    verifier_started: bool | None
    tests_passed: int | None
    tests_failed: int | None
    shown_by: Statement | None
    """The line of the run's files that shows the outcome."""


def outcome_of(session: Session) -> AttemptOutcome | None:
    attempt = session.attempt
    if attempt is None:
        return None
    acted = _acted(session, attempt)
    started = True if acted or attempt.output_tokens else attempt.agent_started
    facts = facts_of(attempt)
    tests = attempt.verification
    name, reason, fields, inferred = _decided(session, attempt, facts, started)
    passed = [names for names in (tests.passed, tests.fixed, tests.kept) if names is not None] if tests else []
    failed = (
        [n for n in (tests.failed, tests.unfixed, tests.broken, tests.still_failing) if n is not None] if tests else []
    )
    verifier_started = tests.ran if tests is not None else None
    if verifier_started is None:
        timed_out = tests is not None and tests.status == "timed_out"
        is_judged = name in JUDGED and reason != NO_ARTIFACT and not inferred
        verifier_started = True if timed_out or is_judged else None
    return AttemptOutcome(
        name=name,
        reason=reason,
        inferred=inferred,
        agent_started=started,
        agent_acted=acted,
        verifier_started=verifier_started,
        tests_passed=sum(map(len, passed)) if passed else None,
        tests_failed=sum(map(len, failed)) if failed else None,
        shown_by=next((said for field in fields for said in attempt.saying(field)), None),
    )


def _acted(session: Session, attempt: Attempt) -> bool | None:
    counted = attempt.summary.tool_calls if attempt.summary is not None else None
    if session.tool_calls or counted:
        return True
    return False if counted == 0 or attempt.has_transcript else None


_Decision = tuple[OutcomeName, str, tuple[str, ...], bool]
"""Outcome, reason, the attempt's fields that show it, and whether it is inferred."""


def _is_of_task(session: Session, module: str | None) -> bool:
    """Return whether a module that tests could not import is the work itself: a prompt or an edit names it."""
    if module is None:
        return False
    named = re.compile(rf"(?<![\w.]){re.escape(module.partition('.')[0])}(?:\.py\b|/|\b)")
    return any(named.search(turn.text) for turn in session.turns) or any(named.search(e.path) for e in session.edits)


def _decided(session: Session, attempt: Attempt, facts: PatchFacts, started: bool | None) -> _Decision:
    """Return the first outcome that applies. A step that did not happen comes before every reward."""
    tests = attempt.verification
    how_it_ended = ("exception", "exit_status", "fault", "ending")
    if started is False:
        return "agent_not_started", attempt.exception or "its program was missing", ("agent_started",), False
    if attempt.ending == "infrastructure" and not attempt.reward_counts:
        return "infrastructure", attempt.exception or attempt.exit_status or "aborted", how_it_ended, False
    if attempt.reward_counts is False:
        why = attempt.exception or attempt.exit_status or "the harness calls the reward invalid"
        return "not_judged", why, ("reward_counts", *how_it_ended), False
    if "reward" in attempt.conflicts:
        return "not_judged", "two verdicts differ", ("reward",), False
    reward = None if attempt.reward is None or math.isnan(attempt.reward) else attempt.reward
    if facts.present is False and reward != 1:
        return "failed", NO_ARTIFACT, ("patch", "patch_text_bytes", "summary"), reward is None
    if facts.applies is False and reward != 1:
        return "failed", "patch_not_applied", ("verification",), False
    if attempt.fault is not None and (tests is None or not tests.ran):
        return "infrastructure", attempt.fault, ("fault",), False
    if facts.verifier == "not_run" and not _is_of_task(session, tests.missing_module if tests is not None else None):
        line = tests.message if tests is not None else ""
        return "verifier_not_run", line or "it ended before the first test", ("verification",), False
    if facts.verifier in ("crashed", "timed_out") or attempt.ending == "verifier":
        how = facts.verifier.replace("_", " ") if facts.verifier in ("crashed", "timed_out") else "failed"
        return "not_judged", f"verifier {how}", ("verification", "ending", *how_it_ended), False
    stopped = "time" if attempt.ending == "time" or attempt.timed_out else ""
    stopped = stopped or ("budget" if attempt.ending == "budget" else "")
    if reward is None:
        verdict = judged(facts).outcome
        if not isinstance(verdict, Absent) and verdict != "unverifiable":
            return ("solved" if verdict == "correct_patch" else "failed"), "tests", ("verification",), False
        if stopped:
            return "failed", stopped, ("ending", "timed_out", *how_it_ended), True
        return "not_judged", "no verdict", ("reward", *how_it_ended), False
    if reward == 1:
        return "solved", "reward", ("reward", "verification"), False
    return (
        "failed",
        stopped or "tests",
        (("timed_out", "exit_status") if stopped else ("verification", "reward")),
        False,
    )
