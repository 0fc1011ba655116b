"""What is written can be read again: the same session, in all that the format can say."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from opentraces_schema.models import TraceRecord

from agentsignals.cli import main
from agentsignals.errors import UsageError
from agentsignals.export import WRITERS, Writer, file_name
from agentsignals.export.messages import iso_time, main_messages, subagent_threads
from agentsignals.formats import formats, identify
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.ingest import pipeline
from agentsignals.model import MAIN, Session
from agentsignals.store import Store
from tests.build import call, user
from tests.build import session as build
from tests.formats.reading import given, read_one
from tests.golden import SAMPLES, read_files, samples

ATIF = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[1] / "schemas" / "atif.schema.json").read_text("utf-8"))
)
"""Written by hand from the published models, which need a younger Python than this package does."""
READ_BACK = sorted(name for name, w in WRITERS.all().items() if isinstance(w, Writer) and w.reads_back)
"""A writer need not be one whose files a format reads."""
PRODUCT = [s for s in samples() if (profile := formats()[s.parent.name].profile) and profile.agent]
QUICK = {s for s in PRODUCT if s in [other for other in PRODUCT if other.parent == s.parent][:2]}
"""Two samples of each format, the spoilt one mostly among them."""


PEOPLE = [
    pytest.param(s, id=f"{s.parent.name}-{s.name}", marks=() if s in QUICK else pytest.mark.slow) for s in PRODUCT
]


@cache
def sessions_of(sample: Path) -> list[Session]:
    """The sessions of a sample. One of an eval run has its trial's name by the time it is stored."""
    files = sorted(p for p in sample.rglob("*") if p.is_file()) if sample.is_dir() else [sample]
    sessions = read_files(files, sample if sample.is_dir() else sample.parent)[2].sessions
    for session in sessions:
        session.session_id = session.session_id or "trial#0"
    return sessions


def read_again(text: str, name: str) -> Session:
    """The session of a written file, recognised by its content."""
    data = text.encode("utf-8", "replace")
    found = identify(Head(data[:HEAD_BYTES], name, len(data) <= HEAD_BYTES))
    assert found is not None, "no format claims what was written"
    file = given(data, found[0].name, name)
    session = read_one(found[0], file)
    assert file.artifact.skipped == 0, file.artifact.skipped_reasons
    return session


def said(session: Session, thread: str = MAIN) -> list[tuple[Any, ...]]:
    """Who said and did what, in order."""
    rows: list[tuple[Any, ...]] = []
    for move in main_messages(session, thread):
        calls = [
            (c.id, c.call.name, json.loads(c.call.arguments or "{}"), c.result.text or "" if c.result else None)
            for c in move.calls
        ]
        rows.append((move.role, move.text, move.thought, calls))
    return rows


def comparable(session: Session) -> bool:
    """Arguments that are no object are written as one: nothing to compare word for word."""
    return all(c.arguments[:1] in ("{", "") and _is_json(c.arguments) for c in session.tool_calls)


