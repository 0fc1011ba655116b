"""Which models a session used, one after the other."""

from __future__ import annotations

from agentsignals.catalog import Row, signal
from agentsignals.model import Absent, Event, Step
from agentsignals.model.times import to_iso
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


class ModelChange(Row):
    """A change of model. `explicit`: the trace has an entry for it, and does not only show another model's answer."""

    from_model: str | None
    to_model: str
    turn_index: int | None
    timestamp: str | None
    explicit: bool


@signal(
    "user.model_changes[]",
    type="list[obj]",
    unit="events",
    origin="Agent Signals",
    priority="P1",
    pitfalls="What a program's small helper model says is no change; only the main thread's messages are looked at.",
    why="A session whose model changed on the way belongs to no model's statistics.",
)
def model_changes(view: SessionView, why: Evidence) -> list[ModelChange] | Absent:
    """Each change of the model that answers, by an entry of its own or by the next message; from_model is null before
    the first message."""
    entries = view.by_kind.get("model_change", [])
    steps = [s for s in view.steps if _is_model(s.model)]
    if not steps and not entries and view.steps:
        return Absent("missing_field", "model")
    why.denominator(steps)
    if not entries and len({s.model for s in steps}) < 2:
        return []
    changes: list[ModelChange] = []
    changing: list[Event | Step] = []
    answering: str | None = None
    rows: list[Event | Step] = [*entries, *steps]
    rows.sort(key=_place)
    for row in rows:
        if isinstance(row, Step):
            if row.model != answering:
                if answering is not None and row.model is not None:
                    changing.append(row)
                    changes.append(ModelChange(answering, row.model, row.turn, to_iso(row.timestamp), False))
                answering = row.model
            continue
        chosen = (row.text or "").rpartition(" -> ")[2]
        if _is_model(chosen) and chosen != answering:
            changing.append(row)
            changes.append(ModelChange(answering, chosen, row.turn, to_iso(row.timestamp), not _is_shown(row, view)))
            answering = chosen
    why.support(changing)
    return changes


def _is_model(name: str | None) -> bool:
    """Messages that a program makes up in the model's place carry a name like `<synthetic>`."""
    return bool(name) and not str(name).startswith("<")


def _is_shown(entry: Event, view: SessionView) -> bool:
    """Whether the change stands on the line of a message of the new model, and has no entry of its own."""
    events = view.session.events
    following = events[entry.seq + 1] if entry.seq + 1 < len(events) else None
    return entry.step is not None or (
        following is not None and following.step is not None and following.line == entry.line
    )


def _place(row: Event | Step) -> tuple[int, bool]:
    return row.seq, isinstance(row, Step)
