"""Pictures of what the program prints, as SVG: text as text, of a real run over the demo's made-up traces."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from functools import cache
from html import escape
from pathlib import Path
from unittest import mock

from agentsignals.cli import demo_corpus, main
from agentsignals.ingest import pipeline

_COLUMNS, _CHARACTER, _LINE, _MARGIN = 112, 7.83, 19, 18
_EXPLAINED = ("3253362f", "dynamics.repetition_rate")


@cache
def _printed() -> dict[str, str]:
    """What the commands of the pictures print, by command."""
    # Not in $TMPDIR: lines break by the length of the paths in them.
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:
        folder = Path(scratch).resolve()
        demo_corpus.make_corpus(folder / "corpus")
        pipeline.analyze([str(folder / "corpus")], folder / "store", jobs=1)
        commands = (["findings"], ["explain", *_EXPLAINED])
        return {" ".join(words): _run([*words, "--store", str(folder / "store")], folder) for words in commands}


def _run(words: list[str], folder: Path) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), mock.patch.dict(os.environ, COLUMNS=str(_COLUMNS)):
        main(words)
    # What an artifact is called hangs on where the folder lies.
    return re.sub(r"\b(?=\d*[a-f])[0-9a-f]{16}\b", "5e0d" * 4, out.getvalue().replace(f"{folder}/", "demo/"))


def findings() -> str:
    return _svg("findings")


def explained() -> str:
    return _svg(" ".join(["explain", *_EXPLAINED]))


def _svg(command: str) -> str:
    rows = [("$ ", f"agentsignals {command}", "command"), ("", "", "plain")]
    rows += [("", line, _style(line)) for line in _printed()[command].splitlines()]
    height = _MARGIN * 2 + _LINE * len(rows)
    width = round(_COLUMNS * _CHARACTER) + 2 * _MARGIN
    texts = "\n".join(
        f'<text class="{style}" x="{_MARGIN}" y="{_MARGIN + _LINE * (n + 1) - 5}">{escape(before + text)}</text>'
        for n, (before, text, style) in enumerate(rows)
        if text
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="What agentsignals {escape(command)} prints">\n{_STYLES}\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#16181d"/>\n{texts}\n</svg>\n'
    )


def _style(line: str) -> str:
    if line[:1].isdigit() and ". " in line[:4]:
        return "sentence"
    if line.strip().startswith("agentsignals "):
        return "command"
    return "faint" if line.startswith(("   sureness", "denominator")) else "plain"


_STYLES = (
    "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;"
    "fill:#c9d1d9}.sentence{fill:#fff;font-weight:600}.command{fill:#7cb7ff}.faint{fill:#8b949e}</style>"
)
