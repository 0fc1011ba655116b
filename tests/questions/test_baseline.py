"""You against a baseline: what the file holds and keeps to itself, and where two sets of sessions lie apart."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.errors import BaselineError
from agentsignals.model import Label, Session
from agentsignals.questions.baseline import MEASURES, Rate, Spread, difference, spreads, standardised
from agentsignals.store import Store
from agentsignals.ui import report
from tests.build import call, say, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import trial

SECRET = "zebra-secret"  # noqa: S105  (a word to look for)
LETTERS = {"+": "POSITIVE", "-": "NEGATIVE", "0": "NEUTRAL"}


def talk(name: str, letters: str, calls: int, labeller: str = f"judge-{SECRET}") -> Session:
    """A session of so many labelled prompts, with so many tool calls after each."""
    parts: list[Any] = []
    for _ in letters:
        parts += [user(f"do {SECRET}"), *(call("Bash", command=f"run {SECRET}") for _ in range(calls)), say("so")]
    made = session(*parts, session_id=f"{SECRET}-{name}", cwd=f"/home/{SECRET}", repo=SECRET)
    made.labels = [
        Label(task="sentiment", labeller=labeller, turn=n, value=LETTERS[letter]) for n, letter in enumerate(letters)
    ]
    return made


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """40 calm sessions of few calls, and two attempts of an eval run."""
    people = [talk(f"c{n}", "-0" if n < 4 else "00", 1 + n % 3) for n in range(40)]
    attempts = [view.session for view in trial({"reward": 0.0}, {"reward": 1.0})]
    return store_of(tmp_path_factory.mktemp("crowd") / "s", *people, *attempts)


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """36 sessions: angry at the second turn, with many calls for each prompt."""
    people = [talk(f"m{n}", "0-" if n < 18 else "00", 4 + n % 4) for n in range(36)]
    return store_of(tmp_path_factory.mktemp("mine") / "s", *people)


@pytest.fixture(scope="module")
def file(crowd: Store) -> Path:
    path = crowd.folder.parent / "base.json"
    assert main(["export", "--to", "baseline", "-o", str(path), "--store", str(crowd.folder), "--quiet"]) == 0
    return path


def told(store: Store, baseline: Path, folder: Path) -> dict[str, Any]:
    made = report.write(store, folder / "r.json", ["sessions"], baseline=baseline)
    section: dict[str, Any] = json.loads(made.read_text("utf-8"))["sections"][0]
    assert section["study"] == "baseline"
    return section


def changed(file: Path, folder: Path, **facts: Any) -> Path:
    path = folder / "changed.json"
    path.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **facts}), encoding="utf-8")
    return path


# -- the file ----------------------------------------------------------------------------------------------------------


def test_it_names_nobody(file: Path, crowd: Store) -> None:
    text = file.read_text("utf-8")
    assert SECRET not in text and not any(name in text for name in crowd.manifest.sessions)
    found = json.loads(text)
    assert {k for k, v in found.items() if isinstance(v, str)} == {"context", "labels_mark"}
    assert set(found["measures"][0]) == {"signal", "version", "n", "mean", "sd", "quantiles", "at_least", "not_judged"}


def test_people_alone_are_in_it_and_attempts_only_when_asked_for(file: Path, crowd: Store, tmp_path: Path) -> None:
    found = json.loads(file.read_text("utf-8"))
    assert (found["context"], found["sessions"], found["places"], found["largest_place"]) == ("product", 40, 1, 1.0)
    words = ["export", "--to", "baseline", "-o", str(tmp_path / "b.json"), "--store", str(crowd.folder), "--quiet"]
    assert main([*words, "--where", "context = 'eval'"]) == 1, "two attempts are too few"
    assert not (tmp_path / "b.json").exists()


def test_figures_are_those_of_the_sessions(file: Path) -> None:
    found = json.loads(file.read_text("utf-8"))
    calls = [1 + n % 3 for n in range(40)]
    one = next(m for m in found["measures"] if m["signal"] == "corpus.autonomy_ratio")
    assert one["n"] == 40 and one["mean"] == pytest.approx(statistics.mean(calls))
    assert one["sd"] == pytest.approx(statistics.stdev(calls)) and one["quantiles"] == [1, 1, 2, 3, 3]
    turns = {t["turn"]: (t["n"], t["negative"]) for t in found["negative_by_turn"]}
    assert turns == {"1": (40, 4), "2": (40, 0)}


def test_nothing_is_told_of_fewer_than_five(crowd: Store, tmp_path: Path) -> None:
    words = ["export", "--to", "baseline", "-o", str(tmp_path / "b.json"), "--store", str(crowd.folder), "--quiet"]
    ids = ", ".join(f"'{SECRET}-c{n}'" for n in range(5))
    assert main([*words, "--where", f"session_id IN ({ids}) AND session_id <> '{SECRET}-c0'"]) == 1
    assert main([*words, "--where", f"session_id IN ({ids})"]) == 0
    found = json.loads((tmp_path / "b.json").read_text("utf-8"))
    counts = [*(m["n"] for m in found["measures"]), *(t["n"] for t in found["negative_by_turn"])]
    assert counts and min(counts) >= 5
    assert "corpus.error_recovery_rate" not in {m["signal"] for m in found["measures"]}, "nobody has an error"


# -- the comparison ----------------------------------------------------------------------------------------------------


def test_the_turn_and_the_measure_furthest_apart_are_named_with_n_of_both(
    mine: Store, file: Path, tmp_path: Path
) -> None:
    found = {f["id"]: f for f in told(mine, file, tmp_path)["findings"]}
    turn = found["baseline.turn_gap"]
    assert turn["title"].endswith("turn 2") and turn["value"] == pytest.approx(0.5) and turn["n"] == 36
    assert "yours 50.0% (n = 36), the baseline's 0.0% (n = 40)" in turn["note"]
    assert turn["interval"][0] > 0.2
    measure = found["baseline.measure_gap"]
    assert measure["title"].endswith("Tool calls per prompt") and "(n = 40 sessions of the baseline)" in measure["note"]
    own, other = [4 + n % 4 for n in range(36)], [1 + n % 3 for n in range(40)]
    pooled = math.sqrt((35 * statistics.variance(own) + 39 * statistics.variance(other)) / 74)
    assert measure["value"] == pytest.approx((statistics.mean(own) - statistics.mean(other)) / pooled)
    assert measure["n"] == 36


def test_the_same_sessions_lie_nowhere_apart(crowd: Store, file: Path, tmp_path: Path) -> None:
    section = told(crowd, file, tmp_path)
    gaps = [row["gap"] for table in section["tables"] for row in table["rows"] if row["gap"] is not None]
    assert gaps and set(gaps) == {0}
    assert not any("different labellers" in limit for limit in section["limits"])


@pytest.mark.slow
def test_charts_and_tables_overlay_both(mine: Store, file: Path, tmp_path: Path) -> None:
    section = told(mine, file, tmp_path)
    charts = {c["id"]: c["marks"] for c in section["charts"]}
    assert [(r["name"], r["at"], r["value"]) for r in charts["baseline.turns"]] == [
        ("yours", "1", 0), ("baseline", "1", 0.1), ("yours", "2", 0.5), ("baseline", "2", 0),
    ]  # fmt: skip
    assert charts["baseline.measures"][0]["name"] == "Tool calls per prompt", "the furthest first"
    page = report.write(mine, tmp_path / "r.html", baseline=file).read_text("utf-8")
    assert page.index('id="baseline"') < page.index('id="sessions"')
    text = report.write(mine, tmp_path / "r.md", baseline=file).read_text("utf-8")
    assert "## Your sessions compared with a baseline file" in text and "| Tool calls per prompt | 36 | 5.5 |" in text


def test_turns_with_few_messages_are_shown_but_never_named(mine: Store, file: Path, tmp_path: Path) -> None:
    few = [{"turn": "1", "n": 29, "negative": 29, "low": 0.9, "high": 1.0}]
    section = told(mine, changed(file, tmp_path, negative_by_turn=few), tmp_path)
    gap = next(f for f in section["findings"] if f["id"] == "baseline.turn_gap")
    assert gap["value"] is None and gap["note"] == "no turn has 30 labelled messages on both sides"
    assert not gap["headline"], "what could not be compared is no headline"
    rows = next(t for t in section["tables"] if t["id"] == "baseline.turns")["rows"]
    assert [(r["turn"], r["warning"]) for r in rows] == [("1", "few messages")]


def test_without_labels_the_measures_are_compared_alone(mine: Store, file: Path, tmp_path: Path) -> None:
    section = told(mine, changed(file, tmp_path, negative_by_turn=[]), tmp_path)
    found = {f["id"]: f for f in section["findings"]}
    assert found["baseline.turn_gap"]["note"] == "the baseline has no sentiment labels"
    assert found["baseline.measure_gap"]["value"] is not None
    assert [c["id"] for c in section["charts"]] == ["baseline.measures"]


def test_a_measure_of_another_version_is_not_compared(mine: Store, file: Path, tmp_path: Path) -> None:
    measures = json.loads(file.read_text("utf-8"))["measures"]
    for one in measures:
        one["version"] += one["signal"] == "corpus.autonomy_ratio"
    section = told(mine, changed(file, tmp_path, measures=measures), tmp_path)
    gap = next(f for f in section["findings"] if f["id"] == "baseline.measure_gap")
    assert "Tool calls per prompt" not in gap["title"]
    assert any("not compared: Tool calls per prompt" in limit for limit in section["limits"])
    rows = {r["measure"]: r for r in section["tables"][0]["rows"]}
    assert rows["Tool calls per prompt"]["gap"] is None
    assert rows["Tool calls per prompt"]["warning"].startswith("measured differently")


def test_other_labellers_and_a_single_place_are_said(mine: Store, file: Path, tmp_path: Path) -> None:
    limits = " ".join(told(mine, changed(file, tmp_path, labels_mark="00000000"), tmp_path)["limits"])
    assert "different labellers or prompts" in limits
    assert "100% of the baseline's sessions with a known project are from one project" in limits


def test_a_baseline_of_eval_runs_is_not_held_against_people(mine: Store, file: Path, tmp_path: Path) -> None:
    made = report.write(mine, tmp_path / "r.json", ["sessions"], baseline=changed(file, tmp_path, context="eval"))
    found = json.loads(made.read_text("utf-8"))
    assert [s["study"] for s in found["sections"]] == ["sessions"]
    assert found["left_out"][0]["reason"] == "it is about attempts of eval runs, and the store holds none"


# -- what comes from others may be anything ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{}", b"\xff\xfe", b'{"form": 1}', b"x" * 1_000_001, b'{"form": NaN}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_baseline_is_refused(mine: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b.json").write_bytes(content)
    with pytest.raises(BaselineError, match=r"b\.json is not a baseline") as caught:
        report.write(mine, tmp_path / "r.json", baseline=tmp_path / "b.json")
    assert "export --to baseline" in caught.value.hint
    assert not (tmp_path / "r.json").exists()


SPREAD = {"signal": "corpus.autonomy_ratio", "version": 1, "n": 9, "mean": 1.0, "sd": 1.0, "quantiles": [1.0] * 5}
RATE = {"turn": "1", "n": 40, "negative": 4}


@pytest.mark.parametrize(
    ("facts", "told_why"),
    [
        ({"form": 2}, "format 2"),
        ({"context": "<script>"}, "neither product nor eval"),
        ({"sessions": -1}, ">= 0"),
        ({"measures": [SPREAD, SPREAD]}, "duplicated"),
        ({"measures": [{**SPREAD, "quantiles": [1.0]}]}, "quantiles"),
        ({"measures": [{**SPREAD, "mean": 1e300}]}, "out of range"),
        ({"negative_by_turn": [{**RATE, "turn": "<b>"}]}, "a turn number is invalid"),
        ({"negative_by_turn": [RATE, RATE]}, "duplicated"),
        ({"negative_by_turn": [{**RATE, "negative": 41}]}, "more NEGATIVE"),
        ({"negative_by_turn": [{**RATE, "n": 0, "negative": 0}]}, "more NEGATIVE"),
        ({"negative_by_turn": [{**RATE, "high": 1.5}]}, "<= 1"),
    ],
)
def test_impossible_figures_are_refused(
    mine: Store, file: Path, tmp_path: Path, facts: dict[str, Any], told_why: str
) -> None:
    with pytest.raises(BaselineError) as caught:
        report.write(mine, tmp_path / "r.json", baseline=changed(file, tmp_path, **facts))
    assert told_why in caught.value.message


def test_the_share_that_rules_for_english_do_not_judge_stands_at_the_measure(
    mine: Store, file: Path, tmp_path: Path
) -> None:
    made = spreads([
        {"signal": "chat.pushback_rate", "version": 2, "low": True, "number": None if n % 4 else 0.5, "unjudged": n % 4}
        for n in range(20)
    ])  # fmt: skip
    assert [(spread.n, spread.not_judged) for spread in made] == [(5, 0.75)]
    measures = json.loads(file.read_text("utf-8"))["measures"]
    for measure in measures:
        if measure["signal"] == "chat.pushback_rate":
            measure["not_judged"] = 0.25
    section = told(mine, changed(file, tmp_path, measures=measures), tmp_path)
    rows = next(table["rows"] for table in section["tables"] if table["id"] == "baseline.measures")
    ends = {row["measure"]: row["warning"] for row in rows}
    assert ends["Prompts with pushback or after an interruption"].endswith(
        "baseline: 25.0% of sessions not judged: another language"
    )
    assert "not judged" not in ends["Tool calls per prompt"]


def test_measures_nobody_knows_are_passed_over(mine: Store, file: Path, tmp_path: Path) -> None:
    odd = {**SPREAD, "signal": "<script>alert(1)</script>"}
    section = told(mine, changed(file, tmp_path, measures=[odd, SPREAD]), tmp_path)
    assert [r["measure"] for r in section["tables"][0]["rows"]] == [MEASURES["corpus.autonomy_ratio"][0]]
    assert "<script>" not in json.dumps(section)


def test_a_file_that_is_not_there_is_a_clear_error(mine: Store, tmp_path: Path, capsys: Any) -> None:
    words = [
        "report",
        "--baseline",
        str(tmp_path / "no.json"),
        "-o",
        str(tmp_path / "r.md"),
        "--store",
        str(mine.folder),
    ]
    assert main(words) == 1
    assert "no.json: No such file" in capsys.readouterr().err


# -- arithmetic --------------------------------------------------------------------------------------------------------


def test_the_interval_of_a_difference_is_newcombes() -> None:
    """His example: 56 of 70 against 48 of 80 is 0.2, from 0.0524 to 0.3339 (1998, table II, method 10)."""
    gap = difference(Rate("1", 70, 56, 0.6917, 0.8773), Rate("1", 80, 48, 0.4902, 0.7001))
    assert gap is not None and gap == (pytest.approx(0.0524, abs=1e-3), pytest.approx(0.3339, abs=1e-3))
    assert difference(Rate("1", 70, 56), Rate("1", 80, 48, 0.1, 0.9)) is None


def test_what_does_not_vary_has_no_standardised_gap() -> None:
    same = Spread(signal="x", version=1, n=5, mean=1.0, sd=0.0, quantiles=[1.0] * 5)
    assert standardised(same, Spread(signal="x", version=1, n=5, mean=2.0, sd=0.0, quantiles=[2.0] * 5)) is None
