"""The living collection: repositories with checkpoints, brought into the store and kept up to date.

One repository after the other, each noted when it is whole: a run that was interrupted goes on where it stopped, and
one over repositories in which nothing is new touches nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.changes import git
from agentsignals.changes import git as objects
from agentsignals.changes.git import GitError, commits_of
from agentsignals.errors import AgentSignalsError, SourceError
from agentsignals.ingest import pipeline
from agentsignals.ingest.engine import ENGINES
from agentsignals.ingest.repository_addresses import Candidate, candidates
from agentsignals.model import Label
from agentsignals.questions.sql import WHERE_EACH_LIES
from agentsignals.repositories import receipt as receipts
from agentsignals.repositories import witness_comparison as witnesses
from agentsignals.repositories.attribute import Attribution, attribute
from agentsignals.repositories.attribute import Tables as AttributionTables
from agentsignals.repositories.checkpoints import Gathered, gather
from agentsignals.repositories.rule_report import RulesReport, of_repository, of_traces
from agentsignals.repositories.sarif import Imported, take_in
from agentsignals.repositories.scan import Scan, scan
from agentsignals.repositories.scan import Tables as ScanTables
from agentsignals.repositories.scanner import Scanner
from agentsignals.sources.git import fetch_repository, is_address
from agentsignals.store import Store, artifact_id
from agentsignals.store import sidecars as label_files
from agentsignals.store import sidecars as repositories
from agentsignals.store.query import rows
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import CommitRow

# Sessions that a program began: the paper leaves out what bots made and prints no rule; this is ours.

TASK, LABELLER = "machine_prompts", "collection"
REPEATED = 3
"""So many sessions of one repository that begin with the same long words were begun by a program
(design/attribution.md#topics-of-swe-chat has a
cluster of such prompts)."""
_LONG_CHARS = 80
"""People repeat short prompts ("continue", "commit this")."""
_COMPARED_CHARS = 400
_VARYING = re.compile(r"[\d\s]+")
"""Numbers, dates and white space, which a program fills in."""


def find(prompts: dict[str, str]) -> set[str]:
    """The sessions, of these with their first prompts, that share a long beginning with enough others."""
    alike: dict[str, set[str]] = defaultdict(set)
    for session_id, text in prompts.items():
        plain = _VARYING.sub(" ", text[:_COMPARED_CHARS]).strip()
        if len(plain) >= _LONG_CHARS:
            alike[plain].add(session_id)
    return {session_id for group in alike.values() if len(group) >= REPEATED for session_id in group}


def marked(store: Store) -> frozenset[str]:
    """The sessions that are labelled so, of all repositories."""
    return frozenset(row.session_id for row in label_files.of_task(store.folder, TASK, LABELLER))


def mark(store: Store, sessions: set[str]) -> set[str]:
    """Labels those of a repository's sessions that a program began, and names them."""
    from agentsignals.store.shards import first_prompts  # noqa: PLC0415  (pyarrow is loaded when asked)

    stored = store.manifest.sessions
    prompts: dict[str, str] = {}
    for shard in sorted({stored[s].shard for s in sessions if s in stored} & set(store.whole("turns"))):
        prompts |= {s: text for s, text in first_prompts(store.folder, shard).items() if s in sessions and text}
    marked = find(prompts)
    reason = f"begins like {REPEATED} sessions or more of its repository"
    rows = [
        LabelRow(s, Label(task=TASK, labeller=LABELLER, turn=None, value="yes", reason=reason)) for s in sorted(marked)
    ]
    if rows or label_files.of_task(store.folder, TASK, LABELLER):
        label_files.replace(store.folder, TASK, LABELLER, sessions, rows)
    return marked


NOTE = "collected"
_SUMMED = (
    "checkpoints", "new_checkpoints", "commits", "new_commits", "sessions", "machine_sessions", "sessions_left_out",
)  # fmt: skip
_FIGURES = CommitRow.__struct_fields__[CommitRow.__struct_fields__.index("in_turn") :]
"""The columns that attribution fills."""


