"""The findings of a store: the questions, the rows they are given, and the ranking of what they answer.

A finding is declared as `NAME_FINDING = Question(...)` in a file of this folder; none knows the store or another.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache, cached_property, partial
from itertools import chain
from math import fsum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.errors import UsageError
from agentsignals.model.registry import Registry, did_you_mean
from agentsignals.questions import compare, ranking
from agentsignals.questions.estimates import by, ranked, ruled
from agentsignals.questions.question import SIGNAL_PATH, Inputs, Question, Row, Rows, Study, Versions, formatted
from agentsignals.questions.ranking import (
    Answer,
    Bounds,
    Findings,
    Totals,
    candidate_answers,
    decode_findings,
    elsewhere,
    may_be_told,
    priced,
    ranked_answers,
    too_few_sessions,
)
from agentsignals.questions.sql import (
    BOUND,
    CALLED,
    CARRIED,
    CAUSES,
    ENGLISH_ONLY,
    FACTS,
    LIES,
    NAMED,
    PAID,
    PLACE,
    PLACED,
    SITES,
    place_by_session,
    unjudged,
    with_place,
)
from agentsignals.redaction import Redactor, with_texts
from agentsignals.store import Store, sidecars
from agentsignals.store.index import SCHEMA_VERSION, main_context
from agentsignals.store.query import (
    Connection,
    connect,
    execute_ours,
    materialize,
    path_list,
    signal_rows_query,
    split_by_rows,
    with_connection,
)
from agentsignals.store.shard_answers import Answer as ShardAnswer
from agentsignals.store.shard_answers import ShardAnswers

if TYPE_CHECKING:
    import duckdb


_LONGEST_ENDING = 12
_ROWS_A_FETCH = 10_000
_MOST_IN_A_SLICE = 25_000
"""Tool calls that DuckDB's windows and joins hold at once, some 1 KB each."""
_FEW_COLUMNS = 5
"""Of rows that are made once for several questions."""
_MANY = 30
"""From so many queries on what they ask is held."""
_EPOCH = datetime(1970, 1, 1)
_SOURCES = "SELECT DISTINCT cost_source FROM steps WHERE cost_source IS NOT NULL ORDER BY 1"


_Taken = TypeVar("_Taken")


