"""Repositories as a whole: their checkpoints read into the store, their commits attributed, scanned and explained.

A collection is kept up to date. Each repository is noted when it is complete, so that an interrupted run continues
where it stopped, and a run in which nothing is new changes nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals.changes import git
from agentsignals.changes.git import GitError, commits_of
from agentsignals.errors import AgentSignalsError, SourceError
from agentsignals.ingest import pipeline
from agentsignals.ingest.engine import ENGINES
from agentsignals.model import Label
from agentsignals.questions.sql import WHERE_EACH_LIES
from agentsignals.repositories import receipt as receipts
from agentsignals.repositories import witness_comparison as witnesses
from agentsignals.repositories.attribute import Attribution, attribute
from agentsignals.repositories.rule_report import RulesReport, of_repository, of_traces
from agentsignals.repositories.scan import Imported, Scan, scan, take_in
from agentsignals.repositories.scanners import Scanner
from agentsignals.repositories.working_trees import gather
from agentsignals.sources.git import checkpoint_layout, fetch_repository, is_address
from agentsignals.store import Store, artifact_id, sidecars
from agentsignals.store.query import rows
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import CommitRow

# Repositories that somebody named: paths, addresses, folders of clones, lists, saved search results

_OWNER_AND_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}")
_LARGEST_LIST = 64 * 1024 * 1024
_DEEP = 2
"""Levels of folders that a folder of clones is searched: OWNER/NAME."""


class NamedRepository(Struct, frozen=True):
    place: str
    """A path or an address."""
    is_fork: bool = False
    """True where a search result says so."""


def named_repositories(wanted: Iterable[str]) -> list[NamedRepository]:
    """Return each repository named, once, in order. SourceError for a name that is not understood."""
    by_place: dict[str, NamedRepository] = {}
    for place in wanted:
        for candidate in _addressed(place):
            earlier = by_place.get(candidate.place)
            by_place[candidate.place] = candidate if earlier is None or candidate.is_fork else earlier
    return list(by_place.values())


def _addressed(place: str) -> Iterator[NamedRepository]:
    """Yield the repositories that an argument names: an address, a list in a file, a clone, or a folder of clones."""
    plain = place.removeprefix("git:") if not place.startswith("git://") else place
    if is_address(plain):
        yield NamedRepository(plain)
        return
    path = Path(plain).expanduser()
    if os.path.isfile(path):  # noqa: PTH113  (Path.is_file raises for a name that is too long)
        # Read a list: a repository a line (`#` begins a comment), or JSON with objects that name
        # repositories.
        with path.open("rb") as file:
            data = file.read(_LARGEST_LIST)
        try:
            listed = list(_listed(msgspec.json.decode(data)))
        except (msgspec.DecodeError, RecursionError):
            listed = []
            for line in data.decode("utf-8", "replace").splitlines():
                word = line.partition("#")[0].strip()
                if word:
                    listed.append(_candidate(word, path.parent))
        if not listed:
            raise SourceError(
                f"{str(path)!r} is not a repository.", "Write one per line: a path, an address or OWNER/NAME."
            )
        yield from listed
    elif os.path.isdir(path):  # noqa: PTH112
        if git.locate(path) is not None and _is_own(path):
            yield NamedRepository(str(path.absolute()))
            return
        inside = [NamedRepository(str(p)) for p in _clones(path.absolute(), _DEEP)]
        if not inside:
            raise SourceError(f"{place!r} contains no Git repository.", "Name a repository, or a folder of clones.")
        yield from inside
    elif _OWNER_AND_NAME.fullmatch(plain):
        yield NamedRepository(f"https://github.com/{plain}")
    else:
        raise SourceError(
            f"No repository is found at {place!r}.",
            "Name a repository's folder or address, OWNER/NAME, a folder of clones, a text file with one a line, or a"
            " JSON file saved from a repository search.",
        )


def _is_own(path: Path) -> bool:
    """True for a folder that is a repository itself, not just inside one."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def _clones(folder: Path, deep: int) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or path.is_symlink():
            continue
        if _is_own(path):
            yield path
        elif deep > 1:
            yield from _clones(path, deep - 1)


def _candidate(word: str, folder: Path) -> NamedRepository:
    if is_address(word):
        return NamedRepository(word)
    local = (folder / Path(word).expanduser()).absolute()
    if os.path.isdir(local):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        return NamedRepository(str(local))
    if _OWNER_AND_NAME.fullmatch(word):
        return NamedRepository(f"https://github.com/{word}")
    return NamedRepository(str(local))


