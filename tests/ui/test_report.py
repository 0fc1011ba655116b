"""The report as a file: its three forms, what hostile traces do to it, and what goes wrong."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from agentsignals.cli import main
from agentsignals.errors import StoreError, UsageError
from agentsignals.model import Artifact, Session
from agentsignals.questions.charts import bars, over_time
from agentsignals.questions.question import Chart, formatted
from agentsignals.questions.studies import studies
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.ui import check_report, report
from agentsignals.ui.document import code, document, escaped, limits_of, with_code
from agentsignals.ui.drawing import axis, svg, tick_text
from agentsignals.ui.page import short_ids
from agentsignals.words.text import visible
from tests.build import call, say, session, user
from tests.questions.stores import store_of, with_log
from tests.quick import each_row
from tests.signals.attempts import trial

EVIL = '</script></style></svg><script>window.pwned=1</script><img src=x onerror="window.pwned=2">\'"`|{{7*7}}&lt;'
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
VOID = {"meta", "img", "br", "input", "link", "hr", "base", "source", "embed"}


class Page(HTMLParser):
    """Every element with its attributes, and the text of a page as a reader sees it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.unclosed: list[str] = []
        self.feed(text)
        self.close()
        self.unclosed += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def said(self) -> str:
        return " ".join(
            " ".join(t for tag in self.texts for t in self.texts[tag] if tag not in ("style", "script")).split()
        )


@pytest.fixture(scope="module")
def store(demo_folder: Path) -> Store:
    return Store(demo_folder / "store")


@pytest.fixture(scope="module")
def page(store: Store, tmp_path_factory: pytest.TempPathFactory) -> str:
    return report.write(store, tmp_path_factory.mktemp("page") / "report.html").read_text("utf-8")


def hostile_session(name: str) -> Session:
    parts: list[Any] = []
    for n in range(12):
        parts += [
            say(EVIL, model=EVIL, input_tokens=1, output_tokens=1),
            call(f"mcp__{EVIL}", path=f"{EVIL}{n}", status="error" if n % 2 else "ok", query=EVIL),
            call("Edit", path=EVIL, old_string="a", new_string="b"),
            call("Bash", command=EVIL, status="error", result=EVIL),
        ]
    made = session(
        user(EVIL), *parts, user("no, " + EVIL), session_id=name, cwd=f"/home/{EVIL}", repo=EVIL, branch=EVIL
    )
    made.agent = made.title = EVIL
    for tool_call in made.tool_calls:
        tool_call.error_class = EVIL if tool_call.status == "error" else None
        tool_call.step = made.steps[0].step
    return made


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    attempts = [view.session for view in trial({"reward": 0.0}, {"reward": 1.0}, {})]
    people = [session(user("fix it"), call("Bash", command="ls"), session_id=f"p{n}") for n in range(2)]
    return store_of(tmp_path_factory.mktemp("mixed") / "s", *people, *attempts)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Store:
    later = hostile_session(f"{EVIL}2")
    later.started_at = (later.started_at or 0) + 5 * 86_400_000_000
    reasons = {EVIL: 3}
    artifact = Artifact(
        artifact_id="a1",
        source=EVIL,
        path=f"/{EVIL}",
        format=EVIL,
        sha256=EVIL,
        bytes=9,
        records=3,
        skipped=3,
        skipped_reasons=reasons,
        note=EVIL,
    )
    return store_of(tmp_path_factory.mktemp("hostile") / "s", hostile_session(EVIL), later, artifacts=(artifact,))


# -- forms -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_three_forms_carry_the_same_findings(store: Store, page: str, tmp_path: Path) -> None:
    data = json.loads(report.write(store, tmp_path / "r.json").read_text("utf-8"))
    markdown = report.write(store, tmp_path / "r.md").read_text("utf-8")
    read = Page(page)
    ids = {attributes["id"] for tag, attributes in read.elements if tag == "li" and attributes.get("id")}
    findings = [f for s in data["sections"] for f in s["findings"]]
    left = {s["study"]: s for s in data["left_out"]}
    assert [s["study"] for s in data["sections"]] == [name for name in studies() if name not in left]
    assert left["attempts"]["reason"] == "it is about attempts of eval runs, and the store holds none"
    limits = next(limit for limit in limits_of(document(store)) if "Eval runs" in limit)
    assert limits.startswith("Not in this report: ") and limits in read.said() and escaped(limits) in markdown
    ids -= {made["id"] for made in data["findings"]["answers"]}
    assert len(findings) > 50 and ids == {f["id"] for f in findings}
    said = read.said()
    for f in findings:
        figure = formatted(f["value"], f["kind"], f["at_least"])
        assert f"{f['title']} {figure}" in said, f["id"]
        assert f"| {escaped(f['title'])} | {escaped(figure)}" in markdown, f["id"]
        assert f["command"] in said and f"`{f['id']}` | {code(f['command'])}" in markdown
    for section in data["sections"]:
        for table in section["tables"]:
            assert table["title"] in said and f"### {table['title']}" in markdown
            assert all(set(row) == {c["key"] for c in table["columns"]} for row in table["rows"])
        for limit in section["limits"]:
            assert all(part.strip() in said for part in limit.split("`")) and with_code(limit) in markdown


