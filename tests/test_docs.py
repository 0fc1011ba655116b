"""The pages lead somewhere, and the generated ones show what the code says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from docs import columns, demo, generate, partly, what_formats_say

from agentsignals.cli import build_parser
from agentsignals.formats import formats, profiles
from agentsignals.questions.studies import studies
from agentsignals.signals.catalog import catalogue
from agentsignals.store import tables
from tests.quick import each_row

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@each_row("page", PAGES)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", page.read_text("utf-8"))  # code may look like a link
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not heading or heading in anchors(linked), target


def test_every_page_is_reached_from_the_readme() -> None:
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)#:]+\.md)", page.read_text("utf-8"))
        todo += [page.parent / t for t in targets]
    decisions = {p for p in PAGES if p.parent.name == "decisions"}
    assert {p for p in PAGES if p not in decisions} - seen == set()


def test_every_reason_that_the_code_cites_can_be_read_here() -> None:
    texts = [p for d in ("src", "tests", "benchmarks") for p in (ROOT / d).rglob("*.py") if p != Path(__file__)]
    design = {p.name: anchors(p) for p in (ROOT / "docs" / "design").glob("*.md")}
    lost: set[str] = set()
    for path in texts:
        text = re.sub(r"\n\s*#?\s*", " ", path.read_text("utf-8"))
        cited = re.findall(r"design/([a-z]+\.md)#([a-z0-9-]+)", text)
        lost |= {f"{path.name}: {page}#{heading}" for page, heading in cited if heading not in design.get(page, set())}
        lost |= {
            f"{path.name}: {gone}" for gone in re.findall(r"seeds? 00\d|signals\.yaml|swechat\.md|signals_notes", text)
        }
    assert lost == set()


def test_every_format_has_its_line_on_the_page_of_formats() -> None:
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    named = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == set(formats())


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_every_agent_that_keeps_sessions_is_named_where_people_look_first(page: str) -> None:
    said = " ".join((ROOT / page).read_text("utf-8").lower().replace("<br>", "").split()).replace(" ", "-")
    assert {p.agent for p in profiles() if p.agent not in said} == set()


def test_the_catalogue_page_has_every_signal_with_its_meaning() -> None:
    page = generate.catalog_page()
    for one in catalogue().values():
        assert page.count(f"\n### `{one.path}`") == 1
    explained = re.findall(r"^### `[^`]+`(?: ★)?\n\n(\S.+)$", page, re.MULTILINE)
    assert len(explained) == len(catalogue())


def test_the_command_line_page_has_every_verb_and_option() -> None:
    page = generate.cli_page()
    verbs = next(a for a in build_parser()._actions if a.dest == "verb").choices
    assert isinstance(verbs, dict)
    for name, verb in verbs.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section, name
        assert all(o in section for a in verb._actions for o in a.option_strings if a.dest != "help"), name
        assert f"`agentsignals {name}" in section, "an example"


def test_every_column_has_a_meaning() -> None:
    page = columns.page()
    assert (ROOT / "docs" / "columns.md").read_text("utf-8") == page, "run `make docs`"
    for table, names in tables.COLUMNS.items():
        assert [name for name in names if not columns.meaning(table, name)] == [], table
        section = page.partition(f"\n## {table}\n")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `([^`]+)`", section, re.MULTILINE) == list(names)
    used = {key for table, names in tables.COLUMNS.items() for name in names for key in (f"{table}.{name}", name)}
    assert set(columns.MEANINGS) - used == set(), "of columns that are gone"
    assert columns.unit("cost_usd") == "US dollars" and columns.unit("cache_read_tokens") == "tokens"


def test_readme_says_how_often_signals_are_right_and_what_formats_lack() -> None:
    page = partly.readme()
    assert (ROOT / "README.md").read_text("utf-8") == page, "run `make docs`"
    assert "| `agentsignals inventory underspecification` | never measured |" in page
    for name in what_formats_say.said():
        assert f"`{name}`" in page
    assert what_formats_say.lacking("factory-droid") == "cost"
    assert what_formats_say.lacking("claude-code") == what_formats_say.NOTHING


def test_every_command_that_people_are_told_first_is_one() -> None:
    texts = [(ROOT / page).read_text("utf-8") for page in ("README.md", "docs/index.md")]
    blocks = [block for text in texts for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"`(agentsignals [^`]*)`", texts[0])
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("agentsignals ")]
    asked = [build_parser().parse_args(words) for words in commands if words]
    studied = {name for options in asked for name in getattr(options, "study", None) or ()}
    assert len(asked) > 20 and studied <= set(studies())


@pytest.mark.parametrize(
    ("words", "shown"),
    [("a <b> & *c*", r"a \<b\> & \*c\*"), ("`<b>` <c>", r"`<b>` \<c\>"), ("list[int] | None", r"list\[int\] \| None")],
)
def test_markup_in_words_is_shown_and_code_left_alone(words: str, shown: str) -> None:
    assert generate._text(words) == shown


@pytest.mark.slow
def test_the_demo_page_is_what_the_program_makes_now() -> None:
    page = demo.PAGE.read_text("utf-8")
    assert page == demo.demo_page(), "stale: run `python -m docs.demo`"
    assert not re.search(r'(?:src|href)="(?!#|data:)', page), "it opens without a network"