def _listed(value: Any) -> Iterator[NamedRepository]:
    """Repositories in a search answer: its items, the repository of a found file, or a plain list."""
    if isinstance(value, list):
        for item in value:
            yield from _listed(item)
    elif isinstance(value, str) and (is_address(value) or _OWNER_AND_NAME.fullmatch(value)):
        yield NamedRepository(value if is_address(value) else f"https://github.com/{value}")
    elif isinstance(value, dict):
        if isinstance(items := value.get("items") or value.get("repositories"), list):
            yield from _listed(items)
        elif isinstance(inner := value.get("repository"), dict):
            yield from _listed(inner)
        else:
            fork = value.get("fork", value.get("is_fork", value.get("isFork"))) is True
            texts = {key: text for key, text in value.items() if isinstance(text, str)}
            addresses = [texts[key] for key in ("clone_url", "html_url", "url") if key in texts]
            addresses = [text for text in addresses if is_address(text) and "://api." not in text]
            names = [texts[key] for key in ("full_name", "nameWithOwner", "name") if key in texts]
            names = [f"https://github.com/{name}" for name in names if _OWNER_AND_NAME.fullmatch(name)]
            for address in [*addresses, *names][:1]:
                yield NamedRepository(address, fork)


class DiscoveredRepository(Struct, kw_only=True):
    """A repository and what its refs tell. Nothing is known of a remote one before it is fetched."""

    place: str
    is_here: bool
    is_fork: bool = False
    layouts: dict[str, int] = field(default_factory=dict)
    """Number of refs by the way they keep checkpoints: `sharded` (a branch or ref of many), `rooted` (a ref each),
    `shadow`."""
    commits: int | None = None
    naming: int | None = None
    """Commits whose message names a checkpoint."""
    trouble: str | None = None


def discover(wanted: Iterable[str]) -> list[DiscoveredRepository]:
    """Look into each repository named, before anything is read or fetched."""
    return [_looked_at(c.place, c.is_fork) for c in named_repositories(wanted)]


def _looked_at(place: str, is_fork: bool) -> DiscoveredRepository:
    if is_address(place):
        return DiscoveredRepository(place=place, is_here=False, is_fork=is_fork)
    repository = DiscoveredRepository(place=place, is_here=True, is_fork=is_fork)
    located = git.locate(Path(place))
    if located is None:
        repository.trouble = "no Git repository"
        return repository
    try:
        kept = (checkpoint_layout(name) for name, _ in git.refs(located[0]))
        repository.layouts = dict(sorted(Counter(layout[0] for layout in kept if layout).items()))
        commits = git.commits(located[0])
    except GitError as failed:
        repository.trouble = str(failed) or "git printed nothing"
        return repository
    repository.commits, repository.naming = len(commits), sum(bool(c.checkpoint_ids) for c in commits)
    return repository


# Sessions that a program began

TASK, LABELLER = "machine_prompts", "collection"
REPEATED = 3
"""Number of sessions of a repository with the same long beginning from which on a program is taken to have begun them
(design/attribution.md#topics-of-swe-chat has a cluster of such prompts; the paper prints no rule)."""
_LONG_CHARS = 80
"""Shortest beginning that counts. People repeat short prompts ("continue", "commit this")."""
_COMPARED_CHARS = 400
_VARYING = re.compile(r"[\d\s]+")
"""Numbers, dates and white space, which a program fills in."""


def label_machine_prompts(store: Store, sessions: set[str]) -> set[str]:
    """Label the sessions of a repository that a program began, and return them."""
    from agentsignals.store.shards import first_prompts  # noqa: PLC0415  (pyarrow is loaded when asked)

    stored = store.manifest.sessions
    prompts: dict[str, str] = {}
    for shard in sorted({stored[s].shard for s in sessions if s in stored} & set(store.readable_shards("turns"))):
        found = first_prompts(store.folder, shard, store.manifest.shards[shard].gone)
        prompts |= {s: text for s, text in found.items() if s in sessions and text}
    alike: dict[str, set[str]] = defaultdict(set)
    for session_id, text in prompts.items():
        plain = _VARYING.sub(" ", text[:_COMPARED_CHARS]).strip()
        if len(plain) >= _LONG_CHARS:
            alike[plain].add(session_id)
    marked = {session_id for group in alike.values() if len(group) >= REPEATED for session_id in group}
    reason = f"begins like {REPEATED} sessions or more of its repository"
    rows = [
        LabelRow(s, Label(task=TASK, labeller=LABELLER, turn=None, value="yes", reason=reason)) for s in sorted(marked)
    ]
    if rows or sidecars.labels_of(store.folder, TASK, LABELLER):
        sidecars.replace_labels(store.folder, TASK, LABELLER, sessions, rows)
    return marked


