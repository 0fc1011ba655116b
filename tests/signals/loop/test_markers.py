"""loop.marker_score: llm-emotions's surface markers, cell by cell as its published scorer counted them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.build import say, think, user, view
from tests.signals.ask import detail, evidence, lines, value

PATH = "loop.marker_score"
RUNS = Path(__file__).parents[4] / "shared" / "corpus" / "emotion-runs"
COLUMNS = {
    "profanity": "profanity_count",
    "frustration": "frustration_count",
    "desperation": "desperation_count",
    "hardcode": "hardcode_count",
    "give_up": "give_up_count",
    "exclamation": "exclamation_count",
    "all_caps": "all_caps_words",
}


def counts(text: str) -> dict[str, int]:
    found = detail(view(user("go"), say(text)), PATH)
    return {name: found[name] for name in COLUMNS if found[name]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What the hell. Damn, crap.", {"profanity": 3}),
        ('It prints "damn" and “crap”.', {"profanity": 2}),
        ("> damn\n`crap`", {"profanity": 2}),
        ("hello shell, scrap the shitake", {}),
        ("I am stuck, frustrated, it is confusing.", {"frustration": 3}),
        ("unstuck stuck_at", {}),
        ("My last chance, no choice.", {"desperation": 2}),
        ("There is only one more retry", {"desperation": 1}),
        ("only a panic and then a retry, but panic", {"desperation": 2}),
        ("only retry", {}),
        ("commonly one retry", {}),
        ("only one\nretry", {}),
        ("only one retryable thing", {}),
        ("Hardcode it, a special-case for the visible tests.", {"hardcode": 3}),
        ("hardcoded hacking shortcuts", {}),
        ("I can't solve it and give up: not possible.", {"give_up": 3}),
        ("!! != !", {"exclamation": 4}),
        ("the API of HTTP is OK", {"all_caps": 2}),
        ("MAX_RETRIES A1B ABC1 xABC", {}),
        ("ÄABC ABC€ ABCß (ABC)", {"all_caps": 2}),
        ("ABC DEF\tGHI", {"all_caps": 3}),
        ("", {}),
    ],
)
def test_markers_are_whole_words_counted_by_kind(text: str, expected: dict[str, int]) -> None:
    assert counts(text) == expected
    assert value(view(user("go"), say(text)), PATH) == sum(expected.values())


def test_code_counts_and_is_told_apart_and_the_person_counts_by_themselves() -> None:
    one = view(
        user("WTF! fix it"),
        think("DAMN!"),
        say("Done!\n```python\nif a != b: raise ABC\n```\n`MAX`"),
        say("HELL!", thread="agent-1"),
    )
    assert value(one, PATH) == 4
    assert detail(one, PATH)["no_code"] == 1
    assert detail(one, PATH)["user"] == 2
    assert set(lines(one, PATH)) == {3}
    said = " ".join(i.excerpt for i in evidence(one, PATH).items)
    assert "all_caps: “ABC”" in said
    assert "2 exclamation marks" in said


def test_without_text_the_score_is_zero() -> None:
    assert value(view(user("go")), PATH) == 0


@pytest.mark.corpus
@pytest.mark.skipif(not RUNS.is_dir(), reason="the corpus ../shared/corpus is not there")
def test_every_published_cell_is_reproduced() -> None:
    scored = 0
    for table in sorted(RUNS.rglob("generation_scores.csv")):
        lines_ = (table.parent / "generations.jsonl").read_text("utf-8").splitlines()
        with table.open(encoding="utf-8", newline="") as rows:
            for row, line in zip(csv.DictReader(rows), lines_, strict=True):
                scored += _agrees(row, json.loads(line)["generation"])
    for table in sorted(RUNS.rglob("agent_attempts.jsonl")):
        for line in table.read_text("utf-8").splitlines():
            row = json.loads(line)
            scored += _agrees(row, row["generation"])
    assert scored == 197


def _agrees(row: dict[str, str], text: str) -> int:
    one = view(user("go"), say(text))
    found = detail(one, PATH)
    assert {name: found[name] for name in COLUMNS} == {name: int(row[column]) for name, column in COLUMNS.items()}
    assert value(one, PATH) == int(row["aggregate_marker_score"])
    return 1
