"""Tables of outcomes, a row an attempt (design/formats.md#tables-of-outcomes): CSV, JSON, JSON Lines, Parquet, Arrow.
Columns are known by their usual names."""

import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import structs

from agentsignals.formats import Claim, Format, Input, Reading
from agentsignals.formats import columns as tables
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.instances import TrialsBelow, canonical
from agentsignals.formats.records import Head, read_before, saw, skip
from agentsignals.formats.rows import Lost, Row, first_rows, is_packed, lose, schema_of, table
from agentsignals.model import Attempt


def claims(head: Head) -> Claim | None:
    """Recognise a table by its columns and its first rows. Rows that hold conversations are another format's.

    A JSON table that lacks a column is not claimed. Other kinds are read by no other format, so they are claimed and
    say what they lack. Trials below its folder take their verdicts from it.
    """
    folder = posixpath.dirname(head.path)
    if head.looks_like_json:
        return Claim(keys=[], judges=folder) if is_of_json(head) else None
    rows: list[dict[str, str]] = []
    if packed := is_packed(head.data):
        schema = schema_of(head.data)
        header = [] if schema is None else [str(name) for name in schema.names]
    else:
        header, rows = first_rows(head.text, head.complete)
    columns = tables.columns_of(header)
    if tables.may_hold(header):
        return None
    if columns.lacks:
        is_table = columns.is_near and (packed or bool(rows))
    else:
        is_table = packed or (bool(rows) and tables.are_rows(rows, columns))
    return Claim(keys=[], judges=folder) if is_table else None


def is_of_json(head: Head) -> bool:
    """Return whether a file is such a table in JSON. Formats whose rows have the same names ask this too."""
    rows = (head.items or head.records) if head.looks_like_json else []
    if not rows or any(
        isinstance(v := rows[0][name], list) or tables.messages_of(v) for name in tables.may_hold(rows[0])
    ):
        return False
    columns = tables.columns_of(list(rows[0]))
    if columns.lacks or not (columns.is_swe_bench or len(rows) > 1):
        return False  # one object with such keys may be anything
    return tables.are_rows(rows, columns)


