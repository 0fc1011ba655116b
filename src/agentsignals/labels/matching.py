"""Labels that others published beside the messages they are of, read as labels of the sessions in a store.

The columns are those of agent-traces's data set: session_id, turn (counted from 1), TASK_label, TASK_reason, and the
message itself (content_text), which tells whether their turn is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct, field

from agentsignals.errors import SourceError, StoreError
from agentsignals.labels.agreement import (
    Both,
    Comparison,
    Several,
    alpha_of,
    classes,
    compare,
    fitting,
    ordered,
    weighted_back,
)
from agentsignals.labels.answers import Outcome, now
from agentsignals.labels.gold import Gold, GoldRow
from agentsignals.labels.labellers import LABELLERS, Labeller, labeller
from agentsignals.labels.prompting import Asker, Question
from agentsignals.labels.tasks import Task, Unfit, Verdict
from agentsignals.labels.units import plain, unit_of_text
from agentsignals.model import Absent, Label
from agentsignals.redaction import Redactor, redacted
from agentsignals.redaction.values import without_pseudonyms
from agentsignals.stats.agent_traces import TASK, label
from agentsignals.stats.intervals import FEWEST_CLUSTERS
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from agentsignals.store.secrets import known_secrets, pseudonym_key
from agentsignals.store.sidecars import LabelRow
from agentsignals.words.classifier import classifier_of

_NEEDED = ("session_id", "turn")
_TEXT = "content_text"


class Taken(Struct, kw_only=True):
    """Counts of published labels that a store took."""

    labels: int = 0
    sessions: int = 0
    """Sessions of the store that have one now."""
    moved: int = 0
    """Labels whose message is another turn here: found by its text, which only one turn of the session has."""
    unmatched_sessions: int = 0
    unmatched_labels: int = 0
    """Labels of sessions that the store does not hold."""
    skipped: dict[str, int] = field(default_factory=dict)
    """The other labels that were not taken, by reason: those of `Gold`, `no_such_turn`, `other_text`."""


def read_published(path: Path | str, task: str = TASK) -> Gold:
    """Return the labels in a Parquet file, or in all Parquet files of a folder, in order of name.

    Of two labels of one message the first counts. SourceError when there is no such file, when it can't be read, or
    when it lacks a column.
    """
    import pyarrow as pa  # noqa: PLC0415  (only who reads published labels pays for it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    folder = Path(path)
    files = sorted(folder.rglob("*.parquet")) if folder.is_dir() else [folder]
    needed = (*_NEEDED, f"{task}_label")
    if not files:
        raise SourceError(f"There is no Parquet file in {folder}.", "Name the file, or the folder that holds it.")
    labels: dict[tuple[str, int | None], GoldRow] = {}
    skipped: Counter[str] = Counter()
    for file in files:
        try:
            with pq.ParquetFile(file) as opened:
                names = opened.schema_arrow.names
                missing = [name for name in needed if name not in names]
                if missing:
                    raise SourceError(
                        f"{file} has no column {', '.join(missing)}.", f"A file of labels needs {', '.join(needed)}."
                    )
                wanted = [n for n in (*needed, f"{task}_reason", _TEXT) if n in names]
                for batch in opened.iter_batches(columns=wanted):
                    for record in batch.to_pylist():
                        row = _published(record, task)
                        if isinstance(row, str):
                            skipped[row] += 1
                        elif labels.setdefault((row.session_id, row.turn), row) is not row:
                            skipped["repeated"] += 1
        except (OSError, pa.ArrowException) as problem:
            raise SourceError(
                f"{file} can't be read: {problem}.", "Name a readable Parquet file of labels."
            ) from problem
    return Gold(list(labels.values()), dict(skipped))


def _published(row: dict[str, Any], task: str) -> GoldRow | str:
    """Return the label of a row, or why it is none."""
    session_id, turn = row["session_id"], row["turn"]
    if not isinstance(session_id, str) or not session_id:
        return "no_session"
    if isinstance(turn, float) and turn.is_integer():
        turn = int(turn)
    if type(turn) is not int or turn < 1:
        return "no_turn"
    columns = (f"{task}_label", f"{task}_reason", _TEXT)
    wording, reason, text = (cell if isinstance(cell := row.get(name), str) else None for name in columns)
    value = label(wording) if task == TASK else wording
    if not value:
        return "no_label"
    return GoldRow(session_id=session_id, turn=turn, task=task, label=value, reason=reason, text=text)


def take(store: Store, path: Path | str, labeller: str, task: str = TASK) -> Taken:
    """Writes published labels into the store as that labeller's labels of the task, in place of any there were.

    Sessions are matched by id, messages by their turn and, where the message was published, by its text. The store's
    values are computed anew by the next `measure`.
    """
    found, taken = matched(store, read_published(path, task))
    made: dict[str, Any] = {"task": task, "labeller": labeller, "created_at": now()}
    labels = [
        LabelRow(session_id, Label(turn=turn, value=row.label or "", reason=row.reason, **made))
        for (session_id, turn), row in sorted(found.items(), key=lambda item: in_order(item[0]))
    ]
    sidecars.write_labels(store.folder, task, labeller, labels)
    return taken


def matched(store: Store, gold: Gold) -> tuple[dict[Place, GoldRow], Taken]:
    """Return the rows by their places in the store; the first counts of several in one place. And the counts."""
    found: dict[Place, GoldRow] = {}
    taken = Taken()
    skipped, unmatched = Counter(gold.skipped), set[str]()
    for row, place in places_of(store, gold.rows):
        if place == "session_not_in_store":
            unmatched.add(row.session_id)
            taken.unmatched_labels += 1
        elif isinstance(place, str) or place in found:
            skipped[place if isinstance(place, str) else "repeated"] += 1
        else:
            found[place] = row
            taken.moved += place[1] is not None and place[1] + 1 != row.turn
    taken.labels, taken.sessions = len(found), len({session_id for session_id, _ in found})
    taken.unmatched_sessions, taken.skipped = len(unmatched), dict(skipped)
    return found, taken


def turns_of(store: Store, wanted: set[str]) -> dict[str, list[str]]:
    """The text of each turn of these sessions, as far as the store holds them."""
    by_session: dict[str, list[str]] = {name: [] for name in wanted & store.manifest.sessions.keys()}
    for session_id, text in rows(store, "SELECT session_id, text FROM turns ORDER BY session_id, turn")[1]:
        if session_id in by_session:
            by_session[session_id].append(_plain(text))
    return by_session


def turn_of(turn: int, said: str | None, texts: list[str]) -> int | str:
    """Return our number of the turn with a text, or why it is none. `turn`: its number there, from 0."""
    text = _plain(said) if said is not None else None
    if turn < len(texts) and text in (None, texts[turn]):
        return turn
    if text is None:
        return "no_such_turn"
    places = [n for n, candidate in enumerate(texts) if candidate == text]
    return places[0] if len(places) == 1 else "other_text" if turn < len(texts) else "no_such_turn"


def _plain(text: str | None) -> str:
    """A message as it is compared: how blanks were kept says nothing of whose it is."""
    return " ".join((text or "").split())


# -- Two labellers' labels of the same things, from the store or from a gold file

GOLD = "gold"
_LABELS = """
SELECT session_id, turn, value, number, prompt_hash, coalesce(served_model, model) FROM labels
WHERE task = ? AND labeller = ? AND seq IS NULL ORDER BY created_at NULLS FIRST
"""
_TEXTS = """
SELECT session_id, turn, text FROM turns JOIN (SELECT DISTINCT session_id, turn FROM labels
WHERE task = ? AND labeller = ?) USING (session_id, turn)
"""
SEEN = "seen_in_training"
"""Why a classifier's label is not compared."""
Place = tuple[str, int | None]
"""Session and turn, from 0; None for the session."""


