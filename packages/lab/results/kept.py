"""Rows of runs as small JSON lines, without what the model wrote: `python kept.py RUNS FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LEFT_OUT = {
    "answer", "source", "feedback", "error", "evaluator", "tier", "wall_time_s", "prose_words", "seed", "logprob_sum",
    "visible_passed", "n_visible", "hidden_passed", "n_hidden", "finish", "valid_python", "passed_at", "noise",
    "frustration_per_100_words", "desperation_per_100_words", "give_up_per_100_words", "regressed", "repeated", "span",
    "label",
}  # fmt: skip
TABLES = {
    "loop": ("episodes", "attempts", "manipulation"),
    "directions": ("separation",),
    "trajectory": ("probe",),
}


def rounded(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def keep(runs: Path, into: Path) -> None:
    for run, tables in TABLES.items():
        for table in tables:
            path = runs / run / "rows" / f"{table}.jsonl"
            if not path.exists():
                continue
            rows = [
                {name: rounded(value) for name, value in row.items() if name not in LEFT_OUT}
                for row in map(json.loads, path.read_text().splitlines())
                if row.get("span", "all") == "all"
            ]
            name = f"{run}-{table}" if run == "trajectory" else table
            (into / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if (runs / run / "manifest.json").exists():
            manifest = json.loads((runs / run / "manifest.json").read_text())
            manifest["model"]["name"] = Path(manifest["model"]["name"]).name
            (into / f"{run}-manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    for trends in runs.glob("trajectory/trends.json"):
        (into / "trajectory-trends.json").write_bytes(trends.read_bytes())


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]))
