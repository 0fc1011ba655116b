"""Findings of a retry loop from rows that are written here: rates, pairs, intervals, what is not concluded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agentsignals.cli import main
from agentsignals.errors import LabError
from agentsignals.questions.question import Table
from agentsignals.stats.intervals import wilson
from agentsignals.ui.report import write_document
from msgspec import to_builtins

from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.report import OUTCOMES, paired, paired_table, parts, rate, sections
from agentsignals_lab.retry_loop import AttemptRow, EpisodeRow, ManipulationRow, ProjectionRow
from agentsignals_lab.runs import Config, Manifest, Row, Run
from agentsignals_lab.verbs import document

FULL = OUTCOMES["full pass"]


def episode(condition: str, task: int, full: bool | None, sample: int = 0, **more: Any) -> EpisodeRow:
    told: dict[str, Any] = {
        "condition": condition, "task": f"t{task}@1", "sample": sample, "attempts": 2, "visible_pass": full,
        "hidden_pass": full, "full_pass": full, "failed_first": True, "recovered": bool(full), "passed_at": None,
        "regressed": 0, "repeated": 0, "hardcoded": False, "evaluator": "1", "tier": "default",
    }  # fmt: skip
    return EpisodeRow(**(told | more))


def attempt(row: EpisodeRow, number: int = 0, **more: Any) -> AttemptRow:
    told: dict[str, Any] = {
        "condition": row.condition, "task": row.task, "sample": row.sample, "attempt": number, "seed": 1,
        "prompt_tokens": 5, "tokens": 7, "finish": "stop", "logprob_sum": None, "answer": "", "source": "",
        "feedback": "", "error": "", "error_class": "none", "valid_python": True, "visible_pass": row.visible_pass,
        "hidden_pass": row.hidden_pass, "full_pass": row.full_pass, "visible_passed": 1, "n_visible": 1,
        "hidden_passed": 1, "n_hidden": 1, "hardcoded": False,
        "marker_score": 0,
        "frustration_per_100_words": None, "desperation_per_100_words": None, "give_up_per_100_words": None,
        "prose_words": 0, "evaluator": "1", "tier": "default", "wall_time_s": 0.1,
    }  # fmt: skip
    return AttemptRow(**(told | more))


def written(
    folder: Path,
    rows: list[EpisodeRow],
    seed: int = 1,
    *,
    invalid: str = "",
    name: str = "m",
    conditions: Sequence[Condition] = (),
) -> Run:
    run = Run.open(
        folder,
        Config("retry_loop", {"conditions": to_builtins(conditions)} if conditions else {}),
        Manifest(
            model={"name": name}, evaluator="1", texts="t", sandbox="default", seed=seed, packages={}, started_at="now"
        ),
    )
    with run:
        run.table("attempts", AttemptRow).add([attempt(r, valid_python=r.condition != invalid) for r in rows])
        run.table("episodes", EpisodeRow).add(rows)
    return run


def table(run: Run, name: str) -> list[dict[str, Any]]:
    (found,) = (t for part in parts(run) for t in part.tables if t.id == name)
    return objects(found)


def objects(found: Table) -> list[dict[str, Any]]:
    return [dict(zip([c.key for c in found.columns], row, strict=True)) for row in found.rows]


def test_one_sample_a_task_has_wilsons_interval() -> None:
    found = rate([episode("c", n, n < 17) for n in range(20)], FULL)
    assert (found.yes, found.n, found.tasks) == (17, 20, 20)
    assert found.interval == wilson(17, 20)
    # design/lab.md#power: 17 of 20 is [0.64, 0.95].
    assert found.interval_text == "64.0% to 94.8%"


def test_samples_of_one_task_are_no_more_tasks() -> None:
    rows = [episode("c", n, n < 5, sample) for n in range(10) for sample in range(8)]
    found = rate(rows, FULL)
    plain = wilson(40, 80)
    assert found.interval is not None
    assert plain is not None
    assert found.interval[1] - found.interval[0] > 2 * (plain[1] - plain[0])


@pytest.mark.parametrize("passes", [True, False])
def test_samples_that_are_all_alike_are_no_certainty(passes: bool) -> None:
    found = rate([episode("c", n, passes, sample) for n in range(4) for sample in range(5)], FULL)
    assert found.interval == wilson(4 * passes, 4)


def test_answers_that_could_not_be_run_count_nowhere() -> None:
    found = rate([episode("c", 0, True), episode("c", 1, None), episode("c", 2, None)], FULL)
    assert (found.value, found.n) == (1.0, 1)
    assert (rate([episode("c", 0, None)], FULL).value, rate([episode("c", 0, None)], FULL).interval) == (None, None)


def test_pairs_are_of_one_task_and_sample() -> None:
    control = [episode("baseline", n, n < 2, s) for n in range(4) for s in range(2)]
    treated = [episode("c", n, n != 0, s) for n in range(1, 6) for s in range(2)]
    found = paired("c", "full pass", treated, control)
    assert found is not None
    # Tasks 1, 2, 3 are in both: 1 stays, 2 and 3 are gained, each in two samples.
    assert (found.difference.n, found.difference.tasks, found.gained, found.lost) == (6, 3, 4, 0)
    assert found.difference.value == pytest.approx(4 / 6)
    assert found.unpaired == 8 + 10 - 12
    assert found.mcnemar is None, "two samples of a task are not independent"
    assert paired("c", "full pass", [episode("c", 9, True)], control) is None


def test_mcnemars_p_and_the_correction_over_conditions() -> None:
    control = [episode("baseline", n, False) for n in range(10)]
    groups = {"much": 10, "little": 1, "nothing": 0}
    found = [
        one for name, k in groups.items()
        if (one := paired(name, "full pass", [episode(name, n, n < k) for n in range(10)], control))
    ]  # fmt: skip
    much, little, nothing = objects(paired_table("t", "T", found))
    assert much["mcnemar"] == f"{2 / 2**10:.3g}"
    assert (little["mcnemar"], little["changed"]) == ("1", "+1, -0")
    assert float(much["q"]) == pytest.approx(3 * float(much["p"]), rel=0.01), "one of three, and the smallest"
    assert float(nothing["q"]) == 1
    assert much["interval"] == "+44.5 to +100.0 points", "all pairs alike is no certainty"
    assert nothing["interval"] == "-27.8 to +27.8 points"
    assert little["interval"] is not None


def test_the_report_counts_by_condition_with_the_baseline_first(tmp_path: Path) -> None:
    rows = [episode("up", n, n < 3, failed_first=n < 4, recovered=n < 3, hardcoded=n == 0) for n in range(5)]
    rows += [episode("baseline", n, n == 0) for n in range(4)] + [episode("baseline", 4, None)]
    run = written(tmp_path / "run", rows)
    base, up = table(run, "lab.conditions")
    assert (base["condition"], base["full"], base["unknown"], base["recovered"]) == ("baseline", 0.25, 1, "1 of 5")
    assert (up["full"], up["recovered"], up["hardcoded"], up["valid"]) == (0.6, "3 of 4", 0.2, 1.0)
    against = {row["outcome"]: row for row in table(run, "lab.against")}
    assert (against["full pass"]["pairs"], against["full pass"]["difference"]) == (4, "+50.0 points")
    assert (against["hardcoded"]["pairs"], against["hardcoded"]["difference"]) == (5, "+20.0 points")
    assert any("2 episodes have no partner" in limit for part in parts(run) for limit in part.limits)


def steers(name: str, direction: str, dose: float = 1.0, where: Any = "prompt") -> Condition:
    return Condition(name=name, direction=direction, dose=dose, layers=(1,), where=where)


def test_a_condition_that_steers_is_held_against_random_directions_at_its_place_and_dose(tmp_path: Path) -> None:
    conditions = [
        BASELINE,
        steers("up", "calm"),
        steers("down", "calm", -1.0),
        steers("elsewhere", "calm", where="all"),
    ]
    conditions += [steers(f"up, random:{n}", f"random:{n}") for n in range(1, 40)]
    passes = {"baseline": 0, "up": 8, "down": 1, "elsewhere": 8} | {f"up, random:{n}": n % 4 for n in range(1, 40)}
    rows = [episode(name, n, n < many) for name, many in passes.items() for n in range(8)]
    run = written(tmp_path / "a", rows, conditions=conditions)
    against = {row["condition"]: row for row in table(run, "lab.against") if row["outcome"] == "full pass"}
    assert set(against) == {"up", "down", "elsewhere"}
    assert against["up"]["random"] == "0.025"
    assert against["down"]["random"] == f"{(1 + sum(n % 4 >= 1 for n in range(1, 40))) / 40:.3g}"
    assert float(against["up"]["random_adjusted"]) == pytest.approx(6 / 40)  # two conditions, three outcomes
    assert (against["elsewhere"]["random"], against["elsewhere"]["random_adjusted"]) == (None, None)
    limits = [limit for part in parts(run) for limit in part.limits]
    assert any("39 random directions are few for 6 tests" in limit for limit in limits)
    assert {row["condition"] for row in table(run, "lab.conditions")} == {"baseline", "up", "down", "elsewhere"}
    alone = written(tmp_path / "c", rows, conditions=[one for one in conditions if one.name not in ("up", "down")])
    assert len(table(alone, "lab.conditions")) == 43, "random directions that nothing is held against are shown"
    broken = written(tmp_path / "b", rows, conditions=conditions, invalid="up, random:3")
    (up, *_) = table(broken, "lab.against")
    assert up["random"] == f"{1 / 39:.3g}", "one that broke the model is no control"


def test_a_condition_that_breaks_the_model_is_told(tmp_path: Path) -> None:
    rows = [episode(name, n, n == 0) for name in ("baseline", "up") for n in range(4)]
    fine, broken = written(tmp_path / "a", rows), written(tmp_path / "b", rows, invalid="up")
    told = [
        [limit for part in parts(run) for limit in part.limits if "breaks the model" in limit] for run in (fine, broken)
    ]
    assert [len(one) for one in told] == [0, 1]
    assert told[1][0].startswith("'up'")


def test_projections_and_checks_are_there_where_the_run_has_them(tmp_path: Path) -> None:
    run = written(tmp_path, [episode("baseline", n, True) for n in range(2)])
    assert [part.study for part in parts(run)] == ["conditions", "against", "attempts"]
    with run:
        run.table("projections", ProjectionRow).add(
            ProjectionRow(condition="baseline", task="t0@1", sample=0, attempt=0, direction="calm", layer=1, span=span,
                          cosine=value, coordinate=value)
            for span, value in (("all", 0.5), ("code", None))
        )  # fmt: skip
        run.table("manipulation", ManipulationRow).add(
            [
                ManipulationRow(condition="up", verdict="moved", kl=0.25, shift=None, anti_steered=0.125, n=3),
                ManipulationRow(condition="weak", verdict="nothing", kl=0, noise=0, shift=0, anti_steered=0, n=3),
                ManipulationRow(
                    condition="nowhere", verdict="not testable", kl=None, shift=None, anti_steered=None, n=0
                ),
            ]
        )
    again = Run.read(tmp_path)
    assert table(again, "lab.projections") == [
        {"direction": "calm", "layer": 1, "span": "all", "attempt": 0, "condition": "baseline", "n": 1,
         "cosine": 0.5, "coordinate": 0.5}
    ]  # fmt: skip
    assert [(row["condition"], row["verdict"], row["kl"], row["n"]) for row in table(again, "lab.manipulation")] == [
        ("up", "moved", "0.25", 3), ("weak", "nothing", "0", 3), ("nowhere", "not testable", None, 0),
    ]  # fmt: skip
    (checks,) = [part for part in parts(again) if part.study == "manipulation"]
    weak, nowhere = checks.limits
    assert weak.startswith("'weak' moved the next token no more than rounding")
    assert nowhere.startswith("'nowhere' could not be checked")


class Effect(Row, frozen=True):
    KEY = ("name",)
    name: str
    value: float | None
    many: tuple[int, ...] = ()


def test_a_run_of_any_experiment_is_shown_as_its_summaries_and_rows(tmp_path: Path) -> None:
    run = Run.open(
        tmp_path,
        Config("patching", {"layers": [1, 2]}),
        Manifest(model={}, evaluator="1", texts="t", sandbox="default", seed=1, packages={}, started_at="now"),
    )
    with pytest.raises(LabError, match="no result yet"):
        sections(run)
    with pytest.raises(LabError, match="not of a retry loop"):
        parts(run)
    with run:
        run.table("measured", Effect).add([Effect(f"e{n}", n / 3, (n, n)) for n in range(600)])
        run.table("when_all_is_over", Effect).add([Effect("all", 0.5)])
    run.write_summary("chosen", {"layer": 2, "by": {"auroc": 0.98765}, "all": [{"p": None}]})
    made = {t.id: t for part in sections(run) for t in part.tables}
    assert made["lab.chosen"].rows == [["layer", "2"], ["by.auroc", "0.9877"], ["all[0].p", None]]
    rows = [name for name in made if name.startswith("lab.rows.")]
    assert rows == ["lab.rows.when_all_is_over", "lab.rows.measured"], "the answer, then what it was seen in"
    assert (made["lab.rows.measured"].n, len(made["lab.rows.measured"].rows)) == (600, 500)
    assert made["lab.rows.measured"].rows[1] == ["e1", "0.3333", "[1,1]"]
    assert ["layers", "[1,2]"] in made["lab.settings"].rows
    path = write_document(document(run), tmp_path / "r.json", {})
    assert json.loads(path.read_text("utf-8"))["about"] == "Patching of a model"


def test_a_run_without_an_episode_has_no_report(tmp_path: Path) -> None:
    run = Run.open(
        tmp_path,
        Config("retry_loop", {}),
        Manifest(model={}, evaluator="1", texts="t", sandbox="default", seed=1, packages={}, started_at="now"),
    )
    with pytest.raises(LabError, match="no finished episode"):
        parts(run)


def test_a_run_of_directions_and_of_the_grid_has_its_curves(tmp_path: Path) -> None:
    """As tables that the experiments write, without NumPy."""

    class Separated(Row, frozen=True):
        KEY = ("recipe", "layer")
        recipe: str
        learnt_from: str
        judged_on: str
        layer: int
        auroc: float
        low: float | None
        high: float | None

    class Cell(Row, frozen=True):
        KEY = ("intervention", "tone", "part", "dose")
        intervention: str
        tone: str
        place: str
        source: str
        layer: int | None
        dose: float | None
        part: str
        outcome: str
        effect: float | None
        low: float | None
        high: float | None

    class Probed(Row, frozen=True):
        KEY = ("stage", "item", "span")
        stage: str
        item: int
        span: str
        direction: str
        layer: int
        z: float

    manifest = Manifest(model={}, evaluator="1", texts="t", sandbox="strict", seed=1, packages={}, started_at="now")
    run = Run.open(tmp_path / "r", Config("grid", {}), manifest)
    with run:
        run.table("probe", Probed).add(
            Probed(stage, item, span, "tense", 3, z + item + (9 if span == "task" else 0))
            for stage, z in (("start", 0.0), ("end", 2.0))
            for item in (0, 1)
            for span in ("all", "task")
        )
        run.table("separation", Separated).add(
            Separated("contrast", "stories", "feedback", layer, 0.5 + layer / 10, None, None) for layer in (-1, 0, 1)
        )
        effects = run.table("effects", Cell)
        effects.add(
            Cell("steer", "calm", "feedback", "tense", 0, dose, part, "read", dose / 4, dose / 4 - 0.1, dose / 4 + 0.1)
            for part in ("dev", "test")
            for dose in (-1.0, 1.0)
        )
        effects.add(
            Cell("suppress", tone, "feedback", "", None, None, "all", "read", effect, None, None)
            for tone, effect in (("calm", 0.5), ("harsh", -0.5), ("none", None))
        )
    (rows,) = [part for part in sections(Run.read(tmp_path / "r")) if part.study == "rows"]
    separated, dosed, hidden, staged = rows.charts
    assert [(mark["at"], mark["value"]) for mark in separated.marks] == [(-1, 0.4), (0, 0.5), (1, 0.6)]
    assert separated.title == "Separation on held-out feedback by layer"
    assert [(mark["name"], mark["value"]) for mark in dosed.marks] == [("-1", -0.25), ("+1", 0.25)]
    assert hidden.title == "Effect of suppress on read"
    assert [(mark["name"], mark["value"]) for mark in hidden.marks] == [
        ("feedback, calm", 0.5),
        ("feedback, harsh", -0.5),
    ]
    assert [(mark["name"], mark["at"], mark["value"]) for mark in staged.marks] == [
        ("tense", 0, 0.5),
        ("tense", 1, 2.5),
    ]
    assert staged.title == "Projection by stage, layer 3: start, end"
    page = tmp_path / "page.html"
    assert main(["lab", "report", str(tmp_path / "r"), "-o", str(page), "--quiet"]) == 0
    assert page.read_text("utf-8").count("<svg") >= 4
