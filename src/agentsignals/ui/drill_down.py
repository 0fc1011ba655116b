"""The sessions behind a number of a study, or behind a finding, by the key that stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import UsageError
from agentsignals.questions import findings
from agentsignals.questions.compare import Arms, arms, comparable
from agentsignals.questions.compare.attempts import Attempt, outcome_rule, queries
from agentsignals.questions.findings import Reader
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import (
    Chart,
    Evidence,
    EvidenceQuery,
    Inputs,
    Kind,
    NoSessions,
    Row,
    Table,
    collecting_evidence,
    evidence_sums,
    mark_names,
    ranked_evidence,
    row_names,
)
from agentsignals.questions.studies import studies, study
from agentsignals.redaction import redacted_in
from agentsignals.store import Store
from agentsignals.store.index import main_context
from agentsignals.ui.snapshot import Snapshot

FORMS = (
    "study:NAME:ID, study:NAME:TABLE:ROW, study:NAME:CHART:MARK, finding:ID or compare:OUTCOME:COLUMNS:WHAT:CANDIDATE;"
    " with: before it takes those that make up its share"
)
"""The forms of a key. `NAME@eval` and `ID@eval` mean eval runs where the store's main context is another."""
WITH = "with:"


class Behind(Struct, frozen=True, kw_only=True):
    """The sessions that a number counts."""

    title: str
    of: str
    """The unit that is counted in each session."""
    parts: dict[str, tuple[float, float]]
    """k and n of each session: what it has of the numerator, and of what that is of. Largest k first."""
    kind: Kind = "count"
    """The kind of k, where it is shown alone."""
    closed: str = ""
    """Why it opens no sessions."""
    study: str = ""

    def partly(self) -> Behind:
        """Keep the sessions that have a part in its numerator."""
        return replace(self, parts={session_id: part for session_id, part in self.parts.items() if part[0]})

    def words(self, session_id: str) -> str:
        """Return a session's part in words: `12 of 40 answered calls`, `$3.20`, `1 prompt`."""
        k, n = self.parts[session_id]
        if n in (k, 0):
            return f"{formatted(k, 'count')} {self.of}"
        if n == 1 and k != 0:
            return formatted(k, self.kind)
        return f"{formatted(k, 'count')} of {formatted(n, 'count')} {self.of}"


def behind(store: Store, key: str) -> Behind:
    """Return the sessions a key counts. UsageError when it is no key."""
    if key.startswith(WITH):
        return behind(store, key.removeprefix(WITH)).partly()
    form, _, rest = key.partition(":")
    if form == "finding":
        return _of_finding(store, rest)
    if form == "compare":
        return _of_candidate(store, rest)
    name, _, figure = rest.partition(":")
    name, _, context = name.partition("@")
    if form != "study" or name not in studies() or not figure:
        raise UsageError(f"{key[:200]!r} names no number.", f"A key is {FORMS}.")
    return _of_study(store, name, figure, _context(store, context))


def key_of(name: str, figure: str, context: str = "") -> str:
    """The key of a study's figure: a finding by its id, a row by its table's id and its name. `context`: where it is
    not the store's main one."""
    return f"study:{name}{f'@{context}' if context else ''}:{figure}"


def sizes(notes: Mapping[str, Evidence]) -> dict[str, tuple[int, int] | str]:
    """Count the sessions each figure opens: those with a part in its numerator, and all. A figure that opens none has
    the reason instead; one that is only known when asked for has (0, 0)."""
    made: dict[str, tuple[int, int] | str] = {}
    for figure, counted in notes.items():
        if isinstance(counted, NoSessions):
            made[figure] = counted.reason
        elif isinstance(counted, EvidenceQuery) or callable(counted):
            made[figure] = 0, 0
        else:
            parts = evidence_sums(counted, _unasked)
            made[figure] = (sum(k != 0 for k, _ in parts.values()), len(parts)) if parts else "It counts nothing."
    return made


def _unasked(sql: str, values: Mapping[str, Any]) -> list[Row]:
    return []


def _context(store: Store, context: str) -> str:
    return context if context in ("product", "eval") else main_context(store.manifest)


def _of_finding(store: Store, name: str) -> Behind:
    name, _, context = name.partition("@")
    made = findings.answer(store, name, _context(store, context))
    title = redacted_in(made.sentence)
    reader = Reader(store, [], _context(store, context))
    evidence = reader.ask(made.cause, {}, reader.context)
    if evidence and "session_id" not in evidence[0]:
        closed = "Its evidence is of files, not of sessions: its page lists it."
        return Behind(title=title, of="", parts={}, closed=closed)
    ids = [row["session_id"] for row in evidence if row["session_id"]]
    return Behind(title=title, of="rows of evidence", parts=ranked_evidence(ids, _unasked))


