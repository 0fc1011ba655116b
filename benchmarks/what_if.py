"""`what-if` held against raw logs and against real changes.

    python -m benchmarks.what_if oracle FOLDER_OF_CLAUDE_CODE_SESSIONS [N]
    python -m benchmarks.what_if changes STORE

`oracle` computes each scenario of N sessions (default 40) from their JSON lines with prices written here. It ends with
status 1 where a figure differs by more than a hundredth of a cent. `changes` prints what happened where something
really changed: caches after pauses of five minutes to an hour, contexts after compactions, cost per prompt.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from agentsignals.ingest import pipeline
from agentsignals.questions.ranking import sql_text
from agentsignals.questions.what_if import CONTEXT_TOKENS, EXPIRED, SUMMARY_TOKENS, SURVIVED, what_if
from agentsignals.stats.intervals import wilson
from agentsignals.store import Store
from agentsignals.store.query import rows

PRICES = {  # USD a million: input, output, cache read, write for minutes, write for an hour
    "claude-opus-4-5": (5, 25, 0.5, 6.25, 10), "claude-opus-4-6": (5, 25, 0.5, 6.25, 10),
    "claude-opus-4-7": (5, 25, 0.5, 6.25, 10), "claude-opus-4-8": (5, 25, 0.5, 6.25, 10),
    "claude-sonnet-4-5": (3, 15, 0.3, 3.75, 6), "claude-sonnet-4-6": (3, 15, 0.3, 3.75, 6),
    "claude-haiku-4-5": (1, 5, 0.1, 1.25, 2),
}  # fmt: skip
HAIKU = "claude-haiku-4-5"


class Call(NamedTuple):
    """A model call as a raw log has it."""

    at: float
    model: str
    fresh: int
    out: int
    read: int
    minutes: int
    hour: int

    @property
    def size(self) -> int:
        return self.fresh + self.read + self.minutes + self.hour

    def usd(self, model: str = "") -> float:
        prices = PRICES[model or self.model]
        amounts = (self.fresh, self.out, self.read, self.minutes, self.hour)
        return sum(n * usd for n, usd in zip(amounts, prices, strict=True)) / 1e6


def raw_calls(path: Path) -> list[Call] | None:
    """The calls of a session; None where it has subagents, a model without a price here, a way of being served, or a
    summary of another session, about which `what-if` and this differ on purpose."""
    calls: dict[str, Call] = {}
    for line in path.read_text("utf-8").split("\n"):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # records that lost their line break: another reader's matter
            return None
        message = record.get("message") or {}
        usage = message.get("usage")
        if record.get("type") == "system" and record.get("subtype") == "compact_boundary":
            return None
        if record.get("isSidechain") or '"agent_progress"' in line or '"agentId"' in line:
            return None
        if record.get("type") != "assistant" or not usage or message.get("model") == "<synthetic>":
            continue
        model = message["model"].rsplit("-20", 1)[0]
        searches = (usage.get("server_tool_use") or {}).get("web_search_requests")
        if model not in PRICES or searches or usage.get("speed") == "fast" or usage.get("iterations"):
            return None
        written = usage.get("cache_creation_input_tokens") or 0
        hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
        call = Call(
            datetime.fromisoformat(record["timestamp"]).timestamp(), model, usage["input_tokens"],
            usage["output_tokens"], usage.get("cache_read_input_tokens") or 0, written - hour, hour,
        )  # fmt: skip
        before = calls.get(message["id"])
        calls[message["id"]] = call if before is None else before._replace(out=max(before.out, call.out))
    return list(calls.values()) or None


def _one_hour(calls: list[Call]) -> float | None:
    """All writes for an hour; of a pause of five minutes to an hour that lost a cache, 55 of 58 lose nothing."""
    if not any(c.minutes for c in calls):
        return None
    cost, before, since, long = 0.0, 0, None, False
    for call in calls:
        written = call.minutes + call.hour
        dear = call._replace(minutes=0, hour=written)
        pause = call.at - (call.at if since is None else since)
        lost = before - call.read
        spared = dear
        if before and 300 < pause <= 3600 and not long and call.size >= before / 2 and min(lost, call.size) > 1000:
            lost = min(lost, call.size - call.read)
            of_written = min(lost, written)
            spared = dear._replace(
                hour=written - of_written, fresh=call.fresh - (lost - of_written), read=call.read + lost
            )
        cost += dear.usd() + SURVIVED.share * (spared.usd() - dear.usd())
        before, since, long = call.size, call.at, long or bool(call.hour)
    return cost


def _five_minutes(calls: list[Call]) -> float | None:
    if not any(c.hour for c in calls):
        return None
    cost, since, long = 0.0, None, False
    for call in calls:
        pause = call.at - (call.at if since is None else since)
        cheap = before = call._replace(minutes=call.minutes + call.hour, hour=0)
        if long and 300 < pause <= 3600:
            cheap = cheap._replace(minutes=cheap.minutes + cheap.read, read=0)
            cost += EXPIRED.share * (cheap.usd() - before.usd()) + before.usd()
        else:
            cost += cheap.usd()
        since, long = call.at, long or bool(call.hour)
    return cost


def _limited(calls: list[Call], most: int, summary: int) -> float:
    """Each call's prompt as large as it were after compactions; what is missing was read from the cache."""
    cost = 0.0
    start, context, before = calls[0].size, 0, 0
    for number, call in enumerate(calls):
        growth, anew = call.size - before, 0
        if not number or call.size < before / 2:
            context = call.size
        elif context + growth > most and start + 3_200 + max(0, growth) <= most / 2:
            asked = calls[number - 1]
            cost += (context * PRICES[asked.model][2] + summary * PRICES[asked.model][1]) / 1e6
            anew, context = start + summary, start + summary + max(0, growth)
        else:
            context += growth
        less = max(0, call.size - context)
        read, written, fresh = call.read, call.minutes + call.hour, call.fresh
        for_hour = bool(call.hour)
        of_read = min(less, read)
        of_written = min(less - of_read, written)
        read, written, fresh = read - of_read, written - of_written, fresh - (less - of_read - of_written)
        moved = min(anew, read) if less else 0
        hour = min(call.hour, written) + (moved if for_hour and written + call.minutes + call.hour else 0)
        if not call.minutes + call.hour:
            fresh, moved_written = fresh + moved, 0
        else:
            moved_written = moved
        cost += Call(call.at, call.model, fresh, call.out, read - moved, written + moved_written - hour, hour).usd()
        before = call.size
    return cost


