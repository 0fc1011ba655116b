"""What is known of an agent stands in one record beside its reader, and reaches whoever asks: a toy agent whose words
nobody has heard is found at home, and its edits, plans and looks again are understood."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from agentsignals import formats
from agentsignals.changes.hunks import changed_lines
from agentsignals.cli import main
from agentsignals.formats.bounds import VERSION
from agentsignals.formats.profile import PLAN, Tool
from agentsignals.model import Artifact, Session
from agentsignals.model.registry import UnitPlace
from agentsignals.questions.tool_kinds import HANDS_IN_PLAN, KIND
from agentsignals.repositories.working_trees import operations
from agentsignals.sources import local
from agentsignals.store import Store

TOY = """
from agentsignals.formats import Claim, Format, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.builder import record_arguments
from agentsignals.formats.profile import Profile
from agentsignals.formats.records import lines, saw
from agentsignals.formats.profile import Tool
from agentsignals.model import Session
from agentsignals.model import Roles
import json, msgspec

PROFILE = Profile(
    agent="toy-agent",
    homes=("~/.toy/logs", "~/.toy/archive"),
    tools={
        "umschreiben": Tool(
            class_="edit", path=("datei",), roles=Roles(replace=(("alt", "neu"),), several=("stellen",))
        ),
        "vorlegen": Tool(class_="plan", purpose="plan_handoff", roles=Roles(plan=("vorhaben",))),
        "nachsehen": Tool(class_="other", purpose="poll"),
    },
    conventions=("thinking_not_logged",),
)

def claims(head):
    return Claim(keys=["session:toy"]) if any("toy" in r for r in head.records) else None

def read(inputs):
    sessions = []
    for given in inputs:
        session = Session(session_id="toy", context="product", format="toy-agent", agent="toy-agent",
                          artifact_id=given.artifact.artifact_id)
        builder = SessionBuilder(session)
        builder.turn("prompt", "make it better", 1_767_225_600_000_000)
        for number, record in lines(given.data, given.artifact, msgspec.json.decode):
            saw(given.artifact, "toy")
            builder.line = number
            call = builder.call(f"c{number}", record["toy"], json.dumps(record["given"]), PROFILE.tool(record["toy"]))
            builder.result(call.call_id, "done", "ok")
            if call.class_ == "edit":
                record_arguments(builder, call, set())
        sessions.append(builder.finish())
    return Reading(sessions)

FORMAT = Format(name="toy-agent", version=1, claims=claims, read=read, profile=PROFILE)
"""
CALLS = [
    {"toy": "vorlegen", "given": {"vorhaben": "1. Add a basket\n2. Write its tests"}},
    {"toy": "umschreiben", "given": {"datei": "a.py", "alt": "one = 1", "neu": "one = 2\ntwo = 2"}},
    {"toy": "umschreiben", "given": {"datei": "a.py", "stellen": [{"alt": "two = 2", "neu": "two = 3"}]}},
    *[{"toy": "nachsehen", "given": {}}] * 3,
]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A format in a package of its own, found as the others are; its home holds a session."""
    (tmp_path / "toy_agent.py").write_text(TOY, encoding="utf-8")
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    place = UnitPlace("toy-agent", "agentsignals.formats.toy_agent:FORMAT")
    monkeypatch.setattr(formats.FORMATS, "places", {**formats.FORMATS.places, "toy-agent": place})
    monkeypatch.setenv("HOME", str(tmp_path))
    logs = tmp_path / ".toy" / "logs"
    logs.mkdir(parents=True)
    (logs / "one.jsonl").write_text("".join(json.dumps(call) + "\n" for call in CALLS), encoding="utf-8")
    formats.formats.cache_clear()
    formats.marks.cache_clear()
    formats.searched.cache_clear()
    yield tmp_path
    formats.formats.cache_clear()
    formats.marks.cache_clear()
    formats.searched.cache_clear()
    sys.modules.pop("agentsignals.formats.toy_agent", None)


