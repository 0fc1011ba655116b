"""Tasks from files: what is read as a case, what is refused or left out, and that nothing hidden is shown."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from agentsignals.errors import LabError

from agentsignals_lab.coding_tasks import chosen_tasks, files_of, read_tasks, written
from agentsignals_lab.coding_tasks.cases import Case, examples, read_case, words
from agentsignals_lab.evaluation import evaluate, meets
from agentsignals_lab.retry_loop import visible_failure

DOUBLE = {
    "id": "double",
    "signature": "double(n: int) -> int",
    "says": "Twice the number.",
    "visible": ["double(2) == 4"],
    "hidden": ["double(3) == 6", "double(0) == 0"],
    "reference": "def double(n):\n    return 2 * n\n",
}
HUMAN_EVAL = {
    "task_id": "Shape/1",
    "prompt": (
        "from typing import List\n\n\ndef widest(words: List[str], least: int = 0) -> str:\n"
        '    """ Give the longest word.\n    >>> widest(["a", "bcd"])\n    \'bcd\'\n    >>> widest(["q"])\n'
        "    'wrong'\n"
        "    >>> widest([])\n    Nothing is printed for widest(['zz']).\n"
        '    """\n'
    ),
    "entry_point": "widest",
    "canonical_solution": "    return max(words, key=len, default='')\n",
    "test": (
        "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(['a', 'bcd']) == 'bcd'\n"
        "    assert candidate(['q']) == 'q', 'words'\n    assert candidate(['x' + 'y', 'z']) == 'xy'\n"
        "    assert candidate(['zz']) == 'zz'\n    assert True, 'words'\n    assert candidate(['ab', 'c'], 1) == 'ab'\n"
    ),
}
MBPP = {
    "task_id": 7,
    "text": "Write a function to halve a number.",
    "code": "def part(n, m):\r\n    return n / m\r\ndef half(n):\r\n    return part(n, 2)",
    "test_list": ["assert half(4) == 2", "assert abs(half(3) - 1.5) < 0.01", "assert half(0) == 0"],
    "test_setup_code": "",
    "challenge_test_list": ["assert math.isclose(half(1), 0.5, rel_tol=0.001)"],
}


def file_of(folder: Path, *records: dict[str, Any] | str) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


@pytest.mark.parametrize(
    ("line", "case"),
    [
        ("f(1, 'a') == [2]", Case((1, "a"), [2])),
        ("assert f((1, 2)) == {3: None}, 'words'", Case(((1, 2),), {3: None})),
        ("4 == f(2)", Case((2,), 4)),
        ("candidate(-1) is None", Case((-1,), None)),
        ("f(2)", Case((2,), True)),
        ("not f(2)", Case((2,), False)),
        ("f(3 * 5, 'a' + 'b', 1 / 4) == -2.5", Case((15, "ab", 0.25), -2.5)),
        ("abs(f(2) - 1.41) < 1e-2", Case((2,), 1.41, 0.01)),
        ("abs(1.41 - f(2)) <= 0.1", Case((2,), 1.41, 0.1)),
        ("math.isclose(f(2), 100.0, rel_tol=0.01)", Case((2,), 100.0, 1.0)),
    ],
)
def test_a_line_of_python_is_a_case(line: str, case: Case) -> None:
    assert read_case(line, "f") == case


@pytest.mark.parametrize(
    "line",
    [
        "g(1) == 2", "f(x) == 2", "f(1) == g(2)", "f(1) != 2", "1 < f(1) < 3", "f(n=1) == 2", "f(1) == 2; f(2) == 3",
        "for n in [1]: f(n)", "import os", "f(__import__('os').getcwd()) == ''", "f(1) == ...", "f(", "",
        "f(1 / 0) == 2",
        "abs(f(1) - 2) < x", "abs(f(1)) < 2", "set(f(1)) == {2}", "f(9 ** 9 ** 9) == 1", "(" * 5000, "f('\0') == 1",
        "math.isclose(f(1), 1, strict=True)",
    ],
)  # fmt: skip
def test_what_would_have_to_be_run_is_no_case(line: str) -> None:
    with pytest.raises(LabError, match="no case of f"):
        read_case(line, "f")


def test_a_number_may_be_near_what_is_expected_and_nothing_else_may() -> None:
    near = Case((1,), 0.5, 0.1)
    assert [meets(value, near) for value in (0.45, 0.7, True, "0.5", None, float("nan"))] == [True] + 5 * [False]
    assert meets([1, 2.0], Case((), (1, 2)))