@pytest.mark.slow
def test_the_data_form_says_of_each_number_what_is_needed_to_quote_it(store: Store, tmp_path: Path) -> None:
    data = json.loads(report.write(store, tmp_path / "r.json").read_text("utf-8"))
    assert {"form", "agentsignals", "made_at", "sessions", "schema", "prices", "sections"} <= set(data)
    wanted = {"id", "title", "value", "unit", "n", "of", "interval", "versions", "command", "note", "kind"}
    for section in data["sections"]:
        for finding in section["findings"]:
            assert wanted <= set(finding)
            assert isinstance(finding["n"], int) and finding["command"].startswith("agentsignals ")
            assert set(finding["versions"]) == {"schema", "signals", "prices"}
        for chart in section["charts"]:
            assert {"name", "kind", "title"} <= set(chart["form"]) and chart["marks"]
    rate = next(f for s in data["sections"] for f in s["findings"] if f["id"] == "errors.rate")
    assert rate["n"] == 656 and rate["value"] == pytest.approx(61 / 656)
    assert list(rate["versions"]["signals"]) == ["user.tool_error_rate"]


@pytest.mark.slow
def test_two_reports_of_one_store_differ_in_nothing_but_their_time(store: Store, page: str, tmp_path: Path) -> None:
    again = report.write(store, tmp_path / "again.html").read_text("utf-8")
    timeless = [re.sub(r"Made [\d: -]+ UTC", "", text) for text in (page, again)]
    assert timeless[0] == timeless[1]


def test_a_whole_report_is_kept_until_the_store_changes(tmp_path: Path) -> None:
    def written(store: Store, form: str, **choices: Any) -> str:
        text = report.write(store, tmp_path / f"report.{form}", **choices).read_text("utf-8")
        return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ| UTC)", "", text)

    store = with_log(tmp_path, 1)
    forms = ("json", "md", "html")
    computed = {}
    for form in forms:
        for former in store.folder.glob("report.*"):
            former.unlink()
        computed[form] = written(store, form)
    (kept,) = store.folder.glob("report.*")
    assert {form: written(Store(store.folder), form) for form in forms} == computed, "dates and lower bounds too"
    whole = kept.read_bytes()
    kept.write_bytes(whole.replace(b"claude-opus-4-6", b"as-it-was-kept-"))
    assert "as-it-was-kept-" in written(Store(store.folder), "json")
    assert "as-it-was-kept-" not in written(Store(store.folder), "json", studies=["cost"]), "another report is computed"
    kept.write_bytes(whole[:-9])
    assert written(Store(store.folder), "json") == computed["json"], "one that was cut short is computed anew"
    assert written(with_log(tmp_path, 2), "json") != computed["json"]
    assert len(list(store.folder.glob("report.*"))) == 1, "the former report is removed"


def test_only_the_studies_named_in_the_order_named(store: Store, tmp_path: Path) -> None:
    data = json.loads(report.write(store, tmp_path / "r.json", ["outcomes", "errors", "outcomes"]).read_text("utf-8"))
    assert [s["study"] for s in data["sections"]] == ["outcomes", "errors"]


# -- the page ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_is_whole_and_asks_nothing_of_the_network(page: str) -> None:
    read = Page(page)
    assert read.unclosed == []
    assert not read.tags() & {
        "link", "img", "iframe", "object", "embed", "base", "form", "image", "use", "foreignobject",
    }  # fmt: skip
    for tag, attributes in read.elements:
        assert "style" not in attributes, f"the policy forbids inline styles: {tag}"
        assert not any(name.startswith("on") for name in attributes), tag
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    assert not re.search(r"url\(|@import", re.sub(r"<script>.*?</script>", "", page, flags=re.S))


