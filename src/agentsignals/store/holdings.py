"""What each shard holds, and which sessions a family has, so that a commit looks through no index for it."""

from __future__ import annotations

from collections import defaultdict

from agentsignals.store.manifest import Commit, FileEntry, Manifest, SessionEntry, ShardEntry, share_texts


class Holdings:
    """Of a manifest that is changed through this alone; `change` is what of that is not written yet."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._sessions: dict[str, set[str]] = defaultdict(set)
        self._files: dict[str, set[str]] = defaultdict(set)
        self._families: dict[str, set[str]] = defaultdict(set)
        self.change = Commit()
        self._note(manifest.sessions, manifest.files)

    def sessions_of(self, shard: str) -> set[str]:
        """The sessions that a shard holds."""
        return self._sessions[shard]

    def files_of(self, shard: str) -> set[str]:
        """The files whose rows a shard holds."""
        return self._files[shard]

    def in_families(self, families: set[str]) -> set[str]:
        """The sessions of these families."""
        return {session_id for family in families for session_id in self._families[family]}

    def add(self, name: str, entry: ShardEntry, sessions: dict[str, SessionEntry], files: dict[str, FileEntry]) -> None:
        """Takes in a shard. No other holds its sessions and files any more."""
        share_texts(Commit(sessions=sessions, files=files))
        for held in (self._manifest, self.change):
            held.shards[name] = entry
            held.sessions.update(sessions)
            held.files.update(files)
        self._note(sessions, files)

    def drop(self, shard: str, sessions: set[str], files: set[str]) -> None:
        """Takes sessions and files out of a shard; where files lie is said by whoever takes them."""
        for session_id in sessions:
            self._families[self._manifest.sessions.pop(session_id).family].discard(session_id)
            self.change.sessions.pop(session_id, None)
        self.change.gone_sessions += sessions
        self._sessions[shard] -= sessions
        self._files[shard] -= files

    def remove(self, shard: str) -> None:
        """Takes a shard out that holds nothing any more."""
        self._manifest.shards.pop(shard)
        self.change.shards.pop(shard, None)
        self.change.gone_shards.append(shard)

    def put(self, shards: list[str], name: str, entry: ShardEntry) -> None:
        """Has another stand for shards."""
        manifest, change = self._manifest, self.change
        for shard in shards:
            self.remove(shard)
            self._sessions[name] |= self._sessions.pop(shard, set())
            self._files[name] |= self._files.pop(shard, set())
        manifest.shards[name] = change.shards[name] = entry
        for session_id in self._sessions[name]:
            change.sessions[session_id] = manifest.sessions[session_id]
            change.sessions[session_id].shard = name
        for uri in self._files[name]:
            change.files[uri] = manifest.files[uri]
            change.files[uri].shard = name

    def _note(self, sessions: dict[str, SessionEntry], files: dict[str, FileEntry]) -> None:
        for session_id, entry in sessions.items():
            self._sessions[entry.shard].add(session_id)
            self._families[entry.family].add(session_id)
        for uri, file in files.items():
            self._files[file.shard].add(uri)
