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
from agentsignals.ui import report
from agentsignals.ui.page import Query
from agentsignals.ui.pages import catalogue
from agentsignals.ui.snapshot import Snapshot
from tests.build import call, say, session, user
from tests.questions.stores import store_of

ROOT = Path(__file__).parents[1]
IMPORTED_AS = {"charts": "vl_convert", "frames": "polars"}


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


only_charts = pytest.mark.parametrize("missing", ["charts"], indirect=True)
only_frames = pytest.mark.parametrize("missing", ["frames"], indirect=True)


@only_charts
def test_a_report_without_its_charts_is_whole_and_says_what_to_install(
    store: Store, missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.html"
    assert main(["report", "--study", "tools", "-o", str(file), "--store", str(store.folder)]) == 0
    assert "pip install 'vl-convert-python" in capsys.readouterr().out
    page = file.read_text("utf-8")
    assert "pip install &#39;vl-convert-python" in page
    shown = re.findall(r"<figure>.*?</figure>", page, re.S)
    assert shown and all(re.search(r"<summary>Its figures</summary><ul>\s*<li>[^<]", figure) for figure in shown)
    assert "data-chart" not in page.partition("<script")[0], "what is no picture can't be saved as one"
    assert page.count("<script") == 1 and len(page) < 200_000, "no library without a picture to draw anew"


@pytest.mark.slow
def test_a_report_with_its_charts_says_nothing_of_it(store: Store, tmp_path: Path) -> None:
    page = report.write(store, tmp_path / "r.html", ["tools"]).read_text("utf-8")
    assert "<figure data-chart" in page and "pip install" not in page and "Its figures" not in page


@only_charts
def test_the_served_page_of_a_study_does_without_too(store: Store, missing: str) -> None:
    filled = catalogue.study_page(Snapshot(store), Query(), "tools").filled
    assert filled["charts"] == "" and "vl-convert-python" in filled["undrawn"]


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
    monkeypatch.setitem(EXTRAS, "charts", ("no-such-package", "nothing"))
    assert main(["doctor", "--store", str(store.folder)]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("charts"))
    assert "missing" in line and "pip install 'vl-convert-python" in line


def test_doctor_lists_every_extra_that_the_package_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needs = [f"{need}; extra == '{name}'" for name, of in declared.items() for need in of]
    listed = _others([*needs, "pytest; extra == 'is-there'", "no-such-package>=1; extra == 'is-not'"]).finding
    installed, _, missing = listed.partition("; not: ")
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
    assert "vl-convert-python" in done.stdout and (tmp_path / "d" / "report.html").stat().st_size > 50_000