def oracle(folder: Path, most: int) -> int:
    checked: Counter[str] = Counter()
    worst = 0.0
    with tempfile.TemporaryDirectory() as made:
        pipeline.analyze([str(folder)], Path(made) / "store", jobs=1)
        store = Store(Path(made) / "store")
        ids = dict(rows(store, "SELECT session_id, path FROM sessions JOIN artifacts USING (artifact_id)")[1])
        for session_id, path in sorted(ids.items()):
            calls = raw_calls(Path(path))
            if calls is None or checked["sessions"] >= most:
                continue
            store.only = {session_id: "product"}
            asked = what_if(store, model=HAIKU, work="all", context_tokens=CONTEXT_TOKENS, subscription=20)
            expected: dict[str, float | None] = {
                "cost": sum(c.usd() for c in calls),
                "one-hour-cache": _one_hour(calls),
                "five-minute-cache": _five_minutes(calls),
                "model": None if {c.model for c in calls} == {HAIKU} else sum(c.usd(HAIKU) for c in calls),
                "context-limit": _limited(calls, CONTEXT_TOKENS, SUMMARY_TOKENS[0]),
            }
            got = {scenario.id: scenario.cost_usd for scenario in asked.scenarios} | {"cost": asked.cost_usd}
            got.setdefault("context-limit", asked.cost_usd)
            for name, usd in expected.items():
                if usd is None:
                    continue
                gap = abs(usd - got.get(name, -1.0))
                worst = max(worst, gap)
                checked[name] += 1
                if gap > 1e-4:
                    checked["differs"] += 1
                    print(f"{session_id} {name}: {got.get(name)} here, {usd} from the log")
            checked["sessions"] += 1
    print(dict(checked), f"largest difference ${worst:.2g}")
    return int(bool(checked["differs"]))


