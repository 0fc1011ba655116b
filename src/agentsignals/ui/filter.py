"""Which sessions: those that fit a filter of an address, and those that a number counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import AgentSignalsError, CatalogError, UsageError
from agentsignals.questions import findings
from agentsignals.questions.compare import Arms, arms, comparable
from agentsignals.questions.compare.attempts import Attempt, outcome_rule, queries
from agentsignals.questions.findings import Reader
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
    formatted,
    mark_names,
    ranked_evidence,
    row_names,
)
from agentsignals.questions.studies import studies, study
from agentsignals.redaction import redacted_in
from agentsignals.signals import Signal
from agentsignals.signals.catalog import by_path, catalogue
from agentsignals.store import Store
from agentsignals.store.index import main_context
from agentsignals.ui.page import Query, Where, cut, sql, times
from agentsignals.ui.snapshot import Snapshot

MOST = 20
"""Conditions in one address."""
OPERATORS = (">=", "<=", "!=", ">", "<", "=", "absent")
_COMPARED = re.compile(r"([^\s<>=!]+)\s*(>=|<=|!=|>|<|=)(.*)", re.DOTALL)
_ABSENT = re.compile(r"([^\s<>=!]+)\s+absent(?:\s+([a-z_]+))?")
_LONGEST = 300
_TRUTH = {"true": 1.0, "yes": 1.0, "1": 1.0, "false": 0.0, "no": 0.0, "0": 0.0}
_IN_SQL = {"!=": "<>"}


class Condition(NamedTuple):
    """One condition on the value that a session, or a turn or an attempt of it, has of a signal."""

    signal: Signal
    operator: str
    value: float | str
    """As the store holds it: a number, or JSON text; of a list an item; of `absent` the reason, empty for any."""
    text: str
    """As it stands in an address."""


class Refused(ValueError):
    """The condition can't be asked; the words say why."""


def split(text: str) -> list[str]:
    """The conditions of an address, each once."""
    return list(dict.fromkeys(part.strip() for part in text.split(";") if part.strip()))


def condition(text: str) -> Condition:
    """One condition. Refused for what the catalogue has no signal of, or what its type can't be compared with."""
    if len(text) > _LONGEST:
        raise Refused(f"a condition has at most {_LONGEST} characters")
    if match := _ABSENT.fullmatch(text):
        path, reason = match.groups()
        signal = _signal(path)
        return Condition(signal, "absent", reason or "", f"{signal.path} absent{f' {reason}' if reason else ''}")
    match = _COMPARED.fullmatch(text)
    if match is None:
        raise Refused(f"“{text}” is not a condition. Use SIGNAL>=0.5, SIGNAL=value or SIGNAL absent")
    path, operator, value = match[1], match[2], match[3].strip()
    signal = _signal(path)
    return Condition(signal, operator, _value(signal, operator, value), f"{signal.path}{operator}{value}")


def conditions_in_sql(conditions: Iterable[Condition]) -> tuple[list[str], dict[str, Any]]:
    """Conditions over `sessions s`, with their values. Those on one signal hold of one value together: of one turn."""
    texts: list[str] = []
    values: dict[str, Any] = {}
    ordered = sorted(conditions, key=lambda made: made.signal.path)
    for path, of_signal in groupby(ordered, key=lambda made: made.signal.path):
        place = f"where{len(texts)}"
        values[place] = path
        parts = [f"signal = ${place}", "level <> 'corpus'"]
        for n, made in enumerate(of_signal):
            name = f"{place}_{n}"
            operator = _IN_SQL.get(made.operator, made.operator)
            if made.operator == "absent":
                parts.append(f"absent = ${name}" if made.value else "absent IS NOT NULL")
            elif made.signal.type == "list[str]":
                unlike = "NOT " if made.operator == "!=" else ""
                parts.append(f"{unlike}list_contains(from_json(value, '[\"VARCHAR\"]'), ${name})")
            else:
                parts.append(f"{'number' if isinstance(made.value, float) else 'value'} {operator} ${name}")
            if made.value != "":
                values[name] = made.value
        texts.append(sql("condition.signal", value=" AND ".join(parts)))
    return texts, values


