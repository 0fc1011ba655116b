"""`python -m agentsignals.lab.tiny.train --seed 0 --out FOLDER`: makes a checkpoint of the tiny world anew."""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--window", type=int, default=0, help="tokens that the first block sees; 0: all")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    from agentsignals.lab.residual.training import Shape, train  # noqa: PLC0415  (torch is loaded when it is needed)

    train(asked.seed, asked.out, Shape(asked.layers, asked.width, asked.window), steps=asked.steps)


if __name__ == "__main__":
    main()
