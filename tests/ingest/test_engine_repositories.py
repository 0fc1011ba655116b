"""Several repositories over each engine: the tables of one run after the other, and what fails or kills is named."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.ingest import collection
from agentsignals.ingest.collection import attribute_repository
from agentsignals.repositories.scanners import OwnRules
from agentsignals.store import Store
from tests.ingest.test_engine import engine, every_engine, ray
from tests.ingest.test_pipeline import assert_same, tables
from tests.repositories.story import Story
from tests.repositories.test_scan import story_of_agent_and_human

__all__ = ["engine", "ray"]
BESIDE = ("commits", "line_attribution", "weaknesses", "scans")


def repositories(folder: Path, *names: str) -> list[str]:
    """A story of its own in each: sessions of equal names would be one."""
    return [str(published(story_of_agent_and_human(folder / name), name)) for name in names]


def published(story: Story, name: str) -> Path:
    for agent in story.agents:
        agent.log.session = f"{agent.log.session}-{name}"
    for checkpoint in story.checkpoints:
        checkpoint["session"] += f"-{name}"
    story.publish()
    return story.root


def rows(store: Path) -> dict[str, list[Any]]:
    return {name: Store(store).sql(f'SELECT * FROM "{name}" ORDER BY ALL').fetchall() for name in BESIDE}


def cut_off(repository: str) -> None:
    """Takes the commit at its head away, as a disk does: its checkpoints are there still."""
    git = Path(repository) / ".git"
    oid = (git / "refs" / "heads" / "main").read_text().strip()
    (git / "objects" / oid[:2] / oid[2:]).unlink()


class Deadly(collection.RepositoryTask, frozen=True, kw_only=True):
    """Ends its process over one repository, as often as it is tried; over another once."""

    def tables(self) -> Any:
        once = Path(self.at.name) / "died"
        if "poison" in self.at.name or ("frail" in self.at.name and not once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().tables()


@pytest.mark.slow
@every_engine
def test_several_repositories_have_the_tables_of_one_after_the_other(engine: str, tmp_path: Path) -> None:
    places = repositories(tmp_path, "a", "b", "c")
    for place in places:
        attribute_repository(place, tmp_path / "one", jobs=1)
        collection.scan_repository(place, OwnRules(), tmp_path / "one", jobs=1)
    done = collection.scan_repositories([*places, places[0]], OwnRules(), tmp_path / "all", jobs=2, engine=engine)
    assert [scan.repo for scan in done.repositories] == places and done.failed == []
    assert rows(tmp_path / "one") == rows(tmp_path / "all")
    assert len(rows(tmp_path / "all")["weaknesses"]) == 4 * len(places)
    assert_same(tables(tmp_path / "one"), tables(tmp_path / "all"))
    _, again = collection.attribute_repositories(places, tmp_path / "all", jobs=2, engine=engine)
    assert [attribution.unchanged for attribution in again.repositories] == [True] * 3


@pytest.mark.slow
@every_engine
def test_a_repository_that_fails_or_kills_its_worker_is_named_and_the_others_are_done(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = repositories(tmp_path, "poison", "a", "torn", "frail")
    cut_off(places[2])
    monkeypatch.setattr(collection, "RepositoryTask", Deadly)
    nothing = str(tmp_path / "nothing")
    done = collection.scan_repositories([*places, nothing], OwnRules(), tmp_path / "s", jobs=2, engine=engine)
    assert [scan.repo for scan in done.repositories] == [places[1], places[3]]
    reasons = {failure.repo: failure.reason for failure in done.failed}
    assert reasons.keys() == {nothing, places[0], places[2]}
    assert "no Git repository" in reasons[nothing] and "A worker died" in reasons[places[0]]
    assert {row[0] for row in rows(tmp_path / "s")["commits"]} == {places[1], places[3]}


def test_the_verbs_take_several_and_say_which_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places, nothing = repositories(tmp_path, "a"), str(tmp_path / "nothing")
    how = ["--store", str(tmp_path / "s"), "--quiet", "--jobs", "1"]
    assert main(["attribute", *places, nothing, *how]) == 0
    said = capsys.readouterr().out
    assert f"repository  {places[0]}\n" in said and f"failed      {nothing}: " in said
    assert main(["scan", *places, nothing, "--json", *how]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [scan["introduced"] for scan in told["repositories"]] == [4] and told["failed"][0]["repo"] == nothing
    assert main(["attribute", nothing, f"{nothing}2", *how]) == 1
    assert main(["scan", *places, nothing, "--sarif", "x.sarif", *how]) == 2
