"""Work on the same place in several sessions: found by the lines they have in common.

Line numbers of two sessions are never compared: nobody recorded what happened to the file in between.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentsignals.catalog import Measured, signal
from agentsignals.edits.changed_lines import lines_by_file, lines_of
from agentsignals.model import Absent
from agentsignals.views.command_texts import lines_told
from agentsignals.views.evidence import Evidence
from agentsignals.views.history import History, prints
from agentsignals.views.session import SessionView

MOST_TOLD = 20


@signal(
    "user.edited_line_prints",
    type="obj",
    unit="prints by file",
    origin="agentsignals",
    source="derived",
    priority="P2",
    version=2,
    pitfalls="Prints of 32 bits, eight hexadecimal digits each; they tell nothing of the lines. A file changed through"
    " the shell has them where the words of the command tell whole lines.",
    why="What user.prior_sessions_same_region compares, so that no session must be read again for it.",
)
def edited_line_prints(view: SessionView, why: Evidence) -> dict[str, str] | Absent:
    """For each file of the repository that was changed, prints of the lines that edit calls and commands added,
    replaced or removed."""
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
            for path, text in lines_told(call.command or "", paths[call.seq], has_failed=has_failed):
                for changed in lines_of([text]).values():
                    lines.setdefault(path, set()).update(changed)
            continue
        for named, changed in lines_by_file(call.arguments, call.argument_roles).items():
            for path in _meant(named, paths[call.seq]):
                lines.setdefault(path, set()).update(changed)
    if not any(lines.values()):
        return Absent("missing_field", "line_texts")
    common = _in_several(lines.values()) if len(lines) > 1 else set[str]()
    by_path = {path: prints(lines[path] - common if common else lines[path]) for path in sorted(lines)}
    return {path: line_prints for path, line_prints in by_path.items() if line_prints}


def _in_several(files: Iterable[set[str]]) -> set[str]:
    """The lines that more than one of the files has: they tell no place."""
    seen, several = set[str](), set[str]()
    for lines in files:
        several |= seen & lines
        seen |= lines
    return several


def _meant(named: str, paths: set[str]) -> Iterable[str]:
    """Which of the files that a call changed a patch means by a name; all, when it names none."""
    if not named or named in paths:
        return (named,) if named else paths
    return [p for p in paths if named.endswith("/" + p) or p.endswith("/" + named)]


@signal(
    "user.prior_sessions_same_region",
    type="int",
    unit="sessions",
    version=3,
    origin="Agent Signals",
    source="derived",
    priority="P2",
    pitfalls="A lower bound. Without `attribute` a place is known again by a line that only this file has (method"
    " content); sessions that change different lines of one function are not told. Only what was collected counts.",
    why="Work that several sessions come back to was not finished when it seemed so.",
)
def prior_sessions_same_region(
    why: Evidence,
    history: History,
    edited_line_prints: dict[str, str] | Absent,
    earlier_sessions_on_lines: dict[str, list[str]] | Absent,
) -> Measured | Absent:
    """Earlier sessions of the same place that changed the same lines of the same file, or lines beside them."""
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
