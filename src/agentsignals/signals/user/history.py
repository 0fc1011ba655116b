"""A session among the others of its repository: which that is, and what came before and after."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentsignals.changes.hunks import lines_by_file, lines_of
from agentsignals.changes.worktrees import MOST_TOLD
from agentsignals.model import Absent, to_iso
from agentsignals.model.lazy import deferred_pattern
from agentsignals.signals import Measured, signals_with
from agentsignals.views.calls import complete_lines
from agentsignals.views.history import AHEAD_S, History, prints
from agentsignals.views.session import Evidence, SessionView

signal = signals_with(origin="Agent Signals")

SECOND = 1_000_000
MOST_COMMITS = 500
"""More commits in one session are a history that was listed in full."""
_ELSEWHERE = deferred_pattern(r"\bcd\s|\s-C\s|\bclone\b|--git-dir|--work-tree|\bsubmodule\b")
"""Parts of a command that point Git at another folder than the session's."""
_SIGNS_OF_ELSEWHERE = ("cd", "-C", "clone", "--git-dir", "--work-tree", "submodule")
"""Each match of `_ELSEWHERE` has one of them."""
_REMOTE = deferred_pattern(
    r"\n(?:origin[ \t]+|To |From )(?:\S*?@|[a-z]+://)?(?:[\w-]+\.)+[a-z]+(?::\d+)?[:/](?:\S*/)?([\w.-]+/[\w.-]+?)"
    r"(?:\.git)?/?(?:[ \t]|$)",
    re.MULTILINE,
)
_COMMIT = deferred_pattern(r"\n(?:[*|\\/ ]*(?:commit )?|\[[^\]\n]*[ ])([0-9a-f]{7,40})(?=[\s\]]|$)", re.MULTILINE)
"""At the head of a line, as `git log` and `git commit` write it; never the blobs of a diff. With the line break before
it, as above: found several times faster than `^`."""


@signal("user.repository_marks", "obj", "marks", source="derived", priority="P2", origin="this project")
def repository_marks(view: SessionView, why: Evidence) -> dict[str, list[str]] | Absent:
    """Names of remotes (`owner/name`) and abbreviated commits that Git printed.

    From the results of main-thread commands with `git` and status ok, without cd, -C, clone, --git-dir, --work-tree and
    submodule: matches of the patterns in docs/patterns.md. remotes: in lower case, sorted; commits: cut to seven
    digits, not of digits alone, sorted, at most 500. Absent without a command with `git`.

    Pitfalls: Only what Git printed in the session's own folder; a command that changes the folder tells nothing.
    Why: What user.place knows clones of one repository by.
    """
    if not view.git_calls:
        return Absent("none_found", "no_git_call")
    ok = [(call, call.command or "") for call in view.git_calls if call.status == "ok"]
    calls = [
        call for call, command in ok
        if not (any(sign in command for sign in _SIGNS_OF_ELSEWHERE) and _ELSEWHERE.search(command))
    ]  # fmt: skip
    texts = ["\n" + view.result_text(call) for call in calls]
    why.denominator(calls)
    remotes = {name.lower() for text in texts for name in _REMOTE.findall(text)}
    commits = {sha[:7] for text in texts for sha in _COMMIT.findall(text) if not sha[:7].isdigit()}
    return {"remotes": sorted(remotes), "commits": sorted(commits)[:MOST_COMMITS]}