def _signal(path: str) -> Signal:
    try:
        signal = by_path(path)
    except CatalogError as problem:
        raise Refused(f"{problem.message.rstrip('.')}. {problem.hint}".strip()) from problem
    if signal.level == "corpus":
        raise Refused(f"{signal.path} is a value of the whole store, so it cannot filter sessions")
    return signal


def _value(signal: Signal, operator: str, text: str) -> float | str:
    """Parse the value of a condition by the signal's type; Refused where it does not fit."""
    if signal.type in ("int", "float"):
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return number
        raise Refused(f"{signal.path} takes a number, not “{text}”")
    if operator not in ("=", "!="):
        raise Refused(f"{signal.path} ({signal.type}) has no order. Use =, != or absent")
    if signal.type == "bool":
        if text.lower() not in _TRUTH:
            raise Refused(f"{signal.path} takes yes or no, not “{text}”")
        return _TRUTH[text.lower()]
    if signal.type not in ("str", "enum", "list[str]"):
        raise Refused(f"{signal.path} ({signal.type}) supports only absent")
    if not text:
        raise Refused(f"{signal.path}{operator} needs a value")
    return text if signal.type == "list[str]" else msgspec.json.encode(text).decode()


# The filter that all pages share: it stands in the address, and gives a condition over `sessions s`.
#
# What it holds is typed by anyone: values are bound, never part of SQL; one that no session has matches nothing,
# one that can't be read is left out, and either is said in `notes`.

LABELS = {
    "text": "words",
    "agent": "agent",
    "model": "model",
    "repo": "repository",
    "branch": "branch",
    "context": "of",
    "outcome": "outcome",
    "days": "last days",
    "from": "from",
    "to": "to",
    "cost_min": "cost from $",
    "cost_max": "cost up to $",
    "tool": "calls",
    "failed": "a failed call of",
    "file": "edits",
    "where": "where",
    "missing": "without",
    "behind": "counted in",
}
"""The words of the address, in the order of the chips, and what a chip says before the value."""
_NOUNS = {"context": "the context", "tool": "a call of"}
BUILDER = ("signal", "op", "value")
"""The fields of the form that add a condition; `where` then holds it."""
WHOSE = {"product": "people’s sessions", "eval": "eval runs"}
DAYS = ("7", "30")
"""Time ranges that an address can name: the last days before the store's last session."""
PLACE = sql("place")
"""A session's project: its worktrees and clones are one; its folder where no repository is known."""
_COLUMNS = {"agent": "s.agent", "model": "s.model", "repo": PLACE, "branch": "s.branch"}
_MISSING = {
    **{word: f"coalesce({column}, '') = ''" for word, column in _COLUMNS.items()},
    "cost": "s.cost_usd IS NULL",
    "time": "s.started_at IS NULL",
    "outcome": sql("condition.no_outcome"),
}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_OFFERED = {
    **{word: sql("filter.values", column=column) for word, column in _COLUMNS.items()},
    "context": sql("filter.contexts"),
    "tool": sql("filter.tools"),
    "outcome": sql("filter.outcomes"),
}


class Chip(NamedTuple):
    """One thing that was chosen, and the address without it."""

    label: str
    value: str
    without: str


class Filter(NamedTuple):
    """The choice of sessions that an address makes."""

    words: Mapping[str, str]
    """The chosen values by the words of the address."""
    where: Where
    """Over `sessions s`; without any condition where nothing was chosen."""
    chips: list[Chip]
    clear: str
    """The address without any of it."""
    notes: list[str]
    """Parts of the choice that can't be asked, that no session has, or that leave sessions out unseen."""
    offered: Mapping[str, list[str]]
    """Values that can be chosen, by word, commonest first."""

    @property
    def signals(self) -> list[str]:
        """Paths of the signals that a condition can be on."""
        return sorted(signal.path for signal in catalogue().values() if signal.level != "corpus")

    @property
    def sessions(self) -> str:
        """A SELECT of the ids of the sessions; its values are `where.values`."""
        return sql("filter.sessions", where=self.where.text())

    def link(self, path: str = "", **changed: object) -> str:
        """An address with this filter, and other values for some of its words; an empty one leaves its word out."""
        return path + carried({**self.words, **changed})

    def narrowed(self, path: str, word: str, value: str | None) -> str:
        """An address with this filter for one value of a word; None: for the sessions that have none."""
        if value:
            return self.link(path, **{word: value})
        missing = dict.fromkeys([*split(self.words.get("missing", "")), word])
        return self.link(path, **{word: "", "missing": ";".join(missing)})

    def also(self, path: str, *texts: str) -> str:
        """An address with this filter and these conditions on signals."""
        return self.link(path, where=";".join(dict.fromkeys([*split(self.words.get("where", "")), *texts])))

    def of_context(self, context: str) -> Filter:
        where = self.where.copy()
        where.add("s.context = $of_context", of_context=context)
        return self._replace(where=where, words={**self.words, "context": context})


