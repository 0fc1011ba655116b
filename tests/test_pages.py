"""Pages that show what the program does show what it does: their lines run, and print what stands below them."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "one-number.md"
ROOMS = ("sources", "ingest", "formats", "model", "prices", "views", "signals", "store", "stats", "studies", "report")


def examples(text: str) -> doctest.DocTest:
    """The lines of the page; the fences around them would be taken for what they print."""
    plain = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    return doctest.DocTestParser().get_doctest(plain, {}, PAGE.name, str(PAGE), 0)


def run(text: str) -> str:
    """What differs, in words; empty when nothing does."""
    problems: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples(text), out=problems.append)
    return "".join(problems)


@pytest.fixture
def demo(demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder has what `make demo` makes."""
    (tmp_path / "demo").symlink_to(demo_folder)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("demo")
def test_one_trace_becomes_the_number_that_the_page_shows() -> None:
    text = PAGE.read_text("utf-8")
    assert len(examples(text).examples) > 30
    assert run(text) == ""
    assert "Expected:" in run(text.replace("0.0863625", "0.0863626")), "a figure that is not so is found"


def test_the_page_passes_the_rooms_and_names_files_that_are_there() -> None:
    text = PAGE.read_text("utf-8")
    headings = " ".join(re.findall(r"^## (.+)$", text, re.MULTILINE))
    assert [room for room in ROOMS if f"`{room}`" not in headings] == []
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", text))
    assert len(named) > 10 and [n for n in named if not (ROOT / "src" / "agentsignals" / n).is_file()] == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_lies_here_without_what_it_says_and_is_led_to(path: Path) -> None:
    """`make notebooks` runs them. Kept figures would be stale with the next change of a signal."""
    cells = [c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    assert cells and all(c["outputs"] == [] and c["execution_count"] is None for c in cells)
    assert f"(notebooks/{path.name})" in (ROOT / "docs" / "index.md").read_text("utf-8")
