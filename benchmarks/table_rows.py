"""Rows a second of a data set of Parquet shards, and the memory that reading it takes, beside a bare Arrow loop.

    python -m benchmarks.table_rows 50000 100000 200000 [--shard 10000]

Each number of rows is made by repetition, with ids of their own, and read into a new store. The peak of this program's
main process and of its largest worker are told apart: neither may follow the number of rows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CALL = '{"command": "pytest -q tests/test_parser.py"}'


def row(number: int) -> dict[str, object]:
    """Return a short session: a task, a call with its result in three of four, an answer."""
    messages = [{"role": "user", "content": f"Mend the parser of case {number}: it drops the last line."}]
    if number % 4:
        messages += [
            {
                "role": "assistant",
                "content": "I run its tests first.\n<function=bash>\n<parameter=command>pytest -q"
                f" tests/test_parser.py -k case_{number}</parameter>\n</function>",
            },
            {"role": "user", "content": f"OBSERVATION:\n{number % 7} passed"},
        ]
    messages.append({"role": "assistant", "content": f"The last line of case {number} is kept now."})
    return {
        "instance_id": f"case-{number % 5000}", "traj_id": f"traj-{number:08d}", "model": "made-model",
        "messages": messages, "resolved": number % 3 == 0,
    }  # fmt: skip


def make(folder: Path, rows: int, per_shard: int) -> None:
    """Write the data set as Parquet shards."""
    shards = -(-rows // per_shard)
    for shard in range(shards):
        numbers = range(shard * per_shard, min(rows, (shard + 1) * per_shard))
        table = pa.Table.from_pylist([row(number) for number in numbers])
        pq.write_table(table, folder / f"train-{shard:05d}-of-{shards:05d}.parquet", row_group_size=1000)


def bare_loop(folder: Path) -> float:
    """Return the rows a second of a loop that makes Python objects of all rows and counts their messages."""
    begun, rows, messages = time.perf_counter(), 0, 0
    for path in sorted(folder.iterdir()):
        for batch in pq.ParquetFile(path).iter_batches(1024):
            for one in batch.to_pylist():
                rows += 1
                messages += len(one["messages"])
    return rows / (time.perf_counter() - begun)


def resident(pid: int, field: str) -> int:
    """Return a figure of /proc/PID/status in kB; 0 when the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith(field)), 0)


def measure(folder: Path, jobs: int) -> dict[str, object]:
    """Read the data set with a new store, and watch the processes."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as store:
        reading = (
            "import sys; from agentsignals.ingest import pipeline; folder, store, jobs = sys.argv[1:]; "
            "sys.stdout.write(str(pipeline.analyze([folder], store, jobs=int(jobs)).sessions))"
        )
        command = [sys.executable, "-c", reading, str(folder), f"{store}/s", str(jobs)]
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        peaks = {"main": 0, "worker": 0}
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.1):
                peaks["main"] = max(peaks["main"], resident(process.pid, "VmHWM"))
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
                for child in children.read_text().split() if children.exists() else ():
                    peaks["worker"] = max(peaks["worker"], resident(int(child), "VmHWM"))

        watching = threading.Thread(target=watch)
        watching.start()
        out, _ = process.communicate()
        seconds = time.perf_counter() - begun
        ended.set()
        watching.join()
    return {"sessions": int(out), "seconds": round(seconds, 1), "main_mb": peaks["main"] // 1024,
            "worker_mb": peaks["worker"] // 1024}  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("rows", type=int, nargs="+")
    arguments.add_argument("--shard", type=int, default=10_000, help="rows of a Parquet file")
    arguments.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    options = arguments.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "data"
            folder.mkdir()
            make(folder, rows, options.shard)
            bare = bare_loop(folder)
            told = measure(folder, options.jobs)
        told |= {"rows": rows, "rows_s": round(rows / float(str(told["seconds"]))), "bare_rows_s": round(bare)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