def words_of(query: Query) -> dict[str, str]:
    """The filter of an address as it goes on to other pages. Nothing of it is looked up."""
    words = {word: text for word in LABELS if (text := query.text(word))}
    signal, operator = query.text("signal"), query.choice("op", OPERATORS, ">=")
    if signal and (operator == "absent" or query.text("value")):
        new = f"{signal} absent" if operator == "absent" else f"{signal}{operator}{query.text('value')}"
        words["where"] = ";".join(split(f"{words.get('where', '')};{new}"))
    return words


def carried(words: Mapping[str, object]) -> str:
    """Words of a filter as they stand in an address, from its `?` on; empty of none."""
    text = urlencode([(word, str(value)) for word, value in words.items() if value], errors="replace")
    return f"?{text}" if text else ""


def filtered(query: Query, snapshot: Snapshot) -> Filter:
    """The filter that an address holds."""
    words = words_of(query)
    offered = snapshot.kept(
        "filter:offered", lambda: {word: [row["v"] for row in snapshot.rows(sql)] for word, sql in _OFFERED.items()}
    )
    asked = _Asked(words, offered, snapshot)
    words = {word: value for word, value in words.items() if word not in asked.unread}

    def parts(word: str, text: str) -> list[tuple[str, str]]:  # as they are shown, each with what is left without it
        if word in ("where", "missing"):
            held = split(text)
            return [(part, ";".join(other for other in held if other != part)) for part in held]
        if word == "context":
            return [(WHOSE.get(text, text), "")]
        if word == "days":
            return [(f"{text}, since {asked.since}", "")]
        return [(asked.behind if word == "behind" and asked.behind else text, "")]

    # The builder's fields are in `where` by now, and another filter begins at its first page.
    done = {**dict.fromkeys((*BUILDER, "page"), ""), "where": words.get("where", "")}
    return Filter(
        words=words,
        where=asked.where,
        chips=[
            Chip(LABELS[word], cut(shown), query.with_(**{**done, word: rest}))
            for word in LABELS
            if word in words
            for shown, rest in parts(word, words[word])
        ],
        clear=query.with_(**{**done, **dict.fromkeys(LABELS, "")}),
        notes=asked.notes,
        offered=offered,
    )


