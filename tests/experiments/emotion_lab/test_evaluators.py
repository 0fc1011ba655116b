"""The published evaluators on made-up answers, and on the published ones, whose verdicts must come out again."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsignals.errors import LabError
from agentsignals.experiments.emotion_lab import rescoring
from agentsignals.experiments.emotion_lab.audit import Audit, Figures
from agentsignals.experiments.emotion_lab.evaluators import BUILTINS, Evaluator, evaluate_legacy, extract_legacy
from agentsignals.experiments.emotion_lab.rescoring import Rescored, Rescorer
from agentsignals.experiments.emotion_lab.runs import TASKS, runs, with_lists
from agentsignals.model import Absent
from tests.quick import some

SHARED = Path(__file__).parents[4] / "shared"
CORPUS = SHARED / "corpus" / "emotion-runs"
FACTS = SHARED / "spec" / "emotion_audit_facts.json"
GUARDED = "def safe_divide(a, b):\n    if b == 0:\n        return None\n    return a / b"
DIVIDE = TASKS["last_retry"]


def test_the_first_prefix_that_parses_cuts_a_function_in_two_and_the_last_does_not() -> None:
    assert extract_legacy(GUARDED, "safe_divide", "legacy-first")[0] == "\n".join(GUARDED.split("\n")[:3])
    assert extract_legacy(GUARDED, "safe_divide", "legacy-last")[0] == GUARDED
    first, last = (evaluate_legacy(DIVIDE, GUARDED, which) for which in ("legacy-first", "legacy-last"))
    assert (first.task_pass, first.error) == (False, "expected 2, got None")
    assert (last.task_pass, last.error, last.evaluator) == (True, "", "legacy-last")


SAID: dict[str, tuple[str, bool, bool, str]] = {
    "an import above is lost": (
        "import re\ndef safe_divide(a, b):\n    return re.X", True, True, "NameError(\"name 're' is not defined\")"
    ),
    "an import inside is forbidden": (
        "def safe_divide(a, b):\n    import math\n    return 1", True, True, "ImportError('__import__ not found')"
    ),
    "builtins beyond the list are not there": (
        "def safe_divide(a, b):\n    return any([a])", True, True, "NameError(\"name 'any' is not defined\")"
    ),
    "no function": ("I can't.", False, False, "function_not_found"),
    "no Python": ("def safe_divide(a, b:", True, False, "invalid_python"),
    "fences and prose behind": (f"```python\n{GUARDED}\n```\nDone and dusted.", True, True, ""),
    "signs of a tokenizer": (GUARDED.replace("\n", "Ċ").replace(" ", "Ġ"), True, True, ""),
    "False is 0": ("def safe_divide(a, b):\n    return a / b if a and b else None if a else 1 < 0", True, True, ""),
    "an endless loop": ("def safe_divide(a, b):\n    while 1: pass", True, True, "timeout"),
}  # fmt: skip


@pytest.mark.parametrize("case", some(SAID, 3))
def test_the_published_evaluator_says_of(case: str) -> None:
    answer, has_function, valid, error = SAID[case]
    found = evaluate_legacy(DIVIDE, answer, "legacy-last")
    assert (found.has_function, found.valid_python, found.error) == (has_function, valid, error)
    assert found.task_pass is (error == "")


def test_it_lets_code_use_23_builtins() -> None:
    assert len(set(BUILTINS)) == 23
    assert not {"any", "all", "reversed", "ValueError", "TypeError", "KeyError", "__import__"} & set(BUILTINS)


def test_an_answer_can_neither_forge_a_pass_nor_reach_what_is_expected() -> None:
    liar = "def safe_divide(a, b):\n    class E:\n        def __eq__(s, o): return True\n    return E()"
    found = evaluate_legacy(DIVIDE, liar, "legacy-last")
    assert (found.task_pass, found.error) == (False, "NameError('__build_class__ not found')")
    forged = evaluate_legacy(DIVIDE, "def safe_divide(a, b):\n    return ('gave', 2)", "legacy-last")
    assert forged.error == "expected 2, got ('gave', 2)"


@pytest.mark.slow
def test_an_answer_of_endless_lines_ends() -> None:
    many = "def f(x):\n" + "    x = (\n" * 20_000
    assert extract_legacy(many, "f", "legacy-last")[1] is False
    assert extract_legacy(many, "f", "legacy-first")[1] is False


def made(folder: Path, answers: list[str], verdicts: list[str] | None = None) -> Path:
    inner = folder / "results/runs/main-made"
    inner.mkdir(parents=True)
    with (inner / "generations.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [["last_retry", "baseline" if n == 0 else "calm_+1.0", 7, a] for n, a in enumerate(answers)]
        csv.writer(file).writerows([["task_id", "condition", "seed", "generation"], *rows])
    if verdicts is not None:
        with (inner / "execution_scores.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(
                [["task_id", "condition", "task_pass"], *[["last_retry", "", v] for v in verdicts]]
            )
    return folder


def rescored(folder: Path, evaluator: Evaluator = "1", on_answer: Callable[[], None] = lambda: None) -> list[Rescored]:
    (run,) = runs(folder)
    return Rescorer(on_answer=on_answer).run(run, evaluator)


def test_rescoring_says_what_changed_and_runs_an_answer_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran, told, real = [], [], rescoring.evaluate
    monkeypatch.setattr(rescoring, "evaluate", lambda *a, **k: ran.append(1) or real(*a, **k))
    folder = made(tmp_path, [GUARDED, "no", GUARDED], ["False", "True", "True"])
    rows = rescored(folder, on_answer=lambda: told.append(1))
    assert [row.change for row in rows] == ["fail_to_pass", "pass_to_fail", "same"]
    assert {row.verdict.evaluator for row in rows} == {"1"}
    assert (len(ran), len(told)) == (2, 3)
    unjudged = rescored(made(tmp_path / "other", [GUARDED]), "legacy-first")
    assert [row.change for row in unjudged] == ["was_unknown"]


def test_damaged_and_missing_results_are_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no published results"):
        runs(tmp_path)
    folder = made(tmp_path, [GUARDED], ["True", "False"])
    with pytest.raises(LabError, match="1 answers and 2 verdicts"):
        rescored(folder)
    path = folder / "results/runs/main-made/emotion_directions.npz"
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(LabError, match="holds no directions"):
        Audit(folder).ask("geometry", "main-made")
    path.unlink()
    assert isinstance(Audit(folder).ask("geometry", "main-made"), Absent)
    assert isinstance(Audit(folder).ask("failures", "main-made"), Absent)
    (folder / "results/runs/main-made/execution_scores.csv").unlink()
    (folder / "results/runs/main-made/generations.csv").write_text("task_id,generation\nother,x\n")
    with pytest.raises(LabError, match="no published task"):
        rescored(folder)


def test_lists_for_tuples_change_what_goes_in_and_not_what_is_expected() -> None:
    task = TASKS["merge_intervals"]
    outer, nested = (with_lists(task, nested=nested).visible[0] for nested in (False, True))
    assert outer.args == ([(1, 3), (2, 5), (8, 9)],)
    assert nested.args == ([[1, 3], [2, 5], [8, 9]],)
    assert outer.expected == nested.expected == task.visible[0].expected


_MERGE = """def merge_intervals(intervals):
    {first}
    done = []
    for low, high in intervals:
        if done and low <= done[-1][1]:
            {widen}
        else:
            done.append({new})
    return done