class Reader:
    """Runs the queries of these studies and questions: equal ones once, their rows kept until the last has had them.

    A study sees the sessions of its context only. `context`: that of the studies which take either; without one,
    people's sessions when the store holds any. `labeller`: whose labels studies of labels take; without one, of those
    there are the one with most.
    """

    def __init__(
        self, store: Store, asking: Iterable[Question], context: str | None = None, labeller: str | None = None
    ) -> None:
        self._store = store
        self._labeller = labeller or ""
        self._contexts = set(store.contexts())
        self.context = context or main_context(store.contexts())
        self._connections: dict[str | None, Connection] = {}
        self._slices: dict[tuple[Connection, frozenset[str]], list[Connection]] = {}
        self._shard_answers: dict[str, ShardAnswers] = {}
        self._awaited: Counter[tuple[str, str]] = Counter()
        self._kept: dict[tuple[str, str], Any] = {}
        self._ids: dict[str, str] = {}
        self._places: dict[str, dict[str, str]] = {}
        self._sites: dict[str, dict[tuple[str | None, str | None], str | None]] = {}
        self._paid: dict[str, dict[str, dict[str, float]]] = {}
        self._unjudged: dict[str, dict[str, str]] = {}
        studies = list(asking)
        for study in studies:
            self._awaited.update((sql, self._of(study)) for sql in study.queries.values())
        every = {sql for study in studies for sql in study.queries.values()}
        sliced = {study.queries[name] for study in studies for name in study.sliced}
        self._queries = every if len(every - sliced) >= _MANY else frozenset()
        self._named = sorted({path for sql in every if NAMED in sql for path in SIGNAL_PATH.findall(sql)})
        self._needs = frozenset[str]().union(*(study.signals for study in studies))
        """Signals that the questions need."""
        store.require(self._needs)
        # Findings are asked at the end of a run, whose index is still in memory: 20 MB less of 27,300 sessions.
        self._threads = 0 if self._queries else 1
        endings = (PurePosixPath(uri).suffix.lower() for uri in store.manifest.no_traces())
        self._no_traces = dict(Counter(e if len(e) <= _LONGEST_ENDING else "" for e in endings))

    @cached_property
    def versions(self) -> Versions:
        """Versions that the store's values were computed with."""
        among = f"signal IN ({path_list(sorted(self._needs))[1:-1]})"
        of_signals = self._answer(f"SELECT signal, max(version) AS version FROM signals WHERE {among} GROUP BY signal")
        signals = dict(zip(*of_signals.columns("signal", "version"), strict=True))
        return Versions(SCHEMA_VERSION, signals, tuple(*self._answer(_SOURCES).columns("cost_source")))

    def inputs(self, study: Question) -> Inputs:
        """Return the rows and facts that a study is given."""
        context = self._of(study)
        asks = dict.fromkeys(study.sliced, self._by_slices) | dict.fromkeys(study.summed, self._summed)
        rows = {name: _made(self._answer(sql, context)) for name, sql in study.queries.items() if name not in asks}
        is_study = isinstance(study, Study)
        if is_study and context not in self._places:
            self._places[context] = place_by_session(self._answer(PLACED, context))
        if context not in self._unjudged:
            bound = ENGLISH_ONLY & self._needs
            counted = self._asked(self._summed, unjudged(bound), context) if bound else ()
            told = self._unjudged[context] = {}
            for path, rows_of in by(counted, "signal").items():
                unjudged_n, n = (sum(row[column] for row in rows_of) for column in ("unjudged", "n"))
                if unjudged_n:
                    of = "prompts" if any(row["of_turns"] for row in rows_of) else "sessions"
                    told[path] = f"{formatted(unjudged_n / n, 'share')} of {of} not judged: another language"
        return Inputs(
            rows=rows,
            many=_OnAsk(lambda name: self._asked(asks[name], study.queries[name], context)),
            unjudged=self._unjudged[context],
            paid=self._paid_by_cause(context) if study.needs_charges else {},
            # A sentence names no versions: to ask for them reads all values.
            versions=self.versions if is_study else Versions(SCHEMA_VERSION),
            places=self._places[context] if is_study else {},
            no_traces=self._no_traces,
            context=context,
            labeller=self._labeller,
        )

    def ask(self, sql: str, values: Mapping[str, Any], context: str) -> list[Row]:
        """The rows of one more question of ours, to the tables as studies see them; `values` are bound."""

        def take(connection: Connection) -> list[Row]:
            return list(self._rows(self._execute(sql, connection, dict(values))))

        return self._connected(take, context)

    def _connected(self, take: Callable[[Connection], _Taken], context: str) -> _Taken:
        return with_connection(self._store, take, context or None, self._connections, self._threads)

    def _paid_by_cause(self, context: str) -> dict[str, dict[str, float]]:
        if context not in self._paid:
            sessions, *paid = self._asked(self._by_slices, PAID, context).columns("session_id", *CAUSES)
            self._paid[context] = {
                cause: {session_id: usd for session_id, usd in zip(sessions, of, strict=True) if usd is not None}
                for cause, of in zip(CAUSES, paid, strict=True)
            }
        return self._paid[context]

    def _of(self, study: Question) -> str:
        """The context a study's rows are of; empty where nothing need be left out."""
        if study.context == "both":
            return ""
        wanted = self.context if study.context == "either" else study.context
        return wanted if self._contexts - {wanted} else ""

    def _answer(self, sql: str, context: str = "") -> Rows:
        return self._asked(self._whole, sql, context)

    def _asked(self, ask: Callable[[str, str, Connection], _Taken], sql: str, context: str) -> _Taken:
        """Return a query's answer. It is kept until the last question has had it."""
        answer: _Taken | None = self._kept.pop((sql, context), None)
        if answer is None:
            answer = self._connected(partial(ask, sql, context), context)
        self._awaited[sql, context] -= 1
        if self._awaited[sql, context] > 0:
            self._kept[sql, context] = answer
        return answer

    def _whole(self, sql: str, context: str, connection: Connection) -> Rows:
        return self._rows(self._execute(sql, connection), is_kept=self._awaited[sql, context] > 1)

    def _rows(self, asked: duckdb.DuckDBPyConnection, is_kept: bool = False) -> Rows:
        """What a query found. In rows that stay for a while names come again and again, each time as an object of its
        own: one takes the place of all, that of a session's id in other answers, too."""
        kinds = [(column[0], column[1].id) for column in asked.description or ()]
        shared: list[dict[str, str] | None] = [
            (self._ids if name == "session_id" else {}) if is_kept and kind in ("varchar", "enum") else None
            for name, kind in kinds
        ]
        columns: list[list[Any]] = [[] for _ in kinds]
        while some := asked.fetchmany(_ROWS_A_FETCH):
            for column, values, texts in zip(columns, zip(*some, strict=True), shared, strict=True):
                column.extend(values if texts is None else map(texts.setdefault, values, values))
        return Rows([name for name, _ in kinds], columns)

    def _by_slices(self, sql: str, context: str, connection: Connection) -> Rows:
        columns = self._placed(self._of_shards(sql, context, connection), context, connection)
        columns["session_id"] = list(map(self._ids.setdefault, columns["session_id"], columns["session_id"]))
        if sql == FACTS:
            times = {us: _EPOCH + timedelta(microseconds=us) for us in set(columns["started_at"]) if us is not None}
            columns["started_at"] = list(map(times.get, columns["started_at"]))
        return Rows(list(columns), list(columns.values()))

    def _summed(self, sql: str, context: str, connection: Connection) -> Rows:
        columns = self._placed(self._of_shards(sql, context, connection, is_sum=True), context, connection)
        return Rows(list(columns), list(columns.values()))

    def _of_shards(self, sql: str, context: str, connection: Connection, is_sum: bool = False) -> dict[str, list[Any]]:
        """The columns of what a query finds over some shards at a time, one after another."""
        if context not in self._shard_answers:
            self._shard_answers[context] = ShardAnswers(self._store, context or None, self._slices_of_all)
        kept = self._shard_answers[context]
        answers = kept.sums(sql) if is_sum else kept.of(sql, connection)
        small = {Path(file).parent.name for file in connection.files["sessions"]} - set(kept.shards(sql, is_sum))
        for part in self._slices_of(connection, small) if small or not answers else ():
            answers.append(ShardAnswer.of(self._execute(sql, part)))
        columns = zip(*(answer.columns for answer in answers), strict=True)
        return dict(zip(answers[-1].names, map(list, map(chain.from_iterable, columns)), strict=True))

    def _placed(self, columns: dict[str, list[Any]], context: str, connection: Connection) -> dict[str, list[Any]]:
        """Add where the sessions of a repository and folder lie, which is told of all of them together."""
        if "cwd" in columns and context not in self._sites:
            repos, folders, own, ids = self._of_shards(SITES, context, connection, is_sum=True).values()
            files = [file for file in connection.files["signals"] if Path(file).parent == self._store.folder]
            lies: dict[str, str] = {}
            if files:
                values = LIES.replace("FROM signals", f"FROM read_parquet({path_list(files)}, union_by_name=true)")
                asked = f"SELECT * FROM ({values}) WHERE session_id IN (SELECT unnest($1))"
                lies = dict(connection.database.execute(asked, [list(ids)]).fetchall())
            found = self._sites[context] = {}
            for repo, folder, otherwise, session_id in zip(repos, folders, own, ids, strict=True):
                found[repo, folder] = lies.get(session_id) or found.get((repo, folder)) or otherwise
        if "cwd" in columns:
            sites = zip(columns["repo"], columns["cwd"], strict=True)
            columns[PLACE] = list(map(self._sites[context].__getitem__, sites))
        return columns

    def _slices_of_all(self, shards: Collection[str]) -> list[Connection]:
        """Connections to these shards with the sessions of all contexts."""
        if None not in self._connections:
            self._connections[None] = connect(self._store, threads=self._threads)
        return self._slices_of(self._connections[None], shards)

    def _slices_of(self, connection: Connection, shards: Collection[str]) -> list[Connection]:
        """Connections to a few of these shards each, made once for all questions: each would look into the files of
        its tables again."""
        key = connection, frozenset(shards)
        if key not in self._slices:
            folders = {str(Path(file).parent) for file in connection.files["sessions"]}
            wanted = {folder for folder in folders if Path(folder).name in key[1]}
            part = connection if wanted == folders and self._queries else connection.over(wanted)
            self._slices[key] = split_by_rows(part, "tool_calls", _MOST_IN_A_SLICE)
        return self._slices[key]

    def _execute(
        self, sql: str, connection: Connection, values: dict[str, Any] | None = None
    ) -> duckdb.DuckDBPyConnection:
        if connection.is_slice:
            return execute_ours(connection, sql, values)
        if self._queries:
            materialize(connection, self._queries, with_place(), NAMED, self._named)
        elif NAMED in sql or "sessions" in sql:
            # One look through the values, which are most of a store's rows, for places and all queries.
            connection.hold(NAMED, signal_rows_query(sorted({*self._named, *SIGNAL_PATH.findall(LIES)})))
            connection.hold("lies", LIES.replace("FROM signals", f"FROM {NAMED}"))
            connection.show("sessions", with_place("memory.main.sessions", "lies"))
        return execute_ours(connection, sql, values)


