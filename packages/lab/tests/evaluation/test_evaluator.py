"""Our evaluator: what it takes for an answer, what it runs, whose fault it names."""

from __future__ import annotations

from typing import Any

import pytest
from agentsignals.errors import SandboxError

from agentsignals_lab import sandbox
from agentsignals_lab.coding_tasks import task
from agentsignals_lab.evaluation import agrees, evaluate, extract
from agentsignals_lab.sandbox import Limits

GOOD = "def safe_divide(a, b):\n    return a / b if b else None"
COUNTED = "from collections import Counter\n\nSMALL = 0\n\ndef f(x):\n    return Counter(x)[SMALL]\n"

FOUND: dict[str, tuple[str, str, str]] = {
    "a fence": (f"Sure!\n```python\n{GOOD}\n```\nDone.", GOOD),
    "no fence": (GOOD, GOOD),
    "a fence of tildes": (f"~~~py\n{GOOD}\n~~~", GOOD),
    "a fence that is never closed": (f"```python\n{GOOD}\n", GOOD),
    "the last of two versions": (f"```\ndef safe_divide(a, b): ...\n```\nBetter:\n```\n{GOOD}\n```", GOOD),
    "the one of two that parses": (f"```\n{GOOD}\n```\n```\ndef safe_divide(a, b:\n```", GOOD),
    "imports in a block before": (f"```\nimport math\n```\nthen\n```\n{GOOD}\n```", f"import math\n\n{GOOD}"),
    "chat around it": (f"Here is the function.\n\n{GOOD}\n\nIt returns None for zero.", GOOD),
    "an import after chat": (f"I need math:\nimport math\n{GOOD}\n", f"import math\n{GOOD}"),
    "cut off behind it": (f"{GOOD}\n\nprint(safe_divide(1,", GOOD),
    "tokenizer signs": ("ĊdefĠsafe_divide(a,Ġb):ĊĠĠĠĠreturnĠNoneĊ", "def safe_divide(a, b):\n    return None"),
    "line breaks of another system": (GOOD.replace("\n", "\r\n"), GOOD),
    "printed examples behind it": (
        f"{GOOD}\nx = safe_divide(1, 0)\nassert x\nLIMIT = 3\nprint(x)",
        f"{GOOD}\n\n\nLIMIT = 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_the_module_is_found_in(case: str) -> None:
    answer, source = FOUND[case]
    found = extract(answer, "safe_divide")
    assert (found.valid, found.source.strip("\n")) == (True, source)


def test_what_the_function_needs_stays() -> None:
    assert extract(f"```python\n{COUNTED}```", "f").source == COUNTED
    method = "class S:\n    def f(self, x):\n        return x\n"
    assert not extract(method, "f").valid


@pytest.mark.parametrize(("answer", "valid", "source"), [
    ("I can't help with that.", False, ""),
    ("def safe_divided(a, b):\n    return a", False, ""),
    ("def safe_divide(a, b:\n    return a", False, "def safe_divide(a, b:\n    return a\n"),
    ("", False, ""),
])  # fmt: skip
def test_no_function_and_no_python_are_told_apart(answer: str, valid: bool, source: str) -> None:
    found = extract(answer, "safe_divide")
    assert (found.valid, found.source) == (valid, source)


CLASSES: dict[str, tuple[str, str]] = {
    "return a / b if b else None": ("none", ""),
    "return None": ("wrong_value", "expected 3.0, got None"),
    "return 1 / 0": ("raised", "ZeroDivisionError"),
    "import pandas": ("import_failed", "pandas"),
    "return Counter(a)": ("raised", "Counter"),
    "while True: pass": ("timeout", "longer"),
    "return bytearray(1 << 40)": ("memory", ""),
    "import os; os._exit(0)": ("crashed", ""),
    "return object()": ("no_plain_value", "object"),
}  # fmt: skip


@pytest.mark.parametrize("body", CLASSES)
def test_whose_fault_it_is(body: str) -> None:
    wanted, said = CLASSES[body]
    found = evaluate(
        task("safe_divide"),
        f"def safe_divide(a, b):\n    {body}",
        Limits(wall_s=1.0),
    )
    assert found.error_class == wanted
    assert said in found.error
    assert found.full_pass is (wanted == "none")
    assert (found.evaluator, found.tier) == ("1", "strict")


def test_a_module_that_fails_while_it_loads_is_none_of_the_functions_fault_but_the_models() -> None:
    found = evaluate(task("safe_divide"), f"raise KeyError('early')\n{GOOD}")
    assert found.error_class == "load_failed"
    assert evaluate(task("safe_divide"), f"import numpy_of_mine\n{GOOD}").error_class == "import_failed"


def test_a_machine_without_room_is_not_the_models_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: Any, **_more: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(sandbox, "call", full)
    found = evaluate(task("safe_divide"), GOOD)
    assert (found.error_class, found.full_pass, found.visible_pass) == ("infrastructure", None, None)


def test_nothing_runs_where_it_cannot_be_locked_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_args: Any, **_more: Any) -> None:
        raise SandboxError("no", "no")

    monkeypatch.setattr(sandbox, "call", refuses)
    with pytest.raises(SandboxError):
        evaluate(task("safe_divide"), GOOD)


def test_expected_values_never_go_in(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = sandbox.call

    def listening(source: str, function: str, inputs: Any, *more: Any) -> Any:
        seen.append(repr((source, function, inputs)))
        return real(source, function, inputs, *more)

    monkeypatch.setattr(sandbox, "call", listening)
    evaluate(task("normalize_codes"), "def normalize_codes(codes):\n    return codes")
    assert len(seen) == 2
    assert not any("'RT'" in told or "'PQ'" in told for told in seen)


def test_an_error_names_the_first_case_that_fails_visible_before_hidden() -> None:
    found = evaluate(task("safe_divide"), "def safe_divide(a, b):\n    return a / b if a and b else None")
    assert (found.visible_pass, found.hidden_pass, found.hidden_passed) == (
        True,
        False,
        len(task("safe_divide").hidden) - 1,
    )
    assert found.error == "expected 0.0, got None"


@pytest.mark.parametrize(("actual", "expected", "same"), [
    (2, 2.0, True), ((1, 2), [1, 2], True), (True, 1, False), ("1", 1, False), (float("nan"), float("nan"), False),
    ({"a": (1,)}, {"a": [1]}, True), ({1: 2}, {True: 2}, False), (None, 0, False), ([], None, False),
])  # fmt: skip
def test_values_agree(actual: Any, expected: Any, same: bool) -> None:
    assert agrees(actual, expected) is same
