"""From a home folder to the answers of a tool, by its own JSON. An adapter is a function of a few lines.

A tool is found by its name on PATH, or by an environment variable: `CCUSAGE="npx ccusage"`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.suite import Answer

Rows = list[dict[str, Any]]
KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def run(tool: str, *arguments: object, home: Path | None = None) -> str:
    """What a tool printed. With `home`, that is its home folder, and its clock is UTC."""
    command = shlex.split(os.environ.get(tool.upper(), tool)) + [str(argument) for argument in arguments]
    own = {"TZ": "UTC", "NO_COLOR": "1", "HOME": str(home), "XDG_DATA_HOME": f"{home}/.local/share"} if home else {}
    kept = {name: value for name, value in os.environ.items() if not (home and name.startswith("XDG_"))}
    done = subprocess.run(  # noqa: S603 - the tools that this is about
        command, capture_output=True, text=True, env={**kept, **own}, timeout=120, check=False
    )
    if done.returncode and not done.stdout.strip():
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def _sum(rows: Iterable[dict[str, Any]], key: str) -> Any:
    """The sum of what is known; None where nothing is."""
    known = [row[key] for row in rows if row[key] is not None]
    return sum(known) if known else None


OURS = """
WITH made AS (SELECT session_id, count(*) FILTER (stop_reason IS DISTINCT FROM 'session_total') AS model_calls,
    sum(reasoning_tokens) AS reasoning_tokens,
    sum(output_tokens) FILTER (thread = 'abandoned') AS abandoned_output_tokens
  FROM steps GROUP BY ALL),
called AS (SELECT session_id, count(*) AS calls, count(*) FILTER (status = 'error') AS failed_calls,
    count(*) FILTER (class = 'task') AS delegations
  FROM tool_calls GROUP BY ALL),
said AS (SELECT session_id, count(*) AS prompts, list(text ORDER BY seq) FILTER (text <> '') AS prompt_texts
  FROM turns WHERE kind IN ('prompt', 'queued_prompt', 'attachment') GROUP BY ALL),
paid AS (SELECT session_id, list({'model': model, 'day': CAST(timestamp AS DATE)::VARCHAR, 'output': output_tokens})
    AS outputs FROM steps WHERE output_tokens IS NOT NULL GROUP BY ALL)
SELECT path, s.* EXCLUDE (artifact_id), model_calls, reasoning_tokens, abandoned_output_tokens, calls, failed_calls,
  delegations, prompts, prompt_texts, outputs, reward
FROM sessions s JOIN artifacts USING (artifact_id) LEFT JOIN made USING (session_id)
  LEFT JOIN called USING (session_id) LEFT JOIN said USING (session_id) LEFT JOIN paid USING (session_id)
  LEFT JOIN (SELECT session_id, any_value(reward) AS reward FROM attempts GROUP BY ALL) USING (session_id)
ORDER BY started_at, session_id
"""


def agentsignals(homes: dict[str, Path]) -> dict[str, Answer]:
    """All homes in one store, told apart by the files' places."""
    with tempfile.TemporaryDirectory() as folder:
        run("agentsignals", "analyze", *homes.values(), "--store", folder, "--json", "--quiet")
        rows = json.loads(run("agentsignals", "query", OURS, "--store", folder, "--json"))
        files = json.loads(run("agentsignals", "query", "FROM artifacts", "--store", folder, "--json"))
    return {name: told(home, rows, files) for name, home in homes.items()}


def told(home: Path, sessions: Rows, files: Rows) -> Answer:
    """The answer about one home, from rows about many."""
    rows = [row for row in sessions if f"{home}/" in row["path"]]
    outputs = [one for row in rows for one in row["outputs"] or ()]
    answer = {field: _sum(rows, field) for field in (*KINDS, "reasoning_tokens", "cost_usd")}
    for field in (
        "subagent_output_tokens",
        "abandoned_output_tokens",
        "model_calls",
        "calls",
        "failed_calls",
        "delegations",
    ):
        answer[field] = _sum(rows, field) or 0
    return {
        **answer,
        "sessions": sum(row["parent_session_id"] is None for row in rows),
        "prompts": sum(row["prompts"] or 0 for row in rows),
        "prompt_texts": [text for row in rows for text in row["prompt_texts"] or ()],
        "models": _by("model", outputs),
        "days": _by("day", outputs),
        "rewards": sorted((row["reward"] for row in rows if row["trial_id"]), key=lambda r: (r is None, r)),
        "unread": sum(bool(row["skipped"]) for row in files if f"{home}/" in row["path"]),
    }