class _OnAsk(dict[str, Rows]):
    """Rows by name, read when they are first asked for."""

    def __init__(self, read: Callable[[str], Rows]) -> None:
        self._read = read

    def __missing__(self, name: str) -> Rows:
        made = self[name] = self._read(name)
        return made


def _made(rows: Rows) -> list[Row]:
    """Return the rows as dictionaries. Many questions want those of few columns: nobody may change them."""
    return rows.derived(list) if len(rows.names) <= _FEW_COLUMNS else list(rows)


# -- Findings of a store, ranked by size and confidence (design/findings.md)

FINDINGS = Registry[Question](
    "finding", "agentsignals.questions.findings", "FINDING", lambda unit: isinstance(unit, Question), r"\w+\.py"
)
_BILL = Question(
    name="bill",
    question="",
    queries={"sessions": FACTS},
    sliced=frozenset(("sessions",)),
    function=lambda _: [],
    context="either",
    needs_charges=True,
)


def _totals(inputs: Inputs) -> Totals:
    sessions = inputs.many["sessions"].columns("session_id", "started_at", "cost_usd", BOUND, "unpriced")
    ids, *counts = inputs.many["calls"].columns("session_id", "answered", "failed")
    calls = dict(zip(ids, zip(*counts, strict=True), strict=True))
    billed = dict(zip(*inputs.many["billed"].columns("session_id", "usd"), strict=True))
    return ranking.totals(
        (at, billed.get(s) if usd is None else usd, bound is not None or unpriced is not None, *calls.get(s, (0, 0)))
        for s, at, usd, bound, unpriced in zip(*sessions, strict=True)
    )


