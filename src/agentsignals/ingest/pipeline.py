"""One run, stage by stage: sources, plan, shards, corpus signals, summary.

Interrupting is safe: each shard is committed when it is done, and the next run reads only what is missing.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct, field

from agentsignals.errors import FormatError, SourceError, StoreError, WorkerError
from agentsignals.formats import Input, format_named, homes, identify, unread_homes
from agentsignals.formats.records import HEAD_BYTES, Head, head_of
from agentsignals.formats.rows import NAMED
from agentsignals.ingest import plan as planning
from agentsignals.ingest.identity import REPEATED_FILE, REPEATED_RECORD
from agentsignals.ingest.plan import (
    READ_AGAIN,
    UnknownFields,
    parser_version,
    shard_name,
    unknown_fields_by_version,
    versions_by_format,
)
from agentsignals.model import Absent, Artifact, Session
from agentsignals.model.lazy import without_threads
from agentsignals.model.prices import own_prices
from agentsignals.model.registry import may_have_plugins
from agentsignals.sources import RawFile, Unreadable, nonblocking, read, storable_text
from agentsignals.sources.local import deleted_files, existing_paths, found_homes
from agentsignals.store import PLACE, Store, disk, resolve_folder, sidecars
from agentsignals.store.disk import code_stamp
from agentsignals.store.index import (
    ArtifactEntry,
    Manifest,
    among_files,
    sessions_only_in,
)

if TYPE_CHECKING:
    from agentsignals.ingest.plan import FileGroup
    from agentsignals.ingest.shard import ShardReport, ShardTask, SoFar

T = TypeVar("T")
R = TypeVar("R")

# The summary of a run

MOST = 20
"""Groups of unread files that are listed: a folder of data has as many as it has kinds of files."""


class UnreadFiles(Struct, kw_only=True):
    """Files of one kind that were found and not read."""

    reason: str
    what: str
    """Description as far as their content tells; else empty."""
    files: int
    bytes: int
    example: str
    """Path of one of them."""
    agent: str = ""
    """Agent in whose folder they are, where an agent was named."""


class Summary(Struct, kw_only=True):
    """Results of a run. Figures are of the sources named, as they are in the store now."""

    store: str
    artifacts: int = 0
    parsed: int = 0
    """Files opened and decoded in this run."""
    unchanged: int = 0
    other_files: int = 0
    """Files under the sources that are no traces (not JSON)."""
    repeated: int = 0
    """Artifacts with nothing of their own: copies and earlier states of another one, which counts."""
    repeated_records: int = 0
    """Further records that another record repeats, in the same file or in another one of the session: counted once."""
    excluded_sessions: int = 0
    """Sessions left out in this run, as a list asked."""
    excluded_sources: int = 0
    sessions: int = 0
    attempts: int = 0
    """Sessions that are attempts of eval runs."""
    prompts: int = 0
    """Prompts of people, without hand-offs of a plan."""
    tool_calls: int = 0
    edits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_sessions: int = 0
    """Sessions whose cost is not known; they are not in `cost_usd`."""
    lower_bounds: int = 0
    """Sessions whose output is logged in mid-stream: their output tokens and cost are lower bounds."""
    visible_output_tokens: int = 0
    """Tokens of the visible text of these sessions (`views.usage.VISIBLE_ERROR`)."""
    partly_priced: int = 0
    """Sessions whose cost leaves a part out (`sessions.unpriced`): it is a lower bound."""
    silent_sessions: dict[str, int] = field(default_factory=dict)
    """Sessions of people, by format, without prompt, call and tokens: their files may be another agent's."""
    formats: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    unread: list[UnreadFiles] = field(default_factory=list)
    """Files that no format reads, by kind, most files first."""
    versions: dict[str, dict[str, int]] = field(default_factory=dict)
    """Files by format and agent version, where they tell it."""
    unknown_fields: list[UnknownFields] = field(default_factory=list)
    """Fields that no file of the format had before: its agent writes something new."""
    internal_errors: dict[str, int] = field(default_factory=dict)
    restored_sessions: int = 0
    """Sessions of damaged shards that were read again from their sources."""
    lost_sessions: list[str] = field(default_factory=list)
    """Sessions of damaged shards whose sources are gone: the store holds part of them at most."""
    report: str | None = None
    stored_sessions: int = 0
    """All sessions of the store, whatever sources they were read from."""
    deleted_files: int = 0
    """Files that traces were read from and that are gone."""
    deleted_sessions: int = 0
    """Sessions that were read from deleted files alone; the store keeps them."""


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
"""Notes that differ in numbers alone, as sizes, are of one kind."""


