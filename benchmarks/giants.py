"""Inputs far beyond what an agent writes in a week: seconds of CPU, peak memory, and the size of the index for each.

    python -m benchmarks.giants [NAME ...] [--folder FOLDER] [--scale 1.0] [--keep]

many      one file of 3 GB with 12,000 sessions (OpenTraces)
long      one session of 400,000 lines (Claude Code)
files     200,000 small files that no format claims
line      a session with one line of 300 MB
document  a JSON document of 300 MB (Gemini CLI)
packed    a gzip file that unpacks to 1.2 GB (Codex)

Each is made, analysed by one process into a fresh store, analysed again (`again`: nothing has changed), and removed.
`--scale 0.1` makes all of them a tenth as large: memory of `many` should not follow. The last two are beyond stated
limits (`formats/records.py`, `sources/local.py`): what counts there is that they are bounded and counted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentsignals.model import to_iso
from benchmarks.aims import spent

_START_US = 1_772_442_000_000_000
_TURNS = 40
_SESSION_BYTES = 250_000
"""Of one session in the file of many."""


def _many(folder: Path, scale: float) -> None:
    with (folder / "many.jsonl").open("w") as file:
        for n in range(int(12_000 * scale)):
            file.write(json.dumps(_trace(n)) + "\n")


def _trace(n: int) -> dict[str, Any]:
    said = f"word_{n} and others, so that there is something to read; " * (_SESSION_BYTES // (_TURNS * 55))
    steps: list[dict[str, Any]] = []
    for turn in range(_TURNS):
        at = to_iso(_START_US + (n * _TURNS + turn) * 60_000_000)
        steps.append({"step_index": 2 * turn, "role": "user", "content": f"please look at {n} {turn}", "timestamp": at})
        call = {"tool_call_id": f"c{turn}", "tool_name": "bash", "input": {"command": f"cat src/part_{turn}.py"}}
        answer = {"step_index": 2 * turn + 1, "role": "agent", "content": f"I changed number {turn}.", "timestamp": at}
        answer |= {"tool_calls": [call], "observations": [{"source_call_id": f"c{turn}", "content": said}]}
        steps.append(answer)
    return {"schema_version": "0.3", "trace_id": f"trace-{n:06d}", "agent": {"name": "claude-code"}, "steps": steps}


def _long(folder: Path, scale: float) -> None:
    with (folder / "long.jsonl").open("w") as file:
        for line in _claude(int(400_000 * scale)):
            file.write(line)


def _claude(lines: int) -> Iterator[str]:
    """A prompt, a read, an edit, tests that fail now and then, a word: nine lines a turn."""
    base = {"sessionId": "11111111-2222-4333-8444-555555555555", "cwd": "/home/dev/orchard", "version": "2.1.20"}
    for n in range(lines):
        turn, beat = divmod(n, 9)
        record: dict[str, Any] = {**base, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None}
        record["timestamp"] = to_iso(_START_US + n * 5_000_000)
        path = f"/home/dev/orchard/src/part_{turn % 400}.py"
        tool = {
            1: ("Read", {"file_path": path}),
            3: ("Edit", {"file_path": path, "old_string": f"value {turn}", "new_string": f"value {turn}\nand more"}),
            5: ("Bash", {"command": f"python -m pytest tests/test_{turn % 60}.py -q"}),
        }
        if beat == 0:
            record |= {"type": "user", "message": {"role": "user", "content": f"still failing, number {turn}"}}
        elif beat in tool:
            name, given = tool[beat]
            block = {"type": "tool_use", "id": f"c{n}", "name": name, "input": given}
            record |= {"type": "assistant", "message": _said(n, block)}
        elif beat in (2, 4, 6):
            failed = beat == 6 and turn % 3 == 0
            text = "Exit code 1\n2 failed" if failed else f"{turn} lines of what it printed. " * 20
            block = {"type": "tool_result", "tool_use_id": f"c{n - 1}", "content": text, "is_error": failed}
            record |= {"type": "user", "message": {"role": "user", "content": [block]}}
            if beat == 4 and turn % 2:
                patch = {"oldStart": turn % 3_000 + 1, "newStart": turn % 3_000 + 1, "lines": [" a", "+and more"]}
                record["toolUseResult"] = {"filePath": path, "structuredPatch": [patch]}
        else:
            record |= {"type": "assistant", "message": _said(n, {"type": "text", "text": f"I looked at {turn}. " * 5})}
        yield json.dumps(record) + "\n"


def _said(n: int, block: dict[str, Any]) -> dict[str, Any]:
    used = {"input_tokens": 12, "output_tokens": 90, "cache_read_input_tokens": 14_000}
    return {"id": f"m{n}", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "usage": used}


def _files(folder: Path, scale: float) -> None:
    for n in range(int(200_000 * scale)):
        if n % 1_000 == 0:
            (folder / f"{n // 1_000:03d}").mkdir()
        (folder / f"{n // 1_000:03d}" / f"{n}.json").write_text(f'{{"name": "settings", "n": {n}}}\n')


def _line(folder: Path, scale: float) -> None:
    with (folder / "line.jsonl").open("w") as file:
        lines = list(_claude(200))
        file.writelines(lines[:100])
        record = json.loads(lines[100])
        record["message"] = {"role": "user", "content": "x" * int(300e6 * scale)}
        file.write(json.dumps(record) + "\n")
        file.writelines(lines[101:])


def _document(folder: Path, scale: float) -> None:
    with (folder / "session.json").open("w") as file:
        at = to_iso(_START_US)
        head = {"sessionId": "s-giant", "projectHash": "0" * 64, "startTime": at, "lastUpdated": at}
        file.write(json.dumps(head)[:-1] + ', "messages": [')
        for n in range(int(300e6 * scale) // 1_000):
            row = {"id": f"m{n}", "type": "user", "timestamp": to_iso(_START_US + n), "content": "word " * 180}
            file.write(("," if n else "") + json.dumps(row))
        file.write("]}")


def _packed(folder: Path, scale: float) -> None:
    meta = {"id": "22222222-2222-4333-8444-555555555555", "cwd": "/home/dev", "originator": "codex_cli"}
    with gzip.open(folder / "packed.jsonl.gz", "wt", 1) as file:
        file.write(json.dumps({"timestamp": to_iso(_START_US), "type": "session_meta", "payload": meta}) + "\n")
        words = "word " * 2_000
        for n in range(int(1.2e9 * scale) // 10_100):
            payload = {"type": "user_message", "message": f"{n} {words}"}
            at = to_iso(_START_US + n * 1_000_000)
            file.write(json.dumps({"timestamp": at, "type": "event_msg", "payload": payload}) + "\n")


INPUTS: dict[str, Callable[[Path, float], None]] = {
    "many": _many,
    "long": _long,
    "files": _files,
    "line": _line,
    "document": _document,
    "packed": _packed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(INPUTS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "giants")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--keep", action="store_true", help="leave the inputs where they are")
    options = parser.parse_args()
    print("input         MB   cpu_s  wall_s  peak MiB  again_s  index MB  sessions, skipped")
    for name in options.names:
        print(_measured(name, options.folder / name, options.scale), flush=True)
        if not options.keep:
            shutil.rmtree(options.folder / name)


def _measured(name: str, folder: Path, scale: float) -> str:
    sources, store = folder / "sources", folder / "store"
    if not sources.is_dir():
        sources.mkdir(parents=True)
        # By another process: a child's peak begins with what its parent holds when it starts.
        maker = multiprocessing.Process(target=INPUTS[name], args=(sources, scale))
        maker.start()
        maker.join()
    shutil.rmtree(store, ignore_errors=True)
    size = sum(p.stat().st_size for p in sources.rglob("*") if p.is_file())
    command = [sys.executable, "-m", "agentsignals", "analyze", str(sources), "--store", str(store), "--jobs", "1"]
    first, again = spent([*command, "--quiet"]), spent([*command, "--quiet"])
    told = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    summary = json.loads(told)
    index = sum(p.stat().st_size for p in store.iterdir() if p.is_file())
    figures = f"{first.cpu_s:7.1f} {first.wall_s:7.1f} {first.peak_mib:9.0f} {again.cpu_s:8.1f} {index / 1e6:9.1f}"
    return f"{name:9} {size / 1e6:6.0f} {figures}  {summary['sessions']}, {summary['skipped']}"


if __name__ == "__main__":
    main()
