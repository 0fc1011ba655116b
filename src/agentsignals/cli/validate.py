"""`validate`: how often signals that claim a meaning are right, where the truth is at hand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.stats.validation import Figure


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--gold", metavar="FILE", nargs="+", default=[], help="also hold rules against these labels (.jsonl, .csv)")
    add("--write", metavar="FILE", help="write the figures there, as the package ships them")


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    import msgspec

    from agentsignals.cli.output import json_text
    from agentsignals.errors import ExportError
    from agentsignals.labels.validation import never_validated, validate

    figures = validate(options.gold)
    if options.write:
        try:
            Path(options.write).write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
        except OSError as problem:
            raise ExportError(
                f"{options.write} can't be written: {problem.strerror}.", "Name another file."
            ) from problem
    unmeasured = never_validated({figure.signal for figure in figures})
    print(
        json_text({"figures": figures, "never_validated": unmeasured}) if options.json else _text(figures, unmeasured)
    )
    return 0


def _text(figures: list[Figure], unmeasured: list[str]) -> str:
    from agentsignals.cli.output import printable, table

    names = ("signal", "class", "n", "named", "true", "precision", "recall", "kappa", "truth")
    rows = [
        (
            f.signal,
            f.value,
            f.n,
            f.named,
            f.true,
            _share(f.precision, f.precision_interval),
            _share(f.recall, f.recall_interval),
            "–" if f.kappa is None else f"{f.kappa:.2f}",
            f.truth,
        )
        for f in figures
    ]
    parts = [table(names, rows, 100)]
    low = [f"{f.signal} {f.value}: {f.precision:.0%} ({f.truth})" for f in figures if f.misleads]
    if low:
        parts.append("named wrongly more often than rightly\n" + "\n".join(f"    {printable(line)}" for line in low))
    parts.append(f"never validated, though they claim a meaning: {', '.join(unmeasured) or 'none'}")
    return "\n\n".join(parts)


def _share(share: float | None, interval: tuple[float, float] | None) -> str:
    if share is None:
        return "–"
    return f"{share:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


VERB = Verb("validate", "hold signals against gold and planted cases", "validate --gold gold.jsonl", arguments, run)
