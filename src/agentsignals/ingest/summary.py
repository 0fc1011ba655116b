"""What a run says when it is done: what it read, and what the store holds of it."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from agentsignals.formats import format_named
from agentsignals.ingest.drift import UnknownFields, drift, versions
from agentsignals.ingest.unread import Unread, unread
from agentsignals.sources import sound
from agentsignals.sources.local import deleted_files
from agentsignals.store import Store
from agentsignals.store.manifest import SessionEntry, local_files, only_in


class Summary(Struct, kw_only=True):
    """What a run found and did. Figures are of the sources named, as they stand in the store."""

    store: str
    artifacts: int = 0
    parsed: int = 0
    """Files opened and decoded in this run."""
    unchanged: int = 0
    other_files: int = 0
    """Files under the sources that are no traces (not JSON)."""
    repeated: int = 0
    """Of the artifacts, those whose content another one holds too (a data set uploaded again): not counted twice."""
    excluded_sessions: int = 0
    """Sessions left out in this run, as a list asked."""
    excluded_sources: int = 0
    sessions: int = 0
    attempts: int = 0
    """Of the sessions, those that are attempts of eval runs."""
    prompts: int = 0
    """What people said; hand-offs of a plan are not among them."""
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
    """Sessions whose output is logged in mid-stream: their output tokens and cost are at least what is counted."""
    visible_output_tokens: int = 0
    """What the visible text of these comes to (`views.ledger.VISIBLE_ERROR`)."""
    silent_sessions: dict[str, int] = field(default_factory=dict)
    """Sessions of people, by format, with neither prompt nor call nor tokens: their files were read, and perhaps for
    another agent's than they are."""
    formats: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    """What the files are that no format reads, most of them first."""
    versions: dict[str, dict[str, int]] = field(default_factory=dict)
    """Files by format and the version of the agent that wrote them, where they say it."""
    unknown_fields: list[UnknownFields] = field(default_factory=list)
    """Fields that no file of the format had before: its agent writes something new."""
    internal_errors: dict[str, int] = field(default_factory=dict)
    restored_sessions: int = 0
    """Sessions of damaged shards that were read again from their sources."""
    lost_sessions: list[str] = field(default_factory=list)
    """Sessions of damaged shards whose sources are gone: the store holds part of them at most."""
    report: str | None = None
    stored_sessions: int = 0
    """Sessions that the store holds in all, whatever sources they were read from."""
    deleted_files: int = 0
    """Files that traces were read from and that are gone."""
    deleted_sessions: int = 0
    """Sessions that were read from these alone; the store keeps them."""


def summary_of(store: Store, uris: set[str]) -> Summary:
    """Adds up what the index says of these files and their sessions."""
    summary = Summary(store=sound(str(store.folder)))
    files = store.manifest.files
    entries = [entry for uri, entry in files.items() if uri in uris]  # as they lie in memory: half the time
    read = [entry for entry in entries if entry.shard]
    families = {entry.family for entry in read}
    summary.other_files, summary.artifacts = len(entries) - len(read), len(read)
    contents = [entry.key for entry in read if entry.stamp is None and entry.key]
    summary.repeated = len(contents) - len(set(contents))
    summary.formats = dict(Counter([entry.format for entry in read if entry.format]))
    skipped: Counter[str] = Counter()
    for entry in read:
        if entry.skipped:
            skipped.update(entry.skipped)
    summary.skipped = dict(skipped)
    summary.unread = unread(store, uris)
    summary.versions, summary.unknown_fields = versions(read), drift(read)
    if any(entry.error for entry in read):
        summary.internal_errors = {
            f"{uri}: {e.error}": 1 for uri, e in files.items() if e.error and e.shard and uri in uris
        }
    sessions = [session for session in store.manifest.sessions.values() if session.family in families]
    _add(summary, sessions)
    silent = Counter(session.family for session in sessions if _is_silent(session))
    formats: dict[str, set[str]] = {}
    for entry in [entry for entry in read if entry.format and entry.family in silent]:
        formats.setdefault(entry.family, set()).add(entry.format or "")
    for family, names in formats.items():
        name = max(names, key=_is_own)
        summary.silent_sessions[name] = summary.silent_sessions.get(name, 0) + silent[family]
    for shard in store.manifest.shards.values():
        for what, n in shard.internal_errors.items():
            summary.internal_errors[what] = summary.internal_errors.get(what, 0) + n
    deleted = deleted_files(local_files(store.manifest) - uris)
    summary.stored_sessions, summary.deleted_files = len(store.manifest.sessions), len(deleted)
    summary.deleted_sessions = len(only_in(store.manifest, deleted)) if deleted else 0
    return summary


def _is_own(name: str) -> tuple[bool, str]:
    """Of the formats of one family the agent's before the collector's. Only these are loaded, of more than thirty."""
    return (named := format_named(name)) is not None and named.is_own, name


def _is_silent(session: SessionEntry) -> bool:
    """None is not known: a session that was not measured is not silent."""
    nothing = session.n_turns == 0 and session.n_tool_calls == 0
    return nothing and session.context == "product" and not (session.input_tokens or session.output_tokens)


def _add(summary: Summary, sessions: list[SessionEntry]) -> None:
    summary.sessions = len(sessions)
    summary.attempts = len([s for s in sessions if s.context == "eval"])
    summary.prompts = sum([s.n_prompts or 0 for s in sessions])
    summary.tool_calls = sum([s.n_tool_calls or 0 for s in sessions])
    summary.edits = sum([s.n_edits or 0 for s in sessions])
    summary.input_tokens = sum([s.input_tokens or 0 for s in sessions])
    summary.output_tokens = sum([s.output_tokens or 0 for s in sessions])
    summary.cache_read_tokens = sum([s.cache_read_tokens or 0 for s in sessions])
    summary.cache_write_tokens = sum([s.cache_write_tokens or 0 for s in sessions])
    visible = [s.visible_output_tokens for s in sessions if s.visible_output_tokens is not None]
    summary.lower_bounds, summary.visible_output_tokens = len(visible), sum(visible)
    costs = [s.cost_usd for s in sessions if s.cost_usd is not None]
    summary.unpriced_sessions, summary.cost_usd = len(sessions) - len(costs), sum(costs, 0.0)