def in_order(place: Place) -> tuple[str, int]:
    """Sort key of places: by session, the session itself before its turns."""
    return place[0], -1 if place[1] is None else place[1]


class ComparedLabel(NamedTuple):
    value: str
    number: float | None = None
    version: str | None = None
    """Version of the prompt, or of the rules."""
    model: str | None = None
    """The model a server named in its answer, else the requested one."""


class Labels(NamedTuple):
    """A labeller's labels by what they are of; what is none of them, by reason."""

    by_place: dict[Place, ComparedLabel]
    left_out: dict[str, int]
    unknown: Mapping[str, int] = MappingProxyType({})
    """Values that are none of the task's classes, and how often."""


def between(store: Store, task: Task, a: str, b: str) -> Comparison:
    """Two labellers of a store, on what both labelled: people's sessions, not eval runs."""
    return _compared(task, (a, said_by(store, task, a)), (b, said_by(store, task, b)), _texts(store, task, a))


def among(store: Store, task: Task, names: Sequence[str], only: Container[str] | None = None) -> Several:
    """Three labellers or more: all together, and each two. `only`: on these sessions."""
    by_labeller = {name: said_by(store, task, name) for name in names}
    if only is not None:
        for name, labels in by_labeller.items():
            by_labeller[name] = Labels({at: label for at, label in labels.by_place.items() if at[0] in only}, {})
    things: dict[Place, list[str]] = {}
    for labels in by_labeller.values():
        for place, judged in labels.by_place.items():
            things.setdefault(place, []).append(judged.value)
    shared = [(session_id, values) for (session_id, _), values in things.items() if len(values) > 1]
    texts = {name: _texts(store, task, name) for name in by_labeller}
    pairs = [_compared(task, a, b, texts[a[0]]) for a, b in combinations(by_labeller.items(), 2)]
    return Several(
        task=task.name,
        labellers=list(by_labeller),
        n=len(shared),
        alpha=alpha_of(task, shared),
        alpha_of="ordinal" if ordered(task) else "nominal",
        pairs=pairs,
    )


