"""Whole home folders of agents: what is no session there is state, known and quiet; a log that nobody reads is not."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.formats import is_state
from agentsignals.store import Store

OWN = "5a1f0c3e-0000-4000-8000-00000000000a"
STATE = {
    ".claude/history.jsonl": {"display": "Go", "pastedContents": {}, "timestamp": 1, "project": "/w"},
    ".claude/settings.json": {"model": "opus"},
    ".claude/todos/x-agent-x.json": [],
    ".claude/teams/quiet/inboxes/lead.json": [{"from": "mason", "text": "hi", "read": True}],
    ".claude/projects/-w/sessions-index.json": {"version": 1, "entries": [{"sessionId": OWN}]},
    f".claude/projects/-w/{OWN}/tool-results/toolu_1.json": {"rows": [1, 2]},
    ".codex/auth.json": {"OPENAI_API_KEY": None},
    ".codex/history.jsonl": {"session_id": OWN, "ts": 1, "text": "hi"},
    ".codex/models_cache.json": {"models": []},
    ".gemini/oauth_creds.json": {"token": "x"},
    ".gemini/tmp/0a/logs.json": [{"sessionId": OWN, "messageId": 0, "type": "user", "message": "hi"}],
    ".gemini/antigravity-cli/history.jsonl": {"display": "hi", "workspace": "/w", "conversationId": OWN},
    ".factory/settings.json": {"model": "m"},
    ".copilot/config.json": {"banner": "never"},
    ".cursor/mcp.json": {"mcpServers": {}},
    ".local/share/opencode/storage/project/p.json": {"id": "p", "worktree": "/w"},
    ".local/share/opencode/log/a.json": {"level": "info"},
    ".config/Code/User/settings.json": {"editor.fontSize": 12},
}
LOGS = {
    ".claude/projects/-w/new.jsonl": {"kind": "of a later version", "payload": {}},
    ".codex/sessions/2026/09/01/rollout-new.jsonl": {"kind": "of a later version", "payload": {}},
    "work/settings.json": {"model": "opus"},
    "work/.claudette/settings.json": {"model": "opus"},
}
THREADS = "CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, updated_at INTEGER, title TEXT)"
"""Codex's state: Zed keeps its sessions in a table of the same name."""


def placed(folder: Path, files: dict[str, object]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content) + "\n")
    return folder


def strict(folder: Path, store: Path) -> tuple[int, dict[str, str]]:
    code = main(["analyze", str(folder), "--no-report", "--store", str(store), "--quiet", "--strict"])
    rows = Store(store).sql("SELECT path, skipped_reasons FROM artifacts WHERE skipped > 0").fetchall()
    return code, {path.removeprefix(f"{folder}/"): next(iter(json.loads(reasons))) for path, reasons in rows}


def test_state_of_a_whole_home_is_quiet(tmp_path: Path) -> None:
    home = placed(tmp_path / "home", STATE)
    for place in (
        ".codex/state_5.sqlite",
        ".cursor/ai-tracking/ai-code-tracking.db",
        ".gemini/antigravity/conversations/x.db",
    ):
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(home / place)) as db:
            db.executescript(THREADS)
    for run in ("first", "unchanged"):
        assert strict(home, tmp_path / "store") == (0, {}), run
    assert strict(home / ".claude", tmp_path / "of one") == (0, {}), "of an agent's folder alone"


def test_logs_that_nobody_reads_are_told_in_homes_and_files_of_nobody_elsewhere(tmp_path: Path) -> None:
    home = placed(tmp_path / "home", {**STATE, **LOGS})
    assert strict(home, tmp_path / "store") == (1, dict.fromkeys(LOGS, "unrecognised"))


def test_a_database_of_an_unknown_version_is_told_where_sessions_are_kept(tmp_path: Path) -> None:
    place = ".local/share/opencode/opencode.db"
    (tmp_path / "home" / place).parent.mkdir(parents=True)
    with closing(sqlite3.connect(tmp_path / "home" / place)) as db:
        db.executescript("CREATE TABLE session (id); CREATE TABLE message (id); CREATE TABLE part (id)")
    assert strict(tmp_path / "home", tmp_path / "store") == (1, {place: "unknown_database"})


@pytest.mark.parametrize(
    ("path", "is_quiet"),
    [
        ("/home/me/.claude/settings.json", True),
        ("/backup/2026/.claude/settings.json", True),
        ("/home/me/.claude/projects/-w/x.jsonl", False),
        ("/home/me/.claude/projects", False),
        ("/home/me/.config/claude/settings.json", True),
        ("/home/me/.config/other/settings.json", False),
        ("/home/me/.gemini/tmp/0a/chats/session-1.json", False),
        ("/home/me/.gemini/antigravity/brain/x/.system_generated/logs/new.jsonl", False),
        ("/home/me/.gemini/antigravity/brain/x/task.md.metadata.json", True),
        ("/home/me/claude/settings.json", False),
    ],
)
def test_state_is_what_lies_in_an_agent_s_folder_and_not_where_it_keeps_sessions(path: str, is_quiet: bool) -> None:
    assert is_state(path) == is_quiet
