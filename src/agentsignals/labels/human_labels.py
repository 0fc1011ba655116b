"""What people label: a seeded sample of a store, stratified by what a labeller said; and their labels in the store."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from agentsignals.errors import UsageError
from agentsignals.labels.agree import Place, places_of, said_by
from agentsignals.labels.answers import now
from agentsignals.labels.comparison import score
from agentsignals.labels.gold import GoldRow, read
from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS
from agentsignals.labels.published import Taken
from agentsignals.labels.selection import Selection
from agentsignals.labels.task import Task
from agentsignals.labels.transcript import Mask
from agentsignals.labels.units import Unit, before, plain
from agentsignals.model import Label
from agentsignals.redaction import Redactor
from agentsignals.stats.estimates import SEED
from agentsignals.store import Store
from agentsignals.store import label_files as labels
from agentsignals.store.label_files import LabelRow
from agentsignals.store.pseudonym_key import pseudonym_key
from agentsignals.views.session import SessionView

PREFIX = "human:"
UNLABELLED = "unlabelled"
UNSURE = '{"unsure": true}'
"""The detail of a label whose annotator was."""
SIZE = 100
"""Rows of a sample: what SWE-chat's authors labelled twice was 90 (design/attribution.md#gold-by-two-raters)."""


def name_of(person: str) -> str:
    """A person's name as a labeller. UsageError when it is none."""
    bare = person.removeprefix(PREFIX).strip()
    if not bare or not bare.isprintable():
        raise UsageError("A person needs a name.", "For example --as ann; the labels are human:ann's.")
    return PREFIX + bare


def sample(  # noqa: PLR0913  (each a choice of the person's)
    store: Store, task: Task, n: int, *, where: str = "true", by: str = "rules", seed: int = SEED, mask: bool = True
) -> list[GoldRow]:
    """`n` things to label, in an order without meaning. Strata are the labels that `by` gave; each gets the same
    number, as far as it has so many, so that rare classes are seen at all. `weight` says how many a row stands for.
    """
    selection = Selection(where)
    places = sorted(
        ((u.session_id, u.turn) for u in selection.units(store, task, DEFAULT_WINDOW_TOKENS) if isinstance(u, Unit)),
        key=lambda place: (place[0], place[1] or 0),
    )
    labels = said_by(store, task, by).by_place
    strata: dict[str, list[Place]] = {}
    for place in places:
        strata.setdefault(labels[place].value if place in labels else UNLABELLED, []).append(place)
    chance = random.Random(seed)  # noqa: S311  (draws, no secret)
    chosen: dict[Place, tuple[str, float]] = {}
    for at, (name, size) in enumerate(_sizes({name: len(stratum) for name, stratum in strata.items()}, n).items()):
        for place in chance.sample(strata[name], size):
            # A number, since the name is what the labeller said: who labels is not to know it.
            chosen[place] = f"stratum {at + 1}", len(strata[name]) / size
    rows = rows_of(store, task, chosen, Redactor(pseudonym_key()).plain if mask else plain)
    chance.shuffle(rows)
    return rows


def _sizes(held: dict[str, int], n: int) -> dict[str, int]:
    """How many of each stratum: the same of all; what a small one lacks, the others give."""
    sizes: dict[str, int] = {}
    left = n
    for at, (name, size) in enumerate(sorted(held.items(), key=lambda pair: (pair[1], pair[0]))):
        sizes[name] = min(size, left // (len(held) - at))
        left -= sizes[name]
    return {name: size for name, size in sizes.items() if size}


def rows_of(store: Store, task: Task, chosen: dict[Place, tuple[str, float]], mask: Mask = plain) -> list[GoldRow]:
    """Things of a store, each with its stratum and weight, as rows without a label; messages with their text and what
    they answer to."""
    rows = []
    for session in store.read({session_id for session_id, _ in chosen}):
        view = SessionView(session)
        for turn in [*view.turns, None] if task.level == "turn" else [None]:
            at = None if turn is None else turn.turn
            if (session.session_id, at) not in chosen:
                continue
            stratum, weight = chosen[session.session_id, at]
            row = GoldRow(session_id=session.session_id, task=task.name, stratum=stratum, weight=weight)
            row.prompt_hash = task.prompt_hash
            if turn is not None:
                row.turn, row.text, row.before = turn.turn + 1, mask(turn.text), before(view, turn, mask) or None
            rows.append(row)
    return sorted(rows, key=lambda row: (row.session_id, row.turn or 0))


def take(store: Store, path: Path | str, labeller: str, task: Task, column: str | None = None) -> Taken:
    """Writes the labels of a gold file into the store as that labeller's. Labels it gave elsewhere stay: they are
    somebody's work."""
    gold = read(path, task, column)
    taken = Taken()
    skipped = Counter(gold.skipped)
    labelled: dict[Place, GoldRow] = {}
    unmatched: set[str] = set()
    for row, place in places_of(store, gold.rows):
        if place == "session_not_in_store":
            unmatched.add(row.session_id)
            taken.unmatched_labels += 1
        elif isinstance(place, str) or place in labelled:
            skipped[place if isinstance(place, str) else "repeated"] += 1
        else:
            labelled[place] = row
            taken.moved += place[1] is not None and place[1] + 1 != row.turn
    give(store, task, labeller, labelled.items())
    taken.labels, taken.sessions = len(labelled), len({session_id for session_id, _ in labelled})
    taken.unmatched_sessions, taken.skipped = len(unmatched), dict(skipped)
    return taken


def give(store: Store, task: Task, labeller: str, rows: Iterable[tuple[Place, GoldRow]]) -> None:
    """Adds labels to those that the labeller gave before; of the same thing the new one counts."""
    new: dict[Place, LabelRow] = {}
    for (session_id, turn), row in rows:
        if row.label is not None:
            made = Label(
                task=task.name,
                labeller=labeller,
                turn=turn,
                value=row.label,
                reason=row.reason,
                prompt_hash=row.prompt_hash,
            )
            made.created_at, made.number = now(), score(task, row.label)
            made.detail = UNSURE if row.unsure else None
            new[session_id, turn] = LabelRow(session_id, made)
    labels.update(store.folder, task.name, labeller, lambda before: _ordered(_by_place(before) | new))


def take_back(store: Store, task: Task, labeller: str, place: Place) -> None:
    """Removes the label of a place."""
    labels.update(
        store.folder,
        task.name,
        labeller,
        lambda before: _ordered({at: row for at, row in _by_place(before).items() if at != place}),
    )


def standing(store: Store, task: Task, labeller: str) -> dict[Place, LabelRow]:
    """What the labeller gave so far."""
    return _by_place(labels.of_task(store.folder, task.name, labeller))


def _by_place(rows: Iterable[LabelRow]) -> dict[Place, LabelRow]:
    return {(row.session_id, row.label.turn): row for row in rows}


def _ordered(rows: dict[Place, LabelRow]) -> list[LabelRow]:
    return [rows[place] for place in sorted(rows, key=lambda p: (p[0], -1 if p[1] is None else p[1]))]
