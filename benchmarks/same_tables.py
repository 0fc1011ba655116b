"""Whether two stores hold the same tables: after a refactoring, under another Python, in another order of files.

    python -m benchmarks.same_tables STORE STORE [--without TABLE.COLUMN ...] [--json]

All tables but `findings`, which are made of the others. Signals that nobody asked for are computed first. A line a
table: its rows, and a hash of them in any order. For a table that differs, the columns that only one store has, how
many rows only one store has, and the first of those beside the row of the other that is most like it, as far as they
differ. Values are compared exactly: a number that differs in its last bit differs. Ends with 1 when anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentsignals.store import Store
from agentsignals.store.query import NAMES, connect, execute

AT_ONCE = 10_000
"""Rows read at once."""
ASKED = 10_000
"""Rows of the other store that one row is held against, at most."""
SHOWN = 300
"""Characters of a value that are shown."""

Row = tuple[Any, ...]


def columns_of(store: Store, table: str) -> list[str]:
    """The names of a table's columns, in order."""
    return [str(name) for name in store.sql(f'SELECT * FROM "{table}" LIMIT 0').columns]


def rows_of(store: Store, table: str, columns: list[str]) -> Iterator[tuple[bytes, Row]]:
    """Every row with a digest of its values; `repr` of a float is exact."""
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    asked = execute(connect(store), f'SELECT {names} FROM "{table}"')
    while rows := asked.fetchmany(AT_ONCE):
        for row in rows:
            yield hashlib.blake2b(repr(row).encode("utf-8", "backslashreplace"), digest_size=16).digest(), row


def hash_of(digests: Counter[bytes]) -> str:
    """One hash of rows in whatever order."""
    return hashlib.sha256(b"".join(sorted(digests.elements()))).hexdigest()[:16]


def rows_among(store: Store, table: str, columns: list[str], wanted: Counter[bytes], most: int) -> list[Row]:
    """The rows of these digests, so many at most, least first."""
    rows = []
    for digest, row in rows_of(store, table, columns):
        if digest in wanted:
            rows.append(row)
            if len(rows) == most:
                break
    return sorted(rows, key=repr)


def compared(first: Store, second: Store, table: str, without: set[str]) -> dict[str, Any]:
    """What is to be said of one table of both stores."""
    named = [[c for c in columns_of(s, table) if f"{table}.{c}" not in without] for s in (first, second)]
    columns = [name for name in named[0] if name in named[1]]
    if not columns:
        return {"table": table, "same": named[0] == named[1], "columns_of_one": named}
    digests = [Counter(digest for digest, _ in rows_of(s, table, columns)) for s in (first, second)]
    told: dict[str, Any] = {
        "table": table,
        "rows": [d.total() for d in digests],
        "hash": [hash_of(d) for d in digests],
        "columns_of_one": [[c for c in a if c not in b] for a, b in (named, named[::-1])],
    }
    alone = [digests[0] - digests[1], digests[1] - digests[0]]
    told["rows_of_one"] = [d.total() for d in alone]
    told["same"] = not any(told["rows_of_one"]) and not any(told["columns_of_one"])
    if any(alone):
        told["example"] = example(first, second, table, columns, alone)
    return told


def example(
    first: Store, second: Store, table: str, columns: list[str], alone: list[Counter[bytes]]
) -> dict[str, list[str]]:
    """Column to its value in both: of a row that only one store has, and the most similar that only the other has."""
    one = rows_among(first, table, columns, alone[0], ASKED)[:1]
    others = rows_among(second, table, columns, alone[1], ASKED)
    if not one or not others:
        [row] = one or others[:1]
        return {c: [repr(v)[:SHOWN], "no such row"][:: 1 if one else -1] for c, v in zip(columns, row, strict=True)}
    like = max(others, key=lambda other: sum(repr(a) == repr(b) for a, b in zip(one[0], other, strict=True)))
    pairs = list(zip(columns, one[0], like, strict=True))
    same = {c: [repr(a)[:SHOWN]] for c, a, b in pairs[:3] if repr(a) == repr(b)}
    return same | {c: [part(a, b), part(b, a)] for c, a, b in pairs if repr(a) != repr(b)}


def part(value: object, other: object) -> str:
    """A value from shortly before the place where it begins to differ."""
    one, two = repr(value), repr(other)
    at = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    begin = max(0, at - 40)
    return ("…" if begin else "") + one[begin : begin + SHOWN]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs=2, type=Path, metavar="STORE")
    parser.add_argument("--without", nargs="*", default=[], metavar="TABLE.COLUMN", help="columns to leave out")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    first, second = (Store(folder) for folder in options.stores)
    for store in (first, second):
        store.require()
    told = [compared(first, second, table, set(options.without)) for table in NAMES if table != "findings"]
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        for one in told:
            rows, hashes = one.get("rows", [0, 0]), one.get("hash", ["no columns"])
            if one["same"]:
                print(f"{one['table']:22} {rows[0]:>10,} rows  {hashes[0]}")
                continue
            print(f"{one['table']:22} {rows[0]:>10,} and {rows[1]:,} rows  {' and '.join(hashes)}  DIFFER")
            print(f"  only in one: columns {one['columns_of_one']}, rows {one.get('rows_of_one')}")
            for column, values in one.get("example", {}).items():
                print(f"  {column}: " + "\n    and ".join(values))
        apart = sum(not one["same"] for one in told)
        print(f"{len(told)} tables, {sum(one.get('rows', [0])[0] for one in told):,} rows: {apart} tables differ")
    sys.exit(any(not one["same"] for one in told))


if __name__ == "__main__":
    main()