_TOTALS = Question(
    name="totals",
    question="",
    queries={
        "sessions": FACTS,
        "calls": CALLED,
        "billed": "SELECT session_id, max(harness_cost_usd) AS usd FROM attempts GROUP BY ALL HAVING usd IS NOT NULL",
    },
    sliced=frozenset(("sessions", "calls", "billed")),
    function=_totals,
    context="either",
)
_RESOLVED = Question(
    name="resolved", question="", queries=compare.QUERIES, function=compare.resolved_groups, context="eval"
)
Beside = Callable[[Callable[[], Any]], Callable[[], Any]]
"""Start a query in a background process and return a function that waits for its result."""
_NEAREST = 12
_LARGEST = 4
"""Causes that the line on the bill names."""


@cache
def questions() -> dict[str, Question]:
    """Every question by name."""
    return dict(sorted(FINDINGS.all().items()))


def findings(
    store: Store,
    context: str | None = None,
    bounds: Bounds | None = None,
    *,
    reader: Reader | None = None,
    beside: Beside | None = None,
) -> Findings:
    """Return the findings of a store, ranked. `context`: `product` or `eval`; without one, people's sessions when
    there are any. `bounds`: below which nothing is said. `reader`: one that knows of `asking`. `beside`: how the
    questions about costs are begun; without it they come second. Keys in names are masked,
    also in SQL.

    With the usual bounds it is computed once for each state of the store, and kept there as its table `findings`."""
    bounds = bounds or Bounds()
    context = context or main_context(store.contexts())
    is_usual = bounds == Bounds()
    if is_usual and (kept := decode_findings(sidecars.read_cache(store, context))) is not None:
        return kept
    contexts = store.contexts()
    sessions = contexts.get(context, 0)
    candidates: list[Answer] = []
    if too_few := too_few_sessions(sessions, context, bounds):
        reader = reader or Reader(store, [_TOTALS], context)
        frame = Findings(answers=[], sessions=sessions, context=context, bill="", looked_at={}, bounds=bounds)
        frame = replace(frame, left_out={"all questions": too_few}, elsewhere=elsewhere(contexts, context))
    else:
        reader = reader or Reader(store, [_TOTALS, _BILL, _RESOLVED, *questions().values()], context)
        is_collecting = gc.isenabled()
        gc.disable()  # rows live until they are added up; the collector would only walk them
        try:
            candidates, frame = _candidates(
                store, context, questions(), partial(may_be_told, bounds=bounds), reader, beside
            )
        finally:
            if is_collecting:
                gc.enable()
    frame = replace(frame, totals=_TOTALS.function(reader.inputs(_TOTALS)))
    if context == "eval":
        frame = replace(frame, resolved=compare.resolved_groups(reader.inputs(_RESOLVED)))
    made = _without_secrets(replace(frame, answers=ranked_answers(candidates, bounds), bounds=bounds))
    if is_usual:
        sidecars.write_cache(store, context, msgspec.json.encode(made))
    return made


