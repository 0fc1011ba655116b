"""Every reason for which something is skipped stands in docs/skipped.md, and none that no code gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentsignals
from agentsignals.formats import bounds as soundness
from agentsignals.ingest import plan
from agentsignals.sources import local

ROOT = Path(agentsignals.__file__).parent
STAGES = ("formats", "sources", "ingest")
COUNTING = {"skip", "Unreadable", "_unread", "FetchError", "MemberError", "Lost", "_recovered"}
"""What is called with a reason; `refuse` takes those of `soundness.REASONS`."""
WORD = re.compile(r"[a-z]+(_[a-z0-9]+)+")
PAGE = Path(__file__).parents[2] / "docs" / "skipped.md"


def trees() -> Iterator[ast.AST]:
    for stage in STAGES:
        for path in (ROOT / stage).rglob("*.py"):
            yield ast.parse(path.read_text(encoding="utf-8"))


def words(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def given() -> set[str]:
    calls = (n for tree in trees() for n in ast.walk(tree) if isinstance(n, ast.Call))
    passed = {word for call in calls if name_of(call) in COUNTING for arg in call.args for word in words(arg)}
    counted = {word for word in passed if WORD.fullmatch(word)}
    return counted | soundness.REASONS | plan.ABOUT_CONTENT | plan._PASSING | set(local._REASONS.values())


@pytest.mark.slow
def test_every_reason_stands_in_the_table_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert given() - set(listed) == set(), "without a row"
    quoted = {word for tree in trees() for word in words(tree)}
    assert set(listed) - quoted == set(), "rows of reasons that no code gives"