def summarize(store: Store, uris: set[str]) -> Summary:
    """Add up what the index says of these files and their sessions."""
    summary, manifest = Summary(store=storable_text(str(store.folder))), store.manifest
    among = among_files(uris, manifest.stamps())
    kinds = manifest.kinds(among)
    read = [kind for kind in kinds if kind.is_trace]
    summary.artifacts = sum(kind.files for kind in read)
    summary.other_files = sum(kind.files for kind in kinds) - summary.artifacts
    summary.repeated = manifest.repeated(among)
    formats, skipped = Counter[str](), Counter[str]()
    for kind in read:
        if kind.format is not None:
            formats[kind.format] += kind.files
        for reason, n in kind.skipped.items():
            skipped[reason] += n * kind.files
    summary.repeated += skipped.pop(REPEATED_FILE, 0)
    summary.repeated_records = skipped.pop(REPEATED_RECORD, 0)
    summary.formats, summary.skipped = dict(formats), dict(skipped)
    groups: dict[tuple[str, str, str], UnreadFiles] = {}
    for kind in read:
        whose = ""
        if (
            kind.format is None and os.sep not in kind.spec and kind.spec in homes()
        ):  # which loads what a path needs not
            whose = kind.spec
        for reason in kind.skipped if kind.format is None or not NAMED.isdisjoint(kind.skipped) else ():
            if reason == REPEATED_FILE or (kind.format is not None and reason not in NAMED):
                continue
            unread = UnreadFiles(reason=reason, what=kind.note, files=0, bytes=0, example=kind.example, agent=whose)
            one = groups.setdefault((reason, _NUMBER.sub("#", kind.note), whose), unread)
            one.files += kind.files
            one.bytes += kind.bytes
            one.example = min(one.example, kind.example)
    # Known kinds come first, then those of many files.
    summary.unread = sorted(
        groups.values(),
        key=lambda u: (u.reason == "unrecognised" and not u.agent, -u.files, u.reason, u.what, u.example),
    )[:MOST]
    summary.versions, summary.unknown_fields = versions_by_format(read), unknown_fields_by_version(read)
    summary.internal_errors = {f"{uri}: {error}": 1 for uri, error in manifest.file_errors(among)}
    for name, total in manifest.totals(among).items():
        setattr(summary, name, total if name == "cost_usd" else int(total))
    for n, names in manifest.silent_groups(among):
        name = max(names, key=lambda name: ((named := format_named(name)) is not None and named.is_own, name))
        summary.silent_sessions[name] = summary.silent_sessions.get(name, 0) + n
    for shard in store.manifest.shards.values():
        for what, n in shard.internal_errors.items():
            summary.internal_errors[what] = summary.internal_errors.get(what, 0) + n
    deleted = deleted_files(manifest.local_files() - uris) if among.uris is not None else set()
    summary.stored_sessions, summary.deleted_files = len(manifest.sessions), len(deleted)
    summary.deleted_sessions = len(sessions_only_in(manifest, deleted))
    return summary


