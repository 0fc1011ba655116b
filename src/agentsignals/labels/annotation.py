"""People labelling: one thing after the other, what was said kept at once, undone on request, gone on with later.

Nobody sees what others said, but where disagreements are settled: then the rows carry it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from agentsignals.labels.agree import Place, places_of
from agentsignals.labels.comparison import MOST_SCORE, Both, classes, fitting
from agentsignals.labels.gold import GoldRow
from agentsignals.labels.human_labels import give, rows_of, standing, take_back
from agentsignals.labels.task import Task
from agentsignals.redaction import Redactor
from agentsignals.store import Store
from agentsignals.store.pseudonym_key import pseudonym_key

NEAR = 20
"""Two scores of at most so much between them are settled by their mean (design/attribution.md#gold-by-two-raters)."""
UNDO, SKIP, CONTEXT, CODEBOOK, QUIT = "u", "s", "c", "?", "q"
_KEYS = f"{UNDO} undo, {SKIP} skip, {CONTEXT} context, {CODEBOOK} codebook, {QUIT} quit"


class Person(Protocol):
    """Who labels."""

    def show(self, text: str) -> None: ...

    def answer(self, asked: str) -> str | None:
        """What was answered; None when nothing more will be."""


class Annotated(Struct, kw_only=True):
    """What came of a sitting."""

    labeller: str
    labelled: int = 0
    before: int = 0
    """Those that had this person's label already."""
    left: int = 0
    """Those still without one."""
    agreed: int = 0
    """Of a file to settle: labels that both gave."""
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
    _sit(store, task, labeller, _whole(store, task, todo), person, transcript, summary)
    return summary


def _whole(store: Store, task: Task, todo: list[tuple[Place, GoldRow]]) -> list[tuple[Place, GoldRow]]:
    """The rows with texts out of the store: whole and unmasked, whatever their file has of them."""
    if task.level != "turn":
        return todo
    chosen = {place: ("", 1.0) for place, _ in todo}
    fresh: dict[Place, GoldRow] = {(r.session_id, (r.turn or 0) - 1): r for r in rows_of(store, task, chosen)}
    for place, row in todo:
        row.text, row.before = fresh[place].text, fresh[place].before
    return todo


def _sit(  # noqa: PLR0913  (as above)
    store: Store,
    task: Task,
    labeller: str,
    todo: list[tuple[Place, GoldRow]],
    person: Person,
    transcript: Callable[[str], str],
    summary: Annotated,
) -> None:
    at, answered = 0, list[int]()
    while at < len(todo):
        place, row = todo[at]
        person.show(f"\n--- {at + 1} of {len(todo)}")
        person.show(_shown(task, row, transcript))
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


def _asked(task: Task, row: GoldRow, person: Person) -> str | None:
    """A label, UNDO or SKIP; None to stop."""
    names = classes(task)
    keys = {str(n): name for n, name in enumerate(names, 1)} if task.values else {}
    choices = ", ".join(f"{key} {name}" for key, name in keys.items()) or _range(task)
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


def _range(task: Task) -> str:
    names = classes(task)
    return f"{names[0]} to {names[-1]}" if names else f"a number, 0 to {MOST_SCORE}"


def _shown(task: Task, row: GoldRow, transcript: Callable[[str], str]) -> str:
    """What a model is shown, too; and what others said, where that is to be settled."""
    shown = row.text or "" if task.level == "turn" else transcript(row.session_id)
    if task.shows == "exchange" and row.before:
        shown = f"{row.before}\n\nThe message to judge:\n{shown}"
    labels = "".join(f"\n{name} said {label}" for name, label in row.by_labeller.items())
    return shown + (f"\n{labels}" if labels else "")


def to_settle(task: Task, a: str, b: str, both: list[Both]) -> list[GoldRow]:
    """What two said of the same things, as rows for a third sitting: what they agree on has its label, scores that are
    near have their mean, and the others have what each said.
    """
    rows, redactor = [], Redactor(pseudonym_key())
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
