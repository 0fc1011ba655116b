"""user.session_outcome and what it is derived from."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.worktrees import LinesCommitted, label
from agentsignals.model import Absent, Checkpoint, Label, Session
from agentsignals.signals.catalog import by_path, catalogue, explain, measure
from agentsignals.views.history import History
from agentsignals.views.session import SessionView
from tests.build import Part, call, say, user, view
from tests.signals.ask import absent, detail, value

APPLIED, REVERTED, ENDING = "user.output_applied", "user.changes_reverted", "user.session_ending"
EDIT = call("Edit", path="a.py")
MINUTE = 60_000_000


def bash(command: str, result: str = "ok", **more: Any) -> Part:
    return call("Bash", command=command, result=result, **more)


REFUSED = bash("rm -r x", "no", status="rejected")
COMMIT = bash("git add -A && git commit -m 'x'", "[main 1a2b3c4] x\n 1 file changed")


def told(verdict: str, is_sure: bool = True) -> Label:
    lines = 3 if verdict == "applied" else 0
    return label(
        LinesCommitted(verdict=verdict, lines=lines, late_lines=0, produced=9, n_commits=0, is_sure=is_sure),
        verdict,
        lines,
        "",
    )


YES, NO = (
    Checkpoint(checkpoint_id="c", agent_lines=3, total_committed=9),
    Checkpoint(checkpoint_id="c", agent_lines=0, total_committed=9),
)


@pytest.mark.parametrize(
    ("evidence", "recorded", "parts", "expected"),
    [
        (told("applied"), [NO], [], (True, "git")),
        (told("applied"), [], [COMMIT], (True, "git")),
        (told("not_applied"), [YES], [], (False, "git")),
        # Some lines of its commits are unexplained: what a collector counted tells more.
        (told("not_applied", is_sure=False), [YES], [], (True, "attribution")),
        (told("not_applied", is_sure=False), [NO], [], (False, "git")),
        (told("not_applied", is_sure=False), [], [], (False, "git")),
        # It made a commit that is not there, so its lines may be in it.
        (told("not_applied"), [], [COMMIT], (True, "transcript")),
        (told("not_applied"), [NO], [COMMIT], (False, "attribution")),
        (told("not_applied"), [YES], [COMMIT], (True, "attribution")),
        (told("censored"), [], [COMMIT], (True, "transcript")),
        (told("censored"), [YES], [], (True, "attribution")),
        (told("unknown"), [NO], [], (False, "attribution")),
        (told("unknown"), [], [COMMIT], (True, "transcript")),
    ],
)
def test_which_evidence_of_a_commit_speaks_first(
    evidence: Label, recorded: list[Checkpoint], parts: list[Part], expected: tuple[bool, str]
) -> None:
    one = view(user("go"), EDIT, *parts, checkpoints=recorded, labels=[evidence])
    assert (value(one, APPLIED), detail(one, APPLIED)["method"]) == expected


def test_evidence_that_tells_nothing_leaves_the_value_absent() -> None:
    edited = [user("go"), EDIT]
    assert absent(view(*edited, labels=[told("unknown")]), APPLIED) == ("missing_artifact", "git")
    assert absent(view(*edited, labels=[told("censored")]), APPLIED) == ("censored", "repository_ends_before_close")
    low = view(*edited, labels=[told("not_applied", is_sure=False)])
    assert detail(low, APPLIED)["confidence"] == "low"


def test_a_call_asked_for_together_with_a_refused_one_is_no_going_on() -> None:
    one = view(user("go"), REFUSED, EDIT)
    for made in one.calls:
        made.step = 0
    assert value(one, ENDING)["interrupted_after"] is True


ENDED = 1000 * MINUTE
DAY = 1440


def judged(given: dict[str, Any], **history: Any) -> tuple[Any, dict[str, Any], Any]:
    """The outcome, its detail, and the collected evidence; `given` as it comes back from the store."""
    session = Session(
        session_id="s1", context="product", format="claude-code", agent="claude-code", artifact_id="a1", ended_at=ENDED
    )
    known = {
        "closing_reaction": {"kind": "none", "turn": 2},
        "session_ending": {
            "edits_after": 0,
            "commits_after": 0,
            "interrupted_after": False,
            "question_open": False,
        },
        "output_applied": Absent("missing_artifact", "git"),
        "changes_reverted": Absent("missing_artifact", "git_or_snapshots"),
        **given,
    }
    past = History(place="me/app", known_until=ENDED + 2 * DAY * MINUTE, known_since=0)
    for name, fact in history.items():
        setattr(past, name, fact)
    one = SessionView(session)
    results = measure(one, known, past)
    known.update({r.signal.name: r.value for r in results})
    return explain(by_path("user.session_outcome"), one, known, past)


def said(kind: str, edits: int = 0, commits: int = 0, cut: bool = False, asked: bool = False) -> dict[str, Any]:
    after = {"edits_after": edits, "commits_after": commits, "interrupted_after": cut, "question_open": asked}
    return {"closing_reaction": {"kind": kind, "turn": 2}, "session_ending": after}


NO_VERDICT = Absent("none_found", "no_verdict")
UNREAD = Absent("not_computable", "language: de")


SOON = {"next_id": "s2", "next_started_at": ENDED + 10 * MINUTE}
LATE = {"next_id": "s2", "next_started_at": ENDED + 40 * MINUTE}


@pytest.mark.parametrize(
    ("given", "history", "label", "kind", "rule"),
    [
        ({"changes_reverted": True}, {}, "explicitly_rejected", "git", "rule 1"),
        ({"changes_reverted": True, "output_applied": False}, {}, "explicitly_rejected", "git", "rule 1"),
        ({"changes_reverted": True, "output_applied": True}, {}, "accepted", "git", "rule 2"),
        (said("revert_all"), {}, "explicitly_rejected", "text", "rule 1"),
        ({**said("revert_all"), "output_applied": True}, {}, "explicitly_rejected", "text", "rule 1"),
        (said("rejection"), {}, "explicitly_rejected", "text", "rule 1"),
        (said("rejection", edits=1), {}, NO_VERDICT, None, "rule 5"),
        (said("rejection", commits=1), {}, NO_VERDICT, None, "rule 5"),
        ({"output_applied": True}, {}, "accepted", "git", "rule 2"),
        (said("accept"), {}, "accepted", "text", "rule 2"),
        (said("accept", cut=True), {}, "abandoned_mid_session", "cut", "rule 4"),
        (said("none", edits=2, cut=True), {}, "abandoned_mid_session", "cut", "rule 4"),
        (said("none", asked=True), {}, "abandoned_mid_session", "question", "rule 4"),
        (said("gives_up"), {}, "abandoned_mid_session", "text", "rule 4"),
        (said("gives_up", edits=1), {}, NO_VERDICT, None, "rule 5"),
        ({**said("none", asked=True), "output_applied": True}, {}, "accepted", "git", "rule 2"),
        ({"output_applied": False}, {}, NO_VERDICT, None, "rule 5"),
        ({}, {**SOON, "next_shares_file": True}, "restarted_same_task", "reopen", "rule 3"),
        ({}, {**SOON, "next_shares_file": False, "next_similarity": 0.6}, "restarted_same_task", "reopen", "rule 3"),
        ({}, {**SOON, "next_shares_file": False, "next_similarity": 0.5}, NO_VERDICT, None, "rule 5"),
        ({}, {**LATE, "next_shares_file": True}, NO_VERDICT, None, "rule 5"),
        ({"closing_reaction": Absent("not_applicable", "no_turn")}, {}, NO_VERDICT, None, "rule 5"),
        ({"closing_reaction": UNREAD}, {}, UNREAD, None, "rule 5"),
        ({**said("none", cut=True), "closing_reaction": UNREAD}, {}, "abandoned_mid_session", "cut", "rule 4"),
        ({"closing_reaction": UNREAD, "output_applied": True}, {}, "accepted", "git", "rule 2"),
    ],
)
def test_the_first_rule_that_holds_names_the_outcome(
    given: dict[str, Any], history: dict[str, Any], label: Any, kind: str | None, rule: str
) -> None:
    found, told, collected = judged(given, **history)
    assert (found, told.get("evidence_kind")) == (label, kind)
    assert collected.rules[0].startswith(rule)
    assert {i.excerpt.split(" = ")[0] for i in collected.items} == {
        "user.closing_reaction",
        "user.session_ending",
        "user.output_applied",
        "user.changes_reverted",
        "user.session_reopened_within_s",
    }


def test_accepted_and_begun_again_is_accepted_and_says_so() -> None:
    found, told, _ = judged({"output_applied": True}, **SOON, next_shares_file=True)
    assert (found, told) == ("accepted", {"evidence_kind": "git", "reopened": True})


def test_a_session_that_only_read_is_marked() -> None:
    found, told, _ = judged({**said("accept"), "output_applied": Absent("not_applicable", "no_edit")})
    assert (found, told["no_edits"]) == ("accepted", True)


@pytest.mark.parametrize(
    ("given", "seen_minutes", "expected"),
    [
        ({}, 29, Absent("censored", "session_may_go_on")),
        ({}, 30, NO_VERDICT),
        (said("none", cut=True), 29, Absent("censored", "session_may_go_on")),
        (said("none", cut=True), 30, "abandoned_mid_session"),
        (said("accept"), 5, "accepted"),
        (said("rejection"), 5, "explicitly_rejected"),
    ],
)
def test_a_session_that_may_still_go_on_is_not_abandoned(
    given: dict[str, Any], seen_minutes: int, expected: Any
) -> None:
    assert judged(given, known_until=ENDED + seen_minutes * MINUTE)[0] == expected


@pytest.mark.parametrize(
    ("history", "ended", "expected"),
    [
        ({"next_started_at": ENDED + MINUTE, "next_id": "s2"}, ENDED, 60.0),
        ({"next_started_at": ENDED + DAY * MINUTE}, ENDED, 86_400.0),
        ({"next_started_at": ENDED + DAY * MINUTE + 1}, ENDED, Absent("none_found", "within_24h")),
        ({}, ENDED, Absent("none_found", "within_24h")),
        ({"known_until": ENDED + DAY * MINUTE - 1}, ENDED, Absent("censored", "store_ends_within_24h")),
        ({"place": None}, ENDED, Absent("not_applicable", "repo_unknown")),
        ({}, None, Absent("missing_field", "timestamp")),
    ],
)
def test_seconds_until_the_person_came_back(history: dict[str, Any], ended: int | None, expected: Any) -> None:
    past = History(place="me/app", known_until=ENDED + 2 * DAY * MINUTE, known_since=0)
    for name, fact in history.items():
        setattr(past, name, fact)
    one = SessionView(
        Session(
            session_id="s1",
            context="product",
            format="claude-code",
            agent="claude-code",
            artifact_id="a1",
            ended_at=ended,
        )
    )
    found = explain(by_path("user.session_reopened_within_s"), one, {}, past)
    assert found[0] == expected
    if expected == 60.0:
        assert found[1] == {"next_session": "s2", "shares_file": None, "similarity": None}


def test_prior_sessions_of_the_repository() -> None:
    one = SessionView(
        Session(session_id="s1", context="product", format="claude-code", agent="claude-code", artifact_id="a1")
    )
    path = by_path("user.prior_sessions_same_repo")
    found, told, collected = explain(
        path, one, {}, History(place="me/app", known_until=9, known_since=0, n_prior=3, n_prior_same_user=2)
    )
    assert (found, told) == (3, {"same_user": 2, "store_start": "1970-01-01T00:00:00.000Z"})
    assert "me/app" in collected.rules[0]
    assert explain(path, one, {}, History(place=None, known_until=9, known_since=0))[0] == Absent(
        "not_applicable", "repo_unknown"
    )


def test_what_looks_at_other_sessions_is_computed_in_the_second_pass() -> None:
    scopes = {s.path: s.scope for s in catalogue().values()}
    assert scopes["user.session_outcome"] == scopes["user.session_reopened_within_s"] == "history"
    assert {scopes[path] for path in ("user.closing_reaction", ENDING, APPLIED)} == {"session"}


@pytest.mark.parametrize(
    ("after", "expected"),
    [((), Absent("censored", "goes_on_in_another_session")), ((say("ok"),), Absent("none_found", "no_verdict"))],
)
def test_a_session_that_ends_with_an_approved_plan_goes_on_elsewhere(after: Any, expected: Any) -> None:
    one = view(user("plan it"), call("ExitPlanMode"), *after)
    past = History(place="shop", known_until=4 * 10**15, known_since=0)
    known = {
        "closing_reaction": {"kind": "none"},
        "session_ending": {},
        "output_applied": Absent("missing_artifact", "git"),
        "changes_reverted": Absent("missing_artifact", "git_or_snapshots"),
        "session_reopened_within_s": Absent("none_found", "within_24h"),
    }
    results = {r.signal.path: r.value for r in measure(one, known, past)}
    assert results["user.session_outcome"] == expected
