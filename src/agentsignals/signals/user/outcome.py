"""Outcome of a session: was the work kept, taken back, praised, begun again."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.changes.hunks import WHOLE_TREE
from agentsignals.changes.worktrees import MOST_TOLD, EarlierSessions, Kind, LinesCommitted, LinesTakenBack, read
from agentsignals.model import RAN, UNSPOKEN, Absent, Edit, Event, ToolCall
from agentsignals.model.lazy import deferred_pattern
from agentsignals.signals import Measured, signals_with
from agentsignals.views.history import History
from agentsignals.views.session import Evidence, SessionView, closing_question, cut_short, plan_handed_on
from agentsignals.words.lexicon import acceptance, giving_up, other_language, rejection, revert_all

signal = signals_with(origin="Agent Signals")

REOPENED_SOON_S = 1800
SAME_TASK_SIMILARITY = 0.6
SECOND = 1_000_000
COMMITS_TOLD = 5
NO_VERDICT = "no_verdict"
"""Nothing was seen that tells how the session ended."""
_LOW = {"confidence": "low"}

_ALL_FILES = r"(?:-- +)?(?:\.|:/|\*)(?=\s|$|[;&|)<])"
_REVERTS = deferred_pattern(
    r"(?:^|[;&|(\n>])\s*git (?:-C \S+ |-\S+ )*(?:"
    rf"checkout (?:HEAD )?{_ALL_FILES}|restore (?!--staged\b(?!.*--worktree))(?:-\S+ )*{_ALL_FILES}"
    r"|reset (?:-\S+ )*--hard(?P<target> +(?!HEAD(?:\s|$|[;&|)]))[^\s;&|)<>]+)?|clean -\w*f"
    r"|(?P<stash>stash)(?= *$| *[;&|)\n]| +(?:push|save|-))(?![^\n;&|]* -- ))",
)
_QUOTED = deferred_pattern(r"'[^']*'|\"[^\"]*\"")
_UNSTASHES = deferred_pattern(r"\bgit stash (?:pop|apply)\b")


@signal("user.output_applied", "bool", "flag", version=3, source="git", status="needs a repository")
def output_applied(view: SessionView, why: Evidence, lines_committed: dict[str, Any] | Absent) -> Measured | Absent:
    """True if lines the agent wrote were committed: by replay, else by recorded attribution, else by a commit after the
    last edit, else by a linked commit.

    Without `attribute`: true where checkpoints with agent_lines and total_committed have agent lines or an
    agent_percentage, else false where they have committed lines; else true where a commit came with or behind the last
    edit of the repository; else true where a checkpoint without counts names a changed file; false where all commits
    came before the last edit; absent without any commit, and without an edit.

    Pitfalls: Committed is not merged. Without `attribute`, and a collector's record, only commits made inside the
    session are seen.
    Why: A cheap sign of quality that needs no label.
    """
    edits = _work(view)
    if not edits:
        return Absent("not_applicable", "no_edit")
    why.denominator(edits)
    commits = view.commits
    late = [c for c in commits if c.seq >= edits[-1].seq]
    in_repository = None if isinstance(lines_committed, Absent) else _in_repository(lines_committed, edits, why)
    # The repository alone decides where its lines are there, or every line of its commits is explained otherwise: a
    # collector's figure counts the lines of all sessions of a checkpoint (design/attribution.md#what-entire-recorded).
    if isinstance(in_repository, Measured) and (
        in_repository.value is True or not (late or "confidence" in in_repository.detail)
    ):
        return in_repository
    recorded = _recorded(view)
    # A commit that the session made and that is not there may have them: its branch was dropped, or not fetched.
    if in_repository is not None and not late and (recorded is None or not recorded.value):
        return in_repository
    if recorded is not None:
        why.rule(f"attribution recorded with the session: {recorded.detail['agent_lines']} lines were committed")
        return recorded
    # By the commits that the session made, else those that a collector linked to it.
    uncounted = (c for c in view.session.checkpoints if c.agent_lines is None and c.total_committed is None)
    linked = sorted({e.path for e in edits} & {path for c in uncounted for path in c.files_touched or ()})
    if not late and linked:
        why.rule(f"a collector linked a commit of {', '.join(linked[:COMMITS_TOLD])} to the session")
        return Measured(True, {"method": "checkpoint", "files": len(linked), **_LOW})
    if not commits:
        return Absent("missing_artifact", "git")
    why.support(late)
    why.counter([c for c in commits if c.seq < edits[-1].seq], "committed before the last edit:")
    why.rule("a commit after the last edit whose output names branch and sha")
    detail = {"method": "transcript", "commits": len(commits), "commits_after_last_edit": len(late)}
    return Measured(bool(late), detail if late else {**detail, "confidence": "low"})


def _recorded(view: SessionView) -> Measured | None:
    """Return the verdict of a collector's counts when commits were made; None where it counted nothing."""
    checkpoints = [c for c in view.session.checkpoints if c.agent_lines is not None and c.total_committed is not None]
    lines = sum(c.agent_lines or 0 for c in checkpoints)
    detail = {"method": "attribution", "agent_lines": lines}
    if lines > 0 or any(c.agent_percentage for c in checkpoints):
        return Measured(True, detail)
    if any(c.total_committed for c in checkpoints):
        return Measured(False, {**detail, "commits_in_transcript": len(view.commits)})
    return None


