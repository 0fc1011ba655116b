"""Where a session lies: which repository, and what its log says of that."""

from __future__ import annotations

import re

from agentsignals.catalog import signal
from agentsignals.model import Absent, ToolCall
from agentsignals.views.evidence import Evidence
from agentsignals.views.history import History
from agentsignals.views.session import SessionView

MOST_COMMITS = 500
"""Of one session: more are a history that was listed whole."""
_ELSEWHERE = re.compile(r"\bcd\s|\s-C\s|\bclone\b|--git-dir|--work-tree|\bsubmodule\b")
"""What has Git speak of another folder than the session's."""
_SIGNS_OF_ELSEWHERE = ("cd", "-C", "clone", "--git-dir", "--work-tree", "submodule")
"""One of them is in whatever `_ELSEWHERE` matches."""
_REMOTE = re.compile(
    r"\n(?:origin[ \t]+|To |From )(?:\S*?@|[a-z]+://)?(?:[\w-]+\.)+[a-z]+(?::\d+)?[:/](?:\S*/)?([\w.-]+/[\w.-]+?)"
    r"(?:\.git)?/?(?:[ \t]|$)",
    re.MULTILINE,
)
_COMMIT = re.compile(r"\n(?:[*|\\/ ]*(?:commit )?|\[[^\]\n]*[ ])([0-9a-f]{7,40})(?=[\s\]]|$)", re.MULTILINE)
"""At the head of a line, as `git log` and `git commit` write it; never the blobs of a diff. With the line break before
it, as above: found several times faster than `^`."""


def _of_here(call: ToolCall) -> bool:
    if call.status != "ok":
        return False
    command = call.command or ""
    return not (any(sign in command for sign in _SIGNS_OF_ELSEWHERE) and _ELSEWHERE.search(command))


@signal(
    "user.repository_marks",
    type="obj",
    unit="marks",
    origin="this project",
    source="derived",
    priority="P2",
    pitfalls="Only what Git printed in the session's own folder; a command that changes the folder tells nothing.",
    why="What user.place knows clones of one repository by.",
)
def repository_marks(view: SessionView, why: Evidence) -> dict[str, list[str]] | Absent:
    """Names of remotes (`owner/name`) and abbreviated commits that Git printed."""
    if not view.git_calls:
        return Absent("none_found", "no_git_call")
    calls = [call for call in view.git_calls if _of_here(call)]
    texts = ["\n" + view.result_text(call) for call in calls]
    why.denominator(calls)
    remotes = {name.lower() for text in texts for name in _REMOTE.findall(text)}
    commits = {sha[:7] for text in texts for sha in _COMMIT.findall(text) if not sha[:7].isdigit()}
    return {"remotes": sorted(remotes), "commits": sorted(commits)[:MOST_COMMITS]}


@signal(
    "user.place",
    type="str",
    unit="name",
    origin="this project",
    source="derived",
    priority="P2",
    pitfalls="Two clones whose logs have neither remote, commits nor changed files in common are two places."
    " Depends on the sessions in the store: another session may join two places.",
    why="Sessions of one repository are alike: intervals draw places, not sessions.",
)
def place(why: Evidence, history: History) -> str | Absent:
    """The repository that the session lies in, by name, folder, remote, history or changed files; else the folder."""
    if history.place is None:
        return Absent("not_applicable", "repo_unknown")
    why.rule("sessions of one name, folder, remote, two commits or several changed files lie in one place")
    return history.place
