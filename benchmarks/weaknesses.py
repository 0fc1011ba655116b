"""How much of planted weak code a scanner finds, and how many safe twins it flags, by language.

    python -m benchmarks.weaknesses [--scanner rules] [--read] \
        [--write src/agentsignals/stats/validation/planted_recall.json]

Code and twins are those of `weaknesses.toml`. A text counts as found, or flagged, when a finding in it names its
weakness or one of the neighbours that stand beside it there. `--read` prints what was missed and what was flagged.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from agentsignals.repositories.scanners import NAMES, Scanner, SourceFile, scanner
from agentsignals.stats.intervals import Interval, wilson
from agentsignals.stats.validation import PlantedRecall
from agentsignals.stats.validation import PlantedRecallFigure as Figure

PLANTED = Path(__file__).with_suffix(".toml")
_FILES = {"python": "a.py", "javascript": "a.js", "go": "a.go", "java": "A.java", "c": "a.c", "php": "a.php",
          "ruby": "a.rb", "shell": "a.sh"}  # fmt: skip


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """One weakness in one language: texts that have it, and texts that look alike."""

    cwe: list[str]
    weak: list[str]
    safe: list[str]
    head: str = ""
    """What stands before each text."""
    file: str = ""
    """The file's name, where it is not the language's usual."""


class Judged(Struct, frozen=True):
    """A planted text, and whether the scanner names its weakness."""

    language: str
    cwe: str
    text: str
    is_weak: bool
    is_named: bool


def planted() -> dict[str, list[Group]]:
    """The groups by language."""
    return msgspec.convert(tomllib.loads(PLANTED.read_text("utf-8")), dict[str, list[Group]])


def judged(by: Scanner) -> Iterator[Judged]:
    """What a scanner says of every planted text in files that it takes."""
    for language, groups in planted().items():
        for group in groups:
            path = group.file or _FILES[language]
            texts = [(text, text in group.weak) for text in (*group.weak, *group.safe)]
            if not by.takes(path):
                continue
            answers = by.scan([SourceFile(path, f"{group.head}{text}\n".encode()) for text, _ in texts])
            for (text, is_weak), answer in zip(texts, answers, strict=True):
                is_named = any(set(finding.cwe) & set(group.cwe) for finding in answer.findings)
                yield Judged(language, group.cwe[0], text, is_weak, is_named)


def figures(by: Scanner) -> PlantedRecall:
    """The figures of a scanner, by language."""
    said = list(judged(by))
    languages = [
        _figure(name, [j for j in said if j.language == name]) for name in dict.fromkeys(j.language for j in said)
    ]
    return PlantedRecall(scanner=by.id, version=by.version, languages=languages)


def _figure(language: str, said: list[Judged]) -> Figure:
    weak, safe = [j for j in said if j.is_weak], [j for j in said if not j.is_weak]
    detected, flagged = sum(j.is_named for j in weak), sum(j.is_named for j in safe)
    named = {j.cwe for j in weak if j.is_named}
    return Figure(
        language=language,
        weak=len(weak),
        detected=detected,
        recall_interval=_rounded(wilson(detected, len(weak))) or (0.0, 1.0),
        safe=len(safe),
        flagged=flagged,
        precision_interval=_rounded(wilson(detected, detected + flagged)),
        missed=[cwe for cwe in dict.fromkeys(j.cwe for j in weak) if cwe not in named],
    )


def _rounded(interval: Interval | None) -> Interval | None:
    return None if interval is None else (round(interval[0], 3), round(interval[1], 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scanner", default="rules", choices=[name for name in NAMES if name != "semgrep"])
    parser.add_argument("--read", action="store_true")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    by = scanner(options.scanner)
    if options.read:
        for one in judged(by):
            if one.is_weak != one.is_named:
                print(f"--- {'missed' if one.is_weak else 'flagged'}: {one.language} {one.cwe}\n{one.text}")
    made = figures(by)
    for one in made.languages:
        print(
            f"{one.language:<12}{one.detected:>3} of {one.weak:>3} found {one.recall_interval}, {one.flagged:>2} of"
            f" {one.safe:>3} twins flagged; none found of {', '.join(one.missed) or '–'}"
        )
    if options.write:
        Path(options.write).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


if __name__ == "__main__":
    main()
