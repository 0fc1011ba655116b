"""Distances of real sessions against dense vectors over a whole vocabulary, made from the raw lines by another road."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from agentsignals.embedding import _STOP
from agentsignals.formats import Input
from agentsignals.formats.claude_code.reader import read
from agentsignals.model import Absent, Artifact, Session
from agentsignals.signals.catalog import measure
from agentsignals.views.session import SessionView

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/corpus is not there"),
]


def transcripts() -> list[Path]:
    return sorted(CORPUS.glob("*/*/transcript.jsonl"))[3::11]


def written(path: Path) -> dict[int, str]:
    """The agent's visible text of every line of the file, by its number."""
    found: dict[int, str] = {}
    for number, line in enumerate(path.read_text("utf-8", "replace").split("\n"), 1):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        content = (record.get("message") or {}).get("content") if isinstance(record, dict) else None
        if record.get("type") == "assistant" and not record.get("isSidechain") and isinstance(content, list):
            texts = [b["text"] for b in content if b.get("type") == "text"]
            if texts:
                found[number] = "\n".join(texts)
    return found


def bare(text: str) -> str:
    """Without what stands between fences, and without links."""
    return re.sub(r"https?://[^ \t\n\r\f\v]+", " ", " ".join(text.split("```")[::2]))


def counts(text: str) -> dict[str, int]:
    spaced = re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
    words = [w[:6] for w in re.findall(r"[^\W_]+", spaced) if len(w) > 1 and w not in _STOP]
    return {w: words.count(w) for w in set(words)}


def distance(one: str, other: str) -> float | None:
    a, b = counts(one), counts(other)
    axes = sorted({*a, *b})
    p, q = [a.get(w, 0) for w in axes], [b.get(w, 0) for w in axes]
    if not any(p) or not any(q):
        return None
    return 1 - sum(x * y for x, y in zip(p, q, strict=True)) / (math.hypot(*p) * math.hypot(*q))


def answers(session: Session, path: Path) -> list[str]:
    """What the agent wrote after each prompt: lines of the file between the lines of two prompts."""
    raw = written(path)
    lines = {e.seq: e.line for e in session.events}
    shown = {e.line for e in session.events if e.kind == "text" and e.thread == "main"}
    starts = [lines[t.seq] for t in session.turns]
    ends = [*starts[1:], math.inf]
    return [
        bare("\n".join(raw[n] for n in sorted(raw) if start < n < end and n in shown))[-8000:]
        for start, end in zip(starts, ends, strict=True)
    ]


@pytest.mark.parametrize("path", transcripts(), ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_distances_agree_with_the_raw_lines(path: Path) -> None:
    artifact = Artifact(
        artifact_id="a", source="s", path=str(path), format="claude-code", sha256="", bytes=path.stat().st_size
    )
    (session,) = read([Input(path.read_bytes(), artifact)]).sessions
    results: dict[str, Any] = {r.signal.path: r for r in measure(SessionView(session))}
    curve, coherence = results["dynamics.cp_curve[]"], results["dynamics.intent_coherence_curve[]"]
    if isinstance(curve.value, Absent):
        assert len(session.turns) < 2 or curve.value.detail == "no_request"
        return
    anchor = curve.detail["anchor_turn"]
    said = [bare(t.text) for t in session.turns]
    wrote = answers(session, path)
    for n in range(anchor, len(said)):
        assert_near(coherence.detail["raw"][n], distance(said[anchor][:8000], wrote[n]))
        window = [
            t for k in range(max(0, n - 2), n + 1) for t in (said[k][:4000] if k != anchor else "", wrote[k]) if t
        ]
        if n > anchor and sum(map(len, window)) < 7900:
            assert_near(curve.detail["raw"][n], distance(said[anchor][:8000], "\n".join(window)))


def assert_near(ours: float | None, theirs: float | None) -> None:
    assert ours is None if theirs is None else ours == pytest.approx(theirs, abs=0.0002)