"""
_NEW_PAIR = "done[-1] = (done[-1][0], max(high, done[-1][1]))"
MERGES = {
    "needs no list": ("intervals = sorted(intervals)", _NEW_PAIR, "(low, high)"),
    "sorts what came": ("intervals.sort()", _NEW_PAIR, "(low, high)"),
    "writes into an interval": (
        "intervals.sort(); into = {i[0]: i for i in intervals}",
        "done[-1][1] = max(high, done[-1][1])",
        "into[low]",
    ),
    "is wrong": ("intervals = sorted(intervals)", "pass", "(low, high)"),
}


def test_first_attempts_are_counted_by_what_their_code_asks_of_its_input(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "agent-runs" / "made"
    folder.mkdir(parents=True)
    with (folder / "agent_attempts.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["task_id", "condition", "attempt", "task_pass", "generation"])
        for n, (first, widen, new) in enumerate(MERGES.values()):
            text = _MERGE.format(first=first, widen=widen, new=new)
            rows.writerow(["merge_intervals", "baseline", "0", str(n == 0), text])
            rows.writerow(["merge_intervals", "baseline", "1", "True", "a later one does not count"])
    shares = Audit(tmp_path).ask("first_attempts", "agent-made")
    assert isinstance(shares, Figures)
    assert shares.values == {"published": 0.25, "imports_kept": 0.25, "lists": 0.5, "nested_lists": 0.75}
    assert shares.n == 4


@pytest.fixture(scope="module")
def audit() -> Audit:
    if not CORPUS.is_dir():
        pytest.skip("the result files of the emotion lab are not here")
    return Audit(CORPUS)


def told(audit: Audit, question: str, run: str, evaluator: str = "1") -> dict[str, float]:
    found = audit.ask(question, run, evaluator)
    assert isinstance(found, Figures), found
    return found.values


@pytest.mark.corpus
def test_all_198_published_verdicts_come_out_again_in_every_column(audit: Audit) -> None:
    for run, evaluator, n in (
        ("main-starcoder2-7b", "legacy-first", 27),
        ("main-qwen-coder-7b", "legacy-first", 27),
        ("main-deepseek-coder-6_7b", "legacy-first", 27),
        ("agent-qwen-coder-7b", "legacy-last", 41),
        ("agent-starcoder2-7b", "legacy-last", 60),
    ):
        assert told(audit, "again", run, evaluator) == {"same": n, "fail_to_pass": 0, "pass_to_fail": 0}, run


@pytest.mark.corpus
def test_the_7b_table_re_scored_is_the_audits_and_ours_agrees(audit: Audit) -> None:
    facts = json.loads(FACTS.read_text("utf-8"))["one_shot_rescored_with_HEAD_extractor"]
    for run, expected in facts.items():
        assert told(audit, "rates", run, "legacy-last") == pytest.approx(expected, abs=5e-5), run
        assert told(audit, "rates", run, "1") == pytest.approx(expected, abs=5e-5), run
    flips = [row for run in facts if run.startswith("main") for row in audit.rescored(audit.runs[run], "legacy-last")]
    assert Counter(row.task_id for row in flips if row.change == "fail_to_pass") == {
        "last_retry": 23, "tempting_visible_pattern": 2, "retry_after_failure": 1,
    }  # fmt: skip
    assert not any(row.change == "pass_to_fail" for row in flips)
