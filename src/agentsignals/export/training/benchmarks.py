"""Which published benchmarks a task may be of, as far as a store knows: by data set, task and repository.

What is trained on may not be measured on: who trains wants to know, and may leave these out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_REPOSITORIES = (
    "astropy/astropy", "django/django", "matplotlib/matplotlib", "mwaskom/seaborn", "pallets/flask", "psf/requests",
    "pydata/xarray", "pylint-dev/pylint", "pytest-dev/pytest", "scikit-learn/scikit-learn", "sphinx-doc/sphinx",
    "sympy/sympy",
    # of the development split, which SWE-bench Lite has, too
    "marshmallow-code/marshmallow", "pvlib/pvlib-python", "pydicom/pydicom", "pyvista/pyvista", "sqlfluff/sqlfluff",
    "pylint-dev/astroid",
)  # fmt: skip
"""Of SWE-bench's tasks, test and development (Jimenez et al. 2024, arXiv 2310.06770)."""
_INSTANCE = re.compile(r"(?:^|__|/)([A-Za-z0-9_.-]+?)__([A-Za-z0-9_.-]+)-\d+$")
_NAMES = (
    ("SWE-bench", r"swe.?bench"),
    ("Terminal-Bench", r"terminal.?bench"),
    ("MMLU", r"mmlu"),
    ("HumanEval", r"human.?eval"),
    ("MBPP", r"mbpp"),
    ("GSM8K", r"gsm.?8k"),
    ("GPQA", r"gpqa"),
    ("LiveCodeBench", r"live.?code.?bench"),
    ("BigCodeBench", r"big.?code.?bench"),
    ("Aider polyglot", r"polyglot"),
    ("τ-bench", r"tau.?2?.?bench"),
    ("GAIA", r"gaia"),
    ("BFCL", r"bfcl|berkeley.function"),
    ("AssistantBench", r"assistant.?bench"),
    ("Cybench", r"cybench"),
    ("InterCode", r"intercode"),
    ("MLE-bench", r"mle.?bench"),
    ("SWE-Lancer", r"swe.?lancer"),
)
_BY_NAME = [(name, re.compile(rf"(?<![a-z0-9])(?:{pattern})", re.IGNORECASE)) for name, pattern in _NAMES]


class Match(NamedTuple):
    """A benchmark, and by what it was recognised."""

    benchmark: str
    by: str
    """`data set`, `task`, or `repository`: that a task may come of, and need not."""


def benchmark_of(dataset: str | None, task: str | None, repository: str | None) -> Match | None:
    """The benchmark that a session's task is, or may be, of; None where nothing says so."""
    for by, text in (("data set", dataset), ("task", task)):
        for name, pattern in _BY_NAME:
            if text and pattern.search(text):
                return Match(name, by)
    instance = _INSTANCE.search(task or "")
    if instance and f"{instance[1]}/{instance[2]}".lower() in _REPOSITORIES:
        return Match("SWE-bench", "task")
    path = (repository or "").lower().removesuffix(".git").rstrip("/")
    if any(path == name or path.endswith((f"/{name}", f":{name}")) for name in _REPOSITORIES):
        return Match("SWE-bench", "repository")
    return None