NOTE = "collected"
_SUMMED = (
    "checkpoints", "new_checkpoints", "commits", "new_commits", "sessions", "machine_sessions", "sessions_left_out",
)  # fmt: skip
_FIGURES = CommitRow.__struct_fields__[CommitRow.__struct_fields__.index("in_turn") :]
"""Columns that attribution fills."""


class Filters(Struct, frozen=True):
    """Conditions for a repository to be taken (the paper's population, design/attribution.md#population)."""

    forks: bool = True
    """Take forks, where a search result says which are."""
    min_checkpoints: int = 1
    min_commits: int = 0
    min_linked: int = 0
    """Commits that name a checkpoint."""
    machine_prompts: bool = True
    """Keep sessions that a program began. They are labelled in any case."""


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
    """Sessions that a program began, labelled so."""
    sessions_left_out: int = 0
    """Sessions that a program began and that are not in the store, because they were filtered."""
    files_read: int = 0
    """Files of the checkpoints that this run opened."""


class Collection(Struct, kw_only=True):
    """Repositories after a run, and their totals."""

    store: str
    repositories: list[Collected] = field(default_factory=list)
    by_status: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    """Repositories that each filter left out."""
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


class Repository(Struct, frozen=True):
    """A repository on this machine: its Git folder, and its name in tables and sources."""

    git_dir: str
    name: str

    @property
    def spec(self) -> str:
        """Source of its checkpoints."""
        return f"git:{self.name}" if not is_address(self.name) else f"git:{self.git_dir}"


def open_repository(place: str) -> Repository:
    """Open the repository of a path or an address, which is fetched. SourceError when there is none."""
    place = place.removeprefix("git:") if not place.startswith("git://") else place
    if is_address(place):
        git_dir, _ = fetch_repository(place)
        return Repository(git_dir, place)
    located = git.locate(Path(place).expanduser().absolute())
    if located is None:
        raise SourceError(
            f"{place!r} is not a Git repository.", "Name a repository's folder, or its https or ssh address."
        )
    return Repository(*located)


def collect(
    wanted: Iterable[str],
    store_folder: Path | str | None = None,
    filters: Filters | None = None,
    *,
    jobs: int | None = None,
    progress: pipeline.Progress = pipeline.silent,
) -> Collection:
    """Bring repositories into the store: sessions of their checkpoints, commits, and the links between them.

    `wanted`: paths, addresses, folders of clones, lists, saved search results (`named_repositories`).
    """
    store = Store(store_folder, create=True)
    taken = filters or Filters()
    summary = Collection(store=str(store.folder))
    listed = named_repositories(wanted)
    for done, candidate in enumerate(listed):
        progress("collecting", done, len(listed))
        try:
            collected = _collect_repository(candidate, store_folder, taken, jobs)
        except (AgentSignalsError, GitError) as failed:
            collected = Collected(repo=candidate.place, status="failed", reason=reason_of(failed))
        summary.repositories.append(collected)
    every = summary.repositories
    summary.by_status = dict(sorted(Counter(one.status for one in every).items()))
    summary.filtered = dict(Counter(one.reason or "" for one in every if one.status == "filtered"))
    for name in _SUMMED:
        setattr(summary, name, sum(getattr(one, name) for one in every))
    return summary


def reason_of(problem: AgentSignalsError | GitError) -> str:
    """Return why a repository failed, and what to do."""
    hint = problem.hint if isinstance(problem, AgentSignalsError) else ""
    return f"{problem} {hint}".strip() or "git printed nothing"


