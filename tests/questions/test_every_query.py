"""Every SQL text of a study or a finding runs: its queries, the command of each figure, and the rows behind each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentsignals.errors import QueryError
from agentsignals.questions.findings import Reader, questions
from agentsignals.questions.question import EvidenceQuery, collecting_evidence
from agentsignals.questions.ranking import candidate_answers
from agentsignals.questions.studies import studies
from agentsignals.store import Store
from tests.build import START, call, say, session, user
from tests.planted_stores import evaluated
from tests.questions.stores import store_of

CONTEXTS = ("product", "eval")
_SQL_OF_COMMAND = re.compile(r'^agentsignals query (?:--context \w+ )?"(.*)"$', re.DOTALL)
Texts = dict[str, tuple[str, Mapping[str, Any]]]


@pytest.fixture(scope="module")
def stores(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    folder = tmp_path_factory.mktemp("every_query")
    attempts = evaluated(1)
    for made in attempts:
        assert made.attempt is not None
        made.attempt.cost_usd = 0.5 + (made.attempt.knobs.get("model_id") == "gpt-5.1-codex")
    unnamed = evaluated(1)
    for n, made in enumerate(unnamed):
        assert made.attempt is not None
        made.model, made.attempt.knobs, made.attempt.root = None, {}, f"/r/x_gpt-5/t{n}"
    slow = session(user("go"), *(call("Bash", command="make x") for _ in range(12)), say("done"))
    for event in slow.events:
        event.timestamp = _hours_later(event.timestamp)
    for each in slow.tool_calls:
        each.started_at, each.ended_at = _hours_later(each.started_at), _hours_later(each.ended_at)
    return {
        "demo": Store(demo_folder / "store"),
        "attempts": store_of(folder / "attempts", *attempts, slow),
        "unnamed": store_of(folder / "unnamed", *unnamed),
        "empty": Store(folder / "empty", create=True),
    }


def _hours_later(at: int | None) -> int | None:
    return None if at is None else START + 2400 * (at - START)


@pytest.fixture(scope="module")
def texts(stores: dict[str, Store]) -> Texts:
    """What the program makes of SQL while it answers, by where it stands: with the values that it binds."""
    found: Texts = {}
    for store in (stores["demo"], stores["attempts"], stores["unnamed"]):
        for context in CONTEXTS:
            for study in studies().values():
                with collecting_evidence() as behind:
                    outcome = study.run(Reader(store, [study], context).inputs(study))
                found |= {
                    f"behind {name}": (a.sql, a.values) for name, a in behind.items() if isinstance(a, EvidenceQuery)
                }
                for finding in outcome.findings:
                    if command := _SQL_OF_COMMAND.match(finding.command):
                        found[f"command of {finding.id}"] = command[1], {}
            for question in questions().values():
                candidates = candidate_answers(question, Reader(store, [question], context).inputs(question))
                found |= {f"cause of {made.id}": (made.cause, {}) for made in candidates}
    return found


def test_every_finding_has_rows_to_show(texts: Texts) -> None:
    shown = {name.removeprefix("cause of ").partition(".")[0] for name in texts if name.startswith("cause of ")}
    assert {name.replace("_", "-") for name in questions()} - shown == set()


@pytest.mark.parametrize("name", ["demo", "attempts", "empty"])
def test_every_query_runs(name: str, stores: dict[str, Store], texts: Texts) -> None:
    refused: dict[str, str] = {}
    for context in CONTEXTS:
        asking = [*studies().values(), *questions().values()]
        reader = Reader(stores[name], asking, context)
        for one in asking:
            try:
                reader.inputs(one)
            except QueryError as problem:
                refused[f"queries of {one.name}"] = str(problem)
        for where, (sql, values) in texts.items():
            try:
                reader.ask(sql, values, context)
            except QueryError as problem:
                refused[where] = str(problem)
    assert refused == {}
