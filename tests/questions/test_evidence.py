"""The sessions behind a number: as many as it counts, for every figure of every study."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.errors import UsageError
from agentsignals.questions import findings
from agentsignals.questions.estimates import bar, chart, count, table
from agentsignals.questions.findings import Reader
from agentsignals.questions.question import (
    LONGEST_NAME,
    Chart,
    Evidence,
    Finding,
    Inputs,
    NoSessions,
    Table,
    collecting_evidence,
    mark_names,
    ranked_evidence,
    row_names,
)
from agentsignals.questions.ranking import MORE
from agentsignals.questions.studies import studies
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.ui.filter import Behind, behind, key_of, sizes
from tests.build import call, say, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import trial
from tests.ui.served import EVIL, EVIL_ID, whole_store

OPENED = 0.9
"""Of figures and rows; what is left counts files, commits or another collection, and says so."""
_COUNTED = re.compile(r"[\d,]+(?= of [\d,]+\b)|(?<=n = )[\d,]+")
_NAMED = re.compile(r"(?<=, which named )\d+%")
"""The share by labels, which are what opens, where the figure is a mean of probabilities."""
NO_SUM = ("projects", "names", "styles", "topics", "models", "tasks", "of 1", "trials")
"""Units that are no sum over sessions, though the sessions they are of are known."""


SUMS_OF_ELSE = ("reading.unknown", "worth.cost_share")
"""Figures whose sessions are weighed by something else than what their n counts."""


class Case:
    """A store's studies, each with what its figures count."""

    def __init__(self, store: Store, context: str) -> None:
        declared = [s for s in studies().values() if s.context in ("either", "both", context)]
        reader = Reader(store, declared, context)
        self.findings: list[Finding] = []
        self.tables: list[Table] = []
        self.charts: list[Chart] = []
        self.parts: dict[str, dict[str, tuple[float, float]] | str] = {}
        for study in declared:
            inputs: Inputs = reader.inputs(study)
            with collecting_evidence() as notes:
                outcome = study.run(inputs)
            self.findings += outcome.findings
            self.tables += outcome.tables
            self.charts += outcome.charts
            for name, counted in notes.items():
                self.parts[name] = _parts(counted, reader, inputs.context)

    def of(self, name: str) -> dict[str, tuple[float, float]] | str:
        assert name in self.parts, f"{name} does not say which sessions it counts"
        return self.parts[name]


def _parts(counted: Evidence, reader: Reader, context: str) -> dict[str, tuple[float, float]] | str:
    if isinstance(counted, NoSessions):
        return counted.reason
    return ranked_evidence(counted, lambda sql, values: reader.ask(sql, values, context))


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow) for name in ("demo", "hostile", "corpus")] + ["planted", "eval"],
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    if request.param in ("demo", "corpus"):
        yield Case(Store(request.getfixturevalue(f"{request.param}_folder") / "store"), "product")
        return
    store = whole_store(tmp_path_factory.mktemp("behind") / "store")
    if request.param == "planted":
        store = _planted(tmp_path_factory.mktemp("planted") / "store")
    yield Case(store, "eval" if request.param == "eval" else "product")


def _planted(folder: Path) -> Store:
    """Two agents in three places, of which one fails, edits one file through two calls, and waits."""
    made = []
    for n in range(9):
        one = session(
            user("please mend the parser of the dates"),
            say("Looking.", model="claude-opus-4-5", input_tokens=100 * n, output_tokens=20),
            call("Read", path="src/dates.py", result="x = 1"),
            *(call("Bash", command="pytest -q", status="error", result="1 failed") for _ in range(n % 3)),
            call("Edit", path="src/dates.py", old_string="x", new_string="y"),
            user("no, that is wrong") if n % 2 else user("thanks"),
            session_id=f"s{n}",
            cwd=f"/home/me/{'abc'[n % 3]}",
        )
        one.agent = "claude-code" if n % 2 else "codex"
        made.append(one)
    return store_of(folder, *made)


@pytest.mark.slow
def test_a_finding_opens_as_many_sessions_as_it_counts(case: Case) -> None:
    for finding in case.findings:
        parts = case.of(finding.id)
        if isinstance(parts, str):
            continue
        k, n = (sum(part[at] for part in parts.values()) for at in (0, 1))
        if finding.n and parts and finding.id not in SUMS_OF_ELSE:
            assert n == pytest.approx(finding.n), finding.id
        if finding.of.startswith(("sessions", "priced sessions", "attempts")):
            of_none = not parts and finding.value == 0 and finding.kind != "share"  # a count of none opens nothing
            assert of_none or len(parts) == finding.n, finding.id
        median = "median" in finding.id or finding.id.startswith("efficiency.") or finding.unit in NO_SUM
        if isinstance(finding.value, int | float) and not median and "_per_solved" not in finding.id:
            if finding.kind == "share" and finding.n:
                if named := _NAMED.search(finding.caveat):
                    assert f"{k / n:.0%}" == named[0], finding.id
                else:
                    assert k / n == pytest.approx(finding.value), finding.id
            elif finding.kind in ("count", "tokens", "usd"):
                assert k == pytest.approx(finding.value), finding.id


