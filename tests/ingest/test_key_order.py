"""A document is what it is whatever stands first in it, and however long that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store
from tests.golden import SAMPLES

DOCUMENTS = [
    "atif/functions.json", "mini-swe-agent/v2.traj.json", "gemini-cli/early.json", "inspect-json/cancelled.json",
    "tau-bench/tool-calling-acme-one-0.0_range_0-3_user-acme-two-llm_0504090000.json",
]  # fmt: skip


def sums(folder: Path) -> list[tuple[Any, ...]]:
    store = folder.with_suffix(".store")
    pipeline.ingest([str(folder)], store, jobs=1)
    query = "SELECT format, n_prompts, n_tool_calls, input_tokens, output_tokens FROM sessions ORDER BY ALL"
    return Store(store).sql(query).fetchall()


@pytest.mark.parametrize("sample", DOCUMENTS)
def test_neither_order_nor_length_of_what_comes_first_changes_what_is_read(sample: str, tmp_path: Path) -> None:
    document = json.loads((SAMPLES / sample).read_text())
    entries = document if isinstance(document, list) else [document]
    turned = [dict(sorted(entry.items(), reverse=True)) for entry in entries]
    late = [{"a_note": "long " * 20_000} | entry for entry in entries[:1]] + entries[1:]
    texts = {
        "plain": json.dumps(document),
        "sorted": json.dumps(document, indent=1, sort_keys=True),
        "turned": json.dumps(turned if isinstance(document, list) else turned[0], indent=4),
        "late": json.dumps(late if isinstance(document, list) else late[0], indent=1),
    }
    read = {}
    for name, text in texts.items():
        file = tmp_path / name / Path(sample).name
        file.parent.mkdir()
        file.write_text(text)
        read[name] = sums(file.parent)
    assert read["plain"] and all(found == read["plain"] for found in read.values()), read