def pairs(store: Store, task: Task, a: str, b: str) -> list[Both]:
    """Return the pairs of labels that two labellers of a store gave to the same things."""
    return _paired(said_by(store, task, a), said_by(store, task, b), _texts(store, task, a))


def with_gold(task: Task, name: str, gold: Gold, opened: Callable[[], Store] = Store) -> Comparison:
    """Compare a labeller with a gold file.

    A labeller that reads texts judges the file as it is, by its texts and the turns before them. People, labellers of
    published files and files without texts are looked up in the store, by session, turn and text; so is a language
    model that labelled the store already. `opened`: opens the store.
    """
    left_out = Counter(gold.skipped)
    placed: dict[Place, GoldRow] = {}
    by = text_labeller(name, gold, task)
    first = None if by is None else _kept(task, by.name, opened) if by.keeps else _judged(task, by, gold.rows)
    if by is not None and (first is None or not by.keeps):
        first = first or _judged(task, by, gold.rows)
        # What was not judged is counted with its reason, not again as missing.
        placed = {_place(row): row for row in gold.rows if _place(row) in first.by_place}
    else:
        store = opened()
        first = first or said_by(store, task, name)
        for row, place in places_of(store, gold.rows):
            if isinstance(place, str) or place in placed:
                left_out[place if isinstance(place, str) else "repeated"] += 1
            else:
                placed[place] = row
    meant = {place: ComparedLabel(row.label, row.number, row.prompt_hash) for place, row in placed.items() if row.label}
    texts = {place: row.text for place, row in placed.items() if row.text is not None}
    projects = {place: row.project for place, row in placed.items() if row.project is not None}
    if len(set(projects.values())) < FEWEST_CLUSTERS or len(projects) < len(placed):
        projects = {}
    second = (GOLD, Labels(meant, dict(left_out)))
    comparison = _compared(task, (name, first), second, texts, only=set(placed), projects=projects)
    weights = {place: row.weight for place, row in placed.items() if row.weight is not None and row.weight > 0}
    shared = first.by_place.keys() & meant.keys()
    if task.values and shared <= weights.keys():
        comparison.weighted_back = weighted_back(
            [(p[0], first.by_place[p].value, meant[p].value, weights[p]) for p in shared]
        )
    comparison.gold = ", ".join(gold.by) or None
    versions = {s.version for s in meant.values()}
    if versions - {None, task.prompt_hash}:
        comparison.warnings.append(
            "the gold was labelled by another version of the codebook: validate again with a new one"
        )
    people = [name for name in gold.by if name.startswith("human:")]
    if len(people) < len(gold.by):
        comparison.warnings.append(
            "the gold is not people's (no human:NAME made all of it): agreement with it validates nothing"
        )
    return comparison