def test_a_row_opens_as_many_sessions_as_it_counts(case: Case) -> None:
    rows = 0
    for made in case.tables:
        at = [n for n, c in enumerate(made.columns) if c.kind == "count" and c.label.startswith("sessions")]
        for name, row in zip(row_names(made), made.rows, strict=True):
            parts = case.of(f"{made.id}:{name}")
            if at and not isinstance(parts, str):
                assert len(parts) == row[at[0]], (made.id, name)
                rows += 1
    assert rows


def test_a_mark_opens_what_it_counts(case: Case) -> None:
    """As many calls, turns or sessions as its words say; without them its height, its share or its place in a stack.
    Each opens, or says why it does not."""
    closed, marks = [], 0
    for made in case.charts:
        values = made.marks
        for name, mark in zip(mark_names(values), values, strict=True):
            where, parts = f"{made.id}:{name}", case.of(f"{made.id}:{name}")
            if isinstance(parts, str):
                closed.append(where)
                continue
            marks += 1
            if made.id == "reading.formats":  # whose words count files, and bytes
                continue
            k, n = (sum(part[at] for part in parts.values()) for at in (0, 1))
            in_words = [float(number.replace(",", "")) for number in _COUNTED.findall(mark["tip"])]
            if in_words:
                assert in_words[0] in (k, n, len(parts)), (where, mark["tip"], k, n, len(parts))
            if "high" in mark and "to" in mark:
                assert k == pytest.approx(mark["high"] - mark["low"]), where
            elif not in_words or (made.form.name != "bars" and made.form.title.startswith("share of")):
                assert mark["value"] in (pytest.approx(k), pytest.approx(k / n if n else 0)), (where, k, n)
    assert marks > len(closed)
    print(f"{marks} of {marks + len(closed)} marks of {len(case.charts)} charts open the sessions they count")
    assert {where.partition(".")[0] for where in closed} <= {"data_sets", "weaknesses", "survival"}


def test_how_many_figures_and_rows_open_does_not_fall(case: Case) -> None:
    """Each says its sessions, or why there are none; no more than a tenth has none."""
    names = [finding.id for finding in case.findings]
    names += [f"{made.id}:{name}" for made in case.tables for name in row_names(made)]
    closed = [name for name in names if isinstance(case.of(name), str)]
    assert all(str(case.of(name)).endswith(".") for name in closed)
    print(f"{len(names) - len(closed)} of {len(names)} figures and rows open the sessions they count")
    assert len(closed) <= (1 - OPENED) * len(names), closed


def test_rows_of_one_name_are_told_apart_and_names_hold_no_key() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLF"
    rows: list[list[Any]] = [["a", "b", 1], ["a", "b", 2], ["x" * 200, "", 3], [None, "b", 4], [key, "b", 5]]
    made = table("t.t", rows, n=5, title="T", header="one | two:code | n:count", of="rows", evidence=[None] * 5)
    names = row_names(made)
    assert names[:2] == ["a · b", "a · b (2)"] and len(names[2]) == LONGEST_NAME and names[3] == "b"
    assert key not in names[4]


def test_nothing_is_noted_while_nobody_asks_and_each_asks_for_itself() -> None:
    estimate = count(1, 2, evidence=[("a", 1, 1), ("b", 0, 1), ("c", 0, 0)])
    estimate.finding("toy.a", "A", "things", unit="things")
    with collecting_evidence() as outer:
        estimate.finding("toy.b", "B", "things", unit="things")
        with collecting_evidence() as inner:
            count(1, 1, evidence=NoSessions("It counts stones.")).finding("toy.c", "C", "stones", unit="stones")
    assert sizes(outer) == {"toy.b": (1, 2)} and sizes(inner) == {"toy.c": "It counts stones."}


def test_a_mark_is_called_as_it_is_without_its_figure_and_opens_what_its_estimate_counts() -> None:
    with collecting_evidence() as notes:
        marks = [
            bar("codex (1,204)", 2, "codex: 2", evidence=["a", "b"]),
            bar("pi (3)", 0, "", evidence=()),
            bar("pi (4)", 1, "", evidence=["a"]),
        ]
        chart("toy.c", marks, {}, n=3, title="C", of="things")
    assert mark_names(marks) == ["codex", "pi", "pi (2)"] and sizes(notes) == {
        "toy.c:codex": (2, 2),
        "toy.c:pi": "It counts no sessions.",
        "toy.c:pi (2)": (1, 1),
    }
    assert all({*mark} == {"name", "value", "tip"} for mark in marks)


# -- by key ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return whole_store(tmp_path_factory.mktemp("keys") / "store")


