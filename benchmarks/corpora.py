"""Larger corpora from a small one: the same files again and again, each copy with ids of its own.

    python -m benchmarks.corpora FOLDER OUT --copies 6                  all files, six times
    python -m benchmarks.corpora FOLDER OUT --copies 1820 --smallest 15 the fifteen smallest, 27,300 sessions

Identifiers (UUIDs, `msg_`, `toolu_`, `req_`, `call_`, `ses_`) get other digits in every copy, the same all over
it, so that no session, message or call is taken for a copy of another's. Texts, sizes and times stay: whatever
remembers texts finds those of the first copy again in all others, so many copies of a few files cost less than as many
files of their own.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

_ID = re.compile(
    rb"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b"
    rb"|\b((?:msg|toolu|req|call|ses|prt|fc|rs)_\w{4,40})(\w{6})\b"
)


def renamed(data: bytes, copy: int) -> bytes:
    """The bytes with the identifiers of copy number `copy`; the first, 0, keeps its own."""
    if not copy:
        return data
    tail = f"{copy:06d}".encode()

    def other(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return b"%08x%b" % (int(match[1], 16) ^ copy * 0x9E3779B1 & 0xFFFFFFFF, match[2])
        return match[3] + tail

    return _ID.sub(other, data)


def make(folder: Path, out: Path, copies: int, smallest: int | None) -> tuple[int, int]:
    """Writes the copies, each into a folder of its own; files and bytes written."""
    files = sorted(folder.rglob("transcript.*"), key=lambda p: (p.stat().st_size, str(p)))[:smallest]
    files_n = bytes_n = 0
    for path in files:
        data = path.read_bytes()
        for copy in range(copies):
            relative = renamed(str(path.relative_to(folder)).encode(), copy).decode()
            target = out / f"copy{copy:05d}" / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            written = target.write_bytes(renamed(data, copy))
            files_n, bytes_n = files_n + 1, bytes_n + written
    return files_n, bytes_n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--copies", type=int, default=6)
    parser.add_argument("--smallest", type=int)
    options = parser.parse_args()
    files_n, bytes_n = make(options.folder, options.out, options.copies, options.smallest)
    print(f"{files_n} files, {bytes_n / 1e6:.1f} MB in {options.out}")


if __name__ == "__main__":
    main()
