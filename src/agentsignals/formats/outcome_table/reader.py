"""Read the rows of a table of outcomes as attempts, each a trial of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw, structs

from agentsignals.formats import Input, Reading, gathered
from agentsignals.formats import outcome_table as tables
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.documents import each, is_list
from agentsignals.formats.head import head_of
from agentsignals.formats.instances import TrialsBelow, canonical
from agentsignals.formats.records import document, lines, read_before, saw, skip
from agentsignals.model import Artifact, Attempt

ROWS_MAX = 200_000
"""Rows that are read of a table: twice those of all runs of the largest leaderboard (200 submissions of 500 tasks), and
a packed file of some kilobytes can hold any number."""
_AT_ONCE = 500
_Rows = Iterator[tuple[int, Mapping[str, Any] | str]]
"""Rows by number, which is the line's if the table has lines. A reason stands for a row that can't be read."""

_decode_rows = msgspec.json.Decoder(list[Raw]).decode
_decode_row = msgspec.json.Decoder(dict[str, Any]).decode


def read(inputs: list[Input]) -> Reading:
    """All rows of these tables."""
    return gathered(pieces(inputs))


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Yield the rows a few hundred at a time: a small file may hold a million."""
    for source in inputs:
        if source.lent:
            yield Reading(attempts=_lent(source))
        else:
            yield from _pieces(source)


_AT_HAND = 2
"""Tables whose rows stay decoded, because a run lends them to each of its trials."""
_read: dict[tuple[str, str, frozenset[str]], list[Attempt]] = {}


def _lent(source: Input) -> list[Attempt]:
    """Return what a table lends to the trials below its folder."""
    key = (source.artifact.path, source.artifact.sha256, source.trials_below)
    parts = _read.pop(key, None)
    if parts is None:
        parts = [p for reading in _pieces(source) for p in reading.attempts] if source.trials_below else []
    _read[key] = parts
    for oldest in list(_read)[:-_AT_HAND]:
        del _read[oldest]
    return parts


def _pieces(source: Input) -> Iterator[Reading]:
    names, rows = _table(source, counted=True)
    columns = tables.columns_of(names)
    if columns.lacks:
        source.artifact.records += 1
        skip(source.artifact, columns.lacks)
        return
    if source.artifact.note is None and not tables.CONVERSATIONS.isdisjoint(names):
        source.artifact.note = "its conversations are not read: a table has its outcomes alone"
    is_reward = columns.passed is None
    if is_reward:  # unless a score is not from 0 to 1: on another scale 1 is not the best
        seen = (row for _, row in islice(_table(source, counted=False)[1], ROWS_MAX) if not isinstance(row, str))
        scores = (tables.score_of(row.get(columns.score or "")) for row in seen)
        is_reward = all(score is None or 0 <= score <= 1 for score in scores)
    below = TrialsBelow(source.trials_below)
    tasks: Counter[str] = Counter()
    if below.names:  # rows that judge a trial below are told from those that are attempts by themselves
        seen = (row for _, row in islice(_table(source, counted=False)[1], ROWS_MAX) if not isinstance(row, str))
        tasks.update(canonical(str(row.get(columns.task or ""))) for row in seen)
    first_rows = islice(rows, ROWS_MAX)
    made = (_part(source, columns, is_reward, *row) for row in first_rows)
    parts = (p for p in (_at_home(part, below, tasks, source) for part in made if part is not None) if p is not None)
    while batch := list(islice(parts, _AT_ONCE)):
        yield Reading(attempts=batch)
    if next(rows, None) is not None:
        skip(source.artifact, "too_many_rows")