def _is_json(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def writer_of(name: str) -> Writer:
    writer = WRITERS.get(name)
    assert isinstance(writer, Writer)
    return writer


def tokens(session: Session) -> list[tuple[Any, ...]]:
    """Of every step that used any; the format writes 0 for what is not known."""
    shown = [m.step for m in main_messages(session) if m.step is not None]
    rows = [(s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens) for s in shown]
    return [tuple(t or 0 for t in row) for row in rows if any(row)]


def for_others(text: str) -> str:
    """What other programs see of a written file: the format's own fields."""
    if text.count("\n") > 1 and text.startswith('{"type"'):
        return "".join(f"{json.dumps(bare(json.loads(line)))}\n" for line in text.splitlines())
    return json.dumps(bare(json.loads(text)))


def bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items() if name != "agentsignals"}
    return [bare(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("sample", PEOPLE)
def test_other_programs_see_words_calls_results_and_tokens(sample: Path) -> None:
    """What comes back to us beside these is `test_round_trip`'s."""
    # Of calls whose arguments are no object, and where nothing was said, there is nothing to compare.
    compared = (s for s in sessions_of(sample) if comparable(s) and main_messages(s))
    for session, name in product(compared, READ_BACK):
        writer = writer_of(name)
        again = read_again(for_others(writer.text(session)), f"x{writer.suffix}")
        assert said(again) == said(session), name
        assert (again.session_id, again.agent) == (session.session_id, session.agent or "unknown"), name
        if name != "sts":  # it has no field for what is written to the cache
            assert tokens(again) == tokens(session), name
            assert [m.at for m in main_messages(again)] == [m.at for m in main_messages(session)], name
            assert subagent_threads(again) == subagent_threads(session), name


@pytest.mark.parametrize("sample", PEOPLE)
def test_what_is_written_is_valid_by_the_published_schemas(sample: Path) -> None:
    for session in sessions_of(sample):
        document = json.loads(writer_of("atif").text(session))
        ATIF.validate(document)
        for trajectory in (document, *document.get("subagent_trajectories", ())):
            assert [s["step_id"] for s in trajectory["steps"]] == list(range(1, len(trajectory["steps"]) + 1))
            for step in trajectory["steps"]:
                known = {c["tool_call_id"] for c in step.get("tool_calls", ())}
                assert {r["source_call_id"] for r in step.get("observation", {}).get("results", ())} <= known
        (line,) = writer_of("opentraces").text(session).splitlines()
        TraceRecord.model_validate_json(line)


def test_the_schema_of_trajectories_refuses_what_is_none() -> None:
    good = json.loads(writer_of("atif").text(sessions_of(PRODUCT[0])[0]))
    for spoilt in (good | {"steps": []}, good | {"agent": {"name": "x"}}, good | {"schema_version": "ATIF-v9"}):
        assert not ATIF.is_valid(spoilt)
    assert not ATIF.is_valid(good | {"steps": [{"step_id": 1, "source": "user", "message": "", "metrics": {}}]})


def test_repeated_call_ids_are_told_apart() -> None:
    repeated = build(user("go"), call("Read", path="a"), call("Read", path="b"), call("Read", path="c"))
    for one in repeated.tool_calls:
        one.call_id = "functions.bash:0"
    assert [c.id for m in main_messages(repeated) for c in m.calls] == [
        "functions.bash:0",
        "functions.bash:0~2",
        "functions.bash:0~3",
    ]


def test_times_that_are_no_times_are_left_out() -> None:
    assert iso_time(10**30) is None
    assert iso_time(None) is None
    assert iso_time(1_772_359_205_123_456) == "2026-03-01T10:00:05.123456Z"


@pytest.mark.parametrize(("given", "made"), [("a/b#0", "a_b_0"), ("../../etc", "_.._etc"), ("", "session")])
def test_a_sessions_id_is_a_safe_name_of_a_file(given: str, made: str) -> None:
    assert file_name(given) == made


def test_the_verb_writes_a_file_a_session_and_says_what_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    pipeline.analyze([str(SAMPLES / "pi"), str(SAMPLES / "swe-bench")], store)
    known = Store(store).manifest.sessions.values()
    sessions, blind = (len([s for s in known if s.context == context]) for context in ("product", "eval"))
    code = main(["export", "--to", "sts", "-o", str(tmp_path / "out"), "--store", str(store), "--json", "--quiet"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["sessions"], told["without_transcript"]) == (0, sessions, blind)
    assert blind >= 1, "a verifier's report without the conversation it judges"
    assert len(list((tmp_path / "out").iterdir())) == sessions
    assert any("spelling" in loss or "threads" in loss for loss in told["loses"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--to", "sts", "-o", "FULL"], "is not empty"),
        (["--to", "xml", "-o", "out"], "There is no export 'xml'"),
        (["--to", "sts", "-o", "out", "--where", "agent = 'nobody'"], "No session"),
    ],
)
def test_what_cannot_be_written_is_said(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.analyze([str(SAMPLES / "pi")], tmp_path / "store")
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "x").write_text("x")
    given = [str(tmp_path / a) if a in ("FULL", "out") else a for a in arguments]
    assert main(["export", *given, "--store", str(tmp_path / "store"), "--quiet"]) in (1, 2)
    assert says in capsys.readouterr().err


def test_writers_are_named() -> None:
    with pytest.raises(UsageError, match="There is no export 'x'"):
        WRITERS.get("x")
    assert set(READ_BACK) >= {"atif", "opentraces", "sts"}
    assert set(WRITERS.all()) >= {*READ_BACK, "baseline", "hub", "parquet"}
    assert all(writer.describes for writer in WRITERS.all().values())
    assert all(writer_of(name).reads_back in formats() for name in READ_BACK)


def test_without_a_format_those_there_are_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed and writer.describes[:40] in listed for name, writer in WRITERS.all().items())
    assert main(["export", "--to", "atif"]) == 2
