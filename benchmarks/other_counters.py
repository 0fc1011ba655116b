"""What others' programs count on the same bytes: `python -m benchmarks.other_counters NODE_MODULES [SESSIONS]`.

Needs Node.js, and a folder in which `npm install ccusage@18 @ccusage/codex@18` was run; both programs read copies of
the logs in a home of their own and ask no network. Without SESSIONS (a folder an agent, a transcript.jsonl a session)
the logs are those of this machine. docs/counters.md says what differs and why.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentsignals.ingest import pipeline
from agentsignals.store import Store

Tokens = tuple[int, int, int, int]
"""Input, cache write, cache read, output."""


class Agent(Struct, frozen=True):
    """Whose logs they are, where its home keeps them, and the program that counts them."""

    name: str
    own: str
    place: str
    program: str


AGENTS = (
    Agent("claude-code", ".claude/projects/*/*-*-*-*-*.jsonl", ".claude/projects/{0}/{0}.jsonl", "ccusage"),
    Agent(
        "codex",
        ".codex/sessions/*/*/*/rollout-*.jsonl",
        ".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{0}.jsonl",
        "ccusage-codex",
    ),
)


def theirs(home: Path, programs: Path, agent: Agent) -> dict[str, tuple[Tokens, float]]:
    """Tokens and dollars by the name that the log was given."""
    settings = os.environ | {"HOME": str(home), "CLAUDE_CONFIG_DIR": f"{home}/.claude", "CODEX_HOME": f"{home}/.codex"}
    command = [str(programs / ".bin" / agent.program), "session", "--json", "--offline"]
    printed = subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout
    return dict(_rows(json.loads(printed[printed.index("{") :]), agent))


def _rows(printed: dict[str, Any], agent: Agent) -> Iterator[tuple[str, tuple[Tokens, float]]]:
    for row in printed["sessions"]:
        name = row["sessionId"].rpartition("rollout-2026-01-01T00-00-00-")[2]
        cached = row.get("cacheReadTokens", row.get("cachedInputTokens", 0))
        # Codex counts what was read from the cache as input; the tables count it once.
        fresh = row["inputTokens"] - (cached if agent.name == "codex" else 0)
        tokens = (fresh, row.get("cacheCreationTokens", 0), cached, row["outputTokens"])
        yield name, (tokens, row.get("totalCost", row.get("costUSD", 0.0)))


def ours(home: Path, store: Path) -> dict[str, tuple[Tokens, float]]:
    """The same of the tables, threads and all."""
    pipeline.analyze([str(home)], store, jobs=1)
    query = """SELECT a.path, sum(coalesce(t.input_tokens, 0)), sum(coalesce(t.cache_write_tokens, 0)),
        sum(coalesce(t.cache_read_tokens, 0)), sum(coalesce(t.output_tokens, 0)), sum(coalesce(t.cost_usd, 0))
        FROM steps t JOIN sessions s USING (session_id) JOIN artifacts a ON a.artifact_id = s.artifact_id GROUP BY 1"""
    rows = Store(store).sql(query).fetchall()
    return {
        Path(path).stem.rpartition("rollout-2026-01-01T00-00-00-")[2]: (
            (int(fresh), int(written), int(cached), int(output)),
            float(cost),
        )
        for path, fresh, written, cached, output, cost in rows
    }


def first_lines(log: Path) -> Tokens:
    """As `ccusage` counts Claude Code: of the lines of an answer the first, whose output is what had been written by
    then; and no conversations of subagents that older logs embed in records of progress.
    """
    counted: dict[tuple[str, str], dict[str, int]] = {}
    for line in log.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        message = record.get("message") if isinstance(record, dict) else None
        usage = message.get("usage") if isinstance(message, dict) else None
        if usage and "output_tokens" in usage:
            answer = (str(message.get("id")), str(record.get("requestId") or record.get("uuid")))
            counted.setdefault(answer, usage)
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    one, two, three, four = (sum(u.get(name) or 0 for u in counted.values()) for name in names)
    return one, two, three, four


def every_event(log: Path) -> Tokens:
    """As `ccusage-codex` counts: the last call's figures at each `token_count`, said again or not."""
    fresh = cached = output = 0
    for line in log.read_bytes().splitlines():
        payload = json.loads(line).get("payload") or {}
        last = (payload.get("info") or {}).get("last_token_usage") if payload.get("type") == "token_count" else None
        if last:
            cached += last["cached_input_tokens"]
            fresh += last["input_tokens"] - last["cached_input_tokens"]
            output += last["output_tokens"]
    return fresh, 0, cached, output


RULES = {
    "claude-code": (first_lines, "the first line of each answer counts, and no embedded subagent"),
    "codex": (every_event, "a token count that is said again counts again"),
}


def logs(sessions: Path | None, agent: Agent) -> Iterator[tuple[str, Path]]:
    """The logs of an agent by the session's name."""
    if sessions is None:
        yield from ((log.stem[-36:], log) for log in sorted(Path.home().glob(agent.own)))
    else:
        yield from ((log.parent.name, log) for log in sorted((sessions / agent.name).rglob("transcript.jsonl")))


def compare(sessions: Path | None, programs: Path, agent: Agent, folder: Path) -> None:
    """Copies the logs into a home, counts them twice, and prints what differs."""
    home = folder / "home"
    for name, transcript in logs(sessions, agent):
        copy = home / agent.place.format(name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.stat().st_size < transcript.stat().st_size:
            shutil.copyfile(transcript, copy)
    if not home.exists():
        print(f"{agent.name}: no logs")
        return
    by_us, by_them = ours(home, folder / "store"), theirs(home, programs, agent)
    both = sorted(set(by_us) & set(by_them))
    equal = [name for name in both if by_us[name][0] == by_them[name][0]]
    print(f"{agent.name} by {agent.program}: {len(both)} sessions in both, {len(equal)} with equal tokens")
    print(f"  only in the tables: {len(set(by_us) - set(by_them))}, only in theirs: {len(set(by_them) - set(by_us))}")
    print(f"  {'':<38} {'input':>12} {'written':>12} {'read':>14} {'output':>12} {'USD':>10}")
    for who, rows in (("tables", by_us), ("theirs", by_them)):
        sums = [sum(rows[name][0][n] for name in both) for n in range(4)]
        usd = sum(rows[name][1] for name in both)
        print(f"  {who:<38} {sums[0]:>12,} {sums[1]:>12,} {sums[2]:>14,} {sums[3]:>12,} {usd:>10.2f}")
    count, says = RULES[agent.name]
    explained = {n for n in both if count(home / agent.place.format(n)) == by_them[n][0]} - set(equal)
    print(f"  {len(explained)} of the others are equal when {says}; the rest, tables less theirs:")
    both = [name for name in both if name not in explained]
    for name in both:
        (mine, mine_usd), (other, other_usd) = by_us[name], by_them[name]
        if mine != other:
            gaps = "".join(f"{m - o:>+14,}" for m, o in zip(mine, other, strict=True))
            print(f"  {name:<38}{gaps} {mine_usd - other_usd:>+10.2f}")


if __name__ == "__main__":
    for one in AGENTS:
        with tempfile.TemporaryDirectory() as made:
            compare(Path(sys.argv[2]) if len(sys.argv) > 2 else None, Path(sys.argv[1]), one, Path(made))