class _Asked:
    """The conditions that words make, and what is to be said of them."""

    def __init__(self, words: Mapping[str, str], offered: Mapping[str, list[str]], snapshot: Snapshot) -> None:
        self.where = Where()
        self.notes: list[str] = []
        self.unread: set[str] = set()
        """Words whose value is none: a day that no month has."""
        self.behind = ""
        """The title of the number whose sessions were chosen."""
        self.since = ""
        """The first day of the last days that were chosen."""
        self._words = words
        self._offered = offered
        for word, column in (*_COLUMNS.items(), ("context", "s.context")):
            if self._there(word):
                self.where.add(f"{column} = ${word}", **{word: words[word]})
        if self._there("tool"):
            self.where.add(sql("condition.call", call="name = $tool"), tool=words["tool"])
        if "failed" in words:
            if words["failed"] not in offered["tool"]:
                self.notes.append(f"No session calls the tool “{cut(words['failed'])}”.")
            self.where.add(sql("condition.call", call="name = $failed AND status = 'error'"), failed=words["failed"])
        if path := words.get("file", ""):
            end = path.removeprefix("./")
            ends = end if end.startswith((".", "/")) else f"/{end}"
            if path.startswith("./"):
                self.where.add(sql("condition.edit", edit="path = $file"), file=end)
            else:
                edit = "(path = $file OR ends_with(path, $file_end))"
                self.where.add(sql("condition.edit", edit=edit), file=end, file_end=ends)
        if "text" in words:
            self.where.add(sql("condition.text"), text=words["text"])
        if self._there("outcome"):
            outcome = words["outcome"]
            in_json = msgspec.json.encode(outcome).decode()
            self.where.add(sql("condition.outcome"), outcome=outcome, outcome_json=in_json)
        for word in split(words.get("missing", "")):
            if word in _MISSING:
                self.where.add(_MISSING[word])
            else:
                self.notes.append(f"“{cut(word)}” is not a known field for missing. Use one of: {', '.join(_MISSING)}.")
        asked, made = split(words.get("where", "")), []
        if len(asked) > MOST:
            self.notes.append(f"Only the first {MOST} of {len(asked)} signal conditions are applied.")
        for text in asked[:MOST]:
            try:
                made.append(condition(text))
            except Refused as problem:
                self.notes.append(f"Ignored: {cut(str(problem), 300)}.".replace("..", "."))
        texts, values = conditions_in_sql(made)
        for text in texts:
            self.where.add(text)
        self.where.values.update(values)
        if key := words.get("behind", ""):
            ids: list[str] = []
            try:
                self.behind, ids = sessions_behind(snapshot, key)
            except AgentSignalsError as problem:
                self.notes.append(f"Unknown number “{cut(key)}”: {problem.message}")
            self.where.add(sql("condition.counted"), behind=ids)
        if "days" in words:
            self._of_last_days(snapshot)
        if {"from", "to", "cost_min", "cost_max"} & words.keys():
            self._of_time_and_cost(snapshot)

    def _there(self, word: str) -> bool:
        """Return whether a word was chosen. A value that no session has is noted, and still asked for."""
        if word in self._words and self._words[word] not in self._offered[word]:
            self.notes.append(f"No session has {_NOUNS.get(word, LABELS[word])} “{cut(self._words[word])}”.")
        return word in self._words

    def _of_last_days(self, snapshot: Snapshot) -> None:
        """Choose the sessions that began in the last days before the last session of the store."""
        text = self._words["days"]
        last = snapshot.kept("filter:last", lambda: snapshot.rows(sql("filter.last"))[0]["last"])
        if text not in DAYS or last is None:
            self.unread.add("days")
            self.notes.append(
                f"Ignored: days must be {' or '.join(DAYS)}, not “{cut(text)}”." if last else "No times recorded."
            )
            return
        since = datetime.combine(last.date() - timedelta(days=int(text) - 1), time.min)
        self.since = f"{since:%Y-%m-%d}"
        self.where.add("s.started_at >= $since", since=since)

    def _of_time_and_cost(self, snapshot: Snapshot) -> None:
        """Limit time and cost, and note how many sessions without either the rest of the filter would have shown."""
        base, words = self.where.copy(), self._words
        first, last = self._day("from"), self._day("to")
        if first:
            self.where.add("s.started_at >= $from_day", from_day=datetime.combine(first, time.min))
        if last:
            self.where.add("s.started_at <= $to_day", to_day=datetime.combine(last, time.max))
        if first and last and first > last:
            self.notes.append("“From” is later than “to”, so no session matches.")
        low, high = self._cost("cost_min"), self._cost("cost_max")
        if low is not None:
            self.where.add("s.cost_usd >= $cost_min", cost_min=low)
        if high is not None:
            self.where.add("s.cost_usd <= $cost_max", cost_max=high)
        row = snapshot.rows(sql("filter.without_time_or_cost", where=base.text()), base.values)[0]
        if (first or last) and row["time"]:
            self.notes.append(f"{times(row['time'], 'session')} without a recorded time are hidden by the date filter.")
        if (low is not None or high is not None) and row["cost"]:
            self.notes.append(f"{times(row['cost'], 'session')} without a cost are hidden by the cost filter.")
        if high is not None and row["bounds"] and "cost_max" in words:
            self.notes.append("Costs marked >= are lower bounds, so these sessions may exceed the limit.")

    def _day(self, word: str) -> date | None:
        text = self._words.get(word, "")
        try:
            if _DAY.fullmatch(text):
                return date.fromisoformat(text)
        except ValueError:
            pass  # a day that no month has: said below, like every other text
        if text:
            self.unread.add(word)
            self.notes.append(f"Ignored: {word} must be a date (YYYY-MM-DD), not “{cut(text)}”.")
        return None

    def _cost(self, word: str) -> float | None:
        text = self._words.get(word, "")
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return number
        if text:
            self.unread.add(word)
            self.notes.append(f"Ignored: {word} must be a number of dollars, not “{cut(text)}”.")
        return None