def _collect_repository(
    candidate: NamedRepository, store_folder: Path | str | None, filters: Filters, jobs: int | None
) -> Collected:
    """Read a repository's sessions and commits into the store, unless it is unchanged or a filter leaves it out."""
    if candidate.is_fork and not filters.forks:
        return Collected(repo=candidate.place, status="filtered", reason="fork")
    at = open_repository(candidate.place)
    store = Store(store_folder)
    sidecars.set_aside_damaged(store.folder, at.name)
    kept = _kept(store, at.name)
    tips = git.tips_name(at.git_dir)
    if kept is not None and kept.tips == tips and kept.filters == filters:
        collected = kept.collected
        collected.new_checkpoints = collected.new_commits = collected.files_read = 0
        collected.status = "unchanged" if collected.status != "filtered" else "filtered"
        return collected
    gathered = gather(at.git_dir, at.spec)
    before = kept.collected if kept is not None and kept.collected.status != "filtered" else None
    n_checkpoints, n_commits = len(gathered.checkpoint_ids), len(gathered.commits)
    collected = Collected(
        repo=at.name,
        status="new" if before is None else "updated",
        checkpoints=n_checkpoints,
        new_checkpoints=max(n_checkpoints - before.checkpoints, 0) if before else n_checkpoints,
        commits=n_commits,
        new_commits=max(n_commits - before.commits, 0) if before else n_commits,
        linked=len({link.sha for link in gathered.links}),
    )
    figures = (
        (collected.checkpoints, filters.min_checkpoints, "fewer_checkpoints"),
        (collected.commits, filters.min_commits, "fewer_commits"),
        (collected.linked, filters.min_linked, "fewer_linked_commits"),
    )
    collected.reason = next((reason for n, least, reason in figures if n < least), None)
    if collected.reason is not None:
        collected.status = "filtered"
    else:
        if gathered.recorded:
            # Read the sessions of a repository. Those that a program began are known when all are there.
            read = pipeline.ingest([at.spec], store_folder, jobs=jobs)
            collected.files_read = read.parsed
            machine_sessions = label_machine_prompts(Store(store_folder), {r.session_id for r in gathered.recorded})
            collected.machine_sessions = len(machine_sessions)
            if machine_sessions and not filters.machine_prompts:
                read = pipeline.ingest([at.spec], store_folder, jobs=jobs, exclude=frozenset(machine_sessions))
                collected.sessions_left_out = read.excluded_sessions
            collected.sessions = read.sessions
        rows = gathered.rows(at.name)

        def with_figures(before: list[dict[str, Any]]) -> list[CommitRow]:
            """Keep what attribution found of these commits, until they are attributed again."""
            by_sha = {old["commit_sha"]: old for old in before}
            for row in rows:
                old = by_sha.get(row.commit_sha, {})
                for figure in _FIGURES:
                    if old.get(figure) is not None:
                        setattr(row, figure, old[figure])
            return rows

        sidecars.update_repository_rows(store.folder, at.name, "commits", with_figures)
    sidecars.write_note(store.folder, at.name, NOTE, _Kept(tips, filters, collected))
    return collected


def _kept(store: Store, name: str) -> _Kept | None:
    note = sidecars.read_note(store.folder, name, NOTE)
    try:
        return msgspec.json.decode(note, type=_Kept) if note else None
    except msgspec.DecodeError:  # of an older version
        return None


def attribute_repository(
    place: str,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
) -> Attribution:
    """Attribute the added lines of a repository's commits. Its checkpoints are read first; signals are measured after.

    `place` is a path or an address. `afresh` repeats it where nothing changed. `jobs`, `engine`: as in
    `pipeline.ingest_into`.
    """
    at = open_repository(place)
    for problem in read_checkpoints([at], store_folder, jobs=jobs, engine=engine).values():
        raise problem
    store = Store(store_folder)
    result = attribute(store, at.git_dir, at.name, at.spec, afresh).write(store)
    pipeline.measure(store_folder)  # also of what a run left that was killed before it came to this
    return result


def read_checkpoints(
    places: Iterable[Repository], store_folder: Path | str | None, *, jobs: int | None, engine: str
) -> dict[str, SourceError]:
    """Read the checkpoints of repositories in one run. Return the repositories without any, by name, with the error;
    none where the store has sessions, which may be of their folders."""
    store = Store(store_folder, create=True)
    alike: dict[frozenset[str], list[Repository]] = {}
    for at in places:
        sidecars.set_aside_damaged(store.folder, at.name)
        kept = _kept(store, at.name)
        left_out = kept is not None and not kept.filters.machine_prompts
        labelled = sidecars.labels_of(store.folder, TASK, LABELLER) if left_out else []  # as begun by a program
        alike.setdefault(frozenset(row.session_id for row in labelled), []).append(at)

    def read(those: list[Repository], exclude: frozenset[str]) -> dict[str, SourceError]:
        try:
            pipeline.ingest([at.spec for at in those], store_folder, jobs=jobs, engine=engine, exclude=exclude)
        except SourceError as problem:
            if len(those) == 1:
                return {those[0].name: problem}
            return {name: why for at in those for name, why in read([at], exclude).items()}
        return {}

    without = {name: why for exclude, those in alike.items() for name, why in read(those, exclude).items()}
    return without if without and not Store(store_folder).manifest.sessions else {}