class Progress(Protocol):
    """Called with the progress of a run. `total` is None while it is not known."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


def default_sources() -> list[str]:
    """Return the agents whose folders are on this machine. SourceError when there is none."""
    agents = sorted(found_homes())
    if not agents:
        unread = [
            f"{name} ({paths[0]})" for name, patterns in unread_homes().items() if (paths := existing_paths(patterns))
        ]
        others = f" Known, and not read yet: {', '.join(unread)}." if unread else ""
        raise SourceError(
            f"No folder of an agent was found on this machine; looked for {', '.join(homes())}.",
            "`agentsignals analyze FOLDER` reads another folder. `agentsignals demo` analyzes sample sessions."
            f" `agentsignals doctor` lists the folders that were looked for.{others}",
        )
    return agents


def default_jobs() -> int:
    """Return one worker a core, at most 8: reading traces soon waits for the disk."""
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def in_processes(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
    """Yield a function's results over tasks, in any order, from a forked process a core; from this one where a fork is
    impossible, and for what is left when a process dies."""
    from agentsignals.ingest.engine.local import Local, can_fork  # noqa: PLC0415  (not needed when nothing changed)

    workers, left = min(len(tasks), default_jobs()) if can_fork() else 0, dict(enumerate(tasks))
    if workers > 1:
        with suppress(WorkerError):
            numbered = Local().map(lambda task: (task[0], function(task[1])), [*left.items()], workers, lambda _: ())
            for number, made in numbered:
                del left[number]
                yield made
    yield from map(function, left.values())


def ingest_into(  # noqa: PLR0913  (each is a choice of the person at the command line)
    specs: Iterable[str],
    store_folder: Path | str | None = None,
    *,
    jobs: int | None = None,
    force_format: str | None = None,
    engine: str = "local",
    shard_bytes: int = planning.SHARD_BYTES,
    embedder: str | None = None,
    exclude: frozenset[str] = frozenset(),
    progress: Progress = silent,
    wait_s: float = disk.WAIT_S,
    so_far: Callable[[SoFar], None] | None = None,
) -> tuple[Summary, Store]:
    """Read sources into the store, measure the sessions that changed, and return the summary and the store. Damaged
    shards are read again where their sources are still on this machine.

    `jobs`: worker processes. `force_format`: read every file as this format. `shard_bytes`: raw bytes of a shard; more
    means fewer files and more memory. `embedder`: the store's embedder from now on. `exclude`: data sets of the Hub
    (`owner/name`) and sessions to leave out. `wait_s`: how long to wait for another run on the same store; StoreError
    afterwards. `so_far`: called, as files are read, with sums over the sessions read until then.
    """
    with disk.locked(resolve_folder(store_folder, create=True), wait_s=wait_s, waiting=_waiting(progress)):
        store = Store(store_folder, write=True)
        broken = _to_read_again(store)
        missing = set(store.manifest.sessions.where("shard", broken))
        same_code = store.manifest.code == code_stamp()
        _choose(store, embedder)
        tick = partial(progress, "looking", total=None)
        jobs = jobs or default_jobs()
        plan = planning.make_plan(
            specs, store.manifest, force_format, tick, shard_bytes, same_code, exclude, broken, jobs
        )
        parsed, excluded = _read(store, plan, jobs, engine, progress, exclude, shard_bytes, so_far)
        is_much = len(plan.shards) != 1 or bool(broken)
        if broken:
            store.check_files()
        _finish(store, plan.other_files, is_much)
    summary = summarize(store, set(plan.seen))
    broken = _to_read_again(store)
    lost = set(store.manifest.sessions.where("shard", broken))
    summary.restored_sessions, summary.lost_sessions = len(missing - lost), sorted(lost)
    summary.parsed = parsed
    summary.unchanged = plan.unchanged
    summary.excluded_sessions, summary.excluded_sources = excluded, plan.excluded_sources
    return summary, store


def ingest(specs: Iterable[str], store_folder: Path | str | None = None, **options: Any) -> Summary:
    """Read sources into the store and return the summary. Options are those of `ingest_into`."""
    return ingest_into(specs, store_folder, **options)[0]


def analyze_into(
    specs: Iterable[str] | str = (),
    store_folder: Path | str | None = None,
    *,
    tell: Callable[[str], None] | None = None,
    **options: Any,
) -> tuple[Summary, Store]:
    """Read and measure; without sources, the agents found on this machine. Options are those of `ingest_into`."""
    wanted = [specs] if isinstance(specs, str) else list(specs)
    summary, store = ingest_into(wanted or default_sources(), store_folder, **options)
    if store.damage or (store.manifest.shards and not _is_measured(store)):
        measure(store_folder, options.get("progress", silent), tell=tell, wait_s=options.get("wait_s", disk.WAIT_S))
        store = Store(store_folder)
    if options.get("embedder") is not None:
        measure(store_folder, options.get("progress", silent), embedder=options["embedder"], tell=tell)
        store = Store(store_folder)
    return summary, store


def analyze(specs: Iterable[str] | str = (), store_folder: Path | str | None = None, **options: Any) -> Summary:
    """Read and measure, and return the summary. Options are those of `ingest_into`."""
    return analyze_into(specs, store_folder, **options)[0]


def measure(  # noqa: PLR0913  (the options of the verb)
    store_folder: Path | str | None = None,
    progress: Progress = silent,
    *,
    embedder: str | None = None,
    every: bool = False,
    tell: Callable[[str], None] | None = None,
    wait_s: float = disk.WAIT_S,
) -> dict[str, int]:
    """Compute values anew whose signal has a newer version, and those that depend on labels made since. Return the
    numbers of changed or new `values`, of `signals` they belong to (or with another version), and of `sessions`
    measured.

    `embedder`: the store's embedder from now on; another one computes all values anew, and a model at once those that
    compare texts: whoever names it asks for what it tells. `every`: also compute the values that nobody asked for.
    `tell` is told where texts go when a server embeds them. `wait_s` as in `ingest_into`.
    """
    done = {"signals": 0, "sessions": 0, "values": 0}
    store = Store(store_folder)
    by_model = frozenset[str]()
    if embedder is not None and not every:
        from agentsignals.words.vectors import is_model  # noqa: PLC0415  (only who names one pays for it)

        if is_model(embedder):
            from agentsignals.ingest.measure import comparing_signals  # noqa: PLC0415

            by_model = frozenset(comparing_signals())

    def is_done(store: Store) -> bool:
        lacks = store.not_computed() if every else store.not_computed(by_model) if by_model else ()
        return not store.damage and _is_measured(store) and not lacks

    if embedder in (None, store.manifest.embedder) and is_done(store):
        return done
    folder = store.folder
    del store
    with disk.locked(folder, wait_s=wait_s, waiting=_waiting(progress)):
        store = Store(folder, write=True)
        _choose(store, embedder)
        if not is_done(store):
            done = _measure(store, progress, tell, None if every else frozenset())
        if by_model and store.not_computed(by_model):
            more = _measure(store, progress, tell, by_model)
            done = {what: n + more[what] for what, n in done.items()}
    return done


def compute(
    store: Store,
    paths: Collection[str],
    shard: str | None = None,
    progress: Progress = silent,
    tell: Callable[[str], None] | None = None,
) -> None:
    """Compute the values of these signals where they are not computed, and keep them: those of one session for all
    shards or this one, those across sessions for all. Shards whose values are stale are measured anew."""
    with disk.locked(store.folder, waiting=_waiting(progress)):
        present = Store(store.folder, write=True)
        if present.not_computed(paths, shard):
            _measure(present, progress, tell, frozenset(paths), shard)


def _is_measured(store: Store) -> bool:
    """True where all computed values are of this code and of the current labels and embedder."""
    spec, labelled = store.manifest.embedder, sidecars.labels_fingerprint(store.folder)
    same_inputs = all(s.embedder == spec and s.labels == labelled for s in store.manifest.shards.values())
    return store.manifest.code == code_stamp() and bool(store.manifest.history_of) and same_inputs


def _measure(
    store: Store,
    progress: Progress,
    tell: Callable[[str], None] | None,
    asked: frozenset[str] | None = frozenset(),
    shard: str | None = None,
) -> dict[str, int]:
    """Compute values of signals that somebody asks for (paths; None: of all) where they are not computed. Shards with
    stale values are measured anew: those that lack a value asked for; without a question, all."""
    with without_threads():
        from agentsignals.ingest import corpus_signals  # noqa: PLC0415  (nothing of this is needed when all is known)
        from agentsignals.ingest import measure as measuring  # noqa: PLC0415
        from agentsignals.ingest.engine.local import Local, can_fork  # noqa: PLC0415
        from agentsignals.ingest.shard import first_versions, signal_versions  # noqa: PLC0415  (loads every signal)
        from agentsignals.store.shards import MOST_FILES  # noqa: PLC0415  (pyarrow loads when something is written)

    manifest, held = store.manifest, store.manifest.shards
    now, across_now = signal_versions(), corpus_signals.versions_on_ask()
    is_asked = bool(asked)
    # Values across sessions that somebody asked for are renewed with those of the sessions they rest on.
    across = corpus_signals.across_names(
        across_now.keys() if asked is None else asked or manifest.across_signals.keys()
    )
    wanted = now.keys() & (now if asked is None else asked)
    if across:  # which rest on the sessions of all shards
        wanted, shard = wanted | corpus_signals.inputs_of(across), None
    measurable = set(held) - _to_read_again(store)
    without_values = {d.shard for d in store.damage if d.table == "signals"}
    stale = measurable & (_stale(store) | without_values)
    lacking = {name: wanted - held[name].signals.keys() for name in measurable if shard in (None, name)}
    due = {name for name in measurable if lacking.get(name) or (name in stale and not is_asked)}
    renewed: set[str] = set()
    others: Counter[str] = Counter()
    sessions = 0
    vectors = measuring.NO_VECTORS
    if measuring.compare_texts(path for name in due for path in {*lacking.get(name, ()), *held[name].signals}):
        vectors = measuring.store_vectors(store, manifest.embedder, tell)
        fitted = measuring.calibrate(store, vectors)
        if fitted is not vectors:  # no value of the old scale may stay beside those of the new
            vectors = fitted
            rescaled = {name for name in measurable if measuring.compare_texts(held[name].signals)}
            stale, due = stale | rescaled, due | rescaled
            for name in rescaled:
                held[name].embedder = ""
            store.save()

    def is_left_out() -> bool:
        """Whether a shard that can't be read costs a question that shard alone: only reading shows its damage."""
        return is_asked and store.check_files(thorough=True)

    doing = "computing signals" if is_asked else "measuring"
    adding = [
        (name, now.keys() - held[name].signals.keys() if len(store.signal_files(name)) >= MOST_FILES else lacking[name])
        for name in sorted(due - stale)
    ]
    # A model's vectors stay in the process that has the model in memory.
    may_share = len(adding) > 1 and can_fork() and (isinstance(vectors, Absent) or vectors.kept is None)
    by_shard = manifest.sessions_by_shard() if may_share else {}
    are_many = sum(by_shard.get(name, 0) for name, _ in adding) >= _FEW_TO_MEASURE
    workers = min(default_jobs(), len(adding)) if are_many else 0
    try:
        for done, name in enumerate(sorted(due & stale)):
            progress(doing, done, len(due))
            former, paths = held[name].signals, lacking.get(name, set())
            paths = paths | (now.keys() & former.keys()) | first_versions().keys()
            try:
                count, differing = measuring.measure_shard(store, name, paths, vectors, tell)
            except StoreError:
                if not is_left_out():
                    raise
                continue
            renewed |= {path for path in {*paths, *former} if now.get(path) != former.get(path)}
            sessions += count
            others += differing
        add = partial(measuring.add_values, store, vectors)
        progress(doing, len(due & stale), len(due))
        with closing(Local().map(add, adding, workers, lambda _: ())) as answers:
            for done, made in enumerate(answers, len(due & stale) + 1):
                progress(doing, done, len(due))
                if made.problem is not None and not is_left_out():
                    raise made.problem
                held[made.shard] = made.entry
                sessions += made.sessions
                others += made.values
    finally:
        if due:
            store.save()
    if due & stale:
        store.check_files()
        store.sweep()
    before = None if is_asked else measuring.corpus_values(store, bool(across))
    if manifest.across_signals.items() - across_now.items():
        manifest.across_signals = {}
    if "" in without_values:
        manifest.shards_changed()
    if manifest.history_of != _state_of_places(store):
        manifest.history_of = ""
        progress("values across sessions", 0, None)
        _finish(store, {}, is_much=not is_asked)
    asked_across = corpus_signals.versions_on_ask(across).keys()
    if asked_across - manifest.across_signals.keys():
        progress("values across sessions", 0, None)
        # With those that were asked for before: all are in one file.
        every = corpus_signals.across_names(asked_across | manifest.across_signals.keys())
        corpus_signals.measure_corpus(store, every)
        store.commit()
    others += measuring.changed_values(before, None if is_asked else measuring.corpus_values(store, bool(across)))
    if _is_of_this_code(store) and manifest.code != code_stamp() and not _stale(store):
        manifest.code = code_stamp()
        store.save()
    return {"signals": len(renewed | set(others)), "sessions": sessions, "values": others.total()}


