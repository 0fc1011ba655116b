"""How long a page of `serve` takes to open, over a store of any size, and what the server holds meanwhile.

    python -m benchmarks.pages STORE [STORE …] [--rounds 20] [--browser] [--json]

Each kind of page is asked for over HTTP: its first answer from a server that has just begun (what is made once and
kept is made then, but for the index that a search makes), then so many answers more, of different sessions where the
page is one session's. Milliseconds to the last byte; memory is the server's resident set after all of it. `--browser`:
also the time until Chromium has drawn the page.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import psutil
from tests.ui.browser import browsing

from agentsignals.store import Store
from agentsignals.store.query import ask, connect

_SESSIONS = """
SELECT session_id FROM sessions WHERE n_tool_calls > 0 ORDER BY hash(session_id) LIMIT $n
"""
_LONGEST = "SELECT session_id, count(*) AS n FROM events GROUP BY 1 ORDER BY n DESC, 1 LIMIT 1"
_AGENT = "SELECT agent FROM sessions GROUP BY agent ORDER BY count(*) DESC, agent LIMIT 1"
_WORDS = ("error", "test", "merge conflict", "TypeError", "package.json", "refactor", "permission denied", "README")


class Row(NamedTuple):
    """One kind of page of one store: milliseconds of the first answer, of the median and the 95th percentile."""

    page: str
    first_ms: float
    p50_ms: float
    p95_ms: float
    kilobytes: float
    drawn_ms: float | None


def addresses(store: Store, n: int) -> Iterator[tuple[str, list[str]]]:
    """Kinds of pages, each with addresses of it."""
    connection = connect(store)
    ids = [row["session_id"] for row in ask(connection, _SESSIONS, {"n": n})] or list(store.manifest.sessions)[:n]
    longest = ask(connection, _LONGEST)[0]
    agent = quote(ask(connection, _AGENT)[0]["agent"], safe="")
    yield "overview", ["/"]
    yield "overview of one agent", [f"/?agent={agent}"]
    yield "sessions", ["/sessions"]
    yield "sessions, filtered", [f"/sessions?agent={agent}&where=user.tool_error_rate>=0.1".replace(">", "%3E")]
    yield "search", [f"/search?q={quote(words)}" for words in _WORDS]
    yield "session", [f"/session/{quote(one, safe='')}" for one in ids]
    yield f"session of {longest['n']:,} events", [f"/session/{quote(longest['session_id'], safe='')}"]
    middle = longest["n"] // 2
    yield "its middle", [f"/session/{quote(longest['session_id'], safe='')}?at={middle}"]
    yield "why", [f"/session/{quote(one, safe='')}/explain/user.tool_error_rate" for one in ids[: n // 2]]
    yield "signals", ["/signals"]
    yield "signal", ["/signal/user.tool_error_rate"]
    yield "study", ["/studies/tools"]
    yield "files", ["/artifacts"]


def measured(folder: Path, rounds: int, browser: bool) -> tuple[list[Row], float]:
    """Rows of a store, and the server's memory in MiB at the end."""
    program = [sys.executable, "-m", "agentsignals"]
    subprocess.run([*program, "search", "anything", "--quiet", "--store", str(folder)], check=True, capture_output=True)
    command = [*program, "serve", "--port", "0", "--json", "--store", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = ""
            while not said.rstrip().endswith("}"):
                said += server.stdout.readline()
            where = json.loads(said)["url"]
            rows = [_row(where, kind, paths, rounds, browser) for kind, paths in addresses(Store(folder), rounds)]
            return rows, psutil.Process(server.pid).memory_info().rss / 2**20
        finally:
            server.terminate()


def _row(where: str, kind: str, paths: list[str], rounds: int, browser: bool) -> Row:
    first_ms, size = _took(where, paths[0])
    again = [_took(where, paths[n % len(paths)])[0] for n in range(1, rounds + 1)]
    cut = quantiles(again, n=20, method="inclusive")
    return Row(kind, first_ms, cut[9], cut[18], size / 1000, _drawn(where, paths[-1]) if browser else None)


def _took(where: str, path: str) -> tuple[float, int]:
    asked = urlsplit(where)
    connection = http.client.HTTPConnection(asked.hostname or "", asked.port, timeout=120)
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    size = len(answer.read())
    took_ms = (time.perf_counter() - began) * 1000
    connection.close()
    if answer.status != http.client.OK:
        sys.exit(f"{path} answers {answer.status}")
    return took_ms, size


def _drawn(where: str, path: str) -> float:
    with browsing() as page:
        page.goto(where, wait_until="load")  # what the browser keeps (style, scripts) is there
        page.goto(where.rstrip("/") + path, wait_until="load")
        after_the_next_frame = "new Promise(r => requestAnimationFrame(() => setTimeout(() => r(performance.now()))))"
        drawn: float = page.evaluate(after_the_next_frame)
        return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    told: dict[str, Any] = {}
    for folder in options.stores:
        rows, memory_mib = measured(folder, options.rounds, options.browser)
        told[str(folder)] = {"pages": [row._asdict() for row in rows], "memory_mib": memory_mib}
        if not options.json:
            print(f"{folder}: {len(Store(folder).manifest.sessions):,} sessions; server {memory_mib:,.0f} MiB")
            print(f"  {'page':<34}{'first ms':>10}{'p50':>8}{'p95':>8}{'kB':>8}{'drawn ms':>10}")
            for row in rows:
                drawn = "" if row.drawn_ms is None else f"{row.drawn_ms:,.0f}"
                print(
                    f"  {row.page:<34}{row.first_ms:>10,.0f}{row.p50_ms:>8,.0f}{row.p95_ms:>8,.0f}"
                    f"{row.kilobytes:>8,.0f}{drawn:>10}"
                )
    if options.json:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
