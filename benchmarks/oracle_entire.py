"""An oracle nobody here wrote: do the tokens we count equal what Entire recorded when it stored the session?

Entire sums, per message id, the row with the most output tokens, over a slice of the transcript, at the moment of the
commit. We take the same slice out of our own steps: `python -m benchmarks.oracle_entire CORPUS`.
What the slice is follows from the record, never from trying which one fits:
  * records that name no `cli_version` (before February 2026) cover the whole transcript, whatever start they carry;
  * later ones begin at `checkpoint_transcript_start`, except where that counts lines of the compact copy (v2 refs);
  * a transcript may have grown after the checkpoint: calls later than `created_at` are left out.
"""

from __future__ import annotations

import json
import posixpath
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from agentsignals.changes import git as objects
from agentsignals.formats import Input, claude_code, entire
from agentsignals.formats.records import HEAD_BYTES, Head
from agentsignals.model import MAIN, Artifact, Checkpoint, Session, Step, from_iso
from agentsignals.sources import RawFile, open_source, read
from agentsignals.sources import git as checkpoints

Tokens = tuple[int, int, int, int]
"""Input, cache write, cache read, output."""

EXACT = "equal over the slice"
AT_CHECKPOINT = "equal over the slice up to the checkpoint's time"
COMPACT_START = "equal over the slice, whose start counts lines of the compact copy"
RESTAMPED = "the record lacks the last calls, none of them later than its time (a migration rewrote that)"
UNEXPLAINED = "unexplained"
NO_CALLS = "equal, and nothing: no call in the slice"
NO_RECORD = "no token usage recorded"


class Verdict(Struct):
    """One stored session: what was recorded, what we count, and how the two go together."""

    session: str
    outcome: str
    recorded: Tokens | None = None
    ours: Tokens | None = None
    naive: Tokens | None = None
    """The sum over all lines of the slice, as a reader who doesn't group by message would have it."""
    recorded_calls: int | None = None
    calls: int = 0
    """Our steps in the slice, and the agent's own notices (model `<synthetic>`), which Entire counts as calls."""

    @property
    def equal(self) -> bool:
        return self.recorded is not None and self.ours == self.recorded


class Record(Struct):
    """A transcript and what was recorded of it, read by the formats."""

    session: Session
    row: Checkpoint
    versioned: bool
    raw: list[dict[str, object]]
    spans: dict[int, tuple[int, int | None]]
    """Of each step: its last line (0-based), and the time of its first."""


def verdict(name: str, transcript: bytes, metadata: bytes, compact: dict[str, list[str | None]]) -> Verdict:
    """How Entire's figures and ours agree for one stored session. `compact`: times of the compact copies' lines."""
    record = _record(transcript, metadata)
    row = record.row
    if row.output_tokens is None:
        return Verdict(name, NO_RECORD)
    recorded = (row.input_tokens or 0, row.cache_write_tokens or 0, row.cache_read_tokens or 0, row.output_tokens)
    start = (row.transcript_start or 0) if record.versioned else 0
    outcome, begin, steps = _explained(record, start, recorded, compact)
    if not steps and not any(recorded):
        outcome = NO_CALLS
    calls = len(steps) + _notices(record, begin, row.created_at)
    return Verdict(name, outcome, recorded, _sum(steps), _naive(record, begin), row.api_calls, calls)


def _explained(
    record: Record, start: int, recorded: Tokens, compact: dict[str, list[str | None]]
) -> tuple[str, int, list[Step]]:
    """Which of the slices that can be meant gives the recorded figures: its outcome, first line and steps."""
    until = record.row.created_at
    tries = [(EXACT, start, _steps(record, start, None)), (AT_CHECKPOINT, start, _steps(record, start, until))]
    copied = _line_of_compact(record, compact.get(record.row.checkpoint_id, []), start)
    if copied is not None:
        tries.append((COMPACT_START, copied, _steps(record, copied, until)))
    for tried in tries:
        if _sum(tried[2]) == recorded:
            return tried
    everything, before = tries[0][2], tries[1][2]
    restamped = len(before) == len(everything) and _is_beginning(everything, recorded)
    return RESTAMPED if restamped else UNEXPLAINED, start, everything


def sessions(corpus: Path) -> Iterator[Verdict]:
    """The corpus's Claude Code sessions: one transcript and one record each."""
    compact = _compact_copies(corpus / "repos" / "test-repo.git.tar")
    for folder in sorted((corpus / "sessions" / "claude-code").glob("*/*")):
        transcript, metadata = (
            (folder / "transcript.jsonl").read_bytes(),
            (folder / "entire.metadata.json").read_bytes(),
        )
        yield verdict(f"{folder.parent.name}/{folder.name}", transcript, metadata, compact)


def snapshots(packed: Path) -> Iterator[Verdict]:
    """Every stored snapshot on the v1 branch of a packed repository, of Claude Code sessions."""
    compact = _compact_copies(packed)
    with tempfile.TemporaryDirectory() as folder:
        files = [f for f in open_source(f"git:{_unpacked(packed, folder)}#{_V1}") if isinstance(f, RawFile)]
        contents = {f.uri: d for f, d in zip(files, read(files), strict=True) if isinstance(d, bytes)}
    for uri, transcript in contents.items():
        metadata = contents.get(f"{posixpath.dirname(uri)}/metadata.json")
        if uri.endswith("/full.jsonl") and metadata and claude_code.claims(Head(transcript[:HEAD_BYTES])):
            yield verdict(uri.rpartition(":")[2], transcript, metadata, compact)