_FEW_TO_MEASURE = 300
"""Sessions that one process measures in the time in which others would begin."""


def _state_of_places(store: Store) -> str:
    """Return a hash of what the places of sessions follow from."""
    from agentsignals.ingest.shard import first_versions  # noqa: PLC0415  (loads every signal)
    from agentsignals.signals.catalog import by_path  # noqa: PLC0415

    inputs, broken = sorted(first_versions()), sorted((d.shard, d.table) for d in store.damage if d.shard)
    state = [
        f"{n}:{[s.signals.get(path) for path in inputs]}:{s.gone}" for n, s in sorted(store.manifest.shards.items())
    ]
    return disk.digest(f"{state}|{by_path(PLACE).version}|{broken}".encode())


def _stale(store: Store) -> set[str]:
    """Shards whose values are of former signals, of other labels or of another embedder than the current ones."""
    from agentsignals.ingest.shard import first_versions, signal_versions  # noqa: PLC0415  (loads every signal)

    now, first = signal_versions(), first_versions().keys()
    due = (store.manifest.embedder, sidecars.labels_fingerprint(store.folder))
    return {
        name
        for name, shard in store.manifest.shards.items()
        if (shard.embedder, shard.labels) != due
        or not shard.signals.items() <= now.items()
        or not first <= shard.signals.keys()
    }