def test_a_key_opens_the_sessions_of_a_number(store: Store) -> None:
    made = behind(store, "study:errors:errors.rate")
    assert made.title == "Tool calls that failed" and set(made.parts) == {"fine-1", EVIL_ID}
    assert made.words("fine-1") == "1 of 3 answered calls"
    parts = {"some": (1, 3), "all": (3, 3), "of none": (2, 0), "one of one": (1, 1), "none of one": (0, 1)}
    of_calls, paid = Behind(title="t", of="calls", parts=parts), Behind(title="t", of="", parts=parts, kind="usd")
    assert [of_calls.words(name) for name in parts] == ["1 of 3 calls", "3 calls", "2 calls", "1 calls", "0 of 1 calls"]
    assert [paid.words(name) for name in parts] == ["1 of 3 ", "$3.00", "$2.00", "$1.00", "$0.00"]
    classes = behind(store, "study:tools:tools.classes:test")
    assert list(classes.parts) == ["fine-1"] and classes.title == "Tool calls by kind: test"
    attempts = behind(store, "study:errors@eval:errors.rate")
    assert attempts.parts.keys().isdisjoint(made.parts)


def test_with_takes_those_that_make_up_the_share(store: Store) -> None:
    key = "study:tools:tools.mcp_sessions"
    assert len(behind(store, key).parts) == 2 and list(behind(store, f"with:{key}").parts) == [EVIL_ID]


def test_a_row_named_by_a_trace_opens_what_it_counts_and_nothing_else(store: Store) -> None:
    reader = Reader(store, [studies()["tools"]])
    [named] = [
        name
        for made in studies()["tools"].run(reader.inputs(studies()["tools"])).tables
        if made.id == "tools.names"
        for name in row_names(made)
        if name.startswith("mcp__")
    ]
    assert EVIL[:20] in named
    assert list(behind(store, key_of("tools", f"tools.names:{named}")).parts) == [EVIL_ID]


@pytest.mark.parametrize(
    "key",
    ["", "study", "study:", "study:errors", "study:no:errors.rate", "study:errors:no", "study:errors:errors.kinds:no",
     "finding:no", "else:x", "with:", "study:errors:'; DROP TABLE sessions; --", "with:with:x"],
)  # fmt: skip
def test_what_is_no_key_is_refused(store: Store, key: str) -> None:
    with pytest.raises(UsageError):
        behind(store, key)


def test_a_number_of_files_says_why_it_opens_nothing(store: Store) -> None:
    made = behind(store, "study:reading:reading.files")
    assert not made.parts and "files" in made.closed


def test_a_finding_opens_the_sessions_of_its_evidence(demo_folder: Path) -> None:
    store = Store(demo_folder / "store")
    answers = findings.findings(store).answers
    assert answers
    for answer in answers:
        parts = behind(store, f"finding:{answer.id}").parts
        assert set(answer.sessions) <= set(parts), answer.id


def test_rows_of_an_amount_come_largest_first_and_add_up_to_the_claim(demo_folder: Path, tmp_path: Path) -> None:
    facts = [{"trial_id": f"{m}/{n}", "task_id": f"t{n}", "reward": float(n < solved), "knobs": {"model_id": m}}
             for m, solved in (("m-1", 9), ("m-2", 3)) for n in range(10)]  # fmt: skip
    attempts = [view.session for one in facts for view in trial(one)]
    seen = set()
    for store, context in ((Store(demo_folder / "store"), "product"), (store_of(tmp_path / "s", *attempts), "eval")):
        candidates, _ = findings._candidates(store, context, findings.questions(), lambda _: True)
        for answer in candidates:
            names, values = rows(store, answer.cause, context)
            if not answer.part:
                continue
            parts = [row[names.index(answer.part)] or 0.0 for row in values]
            whole = sum(parts) / (3600 if answer.unit.startswith("hours") else 1)
            assert parts == sorted(parts, reverse=True), answer.id
            if not answer.unit.endswith(MORE):
                assert whole == pytest.approx(answer.size, rel=0.05, abs=1e-6), answer.id
            if parts and sum(parts):
                seen.add(answer.id.partition(".")[0])
                opened = behind(store, f"finding:{answer.id}{'@eval' if context == 'eval' else ''}")
                assert sum(k for k, _ in opened.parts.values()) == pytest.approx(sum(parts)), answer.id
                assert list(opened.parts.values()) == sorted(opened.parts.values(), reverse=True)
                if answer.unit == "USD":
                    assert opened.words(next(iter(opened.parts))).startswith("$")
    assert seen >= {"money", "repeated-work", "solved-more"}, seen


def test_the_command_line_lists_the_sessions_behind_a_number(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sessions", "--store", str(store.folder), "--json", "--behind", "with:study:tools:tools.mcp_sessions"]
    assert main(asked) == 0
    assert EVIL_ID.replace('"', '\\"') in (shown := capsys.readouterr().out) and "fine-1" not in shown
    assert main([*asked[:-1], "study:errors:no"]) != 0
    assert "no number" in capsys.readouterr().out