_IDS = re.compile(r"((?:'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', ){8,})")
"""Lists of session ids in SQL, which may hold thousands. No id of this form is a secret."""


def _without_secrets(made: Findings) -> Findings:
    mask = Redactor(pseudonyms=False).text
    parted: Findings = with_texts(
        made, lambda text: "".join(part if n % 2 else mask(part) for n, part in enumerate(_IDS.split(text)))
    )
    return parted


def asking(store: Store, context: str | None = None) -> list[Question]:
    """Return the questions that `findings` would ask now; none where its answer was kept."""
    context = context or main_context(store.contexts())
    return [] if sidecars.read_cache(store, context) is not None else [_TOTALS, _BILL, _RESOLVED, *questions().values()]


def every_context(store: Store) -> list[Findings]:
    """Return the findings of each context in the store: its table `findings`."""
    return [findings(store, context) for context in sorted(store.contexts())]


def answer(store: Store, id: str, context: str | None = None) -> Answer:  # noqa: A002  (the answer's field)
    """A candidate by its id, whether or not it is said, with the SQL that gives its rows: names stand there as they
    are. UsageError where there is none."""
    asked = {name: question for name, question in questions().items() if id.startswith(f"{name.replace('_', '-')}.")}
    candidates, _ = _candidates(store, context, asked, lambda made: made.id == id)
    for made in candidates:
        if made.id == id:
            return made
    topics = [name.replace("_", "-") for name in questions()]
    ids = sorted(made.id for made in candidates)
    near = did_you_mean(id, ids or topics)
    if not near:
        near = did_you_mean(id, [made.id for made in _candidates(store, context, questions(), lambda _: False)[0]])
    listed = f"Of this topic: {', '.join(ids[:_NEAREST])}." if ids else f"The topics: {', '.join(topics)}."
    raise UsageError(f"There is no finding {id!r}.", f"{near} {listed} `agentsignals findings` lists them.".lstrip())