def test_the_policy_admits_our_own_script_and_style_and_no_other(page: str) -> None:
    policy = (
        next(a["content"] for _, a in Page(page).elements if a.get("http-equiv") == "Content-Security-Policy") or ""
    )
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert "img-src blob:;" in policy, "a chart on its way to PNG, and no other image"
    for tag, directive, count in (("style", "style-src", 1), ("script", "script-src", 1)):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        told_hashes = next(part for part in policy.split("; ") if part.startswith(directive)).split()[1:]
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside]
        assert told_hashes == [f"'sha256-{digest}'" for digest in digests] and len(digests) == count
    kinds = [attributes.get("type") for tag, attributes in Page(page).elements if tag == "script"]
    assert kinds == [None]


@pytest.mark.slow
def test_charts_take_their_colours_from_the_page_and_share_no_ids(store: Store) -> None:
    charts = [chart for s in document(store).sections for chart in s.charts]
    assert len(charts) >= 15
    for chart in charts:
        drawn = svg(chart)
        assert not re.search(r'(fill|stroke)="(#|rgb|black|white)', drawn), chart.id
        assert not re.search(r'\sid="', drawn), f"{chart.id}: ids of two charts would clash on one page"
        assert "NaN" not in drawn and "undefined" not in drawn and ">null<" not in drawn, chart.id
        assert 'aria-label="' in drawn


def html_text(text: str) -> str:
    return str(escape(visible(text)))


@pytest.mark.slow
def test_every_chart_draws_its_rows(store: Store) -> None:
    for chart in (chart for s in document(store).sections for chart in s.charts):
        drawn = svg(chart)
        for row in chart.marks:
            assert f'aria-label="{html_text(row["tip"])}"' in drawn, (chart.id, row)


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (0.7, "usd", "$0.70"),
        (0.02, "usd", "$0.02"),
        (0.0005, "usd", "$0.0005"),
        (1500, "usd", "$1,500"),
        (0.25, "share", "25%"),
        (1500, "count", "1.5 k"),
        (0.5, "number", "0.5"),
        (2e6, "tokens", "2 M"),
    ],
)
def test_a_value_of_an_axis_is_in_a_persons_words(value: float, kind: str, words: str) -> None:
    assert tick_text(value, kind) == words


@each_row("highest", [m * 10.0**e for e in range(-4, 7) for m in (1.0, 1.3, 2.4, 4.1, 5.0, 9.9)])
def test_an_axis_in_dollars_reads_as_it_is_drawn(highest: float) -> None:
    ticks = axis(highest)
    assert [float(tick_text(value, "usd").replace("$", "").replace(",", "")) for value in ticks] == ticks


def test_the_axis_of_seventy_cents_says_cents() -> None:
    day = {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
        "low": 0,
        "high": 0.7,
        "name": "pi",
        "tip": "t",
    }
    span = "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"
    form = over_time("stacked_columns", "USD per day", "usd", ["pi"], span)
    drawn = svg(Chart(id="x", title="x", says="x", form=form, marks=[day], n=1, of="x"))
    assert ">$0.60<" in drawn and "m<" not in drawn.replace("transform<", "")


def test_text_of_a_trace_is_text_in_a_chart() -> None:
    marks = [{"name": EVIL, "value": 1, "tip": f"{EVIL} \u2028"}]
    drawn = svg(
        Chart(id="x", title="x", says=EVIL, form=bars(EVIL), marks=marks, n=1, of="x"),
        lambda name: f'/behind?key="{name}"',
    )
    assert "<script" not in drawn and "<img" not in drawn and 'key="' not in drawn and "\u2028" not in drawn


def test_the_page_shows_skips_limits_and_the_way_to_every_number(page: str) -> None:
    read = Page(page)
    for heading in ("Records read and records skipped", "Limits", "SQL and versions"):
        assert heading in read.said()
    shown = {attributes["id"] for tag, attributes in read.elements if tag == "section"}
    assert {"sessions", "reading", "limits"} <= shown and "attempts" not in shown
    linked = {str(a.get("href")) for tag, a in read.elements if tag == "a"}
    assert {f"#{name}" for name in shown - {"findings"}} <= linked
    assert linked <= {f"#{a['id']}" for _, a in read.elements if "id" in a}, "every link leads somewhere on the page"


