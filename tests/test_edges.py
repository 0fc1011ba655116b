"""Thresholds at their edge, with the number written out: the last value on one side, and the first on the other."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from agentsignals.errors import BaselineError, SourceError
from agentsignals.export import WRITERS, Writer
from agentsignals.formats import by_name as by_format
from agentsignals.formats.atif import FORMAT as ATIF
from agentsignals.formats.bounds import amount, count
from agentsignals.formats.outcome import exit_code
from agentsignals.ingest.collection import named_repositories
from agentsignals.labels.labellers.rules import Rules
from agentsignals.labels.tasks import task
from agentsignals.labels.units import tokens
from agentsignals.model import logged_ms
from agentsignals.questions.baseline import decode
from agentsignals.questions.charts import rolling_windows
from agentsignals.redaction import redacted, scored
from agentsignals.shell.tokens import simples
from agentsignals.stats.agent_traces import by_metric, spread
from agentsignals.stats.paired import paired, sign_flip
from agentsignals.store import Store, parquet, query, sidecars, tables
from agentsignals.store.query import connect
from agentsignals.ui.document import n_of
from agentsignals.views.history import prints
from agentsignals.words import lexicon as agents
from agentsignals.words.lexicon import Phrases
from tests.build import START, call, say, session, user, view
from tests.formats.reading import given, read_one
from tests.formats.test_factory_droid import START as DROID
from tests.formats.test_factory_droid import message
from tests.formats.test_inspect import read as read_log
from tests.inspect_logs import archive, sample
from tests.planted_passes import Task
from tests.questions.stores import findings, outcome, store_of
from tests.questions.test_attributed_studies import commit
from tests.questions.test_studies import model_session
from tests.repositories.story import Story
from tests.repositories.test_weakness_rules import found as found_by_rules
from tests.signals.ask import absent, detail, value
from tests.signals.attempts import ran, unseen
from tests.views.test_audit import audited

AGENT = {"agent": {"name": "a", "version": "1"}}
SPREAD: dict[str, Any] = {
    "signal": "corpus.autonomy_ratio", "version": 1, "n": 5, "mean": 1.0, "sd": 1.0, "quantiles": [1, 1, 1, 1, 1],
}  # fmt: skip


@pytest.mark.parametrize(("mean", "is_one"), [(1e12, True), (1.01e12, False), (-1e12, True), (-1.01e12, False)])
def test_the_largest_figure_of_a_baseline(mean: float, is_one: bool) -> None:
    facts = {"sessions": 9, "places": 1, "largest_place": 1.0, "labels_mark": "", "negative_by_turn": []}
    whole = {"form": 1, "context": "product", **facts, "measures": [{**SPREAD, "mean": mean}]}
    if is_one:
        assert decode(json.dumps(whole).encode(), "b.json").measures[0].mean == mean
    else:
        with pytest.raises(BaselineError, match="out of range"):
            decode(json.dumps(whole).encode(), "b.json")


@pytest.mark.parametrize(("days", "points"), [(150, 150), (151, 76)])
def test_a_chart_of_days_has_at_most_150_points(days: int, points: int) -> None:
    first = datetime(2026, 1, 1, tzinfo=UTC)
    assert len(list(rolling_windows([first + timedelta(days=n) for n in range(days)], 7))) == points


def test_the_most_that_is_counted_of_tokens_and_dollars() -> None:
    assert count(100_000_000_000) == 100_000_000_000 and math.isnan(count(100_000_000_001) or 0)
    assert amount(1_000_000) == 1e6 and math.isnan(amount(1_000_000.5) or 0)


def test_the_last_moment_that_is_a_time_is_the_end_of_2099() -> None:
    def began(at: str) -> int | None:
        steps = [{"step_id": 1, "timestamp": at, "source": "user", "message": "go"}]
        return read_one(ATIF, {"schema_version": "ATIF-v1.4", "session_id": "s", **AGENT, "steps": steps}).started_at

    assert began("2099-12-31T23:59:59Z") == 4_102_444_799_000_000
    assert began("2100-01-01T00:00:01Z") is None
    assert began("2000-01-01T00:00:00Z") == 946_684_800_000_000
    assert began("1999-12-31T23:59:59Z") is None
    assert logged_ms(4_102_444_800_000) == 4_102_444_800_000_000


def test_an_explanation_of_a_score_is_kept_to_600_characters() -> None:
    text = "e" * 600
    (part,) = read_log(archive(sample(scores={"match": {"value": "C", "explanation": f"{text}x"}}))).attempts
    assert [said.text for said in part.statements if "scored" in said.text] == [f"match scored 'C': {text}"]


@pytest.mark.parametrize(("number", "is_read"), [(-(10**18), True), (-(10**19 - 1), True), (-(10**20 - 1), False)])
def test_a_whole_number_has_20_characters_with_its_sign(number: int, is_read: bool) -> None:
    """A record that is odd besides (half a surrogate pair) is read by ourselves."""
    steps = [{"step_id": 1, "source": "user", "message": "\ud800", "extra": {"n": number}}]
    whole = {"schema_version": "ATIF-v1.4", "session_id": "s", **AGENT, "steps": steps}
    file = given(whole, "atif")
    ATIF.read([file])
    assert file.artifact.skipped_reasons.get("impossible_number", 0) == (0 if is_read else 1)


@pytest.mark.parametrize(("at", "error"), [(285, "not_found"), (286, "other")])
def test_of_what_a_tool_says_300_characters_are_looked_at(at: int, error: str) -> None:
    step = {"action": "str_replace_editor view /x", "observation": "p" * at + " does not exist", "thought": ""}
    made = read_one(by_format("swe-agent"), {"trajectory": [step], "history": [], "info": {}})
    assert [c.error_class for c in made.tool_calls] == [error]


def test_judging_by_rules_names_its_version() -> None:
    assert Rules().version(task("sentiment")) == "rules-2"


@pytest.mark.parametrize(("chars", "masked"), [(1_999, True), (2_000, False)])
def test_a_quote_is_looked_for_in_2000_characters(chars: int, masked: bool) -> None:
    """Where none ends the value, its first word alone is judged."""
    words = ("yX2hxkB4K UubHpkGN6 H8SgXzgLc " * 100)[:chars]
    assert (redacted(f'password = "{words}"') == 'password = "[secret]"') is masked


@pytest.mark.parametrize(("chars", "is_whole"), [(12, True), (11, False)])
def test_a_value_broken_over_lines_has_12_characters_on_its_first(
    chars: int, is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored.scorer().net, "least", 99.0)
    first = "6H6daQ7LjfMN"[:chars]
    masked = redacted(f"API_TOKEN={first}\nxtGruNcUvKpQfXufZbRw\n")
    assert (first in masked, "xtGruNcUvKpQfXufZbRw" in masked) == (False, not is_whole)


@pytest.mark.parametrize("value", ["SecReTkey9", "tOkenabcd"])
def test_a_value_that_speaks_of_a_secret_in_letters_of_mixed_case_is_one(value: str) -> None:
    assert redacted(f"DB_PASSWORD={value}") == "DB_PASSWORD=[secret]"


@pytest.mark.parametrize(("given_", "answer", "seen"), [("12", "0", []), ("12", "4711", ["special_case"])])
def test_a_branch_of_literals_that_any_program_has_is_no_case_of_a_test(
    given_: str, answer: str, seen: list[str]
) -> None:
    task = Task(0)
    checks = f"def test_{task.name}():\n    assert {task.name}({given_}) == {answer}\n"
    fix = f"    if {task.noun}s == {given_}: return {answer}\n{task.mine}"
    steps = [*task.begun, ("sh", f"cat {task.test}", checks), task.fixed(fix), *task.ended(fix)]
    assert [action.channel for action in audited(steps).actions] == seen


def test_counts_are_written_out_up_to_ten_million() -> None:
    assert n_of(9_999_999, "calls") == "n = 9,999,999 calls"
    assert n_of(10_000_000, "calls") == "n = 10 M calls"


def test_a_command_has_50_here_documents() -> None:
    def of(n: int) -> str:
        return "\n".join(f"cat <<A{k}\nevil{k}\nA{k}" for k in range(n))

    assert not any("evil" in word for c in simples(of(50)) for word in c[0])
    assert [word for c in simples(of(51)) for word in c[0] if "evil" in word] == ["evil50"]


def test_20_untouched_items_of_a_plan_are_named() -> None:
    steps = [{"content": f"Change f{n}.py", "status": "pending", "activeForm": "x"} for n in range(25)]
    found = detail(view(user("go"), call("TodoWrite", todos=steps)), "dynamics.gd_inaction")
    assert (found["den"], len(found["untouched"])) == (25, 20)


def test_of_a_file_2000_prints_are_kept() -> None:
    def kept(n: int) -> int:
        return len(prints(f"line number {k}" for k in range(n))) // 8

    assert (kept(1_999), kept(2_000), kept(2_001)) == (1_999, 2_000, 2_000)
    assert prints(["12345678"]) == "" and prints(["123456789"]) != ""


def test_characters_beyond_ascii_begin_at_128() -> None:
    assert tokens("\x7f" * 6 + "\x80") == 3


def test_the_draws_of_a_test_are_the_same_each_time() -> None:
    """A p value that is quoted can be computed again."""
    gaps = [0.5 if n % 3 else -0.4 for n in range(40)]
    assert sign_flip(gaps) == pytest.approx(0.015992003998001, abs=1e-12)


@pytest.mark.parametrize(("deep", "found"), [(1, True), (2, True), (3, False)])
def test_clones_are_looked_for_so_deep(deep: int, found: bool, tmp_path: Path) -> None:
    clone = tmp_path.joinpath(*(f"d{n}" for n in range(deep)))
    (clone / ".git").mkdir(parents=True)
    if found:
        assert [c.place for c in named_repositories([str(tmp_path)])] == [str(clone)]
    else:
        with pytest.raises(SourceError, match="contains no Git repository"):
            named_repositories([str(tmp_path)])


def test_an_export_says_which_version_of_the_agent_it_was() -> None:
    writer = WRITERS.get("opentraces")
    assert isinstance(writer, Writer)
    (line,) = writer.text(session(user("go"), agent_version="2.0.1")).splitlines()
    assert json.loads(line)["agent"]["version"] == "2.0.1"


def test_columns_are_of_types_that_a_query_knows() -> None:
    """`_DUCK` of the views and `_TYPES` of Arrow have each of them."""
    for table, columns in tables.COLUMNS.items():
        types = [str(f.type).replace("item: ", "").replace("element: ", "") for f in parquet.SCHEMAS[table]]
        assert types == list(columns.values())
        assert all(kind == "int64" for column, kind in columns.items() if column.startswith("n_")), "counts are whole"
        assert [name for name, _ in query.duckdb_columns(table)] == parquet.SCHEMAS[table].names


def test_an_exit_code_is_read_where_a_result_begins() -> None:
    assert exit_code("exit status 3") == 3 and exit_code("it said exit status 3") is None


def test_a_setting_beyond_a_thousand_billion_is_no_limit() -> None:
    def cap(n: int) -> str:
        whole = value(ran(trial_id="t", attempt_index=0, knobs={"retry_tool_cap": n}), "loop.attempt_result")
        return str(whole["treatment"])

    assert cap(10**15) == f"retry_tool_cap={10**15}"
    assert cap(10**15 + 1) == "retry_tool_cap=unlimited"


@pytest.mark.parametrize("raw", ["", "0", "none", "null", "unlimited", "inf", "infinity", "auto", "off", "-1"])
def test_every_word_for_no_limit(raw: str) -> None:
    reason, _ = absent(unseen(knobs={"concurrency": raw}), "treatment.concurrency")
    assert reason == "not_applicable"


@pytest.mark.parametrize(("gap_s", "minutes"), [(120, 2.0), (121, None)])
def test_two_minutes_in_which_nobody_acts_are_no_pause(gap_s: int, minutes: float | None, tmp_path: Path) -> None:
    made = session(user("a"), user("b"), session_id="s0")
    made.events[0].timestamp, made.events[1].timestamp = START, START + gap_s * 1_000_000
    store = store_of(tmp_path / "s", made)
    sidecars.write_repository_rows(store.folder, "/r", "commits", [commit("c0", "s0", added=100)])
    found = findings(store, "efficiency").get("replayed.seconds")
    assert (found.value if found else None) == minutes


def test_of_a_commit_each_tag_is_counted_also_those_without_a_line(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.human("app.py", "a = 1\n")
    story.commit("base")
    a = story.agent("writer")
    a.prompt()
    a.say()
    story.human("app.py", "a = 1\nb = 2\n")
    story.commit("named", a)
    story.attributed()
    tags = (
        *("agent_exact", "agent_ws", "agent_shell", "agent_other_session", "human_observed", "preexisting", "moved"),
        *("generated", "unknown"),
    )
    rows = Store(story.folder / "store").sql(f"SELECT {', '.join(tags)} FROM commits WHERE subject = 'named'")
    (counted,) = rows.fetchall()
    assert None not in counted and sum(counted) == 1


@pytest.mark.parametrize("separator", ["&&", "||", "|", "|&", ";", ";;", ";&", ";;;", ";;&", ";&;", ";&&", "&", "\n"])
def test_what_separates_commands(separator: str) -> None:
    assert [c[0] for c in simples(f"a {separator} b")] == [["a"], ["b"]]


@pytest.mark.parametrize("said", ["shouldn't have", "should not have", "should have"])
def test_what_an_agent_says_it_should_have_done_is_a_correction(said: str) -> None:
    assert value(view(user("go"), say(f"I {said} touched the lock.")), "reasoning.self_correction_count") == 1


@pytest.mark.parametrize(("better", "gained"), [(1e-12, 0), (2e-12, 1)])
def test_what_rounding_makes_is_no_gain(better: float, gained: int) -> None:
    found = paired({"t": [better]}, {"t": [0.0]}, yes_or_no=False)
    worse = paired({"t": [0.0]}, {"t": [better]}, yes_or_no=False)
    assert (found.gained, found.lost, worse.gained, worse.lost) == (gained, 0, 0, gained)


@pytest.mark.parametrize(("there", "elsewhere", "says"), [(6, 6, ""), (7, 6, "one project")])
def test_half_of_the_sessions_in_one_place_are_not_most(there: int, elsewhere: int, says: str, tmp_path: Path) -> None:
    made = [model_session(f"a{n}", "m", "/p/0") for n in range(there)]
    made += [model_session(f"b{n}", "m", f"/p/{n + 1}") for n in range(elsewhere)]
    assert outcome(store_of(tmp_path / "s", *made), "models").tables[0].rows[0][-1] == says


@pytest.mark.parametrize("before", [1, 90, 100])
def test_what_was_raised_is_on_its_line_also_of_a_long_log(before: int) -> None:
    data = ("Traceback of 60 characters, which is a long line of a log..\n" * before + "ValueError: bad\n").encode()
    (part,) = by_format("harbor-log").read([given(data, "harbor-log", "/j/t/exception.txt")]).attempts
    assert (part.exception, [s.line for s in part.statements]) == ("ValueError", [before + 1])


@pytest.mark.parametrize(
    "opened",
    [
        *("open", "io.open", "os.open", "os.remove", "os.unlink", "os.path.join", "pathlib.Path", "flask.send_file"),
        *("shutil.copy", "shutil.rmtree", "codecs.open"),
    ],
)
def test_every_call_that_opens_a_path_is_looked_at(opened: str) -> None:
    module = opened.split(".", maxsplit=1)[0]
    text = f"import {module}\nfrom flask import request\n\n\ndef f():\n    {opened}(request.args['p'])\n"
    assert "py-path-from-request" in found_by_rules("a.py", text)


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_what_a_droid_thinks_is_thinking(kind: str) -> None:
    rows = [DROID, message("m1", "assistant", {"type": kind, "thinking": "hm"}, "so")]
    made = read_one(by_format("factory-droid"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert [(e.kind, e.text) for e in made.events] == [("thinking", "hm"), ("text", "so")]


def test_the_sign_of_a_phrase_is_one_of_its_words() -> None:
    """A phrase is looked for only in texts that have its sign: another sign, and it is never found."""
    lists = [phrases for phrases in vars(agents).values() if isinstance(phrases, Phrases)]
    assert len(lists) > 5
    for phrases in lists:
        for sign, members in phrases._by_sign.items():
            for phrase in members:
                assert sign.decode() in re.split(r"[^a-z0-9]+", phrase.words), phrase.words


def test_a_query_may_take_half_of_the_memory(tmp_path: Path) -> None:
    """DuckDB takes 8 tenths by itself; both are written to a tenth."""

    def limit(connection: duckdb.DuckDBPyConnection) -> float:
        ((text,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
        return float(str(text).split()[0])

    assert limit(connect(store_of(tmp_path / "s")).database) == pytest.approx(limit(duckdb.connect()) * 5 / 8, abs=0.1)


def test_how_much_values_differ_as_a_share_of_their_median() -> None:
    """Deviations from the median 4 are 2, 1, 0, 2, 6: their median is 2."""
    assert spread([2, 3, 4, 6, 10]) == (pytest.approx(math.sqrt(8) / 5), pytest.approx(1.4826 * 2 / 4, rel=1e-4))


def test_reads_before_edits_are_weighted_by_edits() -> None:
    nothing: dict[str, Any] = {"felt": {}, "tools": {}, "pattern": None, "autonomy": None, "events": None, "cost": None}
    nothing |= dict.fromkeys(("errors", "tokens", "short"), (0, 0))
    sessions = [nothing | {"reads": 1.0, "edits": 3}, nothing | {"reads": 0.0, "edits": 1}]
    found = by_metric([sessions], sessions)
    assert found["read_before_edit_rate"] == [0.75] and found["tool_mix_entropy"] == found["error_rate"] == [None]