def witness_repository(
    place: str, store_folder: Path | str | None = None, *, jobs: int | None = None
) -> witnesses.Witnessed:
    """Compare the attribution of a repository's lines with what other tools recorded. SourceError where `place` is no
    repository.

    The attribution is made first where it is not up to date. Without sessions only the other records remain.
    """
    at = open_repository(place)
    with suppress(SourceError):  # no checkpoints, no sessions: nothing was replayed
        attribute_repository(place, store_folder, jobs=jobs)
    folder = Path(at.name) if not is_address(place.removeprefix("git:")) else None
    return witnesses.witnessed(Store(store_folder, create=True), at.git_dir, at.name, folder)


def repository_receipt(
    place: str, revision: str = "HEAD", store_folder: Path | str | None = None, *, jobs: int | None = None
) -> receipts.Receipt:
    """Return what agents did for the commits that a revision names. They are attributed first where that is not up to
    date. SourceError where `place` is no repository, or `revision` names no commit."""
    at = open_repository(place)
    shas = commits_of(at.git_dir, git.commits(at.git_dir), revision)
    if shas is None:
        raise SourceError(f"{revision!r} is not a commit of {at.name}.", "Name a commit, a branch, or A..B.")
    if not shas:
        raise SourceError(f"{revision!r} contains no commit.", "Write OLDER..NEWER. Merges do not count.")
    with suppress(SourceError):  # no checkpoints, no sessions: the receipt says so
        attribute_repository(place, store_folder, jobs=jobs)
    return receipts.receipt(Store(store_folder, create=True), at.git_dir, at.name, shas)


# Several repositories in one run

R = TypeVar("R")
_DIED = "A worker died over it, twice: killed, or out of memory."
_MOST_DEATHS = 2
"""A worker may die of something else, so a repository is tried a second time."""


class FailedRepository(Struct, frozen=True):
    repo: str
    reason: str


class RepositoryResults(Struct, Generic[R]):
    """Result of each repository, in the order in which they were named."""

    repositories: list[R] = field(default_factory=list)
    failed: list[FailedRepository] = field(default_factory=list)


class Tables(Protocol[R]):  # type: ignore[misc]  # R is given out alone; which variance it has is nobody's concern
    """Rows of one repository, made in a worker."""

    def write(self, store: Store) -> R: ...


class RepositoryTask(Struct, frozen=True, kw_only=True):
    """The attribution of one repository, or with a scanner its scan."""

    at: Repository
    root: str
    """Folder of the store."""
    afresh: bool
    scanner: Scanner | None = None
    deaths: int = 0
    """Number of workers that died over it."""

    def tables(self) -> Tables[Any]:
        """Do the work."""
        store, at = Store(self.root), self.at
        if self.scanner is None:
            return attribute(store, at.git_dir, at.name, at.spec, self.afresh)
        return scan(store, (at.git_dir, at.name), self.scanner, pipeline.silent, afresh=self.afresh)