def text_labeller(name: str, gold: Gold, task: Task) -> Labeller | None:
    """Return the labeller of that name where it judges messages by their texts and all of the file's rows have one. A
    language model is asked where its address is named, too: `openai:MODEL@URL`."""
    kind, _, argument = name.partition(":")
    is_named = kind in LABELLERS.places and ("@" in argument or not argument or LABELLERS.get(kind).optional)
    if not is_named or task.level != "turn" or not gold.rows or any(row.text is None for row in gold.rows):
        return None
    return labeller(name)


def _kept(task: Task, name: str, opened: Callable[[], Store]) -> Labels | None:
    try:
        labels = said_by(opened(), task, name)
    except StoreError:
        return None
    return labels if labels.by_place else None


def said_by(store: Store, task: Task, labeller: str) -> Labels:
    """A labeller's labels in a store, of people's sessions. Left out are those that are none of the task's, and a
    classifier's in sessions that it was made from: nobody is judged by what they learnt by heart."""
    by_place: dict[Place, ComparedLabel] = {}
    unknown: Counter[str] = Counter()
    seen = 0
    _, judged = rows(store, _LABELS, "product", [task.name, labeller])
    classifier = classifier_of(labeller, task.name)
    for session_id, turn, value, number, version, model in judged:
        label = fitting(task, value)
        if label is None:
            unknown[str(value)] += 1
        elif classifier is not None and classifier.has_seen(session_id):
            seen += 1
        else:
            by_place[session_id, turn] = ComparedLabel(label, number, version, model)
    left_out = {"no_label": unknown.total(), SEEN: seen}
    return Labels(by_place, {reason: n for reason, n in left_out.items() if n}, dict(unknown))


def _texts(store: Store, task: Task, labeller: str) -> dict[Place, str]:
    _, texts = rows(store, _TEXTS, "product", [task.name, labeller])
    return {(session_id, turn): text for session_id, turn, text in texts}


def _compared(  # noqa: PLR0913  (two labellers, and what they are compared on)
    task: Task,
    a: tuple[str, Labels],
    b: tuple[str, Labels],
    texts: dict[Place, str],
    *,
    only: set[Place] | None = None,
    projects: Mapping[Place, str] = MappingProxyType({}),
) -> Comparison:
    """Compare two labellers, each with a name. `only`: labels of the first elsewhere say nothing. `projects`: the
    clusters of the intervals, instead of sessions."""
    comparison = compare(task, a[0], b[0], _paired(a[1], b[1], texts, projects))
    first, second = a[1].by_place.keys(), b[1].by_place.keys()
    left_out = Counter(a[1].left_out) + Counter(b[1].left_out)
    left_out[f"only_{b[0]}"] += len(second - first)
    left_out[f"only_{a[0]}"] += len((first if only is None else first & only) - second)
    comparison.left_out = {reason: n for reason, n in left_out.items() if n}
    for name, labels in (a, b):
        if name != GOLD:
            comparison.warnings += _versions(task, name, labels)
    return comparison


def _paired(
    first: Labels, second: Labels, texts: dict[Place, str], projects: Mapping[Place, str] = MappingProxyType({})
) -> list[Both]:
    """Pair the things both labelled, in order of session and turn."""
    both = []
    for place in sorted(first.by_place.keys() & second.by_place.keys(), key=in_order):
        x, y = first.by_place[place], second.by_place[place]
        text = texts.get(place)
        both.append(Both(place[0], place[1], x.value, y.value, x.number, y.number, text, projects.get(place)))
    return both


