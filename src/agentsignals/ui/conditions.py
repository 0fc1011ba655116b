"""Conditions on signals as they stand in an address: `user.tool_error_rate>=0.5;user.session_outcome=accepted`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from agentsignals.catalog import Signal, by_path
from agentsignals.errors import CatalogError

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


def sql(conditions: Iterable[Condition]) -> tuple[list[str], dict[str, Any]]:
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
            parts.append(_compared(made, name))
            if made.value != "":
                values[name] = made.value
        texts.append(f"s.session_id IN (SELECT session_id FROM signals WHERE {' AND '.join(parts)})")  # noqa: S608  (text of ours)
    return texts, values


def _compared(made: Condition, name: str) -> str:
    if made.operator == "absent":
        return f"absent = ${name}" if made.value else "absent IS NOT NULL"
    if isinstance(made.value, float):
        return f"number {_IN_SQL.get(made.operator, made.operator)} ${name}"
    if made.signal.type == "list[str]":
        return f"{'NOT ' if made.operator == '!=' else ''}list_contains(from_json(value, '[\"VARCHAR\"]'), ${name})"
    return f"value {_IN_SQL.get(made.operator, made.operator)} ${name}"


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
        return _number(signal, text)
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


def _number(signal: Signal, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise Refused(f"{signal.path} is a number, not “{text}”")
    return number
