"""Where the CPU time of a cold `analyze` goes, stage by stage: in one process, by clocks around named functions.

    python -m benchmarks.stages [FOLDER] [--rounds 3] [--json]

Each stage is exclusive: what it calls of another stage is the other's. Least of the rounds, beside the time a bare loop
of JSON decoding takes over the same lines, here and now; the clocks themselves add some per cent. What is loaded is
loaded before, and named as a stage of its own. A stage whose functions are gone fails: then this table must follow.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import reduce, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
from msgspec import structs

from agentsignals.cli import main as command_line
from agentsignals.formats import formats
from agentsignals.ingest import plan
from agentsignals.signals.catalog import catalogue

STAGES = {
    "looking, recognising": ["ingest.pipeline:planning.make_plan"],
    "reading bytes": ["ingest.shard:_contents"],
    "content id": ["ingest.shard:_sha256"],
    "soundness": ["formats:validate"],
    "prices": ["ingest.shard:prices.apply"],
    "signals": ["ingest.shard:measure"],
    "signal rows": ["ingest.shard:signal_rows", "ingest.shard:shards.attempt_rows"],
    "sites of shards": ["ingest.shard:shard_sites"],
    "columns": ["ingest.shard:shards.shard_rows"],
    "Parquet": ["store.shards:Draft.add", "store.shards:Draft.__exit__"],
    "index": ["store:Store.add_shard"],
    "places of sessions": ["ingest.corpus_signals:measure_places"],
    "findings": ["cli.analyze:findings_of"],
}
"""Functions by stage, as the module that calls them names them: `module:attribute`."""
READING = "records to sessions"
"""Each format's `read`."""
REST, LOADING, LOOP = "the rest", "loading", "bare loop"


class Clock:
    """CPU seconds by stage, each without those it calls."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._stack = [REST]
        self.since = time.process_time()

    def _switch(self) -> None:
        now = time.process_time()
        self.spent[self._stack[-1]] += now - self.since
        self.since = now

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted as the stage's."""

        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            self._switch()
            self._stack.append(stage)
            try:
                return function(*arguments, **named)
            finally:
                self._switch()
                self._stack.pop()

        return timed

    def finish(self) -> dict[str, float]:
        """What was spent since it began."""
        self._switch()
        return dict(self.spent)


def holder_of(target: str) -> tuple[Any, str]:
    """The module or class that a stage's function is looked up in, and its name there."""
    module, _, path = target.partition(":")
    *above, name = path.split(".")
    return reduce(getattr, above, import_module(f"agentsignals.{module}")), name


def instrument(clock: Clock) -> None:
    """Puts the clock around every stage's functions."""
    for stage, targets in STAGES.items():
        for target in targets:
            holder, name = holder_of(target)
            setattr(holder, name, clock.around(stage, getattr(holder, name)))
    for each in formats().values():
        structs.force_setattr(each, "read", clock.around(READING, each.read))


def once(folder: str) -> dict[str, float]:
    """CPU seconds by stage of a cold run in this very process, which has done nothing yet."""
    clock = Clock()
    catalogue()
    instrument(clock)
    plan.worker_count = lambda planned, jobs: 0  # all in this process, which a worker's death would end
    clock.spent[LOADING] = time.process_time()
    clock.since = time.process_time()
    with tempfile.TemporaryDirectory() as store, redirect_stdout(sys.stderr):
        command_line(["analyze", folder, "--store", store, "--jobs", "1", "--quiet"])
    return clock.finish()


def loop(folder: str) -> float:
    """CPU seconds of a bare loop of decoding, interpreter and imports left out."""
    begun = time.process_time()
    for path in sorted(Path(folder).rglob("transcript.*")):
        data = path.read_bytes()
        for line in [data] if path.suffix == ".json" else data.split(b"\n"):
            with suppress(orjson.JSONDecodeError):
                orjson.loads(line)
    return time.process_time() - begun


def measured(folder: str, rounds: int) -> dict[str, float]:
    """The least of each stage over the rounds, each a process of its own."""
    least: dict[str, float] = {}
    for _ in range(rounds):
        command = [sys.executable, "-m", "benchmarks.stages", folder, "--once"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for stage, spent_s in json.loads(printed).items():
            least[stage] = min(spent_s, least.get(stage, spent_s))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=str(Path(__file__).parents[2] / "shared/corpus/sessions"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        print(json.dumps({**once(options.folder), LOOP: loop(options.folder)}))
        return
    spent = measured(options.folder, options.rounds)
    if options.json:
        print(json.dumps(spent, indent=2))
        return
    bare = spent.pop(LOOP)
    print(f"{'stage':24} {'ms':>7} {'loops':>6}")
    for stage, spent_s in sorted(spent.items(), key=lambda pair: -pair[1]):
        print(f"{stage:24} {spent_s * 1000:7.0f} {spent_s / bare:6.2f}")
    print(f"{'all':24} {sum(spent.values()) * 1000:7.0f} {sum(spent.values()) / bare:6.2f}")
    print(f"{LOOP:24} {bare * 1000:7.0f}")


if __name__ == "__main__":
    main()
