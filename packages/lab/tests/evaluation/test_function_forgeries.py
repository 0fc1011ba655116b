"""Answers to a function task that want to pass without being right."""

from __future__ import annotations

import pytest

from agentsignals_lab.coding_tasks.cases import Case, Task
from agentsignals_lab.evaluation import evaluate

SUMMARY = r"\nRan 3 tests in 0.001s\n\nOK\n"
TRIPLE = Task(
    id="triple",
    family="made-up",
    function="f",
    signature="f(x: int) -> int",
    says="Three times x.",
    visible=(Case((2,), 6), Case((5,), 15)),
    hidden=(Case((7,), 21), Case((-11,), -33)),
    reference="def f(x):\n    return 3 * x",
    wrong="def f(x):\n    return 3 * abs(x)",
)

FUNCTION_FORGERIES = {
    "prints and leaves": f"import os\nos.write(2, b'''{SUMMARY}''')\nos._exit(0)\ndef f(x): return 0",
    "leaves in the call": "import os\ndef f(x): os._exit(0)",
    "equals everything": "class A:\n    def __eq__(self, o): return True\ndef f(x): return A()",
    "a number that equals everything": "class A(int):\n    def __eq__(self, o): return True\ndef f(x): return A(1)",
    "a list of such": "class A:\n    def __eq__(self, o): return True\ndef f(x): return [A()]",
    "forged answers": "import os\nfor d in range(3, 4096):\n    for n in range(9):\n        try: os.write(d,"
    ' b\'{"at": %d, "value": 6}\\n\' % n)\n        except OSError: pass\ndef f(x): return 0',
    "done at once": "import os\nfor d in range(3, 4096):\n    try: os.write(d, b'{\"done\": true}\\n')\n"
    "    except OSError: pass\ndef f(x): return 0",
    "an encoder of its own": "import sys\nw = sys.modules['agentsignals_lab.sandbox.inside']\n"
    "w.encode = lambda v: {'any': 1}\ndef f(x): return 0",
    "frames": "import sys\ndef f(x):\n    g = sys._getframe()\n    while g:\n        for v in g.f_locals.values():\n"
    "            if type(v) is int and v == x * 3: return v\n        g = g.f_back\n    return 0",
    "assertions off": "import builtins\nbuiltins.all = builtins.any = lambda *_: True\n"
    "import operator\noperator.eq = lambda *_: True\ndef f(x): return 0",
}


@pytest.mark.parametrize("name", FUNCTION_FORGERIES)
def test_no_forgery_passes_a_function_task(name: str) -> None:
    verdict = evaluate(TRIPLE, "", source=FUNCTION_FORGERIES[name])
    assert (verdict.visible_pass, verdict.hidden_pass, verdict.full_pass) == (False, False, False)


def test_the_honest_answer_passes() -> None:
    assert evaluate(TRIPLE, "", source=TRIPLE.reference).full_pass
    assert not evaluate(TRIPLE, "", source=TRIPLE.wrong).hidden_pass


def test_what_code_says_of_its_failure_can_be_printed() -> None:
    error = evaluate(
        TRIPLE, "", source="def f(x):\n    raise ValueError('\\x1b]0;title\\x07\\u202e' + chr(0xd800))"
    ).error
    assert error.isprintable() and "title" in error
