"""Reads a sample as the program does, and writes down what came out: `python -m tests.golden` rewrites every golden.

A sample is a file `tests/formats/<format>/<what>.<ext>`, or a folder of files that belong together; its golden lies
beside it as `<what>.expected.json`. A folder `_cases` holds small ones: each file or folder in it is named for what it
shows and is read by itself, and one golden has them all. Regenerate, then READ the diff.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from agentsignals.formats import Format, Input, Reading, identify
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.model import Artifact

SAMPLES = Path(__file__).parent / "formats"
LONGEST_TEXT = 160
_LINE_CHARS = 480
_LEFT_OUT = frozenset(("sha256", "argument_roles"))
"""Of no use to a reader: the roles are the same for all calls of a tool, as its profile declares them."""


def folders() -> list[Path]:
    """Return the sample folder of each format."""
    return [p for p in sorted(SAMPLES.iterdir()) if p.is_dir() and not p.name.startswith(("_", "."))]


def samples() -> list[Path]:
    """Every sample: files and folders beside their golden."""
    found = [p for d in folders() for p in sorted(d.iterdir())]
    return [p for p in found if not p.name.endswith(".expected.json") and not p.name.startswith(("_", "."))]


def cases() -> list[Path]:
    """Return the folders of small samples."""
    return [folder / "_cases" for folder in folders() if (folder / "_cases").is_dir()]


def expected_path(sample: Path) -> Path:
    return sample.parent / f"{sample.name.split('.')[0]}.expected.json"


def read_files(paths: list[Path], root: Path) -> tuple[list[Artifact], list[tuple[str, list[str]]], Reading]:
    """Artifacts, claims and the reading of files that belong together; all must be claimed."""
    by_format: dict[str, list[Input]] = {}
    formats: dict[str, Format] = {}
    artifacts, claims = [], []
    for path in paths:
        data = path.read_bytes()
        name = path.relative_to(root).as_posix()
        found = identify(Head(data[:HEAD_BYTES], name, len(data) <= HEAD_BYTES))
        assert found is not None, f"no format claims {name}"
        artifact = Artifact(
            artifact_id=name,
            source="sample",
            path=name,
            format=found[0].name,
            sha256=hashlib.sha256(data).hexdigest(),
            bytes=len(data),
        )
        artifacts.append(artifact)
        claims.append((found[0].name, found[1].keys))
        formats[found[0].name] = found[0]
        by_format.setdefault(found[0].name, []).append(Input(data, artifact))
    reading = Reading()
    for name, inputs in by_format.items():
        one = formats[name].read(inputs)
        reading.sessions += one.sessions
        for session_id, rows in one.checkpoints.items():
            reading.checkpoints.setdefault(session_id, []).extend(rows)
        reading.attempts += one.attempts
    return artifacts, claims, reading


def picture(sample: Path) -> dict[str, Any]:
    """What a sample becomes, as plain data: the content of its golden."""
    files = [p for p in sorted(sample.rglob("*")) if p.is_file()] if sample.is_dir() else [sample]
    artifacts, claims, reading = read_files(files, sample if sample.is_dir() else sample.parent)
    shown: dict[str, Any] = {
        "files": [
            {
                "path": a.path,
                "format": claim[0],
                "keys": claim[1],
                "records": a.records,
                "skipped_reasons": a.skipped_reasons,
                "record_kinds": a.record_kinds,
            }
            for a, claim in zip(artifacts, claims, strict=True)
        ],
        "sessions": [_told(s) for s in reading.sessions],
        "checkpoints": {k: [_told(c) for c in v] for k, v in reading.checkpoints.items()},
    }
    if reading.attempts:
        shown["attempts"] = [_told(a) for a in reading.attempts]
    return shown


def _told(value: Any) -> Any:
    """Structs without what is empty or None, long texts cut, so that a person can read the golden."""
    return _short(msgspec.to_builtins(value))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items() if v not in (None, [], {}) and k not in _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [_short(v) for v in value]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]}… ({len(value)} characters)"
    return value


def case(sample: Path) -> dict[str, Any]:
    """What a small sample becomes: sessions, attempts, and what of its files is out of the ordinary."""
    files = [p for p in sorted(sample.rglob("*")) if p.is_file()] if sample.is_dir() else [sample]
    artifacts, claims, reading = read_files(files, sample if sample.is_dir() else sample.parent)
    shown: dict[str, Any] = {}
    for artifact, (_, keys) in zip(artifacts, claims, strict=True):
        told = {"keys": keys, "skipped": artifact.skipped_reasons, "kinds": artifact.record_kinds}
        shown[artifact.path] = _short({**told, "note": artifact.note})
    return {**shown, "sessions": [_told(s) for s in reading.sessions], "attempts": [_told(a) for a in reading.attempts]}


def dumped(sample: Path) -> str:
    """The golden's text: one row a line."""
    if sample.name == "_cases":
        return _lines({c.name: case(c) for c in sorted(sample.iterdir())}) + "\n"
    return json.dumps(picture(sample), ensure_ascii=False, indent=1) + "\n"


def _lines(value: Any, depth: int = 0) -> str:
    """JSON in which whatever fits into a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= _LINE_CHARS or not isinstance(value, dict | list):
        return line
    named = [f"{json.dumps(k)}: " for k in value] if isinstance(value, dict) else [""] * len(value)
    parts = value.values() if isinstance(value, dict) else value
    inner = (f"{' ' * depth} {name}{_lines(part, depth + 1)}" for name, part in zip(named, parts, strict=True))
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + "\n" + ",\n".join(inner) + f"\n{' ' * depth}{end}"


if __name__ == "__main__":
    for one in samples() + cases():
        expected_path(one).write_text(dumped(one), encoding="utf-8")
        print(expected_path(one))