ATTEMPTS: dict[str, Callable[[Arms, str], list[Attempt]]] = {
    "attempts": lambda arms, name: arms.groups[name],
    "first": lambda arms, name: arms.first[name],
    "took": lambda arms, name: arms.shared(name),
    "retries": lambda arms, name: [o for o in arms.groups[name] if o.index > 0],
    "known": lambda arms, name: [o for o in arms.shared(name) if o.outcome is not None],
    "not_judged": lambda arms, name: [o for o in arms.shared(name) if o.outcome is None and not _broke(o)],
    "infrastructure": lambda arms, name: [o for o in arms.shared(name) if _broke(o)],
}
"""The attempts of a candidate that a number of a comparison counts."""


def _broke(attempt: Attempt) -> bool:
    return attempt.rung == "infrastructure"


def arms_of(store: Store, outcome: str, columns: Sequence[str]) -> Arms:
    """The attempts of a store by candidate. UsageError where a column or an outcome is not there."""
    reader, rule = Reader(store, []), outcome_rule(outcome)
    return arms(rule, {name: reader.ask(sql, {}, "") for name, sql in queries(rule).items()}, columns)


def compare_key(outcome: str, columns: Sequence[str], what: str, candidate: str, baseline: str | None = None) -> str:
    """The key of a number of a comparison: which attempts of a candidate it counts."""
    against = quote(baseline or "", safe="", errors="surrogateescape")
    return f"compare:{outcome}:{','.join(columns)}:{what}:{against}:{candidate}"


def _of_candidate(store: Store, rest: str) -> Behind:
    outcome, columns, what, against, name = [*rest.split(":", 4), "", "", "", ""][:5]
    by = [column for column in columns.split(",") if column]
    everything, base = arms_of(store, outcome, by), unquote(against, errors="surrogateescape") or None
    whole = comparable(everything, by, base)
    if name in everything.groups and name not in whole.groups:  # shown against the baseline all the same
        whole = comparable(everything, by, base, only=[name], anyway=True)
    if name not in whole.groups or what not in ATTEMPTS:
        raise UsageError(f"{rest[:200]!r} names no candidate's attempts.", f"What is one of {', '.join(ATTEMPTS)}.")
    counted = [(o.session_id, o.outcome or 0, 1) for o in ATTEMPTS[what](whole, name)]
    title = f"{redacted_in(name)}: {what.replace('_', ' ')}"
    return Behind(title=title, of=outcome, parts=ranked_evidence(counted, _unasked), kind="number")


def _of_study(store: Store, name: str, figure: str, context: str) -> Behind:
    declared = study(name)
    reader = Reader(store, [declared], context)
    inputs: Inputs = reader.inputs(declared)
    with collecting_evidence() as notes:
        outcome = declared.run(inputs)
        # Every figure of the outcome by its key, with its title and unit.
        figures = {
            finding.id: Behind(title=redacted_in(finding.title), of=finding.of, parts={}, kind=finding.kind)
            for finding in outcome.findings
        }
        named: list[tuple[Table | Chart, list[str]]] = [(table, row_names(table)) for table in outcome.tables]
        named += [(chart, mark_names(chart.spec["data"]["values"])) for chart in outcome.charts if chart is not None]
        for holder, names in named:
            for mark in names:
                held = Behind(title=f"{holder.title}: {mark}", of=holder.of, parts={}, kind="number")
                figures.setdefault(f"{holder.id}:{mark}", held)
        shown = figures.get(figure)
        if shown is None or figure not in notes:
            raise UsageError(
                f"The study {name} has no number {figure[:200]!r} here.", "A row that is gone opens nothing."
            )
    counted = notes[figure]
    if isinstance(counted, NoSessions):
        return replace(shown, closed=counted.reason, study=name)
    asked = ranked_evidence(counted, lambda sql, values: reader.ask(sql, values, inputs.context))
    return replace(shown, parts=asked, study=name)


# The sessions behind a number, for pages: what a key opens, and the address that opens it.


def behind_key(snapshot: Snapshot, key: str) -> Behind:
    """Return the sessions a key counts, computed once for this state of the store. UsageError when it is no key."""
    of_all = key.removeprefix(WITH)
    made: Behind = snapshot.kept(("behind", of_all), lambda: behind(snapshot.store, of_all))
    return made.partly() if key.startswith(WITH) else made


def sessions_behind(snapshot: Snapshot, key: str) -> tuple[str, list[str]]:
    """Return the title of a number and the sessions it counts, largest part first. UsageError when the key is none."""
    made = behind_key(snapshot, key)
    return made.title, list(made.parts)


def opening(key: str, size: tuple[int, int] | str | None, of_all: bool = False) -> str:
    """The address of the sessions that a key counts (`sizes`): of a share those that make it up, or `of_all` that it
    is of. Empty for none."""
    if size is None or isinstance(size, str):
        return ""
    is_part = not of_all and 0 < size[0] < size[1]
    return f"/behind?key={quote(WITH + key if is_part else key, errors='surrogateescape')}"
