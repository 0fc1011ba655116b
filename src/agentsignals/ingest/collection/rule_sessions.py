"""The sessions that worked in a repository, for its rules: those of its checkpoints, those of the store that lie in its
folder or name it, and those that lie where these do (clones, worktrees) and came with no other repository."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from agentsignals.analysis.rows import WHERE_EACH_LIES
from agentsignals.attribution.commit_sessions import gather
from agentsignals.errors import SourceError
from agentsignals.git import objects
from agentsignals.ingest import pipeline
from agentsignals.ingest.collection import Opened, open_repository
from agentsignals.instructions.measured import of_repository, of_traces
from agentsignals.instructions.rule_report import RulesReport
from agentsignals.store import Store, artifact_id
from agentsignals.store.query import rows

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
