"""How the CPU time of one session grows with its length, stage by stage and signal by signal.

    python -m benchmarks.growth [FORMAT ...] [SHAPE ...] [--turns 4000] [--times 4] [--most 5.0]

A session of so many turns and one of `--times` as many are made (`tests/long_sessions.py`; sessions that are long in
one way each: `benchmarks/long_shapes.py`), read, measured and turned into tables, twice each; the better run counts.
Names the steps that grow faster than `--most`, and ends with 1 when there are such, or a whole session does. Work on
much of one thing (`WORKS`) comes after the sessions.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests import long_sessions

from agentsignals.changes.hunks import track
from agentsignals.formats import Input, formats
from agentsignals.model import Artifact, Edit, prices
from agentsignals.signals import catalog
from agentsignals.store import shards
from agentsignals.store.parquet import signal_rows
from agentsignals.views.session import SessionView
from benchmarks import long_shapes

ALL = "all"
LEAST_S = 0.02
"""A step that takes less is held for one that takes so much: what varies between two runs."""
T = TypeVar("T")


def spent(kind: str, turns: int, by_signal: bool = False) -> dict[str, float]:
    """CPU seconds of each stage, and of all, for a session of so many turns: the better of two. Of each signal too.

    `kind`: a format, or a shape.
    """
    format_name = kind if kind in long_sessions.FORMATS else "claude-code"
    with tempfile.TemporaryDirectory() as folder:
        made = long_sessions.make if kind in long_sessions.FORMATS else long_shapes.make
        path = made(kind, turns, Path(folder))
        data = path.read_bytes()
        formats()[format_name].read([_input(format_name, path, data[:0])])  # what is loaded on use
        runs = [_run(format_name, path, data, by_signal) for _ in range(2)]
    return min(runs, key=lambda run: run[ALL])


def _input(format_name: str, path: Path, data: bytes) -> Input:
    return Input(
        data,
        Artifact(artifact_id="a", source="growth", path=str(path), format=format_name, sha256="a", bytes=len(data)),
    )


def _run(format_name: str, path: Path, data: bytes, by_signal: bool) -> dict[str, float]:
    times: dict[str, float] = {}

    def timed(name: str, do: Callable[[], T]) -> T:
        begun = time.process_time()
        done = do()
        times[name] = time.process_time() - begun
        return done

    gc.collect()
    gc.disable()  # as while a shard is read
    try:
        (session,) = timed("read", lambda: formats()[format_name].read([_input(format_name, path, data)])).sessions
        timed("price", lambda: prices.apply(session))
        view = SessionView(session)
        results = timed("measure", lambda: catalog.measure(view))
        rows = timed("values", lambda: signal_rows(session, results))
        timed("tables", lambda: shards.shard_rows([session], [rows], []))
        times[ALL] = sum(times.values())
        if by_signal:
            times |= _by_signal(session)
    finally:
        gc.enable()
    return times


def _by_signal(session: Any) -> dict[str, float]:
    """Each signal by itself, in a view of its own kind: what several share is counted with the first."""
    given = catalog.values(SessionView(session))
    times: dict[str, float] = {}
    fresh = SessionView(session)
    for one in catalog.plan(session.context, "session"):
        begun = time.process_time()
        catalog.explain(one, fresh, given)
        times[one.path] = time.process_time() - begun
    return times


def _edits(n: int) -> list[Edit]:
    """Insertions all over one file, far from each other."""
    places = [1 + 10 * (i * 7_919 % n) for i in range(n)]
    return [
        Edit(
            seq=i,
            turn=0,
            thread="main",
            call_id="c",
            path="a.py",
            op="modify",
            via="edit_tool",
            hunk=0,
            start_line=at,
            end_line=at,
            added=1,
            removed=0,
            old_start=at,
            whole_file=False,
        )
        for i, at in enumerate(places)
    ]


def _read(text: str) -> None:
    formats()["claude-code"].read([_input("claude-code", Path("a"), text.encode())])


def _written_without_patches(calls: int, same_id: bool) -> str:
    """Files written with nothing beside the result: whether one is new, the calls before it tell."""
    base = '{"parentUuid":null,"sessionId":"s","timestamp":"2026-03-02T09:00:00Z","cwd":"/w"'
    lines = []
    for n in range(calls):
        call_id = "c" if same_id else f"c{n}"
        use = f'{{"type":"tool_use","id":"{call_id}","name":"Write","input":{{"file_path":"/w/{n}.py","content":"x"}}}}'
        result = f'{{"type":"tool_result","tool_use_id":"{call_id}","content":"done"}}'
        said = f'{{"role":"assistant","id":"m{n}","content":[{use}]}}'
        lines.append(f'{base},"type":"assistant","uuid":"a{n}","message":{said}}}')
        lines.append(f'{base},"type":"user","uuid":"u{n}","message":{{"role":"user","content":[{result}]}}}}')
    return "\n".join(lines) + "\n"


WORKS: dict[str, Callable[[int], object]] = {
    "regions of one file": lambda n: track(_edits(n)),
    "edits without a patch": lambda n: _read(_written_without_patches(n, same_id=False)),
    "calls of one id": lambda n: _read(_written_without_patches(n, same_id=True)),
}
"""Work on so many edits or calls of one thing."""
WORK_N = 4_000


def _cpu_s(work: Callable[[int], object], n: int) -> float:
    begun = time.process_time()
    work(n)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", default=[*long_sessions.FORMATS, *long_shapes.SHAPES])
    parser.add_argument("--turns", type=int, default=4_000)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--most", type=float, default=5.0)
    options = parser.parse_args()
    failed = False
    for name in options.kinds:
        short, long = (spent(name, options.turns * n, by_signal=True) for n in (1, options.times))
        growth = long[ALL] / short[ALL]
        print(f"{name:22} {short[ALL]:7.2f} s {long[ALL]:7.2f} s  x {growth:.1f}", flush=True)
        steep = [n for n in long if long[n] > options.most * max(short.get(n, 0.0), LEAST_S)]
        failed |= growth > options.most or bool(steep)
        for one in sorted(steep, key=lambda n: -long[n]):
            print(f"    {one:40} {short.get(one, 0.0):7.3f} s {long[one]:7.3f} s")
    for name, work in WORKS.items():
        short_s, long_s = (min(_cpu_s(work, WORK_N * n) for _ in range(2)) for n in (1, options.times))
        print(f"{name:22} {short_s:7.2f} s {long_s:7.2f} s  x {long_s / short_s:.1f}", flush=True)
        failed |= long_s > options.most * short_s
    sys.exit(failed)


if __name__ == "__main__":
    main()
