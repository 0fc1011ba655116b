"""Tiny attempts in a line: `ran(call("Edit", path="a.py"), patch=[patched("a.py")])`, `unseen(reward=1.0)`.

They are put together as ingest does it, so what the harness says are events that values can cite.
"""

from __future__ import annotations

from typing import Any

from agentsignals.ingest.attempts import attach_attempts
from agentsignals.model import Attempt, PatchedFile, Statement, Verification
from agentsignals.views.session import SessionView
from tests.build import Part, session, user

ROOT = "/runs/task-1"


def ran(*parts: Part, cwd: str | None = "/testbed", **facts: Any) -> SessionView:
    """An attempt whose conversation was collected. `facts` are fields of Attempt."""
    made = session(user("fix it"), *parts, cwd=cwd)
    found = attach_attempts([made], [_part(facts, session_artifact=made.artifact_id)], {})
    return SessionView(found[0])


def unseen(**facts: Any) -> SessionView:
    """An attempt of which only the harness tells."""
    return SessionView(attach_attempts([], [_part(facts)], {})[0])


def trial(*attempts: dict[str, Any]) -> list[SessionView]:
    """The attempts of one trial, in order."""
    parts = [_part({"attempt_index": n, **facts}) for n, facts in enumerate(attempts)]
    return [SessionView(s) for s in attach_attempts([], parts, {})]


def _part(facts: dict[str, Any], **more: Any) -> Attempt:
    """A part that says on a line of its own each thing that it tells."""
    names = [
        *(n for n in facts if n not in ("knobs", "kinds", "statements")),
        *(f"knobs.{k}" for k in facts.get("knobs", ())),
    ]
    said = [
        Statement(text=f"{name} is said here", artifact_id="harness-file", line=n + 1, fields=[name])
        for n, name in enumerate(names)
    ]
    return Attempt(
        root=ROOT, **{"task_id": "task-1", **facts, "statements": said + facts.get("statements", [])}, **more
    )


def patched(path: str, op: Any = "modify", added: int = 1, removed: int = 1, **more: Any) -> PatchedFile:
    """A file in a patch."""
    return PatchedFile(path=path, op=op, added=added, removed=removed, hunks=[], **more)


def graded(
    fixed: int = 0, unfixed: int = 0, kept: int = 0, broken: int = 0, left: int = 0, **more: Any
) -> Verification:
    """A verification with so many tests of each kind."""
    numbers = {"fixed": fixed, "unfixed": unfixed, "kept": kept, "broken": broken, "still_failing": left}
    lists: dict[str, Any] = {
        name: [f"test_{name}_{k}" for k in range(n)] for name, n in numbers.items() if n is not None
    }
    return Verification(**{"patch_applies": True, **lists, **more})
