"""Ask a tool about every case: `python -m conformance agentsignals`, or write the homes: `--write FOLDER`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from conformance import adapters, suite


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    options.add_argument("tool", nargs="?", choices=adapters.TOOLS, default="agentsignals")
    options.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
    options.add_argument("--write", type=Path, metavar="FOLDER", help="write the homes there and ask nobody")
    options.add_argument("--save", action="store_true", help="keep the answers in results/ for the table")
    given = options.parse_args()
    chosen = list(suite.cases(given.only))
    if given.write:
        for case in chosen:
            case.lay_out(given.write / case.name)
        return 0
    tool = adapters.TOOLS[given.tool]
    with tempfile.TemporaryDirectory() as folder:
        homes = {case.name: case.lay_out(Path(folder).resolve() / case.name) for case in chosen}
        answers = tool.answers(homes)
    counted: dict[str, int] = {}
    for case in chosen:
        verdict = suite.verdict(case, answers.get(case.name))
        counted[verdict] = counted.get(verdict, 0) + 1
        for field, (right, said) in suite.wrong(case, answers.get(case.name) or {}).items():
            print(f"{case.name}: {field} is {json.dumps(right)}, and {given.tool} says {json.dumps(said)}")
    print(f"{given.tool}: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(counted.items())))
    if given.save:
        kept = suite.RESULTS / f"{given.tool}.json"
        if given.only and kept.exists():
            answers = json.loads(kept.read_text("utf-8"))["answers"] | answers
        held = {"tool": given.tool, "version": tool.version(), "date": time.strftime("%Y-%m-%d"), "answers": answers}
        kept.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", "utf-8")
    return 0 if counted.keys() <= {"right"} else 1


if __name__ == "__main__":
    sys.exit(main())