def _waiting(progress: Progress) -> Callable[[], None]:
    return partial(progress, "waiting for another run", 0, None)


def _choose(store: Store, embedder: str | None) -> None:
    if embedder is None or embedder == store.manifest.embedder:
        return
    from agentsignals.words.vectors import parsed  # noqa: PLC0415

    parsed(embedder)
    store.manifest.embedder = embedder
    store.save()


def _to_read_again(store: Store) -> frozenset[str]:
    """Damaged shards whose sources are needed. Damaged values alone are computed again from the other tables."""
    return frozenset(d.shard for d in store.damage if d.shard and d.table != "signals")


def _read(  # noqa: PLR0913  (options of a run)
    store: Store,
    plan: planning.Plan,
    jobs: int,
    engine: str,
    progress: Progress,
    exclude: frozenset[str],
    shard_bytes: int,
    so_far: Callable[[SoFar], None] | None,
) -> tuple[int, int]:
    """Read the plan's shards and commit each as it comes. Return numbers of files decoded and sessions left out."""
    if not plan.shards:
        return 0, 0
    with without_threads():
        from agentsignals.ingest.engine import ENGINES, heard  # noqa: PLC0415  (not needed when nothing changed)
        from agentsignals.ingest.shard import (  # noqa: PLC0415
            ShardTask,
            added,
            read_shard,
            signal_versions,
            split_task,
            sums_of,
        )
        from agentsignals.store.shards import compact  # noqa: PLC0415

    store.manifest.run += 1
    total = sum(f.bytes for groups in plan.shards for f in groups)
    done = parsed = excluded = 0
    progress("reading", 0, total)
    signal_versions()  # loads every signal: the values across sessions need them, and workers that are copies have them

    def read(planned: list[list[FileGroup]], run: int) -> Iterator[ShardReport]:
        tasks = [
            ShardTask(
                root=str(store.folder),
                name=shard_name(groups, run),
                groups=groups,
                embedder=store.manifest.embedder,
                exclude=exclude,
                run=run,
                shard_bytes=shard_bytes,
                own_prices=own_prices().text,
            )
            for groups in planned
        ]
        workers = planning.worker_count(planned, jobs)
        kept = {i for groups in planned for f in groups for i, _ in f.kept} - exclude
        with closing(ENGINES.get(engine)().map(read_shard, tasks, workers, split_task)) as reports:
            for report in reports:
                report.late_keys |= store.add_shard(report.name, report.entry, report.sessions, report.files, kept)
                yield report

    late_keys: set[str] = set()
    shards_so_far: dict[str, SoFar] = {}

    def listen(part: SoFar | ShardTask) -> None:
        if isinstance(part, ShardTask):  # its worker died: parts of it have other names
            shards_so_far.pop(part.name, None)
            return
        shards_so_far[part.shard] = part
        if so_far is not None:
            so_far(added(shards_so_far.values()))

    try:
        with heard(None if so_far is None else listen):
            for report in read(plan.shards, store.manifest.run):
                late_keys |= report.late_keys
                done += report.bytes
                parsed += report.parsed
                excluded += report.excluded
                progress("reading", done, total)
                if so_far is not None:
                    listen(sums_of(report))
        if joined := planning.regroup(store.manifest, late_keys):
            store.manifest.run += 1  # the same files may lie in a shard of this run, whose name is taken
            for _ in read(joined, store.manifest.run):
                progress("reading", done, total)
        compact(store)
    finally:
        store.sweep()  # no worker is left; what one that was ended had begun is removed
    return parsed, excluded