@signal("user.place", "str", "name", source="derived", priority="P2", origin="this project")
def place(why: Evidence, history: History) -> str | Absent:
    """The session's project: its repository by name, folder, remote, history or changed files; else its folder.

    Its `repo` in lower case. Without one, its `cwd`; a Git worktree below it (`.claude/worktrees/x`, `.worktrees/x`) or
    beside it (`shop__worktrees/x`) is the folder itself. A folder is the repository that all sessions in it name
    together, by `repo` or by remotes (user.repository_marks), if they name one only. Places are one that share two
    commits (user.repository_marks); or changed files of three path parts or more, none with a leading dot: two if their
    last parts are equal, else three that are half of the smaller set. What more than 20 places share does not count.
    Two named repositories never are one. The name is the repository's, also for sessions that name none, else the path
    of the folder with most sessions.

    Pitfalls: Two clones whose logs have neither remote, commits nor changed files in common are two places. Depends on
    the sessions in the store: another session may join two places.
    Why: Sessions of one repository are similar, so intervals are clustered by project.
    """
    if history.place is None:
        return Absent("not_applicable", "repo_unknown")
    why.rule("sessions of one name, folder, remote, two commits or several changed files lie in one place")
    return history.place


@signal("user.session_reopened_within_s", "float", "seconds", priority="P1")
def session_reopened_within_s(view: SessionView, why: Evidence, history: History) -> Measured | Absent:
    """Seconds from the end of this session to the start of the person's next in the same place, within a day.

    The next session is the first of the same user.place (a repository, in any clone or Git worktree of its folder) and
    the same user (the home folder's name in `cwd`) that starts after `ended_at`, has no parent session and has a human
    turn. Absent where none starts within 24 hours.

    Pitfalls: A quick return is no failure: a third of all sessions is followed by another within half an hour.
    Why: A quick return may mean that the first session failed.
    """
    ended = view.session.ended_at
    if history.place is None:
        return Absent("not_applicable", "repo_unknown")
    if ended is None:
        return Absent("missing_field", "timestamp")
    why.rule("the first session of the same place and user to start after this one ended; parallel ones don't count")
    began = history.next_started_at
    if began is not None and began - ended <= AHEAD_S * SECOND:
        detail = {"next_session": history.next_id, "shares_file": history.next_shares_file}
        return Measured((began - ended) / SECOND, {**detail, "similarity": history.next_similarity})
    covered = history.known_until - ended >= AHEAD_S * SECOND
    return Absent("none_found", "within_24h") if covered else Absent("censored", "store_ends_within_24h")


@signal("user.prior_sessions_same_repo", "int", "sessions", version=2, priority="P1")
def prior_sessions_same_repo(why: Evidence, history: History) -> Measured | Absent:
    """Sessions of the same user.place in the store with an earlier `started_at`, no parent session and a human turn.

    Pitfalls: Only what was collected counts: see store_start.
    Why: Shows how much work on this repository the store contains.
    """
    if history.place is None:
        return Absent("not_applicable", "repo_unknown")
    why.rule(f"sessions of {history.place} with a human turn that started before this one")
    return Measured(
        history.n_prior, {"same_user": history.n_prior_same_user, "store_start": to_iso(history.known_since)}
    )


# Work of several sessions on one place is found by the lines they have in common. Line numbers of two sessions are
# never compared: nobody recorded what happened to the file in between.


@signal("user.edited_line_prints", "obj", "prints by file", source="derived", version=2, priority="P2",
        origin="agentsignals")  # fmt: skip