def _judged(task: Task, by: Labeller, rows: list[GoldRow]) -> Labels:
    """Label the rows' own texts. Those of sessions that a classifier was trained on are left out."""
    version, asker = by.version(task), Asker(task, by.name)
    classifier = classifier_of(by.name, task.name)
    redactor = Redactor(pseudonym_key()) if by.leaves else None
    by_place: dict[Place, ComparedLabel] = {}
    left_out: Counter[str] = Counter()
    waiting: dict[str, list[Place]] = {}
    questions = []
    for row in rows:
        session_id, turn = place = _place(row)
        if turn is None or turn + 1 < task.min_turns:
            left_out["no_turn" if turn is None else "first_turn"] += 1
        elif classifier is not None and classifier.has_seen(session_id):
            left_out[SEEN] += 1
        else:
            mask = redactor.plain if redactor is not None else plain
            question = asker.question(unit_of_text(task, session_id, turn, row.text or "", row.before or "", mask))
            waiting.setdefault(question.key, []).append(place)
            if len(waiting[question.key]) == 1:
                questions.append(question)

    def done(question: Question, outcome: Outcome) -> None:
        try:
            answer = by.read(question, outcome.text) if outcome.text is not None else outcome.failure or "no_answer"
        except Unfit as problem:
            answer = problem.reason
        places = waiting[question.key]
        if isinstance(answer, Verdict):
            label = ComparedLabel(answer.value, answer.number, version, outcome.model or by.model)
            by_place.update(dict.fromkeys(places, label))
        else:
            left_out[(answer.detail or "no_verdict") if isinstance(answer, Absent) else answer] += len(places)

    by.ask(questions, done)
    return Labels(by_place, dict(left_out))


def places_of(store: Store, rows: list[GoldRow]) -> list[tuple[GoldRow, Place | str]]:
    """Each row of a gold file with its place in the store, or why it has none: `session_not_in_store`, `no_such_turn`,
    `other_text`. A text that was masked is found, too."""
    texts = turns_of(store, {row.session_id for row in rows})

    def place_of(row: GoldRow) -> Place | str:
        if row.session_id not in texts:
            return "session_not_in_store"
        if row.turn is None:
            return row.session_id, None
        turn = turn_of(row.turn - 1, row.text, texts[row.session_id])
        if turn == "other_text" and "[" in (row.text or ""):
            was = redacted(texts[row.session_id][row.turn - 1], known_secrets(store))
            turn = row.turn - 1 if _line(was) == _line(row.text) else turn
        return turn if isinstance(turn, str) else (row.session_id, turn)

    return [(row, place_of(row)) for row in rows]


def _line(text: str | None) -> str:
    """A masked text, by whatever key: its file may be from another machine."""
    return " ".join(without_pseudonyms(text or "").split())


def _place(row: GoldRow) -> Place:
    return row.session_id, None if row.turn is None else row.turn - 1


def _versions(task: Task, name: str, labels: Labels) -> list[str]:
    """Return warnings about the versions a labeller's labels were made with."""
    versions = {label.version for label in labels.by_place.values() if label.version}
    models = {label.model for label in labels.by_place.values() if label.model}
    warnings = []
    if labels.unknown:
        n, allowed = sum(labels.unknown.values()), ", ".join(classes(task)) or "its numbers"
        frequent = ", ".join(f"{value!r} {count} times" for value, count in Counter(labels.unknown).most_common(3))
        warnings.append(
            f"{n} of {n + len(labels.by_place)} labels of {name} are none of {allowed} and are left out: {frequent}"
        )
    if len(versions) > 1:
        warnings.append(f"labels of {name} are of {len(versions)} versions of the prompt; the figures mix them")
    if len(models) > 1:
        warnings.append(f"labels of {name} are by {len(models)} models; the figures mix them")
    kind = name.partition(":")[0]
    has_version = kind in LABELLERS.places and LABELLERS.get(kind).own_version
    todays = labeller(name).version(task) if has_version else task.prompt_hash
    older = {of.partition("+")[0] for of in versions} - {todays}
    if older:
        what = kind if has_version else "prompt"
        warnings.append(f"labels of {name} are of an earlier version of the {what}: label again, and validate again")
    if seen := labels.left_out.get(SEEN):
        warnings.append(
            f"{seen} labels of {name} are in sessions that it was made from, and say nothing: they are left out"
        )
    return warnings
