"""The tables of each format against a count of the raw files that shares no code with the readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentsignals.model import SESSION_TOTAL
from tests.golden import SAMPLES, expected_path, read_files
from tests.oracles import COUNTERS, Count

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
FORMATS = sorted(COUNTERS)
SAID = ("prompt", "queued_prompt", "slash_command", "plan_handoff", "attachment")
EVAL = {
    "inspect": "eval/inspect/**/*.eval",
    "sts": "eval/sts/**/*.jsonl",
    "trail": "eval/trail/**/*.json",
    "atif": "eval/atif/*.json",
    "swe_agent": "eval/swe-agent-*/**/*.traj",
    "mini_swe_agent": "eval/mini-swe-agent/**/*.traj.json",
}

SAMPLES_ONLY = ("codex_exec", "opentraces", "otel_genai", "swival")
"""No log of these is in the corpus."""
_TORN = "the file ends in the midst of its one document: the counter reads none of it"
_CHILD = "a subagent's log that begins with a copy of its parent's: nobody said that here"
_LEFT = "said on a branch that the person went back from: counted apart"
_SHELL = "a command that the person ran: an event, and no call of the agent"
_RUNS_ON = "read without the file that it continues, whose sums it goes on with"
_TERMINUS = "terminus_2_hello-world-context-summarization-linear-history"
_MACHINE = "not a person's words"
EXPECTED: dict[tuple[str, str], tuple[str, str]] = {
    ("atif", "atif/broken.json"): ("file", _TORN),
    ("inspect", "inspect/broken.eval"): ("file", _TORN),
    ("kiro", "kiro/broken.json"): ("file", _TORN),
    ("mini_swe_agent", "mini-swe-agent/broken.traj.json"): ("file", _TORN),
    ("opencode", "opencode/broken.json"): ("file", _TORN),
    ("otel_genai", "otel-genai/broken.json"): ("file", _TORN),
    ("swe_agent", "swe-agent/broken.traj"): ("file", _TORN),
    ("atif", f"atif/{_TERMINUS}.trajectory.cont-1.json"): ("total", _RUNS_ON),
    ("claude_code", "claude-code/torn.jsonl"): ("time", "a message that says a number is skipped, and counted as such"),
    ("codex", "codex/old_shells.jsonl"): ("prompts", "written before Codex told of a prompt in a record of its own"),
    ("codex", "codex/subagent.jsonl"): ("prompts", _CHILD),
    ("copilot_cli", "copilot-cli/resumed.jsonl"): ("tool_calls", _SHELL),
    ("gemini_cli", "gemini-cli/early.json"): ("prompts", "a picture without words is an attachment"),
    ("gemini_cli", "gemini-cli/log.jsonl"): ("prompts", _LEFT),
    ("gemini_cli", "gemini-cli/menu.json"): ("prompts", "`Please continue.` is what the client says after an error"),
    ("gemini_cli", "gemini-cli/torn_log.jsonl"): ("prompts", "a record whose id is a number is none"),
    ("kiro", "kiro/client.json"): ("prompts", _MACHINE),
    ("opencode", "opencode/person.json"): ("tool_calls", _SHELL),
    ("pi", "pi/branched-v1.jsonl"): ("time", "what a branch copied is older than the session that it began"),
    ("pi", "pi/broken.jsonl"): ("prompts", _LEFT),
    ("pi", "pi/tree.jsonl"): ("prompts", _LEFT),
    ("pi", "019ffa5e-8407-7b3a-9cc2-1129887e0487/transcript.jsonl"): ("prompts time", _CHILD),
    ("pi", "019ffa5e-8545-778c-b88d-abed31df0e6a/transcript.jsonl"): ("prompts time", _CHILD),
    ("pi", "session/transcript.jsonl"): ("prompts time", _CHILD),
}
"""Format and file to figures and reason of each difference; what else differs is a defect of a reader or a counter."""


def key(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def samples(name: str) -> list[Path]:
    folder = SAMPLES / name.replace("_", "-")
    return [p for p in sorted(folder.iterdir()) if p.is_file() and expected_path(p).exists() and p != expected_path(p)]


def corpus(name: str) -> list[Path]:
    if name in EVAL:
        return sorted(p for p in CORPUS.glob(EVAL[name]) if p.is_file())
    return sorted((CORPUS / "sessions" / name.replace("_", "-")).rglob("transcript.*"))


def microseconds(text: str) -> int | None:
    """A logged time since 1970; None for what is no time of this century."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1) if at.year >= 2000 else None