class Filters(Struct, frozen=True):
    """What a repository must have to be taken (the paper's population, design/attribution.md#population)."""

    forks: bool = True
    """Whether forks are taken, where a search result says which are."""
    min_checkpoints: int = 1
    min_commits: int = 0
    min_linked: int = 0
    """Commits that name a checkpoint."""
    machine_prompts: bool = True
    """Whether sessions that a program began are kept; they are labelled in any case."""


class Collected(Struct, kw_only=True):
    """A repository after a run."""

    repo: str
    status: str
    """`new`, `updated`, `unchanged`, `filtered`, `failed`."""
    reason: str | None = None
    checkpoints: int = 0
    new_checkpoints: int = 0
    commits: int = 0
    new_commits: int = 0
    linked: int = 0
    sessions: int = 0
    machine_sessions: int = 0
    """Sessions that a program began (`collection.machine_prompts`), labelled so."""
    sessions_left_out: int = 0
    """Of those, the ones that are not in the store, because they were filtered."""
    files_read: int = 0
    """Files of the checkpoints that this run opened."""


class Collection(Struct, kw_only=True):
    """What a run found and did."""

    store: str
    repositories: list[Collected] = field(default_factory=list)
    by_status: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    """How many repositories each filter left out."""
    checkpoints: int = 0
    new_checkpoints: int = 0
    commits: int = 0
    new_commits: int = 0
    sessions: int = 0
    machine_sessions: int = 0
    sessions_left_out: int = 0


class _Kept(Struct):
    tips: str
    filters: Filters
    collected: Collected = field(name="told")


class Opened(Struct, frozen=True):
    """A repository at hand: its Git folder, and what tables and sources call it."""

    git_dir: str
    name: str

    @property
    def spec(self) -> str:
        """The source of its checkpoints."""
        return f"git:{self.name}" if not is_address(self.name) else f"git:{self.git_dir}"


def open_repository(place: str) -> Opened:
    """The repository of a path or an address, which is fetched. SourceError when there is none."""
    place = place.removeprefix("git:") if not place.startswith("git://") else place
    if is_address(place):
        git_dir, _ = fetch_repository(place)
        return Opened(git_dir, place)
    located = objects.locate(Path(place).expanduser().absolute())
    if located is None:
        raise SourceError(
            f"{place!r} is no Git repository.", "Name a repository's folder, or its https or ssh address."
        )
    return Opened(*located)


def collect(
    wanted: Iterable[str],
    store_folder: Path | str | None = None,
    filters: Filters | None = None,
    *,
    jobs: int | None = None,
    progress: pipeline.Progress = pipeline.silent,
) -> Collection:
    """Brings repositories into the store: sessions of their checkpoints, commits, what links them.

    `wanted`: paths, addresses, folders of clones, lists, saved search results (`collection.places`).
    """
    store = Store(store_folder, create=True)
    taken = filters or Filters()
    summary = Collection(store=str(store.folder))
    listed = candidates(wanted)
    for done, candidate in enumerate(listed):
        progress("collecting", done, len(listed))
        collected = _guarded(candidate, partial(_collect_repository, candidate, store_folder, taken, jobs))
        summary.repositories.append(collected)
    summary.by_status = dict(sorted(Counter(collected.status for collected in summary.repositories).items()))
    summary.filtered = dict(
        Counter(collected.reason or "" for collected in summary.repositories if collected.status == "filtered")
    )
    for name in _SUMMED:
        setattr(summary, name, sum(getattr(collected, name) for collected in summary.repositories))
    return summary


def _guarded(candidate: Candidate, work: Callable[[], Collected]) -> Collected:
    """A repository that can't be read does not cost the others."""
    try:
        return work()
    except (AgentSignalsError, GitError) as failed:
        return Collected(repo=candidate.place, status="failed", reason=reason_of(failed))


def reason_of(problem: AgentSignalsError | GitError) -> str:
    """Why a repository failed, and what to do."""
    hint = problem.hint if isinstance(problem, AgentSignalsError) else ""
    return f"{problem} {hint}".strip() or "git said nothing"


