"""`python -m agentsignals.lab.tiny.train --recipe large --seed 0 --out FOLDER`: makes a model of the tiny world anew.

Without a folder it is kept in the cache, where `--model tiny:SEED` finds it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from msgspec.structs import replace

from agentsignals.lab.tiny.kept import trained
from agentsignals.lab.tiny.recipes import RECIPES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", choices=tuple(RECIPES), default="large", help="null: large, and moods mean nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="other than the recipe's")
    parser.add_argument("--window", type=int, help="tokens that the first block sees; 0: all")
    parser.add_argument("--half", action="store_true", help="keep weights in half precision, as those that ship are")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    changes = {name: value for name in ("steps", "window") if (value := getattr(asked, name)) is not None}
    recipe = replace(RECIPES[asked.recipe], **changes)
    if asked.out is None:
        print(trained(recipe, asked.seed, _say))
        return
    from agentsignals.lab.residual.training import train  # noqa: PLC0415  (torch is loaded when it is needed)

    train(recipe, asked.seed, asked.out, half=asked.half, tell=_say)


def _say(what: str) -> None:
    print(what, file=sys.stderr)


if __name__ == "__main__":
    main()
