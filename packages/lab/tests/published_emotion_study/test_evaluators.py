"""The published evaluators on made-up answers; on the published ones, the claims of `emotion-lab` hold them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from agentsignals.errors import LabError
from agentsignals.model import Absent

from published_emotion_study import TASKS, rescoring, with_lists
from published_emotion_study.rescoring import BUILTINS, Row, evaluate_legacy, extract_legacy, rows_of
from tests.conftest import some

GUARDED = "def safe_divide(a, b):\n    if b == 0:\n        return None\n    return a / b"
DIVIDE = TASKS["last_retry"]


def test_the_first_prefix_that_parses_cuts_a_function_in_two_and_the_last_does_not() -> None:
    assert extract_legacy(GUARDED, "safe_divide", "legacy-first")[0] == "\n".join(GUARDED.split("\n")[:3])
    assert extract_legacy(GUARDED, "safe_divide", "legacy-last")[0] == GUARDED
    first, last = (evaluate_legacy(DIVIDE, GUARDED, which) for which in ("legacy-first", "legacy-last"))
    assert (first.task_pass, first.error) == (False, "expected 2, got None")
    assert (last.task_pass, last.error) == (True, "")


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
        lines = [["last_retry", "baseline" if n == 0 else "calm_+1.0", 7, a] for n, a in enumerate(answers)]
        csv.writer(file).writerows([["task_id", "condition", "seed", "generation"], *lines])
    if verdicts is not None:
        with (inner / "execution_scores.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(
                [["task_id", "condition", "task_pass"], *[["last_retry", "", v] for v in verdicts]]
            )
    return folder


def rows(folder: Path, table: str, run: str = "main-made", evaluator: str = "1") -> list[Row]:
    found = rows_of(folder, table, run, evaluator)
    assert isinstance(found, list), found
    return found


def test_rescoring_says_what_changed_and_runs_an_answer_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran, real = [], rescoring.evaluate
    monkeypatch.setattr(rescoring, "evaluate", lambda *a, **k: ran.append(1) or real(*a, **k))
    folder = made(tmp_path, [GUARDED, "no", GUARDED], ["False", "True", "True"])
    assert [row["change"] for row in rows(folder, "rescored")] == ["fail_to_pass", "pass_to_fail", "same"]
    assert len(ran) == 2
    unjudged = rows(made(tmp_path / "other", [GUARDED]), "rescored", evaluator="legacy-first")
    assert [row["change"] for row in unjudged] == ["was_unknown"]


def test_damaged_and_missing_results_are_told(tmp_path: Path) -> None:
    assert isinstance(rows_of(tmp_path, "rescored", "main-made", "1"), Absent)
    folder = made(tmp_path, [GUARDED], ["True", "False"])
    with pytest.raises(LabError, match="1 answers and 2 verdicts"):
        rows(folder, "rescored")
    path = folder / "results/runs/main-made/emotion_directions.npz"
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(LabError, match="cannot be read as emotion directions"):
        rows(folder, "directions")
    path.unlink()
    assert isinstance(rows_of(folder, "directions", "main-made", "1"), Absent)
    (folder / "results/runs/main-made/execution_scores.csv").unlink()
    (folder / "results/runs/main-made/generations.csv").write_text("task_id,generation\nother,x\n")
    with pytest.raises(LabError, match="no published task"):
        rows(folder, "rescored")


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
        written = csv.writer(file)
        written.writerow(["task_id", "condition", "attempt", "task_pass", "generation"])
        for n, (first, widen, new) in enumerate(MERGES.values()):
            text = _MERGE.format(first=first, widen=widen, new=new)
            written.writerow(["merge_intervals", "baseline", "0", str(n == 0), text])
            written.writerow(["merge_intervals", "baseline", "1", "True", "a later one does not count"])
    found = rows(tmp_path, "first_attempts", "agent-made")
    passes = {form: sum(row[form] for row in found) for form in ("published", "imports_kept", "lists", "nested_lists")}
    assert passes == {"published": 1, "imports_kept": 1, "lists": 2, "nested_lists": 3}
    assert len(found) == 4
