"""Tiny sessions with what their signals say, as data: `python -m tests.signals.cases` writes anew what they say.

A file has the cases of one subject. A case has a name, the `parts` of a session (functions of `tests.build` with their
arguments), its `facts`, and for an eval run the facts of its `attempt` (of all in its `trial`, and which it is `of`).
With `inputs` (other signals' values) or a `history` these are given, not computed. `expect` has for each signal asked
the value, its detail, the evidence and the rules. Regenerate, then READ the diff.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Absent, Attempt, Session
from agentsignals.signals import Measured, Row
from agentsignals.signals.catalog import by_path, explain, values, with_needs
from agentsignals.views.history import History
from agentsignals.views.session import SessionView
from tests import build
from tests.signals import attempts

FOLDER = Path(__file__).parent
MOST_ROWS, MOST_CHARS = 8, 80
"""Evidence of one role that is compared, and how much of each excerpt."""


def cases() -> dict[str, list[dict[str, Any]]]:
    """Return the cases of each file."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def view_of(case: dict[str, Any]) -> SessionView:
    """Return the session of a case."""
    if "trial" in case:
        return attempts.trial(*(_typed(facts, Attempt) for facts in case["trial"]))[case["of"]]
    parts = [_part(*part) for part in case.get("parts", ())]
    if "attempt" not in case:
        return build.view(*parts, **_typed(case.get("facts", {}), Session))
    facts = _typed(case["attempt"], Attempt)
    return (
        attempts.ran(*parts, cwd=case.get("cwd", "/testbed"), **facts) if "parts" in case else attempts.unseen(**facts)
    )


def _part(name: str, *given: Any) -> build.Part:
    *words, named = given if given and isinstance(given[-1], dict) else (*given, {})
    if named.get("hunks"):
        named = {**named, "hunks": msgspec.convert(named["hunks"], list[Hunk])}
    made: build.Part = getattr(build, name)(*words, **named)
    return made


def _typed(facts: dict[str, Any], kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: msgspec.convert(fact, hints[name], strict=False) for name, fact in facts.items()}


def told(view: SessionView, path: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return what a signal says of a session, as plain data."""
    signal = by_path(path)
    given = case.get("inputs")
    inputs = values(view, among=with_needs(frozenset((signal.name,)))) if given is None else _given(given)
    if isinstance(inputs.get("vectors"), dict):
        inputs["vectors"] = SimpleNamespace(**inputs["vectors"])
    history = msgspec.convert(case["history"], History) if "history" in case else None
    value, detail, evidence = explain(signal, view, inputs, history)
    rows: dict[str, list[str]] = {}
    for item in evidence.items:
        if item.role != "input" and len(shown := rows.setdefault(item.role, [])) < MOST_ROWS:
            shown.append(f"{item.line} {item.excerpt[:MOST_CHARS]}")
    found = {"value": _plain(value), "detail": _plain(detail or {}), **rows, "rules": evidence.rules}
    said = {name: fact for name, fact in found.items() if fact or name == "value"}
    plain: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(said)))
    return plain


def _given(value: Any) -> Any:
    """Return an input as signals get it: what is absent, and what has a detail, are objects."""
    if isinstance(value, dict):
        if value.keys() == {"absent", "why"}:
            return Absent(value["absent"], value["why"])
        plain = {name: _given(each) for name, each in value.items()}
        return Measured(plain["measured"], plain["detail"]) if value.keys() == {"measured", "detail"} else plain
    return [_given(each) for each in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Absent):
        return {"absent": value.reason, "why": value.detail}
    if isinstance(value, Measured):
        return {"value": _plain(value.value), **({"detail": _plain(value.detail)} if value.detail else {})}
    if isinstance(value, Row):
        return msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, float):
        return round(value, 9)
    return [_plain(each) for each in value] if isinstance(value, list | tuple | set | frozenset) else value


def written(listed: list[dict[str, Any]]) -> str:
    """Return cases as the text of their file: a line for each fact of a case, and for each signal."""
    texts = []
    for case in listed:
        rows = [f'"{name}": {json.dumps(fact, ensure_ascii=False)}' for name, fact in case.items() if name != "expect"]
        signals = [f'  "{path}": {json.dumps(said, ensure_ascii=False)}' for path, said in case["expect"].items()]
        texts.append("{" + ",\n ".join([*rows, '"expect": {\n' + ",\n".join(signals) + "}"]) + "}")
    return "[\n" + ",\n".join(texts) + "\n]\n"


def main() -> None:
    for name, listed in cases().items():
        for case in listed:
            view = view_of(case)
            case["expect"] = {path: told(view, path, case) for path in case["expect"]}
        (FOLDER / f"{name}.json").write_text(written(listed), "utf-8")
