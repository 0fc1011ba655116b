"""Output logged in mid-stream is a lower bound, and every face that shows it or its cost says so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.export import atif
from agentsignals.ingest import pipeline
from agentsignals.ingest.measure import explain
from agentsignals.model import Attempt
from agentsignals.questions.question import AtLeast, formatted
from agentsignals.signals.catalog import catalogue
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.ui import document as phrases
from agentsignals.ui import report
from agentsignals.ui.page import Query
from agentsignals.ui.rendering import answer_of, html
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.usage import FINAL_SHARE, is_lower_bound, visible_output_tokens
from tests.build import call, say, session, think, user
from tests.claude import Log
from tests.questions.stores import outcome, store_of

LONG = "a long visible answer, word for word. " * 40
BOUND, KNOWN = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"


def log(session_id: str, reason: str | None, day: int) -> bytes:
    one = Log(session=session_id, name=session_id[:8])
    one.wait(day * 86_400)
    one.user("please explain it")
    usage = {"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 100}
    message = {"model": "claude-opus-4-8", "id": f"msg_{session_id}", "content": [{"type": "text", "text": LONG}]}
    one.record("assistant", message={**message, "usage": usage, "stop_reason": reason})
    return one.data()


@pytest.fixture(name="store", scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A session whose output was logged in mid-stream, and two whose output is known, at two times."""
    root = tmp_path_factory.mktemp("bounds")
    (root / "in").mkdir()
    (root / "in" / "a.jsonl").write_bytes(log(BOUND, None, 1))
    (root / "in" / "b.jsonl").write_bytes(log(KNOWN, "end_turn", 1))
    (root / "in" / "c.jsonl").write_bytes(log(KNOWN[::-1], "end_turn", 5))
    pipeline.analyze([str(root / "in")], root / "store", jobs=1)
    return Store(root / "store")


def part(n_final: int, n: int) -> Any:
    steps = [say("x" * 100, output_tokens=5, stop_reason="end_turn" if k < n_final else None) for k in range(n)]
    return session(user("go"), *steps)


@pytest.mark.parametrize(("n_final", "is_bound"), [(0, True), (4, True), (5, False), (10, False)])
def test_it_is_a_bound_where_fewer_than_half_of_the_calls_have_a_stop_reason(n_final: int, is_bound: bool) -> None:
    assert FINAL_SHARE == 0.5
    assert is_lower_bound(part(n_final, 10)) is is_bound
    assert (visible_output_tokens(part(n_final, 10)) is not None) is is_bound


@pytest.mark.parametrize(
    ("main", "side", "is_bound"),
    [("end_turn", None, True), (None, "end_turn", True), ("end_turn", "end_turn", False)],
)
def test_a_long_thread_that_is_whole_does_not_hide_another(main: str | None, side: str | None, is_bound: bool) -> None:
    def answer(thread: str, reason: str | None) -> Any:
        return say("x", None, thread, output_tokens=5, stop_reason=reason)

    n_main, n_side = (9, 3) if main else (3, 9)
    made = session(user("go"), *[answer("main", main)] * n_main, *[answer("agent-1", side)] * n_side)
    assert is_lower_bound(made) is is_bound


def test_of_agents_that_log_usage_at_the_end_it_is_none() -> None:
    made = session(user("go"), say("hi", output_tokens=5), format="codex", agent="codex")
    assert visible_output_tokens(made) is None