def _in_repository(attribution: dict[str, Any], edits: list[Edit], why: Evidence) -> Measured | Absent | None:
    """Return the verdict of the lines that the replay of the calls finds in commits; None when it is unknown."""
    calls = set(attribution["calls"])
    why.support([e for e in edits if e.seq in calls], "its lines are committed:")
    if attribution["verdict"] == "censored":
        return Absent("censored", "repository_ends_before_close")
    if attribution["verdict"] == "unknown":
        return None
    for commit in attribution["commits"][:COMMITS_TOLD]:
        places = "; ".join(f"{path} {lines}" for path, lines in commit["files"].items())
        why.rule(f"commit {commit['sha'][:12]} has {commit['lines']} of its lines: {places}")
    if not attribution["commits"]:
        why.rule(f"none of the {attribution['produced']} lines that its calls wrote is in any commit")
    detail = {
        "method": "git",
        "lines": attribution["lines"],
        "produced": attribution["produced"],
        "commits": attribution["n_commits"],
    }
    if attribution["verdict"] == "applied":
        return Measured(True, detail)
    return Measured(
        False, detail | {"late_lines": attribution["late_lines"]} | ({} if attribution["is_sure"] else _LOW)
    )


@signal("user.changes_reverted", "bool", "flag", version=2, source="git", priority="P1", status="needs a repository")
def changes_reverted(view: SessionView, why: Evidence, lines_taken_back: dict[str, Any] | Absent) -> Measured | Absent:
    """True if nine tenths of the lines the agent left were removed again, according to commits, or to a command that
    reset the working tree after the last edit.

    By command (without `attribute`): true where a main-thread call or an event of kind user_shell behind the last edit
    of the repository matches the pattern in docs/patterns.md outside quotation marks. Not counted are a `stash` with a
    later `git stash pop` or `apply`, and others with a commit between the edit and it, unless they reset to another
    commit. False where all such commands came before or are not counted; absent without any,
    and without an edit.

    Pitfalls: An agent that replaces its own code reverts nothing. Without `attribute` only commands of the session are
    seen.
    Why: The complement of output_applied: the work was thrown away.
    """
    edits = _work(view)
    if not edits:
        return Absent("not_applicable", "no_edit")
    if not isinstance(lines_taken_back, Absent) and lines_taken_back["verdict"] != "unknown":
        taken = lines_taken_back
        why.denominator(edits)
        why.rule(
            f"of {taken['peak']} lines that its calls left standing, {taken['taken']} were gone when their"
            f" files were committed, and {taken['undone']} stood in commits that others undid"
        )
        for sha in taken["undone_by"]:
            why.rule(f"commit {sha[:12]} undoes a commit of the session")
        detail = {"share": taken["share_low"], "share_at_most": taken["share_high"], "peak": taken["peak"]}
        later = {"reverted_later_by": taken["undone_later_by"]} if taken["undone_later_by"] else {}
        return Measured(taken["verdict"] == "reverted", {"method": "git", **detail, **later})
    last_edit = edits[-1].seq
    reverts = _revert_commands(view)
    kept: list[ToolCall | Event] = []
    for row, kind in reverts:
        # What was committed survives, unless the branch itself is moved; a stash may be taken out again.
        called = [c for c in view.calls if kind == "stash" and c.seq >= row.seq and c.status in RAN and c.command]
        is_back = any(_UNSTASHES.search(c.command or "") for c in called)
        is_safe = kind == "tree" and any(last_edit <= c.seq <= row.seq for c in view.commits)
        if row.seq > last_edit and not is_back and not is_safe:
            kept.append(row)
    why.support(kept)
    why.counter([row for row, _ in reverts if row not in kept], "no revert of the session's work:")
    if not reverts:
        return Absent("missing_artifact", "git_or_snapshots")
    why.rule("git checkout . / restore . / reset --hard / clean -f / stash (not popped) with no later edit")
    return Measured(bool(kept), {"method": "transcript", "commands": len(reverts)})


