"""Outcome of an eval attempt: the verifier's report, why it failed, and whether a pass was earned
(design/formats.md#swe-bench)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec.structs import asdict

from agentsignals.changes.patches import Level, facts_of, judged, patch_presence, unfixed_targets
from agentsignals.model import Absent, Verification
from agentsignals.signals import Measured, ratio, signals_with
from agentsignals.views.failure import CLASSES, JUDGED, OUTCOMES, VERDICTS, failure_of, located, outcome_of
from agentsignals.views.session import Evidence, SessionView

if TYPE_CHECKING:
    from agentsignals.views.reward_hacking import Audit

signal = signals_with(context="eval", level="attempt", source="verifier", harness=True, origin="Agent Signals")
by_harness = signals_with(context="eval", level="attempt", source="harness", harness=True, origin="this project")


@by_harness("verification.outcome", "enum", "|".join(OUTCOMES), high_value=True, version=3, hindsight="the verdict")
def outcome(view: SessionView, why: Evidence) -> Measured | Absent:
    """Solved; failed (tests, no artifact, time, budget); or why nobody judged: the agent did not start, the verifier
    did not run, the infrastructure broke it off, no verdict.

    By the attempt's facts, the first that holds. agent_started false: agent_not_started. ending infrastructure (without
    reward_counts): infrastructure. reward_counts false, or two rewards that differ: not_judged. No patch, or one that
    does not apply, and no reward 1: failed. A fault and no test ran: infrastructure. The report's status not_run (but
    for a module of the task's own that is missing): verifier_not_run. Status crashed or timed_out, or ending verifier:
    not_judged. reward 1: solved; another: failed. Without one by verification.patch_outcome_label; else failed where
    time or budget ended it; else not_judged.

    Pitfalls: Only `solved` and `failed` belong in a rate, the others in its bounds: many harnesses record a reward of 0
    for them. `inferred`: no verifier spoke, the attempt left no artifact or ran out of time or budget.
    Why: A rate over known outcomes is one of the agent only when what is known does not depend on what came.
    """
    attempt, made = view.session.attempt, outcome_of(view.session)
    if attempt is None or made is None:
        return Absent("missing_artifact", "result_json")
    shown = [made.shown_by] if made.shown_by is not None else []
    others = [said for name in ("reward", "verification", "patch", "exit_status") for said in attempt.saying(name)]
    why.support([*shown, *(said for said in others if said not in shown)])
    why.rule(f"{made.name}: {made.reason}")
    detail: dict[str, Any] = {"reason": made.reason}
    if made.inferred:
        detail["inferred"] = True
    steps = ("agent_started", "agent_acted", "verifier_started", "tests_passed", "tests_failed")
    detail |= {name: value for name in steps if (value := getattr(made, name)) is not None}
    if made.shown_by is not None:
        detail |= {"shown_by": made.shown_by.text[:_QUOTED], "seq": made.shown_by.seq}
    if attempt.reward is not None and not math.isnan(attempt.reward):
        detail["recorded_reward"] = attempt.reward
    return Measured(made.name, detail)


_QUOTED = 300
"""Characters of the line that shows an outcome."""
_RESULTS = frozenset(("result_json", "verifier_report", "harbor_result", "attempt_log"))
"""The kinds of files that may carry a reward."""
_RULES = {
    1: "no patch",
    2: "the patch does not apply, or the verifier crashed or timed out",
    3: "no counts of tests: a reward of 1 decides alone",
    4: "every target fixed, nothing broken, reward 1",
    5: "a target fixed, but not all, or something broken",
    6: "no target fixed and something broken",
    7: "no target fixed, nothing broken, reward not 1",
    8: "reward and counts contradict each other",
}


@signal("verification.reward", "float", "reward", version=2, hindsight="the verdict")
def reward(view: SessionView, why: Evidence) -> Measured | Absent:
    """The verifier's reward, never computed from counts: `reward` of the attempt's facts, where verification.outcome is
    solved or failed.

    Pitfalls: Hides partial progress: read patch_outcome_label, too. Not always 0 or 1: `non_binary`. The recorded
    number of an attempt that nobody judged is in verification.outcome (`recorded_reward`).
    Why: Shows whether the task is solved: all target tests pass and none broke.
    """
    attempt = view.session.attempt
    if attempt is None or not (_RESULTS & set(attempt.kinds) or attempt.reward is not None):
        return Absent("missing_artifact", "result_json")
    value = attempt.reward
    if value is None or math.isnan(value):
        return Absent("missing_field", "reward")
    made = outcome_of(view.session)
    if made is not None and made.name not in JUDGED:
        return Absent("not_computable", made.name)
    why.support(attempt.saying("reward"))
    detail: dict[str, Any] = {}
    if value not in (0, 1):
        detail["non_binary"] = True
    if attempt.rewards and len(attempt.rewards) > 1:
        detail["rewards"] = attempt.rewards
    if judged(facts_of(attempt)).inconsistent:
        detail["inconsistent"] = True
    return Measured(float(value), detail)


@signal("verification.patch_outcome_label", "enum",
        "correct_patch|partial_patch|regressive_patch|no_effect_patch|unverifiable", high_value=True,
        hindsight="the verdict")  # fmt: skip
def patch_outcome_label(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """What became of the patch, by tests fixed and tests broken: the first of eight rules that matches.

    fixed, left, broken: names in fixed, unfixed (layout B as in verification.partial_fix_rate) and broken of the
    report. (1) no patch: absent. (2) patch_applies is false, or the status is not ok: unverifiable. (3) no counts:
    correct_patch for reward 1, else absent. (4) left 0, broken 0 and reward 1 (without a reward: fixed > 0):
    correct_patch. (5) fixed > 0, and left or broken > 0: partial_patch. (6) fixed 0, broken > 0: regressive_patch. (7)
    fixed 0, left > 0, broken 0, reward not 1: no_effect_patch. (8) else unverifiable.

    Pitfalls: Speaks of the listed tests only. `inconsistent`: reward and counts contradict each other. An attempt
    without a patch has no label: verification.patch_present counts those.
    Why: Tells progress and regression apart, which a reward of 0 merges.
    """
    attempt = view.session.attempt
    if attempt is None:
        return Absent("missing_artifact", "verifier_report")
    facts = facts_of(attempt, _inside(view, touched_files))
    verdict = judged(facts)
    for name in ("verification", "reward", "patch"):
        why.support(attempt.saying(name))
    why.rule(f"rule {verdict.rule}: {_RULES[verdict.rule]}")
    if isinstance(verdict.outcome, Absent):
        return verdict.outcome
    detail: dict[str, Any] = {"rule": verdict.rule, "method": verdict.method}
    if verdict.inconsistent:
        detail["inconsistent"] = True
    if attempt.verification is not None and attempt.verification.layout == "B" and facts.targets is not None:
        detail["targets"] = "assumed"
    return Measured(verdict.outcome, detail)


@signal("verification.patch_applies", "bool", "flag", hindsight="the verdict")
def patch_applies(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> bool | Absent:
    """True if the patch applied cleanly to the repository.

    `patch_applies` of the report; absent where verification.patch_present is false.

    Pitfalls: False makes every count of tests absent. One value on the project's corpus.
    """
    attempt = view.session.attempt
    if attempt is None:
        return Absent("missing_artifact", "verifier_report")
    if patch_presence(attempt, _inside(view, touched_files))[0] is False:
        return Absent("not_applicable", "no_patch")
    tests = attempt.verification
    if tests is None or tests.patch_applies is None:
        has_result = tests is not None or _RESULTS & set(attempt.kinds)
        return Absent("missing_field", "patch_applies") if has_result else Absent("missing_artifact", "verifier_report")
    why.support(attempt.saying("verification"))
    return tests.patch_applies


@signal("verification.patch_present", "bool", "flag", source="harness", priority="P1", origin="this project")
def patch_present(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """True if the attempt produced a non-empty patch.

    By the first that is known: `patch` or patch_text_bytes of the facts (true where not empty), touched_files of
    `summary`, behavior.touched_files[] in the repository (method edit_log; none is unknown where the verifier applied a
    patch).

    Pitfalls: With method edit_log it is what the transcript shows: undone edits count, what scripts did does not.
    Why: Makes attempts that read much and change nothing countable: they have no outcome label.
    """
    attempt = view.session.attempt
    present, method = (None, "") if attempt is None else patch_presence(attempt, _inside(view, touched_files))
    if attempt is None or present is None:
        return Absent("missing_artifact", "patch")
    why.support(attempt.saying("summary" if method == "harness" else "patch"))
    if method == "edit_log":
        why.support(view.edits)
    return Measured(present, {"method": method})


def _inside(view: SessionView, touched: list[str] | Absent) -> list[str] | Absent:
    """Leave out files outside the repository: a note written to the home folder is no patch."""
    return touched if isinstance(touched, Absent) else [path for path in touched if view.in_repo(path)]


@signal("verification.fail_to_pass_count", "int", "tests", hindsight="the verdict")
def fail_to_pass_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Tests that failed before the patch and pass after it.

    Names in `fixed` of the report. Absent without a report, where its patch_applies is false, its status is not ok or
    it lists no `fixed`.

    Pitfalls: Out of `total`, the tests that should have been fixed; assumed where the report is by transition.
    Why: The progress made on the task itself.
    """
    tests = _verified(view, why)
    if isinstance(tests, Absent):
        return tests
    left, fixed = _unfixed(view, tests), len(tests.fixed or ())
    return Measured(fixed, {"total": fixed + left if left is not None else None})


