"""What the core does where a package of an extra is not installed: it goes on without, and names what to install."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agentsignals.cli import main
from agentsignals.cli.doctor import EXTRAS, _others
from agentsignals.errors import StoreError
from agentsignals.store import Store
from tests.build import call, say, session, user
from tests.questions.stores import store_of

ROOT = Path(__file__).parents[1]
IMPORTED_AS = {"frames": "polars"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = [
        session(
            user("fix <it>"),
            say("on it", model="claude-opus-4-5", input_tokens=10, output_tokens=5),
            *(call("Bash", command="make", status="error" if n % 2 else "ok") for n in range(4)),
            session_id=f"s{i}",
        )
        for i in range(3)
    ]
    return store_of(tmp_path / "s", *made)


@pytest.fixture(params=IMPORTED_AS)
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An extra whose package can't be imported, as where it is not installed."""
    name = str(request.param)
    monkeypatch.setitem(sys.modules, IMPORTED_AS[name], None)
    return name


only_frames = pytest.mark.parametrize("missing", ["frames"], indirect=True)


@only_frames
@pytest.mark.parametrize("name", ["sessions", "events", "tool_calls", "content", "user_messages", "signals"])
def test_a_frame_names_what_it_needs(store: Store, missing: str, name: str) -> None:
    with pytest.raises(StoreError, match="Polars") as caught:
        getattr(store, name)()
    assert "pip install 'polars" in caught.value.hint
    assert store.sql("SELECT count(*) FROM sessions").fetchall() == [(3,)], "SQL does without"


def test_doctor_names_extras_that_are_not_there(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(EXTRAS, "frames", ("no-such-package", "nothing"))
    assert main(["doctor", "--store", str(store.folder)]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("frames"))
    assert "missing" in line and "pip install 'polars" in line


def test_doctor_lists_every_extra_that_the_package_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needs = [f"{need}; extra == '{name}'" for name, of in declared.items() for need in of]
    listed = _others([*needs, "pytest; extra == 'is-there'", "no-such-package>=1; extra == 'is-not'"]).finding
    installed, _, missing = listed.partition("; not installed: ")
    names = set(re.findall(r"[\w-]+", listed))
    assert {name for name in declared if name != "docs" and not name.endswith("dev")} <= names | EXTRAS.keys()
    assert "is-there" in installed and "is-not" in missing and "dev" not in names and "mcp" in names


@pytest.mark.slow
def test_every_module_of_the_core_loads_without_any_package_of_an_extra(tmp_path: Path) -> None:
    """A new program in which no package of an extra can be found runs the demo from reading to report."""
    block = f"import sys\nfor name in {sorted(IMPORTED_AS.values())!r}:\n    sys.modules[name] = None\n"
    code = f"{block}from agentsignals.cli import main\nsys.exit(main(['demo', '--quiet', '--folder', 'd']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        "<svg" in (tmp_path / "d" / "report.html").read_text("utf-8")
        and (tmp_path / "d" / "report.html").stat().st_size > 50_000
    )