def _finish(store: Store, other_files: dict[str, ArtifactEntry], is_much: bool) -> None:
    """Compute where sessions lie if any changed, and write the index. `is_much`: more than one shard changed."""
    manifest = store.manifest
    known = manifest.files.known(other_files)
    new_files = {u: e for u, e in other_files.items() if known.get(u) != e}
    manifest.files.update(new_files)
    if new_files:
        store.commit()
    if manifest.code and any(parser == READ_AGAIN for _, parser in manifest.parsers()):
        manifest.code = ""  # so that the next run looks at each file's own entry, which says to read it again
        store.commit()
    if store.manifest.shards and not store.manifest.history_of:
        from agentsignals.ingest import corpus_signals  # noqa: PLC0415  (only when something changed)
        from agentsignals.ingest.engine.local import in_background  # noqa: PLC0415
        from agentsignals.store.parquet import release_memory  # noqa: PLC0415

        measured = partial(corpus_signals.measure_places, store)
        manifest.run, manifest.places = in_background(measured)() if is_much else measured()
        manifest.history_of = _state_of_places(store)
        is_told = store.manifest.code == code_stamp()  # by the run before: what this one read is of this code, too
        if not is_told and not store.damage and _is_of_this_code(store) and not _stale(store):
            store.manifest.code = code_stamp()  # nothing is left to measure: the index is not opened again for it
        store.commit()
        release_memory()