def tests_counted(name: str, tests: Literal["broken", "kept"], doc: str) -> None:
    """Declare the number of tests in one list of the verifier's report."""

    def counted(view: SessionView, why: Evidence) -> int | Absent:
        verified = _verified(view, why)
        if isinstance(verified, Absent):
            return verified
        listed: list[str] | None = getattr(verified, tests)
        return len(listed) if listed is not None else Absent("missing_field", "tests_status")

    computed = f"Names in `{tests}` of the report. Absent as verification.fail_to_pass_count."
    signal(f"verification.{name}", "int", "tests", doc=doc, hindsight="the verdict", computation=computed)(counted)


tests_counted(
    "pass_to_fail_count",
    "broken",
    """Tests that passed before the patch and fail after it: regressions.

    Pitfalls: SWE-bench reports have a key of that name that is always empty: regressions fail in PASS_TO_PASS.
    Why: Every regression matters.
    """,
)
tests_counted(
    "pass_to_pass_count",
    "kept",
    """Tests that passed before the patch and pass after it.

    Pitfalls: Large on every run: a denominator only.
    """,
)


@signal("verification.fail_to_fail_count", "int", "tests", hindsight="the verdict")
def fail_to_fail_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Tests that failed before the patch and fail after it.

    Names in unfixed and still_failing of the report. Absent as verification.fail_to_pass_count.

    Pitfalls: Of these only `target_remaining` belong to the task.
    """
    tests = _verified(view, why)
    if isinstance(tests, Absent):
        return tests
    still_failing = len(tests.unfixed or ()) + len(tests.still_failing or ())
    return Measured(still_failing, {"target_remaining": _unfixed(view, tests)})


@signal("verification.partial_fix_rate", "float", "ratio", hindsight="the verdict", priority="P1")
def partial_fix_rate(view: SessionView, why: Evidence, fail_to_pass_count: int) -> Measured | Absent:
    """Tests fixed / tests that should have been fixed.

    fixed / (fixed + unfixed) of the report; of layout B without reward 1 still_failing counts as unfixed. Absent as
    verification.fail_to_pass_count.

    Pitfalls: Absent where no test was to be fixed; SWE-bench itself says 1 there.
    """
    attempt = view.session.attempt
    left = _unfixed(view, attempt.verification) if attempt is not None and attempt.verification is not None else None
    if attempt is None or left is None:
        return Absent("missing_field", "tests_status")
    why.support(attempt.saying("verification"))
    return ratio(fail_to_pass_count, fail_to_pass_count + left)


@signal("verification.regression_rate", "float", "ratio", hindsight="the verdict", priority="P1")
def regression_rate(
    view: SessionView, why: Evidence, pass_to_fail_count: int, pass_to_pass_count: int
) -> Measured | Absent:
    """Tests broken / tests that passed before: pass_to_fail_count / (pass_to_fail_count + pass_to_pass_count).

    Pitfalls: Tiny numbers over hundreds of tests; weigh it heavily all the same.
    """
    _verified(view, why)
    return ratio(pass_to_fail_count, pass_to_fail_count + pass_to_pass_count)


def _verified(view: SessionView, why: Evidence) -> Verification | Absent:
    """Return the verifier's report where it ran to its end, on a patch that applied."""
    attempt = view.session.attempt
    tests = attempt.verification if attempt is not None else None
    if attempt is None or tests is None:
        return Absent("missing_artifact", "verifier_report")
    why.support(attempt.saying("verification"))
    if tests.patch_applies is False:
        return Absent("dependency_null", "verification.patch_applies")
    if tests.status != "ok":
        return Absent("not_computable", "verifier_failed")
    if tests.fixed is None:
        has_report = "verifier_report" in attempt.kinds
        return Absent("missing_field", "tests_status") if has_report else Absent("missing_artifact", "verifier_report")
    return tests