# The sessions behind a number of a study, or behind a finding, by the key that stands beside it.

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
        if self.kind in ("usd", "seconds") and n in (k, 0, 1):
            return formatted(k, self.kind)
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
        raise UsageError(f"{key[:200]!r} does not name a number on this page.", f"Keys have the form {FORMS}.")
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
            made[figure] = (sum(k != 0 for k, _ in parts.values()), len(parts)) if parts else "It counts no sessions."
    return made


def _unasked(sql: str, values: Mapping[str, Any]) -> list[Row]:
    return []


def _context(store: Store, context: str) -> str:
    return context if context in ("product", "eval") else main_context(store.contexts())


def _of_finding(store: Store, name: str) -> Behind:
    """Return the sessions that a finding's evidence names, with their share of its amount."""
    name, _, context = name.partition("@")
    made = findings.answer(store, name, _context(store, context))
    title = redacted_in(made.sentence)
    reader = Reader(store, [], _context(store, context))
    evidence = reader.ask(made.cause, {}, reader.context)
    if evidence and "session_id" not in evidence[0]:
        closed = "Its evidence is files, not sessions. The finding’s page lists them."
        return Behind(title=title, of="", parts={}, closed=closed)
    named = [row for row in evidence if row["session_id"]]
    if made.part:
        amounts = [(row["session_id"], row[made.part] or 0.0, 0.0) for row in named]
        kind: Kind = "usd" if made.unit.startswith("USD") else "seconds"
        return Behind(title=title, of="", parts=ranked_evidence(amounts, _unasked), kind=kind)
    ids = [row["session_id"] for row in named]
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
    """Return the attempts that a number of a comparison counts, by the key that its link has."""
    outcome, columns, what, against, name = [*rest.split(":", 4), "", "", "", ""][:5]
    by = [column for column in columns.split(",") if column]
    everything, base = arms_of(store, outcome, by), unquote(against, errors="surrogateescape") or None
    whole = comparable(everything, by, base)
    if name in everything.groups and name not in whole.groups:  # shown against the baseline all the same
        whole = comparable(everything, by, base, only=[name], anyway=True)
    if name not in whole.groups or what not in ATTEMPTS:
        raise UsageError(
            f"{rest[:200]!r} does not name a set of a candidate's attempts.",
            f"End the key with one of: {', '.join(ATTEMPTS)}.",
        )
    counted = [(o.session_id, o.outcome or 0, 1) for o in ATTEMPTS[what](whole, name)]
    title = f"{redacted_in(name)}: {what.replace('_', ' ')}"
    return Behind(title=title, of=outcome, parts=ranked_evidence(counted, _unasked), kind="number")


def _of_study(store: Store, name: str, figure: str, context: str) -> Behind:
    """Return the sessions that a figure of a study counts, with its title."""
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
        named += [(chart, mark_names(chart.marks)) for chart in outcome.charts if chart is not None]
        for holder, names in named:
            for mark in names:
                held = Behind(title=f"{holder.title}: {mark}", of=holder.of, parts={}, kind="number")
                figures.setdefault(f"{holder.id}:{mark}", held)
        shown = figures.get(figure)
        if shown is None or figure not in notes:
            raise UsageError(
                f"Study {name} has no number {figure[:200]!r}.", "Open the study again: its rows may have changed."
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