def _collect_repository(
    candidate: Candidate, store_folder: Path | str | None, filters: Filters, jobs: int | None
) -> Collected:
    if candidate.is_fork and not filters.forks:
        return Collected(repo=candidate.place, status="filtered", reason="fork")
    at = open_repository(candidate.place)
    store = Store(store_folder)
    repositories.start_afresh(store.folder, at.name)
    kept = _kept(store, at.name)
    tips = git.tips_name(at.git_dir)
    if kept is not None and kept.tips == tips and kept.filters == filters:
        collected = kept.collected
        collected.new_checkpoints = collected.new_commits = collected.files_read = 0
        collected.status = "unchanged" if collected.status != "filtered" else "filtered"
        return collected
    gathered = gather(at.git_dir, at.spec)
    collected = _counted(
        at.name, gathered, kept.collected if kept is not None and kept.collected.status != "filtered" else None
    )
    collected.reason = _left_out(gathered, filters)
    if collected.reason is not None:
        collected.status = "filtered"
    else:
        if gathered.recorded:
            _read(at, gathered, collected, store_folder, filters, jobs)
        rows = gathered.rows(at.name)
        repositories.update_repositories(store.folder, at.name, "commits", lambda before: _with_figures(before, rows))
    repositories.write_note(store.folder, at.name, NOTE, _Kept(tips, filters, collected))
    return collected


def _read(  # noqa: PLR0913  (what a run is given, and what it fills)
    at: Opened,
    gathered: Gathered,
    collected: Collected,
    store_folder: Path | str | None,
    filters: Filters,
    jobs: int | None,
) -> None:
    """Brings the sessions of a repository into the store. Which of them a program began is seen when all are there."""
    read = pipeline.ingest([at.spec], store_folder, jobs=jobs)
    collected.files_read = read.parsed
    machine_sessions = mark(Store(store_folder), {r.session_id for r in gathered.recorded})
    collected.machine_sessions = len(machine_sessions)
    if machine_sessions and not filters.machine_prompts:
        read = pipeline.ingest([at.spec], store_folder, jobs=jobs, exclude=frozenset(machine_sessions))
        collected.sessions_left_out = read.excluded_sessions
    collected.sessions = read.sessions


def _with_figures(before: list[dict[str, Any]], rows: list[CommitRow]) -> list[CommitRow]:
    """The rows with what attribution found of their lines before: it stays until they are attributed again."""
    by_sha = {old["commit_sha"]: old for old in before}
    for row in rows:
        old = by_sha.get(row.commit_sha, {})
        for figure in _FIGURES:
            if old.get(figure) is not None:
                setattr(row, figure, old[figure])
    return rows


def _counted(name: str, gathered: Gathered, before: Collected | None) -> Collected:
    checkpoints, commits = len(gathered.checkpoint_ids), len(gathered.commits)
    return Collected(
        repo=name,
        status="new" if before is None else "updated",
        checkpoints=checkpoints,
        new_checkpoints=max(checkpoints - before.checkpoints, 0) if before else checkpoints,
        commits=commits,
        new_commits=max(commits - before.commits, 0) if before else commits,
        linked=len({link.sha for link in gathered.links}),
    )


def _left_out(gathered: Gathered, filters: Filters) -> str | None:
    figures = (
        (len(gathered.checkpoint_ids), filters.min_checkpoints, "fewer_checkpoints"),
        (len(gathered.commits), filters.min_commits, "fewer_commits"),
        (len({link.sha for link in gathered.links}), filters.min_linked, "fewer_linked_commits"),
    )
    return next((reason for n, least, reason in figures if n < least), None)


def _kept(store: Store, name: str) -> _Kept | None:
    note = repositories.note(store.folder, name, NOTE)
    try:
        return msgspec.json.decode(note, type=_Kept) if note else None
    except msgspec.DecodeError:  # of an older version
        return None