def test_the_estimate_is_of_all_that_was_written_and_never_below_what_was_logged() -> None:
    made = session(user("go" * 99), say("x" * 40, output_tokens=1), think("y" * 40), call("Bash", command="z" * 26))
    chars = 80 + len(made.tool_calls[0].arguments)
    assert visible_output_tokens(made) == -(-chars // 4)
    assert visible_output_tokens(session(user("go"), say("x", output_tokens=70))) == 70


def test_a_figure_that_is_a_bound_is_written_as_one() -> None:
    assert formatted(192, "tokens", at_least=True) == formatted(AtLeast(192), "tokens") == ">= 192"
    assert formatted(None, "usd", at_least=True) == "–"


def test_analyze_and_sessions_mark_it(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(store.folder.parent / "in")
    assert main(["analyze", folder, "--store", str(store.folder), "--quiet"]) == 0
    told = capsys.readouterr().out
    assert ">= 12 out" in told and ">= $" in told and "1 session with output logged in mid-stream" in told
    assert main(["analyze", folder, "--store", str(store.folder), "--quiet", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["lower_bounds"], summary["visible_output_tokens"]) == (1, len(LONG) // 4)
    assert main(["sessions", "--store", str(store.folder)]) == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if ">= 4" in line]
    assert len(marked) == 1 and BOUND.startswith(marked[0].split()[0])


def test_the_report_marks_headlines_tables_and_draws_no_bound_over_time(store: Store) -> None:
    made = [outcome(store, name) for name in ("cost", "agents", "models", "worth_opening")]
    by_id = {f.id: f for one in made for f in one.findings}
    for name in ("cost.total", "cost.median", "cost.output_tokens", "agents.output_input"):
        assert by_id[name].at_least and "lower bound: output tokens are under-reported in 1" in by_id[name].note, name
        assert phrases.value_of(by_id[name]).startswith(">= ")
    assert not by_id["cost.input_tokens"].at_least and not by_id["cost.billed"].at_least
    tables = {t.id: t for one in made for t in one.tables}
    for name, column in (("cost.by_agent", "output"), ("cost.by_agent", "cost"), ("models.used", "output"),
                         ("agents.metrics", "output"), ("worth.costly", "cost")):  # fmt: skip
        at = [c.key for c in tables[name].columns].index(column)
        assert any(isinstance(row[at], AtLeast) for row in tables[name].rows), (name, column)
    drawn = {c.id: c for one in made for c in one.charts}
    for name in ("cost.over_time", "cost.output.over_time"):
        assert "1 with output as a lower bound" in drawn[name].note and drawn[name].n == 2


def test_pages_mark_it(store: Store) -> None:
    snapshot = Snapshot(store)
    for page in (answer_of(snapshot, "/", Query()), answer_of(snapshot, "/sessions", Query())):
        assert "&gt;= " in html(page, "/")
    assert "&gt;= 4 out" in html(answer_of(snapshot, f"/session/{BOUND}", Query()), "/session")
    assert "&gt;= " not in html(answer_of(snapshot, f"/session/{KNOWN}", Query()), "/session")


def test_explain_says_at_least_with_the_error_of_the_estimate(store: Store) -> None:
    for signal in ("tokens.output_tokens_total", "tokens.cost_usd"):
        explained = explain(store, BOUND, signal)
        assert explained.detail["at_least"] is True and (
            "lower bound" in explained.rule or "at least" in explained.rule
        )
    assert "3.2 times" in explain(store, BOUND, "tokens.output_tokens_total").rule
    assert "at_least" not in explain(store, KNOWN, "tokens.cost_usd").detail


def test_the_index_made_again_knows_it(store: Store) -> None:
    (store.folder / "index.sqlite").unlink()
    again = Store(store.folder).manifest.sessions
    assert (again[BOUND].visible_output_tokens, again[KNOWN].visible_output_tokens) == (len(LONG) // 4, None)
    assert rows(store, "SELECT count(visible_output_tokens) FROM sessions")[1] == [(1,)]


def test_an_exported_trajectory_says_it(store: Store) -> None:
    told = [json.loads(atif.text(store.session(s)))["final_metrics"].get("extra") for s in (BOUND, KNOWN)]
    assert told == [{"output_and_cost_at_least": True}, None]


@pytest.fixture(scope="module")
def of_kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Store]:
    """Sessions of one place, and solved attempts: all with output logged in mid-stream, or none."""
    made = {}
    for is_bound in (True, False):
        end = None if is_bound else "end_turn"
        usage = {"output_tokens": 5, "input_tokens": 90, "cache_read_tokens": 0, "cache_write_tokens": 0}
        sessions = [
            session(
                user("go"),
                *(say("x" * (100 + n), stop_reason=end, **usage) for _ in range(3)),
                session_id=f"{context}{n}",
                cwd="/work/shop",
                context=context,
                attempt=Attempt(root="/run", task_id=f"t{n}", reward=1.0, kinds=["session_jsonl"])
                if context == "eval"
                else None,
            )
            for context in ("product", "eval")
            for n in range(6)
        ]
        made[is_bound] = store_of(tmp_path_factory.mktemp("kinds") / "s", *sessions)
    return made


@pytest.mark.parametrize("is_bound", [True, False])
def test_what_a_solved_attempt_took_says_it(of_kinds: dict[bool, Store], is_bound: bool) -> None:
    by_id = {f.id: f for f in outcome(of_kinds[is_bound], "attempts").findings}
    assert by_id["attempts.tokens_per_solved"].value == 285
    for what in ("tokens", "cost"):
        one = by_id[f"attempts.{what}_per_solved"]
        assert (one.at_least, "under-report output" in one.note) == (is_bound, is_bound)
    assert not by_id["attempts.time_per_solved"].at_least


@pytest.mark.parametrize("is_bound", [True, False])
def test_cost_and_tokens_of_a_data_set_say_it(of_kinds: dict[bool, Store], is_bound: bool) -> None:
    table = next(t for t in outcome(of_kinds[is_bound], "data_sets").tables if t.id == "data_sets.places")
    (row,) = (dict(zip([c.key for c in table.columns], row, strict=True)) for row in table.rows)
    low = {name for name, value in row.items() if isinstance(value, AtLeast)}
    assert low == ({"cost_per_session", "output_input_token_ratio"} if is_bound else set())


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_baseline_says_it_and_a_gap_of_a_bound_is_none(
    of_kinds: dict[bool, Store], is_bound: bool, tmp_path: Path
) -> None:
    file = tmp_path / "base.json"
    exported = ["export", "--to", "baseline", "-o", str(file), "--store", str(of_kinds[is_bound].folder), "--quiet"]
    assert main(exported) == 0
    bounds = {"corpus.session_cost_usd", "corpus.output_input_token_ratio"} if is_bound else set()
    always = {"chat.pushback_rate"}  # rules see few objections
    assert {s["signal"] for s in json.loads(file.read_bytes())["measures"] if s["at_least"]} == bounds | always
    written = report.write(of_kinds[False], tmp_path / "r.json", ["sessions"], baseline=file)
    section = json.loads(written.read_text("utf-8"))["sections"][0]
    (row,) = (r for r in section["tables"][0]["rows"] if r["measure"] == "Cost per session")
    assert row["baseline_mean"].startswith(">= ") is row["warning"].endswith("baseline") is is_bound
    assert row["gap"] is None and not row["yours_mean"].startswith(">= ")


# -- every face ------------------------------------------------------------------------------------------------------

OUTPUT, USD = 48_611, 1.217325
_FIGURE = re.compile(r"48,?611|48\.6 ?k|(?<![\d.])1\.2[12]\d*")
"""Either figure in any writing: 48611, 48,611, 48.6 k, 1.217325, 1.22."""
_MARKED = re.compile(r"(?:>=|&gt;=|at least) ?\$?$", re.IGNORECASE)
_FIELDS = ("at_least", "visible_output_tokens", "lower_bounds", "output_and_cost_at_least")


def unmarked(text: str) -> list[str]:
    """Where a text shows a figure of output in mid-stream as if it were known."""
    flat = " ".join(re.sub(r"(?s)<script.*?</script>|</?[a-zA-Z!][^>]{0,300}>", "", text).replace("\\", "").split())
    found = (m for m in _FIGURE.finditer(flat) if not _MARKED.search(flat, max(0, m.start() - 10), m.start()))
    return [flat[max(0, m.start() - 60) : m.end() + 10] for m in found]


def bare(document: Any, of: tuple[Any, ...] = (), at: str = "") -> list[str]:
    """Where a document has such a figure, with no field of the object, nor of what holds it, that marks it."""
    if isinstance(document, dict):
        return [p for key, value in document.items() for p in bare(value, (*of, document), f"{at}.{key}")]
    if isinstance(document, list):
        return [p for n, value in enumerate(document) for p in bare(value, of, f"{at}[{n}]")]
    if isinstance(document, str) and not _FIGURE.fullmatch(document):
        return [f"{at}: {where}" for where in unmarked(document)]
    is_figure = isinstance(document, str) or document in (OUTPUT, USD)
    marks = (m for o in of[-3:] for m in (o, o.get("detail"), o.get("extra"), o.get("metadata")) if isinstance(m, dict))
    return [at] if is_figure and not any(m.get(field) for m in marks for field in _FIELDS) else []


@pytest.fixture(name="single", scope="module")
def only_a_bound(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One session whose output tokens and cost are numbers that nothing else is."""
    root = tmp_path_factory.mktemp("single")
    (root / "in").mkdir()
    one = Log(session=BOUND, name="a")
    one.user("please explain it")
    usage = {"input_tokens": 10, "output_tokens": OUTPUT, "cache_read_input_tokens": 4_000}
    message = {"model": "claude-opus-4-8", "id": "msg_a", "content": [{"type": "text", "text": LONG * 140}]}
    one.record("assistant", message={**message, "usage": usage, "stop_reason": None})
    (root / "in" / "a.jsonl").write_bytes(one.data())
    pipeline.analyze([str(root / "in")], root / "store", jobs=1)
    return Store(root / "store")


@pytest.mark.parametrize(
    "verb",
    [
        *("analyze", "sessions", "show", "findings"),
        *(f"explain {path}" for path in ("tokens.output_tokens_total", "tokens.cost_usd", "corpus.session_cost_usd",
          "corpus.cost_per_session", "sessions.output_tokens", "sessions.main_cost_usd", "tokens.cache_read_ratio")),
    ],
)  # fmt: skip
def test_no_verb_shows_a_bound_as_known(single: Store, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *path = verb.split()
    asked = {"analyze": [str(single.folder.parent / "in")], "show": [BOUND], "explain": [BOUND, *path]}.get(name, [])
    assert main([name, *asked, "--store", str(single.folder), "--quiet"]) == 0
    text = capsys.readouterr().out
    assert unmarked(re.sub(r"\{.*\}", "", text)) == [] and (name in ("show", "findings") or ">= " in text)
    assert main([name, *asked, "--store", str(single.folder), "--quiet", "--json"]) == 0
    if name != "show":  # the trace as it was read
        assert bare(json.loads(capsys.readouterr().out)) == []


def test_a_frame_of_messages_has_a_field_for_it(store: Store) -> None:
    pytest.importorskip("polars")
    said = {row["session_id"]: row["cost_at_least"] for row in store.user_messages().to_dicts()}
    assert said == {BOUND: True, KNOWN: False, KNOWN[::-1]: False}


@pytest.mark.parametrize("ending", ["json", *(pytest.param(e, marks=pytest.mark.slow) for e in ("md", "html"))])
def test_no_report_shows_a_bound_as_known(single: Store, tmp_path: Path, ending: str) -> None:
    text = report.write(single, tmp_path / f"r.{ending}").read_text("utf-8")
    assert (bare(json.loads(text)) if ending == "json" else unmarked(text)) == []


@pytest.mark.slow
def test_no_page_shows_a_bound_as_known(single: Store) -> None:
    snapshot, grown = Snapshot(single), [s.path for s in catalogue().values() if s.grows_with_output]
    paths = ["/", "/sessions", "/signals", f"/session/{BOUND}", *(f"/signal/{path}" for path in grown)]
    paths += [f"/session/{BOUND}/explain/{path}" for path in (*grown, "sessions.output_tokens")]
    pages = [answer_of(snapshot, path, Query()) for path in paths]
    shown = [re.sub(r'<div class="said code">.*?</div>', "", html(page, "/"), flags=re.DOTALL) for page in pages]
    assert [where for text in shown for where in unmarked(text)] == []
    assert sum("&gt;= " in text for text in shown) >= len(pages) - 3  # of eval runs, of commits, and a ratio


@pytest.mark.parametrize("form", ["atif", "sts", "opentraces"])
def test_no_export_holds_a_bound_as_known(
    single: Store, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--to", form, "-o", str(tmp_path / "out"), "--store", str(single.folder)]) == 0
    (file,) = (p for p in (tmp_path / "out").rglob("*") if p.is_file())
    if form == "atif":
        assert bare(json.loads(file.read_text("utf-8"))) == []
    else:  # they have no place for it, and say so
        assert "lower bound" in " ".join(capsys.readouterr().out.split())
