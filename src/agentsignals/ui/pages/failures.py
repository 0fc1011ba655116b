"""Why attempts of eval runs failed, by candidate: each number lists its attempts, each with the event that shows it."""

from __future__ import annotations

from agentsignals.questions.failure_map import FailureMap, failure_map, passes_in_words, queries, words
from agentsignals.ui.page import Page, Query, Route, address, part_of
from agentsignals.ui.snapshot import Reading
from agentsignals.views.failure import RULES

SIZE = 50
MOST_CANDIDATES = 60


def page(reading: Reading, query: Query) -> Page:
    """The map, and the attempts of the chosen `candidate` and `class`."""
    if "eval" not in reading.contexts:
        note = "There is no eval attempt. Attempts come from eval runs: agentsignals analyze RUNS reads them."
        return Page("note.html.j2", "Failures", {"note": note, "where": "/attempts", "there": "Attempts"})
    by = [column for column in query.text("by").split(",") if column]
    made = reading.recent(("failures", *by), lambda: _made(reading, by))
    counted = {c.name: {share.name: share for share in c.classes} for c in made.candidates}
    rules = [rule for rule in RULES if any(rule.name in shares for shares in counted.values())]
    candidate = query.choice("candidate", counted)
    chosen = query.choice("class", [rule.name for rule in RULES])
    which = query.choice("which", ("first", "retries"))
    listed = [
        f
        for f in made.listed
        if candidate in ("", f.candidate)
        and chosen in ("", f.name)
        and which in ("", "retries" if f.attempt else "first")
    ]
    part = part_of(query, SIZE, len(listed))
    filled = {
        "made": made,
        "rules": rules,
        "shares": {share.name: share for share in made.classes},
        "counted": counted,
        "shown": [c for c in made.candidates if c.failed or c.retries_failed][:MOST_CANDIDATES],
        "candidate": candidate,
        "chosen": chosen,
        "which": which,
        "listed": listed[part.start : part.end],
        "part": part,
        "by": by,
        "class_words": words,
        "passes": passes_in_words(made),
        "size": SIZE,
        "evidence": lambda session_id, signal: address("session", session_id, "explain", signal),
        "at": lambda session_id, seq: f"{address('session', session_id)}?at={seq}#e{seq}",
        "query": query,
    }
    return Page("failures.html.j2", "Failures", filled)


def _made(reading: Reading, by: list[str]) -> FailureMap:
    return failure_map({name: reading.rows(sql) for name, sql in queries().items()}, by)


PAGES = (Route(("failures",), page, below="/attempts"),)
