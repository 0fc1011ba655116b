"""What claims are computed from: tables over files of a data folder, or over the store, asked in SQL.

A claims file may come from anywhere: its SQL sees the tables it names and nothing else on the machine, changes nothing
that another claim sees, and is stopped when it does not end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import TYPE_CHECKING, Any

import duckdb
from msgspec import Struct

from agentsignals.analysis import studies
from agentsignals.analysis.study import Finding
from agentsignals.errors import LabError, QueryError, SandboxError
from agentsignals.findings.inputs import Reader
from agentsignals.model import Absent
from agentsignals.replicate.claims import Plain, Table, Value
from agentsignals.store import Store
from agentsignals.store.query import readable
from agentsignals.store.selecting import one_select

if TYPE_CHECKING:
    from agentsignals.lab.evaluation.audit import Audit, Figures

SECONDS_A_CLAIM = 60.0
"""No query over a data set of this size needs as long; one that does is most likely endless."""
MEMORY = "4GB"
"""What a query over files may take: the largest known set has 2.7 million rows and is read column by column."""

_READERS = {
    ".parquet": "read_parquet({files}, union_by_name=true)",
    ".csv": "read_csv({files}, union_by_name=true, header=true, all_varchar=true, delim=',', quote='\"', escape='\"')",
    ".jsonl": "read_json({files}, union_by_name=true, format='newline_delimited')",
}
_FAULT_OF_THE_QUERY = (duckdb.ParserException, duckdb.PermissionException, duckdb.OutOfMemoryException)
_NOT_THERE = (duckdb.BinderException, duckdb.CatalogException)
_LONGEST = 200
_PREFIX = re.compile(r"^[A-Za-z ]+ Error: ")


class Answer(Struct, frozen=True):
    """What a query gave: the value, or several by name; n when it says how many observations it rests on."""

    value: Value
    n: int | None


class Place(Struct, frozen=True):
    """Where a table's rows are: the connection that has them, and the SQL that gives them there."""

    connection: duckdb.DuckDBPyConnection
    rows: str
    in_files: bool