def attributed(
    place: str,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
) -> Attribution:
    """Whose lines a repository's commits added: reads its checkpoints into the store first, and measures after.

    `place` is a path or an address. `afresh`: also where nothing changed since the last time. `jobs`, `engine`: as
    `pipeline.ingested` has them.
    """
    at = open_repository(place)
    for problem in brought_in([at], store_folder, jobs=jobs, engine=engine).values():
        raise problem
    store = Store(store_folder)
    result = attribute(store, at.git_dir, at.name, at.spec, afresh).write(store)
    pipeline.measure(store_folder)  # also of what a run left that was killed before it came to this
    return result


def brought_in(
    places: Iterable[Opened], store_folder: Path | str | None, *, jobs: int | None, engine: str
) -> dict[str, SourceError]:
    """Reads the checkpoints of repositories into the store, all in one run. Gives those that have none, by name, with
    what speaks against them: nothing where the store has sessions, which may be of their folders.
    """
    store = Store(store_folder, create=True)
    alike: dict[frozenset[str], list[Opened]] = {}
    for at in places:
        repositories.start_afresh(store.folder, at.name)
        kept = _kept(store, at.name)
        left_out = kept is not None and not kept.filters.machine_prompts
        alike.setdefault(marked(store) if left_out else frozenset(), []).append(at)

    def read(those: list[Opened], exclude: frozenset[str]) -> dict[str, SourceError]:
        try:
            pipeline.ingest([at.spec for at in those], store_folder, jobs=jobs, engine=engine, exclude=exclude)
        except SourceError as problem:
            if len(those) == 1:
                return {those[0].name: problem}
            return {name: why for at in those for name, why in read([at], exclude).items()}
        return {}

    without = {name: why for exclude, those in alike.items() for name, why in read(those, exclude).items()}
    return without if without and not Store(store_folder).manifest.sessions else {}


def witnessed(place: str, store_folder: Path | str | None = None, *, jobs: int | None = None) -> witnesses.Witnessed:
    """What others recorded of a repository's lines, beside the replay, which is made first where it is not up to date.

    A repository whose sessions nobody has is one whose lines only the others speak of. SourceError where `place` is no
    repository.
    """
    at = open_repository(place)
    with suppress(SourceError):  # no checkpoints, no sessions: nothing was replayed
        attributed(place, store_folder, jobs=jobs)
    folder = Path(at.name) if not is_address(place.removeprefix("git:")) else None
    return witnesses.witnessed(Store(store_folder, create=True), at.git_dir, at.name, folder)


def receipt(
    place: str, revision: str = "HEAD", store_folder: Path | str | None = None, *, jobs: int | None = None
) -> receipts.Receipt:
    """What agents did for the commits that a revision names (`git.revisions.commits_of`), whose lines are attributed
    first where that is not up to date. SourceError where `place` is no repository, or `revision` no commit of it.
    """
    at = open_repository(place)
    shas = commits_of(at.git_dir, git.commits(at.git_dir), revision)
    if shas is None:
        raise SourceError(f"{revision!r} names no commit of {at.name}.", "Name a commit, a branch, or A..B.")
    if not shas:
        raise SourceError(f"{revision!r} holds no commit.", "Turn the ends round: OLDER..NEWER; merges don't count.")
    with suppress(SourceError):  # no checkpoints, no sessions: the receipt says so
        attributed(place, store_folder, jobs=jobs)
    return receipts.receipt(Store(store_folder, create=True), at.git_dir, at.name, shas)


# Several repositories in one run: a task for each, of whatever engine. This process alone writes into the store, in
# the order in which they were named, so that the tables are those of one run after the other. One that fails, or
# ends its worker, costs no other.

R = TypeVar("R")
_DIED = "A worker died over it, twice: killed, or out of memory."
_MOST_DEATHS = 2
"""A worker may die of something else, so a repository is tried again, once (as `shard` does with a family)."""


class Failed(Struct, frozen=True):
    """A repository that nothing came of."""

    repo: str
    reason: str


class Several(Struct, Generic[R]):
    """What came of each repository, in the order in which they were named."""

    repositories: list[R] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)