def _by(key: str, outputs: list[dict[str, Any]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in outputs:
        sums[str(one[key])] = sums.get(str(one[key]), 0) + one["output"]
    return sums


def ccusage(home: Path) -> Answer:
    days = json.loads(run("ccusage", "daily", "--json", "--offline", home=home))
    sessions = json.loads(run("ccusage", "session", "--json", "--offline", home=home))["session"]
    totals = days["totals"]
    named = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")
    models = [
        {"model": one["modelName"], "output": one["outputTokens"]}
        for day in days["daily"]
        for one in day["modelBreakdowns"]
    ]
    return {
        **dict(zip(KINDS, map(totals.get, named), strict=True)),
        "cost_usd": totals["totalCost"],
        "sessions": len(sessions),
        "models": _by("model", models),
        "days": {day["period"]: day["outputTokens"] for day in days["daily"]},
    }


def tokscale(home: Path) -> Answer:
    """Its output and reasoning are apart. Most of its prices come from the network, so its costs aren't asked for."""
    report = json.loads(run("tokscale", "models", "--json", "--no-spinner", home=home))
    rows = report["entries"]
    named = ("input", "output", "cacheRead", "cacheWrite", "reasoning")
    sums = {name: sum(row[name] for row in rows) for name in named}
    models = [{"model": row["model"], "output": row["output"] + row["reasoning"]} for row in rows]
    return {
        "input_tokens": sums["input"],
        "output_tokens": sums["output"] + sums["reasoning"],
        "cache_read_tokens": sums["cacheRead"],
        "cache_write_tokens": sums["cacheWrite"],
        "models": _by("model", models),
    }


def codeburn(home: Path) -> Answer:
    asked = ("report", "--format", "json", "--from", "2024-01-01", "--to", "2026-12-31")
    report = json.loads(run("codeburn", *asked, home=home))
    overview, tools = report["overview"], [*report["tools"], *report["mcpServers"]]
    named = ("input", "output", "cacheRead", "cacheWrite")
    return {
        **dict(zip(KINDS, map(overview["tokens"].get, named), strict=True)),
        "cost_usd": overview["cost"],
        "sessions": overview["sessions"],
        "model_calls": overview["calls"],
        "calls": sum(tool["calls"] for tool in tools),
    }


def agentsview(home: Path) -> Answer:
    """It keeps a server running, which is stopped again."""
    try:
        run("agentsview", "sync", home=home)
        listed = ("session", "list", "--json", "--include-one-shot", "--include-automated", "--limit", 500)
        sessions = json.loads(run("agentsview", *listed, home=home))["sessions"]
        report = json.loads(
            run("agentsview", "usage", "daily", "--json", "--all", "--breakdown", "--offline", home=home)
        )
    finally:
        run("agentsview", "daemon", "stop", home=home)
    days, totals = report["daily"], report["totals"]
    named = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")
    models = [
        {"model": one["modelName"], "output": one["outputTokens"]} for day in days for one in day["modelBreakdowns"]
    ]
    return {
        **dict(zip(KINDS, map(totals.get, named), strict=True)),
        "cost_usd": totals["totalCost"]["microdollars"] / 1e6,
        "sessions": len(sessions),
        "prompts": sum(one["user_message_count"] for one in sessions),
        "models": _by("model", models),
        "days": {day["date"]: day["outputTokens"] for day in days},
    }


def each(ask: Callable[[Path], Answer]) -> Callable[[dict[str, Path]], dict[str, Answer]]:
    """A tool that is asked about one home at a time. Where it fails there is no answer."""

    def answers(homes: dict[str, Path]) -> dict[str, Answer]:
        found = {}
        for name, home in homes.items():
            try:
                found[name] = ask(home)
            except (RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
                print(f"{name}: {error}")
        return found

    return answers


@dataclass(frozen=True)
class Tool:
    """A program that reads logs, and how it is asked."""

    name: str
    answers: Callable[[dict[str, Path]], dict[str, Answer]]

    def version(self) -> str:
        return next(word for word in run(self.name, "--version").split() if word.strip("v")[0].isdigit()).strip("v")


TOOLS = {tool.__name__: Tool(tool.__name__, each(tool)) for tool in (ccusage, tokscale, codeburn, agentsview)}
TOOLS["agentsignals"] = Tool("agentsignals", agentsignals)