def ours(path: Path) -> tuple[dict[str, float], set[str], tuple[int, int]]:
    """The tables' sums over a file's sessions, the ids of the calls that they say went well, first and last time."""
    _, _, reading = read_files([path], path.parent)
    sessions = reading.sessions
    steps = [step for s in sessions for step in s.steps]
    calls = [call for s in sessions for call in s.tool_calls]
    sums: dict[str, float] = {
        "prompts": sum(t.kind in SAID for s in sessions for t in s.turns),
        "api_calls": sum(s.stop_reason != SESSION_TOTAL for s in steps),
        "tool_calls": len(calls),
        "input": sum(s.input_tokens or 0 for s in steps),
        "output": sum(s.output_tokens or 0 for s in steps),
        "cache_read": sum(s.cache_read_tokens or 0 for s in steps),
        "cache_write": sum(s.cache_write_tokens or 0 for s in steps),
        "cost": sum(s.cost_usd or 0 for s in steps if s.cost_source == "recorded"),
        "run cost": sum(a.cost_usd or 0 for a in reading.attempts),
        "run output": sum(a.output_tokens or 0 for a in reading.attempts),
    }
    starts = [s.started_at for s in sessions if s.started_at is not None]
    ends = [s.ended_at for s in sessions if s.ended_at is not None]
    span = (min(starts, default=0), max(ends, default=0))
    fine = {
        c.call_id
        for c in calls
        if c.status in ("ok", "none") and c.outcome != "nothing_found" and c.purpose != "plan_handoff"
    }
    return sums, fine, span


def counted(name: str, path: Path) -> Count | None:
    """What the format's counter finds; None in a file whose one document is torn."""
    try:
        count = COUNTERS[name](path.read_bytes())
    except ValueError:
        return None
    return count


def differences(count: Count | None, path: Path) -> Iterator[str]:
    """Each figure of a file that the two count otherwise."""
    if count is None:
        yield "file"
        return
    sums, fine, span = ours(path)
    times = [at for text in count.times if (at := microseconds(text)) is not None]
    if times and not (span[0] <= min(times) and max(times) <= span[1]):
        yield f"time ({min(times)} to {max(times)} logged, {span[0]} to {span[1]} in the tables)"
    for figure, value in sums.items():
        by_hand = getattr(count, figure, None)
        if by_hand is not None and abs(by_hand - value) > 1e-6:
            yield f"{figure} ({by_hand} counted, {value} in the tables)"
    for figure, total in count.totals.items():
        if total is not None and abs(total - sums[figure]) > 1e-6:
            yield f"total {figure} ({total} in the log's own sum, {sums[figure]} in the tables)"
    if count.failed & fine:
        yield f"failed ({len(count.failed & fine)} of {len(count.failed)} flagged calls went well in the tables)"


def unexplained(name: str, paths: list[Path]) -> dict[str, list[str]]:
    found = {}
    for path in paths:
        figures, _ = EXPECTED.get((name, key(path)), ("", ""))
        left = [d for d in differences(counted(name, path), path) if not d.startswith(tuple(figures.split()))]
        if left:
            found[key(path)] = left
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_the_tables_hold_what_a_plain_count_of_the_samples_finds(name: str) -> None:
    assert samples(name)
    assert unexplained(name, samples(name)) == {}


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
@pytest.mark.parametrize("name", [name for name in FORMATS if name not in SAMPLES_ONLY])
def test_the_tables_hold_what_a_plain_count_of_real_logs_finds(name: str) -> None:
    assert corpus(name)
    assert unexplained(name, corpus(name)) == {}


def test_a_figure_that_is_off_is_seen() -> None:
    path = SAMPLES / "pi" / "tree.jsonl"
    count = counted("pi", path)
    assert count is not None
    assert not [d for d in differences(count, path) if not d.startswith("prompts")]
    for figure in ("api_calls", "tool_calls", "input", "output", "cache_read", "cache_write", "cost"):
        spoilt = replace(count, **{figure: getattr(count, figure) + 1})
        assert [d for d in differences(spoilt, path) if d.startswith(f"{figure} (")], figure
    spoilt = replace(count, totals={"output": 1}, failed=ours(path)[1], times=["2001-01-01T00:00:00Z"])
    assert {d.split(" (")[0] for d in differences(spoilt, path)} >= {"total output", "failed", "time"}