_CALLS = """
    SELECT session_id, model, epoch(timestamp) AS at, seq,
        coalesce(input_tokens, 0) + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) AS size,
        coalesce(cache_read_tokens, 0) AS read, coalesce(cache_write_1h_tokens, 0) AS hour
    FROM steps WHERE thread = 'main' AND cache_write_tokens > 0 OR cache_read_tokens > 0 AND thread = 'main'
    ORDER BY session_id, step
"""
_PER_PROMPT = """
    SELECT coalesce(json_extract_string(value, ''), repo, cwd) AS place, agent, model, session_id, started_at,
        n_prompts, main_cost_usd AS usd
    FROM sessions LEFT JOIN (SELECT * FROM signals WHERE signal = 'user.place' AND absent IS NULL) USING (session_id)
    WHERE model IS NOT NULL AND n_prompts > 0 AND main_cost_usd > 0 ORDER BY started_at
"""
FEWEST = 5
"""Sessions of a project with one model, before and after a change."""


def changes(store: Store) -> None:
    def asked(sql: str) -> list[dict[str, Any]]:
        names, values = rows(store, sql)
        return [dict(zip(names, row, strict=True)) for row in values]

    calls: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in asked(_CALLS):
        calls[row["session_id"]].append(row)
    kept: Counter[tuple[int, bool]] = Counter()
    for of in calls.values():
        lives_s = 300
        for last, row in pairwise(of):
            lives_s = 3600 if last["hour"] else lives_s
            is_same = row["model"] == last["model"] and row["size"] >= last["size"] / 2
            if is_same and str(row["model"]).startswith("claude") and 300 < row["at"] - last["at"] <= 3600:
                kept[lives_s, row["read"] >= last["size"] / 2] += 1
    for lives_s in (300, 3600):
        k, n = kept[lives_s, True], kept[lives_s, True] + kept[lives_s, False]
        low, high = wilson(k, n) or (0.0, 1.0)
        print(f"caches of {lives_s} s after pauses of 5 to 60 min: {k} of {n} kept [{low:.2f}, {high:.2f}]")
    left = []
    for row in asked("SELECT session_id, seq FROM events WHERE kind = 'compaction' AND thread = 'main'"):
        of = asked(
            "SELECT input_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) AS size,"
            f" seq > {row['seq']} AS after FROM steps WHERE session_id = {sql_text(row['session_id'])}"
            " AND thread = 'main'"
            " AND input_tokens IS NOT NULL ORDER BY step"
        )
        sizes = {
            after: [each["size"] for each in of if each["after"] is after and each["size"]] for after in (True, False)
        }
        if sizes[True] and sizes[False]:
            left.append(sizes[True][0] - sizes[False][0])
    print(f"tokens beyond the start right after a compaction: {sorted(left)}, median {median(left) if left else None}")
    groups: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in asked(_PER_PROMPT):
        groups[row["place"], row["agent"]].append(row)
    for (place, _), of in groups.items():
        models = [m for m, n in Counter(row["model"] for row in of).items() if n >= FEWEST]
        for old, new in pairwise(models):
            before, after = ([row for row in of if row["model"] == model] for model in (old, new))
            store.only = {row["session_id"]: "product" for row in before}
            made = what_if(store, model=new, work="all")
            store.only = None
            then = next((s for s in made.scenarios if s.id == "model"), None)
            if then is None:
                continue
            now = sum(row["usd"] for row in before)
            expected = then.cost_usd / made.cost_usd * now / sum(row["n_prompts"] for row in before)
            real = sum(row["usd"] for row in after) / sum(row["n_prompts"] for row in after)
            print(
                f"{Path(place).name}: {old} ({len(before)} sessions) to {new} ({len(after)}): expected"
                f" ${expected:.3f} a prompt, cost ${real:.3f}: {real / expected:.2f} times"
            )


def main(arguments: list[str]) -> int:
    match arguments:
        case ["oracle", folder, *most]:
            return oracle(Path(folder), int(most[0]) if most else 40)
        case ["changes", folder]:
            changes(Store(folder))
            return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
