"""Larger corpora from a small one, laid out as people's folders are: tens of sessions a folder, late forks among them.

    python -m benchmarks.corpora FOLDER OUT --copies 6                           all files, six times
    python -m benchmarks.corpora FOLDER OUT --copies 1820 --smallest 15 --varied 27,300 sessions

Identifiers (UUIDs, `msg_`, `toolu_`, `req_`, `call_`, `ses_`) get other digits in every copy, the same all over
it, so that no session, message or call is taken for a copy of another's. Sizes and times stay. `--varied`: a third of
the longer words in what people and agents say are others in every copy; without it, whatever remembers texts finds
those of the first copy again in all others, so many copies of a few files cost less than as many files of their own.

Every twentieth session of Claude Code has a late fork: a file of its own that hands its plan on. Only reading tells
whose it is, so both are read again together, as in people's folders.
"""

from __future__ import annotations

import argparse
import json
import re
import uuid
import zlib
from pathlib import Path

from agentsignals.formats.claude_code.reader import PLAN

SESSIONS_A_FOLDER = 40
"""The median project folder of people holds tens of sessions."""
SESSIONS_A_FORK = 20
_ID = re.compile(
    rb"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b"
    rb"|\b((?:msg|toolu|req|call|ses|prt|fc|rs)_\w{4,40})(\w{6})\b"
)
_SAID = re.compile(rb'("(?:text|content|thinking)" ?: ?")((?:[^"\\]|\\.)*)"')
_WORD = re.compile(rb"(?<![\w/.\\@#:-])[a-z]{6,14}(?![\w/\\@(=:_-])")
_VARIED = 3
"""One in so many longer words is another in each copy."""


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


def said_words(files: list[Path]) -> list[bytes]:
    """The longer words of what is said in these files, from which other texts are made."""
    said = (match[2] for path in files for match in _SAID.finditer(path.read_bytes()))
    return sorted({word for text in said for word in _WORD.findall(text)})


def varied(data: bytes, copy: int, words: list[bytes]) -> bytes:
    """The bytes with other words in what is said, the same for a word all over a copy. JSON stays as it is."""
    if not copy or not words:
        return data

    def word(match: re.Match[bytes]) -> bytes:
        drawn = zlib.crc32(b"%d %b" % (copy, match[0]))
        return words[drawn // _VARIED % len(words)] if drawn % _VARIED == 0 else match[0]

    return _SAID.sub(lambda match: b'%b%b"' % (match[1], _WORD.sub(word, match[2])), data)


def late_fork(data: bytes) -> tuple[str, bytes] | None:
    """A session that a plan of this one was handed to, as Claude Code writes it; None for another agent's file."""
    lines = (json.loads(line) for line in data.split(b"\n") if b'"sessionId"' in line)
    first = next((line for line in lines if {"sessionId", "timestamp"} <= line.keys()), None)
    if first is None:
        return None
    session = first["sessionId"]
    name = str(uuid.uuid5(uuid.NAMESPACE_URL, session))
    text = (
        f"{PLAN}\n\nMove the settings into one file, then run the tests.\n\n\nIf you need specific details from before"
        f" exiting plan mode, read the full transcript at: /home/someone/.claude/projects/work/{session}.jsonl"
    )
    common = {"sessionId": name, "timestamp": first["timestamp"], "version": first.get("version", "2.1.0")}
    answer = [{"type": "text", "text": "The settings are in one file, and the tests pass."}]
    usage = {"input_tokens": 12, "output_tokens": 14}
    message = {"id": f"msg_{name[-12:]}", "role": "assistant", "model": "claude-sonnet-4-5", "content": answer}
    asked = {"parentUuid": None, "type": "user", "uuid": f"{name[:-1]}a", "message": {"role": "user", "content": text}}
    said = {"parentUuid": asked["uuid"], "type": "assistant", "uuid": f"{name[:-1]}b"}
    written = (asked | common, said | common | {"message": message | {"usage": usage, "stop_reason": "end_turn"}})
    return name, b"".join(json.dumps(line).encode() + b"\n" for line in written)


def make(folder: Path, out: Path, copies: int, smallest: int | None, is_varied: bool = False) -> tuple[int, int]:
    """Writes the copies into folders of tens of sessions; files and bytes written."""
    files = sorted(folder.rglob("transcript.*"), key=lambda p: (p.stat().st_size, str(p)))[:smallest]
    words = said_words(files) if is_varied else []
    files_n = bytes_n = 0

    def write(name: str, data: bytes, place: int) -> None:
        nonlocal files_n, bytes_n
        target = out / f"-home-someone-work-{place:04d}" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        files_n, bytes_n = files_n + 1, bytes_n + target.write_bytes(data)

    for copy in range(copies):
        for n, path in enumerate(files):
            data = varied(renamed(path.read_bytes(), copy), copy, words)
            session = renamed(path.parent.name.encode(), copy).decode()
            if copy and session == path.parent.name:
                session = f"{session}-{copy:05d}"
            number = copy * len(files) + n
            write(f"{session}{path.suffix}", data, number // SESSIONS_A_FOLDER)
            if number % SESSIONS_A_FORK == 0 and (fork := late_fork(data)) is not None:
                write(f"{fork[0]}.jsonl", fork[1], number // SESSIONS_A_FOLDER)
    return files_n, bytes_n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--copies", type=int, default=6)
    parser.add_argument("--smallest", type=int)
    parser.add_argument("--varied", action="store_true", help="texts differ from copy to copy")
    options = parser.parse_args()
    files_n, bytes_n = make(options.folder, options.out, options.copies, options.smallest, options.varied)
    print(f"{files_n} files, {bytes_n / 1e6:.1f} MB in {options.out}")


if __name__ == "__main__":
    main()