_V1 = "refs/heads/entire/checkpoints/v1"


def _unpacked(packed: Path, folder: str) -> str:
    # By tar itself: Python 3.11.2 knows no filter for what an archive may do to other folders.
    subprocess.run(["tar", "-xf", str(packed), "-C", folder, "--no-same-owner"], check=True)
    return f"{folder}/repo"


def _compact_copies(packed: Path) -> dict[str, list[str | None]]:
    """The times of the lines of each compact transcript on the v2 refs of a packed repository, by checkpoint."""
    found: dict[str, list[str | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        git_dir = _unpacked(packed, folder)
        roots = [
            (oid, checkpoints.folder_filter("sharded")) for name, oid in objects.refs(git_dir) if "/v2/main" in name
        ]
        for _, entries, _ in objects.walk(git_dir, roots):
            placed = [(checkpoints.checkpoint_path("sharded", e.path), e.oid) for e in entries]
            copies = [(place, oid) for place, oid in placed if place is not None and place.kind == "compact"]
            for (place, _), data in zip(copies, objects.contents(git_dir, [o for _, o in copies]), strict=True):
                found[place.checkpoint] = [json.loads(line).get("ts") for line in (data or b"").splitlines()]
    return found


def _record(transcript: bytes, metadata: bytes) -> Record:
    session = claude_code.FORMAT.read(
        [Input(transcript, Artifact(artifact_id="t", source="", path="", format=None, sha256="", bytes=0))]
    ).sessions[0]
    ((row,),) = entire.read(
        [Input(metadata, Artifact(artifact_id="m", source="", path="", format=None, sha256="", bytes=0))]
    ).checkpoints.values()
    spans: dict[int, tuple[int, int | None]] = {}
    for event in session.events:
        if event.step is not None and event.kind != "tool_result":
            last, at = spans.get(event.step, (-1, event.timestamp))
            spans[event.step] = (max(last, event.line - 1), at)
    raw = [_line(line) for line in transcript.split(b"\n")]
    return Record(session, row, "cli_version" in json.loads(metadata), raw, spans)


def _line(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _steps(record: Record, start: int, until: int | None) -> list[Step]:
    """The main thread's steps that have a line in the slice and began before the checkpoint's time."""
    found = []
    for step in record.session.steps:
        last, at = record.spans.get(step.step, (-1, None))
        if step.thread == MAIN and last >= start and (until is None or at is None or at <= until):
            found.append(step)
    return found


def _sum(steps: list[Step]) -> Tokens:
    return (
        sum(s.input_tokens or 0 for s in steps),
        sum(s.cache_write_tokens or 0 for s in steps),
        sum(s.cache_read_tokens or 0 for s in steps),
        sum(s.output_tokens or 0 for s in steps),
    )


def _messages(record: Record, start: int) -> Iterator[tuple[dict[str, object], dict[str, object]]]:
    for line in record.raw[start:]:
        message = line.get("message")
        if line.get("type") == "assistant" and isinstance(message, dict):
            yield line, message


def _naive(record: Record, start: int) -> Tokens:
    total = Counter[str]()
    for _, message in _messages(record, start):
        usage = message.get("usage")
        if isinstance(usage, dict):
            total.update({k: v for k, v in usage.items() if isinstance(v, int)})
    keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    one, two, three, four = (total[k] for k in keys)
    return one, two, three, four


def _notices(record: Record, start: int, until: int | None) -> int:
    """Messages of the slice that no model wrote: they have an id and no tokens."""
    local = [line for line, message in _messages(record, start) if message.get("model") == "<synthetic>"]
    return sum(until is None or (from_iso(str(line.get("timestamp"))) or 0) <= until for line in local)


def _line_of_compact(record: Record, times: list[str | None], start: int) -> int | None:
    """The line of the transcript that became line `start` of its compact copy."""
    wanted = from_iso(times[start]) if 0 < start < len(times) else None
    return next((e.line - 1 for e in record.session.events if wanted is not None and e.timestamp == wanted), None)


def _is_beginning(steps: list[Step], recorded: Tokens) -> bool:
    """Whether the slice without its last calls gives the recorded figures."""
    return any(_sum(steps[:n]) == recorded for n in range(1, len(steps)))


def _show(title: str, found: list[Verdict]) -> None:
    comparable = [v for v in found if v.recorded is not None]
    naive = sum(v.naive == v.recorded for v in comparable)
    print(f"{title}: {len(found)} stored sessions, {len(comparable)} with token usage recorded")
    print(f"  ours equal in {sum(v.equal for v in comparable)}, the naive sum over lines in {naive}")
    for outcome, n in Counter(v.outcome for v in found).most_common():
        print(f"  {n:5}  {outcome}")
    for v in comparable:
        if not v.equal or v.recorded_calls != v.calls:
            print(f"    {v.session}: {v.outcome}: {v.recorded} {v.recorded_calls}, ours {v.ours} {v.calls}")


if __name__ == "__main__":
    where = Path(sys.argv[1])
    _show("sessions/claude-code", list(sessions(where)))
    for one in sorted((where / "repos").glob("*.tar")):
        _show(one.name, list(snapshots(one)))