def _work(view: SessionView) -> list[Edit]:
    """Return the edits of the repository; a reset of the whole tree changes files too, but is no work on them."""
    return [e for e in view.repo_edits if e.path != WHOLE_TREE]


def _revert_commands(view: SessionView) -> list[tuple[ToolCall | Event, str]]:
    """Return whole-tree revert commands that ran, the agent's and the person's, each with its kind."""
    rows: list[tuple[ToolCall | Event, str]] = [(e, e.text or "") for e in view.by_kind.get("user_shell", ())]
    rows += [(c, c.command) for c in view.git_calls if c.status in RAN and c.command and "git " in c.command]
    reverts: list[tuple[ToolCall | Event, str]] = []
    for row, text in rows:
        if not any(word in text for word in ("checkout", "restore", "reset", "clean", "stash")):
            continue
        # In quotes it is a message, or what somebody searches for.
        match = _REVERTS.search(_QUOTED.sub("''", text) if "'" in text or '"' in text else text)
        if match:
            reverts.append((row, "stash" if match["stash"] else "reset_to" if match["target"] else "tree"))
    return sorted(reverts, key=lambda pair: pair[0].seq)


@signal("user.closing_reaction", "obj", "label", basis="heuristic", version=4, origin="agentsignals")
def closing_reaction(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """What the last human turn says of the work (revert_all, rejection, accept, gives_up or none).

    kind: the first of revert_all, rejection, gives_up, accept whose patterns match the head of the last turn (accept
    not in turn 0), else none. turn: its number. Absent without a turn, and where the last one is in another language
    than English.

    Pitfalls: Silence is not a reaction. Most sessions end without a comment on the result.
    Why: The raw end of a session, from which the outcome is derived and can be derived anew.
    """
    if not view.turns:
        return Absent("not_applicable", "no_turn")
    last = view.turns[-1]
    other = view.foreign.get(last.turn)
    if other is not None and last.kind not in UNSPOKEN:
        return other
    kind, matched = "none", None
    finders = {"revert_all": revert_all, "rejection": rejection, "gives_up": giving_up, "accept": acceptance}
    for name, find in finders.items():
        # The first turn has nothing to praise yet; it can still order a revert of older work.
        if (last.turn or name != "accept") and (matched := find(last.text, last.kind)):
            kind = name
            break
    if matched:
        why.match(last, kind, matched)
    else:
        why.denominator([last], "no pattern matches:")
    return {"kind": kind, "turn": last.turn}


@signal("user.session_ending", "obj", "counts", basis="heuristic", origin="agentsignals")
def session_ending(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """What still followed the last human turn: edits, commits, a response cut short for good, a question of the agent's
    that nobody answered.

    edits_after: different calls that changed the repository. commits_after: commits. interrupted_after: an interrupt or
    rejected call behind the last main-thread call with status ok, unknown or error (or of that call's step).
    question_open: a call of class ask without a result, or a closing question (null where the agent writes another
    language than English). Absent without a turn.

    Why: The rest of a session's raw end: it needs no words of the person.
    """
    if not view.turns:
        return Absent("not_applicable", "no_turn")
    last = view.turns[-1]
    edits = {e.seq for e in _work(view) if e.seq > last.seq}
    commits = [c for c in view.commits if c.seq > last.seq]
    cut = cut_short(view, last.seq)
    why.counter(commits, "commits after it:")
    why.counter(cut, "cut short after it:")
    # The last response asks by a tool without an answer, or ends in a question that is no mere offer.
    asking = [c for c in view.calls if c.class_ == "ask" and c.turn == len(view.turns) - 1 and c.status == "none"]
    why.support(asking, "never answered:")
    unread = other_language(view.prose) is not None
    closing = None if unread else closing_question(view, view.responses[-1])
    if closing is not None:
        why.matches(view.prose.matches([closing]))
    return {
        "edits_after": len(edits),
        "commits_after": len(commits),
        "interrupted_after": bool(cut),
        "question_open": bool(asking) or (None if unread else closing is not None),
    }


@signal("user.session_outcome", "enum", "label", basis="heuristic", version=3)
def session_outcome(  # noqa: PLR0913  (the parameters are the needs of the signal)
    why: Evidence,
    view: SessionView,
    history: History,
    closing_reaction: dict[str, Any] | Absent,
    session_ending: dict[str, Any] | Absent,
    output_applied: bool | Absent,
    changes_reverted: bool | Absent,
    session_reopened_within_s: float | Absent,
) -> Measured | Absent:
    """explicitly_rejected, accepted, restarted_same_task or abandoned_mid_session: the first that something was seen
    of; absent where nothing was.

    The first rule that holds, from user.closing_reaction, user.session_ending and the signals named.
    explicitly_rejected: changes_reverted without output_applied; kind revert_all; kind rejection with no edit or commit
    after it. accepted: output_applied; kind accept without interrupted_after. restarted_same_task:
    session_reopened_within_s <= 1,800, and that session changes a file of this one or the F1 of the words of both first
    prompts' heads is 0.6 (three words or more).
    abandoned_mid_session: kind gives_up with no edit or commit after it; interrupted_after; question_open. Absent
    (censored) for rules 3 and later where the store's last time is less than 30 minutes behind the end, and, but for
    gives_up, where the session ends with an approved plan. Where the last turn is in another language than English, its
    words decide nothing, and without another verdict the language is the reason.

    Pitfalls: No verdict (absent, none_found) is neither failure nor success, and where commits are not in sight it is
    the rule: publish evidence_kind and the share without a verdict with every rate.
    Why: The label behind all figures about satisfaction.
    """
    reaction = dict(session_ending) if isinstance(session_ending, dict) else {}
    reaction["kind"] = closing_reaction["kind"] if isinstance(closing_reaction, dict) else "none"
    gap = session_reopened_within_s
    reopened = not isinstance(gap, Absent) and gap <= REOPENED_SOON_S
    detail: dict[str, Any] = {"reopened": reopened}
    if isinstance(output_applied, Absent) and output_applied.detail == "no_edit":
        detail["no_edits"] = True
    applied = output_applied is True
    label, evidence, rule = _judged(reaction, applied, changes_reverted is True)
    if label is None:
        label, evidence, rule = _unsaid(history, reopened, reaction)
        ended = view.session.ended_at
        is_open = ended is not None and history.known_until - ended < REOPENED_SOON_S * SECOND
        if evidence != "reopen" and is_open:
            return Absent("censored", "session_may_go_on")
        if evidence not in ("reopen", "text") and plan_handed_on(view):
            return Absent("censored", "goes_on_in_another_session")
    why.rule(rule)
    if label is None:
        if isinstance(closing_reaction, Absent) and closing_reaction.reason == "not_computable":
            return closing_reaction
        return Absent("none_found", NO_VERDICT)
    return Measured(label, {"evidence_kind": evidence, **detail})


def _judged(reaction: dict[str, Any], applied: bool, reverted: bool) -> tuple[str | None, str, str]:
    """Apply rules 1 and 2 of design/signals.md#session-outcome: direct evidence."""
    kind = reaction["kind"]
    if reverted and not applied:
        return "explicitly_rejected", "git", "rule 1: the changes were reverted and not committed"
    if kind == "revert_all":
        return "explicitly_rejected", "text", "rule 1: the last human turn takes everything back"
    if kind == "rejection" and not reaction["edits_after"] and not reaction["commits_after"]:
        return "explicitly_rejected", "text", "rule 1: the last human turn refuses, and no edit or commit followed"
    if applied:
        return "accepted", "git", "rule 2: the output was committed"
    if kind == "accept" and not reaction["interrupted_after"]:
        return "accepted", "text", "rule 2: the last human turn accepts"
    return None, "none", ""


def _unsaid(history: History, reopened: bool, reaction: dict[str, Any]) -> tuple[str | None, str, str]:
    """Apply rules 3 to 5: evidence of the next session, evidence that the person stopped, and the rest."""
    alike = history.next_similarity is not None and history.next_similarity >= SAME_TASK_SIMILARITY
    if reopened and (history.next_shares_file or alike):
        how = "touches the same files" if history.next_shares_file else "asks for the same"
        return "restarted_same_task", "reopen", f"rule 3: session {history.next_id} began within 30 minutes and {how}"
    if reaction["kind"] == "gives_up" and not reaction["edits_after"] and not reaction["commits_after"]:
        return "abandoned_mid_session", "text", "rule 4: the last human turn gives up, and no edit or commit followed"
    if reaction.get("interrupted_after"):
        return "abandoned_mid_session", "cut", "rule 4: the person cut the last response short and never came back"
    if reaction.get("question_open"):
        return "abandoned_mid_session", "question", "rule 4: the agent asked, and nobody answered"
    return None, "none", "rule 5: neither accepted, rejected, begun again, nor seen to be left off"


# `agentsignals repo attribute REPO` leaves its results as labels of the sessions they are about.

from_repository = signals_with(source="git", status="needs a repository", origin="agentsignals")


def _attribution(view: SessionView, kind: type[Kind]) -> Kind | Absent:
    if not view.session.edits:
        return Absent("not_applicable", "no_edit")
    attribution = read(view.session.labels, kind)
    return Absent("missing_artifact", "git_attribution") if attribution is None else attribution


@from_repository("user.lines_committed", "obj", "lines", priority="P1")
def lines_committed(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """The lines that the session's calls wrote and that stand in commits: how many, in which, in which files.

    Pitfalls: A line is a session's where the replay of its calls put it. Lines that only a command wrote are none.
    Why: Shows which commits contain the session's work. user.output_applied is based on it.
    """
    attribution = _attribution(view, LinesCommitted)
    if isinstance(attribution, Absent):
        return attribution
    calls = set(attribution.calls)
    why.support([e for e in view.session.edits if e.seq in calls])
    for commit in attribution.commits:
        places = "; ".join(f"{path} {lines}" for path, lines in commit.files.items())
        late = " (after the session had closed)" if commit.is_late else ""
        why.rule(f"commit {commit.sha[:12]} has {commit.lines} lines of the session{late}: {places}")
    return _plain(attribution)


@from_repository("user.lines_taken_back", "obj", "lines", priority="P1")
def lines_taken_back(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """Of the lines that the session's calls wrote and left standing: those that were gone from their files, or whose
    commit was undone before the session had closed.

    Pitfalls: Shares lie between what is certain and what is possible: of a line that nobody committed nothing is known
    until its file is in a commit.
    Why: Shows which work was removed again. user.changes_reverted is based on it.
    """
    attribution = _attribution(view, LinesTakenBack)
    if isinstance(attribution, Absent):
        return attribution
    why.support(view.session.edits)
    for sha in attribution.undone_by:
        why.rule(f"commit {sha[:12]} undoes a commit of the session")
    for sha in attribution.undone_later_by:
        why.rule(f"commit {sha[:12]} reverts a commit of the session after it had closed")
    return _plain(attribution)


@from_repository("user.earlier_sessions_on_lines", "obj", "files by session", priority="P2")
def earlier_sessions_on_lines(view: SessionView, why: Evidence) -> dict[str, list[str]] | Absent:
    """Earlier sessions whose lines this one replaced, or wrote within three lines of, and the files.

    Pitfalls: Followed within one working tree; lines of other trees are known by their text only.
    Why: Which lines were whose, followed through every commit: user.prior_sessions_same_region rests on it.
    """
    attribution = _attribution(view, EarlierSessions)
    if isinstance(attribution, Absent):
        return attribution
    why.support(view.session.edits)
    for session_id, files in list(attribution.sessions.items())[:MOST_TOLD]:
        why.rule(f"session {session_id} wrote lines in {', '.join(files)}")
    return attribution.sessions


def _plain(attribution: LinesCommitted | LinesTakenBack) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(attribution)
    del fields["kind"]
    return fields