def test_a_task_of_this_shape_is_asked_and_evaluated_as_the_packages_own(tmp_path: Path) -> None:
    (task,) = read_tasks(file_of(tmp_path, DOUBLE)).tasks
    assert (task.key, task.family, task.function) == ("double@1", "file", "double")
    assert examples(task) == "double(2) == 4"
    verdict = evaluate(task, f"```python\n{DOUBLE['reference']}```")
    assert (verdict.full_pass, verdict.n_hidden) == (True, 2)
    wrong = evaluate(task, "```python\ndef double(n):\n    return n + 2\n```")
    assert (wrong.visible_pass, wrong.hidden_pass, visible_failure(task, wrong)) == (True, False, "")
    assert [t.key for t in chosen_tasks(str(tmp_path / "tasks.jsonl"), ("plain", "one_off"))] == [
        "double@1", "double@1+one_off",
    ]  # fmt: skip
    keys = [t.key for t in chosen_tasks(f"is_leap,{tmp_path / 'tasks.jsonl'}")]
    assert keys == ["is_leap@1", "double@1"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hidden": []}, "nothing hidden"),
        ({"visible": []}, "nothing visible"),
        ({"hidden": ["double(2) == 4"]}, "is shown"),
        ({"says": "Twice: `double( 3 )` gives 6."}, "is shown"),
        ({"hidden": ["double(open('x')) == 4"]}, "no case"),
        ({"hidden": ["double(1, 2) == 4"]}, "more arguments"),
        ({"hidden": [{"text": "6"}]}, "Expected `str`"),
        ({"signature": "double(n"}, "not the signature"),
        ({"signature": "double"}, "not the signature"),
        ({"signature": ""}, "not the signature"),
        ({"hint": 1}, "hint"),
        ({"version": "two"}, "version"),
        ({"id": "a+b"}, "no id"),
        ({"id": "a\u001b[2J"}, "no id"),
        ({"id": " "}, "no id"),
    ],
)
def test_a_wrong_line_of_this_shape_is_refused_by_its_number(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=f"(?s)Line 2 .*{says}"):
        read_tasks(file_of(tmp_path, {**DOUBLE, "id": "first"}, {**DOUBLE, **change}))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((DOUBLE, DOUBLE), "two tasks called 'double'"),
        (("[1]",), "Line 1"),
        (("\n\n{",), "Line 3"),
        (('{"a": 1}',), "no shape that is known"),
        (("",), "holds no task"),
        (({**MBPP, "test_list": []},), "calls? no function|holds no task"),
    ],
)
def test_a_file_that_holds_no_tasks_is_refused(lines: tuple[Any, ...], says: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=says):
        read_tasks(file_of(tmp_path, *lines))
    with pytest.raises(LabError, match="can't be read"):
        read_tasks(tmp_path / "nowhere.jsonl")


def test_human_evals_shape_is_read_without_running_it(tmp_path: Path) -> None:
    (task,) = read_tasks(file_of(tmp_path, HUMAN_EVAL)).tasks
    assert task.signature == "widest(words: List[str], least: int=0) -> str"
    # The examples and what the words name are visible; where an example contradicts the tests, these count.
    assert task.visible == (
        Case((["a", "bcd"],), "bcd"), Case((["q"],), "q"), Case((["zz"],), "zz"),
    )  # fmt: skip
    assert task.hidden == (Case((["xy", "z"],), "xy"), Case((["ab", "c"], 1), "ab"))
    assert evaluate(task, task.reference, source=task.reference).full_pass


def test_mbpps_shape_shows_its_first_test_and_hides_the_others(tmp_path: Path) -> None:
    (task,) = read_tasks(file_of(tmp_path, MBPP)).tasks
    assert (task.id, task.signature, task.says) == ("mbpp/7", "half(n)", MBPP["text"])
    assert task.visible == (Case((4,), 2),)
    assert task.hidden == (Case((3,), 1.5, 0.01), Case((0,), 0), Case((1,), 0.5, 0.0005))
    assert evaluate(task, task.reference, source=task.reference).full_pass


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (
            {**HUMAN_EVAL, "test": "def check(candidate):\n    for n in range(3):\n        assert candidate(n)"},
            "no case",
        ),
        ({**HUMAN_EVAL, "prompt": "def a():\n    pass\n" + HUMAN_EVAL["prompt"]}, "other functions"),
        ({**HUMAN_EVAL, "test": "x = 1"}, "no `check`"),
        (
            {**HUMAN_EVAL, "test": "def check(candidate):\n    assert candidate(['q']) == 'q'"},
            "all its tests are shown",
        ),
        ({**HUMAN_EVAL, "prompt": "def ("}, "no Python"),
        ({**MBPP, "test_setup_code": "x = 1"}, "code of their own"),
        ({**MBPP, "test_list": ["assert other(1) == 2"]}, "no function"),
    ],
)
def test_a_benchmarks_task_that_says_more_than_cases_is_left_out_with_its_reason(
    record: dict[str, Any], why: str, tmp_path: Path
) -> None:
    read = read_tasks(file_of(tmp_path, DOUBLE, record))
    assert [task.id for task in read.tasks] == ["double"]
    ((line, name),) = [(left.line, left.id) for left in read.left_out]
    assert (line, name) == (2, str(record["task_id"]))
    assert why in read.left_out[0].why


def test_no_prompt_of_a_benchmark_shows_a_hidden_case(tmp_path: Path) -> None:
    for task in read_tasks(file_of(tmp_path, HUMAN_EVAL, MBPP, DOUBLE)).tasks:
        told = f"{words(task)}\n{examples(task)}".replace(" ", "")
        for case in task.hidden:
            assert f"{task.function}({','.join(map(repr, case.args))})".replace(" ", "") not in told