def _is_of_this_code(store: Store) -> bool:
    current = all(parser == parser_version(name) for name, parser in store.manifest.parsers())
    # A plug-in may change without our code: with one installed, no stored value is known to be current.
    return current and not may_have_plugins(tuple(sys.path))


# Homes of agents


class AgentHome(Struct, kw_only=True):
    """A folder or database of an agent, and what was found in it."""

    agent: str
    path: str
    is_read: bool = True
    """True where the agent's sessions are read at all."""
    files: int = 0
    """Files; a session of a database counts as a file."""
    bytes: int = 0
    sessions: dict[str, int] = field(default_factory=dict)
    """Sessions that would be read, by format. Those that are read together (forks, subagents) count as one."""
    left: dict[str, int] = field(default_factory=dict)
    """Files that would not be read, by reason, including those that are no traces."""


def agent_homes() -> list[AgentHome]:
    """Find every home of a known agent on this machine. Files are recognised by their beginning, none is read."""
    there = [(agent, path, True) for agent, paths in found_homes().items() for path in paths]
    there += [(agent, path, False) for agent, named in unread_homes().items() for path in existing_paths(named)]
    homes = []
    for agent, path, is_read in there:
        plan = planning.make_plan([str(path)], Manifest())
        home = AgentHome(agent=agent, path=str(path), is_read=is_read, files=len(plan.seen))
        sessions, left = Counter[str](), Counter[str]()
        for group in [group for shard in plan.shards for group in shard]:
            home.bytes += group.bytes
            sessions.update({member.format for member in group.files if member.format is not None})
            left.update(member.reason for member in group.files if member.format is None)
        for entry in plan.other_files.values():
            home.bytes += entry.bytes
            left.update(entry.skipped)
        home.sessions, home.left = dict(sorted(sessions.items())), dict(sorted(left.items()))
        homes.append(home)
    return homes


