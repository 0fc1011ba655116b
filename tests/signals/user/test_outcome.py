"""user.session_outcome and what it is derived from."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.worktrees import LinesCommitted, label
from agentsignals.model import Absent, Checkpoint, Label, Session
from agentsignals.signals.catalog import by_path, catalogue, explain, measure
from agentsignals.views.history import History
from agentsignals.views.session import SessionView
from tests.build import Part, call, event, say, user, view
from tests.signals.ask import Case, absent, detail, evidence, lines, value

APPLIED, REVERTED, CLOSING = "user.output_applied", "user.changes_reverted", "user.closing_reaction"
EDIT = call("Edit", path="a.py")
INTERRUPT = event("interrupt", "[Request interrupted by user]")
MINUTE = 60_000_000


def bash(command: str, result: str = "ok", **more: Any) -> Part:
    return call("Bash", command=command, result=result, **more)


REFUSED = bash("rm -r x", "no", status="rejected")
COMMIT = bash("git add -A && git commit -m 'x'", "[main 1a2b3c4] x\n 1 file changed")


def test_a_commit_before_the_last_edit_is_weak_evidence_against() -> None:
    one = view(user("go"), EDIT, COMMIT, EDIT)
    assert value(one, APPLIED) is False
    assert detail(one, APPLIED)["confidence"] == "low"
    assert lines(one, APPLIED, "counter") == [3]


def test_without_an_edit_of_the_repository_nothing_can_be_applied() -> None:
    plan = call("Write", path="/home/me/.claude/plans/p.md")
    for one in (view(user("go"), COMMIT), view(user("go"), plan, COMMIT, cwd="/r")):
        assert absent(one, APPLIED) == ("not_applicable", "no_edit")
        assert absent(one, REVERTED) == ("not_applicable", "no_edit")


@pytest.mark.parametrize(
    ("recorded", "applied"),
    [
        ([Checkpoint(checkpoint_id="c", agent_lines=3, total_committed=9)], True),
        (
            [
                Checkpoint(checkpoint_id="c", agent_lines=0, total_committed=9),
                Checkpoint(checkpoint_id="d", agent_lines=1, total_committed=1),
            ],
            True,
        ),
        ([Checkpoint(checkpoint_id="c", agent_lines=0, total_committed=0, agent_percentage=100.0)], True),
        ([Checkpoint(checkpoint_id="c", agent_lines=0, total_committed=9)], False),
    ],
)
def test_recorded_attribution_comes_first(recorded: list[Checkpoint], applied: bool) -> None:
    one = view(user("go"), EDIT, COMMIT, checkpoints=recorded)
    assert value(one, APPLIED) is applied
    assert detail(one, APPLIED)["method"] == "attribution"
    assert "attribution" in evidence(one, APPLIED).rules[0]


def test_a_commit_that_a_collector_linked_counts_where_no_lines_were_counted() -> None:
    linked = Checkpoint(checkpoint_id="c", files_touched=["a.py", "b.py"])
    one = view(user("go"), EDIT, checkpoints=[linked])
    assert value(one, APPLIED) is True
    assert detail(one, APPLIED) == {"method": "checkpoint", "files": 1, "confidence": "low"}
    assert absent(view(user("go"), EDIT, checkpoints=[Checkpoint(checkpoint_id="c", files_touched=["z"])]), APPLIED)


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


@pytest.mark.parametrize(
    ("parts", "reverted"),
    [
        ([EDIT, bash("git checkout .")], True),
        ([EDIT, bash("git checkout -- .")], True),
        ([EDIT, bash("git checkout HEAD -- .")], True),
        ([EDIT, bash("git restore .")], True),
        ([EDIT, bash("git restore --staged --worktree .")], True),
        ([EDIT, bash("cd app && git reset --hard && ls")], True),
        ([EDIT, bash("git reset --hard HEAD")], True),
        ([EDIT, bash("git -C app clean -fd")], True),
        ([EDIT, bash("git stash")], True),
        ([EDIT, bash("git stash push -m later")], True),
        ([EDIT, event("user_shell", "<bash-input>git checkout .</bash-input>")], True),
        # Brought back, edited again, or about something else: seen, but no revert.
        ([EDIT, bash("git stash"), bash("git stash pop")], False),
        ([EDIT, bash("git stash && git pull && git stash pop")], False),
        ([EDIT, bash("git checkout ."), EDIT], False),
        ([bash("git reset --hard"), EDIT], False),
        # What was committed before survives, unless the branch itself is moved.
        ([EDIT, COMMIT, bash("git reset --hard")], False),
        ([EDIT, COMMIT, bash("git reset --hard HEAD~1")], True),
        ([EDIT, COMMIT, bash("git reset --hard origin/main")], True),
    ],
)
def test_a_revert_of_the_whole_tree(parts: list[Part], reverted: bool) -> None:
    one = view(user("go"), *parts)
    assert value(one, REVERTED) is reverted
    assert detail(one, REVERTED) == {"method": "transcript", "commands": 1}
    assert bool(lines(one, REVERTED)) is reverted
    assert bool(lines(one, REVERTED, "counter")) is not reverted


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([user("go"), say("x"), user("thanks!")], ("accept", 1, 0, 0, False)),
        ([user("go"), EDIT, user("commit this"), COMMIT], ("accept", 1, 0, 1, False)),
        ([user("go"), EDIT, user("great, now B"), EDIT, EDIT, INTERRUPT], ("accept", 1, 2, 0, True)),
        ([user("go"), EDIT, user("revert everything")], ("revert_all", 1, 0, 0, False)),
        ([user("go"), EDIT, user("No.")], ("rejection", 1, 0, 0, False)),
        ([user("commit this"), COMMIT], ("none", 0, 0, 1, False)),
        ([user("git reset --hard please")], ("revert_all", 0, 0, 0, False)),
        ([user("go"), EDIT, user("and B")], ("none", 1, 0, 0, False)),
        (
            [user("go"), user("thanks"), call("Edit", path="a", status="rejected", result="no")],
            ("accept", 1, 0, 0, True),
        ),
        ([user("go"), REFUSED, EDIT, say("done")], ("none", 0, 1, 0, False)),
        ([user("go"), REFUSED, bash("make", "boom", status="error")], ("none", 0, 0, 0, False)),
        ([user("go"), INTERRUPT, EDIT, say("done")], ("none", 0, 1, 0, False)),
        ([user("go"), EDIT, REFUSED, say("I see.")], ("none", 0, 1, 0, True)),
        ([user("go"), REFUSED, call("Edit", path="a.py", thread="agent-1")], ("none", 0, 0, 0, True)),
    ],
)
def test_what_the_last_human_turn_says(parts: list[Part], expected: tuple[Any, ...]) -> None:
    found = value(view(*parts), CLOSING)
    assert tuple(found.values()) == (*expected, False)
    assert list(found) == ["kind", "turn", "edits_after", "commits_after", "interrupted_after", "question_open"]


def test_a_call_asked_for_together_with_a_refused_one_is_no_going_on() -> None:
    one = view(user("go"), REFUSED, EDIT)
    for made in one.calls:
        made.step = 0
    assert value(one, CLOSING)["interrupted_after"] is True


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("never mind", "gives_up"),
        ("forget it, I'll do it by hand", "gives_up"),
        ("ok, let's stop here", "gives_up"),
        ("I give up.", "gives_up"),
        ("don't forget it needs a test", "none"),
        ("give it a name and stop the server", "none"),
    ],
)
def test_words_that_leave_the_work_where_it_is(text: str, kind: str) -> None:
    assert value(view(user("go"), EDIT, user(text)), CLOSING)["kind"] == kind


@pytest.mark.parametrize(
    ("parts", "is_open"),
    [
        ([say("Which database should it use, SQLite or Postgres?")], True),
        ([call("AskUserQuestion", result=None, status="none", questions=[{"question": "Which one?"}])], True),
        ([call("AskUserQuestion", questions=[{"question": "Which one?"}]), say("Done.")], False),
        ([say("Done. Want me to commit?")], False),
        ([say("Which database should it use?"), user("SQLite"), say("Done.")], False),
    ],
)
def test_a_question_nobody_answered(parts: list[Part], is_open: bool) -> None:
    assert value(view(user("store the results"), *parts), CLOSING)["question_open"] is is_open


def test_the_closing_words_are_its_evidence() -> None:
    collected = evidence(view(user("go"), say("x"), user("thanks!"), COMMIT), CLOSING)
    assert [(i.line, i.role, i.excerpt) for i in collected.items] == [
        (3, "support", "accept: “thanks!” thanks!"),
        (4, "counter", "commits after it: Bash git add -A && git commit -m 'x'"),
    ]


ENDED = 1000 * MINUTE
DAY = 1440


def judged(given: dict[str, Any], **history: Any) -> tuple[Any, dict[str, Any], Any]:
    """The outcome, its detail, and the collected evidence; `given` as it comes back from the store."""
    session = Session(
        session_id="s1", context="product", format="claude-code", agent="claude-code", artifact_id="a1", ended_at=ENDED
    )
    known = {
        "closing_reaction": {
            "kind": "none",
            "turn": 2,
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
    return {"closing_reaction": {"kind": kind, "turn": 2, **after}}


NO_VERDICT = Absent("none_found", "no_verdict")


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
    assert scopes["user.closing_reaction"] == scopes["user.output_applied"] == "session"


@pytest.mark.parametrize(
    ("after", "expected"),
    [((), Absent("censored", "goes_on_in_another_session")), ((say("ok"),), Absent("none_found", "no_verdict"))],
)
def test_a_session_that_ends_with_an_approved_plan_goes_on_elsewhere(after: Any, expected: Any) -> None:
    one = view(user("plan it"), call("ExitPlanMode"), *after)
    past = History(place="shop", known_until=4 * 10**15, known_since=0)
    known = {
        "closing_reaction": {"kind": "none"},
        "output_applied": Absent("missing_artifact", "git"),
        "changes_reverted": Absent("missing_artifact", "git_or_snapshots"),
        "session_reopened_within_s": Absent("none_found", "within_24h"),
    }
    results = {r.signal.path: r.value for r in measure(one, known, past)}
    assert results["user.session_outcome"] == expected


CASES = (
    *(Case("a commit after the last edit applies the output", view(user("go"), EDIT, bash("git commit -am x", printed)),
           APPLIED, True, {"method": "transcript", "commits": 1, "commits_after_last_edit": 1}, support=[3],
           denominator=[2])
      for printed in [
        "[main 1a2b3c4] x",
        "[main (root-commit) 1a2b3c4] x",
        "[detached HEAD 1a2b3c4d5e] x",
        "hook ok\n[feat/a-b 1a2b3c4] x",
      ]),
    *(Case("what printed no branch and sha is no commit", view(user("go"), EDIT, other), APPLIED,
           Absent("missing_artifact", "git"))
      for other in [
        bash("git commit -m x", "nothing to commit, working tree clean"),
        bash("git log --grep commit", "commit 1a2b3c4d5e6f\nAuthor: x"),
        bash("cat notes.md", "[main 1a2b3c4] x"),
        call("Bash", command="git commit -m x", result=None),
        call("Bash", command="git commit -m x", result="[main 1a2b3c4] x", thread="agent-1"),
      ]),
    *(Case("attribution of nothing leaves it to the transcript", view(user("go"), EDIT, COMMIT, checkpoints=recorded),
           APPLIED, some={"method": "transcript"})
      for recorded in [
        [Checkpoint(checkpoint_id="c")],
        [Checkpoint(checkpoint_id="c", files_touched=["elsewhere.py"])],
        [Checkpoint(checkpoint_id="c", agent_lines=0, total_committed=0, agent_percentage=0.0)],
      ]),
    *(Case("without a revert command nobody saw the tree", view(user("go"), EDIT, other), REVERTED,
           Absent("missing_artifact", "git_or_snapshots"))
      for other in [
        say("done"),
        bash("git checkout main"),
        bash("git checkout ./a.py"),
        bash("git checkout -b fix.it"),
        bash("git restore --staged ."),
        bash("git reset --soft HEAD~1"),
        bash("git stash list"),
        bash("git stash push -m x -- a.py"),
        bash("git commit -m 'then git checkout . again'"),
        bash('grep -rn "git reset --hard" docs'),
        bash("git checkout .", status="error"),
        bash("git checkout .", status="rejected"),
        bash("git checkout .", thread="agent-1"),
      ]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
