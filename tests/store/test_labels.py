"""Labels made here: kept beside the traces, seen in the view, given to the signals of their session."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentsignals.ingest import pipeline
from agentsignals.model import Label
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from agentsignals.store.sidecars import LabelRow
from tests.golden import SAMPLES


@pytest.fixture
def store(tmp_path: Path) -> Store:
    pipeline.analyze([str(SAMPLES / "pi")], tmp_path / "store")
    return Store(tmp_path / "store")


def label(turn: int, value: str, **more: object) -> Label:
    return Label(task="sentiment", labeller="rules", turn=turn, value=value, **more)  # type: ignore[arg-type]  # fields by name


def test_labels_come_back_as_they_were(store: Store) -> None:
    session_id = sorted(store.manifest.sessions)[0]
    made = [label(0, "NEUTRAL", reason="asks", created_at=1_772_359_205_000_000), label(1, "NEGATIVE", number=0.5)]
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow(session_id, one) for one in made])
    assert sidecars.read_labels(store.folder) == {session_id: made}
    assert sidecars.labels_of(store.folder, "sentiment", "rules") == [LabelRow(session_id, one) for one in made]
    assert sidecars.labels_of(store.folder, "sentiment", "gpt") == []
    assert store.session(session_id).labels == made
    found = rows(store, "SELECT session_id, turn, value, created_at FROM labels ORDER BY turn")[1]
    assert [r[:3] for r in found] == [(session_id, 0, "NEUTRAL"), (session_id, 1, "NEGATIVE")]


def test_labelling_again_replaces_one_labellers_labels_of_one_task(store: Store) -> None:
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEUTRAL"))])
    sidecars.write_labels(store.folder, "sentiment", "org/model", [LabelRow("a", label(0, "POSITIVE"))])
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("b", label(0, "NEGATIVE"))])
    found = rows(store, "SELECT session_id, value FROM labels ORDER BY ALL")[1]
    assert found == [("a", "POSITIVE"), ("b", "NEGATIVE")]


def test_labels_survive_reading_the_traces_again(store: Store) -> None:
    session_id = sorted(store.manifest.sessions)[0]
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow(session_id, label(0, "NEUTRAL"))])
    files = store.manifest.files
    files.update({uri: replace(e, parser=-1) for uri, e in files.items()})  # as after an update of the parser
    store.manifest.code = ""
    store.save()
    pipeline.analyze([str(SAMPLES / "pi")], store.folder)
    assert [one.value for one in Store(store.folder).session(session_id).labels] == ["NEUTRAL"]
    assert rows(Store(store.folder), "SELECT count(*) FROM labels")[1] == [(1,)]


def test_the_fingerprint_changes_with_the_labels(store: Store) -> None:
    assert sidecars.labels_fingerprint(store.folder) == ""
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEUTRAL"))])
    first = sidecars.labels_fingerprint(store.folder)
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEGATIVE", reason="no"))])
    assert "" != first != sidecars.labels_fingerprint(store.folder)


def test_names_that_are_no_file_names_have_files_of_their_own(tmp_path: Path) -> None:
    one, two = (sidecars.write_labels(tmp_path, "sentiment", name, []) for name in ("a/b", "a-b"))
    assert one != two
    assert one.parent == two.parent == tmp_path / "labels"


def test_labelling_makes_the_values_stale_once(store: Store) -> None:
    assert pipeline.measure(store.folder)["sessions"] == 0
    sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow("a", label(0, "NEUTRAL"))])
    assert pipeline.measure(store.folder)["sessions"] == len(store.manifest.sessions)
    assert pipeline.measure(store.folder)["sessions"] == 0


def test_measuring_says_how_many_values_are_others(store: Store) -> None:
    """After labels, and after another embedder: counted here by a query before and after."""

    def values() -> Counter[tuple[Any, ...]]:
        asked = "SELECT signal, session_id, turn, value, absent, absent_detail, detail FROM signals"
        return Counter(rows(Store(store.folder), asked)[1])

    session_id = sorted(store.manifest.sessions)[0]

    def relabel() -> dict[str, int]:
        sidecars.write_labels(store.folder, "sentiment", "rules", [LabelRow(session_id, label(0, "NEGATIVE"))])
        return pipeline.measure(store.folder)

    for change in (relabel, lambda: pipeline.measure(store.folder, embedder="chars")):
        before = values()
        done = change()
        after = values()
        assert done["values"] == max((before - after).total(), (after - before).total()) > 0
        assert done["signals"] == len({row[0] for row in (before - after) + (after - before)})
    assert pipeline.measure(store.folder) == {"signals": 0, "sessions": 0, "values": 0}
