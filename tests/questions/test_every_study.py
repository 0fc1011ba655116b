"""What holds of every study, whatever it asks: on the demo, on a store of one session, and on an empty one. A study is
tested here from the moment it is registered."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from agentsignals.questions.estimates import (
    TOP_SESSIONS,
    chart,
    clustered_median,
    clustered_ratio,
    clustered_share,
    columns,
    count,
    ranked,
    table,
    top_sessions,
)
from agentsignals.questions.findings import Reader
from agentsignals.questions.question import MISSING, Chart, Column, Finding, Inputs, Kind, Outcome, Study, Versions
from agentsignals.questions.sql import ENGLISH_ONLY
from agentsignals.questions.studies import studies, study
from agentsignals.signals.catalog import caption, catalogue
from agentsignals.stats.validation import NEVER_VALIDATED
from agentsignals.store import Store, query
from agentsignals.ui import document as phrases
from agentsignals.ui import report as data
from agentsignals.ui import report as markdown
from agentsignals.ui.document import Document, document
from agentsignals.ui.page import short_ids
from tests.build import call, say, session, user
from tests.questions.stores import store_of

MEASURED = {signal.path for signal in catalogue().values() if caption(signal.path)}
STORES = (pytest.param("demo", marks=pytest.mark.slow), "single", "empty")


@pytest.fixture(scope="module")
def stores(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    folder = tmp_path_factory.mktemp("stores")
    alone = session(
        user("please mend the parser"),
        call("Read", path="a.py"),
        call("Bash", command="false", status="error"),
        call("Edit", path="a.py"),
        say("done"),
        session_id="alone",
    )
    return {
        "demo": Store(demo_folder / "store"),
        "single": store_of(folder / "single", alone),
        "empty": Store(folder / "empty", create=True),
    }


@pytest.mark.parametrize("name", STORES)
def test_a_study_finds_the_same_alone_and_among_all(stores: dict[str, Store], name: str) -> None:
    """Among many what they ask is held, with ids and signals as numbers, and of small tables some columns."""
    every = [study(one) for one in studies()]
    among = Reader(stores[name], every)
    for one in every:
        assert one.run(among.inputs(one)) == one.run(Reader(stores[name], [one]).inputs(one)), one.name


@cache
def outcomes(folder: Path) -> dict[str, Outcome]:
    declared = [*studies().values()]
    reader = Reader(Store(folder), declared)
    return {one.name: one.run(reader.inputs(one)) for one in declared}


@pytest.fixture(params=STORES)
def of_store(request: pytest.FixtureRequest, stores: dict[str, Store]) -> dict[str, Outcome]:
    """What every study finds in one of the stores; that none fails, by zero or otherwise, is the first thing asked."""
    return outcomes(stores[request.param].folder)


def findings(outcomes: dict[str, Outcome]) -> Iterator[Finding]:
    for one in outcomes.values():
        yield from one.findings


@pytest.mark.slow
def test_a_finding_can_be_quoted(of_store: dict[str, Outcome]) -> None:
    for ids in ([f.id for f in findings(of_store)], *([t.id for t in one.tables] for one in of_store.values())):
        assert len(ids) == len(set(ids))
    for finding in findings(of_store):
        assert finding.title and finding.unit and finding.of and finding.versions is not None, finding.id
        assert type(finding.n) is int and finding.n >= 0, finding.id
        assert finding.kind in get_args(Kind), finding.id
        assert finding.command.startswith(("agentsignals query ", "agentsignals report --study ")), finding.id


def test_nothing_observed_is_no_value_or_a_count_of_none(of_store: dict[str, Outcome]) -> None:
    for finding in findings(of_store):
        if not finding.n:
            assert finding.value in (None, 0) and finding.interval is None, finding.id


def test_an_interval_holds_its_value_and_a_share_lies_between_none_and_all(of_store: dict[str, Outcome]) -> None:
    for finding in findings(of_store):
        if finding.interval is not None:
            assert finding.interval[0] <= finding.value <= finding.interval[1], finding.id  # type: ignore[operator]
        if finding.kind == "share" and finding.value is not None and finding.id != "agents.output_input":
            assert 0 <= finding.value <= 1, finding.id  # type: ignore[operator]


def test_the_share_that_was_not_judged_stands_at_each_figure_of_rules_for_english(tmp_path: Path) -> None:
    talks = {
        "de": ("Bitte behebe den Fehler in der Datei und teste sie", "Ich habe die Datei geändert und getestet",
               "Nein, das ist falsch, mach das bitte wieder rückgängig", "Gut, das ist jetzt wieder wie vorher"),
        "en": ("Please mend the bug in the file and write a test", "I think I changed the file. Shall I push it?",
               "No, that is wrong, undo it and use the other function", "It is as it was before now"),
    }  # fmt: skip
    made = [
        session(user(ask), say(answer), user(no), say(end), session_id=f"{n}")
        for n, (ask, answer, no, end) in enumerate((*[talks["en"]] * 3, talks["de"]))
    ]
    store = store_of(tmp_path, *made)
    asked = "SELECT DISTINCT signal FROM signals WHERE absent_detail LIKE 'language%'"
    unread = {signal for (signal,) in query.rows(store, asked)[1]}
    assert unread <= ENGLISH_ONLY <= {s.path for s in catalogue().values()}
    of_prompts, of_sessions = (f"25.0% of {what} not judged: another language" for what in ("prompts", "sessions"))
    found = {
        figure.id: figure.note
        for one in outcomes(store.folder).values()
        for figure in (*one.findings, *one.tables, *one.charts)
        if figure is not None and "not judged: another" in figure.note
    }
    assert found["people.opening"].endswith(of_sessions) and found["people.pushback"].endswith(of_prompts)
    assert found["agents.metrics"].endswith(f"{of_sessions}.") and found["intents.activities"].endswith(
        f"{of_prompts}."
    )
    assert {
        "people.positions",
        "people.openings",
        "friction.ends",
        "friction.undisturbed",
        "oversight.acts",
    } <= found.keys()
    assert "friction.asked" not in found and "oversight.asked" not in found  # a call is no matter of words
    rest = [f for f in findings(outcomes(store.folder)) if not unread.isdisjoint(f.signals) and f.id not in found]
    assert {f.id for f in rest} <= {"friction.asked", "oversight.asked"}


NO_PLACES = {
    "attempts": "because attempts at one task are alike",
    "weaknesses": "interval treats scanner findings as independent",
}
"""Studies whose figures are of no sessions of a place."""


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Outcome]]:
    """What the studies find in the same sessions, by the number of places they lie in."""
    folder = tmp_path_factory.mktemp("spread")
    made: dict[int, dict[str, Outcome]] = {}
    for places in (2, 8, 12):
        sessions = [
            session(
                user("please mend the parser"),
                call("Read", path="a.py"),
                call("Bash", command="make", status="error" if n % 3 else "ok"),
                *(call("Bash", command="make") for _ in range(n % 4)),
                *(call("Edit", path="b.py" if n % 2 else "a.py") for _ in range(n % 5)),
                call("mcp__tracker__find", query="x") if n % 4 == 1 else say("looking"),
                say("done"),
                user("no, that is wrong" if n % 3 == 1 else "thanks, perfect"),
                say("ok"),
                session_id=f"s{n}",
                cwd=f"/work/place-{n % places}",
            )
            for n in range(12)
        ]
        made[places] = outcomes(store_of(folder / str(places), *sessions).folder)
    return made


def test_no_text_has_a_name_that_was_not_filled_in(of_store: dict[str, Outcome]) -> None:
    texts = [(each.id, each.note) for outcome in of_store.values() for each in (*outcome.tables, *outcome.charts)]
    texts += [(name, text) for name, outcome in of_store.items() for text in outcome.limits]
    texts += [(finding.id, f"{finding.title} {finding.note}") for finding in findings(of_store)]
    assert len(texts) > 100 and [text for text in texts if re.search(r"\{[A-Za-z_]+\}", text[1])] == []


def test_every_interval_says_what_it_is_drawn_over(of_store: dict[str, Outcome]) -> None:
    rules = (
        "of one project are alike",
        "sessions as independent",
        "commits as independent",
        "fewer than",
        *NO_PLACES.values(),
    )
    bare = [f.id for f in findings(of_store) if f.interval and not any(rule in f.caveat for rule in rules)]
    assert bare == []


@pytest.mark.slow
def test_one_title_has_one_number(of_store: dict[str, Outcome], spread: dict[int, dict[str, Outcome]]) -> None:
    for outcomes in (of_store, *spread.values()):
        numbers: dict[str, dict[tuple[Any, ...], str]] = {}
        for one in findings(outcomes):
            numbers.setdefault(one.title, {})[one.value, str(one.interval)] = one.id
        assert {title: list(by.values()) for title, by in numbers.items() if len(by) > 1} == {}


@pytest.mark.slow
def test_one_rule_draws_every_interval_of_a_report(spread: dict[int, dict[str, Outcome]]) -> None:
    """Places where there are enough of them; of two places it speaks of sessions, and says so."""
    for places, rule in (
        (12, r"interval over \d+ projects, because \w+ of one project are alike"),
        (2, "from only 2 projects, so others may differ"),
    ):
        drawn = {f.id: f.caveat for f in findings(spread[places]) if f.interval and f.n >= 8}
        assert {"outcomes.accepted", "people.cut", "tools.mcp_sessions", "repetition.stale"} <= set(drawn)
        assert [name for name, caveat in drawn.items() if not re.search(rule, caveat)] == []


@pytest.mark.slow
def test_rows_and_marks_follow_the_rule_of_the_findings(spread: dict[int, dict[str, Outcome]]) -> None:
    """The same sessions in other places: the ends of rows and marks lie elsewhere, but for medians of tied values."""
    at_8, at_12 = ({**_row_ends(spread[places]), **_mark_ends(spread[places])} for places in (8, 12))
    assert {"errors.by_class", "outcomes.kinds", "people.positions", "autonomy.by_agent"} <= set(at_12)
    medians = {"autonomy.by_agent", "autonomy.agents"}
    assert [name for name, ends in at_12.items() if ends == at_8[name] and name not in medians] == []


def _row_ends(outcomes: dict[str, Outcome]) -> dict[str, list[Any]]:
    ends = {}
    for made in (made for one in outcomes.values() for made in one.tables):
        keys = [column.key for column in made.columns]
        if "low" in keys and any(row[keys.index("low")] is not None for row in made.rows):
            ends[made.id] = [row[keys.index("low") :][:2] for row in made.rows]
    return ends


def _mark_ends(outcomes: dict[str, Outcome]) -> dict[str, list[Any]]:
    made = {one.id: one.marks for study in outcomes.values() for one in study.charts}
    ends = {name: [(mark.get("low"), mark.get("high")) for mark in marks] for name, marks in made.items()}
    return {name: pairs for name, pairs in ends.items() if any(low is not None for low, _ in pairs)}


def test_what_claims_a_meaning_says_how_often_it_is_right(of_store: dict[str, Outcome]) -> None:
    for finding in findings(of_store):
        assert all(caption(path, finding.classes) in finding.validation for path in finding.signals) or (
            NEVER_VALIDATED in finding.validation or ": kappa " in finding.validation  # a labeller's
        ), finding.id
    for one in studies().values():
        named = {path for path in MEASURED if any(f"'{path}'" in sql for sql in one.queries.values())}
        assert set(of_store[one.name].validation) == named


def test_a_finding_names_the_sessions_that_make_most_of_it(of_store: dict[str, Outcome]) -> None:
    for finding in findings(of_store):
        assert len(finding.sessions) <= TOP_SESSIONS and finding.caveat in finding.note, finding.id
        if finding.id in ("errors.rate", "recovery.again", "usage.without_call", "oversight.refused_calls"):
            assert bool(finding.sessions) == bool(finding.value), finding.id


@pytest.mark.parametrize("most", [1, 3, 100])
def test_the_sessions_behind_are_the_first_of_all_in_order(most: int) -> None:
    chance = random.Random(most)  # noqa: S311  (made-up parts, no secret)
    for n in range(60):
        parts = [(f"s{chance.randrange(12)}", chance.randint(-1, most)) for _ in range(n)]
        sums: Counter[str] = Counter()
        for session_id, part in parts:
            sums[session_id] += part
        in_order = sorted((-part, session_id) for session_id, part in sums.items() if part > 0)
        assert top_sessions(parts) == tuple(session_id for _, session_id in in_order[:5])


def test_a_row_has_a_cell_a_column_and_an_end_of_an_interval_its_value_between(of_store: dict[str, Outcome]) -> None:
    for one in of_store.values():
        for made in one.tables:
            keys = [column.key for column in made.columns]
            assert made.n > 0 and made.of and made.rows, made.id
            assert len(keys) == len(set(keys)) and all(column.label for column in made.columns), made.id
            assert {column.kind for column in made.columns} <= set(get_args(Kind)), made.id
            assert all(len(row) == len(keys) for row in made.rows), made.id
            if "low" in keys:
                at = keys.index("low")
                for row in made.rows:
                    low, high = row[at], row[at + 1]
                    assert (low is None) == (high is None) and (low is None or low <= high), made.id


def test_a_chart_has_marks_and_words_and_each_mark_lies_in_its_interval(of_store: dict[str, Outcome]) -> None:
    for one in of_store.values():
        for made in one.charts:
            marks = made.marks
            assert made.n > 0 and made.of and made.says and marks, made.id
            assert {"url", "href"} & set(json.dumps(made.marks).split('"')) == set(), "a chart brings its data"
            for mark in marks:
                assert mark["tip"], made.id
                if mark.get("low") is not None and "value" in mark:
                    assert mark["low"] <= mark["value"] <= mark["high"], made.id


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
def test_text_and_json_say_the_same(name: str, stores: dict[str, Store]) -> None:
    """Of every finding the title, figure, unit, interval, n and caveat, of every table the head and the cells."""
    store = stores[name]
    made: Document = document(store)
    text = markdown.render(made, short_ids(store.manifest.sessions))
    plain = json.loads(data.render_data(made))
    assert plain["sections"]
    for section in plain["sections"]:
        for raw in section["findings"]:
            finding = msgspec.convert(raw, Finding)
            figure = f"{phrases.value_of(finding)} {phrases.unit_of(finding)}".rstrip()
            cells = (
                finding.title,
                figure,
                phrases.interval_of(finding),
                phrases.n_of(finding.n, finding.of).removeprefix("n = "),
            )
            row = [*map(markdown.escaped, cells), phrases.with_code(phrases.note_of(finding))]
            assert f"| {' | '.join(row)} |" in text, finding.id
            assert f"| `{finding.id}` | {markdown.code(finding.command)} |" in text
        for raw in section["tables"]:
            assert f"### {raw['title']}" in text and all(len(row) == len(raw["columns"]) for row in raw["rows"])
            heads = " | ".join(column["label"] for column in raw["columns"])
            assert f"| {heads} |" in text, raw["id"]


# -- the layer ---------------------------------------------------------------------------------------------------------


def test_columns_are_written_in_a_line() -> None:
    assert columns("agent | n sessions:count | rate of them, failed:share | ends:share") == (
        Column("agent", "agent"),
        Column("n", "sessions", "count"),
        Column("rate", "of them, failed", "share"),
        Column("low", "95% from", "share"),
        Column("high", "to", "share"),
    )


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_chart_of_too_few_marks_is_none(rows: int) -> None:
    marks = [{"tip": f"mark {n}"} for n in range(rows)]
    made = chart("c", marks, {}, n=rows, title="C", of="marks", fewest=2)
    assert (made is None) == (rows < 2)
    assert made is None or (isinstance(made, Chart) and made.says == "mark 0; mark 1")


@pytest.mark.parametrize(
    ("estimate", "value", "n", "has_interval"),
    [
        (count(3, 7, evidence=None), 3, 7, False),
        (count(None, 0, evidence=None), None, 0, False),
        (clustered_share([], {}), None, 0, False),
        (clustered_share([("a", 1, 0)], {}), None, 0, False),
        (clustered_share([("a", 1, 4)], {}), 0.25, 4, False),
        (clustered_share([("a", 1, 2), ("b", 1, 6)], {}), 0.25, 8, True),
        (clustered_ratio([(str(n), 6, 2) for n in range(6)], {}), 3, 12, True),
        (clustered_ratio([(str(n), 6, 2) for n in range(5)], {}), 3, 10, False),
        (clustered_median([], {}), None, 0, False),
        (clustered_median([("a", 1)], {}), 1, 1, False),
        (clustered_median([(str(n), n) for n in range(1, 7)], {}), 3.5, 6, True),
    ],
)
def test_an_estimate_of_nothing_has_no_value_and_of_few_no_interval(
    estimate: Any, value: float | None, n: int, has_interval: bool
) -> None:
    assert (estimate.value, estimate.n, estimate.interval is not None) == (value, n, has_interval)
    assert estimate.ends == (estimate.interval or (None, None))


def test_finding_mark_and_cells_of_an_estimate_are_one_figure() -> None:
    estimate = clustered_share([("a", 1, 3), ("b", 0, 1)], {})
    finding = estimate.finding("a.b", "B", "calls", "a caveat", sql="SELECT 1")
    mark = estimate.mark("b", estimate.words("calls"), at="1")
    assert (finding.value, finding.interval) == (mark["value"], (mark["low"], mark["high"])) == (0.25, estimate.ends)
    assert (finding.unit, finding.command, finding.note) == (
        "share of calls",
        'agentsignals query "SELECT 1"',
        "a caveat; this figure is from fewer than 6 sessions",
    )
    assert (mark["tip"], mark["at"]) == ("1 of 4 calls, 25.0%", "1")


def test_a_study_stamps_its_findings_and_shows_no_empty_table() -> None:
    bare = count(1, 1, evidence=None).finding("toy.one", "One", "things", unit="things")
    tables = [
        table("toy.t", [], n=0, title="T", header="a", of="things", evidence=[]),
        table("toy.u", [["x"]], n=1, title="U", header="a", of="things", evidence=[None]),
    ]
    toy = Study(
        name="toy", title="Toy", question="?", queries={}, function=lambda _: Outcome([bare], list(tables), [], [])
    )
    ran = toy.run(Inputs(rows={}, versions=Versions(1), context="eval"))
    assert ran.findings[0].command == "agentsignals report --context eval --study toy -o toy.json"
    assert ran.findings[0].versions == Versions(1)
    assert [made.id for made in ran.tables] == ["toy.u"]


def test_equal_counts_are_in_the_order_of_their_names() -> None:
    assert ranked({"b": 1, "c": 2, "a": 1}) == [("c", 2), ("a", 1), ("b", 1)]
    assert phrases.interval_of(count(1, 1, evidence=None).finding("a.b", "B", "c")) == MISSING


def test_each_study_begins_with_a_figure_of_its_own(stores: dict[str, Store]) -> None:
    made = {section.study: section for section in document(stores["demo"], list(studies()), "product").sections}
    known = {name: [f for f in section.findings if f.value is not None] for name, section in made.items()}
    first = Counter(next((f for f in of if f.headline), of[0]).title for of in known.values() if of)
    assert len(first) > 10 and first.most_common(1)[0][1] == 1, first.most_common(2)
    causes = [f.value for f in known["cost_causes"] if isinstance(f.value, float)]
    assert causes == sorted(causes, reverse=True) and causes[0] > causes[-1], "the largest cause is told"
    (shell,) = [f.value for f in known["tools"] if f.id == "tools.shell_share"]
    (classes,) = [table for table in made["tools"].tables if table.id == "tools.classes"]
    assert [row[2] for row in classes.rows if row[0] == "shell"] == [shell], "one share of shell commands"
