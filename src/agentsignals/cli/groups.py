"""The groups of verbs by themselves: `evals`, `repo` and `labels` say what the store holds for their verbs."""

from __future__ import annotations

import argparse
import shlex

from agentsignals.cli.analyze import store_with_sessions
from agentsignals.cli.grammar import declarations
from agentsignals.cli.output import json_text, printable
from agentsignals.errors import NothingFound
from agentsignals.questions.formatting import singular
from agentsignals.store import Store
from agentsignals.store.query import rows

_COUNTS = {
    "evals": """
        SELECT count(*) AS attempts, count(DISTINCT task_id) AS tasks, count(DISTINCT model_id) AS models,
            count(DISTINCT (agent, model_id)) AS "agent-model pairs",
            count(*) FILTER (n_tool_calls > 0) AS "with tool calls",
            count(reward) AS judged, count(*) FILTER (WHERE reward = 1) AS passed,
            count(*) FILTER (WHERE reward = 0) AS failed
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
_NEEDS = {
    ("evals", "compare"): ("agent-model pairs", 2, "needs two candidates"),
    ("evals", "drivers"): ("with tool calls", 1, "needs logs of what the agents did"),
    ("evals", "failures"): ("failed", 1, "needs failed attempts"),
    ("evals", "audit"): ("with tool calls", 1, "needs logs of what the agents did"),
    ("labels", "agree"): ("labellers", 2, "needs two labellers"),
}
"""Count that a verb needs, at least how much of it, and what is said where there is less."""


def _task_of_several(store: Store) -> str | None:
    """Return the task with most runs that have tool calls; None where no task has two."""
    found = rows(
        store,
        """
        SELECT task_id FROM attempts JOIN (SELECT session_id, n_tool_calls FROM sessions) USING (session_id)
        WHERE task_id IS NOT NULL AND n_tool_calls > 0
        GROUP BY 1 HAVING count(DISTINCT session_id) > 1 ORDER BY count(*) DESC, 1 LIMIT 1""",
    )[1]
    return str(found[0][0]) if found else None


def run_group(options: argparse.Namespace) -> int:
    """Print what the store holds for a group's verbs, and a command for each. NothingFound where it holds no attempt
    of an eval."""
    group = options.verb
    store = store_with_sessions(options)
    names, values = rows(store, _COUNTS[group])
    counts = dict(zip(names, values[0], strict=True))
    column, nothing, hint = _EMPTY.get(group, ("", "", ""))
    if column and not counts[column]:
        raise NothingFound(nothing, hint)
    task = _task_of_several(store) if group == "evals" else None
    verbs = []
    for name, about in declarations().items():
        if isinstance(about, dict) and about.get("group") == group:
            column, least, why = _NEEDS.get((group, name), ("", 0, ""))
            lacks = why if column and counts[column] < least else ""
            example = about["example"]
            if name == "align":  # of the runs at hand
                lacks = "" if task else "needs two runs of a task with tool calls"
                example = f"--task {shlex.quote(task)}" if task else example
            if counts.get("models") == 0:
                example = example.replace("--by model", "").strip()
            command = " ".join(f"agentsignals {group} {name} {example}".split())
            verbs.append({"command": command, "does": about["help"], "lacks": lacks})
    if options.json:
        print(json_text({"counts": counts, "verbs": verbs}))
        return 0
    some = [f"{n:,} {singular(name) if n == 1 else name}" for name, n in counts.items() if n]
    lines = [f"{', '.join(some) or f'no {group}'}; store {store.folder}", ""]
    for verb in verbs:
        why = f" ({verb['lacks']})" if verb["lacks"] else ""
        lines += [verb["command"], f"    {verb['does']}{why}"]
    print("\n".join(map(printable, lines)))
    return 0