def test_an_agents_home_is_found_by_its_name(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert formats.homes()["toy-agent"] == ("~/.toy/logs", "~/.toy/archive")
    assert local.found_homes()["toy-agent"] == [toy / ".toy" / "logs"]
    assert main(["doctor", "--json", "--store", str(toy / "store")]) == 0
    there, absent = [row for row in json.loads(capsys.readouterr().out) if row["name"] == "toy-agent"]
    assert there["found"].startswith(f"{toy / '.toy' / 'logs'}: 1 session; 1 file, ")
    assert (absent["status"], absent["found"]) == ("missing", "no ~/.toy/archive")
    assert main(["analyze", "toy-agent", "--no-report", "--store", str(toy / "store"), "--jobs", "1", "--json"]) == 0
    assert Store(toy / "store").sql("SELECT session_id, agent FROM sessions").fetchall() == [("toy", "toy-agent")]


def test_an_agents_words_reach_the_store_and_all_who_ask(toy: Path) -> None:
    assert main(["analyze", "toy-agent", "--no-report", "--store", str(toy / "store"), "--jobs", "1", "--json"]) == 0
    store = Store(toy / "store")
    session = store.session("toy")
    assert session.conventions == ["thinking_not_logged"]
    assert [(o.kind, o.path, o.old, o.new) for o in operations(session)] == [
        ("replace", "a.py", "one = 1", "one = 2\ntwo = 2"),
        ("replace", "a.py", "two = 2", "two = 3"),
    ]
    changed = [changed_lines(c.arguments, c.argument_roles) for c in session.tool_calls if c.class_ == "edit"]
    assert [(set(c.removed), set(c.added)) for c in changed] == [
        ({"one = 1"}, {"one = 2", "two = 2"}),
        ({"two = 2"}, {"two = 3"}),
    ]
    values = dict(store.sql("SELECT signal, number FROM signals WHERE turn IS NULL").fetchall())
    assert values["user.confirmation_requests"] == 1
    assert values["reasoning.plan_steps_detected"] == 2
    repeated = "SELECT value FROM signals WHERE signal = 'dynamics.repeated_calls'"
    assert json.loads(store.sql(repeated).fetchall()[0][0]) == {"n": 0, "of": 2, "equal": 0, "stale_max": 1}
    absent = "SELECT absent_detail FROM signals WHERE signal = 'reasoning.has_reasoning_blocks'"
    assert store.sql(absent).fetchall() == [("format_records_no_thinking",)]
    kinds = store.sql(f"SELECT {KIND}, count(*) FROM tool_calls GROUP BY ALL ORDER BY ALL").fetchall()
    assert kinds == [(HANDS_IN_PLAN, 1), ("edit", 2), ("other", 3)]


HAND_INS = {
    "claude-code": ("ExitPlanMode", "exit_plan_mode"),
    "copilot-cli": ("exit_plan_mode",),
    "cursor-agent": ("CreatePlan", "create_plan"),
    "factory-droid": ("ExitSpecMode",),
    "gemini-cli": ("exit_plan_mode",),
    "kilo": ("plan_exit",),
    "kimi-cli": ("ExitPlanMode",),
    "kimi-code": ("ExitPlanMode",),
    "opencode": ("plan_exit",),
    "pi": ("plannotator_submit_plan", "exit_plan_mode"),
    "qwen-code": ("exit_plan_mode",),
}
"""Which tools show the person a plan and wait (design/formats.md)."""


def test_whoever_asks_for_plans_handed_in_asks_the_same_of_every_agent() -> None:
    tools = [(p.agent, name, tool) for p in formats.profiles() for name, tool in p.tools.items()]
    declared = {(agent, name) for agent, name, tool in tools if tool.purpose == "plan_handoff"}
    assert declared == {(agent, name) for agent, names in HAND_INS.items() for name in names}
    for tool in {tool for *_, tool in tools if tool.purpose is not None}:
        asked = f"SELECT {KIND} FROM (SELECT ? AS class, ? AS purpose, NULL AS command)"
        kind = duckdb.execute(asked, [tool.class_, tool.purpose]).fetchall()
        assert (kind == [(HANDS_IN_PLAN,)]) == (tool.purpose == "plan_handoff")
        assert tool.class_ == "plan" or tool.purpose not in ("plan_handoff", "plan_mode", "add_task")
        assert tool.class_ == "edit" or tool.purpose != "write_file"
        assert tool.class_ == "search" or tool.purpose != "find_files"


def test_a_profile_is_loaded_without_its_reader() -> None:
    code = (
        "import sys; from agentsignals.formats import homes, profiles; homes(); profiles();"
        " print([m for m in sys.modules if 'formats.' in m and m.endswith(('.files', '.session'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "known"), [("mcp__x__y", "mcp"), ("Teleport", None), ("Edit", "edit"), ("ExitPlanMode", "plan")]
)
def test_a_tool_is_known_by_its_name_or_what_its_name_is_like(name: str, known: str | None) -> None:
    tool = formats.by_name("claude-code").profile.tool(name)  # type: ignore[union-attr]
    assert (tool.class_ if tool is not None else None) == known


def test_a_purpose_makes_another_tool_of_the_same_class() -> None:
    assert PLAN.to("plan_handoff") == Tool(class_="plan", purpose="plan_handoff", roles=PLAN.roles)


def test_what_comes_in_pieces_is_made_sound_too() -> None:
    """Large files are read piece by piece: nothing impossible comes in by that door."""

    def piece() -> formats.Reading:
        made = Session(session_id="s" * 600, context="product", format="codex-exec", agent="codex", artifact_id="a")
        return formats.Reading([made])

    whole = formats.Format(
        name="p", version=1, claims=lambda _: None, read=lambda _: piece(), pieces=lambda _: iter([piece()])
    )
    artifact = Artifact(artifact_id="a", source="t", path="a", format="p", sha256="", bytes=0)
    assert whole.pieces is not None
    [given] = whole.pieces([formats.Input(b"", artifact)])
    assert [s.session_id for s in given.sessions] == [
        s.session_id for s in whole.read([formats.Input(b"", artifact)]).sessions
    ]
    assert artifact.skipped_reasons == {"id_too_long": 2}
    assert whole.version == 1 + VERSION, "the rules of values are part of it"
