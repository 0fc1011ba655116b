"""Replication of published claims: each is computed and judged pass, fail, or untestable with a reason.

A YAML file states what was published, how to recompute it, and the tolerance. A claim is computed by its own SQL
(`query`), by a shared `recipe`, or by a study's `finding`; one that cannot be computed says what it `needs`. SQL
queries the tables that `over` names, or the store's. A table is files, a query over the store, or computed from
published runs.

A claims file may come from anywhere: its SQL sees only the tables it names, changes nothing that another claim sees,
and is stopped if it does not end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, Literal

import duckdb
import msgspec
import yaml
from msgspec import Struct, field

from agentsignals.errors import (
    ClaimsError,
    LabError,
    QueryError,
    SandboxError,
    SourceError,
    UnknownSource,
    UsageError,
)
from agentsignals.model import Absent
from agentsignals.questions.findings import Reader
from agentsignals.questions.question import Finding
from agentsignals.questions.studies import studies
from agentsignals.sources import RawFile, Unreadable, hub, open_source, read
from agentsignals.sources.local import commits_in
from agentsignals.store import Store
from agentsignals.store.query import parse_select, path_list, readable

SETS = Path(__file__).parent / "claim_sets"
"""Claim sets shipped with the package."""

Plain = bool | int | float | str
Value = Plain | dict[str, Plain]
"""One value, or several by name."""
Type = Literal["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"]

_MOST_BYTES = 4_000_000
_DEEPEST = 20
_RECIPE = "pip install ./packages/lab ./packages/lab/recipes/emotion_lab"
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """Rows that claims are computed from: files in the data folder, or a query over the store."""

    files: tuple[str, ...] = ()
    """Patterns below the data folder; the first with a match counts. Parquet, CSV or JSON lines."""
    columns: dict[str, Type] = field(default_factory=dict)
    """Columns to read, with their types; a file need not have all. Empty: all, as they are."""
    store: str = ""
    """SQL for the same rows from the store, used without a data folder."""
    computed: Literal["", "rescored", "first_attempts", "markers", "directions", "rises"] = ""
    """A table of the installed recipe of the published study, about the `run` that a claim's `with` names, and its
    `evaluator`. Stored code runs in the sandbox."""
    rows_are: str = ""
    """Description of the rows, for a store without any."""


class Snapshot(Struct, frozen=True, forbid_unknown_fields=True):
    """A state of a living data set. Its claims do not apply to other data."""

    query: str
    over: str
    says: str


class Claim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"arguments": "with"}):
    """One published statement with its number."""

    id: str
    expected: Value
    text: str = ""
    query: str = ""
    """SELECT of one row: the value, or several by name; a column `n` holds the number of observations."""
    recipe: str = ""
    finding: str = ""
    needs: str = ""
    over: str | dict[str, str] = ""
    """The table that the SQL calls `rows`, or tables by the names it uses."""
    arguments: dict[str, Plain] = field(default_factory=dict)
    """Values of the SQL's `$names`; `with` in the file."""
    tolerance: float | str = 0.0
    """Allowed difference, in the value's unit or as `10%` of what is expected."""
    source: str = ""
    definition: str = ""
    note: str = ""
    prior_result: Literal["", "does not reproduce"] = ""
    """Result of earlier replications; the claim is computed and judged all the same."""
    snapshot: str = ""


class UnreadableClaim(Struct, frozen=True):
    """An invalid entry of the file, with the reason."""

    id: str
    why: str


