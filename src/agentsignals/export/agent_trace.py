"""Agent Trace records (https://agent-trace.dev, 0.1.0): whose lines each commit added, as `attribute` replayed it."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from agentsignals import private_files
from agentsignals.errors import ExportError
from agentsignals.export import Choice, Exported, WholeWriter, empty_folder, queries
from agentsignals.store import Store, sidecars

VERSION = "0.1"
"""The specification is 0.1.0; its schema allows two numbers only."""
NAMESPACE = uuid.UUID("6f3a1d52-9b7e-5c0e-8d1f-2a4b6c8e0f13")
"""Namespace of the records' ids: a commit has the same id in every export."""
_OWNERS = {
    "agent_exact": "ai", "agent_ws": "ai", "agent_shell": "ai", "agent_other_session": "ai",
    "human_observed": "human", "unknown": "unknown",
}  # fmt: skip


def write(store: Store, ids: list[str], folder: Path, choice: Choice, done: Exported) -> None:
    """Write one `traces.jsonl` a repository, a record for each commit that one of these sessions has a part in.
    ExportError where no repository was attributed."""
    from agentsignals.store.query import ask, connect  # noqa: PLC0415  (DuckDB is loaded when something is written)

    connection = connect(store)
    commits: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in ask(connection, queries()["agent_trace.commits"], {"ids": ids}):
        commits[row["repo"]][row["commit_sha"]] = row
    if not commits:
        raise ExportError(
            "No commit is linked to these sessions yet.",
            "Run `agentsignals repo attribute REPO --store DIR` first.",
        )
    mask = choice.redactor.text if choice.redactor else lambda text: text
    done.loses = list(WRITER.loses)
    empty_folder(folder)
    for n, (repo, wanted) in enumerate(commits.items(), 1):
        choice.tick("writing", n, len(commits))
        by_commit: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in ask(connection, queries()["agent_trace.lines"], {"repo": repo}):
            if row["commit_sha"] in wanted:
                by_commit[row["commit_sha"]].append(row)
        records = [_record(repo, commit, by_commit[sha], mask) for sha, commit in wanted.items()]
        place = folder / sidecars.repository_folder(folder, repo).name if len(commits) > 1 else folder
        private_files.make_folder(place)
        private_files.write(place / "traces.jsonl", b"".join(msgspec.json.encode(r) + b"\n" for r in records))
        done.files += 1
        done.notes.append(f"{repo}: {len(records):,} commits")


def _record(
    repo: str, commit: dict[str, Any], lines: list[dict[str, Any]], mask: Callable[[str], str]
) -> dict[str, Any]:
    """Return the Agent Trace record of a commit: whose the lines of each file are, in ranges."""
    files: dict[str, dict[tuple[str, str | None], list[int]]] = defaultdict(lambda: defaultdict(list))
    models: dict[str, str] = {}
    for row in lines:
        owner = _OWNERS.get(row["tag"])
        if owner is not None:
            files[row["path"]][owner, row["session_id"] if owner == "ai" else None].append(row["line"])
            if row["session_id"] and row["model"]:
                models[row["session_id"]] = row["model"]
    by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path, parts in files.items():
        for (owner, session_id), numbers in parts.items():
            contributor = {"type": owner}
            # Runs of line numbers, which come in order.
            ranges: list[dict[str, int]] = []
            for n in numbers:
                if ranges and n == ranges[-1]["end_line"] + 1:
                    ranges[-1]["end_line"] = n
                else:
                    ranges.append({"start_line": n, "end_line": n})
            made: dict[str, Any] = {"contributor": contributor, "ranges": ranges}
            if session_id:
                made["url"] = f"agentsignals:///sessions/{quote(mask(session_id), safe='')}"
                if session_id in models:
                    contributor["model_id"] = mask(models[session_id])[:250]
            by_path[path].append(made)
    sha, when = commit["commit_sha"], datetime.fromtimestamp(commit["at"] / 1e6, UTC)
    return {
        "version": VERSION,
        "id": str(uuid.uuid5(NAMESPACE, sha)),
        "timestamp": when.isoformat().replace("+00:00", "Z"),
        "vcs": {"type": "git", "revision": sha},
        "tool": {"name": "agentsignals", "version": version("agentsignals")},
        "files": [{"path": mask(path), "conversations": conversations} for path, conversations in by_path.items()],
        "metadata": {
            "dev.agentsignals": {
                "lines_by_tag": dict(Counter(row["tag"] for row in lines)),
                "agent_share_low": commit["agent_low"],
                "agent_share_high": commit["agent_high"],
            }
        },
    }


WRITER = WholeWriter(
    name="agent-trace",
    describes="whose lines each commit added, as Agent Trace records (0.1.0)",
    put=write,
    redacts=True,
    loses=(
        "moved, older and generated lines have no record",
        "how a line is known to be an agent's (exactly, but for white space, by a command): only counts, as metadata",
        "content hashes: the standard names no algorithm",
        "models are named as the trace does, without a provider",
    ),
)