ROWS_MAX = 200_000
"""Rows that are read of a table: twice those of all runs of the largest leaderboard (200 submissions of 500 tasks), and
a packed file of some kilobytes can hold any number."""
_AT_ONCE = 500
_LONGEST = 64 * 1024
"""Longest value that is kept. A dictionary page may hold one huge value for a million rows."""


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Yield the rows a few hundred at a time: a small file may hold a million."""
    seen: dict[str, set[bytes]] = {}
    for source in inputs:
        if source.lent:
            yield Reading(attempts=_lent(source))
        else:
            known = seen.setdefault(source.artifact.dataset or source.artifact.path, set())
            yield from _pieces(source, known)


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


def _pieces(source: Input, known: set[bytes] | None = None) -> Iterator[Reading]:
    """Read a table. `known`: digests of the rows of other files of its data set, whose splits may repeat them."""
    names, rows = table(source, source.artifact, lambda names: tables.columns_of(names).read, _LONGEST)
    columns = tables.columns_of(names)
    if columns.lacks:
        source.artifact.records += 1
        skip(source.artifact, columns.lacks)
        return
    scored = is_reward(source, columns)
    below = TrialsBelow(source.trials_below)
    tasks: Counter[str] = Counter()
    if below.names:  # rows that judge a trial below are told from those that are attempts by themselves
        seen = _rows_again(source, columns.task)
        tasks.update(canonical(str(row.get(columns.task or ""))) for row in seen)
    first_rows = _new_rows(source, columns, islice(rows, ROWS_MAX), known)
    made = (_part(source, columns, scored, *row) for row in first_rows)
    parts = (p for p in (_at_home(part, below, tasks, source) for part in made if part is not None) if p is not None)
    while batch := list(islice(parts, _AT_ONCE)):
        yield Reading(attempts=batch)
    if next(rows, None) is not None:
        skip(source.artifact, "too_many_rows")


def _new_rows(
    source: Input, columns: tables.Columns, rows: Iterator[tuple[int, Row]], known: set[bytes] | None
) -> Iterator[tuple[int, Row]]:
    """Leave out rows that another file of the data set has. Equal rows of one file are tries of their own."""
    if known is None or source.artifact.dataset is None:
        yield from rows
        return
    names = sorted(columns.read - {columns.settings.get("split")})
    own: set[bytes] = set()
    for line, row in rows:
        if not isinstance(row, Lost):
            values = ((name, row.get(name)) for name in names)
            told = repr([(name, str(value).lower()) for name, value in values if value not in (None, "")])
            digest = hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=8).digest()
            if digest in known:
                saw(source.artifact, "repeated")
                continue
            own.add(digest)
        yield line, row
    known |= own


def _at_home(part: Attempt, below: TrialsBelow, tasks: Counter[str], source: Input) -> Attempt | None:
    """Return a row as an attempt by itself; or, where it judges a trial that has files of its own, what it lends to
    that trial when the table is read for it."""
    if not below.names:
        saw(source.artifact, "outcome")
        return part
    model = part.observed.get("model_id")
    alone = tasks[part.task_id or ""] == 1
    is_above = source.judges not in ("", source.folder)
    model = model if isinstance(model, str) else None
    named = below.judged_by(part.task_id or "", part.run_id, model, alone, is_above)
    saw(source.artifact, "outcome" if named is None else "verdict_of_a_trial")
    if named is None:
        return None if source.lent else part
    if not source.lent:
        return None
    goes_by = None if named.startswith("/") else named
    return structs.replace(part, root=source.judges or source.folder, scope="lent", run_id=None, goes_by=goes_by)


def is_reward(source: Input, columns: tables.Columns) -> bool:
    """Return whether the scores of a table are rewards: all lie from 0 to 1. On another scale 1 is not the best."""
    if columns.passed is not None or columns.score is None:
        return False
    scores = (tables.score_of(row.get(columns.score)) for row in _rows_again(source, columns.score))
    return all(score is None or 0 <= score <= 1 for score in scores)


def _rows_again(source: Input, column: str | None) -> Iterator[Mapping[str, Any]]:
    """Read one column of a table whose rows are counted elsewhere."""
    wanted = frozenset([column] if column is not None else [])
    again = table(source, read_before(source.artifact), lambda _: wanted, _LONGEST)[1]
    return (row for _, row in islice(again, ROWS_MAX) if not isinstance(row, Lost))


def _part(source: Input, columns: tables.Columns, is_reward: bool, line: int, row: Row) -> Attempt | None:
    artifact = source.artifact
    if isinstance(row, Lost):
        lose(artifact, row)
        return None
    if not tables.is_row(row, columns):
        skip(artifact, "bad_shape")
        return None
    return attempt_of(source, columns, is_reward, line, row)


def attempt_of(source: Input, columns: tables.Columns, is_reward: bool, line: int, row: Mapping[str, Any]) -> Attempt:
    artifact = source.artifact
    read = {name: row[column] for name, column in columns.settings.items() if _is_setting(row.get(column))}
    observed = {knob: read[knob] for knob in tables.KNOBS if knob in read}
    passed, score = row.get(columns.passed or ""), tables.score_of(row.get(columns.score or ""))
    solved = tables.verdict(passed)
    reward = score if is_reward else None if solved is None else float(solved)
    named, run = row.get(columns.task or ""), read.get("run_id")
    task = canonical(str(named)) if tables.is_name(named) else None
    became = "not judged" if reward is None else f"reward {reward:g}"
    status = read.get("exit_status") or (passed if isinstance(passed, str) and tables.is_missing(passed) else None)
    seconds = tables.score_of(read.get("wall_time_s"))
    part = Attempt(
        root=f"{artifact.path}/{line}", scope="trial", task_id=task, reward=reward, observed=observed,
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
    text = f"row {line}: {'' if task is None else f'{named} '}{became}"
    fields += [f"knobs.{knob}" for knob in observed]
    part.statements = source.states(text, ["reward", *fields], line)
    return part


_FIELDS = ("rewards", "exit_status", "cost_usd", "input_tokens", "output_tokens", "wall_time_s", "patch")


def _is_setting(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) for item in value)
    missing = isinstance(value, bool) or value == "" or value != value  # noqa: PLR0124  (what is no number)
    if isinstance(value, str) and len(value) > tables.LONGEST_NAME:
        return False  # a text, such as the definitions of all tools
    return isinstance(value, str | int | float) and not missing


FORMAT = Format(
    name="outcome-table",
    version=4,
    claims=claims,
    pieces=pieces,
    of_json=None,
    weight=500,
    snapshots=False,
)
