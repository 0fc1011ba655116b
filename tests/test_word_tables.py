"""Tables of names, word by word: a name that goes, or another class for it, is seen. What agents call their tools
stands as their programs have it; a new name is added on both sides.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agentsignals.changes import git as objects
from agentsignals.formats import by_name
from agentsignals.formats.claude_code.reader import BUILTIN_COMMANDS
from agentsignals.questions.tool_kinds import KIND
from agentsignals.redaction import redacted
from tests.build import call, session, user
from tests.questions.stores import store_of

TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("word_tables.toml").read_text("utf-8"))


@pytest.mark.parametrize("agent", TABLES["tools"])
def test_every_tool_of_an_agent_has_its_class(agent: str) -> None:
    profile = by_name(agent).profile
    assert profile is not None
    wanted = {name: class_ for class_, names in TABLES["tools"][agent].items() for name in names.split()}
    assert {name: tool.class_ for name, tool in profile.tools.items()} == wanted


def test_commands_of_the_program_are_no_prompts() -> None:
    assert set(TABLES["commands"].split()) == BUILTIN_COMMANDS


@pytest.mark.parametrize(
    "name",
    [
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"),
        *("GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
        *("GIT_SHALLOW_FILE", "GIT_CONFIG", "GIT_REPLACE_REF_BASE", "GIT_GRAFT_FILE"),
    ],
)
def test_no_variable_of_a_hook_reaches_git(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in place of git that prints what it was started with."""
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv(name, "elsewhere")
    said = objects.run("status").decode().splitlines()
    assert not any("elsewhere" in line for line in said)
    asks_nobody = ("GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never")
    assert {*asks_nobody, "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"} <= {
        *said
    }


def test_every_command_is_of_its_kind(tmp_path: Path) -> None:
    words = {word: kind for kind, names in TABLES["kinds"].items() for word in names.split()}
    store = store_of(tmp_path / "s", session(user("go"), *(call("Bash", command=f"{word} x") for word in words)))
    asked = f"SELECT command, {KIND} FROM tool_calls"
    assert {command.split()[0]: kind for command, kind in store.sql(asked).fetchall()} == words


@pytest.mark.parametrize(
    "path",
    [
        *("/home/jo-x/a", "%2Fhome%2Fjo-x%2Fa", "/Users/jo-x/a", "%2FUsers%2Fjo-x%2Fa"),
        *(r"C:\\Users\\jo-x\\a", r"C:\Users\jo-x\a", "/x/projects/-home-jo-src", "/x/projects/-Users-jo-src"),
    ],
)
def test_every_way_to_a_home_names_nobody(path: str) -> None:
    assert "jo" not in redacted(f"in {path} now")
