"""Public data sets counted twice: by plain `json`, `zipfile` and `pyarrow`, and by `agentsignals analyze`.

    python -m benchmarks.recount tau-bench=FOLDER terminal-bench=FOLDER swe-agent=FOLDER inspect=FOLDER trail=FOLDER
    python -m benchmarks.recount trace-column=FOLDER_OF_CLAUDE_CODE_SESSIONS     # as the Hub makes a table of them

Counted are rows, sessions, calls, and verdicts by outcome. Ends with status 1 where two counts differ.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Counts = Counter[str]


def documents(folder: Path, ending: str) -> Iterator[tuple[Path, Any]]:
    for path in sorted(folder.rglob(f"*{ending}")):
        yield path, json.loads(path.read_text("utf-8"))


def verdict(solved: object) -> str:
    return "not judged" if solved is None else "solved" if solved else "failed"


def calls_in(messages: list[dict[str, Any]]) -> int:
    return sum(len(m.get("tool_calls") or ()) for m in messages if m.get("role") == "assistant")


def tau_bench(folder: Path) -> Counts:
    """A list of trials a file: `traj` in OpenAI's form, and a reward."""
    found: Counts = Counter()
    for _, trials in documents(folder, ".json"):
        for trial in trials:
            found += Counter(rows=1, sessions=1, calls=calls_in(trial["traj"]))
            found[verdict(trial["reward"] == 1)] += 1
    return found


def terminal_bench(folder: Path) -> Counts:
    """A `results.json` a trial, and one of the run, which repeats them all."""
    found: Counts = Counter()
    for _, trial in documents(folder, "results.json"):
        if "trial_name" in trial:
            found += Counter({"rows": 1, verdict(trial["is_resolved"]): 1})
    return found


def swe_agent(folder: Path) -> Counts:
    """A folder a trial: a `report.json` says what was resolved, a `.traj` beside it holds the steps. An attempt without
    its trajectory is a session all the same; a step with an action is a call."""
    found: Counts = Counter()
    for _, reports in documents(folder, "report.json"):
        for report in reports.values():
            found += Counter({"rows": 1, "sessions": 1, verdict(report["resolved"]): 1})
    for _, run in documents(folder, ".traj"):
        found["calls"] += sum(bool((step.get("action") or "").strip()) for step in run["trajectory"])
    return found


def inspect(folder: Path) -> Counts:
    """An archive a log, a member a sample and epoch; a sample of one run and task counts once, however many logs have
    it."""
    found: Counts = Counter()
    seen: set[tuple[object, ...]] = set()
    for path in sorted(folder.rglob("*.eval")):
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("header.json"))["eval"]
            for name in archive.namelist():
                if name.startswith("samples/"):
                    sample = json.loads(archive.read(name))
                    key = about["run_id"], about["task_id"], sample["id"], sample["epoch"]
                    found["copies"] += key in seen
                    if key not in seen:
                        seen.add(key)
                        found += Counter(rows=1, sessions=1, calls=calls_in(sample["messages"]))
    return found


def trail(folder: Path) -> Counts:
    """A document a trace: spans within spans. Calls are spans of kind TOOL, and the code of a step, which its model
    wrote into a fenced block."""
    found: Counts = Counter()

    def calls(span: dict[str, Any]) -> int:
        within = span.get("child_spans", ())
        is_code = any(
            inner.get("span_attributes", {}).get("openinference.span.kind") == "LLM"
            and "```py" in (inner["span_attributes"].get("output.value") or "")
            for inner in within
        )
        is_tool = span.get("span_attributes", {}).get("openinference.span.kind") == "TOOL"
        return is_tool + is_code + sum(map(calls, within))

    for _, trace in documents(folder, ".json"):
        if "spans" in trace:
            found += Counter(rows=1, sessions=1, calls=sum(map(calls, trace["spans"])))
    return found


def trace_column(folder: Path) -> Counts:
    """A row a session with its transcript as text. A call is an id of `tool_use` outside side chains."""
    found: Counts = Counter()
    for table in sorted(folder.rglob("*.parquet")):
        for text in pq.read_table(table).column("trace").to_pylist():
            records = [json.loads(line) for line in text.splitlines() if line.strip()]
            contents = [(r.get("message") or {}).get("content") for r in records if r.get("type") == "assistant"]
            ids = {part["id"] for c in contents if isinstance(c, list) for part in c if part.get("type") == "tool_use"}
            found += Counter(rows=1, sessions=1, calls=len(ids))
    return found


SHAPES: dict[str, tuple[Callable[[Path], Counts], tuple[str, ...]]] = {
    "tau-bench": (tau_bench, ("rows", "sessions", "calls", "solved", "failed")),
    "terminal-bench": (terminal_bench, ("rows", "solved", "failed", "not judged")),
    "swe-agent": (swe_agent, ("rows", "sessions", "calls", "solved", "failed", "not judged")),
    "inspect": (inspect, ("rows", "sessions", "calls")),
    "trail": (trail, ("rows", "sessions", "calls")),
    "trace-column": (trace_column, ("rows", "sessions", "calls")),
}
ASKED = """SELECT (SELECT count(*) FROM attempts) AS attempts, (SELECT count(*) FROM sessions) AS sessions,
  (SELECT count(*) FROM tool_calls) AS calls, (SELECT count(*) FROM attempts WHERE outcome = 'solved') AS solved,
  (SELECT count(*) FROM attempts WHERE outcome = 'failed') AS failed,
  (SELECT count(*) FROM attempts WHERE outcome NOT IN ('solved', 'failed')) AS "not judged" """


def as_table(folder: Path, made: Path) -> Path:
    """Write the transcripts of a folder as a table, a row each."""
    texts = [path.read_text("utf-8") for path in sorted(folder.rglob("transcript.jsonl"))]
    made.mkdir()
    pq.write_table(pa.table({"harness": ["claude_code"] * len(texts), "trace": texts}), made / "train.parquet")
    return made


def by_program(folder: Path, work: Path) -> Counts:
    """Return what the program counts in a store of its own."""
    program = [sys.executable, "-m", "agentsignals"]
    store = ["--store", str(work / "store"), "--quiet"]
    alone = {**os.environ, "XDG_CACHE_HOME": str(work), "XDG_DATA_HOME": str(work)}
    subprocess.run(
        [*program, "analyze", str(folder), *store, "--jobs", "1"], check=True, env=alone, capture_output=True
    )
    told = subprocess.run([*program, "query", ASKED, *store, "--json"], check=True, env=alone, capture_output=True)
    (row,) = json.loads(told.stdout)
    return Counter(row, rows=row["attempts"] or row["sessions"])


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("sets", nargs="+", metavar="SHAPE=FOLDER", help=f"a shape of {', '.join(SHAPES)}")
    differs = 0
    for spec in arguments.parse_args().sets:
        shape, _, place = spec.partition("=")
        count, compared = SHAPES[shape]
        with tempfile.TemporaryDirectory() as scratch:
            folder = as_table(Path(place), Path(scratch, "data")) if shape == "trace-column" else Path(place)
            plain, ours = count(folder), by_program(folder, Path(scratch))
        for name in compared:
            same = plain[name] == ours[name]
            differs += not same
            print(f"{shape:15} {name:10} {plain[name]:8,} {ours[name]:8,} {'' if same else 'DIFFERS'}")
    return int(differs > 0)


if __name__ == "__main__":
    sys.exit(main())