def _at_home(part: Attempt, below: TrialsBelow, tasks: Counter[str], source: Input) -> Attempt | None:
    """Return a row as an attempt by itself; or, where it judges a trial that has files of its own, what it lends to
    that trial when the table is read for it."""
    if not below.names:
        return part
    model = part.observed.get("model_id")
    alone = tasks[part.task_id or ""] == 1
    named = below.judged_by(part.task_id or "", part.run_id, model if isinstance(model, str) else None, alone)
    if named is None:
        return None if source.lent else part
    saw(source.artifact, "verdict_of_a_trial")
    if not source.lent:
        return None
    goes_by = None if named.startswith("/") else named
    return structs.replace(part, root=source.folder, scope="lent", run_id=None, goes_by=goes_by)


def _table(source: Input, counted: bool) -> tuple[list[str], _Rows]:
    """The names of the columns, and the rows; `counted` in the artifact, which a second look is not."""
    data, artifact = source.data, source.artifact if counted else read_before(source.artifact)
    if bytes(data[: len(tables.PARQUET)]) == tables.PARQUET:
        names = tables.names(data)
        return names, _counted(artifact, tables.rows(data, tables.columns_of(names).read))
    head = head_of(data, source.artifact.path)
    if not head.looks_like_json:
        return tables.header_of(head.text), _counted(artifact, tables.rows_of(data))
    names = list(next(iter(head.items or head.records), {}))
    if not is_list(data):
        return names, lines(data, artifact, _decode_row)
    raws = document(data, artifact, _decode_rows) or []
    artifact.records += len(raws) - 1
    rows = each(raws, _decode_row, artifact)
    return names, ((n, "bad_shape" if row is None else row) for n, row in enumerate(rows, 1))


def _counted(artifact: Artifact, rows: _Rows) -> _Rows:
    for row in rows:
        artifact.records += 1
        yield row


def _part(
    source: Input, columns: tables.Columns, is_reward: bool, line: int, row: Mapping[str, Any] | str
) -> Attempt | None:
    artifact = source.artifact
    if isinstance(row, str) or not tables.is_row(row, columns):
        skip(artifact, row if isinstance(row, str) else "bad_shape")
        return None
    saw(artifact, "outcome")
    read = {name: row[column] for name, column in columns.settings.items() if _is_setting(row.get(column))}
    observed = {knob: read[knob] for knob in tables.KNOBS if knob in read}
    passed, score = row.get(columns.passed or ""), tables.score_of(row.get(columns.score or ""))
    solved = tables.verdict(passed)
    reward = score if is_reward else None if solved is None else float(solved)
    task, run = str(row[columns.task or ""]), read.get("run_id")
    became = "not judged" if reward is None else f"reward {reward:g}"
    status = read.get("exit_status") or (passed if isinstance(passed, str) and tables.is_missing(passed) else None)
    seconds = tables.score_of(read.get("wall_time_s"))
    part = Attempt(
        root=f"{artifact.path}/{line}", scope="trial", task_id=canonical(task), reward=reward, observed=observed,
        run_id=str(run) if run is not None else None,
        rewards={columns.score: score} if columns.score is not None and score is not None else None,
        exit_status=status if isinstance(status, str) and status.strip() else None,
        cost_usd=amount(tables.score_of(read.get("cost_usd"))),
        input_tokens=count(tables.score_of(read.get("input_tokens"))),
        output_tokens=count(tables.score_of(read.get("output_tokens"))),
        wall_time_s=seconds if seconds is not None and seconds >= 0 else None,
        patch=[] if row.get(columns.settings.get("model_patch", "")) == "" else None,
    )  # fmt: skip
    fields = [name for name in _FIELDS if getattr(part, name) is not None]
    text = f"row {line}: {task} {became}"
    fields += [f"knobs.{knob}" for knob in observed]
    part.statements = source.states(text, ["reward", *fields], line)
    return part


_FIELDS = ("rewards", "exit_status", "cost_usd", "input_tokens", "output_tokens", "wall_time_s", "patch")


def _is_setting(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) for item in value)
    missing = isinstance(value, bool) or value == "" or value != value  # noqa: PLR0124  (what is no number)
    return isinstance(value, str | int | float) and not missing