class Ground:
    """Answers claims' queries. `Absent` when there is nothing to answer from; its reason is `parse_error` when there is
    something, and it is damaged.
    """

    def __init__(self, tables: Mapping[str, Table], data: Path | None, store: Store | None) -> None:
        self._tables = tables
        self._data = data
        self._store = store
        self._files = {name: _files(data, table.files) for name, table in tables.items()} if data else {}
        self._places: dict[str, Place | Absent] = {}
        self._findings: dict[str, dict[str, Finding]] = {}
        """Of each study that was run."""
        self._audit: Audit | None = None
        self._over_files: duckdb.DuckDBPyConnection | None = None
        self._over_store: duckdb.DuckDBPyConnection | None = None

    def ask(self, sql: str, over: Mapping[str, str], arguments: Mapping[str, Plain]) -> Answer | Absent:
        """The one row that the SQL gives over these tables; over the store's own when it names none."""
        places = {name: self._place(table) for name, table in over.items()}
        for place in places.values():
            if isinstance(place, Absent):
                return place
        located = [(name, place) for name, place in places.items() if isinstance(place, Place)]
        connection = located[0][1].connection if located else self._store_connection()
        if connection is None:
            return Absent("missing_artifact", "there is no store to ask")
        with_rows = ", ".join(f"{_name(name)} AS ({place.rows}\n)" for name, place in located)
        asked = f"WITH {with_rows} SELECT * FROM ({sql.strip().rstrip(';')}\n)" if located else sql  # noqa: S608
        return _answer(connection, asked, arguments, bool(located) and located[0][1].in_files)

    def finding(self, wanted: str) -> Answer | Absent:
        """The value of a study's finding, over the store."""
        if self._store is None:
            return Absent("missing_artifact", "there is no store to study")
        first = wanted.partition(".")[0]
        for declared in sorted(studies().values(), key=lambda study: not study.name.startswith(first)):
            if declared.name not in self._findings:
                outcome = declared.run(Reader(self._store, [declared]).inputs(declared))
                self._findings[declared.name] = {finding.id: finding for finding in outcome.findings}
            if finding := self._findings[declared.name].get(wanted):
                reason = finding.note or "the study gave no value"
                return Absent("none_found", reason) if finding.value is None else Answer(finding.value, finding.n)
        return Absent("missing_field", f"no study has the finding {wanted!r}")

    def audited(self, question: str, arguments: Mapping[str, Plain], wanted: Sequence[str]) -> Answer | Absent:
        """What the lab's audit answers about a published run in the data folder; stored code runs in the sandbox."""
        figures = self._audited(question, arguments)
        if isinstance(figures, Absent):
            return figures
        missing = [name for name in wanted if name not in figures.values]
        if missing:
            return Absent("missing_field", f"the audit's {question} has no value {missing[0]!r}")
        values: dict[str, Plain] = {name: figures.values[name] for name in wanted}
        return Answer(values if len(wanted) > 1 else values[wanted[0]], figures.n)

    def _audited(self, question: str, arguments: Mapping[str, Plain]) -> Figures | Absent:
        if self._data is None or not self._data.is_dir():
            return Absent("missing_artifact", "needs the folder of published runs; name it with --data")
        try:
            self._audit = self._audit or _audit_of(self._data)
            return self._audit.ask(question, str(arguments["run"]), str(arguments.get("evaluator", "1")))
        except ImportError as problem:
            return Absent("backend_disabled", f"needs the extra `lab` ({problem.name} is not installed)")
        except LabError as problem:
            return Absent("missing_artifact" if self._audit is None else "parse_error", problem.message)
        except SandboxError as problem:
            return Absent("not_computable", f"needs a sandbox: {problem.message}")

    def _place(self, table: str) -> Place | Absent:
        if table not in self._places:
            self._places[table] = self._place_of(table, self._tables[table])
        return self._places[table]

    def _place_of(self, name: str, table: Table) -> Place | Absent:
        if self._data is not None and table.files:
            return self._in_files(name, table)
        if not table.store:
            return Absent("missing_artifact", f"needs {' or '.join(table.files)}; name its folder with --data")
        connection = self._store_connection()
        if connection is None:
            return Absent(
                "missing_artifact", f"needs {table.files[0] if table.files else 'a store'} (--data), or a store"
            )
        sessions = len(self._store.manifest.sessions) if self._store is not None else 0
        none = f"of the store's {sessions:,} sessions none gives {table.rows_are or f'a row of {name!r}'}"
        return _not_empty(Place(connection, table.store, in_files=False), none)

    def _in_files(self, name: str, table: Table) -> Place | Absent:
        files = self._files[name]
        if not files:
            return Absent("missing_artifact", f"{' or '.join(table.files)} is not in the data folder")
        suffix = files[0].suffix.lower()
        listed = _list([str(f) for f in files if f.suffix.lower() == suffix])
        reader = _READERS[suffix].format(files=listed)
        connection = self._file_connection()
        # CSV is parsed once; Parquet is asked where it lies, column by column, as it may be large.
        kind = "VIEW" if suffix == ".parquet" else "TABLE"
        made = f"source_{len(self._places)}"
        try:
            there = {row[0].lower() for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()}  # noqa: S608  (quoted by _list)
            read = [f"CAST({_name(c)} AS {t}) AS {_name(c)}" for c, t in table.columns.items() if c.lower() in there]
            if table.columns and not read:
                return Absent("missing_field", f"{files[0].name} has none of the columns {', '.join(table.columns)}")
            connection.execute(f"CREATE {kind} {made} AS SELECT {', '.join(read) or '*'} FROM {reader}")  # noqa: S608
        except duckdb.Error as problem:
            return Absent("parse_error", f"{files[0].name} can't be read: {_message(problem)}")
        return _not_empty(Place(connection, f"SELECT * FROM {made}", in_files=True), f"{files[0].name} has no rows")  # noqa: S608  (a name of ours)

    def _file_connection(self) -> duckdb.DuckDBPyConnection:
        if self._over_files is None:
            self._over_files = duckdb.connect(":memory:")
            allowed = sorted({str(f) for files in self._files.values() for f in files})
            self._over_files.execute(f"SET allowed_paths={_list(allowed)}")
            self._over_files.execute(f"SET memory_limit='{MEMORY}'")
            self._over_files.execute("SET temp_directory=''")
            self._over_files.execute("SET enable_external_access=false")
            self._over_files.execute("SET lock_configuration=true")
        return self._over_files

    def _store_connection(self) -> duckdb.DuckDBPyConnection | None:
        if self._over_store is None and self._store is not None:
            self._over_store = readable(self._store)
        return self._over_store


