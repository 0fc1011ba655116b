"""Conditions on signals as they stand in an address: `user.tool_error_rate>=0.5;user.session_outcome=accepted`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from agentsignals.errors import AgentSignalsError, CatalogError
from agentsignals.signals import Signal
from agentsignals.signals.catalog import by_path, catalogue
from agentsignals.ui.drill_down import sessions_behind
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
        raise Refused(f"“{text}” is no condition; write SIGNAL>=0.5, SIGNAL=value or SIGNAL absent")
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
        raise Refused(f"{signal.path} is one value over all sessions, which no session has")
    return signal


def _value(signal: Signal, operator: str, text: str) -> float | str:
    if signal.type in ("int", "float"):
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return number
        raise Refused(f"{signal.path} is a number, not “{text}”")
    if operator not in ("=", "!="):
        raise Refused(f"{signal.path} ({signal.type}) has no order; it can be =, != or absent")
    if signal.type == "bool":
        if text.lower() not in _TRUTH:
            raise Refused(f"{signal.path} is yes or no, not “{text}”")
        return _TRUTH[text.lower()]
    if signal.type not in ("str", "enum", "list[str]"):
        raise Refused(f"{signal.path} ({signal.type}) can only be asked for as absent")
    if not text:
        raise Refused(f"{signal.path}{operator} lacks a value")
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
PLACE = "coalesce(s.repo, s.cwd)"
"""A session's repository, or its folder where no repository is recorded."""
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
        """Return this filter for the sessions of one context."""
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
        self._words = words
        self._offered = offered
        for word, column in (*_COLUMNS.items(), ("context", "s.context")):
            if self._there(word):
                self.where.add(f"{column} = ${word}", **{word: words[word]})
        if self._there("tool"):
            self.where.add(sql("condition.call", call="name = $tool"), tool=words["tool"])
        if "failed" in words:
            if words["failed"] not in offered["tool"]:
                self.notes.append(f"There is no session with a call of “{cut(words['failed'])}”.")
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
                self.notes.append(f"“{cut(word)}” is nothing that can be missing here: {', '.join(_MISSING)}.")
        asked, made = split(words.get("where", "")), []
        if len(asked) > MOST:
            self.notes.append(f"Of {len(asked)} conditions on signals the first {MOST} are asked.")
        for text in asked[:MOST]:
            try:
                made.append(condition(text))
            except Refused as problem:
                self.notes.append(f"Left out: {cut(str(problem), 300)}.".replace("..", "."))
        texts, values = conditions_in_sql(made)
        for text in texts:
            self.where.add(text)
        self.where.values.update(values)
        if key := words.get("behind", ""):
            ids: list[str] = []
            try:
                self.behind, ids = sessions_behind(snapshot, key)
            except AgentSignalsError as problem:
                self.notes.append(f"Nothing counts “{cut(key)}”: {problem.message}")
            self.where.add(sql("condition.counted"), behind=ids)
        if {"from", "to", "cost_min", "cost_max"} & words.keys():
            self._of_time_and_cost(snapshot)

    def _there(self, word: str) -> bool:
        """Return whether a word was chosen. A value that no session has is noted, and still asked for."""
        if word in self._words and self._words[word] not in self._offered[word]:
            self.notes.append(f"There is no session with {_NOUNS.get(word, LABELS[word])} “{cut(self._words[word])}”.")
        return word in self._words

    def _of_time_and_cost(self, snapshot: Snapshot) -> None:
        """Limit time and cost, and note how many sessions without either the rest of the filter would have shown."""
        base, words = self.where.copy(), self._words
        first, last = self._day("from"), self._day("to")
        if first:
            self.where.add("s.started_at >= $from_day", from_day=datetime.combine(first, time.min))
        if last:
            self.where.add("s.started_at <= $to_day", to_day=datetime.combine(last, time.max))
        if first and last and first > last:
            self.notes.append("from is after to: no session fits.")
        low, high = self._cost("cost_min"), self._cost("cost_max")
        if low is not None:
            self.where.add("s.cost_usd >= $cost_min", cost_min=low)
        if high is not None:
            self.where.add("s.cost_usd <= $cost_max", cost_max=high)
        row = snapshot.rows(sql("filter.without_time_or_cost", where=base.text()), base.values)[0]
        if (first or last) and row["time"]:
            self.notes.append(f"{times(row['time'], 'session')} without a recorded time: left out by from and to.")
        if (low is not None or high is not None) and row["cost"]:
            self.notes.append(f"{times(row['cost'], 'session')} without a cost: left out by the limits of cost.")
        if high is not None and row["bounds"] and "cost_max" in words:
            self.notes.append("Some costs are lower bounds (>=): such a session may have cost more than the limit.")

    def _day(self, word: str) -> date | None:
        text = self._words.get(word, "")
        try:
            if _DAY.fullmatch(text):
                return date.fromisoformat(text)
        except ValueError:
            pass  # a day that no month has: said below, like every other text
        if text:
            self.unread.add(word)
            self.notes.append(f"Left out: {word} is a day as YYYY-MM-DD, not “{cut(text)}”.")
        return None

    def _cost(self, word: str) -> float | None:
        text = self._words.get(word, "")
        with suppress(ValueError):
            if isfinite(number := float(text)):
                return number
        if text:
            self.unread.add(word)
            self.notes.append(f"Left out: {word} is a number of dollars, not “{cut(text)}”.")
        return None