# -- what it begins with -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def circling(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of one agent, in whose sessions a failing call with a hostile name goes round and round."""
    parts = [call("Bash", command=EVIL, status="error", result="no")] * 5 + [call("Edit", path=f"{EVIL}.py")]
    sessions = [session(user("go"), *parts, session_id=f"c{n}{EVIL}", repo=EVIL) for n in range(9)]
    return store_of(tmp_path_factory.mktemp("circling") / "s", *sessions)


def test_the_report_begins_with_what_stands_out(
    circling: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.ui.document.every_study", lambda: ["sessions", "worth_opening"])
    page = report.write(circling, tmp_path / "r.html").read_text("utf-8").partition("<script")[0]
    data = json.loads(report.write(circling, tmp_path / "r.json").read_text("utf-8"))
    answers = data["findings"]["answers"]
    assert "loops.failing" in {made["id"] for made in answers} and len(answers) > 1 and "<img" not in page
    ids = re.findall(r'<(?:li|section) id="([^"]+)"', page)
    assert ids[: len(answers) + 2] == ["findings", "all-findings", *(made["id"] for made in answers)]
    read = html.unescape(re.sub("</?code>", "`", page))
    for made in answers:
        assert all(made[part] in read for part in ("sentence", "do", "again"))
    named = {n: s["session_id"] for n, s in enumerate(data["named"], 1)}
    linked = re.findall(r'href="#session-(\d+)"', page)
    assert {named[int(n)] for n in linked} >= {name for made in answers for name in made["sessions"]}
    assert all(f'id="session-{n}"' in page for n in named)
    assert "## Findings" in report.write(circling, tmp_path / "r.md").read_text("utf-8")


def test_of_one_agent_nothing_is_told_by_agent(circling: Store, store: Store) -> None:
    def by_agent(of: Store) -> set[str]:
        names = ["sessions", "messages", "turn_time", "errors"]
        return {made.id for s in document(of, names).sections for made in (*s.tables, *s.charts) if "agent" in made.id}

    assert by_agent(circling) == set()
    assert by_agent(store) >= {"sessions.by_agent", "errors.rate_by_agent"}


def test_a_study_takes_a_screen_and_the_rest_of_it_is_folded(page: str) -> None:
    (section,) = re.findall(r'<section id="sessions">.*?</section>', page, re.S)
    open_part, _, folded = section.partition('<details class="more">')
    assert open_part.count('<span class="label">') == 6 and folded.count('<span class="label">') > 2
    assert "<table" not in open_part and "<table" in folded and "More: " in folded
    (section,) = re.findall(r'<section id="worth_opening">.*?</section>', page, re.S)
    assert "<table" in section.partition('<details class="more">')[0], "where there is no chart its first table is open"


def test_a_study_that_has_nothing_to_say_is_left_out_with_its_reason(page: str) -> None:
    assert re.search(r"Not in this report: [^(]+\(No repository was scanned yet", html.unescape(page))


def test_the_appendix_is_closed_and_each_caveat_is_written_once(page: str) -> None:
    head, _, appendix = page.partition('<details class="appendix">')
    assert (
        '<ul class="cards">' in head
        and head.count("<figure data-chart") == 2
        and "<section" not in head.split("</section>")[1]
    )
    assert 'id="limits"' in appendix and 'class="sentence"' in appendix
    words = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>|<[^>]+>", "\n", page)
    caveats = [re.sub(r"\d[\d.,]*", "#", line.strip()) for line in re.split(r"\n|[;:]\s|\.\s", words)]
    long = [line for line in caveats if len(line.split()) >= 6 and re.search("interval|heuristic|precision", line)]
    assert long and max(Counter(long).values()) <= 6


def test_two_charts_stand_beside_the_findings_and_nowhere_else(page: str) -> None:
    above, _, below = page.partition('<nav aria-label="Sections">')
    first = re.findall(r'<figure data-chart="([^"]+)">', above)
    assert len(first) == 2 and first[0] == "cost_causes.bill"
    rest = re.findall(r'<figure data-chart="([^"]+)">', below)
    assert rest and not set(first) & set(rest)
    assert page.count('<div class="chart"><svg') == len(first) + len(rest), "drawn where no script runs"
    assert len(page.encode()) < 1_400_000


def test_what_projects_and_models_cost_adds_up_to_the_whole(page: str) -> None:
    for table in re.findall(r'<table class="where">.*?</table>', page, re.DOTALL):
        shares = [float(value) for value in re.findall(r'<meter [^>]*value="([^"]+)"', table)]
        assert len(shares) > 1 and sum(shares) == pytest.approx(1, abs=0.001)
    assert re.search(r"Cost by project.*?>other<.*?Cost by model", page, re.DOTALL), "of sessions without a project"


@pytest.mark.slow
def test_an_empty_store_gives_a_report_that_says_so(tmp_path: Path) -> None:
    empty = Store(tmp_path / "s", create=True)
    said = Page(report.write(empty, tmp_path / "r.html").read_text("utf-8")).said()
    assert "No session yet" in said and "agentsignals analyze SOURCE" in said
    markdown = report.write(empty, tmp_path / "r.md").read_text("utf-8")
    assert "# No session yet" in markdown and "agentsignals analyze SOURCE" in markdown
    data = json.loads(report.write(empty, tmp_path / "r.json").read_text("utf-8"))
    assert data["sessions"] == 0 and len(data["sections"]) == len(studies())


# -- contexts ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_people_and_eval_runs_are_never_counted_together(mixed: Store, tmp_path: Path) -> None:
    data_of = {}
    for context in (None, "product", "eval"):
        made = report.write(mixed, tmp_path / "r.json", context=context)
        data_of[context] = json.loads(made.read_text("utf-8"))
    counted = {c: {f["id"]: f["value"] for s in d["sections"] for f in s["findings"]} for c, d in data_of.items()}
    assert data_of[None]["contexts"] == {"product": 2, "eval": 3}
    assert counted[None]["sessions.count"] == counted["product"]["sessions.count"] == 2
    assert counted["eval"]["sessions.count"] == 3
    assert counted[None]["attempts.count"] == 3 and "attempts.count" not in counted["product"]
    assert "people.corrections" not in counted["eval"] and "outcomes.accepted" not in counted["eval"]
    left = {one["study"]: one["reason"] for one in data_of["eval"]["left_out"]}
    assert left["people"] == "it is about people's sessions"
    text = report.write(mixed, tmp_path / "r.md").read_text("utf-8")
    assert text.startswith("# 2 agent sessions, and 3 attempts of eval runs\n\nMade ")
    assert "Figures are of people's sessions, but for Eval runs" in text


@pytest.mark.slow
def test_every_table_of_a_context_holds_its_sessions_alone(mixed: Store) -> None:
    for table in ("sessions", "turns", "events", "signals", "session_signals", "attempts"):
        asked = f"SELECT DISTINCT session_id FROM {table} WHERE session_id IS NOT NULL"
        people, attempts = ({row[0] for row in rows(mixed, asked, context)[1]} for context in ("product", "eval"))
        everybody = {row[0] for row in rows(mixed, asked)[1]}
        assert people <= {"p0", "p1"} and attempts.isdisjoint({"p0", "p1"}), table
        assert people | attempts == everybody and everybody, table
    of_none = "SELECT count(*) FROM signals WHERE session_id IS NULL"
    assert rows(mixed, of_none, "product")[1] == rows(mixed, of_none)[1] != [(0,)], "of all sessions together"


@pytest.mark.slow
def test_commands_name_the_context_where_there_are_two(mixed: Store, tmp_path: Path, capsys: Any) -> None:
    made = json.loads(report.write(mixed, tmp_path / "r.json").read_text("utf-8"))
    findings = {f["id"]: f for s in made["sections"] for f in s["findings"]}
    for name, context in (("sessions.count", "product"), ("attempts.count", "eval")):
        words = shlex.split(findings[name]["command"])
        assert words[:4] == ["agentsignals", "query", "--context", context]
        assert main([*words[1:], "--json", "--store", str(mixed.folder)]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert list(row.values()) == [findings[name]["value"]]
    assert "--context" not in findings["reading.files"]["command"], "files are of both"


# -- hostile traces ----------------------------------------------------------------------------------------------------


def test_text_of_a_trace_stays_text(hostile: Store, page: str, tmp_path: Path) -> None:
    evil = report.write(hostile, tmp_path / "r.html").read_text("utf-8")
    read = Page(evil)
    assert read.unclosed == []
    bare = re.sub(r"<script>.*?</script>", "", evil, flags=re.S)
    assert "<script" not in bare and "<img" not in bare and "{{7*7}}" in bare
    assert read.tags() <= Page(page).tags()
    allowed = {name for _, attributes in Page(page).elements for name in attributes}
    assert {name for _, attributes in read.elements for name in attributes} <= allowed
    said = " ".join(" ".join(texts) for texts in read.texts.values())
    assert said.count(EVIL) >= 10, "shown as it was written: titles, agents, tools, files, models, errors, reasons"


def test_a_session_id_can_be_copied_whole_even_a_hostile_one(hostile: Store, tmp_path: Path) -> None:
    read = Page(report.write(hostile, tmp_path / "r.html", ["worth_opening"]).read_text("utf-8"))
    titles = {a.get("title") for tag, a in read.elements if tag == "code" and a.get("title")}
    assert titles == {EVIL, f"{EVIL}2"}
    assert all(hostile.resolve(title or "") for title in titles)


@pytest.mark.slow
def test_markdown_of_a_trace_is_no_markup(hostile: Store, tmp_path: Path) -> None:
    lines = report.write(hostile, tmp_path / "r.md").read_text("utf-8").splitlines()
    for line in lines:
        bare = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line)  # code spans show what is in them
        assert not re.search(r"(?<!\\)<(?!-)", bare), line
    tables = [line for line in lines if line.startswith("|")]
    width = 0
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            width = width if before.startswith("|") else cells
            assert cells == width, line
    assert len(tables) > 50


@pytest.mark.parametrize("text", ["", " ", "`", "``a`", "a|b", "a\nb", "\x00", "ends`", "| --- |\n# h"])
def test_any_name_fits_a_code_span_in_a_cell(text: str) -> None:
    span = code(text)
    assert "\n" not in span and "\x00" not in span and span
    assert not re.search(r"(?<!\\)\|", span)
    fence = re.match(r"`*", span)
    assert fence is not None
    inside = span[len(fence[0]) : len(span) - len(fence[0])]
    assert fence[0] not in re.findall(r"`+", inside)


# -- names, errors, weight ---------------------------------------------------------------------------------------------


def test_ids_are_cut_to_what_no_other_id_begins_with(store: Store) -> None:
    ids = ["019f0000-aaaa", "019f0000-aabb", "019f0000", "6c", "6c1d2e3f-0000"]
    short = short_ids(ids)
    assert short["6c1d2e3f-0000"] == "6c1d2e3f"
    assert short["019f0000-aaaa"] == "019f0000-aaa" and short["019f0000-aabb"] == "019f0000-aab"
    assert short["019f0000"] == "019f0000" and short["6c"] == "6c"
    for full, beginning in short_ids(store.manifest.sessions).items():
        assert store.resolve(beginning) == full


@pytest.mark.parametrize("name", ["report.pdf", "report", "report.html.gz", ".html"])
def test_another_ending_names_what_is_allowed(store: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        report.write(store, tmp_path / name)
    assert ".html, .md, .json" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_study_is_refused_before_anything_is_read(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'weather'") as caught:
        report.write(store, tmp_path / "r.html", ["errors", "weather"])
    assert "errors" in caught.value.hint
    with pytest.raises(UsageError):
        check_report(tmp_path / "r.html", ["weather"])


def test_what_can_not_be_written_is_a_clear_error_and_leaves_the_old_report(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Cannot write the report"):
        report.write(store, tmp_path / "nowhere" / "r.json", ["outcomes"])
    (tmp_path / "r.json").mkdir()
    with pytest.raises(StoreError, match="Cannot write the report"):
        report.write(store, tmp_path / "r.json", ["outcomes"])
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"], "no draft is left behind"


def test_an_old_report_is_replaced_whole(store: Store, tmp_path: Path) -> None:
    (tmp_path / "r.MD").write_text("old")
    assert (
        report.write(store, tmp_path / "r.MD", ["outcomes"])
        .read_text("utf-8")
        .startswith("# 36 agent sessions\n\nRead from the logs of ")
    )
    assert [p.name for p in tmp_path.iterdir()] == ["r.MD"]


@pytest.mark.slow
def test_asking_for_a_report_loads_what_its_form_needs(store: Store, tmp_path: Path) -> None:
    code_ = (
        "import sys; from pathlib import Path; from agentsignals.ui import check_report; check_report(Path('r.md'));"
        "print([m for m in ('duckdb', 'jinja2', 'polars') if m in sys.modules]);"
        "from agentsignals.ui import report; from agentsignals.store import Store;"
        f"report.write(Store({str(store.folder)!r}), Path({str(tmp_path / 'r.md')!r}));"
        "print([m for m in ('jinja2', 'polars') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code_], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["[]", "[]"]