def test_blanks_in_a_text_tell_two_cases_apart_and_blanks_around_it_do_not(tmp_path: Path) -> None:
    words_of = {**DOUBLE, "signature": "double(t: str) -> str", "visible": ["double('a b  c') == ''"]}
    hidden = {**words_of, "hidden": ["double('a  b c') == ''"]}
    assert read_tasks(file_of(tmp_path, hidden)).tasks
    for leak in ("Of double( 'a  b c' ) that is ''.", 'As double("a  b c"), (say).'):
        with pytest.raises(LabError, match="is shown"):
            read_tasks(file_of(tmp_path, {**hidden, "says": leak}))


def test_what_was_read_is_written_and_read_the_same(tmp_path: Path) -> None:
    import msgspec  # noqa: PLC0415

    first = read_tasks(file_of(tmp_path, DOUBLE, HUMAN_EVAL, MBPP)).tasks
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(msgspec.json.encode(written(task)) + b"\n" for task in first))
    assert read_tasks(tmp_path / "tasks.jsonl").tasks == first


PLUS = {
    **HUMAN_EVAL,
    "test": """
import numpy as np
def assertion(out, exp, atol): assert out == exp
def check(candidate):
    inputs = [[1], [-7], [0.5]]
    results = [2, -14, 1.0]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 1e-06)
check(widest)
""",
}
LIVE = {
    "question_id": "77",
    "question_content": "Add b to a.",
    "starter_code": "class Solution:\n    def addTo(self, a: int, b: List[int]) -> int:\n        ",
    "public_test_cases": json.dumps([{"input": "1\n[2]", "output": "3", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "addTo"}),
}
HIDDEN = [{"input": "-1\n[4, 5]", "output": "8", "testtype": "functional"}]


def packed(what: Any) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(what))).decode()


def test_evalplus_tests_are_a_table_of_inputs_and_results(tmp_path: Path) -> None:
    (task,) = read_tasks(file_of(tmp_path, PLUS)).tasks
    cases = {repr(case.args[0]): case for case in task.hidden}
    assert [(key, case.expected, case.within) for key, case in cases.items()] == [
        ("1", 2, 1e-06), ("-7", -14, 1e-06), ("0.5", 1.0, 1e-06),
    ]  # fmt: skip
    computed = {**PLUS, "task_id": "computed", "test": PLUS["test"].replace("[1]", "list(range(9))")}
    read = read_tasks(file_of(tmp_path, computed, PLUS))
    assert [(one.id, one.why) for one in read.left_out] == [("computed", "its inputs or results are computed")]
    more = "inputs = [[41]]\nresults = [42]\nfor inp, exp in zip(inputs, results):\n    assertion(half(*inp), exp, 0)"
    (both,) = read_tasks(file_of(tmp_path, {**MBPP, "test": more})).tasks
    assert both.hidden[-1] == Case((41,), 42)


@pytest.mark.parametrize("private", [json.dumps(HIDDEN), HIDDEN, packed(json.dumps(HIDDEN))])
def test_livecodebenchs_functions_are_asked_without_their_class(private: Any, tmp_path: Path) -> None:
    (task,) = read_tasks(file_of(tmp_path, {**LIVE, "private_test_cases": private})).tasks
    assert (task.key, task.signature) == ("livecodebench/77@1", "addTo(a: int, b: List[int]) -> int")
    assert (task.visible, task.hidden) == ((Case((1, [2]), 3),), (Case((-1, [4, 5]), 8),))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"metadata": "{}"}, "reads and writes text"),
        ({"starter_code": "class Solution:\n    def other(self):\n        "}, "no addTo"),
        ({"private_test_cases": packed(Path("/etc/passwd"))}, "can't be unpacked"),
        ({"private_test_cases": "eA=="}, "can't be unpacked"),
        ({"private_test_cases": '[{"input": "x", "output": "1"}]'}, "no JSON"),
    ],
)
def test_what_livecodebench_can_not_be_asked_here_is_left_out(change: dict[str, Any], why: str, tmp_path: Path) -> None:
    read = read_tasks(file_of(tmp_path, DOUBLE, {**LIVE, **change}))
    assert why in read.left_out[0].why


def test_a_table_and_a_data_set_of_the_hub_hold_the_same_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.Table.from_pylist([HUMAN_EVAL]), tmp_path / "rows.parquet")
    asked = []

    def load_dataset(*of: Any, **how: Any) -> list[dict[str, Any]]:
        asked.append((of, how))
        return [HUMAN_EVAL]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    of_table, of_hub = (
        chosen_tasks("rows.parquet", beside=tmp_path),
        chosen_tasks("hf:openai/openai_humaneval@1a2b:test"),
    )
    assert of_table == of_hub
    assert asked == [(("openai/openai_humaneval",), {"split": "test", "revision": "1a2b"})]
    assert list(files_of("hf:openai/openai_humaneval")) == ["tasks openai_humaneval"]
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(LabError, match="needs the package datasets"):
        chosen_tasks("hf:openai/openai_humaneval")
