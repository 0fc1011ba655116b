"""The groups of verbs by themselves: `evals`, `repo` and `labels` say what the store holds for their verbs."""

from __future__ import annotations

import argparse

from agentsignals.cli import declarations
from agentsignals.cli.analyze import named_again, store_with_sessions
from agentsignals.cli.output import json_text, printable
from agentsignals.errors import NothingFound
from agentsignals.questions.compare import QUERIES, treatments_option
from agentsignals.questions.compare.attempts import proposed
from agentsignals.questions.question import singular
from agentsignals.store import Store
from agentsignals.store.query import rows

_COUNTS = {
    "evals": """
        SELECT count(*) AS attempts, count(DISTINCT task_id) AS tasks,
            count(DISTINCT coalesce(agent_type, agent)) AS agents, count(DISTINCT coalesce(model_id, model)) AS models,
            count(*) FILTER (outcome IN ('solved', 'failed')) AS judged,
            count(*) FILTER (outcome = 'solved') AS passed, count(*) FILTER (outcome = 'failed') AS failed,
            count(*) FILTER (WHERE n_tool_calls > 0) AS "attempts with tool calls"
        FROM attempts LEFT JOIN sessions USING (session_id)""",
    "repo": """
        SELECT count(DISTINCT repo) AS repositories, count(repo) AS sessions,
            (SELECT count(*) FROM commits) AS commits, (SELECT count(*) FROM checkpoints) AS checkpoints
        FROM sessions WHERE context = 'product'""",
    "labels": """
        SELECT count(*) AS labels, count(DISTINCT task) AS tasks, count(DISTINCT labeller) AS labellers,
            count(DISTINCT session_id) AS sessions
        FROM labels""",
}
_EMPTY = {
    "evals": ("attempts", "The store holds no eval attempts.", "Read eval runs first: `agentsignals analyze RUNS`."),
}
_WITH_CALLS = ("attempts with tool calls", 1, "needs tool calls, and no attempt has any")
_NEEDS = {
    ("evals", "align"): _WITH_CALLS,
    ("evals", "audit"): _WITH_CALLS,
    ("evals", "drivers"): _WITH_CALLS,
    ("evals", "failures"): ("failed", 1, "needs failed attempts"),
    ("labels", "agree"): ("labellers", 2, "needs two labellers"),
}
"""Count that a verb needs, at least how much of it, and what is said where there is less."""
_TASK = r"""
    SELECT task_id FROM attempts JOIN sessions USING (session_id)
    WHERE n_tool_calls > 0 AND regexp_full_match(task_id, '[\w./:@+-]+')
    GROUP BY 1 HAVING count(*) > 1 ORDER BY count(DISTINCT reward) DESC, count(*) DESC, 1 LIMIT 1"""
"""A task with several attempts, with different rewards if there is one."""


def run_group(options: argparse.Namespace) -> int:
    """Print what the store holds for a group's verbs, and a command for each. NothingFound without an eval attempt."""
    group = options.verb
    store = store_with_sessions(options)
    names, values = rows(store, _COUNTS[group])
    counts = dict(zip(names, values[0], strict=True))
    column, nothing, hint = _EMPTY.get(group, ("", "", ""))
    if column and not counts[column]:
        raise NothingFound(nothing, hint)
    changed = _for_attempts(store, counts["models"]) if group == "evals" else {}
    named, verbs = named_again(options), []
    for name, about in declarations().items():
        if isinstance(about, dict) and about.get("group") == group:
            column, least, why = _NEEDS.get((group, name), ("", 0, ""))
            lacks = why if column and counts[column] < least else ""
            command = f"agentsignals {group} {name} {about['example']}".strip()
            for words, others in changed.items():
                command = command.replace(words, others)
            command += named
            verbs.append({"command": command, "does": about["help"], "lacks": lacks})
    if options.json:
        print(json_text({"counts": counts, "verbs": verbs}))
        return 0
    some = [f"{n:,} {singular(name) if n == 1 else name}" for name, n in counts.items() if n]
    lines = [f"{', '.join(some) or f'no {group}'}; store {store.folder}", ""]
    for verb in sorted(verbs, key=lambda verb: bool(verb["lacks"])):
        why = f"not here: {verb['lacks']}; " if verb["lacks"] else ""
        lines += [verb["command"], f"    {why}{verb['does']}"]
    print("\n".join(map(printable, lines)))
    return 0


def _for_attempts(store: Store, models: int) -> dict[str, str]:
    """Return what to replace in the examples for this store: the task by one that it holds, and the model by its place
    in folders' names where no attempt records one."""
    task = rows(store, _TASK)[1]
    changed = {"dask__dask-8685": task[0][0]} if task else {}
    if not models:
        names, values = rows(store, QUERIES["attempts"])
        proposal = proposed([dict(zip(names, row, strict=True)) for row in values])
        changed["compare --by model"] = f"compare {treatments_option(proposal)}" if proposal else "compare"
        changed[" --by model"] = ""
    return changed