def edited_line_prints(view: SessionView, why: Evidence) -> dict[str, str] | Absent:
    """For each file of the repository that was changed, prints of the lines that edit calls and commands added,
    replaced or removed.

    Lines are taken without outer blanks: of a replaced text those that only the old or the new has (re-indented lines
    are none), of a patch its + and - lines for the files it names, of a text written whole or inserted all
    (`argument_roles`, or what the command tells in whole lines). Kept are CRC-32 numbers of the lines of more than 8
    characters that no other changed file of the session has, ascending, at most 2,000 a file, as 8 hexadecimal digits
    each in one string. A file without such lines has no key; absent without a change or where no line is told.

    Pitfalls: Prints of 32 bits, eight hexadecimal digits each; they tell nothing of the lines. A file changed through
    the shell has them where the words of the command tell whole lines.
    Why: What user.prior_sessions_same_region compares, so that no session must be read again for it.
    """
    if not view.repo_edits:
        return Absent("not_applicable", "no_edit")
    edits = [e for e in view.repo_edits if e.op != "delete"]
    why.support(edits)
    paths: dict[int, set[str]] = {}
    for e in edits:
        paths.setdefault(e.seq, set()).add(e.path)
    by_command = {e.seq for e in edits if e.via == "shell"}
    lines: dict[str, set[str]] = {}
    for call in [c for c in view.calls if c.seq in paths]:
        if call.seq in by_command:
            has_failed = call.status == "error"
            for path, text in complete_lines(call.command or "", paths[call.seq], has_failed=has_failed):
                for changed in lines_of([text]).values():
                    lines.setdefault(path, set()).update(changed)
            continue
        for named, changed in lines_by_file(call.arguments, call.argument_roles).items():
            for path in _meant(named, paths[call.seq]):
                lines.setdefault(path, set()).update(changed)
    if not any(lines.values()):
        return Absent("missing_field", "line_texts")
    # A line that several files have identifies no place.
    common, visited = set[str](), set[str]()
    if len(lines) > 1:
        for of_file in lines.values():
            common |= visited & of_file
            visited |= of_file
    by_path = {path: prints(lines[path] - common if common else lines[path]) for path in sorted(lines)}
    return {path: line_prints for path, line_prints in by_path.items() if line_prints}


def _meant(named: str, paths: set[str]) -> Iterable[str]:
    """Return the files that a patch means by a name, among those a call changed; all when it names none."""
    if not named or named in paths:
        return (named,) if named else paths
    return [p for p in paths if named.endswith("/" + p) or p.endswith("/" + named)]


@signal("user.prior_sessions_same_region", "int", "sessions", source="derived", version=3, priority="P2")
def prior_sessions_same_region(
    why: Evidence,
    history: History,
    edited_line_prints: dict[str, str] | Absent,
    earlier_sessions_on_lines: dict[str, list[str]] | Absent,
) -> Measured | Absent:
    """Earlier sessions of the same project that changed the same lines, or adjacent lines, of a file.

    Method content: sessions of the same user.place that started earlier and have a human turn, and whose
    user.edited_line_prints of a file share a print with those of this session's file of the same path. Compared are
    files that two sessions of the place or more changed; prints that two of these files have do not count.

    Pitfalls: A lower bound. Without `attribute` a place is known again by a line that only this file has (method
    content); sessions that change different lines of one function are not told. Only what was collected counts.
    Why: Code that several sessions change again was not finished.
    """
    followed = {} if isinstance(earlier_sessions_on_lines, Absent) else earlier_sessions_on_lines
    if not isinstance(earlier_sessions_on_lines, Absent):
        for session_id, files in list(followed.items())[:MOST_TOLD]:
            why.rule(f"session {session_id} wrote the lines there, or beside, in {', '.join(files)}")
        if isinstance(edited_line_prints, Absent) or history.place is None:
            return Measured(len(followed), {"method": "lines", "sessions": list(followed)[:MOST_TOLD]})
    if isinstance(edited_line_prints, Absent) and edited_line_prints.reason == "not_applicable":
        return edited_line_prints
    if history.place is None:
        return Absent("not_applicable", "repo_unknown")
    if isinstance(edited_line_prints, Absent):
        return edited_line_prints
    same_lines = history.same_lines
    why.rule("a line of more than 8 characters in common, which no other file of the place has")
    for session_id, files in list(same_lines.items())[:MOST_TOLD]:
        why.rule(f"session {session_id} changed {', '.join(files)}")
    if isinstance(earlier_sessions_on_lines, Absent):
        return Measured(len(same_lines), {"method": "content", "sessions": list(same_lines)[:MOST_TOLD]})
    both = list(dict.fromkeys([*followed, *same_lines]))
    detail = {"method": "lines", "by_lines": len(followed), "by_content": len(same_lines)}
    return Measured(len(both), {**detail, "sessions": both[:MOST_TOLD]})