def attribute_repositories(  # noqa: PLR0913  (choices of one run, by keyword)
    places: Iterable[str],
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> tuple[list[Repository], RepositoryResults[Attribution]]:
    """Attribute several repositories, a task for each. Return those that succeeded, and the results."""
    by_name: dict[str, Repository] = {}
    failed = []
    for place in places:
        try:
            at = open_repository(place)
        except (AgentSignalsError, GitError) as problem:
            failed.append(FailedRepository(place, reason_of(problem)))
        else:
            by_name[at.name] = at
    without = read_checkpoints(by_name.values(), store_folder, jobs=jobs, engine=engine)
    failed += [FailedRepository(name, reason_of(why)) for name, why in without.items()]
    opened = [at for at in by_name.values() if at.name not in without]
    store = Store(store_folder)
    tasks = [RepositoryTask(at=at, root=str(store.folder), afresh=afresh) for at in opened]
    made: RepositoryResults[Attribution] = run_tasks("attributing", tasks, store, jobs, engine, progress)
    made.failed = failed + made.failed
    pipeline.measure(store_folder)
    lost = {failure.repo for failure in made.failed}
    return [at for at in opened if at.name not in lost], made


def run_tasks(  # noqa: PLR0913  (what is done, by how many, of which engine, telling whom)
    stage: str,
    tasks: Sequence[RepositoryTask],
    store: Store,
    jobs: int | None,
    engine: str,
    progress: pipeline.Progress,
) -> RepositoryResults[Any]:
    """Run tasks by an engine and write their rows.

    This process alone writes, in the order in which repositories were named, so that the tables are those of one run
    after the other. A repository that fails, or ends its worker, costs no other.
    """
    several: RepositoryResults[Any] = RepositoryResults()
    workers = min(jobs or pipeline.default_jobs(), len(tasks))
    with closing(ENGINES.get(engine)().map(_answer, list(enumerate(tasks)), workers, _again)) as answers:
        waiting: dict[int, Tables[Any] | FailedRepository] = {}
        done = 0
        for nth, answer in answers:
            waiting[nth] = answer
            while done in waiting:
                tables = waiting.pop(done)
                done += 1
                if isinstance(tables, FailedRepository):
                    several.failed.append(tables)
                else:
                    several.repositories.append(tables.write(store))
                progress(stage, done, len(tasks))
    return several


def _answer(numbered: tuple[int, RepositoryTask]) -> tuple[int, Tables[Any] | FailedRepository]:
    nth, task = numbered
    if task.deaths == _MOST_DEATHS:
        return nth, FailedRepository(task.at.name, _DIED)
    try:
        return nth, task.tables()
    except (AgentSignalsError, GitError) as problem:
        return nth, FailedRepository(task.at.name, reason_of(problem))


def _again(numbered: tuple[int, RepositoryTask]) -> list[tuple[int, RepositoryTask]]:
    nth, task = numbered
    return [(nth, replace(task, deaths=task.deaths + 1))] if task.deaths < _MOST_DEATHS else []


# Rules

_OWNER = re.compile(r"[:/]([^/:]+/[^/:]+?)(?:\.git)?/?$")


def repository_rules(
    place: str | None, store_folder: Path | str | None = None, *, file: str | None = None, jobs: int | None = None
) -> RulesReport:
    """Return the mechanical rules of a repository, whose checkpoints are read first; without a repository, the rules
    that the store's traces show. SourceError where `place` is no repository."""
    if place is None:
        store = Store(store_folder)
        places = dict(rows(store, WHERE_EACH_LIES)[1])
        return of_traces(store.read, places)
    at = open_repository(place)
    with suppress(SourceError):  # no checkpoints: the sessions of its folder will do, if there are any
        pipeline.ingest([at.spec], store_folder, jobs=jobs)
    store = Store(store_folder, create=True)
    return of_repository(at.git_dir, at.name, store.read(_sessions(store, at)), file)


def _sessions(store: Store, at: Repository) -> set[str]:
    recorded = {record.session_id for record in gather(at.git_dir, at.spec).recorded}
    address = _OWNER.search(git.origin(at.git_dir) or at.name)
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


# Scans


def scan_repository(  # noqa: PLR0913  (choices of one run, by keyword)
    place: str,
    scanner: Scanner,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> Scan:
    """Find weaknesses that the linked commits of a repository introduced and fixed. Lines are attributed first, so that
    each has an owner.

    `place` is a path or an address; `afresh` scans files again that were scanned before.
    """
    at = open_repository(place)
    attribute_repository(place, store_folder, jobs=jobs, engine=engine)
    store = Store(store_folder)
    result = scan(store, (at.git_dir, at.name), scanner, progress, afresh=afresh).write(store)
    pipeline.measure(store_folder)
    return result


def scan_repositories(  # noqa: PLR0913  (choices of one run, by keyword)
    places: Iterable[str],
    scanner: Scanner,
    store_folder: Path | str | None = None,
    *,
    afresh: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: pipeline.Progress = pipeline.silent,
) -> RepositoryResults[Scan]:
    """Scan several repositories, a task for each."""
    opened, attributions = attribute_repositories(places, store_folder, jobs=jobs, engine=engine, progress=progress)
    store = Store(store_folder)
    tasks = [RepositoryTask(at=at, root=str(store.folder), afresh=afresh, scanner=scanner) for at in opened]
    made: RepositoryResults[Scan] = run_tasks("scanning", tasks, store, jobs, engine, progress)
    made.failed = attributions.failed + made.failed
    pipeline.measure(store_folder)
    return made


def import_sarif(
    place: str, sarif: Path, store_folder: Path | str | None = None, *, jobs: int | None = None
) -> Imported:
    """Import the findings of a SARIF file, each with the commit and the owner of its line."""
    at = open_repository(place)
    attribute_repository(place, store_folder, jobs=jobs)
    return take_in(Store(store_folder), at.git_dir, at.name, sarif)
