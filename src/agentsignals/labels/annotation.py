"""Labels by people: samples to label, a sitting at the terminal, and what to label next."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from agentsignals.errors import UsageError
from agentsignals.labels.agreement import MOST_SCORE, Both, classes, fitting, score
from agentsignals.labels.answers import now
from agentsignals.labels.gold import GoldRow, Key, read
from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS
from agentsignals.labels.matching import Place, Taken, in_order, matched, places_of, said_by
from agentsignals.labels.tasks import Task
from agentsignals.labels.units import SPOKEN, Mask, Selection, Unit, before, plain
from agentsignals.model import Label
from agentsignals.redaction import Redactor
from agentsignals.redaction.values import KnownSecrets
from agentsignals.stats.intervals import SEED
from agentsignals.store import Store, sidecars
from agentsignals.store.secrets import known_secrets, pseudonym_key
from agentsignals.store.sidecars import LabelRow
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
        raise UsageError("--as needs your name.", "For example --as ann: your labels are then stored as human:ann.")
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
        key=in_order,
    )
    labels = said_by(store, task, by).by_place
    strata: dict[str, list[Place]] = {}
    for place in places:
        strata.setdefault(labels[place].value if place in labels else UNLABELLED, []).append(place)
    chance = random.Random(seed)  # noqa: S311  (draws, no secret)
    chosen: dict[Place, tuple[str, float]] = {}
    # Each stratum gets an equal part; larger ones make up for those that are too small.
    left, n_strata = n, 0
    for at, (_, stratum) in enumerate(sorted(strata.items(), key=lambda pair: (len(pair[1]), pair[0]))):
        size = min(len(stratum), left // (len(strata) - at))
        left -= size
        n_strata += bool(size)
        for place in chance.sample(stratum, size):
            # A number, since the name is what the labeller said: who labels is not to know it.
            chosen[place] = f"stratum {n_strata}", len(stratum) / size
    masked = Redactor(pseudonym_key(), known=known_secrets(store)).plain if mask else plain
    rows = rows_of(store, task, chosen, masked)
    chance.shuffle(rows)
    return rows


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
    labelled, taken = matched(store, read(path, task, column))
    give(store, task, labeller, labelled.items())
    return taken


def give(store: Store, task: Task, labeller: str, rows: Iterable[tuple[Place, GoldRow]]) -> None:
    """Adds labels to those that the labeller gave before; of the same thing the new one counts."""
    new: dict[Place, LabelRow] = {}
    for place, row in rows:
        if row.label is not None:
            made = Label(
                task=task.name,
                labeller=labeller,
                turn=place[1],
                value=row.label,
                reason=row.reason,
                prompt_hash=row.prompt_hash,
                created_at=now(),
                number=score(task, row.label),
                detail=UNSURE if row.unsure else None,
            )
            new[place] = LabelRow(place[0], made)
    _change(store, task, labeller, lambda labels: labels | new)


def take_back(store: Store, task: Task, labeller: str, place: Place) -> None:
    _change(store, task, labeller, lambda labels: {at: row for at, row in labels.items() if at != place})


def _change(
    store: Store, task: Task, labeller: str, change: Callable[[dict[Place, LabelRow]], dict[Place, LabelRow]]
) -> None:
    def changed(before: list[LabelRow]) -> list[LabelRow]:
        rows = change(_by_place(before))
        return [rows[place] for place in sorted(rows, key=in_order)]

    sidecars.update_labels(store.folder, task.name, labeller, changed)


def standing(store: Store, task: Task, labeller: str) -> dict[Place, LabelRow]:
    return _by_place(sidecars.labels_of(store.folder, task.name, labeller))


def _by_place(rows: Iterable[LabelRow]) -> dict[Place, LabelRow]:
    return {(row.session_id, row.label.turn): row for row in rows}


# -- A sitting at the terminal

NEAR = 20
"""Two scores of at most so much between them are settled by their mean (design/attribution.md#gold-by-two-raters)."""
UNDO, SKIP, CONTEXT, CODEBOOK, QUIT = "u", "s", "c", "?", "q"
_KEYS = f"{UNDO} undo, {SKIP} skip, {CONTEXT} context, {CODEBOOK} codebook, {QUIT} quit"


class Person(Protocol):
    def show(self, text: str) -> None: ...

    def answer(self, asked: str) -> str | None:
        """Return the answer; None at the end of input."""


class Annotated(Struct, kw_only=True):
    labeller: str
    labelled: int = 0
    before: int = 0
    """Things that had this person's label already."""
    left: int = 0
    agreed: int = 0
    """Labels that both gave, of a file to settle."""
    not_found: dict[str, int] = field(default_factory=dict)
    """Rows of things that the store does not hold, by reason."""


def annotate(  # noqa: PLR0913  (who labels what, and how it is shown)
    store: Store,
    task: Task,
    labeller: str,
    rows: list[GoldRow],
    person: Person,
    transcript: Callable[[str], str],
) -> Annotated:
    """Has a person label rows. Each label is in the store before the next thing is shown. `transcript`: a session as
    text, for tasks about whole sessions.
    """
    summary = Annotated(labeller=labeller)
    todo: list[tuple[Place, GoldRow]] = []
    have = standing(store, task, labeller).keys()
    agreed = []
    for row, place in places_of(store, rows):
        if isinstance(place, str):
            summary.not_found[place] = summary.not_found.get(place, 0) + 1
        elif place in have:
            summary.before += 1
        elif row.label is not None:
            agreed.append((place, row))
        else:
            todo.append((place, row))
    if agreed:
        give(store, task, labeller, agreed)
        summary.agreed = len(agreed)
    if task.level == "turn":
        # Texts out of the store: whole and unmasked, whatever their file has of them.
        chosen = {place: ("", 1.0) for place, _ in todo}
        fresh = {(row.session_id, row.turn): row for row in rows_of(store, task, chosen)}
        for (session_id, turn), row in todo:
            found = fresh[session_id, (turn or 0) + 1]
            row.text, row.before = found.text, found.before
    at, answered = 0, list[int]()
    while at < len(todo):
        place, row = todo[at]
        person.show(f"\n--- {at + 1} of {len(todo)}")
        # What a model is shown, too; and what others said, where that is to be settled.
        shown = row.text or "" if task.level == "turn" else transcript(row.session_id)
        if task.shows == "exchange" and row.before:
            shown = f"{row.before}\n\nThe message to judge:\n{shown}"
        labels = "".join(f"\n{name} said {label}" for name, label in row.by_labeller.items())
        person.show(shown + (f"\n{labels}" if labels else ""))
        answer = _asked(task, row, person)
        if answer is None:
            break
        if answer == UNDO:
            if answered:
                at = answered.pop()
                take_back(store, task, labeller, todo[at][0])
            continue
        if answer != SKIP:
            row = GoldRow(session_id=row.session_id, label=answer, prompt_hash=task.prompt_hash)
            give(store, task, labeller, [(place, row)])
            answered.append(at)
        at += 1
    summary.labelled, summary.left = len(answered), len(todo) - len(answered)
    return summary


def _asked(task: Task, row: GoldRow, person: Person) -> str | None:
    """A label, UNDO or SKIP; None to stop."""
    names = classes(task)
    keys = {str(n): name for n, name in enumerate(names, 1)} if task.values else {}
    numbers = f"{names[0]} to {names[-1]}" if names else f"a number, 0 to {MOST_SCORE}"
    choices = ", ".join(f"{key} {name}" for key, name in keys.items()) or numbers
    while True:
        answer = person.answer(f"{choices} ({_KEYS}) > ")
        answer = answer.strip() if answer is not None else QUIT
        if answer.casefold() == QUIT:
            return None
        if answer.casefold() in (UNDO, SKIP):
            return answer.casefold()
        if answer.casefold() == CONTEXT:
            person.show(row.before or "(nothing before it)")
        elif answer == CODEBOOK:
            person.show(task.codebook)
        elif label := fitting(task, keys.get(answer, answer)):
            return label
        elif answer:
            person.show(f"{answer[:40]} is none of them.")


def to_settle(task: Task, a: str, b: str, both: list[Both], known: KnownSecrets | None = None) -> list[GoldRow]:
    """Turn two labellers' labels into rows for a third sitting: what they agree on has its label, scores that are
    near have their mean, and the others have what each said.
    """
    rows, redactor = [], Redactor(pseudonym_key(), known=known or KnownSecrets())
    for pair in both:
        row = GoldRow(session_id=pair.session_id, turn=None if pair.turn is None else pair.turn + 1, task=task.name)
        row.text, row.prompt_hash = redactor.plain(pair.text) if pair.text else None, task.prompt_hash
        near = not task.values and not classes(task) and None not in (pair.score_a, pair.score_b)
        if pair.a == pair.b:
            row.label = pair.a
        elif near and abs((pair.score_a or 0) - (pair.score_b or 0)) <= NEAR:
            row.label = f"{((pair.score_a or 0) + (pair.score_b or 0)) / 2:g}"
        else:
            row.by_labeller = {a: pair.a, b: pair.b}
        rows.append(row)
    return rows


# -- What to label next. It is no random sample: `sample` draws one.

MOST = 5_000
"""Things of a plan: more than anybody labels at a sitting."""
_TURNS = f"""
SELECT t.session_id, t.turn, s.repo FROM turns t JOIN sessions s USING (session_id)
WHERE s.context <> 'eval' AND t.kind IN ({", ".join(f"'{kind}'" for kind in sorted(SPOKEN))})
  AND trim(t.text) <> '' AND t.turn + 1 >= $least
"""  # noqa: S608  (kinds of ours)
_SESSIONS = """
SELECT s.session_id, NULL::BIGINT AS turn, s.repo FROM sessions s
WHERE s.context <> 'eval' AND s.n_prompts >= $least
"""
_PLAN = """
SELECT p.session_id, p.turn FROM ({things}) p LEFT JOIN (
  SELECT session_id, turn, min(value) AS class, count(DISTINCT value) > 1
    OR bool_or(detail = $unsure) IS TRUE AS contested, bool_or(starts_with(labeller, 'human:')) AS labelled,
    min(TRY_CAST(regexp_extract(detail, '"probability": ?([0-9.]+)', 1) AS DOUBLE)) AS sureness
  FROM labels WHERE task = $task AND seq IS NULL GROUP BY 1, 2
) l ON l.session_id = p.session_id AND l.turn IS NOT DISTINCT FROM p.turn
ORDER BY coalesce(contested, false) DESC,
  row_number() OVER (
    PARTITION BY coalesce(contested, false), class, repo ORDER BY sureness NULLS LAST, {drawn}),
  count(*) FILTER (labelled) OVER (PARTITION BY repo), {drawn} LIMIT $most
"""
_DRAWN = "md5(concat_ws('/', p.session_id, p.turn))"
"""An order without meaning that is the same in every run."""


def of_store(rows: Callable[[str, dict[str, Any]], list[dict[str, Any]]], task: Task) -> list[Place]:
    """Things of people's sessions, in the order to label them. Each class by whatever label there is, of each
    repository, comes once before any comes twice, so that rare classes and small projects are seen early."""
    asked = _PLAN.format(things=_TURNS if task.level == "turn" else _SESSIONS, drawn=_DRAWN)
    return [
        (row["session_id"], row["turn"])
        for row in rows(asked, {"task": task.name, "least": task.min_turns, "most": MOST, "unsure": UNSURE})
    ]


def asks(rows: Mapping[Key, GoldRow]) -> bool:
    """Tell whether a file asks about its rows (`--export-gold`, `agree --settle`), or only keeps labels."""
    return any(row.label is None or row.weight is not None or row.by_labeller for row in rows.values())


def of_file(store: Store, rows: Mapping[Key, GoldRow]) -> dict[Place, Key]:
    """The things that a file asks about, in its order, by where they are in the store."""
    placed = places_of(store, list(rows.values()))
    return {place: (row.session_id, row.turn) for row, place in placed if not isinstance(place, str)}