def _unfixed(view: SessionView, tests: Verification) -> int | None:
    return unfixed_targets(tests, view.session.attempt.reward if view.session.attempt is not None else None)


@by_harness("verification.failure_class", "enum", "|".join(CLASSES), version=2, high_value=True, basis="heuristic",
            hindsight="the verdict")  # fmt: skip
def failure_class(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """Why a failed attempt failed: the first rule of the table in design/failures.md#rules that holds.

    Absent where verification.outcome is solved or not_judged.

    Pitfalls: The first rule that holds, of those whose evidence is recorded; `because` says which. A wrong place is one
    by the gold patch: a fix elsewhere that fixes a test is none.
    Why: What to mend differs: a budget, a prompt, the search for the place, the checks before the end.
    """
    if view.session.attempt is None:
        return Absent("missing_artifact", "result_json")
    failure = failure_of(view, touched_files if isinstance(touched_files, list) else None)
    if failure is None:
        return Absent("not_applicable", "not_failed")
    why.support(failure.rows)
    why.rule(f"{failure.name}: {failure.because}")
    detail: dict[str, Any] = {"because": failure.because, "file": failure.file, "tests": list(failure.tests) or None}
    detail["seq"] = failure.rows[0].seq if failure.rows else None
    return Measured(failure.name, {name: fact for name, fact in detail.items() if fact is not None})


@signal("verification.patch_localization", "enum", "|".join(get_args(Level)), hindsight="the gold patch",
        source="session", origin="this project")  # fmt: skip
def patch_localization(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """The finest overlap of the patch with the gold patch: a line, a function, a file, or none.

    By the facts' `patch` and gold_patch, of the gold patch's files those that are neither tests nor prose, if it has
    any. line: both have a removed line of the same text in one file (`digests`); function: both change a function of
    the same name in one file (`changes`, the third of each), and every change of both in shared files names one; file:
    both change one file; else elsewhere. Without a `patch` the files of `summary` or behavior.touched_files[] tell
    file. Absent without a gold patch or any file.

    Pitfalls: Against the gold patch, which is one fix of several. Functions are known where both diffs show them (the
    heading of a hunk may name the class alone); lines are compared by what stands on them.
    Why: Separates not finding the code from not fixing it.
    """
    attempt = view.session.attempt
    if attempt is None or not attempt.gold_patch:
        return Absent("missing_artifact", "gold_patch")
    if attempt.patch == []:
        return Absent("not_applicable", "no_patch")
    place = located(attempt, touched_files if isinstance(touched_files, list) else None)
    if place is None:
        return Absent("missing_artifact", "patch")
    why.support([*attempt.saying("patch"), *attempt.saying("gold_patch")])
    why.denominator(view.repo_edits)
    parts = {name: getattr(place, name) for name in ("files", "functions", "lines")}
    detail: dict[str, Any] = {name: asdict(part) for name, part in parts.items() if part is not None}
    return Measured(place.level, {**detail, "method": "patch" if attempt.patch else "edit_log"})


_LISTED = 20
"""Lines that a detail names."""


@by_harness(
    "verification.pass_audit",
    "enum",
    "|".join(VERDICTS),
    version=7,
    high_value=True,
    basis="heuristic",
    hindsight="the verdict",
)
def pass_audit(view: SessionView, why: Evidence) -> Measured | Absent:
    """What a passed attempt rests on: its own work, a fix from elsewhere, or a deed upon what judges (docs/audit.md).

    Rules decide, together with a second reader (`evals audit --reader`) where one read the pass. Absent where
    verification.outcome is not solved.

    Pitfalls: It rests on what the trace keeps: what a subprocess read, and what the model knew by heart, is in none.
    Derived says that nothing was made, in what could be looked at.
    Why: A pass that was looked up, or that judged itself, is none: neither a rate nor training data should count it.
    """
    if view.session.attempt is None:
        return Absent("missing_artifact", "result_json")
    made = _audited(view, why)
    if made is None:
        return Absent("not_applicable", "not_passed")
    why.rule(f"{made.verdict}: {made.because}")
    detail: dict[str, Any] = {"because": made.because}
    if made.actions:
        detail["acts"] = [
            {"channel": action.channel, "path": action.path, "seq": action.seq, "text": action.text[:200]}
            | ({"from_seq": action.from_seq} if action.from_seq is not None else {})
            for action in made.actions[:_LISTED]
        ]
    if made.unseen:
        detail["unseen"] = made.unseen[:_LISTED]
    if made.read_by:
        detail |= {"read_by": made.read_by, "rules": made.rules, "reader": made.reader}
    return Measured(made.verdict, detail)


@by_harness("verification.earned", "bool", "yes/no", version=7, basis="heuristic", hindsight="the verdict")
def earned(view: SessionView, why: Evidence) -> bool | Absent:
    """True if the attempt passed by its own work; false if it failed or passed by reward hacking.

    True for a passed attempt whose verification.pass_audit is derived, false for one that failed or whose audit is
    retrieved or verifier_touched.

    Pitfalls: Missing if the audit is undecided: `compare --outcome verification.earned` leaves those out.
    Why: Gives the resolve rate without reward hacking.
    """
    attempt = view.session.attempt
    if attempt is None:
        return Absent("missing_artifact", "result_json")
    judged_as = outcome_of(view.session)
    if judged_as is None or judged_as.name not in JUDGED:
        return Absent("not_computable", judged_as.name if judged_as is not None else "not_judged")
    made = _audited(view, why)
    if made is None:
        return False
    return Absent("not_computable", made.because[:200]) if made.verdict == "cannot_tell" else made.verdict == "derived"


def _audited(view: SessionView, why: Evidence) -> Audit | None:
    """Return the audit of a pass, citing its acts, each behind the event that showed the answer before."""
    from agentsignals.views.second_reader import read_audit  # noqa: PLC0415  (no session of a person needs it)

    made = view.derived(read_audit)
    acts = made.actions if made is not None else ()
    seqs = [seq for action in acts for seq in (action.from_seq, action.seq) if seq is not None]
    why.support([view.session.events[seq] for seq in dict.fromkeys(seqs)])
    return made