def why_none(store: Store, topic: str, context: str | None = None) -> list[str]:
    """Return why a topic had nothing to answer, if it can tell."""
    question = questions()[topic]
    if question.why_none is None:
        return []
    why = question.why_none(Reader(store, [question], context).inputs(question))
    return [why] if why else []


class _Answers(Struct):
    """Candidates of some questions."""

    candidates: dict[str, list[Answer]] = field(default_factory=dict)
    """By question."""
    left_out: dict[str, str] = field(default_factory=dict)
    bill: str = ""


def _candidates(  # noqa: PLR0913  (each named at the call)
    store: Store,
    context: str | None,
    asked: dict[str, Question],
    is_told: Callable[[Answer], bool],
    reader: Reader | None = None,
    beside: Beside | None = None,
) -> tuple[list[Answer], Findings]:
    """Return all candidates of these questions, and findings without answers yet. `is_told`: as `candidate_answers` has
    it."""
    reader = reader or Reader(store, [_BILL, *asked.values()], context)
    asked = {name: question for name, question in asked.items() if question.context in (reader.context, "either")}
    costs_of = partial(_answers, reader, asked, is_told, of_costs=True)
    answer = beside(costs_of) if beside else costs_of
    others = _answers(reader, asked, is_told, of_costs=False)
    costs = answer()
    made = costs.candidates | others.candidates
    contexts = store.contexts()
    frame = Findings(
        answers=[],
        sessions=contexts.get(reader.context, 0),
        context=reader.context,
        bill=costs.bill,
        looked_at={name: len(made[name]) for name in asked},
        bounds=Bounds(),
        elsewhere=elsewhere(contexts, reader.context),
        left_out={name: why for name in asked if (why := (costs.left_out | others.left_out).get(name))},
    )
    return [candidate for name in asked for candidate in made[name]], frame


def _answers(reader: Reader, asked: dict[str, Question], is_told: Callable[[Answer], bool], of_costs: bool) -> _Answers:
    """Answer the questions about costs, and describe the bill; or answer the others."""
    made = _Answers()
    for name, question in asked.items():
        if question.needs_charges != of_costs:
            continue
        inputs, place = reader.inputs(question), FINDINGS.places[question.name]
        made.candidates[name] = []
        try:
            made.candidates[name] = candidate_answers(question, inputs, is_told)
        except Exception as problem:
            if not place.distribution:  # our own: a defect
                raise
            # Whatever another package's raises, the other questions are answered.
            FINDINGS.leave_out(place, f"{type(problem).__name__}: {problem}")
            made.left_out[name] = FINDINGS.broken[question.name]
    if of_costs:
        of_bill = reader.inputs(_BILL)
        made.bill = _bill(of_bill.many["sessions"].derived(priced), of_bill.paid)
    return made


def _bill(bill: Rows, paid: Mapping[str, Mapping[str, float]]) -> str:
    """Describe the sessions' cost and its largest causes."""
    sessions, costs, *bounds = bill.columns("session_id", "cost_usd", BOUND, "unpriced")
    total = fsum(costs)
    if not total:
        return ""
    causes: dict[str, float] = {}
    for cause, of_cause in paid.items():
        words = "re-sent context" if cause in CARRIED else CAUSES[cause]
        causes[words] = causes.get(words, 0.0) + fsum(of_cause.values())
    order = ranked(causes)
    parts = [f"{formatted(usd / total, 'share')} {words}" for words, usd in order[:_LARGEST]]
    if rest := fsum(usd for _, usd in order[_LARGEST:]) / total:
        parts.append(f"{formatted(rest, 'share')} other")
    at_least = "at least " if any(bound is not None for bound in chain(*bounds)) else ""
    few = ruled(zip(sessions, costs, strict=True))
    lead = f"{few.sentence(partial(formatted, kind='usd'))} " if few and len(bill) > 1 else ""
    return f"{lead}{at_least}{formatted(total, 'usd')} over {len(bill):,} sessions: {', '.join(parts)}"
