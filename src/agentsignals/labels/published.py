"""Labels that others published beside the messages they are of, read as labels of the sessions in a store.

The columns are those of agent-traces's data set: session_id, turn (counted from 1), TASK_label, TASK_reason, and the
message itself (content_text), which tells whether their turn is ours.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentsignals.errors import SourceError
from agentsignals.model import Label
from agentsignals.stats.sentiment_counts import TASK, label
from agentsignals.store import Store
from agentsignals.store import label_files as labels
from agentsignals.store.label_files import LabelRow
from agentsignals.store.query import rows as rows_of

_NEEDED = ("session_id", "turn")
_TEXT = "content_text"


class PublishedRow(Struct, frozen=True, gc=False):
    """A label as published. `turn` is counted from 0, as everywhere here."""

    session_id: str
    turn: int
    value: str
    reason: str | None = None
    text: str | None = None
    """The message it is of; None when it was not published with it."""


class Published(Struct):
    """The labels of a file or folder."""

    rows: list[PublishedRow] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows that are no label, by reason: `no_session`, `no_turn`, `no_label`, `repeated`."""


class Taken(Struct, kw_only=True):
    """What became of published labels in a store."""

    labels: int = 0
    sessions: int = 0
    """Sessions of the store that have one now."""
    moved: int = 0
    """Labels whose message is another turn here: found by its text, which only one turn of the session has."""
    unmatched_sessions: int = 0
    unmatched_labels: int = 0
    """Labels of sessions that the store does not hold."""
    skipped: dict[str, int] = field(default_factory=dict)
    """The other labels that were not taken, by reason: those of `Published`, `no_such_turn`, `other_text`."""


def read_published(path: Path | str, task: str = TASK) -> Published:
    """The labels in a Parquet file, or in all Parquet files of a folder, in order of name.

    Of two labels of one message the first counts. SourceError when there is no such file, when it can't be read, or
    when it lacks a column.
    """
    published = Published()
    skipped: Counter[str] = Counter()
    seen: set[tuple[str, int]] = set()
    for row in _rows(Path(path), task):
        gold_row = _row(row, task)
        if isinstance(gold_row, str):
            skipped[gold_row] += 1
        elif (gold_row.session_id, gold_row.turn) in seen:
            skipped["repeated"] += 1
        else:
            seen.add((gold_row.session_id, gold_row.turn))
            published.rows.append(gold_row)
    published.skipped = dict(skipped)
    return published


def _row(row: dict[str, Any], task: str) -> PublishedRow | str:
    """The label of a row, or why it is none."""
    session_id, turn, wording = row["session_id"], row["turn"], _words(row[f"{task}_label"])
    if not isinstance(session_id, str) or not session_id:
        return "no_session"
    if isinstance(turn, float) and turn.is_integer():
        turn = int(turn)
    if type(turn) is not int or turn < 1:
        return "no_turn"
    value = label(wording) if task == TASK else wording
    if not value:
        return "no_label"
    return PublishedRow(session_id, turn - 1, value, _words(row.get(f"{task}_reason")), _words(row.get(_TEXT)))


def _words(cell: object) -> str | None:
    return cell if isinstance(cell, str) else None


def _rows(path: Path, task: str) -> Iterator[dict[str, Any]]:
    import pyarrow as pa  # noqa: PLC0415  (only who reads published labels pays for it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    needed = (*_NEEDED, f"{task}_label")
    if not files:
        raise SourceError(f"There is no Parquet file in {path}.", "Name the file, or the folder that holds it.")
    for file in files:
        try:
            with pq.ParquetFile(file) as opened:
                names = opened.schema_arrow.names
                missing = [name for name in needed if name not in names]
                if missing:
                    raise SourceError(
                        f"{file} has no column {', '.join(missing)}.", f"Labels have {', '.join(needed)}."
                    )
                wanted = [n for n in (*needed, f"{task}_reason", _TEXT) if n in names]
                for batch in opened.iter_batches(columns=wanted):
                    yield from batch.to_pylist()
        except (OSError, pa.ArrowException) as problem:
            raise SourceError(f"{file} can't be read: {problem}.", "Labels come as Parquet.") from problem


def take(  # noqa: PLR0913  (what a label is made of)
    store: Store,
    path: Path | str,
    labeller: str,
    task: str = TASK,
    *,
    model: str | None = None,
    created_at: int | None = None,
) -> Taken:
    """Writes published labels into the store as that labeller's labels of the task, in place of any there were.

    Sessions are matched by id, messages by their turn and, where the message was published, by its text. `created_at`:
    microseconds since 1970 UTC, of the labels; now when it is not known. The store's values are computed anew by
    the next `measure`.
    """
    published = read_published(path, task)
    at = created_at if created_at is not None else time.time_ns() // 1000
    turns = turns_of(store, {row.session_id for row in published.rows})
    taken = Taken()
    skipped = Counter(published.skipped)
    unmatched: set[str] = set()
    rows: dict[tuple[str, int], LabelRow] = {}
    for row in published.rows:
        if row.session_id not in turns:
            unmatched.add(row.session_id)
            taken.unmatched_labels += 1
            continue
        turn = turn_of(row, turns[row.session_id])
        if isinstance(turn, str) or (row.session_id, turn) in rows:
            skipped[turn if isinstance(turn, str) else "repeated"] += 1
            continue
        taken.moved += turn != row.turn
        made = Label(
            task=task, labeller=labeller, turn=turn, value=row.value, reason=row.reason, model=model, created_at=at
        )
        rows[row.session_id, turn] = LabelRow(row.session_id, made)
    labels.write(store.folder, task, labeller, [rows[key] for key in sorted(rows)])
    taken.labels, taken.sessions = len(rows), len({session_id for session_id, _ in rows})
    taken.unmatched_sessions = len(unmatched)
    taken.skipped = dict(skipped)
    return taken


def turns_of(store: Store, wanted: set[str]) -> dict[str, list[str]]:
    """The text of each turn of these sessions, as far as the store holds them."""
    by_session: dict[str, list[str]] = {name: [] for name in wanted & store.manifest.sessions.keys()}
    for session_id, text in rows_of(store, "SELECT session_id, text FROM turns ORDER BY session_id, turn")[1]:
        if session_id in by_session:
            by_session[session_id].append(_plain(text))
    return by_session


def turn_of(row: PublishedRow, texts: list[str]) -> int | str:
    """Our number of the turn a label is of, or why it is of none."""
    text = _plain(row.text) if row.text is not None else None
    if row.turn < len(texts) and text in (None, texts[row.turn]):
        return row.turn
    if text is None:
        return "no_such_turn"
    places = [n for n, candidate in enumerate(texts) if candidate == text]
    return places[0] if len(places) == 1 else "other_text" if row.turn < len(texts) else "no_such_turn"


def _plain(text: str | None) -> str:
    """A message as it is compared: how blanks were kept says nothing of whose it is."""
    return " ".join((text or "").split())