class ClaimSet(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of claims."""

    claims: list[Any]
    about: str = ""
    source: str = ""
    data: str = ""
    """Description of `--data` for these claims."""
    tables: dict[str, Table] = field(default_factory=dict)
    recipes: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)

    def entries(self) -> list[Claim | UnreadableClaim]:
        """Return the claims in order. An invalid one does not affect the others."""
        read: list[Claim | UnreadableClaim] = []
        seen: set[str] = set()
        for n, raw in enumerate(self.claims, 1):
            named = raw.get("id") if isinstance(raw, dict) else None
            called = named if isinstance(named, str) and named else f"claim {n}"
            entry: Claim | UnreadableClaim
            try:
                entry = msgspec.convert(raw, Claim)
                if wrong := _wrong(entry, self):
                    entry = UnreadableClaim(called, wrong)
            except ValueError as problem:
                entry = UnreadableClaim(called, str(problem))
            again = entry.id in seen
            seen.add(entry.id)
            read.append(UnreadableClaim(entry.id, "an earlier claim has this id") if again else entry)
        return read


def names() -> list[str]:
    return sorted(path.stem for path in SETS.glob("*.yaml"))


def load(claims: str | Path) -> ClaimSet:
    """Load the claim set of that name, or from that file. UsageError if there is none, ClaimsError if it is invalid."""
    path = SETS / f"{claims}.yaml" if str(claims) in names() else Path(claims)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ClaimsError(f"The claims file {path} has over {_MOST_BYTES:,} bytes.", "Split it into smaller files.")
        content = path.read_bytes()
    except OSError as problem:
        raise UsageError(
            f"No claims {str(claims)!r}: neither a built-in set nor a readable file ({problem.strerror}).",
            f"Built-in sets: {', '.join(names())}.",
        ) from problem
    return parse(content, str(path))


def parse(content: bytes, name: str) -> ClaimSet:
    """Parse a YAML document of claims. ClaimsError if it is invalid as a whole."""
    try:
        # Aliases and merges can expand endlessly, and deep nesting exhausts the loader's stack.
        depth = 0
        for event in yaml.parse(content, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"line {event.start_mark.line + 1} has a YAML alias (*name): write out its value")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError(f"line {event.start_mark.line + 1} is nested more than {_DEEPEST} levels deep")
        return msgspec.convert(yaml.load(content, Loader=_LOADER), ClaimSet)  # noqa: S506  (a safe loader)
    except (yaml.YAMLError, ValueError) as problem:  # msgspec's errors are values', too
        reason = " ".join(str(problem).split())
        raise ClaimsError(f"{name} is no claims file: {reason}", "See docs/replicate.md for the format.") from problem


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _wrong(claim: Claim, inside: ClaimSet) -> str:
    """Return what is wrong with a claim's declaration; empty if nothing is."""
    ways = [way for way in ("query", "recipe", "finding", "needs") if getattr(claim, way)]
    unknown = sorted(set(tables_of(claim).values()) - set(inside.tables))
    if len(ways) != 1:
        return f"of query, recipe, finding and needs it has {' and '.join(ways) or 'none'}; exactly one is needed"
    if claim.recipe and claim.recipe not in inside.recipes:
        return f"there is no recipe {claim.recipe!r}"
    if unknown:
        return f"there is no table {unknown[0]!r}"
    if "run" not in claim.arguments and any(inside.tables[name].computed for name in tables_of(claim).values()):
        return "a computed table needs a run in `with`"
    if claim.snapshot and claim.snapshot not in inside.snapshots:
        return f"there is no snapshot {claim.snapshot!r}"
    if isinstance(claim.tolerance, str) and not _PERCENT.fullmatch(claim.tolerance):
        return f"the tolerance {claim.tolerance!r} is neither a number nor a percentage"
    return ""


def tables_of(claim: Claim) -> dict[str, str]:
    if isinstance(claim.over, str):
        return {"rows": claim.over} if claim.over else {}
    return claim.over


def tolerance_of(claim: Claim, expected: Plain) -> float:
    """Return the allowed difference in the value's unit; 0 for text and booleans."""
    if isinstance(expected, (bool, str)):
        return 0.0
    if isinstance(claim.tolerance, str):
        return abs(expected) * float(claim.tolerance.rstrip(" %")) / 100
    return float(claim.tolerance)


# -- verdicts ----------------------------------------------------------------------------------------------------------


Status = Literal["pass", "fail", "untestable"]

_FLOAT_SLACK = 1e-9


class Verdict(Struct, frozen=True, kw_only=True):
    claim: str
    status: Status
    expected: Value | None
    computed: Value | None
    """None if nothing could be computed; `note` says why. On other data than the claim's: its value, and the claim is
    untestable."""
    tolerance: float | dict[str, float]
    """In the unit of the value; by name if the claim states several."""
    source: str
    note: str
    why: str
    """Reason why it did not pass; empty if it did. `note` repeats it before other remarks."""
    n: int | None = None
    text: str = ""
    prior_result: str = ""
    """`does not reproduce` if that was found before: then a failure is no news."""


def replicate(claims: str | Path, data: Path | str | None = None, store: Store | None = None) -> list[Verdict]:
    """Check the claims of a set or a YAML file, in order.

    `data`: what the claims are about: a folder, a file, a data set in a cache of the Hub's, or any source that
    `analyze` takes, whose files are fetched; without it the store is used where the set allows it. Missing data makes
    a claim untestable; damaged data makes it fail. SourceError if `data` does not exist, UsageError or ClaimsError if
    there are no such claims.
    """

    claim_set = load(claims)
    with TemporaryDirectory(prefix="agentsignals-claims-") as fetched:
        folder = _data_folder(str(data), claim_set, Path(fetched)) if data is not None else None
        ground = ClaimContext(claim_set.tables, folder, store)
        return [_checked(entry, claim_set, ground) for entry in claim_set.entries()]


def _checked(entry: Claim | UnreadableClaim, claim_set: ClaimSet, ground: ClaimContext) -> Verdict:
    if not isinstance(entry, UnreadableClaim):
        return _verdict(entry, claim_set, ground)
    why = f"the claim cannot be read: {entry.why}"
    return Verdict(
        claim=entry.id, status="untestable", expected=None, computed=None, tolerance=0.0,
        source=claim_set.source, note=why, why=why,
    )  # fmt: skip


_ALL_FILES = "The claims need every file of their data: make this one readable and run again."


def _data_folder(data: str, claim_set: ClaimSet, fetched: Path) -> Path:
    """Return the folder of the data. Files of other sources than a folder or the Hub are put into `fetched`."""
    patterns = [pattern for table in claim_set.tables.values() for pattern in table.files]
    if hub.accepts(data):
        return hub.folder_of(data, patterns)
    folder = Path(data).expanduser()
    if not folder.exists():
        try:
            listed = [*open_source(data)]
        except UnknownSource:
            says = f"Give --data the folder or address of {claim_set.data or 'the data of the claims'}."
            raise SourceError(f"The data folder {folder} does not exist.", says) from None
        below = f"{data.rstrip('/')}/"
        wanted = [f for f in listed if any(PurePosixPath(f.uri).match(pattern) for pattern in patterns)]
        # A claim checked on a part of its data would be told as wrong.
        if (lost := next((f for f in wanted if isinstance(f, Unreadable)), None)) is not None:
            raise SourceError(f"{lost.uri} cannot be read: {lost.reason}.", _ALL_FILES)
        files = [f for f in wanted if isinstance(f, RawFile)]
        for file, content in zip(files, read(files), strict=True):
            if isinstance(content, Unreadable):
                raise SourceError(f"{file.uri} cannot be read: {content.reason}.", _ALL_FILES)
            target = fetched / PurePosixPath(file.uri.removeprefix(below).lstrip("/"))
            if not target.resolve().is_relative_to(fetched.resolve()):
                raise SourceError(f"The path {file.uri} points outside of the data ({data}).", "Rename that file.")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return fetched
    commits = commits_in(str(folder)) if (folder / "blobs").is_dir() else []
    return Path(commits[0]) if commits else folder


def _verdict(claim: Claim, claim_set: ClaimSet, ground: ClaimContext) -> Verdict:
    """Compute a claim and compare it with the published value: pass, fail, or untestable with the reason."""
    computed = ground.computed(claim, claim_set)
    answer = computed
    if claim.snapshot:  # on other data than the claim's: its value, and the claim is untestable
        snapshot = claim_set.snapshots[claim.snapshot]
        there = ground.ask(snapshot.query, {"rows": snapshot.over}, {})
        if isinstance(there, Absent):
            answer = there
        elif there.value is not True:
            answer = Absent("not_applicable", f"the data is not snapshot {claim.snapshot}: {snapshot.says}")
    status: Status = "pass"
    if isinstance(answer, Absent):
        status, why = "untestable", f"{answer.reason}: {answer.detail}"
        if answer.reason == "parse_error":
            status = "fail"
    elif why := _differs(claim, answer.value):
        status = "fail"
    expectation = ""
    if claim.prior_result and status != "untestable":
        passed = f"was recorded as: {claim.prior_result}; on this data it reproduces"
        expectation = passed if status == "pass" else f"recorded before: {claim.prior_result}"
    tolerance: float | dict[str, float]
    if isinstance(claim.expected, dict):
        tolerance = {name: tolerance_of(claim, value) for name, value in claim.expected.items()}
    else:
        tolerance = tolerance_of(claim, claim.expected)
    return Verdict(
        claim=claim.id,
        status=status,
        expected=claim.expected,
        computed=None if isinstance(computed, Absent) else computed.value,
        tolerance=tolerance,
        source=claim.source or claim_set.source,
        note="; ".join(part for part in (why, expectation, claim.definition, claim.note) if part),
        why=why,
        n=None if isinstance(computed, Absent) else computed.n,
        text=claim.text,
        prior_result=claim.prior_result,
    )


def _differs(claim: Claim, computed: Value) -> str:
    """Return what differs, as text; empty within the tolerance."""
    if not isinstance(claim.expected, dict):
        if isinstance(computed, dict):
            return f"one value is expected, but the query returned {', '.join(computed)}"
        return "" if _near(claim, claim.expected, computed) else "off by more than the tolerance"
    if not isinstance(computed, dict):
        return f"{', '.join(claim.expected)} are expected, but the query returned one value"
    off = [
        name
        for name, value in claim.expected.items()
        if name not in computed or not _near(claim, value, computed[name])
    ]
    return f"off by more than the tolerance: {', '.join(off)}" if off else ""


def _near(claim: Claim, expected: Plain, computed: Plain) -> bool:
    if isinstance(expected, (bool, str)) or isinstance(computed, (bool, str)):
        return type(expected) is type(computed) and expected == computed
    return abs(computed - expected) <= tolerance_of(claim, expected) + _FLOAT_SLACK


# -- data that claims are computed from --------------------------------------------------------------------------------


SECONDS_A_CLAIM = 60.0
"""No query over a data set of this size needs as long; one that does is most likely endless."""
MEMORY = "4GB"
"""Memory limit of a query over files. The largest known set has 2.7 million rows and is read by column."""

_READERS = {
    ".parquet": "read_parquet({files}, union_by_name=true)",
    ".csv": "read_csv({files}, union_by_name=true, header=true, all_varchar=true, delim=',', quote='\"', escape='\"')",
    ".jsonl": "read_json({files}, union_by_name=true, format='newline_delimited')",
    ".json": "read_json({files}, union_by_name=true)",
}
_COLUMN_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
_PACKED = (".gz", ".zst")
_FAULT_OF_THE_QUERY = (duckdb.ParserException, duckdb.PermissionException, duckdb.OutOfMemoryException)
_NOT_THERE = (duckdb.BinderException, duckdb.CatalogException)
_LONGEST = 200
_PREFIX = re.compile(r"^[A-Za-z ]+ Error: ")


class Answer(Struct, frozen=True):
    """Result of a query: the value, or several by name; n if it states the number of observations."""

    value: Value
    n: int | None


class TableLocation(Struct, frozen=True):
    """The connection that holds a table's rows, and the SQL that returns them."""

    connection: duckdb.DuckDBPyConnection
    rows: str
    in_files: bool


class ClaimContext:
    """Answers claims' queries over the data folder and the store.

    `Absent` if there is nothing to answer from; its reason is `parse_error` if the data is damaged.
    """

    def __init__(self, tables: Mapping[str, Table], data: Path | None, store: Store | None) -> None:
        self._tables = tables
        self._data = data
        self._store = store
        self._files = {name: _files(data, table.files) for name, table in tables.items()} if data else {}
        self._places: dict[tuple[str, ...], TableLocation | Absent] = {}
        """By the table's name; of a computed table by its run and evaluator, too."""
        self._findings: dict[str, dict[str, Finding]] = {}
        """Findings by study."""
        self._over_files: duckdb.DuckDBPyConnection | None = None
        self._over_store: duckdb.DuckDBPyConnection | None = None

    def computed(self, claim: Claim, claim_set: ClaimSet) -> Answer | Absent:
        if claim.needs:
            return Absent("missing_artifact", f"needs {claim.needs}")
        if claim.finding:
            return self.finding(claim.finding)
        return self.ask(claim.query or claim_set.recipes[claim.recipe], tables_of(claim), claim.arguments)

    def ask(self, sql: str, over: Mapping[str, str], arguments: Mapping[str, Plain]) -> Answer | Absent:
        """Return the one row that the SQL gives over these tables, or over the store's own."""
        located = []
        for name, table in over.items():
            place = self._place_of(table, self._tables[table], arguments)
            if isinstance(place, Absent):
                return place
            located.append((name, place))
        connection = located[0][1].connection if located else self._store_connection()
        if connection is None:
            return Absent("missing_artifact", "there is no store")
        with_rows = ", ".join(f"{_name(name)} AS ({place.rows}\n)" for name, place in located)
        asked = f"WITH {with_rows} SELECT * FROM ({sql.strip().rstrip(';')}\n)" if located else sql  # noqa: S608
        return _answer(connection, asked, arguments, bool(located) and located[0][1].in_files)

    def finding(self, wanted: str) -> Answer | Absent:
        """Return the value of a study's finding over the store."""
        if self._store is None:
            return Absent("missing_artifact", "there is no store")
        first = wanted.partition(".")[0]
        for declared in sorted(studies().values(), key=lambda study: not study.name.startswith(first)):
            if declared.name not in self._findings:
                outcome = declared.run(Reader(self._store, [declared]).inputs(declared))
                self._findings[declared.name] = {finding.id: finding for finding in outcome.findings}
            if finding := self._findings[declared.name].get(wanted):
                reason = finding.note or "the study returned no value"
                return Absent("none_found", reason) if finding.value is None else Answer(finding.value, finding.n)
        return Absent("missing_field", f"no study has the finding {wanted!r}")

    def _place_of(self, name: str, table: Table, arguments: Mapping[str, Plain]) -> TableLocation | Absent:
        """Return where a claim's table can be queried: computed rows, files, or the store; each is made once."""
        key: tuple[str, ...] = (name,)
        if table.computed:
            key = (table.computed, str(arguments["run"]), str(arguments.get("evaluator", "1")))
        if key not in self._places:
            if table.computed:
                place = self._computed(*key)
            elif self._data is not None and table.files:
                place = self._in_files(name, table)
            else:
                place = self._in_store(name, table)
            self._places[key] = place
        return self._places[key]

    def _computed(self, table: str, run: str, evaluator: str) -> TableLocation | Absent:
        """Load a table that the installed recipe computes from published runs, or the reason why it cannot."""
        if self._data is None or not self._data.is_dir():
            return Absent("missing_artifact", "needs the folder of published runs: add --data FOLDER")
        try:
            recipe = next(iter(entry_points(group="agentsignals.claims", name="emotion-lab")), None)
            if recipe is None:
                return Absent("backend_disabled", f"needs the recipe of the published study: {_RECIPE}")
            rows = recipe.load()(self._data, table, run, evaluator)
        except ImportError as problem:
            return Absent("backend_disabled", f"needs {problem.name}, which is not installed: {_RECIPE}")
        except LabError as problem:
            return Absent("parse_error", problem.message)
        except SandboxError as problem:
            return Absent("not_computable", f"needs a sandbox: {problem.message}")
        if isinstance(rows, Absent):
            return rows
        kinds = {name: next((type(v) for row in rows if (v := row[name]) is not None), bool) for name in rows[0]}
        columns = ", ".join(f"{_name(name)} {_COLUMN_TYPES[kind]}" for name, kind in kinds.items())
        connection, made = self._file_connection(), f"source_{len(self._places)}"
        connection.execute(f"CREATE TABLE {made} ({columns})")
        places = ", ".join("?" * len(kinds))
        connection.executemany(f"INSERT INTO {made} VALUES ({places})", [list(row.values()) for row in rows])  # noqa: S608
        return TableLocation(connection, f"SELECT * FROM {made}", in_files=True)  # noqa: S608  (a name of ours)

    def _in_store(self, name: str, table: Table) -> TableLocation | Absent:
        if not table.store:
            return Absent("missing_artifact", f"needs {' or '.join(table.files)}; add its folder with --data")
        connection = self._store_connection()
        if connection is None:
            return Absent(
                "missing_artifact", f"needs {table.files[0] if table.files else 'a store'} (--data), or a store"
            )
        sessions = len(self._store.manifest.sessions) if self._store is not None else 0
        none = f"of the store's {sessions:,} sessions none gives {table.rows_are or f'a row of {name!r}'}"
        return _not_empty(TableLocation(connection, table.store, in_files=False), none)

    def _in_files(self, name: str, table: Table) -> TableLocation | Absent:
        files = self._files[name]
        if not files:
            return Absent("missing_artifact", f"{' or '.join(table.files)} is not in the data folder")
        suffix = _kind(files[0])
        listed = path_list([str(f) for f in files if _kind(f) == suffix])
        reader = _READERS[suffix].format(files=listed)
        connection = self._file_connection()
        # CSV is parsed once; Parquet is asked where it lies, column by column, as it may be large.
        kind = "VIEW" if suffix == ".parquet" else "TABLE"
        made = f"source_{len(self._places)}"
        try:
            there = {row[0].lower() for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()}  # noqa: S608  (quoted by path_list)
            read = [f"CAST({_name(c)} AS {t}) AS {_name(c)}" for c, t in table.columns.items() if c.lower() in there]
            if table.columns and not read:
                return Absent("missing_field", f"{files[0].name} has none of the columns {', '.join(table.columns)}")
            connection.execute(f"CREATE {kind} {made} AS SELECT {', '.join(read) or '*'} FROM {reader}")  # noqa: S608
        except duckdb.Error as problem:
            return Absent("parse_error", f"{files[0].name} can't be read: {_message(problem)}")
        location = TableLocation(connection, f"SELECT * FROM {made}", in_files=True)  # noqa: S608  (a name of ours)
        return _not_empty(location, f"{files[0].name} has no rows")

    def _file_connection(self) -> duckdb.DuckDBPyConnection:
        if self._over_files is None:
            connection = self._over_files = duckdb.connect(":memory:")
            allowed = sorted({str(f) for files in self._files.values() for f in files})
            connection.execute(f"SET allowed_paths={path_list(allowed)}")
            connection.execute(f"SET memory_limit='{MEMORY}'")
            connection.execute("SET temp_directory=''")
            connection.execute("SET enable_external_access=false")
            connection.execute("SET lock_configuration=true")
        return self._over_files

    def _store_connection(self) -> duckdb.DuckDBPyConnection | None:
        if self._over_store is None and self._store is not None:
            self._over_store = readable(self._store)
        return self._over_store


def _not_empty(place: TableLocation, otherwise: str) -> TableLocation | Absent:
    answer = _answer(place.connection, f"SELECT count(*) FROM ({place.rows}\n)", {}, place.in_files)  # noqa: S608
    if isinstance(answer, Absent):
        return answer
    return place if answer.value else Absent("none_found", otherwise)


def _answer(
    connection: duckdb.DuckDBPyConnection, sql: str, arguments: Mapping[str, Plain], in_files: bool
) -> Answer | Absent:
    """Run a claim's query, which must return one row, within its time limit."""
    watch = Timer(SECONDS_A_CLAIM, connection.interrupt)
    watch.daemon = True
    try:
        statements = connection.extract_statements(parse_select(connection, sql).sql)
        if set(statements[0].named_parameters) != set(arguments):
            return Absent("not_computable", "the names after `$` in the query do not match `with`")
        watch.start()
        asked = connection.execute(statements[0], dict(arguments))
        names, rows = [column[0] for column in asked.description or ()], asked.fetchmany(2)
    except QueryError as problem:
        return Absent("not_computable", f"the query is not one SELECT: {problem.message}")
    except duckdb.Error as problem:
        if isinstance(problem, duckdb.InterruptException):
            return Absent("not_computable", f"the query was stopped after {SECONDS_A_CLAIM:.0f} s")
        if isinstance(problem, _NOT_THERE):
            return Absent("missing_field", _message(problem))
        damaged = in_files and not isinstance(problem, _FAULT_OF_THE_QUERY)
        return Absent("parse_error" if damaged else "not_computable", _message(problem))
    finally:
        watch.cancel()
    if len(rows) != 1:
        return Absent(
            "none_found" if not rows else "not_computable", f"the query gave {len(rows) or 'no'} rows instead of one"
        )
    row: dict[str, Any] = {}
    for name, value in zip(names, rows[0], strict=True):
        if isinstance(value, Decimal):
            row[name] = float(value)
        else:
            is_plain = value is None or isinstance(value, (bool, int, float, str))
            row[name] = value if is_plain else str(value)[:_LONGEST]
    n = row.pop("n", None)
    if not row or None in row.values():
        without = [name for name, value in row.items() if value is None]
        return Absent("none_found", f"the data has no value for {', '.join(without) or 'this'}")
    answer: Any = next(iter(row.values())) if len(row) == 1 else row
    return Answer(answer, n if isinstance(n, int) else None)


def _files(data: Path, patterns: tuple[str, ...]) -> list[Path]:
    """Files of the first pattern with a match. The data may be named as a whole, or by its first folder or file."""
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if ".." in parts or PurePosixPath(pattern).is_absolute():
            continue
        if data.is_file():
            files = [data] if data.absolute().match(pattern) or data.resolve().match(pattern) else []
        else:
            inner = str(PurePosixPath(*parts[1:])) if len(parts) > 1 and parts[0] == data.name else pattern
            files = sorted(data.glob(pattern)) or sorted(data.glob(inner))
        # Not resolved: in the Hub's cache a file is a link to a blob, whose name says nothing of it.
        files = [f.absolute() for f in files if _kind(f) in _READERS and f.is_file()]
        if files:
            return files
    return []


def _kind(file: Path) -> str:
    name = file.with_suffix("") if file.suffix.lower() in _PACKED else file
    return name.suffix.lower()


def _message(problem: duckdb.Error) -> str:
    return _PREFIX.sub("", " ".join(str(problem).split()))[:_LONGEST]


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
