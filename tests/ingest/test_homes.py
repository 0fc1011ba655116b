"""A machine with the sessions of every agent that is read: all of them are found, read, and filtered by."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agentsignals.cli import main
from agentsignals.formats import homes, unread_homes
from agentsignals.store import Store
from tests.golden import SAMPLES, samples
from tests.ui.served import ask, serving

FOLDER = {
    agent: next((p for p in places if p.startswith("~/") and not Path(p).suffix), None)
    for agent, places in homes().items()
}
"""The first home of each that is a folder: a sample of a format is no database."""
PLACED = sorted(agent for agent, place in FOLDER.items() if place and (SAMPLES / agent).is_dir())
"""Those with samples: an agent may write what another one's format reads."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder in which each agent keeps the samples of its format."""
    folder = tmp_path_factory.mktemp("home")
    for agent in PLACED:
        place = folder / str(FOLDER[agent])[2:].replace("*", "any")
        for sample in [s for s in samples() if s.parent == SAMPLES / agent]:
            target = place / sample.name
            if sample.is_dir():
                shutil.copytree(sample, target)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(sample, target)
    return folder


def _json(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main([*map(str, arguments), "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def test_there_are_agents_enough_to_ask() -> None:
    assert len(PLACED) >= 12, "the others keep databases, or write what another one's format reads"


@pytest.mark.slow
def test_every_agent_of_a_machine_is_found_and_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    rows = _json(capsys, "doctor", "--store", tmp_path / "s")
    found = {row["name"]: row["home"] for row in rows if row.get("home")}
    assert sorted(found) == PLACED
    assert [agent for agent in PLACED if not found[agent]["sessions"].get(agent)] == []
    looked_for = {place for places in homes().values() for place in places}
    said = " ".join(row["found"] for row in rows)
    placed = {place: place.replace("~", str(home)).replace("*", "any") for place in looked_for}
    assert [place for place, path in placed.items() if place not in said and path not in said] == []

    summary = _json(capsys, "analyze", "--store", tmp_path / "s", "--jobs", "1")
    assert summary["internal_errors"] == {}
    store = Store(tmp_path / "s")
    sessions = dict(store.sql("SELECT agent, count(*) FROM sessions GROUP BY agent").fetchall())
    assert sorted(sessions.keys() & set(PLACED)) == PLACED
    with serving(store) as server:
        for agent in PLACED:
            answer = ask(server, f"/sessions?agent={quote(agent)}")
            ids = store.sql(f"SELECT session_id FROM sessions WHERE agent = '{agent}'").fetchall()
            others = store.sql(f"SELECT session_id FROM sessions WHERE agent <> '{agent}'").fetchall()
            assert answer.status == 200
            assert any(f"/session/{quote(of)}" in answer.text for (of,) in ids), agent
            assert not any(f'/session/{quote(of)}"' in answer.text for (of,) in others), agent


def test_agents_that_are_known_and_not_read_are_named_with_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for places in unread_homes().values():
        if not Path(places[0]).suffix:
            folder = tmp_path / places[0][2:]
            folder.mkdir(parents=True)
            (folder / "a.json").write_text('{"a": 1}', encoding="utf-8")
    rows = {
        row["name"]: row for row in _json(capsys, "doctor", "--store", tmp_path / "s") if row["status"] == "not read"
    }
    assert sorted(rows) == sorted(n for n, places in unread_homes().items() if not Path(places[0]).suffix)
    assert rows["windsurf"]["home"]["left"] == {"unrecognised": 1}
    assert main(["analyze", "--store", str(tmp_path / "s"), "--json"]) == 1
    assert f"windsurf ({tmp_path / '.codeium/windsurf/cascade'})" in capsys.readouterr().out


def test_a_home_that_can_not_be_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".pi" / "agent" / "sessions"
    folder.mkdir(parents=True)
    folder.chmod(0)
    try:
        row = next(r for r in _json(capsys, "doctor", "--store", tmp_path / "s") if r["name"] == "pi")
    finally:
        folder.chmod(0o700)
    if row["status"] == "ok":
        pytest.skip("root may read everything")
    assert row["status"] == "problem" and "can't be read" in row["advice"]
