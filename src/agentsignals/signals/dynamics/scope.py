"""Work outside the scope, counted where it happens: in the calls."""

from __future__ import annotations

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.mentions import Mentions

_TEST_FOLDERS = frozenset(("test", "tests", "__tests__", "testdata"))


@signal(
    "dynamics.gd_actions",
    type="float",
    unit="ratio",
    origin="Agent Signals",
    source="derived",
    priority="P2",
    why="Work outside the scope, counted where it happens: in the calls.",
    pitfalls="An adaptation to code, not the paper's number (arXiv 2505.02709); without a judge only a trend:"
    " what the first response changed is in scope, so a session of one turn is always 0.",
)
def gd_actions(view: SessionView, why: Evidence) -> Measured | Absent:
    """Calls that change files outside the scope / calls that change files. In scope is what lies in a folder that a
    human turn names or the first response with a change touched, and tests next to it."""
    changed = view.changed_files
    actions = [
        (call, paths)
        for call, class_ in zip(view.calls, view.classes, strict=True)
        if class_ in ("edit", "shell_write")
        and (paths := changed.get(call.seq) or ({call.path} if call.path and view.in_repo(call.path) else None))
    ]
    if not actions:
        return Absent("not_applicable", "no_edit")
    began = next((call.turn for call, _ in actions if call.seq in changed), None)
    folders = {
        p.rpartition("/")[0] for call, paths in actions if call.turn == began and call.seq in changed for p in paths
    }
    far = [(call, paths) for call, paths in actions if any(_scope_folder(p, folders) not in folders for p in paths)]
    named = view.mentions if far else Mentions(())
    outside = [
        call for call, paths in far if not all(_scope_folder(p, folders) in folders or named.place(p) for p in paths)
    ]
    if len(outside) == len(actions):
        # What covers nothing at all is no scope: nobody could tell drift from a request that names no place.
        return Absent("not_computable", "no_reference")
    why.support(outside, "outside:")
    why.denominator([call for call, _ in actions])
    why.rule(
        "folders named by a turn, or changed by the first response that changed any, and tests in them, are in scope"
    )
    return ratio(len(outside), len(actions), method="fallback", confidence="low")


def _scope_folder(path: str, folders: set[str]) -> str:
    """The folder a file counts to: tests in a folder of their own count to the one that holds it, when that is in."""
    folder = path.rpartition("/")[0]
    above, _, name = folder.rpartition("/")
    return above if name in _TEST_FOLDERS and folder not in folders else folder
