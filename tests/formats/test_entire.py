"""What Entire records beside transcripts: recognised by content, tied to its session, never a session itself."""

from __future__ import annotations

import json

import pytest

from agentsignals.formats import Claim, Reading, entire
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.model import Artifact, Checkpoint
from tests.formats.reading import given


def head(text: str) -> Head:
    data = text.encode()
    return Head(data[:HEAD_BYTES], "x", len(data) <= HEAD_BYTES)


def reading(*texts: str) -> tuple[Reading, list[Artifact]]:
    files = [given(text.encode(), "entire", f"a{n}") for n, text in enumerate(texts)]
    return entire.read(files), [file.artifact for file in files]


def session(**fields: object) -> str:
    return json.dumps({"checkpoint_id": "a1b2c3d4e5f6", "session_id": "s-1", **fields})


@pytest.mark.parametrize(
    ("session_id", "key"),
    [
        ("2026-01-19-7b1e6c52-0d0f-4a5e-9c7e-1f2a3b4c5d6e", "session:7b1e6c52-0d0f-4a5e-9c7e-1f2a3b4c5d6e"),
        ("7b1e6c52-0d0f-4a5e-9c7e-1f2a3b4c5d6e", "session:7b1e6c52-0d0f-4a5e-9c7e-1f2a3b4c5d6e"),
        ("ses_33aa44bb", "session:ses_33aa44bb"),
        ("2026-01-19-", "session:2026-01-19-"),
        ("2026-01-19-2026-01-20-x", "session:2026-01-20-x"),
    ],
)
def test_the_day_before_a_session_id_is_no_part_of_it(session_id: str, key: str) -> None:
    text = session(session_id=session_id)
    assert entire.claims(head(text)) == Claim(keys=[key], by_folder=True)
    assert list(reading(text)[0].checkpoints) == [key.removeprefix("session:")]


def test_metadata_is_recognised_although_its_window_is_cut() -> None:
    text = session(prompt_attributions=[{"user_added_per_file": {f"src/{n}.py": n for n in range(9000)}}])
    assert len(text) > HEAD_BYTES
    assert entire.claims(head(text)) == Claim(keys=["session:s-1"], by_folder=True)
    assert reading(text)[1][0].record_kinds == {"entire.session": 1}


@pytest.mark.parametrize(
    "text",
    [
        '{"session_id":"s-1","created_at":"2026-01-01T00:00:00Z"}',
        '{"checkpoint_id":"x","sessions":["a"]}',
        '{"sessions":[],"strategy":"manual-commit"}',
        '{"v":1,"type":"user","ts":"2026-01-01T00:00:00Z"}\n{"v":1,"type":"user","ts":"2026-01-01T00:00:01Z"}\n',
        '{"session_id":"s-1","tool_use_id":"toolu_1"}',
        "[]",
        "fix the cart",
        "",
    ],
)
def test_what_only_looks_alike_is_not_claimed(text: str) -> None:
    assert entire.claims(head(text)) is None


def test_the_newer_name_of_the_slice_start_counts_and_nought_is_not_missing() -> None:
    both, old, none, nought = (
        {"checkpoint_transcript_start": 7, "transcript_lines_at_start": 3},
        {"transcript_lines_at_start": 3},
        {},
        {"checkpoint_transcript_start": 0},
    )
    starts = [reading(session(**f))[0].checkpoints["s-1"][0].transcript_start for f in (both, old, none, nought)]
    assert starts == [7, 3, None, 0]


def test_what_was_not_recorded_is_none_not_nought() -> None:
    row = reading(session())[0].checkpoints["s-1"][0]
    assert row == Checkpoint(checkpoint_id="a1b2c3d4e5f6")


def test_two_copies_of_a_checkpoint_are_one_the_earlier_completed_by_the_later() -> None:
    later = session(created_at="2026-01-02T00:00:00Z", branch="later", initial_attribution={"agent_lines": 2})
    earlier = session(created_at="2026-01-01T00:00:00Z", branch="earlier")
    for order in ((later, earlier), (earlier, later)):
        (row,) = reading(*order)[0].checkpoints["s-1"]
        assert (row.branch, row.agent_lines, row.created_at) == ("earlier", 2, 1767225600000000)


def test_checkpoints_of_a_session_come_in_order_of_time() -> None:
    texts = [session(checkpoint_id=f"c{n}", created_at=f"2026-01-0{n}T00:00:00Z") for n in (3, 1, 2)]
    assert [c.checkpoint_id for c in reading(*texts)[0].checkpoints["s-1"]] == ["c1", "c2", "c3"]


def test_a_record_that_cannot_be_used_is_counted() -> None:
    found, (artifact,) = reading('{"checkpoint_id":"c","session_id":"s-1","branch":')
    assert found.checkpoints == {}
    assert (artifact.records, artifact.skipped_reasons, artifact.record_kinds) == (1, {"cut_document": 1}, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [(session(files_touched="many"), "odd_value"), (session(created_at=5), "impossible_time")],
)
def test_an_odd_value_of_a_checkpoint_is_absent_and_counted(text: str, reason: str) -> None:
    found, (artifact,) = reading(text)
    assert [c.checkpoint_id for c in found.checkpoints["s-1"]] == ["a1b2c3d4e5f6"]
    assert (artifact.skipped, artifact.skipped_reasons.keys() - {reason}) == (0, set())


def test_a_compact_copy_of_an_agent_that_keeps_no_times_is_recognised() -> None:
    line = '{"v":1,"agent":"Cursor","cli_version":"0.8.0","type":"user","content":[{"text":"fix it"}]}\n'
    assert entire.claims(head(line)) == Claim(keys=[], by_folder=True)
    assert entire.claims(head(line.replace('"v":1,', ""))) is None


def test_the_compact_copy_gives_no_session_and_every_line_is_counted() -> None:
    line = '{"v":1,"agent":"pi","cli_version":"0.8.0","type":"user","ts":"2026-01-01T00:00:00Z","content":[]}\n'
    found, (artifact,) = reading(line * 3 + '{"v":1,"type"')
    assert found == Reading()
    assert artifact.record_kinds == {"entire.compact.user": 3}
    assert (artifact.records, artifact.skipped_reasons) == (4, {"cut_line": 1})
