"""Makes the index again from the shards, when it was thrown away or cut short."""

from __future__ import annotations

from pathlib import Path

from agentsignals.store import shards
from agentsignals.store.manifest import Manifest, SessionEntry, ShardEntry

_FIGURES = (
    "context", "n_turns", "n_tool_calls", "n_edits", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "cost_usd",
)  # fmt: skip


def rebuilt(root: Path) -> Manifest:
    """An index of what is there. A session found in two shards (a run was killed between writing and committing)
    stays in the younger. Files are forgotten, so the next run reads them again and replaces what it finds.
    """
    found = Manifest()
    folders = [p for p in (root / shards.FOLDER).iterdir() if p.is_dir() and not p.name.startswith(".tmp-")]
    for folder in sorted(folders, key=lambda p: (-p.stat().st_mtime_ns, p.name)):
        rows = shards.read_table(root, folder.name, "sessions", ["session_id", *_FIGURES])
        twice = {r["session_id"] for r in rows} & set(found.sessions)
        name = folder.name
        if twice:
            name = f"{folder.name}-{len(twice)}"
            shards.without(root, folder.name, name, twice, set())
        found.shards[name] = ShardEntry(signals=_versions(root, name))
        for row in rows:
            if row["session_id"] not in twice:
                figures = [row[k] for k in _FIGURES]
                found.sessions[row["session_id"]] = SessionEntry(name, f"session:{row['session_id']}", *figures)
    return found


def _versions(root: Path, name: str) -> dict[str, int]:
    rows = shards.read_table(root, name, "signals", ["signal", "version"])
    return {r["signal"]: r["version"] for r in rows}