def _not_empty(place: Place, otherwise: str) -> Place | Absent:
    answer = _answer(place.connection, f"SELECT count(*) FROM ({place.rows}\n)", {}, place.in_files)  # noqa: S608
    if isinstance(answer, Absent):
        return answer
    return place if answer.value else Absent("none_found", otherwise)


def _answer(
    connection: duckdb.DuckDBPyConnection, sql: str, arguments: Mapping[str, Plain], in_files: bool
) -> Answer | Absent:
    watch = Timer(SECONDS_A_CLAIM, connection.interrupt)
    watch.daemon = True
    try:
        statements = connection.extract_statements(one_select(connection, sql).sql)
        if set(statements[0].named_parameters) != set(arguments):
            return Absent("not_computable", "the names after `$` in the query are not those of `with`")
        watch.start()
        asked = connection.execute(statements[0], dict(arguments))
        names, rows = [column[0] for column in asked.description or ()], asked.fetchmany(2)
    except QueryError as problem:
        return Absent("not_computable", f"the query is not one SELECT: {problem.message}")
    except duckdb.Error as problem:
        return _refused(problem, in_files)
    finally:
        watch.cancel()
    return _of_row(names, rows)


def _refused(problem: duckdb.Error, in_files: bool) -> Absent:
    if isinstance(problem, duckdb.InterruptException):
        return Absent("not_computable", f"the query was stopped after {SECONDS_A_CLAIM:.0f} s")
    if isinstance(problem, _NOT_THERE):
        return Absent("missing_field", _message(problem))
    damaged = in_files and not isinstance(problem, _FAULT_OF_THE_QUERY)
    return Absent("parse_error" if damaged else "not_computable", _message(problem))


def _of_row(names: list[str], rows: list[tuple[Any, ...]]) -> Answer | Absent:
    if len(rows) != 1:
        return Absent(
            "none_found" if not rows else "not_computable", f"the query gave {len(rows) or 'no'} rows, not one"
        )
    row = {name: _plain(value) for name, value in zip(names, rows[0], strict=True)}
    n = row.pop("n", None)
    if not row or None in row.values():
        without = [name for name, value in row.items() if value is None]
        return Absent("none_found", f"the data has no value for {', '.join(without) or 'this'}")
    value: Any = next(iter(row.values())) if len(row) == 1 else row
    return Answer(value, n if isinstance(n, int) else None)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)[:_LONGEST]


def _audit_of(data: Path) -> Audit:
    from agentsignals.lab.evaluation.audit import Audit  # noqa: PLC0415  (only claims about the lab's runs need it)

    return Audit(data)


def _files(data: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files of the first pattern that matches any. The data may be named whole, or by its first folder or file."""
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if ".." in parts or PurePosixPath(pattern).is_absolute():
            continue
        if data.is_file():
            files = [data] if data.resolve().match(pattern) else []
        else:
            inner = str(PurePosixPath(*parts[1:])) if len(parts) > 1 and parts[0] == data.name else pattern
            files = sorted(data.glob(pattern)) or sorted(data.glob(inner))
        files = [f.resolve() for f in files if f.suffix.lower() in _READERS and f.is_file()]
        if files:
            return files
    return []


def _message(problem: duckdb.Error) -> str:
    return _PREFIX.sub("", " ".join(str(problem).split()))[:_LONGEST]


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _list(texts: list[str]) -> str:
    return "[" + ", ".join("'" + t.replace("'", "''") + "'" for t in texts) + "]"
