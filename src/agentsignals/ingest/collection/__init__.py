"""The living collection: repositories with checkpoints, brought into the store and kept up to date.

One repository after the other, each noted when it is whole: a run that was interrupted goes on where it stopped, and
one over repositories in which nothing is new touches nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.attribution import receipt as receipts
from agentsignals.attribution import witnessed as witnesses
from agentsignals.attribution.attribute import Attribution, attribute
from agentsignals.attribution.commit_sessions import Gathered, gather
from agentsignals.errors import AgentSignalsError, SourceError
from agentsignals.git import commits as git
from agentsignals.git import objects
from agentsignals.git.objects import GitError
from agentsignals.git.revisions import commits_of
from agentsignals.ingest import pipeline
from agentsignals.ingest.collection import machine_prompts
from agentsignals.ingest.collection.addresses import Candidate, candidates
from agentsignals.sources.git_clone import fetched_whole, is_address
from agentsignals.store import Store, repositories
from agentsignals.store.tables import CommitRow

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
        git_dir, _ = fetched_whole(place)
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
        repositories.update(store.folder, at.name, "commits", lambda before: _with_figures(before, rows))
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
    machine_sessions = machine_prompts.mark(Store(store_folder), {r.session_id for r in gathered.recorded})
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
        alike.setdefault(machine_prompts.marked(store) if left_out else frozenset(), []).append(at)

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
