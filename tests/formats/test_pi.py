"""Pi: which file is one, which entries are the conversation, what forks and snapshots count (design/formats.md#pi)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.pi import FORMAT
from agentsignals.model import MAIN, Artifact

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


# -- real files ----------------------------------------------------------------------------------------------------

REAL = {
    # session id: turns, main steps, calls, results, edits by tools, input, cache read, cache write, output
    "019dd0db-d46c-7681-9092-159528614310": (1, 70, 87, 86, 0, 349151, 4956160, 0, 25887),
    "019f49c6-5766-7f6b-bea0-db67da2f314a": (2, 58, 183, 183, 29, 725179, 8550912, 0, 68144),
    "019fdd7a-c159-7d29-a385-de141607cb78": (14, 315, 314, 314, 126, 618, 79418139, 2725378, 224291),
    "019ffa5e-8407-7b3a-9cc2-1129887e0487": (0, 80, 126, 126, 40, 325970, 7145472, 0, 25574),
    "019ffa5e-8545-778c-b88d-abed31df0e6a": (0, 16, 35, 35, 0, 393347, 635392, 0, 10869),
    "019ffa8c-566d-776b-9088-be2c460909d9": (0, 21, 46, 46, 0, 178653, 1243648, 0, 17647),
    "019dc132-b9ea-736e-aa6f-e20ee7d84b11": (1, 4, 4, 4, 2, 9, 9566, 4529, 446),
    "ffae836b-9420-4060-ac13-7745215f90ff": (55, 484, 454, 448, 136, 3689, 54693675, 1685320, 187895),
    "d703a1a9-1b7b-4fb1-b512-c9738b1fe617": (88, 453, 391, 373, 131, 1049, 43229469, 4296232, 83156),
}


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_sessions_have_the_figures_counted_another_way() -> None:
    """Counted with plain json; tokens of five sessions also equal what the collector recorded beside them."""
    inputs = []
    for path in sorted([*CORPUS.glob("sessions/pi/*/*/transcript.jsonl"), *CORPUS.glob("pi-v1/*.jsonl")]):
        data = path.read_bytes()
        found = identify(Head(data[:HEAD_BYTES], path.name, False))
        assert found is not None and found[0] is FORMAT
        inputs.append(
            Input(
                data,
                Artifact(
                    artifact_id=str(path),
                    source="corpus",
                    path=str(path),
                    format="pi",
                    sha256=str(path),
                    bytes=len(data),
                ),
            )
        )
    got = {}
    for session in FORMAT.read(inputs).sessions:
        steps = [s for s in session.steps if s.thread == MAIN]
        tokens = [
            sum(getattr(s, f"{name}_tokens") or 0 for s in steps)
            for name in ("input", "cache_read", "cache_write", "output")
        ]
        answered = sum(call.result_seq is not None for call in session.tool_calls)
        edits = sum(edit.via == "edit_tool" for edit in session.edits)
        got[session.session_id] = (len(session.turns), len(steps), len(session.tool_calls), answered, edits, *tokens)
    assert got == REAL
    assert sum(given.artifact.records for given in inputs) == 3552
    assert all(given.artifact.skipped == 0 for given in inputs)
