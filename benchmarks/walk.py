"""How many files of the program one transcript enters on its way from bytes to printed findings.

    python -m benchmarks.walk [TRANSCRIPT] [--verb analyze] [--list]

Runs `agentsignals analyze TRANSCRIPT` in one process under a profile hook and counts the files and functions of the
package in which at least one function was called; loading a module counts for nothing. Without TRANSCRIPT: a sample of
Claude Code. `--list` prints the files with the number of functions entered in each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "tests" / "formats" / "claude-code"
HOOK = """
import atexit, json, os, sys, threading
entered = set()
def enter(frame, event, argument):
    code = frame.f_code
    is_function = event == "call" and code.co_flags & 2 and not code.co_name.startswith("<")
    if is_function and "/agentsignals/" in code.co_filename:
        entered.add((code.co_filename.split("/agentsignals/", 1)[1], code.co_qualname))
def write():
    sys.setprofile(None)
    with open(os.environ["WALK"], "w") as out:
        json.dump(sorted(entered), out)
end = os._exit
os._exit = lambda code: (write(), end(code))
atexit.register(write)
sys.setprofile(enter)
threading.setprofile(enter)
"""


def walk(transcript: Path, verb: str) -> Counter[str]:
    """Return the files entered, each with its number of functions entered."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "traces").mkdir()
        shutil.copy(transcript, folder / "traces")
        (folder / "sitecustomize.py").write_text(HOOK, "utf-8")
        places = os.pathsep.join(filter(None, [name, os.environ.get("PYTHONPATH", "")]))
        environment = os.environ | {"PYTHONPATH": places, "WALK": str(folder / "entered"), "HOME": name}
        command = [sys.executable, "-m", "agentsignals", verb, str(folder / "traces"), "--jobs", "1", "--quiet"]
        subprocess.run([*command, "--store", str(folder / "store")], env=environment, check=True, capture_output=True)
        return Counter(file for file, _ in json.loads((folder / "entered").read_text("utf-8")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transcript", nargs="?", type=Path)
    parser.add_argument("--verb", default="analyze")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    transcript = arguments.transcript or max(SAMPLE.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    files = walk(transcript, arguments.verb)
    folders = {file.split("/")[0] for file in files}
    print(f"{len(files)} files, {sum(files.values())} functions, {len(folders)} packages")
    if arguments.list:
        for file, n in sorted(files.items()):
            print(f"{n:6} {file}")


if __name__ == "__main__":
    main()