class Tables(Protocol[R]):  # type: ignore[misc]  # R is given out alone; which variance it has is nobody's concern
    """Rows of one repository, made in a worker."""

    def write(self, store: Store) -> R: ...


class Task(Struct, frozen=True, kw_only=True):
    """One repository to work on."""

    at: Opened
    root: str
    """The store's folder."""
    afresh: bool
    deaths: int = 0
    """How often a worker died over it."""

    def tables(self) -> Tables[Any]:
        """Does the work."""
        raise NotImplementedError


class Attributing(Task, frozen=True, kw_only=True):
    """`attribute`, as a task."""

    def tables(self) -> AttributionTables:
        return attribute(Store(self.root), self.at.git_dir, self.at.name, self.at.spec, self.afresh)


def attributed_several(  # noqa: PLR0913  (choices of one run, by keyword)
    places: Iterable[str],
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> tuple[list[Opened], Several[Attribution]]:
    """As `collection.attributed`, of several repositories; gives those that were, too."""
    opened, failed = _opened(places)
    without = brought_in(opened, store_folder, jobs=jobs, engine=engine)
    failed += [Failed(name, reason_of(problem)) for name, problem in without.items()]
    opened = [at for at in opened if at.name not in without]
    store = Store(store_folder)
    tasks = [Attributing(at=at, root=str(store.folder), afresh=afresh) for at in opened]
    made: Several[Attribution] = over_engine("attributing", tasks, store, jobs, engine, progress)
    made.failed = failed + made.failed
    pipeline.measure(store_folder)
    lost = {failure.repo for failure in made.failed}
    return [at for at in opened if at.name not in lost], made


def over_engine(  # noqa: PLR0913  (what is done, by how many, of which engine, telling whom)
    stage: str,
    tasks: Sequence[Task],
    store: Store,
    jobs: int | None,
    engine: str,
    progress: pipeline.Progress,
) -> Several[Any]:
    """Does the tasks and writes what they made."""
    several: Several[Any] = Several()
    workers = min(jobs or pipeline.default_jobs(), len(tasks))
    with closing(ENGINES.get(engine)().map(_answer, list(enumerate(tasks)), workers, _again)) as answers:
        for tables in _in_order(answers):
            if isinstance(tables, Failed):
                several.failed.append(tables)
            else:
                several.repositories.append(tables.write(store))
            progress(stage, len(several.repositories) + len(several.failed), len(tasks))
    return several


def _opened(places: Iterable[str]) -> tuple[list[Opened], list[Failed]]:
    """The repositories of these places, each once, and what can't be opened."""
    opened: dict[str, Opened] = {}
    failed = []
    for place in places:
        try:
            at = open_repository(place)
        except (AgentSignalsError, GitError) as problem:
            failed.append(Failed(place, reason_of(problem)))
        else:
            opened[at.name] = at
    return list(opened.values()), failed


def _in_order(answers: Iterable[tuple[int, R]]) -> Iterator[R]:
    waiting: dict[int, R] = {}
    due = 0
    for nth, answer in answers:
        waiting[nth] = answer
        while due in waiting:
            yield waiting.pop(due)
            due += 1


def _answer(numbered: tuple[int, Task]) -> tuple[int, Tables[Any] | Failed]:
    """What a worker does."""
    nth, task = numbered
    if task.deaths == _MOST_DEATHS:
        return nth, Failed(task.at.name, _DIED)
    try:
        return nth, task.tables()
    except (AgentSignalsError, GitError) as problem:
        return nth, Failed(task.at.name, reason_of(problem))


def _again(numbered: tuple[int, Task]) -> list[tuple[int, Task]]:
    """What to do in the place of a task that ended its worker."""
    nth, task = numbered
    return [(nth, replace(task, deaths=task.deaths + 1))] if task.deaths < _MOST_DEATHS else []


# The sessions that worked in a repository, for its rules: those of its checkpoints, those of the store that lie in
# its folder or name it, and those that lie where these do (clones, worktrees) and came with no other repository.

_OWNER = re.compile(r"[:/]([^/:]+/[^/:]+?)(?:\.git)?/?$")


def rules(
    place: str | None, store_folder: Path | str | None = None, *, file: str | None = None, jobs: int | None = None
) -> RulesReport:
    """The mechanical rules of a repository (a path or an address), whose checkpoints are read into the store first;
    without one those that the store's traces show. SourceError where `place` is no repository."""
    if place is None:
        store = Store(store_folder)
        places = dict(rows(store, WHERE_EACH_LIES)[1])
        return of_traces(store.read, places)
    at = open_repository(place)
    with suppress(SourceError):  # no checkpoints: the sessions of its folder will do, if there are any
        pipeline.ingest([at.spec], store_folder, jobs=jobs)
    store = Store(store_folder, create=True)
    return of_repository(at.git_dir, at.name, store.read(_sessions(store, at)), file)


def _sessions(store: Store, at: Opened) -> set[str]:
    recorded = {record.session_id for record in gather(at.git_dir, at.spec).recorded}
    address = _OWNER.search(objects.origin(at.git_dir) or at.name)
    owner = address[1].lower() if address else None
    folder = at.name.rstrip("/")
    others = {
        artifact_id(uri) for uri in store.manifest.files if uri[:4] == "git:" and not uri.startswith(f"{at.spec}@")
    }
    sessions = rows(store, "SELECT session_id, repo, cwd, artifact_id FROM sessions ORDER BY session_id")[1]
    lying = {
        session_id
        for session_id, repo, cwd, _ in sessions
        if (repo and owner and repo.lower() == owner) or (cwd and (cwd == folder or cwd.startswith(f"{folder}/")))
    } | (recorded & store.manifest.sessions.keys())
    places = dict(rows(store, WHERE_EACH_LIES)[1])
    here = {place for session_id in lying if (place := places.get(session_id)) is not None}
    elsewhere = {session_id for session_id, *_, artifact in sessions if artifact in others} - lying
    return lying | {session_id for session_id, place in places.items() if place in here} - elsewhere


# A repository scanned: attributed first, so that every finding has an owner, and measured after.


def scanned(  # noqa: PLR0913  (choices of one run, by keyword)
    place: str,
    scanner: Scanner,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> Scan:
    """Which weaknesses the linked commits of a repository introduced and fixed. `place` is a path or an address;
    `afresh`: files that were scanned before are scanned again.
    """
    at = open_repository(place)
    attributed(place, store_folder, jobs=jobs, engine=engine)
    store = Store(store_folder)
    result = scan(store, (at.git_dir, at.name), scanner, progress, afresh=afresh).write(store)
    pipeline.measure(store_folder)
    return result


class Scanning(Task, frozen=True, kw_only=True):
    """`scan`, as a task."""

    scanner: Scanner

    def tables(self) -> ScanTables:
        at = self.at.git_dir, self.at.name
        return scan(Store(self.root), at, self.scanner, pipeline.silent, afresh=self.afresh)


def scanned_several(  # noqa: PLR0913  (choices of one run, by keyword)
    places: Iterable[str],
    scanner: Scanner,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> Several[Scan]:
    """As `scanned`, of several repositories."""
    opened, attributions = attributed_several(places, store_folder, jobs=jobs, engine=engine, progress=progress)
    store = Store(store_folder)
    tasks = [Scanning(at=at, root=str(store.folder), afresh=afresh, scanner=scanner) for at in opened]
    made: Several[Scan] = over_engine("scanning", tasks, store, jobs, engine, progress)
    made.failed = attributions.failed + made.failed
    pipeline.measure(store_folder)
    return made


def with_report(
    place: str, sarif: Path, store_folder: Path | str | None = None, *, jobs: int | None = None
) -> Imported:
    """Takes the findings of a SARIF file in, each with the commit and the owner of its line."""
    at = open_repository(place)
    attributed(place, store_folder, jobs=jobs)
    return take_in(Store(store_folder), at.git_dir, at.name, sarif)
