"""The suite that a format's author runs: it passes a sound reader, and names what is wrong with each that isn't."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsignals import formats
from agentsignals.formats import conformance
from agentsignals.model.registry import UnitPlace
from tests.golden import SAMPLES

SOUND = """
import msgspec
from agentsignals.formats import Card, Claim, Format, Material, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.bounds import count
from agentsignals.formats.profile import Profile, named
from agentsignals.formats.records import lines, saw
from agentsignals.formats.profile import SHELL

PROFILE = Profile(agent="toy-agent", tools=named((SHELL, "run_it")))


class Record(msgspec.Struct):
    toy: str
    id: str
    person: str | None = None
    ran: str | None = None
    out: str = ""
    code: int = 0
    used: int | None = None


def claims(head):
    name = head.document.get("toy")
    return Claim(keys=[f"session:{name}"]) if isinstance(name, str) else None


def read(inputs):
    sessions, seen = {}, set()
    for file in inputs:
        for number, record in lines(file.data, file.artifact, msgspec.json.Decoder(Record).decode):
            saw(file.artifact, "record")
            if record.toy not in sessions:
                sessions[record.toy] = SessionBuilder(file.session(record.toy, "toy-agent", PROFILE.agent))
            builder = sessions[record.toy]
            if record.id in seen:
                continue
            seen.add(record.id)
            builder.line = number
            if record.person is not None:
                builder.turn("prompt", record.person)
            if record.ran is not None:
                step = builder.step(record.id, "m", None)
                step.output_tokens = count(record.used)
                call = builder.call(record.id, "run_it", '{"command": "x"}', PROFILE.tool("run_it"), step=step)
                status, outcome = ("error", "exit_nonzero") if record.code else ("ok", "done")
                builder.result(record.id, record.out, status)
                call.outcome = outcome
    return Reading([builder.finish() for builder in sessions.values()])


CARD = Card(material=(Material("documents", "a test"),), limits=("It is made up.",))
FORMAT = Format(name="toy-agent", version=1, claims=claims, read=read, profile=PROFILE, card=CARD)
"""
RECORDS = [
    {"toy": "t", "id": "1", "person": "do it"},
    {"toy": "t", "id": "2", "ran": "x", "out": "fine", "used": 5},
    {"toy": "t", "id": "3", "ran": "x", "out": "oh\nExit code: 3", "code": 3, "used": 7},
]
WRONG: dict[str, tuple[str, str, str]] = {
    "no card": (", card=CARD", "", "card: it has no card"),
    "claims anybody's files": ("isinstance(name, str) else None", "True else None",
                               "claims: it claims {}, which anybody may write"),
    "breaks over a look": ("isinstance(name, str) else None", "name + '' else None", "claims of anything: it raises"),
    "says nothing of records": ('saw(file.artifact, "record")', "pass",
                                "nothing lost: good.jsonl: 3 records, of which 0"),
    "claims what another does": ('head.document.get("toy")', 'head.document.get("toy") or head.document.get("uuid")',
                                 "one claimant: people.jsonl is claimed by claude-code and toy-agent"),
    "a turn of nothing": ('builder.turn("prompt", record.person)', 'builder.turn("prompt", record.person).seq = 1',
                          "rows hang together: t: a turn is no human_turn"),
    "a failure that went well": ('("error", "exit_nonzero") if record.code else ', "",
                                 "one meaning of failed: 3 is done, and its result says 'Exit code: 3'"),
    "status against outcome": ('"error", "exit_nonzero"', '"ok", "exit_nonzero"',
                               "one meaning of failed: 3 is exit_nonzero, and ok"),
    "counts a copy": ("if record.id in seen:", "if False:", "nothing twice: "),
    "absent as nothing": ("count(record.used)", "count(record.used) or 0",
                          "absent is no zero: without used output_tokens is 0"),
    "stops at damage": ("lines(file.data, file.artifact, msgspec.json.Decoder(Record).decode)",
                        "enumerate(msgspec.json.Decoder(Record).decode_lines(file.data))",
                        "damage survived: it raises"),
}  # fmt: skip


def _found(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The reader as a format that is installed."""
    (folder / "toy_agent.py").write_text(code, encoding="utf-8")
    place = UnitPlace("toy-agent", "agentsignals.formats.toy_agent:FORMAT")
    with monkeypatch.context() as patch:
        patch.setattr(formats, "__path__", [*formats.__path__, str(folder)])
        patch.setattr(formats.FORMATS, "places", {**formats.FORMATS.places, "toy-agent": place})
        formats.formats.cache_clear()
        formats.marks.cache_clear()
        formats.searched.cache_clear()
        sys.modules.pop("agentsignals.formats.toy_agent", None)
        yield
    formats.formats.cache_clear()
    formats.marks.cache_clear()
    formats.searched.cache_clear()
    sys.modules.pop("agentsignals.formats.toy_agent", None)


@pytest.fixture
def toy(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    there, instead = request.param
    assert there in SOUND
    samples = tmp_path / "samples"
    samples.mkdir()
    good = "".join(json.dumps(record) + "\n" for record in RECORDS)
    (samples / "good.jsonl").write_text(good, encoding="utf-8")
    (samples / "broken.jsonl").write_text(good.replace('"id": "2"', '"id": 2, "x'), encoding="utf-8")
    others = (SAMPLES / "claude-code" / "people.jsonl").read_bytes().splitlines(keepends=True)
    (samples / "people.jsonl").write_bytes(b"".join(others[:2]))
    for _ in _found(tmp_path, SOUND.replace(there, instead), monkeypatch):
        yield samples


@pytest.mark.parametrize("toy", [("", "")], indirect=True, ids=["sound"])
def test_a_sound_reader_passes(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["toy-agent", str(toy)]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out == f"toy-agent: {len(conformance.RULES)} rules over 3 samples, 0 problems\n"
    (toy / "broken.jsonl").unlink()
    assert conformance.main(["toy-agent", str(toy)]) == 1
    assert "none is called broken" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("toy", "says"), [((a, b), says) for a, b, says in WRONG.values()], indirect=["toy"], ids=list(WRONG)
)
def test_what_is_wrong_is_named(toy: Path, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["toy-agent", str(toy)]) == 1
    assert says in capsys.readouterr().out


def test_each_rule_is_broken_by_one_of_these() -> None:
    named = {says.partition(":")[0].replace(" ", "_") for _, _, says in WRONG.values()}
    assert named >= conformance.RULES.keys()
