"""Packed files are known by their first bytes, whatever their names: read, or counted by what they are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from agentsignals.ingest import pipeline, plan
from agentsignals.ingest.plan import FileGroup, RecognisedArtifact
from agentsignals.sources import RawFile, Unreadable, local
from tests.claude import Log
from tests.quick import some

NAMES = ("x.jsonl", "x", "x.gz", "x.txt")


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.jsonl", data)
    return out.getvalue()


def tarred(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(info := tarfile.TarInfo("x.jsonl"), io.BytesIO(data[: info.size]))
    return out.getvalue()


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": partial(lzma.compress, preset=0),
    "zstd": zstd,
}


def analyzed(folder: Path, data: bytes, name: str) -> tuple[int, dict[str, int], int]:
    (folder / "in").mkdir()
    (folder / "in" / name).write_bytes(data)
    summary = pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    return summary.prompts, summary.skipped, summary.other_files


@pytest.mark.parametrize("name", some(NAMES, 4))
@pytest.mark.parametrize("way", some(WAYS, 2))
def test_a_packed_file_is_read_whatever_its_name(way: str, name: str, tmp_path: Path) -> None:
    log = Log("packed")
    log.user("Mend the parser")
    half = "\n".join(log.lines).encode() + b"\n"
    log.user("And the lexer")
    packed = WAYS[way](half) + WAYS[way](log.lines[-1].encode() + b"\n")  # of two parts, as appending makes them
    assert analyzed(tmp_path, packed, name) == (2, {}, 0)


@pytest.mark.parametrize("way", some(WAYS, 2))
def test_a_packed_file_that_breaks_off_gives_what_is_there(way: str, tmp_path: Path) -> None:
    plain = "".join(map(str, range(330_000 if way == "bzip2" else 50_000))).encode()  # bzip2: blocks of 900,000 bytes
    packed = WAYS[way](plain)
    (tmp_path / "x").write_bytes(packed[: len(packed) * 4 // 5])
    (read,) = local.read(list(local.find(str(tmp_path))), None)
    assert isinstance(read, Unreadable)
    assert read.reason == f"cut_{way}"
    assert plain.startswith(read.part)
    assert 0 < len(read.part) < len(plain)


@pytest.mark.parametrize("way", some(WAYS, 2))
def test_a_damaged_part_costs_itself(way: str, tmp_path: Path) -> None:
    log = Log("packed")
    log.user("Mend the parser")
    good = WAYS[way](log.lines[0].encode() + b"\n")
    assert analyzed(tmp_path, good + b"no more of it" + good, "x") == (1, {f"bad_{way}": 1}, 0)


@pytest.mark.parametrize("way", some(WAYS, 2))
def test_what_unpacks_to_very_much_is_read_by_a_worker(way: str, tmp_path: Path) -> None:
    packed = WAYS[way](b" " * (70_000_000 if way == "gzip" else 6_000_000))
    (tmp_path / "x").write_bytes(packed)
    (file,) = local.find(str(tmp_path))
    assert isinstance(file, RawFile)
    family = FileGroup("x", (RecognisedArtifact(file=file, format="claude-code", keys=("x",)),))
    assert plan.worker_count([[family]], 1) == 1


@pytest.mark.parametrize("pack", [zipped, tarred, lambda data: b"7z\xbc\xaf\x27\x1c" + data])
@pytest.mark.parametrize("name", NAMES)
def test_an_archive_is_counted_by_what_it_is(pack: Callable[[bytes], bytes], name: str, tmp_path: Path) -> None:
    turns, skipped, others = analyzed(tmp_path, pack(b'{"type": "user"}\n'), name)
    assert (turns, skipped, others) == (0, {"archive": 1}, 0)