# One transcript, without a store

TAIL_BYTES = 4 * 1024 * 1024
"""Holds the last thousand calls of most agents; reading them takes 0.1 s."""


def session_from_tail(path: Path | str, most_bytes: int = TAIL_BYTES) -> Session:
    """Read the last `most_bytes` of a transcript, without a store. Cut lines are left out. FormatError where no format
    claims it or it holds no session; OSError."""
    with open(path, "rb", buffering=0, opener=nonblocking) as file:
        seen = os.fstat(file.fileno())
        if not stat.S_ISREG(seen.st_mode):
            raise FormatError(f"{path} is not a file.", "Name the log file of a session.")
        head = file.read(HEAD_BYTES)
        skipped = max(0, seen.st_size - most_bytes)
        file.seek(skipped)
        data = file.read(most_bytes)
    if skipped:
        data = data.partition(b"\n")[2]
    return _session(str(path), Head(head, str(path), False) if skipped else head_of(data, str(path)), data)


def session_from_database(file: RawFile) -> Session:
    """Read one session of a database, without a store. FormatError where it can't be read."""
    data = next(read([file]))
    if isinstance(data, Unreadable):
        raise FormatError(f"{file.uri} can't be read: {data.reason}.", "Try again when its agent has started.")
    return _session(file.uri, head_of(data, file.uri), data)


def _session(path: str, head: Head, data: bytes) -> Session:
    identified = identify(head)
    if identified is None:
        raise FormatError(f"The log format of {path} is not known.", "`agentsignals formats` lists the known ones.")
    trace_format = identified[0]
    artifact = Artifact(
        artifact_id="tail", source="local", path=path, format=trace_format.name, sha256="", bytes=len(data)
    )
    sessions = trace_format.read([Input(data, artifact)]).sessions
    if not sessions:
        raise FormatError(f"{path} contains no session yet.", "Try again when its agent has started to work.")
    return max(sessions, key=lambda session: len(session.events))
